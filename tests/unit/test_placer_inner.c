// SPDX-License-Identifier: GPL-2.0-only
/* Roots that are weighed with nodes that sum on the way: agent/cluster/placer_inner.c. */
#include "agent/cluster/placer.h"

#include <errno.h>

#include "cluster_world.h"

/*
 * Hosts are 10.0.N.1 and so on at node nN, each with a worker; all cables have 100 Mbit/s:
 *
 *	4 hosts ── n0 ── n1 ── n2 ── n3 ── 1 host
 *	                        │
 *	                     2 hosts
 *
 * Links from all workers to a root, if nobody sums on the way:
 *
 *	n0   4 * 1 + 2 * 3 + 1 * 4 = 14      n2   4 * 3 + 2 * 1 + 1 * 2 = 16
 *	n1   4 * 2 + 2 * 2 + 1 * 3 = 15      n3   4 * 4 + 2 * 2 + 1 * 1 = 21
 *
 * If n0 sums, n3 is nearer: 4 * 1 + 1 * 3 + 2 * 2 + 1 * 1 = 12. If the first worker did all by
 * itself, as what is compared with: 3 * 2 + 2 * 4 + 1 * 5 = 19. So the cost of bytes is 14 / 19 or
 * 12 / 19, times 0.25.
 */
enum {
	NODES = 4,
	WORKERS = 7,
};

static const unsigned int hosts[NODES] = { 4, 0, 2, 1 };

struct world {
	struct picture picture;
	struct wanted_job wanted[2];
	struct wanted_worker worker[WORKERS];
	struct placer_job job[2];
	struct wanted_place place;
};

static int world_open(void **state)
{
	struct world *w = *state = calloc(1, sizeof(*w));
	unsigned int workers = 0;
	char text[32];

	for (unsigned int i = 0; i < NODES; i++) {
		const char *const name[] = { "n0", "n1", "n2", "n3" };
		const char *const to[] = { "p0", "p1", "p2", "p3" };
		struct report *r;

		snprintf(text, sizeof(text), "10.77.0.%u", i + 1);
		r = report_of(name[i], text);
		if (i > 0) {
			port(r, to[i - 1], 100);
			near(r, to[i - 1], name[i - 1], to[i]);
		}
		if (i + 1 < NODES) {
			port(r, to[i + 1], 100);
			near(r, to[i + 1], name[i + 1], to[i]);
		}
		for (unsigned int h = 0; h < hosts[i]; h++) {
			const char plug[] = { 'h', (char)('0' + h), '\0' };
			struct wanted_worker *worker = &w->worker[workers++];

			port(r, plug, 100);
			snprintf(text, sizeof(text), "10.0.%u.%u", i, h + 1);
			host(r, plug, text, "");
			snprintf(text, sizeof(text), "10.0.%u.%u:40000", i, h + 1);
			assert_int_equal(address_parse(text, 0, &worker->address), 0);
			snprintf(worker->node, sizeof(worker->node), "%s", name[i]);
		}
		put(&w->picture, r);
	}
	for (unsigned int i = 0; i < 2; i++) {
		w->wanted[i] = (struct wanted_job){ .id = 10 + i,
						    .birth = 7 + i,
						    .workers = WORKERS,
						    .window = 128,
						    .payload_bytes = 1408 };
		w->job[i] = (struct placer_job){ .job = &w->wanted[i],
						 .worker = w->worker,
						 .workers = WORKERS };
	}
	return 0;
}

static int world_close(void **state)
{
	struct world *w = *state;

	picture_close(&w->picture);
	free(w);
	return 0;
}

static struct report *node(struct world *w, unsigned int i) { return w->picture.report[i]; }

/* n0 and n3 have a secret in common. */
static void two_are_inner(struct world *w) { node(w, 0)->inner = node(w, 3)->inner = true; }

static void part_add(struct world *w, unsigned int i)
{
	*ADD(node(w, i)->job, node(w, i)->jobs) =
		(struct report_job){ .name = "j", .id = w->wanted[0].id, .inner = true };
}

static const char *root(struct world *w)
{
	struct why why = { "" };

	if (placer_place(&w->picture, w->job, 1, 0, &w->place, &why) < 0)
		fail_msg("%s", why.text);
	assert_string_equal(w->place.weighed[0].node, w->place.root);
	return w->place.root;
}

static const char *bytes_at(const struct world *w, const char *node)
{
	for (unsigned int i = 0; i < w->place.weighs; i++)
		if (!strcmp(w->place.weighed[i].node, node))
			return w->place.weighed[i].bytes;
	fail_msg("%s was not weighed", node);
	return "";
}

static void the_best_root_is_another_one_where_nodes_sum(void **state)
{
	struct world *w = *state;

	assert_string_equal(root(w), "n0");
	assert_string_equal(bytes_at(w, "n0"), "0.1842");
	assert_string_equal(bytes_at(w, "n3"), "0.2763");
	two_are_inner(w);
	assert_string_equal(root(w), "n3");
	assert_string_equal(bytes_at(w, "n3"), "0.1579");
	assert_string_equal(bytes_at(w, "n0"), "0.1842");
	assert_string_equal(w->place.weighed[1].node, "n0");
}

/* Nobody sums for a root that has no secret in common with it. */
static void a_root_without_a_secret_finds_nobody(void **state)
{
	struct world *w = *state;

	node(w, 0)->inner = true;
	assert_string_equal(root(w), "n0");
	assert_string_equal(bytes_at(w, "n3"), "0.2763");
	node(w, 0)->inner = false;
	node(w, 3)->inner = true;
	assert_string_equal(root(w), "n0");
}

static void who_has_no_room_does_not_sum(void **state)
{
	struct world *w = *state;

	two_are_inner(w);
	node(w, 0)->slots_free = 2 * 128 - 1;
	assert_string_equal(root(w), "n0");
	part_add(w, 0); /* unless it has the part already */
	assert_string_equal(root(w), "n3");
	node(w, 0)->job[0].id++; /* another job's part */
	assert_string_equal(root(w), "n0");
	node(w, 0)->slots_free = 2 * 128;
	assert_string_equal(root(w), "n3");
}

/* But it keeps what it has. */
static void a_cordoned_node_begins_no_part(void **state)
{
	struct world *w = *state;

	two_are_inner(w);
	node(w, 0)->cordoned = true;
	assert_string_equal(root(w), "n1");
	part_add(w, 0);
	assert_string_equal(root(w), "n3");
}

static void what_a_job_costs_now_is_with_those_who_sum(void **state)
{
	struct world *w = *state;
	struct why why;

	w->job[0].root = "n3";
	assert_int_equal(placer_better(&w->picture, w->job, 1, 0, 0, &w->place, &why), 0);
	assert_string_equal(w->place.root, "n0");
	two_are_inner(w);
	assert_int_equal(placer_better(&w->picture, w->job, 1, 0, 0, &w->place, &why), -EALREADY);
	w->job[0].root = "n0";
	memset(&w->place, 0, sizeof(w->place));
	assert_int_equal(placer_better(&w->picture, w->job, 1, 0, 0, &w->place, &why), 0);
	assert_string_equal(w->place.root, "n3");
	assert_string_equal(bytes_at(w, "n3"), "0.1579");
}

/* One sum goes from n0 to n1, and not what four workers send: so much of what is forecast there is
 * the job's own, and the rest is that of others. */
static void the_load_of_a_run_is_that_of_sums(void **state)
{
	struct world *w = *state;
	struct wanted_place place[2];
	struct why why;

	two_are_inner(w);
	w->job[0].root = "n3";
	for (unsigned int i = 0; i < 2; i++) {
		const uint64_t own = i * 2000 * (1408 + 92), load = 7000000 + own;
		struct report_port *a = &node(w, 0)->port[0], *b = &node(w, 1)->port[0];

		w->job[0].chunks_per_second = i * 2000;
		a->transmit_forecast = a->receive_forecast = load;
		b->transmit_forecast = b->receive_forecast = load;
		assert_int_equal(placer_place(&w->picture, w->job, 2, 1, &place[i], &why), 0);
	}
	assert_string_equal(place[0].weighed[0].total, place[1].weighed[0].total);
	assert_string_equal(place[0].weighed[0].time, place[1].weighed[0].time);
}

#define FACT(f) cmocka_unit_test_setup_teardown(f, world_open, world_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(the_best_root_is_another_one_where_nodes_sum),
		FACT(a_root_without_a_secret_finds_nobody),
		FACT(who_has_no_room_does_not_sum),
		FACT(a_cordoned_node_begins_no_part),
		FACT(what_a_job_costs_now_is_with_those_who_sum),
		FACT(the_load_of_a_run_is_that_of_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
