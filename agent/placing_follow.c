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

static bool is_as_wanted(const struct tenant *here, const struct tenant *wanted)
{
	return here->slots == wanted->slots && here->priority == wanted->priority &&
	       here->packets_per_second == wanted->packets_per_second &&
	       here->bytes_per_second == wanted->bytes_per_second &&
	       !strcmp(here->group, wanted->group);
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

static void tenant_ask(struct placing *p, const struct shared_tenant *t, enum request_verb verb,
		       struct followed_tenant *f)
{
	const struct request q = { .verb = verb,
				   .given = REQUEST_SLOTS | REQUEST_PACKETS_PER_SECOND |
					    REQUEST_BYTES_PER_SECOND | REQUEST_PRIORITY |
					    REQUEST_GROUP,
				   .tenant = t->is };
	const int r = placing_ask_core(p, &q);
	char why[REPORT_WHY_BYTES] = "";

	if (r < 0)
		snprintf(why, sizeof(why), "%.*s", (int)sizeof(why) - 1,
			 *p->why.text ? p->why.text : strerror(-r));
	if (r < 0 && strcmp(why, f->why) != 0)
		log_say(LOG_LEVEL_WARNING, "tenant of the cluster not held",
			"tenant=%s reason=\"%s\"", t->is.name, why);
	memcpy(f->why, why, sizeof(f->why));
	f->revision = t->revision;
	f->asked_ns = clock_now_ns();
}

/* The node's own stays as it is, whatever the cluster wants. */
static void follow_tenant(struct placing *p, const struct shared_tenant *t)
{
	const struct books_tenant *here = tenant_here(p, t->is.name);
	struct followed_tenant *f = followed_find(p, t->is.name);
	const bool own = here && !here->is.clustered;

	if (!f)
		return;
	if (own || (here && is_as_wanted(&here->is, &t->is)))
		*f->why = '\0';
	else if (!*f->why || f->revision != t->revision ||
		 clock_now_ns() - f->asked_ns >= AGAIN_MS * 1000000ull)
		tenant_ask(p, t, here ? REQUEST_TENANT_SET : REQUEST_TENANT_ADD, f);
}

/* The core keeps it as long as a job of it is here. */
static void drop_tenant(struct placing *p, const char *name)
{
	const struct books *b = core_books(placing_core(p));
	struct request q = { .verb = REQUEST_TENANT_DEL, .tenant.clustered = true };

	for (unsigned int i = 0; i < b->jobs; i++)
		if (!strcmp(b->job[i]->tenant_name, name))
			return;
	snprintf(q.tenant.name, sizeof(q.tenant.name), "%s", name);
	if (placing_ask_core(p, &q) < 0)
		log_say(LOG_LEVEL_WARNING, "tenant of the cluster not deleted",
			"tenant=%s reason=\"%s\"", name, p->why.text);
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
	const struct books_tenant *here = tenant_here(p, t->is.name);
	const char *why = "";

	*ret = (struct report_tenant){ .slots = here ? books_quota(b, here - b->tenant) : 0,
				       .own = here && !here->is.clustered };
	memcpy(ret->name, t->is.name, sizeof(ret->name));
	ret->held = here && ret->slots >= t->is.slots;
	for (unsigned int i = 0; i < p->tenants; i++)
		if (!strcmp(p->tenant[i].name, t->is.name))
			why = p->tenant[i].why;
	if (here && ret->own && !ret->held)
		snprintf(ret->why, sizeof(ret->why),
			 "the node has a tenant of that name of its own, "
			 "%s",
			 here->configured ? "in its configuration" : "made by tallyctl");
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
