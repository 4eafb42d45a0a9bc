// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which ways the leader finds for jobs, and when it gives them up: agent/cluster/lead_ways.c.
 *
 *	worker ── n0 ─ 8 ─ n1      routing goes over n1
 *	          │         │
 *	         40         8
 *	          │         │
 *	         n2 ─ 40 ─ n3, the root
 */
#include "lead_world.h"

static void route(struct leading *w, unsigned int node, const char *to, unsigned int next)
{
	struct report *r = cluster_node(&w->c, node);
	struct report_route *row = ADD(r->route, r->routes);

	snprintf(row->to, sizeof(row->to), "%s", to);
	snprintf(row->port, sizeof(row->port), "p%u", next);
}

static void cable_is(struct leading *w, unsigned int a, unsigned int b, uint32_t mbps)
{
	port_to(cluster_node(&w->c, a), b)->rate_mbps = mbps;
	port_to(cluster_node(&w->c, b), a)->rate_mbps = mbps;
}

static void load_is(struct leading *w, unsigned int a, unsigned int b, double mbps)
{
	struct report_port *p = port_to(cluster_node(&w->c, a), b);
	struct report_port *q = port_to(cluster_node(&w->c, b), a);

	p->transmit_forecast = q->receive_forecast = (uint64_t)(mbps * 125000);
	q->transmit_forecast = p->receive_forecast = (uint64_t)(mbps * 125000);
}

static void network_make_ready(struct leading *w)
{
	w->finds_ways = true;
	for (unsigned int i = 0; i < NODES; i++) {
		struct report *r = cluster_node(&w->c, i);

		r->steers = r->inner = true;
		for (unsigned int k = 0; k < r->ports; k++)
			snprintf(r->port[k].ip4, sizeof(r->port[k].ip4), "10.50.%u.%u", i, k + 1);
	}
	route(w, 0, "10.77.0.4/32", 1);
	route(w, 1, "10.77.0.4/32", 3);
	route(w, 3, "10.0.0.1/32", 1);
	route(w, 1, "10.0.0.1/32", 0);
	cable_is(w, 0, 1, 8);
	cable_is(w, 1, 3, 8);
	cable_is(w, 0, 2, 40);
	cable_is(w, 2, 3, 40);
}

/* Where an operator wants it, with a run that sums. */
static void job_add(struct leading *w, const char *name)
{
	cluster_want(&w->c, name, 1, 0, 0);
	cluster_place_like(&w->c, name, "0", (struct wanted_place){ .root = "n3", .stays = true });
	cluster_run(&w->c, name, 3);
}

/* One look a second, which ways come of: after how many seconds; `max`: of none. */
static unsigned int seconds_until_ways(struct leading *w, unsigned int max)
{
	for (unsigned int seconds = 0; seconds < max; seconds++, pass(w, 1000)) {
		assert_int_equal(look(w), 0);
		if (w->d && w->d->leds)
			return seconds;
	}
	return max;
}

static void never(struct leading *w, unsigned int seconds)
{
	if (seconds_until_ways(w, seconds) < seconds)
		fail_msg("%s: %s", w->d->ways ? "found" : "given up", w->d->why.text);
}

static struct leading *with_a_job(void **state)
{
	struct leading *w = *state;

	network_make_ready(w);
	job_add(w, "j");
	return w;
}

static struct leading *with_ways(void **state)
{
	struct leading *w = with_a_job(state);

	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	assert_non_null(w->d->ways);
	store_takes(w);
	assert_non_null(shared_ways(cluster_job(&w->c, "j")));
	never(w, 2);
	return w;
}

static void assert_given_up(struct leading *w, unsigned int seconds, const char *why)
{
	if (seconds_until_ways(w, seconds + 1) > seconds)
		fail_msg("it keeps its ways");
	assert_null(w->d->ways);
	if (!strstr(w->d->why.text, why))
		fail_msg("it says \"%s\", and not \"%s\"", w->d->why.text, why);
	assert_int_equal(w->d->write.changes, 1);
	assert_null(w->d->write.change[0].value);
	store_takes(w);
	assert_null(cluster_job(&w->c, "j")->ways);
}

/* --- they are found -------------------------------------------------------------------------- */

static void seen_is(const struct leading *w, unsigned int i, const char *key, uint64_t revision)
{
	assert_string_equal(w->d->write.seen[i].key, key);
	assert_int_equal(w->d->write.seen[i].revision, revision);
}

static void ways_that_bear_more_are_written(void **state)
{
	struct leading *w = with_a_job(state);
	_cleanup_(freep) struct wanted_ways *is = calloc(1, sizeof(*is));
	const struct shared_job *j = cluster_job(&w->c, "j");
	struct why why;

	assert_non_null(is);
	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	assert_ptr_equal(w->d->led[0], j);
	assert_string_equal(w->d->why.text,
			    "with ways of its own workers can send 40 Mbit/s in place of 8");
	assert_int_equal(w->d->write.seens, 4);
	seen_is(w, 0, "leader", 77);
	seen_is(w, 1, "job/j", j->revision);
	seen_is(w, 2, "place/j", j->place_revision);
	seen_is(w, 3, "ways/j", 0);
	assert_int_equal(w->d->write.changes, 1);
	assert_string_equal(w->d->write.change[0].key, "ways/j");
	assert_false(w->d->write.change[0].leased);
	assert_int_equal(wanted_parse(&wanted_ways_keys, w->d->write.change[0].value, is, &why), 0);
	assert_true(is->found);
	assert_string_equal(is->why, w->d->why.text);
	assert_int_equal(is->ways, 1);
	assert_int_equal(is->way[0].nodes, 3);
	assert_string_equal(is->way[0].node[1], "n2");
	store_takes(w);
	never(w, 200);
}

/* Another one leads; the job, its place or its ways are others. */
static void nothing_is_written_by_what_is_so_no_more(void **state)
{
	struct leading *w = with_a_job(state);

	for (unsigned int i = 0; i < 4; i++) {
		assert_in_range(seconds_until_ways(w, 60), 1, 40);
		w->key = i == 0 ? 78 : 77;
		if (i == 1)
			cluster_want(&w->c, "j", 1, 0, 0);
		if (i == 2)
			cluster_place_like(&w->c, "j", "0", (struct wanted_place){ .root = "n3" });
		if (i == 3)
			cluster_put(&w->c, "ways/j", w->d->write.change[0].value);
		assert_int_equal(store_writes(w), -ESTALE);
		w->key = 77;
		if (i == 1 || i == 2) {
			cluster_place_like(&w->c, "j", "0",
					   (struct wanted_place){ .root = "n3", .stays = true });
			cluster_run(&w->c, "j", 3);
		}
	}
}

static void who_does_not_want_them_has_none(void **state)
{
	struct leading *w = with_a_job(state);

	w->finds_ways = false;
	never(w, 60);
	w->finds_ways = true;
	cluster_node(&w->c, 3)->steers = false; /* the root is to steer, too */
	never(w, 60);
	cluster_node(&w->c, 3)->steers = true;
	cluster_node(&w->c, 2)->steers = false;
	never(w, 60);
	cluster_node(&w->c, 2)->steers = true;
	cluster_node(&w->c, 2)->cordoned = true;
	never(w, 60);
	cluster_node(&w->c, 2)->cordoned = false;
	*port_to(cluster_node(&w->c, 2), 0)->ip4 = '\0'; /* agents would not follow them */
	never(w, 60);
	snprintf(port_to(cluster_node(&w->c, 2), 0)->ip4, REPORT_IP_BYTES, "10.50.2.1");
	assert_in_range(seconds_until_ways(w, 60), 0, 31);
}

static void a_run_that_is_not_settled_has_none(void **state)
{
	struct leading *w = with_a_job(state);
	struct report_job *there = cluster_run(&w->c, "j", 3);

	there->connected = 0;
	never(w, 30);
	there->connected = 1;
	there->chunks_per_second = 0;
	never(w, 30);
	there->chunks_per_second = 100;
	there->runs = false;
	never(w, 30);
	there->runs = true;
	assert_in_range(seconds_until_ways(w, 60), 3, 9);
}

static void a_tenth_more_is_worth_it_and_less_is_not(void **state)
{
	struct leading *w = with_a_job(state);

	cable_is(w, 0, 1, 37);
	cable_is(w, 1, 3, 37);
	never(w, 100);
	cable_is(w, 0, 1, 36);
	cable_is(w, 1, 3, 36);
	assert_in_range(seconds_until_ways(w, 40), 1, 35);
}

/* Of many, one each five seconds; and the same again after thirty. */
static void jobs_take_turns(void **state)
{
	struct leading *w = with_a_job(state);

	job_add(w, "k");
	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	assert_string_equal(w->d->led[0]->name, "j");
	lead_decided(&w->lead, -ENOTCONN, 0);
	pass(w, 4000);
	assert_int_equal(look(w), 0);
	assert_null(w->d);
	pass(w, 1000);
	assert_int_equal(look(w), 0);
	assert_string_equal(w->d->led[0]->name, "k");
	lead_decided(&w->lead, -ENOTCONN, 0);
	never(w, 24);
	assert_in_range(seconds_until_ways(w, 10), 0, 5);
	assert_string_equal(w->d->led[0]->name, "j");
}

static void nothing_is_decided_until_they_are_heard_of(void **state)
{
	struct leading *w = with_a_job(state);

	for (unsigned int gone = 0; gone < 2; gone++) {
		assert_in_range(seconds_until_ways(w, 20), gone ? 0 : 3, 9);
		assert_true(gone == !w->d->ways);
		assert_int_equal(store_writes(w), 0);
		cluster_node(&w->c, 2)->steers = false; /* they are to be given up at once */
		pass(w, 1000);
		assert_int_equal(look(w), 0);
		assert_null(w->d);
		store_tells(w);
	}
	assert_null(cluster_job(&w->c, "j")->ways);
}

/* --- they are given up ----------------------------------------------------------------------- */

static void ways_that_do_not_hold_are_given_up(void **state)
{
	struct leading *w = with_ways(state);

	cluster_node(&w->c, 2)->steers = false;
	assert_given_up(w, 0, "n2 does not steer");
}

static void a_node_that_is_gone_is_on_no_way(void **state)
{
	struct leading *w = with_ways(state);

	picture_drop(&w->c.picture, "n2");
	assert_given_up(w, 0, "n2 reports nothing");
}

static void a_cordoned_node_is_left(void **state)
{
	struct leading *w = with_ways(state);

	cluster_node(&w->c, 0)->cordoned = true; /* next to the worker: they come there anyway */
	never(w, 40);
	cluster_node(&w->c, 2)->cordoned = true;
	assert_given_up(w, 0, "n2 is cordoned");
	never(w, 200);
}

static void ways_stay_until_those_of_routing_are_as_good(void **state)
{
	struct leading *w = with_ways(state);

	cable_is(w, 0, 1, 39);
	cable_is(w, 1, 3, 39);
	never(w, 200);
	cable_is(w, 0, 1, 40);
	cable_is(w, 1, 3, 40);
	assert_given_up(w, 35, "by those of routing workers can send 40 Mbit/s, and 40 by these");
	never(w, 200);
}

static void ways_that_bear_nothing_are_given_up(void **state)
{
	struct leading *w = with_ways(state);
	struct report_job *there = cluster_run(&w->c, "j", 3);

	there->chunks_per_second = 0;
	never(w, 9);
	there->chunks_per_second = 1;
	never(w, 1);
	there->chunks_per_second = 0;
	never(w, 10);
	assert_given_up(w, 1, "has summed nothing for 10 s since it got them");
}

/* Another worker is next to it, whose packets come there anyway. */
static void a_cordoned_node_that_packets_need_is_no_reason(void **state)
{
	struct leading *w = *state;

	network_make_ready(w);
	cluster_node(&w->c, 2)->inner = false;
	cluster_want(&w->c, "j", 2, 0, 0);
	cluster_place_like(&w->c, "j", "02", (struct wanted_place){ .root = "n3", .stays = true });
	cluster_run(&w->c, "j", 3);
	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	store_takes(w);
	cluster_node(&w->c, 2)->cordoned = true;
	never(w, 100);
}

/* It saves its model, or there is no run. */
static void a_run_that_pauses_later_keeps_them(void **state)
{
	struct leading *w = with_ways(state);
	struct report_job *there = cluster_run(&w->c, "j", 3);

	there->runs = false;
	there->chunks_per_second = 0;
	never(w, 20);
	there->runs = true;
	there->chunks_per_second = 100;
	never(w, 45);
	there->chunks_per_second = 0;
	never(w, 100);
}

static void a_move_takes_them_along(void **state)
{
	struct leading *w = with_ways(state);

	cluster_node(&w->c, 3)->cordoned = true;
	assert_in_range(seconds_until(w, 10), 0, 5);
	assert_int_equal(w->d->jobs, 1);
	assert_string_not_equal(w->d->place[0].root, "n3");
	assert_int_equal(w->d->write.changes, 2);
	assert_string_equal(w->d->write.change[1].key, "ways/j");
	assert_null(w->d->write.change[1].value);
	store_takes(w);
	assert_null(cluster_job(&w->c, "j")->ways);
}

static void an_operators_move_ends_them(void **state)
{
	struct leading *w = with_ways(state);

	cluster_place_like(&w->c, "j", "0", (struct wanted_place){ .root = "n2", .stays = true });
	assert_given_up(w, 0, "they lead to another root");
}

static void a_job_that_is_deleted_has_none(void **state)
{
	struct leading *w = with_ways(state);

	cluster_put(&w->c, "job/j", NULL);
	assert_int_equal(seconds_until_ways(w, 1), 0);
	assert_null(w->d->ways);
	assert_string_equal(w->d->why.text, "the job is not wanted any more");
	seen_is(w, 1, "job/j", 0);
	assert_string_equal(w->d->write.change[0].key, "ways/j");
	store_takes(w);
	never(w, 10);
}

/* 60 seconds, and twice as long each time that they are lost soon; until they have lasted. */
static void who_lost_them_rests(void **state)
{
	struct leading *w = with_ways(state);
	static const unsigned int rests[] = { 60, 120, 240, 480, 960, 960 };

	for (unsigned int i = 0; i < 7; i++) {
		unsigned int seconds;

		if (i == 6)
			never(w, 60 + 310);
		cluster_node(&w->c, 2)->steers = false;
		assert_given_up(w, 0, "n2 does not steer");
		cluster_node(&w->c, 2)->steers = true;
		seconds = seconds_until_ways(w, 2000);
		assert_in_range(seconds, i < 6 ? rests[i] : 60, (i < 6 ? rests[i] : 60) + 10);
		store_takes(w);
	}
}

/* Better by a tenth, after a minute. */
static void better_ways_replace_them(void **state)
{
	struct leading *w = with_ways(state);
	unsigned int seconds;

	cable_is(w, 0, 2, 20);
	cable_is(w, 0, 1, 100);
	cable_is(w, 1, 3, 19); /* not routing's: that would be to give them up */
	port(cluster_node(&w->c, 1), "p2", 100);
	port(cluster_node(&w->c, 2), "p1", 100);
	for (unsigned int i = 1; i < 3; i++) {
		const char own[] = { 'p', (char)('0' + 3 - i), '\0' };
		const char other[] = { 'n', (char)('0' + 3 - i), '\0' };
		const char at[] = { 'p', (char)('0' + i), '\0' };

		near(cluster_node(&w->c, i), own, other, at);
		snprintf(port_to(cluster_node(&w->c, i), 3 - i)->ip4, REPORT_IP_BYTES, "10.50.%u.9",
			 i);
	}
	seconds = seconds_until_ways(w, 200);
	assert_in_range(seconds, 55, 65);
	assert_non_null(w->d->ways);
	assert_int_equal(w->d->ways->way[0].nodes, 4);
	assert_string_equal(w->d->why.text,
			    "with ways of its own workers can send 40 Mbit/s in place of 20");
	seen_is(w, 3, "ways/j", cluster_job(&w->c, "j")->ways_revision);
	store_takes(w);
	never(w, 200);
}

static void those_of_others_stay(void **state)
{
	struct leading *w = with_ways(state);
	_cleanup_(freep) struct wanted_ways *ways = calloc(1, sizeof(*ways));
	_cleanup_(freep) char *text = NULL;

	assert_non_null(ways);
	*ways = *cluster_job(&w->c, "j")->ways;
	ways->found = false;
	text = wanted_print(&wanted_ways_keys, ways);
	cluster_put(&w->c, "ways/j", text);
	cable_is(w, 0, 1, 100);
	cable_is(w, 1, 3, 100);
	cluster_node(&w->c, 2)->steers = false;
	never(w, 200);
	cluster_node(&w->c, 2)->cordoned = true;
	never(w, 1);
	cluster_node(&w->c, 2)->cordoned = false;
	cluster_place_like(&w->c, "j", "0", (struct wanted_place){ .root = "n2", .stays = true });
	assert_given_up(w, 0, "they lead to another root");
}

/* --- several roots --------------------------------------------------------------------------- */

static struct wanted_place half_at(const char *root)
{
	struct wanted_place p = { .share = 500, .stays = true };

	snprintf(p.root, sizeof(p.root), "%s", root);
	return p;
}

/* At n3 and n1: routing takes the cable from n0 to n1 to both. */
static struct leading *with_two_roots(void **state)
{
	struct leading *w = *state;

	network_make_ready(w);
	route(w, 0, "10.77.0.2/32", 1);
	for (unsigned int i = 1; i <= 2; i++) {
		const char *name = i == 1 ? "j" : "j.2";

		cluster_want(&w->c, name, 1, 2, i);
		cluster_place_like(&w->c, name, "0", half_at(i == 1 ? "n3" : "n1"));
		cluster_run(&w->c, name, i == 1 ? 3 : 1);
	}
	return w;
}

static struct leading *with_ways_to_two(void **state)
{
	struct leading *w = with_two_roots(state);

	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	assert_int_equal(w->d->leds, 2);
	store_takes(w);
	return w;
}

static void both_are_given_up(struct leading *w, const char *why)
{
	assert_int_equal(seconds_until_ways(w, 1), 0);
	if (!strstr(w->d->why.text, why))
		fail_msg("it says \"%s\", and not \"%s\"", w->d->why.text, why);
	assert_int_equal(w->d->leds, 2);
	assert_null(w->d->ways);
	assert_int_equal(w->d->write.changes, 2);
	store_takes(w);
	assert_null(cluster_job(&w->c, "j")->ways);
	assert_null(cluster_job(&w->c, "j.2")->ways);
}

/* Neither ways nor places change. */
static void nothing_changes(struct leading *w, unsigned int seconds)
{
	for (unsigned int i = 0; i < seconds; i++, pass(w, 1000)) {
		look(w);
		if (w->d)
			fail_msg("after %u s: %s", i,
				 w->d->leds ? w->d->why.text : w->d->place[0].why);
	}
}

static void ways_and_shares_of_all_roots_are_written_at_once(void **state)
{
	static const char *const seen[] = { "leader", "job/j.2", "place/j.2", "ways/j.2",
					    "job/j",  "place/j", "ways/j" };
	static const char *const key[] = { "ways/j", "place/j", "ways/j.2", "place/j.2" };
	struct leading *w = with_two_roots(state);
	const struct shared_job *j;

	assert_in_range(seconds_until_ways(w, 20), 3, 9);
	assert_int_equal(w->d->leds, 2);
	assert_string_equal(w->d->why.text, "with ways and shares of its own workers can send "
					    "47.96 Mbit/s in place of 8");
	assert_int_equal(w->d->write.seens, 7);
	for (unsigned int i = 0; i < 7; i++) {
		bool is_there = false;

		for (unsigned int k = 0; k < 7; k++)
			is_there |= !strcmp(w->d->write.seen[k].key, seen[i]);
		assert_true(is_there);
	}
	assert_int_equal(w->d->write.changes, 4);
	for (unsigned int i = 0; i < 4; i++)
		assert_string_equal(w->d->write.change[i].key, key[i]);
	store_takes(w);
	j = cluster_job(&w->c, "j");
	assert_int_equal(j->place.share, 834);
	assert_string_equal(j->place.root, "n3");
	assert_true(j->place.stays);
	assert_string_equal(shared_ways(j)->way[0].node[1], "n2");
	j = cluster_job(&w->c, "j.2");
	assert_int_equal(j->place.share, 166);
	assert_int_equal(shared_ways(j)->way[0].nodes, 2);
	nothing_changes(w, 600); /* by routing, half of each call would be best */
}

static void ways_to_all_roots_are_given_up_together(void **state)
{
	struct leading *w = with_ways_to_two(state);
	unsigned int writes = 0;

	never(w, 2);
	cluster_node(&w->c, 2)->steers = false;
	both_are_given_up(w, "n2 does not steer");
	for (unsigned int i = 0; i < 600; i++, pass(w, 1000)) {
		look(w);
		if (!w->d)
			continue;
		assert_int_equal(w->d->leds, 0); /* shares are routing's again */
		store_takes(w);
		writes++;
	}
	assert_int_equal(writes, 1);
	assert_int_equal(cluster_job(&w->c, "j")->place.share, 500);
}

static void who_loses_one_roots_ways_loses_all(void **state)
{
	struct leading *w = with_ways_to_two(state);
	struct wanted_place place = half_at("n2");

	never(w, 2);
	place.share = 834;
	cluster_place_like(&w->c, "j", "0", place);
	both_are_given_up(w, "they lead to another root");
}

static void somebody_deletes_one_roots_ways(void **state)
{
	struct leading *w = with_ways_to_two(state);

	never(w, 2);
	cluster_put(&w->c, "ways/j.2", NULL);
	assert_int_equal(seconds_until_ways(w, 1), 0);
	assert_string_equal(w->d->why.text, "another root of the job has lost its own");
	assert_int_equal(w->d->leds, 1);
	assert_string_equal(w->d->led[0]->name, "j");
	assert_null(w->d->ways);
}

static void a_root_that_must_move_takes_all_ways_along(void **state)
{
	struct leading *w = with_ways_to_two(state);

	cluster_node(&w->c, 3)->cordoned = true;
	assert_in_range(seconds_until(w, 10), 0, 5);
	assert_int_equal(w->d->jobs, 2);
	assert_int_equal(w->d->write.changes, 4);
	store_takes(w);
	assert_null(cluster_job(&w->c, "j")->ways);
	assert_null(cluster_job(&w->c, "j.2")->ways);
}

/* All are settled, all steer, and nobody else has written any. */
static void ways_are_for_all_roots_or_none(void **state)
{
	struct leading *w = with_two_roots(state);
	struct report_job *there = cluster_run(&w->c, "j.2", 1);
	_cleanup_(freep) char *text = NULL;
	struct wanted_ways *ways;

	there->connected = 0;
	never(w, 30);
	there->connected = 1;
	cluster_node(&w->c, 1)->steers = false;
	never(w, 60);
	cluster_node(&w->c, 1)->steers = true;
	assert_in_range(seconds_until_ways(w, 40), 0, 35);
	ways = &w->d->ways[1];
	ways->found = false;
	text = wanted_print(&wanted_ways_keys, ways);
	lead_decided(&w->lead, -ENOTCONN, 0);
	cluster_put(&w->c, "ways/j.2", text);
	never(w, 100);
}

/* --- a network ------------------------------------------------------------------------------- */

static unsigned int bearing(const struct leading *w, const char *name) /* the node between */
{
	const struct wanted_ways *ways = shared_ways(cluster_job(&w->c, name));

	return ways ? (unsigned int)(ways->way[0].node[1][1] - '0') : 1;
}

/* Each job sends what its narrowest cable has for it; loads are told each five seconds. */
static void network_goes_on(struct leading *w, unsigned int second, const char *const *name,
			    unsigned int jobs, double noise)
{
	static const double room[] = { 0, 30, 40 };
	unsigned int on[3] = { 0 };

	for (unsigned int i = 0; i < jobs; i++)
		on[bearing(w, name[i])]++;
	for (unsigned int i = 0; i < jobs; i++) {
		const unsigned int by = bearing(w, name[i]);

		cluster_run(&w->c, name[i], 3)->chunks_per_second = (uint64_t)(room[by] / on[by] *
									       125000 / 1500);
	}
	for (unsigned int by = 1; second % 5 == 0 && by < 3; by++) {
		const double other = noise * ((second / 5 * 7 + by * 3) % 11) / 10;
		const double all = (on[by] ? room[by] : 0) + other;

		load_is(w, 0, by, all < room[by] ? all : room[by]);
		load_is(w, by, 3, all < room[by] ? all : room[by]);
	}
}

static void ways_do_not_flap(void **state)
{
	static const char *const name[] = { "j", "k", "l" };

	for (unsigned int noise = 0; noise <= 10; noise += 10) {
		struct leading *w;
		unsigned int writes = 0;

		leading_close(state);
		leading_open(state);
		w = *state;
		network_make_ready(w);
		cable_is(w, 0, 1, 30);
		cable_is(w, 1, 3, 30);
		for (unsigned int i = 0; i < 3; i++)
			job_add(w, name[i]);
		for (unsigned int second = 0; second < 600; second++, pass(w, 1000)) {
			network_goes_on(w, second, name, 3, noise);
			assert_int_equal(look(w), 0);
			if (!w->d || !w->d->leds)
				continue;
			store_takes(w);
			writes++;
		}
		print_message("%u writes in ten minutes, with %u Mbit/s of others\n", writes,
			      noise);
		assert_in_range(writes, 1, noise ? 8 : 3);
	}
}

/* --- in words -------------------------------------------------------------------------------- */

static void says_where(struct leading *w, const char *leader, const char *words)
{
	struct lead_view v = view(w);
	struct why why = { "" };

	v.leader = leader;
	assert_int_equal(lead_outlook(&w->lead, &v, cluster_job(&w->c, "j"), &why), 0);
	if (!strstr(why.text, words))
		fail_msg("it says \"%s\", and not \"%s\"", why.text, words);
}

static void says(struct leading *w, const char *words) { says_where(w, NULL, words); }

static void people_are_told(void **state)
{
	struct leading *w = with_a_job(state);

	says(w, "; with ways of its own workers can send 40 Mbit/s in place of 8");
	cable_is(w, 0, 1, 100);
	cable_is(w, 1, 3, 100);
	says(w, "; with ways of its own: nothing better");
	cluster_node(&w->c, 0)->steers = false;
	says(w, "; no ways of its own: n0 is next to a worker, and does not steer");
	cluster_node(&w->c, 0)->steers = true;
	cable_is(w, 0, 1, 8);
	assert_in_range(seconds_until_ways(w, 60), 1, 35);
	store_takes(w);
	assert_int_equal(look(w), 0);
	says(w, "; its ways stay as they are for another 6");
	says_where(w, "n2", "; what ways it would get n2 can tell, which leads");
	cluster_put(&w->c, WANTED_WAYS "j", NULL);
	says(w, "; it gets no ways of its own for another 6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(ways_that_bear_more_are_written),
		FACT(nothing_is_written_by_what_is_so_no_more),
		FACT(who_does_not_want_them_has_none),
		FACT(a_run_that_is_not_settled_has_none),
		FACT(a_tenth_more_is_worth_it_and_less_is_not),
		FACT(jobs_take_turns),
		FACT(nothing_is_decided_until_they_are_heard_of),
		FACT(ways_that_do_not_hold_are_given_up),
		FACT(a_node_that_is_gone_is_on_no_way),
		FACT(a_cordoned_node_is_left),
		FACT(a_cordoned_node_that_packets_need_is_no_reason),
		FACT(ways_stay_until_those_of_routing_are_as_good),
		FACT(ways_that_bear_nothing_are_given_up),
		FACT(a_run_that_pauses_later_keeps_them),
		FACT(a_move_takes_them_along),
		FACT(an_operators_move_ends_them),
		FACT(a_job_that_is_deleted_has_none),
		FACT(who_lost_them_rests),
		FACT(better_ways_replace_them),
		FACT(those_of_others_stay),
		FACT(ways_and_shares_of_all_roots_are_written_at_once),
		FACT(ways_to_all_roots_are_given_up_together),
		FACT(who_loses_one_roots_ways_loses_all),
		FACT(somebody_deletes_one_roots_ways),
		FACT(a_root_that_must_move_takes_all_ways_along),
		FACT(ways_are_for_all_roots_or_none),
		FACT(ways_do_not_flap),
		FACT(people_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
