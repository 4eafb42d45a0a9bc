/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Collectives that all ranks of a job call in a world (engine_world.h), and what they must be:
 * sums computed the plain way. Nothing here fails a test either: calls_run() says what is wrong.
 */
#ifndef TALLY_TESTS_UNIT_ENGINE_CALLS_H
#define TALLY_TESTS_UNIT_ENGINE_CALLS_H

#include <math.h>

#include "client/error.h"
#include "tests/unit/engine_world.h"
#include "tests/unit/floats.h"

enum {
	CALLS_MAX = 18, /* of a program: six collectives of three types */
	CALLS_STEPS_MAX = 100000, /* for each rank */
};

struct collective {
	enum call_verb verb;
	enum tally_dtype dtype;
	enum tally_op op; /* averages: only of float32 */
	size_t count;
	uint16_t root;
	bool in_place; /* allreduce and reduce only */
	bool wild; /* float32 of all magnitudes, with NaNs and infinities */
};

/* What the ranks of a job call, one after the other, and how far each one is. */
struct program {
	struct world *world;
	int job, calls;
	bool ahead; /* all calls are started at once */
	uint32_t late; /* of a thousand calls: the rank comes up to late_ns late */
	uint64_t late_ns;
	struct collective call[CALLS_MAX];
	struct {
		int started, over;
		bool paused; /* before the next one */
		struct engine_call *call[CALLS_MAX];
		void *in[CALLS_MAX], *out[CALLS_MAX];
	} rank[WORLD_RANKS];
};

/* --- numbers */

static inline size_t element_bytes(const struct collective *c)
{
	return c->dtype == TALLY_INT64 ? 8 : 4;
}

static inline bool is_parted(const struct collective *c)
{
	return c->verb == CALL_REDUCE_SCATTER || c->verb == CALL_ALL_GATHER;
}

/* Of a buffer that is large enough for either side of any collective. */
static inline size_t buffer_bytes(const struct collective *c, int ranks)
{
	return (c->count * (is_parted(c) ? ranks : 1) + 1) * element_bytes(c);
}

/* A rank's values: integers of all sizes; for floats magnitudes that vary. */
static inline void input_make(uint64_t *random, const struct collective *c, void *in, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t r = random_next(random);

		if (c->dtype == TALLY_INT32)
			((int32_t *)in)[i] = r;
		else if (c->dtype == TALLY_INT64)
			((int64_t *)in)[i] = (int64_t)((uint64_t)r * r * (r & 1 ? 1 : -1));
		else
			((float *)in)[i] = ldexpf((int32_t)r, c->wild ? -31 + (int)(r % 60) : -31);
		if (c->dtype == TALLY_FLOAT32 && c->wild && r % 97 == 0)
			((float *)in)[i] = r & 128 ? INFINITY : r & 256 ? -INFINITY : NAN;
	}
}

/* The largest finite magnitude among all ranks in `count` elements from `at` on. */
static inline double largest(const struct program *p, int call, int ranks, size_t at, size_t count)
{
	double max = 0;

	for (int rank = 0; rank < ranks; rank++) {
		const float *in = p->rank[rank].in[call];

		for (size_t i = at; i < at + count; i++)
			if (isfinite(in[i]))
				max = fmax(max, fabs((double)in[i]));
	}
	return max;
}

static inline bool float_is_right(double exact, double max, int ranks, int divisor, float got)
{
	int log2 = 0;
	double bound;

	while (1 << log2 < ranks)
		log2++;
	if (isnan(exact))
		return bits_of(got) == 0x7fc00000;
	if (isinf(exact))
		return got == exact;
	/* A step of the scale is 16, so units are at most 16 * max / 2^(30 - log2). */
	bound = ranks * 16 * max / (1 << (30 - log2)) + fabs(exact) * 0x1p-23;
	return fabs(got - exact / divisor) <= bound / divisor + 0x1p-149;
}

/* Is element `out_at` of `out` the sum of element `at` of all ranks? */
static inline bool sum_is_right(const struct program *p, int call, size_t at, double max,
				const void *out, size_t out_at)
{
	const struct collective *c = &p->call[call];
	int ranks = p->world->options.ranks;
	uint64_t sum = 0;
	double exact = 0;

	for (int rank = 0; rank < ranks; rank++) {
		const void *in = p->rank[rank].in[call];

		if (c->dtype == TALLY_INT32)
			sum += ((const int32_t *)in)[at];
		else if (c->dtype == TALLY_INT64)
			sum += ((const uint64_t *)in)[at];
		else
			exact += (double)((const float *)in)[at];
	}
	if (c->dtype == TALLY_INT32)
		return ((const uint32_t *)out)[out_at] == (uint32_t)sum;
	if (c->dtype == TALLY_INT64)
		return ((const uint64_t *)out)[out_at] == sum;
	return float_is_right(exact, max, ranks, c->op == TALLY_AVG ? ranks : 1,
			      ((const float *)out)[out_at]);
}

/* Has the rank what it must have of element `i`, which is number `at` of its part? */
static inline bool element_is_right(const struct program *p, int call, int rank, size_t i,
				    double max)
{
	const struct collective *c = &p->call[call];
	const uint8_t *out = p->rank[rank].out[call];
	size_t bytes = element_bytes(c), part = i / c->count, at = i % c->count;
	const uint8_t *from;

	switch (c->verb) {
	case CALL_ALLREDUCE:
		if (rank)
			return !memcmp(out + i * bytes, (uint8_t *)p->rank[0].out[call] + i * bytes,
				       bytes);
		return sum_is_right(p, call, i, max, out, i);
	case CALL_REDUCE:
		return rank != c->root || sum_is_right(p, call, i, max, out, i);
	case CALL_REDUCE_SCATTER:
		return rank != (int)part || sum_is_right(p, call, i, max, out, at);
	case CALL_BROADCAST:
		from = p->rank[c->root].in[call];
		return !memcmp(out + i * bytes, from + i * bytes, bytes);
	case CALL_ALL_GATHER:
		from = p->rank[part].in[call];
		return !memcmp(out + i * bytes, from + at * bytes, bytes);
	default:
		return true; /* a barrier */
	}
}

static inline bool call_is_right(const struct program *p, int call)
{
	const struct collective *c = &p->call[call];
	int ranks = p->world->options.ranks;
	size_t total = c->count * (is_parted(c) ? ranks : 1), per_chunk = WORLD_PAYLOAD / 4;
	bool has_bound = c->dtype == TALLY_FLOAT32 && c->verb != CALL_ALL_GATHER &&
			 c->verb != CALL_BROADCAST;
	double max = 0;

	for (size_t i = 0; i < total; i++) {
		size_t at = i % c->count, left = c->count - at;

		if (has_bound && at % per_chunk == 0)
			max = largest(p, call, ranks, i, left < per_chunk ? left : per_chunk);
		for (int rank = 0; rank < ranks; rank++)
			if (!element_is_right(p, call, rank, i, max))
				return false;
	}
	return true;
}

/* --- ranks */

static inline struct world_worker *program_worker(const struct program *p, int rank)
{
	return &p->world->worker[p->job * p->world->options.ranks + rank];
}

static inline void rank_start(struct program *p, int rank)
{
	int n = p->rank[rank].started++, ranks = p->world->options.ranks;
	const struct collective *c = &p->call[n];
	size_t bytes = buffer_bytes(c, ranks);
	void *in = calloc(1, bytes), *out = calloc(1, bytes);
	bool in_out = c->in_place || c->verb == CALL_BROADCAST;
	struct call_options options = { .verb = c->verb,
					.dtype = c->dtype,
					.op = c->op,
					.root = c->root,
					.count = c->count,
					.in = in_out ? out : in,
					.out = out };

	input_make(&p->world->random, c, in,
		   c->count * (c->verb == CALL_REDUCE_SCATTER ? ranks : 1));
	if (in_out)
		memcpy(out, in, bytes);
	p->rank[rank].in[n] = in;
	p->rank[rank].out[n] = out;
	if (engine_start(program_worker(p, rank)->engine, &options, p->world->now_ns,
			 &p->rank[rank].call[n]) < 0)
		p->world->wrong = "STUCK: a call could not be started";
}

/* Takes what is over, and starts what the rank calls next, at times after a pause. */
static inline void rank_go_on(struct program *p, int rank)
{
	struct world *w = p->world;
	struct world_worker *worker = program_worker(p, rank);

	if (worker->asleep_ns > w->now_ns)
		return;
	while (p->rank[rank].over < p->rank[rank].started &&
	       engine_is_over(p->rank[rank].call[p->rank[rank].over]))
		if (engine_collect(p->rank[rank].call[p->rank[rank].over++], NULL) < 0) {
			w->wrong = "STUCK: a call has failed";
			if (getenv("TALLY_SEED"))
				print_message("%.6f s, job %d, rank %d: %s\n", w->now_ns / 1e9,
					      p->job, rank, tally_error());
		}
	while (!w->wrong && p->rank[rank].started < p->calls &&
	       (p->ahead || p->rank[rank].started == p->rank[rank].over)) {
		if (!p->rank[rank].paused && chance(&w->random, p->late)) {
			p->rank[rank].paused = true;
			world_sleep(w, worker - w->worker,
				    random_below(&w->random, p->late_ns) + 1);
			return;
		}
		p->rank[rank].paused = false;
		rank_start(p, rank);
		worker->due_ns = w->now_ns; /* it has something to send */
	}
}

static inline bool program_is_over(const struct program *p)
{
	for (int rank = 0; rank < p->world->options.ranks; rank++)
		if (p->rank[rank].over < p->calls)
			return false;
	return true;
}

static inline void program_free(struct program *p)
{
	for (int rank = 0; rank < p->world->options.ranks; rank++)
		for (int n = 0; n < p->rank[rank].started; n++) {
			free(p->rank[rank].in[n]);
			free(p->rank[rank].out[n]);
		}
}

/* A collective of any kind. Its root, if it has one, is any of the ranks. */
static inline struct collective collective_random(uint64_t *random, int ranks, uint32_t elements)
{
	struct collective c = { .verb = CALL_ALLREDUCE + random_below(random, CALL_BARRIER),
				.dtype = TALLY_INT32 + random_below(random, 3),
				.op = TALLY_SUM,
				.root = random_below(random, ranks),
				.wild = chance(random, 300) };

	c.in_place = c.verb < CALL_BROADCAST && chance(random, 300);
	c.op = c.dtype == TALLY_FLOAT32 && c.verb < CALL_BROADCAST && chance(random, 300)
		       ? TALLY_AVG
		       : TALLY_SUM;
	c.count = c.verb == CALL_BARRIER
			  ? 0
			  : random_below(random, elements / (is_parted(&c) ? ranks : 1) + 1);
	return c;
}

/*
 * Runs a program for each job of the world to its end, and `happen` (may be NULL) before each step.
 * NULL: every rank has every result, and every result is right. Otherwise what is wrong.
 */
static inline const char *calls_run(struct world *w, struct program *program,
				    void (*happen)(struct world *w))
{
	const int jobs = w->options.jobs < WORLD_JOBS ? w->options.jobs : WORLD_JOBS;
	uint64_t steps = 0;
	bool over = false;

	for (int i = 0; i < w->workers; i++)
		rank_go_on(&program[w->worker[i].job], w->worker[i].rank);
	while (!over && !w->wrong) {
		over = true;
		for (int job = 0; job < jobs; job++)
			over &= program_is_over(&program[job]);
		if (over)
			break;
		if (steps++ == (uint64_t)w->workers * CALLS_STEPS_MAX)
			w->wrong = "STUCK: too many steps";
		if (happen)
			happen(w);
		world_step(w);
		if (w->touched >= 0)
			rank_go_on(&program[w->worker[w->touched].job], w->worker[w->touched].rank);
	}
	for (int job = 0; job < jobs && !w->wrong; job++)
		for (int n = 0; n < program[job].calls && !w->wrong; n++)
			if (!call_is_right(&program[job], n))
				w->wrong = "WRONG: a result is not the sum";
	return w->wrong;
}

#endif
