/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Chance that can be repeated: a test runs many seeds. TALLY_SEED=n runs that one alone,
 * TALLY_SEEDS=m runs m of them, both m of them from n on.
 */
#ifndef TALLY_TESTS_UNIT_RANDOM_H
#define TALLY_TESTS_UNIT_RANDOM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

enum {
	SEEDS_KINDS = 8, /* of what went wrong, counted apart */
	SEEDS_NAMED =
		10, /* so many seeds are named; unless TALLY_SEEDS is given, no more are run */
};

static inline uint64_t seeds_option(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* `run` says what went wrong, or NULL. What went wrong is counted. */
static inline void run_seeds(uint64_t seeds, const char *(*run)(uint64_t seed))
{
	uint64_t first = seeds_option("TALLY_SEED", 1), wrong = 0;
	uint64_t end = first + seeds_option("TALLY_SEEDS", getenv("TALLY_SEED") ? 1 : seeds);
	struct {
		const char *text;
		unsigned long long count;
	} kind[SEEDS_KINDS] = { 0 };

	for (uint64_t seed = first; seed < end; seed++) {
		const char *text = run(seed);
		int k = 0;

		if (!text)
			continue;
		if (wrong++ < SEEDS_NAMED)
			print_error("%s; to see it again: TALLY_SEED=%llu\n", text,
				    (unsigned long long)seed);
		while (k < SEEDS_KINDS - 1 && kind[k].text && strcmp(kind[k].text, text) != 0)
			k++;
		kind[k].text = text;
		kind[k].count++;
		if (wrong == SEEDS_NAMED && !getenv("TALLY_SEEDS"))
			end = seed + 1;
	}
	for (int k = 0; k < SEEDS_KINDS && kind[k].text; k++)
		print_error("%llu times: %s\n", kind[k].count, kind[k].text);
	if (wrong)
		fail_msg("%llu of %llu seeds", (unsigned long long)wrong,
			 (unsigned long long)(end - first));
}

#endif
