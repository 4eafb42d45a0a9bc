/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What placing*.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_PLACING_PRIVATE_H
#define TALLY_AGENT_PLACING_PRIVATE_H

#include <sys/queue.h>
#include <sys/random.h>

#include "agent/cluster/placer.h"
#include "agent/cluster/standing.h"
#include "agent/store/leader.h"
#include "common/joining.h"
#include "placing.h"
#include "sharing.h"

enum {
	PLACING_GONES = 16, /* jobs deleted within seconds that are told apart */
};

enum { /* keys that are followed, by what they begin with */
	PLACING_JOBS,
	PLACING_PLACES,
	PLACING_WORKERS,
	PLACING_REFUSALS,
	PLACING_TENANTS,
	PLACING_PREFIXES,
};

struct prefix {
	struct placing *placing;
	unsigned int index;
};

enum asked_for {
	ASKED_CREATE,
	ASKED_DELETE,
	ASKED_ROTATE,
	ASKED_PLACE,
	ASKED_TENANT,
	ASKED_TENANT_DEL,
};

/* Who waits for what becomes of a write, and then for us to hear of it: what a caller does next is
 * to find what was done. */
struct asked {
	TAILQ_ENTRY(asked) list;
	struct placing *placing;
	void *connection; /* NULL: gone */
	char *answer; /* if it is done */
	char name[NAME_BYTES]; /* of the job or tenant */
	enum asked_for what;
	unsigned int changes; /* of the write */
	uint64_t revision; /* 0: the store has not said what became of it */
	uint64_t done_ns; /* when it did */
};

/* The workers of a job's run here know that its root shall be elsewhere. */
struct told {
	uint64_t birth; /* of the job */
	uint64_t revision; /* of its place */
	uint64_t at_ns; /* when they were told */
};

/* Until when a job stays where it is, with what it has of each call. */
struct rest {
	uint64_t birth, until_ns;
	uint64_t sums_since_ns; /* its root tells of sums since then; 0: it does not */
	unsigned int moves; /* one soon after the other */
	char root[NAME_BYTES];
	uint16_t share;
};

/* A job that was deleted a moment ago, where it was and how fast. */
struct gone {
	struct wanted_job job;
	struct wanted_place place;
	uint64_t chunks_per_second, at_ns;
};

/* What this node has made of a tenant of the cluster. */
struct followed_tenant {
	char name[NAME_BYTES];
	uint64_t revision; /* that it asked the core for, */
	uint64_t asked_ns; /* and when */
	char why[REPORT_WHY_BYTES]; /* it was refused; "": it was not */
};

struct placing {
	struct driver *driver;
	struct sharing *sharing;
	struct store *store;
	char node[NAME_BYTES];
	sd_event_source *timer;
	bool wakes; /* the timer is for soon */
	struct shared shared;
	struct prefix prefix[PLACING_PREFIXES];
	unsigned int current; /* bits: all of that prefix is known */
	unsigned int resets; /* the same: what is told of it is another store's, and news */
	uint64_t left_job[TALLY_JOBS_MAX]; /* births: that the store came back without */
	unsigned int left_jobs;
	char left_tenant[SHARED_TENANTS_MAX][NAME_BYTES];
	unsigned int left_tenants;
	struct leader *leader;
	char leader_name[NAME_BYTES];
	bool decides; /* a decision of ours is on its way to the store */
	struct placing_counts counts;
	char unplaced[NAME_BYTES + 256]; /* what the log said last of a job without a place */
	struct rendezvous *rendezvous;
	TAILQ_HEAD(all_asked, asked) asked;
	struct rest *rest; /* of jobs that this leader has seen */
	unsigned int rests;
	uint64_t looked_ns; /* for better places */
	uint64_t decided_ns; /* the last place that was given: when, to which job, */
	char decided[NAME_BYTES];
	uint64_t decided_revision; /* and what the store made of it; 0: we have heard of it since */
	uint64_t refused, refused_ns; /* the birth of a job that was, a moment ago */
	struct followed_tenant tenant[SHARED_TENANTS_MAX];
	unsigned int tenants;
	struct gone *gone[PLACING_GONES]; /* NULL: none; the next one takes gone[gones % ...] */
	unsigned int gones;
	struct told *told; /* moves that workers here were told of */
	unsigned int tolds;
	int answered; /* by the core */
	struct why why; /* the same, in words */
};

enum {
	REFUSALS_MAX = 64, /* nodes that are told apart */
};

/* Jobs as the placer wants them. */
struct lists {
	struct placer_job job[PLACER_JOBS_MAX];
	struct wanted_worker worker[PLACER_JOBS_MAX][TALLY_WORKERS_MAX];
	const char *refused[PLACER_JOBS_MAX][REFUSALS_MAX];
	unsigned int jobs;
};

const struct core *placing_core(const struct placing *p);

/* Is all known that the store has? */
bool placing_is_current(const struct placing *p);

/* Nobody waits for it: what became of it is seen in what is told. */
void placing_write(struct placing *p, const struct store_seen *seen, unsigned int seens,
		   const struct store_change *change, unsigned int changes);

/* The core does it, or refuses it, before this returns: then p->why says why. */
int placing_ask_core(struct placing *p, const struct request *q);

/*
 * The job may have another token here than the cluster's, which was changed elsewhere, or while
 * this agent was away: then it gets that one. A run that is on goes on.
 */
void placing_follow_token(struct placing *p, const char *job);
void placing_follow_tokens(struct placing *p); /* of all jobs */

/*
 * Tenants of the cluster become this node's, with the same limits, unless it has one of that name
 * of its own; those that were deleted, and that no job needs, go here, too.
 */
void placing_follow_tenants(struct placing *p);

/* What this node tells of them. */
void placing_tenants_report(const struct placing *p, struct report *ret);

/* Decides, if this node leads: one job at a time. */
void placing_lead(struct placing *p);

/* --- placing_lists.c */

/* All that have a place, and this one, which is to get one if it is due; its number among them. */
unsigned int placing_list(const struct placing *p, const struct shared_job *which, bool due,
			  struct lists *l);

/* The same with all jobs of one that has several roots, by its first; ret_which[roots]. */
void placing_list_roots(const struct placing *p, const struct shared_job *first, struct lists *l,
			unsigned int *ret_which);

/* The store says this now, which shared has not taken yet. */
void placing_goes(struct placing *p, const struct store_item *item);

/* --- placing_roots.c */

/* A place for one that is due, at another node than the roots that the job has beside this one, if
 * there is any. As placer_place(). */
int placing_place_one(const struct placing *p, const struct shared_job *j, struct lists *l,
		      struct wanted_place *ret, struct why *why);

/* Places for all roots of a job, by its first, and their shares: ret_job[roots], ret[roots]. */
int placing_place_roots(const struct placing *p, const struct shared_job *first, struct lists *l,
			const struct shared_job **ret_job, struct wanted_place *ret,
			struct why *why);

/* The same for one whose runs are on at all roots: other shares, or one root elsewhere. -EALREADY:
 * there is nothing better; -EBUSY: not now. */
int placing_better_roots(const struct placing *p, const struct shared_job *first, double margin,
			 const bool *may_move, struct lists *l, const struct shared_job **ret_job,
			 struct wanted_place *ret, struct why *why);

/* The first root's agent tells the workers of all roots what these have of calls to come. */
void placing_shares_say(struct placing *p);

/* --- placing_left.c */

/* What the store tells of this prefix is another store's, from here until the end of it. */
void placing_left_begin(struct placing *p, unsigned int prefix);
void placing_left_end(struct placing *p, unsigned int prefix);

/* Who is not here any more, or is in the store again, is not left any more. */
void placing_left_look(struct placing *p);

/* Has nobody deleted it, as the store lost it? */
bool placing_is_left(const struct placing *p, const struct job *j);
bool placing_is_left_tenant(const struct placing *p, const char *name);

/* --- placing_away.c */

/* Were all who are connected now told of what has this revision? From now on they were. */
bool placing_is_told(struct placing *p, const struct shared_job *s, uint64_t revision);

/* Workers of jobs whose root is elsewhere now go there: who waits, at once; a run, when all of its
 * workers can be told. */
void placing_send_away(struct placing *p);

/* --- placing.c */

/* Is this node the job's root? */
bool placing_is_ours(const struct placing *p, const struct shared_job *j);

/* Answers those whose write is known here, or was done long ago. */
void placing_asked_look(struct placing *p);

void placing_asked_close(struct placing *p);

#endif
