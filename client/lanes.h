/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Numbers to words and back (docs/protocol.md, "Lanes"). Pure. Sums of words are sums of
 * numbers, whatever the order; what the lanes of a word carry into each other on the way is
 * undone here, exactly.
 */
#ifndef TALLY_CLIENT_LANES_H
#define TALLY_CLIENT_LANES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Two int32 a word: word = (hi << 32) + sign-extended lo; element 2 i is lo, 2 i + 1 is hi; the
 * hi of an odd count's last word is 0. Exact while the sum of every lo fits int32: one that
 * wraps counts its wraps into its hi, and no receiver can tell (64 bits added mod 2^64 cannot
 * be two sums mod 2^32). So blocks that might wrap go in the wide form.
 */
void lanes_pack_int32(const int32_t *in, size_t count, uint64_t *word);
void lanes_unpack_int32(const uint64_t *word, size_t count, int32_t *out);

/* Is some |x| above (2^31 - 1) / workers, so that a sum might wrap? */
bool lanes_int32_is_wide(const int32_t *in, size_t count, unsigned int workers);

/* One a word, sign-extended. Sums wrap at 32 bits. */
void lanes_pack_int32_wide(const int32_t *in, size_t count, uint64_t *word);
void lanes_unpack_int32_wide(const uint64_t *word, size_t count, int32_t *out);

/*
 * float32 as block floating point. The scale of a block is the smallest s such that every
 * finite |x| of it is below 2^(4 (s - 64)); 0 when all are zero. All workers use the largest
 * scale among them; then q = round-to-nearest-even(x * 2^(bits - 4 (s - 64))) where bits =
 * 30 - ceil(log2(workers)), so that sums of q stay within int32. The bits are the same
 * whatever rounding mode, FTZ or DAZ the process has set.
 */
struct lanes_scale {
	uint8_t scale;  /* 0, or 27 .. 96 */
	bool wide;	   /* has a NaN or an infinity: only the wide form carries them */
};

struct lanes_scale lanes_scale_find(const float *in, size_t count);

/* Non-finite elements and -0.0 go as 0. `scale` is at least that of the block. */
void lanes_pack_float32(const float *in, size_t count, uint8_t scale, unsigned int workers,
			uint64_t *word);
/*
 * Sums times `factor` (1, or 1 / workers) as double, each rounded once to float32; beyond
 * FLT_MAX that is an infinity.
 */
void lanes_unpack_float32(const uint64_t *word, size_t count, uint8_t scale, unsigned int workers,
			  double factor, float *out);

/*
 * One a word, for blocks with NaNs or infinities: bits 0..36 the same q, signed; above it
 * three counters of nine bits each: NaNs (37..45), +inf (46..54), -inf (55..63). A sum with a
 * NaN, or with both infinities, is the quiet NaN 0x7fc00000; with one kind of infinity it is
 * that. With 256 workers a counter may reach 256, which still fits nine bits.
 */
void lanes_pack_float32_wide(const float *in, size_t count, uint8_t scale, unsigned int workers,
			     uint64_t *word);
void lanes_unpack_float32_wide(const uint64_t *word, size_t count, uint8_t scale,
			       unsigned int workers, double factor, float *out);

/* The check word: sum of (2 i + 1) * word[i], mod 2^64. Linear, so checks add like words. */
uint64_t lanes_check(const uint64_t *word, size_t words);

#endif
