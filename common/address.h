/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of machines, and endpoints: an address with a UDP or TCP port. Text to
 * struct sockaddr_storage (a sockaddr_in or sockaddr_in6) and back. Pure. Ports are in host
 * order in all arguments; inside the struct they are in network order, as sockets want them.
 */
#ifndef TALLY_COMMON_ADDRESS_H
#define TALLY_COMMON_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum {
	ADDRESS_BYTES = 64, /* fits any printed address or endpoint, with its end */
};

/*
 * "10.77.1.1:40000", "[fd77:1::1]:40000". With `port` not 0: an address alone, "10.77.1.1" or
 * "fd77:1::1", which gets that port. -EINVAL for everything else, also for addresses that are
 * not one machine's (any, multicast, broadcast).
 */
int address_parse(const char *text, uint16_t port, struct sockaddr_storage *ret);

/* An endpoint to listen at: as address_parse() without `port`, and also "0.0.0.0:1" and "[::]:1".
 */
int address_listen_parse(const char *text, struct sockaddr_storage *ret);

/* The address without its port: what address_parse() takes back. Cut if it is too long. */
void address_print(const struct sockaddr_storage *address, char *text, size_t size);

/* Is it of the machine itself, whichever that is? */
bool address_is_loopback(const struct sockaddr_storage *address);

/* Does it mean something on one link only: 169.254.0.0/16, fe80::/10? */
bool address_is_link_local(const struct sockaddr_storage *address);

/* Where the address itself lies, in network order, and how long it is: 4 or 16 bytes. */
void *address_raw(const struct sockaddr_storage *address, size_t *ret_bytes);

/* The address with its port: "10.77.1.1:40000", "[fd77:1::1]:40000". */
void endpoint_print(const struct sockaddr_storage *address, char *text, size_t size);

/* The same family, address and port? */
bool endpoint_is_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b);

uint16_t endpoint_port(const struct sockaddr_storage *address);
void endpoint_port_set(struct sockaddr_storage *address, uint16_t port);

/* As bind() and connect() want it. */
socklen_t endpoint_length(const struct sockaddr_storage *address);

#endif
