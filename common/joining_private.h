/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What joining*.c share. Nobody else includes this. */
#ifndef TALLY_COMMON_JOINING_PRIVATE_H
#define TALLY_COMMON_JOINING_PRIVATE_H

#include "joining.h"
#include "lines.h"

extern const struct keys joining_challenge_keys; /* of an agent's greeting */

/* Both sides are named: whoever reads this must know which one to upgrade. */
int joining_version_check(struct lines *l, const char *speaker, const char *listener);

/* All lines up to an empty one. */
int joining_rows_take(struct lines *l, const struct keys *keys, void *into);

#endif
