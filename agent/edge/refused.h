/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a UDP socket hears of those who are not there: ICMP, in its queue of errors. */
#ifndef TALLY_AGENT_REFUSED_H
#define TALLY_AGENT_REFUSED_H

#include <stddef.h>
#include <sys/types.h>

enum {
	REFUSED_MAX = 256, /* datagrams of one turn: a stranger who sends ICMP keeps nobody here */
};

/*
 * Of a UDP socket with IP_RECVERR or IPV6_RECVERR: reads the next datagram whose receiver's machine
 * has said that nobody is there, as far as it was quoted and `size` goes. Takes at most `*left`
 * from the queue, and what it took from `*left`. -EAGAIN: there is none, or nothing is left.
 */
ssize_t refused_read(int fd, unsigned int *left, void *ret, size_t size);

#endif
