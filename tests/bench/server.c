// SPDX-License-Identifier: GPL-2.0-only
/*
 * The rival of spill/: as little of a parameter server as can serve the same workers, with the
 * spill's system calls (recvmmsg, UDP GRO, sendmmsg, UDP_SEGMENT). It adds 64-bit words in slots
 * that lie in one array. It checks nothing: no tag, no shape of a call, no tenant, no limit of
 * memory, no rate, no counters. Of loss it knows only that who repeats itself wants the result.
 *
 *	server JOB-FILE		until a signal ends it; at most 64 workers, all with a payload
 */
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <tally/reply.h>

#include "common/address.h"
#include "common/jobfile.h"

enum {
	RECEIVES = 8,
	RECEIVE_BYTES = 65536,
	RUN_MAX = 64, /* datagrams of one segmented send */
	BATCH = RECEIVES * RUN_MAX, /* results of one turn */
	BUFFER_BYTES = 64 << 20,
};

struct slot {
	struct tally_slot_state state;
	struct tally_header result;
	uint64_t word[TALLY_PAYLOAD_MAX / sizeof(uint64_t)];
};

static struct run run;
static struct tally_set everyone;
static struct slot *slots;
static uint32_t mask;
static const struct slot *due[BATCH];
static unsigned int due_count;

static int listen_at(const struct sockaddr_storage *service)
{
	int fd = socket(service->ss_family, SOCK_DGRAM, 0), on = 1, bytes = BUFFER_BYTES;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes));
	return bind(fd, (const struct sockaddr *)service, endpoint_length(service)) < 0 ? -1 : fd;
}

/* A run of results of one length, to one worker. */
static void send_run(int fd, const struct sockaddr_storage *to, unsigned int first,
		     unsigned int count)
{
	static struct iovec iov[2 * RUN_MAX];
	char control[CMSG_SPACE(sizeof(uint16_t))] = { 0 };
	const size_t payload = due[first]->state.blocks * (size_t)TALLY_BLOCK_BYTES;
	const uint16_t bytes = sizeof(struct tally_header) + payload;
	struct msghdr m = { .msg_name = (void *)to,
			    .msg_namelen = endpoint_length(to),
			    .msg_iov = iov,
			    .msg_iovlen = 2 * count };
	struct pollfd room = { .fd = fd, .events = POLLOUT };
	struct cmsghdr *c;

	for (unsigned int i = 0; i < count; i++) {
		iov[2 * i] = (struct iovec){ (void *)&due[first + i]->result,
					     sizeof(struct tally_header) };
		iov[2 * i + 1] = (struct iovec){ (void *)due[first + i]->word, payload };
	}
	if (count > 1) {
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_UDP;
		c->cmsg_type = UDP_SEGMENT;
		c->cmsg_len = CMSG_LEN(sizeof(bytes));
		memcpy(CMSG_DATA(c), &bytes, sizeof(bytes));
	}
	while (sendmsg(fd, &m, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		poll(&room, 1, -1);
}

static void send_due(int fd)
{
	for (unsigned int rank = 0; rank < run.workers; rank++) {
		unsigned int first = 0, i = 0;

		for (; i < due_count; i++) {
			const size_t bytes = sizeof(struct tally_header) +
					     due[i]->state.blocks * (size_t)TALLY_BLOCK_BYTES;

			if (due[i]->state.blocks == due[first]->state.blocks &&
			    i - first < RUN_MAX && (i - first + 1) * bytes <= 65000)
				continue;
			send_run(fd, &run.worker[rank], first, i - first);
			first = i;
		}
		if (i > first)
			send_run(fd, &run.worker[rank], first, i - first);
	}
	due_count = 0;
}

static void words_add(uint64_t *sum, const uint64_t *word, size_t words)
{
	for (size_t i = 0; i < words; i++)
		sum[i] += word[i];
}

static void take(const struct tally_header *h)
{
	static const struct tally_reply result = { .outcome = TALLY_COMPLETED,
						   .kind = TALLY_RESULT };
	const struct tally_set set = tally_header_set(h);
	const uint32_t seq = tally_le32_get(h->seq);
	struct slot *s = &slots[seq & mask];
	struct tally_reply r = result;

	if (tally_le32_get(h->job) != run.job || h->kind != TALLY_CONTRIBUTION)
		return;
	if (s->state.seq != seq || !s->state.phase) {
		s->state = (struct tally_slot_state){ .seq = seq,
						      .phase = 1,
						      .recipient = tally_le16_get(h->recipient),
						      .lane = h->lane,
						      .blocks = h->blocks,
						      .call = tally_le64_get(h->call) };
		memcpy(s->word, h + 1, h->blocks * (size_t)TALLY_BLOCK_BYTES);
	} else if (tally_set_is_disjoint(&s->state.set, &set)) {
		words_add(s->word, (const uint64_t *)(h + 1), h->blocks * TALLY_BLOCK_WORDS);
	} else {
		if (tally_set_is_equal(&s->state.set, &everyone) && due_count < BATCH)
			due[due_count++] = s;
		return;
	}
	tally_set_join(&s->state.set, &set);
	s->state.check += tally_le64_get(h->check);
	s->state.flags |= h->flags & (TALLY_WIDE | TALLY_WIDE_AHEAD);
	if (h->scale > s->state.scale)
		s->state.scale = h->scale;
	if (h->scale_ahead > s->state.scale_ahead)
		s->state.scale_ahead = h->scale_ahead;
	if (!tally_set_is_equal(&s->state.set, &everyone))
		return;
	s->result = *h;
	r.blocks = s->state.blocks;
	tally_reply_write(&r, &s->state, 1, &s->result);
	tally_header_set_put(&s->result, &s->state.set);
	if (due_count < BATCH)
		due[due_count++] = s;
}

static size_t segment_bytes(struct msghdr *m, size_t length)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int bytes = 0;

	if (c && c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
		memcpy(&bytes, CMSG_DATA(c), sizeof(bytes));
	return bytes > 0 ? (size_t)bytes : length;
}

static void serve(int fd)
{
	static uint8_t buffer[RECEIVES][RECEIVE_BYTES] __attribute__((aligned(64)));
	static char control[RECEIVES][CMSG_SPACE(sizeof(int))];
	static struct mmsghdr in[RECEIVES];
	struct iovec iov[RECEIVES];
	int n;

	for (int i = 0; i < RECEIVES; i++) {
		iov[i] = (struct iovec){ buffer[i], RECEIVE_BYTES };
		in[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i],
						 .msg_iovlen = 1,
						 .msg_control = control[i],
						 .msg_controllen = sizeof(control[i]) };
	}
	n = recvmmsg(fd, in, RECEIVES, MSG_DONTWAIT, NULL);
	for (int i = 0; i < n; i++) {
		const size_t each = segment_bytes(&in[i].msg_hdr, in[i].msg_len);

		for (size_t at = 0; at + sizeof(struct tally_header) <= in[i].msg_len; at += each)
			take((const void *)(buffer[i] + at));
	}
	send_due(fd);
}

int main(int argc, char **argv)
{
	struct pollfd wait = { .events = POLLIN };
	char why[512];

	if (argc != 2 || jobfile_read(argv[1], &run, why, sizeof(why)) < 0 || run.workers > 64) {
		fprintf(stderr, "usage: server JOB-FILE (at most 64 workers)\n");
		return 2;
	}
	for (unsigned int rank = 0; rank < run.workers; rank++)
		tally_set_join(&everyone, &(struct tally_set){ { 1ull << rank } });
	mask = 2 * run.window - 1;
	slots = calloc(2 * run.window, sizeof(*slots));
	wait.fd = listen_at(&run.service);
	if (!slots || wait.fd < 0) {
		perror("server");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (poll(&wait, 1, -1) >= 0)
		serve(wait.fd);
	return 0;
}
