/* SPDX-License-Identifier: GPL-2.0-only */
/* A spill with one job, beside a node over memory that follows the same rules. */
#ifndef TALLY_TESTS_UNIT_SUMS_WORLD_H
#define TALLY_TESTS_UNIT_SUMS_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/address.h"
#include "spill/sums.h"
#include "tests/unit/memory_node.h"

enum {
	JOB = 7,
	EPOCH = 3,
	TENANT = 5,
	BOOT = 99,
	WINDOW = 2,
	WORKERS = 3,
	BLOCKS = MESSAGE_BLOCKS_MAX,
	SUM_BYTES = BLOCKS * TALLY_BLOCK_BYTES,
	MESSAGES = 300, /* of one seed */
	NOW_MS = 1000,
};

#define NOW_NS (NOW_MS * 1000000ull)

struct world {
	struct spill *spill;
	struct sockaddr_storage service;
	struct spill_limits *limits;
	const struct spill_points *points;
	const struct tally_key *node_key;
	struct tally_set everyone;
	struct memory_slot slot[2 * WINDOW];
	struct memory_node node;
	struct spill_reply unsent[2 * WINDOW];
	uint64_t copy[2 * WINDOW]
		     [SUM_BYTES / 8]; /* what `unsent` pointed to, when they were made */
	unsigned int count; /* of unsent */
	unsigned int changed; /* replies whose payload changed before they were sent */
	unsigned int settles;
};

static inline void settle(void *context)
{
	struct world *w = context;

	for (unsigned int i = 0; i < w->count; i++)
		w->changed += memcmp(w->unsent[i].word, w->copy[i], w->unsent[i].payload_bytes) !=
			      0;
	w->count = 0;
	w->settles++;
	spill_settled(w->spill);
}

static inline int put_keyed(struct world *w, uint32_t id, uint16_t epoch, unsigned int workers,
			    const struct tally_key *key)
{
	struct spill_child child[WORKERS] = { 0 };

	for (unsigned int i = 0; i < workers; i++) {
		tally_set_add(&child[i].below, i);
		child[i].key = i;
	}
	return spill_job_put(w->spill, &(struct spill_job_options){ .everyone = w->everyone,
								    .service = w->service,
								    .id = id,
								    .tenant = TENANT,
								    .limits = w->limits,
								    .points = w->points,
								    .epoch = epoch,
								    .window = WINDOW,
								    .payload_bytes = SUM_BYTES,
								    .children = workers,
								    .child = child,
								    .key = key,
								    .node_key = w->node_key });
}

static inline int put(struct world *w, uint32_t id, uint16_t epoch, unsigned int workers)
{
	return put_keyed(w, id, epoch, workers, NULL);
}

static inline void world_make(struct world *w, size_t sums)
{
	*w = (struct world){ .everyone = tally_set_first(WORKERS) };
	assert_int_equal(address_parse("10.77.1.1", TALLY_UDP_PORT, &w->service), 0);
	w->spill = spill_new(sums * SUM_BYTES, BOOT, settle, w);
	w->node = (struct memory_node){ .role = { .everyone = &w->everyone,
						  .below = &w->everyone,
						  .epoch = EPOCH,
						  .blocks_max = BLOCKS,
						  .root = true },
					.boot = BOOT,
					.frames_grow = true,
					.now_ms = NOW_MS,
					.slots = 2 * WINDOW,
					.slot = w->slot };
	assert_int_equal(put(w, JOB, EPOCH, WORKERS), 0);
}

static inline void tag(struct message *m)
{
	struct tally_set set = tally_header_set(&m->header);

	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

static inline struct message contribution(uint32_t seq, unsigned int rank, unsigned int blocks)
{
	struct message m = { .header = { .magic = TALLY_MAGIC,
					 .version = TALLY_VERSION,
					 .kind = TALLY_CONTRIBUTION,
					 .job = tally_le32(JOB),
					 .epoch = tally_le16(EPOCH),
					 .seq = tally_le32(seq),
					 .recipient = tally_le16(TALLY_EVERYONE),
					 .blocks = blocks,
					 .lane = TALLY_LANE_INT64,
					 .call = tally_le64(1),
					 .sender = tally_le16(rank),
					 .set = tally_le64(1ull << rank) } };

	for (unsigned int i = 0; i < blocks * TALLY_BLOCK_WORDS; i++)
		m.word[i] = 1000 * seq + rank + i;
	tag(&m);
	return m;
}

static inline enum tally_outcome give(struct world *w, const struct message *m,
				      struct spill_reply *ret)
{
	return spill_message(w->spill, &m->header, message_bytes(m), &w->service, NULL, NOW_NS,
			     ret);
}

static inline enum tally_outcome contribute(struct world *w, uint32_t seq, unsigned int rank)
{
	struct message m = contribution(seq, rank, BLOCKS);
	struct spill_reply reply;

	return give(w, &m, &reply);
}

#endif
