/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How urgent a call is, for nodes where slots are scarce (docs/decisions/0014), pure. A job gains
 * by slots what it communicates for, so a job that communicates more than it computes comes first;
 * then one that ends soon; and inside a job the layer that the next forward pass needs first. The
 * ingredients are ESA's. The form is a reconstruction, since the paper's text has none:
 *
 *	P = (communication / computation) * (1 s / remaining) * w(layer)
 *	w = 1 of the first layer .. 1/2 of the last
 *	priority = round(8 log2(P / P_min)), 1 .. 255
 *
 * So eight steps are a factor of two, and halving a priority is the square root of P. Nodes take
 * of it what the job's tenant may have (tally/borrowed.h).
 */
#ifndef TALLY_CLIENT_PRIORITY_H
#define TALLY_CLIENT_PRIORITY_H

#include <stdint.h>

#include <tally/tally.h>

/* What the job's time goes to, as this worker sees it: means of the last calls, in nanoseconds. */
struct priority_meter {
	uint64_t now_ns, busy_ns; /* when last measured; 0: not yet */
	double communication, computation;
};

/*
 * A call starts now, and calls have run for `busy_ns` altogether. `now_ns` never goes back.
 */
void priority_measure(struct priority_meter *m, uint64_t now_ns, uint64_t busy_ns);

/* 1 .. 255. `hints`: what the program has said; zeros: nothing, the middle of each range. */
uint8_t priority_of(const struct priority_meter *m, const struct tally_hints *hints);

#endif
