/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How large a packet may be on the way from this worker to a node. */
#ifndef TALLY_CLIENT_WAY_H
#define TALLY_CLIENT_WAY_H

#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>

/* Of the interface that has the socket's own address, and its name. 0: none has it. */
uint32_t way_interface_mtu(int fd, char ret_name[IFNAMSIZ]);

/* What the kernel knows of the way of a connected socket; 0: nothing. */
uint32_t way_known_mtu(int fd);

/*
 * From `own`, whose port does not matter, to `node`. Where it is more than 1500, a packet as large
 * as any of a job is tried, which nobody may cut, and words of those on the way that cannot pass it
 * on are waited for, so long. 0: not known.
 */
uint32_t way_try_mtu(const struct sockaddr_storage *own, const struct sockaddr_storage *node,
		     uint32_t wait_ms);

#endif
