// SPDX-License-Identifier: GPL-2.0-only
/*
 * Borrowed slots in the data plane: the rule is include/tally/borrowed.h, its facts are in
 * tests/unit/test_borrowed.c; here is what becomes of frames. A pool of one slot.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define fact(name) cmocka_unit_test_setup(name, two_jobs)

/* Of four workers, the first two come through here. */
#define borrowing_job(...) inner_job(.borrows = 1, __VA_ARGS__)

/* Both borrow, and results of the first come down here. */
static int two_jobs(void **state)
{
	node_reset(state);
	job_put(*state, JOB, borrowing_job(.copies = 2));
	job_put(*state, OTHER_JOB, borrowing_job(.group = 1, .copies = 2));
	return 0;
}

static bool is_free(struct node *node)
{
	return pool_read(node, 0).books.state.phase == TALLY_SLOT_FRESH;
}

/* Who has the slot. */
static void assert_holder(struct node *node, __u32 job, __u32 seq)
{
	struct tally_pool_slot slot = pool_read(node, 0);

	assert_int_not_equal(slot.books.state.phase, TALLY_SLOT_FRESH);
	assert_int_equal(slot.books.job, job);
	assert_int_equal(slot.books.state.seq, seq);
}

/* A sum of this job's chunk over the ranks of this mask. */
static void assert_of(const struct sent *sent, __u32 job, __u32 seq, __u64 ranks)
{
	assert_int_equal(sent->tally.kind, TALLY_CONTRIBUTION);
	assert_int_equal(tally_le32_get(sent->tally.job), job);
	assert_int_equal(tally_le16_get(sent->tally.epoch), EPOCH);
	assert_int_equal(tally_le32_get(sent->tally.seq), seq);
	assert_int_equal(sent->set.word[0], ranks);
}

/* It goes on as if this rank had sent it. */
static void assert_route(const struct sent *sent, __u32 rank)
{
	__u8 source[16], service[16];

	assert_int_equal(tally_le16_get(sent->tally.sender), rank);
	assert_int_equal(ntohs(sent->udp.source), UDP_PORT_OF_RANK_0 + rank);
	assert_int_equal(ntohs(sent->udp.dest), TALLY_UDP_PORT);
	if (!sent->ipv6) {
		assert_int_equal(sent->ip4.saddr, worker_ip4(rank));
		assert_int_equal(sent->ip4.daddr, service_ip4());
		return;
	}
	worker_ip6(rank, source);
	service_ip6(service);
	assert_memory_equal(&sent->ip6.saddr, source, sizeof(source));
	assert_memory_equal(&sent->ip6.daddr, service, sizeof(service));
}

/* --- a node without a pool */

static void without_a_pool_all_goes_on_to_the_root(void **state)
{
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
	assert_int_equal(slot_read(*state, 0).state.phase, TALLY_SLOT_FRESH);
}

static void without_a_pool_results_come_down(void **state)
{
	expect(*state, result(.set = tally_set_first(4), .value = 3), TALLY_SENT_DOWN, NULL);
}

static const struct CMUnitTest without_a_pool[] = {
	fact(without_a_pool_all_goes_on_to_the_root),
	fact(without_a_pool_results_come_down),
};

/* --- any policy */

static void a_whole_sum_goes_on_and_its_slot_is_free(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .seq = 5, .value = 40), TALLY_ABSORBED, NULL);
	assert_holder(*state, JOB, 5);
	expect(*state, contribution(.worker = 0, .seq = 5, .value = 40), TALLY_DUPLICATE, NULL);
	expect(*state, contribution(.worker = 1, .seq = 5, .value = 2), TALLY_SENT_UP, &out);
	assert_sum(&out, 42);
	assert_of(&out, JOB, 5, 3);
	assert_route(&out, 1);
	assert_true(is_free(*state));
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB), TALLY_ABSORBED, NULL);
}

static void a_contribution_that_met_congestion_marks_the_sum(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .ecn = 3), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .ecn = 2), TALLY_SENT_UP, &out);
	assert_int_equal(out.tally.flags, TALLY_MARKED);
	expect(*state, contribution(.worker = 0, .seq = 1, .ecn = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .seq = 1, .ecn = 2), TALLY_SENT_UP, &out);
	assert_int_equal(out.tally.flags, 0);
}

/* The last contribution is without payload: the frame becomes longer. */
static void a_frame_grows_for_the_sum(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .value = 40, .blocks = 3), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .blocks = 0), TALLY_SENT_UP, &out);
	assert_int_equal(out.tally.blocks, 3);
	assert_sum(&out, 40);
	assert_true(is_free(*state));
}

/* Only what is as long as this ends before the sum does: larger pages leave room behind it. */
static bool frames_have_ends(void) { return sysconf(_SC_PAGESIZE) == 4096; }

#define longest(...) contribution(.worker = 0, .blocks = TALLY_BLOCKS_MAX, .value = 42, __VA_ARGS__)
#define too_short(...) \
	contribution(.worker = 1, .blocks = 0, .ipv6 = true, .vlan = ETH_P_8021Q, __VA_ARGS__)

/*
 * A frame that cannot grow for the sum is lost. If it went on alone, the root would have its rank,
 * and drop the sum that has the rank, too: until all flush, long after.
 */
static void what_is_too_short_for_the_sum_does_not_go_on_beside_it(void **state)
{
	struct sent out;

	if (!frames_have_ends())
		skip();
	for (int copies = 0; copies < 2; copies++) {
		job_put(*state, JOB, borrowing_job(.copies = copies));
		expect(*state, longest(.seq = 8 + copies), TALLY_ABSORBED, NULL);
		expect(*state, too_short(.seq = 8 + copies), TALLY_NO_ROOM, &out);
		assert_int_equal(out.tally.kind, TALLY_ASK);
		assert_int_equal(out.tally.blocks, 0);
		assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
		assert_int_equal(out.set.word[0], 0xf);
		expect(*state, longest(.seq = 8 + copies), TALLY_SENT_UP, &out);
		assert_sum(&out, 42);
		assert_int_equal(out.set.word[0], 3);
	}
}

enum {
	HOPS_OF_NODES = 64,
};

/* As all that goes down: not from the rank whose frame it leaves in. */
static void assert_is_from_the_service(const struct sent *out)
{
	__u8 service[16];

	assert_int_equal(ntohs(out->udp.source), TALLY_UDP_PORT);
	if (out->ipv6) {
		service_ip6(service);
		assert_memory_equal(&out->ip6.saddr, service, sizeof(service));
		assert_int_equal(out->ip6.hop_limit, HOPS_OF_NODES);
		return;
	}
	assert_int_equal(out->ip4.saddr, service_ip4());
	assert_int_equal(out->ip4.ttl, HOPS_OF_NODES);
}

static void an_ask_for_longer_frames_is_from_the_service_address(void **state)
{
	struct message last = contribution(.worker = 1, .blocks = 0, .flags = TALLY_LARGE);
	struct tally_pool_slot slot;
	struct sent out;

	if (!frames_have_ends())
		skip();
	expect(*state, longest(), TALLY_ABSORBED, NULL);
	expect(*state, too_short(), TALLY_NO_ROOM, &out);
	assert_true(out.ipv6);
	assert_is_from_the_service(&out);
	/* Over IPv4 the longest sum of a large job has no room, and could not come in either. */
	two_jobs(state);
	job_put(*state, JOB, borrowing_job(.everyone = tally_set_first(200)));
	expect(*state, contribution(.worker = 0, .blocks = 1, .flags = TALLY_LARGE), TALLY_ABSORBED,
	       NULL);
	slot = pool_read(*state, 0);
	slot.books.state.blocks = TALLY_BLOCKS_MAX;
	pool_put(*state, 0, &slot);
	expect(*state, last, TALLY_NO_ROOM, &out);
	assert_true(!out.ipv6);
	assert_is_from_the_service(&out);
}

/* fanout makes the tag of each copy with the key of who gets it. */
static void an_ask_for_longer_frames_has_no_key_of_a_rank(void **state)
{
	struct sent out;

	if (!frames_have_ends())
		skip();
	job_put_keyed(*state, JOB, borrowing_job(.node_key = 1));
	expect(*state, longest(.key = 1), TALLY_ABSORBED, NULL);
	expect(*state, too_short(.key = 2), TALLY_NO_ROOM, &out);
	assert_int_equal(out.key, 0);
}

enum {
	COPIES = 5,
	TOKENS = 1 << 16,
};

static void an_ask_for_longer_frames_is_paid_for(void **state)
{
	const struct tally_bucket tokens = {
		.rate = 1, .burst = TOKENS, .level = TOKENS, .at_ns = ~0ULL
	}; /* gets no more */
	struct tally_tenant after;
	__u32 bytes;

	if (!frames_have_ends())
		skip();
	bytes = frame_headers_bytes(too_short()) + sizeof(struct tally_header);
	job_put(*state, JOB, borrowing_job(.tenant = 1, .copies = COPIES));
	tenant_put(*state, 1, (struct tally_tenant){ .limited = 0 });
	expect(*state, longest(), TALLY_ABSORBED, NULL);
	tenant_put(*state, 1,
		   (struct tally_tenant){ .limited = 1, .packets = tokens, .bytes = tokens });
	expect(*state, too_short(), TALLY_NO_ROOM, NULL);
	after = tenant_read(*state, 1);
	assert_int_equal(TOKENS - after.packets.level, 1 + COPIES);
	assert_int_equal(TOKENS - after.bytes.level, (1 + COPIES) * bytes);
}

static void who_brings_all_that_can_come_takes_no_slot(void **state)
{
	expect(*state, contribution(.set = tally_set_first(2), .value = 3), TALLY_PASSED_UP, NULL);
	assert_true(is_free(*state));
}

static void a_flush_takes_the_sum_along_and_frees_the_slot(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .value = 40, .flags = TALLY_FLUSH),
	       TALLY_FLUSHED_UP, &out);
	assert_sum(&out, 40);
	assert_of(&out, JOB, 0, 1);
	assert_true(is_free(*state));
	expect(*state, contribution(.worker = 0, .value = 40, .flags = TALLY_FLUSH),
	       TALLY_PASSED_UP, NULL);
	assert_true(is_free(*state));
}

static void a_flush_of_another_chunk_goes_on_alone(void **state)
{
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .flags = TALLY_FLUSH),
	       TALLY_PASSED_UP, NULL);
	assert_holder(*state, JOB, 0);
}

static void what_an_earlier_run_left_gives_way(void **state)
{
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	job_put(*state, JOB, borrowing_job(.epoch = EPOCH + 1));
	expect(*state, contribution(.worker = 1, .epoch = EPOCH + 1, .value = 2), TALLY_ABSORBED,
	       NULL);
	assert_int_equal(pool_read(*state, 0).books.epoch, EPOCH + 1);
	assert_int_equal(pool_read(*state, 0).books.state.set.word[0], 2);
}

static void a_result_on_its_way_down_frees_the_slot(void **state)
{
	expect(*state, contribution(.worker = 0, .seq = 9), TALLY_ABSORBED, NULL);
	expect(*state, result(.set = tally_set_first(4), .seq = 8), TALLY_SENT_DOWN, NULL);
	expect(*state, ask(.set = tally_set_first(1), .seq = 9), TALLY_SENT_DOWN, NULL);
	assert_holder(*state, JOB, 9);
	expect(*state, result(.set = tally_set_first(4), .seq = 9), TALLY_SENT_DOWN, NULL);
	assert_true(is_free(*state));
}

/* --- first come, first served */

static int setup_fcfs(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, TALLY_BORROWED_FCFS });
}

static void who_comes_first_keeps_the_slot(void **state)
{
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 255), TALLY_REFUSED,
	       NULL);
	expect(*state, contribution(.worker = 0, .seq = 1), TALLY_REFUSED, NULL);
	assert_holder(*state, JOB, 0);
}

static void a_slot_is_held_until_the_result_comes_down(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_SENT_UP, &out);
	assert_sum(&out, 42);
	assert_holder(*state, JOB, 0);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB), TALLY_REFUSED, NULL);
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_SENT_UP, &out);
	assert_sum(&out, 42);
	expect(*state, result(.set = tally_set_first(4)), TALLY_SENT_DOWN, NULL);
	assert_true(is_free(*state));
}

static void where_no_result_comes_down_nothing_is_held(void **state)
{
	job_put(*state, JOB, borrowing_job(.copies = 0));
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1), TALLY_SENT_UP, NULL);
	assert_true(is_free(*state));
}

static const struct CMUnitTest fcfs[] = {
	fact(who_comes_first_keeps_the_slot),
	fact(a_slot_is_held_until_the_result_comes_down),
	fact(where_no_result_comes_down_nothing_is_held),
	fact(who_brings_all_that_can_come_takes_no_slot),
	fact(a_flush_takes_the_sum_along_and_frees_the_slot),
	fact(a_flush_of_another_chunk_goes_on_alone),
	fact(what_an_earlier_run_left_gives_way),
	fact(a_result_on_its_way_down_frees_the_slot),
};

/* --- whoever comes takes the slot */

static int setup_preempt(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, { .preempts = true } });
}

static void swap_of_shape(struct node *node, struct message shape)
{
	struct message a = shape, b = shape;
	struct sent out;

	a.worker = 1;
	a.seq = 5;
	a.value = 40;
	b.job = OTHER_JOB;
	b.worker = 0;
	b.seq = 6;
	b.value = 3;
	expect(node, a, TALLY_ABSORBED, NULL);
	expect(node, b, TALLY_SWAPPED, &out);
	assert_sum(&out, 40);
	assert_of(&out, JOB, 5, 2);
	assert_route(&out, 1);
	assert_int_equal(out.tally.flags & TALLY_LARGE, shape.flags & TALLY_LARGE);
	assert_holder(node, OTHER_JOB, 6);
	b.worker = 1;
	b.value = 4;
	expect(node, b, TALLY_SENT_UP, &out);
	assert_sum(&out, 7);
	assert_of(&out, OTHER_JOB, 6, 3);
	assert_true(is_free(node));
}

static void what_a_swap_throws_out_goes_on(void **state)
{
	swap_of_shape(*state, contribution());
	swap_of_shape(*state, contribution(.vlan = ETH_P_8021Q));
	swap_of_shape(*state, contribution(.blocks = TALLY_BLOCKS_MAX));
	swap_of_shape(*state, contribution(.blocks = 0));
	job_put(*state, JOB, borrowing_job(.ipv6 = 1));
	job_put(*state, OTHER_JOB, borrowing_job(.ipv6 = 1, .group = 1));
	swap_of_shape(*state, contribution(.ipv6 = true));
}

/* What one rank says has that rank's key, whoever sends it on; a sum of several has the node's. */
static void sums_that_leave_have_keys_of_their_own_job(void **state)
{
	const struct message a = contribution(.worker = 0, .seq = 5, .value = 40, .key = 1);
	const struct message b = contribution(.job = OTHER_JOB, .worker = 1, .value = 2, .key = 3);
	struct message more = a;
	struct sent out;

	job_put_keyed(*state, JOB, borrowing_job(.node_key = 1));
	job_put_keyed(*state, OTHER_JOB, borrowing_job(.node_key = 1));
	rank_key_put(*state, OTHER_JOB, 0, key_of(300)); /* which no sum is to have */
	rank_key_put(*state, OTHER_JOB, 1, key_of(2));
	rank_key_put(*state, OTHER_JOB, TALLY_NODE_KEY, key_of(301));
	expect(*state, a, TALLY_ABSORBED, NULL);
	expect(*state, b, TALLY_SWAPPED, &out);
	assert_of(&out, JOB, 5, 1);
	assert_int_equal(out.key, 0 + 1);
	expect(*state, a, TALLY_SWAPPED, &out);
	assert_of(&out, OTHER_JOB, 0, 2);
	assert_int_equal(out.key, 2 + 1);
	more.worker = 1;
	more.key = 2;
	more.value = 2;
	expect(*state, more, TALLY_SENT_UP, &out);
	assert_of(&out, JOB, 5, 3);
	assert_sum(&out, 42);
	assert_int_equal(out.key, TALLY_NODE_KEY + 1);
	expect(*state, a, TALLY_ABSORBED, NULL);
	more = a;
	more.flags = TALLY_FLUSH;
	expect(*state, more, TALLY_FLUSHED_UP, &out);
	assert_of(&out, JOB, 5, 1);
	assert_int_equal(out.key, 0 + 1);
}

/* Of three ranks, two are in the slot when another job takes it, which has no keys. */
static void a_swapped_sum_of_several_has_the_node_key(void **state)
{
	const struct tally_set three = { { 7 } };
	struct sent out;

	job_put_keyed(*state, JOB, borrowing_job(.below = three, .node_key = 1));
	expect(*state, contribution(.worker = 0, .seq = 5, .value = 40, .key = 1), TALLY_ABSORBED,
	       NULL);
	expect(*state, contribution(.worker = 1, .seq = 5, .value = 2, .key = 2), TALLY_ABSORBED,
	       NULL);
	expect(*state, contribution(.job = OTHER_JOB, .worker = 1), TALLY_SWAPPED, &out);
	assert_of(&out, JOB, 5, 3);
	assert_int_equal(out.key, TALLY_NODE_KEY + 1);
	assert_sum(&out, 42);
	expect(*state, contribution(.worker = 0, .seq = 5, .value = 40, .key = 1), TALLY_SWAPPED,
	       &out);
	assert_of(&out, OTHER_JOB, 0, 2);
	assert_int_equal(out.key, 0);
}

static void jobs_with_large_headers_swap(void **state)
{
	const struct tally_set everyone = tally_set_first(200);

	job_put(*state, JOB, borrowing_job(.everyone = everyone));
	job_put(*state, OTHER_JOB, borrowing_job(.everyone = everyone, .group = 1));
	swap_of_shape(*state, contribution(.flags = TALLY_LARGE));
}

/* The frame becomes as long as what it carries: shorter. */
static void a_longer_frame_carries_a_shorter_sum(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .value = 40, .blocks = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .value = 3, .blocks = 5),
	       TALLY_SWAPPED, &out);
	assert_int_equal(out.tally.blocks, 2);
	assert_sum(&out, 40);
	expect(*state, contribution(.worker = 1, .job = OTHER_JOB, .value = 4, .blocks = 5),
	       TALLY_SENT_UP, &out);
	assert_int_equal(out.tally.blocks, 5);
	assert_sum(&out, 7);
}

static void a_shorter_frame_does_not_carry_a_longer_sum(void **state)
{
	expect(*state, contribution(.worker = 0, .value = 40, .blocks = 5), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .blocks = 2), TALLY_REFUSED,
	       NULL);
	assert_holder(*state, JOB, 0);
}

static void a_frame_of_another_shape_does_not_carry_a_sum(void **state)
{
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .vlan = ETH_P_8021Q),
	       TALLY_REFUSED, NULL);
	job_put(*state, OTHER_JOB, borrowing_job(.everyone = tally_set_first(200), .group = 1));
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .flags = TALLY_LARGE),
	       TALLY_REFUSED, NULL);
	job_put(*state, OTHER_JOB, borrowing_job(.ipv6 = 1, .group = 1));
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .ipv6 = true), TALLY_REFUSED,
	       NULL);
	assert_true(!is_free(*state));
}

/* The contribution of OTHER_JOB that is to take the slot. */
static const struct message taker = {
	.magic = TALLY_MAGIC,
	.version = TALLY_VERSION,
	.kind = TALLY_CONTRIBUTION,
	.job = OTHER_JOB,
	.epoch = EPOCH,
	.recipient = TALLY_EVERYONE,
	.blocks = 1,
	.lane = TALLY_LANE_INT64,
	.value = 3,
};

/* By this frame, what the slot holds would not get on: it passes as if there were no pool. */
static void expect_no_swap(struct node *node, const struct frame *frame)
{
	struct tally_pool_slot before = pool_read(node, 0), after;

	expect_frame(node, frame, TALLY_REFUSED, NULL);
	after = pool_read(node, 0);
	assert_memory_equal(&after, &before, sizeof(after));
}

static void no_other_hardware_address_takes_a_slot(struct node *node)
{
	static const __u8 others[][ETH_ALEN] = {
		{ 0x02, 0x77, 0, 0, 0, 0x02 },
		{ 0x03, 0x77, 0, 0, 0, 0x01 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
		{ 0 },
	};
	struct frame frame;
	struct sent out;

	expect(node, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		frame_write(taker, &frame);
		memcpy(frame.data, others[i], ETH_ALEN);
		expect_no_swap(node, &frame);
	}
	expect(node, taker, TALLY_SWAPPED, &out);
	assert_sum(&out, 40);
}

/* The kernel drops what is for another machine, and what is for all it does not forward. */
static void a_frame_that_is_not_for_the_port_swaps_nothing(void **state)
{
	struct node *node = *state;

	no_other_hardware_address_takes_a_slot(node); /* the frames' port is none of the node's */
	two_jobs(state);
	at_port_put(node, LOOPBACK);
	no_other_hardware_address_takes_a_slot(node);
}

/* To its own address each port takes frames in; to another one only some do, as those of bridges.
 */
static void what_is_for_a_port_may_leave_by_what_is_for_another(void **state)
{
	struct node *node = *state;
	struct tally_pool_slot slot;

	at_port_put(node, LOOPBACK);
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	slot = pool_read(node, 0);
	assert_int_equal(slot.books.entrance.word[0], 0);
	two_jobs(state);
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	slot = pool_read(node, 0);
	assert_int_equal(slot.books.entrance.word[0], LOOPBACK);
	slot.books.entrance.word[0]++; /* as if from the next port */
	pool_put(node, 0, &slot);
	expect(node, taker, TALLY_REFUSED, NULL);
}

/* Of a VLAN that the machine is not in, the kernel takes nothing in. */
static void a_frame_of_another_vlan_swaps_nothing(void **state)
{
	struct message other = taker;
	struct frame frame;

	at_port_put(*state, LOOPBACK);
	expect(*state, contribution(.worker = 0, .vlan = ETH_P_8021Q, .vlan_id = 0x105),
	       TALLY_ABSORBED, NULL);
	other.vlan = ETH_P_8021Q;
	other.vlan_id = 101;
	frame_write(other, &frame);
	expect_no_swap(*state, &frame);
	other.vlan = ETH_P_8021AD;
	for (int id = 1; id <= TALLY_VLAN_NONE; id++) {
		other.vlan_id = id;
		frame_write(other, &frame);
		expect_no_swap(*state, &frame);
	}
	other.vlan = ETH_P_8021Q;
	other.vlan_id = 0xe000 | 0x105; /* of another priority */
	expect(*state, other, TALLY_SWAPPED, NULL);
}

/* Bridges drop such frames. */
static void a_frame_from_nobody_or_from_all_swaps_nothing(void **state)
{
	static const __u8 others[][ETH_ALEN] = {
		{ 0 },
		{ 0x01, 0x00, 0x5e, 0, 0, 0x01 },
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff },
	};
	struct frame frame;

	at_port_put(*state, LOOPBACK);
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		frame_write(taker, &frame);
		memcpy(frame.data + ETH_ALEN, others[i], ETH_ALEN);
		expect_no_swap(*state, &frame);
	}
	expect(*state, taker, TALLY_SWAPPED, NULL);
}

/* As a sender on this machine leaves it; one elsewhere may write that, too. */
static void checksum_leave(struct frame *frame, const struct message *m)
{
	const __u32 udp_at = frame_headers_bytes(*m) - sizeof(struct udphdr);
	const __u16 sum = frame_pseudo_sum(frame, udp_at, m->ipv6);

	frame->data[udp_at + 6] = sum >> 8;
	frame->data[udp_at + 7] = sum;
}

/* Nobody makes the checksum of what came over a wire: the kernel drops it. */
static void a_frame_whose_checksum_is_left_carries_what_came_in_one(void **state)
{
	const struct message m = contribution(.worker = 1, .seq = 5);
	struct frame held, frame;

	at_port_put(*state, LOOPBACK);
	frame_write(m, &held);
	expect_frame(*state, &held, TALLY_ABSORBED, NULL);
	frame_write(taker, &frame);
	checksum_leave(&frame, &taker);
	expect_no_swap(*state, &frame);
	two_jobs(state);
	checksum_leave(&held, &m);
	expect_frame(*state, &held, TALLY_ABSORBED, NULL);
	expect_frame(*state, &frame, TALLY_SWAPPED, NULL);
}

/* Nobody makes it for copies, also where the sender has left it to the kernel. */
static void an_ask_for_longer_frames_has_a_checksum(void **state)
{
	const struct message last = too_short();
	struct frame frame;

	if (!frames_have_ends())
		skip();
	frame_write(last, &frame);
	checksum_leave(&frame, &last);
	expect(*state, longest(), TALLY_ABSORBED, NULL);
	expect_frame(*state, &frame, TALLY_NO_ROOM, NULL); /* which verifies it */
}

enum {
	IP_AT = sizeof(struct ethhdr),
};

/* Its IP header asks for what it may: few hops, no fragments, another class. */
static void what_a_taker_asks_of_routers_is_not_asked_for_the_sum(void **state)
{
	struct sent held, out;
	struct iphdr ip4;
	struct frame frame;

	frame_write(contribution(.worker = 1, .value = 40), &frame);
	frame_read(&frame, &held);
	expect_frame(*state, &frame, TALLY_ABSORBED, NULL);
	frame_write(taker, &frame);
	memcpy(&ip4, frame.data + IP_AT, sizeof(ip4));
	ip4.ttl = 1;
	ip4.tos = 0xff;
	ip4.id = 0x1234;
	ip4.frag_off = htons(0xc000);
	memcpy(frame.data + IP_AT, &ip4, sizeof(ip4));
	expect_frame(*state, &frame, TALLY_SWAPPED, &out);
	assert_sum(&out, 40);
	assert_memory_equal(&out.ip4, &held.ip4, sizeof(out.ip4));
}

static void nor_over_ipv6(void **state)
{
	const __be32 asks = htonl(0x6ff12345);
	struct message other = taker;
	struct sent held, out;
	struct frame frame;

	job_put(*state, JOB, borrowing_job(.ipv6 = 1));
	job_put(*state, OTHER_JOB, borrowing_job(.ipv6 = 1, .group = 1));
	frame_write(contribution(.worker = 1, .value = 40, .ipv6 = true), &frame);
	frame_read(&frame, &held);
	expect_frame(*state, &frame, TALLY_ABSORBED, NULL);
	other.ipv6 = true;
	other.ttl = 1;
	other.blocks = 2;
	frame_write(other, &frame);
	memcpy(frame.data + IP_AT, &asks, sizeof(asks));
	expect_frame(*state, &frame, TALLY_SWAPPED, &out);
	assert_sum(&out, 40);
	assert_memory_equal(&out.ip6, &held.ip6, sizeof(out.ip6));
}

static const struct CMUnitTest preempt[] = {
	fact(what_is_too_short_for_the_sum_does_not_go_on_beside_it),
	fact(an_ask_for_longer_frames_is_from_the_service_address),
	fact(an_ask_for_longer_frames_has_no_key_of_a_rank),
	fact(an_ask_for_longer_frames_is_paid_for),
	fact(an_ask_for_longer_frames_has_a_checksum),
	fact(a_whole_sum_goes_on_and_its_slot_is_free),
	fact(a_contribution_that_met_congestion_marks_the_sum),
	fact(a_frame_grows_for_the_sum),
	fact(who_brings_all_that_can_come_takes_no_slot),
	fact(a_flush_takes_the_sum_along_and_frees_the_slot),
	fact(a_flush_of_another_chunk_goes_on_alone),
	fact(what_an_earlier_run_left_gives_way),
	fact(a_result_on_its_way_down_frees_the_slot),
	fact(what_a_swap_throws_out_goes_on),
	fact(sums_that_leave_have_keys_of_their_own_job),
	fact(a_swapped_sum_of_several_has_the_node_key),
	fact(jobs_with_large_headers_swap),
	fact(a_longer_frame_carries_a_shorter_sum),
	fact(a_shorter_frame_does_not_carry_a_longer_sum),
	fact(a_frame_of_another_shape_does_not_carry_a_sum),
	fact(a_frame_that_is_not_for_the_port_swaps_nothing),
	fact(what_is_for_a_port_may_leave_by_what_is_for_another),
	fact(a_frame_of_another_vlan_swaps_nothing),
	fact(a_frame_from_nobody_or_from_all_swaps_nothing),
	fact(a_frame_whose_checksum_is_left_carries_what_came_in_one),
	fact(what_a_taker_asks_of_routers_is_not_asked_for_the_sum),
	fact(nor_over_ipv6),
};

/* --- by priority */

static int setup_esa(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, TALLY_BORROWED_ESA });
}

static void a_higher_priority_takes_the_slot(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .priority = 4, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 5), TALLY_SWAPPED,
	       &out);
	assert_sum(&out, 40);
	assert_int_equal(out.tally.priority, 4);
	assert_holder(*state, OTHER_JOB, 0);
}

static void who_keeps_others_out_stands_lower_each_time(void **state)
{
	expect(*state, contribution(.worker = 0, .priority = 4), TALLY_ABSORBED, NULL);
	for (int standing = 4; standing >= 1; standing /= 2) {
		expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 1),
		       TALLY_REFUSED, NULL);
		assert_int_equal(pool_read(*state, 0).books.standing, standing / 2);
	}
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 1), TALLY_SWAPPED,
	       NULL);
}

/* Of the same priority as another one says, a tenant that has a quarter of it has a quarter. */
static void a_tenants_share_bounds_its_priority(void **state)
{
	tenant_put(*state, 1, (struct tally_tenant){ .priority = 63 });
	job_put(*state, OTHER_JOB, borrowing_job(.group = 1, .tenant = 1));
	expect(*state, contribution(.worker = 0, .priority = 20), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 60), TALLY_REFUSED,
	       NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB, .priority = 60), TALLY_SWAPPED,
	       NULL);
	assert_int_equal(pool_read(*state, 0).books.standing, 15);
	assert_int_equal(pool_read(*state, 0).books.priority, 60);
}

static const struct CMUnitTest esa[] = {
	fact(a_whole_sum_goes_on_and_its_slot_is_free),
	fact(a_contribution_that_met_congestion_marks_the_sum),
	fact(a_higher_priority_takes_the_slot),
	fact(who_keeps_others_out_stands_lower_each_time),
	fact(a_tenants_share_bounds_its_priority),
};

/* --- by time */

static int setup_stalled(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, { .stalled_ms = 60000 } });
}

static void who_has_stalled_gives_way(void **state)
{
	struct tally_pool_slot slot;
	struct sent out;

	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB), TALLY_REFUSED, NULL);
	slot = pool_read(*state, 0);
	assert_int_not_equal(slot.books.grown_ms, 0);
	slot.books.grown_ms -= 60000;
	pool_put(*state, 0, &slot);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB), TALLY_SWAPPED, &out);
	assert_sum(&out, 40);
}

static const struct CMUnitTest stalled[] = {
	fact(who_has_stalled_gives_way),
};

enum {
	SOON_MS = 200,
	TICK_MS_MAX = 10, /* of the kernel's clock */
};

static int setup_stalls_soon(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, { .stalled_ms = SOON_MS } });
}

static int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

static void a_stall_is_measured_in_milliseconds(void **state)
{
	int64_t before = clock_ms(), between, last, after;
	struct frame other, left;
	uint32_t grown_ms;

	frame_write(contribution(.worker = 0, .job = OTHER_JOB), &other);
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	grown_ms = pool_read(*state, 0).books.grown_ms;
	between = clock_ms();
	do {
		last = clock_ms();
		assert_true(node_run(*state, &other, &left) >= 0);
		after = clock_ms();
		assert_true(after - before < 100 * SOON_MS);
	} while (pool_read(*state, 0).books.job == JOB);
	grown_ms = pool_read(*state, 0).books.grown_ms - grown_ms;
	assert_in_range(grown_ms, SOON_MS, after - before + TICK_MS_MAX);
	assert_true(grown_ms + TICK_MS_MAX >= last - between);
	assert_holder(*state, OTHER_JOB, 0);
}

static const struct CMUnitTest stalls_soon[] = {
	fact(a_stall_is_measured_in_milliseconds),
};

/* --- places */

enum {
	PLACES = 5,
};

static int setup_places(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ PLACES, { .preempts = true } });
}

static void a_job_with_a_range_lies_there(void **state)
{
	struct node *node = *state;

	job_put(*state, JOB, borrowing_job(.slot_base = 4, .range = 2));
	expect(*state, contribution(.worker = 0, .seq = 10), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 11), TALLY_ABSORBED, NULL);
	assert_int_equal(pool_read(node, 4).books.state.seq, 10);
	assert_int_equal(pool_read(node, 0).books.state.seq, 11);
	expect(*state, contribution(.worker = 0, .seq = 12), TALLY_SWAPPED, NULL);
}

static const struct CMUnitTest places[] = {
	fact(a_job_with_a_range_lies_there),
};

int main(void)
{
	int failed;

	skip_unless_permitted();
	failed = cmocka_run_group_tests_name("borrowed, without a pool", without_a_pool, node_setup,
					     node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, without a pool, by TC", without_a_pool,
					      node_setup_tc, node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, first come", fcfs, setup_fcfs,
					      node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, preempting", preempt, setup_preempt,
					      node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, by priority", esa, setup_esa,
					      node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, by time", stalled, setup_stalled,
					      node_teardown);
	failed += cmocka_run_group_tests_name("borrowed, by time, soon", stalls_soon,
					      setup_stalls_soon, node_teardown);
	return failed +
	       cmocka_run_group_tests_name("borrowed, places", places, setup_places, node_teardown);
}
