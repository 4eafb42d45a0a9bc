// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: then perf_options.c and perf_data.c.
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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/tally.h>

#include "common/clock.h"
#include "common/file.h"
#include "perf_data.h"
#include "perf_options.h"

enum {
	JUNK = 0xa5
}; /* what no result should be left with */

struct run {
	struct perf_options options;
	struct tally *tally;
	unsigned int workers;
	void *in, *out; /* room for --end bytes, and an element a rank */
	void *kept; /* the same, with --feedback; else NULL */
	uint64_t *time_ns; /* of each call of this size; then sorted */
	uint32_t calls, calls_max; /* in time_ns, and how many it has room for */
	bool all_right;
};

/* One size. */
struct row {
	size_t count; /* elements as the call takes it; of one rank where buffers have parts */
	size_t bytes; /* of the whole buffer */
	struct perf_verdict verdict;
	uint32_t wrong_iteration; /* of the verdict's first */
	uint64_t hash;
	struct tally_stats before, after;
	double began_s, ended_s; /* the timed calls, in seconds since 1970 */
};

/* --- the verbs: who has how much, what is called, what has to come out */

static bool has_parts(const struct run *run)
{
	return run->options.verb == PERF_REDUCE_SCATTER || run->options.verb == PERF_ALL_GATHER;
}

static bool is_copy(const struct run *run)
{
	return run->options.verb == PERF_BROADCAST || run->options.verb == PERF_ALL_GATHER;
}

/* As nccl-tests defines it: what each link of an ideal ring carries, by the buffer. */
static double bus_factor(const struct run *run)
{
	double n = run->workers;

	if (run->options.verb == PERF_ALLREDUCE)
		return 2 * (n - 1) / n;
	return has_parts(run) ? (n - 1) / n : 1;
}

static size_t in_count(const struct run *run, const struct row *row)
{
	if (run->options.verb == PERF_BROADCAST)
		return 0; /* its one buffer is `out` */
	return run->options.verb == PERF_REDUCE_SCATTER ? row->count * run->workers : row->count;
}

static size_t out_count(const struct run *run, const struct row *row)
{
	if (run->options.verb == PERF_REDUCE && run->options.rank != run->options.root)
		return 0;
	return run->options.verb == PERF_ALL_GATHER ? row->count * run->workers : row->count;
}

static int call_with_feedback(struct run *run, const struct row *row)
{
	static const enum tally_verb verbs[] = {
		[PERF_ALLREDUCE] = TALLY_ALLREDUCE,
		[PERF_REDUCE] = TALLY_REDUCE,
		[PERF_REDUCE_SCATTER] = TALLY_REDUCE_SCATTER,
	};
	const struct perf_options *o = &run->options;
	const struct tally_reduction reduction = {
		.verb = verbs[o->verb],
		.dtype = perf_dtype(&o->data),
		.op = o->op,
		.root = o->verb == PERF_REDUCE ? o->root : 0,
		.in = run->in,
		.out = run->out,
		.count = row->count,
		.kept = run->kept,
		.lost = run->kept,
	};
	struct tally_call *started;
	int r = tally_reduction_start(run->tally, &reduction, &started);

	return r < 0 ? r : tally_wait(started);
}

static int call(struct run *run, const struct row *row)
{
	const struct perf_options *o = &run->options;

	if (o->data.feedback)
		return call_with_feedback(run, row);
	switch (o->verb) {
	case PERF_ALLREDUCE:
		return tally_allreduce(run->tally, run->in, run->out, row->count,
				       perf_dtype(&o->data), o->op);
	case PERF_REDUCE:
		return tally_reduce(run->tally, run->in, run->out, row->count, perf_dtype(&o->data),
				    o->op, o->root);
	case PERF_BROADCAST:
		return tally_broadcast(run->tally, run->out, row->count, perf_dtype(&o->data),
				       o->root);
	case PERF_REDUCE_SCATTER:
		return tally_reduce_scatter(run->tally, run->in, run->out, row->count,
					    perf_dtype(&o->data), o->op);
	case PERF_ALL_GATHER:
		return tally_all_gather(run->tally, run->in, run->out, row->count,
					perf_dtype(&o->data));
	default:
		return tally_barrier(run->tally);
	}
}

static size_t out_bytes(const struct run *run, const struct row *row)
{
	return out_count(run, row) * perf_element_bytes(run->options.data.dtype);
}

static void fill(struct run *run, const struct row *row, uint32_t iteration)
{
	const struct perf_options *o = &run->options;

	run->options.data.iteration = iteration;
	memset(run->out, JUNK, out_bytes(run, row));
	perf_fill(&o->data, o->rank, 0, in_count(run, row), run->in);
	if (o->verb == PERF_BROADCAST && o->rank == o->root)
		perf_fill(&o->data, o->rank, 0, row->count, run->out);
}

/* What fill() and a call have made of the buffers. */
static void check(struct run *run, struct row *row)
{
	const struct perf_options *o = &run->options;
	size_t before = row->verdict.wrong, first = 0;

	if (o->verb == PERF_BROADCAST) {
		perf_check_copied(&o->data, o->root, row->count, 0, run->out, &row->verdict);
	} else if (o->verb == PERF_ALL_GATHER) {
		for (unsigned int rank = 0; rank < run->workers; rank++)
			perf_check_copied(&o->data, rank, row->count, rank * row->count, run->out,
					  &row->verdict);
	} else {
		if (o->verb == PERF_REDUCE_SCATTER)
			first = o->rank * row->count;
		perf_check_reduced(&o->data, run->workers, o->op, first, out_count(run, row),
				   run->out, &row->verdict);
	}
	if (!before && row->verdict.wrong)
		row->wrong_iteration = o->data.iteration;
}

/* --- one size */

static void must(const struct run *run, const struct row *row, int r)
{
	if (r < 0)
		errx(EXIT_FAILURE, "rank %u: %s of %zu bytes: %s", run->options.rank,
		     perf_verb_names[run->options.verb], row->bytes, tally_error());
}

/* Returns how long the call took. */
static uint64_t iterate(struct run *run, struct row *row, uint32_t iteration)
{
	bool compares = !run->options.unchecked && run->options.verb != PERF_BARRIER;
	uint64_t start, end;

	if (compares) {
		fill(run, row, iteration);
		must(run, row, tally_barrier(run->tally));
	}
	start = clock_now_ns();
	must(run, row, call(run, row));
	end = clock_now_ns();

	if (compares)
		check(run, row);
	if (run->options.hash)
		row->hash = perf_hash(row->hash, run->out, out_bytes(run, row));
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
static void round_time(struct run *run, struct row *row)
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
static bool goes_on(struct run *run, const struct row *row, uint64_t end_ns)
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

static void measure(struct run *run, struct row *row)
{
	uint64_t end_ns;

	fill(run, row, 0);
	if (run->kept)
		memset(run->kept, 0, in_count(run, row) * sizeof(float));
	must(run, row, tally_barrier(run->tally));
	for (uint32_t i = 0; i < run->options.warmups; i++)
		iterate(run, row, i);
	tally_stats_read(run->tally, &row->before);
	row->began_s = wall_clock_s();
	end_ns = clock_now_ns() + run->options.seconds * UINT64_C(1000000000);
	run->calls = 0;
	do {
		round_time(run, row);
	} while (goes_on(run, row, end_ns));
	row->ended_s = wall_clock_s();
	tally_stats_read(run->tally, &row->after);
	qsort(run->time_ns, run->calls, sizeof(*run->time_ns), compare_times);
}

static struct row row_of(const struct run *run, size_t bytes)
{
	size_t element = perf_element_bytes(run->options.data.dtype);
	size_t parts = has_parts(run) ? run->workers : 1;
	struct row row = { .hash = PERF_HASH_EMPTY };

	if (run->options.verb == PERF_BARRIER)
		return row;
	row.count = bytes / element / parts;
	if (!row.count)
		row.count = 1;
	row.bytes = row.count * element * parts;
	return row;
}

/* --- what is printed */

/* The smallest time that at least this part of all times do not exceed, in microseconds. */
static double quantile(const struct run *run, double part)
{
	size_t index = (size_t)(part * run->calls);

	if (index >= run->calls)
		index = run->calls - 1;
	return (double)run->time_ns[index] / 1e3;
}

static const char *type_name(const struct run *run)
{
	return run->options.verb == PERF_BARRIER ? "none"
						 : perf_type_names[run->options.data.dtype - 1];
}

static const char *op_name(const struct run *run)
{
	if (is_copy(run) || run->options.verb == PERF_BARRIER)
		return "none";
	return perf_op_names[run->options.op - 1];
}

static bool prints_table(const struct run *run)
{
	return !run->options.json && (!run->options.rank || run->options.all_ranks);
}

static void print_head(const struct run *run)
{
	char length[64];

	if (run->options.json)
		return;
	if (!prints_table(run)) {
		printf("# rank %u of %u; rank 0 prints the table (all do with --all-ranks)\n",
		       run->options.rank, run->workers);
		return;
	}
	snprintf(length, sizeof(length), run->options.seconds ? "%u seconds" : "%u iterations",
		 run->options.seconds ? run->options.seconds : run->options.iterations);
	printf("# %s over %u workers, %s after %u%s; GB are 10^9 bytes, time is the median\n",
	       perf_verb_names[run->options.verb], run->workers, length, run->options.warmups,
	       run->options.unchecked ? ", unchecked" : "");
	printf("#%11s %10s %8s %5s %11s %11s %11s %9s %9s %8s %8s %8s %8s %8s%s%s\n", "bytes",
	       "count", "type", "op", "time us", "p99 us", "max us", "algbw", "busbw", "retrans",
	       "flush", "repair", "corrupt", "wrong", run->options.seconds ? "     calls" : "",
	       run->options.hash ? "  hash" : "");
}

static void print_row(const struct run *run, const struct row *row)
{
	double gbytes = (double)row->bytes / quantile(run, 0.5) / 1e3;
	const struct tally_stats *a = &row->after, *b = &row->before;

	printf("%12zu %10zu %8s %5s %11.1f %11.1f %11.1f %9.4f %9.4f", row->bytes, row->count,
	       type_name(run), op_name(run), quantile(run, 0.5), quantile(run, 0.99),
	       quantile(run, 1), gbytes, gbytes * bus_factor(run));
	printf(" %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " ",
	       a->retransmitted - b->retransmitted, a->flushed - b->flushed,
	       a->repaired - b->repaired, a->corrupt - b->corrupt);
	if (!run->options.unchecked)
		printf("%8zu", row->verdict.wrong);
	else
		printf("%8s", "-");
	if (run->options.seconds)
		printf(" %9u", run->calls);
	if (run->options.hash)
		printf("  %016" PRIx64, row->hash);
	putchar('\n');
	if (a->spilled != b->spilled)
		printf("# %" PRIu64 " of %" PRIu64 " chunks were summed in software\n",
		       a->spilled - b->spilled, a->chunks - b->chunks);
}

static void print_json(const struct run *run, const struct row *row)
{
	double gbytes = (double)row->bytes / quantile(run, 0.5) / 1e3;
	const struct tally_stats *a = &row->after, *b = &row->before;

	printf("{\"verb\":\"%s\",\"rank\":%u,\"workers\":%u,\"bytes\":%zu,\"count\":%zu,"
	       "\"type\":\"%s\",\"op\":\"%s\",\"iterations\":%u,",
	       perf_verb_names[run->options.verb], run->options.rank, run->workers, row->bytes,
	       row->count, type_name(run), op_name(run), run->calls);
	printf("\"time_us\":%.3f,\"min_us\":%.3f,\"p50_us\":%.3f,\"p99_us\":%.3f,\"max_us\":%.3f,"
	       "\"algbw\":%.6f,\"busbw\":%.6f,",
	       quantile(run, 0.5), quantile(run, 0), quantile(run, 0.5), quantile(run, 0.99),
	       quantile(run, 1), gbytes, gbytes * bus_factor(run));
	printf("\"began_s\":%.6f,\"ended_s\":%.6f,", row->began_s, row->ended_s);
	printf("\"sent\":%" PRIu64 ",\"received\":%" PRIu64 ",\"retransmitted\":%" PRIu64
	       ",\"flushed\":%" PRIu64 ",\"repaired\":%" PRIu64 ",\"redone\":%" PRIu64
	       ",\"corrupt\":%" PRIu64 ",\"ignored\":%" PRIu64 ",\"chunks\":%" PRIu64
	       ",\"spilled\":%" PRIu64 ",\"node_reloads\":%" PRIu64 ",\"rtt_ns\":%" PRIu64,
	       a->sent - b->sent, a->received - b->received, a->retransmitted - b->retransmitted,
	       a->flushed - b->flushed, a->repaired - b->repaired, a->redone - b->redone,
	       a->corrupt - b->corrupt, a->ignored - b->ignored, a->chunks - b->chunks,
	       a->spilled - b->spilled, a->node_reloads - b->node_reloads, a->rtt_ns);
	if (!run->options.unchecked)
		printf(",\"wrong\":%zu", row->verdict.wrong);
	if (run->options.hash)
		printf(",\"hash\":\"%016" PRIx64 "\"", row->hash);
	puts("}");
}

static void report(struct run *run, const struct row *row)
{
	if (run->options.json)
		print_json(run, row);
	else if (prints_table(run))
		print_row(run, row);
	else if (run->options.hash)
		printf("rank %u  %zu bytes  %016" PRIx64 "\n", run->options.rank, row->bytes,
		       row->hash);
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
		struct row row = row_of(run, bytes);

		measure(run, &row);
		report(run, &row);
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

	print_head(&run);
	sweep(&run);

	if (tally_close(run.tally) < 0)
		errx(EXIT_FAILURE, "rank %u: %s", run.options.rank, tally_error());
	free(run.in);
	free(run.out);
	free(run.kept);
	free(run.time_ns);
	return run.all_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
