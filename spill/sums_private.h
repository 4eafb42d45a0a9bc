/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the spill share: its books. */
#ifndef TALLY_SPILL_SUMS_PRIVATE_H
#define TALLY_SPILL_SUMS_PRIVATE_H

#include "sums.h"

#include <tally/bucket.h>

enum {
	BUCKETS = 1024, /* of jobs by number */
};

/* A ring of slots with memory, oldest first: `.newer` of its head is the oldest one. */
struct links {
	struct links *older, *newer;
};

struct slot {
	struct links links; /* in a ring of its tenant; alone without memory */
	struct links begun; /* in that of its job; alone where the sum is finished, too */
	uint32_t used_ms; /* when the sum grew last; of a finished one: was wanted last */
	struct tally_slot_state state;
	struct spill_job *job;
	uint64_t *word; /* NULL: no payload so far */
	uint64_t unsent; /* == spill.turn: a reply that was not sent yet points to `word` */
};

struct spill_job {
	struct spill_job *next; /* in its bucket */
	struct tally_set everyone;
	struct sockaddr_storage service;
	uint32_t id;
	uint16_t tenant;
	uint16_t epoch;
	size_t payload_bytes;
	uint32_t slots; /* a power of two */
	struct slot *slot;
	struct links begun; /* ring of sums that are not finished: that of the latest chunk last */
	unsigned int children;
	struct spill_child *child;
	struct spill_limits *limits;
	const struct spill_points *points; /* NULL: anywhere */
	struct tally_key *key; /* by number, secrets; NULL: none */
	bool node_key;
	struct tally_counter counter[TALLY_OUTCOME_COUNT];
};

/* The sums of one tenant. */
struct share {
	struct links finished; /* ring: by when they were wanted last */
	struct links gathering; /* ring: by when they grew last */
};

struct spill {
	struct spill_memory memory;
	struct share share[TALLY_TENANTS_MAX]; /* by tenant */
	struct spill_job *bucket[BUCKETS];
	unsigned int jobs;
	uint16_t boot;
	uint64_t turn; /* of replies between two spill_settled() */
	spill_settle_function settle;
	void *context;
	struct tally_bucket answers; /* to messages of another version */
	struct tally_counter counter[TALLY_OUTCOME_COUNT]; /* of no job */
};

/* --- memory.c: words of sums, within the limit */

void links_alone(struct links *l);
void links_remove(struct links *l);

void settle_if_unsent(struct spill *s, const struct slot *slot);
void slot_drop_words(struct spill *s, struct slot *slot);

/* Room for the words of this slot's sum. */
bool slot_has_words(struct spill *s, struct slot *slot, const struct tally_offer *o);

/* After an offer; `before`: what the slot was. */
void slot_link(struct spill *s, struct slot *slot, const struct tally_slot_state *before,
	       uint32_t now_ms);

/* --- jobs.c */

/* Where the job of this number is, or NULL. */
struct spill_job **job_link(struct spill *s, uint32_t id);

/* A tag made with this key instead. */
void header_retag(struct tally_header *h, const struct tally_key *key);

#endif
