/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The spill's socket at a service address. Batches both ways: messages come as the kernel put them
 * together (UDP_GRO); results leave in runs (UDP_SEGMENT), straight out of the sums' memory.
 */
#ifndef TALLY_SPILL_SERVE_H
#define TALLY_SPILL_SERVE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/why.h"
#include "sums.h"

struct serve;

/*
 * Listens at `service`, which may be an address that this machine does not have yet. `bytes_max`:
 * of all sums together. -EADDRINUSE: something else listens there. The caller's, for serve_close().
 */
int serve_open(const struct sockaddr_storage *service, size_t bytes_max, struct serve **ret,
	       struct why *why);
void serve_close(struct serve *s);
static inline void serve_closep(struct serve **s) { serve_close(*s); }

/* To put jobs and to read counters; of the thread that calls serve_some(). */
struct spill *serve_spill(struct serve *s);

/* Readable when something has come. */
int serve_fd(const struct serve *s);

/* Takes what has come, once, and sends what leaves. How many messages that were. */
unsigned int serve_some(struct serve *s);

/*
 * Sends a datagram that is no message to somebody who may have gone. From then on the socket is
 * also readable in the sense of POLLERR, until all errors have been read (MSG_ERRQUEUE); and what
 * is sent next after somebody has refused something is lost, as on the way.
 */
int serve_ask(struct serve *s, const struct sockaddr_storage *to, const void *bytes, size_t length);

/* Messages that the kernel did not take in time; workers ask again. */
uint64_t serve_unsent(const struct serve *s);

#endif
