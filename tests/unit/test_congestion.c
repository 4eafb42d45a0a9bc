// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a window concludes of the network, and what networks make of it: real windows on links with
 * queues (congestion_world.h).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/congestion.h"
#include "tests/unit/congestion_world.h"

enum {
	ONE = CONGESTION_ONE,
	WINDOW = 128,
	WORKERS = 4,
	SENT_MAX = 2 * WINDOW,
	ENDLESS = 1 << 30, /* chunks */
	RATE = 100000000,
	PACKETS_PER_MS = RATE / 1000 / (WORLD_PACKET_BYTES * 8), /* rounded down */
};

/* --- one window, whose chunks all come back after the same time */

struct line {
	struct congestion c;
	uint64_t now_ns;
	uint64_t sent_ns[SENT_MAX]; /* of those that fly, the oldest first */
	uint32_t flying;
};

static struct line line_of(bool on)
{
	struct line l = { .now_ns = MS };

	congestion_init(&l.c, on, WINDOW, WORKERS);
	return l;
}

/* All that may leave. How many did. */
static uint32_t leave(struct line *l)
{
	uint32_t count = 0;

	for (; l->flying < WINDOW && congestion_admits(&l->c, l->flying, l->now_ns); count++) {
		congestion_sent(&l->c, l->flying, l->now_ns);
		l->sent_ns[l->flying++] = l->now_ns;
	}
	return count;
}

static void answer(struct line *l, uint64_t now_ns, bool marked)
{
	const struct congestion_result r = { l->sent_ns[0], true, marked };

	l->now_ns = now_ns;
	congestion_result(&l->c, &r, now_ns);
	memmove(l->sent_ns, l->sent_ns + 1, --l->flying * sizeof(*l->sent_ns));
}

/* All that flies comes back one after the other, the first after `rtt_ns`, and others leave. */
static void round_trip(struct line *l, uint64_t rtt_ns, uint64_t step_ns, bool marked)
{
	uint64_t now_ns = l->sent_ns[0] + rtt_ns;

	for (uint32_t n = l->flying; n; n--, now_ns += step_ns) {
		answer(l, now_ns > l->now_ns ? now_ns : l->now_ns, marked);
		leave(l);
	}
}

static void a_window_begins_small_and_doubles_in_a_round_trip(void **state)
{
	struct line l = line_of(true);

	assert_int_equal(leave(&l), CONGESTION_FIRST);
	round_trip(&l, 100 * US, US, false);
	assert_int_equal(congestion_window(&l.c), 2 * CONGESTION_FIRST);
	round_trip(&l, 100 * US, US, false);
	assert_int_equal(congestion_window(&l.c), 4 * CONGESTION_FIRST);
	for (int i = 0; i < 2; i++)
		round_trip(&l, 100 * US, US, false);
	assert_int_equal(congestion_window(&l.c), WINDOW);
	assert_int_equal(l.c.cuts, 0);
}

static void a_window_that_nothing_waits_for_stays(void **state)
{
	struct line l = line_of(true);

	for (int i = 0; i < 100; i++) {
		l.sent_ns[l.flying++] = l.now_ns;
		congestion_sent(&l.c, 0, l.now_ns);
		answer(&l, l.now_ns + 100 * US, false);
	}
	assert_int_equal(congestion_window(&l.c), CONGESTION_FIRST);
}

static void off_all_leaves_at_once(void **state)
{
	struct line l = line_of(false);

	assert_int_equal(leave(&l), WINDOW);
	congestion_lost(&l.c, l.now_ns, l.now_ns);
	round_trip(&l, MS, US, true);
	assert_int_equal(congestion_window(&l.c), WINDOW);
	assert_int_equal(l.c.cuts, 0);
	assert_int_equal(congestion_wakeup(&l.c, 0), UINT64_MAX);
}

/* 40 chunks in flight, and a queue of 2 ms. */
static struct line line_with_queue(void)
{
	struct line l = line_of(true);

	leave(&l);
	for (int i = 0; i < 2; i++)
		round_trip(&l, 100 * US, US, false);
	for (int i = 0; i < 3; i++)
		round_trip(&l, 2 * MS, 50 * US, false);
	return l;
}

static void with_a_queue_it_grows_as_cubic_does(void **state)
{
	struct line l = line_with_queue();
	uint64_t before = l.c.window;

	for (int i = 0; i < 10; i++)
		round_trip(&l, 2 * MS, 50 * US, false);
	assert_in_range(l.c.window - before, 4 * ONE, 6 * ONE);
}

static void a_mark_cuts_once_in_a_round_trip(void **state)
{
	struct line l = line_with_queue();
	uint64_t before;

	l.c.marks = 0; /* for long none has come */
	before = l.c.window;
	answer(&l, l.now_ns + US, true);
	assert_in_range(l.c.window, before * 7 / 10 - ONE, before * 7 / 10);
	before = l.c.window;
	answer(&l, l.now_ns + US, true);
	assert_int_equal(l.c.window, before);
	assert_int_equal(l.c.cuts, 1);
}

static void where_all_is_marked_half_goes(void **state)
{
	struct line l = line_with_queue();
	uint64_t before;

	l.c.marks = ONE;
	before = l.c.window;
	answer(&l, l.now_ns + US, true);
	assert_in_range(l.c.window, before / 2 - ONE, before / 2);
	for (int i = 0; i < 10; i++)
		round_trip(&l, 2 * MS, 50 * US, true);
	assert_int_equal(congestion_window(&l.c), CONGESTION_LEAST);
}

static void a_loss_without_a_queue_is_chance(void **state)
{
	struct line l = line_of(true);

	leave(&l);
	for (int i = 0; i < 3; i++) {
		round_trip(&l, 100 * US, US, false);
		congestion_lost(&l.c, l.now_ns, l.now_ns);
	}
	assert_int_equal(l.c.cuts, 0);
	assert_int_equal(congestion_window(&l.c), 8 * CONGESTION_FIRST);
}

static void a_loss_behind_a_queue_cuts_once(void **state)
{
	struct line l = line_with_queue();
	uint64_t before = l.c.window;

	congestion_lost(&l.c, l.now_ns - US, l.now_ns);
	congestion_lost(&l.c, l.now_ns - US, l.now_ns);
	assert_int_equal(l.c.cuts, 1);
	assert_int_equal(l.c.window, before * 7 / 10);
}

/* About 50 chunks in a millisecond, and a round trip of as long without the queue. */
static void losses_leave_the_window_what_the_link_needs(void **state)
{
	struct line l = line_of(true);

	leave(&l);
	for (int i = 0; i < 4; i++)
		round_trip(&l, MS, 10 * US, false);
	for (int i = 0; i < 30; i++) {
		round_trip(&l, 1300 * US, 10 * US, false);
		congestion_lost(&l.c, l.now_ns, l.now_ns);
	}
	assert_true(l.c.cuts);
	assert_in_range(congestion_window(&l.c), 40, 80);
}

/* Whose window cannot grow loses nothing in a full queue; the others do, and then it is shorter. */
static void a_window_at_its_end_gives_way_with_others(void **state)
{
	struct line l = line_of(true);
	uint64_t cuts;

	leave(&l);
	for (int i = 0; i < 5; i++)
		round_trip(&l, 100 * US, US, false);
	for (int i = 0; i < 100; i++)
		round_trip(&l, 20 * MS, 100 * US, false);
	assert_int_equal(congestion_window(&l.c), WINDOW);
	cuts = l.c.cuts;
	for (int i = 0; i < 3; i++)
		round_trip(&l, 18 * MS, 100 * US, false);
	assert_int_equal(l.c.cuts - cuts, 1);
	assert_in_range(congestion_window(&l.c), WINDOW * 7 / 10, WINDOW * 7 / 10 + 2);
}

/* As a policer's: what goes beyond its rate. */
static void much_loss_is_no_chance(void **state)
{
	struct line l = line_of(true);

	leave(&l);
	for (int i = 0; i < 4; i++)
		round_trip(&l, 100 * US, US, false);
	for (int i = 0; i < 40; i++) {
		congestion_lost(&l.c, l.now_ns, l.now_ns);
		for (int results = 0; results < 4; results++)
			answer(&l, l.now_ns + US, false);
		leave(&l);
	}
	assert_true(l.c.cuts);
}

static void a_late_rank_is_no_queue(void **state)
{
	struct line l = line_of(true);

	leave(&l);
	for (int i = 0; i < 4; i++)
		round_trip(&l, 100 * US, US, false);
	for (int i = 0; i < 10; i++) {
		round_trip(&l, 50 * MS, US, false);
		congestion_lost(&l.c, l.now_ns, l.now_ns);
		round_trip(&l, 100 * US, US, false);
	}
	assert_int_equal(l.c.cuts, 0);
	assert_int_equal(congestion_window(&l.c), WINDOW);
}

static void after_a_pause_a_window_leaves_in_bursts(void **state)
{
	struct line l = line_of(true);
	uint32_t burst = CONGESTION_QUEUE / WORKERS, count;
	uint64_t began_ns;

	leave(&l);
	for (int i = 0; i < 4; i++)
		round_trip(&l, 100 * US, US, false);
	while (l.flying)
		answer(&l, l.now_ns + US, false);
	congestion_rest(&l.c);
	began_ns = l.now_ns;
	assert_int_equal(leave(&l), burst);
	while (l.flying < WINDOW) {
		uint64_t wakeup_ns = congestion_wakeup(&l.c, l.flying);

		assert_in_range(wakeup_ns, l.now_ns + 1, l.now_ns + 100 * US);
		l.now_ns = wakeup_ns;
		count = leave(&l);
		assert_in_range(count, 1, burst);
	}
	/* The rest of a window at 1.25 of one in a round trip. */
	assert_in_range(l.now_ns - began_ns, 40 * US, 80 * US);
}

/* --- in networks */

static struct world_options star(uint64_t rate, uint32_t queue)
{
	const struct pipe host = { .rate = rate, .delay_ns = 50 * US, .queue = queue };
	const struct pipe port = { .queue = UINT32_MAX };

	return (struct world_options){ .seed = 1,
				       .follows = true,
				       .ranks = 2,
				       .host = { host, host },
				       .port = { port, port } };
}

/* Chunks that one job finishes in a second, in calls of 1,000. */
static uint64_t rate_of(const struct world_options *o, uint64_t *ret_slowest_ns)
{
	struct world *w = world_new(o);
	struct world_job *j = world_job(w, WINDOW, 1000, MS);
	uint64_t finished;

	world_run(w, 1001 * MS);
	finished = j->rank[0].finished;
	*ret_slowest_ns = j->slowest_ns;
	world_free(w);
	return finished;
}

static void random_loss_costs_little(void **state)
{
	struct world_options o = star(RATE, 170);
	uint64_t slowest_ns, best = rate_of(&o, &slowest_ns), usual_ns = slowest_ns;

	assert_true(best >= 1000 * PACKETS_PER_MS * 98 / 100);
	o.host[0].loss = o.host[1].loss = 100;
	assert_true(rate_of(&o, &slowest_ns) >= best * 90 / 100);
	assert_true(slowest_ns < 2 * usual_ns);
	o.host[0].loss = o.host[1].loss = 1000;
	assert_true(rate_of(&o, &slowest_ns) >= best * 75 / 100);
	assert_true(slowest_ns < 2 * usual_ns);
}

/* Two jobs that begin at different times; the part of the one in what both get, in percent. */
static uint64_t part_of_first(struct world_options *o)
{
	struct world *w = world_new(o);
	struct world_job *a = world_job(w, WINDOW, ENDLESS, MS);
	struct world_job *b = world_job(w, WINDOW, ENDLESS, 300 * MS);
	uint64_t first, second;

	world_run(w, 1000 * MS);
	first = a->rank[0].finished;
	second = b->rank[0].finished;
	world_run(w, 5000 * MS);
	first = a->rank[0].finished - first;
	second = b->rank[0].finished - second;
	world_free(w);
	assert_true(first + second >= 4000 * PACKETS_PER_MS * 98 / 100);
	return first * 100 / (first + second);
}

/* Jain's index of two is 0.9 where one has a third, and the other two thirds. */
static void two_jobs_share_a_link(void **state)
{
	struct world_options o = star(RATE, 30);

	assert_in_range(part_of_first(&o), 34, 66);
	o = star(RATE, 120);
	assert_in_range(part_of_first(&o), 34, 66);
	o = star(RATE, 210);
	assert_in_range(part_of_first(&o), 34, 66);
	o = star(RATE, 120);
	o.host[0].marks_above = o.host[1].marks_above = 30;
	assert_in_range(part_of_first(&o), 34, 66);
}

/* The part of the job in what it and TCP get, in percent. */
static uint64_t part_beside_cubic(struct world_options *o)
{
	struct world *w = world_new(o);
	struct world_job *j = world_job(w, WINDOW, ENDLESS, MS);
	uint64_t own, other;

	w->options.flow = true;
	world_run(w, 1000 * MS);
	own = j->rank[0].finished;
	other = w->flow.delivered;
	world_run(w, 8000 * MS);
	own = j->rank[0].finished - own;
	other = w->flow.delivered - other;
	world_free(w);
	assert_true(own + other >= 7000 * PACKETS_PER_MS * 98 / 100);
	return own * 100 / (own + other);
}

/* Also where the window is at its end, and does not grow: with a queue of 210. */
static void beside_cubic_each_has_its_part(void **state)
{
	static const uint32_t queues[] = { 30, 120, 210 };
	struct world_options o;

	for (size_t i = 0; i < sizeof(queues) / sizeof(*queues); i++) {
		o = star(RATE, queues[i]);
		assert_in_range(part_beside_cubic(&o), 40, 60);
	}
	o = star(RATE, 210);
	o.host[0].marks_above = 70;
	assert_in_range(part_beside_cubic(&o), 40, 60);
}

/* Packets that the ports before eight ranks have lost. */
static uint64_t dropped_at_ports(bool follows, uint64_t *ret_finished)
{
	struct world_options o = star(1000000000, 1000);
	const struct pipe port = { .rate = 1000000000, .delay_ns = 10 * US, .queue = 256 };
	struct world *w;
	struct world_job *j;
	uint64_t dropped;

	o.follows = follows;
	o.ranks = 8;
	o.port[0] = o.port[1] = port;
	w = world_new(&o);
	j = world_job(w, WINDOW, 1000, MS);
	world_run(w, 501 * MS);
	dropped = w->port[0].dropped + w->port[1].dropped;
	*ret_finished = j->rank[0].finished;
	world_free(w);
	return dropped;
}

static void many_ranks_do_not_fill_one_port(void **state)
{
	const uint64_t best = 500ull * 10 * PACKETS_PER_MS / 8;
	uint64_t finished, dropped = dropped_at_ports(true, &finished), other;

	assert_true(finished >= best * 90 / 100);
	assert_true(dropped <= finished * 8 / 50);
	assert_true(dropped_at_ports(false, &other) > 10 * dropped);
}

static void a_rank_that_is_late_each_time_leaves_the_window(void **state)
{
	struct world_options o = star(1000000000, 1000);
	struct world *w = world_new(&o);
	struct world_job *j = world_job(w, WINDOW, 1000, MS);

	j->rank[1].late_ns = 30 * MS;
	world_run(w, 1000 * MS);
	for (int i = 0; i < o.ranks; i++) {
		assert_int_equal(j->rank[i].window->congestion.cuts, 0);
		assert_int_equal(congestion_window(&j->rank[i].window->congestion), WINDOW);
	}
	assert_true(j->calls > 20);
	world_free(w);
}

/*
 * With so much loss ranks have filled their small windows with different chunks: each must give
 * room to the oldest that others wait for.
 */
static void ranks_that_lack_different_chunks_go_on(void **state)
{
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world_options o = star(RATE, 10);
		struct world *w;
		struct world_job *j;
		uint64_t finished;

		o.seed = seed;
		o.ranks = 3;
		o.host[0].loss = o.host[1].loss = 10000;
		w = world_new(&o);
		j = world_job(w, 16, 1000, MS);
		for (int s = 1; s <= 4; s++) {
			finished = j->rank[0].finished;
			world_run(w, s * 500 * MS);
			assert_true(j->rank[0].finished > finished);
		}
		world_free(w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_window_begins_small_and_doubles_in_a_round_trip),
		cmocka_unit_test(a_window_that_nothing_waits_for_stays),
		cmocka_unit_test(off_all_leaves_at_once),
		cmocka_unit_test(with_a_queue_it_grows_as_cubic_does),
		cmocka_unit_test(a_mark_cuts_once_in_a_round_trip),
		cmocka_unit_test(where_all_is_marked_half_goes),
		cmocka_unit_test(a_loss_without_a_queue_is_chance),
		cmocka_unit_test(a_loss_behind_a_queue_cuts_once),
		cmocka_unit_test(losses_leave_the_window_what_the_link_needs),
		cmocka_unit_test(a_window_at_its_end_gives_way_with_others),
		cmocka_unit_test(much_loss_is_no_chance),
		cmocka_unit_test(a_late_rank_is_no_queue),
		cmocka_unit_test(after_a_pause_a_window_leaves_in_bursts),
		cmocka_unit_test(random_loss_costs_little),
		cmocka_unit_test(two_jobs_share_a_link),
		cmocka_unit_test(beside_cubic_each_has_its_part),
		cmocka_unit_test(many_ranks_do_not_fill_one_port),
		cmocka_unit_test(a_rank_that_is_late_each_time_leaves_the_window),
		cmocka_unit_test(ranks_that_lack_different_chunks_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
