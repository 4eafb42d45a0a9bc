// SPDX-License-Identifier: GPL-2.0-only
/* Every outcome that ingress can give, each beside the fact it shows. */
#include "harness.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The shapes a frame comes in: IPv4 or IPv6, tagged or not. */
static const struct form {
	bool ipv6;
	__u16 vlan;
} forms[] = {
	{ .ipv6 = false },
	{ .ipv6 = true },
	{ .ipv6 = false, .vlan = ETH_P_8021Q },
	{ .ipv6 = true, .vlan = ETH_P_8021Q },
	{ .ipv6 = true, .vlan = ETH_P_8021AD },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define each_form(f) (const struct form *f = forms; f < forms + COUNT(forms); f++)
#define shaped(f) .ipv6 = (f)->ipv6, .vlan = (f)->vlan
#define large .flags = TALLY_LARGE

/* What BPF_PROG_TEST_RUN takes in one page: headroom and skb_shared_info go off. */
static const __u32 frame_bytes_max = FRAME_BYTES_MAX - 256 - 320;

static bool fits(struct message m)
{
	return frame_headers_bytes(m) + sizeof(struct tally_header) +
		       m.blocks * TALLY_BLOCK_BYTES <=
	       frame_bytes_max;
}

struct memory {
	struct tally_slot slot[SLOTS];
};

static struct memory *memory_read(struct node *node)
{
	struct memory *memory = malloc(sizeof(*memory));

	assert_non_null(memory);
	slots_read(node, memory->slot);
	return memory;
}

/* Frees `before`. */
static void assert_memory_is(struct node *node, struct memory *before)
{
	struct memory *now = memory_read(node);

	assert_memory_equal(before, now, sizeof(*now));
	free(before);
	free(now);
}

static void assert_set(const struct sent *sent, struct tally_set set)
{
	assert_memory_equal(&sent->set, &set, sizeof(set));
}

static void put_be16(struct frame *frame, __u32 at, __u16 value)
{
	frame->data[at] = value >> 8;
	frame->data[at + 1] = (__u8)value;
}

/* Where the UDP length stands. */
static __u32 udp_length_at(struct message m) { return frame_headers_bytes(m) - 4; }

static void assert_from_service(const struct sent *out, const struct form *f);
static void assert_to_rank_0(const struct sent *out);

/* --- what is not ours */

static void other_traffic_passes_untouched(void **state)
{
	static const struct {
		struct message of;
		__u32 at;
		__u8 byte;
	} table[] = {
		{ contribution(.worker = 0), 12, 0x86 }, /* neither IPv4 nor IPv6 */
		{ contribution(.worker = 0), 14, 0x55 }, /* version 5 */
		{ contribution(.worker = 0), 14, 0x46 }, /* with options */
		{ contribution(.worker = 0), 14, 0x44 }, /* a header too short */
		{ contribution(.worker = 0), 20, 0x20 }, /* first fragment */
		{ contribution(.worker = 0), 21, 0x01 }, /* a later one */
		{ contribution(.worker = 0), 23, IPPROTO_TCP },
		{ contribution(.worker = 0), 36, 0x7b }, /* another UDP port */
		{ contribution(.worker = 0), 37, 0x12 },
		{ contribution(.worker = 0), 42, TALLY_MAGIC + 1 },
		{ contribution(.worker = 0, .ipv6 = true), 14, 0x40 }, /* version 4 */
		{ contribution(.worker = 0, .ipv6 = true), 20, IPPROTO_TCP },
		{ contribution(.worker = 0, .ipv6 = true), 20, IPPROTO_HOPOPTS },
		{ contribution(.worker = 0, .ipv6 = true), 20, IPPROTO_FRAGMENT },
		{ contribution(.worker = 0, .ipv6 = true), 57, 0x12 },
		{ contribution(.worker = 0, .ipv6 = true), 62, 0 },
		{ contribution(.worker = 0, .vlan = ETH_P_8021Q), 16, 0x81 }, /* a second tag */
		{ contribution(.worker = 0, .vlan = 0x9100), 12, 0x91 },
	};
	struct memory *before = memory_read(*state);
	struct frame frame;

	for (size_t i = 0; i < COUNT(table); i++) {
		frame_write(table[i].of, &frame);
		frame.data[table[i].at] = table[i].byte;
		expect_frame(*state, &frame, TALLY_FOREIGN, NULL);
	}
	assert_memory_is(*state, before);
}

static void a_datagram_that_must_not_be_fragmented_is_ours(void **state)
{
	struct frame frame;

	frame_write(contribution(.worker = 0), &frame);
	frame.data[20] = 0x40;
	expect_frame(*state, &frame, TALLY_ABSORBED, NULL);
}

static void every_other_version_passes_if_its_job_is_not_here(void **state)
{
	for (int version = 0; version <= 255; version++) {
		if (version == TALLY_VERSION)
			continue;
		expect(*state, contribution(.worker = 0, .job = 99, .version = version),
		       TALLY_OTHER_VERSION, NULL);
		expect(*state, result(.set = set_of(0), .version = version), TALLY_OTHER_VERSION,
		       NULL);
	}
}

/* The header of version 1, and a contribution of rank 0 with one block. */
struct header_of_version_1 {
	__u8 magic, version, kind, flags;
	__le32 job;
	__le16 epoch, boot;
	__le32 seq;
	__le16 recipient;
	__u8 blocks, lane, scale, scale_ahead, priority, shard;
	__le64 set[4];
	__le64 check;
};

static void write_version_1(struct frame *ret, __u32 job, const struct form *f)
{
	const struct header_of_version_1 h = {
		.magic = 0xa7,
		.version = 1,
		.kind = 1,
		.flags = TALLY_FLUSH | TALLY_WIDE,
		.job = tally_le32(job),
		.epoch = tally_le16(EPOCH),
		.boot = tally_le16(0x1234),
		.seq = tally_le32(77),
		.recipient = tally_le16(0xffff),
		.blocks = 1,
		.lane = TALLY_LANE_INT64,
		.set = { tally_le64(1) },
		.check = tally_le64(5),
	};

	_Static_assert(sizeof(h) == 64, "as it was");
	frame_write(contribution(.worker = 0, .value = 5, shaped(f)), ret);
	memcpy(ret->data + frame_headers_bytes(contribution(shaped(f))), &h, sizeof(h));
}

/* Version 1 takes as word of another version what has 64 bytes, the magic and another version. */
static void a_worker_of_version_1_hears_which_version_is_spoken(void **state)
{
	struct memory *before = memory_read(*state);
	struct frame frame;
	struct sent out;

	for
		each_form(f)
		{
			write_version_1(&frame, JOB, f);
			expect_frame(*state, &frame, TALLY_OLD_VERSION, &out);
			assert_from_service(&out, f);
			assert_to_rank_0(&out);
			assert_int_equal(out.tally.magic, 0xa7);
			assert_int_equal(out.tally.version, 2);
			assert_int_equal(tally_le32_get(out.tally.job), JOB);
			assert_int_equal(tally_le16_get(out.tally.epoch), EPOCH);
			assert_int_equal(ntohs(out.udp.len), sizeof(struct udphdr) + 64);

			write_version_1(&frame, 99, f);
			expect_frame(*state, &frame, TALLY_OTHER_VERSION, NULL);
			job_put(*state, JOB, root_job(.ipv6 = f->ipv6));
			write_version_1(&frame, JOB, f);
			frame.data[frame_headers_bytes(contribution(shaped(f))) - 9] ^= 1;
			expect_frame(*state, &frame, TALLY_OTHER_VERSION, NULL);
		}
	assert_memory_is(*state, before);
}

/* Whoever can send may ask; the node's answers are few all the same. */
static void answers_to_other_versions_are_few(void **state)
{
	const struct tally_bucket two = { .rate = 1, .burst = 2, .level = 2, .at_ns = ~0ULL };
	struct frame frame;

	tenant_put(*state, TALLY_TENANT_ANSWERS,
		   (struct tally_tenant){ .limited = 1, .packets = two });
	write_version_1(&frame, JOB, &forms[0]);
	expect_frame(*state, &frame, TALLY_OLD_VERSION, NULL);
	expect_frame(*state, &frame, TALLY_OLD_VERSION, NULL);
	expect_frame(*state, &frame, TALLY_OTHER_VERSION, NULL);
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
}

static void an_unknown_job_passes(void **state)
{
	static const __u32 unknown[] = { 0, JOB - 1, OTHER_JOB + 1, JOB << 8, 1U << 31, ~0U };

	for (size_t i = 0; i < COUNT(unknown); i++)
		expect(*state, contribution(.worker = 0, .job = unknown[i]), TALLY_UNKNOWN_JOB,
		       NULL);
}

/* Flips each bit of the address that ends `before_udp` bytes before the UDP header. */
static void show_other_addresses(struct node *node, struct message m, __u32 before_udp)
{
	const __u32 bytes = m.ipv6 ? 16 : 4;
	const __u32 at = frame_headers_bytes(m) - sizeof(struct udphdr) - before_udp - bytes;
	struct frame frame;

	frame_write(m, &frame);
	for (__u32 bit = 0; bit < 8 * bytes; bit++) {
		frame.data[at + bit / 8] ^= 1 << bit % 8;
		expect_frame(node, &frame, TALLY_OTHER_ADDRESS, NULL);
		frame.data[at + bit / 8] ^= 1 << bit % 8;
	}
}

/* Two fabrics may number their jobs alike. What comes up names the node, and down comes from it. */
static void what_is_of_another_service_address_passes(void **state)
{
	const __u16 epochs[] = { EPOCH, EPOCH + 1, 0 };
	struct memory *before = memory_read(*state);

	for
		each_form(f) for (int i = 0; i < (int)(COUNT(epochs) * 4); i++)
		{
			struct message m = message(.job = i & 1 ? JOB : OTHER_JOB,
						   .epoch = epochs[i / 4],
						   .set = tally_set_first(2), shaped(f));
			const __u32 source = f->ipv6 ? 16 : 4;

			if (i & 2)
				job_put(*state, m.job, inner_job(.ipv6 = f->ipv6));
			else
				job_put(*state, m.job, root_job(.ipv6 = f->ipv6));
			for (m.kind = 0; m.kind != TALLY_OVERTAKEN + 2; m.kind++) {
				bool up = m.kind == TALLY_CONTRIBUTION || m.kind == TALLY_REPAIR;

				show_other_addresses(*state, m, up ? 0 : source);
			}
		}
	assert_memory_is(*state, before);
}

/* A family that the job's service address is not of is another address, too. */
static void what_is_of_the_other_family_passes(void **state)
{
	struct frame in, out;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		job_put(*state, JOB, root_job(.ipv6 = !ipv6));
		frame_write(contribution(.worker = 0, .ipv6 = ipv6), &in);
		assert_int_equal(node_run(*state, &in, &out), XDP_PASS);
		assert_int_equal(out.bytes, in.bytes);
		assert_memory_equal(out.data, in.data, in.bytes);
	}
}

/* --- frames cut short, and lengths that lie */

static void every_truncation_writes_nothing(void **state)
{
	struct memory *before = memory_read(*state);
	const struct node *node = *state;
	struct frame frame;

	for
		each_form(f)
		{
			struct message m = contribution(.worker = 0, .blocks = 2, .value = 9,
							shaped(f));
			__u32 magic_at = frame_headers_bytes(m), whole;

			frame_write(m, &frame);
			whole = frame.bytes;
			/* TC's test run takes no frame that ends within the IP header */
			frame.bytes = node->by_tc ? magic_at - sizeof(struct udphdr)
						  : FRAME_BYTES_MIN;
			for (; frame.bytes < whole; frame.bytes++)
				expect_frame(*state, &frame,
					     frame.bytes <= magic_at ? TALLY_FOREIGN
								     : TALLY_TRUNCATED,
					     NULL);
		}
	assert_memory_is(*state, before);
}

/* The same, but the sender of the shorter datagram says truly how long it is. */
static void every_short_datagram_writes_nothing(void **state)
{
	struct memory *before = memory_read(*state);
	struct frame frame;

	for
		each_form(f)
		{
			struct message m = contribution(.worker = 0, .blocks = 2, .value = 9,
							shaped(f));
			__u32 tally_at = frame_headers_bytes(m), whole;

			frame_write(m, &frame);
			whole = frame.bytes;
			for (frame.bytes = tally_at + 2; frame.bytes < whole; frame.bytes++) {
				bool header = frame.bytes >= tally_at + sizeof(struct tally_header);

				put_be16(&frame, udp_length_at(m), 8 + frame.bytes - tally_at);
				expect_frame(*state, &frame,
					     header ? TALLY_BAD_LENGTH : TALLY_TRUNCATED, NULL);
			}
		}
	assert_memory_is(*state, before);
}

static void a_udp_length_that_contradicts_the_message_is_refused(void **state)
{
	struct message m = contribution(.worker = 0, .blocks = 2, .value = 9);
	struct memory *before = memory_read(*state);
	const __u32 right = 8 + 64 + 2 * 64;
	struct frame frame;

	frame_write(m, &frame);
	for (__u32 length = 0; length <= 0xffff; length += length < 600 ? 1 : 997) {
		put_be16(&frame, udp_length_at(m), length);
		if (length != right)
			expect_frame(*state, &frame, TALLY_BAD_LENGTH, NULL);
	}
	assert_memory_is(*state, before);
}

static void an_ip_length_that_contradicts_the_datagram_is_refused(void **state)
{
	const struct message m4 = contribution(.worker = 1),
			     m6 = contribution(.worker = 1, .ipv6 = true);
	static const __u16 wrong[] = { 0, 20, 28, 155, 157, 0xffff };
	struct frame frame;

	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		frame_write(m4, &frame);
		put_be16(&frame, 14 + 2, wrong[i]);
		expect_frame(*state, &frame, TALLY_BAD_LENGTH, NULL);
		frame_write(m6, &frame);
		put_be16(&frame, 14 + 4, wrong[i]);
		expect_frame(*state, &frame, TALLY_BAD_LENGTH, NULL);
	}
}

static void a_number_of_blocks_that_contradicts_the_datagram_is_refused(void **state)
{
	struct message m = contribution(.worker = 0, .blocks = 2, .value = 9);
	__u32 blocks_at = frame_headers_bytes(m) + offsetof(struct tally_header, blocks);
	struct memory *before = memory_read(*state);
	struct frame frame;

	frame_write(m, &frame);
	for (int blocks = 0; blocks <= 255; blocks++) {
		frame.data[blocks_at] = blocks;
		if (blocks < 2)
			expect_frame(*state, &frame, TALLY_COALESCED, NULL);
		else if (blocks > TALLY_BLOCKS_MAX)
			expect_frame(*state, &frame, TALLY_OVERSIZED, NULL);
		else if (blocks > 2)
			expect_frame(*state, &frame, TALLY_BAD_LENGTH, NULL);
	}
	assert_memory_is(*state, before);
}

static void several_messages_in_one_frame_pass(void **state)
{
	struct message m = contribution(.worker = 0, .blocks = 2, .value = 9);
	__u32 tally_at = frame_headers_bytes(m), message_bytes;
	struct memory *before = memory_read(*state);
	struct frame frame;

	frame_write(m, &frame);
	message_bytes = frame.bytes - tally_at;
	memcpy(frame.data + frame.bytes, frame.data + tally_at, message_bytes);
	frame.bytes += message_bytes;
	put_be16(&frame, udp_length_at(m), 8 + 2 * message_bytes);
	put_be16(&frame, 14 + 2, 28 + 2 * message_bytes);
	expect_frame(*state, &frame, TALLY_COALESCED, NULL);
	assert_memory_is(*state, before);
}

/* Even if it looks like one message: what leaves in its place must be a whole frame. */
static void a_frame_that_the_kernel_is_to_cut_passes(void **state)
{
	struct memory *before = memory_read(*state);
	struct node *node = *state;

	if (!node->by_tc)
		skip();
	node->segment_bytes = 64;
	for
		each_form(f) expect(node, contribution(.worker = 0, .blocks = 2, shaped(f)),
				    TALLY_COALESCED, NULL);
	assert_memory_is(node, before);
}

static void padding_behind_the_message_is_not_summed(void **state)
{
	struct frame frame;
	struct sent out;

	frame_write(contribution(.worker = 0, .value = 40), &frame);
	memset(frame.data + frame.bytes, 0xee, 100);
	frame.bytes += 100;
	expect_frame(*state, &frame, TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_COMPLETED, &out);
	assert_int_equal(out.tally.blocks, 1);
	assert_sum(&out, 42);
}

static void a_job_may_send_as_many_blocks_as_it_was_given_and_no_more(void **state)
{
	job_put(*state, JOB, root_job(.blocks_max = 22));
	expect(*state, contribution(.worker = 0, .blocks = 23), TALLY_OVERSIZED, NULL);
	expect(*state, contribution(.worker = 0, .blocks = TALLY_BLOCKS_MAX), TALLY_OVERSIZED,
	       NULL);
	expect(*state, repair(.set = tally_set_first(2), .blocks = 23), TALLY_OVERSIZED, NULL);
	expect(*state, contribution(.worker = 0, .blocks = 22), TALLY_ABSORBED, NULL);
}

/* --- messages that the job does not take */

static void another_epoch_is_refused(void **state)
{
	static const __u16 epochs[] = { 0, EPOCH - 1, EPOCH + 1, EPOCH << 8, 0xffff };
	struct memory *before = memory_read(*state);

	for (size_t i = 0; i < COUNT(epochs); i++) {
		expect(*state, contribution(.worker = 0, .epoch = epochs[i]), TALLY_WRONG_EPOCH,
		       NULL);
		expect(*state, repair(.set = tally_set_first(2), .epoch = epochs[i]),
		       TALLY_WRONG_EPOCH, NULL);
	}
	assert_memory_is(*state, before);
}

static void a_root_takes_contributions_and_repairs_only(void **state)
{
	struct memory *before = memory_read(*state);

	for (int kind = 0; kind <= 255; kind++)
		if (kind != TALLY_CONTRIBUTION && kind != TALLY_REPAIR)
			expect(*state, message(.kind = kind, .set = tally_set_first(2)),
			       TALLY_BAD_KIND, NULL);
	assert_memory_is(*state, before);
}

static void an_inner_node_takes_no_unknown_kind(void **state)
{
	job_put(*state, JOB, inner_job());
	expect(*state, message(.kind = 0, .worker = 0), TALLY_BAD_KIND, NULL);
	for (int kind = TALLY_OVERTAKEN + 1; kind <= 255; kind++)
		expect(*state, message(.kind = kind, .worker = 0), TALLY_BAD_KIND, NULL);
}

/* It is for one worker: whoever is below, too, is not behind. */
static void what_is_overtaken_passes_an_inner_node(void **state)
{
	job_put(*state, JOB, inner_job());
	expect(*state, message(.kind = TALLY_OVERTAKEN, .blocks = 0), TALLY_PASSED_DOWN, NULL);
	job_put(*state, JOB, root_job());
	expect(*state, message(.kind = TALLY_OVERTAKEN, .blocks = 0), TALLY_BAD_KIND, NULL);
}

static void nobody_contributes_nothing(void **state)
{
	expect(*state, contribution(), TALLY_BAD_SET, NULL);
	expect(*state, repair(), TALLY_BAD_SET, NULL);
}

/* All ranks, inside the job and outside, for jobs of `workers`. */
static void show_every_rank(struct node *node, __u32 workers)
{
	struct message m = contribution(.seq = workers, .flags = workers > 64 ? TALLY_LARGE : 0);
	struct message strange = m;
	struct sent out;

	job_put(node, JOB, root_job(.everyone = tally_set_first(workers)));
	for (__u32 rank = workers; rank < TALLY_WORKERS_MAX; rank++) {
		strange.worker = rank;
		strange.flags = rank >= 64 ? TALLY_LARGE : m.flags;
		strange.set = (struct tally_set){ { 0 } };
		expect(node, strange, TALLY_BAD_SET, NULL);
		strange.set = set_of(0);
		expect(node, strange, TALLY_BAD_SET, NULL);
	}
	for (__u32 rank = 0; rank < workers; rank++) {
		m.worker = rank;
		m.value = rank + 1;
		expect(node, m, rank < workers - 1 ? TALLY_ABSORBED : TALLY_COMPLETED, &out);
	}
	assert_sum(&out, workers * (workers + 1) / 2);
	assert_set(&out, tally_set_first(workers));
}

static void every_rank_of_the_job_counts_and_no_other(void **state)
{
	static const __u32 workers[] = { 1, 2, 3, 63, 64, 65, 127, 128, 129, 192, 255, 256 };

	for (size_t i = 0; i < COUNT(workers); i++)
		show_every_rank(*state, workers[i]);
}

static void ranks_may_have_holes(void **state)
{
	struct tally_set everyone = set_of(1);
	struct sent out;

	tally_set_add(&everyone, 70);
	tally_set_add(&everyone, 255);
	job_put(*state, JOB, root_job(.everyone = everyone));
	expect(*state, contribution(large, .worker = 0), TALLY_BAD_SET, NULL);
	expect(*state, contribution(large, .worker = 1, .recipient = 69), TALLY_BAD_RANK, NULL);
	expect(*state, contribution(large, .worker = 255, .value = 1), TALLY_ABSORBED, NULL);
	expect(*state, contribution(large, .worker = 1, .value = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(large, .worker = 70, .value = 4), TALLY_COMPLETED, &out);
	assert_sum(&out, 7);
	assert_set(&out, everyone);
}

static void a_recipient_is_a_rank_of_the_job_or_everyone(void **state)
{
	static const __u32 far[] = { 511, 512, 0x7fff, 0x8000, 0xff00, 0xfffe };
	struct memory *before = memory_read(*state);

	for (__u32 rank = 2; rank <= 300; rank++)
		expect(*state, contribution(.worker = 0, .recipient = rank), TALLY_BAD_RANK, NULL);
	for (size_t i = 0; i < COUNT(far); i++)
		expect(*state, contribution(.worker = 0, .recipient = far[i]), TALLY_BAD_RANK,
		       NULL);
	assert_memory_is(*state, before);
	for (__u32 rank = 0; rank < 2; rank++)
		expect(*state, contribution(.worker = 0, .recipient = rank, .seq = rank),
		       TALLY_ABSORBED, NULL);
}

static void bad_messages_do_no_harm_to_another_job(void **state)
{
	struct memory *before;
	struct sent out;

	expect(*state, contribution(.job = OTHER_JOB, .worker = 0, .value = 40), TALLY_ABSORBED,
	       NULL);
	expect(*state, contribution(.worker = 0, .value = 1000), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .lane = TALLY_LANE_INT32), TALLY_CONFLICT, NULL);
	before = memory_read(*state);

	expect(*state, contribution(.worker = 2, .value = 5), TALLY_BAD_SET, NULL);
	expect(*state, contribution(.worker = 1, .recipient = 9), TALLY_BAD_RANK, NULL);
	expect(*state, contribution(.worker = 1, .epoch = 9), TALLY_WRONG_EPOCH, NULL);
	expect(*state, contribution(.worker = 1, .kind = 9), TALLY_BAD_KIND, NULL);
	expect(*state, contribution(.worker = 1, .job = 9), TALLY_UNKNOWN_JOB, NULL);
	expect(*state, contribution(.worker = 1, .lane = TALLY_LANE_INT32), TALLY_CONFLICT_AGAIN,
	       NULL);
	expect(*state, contribution(.worker = 1, .spoilt = 1), TALLY_CORRUPT, NULL);
	expect(*state, contribution(.worker = 1, .flags = TALLY_PARTIAL), TALLY_UNKNOWN_FLAG, NULL);
	expect(*state, contribution(.worker = 0, .value = 5), TALLY_DUPLICATE, NULL);
	expect(*state, contribution(.worker = 0, .value = 5, .seq = -16), TALLY_BEHIND, NULL);
	assert_memory_is(*state, before);

	expect(*state, contribution(.job = OTHER_JOB, .worker = 1, .value = 2), TALLY_COMPLETED,
	       &out);
	assert_sum(&out, 42);
}

/* --- the sum */

static void a_sum_goes_to_everyone(void **state)
{
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.worker = 0, .seq = seq, .value = 40, shaped(f)),
			       TALLY_ABSORBED, NULL);
			expect(*state, contribution(.worker = 1, .seq = seq, .value = 2, shaped(f)),
			       TALLY_COMPLETED, &out);
			assert_sum(&out, 42);
			assert_set(&out, tally_set_first(2));
			assert_int_equal(out.tally.kind, TALLY_RESULT);
			assert_int_equal(out.tally.flags, 0);
			assert_int_equal(tally_le32_get(out.tally.job), JOB);
			assert_int_equal(tally_le16_get(out.tally.epoch), EPOCH);
			assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
			assert_int_equal(tally_le32_get(out.tally.seq), seq);
			assert_int_equal(tally_le16_get(out.tally.recipient), TALLY_EVERYONE);
			assert_int_equal(out.tally.blocks, 1);
			assert_int_equal(out.tally.lane, TALLY_LANE_INT64);
		}
}

/* Whoever it is from, it comes from the service address, with a full time to live. */
static void assert_from_service(const struct sent *out, const struct form *f)
{
	__u8 service[16];

	service_ip6(service);
	assert_int_equal(out->ipv6, f->ipv6);
	assert_int_equal(out->tagged, !!f->vlan);
	assert_int_equal(ntohs(out->eth.h_proto), f->vlan   ? f->vlan
						  : f->ipv6 ? ETH_P_IPV6
							    : ETH_P_IP);
	if (f->vlan)
		assert_int_equal(ntohs(out->tag.tci), 100);
	assert_int_equal(ntohs(out->udp.source), TALLY_UDP_PORT);
	if (f->ipv6) {
		assert_memory_equal(&out->ip6.saddr, service, 16);
		assert_int_equal(out->ip6.hop_limit, 64);
	} else {
		assert_int_equal(out->ip4.saddr, service_ip4());
		assert_int_equal(out->ip4.ttl, 64);
	}
}

static void a_result_comes_from_the_service_address(void **state)
{
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state, contribution(.worker = 0, .seq = seq, shaped(f)),
			       TALLY_ABSORBED, NULL);
			expect(*state, contribution(.worker = 1, .seq = seq, shaped(f)),
			       TALLY_COMPLETED, &out);
			assert_from_service(&out, f);
		}
}

enum {
	NOT_ECT,
	ECT_1,
	ECT_0,
	CE, /* it has met congestion */
};

static int ecn_of(const struct sent *out)
{
	return out->ipv6 ? out->ip6.flow_lbl[0] >> 4 & 3 : out->ip4.tos & 3;
}

/* Also the last contribution's, in whose frame the result leaves, as one that has met nothing. */
static void a_sum_is_marked_if_a_contribution_met_congestion(void **state)
{
	static const struct {
		__u8 first, second, flags, leaves;
	} row[] = {
		{ CE, ECT_0, TALLY_MARKED, ECT_0 }, { ECT_0, CE, TALLY_MARKED, ECT_0 },
		{ CE, CE, TALLY_MARKED, ECT_0 },    { ECT_0, ECT_0, 0, ECT_0 },
		{ ECT_0, NOT_ECT, 0, NOT_ECT },	    { ECT_1, ECT_1, 0, ECT_1 },
	};
	__u32 seq = 0;

	for
		each_form(f)
		{
			for (size_t i = 0; i < COUNT(row); i++, seq++) {
				struct sent out;

				expect(*state,
				       contribution(.worker = 0, .seq = seq, .ecn = row[i].first,
						    shaped(f)),
				       TALLY_ABSORBED, NULL);
				expect(*state,
				       contribution(.worker = 1, .seq = seq, .ecn = row[i].second,
						    shaped(f)),
				       TALLY_COMPLETED, &out);
				assert_int_equal(out.tally.flags, row[i].flags);
				assert_int_equal(ecn_of(&out), row[i].leaves);
			}
		}
}

static void a_retransmission_is_not_added_twice(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .seq = 1, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 1, .value = 40), TALLY_DUPLICATE, NULL);
	expect(*state, contribution(.worker = 1, .seq = 1, .value = 2), TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static void partial_sums_merge(void **state)
{
	struct tally_set last_two = { { 0xc } };
	struct sent out;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(4)));
	expect(*state, contribution(.set = last_two, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 3, .value = 40), TALLY_DUPLICATE, NULL);
	expect(*state, contribution(.set = tally_set_first(2), .value = 2), TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static void an_overlap_is_not_added(void **state)
{
	struct sent out;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(3)));
	expect(*state, contribution(.worker = 0, .value = 1), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.set = tally_set_first(2), .value = 3), TALLY_OVERLAP, NULL);
	expect(*state, contribution(.set = tally_set_first(3), .value = 7), TALLY_OVERLAP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 2, .value = 4), TALLY_COMPLETED, &out);
	assert_sum(&out, 7);
}

static void a_contribution_of_everyone_completes_at_once(void **state)
{
	struct sent out;

	expect(*state, contribution(.set = tally_set_first(2), .value = 42), TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static void words_wrap_at_64_bits(void **state)
{
	static const __u64 pairs[][2] = {
		{ ~0ULL, 1 },
		{ ~0ULL, ~0ULL },
		{ 1ULL << 63, 1ULL << 63 },
		{ 0xffffffff, 1 },
		{ 0x0123456789abcdef, 0xfedcba9876543210 },
	};
	struct sent out;

	for (__u32 i = 0; i < COUNT(pairs); i++) {
		expect(*state, contribution(.worker = 0, .seq = i, .value = pairs[i][0]),
		       TALLY_ABSORBED, NULL);
		expect(*state, contribution(.worker = 1, .seq = i, .value = pairs[i][1]),
		       TALLY_COMPLETED, &out);
		assert_sum(&out, pairs[i][0] + pairs[i][1]);
	}
}

/* Three workers: the slot stores the first, adds the second, exchanges with the third. */
static void show_blocks(struct node *node, const struct form *f, __u8 blocks, __u32 seq)
{
	struct message m = contribution(.blocks = blocks, .seq = seq, .value = 1, shaped(f));
	struct sent out;

	if (!fits(m))
		return;
	for (m.worker = 0; m.worker < 2; m.worker++)
		expect(node, m, TALLY_ABSORBED, NULL);
	expect(node, m, TALLY_COMPLETED, &out);
	assert_int_equal(out.tally.blocks, blocks);
	assert_sum(&out, 3);
	expect(node, m, TALLY_ANSWERED, &out);
	assert_int_equal(out.tally.blocks, blocks);
	assert_sum(&out, 3);
}

static void every_number_of_blocks_is_summed_to_the_last_word(void **state)
{
	__u32 seq = 0;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(3)));
	for
		each_form(f) for (int blocks = 0; blocks <= TALLY_BLOCKS_MAX; blocks++)
			show_blocks(*state, f, blocks, seq++);
}

static void scales_grow_to_the_largest(void **state)
{
	static const __u8 scales[] = { 0, 1, 64, 127, 128, 255 };
	__u32 seq = 0;
	struct sent out;

	for (size_t i = 0; i < COUNT(scales); i++)
		for (size_t j = 0; j < COUNT(scales); j++, seq++) {
			__u8 a = scales[i], b = scales[j];

			expect(*state,
			       contribution(.worker = 0, .seq = seq, .scale = a, .scale_ahead = b),
			       TALLY_ABSORBED, NULL);
			expect(*state,
			       contribution(.worker = 1, .seq = seq, .scale = b, .scale_ahead = 7),
			       TALLY_COMPLETED, &out);
			assert_int_equal(out.tally.scale, a > b ? a : b);
			assert_int_equal(out.tally.scale_ahead, b > 7 ? b : 7);
		}
}

static void flags_of_the_values_stick_and_no_others(void **state)
{
	struct tally_set far_ranks = tally_set_first(1);
	struct sent out;

	tally_set_add(&far_ranks, 70);
	for (int flags = 0; flags <= 255; flags++) {
		const __u8 is_large = flags & TALLY_LARGE, is_flush = flags & TALLY_FLUSH;
		struct message m = contribution(.worker = 0, .seq = flags,
						.flags = flags & ~TALLY_FLUSH);

		job_put(*state, JOB,
			root_job(.everyone = is_large ? far_ranks : tally_set_first(2)));
		if (flags & ~TALLY_FLAGS_UP) {
			expect(*state, m, TALLY_UNKNOWN_FLAG, NULL);
			continue;
		}
		expect(*state, m, TALLY_ABSORBED, NULL);
		m.worker = is_large ? 70 : 1;
		m.flags = is_large | is_flush;
		expect(*state, m, TALLY_COMPLETED, &out);
		assert_int_equal(out.tally.flags, flags & (TALLY_FLAGS_STICKY | TALLY_LARGE));
	}
}

/* Nodes do not judge check words, but add them: workers see what a sum is of. */
static void check_words_are_added_whatever_they_say(void **state)
{
	const __u64 strange[] = { 1, ~0ULL, 0x0123456789abcdef };
	struct sent out;

	for (__u32 seq = 0; seq < COUNT(strange); seq++) {
		expect(*state, contribution(.worker = 0, .seq = seq, .value = 40, .identity = 5),
		       TALLY_ABSORBED, NULL);
		expect(*state,
		       contribution(.worker = 1, .seq = seq, .value = 2, .identity = strange[seq]),
		       TALLY_COMPLETED, &out);
		assert_int_equal(tally_le64_get(out.tally.check),
				 check_of(42, 1) + 5 + strange[seq]);
	}
}

/* --- contributions without payload add zeros */

/* Four workers in the order that `order` says; `with` are those with a payload. */
static void show_mixture(struct node *node, const int *order, unsigned int with, __u32 seq)
{
	__u64 sum = 0;
	struct sent out;

	for (int i = 0; i < 4; i++) {
		int rank = order[i];
		bool has = with >> rank & 1;
		__u64 value = 1ULL << (8 * rank);

		sum += has ? value : 0;
		expect(node,
		       contribution(.worker = rank, .seq = seq, .blocks = has ? 2 : 0,
				    .value = value),
		       i < 3 ? TALLY_ABSORBED : TALLY_COMPLETED, &out);
	}
	assert_int_equal(out.tally.blocks, with ? 2 : 0);
	assert_sum(&out, sum);
	expect(node, contribution(.worker = order[0], .seq = seq, .blocks = 0), TALLY_ANSWERED,
	       &out);
	assert_int_equal(out.tally.blocks, with ? 2 : 0);
	assert_sum(&out, sum);
}

static void payloads_mix_with_none_in_every_order(void **state)
{
	__u32 seq = 0;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(4)));
	for (int code = 0; code < 256; code++) {
		int order[] = { code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6 };
		struct tally_set ranks = { { 0 } };

		for (int i = 0; i < 4; i++)
			tally_set_add(&ranks, order[i]);
		if (ranks.word[0] != 0xf)
			continue;
		for (unsigned int with = 0; with < 16; with++)
			show_mixture(*state, order, with, seq++);
	}
	assert_int_equal(seq, 24 * 16);
}

static void the_last_frame_grows_when_it_came_without_payload(void **state)
{
	__u32 seq = 0;
	struct sent out;

	for
		each_form(f) for (__u8 blocks = 1; blocks <= TALLY_BLOCKS_MAX; blocks++, seq++)
		{
			struct message full = contribution(.worker = 0, .seq = seq, .value = 42,
							   .blocks = blocks, shaped(f));

			if (!fits(full))
				continue;
			expect(*state, full, TALLY_ABSORBED, NULL);
			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 0, shaped(f)),
			       TALLY_COMPLETED, &out);
			assert_int_equal(out.tally.blocks, blocks);
			assert_sum(&out, 42);
		}
}

/* The chunk is finished all the same: whoever sends zeros in full length gets the sum. */
/*
 * Larger pages leave room behind every frame of the test run: there the case cannot be made. TC
 * makes room for any frame.
 */
static bool frames_have_ends(const struct node *node)
{
	return !node->by_tc && sysconf(_SC_PAGESIZE) == 4096;
}

static void who_sent_a_frame_too_short_for_the_sum_is_asked_for_a_longer_one(void **state)
{
	struct message last = contribution(.worker = 1, .blocks = 0, .ipv6 = true,
					   .vlan = ETH_P_8021Q);
	struct sent out;

	if (!frames_have_ends(*state))
		skip();
	expect(*state, contribution(.worker = 0, .blocks = TALLY_BLOCKS_MAX, .value = 42),
	       TALLY_ABSORBED, NULL);
	for (int again = 0; again < 2; again++) {
		expect(*state, last, TALLY_NO_ROOM, &out);
		assert_int_equal(out.tally.kind, TALLY_ASK);
		assert_int_equal(out.tally.blocks, 0);
		assert_int_equal(tally_le64_get(out.tally.check), check_of(42, TALLY_BLOCKS_MAX));
		assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
		assert_set(&out, tally_set_first(2));
	}
	expect(*state, contribution(.worker = 1, .blocks = TALLY_BLOCKS_MAX, .value = 0),
	       TALLY_ANSWERED, &out);
	assert_sum(&out, 42);
}

/* Nothing is lost of what an inner node holds. */
static void a_flush_too_short_for_the_sum_leaves_the_slot_as_it_is(void **state)
{
	struct message m = contribution(.worker = 0, .blocks = TALLY_BLOCKS_MAX, .value = 42);
	struct memory *before;
	struct sent out;

	if (!frames_have_ends(*state))
		skip();
	job_put(*state, JOB, inner_job());
	expect(*state, m, TALLY_ABSORBED, NULL);
	before = memory_read(*state);
	expect(*state,
	       contribution(.worker = 0, .blocks = 0, .flags = TALLY_FLUSH, .ipv6 = true,
			    .vlan = ETH_P_8021Q),
	       TALLY_NO_ROOM, &out);
	assert_set(&out, tally_set_first(4));
	assert_memory_is(*state, before);
	m.flags = TALLY_FLUSH;
	expect(*state, m, TALLY_FLUSHED_UP, &out);
	assert_sum(&out, 42);
}

/* --- a finished chunk is answered */

static void assert_to_rank_0(const struct sent *out)
{
	__u8 mac[ETH_ALEN], ip6[16];

	worker_mac(0, mac);
	worker_ip6(0, ip6);
	assert_memory_equal(out->eth.h_dest, mac, ETH_ALEN);
	assert_memory_equal(out->eth.h_source, node_mac, ETH_ALEN);
	assert_int_equal(ntohs(out->udp.dest), UDP_PORT_OF_RANK_0);
	if (out->ipv6)
		assert_memory_equal(&out->ip6.daddr, ip6, 16);
	else
		assert_int_equal(out->ip4.daddr, worker_ip4(0));
}

static void a_late_worker_gets_the_result_alone(void **state)
{
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state, contribution(.worker = 0, .seq = seq, .value = 40),
			       TALLY_ABSORBED, NULL);
			expect(*state, contribution(.worker = 1, .seq = seq, .value = 2),
			       TALLY_COMPLETED, NULL);
			expect(*state,
			       contribution(.worker = 0, .seq = seq, .value = 40, shaped(f)),
			       TALLY_ANSWERED, &out);
			assert_sum(&out, 42);
			assert_set(&out, tally_set_first(2));
			assert_int_equal(out.tally.kind, TALLY_RESULT);
			assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
			assert_from_service(&out, f);
			assert_to_rank_0(&out);
		}
}

/* In UDP, a checksum of 0 says that there is none. */
static void an_answers_checksum_of_0_is_sent_as_the_other_zero(void **state)
{
	for
		each_form(f)
		{
			struct message m = contribution(.worker = 0, .seq = f - forms, .value = 9,
							shaped(f));
			const __u32 udp_at = frame_headers_bytes(m) - sizeof(struct udphdr);
			struct frame frame;
			struct udphdr udp;
			struct sent out;

			expect(*state, contribution(.set = { { 3 } }, .seq = m.seq),
			       TALLY_COMPLETED, NULL);
			expect(*state, m, TALLY_ANSWERED, &out);
			/* to that UDP port, the answer's sum is 0 */
			frame_write(m, &frame);
			memcpy(&udp, frame.data + udp_at, sizeof(udp));
			udp.source = sum_add(udp.source, out.udp.check);
			udp.check = ~sum_add(~udp.check, out.udp.check);
			memcpy(frame.data + udp_at, &udp, sizeof(udp));
			expect_frame(*state, &frame, TALLY_ANSWERED, &out);
			assert_int_equal(out.udp.check, 0xffff);
		}
}

static void a_late_partial_sum_brings_the_result_to_everyone(void **state)
{
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.set = tally_set_first(2), .seq = seq, .value = 42),
			       TALLY_COMPLETED, NULL);
			expect(*state,
			       contribution(.set = tally_set_first(2), .seq = seq, .value = 42,
					    shaped(f)),
			       TALLY_ANSWERED_ALL, &out);
			assert_sum(&out, 42);
			assert_int_equal(out.tally.kind, TALLY_RESULT);
			assert_from_service(&out, f);
		}
}

static void who_is_not_the_recipient_gets_word_without_payload(void **state)
{
	struct sent out;

	for (__u32 seq = 0; seq < 2; seq++) {
		int to = seq, other = !to;

		expect(*state, contribution(.worker = to, .seq = seq, .recipient = to, .value = 40),
		       TALLY_ABSORBED, NULL);
		expect(*state,
		       contribution(.worker = other, .seq = seq, .recipient = to, .value = 2),
		       TALLY_COMPLETED, &out);
		assert_int_equal(tally_le16_get(out.tally.recipient), to);
		assert_sum(&out, 42);

		expect(*state, contribution(.worker = to, .seq = seq, .recipient = to),
		       TALLY_ANSWERED, &out);
		assert_int_equal(out.tally.blocks, 1);
		assert_sum(&out, 42);
		expect(*state, contribution(.worker = other, .seq = seq, .recipient = to),
		       TALLY_ANSWERED, &out);
		assert_int_equal(out.tally.blocks, 0);
		assert_int_equal(tally_le64_get(out.tally.check), check_of(42, 1));
		assert_set(&out, tally_set_first(2));
	}
}

static void an_answer_has_the_results_books_not_the_askers(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .recipient = 1, .scale = 9, .value = 40),
	       TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .recipient = 1, .value = 2), TALLY_COMPLETED,
	       NULL);
	expect(*state,
	       contribution(.worker = 1, .recipient = 1, .scale = 200, .scale_ahead = 9,
			    .flags = TALLY_WIDE | TALLY_FLUSH, .value = 7, .edition = 9),
	       TALLY_ANSWERED, &out);
	assert_sum(&out, 42);
	assert_int_equal(out.tally.blocks, 1);
	assert_int_equal(out.tally.lane, TALLY_LANE_INT64);
	assert_int_equal(out.tally.scale, 9);
	assert_int_equal(out.tally.scale_ahead, 0);
	assert_int_equal(out.tally.edition, 0);
	assert_int_equal(out.tally.flags, 0);
	assert_int_equal(tally_le16_get(out.tally.recipient), 1);
	assert_int_equal(tally_le16_get(out.tally.sender), TALLY_FROM_NODE);
}

/* --- contributions to one chunk agree */

static void a_contribution_that_disagrees_is_refused(void **state)
{
	struct memory *before;
	struct sent out;

	expect(*state, contribution(.worker = 0, .blocks = 2, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .blocks = 1), TALLY_CONFLICT, NULL);
	before = memory_read(*state);
	expect(*state, contribution(.worker = 1, .blocks = 1), TALLY_CONFLICT_AGAIN, NULL);
	expect(*state, contribution(.worker = 1, .blocks = 3), TALLY_CONFLICT_AGAIN, NULL);
	expect(*state, contribution(.worker = 1, .blocks = 2, .recipient = 0), TALLY_CONFLICT_AGAIN,
	       NULL);
	expect(*state, contribution(.worker = 1, .blocks = 0, .recipient = 0), TALLY_CONFLICT_AGAIN,
	       NULL);
	for (int lane = 0; lane <= 255; lane++)
		if (lane != TALLY_LANE_INT64)
			expect(*state, contribution(.worker = 1, .blocks = 2, .lane = lane),
			       TALLY_CONFLICT_AGAIN, NULL);
	for (int bit = 0; bit < 64; bit++)
		expect(*state, contribution(.worker = 1, .blocks = 2, .call = 1ULL << bit),
		       TALLY_CONFLICT_AGAIN, NULL);
	assert_memory_is(*state, before);
	expect(*state, contribution(.worker = 1, .blocks = 2, .value = 2), TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static const struct message disagreeing[] = {
	contribution(.worker = 1, .blocks = 3, .call = 5),
	contribution(.worker = 1, .blocks = 2, .call = 6),
	contribution(.worker = 1, .blocks = 2, .call = 5, .lane = TALLY_LANE_INT32),
	contribution(.worker = 1, .blocks = 2, .call = 5, .recipient = 1),
	contribution(.worker = 1, .blocks = 0, .call = 7),
};

/* The slot's call and its callers; the other call and its caller. */
static void show_mismatch(struct node *node, const struct form *f, __u8 is_large,
			  const struct message *disagrees, __u32 seq)
{
	struct message m = *disagrees;
	struct sent out;

	expect(node,
	       contribution(.worker = 0, .seq = seq, .blocks = 2, .call = 5, .flags = is_large),
	       TALLY_ABSORBED, NULL);
	m.seq = seq;
	m.flags = is_large;
	m.ipv6 = f->ipv6;
	m.vlan = f->vlan;
	expect(node, m, TALLY_CONFLICT, &out);
	assert_int_equal(out.tally.kind, TALLY_MISMATCH);
	assert_int_equal(out.tally.flags, is_large);
	assert_int_equal(out.tally.blocks, 0);
	assert_int_equal(tally_le32_get(out.tally.seq), seq);
	assert_int_equal(tally_le64_get(out.tally.call), 5);
	assert_int_equal(tally_le64_get(out.tally.check), m.call);
	assert_int_equal(tally_le16_get(out.tally.sender), 1);
	assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
	assert_set(&out, set_of(0));
	assert_from_service(&out, f);
	expect(node, m, TALLY_CONFLICT_AGAIN, NULL);
}

static void everyone_hears_once_who_calls_what(void **state)
{
	__u32 seq = 0;

	for (int i = 0; i < 2; i++) {
		__u8 is_large = i ? TALLY_LARGE : 0;

		job_put(*state, JOB, root_job(.everyone = tally_set_first(is_large ? 65 : 3)));
		for
			each_form(f) for (size_t j = 0; j < COUNT(disagreeing); j++)
				show_mismatch(*state, f, is_large, &disagreeing[j], seq++);
	}
}

/* The node's clock. */
static __u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

static void let_the_node_ask_again(void)
{
	__u64 then = now_ms() + TALLY_ASK_EVERY_MS;

	while (now_ms() < then)
		;
}

/*
 * Whoever missed it flushes, and so does the one that it is about. What a flushed message gets
 * first, it gets again after 4 ms, and not before.
 */
static void show_asks(struct node *node, struct message m, enum tally_outcome first)
{
	struct frame frame, out;
	__u64 begin;
	int action;

	for (int attempt = 0; attempt < 100; attempt++) {
		m.seq += SLOTS_OF_JOB;
		m.call = 5;
		m.flags = 0;
		expect(node, m, TALLY_ABSORBED, NULL);
		if (first == TALLY_CONFLICT) {
			m.call = 6;
			expect(node, m, TALLY_CONFLICT, NULL);
		}
		m.flags = TALLY_FLUSH;
		begin = now_ms();
		expect(node, m, first, NULL);
		frame_write(m, &frame);
		action = node_run(node, &frame, &out);
		if (now_ms() - begin >= TALLY_ASK_EVERY_MS)
			continue; /* too slow to tell */
		assert_int_equal(action, XDP_DROP);
		let_the_node_ask_again();
		expect(node, m, first, NULL);
		return;
	}
	fail_msg("this machine is too slow");
}

static void a_slot_asks_at_most_every_4_ms(void **state)
{
	show_asks(*state, contribution(.worker = 0, .seq = 1), TALLY_ASKED);
	show_asks(*state, contribution(.worker = 0, .seq = 2), TALLY_CONFLICT);
}

/* A dispute does not end by a flush of those who agree: all hear of it again. */
static void a_flush_into_a_disputed_chunk_tells_of_the_dispute(void **state)
{
	struct sent out;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(3)));
	expect(*state, contribution(.worker = 0, .call = 5), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 2, .call = 6), TALLY_CONFLICT, NULL);
	expect(*state, contribution(.worker = 1, .call = 5, .flags = TALLY_FLUSH), TALLY_CONFLICT,
	       &out);
	assert_int_equal(out.tally.kind, TALLY_MISMATCH);
	assert_int_equal(tally_le64_get(out.tally.call), 5);
	assert_int_equal(tally_le64_get(out.tally.check), 6);
	assert_int_equal(tally_le16_get(out.tally.sender), 2);
	assert_set(&out, tally_set_first(2));
}

/* Its sender hears so, whichever call it has; the result stays. */
static void who_disagrees_with_a_finished_chunk_does_not_get_its_result(void **state)
{
	struct sent out;

	expect(*state, contribution(.set = tally_set_first(2), .value = 42), TALLY_COMPLETED, NULL);
	expect(*state, contribution(.worker = 1, .lane = TALLY_LANE_INT32), TALLY_CONFLICT, &out);
	assert_set(&out, tally_set_first(2));
	expect(*state, contribution(.worker = 1, .blocks = 2), TALLY_CONFLICT_AGAIN, NULL);
	expect(*state, contribution(.worker = 1), TALLY_ANSWERED, &out);
	assert_sum(&out, 42);
}

/*
 * A worker rejects the sum that the slot has: the slot gathers anew, all are asked, and who asks
 * again for the sum that was rejected gets the new one.
 */
static void show_spoiled(struct node *node, const struct form *f, __u8 is_large, __u32 seq)
{
	struct message m = contribution(.worker = 0, .seq = seq, .value = 40, .flags = is_large,
					.set = is_large ? set_of(70) : (struct tally_set){ { 0 } },
					shaped(f));
	struct message other = m, rejects = m;
	struct tally_set mine = m.set;
	struct sent out;

	tally_set_add(&mine, 0);
	other.set = set_of(1);
	other.worker = 1;
	other.value = 2;
	rejects.flags |= TALLY_REJECT | TALLY_FLUSH;
	expect(node, m, TALLY_ABSORBED, NULL);
	other.identity = 1; /* is wrong */
	expect(node, other, TALLY_COMPLETED, &out);
	assert_int_equal(out.tally.edition, 0);

	expect(node, rejects, TALLY_SPOILED, &out);
	assert_int_equal(out.tally.kind, TALLY_ASK);
	assert_int_equal(out.tally.edition, 1);
	assert_int_equal(out.tally.blocks, 0);
	assert_set(&out, mine);
	assert_from_service(&out, f);
	rejects.edition = 7;
	rejects.flags &= ~TALLY_FLUSH;
	expect(node, rejects, TALLY_DUPLICATE, NULL); /* not of the sum that is gathered now */

	other.identity = 0;
	expect(node, other, TALLY_COMPLETED, &out);
	assert_int_equal(out.tally.edition, 1);
	assert_sum(&out, 42);
	rejects.edition = 0;
	if (!is_large) {
		expect(node, rejects, TALLY_ANSWERED, &out);
		assert_sum(&out, 42);
	}
	rejects.edition = 1;
	expect(node, rejects, TALLY_SPOILED, &out);
	assert_int_equal(out.tally.edition, 2);
}

static void a_sum_that_a_worker_rejects_is_made_anew(void **state)
{
	struct tally_set far_ranks = tally_set_first(2);
	__u32 seq = 0;

	tally_set_add(&far_ranks, 70);
	for
		each_form(f)
		{
			job_put(*state, JOB, root_job());
			show_spoiled(*state, f, 0, seq++);
			job_put(*state, JOB, root_job(.everyone = far_ranks));
			show_spoiled(*state, f, TALLY_LARGE, seq++);
		}
}

/* --- sequence numbers */

/* Four rounds of the ring from `start`: each chunk is summed, each one before it is over. */
static void show_ring(struct node *node, __u32 start)
{
	struct sent out;

	for (__u32 i = 0; i < 4 * SLOTS_OF_JOB; i++) {
		__u32 seq = start + i;

		expect(node, contribution(.worker = 1, .seq = seq, .value = i), TALLY_ABSORBED,
		       NULL);
		expect(node, contribution(.worker = 0, .seq = seq, .value = 5), TALLY_COMPLETED,
		       &out);
		assert_sum(&out, 5 + i);
		expect(node, contribution(.worker = 0, .seq = seq, .value = 5), TALLY_ANSWERED,
		       &out);
		assert_sum(&out, 5 + i);
		if (i < SLOTS_OF_JOB)
			continue;
		expect(node, contribution(.worker = 0, .seq = seq - SLOTS_OF_JOB), TALLY_BEHIND,
		       &out);
		assert_int_equal(tally_le64_get(out.tally.check), seq);
		expect(node, contribution(.worker = 0, .seq = seq - SLOTS_OF_JOB / 2),
		       TALLY_ANSWERED, &out);
		assert_sum(&out, 5 + i - SLOTS_OF_JOB / 2);
	}
}

static void the_ring_turns_past_every_wrap(void **state)
{
	static const __u32 starts[] = { 0, 1U << 31, ~0U - 2 * SLOTS_OF_JOB, (1U << 31) - 37, ~0U };

	for (size_t i = 0; i < COUNT(starts); i++) {
		node_reset(state);
		show_ring(*state, starts[i]);
	}
}

static void an_unfinished_chunk_gives_way_to_a_newer_one(void **state)
{
	struct sent out;

	expect(*state, contribution(.worker = 0, .seq = 5, .blocks = 2, .value = 1000),
	       TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 5 + SLOTS_OF_JOB, .value = 40),
	       TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .seq = 5, .blocks = 2, .value = 1000),
	       TALLY_BEHIND, NULL);
	expect(*state, contribution(.worker = 1, .seq = 5 + SLOTS_OF_JOB, .value = 2),
	       TALLY_COMPLETED, &out);
	assert_sum(&out, 42);
}

static void newer_is_up_to_so_many_chunks_ahead(void **state)
{
	static const __u32 newer[] = { 16, 32, TALLY_AHEAD_MAX - 16, TALLY_AHEAD_MAX };
	static const __u32 nowhere[] = { TALLY_AHEAD_MAX + 16, 1U << 30, (1U << 31) - 16,
					 1U << 31 };
	static const __u32 older[] = { (1U << 31) + 16, -(1U << 30), -TALLY_AHEAD_MAX, -32U, -16U };
	static const __u32 from[] = { 0, 3, 1U << 31, ~0U };

	for (size_t i = 0; i < COUNT(from); i++) {
		for (size_t j = 0; j < COUNT(newer); j++) {
			node_reset(state);
			expect(*state, contribution(.worker = 0, .seq = from[i]), TALLY_ABSORBED,
			       NULL);
			expect(*state, contribution(.worker = 0, .seq = from[i] + newer[j]),
			       TALLY_ABSORBED, NULL);
		}
		for (size_t j = 0; j < COUNT(nowhere); j++) {
			node_reset(state);
			expect(*state, contribution(.worker = 0, .seq = from[i]), TALLY_ABSORBED,
			       NULL);
			expect(*state, contribution(.worker = 0, .seq = from[i] + nowhere[j]),
			       TALLY_STALE, NULL);
			expect(*state,
			       repair(.set = tally_set_first(2), .seq = from[i] + nowhere[j]),
			       TALLY_STALE, NULL);
		}
		for (size_t j = 0; j < COUNT(older); j++) {
			node_reset(state);
			expect(*state, contribution(.worker = 0, .seq = from[i]), TALLY_ABSORBED,
			       NULL);
			expect(*state, contribution(.worker = 0, .seq = from[i] + older[j]),
			       TALLY_BEHIND, NULL);
			expect(*state, repair(.set = tally_set_first(2), .seq = from[i] + older[j]),
			       TALLY_STALE, NULL);
		}
	}
}

static void chunks_do_not_mix(void **state)
{
	struct sent out;

	for (__u32 seq = 0; seq < SLOTS_OF_JOB; seq++) {
		expect(*state, contribution(.worker = 0, .seq = seq, .value = seq), TALLY_ABSORBED,
		       NULL);
		expect(*state,
		       contribution(.job = OTHER_JOB, .worker = 0, .seq = seq, .value = 100),
		       TALLY_ABSORBED, NULL);
	}
	for (__u32 seq = 0; seq < SLOTS_OF_JOB; seq++) {
		expect(*state,
		       contribution(.job = OTHER_JOB, .worker = 1, .seq = seq, .value = seq),
		       TALLY_COMPLETED, &out);
		assert_sum(&out, 100 + seq);
		assert_int_equal(tally_le32_get(out.tally.job), OTHER_JOB);
		expect(*state, contribution(.worker = 1, .seq = seq, .value = 3), TALLY_COMPLETED,
		       &out);
		assert_sum(&out, 3 + seq);
		assert_int_equal(tally_le32_get(out.tally.job), JOB);
	}
}

/* --- flush and repair at the root */

static void a_flush_asks_everyone_for_a_lost_result(void **state)
{
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 3, .value = 5),
			       TALLY_ABSORBED, NULL);
			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 3, .value = 5,
					    .flags = TALLY_FLUSH, shaped(f)),
			       TALLY_ASKED, &out);
			assert_int_equal(out.tally.kind, TALLY_ASK);
			assert_int_equal(out.tally.flags, 0);
			assert_int_equal(out.tally.blocks, 0);
			assert_int_equal(tally_le64_get(out.tally.check), check_of(5, 3));
			assert_int_equal(tally_le32_get(out.tally.seq), seq);
			assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
			assert_set(&out, set_of(1));
			assert_from_service(&out, f);
		}
}

static void a_flushed_contribution_counts(void **state)
{
	struct sent out;

	job_put(*state, JOB, root_job(.everyone = tally_set_first(3)));
	expect(*state, contribution(.worker = 0, .value = 1, .flags = TALLY_FLUSH), TALLY_ASKED,
	       NULL);
	let_the_node_ask_again();
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH), TALLY_ASKED,
	       &out);
	assert_set(&out, tally_set_first(2));
	let_the_node_ask_again();
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH), TALLY_ASKED,
	       NULL);
	let_the_node_ask_again();
	expect(*state, contribution(.set = tally_set_first(3), .flags = TALLY_FLUSH), TALLY_ASKED,
	       NULL);
	expect(*state, contribution(.worker = 2, .value = 4, .flags = TALLY_FLUSH), TALLY_COMPLETED,
	       &out);
	assert_sum(&out, 7);
	assert_int_equal(out.tally.flags, 0);
	expect(*state, contribution(.worker = 2, .value = 4, .flags = TALLY_FLUSH), TALLY_ANSWERED,
	       &out);
	assert_sum(&out, 7);
	expect(*state, contribution(.worker = 2, .seq = -16, .flags = TALLY_FLUSH), TALLY_BEHIND,
	       NULL);
}

static void a_repair_brings_a_lost_result_back(void **state)
{
	const struct tally_set everyone = tally_set_first(2);

	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 1, .value = 5),
			       TALLY_ABSORBED, NULL);
			expect(*state,
			       repair(.set = everyone, .seq = seq, .blocks = 3, .value = 42,
				      .scale = 9, .recipient = 0, .flags = TALLY_WIDE, shaped(f)),
			       TALLY_REPAIRED, &out);
			assert_int_equal(out.tally.kind, TALLY_RESULT);
			assert_int_equal(out.tally.blocks, 3);
			assert_int_equal(out.tally.scale, 9);
			assert_int_equal(out.tally.flags, TALLY_WIDE);
			assert_int_equal(tally_le16_get(out.tally.recipient), 0);
			assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
			assert_sum(&out, 42);
			assert_set(&out, everyone);
			assert_from_service(&out, f);
			expect(*state,
			       contribution(.worker = 0, .seq = seq, .recipient = 0, .blocks = 0),
			       TALLY_ANSWERED, &out);
			assert_sum(&out, 42);
			assert_int_equal(out.tally.blocks, 3);
		}
}

static void a_repair_may_be_without_payload(void **state)
{
	struct sent out;

	expect(*state, repair(.set = tally_set_first(2), .blocks = 0), TALLY_REPAIRED, &out);
	assert_int_equal(out.tally.blocks, 0);
	expect(*state, contribution(.worker = 0), TALLY_ANSWERED, &out);
	assert_int_equal(out.tally.blocks, 0);
}

static void a_repair_changes_no_finished_chunk(void **state)
{
	const struct tally_set everyone = tally_set_first(2);
	struct sent out;

	expect(*state, contribution(.set = everyone, .seq = 16, .value = 42), TALLY_COMPLETED,
	       NULL);
	expect(*state, repair(.set = everyone, .seq = 16, .value = 1), TALLY_DUPLICATE, NULL);
	expect(*state, repair(.set = everyone, .seq = 0, .value = 1), TALLY_STALE, NULL);
	expect(*state, repair(.worker = 0, .seq = 32, .value = 1), TALLY_BAD_SET, NULL);
	expect(*state, contribution(.worker = 0, .seq = 16), TALLY_ANSWERED, &out);
	assert_sum(&out, 42);
	expect(*state, repair(.set = everyone, .seq = 32, .value = 1), TALLY_REPAIRED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 16), TALLY_BEHIND, NULL);
}

/* --- a node below the root */

static void inner_node(void **state) { job_put(*state, JOB, inner_job()); }

static void all_below_have_come_and_their_sum_goes_on(void **state)
{
	inner_node(state);
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.worker = 0, .seq = seq, .value = 40, .scale = 9,
					    .flags = TALLY_WIDE),
			       TALLY_ABSORBED, NULL);
			expect(*state, contribution(.worker = 1, .seq = seq, .value = 2, shaped(f)),
			       TALLY_SENT_UP, &out);
			assert_sum(&out, 42);
			assert_set(&out, tally_set_first(2));
			assert_int_equal(out.tally.kind, TALLY_CONTRIBUTION);
			assert_int_equal(out.tally.flags, TALLY_WIDE);
			assert_int_equal(out.tally.boot, 0);
			assert_int_equal(out.tally.scale, 9);
			assert_int_equal(ntohs(out.udp.dest), TALLY_UDP_PORT);
			assert_int_equal(ntohs(out.udp.source), UDP_PORT_OF_RANK_0 + 1);
			assert_memory_equal(out.eth.h_dest, node_mac, ETH_ALEN);
			if (!f->ipv6) {
				assert_int_equal(out.ip4.saddr, worker_ip4(1));
				assert_int_equal(out.ip4.daddr, service_ip4());
			}
		}
}

static void a_retransmission_sends_the_whole_sum_up_again(void **state)
{
	struct sent out;

	inner_node(state);
	expect(*state, contribution(.worker = 0, .blocks = 4, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .blocks = 4, .value = 40), TALLY_DUPLICATE, NULL);
	expect(*state, contribution(.worker = 1, .blocks = 4, .value = 2), TALLY_SENT_UP, NULL);
	for (int rank = 0; rank < 2; rank++)
		for (__u8 blocks = 0; blocks <= 4; blocks += 4) {
			expect(*state, contribution(.worker = rank, .blocks = blocks, .value = 9),
			       TALLY_SENT_UP, &out);
			assert_int_equal(out.tally.blocks, 4);
			assert_sum(&out, 42);
			assert_set(&out, tally_set_first(2));
		}
}

static void a_sum_goes_up_when_the_last_came_without_payload(void **state)
{
	inner_node(state);
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct sent out;

			expect(*state,
			       contribution(.worker = 0, .seq = seq, .blocks = 20, .value = 42),
			       TALLY_ABSORBED, NULL);
			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 0, shaped(f)),
			       TALLY_SENT_UP, &out);
			assert_int_equal(out.tally.blocks, 20);
			assert_sum(&out, 42);
		}
}

static void a_flush_takes_the_partial_sum_along_and_empties_the_slot(void **state)
{
	inner_node(state);
	for
		each_form(f)
		{
			__u32 seq = f - forms;
			struct tally_slot slot;
			struct sent out;

			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 3, .value = 5),
			       TALLY_ABSORBED, NULL);
			expect(*state,
			       contribution(.worker = 1, .seq = seq, .blocks = 0, .value = 9,
					    .flags = TALLY_FLUSH, shaped(f)),
			       TALLY_FLUSHED_UP, &out);
			assert_int_equal(out.tally.kind, TALLY_CONTRIBUTION);
			assert_int_equal(out.tally.flags, TALLY_FLUSH);
			assert_int_equal(out.tally.boot, 0);
			assert_int_equal(out.tally.blocks, 3);
			assert_sum(&out, 5);
			assert_set(&out, set_of(1));

			slot = slot_read(*state, seq);
			assert_true(tally_set_is_empty(&slot.state.set));
			assert_int_equal(slot.state.seq, seq);
			assert_int_equal(slot.state.phase, TALLY_SLOT_GATHERING);
			expect(*state, contribution(.worker = 1, .seq = seq, .value = 5),
			       TALLY_ABSORBED, NULL);
		}
}

static void a_flush_of_a_whole_slot_takes_all_of_it(void **state)
{
	struct sent out;

	inner_node(state);
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_SENT_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH),
	       TALLY_FLUSHED_UP, &out);
	assert_sum(&out, 42);
	assert_set(&out, tally_set_first(2));
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
}

/* As a program of this machine sends it: the kernel adds the checksum to what stands there. */
static struct frame frame_unsummed(struct message m)
{
	const __u32 udp_at = frame_headers_bytes(m) - sizeof(struct udphdr);
	struct frame frame;

	frame_write(m, &frame);
	put_be16(&frame, udp_at + offsetof(struct udphdr, check),
		 frame_pseudo_sum(&frame, udp_at, m.ipv6));
	return frame;
}

/* `m`, unsummed, makes the sum of its slot go up; the kernel can add its checksum to that, too. */
static void show_unsummed_up(struct node *node, struct message m, enum tally_outcome outcome)
{
	const __u32 udp_at = frame_headers_bytes(m) - sizeof(struct udphdr);
	struct frame in = frame_unsummed(m), out;
	struct counts before = counts_read(node);
	struct udphdr udp;

	jobs_follow(node, &in);
	assert_int_equal(node_run(node, &in, &out), XDP_PASS);
	assert_int_equal(counts_read(node).of[outcome].packet, before.of[outcome].packet + 1);
	memcpy(&udp, out.data + udp_at, sizeof(udp));
	assert_int_equal(ntohs(udp.len), out.bytes - udp_at);
	assert_int_equal(ntohs(udp.check), frame_pseudo_sum(&out, udp_at, m.ipv6));
}

/* TC asks the kernel, and a test run says that this frame has its checksum: see test_onward.c. */
static void a_checksum_that_is_still_to_be_made_stays_so_on_the_way_up(void **state)
{
	struct node *node = *state;

	if (node->by_tc)
		skip();
	inner_node(state);
	for
		each_form(f)
		{
			__u32 seq = f - forms;

			for (__u8 blocks = 0; blocks < 9; blocks += 4, seq += COUNT(forms)) {
				struct message m = contribution(.worker = 0, .seq = seq,
								.blocks = 4, .value = 40,
								shaped(f));

				expect(node, m, TALLY_ABSORBED, NULL);
				m = contribution(.worker = 1, .seq = seq, .blocks = blocks,
						 .value = 2, shaped(f));
				if (blocks <= 4)
					show_unsummed_up(node, m, TALLY_SENT_UP);
				m.flags = TALLY_FLUSH;
				m.worker = 0;
				show_unsummed_up(node, m, TALLY_FLUSHED_UP);
			}
		}
}

static void a_flush_that_the_slot_does_not_hold_goes_on_alone(void **state)
{
	struct memory *before;

	inner_node(state);
	before = memory_read(*state);
	expect(*state, contribution(.worker = 0, .flags = TALLY_FLUSH), TALLY_PASSED_UP, NULL);
	assert_memory_is(*state, before);

	expect(*state, contribution(.worker = 0, .seq = 16), TALLY_ABSORBED, NULL);
	before = memory_read(*state);
	expect(*state, contribution(.worker = 1, .seq = 16, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
	expect(*state, contribution(.worker = 0, .seq = 0, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
	expect(*state, contribution(.worker = 0, .seq = 32, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
	assert_memory_is(*state, before);
}

static void an_overlap_goes_on_unmerged(void **state)
{
	struct sent out;

	job_put(*state, JOB, inner_job(.below = tally_set_first(3)));
	expect(*state, contribution(.worker = 0, .value = 1), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.set = tally_set_first(2), .value = 3), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 2, .value = 4), TALLY_SENT_UP, &out);
	assert_sum(&out, 7);
}

static void a_strangers_detour_is_resolved_by_flush(void **state)
{
	struct sent out;

	inner_node(state);
	expect(*state, contribution(.worker = 3, .value = 8), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .value = 1), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .value = 1, .flags = TALLY_FLUSH),
	       TALLY_FLUSHED_UP, &out);
	assert_sum(&out, 9);
}

static void a_stranger_does_not_hold_up_those_below(void **state)
{
	struct sent out;

	inner_node(state);
	expect(*state, contribution(.worker = 3, .value = 8), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .value = 1), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_SENT_UP, &out);
	assert_sum(&out, 11);
}

static void an_inner_node_keeps_its_chunks_apart(void **state)
{
	inner_node(state);
	expect(*state, contribution(.worker = 0, .seq = 16), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .seq = 0), TALLY_STALE, NULL);
	expect(*state, contribution(.worker = 1, .seq = 16, .blocks = 2), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .seq = 16, .call = 9), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .seq = 32), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 16), TALLY_STALE, NULL);
}

static void an_inner_node_hands_repairs_up_and_results_down(void **state)
{
	struct memory *before = memory_read(*state);

	inner_node(state);
	for
		each_form(f)
		{
			expect(*state, repair(.set = tally_set_first(4), .value = 42, shaped(f)),
			       TALLY_PASSED_UP, NULL);
			expect(*state, result(.set = tally_set_first(4), .value = 42, shaped(f)),
			       TALLY_SENT_DOWN, NULL);
			expect(*state, ask(.set = set_of(2), shaped(f)), TALLY_SENT_DOWN, NULL);
			expect(*state, ask(shaped(f)), TALLY_SENT_DOWN, NULL);
		}
	expect(*state, result(.set = tally_set_first(5)), TALLY_BAD_SET, NULL);
	assert_memory_is(*state, before);
}

/* The frame of `m`, but for the time to live and its checksum. */
static void assert_fewer_hops(struct message m, struct sent *out)
{
	__u8 *hops = out->frame.data + frame_headers_bytes(m) - sizeof(struct udphdr);
	struct frame in;

	frame_write(m, &in);
	hops -= m.ipv6 ? sizeof(struct ipv6hdr) - offsetof(struct ipv6hdr, hop_limit)
		       : sizeof(struct iphdr) - offsetof(struct iphdr, ttl);
	assert_int_equal(*hops += TALLY_HOPS_DOWN, m.ttl);
	if (!m.ipv6)
		memcpy(hops + 2, in.data + (hops + 2 - out->frame.data), sizeof(out->ip4.check));
	assert_int_equal(out->frame.bytes, in.bytes);
	assert_memory_equal(out->frame.data, in.data, in.bytes);
}

/* Nodes that name each other would send a message round and round. */
static void each_node_on_the_way_down_takes_hops_of_the_time_to_live(void **state)
{
	inner_node(state);
	for
		each_form(f)
		{
			struct message m[] = {
				result(.set = tally_set_first(4), .value = 42, shaped(f)),
				ask(.set = set_of(2), shaped(f)),
			};

			for (size_t i = 0; i < COUNT(m); i++) {
				struct sent out;

				for (m[i].ttl = 255; m[i].ttl > TALLY_HOPS_DOWN; m[i].ttl--) {
					expect(*state, m[i], TALLY_SENT_DOWN, &out);
					assert_fewer_hops(m[i], &out);
				}
				for (; m[i].ttl; m[i].ttl--)
					expect(*state, m[i], TALLY_EXPIRED, NULL);
			}
		}
}

/* --- version 2: what a header says, and who hears of what */

static struct tally_set far_ranks(__u32 workers)
{
	struct tally_set set = tally_set_first(workers);

	tally_set_add(&set, 70);
	return set;
}

/* A job of ranks 0, 1 and 70, or of 0, 1 and 2. */
static void three_ranks(struct node *node, const struct form *f, bool is_large)
{
	job_put(node, JOB,
		root_job(.everyone = is_large ? far_ranks(2) : tally_set_first(3),
			 .ipv6 = f->ipv6));
}

#define each_size(f, size) each_form(f) for (__u8 size = 0; size < 2; size++)
#define sized(size) .flags = (size) ? TALLY_LARGE : 0

static void a_bit_that_flips_in_a_header_touches_no_slot(void **state)
{
	struct node *node = *state;
	struct memory *before = memory_read(node);
	struct frame in, out;

	for
		each_size(f, size)
		{
			struct message m = contribution(.worker = 0, .value = 9, sized(size),
							shaped(f));
			const __u32 at = frame_headers_bytes(m);

			three_ranks(node, f, size);
			frame_write(m, &in);
			for (__u32 bit = 0; bit < 8 * tally_header_bytes(m.flags); bit++) {
				int action;

				in.data[at + bit / 8] ^= 1 << bit % 8;
				action = node_run(node, &in, &out);
				/* untouched, dropped, or told which version this is */
				assert_true(action == XDP_PASS || action == XDP_DROP ||
					    (action == XDP_TX && bit / 8 == 1));
				in.data[at + bit / 8] ^= 1 << bit % 8;
			}
		}
	assert_memory_is(node, before);
}

static void a_wrong_tag_is_refused(void **state)
{
	struct memory *before = memory_read(*state);

	for
		each_size(f, size)
		{
			three_ranks(*state, f, size);
			for (int bit = 0; bit < 64; bit++)
				expect(*state,
				       contribution(.worker = 0, .spoilt = 1ULL << bit, sized(size),
						    shaped(f)),
				       TALLY_CORRUPT, NULL);
		}
	assert_memory_is(*state, before);
}

/* Sets `byte` of the message's header, with a right tag. */
static void show_unknown(struct node *node, struct message m, __u32 byte)
{
	struct frame frame;

	frame_write(m, &frame);
	frame.data[frame_headers_bytes(m) + byte] = 0x10;
	frame_retag(m, &frame);
	expect_frame(node, &frame, TALLY_UNKNOWN_FLAG, NULL);
}

static void what_this_version_does_not_know_is_refused(void **state)
{
	const __u32 reserved = offsetof(struct tally_header, reserved);
	struct memory *before = memory_read(*state);

	for
		each_size(f, size)
		{
			struct message m = contribution(.worker = 0, sized(size), shaped(f));

			three_ranks(*state, f, size);
			show_unknown(*state, m, offsetof(struct tally_header, shard));
			for (int i = 0; i < 3; i++)
				show_unknown(*state, m, reserved + i);
			for (__u32 i = 0; size && i < 8; i++)
				show_unknown(*state, m,
					     sizeof(struct tally_header) +
						     offsetof(struct tally_more, reserved) + i);
		}
	assert_memory_is(*state, before);
}

static void a_header_of_another_size_than_the_jobs_is_refused(void **state)
{
	struct memory *before = memory_read(*state);

	for
		each_size(f, size)
		{
			three_ranks(*state, f, size);
			expect(*state, contribution(.worker = 0, sized(!size), shaped(f)),
			       TALLY_BAD_SET, NULL);
		}
	assert_memory_is(*state, before);
}

static void who_is_behind_hears_how_far_its_slot_is(void **state)
{
	__u32 seq = 0;

	for
		each_size(f, size)
		{
			struct message m = contribution(.worker = 0, .blocks = 3, sized(size),
							shaped(f));
			struct sent out;

			three_ranks(*state, f, size);
			seq += 100 * SLOTS_OF_JOB;
			m.seq = seq;
			expect(*state, m, TALLY_ABSORBED, NULL);
			m.seq = seq - SLOTS_OF_JOB;
			expect(*state, m, TALLY_BEHIND, &out);
			assert_int_equal(out.tally.kind, TALLY_OVERTAKEN);
			assert_int_equal(tally_le32_get(out.tally.seq), m.seq);
			assert_int_equal(tally_le64_get(out.tally.check), seq);
			assert_int_equal(tally_le16_get(out.tally.sender), TALLY_FROM_NODE);
			assert_int_equal(tally_le16_get(out.tally.boot), NODE_BOOT);
			assert_int_equal(out.tally.blocks, 0);
			assert_int_equal(out.tally.flags, m.flags);
			assert_from_service(&out, f);
			assert_to_rank_0(&out);
		}
}

/* The three send chunk `seq`; a result of it tells `news` of the chunk `about` before. */
static void show_news(struct node *node, struct message m, __u16 about, struct tally_set news)
{
	struct sent out;

	m.worker = 1;
	expect(node, m, TALLY_ABSORBED, NULL);
	m.worker = m.flags & TALLY_LARGE ? 70 : 2;
	m.about = about;
	expect(node, m, TALLY_ABSORBED, NULL);
	m.worker = 0;
	m.about = 0;
	expect(node, m, TALLY_COMPLETED, &out);
	assert_int_equal(tally_le16_get(out.tally.about), about);
	assert_set(&out, news);
	m.about = about;
	expect(node, m, TALLY_ANSWERED, &out);
	assert_int_equal(tally_le16_get(out.tally.about), about);
	assert_set(&out, news);
	assert_to_rank_0(&out);
	m.about = 0;
	expect(node, m, TALLY_ANSWERED, &out);
	assert_int_equal(out.tally.about, 0);
	assert_set(&out, m.flags & TALLY_LARGE ? far_ranks(2) : tally_set_first(3));
}

static void a_result_brings_news_of_an_older_chunk(void **state)
{
	__u32 seq = 0;

	for
		each_size(f, size)
		{
			const struct tally_set everyone = size ? far_ranks(2) : tally_set_first(3);
			struct tally_set two = set_of(size ? 70 : 2);
			struct message m = contribution(.blocks = 2, .value = 1, sized(size),
							shaped(f));

			tally_set_add(&two, 1);
			three_ranks(*state, f, size);
			seq += 100 * SLOTS_OF_JOB;
			m.seq = seq;
			m.set = two;
			expect(*state, m, TALLY_ABSORBED, NULL); /* of `seq`, two are there */
			m.set = (struct tally_set){ { 0 } };
			m.seq = seq + 1;
			show_news(*state, m, 1, two);
			m.seq = seq + 3;
			show_news(*state, m, 2, everyone); /* finished */
			m.seq = seq + 5;
			show_news(*state, m, 1, (struct tally_set){ { 0 } }); /* not begun */
			m.seq = seq + 7;
			show_news(*state, m, 7 + SLOTS_OF_JOB, everyone); /* overtaken by `seq` */
		}
}

/* What asks about an older chunk goes up with the sum; the question about the oldest one. */
static void an_inner_node_hands_the_question_up(void **state)
{
	struct sent out;

	inner_node(state);
	expect(*state, contribution(.worker = 0, .seq = 9, .about = 3), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .seq = 9, .about = 2), TALLY_SENT_UP, &out);
	assert_int_equal(tally_le16_get(out.tally.about), 3);
	assert_set(&out, tally_set_first(2));
}

/* What leaves is well-formed whatever came in, and other jobs' slots stay as they are. */
static void mutated_frames_do_no_harm_to_another_job(void **state)
{
	struct node *node = *state;
	struct memory *before, *after;
	struct frame in, out;
	__u32 job;

	expect(node, contribution(.job = OTHER_JOB, .worker = 0, .value = 40), TALLY_ABSORBED,
	       NULL);
	before = memory_read(node);
	for (__u64 seed = 0; seed < 20000; seed++) {
		const struct form *f = &forms[seed % COUNT(forms)];
		const bool is_large = seed / COUNT(forms) % 2;
		struct message m = contribution(.worker = seed % 3, .seq = seed / 64, .value = seed,
						.blocks = seed % 4, sized(is_large), shaped(f));

		if (seed % 100 < 2 * COUNT(forms))
			three_ranks(node, f, is_large);
		frame_write(m, &in);
		mutate(m, &in, seed);
		memcpy(&job, in.data + frame_headers_bytes(m) + offsetof(struct tally_header, job),
		       sizeof(job));
		if (in.bytes < frame_headers_bytes(m) || job == OTHER_JOB)
			continue; /* TC's test run takes none so short; those that are of that job
				   */
		if (node_run(node, &in, &out) == XDP_REDIRECT)
			assert_true(out.bytes > 0);
	}
	after = memory_read(node);
	assert_memory_equal(before->slot + SLOTS_OF_JOB, after->slot + SLOTS_OF_JOB,
			    SLOTS_OF_JOB * sizeof(struct tally_slot));
	free(before);
	free(after);
}

/* --- by which port, from where, and how much */

enum {
	TENANT = 5,
	ANOTHER_PORT = 99,
};

static __u64 counted_in(struct node *node, __u32 row, enum tally_outcome outcome)
{
	return row_read(node, row).of[outcome].packet;
}

static void a_message_is_counted_at_the_gate_by_which_it_came_in(void **state)
{
	__u64 at_loopback = counted_in(*state, row_of_loopback(JOB), TALLY_ABSORBED);
	__u64 elsewhere = counted_in(*state, row_of_job(JOB), TALLY_ABSORBED);
	__u64 others = counted_in(*state, row_of_loopback(OTHER_JOB), TALLY_ABSORBED);

	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	assert_int_equal(counted_in(*state, row_of_loopback(JOB), TALLY_ABSORBED), ++at_loopback);
	expect(*state, contribution(.worker = 0, .job = OTHER_JOB), TALLY_ABSORBED, NULL);
	assert_int_equal(counted_in(*state, row_of_loopback(OTHER_JOB), TALLY_ABSORBED), ++others);

	gate_remove(*state, JOB, LOOPBACK);
	expect(*state, contribution(.worker = 0, .seq = 1), TALLY_ABSORBED, NULL);
	assert_int_equal(counted_in(*state, row_of_job(JOB), TALLY_ABSORBED), ++elsewhere);
	assert_int_equal(counted_in(*state, row_of_loopback(JOB), TALLY_ABSORBED), at_loopback);
}

static void what_is_of_no_job_is_counted_in_the_first_row(void **state)
{
	__u64 unknown = counted_in(*state, TALLY_ROW_NO_JOB, TALLY_UNKNOWN_JOB);
	__u64 other = counted_in(*state, TALLY_ROW_NO_JOB, TALLY_OTHER_VERSION);

	expect(*state, contribution(.worker = 0, .job = 99), TALLY_UNKNOWN_JOB, NULL);
	expect(*state, contribution(.worker = 0, .job = 99, .version = 9), TALLY_OTHER_VERSION,
	       NULL);
	assert_int_equal(counted_in(*state, TALLY_ROW_NO_JOB, TALLY_UNKNOWN_JOB), unknown + 1);
	assert_int_equal(counted_in(*state, TALLY_ROW_NO_JOB, TALLY_OTHER_VERSION), other + 1);
}

static __u64 counted_apart(struct node *node, __u32 port, enum tally_outcome outcome)
{
	struct counts apart = { { { 0 } } }, jobs = { { { 0 } } };

	port_read(node, port, &apart, &jobs);
	return apart.of[outcome].packet;
}

static __u64 counted_for_jobs(struct node *node, __u32 port, enum tally_outcome outcome)
{
	struct counts apart = { { { 0 } } }, jobs = { { { 0 } } };

	port_read(node, port, &apart, &jobs);
	return jobs.of[outcome].packet;
}

/* In one row, or in that of the whole job and at the port. */
static void what_a_port_received_is_counted_there(void **state)
{
	struct node *node = *state;
	__u64 alone = counted_in(node, row_of_loopback(JOB), TALLY_ABSORBED);
	__u64 whole = counted_in(node, row_of_job(JOB), TALLY_ABSORBED);

	at_port_put(node, LOOPBACK);
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	assert_int_equal(counted_in(node, row_of_loopback(JOB), TALLY_ABSORBED), alone + 1);
	assert_int_equal(counted_for_jobs(node, LOOPBACK, TALLY_ABSORBED), 0);

	gate_put(node, JOB, LOOPBACK, (struct tally_gate){ .row = row_of_job(JOB) });
	expect(node, contribution(.worker = 0, .seq = 1), TALLY_ABSORBED, NULL);
	gate_remove(node, JOB, LOOPBACK);
	expect(node, contribution(.worker = 0, .seq = 2), TALLY_ABSORBED, NULL);
	assert_int_equal(counted_in(node, row_of_job(JOB), TALLY_ABSORBED), whole + 2);
	assert_int_equal(counted_for_jobs(node, LOOPBACK, TALLY_ABSORBED), 2);

	expect(node, contribution(.worker = 0, .job = 99), TALLY_UNKNOWN_JOB, NULL);
	expect(node, message(.magic = 0), TALLY_FOREIGN, NULL);
	assert_int_equal(counted_apart(node, LOOPBACK, TALLY_UNKNOWN_JOB), 1);
	assert_int_equal(counted_apart(node, LOOPBACK, TALLY_FOREIGN), 1);
	assert_int_equal(counted_apart(node, LOOPBACK, TALLY_ABSORBED), 0);
}

static void a_forged_job_from_another_port_is_dropped_and_touches_no_slot(void **state)
{
	__u64 before = counted_in(*state, row_of_job(JOB), TALLY_OTHER_PORT);
	struct memory *memory;

	at_port_put(*state, LOOPBACK);

	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	gate_remove(*state, JOB, LOOPBACK);
	gate_put(*state, JOB, 0, (struct tally_gate){ .row = row_of_job(JOB) });
	gate_put(*state, JOB, ANOTHER_PORT, (struct tally_gate){ .row = row_of_loopback(JOB) });
	memory = memory_read(*state);
	for
		each_form(f)
		{
			for (int kind = TALLY_CONTRIBUTION; kind <= TALLY_REPAIR; kind++)
				expect(*state,
				       message(.kind = kind, .set = tally_set_first(2), .value = 9,
					       shaped(f)),
				       TALLY_OTHER_PORT, NULL);
		}
	expect(*state, contribution(.worker = 0, .epoch = 9), TALLY_OTHER_PORT, NULL);
	assert_memory_is(*state, memory);
	assert_int_equal(counted_apart(*state, LOOPBACK, TALLY_OTHER_PORT), COUNT(forms) * 4 + 1);
	assert_int_equal(counted_in(*state, row_of_job(JOB), TALLY_OTHER_PORT), before);
	expect(*state, contribution(.job = OTHER_JOB, .worker = 0), TALLY_ABSORBED, NULL);

	gate_put(*state, JOB, LOOPBACK, (struct tally_gate){ .row = row_of_loopback(JOB) });
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_COMPLETED, NULL);
}

/* JOB is the tenant's, and comes in at LOOPBACK from its sources alone. */
static void restrict_job(struct node *node)
{
	job_put(node, JOB, root_job(.tenant = TENANT));
	gate_put(node, JOB, LOOPBACK,
		 (struct tally_gate){ .row = row_of_loopback(JOB), .restricted = 1 });
}

#define be32(number) __builtin_bswap32(number) /* a constant, unlike htonl() */
#define source(...)                                            \
	((struct tally_source_key){ .bits = TALLY_SOURCE_BITS, \
				    .tenant = be32(TENANT),    \
				    .ifindex = be32(LOOPBACK), \
				    __VA_ARGS__ })

static void a_tenant_without_sources_comes_in_nowhere_restricted(void **state)
{
	struct memory *before = memory_read(*state);

	restrict_job(*state);
	at_port_put(*state, LOOPBACK);
	for
		each_form(f)
		{
			expect(*state, contribution(.worker = 0, shaped(f)), TALLY_OTHER_SOURCE,
			       NULL);
			expect(*state, repair(.set = tally_set_first(2), shaped(f)),
			       TALLY_OTHER_SOURCE, NULL);
		}
	assert_memory_is(*state, before);
	assert_int_equal(counted_apart(*state, LOOPBACK, TALLY_OTHER_SOURCE), COUNT(forms) * 2);
	expect(*state, contribution(.job = OTHER_JOB, .worker = 0), TALLY_ABSORBED, NULL);
}

static void a_source_is_of_one_tenant_port_and_family(void **state)
{
	restrict_job(*state);
	source_put(*state, source(.tenant = be32(TENANT + 1)));
	source_put(*state, source(.ifindex = be32(ANOTHER_PORT)));
	source_put(*state, source(.ipv6 = 1));
	expect(*state, contribution(.worker = 0), TALLY_OTHER_SOURCE, NULL);
	expect(*state, contribution(.worker = 0, .ipv6 = true), TALLY_ABSORBED, NULL);
	source_put(*state, source());
	expect(*state, contribution(.worker = 0), TALLY_DUPLICATE, NULL);
}

static void a_source_is_of_one_vlan_or_of_any(void **state)
{
	static const __u16 vlans[] = { 0, 1, 5, 100, 4094, TALLY_VLAN_ANY };
	__u32 seq = 0;

	for (size_t i = 0; i < COUNT(vlans); i++) {
		node_reset(state);
		restrict_job(*state);
		source_put(*state, source(.vlan = htons(vlans[i])));
		source_put(*state, source(.vlan = htons(vlans[i]), .ipv6 = 1));
		for (size_t j = 0; j < COUNT(vlans) - 1; j++) {
			bool may = i == j || vlans[i] == TALLY_VLAN_ANY;
			/* the tag's three bits of priority do not matter */
			struct message m = contribution(.worker = 0, .seq = seq += SLOTS_OF_JOB,
							.vlan = vlans[j] ? ETH_P_8021Q : 0,
							.vlan_id = 0xe000 | vlans[j]);

			expect(*state, m, may ? TALLY_ABSORBED : TALLY_OTHER_SOURCE, NULL);
			m.ipv6 = true;
			expect(*state, m, may ? TALLY_DUPLICATE : TALLY_OTHER_SOURCE, NULL);
		}
	}
}

/* Many switches take a frame with such a tag for one without. */
static void a_tag_of_802_1ad_is_no_sources_vlan(void **state)
{
	static const __u16 vlans[] = { 0, 1, 5, 100, 4094, 4095 };

	restrict_job(*state);
	for (size_t i = 0; i < COUNT(vlans) - 1; i++)
		source_put(*state, source(.vlan = htons(vlans[i])));
	for (size_t i = 0; i < COUNT(vlans); i++)
		expect(*state,
		       contribution(.worker = 0, .vlan = ETH_P_8021AD,
				    .vlan_id = 0xe000 | vlans[i]),
		       TALLY_OTHER_SOURCE, NULL);
	source_put(*state, source(.vlan = htons(TALLY_VLAN_ANY)));
	expect(*state, contribution(.worker = 0, .vlan = ETH_P_8021AD, .vlan_id = 5),
	       TALLY_ABSORBED, NULL);
}

/* A source of `bits` bits: a sender that differs in the bit before is refused, in the next not. */
static void show_prefix(struct node *node, const struct form *f, __u32 bits, __u32 *seq)
{
	const __u32 address_bits = f->ipv6 ? 128 : 32;
	const __u32 at = 14 + (f->vlan ? 4 : 0) + (f->ipv6 ? 8 : 12);
	struct tally_source_key key = source(.bits = TALLY_SOURCE_BITS + bits, .ipv6 = f->ipv6,
					     .vlan = htons(TALLY_VLAN_ANY));
	struct frame frame;

	frame_write(contribution(.worker = 0, .seq = *seq += SLOTS_OF_JOB, shaped(f)), &frame);
	memcpy(key.address, frame.data + at, address_bits / 8);
	source_put(node, key);
	expect_frame(node, &frame, TALLY_ABSORBED, NULL);
	if (bits < address_bits) {
		frame.data[at + bits / 8] ^= 0x80 >> bits % 8;
		expect_frame(node, &frame, TALLY_DUPLICATE, NULL);
		frame.data[at + bits / 8] ^= 0x80 >> bits % 8;
	}
	if (bits) {
		frame.data[at + (bits - 1) / 8] ^= 0x80 >> (bits - 1) % 8;
		expect_frame(node, &frame, TALLY_OTHER_SOURCE, NULL);
	}
}

static void every_prefix_lets_in_what_it_covers_and_nothing_else(void **state)
{
	__u32 seq = 0;

	for
		each_form(f)
		{
			for (__u32 bits = 0; bits <= (f->ipv6 ? 128 : 32); bits++) {
				node_reset(state);
				restrict_job(*state);
				show_prefix(*state, f, bits, &seq);
			}
		}
}

static void the_root_speaks_by_the_uplink_whatever_the_tenants_sources(void **state)
{
	job_put(*state, JOB, inner_job(.tenant = TENANT));
	expect(*state, result(.set = tally_set_first(4), .value = 42), TALLY_SENT_DOWN, NULL);
	expect(*state, ask(.set = set_of(2)), TALLY_SENT_DOWN, NULL);
	gate_put(*state, JOB, LOOPBACK,
		 (struct tally_gate){ .row = row_of_loopback(JOB), .restricted = 1 });
	expect(*state, result(.set = tally_set_first(4), .value = 42), TALLY_OTHER_SOURCE, NULL);
}

/* A bucket of so many tokens that gets no more: its time lies ahead. */
#define tokens(n) { .rate = 1, .burst = 1 << 20, .level = (n), .at_ns = ~0ULL }

static void limit(struct node *node, struct tally_tenant tenant)
{
	tenant_put(node, TENANT, tenant);
	job_put(node, JOB, root_job(.tenant = TENANT));
}

static void a_tenant_may_send_as_many_packets_as_it_has_and_no_more(void **state)
{
	struct memory *before;

	limit(*state, (struct tally_tenant){ .limited = 1, .packets = tokens(10) });
	for (__u32 i = 0; i < 10; i++) /* duplicates too */
		expect(*state, contribution(.worker = 0, .seq = i / 2),
		       i % 2 ? TALLY_DUPLICATE : TALLY_ABSORBED, NULL);
	before = memory_read(*state);
	expect(*state, contribution(.worker = 1), TALLY_OVER_RATE, NULL);
	expect(*state, repair(.set = tally_set_first(2)), TALLY_OVER_RATE, NULL);
	assert_memory_is(*state, before);
	expect(*state, contribution(.job = OTHER_JOB, .worker = 0), TALLY_ABSORBED, NULL);
}

static void a_tenant_may_send_as_many_bytes_as_it_has_and_no_more(void **state)
{
	struct frame frame;

	frame_write(contribution(.worker = 0), &frame);
	limit(*state, (struct tally_tenant){ .limited = 1, .bytes = tokens(4 * frame.bytes - 1) });
	for (__u32 seq = 0; seq < 3; seq++)
		expect(*state, contribution(.worker = 0, .seq = seq), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 3), TALLY_OVER_RATE, NULL);
	expect(*state, contribution(.worker = 0, .seq = 3, .blocks = 0), TALLY_ABSORBED, NULL);
	assert_int_equal(tenant_read(*state, TENANT).bytes.level, TALLY_BLOCK_BYTES - 1);
}

static void a_bucket_fills_with_time(void **state)
{
	limit(*state, (struct tally_tenant){ .limited = 1,
					     .packets = { .rate = TALLY_RATE_MAX, .burst = 7 } });
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	assert_int_equal(tenant_read(*state, TENANT).packets.level, 6);
	assert_true(tenant_read(*state, TENANT).packets.at_ns > 0);
}

static void a_tenant_without_a_limit_spends_nothing(void **state)
{
	const struct tally_tenant free = { .packets = tokens(0), .bytes = tokens(0) };
	struct tally_tenant after;

	limit(*state, free);
	job_put(*state, JOB, root_job(.tenant = TENANT, .copies = 5));
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1), TALLY_COMPLETED, NULL);
	after = tenant_read(*state, TENANT);
	assert_memory_equal(&after, &free, sizeof(free));
}

/* Up and down, and nothing of it costs the tenant of the run that is here. */
static void what_is_of_another_run_passes_an_inner_node_as_it_came(void **state)
{
	struct memory *before = memory_read(*state);
	struct tally_tenant full, after;

	limit(*state, (struct tally_tenant){ .limited = 1, .packets = tokens(1) });
	full = tenant_read(*state, TENANT);
	job_put(*state, JOB, inner_job(.tenant = TENANT));
	for
		each_form(f)
		{
			expect(*state, contribution(.worker = 1, .epoch = 9, shaped(f)),
			       TALLY_OTHER_RUN, NULL);
			expect(*state,
			       repair(.set = tally_set_first(9), .epoch = EPOCH + 1, shaped(f)),
			       TALLY_OTHER_RUN, NULL);
			expect(*state, result(.set = tally_set_first(4), .epoch = 9, shaped(f)),
			       TALLY_OTHER_RUN, NULL);
			expect(*state, ask(.set = set_of(2), .epoch = 0, shaped(f)),
			       TALLY_OTHER_RUN, NULL);
		}
	assert_memory_is(*state, before);
	after = tenant_read(*state, TENANT);
	assert_memory_equal(&after, &full, sizeof(full));
}

static void a_flood_of_garbage_spends_nothing_of_the_tenants(void **state)
{
	limit(*state, (struct tally_tenant){ .limited = 1, .packets = tokens(1) });
	job_put(*state, JOB, root_job(.tenant = TENANT, .blocks_max = 2));
	expect(*state, contribution(.worker = 0, .epoch = 9), TALLY_WRONG_EPOCH, NULL);
	expect(*state, contribution(.worker = 0, .blocks = 3), TALLY_OVERSIZED, NULL);
	expect(*state, contribution(.worker = 2), TALLY_BAD_SET, NULL);
	expect(*state, contribution(), TALLY_BAD_SET, NULL);
	expect(*state, repair(.worker = 0), TALLY_BAD_SET, NULL);
	expect(*state, contribution(.worker = 0, .recipient = 9), TALLY_BAD_RANK, NULL);
	expect(*state, contribution(.worker = 0, .kind = 9), TALLY_BAD_KIND, NULL);
	gate_put(*state, JOB, LOOPBACK,
		 (struct tally_gate){ .row = row_of_loopback(JOB), .restricted = 1 });
	expect(*state, contribution(.worker = 0), TALLY_OTHER_SOURCE, NULL);
	job_put_keyed(*state, JOB, root_job(.tenant = TENANT));
	expect(*state, contribution(.worker = 0), TALLY_FORGED, NULL);
	job_put(*state, JOB, root_job(.tenant = TENANT));
	assert_int_equal(tenant_read(*state, TENANT).packets.level, 1);
	expect(*state, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	assert_int_equal(tenant_read(*state, TENANT).packets.level, 0);
}

enum {
	COPIES = 5,
	TOKENS = 1 << 16,
};

/* `m` is taken in, and its tenant pays for it and for so many copies with and without payload. */
static void expect_paid(struct node *node, struct message m, enum tally_outcome outcome, __u32 with,
			__u32 without)
{
	const struct tally_tenant full = { .limited = 1,
					   .packets = tokens(TOKENS),
					   .bytes = tokens(TOKENS) };
	const bool from_worker = m.kind == TALLY_CONTRIBUTION || m.kind == TALLY_REPAIR;
	__u32 in = frame_headers_bytes(m) + sizeof(struct tally_header);
	struct sent out = { .tagged = false };
	struct tally_tenant after;

	tenant_put(node, TENANT, full);
	expect(node, m, outcome, &out);
	after = tenant_read(node, TENANT);
	assert_int_equal(TOKENS - after.packets.level, from_worker + with + without);
	assert_int_equal(TOKENS - after.bytes.level,
			 from_worker * (in + m.blocks * TALLY_BLOCK_BYTES) + (with + without) * in +
				 with * out.tally.blocks * TALLY_BLOCK_BYTES);
}

static void what_leaves_is_paid_for(void **state)
{
	const struct tally_set all = tally_set_first(2);

	for
		each_form(f)
		{
			__u32 seq = 32 * (f - forms);

			job_put(*state, JOB, root_job(.tenant = TENANT, .copies = COPIES));
			expect_paid(*state,
				    contribution(.worker = 0, .blocks = 9, .seq = seq, shaped(f)),
				    TALLY_ABSORBED, 0, 0);
			expect_paid(*state,
				    contribution(.worker = 0, .blocks = 9, .seq = seq,
						 .flags = TALLY_FLUSH, shaped(f)),
				    TALLY_ASKED, 0, COPIES);
			expect_paid(*state,
				    contribution(.worker = 1, .blocks = 9, .seq = seq, shaped(f)),
				    TALLY_COMPLETED, COPIES, 0);
			expect_paid(*state,
				    contribution(.worker = 1, .blocks = 9, .seq = seq, shaped(f)),
				    TALLY_ANSWERED, 1, 0);
			expect_paid(*state,
				    contribution(.set = all, .blocks = 9, .seq = seq, shaped(f)),
				    TALLY_ANSWERED_ALL, COPIES, 0);
			expect_paid(*state,
				    repair(.set = all, .blocks = 9, .seq = seq + 1, shaped(f)),
				    TALLY_REPAIRED, COPIES, 0);
			expect_paid(*state,
				    contribution(.set = all, .blocks = 9, .recipient = 1,
						 .seq = seq + 2, shaped(f)),
				    TALLY_COMPLETED, 1, COPIES - 1);
			job_put(*state, JOB, inner_job(.tenant = TENANT, .copies = COPIES));
			expect_paid(*state,
				    result(.set = tally_set_first(4), .blocks = 9, shaped(f)),
				    TALLY_SENT_DOWN, COPIES, 0);
			expect_paid(*state, ask(.set = set_of(2), shaped(f)), TALLY_SENT_DOWN, 0,
				    COPIES);
			expect_paid(*state,
				    contribution(.set = all, .seq = seq + 3, .flags = TALLY_FLUSH,
						 shaped(f)),
				    TALLY_PASSED_UP, 0, 0);
		}
}

static void a_finished_sum_leaves_on_credit_and_then_nothing_comes_in(void **state)
{
	struct message m = contribution(.worker = 0, .value = 40);
	struct frame frame;

	frame_write(m, &frame);
	limit(*state, (struct tally_tenant){ .limited = 1, .bytes = tokens(2 * frame.bytes) });
	job_put(*state, JOB, root_job(.tenant = TENANT, .copies = COPIES));
	expect(*state, m, TALLY_ABSORBED, NULL);
	m.worker = 1;
	expect(*state, m, TALLY_COMPLETED, NULL);
	assert_int_equal(tenant_read(*state, TENANT).bytes.level, -COPIES * (int)frame.bytes);
	expect(*state, m, TALLY_OVER_RATE, NULL);
	expect(*state, contribution(.seq = 1, .worker = 0, .blocks = 0), TALLY_OVER_RATE, NULL);
	assert_int_equal(tenant_read(*state, TENANT).bytes.level, -COPIES * (int)frame.bytes);
}

static void what_the_root_sends_down_needs_no_tokens(void **state)
{
	limit(*state, (struct tally_tenant){ .limited = 1, .packets = tokens(0) });
	job_put(*state, JOB, inner_job(.tenant = TENANT));
	expect(*state, result(.set = tally_set_first(4), .priority = 9), TALLY_SENT_DOWN, NULL);
	expect(*state, ask(.set = set_of(2)), TALLY_SENT_DOWN, NULL);
	expect(*state, repair(.set = tally_set_first(4)), TALLY_OVER_RATE, NULL);
	expect(*state, contribution(.worker = 0, .flags = TALLY_FLUSH), TALLY_OVER_RATE, NULL);
}

/* Whoever forges the root's messages makes copies leave no longer than until a burst is owed. */
static void the_root_is_not_heard_by_a_tenant_that_owes_a_burst(void **state)
{
	const struct tally_bucket few = { .rate = 1, .burst = 10, .level = 0, .at_ns = ~0ULL };

	limit(*state, (struct tally_tenant){ .limited = 1, .packets = few });
	job_put(*state, JOB, inner_job(.tenant = TENANT, .copies = COPIES));
	expect(*state, ask(.set = set_of(2)), TALLY_SENT_DOWN, NULL);
	expect(*state, result(.set = tally_set_first(4)), TALLY_SENT_DOWN, NULL);
	assert_int_equal(tenant_read(*state, TENANT).packets.level, -2 * COPIES);
	expect(*state, ask(.set = set_of(2)), TALLY_OVER_RATE, NULL);
	expect(*state, result(.set = tally_set_first(4)), TALLY_OVER_RATE, NULL);
	assert_int_equal(tenant_read(*state, TENANT).packets.level, -2 * COPIES);
}

/* What a tenant may have of it is for slots of the pool: nothing is dropped for asking. */
static void any_priority_may_come_in(void **state)
{
	limit(*state, (struct tally_tenant){ .priority = 0 });
	expect(*state, contribution(.worker = 0, .seq = 0, .priority = 255), TALLY_ABSORBED, NULL);
	expect(*state, repair(.set = tally_set_first(2), .seq = 0, .priority = 1), TALLY_REPAIRED,
	       NULL);
}

/* --- set-up faults */

static void a_job_whose_slots_are_not_there_is_dropped(void **state)
{
	job_put(*state, JOB, root_job(.slot_base = SLOTS));
	expect(*state, contribution(.worker = 0), TALLY_NO_SLOT, NULL);
	job_put(*state, JOB, root_job(.slot_base = SLOTS - 1, .slot_mask = 1));
	expect(*state, contribution(.worker = 0, .seq = 0), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 0, .seq = 1), TALLY_NO_SLOT, NULL);
}

static void a_job_without_group_sends_nothing_but_answers(void **state)
{
	struct sent out;

	job_put(*state, JOB, root_job(.group = GROUPS));
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_ABSORBED, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_NO_GROUP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_ANSWERED, &out);
	assert_sum(&out, 42);
	job_put(*state, JOB, root_job(.group = TALLY_JOBS_MAX));
	expect(*state, contribution(.set = tally_set_first(2)), TALLY_NO_GROUP, NULL);
}

/* Stands last: looks back on all tests above. */
static void every_outcome_of_ingress_was_shown(void **state)
{
	struct node *node = *state;

	for (int out = 0; out < TALLY_OUTCOME_COUNT; out++) {
		if (out == TALLY_FANNED_OUT || out == TALLY_NO_CHILD || out == TALLY_NO_MEMORY)
			continue; /* of fan-out, and of sums in software */
		if (out == TALLY_SWAPPED || out == TALLY_REFUSED)
			continue; /* of borrowed slots: test_borrowed.c */
		if (out == TALLY_NO_ROOM && !frames_have_ends(node))
			continue;
		if (!node->shown[out])
			fail_msg("%s was not shown", tally_outcome_name(out));
	}
}

#define fact(name) cmocka_unit_test_setup(name, node_reset)

static const struct CMUnitTest tests[] = {
	fact(other_traffic_passes_untouched),
	fact(a_datagram_that_must_not_be_fragmented_is_ours),
	fact(every_other_version_passes_if_its_job_is_not_here),
	fact(a_worker_of_version_1_hears_which_version_is_spoken),
	fact(answers_to_other_versions_are_few),
	fact(an_unknown_job_passes),
	fact(what_is_of_another_service_address_passes),
	fact(what_is_of_the_other_family_passes),
	fact(every_truncation_writes_nothing),
	fact(every_short_datagram_writes_nothing),
	fact(a_udp_length_that_contradicts_the_message_is_refused),
	fact(an_ip_length_that_contradicts_the_datagram_is_refused),
	fact(a_number_of_blocks_that_contradicts_the_datagram_is_refused),
	fact(several_messages_in_one_frame_pass),
	fact(a_frame_that_the_kernel_is_to_cut_passes),
	fact(padding_behind_the_message_is_not_summed),
	fact(a_job_may_send_as_many_blocks_as_it_was_given_and_no_more),
	fact(another_epoch_is_refused),
	fact(a_root_takes_contributions_and_repairs_only),
	fact(an_inner_node_takes_no_unknown_kind),
	fact(what_is_overtaken_passes_an_inner_node),
	fact(what_is_of_another_run_passes_an_inner_node_as_it_came),
	fact(nobody_contributes_nothing),
	fact(every_rank_of_the_job_counts_and_no_other),
	fact(ranks_may_have_holes),
	fact(a_recipient_is_a_rank_of_the_job_or_everyone),
	fact(bad_messages_do_no_harm_to_another_job),
	fact(a_sum_goes_to_everyone),
	fact(a_result_comes_from_the_service_address),
	fact(a_sum_is_marked_if_a_contribution_met_congestion),
	fact(a_retransmission_is_not_added_twice),
	fact(partial_sums_merge),
	fact(an_overlap_is_not_added),
	fact(a_contribution_of_everyone_completes_at_once),
	fact(words_wrap_at_64_bits),
	fact(every_number_of_blocks_is_summed_to_the_last_word),
	fact(scales_grow_to_the_largest),
	fact(flags_of_the_values_stick_and_no_others),
	fact(check_words_are_added_whatever_they_say),
	fact(payloads_mix_with_none_in_every_order),
	fact(the_last_frame_grows_when_it_came_without_payload),
	fact(who_sent_a_frame_too_short_for_the_sum_is_asked_for_a_longer_one),
	fact(a_flush_too_short_for_the_sum_leaves_the_slot_as_it_is),
	fact(a_late_worker_gets_the_result_alone),
	fact(an_answers_checksum_of_0_is_sent_as_the_other_zero),
	fact(a_late_partial_sum_brings_the_result_to_everyone),
	fact(who_is_not_the_recipient_gets_word_without_payload),
	fact(an_answer_has_the_results_books_not_the_askers),
	fact(a_contribution_that_disagrees_is_refused),
	fact(everyone_hears_once_who_calls_what),
	fact(a_slot_asks_at_most_every_4_ms),
	fact(a_flush_into_a_disputed_chunk_tells_of_the_dispute),
	fact(who_disagrees_with_a_finished_chunk_does_not_get_its_result),
	fact(a_sum_that_a_worker_rejects_is_made_anew),
	fact(the_ring_turns_past_every_wrap),
	fact(an_unfinished_chunk_gives_way_to_a_newer_one),
	fact(newer_is_up_to_so_many_chunks_ahead),
	fact(chunks_do_not_mix),
	fact(a_flush_asks_everyone_for_a_lost_result),
	fact(a_flushed_contribution_counts),
	fact(a_repair_brings_a_lost_result_back),
	fact(a_repair_may_be_without_payload),
	fact(a_repair_changes_no_finished_chunk),
	fact(all_below_have_come_and_their_sum_goes_on),
	fact(a_retransmission_sends_the_whole_sum_up_again),
	fact(a_sum_goes_up_when_the_last_came_without_payload),
	fact(a_flush_takes_the_partial_sum_along_and_empties_the_slot),
	fact(a_flush_of_a_whole_slot_takes_all_of_it),
	fact(a_checksum_that_is_still_to_be_made_stays_so_on_the_way_up),
	fact(a_flush_that_the_slot_does_not_hold_goes_on_alone),
	fact(an_overlap_goes_on_unmerged),
	fact(a_strangers_detour_is_resolved_by_flush),
	fact(a_stranger_does_not_hold_up_those_below),
	fact(an_inner_node_keeps_its_chunks_apart),
	fact(an_inner_node_hands_repairs_up_and_results_down),
	fact(each_node_on_the_way_down_takes_hops_of_the_time_to_live),
	fact(a_bit_that_flips_in_a_header_touches_no_slot),
	fact(a_wrong_tag_is_refused),
	fact(what_this_version_does_not_know_is_refused),
	fact(a_header_of_another_size_than_the_jobs_is_refused),
	fact(who_is_behind_hears_how_far_its_slot_is),
	fact(a_result_brings_news_of_an_older_chunk),
	fact(an_inner_node_hands_the_question_up),
	fact(mutated_frames_do_no_harm_to_another_job),
	fact(a_message_is_counted_at_the_gate_by_which_it_came_in),
	fact(what_is_of_no_job_is_counted_in_the_first_row),
	fact(what_a_port_received_is_counted_there),
	fact(a_forged_job_from_another_port_is_dropped_and_touches_no_slot),
	fact(a_tenant_without_sources_comes_in_nowhere_restricted),
	fact(a_source_is_of_one_tenant_port_and_family),
	fact(a_source_is_of_one_vlan_or_of_any),
	fact(a_tag_of_802_1ad_is_no_sources_vlan),
	fact(every_prefix_lets_in_what_it_covers_and_nothing_else),
	fact(the_root_speaks_by_the_uplink_whatever_the_tenants_sources),
	fact(a_tenant_may_send_as_many_packets_as_it_has_and_no_more),
	fact(a_tenant_may_send_as_many_bytes_as_it_has_and_no_more),
	fact(a_bucket_fills_with_time),
	fact(a_tenant_without_a_limit_spends_nothing),
	fact(a_flood_of_garbage_spends_nothing_of_the_tenants),
	fact(what_leaves_is_paid_for),
	fact(a_finished_sum_leaves_on_credit_and_then_nothing_comes_in),
	fact(what_the_root_sends_down_needs_no_tokens),
	fact(the_root_is_not_heard_by_a_tenant_that_owes_a_burst),
	fact(any_priority_may_come_in),
	fact(a_job_whose_slots_are_not_there_is_dropped),
	fact(a_job_without_group_sends_nothing_but_answers),
	fact(every_outcome_of_ingress_was_shown),
};

int main(void)
{
	skip_unless_permitted();
	return cmocka_run_group_tests_name("ingress", tests, node_setup, node_teardown) +
	       cmocka_run_group_tests_name("ingress by TC", tests, node_setup_tc, node_teardown);
}
