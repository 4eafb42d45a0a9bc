/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The spill's sockets, one at each service address. Batches both ways: messages come as the kernel
 * put them together (UDP_GRO); results leave in runs (UDP_SEGMENT), straight out of the sums'
 * memory. For one thread at a time: where there are several, each has its own, and the jobs that
 * listen_thread_of() says.
 */
#ifndef TALLY_SPILL_SERVE_H
#define TALLY_SPILL_SERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/why.h"
#include "sums.h"

struct serve;
struct serve_socket;

/* `bytes_max`: of all sums together. The caller's, for serve_close(). -ENOMEM. */
int serve_open(size_t bytes_max, struct serve **ret);
void serve_close(struct serve *s);
static inline void serve_closep(struct serve **s) { serve_close(*s); }

/*
 * All threads (1 to LISTEN_THREADS_MAX) listen at `service`, which may be an address that this
 * machine does not have yet; port 0: at one that is free. `local`: what this machine sends to
 * itself comes, too. The kernel says of it that it came in by the interface that has the address:
 * with `local`, points keep no local program out. -EADDRINUSE: something else listens there.
 * ret[i] is of serve[i], and lives as long as that one.
 */
int serve_listen(struct serve *const *serve, unsigned int threads,
		 const struct sockaddr_storage *service, bool local, struct serve_socket **ret,
		 struct why *why);

/* To put jobs and to read counters. */
struct spill *serve_spill(struct serve *s);

/* Readable when something has come. */
int serve_fd(const struct serve_socket *s);

/* Takes what has come there, once, and sends what leaves. How many messages that were. */
unsigned int serve_some(struct serve *s, struct serve_socket *socket);

/*
 * Sends a datagram that is no message to somebody who may have gone. From then on, until
 * serve_forget(), the sockets of all threads at this address are also readable in the sense of
 * POLLERR, until all errors have been read (MSG_ERRQUEUE).
 */
int serve_ask(struct serve_socket *s, const struct sockaddr_storage *to, const void *bytes,
	      size_t length);

/* Answers are of no use any more: whoever sends ICMP is not heard. */
void serve_forget(struct serve_socket *s);

/* Messages that the kernel did not take in time; workers ask again. */
uint64_t serve_unsent(const struct serve *s);

#endif
