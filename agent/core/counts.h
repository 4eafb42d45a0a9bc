/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the core counts for Prometheus, since its start: docs/metrics.md. */
#ifndef TALLY_AGENT_COUNTS_H
#define TALLY_AGENT_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

/* Why a worker may not join: a name in C, and the label. */
#define CORE_JOIN_REFUSALS(X)                                                \
	X(TOKEN, "token") /* no such job, or a wrong token */                \
	X(SLOWED, "slowed") /* too many of these came from there */          \
	X(RANK, "rank") /* taken, or the job has no such rank */             \
	X(ADDRESS, "address") /* not the worker's, or of the wrong family */ \
	X(NO_WAY, "no_way") /* from the node to the worker */                \
	X(INGRESS, "ingress") /* the tenant may not come in there */         \
	X(CORDONED, "cordoned") /* the node begins no runs */                \
	X(OTHER, "other")

/* Why a run does not begin although all workers are there. */
#define CORE_RUN_REFUSALS(X)                                       \
	X(QUOTA, "quota") /* other runs hold the tenant's slots */ \
	X(SLOTS, "slots") /* the maps have no room */              \
	X(NO_WAY, "no_way")                                        \
	X(CORDONED, "cordoned")                                    \
	X(MTU, "mtu") /* of a port, too small for the payload */   \
	X(KERNEL, "kernel")                                        \
	X(OTHER, "other")

#define CORE_JOIN_REFUSAL(name, label) CORE_JOIN_##name,
enum core_join_refusal {
	CORE_JOIN_REFUSALS(CORE_JOIN_REFUSAL) CORE_JOIN_REFUSAL_COUNT
};
#define CORE_RUN_REFUSAL(name, label) CORE_RUN_##name,
enum core_run_refusal {
	CORE_RUN_REFUSALS(CORE_RUN_REFUSAL) CORE_RUN_REFUSAL_COUNT
};

struct core_counts {
	uint64_t runs_begun;
	uint64_t runs_moved; /* to other slots, so that another run begins with its whole window */
	uint64_t loans; /* runs that began with slots on loan */
	uint64_t runs_refilled; /* those in software that got slots in mid-run */
	uint64_t loans_recalled; /* those that had to go on in software */
	uint64_t joins_refused[CORE_JOIN_REFUSAL_COUNT];
	uint64_t runs_refused[CORE_RUN_REFUSAL_COUNT];
	uint64_t saves_failed; /* the state file was not written */
	bool save_fails; /* the last time, too */
};

#endif
