/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Chance that can be repeated: SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014). The
 * same seed gives the same numbers on every machine. Pure.
 */
#ifndef TALLY_POLICY_RANDOM_H
#define TALLY_POLICY_RANDOM_H

#include <stdint.h>

/* 64 of them. */
static inline uint64_t random_bits(uint64_t *seed)
{
	uint64_t z = *seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* From 0 to below 1, in steps of 2^-53. */
static inline double random_part(uint64_t *seed)
{
	return (double)(random_bits(seed) >> 11) / (double)(1ull << 53);
}

/* From 0 to below `count`, which is at least 1. */
static inline uint32_t random_index(uint64_t *seed, uint32_t count)
{
	return (uint32_t)(random_part(seed) * count);
}

#endif
