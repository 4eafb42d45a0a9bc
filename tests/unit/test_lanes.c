// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lanes against slow, obvious versions of themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/lanes.h"
#include "tests/unit/floats.h"

enum {
	WORKERS_MAX = 256,
	COUNT = 75, /* more than two tiles, and odd */
	WORDS = COUNT,
};

static const unsigned int some_workers[] = { 1, 2, 3, 4, 5, 8, 17, 64, 255, 256 };

#define each(item, array)                                                                         \
	(typeof(&(array)[0]) item = (array); item < (array) + sizeof(array) / sizeof((array)[0]); \
	 item++)

static float contributions[WORKERS_MAX][COUNT];

/* --- randomness: xorshift64*, the same in every run */

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 2685821657736338717u;
}

/* Of a random sign and mantissa, with 2^low <= |x| < 2^(high + 1). */
static float random_float(int low, int high)
{
	int exponent = low + (int)(random_bits() % (unsigned int)(high - low + 1));
	float mantissa = 1 + (float)(random_bits() >> 41) * 0x1p-23f;

	return ldexpf(random_bits() & 1 ? -mantissa : mantissa, exponent);
}

/* --- patterns that fill all contributions */

static float any_finite(void) { return random_float(-149, 127); }
static float alike(void) { return random_float(-3, 0); }
static float tiny_and_huge(void)
{
	return random_bits() % 16 ? random_float(-127, -125) : random_float(98, 99);
}
static float subnormal(void) { return random_float(-149, -127); }
static float around_subnormal(void) { return random_float(-140, -100); }
static float around_the_slow_path(void) { return random_float(-149, -86); }
static float signed_zero(void) { return random_bits() & 1 ? 0.f : -0.f; }
static float largest(void) { return random_bits() & 1 ? FLT_MAX : -FLT_MAX; }
static float power_of_two(void) { return random_bits() % 4 ? random_float(-9, -2) : 1; }
static float half_steps(void) { return (float)((int)(random_bits() % 4096) - 2048) * 0x1p-31f; }
static float gradient(void) { return random_bits() % 3 ? random_float(-20, -6) : 0; }

static float (*const patterns[])(void) = {
	any_finite,  alike,   tiny_and_huge, subnormal,	 around_subnormal, around_the_slow_path,
	signed_zero, largest, power_of_two,  half_steps, gradient,
};

static void contribute(float (*pattern)(void), unsigned int workers)
{
	for (unsigned int w = 0; w < workers; w++)
		for (int i = 0; i < COUNT; i++)
			contributions[w][i] = pattern();
}

/* Calls `check` with every pattern and number of workers; all contributions are filled. */
static void with_everything(void (*check)(unsigned int workers))
{
	for each(pattern, patterns) {
		for each(workers, some_workers) {
			contribute(*pattern, *workers);
			check(*workers);
		}
	}
}

/* --- the lanes under test, found as a call finds them */

static struct lane_need need_of(const float *in, size_t count)
{
	return lane_at(TALLY_LANE_FLOAT32)->inspect(in, count, 1);
}

static bool int32_is_wide(const int32_t *in, size_t count, unsigned int workers)
{
	return lane_at(TALLY_LANE_INT32)->inspect(in, count, (uint16_t)workers).wide;
}

static void pack(enum tally_lane lane, const void *in, size_t count, uint8_t scale,
		 unsigned int workers, uint64_t *word)
{
	struct lane_terms terms = { .scale = scale, .workers = (uint16_t)workers, .divisor = 1 };

	lane_at(lane)->pack(in, count, &terms, word);
}

static void unpack(enum tally_lane lane, const uint64_t *word, size_t count, uint8_t scale,
		   unsigned int workers, unsigned int divisor, void *out)
{
	struct lane_terms terms = {
		.scale = scale,
		.workers = (uint16_t)workers,
		.divisor = (uint16_t)divisor,
	};

	lane_at(lane)->unpack(word, count, &terms, out);
}

static uint8_t common_scale(unsigned int workers)
{
	uint8_t scale = 0;

	for (unsigned int w = 0; w < workers; w++) {
		struct lane_need s = need_of(contributions[w], COUNT);

		scale = s.scale > scale ? s.scale : scale;
	}
	return scale;
}

static void sum_up(enum tally_lane lane, unsigned int workers, uint8_t scale, uint64_t *sum)
{
	uint64_t word[WORDS];

	memset(sum, 0, WORDS * sizeof(*sum));
	for (unsigned int w = 0; w < workers; w++) {
		memset(word, 0, sizeof(word));
		pack(lane, contributions[w], COUNT, scale, workers, word);
		for (int i = 0; i < WORDS; i++)
			sum[i] += word[i];
	}
}

static void allreduce(unsigned int workers, unsigned int divisor, float *out)
{
	uint8_t scale = common_scale(workers);
	uint64_t sum[WORDS];

	sum_up(TALLY_LANE_FLOAT32, workers, scale, sum);
	unpack(TALLY_LANE_FLOAT32, sum, COUNT, scale, workers, divisor, out);
}

/* --- slow, obvious versions */

static int slow_bits(unsigned int workers) { return 30 - (int)ceil(log2(workers)); }

static uint8_t slow_scale(double magnitude)
{
	int s = 0;

	if (magnitude == 0)
		return 0;
	while (ldexp(1, 4 * (s - 64)) <= magnitude)
		s++;
	return (uint8_t)s;
}

static int64_t slow_q(float x, uint8_t scale, unsigned int workers)
{
	return (int64_t)rint(ldexp(x, slow_bits(workers) - 4 * (scale - 64)));
}

static double slow_step(uint8_t scale, unsigned int workers)
{
	return ldexp(1, 4 * (scale - 64) - slow_bits(workers));
}

static uint64_t slow_check(const uint64_t *word, size_t words)
{
	uint64_t check = 0;

	for (size_t i = 0; i < words; i++)
		check += (2 * i + 1) * word[i];
	return check;
}

/* --- int32 */

static void check_two_int32(int32_t a, int32_t b, int32_t c, int32_t d)
{
	const int32_t first[] = { a, c }, second[] = { b, d };
	uint64_t word, other;
	int32_t out[2];

	pack(TALLY_LANE_INT32, first, 2, 0, 1, &word);
	assert_true(word == ((uint64_t)(int64_t)c << 32) + (uint64_t)(int64_t)a);
	pack(TALLY_LANE_INT32, second, 2, 0, 1, &other);
	word += other;
	unpack(TALLY_LANE_INT32, &word, 2, 0, 1, 1, out);
	assert_int_equal(out[0], a + b);
	assert_int_equal(out[1], (int32_t)((uint32_t)c + (uint32_t)d));
}

static void two_int32_survive_every_mixture_of_signs_and_carries(void **state)
{
	static const int32_t lo[] = { -(1 << 30), -65536, -2, -1, 0, 1, 2, 65535, (1 << 30) - 1 };
	static const int32_t hi[] = { INT32_MIN, -65536, -1, 0, 1, 65535, 1 << 30, INT32_MAX };

	for each(a, lo)
		for each(b, lo)
			for each(c, hi)
				for each(d, hi)
					check_two_int32(*a, *b, *c, *d);
}

static void int32_sums_are_exact_where_none_wraps(void **state)
{
	for each(workers, some_workers) {
		uint64_t sum[WORDS] = { 0 }, word[WORDS] = { 0 };
		int32_t most = (int32_t)(INT32_MAX / *workers);
		int32_t in[COUNT], out[COUNT];
		int64_t wanted[COUNT] = { 0 };

		for (unsigned int w = 0; w < *workers; w++) {
			for (int i = 0; i < COUNT; i++) {
				in[i] = (int32_t)random_bits() % most;
				if (i % 7 < 2)
					in[i] = i % 7 ? -most : most;
				wanted[i] += in[i];
			}
			assert_false(int32_is_wide(in, COUNT, *workers));
			pack(TALLY_LANE_INT32, in, COUNT, 0, 1, word);
			for (int i = 0; i < WORDS; i++)
				sum[i] += word[i];
		}
		unpack(TALLY_LANE_INT32, sum, COUNT, 0, 1, 1, out);
		for (int i = 0; i < COUNT; i++)
			assert_true(out[i] == wanted[i]);
	}
}

static void int32_that_might_wrap_is_wide(void **state)
{
	for (int workers = 1; workers <= WORKERS_MAX; workers++) {
		int32_t most = INT32_MAX / workers, in[COUNT] = { 0 };

		for (int i = 0; i < COUNT; i++) {
			in[i] = most;
			assert_false(int32_is_wide(in, COUNT, (unsigned int)workers));
			in[i] = -most;
			assert_false(int32_is_wide(in, COUNT, (unsigned int)workers));
			in[i] = -most - 1;
			assert_true(int32_is_wide(in, COUNT, (unsigned int)workers));
			in[i] = workers > 1 ? most + 1 : INT32_MIN;
			assert_true(int32_is_wide(in, COUNT, (unsigned int)workers));
			in[i] = 0;
		}
	}
}

static void wide_int32_wraps_at_32_bits(void **state)
{
	for each(workers, some_workers) {
		uint64_t sum[WORDS] = { 0 }, word[WORDS];
		uint32_t wanted[COUNT] = { 0 };
		int32_t in[COUNT], out[COUNT];

		for (unsigned int w = 0; w < *workers; w++) {
			for (int i = 0; i < COUNT; i++) {
				in[i] = i % 3 ? (int32_t)random_bits() : INT32_MIN + (i & 1);
				wanted[i] += (uint32_t)in[i];
			}
			pack(TALLY_LANE_INT32_WIDE, in, COUNT, 0, 1, word);
			for (int i = 0; i < WORDS; i++)
				sum[i] += word[i];
		}
		unpack(TALLY_LANE_INT32_WIDE, sum, COUNT, 0, 1, 1, out);
		assert_memory_equal(out, wanted, sizeof(out));
	}
}

static void an_odd_count_fills_half_a_word_and_no_more(void **state)
{
	for (size_t count = 0; count <= COUNT; count++) {
		uint64_t word[WORDS / 2 + 2];
		int32_t in[COUNT], out[COUNT + 1];
		float floats[COUNT], back[COUNT + 1];

		for (size_t i = 0; i < count; i++)
			floats[i] = (float)(in[i] = -1 - (int32_t)i);
		memset(word, 0x5a, sizeof(word));
		memset(out, 0x5a, sizeof(out));
		memset(back, 0x5a, sizeof(back));

		pack(TALLY_LANE_INT32, in, count, 0, 1, word);
		assert_true(word[(count + 1) / 2] == UINT64_C(0x5a5a5a5a5a5a5a5a));
		if (count % 2)
			assert_true(word[count / 2] == (uint64_t)(int64_t)in[count - 1]);
		unpack(TALLY_LANE_INT32, word, count, 0, 1, 1, out);
		assert_memory_equal(in, out, count * sizeof(*in));
		assert_int_equal(out[count], 0x5a5a5a5a);

		pack(TALLY_LANE_FLOAT32, floats, count, 70, 1, word);
		assert_true(word[(count + 1) / 2] == UINT64_C(0x5a5a5a5a5a5a5a5a));
		unpack(TALLY_LANE_FLOAT32, word, count, 70, 1, 1, back);
		assert_memory_equal(floats, back, count * sizeof(*floats));
		assert_int_equal(bits_of(back[count]), 0x5a5a5a5a);
	}
}

/* --- float32: the scale */

static void the_scale_is_the_smallest_that_holds_the_block(void **state)
{
	for (uint32_t exponent = 0; exponent < 255; exponent++) {
		for (int n = 0; n < 60; n++) {
			uint32_t edges[] = { 0, 1, 0x7fffff, (uint32_t)random_bits() & 0x7fffff };
			uint32_t mantissa = n < 4 ? edges[n] : (1u << (n % 23)) - (n & 1);
			float x = float_of(exponent << 23 | mantissa);
			float block[] = { 0, -x, x / 2, -0.f };
			struct lane_need s = need_of(block, 4);

			assert_int_equal(s.scale, slow_scale(x));
			assert_false(s.wide);
			assert_true(!s.scale || (s.scale >= 27 && s.scale <= 96));
		}
	}
}

static void the_scale_of_nothing_is_zero(void **state)
{
	const float zeros[] = { 0, -0.f, 0 }, strange[] = { 0, NAN, -INFINITY };

	assert_int_equal(need_of(zeros, 0).scale, 0);
	assert_int_equal(need_of(zeros, 3).scale, 0);
	assert_false(need_of(zeros, 3).wide);
	assert_int_equal(need_of(strange, 3).scale, 0);
	assert_true(need_of(strange, 3).wide);
}

static void one_strange_element_is_seen_and_does_not_scale(void **state)
{
	const uint32_t strange[] = { 0x7f800000, 0xff800000, 0x7f800001, 0xffc00000, 0x7fffffff };

	for (size_t count = 1; count <= COUNT; count++) {
		for (size_t at = 0; at < count; at++) {
			float block[COUNT];
			struct lane_need before, with;

			for (size_t i = 0; i < count; i++)
				block[i] = i == at ? 0 : random_float(-4, 4);
			before = need_of(block, count);
			block[at] = float_of(strange[random_bits() % 5]);
			with = need_of(block, count);
			assert_false(before.wide);
			assert_true(with.wide);
			assert_int_equal(with.scale, before.scale);
		}
	}
}

/* --- float32: sums */

static void check_quantising(unsigned int workers)
{
	int own = need_of(contributions[0], COUNT).scale;

	for (int scale = own; scale <= 97 && scale <= own + 12; scale++) {
		uint64_t word[WORDS];
		int32_t q[COUNT];

		pack(TALLY_LANE_FLOAT32, contributions[0], COUNT, (uint8_t)scale, workers, word);
		unpack(TALLY_LANE_INT32, word, COUNT, 0, 1, 1, q);
		for (int i = 0; i < COUNT; i++)
			assert_true(q[i] == slow_q(contributions[0][i], (uint8_t)scale, workers));
	}
}

static void quantising_is_rounding_to_nearest_even(void **state)
{
	with_everything(check_quantising);
}

static void a_strange_element_of_a_narrow_block_goes_as_zero(void **state)
{
	for (int scale = 38; scale <= 70; scale += 32) {
		const float in[] = { float_of(0x7fffffff), 0x1p-104f,		INFINITY, -INFINITY,
				     -0x1p-105f,	   float_of(0xffc00007) };
		uint64_t word[3];
		int32_t q[6];

		pack(TALLY_LANE_FLOAT32, in, 6, (uint8_t)scale, 1, word);
		unpack(TALLY_LANE_INT32, word, 6, 0, 1, 1, q);
		assert_int_equal(q[0], 0);
		assert_int_equal(q[1], scale == 38 ? 1 << 30 : 0);
		assert_int_equal(q[2], 0);
		assert_int_equal(q[3], 0);
		assert_int_equal(q[4], scale == 38 ? -(1 << 29) : 0);
		assert_int_equal(q[5], 0);
	}
}

/* bound = workers / 2 steps, and the last rounding to float */
static void check_bound(unsigned int workers)
{
	float out[COUNT];

	allreduce(workers, 1, out);
	for (int i = 0; i < COUNT; i++) {
		long double exact = 0, bound;

		for (unsigned int w = 0; w < workers; w++)
			exact += contributions[w][i];
		bound = workers / 2.0L * slow_step(common_scale(workers), workers);
		if (isinf(out[i])) {
			assert_true(fabsl(exact) + bound > FLT_MAX);
			assert_true((out[i] > 0) == (exact > 0));
			continue;
		}
		bound += fmaxl(fabsl((long double)out[i]) * 0x1p-24L, 0x1p-150L);
		assert_true(fabsl(out[i] - exact) <= bound * (1 + 1e-9L));
	}
}

static void results_are_within_the_documented_bound(void **state) { with_everything(check_bound); }

static void check_rounded_sums(unsigned int workers)
{
	unsigned int divisors[] = { 1, workers };

	for each(divisor, divisors) {
		uint8_t scale = common_scale(workers);
		float out[COUNT];

		allreduce(workers, *divisor, out);
		for (int i = 0; i < COUNT; i++) {
			int64_t sum = 0;
			float wanted;

			for (unsigned int w = 0; w < workers && scale; w++)
				sum += slow_q(contributions[w][i], scale, workers);
			assert_true(llabs(sum) <= 1 << 30);
			wanted = (float)((double)sum *
					 (1.0 / *divisor * slow_step(scale, workers)));
			assert_int_equal(bits_of(out[i]), bits_of(wanted));
		}
	}
}

static void results_are_the_rounded_sums_of_q(void **state) { with_everything(check_rounded_sums); }

static void sums_of_extremes_fit_their_lanes(void **state)
{
	for (unsigned int workers = 1; workers <= WORKERS_MAX; workers++) {
		for (int exponent = -149; exponent <= 127; exponent++) {
			float below = nextafterf(ldexpf(1, exponent), 0);
			float block[] = {
				below, below, -below, -below, below, -below, -below, below
			};
			uint8_t scale = need_of(block, 8).scale;
			int64_t q = slow_q(below, scale, workers);
			uint64_t word[4];
			int32_t sum[8];

			pack(TALLY_LANE_FLOAT32, block, 8, scale, workers, word);
			for (int i = 0; i < 4; i++)
				word[i] *= workers;
			unpack(TALLY_LANE_INT32, word, 8, 0, 1, 1, sum);
			for (int i = 0; i < 8; i++)
				assert_true(sum[i] == (block[i] < 0 ? -q : q) * workers);
			assert_true(llabs(q * workers) <= 1 << 30);
		}
	}
}

static void the_order_of_workers_does_not_matter(void **state)
{
	for each(pattern, patterns) {
		float forth[COUNT], back[COUNT];

		contribute(*pattern, WORKERS_MAX);
		allreduce(WORKERS_MAX, 1, forth);
		for (int w = 0; w < WORKERS_MAX / 2; w++) {
			float other[COUNT];

			memcpy(other, contributions[w], sizeof(other));
			memcpy(contributions[w], contributions[WORKERS_MAX - 1 - w], sizeof(other));
			memcpy(contributions[WORKERS_MAX - 1 - w], other, sizeof(other));
		}
		allreduce(WORKERS_MAX, 1, back);
		assert_memory_equal(forth, back, sizeof(forth));
	}
}

static void zeros_of_either_sign_sum_to_plus_zero(void **state)
{
	for each(workers, some_workers) {
		float out[COUNT];

		contribute(signed_zero, *workers);
		allreduce(*workers, 1, out);
		for (int i = 0; i < COUNT; i++)
			assert_int_equal(bits_of(out[i]), 0);

		contributions[0][0] = 1;
		allreduce(*workers, 1, out);
		assert_int_equal(bits_of(out[0]), bits_of(1));
		for (int i = 1; i < COUNT; i++)
			assert_int_equal(bits_of(out[i]), 0);
	}
}

static void averages_of_equal_values_are_the_value(void **state)
{
	for each(workers, some_workers) {
		float out[COUNT];

		for (unsigned int w = 0; w < *workers; w++)
			for (int i = 0; i < COUNT; i++)
				contributions[w][i] = (float)(i - 37) / 64;
		allreduce(*workers, *workers, out);
		for (int i = 0; i < COUNT; i++)
			assert_true(out[i] == (float)(i - 37) / 64);
	}
}

static void a_sum_beyond_the_largest_float_is_infinite(void **state)
{
	float out[COUNT];

	for (int w = 0; w < 3; w++)
		for (int i = 0; i < COUNT; i++)
			contributions[w][i] = i & 1 ? -FLT_MAX : FLT_MAX;
	allreduce(3, 1, out);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(bits_of(out[i]), i & 1 ? 0xff800000 : 0x7f800000);
	allreduce(1, 1, out);
	for (int i = 0; i < COUNT; i++)
		assert_true(fabsf(out[i]) == FLT_MAX);
}

/* --- float32: the wide form */

static void check_wide_against_narrow(unsigned int workers)
{
	unsigned int divisors[] = { 1, workers };
	uint64_t narrow_sum[WORDS], wide_sum[WORDS];
	uint8_t scale = common_scale(workers);
	float narrow[COUNT], wide[COUNT];

	sum_up(TALLY_LANE_FLOAT32, workers, scale, narrow_sum);
	sum_up(TALLY_LANE_FLOAT32_WIDE, workers, scale, wide_sum);
	for each(divisor, divisors) {
		unpack(TALLY_LANE_FLOAT32, narrow_sum, COUNT, scale, workers, *divisor, narrow);
		unpack(TALLY_LANE_FLOAT32_WIDE, wide_sum, COUNT, scale, workers, *divisor, wide);
		assert_memory_equal(narrow, wide, sizeof(narrow));
	}
}

static void finite_elements_of_a_wide_block_have_the_narrow_bits(void **state)
{
	with_everything(check_wide_against_narrow);
}

/* One element: some workers have NaNs, some infinities of each sign, the rest -1.5. */
static void check_strange_sum(unsigned int workers, unsigned int nans, unsigned int pluses,
			      unsigned int minuses)
{
	const float kind[] = { NAN, INFINITY, -INFINITY, -1.5f };
	uint32_t wanted = bits_of(-1.5f * (float)workers);
	uint64_t sum = 0, word;
	float out;

	for (unsigned int w = 0; w < workers; w++) {
		int which = (w >= nans) + (w >= nans + pluses) + (w >= nans + pluses + minuses);

		pack(TALLY_LANE_FLOAT32_WIDE, &kind[which], 1, 65, workers, &word);
		sum += word;
	}
	if (nans || (pluses && minuses))
		wanted = 0x7fc00000;
	else if (pluses || minuses)
		wanted = pluses ? 0x7f800000 : 0xff800000;
	unpack(TALLY_LANE_FLOAT32_WIDE, &sum, 1, 65, workers, 1, &out);
	assert_int_equal(bits_of(out), wanted);
}

static void nans_and_infinities_arrive_as_such(void **state)
{
	static const unsigned int counts[] = { 0, 1, 2, 127, 128, 255, 256 };

	for each(workers, some_workers)
		for each(nans, counts)
			for each(pluses, counts)
				for each(minuses, counts)
					if (*nans + *pluses + *minuses <= *workers)
						check_strange_sum(*workers, *nans, *pluses,
								  *minuses);
}

static void a_wide_word_is_as_documented(void **state)
{
	const float in[] = { float_of(0xff800001), INFINITY, -INFINITY, -0x1p-30f, 1 };
	uint64_t word[5];
	float out[5];

	pack(TALLY_LANE_FLOAT32_WIDE, in, 5, 65, 1, word);
	assert_true(word[0] == UINT64_C(1) << 37);
	assert_true(word[1] == UINT64_C(1) << 46);
	assert_true(word[2] == UINT64_C(1) << 55);
	assert_true(word[3] == 0); /* a step is 2^-26 */
	assert_true(word[4] == 1 << 26);

	/* All zero but for the strange: scale 0. */
	word[3] = word[4] = 0;
	unpack(TALLY_LANE_FLOAT32_WIDE, word, 5, 0, 1, 1, out);
	assert_int_equal(bits_of(out[0]), 0x7fc00000);
	assert_true(isinf(out[1]) && out[1] > 0 && isinf(out[2]) && out[2] < 0);
	assert_int_equal(bits_of(out[3]), 0);
}

/* --- float32: any process, any scale byte */

struct everything {
	uint8_t scale;
	uint64_t narrow[WORDS], wide[WORDS];
	float sum[COUNT], average[COUNT], wide_sum[COUNT];
};

static void do_everything(unsigned int workers, struct everything *ret)
{
	ret->scale = common_scale(workers);
	sum_up(TALLY_LANE_FLOAT32, workers, ret->scale, ret->narrow);
	sum_up(TALLY_LANE_FLOAT32_WIDE, workers, ret->scale, ret->wide);
	unpack(TALLY_LANE_FLOAT32, ret->narrow, COUNT, ret->scale, workers, 1, ret->sum);
	unpack(TALLY_LANE_FLOAT32, ret->narrow, COUNT, ret->scale, workers, 3, ret->average);
	unpack(TALLY_LANE_FLOAT32_WIDE, ret->wide, COUNT, ret->scale, workers, 1, ret->wide_sum);
}

static void check_float_environments(unsigned int workers)
{
	static const int roundings[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	static struct everything wanted, got;

	do_everything(workers, &wanted);
	for each(rounding, roundings) {
		for (int flush = 0; flush < 2; flush++) {
			assert_int_equal(fesetround(*rounding), 0);
			flush_subnormals(flush);
			do_everything(workers, &got);
			flush_subnormals(false);
			fesetround(FE_TONEAREST);
			assert_memory_equal(&wanted, &got, sizeof(got));
		}
	}
}

static void the_float_environment_changes_no_bit(void **state)
{
	with_everything(check_float_environments);
}

/* The scale byte and the words come from the network. */
static void no_scale_and_no_word_is_harmful(void **state)
{
	for (int scale = 0; scale < 256; scale++) {
		uint64_t word[WORDS];
		float out[COUNT];

		contribute(any_finite, 1);
		pack(TALLY_LANE_FLOAT32, contributions[0], COUNT, (uint8_t)scale, 256, word);
		pack(TALLY_LANE_FLOAT32_WIDE, contributions[0], COUNT, (uint8_t)scale, 256, word);
		for (int i = 0; i < WORDS; i++)
			word[i] = i ? random_bits() : UINT64_C(1) << 31;
		unpack(TALLY_LANE_FLOAT32, word, COUNT, (uint8_t)scale, 256, 256, out);
		unpack(TALLY_LANE_FLOAT32_WIDE, word, COUNT, (uint8_t)scale, 256, 256, out);
	}
}

/* --- the check word */

static void the_check_is_the_weighted_sum(void **state)
{
	uint64_t word[424];

	for (size_t i = 0; i < 424; i++)
		word[i] = random_bits();
	for (size_t words = 0; words <= 424; words++) {
		assert_true(lanes_check(word, words) == slow_check(word, words));
	}
}

static void checks_add_like_words(void **state)
{
	for (size_t words = 0; words <= 424; words += 8) {
		uint64_t a[424], b[424], sum[424];

		for (size_t i = 0; i < words; i++) {
			a[i] = random_bits();
			b[i] = random_bits();
			sum[i] = a[i] + b[i];
		}
		assert_true(lanes_check(sum, words) ==
			    lanes_check(a, words) + lanes_check(b, words));
	}
}

static void the_check_sees_every_flipped_bit_and_swapped_neighbours(void **state)
{
	uint64_t word[176], check;

	for (size_t i = 0; i < 176; i++)
		word[i] = random_bits();
	check = lanes_check(word, 176);
	for (size_t i = 0; i < 176; i++) {
		uint64_t kept = word[i];

		for (int bit = 0; bit < 64; bit++) {
			word[i] ^= UINT64_C(1) << bit;
			assert_true(lanes_check(word, 176) != check);
			word[i] = kept;
		}
		if (!i)
			continue;
		word[i] = word[i - 1];
		word[i - 1] = kept;
		assert_true(lanes_check(word, 176) != check);
		word[i - 1] = word[i];
		word[i] = kept;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_int32_survive_every_mixture_of_signs_and_carries),
		cmocka_unit_test(int32_sums_are_exact_where_none_wraps),
		cmocka_unit_test(int32_that_might_wrap_is_wide),
		cmocka_unit_test(wide_int32_wraps_at_32_bits),
		cmocka_unit_test(an_odd_count_fills_half_a_word_and_no_more),
		cmocka_unit_test(the_scale_is_the_smallest_that_holds_the_block),
		cmocka_unit_test(the_scale_of_nothing_is_zero),
		cmocka_unit_test(one_strange_element_is_seen_and_does_not_scale),
		cmocka_unit_test(quantising_is_rounding_to_nearest_even),
		cmocka_unit_test(a_strange_element_of_a_narrow_block_goes_as_zero),
		cmocka_unit_test(results_are_within_the_documented_bound),
		cmocka_unit_test(results_are_the_rounded_sums_of_q),
		cmocka_unit_test(sums_of_extremes_fit_their_lanes),
		cmocka_unit_test(the_order_of_workers_does_not_matter),
		cmocka_unit_test(zeros_of_either_sign_sum_to_plus_zero),
		cmocka_unit_test(averages_of_equal_values_are_the_value),
		cmocka_unit_test(a_sum_beyond_the_largest_float_is_infinite),
		cmocka_unit_test(finite_elements_of_a_wide_block_have_the_narrow_bits),
		cmocka_unit_test(nans_and_infinities_arrive_as_such),
		cmocka_unit_test(a_wide_word_is_as_documented),
		cmocka_unit_test(the_float_environment_changes_no_bit),
		cmocka_unit_test(no_scale_and_no_word_is_harmful),
		cmocka_unit_test(the_check_is_the_weighted_sum),
		cmocka_unit_test(checks_add_like_words),
		cmocka_unit_test(the_check_sees_every_flipped_bit_and_swapped_neighbours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
