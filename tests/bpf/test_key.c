// SPDX-License-Identifier: GPL-2.0-only
/*
 * Jobs with rank keys, and jobs whose ranks are bound to their addresses: the node takes what a
 * rank made with its own key, and what comes from where the rank is, and nothing else. Each
 * forgery is also shown to work where a job has neither. Copies: test_fanout.c.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define fact(name) cmocka_unit_test_setup(name, node_reset)

/* `key` of a message whose sender has its own. */
#define own(rank) .worker = (rank), .key = (rank) + 1

static struct tally_rank place_of(__u32 rank, bool ipv6, __u32 port)
{
	struct tally_rank place = { .port = port };

	if (ipv6)
		worker_ip6(rank, (__u8 *)place.ip6);
	else
		place.ip4 = worker_ip4(rank);
	return place;
}

/* Two workers without keys, each with its address. */
static struct node *bound(void **state, bool ipv6, __u32 port)
{
	for (__u32 rank = 0; rank < 2; rank++)
		rank_put(*state, JOB, rank, place_of(rank, ipv6, port));
	job_put(*state, JOB, root_job(.ipv6 = ipv6, .bound = 1));
	return *state;
}

/* Two workers, each with its key. */
static struct node *keyed(void **state)
{
	job_put_keyed(*state, JOB, root_job());
	return *state;
}

static void assert_untouched(struct node *node, const struct tally_slot before[SLOTS])
{
	struct tally_slot *now = calloc(SLOTS, sizeof(*now));

	slots_read(node, now);
	assert_memory_equal(now, before, SLOTS * sizeof(*now));
	free(now);
}

static void ranks_with_their_keys_are_summed(void **state)
{
	struct node *node = keyed(state);
	struct sent out;

	expect(node, contribution(own(0), .value = 40), TALLY_ABSORBED, NULL);
	expect(node, contribution(own(1), .value = 2), TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static void who_has_not_the_key_forges_nothing(void **state)
{
	const struct message forgeries[] = {
		contribution(.worker = 0, .value = 1), /* made without a key */
		contribution(.worker = 0, .value = 1, .key = 2),
		contribution(.worker = 0, .value = 1, .key = 1, .spoilt = 1),
		contribution(.worker = 0, .value = 1, .flags = TALLY_FLUSH),
		contribution(.worker = 0, .value = 1, .flags = TALLY_FLUSH | TALLY_REJECT),
		contribution(.worker = 0, .value = 1, .call = 9),
		contribution(.worker = 0, .value = 1, .seq = 60000),
		repair(.worker = 0, .set = { { 3 } }, .value = 666),
		repair(.worker = 0, .set = { { 3 } }, .value = 666, .key = 2),
	};
	struct tally_slot *before = calloc(SLOTS, sizeof(*before));
	struct node *node = keyed(state);

	expect(node, contribution(own(1), .value = 2), TALLY_ABSORBED, NULL);
	slots_read(node, before);
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(*forgeries); i++)
		expect(node, forgeries[i], TALLY_FORGED, NULL);
	assert_untouched(node, before);
	free(before);
}

/* The control: this is what rank keys are for. */
static void without_keys_anybody_forges(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 1, .value = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .call = 9), TALLY_CONFLICT, NULL);
	expect(*state, repair(.worker = 0, .set = { { 3 } }, .value = 666), TALLY_REPAIRED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_ANSWERED, &out);
	assert_sum(&out, 666);
	expect(*state, contribution(.worker = 0, .seq = 60000), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_BEHIND, NULL);
}

/* Rank 1 has its own key, and no other. */
static void no_rank_speaks_for_another(void **state)
{
	struct node *node = keyed(state);

	expect(node, contribution(.worker = 0, .key = 2), TALLY_FORGED, NULL);
	expect(node, contribution(own(1), .set = { { 1 } }), TALLY_FORGED, NULL);
	expect(node, message(.kind = TALLY_CONTRIBUTION, .set = { { 1 } }, .key = 2), TALLY_FORGED,
	       NULL);
	expect(node, repair(.worker = 0, .set = { { 3 } }, .key = 2), TALLY_FORGED, NULL);
	expect(node, repair(own(1), .set = { { 3 } }), TALLY_REPAIRED, NULL);
}

/* What a rank says for itself and another one, by any key that somebody has. */
static void expect_of_several(struct node *node, enum tally_outcome by_node_key)
{
	const int keys[] = { 0, 1, 2, TALLY_NODE_KEY + 1 };

	for (int i = 0; i < 4; i++)
		for (int worker = 0; worker < 2; worker++)
			expect(node,
			       contribution(.worker = worker, .set = { { 3 } }, .key = keys[i]),
			       i < 3 ? TALLY_FORGED : by_node_key, NULL);
	expect(node,
	       message(.kind = TALLY_CONTRIBUTION, .set = { { 3 } }, .key = TALLY_NODE_KEY + 1),
	       TALLY_FORGED, NULL); /* of no rank */
}

static void without_a_node_key_nobody_speaks_for_several(void **state)
{
	const struct tally_key zeros = { { 0 } };
	struct node *node = keyed(state);

	expect_of_several(node, TALLY_FORGED);
	rank_key_put(node, JOB, TALLY_NODE_KEY, key_of(TALLY_NODE_KEY));
	expect_of_several(node, TALLY_FORGED);
	rank_key_put(node, JOB, TALLY_NODE_KEY, zeros);
}

/* The control: so it would be, if the sender's own key were enough for all that it is in. */
static void without_keys_one_speaks_for_all(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 1, .set = { { 1 } }, .value = 666), TALLY_COMPLETED,
	       &out);
	assert_sum(&out, 666);
}

static void with_the_node_key_alone_one_speaks_for_several(void **state)
{
	job_put_keyed(*state, JOB, inner_job(.node_key = 1, .slot_mask = 0, .borrows = 1));
	expect_of_several(*state, TALLY_PASSED_UP);
	expect(*state, contribution(own(0)), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 0, .key = TALLY_NODE_KEY + 1), TALLY_FORGED, NULL);
}

/* Where sums go on to the root, it alone is heard: it is a node, and no rank. */
static void what_comes_down_has_the_node_key(void **state)
{
	const struct tally_set all = { { 0xf } };
	const int keys[] = { 0, 1, 2 };

	job_put_keyed(*state, JOB,
		      inner_job(.below = all, .node_key = 1, .slot_mask = 0, .borrows = 1));
	for (int i = 0; i < 3; i++) {
		expect(*state, result(.set = all, .key = keys[i]), TALLY_FORGED, NULL);
		expect(*state, ask(.set = all, .key = keys[i]), TALLY_FORGED, NULL);
		/* a mismatch names a rank, and is not of it */
		expect(*state, message(.kind = TALLY_MISMATCH, .worker = 1, .key = keys[i]),
		       TALLY_FORGED, NULL);
		expect(*state, repair(.worker = 2, .set = all, .key = keys[i]), TALLY_FORGED, NULL);
	}
	expect(*state, result(.set = all, .key = TALLY_NODE_KEY + 1), TALLY_SENT_DOWN, NULL);
	expect(*state, repair(own(2), .set = all), TALLY_PASSED_UP, NULL);
	expect(*state, repair(.worker = 2, .set = all, .key = TALLY_NODE_KEY + 1), TALLY_FORGED,
	       NULL);
}

static struct tally_rank node_at(const char *ip4)
{
	return (struct tally_rank){ .key = key_of(TALLY_NODE_KEY), .ip4 = inet_addr(ip4) };
}

/* An inner node of ranks 0 and 1, with their keys and that of nodes; ranks 2 and 3 come elsewhere.
 */
static struct node *inner_keyed(void **state)
{
	const struct tally_key zeros = { { 0 } };

	job_put_keyed(*state, JOB, inner_job(.node_key = 1));
	for (__u32 rank = 2; rank < TALLY_WORKERS_MAX; rank++)
		rank_key_put(*state, JOB, rank, zeros);
	return *state;
}

static void a_sum_that_goes_up_has_the_node_key(void **state)
{
	struct node *node = inner_keyed(state);
	struct sent out;

	expect(node, contribution(.worker = 0, .key = 2), TALLY_FORGED, NULL);
	expect(node, contribution(.worker = 0, .key = TALLY_NODE_KEY + 1), TALLY_FORGED, NULL);
	expect(node, contribution(own(0), .value = 40), TALLY_ABSORBED, NULL);
	expect(node, contribution(own(1), .value = 2), TALLY_SENT_UP, &out);
	assert_sum(&out, 42);
	assert_int_equal(out.key, TALLY_NODE_KEY + 1);
	expect(node, contribution(own(1), .value = 2), TALLY_SENT_UP, &out);
	assert_sum(&out, 42);
	assert_int_equal(out.key, TALLY_NODE_KEY + 1);
	expect(node, contribution(own(0), .value = 40, .seq = 1), TALLY_ABSORBED, NULL);
	expect(node, contribution(own(0), .seq = 1, .flags = TALLY_FLUSH, .value = 40),
	       TALLY_FLUSHED_UP, &out);
	assert_int_equal(out.key, 1); /* of one rank: whoever sends it on has that rank's key */
	expect(node, repair(own(0), .set = { { 0xf } }), TALLY_PASSED_UP, NULL);
	expect(node, repair(.worker = 0, .set = { { 0xf } }, .key = 2), TALLY_FORGED, NULL);
}

/* As while the tree changes: the root judges, and no slot here hears of it. */
static void who_does_not_come_through_a_node_passes_it(void **state)
{
	struct tally_slot *before = calloc(SLOTS, sizeof(*before));
	struct node *node = inner_keyed(state);

	slots_read(node, before);
	for (int key = 0; key < 4; key++) {
		expect(node, contribution(.worker = 2, .key = key), TALLY_PASSED_UP, NULL);
		expect(node, contribution(.worker = 2, .key = key, .flags = TALLY_FLUSH),
		       TALLY_PASSED_UP, NULL);
		expect(node, repair(.worker = 2, .key = key, .set = { { 0xf } }), TALLY_PASSED_UP,
		       NULL);
		expect(node, contribution(.worker = 2, .set = { { 0x3 } }, .key = key),
		       TALLY_FORGED, NULL); /* a node's, says the set */
	}
	assert_untouched(node, before);
	free(before);
}

/* What only another node can verify, anybody may have sent: it costs the tenant nothing here. */
static void what_passes_unverified_costs_nothing(void **state)
{
	const struct tally_tenant limited = {
		.limited = 1,
		.packets = { .rate = 1, .burst = 1 << 20, .level = 1, .at_ns = ~0ULL },
	};
	struct node *node = inner_keyed(state);

	tenant_put(node, 5, limited);
	job_put_keyed(node, JOB, inner_job(.node_key = 1, .tenant = 5));
	expect(node, repair(.worker = 2, .set = { { 0xf } }), TALLY_PASSED_UP, NULL);
	expect(node, contribution(.worker = 2), TALLY_PASSED_UP, NULL);
	expect(node, repair(own(0), .set = { { 0xf } }), TALLY_PASSED_UP, NULL);
	expect(node, repair(own(0), .set = { { 0xf } }), TALLY_OVER_RATE, NULL);
}

/* To the node by the node key; to a worker by that worker's, which is none of the node's business.
 */
static void what_comes_down_is_for_the_node_or_passes(void **state)
{
	const struct tally_set all = { { 0xf } };
	struct node *node = inner_keyed(state);
	struct tally_rank here = node_at("10.77.0.2");

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		if (ipv6)
			here.ip6[3] = htonl(2);
		rank_put(node, JOB, TALLY_NODE_KEY, here);
		for (int key = 0; key < 3; key++) {
			expect(node, result(.ipv6 = ipv6, .set = all, .key = key),
			       TALLY_PASSED_DOWN, NULL);
			expect(node, ask(.ipv6 = ipv6, .set = all, .key = key), TALLY_PASSED_DOWN,
			       NULL);
		}
		here.ip4 = worker_ip4(TALLY_WORKERS_MAX - 1); /* as frames here are addressed */
		if (ipv6)
			worker_ip6(TALLY_WORKERS_MAX - 1, (__u8 *)here.ip6);
		rank_put(node, JOB, TALLY_NODE_KEY, here);
		for (int key = 0; key < 3; key++) {
			expect(node, result(.ipv6 = ipv6, .set = all, .key = key), TALLY_FORGED,
			       NULL);
			expect(node, ask(.ipv6 = ipv6, .set = all, .key = key), TALLY_FORGED, NULL);
		}
		expect(node, result(.ipv6 = ipv6, .set = all, .key = TALLY_NODE_KEY + 1),
		       TALLY_SENT_DOWN, NULL);
		expect(node, message(.kind = TALLY_OVERTAKEN, .blocks = 0, .ipv6 = ipv6, .key = 1),
		       TALLY_PASSED_DOWN, NULL);
	}
}

/* Also without keys: what is for another node, this one does not take in. */
static void what_comes_down_untagged_is_for_the_node_or_passes(void **state)
{
	const struct tally_set all = { { 0xf } };
	struct tally_rank here = { .ip4 = inet_addr("10.77.0.2") };
	struct node *node = *state;

	job_put(node, JOB, inner_job());
	expect(node, result(.set = all), TALLY_SENT_DOWN, NULL); /* it has no address: by hand */
	rank_put(node, JOB, TALLY_NODE_KEY, here);
	expect(node, result(.set = all), TALLY_PASSED_DOWN, NULL);
	expect(node, ask(.set = all), TALLY_PASSED_DOWN, NULL);
	expect(node, message(.kind = TALLY_MISMATCH, .worker = 1), TALLY_PASSED_DOWN, NULL);
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	expect(node, repair(.worker = 0, .set = all), TALLY_PASSED_UP, NULL);
	here.ip4 = worker_ip4(TALLY_WORKERS_MAX - 1); /* as frames here are addressed */
	rank_put(node, JOB, TALLY_NODE_KEY, here);
	expect(node, result(.set = all), TALLY_SENT_DOWN, NULL);
	expect(node, ask(.set = all), TALLY_SENT_DOWN, NULL);
	worker_ip6(TALLY_WORKERS_MAX - 1, (__u8 *)here.ip6);
	rank_put(node, JOB, TALLY_NODE_KEY, here);
	expect(node, result(.ipv6 = true, .set = all), TALLY_SENT_DOWN, NULL);
	here.ip6[3] ^= htonl(1);
	rank_put(node, JOB, TALLY_NODE_KEY, here);
	expect(node, result(.ipv6 = true, .set = all), TALLY_PASSED_DOWN, NULL);
}

/* The map holds zeros where no rank is; behind the last rank come those of the next job. */
static void a_rank_that_is_not_there_has_no_key(void **state)
{
	const struct tally_key zeros = { { 0 } };
	struct node *node = keyed(state);
	struct frame frame;

	for (int rank = 2; rank < 2 * TALLY_WORKERS_MAX; rank++) {
		struct message m = repair(.worker = NOBODY, .set = { { 3 } }, .value = 666);
		const __u32 at = frame_headers_bytes(m);
		struct tally_header h;

		rank_key_put(node, JOB, rank, zeros);
		frame_write(m, &frame);
		memcpy(&h, frame.data + at, sizeof(h));
		h.sender = tally_le16(rank);
		h.tag = tally_le64(tally_keyed_tag(&h, &m.set, &zeros));
		memcpy(frame.data + at, &h, sizeof(h));
		expect_frame(node, &frame, TALLY_FORGED, NULL);
	}
}

/* `m` as it would come from the address of rank `at`. */
static void expect_from(struct node *node, struct message m, __u32 at, enum tally_outcome outcome)
{
	const __be32 ip4 = worker_ip4(at);
	struct frame frame;

	frame_write(m, &frame);
	if (m.ipv6)
		worker_ip6(at,
			   frame.data + sizeof(struct ethhdr) + offsetof(struct ipv6hdr, saddr));
	else
		memcpy(frame.data + sizeof(struct ethhdr) + offsetof(struct iphdr, saddr), &ip4,
		       sizeof(ip4));
	expect_frame(node, &frame, outcome, NULL);
}

static void a_bound_rank_is_at_its_address(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct node *node = bound(state, ipv6, 0);
		const struct message forgeries[] = {
			contribution(.worker = 0, .ipv6 = ipv6),
			contribution(.worker = 0, .ipv6 = ipv6, .flags = TALLY_FLUSH),
			contribution(.worker = 0, .ipv6 = ipv6, .seq = 60000),
			repair(.worker = 0, .ipv6 = ipv6, .set = { { 3 } }),
		};

		for (size_t i = 0; i < sizeof(forgeries) / sizeof(*forgeries); i++)
			for (__u32 at = 1; at < 4; at++)
				expect_from(node, forgeries[i], at, TALLY_FORGED);
		/* Rank 1 for both; and a message of no rank. */
		expect(node, contribution(.worker = 1, .ipv6 = ipv6, .set = { { 1 } }),
		       TALLY_FORGED, NULL);
		expect(node, message(.kind = TALLY_CONTRIBUTION, .ipv6 = ipv6, .set = { { 1 } }),
		       TALLY_FORGED, NULL);
		expect(node, contribution(.worker = 0, .ipv6 = ipv6), TALLY_ABSORBED, NULL);
		expect(node, contribution(.worker = 1, .ipv6 = ipv6), TALLY_COMPLETED, NULL);
		expect(node, repair(.worker = 1, .ipv6 = ipv6, .seq = 1, .set = { { 3 } }),
		       TALLY_REPAIRED, NULL);
		node_reset(state);
	}
}

/* A port that is none of the node's says nothing: frames of a bond come in by what it is made of.
 */
static void a_bound_rank_comes_in_by_its_port(void **state)
{
	struct node *node = bound(state, false, LOOPBACK + 1);

	at_port_put(node, LOOPBACK);
	expect(node, contribution(.worker = 0), TALLY_FORGED, NULL);
	node_reset(state);
	bound(state, false, LOOPBACK + 1);
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	bound(state, false, LOOPBACK);
	at_port_put(node, LOOPBACK);
	expect(node, contribution(.worker = 1), TALLY_COMPLETED, NULL);
}

/* With the key of rank 0 and from elsewhere, as whoever sends again what rank 0 has sent. */
static void a_rank_with_a_key_may_be_bound_too(void **state)
{
	struct node *node = *state;

	for (__u32 rank = 0; rank < 2; rank++) {
		struct tally_rank r = place_of(rank, false, 0);

		r.key = key_of(rank);
		rank_put(node, JOB, rank, r);
	}
	job_put(node, JOB, root_job(.keyed = 1, .bound = 1));
	expect_from(node, contribution(own(0)), 1, TALLY_FORGED);
	expect(node, contribution(.worker = 0), TALLY_FORGED, NULL);
	expect(node, contribution(own(0)), TALLY_ABSORBED, NULL);
}

/* The set of a contribution names another rank than its sender. */
static void a_sender_is_in_its_set_alone(void **state)
{
	struct node *node = keyed(state);
	struct message m = contribution(own(1));
	struct tally_header h;
	struct frame frame;
	const __u32 at = frame_headers_bytes(m);

	frame_write(m, &frame);
	memcpy(&h, frame.data + at, sizeof(h));
	h.set = tally_le64(1);
	memcpy(frame.data + at, &h, sizeof(h));
	frame_retag(m, &frame);
	expect_frame(node, &frame, TALLY_FORGED, NULL);
}

/* Other jobs and the same rank's other runs have other keys; an epoch is in the header. */
static void what_was_said_in_another_run_is_refused(void **state)
{
	const struct tally_key other = key_of(77);
	struct node *node = keyed(state);
	struct message before = contribution(own(0), .value = 9);

	rank_key_put(node, JOB, 0, other); /* another run of the same epoch */
	expect(node, before, TALLY_FORGED, NULL);
	before.epoch = EPOCH - 1;
	expect(node, before, TALLY_WRONG_EPOCH, NULL);
	rank_key_put(node, JOB, 0, key_of(0));
	job_put_keyed(node, OTHER_JOB, root_job(.slot_base = SLOTS_OF_JOB));
	rank_key_put(node, OTHER_JOB, 0, other);
	before = contribution(own(0), .value = 9);
	expect(node, before, TALLY_ABSORBED, NULL);
	before.job = OTHER_JOB;
	expect(node, before, TALLY_FORGED, NULL);
}

/* In small headers and large ones: whatever the node says of it, nothing came of it. */
static void no_flipped_bit_touches_a_slot(void **state)
{
	const struct tally_set many = { { 0x3, 1 } };
	struct tally_slot *before = calloc(SLOTS, sizeof(*before));
	struct node *node = keyed(state);

	for (int large = 0; large < 2; large++) {
		struct message m = contribution(own(0), .flags = large ? TALLY_LARGE : 0);
		__u32 from = 8 * frame_headers_bytes(m), bits = 8 * tally_header_bytes(m.flags);
		struct frame frame, out;

		if (large)
			job_put_keyed(node, JOB, root_job(.everyone = many, .below = many));
		frame_write(m, &frame);
		jobs_follow(node, &frame);
		slots_read(node, before);
		for (__u32 bit = from; bit < from + bits; bit++) {
			frame.data[bit / 8] ^= 1 << bit % 8;
			assert_return_code(node_run(node, &frame, &out), 0);
			frame.data[bit / 8] ^= 1 << bit % 8;
		}
		assert_untouched(node, before);
		expect_frame(node, &frame, TALLY_ABSORBED, NULL);
		node_reset(state);
	}
	free(before);
}

static void an_answer_is_made_with_the_key_of_who_asked(void **state)
{
	struct node *node = keyed(state);
	struct sent out;

	expect(node, contribution(own(0), .value = 40), TALLY_ABSORBED, NULL);
	expect(node, contribution(own(1), .value = 2), TALLY_COMPLETED, NULL);
	for (int rank = 0; rank < 2; rank++) {
		for (int ipv6 = 0; ipv6 < 2; ipv6++) {
			expect(node, contribution(own(rank), .ipv6 = ipv6), TALLY_ANSWERED, &out);
			assert_sum(&out, 42);
			assert_int_equal(out.key, rank + 1);
		}
	}
	expect(node, contribution(own(0), .seq = SLOTS_OF_JOB), TALLY_ABSORBED, NULL);
	expect(node, contribution(own(1)), TALLY_BEHIND, &out);
	assert_int_equal(out.key, 2);
}

/* Each rank of 256 has a key of its own, as far as the last one. */
static void every_rank_has_its_own_key(void **state)
{
	const struct tally_set all = tally_set_first(TALLY_WORKERS_MAX);
	struct node *node = *state;

	job_put_keyed(node, JOB, root_job(.everyone = all, .below = all));
	for (int rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		struct message m = contribution(own(rank), .flags = TALLY_LARGE, .value = 1);

		m.key = rank ? rank : 2;
		expect(node, m, TALLY_FORGED, NULL);
		m.key = rank + 1;
		expect(node, m, rank < TALLY_WORKERS_MAX - 1 ? TALLY_ABSORBED : TALLY_COMPLETED,
		       NULL);
	}
}

static const struct CMUnitTest tests[] = {
	fact(ranks_with_their_keys_are_summed),
	fact(who_has_not_the_key_forges_nothing),
	fact(without_keys_anybody_forges),
	fact(no_rank_speaks_for_another),
	fact(without_a_node_key_nobody_speaks_for_several),
	fact(without_keys_one_speaks_for_all),
	fact(with_the_node_key_alone_one_speaks_for_several),
	fact(what_comes_down_has_the_node_key),
	fact(a_sum_that_goes_up_has_the_node_key),
	fact(who_does_not_come_through_a_node_passes_it),
	fact(what_passes_unverified_costs_nothing),
	fact(what_comes_down_is_for_the_node_or_passes),
	fact(what_comes_down_untagged_is_for_the_node_or_passes),
	fact(a_sender_is_in_its_set_alone),
	fact(what_was_said_in_another_run_is_refused),
	fact(no_flipped_bit_touches_a_slot),
	fact(an_answer_is_made_with_the_key_of_who_asked),
	fact(every_rank_has_its_own_key),
	fact(a_bound_rank_is_at_its_address),
	fact(a_bound_rank_comes_in_by_its_port),
	fact(a_rank_with_a_key_may_be_bound_too),
	fact(a_rank_that_is_not_there_has_no_key),
};

int main(void)
{
	skip_unless_permitted();
	return cmocka_run_group_tests_name("key", tests, node_setup, node_teardown) +
	       cmocka_run_group_tests_name("key by TC", tests, node_setup_tc, node_teardown);
}
