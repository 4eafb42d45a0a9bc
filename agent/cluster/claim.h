/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether this agent is the one that the cluster knows by its node's name: two agents with the same
 * name would both be the root of the jobs that are placed there. Whose the name is, the store says:
 * that agent's whose report is there, as long as it is. Pure.
 */
#ifndef TALLY_CLUSTER_CLAIM_H
#define TALLY_CLUSTER_CLAIM_H

#include "report.h"

/* Zeros but for `agent`: nothing is known yet. */
struct claim {
	char agent[REPORT_AGENT_BYTES]; /* who this one is, before and after a restart */
	bool is_ours; /* its report was the last one there */
	bool is_others; /* another agent's is there now */
	uint64_t revision; /* of the key, for the next write; 0: it is not there */
	uint64_t told; /* the same, as the store has told it last */
};

/*
 * The store says this of the key. `r`: as it is understood, or NULL; `revision` 0: the key is not
 * there. `anew`: it may be lower than before. True: `is_others` is not what it was.
 *
 * A report without an agent is of an earlier tallyd, and what is not understood is nobody's: the
 * next one takes its place.
 */
bool claim_told(struct claim *c, const struct report *r, uint64_t revision, bool anew);

/* This agent's own report was written: means nothing if what came after it was told before. */
void claim_written(struct claim *c, uint64_t revision);

/* It was not: the key is not what the write has seen. The next one goes by what was told. */
void claim_refused(struct claim *c);

/* "another agent reports as node n1 (at 10.77.0.2): ..." of that agent's report. */
void claim_say(const struct report *others, struct why *ret);

#endif
