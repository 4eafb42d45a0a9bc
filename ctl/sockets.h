/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who has a port: /proc/net/udp, tcp and their sisters of IPv6. Pure. */
#ifndef TALLY_CTL_SOCKETS_H
#define TALLY_CTL_SOCKETS_H

#include <stdint.h>

/*
 * The inode of the first socket in such a table that is bound to `port`, and for TCP listens
 * (state 0A; `state` 0: any). -ENOENT: there is none.
 */
int sockets_find(const char *table, uint16_t port, unsigned int state, uint64_t *ret_inode);

#endif
