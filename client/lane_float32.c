// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * float32 as block floating point. The scale of a block is the smallest s such that every
 * finite |x| of it is below 2^(4 (s - 64)); 0 when all are zero; else 27 .. 96. All workers use the
 * largest scale among them; then q = round-to-nearest-even(x * 2^(bits - 4 (s - 64))) where bits =
 * 30 - ceil(log2(workers)), so that sums of q stay within int32. A result is the sum of q times
 * its step, by the divisor, as double and then rounded once to float32; beyond FLT_MAX that is an
 * infinity. The bits are the same whatever rounding mode, FTZ or DAZ the process has set.
 *
 * The conversions exist twice. The fast ones are vectors (lane_vectors.h). They need
 * round-to-nearest and, near the bottom of the range, subnormals; a process may have switched off
 * either (FTZ and DAZ are set by any library linked with -ffast-math). The slow ones are integer
 * arithmetic, need nothing, and give the same bits; they run where the fast ones could not be
 * trusted.
 */
#include <string.h>

#include "lane_float.h"
#include "lane_parts.h"
#include "lane_vectors.h"
#include "lanes.h"

enum {
	SCALE_MIN = 27,
	SCALE_MAX = 96,
	TILE = 32,	   /* elements on their way between two vector loops */
	FLOAT_INFINITY = 0x7f800000,  /* bits of a float; more: NaN */
	FLOAT_MAGNITUDE = 0x7fffffff, /* all bits but the sign */
	FLOAT_HIDDEN = 1 << 23, /* the first bit of a normal float's mantissa */
	COUNTERS_SHIFT = 37,
	/*
	 * From this scale on no subnormal float matters: as an input it is below 2^-126 and
	 * half a step is at least 2^(4 (42 - 64) - 30 - 1) = 2^-119; and a result that is not
	 * 0 is at least a 256th of the step.
	 */
	SCALE_NORMAL = 42,
};

static const struct float_format format = { 4, 23, 255 };

static uint32_t float_bits(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* A step of q is 2^-step_exponent(). All scales that a byte can say are harmless. */
static int step_exponent(const struct lane_terms *terms)
{
	return 30 - float_headroom(terms->workers) - 4 * (terms->scale - 64);
}

/* --- the scale */

/* The smallest scale for a finite magnitude: with x in [2^e, 2^(e+1)), 64 + ceil((e + 1) / 4). */
static uint8_t scale_of(uint32_t magnitude)
{
	int exponent = (int)(magnitude >> 23) - 127;

	if (!magnitude)
		return 0;
	if (magnitude < FLOAT_HIDDEN)
		exponent = 31 - __builtin_clz(magnitude) - 149;
	return (uint8_t)((exponent + 260) / 4);
}

static struct lane_need inspect(const void *in, size_t count, uint16_t workers)
{
	const int32_t all = lane_vectors()->largest(in, count);
	const float *x = in;
	int32_t finite = 0;

	if (all < FLOAT_INFINITY)
		return (struct lane_need){ .scale = scale_of((uint32_t)all) };

	for (size_t i = 0; i < count; i++) {
		int32_t magnitude = (int32_t)(float_bits(x[i]) & FLOAT_MAGNITUDE);

		if (magnitude < FLOAT_INFINITY && magnitude > finite)
			finite = magnitude;
	}
	return (struct lane_need){ .scale = scale_of((uint32_t)finite), .wide = true };
}

/* --- to q */

/* x = mantissa * 2^(max(exponent, 1) - 150), for normals and subnormals alike. */
static int32_t quantise_exact(float x, int exponent)
{
	uint32_t bits = float_bits(x);
	uint32_t mantissa = bits & (FLOAT_HIDDEN - 1);
	int biased = bits >> 23 & 255, shift;
	uint32_t q;

	if (biased == 255)
		return 0;
	if (biased)
		mantissa |= FLOAT_HIDDEN;
	shift = (biased ? biased : 1) - 150 + exponent;
	if (shift >= 0)
		q = mantissa << (shift & 31); /* at most 6, if the scale is that of the block */
	else
		q = (uint32_t)float_shifted(mantissa, -shift);
	return (int32_t)(bits >> 31 ? -q : q);
}

/* Elements that are not finite, and -0.0, go as 0. */
static void pack_pairs(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	bool fast = terms->scale >= SCALE_NORMAL && float_rounds_to_nearest();
	int exponent = step_exponent(terms);
	const float *x = in;
	int32_t q[TILE];

	if (!terms->scale) {
		memset(word, 0, (count + 1) / 2 * sizeof(*word));
		return;
	}
	if (fast) {
		lane_vectors()->pack(x, count, exponent, word);
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		for (size_t i = 0; i < n; i++)
			q[i] = quantise_exact(x[at + i], exponent);
		lane_parts_pack(q, n * sizeof(*q), LANE_SIGNS_32, word + at / 2);
	}
}

/*
 * One a word, for blocks with NaNs or infinities: bits 0..36 the same q, signed; above it
 * three counters of nine bits each: NaNs (37..45), +inf (46..54), -inf (55..63). A sum with a
 * NaN, or with both infinities, is the quiet NaN 0x7fc00000; with one kind of infinity it is
 * that. With 256 workers a counter may reach 256, which still fits nine bits.
 */
static void pack_wide(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(terms);
	const float *x = in;

	for (size_t i = 0; i < count; i++) {
		uint32_t bits = float_bits(x[i]), magnitude = bits & FLOAT_MAGNITUDE;

		if (magnitude >= FLOAT_INFINITY)
			word[i] = float_counter(&format, bits, COUNTERS_SHIFT);
		else
			word[i] = (uint64_t)(int64_t)(terms->scale ? quantise_exact(x[i], exponent)
								   : 0);
	}
}

/* --- from sums of q */

/* The bits of (float)(q * step) as IEEE 754 has them: first to 53 bits, then to float. */
static uint32_t scale_back_exact(int32_t q, double step)
{
	uint64_t step_bits = float_double_bits(step), mantissa;
	int exponent = (int)(step_bits >> 52 & 2047) - 1075, over, biased;
	unsigned __int128 product;

	product = (unsigned __int128)(q < 0 ? -(uint64_t)q : (uint64_t)q) *
		  ((step_bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52);
	if (!product)
		return 0;
	over = 64 - __builtin_clzll((uint64_t)(product >> 52)) - 1;
	mantissa = over > 0 ? float_shifted(product, over) : (uint64_t)product;
	if (over > 0)
		exponent += over;

	/* Now 2^52 <= mantissa <= 2^53. A carry out of the rounding raises the exponent. */
	biased = exponent + 52 + 127;
	if (biased >= 255)
		return FLOAT_INFINITY | (q < 0 ? 1u << 31 : 0);
	if (biased > 0)
		mantissa = float_shifted(mantissa, 29) + ((uint64_t)(biased - 1) << 23);
	else
		mantissa = float_shifted(mantissa, 30 - biased);
	return (uint32_t)mantissa | (q < 0 ? 1u << 31 : 0);
}

static void scale_back_all(const int32_t *q, size_t count, double step, float *out)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bits = scale_back_exact(q[i], step);

		memcpy(out + i, &bits, sizeof(bits));
	}
}

/*
 * 1 / divisor, rounded to nearest in any rounding mode: a whole number of 53 bits by a power of
 * two. No tie is possible: only for powers of two is the quotient's half a whole number, and there
 * it leaves nothing to round.
 */
static double reciprocal(uint16_t divisor)
{
	uint64_t mantissa;
	int bits = 52;

	while (divisor > 1u << (bits - 52))
		bits++;
	mantissa = ((UINT64_C(1) << bits) + divisor / 2) / divisor;
	return (double)mantissa * float_power_of_two(-bits);
}

/* What a sum of q is multiplied by to be the result. */
static double step_of(const struct lane_terms *terms)
{
	return reciprocal(terms->divisor) * float_power_of_two(-step_exponent(terms));
}

static void unpack_pairs(const uint64_t *word, size_t count, const struct lane_terms *terms,
			 void *out)
{
	bool fast = terms->scale >= SCALE_NORMAL && float_rounds_to_nearest();
	double step = step_of(terms);
	int32_t q[TILE] = { 0 };
	float *x = out;

	if (!terms->scale) {
		memset(x, 0, count * sizeof(*x));
		return;
	}
	if (fast) {
		lane_vectors()->unpack(word, count, step, x);
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		lane_parts_unpack(word + at / 2, n * sizeof(*q), LANE_SIGNS_32, q);
		scale_back_all(q, n, step, x + at);
	}
}

static void unpack_wide(const uint64_t *word, size_t count, const struct lane_terms *terms,
			void *out)
{
	double step = step_of(terms);
	float *x = out;

	for (size_t i = 0; i < count; i++) {
		int32_t q = (int32_t)(uint32_t)word[i]; /* sums of q fit 31 bits of the 37 */
		uint32_t bits = (uint32_t)float_nonfinite(&format, word[i] - (uint64_t)(int64_t)q,
							  COUNTERS_SHIFT);

		if (bits)
			memcpy(x + i, &bits, sizeof(bits));
		else if (terms->scale)
			scale_back_all(&q, 1, step, x + i);
		else
			x[i] = 0;
	}
}

const struct lane lane_float32 = {
	.dtype = TALLY_FLOAT32,
	.element_bytes = 4,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.scale_first = 64, /* below 16^0 */
	.wide = TALLY_LANE_FLOAT32_WIDE,
	.inspect = inspect,
	.pack = pack_pairs,
	.unpack = unpack_pairs,
};

const struct lane lane_float32_wide = {
	.element_bytes = 4,
	.bits = 64,
	.number_bits = 32, /* q, and the counters */
	.signs = UINT64_C(1) << 31,
	.scale_min = SCALE_MIN,
	.scale_max = SCALE_MAX,
	.pack = pack_wide,
	.unpack = unpack_wide,
};
