/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which MACs neighbours had when they were last heard of, so that the many words of the kernel
 * about neighbours that have not changed cost nothing. Pure. Where thousands crowd, a neighbour may
 * lose its place to another one: then it is news when it is heard of next, though it has not
 * changed.
 */
#ifndef TALLY_AGENT_MAC_CACHE_H
#define TALLY_AGENT_MAC_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	MAC_CACHE_PLACES = 4096,
	MAC_CACHE_NEAR = 16, /* places that one neighbour may have */
};

struct mac_cache {
	struct mac_cache_entry {
		uint32_t ifindex; /* 0: nobody */
		uint8_t family;
		uint8_t address[16]; /* IPv4 in the first four */
		uint8_t mac[6];
		uint8_t reserved; /* 0: places are compared as bytes */
	} entry[MAC_CACHE_PLACES];
};

/*
 * The neighbour at this IPv4 or IPv6 address of this interface has this MAC. False: that is
 * known. True: it had another one, or is not remembered. Begins with all zero.
 */
bool mac_cache_learn(struct mac_cache *c, uint32_t ifindex, const struct sockaddr_storage *address,
		     const uint8_t mac[6]);

#endif
