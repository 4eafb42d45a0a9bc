// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Integers. Sums wrap at their own width; an average is the sum by the divisor, towards zero. */
#include <string.h>

#include "lane_pair.h"
#include "lanes.h"

/* --- int32: two a word */

/* Is some |x| above (2^31 - 1) / workers, so that a sum might wrap? */
static struct lane_need inspect(const void *in, size_t count, uint16_t workers)
{
	int32_t most = INT32_MAX / workers;
	const int32_t *x = in;
	int wide = 0;

	for (size_t i = 0; i < count; i++)
		wide |= (x[i] > most) | (x[i] < -most);
	return (struct lane_need){ .wide = wide };
}

static void pack_pairs(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	lane_pair_pack(in, count, word);
}

static void unpack_pairs(const uint64_t *word, size_t count, const struct lane_terms *terms,
			 void *out)
{
	int32_t *x = out;

	lane_pair_unpack(word, count, x);
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] /= terms->divisor;
}

const struct lane lane_int32 = {
	.dtype = TALLY_INT32,
	.element_bytes = 4,
	.elements = 2,
	.wide = TALLY_LANE_INT32_WIDE,
	.inspect = inspect,
	.pack = pack_pairs,
	.unpack = unpack_pairs,
};

/* --- int32, wide: one a word, sign-extended */

static void pack_wide(const void *restrict in, size_t count, const struct lane_terms *terms,
		      uint64_t *restrict word)
{
	const int32_t *x = in;

	for (size_t i = 0; i < count; i++)
		word[i] = (uint64_t)(int64_t)x[i];
}

/*
 * A word has room for the exact sum, so that an average is right even where the sum would wrap.
 * That of 256 workers fits 40 bits: what is above them says nothing, and nobody can change it.
 */
static void unpack_wide(const uint64_t *restrict word, size_t count, const struct lane_terms *terms,
			void *restrict out)
{
	int32_t *x = out;

	for (size_t i = 0; terms->divisor == 1 && i < count; i++)
		x[i] = (int32_t)(uint32_t)word[i];
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] = (int32_t)(((int64_t)(word[i] << 24) >> 24) / terms->divisor);
}

const struct lane lane_int32_wide = {
	.element_bytes = 4,
	.elements = 1,
	.numbers = LANE_WORD,
	.pack = pack_wide,
	.unpack = unpack_wide,
};

/* --- int64: one a word */

static void pack_int64(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	memcpy(word, in, count * sizeof(*word));
}

static void unpack_int64(const uint64_t *word, size_t count, const struct lane_terms *terms,
			 void *out)
{
	int64_t *x = out;

	memcpy(x, word, count * sizeof(*word));
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] /= terms->divisor;
}

const struct lane lane_int64 = {
	.dtype = TALLY_INT64,
	.element_bytes = 8,
	.elements = 1,
	.numbers = LANE_WORD,
	.pack = pack_int64,
	.unpack = unpack_int64,
};
