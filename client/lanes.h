/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers to words and back (docs/protocol.md, "Lanes"). Pure. Sums of words are sums of
 * numbers, whatever the order; what the numbers of a word carry into each other on the way is
 * undone here, exactly.
 *
 * A lane says how the elements of a chunk lie in words. A family of lanes serves one type of
 * numbers: its narrow lane, which any chunk is sent in first, and, if its values can be such that
 * the narrow lane cannot carry their sum, a wide one. A new family is one new file,
 * client/lane_*.c, and its lines in LANES and in enum tally_lane.
 */
#ifndef TALLY_CLIENT_LANES_H
#define TALLY_CLIENT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>
#include <tally/wire.h>

/* The number on the wire, TALLY_LANE_..., and the object, lane_... */
#define LANES(X)                      \
	X(INT32, int32)               \
	X(INT32_WIDE, int32_wide)     \
	X(INT64, int64)               \
	X(FLOAT32, float32)           \
	X(FLOAT32_WIDE, float32_wide) \
	X(BYTES, bytes)

/* What a block's values ask for. All ranks use the largest scale among them. */
struct lane_need {
	uint8_t scale; /* 0: the lane has none, or all values are zero */
	bool wide; /* only the wide lane carries the sum */
};

/* What all ranks know of a block when they pack it, and when they read its sum. */
struct lane_terms {
	uint8_t scale; /* at least what each rank's lane_need says */
	uint16_t workers;
	uint16_t divisor; /* the result is the sum by this: 1, or the workers */
};

/* A word's numbers, in a sum the sums of those of the contributions. */
enum lane_numbers {
	LANE_HALVES, /* two: the low 32 bits, signed, and what is left, signed */
	LANE_COUNTERS, /* the same, and what is left is unsigned */
	LANE_WORD, /* one, mod 2^64 */
};

struct lane {
	enum tally_dtype dtype; /* 0: not the lane that sums of a dtype begin in */
	uint8_t element_bytes;
	uint8_t elements; /* in a word */
	enum tally_lane wide; /* the family's wide lane; TALLY_LANE_NONE: needs none */
	enum lane_numbers numbers; /* that a word of a sum holds */

	/* NULL: there is one way for all values. */
	struct lane_need (*inspect)(const void *in, size_t count, uint16_t workers);
	/* Fills the words that `count` elements take, and no more. */
	void (*pack)(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word);
	/* Any words and any scale are harmless: they come from the network. */
	void (*unpack)(const uint64_t *word, size_t count, const struct lane_terms *terms,
		       void *out);
};

#define LANE_DECLARE(number, name) extern const struct lane lane_##name;
LANES(LANE_DECLARE)
#undef LANE_DECLARE

/* By its number. NULL: TALLY_LANE_NONE, or there is no such lane. */
const struct lane *lane_at(uint8_t number);

/* The lane that sums of a dtype begin in; TALLY_LANE_NONE: there is no such dtype. */
enum tally_lane lane_of_dtype(enum tally_dtype dtype);

static inline size_t lane_words(const struct lane *l, size_t count)
{
	return (count + l->elements - 1) / l->elements;
}

/* The check word: sum of (2 i + 1) * word[i], mod 2^64. Linear, so checks add like words. */
uint64_t lanes_check(const uint64_t *word, size_t words);

/*
 * Sum of the words' numbers, each times a factor of its own, mod 2^64: factor[2 i] is for that of
 * word[i] or its low half, factor[2 i + 1] for the high half. Linear in the numbers.
 */
uint64_t lanes_weigh(const struct lane *l, const uint64_t *factor, const uint64_t *word,
		     size_t words);

#endif
