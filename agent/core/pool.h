/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where in the pool of borrowed slots the range of a job begins. Pure. */
#ifndef TALLY_AGENT_POOL_H
#define TALLY_AGENT_POOL_H

#include <stdint.h>

/*
 * In the middle of the widest gap between these bases, around a pool of so many slots: while jobs
 * come and go, no base moves, and all lie at about equal distances
 * (docs/decisions/0014-borrowed-slots.md). 0: it is the first one, or there is no pool. A base
 * behind the pool's end, as after a pool was made smaller, counts from the beginning.
 */
uint32_t pool_base(const uint32_t *base, unsigned int count, uint32_t slots);

#endif
