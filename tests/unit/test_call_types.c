// SPDX-License-Identifier: GPL-2.0-only
/* Whole calls of every type, by all ranks (calls_world.h). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/call.h"
#include "tests/unit/calls_world.h"
#include "tests/unit/random.h"

enum {
	TURNS = 600,
};

/* --- integers */

static const struct integer {
	enum tally_dtype dtype;
	unsigned int bits;
	bool is_signed;
} integers[] = {
	{ TALLY_INT8, 8, true },     { TALLY_UINT8, 8, false },	  { TALLY_INT16, 16, true },
	{ TALLY_UINT16, 16, false }, { TALLY_INT32, 32, true },	  { TALLY_UINT32, 32, false },
	{ TALLY_INT64, 64, true },   { TALLY_UINT64, 64, false },
};

static __int128 value(const struct integer *t, uint64_t x)
{
	unsigned int shift = 64 - t->bits;

	return t->is_signed ? (__int128)((int64_t)(x << shift) >> shift)
			    : (__int128)(x << shift >> shift);
}

static __int128 value_at(const struct integer *t, const uint8_t *array, size_t i)
{
	uint64_t x = 0;

	memcpy(&x, array + i * t->bits / 8, t->bits / 8);
	return value(t, x);
}

/* Some chunks have small values, some such that sums wrap. */
static void integers_make(const struct integer *t)
{
	for (uint16_t rank = 0; rank < w.member.workers; rank++)
		for (size_t i = 0; i < w.options.count; i++) {
			uint64_t x = random_next(&w.random);

			if (i / 64 % 3)
				x = (uint64_t)(value(t, x) / (w.member.workers * 2));
			memcpy(w.in[rank] + i * t->bits / 8, &x, t->bits / 8);
		}
}

static void integers_are_right(const struct integer *t)
{
	for (size_t i = 0; i < w.options.count; i++) {
		__int128 sum = 0;

		for (uint16_t rank = 0; rank < w.member.workers; rank++)
			sum += value_at(t, w.in[rank], i);
		if (t->bits == 64)
			sum = value(t, (uint64_t)sum);
		if (w.options.op == TALLY_AVG)
			sum /= w.member.workers;
		assert_true(value_at(t, w.out[0], i) == value(t, (uint64_t)sum));
	}
}

static void calls_of_integers_are_exact(void **state)
{
	static const uint16_t workers[] = { 1, 2, 3, 5, 8, 127, 128, 255, 256 };

	(void)state;
	w.random = 1;
	seal_begin_run(&w.seal, &(struct tally_key){ { 1, 2 } }, 3);
	for (int turn = 0; turn < TURNS; turn++) {
		const struct integer *t = &integers[turn % 8];
		uint16_t n = workers[turn < TURNS * 3 / 4 ? turn / 8 % 5 : turn / 8 % 9];

		world_make(t->dtype, n, random_below(&w.random, n > 8 ? 200 : COUNT_MAX));
		w.options.op = turn & 16 ? TALLY_AVG : TALLY_SUM;
		integers_make(t);
		run();
		integers_are_right(t);
	}
}

/* Eight, four, two and one element a word: what a packet of 128 bytes has of each. */
static void a_chunk_has_as_many_elements_as_fit(void **state)
{
	static const uint32_t wanted[] = { 128, 128, 64, 64, 32, 32, 16, 16 };

	(void)state;
	for (int i = 0; i < 8; i++) {
		world_make(integers[i].dtype, 4, 1);
		assert_int_equal(call_chunk_elements(PAYLOAD, 4, &w.options), wanted[i]);
	}
	world_make(TALLY_INT8, 128, 1);
	assert_int_equal(call_chunk_elements(PAYLOAD, 128, &w.options), 64);
	w.options.verb = CALL_BROADCAST;
	assert_int_equal(call_chunk_elements(PAYLOAD, 128, &w.options), 128);
}

/* --- floats: as the lanes have it, chunk by chunk (test_lanes_float.c looks at these) */

static const struct floating {
	enum tally_dtype dtype;
	unsigned int bits, mantissa, bias;
} floats[] = {
	{ TALLY_FLOAT32, 32, 23, 127 },
	{ TALLY_BFLOAT16, 16, 7, 127 },
	{ TALLY_FLOAT16, 16, 10, 15 },
	{ TALLY_FLOAT64, 64, 52, 1023 },
};

/* Of magnitudes that vary from chunk to chunk; some are zero, some not finite. */
static void floats_make(const struct floating *t)
{
	uint64_t sign = UINT64_C(1) << (t->bits - 1), one = (uint64_t)t->bias << t->mantissa;

	for (uint16_t rank = 0; rank < w.member.workers; rank++)
		for (size_t i = 0; i < w.options.count; i++) {
			uint64_t r = random_next(&w.random), x = r & (one | (one >> 1) | sign);

			if (i / 48 % 5 == 1)
				x = r & sign;
			if (i / 48 % 5 == 2)
				x = r & (sign | (sign - 1)) &
				    (r >> 40 & 7 ? one | sign : UINT64_MAX);
			memcpy(w.in[rank] + i * t->bits / 8, &x, t->bits / 8);
		}
}

static void chunk_is_right(size_t first, size_t count)
{
	const struct lane *l = lane_at(w.call[0].lane);
	size_t at = first * l->element_bytes;
	struct lane_terms terms = { .workers = w.member.workers };
	uint64_t word[PAYLOAD], sum[PAYLOAD] = { 0 };
	uint8_t out[PAYLOAD];
	bool wide = false;

	terms.divisor = w.options.op == TALLY_AVG ? terms.workers : 1;
	for (uint16_t rank = 0; rank < terms.workers; rank++) {
		struct lane_need need = l->inspect(w.in[rank] + at, count, terms.workers);

		terms.scale = largest(terms.scale, need.scale);
		wide |= need.wide;
	}
	if (wide)
		l = lane_at(l->wide);
	for (uint16_t rank = 0; rank < terms.workers; rank++) {
		l->pack(w.in[rank] + at, count, &terms, word);
		for (size_t i = 0; i < lane_words(l, count); i++)
			sum[i] += word[i];
	}
	l->unpack(sum, count, &terms, out);
	assert_memory_equal(w.out[0] + at, out, count * l->element_bytes);
}

static void calls_of_floats_are_as_the_lanes_have_it(void **state)
{
	static const uint16_t workers[] = { 1, 2, 3, 5, 16, 17, 128, 129, 256 };

	(void)state;
	w.random = 2;
	seal_begin_run(&w.seal, &(struct tally_key){ { 1, 2 } }, 3);
	for (int turn = 0; turn < TURNS; turn++) {
		const struct floating *t = &floats[turn % 4];
		uint16_t n = workers[turn < TURNS * 3 / 4 ? turn / 4 % 4 : turn / 4 % 9];
		size_t chunk;

		world_make(t->dtype, n, random_below(&w.random, n > 8 ? 200 : COUNT_MAX));
		w.options.op = turn & 16 ? TALLY_AVG : TALLY_SUM;
		floats_make(t);
		run();
		chunk = call_chunk_elements(PAYLOAD, n, &w.options);
		for (size_t at = 0; at < w.options.count; at += chunk)
			chunk_is_right(at,
				       w.options.count - at < chunk ? w.options.count - at : chunk);
	}
}

/* What all types guess of a call that none was like. */
static void a_first_call_of_values_below_one_takes_one_round(void **state)
{
	static const enum tally_dtype types[] = { TALLY_FLOAT32, TALLY_BFLOAT16, TALLY_FLOAT16,
						  TALLY_FLOAT64, TALLY_FLOAT32_HALVED };
	static const struct {
		double float64;
		float float32;
		uint16_t bfloat16, float16;
	} most = { 0.875, 0.875, 0x3f60, 0x3b00 };

	(void)state;
	for (int i = 0; i < 5; i++) {
		const void *x[] = { &most.float32, &most.bfloat16, &most.float16, &most.float64,
				    &most.float32 };

		world_make(types[i], 4, COUNT_MAX);
		for (size_t k = 0; k < COUNT_MAX; k++) {
			size_t bytes = call_element_bytes(&w.options);

			for (int rank = 0; rank < 4; rank++)
				memcpy(w.in[rank] + k * bytes, x[i], bytes);
		}
		assert_int_equal(run(), 1);
	}
}

/* --- a fixed point */

static void fixed_make(const struct floating *t, int point)
{
	uint64_t mantissa = (UINT64_C(1) << t->mantissa) - 1;

	for (uint16_t rank = 0; rank < w.member.workers; rank++)
		for (size_t i = 0; i < w.options.count; i++) {
			uint64_t r = random_next(&w.random);
			/* from far below a step up to the largest that 256 ranks may have */
			int exponent = 53 - point - (int)(r >> 32 & 127), least = 1 - (int)t->bias;
			uint64_t x = r & mantissa;

			if (exponent > (int)t->bias)
				exponent = (int)t->bias;
			if (53 - point < least)
				x = 0; /* nothing else fits */
			else if (exponent >= least)
				x |= (uint64_t)(exponent + (int)t->bias) << t->mantissa;
			x |= (r >> 40 & 1) << (t->bits - 1);
			memcpy(w.in[rank] + i * t->bits / 8, &x, t->bits / 8);
		}
}

static long double fixed_value(const struct floating *t, const uint8_t *array, size_t i)
{
	uint64_t bits = 0, magnitude;
	long double x;
	int stored;

	memcpy(&bits, array + i * t->bits / 8, t->bits / 8);
	magnitude = bits & ((UINT64_C(1) << (t->bits - 1)) - 1);
	stored = (int)(magnitude >> t->mantissa);
	x = (long double)(magnitude & ((UINT64_C(1) << t->mantissa) - 1));
	if (stored)
		x += (long double)(UINT64_C(1) << t->mantissa);
	x = ldexpl(x, (stored ? stored : 1) - (int)t->bias - (int)t->mantissa);
	return bits >> (t->bits - 1) ? -x : x;
}

/* The sum of q is exact in a long double; what is nearest to it by hand, of both neighbours. */
static void fixed_are_right(const struct floating *t, int point)
{
	uint16_t divisor = w.options.op == TALLY_AVG ? w.member.workers : 1;

	for (size_t i = 0; i < w.options.count; i++) {
		uint8_t *out = w.out[0] + i * t->bits / 8, beside[8] = { 0 };
		long double sum = 0, off;

		for (uint16_t rank = 0; rank < w.member.workers; rank++)
			sum += rintl(ldexpl(fixed_value(t, w.in[rank], i), point));
		sum = ldexpl(sum, -point);
		off = fabsl(sum - fixed_value(t, out, 0) * divisor);
		for (int way = -1; way <= 1; way += 2) {
			uint64_t bits = 0;

			memcpy(&bits, out, t->bits / 8);
			if (way > 0 && bits << (65 - t->bits) >> (65 - t->bits) >> t->mantissa ==
					       2 * t->bias + 1)
				continue; /* infinite: all that is larger */
			if (!(bits << (65 - t->bits)))
				bits = way < 0 ? UINT64_C(1) << (t->bits - 1) : 0;
			bits += bits << (65 - t->bits) ? (uint64_t)way : 1;
			memcpy(beside, &bits, t->bits / 8);
			assert_true(off <= fabsl(sum - fixed_value(t, beside, 0) * divisor));
		}
	}
}

static void with_a_fixed_point_results_are_the_nearest(void **state)
{
	static const int points[] = { -100, -66, -1, 0, 8, 24, 60, 127 };
	static const uint16_t workers[] = { 1, 2, 3, 5, 128, 256 };

	(void)state;
	w.random = 3;
	for (int turn = 0; turn < TURNS; turn++) {
		const struct floating *t = &floats[turn % 4];
		int point = points[turn / 4 % 8];
		uint16_t n = workers[turn < TURNS * 3 / 4 ? turn / 32 % 4 : turn / 32 % 6];

		world_make(TALLY_FIXED(t->dtype, point), n,
			   random_below(&w.random, n > 8 ? 60 : COUNT_MAX));
		w.options.op = turn & 1 << 5 ? TALLY_AVG : TALLY_SUM;
		fixed_make(t, point);
		assert_int_equal(run(), 1);
		assert_false(w.call[0].misfit);
		fixed_are_right(t, point);
	}
}

/* Sums a tensor whole, and in random pieces. Are the bits the same? */
static bool pieces_are_as_the_whole(enum tally_dtype dtype, size_t bytes)
{
	static uint8_t whole[BYTES_MAX], in[4][BYTES_MAX];
	size_t count = COUNT_MAX, piece;
	bool same = true;

	for (int rank = 0; rank < 4; rank++)
		memcpy(in[rank], w.in[rank], count * bytes);
	world_make(dtype, 4, count);
	run();
	memcpy(whole, w.out[0], count * bytes);
	for (size_t at = 0; at < count; at += piece) {
		piece = 1 + random_below(&w.random, 100);
		piece = piece < count - at ? piece : count - at;
		for (int rank = 0; rank < 4; rank++)
			memcpy(w.in[rank], in[rank] + at * bytes, piece * bytes);
		world_make(dtype, 4, piece);
		run();
		same &= !memcmp(w.out[0], whole + at * bytes, piece * bytes);
	}
	return same;
}

static void with_a_fixed_point_pieces_have_the_bits_of_the_whole(void **state)
{
	(void)state;
	w.random = 4;
	for (int i = 0; i < 4; i++) {
		for (int fixed = 0; fixed < 2; fixed++) {
			world_make(floats[i].dtype, 4, COUNT_MAX);
			fixed_make(&floats[i], 40);
			assert_int_equal(
				pieces_are_as_the_whole(fixed ? TALLY_FIXED(floats[i].dtype, 40)
							      : floats[i].dtype,
							floats[i].bits / 8),
				fixed);
		}
	}
}

/* One value too large, or not finite, on rank 1: every rank hears of it, and rank 1 where it is. */
static void what_does_not_fit_a_fixed_point_is_named(void **state)
{
	static const float edges[] = { 0x1p40f,	  -0x1p40f, 0x1.fffffep39f, INFINITY,
				       -INFINITY, NAN,	    0x1p127f,	    -0x1.fffffep39f };
	char text[200];

	(void)state;
	w.random = 5;
	for (int turn = 0; turn < 200; turn++) {
		size_t at = random_below(&w.random, COUNT_MAX);
		float x = edges[turn % 8];
		bool fits = turn % 8 == 2 || turn % 8 == 7;

		/* 62 - 2 - 20 */
		world_make(TALLY_FIXED(TALLY_FLOAT32, 20), 3, COUNT_MAX);
		fixed_make(&floats[0], 20);
		memcpy(w.in[1] + at * 4, &x, 4);
		assert_int_equal(run(), 1);
		for (int rank = 0; rank < 3; rank++) {
			assert_true(w.call[rank].misfit == !fits);
			assert_true(w.call[rank].misfit_at == (rank == 1 && !fits ? at : SIZE_MAX));
		}
		call_print_misfit(&w.call[1], text, sizeof(text));
		if (!fits)
			assert_true(strtoul(text + 3, NULL, 10) == at &&
				    strstr(text, "below 2^40, with point 20 and 3 ranks"));
		call_print_misfit(&w.call[0], text, sizeof(text));
		assert_non_null(strstr(text, "another rank"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_of_integers_are_exact),
		cmocka_unit_test(a_chunk_has_as_many_elements_as_fit),
		cmocka_unit_test(calls_of_floats_are_as_the_lanes_have_it),
		cmocka_unit_test(a_first_call_of_values_below_one_takes_one_round),
		cmocka_unit_test(with_a_fixed_point_results_are_the_nearest),
		cmocka_unit_test(with_a_fixed_point_pieces_have_the_bits_of_the_whole),
		cmocka_unit_test(what_does_not_fit_a_fixed_point_is_named),
	};

	return cmocka_run_group_tests_name("calls of every type", tests, NULL, NULL);
}
