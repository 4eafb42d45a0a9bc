// SPDX-License-Identifier: GPL-2.0-only
/*
 * A neighbour that speaks as others do: forged messages with a forged source address, until it is
 * told to end. Prints "there" when it has begun.
 *
 *	forge FROM TO:PORT JOB EPOCH WORKERS SENDER KEY WHAT...
 *
 * The messages of SENDER (a rank) are made with KEY, 32 hex digits; "-": without. WHAT is one or
 * more of
 *
 *	repair     to a node: a result, of junk
 *	call       to a node: a contribution to a call that nobody else makes
 *	ahead      to a node: a contribution to a chunk that is far ahead
 *	flush      to a node: a contribution that makes it ask all workers
 *	several    to a node: a sum of all ranks, of a call that nobody else makes
 *	mismatch   to a worker: ranks disagree
 *	overtaken  to a worker: its slot serves a later chunk
 *	result     to a worker or an inner node: as from the root, of junk
 *	ask        the same: all are asked for what they have
 */
#include <arpa/inet.h>
#include <err.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <tally/check.h>
#include <tally/wire.h>

enum {
	CHUNKS = 64, /* the first ones of the run, over and over: two windows */
	AHEAD = 60000,
	BURST = 16, /* then a pause: others need the CPU, too */
	PAUSE_NS = 500000,
};

struct packet {
	struct iphdr ip;
	struct udphdr udp;
	struct tally_header tally;
	__u64 word[TALLY_BLOCK_WORDS];
} __attribute__((packed));

static struct packet packet;
static struct tally_set everyone;
static struct tally_key key;
static bool keyed;
static unsigned int sender;

static void key_read(const char *text)
{
	unsigned long long half[2];
	char digits[2][17] = { "" };

	keyed = strcmp(text, "-") != 0;
	snprintf(digits[0], sizeof(digits[0]), "%.16s", text);
	snprintf(digits[1], sizeof(digits[1]), "%s", strlen(text) == 32 ? text + 16 : "");
	for (int i = 0; keyed && i < 2; i++) {
		half[i] = strtoull(digits[i], NULL, 16);
		key.word[i] = __builtin_bswap64(half[i]);
	}
}

static void addresses_read(const char *from, char *to)
{
	char *port = strchr(to, ':');

	if (!port)
		errx(2, "%s: no port", to);
	*port++ = '\0';
	if (inet_pton(AF_INET, from, &packet.ip.saddr) != 1 ||
	    inet_pton(AF_INET, to, &packet.ip.daddr) != 1)
		errx(2, "%s, %s: no IPv4 addresses", from, to);
	packet.ip.version = 4;
	packet.ip.ihl = 5;
	packet.ip.ttl = 64;
	packet.ip.protocol = IPPROTO_UDP;
	packet.udp.source = htons(TALLY_UDP_PORT);
	packet.udp.dest = htons(strtoul(port, NULL, 10));
}

/* How many bytes of payload it has; -1: there is no such thing. */
static int forge(struct tally_header *h, const char *what, uint32_t seq)
{
	struct tally_set set = { { 0 } };
	int blocks = 0;

	h->seq = tally_le32(seq);
	h->sender = tally_le16(sender);
	h->kind = TALLY_CONTRIBUTION;
	h->lane = TALLY_LANE_INT64;
	h->call = tally_le64(0x666);
	h->flags = 0;
	tally_set_add(&set, sender);
	if (!strcmp(what, "repair")) {
		h->kind = TALLY_REPAIR;
		h->lane = TALLY_LANE_INT32;
		set = everyone;
		blocks = 1;
	} else if (!strcmp(what, "ahead")) {
		h->seq = tally_le32(seq + AHEAD);
	} else if (!strcmp(what, "flush")) {
		h->flags = TALLY_FLUSH;
	} else if (!strcmp(what, "several")) {
		set = everyone;
	} else if (!strcmp(what, "mismatch")) {
		h->kind = TALLY_MISMATCH;
	} else if (!strcmp(what, "overtaken")) {
		h->kind = TALLY_OVERTAKEN;
		h->check = tally_le64(seq + 1000);
	} else if (!strcmp(what, "result")) {
		h->kind = TALLY_RESULT;
		set = everyone;
		blocks = 1;
	} else if (!strcmp(what, "ask")) {
		h->kind = TALLY_ASK;
	} else if (strcmp(what, "call") != 0) {
		return -1;
	}
	h->blocks = blocks;
	tally_header_set_put(h, &set);
	h->tag = tally_le64(keyed ? tally_keyed_tag(h, &set, &key) : tally_tag(h, &set));
	return blocks * TALLY_BLOCK_BYTES;
}

static void send_one(int fd, const char *what, uint32_t seq)
{
	const struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = packet.ip.daddr };
	struct tally_header h = packet.tally;
	int payload = forge(&h, what, seq);
	uint16_t bytes = sizeof(packet.udp) + sizeof(packet.tally) + payload;

	if (payload < 0)
		errx(2, "%s: nothing that can be forged", what);
	packet.tally = h;
	packet.udp.len = htons(bytes);
	packet.ip.tot_len = htons(sizeof(packet.ip) + bytes);
	sendto(fd, &packet, sizeof(packet.ip) + bytes, 0, (const void *)&to, sizeof(to));
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	if (argc < 9)
		errx(2, "usage: forge FROM TO:PORT JOB EPOCH WORKERS SENDER KEY WHAT...");
	if (fd < 0)
		err(1, "socket");
	addresses_read(argv[1], argv[2]);
	packet.tally = (struct tally_header){ .magic = TALLY_MAGIC,
					      .version = TALLY_VERSION,
					      .job = tally_le32(strtoul(argv[3], NULL, 10)),
					      .epoch = tally_le16(strtoul(argv[4], NULL, 10)),
					      .recipient = tally_le16(TALLY_EVERYONE) };
	everyone = tally_set_first(strtoul(argv[5], NULL, 10));
	sender = strtoul(argv[6], NULL, 10);
	key_read(argv[7]);
	memset(packet.word, 0x5a, sizeof(packet.word));
	for (uint32_t n = 0;; n++) {
		for (int i = 8; i < argc; i++)
			send_one(fd, argv[i], n % CHUNKS);
		if (n == CHUNKS) {
			puts("there");
			fflush(stdout);
		}
		if (n % BURST == 0)
			nanosleep(&pause, NULL); /* the pace, not a wait for anything */
	}
}
