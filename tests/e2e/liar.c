// SPDX-License-Identifier: GPL-2.0-only
/*
 * A root that adds wrong: the rules of a node as they ship, over memory and a UDP socket, and in
 * each result one is added to the first word, with the public check and the tag made to fit. Only
 * the opening is left alone: ranks would not find their own numbers there. Prints "there".
 *
 *	liar ADDRESS EPOCH WORKERS
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <tally/check.h>

#include "tests/unit/memory_node.h"

enum {
	SLOTS = 64,
	VERB_BITS = 7,
	OPENING = 7,
};

static struct memory_slot slots[SLOTS];
static struct sockaddr_in worker[TALLY_SMALL_WORKERS_MAX];

static void lie(struct message *m)
{
	struct tally_header *h = &m->header;
	const struct tally_set set = tally_header_set(h);

	if (h->kind == TALLY_RESULT && h->blocks &&
	    (tally_le64_get(h->call) & VERB_BITS) != OPENING) {
		message_words(m)[0] += 1;
		h->check = tally_le64(tally_le64_get(h->check) + 1);
	}
	h->tag = tally_le64(tally_tag(h, &set));
}

static void leave(int fd, enum tally_to to, uint16_t sender, uint16_t workers, struct message *m)
{
	lie(m);
	for (uint16_t rank = 0; rank < workers; rank++) {
		const struct tally_set me = { { 1ull << rank } };
		const struct message copy = message_copy(m, &me);

		if (worker[rank].sin_port &&
		    (to == TALLY_TO_GROUP || (to == TALLY_TO_SENDER && rank == sender)))
			sendto(fd, &copy.header, message_bytes(&copy), 0,
			       (const struct sockaddr *)&worker[rank], sizeof(worker[rank]));
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(TALLY_UDP_PORT) };
	uint16_t workers = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
	const struct tally_set everyone = tally_set_first(workers);
	struct memory_node node = {
		.role = { .everyone = &everyone,
			  .below = &everyone,
			  .epoch = argc == 4 ? strtoul(argv[2], NULL, 10) : 0,
			  .blocks_max = MESSAGE_BLOCKS_MAX,
			  .root = true },
		.boot = 1,
		.frames_grow = true,
		.slots = SLOTS,
		.slot = slots,
	};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (!workers || workers > TALLY_SMALL_WORKERS_MAX ||
	    inet_pton(AF_INET, argv[1], &here.sin_addr) != 1)
		errx(2, "usage: liar ADDRESS EPOCH WORKERS");
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof(here)) < 0)
		err(1, "%s", argv[1]);
	puts("there");
	fflush(stdout);
	for (;;) {
		struct sockaddr_in from;
		struct message m = { 0 };
		socklen_t length = sizeof(from);
		ssize_t n = recvfrom(fd, &m.header, sizeof(m) - offsetof(struct message, header), 0,
				     (struct sockaddr *)&from, &length);
		uint16_t sender = tally_le16_get(m.header.sender);
		enum tally_outcome outcome;
		struct visit v;

		if (n < (ssize_t)sizeof(m.header) || n != (ssize_t)message_bytes(&m) ||
		    sender >= workers)
			continue;
		worker[sender] = from;
		visit_begin(&node, &m, &v);
		outcome = visit_end(&node, &v);
		leave(fd, tally_outcome_to(outcome), sender, workers, &v.message);
	}
}
