/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What carries a worker's datagrams to the node and back: a table of functions. A new transport is
 * one new file and its line in transport.c.
 */
#ifndef TALLY_CLIENT_TRANSPORT_H
#define TALLY_CLIENT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "window.h"

enum {
	TRANSPORT_BATCH = 64, /* datagrams sent at a time */
	TRANSPORT_RECEIVES = 8, /* fewer datagrams received at a time: that was all */
	TRANSPORT_RECEIVED_MAX = TRANSPORT_RECEIVES * 64,
};

/* An open transport; each transport's own struct begins with it. */
struct channel {
	const struct transport *transport;
	bool refused; /* the network has said that nobody listens at the service address */
	uint32_t mtu; /* somebody has said that the way there takes no larger packets than these,
		       * and some of ours are; 0: nobody has */
};

struct transport {
	/* Bound to `local`, whose UDP port may be 0: any that is free. Sets the error text. */
	int (*open)(const struct sockaddr_storage *local, struct channel **ret);

	/* Where it is bound: never with UDP port 0. */
	void (*local)(const struct channel *c, struct sockaddr_storage *ret);

	/*
	 * Once, before anything is sent or received. `message_bytes`: of the largest message; must
	 * fit the interface's MTU (-EMSGSIZE). `messages`: that many fit the buffers if the system
	 * allows. Sets the error text.
	 */
	int (*connect)(struct channel *c, const struct sockaddr_storage *service,
		       size_t message_bytes, size_t messages);

	/*
	 * Never blocks. Returns how many were sent, the first ones: for the others there is no room
	 * until fd() is writable. What the system drops is lost, like on the wire. Says of each
	 * fresh one whether it went in a run, as one with others, which may share their fate.
	 */
	size_t (*send)(struct channel *c, const struct datagram *d, size_t n);

	/*
	 * What is there, TRANSPORT_RECEIVED_MAX datagrams at most; their bytes are valid until the
	 * next call.
	 */
	size_t (*receive)(struct channel *c, struct datagram *ret);

	/* Readable when something has come; writable when there is room again. */
	int (*fd)(const struct channel *c);

	/* How what send() sent in runs has fared since connect(). */
	void (*feedback)(struct channel *c, const struct window_runs *runs);

	/* Routers may mark packets instead of losing them, and what came with a mark says so. */
	void (*take_marks)(struct channel *c);

	/* Of open(), connected or not. */
	void (*close)(struct channel *c);
};

extern const struct transport transport_udp;

/* By the first transport that can be had. */
int transport_open(const struct sockaddr_storage *local, struct channel **ret);

/* A socket cannot have this address: `error`, an errno, becomes -error and a text with both. */
int address_refuse(int error, const struct sockaddr_storage *local);

/* NULL is allowed. */
void transport_close(struct channel *c);

#endif
