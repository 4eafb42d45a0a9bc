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
	}
VECTORS(DEFINE)

#define ROW(kind, target, has) { #kind, check_##kind, largest_##kind, pack_##kind, unpack_##kind },
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
