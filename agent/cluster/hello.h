/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What agents say on each of their links, so that they know who is at the other end: one datagram
 * that goes no further than the link. And who was heard where. Pure.
 *
 * Whoever can send on a link can say anything there. So two ports are neighbours only if both
 * agents say so (picture.h), which they do in the store.
 */
#ifndef TALLY_CLUSTER_HELLO_H
#define TALLY_CLUSTER_HELLO_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/name.h"

enum {
	HELLO_PORT = 31250, /* UDP */
	HELLO_BYTES = 8 + 2 * NAME_BYTES + IF_NAMESIZE,
	HELLO_EVERY_MS = 2000,
	HELLO_LOST_MS = 7000, /* three were lost, and so is the neighbour */
	HELLO_NEARS_MAX = 1024,
	HELLO_PORT_MAX = 128, /* of a port: whoever is there may make up names, at the cost of those
			       * who are there, too */
};

struct hello {
	char cluster[NAME_BYTES], node[NAME_BYTES];
	char port[IF_NAMESIZE]; /* that it leaves by */
};

void hello_print(const struct hello *h, uint8_t ret[HELLO_BYTES]);

/* -EBADMSG: it is none, or a later agent's. */
int hello_parse(const uint8_t *bytes, size_t length, struct hello *ret);

/* Somebody who was heard. */
struct hello_near {
	char port[IF_NAMESIZE]; /* of ours */
	char node[NAME_BYTES];
	char at[IF_NAMESIZE]; /* that node's port */
	uint64_t heard_ns;
};

/* Zeros: nobody. */
struct hello_nears {
	unsigned int count;
	struct hello_near near[HELLO_NEARS_MAX];
};

/*
 * `h` came in at our port at this time. True: that is news. Where there are too many, who was heard
 * longest ago at this port gives way, or of all, if the port has fewer than it may have.
 */
bool hello_heard(struct hello_nears *n, const char *port, const struct hello *h, uint64_t now_ns);

/* A node of another cluster that was heard at a port of ours. Zeros: none. */
struct hello_other {
	char port[IF_NAMESIZE]; /* of ours */
	struct hello is;
	uint64_t heard_ns;
};

/*
 * `h`, of another cluster, came in at our port at this time. One such node is kept, as long as it
 * is heard: whoever makes up names changes nothing. True: it is a new one.
 */
bool hello_other_heard(struct hello_other *o, const char *port, const struct hello *h,
		       uint64_t now_ns);

/* Is there one now? */
bool hello_other_is_there(const struct hello_other *o, uint64_t now_ns);

/* Forgets who was lost. True: somebody was. */
bool hello_forget(struct hello_nears *n, uint64_t now_ns);

#endif
