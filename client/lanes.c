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
