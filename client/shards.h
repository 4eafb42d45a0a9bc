/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job with several roots: who sums which elements of a call (docs/decisions/0025). Pure. Each
 * root has a share of the chunks, in one piece: chunks are the same ones whatever the shares, and
 * so are the bits of results.
 */
#ifndef TALLY_CLIENT_SHARDS_H
#define TALLY_CLIENT_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "call.h"

enum {
	SHARDS_MAX = 16, /* roots of a job */
	SHARE_MAX = 1000,
};

/* The roots of a job, in their order: the same on all ranks. */
struct shards {
	unsigned int count; /* 1 .. SHARDS_MAX */
	struct {
		uint32_t job;
		uint16_t epoch;
		uint16_t share; /* 1 .. SHARE_MAX: so many parts of the sum of all */
		uint64_t nonce; /* of the run, if an agent gave one; else 0 */
	} root[SHARDS_MAX];
};

/*
 * The part of a call at root `which`: elements of each rank's part in reduce_scatter and
 * all_gather. There may be none. What has so many elements that call_init() refuses it is the first
 * root's.
 */
struct call_options shards_part(const struct shards *s, unsigned int which, uint16_t payload_bytes,
				uint16_t workers, const struct call_options *whole);

/*
 * What ranks must agree in at root `which` (engine.h): 0 where there is one root. Bits 0 to 3 are
 * `which`, bits 4 to 7 the number of roots less 1, all others a hash of all roots.
 */
uint64_t shards_agreement(const struct shards *s, unsigned int which);

#endif
