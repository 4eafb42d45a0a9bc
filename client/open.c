// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a worker comes into a job, and leaves it. */
#include <tally/tally.h>

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/jobfile.h"
#include "common/owned.h"
#include "common/util.h"
#include "common/why.h"
#include "error.h"
#include "open_private.h"
#include "sized.h"
#include "threads.h"

enum {
	TIMEOUT_MS = 30000,
	LINGER_MS = 2000, /* close waits so long for the other ranks */
	QUIET_MS = 20, /* and answers repairs until it was quiet for so long */
};

int check_progress(enum tally_progress_by by)
{
	if (by == TALLY_PROGRESS_CALLS || by == TALLY_PROGRESS_THREAD)
		return 0;
	return error_set(-EINVAL,
			 "progress: %d is neither TALLY_PROGRESS_CALLS nor TALLY_PROGRESS_THREAD",
			 by);
}

int check_congestion(enum tally_congestion congestion)
{
	if (congestion == TALLY_CONGESTION_ON || congestion == TALLY_CONGESTION_OFF)
		return 0;
	return error_set(-EINVAL,
			 "congestion: %d is neither TALLY_CONGESTION_ON nor TALLY_CONGESTION_OFF",
			 congestion);
}

/* Everything but the addresses. The names are those of struct tally_options. */
static int check_options(const struct tally_options *o)
{
	static const unsigned char unknown[sizeof(struct tally_key)];
	int r;

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
	if (o->share > SHARE_MAX)
		return error_set(-EINVAL, "share: %u, allowed are 1 to %d", o->share, SHARE_MAX);
	r = check_progress(o->progress);
	return r < 0 ? r : check_congestion(o->congestion);
}

/* Of several roots, an error says of which one it is: in the order in which they were given. */
int root_blame(int r, unsigned int which, unsigned int roots)
{
	struct why kept;

	if (r == 0 || roots == 1)
		return r;
	snprintf(kept.text, sizeof(kept.text), "%s", tally_error());
	return error_set(r, "root %u of %u: %s", which + 1, roots, kept.text);
}

void roots_freep(struct roots **roots)
{
	struct roots *r = *roots;

	for (unsigned int i = 0; r && i < SHARDS_MAX; i++) {
		transport_close(r->root[i].channel);
		join_close(r->root[i].join);
	}
	free(r);
}

static void tally_free(struct tally *t)
{
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++)
		progress_move_close(s, progress_is_forked(t)); /* its thread tells t->kick */
	progress_close(t);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++) {
		join_close(s->join); /* others may have needed this worker until now */
		engine_free(s->engine);
		transport_close(s->channel);
	}
	free(t);
}

static int make_engine(struct shard *s, const struct root *root, uint64_t agreement)
{
	const struct tally_options *o = &root->options;
	struct engine_options options = {
		.window = { .job = o->job,
			    .epoch = o->epoch,
			    .rank = o->rank,
			    .workers = o->workers,
			    .window = o->window,
			    .payload_bytes = o->payload_bytes,
			    .nonce = root->nonce,
			    .keyed = o->rank_key,
			    .follows = s->follows,
			    .keeps = s->keeps,
			    .sealed = o->secret },
		.timeout_ns = (o->timeout_ms ? o->timeout_ms : TIMEOUT_MS) * 1000000ull,
		.late_timeout_ns = o->late_rank_timeout_ms * 1000000ull,
		.service = s->service,
		.agreement = agreement,
	};

	if (o->rank_key)
		memcpy(&options.window.key, o->rank_key, sizeof(options.window.key));
	if (o->secret)
		memcpy(&options.window.secret, o->secret, sizeof(options.window.secret));
	if (getrandom(&options.random, sizeof(options.random), 0) < 0)
		return error_set(-errno, "cannot get a random number: %s", strerror(errno));
	return engine_new(&options, &s->engine) < 0 ? error_set(-ENOMEM, "out of memory") : 0;
}

static size_t header_bytes_of(const struct tally_options *o)
{
	return tally_header_bytes(o->workers > TALLY_SMALL_WORKERS_MAX ? TALLY_LARGE : 0);
}

/* What `root` has is the shard's from now on, also on failure. */
static int shard_open(struct shard *s, struct root *root, uint64_t agreement)
{
	const struct tally_options *o = &root->options;
	int r;

	s->join = TAKE_PTR(root->join);
	s->channel = TAKE_PTR(root->channel);
	s->keeps = s->join && join_others(s->join);
	s->follows = o->congestion == TALLY_CONGESTION_ON;
	address_print(&root->service, s->service, sizeof(s->service));
	r = s->channel->transport->connect(s->channel, &root->service,
					   header_bytes_of(o) + o->payload_bytes, 2 * o->window);
	if (r == 0 && s->follows)
		s->channel->transport->take_marks(s->channel);
	return r < 0 ? r : make_engine(s, root, agreement);
}

/* Ranks are those of all roots, and chunks the same ones. */
static int check_roots(const struct roots *roots)
{
	const struct tally_options *first = &roots->root[0].options;

	for (unsigned int i = 1; i < roots->count; i++) {
		const struct tally_options *o = &roots->root[i].options;

		if (o->workers != first->workers)
			return error_set(-EINVAL,
					 "root %u has a job of %u workers, root 1 one of %u: they "
					 "must have the same workers",
					 i + 1, o->workers, first->workers);
		if (o->rank != first->rank)
			return error_set(-EINVAL, "rank: %u at root %u, and %u at root 1", o->rank,
					 i + 1, first->rank);
		if (o->payload_bytes != first->payload_bytes)
			return error_set(
				-EINVAL,
				"root %u has a job with payload %u, root 1 one with %u: give "
				"all the same payload",
				i + 1, o->payload_bytes, first->payload_bytes);
	}
	return 0;
}

static int shards_open(struct tally *t, struct roots *roots)
{
	int r = 0;

	for (unsigned int i = 0; i < roots->count; i++) {
		const struct tally_options *o = &roots->root[i].options;

		t->shards.root[i].job = o->job;
		t->shards.root[i].epoch = o->epoch;
		t->shards.root[i].share = o->share ? o->share : 1;
		t->shards.root[i].nonce = roots->root[i].nonce;
	}
	t->shards.count = roots->count;
	for (unsigned int i = 0; r == 0 && i < roots->count; i++)
		r = root_blame(
			shard_open(&t->shard[i], &roots->root[i], shards_agreement(&t->shards, i)),
			i, roots->count);
	return r;
}

/* What this process may use: in a container fewer than there are. */
static unsigned int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : CPU_COUNT(&set);
}

static unsigned int pumps_of(const struct tally_options *o, unsigned int threads,
			     unsigned int roots)
{
	return o->progress == TALLY_PROGRESS_THREAD ? threads_of(threads, roots, processors()) : 1;
}

int roots_open(struct roots *roots, struct tally **ret)
{
	const struct tally_options *o = &roots->root[0].options;
	unsigned int threads = 0;
	struct spin spin;
	struct tally *t;
	int r = check_roots(roots);

	if (r == 0)
		r = spin_option(o->spin_us, getenv("TALLY_SPIN"), &spin);
	if (r == 0)
		r = threads_option(o->progress_threads, getenv("TALLY_PROGRESS_THREADS"), &threads);
	if (r < 0)
		return r;
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "out of memory");
	t->rank = o->rank;
	t->workers = o->workers;
	t->payload_bytes = o->payload_bytes;
	t->agreeing.follows = roots->follows;
	r = progress_open(t, roots->count, pumps_of(o, threads, roots->count), &spin);
	if (r == 0)
		r = shards_open(t, roots);
	if (r == 0 && o->progress == TALLY_PROGRESS_THREAD)
		r = progress_threads(t);
	if (r < 0) {
		tally_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

struct roots *roots_new(unsigned int count)
{
	struct roots *roots = calloc(1, sizeof(*roots));

	if (roots)
		roots->count = count;
	else
		error_set(-ENOMEM, "out of memory");
	return roots;
}

struct tally_options run_options(const struct run *job, uint16_t rank)
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

static int root_of_options(const void *options, size_t size, struct root *ret)
{
	struct tally_options *o = &ret->options;
	struct sockaddr_storage local;
	int r = sized_take(o, sizeof(*o), options, size);

	if (r == 0)
		r = check_options(o);
	if (r < 0)
		return r;
	if (!o->address || address_parse(o->address, 0, &local) < 0)
		return error_set(-EINVAL,
				 "address: '%s' is no address and port such as "
				 "10.77.1.1:40000 or [fd77:1::1]:40000",
				 o->address ? o->address : "(null)");
	if (!o->service || address_parse(o->service, TALLY_UDP_PORT, &ret->service) < 0)
		return error_set(-EINVAL,
				 "service: '%s' is no address such as 10.77.0.1 or fd77::1",
				 o->service ? o->service : "(null)");
	if (local.ss_family != ret->service.ss_family)
		return error_set(-EINVAL, "address and service: one is IPv4, the other IPv6");
	return transport_open(&local, &ret->channel);
}

int tally_open_roots_sized(const struct tally_options *options, size_t size, size_t count,
			   struct tally **ret)
{
	_cleanup_(roots_freep) struct roots *roots = NULL;
	int r = 0;

	if (!options || !ret)
		return error_set(-EINVAL, "options and ret must not be NULL");
	if (count < 1 || count > SHARDS_MAX)
		return error_set(-EINVAL, "roots: %zu, allowed are 1 to %d", count, SHARDS_MAX);
	roots = roots_new(count);
	if (!roots)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < count; i++)
		r = root_blame(
			root_of_options((const char *)options + i * size, size, &roots->root[i]), i,
			roots->count);
	return r < 0 ? r : roots_open(roots, ret);
}

int tally_open_sized(const struct tally_options *options, size_t size, struct tally **ret)
{
	return tally_open_roots_sized(options, size, 1, ret);
}

static int root_of_file(const char *path, uint16_t rank, struct run *run, struct root *ret)
{
	char why[256];
	int r = jobfile_read(path, run, why, sizeof(why));

	if (r < 0)
		return error_set(r, "%s", why);
	ret->options = run_options(run, rank);
	ret->service = run->service;
	r = check_options(&ret->options);
	return r < 0 ? r : transport_open(&run->worker[rank], &ret->channel);
}

int tally_open_file(const char *path, uint16_t rank, struct tally **ret)
{
	_cleanup_(roots_freep) struct roots *roots = NULL;
	struct run run;
	int r;

	if (!path || !ret)
		return error_set(-EINVAL, "path and ret must not be NULL");
	roots = roots_new(1);
	if (!roots)
		return -ENOMEM;
	r = root_of_file(path, rank, &run, &roots->root[0]);
	if (r == 0)
		r = roots_open(roots, ret);
	explicit_bzero(run.key, sizeof(run.key));
	explicit_bzero(run.secret, sizeof(run.secret));
	return r;
}

/* Waits a while for the other ranks. False: they did not come, or nothing can follow. */
static bool linger_barriers(struct tally *t, uint64_t end)
{
	const struct call_options barrier = { .verb = CALL_CLOSING };
	struct engine_call *call[SHARDS_MAX] = { 0 };
	bool over = false;

	for (unsigned int i = 0; i < t->shards.count; i++)
		if (engine_start(t->shard[i].engine, &barrier, clock_now_ns(), &call[i]) < 0)
			return false;
	while (!over && clock_now_ns() < end) {
		progress_wait(t, end);
		over = true;
		for (unsigned int i = 0; i < t->shards.count; i++)
			over &= engine_is_over(call[i]);
	}
	return over;
}

static bool has_heard(const struct tally *t)
{
	for (unsigned int i = 0; i < t->shards.count; i++)
		if (window_news(engine_window(t->shard[i].engine))->heard_ns)
			return true;
	return false;
}

static uint64_t received_by(const struct tally *t)
{
	uint64_t received = 0;

	for (unsigned int i = 0; i < t->shards.count; i++)
		received += t->shard[i].received;
	return received;
}

/*
 * When the barriers' results are here, every rank has entered them and so has all results before
 * them. Only the barriers' own may still be missing somewhere: repairs are answered a while. Where
 * calls were abandoned no barrier can follow them, and repairs are all that others may need.
 */
static void linger(struct tally *t)
{
	uint64_t end = clock_now_ns() + LINGER_MS * 1000000ull, quiet;
	bool abandons = !pump_is_idle(t->pump);

	for (unsigned int i = 0; abandons && i < t->shards.count; i++)
		engine_abort(t->shard[i].engine);
	if (!has_heard(t))
		return;
	if (!abandons && !linger_barriers(t, end))
		return;
	quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	while (clock_now_ns() < quiet && clock_now_ns() < end) {
		uint64_t received = received_by(t);

		progress_wait(t, quiet);
		if (received_by(t) != received)
			quiet = clock_now_ns() + QUIET_MS * 1000000ull;
	}
}

/*
 * In a child the place is still its parent's: that this process may go on must not look as if the
 * parent did. Who held a lock when the process was forked is not here, and may have left engines
 * half done.
 */
static void free_in_child(struct tally *t)
{
	for (struct pump *p = t->pump; p < t->pump + t->pumps; p++)
		if (pthread_mutex_trylock(&p->lock))
			for (struct shard *s = p->first; s < p->end; s++)
				s->engine = NULL;
	for (unsigned int i = 0; i < t->shards.count; i++) {
		join_forget(t->shard[i].join);
		t->shard[i].join = NULL;
	}
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
	tally_free(t);
	return 0;
}
