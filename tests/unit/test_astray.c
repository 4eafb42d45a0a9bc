// SPDX-License-Identifier: GPL-2.0-only
/* Ranks that a written tree has behind another node than their packets come by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/core/astray.h"
#include "common/address.h"

enum {
	WORKERS = 4,
};

static struct installation g;

static struct sockaddr_storage at(const char *text)
{
	struct sockaddr_storage address = { 0 };

	assert_int_equal(address_parse(text, TALLY_UDP_PORT, &address), 0);
	return address;
}

static struct hop hop(uint32_t port, uint8_t mac)
{
	return (struct hop){ .port = port, .mac = { 2, 0, 0, 0, 0, mac } };
}

/* Worker n is at 10.77.n.1; ranks 0 and 1 are behind node a0, rank 2 is below the root itself. */
static struct job *job_of_tree(void)
{
	static const struct job facts = { .name = "train", .workers = WORKERS, .window = 8 };
	struct job *j = job_new(&facts);

	assert_non_null(j);
	for (unsigned int i = 0; i < WORKERS; i++) {
		j->rank[i].waiting = true;
		j->rank[i].next = at("10.77.1.1");
		endpoint_port_set(&j->rank[i].next, 40000 + i);
		j->rank[i].way = hop(i < 2 ? 5 : 6, i);
	}
	j->rank[0].way = j->rank[1].way = hop(5, 50);
	memset(&g, 0, sizeof(g));
	g.copies = 2;
	g.copy[0].below = tally_set_first(2);
	g.copy[0].address = at("10.77.0.2");
	g.copy[0].hop = hop(5, 50);
	tally_set_add(&g.copy[1].below, 2);
	g.copy[1].address = j->rank[2].next;
	g.copy[1].hop = j->rank[2].way;
	return j;
}

static void astray_are(struct tally_set now, const char *words)
{
	struct why why = { "from before" };

	astray_say(&now, &why);
	if (!*words)
		assert_string_equal(why.text, "");
	assert_non_null(strstr(why.text, words));
}

static void at_the_root_the_way_to_a_rank_is_that_to_its_node(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of_tree();

	astray_are(astray_at_root(j, &g), "");
	j->rank[1].way = hop(5, 51); /* another neighbour at the same port */
	astray_are(astray_at_root(j, &g), "rank 1 is not behind the node where the tree has it,");
	j->rank[0].way = hop(6, 50);
	astray_are(astray_at_root(j, &g), "ranks 0-1 are not behind the nodes where the tree has "
					  "them,");
	j->rank[0].waiting = false;
	j->rank[1].way = (struct hop){ .port = 0 };
	astray_are(astray_at_root(j, &g), "");
}

/* Its own address may have another neighbour than a moment ago. */
static void who_is_right_below_the_root_is_not_astray(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of_tree();

	j->rank[2].way = hop(6, 99);
	astray_are(astray_at_root(j, &g), "");
}

static void at_an_inner_node_nobody_is_where_the_root_is(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of_tree();
	const struct hop up = hop(7, 70), same_port = hop(6, 70);

	astray_are(astray_at_inner(&g, &up), "");
	astray_are(astray_at_inner(&g, &same_port), "");
	g.copy[1].hop = up;
	astray_are(astray_at_inner(&g, &up), "rank 2 is not behind the node");
	g.copy[0].hop = up; /* all: the node has one neighbour, a router */
	astray_are(astray_at_inner(&g, &up), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(at_the_root_the_way_to_a_rank_is_that_to_its_node),
		cmocka_unit_test(who_is_right_below_the_root_is_not_astray),
		cmocka_unit_test(at_an_inner_node_nobody_is_where_the_root_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
