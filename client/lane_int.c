// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Integers of 32 and 64 bits. Sums wrap at their own width; an average is the sum by the divisor,
 * towards zero. */
#include <string.h>

#include "lane_parts.h"
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
	lane_parts_pack(in, count * sizeof(int32_t), LANE_SIGNS_32, word);
}

static void unpack_pairs(const uint64_t *word, size_t count, const struct lane_terms *terms,
			 void *out)
{
	int32_t *x = out;

	lane_parts_unpack(word, count * sizeof(*x), LANE_SIGNS_32, x);
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] /= terms->divisor;
}

const struct lane lane_int32 = {
	.dtype = TALLY_INT32,
	.element_bytes = 4,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
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
	.bits = 64,
	.number_bits = 64,
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
	.bits = 64,
	.number_bits = 64,
	.pack = pack_int64,
	.unpack = unpack_int64,
};

/* --- uint32: two a word */

static struct lane_need inspect_unsigned(const void *in, size_t count, uint16_t workers)
{
	uint32_t most = UINT32_MAX / workers;
	const uint32_t *x = in;
	uint32_t largest = 0;

	for (size_t i = 0; i < count; i++)
		largest = largest > x[i] ? largest : x[i];
	return (struct lane_need){ .wide = largest > most };
}

static void pack_unsigned(const void *in, size_t count, const struct lane_terms *terms,
			  uint64_t *word)
{
	lane_parts_pack(in, count * sizeof(uint32_t), 0, word);
}

static void unpack_unsigned(const uint64_t *word, size_t count, const struct lane_terms *terms,
			    void *out)
{
	uint32_t *x = out;

	lane_parts_unpack(word, count * sizeof(*x), 0, x);
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] /= terms->divisor;
}

const struct lane lane_uint32 = {
	.dtype = TALLY_UINT32,
	.element_bytes = 4,
	.bits = 32,
	.number_bits = 32,
	.wide = TALLY_LANE_UINT32_WIDE,
	.inspect = inspect_unsigned,
	.pack = pack_unsigned,
	.unpack = unpack_unsigned,
};

/* --- uint32, wide: one a word, as int32 has it */

static void pack_unsigned_wide(const void *restrict in, size_t count,
			       const struct lane_terms *terms, uint64_t *restrict word)
{
	const uint32_t *x = in;

	for (size_t i = 0; i < count; i++)
		word[i] = x[i];
}

static void unpack_unsigned_wide(const uint64_t *restrict word, size_t count,
				 const struct lane_terms *terms, void *restrict out)
{
	uint32_t *x = out;

	for (size_t i = 0; terms->divisor == 1 && i < count; i++)
		x[i] = (uint32_t)word[i];
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] = (uint32_t)((word[i] << 24 >> 24) / terms->divisor);
}

const struct lane lane_uint32_wide = {
	.element_bytes = 4,
	.bits = 64,
	.number_bits = 64,
	.pack = pack_unsigned_wide,
	.unpack = unpack_unsigned_wide,
};

/* --- uint64: one a word */

static void unpack_uint64(const uint64_t *word, size_t count, const struct lane_terms *terms,
			  void *out)
{
	uint64_t *x = out;

	memcpy(x, word, count * sizeof(*word));
	for (size_t i = 0; terms->divisor > 1 && i < count; i++)
		x[i] /= terms->divisor;
}

const struct lane lane_uint64 = {
	.dtype = TALLY_UINT64,
	.element_bytes = 8,
	.bits = 64,
	.number_bits = 64,
	.pack = pack_int64,
	.unpack = unpack_uint64,
};
