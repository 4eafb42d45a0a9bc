// SPDX-License-Identifier: GPL-2.0-only
/* What the leader decides of jobs with several roots: agent/cluster/lead_roots.c. */
#include "lead_world.h"

/* n0's and n3's workers, and two roots, whose loads are those that are set here. */
static void two_want(struct leading *w)
{
	cluster_want(&w->c, "j", 2, 2, 1);
	cluster_want(&w->c, "j.2", 2, 2, 2);
}

/* What others send, and what the run itself does: 100 chunks of 1500 bytes a second. */
static void load_set(struct leading *w, unsigned int node, uint64_t bytes_per_second)
{
	for (unsigned int end = 0; end < NODES; end += 3) {
		struct report_port *p = port_to(cluster_node(&w->c, node), end);

		p->transmit_forecast = p->receive_forecast = bytes_per_second + 150000;
	}
}

static void two_place(struct leading *w, bool second_stays)
{
	cluster_place_like(&w->c, "j", "03", (struct wanted_place){ .root = "n1", .share = 500 });
	cluster_place_like(
		&w->c, "j.2", "03",
		(struct wanted_place){ .root = "n2", .share = 500, .stays = second_stays });
}

/* Both run, at n1 and n2, where each has 40 Mbit/s to give, and half of each call. */
static void two_run(struct leading *w)
{
	two_want(w);
	two_place(w, false);
	cluster_run(&w->c, "j", 1);
	cluster_run(&w->c, "j.2", 2);
	load_set(w, 1, 7500000);
	load_set(w, 2, 7500000);
}

/* --- places ------------------------------------------------------------------------------------
 */

static void all_roots_are_placed_in_one_write(void **state)
{
	struct leading *w = *state;
	const struct lead_decision *d;

	two_want(w);
	cluster_wait(&w->c, "j", "03");
	assert_int_equal(look(w), 2);
	d = w->d;
	assert_string_equal(d->job[0]->name, "j");
	assert_string_equal(d->job[1]->name, "j.2");
	assert_string_not_equal(d->place[0].root, d->place[1].root);
	assert_int_equal(d->place[0].share + d->place[1].share, JOINING_SHARE_MAX);
	assert_int_equal(d->place[1].workers, 2); /* those who wait for the first one */
	assert_int_equal(d->write.seens, 5);
	assert_string_equal(d->write.seen[0].key, "leader");
	for (unsigned int i = 0; i < 2; i++) {
		const struct store_seen *job = &d->write.seen[1 + 2 * i], *place = job + 1;

		assert_int_equal(job->revision, store_revision(w, job->key));
		assert_string_equal(job->key, i ? "job/j.2" : "job/j");
		assert_string_equal(place->key, i ? "place/j.2" : "place/j");
		assert_int_equal(place->revision, 0);
		assert_string_equal(d->write.change[i].key, place->key);
	}
	store_takes(w);
	assert_int_equal(look(w), 0);
}

static void no_root_is_placed_until_all_are_known(void **state)
{
	struct leading *w = *state;

	cluster_want(&w->c, "j", 2, 2, 1);
	cluster_wait(&w->c, "j", "03");
	assert_int_equal(look(w), 0);
	assert_int_equal(w->d->withouts, 1);
	assert_non_null(strstr(w->d->without[0].why.text, "root 2 is not known yet"));
	cluster_want(&w->c, "j.2", 2, 2, 2);
	assert_int_equal(look(w), 2);
}

static void where_an_operator_put_a_root_it_is(void **state)
{
	struct leading *w = *state;

	two_want(w);
	cluster_place_like(&w->c, "j.2", "",
			   (struct wanted_place){ .root = "n3", .stays = true, .why = "so" });
	cluster_wait(&w->c, "j", "03");
	assert_int_equal(look(w), 2);
	assert_string_equal(w->d->place[1].root, "n3");
	assert_string_equal(w->d->place[1].why, "so");
	assert_true(w->d->place[1].stays);
	assert_int_equal(w->d->place[0].share + w->d->place[1].share, JOINING_SHARE_MAX);
	assert_int_equal(w->d->write.seen[4].revision, store_revision(w, "place/j.2"));
}

/* It keeps its share, and goes to a node of its own, as long as there is one. */
static void a_root_that_is_lost_is_replaced_alone(void **state)
{
	struct leading *w = *state;

	two_run(w);
	load_set(w, 2, 0);
	cluster_refuse(&w->c, "j", 1);
	assert_int_equal(look(w), 1);
	assert_about(w, "j");
	assert_string_not_equal(w->d->place[0].root, "n1");
	assert_string_not_equal(w->d->place[0].root, "n2");
	assert_int_equal(w->d->place[0].share, 500);
	lead_decided(&w->lead, -EIO, 0);
	cluster_refuse(&w->c, "j", 0);
	cluster_refuse(&w->c, "j", 3);
	assert_int_equal(look(w), 1);
	assert_decided(w, "j", "n2");
}

/* --- other shares ------------------------------------------------------------------------------
 */

static void shares_change_when_all_roots_are_settled(void **state)
{
	struct leading *w = *state;
	struct report_job *second;

	two_run(w);
	load_set(w, 1, 11250000); /* 10 Mbit/s are left */
	second = cluster_run(&w->c, "j.2", 2);
	second->connected--;
	assert_int_equal(seconds_until(w, 60), 60);
	second->connected++;
	assert_true(seconds_until(w, 60) <= 10);
	assert_int_equal(w->d->jobs, 2);
	assert_string_equal(w->d->place[0].root, "n1");
	assert_string_equal(w->d->place[1].root, "n2");
	assert_int_equal(w->d->place[0].share, 200);
	assert_int_equal(w->d->place[1].share, 800);
}

static void shares_stay_where_runs_are_not_on_at_all_roots(void **state)
{
	struct leading *w = *state;

	two_run(w);
	load_set(w, 1, 11250000);
	cluster_run(&w->c, "j.2", 3);
	assert_int_equal(seconds_until(w, 60), 60);
	cluster_run(&w->c, "j.2", 2);
	assert_true(seconds_until(w, 60) <= 10);
}

/* What was said of a root when it was placed is kept with its new share. */
static void another_share_leaves_the_rest_of_a_place_as_it_is(void **state)
{
	struct leading *w = *state;

	two_run(w);
	cluster_place_like(&w->c, "j.2", "03",
			   (struct wanted_place){ .root = "n2",
						  .share = 500,
						  .stays = true,
						  .weighs = 1,
						  .weighed = { { "n2", "1", "2", "3", "4" } } });
	load_set(w, 1, 11250000);
	assert_true(seconds_until(w, 60) < 60);
	assert_true(w->d->place[1].stays);
	assert_false(w->d->place[0].stays);
	assert_int_equal(w->d->place[1].weighs, 1);
	assert_string_equal(w->d->place[1].weighed[0].time, "4");
}

/* --- moves ---------------------------------------------------------------------------------------
 */

static unsigned int moves_of(const struct leading *w)
{
	unsigned int moves = 0;

	for (unsigned int i = 0; i < w->d->jobs; i++)
		moves += strcmp(w->d->job[i]->place.root, w->d->place[i].root) != 0;
	return moves;
}

/* Both are where it is full, and n1 is empty. */
static void one_root_moves_at_most(void **state)
{
	struct leading *w = *state;

	two_run(w);
	cluster_place_like(&w->c, "j", "03", (struct wanted_place){ .root = "n2", .share = 500 });
	cluster_run(&w->c, "j", 2);
	load_set(w, 1, 0);
	load_set(w, 2, 12200000);
	assert_true(seconds_until(w, 60) < 60);
	assert_int_equal(w->d->jobs, 2);
	assert_int_equal(moves_of(w), 1);
}

/* At once, whatever the others do: first of all who must, and nobody else. */
static void a_root_leaves_a_cordoned_node_at_once(void **state)
{
	struct leading *w = *state;

	two_run(w);
	two_place(w, true);
	cluster_run(&w->c, "j", 1)->connected = 0;
	cluster_run(&w->c, "j.2", 2)->chunks_per_second = 0;
	load_set(w, 1, 12400000);
	cluster_node(&w->c, 2)->cordoned = true;
	assert_int_equal(look(w), 2);
	assert_string_equal(w->d->place[0].root, "n1");
	assert_string_not_equal(w->d->place[1].root, "n2");
	assert_int_equal(moves_of(w), 1);
}

/* Also where another one would win more by leaving. */
static void who_must_goes_before_who_may(void **state)
{
	struct leading *w = *state;

	two_run(w);
	assert_int_equal(seconds_until(w, 20), 20);
	load_set(w, 1, 12400000);
	load_set(w, 2, 0);
	cluster_node(&w->c, 2)->cordoned = true;
	assert_true(seconds_until(w, 10) <= 5);
	assert_string_equal(w->d->place[0].root, "n1");
	assert_string_not_equal(w->d->place[1].root, "n2");
}

/* Both are where it is full, and n1 is empty. */
static void a_root_that_is_to_stay_stays(void **state)
{
	struct wanted_place place = { .root = "n2", .share = 500, .stays = true };
	struct leading *w = *state;

	two_run(w);
	load_set(w, 1, 0);
	load_set(w, 2, 12200000);
	cluster_run(&w->c, "j", 2);
	cluster_place_like(&w->c, "j", "03", place);
	cluster_place_like(&w->c, "j.2", "03", place);
	assert_int_equal(seconds_until(w, 100), 100);
	place.stays = false;
	cluster_place_like(&w->c, "j.2", "03", place);
	assert_true(seconds_until(w, 100) < 100);
	assert_int_equal(moves_of(w), 1);
	assert_string_equal(w->d->place[0].root, "n2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(all_roots_are_placed_in_one_write),
		FACT(no_root_is_placed_until_all_are_known),
		FACT(where_an_operator_put_a_root_it_is),
		FACT(a_root_that_is_lost_is_replaced_alone),
		FACT(shares_change_when_all_roots_are_settled),
		FACT(shares_stay_where_runs_are_not_on_at_all_roots),
		FACT(another_share_leaves_the_rest_of_a_place_as_it_is),
		FACT(one_root_moves_at_most),
		FACT(a_root_leaves_a_cordoned_node_at_once),
		FACT(who_must_goes_before_who_may),
		FACT(a_root_that_is_to_stay_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
