// SPDX-License-Identifier: GPL-2.0-only
/*
 * A worker that does not keep to its rate: well-formed contributions at a rate of its own, for
 * whatever job it says. Their words are junk, so that one that is summed shows.
 *
 *	flood SERVICE JOB EPOCH WORKERS RATE SECONDS [asks]
 *
 * With `asks`, contributions are short, and each makes the root ask all workers for the others.
 *
 * Prints how many packets left.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <tally/check.h>
#include <tally/wire.h>

enum {
	BLOCKS = 22, /* 1,408 bytes: a full packet */
	BURST_PER_SECOND = 1000,
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

static int connect_to(const char *service)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(TALLY_UDP_PORT) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, service, &to.sin_addr) != 1)
		errx(2, "%s: no IPv4 address", service);
	if (fd < 0 || connect(fd, (void *)&to, sizeof(to)) < 0)
		err(1, "socket");
	return fd;
}

/*
 * The next one: ranks take turns, and so do chunks. Those of asks are the first of the job; others
 * are older than that: whole and of the job, but too late to end its run.
 */
static void message_turn(struct message *m, unsigned long n, unsigned int workers, bool asks)
{
	struct tally_set set = { { 0 } };

	tally_set_add(&set, n % workers);
	tally_header_set_put(&m->header, &set);
	m->header.seq = tally_le32(asks ? n / workers : -(1 + n / workers % 4096));
	m->header.sender = tally_le16(n % workers);
	m->header.tag = tally_le64(tally_tag(&m->header, &set));
}

int main(int argc, char **argv)
{
	static struct message m;
	unsigned long sent = 0, rate, seconds;
	unsigned int workers;
	uint64_t began_ns;
	size_t bytes;
	bool asks;
	int fd;

	if (argc != 7 && argc != 8)
		errx(2, "usage: flood SERVICE JOB EPOCH WORKERS RATE SECONDS [asks]");
	fd = connect_to(argv[1]);
	workers = strtoul(argv[4], NULL, 10);
	rate = strtoul(argv[5], NULL, 10);
	seconds = strtoul(argv[6], NULL, 10);
	asks = argc == 8;
	bytes = asks ? sizeof(m.header) : sizeof(m);
	m.header = (struct tally_header){
		.magic = TALLY_MAGIC,
		.version = TALLY_VERSION,
		.kind = TALLY_CONTRIBUTION,
		.job = tally_le32(strtoul(argv[2], NULL, 10)),
		.epoch = tally_le16(strtoul(argv[3], NULL, 10)),
		.recipient = tally_le16(TALLY_EVERYONE),
		.flags = asks ? TALLY_FLUSH : 0,
		.blocks = asks ? 0 : BLOCKS,
		.lane = TALLY_LANE_INT32,
	};
	memset(m.word, 0x5a, sizeof(m.word));

	began_ns = now_ns();
	while (sent < rate * seconds) {
		struct timespec tick = { .tv_nsec = 1000000000 / BURST_PER_SECOND };
		uint64_t due = (now_ns() - began_ns) / 1000 * rate / 1000000;

		for (; sent < due && sent < rate * seconds; sent++) {
			message_turn(&m, sent, workers, asks);
			if (send(fd, &m, bytes, 0) < 0 && sent < due - rate)
				break; /* a full queue or a refusal: it goes on all the same */
		}
		nanosleep(&tick, NULL); /* the pace, not a wait for anything */
	}
	printf("%lu\n", sent);
	return 0;
}
