// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * float64 as block floating point. The scale of a block is the smallest s such that every finite
 * |x| of it is below 2^(9 (s - 120)); 0 when all are zero; else 1 .. 234. All workers use the
 * largest scale among them; then q = round-to-nearest-even(x * 2^(bits - 9 (s - 120))) where bits =
 * 62 - ceil(log2(workers)), so that sums of q stay within int64. A result is the sum of q by the
 * divisor, times its step, rounded once. But for one case it is all integer arithmetic.
 */
#include <string.h>

#include "lane_float.h"
#include "lanes.h"

enum {
	SCALE_MIN = 1,
	SCALE_MAX = 234,
	SCALE_STEP = 9, /* binary orders: 2^-1074 to 2^1024 take 234 of them */
	SCALE_BIAS = 120,
	SUM_BITS = 62,
};

static const struct float_format format = { 8, 52, 2047 };

/* A step of q is 2^-step_exponent(). All scales that a byte can say are harmless. */
static int step_exponent(const struct lane_terms *terms)
{
	return SUM_BITS - float_headroom(terms->workers) - SCALE_STEP * (terms->scale - SCALE_BIAS);
}

static bool is_finite(uint64_t bits) { return (bits & INT64_MAX) < float_infinity(&format); }

static uint8_t scale_of(uint64_t magnitude)
{
	int orders = SCALE_STEP * SCALE_BIAS;

	if (!magnitude)
		return 0;
	orders += float_below(&format, magnitude);
	return (uint8_t)((orders + SCALE_STEP - 1) / SCALE_STEP);
}

/* Magnitudes order like their bits. */
static struct lane_need inspect(const void *in, size_t count, uint16_t workers)
{
	uint64_t all = 0, finite = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t magnitude = float_get(&format, in, i) & INT64_MAX;

		all = all > magnitude ? all : magnitude;
		if (is_finite(magnitude) && magnitude > finite)
			finite = magnitude;
	}
	return (struct lane_need){ .scale = scale_of(finite), .wide = !is_finite(all) };
}

/* Elements that are not finite go as 0. */
static uint64_t quantise(uint64_t bits, const struct lane_terms *terms, int exponent)
{
	if (!terms->scale || !is_finite(bits))
		return 0;
	return (uint64_t)float_quantise(&format, bits, exponent);
}

static void pack(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(terms);

	for (size_t i = 0; i < count; i++)
		word[i] = quantise(float_get(&format, in, i), terms, exponent);
}

static uint64_t result(uint64_t sum, const struct lane_terms *terms, int exponent)
{
	return terms->scale ? float_result(&format, (int64_t)sum, terms->divisor, exponent) : 0;
}

/* A power of two; with no subnormal in sight, whatever q is. The rounding is that of (double)q. */
static bool can_multiply(const struct lane_terms *terms, int exponent)
{
	return terms->scale && !(terms->divisor & (terms->divisor - 1)) && exponent >= -1022 &&
	       exponent <= 1023 && float_rounds_to_nearest();
}

static void unpack(const uint64_t *restrict word, size_t count, const struct lane_terms *terms,
		   void *restrict out)
{
	int exponent = -step_exponent(terms);
	double step, *x = out;

	if (!can_multiply(terms, exponent - float_headroom(terms->divisor))) {
		for (size_t i = 0; i < count; i++)
			float_put(&format, out, i, result(word[i], terms, exponent));
		return;
	}
	step = float_power_of_two(exponent - float_headroom(terms->divisor));
	for (size_t i = 0; i < count; i++)
		x[i] = (double)(int64_t)word[i] * step;
}

/* Two words each: q, and the counters, as float32 has them, from bit 0 on. */
static void pack_wide(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(terms);

	for (size_t i = 0; i < count; i++) {
		uint64_t bits = float_get(&format, in, i);

		word[2 * i] = quantise(bits, terms, exponent);
		word[2 * i + 1] = is_finite(bits) ? 0 : float_counter(&format, bits, 0);
	}
}

static void unpack_wide(const uint64_t *word, size_t count, const struct lane_terms *terms,
			void *out)
{
	int exponent = -step_exponent(terms);

	for (size_t i = 0; i < count; i++) {
		uint64_t bits = float_nonfinite(&format, word[2 * i + 1], 0);

		float_put(&format, out, i, bits ? bits : result(word[2 * i], terms, exponent));
	}
}

const struct lane lane_float64 = {
	.dtype = TALLY_FLOAT64,
	.element_bytes = 8,
	.bits = 64,
	.number_bits = 64,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_FLOAT64_WIDE,
	.inspect = inspect,
	.pack = pack,
	.unpack = unpack,
};

const struct lane lane_float64_wide = {
	.element_bytes = 8,
	.bits = 128,
	.number_bits = 64,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.pack = pack_wide,
	.unpack = unpack_wide,
};
