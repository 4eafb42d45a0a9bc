/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then serve.h, which gives messages to this and sends what leaves.
 *
 * The spill: the root of jobs, in user space. The rules are those of tally/node.h and
 * tally/reply.h, as the data plane compiles them; words lie in memory that is taken when a chunk's
 * first payload comes. Pure; for one thread.
 *
 * All sums together have a limit. At the limit a sum goes of the tenant that has most bytes, also
 * if that is the one that wants more: so none has less than an equal share while others have more
 * and it wants more. The sum goes that was finished first: a worker that still wants it makes the
 * root gather anew, as after a restart. Where the tenant has no finished sum, one goes that has not
 * grown for a second, also another tenant's; then that of the latest chunk, or, where the tenant
 * itself wants more, of a later chunk of the same job, whose ranks may wait for this one. Otherwise
 * a message that needs memory is refused and counted (`full`), and its worker sends again. None of
 * this takes longer where there are more sums.
 */
#ifndef TALLY_SPILL_SUMS_H
#define TALLY_SPILL_SUMS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/maps.h>
#include <tally/node.h>
#include <tally/reply.h>
#include <tally/wire.h>

#include "points.h"

enum {
	SPILL_HEADER_WORDS = (sizeof(struct tally_header) + sizeof(struct tally_more)) / 8,
};

/* A copy of what goes to all: one for each worker, or for all below one child node. */
struct spill_child {
	struct tally_set below;
	uint16_t key; /* of its tags, by number, where the job has keys */
	struct sockaddr_storage address;
};

/* What a tenant may send; its jobs may be in spills of several threads. */
struct spill_limits {
	pthread_mutex_t lock; /* guards the buckets, if `is.limited` */
	struct tally_tenant is;
};

/* What makes a job: all that the caller says of it. */
struct spill_job_options {
	struct tally_set everyone;
	struct sockaddr_storage service; /* messages to other addresses are of other jobs */
	uint32_t id;
	uint16_t tenant; /* whatever the caller numbers so, below TALLY_TENANTS_MAX */
	uint16_t epoch;
	uint16_t window; /* a power of two; the job has twice as many slots */
	uint16_t payload_bytes;
	unsigned int children;
	const struct spill_child *child; /* copied */
	struct spill_limits *limits; /* who pays; stays where it is; NULL: no limits */
	const struct spill_points *points; /* stays where it is; NULL: messages come in anywhere */
	const struct tally_key *key; /* by rank, TALLY_WORKERS_MAX; copied. NULL: no rank keys */
	const struct tally_key *node_key; /* of who sends sums of several ranks; copied. NULL: none
					   */
};

struct spill_job;
struct spill;

/*
 * What leaves because of a message: its header, and `blocks` blocks of payload at `word`, which is
 * memory of the spill. It stays as it is until spill_settle(), which is called before
 * spill_message() returns it a second time changed: see `settle` there.
 */
struct spill_reply {
	enum tally_to to; /* TALLY_TO_SENDER, TALLY_TO_GROUP; else nothing leaves */
	const struct spill_job *job;
	uint16_t header_bytes;
	uint64_t header[SPILL_HEADER_WORDS]; /* to the group: spill_copy() */
	const uint64_t *word; /* NULL: no payload */
	size_t payload_bytes;
};

/* Sends all replies that have not been sent, before the memory that they point to changes. */
typedef void (*spill_settle_function)(void *context);

/*
 * `bytes_max`: of all sums together. `boot`: a number that no earlier spill of this address had.
 * NULL: no memory.
 */
struct spill *spill_new(size_t bytes_max, uint16_t boot, spill_settle_function settle,
			void *context);
void spill_free(struct spill *s);

/* One of `parts` of a node, which together answer messages of another version as one node does. */
void spill_answers_share(struct spill *s, unsigned int parts);

/*
 * A job, from now on. One of the same number, epoch and tenant gets other children and keeps its
 * sums; any other one of the same number goes. -EINVAL: the window is no power of two, the payload
 * is not of whole blocks, there is no child, a worker has none or two, a child has a key that the
 * job has not, or there is no such tenant; -ENOMEM.
 */
int spill_job_put(struct spill *s, const struct spill_job_options *options);

/* -ENOENT. No reply that points to its sums is left. */
int spill_job_remove(struct spill *s, uint32_t id);

unsigned int spill_jobs(const struct spill *s);

/*
 * One message: `length` bytes of a datagram, 8-byte aligned, that came to `service` by `way`. The
 * outcome is counted. `now_ns`: of a clock that never goes back.
 */
enum tally_outcome spill_message(struct spill *s, const void *datagram, size_t length,
				 const struct sockaddr_storage *service,
				 const struct spill_way *way, uint64_t now_ns,
				 struct spill_reply *ret);

/* All replies so far have been sent. */
void spill_settled(struct spill *s);

const struct spill_child *spill_children(const struct spill_job *j, unsigned int *ret_count);

/* The header of a reply's copy for this child of its job. How much of the payload goes with it. */
size_t spill_copy(const struct spill_reply *r, const struct spill_child *child,
		  uint64_t ret_header[static SPILL_HEADER_WORDS]);

/*
 * By outcome; those of a job, or (NULL) of messages that are of no job. Bytes are those of whole
 * frames, as the data plane counts them, without a VLAN's tag.
 */
const struct tally_counter *spill_counters(const struct spill *s, const uint32_t *id);

typedef void (*spill_job_function)(void *context, uint32_t id, uint16_t tenant,
				   const struct tally_counter *counter);

/* Each job, in any order. */
void spill_each(const struct spill *s, spill_job_function function, void *context);

struct spill_memory {
	size_t bytes, bytes_max; /* of sums */
	size_t tenant_bytes[TALLY_TENANTS_MAX]; /* what of `bytes` is whose */
	uint64_t evicted; /* sums that made room */
	uint64_t full; /* messages that were refused for want of memory */
};

struct spill_memory spill_memory(const struct spill *s);

#endif
