// SPDX-License-Identifier: GPL-2.0-only
/*
 * Read this file first: what a packet costs. traffic.c and bounce.c measure whole networks.
 *
 * Nanoseconds per packet, by BPF_PROG_TEST_RUN: of an empty program, of a bare sum, and of
 * tally_ingress absorbing the same payload, also with rank keys. A repeated test run hands a
 * program the same frame again and again, which ingress would call a duplicate; so `bare_advance`
 * makes the next contribution of it and tail-calls ingress. What that costs is measured with the
 * empty program behind it, and taken off; with the bare sum behind it, one sees that taking it off
 * is right.
 *
 * Of borrowed slots: an inner node with a pool, a job that has one of its own, and one
 * that borrows; both sums leave with their last contribution, of 63. And a job that borrows, and
 * never has the last one: the first of each chunk throws the chunk before out, and the frame then
 * is that one's; so one more of 64 is a repetition.
 */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <tally/maps.h>

#include "bare.h"
#include "bpf/ingress.skel.h"
#include "common/tick.h"
#include "tests/bench/bare.skel.h"

enum {
	ROUNDS = 51, /* odd: a median is one of them */
	/* In a round: what a test run costs to set up (0.2 ms) is lost in them. Whole chunks. */
	REPEATS = 1600 * BARE_SENDERS,
	SLOTS = 128, /* a window of 64 */
	POOL = 2, /* one slot for each variant */
	CHUNK_EDGE = 1, /* a round may end between a swap and the repetition */
	JOB = 7,
	FRAME_BYTES = BARE_PAYLOAD_AT + BARE_BLOCKS * TALLY_BLOCK_BYTES,
	LOOPBACK = 1, /* where a test run's frames come in */
};

enum variant {
	EMPTY,
	SUM,
	ADVANCE_EMPTY,
	ADVANCE_SUM,
	ADVANCE_INGRESS,
	KEYED_EMPTY, /* the same of a job with rank keys: the advance makes other tags */
	KEYED_INGRESS,
	OWN_SLOT, /* one slot, where others may borrow */
	BORROWED_SLOT,
	SWAPPED_SLOT, /* the same, and what it held is thrown out each time */
	VARIANTS,
};

struct bench {
	struct bare_bpf *bare;
	struct ingress_bpf *ingress;
	struct ingress_bpf *pooled;
	struct tally_gates gates, pooled_gates;
	uint8_t frame[FRAME_BYTES];
	uint8_t swapped[FRAME_BYTES]; /* the frame of SWAPPED_SLOT, which becomes another one */
	double ns[VARIANTS][ROUNDS];
};

/* --- what is run */

static void frame_write(struct bench *b)
{
	const uint16_t datagram = sizeof(b->frame) - sizeof(struct ethhdr) - sizeof(struct iphdr);
	const struct ethhdr eth = { .h_proto = htons(ETH_P_IP) };
	const struct iphdr ip = { .version = 4,
				  .ihl = 5,
				  .ttl = 64,
				  .protocol = IPPROTO_UDP,
				  .tot_len = htons(sizeof(ip) + datagram) };
	const struct udphdr udp = { .dest = htons(TALLY_UDP_PORT), .len = htons(datagram) };
	struct tally_header h = { .magic = TALLY_MAGIC,
				  .version = TALLY_VERSION,
				  .kind = TALLY_CONTRIBUTION,
				  .job = tally_le32(JOB),
				  .recipient = tally_le16(TALLY_EVERYONE),
				  .blocks = BARE_BLOCKS,
				  .lane = TALLY_LANE_INT64 };

	h.set = tally_le64(1ULL << (BARE_SENDERS - 1)); /* advance begins with the next chunk */
	h.sender = tally_le16(BARE_SENDERS - 1);
	memset(b->frame, 1, sizeof(b->frame));
	memcpy(b->frame, &eth, sizeof(eth));
	memcpy(b->frame + sizeof(eth), &ip, sizeof(ip));
	memcpy(b->frame + sizeof(eth) + sizeof(ip), &udp, sizeof(udp));
	memcpy(b->frame + BARE_HEADER_AT, &h, sizeof(h));
	memcpy(b->swapped, b->frame, sizeof(b->frame));
}

static int keys_put(const struct bench *b)
{
	const struct tally_rank place = { .key = BARE_KEY };
	int r = 0;

	for (uint32_t rank = 0; r == 0 && rank < BARE_SENDERS; rank++)
		r = bpf_map_update_elem(bpf_map__fd(b->ingress->maps.ranks), &rank, &place,
					BPF_ANY);
	return r;
}

static bool has_one_slot(enum variant variant)
{
	return variant == OWN_SLOT || variant == BORROWED_SLOT || variant == SWAPPED_SLOT;
}

static const struct tally_gates *variant_gates(const struct bench *b, enum variant variant)
{
	return has_one_slot(variant) ? &b->pooled_gates : &b->gates;
}

static int job_put(const struct bench *b, enum variant variant)
{
	const bool keyed = variant == KEYED_EMPTY || variant == KEYED_INGRESS;
	const bool borrows = variant == BORROWED_SLOT || variant == SWAPPED_SLOT;
	const bool completes = variant == OWN_SLOT || variant == BORROWED_SLOT;
	const struct tally_set ranks = tally_set_first(BARE_SENDERS + !completes);
	const struct ingress_bpf *at = has_one_slot(variant) ? b->pooled : b->ingress;
	const struct tally_job job = { .everyone = ranks,
				       .below = ranks,
				       .slot_mask = has_one_slot(variant) ? 0 : SLOTS - 1,
				       .blocks_max = BARE_BLOCKS,
				       .root = !has_one_slot(variant),
				       .keyed = keyed,
				       .bound = !keyed && !has_one_slot(variant), /* at 0.0.0.0 */
				       .borrows = borrows,
				       .slot_base = variant == SWAPPED_SLOT,
				       .range = borrows,
				       .id = JOB };
	const struct tally_gate_key here = { .job = JOB, .ifindex = LOOPBACK };
	const struct tally_gate gate = { .row = TALLY_ROW_PORTS };
	const uint32_t index = 0;
	int r;

	r = bpf_map_update_elem(bpf_map__fd(at->maps.jobs), &index, &job, BPF_ANY);
	if (r < 0)
		return r;
	return tally_gates_put(variant_gates(b, variant), here, gate) ? 0 : -ENOSPC;
}

/* Mapped as long as the process lives. */
static int gates_map(const struct ingress_bpf *ingress, struct tally_gates *ret)
{
	void *table = mmap(NULL, TALLY_GATE_BUCKETS * sizeof(struct tally_gate_bucket),
			   PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(ingress->maps.gates), 0);

	*ret = (struct tally_gates){ .bucket = table,
				     .factor = ingress->rodata_node->constants.gate_factor };
	return table == MAP_FAILED ? -errno : 0;
}

static int bench_open(struct bench *b)
{
	int r;

	b->bare = bare_bpf__open_and_load();
	b->ingress = ingress_bpf__open();
	if (!b->bare || !b->ingress)
		return -errno;
	b->ingress->rodata_node->constants.gate_factor = TALLY_MIX;
	r = bpf_map__set_max_entries(b->ingress->maps.slots, SLOTS);
	if (r < 0)
		return r;
	r = ingress_bpf__load(b->ingress);
	if (r < 0)
		return r;
	b->pooled = ingress_bpf__open();
	if (!b->pooled)
		return -errno;
	b->pooled->rodata_node->constants.gate_factor = TALLY_MIX;
	b->pooled->rodata_node->constants.tick_ms = tick_ms();
	b->pooled->rodata_node->constants.pool = (struct tally_pool){
		.slots = POOL, .policy = { .preempts = true, .stalled_ms = 20 }
										/* as tallyd has it */
	};
	r = bpf_map__set_max_entries(b->pooled->maps.pool, POOL);
	if (r < 0)
		return r;
	r = ingress_bpf__load(b->pooled);
	if (r < 0)
		return r;
	r = gates_map(b->ingress, &b->gates);
	if (r == 0)
		r = gates_map(b->pooled, &b->pooled_gates);
	if (r < 0)
		return r;
	frame_write(b);
	return keys_put(b);
}

static void bench_close(struct bench *b)
{
	ingress_bpf__destroy(b->pooled);
	ingress_bpf__destroy(b->ingress);
	bare_bpf__destroy(b->bare);
}

static int next_put(const struct bench *b, const struct bpf_program *prog)
{
	const uint32_t key = 0, fd = bpf_program__fd(prog);

	return bpf_map_update_elem(bpf_map__fd(b->bare->maps.next), &key, &fd, BPF_ANY);
}

/* The program to run, after what it is to call was set. */
static const struct bpf_program *variant_choose(const struct bench *b, enum variant variant)
{
	const struct bpf_program *next = NULL;
	bool keyed = variant == KEYED_EMPTY || variant == KEYED_INGRESS;

	if (job_put(b, variant) < 0)
		return NULL;
	switch (variant) {
	case EMPTY:
		return b->bare->progs.bare_empty;
	case SUM:
		return b->bare->progs.bare_sum;
	case ADVANCE_EMPTY:
	case KEYED_EMPTY:
		next = b->bare->progs.bare_empty;
		break;
	case ADVANCE_SUM:
		next = b->bare->progs.bare_sum;
		break;
	case OWN_SLOT:
	case BORROWED_SLOT:
	case SWAPPED_SLOT:
		next = b->pooled->progs.tally_ingress;
		break;
	default:
		next = b->ingress->progs.tally_ingress;
		break;
	}
	if (next_put(b, next))
		return NULL;
	return keyed ? b->bare->progs.bare_advance_keyed : b->bare->progs.bare_advance;
}

/* --- measuring */

/* Of this thread alone: others may have the CPU while a run takes a breath. */
static double cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Over all CPUs; 0 when it cannot be read, which no round takes for right. */
static uint64_t packets_summed(const struct ingress_bpf *ingress)
{
	struct tally_counters of_cpu[libbpf_num_possible_cpus()];
	const uint32_t row = TALLY_ROW_PORTS;
	uint64_t packets = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(ingress->maps.counters), &row, of_cpu))
		return 0;
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		packets += of_cpu[cpu].outcome[TALLY_ABSORBED].packet +
			   of_cpu[cpu].outcome[TALLY_SENT_UP].packet +
			   of_cpu[cpu].outcome[TALLY_SWAPPED].packet * 2; /* and a repetition */
	return packets;
}

/* The frame is kept as the run left it: the next run goes on from there. */
static int variant_run(struct bench *b, enum variant variant, int round)
{
	uint8_t *frame = variant == SWAPPED_SLOT ? b->swapped : b->frame;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = FRAME_BYTES,
		    .data_out = frame, .data_size_out = FRAME_BYTES, .repeat = REPEATS);
	const struct bpf_program *prog = variant_choose(b, variant);
	const struct ingress_bpf *at = has_one_slot(variant) ? b->pooled : b->ingress;
	bool sums = variant == ADVANCE_INGRESS || variant == KEYED_INGRESS || has_one_slot(variant);
	uint64_t summed = packets_summed(at);
	double begin;
	int r;

	if (!prog)
		return -errno;
	begin = cpu_ns();
	r = bpf_prog_test_run_opts(bpf_program__fd(prog), &run);
	b->ns[variant][round] = (cpu_ns() - begin) / REPEATS;
	if (r < 0)
		return r;
	summed = packets_summed(at) - summed;
	if (summed + CHUNK_EDGE < (sums ? REPEATS : 0) ||
	    summed > (sums ? REPEATS + CHUNK_EDGE : 0)) {
		fprintf(stderr, "cost: round %d of variant %d summed %llu of %d packets\n", round,
			variant, (unsigned long long)summed, REPEATS);
		return -EPROTO; /* not what we say we measured */
	}
	return 0;
}

static int bench_run(struct bench *b)
{
	int r = 0;

	for (int variant = 0; variant < VARIANTS && r == 0; variant++)
		r = variant_run(b, variant, 0); /* warms up; is overwritten */
	for (int round = 0; round < ROUNDS && r == 0; round++)
		for (int variant = 0; variant < VARIANTS && r == 0; variant++)
			r = variant_run(b, variant, round);
	return r;
}

/* --- saying it */

/* The middle four fifths: what is beyond was interrupted. */
struct spread {
	double median, low, high;
};

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Sorts `value`, of ROUNDS. */
static struct spread spread_of(double *value)
{
	qsort(value, ROUNDS, sizeof(*value), compare);
	return (struct spread){ value[ROUNDS / 2], value[ROUNDS / 10],
				value[ROUNDS - 1 - ROUNDS / 10] };
}

struct report {
	struct spread empty, sum, advance, sum_advanced, ingress, keyed, key;
	struct spread own, borrowed, borrow; /* the last: borrowed / own */
	struct spread swapped;
	struct spread gross, net; /* ingress / sum; net: of the empty program */
};

/* Differences and ratios are those of one round each, so that slow drifts cancel. */
static struct report report_make(struct bench *b)
{
	double advance[ROUNDS], sum[ROUNDS], ingress[ROUNDS], gross[ROUNDS], net[ROUNDS];
	double keyed[ROUNDS], key[ROUNDS], own[ROUNDS], borrowed[ROUNDS], borrow[ROUNDS];
	double swapped[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		const double empty = b->ns[EMPTY][i];

		advance[i] = b->ns[ADVANCE_EMPTY][i] - empty;
		sum[i] = b->ns[ADVANCE_SUM][i] - advance[i];
		ingress[i] = b->ns[ADVANCE_INGRESS][i] - advance[i];
		keyed[i] = b->ns[KEYED_INGRESS][i] - b->ns[KEYED_EMPTY][i] + empty;
		key[i] = keyed[i] - ingress[i];
		own[i] = b->ns[OWN_SLOT][i] - advance[i];
		borrowed[i] = b->ns[BORROWED_SLOT][i] - advance[i];
		borrow[i] = borrowed[i] / own[i];
		swapped[i] = b->ns[SWAPPED_SLOT][i] - advance[i];
		gross[i] = ingress[i] / b->ns[SUM][i];
		net[i] = (ingress[i] - empty) / (b->ns[SUM][i] - empty);
	}
	return (struct report){ .empty = spread_of(b->ns[EMPTY]),
				.sum = spread_of(b->ns[SUM]),
				.advance = spread_of(advance),
				.sum_advanced = spread_of(sum),
				.ingress = spread_of(ingress),
				.keyed = spread_of(keyed),
				.key = spread_of(key),
				.own = spread_of(own),
				.borrowed = spread_of(borrowed),
				.borrow = spread_of(borrow),
				.swapped = spread_of(swapped),
				.gross = spread_of(gross),
				.net = spread_of(net) };
}

static void line(const char *what, struct spread s, const char *unit)
{
	printf("%-44s %8.2f %-3s %8.2f .. %.2f\n", what, s.median, unit, s.low, s.high);
}

static void print_text(const struct report *r)
{
	printf("%d bytes of payload, %d rounds of %d; median, 10th .. 90th percentile\n",
	       BARE_BLOCKS * TALLY_BLOCK_BYTES, ROUNDS, REPEATS);
	line("a  empty program", r->empty, "ns");
	line("b  bare sum under a spin lock", r->sum, "ns");
	line("   the same behind the advance, which is off", r->sum_advanced, "ns");
	line("c  tally_ingress absorbs", r->ingress, "ns");
	line("d  the same, of a job with rank keys", r->keyed, "ns");
	line("d - c", r->key, "ns");
	line("e  one slot of its own, at an inner node", r->own, "ns");
	line("f  one slot that is borrowed", r->borrowed, "ns");
	line("g  the same, thrown out each time", r->swapped, "ns");
	line("   the advance, off in c to g", r->advance, "ns");
	line("f / e", r->borrow, "");
	line("c / b", r->gross, "");
	line("(c - a) / (b - a)", r->net, "");
}

static void member(const char *name, struct spread s)
{
	printf(",\"%s\":{\"median\":%.2f,\"p10\":%.2f,\"p90\":%.2f}", name, s.median, s.low,
	       s.high);
}

static void print_json(const struct report *r)
{
	printf("{\"payload_bytes\":%d,\"rounds\":%d,\"repeats\":%d",
	       BARE_BLOCKS * TALLY_BLOCK_BYTES, ROUNDS, REPEATS);
	member("empty_ns", r->empty);
	member("sum_ns", r->sum);
	member("sum_advanced_ns", r->sum_advanced);
	member("ingress_ns", r->ingress);
	member("keyed_ns", r->keyed);
	member("key_ns", r->key);
	member("own_slot_ns", r->own);
	member("borrowed_slot_ns", r->borrowed);
	member("swapped_slot_ns", r->swapped);
	member("ratio_borrowed", r->borrow);
	member("advance_ns", r->advance);
	member("ratio_gross", r->gross);
	member("ratio_net", r->net);
	puts("}");
}

/* Stay on one CPU, the last we may use: the first has most of the interrupts. */
static void cpu_pin(void)
{
	cpu_set_t all, one;

	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

int main(int argc, char **argv)
{
	const bool json = argc == 2 && !strcmp(argv[1], "--json");
	static struct bench bench;
	struct report report;
	int r;

	if (argc > 1 && !json) {
		fputs("usage: cost [--json]\n", stderr);
		return 2;
	}
	cpu_pin();
	r = bench_open(&bench);
	if (r == 0)
		r = bench_run(&bench);
	if (r < 0)
		fprintf(stderr, "cost: %s\n", strerror(-r));
	else
		report = report_make(&bench);
	bench_close(&bench);
	if (r < 0)
		return 1;
	if (json)
		print_json(&report);
	else
		print_text(&report);
	return 0;
}
