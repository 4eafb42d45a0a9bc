/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The payload of a job's next run, where nobody has asked for one: the largest that all of its ways
 * carry, as far as workers and ports say, and never less than the one that fits an MTU of 1500
 * (docs/joining.md#payloads). Pure.
 */
#ifndef TALLY_AGENT_PAYLOAD_H
#define TALLY_AGENT_PAYLOAD_H

#include "job.h"

/*
 * Of a job that all ranks wait for. Where all come from a run that is to go on here, it is that
 * one's: -EMSGSIZE, and why, if a way to a worker does not carry it. Otherwise a way that is not
 * known counts as one of MTU 1500.
 */
int payload_find(const struct job *j, uint16_t *ret, struct why *why);

/* The same by the next hops of all copies, which are known by now; `g` gets it, too. */
void payload_follow_hops(struct job *j, struct installation *g);

/*
 * Does what the worker who waits as this rank says of its way carry the run that it is in?
 * -EMSGSIZE, and why not.
 */
int payload_check(const struct job *j, uint16_t rank, struct why *why);

/* That is so, or a port does not carry it. Of a job whose workers are in no run, nothing. */
void payload_unfit(struct job *j, const struct why *why, uint64_t now_ns);

#endif
