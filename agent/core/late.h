/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks that the others of a run wait for. Pure: the caller looks into the run's slots some times a
 * second, and says what it has read.
 *
 * A look (late_look()) reads the newest slot, and LATE_SLOTS - 1 of the window behind it. Those of
 * the newest call count. A rank **is missing** in the look if in more than a third of them nobody
 * else is missing, or nearly nobody: at most a fourth of those that the node sums up, and at most
 * four. So the rank is a third of a window, or of a short call, behind all others, who can do no
 * more.
 *
 * A rank is missing in a **part** of the last LATE_LOOKS looks: the part of the time in which the
 * others wait for it. Ranks that are alike take turns: two of them are missing in up to half of the
 * looks each. So what counts is by how much a rank's part is above the median of all ranks' (of
 * two, the lower one). It is **late** from LATE_BEGINS percent of the looks on, until it is below
 * LATE_ENDS. As long as a run has not had LATE_LOOKS_MIN looks, none is.
 *
 * What looks cannot tell: by how much a late rank is slower. Of ranks that send all the time, the
 * slowest one is as late where the others could send a little more as where they could send ten
 * times as much.
 */
#ifndef TALLY_AGENT_LATE_H
#define TALLY_AGENT_LATE_H

#include <stdbool.h>
#include <stdint.h>
#include <tally/slot.h>

#include "installation.h"

enum {
	LATE_SLOTS = 9,
	LATE_LOOKS = 100,
	LATE_LOOKS_MIN = 30,
	LATE_BEGINS = 50, /* percent of the looks, above the median */
	LATE_ENDS = 25,
	LATE_EVERY_MS = 100, /* from one look at a run to the next one */
	LATE_READS_MAX =
		32, /* slots that one look reads, those on the way to the newest included */
	LATE_RANKS_MAX = 8, /* of a run that are told: the first ones */
};

/* What is known of one run at this node; zeros: no look yet. */
struct late {
	struct tally_set missing[LATE_LOOKS]; /* a ring */
	uint16_t looks[TALLY_WORKERS_MAX]; /* of these, in which the rank is missing */
	unsigned int count, next; /* of the looks */
	struct tally_set late;
};

/* Books of slot `index` of the ring, without its sum. 0, or a negative errno. */
typedef int late_read(void *context, uint32_t index, struct tally_slot_state *ret);

/*
 * Looks at a run whose ring has slot_mask + 1 slots, of a node that adds up `below` as its role
 * says; `draw` are LATE_SLOTS random numbers. *ret_late: ranks that have become late by this. A
 * negative errno: that of `read`, and nothing has changed.
 */
int late_look(struct late *l, const struct tally_job *job, const struct installation_role *role,
	      const uint64_t draw[LATE_SLOTS], late_read *read, void *context,
	      struct tally_set *ret_late);

struct late_rank {
	uint16_t rank;
	uint8_t percent; /* of the looks */
};

/* Who is late, by rank; how many. */
unsigned int late_ranks(const struct late *l, struct late_rank ret[LATE_RANKS_MAX]);

#endif
