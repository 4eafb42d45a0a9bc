// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What this node still has of the cluster where the store came back without it, as its data was
 * lost or put back: nobody has deleted that, so runs go on until they are over, and tenants stay.
 */
#include <string.h>

#include "agent/edge/log.h"
#include "placing_private.h"

bool placing_is_left(const struct placing *p, const struct job *j)
{
	for (unsigned int i = 0; i < p->left_jobs; i++)
		if (p->left_job[i] == j->birth)
			return true;
	return false;
}

bool placing_is_left_tenant(const struct placing *p, const char *name)
{
	for (unsigned int i = 0; i < p->left_tenants; i++)
		if (!strcmp(p->left_tenant[i], name))
			return true;
	return false;
}

static bool is_missing(const struct placing *p, const struct job *j)
{
	const struct shared_job *s = shared_find(&p->shared, j->name);

	return j->clustered && (!s || s->job.birth != j->birth);
}

static bool is_missing_tenant(const struct placing *p, const struct books_tenant *t)
{
	return *t->is.name && t->is.clustered && !shared_tenant_find(&p->shared, t->is.name);
}

/* Of what this node has, what the store lacks: anew for jobs and tenants, or if that was left
 * before. */
static void take(struct placing *p, bool jobs_too, bool tenants_too)
{
	const struct books *b = core_books(placing_core(p));
	unsigned int jobs = 0, tenants = 0;
	uint64_t job[TALLY_JOBS_MAX] = { 0 };
	char tenant[SHARED_TENANTS_MAX][NAME_BYTES] = { "" };

	for (unsigned int i = 0; i < b->jobs; i++)
		if (is_missing(p, b->job[i]) && (jobs_too || placing_is_left(p, b->job[i])))
			job[jobs++] = b->job[i]->birth;
	for (unsigned int i = 0; i < SHARED_TENANTS_MAX; i++) {
		const struct books_tenant *t = &b->tenant[i];

		if (is_missing_tenant(p, t) &&
		    (tenants_too || placing_is_left_tenant(p, t->is.name)))
			memcpy(tenant[tenants++], t->is.name, NAME_BYTES);
	}
	memcpy(p->left_job, job, jobs * sizeof(*job));
	p->left_jobs = jobs;
	memcpy(p->left_tenant, tenant, tenants * sizeof(*tenant));
	p->left_tenants = tenants;
}

void placing_left_begin(struct placing *p, unsigned int prefix)
{
	const unsigned int bit = 1u << prefix;

	if (!(p->current & bit))
		return; /* it was said */
	p->current &= ~bit;
	p->resets |= bit;
	lead_store_lost(&p->lead);
	if (prefix == PLACING_JOBS)
		log_say(LOG_LEVEL_WARNING, "the cluster's store came back empty or older",
			"advice=\"runs go on and tenants stay that it does not know any more: put "
			"its data back, or create them again (tallyctl job create, tallyctl tenant "
			"add, with --cluster)\"");
}

void placing_left_end(struct placing *p, unsigned int prefix)
{
	if (!(p->resets & 1u << prefix))
		return;
	p->resets &= ~(1u << prefix);
	take(p, prefix == PLACING_JOBS, prefix == PLACING_TENANTS);
}

void placing_left_look(struct placing *p) { take(p, false, false); }

/* The first of `seen` tenants' that is left, as "job NAME" or "tenant NAME"; how many there are. */
static unsigned int count_left(const struct placing *p, uint64_t seen, char *ret, size_t size)
{
	const struct books *b = core_books(placing_core(p));
	unsigned int count = 0;

	for (unsigned int i = 0; i < b->jobs; i++)
		if (placing_is_left(p, b->job[i]) && (seen & 1ull << b->job[i]->tenant) &&
		    count++ == 0)
			snprintf(ret, size, "job %s", b->job[i]->name);
	for (unsigned int i = 0; i < SHARED_TENANTS_MAX; i++)
		if (placing_is_left_tenant(p, b->tenant[i].is.name) && (seen & 1ull << i) &&
		    count++ == 0)
			snprintf(ret, size, "tenant %s", b->tenant[i].is.name);
	return count;
}

bool placing_left(const struct placing *p, uint64_t seen, struct why *ret)
{
	char first[NAME_BYTES + 8];
	const unsigned int count = p ? count_left(p, seen, first, sizeof(first)) : 0;

	if (count)
		why_say(ret, 0,
			"the store of the cluster came back empty or older, and does not know %s%s "
			"any more: here a job is kept until its run is over, and a tenant until "
			"the cluster has one of that name again (tallyctl tenant add --cluster)",
			first, count > 1 ? " and others" : "");
	return count;
}
