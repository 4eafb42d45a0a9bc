// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What operators ask of the jobs that agents share: to the store, and the answer when it is there.
 */
#include <errno.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "common/clock.h"
#include "common/joining.h"
#include "common/owned.h"
#include "control.h"
#include "placing_private.h"

enum {
	KNOWN_NS = 2000000000, /* who asked waits no longer for us to hear of what was done */
};

static void ignore(void *context, int error, uint64_t revision, const char *why) {}

void placing_write(struct placing *p, const struct store_seen *seen, unsigned int seens,
		   const struct store_change *change, unsigned int changes)
{
	store_write(p->store, &(struct store_write){ seen, seens, change, changes }, ignore, NULL);
}

static void answer_forget(struct asked *a)
{
	if (a->answer)
		explicit_bzero(a->answer, strlen(a->answer)); /* it may have a token */
	free(TAKE_PTR(a->answer));
}

static void asked_free(struct asked *a)
{
	TAILQ_REMOVE(&a->placing->asked, a, list);
	answer_forget(a);
	free(a);
}

void placing_asked_close(struct placing *p)
{
	while (!TAILQ_EMPTY(&p->asked))
		asked_free(TAILQ_FIRST(&p->asked));
}

void placing_forget(struct placing *p, const void *connection)
{
	struct asked *a;

	if (p)
		TAILQ_FOREACH(a, &p->asked, list)
	if (a->connection == connection)
		a->connection = NULL;
}

static char *refusal(const struct asked *a, int error, const char *why)
{
	struct why text;

	if (error == -ESTALE && a->what == ASKED_CREATE && a->changes > 1)
		why_say(&text, error,
			"the cluster has a job %s, or one of %s.2 to %s.%u (tallyctl cluster)",
			a->name, a->name, a->name, a->changes);
	else if (error == -ESTALE && a->what == ASKED_CREATE)
		why_say(&text, error, "the cluster has a job %s (tallyctl cluster)", a->name);
	else if (error == -ESTALE)
		why_say(&text, error, "%s was changed meanwhile: try again", a->name);
	else if (error == -ETIMEDOUT)
		why_say(&text, error,
			"the store did not say what became of it: see tallyctl cluster (%.300s)",
			why);
	else
		why_say(&text, error, "the store of the cluster did not take it: %.400s", why);
	return request_answer_error(a->error, text.text);
}

static void tell(struct asked *a)
{
	if (a->connection)
		control_told(a->connection, a->error, TAKE_PTR(a->answer));
	asked_free(a);
}

static bool is_known(const struct asked *a)
{
	const struct shared_tenant *t = shared_tenant_find(&a->placing->shared, a->name);
	const struct shared_job *j = shared_find(&a->placing->shared, a->name);

	switch (a->what) {
	case ASKED_CREATE:
	case ASKED_ROTATE:
		return j && j->revision >= a->revision;
	case ASKED_DELETE:
		return !j || j->revision > a->revision;
	case ASKED_PLACE:
		return !j || j->place_revision >= a->revision;
	case ASKED_TENANT:
		return t && t->revision >= a->revision;
	case ASKED_TENANT_DEL:
		return !t || t->revision > a->revision;
	}
	return true;
}

void placing_asked_look(struct placing *p)
{
	struct asked *a, *next;

	for (a = TAILQ_FIRST(&p->asked); a; a = next) {
		next = TAILQ_NEXT(a, list);
		if (a->revision && (is_known(a) || clock_now_ns() - a->done_ns > KNOWN_NS))
			tell(a);
	}
}

static void on_done(void *context, int error, uint64_t revision, const char *why)
{
	struct asked *a = context;
	struct placing *p = a->placing;

	if (error < 0) {
		answer_forget(a);
		a->error = error == -ESTALE && a->what == ASKED_CREATE ? -EEXIST : error;
		a->answer = refusal(a, error, why);
		tell(a);
	} else {
		a->revision = revision;
		a->done_ns = clock_now_ns();
		placing_asked_look(p);
	}
	placing_wake(p);
}

int placing_ask_store(struct placing *p, void *connection, const char *name, enum asked_for what,
		      char *answer, const struct store_write *w)
{
	struct asked *a = answer ? calloc(1, sizeof(*a)) : NULL;
	int r;

	if (!a) {
		free(answer);
		return -ENOMEM;
	}
	*a = (struct asked){ .placing = p,
			     .connection = connection,
			     .answer = answer,
			     .what = what,
			     .changes = w->changes };
	snprintf(a->name, sizeof(a->name), "%s", name);
	TAILQ_INSERT_TAIL(&p->asked, a, list);
	r = store_write(p->store, w, on_done, a);
	if (r < 0)
		asked_free(a);
	return r;
}

/* --- creation -------------------------------------------------------------------------------- */

/* A job with several roots is a job for each, in one write. */
struct jobs_write {
	unsigned int count;
	struct wanted_job job[JOINING_ROOTS_MAX];
	char key[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char *text[JOINING_ROOTS_MAX];
	struct store_seen seen[JOINING_ROOTS_MAX];
	struct store_change change[JOINING_ROOTS_MAX];
};

static void jobs_write_freep(struct jobs_write **jobs)
{
	struct jobs_write *w = *jobs;

	for (unsigned int i = 0; w && i < w->count; i++) {
		if (w->text[i])
			explicit_bzero(w->text[i], strlen(w->text[i]));
		free(w->text[i]);
	}
	if (w)
		explicit_bzero(w->job, sizeof(w->job));
	free(w);
}

static void token_make(const uint8_t *random, char ret[TOKEN_BYTES])
{
	struct job drawn = { 0 };

	job_token_make(&drawn, random);
	memcpy(ret, drawn.token, TOKEN_BYTES);
	explicit_bzero(&drawn, sizeof(drawn));
}

static void job_make(const struct request_job *q, const uint8_t random[CORE_RANDOM_BYTES],
		     struct wanted_job *ret)
{
	*ret = (struct wanted_job){ .workers = q->workers,
				    .window = q->window ? q->window : RUN_WINDOW,
				    .payload_bytes = q->payload_bytes,
				    .tags = q->tags,
				    .sealed = q->sealed };
	memcpy(ret->name, q->name, sizeof(ret->name));
	snprintf(ret->tenant, sizeof(ret->tenant), "%s", *q->tenant ? q->tenant : CONFIG_TENANT);
	token_make(random, ret->token);
	memcpy(&ret->birth, random + TOKEN_RANDOM_BYTES, sizeof(ret->birth));
	memcpy(&ret->id, random + TOKEN_RANDOM_BYTES + sizeof(ret->birth), sizeof(ret->id));
	ret->birth += !ret->birth;
	ret->id += !ret->id;
}

_Static_assert(TOKEN_RANDOM_BYTES + sizeof(uint64_t) + sizeof(uint32_t) <= CORE_RANDOM_BYTES,
	       "what a job needs");

/* The same with another number, for another root. */
static int job_of_root(const struct wanted_job *first, unsigned int which, unsigned int roots,
		       struct wanted_job *ret, struct why *why)
{
	*ret = *first;
	ret->roots = (uint16_t)roots;
	ret->which = (uint16_t)which;
	if (joining_root_name(first->name, which, ret->name) < 0)
		return why_say(why, -EINVAL,
			       "name: with %u roots it may have %zu characters at most: a number "
			       "comes behind it",
			       roots, sizeof(ret->name) - 1 - strlen(".16"));
	if (which == 1)
		return 0;
	if (getrandom(&ret->birth, sizeof(ret->birth), 0) != sizeof(ret->birth) ||
	    getrandom(&ret->id, sizeof(ret->id), 0) != sizeof(ret->id))
		return -EIO;
	ret->birth += !ret->birth;
	ret->id += !ret->id;
	return 0;
}

/* As a job that was seen at this revision; 0: it is not there. */
static int jobs_add(struct jobs_write *w, const struct wanted_job *j, uint64_t revision)
{
	const unsigned int i = w->count;

	w->job[i] = *j;
	w->text[i] = wanted_print(&wanted_job_keys, j);
	w->count++;
	snprintf(w->key[i], sizeof(w->key[i]), WANTED_JOBS "%s", j->name);
	w->seen[i] = (struct store_seen){ w->key[i], revision };
	w->change[i] = (struct store_change){ w->key[i], w->text[i], false };
	return w->text[i] ? 0 : -ENOMEM;
}

static int jobs_add_new(struct jobs_write *w, const struct wanted_job *first, unsigned int roots,
			struct why *why)
{
	struct wanted_job j;
	int r = 0;

	if (roots <= 1)
		return jobs_add(w, first, 0);
	for (unsigned int which = 1; r == 0 && which <= roots; which++) {
		r = job_of_root(first, which, roots, &j, why);
		if (r == 0)
			r = jobs_add(w, &j, 0);
	}
	explicit_bzero(&j, sizeof(j));
	return r;
}

static int jobs_ask(struct placing *p, void *connection, const struct jobs_write *w,
		    enum asked_for what)
{
	const struct wanted_job *j = &w->job[0];

	return placing_ask_store(p, connection, j->name, what,
				 request_answer_ok(json_pack("{ss sI ss}", "name", j->name, "id",
							     (json_int_t)j->id, "token", j->token)),
				 &(struct store_write){ w->seen, w->count, w->change, w->count });
}

int placing_create(struct placing *p, void *connection, const struct request_job *q,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why)
{
	_cleanup_(jobs_write_freep) struct jobs_write *w = NULL;
	const char *tenant = *q->tenant ? q->tenant : CONFIG_TENANT;
	struct wanted_job first;
	int r = books_tenant_find(core_books(placing_core(p)), tenant, why);

	if (r < 0 && !shared_tenant_find(&p->shared, tenant))
		return r;
	if (q->tree.nodes || q->tree.found || q->service.ss_family)
		return why_say(why, -EINVAL,
			       "cluster: agents decide where such a job is summed, so tree and "
			       "service cannot be given, too");
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	job_make(q, random, &first);
	r = jobs_add_new(w, &first, q->roots, why);
	if (r == 0)
		r = jobs_ask(p, connection, w, ASKED_CREATE);
	explicit_bzero(&first, sizeof(first));
	return r;
}

/* --- changes --------------------------------------------------------------------------------- */

/* Of a job with several roots only all together, by the first. */
static const struct shared_job *first_find(const struct placing *p, const char *name,
					   struct why *why)
{
	const struct shared_job *j = shared_find(&p->shared, name);

	if (!j)
		why_say(why, 0, "the cluster has no job %s (tallyctl cluster)", name);
	else if (j->job.which > 1)
		why_say(why, 0,
			"%s is root %u of a job with %u roots: name that job, which is called the "
			"same without the number behind it",
			name, j->job.which, j->job.roots);
	return j && j->job.which <= 1 ? j : NULL;
}

/* All but the token stays. Agents that have the job follow (placing.c). */
int placing_rotate(struct placing *p, void *connection, const char *name,
		   const uint8_t random[CORE_RANDOM_BYTES], struct why *why)
{
	_cleanup_(jobs_write_freep) struct jobs_write *w = calloc(1, sizeof(*w));
	const struct shared_job *first = first_find(p, name, why);
	const unsigned int roots = first && first->job.roots ? first->job.roots : 1;
	struct wanted_job j = { .name = "" };
	int r = w ? 0 : -ENOMEM;

	if (!first)
		return shared_find(&p->shared, name) ? -EINVAL : -ENOENT;
	for (unsigned int i = 0; r == 0 && i < roots; i++) {
		const struct shared_job *root = i ? shared_root(&p->shared, first, i + 1) : first;

		if (!root)
			return why_say(why, -EAGAIN, "job %s is not known as a whole yet", name);
		j = root->job;
		token_make(random, j.token);
		r = jobs_add(w, &j, root->revision);
	}
	explicit_bzero(&j, sizeof(j));
	return r == 0 ? jobs_ask(p, connection, w, ASKED_ROTATE) : r;
}

int placing_delete(struct placing *p, void *connection, const char *name, struct why *why)
{
	const struct shared_job *j = first_find(p, name, why);
	char job[JOINING_ROOTS_MAX][STORE_KEY_BYTES], place[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char ways[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	struct store_change change[3 * JOINING_ROOTS_MAX] = { 0 };
	unsigned int changes = 0, roots;
	char root[NAME_BYTES];

	if (!j)
		return shared_find(&p->shared, name) ? -EINVAL : -ENOENT;
	roots = j->job.roots ? j->job.roots : 1;
	for (unsigned int i = 0; i < roots; i++) {
		joining_root_name(name, i + 1, root);
		snprintf(job[i], sizeof(job[i]), WANTED_JOBS "%s", root);
		snprintf(place[i], sizeof(place[i]), WANTED_PLACES "%s", root);
		change[changes++] = (struct store_change){ job[i], NULL, false };
		change[changes++] = (struct store_change){ place[i], NULL, false };
		snprintf(ways[i], sizeof(ways[i]), WANTED_WAYS "%s", root);
		change[changes++] = (struct store_change){ ways[i], NULL, false };
	}
	return placing_ask_store(p, connection, name, ASKED_DELETE,
				 request_answer_ok(json_object()),
				 &(struct store_write){ &(struct store_seen){ job[0], j->revision },
							1, change, changes });
}

/* --- tenants --------------------------------------------------------------------------------- */

/* What the cluster's tenant is to be; `t`: as it is now, or NULL. Its places stay theirs whose
 * they are. */
static int tenant_make(const struct placing *p, const struct request *q,
		       const struct shared_tenant *t, struct wanted_tenant *ret, struct why *why)
{
	const char *name = q->tenant.name;

	if (!strcmp(name, CONFIG_TENANT))
		return why_say(why, -EINVAL, "tenant %s is each node's own", name);
	if (q->verb == REQUEST_TENANT_ADD && t)
		return why_say(why, -EEXIST, "the cluster has a tenant %s already", name);
	if (q->verb != REQUEST_TENANT_ADD && !t)
		return why_say(why, -ENOENT,
			       "the cluster has no tenant %s (tallyctl tenant list --cluster)",
			       name);
	if (!t && p->shared.tenants == SHARED_TENANTS_MAX)
		return why_say(why, -ENOSPC, "the cluster has %d tenants already, the most it can",
			       SHARED_TENANTS_MAX);
	*ret = t ? t->wanted : (struct wanted_tenant){ .is = q->tenant };
	if (t)
		ret->is = request_tenant(q, &t->wanted.is);
	if (q->given & REQUEST_INGRESS) {
		ret->place = (struct tenant_place *)q->place; /* nobody changes or frees it */
		ret->places = q->places;
	}
	return wanted_places_check(ret->place, ret->places, why);
}

/* Jobs that others create at this moment keep it at their nodes. */
static int tenant_check_unused(const struct placing *p, const char *name, struct why *why)
{
	const struct shared_job *j = shared_tenant_job(&p->shared, name);

	if (!j)
		return 0;
	return why_say(
		why, -EBUSY,
		"tenant %s has jobs of the cluster, such as %s: leave the tenant as it is, or "
		"delete its jobs first (tallyctl job del)",
		name, j->name);
}

int placing_tenant(struct placing *p, void *connection, const struct request *q, struct why *why)
{
	const struct shared_tenant *t = shared_tenant_find(&p->shared, q->tenant.name);
	const bool deletes = q->verb == REQUEST_TENANT_DEL;
	_cleanup_(freep) char *text = NULL;
	char key[STORE_KEY_BYTES];
	const struct store_seen seen = { key, t ? t->revision : 0 };
	struct store_change change = { key, NULL, false };
	struct wanted_tenant wanted;
	int r = tenant_make(p, q, t, &wanted, why);

	if (r == 0 && deletes)
		r = tenant_check_unused(p, q->tenant.name, why);
	if (r < 0)
		return r;
	snprintf(key, sizeof(key), WANTED_TENANTS "%s", wanted.is.name);
	if (!deletes) {
		change.value = text = wanted_print(&wanted_tenant_keys, &wanted);
		if (!text)
			return -ENOMEM;
	}
	return placing_ask_store(
		p, connection, wanted.is.name, deletes ? ASKED_TENANT_DEL : ASKED_TENANT,
		request_answer_ok(deletes ? json_object()
					  : keys_json_make(&wanted_tenant_keys, &wanted)),
		&(struct store_write){ &seen, 1, &change, 1 });
}
