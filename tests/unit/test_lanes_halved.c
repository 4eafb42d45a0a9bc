// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Floats in 16 bits, and what they lose, against long doubles, which hold all of it exactly but
 * what is far below a grain.
 */
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
	WORKERS_MAX = 128,
	COUNT = 67, /* more than two tiles, and odd */
	GRAIN_BITS = 24,
	PATTERNS = 8,
};

static const unsigned int some_workers[] = { 1, 2, 3, 4, 8, 16, 17, 64, 100, 128 };

#define each(item, array)                                                                         \
	(typeof(&(array)[0]) item = (array); item < (array) + sizeof(array) / sizeof((array)[0]); \
	 item++)

static uint64_t random_state = 5;
static float in[WORKERS_MAX][COUNT], kept[WORKERS_MAX][COUNT];

static const struct lane *narrow(void) { return lane_at(TALLY_LANE_FLOAT32_HALVED); }

static const struct lane *wide(void) { return lane_at(TALLY_LANE_FLOAT32_HALVED_WIDE); }

/* --- slow, obvious versions */

static int slow_bits(unsigned int workers) { return 15 - (int)ceil(log2(workers)); }

static long double slow_step(uint8_t scale, unsigned int workers)
{
	return ldexpl(1, scale - 126 - slow_bits(workers));
}

/* The smallest such that `most` is no more than 2^bits - 1 steps. */
static uint8_t slow_scale(long double most, unsigned int workers)
{
	long double steps = (long double)(1 << slow_bits(workers)) - 1;
	uint8_t scale = 1;

	while (scale < UINT8_MAX && steps * slow_step(scale, workers) < most)
		scale++;
	return most > 0 ? scale : 0;
}

/* Whole grains, as of a value and of what was kept. */
static long double slow_grains(float x, float old, uint8_t scale, unsigned int workers)
{
	long double grain = ldexpl(slow_step(scale, workers), -GRAIN_BITS);

	return rintl((long double)x / grain) + rintl((long double)old / grain);
}

static long double slow_q(float x, float old, uint8_t scale, unsigned int workers)
{
	return rintl(ldexpl(slow_grains(x, old, scale, workers), -GRAIN_BITS));
}

/* Is no other float nearer to exact / divisor? */
static bool is_nearest(float x, long double exact, unsigned int divisor)
{
	long double off = fabsl(exact - (long double)x * divisor);
	float beside[] = { nextafterf(x, INFINITY), nextafterf(x, -INFINITY) };

	if (isinf(x))
		return fabsl(exact) >= ldexpl(0x1.ffffffp127L, 0) * divisor;
	for each(other, beside)
		if (isfinite(*other) && fabsl(exact - (long double)*other * divisor) < off)
			return false;
	return true;
}

/* --- values */

static float of_bits(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static int low_exponent; /* of a block, with which results or what is lost may be subnormal */

static float random_value(int pattern)
{
	uint64_t r = random_next(&random_state);
	float sign = r & 1 ? -1 : 1;

	switch (pattern) {
	case 0: /* any finite */
		return of_bits((r >> 23 & 255) == 255 ? 0 : (uint32_t)r);
	case 1: /* alike */
		return sign * (float)(1 + (double)(r >> 40) * 0x1p-24);
	case 2: /* subnormals and zeros */
		return sign * of_bits(r >> 32 & (r & 2 ? 0x7fffff : 7));
	case 3: /* a few large ones among small ones */
		return sign * (r >> 60 ? 0x1p-9f : 1.f) * (float)(r >> 40 & 0xffff) * 0x1p-16f;
	case 4: /* the largest */
		return sign * of_bits(0x7f7fffff - (r >> 60));
	case 5: /* at powers of two, and halves of steps below */
		return sign * (1 - ldexpf((float)(r >> 40 & 3), -8 - (int)(r >> 50 & 15)));
	case 6: /* subnormals beside values whose steps are none, or just so */
		return sign * (r >> 61 ? of_bits(r >> 32 & 0x7fffff) : ldexpf(1, low_exponent));
	default: /* 0 or -0 */
		return sign * 0.f;
	}
}

/* What is kept: as much as calls leave, as much as the values, or nothing. */
static void contribute(int pattern, unsigned int workers)
{
	static const float part[] = { 0x1p-10f, 0.5f, 0 };

	low_exponent = -80 - (int)random_below(&random_state, 45);
	for (unsigned int w = 0; w < workers; w++)
		for (int i = 0; i < COUNT; i++) {
			in[w][i] = random_value(pattern);
			kept[w][i] = random_value(pattern) * part[w % 3];
		}
}

static void with_everything(void (*check)(unsigned int workers))
{
	for each(workers, some_workers)
		for (int pattern = 0; pattern < PATTERNS; pattern++) {
			contribute(pattern, *workers);
			check(*workers);
		}
}

/* --- the lanes under test */

static struct lane_need need_of(const float *x, const float *old, size_t count,
				unsigned int workers)
{
	return narrow()->feedback->inspect(x, old, count, (uint16_t)workers);
}

static uint8_t common_scale(unsigned int workers, bool feeds_back)
{
	uint8_t scale = 0;

	for (unsigned int w = 0; w < workers; w++) {
		struct lane_need n = need_of(in[w], feeds_back ? kept[w] : NULL, COUNT, workers);

		scale = n.scale > scale ? n.scale : scale;
	}
	return scale;
}

struct outcome {
	uint64_t sum[COUNT];
	float out[2][COUNT]; /* of a sum, of an average */
	float lost[WORKERS_MAX][COUNT];
};

static void allreduce(const struct lane *l, unsigned int workers, uint8_t scale, bool feeds_back,
		      struct outcome *ret)
{
	struct lane_terms terms = { .scale = scale, .workers = (uint16_t)workers, .divisor = 1 };

	memset(ret, 0, sizeof(*ret));
	for (unsigned int w = 0; w < workers; w++) {
		const float *old = feeds_back ? kept[w] : NULL;
		uint64_t word[COUNT] = { 0 };

		l->feedback->pack(in[w], old, COUNT, &terms, word);
		for (size_t i = 0; i < lane_words(l, COUNT); i++)
			ret->sum[i] += word[i];
		l->feedback->lose(in[w], old, COUNT, &terms, ret->lost[w]);
	}
	for (int average = 0; average < 2; average++) {
		terms.divisor = (uint16_t)(average ? workers : 1);
		l->unpack(ret->sum, COUNT, &terms, ret->out[average]);
	}
}

/* --- scales */

static void check_scale(unsigned int workers)
{
	for (int i = 0; i + 1 < COUNT; i++) {
		float old[] = { 0, kept[0][i] };
		long double largest = fmaxl(fabsl(in[0][i]), fabsl(in[0][i + 1])), both;

		assert_int_equal(need_of(in[0] + i, NULL, 2, workers).scale,
				 slow_scale(largest, workers));
		both = largest + fabsl(old[1]);
		assert_in_range(need_of(in[0] + i, old, 2, workers).scale,
				slow_scale(both, workers),
				slow_scale(both * (1 + 0x1p-23L), workers));
	}
}

static void the_scale_is_the_smallest_that_holds_the_block(void **state)
{
	float most = of_bits(0x7f7fffff), least = of_bits(1);

	for (int turn = 0; turn < 20; turn++)
		with_everything(check_scale);
	for each(workers, some_workers) {
		float edge = ldexpf((float)((1 << slow_bits(*workers)) - 1), 3);
		float above = nextafterf(edge, INFINITY);

		assert_int_equal(need_of(&edge, NULL, 1, *workers).scale,
				 slow_bits(*workers) + 3 + 126);
		assert_int_equal(need_of(&above, NULL, 1, *workers).scale,
				 slow_bits(*workers) + 4 + 126);
		for (int down = 30; down < 120; down++)
			assert_int_equal(
				need_of(&edge, &(float){ ldexpf(edge, -down) }, 1, *workers).scale,
				slow_bits(*workers) + 4 + 126);
		assert_int_equal(need_of(&most, &most, 1, *workers).scale, narrow()->scale_max);
		assert_int_equal(need_of(&most, NULL, 1, *workers).scale, narrow()->scale_max);
		assert_int_equal(need_of(&least, NULL, 1, *workers).scale, narrow()->scale_min);
		assert_int_equal(need_of(&(float){ 0 }, NULL, 1, *workers).scale, 0);
	}
}

static void strange_values_ask_for_the_wide_form(void **state)
{
	static const float strange[] = { INFINITY, -INFINITY, NAN };

	contribute(1, 1);
	for each(x, strange) {
		for (int at = 0; at < COUNT; at++) {
			float mine[COUNT], old[COUNT];
			struct lane_need before = need_of(in[0], kept[0], COUNT, 4);

			memcpy(mine, in[0], sizeof(mine));
			memcpy(old, kept[0], sizeof(old));
			mine[at] = *x;
			assert_true(need_of(mine, old, COUNT, 4).wide && !before.wide);
			old[at] = *x;
			assert_true(need_of(in[0], old, COUNT, 4).wide);
			mine[at] = old[at] = 0;
			assert_true(need_of(mine, old, COUNT, 4).scale <= before.scale);
		}
	}
}

/* 8 of 16 bits are left to each of 128 ranks. */
static void large_jobs_have_none(void **state)
{
	assert_int_equal(lane_of_dtype(TALLY_FLOAT32_HALVED, 128), TALLY_LANE_FLOAT32_HALVED);
	assert_int_equal(lane_of_dtype(TALLY_FLOAT32_HALVED, 129), TALLY_LANE_NONE);
	assert_int_equal(lane_of_dtype(TALLY_FIXED(TALLY_FLOAT32_HALVED, 3), 2), TALLY_LANE_NONE);
}

/* --- sums */

static void check_sums(unsigned int workers)
{
	for (int feeds_back = 0; feeds_back < 2; feeds_back++) {
		uint8_t scale = common_scale(workers, feeds_back);
		struct outcome o;

		allreduce(narrow(), workers, scale, feeds_back, &o);
		for (int i = 0; i < COUNT; i++) {
			long double q = 0, step = slow_step(scale, workers);

			for (unsigned int w = 0; w < workers && scale; w++)
				q += slow_q(in[w][i], feeds_back ? kept[w][i] : 0, scale, workers);
			assert_true(fabsl(q) <= INT16_MAX);
			assert_true(is_nearest(o.out[0][i], q * step, 1));
			assert_true(is_nearest(o.out[1][i], q * step, workers));
		}
	}
}

static void results_are_the_nearest_to_sums_of_q(void **state) { with_everything(check_sums); }

/* An infinity is all that is too large for a float. */
static long double off_by(float x, long double exact)
{
	return isinf(x) ? fmaxl(0x1p128L - fabsl(exact), 0) : fabsl(x - exact);
}

/* As docs/protocol.md, "Scales", has it, by the largest magnitude M. */
static void check_bound(unsigned int workers)
{
	uint8_t scale = common_scale(workers, false);
	long double largest = 0, bound;
	struct outcome o;

	allreduce(narrow(), workers, scale, false, &o);
	for (unsigned int w = 0; w < workers; w++)
		for (int i = 0; i < COUNT; i++)
			largest = fmaxl(largest, fabsl(in[w][i]));
	bound = workers * fmaxl(largest, 0x1p-126L) / ((1 << slow_bits(workers)) - 1);
	for (int i = 0; i < COUNT; i++) {
		long double exact = 0;

		for (unsigned int w = 0; w < workers; w++)
			exact += in[w][i];
		assert_true(off_by(o.out[0][i], exact) <=
			    bound + fabsl(exact) * 0x1p-24L + 0x1p-150L);
		exact /= workers;
		assert_true(off_by(o.out[1][i], exact) <=
			    bound / workers + fabsl(exact) * 0x1p-24L + 0x1p-150L);
	}
}

static void results_are_within_the_documented_bound(void **state) { with_everything(check_bound); }

static void check_wide(unsigned int workers)
{
	for (int feeds_back = 0; feeds_back < 2; feeds_back++) {
		uint8_t scale = common_scale(workers, feeds_back);
		struct outcome one, other;

		allreduce(narrow(), workers, scale, feeds_back, &one);
		allreduce(wide(), workers, scale, feeds_back, &other);
		assert_memory_equal(one.out, other.out, sizeof(other.out));
		assert_memory_equal(one.lost, other.lost, sizeof(other.lost));
	}
}

static void finite_elements_of_a_wide_block_have_the_narrow_bits(void **state)
{
	with_everything(check_wide);
}

/* Garbage that was kept spoils no other element, not even those in its word. */
static void sums_fit_whatever_was_kept(void **state)
{
	for (int turn = 0; turn < 200; turn++) {
		unsigned int workers = some_workers[turn % 10];
		struct outcome o;

		contribute(4, workers);
		for (unsigned int w = 0; w < workers; w++)
			for (int i = 0; i < COUNT; i++) {
				in[w][i] = i % 2 ? 1 : fabsf(in[w][i]);
				kept[w][i] = i % 2 ? 0 : fabsf(in[w][i]);
			}
		allreduce(narrow(), workers, common_scale(workers, true), true, &o);
		for (int i = 0; i < COUNT; i++)
			assert_true(i % 2 ? o.out[0][i] == 0 : isinf(o.out[0][i]));
		for (unsigned int w = 0; w < workers; w++)
			for (int i = 0; i < COUNT; i++)
				assert_true(isfinite(o.lost[w][i]));
	}
}

/* --- what is lost */

/* In grains: what was given is q and what was lost. Nothing else is gone. */
static void check_lost(unsigned int workers)
{
	uint8_t scale = common_scale(workers, true);
	long double grain = ldexpl(slow_step(scale, workers), -GRAIN_BITS);
	struct outcome o;

	allreduce(narrow(), workers, scale, true, &o);
	for (unsigned int w = 0; w < workers; w++) {
		for (int i = 0; i < COUNT; i++) {
			long double all, rest;

			if (!scale) {
				assert_true(o.lost[w][i] == 0);
				continue;
			}
			all = slow_grains(in[w][i], kept[w][i], scale, workers);
			rest = all -
			       ldexpl(slow_q(in[w][i], kept[w][i], scale, workers), GRAIN_BITS);
			assert_true(fabsl(rest) <= 1 << (GRAIN_BITS - 1));
			assert_true(o.lost[w][i] == (float)(rest * grain));
		}
	}
}

static void what_is_not_sent_is_lost_and_nothing_else(void **state) { with_everything(check_lost); }

static void check_nothing_kept(unsigned int workers)
{
	uint8_t scale = common_scale(workers, false);
	struct outcome with, without;

	memset(kept, 0, sizeof(kept));
	assert_int_equal(common_scale(workers, true), scale);
	allreduce(narrow(), workers, scale, true, &with);
	allreduce(narrow(), workers, scale, false, &without);
	assert_memory_equal(&with, &without, sizeof(with));
	for (unsigned int w = 0; w < workers; w++) {
		struct lane_terms terms = { .scale = scale, .workers = workers, .divisor = 1 };
		uint64_t plain[COUNT] = { 0 }, fed[COUNT] = { 0 };

		narrow()->pack(in[w], COUNT, &terms, plain);
		narrow()->feedback->pack(in[w], kept[w], COUNT, &terms, fed);
		assert_memory_equal(plain, fed, sizeof(plain));
		assert_int_equal(narrow()->inspect(in[w], COUNT, (uint16_t)workers).scale,
				 need_of(in[w], kept[w], COUNT, workers).scale);
	}
}

static void with_nothing_kept_all_is_as_without_feedback(void **state)
{
	for (int turn = 0; turn < 20; turn++)
		with_everything(check_nothing_kept);
}

/* One rank's NaN or infinity, in its values or in what it kept. */
static void a_strange_element_loses_what_was_kept_and_no_more(void **state)
{
	static const struct {
		float in, kept, out, lost;
	} cases[] = {
		{ INFINITY, 0x1p-9f, INFINITY, 0x1p-9f },
		{ -INFINITY, INFINITY, -INFINITY, 0 },
		{ NAN, 0x1p-9f, NAN, 0x1p-9f },
		{ 1, INFINITY, INFINITY, 0 },
		{ 1, NAN, NAN, 0 },
	};
	struct lane_terms terms = { .scale = 128, .workers = 4, .divisor = 4 };

	for each(c, cases) {
		float x[2] = { c->in, 0.25f }, old[2] = { c->kept, 0x1p-13f }, lost[2], out[2];
		uint64_t word[2];

		wide()->feedback->pack(x, old, 2, &terms, word);
		wide()->feedback->lose(x, old, 2, &terms, lost);
		wide()->unpack(word, 2, &terms, out);
		assert_true(lost[0] == c->lost);
		assert_true(isnan(c->out) ? isnan(out[0]) : out[0] == c->out);
		assert_true(lost[1] == 0x1p-13f && out[1] == 0x1p-4f);
	}
}

/* What was kept may be where what is lost goes. */
static void check_in_place(unsigned int workers)
{
	uint8_t scale = common_scale(workers, true);
	struct lane_terms terms = { .scale = scale, .workers = (uint16_t)workers, .divisor = 1 };
	struct outcome o;

	allreduce(narrow(), workers, scale, true, &o);
	for (unsigned int w = 0; w < workers; w++) {
		narrow()->feedback->lose(in[w], kept[w], COUNT, &terms, kept[w]);
		assert_memory_equal(kept[w], o.lost[w], sizeof(kept[w]));
	}
}

static void what_is_lost_may_take_the_place_of_what_was_kept(void **state)
{
	with_everything(check_in_place);
}

/* --- any process, any scale byte */

static void check_environments(unsigned int workers)
{
	static const int roundings[] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
	uint8_t scale = common_scale(workers, true);
	struct outcome wanted, got;

	allreduce(narrow(), workers, scale, true, &wanted);
	for each(rounding, roundings) {
		for (int flush = 0; flush < 2; flush++) {
			assert_int_equal(fesetround(*rounding), 0);
			flush_subnormals(flush);
			assert_int_equal(common_scale(workers, true), scale);
			allreduce(narrow(), workers, scale, true, &got);
			flush_subnormals(false);
			fesetround(FE_TONEAREST);
			assert_memory_equal(&wanted, &got, sizeof(got));
		}
	}
}

static void the_float_environment_changes_no_bit(void **state)
{
	for (int turn = 0; turn < 5; turn++)
		with_everything(check_environments);
}

/* The scale byte and the words come from the network. */
static void no_scale_and_no_word_is_harmful(void **state)
{
	const struct lane *lanes[] = { narrow(), wide() };

	for (unsigned int turn = 0; turn < 256 * 8; turn++) {
		struct lane_terms terms = { .scale = (uint8_t)turn, .workers = 1 + turn % 128 };
		float x[COUNT], old[COUNT], lost[COUNT];
		uint64_t word[COUNT];

		terms.divisor = turn & 256 ? terms.workers : 1;
		for (int i = 0; i < COUNT; i++) {
			x[i] = of_bits((uint32_t)random_next(&random_state));
			old[i] = of_bits((uint32_t)random_next(&random_state));
		}
		for each(l, lanes) {
			(*l)->feedback->pack(x, turn & 512 ? old : NULL, COUNT, &terms, word);
			(*l)->feedback->lose(x, turn & 512 ? old : NULL, COUNT, &terms, lost);
			for (int i = 0; i < COUNT; i++)
				word[i] = i % 3 ? random_next(&random_state)
						: UINT64_C(1) << turn % 64;
			(*l)->unpack(word, COUNT, &terms, x);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_scale_is_the_smallest_that_holds_the_block),
		cmocka_unit_test(strange_values_ask_for_the_wide_form),
		cmocka_unit_test(large_jobs_have_none),
		cmocka_unit_test(results_are_the_nearest_to_sums_of_q),
		cmocka_unit_test(results_are_within_the_documented_bound),
		cmocka_unit_test(finite_elements_of_a_wide_block_have_the_narrow_bits),
		cmocka_unit_test(sums_fit_whatever_was_kept),
		cmocka_unit_test(what_is_not_sent_is_lost_and_nothing_else),
		cmocka_unit_test(with_nothing_kept_all_is_as_without_feedback),
		cmocka_unit_test(a_strange_element_loses_what_was_kept_and_no_more),
		cmocka_unit_test(what_is_lost_may_take_the_place_of_what_was_kept),
		cmocka_unit_test(the_float_environment_changes_no_bit),
		cmocka_unit_test(no_scale_and_no_word_is_harmful),
	};

	return cmocka_run_group_tests_name("floats in 16 bits", tests, NULL, NULL);
}
