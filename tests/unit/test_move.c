// SPDX-License-Identifier: GPL-2.0-only
/*
 * Engines that move from root to root in the midst of calls (client/engine.h, decisions 0030 and
 * 0032): over a network that loses, repeats and delays, with ranks that hear of the move at
 * different times, and roots that lose their memory, or are gone for all ranks or some. Worlds are
 * made of seeds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine.h"
#include "tests/unit/memory_node.h"
#include "tests/unit/random.h"

enum {
	RANKS_MAX = 5,
	ROOTS = 4, /* that the job is at, one after another */
	JOB = 7,
	WINDOW = 4,
	PAYLOAD = MESSAGE_BLOCKS_MAX * TALLY_BLOCK_BYTES,
	FLIGHTS = 512,
	ELEMENTS_MAX = 700, /* of a call: 22 chunks */
	CALLS = 60,
	MS = 1000000,
	HOP_NS = 20000,
};

struct flight {
	uint64_t due_ns; /* 0: free */
	int root; /* that it goes to or comes from */
	int to; /* a rank; -1: the root */
	struct message message;
};

struct root {
	struct memory_slot slot[2 * WINDOW];
	struct memory_node node;
	uint64_t taken; /* contributions */
	bool is_gone[RANKS_MAX]; /* for this rank */
};

struct worker {
	struct engine *engine;
	int root; /* where it is; during a move the next one is behind it */
	bool moves;
	int calls; /* started so far */
	struct engine_call *call;
	int32_t x[ELEMENTS_MAX];
	uint64_t begins_ns; /* its next move */
	bool rescues; /* its root is gone for it, and it has asked for another one */
};

struct world {
	uint64_t random, now_ns;
	int ranks;
	uint32_t loss, repeat; /* of a thousand */
	struct tally_set everyone;
	struct root root[ROOTS];
	struct worker worker[RANKS_MAX];
	struct flight flight[FLIGHTS];
	size_t count[CALLS]; /* elements of each call */
	int moves, rescues;
};

/* What ranks agree in before their first call, where theirs is one root of several. */
#define OPENS UINT64_C(0x5ca1ab1e10)

static struct window_options window_of(const struct world *w, int root, int rank)
{
	return (struct window_options){ .job = JOB,
					.epoch = 100 + root,
					.rank = rank,
					.workers = w->ranks,
					.window = WINDOW,
					.follows = true,
					.payload_bytes = PAYLOAD,
					.keeps = true,
					.nonce = 1000 + root };
}

static struct world *world_new(uint64_t seed, int ranks, uint32_t loss)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->random = seed;
	w->now_ns = 1000 * (uint64_t)MS;
	w->ranks = ranks;
	w->loss = loss;
	w->repeat = loss / 2;
	w->everyone = tally_set_first(ranks);
	for (int i = 0; i < ROOTS; i++)
		w->root[i].node = (struct memory_node){ .role = { .everyone = &w->everyone,
								  .below = &w->everyone,
								  .epoch = 100 + i,
								  .blocks_max = MESSAGE_BLOCKS_MAX,
								  .root = true },
							.boot = 1,
							.frames_grow = true,
							.slots = 2 * WINDOW,
							.slot = w->root[i].slot };
	for (int i = 0; i < CALLS; i++)
		w->count[i] = random_below(&w->random, ELEMENTS_MAX + 1);
	for (int rank = 0; rank < ranks; rank++) {
		const struct engine_options o = { .window = window_of(w, 0, rank),
						  .timeout_ns = 60000ull * MS,
						  .service = "10.77.0.1",
						  .agreement = seed % 2 ? OPENS : 0 };

		assert_int_equal(engine_new(&o, &w->worker[rank].engine), 0);
	}
	return w;
}

static void world_free(struct world *w)
{
	for (int rank = 0; rank < w->ranks; rank++)
		engine_free(w->worker[rank].engine);
	free(w);
}

/* --- the network ----------------------------------------------------------------------------- */

static void fly_once(struct world *w, int root, int to, const struct message *m)
{
	struct flight *f = w->flight;

	while (f->due_ns)
		f++;
	assert_true(f < w->flight + FLIGHTS - 1);
	*f = (struct flight){ w->now_ns + HOP_NS + random_below(&w->random, HOP_NS / 2), root, to,
			      *m };
}

static void fly(struct world *w, int root, int to, const struct message *m)
{
	if (random_below(&w->random, 1000) >= w->loss)
		fly_once(w, root, to, m);
	if (random_below(&w->random, 1000) < w->repeat)
		fly_once(w, root, to, m);
}

static void root_take(struct world *w, int root, const struct message *m)
{
	struct root *r = &w->root[root];
	const int sender = tally_le16_get(m->header.sender);
	enum tally_to to;
	struct visit v;

	if (r->is_gone[sender])
		return;
	r->taken++;
	r->node.now_ms = w->now_ns / MS;
	visit_begin(&r->node, m, &v);
	to = tally_outcome_to(visit_end(&r->node, &v));
	for (int rank = 0; rank < w->ranks; rank++) {
		const struct tally_set me = { { 1ull << rank } };
		struct message copy = message_copy(&v.message, &me);

		if (to == TALLY_TO_GROUP || (to == TALLY_TO_SENDER && rank == sender))
			fly(w, root, rank, &copy);
	}
}

/* The socket that a frame comes in by says of which root it is. */
static void rank_take(struct world *w, const struct flight *f)
{
	struct worker *k = &w->worker[f->to];
	const void *bytes = &f->message.header;
	const size_t length = message_bytes(&f->message);

	if (w->root[f->root].is_gone[f->to])
		return;
	if (f->root == k->root)
		engine_input(k->engine, bytes, length, w->now_ns);
	else if (k->moves && f->root == k->root + 1)
		engine_next_input(k->engine, bytes, length, w->now_ns);
}

static void send(struct world *w, int root, const struct datagram *d)
{
	struct message m;

	memset(&m, 0, sizeof(m));
	memcpy(&m.header, d->bytes, sizeof(m.header));
	memcpy(m.word, (const uint8_t *)d->bytes + sizeof(m.header), d->length - sizeof(m.header));
	fly(w, root, -1, &m);
}

static void output(struct world *w, struct worker *k)
{
	struct datagram d[8];
	size_t n;

	while ((n = engine_output(k->engine, w->now_ns, d, 8)))
		for (size_t i = 0; i < n; i++)
			send(w, k->root, &d[i]);
	while (k->moves && (n = engine_next_output(k->engine, w->now_ns, d, 8)))
		for (size_t i = 0; i < n; i++)
			send(w, k->root + 1, &d[i]);
}

/* --- workers --------------------------------------------------------------------------------- */

static int32_t value_of(int call, int rank, size_t i)
{
	return (int32_t)(call * 1000003 + rank * 7919 + (int)i * 31);
}

static void check(const struct world *w, int rank)
{
	const struct worker *k = &w->worker[rank];
	const int call = k->calls - 1;

	for (size_t i = 0; i < w->count[call]; i++) {
		uint32_t sum = 0;

		for (int other = 0; other < w->ranks; other++)
			sum += (uint32_t)value_of(call, other, i);
		if (k->x[i] != (int32_t)sum)
			fail_msg("rank %d, call %d, element %zu", rank, call, i);
	}
}

static bool is_done(const struct worker *k) { return k->calls == CALLS && !k->call; }

/* Collects, checks, and starts the next one. */
static void go_on(struct world *w, int rank)
{
	struct worker *k = &w->worker[rank];

	if (k->call && engine_is_over(k->call)) {
		const int r = engine_collect(k->call, NULL);

		assert_int_equal(r, 0);
		check(w, rank);
		k->call = NULL;
	}
	if (k->call || k->calls == CALLS)
		return;
	for (size_t i = 0; i < w->count[k->calls]; i++)
		k->x[i] = value_of(k->calls, rank, i);
	assert_int_equal(engine_start(k->engine,
				      &(struct call_options){ .verb = CALL_ALLREDUCE,
							      .dtype = TALLY_INT32,
							      .op = TALLY_SUM,
							      .count = w->count[k->calls],
							      .in = k->x,
							      .out = k->x },
				      w->now_ns, &k->call),
			 0);
	k->calls++;
}

static void move(struct world *w, int rank)
{
	struct worker *k = &w->worker[rank];

	if (k->moves && engine_has_moved(k->engine)) {
		engine_move_end(k->engine);
		k->moves = k->rescues = false;
		k->root++;
		w->moves++;
	}
	if (!k->moves && k->begins_ns && w->now_ns >= k->begins_ns && k->root + 1 < ROOTS) {
		const struct window_options o = window_of(w, k->root + 1, rank);

		assert_int_equal(
			k->rescues ? engine_rescue(k->engine, &o) : engine_move(k->engine, &o), 0);
		w->rescues += k->rescues;
		k->moves = true;
		k->begins_ns = 0;
	}
}

static bool may_move(const struct world *w)
{
	for (int rank = 0; rank < w->ranks; rank++)
		if (w->worker[rank].moves || w->worker[rank].begins_ns ||
		    w->worker[rank].root != w->worker[0].root || w->worker[rank].root + 1 == ROOTS)
			return false;
	return true;
}

/* The root where all are goes, for all of them or for some: for others it goes on, and they hear
 * that they are to move. All come to the next one, in some order. */
static void root_go(struct world *w, bool for_all)
{
	struct root *r = &w->root[w->worker[0].root];

	if (!may_move(w))
		return;
	for (int rank = 0; rank < w->ranks; rank++) {
		struct worker *k = &w->worker[rank];

		k->rescues = r->is_gone[rank] = for_all || random_below(&w->random, 2);
		k->begins_ns = w->now_ns + 1 + random_below(&w->random, 50 * HOP_NS);
	}
}

/* All hear of it, within a few round trips. Nobody does while somebody still moves. */
static void move_all(struct world *w)
{
	if (!may_move(w))
		return;
	for (int rank = 0; rank < w->ranks; rank++)
		w->worker[rank].begins_ns = w->now_ns + 1 + random_below(&w->random, 8 * HOP_NS);
}

static uint64_t next_ns(const struct world *w)
{
	uint64_t next = w->now_ns + MS;

	for (int i = 0; i < FLIGHTS; i++)
		if (w->flight[i].due_ns && w->flight[i].due_ns < next)
			next = w->flight[i].due_ns;
	for (int rank = 0; rank < w->ranks; rank++) {
		const struct worker *k = &w->worker[rank];
		const uint64_t wakeup = engine_wakeup(k->engine);

		next = wakeup < next ? wakeup : next;
		if (k->begins_ns && k->begins_ns < next)
			next = k->begins_ns;
	}
	return next > w->now_ns ? next : w->now_ns + 1;
}

static void step(struct world *w)
{
	for (int i = 0; i < FLIGHTS; i++) {
		const struct flight f = w->flight[i];

		if (!f.due_ns || f.due_ns > w->now_ns)
			continue;
		w->flight[i].due_ns = 0;
		if (f.to < 0)
			root_take(w, f.root, &f.message);
		else
			rank_take(w, &f);
	}
	for (int rank = 0; rank < w->ranks; rank++) {
		move(w, rank);
		go_on(w, rank);
		output(w, &w->worker[rank]);
	}
	w->now_ns = next_ns(w);
}

static bool all_done(const struct world *w)
{
	for (int rank = 0; rank < w->ranks; rank++)
		if (!is_done(&w->worker[rank]))
			return false;
	return true;
}

/* Of a million steps, in so many all move, a root loses its memory, or goes. */
static void run(struct world *w, uint32_t moves, uint32_t forgets, uint32_t goes)
{
	for (int steps = 0; !all_done(w); steps++) {
		if (steps == 4000000)
			fail_msg("stuck at call %d of rank 0", w->worker[0].calls);
		if (random_below(&w->random, 1000000) < moves)
			move_all(w);
		if (random_below(&w->random, 1000000) < goes)
			root_go(w, random_below(&w->random, 2));
		if (random_below(&w->random, 1000000) < forgets) {
			struct root *r = &w->root[random_below(&w->random, ROOTS)];

			memset(r->slot, 0, sizeof(r->slot));
			r->node.boot++;
		}
		step(w);
	}
}

/* --- facts ----------------------------------------------------------------------------------- */

static void without_loss_nothing_is_sent_again(void **state)
{
	struct world *w = world_new(1, 4, 0);
	struct tally_stats stats;

	run(w, 3000, 0, 0);
	assert_int_equal(w->moves, (ROOTS - 1) * 4);
	for (int rank = 0; rank < 4; rank++) {
		stats = engine_stats(w->worker[rank].engine);
		assert_int_equal(stats.corrupt, 0);
		assert_int_equal(stats.retransmitted, 0);
		assert_int_equal(stats.repaired, 0);
	}
	/* Each root has had its part of them. */
	for (int i = 0; i < ROOTS; i++)
		assert_true(w->root[i].taken > 4 * 2 * WINDOW);
	world_free(w);
}

static void sums_are_right_whatever_happens(void **state)
{
	int moves = 0;

	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct world *w = world_new(seed, 1 + (int)(seed % RANKS_MAX),
					    seed % 3 ? (uint32_t)(seed % 60) : 0);

		run(w, 2000, seed % 4 ? 0 : 60, 0);
		moves += w->moves;
		world_free(w);
	}
	print_message("%d moves\n", moves);
	assert_true(moves > 1000);
}

static void a_root_that_goes_is_replaced_in_the_midst_of_calls(void **state)
{
	int rescues = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct world *w = world_new(seed, 1 + (int)(seed % RANKS_MAX),
					    seed % 3 ? (uint32_t)(seed % 60) : 0);

		run(w, seed % 2 ? 500 : 0, seed % 4 ? 0 : 60, 3000);
		rescues += w->rescues;
		world_free(w);
	}
	print_message("%d ranks went on at another root\n", rescues);
	assert_true(rescues > 1000);
}

/* In the midst of calls; how many rank 0 has started by then. */
static int all_but_the_last_begin(struct world *w)
{
	while (w->worker[0].calls < 5)
		step(w);
	for (int rank = 0; rank + 1 < w->ranks; rank++)
		w->worker[rank].begins_ns = w->now_ns + 1;
	return w->worker[0].calls;
}

/* One rank hears of it late, or never: nobody waits for it. */
static void who_hears_late_holds_nobody_up(void **state)
{
	struct world *w = world_new(3, 3, 0);
	uint64_t until_ns;
	int calls;

	calls = all_but_the_last_begin(w);
	until_ns = w->now_ns + 20 * MS;
	while (w->now_ns < until_ns && w->worker[0].calls < CALLS - 10)
		step(w);
	assert_true(w->worker[0].calls > calls + 5);
	assert_int_equal(w->moves, 0);
	w->worker[2].begins_ns = w->now_ns + 1;
	run(w, 0, 0, 0);
	assert_int_equal(w->moves, 3);
	world_free(w);
}

/* Who waits in vain for one that does not come stays where it is, and can move later. */
static void a_move_to_where_not_all_come_is_called_off(void **state)
{
	struct world *w = world_new(3, 3, 0);
	int calls;

	calls = all_but_the_last_begin(w);
	while (w->worker[0].calls < calls + 5)
		step(w);
	for (int rank = 0; rank < 2; rank++) {
		assert_false(engine_has_agreed(w->worker[rank].engine));
		assert_true(engine_move_cancel(w->worker[rank].engine));
		assert_false(engine_move_cancel(w->worker[rank].engine));
		w->worker[rank].moves = false;
	}
	calls = w->worker[0].calls;
	while (w->worker[0].calls < calls + 5)
		step(w);
	assert_int_equal(w->moves, 0);
	/* The next run there is another one. */
	memset(w->root[1].slot, 0, sizeof(w->root[1].slot));
	for (int i = 0; i < FLIGHTS; i++)
		w->flight[i].due_ns = w->flight[i].root == 1 ? 0 : w->flight[i].due_ns;
	move_all(w);
	run(w, 0, 0, 0);
	assert_int_equal(w->moves, 3);
	world_free(w);
}

static void what_is_not_alike_is_refused(void **state)
{
	struct world *w = world_new(3, 2, 0);
	struct engine *e = w->worker[0].engine;
	struct window_options o = window_of(w, 1, 0);

	o.window = 2 * WINDOW;
	assert_int_equal(engine_move(e, &o), -EINVAL);
	o = window_of(w, 1, 1);
	assert_int_equal(engine_move(e, &o), -EINVAL);
	o = window_of(w, 1, 0);
	o.nonce = 0;
	assert_int_equal(engine_move(e, &o), -EINVAL);
	o = window_of(w, 1, 0);
	assert_int_equal(engine_move(e, &o), 0);
	assert_int_equal(engine_move(e, &o), -EBUSY);
	assert_false(engine_has_moved(e));
	world_free(w);
}

static void an_engine_that_fails_on_the_way_ends(void **state)
{
	struct world *w = world_new(5, 2, 0);
	const struct window_options o = window_of(w, 1, 0);

	step(w);
	assert_int_equal(engine_move(w->worker[0].engine, &o), 0);
	engine_abort(w->worker[0].engine);
	assert_true(engine_is_over(w->worker[0].call));
	assert_int_equal(engine_collect(w->worker[0].call, NULL), -ECANCELED);
	assert_int_equal(engine_move(w->worker[1].engine, &(struct window_options){ .window = 1 }),
			 -EINVAL);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_loss_nothing_is_sent_again),
		cmocka_unit_test(sums_are_right_whatever_happens),
		cmocka_unit_test(a_root_that_goes_is_replaced_in_the_midst_of_calls),
		cmocka_unit_test(who_hears_late_holds_nobody_up),
		cmocka_unit_test(a_move_to_where_not_all_come_is_called_off),
		cmocka_unit_test(what_is_not_alike_is_refused),
		cmocka_unit_test(an_engine_that_fails_on_the_way_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
