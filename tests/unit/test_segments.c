// SPDX-License-Identifier: GPL-2.0-only
/* May datagrams go in runs? The path is a model: it loses chunks, or swallows whole runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/segments.h"

enum {
	WINDOW = 64,
	BURST = 10, /* fresh datagrams that are to be sent at a time */
	MANY = 1000 * 1000,
};

struct path {
	struct segments s;
	struct window_runs runs;
	bool swallows;
	uint32_t lost_of_10000; /* chunks whose first try fails, of whatever rank */
	uint64_t sent, swallowed, trials;
	unsigned short random[3];
};

static struct path path_new(uint32_t random)
{
	struct path p = { .random = { 1, 2, 3 } };

	segments_init(&p.s, 2 * WINDOW, random);
	return p;
}

/* One run, and all its results. */
static size_t pass(struct path *p, size_t n)
{
	size_t run = segments_allow(&p->s, n);

	assert_in_range(run, 1, n);
	p->sent += run;
	p->trials += run > 1 && p->s.paused;
	for (size_t i = 0; run > 1 && i < run; i++) {
		bool lost = nrand48(p->random) % 10000 < p->lost_of_10000;

		p->runs.chunks++;
		p->runs.first_tries += !p->swallows && !lost;
		p->swallowed += p->swallows;
	}
	segments_judge(&p->s, &p->runs);
	return run;
}

static void pass_many(struct path *p, uint64_t chunks)
{
	for (uint64_t end = p->sent + chunks; p->sent < end;)
		pass(p, BURST);
}

/* So many chunks of runs are retransmitted, needed or not. */
static void resend(struct path *p, uint64_t chunks)
{
	p->runs.chunks += chunks;
	segments_judge(&p->s, &p->runs);
}

static void runs_go_out_as_long_as_fits(void **state)
{
	struct path p = path_new(1);

	assert_int_equal(segments_allow(&p.s, 1), 1);
	assert_int_equal(segments_allow(&p.s, 7), 7);
	assert_int_equal(segments_allow(&p.s, 1000), SEGMENTS_MAX);
}

/* 40 %: of many ranks each loses some of what the same chunk needs. */
static void losses_stop_no_runs(void **state)
{
	static const uint32_t lost_of_10000[] = { 10, 100, 500, 4000 };

	for (size_t i = 0; i < sizeof(lost_of_10000) / sizeof(*lost_of_10000); i++) {
		struct path p = path_new(i);

		p.lost_of_10000 = lost_of_10000[i];
		while (p.sent < MANY) {
			pass(&p, BURST);
			assert_false(p.s.paused);
		}
	}
}

static void bursts_of_retransmissions_stop_no_runs(void **state)
{
	struct path p = path_new(1);

	for (int i = 0; i < 1000; i++) {
		resend(&p, 2 * WINDOW - 1);
		assert_int_equal(pass(&p, BURST), BURST);
	}
}

static void where_runs_are_swallowed_they_stop_within_two_windows(void **state)
{
	struct path p = path_new(1);

	pass_many(&p, 1000); /* until now they were not */
	p.swallows = true;
	pass_many(&p, 2 * WINDOW);
	assert_true(p.s.paused);
	assert_in_range(p.swallowed, 2 * WINDOW, 2 * WINDOW + BURST);
	assert_int_equal(pass(&p, BURST), 1);
}

static void trials_are_small_and_ever_rarer(void **state)
{
	struct path p = path_new(1);

	p.swallows = true;
	pass_many(&p, MANY);
	assert_in_range(p.trials, 12, 24);
	assert_in_range(p.swallowed - 2 * WINDOW, p.trials * SEGMENTS_TRIED,
			p.trials * SEGMENTS_TRIED + BURST);
	/* And yet they do not cease. */
	p.trials = 0;
	pass_many(&p, 4ull * SEGMENTS_PAUSE_MAX);
	assert_in_range(p.trials, 2, 4);
}

static void a_lone_datagram_is_no_trial(void **state)
{
	struct path p = path_new(1);

	p.swallows = true;
	pass_many(&p, 2 * WINDOW);
	for (int i = 0; i < 2 * SEGMENTS_PAUSE_MIN; i++)
		assert_int_equal(pass(&p, 1), 1);
	assert_int_equal(pass(&p, BURST), SEGMENTS_TRIED);
}

static void runs_come_back_when_the_path_does(void **state)
{
	for (uint64_t swallows = 2ull * WINDOW; swallows <= MANY; swallows *= 2) {
		struct path p = path_new(swallows);

		p.swallows = true;
		pass_many(&p, swallows);
		assert_true(p.s.paused);
		p.swallows = false;
		p.lost_of_10000 = 500;
		pass_many(&p, swallows * 4 + 2ull * SEGMENTS_PAUSE_MIN);
		assert_false(p.s.paused);
		assert_int_equal(pass(&p, BURST), BURST);
		/* What was, is forgotten. */
		resend(&p, 2 * WINDOW - 1);
		assert_false(p.s.paused);
	}
}

/* A trial fails if another rank's does, for a chunk needs all: the ranks must not try together. */
static void ranks_try_at_different_times(void **state)
{
	struct path a = path_new(1000), b = path_new(2000);
	uint64_t together = 0;

	a.swallows = b.swallows = true;
	while (a.sent < MANY) {
		uint64_t trials[] = { a.trials, b.trials };

		pass_many(&a, BURST);
		pass_many(&b, BURST);
		together += a.trials > trials[0] && b.trials > trials[1];
	}
	assert_in_range(a.trials, 12, 24);
	assert_true(together <= 1);
}

static void a_system_that_takes_no_runs_is_asked_again_rarely(void **state)
{
	struct path p = path_new(1);
	uint64_t refused = 0;

	while (p.sent < MANY) {
		size_t run = segments_allow(&p.s, BURST);

		if (run > 1) {
			refused++;
			segments_refused(&p.s);
			assert_int_equal(segments_allow(&p.s, BURST), 1);
		}
		p.sent++;
	}
	assert_in_range(refused, 12, 25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_go_out_as_long_as_fits),
		cmocka_unit_test(losses_stop_no_runs),
		cmocka_unit_test(bursts_of_retransmissions_stop_no_runs),
		cmocka_unit_test(where_runs_are_swallowed_they_stop_within_two_windows),
		cmocka_unit_test(trials_are_small_and_ever_rarer),
		cmocka_unit_test(a_lone_datagram_is_no_trial),
		cmocka_unit_test(runs_come_back_when_the_path_does),
		cmocka_unit_test(ranks_try_at_different_times),
		cmocka_unit_test(a_system_that_takes_no_runs_is_asked_again_rarely),
	};

	return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
