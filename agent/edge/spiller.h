/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Jobs of this node that are summed in software: threads of their own serve them, each some whole
 * jobs, with a socket for each service address. What the data plane passes on comes here: a job
 * that is in the maps at the same time is one that borrows slots there. For one thread, which owns
 * it.
 */
#ifndef TALLY_AGENT_SPILLER_H
#define TALLY_AGENT_SPILLER_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/core/dataplane_state.h"
#include "agent/core/installation.h"
#include "agent/core/traffic.h"
#include "common/why.h"
#include "spill/sums.h"

enum {
	SPILLER_SERVICES_MAX = 64, /* service addresses with spilled jobs */
	SPILLER_ASK_BYTES = 17,
};

struct spiller;

/*
 * `bytes_max`: of all sums together; each of the `threads` (1 to LISTEN_THREADS_MAX) has an equal
 * part for its jobs. `local`: as for serve_listen(). The caller's, for spiller_close(). -ENOMEM.
 */
int spiller_open(size_t bytes_max, unsigned int threads, bool local, struct spiller **ret);
void spiller_close(struct spiller *s);
static inline void spiller_closep(struct spiller **s) { spiller_close(*s); }

/*
 * A planned job, as its root; in the place of an older one of its number. -EADDRINUSE: something
 * else listens at the service address; -ENOSPC: too many service addresses.
 */
int spiller_put(struct spiller *s, const struct installation *g, struct why *why);

/* A job that is not there is none. */
void spiller_remove(struct spiller *s, uint32_t id);

/*
 * Sends a datagram of SPILLER_ASK_BYTES from a service address whose UDP port the spiller has, to a
 * worker that may have gone. It begins with 0, so it is no message. If nobody is there it can be
 * read again, by its bytes, from spiller_refused_fd(). -ENOENT: the spiller does not have the port.
 */
int spiller_ask(struct spiller *s, const struct sockaddr_storage *service,
		const struct sockaddr_storage *worker, const void *datagram);

/* No answer is waited for any more, at any address. */
void spiller_forget(struct spiller *s);

/* Readable, without waiting, SPILLER_ASK_BYTES at a time. Do not close it. */
int spiller_refused_fd(const struct spiller *s);

/*
 * What all spilled jobs of a tenant (1 .. TALLY_TENANTS_MAX - 1) may send together, and where their
 * messages may come in: anywhere, or by `count` points, TENANT_POINTS_MAX at most.
 */
void spiller_tenant_put(struct spiller *s, uint32_t index, const struct dataplane_limits *limits,
			bool anywhere, const struct dataplane_source *point, unsigned int count);

/* Of all sums in software, whichever thread has them. */
struct spill_memory spiller_memory(struct spiller *s);

/* What came, of all jobs and of none, by outcome; what was not sent: serve_unsent(). */
void spiller_count(struct spiller *s, struct tally_counter ret[static TALLY_OUTCOME_COUNT],
		   uint64_t *ret_unsent);

/*
 * Adds a row for each job behind `count` rows of malloc(), 1 at least: what came to it; to the row
 * of the job, if that is there: what it passes on is counted in both places. What no job
 * has let in is added to row 0, unless the data plane passed it, and so has counted it. -ENOMEM.
 */
int spiller_rows(struct spiller *s, struct traffic_row **rows, unsigned int *count);

#endif
