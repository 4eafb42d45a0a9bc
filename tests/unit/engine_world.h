/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A world around engines: nodes (memory_node.h) in a tree, workers below them, and a network that
 * loses, repeats, reorders and flips bits, under a clock that the world turns. Three jobs may use
 *the same nodes, each its own slots, or all the slots of a pool (memory_pool.h). The root may make
 *its sums in user space (spill/sums.h). A world is made of a seed, and the same seed makes the same
 * world. Nothing here fails a test: what must not be stands in world.wrong, and how often what
 * happened stands in world.count. A world begins at time 1000 ns and has no end of its own.
 *
 *	world_new(), engine_start(), then world_step() again and again
 *
 * A place is a node (0: the root), or WORLD_NODES + the number of a worker.
 */
#ifndef TALLY_TESTS_UNIT_ENGINE_WORLD_H
#define TALLY_TESTS_UNIT_ENGINE_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/engine.h"
#include "common/address.h"
#include "spill/sums.h"
#include "tests/unit/memory_node.h"
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"

enum {
	WORLD_JOBS = 3,
	WORLD_RANKS = 72, /* of a job: more than a word of a set has */
	WORLD_NODES = 6,
	WORLD_WINDOW = 8,
	WORLD_ROOT = 0,
	WORLD_FATES = 4 * WORLD_WINDOW, /* chunks of a job whose losses are remembered */
	WORLD_PAYLOAD = MESSAGE_BLOCKS_MAX * TALLY_BLOCK_BYTES,
	WORLD_HOP_NS = 2000, /* what a frame takes at least */
	WORLD_UP_MS = 1000, /* how long nodes have run when the world begins */
	WORLD_FIRST_JOB = 7, /* the other one's number is the next */
	WORLD_EPOCH = 1,
	WORLD_NONCE = 99, /* of the first job; the other one's is the next */
	WORLD_DATAGRAMS = 8, /* asked of an engine at a time */
};

/* Which nodes there are, and where workers may be. */
enum world_tree {
	TREE_ALONE, /* the root, and all workers at it */
	TREE_ONE_LEVEL, /* two inner nodes, and all workers below these */
	TREE_TWO_LEVELS, /* two inner nodes with three below them, and all workers below these */
	TREE_MIXED, /* the same nodes, and workers at any of them, the root too */
	TREES,
};

enum world_region {
	FLIP_ANYWHERE,
	FLIP_HEADER,
	FLIP_PAYLOAD,
};

struct world;

struct world_options {
	uint64_t seed;
	enum world_tree tree;
	int jobs;
	int ranks, window; /* of each job; the window is a power of two */
	uint32_t loss, repeat, flip; /* of a thousand frames on a hop */
	uint32_t stray; /* of a thousand: one like this of an earlier run comes, too */
	uint32_t wait; /* of a thousand messages that take two steps */
	uint64_t jitter_ns; /* frames take up to so much longer, and overtake each other */
	enum world_region region; /* where a bit is flipped */
	bool frames_grow;
	int spill_sums; /* that the spill has memory for; 0: the root has slots, until world_move()
			 */
	/* Of each inner node, and before a root in user space; 0: all slots are reserved ones. */
	uint32_t pool_slots;
	struct tally_borrowed_policy policy; /* of that pool */
	bool ranges; /* jobs have ranges there */
	uint64_t timeout_ns; /* of calls */
	bool nonce; /* the ranks have one from elsewhere, and need no opening */
	bool sealed; /* the ranks have a secret */
	/* A node changes so what a rank gets; NULL: all are honest. */
	void (*lie)(const struct world *w, int rank, struct message *m);
};

/* What a contribution was sent again for. */
enum world_cause {
	CAUSE_OWN, /* a frame with it, or with the result for its sender, was lost or spoilt */
	CAUSE_OTHERS, /* only other ranks' frames of the chunk were, or a node has forgotten it */
	CAUSE_NONE, /* nothing of the chunk was */
	CAUSES,
};

struct world_count {
	uint64_t outcome[TALLY_OUTCOME_COUNT]; /* of messages at nodes */
	uint64_t kind[256]; /* of messages as workers send them */
	uint64_t copies; /* of messages that went to a group */
	uint64_t asks; /* copies of asks among them */
	uint64_t resends[CAUSES]; /* contributions that were sent again */
	uint64_t frames, lost, repeated, flips, strays; /* of hops */
	uint64_t second_steps; /* that other messages could come before */
	uint64_t restarts, moves, reroutes, evicted, rings_moved;
};

struct world_worker {
	struct engine *engine;
	int job, rank;
	int node; /* that its frames come to first */
	bool dead; /* it sends nothing */
	uint64_t asleep_ns; /* nobody looks after it before */
	uint64_t due_ns; /* when it is to be looked after */
	uint64_t said, heard; /* messages */
};

/* What became of a chunk's frames. */
struct world_fate {
	uint32_t seq;
	bool any;
	bool flipped; /* a bit of its payload: no second one, for two may cancel in the check */
	struct tally_set ranks; /* whose contribution or result was lost since they sent it last */
};

struct world_job {
	struct tally_set everyone;
	struct tally_set below[WORLD_NODES];
	struct memory_node at[WORLD_NODES];
	struct world_fate fate[WORLD_FATES];
};

struct world_node {
	int up; /* the next node on the way to the root */
	bool mute; /* it takes nothing */
	struct memory_slot slot[(WORLD_JOBS + 1) * 2 * WORLD_WINDOW]; /* a ring is free */
	int free_ring; /* what it has had in it stays there */
	struct memory_pool pool;
};

/* A frame that arrives, or the second step of a visit. */
struct world_event {
	uint64_t due_ns, serial;
	int to; /* a place */
	int from; /* the place of the worker whose frame it was: answers go there */
	int job;
	bool down; /* sent by a node towards workers */
	bool is_second_step;
	bool borrows; /* the visit is one of a pool */
	size_t bytes; /* of the datagram, whatever its header says */
	struct visit visit; /* of a frame only the message */
	struct world_event *next; /* unused ones */
};

struct world {
	struct world_options options;
	uint64_t random, now_ns, serial;
	const char *wrong; /* what must not be; NULL: nothing */
	int nodes, workers;
	int touched; /* the worker that the last step looked after; -1: none */
	struct world_node node[WORLD_NODES];
	struct spill *spill; /* NULL: the root has slots */
	uint16_t spill_boot;
	struct sockaddr_storage service;
	struct world_job job[WORLD_JOBS];
	struct world_worker worker[WORLD_JOBS * WORLD_RANKS];
	struct world_count count;
	struct world_event **heap, *unused;
	size_t events, events_max;
};

/* --- events: a heap, the earliest one at its top */

static inline bool event_is_before(const struct world_event *a, const struct world_event *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static inline struct world_event *event_new(struct world *w)
{
	struct world_event *e = w->unused;

	if (e)
		w->unused = e->next;
	else
		e = malloc(sizeof(*e));
	return e;
}

static inline void event_free(struct world *w, struct world_event *e)
{
	e->next = w->unused;
	w->unused = e;
}

static inline void event_put(struct world *w, struct world_event *e)
{
	size_t i = w->events++;

	if (i == w->events_max) {
		w->events_max = 2 * w->events_max + 64;
		w->heap = realloc(w->heap, w->events_max * sizeof(struct world_event *));
	}
	e->serial = w->serial++;
	for (; i && event_is_before(e, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = e;
}

static inline struct world_event *event_take(struct world *w)
{
	struct world_event *top = w->heap[0], *last = w->heap[--w->events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < w->events) {
		if (child + 1 < w->events && event_is_before(w->heap[child + 1], w->heap[child]))
			child++;
		if (event_is_before(last, w->heap[child]))
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	return top;
}

/* --- the network */

static inline struct world_fate *world_fate(struct world *w, int job, uint32_t seq)
{
	struct world_fate *f = &w->job[job].fate[seq % WORLD_FATES];

	if (f->seq != seq)
		*f = (struct world_fate){ .seq = seq };
	return f;
}

/* A frame as it was sent will not be of use to those whom it was of or for. */
static inline void world_spoil(struct world *w, const struct world_event *e)
{
	const struct tally_header *h = &e->visit.message.header;
	struct world_fate *f = world_fate(w, e->job, tally_le32_get(h->seq));
	struct tally_set set = tally_header_set(h);

	f->any = true;
	if (e->down && e->to < WORLD_NODES)
		set = w->job[e->job].below[e->to];
	if (e->down && e->to >= WORLD_NODES) {
		set = (struct tally_set){ { 0 } };
		tally_set_add(&set, w->worker[e->to - WORLD_NODES].rank);
	}
	tally_set_join(&f->ranks, &set);
}

static inline void world_flip(struct world *w, struct world_event *e)
{
	uint8_t *byte = (uint8_t *)&e->visit.message.header;
	size_t header = message_header_bytes(&e->visit.message);
	size_t first = w->options.region == FLIP_PAYLOAD ? header : 0;
	size_t end = w->options.region == FLIP_HEADER ? header : e->bytes;
	struct world_fate *f;
	uint32_t bit;

	if (first == end)
		return;
	bit = random_below(&w->random, (end - first) * 8);
	f = world_fate(w, e->job, tally_le32_get(e->visit.message.header.seq));
	if (first + bit / 8 >= header && f->flipped)
		return;
	f->flipped |= first + bit / 8 >= header;
	world_spoil(w, e);
	byte[first + bit / 8] ^= 1 << bit % 8;
	w->count.flips++;
}

/* The same in an earlier epoch: other words, and the tag is right. */
static inline void world_stray(struct world *w, const struct world_event *e)
{
	struct world_event *stray = event_new(w);
	struct message *m = &stray->visit.message;
	struct tally_set set = tally_header_set(&e->visit.message.header);

	*stray = *e;
	stray->is_second_step = false;
	stray->due_ns = w->now_ns + WORLD_HOP_NS;
	m->header.epoch = tally_le16(WORLD_EPOCH - 1);
	m->header.tag = tally_le64(tally_tag(&m->header, &set));
	message_words(m)[0]++;
	w->count.strays++;
	event_put(w, stray);
}

/* On a hop: `e` is what is sent, and to where; it stays the caller's. */
static inline void world_send(struct world *w, const struct world_event *e)
{
	int copies = 1 + chance(&w->random, w->options.repeat);

	w->count.frames++;
	w->count.repeated += copies - 1;
	if (chance(&w->random, w->options.stray))
		world_stray(w, e);
	if (chance(&w->random, w->options.loss)) {
		w->count.lost++;
		world_spoil(w, e);
		return;
	}
	while (copies--) {
		struct world_event *sent = event_new(w);

		*sent = *e;
		sent->is_second_step = false;
		sent->due_ns = w->now_ns + WORLD_HOP_NS +
			       random_below(&w->random, w->options.jitter_ns + 1);
		if (chance(&w->random, w->options.flip))
			world_flip(w, sent);
		event_put(w, sent);
	}
}

/* --- nodes */

/* What the data plane makes sure of before the rules: GO_ON, and of which job the message is. */
static inline enum tally_outcome node_parse(const struct world *w, int node,
					    const struct world_event *e, int *ret)
{
	const struct tally_header *h = &e->visit.message.header;
	uint32_t job = tally_le32_get(h->job) - WORLD_FIRST_JOB;

	if (h->magic != TALLY_MAGIC)
		return TALLY_FOREIGN;
	if (h->version != TALLY_VERSION)
		return TALLY_OTHER_VERSION;
	if (job >= (uint32_t)w->options.jobs || tally_set_is_empty(&w->job[job].below[node]))
		return TALLY_UNKNOWN_JOB;
	if (message_bytes(&e->visit.message) != e->bytes)
		return TALLY_BAD_LENGTH;
	*ret = job;
	return TALLY_GO_ON;
}

static inline void node_copy(struct world *w, const struct world_event *e, int to,
			     const struct tally_set *below)
{
	struct world_event copy = { .to = to, .from = e->from, .job = e->job, .down = true };

	copy.visit.message = message_copy(&e->visit.message, below);
	copy.bytes = message_bytes(&copy.visit.message);
	w->count.copies++;
	w->count.asks += copy.visit.message.header.kind == TALLY_ASK;
	world_send(w, &copy);
}

static inline void node_tell_group(struct world *w, int node, const struct world_event *e)
{
	const struct world_job *job = &w->job[e->job];

	for (int i = 0; i < w->workers; i++) {
		const struct world_worker *worker = &w->worker[i];
		struct tally_set me = { { 0 } };

		tally_set_add(&me, worker->rank);
		if (worker->job == e->job && worker->node == node)
			node_copy(w, e, WORLD_NODES + i, &me);
	}
	for (int child = 1; child < w->nodes; child++)
		if (w->node[child].up == node && !tally_set_is_empty(&job->below[child]))
			node_copy(w, e, child, &job->below[child]);
}

/* What is in the frame leaves. What came from above and passes is nobody's at this node. */
static inline void node_leave(struct world *w, int node, struct world_event *e,
			      enum tally_outcome outcome)
{
	enum tally_to to = tally_outcome_to(outcome);

	w->count.outcome[outcome]++;
	e->bytes = to == TALLY_TO_ROOT && outcome < TALLY_CONFLICT
			   ? e->bytes
			   : message_bytes(&e->visit.message);
	if (to == TALLY_TO_GROUP) {
		node_tell_group(w, node, e);
	} else if (to == TALLY_TO_SENDER) {
		e->to = e->from;
		e->job = w->worker[e->from - WORLD_NODES].job;
		e->down = true;
		world_send(w, e);
	} else if (to == TALLY_TO_ROOT && node != WORLD_ROOT && !e->down) {
		e->to = w->node[node].up;
		world_send(w, e);
	} else if (to == TALLY_TO_ROOT && node == WORLD_ROOT && outcome > TALLY_CONFLICT) {
		w->wrong = "the root sends to the root";
	}
}

/* What leaves is copied at once. */
static inline void spill_settle(void *context) { spill_settled(((struct world *)context)->spill); }

/* A result leaves a root in user space by the pool before it. */
static inline void spill_release(struct world *w, const struct spill_reply *reply)
{
	const struct tally_header *h = (const struct tally_header *)reply->header;
	struct memory_pool *pool = &w->node[WORLD_ROOT].pool;

	if (pool->slots && reply->to == TALLY_TO_GROUP)
		pool_release(pool, h);
}

/* A message at a root in user space. */
static inline void spill_take(struct world *w, struct world_event *e)
{
	struct message *m = &e->visit.message;
	uint32_t job = tally_le32_get(m->header.job) - WORLD_FIRST_JOB;
	struct spill_reply reply;
	enum tally_outcome outcome = spill_message(w->spill, &m->header, e->bytes, &w->service,
						   NULL, WORLD_UP_MS * 1000000ull + w->now_ns,
						   &reply);

	if (reply.to != TALLY_TO_NOBODY) {
		spill_release(w, &reply);
		e->job = job;
		memcpy(&m->header, reply.header, reply.header_bytes);
		if (reply.payload_bytes)
			memcpy(message_words(m), reply.word, reply.payload_bytes);
	}
	node_leave(w, WORLD_ROOT, e, outcome);
}

/* Do chunks borrow their slots here? */
static inline bool node_borrows(const struct world *w, int node)
{
	return w->node[node].pool.slots && (node != WORLD_ROOT || w->spill);
}

/* Above the pool before the root there is the root. */
static inline struct memory_node node_as_inner(const struct world *w, int job, int node)
{
	struct memory_node n = w->job[job].at[node];

	n.role.root = false;
	return n;
}

/* An earlier run of the job left the like of this in the pool. */
static inline void pool_haunt(struct world *w, struct memory_pool *pool, const struct message *m)
{
	struct message old = *m;
	struct tally_set set = tally_header_set(&m->header);
	struct tally_offer offer = tally_offer_read(&m->header, &set);
	struct memory_borrowed *slot;
	struct tally_borrower b;

	old.header.epoch = tally_le16(WORLD_EPOCH - 1);
	b = tally_borrower_read(&old.header);
	slot = memory_borrowed(pool, &old.header);
	if (!tally_borrowed_is_free(&slot->books) || m->header.kind != TALLY_CONTRIBUTION)
		return;
	w->count.strays++;
	tally_borrowed_begin(&slot->books, &b, &offer);
	tally_slot_merge(&slot->books.state, &offer);
	memcpy(slot->word, message_words(&old), sizeof(slot->word));
	slot->word[0]++;
}

/* After the first step. What a swap sends is of the old holder, as if one of its ranks sent it. */
static inline void pool_take(struct world *w, struct world_event *e, const struct message *m)
{
	struct memory_node n = node_as_inner(w, e->job, e->to);
	struct memory_pool *pool = &w->node[e->to].pool;
	uint64_t swaps = pool->moves[TALLY_BORROWED_SWAPPED];

	if (chance(&w->random, w->options.stray))
		pool_haunt(w, pool, m);
	pool_begin(pool, &n, m, &e->visit);
	if (pool->moves[TALLY_BORROWED_SWAPPED] == swaps)
		return;
	e->job = tally_le32_get(e->visit.message.header.job) - WORLD_FIRST_JOB;
	e->from = WORLD_NODES + e->job * w->options.ranks +
		  tally_le16_get(e->visit.message.header.sender);
}

static inline void pool_second_step(struct world *w, struct world_event *e)
{
	struct memory_node n = node_as_inner(w, e->job, e->to);
	enum tally_outcome outcome = pool_end(&w->node[e->to].pool, &n, &e->visit);

	if (e->to != WORLD_ROOT || tally_outcome_to(outcome) != TALLY_TO_ROOT) {
		node_leave(w, e->to, e, outcome);
		return;
	}
	w->count.outcome[outcome]++;
	e->bytes = message_bytes(&e->visit.message);
	if (w->spill) /* it may have gone between the steps */
		spill_take(w, e);
}

static inline void node_second_step(struct world *w, struct world_event *e)
{
	int node = e->to;

	if (e->borrows)
		pool_second_step(w, e);
	else
		node_leave(w, node, e, visit_end(&w->job[e->job].at[node], &e->visit));
}

/* At times other messages come between the two steps of one. True: `e` is kept for the second. */
static inline bool node_take(struct world *w, struct world_event *e)
{
	struct message m = e->visit.message;
	enum tally_outcome outcome;
	int node = e->to;

	if (w->node[node].mute)
		return false;
	e->borrows = node_borrows(w, node);
	if (node == WORLD_ROOT && w->spill && !e->borrows) {
		spill_take(w, e);
		return false;
	}
	outcome = node_parse(w, node, e, &e->job);
	if (outcome != TALLY_GO_ON) {
		node_leave(w, node, e, outcome);
		return false;
	}
	w->job[e->job].at[node].now_ms = WORLD_UP_MS + w->now_ns / 1000000;
	if (e->borrows)
		pool_take(w, e, &m);
	else
		visit_begin(&w->job[e->job].at[node], &m, &e->visit);
	if (!e->visit.reply.take || !chance(&w->random, w->options.wait)) {
		node_second_step(w, e);
		return false;
	}
	w->count.second_steps++;
	e->is_second_step = true;
	e->due_ns = w->now_ns + random_below(&w->random, w->options.jitter_ns + 1) *
					(chance(&w->random, 100) ? 32 : 2);
	event_put(w, e);
	return true;
}

/* A run, as the spill is told of it: one child for each worker at the root and each node there. */
static inline void spill_put(struct world *w, int job)
{
	struct spill_child child[WORLD_RANKS + WORLD_NODES] = { 0 };
	struct spill_job_options options = { .everyone = w->job[job].everyone,
					     .service = w->service,
					     .id = WORLD_FIRST_JOB + job,
					     .epoch = WORLD_EPOCH,
					     .window = w->options.window,
					     .payload_bytes = WORLD_PAYLOAD,
					     .child = child };

	for (int i = 0; i < w->workers; i++)
		if (w->worker[i].job == job && w->worker[i].node == WORLD_ROOT)
			tally_set_add(&child[options.children++].below, w->worker[i].rank);
	for (int node = 1; node < w->nodes; node++)
		if (w->node[node].up == WORLD_ROOT && !tally_set_is_empty(&w->job[job].below[node]))
			child[options.children++].below = w->job[job].below[node];
	if (spill_job_put(w->spill, &options) < 0)
		w->wrong = "the spill does not take a job";
}

static inline void spill_end(struct world *w)
{
	w->count.evicted += w->spill ? spill_memory(w->spill).evicted : 0;
	spill_free(w->spill);
	w->spill = NULL;
}

static inline void spill_begin(struct world *w)
{
	spill_end(w);
	w->spill = spill_new(w->options.spill_sums * (size_t)WORLD_PAYLOAD, ++w->spill_boot,
			     spill_settle, w);
	for (int job = 0; job < w->options.jobs; job++)
		spill_put(w, job);
}

static inline void world_blame_nobody(struct world *w)
{
	for (int job = 0; job < w->options.jobs; job++)
		for (int i = 0; i < WORLD_FATES; i++)
			w->job[job].fate[i].any = true;
}

/* A node loses its memory. Messages between their two steps stay. */
static inline void world_restart(struct world *w, int node)
{
	memset(w->node[node].slot, 0, sizeof(w->node[node].slot));
	memset(w->node[node].pool.slot, 0, sizeof(w->node[node].pool.slot));
	w->count.restarts++;
	for (int job = 0; job < w->options.jobs; job++)
		w->job[job].at[node].boot++;
	if (node == WORLD_ROOT && w->spill)
		spill_begin(w);
	world_blame_nobody(w);
}

static inline struct memory_slot *world_ring(struct world *w, int node, int ring)
{
	return &w->node[node].slot[ring * 2 * WORLD_WINDOW];
}

/*
 * A job's slots are elsewhere from now on, where another job's may have been, and begin empty; the
 * boot number stays. A visit that has begun ends as if its frame had waited somewhere meanwhile.
 */
static inline void world_move_ring(struct world *w, int job, int node)
{
	struct memory_node *n = &w->job[job].at[node];
	struct memory_slot *to = world_ring(w, node, w->node[node].free_ring);

	memset(to, 0, 2 * WORLD_WINDOW * sizeof(*to));
	w->node[node].free_ring = (int)(n->slot - w->node[node].slot) / (2 * WORLD_WINDOW);
	n->slot = to;
	w->count.rings_moved++;
	world_blame_nobody(w);
}

/*
 * The runs' sums are made in user space from now on, or in slots again. What was gathered is lost;
 * or the slots have it still when the runs come back.
 */
static inline void world_move(struct world *w, bool forget)
{
	w->count.moves++;
	if (w->spill)
		spill_end(w);
	else
		spill_begin(w);
	if (forget)
		world_restart(w, WORLD_ROOT);
	world_blame_nobody(w);
}

/* Who is behind which node. */
static inline void world_route(struct world *w, int job)
{
	memset(w->job[job].below, 0, sizeof(w->job[job].below));
	for (int i = 0; i < w->workers; i++)
		for (int node = w->worker[i].node; w->worker[i].job == job && node >= 0;
		     node = w->node[node].up)
			tally_set_add(&w->job[job].below[node], w->worker[i].rank);
	if (w->spill)
		spill_put(w, job);
}

/* --- workers */

static inline void worker_count(struct world *w, struct world_worker *worker,
				const struct tally_header *h, bool fresh)
{
	struct world_fate *f = world_fate(w, worker->job, tally_le32_get(h->seq));
	bool own = tally_set_has(&f->ranks, worker->rank);

	worker->said++;
	w->count.kind[h->kind]++;
	if (!fresh && h->kind == TALLY_CONTRIBUTION)
		w->count.resends[own ? CAUSE_OWN : f->any ? CAUSE_OTHERS : CAUSE_NONE]++;
	f->ranks.word[worker->rank / 64] &= ~(1ULL << worker->rank % 64);
}

/* Ranks of one job may have any priorities. */
static inline void worker_hurry(struct world *w, struct tally_header *h)
{
	struct tally_set set = tally_header_set(h);

	h->priority = random_below(&w->random, 8);
	h->tag = tally_le64(tally_tag(h, &set));
}

static inline void worker_say(struct world *w, struct world_worker *worker,
			      const struct datagram *d)
{
	struct world_event e = { .to = worker->node,
				 .from = WORLD_NODES + (worker - w->worker),
				 .job = worker->job,
				 .bytes = d->length };

	if (d->length > sizeof(e.visit.message.header) + sizeof(e.visit.message.word)) {
		w->wrong = "a worker sends what is too long";
		return;
	}
	memcpy(&e.visit.message.header, d->bytes, d->length);
	if (message_bytes(&e.visit.message) != d->length)
		w->wrong = "a worker sends what is not as long as it says";
	if (w->options.pool_slots)
		worker_hurry(w, &e.visit.message.header);
	worker_count(w, worker, &e.visit.message.header, d->fresh);
	world_send(w, &e);
}

/* Sends what the worker has to send now, as its program would by looking after its calls. */
static inline void world_look(struct world *w, int i)
{
	struct world_worker *worker = &w->worker[i];
	struct datagram d[WORLD_DATAGRAMS];
	size_t n;

	do {
		n = engine_output(worker->engine, w->now_ns, d, WORLD_DATAGRAMS);
		for (size_t k = 0; k < n && !worker->dead; k++)
			worker_say(w, worker, &d[k]);
	} while (n == WORLD_DATAGRAMS);
	worker->due_ns = engine_wakeup(worker->engine);
	if (worker->due_ns <= w->now_ns)
		worker->due_ns = w->now_ns + 1;
	w->touched = i;
}

/* Nobody looks after the worker for so long. What comes in meanwhile waits. */
static inline void world_sleep(struct world *w, int i, uint64_t ns)
{
	w->worker[i].asleep_ns = w->worker[i].due_ns = w->now_ns + ns;
}

/* True: `e` stays where it is until the worker wakes. */
static inline bool worker_hear(struct world *w, struct world_event *e)
{
	int i = e->to - WORLD_NODES;
	struct world_worker *worker = &w->worker[i];

	if (worker->asleep_ns > w->now_ns) {
		e->due_ns = worker->asleep_ns;
		event_put(w, e);
		return true;
	}
	worker->heard++;
	if (w->options.lie)
		w->options.lie(w, worker->rank, &e->visit.message);
	engine_input(worker->engine, &e->visit.message.header, e->bytes, w->now_ns);
	world_look(w, i);
	return false;
}

/* --- the world */

static inline uint64_t worker_due(const struct world_worker *worker)
{
	return worker->due_ns > worker->asleep_ns ? worker->due_ns : worker->asleep_ns;
}

/* One thing happens, and it is as late as that. Without anything to happen a millisecond goes. */
static inline void world_step(struct world *w)
{
	uint64_t due_ns = w->events ? w->heap[0]->due_ns : UINT64_MAX;
	struct world_event *e;
	int first = -1;

	w->touched = -1;
	for (int i = 0; i < w->workers; i++) {
		if (worker_due(&w->worker[i]) >= due_ns)
			continue;
		due_ns = worker_due(&w->worker[i]);
		first = i;
	}
	if (due_ns == UINT64_MAX)
		due_ns = w->now_ns + 1000000;
	w->now_ns = due_ns > w->now_ns ? due_ns : w->now_ns;
	if (first >= 0) {
		world_look(w, first);
	} else if (w->events) {
		bool kept = false;

		e = event_take(w);
		if (e->is_second_step)
			node_second_step(w, e);
		else if (e->to >= WORLD_NODES)
			kept = worker_hear(w, e);
		else
			kept = node_take(w, e);
		if (!kept)
			event_free(w, e);
	}
}

/* Everybody is idle: what is on its way arrives, and then nobody has anything more to say. */
static inline bool world_falls_silent(struct world *w)
{
	for (int steps = 0; steps < 1000 * w->workers + 100000; steps++) {
		bool due = w->events;

		for (int i = 0; i < w->workers; i++)
			due |= w->worker[i].due_ns != UINT64_MAX;
		if (!due)
			return true;
		world_step(w);
	}
	return false;
}

static const struct {
	int nodes;
	int up[WORLD_NODES];
	int first, last; /* nodes that workers may be at */
} world_trees[TREES] = {
	[TREE_ALONE] = { .nodes = 1, .up = { -1 } },
	[TREE_ONE_LEVEL] = { .nodes = 3, .up = { -1, 0, 0 }, .first = 1, .last = 2 },
	[TREE_TWO_LEVELS] = { .nodes = 6, .up = { -1, 0, 0, 1, 1, 2 }, .first = 3, .last = 5 },
	[TREE_MIXED] = { .nodes = 6, .up = { -1, 0, 0, 1, 1, 2 }, .first = 0, .last = 5 },
};

static inline void world_add_worker(struct world *w, int job, int rank)
{
	const struct world_options *o = &w->options;
	int first = world_trees[o->tree].first, last = world_trees[o->tree].last;
	struct world_worker *worker = &w->worker[w->workers++];
	struct engine_options options = {
		.window = { .job = WORLD_FIRST_JOB + job,
			    .epoch = WORLD_EPOCH,
			    .rank = rank,
			    .workers = o->ranks,
			    .window = o->window,
			    .follows = o->seed & 1,
			    .payload_bytes = WORLD_PAYLOAD,
			    .nonce = o->nonce ? WORLD_NONCE + job : 0,
			    .sealed = o->sealed,
			    .secret = { { 0x5ec, 0x2e7 } } },
		.random = random_next(&w->random),
		.timeout_ns = o->timeout_ns,
		.service = "10.77.0.1",
	};

	*worker = (struct world_worker){ .job = job, .rank = rank, .due_ns = UINT64_MAX };
	worker->node = first + random_below(&w->random, last - first + 1);
	if (engine_new(&options, &worker->engine) < 0)
		abort();
}

static inline void world_add_job(struct world *w, int job)
{
	const struct world_options *o = &w->options;
	struct world_job *j = &w->job[job];

	j->everyone = tally_set_first(o->ranks);
	for (int node = 0; node < w->nodes; node++)
		j->at[node] = (struct memory_node){
			.role = { .everyone = &j->everyone,
				  .below = &j->below[node],
				  .epoch = WORLD_EPOCH,
				  .blocks_max = MESSAGE_BLOCKS_MAX,
				  .root = node == WORLD_ROOT },
			.boot = 1 + 0x1000 * node,
			.frames_grow = o->frames_grow,
			.slots = 2 * o->window,
			.slot = world_ring(w, node, job),
		};
	for (int rank = 0; rank < o->ranks; rank++)
		world_add_worker(w, job, rank);
	world_route(w, job);
}

/* A worker's frames come to another node from now on, and results by that. Nodes keep their sums.
 */
static inline void world_reroute(struct world *w, int i)
{
	int first = world_trees[w->options.tree].first, last = world_trees[w->options.tree].last;

	w->count.reroutes++;
	w->worker[i].node = first + random_below(&w->random, last - first + 1);
	world_route(w, w->worker[i].job);
	world_blame_nobody(w);
}

static inline struct world *world_new(const struct world_options *options)
{
	struct world *w = calloc(1, sizeof(*w));

	w->options = *options;
	w->random = options->seed;
	w->now_ns = 1000;
	w->nodes = world_trees[options->tree].nodes;
	for (int node = 0; node < w->nodes; node++) {
		w->node[node].up = world_trees[options->tree].up[node];
		w->node[node].free_ring = WORLD_JOBS;
		w->node[node].pool.policy = options->policy;
		w->node[node].pool.slots = options->pool_slots;
		w->node[node].pool.range = options->ranges ? options->window : 0;
	}
	if (address_parse("10.77.0.1", TALLY_UDP_PORT, &w->service) < 0)
		abort();
	for (int job = 0; job < options->jobs; job++)
		world_add_job(w, job);
	if (options->spill_sums && chance(&w->random, 500))
		spill_begin(w);
	return w;
}

/* For who looks at one world. */
static inline void world_print(const struct world *w)
{
	const struct world_options *o = &w->options;
	const struct world_count *c = &w->count;

	print_message("tree %d, %d jobs of %d ranks, window %d; of 1000: loss %u, repeat %u, "
		      "flip %u, wait %u; jitter %.3f ms\n",
		      o->tree, o->jobs, o->ranks, o->window, o->loss, o->repeat, o->flip, o->wait,
		      o->jitter_ns / 1e6);
	print_message("%.3f s: %llu frames, %llu lost, %llu flipped; %llu copies, %llu of asks; "
		      "%llu restarts, %llu moves, %llu reroutes, %llu rings moved, "
		      "%llu evicted of %d sums\n",
		      w->now_ns / 1e9, (unsigned long long)c->frames, (unsigned long long)c->lost,
		      (unsigned long long)c->flips, (unsigned long long)c->copies,
		      (unsigned long long)c->asks, (unsigned long long)c->restarts,
		      (unsigned long long)c->moves, (unsigned long long)c->reroutes,
		      (unsigned long long)c->rings_moved, (unsigned long long)c->evicted,
		      o->spill_sums);
	print_message(
		"sent again: %llu for own, %llu for others', %llu for no loss; %llu repairs\n",
		(unsigned long long)c->resends[CAUSE_OWN],
		(unsigned long long)c->resends[CAUSE_OTHERS],
		(unsigned long long)c->resends[CAUSE_NONE],
		(unsigned long long)c->kind[TALLY_REPAIR]);
	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (c->outcome[i])
			print_message("%s %llu\n", tally_outcome_name(i),
				      (unsigned long long)c->outcome[i]);
}

static inline void world_free(struct world *w)
{
	while (w->events)
		event_free(w, event_take(w));
	while (w->unused) {
		struct world_event *next = w->unused->next;

		free(w->unused);
		w->unused = next;
	}
	for (int i = 0; i < w->workers; i++)
		engine_free(w->worker[i].engine);
	spill_free(w->spill);
	free(w->heap);
	free(w);
}

#endif
