// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bfloat16 and float16 as block floating point. The scale of a block is the smallest s, at least 1,
 * such that every finite |x| of it is below 2^(s - 127); 0 when all are zero. All workers use the
 * largest scale among them; then q = round-to-nearest-even(x * 2^(bits - (s - 127))). A result is
 * the sum of q by the divisor, times 2^(s - 127 - bits), rounded once.
 *
 * bits = 15 - ceil(log2(workers)) and four a word, as long as that is no less than the type's own
 * mantissa has; in larger jobs bits = 31 - ceil(log2(workers)) and two a word. So the largest
 * values of a block are exact in both, and as |q| is below 2^bits, sums of q fit. (Where bfloat16
 * has scale 1 for smaller blocks too, its step is at most its smallest subnormal.)
 *
 * As in lane_float32.c, there are fast conversions, which are plain loops, and exact ones, for
 * processes in which the fast ones cannot be trusted. They give the same bits.
 */
#include <string.h>

#include "lane_float.h"
#include "lane_parts.h"
#include "lane_vectors.h"
#include "lanes.h"

enum {
	TILE = 32, /* elements on their way between two vector loops */
	COUNTERS_SHIFT = 37,
	SCALE_BIAS = 127,
	QUARTER_BITS = 15, /* of a sum of q, without its sign */
	HALF_BITS = 31,
	/* Up to this exponent no subnormal float matters as an input: it is below half a step. */
	EXPONENT_NORMAL = 125,
	FLOAT_EXPONENT_MIN = -126, /* of a float that is no subnormal; 127 is the largest */
	FLOAT_EXPONENT_MAX = 127,
};

#define INLINE static inline __attribute__((always_inline))

/* A step of q is 2^-step_exponent(). All scales that a byte can say are harmless. */
INLINE int step_exponent(const struct float_format *f, const struct lane_terms *terms)
{
	int bits = QUARTER_BITS - float_headroom(terms->workers);

	if (bits <= f->mantissa_bits)
		bits += HALF_BITS - QUARTER_BITS;
	return bits - (terms->scale - SCALE_BIAS);
}

/* Magnitudes order like their bits. */
INLINE struct lane_need inspect_any(const struct float_format *f, const void *in, size_t count)
{
	const int32_t infinity = (int32_t)float_infinity(f);
	const int32_t all = lane_vectors()->largest_of_16(in, count);
	const uint16_t *x = in;
	int32_t finite = all < infinity ? all : 0;
	int scale;

	for (size_t i = 0; all >= infinity && i < count; i++) {
		int32_t magnitude = x[i] & INT16_MAX;

		if (magnitude < infinity && magnitude > finite)
			finite = magnitude;
	}
	scale = finite ? float_below(f, (uint64_t)finite) + SCALE_BIAS : 0;
	if (finite && scale < 1)
		scale = 1;
	return (struct lane_need){ .scale = (uint8_t)scale, .wide = all >= infinity };
}

static const struct lane_quarters *vectors_of(const struct float_format *f)
{
	return f == &float_bfloat16 ? &lane_vectors()->bfloat16 : &lane_vectors()->float16;
}

/* --- to q */

/* Elements that are not finite, and zeros of either sign, go as 0. */
static int32_t quantise_exact(const struct float_format *f, uint16_t x, int exponent)
{
	if ((x & INT16_MAX) >= float_infinity(f))
		return 0;
	return (int32_t)(uint32_t)(uint64_t)float_quantise(f, x, exponent);
}

static void pack_quarters_exact(const struct float_format *f, const uint16_t *x, size_t count,
				int exponent, uint64_t *word)
{
	int16_t q[TILE];

	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		for (size_t i = 0; i < n; i++)
			q[i] = (int16_t)quantise_exact(f, x[at + i], exponent);
		lane_parts_pack(q, n * sizeof(*q), LANE_SIGNS_16, word + at / 4);
	}
}

INLINE void pack_quarters(const struct float_format *f, const void *in, size_t count,
			  const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(f, terms);

	if (!terms->scale)
		memset(word, 0, (count + 3) / 4 * sizeof(*word));
	else if (exponent <= EXPONENT_NORMAL && float_rounds_to_nearest())
		vectors_of(f)->pack(in, count, exponent, word);
	else
		pack_quarters_exact(f, in, count, exponent, word);
}

INLINE void pack_halves(const struct float_format *f, const void *in, size_t count,
			const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(f, terms);
	bool fast = exponent <= EXPONENT_NORMAL && float_rounds_to_nearest();
	const uint16_t *x = in;
	float as_floats[TILE];
	int32_t q[TILE];

	if (!terms->scale) {
		memset(word, 0, (count + 1) / 2 * sizeof(*word));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		if (fast) {
			vectors_of(f)->to_floats(x + at, n, as_floats);
			float_quantise_fast(as_floats, n, exponent, q);
		}
		for (size_t i = 0; !fast && i < n; i++)
			q[i] = quantise_exact(f, x[at + i], exponent);
		lane_parts_pack(q, n * sizeof(*q), LANE_SIGNS_32, word + at / 2);
	}
}

/* One a word, as float32 has it: q in the low half, signed, and three counters above it. */
static void pack_wide_any(const struct float_format *f, const void *in, size_t count,
			  const struct lane_terms *terms, uint64_t *word)
{
	int exponent = step_exponent(f, terms);
	const uint16_t *x = in;

	for (size_t i = 0; i < count; i++) {
		if ((x[i] & INT16_MAX) >= float_infinity(f))
			word[i] = float_counter(f, x[i], COUNTERS_SHIFT);
		else
			word[i] = (uint64_t)(int64_t)(terms->scale
							      ? quantise_exact(f, x[i], exponent)
							      : 0);
	}
}

/* --- from sums of q */

/*
 * The quotient has one rounding, to 53 bits, and only then one to the type: where the exact one
 * lies between two numbers of the type, no double is on the other side of their middle, and the
 * middle itself is a double. False: some result other than 0 is subnormal, and to be made anew.
 */
INLINE bool half_results_fast(const struct float_format *f, const int32_t *restrict q, size_t count,
			      uint16_t divisor, int exponent, uint16_t *restrict out)
{
	const int cut = 52 - f->mantissa_bits;
	const int64_t normal = (int64_t)(1023 + float_exponent_min(f)) << 52;
	const int32_t rebias = (1023 - f->exponent_max / 2) << f->mantissa_bits;
	const int32_t infinity = (int32_t)float_infinity(f);
	double step = float_power_of_two(exponent);
	int32_t subnormal = 0;

	for (size_t i = 0; i < count; i++) {
		double y = (double)q[i] / divisor * step;
		int64_t magnitude;
		int32_t rounded;
		uint64_t bits;

		memcpy(&bits, &y, sizeof(bits));
		magnitude = (int64_t)(bits & INT64_MAX);
		subnormal |= (magnitude < normal) & (q[i] != 0);
		magnitude += ((INT64_C(1) << (cut - 1)) - 1) + (magnitude >> cut & 1);
		rounded = (int32_t)(magnitude >> cut) - rebias;
		rounded = rounded < infinity ? rounded : infinity;
		rounded = q[i] ? rounded : 0;
		out[i] = (uint16_t)((uint32_t)rounded | (uint32_t)(bits >> 63) << 15);
	}
	return !subnormal;
}

static void unpack_quarters_exact(const struct float_format *f, const uint64_t *word, size_t count,
				  uint16_t divisor, int exponent, uint16_t *out)
{
	int16_t q[TILE] = { 0 };

	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		lane_parts_unpack(word + at / 4, n * sizeof(*q), LANE_SIGNS_16, q);
		for (size_t i = 0; i < n; i++)
			out[at + i] = (uint16_t)float_result(f, q[i], divisor, exponent);
	}
}

INLINE void unpack_quarters(const struct float_format *f, const uint64_t *word, size_t count,
			    const struct lane_terms *terms, void *out)
{
	int exponent = -step_exponent(f, terms);
	bool fast = exponent >= FLOAT_EXPONENT_MIN && exponent <= FLOAT_EXPONENT_MAX &&
		    float_rounds_to_nearest();

	if (!terms->scale)
		memset(out, 0, count * f->bytes);
	else if (!fast || !vectors_of(f)->unpack(word, count, terms->divisor, exponent, out))
		unpack_quarters_exact(f, word, count, terms->divisor, exponent, out);
}

INLINE void unpack_halves(const struct float_format *f, const uint64_t *word, size_t count,
			  const struct lane_terms *terms, void *out)
{
	int exponent = -step_exponent(f, terms);
	bool fast = float_rounds_to_nearest();
	int32_t q[TILE] = { 0 };
	uint16_t *x = out;

	if (!terms->scale) {
		memset(x, 0, count * sizeof(*x));
		return;
	}
	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		lane_parts_unpack(word + at / 2, n * sizeof(*q), LANE_SIGNS_32, q);
		if (fast && half_results_fast(f, q, n, terms->divisor, exponent, x + at))
			continue;
		for (size_t i = 0; i < n; i++)
			x[at + i] = (uint16_t)float_result(f, q[i], terms->divisor, exponent);
	}
}

INLINE void unpack_wide_any(const struct float_format *f, const uint64_t *word, size_t count,
			    const struct lane_terms *terms, void *out)
{
	int exponent = -step_exponent(f, terms);
	uint16_t *x = out;

	for (size_t i = 0; i < count; i++) {
		int32_t q = (int32_t)(uint32_t)word[i];
		uint64_t bits = float_nonfinite(f, word[i] - (uint64_t)(int64_t)q, COUNTERS_SHIFT);

		if (!bits && terms->scale)
			bits = float_result(f, q, terms->divisor, exponent);
		x[i] = (uint16_t)bits;
	}
}

/* What a lane calls, of one type. */
#define FUNCTIONS(type)                                                                            \
	static struct lane_need inspect_##type(const void *in, size_t count, uint16_t workers)     \
	{                                                                                          \
		return inspect_any(&float_##type, in, count);                                      \
	}                                                                                          \
	static void pack_##type(const void *in, size_t count, const struct lane_terms *terms,      \
				uint64_t *word)                                                    \
	{                                                                                          \
		pack_quarters(&float_##type, in, count, terms, word);                              \
	}                                                                                          \
	static void unpack_##type(const uint64_t *word, size_t count,                              \
				  const struct lane_terms *terms, void *out)                       \
	{                                                                                          \
		unpack_quarters(&float_##type, word, count, terms, out);                           \
	}                                                                                          \
	static void pack_pairs_##type(const void *in, size_t count,                                \
				      const struct lane_terms *terms, uint64_t *word)              \
	{                                                                                          \
		pack_halves(&float_##type, in, count, terms, word);                                \
	}                                                                                          \
	static void unpack_pairs_##type(const uint64_t *word, size_t count,                        \
					const struct lane_terms *terms, void *out)                 \
	{                                                                                          \
		unpack_halves(&float_##type, word, count, terms, out);                             \
	}                                                                                          \
	static void pack_wide_##type(const void *in, size_t count, const struct lane_terms *terms, \
				     uint64_t *word)                                               \
	{                                                                                          \
		pack_wide_any(&float_##type, in, count, terms, word);                              \
	}                                                                                          \
	static void unpack_wide_##type(const uint64_t *word, size_t count,                         \
				       const struct lane_terms *terms, void *out)                  \
	{                                                                                          \
		unpack_wide_any(&float_##type, word, count, terms, out);                           \
	}

FUNCTIONS(bfloat16)
FUNCTIONS(float16)

const struct lane lane_bfloat16 = {
	.dtype = TALLY_BFLOAT16,
	.workers_max = 1 << (QUARTER_BITS - 8),
	.element_bytes = 2,
	.bits = 16,
	.number_bits = 16,
	.signs = LANE_SIGNS_16,
	.scale_min = 1,
	.scale_max = 255,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_BFLOAT16_WIDE,
	.inspect = inspect_bfloat16,
	.pack = pack_bfloat16,
	.unpack = unpack_bfloat16,
};

const struct lane lane_bfloat16_pairs = {
	.dtype = TALLY_BFLOAT16,
	.element_bytes = 2,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
	.scale_min = 1,
	.scale_max = 255,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_BFLOAT16_WIDE,
	.inspect = inspect_bfloat16,
	.pack = pack_pairs_bfloat16,
	.unpack = unpack_pairs_bfloat16,
};

const struct lane lane_bfloat16_wide = {
	.element_bytes = 2,
	.bits = 64,
	.number_bits = 32,
	.signs = UINT64_C(1) << 31,
	.scale_min = 1,
	.scale_max = 255,
	.pack = pack_wide_bfloat16,
	.unpack = unpack_wide_bfloat16,
};

const struct lane lane_float16 = {
	.dtype = TALLY_FLOAT16,
	.workers_max = 1 << (QUARTER_BITS - 11),
	.element_bytes = 2,
	.bits = 16,
	.number_bits = 16,
	.signs = LANE_SIGNS_16,
	.scale_min = 104,
	.scale_max = 143,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_FLOAT16_WIDE,
	.inspect = inspect_float16,
	.pack = pack_float16,
	.unpack = unpack_float16,
};

const struct lane lane_float16_pairs = {
	.dtype = TALLY_FLOAT16,
	.element_bytes = 2,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
	.scale_min = 104,
	.scale_max = 143,
	.scale_first = SCALE_BIAS,
	.wide = TALLY_LANE_FLOAT16_WIDE,
	.inspect = inspect_float16,
	.pack = pack_pairs_float16,
	.unpack = unpack_pairs_float16,
};

const struct lane lane_float16_wide = {
	.element_bytes = 2,
	.bits = 64,
	.number_bits = 32,
	.signs = UINT64_C(1) << 31,
	.scale_min = 104,
	.scale_max = 143,
	.pack = pack_wide_float16,
	.unpack = unpack_wide_float16,
};
