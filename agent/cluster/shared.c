// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/joining.h"
#include "common/owned.h"

/* --- jobs by name ---------------------------------------------------------------------------- */

static unsigned int place_of(const struct shared *s, const char *name)
{
	unsigned int low = 0, high = s->jobs;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;

		if (strcmp(s->job[middle]->name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct shared_job *find(const struct shared *s, const char *name)
{
	const unsigned int at = place_of(s, name);

	return at < s->jobs && !strcmp(s->job[at]->name, name) ? s->job[at] : NULL;
}

static void job_free(struct shared_job *j)
{
	explicit_bzero(&j->job, sizeof(j->job));
	free(j->worker);
	free(j->refusal);
	free(j->ways);
	free(j);
}

/* Keys of a job may come before the job itself. */
static int find_or_add(struct shared *s, const char *name, struct shared_job **ret)
{
	const unsigned int at = place_of(s, name);
	struct shared_job **more, *fresh;

	*ret = find(s, name);
	if (*ret)
		return 0;
	if (s->jobs == SHARED_JOBS_MAX)
		return -E2BIG;
	fresh = calloc(1, sizeof(*fresh));
	more = fresh ? reallocarray(s->job, s->jobs + 1, sizeof(*more)) : NULL;
	if (!more) {
		free(fresh);
		return -ENOMEM;
	}
	s->job = more;
	memmove(more + at + 1, more + at, (s->jobs - at) * sizeof(*more));
	more[at] = *ret = fresh;
	s->jobs++;
	snprintf(fresh->name, sizeof(fresh->name), "%s", name);
	return 0;
}

static void drop_if_empty(struct shared *s, const char *name)
{
	const unsigned int at = place_of(s, name);
	struct shared_job *j = find(s, name);

	if (!j || j->revision || j->place_revision || j->ways_revision || j->workers || j->refusals)
		return;
	job_free(j);
	s->jobs--;
	memmove(s->job + at, s->job + at + 1, (s->jobs - at) * sizeof(*s->job));
}

void shared_close(struct shared *s)
{
	for (unsigned int i = 0; i < s->jobs; i++)
		job_free(s->job[i]);
	free(s->job);
	for (unsigned int i = 0; i < s->tenants; i++)
		free(s->tenant[i].wanted.place);
	*s = (struct shared){ 0 };
}

const struct shared_job *shared_find(const struct shared *s, const char *name)
{
	const struct shared_job *j = find(s, name);

	return j && j->revision ? j : NULL;
}

const struct shared_job *shared_root(const struct shared *s, const struct shared_job *j,
				     unsigned int which)
{
	char first[NAME_BYTES], name[NAME_BYTES];
	const struct shared_job *other;

	memcpy(first, j->name, sizeof(first));
	if (j->job.which > 1)
		*strrchr(first, '.') = '\0';
	other = joining_root_name(first, which, name) == 0 ? shared_find(s, name) : NULL;
	return other && other->job.roots == j->job.roots && other->job.which == which ? other
										      : NULL;
}

bool shared_is_placed(const struct shared_job *j)
{
	return j->revision && j->place_revision && j->place.birth == j->job.birth;
}

/* Of another root, they lead elsewhere. */
const struct wanted_ways *shared_ways(const struct shared_job *j)
{
	const struct wanted_ways *w = j->ways;

	return shared_is_placed(j) && w && w->birth == j->job.birth &&
			       !strcmp(w->root, j->place.root) &&
			       endpoint_is_equal(&w->address, &j->place.address)
		       ? w
		       : NULL;
}

/* --- tenants --------------------------------------------------------------------------------- */

static unsigned int tenant_place(const struct shared *s, const char *name)
{
	unsigned int at = 0;

	while (at < s->tenants && strcmp(s->tenant[at].wanted.is.name, name) < 0)
		at++;
	return at;
}

const struct shared_tenant *shared_tenant_find(const struct shared *s, const char *name)
{
	const unsigned int at = tenant_place(s, name);

	return at < s->tenants && !strcmp(s->tenant[at].wanted.is.name, name) ? &s->tenant[at]
									      : NULL;
}

const struct shared_job *shared_tenant_job(const struct shared *s, const char *name)
{
	for (unsigned int i = 0; i < s->jobs; i++)
		if (s->job[i]->revision && !strcmp(s->job[i]->job.tenant, name))
			return s->job[i];
	return NULL;
}

static void tenant_drop(struct shared *s, const char *name)
{
	const unsigned int at = tenant_place(s, name);

	if (!shared_tenant_find(s, name))
		return;
	free(s->tenant[at].wanted.place);
	s->tenants--;
	memmove(s->tenant + at, s->tenant + at + 1, (s->tenants - at) * sizeof(*s->tenant));
}

/* What it has is taken over, unless there is no room. */
static int tenant_put(struct shared *s, const struct shared_tenant *t)
{
	const unsigned int at = tenant_place(s, t->wanted.is.name);

	if (shared_tenant_find(s, t->wanted.is.name)) {
		free(s->tenant[at].wanted.place);
	} else {
		if (s->tenants == SHARED_TENANTS_MAX)
			return -E2BIG;
		memmove(s->tenant + at + 1, s->tenant + at, (s->tenants - at) * sizeof(*s->tenant));
		s->tenants++;
	}
	s->tenant[at] = *t;
	return 0;
}

/* Each node has a default tenant of its own. */
static int take_tenant(struct shared *s, const char *name, const char *value, uint64_t revision,
		       struct why *why)
{
	struct shared_tenant t = { .revision = revision };
	int r = 0;

	if (!name_is_valid(name) || !strcmp(name, TENANT_DEFAULT))
		return why_say(why, -EINVAL, "it is not of the name of a tenant");
	if (value)
		r = wanted_parse(&wanted_tenant_keys, value, &t.wanted, why);
	if (r == 0 && value && strcmp(t.wanted.is.name, name) != 0)
		r = why_say(why, -EINVAL, "it says that it is tenant %s", t.wanted.is.name);
	if (r == 0 && value) {
		t.wanted.is.clustered = true;
		r = tenant_put(s, &t);
		if (r == 0)
			return 0;
	} else {
		tenant_drop(s, name);
	}
	free(t.wanted.place);
	return r;
}

/* --- keys ------------------------------------------------------------------------------------ */

/* Jobs at roots behind the first one have the first one's name and a number. */
static bool roots_fit(const struct wanted_job *j)
{
	const char *dot = strrchr(j->name, '.');
	char number[8];

	snprintf(number, sizeof(number), "%u", j->which);
	if (!j->roots)
		return !j->which;
	return j->roots > 1 && j->which >= 1 && j->which <= j->roots &&
	       (j->which == 1 || (dot && !strcmp(dot + 1, number)));
}

static int take_job(struct shared_job *j, const char *rest, const char *value, uint64_t revision,
		    struct why *why)
{
	int r = 0;

	explicit_bzero(&j->job, sizeof(j->job));
	j->revision = 0;
	if (value)
		r = wanted_parse(&wanted_job_keys, value, &j->job, why);
	if (r == 0 && value && strcmp(j->job.name, j->name) != 0)
		r = why_say(why, -EINVAL, "it says that it is job %s", j->job.name);
	if (r == 0 && value && !roots_fit(&j->job))
		r = why_say(why, -EINVAL, "it says that it is root %u of %u", j->job.which,
			    j->job.roots);
	if (r == 0 && value)
		j->revision = revision;
	return r;
}

static int take_place(struct shared_job *j, const char *rest, const char *value, uint64_t revision,
		      struct why *why)
{
	int r = 0;

	j->place = (struct wanted_place){ 0 };
	j->place_revision = 0;
	if (value)
		r = wanted_parse(&wanted_place_keys, value, &j->place, why);
	if (r == 0 && value)
		j->place_revision = revision;
	return r;
}

static int take_ways(struct shared_job *j, const char *rest, const char *value, uint64_t revision,
		     struct why *why)
{
	_cleanup_(freep) struct wanted_ways *w = value ? calloc(1, sizeof(*w)) : NULL;
	int r = 0;

	free(TAKE_PTR(j->ways));
	j->ways_revision = 0;
	if (!value)
		return 0;
	r = w ? wanted_parse(&wanted_ways_keys, value, w, why) : -ENOMEM;
	if (r == 0)
		r = wanted_ways_check(w, why);
	if (r < 0)
		return r;
	j->ways = TAKE_PTR(w);
	j->ways_revision = revision;
	return 0;
}

static unsigned int worker_place(const struct shared_job *j, const char *id)
{
	unsigned int at = 0;

	while (at < j->workers && strcmp(j->worker[at].id, id) != 0)
		at++;
	return at;
}

static int take_worker(struct shared_job *j, const char *rest, const char *value, uint64_t revision,
		       struct why *why)
{
	const unsigned int at = worker_place(j, rest);
	struct shared_worker w = { .id = "" }, *more;
	int r = 0;

	if (strlen(rest) >= sizeof(w.id))
		return why_say(why, -EINVAL, "its name is too long");
	snprintf(w.id, sizeof(w.id), "%s", rest);
	if (value)
		r = wanted_parse(&wanted_worker_keys, value, &w.is, why);
	if (!value || r < 0) {
		if (at < j->workers)
			j->worker[at] = j->worker[--j->workers];
		return r;
	}
	if (at == j->workers) {
		more = reallocarray(j->worker, at + 1, sizeof(*more));
		if (!more)
			return -ENOMEM;
		j->worker = more;
		j->workers++;
	}
	j->worker[at] = w;
	return 0;
}

/* What is no text for a terminal is none here. */
static void refusal_fill(struct shared_refusal *r, const char *node, const char *why)
{
	snprintf(r->node, sizeof(r->node), "%s", node);
	snprintf(r->why, sizeof(r->why), "%s", why);
	for (char *c = r->why; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
}

static int take_refusal(struct shared_job *j, const char *rest, const char *value,
			uint64_t revision, struct why *why)
{
	unsigned int at = 0;
	void *more;

	if (strlen(rest) >= sizeof(j->refusal->node))
		return why_say(why, -EINVAL, "its name is too long");
	while (at < j->refusals && strcmp(j->refusal[at].node, rest) != 0)
		at++;
	if (!value) {
		if (at < j->refusals)
			j->refusal[at] = j->refusal[--j->refusals];
		return 0;
	}
	if (at == j->refusals) {
		more = reallocarray(j->refusal, at + 1, sizeof(*j->refusal));
		if (!more)
			return -ENOMEM;
		j->refusal = more;
		j->refusals++;
	}
	refusal_fill(&j->refusal[at], rest, value);
	return 0;
}

static const struct {
	const char *prefix;
	int (*take)(struct shared_job *j, const char *rest, const char *value, uint64_t revision,
		    struct why *why);
	bool has_rest; /* behind the job's name, and a slash */
} kinds[] = {
	{ WANTED_JOBS, take_job, false },      { WANTED_PLACES, take_place, false },
	{ WANTED_WORKERS, take_worker, true }, { WANTED_REFUSALS, take_refusal, true },
	{ WANTED_WAYS, take_ways, false },
};

static int take(struct shared *s, unsigned int kind, const char *names, const char *value,
		uint64_t revision, struct why *why)
{
	const char *slash = strchr(names, '/');
	const size_t length = slash ? (size_t)(slash - names) : strlen(names);
	char name[NAME_BYTES];
	struct shared_job *j;
	int r;

	if (length >= sizeof(name) || !slash == kinds[kind].has_rest)
		return why_say(why, -EINVAL, "it is not of the name of a job");
	memcpy(name, names, length);
	name[length] = '\0';
	if (!name_is_valid(name))
		return why_say(why, -EINVAL, "it is not of the name of a job");
	r = find_or_add(s, name, &j);
	if (r < 0)
		return r;
	r = kinds[kind].take(j, slash ? slash + 1 : "", value, revision, why);
	drop_if_empty(s, name);
	return r;
}

int shared_take(struct shared *s, const char *key, const char *value, uint64_t revision,
		struct why *why)
{
	if (!strncmp(key, WANTED_TENANTS, strlen(WANTED_TENANTS)))
		return take_tenant(s, key + strlen(WANTED_TENANTS), value, revision, why);
	for (unsigned int i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strncmp(key, kinds[i].prefix, strlen(kinds[i].prefix)))
			return take(s, i, key + strlen(kinds[i].prefix), value, revision, why);
	return 0;
}
