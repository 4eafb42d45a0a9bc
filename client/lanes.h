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
#define LANES(X)                          \
	X(INT32, int32)                   \
	X(INT32_WIDE, int32_wide)         \
	X(INT64, int64)                   \
	X(FLOAT32, float32)               \
	X(FLOAT32_WIDE, float32_wide)     \
	X(BYTES, bytes)                   \
	X(INT8, int8)                     \
	X(INT8_WIDE, int8_wide)           \
	X(INT16, int16)                   \
	X(INT16_WIDE, int16_wide)         \
	X(UINT8, uint8)                   \
	X(UINT8_WIDE, uint8_wide)         \
	X(UINT16, uint16)                 \
	X(UINT16_WIDE, uint16_wide)       \
	X(UINT32, uint32)                 \
	X(UINT32_WIDE, uint32_wide)       \
	X(UINT64, uint64)                 \
	X(BFLOAT16, bfloat16)             \
	X(BFLOAT16_PAIRS, bfloat16_pairs) \
	X(BFLOAT16_WIDE, bfloat16_wide)   \
	X(FLOAT16, float16)               \
	X(FLOAT16_PAIRS, float16_pairs)   \
	X(FLOAT16_WIDE, float16_wide)     \
	X(FLOAT64, float64)               \
	X(FLOAT64_WIDE, float64_wide)     \
	X(FLOAT32_FIXED, float32_fixed)   \
	X(FLOAT64_FIXED, float64_fixed)   \
	X(BFLOAT16_FIXED, bfloat16_fixed) \
	X(FLOAT16_FIXED, float16_fixed)   \
	X(FLOAT32_HALVED, float32_halved) \
	X(FLOAT32_HALVED_WIDE, float32_halved_wide)

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
	int8_t point; /* of a call that has a fixed one; else 0 */
};

enum {
	LANE_NUMBERS_MAX = 8, /* of a word */
	LANE_FACTORS = LANE_NUMBERS_MAX * TALLY_WORDS_MAX, /* of lanes_weigh() */
};

/*
 * Of lanes that can send with their elements what earlier calls lost of them: `kept` has as many
 * floats, which need not be finite; NULL: nothing. With NULL all is as without feedback.
 */
struct lane_feedback {
	struct lane_need (*inspect)(const void *in, const float *kept, size_t count,
				    uint16_t workers); /* NULL in wide lanes */
	void (*pack)(const void *in, const float *kept, size_t count,
		     const struct lane_terms *terms, uint64_t *word);
	/* What pack() does not send of the elements and of `kept`, which may be `lost`: finite. */
	void (*lose)(const void *in, const float *kept, size_t count,
		     const struct lane_terms *terms, float *lost);
};

struct lane {
	enum tally_dtype dtype; /* 0: not a lane that sums of a dtype begin in */
	uint16_t workers_max; /* they do so in jobs of so many workers at most; 0: of any number */
	uint8_t element_bytes;
	uint8_t bits; /* of an element on the wire: 8, 16, 32, 64 or 128 */
	enum tally_lane wide; /* the family's wide lane; TALLY_LANE_NONE: needs none */

	/*
	 * A word of a sum holds 64 / number_bits numbers, the sums of those of the contributions.
	 * Those with a sign have their highest bit in `signs` (lane_parts.h). One of 64 bits is a
	 * sum mod 2^64.
	 */
	uint8_t number_bits; /* 8, 16, 32 or 64 */
	uint64_t signs;

	uint8_t scale_min, scale_max; /* of a block that is not all zero; 0: the lane has none */
	uint8_t scale_first; /* of one below 1: what is guessed of a call that none was like; 0 in
			      * lanes that no call begins in */

	/* NULL: there is one way for all values. */
	struct lane_need (*inspect)(const void *in, size_t count, uint16_t workers);
	/*
	 * The first element that no lane of its call can carry; `count`: there is none. NULL: all
	 * values can be carried.
	 */
	size_t (*misfit)(const void *in, size_t count, const struct lane_terms *terms);
	/* Fills the words that `count` elements take, and no more. */
	void (*pack)(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word);
	/* Any words and any scale are harmless: they come from the network. */
	void (*unpack)(const uint64_t *word, size_t count, const struct lane_terms *terms,
		       void *out);
	const struct lane_feedback *feedback; /* NULL: what is lost is lost */
};

#define LANE_DECLARE(number, name) extern const struct lane lane_##name;
LANES(LANE_DECLARE)
#undef LANE_DECLARE

/* By its number. NULL: TALLY_LANE_NONE, or there is no such lane. */
const struct lane *lane_at(uint8_t number);

/*
 * The lane that sums of a dtype begin in, in a job of so many workers; TALLY_LANE_NONE: there is no
 * such dtype. With a fixed point: whatever the point.
 */
enum tally_lane lane_of_dtype(enum tally_dtype dtype, uint16_t workers);

/* Do values decide how, or whether, a chunk in this lane travels? */
static inline bool lane_asks(const struct lane *l) { return l && (l->inspect || l->misfit); }

/* With a fixed point, |x| must be below 2^this. */
int lane_fixed_below(uint16_t workers, int8_t point);

static inline size_t lane_words(const struct lane *l, size_t count)
{
	return (count * l->bits + 63) / 64;
}

/* The check word: sum of (2 i + 1) * word[i], mod 2^64. Linear, so checks add like words. */
uint64_t lanes_check(const uint64_t *word, size_t words);

/*
 * Sum of the words' numbers, each times a factor of its own, mod 2^64: factor[2 i] and factor[2 i +
 * 1] are for the first two numbers of word[i], from bit 0 on, and factor[2 TALLY_WORDS_MAX + 6 i +
 * n - 2] is for its number n, if there are more. LANE_FACTORS in all. Linear in the numbers.
 */
uint64_t lanes_weigh(const struct lane *l, const uint64_t *factor, const uint64_t *word,
		     size_t words);

#endif
