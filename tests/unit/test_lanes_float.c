// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lanes of bfloat16, float16 and float64, against long doubles, which hold all their sums of q. */
#include <fenv.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/lanes.h"
#include "tests/unit/floats.h"
#include "tests/unit/random.h"

enum {
	WORKERS_MAX = 256,
	COUNT = 67, /* more than two tiles, and odd */
	WORDS = 2 * COUNT,
};

static const unsigned int some_workers[] = { 1, 2, 3, 4, 8, 16, 17, 64, 128, 129, 255, 256 };

static const struct type {
	enum tally_dtype dtype;
	unsigned int bits, mantissa; /* bits of a mantissa without the hidden one */
	int bias, step, scale_bias; /* a block of scale s is below 2^(step * (s - scale_bias)) */
} types[] = {
	{ TALLY_BFLOAT16, 16, 7, 127, 1, 127 },
	{ TALLY_FLOAT16, 16, 10, 15, 1, 127 },
	{ TALLY_FLOAT64, 64, 52, 1023, 9, 120 },
};

#define each(item, array)                                                                         \
	(typeof(&(array)[0]) item = (array); item < (array) + sizeof(array) / sizeof((array)[0]); \
	 item++)

static uint64_t random_state = 11;
static uint64_t contributions[WORKERS_MAX][COUNT]; /* bits */

/* --- slow, obvious versions */

static uint64_t infinity(const struct type *t)
{
	return (2 * (uint64_t)t->bias + 1) << t->mantissa;
}

static uint64_t sign(const struct type *t) { return UINT64_C(1) << (t->bits - 1); }

static bool is_finite(const struct type *t, uint64_t bits)
{
	return (bits & (sign(t) - 1)) < infinity(t);
}

/* An infinity as the number that would be next. */
static long double value(const struct type *t, uint64_t bits)
{
	uint64_t magnitude = bits & (sign(t) - 1);
	int stored = (int)(magnitude >> t->mantissa);
	long double x = (long double)(magnitude & ((UINT64_C(1) << t->mantissa) - 1));

	if (stored)
		x += (long double)(UINT64_C(1) << t->mantissa);
	x = ldexpl(x, (stored ? stored : 1) - t->bias - (int)t->mantissa);
	return bits & sign(t) ? -x : x;
}

static int headroom(unsigned int workers) { return (int)ceil(log2(workers)); }

static int slow_bits(const struct type *t, unsigned int workers)
{
	if (t->bits == 64)
		return 62 - headroom(workers);
	return 15 - headroom(workers) > (int)t->mantissa ? 15 - headroom(workers)
							 : 31 - headroom(workers);
}

static uint8_t slow_scale(const struct type *t, long double magnitude)
{
	int s = 1;

	if (magnitude == 0)
		return 0;
	while (ldexpl(1, t->step * (s - t->scale_bias)) <= magnitude)
		s++;
	return (uint8_t)s;
}

static long double slow_step(const struct type *t, uint8_t scale, unsigned int workers)
{
	return ldexpl(1, t->step * (scale - t->scale_bias) - slow_bits(t, workers));
}

/* Is it the nearest number to exact / divisor, and of two such the even one? */
static bool is_nearest(const struct type *t, uint64_t bits, long double exact, unsigned int divisor)
{
	long double off = fabsl(exact - value(t, bits) * divisor);

	if (!(bits & (sign(t) - 1)))
		return off <= value(t, 1) * divisor / 2;
	for (int way = -1; way <= 1; way += 2) {
		long double other = fabsl(exact - value(t, bits + (uint64_t)way) * divisor);

		if (bits == (infinity(t) | (bits & sign(t))) && way == 1)
			continue; /* all that is larger */
		if (off > other || (off == other && bits & 1))
			return fabsl(exact) >= value(t, infinity(t)) * divisor;
	}
	return true;
}

/* --- values */

static uint64_t random_value(const struct type *t, int pattern)
{
	uint64_t r = random_next(&random_state), bits = r & (2 * sign(t) - 1), one, first;

	one = (uint64_t)t->bias << t->mantissa;
	first = UINT64_C(1) << t->mantissa; /* the first normal number */
	switch (pattern) {
	case 0: /* any finite */
		return is_finite(t, bits) ? bits : bits & ~(infinity(t) / 2 + 1);
	case 1: /* alike */
		one -= (r >> 60 & 3) << t->mantissa;
		return (bits & (sign(t) | (first - 1))) | one;
	case 2: /* subnormals, zeros and the first normals */
		return bits & (sign(t) | (2 * first - 1));
	case 3: /* a few ones among small ones */
		return r >> 60 ? (bits & sign(t)) | ((one >> 1) + bits % (one >> 2)) : one;
	case 4: /* the largest */
		return (bits & sign(t)) | (infinity(t) - 1 - (r >> 62));
	default: /* 0 or -0 */
		return bits & sign(t);
	}
}

enum {
	PATTERNS = 6
};

static void contribute(const struct type *t, int pattern, unsigned int workers)
{
	for (unsigned int w = 0; w < workers; w++)
		for (int i = 0; i < COUNT; i++)
			contributions[w][i] = random_value(t, pattern);
}

/* As the type lies in memory. */
static void store(const struct type *t, const uint64_t *bits, size_t count, void *ret)
{
	for (size_t i = 0; i < count; i++)
		memcpy((uint8_t *)ret + i * t->bits / 8, bits + i, t->bits / 8);
}

static void load(const struct type *t, const void *array, size_t count, uint64_t *ret)
{
	memset(ret, 0, count * sizeof(*ret));
	for (size_t i = 0; i < count; i++)
		memcpy(ret + i, (const uint8_t *)array + i * t->bits / 8, t->bits / 8);
}

/* --- the lanes under test, found as a call finds them */

static const struct lane *first_lane(const struct type *t, unsigned int workers)
{
	return lane_at(lane_of_dtype(t->dtype, (uint16_t)workers));
}

static struct lane_need need_of(const struct type *t, const uint64_t *bits, size_t count,
				unsigned int workers)
{
	uint8_t array[COUNT * 8];

	store(t, bits, count, array);
	return first_lane(t, workers)->inspect(array, count, (uint16_t)workers);
}

static uint8_t common_scale(const struct type *t, unsigned int workers, size_t count)
{
	uint8_t scale = 0;

	for (unsigned int w = 0; w < workers; w++) {
		struct lane_need need = need_of(t, contributions[w], count, workers);

		scale = need.scale > scale ? need.scale : scale;
	}
	return scale;
}

struct outcome {
	uint64_t sum[WORDS];
	uint64_t out[2][COUNT]; /* of a sum, of an average */
};

static void allreduce(const struct type *t, const struct lane *l, unsigned int workers,
		      uint8_t scale, size_t count, struct outcome *ret)
{
	struct lane_terms terms = { .scale = scale, .workers = (uint16_t)workers, .divisor = 1 };
	uint8_t array[COUNT * 8];

	memset(ret, 0, sizeof(*ret));
	for (unsigned int w = 0; w < workers; w++) {
		uint64_t word[WORDS] = { 0 };

		store(t, contributions[w], count, array);
		l->pack(array, count, &terms, word);
		for (size_t i = 0; i < lane_words(l, count); i++)
			ret->sum[i] += word[i];
	}
	for (int average = 0; average < 2; average++) {
		terms.divisor = (uint16_t)(average ? workers : 1);
		l->unpack(ret->sum, count, &terms, array);
		load(t, array, count, ret->out[average]);
	}
}

static void with_everything(void (*check)(const struct type *t, unsigned int workers))
{
	for each(t, types)
		for each(workers, some_workers)
			for (int pattern = 0; pattern < PATTERNS; pattern++) {
				contribute(t, pattern, *workers);
				check(t, *workers);
			}
}

/* --- scales */

static void the_scale_is_the_smallest_that_holds_the_block(void **state)
{
	for each(t, types) {
		for (uint64_t stored = 0; stored < infinity(t) >> t->mantissa; stored++) {
			for (int n = 0; n < 8; n++) {
				uint64_t low = random_next(&random_state) >> (64 - t->mantissa);
				uint64_t x = stored << t->mantissa;
				uint64_t block[3] = { 0, 0, sign(t) };

				x |= n == 0 ? 0 : n == 1 ? (UINT64_C(1) << t->mantissa) - 1 : low;
				block[1] = x | (n & 1 ? sign(t) : 0);
				assert_int_equal(need_of(t, block, 3, 4).scale,
						 slow_scale(t, value(t, x)));
				assert_false(need_of(t, block, 3, 4).wide);
			}
		}
		assert_int_equal(need_of(t, (uint64_t[]){ 1 }, 1, 4).scale,
				 slow_scale(t, value(t, 1)));
	}
}

/* No rank asks for a scale that others take for a wrong sum. */
static void all_scales_are_of_the_lane(void **state)
{
	for each(t, types) {
		for each(workers, some_workers) {
			const struct lane *l = first_lane(t, *workers);
			uint64_t least = 1, most = infinity(t) - 1;

			assert_int_equal(need_of(t, &least, 1, *workers).scale, l->scale_min);
			assert_int_equal(need_of(t, &most, 1, *workers).scale, l->scale_max);
			assert_int_equal(lane_at(l->wide)->scale_min, l->scale_min);
			assert_int_equal(lane_at(l->wide)->scale_max, l->scale_max);
		}
	}
}

static void one_strange_element_is_seen_and_does_not_scale(void **state)
{
	for each(t, types) {
		for (int at = 0; at < COUNT; at++) {
			uint64_t strange[] = { infinity(t), infinity(t) | sign(t), infinity(t) + 1,
					       sign(t) - 1, 2 * sign(t) - 1 };
			struct lane_need before, with;

			contribute(t, 1, 1);
			contributions[0][at] = 0;
			before = need_of(t, contributions[0], COUNT, 2);
			contributions[0][at] = strange[at % 5];
			with = need_of(t, contributions[0], COUNT, 2);
			assert_true(with.wide && !before.wide && with.scale == before.scale);
		}
	}
}

/* --- sums */

/* As many elements a word as the mantissa allows, docs/protocol.md, "bfloat16 and float16". */
static void large_jobs_have_two_a_word(void **state)
{
	assert_int_equal(lane_of_dtype(TALLY_BFLOAT16, 128), TALLY_LANE_BFLOAT16);
	assert_int_equal(lane_of_dtype(TALLY_BFLOAT16, 129), TALLY_LANE_BFLOAT16_PAIRS);
	assert_int_equal(lane_of_dtype(TALLY_FLOAT16, 16), TALLY_LANE_FLOAT16);
	assert_int_equal(lane_of_dtype(TALLY_FLOAT16, 17), TALLY_LANE_FLOAT16_PAIRS);
	for each(t, types)
		for (unsigned int workers = 1; workers <= WORKERS_MAX; workers++)
			assert_true(slow_bits(t, workers) > (int)t->mantissa);
}

/*
 * All 65,536 of each short type: the largest of its block loses nothing, whatever the workers. A
 * float64 does so with two ranks, and may lose a bit with each doubling of them.
 */
static void a_value_alone_arrives_as_it_is(void **state)
{
	for each(t, types) {
		for (uint64_t n = 0; n < 1 << 16; n++) {
			unsigned int workers = some_workers[t->bits == 64 ? n % 2 : n % 12];
			uint64_t bits = t->bits == 64 ? random_value(t, (int)(n % 5)) : n;
			struct outcome o;

			if (!is_finite(t, bits))
				continue;
			for (unsigned int w = 0; w < workers; w++)
				contributions[w][0] = 0;
			contributions[workers - 1][0] = bits;
			allreduce(t, first_lane(t, workers), workers, common_scale(t, workers, 1),
				  1, &o);
			assert_true(o.out[0][0] == (bits == sign(t) ? 0 : bits));
		}
	}
}

/* Beside any other, each of the 65,536 is within the bound. */
static void pairs_of_values_are_within_the_bound(void **state)
{
	for each(t, types) {
		for (uint64_t n = 0; n < 1 << 16; n++) {
			uint64_t bits = t->bits == 64 ? random_next(&random_state) : n;
			struct outcome o;
			uint8_t scale;

			for (int i = 0; i < 4; i++)
				contributions[i / 2][i % 2] = random_value(t, (int)(n % 4));
			contributions[0][0] = is_finite(t, bits) ? bits : 0;
			scale = common_scale(t, 2, 2);
			allreduce(t, first_lane(t, 2), 2, scale, 2, &o);
			for (int i = 0; i < 2; i++) {
				long double exact = value(t, contributions[0][i]) +
						    value(t, contributions[1][i]);
				long double is = value(t, o.out[0][i]);
				long double last = ldexpl(fabsl(is), -(int)t->mantissa - 1);

				if (scale)
					last += slow_step(t, scale, 2);
				last += value(t, 1) / 2;
				assert_true(fabsl(is - exact) <= last ||
					    (o.out[0][i] & ~sign(t)) == infinity(t));
			}
		}
	}
}

static long double slow_q(const struct type *t, uint64_t bits, uint8_t scale, unsigned int workers)
{
	return rintl(value(t, bits) / slow_step(t, scale, workers));
}

static void check_rounded_sums(const struct type *t, unsigned int workers)
{
	uint8_t scale = common_scale(t, workers, COUNT);
	struct outcome o;

	allreduce(t, first_lane(t, workers), workers, scale, COUNT, &o);
	for (int i = 0; i < COUNT; i++) {
		long double q = 0, step;

		if (!scale) {
			assert_true(!o.out[0][i] && !o.out[1][i]);
			continue;
		}
		for (unsigned int w = 0; w < workers; w++)
			q += slow_q(t, contributions[w][i], scale, workers);
		step = slow_step(t, scale, workers);
		assert_true(is_nearest(t, o.out[0][i], q * step, 1));
		assert_true(is_nearest(t, o.out[1][i], q * step, workers));
	}
}

static void results_are_the_nearest_to_sums_of_q(void **state)
{
	with_everything(check_rounded_sums);
}

static void check_bound(const struct type *t, unsigned int workers)
{
	uint8_t scale = common_scale(t, workers, COUNT);
	struct outcome o;

	allreduce(t, first_lane(t, workers), workers, scale, COUNT, &o);
	for (int i = 0; i < COUNT && scale; i++) {
		long double exact = 0, bound = workers / 2.0L * slow_step(t, scale, workers);
		long double is = value(t, o.out[0][i]);

		for (unsigned int w = 0; w < workers; w++)
			exact += value(t, contributions[w][i]);
		/* The last rounding, and those of this reference. */
		bound += fmaxl(ldexpl(fabsl(is), -(int)t->mantissa - 1), value(t, 1) / 2);
		bound += ldexpl(fabsl(exact), -55);
		if ((o.out[0][i] & ~sign(t)) == infinity(t))
			assert_true(fabsl(exact) + bound >= is * (is < 0 ? -1 : 1));
		else
			assert_true(fabsl(is - exact) <= bound * (1 + 1e-9L));
	}
}

static void results_are_within_the_documented_bound(void **state) { with_everything(check_bound); }

static void check_wide(const struct type *t, unsigned int workers)
{
	const struct lane *l = first_lane(t, workers);
	uint8_t scale = common_scale(t, workers, COUNT);
	struct outcome narrow, wide;

	allreduce(t, l, workers, scale, COUNT, &narrow);
	allreduce(t, lane_at(l->wide), workers, scale, COUNT, &wide);
	assert_memory_equal(narrow.out, wide.out, sizeof(wide.out));
}

static void finite_elements_of_a_wide_block_have_the_narrow_bits(void **state)
{
	with_everything(check_wide);
}

static void nans_and_infinities_arrive_as_such(void **state)
{
	for each(t, types) {
		for (int n = 0; n < 20000; n++) {
			unsigned int workers = some_workers[n % 12];
			unsigned int kinds = (unsigned int)random_below(&random_state, 8);
			bool nan = false, plus = false, minus = false;
			uint64_t wanted = 0;
			struct outcome o;

			for (unsigned int w = 0; w < workers; w++) {
				uint32_t r = random_below(&random_state, n % 3 ? 5 : 3);
				uint64_t x = (uint64_t)t->bias << t->mantissa;

				if (r == 0 && kinds & 1) {
					x = infinity(t) + 1 + random_below(&random_state, 100);
					nan = true;
				} else if (r == 1 && kinds & 2) {
					x = infinity(t);
					plus = true;
				} else if (r == 2 && kinds & 4) {
					x = infinity(t) | sign(t);
					minus = true;
				}
				contributions[w][0] = x;
			}
			allreduce(t, lane_at(first_lane(t, workers)->wide), workers,
				  common_scale(t, workers, 1), 1, &o);
			if (nan || (plus && minus))
				wanted = infinity(t) | UINT64_C(1) << (t->mantissa - 1);
			else if (plus || minus)
				wanted = infinity(t) | (minus ? sign(t) : 0);
			if (wanted)
				assert_true(o.out[0][0] == wanted && o.out[1][0] == wanted);
			else
				assert_true(o.out[1][0] == (uint64_t)t->bias << t->mantissa);
		}
	}
}

/* --- any process, any scale byte */

static void check_environments(const struct type *t, unsigned int workers)
{
	static const int roundings[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	const struct lane *l = first_lane(t, workers);
	uint8_t scale = common_scale(t, workers, COUNT);
	struct outcome wanted, got;

	allreduce(t, l, workers, scale, COUNT, &wanted);
	for each(rounding, roundings) {
		for (int flush = 0; flush < 2; flush++) {
			assert_int_equal(fesetround(*rounding), 0);
			flush_subnormals(flush);
			assert_int_equal(common_scale(t, workers, COUNT), scale);
			allreduce(t, l, workers, scale, COUNT, &got);
			flush_subnormals(false);
			fesetround(FE_TONEAREST);
			assert_memory_equal(wanted.sum, got.sum, sizeof(got.sum));
			assert_memory_equal(wanted.out, got.out, sizeof(got.out));
		}
	}
}

static void the_float_environment_changes_no_bit(void **state)
{
	with_everything(check_environments);
}

/* The scale byte and the words come from the network. */
static void no_scale_and_no_word_is_harmful(void **state)
{
	for (unsigned int turn = 0; turn < 256 * 8; turn++) {
		struct lane_terms terms = { .scale = (uint8_t)turn, .workers = 1 + turn % 256 };

		terms.divisor = turn & 256 ? terms.workers : 1;
		for (int lane = TALLY_LANE_BFLOAT16; lane <= TALLY_LANE_FLOAT64_WIDE; lane++) {
			const struct type *t = &types[lane < TALLY_LANE_FLOAT16	  ? 0
						      : lane < TALLY_LANE_FLOAT64 ? 1
										  : 2];
			uint64_t word[WORDS];
			uint8_t array[COUNT * 8];

			contribute(t, (int)(turn % PATTERNS), 1);
			store(t, contributions[0], COUNT, array);
			lane_at((uint8_t)lane)->pack(array, COUNT, &terms, word);
			for (int i = 0; i < WORDS; i++)
				word[i] = i % 3 ? random_next(&random_state)
						: UINT64_C(1) << turn % 64;
			lane_at((uint8_t)lane)->unpack(word, COUNT, &terms, array);
		}
	}
}

/* Sums of any q by any divisor, also where the job's own ranks would not make such. */
static void any_sum_of_q_is_rounded_to_the_nearest(void **state)
{
	const struct type *t = &types[2];

	for (int n = 0; n < 200000; n++) {
		struct lane_terms terms = {
			.workers = 4,
			.divisor = 1 + (uint16_t)random_below(&random_state, 256),
			.scale = 1 + (uint8_t)random_below(&random_state, 234)
		};
		int64_t q = (int64_t)random_next(&random_state) >> random_below(&random_state, 63);
		uint64_t word = (uint64_t)q, out;

		lane_at(TALLY_LANE_FLOAT64)->unpack(&word, 1, &terms, &out);
		assert_true(is_nearest(t, out, (long double)q * slow_step(t, terms.scale, 4),
				       terms.divisor));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scale_is_the_smallest_that_holds_the_block),
		cmocka_unit_test(all_scales_are_of_the_lane),
		cmocka_unit_test(one_strange_element_is_seen_and_does_not_scale),
		cmocka_unit_test(large_jobs_have_two_a_word),
		cmocka_unit_test(a_value_alone_arrives_as_it_is),
		cmocka_unit_test(pairs_of_values_are_within_the_bound),
		cmocka_unit_test(results_are_the_nearest_to_sums_of_q),
		cmocka_unit_test(results_are_within_the_documented_bound),
		cmocka_unit_test(finite_elements_of_a_wide_block_have_the_narrow_bits),
		cmocka_unit_test(nans_and_infinities_arrive_as_such),
		cmocka_unit_test(the_float_environment_changes_no_bit),
		cmocka_unit_test(no_scale_and_no_word_is_harmful),
		cmocka_unit_test(any_sum_of_q_is_rounded_to_the_nearest),
	};

	return cmocka_run_group_tests_name("lanes of floats", tests, NULL, NULL);
}
