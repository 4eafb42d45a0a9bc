// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "random.h"

enum {
	GROUP_EVERY = 8, /* one of so many changes is of a group */
	RECOUNT_EVERY = 4096, /* loads are sums of many small changes */
};

static const double THRESHOLD = 0.3; /* at first, in parts of the fullest resource's weight */
static const double NO_ROOM = 1e-6; /* of the largest room: counts for no room */

struct search {
	const struct choices *c;
	uint32_t *taken, *before, *best;
	uint32_t *leads; /* to each choice: so many options, and one more if it is made always */
	double *load;
	double *per_room; /* of each resource: 1 / room */
	bool *made;
	double sum; /* of all resources */
	double rate; /* of the best */
	double fullest; /* the largest part of the sum */
	double largest; /* room */
	uint32_t *moved; /* choices that this change has changed */
	uint32_t moves;
};

static void search_close(struct search *s)
{
	free(s->before);
	free(s->best);
	free(s->leads);
	free(s->load);
	free(s->per_room);
	free(s->made);
	free(s->moved);
}

static double weight(double usage)
{
	double square = usage * usage, fourth = square * square;

	return fourth * fourth;
}

static const struct choices_option *option_of(const struct search *s, uint32_t choice)
{
	return &s->c->choice[choice].option[s->taken[choice]];
}

/* --- loads ----------------------------------------------------------------------------------- */

static void use(struct search *s, const struct choices_option *o, double sign)
{
	for (unsigned int i = 0; i < o->uses; i++) {
		uint32_t resource = o->use[i].resource;
		double *load = &s->load[resource], was = *load;

		*load = fmax(0, was + sign * o->use[i].amount);
		s->sum += weight(*load * s->per_room[resource]) -
			  weight(was * s->per_room[resource]);
	}
}

/* One option more leads to this choice: if it is the first one, the choice is made. */
static void lead(struct search *s, uint32_t choice)
{
	while (choice != CHOICES_NONE && s->leads[choice]++ == 0) {
		use(s, option_of(s, choice), 1);
		choice = option_of(s, choice)->then;
	}
}

static void lead_no_more(struct search *s, uint32_t choice)
{
	while (choice != CHOICES_NONE && --s->leads[choice] == 0) {
		use(s, option_of(s, choice), -1);
		choice = option_of(s, choice)->then;
	}
}

static void take(struct search *s, uint32_t choice, uint32_t option)
{
	if (s->leads[choice] == 0) {
		s->taken[choice] = option;
		return;
	}
	use(s, option_of(s, choice), -1);
	lead_no_more(s, option_of(s, choice)->then);
	s->taken[choice] = option;
	use(s, option_of(s, choice), 1);
	lead(s, option_of(s, choice)->then);
}

static void count(struct search *s)
{
	memset(s->load, 0, s->c->resources * sizeof(*s->load));
	memset(s->leads, 0, s->c->count * sizeof(*s->leads));
	s->sum = 0;
	for (uint32_t i = 0; i < s->c->count; i++)
		if (s->c->choice[i].always)
			lead(s, i);
}

/* --- changes --------------------------------------------------------------------------------- */

static void move(struct search *s, uint32_t choice, uint32_t option)
{
	s->moved[s->moves] = choice;
	s->before[s->moves++] = s->taken[choice];
	take(s, choice, option);
}

static void move_back(struct search *s)
{
	while (s->moves > 0) {
		s->moves--;
		take(s, s->moved[s->moves], s->before[s->moves]);
	}
}

/* The first option that leads there, from a place by chance on. False: none does. */
static bool find_option(const struct search *s, uint32_t choice, uint32_t then, uint32_t from,
			uint32_t *ret)
{
	const struct choice *of = &s->c->choice[choice];

	for (unsigned int n = 0; n < of->options; n++) {
		*ret = (from + n) % of->options;
		if (of->option[*ret].then == then)
			return true;
	}
	return false;
}

/* All that lead where `choice` leads go with it. */
static void move_group(struct search *s, uint32_t choice, uint32_t option)
{
	uint32_t from = option_of(s, choice)->then;
	uint32_t to = s->c->choice[choice].option[option].then, found;

	for (uint32_t i = 0; i < s->c->count; i++)
		if (s->leads[i] && option_of(s, i)->then == from && i != choice &&
		    find_option(s, i, to, option, &found))
			move(s, i, found);
	move(s, choice, option);
}

/* --- the search ------------------------------------------------------------------------------ */

static double rate_now(const struct search *s)
{
	double rate = INFINITY;

	for (uint32_t i = 0; i < s->c->resources; i++)
		if (s->load[i] > 1e-9)
			rate = fmin(rate, s->c->room[i] / s->load[i]);
	return rate;
}

static void keep_best(struct search *s)
{
	double rate = rate_now(s);

	s->fullest = rate > 0 ? weight(s->largest / rate) : s->sum;
	if (rate <= s->rate)
		return;
	s->rate = rate;
	memcpy(s->best, s->taken, s->c->count * sizeof(*s->best));
}

static void try(struct search *s, double threshold, uint64_t *seed)
{
	uint32_t choice = random_index(seed, s->c->count), option;
	double sum = s->sum;

	if (s->leads[choice] == 0 || s->c->choice[choice].options == 1)
		return;
	option = random_index(seed, s->c->choice[choice].options);
	if (option == s->taken[choice])
		return;
	s->moves = 0;
	if (random_index(seed, GROUP_EVERY) == 0 && option_of(s, choice)->then != CHOICES_NONE)
		move_group(s, choice, option);
	else
		move(s, choice, option);
	if (s->sum > sum + threshold * s->fullest)
		move_back(s);
	else
		keep_best(s);
}

static int search_open(const struct choices *c, uint32_t *taken, struct search *ret)
{
	struct search s = { .c = c, .taken = taken, .rate = -1 };
	double largest = 0;

	s.before = calloc(c->count + 1, sizeof(*s.before));
	s.best = calloc(c->count + 1, sizeof(*s.best));
	s.leads = calloc(c->count + 1, sizeof(*s.leads));
	s.load = calloc(c->resources + 1, sizeof(*s.load));
	s.per_room = calloc(c->resources + 1, sizeof(*s.per_room));
	s.made = calloc(c->count + 1, sizeof(*s.made));
	s.moved = calloc(c->count + 1, sizeof(*s.moved));
	*ret = s;
	if (!s.before || !s.best || !s.leads || !s.load || !s.per_room || !s.made || !s.moved)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->resources; i++)
		largest = fmax(largest, c->room[i]);
	ret->largest = largest;
	for (uint32_t i = 0; i < c->resources && largest > 0; i++)
		s.per_room[i] = largest / fmax(c->room[i], NO_ROOM * largest);
	return 0;
}

int search_takings(const struct choices *c, unsigned int tries, uint64_t *seed, uint32_t *taken,
		   double *ret_rate)
{
	_cleanup_(search_close) struct search s = { 0 };
	int r = search_open(c, taken, &s);

	if (r < 0)
		return r;
	count(&s);
	keep_best(&s);
	for (unsigned int i = 0; i < tries; i++) {
		if (i % RECOUNT_EVERY == 0)
			count(&s);
		try(&s, THRESHOLD * (1 - (double)i / tries), seed);
	}
	memcpy(taken, s.best, c->count * sizeof(*taken));
	*ret_rate = choices_rate(c, taken, s.load, s.made);
	return 0;
}
