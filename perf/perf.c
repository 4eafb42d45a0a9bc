// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: then perf_options.c, perf_data.c and perf_print.c.
 *
 * tally-perf: how fast are collectives, and are they right? In the manner of nccl-tests: run it
 * once for each rank of a job, with the same options; it sweeps buffer sizes, times every
 * call, and compares every result with what it works out itself. With --seconds it does so for
 * as long as that, so that one can see what a node's restart costs.
 *
 * With checks each call has new data and begins at a barrier, so that nobody is timed waiting
 * for others that are still comparing. With --no-check calls follow each other directly.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/tally.h>

#include "common/clock.h"
#include "common/file.h"
#include "perf_data.h"
#include "perf_options.h"
#include "perf_print.h"

enum {
	JUNK = 0xa5, /* what no result should be left with */
	UNFILLED_MAX = 8, /* calls in place on the sums of those before: floats would be infinite */
};

struct run {
	struct perf_options options;
	struct perf_printer printer;
	struct tally *tally;
	unsigned int workers;
	void *in, *out; /* room for --end bytes, and an element a rank */
	void *kept; /* the same, with --feedback; else NULL */
	uint64_t *time_ns; /* of each call of this size; then sorted */
	uint32_t calls, calls_max; /* in time_ns, and how many it has room for */
	bool all_right;
};

/* --- the verbs: who has how much, what is called, what has to come out */

static bool has_parts(const struct run *run)
{
	return run->options.verb == PERF_REDUCE_SCATTER || run->options.verb == PERF_ALL_GATHER;
}

/* As nccl-tests defines it: what each link of an ideal ring carries, by the buffer. */
static double bus_factor(const struct run *run)
{
	double n = run->workers;

	if (run->options.verb == PERF_ALLREDUCE)
		return 2 * (n - 1) / n;
	return has_parts(run) ? (n - 1) / n : 1;
}

static size_t in_count(const struct run *run, const struct perf_row *row)
{
	if (run->options.verb == PERF_BROADCAST)
		return 0; /* its one buffer is `out` */
	return run->options.verb == PERF_REDUCE_SCATTER ? row->count * run->workers : row->count;
}

static size_t out_count(const struct run *run, const struct perf_row *row)
{
	if (run->options.verb == PERF_REDUCE && run->options.rank != run->options.root)
		return 0;
	return run->options.verb == PERF_ALL_GATHER ? row->count * run->workers : row->count;
}

/* What a call works on; in place, one is all of the other, or this rank's part of it. */
struct buffers {
	void *in, *out;
};

static struct buffers buffers_of(const struct run *run, const struct perf_row *row)
{
	size_t part = run->options.rank * row->count * perf_element_bytes(run->options.data.dtype);
	struct buffers b = { run->in, run->out };

	if (!row->in_place)
		return b;
	if (run->options.verb == PERF_REDUCE_SCATTER)
		b.out = (uint8_t *)run->in + part;
	else if (run->options.verb == PERF_ALL_GATHER)
		b.in = (uint8_t *)run->out + part;
	else
		b.in = run->out;
	return b;
}

static int call_with_feedback(struct run *run, const struct perf_row *row)
{
	static const enum tally_verb verbs[] = {
		[PERF_ALLREDUCE] = TALLY_ALLREDUCE,
		[PERF_REDUCE] = TALLY_REDUCE,
		[PERF_REDUCE_SCATTER] = TALLY_REDUCE_SCATTER,
	};
	const struct buffers b = buffers_of(run, row);
	const struct perf_options *o = &run->options;
	const struct tally_reduction reduction = {
		.verb = verbs[o->verb],
		.dtype = perf_dtype(&o->data),
		.op = o->op,
		.root = o->verb == PERF_REDUCE ? o->root : 0,
		.in = b.in,
		.out = b.out,
		.count = row->count,
		.kept = run->kept,
		.lost = run->kept,
	};
	struct tally_call *started;
	int r = tally_reduction_start(run->tally, &reduction, &started);

	return r < 0 ? r : tally_wait(started);
}

static int call(struct run *run, const struct perf_row *row)
{
	const struct buffers b = buffers_of(run, row);
	const struct perf_options *o = &run->options;

	if (o->data.feedback)
		return call_with_feedback(run, row);
	switch (o->verb) {
	case PERF_ALLREDUCE:
		return tally_allreduce(run->tally, b.in, b.out, row->count, perf_dtype(&o->data),
				       o->op);
	case PERF_REDUCE:
		return tally_reduce(run->tally, b.in, b.out, row->count, perf_dtype(&o->data),
				    o->op, o->root);
	case PERF_BROADCAST:
		return tally_broadcast(run->tally, b.out, row->count, perf_dtype(&o->data),
				       o->root);
	case PERF_REDUCE_SCATTER:
		return tally_reduce_scatter(run->tally, b.in, b.out, row->count,
					    perf_dtype(&o->data), o->op);
	case PERF_ALL_GATHER:
		return tally_all_gather(run->tally, b.in, b.out, row->count, perf_dtype(&o->data));
	default:
		return tally_barrier(run->tally);
	}
}

static size_t out_bytes(const struct run *run, const struct perf_row *row)
{
	return out_count(run, row) * perf_element_bytes(run->options.data.dtype);
}

static void fill(struct run *run, const struct perf_row *row, uint32_t iteration)
{
	const struct perf_options *o = &run->options;
	const struct buffers b = buffers_of(run, row);

	run->options.data.iteration = iteration;
	memset(b.out, JUNK, out_bytes(run, row));
	perf_fill(&o->data, o->rank, 0, in_count(run, row), b.in);
	if (o->verb == PERF_BROADCAST && o->rank == o->root)
		perf_fill(&o->data, o->rank, 0, row->count, b.out);
}

/* What fill() and a call have made of the buffers. */
static void check(struct run *run, struct perf_row *row)
{
	const struct perf_options *o = &run->options;
	size_t before = row->verdict.wrong, first = 0;
	const void *out = buffers_of(run, row).out;

	if (o->verb == PERF_BROADCAST) {
		perf_check_copied(&o->data, o->root, row->count, 0, out, &row->verdict);
	} else if (o->verb == PERF_ALL_GATHER) {
		for (unsigned int rank = 0; rank < run->workers; rank++)
			perf_check_copied(&o->data, rank, row->count, rank * row->count, out,
					  &row->verdict);
	} else {
		if (o->verb == PERF_REDUCE_SCATTER)
			first = o->rank * row->count;
		perf_check_reduced(&o->data, run->workers, o->op, first, out_count(run, row), out,
				   &row->verdict);
	}
	if (!before && row->verdict.wrong)
		row->wrong_iteration = o->data.iteration;
}

/* --- one size */

static void must(const struct run *run, const struct perf_row *row, int r)
{
	if (r < 0)
		errx(EXIT_FAILURE, "rank %u: %s of %zu bytes: %s", run->options.rank,
		     perf_verb_names[run->options.verb], row->bytes, tally_error());
}

/* What this process has used of processors, in all of its threads. */
static double cpu_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns how long the call took. */
static uint64_t iterate(struct run *run, struct perf_row *row, uint32_t iteration)
{
	bool compares = !run->options.unchecked && run->options.verb != PERF_BARRIER;
	uint64_t start, end;
	double cpu_s;

	if (compares || (row->in_place && iteration % UNFILLED_MAX == 0))
		fill(run, row, iteration);
	if (compares)
		must(run, row, tally_barrier(run->tally));
	cpu_s = cpu_now_s();
	start = clock_now_ns();
	must(run, row, call(run, row));
	end = clock_now_ns();
	row->cpu_s += cpu_now_s() - cpu_s;

	if (compares)
		check(run, row);
	if (run->options.hash)
		row->hash = perf_hash(row->hash, buffers_of(run, row).out, out_bytes(run, row));
	return end - start;
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void *allocate(void *old, size_t bytes)
{
	void *p = realloc(old, bytes);

	if (!p)
		errx(EXIT_FAILURE, "no memory for %zu bytes", bytes);
	return p;
}

/* A round: --iterations calls. */
static void round_time(struct run *run, struct perf_row *row)
{
	uint32_t calls = run->calls + run->options.iterations;

	if (calls > run->calls_max) {
		run->calls_max = calls < PERF_CALLS_MAX / 2 ? 2 * calls : PERF_CALLS_MAX;
		run->time_ns = allocate(run->time_ns, run->calls_max * sizeof(*run->time_ns));
	}
	for (; run->calls < calls; run->calls++)
		run->time_ns[run->calls] = iterate(run, row, run->options.warmups + run->calls);
}

/* Another round? All ranks must make the same calls, so it is rank 0's clock that counts. */
static bool goes_on(struct run *run, const struct perf_row *row, uint64_t end_ns)
{
	int32_t more = clock_now_ns() < end_ns &&
		       run->calls + run->options.iterations <= PERF_CALLS_MAX;

	if (!run->options.seconds)
		return false;
	must(run, row, tally_broadcast(run->tally, &more, 1, TALLY_INT32, 0));
	return more;
}

/* Seconds since 1970: what ranks of several machines and jobs can be put in order by. */
static double wall_clock_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The smallest time that at least this part of all times do not exceed, in microseconds. */
static double quantile(const struct run *run, double part)
{
	size_t index = (size_t)(part * run->calls);

	if (index >= run->calls)
		index = run->calls - 1;
	return (double)run->time_ns[index] / 1e3;
}

static void times_tell(struct run *run, struct perf_row *row)
{
	qsort(run->time_ns, run->calls, sizeof(*run->time_ns), compare_times);
	row->calls = run->calls;
	row->min_us = quantile(run, 0);
	row->p50_us = quantile(run, 0.5);
	row->p99_us = quantile(run, 0.99);
	row->max_us = quantile(run, 1);
	while (row->slow_calls < run->calls &&
	       (double)run->time_ns[run->calls - 1 - row->slow_calls] / 1e3 > 2 * row->p50_us)
		row->slow_calls++;
}

static void measure(struct run *run, struct perf_row *row)
{
	uint64_t end_ns;

	fill(run, row, 0);
	if (run->kept)
		memset(run->kept, 0, in_count(run, row) * sizeof(float));
	must(run, row, tally_barrier(run->tally));
	for (uint32_t i = 0; i < run->options.warmups; i++)
		iterate(run, row, i);
	tally_stats_read(run->tally, &row->before);
	row->cpu_s = 0;
	row->began_s = wall_clock_s();
	end_ns = clock_now_ns() + run->options.seconds * UINT64_C(1000000000);
	run->calls = 0;
	do {
		round_time(run, row);
	} while (goes_on(run, row, end_ns));
	row->ended_s = wall_clock_s();
	tally_stats_read(run->tally, &row->after);
	times_tell(run, row);
}

static struct perf_row row_of(const struct run *run, size_t bytes)
{
	size_t element = perf_element_bytes(run->options.data.dtype);
	size_t parts = has_parts(run) ? run->workers : 1;
	struct perf_row row = { .hash = PERF_HASH_EMPTY, .bus_factor = bus_factor(run) };

	if (run->options.verb == PERF_BARRIER)
		return row;
	row.count = bytes / element / parts;
	if (!row.count)
		row.count = 1;
	row.bytes = row.count * element * parts;
	return row;
}

static void complain(struct run *run, const struct perf_row *row)
{
	if (!row->verdict.wrong)
		return;
	run->all_right = false;
	warnx("rank %u: %s of %zu bytes: %zu wrong elements; the first is element %zu of iteration "
	      "%u: it %s",
	      run->options.rank, perf_verb_names[run->options.verb], row->bytes, row->verdict.wrong,
	      row->verdict.first, row->wrong_iteration, row->verdict.text);
}

static void sweep(struct run *run)
{
	const struct perf_options *o = &run->options;

	for (size_t bytes = o->begin; bytes <= o->end; bytes *= o->factor) {
		struct perf_row row = row_of(run, bytes), in_place = row;

		in_place.in_place = true;
		measure(run, &row);
		if (o->in_place)
			measure(run, &in_place);
		perf_print_size(&run->printer, &row, o->in_place ? &in_place : NULL);
		complain(run, &row);
		complain(run, &in_place);
		if (o->verb == PERF_BARRIER)
			return;
	}
}

static void *buffer(const struct run *run)
{
	size_t bytes = run->options.end + run->workers * sizeof(uint64_t);

	return memset(allocate(NULL, bytes), 0, bytes);
}

int main(int argc, char **argv)
{
	struct run run = { .all_right = true };

	file_watch_output();
	setvbuf(stdout, NULL, _IOLBF, 0);
	perf_options_read(argc, argv, &run.options);
	run.tally = perf_job_open(&run.options);
	run.workers = tally_workers(run.tally);
	run.in = buffer(&run);
	run.out = buffer(&run);
	if (run.options.data.feedback)
		run.kept = buffer(&run);

	run.printer = (struct perf_printer){ .options = &run.options, .workers = run.workers };

	perf_print_head(&run.printer);
	sweep(&run);
	perf_print_tail(&run.printer);

	if (tally_close(run.tally) < 0)
		errx(EXIT_FAILURE, "rank %u: %s", run.options.rank, tally_error());
	free(run.in);
	free(run.out);
	free(run.kept);
	free(run.time_ns);
	return run.all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
