// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a worker comes into a job, and leaves it. */
#include <tally/tally.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/jobfile.h"
#include "common/util.h"
#include "error.h"
#include "progress.h"
#include "sized.h"

enum {
	TIMEOUT_MS = 30000,
	LINGER_MS = 2000, /* close waits so long for the other ranks */
	QUIET_MS = 20, /* and answers repairs until it was quiet for so long */
};

static int check_progress(enum tally_progress_by by)
{
	if (by == TALLY_PROGRESS_CALLS || by == TALLY_PROGRESS_THREAD)
		return 0;
	return error_set(-EINVAL,
			 "progress: %d is neither TALLY_PROGRESS_CALLS nor TALLY_PROGRESS_THREAD",
			 by);
}

/* Everything but the addresses. The names are those of struct tally_options. */
static int check_options(const struct tally_options *o)
{
	static const unsigned char unknown[sizeof(struct tally_key)];

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
	if (o->rank_key && !memcmp(o->rank_key, unknown, sizeof(unknown)))
		return error_set(-EINVAL,
				 "rank_key: that of rank %u is all zeros: is it 'key -' in the job "
				 "file of this machine?",
				 o->rank);
	if (o->secret && !memcmp(o->secret, unknown, sizeof(unknown)))
		return error_set(-EINVAL,
				 "secret: it is all zeros: is it 'secret -' in the job file of "
				 "this machine? Workers need the secret");
	return check_progress(o->progress);
}

/* What only an agent gives; without one all of it is 0. open_on() takes it, unless it fails. */
struct membership {
	struct join *join;
	uint64_t nonce; /* of the run */
};

static void tally_free(struct tally *t)
{
	progress_close(t);
	engine_free(t->engine);
	transport_close(t->channel);
	free(t);
}

static int make_engine(struct tally *t, const struct tally_options *o, uint64_t nonce)
{
	struct engine_options options = {
		.window = { .job = o->job,
			    .epoch = o->epoch,
			    .rank = o->rank,
			    .workers = o->workers,
			    .window = o->window,
			    .payload_bytes = o->payload_bytes,
			    .nonce = nonce,
			    .keyed = o->rank_key,
			    .sealed = o->secret },
		.timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS) * 1000000ull,
		.late_timeout_ns = o->late_rank_timeout_ms * 1000000ull,
		.service = t->service,
		.owner = t,
	};

	if (o->rank_key)
		memcpy(&options.window.key, o->rank_key, sizeof(options.window.key));
	if (o->secret)
		memcpy(&options.window.secret, o->secret, sizeof(options.window.secret));
	if (getrandom(&options.random, sizeof(options.random), 0) < 0)
		return error_set(-errno, "cannot get a random number: %s", strerror(errno));
	return engine_new(&options, &t->engine) < 0 ? error_set(-ENOMEM, "out of memory") : 0;
}

static size_t header_bytes_of(const struct tally_options *o)
{
	return tally_header_bytes(o->workers > TALLY_SMALL_WORKERS_MAX ? TALLY_LARGE : 0);
}

/* `channel` is bound and belongs to the callee, also on failure. */
static int open_on(const struct tally_options *o, const struct sockaddr_storage *service,
		   struct channel *channel, struct membership m, struct tally **ret)
{
	struct tally *t = calloc(1, sizeof(*t));
	int r;

	if (!t) {
		transport_close(channel);
		return error_set(-ENOMEM, "out of memory");
	}
	t->channel = channel;
	t->join = m.join;
	t->rank = o->rank;
	t->workers = o->workers;
	address_print(service, t->service, sizeof(t->service));
	r = progress_open(t);
	if (r == 0)
		r = channel->transport->connect(
			channel, service, header_bytes_of(o) + o->payload_bytes, 2 * o->window);
	if (r == 0)
		r = make_engine(t, o, m.nonce);
	if (r == 0 && o->progress == TALLY_PROGRESS_THREAD)
		r = progress_thread(t);
	if (r < 0) {
		tally_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

static int open_at(const struct tally_options *o, const struct sockaddr_storage *local,
		   const struct sockaddr_storage *service, struct tally **ret)
{
	struct channel *channel;
	int r = transport_open(local, &channel);

	return r < 0 ? r : open_on(o, service, channel, (struct membership){ 0 }, ret);
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
		.rank_key = run_rank_key(job, rank),
		.secret = run_secret(job),
	};
}

int tally_open_sized(const struct tally_options *options, size_t size, struct tally **ret)
{
	struct sockaddr_storage local, service;
	struct tally_options known = { 0 }, *o = &known;
	int r;

	if (!options || !ret)
		return error_set(-EINVAL, "options and ret must not be NULL");
	r = sized_take(o, sizeof(*o), options, size);
	if (r == 0)
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
	if (r == 0)
		r = open_at(&o, &job.worker[rank], &job.service, ret);
	explicit_bzero(job.key, sizeof(job.key));
	explicit_bzero(job.secret, sizeof(job.secret));
	return r;
}

int tally_join_sized(const struct tally_join_options *options, size_t size, struct tally **ret)
{
	_cleanup_(freep) struct joining_answer *place = NULL;
	struct tally_join_options known = { .rank = JOINING_RANK_ANY };
	struct channel *channel;
	struct tally_options o;
	struct join *join;
	int r = 0;

	if (!ret)
		return error_set(-EINVAL, "ret must not be NULL");
	if (options)
		r = sized_take(&known, sizeof(known), options, size);
	if (r == 0)
		r = check_progress(known.progress);
	if (r < 0)
		return r;
	place = calloc(1, sizeof(*place));
	if (!place)
		return error_set(-ENOMEM, "out of memory");
	r = join_open(&known, &join, &channel, place);
	if (r < 0)
		return r;
	o = options_of(&place->job, place->rank);
	o.timeout_ms = known.timeout_ms;
	o.progress = known.progress;
	o.late_rank_timeout_ms = known.late_rank_timeout_ms;
	r = open_on(&o, &place->job.service, channel, (struct membership){ join, place->job.nonce },
		    ret);
	explicit_bzero(place, sizeof(*place));
	if (r < 0)
		join_close(join);
	return r;
}

/* Waits a while for the other ranks. False: they did not come, or nothing can follow. */
static bool linger_barrier(struct tally *t, uint64_t end)
{
	struct call_options barrier = { .verb = CALL_CLOSING };
	struct tally_call *call;

	if (engine_start(t->engine, &barrier, clock_now_ns(), &call) < 0)
		return false;
	while (!engine_is_over(call) && clock_now_ns() < end)
		progress_wait(t, end);
	return engine_is_over(call);
}

/*
 * When the barrier's result is here, every rank has entered it and so has all results before
 * it. Only the barrier's own may still be missing somewhere: repairs are answered a while. Where
 * calls were abandoned no barrier can follow them, and repairs are all that others may need.
 */
static void linger(struct tally *t)
{
	uint64_t end = clock_now_ns() + LINGER_MS * 1000000ull, quiet;
	bool abandons = !engine_is_idle(t->engine);

	if (abandons)
		engine_abort(t->engine);
	if (!window_news(engine_window(t->engine))->heard_ns)
		return;
	if (!abandons && !linger_barrier(t, end))
		return;
	quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	while (clock_now_ns() < quiet && clock_now_ns() < end) {
		uint64_t received = t->received;

		progress_wait(t, quiet);
		if (t->received != received)
			quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	}
}

/*
 * In a child the place is still its parent's: that this process may go on must not look as if the
 * parent did. Who held the lock when the process was forked is not here, and may have left the
 * engine half done.
 */
static void free_in_child(struct tally *t)
{
	if (pthread_mutex_trylock(&t->lock))
		t->engine = NULL;
	join_forget(t->join);
	tally_free(t);
}

int tally_close(struct tally *t)
{
	if (!t)
		return 0;
	if (progress_is_forked(t)) {
		free_in_child(t);
		return 0;
	}
	progress_stop(t);
	progress_enter(t);
	linger(t);
	progress_leave(t);
	join_close(t->join); /* last: others may have needed this worker until now */
	tally_free(t);
	return 0;
}
