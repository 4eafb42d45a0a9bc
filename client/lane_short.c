// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Integers of 8 and 16 bits, with and without sign, as many a word as there is room for. Sums wrap
 * at their own width; an average is the exact sum by the divisor, towards zero. A block whose sums
 * might not fit goes in the wide lane, in which an element has twice the bits: the sums of 256
 * ranks always fit those.
 *
 * Where the narrow lane could carry nothing but zeros, sums begin in the wide one.
 *
 * All functions are the same for all four types, and are inlined with `kind` known.
 */
#include <string.h>

#include "lane_parts.h"
#include "lanes.h"

#define INLINE static inline __attribute__((always_inline))

enum {
	TILE = 64, /* elements on their way between two vector loops */
};

enum kind {
	INT8,
	UINT8,
	INT16,
	UINT16,
	INT32, /* sums of 16 bits, with or without sign: 24 bits are in use */
};

static const struct {
	uint8_t bytes;
	bool is_signed;
	uint64_t signs; /* of a word */
	int32_t most;
	enum kind sum; /* of the wide lane */
} kinds[] = {
	[INT8] = { 1, true, LANE_SIGNS_8, INT8_MAX, INT16 },
	[UINT8] = { 1, false, 0, UINT8_MAX, UINT16 },
	[INT16] = { 2, true, LANE_SIGNS_16, INT16_MAX, INT32 },
	[UINT16] = { 2, false, 0, UINT16_MAX, INT32 },
	[INT32] = { 4, true, LANE_SIGNS_32, INT32_MAX, INT32 },
};

/* A tile of any kind. */
union tile {
	int8_t int8[TILE];
	int16_t int16[TILE];
	int32_t int32[TILE];
};

INLINE int32_t get(enum kind kind, const void *in, size_t i)
{
	switch (kind) {
	case INT8:
		return ((const int8_t *)in)[i];
	case UINT8:
		return ((const uint8_t *)in)[i];
	case INT16:
		return ((const int16_t *)in)[i];
	case UINT16:
		return ((const uint16_t *)in)[i];
	default:
		return ((const int32_t *)in)[i];
	}
}

/* Mod 2^8 or 2^16, or as it is. */
INLINE void put(enum kind kind, void *out, size_t i, int32_t x)
{
	if (kinds[kind].bytes == 1)
		((int8_t *)out)[i] = (int8_t)x;
	else if (kinds[kind].bytes == 2)
		((int16_t *)out)[i] = (int16_t)x;
	else
		((int32_t *)out)[i] = x;
}

INLINE void convert(enum kind from, const void *restrict in, size_t count, enum kind to,
		    void *restrict out)
{
	for (size_t i = 0; i < count; i++)
		put(to, out, i, get(from, in, i));
}

/*
 * Towards zero, without a division for each: |sum| is below 2^24 and the divisor at most 256, so
 * that a multiplication by 2^32 / divisor, rounded up, is off by less than 1 / divisor.
 */
INLINE void divide(enum kind kind, const void *in, size_t count, uint16_t divisor, enum kind to,
		   void *out)
{
	uint64_t inverse = (UINT64_C(1) << 32) / divisor + 1;

	for (size_t i = 0; i < count; i++) {
		int32_t sum = get(kind, in, i);
		uint32_t magnitude = sum < 0 ? -(uint32_t)sum : (uint32_t)sum;
		int32_t quotient = (int32_t)(magnitude * inverse >> 32);

		put(to, out, i, sum < 0 ? -quotient : quotient);
	}
}

/* Is some |x| so large that a sum might wrap? */
INLINE struct lane_need inspect_any(enum kind kind, const void *in, size_t count, uint16_t workers)
{
	int32_t most = kinds[kind].most / workers;
	int wide = 0;

	for (size_t i = 0; i < count; i++)
		wide |= (get(kind, in, i) > most) | (get(kind, in, i) < -most);
	return (struct lane_need){ .wide = wide };
}

INLINE void pack_any(enum kind kind, const void *in, size_t count, uint64_t *word)
{
	lane_parts_pack(in, count * kinds[kind].bytes, kinds[kind].signs, word);
}

INLINE void unpack_any(enum kind kind, const uint64_t *word, size_t count, uint16_t divisor,
		       void *out)
{
	lane_parts_unpack(word, count * kinds[kind].bytes, kinds[kind].signs, out);
	if (divisor > 1)
		divide(kind, out, count, divisor, kind, out);
}

INLINE void pack_wide_any(enum kind kind, const void *in, size_t count, uint64_t *word)
{
	enum kind wide = kinds[kind].sum;
	size_t bytes = kinds[wide].bytes;
	union tile tile;

	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;

		convert(kind, (const uint8_t *)in + at * kinds[kind].bytes, n, wide, &tile);
		lane_parts_pack(&tile, n * bytes, kinds[wide].signs, word + at * bytes / 8);
	}
}

INLINE void unpack_wide_any(enum kind kind, const uint64_t *word, size_t count, uint16_t divisor,
			    void *out)
{
	enum kind wide = kinds[kind].sum;
	size_t bytes = kinds[wide].bytes;
	union tile tile = { .int32 = { 0 } };

	for (size_t at = 0; at < count; at += TILE) {
		size_t n = count - at < TILE ? count - at : TILE;
		uint8_t *to = (uint8_t *)out + at * kinds[kind].bytes;

		lane_parts_unpack(word + at * bytes / 8, n * bytes, kinds[wide].signs, &tile);
		if (divisor > 1)
			divide(wide, &tile, n, divisor, kind, to);
		else
			convert(wide, &tile, n, kind, to);
	}
}

/* What a lane calls, of one kind. */
#define FUNCTIONS(name, kind)                                                                      \
	static struct lane_need inspect_##name(const void *in, size_t count, uint16_t workers)     \
	{                                                                                          \
		return inspect_any(kind, in, count, workers);                                      \
	}                                                                                          \
	static void pack_##name(const void *in, size_t count, const struct lane_terms *terms,      \
				uint64_t *word)                                                    \
	{                                                                                          \
		pack_any(kind, in, count, word);                                                   \
	}                                                                                          \
	static void unpack_##name(const uint64_t *word, size_t count,                              \
				  const struct lane_terms *terms, void *out)                       \
	{                                                                                          \
		unpack_any(kind, word, count, terms->divisor, out);                                \
	}                                                                                          \
	static void pack_wide_##name(const void *in, size_t count, const struct lane_terms *terms, \
				     uint64_t *word)                                               \
	{                                                                                          \
		pack_wide_any(kind, in, count, word);                                              \
	}                                                                                          \
	static void unpack_wide_##name(const uint64_t *word, size_t count,                         \
				       const struct lane_terms *terms, void *out)                  \
	{                                                                                          \
		unpack_wide_any(kind, word, count, terms->divisor, out);                           \
	}

FUNCTIONS(int8, INT8)
FUNCTIONS(uint8, UINT8)
FUNCTIONS(int16, INT16)
FUNCTIONS(uint16, UINT16)

const struct lane lane_int8 = {
	.dtype = TALLY_INT8,
	.workers_max = INT8_MAX,
	.element_bytes = 1,
	.bits = 8,
	.number_bits = 8,
	.signs = LANE_SIGNS_8,
	.wide = TALLY_LANE_INT8_WIDE,
	.inspect = inspect_int8,
	.pack = pack_int8,
	.unpack = unpack_int8,
};

const struct lane lane_int8_wide = {
	.dtype = TALLY_INT8,
	.element_bytes = 1,
	.bits = 16,
	.number_bits = 16,
	.signs = LANE_SIGNS_16,
	.pack = pack_wide_int8,
	.unpack = unpack_wide_int8,
};

const struct lane lane_uint8 = {
	.dtype = TALLY_UINT8,
	.workers_max = UINT8_MAX,
	.element_bytes = 1,
	.bits = 8,
	.number_bits = 8,
	.wide = TALLY_LANE_UINT8_WIDE,
	.inspect = inspect_uint8,
	.pack = pack_uint8,
	.unpack = unpack_uint8,
};

const struct lane lane_uint8_wide = {
	.dtype = TALLY_UINT8,
	.element_bytes = 1,
	.bits = 16,
	.number_bits = 16,
	.pack = pack_wide_uint8,
	.unpack = unpack_wide_uint8,
};

const struct lane lane_int16 = {
	.dtype = TALLY_INT16,
	.element_bytes = 2,
	.bits = 16,
	.number_bits = 16,
	.signs = LANE_SIGNS_16,
	.wide = TALLY_LANE_INT16_WIDE,
	.inspect = inspect_int16,
	.pack = pack_int16,
	.unpack = unpack_int16,
};

const struct lane lane_int16_wide = {
	.element_bytes = 2,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
	.pack = pack_wide_int16,
	.unpack = unpack_wide_int16,
};

const struct lane lane_uint16 = {
	.dtype = TALLY_UINT16,
	.element_bytes = 2,
	.bits = 16,
	.number_bits = 16,
	.wide = TALLY_LANE_UINT16_WIDE,
	.inspect = inspect_uint16,
	.pack = pack_uint16,
	.unpack = unpack_uint16,
};

const struct lane lane_uint16_wide = {
	.element_bytes = 2,
	.bits = 32,
	.number_bits = 32,
	.signs = LANE_SIGNS_32,
	.pack = pack_wide_uint16,
	.unpack = unpack_wide_uint16,
};
