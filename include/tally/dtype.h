/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a call's elements are, how exactly they are summed, and what is made of the sums. */
#ifndef TALLY_DTYPE_H
#define TALLY_DTYPE_H

/*
 * Types of elements. Sums of integers wrap at their own width. A packet holds as many elements as
 * fit it; where some |x| is above 1 / ranks of what the type can hold, in a packet of integers of
 * less than 64 bits, that packet takes twice the room.
 *
 * Floats: a packet's elements are rounded to whole multiples of one step, on each rank, before they
 * are added, and the sum is rounded to nearest once more at the end. A step is 2^-bits of the least
 * power of two (float32: of 16, float64: of 512) above the largest magnitude M that any rank has in
 * the packet; bits = 30 - log2 N of float32, 62 - log2 N of float64, 15 - log2 N of bfloat16 up to
 * 128 ranks and float16 up to 16 ranks, else 31 - log2 N, where N is the number of ranks, rounded
 * up to a power of two. So a sum is off by half a step a rank at most, and an average by half a
 * step: docs/protocol.md, "Scales", has the bounds in figures. Values much smaller than M suffer,
 * above all in the types of 16 bits; M itself keeps all bits of its type there. A NaN on any rank,
 * or both infinities, give the quiet NaN, one kind of infinity gives that, a sum too large an
 * infinity; a packet with such takes two or four times the room.
 *
 * TALLY_FLOAT32_HALVED is float32 in memory and 16 bits in packets, so twice as many elements fit
 * one. Bits are 15 - log2 N, up to 128 ranks; a step is 2^-bits of the least power of two of which
 * M leaves a step free. A sum is off by half a step a rank at most, which is M / (2^bits - 1): an
 * average of 4 ranks by 2^-13 M, one of 16 by 2^-11 M, one of 128 by 2^-8 M. Values below half a
 * step are 0. What a call takes of a rank's values the next one can add to them: see
 * tally_reduction. In calls that do not sum it is float32.
 */
enum tally_dtype {
	TALLY_INT32 = 1,
	TALLY_INT64 = 2,
	TALLY_FLOAT32 = 3,
	TALLY_INT8 = 4,
	TALLY_INT16 = 5,
	TALLY_UINT8 = 6,
	TALLY_UINT16 = 7,
	TALLY_UINT32 = 8,
	TALLY_UINT64 = 9,
	TALLY_BFLOAT16 = 10, /* the upper half of a float32 */
	TALLY_FLOAT16 = 11, /* of IEEE 754 */
	TALLY_FLOAT64 = 12,
	TALLY_FLOAT32_HALVED = 13,
	TALLY_FIXED_FLAG = 1 << 8, /* of TALLY_FIXED() */
	TALLY_DTYPE_LAST = 0xffffff,
};

/*
 * A type of floats with a binary point, -128 .. 127, as a dtype: each value is rounded to a whole
 * multiple of 2^-point on its rank, and travels as that, in 64 bits; the exact sum of these, by the
 * number of ranks in an average, is rounded once. So an element's result depends on its values on
 * all ranks and on nothing else: it has the same bits in a tensor that is summed whole and in
 * pieces. A sum is off by at most half a step a rank, and not at all where all values are multiples
 * of the step. All ranks must say the same point. |x| must be below 2^(62 - point) / N, where N is
 * the number of ranks, rounded up to a power of two: a call in which some rank has a value beyond
 * that, a NaN or an infinity, ends with -ERANGE on all ranks, and tally_error() names the first
 * such element on the rank that has it; the job goes on. In calls that do not sum it is the type
 * alone.
 */
#define TALLY_FIXED(dtype, point) \
	((enum tally_dtype)((dtype) | TALLY_FIXED_FLAG | ((unsigned int)(point) & 0xff) << 16))

enum tally_op {
	TALLY_SUM = 1,
	TALLY_AVG = 2, /* the sum by the number of ranks; integers towards zero. Of integers of 64
			* bits: the sum that has wrapped; of all shorter ones: the exact sum */
};

#endif
