/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loops that a call of float32 spends its time in, once for each kind of vectors that
 * processors have: one text, which the compiler makes each of them from. All give the same bits.
 * Pure.
 */
#ifndef TALLY_CLIENT_LANE_VECTORS_H
#define TALLY_CLIENT_LANE_VECTORS_H

#include <stddef.h>
#include <stdint.h>

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
};

/* Those that this processor has: 0 is what every processor has, the last is the best. NULL: there
 * are no more. */
const struct lane_vectors *lane_vectors_at(unsigned int which);

/* The best. */
const struct lane_vectors *lane_vectors(void);

#endif
