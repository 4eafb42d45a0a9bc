/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sets of ranks as text: "0-3,7". Pure. */
#ifndef TALLY_COMMON_RANKS_H
#define TALLY_COMMON_RANKS_H

#include <stddef.h>
#include <tally/set.h>

enum {
	RANKS_BYTES = 768, /* fits any printed set of ranks, with its end */
};

/* Ranks below TALLY_WORKERS_MAX, in any order, also named twice. -EINVAL: no such text. */
int ranks_parse(const char *text, struct tally_set *ret);

/* The same in order; empty for no rank. Cut if `size` is below RANKS_BYTES. */
void ranks_print(const struct tally_set *ranks, char *text, size_t size);

unsigned int ranks_count(const struct tally_set *ranks);

#endif
