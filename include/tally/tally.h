/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libtally: collectives whose sums are made inside the network.
 *
 *	struct tally *t;
 *	int r = tally_open_file("job.conf", rank, &t);
 *	if (r < 0)
 *		errx(1, "%s", tally_error());
 *	r = tally_allreduce(t, gradient, gradient, count, TALLY_FLOAT32, TALLY_AVG);
 *	tally_close(t);
 *
 * All ranks of a job issue the same calls in the same order with the same count, type,
 * operation and root. Results are the same bits on every rank, in every run, whatever
 * packets were lost and wherever the sums were made.
 *
 * Errors: every function that returns int returns 0 or a negative errno, and then
 * tally_error() says why in words. Outputs are untouched by a call that is refused; after
 * a call that fails on the way (-ETIMEDOUT and the like) the output buffer is undefined
 * and the job is over: close it.
 *
 * Threads: one thread at a time per struct tally; different ones are independent.
 * Progress is made inside the calls of this library only.
 */
#ifndef TALLY_TALLY_H
#define TALLY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum tally_dtype {
	TALLY_INT32 = 1, /* sums wrap at 32 bits */
	TALLY_INT64 = 2, /* sums wrap at 64 bits */
	TALLY_FLOAT32 = 3, /* error bound: docs/protocol.md, "float32" */
};

enum tally_op {
	TALLY_SUM = 1,
	TALLY_AVG = 2, /* the sum by the number of ranks; integers towards zero. Of int32: the exact
			* sum; of int64: the sum that has wrapped */
};

/* What a worker must know of its job; strings are copied. All ranks agree but for the rank. */
struct tally_options {
	uint32_t job;
	uint16_t epoch; /* a new one for each run of the job */
	uint16_t rank; /* 0 .. workers - 1 */
	uint16_t workers; /* 1 .. 256 */
	uint16_t window; /* chunks in flight: a power of two, 1 .. 1024 */
	uint16_t payload_bytes; /* of a full packet: a multiple of 64, 64 .. 3392; must fit the
				 * path's MTU with 92 bytes (IPv4) or 112 (IPv6) of headers */
	uint32_t timeout_ms; /* of one collective; 0: 30,000 */
	const char *service; /* the root's service address: "10.77.0.1" or "fd77::1" */
	const char *address; /* this worker's: "10.77.1.1:40000", "[fd77:1::1]:40000" */
};

struct tally; /* one worker's place in one job */
struct tally_call; /* a started collective; belongs to the library */

/*
 * Opens a worker's place. Nothing is sent yet. On success *ret is the caller's, to be
 * given to tally_close(). -EINVAL: an option is null, out of range or no address;
 * -EADDRINUSE, -EADDRNOTAVAIL: the worker's own address; -ENOMEM; -EMSGSIZE: the payload does
 * not fit the MTU.
 */
int tally_open(const struct tally_options *options, struct tally **ret);

/* The same, with all but the rank read from a job file (docs/job-file.md). -ENOENT ... */
int tally_open_file(const char *path, uint16_t rank, struct tally **ret);

/*
 * How to join a job through an agent (docs/joining.md). What is NULL, or the rank -1, the
 * environment says. There is no variable for a token itself, since others can see the environment.
 */
struct tally_join_options {
	const char *agent; /* a socket's path, or an address: "10.77.0.1", "10.77.0.1:31249",
			    * "[fd77::1]:31249". NULL: $TALLY_AGENT, else /run/tally/join.sock */
	const char *job; /* its name. NULL: $TALLY_JOB */
	const char *token; /* NULL: the first line of the file $TALLY_TOKEN_FILE, which must not
			    * be open to everybody */
	int rank; /* -1: $TALLY_RANK, else any */
	const char *address; /* where this worker receives: "10.77.1.1:40000", or without port for
			      * any that is free. NULL: $TALLY_ADDRESS, else that from which it
			      * reaches the agent, which only an agent with an address can see */
	uint32_t timeout_ms; /* of one collective; 0: 30,000 */
	uint32_t join_timeout_ms; /* until all ranks have come; 0: 60,000 */
};

/*
 * The same through an agent: returns when all ranks have come and the nodes are ready. `options`
 * may be NULL: all as the environment says. The place is kept, also while the agent is restarted,
 * until tally_close(), which gives it back; no call in between waits for the agent or fails
 * because of it. -EINVAL: an option, or its variable, is missing or wrong; -EPERM: the token file
 * is open to everybody; -ETIMEDOUT: with the ranks that have not come; -ECONNRESET: the agent went
 * away meanwhile; -EPROTO: it is none; and what opening, connecting and tally_open() may say. What
 * the agent refuses, it says in words: -EACCES: no such job, or a wrong token; -EADDRINUSE: the
 * rank or the address is taken; -ERANGE, -EUSERS: no such rank, or none free; -ENOSPC: the tenant's
 * quota; -EHOSTUNREACH: no way from the node to this worker; -EBUSY; -ECANCELED: the job was
 * deleted; -EPROTONOSUPPORT: another version; -EIO: its own trouble.
 */
int tally_join(const struct tally_join_options *options, struct tally **ret);

/* This worker's rank, and how many workers the job has. */
uint16_t tally_rank(const struct tally *t);
uint16_t tally_workers(const struct tally *t);

/*
 * Leaves the job: waits, two seconds at most, until every rank has all results, then frees
 * everything; one more if its agent was restarted and does not answer. NULL is allowed. Calls still
 * running are abandoned.
 */
int tally_close(struct tally *t);

/*
 * Collectives. `count` is in elements, 0 allowed. Buffers must not overlap, except in place:
 * `out` may be `in` (allreduce, reduce), the rank's own part of `in` (reduce_scatter), or hold
 * `in` as the rank's own part (all_gather). They stay the caller's; a started call needs them until
 * it was waited for. -EINVAL: a null or bad argument; -ETIMEDOUT: with the missing ranks or
 * what else was not there; -EPROTONOSUPPORT: the node speaks another version; -EBUSY: 64 started
 * calls have not been waited for; -ENOMEM; -ECONNABORTED: an earlier call failed.
 */

/* out[i] = op over all ranks of in[i], on every rank. */
int tally_allreduce(struct tally *t, const void *in, void *out, size_t count,
		    enum tally_dtype dtype, enum tally_op op);

/* The same on rank `root` only; `out` is not used elsewhere and may be NULL there. */
int tally_reduce(struct tally *t, const void *in, void *out, size_t count, enum tally_dtype dtype,
		 enum tally_op op, uint16_t root);

/* `buffer` of rank `root` to all others, bit for bit. */
int tally_broadcast(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
		    uint16_t root);

/* in: workers * count elements; rank r gets the reduction of elements r * count .. */
int tally_reduce_scatter(struct tally *t, const void *in, void *out, size_t count,
			 enum tally_dtype dtype, enum tally_op op);

/* out: workers * count elements; rank r's `in` lands bit for bit at r * count. */
int tally_all_gather(struct tally *t, const void *in, void *out, size_t count,
		     enum tally_dtype dtype);

/* Returns when all ranks have entered it. */
int tally_barrier(struct tally *t);

/*
 * The same, started: *ret is to be given to tally_wait() exactly once, in any order. Calls
 * run one after another in the order in which they were started.
 */
int tally_allreduce_start(struct tally *t, const void *in, void *out, size_t count,
			  enum tally_dtype dtype, enum tally_op op, struct tally_call **ret);
int tally_reduce_start(struct tally *t, const void *in, void *out, size_t count,
		       enum tally_dtype dtype, enum tally_op op, uint16_t root,
		       struct tally_call **ret);
int tally_broadcast_start(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
			  uint16_t root, struct tally_call **ret);
int tally_reduce_scatter_start(struct tally *t, const void *in, void *out, size_t count,
			       enum tally_dtype dtype, enum tally_op op, struct tally_call **ret);
int tally_all_gather_start(struct tally *t, const void *in, void *out, size_t count,
			   enum tally_dtype dtype, struct tally_call **ret);
int tally_barrier_start(struct tally *t, struct tally_call **ret);

/* Makes progress until the call is over; its handle is then gone. */
int tally_wait(struct tally_call *call);

/* Makes what progress there is without waiting. The handle stays until tally_wait(). */
int tally_test(struct tally_call *call, bool *ret_done);

/* Since the job was opened; times in nanoseconds. */
struct tally_stats {
	uint64_t sent; /* datagrams, retransmissions included */
	uint64_t received;
	uint64_t retransmitted; /* contributions sent again */
	uint64_t flushed; /* of them, with FLUSH */
	uint64_t repaired; /* results given back to the root */
	uint64_t redone; /* chunks sent again with another scale */
	uint64_t corrupt; /* results whose check word was wrong; dropped */
	uint64_t ignored; /* datagrams that were no use: late copies, other epochs */
	uint64_t chunks; /* finished */
	uint64_t node_reloads; /* the root's boot id changed */
	uint64_t rtt_ns; /* smoothed time from contribution to result */
};

void tally_stats_read(const struct tally *t, struct tally_stats *ret);

/* Why the last call of this thread failed, in words; never NULL, valid until the next call. */
const char *tally_error(void);

/* "1.0.0" */
const char *tally_version(void);

#ifdef __cplusplus
}
#endif

#endif
