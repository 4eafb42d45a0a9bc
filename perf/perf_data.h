/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What tally-perf sends, and what has to come back. Pure. Every element is a function of the
 * iteration, the rank and its index, so that each rank can work out what the others sent.
 */
#ifndef TALLY_PERF_DATA_H
#define TALLY_PERF_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>

struct perf_data {
	enum tally_dtype dtype;
	bool wild; /* integers that wrap; floats of all magnitudes, subnormals, zeros */
	bool nonfinite; /* some NaNs and infinities */
	uint8_t point; /* of floats, TALLY_FIXED(); 0: none */
	bool feedback; /* of tame halved floats: each call sends what the one before has lost */
	uint32_t iteration;
};

/* What a check found: how many elements are wrong, and which one is the first. */
struct perf_verdict {
	size_t wrong;
	size_t first;
	char text[160]; /* of the first: "is 1.5, should be 2" */
};

size_t perf_element_bytes(enum tally_dtype dtype);
bool perf_is_float(enum tally_dtype dtype);

/* With its point. */
enum tally_dtype perf_dtype(const struct perf_data *d);

/* Elements first .. first + count - 1 of a rank. */
void perf_fill(const struct perf_data *d, unsigned int rank, size_t first, size_t count, void *out);

/*
 * Is `out` the reduction over all ranks of these elements? Integers: exactly. Floats: within
 * the error bound of docs/protocol.md around a float64 sum, with the scale that the largest
 * element of any packet around would have; NaNs and infinities: the very bits.
 */
void perf_check_reduced(const struct perf_data *d, unsigned int workers, enum tally_op op,
			size_t first, size_t count, const void *out, struct perf_verdict *ret);

/* Are these the rank's elements, bit for bit? Adds to *ret, whose `first` counts from `at`. */
void perf_check_copied(const struct perf_data *d, unsigned int rank, size_t count, size_t at,
		       const void *out, struct perf_verdict *ret);

/* FNV-1a; start with PERF_HASH_EMPTY. */
#define PERF_HASH_EMPTY UINT64_C(0xcbf29ce484222325)
uint64_t perf_hash(uint64_t hash, const void *bytes, size_t length);

#endif
