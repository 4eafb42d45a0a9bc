// SPDX-License-Identifier: GPL-2.0-only
/* When the leader lets runs move: agent/cluster/lead_rests.c. */
#include "lead_world.h"

/* Looks come every five seconds, so what shall happen after some time does so a little later. */
static void assert_about_seconds(unsigned int seconds, unsigned int expected)
{
	if (seconds < expected || seconds > expected + 10)
		fail_msg("after %u seconds, not %u", seconds, expected);
}

/* An operator puts j far from its workers: until it leaves. */
static unsigned int seconds_at_a_bad_place(struct leading *w)
{
	unsigned int seconds;

	run_moves(w, "j", 3);
	seconds = seconds_until(w, 2000);
	assert_decided(w, "j", "n0");
	return seconds;
}

/* The store takes it, and the run goes there. */
static void it_moves(struct leading *w)
{
	store_takes(w);
	cluster_run(&w->c, "j", 0);
	assert_int_equal(seconds_until(w, 5), 5); /* that was seen */
}

/* All figures of docs/cluster.md. */
static void a_job_may_leave_its_first_place_after_three_seconds(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	look_every_second(w);
	pass(w, 1000);
	assert_int_equal(look(w), 0);
	pass(w, 2999);
	assert_int_equal(look(w), 0);
	pass(w, 1);
	pass(w, 1000);
	assert_int_equal(look(w), 1);
	assert_about(w, "j");
}

/* What changes hands rests for 30 seconds, and for twice as long each time that it does so again;
 * until it has been calm for 300. */
static void a_rest_doubles_until_it_was_calm(void **state)
{
	struct leading *w = *state;
	unsigned int seconds;

	run_add(w, "j", 0);
	assert_int_equal(seconds_until(w, 20), 20);
	assert_about_seconds(seconds_at_a_bad_place(w), 30);
	it_moves(w); /* 60 */
	assert_about_seconds(seconds_at_a_bad_place(w), 120);
	it_moves(w); /* 240 */
	assert_about_seconds(seconds_at_a_bad_place(w), 480);
	it_moves(w); /* 480, as no rest is longer */
	assert_about_seconds(seconds_at_a_bad_place(w), 480);

	/* It rests for 480 seconds, and then it was calm for not quite 300. */
	it_moves(w);
	assert_int_equal(seconds_until(w, 480 + 290 - 5), 480 + 290 - 5);
	assert_about_seconds(seconds_at_a_bad_place(w), 480);
	it_moves(w);
	assert_int_equal(seconds_until(w, 480 + 310), 480 + 310);
	seconds = seconds_at_a_bad_place(w);
	assert_about_seconds(seconds, 30);
}

/* Another share is as good as another root. */
static void a_share_that_changes_is_a_move(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	assert_int_equal(look(w), 0);
	cluster_place_like(&w->c, "j", "00", (struct wanted_place){ .root = "n3", .share = 5 });
	assert_about_seconds(seconds_until(w, 100), 30);
}

/* Rates of an agent that was restarted are not known at first. */
static void a_run_is_weighed_when_it_has_summed_for_three_seconds(void **state)
{
	struct leading *w = *state;
	struct report_job *there;

	run_add(w, "j", 3);
	there = cluster_run(&w->c, "j", 3);
	there->chunks_per_second = 0;
	assert_int_equal(seconds_until(w, 30), 30);
	look_every_second(w);
	there->chunks_per_second = 100;
	pass(w, 1000);
	assert_int_equal(look(w), 0); /* from here on */
	pass(w, 2999);
	assert_int_equal(look(w), 0);
	pass(w, 1000);
	assert_int_equal(look(w), 1);
	lead_decided(&w->lead, -EIO, 0);

	/* Once more from the beginning. */
	there->chunks_per_second = 0;
	pass(w, 5000);
	assert_int_equal(look(w), 0);
	there->chunks_per_second = 100;
	pass(w, 5000);
	assert_int_equal(look(w), 0);
	pass(w, 5000);
	assert_int_equal(look(w), 1);
}

static void a_run_whose_workers_cannot_all_be_told_stays(void **state)
{
	struct leading *w = *state;
	struct report_job *there;

	run_add(w, "j", 3);
	there = cluster_run(&w->c, "j", 3);
	there->connected--;
	assert_int_equal(seconds_until(w, 30), 30);
	there->connected++;
	assert_about_seconds(seconds_until(w, 30), 0);
}

static void a_job_without_a_run_stays(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	cluster_run(&w->c, "j", 3)->runs = false;
	assert_int_equal(seconds_until(w, 30), 30);
	cluster_tell_no_more(&w->c, 3);
	assert_int_equal(seconds_until(w, 30), 30);
}

/* As an operator wants it; but a cordoned node is left all the same. */
static void who_is_to_stay_leaves_a_cordoned_node_alone(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	cluster_place_like(&w->c, "j", "00", (struct wanted_place){ .root = "n3", .stays = true });
	assert_int_equal(seconds_until(w, 60), 60);
	cluster_node(&w->c, 3)->cordoned = true;
	assert_about_seconds(seconds_until(w, 10), 0);
	assert_decided(w, "j", "n0");
}

/* At the next look: no rest counts, and neither do sums, nor what it costs. */
static void a_cordoned_node_is_left_at_once(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 0);
	cluster_run(&w->c, "j", 0)->chunks_per_second = 0;
	cluster_node(&w->c, 0)->cordoned = true;
	assert_int_equal(look(w), 1);
	assert_about(w, "j");
	assert_string_not_equal(w->d->place[0].root, "n0");
	assert_non_null(strstr(w->d->place[0].why, "off a cordoned node"));
}

/* Where no run is on, there is nothing to move: its workers come, and then it is due. */
static void a_cordoned_node_keeps_a_job_without_a_run(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 0);
	cluster_run(&w->c, "j", 0)->runs = false;
	cluster_node(&w->c, 0)->cordoned = true;
	assert_int_equal(seconds_until(w, 30), 30);
	cluster_wait(&w->c, "j", "00");
	assert_int_equal(look(w), 1);
	assert_string_not_equal(w->d->place[0].root, "n0");
}

/* n1 and n2 are as near to all workers, and n1 a little fuller. */
static void what_changes_costs_by_little_moves_nobody(void **state)
{
	struct leading *w = *state;

	cluster_want(&w->c, "j", 2, 0, 0);
	cluster_place(&w->c, "j", "03", 1);
	cluster_run(&w->c, "j", 1);
	for (unsigned int full = 0; full < 2; full++) {
		for (unsigned int end = 0; end < NODES; end += 3) {
			struct report_port *p = port_to(cluster_node(&w->c, 1), end);

			p->transmit_forecast = p->receive_forecast = full ? 11000000 : 200000;
		}
		if (full)
			assert_about_seconds(seconds_until(w, 60), 0);
		else
			assert_int_equal(seconds_until(w, 60), 60);
	}
	assert_about(w, "j");
}

/* Nobody looks meanwhile; each is seen once. */
static void wait_until_they_are_old(struct leading *w)
{
	assert_int_equal(look(w), 0);
	pass(w, 13000);
}

/* Jobs that come together settle within seconds. */
static void who_was_just_placed_does_not_wait_for_loads(void **state)
{
	struct leading *w = *state;

	run_add(w, "a", 3);
	run_add(w, "b", 3);
	look_every_second(w);
	assert_about_seconds(seconds_until(w, 20), 0);
	assert_about(w, "a");
	store_takes(w);
	cluster_run(&w->c, "a", 0);
	assert_true(seconds_until(w, 20) < 5);
	assert_about(w, "b");
}

/* All have the same reason to go: each does so by what loads are when the one before has gone. */
static void what_a_move_does_to_loads_is_seen_before_the_next_one(void **state)
{
	struct leading *w = *state;

	run_add(w, "a", 3);
	run_add(w, "b", 3);
	run_add(w, "c", 3);
	wait_until_they_are_old(w);
	seconds_until(w, 20);
	assert_decided(w, "a", "n0");
	store_takes(w);
	assert_int_equal(seconds_until(w, 20), 20); /* it is on its way */
	cluster_run(&w->c, "a", 0);
	assert_about_seconds(seconds_until(w, 60), 5);
	assert_decided(w, "b", "n0");
	store_takes(w);
	cluster_run(&w->c, "b", 0); /* between two looks */
	assert_about_seconds(seconds_until(w, 60), 9);
	assert_decided(w, "c", "n0");
}

static void a_run_that_does_not_come_holds_up_others_for_a_while(void **state)
{
	struct leading *w = *state;

	run_add(w, "a", 3);
	run_add(w, "b", 3);
	wait_until_they_are_old(w);
	seconds_until(w, 20);
	store_takes(w);
	assert_about_seconds(seconds_until(w, 90), 35);
	assert_about(w, "b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_job_may_leave_its_first_place_after_three_seconds),
		FACT(a_rest_doubles_until_it_was_calm),
		FACT(a_share_that_changes_is_a_move),
		FACT(a_run_is_weighed_when_it_has_summed_for_three_seconds),
		FACT(a_run_whose_workers_cannot_all_be_told_stays),
		FACT(a_job_without_a_run_stays),
		FACT(who_is_to_stay_leaves_a_cordoned_node_alone),
		FACT(a_cordoned_node_is_left_at_once),
		FACT(a_cordoned_node_keeps_a_job_without_a_run),
		FACT(what_changes_costs_by_little_moves_nobody),
		FACT(who_was_just_placed_does_not_wait_for_loads),
		FACT(what_a_move_does_to_loads_is_seen_before_the_next_one),
		FACT(a_run_that_does_not_come_holds_up_others_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
