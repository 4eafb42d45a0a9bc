// SPDX-License-Identifier: GPL-2.0-only
/* Where roots are placed by live reports: agent/cluster/placer.h. And the texts of what is wanted.
 */
#include <errno.h>

#include "agent/cluster/placer.h"
#include "common/owned.h"
#include "square_world.h"

enum {
	JOBS = 6,
};

struct world {
	struct picture picture;
	struct wanted_job job[JOBS];
	struct wanted_worker worker[JOBS][4];
	struct placer_job is[JOBS];
	unsigned int jobs;
};

static struct report *report(const struct world *w, unsigned int node)
{
	return w->picture.report[node];
}

static struct world square(void)
{
	struct world w = { .jobs = 0 };

	square_make(&w.picture);
	return w;
}

/* With a worker at each of these nodes, as "013". */
static void job_add(struct world *w, const char *nodes, const char *root)
{
	const unsigned int i = w->jobs++;
	struct wanted_job *j = &w->job[i];
	struct placer_job *is = &w->is[i];

	*j = (struct wanted_job){ .birth = 7 + i, .window = 128, .payload_bytes = 1408 };
	snprintf(j->name, sizeof(j->name), "j%u", i);
	*is = (struct placer_job){ .job = j, .worker = w->worker[i], .root = root };
	for (; *nodes; nodes++) {
		struct wanted_worker *worker = &w->worker[i][is->workers++];
		char text[32];

		snprintf(text, sizeof(text), "10.0.%c.1:40000", *nodes);
		assert_int_equal(address_parse(text, 0, &worker->address), 0);
		snprintf(worker->node, sizeof(worker->node), "n%c", *nodes);
	}
	j->workers = is->workers;
}

static const char *root_of(struct world *w, unsigned int which)
{
	static struct wanted_place place;
	struct why why = { "" };
	int r = placer_place(&w->picture, w->is, w->jobs, which, &place, &why);

	if (r < 0)
		fail_msg("%s: %s", strerror(-r), why.text);
	assert_int_equal(place.birth, w->job[which].birth);
	assert_int_equal(place.workers, w->job[which].workers);
	assert_true(place.weighs > 0);
	assert_string_equal(place.weighed[0].node, place.root);
	return place.root;
}

/* Two at n1, n1, and one at n3: the middle is where most of them are. */
static void a_root_is_near_its_workers(void **state)
{
	struct world w = square();

	job_add(&w, "113", NULL);
	job_add(&w, "222", NULL);
	assert_string_equal(root_of(&w, 0), "n1");
	assert_string_equal(root_of(&w, 1), "n2");
	picture_close(&w.picture);
}

/* n0's and n3's workers meet at n1 or n2, which are equally near: whichever has less traffic. */
static void a_root_keeps_away_from_traffic(void **state)
{
	struct world w = square();

	job_add(&w, "03", NULL);
	for (unsigned int busy = 1; busy <= 2; busy++) {
		struct report_port *p = port_to(report(&w, busy), 3);

		p->transmit_forecast = 11000000;
		p->receive_forecast = 11000000;
		port_to(report(&w, busy), 0)->receive_forecast = 11000000;
		port_to(report(&w, busy), 0)->transmit_forecast = 11000000;
		assert_string_not_equal(root_of(&w, 0), busy == 1 ? "n1" : "n2");
		p->transmit_forecast = p->receive_forecast = 0;
		port_to(report(&w, busy), 0)->receive_forecast = 0;
		port_to(report(&w, busy), 0)->transmit_forecast = 0;
	}
	picture_close(&w.picture);
}

static void who_is_cordoned_or_has_refused_is_no_root(void **state)
{
	static const char *const refused[] = { "n1" };
	struct world w = square();
	struct wanted_place place;
	struct why why;

	job_add(&w, "11", NULL);
	assert_string_equal(root_of(&w, 0), "n1");
	report(&w, 1)->cordoned = true;
	assert_string_not_equal(root_of(&w, 0), "n1");
	report(&w, 1)->cordoned = false;
	w.is[0].refused = refused;
	w.is[0].refusals = 1;
	assert_string_not_equal(root_of(&w, 0), "n1");
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->cordoned = true;
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &place, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "cordoned"));
	picture_close(&w.picture);
}

/* 256 slots for a window of 128. Where nobody has as many, software sums, as near as before. */
static void who_has_no_slots_is_no_root_if_others_have(void **state)
{
	struct world w = square();

	job_add(&w, "11", NULL);
	job_add(&w, "11", "n1");
	report(&w, 1)->slots = 256 + 255;
	assert_string_not_equal(root_of(&w, 0), "n1");
	report(&w, 1)->slots = 256 + 256;
	assert_string_equal(root_of(&w, 0), "n1");
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->slots = 255;
	assert_string_equal(root_of(&w, 0), "n1");
	picture_close(&w.picture);
}

static void tenant_tell(struct world *w, unsigned int node, bool held)
{
	struct report *r = report(w, node);

	struct report_tenant *t = r->tenants ? r->tenant : ADD(r->tenant, r->tenants);

	*t = (struct report_tenant){ .name = "default", .held = held };
}

/* One that tells nothing of the tenant does not hold it. Where nobody does, all are as good. */
static void who_does_not_hold_a_tenants_slots_is_no_root_if_others_do(void **state)
{
	struct world w = square();
	struct wanted_place place;
	struct why why;

	job_add(&w, "11", NULL);
	snprintf(w.job[0].tenant, sizeof(w.job[0].tenant), "default");
	tenant_tell(&w, 1, false);
	assert_string_equal(root_of(&w, 0), "n1");
	tenant_tell(&w, 2, true);
	assert_string_equal(root_of(&w, 0), "n2");
	report(&w, 2)->cordoned = true;
	assert_string_equal(root_of(&w, 0), "n1");
	report(&w, 2)->cordoned = false;
	tenant_tell(&w, 1, true);
	assert_string_equal(root_of(&w, 0), "n1");
	/* Nor does a run move to one, whatever it costs. */
	w.is[0].root = "n2";
	w.is[0].chunks_per_second = 1000;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, -1e9, &place, &why), 0);
	assert_string_equal(place.root, "n1");
	tenant_tell(&w, 1, false);
	assert_int_not_equal(placer_better(&w.picture, w.is, w.jobs, 0, -1e9, &place, &why), 0);
	picture_close(&w.picture);
}

/* Its node tells of 600 slots that are others'; of a job that it has not heard of, or that is in
 * software there and wants slots, too. An older agent tells nothing, and is as good as before. */
static void what_others_have_reserved_is_no_room(void **state)
{
	struct world w = square();
	struct report_job *there;

	job_add(&w, "11", NULL);
	snprintf(w.job[0].tenant, sizeof(w.job[0].tenant), "default");
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->slots_kept = 600;
	assert_string_equal(root_of(&w, 0), "n1");
	report(&w, 1)->slots_kept = 600 + 256; /* another job was promised these */
	assert_string_not_equal(root_of(&w, 0), "n1");
	report(&w, 1)->slots_kept = 600;
	job_add(&w, "11", "n1");
	w.job[1].id = 7;
	snprintf(w.job[1].tenant, sizeof(w.job[1].tenant), "default");
	assert_string_not_equal(root_of(&w, 0), "n1"); /* the node tells nothing of it yet */
	there = ADD(report(&w, 1)->job, report(&w, 1)->jobs);
	*there = (struct report_job){ .name = "j1", .id = 7, .runs = true };
	assert_string_equal(root_of(&w, 0), "n1"); /* it is among the 600 */
	there->in_software = true;
	assert_string_not_equal(root_of(&w, 0), "n1");
	snprintf(w.job[1].tenant, sizeof(w.job[1].tenant), "red");
	assert_string_equal(root_of(&w, 0), "n1");
	snprintf(w.job[0].tenant, sizeof(w.job[0].tenant), "red");
	for (unsigned int i = 0; i < NODES; i++)
		tenant_tell(&w, i, true);
	for (unsigned int i = 0; i < NODES; i++)
		snprintf(report(&w, i)->tenant->name, NAME_BYTES, "red");
	report(&w, 1)->tenant->slots_kept = 1000;
	w.is[1].is_gone = true;
	assert_string_not_equal(root_of(&w, 0), "n1");
	report(&w, 1)->tenant->slots_kept = 0;
	assert_string_equal(root_of(&w, 0), "n1");
	picture_close(&w.picture);
}

/* It lets packets in from anywhere, and says nothing of that. */
static void an_older_agent_does_not_hold_a_tenant_that_comes_in_at_places(void **state)
{
	struct world w = square();

	job_add(&w, "11", NULL);
	snprintf(w.job[0].tenant, sizeof(w.job[0].tenant), "default");
	tenant_tell(&w, 1, true);
	tenant_tell(&w, 2, true);
	report(&w, 2)->tenant->gated = true;
	assert_string_equal(root_of(&w, 0), "n1");
	w.is[0].is_gated = true;
	assert_string_equal(root_of(&w, 0), "n2");
	report(&w, 1)->tenant->own = true; /* whose own says where it comes in */
	assert_string_equal(root_of(&w, 0), "n1");
	picture_close(&w.picture);
}

/* What a job itself sends is no load that others should keep away from, twice. */
static void the_load_of_jobs_is_not_that_of_others(void **state)
{
	struct world w = square();
	struct wanted_place mine, others, large;
	double all, own;
	struct why why;

	job_add(&w, "03", NULL);
	job_add(&w, "03", "n1");
	port_to(report(&w, 0), 1)->transmit_forecast = 6000000;
	port_to(report(&w, 0), 1)->receive_forecast = 6000000;
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &others, &why), 0);
	w.is[1].chunks_per_second = 4000; /* of 1,500 bytes: all of that load */
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &mine, &why), 0);
	all = strtod(others.weighed[0].total, NULL);
	own = strtod(mine.weighed[0].total, NULL);
	assert_true(own < all);
	w.is[1].chunks_per_second = 1722; /* of 3,484: the same bytes */
	w.is[1].payload_bytes = 3392;
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &large, &why), 0);
	assert_true(strtod(large.weighed[0].total, NULL) < own + (all - own) / 10);
	picture_close(&w.picture);
}

/* One that was deleted a moment ago is in the loads still, and takes nothing any more. */
static void the_load_of_a_job_that_has_gone_is_nobodys(void **state)
{
	struct world w = square();
	struct wanted_place now, alone;
	struct why why;

	job_add(&w, "03", NULL);
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &alone, &why), 0);
	job_add(&w, "03", "n1");
	w.is[1].chunks_per_second = 4000;
	w.is[1].is_gone = true;
	port_to(report(&w, 0), 1)->transmit_forecast = 6000000;
	port_to(report(&w, 0), 1)->receive_forecast = 6000000;
	report(&w, 1)->slots = 2u * w.job[0].window;
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &now, &why), 0);
	assert_string_equal(now.root, alone.root);
	assert_string_equal(now.weighed[0].total, alone.weighed[0].total);
	assert_int_equal(now.weighs, alone.weighs);
	picture_close(&w.picture);
}

/* Where it is, it stays, as long as no other node is better by the margin. */
static void a_run_moves_away_from_traffic_and_stays_otherwise(void **state)
{
	struct world w = square();
	struct wanted_place place;
	struct why why;

	job_add(&w, "03", "n1");
	w.is[0].chunks_per_second = 1000;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), -EALREADY);
	port_to(report(&w, 1), 3)->transmit_forecast = 11000000;
	port_to(report(&w, 1), 3)->receive_forecast = 11000000;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), 0);
	assert_string_equal(place.root, "n2");
	assert_string_equal(place.weighed[0].node, "n2");
	assert_string_equal(place.weighed[place.weighs - 1].node, "n1");
	assert_non_null(strstr(place.why, "it moves: cost "));
	report(&w, 2)->cordoned = true;
	if (placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why) == 0)
		assert_string_not_equal(place.root, "n2");
	picture_close(&w.picture);
}

/* Nowhere else is room for it. One that is in software already may go wherever that costs less, and
 * whoever must leave a cordoned node goes in any case. */
static void a_run_does_not_leave_its_slots_for_software(void **state)
{
	struct world w = square();
	struct wanted_place place;
	struct report_job *there;
	struct why why;

	job_add(&w, "03", "n1");
	w.job[0].id = 7;
	w.is[0].chunks_per_second = 1000;
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->slots = i == 1 ? 1024 : 64;
	port_to(report(&w, 1), 3)->transmit_forecast = 11000000;
	port_to(report(&w, 1), 3)->receive_forecast = 11000000;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), -EALREADY);
	there = ADD(report(&w, 1)->job, report(&w, 1)->jobs);
	*there = (struct report_job){ .name = "j0", .id = 7, .runs = true, .workers = 2 };
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), -EALREADY);
	report(&w, 2)->slots = 256;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), 0);
	assert_string_equal(place.root, "n2");
	report(&w, 2)->slots = 64;
	there->in_software = true;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, 0.1, &place, &why), 0);
	assert_string_equal(place.root, "n2");
	there->in_software = false;
	report(&w, 1)->cordoned = true;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, -1e9, &place, &why), 0);
	assert_string_equal(place.root, "n2");
	picture_close(&w.picture);
}

/* Whatever it costs: -1e9 is what the leader says then. */
static void a_run_leaves_a_cordoned_node(void **state)
{
	struct world w = square();
	struct wanted_place place;
	struct why why;

	job_add(&w, "113", "n1");
	report(&w, 1)->cordoned = true;
	assert_int_equal(placer_better(&w.picture, w.is, w.jobs, 0, -1e9, &place, &why), 0);
	assert_string_not_equal(place.root, "n1");
	picture_close(&w.picture);
}

/* Nobody's neighbour, as behind a router that runs no agent: as near as the agent it came to. */
static void a_worker_that_nobody_sees_is_where_it_joined(void **state)
{
	struct world w = square();

	job_add(&w, "33", NULL);
	w.worker[0][0].address = address("10.99.0.1");
	w.worker[0][1].address = address("10.99.0.2");
	assert_string_equal(root_of(&w, 0), "n3");
	picture_close(&w.picture);
}

static void a_worker_that_is_nowhere_is_said(void **state)
{
	struct world w = square();
	struct wanted_place place;
	struct why why;

	job_add(&w, "3", NULL);
	w.worker[0][0].address = address("10.99.0.1");
	snprintf(w.worker[0][0].node, NAME_BYTES, "n9");
	assert_int_equal(placer_place(&w.picture, w.is, w.jobs, 0, &place, &why), -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "not in the picture"));
	picture_close(&w.picture);
}

/* n0's and n3's workers meet at n1 and at n2, of which n2 has a quarter of what n1 has left; their
 * own links have room for both. */
static void several_roots_are_apart_and_share_by_what_they_carry(void **state)
{
	static const char *const refused[] = { "n1" };
	static const unsigned int which[] = { 1, 2 };
	struct world w = square();
	struct wanted_place place[2];
	struct why why;

	for (unsigned int end = 0; end < NODES; end += 3) {
		struct report_port *wide = port_to(report(&w, 1), end);
		struct report_port *thin = port_to(report(&w, 2), end);

		wide->transmit_forecast = wide->receive_forecast = 7500000;
		thin->transmit_forecast = thin->receive_forecast = 11250000;
	}
	job_add(&w, "1", "n1");
	job_add(&w, "03", NULL);
	job_add(&w, "03", NULL);
	for (unsigned int i = 1; i < 3; i++) {
		w.job[i].roots = 2;
		w.job[i].which = (uint16_t)i;
	}
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 2, place, &why), 0);
	assert_string_not_equal(place[0].root, place[1].root);
	assert_int_equal(place[0].share + place[1].share, 1000);
	assert_int_equal(place[0].birth, w.job[1].birth);
	assert_int_equal(place[1].birth, w.job[2].birth);
	assert_int_equal(place[1].workers, 2);
	assert_true(place[1].weighs > 0);
	assert_non_null(strstr(place[0].why, "root 1 of 2: "));

	assert_string_equal(place[0].root, "n1");
	assert_string_equal(place[1].root, "n2");
	assert_int_equal(place[0].share, 800);

	/* One that is given stays. */
	w.is[2].root = "n1";
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 2, place, &why), 0);
	assert_string_equal(place[1].root, "n1");
	assert_string_not_equal(place[0].root, "n1");

	/* What one of them has refused, none gets. */
	w.is[2].root = NULL;
	w.is[2].refused = refused;
	w.is[2].refusals = 1;
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 2, place, &why), 0);
	assert_string_not_equal(place[0].root, "n1");
	assert_string_not_equal(place[1].root, "n1");
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->cordoned = true;
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 2, place, &why),
			 -EHOSTUNREACH);
	picture_close(&w.picture);
}

static void loads_set(struct world *w, unsigned int node, uint64_t bytes_per_second)
{
	for (unsigned int end = 0; end < NODES; end += 3) {
		struct report_port *p = port_to(report(w, node), end);

		p->transmit_forecast = p->receive_forecast = bytes_per_second;
	}
}

/* A job of n0's and n3's workers with roots at n1 and n2, of which each has 40 Mbit/s to give. */
static void two_roots(struct world *w)
{
	*w = square();
	job_add(w, "03", "n1");
	job_add(w, "03", "n2");
	for (unsigned int i = 0; i < 2; i++) {
		w->job[i].roots = 2;
		w->job[i].which = (uint16_t)(i + 1);
	}
	loads_set(w, 1, 7500000);
	loads_set(w, 2, 7500000);
}

static void shares_follow_what_roots_carry(void **state)
{
	static const unsigned int which[] = { 0, 1 };
	static const bool none[2] = { false };
	const uint16_t equal[] = { 500, 500 }, near[] = { 520, 480 };
	struct wanted_place place[2];
	struct world w;
	struct why why;

	two_roots(&w);
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, none, 0.1,
					     place, &why),
			 -EALREADY);
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, near, none, 0.1,
					     place, &why),
			 -EALREADY);
	loads_set(&w, 1, 11250000); /* 10 Mbit/s are left */
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, none, 0.1,
					     place, &why),
			 0);
	assert_string_equal(place[0].root, "n1");
	assert_string_equal(place[1].root, "n2");
	assert_int_equal(place[0].share, 200);
	assert_int_equal(place[1].share, 800);
	assert_non_null(strstr(place[0].why, "50 Mbit/s of each worker, and had 20"));
	picture_close(&w.picture);
}

/* Shares have three digits: whoever weighs by more would decide the same again and again. */
static void what_was_decided_is_not_decided_again(void **state)
{
	static const unsigned int which[] = { 0, 1 };
	static const bool none[] = { false, false };
	unsigned int decided = 0;

	for (uint64_t left = 10000; left <= 1250000; left += left / 20) {
		uint16_t share[] = { 500, 500 };
		struct wanted_place place[2];
		struct world w;
		struct why why;

		two_roots(&w);
		loads_set(&w, 1, 0);
		loads_set(&w, 2, 1250000 - left);
		for (unsigned int end = 0; end < NODES; end += 3)
			port_to(report(&w, 2), end)->rate_mbps =
				port_to(report(&w, end), 2)->rate_mbps = 10;
		for (unsigned int i = 0; i < 3; i++) {
			int r = placer_roots_better(&w.picture, w.is, w.jobs, which, 2, share, none,
						    0.1, place, &why);

			if (r == -EALREADY)
				break;
			assert_int_equal(r, 0);
			assert_int_not_equal(i, 2);
			for (unsigned int k = 0; k < 2; k++) {
				share[k] = place[k].share;
				w.is[k].root = place[k].root;
			}
			decided++;
		}
		picture_close(&w.picture);
	}
	assert_true(decided > 50);
}

/* A root of the job that is there already opens its node to no other one that may not have it. */
static void a_root_goes_to_no_node_that_may_not_have_it(void **state)
{
	static const char *const refused[] = { "n0", "n2", "n3" };
	static const unsigned int which[] = { 0, 1 };
	static const bool first[] = { true, false };
	const uint16_t equal[] = { 500, 500 };
	struct wanted_place place[2];
	struct world w;
	struct why why;

	two_roots(&w);
	report(&w, 1)->cordoned = true;
	w.is[0].refused = refused;
	w.is[0].refusals = 3;
	assert_int_not_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, first,
						 -1, place, &why),
			     0);
	w.is[0].refusals = 0;
	report(&w, 0)->slots = report(&w, 3)->slots = 0;
	report(&w, 2)->slots = 2u * w.job[1].window; /* all of them are the second root's */
	assert_int_not_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, first,
						 -1, place, &why),
			     0);
	report(&w, 2)->slots *= 2;
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, first, -1,
					     place, &why),
			 0);
	assert_string_equal(place[0].root, "n2");
	picture_close(&w.picture);
}

/* More roots than nodes have room for are none. */
static void roots_take_room_from_one_another(void **state)
{
	static const unsigned int which[] = { 0, 1, 2, 3, 4, 5 };
	struct wanted_place place[6];
	struct world w = square();
	struct why why;

	for (unsigned int i = 0; i < 6; i++) {
		job_add(&w, "03", NULL);
		w.job[i].roots = 6;
		w.job[i].which = (uint16_t)(i + 1);
	}
	for (unsigned int i = 0; i < NODES; i++)
		report(&w, i)->slots = 2u * w.job[0].window;
	report(&w, 3)->slots *= 3;
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 6, place, &why), 0);
	for (unsigned int i = 0, there[NODES] = { 0 }; i < 6; i++) {
		const unsigned int node = (unsigned int)(place[i].root[1] - '0');

		assert_true(++there[node] <= (node == 3 ? 3 : 1));
	}
	report(&w, 3)->slots /= 3;
	assert_int_equal(placer_roots(&w.picture, w.is, w.jobs, which, 6, place, &why),
			 -EHOSTUNREACH);
	assert_non_null(strstr(why.text, "have no room for all of them"));
	picture_close(&w.picture);
}

static void a_root_goes_where_there_is_more(void **state)
{
	static const unsigned int which[] = { 0, 1 };
	static const bool both[] = { true, true }, first[] = { true, false };
	const uint16_t equal[] = { 500, 500 };
	struct wanted_place place[2];
	struct world w;
	struct why why;

	two_roots(&w);
	/* Whoever must leave goes wherever it costs least. */
	report(&w, 1)->cordoned = true;
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, first, -1,
					     place, &why),
			 0);
	assert_string_not_equal(place[0].root, "n1");
	assert_string_equal(place[1].root, "n2");
	assert_non_null(strstr(place[0].why, "which moves"));
	report(&w, 1)->cordoned = false;

	/* n2 is all but full, and n0 is as near by the way over n1, which has room for more. */
	loads_set(&w, 1, 0);
	loads_set(&w, 2, 12400000);
	assert_int_equal(placer_roots_better(&w.picture, w.is, w.jobs, which, 2, equal, both, 0.1,
					     place, &why),
			 0);
	assert_true(!strcmp(place[0].root, "n1") || !strcmp(place[1].root, "n2"));
	picture_close(&w.picture);
}

/* --- texts ----------------------------------------------------------------------------------- */

static void what_is_wanted_comes_as_it_went(void **state)
{
	struct wanted_job job = { "train.3", "red", "5b1f", 9,	  0xfeedface, 4,
				  128,	     1408,  true,   true, 4,	      3 };
	struct wanted_place place = {
		.birth = 8, .root = "n1", .why = "because", .workers = 1, .weighs = 1, .share = 250
	};
	struct wanted_job job_back = { 0 };
	struct wanted_place place_back = { 0 };
	_cleanup_(freep) char *text = wanted_print(&wanted_job_keys, &job);
	_cleanup_(freep) char *place_text = NULL;
	struct why why;

	assert_int_equal(wanted_parse(&wanted_job_keys, text, &job_back, &why), 0);
	assert_memory_equal(&job, &job_back, sizeof(job));
	place.address = address("10.77.0.2");
	assert_int_equal(address_parse("10.0.1.1:40000", 0, &place.worker[0]), 0);
	place.weighed[0] = (struct wanted_weighed){ "n1", "0.5", "0.1", "0.2", "0.2" };
	place_text = wanted_print(&wanted_place_keys, &place);
	assert_int_equal(wanted_parse(&wanted_place_keys, place_text, &place_back, &why), 0);
	assert_memory_equal(&place, &place_back, sizeof(place));
}

/* An error's words go to a log. */
static void what_is_wrong_is_said_without_the_token(void **state)
{
	struct wanted_job job = { 0 };
	struct why why = { "" };

	assert_int_equal(wanted_parse(&wanted_job_keys,
				      "{\"name\": \"train\", \"tenant\": \"a\", "
				      "\"token\": \"top secret!\", \"id\": 1}",
				      &job, &why),
			 -EINVAL);
	assert_null(strstr(why.text, "secret!"));
	assert_non_null(strstr(why.text, "token"));
}

__attribute__((format(printf, 3, 4))) static void route_add(struct report *r, unsigned int by,
							    const char *to, ...)
{
	struct report_route *x = ADD(r->route, r->routes);
	va_list values;

	va_start(values, to);
	vsnprintf(x->to, sizeof(x->to), to, values);
	va_end(values);
	snprintf(x->port, sizeof(x->port), "p%u", by);
}

/* From n0 to all that is at n3, and back, by one of the two in the middle. */
static void route_by(struct world *w, unsigned int middle)
{
	for (unsigned int end = 0; end < NODES; end += 3) {
		struct report *r = report(w, end);
		const unsigned int other = 3 - end;

		route_add(r, middle, "10.0.%u.0/24", other);
		route_add(r, middle, "10.77.0.%u/32", other + 1);
	}
}

/* The way between n0 and n3 is full, and no other one is used: the root is where nobody passes. */
static void paths_are_those_that_routing_has(void **state)
{
	for (unsigned int middle = 1; middle <= 2; middle++) {
		_cleanup_(picture_close) struct picture p = { 0 };
		struct world w = square();

		p = w.picture;
		job_add(&w, "03", NULL);
		route_by(&w, middle);
		port_to(report(&w, 3), middle)->transmit_forecast = 12000000;
		port_to(report(&w, 3), middle)->receive_forecast = 12000000;
		assert_string_equal(root_of(&w, 0), middle == 1 ? "n2" : "n1");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_root_is_near_its_workers),
		cmocka_unit_test(a_root_keeps_away_from_traffic),
		cmocka_unit_test(who_is_cordoned_or_has_refused_is_no_root),
		cmocka_unit_test(who_has_no_slots_is_no_root_if_others_have),
		cmocka_unit_test(who_does_not_hold_a_tenants_slots_is_no_root_if_others_do),
		cmocka_unit_test(what_others_have_reserved_is_no_room),
		cmocka_unit_test(an_older_agent_does_not_hold_a_tenant_that_comes_in_at_places),
		cmocka_unit_test(the_load_of_jobs_is_not_that_of_others),
		cmocka_unit_test(the_load_of_a_job_that_has_gone_is_nobodys),
		cmocka_unit_test(a_run_moves_away_from_traffic_and_stays_otherwise),
		cmocka_unit_test(a_run_does_not_leave_its_slots_for_software),
		cmocka_unit_test(a_run_leaves_a_cordoned_node),
		cmocka_unit_test(a_worker_that_nobody_sees_is_where_it_joined),
		cmocka_unit_test(a_worker_that_is_nowhere_is_said),
		cmocka_unit_test(several_roots_are_apart_and_share_by_what_they_carry),
		cmocka_unit_test(shares_follow_what_roots_carry),
		cmocka_unit_test(what_was_decided_is_not_decided_again),
		cmocka_unit_test(a_root_goes_to_no_node_that_may_not_have_it),
		cmocka_unit_test(roots_take_room_from_one_another),
		cmocka_unit_test(a_root_goes_where_there_is_more),
		cmocka_unit_test(what_is_wanted_comes_as_it_went),
		cmocka_unit_test(what_is_wrong_is_said_without_the_token),
		cmocka_unit_test(paths_are_those_that_routing_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
