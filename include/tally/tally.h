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
 * Progress: a started call's first window leaves at once. What comes next needs somebody who makes
 * progress: a thread in tally_wait(), tally_test() or a collective; an event loop that watches
 * tally_fd() and calls tally_progress(); or threads of the library (TALLY_PROGRESS_THREAD).
 *
 * What is safe where, for one struct tally; different ones are independent:
 *
 *	function                      any thread,     with the   signal   child after
 *	                              several at once thread     handler  fork()
 *	tally_*_start, collectives    yes (1)         yes        no       refused
 *	tally_wait, tally_test        yes (2)         yes        no       refused
 *	tally_progress, tally_fd      yes             yes (3)    no       refused
 *	tally_abort                   yes             yes        no (4)   refused
 *	tally_hint                    yes             yes        no       refused
 *	tally_stats_read              yes             yes        no       yes
 *	tally_rank, tally_workers     yes             yes        yes      yes
 *	tally_open.., tally_join      make one        -          no       yes
 *	tally_close                   alone (5)       yes        no       yes (6)
 *	tally_error, tally_version    of this thread  yes        no       yes
 *
 * (1) The order in which threads start calls must be the same on all ranks.
 * (2) One thread a call: its handle is gone when tally_wait() returns.
 * (3) tally_fd() then tells of ended calls only; the rest is the threads'.
 * (4) A handler may write to a descriptor that the program polls beside tally_fd(). Signals do not
 *     end a wait; the library's threads block all of them.
 * (5) No other thread may be in, or enter, any function with it: tally_abort() wakes those who
 *     wait.
 * (6) What the parent opened is the parent's: in a child, calls with it fail with -EPERM,
 *     tally_stats_read() says how things stood at the fork(), and tally_close() frees and sends
 *     nothing. The parent goes on undisturbed. Descriptors close on exec().
 */
#ifndef TALLY_TALLY_H
#define TALLY_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TALLY_VERSION_MAJOR 0
#define TALLY_VERSION_MINOR 1
#define TALLY_VERSION_PATCH 0

/* 1.2.3 is 10203. (TALLY_VERSION is the wire's: tally/wire.h.) */
#define TALLY_VERSION_NUMBER \
	(TALLY_VERSION_MAJOR * 10000 + TALLY_VERSION_MINOR * 100 + TALLY_VERSION_PATCH)

/* Who makes progress with started calls. */
enum tally_progress_by {
	TALLY_PROGRESS_CALLS = 0, /* this library's functions, while they are called */
	TALLY_PROGRESS_THREAD = 1, /* threads of the library's own too, which sleep when idle: one,
				    * or, with several roots, progress_threads of them */
};

/* How many chunks are in flight (docs/protocol.md, "Congestion"). */
enum tally_congestion {
	TALLY_CONGESTION_ON = 0, /* as many as the network has room for, up to the window */
	TALLY_CONGESTION_OFF = 1, /* as many as the window */
};

/*
 * How long who waits for results looks for them before it sleeps: option spin_us, in microseconds.
 * Small calls take less time where nobody sleeps; meanwhile whoever else wants the processor has
 * it.
 */
enum tally_spin {
	TALLY_SPIN_AUTO = 0, /* $TALLY_SPIN: microseconds, 0 for never, or "auto", as without it: in
			      * calls of 32 chunks at most, while results come within 100 us and the
			      * processor is not wanted for long by others */
	TALLY_SPIN_NEVER = -1,
	TALLY_SPIN_US_MAX = 1000000,
};

/*
 * Structs grow at their ends. A function that takes or fills one has a form ..._sized, which is
 * told how large the caller's is; the plain form says so itself. What an older caller lacks is 0;
 * what a newer one sets and this library does not know is -E2BIG; what it wants filled is 0.
 */

/* What a worker must know of its job; strings are copied. All ranks agree but for the rank. */
struct tally_options {
	uint32_t job;
	uint16_t epoch; /* a new one for each run of the job */
	uint16_t rank; /* 0 .. workers - 1 */
	uint16_t workers; /* 1 .. 256 */
	uint16_t window; /* chunks in flight: a power of two, 1 .. 1024 */
	uint16_t payload_bytes; /* of a full packet: a multiple of 64, 64 .. 3392; must fit the
				 * path's MTU with 92 bytes (IPv4) or 112 (IPv6) of headers, and
				 * 32 more in a job of more than 64 workers */
	uint32_t timeout_ms; /* of one collective without any result, while somebody makes progress;
			      * 0: 30,000 */
	const char *service; /* the root's service address: "10.77.0.1" or "fd77::1" */
	const char *address; /* this worker's: "10.77.1.1:40000", "[fd77:1::1]:40000" */
	enum tally_progress_by progress;
	uint32_t late_rank_timeout_ms; /* the same, as long as the node answers, and says that other
					* ranks are missing; 0: timeout_ms */
	const unsigned char *rank_key; /* 16 bytes: this rank's key of a job with rank keys
					* (docs/job-file.md), a secret; NULL: the job has none */
	const unsigned char *secret; /* 16 bytes that all ranks know, and no node: each rank finds
				      * sums wrong that a node has changed (docs/security.md,
				      * "Sealed jobs"); NULL: the job is not sealed */
	uint16_t share; /* of this root's job among those of tally_open_roots(): 1 .. 1000 parts of
			 * the sum of all; 0: 1 */
	int32_t spin_us; /* see enum tally_spin; of several roots, as for the first one */
	enum tally_congestion congestion;
	uint16_t progress_threads; /* with TALLY_PROGRESS_THREAD and several roots, as for the first
				    * one: so many threads share the roots, 1 .. 16, and no more
				    * than there are roots. 0: $TALLY_PROGRESS_THREADS, else as
				    * many as processors that this process may use, less one for
				    * its own threads */
};

struct tally; /* one worker's place in one job */
struct tally_call; /* a started collective; belongs to the library */

/*
 * Opens a worker's place. Nothing is sent yet. On success *ret is the caller's, to be
 * given to tally_close(). -EINVAL: an option is null, out of range or no address;
 * -EADDRINUSE, -EADDRNOTAVAIL: the worker's own address; -ENOMEM; -EMSGSIZE: the payload does
 * not fit the MTU; -E2BIG: as above; -EMFILE, -EAGAIN and the like: no descriptor or thread.
 */
int tally_open_sized(const struct tally_options *options, size_t size, struct tally **ret);

static inline int tally_open(const struct tally_options *options, struct tally **ret)
{
	return tally_open_sized(options, sizeof(*options), ret);
}

/*
 * The same for a job with several roots, which share each call's elements: `options` are those of
 * `roots` jobs, 1 .. 16, one at each root, in one order on all ranks. Rank, workers and payload
 * must be the same in all of them; job, epoch, addresses, keys and the like are each root's own.
 * Calls behave as with one root, but for the order in which they end, and end when all parts have
 * ended; where one fails, the text names the root.
 */
int tally_open_roots_sized(const struct tally_options *options, size_t size, size_t roots,
			   struct tally **ret);

static inline int tally_open_roots(const struct tally_options *options, size_t roots,
				   struct tally **ret)
{
	return tally_open_roots_sized(options, sizeof(*options), roots, ret);
}

/*
 * The same, with all but the rank read from a job file (docs/job-file.md). Errors: those of
 * tally_open(), those of open(2) on the file, -EFBIG: the file is too long, and -EINVAL: the
 * file or the rank is wrong.
 */
int tally_open_file(const char *path, uint16_t rank, struct tally **ret);

/*
 * How to join a job through an agent (docs/joining.md). What is NULL, or the rank -1, the
 * environment says. There is no variable for a token itself, since others can see the environment.
 *
 * A job with several roots is a job at the agent of each: `agent` names them, 16 at most, with
 * commas between, in the same order on all ranks. Of job, token, token file and address, there is
 * one for all, or one for each, in that order. Or roots are several jobs at one agent, which `job`
 * names likewise. The rank is that at the first root.
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
			      * reaches the agent, or over a unix socket the node's first service
			      * address */
	uint32_t timeout_ms; /* of one collective without any result, while somebody makes progress;
			      * 0: 30,000 */
	uint32_t join_timeout_ms; /* until all ranks have come, at each root; 0: 60,000. As long,
				   * agents that cannot be reached, or end the connection, are
				   * asked again */
	enum tally_progress_by progress;
	uint32_t late_rank_timeout_ms; /* as in tally_options; 0: 1,800,000, as long as the agent
					* would say if a rank had gone, else timeout_ms */
	const char *shares; /* of each root in every call's elements, the same on all ranks: "2,1",
			     * numbers from 1 to 1000. NULL: $TALLY_SHARES, else equal ones */
	const char *other_agents; /* of the same cluster, addresses as that of agent, 16 at most,
				   * with commas between: asked in turn while agent cannot be
				   * reached. NULL: $TALLY_OTHER_AGENTS, else none */
	int32_t spin_us; /* see enum tally_spin */
	enum tally_congestion congestion; /* TALLY_CONGESTION_ON: $TALLY_CONGESTION, "on" or "off",
					   * may say otherwise */
	uint16_t progress_threads; /* as in tally_options */
};

/*
 * The same through an agent: returns when all ranks have come and the nodes are ready. `options`
 * may be NULL: all as the environment says. The place is kept, also while the agent is restarted,
 * until tally_close(), which gives it back; no call in between waits for the agent or fails
 * because it has gone. Calls fail within a second when the agent says that they lack a rank that
 * has gone (-ECONNABORTED), or that the job was deleted (-ECANCELED). -EINVAL: an option, or its
 * variable, is missing or wrong; -EPERM: the token file is open to everybody; -ETIMEDOUT: some
 * ranks did not join, the text names them; -ECONNRESET, -ECONNREFUSED, -ENOENT (a unix socket),
 * -EHOSTUNREACH, -ENETUNREACH: no agent was there at the end of the timeout, the text says how
 * often it was tried; -ELOOP: agents name one another without end; -EPROTO: it is none; and what
 * opening, connecting and tally_open() may say. What the agent refuses, it says in words: -EACCES:
 * no such job, or a wrong token; -EPERM: this worker is outside its tenant's ingress points;
 * -EADDRINUSE: the rank or the address is taken; -ERANGE, -EUSERS: no such rank, or none free;
 * -ENOSPC: the tenant's quota; -EHOSTUNREACH: no way from the node to this worker; -EBUSY;
 * -ECANCELED: the job was deleted; -EPROTONOSUPPORT: another version; -EIO: the agent failed.
 */
int tally_join_sized(const struct tally_join_options *options, size_t size, struct tally **ret);

static inline int tally_join(const struct tally_join_options *options, struct tally **ret)
{
	return tally_join_sized(options, sizeof(*options), ret);
}

/*
 * How urgent calls are, where nodes have fewer slots than jobs want (docs/protocol.md,
 * "Priority"). Nothing but time depends on it, and without hints the library goes by how much of
 * the job's time its calls take. What is 0 is not said.
 */
struct tally_hints {
	uint16_t layer; /* whose gradient it is: 0 .. layers - 1, 0 the first in a forward pass */
	uint16_t layers;
	uint32_t remaining_s; /* seconds until this job will be over */
};

/*
 * Of all calls that are started from now on, by any thread, until it is said again. Ranks may say
 * different things. -EINVAL: a null argument, or a layer that is not below `layers`; -E2BIG: as
 * above.
 */
int tally_hint_sized(struct tally *t, const struct tally_hints *hints, size_t size);

static inline int tally_hint(struct tally *t, const struct tally_hints *hints)
{
	return tally_hint_sized(t, hints, sizeof(*hints));
}

/* This worker's rank, and how many workers the job has. */
uint16_t tally_rank(const struct tally *t);
uint16_t tally_workers(const struct tally *t);

/*
 * Leaves the job: waits, two seconds at most, until every rank has all results, then frees
 * everything; three seconds if its agent was restarted and does not answer. NULL is allowed. Calls
 * still running are abandoned: their handles are gone, and their buffers are not touched any more,
 * from the beginning of tally_close() on.
 */
int tally_close(struct tally *t);

/*
 * Ends all started calls with -ECANCELED, at once, and wakes all who wait for them. Their buffers
 * are not touched any more when it returns, and their handles still want tally_wait(). The job is
 * over: other ranks hear that this one left, from an agent, or find it missing. -EINVAL: NULL.
 */
int tally_abort(struct tally *t);

/*
 * Collectives. `count` is in elements, 0 allowed. Buffers must not overlap, except in place:
 * `out` may be `in` (allreduce, reduce), the rank's own part of `in` (reduce_scatter), or hold
 * `in` as the rank's own part (all_gather). They stay the caller's; a started call needs them until
 * it was waited for. -EINVAL: a null or bad argument; -ETIMEDOUT: with the missing ranks or
 * what else was not there; -EPROTONOSUPPORT: the node speaks another version; -EPROTO: ranks make
 * different calls, the text says who calls what; -ESTALE: the epoch was used before; -EBADMSG:
 * sums were wrong again and again; -EBUSY: 64 started calls have not been waited for; -ENOMEM;
 * -ECONNABORTED: an earlier call failed, or a rank has gone; -ECANCELED: the job was deleted;
 * -ERANGE: see TALLY_FIXED(), the one error on the way after which the job goes on.
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
 * The same, started: the first window of chunks leaves at once, unless earlier calls still run. A
 * start waits for no other rank. *ret is to be given to tally_wait() exactly once, in any order.
 * Calls run one after another in the order in which they were started; of a job with several roots
 * they do so at each root, and a later call may end first. Gradients overlap with computing them
 * like this, given a thread of the library (TALLY_PROGRESS_THREAD), or a tally_progress() now and
 * then:
 *
 *	for (int i = layers - 1; i >= 0; i--) {
 *		backward(layer[i]);
 *		tally_allreduce_start(t, layer[i].gradient, ..., &layer[i].call);
 *	}
 *	for (int i = layers - 1; i >= 0; i--)
 *		tally_wait(layer[i].call);
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

/* Calls that reduce. */
enum tally_verb {
	TALLY_ALLREDUCE = 1,
	TALLY_REDUCE = 2,
	TALLY_REDUCE_SCATTER = 4,
};

/*
 * One of these with all that can be said of it. What is 0 or NULL is not said.
 *
 * Feedback, of TALLY_FLOAT32_HALVED: this rank sends in[i] + kept[i], rounded, and lost[i] becomes
 * what rounding took of that. Who gives what a call lost as `kept` to the next call of the same
 * tensor loses nothing in the long run: over any number of calls, what was sent differs from what
 * was given by half a step, and not by half a step a call. Each rank may do so or not. Where in[i]
 * is not finite, nothing of kept[i] was sent, and lost[i] is that.
 *
 * `kept` and `lost` have as many elements as `in`, and stay the caller's, as all buffers. They may
 * be one array; then, as with `out`, what is in it after a call that failed is undefined. With two,
 * `kept` is as it was, and the caller exchanges them after a call that did not fail. A tensor that
 * has changed its count or its layout begins with nothing.
 */
struct tally_reduction {
	enum tally_verb verb;
	enum tally_dtype dtype;
	enum tally_op op;
	uint16_t root; /* of TALLY_REDUCE */
	const void *in;
	void *out;
	size_t count;
	const float *kept; /* NULL: nothing */
	float *lost; /* NULL: it is forgotten */
};

/* Starts it. Errors are those of tally_allreduce_start() and the others, and -E2BIG: as above. */
int tally_reduction_start_sized(struct tally *t, const struct tally_reduction *reduction,
				size_t size, struct tally_call **ret);

static inline int tally_reduction_start(struct tally *t, const struct tally_reduction *reduction,
					struct tally_call **ret)
{
	return tally_reduction_start_sized(t, reduction, sizeof(*reduction), ret);
}

/* Waits until the call is over; its handle is then gone. */
int tally_wait(struct tally_call *call);

/* Makes what progress there is without waiting. The handle stays until tally_wait(). */
int tally_test(struct tally_call *call, bool *ret_done);

/*
 * For event loops: a descriptor that is readable when tally_progress() has something to do, be it
 * that a datagram has come, that a timer is due, or that a call has ended, by whomever. Watch it
 * for reading, level-triggered. It belongs to the library until tally_close(). Negative: an errno.
 */
int tally_fd(struct tally *t);

/*
 * Makes what progress there is. Never waits for the network or for a call, only for other threads
 * that make progress themselves just then. *ret_ended: how many calls have ended since
 * tally_progress() last said so, by whomever; it may be NULL.
 */
int tally_progress(struct tally *t, unsigned int *ret_ended);

/* Where a call's sums were made. */
enum tally_way {
	TALLY_WAY_NONE = 0, /* nowhere: nothing was to be sent, or no result came */
	TALLY_WAY_OFFLOADED = 1, /* all that came: by nodes, in the network */
	TALLY_WAY_PARTLY_SPILLED = 2, /* `spilled` of them in software */
	TALLY_WAY_SPILLED = 3, /* all that came: in software, at the root */
};

/* How one call went. */
struct tally_call_info {
	enum tally_way way;
	uint64_t chunks; /* results */
	uint64_t redone; /* chunks sent again with another scale, or wide */
	uint64_t retransmitted; /* contributions sent again because of loss */
	uint64_t sent_bytes; /* messages of this rank, their headers and retransmissions included */
	uint64_t queued_ns; /* from its start until earlier calls were over */
	uint64_t duration_ns; /* from its start to its end */
	uint64_t spilled; /* results that were made in software */
};

/* tally_wait(), and how the call went, also if it failed. */
int tally_wait_info_sized(struct tally_call *call, size_t size, struct tally_call_info *ret);

static inline int tally_wait_info(struct tally_call *call, struct tally_call_info *ret)
{
	return tally_wait_info_sized(call, sizeof(*ret), ret);
}

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
	uint64_t spilled; /* chunks that were summed in software */
	uint64_t window; /* chunks that may be in flight now; with several roots at all of them */
	uint64_t marked; /* results that say that some packet of their chunk met congestion */
	uint64_t cuts; /* of the window, by marks and losses */
};

void tally_stats_read_sized(const struct tally *t, size_t size, struct tally_stats *ret);

static inline void tally_stats_read(const struct tally *t, struct tally_stats *ret)
{
	tally_stats_read_sized(t, sizeof(*ret), ret);
}

/* Why the last call of this thread failed, in words; never NULL, valid until the next call. */
const char *tally_error(void);

/* Of the library that runs, which may be newer than this header: "1.2.3". */
const char *tally_version(void);

#ifdef __cplusplus
}
#endif

#endif
