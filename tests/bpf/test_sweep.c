// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one flipped bit costs: whole workers without sockets (client/engine.h) and a real node, in
 * one process, under a clock that the test turns. In each case one frame has one bit flipped, a
 * contribution on its way to the node or a result on its way to a worker. Every rank must have
 * the right sums within 2 s, whichever bit it was and in whatever order frames arrive.
 *
 * No checksum helps: nodes do not verify UDP's, and here the workers' kernels do not, either.
 *
 * A large job has 65 workers. Ranks 3 to 64 are behind an inner node, which is played here: what
 * rank 3 sends goes up as the sum of all of them.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/engine.h"
#include "client/lanes.h"

enum {
	WORKERS = 3,
	WORKERS_OF_LARGE = 65,
	ENGINES_MAX = WORKERS + 1, /* rank 3 of a large job stands for all that follow */
	CHOIR = WORKERS,
	ORDERS = 20,
	PAYLOAD_BITS = 200,
	WINDOW = 2,
	BLOCKS = 2,
	ELEMENTS = 4 * BLOCKS * TALLY_BLOCK_WORDS + 7, /* three chunks, the last is not whole */
	NET_MAX = 256,
	LIMIT_NS = 2000000000,
	MS = 1000000,
	STEPS_MAX = 100000,
	TC_EVERY = 16, /* of the cases of XDP, so many of TC */
};

enum {
	NODE = -1,
};

/* Which bits of a frame. */
enum part {
	BEFORE, /* Ethernet, IP, UDP */
	HEADER,
	PAYLOAD,
	PARTS,
};

/* The frame whose bit flips: the `turn`-th of those that `worker` sends, or gets. */
struct flip {
	bool result;
	enum part part;
	__u32 bit; /* in that part */
	int worker;
	int turn;
};

struct packet {
	int to;
	struct frame frame;
};

struct sim {
	struct node *node;
	__u32 random;
	bool large;
	int engines;
	__u64 now_ns, asked_ns;
	struct flip flip;
	int turns; /* frames so far that the flip may be meant for */
	bool flipped;
	struct engine *engine[ENGINES_MAX];
	int in_flight;
	struct packet net[NET_MAX];
	__s32 whole[ENGINES_MAX][ELEMENTS];
	float real[ENGINES_MAX][ELEMENTS];
};

static __u32 sim_random(struct sim *s, __u32 below)
{
	s->random ^= s->random << 13;
	s->random ^= s->random >> 17;
	s->random ^= s->random << 5;
	return s->random % below;
}

/* --- frames on their way */

static __u32 tally_at(void) { return frame_headers_bytes(contribution()); }

static __u32 header_bytes(const struct sim *s)
{
	return tally_header_bytes(s->large ? TALLY_LARGE : 0);
}

/* Flips the bit, if this is the frame: the `turn`-th of those that have it. */
static void flip_may(struct sim *s, struct frame *frame)
{
	const __u32 payload_at = tally_at() + header_bytes(s);
	const __u32 from[] = { [BEFORE] = 0, [HEADER] = tally_at(), [PAYLOAD] = payload_at };
	__u32 at = from[s->flip.part] + s->flip.bit / 8;

	if (s->flipped || at >= frame->bytes || s->turns++ < s->flip.turn)
		return;
	frame->data[at] ^= 1 << s->flip.bit % 8;
	s->flipped = true;
}

static void net_put(struct sim *s, int to, const struct frame *frame)
{
	struct packet *p = &s->net[s->in_flight];
	int receiver = to;

	assert_true(s->in_flight++ < NET_MAX);
	p->to = to;
	p->frame.bytes = frame->bytes;
	memcpy(p->frame.data, frame->data, frame->bytes);
	if (s->flip.result && receiver == s->flip.worker)
		flip_may(s, &p->frame);
}

/* 1 / x modulo 2^64, of an odd number. */
static __u64 inverse(__u64 x)
{
	__u64 y = x;

	for (int i = 0; i < 6; i++)
		y *= 2 - x * y;
	return y;
}

/* Rank 3's contribution, and zeros of all ranks after it. */
static void choir_join(struct tally_header *h)
{
	__u64 words = lanes_check(tally_payload(h), h->blocks * TALLY_BLOCK_WORDS), weights = 0;
	__u64 identity = (tally_le64_get(h->check) - words) * inverse(tally_weight(CHOIR));
	struct tally_set set = { { 0 } };

	if (h->kind == TALLY_CONTRIBUTION) {
		for (__u32 rank = CHOIR; rank < WORKERS_OF_LARGE; rank++) {
			tally_set_add(&set, rank);
			weights += tally_weight(rank);
		}
		tally_header_set_put(h, &set);
		h->check = tally_le64(words + identity * weights);
		h->sender = tally_le16(TALLY_FROM_NODE);
		h->tag = tally_le64(tally_tag(h, &set));
	}
}

static void worker_say(struct sim *s, int worker, const struct datagram *d)
{
	const struct tally_header *h = d->bytes;
	__u64 message[(FRAME_BYTES_MAX) / 8];
	struct frame frame;

	memcpy(message, d->bytes, d->length);
	if (worker == CHOIR)
		choir_join((struct tally_header *)message);
	frame_write(contribution(.worker = worker, .blocks = h->blocks,
				 .flags = h->flags & TALLY_LARGE),
		    &frame);
	assert_int_equal(frame.bytes, tally_at() + d->length);
	memcpy(frame.data + tally_at(), message, d->length);
	if (!s->flip.result && worker == s->flip.worker)
		flip_may(s, &frame);
	net_put(s, NODE, &frame);
}

static __u16 be16_at(const struct frame *frame, __u32 at)
{
	return frame->data[at] << 8 | frame->data[at + 1];
}

/* Who is at the address and port that a frame is for; -1: nobody. */
static int receiver_of(const struct sim *s, const struct frame *frame)
{
	const __u32 udp_at = tally_at() - sizeof(struct udphdr);
	int worker = be16_at(frame, udp_at + 2) - UDP_PORT_OF_RANK_0;
	__be32 address;

	memcpy(&address, frame->data + udp_at - 4, 4);
	return worker >= 0 && worker < s->engines && address == worker_ip4(worker) ? worker : -1;
}

static void node_take(struct sim *s, const struct frame *in)
{
	struct frame out;
	int action = node_run(s->node, in, &out), receiver;

	assert_return_code(action, -action);
	if (action == XDP_TX) {
		receiver = receiver_of(s, &out);
		if (receiver >= 0)
			net_put(s, receiver, &out);
	}
	for (int worker = 0; action == XDP_REDIRECT && worker < s->engines; worker++)
		net_put(s, worker, &out);
}

/*
 * As a socket gets it: a flip in the headers before the message loses the frame, but for the one
 * in the UDP length that makes the datagram shorter.
 */
static void worker_take(struct sim *s, const struct packet *p)
{
	const bool is_hit = s->flip.result && s->flip.part == BEFORE && s->flipped &&
			    p->to == s->flip.worker;
	__u32 there = p->frame.bytes - tally_at(), udp_at = tally_at() - sizeof(struct udphdr);
	__u32 says = be16_at(&p->frame, udp_at + 4) - sizeof(struct udphdr);
	__u64 message[FRAME_BYTES_MAX / 8];

	if (is_hit && says > there)
		return;
	memcpy(message, p->frame.data + tally_at(), there);
	engine_input(s->engine[p->to], message, says, s->now_ns);
}

/* --- the clock */

/* The node has a clock of its own, which does not run as fast: so much later it may ask again. */
static void node_forget_asks(struct sim *s)
{
	for (__u32 i = 0; i < 2 * WINDOW; i++) {
		struct tally_slot slot = slot_read(s->node, i);

		if (!slot.state.asked_ms)
			continue;
		slot.state.asked_ms = 0;
		slot_put(s->node, i, &slot);
	}
	s->asked_ns = s->now_ns;
}

static void time_pass(struct sim *s)
{
	__u64 next = UINT64_MAX;

	for (int worker = 0; worker < s->engines; worker++)
		if (engine_wakeup(s->engine[worker]) < next)
			next = engine_wakeup(s->engine[worker]);
	s->now_ns = next > s->now_ns && next != UINT64_MAX ? next : s->now_ns + MS;
	if (s->now_ns - s->asked_ns >= TALLY_ASK_EVERY_MS * MS)
		node_forget_asks(s);
}

/* One thing happens: something is sent, delivered, or the clock moves on. */
static void sim_step(struct sim *s)
{
	struct datagram d[8];
	struct packet p;
	int pick;

	for (int worker = 0; worker < s->engines; worker++) {
		size_t n = engine_output(s->engine[worker], s->now_ns, d, 8);

		for (size_t i = 0; i < n; i++)
			worker_say(s, worker, &d[i]);
	}
	if (!s->in_flight) {
		time_pass(s);
		return;
	}
	pick = sim_random(s, s->in_flight);
	p = s->net[pick];
	s->net[pick] = s->net[--s->in_flight];
	s->now_ns += 1000;
	if (p.to == NODE)
		node_take(s, &p.frame);
	else
		worker_take(s, &p);
}

/* --- a case */

/* Of a rank; the last engine of a large job has zeros after its first one. */
static __s32 whole_of(int worker, int i) { return (worker + 1) * 1000003 + i * 65537 - 40000000; }

static float real_of(int worker, int i) { return (float)((worker + 1) * 37 - i * 5) / 1024; }

/* Without a nonce from an agent, ranks make one in a call before all others. */
static bool has_opening(__u32 order) { return order & 1; }

/* That many frames at least are sent, and as many come, in each case. */
static int turn_of(__u32 order) { return order / 2 % (has_opening(order) ? 7 : 6); }

static void engines_start(struct sim *s, __u32 order, struct engine_call *call[2][ENGINES_MAX])
{
	for (int worker = 0; worker < s->engines; worker++) {
		const struct engine_options o = {
			.window = { .job = JOB,
				    .epoch = EPOCH,
				    .rank = worker,
				    .workers = s->large ? WORKERS_OF_LARGE : WORKERS,
				    .window = WINDOW,
				    .payload_bytes = BLOCKS * TALLY_BLOCK_BYTES,
				    .nonce = has_opening(order) ? 0
								: 0x123456789abcdef0ULL + order },
			.random = 0xfedcba9876543210ULL * (worker + 1) + order,
			.timeout_ns = LIMIT_NS,
			.service = SERVICE_IP4,
		};
		const struct call_options wholes = { .verb = CALL_ALLREDUCE,
						     .dtype = TALLY_INT32,
						     .op = TALLY_SUM,
						     .count = ELEMENTS,
						     .in = s->whole[worker],
						     .out = s->whole[worker] };
		struct call_options reals = wholes;

		reals.dtype = TALLY_FLOAT32;
		reals.in = reals.out = s->real[worker];
		for (int i = 0; i < ELEMENTS; i++) {
			s->whole[worker][i] = whole_of(worker, i);
			s->real[worker][i] = real_of(worker, i);
		}
		assert_int_equal(engine_new(&o, &s->engine[worker]), 0);
		assert_int_equal(
			engine_start(s->engine[worker], &wholes, s->now_ns, &call[0][worker]), 0);
		assert_int_equal(
			engine_start(s->engine[worker], &reals, s->now_ns, &call[1][worker]), 0);
	}
}

static bool all_are_over(const struct sim *s, struct engine_call *call[2][ENGINES_MAX])
{
	for (int worker = 0; worker < s->engines; worker++)
		if (!engine_is_over(call[0][worker]) || !engine_is_over(call[1][worker]))
			return false;
	return true;
}

static bool sums_are_right(const struct sim *s)
{
	for (int i = 0; i < ELEMENTS; i++) {
		__u32 whole = 0;
		float real = 0;

		for (int worker = 0; worker < s->engines; worker++) {
			whole += whole_of(worker, i);
			real += real_of(worker, i);
		}
		for (int worker = 0; worker < s->engines; worker++)
			if (s->whole[worker][i] != (__s32)whole || s->real[worker][i] != real)
				return false;
	}
	return true;
}

/* What became of cases. */
struct tally_of_cases {
	__u32 cases, healed, wrong, dead, missed;
	__u64 slowest_ns;
};

static void slots_empty(struct node *node)
{
	const struct tally_slot fresh = { .lock = { 0 } };

	for (__u32 i = 0; i < 2 * WINDOW; i++)
		slot_put(node, i, &fresh);
}

static void case_run(struct node *node, bool large, __u32 order, struct flip flip,
		     struct tally_of_cases *ret)
{
	static struct sim s;
	struct engine_call *call[2][ENGINES_MAX];
	bool dead = false;

	s.node = node;
	s.random = (order + 1) * 2654435761u | 1;
	s.large = large;
	s.engines = large ? WORKERS + 1 : WORKERS;
	s.now_ns = s.asked_ns = MS;
	s.flip = flip;
	s.turns = s.in_flight = 0;
	s.flipped = false;
	slots_empty(node);
	engines_start(&s, order, call);
	for (int steps = 0; !all_are_over(&s, call) && steps < STEPS_MAX; steps++)
		sim_step(&s);

	dead = !all_are_over(&s, call) || s.now_ns > LIMIT_NS;
	for (int worker = 0; worker < s.engines; worker++) {
		for (int i = 0; i < 2; i++)
			dead |= engine_is_over(call[i][worker]) &&
				engine_collect(call[i][worker], NULL) < 0;
		engine_free(s.engine[worker]);
	}
	ret->cases++;
	ret->dead += dead;
	ret->wrong += !dead && !sums_are_right(&s);
	ret->healed += !dead && sums_are_right(&s);
	ret->missed += !s.flipped;
	if (!dead && s.now_ns > ret->slowest_ns)
		ret->slowest_ns = s.now_ns;
	if (dead || !sums_are_right(&s))
		print_error("# %s: %s, %s, part %d, bit %u, order %u\n", dead ? "dead" : "wrong",
			    large ? "large" : "small", flip.result ? "result" : "contribution",
			    flip.part, flip.bit, order);
}

/* --- sweeps */

static __u32 bits_of_part(bool large, enum part part)
{
	if (part == BEFORE)
		return 8 * tally_at();
	if (part == PAYLOAD)
		return PAYLOAD_BITS;
	return 8 * tally_header_bytes(large ? TALLY_LARGE : 0);
}

/* Every `step`-th case. */
static void sweep(struct node *node, bool large, bool result, enum part part, __u32 step)
{
	static const char *const names[] = { "Ethernet, IP, UDP", "header", "payload" };
	struct tally_of_cases t = { 0 };
	__u32 number = 0;

	job_put(node, JOB,
		root_job(.everyone = tally_set_first(large ? WORKERS_OF_LARGE : WORKERS),
			 .below = tally_set_first(large ? WORKERS_OF_LARGE : WORKERS),
			 .slot_mask = 2 * WINDOW - 1));
	for (__u32 bit = 0; bit < bits_of_part(large, part); bit++)
		for (__u32 order = 0; order < ORDERS; order++) {
			struct flip flip = { .result = result,
					     .part = part,
					     .bit = bit,
					     .worker = order % (large ? WORKERS + 1 : WORKERS),
					     .turn = turn_of(order) };

			if (part == PAYLOAD) { /* spread over the words of a whole chunk */
				flip.bit = bit * (8 * BLOCKS * TALLY_BLOCK_BYTES) / PAYLOAD_BITS;
				flip.turn %= 4;
			}
			if (number++ % step == 0)
				case_run(node, large, order, flip, &t);
		}
	printf("# %-3s %-5s %-12s %-17s %5u cases: %5u healed, %u wrong, %u dead; %3llu ms at "
	       "most\n",
	       node->by_tc ? "TC" : "XDP", large ? "large" : "small",
	       result ? "result" : "contribution", names[part], t.cases, t.healed, t.wrong, t.dead,
	       t.slowest_ns / MS);
	assert_true(t.cases > 0);
	assert_int_equal(t.missed, 0);
	assert_int_equal(t.wrong, 0);
	assert_int_equal(t.dead, 0);
}

static void every_flipped_bit_heals(void **state)
{
	const struct node *node = *state;
	const __u32 step = node->by_tc ? TC_EVERY + 1 : 1; /* prime: all bits and orders */

	for (int result = 0; result < 2; result++)
		for (enum part part = BEFORE; part < PARTS; part++)
			sweep(*state, false, result, part, step);
}

static void every_flipped_bit_of_a_large_header_heals(void **state)
{
	const struct node *node = *state;
	const __u32 step = node->by_tc ? TC_EVERY + 1 : 1;

	for (int result = 0; result < 2; result++)
		sweep(*state, true, result, HEADER, step);
}

#define fact(name) cmocka_unit_test_setup(name, node_reset)

static const struct CMUnitTest tests[] = {
	fact(every_flipped_bit_heals),
	fact(every_flipped_bit_of_a_large_header_heals),
};

int main(void)
{
	skip_unless_permitted();
	return cmocka_run_group_tests_name("sweep", tests, node_setup, node_teardown) +
	       cmocka_run_group_tests_name("sweep by TC", tests, node_setup_tc, node_teardown);
}
