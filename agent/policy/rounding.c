// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rounding.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "random.h"
#include "search.h"

static const double CLOSE = 1e-9; /* rates, in parts of themselves, that count as one */

/* --- drawing --------------------------------------------------------------------------------- */

static uint32_t draw_option(unsigned int options, const double *share, double chance)
{
	double sum = 0, reached = 0;
	uint32_t last = 0;

	for (unsigned int k = 0; k < options; k++)
		sum += fmax(share[k], 0);
	if (sum <= 0)
		return (uint32_t)(chance * options);
	for (unsigned int k = 0; k < options; k++) {
		if (share[k] <= 0)
			continue;
		last = k;
		reached += share[k];
		if (reached > chance * sum)
			break;
	}
	return last;
}

void rounding_draw(const struct choices *c, const double *share, uint64_t *seed,
		   uint32_t *ret_taken)
{
	for (uint32_t i = 0; i < c->count; i++) {
		ret_taken[i] = draw_option(c->choice[i].options, share, random_part(seed));
		share += c->choice[i].options;
	}
}

/* --- repair ---------------------------------------------------------------------------------- */

/* What is taken, and what that is worth. */
struct taking {
	const struct choices *c;
	uint32_t *taken;
	double *load;
	bool *made;
	double rate;
	uint32_t full; /* so many resources bear no more than the rate */
};

static void taking_close(struct taking *t)
{
	free(t->load);
	free(t->made);
}

static bool is_full(const struct taking *t, uint32_t resource)
{
	double load = t->load[resource];

	return load > 0 && t->c->room[resource] / load <= t->rate * (1 + CLOSE);
}

static void taking_weigh(struct taking *t)
{
	const struct choices *c = t->c;

	t->rate = choices_rate(c, t->taken, t->load, t->made);
	t->full = 0;
	for (uint32_t i = 0; i < c->resources; i++)
		t->full += is_full(t, i);
}

static int taking_open(const struct choices *c, uint32_t *taken, struct taking *ret)
{
	struct taking t = { .c = c, .taken = taken };

	t.load = calloc(c->resources + 1, sizeof(*t.load));
	t.made = calloc(c->count + 1, sizeof(*t.made));
	if (!t.load || !t.made) {
		taking_close(&t);
		return -ENOMEM;
	}
	taking_weigh(&t);
	*ret = t;
	return 0;
}

static bool is_better(const struct taking *t, double rate, uint32_t full)
{
	if (t->rate > rate * (1 + CLOSE))
		return true;
	return t->rate >= rate && t->full < full;
}

/* Nothing gets better by another option where this one, and what it leads to, uses nothing full. */
static bool uses_full(const struct taking *t, uint32_t choice)
{
	while (choice != CHOICES_NONE) {
		const struct choices_option *o = &t->c->choice[choice].option[t->taken[choice]];

		for (unsigned int i = 0; i < o->uses; i++)
			if (is_full(t, o->use[i].resource))
				return true;
		choice = o->then;
	}
	return false;
}

/* Takes the first better option of this choice; false: there is none, and nothing changes. */
static bool step_at(struct taking *t, uint32_t choice)
{
	uint32_t was = t->taken[choice], full = t->full;
	double rate = t->rate;

	for (uint32_t k = 0; k < t->c->choice[choice].options; k++) {
		t->taken[choice] = k;
		taking_weigh(t);
		if (is_better(t, rate, full))
			return true;
	}
	t->taken[choice] = was;
	taking_weigh(t);
	return false;
}

static bool step(struct taking *t)
{
	for (uint32_t i = 0; i < t->c->count; i++)
		if (t->made[i] && uses_full(t, i) && step_at(t, i))
			return true;
	return false;
}

int rounding_repair(const struct choices *c, uint32_t *taken, double *ret_rate)
{
	_cleanup_(taking_close) struct taking t = { 0 };
	int r = taking_open(c, taken, &t);

	if (r < 0)
		return r;
	while (step(&t))
		;
	*ret_rate = t.rate;
	return 0;
}

int rounding_best(const struct choices *c, const double *share, uint64_t seed, unsigned int draws,
		  unsigned int tries, bool repair, uint32_t *ret_taken, double *ret_rate)
{
	_cleanup_(freep) uint32_t *taken = calloc(c->count + 1, sizeof(*taken));
	_cleanup_(taking_close) struct taking t = { 0 };
	double best = -1, rate;
	int r;

	if (!taken)
		return -ENOMEM;
	r = taking_open(c, taken, &t);
	for (unsigned int i = 0; i < draws && r == 0; i++) {
		rounding_draw(c, share, &seed, taken);
		r = tries ? search_takings(c, tries, &seed, taken, &rate) : 0;
		taking_weigh(&t);
		while (repair && step(&t))
			;
		if (t.rate > best) {
			best = t.rate;
			memcpy(ret_taken, taken, c->count * sizeof(*taken));
		}
	}
	if (r == 0)
		*ret_rate = best;
	return r;
}
