// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "quota.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static const double LEAST_WEIGHT = 1e-6, MOST_WEIGHT = 1e15;

/* --- policies -------------------------------------------------------------------------------- */

static void weigh_alike(const struct quota_use *use, unsigned int tenants, double *ret_weight)
{
	for (unsigned int i = 0; i < tenants; i++)
		ret_weight[i] = 1;
}

/*
 * Bytes a second that sums get from it now, or soon: of what is forecast, the same part. That is 1
 * at most: what is added is counted among what came, over the same intervals. Who sends a packet
 * again, or more than its rates allow, has nothing of that.
 */
static double traffic_of(const struct quota_use *u)
{
	double part = u->bytes_per_second > 0 ? u->added_bytes_per_second / u->bytes_per_second : 0;

	return fmax(u->added_bytes_per_second, u->forecast_bytes_per_second * part);
}

/* A quarter of the mean is everybody's: whose run is new has no traffic yet. */
static void weigh_by_traffic(const struct quota_use *use, unsigned int tenants, double *ret_weight)
{
	unsigned int busy = 0;
	double all = 0;

	for (unsigned int i = 0; i < tenants; i++) {
		ret_weight[i] = traffic_of(&use[i]);
		all += ret_weight[i];
		busy += ret_weight[i] > 0;
	}
	for (unsigned int i = 0; i < tenants; i++)
		ret_weight[i] += busy ? all / busy / 4 : 1;
}

const struct quota_policy QUOTA_POLICIES[] = {
	{ "lend", "tenants are alike", weigh_alike },
	{ "lend-by-traffic", "who sends more has more", weigh_by_traffic },
};

const unsigned int QUOTA_POLICIES_COUNT = sizeof(QUOTA_POLICIES) / sizeof(*QUOTA_POLICIES);

const struct quota_policy *quota_policy_find(const char *name)
{
	for (unsigned int i = 0; i < QUOTA_POLICIES_COUNT; i++)
		if (strcmp(QUOTA_POLICIES[i].name, name) == 0)
			return &QUOTA_POLICIES[i];
	return NULL;
}

static void weigh(const struct quota_policy *policy, const struct quota_use *use,
		  double ret_weight[TALLY_TENANTS_MAX])
{
	policy->weigh(use, TALLY_TENANTS_MAX, ret_weight);
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) /* a NAN is not above anything */
		ret_weight[i] = ret_weight[i] > LEAST_WEIGHT ? fmin(ret_weight[i], MOST_WEIGHT)
							     : LEAST_WEIGHT;
}

/* --- loans ----------------------------------------------------------------------------------- */

/* While loans are chosen: what each tenant has left of them. */
struct choice {
	struct quota_loan *loan;
	unsigned int count;
	const struct quota_want *want;
	uint64_t lent[TALLY_TENANTS_MAX];
	double weight[TALLY_TENANTS_MAX];
};

/* Has tenant `a` with so many slots no less, by weight, than `b` with so many? */
static bool has_no_less(const struct choice *c, unsigned int a, uint64_t slots_a, unsigned int b,
			uint64_t slots_b)
{
	return (double)slots_a * c->weight[b] >= (double)slots_b * c->weight[a];
}

static bool may_recall(const struct choice *c, const struct quota_loan *l)
{
	const struct quota_want *w = c->want;

	if (l->recalled)
		return false;
	return w->own ||
	       (l->tenant != w->tenant && has_no_less(c, l->tenant, c->lent[l->tenant] - l->slots,
						      w->tenant, c->lent[w->tenant] + w->slots));
}

/* Is `a` the better one to recall, where so many slots are missing? */
static bool is_better(const struct choice *c, const struct quota_loan *a,
		      const struct quota_loan *b, uint32_t missing)
{
	const bool a_does = a->slots >= missing, b_does = b->slots >= missing;

	const uint64_t lent_a = c->lent[a->tenant], lent_b = c->lent[b->tenant];
	const bool a_has = has_no_less(c, a->tenant, lent_a, b->tenant, lent_b);

	if (!a_has || !has_no_less(c, b->tenant, lent_b, a->tenant, lent_a))
		return a_has;
	if (a_does != b_does)
		return a_does;
	return a_does ? a->slots < b->slots : a->slots > b->slots;
}

/* NULL: there is none. */
static struct quota_loan *next(const struct choice *c, uint32_t missing)
{
	struct quota_loan *best = NULL;

	for (unsigned int i = 0; i < c->count; i++)
		if (may_recall(c, &c->loan[i]) &&
		    (!best || is_better(c, &c->loan[i], best, missing)))
			best = &c->loan[i];
	return best;
}

static int none(const struct choice *c)
{
	for (unsigned int i = 0; i < c->count; i++)
		c->loan[i].recalled = false;
	return -ENOSPC;
}

int quota_recall(const struct quota_policy *policy, const struct quota_use *use,
		 struct quota_loan *loan, unsigned int count, const struct quota_want *want)
{
	struct choice c = { .loan = loan, .count = count, .want = want };
	uint64_t free = want->free;
	int recalled = 0;

	weigh(policy, use, c.weight);
	for (unsigned int i = 0; i < count; i++) {
		loan[i].recalled = false;
		c.lent[loan[i].tenant] += loan[i].slots;
	}
	for (; free < want->slots; recalled++) {
		struct quota_loan *l = next(&c, want->slots - (uint32_t)free);

		if (!l)
			return none(&c);
		l->recalled = true;
		c.lent[l->tenant] -= l->slots;
		free += l->slots;
	}
	return recalled;
}
