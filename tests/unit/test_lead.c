// SPDX-License-Identifier: GPL-2.0-only
/* What the leader decides, and what it writes: agent/cluster/lead.h. */
#include "lead_world.h"

static void due_add(struct leading *w, const char *name, const char *nodes)
{
	cluster_want(&w->c, name, (unsigned int)strlen(nodes), 0, 0);
	cluster_wait(&w->c, name, nodes);
}

static void a_job_gets_its_root_when_all_have_come(void **state)
{
	struct leading *w = *state;

	cluster_want(&w->c, "j", 2, 0, 0);
	cluster_wait(&w->c, "j", "1");
	assert_int_equal(look(w), 0);
	assert_null(w->d);
	cluster_wait(&w->c, "j", "11");
	assert_int_equal(look(w), 1);
	assert_decided(w, "j", "n1");
	assert_int_equal(w->d->place[0].birth, cluster_job(&w->c, "j")->job.birth);
	assert_int_equal(w->d->place[0].workers, 2);
	assert_int_equal(w->d->place[0].share, 0);
	store_takes(w);
	assert_string_equal(root_of(w, "j"), "n1");
	assert_int_equal(look(w), 0);
}

/* --- the write ------------------------------------------------------------------------------- */

static void assert_seen(const struct leading *w, unsigned int i, const char *key, uint64_t revision)
{
	assert_string_equal(w->d->write.seen[i].key, key);
	assert_int_equal(w->d->write.seen[i].revision, revision);
}

static void a_write_names_all_that_must_not_have_changed(void **state)
{
	struct leading *w = *state;
	struct wanted_place place = { 0 };
	struct why why;

	due_add(w, "j", "11");
	assert_int_equal(look(w), 1);
	assert_int_equal(w->d->write.seens, 3);
	assert_seen(w, 0, "leader", 77);
	assert_seen(w, 1, "job/j", cluster_job(&w->c, "j")->revision);
	assert_seen(w, 2, "place/j", 0);
	assert_int_equal(w->d->write.changes, 1);
	assert_string_equal(w->d->write.change[0].key, "place/j");
	assert_false(w->d->write.change[0].leased);
	assert_int_equal(
		wanted_parse(&wanted_place_keys, w->d->write.change[0].value, &place, &why), 0);
	assert_string_equal(place.root, "n1");
	assert_string_equal(place.why, w->d->place[0].why);
	store_takes(w);

	/* And where it has a place already, that one. */
	cluster_refuse(&w->c, "j", 1);
	assert_int_equal(look(w), 1);
	assert_seen(w, 0, "leader", 77);
	assert_seen(w, 2, "place/j", cluster_job(&w->c, "j")->place_revision);
	assert_true(w->d->write.seen[2].revision > 0);
	store_takes(w);
	assert_string_not_equal(root_of(w, "j"), "n1");
}

/* Another one leads; the job is another one; somebody else has placed it. */
static void nothing_is_written_by_what_is_so_no_more(void **state)
{
	struct leading *w = *state;

	due_add(w, "j", "11");
	assert_int_equal(look(w), 1);
	w->key = 78;
	assert_int_equal(store_writes(w), -ESTALE);
	w->key = 77;

	assert_int_equal(look(w), 1);
	cluster_want(&w->c, "j", 2, 0, 0);
	assert_int_equal(store_writes(w), -ESTALE);

	assert_int_equal(look(w), 1);
	cluster_place(&w->c, "j", "11", 3);
	assert_int_equal(store_writes(w), -ESTALE);
	assert_string_equal(root_of(w, "j"), "n3");
}

static void who_does_not_lead_decides_nothing(void **state)
{
	struct leading *w = *state;

	due_add(w, "j", "11");
	assert_int_equal(look_as(w, NULL), 0);
	assert_null(w->d);
	assert_int_equal(look(w), 1);
}

/* --- one decision after the other --------------------------------------------------------------
 */

static void nothing_is_decided_while_a_decision_is_on_its_way(void **state)
{
	struct leading *w = *state;

	due_add(w, "a", "11");
	due_add(w, "b", "11");
	assert_int_equal(look(w), 1);
	pass(w, 60000);
	assert_int_equal(look(w), 0);
	lead_decided(&w->lead, -ENOTCONN, 0); /* nothing was done: it is decided anew */
	assert_int_equal(look(w), 1);
	assert_decided(w, "a", "n1");
}

static void nothing_is_decided_until_we_hear_of_the_last_decision(void **state)
{
	struct leading *w = *state;

	due_add(w, "a", "11");
	due_add(w, "b", "11");
	assert_int_equal(look(w), 1);
	assert_int_equal(store_writes(w), 0);
	pass(w, 2000);
	assert_int_equal(look(w), 0);
	pass(w, 1);
	assert_int_equal(look(w), 1); /* too long: we have missed it */
	assert_decided(w, "a", "n1");
	assert_int_equal(store_writes(w), 0);
	assert_int_equal(look(w), 0);
	store_tells(w);
	assert_int_equal(look(w), 1);
	assert_about(w, "b");
}

/* What another store says has other revisions. A job that is gone has no place to wait for. */
static void nothing_is_awaited_of_a_store_that_lost_it(void **state)
{
	struct leading *w = *state;

	due_add(w, "a", "11");
	due_add(w, "b", "11");
	assert_int_equal(look(w), 1);
	assert_int_equal(store_writes(w), 0);
	assert_int_equal(look(w), 0);
	lead_store_lost(&w->lead);
	assert_int_equal(look(w), 1);
	assert_int_equal(store_writes(w), 0);
	assert_int_equal(look(w), 0);
	cluster_put(&w->c, WANTED_JOBS "a", NULL);
	assert_int_equal(look(w), 1);
	assert_about(w, "b");
}

static void jobs_are_placed_one_at_a_time(void **state)
{
	struct leading *w = *state;

	due_add(w, "b", "22");
	due_add(w, "a", "11");
	assert_int_equal(look(w), 1);
	assert_decided(w, "a", "n1");
	store_takes(w);
	assert_int_equal(look(w), 1);
	assert_about(w, "b");
	store_takes(w);
	assert_int_equal(look(w), 0);
	assert_null(w->d);
}

static void a_job_without_a_place_holds_up_nobody(void **state)
{
	struct leading *w = *state;

	due_add(w, "a", "11");
	due_add(w, "b", "22");
	for (unsigned int i = 0; i < NODES; i++)
		cluster_refuse(&w->c, "a", i);
	assert_int_equal(look(w), 1);
	assert_about(w, "b");
	assert_int_equal(w->d->withouts, 1);
	assert_string_equal(w->d->without[0].job->name, "a");
	assert_non_null(strstr(w->d->without[0].why.text, "refused"));
	store_takes(w);

	/* It is said as long as it is so, and nothing is on its way. */
	assert_int_equal(look(w), 0);
	assert_int_equal(w->d->withouts, 1);
	assert_int_equal(w->d->write.changes, 0);
	due_add(w, "c", "33");
	assert_int_equal(look(w), 1);
	assert_about(w, "c");
}

/* --- what is looked at, and when ---------------------------------------------------------------
 */

/* Every five seconds; what must move does so at the next look. */
static void better_places_are_looked_for_every_five_seconds(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 0);
	assert_int_equal(look(w), 0);
	cluster_node(&w->c, 0)->cordoned = true;
	pass(w, 4999);
	assert_int_equal(look(w), 0);
	pass(w, 1);
	assert_int_equal(look(w), 1);
	assert_string_not_equal(w->d->place[0].root, "n0");
}

/* For ten seconds from when a place was given. */
static void and_every_second_while_places_are_given(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 0);
	look_every_second(w);
	pass(w, 1000);
	assert_int_equal(look(w), 0);
	cluster_node(&w->c, 0)->cordoned = true;
	pass(w, 999);
	assert_int_equal(look(w), 0);
	pass(w, 1);
	assert_int_equal(look(w), 1);
	lead_decided(&w->lead, -EIO, 0);

	cluster_node(&w->c, 0)->cordoned = false;
	pass(w, 9000);
	assert_int_equal(look(w), 0);
	cluster_node(&w->c, 0)->cordoned = true;
	pass(w, 1000); /* ten seconds since the last decision */
	assert_int_equal(look(w), 0);
	pass(w, 4000);
	assert_int_equal(look(w), 1);
}

/* Who is due comes first, and one run moves at a time: the next one by what the first has changed.
 */
static void one_run_moves_at_a_time(void **state)
{
	struct leading *w = *state;

	run_add(w, "a", 0);
	run_add(w, "b", 0);
	cluster_node(&w->c, 0)->cordoned = true;
	due_add(w, "c", "33");
	assert_int_equal(look(w), 1);
	assert_about(w, "c");
	store_takes(w);
	assert_int_equal(look(w), 1);
	assert_about(w, "a");
	store_takes(w);
	cluster_run(&w->c, "a", (unsigned int)(root_of(w, "a")[1] - '0'));
	pass(w, 999);
	assert_int_equal(look(w), 0);
	pass(w, 1);
	assert_int_equal(look(w), 1);
	assert_about(w, "b");
}

/* --- loads of jobs that have gone --------------------------------------------------------------
 */

/* n1's links are as full as job a makes them, which is there, or was a moment ago. All nodes are as
 * near to j's workers, and n0 is the first; but the ways to it, too, go by n1. */
static void a_runs_at_n1_and_j_comes(struct leading *w)
{
	cluster_want(&w->c, "a", 2, 0, 0);
	cluster_place(&w->c, "a", "03", 1);
	cluster_tell(&w->c, "a", 1, true)->chunks_per_second = 4000; /* of 1500 bytes */
	for (unsigned int end = 0; end < NODES; end += 3) {
		struct report_port *p = port_to(cluster_node(&w->c, 1), end);
		struct report_port *q = port_to(cluster_node(&w->c, end), 1);

		p->transmit_forecast = p->receive_forecast = 6000000;
		q->transmit_forecast = q->receive_forecast = 6000000;
	}
	due_add(w, "j", "03");
}

static void what_has_gone_is_in_loads_for_five_seconds(void **state)
{
	for (unsigned int ms = 5000; ms <= 5001; ms++) {
		struct leading *w;
		struct lead_view v;

		leading_open(state);
		w = *state;
		a_runs_at_n1_and_j_comes(w);
		v = view(w);
		assert_string_not_equal(cluster_job(&w->c, "a")->job.token, "");
		lead_job_goes(&w->lead, &v, cluster_job(&w->c, "a"));
		assert_string_equal(w->lead.gone[0]->job.token, "");
		cluster_put(&w->c, WANTED_JOBS "a", NULL);
		cluster_tell_no_more(&w->c, 1);
		pass(w, ms);
		assert_int_equal(look(w), 1);
		assert_decided(w, "j", ms == 5000 ? "n0" : "n2");
		leading_close(state);
	}
}

static void what_has_gone_without_sums_was_no_load(void **state)
{
	struct leading *w = *state;
	struct lead_view v;

	a_runs_at_n1_and_j_comes(w);
	cluster_tell(&w->c, "a", 1, true)->chunks_per_second = 0;
	v = view(w);
	lead_job_goes(&w->lead, &v, cluster_job(&w->c, "a"));
	cluster_put(&w->c, WANTED_JOBS "a", NULL);
	assert_int_equal(look(w), 1);
	assert_decided(w, "j", "n2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_job_gets_its_root_when_all_have_come),
		FACT(a_write_names_all_that_must_not_have_changed),
		FACT(nothing_is_written_by_what_is_so_no_more),
		FACT(who_does_not_lead_decides_nothing),
		FACT(nothing_is_decided_while_a_decision_is_on_its_way),
		FACT(nothing_is_decided_until_we_hear_of_the_last_decision),
		FACT(nothing_is_awaited_of_a_store_that_lost_it),
		FACT(jobs_are_placed_one_at_a_time),
		FACT(a_job_without_a_place_holds_up_nobody),
		FACT(better_places_are_looked_for_every_five_seconds),
		FACT(and_every_second_while_places_are_given),
		FACT(one_run_moves_at_a_time),
		cmocka_unit_test(what_has_gone_is_in_loads_for_five_seconds),
		FACT(what_has_gone_without_sums_was_no_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
