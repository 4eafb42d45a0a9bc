/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * May datagrams go in runs, each as one segmented send? Pure. There are paths where such a run
 * arrives as one frame, which the node drops (generic XDP): then every chunk of every run is lost,
 * and gets through when it is sent again, alone. No loss, late rank or needless retransmission
 * looks like that for long: some chunk of some run comes through at once. One is enough to go on;
 * where none does, runs pause, and then a small one tries whether the path has changed.
 */
#ifndef TALLY_CLIENT_SEGMENTS_H
#define TALLY_CLIENT_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "window.h"

enum {
	SEGMENTS_MAX = 40, /* datagrams of a run: 40 * 1,472 bytes fit a datagram's 65,507 */
	SEGMENTS_TRIED = 4, /* of one that tries the path */
	SEGMENTS_PAUSE_MIN = 256, /* fresh datagrams between two of these */
	SEGMENTS_PAUSE_MAX = 65536,
};

struct segments {
	bool paused;
	uint64_t limit; /* chunks of runs that may be swallowed in a row */
	uint64_t swallowed; /* have been */
	struct window_runs judged; /* as it was then */
	uint32_t pause, left; /* fresh datagrams from one trial to the next; before the next */
	uint32_t random;
};

/* `random`: another one for each rank, whose trials must not fail because others' fail. */
void segments_init(struct segments *s, size_t limit, uint32_t random);

/* Of `n` fresh datagrams that can go as one, so many may, and will: at least one. */
size_t segments_allow(struct segments *s, size_t n);

/* The system did not take a run. */
void segments_refused(struct segments *s);

/* How runs have fared until now. */
void segments_judge(struct segments *s, const struct window_runs *now);

#endif
