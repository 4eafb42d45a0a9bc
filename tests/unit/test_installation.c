// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A job on one node: who gets a copy, through which port, in which slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/installation.h"
#include "common/address.h"
#include "common/ranks.h"

static struct run file;
static struct installation_role role;
static struct installation group;
static struct why why;

static struct tally_set set_of(const char *ranks)
{
	struct tally_set s;

	assert_int_equal(ranks_parse(ranks, &s), 0);
	return s;
}

static void assert_ranks(const struct tally_set *s, const char *ranks)
{
	char text[RANKS_BYTES];

	ranks_print(s, text, sizeof(text));
	assert_string_equal(text, ranks);
}

static void assert_why_has(const char *words)
{
	if (!strstr(why.text, words))
		fail_msg("'%s' is not in '%s'", words, why.text);
}

/* Job 7 with `workers` workers 10.77.1.<rank>:<40000 + rank>; this node is its root. */
static int prepare(void **state)
{
	char text[16384];
	size_t n = sprintf(text, "job 7\nepoch 3\nwindow 64\npayload 128\nservice 10.77.0.1\n");

	for (unsigned int rank = 0; rank < 8; rank++)
		n += sprintf(text + n, "worker 10.77.1.%u:%u\n", rank, 40000 + rank);
	assert_int_equal(jobfile_parse(text, n, &file, why.text, sizeof(why.text)), 0);
	role = (struct installation_role){ .root = true };
	return 0;
}

static void via(const char *ranks, const char *address)
{
	struct installation_via *v = &role.via[role.vias++];

	v->ranks = set_of(ranks);
	assert_int_equal(address_parse(address, TALLY_UDP_PORT, &v->address), 0);
}

/* The caller's part: copy i leaves through port[i]. */
static void find_hops(const uint32_t *port, uint32_t mtu)
{
	for (unsigned int i = 0; i < group.copies; i++) {
		struct hop *h = &group.copy[i].hop;

		*h = (struct hop){ .port = port[i], .port_name = "eth0", .mtu = mtu };
		memset(h->mac, 0x10 + i, sizeof(h->mac));
		memset(h->port_mac, port[i], sizeof(h->port_mac));
	}
}

static void a_root_sends_every_worker_a_copy(void **state)
{
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_int_equal(group.id, 7);
	assert_int_equal(group.job.root, 1);
	assert_int_equal(group.job.epoch, 3);
	assert_int_equal(group.job.slot_mask, 127);
	assert_int_equal(group.job.blocks_max, 2);
	assert_ranks(&group.job.everyone, "0-7");
	assert_ranks(&group.job.below, "0-7");
	assert_int_equal(group.copies, 8);
	assert_int_equal(group.job.copies, 8);
	for (unsigned int rank = 0; rank < 8; rank++) {
		assert_int_equal(ranks_count(&group.copy[rank].below), 1);
		assert_true(tally_set_has(&group.copy[rank].below, rank));
		assert_memory_equal(&group.copy[rank].address, &file.worker[rank],
				    sizeof(file.worker[rank]));
	}
}

static void ranks_behind_a_child_node_share_one_copy(void **state)
{
	const struct sockaddr_in *node = (const void *)&group.copy[1].address;

	via("1,4-5", "10.77.0.2");
	via("7", "10.77.0.3");
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_int_equal(group.copies, 6);
	assert_int_equal(group.job.copies, 6);
	assert_ranks(&group.copy[0].below, "0");
	assert_ranks(&group.copy[1].below, "1,4-5");
	assert_ranks(&group.copy[2].below, "2");
	assert_ranks(&group.copy[5].below, "7");
	assert_int_equal(ntohs(node->sin_port), TALLY_UDP_PORT);
	assert_int_equal(ntohl(node->sin_addr.s_addr), 0x0a4d0002);
}

/* By which the data plane tells two jobs of one number; on inner nodes, too. */
static void a_job_has_its_service_address(void **state)
{
	static const char ipv6[] = "job 1\nservice fd77::1\nworker [fd77:1::1]:40000\n";
	uint8_t expected[16] = { 10, 77, 0, 1 };

	for (int root = 1; root >= 0; root--) {
		role.root = root;
		role.below = root ? role.below : set_of("2");
		assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
		assert_int_equal(group.job.ipv6, 0);
		assert_memory_equal(group.job.service, expected, 16);
	}
	role.root = true;
	assert_int_equal(jobfile_parse(ipv6, sizeof(ipv6) - 1, &file, NULL, 0), 0);
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	inet_pton(AF_INET6, "fd77::1", expected);
	assert_int_equal(group.job.ipv6, 1);
	assert_memory_equal(group.job.service, expected, 16);
}

static void an_inner_node_serves_only_those_below(void **state)
{
	role.root = false;
	role.below = set_of("2-3,6");
	via("3", "10.77.0.9");
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_int_equal(group.job.root, 0);
	assert_ranks(&group.job.everyone, "0-7");
	assert_ranks(&group.job.below, "2-3,6");
	assert_int_equal(group.copies, 3);
	assert_int_equal(group.job.copies, 3);
}

static void roles_that_contradict_the_job_are_refused(void **state)
{
	struct installation before = { .id = 99 };

	group = before;
	role.root = false;
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	role.below = set_of("7-8");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("--below 7-8: the job's ranks are 0-7");
	role.below = set_of("0-3");
	via("3-4", "10.77.0.2");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("--via 3-4: this node's ranks are 0-3");
	role.vias = 0;
	via("0-1", "10.77.0.2");
	via("1", "10.77.0.3");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("--via 1: a rank is behind one node only");
	role.vias = 0;
	via("0-1", "fd77::2");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("--via 0-1: the job uses IPv4, the address is IPv6");
	assert_memory_equal(&group, &before, sizeof(group));
}

static void no_node_knows_the_secret_of_the_workers(void **state)
{
	file.secrets = 1;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	file.secret[0].word[1] = 1;
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("no node may know it, so write 'secret -'");
}

static void a_root_has_the_keys_of_all_ranks(void **state)
{
	file.keys = 8;
	for (unsigned int i = 0; i < 7; i++)
		file.key[i].word[0] = i + 1;
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("the key of rank 7 is not known here");
	file.key[7].word[1] = 8;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_int_equal(group.job.keyed, 1);
	assert_memory_equal(group.key, file.key, sizeof(file.key));
	assert_false(group.node_key);
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(group.copy[i].key, i);
}

/* And the keys of the ranks below. A child node has the node key, also one with a single rank. */
static void the_nodes_of_a_tree_share_a_key(void **state)
{
	const struct tally_key node_key = { { 77, 78 } };

	file.keys = 8;
	for (unsigned int i = 2; i < 5; i++)
		file.key[i].word[0] = i + 1;
	role = (struct installation_role){ .below = set_of("2-5") };
	via("3", "10.77.0.3");
	via("4-5", "10.77.0.4");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("one node only");
	file.node_key = node_key;
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("the key of rank 5 is not known here");
	file.key[5].word[0] = 6;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_true(group.node_key);
	assert_int_equal(group.copies, 3);
	assert_int_equal(group.copy[0].key, 2);
	assert_int_equal(group.copy[1].key, TALLY_NODE_KEY);
	assert_int_equal(group.copy[2].key, TALLY_NODE_KEY);
	role = (struct installation_role){ .root = true };
	via("0-1", "10.77.0.2");
	assert_int_equal(installation_plan(&file, &role, &group, &why), -EINVAL);
	assert_why_has("the key of rank 0 is not known here");
}

/* Otherwise zeros would be a key that everybody knows. */
static void a_node_key_is_used_where_it_is_known_and_slots_are_borrowed(void **state)
{
	file.keys = 8;
	for (unsigned int i = 0; i < 8; i++)
		file.key[i].word[0] = i + 1;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	installation_borrow(&group);
	assert_int_equal(group.job.node_key, 0);
	file.node_key.word[1] = 9;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_true(group.node_key);
	assert_memory_equal(&group.key[TALLY_NODE_KEY], &file.node_key, sizeof(file.node_key));
	assert_int_equal(group.job.node_key, 0);
	installation_borrow(&group);
	assert_int_equal(group.job.node_key, 1);
	file.keys = 0;
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	assert_false(group.node_key);
}

static void a_child_has_the_address_of_its_worker(void **state)
{
	const struct tally_child *c = &group.copy[2].child;
	static const uint32_t port[8] = { 1, 1, 4 };

	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	find_hops(port, 1500);
	assert_int_equal(installation_address(&group, &why), 0);
	assert_ranks(&c->below, "2");
	assert_int_equal(c->ipv6, 0);
	assert_int_equal(ntohl(c->ip4), 0x0a4d0102);
	assert_int_equal(ntohs(c->udp_port), 40002);
	assert_memory_equal(c->mac, "\x12\x12\x12\x12\x12\x12", 6);
	assert_memory_equal(c->port_mac, "\4\4\4\4\4\4", 6);
}

static void an_ipv6_child_too(void **state)
{
	static const char text[] = "job 1\nservice fd77::1\nworker [fd77:1::1]:40000\n";
	static const uint32_t port[1] = { 2 };
	struct in6_addr address;

	assert_int_equal(jobfile_parse(text, sizeof(text) - 1, &file, NULL, 0), 0);
	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	find_hops(port, 1500);
	assert_int_equal(installation_address(&group, &why), 0);
	inet_pton(AF_INET6, "fd77:1::1", &address);
	assert_int_equal(group.copy[0].child.ipv6, 1);
	assert_memory_equal(group.copy[0].child.ip6, &address, 16);
	assert_int_equal(ntohs(group.copy[0].child.udp_port), 40000);
}

static void a_payload_must_fit_every_port(void **state)
{
	static const uint32_t port[8];

	assert_int_equal(installation_plan(&file, &role, &group, &why), 0);
	find_hops(port, 128 + 92);
	assert_int_equal(installation_address(&group, &why), 0);
	group.copy[7].hop.mtu--;
	assert_int_equal(installation_address(&group, &why), -EMSGSIZE);
	assert_why_has(
		"packets of 220 bytes, and eth0 has an MTU of 219: ip link set eth0 mtu 220");
}

#define TEST(f) cmocka_unit_test_setup(f, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_root_sends_every_worker_a_copy),
		TEST(ranks_behind_a_child_node_share_one_copy),
		TEST(a_job_has_its_service_address),
		TEST(an_inner_node_serves_only_those_below),
		TEST(roles_that_contradict_the_job_are_refused),
		TEST(a_root_has_the_keys_of_all_ranks),
		TEST(the_nodes_of_a_tree_share_a_key),
		TEST(a_node_key_is_used_where_it_is_known_and_slots_are_borrowed),
		TEST(no_node_knows_the_secret_of_the_workers),
		TEST(a_child_has_the_address_of_its_worker),
		TEST(an_ipv6_child_too),
		TEST(a_payload_must_fit_every_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
