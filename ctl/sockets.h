/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who uses a UDP or TCP port: reads the text of /proc/net/udp, udp6, tcp and tcp6. Pure. */
#ifndef TALLY_CTL_SOCKETS_H
#define TALLY_CTL_SOCKETS_H

#include <stdint.h>

/*
 * The inode of the first socket in such a table that is bound to UDP or TCP port `port` and is in
 * this state (0x0a: a TCP socket listens; 0: any). -ENOENT: there is none.
 */
int sockets_find(const char *table, uint16_t port, unsigned int state, uint64_t *ret_inode);

#endif
