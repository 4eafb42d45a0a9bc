// SPDX-License-Identifier: GPL-2.0-only
/*
 * How long jobs take where slots are scarce: a simulation, packet by packet, in which the node and
 * the roots run the rules that ship (tally/slot.h, tally/borrowed.h) and words do not matter.
 *
 * Eight jobs of eight workers share one node. Four communicate much and compute little, four the
 * other way. Each iteration a job computes, and each of its workers then sends its chunks, up to
 * `spread` late. A tick is the time of a packet on a link; each worker has a link to the node, and
 * so has the root of each job; a round trip is 100 ticks, which is the bandwidth-delay product.
 * What is not summed at the node waits in the queue to the root, which has no end: nothing is lost.
 * Recovery is ideal: a rank whose contribution is in a slot for a round trip and the spread flushes
 * it, one rank after the other, and nobody sends again what is in a queue. What the root drops
 * since it overlaps is sent again at once.
 *
 * Memory is in units of jobs x bandwidth-delay product: 800 slots. Static pools are rings of
 * reserved slots, and their windows are half a ring.
 *
 *	memory [SEEDS [SPREAD...]]	each spread is a table
 */
#include <err.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/borrowed.h>

enum {
	JOBS = 8,
	WORKERS = 8,
	HOP = 25, /* ticks from worker to node, and from node to root */
	ROUND_TRIP = 4 * HOP,
	WINDOW = 256,
	ITERATIONS = 4,
	TURN = ROUND_TRIP / 2, /* between ranks that flush */
	UNIT = JOBS * ROUND_TRIP, /* of memory, in slots */
	SLOTS_MAX = 8 * UNIT,
	SEEDS_MAX = 64,
	TICKS_MAX = 10 * 1000 * 1000, /* of a run: it does not end */
};

struct policy {
	const char *name;
	bool is_static;
	bool in_ranges; /* each job has a range, and the ranges begin at equal distances */
	bool same_priority; /* of all chunks of all jobs: 1 */
	struct tally_borrowed_policy rule;
};

static const struct policy policies[] = {
	{ "static", .is_static = true },
	{ "fcfs", .rule = { .holds = true } },
	{ "early", .rule = { .holds = false } },
	{ "evict", .rule = { .preempts = true } },
	{ "priority", .rule = { .preempts = true, .by_priority = true } },
	{ "esa", .rule = { .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "esa-late",
	  .rule = { .holds = true, .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "second", .same_priority = true,
	  .rule = { .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "ranges", .in_ranges = true, .rule = { .preempts = true } },
};

enum {
	POLICIES = sizeof(policies) / sizeof(*policies),
	MEMORIES = 6,
};

static const double memories[MEMORIES] = { 0.125, 0.25, 0.5, 1, 2, 4 };

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
	uint32_t tick, serial;
	uint32_t seq;
	uint8_t kind, job, rank, priority;
	bool flush;
	uint64_t set;
};

struct worker {
	uint32_t next, end; /* chunks to send in this iteration */
	bool sending;
};

struct job {
	uint32_t chunks, compute; /* of an iteration; ticks */
	uint32_t iteration, window;
	uint32_t oldest; /* chunk without a result at the workers */
	uint32_t root_free; /* tick at which the link to the root is */
	uint32_t over; /* tick */
	bool done[2 * WINDOW]; /* by chunk: the workers have the result */
	struct tally_slot_state root[2 * WINDOW];
	struct tally_slot_state *ring; /* at the node; static pools */
	struct worker worker[WORKERS];
};

static struct {
	const struct policy *policy;
	uint32_t slots, ring, spread, tick, serial, running;
	uint64_t random, to_roots;
	struct tally_set everyone;
	struct job job[JOBS];
	struct tally_slot_state ring_slot[SLOTS_MAX];
	struct tally_borrowed_slot slot[SLOTS_MAX];
	struct event *heap;
	size_t events, events_max;
} sim;

static uint32_t random_below(uint32_t limit)
{
	uint64_t z = sim.random += TALLY_MIX;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return limit ? (z ^ z >> 31) % limit : 0;
}

/* --- events: a heap */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->tick != b->tick ? a->tick < b->tick : a->serial < b->serial;
}

static void put(struct event e, uint32_t in_ticks)
{
	size_t i = sim.events++;

	if (i == sim.events_max) {
		struct event *heap = realloc(sim.heap, (2 * i + 1024) * sizeof(e));

		if (!heap)
			err(1, "memory");
		sim.heap = heap;
		sim.events_max = 2 * i + 1024;
	}
	e.tick = sim.tick + in_ticks;
	e.serial = sim.serial++;
	for (; i && is_before(&e, &sim.heap[(i - 1) / 2]); i = (i - 1) / 2)
		sim.heap[i] = sim.heap[(i - 1) / 2];
	sim.heap[i] = e;
}

static struct event take(void)
{
	struct event top = sim.heap[0], last = sim.heap[--sim.events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < sim.events) {
		if (child + 1 < sim.events && is_before(&sim.heap[child + 1], &sim.heap[child]))
			child++;
		if (is_before(&last, &sim.heap[child]))
			break;
		sim.heap[i] = sim.heap[child];
		i = child;
	}
	sim.heap[i] = last;
	return top;
}

/* --- workers */

/*
 * As ESA has it: much to communicate beside what is computed, little time that remains, layers of
 * the front, which are sent last. Eight steps for each factor of two, so that a downgrade takes the
 * square root.
 */
static uint8_t priority_of(const struct job *j, uint32_t seq)
{
	double part = (double)(seq - j->iteration * j->chunks) / j->chunks;
	double left = (double)(ITERATIONS - j->iteration) * (j->chunks + j->compute);
	double p = (double)j->chunks / j->compute / left * (0.5 + part / 2);
	double steps = round(8 * log2(p / 1e-6));

	if (sim.policy->same_priority)
		return 1;
	return steps < 1 ? 1 : steps > 255 ? 255 : steps;
}

static void begin_sending(int job, int rank)
{
	struct worker *w = &sim.job[job].worker[rank];

	if (!w->sending && w->next < w->end &&
	    w->next - sim.job[job].oldest < sim.job[job].window) {
		w->sending = true;
		put((struct event){ .kind = SEND, .job = job, .rank = rank }, 1);
	}
}

static void say(int job, int rank, uint32_t seq, bool flush)
{
	struct job *j = &sim.job[job];
	uint32_t turn = (rank + seq) % WORKERS * TURN;
	struct event e = { .kind = AT_NODE,
			   .job = job,
			   .rank = rank,
			   .seq = seq,
			   .priority = priority_of(j, seq),
			   .flush = flush,
			   .set = 1ULL << rank };

	put(e, HOP);
	e.kind = LOOK;
	e.flush = false;
	if (!sim.policy->is_static) /* whose slots are never another chunk's */
		put(e, ROUND_TRIP + sim.spread + turn);
}

static void send_next(const struct event *e)
{
	struct worker *w = &sim.job[e->job].worker[e->rank];

	w->sending = false;
	say(e->job, e->rank, w->next++, false);
	begin_sending(e->job, e->rank);
}

static struct tally_borrowed_slot *slot_of(const struct event *e, struct tally_borrower *ret)
{
	*ret = (struct tally_borrower){
		.job = e->job, .epoch = 1, .priority = e->priority, .standing = e->priority
	};
	if (sim.policy->in_ranges) {
		ret->range = WINDOW;
		ret->base = e->job * sim.slots / JOBS;
	}
	return &sim.slot[tally_borrowed_place(ret, e->seq, sim.slots)];
}

/* Whose contribution has waited in a slot flushes it; who is on the way or at the root waits. */
static void look(const struct event *e)
{
	struct job *j = &sim.job[e->job];
	struct tally_set there = tally_slot_there(&j->root[e->seq % (2 * j->window)], e->seq,
						  &sim.everyone);
	struct tally_borrower b;
	const struct tally_borrowed_slot *s = slot_of(e, &b);

	if (e->seq - j->oldest >= j->window || tally_set_has(&there, e->rank))
		return;
	if (e->flush || (tally_borrowed_holds(s, &b, e->seq) && !s->left &&
			 tally_set_has(&s->state.set, e->rank)))
		say(e->job, e->rank, e->seq, true);
	else
		put(*e, ROUND_TRIP + sim.spread);
}

static void begin_iteration(int job)
{
	struct job *j = &sim.job[job];

	for (int rank = 0; rank < WORKERS; rank++)
		put((struct event){ .kind = BEGIN, .job = job, .rank = rank },
		    j->compute + random_below(sim.spread + 1));
}

static void have_result(const struct event *e)
{
	struct job *j = &sim.job[e->job];

	j->done[e->seq % (2 * WINDOW)] = true;
	while (j->oldest < j->worker[0].end && j->done[j->oldest % (2 * WINDOW)])
		j->done[j->oldest++ % (2 * WINDOW)] = false;
	if (j->oldest < (j->iteration + 1) * j->chunks) {
		for (int rank = 0; rank < WORKERS; rank++)
			begin_sending(e->job, rank);
	} else if (++j->iteration < ITERATIONS) {
		begin_iteration(e->job);
	} else {
		j->over = sim.tick;
		sim.running--;
	}
}

/* --- node and roots */

static struct tally_offer offer_of(const struct event *e)
{
	return (struct tally_offer){ .seq = e->seq,
				     .now_ms = sim.tick,
				     .recipient = TALLY_EVERYONE,
				     .sender = e->rank,
				     .lane = TALLY_LANE_INT64,
				     .blocks = 1,
				     .flush = e->flush,
				     .set = { { e->set } } };
}

/* Waits for the link to its root. */
static void go_up(struct event e)
{
	struct job *j = &sim.job[e.job];

	if (j->root_free < sim.tick)
		j->root_free = sim.tick;
	j->root_free++;
	sim.to_roots++;
	e.kind = AT_ROOT;
	put(e, j->root_free - sim.tick + HOP);
}

static void at_ring(const struct tally_role *role, struct event *e)
{
	struct tally_slot_state *s = &sim.job[e->job].ring[e->seq % sim.ring];
	struct tally_offer o = offer_of(e);
	struct tally_verdict v = tally_node_gather(role, TALLY_CONTRIBUTION, s, &o);

	if (v.outcome == TALLY_SENT_UP || v.outcome == TALLY_FLUSHED_UP)
		e->set = s->set.word[0];
	if (v.outcome == TALLY_FLUSHED_UP)
		tally_slot_empty(s, e->seq);
	if (tally_outcome_to(v.outcome) == TALLY_TO_ROOT)
		go_up(*e);
}

static void at_pool(const struct tally_role *role, struct event *e)
{
	const struct tally_borrowed_policy *rule = &sim.policy->rule;
	struct tally_borrower b;
	struct tally_borrowed_slot *s = slot_of(e, &b);
	struct tally_borrowed_slot out = { 0 };
	struct tally_offer o = offer_of(e);
	struct tally_borrowed_verdict v = tally_borrowed_gather(rule, role, s, &b, &o, &out);
	struct tally_reply r = tally_reply_make(v.verdict, &out.state, &o.set);

	if (v.move == TALLY_BORROWED_SWAPPED) {
		e->job = out.job;
		e->seq = out.state.seq;
		e->rank = out.sender;
		e->priority = out.priority;
	} else if (r.take && !tally_borrowed_take(rule, &r, s, &b, &out.state)) {
		errx(1, "a slot has changed between two steps");
	}
	if (r.kind)
		e->set = out.state.set.word[0];
	if (tally_outcome_to(v.verdict.outcome) == TALLY_TO_ROOT)
		go_up(*e);
}

static void at_node(struct event *e)
{
	const struct tally_role role = { .everyone = &sim.everyone, .below = &sim.everyone };

	if (sim.policy->is_static)
		at_ring(&role, e);
	else
		at_pool(&role, e);
}

/* Its ranks hear of it. */
static void drop(const struct event *e)
{
	struct event lost = *e;

	lost.kind = LOOK;
	lost.flush = true;
	for (int rank = 0; rank < WORKERS; rank++) {
		lost.rank = rank;
		if (e->set >> rank & 1)
			put(lost, ROUND_TRIP / 2);
	}
}

static void at_root(struct event *e)
{
	struct job *j = &sim.job[e->job];
	struct tally_offer o = offer_of(e);
	struct tally_slot_state *s = &j->root[e->seq % (2 * j->window)];
	struct tally_verdict v;

	o.flush = false; /* nobody needs to be asked */
	v = tally_slot_admit_root(s, &o, &sim.everyone);
	if (v.outcome == TALLY_COMPLETED) {
		e->kind = DOWN_AT_NODE;
		put(*e, HOP);
	} else if (v.outcome == TALLY_OVERLAP) {
		drop(e);
	}
}

static void down_at_node(struct event *e)
{
	struct tally_borrower b;

	if (!sim.policy->is_static)
		tally_borrowed_release(slot_of(e, &b), &b, e->seq);
	e->kind = DOWN_AT_WORKERS;
	put(*e, HOP);
}

static void happen(struct event *e)
{
	struct job *j = &sim.job[e->job];

	switch ((enum kind)e->kind) {
	case BEGIN:
		j->worker[e->rank].end = (j->iteration + 1) * j->chunks;
		begin_sending(e->job, e->rank);
		break;
	case SEND:
		send_next(e);
		break;
	case AT_NODE:
		at_node(e);
		break;
	case AT_ROOT:
		at_root(e);
		break;
	case DOWN_AT_NODE:
		down_at_node(e);
		break;
	case DOWN_AT_WORKERS:
		have_result(e);
		break;
	case LOOK:
		look(e);
		break;
	}
}

/* --- runs */

/* Average completion time of the jobs, in ticks; *ret_load: packets to roots for each chunk. */
static double run(const struct policy *policy, uint32_t slots, uint32_t spread, uint64_t seed,
		  double *ret_load)
{
	struct event *heap = sim.heap;
	size_t events_max = sim.events_max;
	double sum = 0, chunks = 0;

	memset(&sim, 0, sizeof(sim));
	sim.heap = heap;
	sim.events_max = events_max;
	sim.policy = policy;
	sim.slots = slots;
	sim.ring = slots / JOBS < 2 * WINDOW ? slots / JOBS : 2 * WINDOW;
	sim.spread = spread;
	sim.random = seed;
	sim.running = JOBS;
	sim.everyone = tally_set_first(WORKERS);
	for (int job = 0; job < JOBS; job++) {
		struct job *j = &sim.job[job];

		j->chunks = job % 2 ? 200 : 800;
		j->compute = job % 2 ? 1000 : 150;
		j->window = policy->is_static ? sim.ring / 2 : WINDOW;
		j->ring = &sim.ring_slot[job * sim.ring];
		j->compute += random_below(j->compute / 4);
		chunks += (double)j->chunks * ITERATIONS;
		begin_iteration(job);
	}
	while (sim.running) {
		struct event e;

		if (!sim.events)
			errx(1, "%s: nothing happens any more", policy->name);
		e = take();
		sim.tick = e.tick;
		if (sim.tick > TICKS_MAX)
			errx(1, "%s, %u slots, spread %u, seed %llu: a job does not end",
			     policy->name, slots, spread, (unsigned long long)seed);
		happen(&e);
	}
	for (int job = 0; job < JOBS; job++)
		sum += sim.job[job].over;
	*ret_load = sim.to_roots / chunks;
	return sum / JOBS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of a policy with this memory, by seed: completion time beside the best, and load. */
static void measure(const struct policy *policy, double memory, uint32_t spread, const double *best,
		    int seeds, double *ret_time, double *ret_load)
{
	for (int seed = 0; seed < seeds; seed++)
		ret_time[seed] = run(policy, memory * UNIT, spread, seed + 1, &ret_load[seed]) /
				 best[seed];
	qsort(ret_time, seeds, sizeof(double), compare);
	qsort(ret_load, seeds, sizeof(double), compare);
}

/* Two policies of which all figures are the same: what one has and the other lacks does nothing. */
static void distinguish(double load[POLICIES][MEMORIES])
{
	for (int a = 0; a < POLICIES; a++)
		for (int b = a + 1; b < POLICIES; b++)
			if (!memcmp(load[a], load[b], sizeof(load[a])))
				errx(1, "\"%s\" does what \"%s\" does", policies[b].name,
				     policies[a].name);
}

/* Best: rings for all. */
static void table(uint32_t spread, int seeds)
{
	double best[SEEDS_MAX], time[SEEDS_MAX], load[POLICIES][MEMORIES], all[SEEDS_MAX];

	for (int seed = 0; seed < seeds; seed++)
		best[seed] = run(&policies[0], SLOTS_MAX, spread, seed + 1, &all[seed]);
	printf("\nspread %u\n%-9s", spread, "memory");
	for (int m = 0; m < MEMORIES; m++)
		printf(" %-16g", memories[m]);
	for (int p = 0; p < POLICIES; p++) {
		printf("\n%-9s", policies[p].name);
		for (int m = 0; m < MEMORIES; m++) {
			measure(&policies[p], memories[m], spread, best, seeds, time, all);
			printf(" %4.2f (%4.2f-%4.2f)", time[seeds / 2], time[0], time[seeds - 1]);
			load[p][m] = all[seeds / 2];
		}
		fflush(stdout);
	}
	printf("\npackets to the root for each chunk");
	for (int p = 0; p < POLICIES; p++) {
		printf("\n%-9s", policies[p].name);
		for (int m = 0; m < MEMORIES; m++)
			printf(" %-16.1f", load[p][m]);
	}
	printf("\n");
	distinguish(load);
}

int main(int argc, char **argv)
{
	static char *usual[] = { "50", "200", "800" };
	unsigned long seeds = argc > 1 ? strtoul(argv[1], NULL, 0) : 10;
	char **spread = argc > 2 ? argv + 2 : usual;

	if (seeds < 1 || seeds > SEEDS_MAX)
		errx(1, "seeds: 1 to %d", SEEDS_MAX);
	for (int i = 0; i < (argc > 2 ? argc - 2 : 3); i++)
		table(strtoul(spread[i], NULL, 0), seeds);
	free(sim.heap);
	return 0;
}
