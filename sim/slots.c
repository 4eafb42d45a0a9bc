// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "slots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/random.h"
#include "common/owned.h"

enum kind {
	BEGIN, /* a worker has computed */
	SEND, /* its link is free */
	AT_NODE,
	AT_ROOT,
	DOWN_AT_NODE, /* a result */
	DOWN_AT_WORKERS,
	LOOK, /* has a worker waited long enough? `flush`: it knows that it has to send again */
};

struct event {
	uint64_t tick, serial, set;
	uint32_t seq;
	uint16_t job;
	uint8_t kind, rank, priority;
	bool flush;
};

struct worker {
	uint32_t next, end; /* chunks to send in this iteration */
	bool sending;
};

struct job {
	const struct slots_job *is;
	struct tally_set everyone;
	uint32_t compute, iteration, window;
	uint32_t oldest; /* chunk without a result at the workers */
	uint64_t root_free; /* tick at which the link to the root is */
	bool *done; /* by chunk: the workers have the result */
	struct tally_slot_state *root; /* by chunk */
	struct tally_slot_state *ring; /* at the node; static pools */
	struct worker *worker;
};

struct slots {
	const struct slots_options *o;
	uint32_t books; /* of each job's `done` and `root`: two windows */
	uint32_t ring; /* slots of each job; static pools */
	uint32_t running;
	uint64_t tick, serial, random, chunks, to_roots;
	struct job *job;
	bool *done; /* what jobs have: all of it */
	struct tally_slot_state *root, *ring_slot;
	struct worker *worker;
	struct tally_borrowed_slot *slot;
	struct event *heap;
	size_t events, events_max;
	struct slots_result result;
	int error;
};

static uint32_t random_below(struct slots *s, uint32_t limit)
{
	uint64_t number = random_bits(&s->random);

	return limit ? number % limit : 0;
}

static uint32_t round_trip(const struct slots *s) { return 4 * s->o->hop; }

/* --- events: a heap -------------------------------------------------------------------------- */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->tick != b->tick ? a->tick < b->tick : a->serial < b->serial;
}

static void put(struct slots *s, struct event e, uint64_t in_ticks)
{
	size_t i = s->events;

	if (i == s->events_max) {
		struct event *heap = realloc(s->heap, (2 * i + 1024) * sizeof(e));

		if (!heap) {
			s->error = -ENOMEM;
			return;
		}
		s->heap = heap;
		s->events_max = 2 * i + 1024;
	}
	s->events++;
	e.tick = s->tick + in_ticks;
	e.serial = s->serial++;
	for (; i && is_before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = e;
}

static struct event take(struct slots *s)
{
	struct event top = s->heap[0], last = s->heap[--s->events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->events) {
		if (child + 1 < s->events && is_before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (is_before(&last, &s->heap[child]))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return top;
}

/* --- workers --------------------------------------------------------------------------------- */

/*
 * As ESA has it: much to communicate beside what is computed, little time that remains, layers of
 * the front, which are sent last. Eight steps for each factor of two, so that a downgrade takes the
 * square root.
 */
static uint8_t priority_of(const struct slots *s, const struct job *j, uint32_t seq)
{
	double chunks = j->is->chunks, compute = j->compute;
	double part = (double)(seq - j->iteration * j->is->chunks) / chunks;
	double left = (j->is->iterations - j->iteration) * (chunks + compute);
	double p = chunks / compute / left * (0.5 + part / 2);
	double steps = round(8 * log2(p / 1e-6));

	if (s->o->policy->same_priority)
		return 1;
	return steps < 1 ? 1 : steps > 255 ? 255 : steps;
}

static void begin_sending(struct slots *s, uint32_t job, uint32_t rank)
{
	struct job *j = &s->job[job];
	struct worker *w = &j->worker[rank];

	if (w->sending || w->next >= w->end || w->next - j->oldest >= j->window)
		return;
	w->sending = true;
	put(s, (struct event){ .kind = SEND, .job = job, .rank = rank }, 1);
}

static void say(struct slots *s, uint32_t job, uint32_t rank, uint32_t seq, bool flush)
{
	const struct job *j = &s->job[job];
	/* Ranks flush one after the other. */
	uint32_t turn = (rank + seq) % j->is->workers * (round_trip(s) / 2);
	struct event e = { .kind = AT_NODE,
			   .job = job,
			   .rank = rank,
			   .seq = seq,
			   .priority = priority_of(s, j, seq),
			   .flush = flush,
			   .set = 1ULL << rank };

	put(s, e, s->o->hop);
	e.kind = LOOK;
	e.flush = false;
	if (!s->o->policy->is_static) /* whose slots are never another chunk's */
		put(s, e, (uint64_t)round_trip(s) + s->o->spread + turn);
}

static void send_next(struct slots *s, const struct event *e)
{
	struct worker *w = &s->job[e->job].worker[e->rank];

	w->sending = false;
	say(s, e->job, e->rank, w->next++, false);
	begin_sending(s, e->job, e->rank);
}

static struct tally_borrowed_slot *slot_of(struct slots *s, const struct event *e,
					   struct tally_borrower *ret)
{
	*ret = (struct tally_borrower){
		.job = e->job, .epoch = 1, .priority = e->priority, .standing = e->priority
	};
	if (s->o->policy->in_ranges) {
		ret->range = s->o->window;
		ret->base = (uint64_t)e->job * s->o->slots / s->o->jobs;
	}
	return &s->slot[tally_borrowed_place(ret, e->seq, s->o->slots)];
}

/* Whose contribution has waited in a slot flushes it; who is on the way or at the root waits. */
static void look(struct slots *s, const struct event *e)
{
	const struct job *j = &s->job[e->job];
	struct tally_set there = tally_slot_there(&j->root[e->seq % (2 * j->window)], e->seq,
						  &j->everyone);
	struct tally_borrower b;
	const struct tally_borrowed_slot *slot = slot_of(s, e, &b);

	if (e->seq - j->oldest >= j->window || tally_set_has(&there, e->rank))
		return;
	if (e->flush || (tally_borrowed_holds(slot, &b, e->seq) && !slot->left &&
			 tally_set_has(&slot->state.set, e->rank)))
		say(s, e->job, e->rank, e->seq, true);
	else
		put(s, *e, (uint64_t)round_trip(s) + s->o->spread);
}

static void begin_iteration(struct slots *s, uint32_t job, uint64_t after)
{
	const struct job *j = &s->job[job];

	for (uint32_t rank = 0; rank < j->is->workers; rank++)
		put(s, (struct event){ .kind = BEGIN, .job = job, .rank = rank },
		    after + j->compute + random_below(s, s->o->spread + 1));
}

static void have_result(struct slots *s, const struct event *e)
{
	struct job *j = &s->job[e->job];

	j->done[e->seq % s->books] = true;
	while (j->oldest < j->worker[0].end && j->done[j->oldest % s->books])
		j->done[j->oldest++ % s->books] = false;
	if (j->oldest < (j->iteration + 1) * j->is->chunks) {
		for (uint32_t rank = 0; rank < j->is->workers; rank++)
			begin_sending(s, e->job, rank);
	} else if (++j->iteration < j->is->iterations) {
		begin_iteration(s, e->job, 0);
	} else {
		s->result.ended[e->job] = s->tick;
		s->running--;
	}
}

/* --- node and roots -------------------------------------------------------------------------- */

static struct tally_offer offer_of(const struct slots *s, const struct event *e)
{
	return (struct tally_offer){ .seq = e->seq,
				     .now_ms = s->tick,
				     .recipient = TALLY_EVERYONE,
				     .sender = e->rank,
				     .lane = TALLY_LANE_INT64,
				     .blocks = 1,
				     .flush = e->flush,
				     .set = { { e->set } } };
}

/* Waits for the link to its root. */
static void go_up(struct slots *s, struct event e)
{
	struct job *j = &s->job[e.job];

	if (j->root_free < s->tick)
		j->root_free = s->tick;
	j->root_free++;
	s->to_roots++;
	e.kind = AT_ROOT;
	put(s, e, j->root_free - s->tick + s->o->hop);
}

static void at_ring(struct slots *s, const struct tally_role *role, struct event *e)
{
	struct tally_slot_state *slot = &s->job[e->job].ring[e->seq % s->ring];
	struct tally_offer o = offer_of(s, e);
	struct tally_verdict v = tally_node_gather(role, TALLY_CONTRIBUTION, slot, &o);

	if (v.outcome == TALLY_SENT_UP || v.outcome == TALLY_FLUSHED_UP)
		e->set = slot->set.word[0];
	if (v.outcome == TALLY_FLUSHED_UP)
		tally_slot_empty(slot, e->seq);
	if (tally_outcome_to(v.outcome) == TALLY_TO_ROOT)
		go_up(s, *e);
}

static void at_pool(struct slots *s, const struct tally_role *role, struct event *e)
{
	const struct tally_borrowed_policy *rule = &s->o->policy->rule;
	struct tally_borrower b;
	struct tally_borrowed_slot *slot = slot_of(s, e, &b);
	struct tally_borrowed_slot out = { 0 };
	struct tally_offer o = offer_of(s, e);
	struct tally_borrowed_verdict v = tally_borrowed_gather(rule, role, slot, &b, &o, &out);
	struct tally_reply r = tally_reply_make(v.verdict, &out.state, &o.set);

	s->result.refused += v.move == TALLY_BORROWED_REFUSED;
	if (v.move == TALLY_BORROWED_SWAPPED) {
		s->result.swapped++;
		e->job = out.job;
		e->seq = out.state.seq;
		e->rank = out.sender;
		e->priority = out.priority;
	} else if (r.take && !tally_borrowed_take(rule, &r, slot, &b, &out.state)) {
		s->error = -EPROTO; /* nobody was there between the two steps */
	}
	if (r.kind)
		e->set = out.state.set.word[0];
	if (tally_outcome_to(v.verdict.outcome) == TALLY_TO_ROOT)
		go_up(s, *e);
}

static void at_node(struct slots *s, struct event *e)
{
	const struct job *j = &s->job[e->job];
	const struct tally_role role = { .everyone = &j->everyone, .below = &j->everyone };

	if (s->o->policy->is_static)
		at_ring(s, &role, e);
	else
		at_pool(s, &role, e);
}

/* Its ranks hear of it. */
static void drop(struct slots *s, const struct event *e)
{
	struct event lost = *e;

	lost.kind = LOOK;
	lost.flush = true;
	for (uint32_t rank = 0; rank < s->job[e->job].is->workers; rank++) {
		lost.rank = rank;
		if (e->set >> rank & 1)
			put(s, lost, round_trip(s) / 2);
	}
}

static void at_root(struct slots *s, struct event *e)
{
	struct job *j = &s->job[e->job];
	struct tally_offer o = offer_of(s, e);
	struct tally_verdict v;

	o.flush = false; /* nobody needs to be asked */
	v = tally_slot_admit_root(&j->root[e->seq % (2 * j->window)], &o, &j->everyone);
	if (v.outcome == TALLY_COMPLETED) {
		e->kind = DOWN_AT_NODE;
		put(s, *e, s->o->hop);
	} else if (v.outcome == TALLY_OVERLAP) {
		drop(s, e);
	}
}

static void down_at_node(struct slots *s, struct event *e)
{
	struct tally_borrower b;

	if (!s->o->policy->is_static)
		tally_borrowed_release(slot_of(s, e, &b), &b, e->seq);
	e->kind = DOWN_AT_WORKERS;
	put(s, *e, s->o->hop);
}

static void happen(struct slots *s, struct event *e)
{
	struct job *j = &s->job[e->job];

	switch ((enum kind)e->kind) {
	case BEGIN:
		j->worker[e->rank].end = (j->iteration + 1) * j->is->chunks;
		begin_sending(s, e->job, e->rank);
		break;
	case SEND:
		send_next(s, e);
		break;
	case AT_NODE:
		at_node(s, e);
		break;
	case AT_ROOT:
		at_root(s, e);
		break;
	case DOWN_AT_NODE:
		down_at_node(s, e);
		break;
	case DOWN_AT_WORKERS:
		have_result(s, e);
		break;
	case LOOK:
		look(s, e);
		break;
	}
}

/* --- a run ----------------------------------------------------------------------------------- */

static void slots_close(struct slots *s)
{
	free(s->job);
	free(s->done);
	free(s->root);
	free(s->ring_slot);
	free(s->worker);
	free(s->slot);
	free(s->heap);
	free(s->result.ended);
}

static int slots_open(struct slots *s)
{
	const struct slots_options *o = s->o;
	size_t workers = 0;

	s->random = o->seed;
	s->books = 2 * o->window;
	s->ring = o->slots / o->jobs < s->books ? o->slots / o->jobs : s->books;
	s->running = o->jobs;
	for (unsigned int i = 0; i < o->jobs; i++)
		workers += o->job[i].workers;
	s->job = calloc(o->jobs, sizeof(*s->job));
	s->done = calloc((size_t)o->jobs * s->books, sizeof(*s->done));
	s->root = calloc((size_t)o->jobs * s->books, sizeof(*s->root));
	s->ring_slot = calloc((size_t)o->jobs * s->ring + 1, sizeof(*s->ring_slot));
	s->worker = calloc(workers, sizeof(*s->worker));
	s->slot = calloc(o->slots, sizeof(*s->slot));
	s->result.ended = calloc(o->jobs, sizeof(*s->result.ended));
	if (!s->job || !s->done || !s->root || !s->ring_slot || !s->worker || !s->slot ||
	    !s->result.ended)
		return -ENOMEM;
	return 0;
}

static void begin_jobs(struct slots *s)
{
	struct worker *worker = s->worker;

	for (unsigned int i = 0; i < s->o->jobs; i++) {
		const struct slots_job *is = &s->o->job[i];
		struct job *j = &s->job[i];

		*j = (struct job){ .is = is,
				   .everyone = tally_set_first(is->workers),
				   .window = s->o->policy->is_static ? s->ring / 2 : s->o->window,
				   .done = s->done + (size_t)i * s->books,
				   .root = s->root + (size_t)i * s->books,
				   .ring = s->ring_slot + (size_t)i * s->ring,
				   .worker = worker };
		worker += is->workers;
		s->chunks += (uint64_t)is->chunks * is->iterations;
		j->compute = is->compute + random_below(s, is->compute_more);
		begin_iteration(s, i, is->arrives);
	}
}

static int go(struct slots *s, struct why *why)
{
	while (s->running && !s->error) {
		struct event e;

		if (!s->events)
			return why_say(why, -EDEADLK, "%s: nothing happens any more",
				       s->o->policy->name);
		e = take(s);
		s->tick = e.tick;
		if (s->o->ticks_max && s->tick > s->o->ticks_max)
			return why_say(why, -EDEADLK, "%s, %u slots: a job does not end",
				       s->o->policy->name, s->o->slots);
		happen(s, &e);
	}
	return s->error;
}

int slots_run(const struct slots_options *o, struct slots_result *ret, struct why *why)
{
	_cleanup_(slots_close) struct slots s = { .o = o };
	int r = slots_check(o, why);

	r = r < 0 ? r : slots_open(&s);
	if (r < 0)
		return r;
	begin_jobs(&s);
	r = go(&s, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < o->jobs; i++)
		s.result.mean += (double)(s.result.ended[i] - o->job[i].arrives) / o->jobs;
	s.result.to_roots = (double)s.to_roots / s.chunks;
	*ret = s.result;
	s.result.ended = NULL;
	return 0;
}
