/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What placing*.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_PLACING_PRIVATE_H
#define TALLY_AGENT_PLACING_PRIVATE_H

#include <sys/queue.h>
#include <sys/random.h>

#include "agent/cluster/lead.h"
#include "agent/cluster/standing.h"
#include "agent/store/leader.h"
#include "common/joining.h"
#include "placing.h"
#include "sharing.h"

enum { /* keys that are followed, by what they begin with */
	PLACING_JOBS,
	PLACING_PLACES,
	PLACING_WORKERS,
	PLACING_REFUSALS,
	PLACING_TENANTS,
	PLACING_WAYS,
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
	int error; /* if it is not */
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
	struct lead lead;
	struct placing_counts counts;
	char unplaced[NAME_BYTES + 256]; /* what the log said last of a job without a place */
	struct rendezvous *rendezvous;
	TAILQ_HEAD(all_asked, asked) asked;
	uint64_t refused, refused_ns; /* the birth of a job that was, a moment ago */
	uint64_t again_ns; /* when it was looked at what is refused here */
	struct followed_tenant tenant[SHARED_TENANTS_MAX];
	unsigned int tenants;
	struct told *told; /* moves that workers here were told of */
	unsigned int tolds;
	int answered; /* by the core */
	struct why why; /* the same, in words */
};

const struct core *placing_core(const struct placing *p);

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

/* What this node tells of them. -ENOMEM. */
int placing_tenants_report(const struct placing *p, struct report *ret);

/* --- placing_lead.c */

/* Decides, if this node leads: one job at a time. */
void placing_lead(struct placing *p);

/* The store says this now, which shared has not taken yet. */
void placing_goes(struct placing *p, const struct store_item *item);

/* --- placing_shares.c */

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

/* Places in the store get the addresses of the runs that are on at this node. */
void placing_renew(struct placing *p);

/* --- placing.c */

/* Is this node the job's root? */
bool placing_is_ours(const struct placing *p, const struct shared_job *j);

/* Answers those whose write is known here, or was done long ago. */
void placing_asked_look(struct placing *p);

void placing_asked_close(struct placing *p);

/* A write that somebody waits for at this connection, with the answer if it is done, which is taken
 * over. A negative errno: nobody waits. */
int placing_ask_store(struct placing *p, void *connection, const char *name, enum asked_for what,
		      char *answer, const struct store_write *w);

#endif
