// SPDX-License-Identifier: GPL-2.0-only
/* What calls of halved floats lose, and send later: whole calls by all ranks (calls_world.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/shards.h"
#include "tests/unit/calls_world.h"
#include "tests/unit/random.h"

enum {
	SOME = 5, /* ranks */
};

static float kept[RANKS_MAX][COUNT_MAX], lost[RANKS_MAX][COUNT_MAX];

static float *input(int rank) { return (float *)w.in[rank]; }

static const float *output(int rank) { return (const float *)w.out[rank]; }

static double random_double(void)
{
	return (double)(int64_t)random_next(&w.random) * 0x1p-63; /* -1 .. 1 */
}

/* Of magnitudes that vary from chunk to chunk. */
static void values_make(uint16_t ranks)
{
	for (uint16_t rank = 0; rank < ranks; rank++)
		for (int i = 0; i < COUNT_MAX; i++)
			input(rank)[i] = ldexpf((float)random_double(), i / 90 * 7 - 30);
}

/* Begins with nothing kept; with NULL for both nothing is. */
static void feed(float (*from)[COUNT_MAX], float (*to)[COUNT_MAX])
{
	memset(kept, 0, sizeof(kept));
	memset(lost, 0x55, sizeof(lost));
	for (int rank = 0; rank < RANKS_MAX; rank++) {
		w.kept[rank] = from ? from[rank] : NULL;
		w.lost[rank] = to ? to[rank] : NULL;
	}
}

static void world_begin(uint64_t seed, uint16_t ranks)
{
	memset(&w, 0, sizeof(w));
	w.random = seed;
	seal_begin_run(&w.seal, &(struct tally_key){ { 1, 2 } }, 3);
	world_make(TALLY_FLOAT32_HALVED, ranks, COUNT_MAX);
	values_make(ranks);
	feed(NULL, NULL);
}

/* As docs/protocol.md has it, of the chunk that an element is in: half a step of one rank. */
static double half_step(size_t i, uint16_t ranks)
{
	size_t chunk = call_chunk_elements(PAYLOAD, ranks, &w.options), first = i / chunk * chunk;
	double largest = 0;

	for (uint16_t rank = 0; rank < ranks; rank++)
		for (size_t k = first; k < first + chunk && k < COUNT_MAX; k++)
			largest = fmax(largest, fabsf(input(rank)[k]));
	return largest / ((1 << (15 - (int)ceil(log2(ranks)))) - 1);
}

/* --- the long run */

static double sent[COUNT_MAX];

/* The same values again and again, as a gradient that hardly changes has them. */
static void calls_run(int calls)
{
	memset(sent, 0, sizeof(sent));
	for (int n = 0; n < calls; n++) {
		run();
		for (int i = 0; i < COUNT_MAX; i++)
			sent[i] += output(0)[i];
		if (w.lost[0])
			memcpy(kept, lost, sizeof(kept));
	}
}

/* The largest error of the mean of all calls, in half steps of all ranks. */
static double mean_error(int calls)
{
	double worst = 0;

	for (int i = 0; i < COUNT_MAX; i++) {
		double wanted = 0;

		for (uint16_t rank = 0; rank < w.member.workers; rank++)
			wanted += input(rank)[i];
		worst = fmax(worst, fabs(sent[i] / calls - wanted) /
					    (half_step(i, w.member.workers) * w.member.workers));
	}
	return worst;
}

/* What is kept makes steps a little larger, and results are rounded to floats. */
static void over_many_calls_nothing_is_lost(void **state)
{
	static const uint16_t ranks[] = { 1, 2, SOME, 16, 128 };

	(void)state;
	for (int n = 0; n < 5; n++) {
		double once;

		world_begin(n + 1, ranks[n]);
		calls_run(1);
		once = mean_error(1);
		assert_true(once <= 1.01);
		calls_run(50);
		assert_true(fabs(mean_error(50) - once) < once / 100);

		feed(kept, lost);
		calls_run(50);
		assert_true(mean_error(50) <= 1.2 / 50);
	}
}

/* Values of which some are not finite, other ones from call to call. */
static void no_form_loses_twice_or_nothing(void **state)
{
	(void)state;
	for (int seed = 1; seed <= 20; seed++) {
		double given[SOME][COUNT_MAX] = { { 0 } }, all[COUNT_MAX] = { 0 };
		bool counts[COUNT_MAX];

		world_begin(seed, SOME);
		feed(kept, lost);
		memset(counts, true, sizeof(counts));
		for (int n = 0; n < 30; n++) {
			values_make(SOME);
			if (n % 3)
				input(n % SOME)[random_below(&w.random, COUNT_MAX)] = INFINITY;
			run();
			for (int i = 0; i < COUNT_MAX; i++) {
				counts[i] &= isfinite(output(0)[i]);
				all[i] += output(0)[i];
				for (int rank = 0; rank < SOME; rank++) {
					given[rank][i] += input(rank)[i];
					assert_true(isfinite(input(rank)[i]) ||
						    lost[rank][i] == kept[rank][i]);
				}
			}
			memcpy(kept, lost, sizeof(kept));
		}
		for (int i = 0; i < COUNT_MAX; i++) {
			double wanted = 0, most = ldexp(1, i / 90 * 7 - 30);

			for (int rank = 0; rank < SOME; rank++)
				wanted += given[rank][i] - kept[rank][i];
			assert_true(!counts[i] || fabs(all[i] - wanted) < most * 0x1p-18);
		}
	}
}

/* --- where things lie */

static float wanted_out[COUNT_MAX], wanted_lost[SOME][COUNT_MAX];

/* A call with something kept, in buffers of their own. */
static void usual_call(uint64_t seed)
{
	world_begin(seed, SOME);
	feed(kept, lost);
	for (int rank = 0; rank < SOME; rank++)
		for (int i = 0; i < COUNT_MAX; i++)
			kept[rank][i] = input(rank)[i] * (float)random_double() * 0x1p-10f;
	input(1)[300] = NAN;
}

static void in_place_nothing_is_different(void **state)
{
	(void)state;
	usual_call(3);
	run();
	memcpy(wanted_out, output(0), sizeof(wanted_out));
	memcpy(wanted_lost, lost, sizeof(wanted_lost));

	usual_call(3);
	w.in_place = true;
	for (int rank = 0; rank < SOME; rank++)
		w.lost[rank] = kept[rank];
	run_once();
	for (int rank = 0; rank < SOME; rank++) {
		assert_memory_equal(input(rank), wanted_out, sizeof(wanted_out));
		assert_memory_equal(kept[rank], wanted_lost[rank], sizeof(wanted_lost[rank]));
	}
}

/* What is lost does not depend on who gets the sum. */
static void each_verb_loses_the_same(void **state)
{
	(void)state;
	usual_call(4);
	run();
	memcpy(wanted_out, output(0), sizeof(wanted_out));
	memcpy(wanted_lost, lost, sizeof(wanted_lost));

	usual_call(4);
	w.options.verb = CALL_REDUCE;
	w.options.root = 2;
	run_once();
	assert_memory_equal(output(2), wanted_out, sizeof(wanted_out));
	assert_memory_equal(lost, wanted_lost, sizeof(wanted_lost));

	/* In parts of whole chunks. */
	usual_call(4);
	w.options.count = 128;
	w.options.verb = CALL_REDUCE_SCATTER;
	run_once();
	for (int rank = 0; rank < SOME; rank++) {
		assert_memory_equal(output(rank), wanted_out + (size_t)128 * rank, 128 * 4);
		assert_memory_equal(lost[rank], wanted_lost[rank], 128 * SOME * sizeof(float));
	}
}

/* Whatever part of it was done. */
static void a_call_that_fails_leaves_what_was_kept(void **state)
{
	float before[SOME][COUNT_MAX];
	struct frame sum;

	(void)state;
	for (uint32_t results = 0; results < 14; results++) {
		usual_call(5);
		memcpy(before, kept, sizeof(before));
		start();
		for (uint32_t e = 0; e < results; e++) {
			sum = sum_of(e);
			for (int rank = 0; rank < SOME; rank++)
				call_take(&w.call[rank], e, &sum.h);
		}
		sum_of(results);
		done();
		assert_memory_equal(kept, before, sizeof(before));
	}
}

/* Each root has a part of what is kept, as of all else. */
static void at_several_roots_nothing_is_different(void **state)
{
	static const enum call_verb verbs[] = { CALL_ALLREDUCE, CALL_REDUCE_SCATTER };
	const struct shards shards = { .count = 3,
				       .root = { { .share = 2 }, { .share = 1 }, { .share = 3 } } };

	(void)state;
	for (int v = 0; v < 2; v++) {
		usual_call(6);
		w.options.verb = verbs[v];
		w.options.count = v ? COUNT_MAX / SOME : COUNT_MAX;
		run_once();
		memcpy(wanted_lost, lost, sizeof(wanted_lost));
		memset(lost, 0, sizeof(lost));
		for (unsigned int root = 0; root < shards.count; root++) {
			for (int rank = 0; rank < SOME; rank++) {
				struct call_options o = w.options;

				o.in = w.in[rank];
				o.out = w.out[rank];
				o.kept = kept[rank];
				o.lost = lost[rank];
				o = shards_part(&shards, root, PAYLOAD, SOME, &o);
				w.member.rank = (uint16_t)rank;
				assert_int_equal(
					call_init(&w.call[rank], &w.member, &o, &w.guesses[rank]),
					0);
			}
			while (round_is_run())
				;
			done();
		}
		assert_memory_equal(lost, wanted_lost, sizeof(wanted_lost));
	}
}

/* --- a model */

enum {
	WEIGHTS = 128, /* two chunks */
	RANKS = 16,
	STEPS = 3000,
};

static const float learning_rate = 0.4f;
static double curvature[WEIGHTS], best[RANKS][WEIGHTS];
static float weight[WEIGHTS];

static double loss(void)
{
	double sum = 0;

	for (int i = 0; i < WEIGHTS; i++) {
		double centre = 0;

		for (int rank = 0; rank < RANKS; rank++)
			centre += best[rank][i] / RANKS;
		sum += curvature[i] * (weight[i] - centre) * (weight[i] - centre);
	}
	return sum;
}

/*
 * A quadratic whose curvatures spread over three decades, and each rank with an optimum of its own:
 * at the best weights gradients of ranks are large, and cancel. The loss at the end, by that at the
 * beginning.
 */
static double trained(enum tally_dtype dtype, bool feeds_back)
{
	double before;

	world_begin(9, RANKS);
	world_make(dtype, RANKS, WEIGHTS);
	w.options.op = TALLY_AVG;
	feed(feeds_back ? kept : NULL, feeds_back ? kept : NULL);
	memset(weight, 0, sizeof(weight));
	for (int i = 0; i < WEIGHTS; i++) {
		curvature[i] = pow(10, -1.5 + 1.5 * random_double());
		for (int rank = 0; rank < RANKS; rank++)
			best[rank][i] = 10 * random_double();
	}
	before = loss();
	for (int step = 0; step < STEPS; step++) {
		for (int rank = 0; rank < RANKS; rank++)
			for (int i = 0; i < WEIGHTS; i++)
				input(rank)[i] = (float)(2 * curvature[i] *
							 (weight[i] - best[rank][i]));
		run();
		for (int i = 0; i < WEIGHTS; i++)
			weight[i] -= learning_rate * output(0)[i];
	}
	return loss() / before;
}

static void with_feedback_a_model_is_trained_as_with_float32(void **state)
{
	double float32 = trained(TALLY_FLOAT32, false);
	double with = trained(TALLY_FLOAT32_HALVED, true);
	double without = trained(TALLY_FLOAT32_HALVED, false);

	(void)state;
	print_message("# loss after %d steps: float32 %.2e, with feedback %.2e, without %.2e\n",
		      STEPS, float32, with, without);
	assert_true(with < 2 * float32 + 1e-5);
	assert_true(without > 10 * with);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_many_calls_nothing_is_lost),
		cmocka_unit_test(no_form_loses_twice_or_nothing),
		cmocka_unit_test(in_place_nothing_is_different),
		cmocka_unit_test(each_verb_loses_the_same),
		cmocka_unit_test(a_call_that_fails_leaves_what_was_kept),
		cmocka_unit_test(at_several_roots_nothing_is_different),
		cmocka_unit_test(with_feedback_a_model_is_trained_as_with_float32),
	};

	return cmocka_run_group_tests_name("what calls lose", tests, NULL, NULL);
}
