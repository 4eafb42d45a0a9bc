/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the leader of a cluster decides: which job gets which node as its root, and when it gets
 * another one. Pure: whoever leads says what it sees and what time it is, writes to the store what
 * is decided, and says what became of that.
 */
#ifndef TALLY_CLUSTER_LEAD_H
#define TALLY_CLUSTER_LEAD_H

#include "agent/store/store.h"
#include "common/joining.h"
#include "picture.h"
#include "shared.h"

enum {
	LEAD_GONES = 16, /* jobs deleted within seconds that are told apart */
};

/* What all is decided by. */
struct lead_view {
	uint64_t now_ns; /* never goes back */
	const struct shared *shared;
	const struct picture *picture;
	bool finds_ways; /* else ways are for others to write */
	const char *leader; /* the node that leads, which alone knows how ways have done; NULL:
			     * this one, or nobody */
};

/* The same of its ways, and how it has been with them. */
struct lead_rest_ways {
	uint64_t revision; /* that was seen last; 0: routing's */
	uint64_t since_ns, until_ns;
	uint64_t weighed_ns; /* 0: never */
	uint64_t silent_ns; /* its root tells of a run without sums since then; 0: it does not */
	unsigned int losses; /* one soon after the other */
};

/* Until when a job stays where it is, with what it has of each call. */
struct lead_rest {
	uint64_t birth, until_ns;
	uint64_t sums_since_ns; /* its root tells of sums since then; 0: it does not */
	unsigned int moves; /* one soon after the other */
	char root[NAME_BYTES];
	uint16_t share;
	struct lead_rest_ways ways;
};

/* A job that was deleted a moment ago, where it was and how fast. */
struct lead_gone {
	struct wanted_job job;
	struct wanted_place place;
	uint64_t chunks_per_second, at_ns;
	uint16_t payload_bytes; /* of its run; 0: not known */
	bool steered; /* its packets took these: */
	struct wanted_ways ways;
};

enum lead_kind {
	LEAD_PLACES,
	LEAD_WAYS, /* that are found */
	LEAD_NO_WAYS, /* they are given up */
};

/* Zeros: nothing was decided yet. For lead_close(). Nobody else writes to it. */
struct lead {
	struct lead_rest *rest; /* of jobs that this leader has seen */
	unsigned int rests;
	uint64_t looked_ns; /* for better places */
	uint64_t moved_ns; /* a run was last on its way to another root, or its share changed; 0:
			    * never */
	uint64_t ways_looked_ns; /* for better ways */
	bool decides; /* a decision is on its way to the store */
	uint64_t decided_ns; /* the last place or ways that were given: when, to which job, */
	char decided[NAME_BYTES];
	enum lead_kind kind; /* of that decision */
	uint64_t decided_revision; /* and what the store made of it; 0: we have heard of it since */
	struct lead_gone *gone[LEAD_GONES]; /* NULL: none; the next one takes gone[gones % ...] */
	unsigned int gones;
};

void lead_close(struct lead *l);

/* A job that finds no place, and why. */
struct lead_without {
	const struct shared_job *job;
	struct why why;
};

/*
 * Places for one job, or for all roots of one, or ways for these; and the write that says so to the
 * store, if we still lead, these jobs are still as wanted as they were, and their places are those
 * that we know (and their ways, where these are what is decided). Jobs, and the leader's key, are
 * not copied.
 */
struct lead_decision {
	unsigned int jobs; /* that are placed */
	const struct shared_job *job[JOINING_ROOTS_MAX];
	struct wanted_place place[JOINING_ROOTS_MAX];
	unsigned int leds; /* whose ways change: one job, or all roots of one */
	const struct shared_job *led[JOINING_ROOTS_MAX];
	struct wanted_ways *ways; /* [leds] that they get; NULL: those of routing */
	uint16_t share[JOINING_ROOTS_MAX]; /* with these ways, where leds is above 1 */
	struct why why; /* that, in words */
	struct store_write write; /* without changes: nothing is decided */
	unsigned int withouts;
	struct lead_without *without;
	/* What the write points to. */
	struct store_seen seen[1 + 3 * JOINING_ROOTS_MAX];
	struct store_change change[2 * JOINING_ROOTS_MAX];
	char job_key[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char place_key[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char ways_key[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	char *text[2 * JOINING_ROOTS_MAX];
};

void lead_decision_free(struct lead_decision *d);
static inline void lead_decision_freep(struct lead_decision **d) { lead_decision_free(*d); }

/*
 * Something may have changed, or a second has passed. `leads`: what each write of the leader must
 * have seen; NULL: we do not lead. *ret is the caller's, for lead_decision_free(); NULL: there is
 * nothing to do or to say. Where it has a write, lead_decided() is to follow: until then nothing
 * else is decided. -ENOMEM.
 */
int lead_look(struct lead *l, const struct lead_view *v, const struct store_seen *leads,
	      struct lead_decision **ret);

/* What the store says of the write (store_done), or a negative errno: it did not begin. */
void lead_decided(struct lead *l, int error, uint64_t revision);

/* The store is another one, or came back older: nothing is waited for that was decided before. */
void lead_store_lost(struct lead *l);

/* The job is about to go from v->shared: as fast as its root told last, it is in loads that are
 * forecast for some seconds. No memory: its traffic is taken for that of others. */
void lead_job_goes(struct lead *l, const struct lead_view *v, const struct shared_job *j);

/* What the leader would do with the job now, in words, as far as is seen here. It takes some
 * milliseconds. -ENOMEM. */
int lead_outlook(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		 struct why *ret);

#endif
