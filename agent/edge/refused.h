/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a UDP socket hears of those who are not there: ICMP, in its queue of errors. */
#ifndef TALLY_AGENT_REFUSED_H
#define TALLY_AGENT_REFUSED_H

#include <stddef.h>
#include <sys/types.h>

/*
 * Of a UDP socket with IP_RECVERR or IPV6_RECVERR: reads the next datagram whose receiver's machine
 * has said that nobody is there, as far as it was quoted and `size` goes. -EAGAIN: there is none.
 */
ssize_t refused_read(int fd, void *ret, size_t size);

#endif
