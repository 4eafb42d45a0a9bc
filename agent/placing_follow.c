// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What this node has of the cluster beside the jobs that it is the root of: tokens and tenants. */
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/clock.h"
#include "placing_private.h"

enum {
	AGAIN_MS = 5000, /* so long what was refused is not asked for again */
};

/* --- tokens ---------------------------------------------------------------------------------- */

void placing_follow_token(struct placing *p, const char *name)
{
	const struct job *j = books_job_find(core_books(placing_core(p)), name);
	const struct shared_job *s = shared_find(&p->shared, name);
	struct request q = { .verb = REQUEST_JOB_ROTATE };

	if (!j || !s || !j->clustered || j->birth != s->job.birth ||
	    !strcmp(j->token, s->job.token))
		return;
	memcpy(q.rotate.name, j->name, sizeof(q.rotate.name));
	memcpy(q.rotate.token, s->job.token, sizeof(q.rotate.token));
	if (placing_ask_core(p, &q) < 0)
		log_say(LOG_LEVEL_WARNING, "token not changed", "job=%s reason=\"%s\"", name,
			p->why.text);
	else
		log_say(LOG_LEVEL_INFO, "token changed", "job=%s", name);
	explicit_bzero(&q, sizeof(q));
}

void placing_follow_tokens(struct placing *p)
{
	for (unsigned int i = 0; i < p->shared.jobs; i++)
		placing_follow_token(p, p->shared.job[i]->name);
}

/* --- tenants --------------------------------------------------------------------------------- */

static const struct books_tenant *tenant_here(const struct placing *p, const char *name)
{
	const struct books *b = core_books(placing_core(p));
	struct why ignored;
	const int index = books_tenant_find(b, name, &ignored);

	return index < 0 ? NULL : &b->tenant[index];
}

static bool has_wanted_limits(const struct tenant *here, const struct tenant *wanted)
{
	return here->slots == wanted->slots && here->priority == wanted->priority &&
	       here->packets_per_second == wanted->packets_per_second &&
	       here->bytes_per_second == wanted->bytes_per_second &&
	       !strcmp(here->group, wanted->group);
}

/* Where the cluster does not say where it may come in, this node does. */
static bool has_wanted_points(const struct tenant *here, const struct tenant *wanted)
{
	char is[TENANT_POINTS_MAX * TENANT_POINT_BYTES], as[sizeof(is)];

	if (here->gated != wanted->gated || !here->gated)
		return here->gated == wanted->gated;
	tenant_points_print(here, is, sizeof(is));
	tenant_points_print(wanted, as, sizeof(as));
	return !strcmp(is, as);
}

/* NULL: no memory of it, and no room for one. */
static struct followed_tenant *followed_find(struct placing *p, const char *name)
{
	struct followed_tenant fresh = { .revision = 0 };

	for (unsigned int i = 0; i < p->tenants; i++)
		if (!strcmp(p->tenant[i].name, name))
			return &p->tenant[i];
	if (p->tenants == SHARED_TENANTS_MAX)
		return NULL;
	snprintf(fresh.name, sizeof(fresh.name), "%s", name);
	p->tenant[p->tenants] = fresh;
	return &p->tenant[p->tenants++];
}

static void followed_forget(struct placing *p)
{
	for (unsigned int i = p->tenants; i-- > 0;)
		if (!shared_tenant_find(&p->shared, p->tenant[i].name))
			p->tenant[i] = p->tenant[--p->tenants];
}

static int points_set(struct placing *p, const struct tenant *t)
{
	const struct request q = { .verb = REQUEST_TENANT_SET,
				   .given = REQUEST_INGRESS,
				   .tenant = *t };

	return placing_ask_core(p, &q);
}

/* Limits and points by themselves: what the node cannot have of one does not keep it from the
 * other. While it cannot have the points, the tenant keeps those that the cluster gave before, and
 * comes in nowhere if there were none; but where only a run is in the way, until that is over. */
static int tenant_change(struct placing *p, const struct tenant *here, const struct tenant *wanted,
			 struct why *why)
{
	struct tenant nowhere = *wanted;
	const struct request q = { .verb = REQUEST_TENANT_SET,
				   .given = REQUEST_SLOTS | REQUEST_PACKETS_PER_SECOND |
					    REQUEST_BYTES_PER_SECOND | REQUEST_PRIORITY |
					    REQUEST_GROUP,
				   .tenant = *wanted };
	const bool was_gated = here->gated;
	int r = 0, limits = 0;

	nowhere.points = 0;
	if (!has_wanted_points(here, wanted))
		r = points_set(p, wanted);
	if (r < 0) {
		*why = p->why;
		if (!was_gated && r != -EBUSY)
			points_set(p, &nowhere);
	}
	if (!has_wanted_limits(here, wanted))
		limits = placing_ask_core(p, &q);
	if (limits < 0 && r == 0)
		*why = p->why;
	return r < 0 ? r : limits;
}

static void tenant_ask(struct placing *p, const struct shared_tenant *t,
		       const struct tenant *wanted, struct followed_tenant *f)
{
	const struct request q = { .verb = REQUEST_TENANT_ADD, .tenant = *wanted };
	const struct books_tenant *here = tenant_here(p, wanted->name);
	char why[REPORT_WHY_BYTES] = "";
	struct why refused = { "" };
	int r;

	if (here) {
		r = tenant_change(p, &here->is, wanted, &refused);
	} else {
		r = placing_ask_core(p, &q);
		refused = p->why;
	}
	if (r < 0)
		snprintf(why, sizeof(why), "%.*s", (int)sizeof(why) - 1,
			 *refused.text ? refused.text : strerror(-r));
	if (r < 0 && strcmp(why, f->why) != 0)
		log_say(LOG_LEVEL_WARNING, "tenant of the cluster not held",
			"tenant=%s reason=\"%s\"", wanted->name, why);
	memcpy(f->why, why, sizeof(f->why));
	f->revision = t->revision;
	f->asked_ns = clock_now_ns();
}

static bool has_job(const struct placing *p, const char *tenant)
{
	const struct books *b = core_books(placing_core(p));

	for (unsigned int i = 0; i < b->jobs; i++)
		if (!strcmp(b->job[i]->tenant_name, tenant))
			return true;
	return false;
}

/* The core keeps it as long as a job of it is here. */
static void drop_tenant(struct placing *p, const char *name)
{
	struct request q = { .verb = REQUEST_TENANT_DEL, .tenant.clustered = true };

	if (has_job(p, name))
		return;
	snprintf(q.tenant.name, sizeof(q.tenant.name), "%s", name);
	if (placing_ask_core(p, &q) < 0)
		log_say(LOG_LEVEL_WARNING, "tenant of the cluster not deleted",
			"tenant=%s reason=\"%s\"", name, p->why.text);
}

/* The node's own stays as it is, whatever the cluster wants. One that may come in at other nodes
 * alone has no slots here, once its jobs have gone. */
static void follow_tenant(struct placing *p, const struct shared_tenant *t)
{
	const struct tenant wanted = wanted_tenant_at(&t->wanted, p->node);
	const struct books_tenant *here = tenant_here(p, wanted.name);
	struct followed_tenant *f = followed_find(p, wanted.name);
	const bool own = here && !here->is.clustered;

	if (!f)
		return;
	if (own ||
	    (here ? has_wanted_limits(&here->is, &wanted) && has_wanted_points(&here->is, &wanted)
		  : tenant_is_nowhere(&wanted)))
		*f->why = '\0';
	else if (!*f->why || f->revision != t->revision ||
		 clock_now_ns() - f->asked_ns >= AGAIN_MS * 1000000ull)
		tenant_ask(p, t, &wanted, f);
	if (here && !own && tenant_is_nowhere(&wanted))
		drop_tenant(p, wanted.name);
}

void placing_follow_tenants(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));

	/* First those that go: others may need their slots. */
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct tenant *t = &b->tenant[i].is;

		if (*t->name && t->clustered && !shared_tenant_find(&p->shared, t->name) &&
		    !shared_tenant_job(&p->shared, t->name) && !placing_is_left_tenant(p, t->name))
			drop_tenant(p, t->name);
	}
	followed_forget(p);
	for (unsigned int i = 0; i < p->shared.tenants; i++)
		follow_tenant(p, &p->shared.tenant[i]);
}

/* --- what is told of them -------------------------------------------------------------------- */

static void tenant_report(const struct placing *p, const struct shared_tenant *t,
			  struct report_tenant *ret)
{
	const struct books *b = core_books(placing_core(p));
	const struct tenant wanted = wanted_tenant_at(&t->wanted, p->node);
	const struct books_tenant *here = tenant_here(p, wanted.name);
	const char *why = "";

	*ret = (struct report_tenant){ .slots = here ? books_quota(b, here - b->tenant) : 0,
				       .slots_kept = here ? books_kept(b, here - b->tenant) : 0,
				       .own = here && !here->is.clustered,
				       .gated = here && here->is.gated };
	memcpy(ret->name, wanted.name, sizeof(ret->name));
	ret->apart = !ret->own && tenant_is_nowhere(&wanted);
	ret->held = here && !ret->apart && ret->slots >= wanted.slots &&
		    (ret->own || has_wanted_points(&here->is, &wanted));
	for (unsigned int i = 0; i < p->tenants; i++)
		if (!strcmp(p->tenant[i].name, wanted.name))
			why = p->tenant[i].why;
	if (here && ret->own && !ret->held)
		snprintf(ret->why, sizeof(ret->why),
			 "the node has a tenant of that name of its own, "
			 "%s",
			 here->configured ? "in its configuration" : "made by tallyctl");
	else if (ret->apart)
		snprintf(ret->why, sizeof(ret->why), "its ingress points are at other nodes");
	else if (!ret->held)
		snprintf(ret->why, sizeof(ret->why), "%s", *why ? why : "it has not followed yet");
	for (char *c = ret->why; *c; c++) /* as the store has words */
		if (*c < ' ' || *c > '~')
			*c = '?';
}

int placing_tenants_report(const struct placing *p, struct report *ret)
{
	_Static_assert(SHARED_TENANTS_MAX <= (int)REPORT_TENANTS_MAX, "all of them fit");

	for (unsigned int i = 0; i < p->shared.tenants; i++) {
		struct report_tenant *t = ROWS_ADD(ret->tenant, ret->tenants);

		if (!t)
			return -ENOMEM;
		tenant_report(p, &p->shared.tenant[i], t);
	}
	return 0;
}
