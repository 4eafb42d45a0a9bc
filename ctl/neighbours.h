/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Asks the network which MACs neighbours have, by ARP and by neighbour solicitation, whatever the
 * kernel's table says.
 */
#ifndef TALLY_CTL_NEIGHBOURS_H
#define TALLY_CTL_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct neighbour {
	uint32_t ifindex; /* an Ethernet interface; where the question leaves */
	struct sockaddr_storage address; /* IPv4 or IPv6: whose MAC is asked for */
	uint8_t source[16]; /* this machine's address there; IPv4: the first four */
	uint8_t source_mac[6]; /* of the interface */
	uint8_t expected[6];
	bool answered;
	uint8_t mac[6]; /* the expected one if any answer had that, else the last one's */
};

/*
 * Asks for all of them at once, and again as long as the expected answer has not come; takes less
 * than 1 s where all come, and about 1 s otherwise. -EPERM: the process may not ask.
 */
int neighbours_ask(struct neighbour *all, unsigned int count);

#endif
