// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lanes.h"

#define LANE_ENTRY(number, name) [TALLY_LANE_##number] = &lane_##name,
static const struct lane *const lanes[] = { LANES(LANE_ENTRY) };

enum {
	LANES_END = sizeof(lanes) / sizeof(lanes[0]),
	STRANDS = 8, /* of the check word */
};

const struct lane *lane_at(uint8_t number) { return number < LANES_END ? lanes[number] : NULL; }

enum tally_lane lane_of_dtype(enum tally_dtype dtype)
{
	for (int number = TALLY_LANE_NONE + 1; number < LANES_END; number++)
		if (dtype && lanes[number]->dtype == dtype)
			return number;
	return TALLY_LANE_NONE;
}

/*
 * Without a multiplication per word: eight strands keep the sum of their words, and the sum
 * of those sums after each row. With `rows` rows, the word of row r is in the latter
 * (rows - r) times, and 2 i + 1 = 16 r + (2 strand + 1).
 */
uint64_t lanes_check(const uint64_t *word, size_t words)
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

static uint64_t weigh_words(const uint64_t *factor, const uint64_t *word, size_t words)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < words; i++)
		sum += factor[2 * i] * word[i];
	return sum;
}

/* The low half borrows from the high one where it is negative: adding 2^31 gives that back. */
static uint64_t weigh_halves(const uint64_t *factor, const uint64_t *word, size_t words,
			     uint64_t sign)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < words; i++) {
		uint64_t low = (uint64_t)(int64_t)(int32_t)(uint32_t)word[i];
		uint64_t high = ((word[i] + (UINT64_C(1) << 31) + sign) >> 32) - (sign >> 32);

		sum += factor[2 * i] * low + factor[2 * i + 1] * high;
	}
	return sum;
}

uint64_t lanes_weigh(const struct lane *l, const uint64_t *factor, const uint64_t *word,
		     size_t words)
{
	if (l->numbers == LANE_WORD)
		return weigh_words(factor, word, words);
	return weigh_halves(factor, word, words, l->numbers == LANE_HALVES ? UINT64_C(1) << 63 : 0);
}
