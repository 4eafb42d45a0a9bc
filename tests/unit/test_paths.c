// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Trees that agents find: next hops in, tree out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "agent/core/paths.h"
#include "common/address.h"
#include "common/owned.h"
#include "common/ranks.h"
#include "random.h"

enum {
	WORKERS = 9,
	PEERS = 8,
	ROUNDS = 20000,
};

static const struct sockaddr_storage service = { .ss_family = AF_INET };
static struct config_peer peer[PEERS];
static struct sockaddr_storage worker[WORKERS];
static struct paths_view *view[PEERS], root;
static struct paths_walk walk;
static struct tree tree;
static bool is_silent[PEERS];

static struct sockaddr_storage address_of(const char *format, unsigned int of)
{
	struct sockaddr_storage address;
	char text[64];

	snprintf(text, sizeof(text), format, of);
	assert_int_equal(address_parse(text, TALLY_UDP_PORT, &address), 0);
	return address;
}

/* Peer i has the service address 10.0.0.i, and 10.1.0.i on a link. */
static int prepare(void **state)
{
	memset(&root, 0, sizeof(root));
	memset(is_silent, 0, sizeof(is_silent));
	memset(peer, 0, sizeof(peer));
	for (unsigned int i = 0; i < WORKERS; i++)
		worker[i] = address_of("10.2.0.%u", i + 1);
	root.own[root.owns++] = address_of("10.0.0.%u", 100);
	for (unsigned int i = 0; i < PEERS; i++) {
		snprintf(peer[i].name, sizeof(peer[i].name), "p%u", i);
		peer[i].address = address_of("10.0.0.%u", i + 1);
		view[i] = calloc(1, sizeof(*view[i]));
		assert_non_null(view[i]);
		view[i]->own[view[i]->owns++] = address_of("10.0.0.%u", i + 1);
		view[i]->own[view[i]->owns++] = address_of("10.1.0.%u", i + 1);
	}
	return 0;
}

static int release(void **state)
{
	for (unsigned int i = 0; i < PEERS; i++)
		free(view[i]);
	return 0;
}

/* What is for these ranks goes to peer `to` next. */
static void route(struct paths_view *from, const char *ranks, unsigned int to)
{
	struct sockaddr_storage next = address_of("10.1.0.%u", to + 1);
	struct tally_set set;

	assert_int_equal(ranks_parse(ranks, &set), 0);
	endpoint_port_set(&next, 0);
	for (unsigned int rank = 0; rank < WORKERS; rank++)
		if (tally_set_has(&set, rank))
			paths_hop_add(from, rank, &next);
}

static struct paths paths_of(void)
{
	struct paths p = {
		.root = &root, .workers = WORKERS, .worker = worker, .peers = PEERS, .peer = peer
	};

	for (unsigned int i = 0; i < PEERS; i++) {
		p.view[i] = view[i];
		p.silent[i] = is_silent[i];
	}
	return p;
}

/* As "p0=0-3 p1=4-7". */
static void is(const char *words)
{
	char text[PEERS * (NAME_BYTES + RANKS_BYTES)] = "", ranks[RANKS_BYTES];
	size_t used = 0;
	struct why why = { "" };

	assert_true(tree.found);
	assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0);
	for (unsigned int i = 0; i < tree.nodes; i++) {
		ranks_print(&tree.node[i].ranks, ranks, sizeof(ranks));
		used += snprintf(text + used, sizeof(text) - used, "%s%s=%s", i ? " " : "",
				 tree.node[i].name, ranks);
		assert_true(endpoint_is_equal(&tree.node[i].address,
					      &peer[tree.node[i].name[1] - '0'].address));
	}
	assert_string_equal(text, words);
}

static void found(const char *words)
{
	const struct paths p = paths_of();

	paths_tree(&p, &walk, &tree);
	is(words);
}

/* After the tree that was found before. Which peers have views then, as "012345"? */
static void found_after(const char *words, const char *seen)
{
	struct paths p = paths_of();
	const struct tree was = tree;
	char text[PEERS + 1] = "";

	paths_tree_after(&p, &was, &walk, &tree);
	is(words);
	for (unsigned int i = 0; i < PEERS; i++)
		if (p.view[i])
			text[strlen(text)] = '0' + i;
	assert_string_equal(text, seen);
}

/* It does not answer now; it did before. */
static void is_away(unsigned int i)
{
	const struct paths_view before = *view[i];

	paths_silent(&walk, peer, PEERS, i, before.own, before.owns, view[i]);
	is_silent[i] = true;
}

static void three_levels(void)
{
	route(&root, "0-3", 0);
	route(&root, "4-7", 1);
	route(view[0], "0-1", 2);
	route(view[0], "2-3", 3);
	route(view[1], "4-5", 4);
	route(view[1], "6-7", 5);
}

static void nodes_on_the_paths_are_the_tree(void **state)
{
	found("");
	three_levels();
	found("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7");
}

/* What the eighth sent down would have no hops left. */
static void what_results_do_not_come_down_to_passes_by(void **state)
{
	route(&root, "0-8", 0);
	for (unsigned int i = 0; i + 1 < PEERS; i++) {
		char ranks[] = { '1' + i, '-', '8', '\0' };

		route(view[i], ranks, i + 1);
	}
	found("p0=0-8 p1=1-8 p2=2-8 p3=3-8 p4=4-8 p5=5-8 p6=6-8");
}

static void who_does_not_answer_is_left_out_with_all_behind_it(void **state)
{
	three_levels();
	free(view[3]);
	view[3] = NULL;
	found("p0=0-3 p1=4-7 p2=0-1 p4=4-5 p5=6-7");
	free(view[1]);
	view[1] = NULL;
	found("p0=0-3 p2=0-1");
}

static void who_is_silent_stays_as_it_was(void **state)
{
	three_levels();
	found("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7");
	for (unsigned int i = 0; i < PEERS; i++) {
		is_away(i);
		found_after("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7", "01234567");
	}
}

/* Rank 3 is behind p4 now, as the root and p1 say; p0 and p3 would have to hear of that. */
static void who_is_silent_goes_where_paths_go_elsewhere(void **state)
{
	three_levels();
	found("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7");
	is_away(0);
	memset(&root.hop, 0, sizeof(root.hop));
	root.hops = 0;
	route(&root, "0-2", 0);
	route(&root, "3-7", 1);
	route(view[1], "3", 4);
	found_after("p1=3-7 p4=3-5 p5=6-7", "1234567");
}

/* p0 would have rank 0 and p3 below; so it goes, too, if it cannot hear of that. */
static void who_is_silent_goes_with_a_node_below(void **state)
{
	three_levels();
	found("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7");
	is_away(0);
	is_away(4);
	free(view[2]);
	view[2] = NULL;
	found_after("p1=4-7 p4=4-5 p5=6-7", "134567");
}

/* Such a node comes and goes without a word: paths go on through it as long as it may be back. */
static void who_is_silent_leads_to_others_all_the_same(void **state)
{
	route(&root, "0-3", 0);
	route(view[0], "0-3", 1);
	found("p1=0-3");
	is_away(0);
	found_after("p1=0-3", "01234567");
	root.hops = 0;
	found_after("", "01234567");
}

/* Nobody has told it what to do. */
static void who_is_silent_comes_into_no_tree(void **state)
{
	three_levels();
	root.hops = 0;
	route(&root, "0-3", 0);
	found("p0=0-3 p2=0-1 p3=2-3");
	is_away(1);
	view[1]->hops = 0;
	route(&root, "4-7", 1);
	found_after("p0=0-3 p2=0-1 p3=2-3", "0234567");
}

static void nodes_with_nothing_to_add_up_are_left_out(void **state)
{
	route(&root, "0-3", 0);
	route(view[0], "0-3", 1); /* all go on: p1 alone has what p0 would have */
	route(view[1], "0", 2);
	route(&root, "4-6", 3);
	route(view[3], "4-5", 4); /* p3 has rank 6 besides */
	found("p1=0-3 p3=4-6 p4=4-5");
}

/* Where routing is no tree, paths end at the first node that another path comes to otherwise. */
static void paths_that_cross_are_cut(void **state)
{
	route(&root, "0-1", 0);
	route(&root, "2-3", 1);
	route(view[0], "0-1", 2);
	route(view[1], "2-3", 2);
	route(view[0], "4", 5); /* nobody sends rank 4 there */
	found("p1=2-3 p2=0-1");
}

static void paths_that_go_round_end(void **state)
{
	route(&root, "0-1", 0);
	route(view[0], "0-1", 1);
	route(view[1], "0-1", 0);
	found("p1=0-1");
	route(view[2], "2-3", 2);
	route(&root, "2-3", 2);
	found("p1=0-1 p2=2-3");
}

static void an_address_of_two_nodes_is_nobodys(void **state)
{
	three_levels();
	view[5]->own[view[5]->owns++] = address_of("10.1.0.%u", 1);
	found("p1=4-7 p4=4-5 p5=6-7");
}

/* What is said of claims. */
static void disputed(const char *words)
{
	struct why said = { "" };
	struct paths p = paths_of();

	paths_disputes_say(&p, &walk, said.text, sizeof(said.text));
	assert_string_equal(said.text, words);
}

static void own(unsigned int p, const char *format, unsigned int of)
{
	view[p]->own[view[p]->owns++] = address_of(format, of);
}

/* Keys of ranks go to whoever the paths go through. */
static void nobody_has_what_is_known_to_be_anothers(void **state)
{
	const struct sockaddr_storage at_worker = address_of("10.2.0.%u", 8),
				      at_root = address_of("10.0.0.%u", 100),
				      at_p1 = address_of("10.0.0.%u", 2);

	for (unsigned int rank = 0; rank < WORKERS; rank++)
		paths_hop_add(&root, rank, rank < 3 ? &at_worker : rank < 6 ? &at_root : &at_p1);
	own(0, "10.2.0.%u", 8);
	own(0, "10.0.0.%u", 100);
	own(0, "10.0.0.%u", 2);
	found("p1=6-8");
	disputed("10.2.0.8 is a worker's, and p0 said to have it; 10.0.0.100 is the root's, and p0 "
		 "said to have it; 10.0.0.2 is p1, and p0 said to have it");
	free(view[1]);
	view[1] = NULL; /* also while it is away */
	found("");
}

static void two_that_claim_an_address_are_named(void **state)
{
	route(&root, "0-7", 0);
	found("p0=0-7");
	disputed("");
	own(2, "10.1.0.%u", 1);
	own(4, "10.1.0.%u", 4); /* on no path */
	found("");
	disputed("10.1.0.1 is nobody's, and p0 p2 said to have it (peers.nodes: also)");
	peer[0].also[peer[0].alsos++] = address_of("10.1.0.%u", 1);
	found("p0=0-7");
	disputed("10.1.0.1 is p0, and p2 said to have it");
}

static void who_has_a_list_has_nothing_besides(void **state)
{
	route(&root, "0-3", 0);
	route(&root, "4-7", 1);
	peer[0].also[peer[0].alsos++] = address_of("10.5.0.%u", 1);
	found("p1=4-7");
	disputed("10.1.0.1 is nobody's, and p0 said to have it (peers.nodes: also)");
	own(2, "10.1.0.%u", 1); /* the list lacks a link: that makes no other one right */
	found("p1=4-7");
	disputed("10.1.0.1 is nobody's, and p0 p2 said to have it (peers.nodes: also)");
	peer[0].also[peer[0].alsos++] = address_of("10.1.0.%u", 1);
	found("p0=0-3 p1=4-7");
	disputed("10.1.0.1 is p0, and p2 said to have it");
}

static void as_much_is_said_as_fits(void **state)
{
	struct paths p;
	char text[40] = "before";

	route(&root, "0-7", 0);
	own(2, "10.1.0.%u", 1);
	found("");
	p = paths_of();
	for (size_t size = sizeof(text); size > 7; size--) {
		snprintf(text, sizeof(text), "before");
		paths_disputes_say(&p, &walk, text, size);
		assert_int_equal(strlen(text), size - 1);
	}
}

static void views_are_read_as_they_were_written(void **state)
{
	static const struct keys_style style = { .number = "a number" };
	_cleanup_(freep) struct paths_view *same = calloc(1, sizeof(*same));
	struct why why = { "" };
	struct reading reading = { &style, "view", NULL, why.text, sizeof(why.text) };
	_cleanup_(value_freep) struct value *value = NULL;
	_cleanup_(json_freep) json_t *json = NULL;

	three_levels();
	view[0]->own[view[0]->owns++] = address_of("fe80::%u", 7);
	json = keys_json_make(&paths_view_keys, view[0]);
	assert_int_equal(keys_json_tree(json, &value), 0);
	assert_int_equal(keys_take_root(&reading, value, &paths_view_keys, same, NULL), 0);
	assert_int_equal(same->owns, 3);
	for (unsigned int i = 0; i < same->owns; i++)
		assert_true(endpoint_is_equal(&same->own[i], &view[0]->own[i]));
	assert_int_equal(same->hops, 2);
	assert_true(tally_set_is_equal(&same->hop[1].ranks, &view[0]->hop[1].ranks));
	free(view[0]);
	view[0] = TAKE_PTR(same);
	found("p0=0-3 p1=4-7 p2=0-1 p3=2-3 p4=4-5 p5=6-7");
}

/* Whatever agents say: what is found is a tree, and every node of it has work. */
static void any_answers_make_a_tree(void **state)
{
	struct why why = { "" };
	unsigned int nodes = 0;
	struct paths p;
	uint64_t seed = 1;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		release(NULL);
		prepare(NULL);
		for (unsigned int rank = 0; rank < WORKERS; rank++)
			for (unsigned int p = 0; p <= PEERS; p++) {
				struct sockaddr_storage next = address_of(
					"10.1.0.%u", random_below(&seed, PEERS + 2) + 1);

				paths_hop_add(p < PEERS ? view[p] : &root, rank, &next);
			}
		p = paths_of();
		paths_tree(&p, &walk, &tree);
		assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0);
		for (unsigned int k = 0; k < tree.nodes; k++)
			assert_true(tally_set_count(&tree.node[k].ranks) > 1);
		nodes += tree.nodes;
	}
	assert_true(nodes > ROUNDS / 10);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, release)
	const struct CMUnitTest tests[] = {
		TEST(nodes_on_the_paths_are_the_tree),
		TEST(what_results_do_not_come_down_to_passes_by),
		TEST(who_does_not_answer_is_left_out_with_all_behind_it),
		TEST(who_is_silent_stays_as_it_was),
		TEST(who_is_silent_goes_where_paths_go_elsewhere),
		TEST(who_is_silent_goes_with_a_node_below),
		TEST(who_is_silent_leads_to_others_all_the_same),
		TEST(who_is_silent_comes_into_no_tree),
		TEST(nodes_with_nothing_to_add_up_are_left_out),
		TEST(paths_that_cross_are_cut),
		TEST(paths_that_go_round_end),
		TEST(an_address_of_two_nodes_is_nobodys),
		TEST(nobody_has_what_is_known_to_be_anothers),
		TEST(two_that_claim_an_address_are_named),
		TEST(who_has_a_list_has_nothing_besides),
		TEST(as_much_is_said_as_fits),
		TEST(views_are_read_as_they_were_written),
		TEST(any_answers_make_a_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
