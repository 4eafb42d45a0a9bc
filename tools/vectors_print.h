/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the page shows of messages and numbers, on standard output. */
#ifndef TALLY_TOOLS_VECTORS_PRINT_H
#define TALLY_TOOLS_VECTORS_PRINT_H

#include "vectors_world.h"

enum {
	/* What is shown of a chunk. */
	NOTHING = 0,
	RANK_0 = 1,
	RANK_1 = 2,
	RESULT = 8,
	ALL = 15,
};

extern __u64 vectors_nonce; /* of the run; 0 in the opening */

void frame_print(const struct message *m, const char *caption);

/* The one of all places of which this may be a contribution. */
__u64 place_of(const struct message *m, int rank);

/* Of a chunk of the last call, the contributions of the ranks in `shown`, and the result. */
void chunk_print(uint32_t i, unsigned int shown);

void values_print(const char *who, const void *values, enum tally_dtype dtype, size_t count);

#endif
