// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "books.h"
#include "common/address.h"

static const struct books_tenant books_default = { .is.name = "default", .remainder = true };

void books_init(struct books *b, uint32_t slots)
{
	memset(b, 0, sizeof(*b));
	b->slots = slots;
	b->tenant[BOOKS_DEFAULT] = books_default;
}

void books_clear(struct books *b)
{
	for (unsigned int i = 0; i < b->jobs; i++)
		job_free(b->job[i]);
	b->jobs = 0;
}

/* --- tenants --------------------------------------------------------------------------------- */

static int tenant_index(const struct books *b, const char *name)
{
	for (int i = 0; i < TALLY_TENANTS_MAX; i++)
		if (*name && !strcmp(b->tenant[i].is.name, name))
			return i;
	return -ENOENT;
}

void books_settle(struct books *b)
{
	for (unsigned int i = 0; i < b->jobs; i++) {
		const int index = tenant_index(b, b->job[i]->tenant_name);

		b->job[i]->tenant = index < 0 ? 0 : index;
	}
}

int books_tenant_find(const struct books *b, const char *name, struct why *why)
{
	int index = tenant_index(b, name), n;

	if (index >= 0)
		return index;
	n = snprintf(why->text, sizeof(why->text), "there is no tenant %s; there are", name);
	for (int i = 0; i < TALLY_TENANTS_MAX && n < (int)sizeof(why->text); i++)
		if (*b->tenant[i].is.name)
			n += snprintf(why->text + n, sizeof(why->text) - n, " %s",
				      b->tenant[i].is.name);
	return -ENOENT;
}

static uint32_t slots_of(const struct books *b, unsigned int index,
			 uint32_t (*slots_of_job)(const struct job *j))
{
	uint32_t slots = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		slots += b->job[i]->tenant == index ? slots_of_job(b->job[i]) : 0;
	return slots;
}

static uint32_t slots_own(const struct job *j) { return job_is_lent(j) ? 0 : job_slots(j); }
static uint32_t slots_lent(const struct job *j) { return job_is_lent(j) ? job_slots(j) : 0; }

uint32_t books_held(const struct books *b, unsigned int index)
{
	return slots_of(b, index, slots_own);
}

uint32_t books_lent(const struct books *b, unsigned int index)
{
	return slots_of(b, index, slots_lent);
}

uint32_t books_promised(const struct books *b, unsigned int index)
{
	return slots_of(b, index, job_slots_wanted);
}

/* What one tenant keeps from all others. */
static uint32_t tenant_reserved(const struct books *b, unsigned int index)
{
	const struct books_tenant *t = &b->tenant[index];
	uint32_t held = books_held(b, index);

	if (!*t->is.name)
		return 0;
	return t->remainder || t->is.slots < held ? held : t->is.slots;
}

uint32_t books_reserved(const struct books *b)
{
	uint32_t slots = 0;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		slots += b->tenant[i].remainder ? 0 : tenant_reserved(b, i);
	return slots;
}

uint32_t books_quota(const struct books *b, unsigned int index)
{
	uint32_t reserved = books_reserved(b);

	if (!b->tenant[index].remainder)
		return b->tenant[index].is.slots;
	return reserved < b->slots ? b->slots - reserved : 0;
}

/* Would a quota of `slots` fit beside what all the others keep? */
static int quota_check(const struct books *b, unsigned int index, uint32_t slots, struct why *why)
{
	uint32_t others = 0, left;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		others += i == index ? 0 : tenant_reserved(b, i);
	left = others < b->slots ? b->slots - others : 0;
	if (slots <= left)
		return 0;
	return why_say(why, -ENOSPC,
		       "%u slots: the node has %u, and other tenants keep %u of them, by quota or "
		       "in running jobs; %u are left",
		       slots, b->slots, others, left);
}

/* An index that nobody has. */
static int index_free(const struct books *b, struct why *why)
{
	int index = BOOKS_DEFAULT;

	while (index < TALLY_TENANTS_MAX && *b->tenant[index].is.name)
		index++;
	if (index < TALLY_TENANTS_MAX)
		return index;
	return why_say(why, -ENOSPC, "the node has %d tenants already, the most it can",
		       TALLY_TENANTS_MAX - BOOKS_DEFAULT);
}

int books_tenant_add(struct books *b, const struct tenant *t, struct why *why)
{
	int r, index;

	if (tenant_index(b, t->name) >= 0)
		return why_say(why, -EEXIST, "there is a tenant %s already", t->name);
	index = index_free(b, why);
	if (index < 0)
		return index;
	r = quota_check(b, index, t->slots, why);
	if (r < 0)
		return r;
	b->tenant[index] = (struct books_tenant){ .is = *t };
	books_settle(b);
	return index;
}

int books_tenant_restore(struct books *b, const struct tenant *t, bool rest, struct why *why)
{
	int index = tenant_index(b, t->name);

	if (index >= 0 && b->tenant[index].configured && (index == BOOKS_DEFAULT || t->clustered))
		return 0;
	if (index > BOOKS_DEFAULT && !b->tenant[index].configured)
		return why_say(why, -EEXIST, "there is a tenant %s already", t->name);
	if (index < 0)
		index = index_free(b, why);
	if (index < 0)
		return index;
	b->tenant[index] = (struct books_tenant){ .is = *t };
	b->tenant[index].remainder = rest && index == BOOKS_DEFAULT;
	return 0;
}

int books_tenant_set(struct books *b, unsigned int index, const struct tenant *t, struct why *why)
{
	bool remainder = b->tenant[index].remainder && t->slots == b->tenant[index].is.slots;
	int r;

	if (!remainder) {
		r = quota_check(b, index, t->slots, why);
		if (r < 0)
			return r;
	}
	b->tenant[index].is = *t;
	b->tenant[index].remainder = remainder;
	return 0;
}

int books_tenant_del(struct books *b, unsigned int index, struct why *why)
{
	if (index == BOOKS_DEFAULT)
		return why_say(why, -EPERM,
			       "the default tenant stays: it has the jobs that name "
			       "no tenant");
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->tenant == index)
			return why_say(why, -EBUSY,
				       "tenant %s has jobs, such as %s: leave the tenant as it is, "
				       "or end and delete its jobs first (tallyctl job list "
				       "--tenant %s)",
				       b->tenant[index].is.name, b->job[i]->name,
				       b->tenant[index].is.name);
	b->tenant[index] = (struct books_tenant){ 0 };
	return 0;
}

void books_yield(struct books *b)
{
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		if (b->tenant[i].is.clustered)
			b->tenant[i].is.slots = 0;
}

static bool is_among(const char *name, const struct tenant *tenants, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(tenants[i].name, name))
			return true;
	return false;
}

/* Frees what the last configuration reserved, so that the order of the new one does not matter. */
static int configured_release(struct books *b, const struct tenant *tenants, unsigned int count,
			      struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < TALLY_TENANTS_MAX; i++) {
		struct books_tenant *t = &b->tenant[i];

		if (!*t->is.name || !(t->configured || t->is.clustered))
			continue;
		if (is_among(t->is.name, tenants, count))
			t->is.slots = 0;
		else if (i == BOOKS_DEFAULT)
			*t = books_default;
		else if (t->configured)
			r = books_tenant_del(b, i, why);
	}
	return r;
}

/* "red 600, blue 8" */
static void kept_print(const struct books *b, char *text, size_t size)
{
	size_t used = 0;

	*text = '\0';
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX && used < size; i++)
		if (tenant_reserved(b, i))
			used += snprintf(text + used, size - used, "%s%s %u", used ? ", " : "",
					 b->tenant[i].is.name, tenant_reserved(b, i));
}

int books_fit(const struct books *b, struct why *why)
{
	uint64_t kept = 0;
	char who[160];

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		kept += tenant_reserved(b, i);
	if (kept <= b->slots)
		return 0;
	kept_print(b, who, sizeof(who));
	return why_say(why, -ENOSPC,
		       "tenants keep %llu slots, by quota or in running jobs (%s), and the node "
		       "has %u: raise slots: in tallyd.yaml to %llu, or give tenants fewer: there, "
		       "or by tallyctl quota while tallyd runs",
		       (unsigned long long)kept, who, b->slots, (unsigned long long)kept);
}

int books_configure(struct books *b, const struct tenant *tenants, unsigned int count, bool rest,
		    struct why *why)
{
	int r;

	r = configured_release(b, tenants, count, why);
	for (unsigned int i = 0; r == 0 && i < count; i++) {
		int index = tenant_index(b, tenants[i].name);

		if (index > BOOKS_DEFAULT && !b->tenant[index].configured &&
		    !b->tenant[index].is.clustered)
			return why_say(why, -EEXIST,
				       "tenant %s exists already, created by tallyctl: "
				       "tallyctl tenant del %s first, or take another name",
				       tenants[i].name, tenants[i].name);
		if (index < 0)
			r = index = books_tenant_add(b, &tenants[i], why);
		else if (index != BOOKS_DEFAULT || !rest)
			r = books_tenant_set(b, index, &tenants[i], why);
		else
			b->tenant[index].is = tenants[i];
		if (r < 0)
			return r;
		if (index == BOOKS_DEFAULT && rest) /* its 0 slots say that it has no quota */
			b->tenant[index].is.slots = 0;
		b->tenant[index].configured = true;
		b->tenant[index].remainder = index == BOOKS_DEFAULT && rest;
		r = 0;
	}
	return r < 0 ? r : books_fit(b, why);
}

/* --- jobs ------------------------------------------------------------------------------------ */

struct job *books_job_find(const struct books *b, const char *name)
{
	for (unsigned int i = 0; i < b->jobs; i++)
		if (!strcmp(b->job[i]->name, name))
			return b->job[i];
	return NULL;
}

struct job *books_inner_find(const struct books *b, const char *name,
			     const struct sockaddr_storage *root)
{
	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct document *d = b->job[i]->document;

		if (d && !strcmp(d->job, name) && endpoint_is_equal(&d->root, root))
			return b->job[i];
	}
	return NULL;
}

const struct job *books_job_numbered(const struct books *b, uint32_t id)
{
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->id == id)
			return b->job[i];
	return NULL;
}

uint32_t books_job_id(const struct books *b, uint32_t random)
{
	while (!random || books_job_numbered(b, random))
		random++;
	return random;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct job *const *)a)->name, (*(struct job *const *)b)->name);
}

int books_job_restore(struct books *b, struct job *j, struct why *why)
{
	if (!j->id)
		return why_say(why, -EINVAL, "job %s: id 0 is not allowed", j->name);
	if (books_job_find(b, j->name))
		return why_say(why, -EEXIST, "the name %s is taken: take another one", j->name);
	if (books_job_numbered(b, j->id))
		return why_say(why, -EEXIST, "number %u is taken: take another one, or name none",
			       j->id);
	if (b->jobs == TALLY_JOBS_MAX)
		return why_say(why, -ENOSPC, "the node has %u jobs already, the most it can",
			       b->jobs);
	if (j->tenant)
		memcpy(j->tenant_name, b->tenant[j->tenant].is.name, sizeof(j->tenant_name));
	b->job[b->jobs++] = j;
	qsort(b->job, b->jobs, sizeof(struct job *), by_name);
	return 0;
}

/* Is all that the job wants there, besides what others were promised? Else it is over. */
static bool is_within_quota(const struct books *b, struct job *j)
{
	uint32_t quota = books_quota(b, j->tenant), promised;

	j->over = true; /* it may be in the books, and is not to be counted twice */
	promised = books_promised(b, j->tenant);
	j->over = promised > quota || 2u * j->window > quota - promised;
	return !j->over;
}

int books_job_add(struct books *b, struct job *j, struct why *why)
{
	uint32_t quota = books_quota(b, j->tenant), promised = books_promised(b, j->tenant);
	const struct job *other = books_job_find(b, j->name);
	int r;

	if (other && other->tenant == j->tenant)
		return why_say(why, -EEXIST,
			       "there is a job %s already; its token: tallyctl job token %s",
			       j->name, j->name);
	if (!is_within_quota(b, j) && !books_may_spill(b, j) && !j->document)
		return why_say(why, -ENOSPC,
			       "window %u takes %u slots (two a chunk): tenant %s has a quota of "
			       "%u, and its jobs want %u, also those that wait for workers; take a "
			       "smaller window, delete a job (tallyctl job list --tenant %s), or "
			       "give the tenant more",
			       j->window, 2u * j->window, b->tenant[j->tenant].is.name, quota,
			       promised, b->tenant[j->tenant].is.name);
	if (j->document)
		j->borrows = j->over;
	r = books_share_check(b, j, why);
	return r < 0 ? r : books_job_restore(b, j, why);
}

void books_job_take(struct books *b, struct job *j)
{
	for (unsigned int i = 0; i < b->jobs; i++) {
		if (b->job[i] != j)
			continue;
		memmove(&b->job[i], &b->job[i + 1], (--b->jobs - i) * sizeof(struct job *));
		return;
	}
}

void books_job_del(struct books *b, struct job *j)
{
	books_job_take(b, j);
	job_free(j);
}

static int window_within_quota(const struct books *b, const struct job *j, uint16_t *ret,
			       struct why *why)
{
	uint32_t quota = books_quota(b, j->tenant), promised = books_promised(b, j->tenant);
	uint32_t others = books_held(b, j->tenant) - slots_own(j);
	uint32_t left = others < quota ? quota - others : 0;
	uint64_t share = job_slots_wanted(j);
	uint16_t window = j->window;

	if (promised > quota)
		share = share * quota / promised;
	if (share < 2)
		share = 2; /* one chunk: slow is better than not at all */
	while (window && (2u * window > share || 2u * window > left))
		window /= 2;
	if (!window)
		return why_say(why, -ENOSPC,
			       "job %s wants %u slots (two a chunk) and gets none: tenant %s has "
			       "a quota of %u slots, and its other runs hold %u until they end; "
			       "for all jobs of the tenant: tallyctl quota %s --slots %u",
			       j->name, job_slots_wanted(j), b->tenant[j->tenant].is.name, quota,
			       others, b->tenant[j->tenant].is.name, promised);
	*ret = window;
	return 0;
}

int books_run_window(const struct books *b, struct job *j, uint16_t *ret, struct why *why)
{
	if (j->over && !is_within_quota(b, j))
		return why_say(why, -ENOSPC,
			       "job %s has window %u, which takes %u slots: tenant %s has a quota "
			       "of %u, and its other jobs were promised %u; for all of them: "
			       "tallyctl quota %s --slots %u",
			       j->name, j->window, 2u * j->window, b->tenant[j->tenant].is.name,
			       books_quota(b, j->tenant), books_promised(b, j->tenant),
			       b->tenant[j->tenant].is.name,
			       books_promised(b, j->tenant) + 2u * j->window);
	return window_within_quota(b, j, ret, why);
}
