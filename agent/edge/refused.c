// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "refused.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include <linux/errqueue.h> /* behind time.h, which it needs */

static bool is_refusal(const struct msghdr *m)
{
	const struct sock_extended_err *e;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
		if (!(c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		e = (const void *)CMSG_DATA(c);
		return e->ee_errno == ECONNREFUSED;
	}
	return false;
}

ssize_t refused_read(int fd, unsigned int *left, void *ret, size_t size)
{
	uint8_t control[256];
	struct iovec into = { ret, size };
	struct msghdr m = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = control };
	ssize_t n;

	for (; *left; --*left) {
		m.msg_controllen = sizeof(control);
		n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT | MSG_TRUNC);
		if (n < 0)
			break;
		if (is_refusal(&m)) {
			--*left;
			return n;
		}
	}
	return -EAGAIN;
}
