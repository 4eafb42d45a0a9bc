// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Trees of nodes, and the documents of their inner nodes: as text, and as roles that fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "agent/core/tree.h"
#include "common/address.h"
#include "common/owned.h"
#include "common/ranks.h"

enum {
	WORKERS = 12,
	ROUNDS = 300,
};

static struct tree tree;
static struct run run;
static struct sockaddr_storage service;
static struct why why;

static struct sockaddr_storage address_of(const char *text, uint16_t udp_port)
{
	struct sockaddr_storage address;

	assert_int_equal(address_parse(text, udp_port, &address), 0);
	return address;
}

static void node(const char *name, const char *address, const char *ranks)
{
	struct tree_node *n = &tree.node[tree.nodes++];

	memset(n, 0, sizeof(*n));
	snprintf(n->name, sizeof(n->name), "%s", name);
	n->address = address_of(address, TALLY_UDP_PORT);
	assert_int_equal(ranks_parse(ranks, &n->ranks), 0);
}

static int prepare(void **state)
{
	char text[64];

	memset(&tree, 0, sizeof(tree));
	memset(&run, 0, sizeof(run));
	service = address_of("10.77.0.1", TALLY_UDP_PORT);
	run = (struct run){ .job = 9,
			    .epoch = 3,
			    .window = 64,
			    .payload_bytes = 128,
			    .workers = WORKERS,
			    .service = service };
	for (unsigned int i = 0; i < WORKERS; i++) {
		snprintf(text, sizeof(text), "10.77.1.%u:%u", i + 1, 40000 + i);
		run.worker[i] = address_of(text, 0);
	}
	why = (struct why){ "" };
	return 0;
}

static void refused(const char *words)
{
	assert_int_equal(tree_check(&tree, WORKERS, &service, &why), -EINVAL);
	assert_string_equal(why.text, words);
	prepare(NULL);
}

static void trees_that_make_no_sense_are_refused(void **state)
{
	node("a0", "10.77.0.2", "11-12");
	refused("tree: node a0: ranks 11-12: the job's ranks are 0-11");
	node("a0", "fd77::2", "1");
	refused("tree: node a0: fd77::2: the job's service address is IPv4, so name an IPv4 "
		"address of the node, or another --service");
	node("a0", "10.77.0.1", "1");
	refused("tree: node a0: 10.77.0.1 is the root's own address; the tree names the nodes "
		"below the root only");
	node("a0", "10.77.0.2", "1");
	node("a0", "10.77.0.3", "2");
	refused("tree: node a0 is named twice");
	node("a0", "10.77.0.2", "1");
	node("a1", "10.77.0.2", "2");
	refused("tree: nodes a0 and a1 have the same address");
	node("a0", "10.77.0.2", "1,3");
	node("a1", "10.77.0.3", "1,3");
	refused("tree: nodes a0 and a1 both have ranks 1,3: leave one out");
	node("a0", "10.77.0.2", "0-4");
	node("a1", "10.77.0.3", "4-5");
	refused("tree: nodes a0 and a1 share some ranks of 4-5: either all ranks of one come "
		"through the other, or none");
	assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0); /* no node at all */
}

/* What the eighth sent down would have no hops left. */
static void an_address_that_every_machine_has_names_no_node(void **state)
{
	node("a0", "10.77.0.2", "1");
	assert_int_equal(tree_addresses_check(&tree, &why), 0);
	node("a1", "127.0.0.1", "2");
	assert_int_equal(tree_addresses_check(&tree, &why), -EINVAL);
	assert_string_equal(why.text,
			    "tree: node a1: every machine has 127.0.0.1: name the address "
			    "by which others reach this one");
	prepare(NULL);
	node("a0", "127.255.0.9", "1");
	assert_int_equal(tree_addresses_check(&tree, &why), -EINVAL);
	prepare(NULL);
	node("a0", "::1", "1");
	assert_int_equal(tree_addresses_check(&tree, &why), -EINVAL);
	prepare(NULL);
	node("a0", "128.0.0.1", "1");
	node("a1", "126.0.0.1", "2");
	node("a2", "::2", "3");
	assert_int_equal(tree_addresses_check(&tree, &why), 0);
}

static void a_tree_has_no_more_levels_than_results_come_down(void **state)
{
	for (unsigned int i = 0; i <= TALLY_LEVELS_MAX; i++) {
		char name[16], address[16], ranks[16];

		assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0);
		snprintf(name, sizeof(name), "a%u", i);
		snprintf(address, sizeof(address), "10.77.0.%u", i + 2);
		snprintf(ranks, sizeof(ranks), "%u-11", i);
		node(name, address, ranks);
	}
	refused("tree: node a7 is at level 8 below the root, and results come down 7 levels: "
		"leave a node above it out");
}

/* b0 has a0 and a1 below; the order in which they are named does not matter. */
static void three_levels(void)
{
	node("a0", "10.77.0.2", "0-1");
	node("b0", "10.77.0.3", "0-4");
	node("c0", "10.77.0.4", "8-9");
	node("a1", "10.77.0.5", "2-3");
	assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0);
}

static void nodes_are_below_those_that_have_all_their_ranks(void **state)
{
	struct installation_role role;

	three_levels();
	tree_role(&tree, TREE_ROOT, &role);
	assert_true(role.root);
	assert_int_equal(role.vias, 2);
	assert_true(endpoint_is_equal(&role.via[0].address, &tree.node[1].address));
	assert_true(endpoint_is_equal(&role.via[1].address, &tree.node[2].address));
	tree_role(&tree, 1, &role);
	assert_false(role.root);
	assert_int_equal(role.vias, 2);
	assert_true(endpoint_is_equal(&role.via[0].address, &tree.node[0].address));
	assert_true(endpoint_is_equal(&role.via[1].address, &tree.node[3].address));
	tree_role(&tree, 0, &role);
	assert_int_equal(role.vias, 0);
	assert_int_equal(ranks_count(&role.below), 2);
	assert_int_equal(tree_find(&tree, "c0", &why), 2);
	assert_int_equal(tree_find(&tree, "d0", &why), -ENOENT);
	assert_string_equal(why.text, "the job has no inner node d0; it has a0 b0 c0 a1");
}

static void a_document_says_what_its_node_has_to_do(void **state)
{
	struct installation_role role, same;
	struct document d;
	struct run there;

	three_levels();
	document_make(&tree, 1, "train", &run, &d);
	assert_int_equal(document_check(&d, &why), 0);
	assert_string_equal(d.job, "train");
	assert_string_equal(d.node, "b0");
	assert_int_equal(d.ranks, 1);
	assert_int_equal(d.rank[0].rank, 4);
	assert_int_equal(d.nodes, 2);
	assert_string_equal(d.below[1].name, "a1");
	document_role(&d, &role);
	tree_role(&tree, 1, &same);
	assert_memory_equal(&role, &same, sizeof(role));
	document_run(&d, &there);
	assert_int_equal(there.job, 9);
	assert_int_equal(there.epoch, 3);
	assert_int_equal(there.window, 64);
	assert_int_equal(there.payload_bytes, 128);
	assert_int_equal(there.workers, WORKERS);
	assert_true(endpoint_is_equal(&there.service, &service));
	assert_true(endpoint_is_equal(&there.worker[4], &run.worker[4]));
	assert_int_equal(there.worker[0].ss_family, 0); /* is none of its business */
}

static void keys_draw(void)
{
	run.keys = WORKERS;
	for (unsigned int i = 0; i < WORKERS; i++)
		run.key[i] = (struct tally_key){ { 0x100 + i, i } };
	run.node_key = (struct tally_key){ { 0x200, 1 } };
}

/* And no others: who reads the document of one node cannot speak for ranks of another one. */
static void a_document_has_the_keys_that_its_node_needs(void **state)
{
	static struct document d;
	static struct run there;
	static struct installation g;
	struct installation_role role;
	const struct tally_key zeros = { { 0 } };

	three_levels();
	keys_draw();
	for (unsigned int i = 0; i < tree.nodes; i++) {
		document_make(&tree, i, "train", &run, &d);
		assert_int_equal(document_check(&d, &why), 0);
		assert_int_equal(d.keys, ranks_count(&tree.node[i].ranks) + 1);
		document_run(&d, &there);
		document_run_keys(&d, &there);
		assert_int_equal(there.keys, WORKERS);
		for (unsigned int rank = 0; rank < WORKERS; rank++) {
			bool comes = tally_set_has(&tree.node[i].ranks, rank);

			assert_memory_equal(&there.key[rank], comes ? &run.key[rank] : &zeros,
					    sizeof(zeros));
		}
		assert_memory_equal(&there.node_key, &run.node_key, sizeof(zeros));
		document_role(&d, &role);
		assert_int_equal(installation_plan(&there, &role, &g, &why), 0);
		assert_true(g.job.keyed && g.node_key);
		assert_true(endpoint_is_equal(&g.address, &tree.node[i].address));
	}
}

/* Through JSON and back, as from one agent to the other. */
static void written_and_read(const struct document *d, struct document *ret)
{
	static const struct keys_style style = { .missing = "%s",
						 .strict_lists = true,
						 .complete = true };
	struct reading reading = { &style, "f", NULL, why.text, sizeof(why.text) };
	json_t *json = keys_json_make(&document_keys, d);
	struct value *root = NULL;

	assert_non_null(json);
	assert_int_equal(keys_json_tree(json, &root), 0);
	memset(ret, 0, sizeof(*ret));
	if (keys_take_root(&reading, root, &document_keys, ret, NULL) < 0)
		fail_msg("%s", why.text);
	value_free(root);
	json_decref(json);
}

static void a_document_is_read_as_it_was_written(void **state)
{
	static struct document d, again;
	struct tally_set *odd;

	three_levels();
	for (unsigned int i = 0; i < 2 * tree.nodes; i++) {
		if (i == tree.nodes)
			keys_draw();
		document_make(&tree, i % tree.nodes, "train", &run, &d);
		written_and_read(&d, &again);
		assert_memory_equal(&d, &again, sizeof(d));
		assert_true(document_is_equal(&d, &again));
		again.key[0].word[0] ^= 1;
		assert_true(document_is_equal(&d, &again) == !again.keys);
		again.rank[0].rank ^= 1;
		assert_true(!again.ranks || !document_is_equal(&d, &again));
	}
	/* the longest text of ranks that there is */
	document_make(&tree, 1, "train", &run, &d);
	odd = &d.below[0].ranks;
	*odd = (struct tally_set){ { 0 } };
	for (unsigned int rank = 1; rank < TALLY_WORKERS_MAX; rank += 2)
		tally_set_add(odd, rank);
	written_and_read(&d, &again);
	assert_memory_equal(&d, &again, sizeof(d));
}

static void no_document(const struct document *d, const char *words)
{
	assert_int_equal(document_check(d, &why), -EINVAL);
	assert_string_equal(why.text, words);
}

static void documents_that_make_no_sense_are_refused(void **state)
{
	static struct document good, d;

	three_levels();
	document_make(&tree, 1, "train", &run, &good);
	d = good;
	d.ranks = d.nodes = 0;
	no_document(&d, "document: it names neither ranks nor nodes below node b0");
	d = good;
	d.address = d.root;
	no_document(&d, "document: address and root must be of one family, and of two nodes");
	d = good;
	d.rank[0].rank = WORKERS;
	no_document(&d, "document: ranks 12: the job has ranks 0 to 11");
	d.rank[0].rank = 3;
	no_document(&d, "document: ranks 2-3: a rank is named twice");
	d = good;
	d.rank[0].address = address_of("[fd77::4]:7", 0);
	no_document(&d, "document: ranks 4: the root's address is IPv4, and theirs is not");
	d = good;
	d.below[1].ranks = d.below[0].ranks;
	no_document(&d, "document: ranks 0-1: a rank is named twice");
	d = good;
	d.below[1].address = d.below[0].address;
	no_document(&d, "document: node a1 has the address of a0");
	d.below[1].address = d.root;
	no_document(&d, "document: node a1 has the address of the root");
	d.below[1].address = d.address;
	no_document(&d, "document: node a1 has the address of b0");
	keys_draw();
	document_make(&tree, 1, "train", &run, &d);
	d.keys--;
	no_document(&d, "document: 5 keys: those of 5 ranks and that of the nodes are 6, or there "
			"are none");
	d.keys++;
	memset(&d.key[5], 0, sizeof(d.key[5]));
	no_document(&d, "document: a key is missing, the one at 5");
}

/* An agent of before took such documents: what its state file has is read. */
static void no_ranks(const struct document *d, const char *words)
{
	assert_int_equal(document_check(d, &why), 0);
	assert_int_equal(document_check_ranks(d, &why), -EINVAL);
	assert_string_equal(why.text, words);
}

static void a_rank_is_at_no_node(void **state)
{
	static struct document good, d;

	three_levels();
	document_make(&tree, 1, "train", &run, &good);
	assert_int_equal(document_check_ranks(&good, &why), 0);
	d = good;
	d.rank[0].address = d.address;
	no_ranks(&d, "document: rank 4 has the address of b0");
	endpoint_port_set(&d.rank[0].address, 40000); /* whatever its port */
	no_ranks(&d, "document: rank 4 has the address of b0");
	d.rank[0].address = d.root;
	no_ranks(&d, "document: rank 4 has the address of the root");
	d.rank[0].address = d.below[1].address;
	no_ranks(&d, "document: rank 4 has the address of a1");
	d = good;
	endpoint_port_set(&d.rank[0].address, TALLY_UDP_PORT);
	no_ranks(&d, "document: rank 4 is at port 31249, which is that of nodes");
}

static void a_node_is_no_child_of_its_own(void **state)
{
	static struct document d;
	struct sockaddr_storage own = address_of("10.78.0.3", TALLY_UDP_PORT);

	three_levels();
	document_make(&tree, 1, "train", &run, &d);
	assert_int_equal(document_check(&d, &why), 0);
	assert_int_equal(document_check_own(&d, &own, &why), 0);
	d.below[1].address = own;
	assert_int_equal(document_check_own(&d, &own, &why), -EINVAL);
	assert_string_equal(why.text, "document: a1 below node b0 is at 10.78.0.3, the node's "
				      "own address");
	document_make(&tree, 1, "train", &run, &d);
	d.rank[0].address = own;
	endpoint_port_set(&d.rank[0].address, 40000);
	assert_int_equal(document_check_own(&d, &own, &why), -EINVAL);
}

static uint32_t random_below(uint64_t *seed, uint32_t below)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*seed >> 33) % below;
}

/* Parts of parts of the ranks, each with a node. */
static void random_tree(uint64_t *seed, unsigned int first, unsigned int count)
{
	char name[16], address[32], ranks[16];

	for (unsigned int at = first; at < first + count && tree.nodes < TREE_NODES_MAX;) {
		unsigned int some = 1 + random_below(seed, first + count - at);

		if (random_below(seed, 3) && some < count) {
			snprintf(name, sizeof(name), "n%u", tree.nodes);
			snprintf(address, sizeof(address), "10.77.9.%u", 1 + tree.nodes);
			snprintf(ranks, sizeof(ranks), "%u-%u", at, at + some - 1);
			node(name, address, ranks);
			random_tree(seed, at, some);
		}
		at += some;
	}
}

/* From a node down to the worker, by what each node is told; returns how many copies are made. */
static unsigned int follow(int at, unsigned int rank)
{
	static struct installation g;
	struct installation_role role;
	unsigned int reached = 0;

	tree_role(&tree, at, &role);
	assert_int_equal(installation_plan(&run, &role, &g, &why), 0);
	for (unsigned int i = 0; i < g.copies; i++) {
		const struct tally_set ranks = installation_ranks(&role, WORKERS, i);
		unsigned int next = 0;

		assert_true(tally_set_is_equal(&g.copy[i].below, &ranks));
		if (!tally_set_has(&g.copy[i].below, rank))
			continue;
		reached++;
		while (next < tree.nodes &&
		       !endpoint_is_equal(&tree.node[next].address, &g.copy[i].address))
			next++;
		if (next < tree.nodes)
			return reached + follow((int)next, rank);
		assert_true(endpoint_is_equal(&g.copy[i].address, &run.worker[rank]));
	}
	assert_int_equal(reached, 1);
	return reached;
}

/* Whatever the tree: down its nodes each rank is reached once, by as many hops as it has nodes. */
static void every_rank_is_reached_in_any_tree(void **state)
{
	uint64_t seed = 1;
	unsigned int deepest = 0;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		prepare(NULL);
		random_tree(&seed, 0, WORKERS);
		assert_int_equal(tree_check(&tree, WORKERS, &service, &why), 0);
		for (unsigned int rank = 0; rank < WORKERS; rank++) {
			unsigned int above = 1, hops = follow(TREE_ROOT, rank);

			for (unsigned int k = 0; k < tree.nodes; k++)
				above += tally_set_has(&tree.node[k].ranks, rank);
			assert_int_equal(hops, above);
			deepest = hops > deepest ? hops : deepest;
		}
	}
	assert_true(deepest > 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, prepare)
	const struct CMUnitTest tests[] = {
		TEST(trees_that_make_no_sense_are_refused),
		TEST(an_address_that_every_machine_has_names_no_node),
		TEST(a_tree_has_no_more_levels_than_results_come_down),
		TEST(nodes_are_below_those_that_have_all_their_ranks),
		TEST(a_document_says_what_its_node_has_to_do),
		TEST(a_document_has_the_keys_that_its_node_needs),
		TEST(a_document_is_read_as_it_was_written),
		TEST(documents_that_make_no_sense_are_refused),
		TEST(a_rank_is_at_no_node),
		TEST(a_node_is_no_child_of_its_own),
		TEST(every_rank_is_reached_in_any_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
