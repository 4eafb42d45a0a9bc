/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What programs share that time a peer's allreduce of float32 the way tally-perf times Tally's:
 * calls follow each other directly, and sums are checked in one more call, which is not timed. For
 * C and C++.
 */
#ifndef TALLY_TESTS_BENCH_PEER_H
#define TALLY_TESTS_BENCH_PEER_H

#include <err.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	PEER_CALLS_MAX = 1000 * 1000,
	PEER_LINE_BYTES = 2048,
	PEER_UNFILLED_MAX = 32, /* calls on the sums of those before: ranks make 2^92 of 2^-4 */
};

/* One size, as the command line has it. */
struct peer_size {
	size_t count;
	int warmups, calls;
};

struct peer_times {
	double us[PEER_CALLS_MAX];
	int calls;
	double cpu_s, began_s, ended_s;
	uint64_t retransmitted;
};

/* Of one rank. `fill` writes what goes in, `reduce` calls; both get `what`. */
struct peer_work {
	void (*fill)(void *what);
	void (*reduce)(void *what);
	void *what;
};

/* BYTES:WARMUPS:CALLS; ends the process if it is something else. */
static inline struct peer_size peer_size_read(const char *text)
{
	struct peer_size size;
	char *rest;

	size.count = strtoul(text, &rest, 10) / sizeof(float);
	size.warmups = *rest == ':' ? (int)strtol(rest + 1, &rest, 10) : -1;
	size.calls = *rest == ':' ? (int)strtol(rest + 1, &rest, 10) : -1;
	if (*rest || !size.count || size.count > INT32_MAX || size.warmups < 0 || size.calls < 1 ||
	    size.calls > PEER_CALLS_MAX)
		errx(EXIT_FAILURE, "%s: not BYTES:WARMUPS:CALLS", text);
	return size;
}

static inline double peer_now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Segments that TCP has sent again in this network namespace. */
static inline uint64_t peer_retransmitted(void)
{
	char names[PEER_LINE_BYTES], values[PEER_LINE_BYTES], *name_rest, *value_rest;
	FILE *f = fopen("/proc/self/net/snmp", "re");

	if (!f)
		err(EXIT_FAILURE, "/proc/self/net/snmp");
	while (fgets(names, sizeof(names), f) && fgets(values, sizeof(values), f)) {
		const char *name = strtok_r(names, " \n", &name_rest);
		const char *value = strtok_r(values, " \n", &value_rest);

		for (bool tcp = name && !strcmp(name, "Tcp:"); tcp && name && value;) {
			if (!strcmp(name, "RetransSegs")) {
				fclose(f);
				return strtoull(value, NULL, 10);
			}
			name = strtok_r(NULL, " \n", &name_rest);
			value = strtok_r(NULL, " \n", &value_rest);
		}
	}
	errx(EXIT_FAILURE, "/proc/self/net/snmp says nothing of RetransSegs");
}

/* A multiple of 1/4096 below 1/16: any order of adding them up gives the same sum. */
static inline float peer_element(int rank, size_t i)
{
	return (float)((i * 7 + (size_t)rank * 13) % 256) / 4096;
}

static inline size_t peer_count_wrong(const float *sums, size_t count, int workers)
{
	size_t wrong = 0;

	for (size_t i = 0; i < count; i++) {
		float sum = 0;

		for (int rank = 0; rank < workers; rank++)
			sum += peer_element(rank, i);
		wrong += sums[i] != sum;
	}
	return wrong;
}

static inline int peer_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline void peer_measure(const struct peer_work *work, int calls, struct peer_times *ret)
{
	uint64_t before = peer_retransmitted();

	ret->calls = calls;
	ret->cpu_s = 0;
	ret->began_s = peer_now_s(CLOCK_REALTIME);
	for (int i = 0; i < calls; i++) {
		double cpu_s, start;

		if (i % PEER_UNFILLED_MAX == 0)
			work->fill(work->what);
		cpu_s = peer_now_s(CLOCK_PROCESS_CPUTIME_ID);
		start = peer_now_s(CLOCK_MONOTONIC);
		work->reduce(work->what);
		ret->us[i] = (peer_now_s(CLOCK_MONOTONIC) - start) * 1e6;
		ret->cpu_s += peer_now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
	}
	ret->ended_s = peer_now_s(CLOCK_REALTIME);
	ret->retransmitted = peer_retransmitted() - before;
	qsort(ret->us, (size_t)calls, sizeof(*ret->us), peer_compare);
}

/* An object with the keys of tally-perf --json. */
static inline void peer_print(FILE *f, const struct peer_times *t, int rank, int workers,
			      size_t count, size_t wrong)
{
	double median = t->us[t->calls / 2];
	int slow = 0;

	while (t->us[t->calls - 1 - slow] > 2 * median)
		slow++;
	fprintf(f,
		"{\"verb\":\"allreduce\",\"rank\":%d,\"workers\":%d,\"bytes\":%zu,\"count\":%zu,"
		"\"type\":\"float32\",\"op\":\"sum\",\"iterations\":%d,\"min_us\":%.3f,"
		"\"p50_us\":%.3f,\"max_us\":%.3f,\"slow_calls\":%d,\"began_s\":%.6f,"
		"\"ended_s\":%.6f,\"cpu_s\":%.6f,\"retransmitted\":%" PRIu64 ",\"wrong\":%zu}\n",
		rank, workers, count * sizeof(float), count, t->calls, t->us[0], median,
		t->us[t->calls - 1], slow, t->began_s, t->ended_s, t->cpu_s, t->retransmitted,
		wrong);
}

#endif
