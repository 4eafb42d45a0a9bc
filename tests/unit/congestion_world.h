/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Jobs of real windows on links that have a rate and a queue, and a flow of TCP beside them, under
 * a clock that the world turns. Rank r of each job is at host r; each host has a cable to a switch,
 * and the switch one to the node. A cable has a queue at each end. The flow goes from host 0 to
 * the node's machine. Chunks have no words here: they only take so long as if they had.
 *
 *	world_new(), world_job() for each, world_run() until some time, what was finished
 */
#ifndef TALLY_TESTS_UNIT_CONGESTION_WORLD_H
#define TALLY_TESTS_UNIT_CONGESTION_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tally/check.h>

#include "client/window_private.h"
#include "tests/unit/cubic.h"
#include "tests/unit/memory_node.h"
#include "tests/unit/random.h"

enum {
	WORLD_JOBS = 2,
	WORLD_RANKS = 8,
	WORLD_WINDOW_MAX = 256,
	WORLD_PACKET_BYTES = 1500,
	WORLD_DATAGRAMS = 32,
};

#define US UINT64_C(1000)
#define MS (1000 * US)

/* One direction of a cable. */
struct pipe {
	uint64_t rate; /* bits in a second; 0: no limit */
	uint64_t delay_ns;
	uint32_t queue, marks_above; /* packets; 0 of the latter: nothing is marked */
	uint32_t loss; /* of 100,000 */
	uint64_t free_ns; /* all that waits has left then */
	uint64_t packets, dropped;
	uint32_t longest; /* queue */
};

struct world_options {
	uint64_t seed;
	bool follows;
	int ranks;
	struct pipe host[2], port[2]; /* up, down */
	bool flow; /* there is one of TCP */
};

struct world_rank {
	struct window *window;
	uint64_t late_ns; /* it begins each call so much later than it could */
	uint64_t begin_ns; /* of its next call; UINT64_MAX: it is in one, or all are over */
	uint32_t next, end; /* chunks: the next call's first; behind the last one of this call */
	uint32_t results, burst; /* of this call; the longest, since it was set to 0 */
	uint64_t finished; /* chunks */
};

struct world_job {
	int window;
	uint32_t chunks; /* of a call */
	uint64_t pause_ns; /* between calls */
	struct memory_node node;
	struct memory_slot slot[2 * WORLD_WINDOW_MAX];
	struct world_rank rank[WORLD_RANKS];
	uint64_t calls, slowest_ns, began_ns; /* of rank 0; the latter of the call that is on */
};

enum world_hop {
	HOP_TO_SWITCH, /* up */
	HOP_TO_NODE,
	HOP_TO_PORT, /* down: it has left the node */
	HOP_TO_RANK,
	HOP_ACK,
};

struct world_event {
	uint64_t due_ns, serial;
	enum world_hop hop;
	int job, rank; /* job -1: the flow's packet `number` */
	uint64_t number;
	bool marked;
	struct message message;
};

struct world {
	struct world_options options;
	uint64_t now_ns, random, serial;
	struct tally_set everyone;
	struct pipe host[WORLD_RANKS][2], port[2];
	int jobs;
	struct world_job job[WORLD_JOBS];
	struct cubic flow;
	struct world_event **heap;
	size_t events, events_max;
};

/* --- events */

static inline bool event_is_before(const struct world_event *a, const struct world_event *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->serial < b->serial;
}

static inline void event_put(struct world *w, const struct world_event *from, uint64_t due_ns)
{
	struct world_event *e = malloc(sizeof(*e));
	size_t i = w->events++;

	*e = *from;
	e->due_ns = due_ns;
	e->serial = w->serial++;
	if (i == w->events_max) {
		w->events_max = 2 * w->events_max + 64;
		w->heap = realloc(w->heap, w->events_max * sizeof(struct world_event *));
	}
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

/* --- cables */

/* Puts it into the queue; what is lost never comes out. */
static inline void pipe_send(struct world *w, struct pipe *p, struct world_event *e,
			     enum world_hop hop)
{
	uint64_t packet_ns = p->rate ? WORLD_PACKET_BYTES * 8000000000ull / p->rate : 0;
	uint64_t from_ns = p->free_ns > w->now_ns ? p->free_ns : w->now_ns;
	uint32_t waiting = packet_ns ? (from_ns - w->now_ns + packet_ns - 1) / packet_ns : 0;

	if (waiting >= p->queue) {
		p->dropped++;
		return;
	}
	p->packets++;
	p->longest = waiting > p->longest ? waiting : p->longest;
	p->free_ns = from_ns + packet_ns;
	if (random_below(&w->random, 100000) < p->loss)
		return;
	e->marked |= p->marks_above && waiting > p->marks_above;
	e->hop = hop;
	event_put(w, e, p->free_ns + p->delay_ns);
}

/* --- ranks */

static inline void rank_post(struct world_rank *k, uint32_t seq)
{
	struct tally_header *h = window_compose(k->window, seq);

	h->call = tally_le64(0xca11);
	h->recipient = tally_le16(TALLY_EVERYONE);
	h->lane = TALLY_LANE_NONE;
	h->blocks = 0;
	window_post(k->window, seq, seq, 0, 0);
}

static inline void rank_send(struct world *w, int job, int rank)
{
	struct world_rank *k = &w->job[job].rank[rank];
	struct world_event e = { .job = job, .rank = rank };
	struct datagram d[WORLD_DATAGRAMS];
	uint32_t burst = 0;
	size_t n;

	do {
		n = window_output(k->window, w->now_ns, d, WORLD_DATAGRAMS);
		for (size_t i = 0; i < n; i++) {
			memcpy(&e.message.header, d[i].bytes, sizeof(e.message.header));
			e.marked = false;
			burst += d[i].fresh;
			pipe_send(w, &w->host[rank][0], &e, HOP_TO_SWITCH);
		}
	} while (n == WORLD_DATAGRAMS);
	k->burst = burst > k->burst ? burst : k->burst;
}

static inline void rank_begin(struct world *w, int job, int rank)
{
	struct world_job *j = &w->job[job];
	struct world_rank *k = &j->rank[rank];

	k->begin_ns = UINT64_MAX;
	k->end = k->next + j->chunks;
	k->results = 0;
	j->began_ns = rank ? j->began_ns : w->now_ns;
	for (uint32_t i = 0; i < j->chunks && i < (uint32_t)j->window; i++)
		rank_post(k, k->next + i);
	k->next = k->end;
	rank_send(w, job, rank);
}

static inline void rank_end(struct world *w, struct world_job *j, struct world_rank *k)
{
	k->begin_ns = w->now_ns + j->pause_ns + k->late_ns;
	if (k != j->rank)
		return;
	j->calls++;
	if (w->now_ns - j->began_ns > j->slowest_ns)
		j->slowest_ns = w->now_ns - j->began_ns;
}

static inline void rank_take(struct world *w, const struct world_event *e)
{
	struct world_job *j = &w->job[e->job];
	struct world_rank *k = &j->rank[e->rank];
	uint32_t seq;

	if (window_input(k->window, &e->message.header, sizeof(e->message.header), w->now_ns,
			 &seq)) {
		k->finished++;
		if ((int32_t)(seq + j->window - k->end) < 0)
			rank_post(k, seq + j->window);
		if (++k->results == j->chunks)
			rank_end(w, j, k);
	}
	rank_send(w, e->job, e->rank);
}

/* --- the node */

/* As a mark in the packet would be taken for one of its message. */
static inline void message_mark(struct message *m)
{
	const struct tally_set set = tally_header_set(&m->header);

	m->header.flags |= TALLY_MARKED;
	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

static inline void node_take(struct world *w, struct world_event *e)
{
	struct memory_node *n = &w->job[e->job].node;
	struct world_event copy = { .job = e->job };
	enum tally_outcome outcome;
	struct visit v;

	if (e->marked)
		message_mark(&e->message);
	n->now_ms = 1 + w->now_ns / MS;
	visit_begin(n, &e->message, &v);
	outcome = visit_end(n, &v);
	if (tally_outcome_to(outcome) == TALLY_TO_NOBODY)
		return;
	for (int rank = 0; rank < w->options.ranks; rank++) {
		struct tally_set me = { { 1ull << rank } };

		if (tally_outcome_to(outcome) == TALLY_TO_SENDER && rank != e->rank)
			continue;
		copy.rank = rank;
		copy.marked = false;
		copy.message = message_copy(&v.message, &me);
		pipe_send(w, &w->port[1], &copy, HOP_TO_PORT);
	}
}

/* --- the flow */

static inline void flow_send(struct world *w)
{
	struct world_event e = { .job = -1 };

	while (w->options.flow && cubic_may_send(&w->flow)) {
		e.number = cubic_send(&w->flow, w->now_ns);
		pipe_send(w, &w->host[0][0], &e, HOP_TO_SWITCH);
	}
}

/* --- the world */

static inline void world_step(struct world *w, struct world_event *e)
{
	const bool is_flow = e->job < 0;

	if (e->hop == HOP_TO_SWITCH) {
		pipe_send(w, &w->port[0], e, HOP_TO_NODE);
	} else if (e->hop == HOP_TO_PORT) {
		pipe_send(w, &w->host[e->rank][1], e, HOP_TO_RANK);
	} else if (e->hop == HOP_TO_NODE && is_flow) {
		e->hop = HOP_ACK;
		event_put(w, e, w->now_ns + 2 * w->options.host[0].delay_ns);
	} else if (e->hop == HOP_TO_NODE) {
		node_take(w, e);
	} else if (is_flow) {
		cubic_ack(&w->flow, e->number, e->marked, w->now_ns);
		flow_send(w);
	} else {
		if (e->marked)
			message_mark(&e->message);
		rank_take(w, e);
	}
}

/* What is next: an event, or a rank that wakes up or begins a call. */
static inline uint64_t world_next(const struct world *w, int *ret_job, int *ret_rank)
{
	uint64_t next_ns = w->events ? w->heap[0]->due_ns : UINT64_MAX;

	*ret_job = -1;
	for (int j = 0; j < w->jobs; j++) {
		for (int r = 0; r < w->options.ranks; r++) {
			const struct world_rank *k = &w->job[j].rank[r];
			uint64_t due_ns = window_wakeup(k->window);

			due_ns = due_ns < k->begin_ns ? due_ns : k->begin_ns;
			if (due_ns >= next_ns)
				continue;
			next_ns = due_ns;
			*ret_job = j;
			*ret_rank = r;
		}
	}
	return next_ns;
}

static inline void world_run(struct world *w, uint64_t until_ns)
{
	int job, rank = 0;

	flow_send(w);
	for (uint64_t next_ns; (next_ns = world_next(w, &job, &rank)) < until_ns;) {
		w->now_ns = next_ns > w->now_ns ? next_ns : w->now_ns;
		if (job < 0) {
			struct world_event *e = event_take(w);

			world_step(w, e);
			free(e);
		} else if (w->job[job].rank[rank].begin_ns <= w->now_ns) {
			rank_begin(w, job, rank);
		} else {
			rank_send(w, job, rank);
		}
	}
	w->now_ns = until_ns;
}

static inline struct world *world_new(const struct world_options *options)
{
	struct world *w = calloc(1, sizeof(*w));

	w->options = *options;
	w->random = options->seed;
	w->now_ns = MS;
	w->everyone = tally_set_first(options->ranks);
	memcpy(w->port, options->port, sizeof(w->port));
	for (int i = 0; i < options->ranks; i++)
		memcpy(w->host[i], options->host, sizeof(w->host[i]));
	cubic_init(&w->flow);
	return w;
}

/* A job that begins at `begin_ns`. */
static inline struct world_job *world_job(struct world *w, int window, uint32_t chunks,
					  uint64_t begin_ns)
{
	struct world_job *j = &w->job[w->jobs];
	struct window_options o = { .job = 1 + w->jobs,
				    .epoch = 1,
				    .workers = w->options.ranks,
				    .window = window,
				    .payload_bytes = TALLY_BLOCK_BYTES,
				    .nonce = 99,
				    .follows = w->options.follows };

	j->window = window;
	j->chunks = chunks;
	j->node = (struct memory_node){ .role = { .everyone = &w->everyone,
						  .below = &w->everyone,
						  .epoch = 1,
						  .blocks_max = 1,
						  .root = true },
					.boot = 1,
					.slots = 2u * window,
					.slot = j->slot };
	for (int r = 0; r < w->options.ranks; r++) {
		o.rank = r;
		window_new(&o, &j->rank[r].window);
		j->rank[r].begin_ns = begin_ns;
	}
	w->jobs++;
	return j;
}

static inline void world_free(struct world *w)
{
	for (size_t i = 0; i < w->events; i++)
		free(w->heap[i]);
	free(w->heap);
	for (int j = 0; j < w->jobs; j++)
		for (int r = 0; r < w->options.ranks; r++)
			window_free(w->job[j].rank[r].window);
	free(w);
}

#endif
