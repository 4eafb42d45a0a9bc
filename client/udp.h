/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's edge to the node: one connected UDP socket. Batches both ways: runs of new frames of
 * one length go out as one UDP_SEGMENT send, and come in as the kernel put them together
 * (UDP_GRO), where it does.
 */
#ifndef TALLY_CLIENT_UDP_H
#define TALLY_CLIENT_UDP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "window.h"

enum {
	UDP_BATCH = 64, /* datagrams sent at a time */
	UDP_RECEIVED_MAX = 8 * 64, /* datagrams received at a time */
};

struct udp;

/* Bound to `local`, whose port may be 0: any that is free. Sets the error text. */
int udp_open(const struct sockaddr_storage *local, struct udp **ret);

/* Where it is bound: never with port 0. */
void udp_local(const struct udp *u, struct sockaddr_storage *ret);

/*
 * Once, before anything is sent or received. `message_bytes`: of the largest message; must
 * fit the path's MTU (-EMSGSIZE). `messages`: that many fit the socket's buffers if the system
 * allows. Sets the error text.
 */
int udp_connect(struct udp *u, const struct sockaddr_storage *service, size_t message_bytes,
		size_t messages);

void udp_close(struct udp *u);

/*
 * Sends all; what the system drops is lost, like on the wire. -ECONNREFUSED: all was sent, and
 * the network said that nobody listens there.
 */
int udp_send(struct udp *u, const struct datagram *d, size_t n);

/*
 * What is there, UDP_RECEIVED_MAX datagrams at most; their bytes are valid until the next call.
 * 0: nothing is there now. -ECONNREFUSED as above.
 */
int udp_receive(struct udp *u, struct datagram *ret);

/* Until something is there, or for `ns` nanoseconds. */
void udp_wait(struct udp *u, uint64_t ns);

/* Give up UDP_SEGMENT: something on the way swallows frames that are sent so. */
void udp_stop_segmenting(struct udp *u);

#endif
