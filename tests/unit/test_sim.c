// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many worlds in which things go wrong by chance: whole workers without sockets, on trees of nodes
 * with a root in slots or in user space (engine_world.h). Every result on every rank is compared
 * with sums computed the plain way (engine_calls.h); every call ends; nobody says anything
 * when all have ended, nor much before. TALLY_SEED and TALLY_SEEDS (random.h) say which worlds, and
 * how many; `make sim-long` runs a million.
 */
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
	ALL_SEEDS = 48, /* each runs all collectives */
	CHANCE_SEEDS = 3000,
	FLIP_SEEDS = 2000,
	BORROW_SEEDS = 2000,
	MOVE_SEEDS = 1000,
	JOBS = 2, /* that have reserved slots */
};

#define NS_PER_MS 1000000ULL

static struct world_count total; /* of all worlds */

static void total_add(const struct world_count *c)
{
	const uint64_t *from = (const uint64_t *)c;
	uint64_t *to = (uint64_t *)&total;

	for (size_t i = 0; i < sizeof(total) / sizeof(*to); i++)
		to[i] += from[i];
}

static uint64_t moves[TALLY_BORROWED_REFUSED + 1]; /* of all pools */

static void moves_add(const struct world *w)
{
	for (int node = 0; node < w->nodes; node++)
		for (int move = 0; move <= TALLY_BORROWED_REFUSED; move++)
			moves[move] += w->node[node].pool.moves[move];
}

/* A few messages for each chunk, loss and refusal; while all wait, one for each rank at times. */
static bool said_too_much(const struct world *w)
{
	const struct world_count *c = &w->count;
	uint64_t faults = c->restarts + c->moves + c->reroutes + c->rings_moved, said = 0, due = 4;

	for (int i = 0; i < w->workers; i++)
		said += w->worker[i].said;
	due += said - c->kind[TALLY_REPAIR];
	for (int cause = 0; cause < CAUSES; cause++)
		due -= c->resends[cause];
	due += c->lost + c->repeated + c->flips + c->outcome[TALLY_NO_MEMORY];
	return said > 8 * due + w->workers * (20 * faults + w->now_ns / (50 * NS_PER_MS));
}

/* Of workers who agree nothing is refused, and no sum is wrong, if no bit is flipped. */
static const char *what_is_odd(struct world *w)
{
	for (int outcome = 0; outcome <= TALLY_CONFLICT_AGAIN && !w->options.flip; outcome++)
		if (w->count.outcome[outcome] &&
		    !(outcome == TALLY_UNKNOWN_JOB && w->count.reroutes) &&
		    !(outcome == TALLY_WRONG_EPOCH && w->count.strays))
			return "a message was refused";
	for (int i = 0; i < w->workers && !w->options.flip; i++)
		if (window_stats(engine_window(w->worker[i].engine))->corrupt)
			return "WRONG: a sum that its worker refused";
	if (!world_falls_silent(w))
		return "ENDLESS: messages without a call";
	return said_too_much(w) ? "STORM: too many messages" : NULL;
}

static const char *run_programs(struct world *w, struct program *program,
				void (*happen)(struct world *w))
{
	const char *wrong = calls_run(w, program, happen);

	if (!wrong)
		wrong = what_is_odd(w);
	total_add(&w->count);
	moves_add(w);
	if (getenv("TALLY_SEED") && !getenv("TALLY_SEEDS"))
		world_print(w);
	for (int job = 0; job < w->options.jobs; job++)
		program_free(&program[job]);
	world_free(w);
	return wrong;
}

static const char *run_all_collectives(uint64_t seed)
{
	struct program program[WORLD_JOBS] = { 0 }, *p = program;
	struct world *w = world_new(&(struct world_options){ .seed = seed,
							     .tree = seed % TREES,
							     .jobs = 1,
							     .ranks = 1 + seed % 5,
							     .window = 1 << seed % 4,
							     .loss = seed % 3 * 50,
							     .repeat = seed % 2 * 50,
							     .wait = 250,
							     .jitter_ns = 20000,
							     .frames_grow = seed % 7,
							     .timeout_ns = 60 * NS_PER_MS * 1000 });

	p->world = w;
	for (enum call_verb verb = CALL_ALLREDUCE; verb <= CALL_BARRIER; verb++)
		for (enum tally_dtype t = TALLY_INT32; t <= TALLY_FLOAT32; t++)
			p->call[p->calls++] = (struct collective){
				.verb = verb,
				.dtype = t,
				.op = TALLY_SUM,
				.count = verb == CALL_BARRIER ? 0 : random_below(&w->random, 200),
				.root = random_below(&w->random, w->options.ranks),
				.in_place = verb < CALL_BROADCAST && seed & 1,
				.wild = seed & 2,
			};
	return run_programs(w, program, NULL);
}

static void every_collective_of_every_type_is_exact_on_every_tree(void **state)
{
	run_seeds(ALL_SEEDS, run_all_collectives);
}

/* Up to eight times, soon or late, a node forgets, the root moves, or a worker is routed anew. */
static void things_happen(struct world *w)
{
	const struct world_count *c = &w->count;

	if (c->restarts + c->moves + c->reroutes >= 8 || !chance(&w->random, 1))
		return;
	switch (random_below(&w->random, 3)) {
	case 0:
		world_restart(w, random_below(&w->random, w->nodes));
		break;
	case 1:
		if (w->options.spill_sums)
			world_move(w, chance(&w->random, 500));
		break;
	default:
		world_reroute(w, random_below(&w->random, w->workers));
	}
}

/* Besides, runs get other slots on some node, as where another run needs slots in a row. */
static void rings_move(struct world *w)
{
	if (w->count.rings_moved < 16 && chance(&w->random, 3))
		world_move_ring(w, random_below(&w->random, w->options.jobs),
				random_below(&w->random, w->nodes));
	things_happen(w);
}

/* At times one job with more ranks than a word of a set has, which lose less. */
static struct world_options options_by_chance(uint64_t *random)
{
	static const uint64_t jitters[] = { 0, 5000, 100000, 5 * NS_PER_MS };
	bool many = chance(random, 2);

	return (struct world_options){
		.seed = random_next(random),
		.tree = random_below(random, TREES),
		.jobs = many ? 1 : 1 + random_below(random, JOBS),
		.ranks = many ? 65 + random_below(random, WORLD_RANKS - 64)
			      : 1 + random_below(random, 8),
		.window = 1 << random_below(random, 4),
		.loss = random_below(random, 4) * (many ? 10 : 30),
		.repeat = random_below(random, 3) * 50,
		.wait = random_below(random, 3) * 450,
		.jitter_ns = jitters[random_below(random, 4)],
		.frames_grow = chance(random, 500),
		.stray = chance(random, 100) * 10,
		.spill_sums = chance(random, 500) * (1 + random_below(random, 40)),
		.timeout_ns = 120 * NS_PER_MS * 1000,
		.nonce = chance(random, 500),
		.sealed = chance(random, 500),
	};
}

static const char *run_world(const struct world_options *options, void (*happen)(struct world *w))
{
	struct world *w = world_new(options);
	struct program program[WORLD_JOBS] = { [0 ... WORLD_JOBS - 1] = { .world = w } };

	for (int job = 0; job < options->jobs; job++) {
		struct program *p = &program[job];

		p->job = job;
		p->calls = 1 + random_below(&w->random, 4);
		p->ahead = chance(&w->random, 300);
		p->late = chance(&w->random, 300) ? 200 : 0;
		p->late_ns = 1 + random_below(&w->random, 1000) * NS_PER_MS;
		for (int n = 0; n < p->calls; n++)
			p->call[n] = collective_random(&w->random, options->ranks,
						       options->ranks > 8 ? 100 : 200);
	}
	return run_programs(w, program, chance(&w->random, 300) ? things_happen : happen);
}

static const char *run_by_chance(uint64_t seed)
{
	uint64_t random = seed;
	struct world_options options = options_by_chance(&random);

	return run_world(&options, NULL);
}

/* Of a hundred frames on a hop up to one has a flipped bit; of many ranks' frames, of a thousand.
 */
static const char *run_with_flips(uint64_t seed)
{
	uint64_t random = seed;
	struct world_options options = options_by_chance(&random);

	options.flip = options.ranks > 8 ? 1 : 1 + seed % 10;
	options.region = seed % 3;
	return run_world(&options, NULL);
}

/* Up to three jobs for up to three slots, under every policy that the ingredients make. */
static const char *run_with_a_pool(uint64_t seed)
{
	static const uint16_t stalled_ms[] = { 0, 1, 50 };
	uint64_t random = seed;
	struct world_options options = options_by_chance(&random);

	options.pool_slots = 1 + random_below(&random, 3);
	options.policy = (struct tally_borrowed_policy){
		.holds = chance(&random, 300),
		.preempts = chance(&random, 700),
		.by_priority = chance(&random, 700),
		.downgrade = random_below(&random, 3),
		.stalled_ms = stalled_ms[random_below(&random, 3)],
	};
	options.stray = chance(&random, 500) * 50;
	options.ranges = chance(&random, 300);
	if (options.ranks <= 8)
		options.jobs = 1 + random_below(&random, WORLD_JOBS);
	return run_world(&options, NULL);
}

static const char *run_with_moves(uint64_t seed)
{
	uint64_t random = seed;
	struct world_options options = options_by_chance(&random);

	return run_world(&options, rings_move);
}

static void runs_whose_rings_move_get_exact_sums(void **state)
{
	run_seeds(MOVE_SEEDS, run_with_moves);
}

static void jobs_that_compete_for_borrowed_slots_get_exact_sums(void **state)
{
	run_seeds(BORROW_SEEDS, run_with_a_pool);
}

static void whatever_happens_no_sum_is_wrong_and_no_call_is_stuck(void **state)
{
	run_seeds(CHANCE_SEEDS, run_by_chance);
}

/* In place, sealed, wide: votes were made of results that lay where numbers had been. */
static void worlds_that_went_wrong_once_go_well(void **state)
{
	static const uint64_t seeds[] = { 701777, 724535, 728345, 730860, 737473 };

	(void)state;
	for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++)
		assert_null(run_by_chance(seeds[i]));
}

static void flipped_bits_make_no_sum_wrong_and_no_call_stuck(void **state)
{
	run_seeds(FLIP_SEEDS, run_with_flips);
}

/* What the worlds did, so that they cannot become quiet without anybody's notice. */
static void the_worlds_had_all_that_can_happen(void **state)
{
	static const enum tally_outcome given[] = {
		TALLY_STALE,	 TALLY_DUPLICATE, TALLY_OVERLAP,      TALLY_ABSORBED,
		TALLY_COMPLETED, TALLY_ANSWERED,  TALLY_ANSWERED_ALL, TALLY_ASKED,
		TALLY_REPAIRED,	 TALLY_SENT_UP,	  TALLY_FLUSHED_UP,   TALLY_PASSED_UP,
		TALLY_SENT_DOWN, TALLY_NO_ROOM,	  TALLY_CORRUPT,      TALLY_SPOILED,
		TALLY_NO_MEMORY,
	};

	if (getenv("TALLY_SEED"))
		skip();
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++)
		if (!total.outcome[given[i]])
			fail_msg("no %s", tally_outcome_name(given[i]));
	assert_true(total.lost && total.repeated && total.flips);
	assert_true(total.restarts && total.moves && total.reroutes && total.evicted);
	assert_true(total.rings_moved);
	assert_true(total.second_steps && total.strays);
	for (int cause = 0; cause < CAUSES; cause++)
		assert_true(total.resends[cause]);
	for (int move = 0; move <= TALLY_BORROWED_REFUSED; move++)
		assert_true(moves[move]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_of_every_type_is_exact_on_every_tree),
		cmocka_unit_test(whatever_happens_no_sum_is_wrong_and_no_call_is_stuck),
		cmocka_unit_test(worlds_that_went_wrong_once_go_well),
		cmocka_unit_test(flipped_bits_make_no_sum_wrong_and_no_call_stuck),
		cmocka_unit_test(jobs_that_compete_for_borrowed_slots_get_exact_sums),
		cmocka_unit_test(runs_whose_rings_move_get_exact_sums),
		cmocka_unit_test(the_worlds_had_all_that_can_happen),
	};

	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
