/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where rings of slots lie on a node. Pure. Each ring has a power of two slots and begins at a
 * multiple of its own size, as blocks do in Knuth's buddy system (The Art of Computer Programming,
 * 2.5). So wherever there are enough free slots, rings can be moved until a ring fits. Rings that
 * lie elsewhere, as an older agent put them, are tolerated.
 */
#ifndef TALLY_AGENT_RINGS_H
#define TALLY_AGENT_RINGS_H

#include <stdbool.h>
#include <stdint.h>

#define RINGS_NONE UINT32_MAX

struct ring {
	uint32_t base; /* its first slot */
	uint32_t slots; /* at least 1; base + slots may be up to 2^32 */
	bool fixed; /* it stays where it is */
};

/*
 * Where a ring of `wanted` slots (a power of two) goes on a node of so many slots: into the
 * smallest hole in which one fits; of several, the first. A hole is what is free from a multiple of
 * its own size, a power of two. `ring` is by base. RINGS_NONE: there is none.
 */
uint32_t rings_place(const struct ring *ring, unsigned int count, uint32_t slots, uint32_t wanted);

/*
 * Moves rings until rings_place() finds place for `wanted` slots: as few as are found within a
 * bounded search, and of as few the smallest. `ring` is in any order; in *ret_base each has its
 * place, most of them that which it has; the caller's to free(). Returns how many move; 0: none
 * needs to. -ENOSPC: it cannot be done; -ENOMEM.
 */
int rings_make_room(const struct ring *ring, unsigned int count, uint32_t slots, uint32_t wanted,
		    uint32_t **ret_base);

#endif
