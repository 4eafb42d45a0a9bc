/* SPDX-License-Identifier: GPL-2.0-only */
/* Chance that can be repeated: a test runs many seeds; TALLY_SEED=n runs that one alone. */
#ifndef TALLY_TESTS_UNIT_RANDOM_H
#define TALLY_TESTS_UNIT_RANDOM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static inline uint64_t random_next(uint64_t *random)
{
	uint64_t z = *random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint32_t random_below(uint64_t *random, uint32_t limit)
{
	return random_next(random) % limit;
}

static inline bool chance(uint64_t *random, uint32_t permille)
{
	return random_below(random, 1000) < permille;
}

/* `run` says what went wrong, or NULL. */
static inline void run_seeds(uint64_t seeds, const char *(*run)(uint64_t seed))
{
	const char *only = getenv("TALLY_SEED");
	uint64_t first = only ? strtoull(only, NULL, 0) : 1;
	uint64_t last = only ? first : seeds;

	for (uint64_t seed = first; seed <= last; seed++) {
		const char *wrong = run(seed);

		if (wrong)
			fail_msg("%s; to see it again: TALLY_SEED=%llu", wrong,
				 (unsigned long long)seed);
	}
}

#endif
