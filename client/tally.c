// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The collectives: arguments are checked here; the engine does the rest. */
#include <tally/tally.h>

#include <errno.h>

#include "common/clock.h"
#include "error.h"
#include "lanes.h"
#include "progress.h"
#include "sized.h"

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
	if (!lane_of_dtype(o->dtype))
		return error_set(-EINVAL,
				 "dtype: %d is not one of TALLY_INT32, TALLY_INT64 and "
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
				 o->verb == CALL_BROADCAST ? "buffer"
				 : o->in		   ? "out"
							   : "in");
	return 0;
}

static int start(struct tally *t, enum call_verb verb, const void *in, void *out, size_t count,
		 enum tally_dtype dtype, enum tally_op op, uint16_t root, struct tally_call **ret)
{
	struct call_options options = { verb, dtype, op, root, count, in, out, 0 };
	int r = check_tally(t);

	if (r == 0)
		r = check_call(t, &options, ret);
	if (r < 0)
		return r;
	progress_enter(t);
	if (!engine_is_idle(t->engine))
		progress_turn(t); /* before more is sent, what has come is no loss */
	priority_measure(&t->meter, clock_now_ns(), engine_busy_ns(t->engine));
	options.priority = priority_of(&t->meter, &t->hints);
	r = engine_start(t->engine, &options, clock_now_ns(), ret);
	progress_output(t);
	progress_leave(t);
	return r;
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
	struct tally *t = call ? engine_owner(call) : NULL;
	int r = t ? check_tally(t) : 0;

	if (r < 0)
		return r;
	if (t) {
		progress_enter(t);
		if (!engine_is_free(call)) {
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
	r = engine_collect(call, ret);
	progress_leave(t);
	return r;
}

int tally_wait(struct tally_call *call) { return wait_call(call, NULL); }

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
	*ret_done = engine_is_over(call);
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
	engine_abort(t->engine);
	join_leave(t->join);
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

void tally_stats_read_sized(const struct tally *t, size_t size, struct tally_stats *ret)
{
	struct tally *mine = (struct tally *)t; /* the lock is no part of what a caller sees */
	bool forked = progress_is_forked(t); /* nobody else is here, and the lock may be held */
	struct tally_stats stats;

	if (!forked)
		progress_enter(mine);
	stats = engine_stats(t->engine);
	stats.sent = t->sent;
	stats.received = t->received;
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
