/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three workers as they ship (client/engine.h) and a root over memory: what is sent arrives at
 * once, in the order of ranks, and is kept. Errors end the program.
 */
#ifndef TALLY_TOOLS_VECTORS_WORLD_H
#define TALLY_TOOLS_VECTORS_WORLD_H

#include "client/engine.h"
#include "tests/unit/memory_node.h"

enum {
	RANKS = 3,
	JOB = 7,
	EPOCH = 3,
	WINDOW = 4,
	SLOTS = 2 * WINDOW,
	PAYLOAD = TALLY_BLOCK_BYTES,
	BOOT = 0x5eed,
	MS = 1000000,
	CHUNKS_MAX = 4, /* of a call */
};

/* A chunk: what ranks sent first, and what the root sent then. */
struct chunk {
	struct message sent[RANKS], result;
};

struct world {
	struct tally_set everyone;
	struct memory_slot slot[SLOTS];
	struct memory_node node;
	struct engine *worker[RANKS];
	__u64 now_ns;
	struct chunk chunk[CHUNKS_MAX]; /* of the call that was made last */
	__u32 base; /* seq of its first chunk */
	__u32 chunks; /* that it had */
};

extern struct world world;

/* The head of the page: the job, and hashes of its ranks. */
void hashes_print(void);

__u64 world_random(int rank); /* that it draws for the run */
void world_open(void);
void world_close(void);

/* The root lets go all that it has. */
void world_forget(void);

struct message message_of(const struct datagram *d);
void deliver(const struct message *m, int rank);

/* At the root. GO_ON: any outcome will do. */
struct visit visit(const struct message *m, enum tally_outcome want);

/* What a rank sends next; the clock goes on until there is something. */
struct message output(int rank);

/* A call of all ranks; each has `bytes` of `in` and of `out`. */
void start(const struct call_options *o, const void *in, void *out, size_t bytes,
	   struct engine_call **call);
void finish(struct engine_call **call);

#endif
