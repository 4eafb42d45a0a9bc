// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "loans.h"

/* While loans are chosen: what each tenant has left of them. */
struct choice {
	struct loan *loan;
	unsigned int count;
	const struct loans_want *want;
	uint64_t lent[TALLY_TENANTS_MAX];
};

static bool may_recall(const struct choice *c, const struct loan *l)
{
	const struct loans_want *w = c->want;

	if (l->recalled)
		return false;
	return w->own || (l->tenant != w->tenant &&
			  c->lent[l->tenant] >= (uint64_t)l->slots + c->lent[w->tenant] + w->slots);
}

/* Is `a` the better one to recall, where so many slots are missing? */
static bool is_better(const struct choice *c, const struct loan *a, const struct loan *b,
		      uint32_t missing)
{
	const bool a_does = a->slots >= missing, b_does = b->slots >= missing;

	if (c->lent[a->tenant] != c->lent[b->tenant])
		return c->lent[a->tenant] > c->lent[b->tenant];
	if (a_does != b_does)
		return a_does;
	return a_does ? a->slots < b->slots : a->slots > b->slots;
}

/* NULL: there is none. */
static struct loan *next(const struct choice *c, uint32_t missing)
{
	struct loan *best = NULL;

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

int loans_recall(struct loan *loan, unsigned int count, const struct loans_want *want)
{
	struct choice c = { .loan = loan, .count = count, .want = want };
	uint64_t free = want->free;
	int recalled = 0;

	for (unsigned int i = 0; i < count; i++) {
		loan[i].recalled = false;
		c.lent[loan[i].tenant] += loan[i].slots;
	}
	for (; free < want->slots; recalled++) {
		struct loan *l = next(&c, want->slots - (uint32_t)free);

		if (!l)
			return none(&c);
		l->recalled = true;
		c.lent[l->tenant] -= l->slots;
		free += l->slots;
	}
	return recalled;
}
