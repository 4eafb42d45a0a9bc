// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker that does not keep to its rate: well-formed contributions at a rate of its own, for
 * whatever job it says, of rank 0, as if from the address FROM. Their words are junk, so that one
 * that is summed shows.
 *
 *	flood SERVICE FROM JOB EPOCH WORKERS RATE SECONDS [asks|sums|parts]
 *
 * With `asks`, contributions are short, and each makes the root ask all workers for the others.
 * `sums` are no contributions, but repairs: each leaves once for each worker. Both are of a chunk
 * of their own. `parts` begin a sum in each slot of the largest ring, and never end it: the ranks
 * but the last take turns, and only the first has a payload.
 *
 * Prints how many packets left.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <tally/check.h>
#include <tally/wire.h>

enum {
	BLOCKS = 22, /* 1,408 bytes: a full packet */
	BURST_PER_SECOND = 1000,
	SLOTS = 2 * TALLY_WINDOW_MAX,
};

struct message {
	struct tally_header header;
	__le64 word[BLOCKS * TALLY_BLOCK_WORDS];
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static struct sockaddr_in address_of(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (inet_pton(AF_INET, text, &address.sin_addr) != 1)
		errx(2, "%s: no IPv4 address", text);
	return address;
}

static int connect_to(const char *service, const char *text)
{
	const struct sockaddr_in to = address_of(service, TALLY_UDP_PORT);
	const struct sockaddr_in from = address_of(text, 0);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), any = 1;

	if (fd < 0 || setsockopt(fd, SOL_IP, IP_TRANSPARENT, &any, sizeof(any)) < 0 ||
	    bind(fd, (const void *)&from, sizeof(from)) < 0 ||
	    connect(fd, (const void *)&to, sizeof(to)) < 0)
		err(1, "socket");
	return fd;
}

enum what {
	LATE,
	ASKS,
	SUMS,
	PARTS,
};

/*
 * The next one: chunks take turns. Those of asks begin with the first of the job, those of sums
 * behind all of a flood before; others are older than that: whole and of the job, but too late to
 * end its run.
 */
static void message_turn(struct message *m, unsigned long n, unsigned int workers, enum what what)
{
	const struct tally_set set = tally_set_first(what == SUMS ? workers : 1);

	tally_header_set_put(&m->header, &set);
	m->header.seq = tally_le32(what != LATE ? n : -(1 + n % 4096));
	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

static void part_turn(struct message *m, unsigned long n, unsigned int workers)
{
	const unsigned long slot = n % SLOTS, turn = n / SLOTS, ranks = workers - 1;
	struct tally_set set = { { 0 } };

	tally_set_add(&set, turn % ranks);
	tally_header_set_put(&m->header, &set);
	m->header.sender = tally_le16(turn % ranks);
	m->header.blocks = turn % ranks ? 0 : BLOCKS;
	m->header.seq = tally_le32(slot + turn / ranks * SLOTS);
	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

static size_t message_bytes(const struct message *m)
{
	return sizeof(m->header) + m->header.blocks * (size_t)TALLY_BLOCK_BYTES;
}

static enum what what_of(const char *name)
{
	static const char *const names[] = { [ASKS] = "asks", [SUMS] = "sums", [PARTS] = "parts" };

	for (enum what what = ASKS; name && what <= PARTS; what++)
		if (!strcmp(name, names[what]))
			return what;
	if (name)
		errx(2, "%s: neither asks nor sums nor parts", name);
	return LATE;
}

int main(int argc, char **argv)
{
	static struct message m;
	unsigned long sent = 0, missed = 0, rate, seconds;
	unsigned int workers;
	enum what what;
	uint64_t began_ns, base;
	int fd;

	if (argc != 8 && argc != 9)
		errx(2,
		     "usage: flood SERVICE FROM JOB EPOCH WORKERS RATE SECONDS [asks|sums|parts]");
	fd = connect_to(argv[1], argv[2]);
	workers = strtoul(argv[5], NULL, 10);
	rate = strtoul(argv[6], NULL, 10);
	seconds = strtoul(argv[7], NULL, 10);
	what = what_of(argv[8]);
	m.header = (struct tally_header){
		.magic = TALLY_MAGIC,
		.version = TALLY_VERSION,
		.kind = what == SUMS ? TALLY_REPAIR : TALLY_CONTRIBUTION,
		.job = tally_le32(strtoul(argv[3], NULL, 10)),
		.epoch = tally_le16(strtoul(argv[4], NULL, 10)),
		.recipient = tally_le16(TALLY_EVERYONE),
		.flags = what == ASKS ? TALLY_FLUSH : 0,
		.blocks = what == ASKS ? 0 : BLOCKS,
		.lane = TALLY_LANE_INT32,
	};
	memset(m.word, 0x5a, sizeof(m.word));

	began_ns = now_ns();
	base = what == SUMS ? began_ns / 500000 : 0;
	while (sent < rate * seconds) {
		struct timespec tick = { .tv_nsec = 1000000000 / BURST_PER_SECOND };
		uint64_t due = (now_ns() - began_ns) / 1000 * rate / 1000000;

		if (due > sent + rate / 4) { /* it was stopped, and does not make up for that */
			missed += due - sent;
			sent = due;
		}
		for (; sent < due && sent < rate * seconds; sent++) {
			if (what == PARTS)
				part_turn(&m, sent, workers);
			else
				message_turn(&m, base + sent, workers, what);
			if (send(fd, &m, message_bytes(&m), 0) < 0 && sent < due - rate)
				break; /* a full queue or a refusal: it goes on all the same */
		}
		nanosleep(&tick, NULL); /* the pace, not a wait for anything */
	}
	printf("%lu\n", sent - missed);
	return 0;
}
