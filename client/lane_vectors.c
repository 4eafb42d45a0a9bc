// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lane_vectors.h"

#include <math.h>
#include <string.h>

#include "lane_float.h"
#include "lane_parts.h"

enum {
	STRANDS = 8, /* of the check word */
	TILE = 64, /* elements on their way between two loops */
	FLOAT_INFINITY = 0x7f800000, /* bits of a float; more: NaN */
	FLOAT_MAGNITUDE = 0x7fffffff, /* all bits but the sign */
};

#define TEXT static inline __attribute__((always_inline))

/*
 * Without a multiplication per word: eight strands keep the sum of their words, and the sum
 * of those sums after each row. With `rows` rows, the word of row r is in the latter
 * (rows - r) times, and 2 i + 1 = 16 r + (2 strand + 1).
 */
TEXT uint64_t check_text(const uint64_t *word, size_t words)
{
	uint64_t sum[STRANDS] = { 0 }, sums[STRANDS] = { 0 }, check = 0;
	size_t rows = words / STRANDS;

	for (size_t row = 0; row < rows; row++) {
		for (size_t i = 0; i < STRANDS; i++) {
			sum[i] += word[STRANDS * row + i];
			sums[i] += sum[i];
		}
	}
	for (size_t i = 0; i < STRANDS; i++)
		check += 2 * STRANDS * (rows * sum[i] - sums[i]) + (2 * i + 1) * sum[i];
	for (size_t i = STRANDS * rows; i < words; i++)
		check += (2 * i + 1) * word[i];
	return check;
}

/* Magnitudes of floats order like their bits, and the comparison of bits knows no NaN. */
TEXT int32_t largest_text(const float *x, size_t count)
{
	int32_t largest = 0;

	for (size_t i = 0; i < count; i++) {
		int32_t magnitude;

		memcpy(&magnitude, x + i, sizeof(magnitude));
		magnitude &= FLOAT_MAGNITUDE;
		largest = largest > magnitude ? largest : magnitude;
	}
	return largest;
}

/* To nearest, as the process rounds. Each in the words that GCC makes vectors of there. */
TEXT int32_t whole(float x)
{
#if defined(__x86_64__) && __has_builtin(__builtin_irintf)
	return __builtin_irintf(x);
#else
	return (int32_t)rintf(x);
#endif
}

/* The product is exact but where it is rounded to 0 in any case. */
TEXT void quantise(const float *restrict x, size_t count, float steps, int32_t *restrict q)
{
	for (size_t i = 0; i < count; i++) {
		int32_t bits;
		float finite;

		memcpy(&bits, x + i, sizeof(bits));
		bits &= ((bits & FLOAT_MAGNITUDE) - FLOAT_INFINITY) >> 31;
		memcpy(&finite, &bits, sizeof(finite));
		q[i] = whole(finite * steps);
	}
}

TEXT void pack_text(const float *x, size_t count, int exponent, uint64_t *word)
{
	const float steps = (float)float_power_of_two(exponent);
	int32_t q[TILE];
	size_t at = 0;

	for (; at + TILE <= count; at += TILE) { /* whole ones: their loops have a known end */
		quantise(x + at, TILE, steps, q);
		lane_parts_pack(q, sizeof(q), LANE_SIGNS_32, word + at / 2);
	}
	quantise(x + at, count - at, steps, q);
	lane_parts_pack(q, (count - at) * sizeof(*q), LANE_SIGNS_32, word + at / 2);
}

/* A sum beyond FLT_MAX becomes the infinity that IEEE 754 makes of it. */
TEXT void scale_back(const int32_t *restrict q, size_t count, double step, float *restrict out)
{
	const float short_step = (float)step;

	/* By a power of two: rounded to a float at once, as nothing is left to round behind it. */
	if (!(float_double_bits(step) & ((UINT64_C(1) << 52) - 1)))
		for (size_t i = 0; i < count; i++)
			out[i] = (float)q[i] * short_step;
	else
		for (size_t i = 0; i < count; i++)
			out[i] = (float)(q[i] * step);
}

TEXT void unpack_text(const uint64_t *word, size_t count, double step, float *out)
{
	int32_t q[TILE] = { 0 };
	size_t at = 0;

	for (; at + TILE <= count; at += TILE) {
		lane_parts_unpack(word + at / 2, sizeof(q), LANE_SIGNS_32, q);
		scale_back(q, TILE, step, out + at);
	}
	lane_parts_unpack(word + at / 2, (count - at) * sizeof(*q), LANE_SIGNS_32, q);
	scale_back(q, count - at, step, out + at);
}

/* --- 16 bits */

TEXT int32_t largest_of_16_text(const uint16_t *x, size_t count)
{
	int16_t largest = 0;

	for (size_t i = 0; i < count; i++) {
		const int16_t magnitude = (int16_t)(x[i] & INT16_MAX);

		largest = largest > magnitude ? largest : magnitude;
	}
	return largest;
}

/* Of a float16, subnormals are so many times 2^-24, and what is not finite is 0. */
TEXT void to_floats(const struct float_format *f, const uint16_t *restrict in, size_t count,
		    float *restrict out)
{
	for (size_t i = 0; f == &float_bfloat16 && i < count; i++) {
		const uint32_t bits = (uint32_t)in[i] << 16;

		memcpy(out + i, &bits, sizeof(bits));
	}
	for (size_t i = 0; f == &float_float16 && i < count; i++) {
		uint32_t magnitude = in[i] & INT16_MAX, bits = (magnitude << 13) + (112 << 23);
		const float little = (float)magnitude * 0x1p-24f;
		uint32_t little_bits;

		memcpy(&little_bits, &little, sizeof(little));
		bits = magnitude < 1 << 10 ? little_bits : bits;
		bits = magnitude < 31 << 10 ? bits | (uint32_t)(in[i] >> 15) << 31 : 0;
		memcpy(out + i, &bits, sizeof(bits));
	}
}

TEXT void pack_tile(const struct float_format *f, const uint16_t *in, size_t count, float steps,
		    uint64_t *word)
{
	int16_t quarter[TILE];
	int32_t q[TILE];
	float x[TILE];

	to_floats(f, in, count, x);
	quantise(x, count, steps, q);
	for (size_t i = 0; i < count; i++)
		quarter[i] = (int16_t)q[i];
	lane_parts_pack(quarter, count * sizeof(*quarter), LANE_SIGNS_16, word);
}

TEXT void pack_quarters(const struct float_format *f, const uint16_t *x, size_t count, int exponent,
			uint64_t *word)
{
	const float steps = (float)float_power_of_two(exponent);
	size_t at = 0;

	for (; at + TILE <= count; at += TILE)
		pack_tile(f, x + at, TILE, steps, word + at / 4);
	pack_tile(f, x + at, count - at, steps, word + at / 4);
}

/*
 * The bits of y, which is q, or a quotient of it rounded to 24 bits, times a power of two. Where
 * the exact one lies between two numbers of the type, no float is on the other side of their
 * middle, and the middle itself is a float; so it may be rounded again. Subnormals of bfloat16 are
 * those of float, which a process may have switched off: they are left to others, who hear of them.
 */
TEXT uint16_t quarter_result(const struct float_format *f, int16_t q, float y, int32_t *left)
{
	const int cut = 23 - f->mantissa_bits;
	const int32_t normal = (127 + float_exponent_min(f)) << 23;
	const int32_t rebias = (127 - f->exponent_max / 2) << f->mantissa_bits;
	const int32_t infinity = (int32_t)float_infinity(f);
	int32_t magnitude, rounded;
	uint32_t bits;

	memcpy(&bits, &y, sizeof(bits));
	magnitude = (int32_t)(bits & INT32_MAX);
	rounded = magnitude + ((1 << (cut - 1)) - 1) + (magnitude >> cut & 1);
	rounded = (rounded >> cut) - rebias;
	rounded = rounded < infinity ? rounded : infinity;
	if (f == &float_float16) /* so many times 2^-24 */
		rounded = magnitude < normal ? whole((q < 0 ? -y : y) * 0x1p24f) : rounded;
	else
		*left |= (magnitude < normal) & (q != 0);
	return (uint16_t)((uint32_t)rounded | (bits >> 31) << 15);
}

TEXT int32_t unpack_tile(const struct float_format *f, const uint64_t *word, size_t count,
			 uint16_t divisor, float step, uint16_t *restrict out)
{
	const float by = divisor;
	int16_t q[TILE] = { 0 };
	int32_t left = 0;

	lane_parts_unpack(word, count * sizeof(*q), LANE_SIGNS_16, q);
	if (divisor == 1)
		for (size_t i = 0; i < count; i++)
			out[i] = quarter_result(f, q[i], (float)q[i] * step, &left);
	else
		for (size_t i = 0; i < count; i++)
			out[i] = quarter_result(f, q[i], (float)q[i] / by * step, &left);
	return left;
}

TEXT bool unpack_quarters(const struct float_format *f, const uint64_t *word, size_t count,
			  uint16_t divisor, int exponent, uint16_t *out)
{
	const float step = (float)float_power_of_two(exponent);
	int32_t left = 0;
	size_t at = 0;

	for (; at + TILE <= count; at += TILE)
		left |= unpack_tile(f, word + at / 4, TILE, divisor, step, out + at);
	left |= unpack_tile(f, word + at / 4, count - at, divisor, step, out + at);
	return !left;
}

/* The plain one has what every processor of its kind has: SSE2, or NEON. */
#if defined(__x86_64__) && !defined(__CHECKER__) /* sparse does not know what asks a processor */
#define VECTORS(X)                                                                               \
	X(plain, , true)                                                                         \
	X(avx2, __attribute__((target("avx2"))), __builtin_cpu_supports("avx2"))                 \
	X(avx512,                                                                                \
	  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512"))), \
	  __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&             \
		  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
#else
#define VECTORS(X) X(plain, , true)
#endif

#define QUARTERS(kind, target, type)                                                             \
	target static void to_floats_##type##_##kind(const uint16_t *restrict x, size_t count,   \
						     float *restrict out)                        \
	{                                                                                        \
		to_floats(&float_##type, x, count, out);                                         \
	}                                                                                        \
	target static void pack_##type##_##kind(const uint16_t *x, size_t count, int exponent,   \
						uint64_t *word)                                  \
	{                                                                                        \
		pack_quarters(&float_##type, x, count, exponent, word);                          \
	}                                                                                        \
	target static bool unpack_##type##_##kind(const uint64_t *word, size_t count,            \
						  uint16_t divisor, int exponent, uint16_t *out) \
	{                                                                                        \
		return unpack_quarters(&float_##type, word, count, divisor, exponent, out);      \
	}

#define DEFINE(kind, target, has)                                                                  \
	target static uint64_t check_##kind(const uint64_t *word, size_t words)                    \
	{                                                                                          \
		return check_text(word, words);                                                    \
	}                                                                                          \
	target static int32_t largest_##kind(const float *x, size_t count)                         \
	{                                                                                          \
		return largest_text(x, count);                                                     \
	}                                                                                          \
	target static void pack_##kind(const float *x, size_t count, int exponent, uint64_t *word) \
	{                                                                                          \
		pack_text(x, count, exponent, word);                                               \
	}                                                                                          \
	target static void unpack_##kind(const uint64_t *word, size_t count, double step,          \
					 float *out)                                               \
	{                                                                                          \
		unpack_text(word, count, step, out);                                               \
	}                                                                                          \
	target static int32_t largest_of_16_##kind(const uint16_t *x, size_t count)                \
	{                                                                                          \
		return largest_of_16_text(x, count);                                               \
	}                                                                                          \
	QUARTERS(kind, target, bfloat16)                                                           \
	QUARTERS(kind, target, float16)
VECTORS(DEFINE)

#define QUARTERS_ROW(kind, type) \
	{ to_floats_##type##_##kind, pack_##type##_##kind, unpack_##type##_##kind }

#define ROW(kind, target, has)                            \
	{                                                 \
		.name = #kind,                            \
		.check = check_##kind,                    \
		.largest = largest_##kind,                \
		.pack = pack_##kind,                      \
		.unpack = unpack_##kind,                  \
		.largest_of_16 = largest_of_16_##kind,    \
		.bfloat16 = QUARTERS_ROW(kind, bfloat16), \
		.float16 = QUARTERS_ROW(kind, float16),   \
	},
static const struct lane_vectors vectors[] = { VECTORS(ROW) };

#define HAS(kind, target, has) counted += counted == row++ && (has);
static unsigned int kinds(void)
{
	unsigned int counted = 0, row = 0;

	VECTORS(HAS)
	return counted;
}

const struct lane_vectors *lane_vectors_at(unsigned int which)
{
	return which < kinds() ? &vectors[which] : NULL;
}

const struct lane_vectors *lane_vectors(void) { return &vectors[kinds() - 1]; }
