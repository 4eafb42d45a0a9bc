// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The public calls: arguments are checked here, then engine and socket are turned together. */
#include <tally/tally.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/address.h"
#include "common/clock.h"
#include "engine.h"
#include "error.h"
#include "common/jobfile.h"
#include "join.h"
#include "lanes.h"
#include "transport.h"

enum {
	TIMEOUT_MS = 30000,
	LINGER_MS = 2000, /* close waits so long for the other ranks */
	QUIET_MS = 20,  /* and answers repairs until it was quiet for so long */
};

struct tally {
	struct engine *engine;
	struct channel *channel;
	struct join *join; /* NULL: opened without an agent */
	struct tally_stats stats; /* sent and received; the rest is the engine's */
	uint16_t rank, workers;
	char service[64];
};

/* Everything but the addresses. The names are those of struct tally_options. */
static int check_options(const struct tally_options *o)
{
	if (o->workers < 1 || o->workers > TALLY_WORKERS_MAX)
		return error_set(-EINVAL, "workers: %u, allowed are 1 to %d", o->workers,
				 TALLY_WORKERS_MAX);
	if (o->rank >= o->workers)
		return error_set(-EINVAL, "rank: %u, a job of %u workers has ranks 0 to %u",
				 o->rank, o->workers, o->workers - 1);
	if (!o->window || o->window > TALLY_WINDOW_MAX || o->window & (o->window - 1))
		return error_set(-EINVAL, "window: %u, allowed are powers of two from 1 to %d",
				 o->window, TALLY_WINDOW_MAX);
	if (!o->payload_bytes || o->payload_bytes > TALLY_PAYLOAD_MAX ||
	    o->payload_bytes % TALLY_BLOCK_BYTES)
		return error_set(-EINVAL, "payload_bytes: %u, allowed are multiples of 64 to %d",
				 o->payload_bytes, TALLY_PAYLOAD_MAX);
	return 0;
}

/* `channel` is bound and belongs to the callee, also on failure. */
static int open_on(const struct tally_options *o, const struct sockaddr_storage *service,
		   struct channel *channel, struct tally **ret)
{
	struct engine_options options = {
		.window = { .job = o->job,
			    .epoch = o->epoch,
			    .rank = o->rank,
			    .workers = o->workers,
			    .window = o->window,
			    .payload_bytes = o->payload_bytes },
		.timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS) * 1000000ull,
	};
	struct tally *t = calloc(1, sizeof(*t));
	int r;

	if (!t) {
		transport_close(channel);
		return error_set(-ENOMEM, "out of memory");
	}
	r = channel->transport->connect(
		channel, service, sizeof(struct tally_header) + o->payload_bytes, 2 * o->window);
	if (r == 0) {
		address_print(service, t->service, sizeof(t->service));
		options.service = t->service;
		options.owner = t;
		if (engine_new(&options, &t->engine) < 0)
			r = error_set(-ENOMEM, "out of memory");
	}
	if (r < 0) {
		transport_close(channel);
		free(t);
		return r;
	}
	t->channel = channel;
	t->rank = o->rank;
	t->workers = o->workers;
	*ret = t;
	return 0;
}

static int open_at(const struct tally_options *o, const struct sockaddr_storage *local,
		   const struct sockaddr_storage *service, struct tally **ret)
{
	struct channel *channel;
	int r = transport_open(local, &channel);

	return r < 0 ? r : open_on(o, service, channel, ret);
}

static struct tally_options options_of(const struct run *job, uint16_t rank)
{
	return (struct tally_options){
		.job = job->job,
		.epoch = job->epoch,
		.rank = rank,
		.workers = job->workers,
		.window = job->window,
		.payload_bytes = job->payload_bytes,
	};
}

int tally_open(const struct tally_options *o, struct tally **ret)
{
	struct sockaddr_storage local, service;
	int r;

	if (!o || !ret)
		return error_set(-EINVAL, "options and ret must not be NULL");
	r = check_options(o);
	if (r < 0)
		return r;
	if (!o->address || address_parse(o->address, 0, &local) < 0)
		return error_set(-EINVAL,
				 "address: '%s' is no address and port such as "
				 "10.77.1.1:40000 or [fd77:1::1]:40000",
				 o->address ? o->address : "(null)");
	if (!o->service || address_parse(o->service, TALLY_UDP_PORT, &service) < 0)
		return error_set(-EINVAL,
				 "service: '%s' is no address such as 10.77.0.1 or fd77::1",
				 o->service ? o->service : "(null)");
	if (local.ss_family != service.ss_family)
		return error_set(-EINVAL, "address and service: one is IPv4, the other IPv6");
	return open_at(o, &local, &service, ret);
}

int tally_open_file(const char *path, uint16_t rank, struct tally **ret)
{
	struct tally_options o;
	struct run job;
	char why[256];
	int r;

	if (!path || !ret)
		return error_set(-EINVAL, "path and ret must not be NULL");
	r = jobfile_read(path, &job, why, sizeof(why));
	if (r < 0)
		return error_set(r, "%s", why);
	o = options_of(&job, rank);
	r = check_options(&o);
	if (r < 0)
		return r;
	return open_at(&o, &job.worker[rank], &job.service, ret);
}

int tally_join(const struct tally_join_options *options, struct tally **ret)
{
	struct joining_answer *place;
	struct tally_options o;
	struct tally *t = NULL;
	struct join *join = NULL;
	struct channel *channel;
	int r;

	if (!ret)
		return error_set(-EINVAL, "ret must not be NULL");
	place = calloc(1, sizeof(*place));
	if (!place)
		return error_set(-ENOMEM, "out of memory");
	r = join_open(options, &join, &channel, place);
	if (r == 0) {
		o = options_of(&place->job, place->rank);
		o.timeout_ms = options ? options->timeout_ms : 0;
		r = open_on(&o, &place->job.service, channel, &t);
	}
	free(place);
	if (!t) {
		join_close(join);
		return r;
	}
	t->join = join;
	*ret = t;
	return 0;
}

static void output(struct tally *t, uint64_t now)
{
	struct datagram batch[TRANSPORT_BATCH];
	size_t n;

	do {
		n = engine_output(t->engine, now, batch, TRANSPORT_BATCH);
		t->stats.sent += n;
		if (n && t->channel->transport->send(t->channel, batch, n) == -ECONNREFUSED)
			engine_unreachable(t->engine);
	} while (n == TRANSPORT_BATCH);
}

/* Takes what is there; true if anything was. */
static bool input(struct tally *t)
{
	struct datagram batch[TRANSPORT_RECEIVED_MAX];
	uint64_t received = t->stats.received;
	const struct window_stats *stats;
	int n;

	do {
		uint64_t now;

		n = t->channel->transport->receive(t->channel, batch);
		now = clock_now_ns();
		if (n == -ECONNREFUSED)
			engine_unreachable(t->engine);
		for (int i = 0; i < n; i++)
			engine_input(t->engine, batch[i].bytes, batch[i].length, now);
		t->stats.received += n > 0 ? n : 0;
	} while (n >= TRANSPORT_BATCH);
	stats = window_stats(engine_window(t->engine));
	t->channel->transport->feedback(t->channel, stats->chunk, stats->first_try);
	return t->stats.received != received;
}

/*
 * One turn: what is there comes in, then what is due goes out: a worker that was not running for
 * a while must not take results that wait in its socket for lost. Waits until `until`, at most,
 * if there was nothing to do.
 */
static void turn(struct tally *t, uint64_t until)
{
	bool busy = input(t);
	uint64_t now = clock_now_ns(), wakeup;

	output(t, now);
	wakeup = engine_wakeup(t->engine);
	if (until < wakeup)
		wakeup = until;
	if (!busy && wakeup > now)
		t->channel->transport->wait(t->channel, wakeup - now);
}

static int check_call(const struct tally *t, const struct call_options *o, struct tally_call **ret)
{
	bool root_only = o->verb == CALL_REDUCE && t->rank != o->root;

	if (!ret)
		return error_set(-EINVAL, "ret must not be NULL");
	if (!lane_of_dtype(o->dtype))
		return error_set(-EINVAL,
				 "dtype: %d is none of TALLY_INT32, TALLY_INT64 and "
				 "TALLY_FLOAT32",
				 o->dtype);
	if (o->op != TALLY_SUM && o->op != TALLY_AVG)
		return error_set(-EINVAL, "op: %d is neither TALLY_SUM nor TALLY_AVG", o->op);
	if (o->root >= t->workers)
		return error_set(-EINVAL, "root: %u, the job has ranks 0 to %u", o->root,
				 t->workers - 1);
	if (o->count > (SIZE_MAX >> 4) / t->workers)
		return error_set(-EINVAL, "count: %zu elements are more than memory can hold",
				 o->count);
	if (o->count && (!o->in || (!o->out && !root_only)))
		return error_set(-EINVAL, "%s must not be NULL when count is not 0",
				 o->in ? "out" : "in");
	return 0;
}

static int start(struct tally *t, enum call_verb verb, const void *in, void *out, size_t count,
		 enum tally_dtype dtype, enum tally_op op, uint16_t root, struct tally_call **ret)
{
	struct call_options options = {
		.verb = verb,
		.dtype = dtype,
		.op = op,
		.root = root,
		.count = count,
		.in = in,
		.out = out,
	};
	int r;

	if (!t)
		return error_set(-EINVAL, "the job (struct tally *) must not be NULL");
	r = check_call(t, &options, ret);
	return r < 0 ? r : engine_start(t->engine, &options, ret);
}

int tally_wait(struct tally_call *call)
{
	struct tally *t = call ? engine_owner(call) : NULL;

	if (!t)
		return error_set(-EINVAL, "not a call that was started and not waited for");
	while (!engine_is_over(call))
		turn(t, UINT64_MAX);
	output(t, clock_now_ns());
	return engine_collect(call);
}

int tally_test(struct tally_call *call, bool *ret_done)
{
	struct tally *t = call ? engine_owner(call) : NULL;

	if (!t || !ret_done)
		return error_set(-EINVAL, "not a call that was started and not waited for");
	input(t);
	output(t, clock_now_ns());
	*ret_done = engine_is_over(call);
	return 0;
}

int tally_allreduce_start(struct tally *t, const void *in, void *out, size_t count,
			  enum tally_dtype dtype, enum tally_op op, struct tally_call **ret)
{
	return start(t, CALL_ALLREDUCE, in, out, count, dtype, op, 0, ret);
}

int tally_allreduce(struct tally *t, const void *in, void *out, size_t count,
		    enum tally_dtype dtype, enum tally_op op)
{
	struct tally_call *call = NULL;
	int r = tally_allreduce_start(t, in, out, count, dtype, op, &call);

	return r < 0 ? r : tally_wait(call);
}

int tally_reduce_start(struct tally *t, const void *in, void *out, size_t count,
		       enum tally_dtype dtype, enum tally_op op, uint16_t root,
		       struct tally_call **ret)
{
	return start(t, CALL_REDUCE, in, out, count, dtype, op, root, ret);
}

int tally_reduce(struct tally *t, const void *in, void *out, size_t count, enum tally_dtype dtype,
		 enum tally_op op, uint16_t root)
{
	struct tally_call *call = NULL;
	int r = tally_reduce_start(t, in, out, count, dtype, op, root, &call);

	return r < 0 ? r : tally_wait(call);
}

int tally_broadcast_start(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
			  uint16_t root, struct tally_call **ret)
{
	return start(t, CALL_BROADCAST, buffer, buffer, count, dtype, TALLY_SUM, root, ret);
}

int tally_broadcast(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
		    uint16_t root)
{
	struct tally_call *call = NULL;
	int r = tally_broadcast_start(t, buffer, count, dtype, root, &call);

	return r < 0 ? r : tally_wait(call);
}

int tally_reduce_scatter_start(struct tally *t, const void *in, void *out, size_t count,
			       enum tally_dtype dtype, enum tally_op op, struct tally_call **ret)
{
	return start(t, CALL_REDUCE_SCATTER, in, out, count, dtype, op, 0, ret);
}

int tally_reduce_scatter(struct tally *t, const void *in, void *out, size_t count,
			 enum tally_dtype dtype, enum tally_op op)
{
	struct tally_call *call = NULL;
	int r = tally_reduce_scatter_start(t, in, out, count, dtype, op, &call);

	return r < 0 ? r : tally_wait(call);
}

int tally_all_gather_start(struct tally *t, const void *in, void *out, size_t count,
			   enum tally_dtype dtype, struct tally_call **ret)
{
	return start(t, CALL_ALL_GATHER, in, out, count, dtype, TALLY_SUM, 0, ret);
}

int tally_all_gather(struct tally *t, const void *in, void *out, size_t count,
		     enum tally_dtype dtype)
{
	struct tally_call *call = NULL;
	int r = tally_all_gather_start(t, in, out, count, dtype, &call);

	return r < 0 ? r : tally_wait(call);
}

int tally_barrier_start(struct tally *t, struct tally_call **ret)
{
	return start(t, CALL_BARRIER, NULL, NULL, 0, TALLY_INT32, TALLY_SUM, 0, ret);
}

int tally_barrier(struct tally *t)
{
	struct tally_call *call = NULL;
	int r = tally_barrier_start(t, &call);

	return r < 0 ? r : tally_wait(call);
}

/*
 * When the barrier's result is here, every rank has entered it and so has all results before
 * it. Only the barrier's own may still be missing somewhere: repairs are answered a while.
 */
static void linger(struct tally *t)
{
	uint64_t end = clock_now_ns() + LINGER_MS * 1000000ull, quiet = 0;
	struct tally_call *call;
	bool done = false;

	if (tally_barrier_start(t, &call) < 0)
		return;
	while (!done && clock_now_ns() < end) {
		turn(t, end);
		tally_test(call, &done);
	}
	quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	while (done && clock_now_ns() < quiet && clock_now_ns() < end) {
		uint64_t received = t->stats.received;

		turn(t, quiet);
		if (t->stats.received != received)
			quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	}
}

int tally_close(struct tally *t)
{
	if (!t)
		return 0;
	if (window_news(engine_window(t->engine))->heard_ns)
		linger(t);
	engine_free(t->engine);
	transport_close(t->channel);
	join_close(t->join); /* last: others may have needed this worker until now */
	free(t);
	return 0;
}

uint16_t tally_rank(const struct tally *t) { return t->rank; }

uint16_t tally_workers(const struct tally *t) { return t->workers; }

void tally_stats_read(const struct tally *t, struct tally_stats *ret)
{
	const struct window *w = engine_window(t->engine);
	const struct window_stats *s = window_stats(w);

	*ret = t->stats;
	ret->retransmitted = s->retransmitted;
	ret->flushed = s->flushed;
	ret->repaired = s->repaired;
	ret->redone = engine_redone(t->engine);
	ret->corrupt = s->corrupt;
	ret->ignored = s->ignored;
	ret->chunks = s->chunk;
	ret->node_reloads = s->node_reload;
	ret->rtt_ns = window_rtt(w);
}

const char *tally_version(void) { return TALLY_VERSION_TEXT; }
