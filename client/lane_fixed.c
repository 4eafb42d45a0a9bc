// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Floats with a binary point that the call says: one a word, q = round-to-nearest-even(x *
 * 2^point). A result is the sum of q by the divisor, times 2^-point, rounded once. So it depends on
 * the N values of its element and on nothing else. A rank can send |x| < 2^(62 -
 * ceil(log2(workers)) - point), so that sums of q fit, and nothing that is not finite. All of it is
 * integer arithmetic, and the same for all types.
 */
#include "lane_float.h"
#include "lanes.h"

#define INLINE static inline __attribute__((always_inline))

static const struct float_format bfloat16 = { 2, 7, 255 }, float16 = { 2, 10, 31 },
				 float32 = { 4, 23, 255 }, float64 = { 8, 52, 2047 };

INLINE size_t misfit_any(const struct float_format *f, const void *in, size_t count,
			 const struct lane_terms *terms)
{
	int below = lane_fixed_below(terms->workers, terms->point);

	for (size_t i = 0; i < count; i++) {
		uint64_t magnitude = float_get(f, in, i) & ~float_sign(f);

		if (magnitude >= float_infinity(f) ||
		    (magnitude && float_below(f, magnitude) > below))
			return i;
	}
	return count;
}

INLINE void pack_any(const struct float_format *f, const void *in, size_t count,
		     const struct lane_terms *terms, uint64_t *word)
{
	for (size_t i = 0; i < count; i++)
		word[i] = (uint64_t)float_quantise(f, float_get(f, in, i), terms->point);
}

INLINE void unpack_any(const struct float_format *f, const uint64_t *word, size_t count,
		       const struct lane_terms *terms, void *out)
{
	for (size_t i = 0; i < count; i++)
		float_put(f, out, i,
			  float_result(f, (int64_t)word[i], terms->divisor, -terms->point));
}

#define LANE(type, TYPE, size)                                                                    \
	static size_t misfit_##type(const void *in, size_t count, const struct lane_terms *terms) \
	{                                                                                         \
		return misfit_any(&type, in, count, terms);                                       \
	}                                                                                         \
	static void pack_##type(const void *in, size_t count, const struct lane_terms *terms,     \
				uint64_t *word)                                                   \
	{                                                                                         \
		pack_any(&type, in, count, terms, word);                                          \
	}                                                                                         \
	static void unpack_##type(const uint64_t *word, size_t count,                             \
				  const struct lane_terms *terms, void *out)                      \
	{                                                                                         \
		unpack_any(&type, word, count, terms, out);                                       \
	}                                                                                         \
	const struct lane lane_##type##_fixed = {                                                 \
		.dtype = TALLY_FIXED(TYPE, 0),                                                    \
		.element_bytes = size,                                                            \
		.bits = 64,                                                                       \
		.number_bits = 64,                                                                \
		.misfit = misfit_##type,                                                          \
		.pack = pack_##type,                                                              \
		.unpack = unpack_##type,                                                          \
	};

LANE(float32, TALLY_FLOAT32, 4)
LANE(float64, TALLY_FLOAT64, 8)
LANE(bfloat16, TALLY_BFLOAT16, 2)
LANE(float16, TALLY_FLOAT16, 2)
