/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * UDP sockets at a service address, one for each thread. Which of them gets a message, a filter of
 * the kernel says, by the job's number: a thread has whole jobs. The kernel may put datagrams of
 * one sender together and hand all of them to the thread of the first one's job; a worker's socket
 * is of one job.
 */
#ifndef TALLY_SPILL_LISTEN_H
#define TALLY_SPILL_LISTEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/why.h"

enum {
	LISTEN_THREADS_MAX = 16, /* divides LISTEN_JOBS */
	LISTEN_JOBS = 256, /* the lowest byte of the number counts */
};

/* Which of so many threads has this job. */
static inline unsigned int listen_thread_of(uint32_t job, unsigned int threads)
{
	return job % LISTEN_JOBS % threads;
}

/*
 * `service`: may be an address that this machine does not have yet; port 0: gets one that is free.
 * `local`: what this machine sends to itself comes, too. ret_fd[threads]: in the order of threads;
 * the caller's. -EADDRINUSE: something else listens there.
 */
int listen_open(struct sockaddr_storage *service, bool local, unsigned int threads, int *ret_fd,
		struct why *why);

#endif
