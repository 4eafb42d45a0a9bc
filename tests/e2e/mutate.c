// SPDX-License-Identifier: GPL-2.0-only
/*
 * A host that sends a node what no worker would: messages of two jobs (1 and 2, epoch 1, unless
 * it is told others) that have changed after their tag was made, are too short or too long, or say
 * what is not so. None of them may count as a contribution, so in each at least one of these is
 * wrong: tag, length, version, kind, flags, epoch, set, recipient.
 *
 *	mutate DEV NODE-MAC SERVICE-4 SERVICE-6 SEED SECONDS RATE [JOB EPOCH JOB EPOCH]
 *
 * Prints a line for each way, and how many frames left. The same seed makes the same frames.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <tally/check.h>

enum {
	WORKERS = 2, /* of each job */
	BLOCKS_MAX = 22, /* so much fits the jobs' payload and the MTU */
	EXTRA_MAX = 32,
	PORT = 40000, /* the workers' */
};

struct message {
	union {
		struct tally_header h;
		__u8 byte[sizeof(struct tally_header) + BLOCKS_MAX * TALLY_BLOCK_BYTES + EXTRA_MAX];
	};
	size_t bytes; /* as its UDP header says */
	size_t cut; /* bytes that are not there */
};

struct frame {
	__u8 byte[2000];
	size_t bytes;
};

static struct run {
	__u32 job;
	__u16 epoch;
} run[2] = { { 1, 1 }, { 2, 1 } };

static __u64 state;

static __u64 any(void) /* SplitMix64 */
{
	__u64 z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static __u32 below(__u32 limit) { return any() % limit; }
static __u32 between(__u32 low, __u32 high) { return low + below(high - low + 1); }

static void tag(struct message *m)
{
	const struct tally_set set = { { tally_le64_get(m->h.set) } };

	m->h.tag = tally_le64(tally_tag(&m->h, &set));
}

/* Of a chunk that the jobs have, had or will have; right in everything but the check. */
static void make(struct message *m)
{
	const bool repairs = !below(4);
	const __u32 rank = below(WORKERS);
	const struct run *of = &run[below(2)];

	for (size_t i = 0; i < sizeof(m->byte); i++)
		m->byte[i] = any();
	m->h = (struct tally_header){
		.magic = TALLY_MAGIC,
		.version = TALLY_VERSION,
		.kind = repairs ? TALLY_REPAIR : TALLY_CONTRIBUTION,
		.flags = below(2) ? TALLY_FLUSH : 0,
		.job = tally_le32(of->job),
		.epoch = tally_le16(of->epoch),
		.seq = tally_le32(below(1u << between(1, 20))),
		.recipient = tally_le16(below(4) ? TALLY_EVERYONE : below(WORKERS)),
		.blocks = between(0, BLOCKS_MAX),
		.lane = between(TALLY_LANE_INT32, TALLY_LANE_FLOAT32_WIDE),
		.call = tally_le64(any()),
		.check = tally_le64(any()),
		.sender = tally_le16(rank),
		.set = tally_le64(repairs ? 3 : 1 << rank),
	};
	m->bytes = sizeof(m->h) + m->h.blocks * TALLY_BLOCK_BYTES;
	m->cut = 0;
	tag(m);
}

/* --- ways to change a message */

/* The tag does not cover `blocks`: whoever changes that alone changes the length. */
static bool is_tagged(size_t at)
{
	return at < sizeof(struct tally_header) && at != offsetof(struct tally_header, blocks);
}

static void change(struct message *m, bool bits)
{
	const struct message was = *m;
	bool changed = false;

	while (!changed) {
		*m = was;
		for (__u32 n = between(1, 4); n; n--)
			m->byte[below(m->bytes)] ^= bits ? 1u << below(8) : between(1, 255);
		m->byte[below(sizeof(m->h))] ^= bits ? 1u << below(8) : between(1, 255);
		for (size_t i = 0; i < sizeof(m->h); i++)
			changed |= is_tagged(i) && m->byte[i] != was.byte[i];
	}
}

static void change_bytes(struct message *m) { change(m, false); }
static void change_bits(struct message *m) { change(m, true); }
static void cut(struct message *m) { m->cut = between(1, m->bytes); }
static void lengthen(struct message *m) { m->bytes += between(1, EXTRA_MAX); }
static void shorten(struct message *m) { m->bytes -= between(1, m->bytes); }

static void say_other_blocks(struct message *m) { m->h.blocks += between(1, 255); }

static void say_other_version(struct message *m)
{
	m->h.version += between(1, 255);
	tag(m);
}

static void say_other_epoch(struct message *m)
{
	m->h.epoch = tally_le16(tally_le16(m->h.epoch) + between(1, 65534));
	tag(m);
}

static void say_other_job(struct message *m)
{
	m->h.job = tally_le32(between(3, 1u << 31));
	tag(m);
}

static void say_other_kind(struct message *m)
{
	static const __u8 kind[] = { 0, TALLY_RESULT, TALLY_ASK, TALLY_MISMATCH, TALLY_OVERTAKEN };

	m->h.kind = below(2) ? kind[below(sizeof(kind))] : between(TALLY_OVERTAKEN + 1, 255);
	tag(m);
}

static void say_other_set(struct message *m)
{
	__u64 outside = any() << WORKERS;

	if (below(2) || !outside) /* no set, or none of this kind */
		m->h.set = tally_le64(0);
	else
		m->h.set |= tally_le64(outside);
	tag(m);
}

static void say_other_recipient(struct message *m)
{
	m->h.recipient = tally_le16(between(WORKERS, TALLY_EVERYONE - 1));
	tag(m);
}

static void say_what_is_unknown(struct message *m)
{
	const __u32 which = below(5);

	if (which == 3)
		m->h.shard = between(1, 255);
	else if (which == 4)
		m->h.flags |= below(2) ? TALLY_SPILLED : TALLY_PARTIAL;
	else
		m->h.reserved[which] = between(1, 255);
	tag(m);
}

/* Of a job of more workers: its header is longer by half. */
static void say_large(struct message *m)
{
	m->h.flags |= TALLY_LARGE;
	tag(m);
}

static const struct way {
	const char *name;
	void (*change)(struct message *m);
	unsigned int weight;
} ways[] = {
	{ "bytes changed", change_bytes, 30 },
	{ "bits changed", change_bits, 30 },
	{ "cut off", cut, 10 },
	{ "too long", lengthen, 5 },
	{ "too short", shorten, 5 },
	{ "other blocks", say_other_blocks, 5 },
	{ "other version", say_other_version, 5 },
	{ "other epoch", say_other_epoch, 5 },
	{ "other job", say_other_job, 2 },
	{ "other kind", say_other_kind, 5 },
	{ "other set", say_other_set, 5 },
	{ "other recipient", say_other_recipient, 3 },
	{ "unknown fields", say_what_is_unknown, 5 },
	{ "large", say_large, 2 },
};

enum {
	WAYS = sizeof(ways) / sizeof(*ways)
};

static int way_any(void)
{
	unsigned int all = 0, at;
	int i = 0;

	for (int w = 0; w < WAYS; w++)
		all += ways[w].weight;
	for (at = below(all); at >= ways[i].weight; i++)
		at -= ways[i].weight;
	return i;
}

/* --- frames */

static void put(struct frame *f, const void *bytes, size_t count)
{
	memcpy(f->byte + f->bytes, bytes, count);
	f->bytes += count;
}

static void put_tag(struct frame *f)
{
	const __be16 word[] = { htons(below(2) ? ETH_P_8021Q : ETH_P_8021AD), htons(any()) };

	put(f, word, sizeof(word));
}

static __u16 ip4_checksum(const void *header)
{
	const __u16 *word = header;
	__u32 sum = 0;

	for (size_t i = 0; i < sizeof(struct iphdr) / 2; i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return ~(sum + (sum >> 16));
}

/* From an address that no worker has; sometimes a fragment, or one that may go no further. */
static void put_ip4(struct frame *f, struct in_addr service, size_t payload)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = htons(sizeof(ip) + payload),
		.ttl = below(8) ? 64 : below(3),
		.protocol = below(64) ? IPPROTO_UDP : any(),
		.frag_off = below(16) ? 0 : any(),
		.saddr = htonl(0x0a4d6300 + between(1, 254)),
		.daddr = service.s_addr,
	};

	ip.check = ip4_checksum(&ip);
	put(f, &ip, sizeof(ip));
}

static void put_ip6(struct frame *f, const struct in6_addr *service, size_t payload)
{
	struct ip6_hdr ip = { .ip6_dst = *service };

	inet_pton(AF_INET6, "fd77:99::1", &ip.ip6_src);
	ip.ip6_src.s6_addr[15] = any();
	ip.ip6_flow = htonl(0x60000000);
	ip.ip6_plen = htons(payload);
	ip.ip6_nxt = below(64) ? IPPROTO_UDP : any();
	ip.ip6_hlim = below(8) ? 64 : below(3);
	put(f, &ip, sizeof(ip));
}

struct road {
	int fd;
	struct ethhdr eth;
	struct in_addr ip4;
	struct in6_addr ip6;
};

static void frame_make(const struct road *road, const struct message *m, struct frame *f)
{
	const struct udphdr udp = { .source = htons(PORT),
				    .dest = htons(TALLY_UDP_PORT),
				    .len = htons(sizeof(udp) + m->bytes),
				    .check = below(2) ? 0 : any() };
	const bool ip6 = !below(4);
	const __be16 proto = htons(ip6 ? ETH_P_IPV6 : ETH_P_IP);

	f->bytes = 0;
	put(f, &road->eth, offsetof(struct ethhdr, h_proto));
	for (__u32 tags = below(8) ? 0 : between(1, 2); tags; tags--)
		put_tag(f);
	put(f, &proto, sizeof(proto));
	if (ip6)
		put_ip6(f, &road->ip6, sizeof(udp) + m->bytes);
	else
		put_ip4(f, road->ip4, sizeof(udp) + m->bytes);
	put(f, &udp, sizeof(udp));
	put(f, m->byte, m->bytes - m->cut);
}

static void road_open(char **argv, struct road *ret)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(argv[1]) };
	const struct ether_addr *mac = ether_aton(argv[2]);

	if (!to.sll_ifindex || !mac || inet_pton(AF_INET, argv[3], &ret->ip4) != 1 ||
	    inet_pton(AF_INET6, argv[4], &ret->ip6) != 1)
		errx(2, "usage: mutate DEV NODE-MAC SERVICE-4 SERVICE-6 SEED SECONDS RATE");
	memcpy(ret->eth.h_dest, mac, ETH_ALEN);
	memcpy(ret->eth.h_source, "\x02\x77\x99\x00\x00\x01", ETH_ALEN);
	ret->fd = socket(AF_PACKET, SOCK_RAW, 0); /* no protocol: nothing comes in */
	if (ret->fd < 0 || bind(ret->fd, (void *)&to, sizeof(to)) < 0)
		err(1, "%s", argv[1]);
}

static __u64 now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void send_one(const struct road *road, unsigned long *count)
{
	static struct message m;
	static struct frame f;
	const int way = way_any();

	make(&m);
	ways[way].change(&m);
	frame_make(road, &m, &f);
	while (send(road->fd, f.byte, f.bytes, 0) < 0)
		if (errno != ENOBUFS)
			err(1, "%s: %zu bytes", ways[way].name, f.bytes);
	count[way]++;
}

int main(int argc, char **argv)
{
	const struct timespec tick = { .tv_nsec = 1000000 };
	unsigned long count[WAYS] = { 0 }, sent = 0, all, rate;
	struct road road = { 0 };
	__u64 began_ns;

	if (argc != 8 && argc != 12)
		errx(2, "7 or 11 arguments");
	for (int i = 8; i < argc; i += 2)
		run[i / 2 - 4] = (struct run){ strtoul(argv[i], NULL, 10),
					       strtoul(argv[i + 1], NULL, 10) };
	road_open(argv, &road);
	state = strtoull(argv[5], NULL, 10);
	rate = strtoul(argv[7], NULL, 10);
	all = rate * strtoul(argv[6], NULL, 10);
	began_ns = now_ns();
	while (sent < all) {
		const __u64 due = (now_ns() - began_ns) / 1000 * rate / 1000000;

		for (; sent < due && sent < all; sent++)
			send_one(&road, count);
		nanosleep(&tick, NULL); /* the pace, not a wait for anything */
	}
	for (int w = 0; w < WAYS; w++)
		printf("%s: %lu\n", ways[w].name, count[w]);
	printf("sent: %lu\n", sent);
	return 0;
}
