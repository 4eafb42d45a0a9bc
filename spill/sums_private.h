/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the spill share: its books. */
#ifndef TALLY_SPILL_SUMS_PRIVATE_H
#define TALLY_SPILL_SUMS_PRIVATE_H

#include "sums.h"

#include <tally/bucket.h>

enum {
	BUCKETS = 1024, /* of jobs by number */
};

/* Slots with memory: those whose sums are finished, and the others; oldest first. */
struct links {
	struct links *older, *newer;
};

struct slot {
	struct links links; /* alone without memory */
	uint32_t grown_ms; /* when the sum grew last; of sums that are not finished */
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
	unsigned int children;
	struct spill_child *child;
	struct tally_tenant *limits;
	const struct spill_points *points; /* NULL: anywhere */
	struct tally_key *key; /* by number, secrets; NULL: none */
	bool node_key;
	struct tally_counter counter[TALLY_OUTCOME_COUNT];
};

struct spill {
	struct spill_memory memory;
	struct links finished, gathering; /* rings: .newer is the oldest slot */
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

/* After an offer; `grown`: the slot has taken it. */
void slot_link(struct spill *s, struct slot *slot, bool grown, uint32_t now_ms);

/* --- jobs.c */

/* Where the job of this number is, or NULL. */
struct spill_job **job_link(struct spill *s, uint32_t id);

/* A tag made with this key instead. */
void header_retag(struct tally_header *h, const struct tally_key *key);

#endif
