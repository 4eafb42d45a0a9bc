// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole workers without sockets, on trees of nodes (engine_world.h): facts. Worlds in which things
 * go wrong by chance are in test_sim.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/engine.h"
#include "tests/unit/engine_calls.h"
#include "tests/unit/engine_world.h"
#include "tests/unit/random.h"

enum {
	TIMEOUT_NS = 2000000000,
	DEAD_SEEDS = 100,
	FACT_RANKS = 4,
};

#define NS_PER_MS 1000000ULL

/* --- facts: workers at a root, over a network that does nothing bad */

static struct world *quiet_world(int ranks, enum world_tree tree)
{
	return world_new(&(struct world_options){ .seed = 1,
						  .tree = tree,
						  .jobs = 1,
						  .ranks = ranks,
						  .window = 4,
						  .frames_grow = true,
						  .timeout_ns = TIMEOUT_NS,
						  .nonce = true });
}

static struct engine_call *start(struct world *w, int rank, const struct call_options *options)
{
	struct engine_call *call = NULL;

	assert_int_equal(engine_start(w->worker[rank].engine, options, w->now_ns, &call), 0);
	world_look(w, rank);
	return call;
}

static void start_allreduces(struct world *w, int32_t x[][64], struct engine_call **call)
{
	for (int rank = 0; rank < w->workers; rank++)
		call[rank] = start(w, rank,
				   &(struct call_options){ .verb = CALL_ALLREDUCE,
							   .dtype = TALLY_INT32,
							   .op = TALLY_SUM,
							   .count = 64,
							   .in = x[rank],
							   .out = x[rank] });
}

static void run_to_end(struct world *w, struct engine_call **call)
{
	for (int rank = 0; rank < w->workers; rank++)
		while (!w->worker[rank].dead && !engine_is_over(call[rank]))
			world_step(w);
	assert_null(w->wrong);
}

static int result_of(struct engine_call *call)
{
	assert_true(engine_is_over(call));
	return engine_collect(call, NULL);
}

static void a_small_float_call_of_a_known_shape_takes_one_round_trip(void **state)
{
	struct world *w = quiet_world(4, TREE_ALONE);
	struct engine_call *call[FACT_RANKS] = { 0 };
	float x[FACT_RANKS][8];

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		uint64_t before = w->count.outcome[TALLY_COMPLETED];

		for (int rank = 0; rank < 4; rank++) {
			for (int i = 0; i < 8; i++)
				x[rank][i] = 100 + rank + i;
			call[rank] = start(w, rank,
					   &(struct call_options){ .verb = CALL_ALLREDUCE,
								   .dtype = TALLY_FLOAT32,
								   .op = TALLY_SUM,
								   .count = 8,
								   .in = x[rank],
								   .out = x[rank] });
		}
		run_to_end(w, call);
		/* The first one guesses wrongly and sends the chunk again; then it is known. */
		assert_int_equal(w->count.outcome[TALLY_COMPLETED] - before, turn == 0 ? 2 : 1);
		assert_true(x[2][3] == 418);
		for (int rank = 0; rank < 4; rank++)
			assert_int_equal(result_of(call[rank]), 0);
	}
	world_free(w);
}

/* Two chunks on two levels: 5 hops down to nodes, and one to each worker. */
static void without_loss_each_message_is_sent_once_and_every_hop_is_counted(void **state)
{
	struct world *w = quiet_world(FACT_RANKS, TREE_TWO_LEVELS);
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };
	const struct world_count *c = &w->count;
	int inner = 0;

	(void)state;
	for (int node = 1; node < w->nodes; node++)
		inner += !tally_set_is_empty(&w->job[0].below[node]);
	assert_true(inner >= 3);
	start_allreduces(w, x, call);
	run_to_end(w, call);
	assert_int_equal(c->outcome[TALLY_COMPLETED], 2);
	assert_int_equal(c->outcome[TALLY_SENT_UP], 2 * inner);
	assert_int_equal(c->outcome[TALLY_SENT_DOWN], 2 * inner);
	assert_int_equal(c->copies, 2 * (inner + FACT_RANKS));
	assert_int_equal(c->frames, 2 * 2 * (inner + FACT_RANKS));
	assert_int_equal(c->kind[TALLY_CONTRIBUTION], 2 * FACT_RANKS);
	assert_int_equal(c->asks + c->resends[CAUSE_OWN] + c->resends[CAUSE_OTHERS], 0);
	assert_int_equal(c->resends[CAUSE_NONE] + c->lost + c->flips + c->second_steps, 0);
	for (int rank = 0; rank < FACT_RANKS; rank++) {
		assert_int_equal(w->worker[rank].said, 2);
		assert_int_equal(w->worker[rank].heard, 2);
		assert_int_equal(result_of(call[rank]), 0);
	}
	world_free(w);
}

/* The first event on its way that `is` says. */
static struct world_event *event_on_its_way(struct world *w, bool (*is)(const struct world_event *))
{
	for (size_t i = 0; i < w->events; i++)
		if (is(w->heap[i]))
			return w->heap[i];
	return NULL;
}

static bool is_result_to_worker(const struct world_event *e)
{
	return e->to >= WORLD_NODES && e->visit.message.header.kind == TALLY_RESULT;
}

/* As if the network had lost it: a magic that nobody knows. */
static void a_resend_is_counted_by_what_was_lost(void **state)
{
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };
	struct world_event *e = NULL;

	(void)state;
	start_allreduces(w, x, call);
	while (!e) {
		world_step(w);
		e = event_on_its_way(w, is_result_to_worker);
	}
	world_spoil(w, e);
	e->visit.message.header.magic = 0;
	run_to_end(w, call);
	assert_int_equal(w->count.resends[CAUSE_OWN], 1);
	assert_int_equal(w->count.resends[CAUSE_OTHERS] + w->count.resends[CAUSE_NONE], 0);
	assert_int_equal(w->count.outcome[TALLY_ANSWERED], 1);
	world_free(w);
}

/* By an odd seed frames are lost, too. */
static const char *run_with_a_dead_rank(uint64_t seed)
{
	struct world *w = world_new(&(struct world_options){ .seed = seed,
							     .tree = seed % TREES,
							     .jobs = 1,
							     .ranks = FACT_RANKS,
							     .window = 4,
							     .loss = seed % 2 * 20,
							     .frames_grow = true,
							     .timeout_ns = TIMEOUT_NS });
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };
	const char *wrong = NULL;

	w->worker[2].dead = true;
	start_allreduces(w, x, call);
	for (int rank = 0; rank < FACT_RANKS; rank++) {
		while (rank != 2 && !engine_is_over(call[rank]))
			world_step(w);
		if (rank == 2)
			continue;
		if (engine_collect(call[rank], NULL) != -ETIMEDOUT)
			wrong = "a call without rank 2 ended otherwise";
		else if (strcmp(tally_error(), "rank 2 missing: no contribution for 2.0 s") != 0)
			wrong = "rank 2 is not named";
	}
	if (!wrong)
		wrong = w->wrong;
	world_free(w);
	return wrong;
}

static void a_dead_rank_is_named_on_every_tree(void **state)
{
	run_seeds(DEAD_SEEDS, run_with_a_dead_rank);
}

/*
 * Rank 1 calls something else. All hear who calls what, as soon as both calls have met: inner nodes
 * may hold one of them until it is flushed.
 */
static const char *run_with_different_calls(uint64_t seed)
{
	struct world *w = world_new(&(struct world_options){ .seed = seed,
							     .tree = seed % TREES,
							     .jobs = 1,
							     .ranks = FACT_RANKS,
							     .window = 4,
							     .loss = seed % 2 * 20,
							     .frames_grow = true,
							     .timeout_ns = TIMEOUT_NS,
							     .nonce = seed % 3 });
	struct call_options options = { .verb = CALL_ALLREDUCE, .op = TALLY_SUM, .count = 8 };
	struct engine_call *call[FACT_RANKS] = { 0 };
	int64_t x[FACT_RANKS][8] = { 0 };
	const char *wrong = NULL;

	for (int rank = 0; rank < FACT_RANKS; rank++) {
		options.dtype = rank == 1 ? TALLY_INT64 : TALLY_INT32;
		options.in = options.out = x[rank];
		call[rank] = start(w, rank, &options);
	}
	run_to_end(w, call);
	for (int rank = 0; rank < FACT_RANKS; rank++) {
		if (engine_collect(call[rank], NULL) != -EPROTO)
			wrong = "a rank does not hear that calls differ";
		else if (!strstr(tally_error(), "allreduce of 8 int32") ||
			 !strstr(tally_error(), "allreduce of 8 int64"))
			wrong = "a rank does not hear who calls what";
	}
	if (w->now_ns > (w->options.tree != TREE_ALONE || w->options.loss ? 1000 : 1) * NS_PER_MS)
		wrong = "the ranks hear late that calls differ";
	if (!wrong && !w->count.outcome[TALLY_CONFLICT])
		wrong = "no conflict";
	if (wrong && getenv("TALLY_SEED"))
		print_message("%.6f s: %s\n", w->now_ns / 1e9, tally_error());
	world_free(w);
	return wrong;
}

static void all_ranks_hear_at_once_who_calls_something_else(void **state)
{
	run_seeds(DEAD_SEEDS, run_with_different_calls);
}

static void a_silent_node_is_told_from_a_missing_rank(void **state)
{
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };

	(void)state;
	w->node[WORLD_ROOT].mute = true;
	start_allreduces(w, x, call);
	engine_unreachable(w->worker[1].engine);
	run_to_end(w, call);
	assert_int_equal(result_of(call[0]), -ETIMEDOUT);
	assert_string_equal(tally_error(),
			    "no node answered at 10.77.0.1 for 2.0 s: tallyctl doctor on the "
			    "node says whether results are lost on the way back, as on a veth "
			    "without an XDP program at its other end; or the way there is closed, "
			    "or the epoch is over");
	assert_int_equal(result_of(call[1]), -ETIMEDOUT);
	assert_non_null(strstr(tally_error(), "port unreachable"));
	world_free(w);
}

/* Neither at once nor when any of its timeouts would be due. */
static void assert_sends_nothing(struct world *w, struct engine *e)
{
	struct datagram d[64];

	for (int i = 0; i < 1000; i++) {
		w->now_ns += WINDOW_RTO_FIRST_NS;
		assert_int_equal(engine_output(e, w->now_ns, d, 64), 0);
	}
	assert_true(engine_wakeup(e) == UINT64_MAX);
}

static void a_job_that_is_over_sends_nothing_more(void **state)
{
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine *first = w->worker[0].engine, *second = w->worker[1].engine;
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };

	(void)state;
	w->node[WORLD_ROOT].mute = true;
	start_allreduces(w, x, call);
	world_step(w);
	engine_abort(first);
	assert_sends_nothing(w, first);
	assert_int_equal(result_of(call[0]), -ECANCELED);
	assert_int_equal(engine_start(first, &(struct call_options){ .verb = CALL_BARRIER },
				      w->now_ns, &call[0]),
			 -ECONNABORTED);
	assert_string_equal(tally_error(), "the job was aborted: close it");
	while (!engine_is_over(call[1]))
		world_step(w);
	assert_sends_nothing(w, second);
	assert_int_equal(result_of(call[1]), -ETIMEDOUT);
	world_free(w);
}

static void a_node_of_another_version_is_named(void **state)
{
	struct world *w = quiet_world(2, TREE_ALONE);
	struct tally_header h = { .magic = TALLY_MAGIC, .version = 9 };
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };
	char expected[128];

	(void)state;
	start_allreduces(w, x, call);
	engine_input(w->worker[0].engine, &h, sizeof(h), w->now_ns);
	world_look(w, 0);
	assert_false(engine_is_over(call[0])); /* a bit has flipped: the tag is of another header */
	h.tag = tally_le64(tally_tag(&h, &(struct tally_set){ { 0 } }));
	engine_input(w->worker[0].engine, &h, sizeof(h), w->now_ns);
	world_look(w, 0);
	assert_int_equal(result_of(call[0]), -EPROTONOSUPPORT);
	snprintf(expected, sizeof(expected),
		 "the node at 10.77.0.1 speaks version 9, this library version %d", TALLY_VERSION);
	assert_string_equal(tally_error(), expected);
	world_free(w);
}

static void after_a_failure_nothing_can_be_started(void **state)
{
	const struct call_options barrier = { .verb = CALL_BARRIER };
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine_call *call[FACT_RANKS] = { 0 }, *second, *third;
	int32_t x[FACT_RANKS][64] = { 0 };

	(void)state;
	w->node[WORLD_ROOT].mute = true;
	start_allreduces(w, x, call);
	second = start(w, 0, &barrier);
	third = start(w, 0, &barrier);
	while (!engine_is_over(call[0]))
		world_step(w);
	assert_int_equal(result_of(second), -ECONNABORTED);
	assert_int_equal(result_of(third), -ECONNABORTED);
	assert_non_null(strstr(tally_error(), "an earlier call failed: no node answered"));
	assert_int_equal(result_of(call[0]), -ETIMEDOUT);
	assert_int_equal(engine_start(w->worker[0].engine, &barrier, w->now_ns, &second),
			 -ECONNABORTED);
	world_free(w);
}

static void calls_that_nobody_waits_for_are_limited(void **state)
{
	const struct call_options barrier = { .verb = CALL_BARRIER };
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine_call *call = NULL;

	(void)state;
	for (int i = 0; i < ENGINE_CALLS_MAX; i++)
		start(w, 0, &barrier);
	assert_int_equal(engine_start(w->worker[0].engine, &barrier, w->now_ns, &call), -EBUSY);
	world_free(w);
}

static void a_corrupt_result_is_never_taken(void **state)
{
	struct world *w = quiet_world(2, TREE_ALONE);
	struct engine_call *call[FACT_RANKS] = { 0 };
	int32_t x[FACT_RANKS][64] = { 0 };
	struct world_event *e = NULL;

	(void)state;
	x[0][5] = 40;
	x[1][5] = 2;
	start_allreduces(w, x, call);
	while (!e) {
		world_step(w);
		e = event_on_its_way(w, is_result_to_worker);
	}
	e->visit.message.word[0] ^= 1 << 24;
	run_to_end(w, call);
	assert_int_equal(result_of(call[0]) | result_of(call[1]), 0);
	assert_int_equal(window_stats(engine_window(w->worker[0].engine))->corrupt +
				 window_stats(engine_window(w->worker[1].engine))->corrupt,
			 1);
	assert_int_equal(x[0][5] + x[1][5], 84);
	world_free(w);
}

/* All wait a second for one rank, with a full window: each is asked ten times about a chunk. */
static void a_late_rank_makes_no_storm_of_asks(void **state)
{
	struct world *w = world_new(&(struct world_options){ .seed = 1,
							     .tree = TREE_ALONE,
							     .jobs = 1,
							     .ranks = 64,
							     .window = WORLD_WINDOW,
							     .frames_grow = true,
							     .timeout_ns = TIMEOUT_NS,
							     .nonce = true });
	struct program program[WORLD_JOBS] = { [0 ... WORLD_JOBS - 1] = { .world = w,
									  .calls = 1 } };

	(void)state;
	program[0].call[0] = (struct collective){ .verb = CALL_ALLREDUCE,
						  .dtype = TALLY_INT32,
						  .op = TALLY_SUM,
						  .count = WORLD_WINDOW * WORLD_PAYLOAD / 4 };
	world_sleep(w, 63, 1000 * NS_PER_MS);
	assert_null(calls_run(w, program, NULL));
	assert_true(w->count.asks > 0 && w->count.asks <= 64 * WORLD_WINDOW * 10);
	program_free(program);
	world_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_float_call_of_a_known_shape_takes_one_round_trip),
		cmocka_unit_test(without_loss_each_message_is_sent_once_and_every_hop_is_counted),
		cmocka_unit_test(a_resend_is_counted_by_what_was_lost),
		cmocka_unit_test(a_dead_rank_is_named_on_every_tree),
		cmocka_unit_test(a_job_that_is_over_sends_nothing_more),
		cmocka_unit_test(all_ranks_hear_at_once_who_calls_something_else),
		cmocka_unit_test(a_silent_node_is_told_from_a_missing_rank),
		cmocka_unit_test(a_node_of_another_version_is_named),
		cmocka_unit_test(after_a_failure_nothing_can_be_started),
		cmocka_unit_test(calls_that_nobody_waits_for_are_limited),
		cmocka_unit_test(a_corrupt_result_is_never_taken),
		cmocka_unit_test(a_late_rank_makes_no_storm_of_asks),
	};

	return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
