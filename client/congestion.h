/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many chunks may be in flight now, up to the W of the run, and how fast they may leave: what
 * a window concludes of the network from round trips, losses and marks. Pure; time is an argument
 * in nanoseconds and never goes back. Why it is so: docs/decisions/0037.
 *
 * A network has a base round trip, the shortest that was seen; what round trips have beyond it is a
 * queue, or a late rank. Without a queue the window doubles in a round trip; with one, it grows
 * as TCP's cubic does beside it. A mark makes it smaller, and so does a loss where there is a
 * queue; but losses leave it what the base round trip needs at the rate of late, so that those that
 * come by chance cost nothing, and neither does a late rank.
 */
#ifndef TALLY_CLIENT_CONGESTION_H
#define TALLY_CLIENT_CONGESTION_H

#include <stdbool.h>
#include <stdint.h>

enum {
	CONGESTION_FIRST = 10, /* chunks, at the beginning */
	CONGESTION_LEAST = 4, /* and at any time */
	CONGESTION_BURST_MAX = 32, /* chunks at once that no results make room for */
	CONGESTION_QUEUE = 128, /* chunks that such bursts of all ranks together may have */
	CONGESTION_STANDING_NS = 5 * 1000 * 1000, /* a queue that keeps others waiting (CoDel's) */
	CONGESTION_RISE_NS = 200 * 1000, /* so much is no queue, and neither is base / 8 */
	CONGESTION_ONE = 1024, /* a chunk, in the unit of windows, credit and shares */
};

/* From results, since the last one that brought a chunk that had left after this began. */
struct congestion_round {
	uint64_t began_ns;
	uint64_t rtt_ns; /* the shortest; 0: no sample */
	uint64_t gap_ns; /* the longest without a result, while some were awaited */
	uint32_t samples, results, marked;
	bool limited; /* chunks waited for the window */
};

struct congestion {
	bool on;
	uint32_t window_max, burst; /* chunks */
	uint64_t window; /* CONGESTION_ONE: a chunk */
	uint64_t calm; /* so large it was after the latest cut: below, it doubles */
	uint64_t base_ns; /* the shortest round trip; 0: none yet */
	uint64_t rtt_ns; /* smoothed */
	uint64_t gap_before_ns; /* gap_ns of the round before */
	uint64_t heard_ns; /* the latest result; or since then, none was awaited before */
	struct congestion_round round, last; /* last: the latest one with samples */
	uint32_t blind; /* rounds since then */
	uint64_t peak_ns; /* the longest of rounds' round trips while the window is at its end, */
	uint32_t stood; /* and a queue stands, for so many rounds */
	uint64_t rate[2]; /* the most results in a millisecond in rounds of late, and before */
	uint32_t rounds; /* in rate[0]: those that the window limited */
	uint32_t lossy; /* smoothed: what is lost, of the square of CONGESTION_ONE */
	uint32_t marks; /* smoothed: what is marked, of CONGESTION_ONE */
	uint64_t cut_ns; /* what left before knows nothing of the latest cut */
	uint64_t credit, credit_ns; /* so much may leave at once; as it was then */
	uint64_t cuts; /* of the window */
};

/* What a result says. */
struct congestion_result {
	uint64_t sent_ns; /* its contribution, the last time */
	bool once; /* it was sent once: its round trip is known */
	bool marked;
};

/* `on` false: nothing is held back but by window_max. */
void congestion_init(struct congestion *c, bool on, uint32_t window_max, uint16_t workers);

/* A result has come. */
void congestion_result(struct congestion *c, const struct congestion_result *r, uint64_t now_ns);

/* A contribution of this rank or its copy of the result was lost that left at sent_ns. */
void congestion_lost(struct congestion *c, uint64_t sent_ns, uint64_t now_ns);

/* Something is to be sent for the first time, and `flying` chunks are in flight: may it leave? */
bool congestion_admits(struct congestion *c, uint32_t flying, uint64_t now_ns);

/* It has, beside `flying` others; or there was no room for it after all. */
void congestion_sent(struct congestion *c, uint32_t flying, uint64_t now_ns);
void congestion_unsent(struct congestion *c);

/* Nothing more is to be sent now: results made room for what has left, not for what comes later. */
void congestion_rest(struct congestion *c);

/* When what congestion_admits() held back may leave, if no result comes; UINT64_MAX: only then. */
uint64_t congestion_wakeup(const struct congestion *c, uint32_t flying);

/* Chunks that may be in flight now. */
uint32_t congestion_window(const struct congestion *c);

#endif
