/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loops that calls of float32, bfloat16 and float16 spend their time in, once for each kind of
 * vectors that processors have: one text, which the compiler makes each of them from. All give the
 * same bits. Pure.
 */
#ifndef TALLY_CLIENT_LANE_VECTORS_H
#define TALLY_CLIENT_LANE_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of a type of 16 bits that goes four a word. The process rounds to nearest. */
struct lane_quarters {
	/* The same numbers; of float16, what is not finite is 0. */
	void (*to_floats)(const uint16_t *restrict x, size_t count, float *restrict out);

	/*
	 * The words of x * 2^exponent, rounded to nearest. What is not finite goes as 0. -126 <=
	 * exponent <= 125, and all products are below 2^15.
	 */
	void (*pack)(const uint16_t *x, size_t count, int exponent, uint64_t *word);

	/*
	 * Sums of q by `divisor`, times 2^exponent, rounded once; -126 <= exponent <= 127. False:
	 * a result is a subnormal bfloat16, and all that is written is worth nothing.
	 */
	bool (*unpack)(const uint64_t *word, size_t count, uint16_t divisor, int exponent,
		       uint16_t *out);
};

struct lane_vectors {
	const char *name;

	/* lanes_check() */
	uint64_t (*check)(const uint64_t *word, size_t words);

	/* Of float32, the bits of the largest magnitude; 0: there are none. */
	int32_t (*largest)(const float *x, size_t count);

	/*
	 * The words of x * 2^exponent, rounded to nearest. What is not finite goes as 0. -120 <=
	 * exponent <= 120, the process rounds to nearest, and all products are below 2^31.
	 */
	void (*pack)(const float *x, size_t count, int exponent, uint64_t *word);

	/*
	 * Sums of q times `step`, rounded to nearest. The process rounds so, and 2^-126 <= step <
	 * 2^127.
	 */
	void (*unpack)(const uint64_t *word, size_t count, double step, float *out);

	/* Of numbers of 16 bits with a sign, the bits of the largest magnitude; 0: there are none.
	 */
	int32_t (*largest_of_16)(const uint16_t *x, size_t count);

	struct lane_quarters bfloat16, float16;
};

/* Those that this processor has: 0 is what every processor has, the last is the best. NULL: there
 * are no more. */
const struct lane_vectors *lane_vectors_at(unsigned int which);

/* The best. */
const struct lane_vectors *lane_vectors(void);

#endif
