/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the agent looks at now and then, and nobody tells it of. */
#ifndef TALLY_AGENT_LOOK_H
#define TALLY_AGENT_LOOK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/why.h"

/* Is this an address of this machine, in this network namespace? */
bool look_is_own(const struct sockaddr_storage *address);

/* The addresses of this machine there, at most `max`, without ports; how many. Or -errno. */
int look_own(struct sockaddr_storage *ret, unsigned int max);

/* An address, and whose it is. */
struct look_address {
	char port[IF_NAMESIZE]; /* an interface */
	struct sockaddr_storage address;
};

/* The same with interfaces. */
int look_addresses(struct look_address *ret, unsigned int max);

/* Of an interface of this network namespace. A negative errno. */
int look_mac(const char *name, uint8_t ret[6]);

enum {
	LOOK_MACHINE_BYTES = 64, /* with its end */
};

/*
 * What no other machine has, since it was booted, and no other network namespace of it: printable,
 * without blanks. It is the same for each process there. A negative errno.
 */
int look_machine(char ret[LOOK_MACHINE_BYTES], struct why *why);

/* Could this file be written anew, beside the old one? Else a negative errno. */
int look_is_writable(const char *file, struct why *why);

#endif
