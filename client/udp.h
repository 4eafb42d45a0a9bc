/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The client's only edge: one connected UDP socket. Batches both ways: runs of new frames of
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

/*
 * Bound to `local`, connected to `service`. `message_bytes`: of the largest message; must fit
 * the path's MTU (-EMSGSIZE). `messages`: that many fit the socket's buffers if the system
 * allows. Sets the error text.
 */
int udp_open(const struct sockaddr_storage *local, const struct sockaddr_storage *service,
	     size_t message_bytes, size_t messages, struct udp **ret);
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
