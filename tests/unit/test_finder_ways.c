// SPDX-License-Identifier: GPL-2.0-only
/* Who sums where packets take ways that the cluster wants: agent/finder_ways.h. */
#include "cluster_world.h"

#include "agent/finder_ways.h"
#include "common/owned.h"
#include "common/ranks.h"

static struct picture picture;
static struct job_rank rank[5];
static struct job job;
static struct tree tree;

/* Four nodes, and workers 10.1.0.1 to 10.1.0.5, whose ranks are 0 to 4. */
static int prepare(void **state)
{
	char name[8], own[32], worker[32];

	picture = (struct picture){ 0 };
	job = (struct job){ .workers = 5, .rank = rank, .service = address("10.77.0.4") };
	for (unsigned int i = 0; i < 4; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		snprintf(own, sizeof(own), "10.77.0.%u", i + 1);
		put(&picture, report_of(name, own));
	}
	for (unsigned int i = 0; i < 5; i++) {
		snprintf(worker, sizeof(worker), "10.1.0.%u", i + 1);
		job.rank[i].address = address(worker);
		endpoint_port_set(&job.rank[i].address, 40000 + i);
	}
	return 0;
}

static int over(void **state)
{
	picture_close(&picture);
	return 0;
}

static void way(struct wanted_ways *w, unsigned int worker, const char *nodes)
{
	struct wanted_way *way = &w->way[w->ways++];
	char text[64], *rest = text, *one;

	snprintf(text, sizeof(text), "10.1.0.%u", worker);
	way->worker = address(text);
	snprintf(text, sizeof(text), "%s", nodes);
	while ((one = strsep(&rest, " ")))
		snprintf(way->node[way->nodes++], NAME_BYTES, "%s", one);
}

/* "n0 0-1 n1 0-2" */
static const char *tree_of(const struct wanted_ways *w)
{
	static char text[512];
	char ranks[RANKS_BYTES], at[ADDRESS_BYTES];
	size_t used = 0;
	struct why why;

	*text = '\0';
	finder_ways_tree(w, &picture, &job, &tree);
	assert_true(tree.found);
	assert_int_equal(tree_check(&tree, job.workers, &job.service, &why), 0);
	for (unsigned int i = 0; i < tree.nodes; i++) {
		ranks_print(&tree.node[i].ranks, ranks, sizeof(ranks));
		address_print(&tree.node[i].address, at, sizeof(at));
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s@%s %s",
					 used ? ", " : "", tree.node[i].name, at, ranks);
	}
	return text;
}

static void who_sums_has_the_ranks_that_pass(void **state)
{
	_cleanup_(freep) struct wanted_ways *w = calloc(1, sizeof(*w));

	way(w, 1, "n0 n1 n3");
	way(w, 2, "n0 n1 n3");
	way(w, 3, "n1 n3");
	way(w, 4, "n2 n3");
	assert_string_equal(tree_of(w), "");
	snprintf(w->sum[w->sums++], NAME_BYTES, "n1");
	assert_string_equal(tree_of(w), "n1@10.77.0.2 0-2");
	snprintf(w->sum[w->sums++], NAME_BYTES, "n0");
	assert_string_equal(tree_of(w), "n1@10.77.0.2 0-2, n0@10.77.0.1 0-1");
	assert_true(tree_is_right_below(&tree, 1, 0));
}

static void who_has_nothing_to_add_is_left_out(void **state)
{
	_cleanup_(freep) struct wanted_ways *w = calloc(1, sizeof(*w));

	way(w, 1, "n0 n1 n3");
	way(w, 2, "n0 n1 n3");
	way(w, 4, "n2 n3");
	snprintf(w->sum[w->sums++], NAME_BYTES, "n1");
	snprintf(w->sum[w->sums++], NAME_BYTES, "n2"); /* one rank */
	snprintf(w->sum[w->sums++], NAME_BYTES, "n0");
	assert_string_equal(tree_of(w), "n0@10.77.0.1 0-1");
}

static void a_node_that_reports_no_address_is_none(void **state)
{
	_cleanup_(freep) struct wanted_ways *w = calloc(1, sizeof(*w));

	way(w, 1, "n0 n3");
	way(w, 2, "n0 n3");
	snprintf(w->sum[w->sums++], NAME_BYTES, "n0");
	assert_string_equal(tree_of(w), "n0@10.77.0.1 0-1");
	picture_drop(&picture, "n0");
	assert_string_equal(tree_of(w), "");
}

#define fact(f) cmocka_unit_test_setup_teardown(f, prepare, over)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(who_sums_has_the_ranks_that_pass),
		fact(who_has_nothing_to_add_is_left_out),
		fact(a_node_that_reports_no_address_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
