// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a cable long: moves each frame from one interface to the other, so many microseconds after
 * it came. Runs in the cable's namespace, whose own programs no longer pass frames. What the other
 * interface's queue has no room for is lost, as it would be without this. Ends by SIGTERM, and
 * prints how many frames went, were lost there, and were late by over a millisecond.
 *
 *	delay MICROSECONDS INTERFACE INTERFACE
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

enum {
	FRAME_BYTES = 2048, /* with what the kernel says of its checksum */
	FRAMES = 8192, /* on the way, each way */
	BATCH = 64,
	SOCKET_BYTES =
		64 << 20, /* of frames that wait to be read, or in the queue of the other end */
	LATE_NS = 1000000,
};

struct way {
	int from, to;
	uint32_t first, end; /* of the frames on the way; these numbers only grow */
	uint64_t due_ns[FRAMES];
	uint32_t length[FRAMES];
	char frame[FRAMES][FRAME_BYTES];
};

static struct way ways[2];
static uint64_t sent, lost, late;
static volatile sig_atomic_t is_over;

static void end(int signal) { is_over = 1; }

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int listen_at(const char *name)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ALL),
				  .sll_ifindex = (int)if_nametoindex(name) };
	int s = socket(AF_PACKET, SOCK_RAW, 0), on = 1, bytes = SOCKET_BYTES;

	if (s < 0 || !at.sll_ifindex ||
	    setsockopt(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) ||
	    setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) ||
	    setsockopt(s, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) ||
	    setsockopt(s, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) ||
	    bind(s, (void *)&at, sizeof(at)))
		err(1, "%s", name);
	return s;
}

/* False: nothing more is there, or there is no room. */
static bool take(struct way *w, uint64_t delay_ns)
{
	struct mmsghdr message[BATCH] = { 0 };
	struct iovec part[BATCH];
	uint32_t room = FRAMES - (w->end - w->first);
	uint64_t now;
	int n;

	room = room < BATCH ? room : BATCH;
	for (uint32_t i = 0; i < room; i++) {
		part[i] = (struct iovec){ w->frame[(w->end + i) % FRAMES], FRAME_BYTES };
		message[i].msg_hdr.msg_iov = &part[i];
		message[i].msg_hdr.msg_iovlen = 1;
	}
	n = room ? recvmmsg(w->from, message, room, MSG_DONTWAIT, NULL) : 0;
	now = now_ns();
	for (int i = 0; i < n; i++, w->end++) {
		w->due_ns[w->end % FRAMES] = now + delay_ns;
		w->length[w->end % FRAMES] = message[i].msg_len;
	}
	return n == BATCH;
}

static void give(struct way *w, uint64_t now)
{
	for (; w->first != w->end && w->due_ns[w->first % FRAMES] <= now; w->first++) {
		const uint32_t at = w->first % FRAMES;

		if (send(w->to, w->frame[at], w->length[at], MSG_DONTWAIT) < 0)
			lost++;
		else
			sent++;
		late += now - w->due_ns[at] > LATE_NS;
	}
}

static uint64_t first_due_ns(void)
{
	uint64_t due = UINT64_MAX;

	for (int i = 0; i < 2; i++)
		if (ways[i].first != ways[i].end && ways[i].due_ns[ways[i].first % FRAMES] < due)
			due = ways[i].due_ns[ways[i].first % FRAMES];
	return due;
}

static void sleep_until_due(void)
{
	struct pollfd p[2] = { { .fd = ways[0].from, .events = POLLIN },
			       { .fd = ways[1].from, .events = POLLIN } };
	const uint64_t due = first_due_ns(), now = now_ns(), left = due > now ? due - now : 0;
	const struct timespec t = { .tv_sec = (time_t)(left / 1000000000),
				    .tv_nsec = (long)(left % 1000000000) };

	ppoll(p, 2, due == UINT64_MAX ? NULL : &t, NULL);
}

int main(int argc, char **argv)
{
	const struct sigaction over = { .sa_handler = end };
	uint64_t delay_ns;

	if (argc != 4)
		errx(2, "usage: delay MICROSECONDS INTERFACE INTERFACE");
	delay_ns = strtoull(argv[1], NULL, 10) * 1000;
	sigaction(SIGTERM, &over, NULL);
	ways[0].from = ways[1].to = listen_at(argv[2]);
	ways[0].to = ways[1].from = listen_at(argv[3]);
	puts("ready");
	fflush(stdout);
	while (!is_over) {
		for (int i = 0; i < 2; i++)
			while (take(&ways[i], delay_ns))
				;
		for (int i = 0; i < 2; i++)
			give(&ways[i], now_ns());
		sleep_until_due();
	}
	printf("{\"sent\": %llu, \"lost\": %llu, \"late\": %llu}\n", (unsigned long long)sent,
	       (unsigned long long)lost, (unsigned long long)late);
	return 0;
}
