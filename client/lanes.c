// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lanes.h"
#include "lane_float.h"
#include "lane_vectors.h"

#define LANE_ENTRY(number, name) [TALLY_LANE_##number] = &lane_##name,
static const struct lane *const lanes[] = { LANES(LANE_ENTRY) };

enum {
	LANES_END = sizeof(lanes) / sizeof(lanes[0]),
};

const struct lane *lane_at(uint8_t number) { return number < LANES_END ? lanes[number] : NULL; }

enum tally_lane lane_of_dtype(enum tally_dtype dtype, uint16_t workers)
{
	if (dtype & TALLY_FIXED_FLAG && dtype <= TALLY_DTYPE_LAST)
		dtype &= TALLY_FIXED_FLAG | (TALLY_FIXED_FLAG - 1);
	for (int number = TALLY_LANE_NONE + 1; number < LANES_END; number++) {
		const struct lane *l = lanes[number];

		if (dtype && l->dtype == dtype && (!l->workers_max || workers <= l->workers_max))
			return number;
	}
	return TALLY_LANE_NONE;
}

int lane_fixed_below(uint16_t workers, int8_t point)
{
	return 62 - float_headroom(workers) - point;
}

uint64_t lanes_check(const uint64_t *word, size_t words)
{
	return lane_vectors()->check(word, words);
}

static uint64_t weigh_words(const uint64_t *factor, const uint64_t *word, size_t words)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < words; i++)
		sum += factor[2 * i] * word[i];
	return sum;
}

/*
 * What a negative number has borrowed from the one above it comes back by adding `signs`. Inlined
 * with `numbers` known, so that nothing is left of the inner loop.
 */
static inline __attribute__((always_inline)) uint64_t weigh_numbers(const uint64_t *factor,
								    const uint64_t *word,
								    size_t words, uint64_t signs,
								    unsigned int numbers)
{
	const unsigned int bits = 64 / numbers;
	const uint64_t mask = (UINT64_C(1) << bits) - 1;
	const uint64_t *more = factor + (size_t)2 * TALLY_WORDS_MAX;
	uint64_t sum = 0;

	for (size_t i = 0; i < words; i++) {
		uint64_t parts = word[i] + signs;

		for (unsigned int n = 0; n < numbers; n++) {
			uint64_t number = (parts >> n * bits & mask) - (signs >> n * bits & mask);

			sum += number * (n < 2 ? factor[2 * i + n]
					       : more[(LANE_NUMBERS_MAX - 2) * i + n - 2]);
		}
	}
	return sum;
}

uint64_t lanes_weigh(const struct lane *l, const uint64_t *factor, const uint64_t *word,
		     size_t words)
{
	switch (l->number_bits) {
	case 8:
		return weigh_numbers(factor, word, words, l->signs, 8);
	case 16:
		return weigh_numbers(factor, word, words, l->signs, 4);
	case 32:
		return weigh_numbers(factor, word, words, l->signs, 2);
	default:
		return weigh_words(factor, word, words);
	}
}
