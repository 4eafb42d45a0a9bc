// SPDX-License-Identifier: GPL-2.0-only
/* The simulation of jobs that share a node's slots (sim/slots.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/slots.h"

enum {
	JOBS = 4,
	HOP = 25,
	WINDOW = 128,
};

static struct slots_job job[JOBS];
static struct slots_options o;

static int prepare(void **state)
{
	o = (struct slots_options){ .policy = slots_policy_find("esa"),
				    .job = job,
				    .jobs = JOBS,
				    .slots = 64,
				    .window = WINDOW,
				    .hop = HOP,
				    .spread = 50,
				    .seed = 1,
				    .ticks_max = 1000000 };
	for (unsigned int i = 0; i < JOBS; i++)
		job[i] = (struct slots_job){ .workers = 3 + i,
					     .iterations = 2,
					     .chunks = 100 + 50 * i,
					     .compute = 400 - 100 * i,
					     .arrives = 30ull * i };
	return 0;
}

/* Ticks on average; the times of jobs are forgotten. */
static double mean(const char *policy, uint32_t slots)
{
	struct slots_result r;
	struct why why = { "" };

	o.policy = slots_policy_find(policy);
	o.slots = slots;
	assert_non_null(o.policy);
	if (slots_run(&o, &r, &why) < 0)
		fail_msg("%s", why.text);
	free(r.ended);
	return r.mean;
}

/* Computes, sends its chunks one a tick, and has the last result a round trip later. */
static void who_is_alone_takes_what_the_formula_says(void **state)
{
	o.jobs = 1;
	o.spread = 0;
	for (unsigned int p = 0; p < SLOTS_POLICIES_COUNT; p++)
		assert_true(mean(SLOTS_POLICIES[p].name, SLOTS_MAX) ==
			    job[0].iterations * (job[0].compute + job[0].chunks + 1 + 4 * HOP));
}

static void with_slots_for_all_policies_tie(void **state)
{
	const double best = mean("static", SLOTS_MAX);

	assert_true(mean("ranges", SLOTS_MAX) == best);
	for (unsigned int p = 0; p < SLOTS_POLICIES_COUNT; p++)
		assert_true(mean(SLOTS_POLICIES[p].name, SLOTS_MAX) < 1.01 * best);
}

static void more_slots_make_rings_no_slower(void **state)
{
	double before = mean("static", 2 * JOBS);

	for (uint32_t slots = 4 * JOBS; slots <= 4096; slots *= 2) {
		double now = mean("static", slots);

		assert_true(now <= before);
		before = now;
	}
	assert_true(before < 0.2 * mean("static", 2 * JOBS));
}

/* What has been seen in the benchmark of scarce slots: the ingredients are there. */
static void where_slots_are_scarce_policies_differ(void **state)
{
	const double fcfs = mean("fcfs", 64), early = mean("early", 64), evict = mean("evict", 64);

	assert_true(early < fcfs && evict < early);
	assert_true(mean("priority", 64) != early && mean("esa", 64) != mean("priority", 64));
}

static void a_seed_repeats_a_run(void **state)
{
	struct slots_result a, b;
	struct why why;

	assert_int_equal(slots_run(&o, &a, &why), 0);
	assert_int_equal(slots_run(&o, &b, &why), 0);
	assert_memory_equal(a.ended, b.ended, JOBS * sizeof(*a.ended));
	assert_true(a.swapped == b.swapped && a.refused == b.refused && a.swapped + a.refused);
	free(b.ended);
	o.seed = 2;
	assert_int_equal(slots_run(&o, &b, &why), 0);
	assert_memory_not_equal(a.ended, b.ended, JOBS * sizeof(*a.ended));
	free(a.ended);
	free(b.ended);
}

static void refused(const char *words)
{
	struct slots_result r;
	struct why why = { "" };

	assert_int_equal(slots_run(&o, &r, &why), -EINVAL);
	assert_string_equal(why.text, words);
	prepare(NULL);
}

static void what_cannot_be_run_is_named(void **state)
{
	struct slots_result r;
	struct why why = { "" };

	o.jobs = 0;
	refused("0 jobs: 1 to 1024 may share a node");
	o.slots = 0;
	refused("0 slots: a node has 1 to 1048576");
	o.policy = slots_policy_find("static");
	o.slots = 7;
	refused("7 slots: static needs two for each of 4 jobs at least");
	o.window = TALLY_WINDOW_MAX + 1;
	refused("window 1025: 1 to 1024");
	job[1].workers = 65;
	refused("job 1: it may have 1 to 64 workers");
	job[2].chunks = 0;
	refused("job 2: it needs an iteration and a chunk");
	job[3].chunks = UINT32_MAX;
	refused("job 3: it has more than 2^32 chunks");
	assert_null(slots_policy_find("atp"));
	o.ticks_max = 100;
	assert_int_equal(slots_run(&o, &r, &why), -EDEADLK);
	assert_string_equal(why.text, "esa, 64 slots: a job does not end");
}

int main(void)
{
#define FACT(name) cmocka_unit_test_setup(name, prepare)
	const struct CMUnitTest tests[] = {
		FACT(who_is_alone_takes_what_the_formula_says),
		FACT(with_slots_for_all_policies_tie),
		FACT(more_slots_make_rings_no_slower),
		FACT(where_slots_are_scarce_policies_differ),
		FACT(a_seed_repeats_a_run),
		FACT(what_cannot_be_run_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
