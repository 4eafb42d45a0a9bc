// SPDX-License-Identifier: GPL-2.0-only
/* Choices, mixtures of them, and rounding; TALLY_SEED=n runs one random problem. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/choices.h"
#include "agent/policy/rounding.h"
#include "agent/policy/search.h"
#include "random.h"

enum {
	CHOICES_MAX = 256,
	OPTIONS_MAX = 1024,
	RESOURCES_MAX = 8,
	PROBLEMS = 300,
	DRAWS = 50,
};

/* A problem, and room for what is asked about it. */
struct problem {
	struct choices choices;
	struct choice choice[CHOICES_MAX];
	struct choices_option option[OPTIONS_MAX];
	struct choices_use use[OPTIONS_MAX][2];
	unsigned int options;
	double room[RESOURCES_MAX], load[RESOURCES_MAX];
	double share[OPTIONS_MAX];
	uint32_t taken[CHOICES_MAX];
	bool made[CHOICES_MAX];
};

static struct problem p;

static void begin(const double *room, uint32_t resources)
{
	memset(&p, 0, sizeof(p));
	memcpy(p.room, room, resources * sizeof(*room));
	p.choices = (struct choices){ p.choice, 0, p.room, resources };
}

static void add_choice(bool always)
{
	assert_true(p.choices.count < CHOICES_MAX);
	p.choice[p.choices.count++] = (struct choice){ .option = &p.option[p.options],
						       .always = always };
}

/* Of the last choice. An amount of 0: no use. */
static void add_option(uint32_t then, uint32_t a, double of_a, uint32_t b, double of_b)
{
	struct choices_use *use = p.use[p.options];
	struct choices_option *o = &p.option[p.options++];

	assert_true(p.options <= OPTIONS_MAX);
	*o = (struct choices_option){ .use = use, .then = then };
	if (of_a > 0)
		use[o->uses++] = (struct choices_use){ a, of_a };
	if (of_b > 0)
		use[o->uses++] = (struct choices_use){ b, of_b };
	p.choice[p.choices.count - 1].options++;
}

static double rate_of_taken(void) { return choices_rate(&p.choices, p.taken, p.load, p.made); }

static double mixed(bool whole)
{
	double rate = -1;

	assert_int_equal(choices_check(&p.choices), 0);
	assert_int_equal(choices_mix(&p.choices, whole, 0, p.share, &rate), 0);
	return rate;
}

static bool is_close(double a, double b) { return a == b || fabs(a - b) < 1e-6 * fmax(a, b); }

static void is_near(double a, double b) { assert_true(fabs(a - b) < 5e-6); }

/* --- InArt's problem without links ----------------------------------------------------------- */

enum {
	ROOTS = 2,
	NODES = 2,
};

/*
 * Fragments go from each worker to each root, straight or by a node that adds them up. Resources:
 * roots, then nodes. Choices: that of worker w for root s is w * ROOTS + s; then what node v sends
 * to root s.
 */
static void inart(unsigned int workers, const double *root, const double *node, const double *split)
{
	begin((double[]){ root[0], root[1], node[0], node[1] }, ROOTS + NODES);
	for (unsigned int i = 0; i < workers * ROOTS; i++) {
		uint32_t s = i % ROOTS;

		add_choice(true);
		add_option(CHOICES_NONE, s, split[s], 0, 0);
		for (uint32_t v = 0; v < NODES; v++)
			add_option(workers * ROOTS + s * NODES + v, ROOTS + v, split[s], 0, 0);
	}
	for (uint32_t i = 0; i < ROOTS * NODES; i++) {
		add_choice(false);
		add_option(CHOICES_NONE, i / NODES, split[i / NODES], 0, 0);
	}
}

/* Of the fragments for a root so many go straight, by node 0, and the others by node 1. */
static void take(unsigned int workers, uint32_t root, unsigned int straight, unsigned int by_0)
{
	for (unsigned int w = 0; w < workers; w++)
		p.taken[w * ROOTS + root] = w < straight ? 0 : w < straight + by_0 ? 1 : 2;
}

/* The best of all: workers are alike, so how many do what is all that counts. */
static double best_of_all(unsigned int workers)
{
	double best = 0;

	for (unsigned int a = 0; a <= workers; a++)
		for (unsigned int b = 0; a + b <= workers; b++) {
			take(workers, 0, a, b);
			for (unsigned int c = 0; c <= workers; c++)
				for (unsigned int d = 0; c + d <= workers; d++) {
					take(workers, 1, c, d);
					best = fmax(best, rate_of_taken());
				}
		}
	return best;
}

/* A mixture, the best whole one, and what rounding finds with 50 draws. */
static void inart_gives(unsigned int workers, const double *root, const double *node,
			const double *split, double mixture, double whole)
{
	double rate;

	inart(workers, root, node, split);
	is_near(mixed(false), mixture);
	assert_int_equal(rounding_best(&p.choices, p.share, 1, DRAWS, 0, true, p.taken, &rate), 0);
	is_near(rate, whole);
	is_near(rate_of_taken(), rate);
	is_near(best_of_all(workers), whole);
}

/* InArt, figure 1: six workers, two roots of 4, two nodes of 6. */
static void inarts_example_has_its_rates(void **state)
{
	static const double root[] = { 4, 4 }, node[] = { 6, 6 }, equal[] = { 0.5, 0.5 };

	inart(6, root, node, equal);
	take(6, 0, 6, 0);
	take(6, 1, 6, 0);
	is_near(rate_of_taken(), 4.0 / 3); /* LBMM: nobody adds up */
	take(6, 0, 0, 3);
	take(6, 1, 0, 3);
	is_near(rate_of_taken(), 2); /* ATP: the nearest node does */
	inart_gives(6, root, node, equal, 3, 8.0 / 3);
	inart(6, root, node, (double[]){ 0.6, 0.4 });
	is_near(best_of_all(6), 2.5);
}

/* Both roots are full: no single step makes the rate higher, but one leaves one root full. */
static void repair_goes_on_where_two_are_full(void **state)
{
	static const double root[] = { 4, 4 }, node[] = { 6, 6 }, equal[] = { 0.5, 0.5 };
	double rate;

	inart(6, root, node, equal);
	take(6, 0, 5, 1);
	take(6, 1, 5, 1);
	is_near(rate_of_taken(), 4.0 / 3);
	assert_int_equal(rounding_repair(&p.choices, p.taken, &rate), 0);
	is_near(rate, 2);
	is_near(rate_of_taken(), rate);
}

static void a_split_pays_where_roots_differ(void **state)
{
	static const double root[] = { 6, 2 }, node[] = { 6, 6 };

	inart(6, root, node, (double[]){ 0.5, 0.5 });
	is_near(best_of_all(6), 2);
	inart(6, root, node, (double[]){ 0.8, 0.2 });
	is_near(best_of_all(6), 2.5);
	inart(6, root, node, (double[]){ 0.75, 0.25 });
	is_near(mixed(false), 3);
}

static void larger_examples_have_their_bounds(void **state)
{
	static const double equal[] = { 0.5, 0.5 };

	inart(8, (double[]){ 10, 10 }, (double[]){ 10, 20 }, equal);
	is_near(mixed(false), 5.78125);
	is_near(best_of_all(8), 5);
	/* Roots are alike here, and nodes are not: then, too, a split may pay. */
	inart(8, (double[]){ 10, 10 }, (double[]){ 10, 20 }, (double[]){ 0.375, 0.625 });
	is_near(best_of_all(8), 16.0 / 3);
	inart(48, (double[]){ 20, 20 }, (double[]){ 9, 9 }, equal);
	assert_true(fabs(mixed(false) - 1.20052) < 5e-6);
}

/* --- random problems ------------------------------------------------------------------------- */

/* Some choices, and behind them some that options lead to. */
static void random_problem(uint64_t *random)
{
	uint32_t first = 1 + random_below(random, 4), behind = random_below(random, 4);
	double room[RESOURCES_MAX];

	for (int i = 0; i < 4; i++)
		room[i] = chance(random, 50) ? 0 : 1 + random_below(random, 9);
	begin(room, 4);
	for (uint32_t i = 0; i < first + behind; i++) {
		add_choice(i < first);
		for (uint32_t k = 0; k <= random_below(random, 3); k++) {
			uint32_t later = random_below(random, first + behind + 1);

			add_option(later > i && later >= first && later < first + behind
					   ? later
					   : CHOICES_NONE,
				   random_below(random, 4), random_below(random, 4),
				   random_below(random, 4), random_below(random, 4));
		}
	}
}

/* The best rate of all takings: counts through them. */
static double best_taking(void)
{
	double best = 0;
	uint32_t i;

	memset(p.taken, 0, sizeof(p.taken));
	do {
		best = fmax(best, rate_of_taken());
		for (i = 0; i < p.choices.count && ++p.taken[i] == p.choice[i].options; i++)
			p.taken[i] = 0;
	} while (i < p.choices.count);
	return best;
}

/* Resources that bear no more than the rate of what is taken. */
static unsigned int full_ones(double rate)
{
	unsigned int full = 0;

	for (uint32_t i = 0; i < p.choices.resources; i++)
		full += p.load[i] > 0 && p.room[i] / p.load[i] <= rate * (1 + 1e-9);
	return full;
}

/* One other option would make the rate higher, or fewer resources full: all of them are tried. */
static bool leaves_a_step(void)
{
	double rate = rate_of_taken();
	unsigned int full = full_ones(rate);
	bool left = false;

	for (uint32_t i = 0; i < p.choices.count; i++) {
		uint32_t was = p.taken[i];

		for (p.taken[i] = 0; p.taken[i] < p.choice[i].options; p.taken[i]++) {
			double other = rate_of_taken();

			left = left || other > rate * (1 + 1e-9) ||
			       (other >= rate && full_ones(other) < full);
		}
		p.taken[i] = was;
	}
	return left;
}

static const char *mixtures_and_rounding_agree(uint64_t seed)
{
	double best, rounded, drawn, first, mixture;
	uint64_t random = seed;

	random_problem(&random);
	best = best_taking();
	if (!is_close(mixed(true), best))
		return "the best whole mixture is not the best taking";
	mixture = mixed(false);
	if (mixture < best && !is_close(mixture, best))
		return "a taking is better than the best mixture";
	assert_int_equal(rounding_best(&p.choices, p.share, seed, 4, 0, false, p.taken, &drawn), 0);
	if (rate_of_taken() != drawn)
		return "what was drawn has another rate";
	assert_int_equal(rounding_best(&p.choices, p.share, seed, 1, 0, false, p.taken, &first), 0);
	if (first > drawn)
		return "the best of four draws is not as good as the first";
	assert_int_equal(rounding_best(&p.choices, p.share, seed, 4, 0, true, p.taken, &rounded),
			 0);
	if (rate_of_taken() != rounded)
		return "what was repaired has another rate";
	if (rounded < drawn || (rounded > best && !is_close(rounded, best)))
		return "repair makes rates worse, or better than can be";
	if (leaves_a_step())
		return "repair ends where one more step helps";
	return NULL;
}

static void no_taking_is_better_than_the_mixture(void **state)
{
	run_seeds(PROBLEMS, mixtures_and_rounding_agree);
}

static unsigned int searched, search_is_best, repair_is_best;

static const char *a_search_keeps_the_best(uint64_t seed)
{
	double best, before, rate;
	uint64_t random = seed;

	random_problem(&random);
	best = best_taking();
	for (uint32_t i = 0; i < p.choices.count; i++)
		p.taken[i] = random_below(&random, p.choice[i].options);
	before = rate_of_taken();
	assert_int_equal(search_takings(&p.choices, 20, &random, p.taken, &rate), 0);
	if (rate_of_taken() != rate)
		return "what was found has another rate";
	if (rate < before || (rate > best && !is_close(rate, best)))
		return "a search makes rates worse, or better than can be";
	memset(p.taken, 0, sizeof(p.taken));
	assert_int_equal(rounding_repair(&p.choices, p.taken, &rate), 0);
	repair_is_best += is_close(rate, best);
	memset(p.taken, 0, sizeof(p.taken));
	assert_int_equal(search_takings(&p.choices, 2000, &random, p.taken, &rate), 0);
	search_is_best += is_close(rate, best);
	searched++;
	return NULL;
}

static void a_search_finds_more_than_repair(void **state)
{
	run_seeds(PROBLEMS, a_search_keeps_the_best);
	print_message("of %u problems repair finds the best in %u, a search in %u\n", searched,
		      repair_is_best, search_is_best);
	if (searched >= PROBLEMS)
		assert_true(search_is_best > repair_is_best + searched / 50);
}

/* A taking that is 2 % worse is gone through, and is not what the search ends with. */
static void a_search_ends_with_the_best(void **state)
{
	double rate;

	begin((double[]){ 100 }, 1);
	add_choice(true);
	add_option(CHOICES_NONE, 0, 100, 0, 0);
	add_option(CHOICES_NONE, 0, 102, 0, 0);
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint64_t random = seed;

		assert_int_equal(search_takings(&p.choices, 1, &random, p.taken, &rate), 0);
		assert_int_equal(p.taken[0], 0);
		is_near(rate, 1);
	}
}

/*
 * Four go by the first node, for which the second one is better; one alone that goes there makes
 * the root bear two streams instead of one.
 */
static void a_group_moves_together(void **state)
{
	uint64_t seed = 1;
	double rate;

	begin((double[]){ 10, 4, 100 }, 3); /* root, nodes */
	for (int i = 0; i < 4; i++) {
		add_choice(true);
		add_option(4, 1, 1, 0, 0);
		add_option(5, 2, 1, 0, 0);
	}
	for (int i = 0; i < 2; i++) {
		add_choice(false);
		add_option(CHOICES_NONE, 0, 6, 0, 0);
	}
	assert_int_equal(rounding_repair(&p.choices, p.taken, &rate), 0);
	is_near(rate, 1);
	assert_int_equal(search_takings(&p.choices, 50, &seed, p.taken, &rate), 0);
	is_near(rate, 10.0 / 6);
}

/* --- drawing --------------------------------------------------------------------------------- */

static void options_are_drawn_by_their_shares(void **state)
{
	const double share[] = { 0.5, -1e-12, 0, 1.5, /* and of the second choice */ 0, 0 };
	unsigned int drawn[4] = { 0 }, second[2] = { 0 };
	uint64_t seed = 1;

	begin((double[]){ 1 }, 1);
	for (int i = 0; i < 2; i++) {
		add_choice(true);
		for (int k = 0; k < (i ? 2 : 4); k++)
			add_option(CHOICES_NONE, 0, 1, 0, 0);
	}
	for (int i = 0; i < 40000; i++) {
		rounding_draw(&p.choices, share, &seed, p.taken);
		drawn[p.taken[0]]++;
		second[p.taken[1]]++;
	}
	assert_true(drawn[1] == 0 && drawn[2] == 0);
	assert_in_range(drawn[0], 9500, 10500);
	assert_in_range(second[0], 19300, 20700);
}

static void a_seed_gives_the_same_again(void **state)
{
	static const double root[] = { 4, 4 }, node[] = { 6, 6 }, equal[] = { 0.5, 0.5 };
	uint32_t before[CHOICES_MAX];
	bool differs = false;
	double rate;

	inart(6, root, node, equal);
	mixed(false);
	for (uint64_t seed = 1; seed < 20; seed++) {
		rounding_best(&p.choices, p.share, seed, 1, 0, false, p.taken, &rate);
		memcpy(before, p.taken, sizeof(before));
		rounding_best(&p.choices, p.share, seed, 1, 0, false, p.taken, &rate);
		assert_memory_equal(before, p.taken, p.choices.count * sizeof(*before));
		rounding_best(&p.choices, p.share, seed + 1, 1, 0, false, p.taken, &rate);
		differs = differs || memcmp(before, p.taken, sizeof(before)) != 0;
	}
	assert_true(differs);
}

static void problems_that_cannot_be_are_refused(void **state)
{
	begin((double[]){ 1 }, 1);
	add_choice(true);
	add_option(1, 0, 1, 0, 0);
	add_choice(false);
	add_option(CHOICES_NONE, 0, 1, 0, 0);
	assert_int_equal(choices_check(&p.choices), 0);
#define REFUSED(field, value)                                         \
	do {                                                          \
		__typeof__(field) was = field;                        \
		field = (value);                                      \
		assert_int_equal(choices_check(&p.choices), -EINVAL); \
		field = was;                                          \
	} while (0)
	REFUSED(p.option[0].then, 0);
	REFUSED(p.option[0].then, 2);
	REFUSED(p.use[0][0].resource, 1);
	REFUSED(p.use[0][0].amount, -1);
	REFUSED(p.use[0][0].amount, NAN);
	REFUSED(p.room[0], INFINITY);
	REFUSED(p.choice[1].options, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inarts_example_has_its_rates),
		cmocka_unit_test(repair_goes_on_where_two_are_full),
		cmocka_unit_test(a_split_pays_where_roots_differ),
		cmocka_unit_test(larger_examples_have_their_bounds),
		cmocka_unit_test(no_taking_is_better_than_the_mixture),
		cmocka_unit_test(a_search_finds_more_than_repair),
		cmocka_unit_test(a_search_ends_with_the_best),
		cmocka_unit_test(a_group_moves_together),
		cmocka_unit_test(options_are_drawn_by_their_shares),
		cmocka_unit_test(a_seed_gives_the_same_again),
		cmocka_unit_test(problems_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
