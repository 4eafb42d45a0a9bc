// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "listen.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>
#include <tally/wire.h>
#include <unistd.h>

#include "common/address.h"

enum {
	BUFFER_BYTES = 64 << 20, /* of a socket, each way */
	LOOPBACK = 1, /* interface: in each network namespace */
};

static void set_buffer(int fd, int force, int option)
{
	int want = BUFFER_BYTES;

	/* The FORCE variants need CAP_NET_ADMIN; without it the system's limit must do. */
	if (setsockopt(fd, SOL_SOCKET, force, &want, sizeof(want)) < 0)
		setsockopt(fd, SOL_SOCKET, option, &want, sizeof(want));
}

/*
 * Nothing from this machine itself: the kernel would say that it came in by the interface which has
 * the service address, whoever sent it.
 */
static int refuse_local(int fd)
{
	static struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_IFINDEX)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LOOPBACK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno
											   : 0;
}

/* As listen_thread_of(), of the job's number (little-endian) in what the datagram carries. */
static int choose_thread(int fd, unsigned int threads)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(struct tally_header, job)),
		BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, threads),
		BPF_STMT(BPF_RET | BPF_A, 0),
	};
	const struct sock_fprog program = { sizeof(code) / sizeof(*code), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) < 0
		       ? -errno
		       : 0;
}

static int share_port(int fd)
{
	int on = 1;

	return setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ? -errno : 0;
}

/* What may fail without harm does. */
static void set_options(int fd, bool ipv6)
{
	int on = 1;

	setsockopt(fd, SOL_IP, IP_FREEBIND, &on, sizeof(on));
	setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on));
	/* Without it no interface is known, and what has points comes in nowhere. */
	setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &on,
		   sizeof(on));
	setsockopt(fd, ipv6 ? SOL_IPV6 : SOL_IP, ipv6 ? IPV6_RECVTCLASS : IP_RECVTOS, &on,
		   sizeof(on));
	set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF);
	set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF);
}

/*
 * The first one has the port alone, so that it fails where anybody listens; then it lets others
 * of the same user in.
 */
static int open_one(struct sockaddr_storage *service, bool local, bool first, int *ret_fd,
		    struct why *why)
{
	socklen_t length = sizeof(*service);
	char text[ADDRESS_BYTES];
	int r;

	endpoint_print(service, text, sizeof(text));
	*ret_fd = socket(service->ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (*ret_fd < 0)
		return why_say(why, -errno, "cannot make a UDP socket: %s", strerror(errno));
	r = local ? 0 : refuse_local(*ret_fd);
	if (r < 0)
		return why_say(why, r, "cannot attach a filter to the socket at %s: %s", text,
			       strerror(-r));
	set_options(*ret_fd, service->ss_family == AF_INET6);
	r = first ? 0 : share_port(*ret_fd);
	if (r == 0 && bind(*ret_fd, (struct sockaddr *)service, endpoint_length(service)) < 0)
		r = -errno;
	if (r < 0)
		return why_say(why, r,
			       r == -EADDRINUSE
				       ? "something listens at %s already: is it another tallyd?"
				       : "cannot listen at %s (%s)",
			       text, strerror(-r));
	getsockname(*ret_fd, (struct sockaddr *)service, &length);
	return 0;
}

/* After one of the sockets was opened: may the next one come, and is that all? */
static int share_among(int fd, bool first, bool last, unsigned int threads, struct why *why)
{
	int r = first ? share_port(fd) : 0;

	if (r == 0 && last)
		r = choose_thread(fd, threads);
	return r < 0 ? why_say(why, r, "cannot share a UDP port among %u threads: %s", threads,
			       strerror(-r))
		     : 0;
}

int listen_open(struct sockaddr_storage *service, bool local, unsigned int threads, int *ret_fd,
		struct why *why)
{
	int fd[LISTEN_THREADS_MAX] = { 0 }, r = 0;
	unsigned int i = 0;

	while (r == 0 && i < threads) {
		r = open_one(service, local, !i, &fd[i], why);
		if (r == 0 && threads > 1)
			r = share_among(fd[i], !i, i + 1 == threads, threads, why);
		i++;
	}
	if (r < 0) {
		while (i--)
			if (fd[i] >= 0)
				close(fd[i]);
		return r;
	}
	memcpy(ret_fd, fd, threads * sizeof(*fd));
	return 0;
}
