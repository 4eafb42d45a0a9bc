// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The collectives: arguments are checked here; the engine does the rest. */
#include <tally/tally.h>

#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "collect.h"
#include "error.h"
#include "lanes.h"
#include "progress.h"
#include "sized.h"

_Static_assert(CALL_ALLREDUCE == (int)TALLY_ALLREDUCE && CALL_REDUCE == (int)TALLY_REDUCE &&
		       CALL_REDUCE_SCATTER == (int)TALLY_REDUCE_SCATTER,
	       "what the program says is what goes over the wire");

static int check_tally(const struct tally *t)
{
	if (!t)
		return error_set(-EINVAL, "the job (struct tally *) must not be NULL");
	if (progress_is_forked(t))
		return error_set(-EPERM, "this process is a child of the one that opened the job: "
					 "open the job after fork()");
	return 0;
}

static int check_call(const struct tally *t, const struct call_options *o, struct tally_call **ret)
{
	bool root_only = o->verb == CALL_REDUCE && t->rank != o->root;

	if (!ret)
		return error_set(-EINVAL, "ret must not be NULL");
	if (!lane_of_dtype(o->dtype, 1))
		return error_set(-EINVAL, "dtype: %d is none of enum tally_dtype", o->dtype);
	if (call_reduces(o->verb) && !lane_of_dtype(o->dtype, t->workers))
		return error_set(-EINVAL,
				 "dtype: TALLY_FLOAT32_HALVED is for %u ranks at most, and the job "
				 "has %u: too few of 16 bits are left for each; use TALLY_FLOAT32",
				 lane_float32_halved.workers_max, t->workers);
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
				 o->verb == CALL_BROADCAST ? "buffer"
				 : o->in		   ? "out"
							   : "in");
	return 0;
}

static int start_call(struct tally *t, const struct call_options *options, struct tally_call **ret)
{
	struct tally_call *call = t->call;
	int r;

	while (call < t->call + TALLY_CALLS_MAX && call->pending)
		call++;
	if (call == t->call + TALLY_CALLS_MAX)
		return error_set(-EBUSY, "%d calls are started and not waited for: wait for some",
				 TALLY_CALLS_MAX);
	*call = (struct tally_call){
		.tally = t,
		.options = *options,
		.hints = t->hints,
		.started_ns = clock_now_ns(),
	};
	r = progress_shares_start(t, call);
	if (r < 0)
		return r;
	call->pending = true;
	*ret = call;
	return 0;
}

static int check_and_start(struct tally *t, const struct call_options *options,
			   struct tally_call **ret)
{
	int r = check_tally(t);

	if (r == 0)
		r = check_call(t, options, ret);
	if (r < 0)
		return r;
	progress_enter(t);
	progress_turn_busy(t); /* before more is sent, what has come is no loss */
	r = start_call(t, options, ret);
	progress_leave(t);
	return r;
}

static int start(struct tally *t, enum call_verb verb, const void *in, void *out, size_t count,
		 enum tally_dtype dtype, enum tally_op op, uint16_t root, struct tally_call **ret)
{
	const struct call_options options = {
		.verb = verb,
		.dtype = dtype,
		.op = op,
		.root = root,
		.count = count,
		.in = in,
		.out = out,
	};

	return check_and_start(t, &options, ret);
}

static int run(struct tally *t, enum call_verb verb, const void *in, void *out, size_t count,
	       enum tally_dtype dtype, enum tally_op op, uint16_t root)
{
	struct tally_call *call = NULL;
	int r = start(t, verb, in, out, count, dtype, op, root, &call);

	return r < 0 ? r : tally_wait(call);
}

/* *ret: whose call it is, with the lock held. */
static int enter(const struct tally_call *call, struct tally **ret)
{
	struct tally *t = call ? call->tally : NULL;
	int r = t ? check_tally(t) : 0;

	if (r < 0)
		return r;
	if (t) {
		progress_enter(t);
		if (call->pending) {
			*ret = t;
			return 0;
		}
		progress_leave(t);
	}
	return error_set(-EINVAL, "not a pending call (never started, or already waited for)");
}

static int wait_call(struct tally_call *call, struct tally_call_info *ret)
{
	struct tally *t = NULL;
	int r = enter(call, &t);

	if (!t)
		return r;
	progress_finish(t, call);
	r = collect_call(t, call, ret);
	progress_leave(t);
	return r;
}

int tally_wait(struct tally_call *call) { return wait_call(call, &(struct tally_call_info){ 0 }); }

int tally_wait_info_sized(struct tally_call *call, size_t size, struct tally_call_info *ret)
{
	struct tally_call_info info = { 0 };
	int r;

	if (!ret || !size)
		return error_set(-EINVAL, "ret must not be NULL, nor size 0");
	if (!call)
		return error_set(-EINVAL,
				 "not a pending call (never started, or already waited for)");
	r = wait_call(call, &info);
	sized_give(ret, size, &info, sizeof(info));
	return r;
}

int tally_test(struct tally_call *call, bool *ret_done)
{
	struct tally *t = NULL;
	int r;

	if (!ret_done)
		return error_set(-EINVAL, "ret_done must not be NULL");
	r = enter(call, &t);
	if (!t)
		return r;
	progress_turn(t);
	*ret_done = call->over;
	progress_leave(t);
	return 0;
}

int tally_progress(struct tally *t, unsigned int *ret_ended)
{
	unsigned int ended;
	int r = check_tally(t);

	if (r < 0)
		return r;
	progress_enter(t);
	progress_turn(t);
	ended = progress_report(t);
	progress_leave(t);
	if (ret_ended)
		*ret_ended = ended;
	return 0;
}

int tally_fd(struct tally *t)
{
	int fd = check_tally(t);

	if (fd < 0)
		return fd;
	progress_enter(t);
	fd = progress_fd(t);
	progress_leave(t);
	return fd;
}

int tally_hint_sized(struct tally *t, const struct tally_hints *hints, size_t size)
{
	struct tally_hints known = { 0 };
	int r = check_tally(t);

	if (r < 0)
		return r;
	if (!hints)
		return error_set(-EINVAL, "hints must not be NULL");
	r = sized_take(&known, sizeof(known), hints, size);
	if (r < 0)
		return r;
	if (known.layer && !known.layers)
		return error_set(-EINVAL, "layer: %u, and layers: 0: say how many layers there are",
				 known.layer);
	if (known.layers && known.layer >= known.layers)
		return error_set(-EINVAL, "layer: %u; it must be below layers, %u", known.layer,
				 known.layers);
	progress_enter(t);
	t->hints = known;
	progress_leave(t);
	return 0;
}

int tally_abort(struct tally *t)
{
	int r = check_tally(t);

	if (r < 0)
		return r;
	progress_enter(t);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++) {
		pump_enter(s->pump);
		engine_abort(s->engine);
		join_leave(s->join);
		join_leave(s->next.join);
		pump_leave(s->pump);
	}
	progress_leave(t);
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
	return run(t, CALL_ALLREDUCE, in, out, count, dtype, op, 0);
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
	return run(t, CALL_REDUCE, in, out, count, dtype, op, root);
}

int tally_broadcast_start(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
			  uint16_t root, struct tally_call **ret)
{
	return start(t, CALL_BROADCAST, buffer, buffer, count, dtype, TALLY_SUM, root, ret);
}

int tally_broadcast(struct tally *t, void *buffer, size_t count, enum tally_dtype dtype,
		    uint16_t root)
{
	return run(t, CALL_BROADCAST, buffer, buffer, count, dtype, TALLY_SUM, root);
}

int tally_reduce_scatter_start(struct tally *t, const void *in, void *out, size_t count,
			       enum tally_dtype dtype, enum tally_op op, struct tally_call **ret)
{
	return start(t, CALL_REDUCE_SCATTER, in, out, count, dtype, op, 0, ret);
}

int tally_reduce_scatter(struct tally *t, const void *in, void *out, size_t count,
			 enum tally_dtype dtype, enum tally_op op)
{
	return run(t, CALL_REDUCE_SCATTER, in, out, count, dtype, op, 0);
}

int tally_all_gather_start(struct tally *t, const void *in, void *out, size_t count,
			   enum tally_dtype dtype, struct tally_call **ret)
{
	return start(t, CALL_ALL_GATHER, in, out, count, dtype, TALLY_SUM, 0, ret);
}

int tally_all_gather(struct tally *t, const void *in, void *out, size_t count,
		     enum tally_dtype dtype)
{
	return run(t, CALL_ALL_GATHER, in, out, count, dtype, TALLY_SUM, 0);
}

static int check_reduction(const struct tally_reduction *r)
{
	if (r->verb != TALLY_ALLREDUCE && r->verb != TALLY_REDUCE &&
	    r->verb != TALLY_REDUCE_SCATTER)
		return error_set(-EINVAL, "verb: %d is none of enum tally_verb", r->verb);
	if (r->verb != TALLY_REDUCE && r->root)
		return error_set(-EINVAL, "root: %u; only TALLY_REDUCE has one", r->root);
	if ((r->kept || r->lost) && r->dtype != TALLY_FLOAT32_HALVED)
		return error_set(-EINVAL, "kept, lost: only with TALLY_FLOAT32_HALVED, and dtype "
					  "is another one");
	return 0;
}

int tally_reduction_start_sized(struct tally *t, const struct tally_reduction *reduction,
				size_t size, struct tally_call **ret)
{
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): no verb is refused */
	struct tally_reduction known = { 0 };
	int r = check_tally(t);

	if (r < 0)
		return r;
	if (!reduction)
		return error_set(-EINVAL, "reduction must not be NULL");
	r = sized_take(&known, sizeof(known), reduction, size);
	if (r == 0)
		r = check_reduction(&known);
	if (r < 0)
		return r;
	return check_and_start(t,
			       &(struct call_options){
				       .verb = (enum call_verb)known.verb,
				       .dtype = known.dtype,
				       .op = known.op,
				       .root = known.root,
				       .count = known.count,
				       .in = known.in,
				       .out = known.out,
				       .kept = known.kept,
				       .lost = known.lost,
			       },
			       ret);
}

int tally_barrier_start(struct tally *t, struct tally_call **ret)
{
	return start(t, CALL_BARRIER, NULL, NULL, 0, TALLY_INT32, TALLY_SUM, 0, ret);
}

int tally_barrier(struct tally *t)
{
	return run(t, CALL_BARRIER, NULL, NULL, 0, TALLY_INT32, TALLY_SUM, 0);
}

uint16_t tally_rank(const struct tally *t) { return t->rank; }

uint16_t tally_workers(const struct tally *t) { return t->workers; }

static void add_stats(struct tally_stats *sum, const struct shard *s)
{
	struct tally_stats part = engine_stats(s->engine);

	sum->sent += s->sent;
	sum->received += s->received;
	sum->retransmitted += part.retransmitted;
	sum->flushed += part.flushed;
	sum->repaired += part.repaired;
	sum->redone += part.redone;
	sum->corrupt += part.corrupt;
	sum->ignored += part.ignored;
	sum->chunks += part.chunks;
	sum->node_reloads += part.node_reloads;
	sum->spilled += part.spilled;
	sum->window += part.window;
	sum->marked += part.marked;
	sum->cuts += part.cuts;
	if (part.rtt_ns > sum->rtt_ns)
		sum->rtt_ns = part.rtt_ns;
}

void tally_stats_read_sized(const struct tally *t, size_t size, struct tally_stats *ret)
{
	struct tally *mine = (struct tally *)t; /* the lock is no part of what a caller sees */
	bool forked = progress_is_forked(t); /* nobody else is here, and the lock may be held */
	struct tally_stats stats = { 0 };

	if (!forked)
		progress_enter(mine);
	for (struct shard *s = mine->shard; s < mine->shard + t->shards.count; s++) {
		if (!forked)
			pump_enter(s->pump);
		add_stats(&stats, s);
		if (!forked)
			pump_leave(s->pump);
	}
	if (!forked)
		progress_leave(mine);
	sized_give(ret, size, &stats, sizeof(stats));
}

#define TEXT(number) #number
#define VERSION(major, minor, patch) TEXT(major) "." TEXT(minor) "." TEXT(patch)

const char *tally_version(void)
{
	return VERSION(TALLY_VERSION_MAJOR, TALLY_VERSION_MINOR, TALLY_VERSION_PATCH);
}
