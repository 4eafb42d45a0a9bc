// SPDX-License-Identifier: GPL-2.0-only
/*
 * The workers of jobs that compute and communicate in turn, all in one process: how long the jobs
 * take on average. Worker r of each job is in namespace PREFIX-wr; the jobs are files DIRECTORY/0,
 * DIRECTORY/1 ... Jobs with an odd number compute much, the others communicate much. In each
 * iteration a rank computes (sleeps), begins up to SPREAD microseconds late, and takes part in an
 * allreduce. The priority is what libtally makes of its measurements and of the time that remains.
 *
 *	scarce PREFIX DIRECTORY JOBS WORKERS CHUNK-MICROSECONDS SPREAD SEED
 *
 * Prints JSON: average of the jobs' times and longest call in ms, chunks, and what was sent again.
 */
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>
#include <tally/inline.h>

enum {
	JOBS_MAX = 16,
	WORKERS_MAX = 16,
	ITERATIONS = 3,
	MANY_CHUNKS = 128, /* of an iteration */
	FEW_CHUNKS = 32,
	SHORT = 24, /* time to compute, in times of a chunk */
	LONG = 160,
	VALUES = 352, /* in a chunk of 1,408 bytes */
};

struct worker {
	struct tally *place;
	struct tally_stats stats;
	unsigned int job, rank;
	uint64_t random, end_ns, longest_ns;
	bool is_wrong;
};

static unsigned int jobs, workers, chunk_us, spread_us;
static uint64_t seed, begin_ns;
static struct worker worker[JOBS_MAX][WORKERS_MAX];
static pthread_barrier_t all;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return limit ? (z ^ z >> 31) % limit : 0;
}

static void rest(uint64_t us)
{
	const struct timespec t = { .tv_sec = (time_t)(us / 1000000),
				    .tv_nsec = (long)(us % 1000000 * 1000) };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void die(const struct worker *w)
{
	errx(1, "job %u, rank %u: %s", w->job, w->rank, tally_error());
}

static void place_open(struct worker *w, const char *directory)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%u", directory, w->job);
	if (tally_open_file(path, (uint16_t)w->rank, &w->place) < 0)
		die(w);
}

static void *work(void *context)
{
	struct worker *w = context;
	const unsigned int chunks = w->job % 2 ? FEW_CHUNKS : MANY_CHUNKS;
	const uint64_t compute_us = (w->job % 2 ? LONG : SHORT) * chunk_us;
	uint64_t of_job = seed * JOBS_MAX + w->job; /* the same for all its ranks */
	const uint64_t longer_us = random_below(&of_job, compute_us / 4);
	int32_t *values = malloc((size_t)chunks * VALUES * sizeof(*values));

	if (!values)
		err(1, "memory");
	pthread_barrier_wait(&all);
	for (unsigned int i = 0; i < ITERATIONS; i++) {
		const struct tally_hints hints = { .remaining_s = ITERATIONS - i };
		uint64_t from_ns;

		rest(compute_us + longer_us + random_below(&w->random, spread_us + 1));
		for (unsigned int k = 0; k < chunks * VALUES; k++)
			values[k] = (int32_t)(k * (w->rank + 1) + i);
		from_ns = now_ns();
		tally_hint(w->place, &hints);
		if (tally_allreduce(w->place, values, values, (size_t)chunks * VALUES, TALLY_INT32,
				    TALLY_SUM) < 0)
			die(w);
		if (now_ns() - from_ns > w->longest_ns)
			w->longest_ns = now_ns() - from_ns;
		for (unsigned int k = 0; k < chunks * VALUES; k++)
			w->is_wrong |= values[k] !=
				       (int32_t)(k * (workers * (workers + 1) / 2) + i * workers);
	}
	w->end_ns = now_ns();
	tally_stats_read(w->place, &w->stats);
	tally_close(w->place);
	free(values);
	return NULL;
}

static void print(void)
{
	struct tally_stats sum = { 0 };
	uint64_t longest_ns = 0;
	double times = 0;

	for (unsigned int j = 0; j < jobs; j++) {
		uint64_t end_ns = 0;

		for (unsigned int r = 0; r < workers; r++) {
			const struct worker *w = &worker[j][r];

			if (w->is_wrong)
				errx(1, "job %u, rank %u: wrong sums", j, r);
			end_ns = w->end_ns > end_ns ? w->end_ns : end_ns;
			longest_ns = w->longest_ns > longest_ns ? w->longest_ns : longest_ns;
			sum.retransmitted += w->stats.retransmitted;
			sum.flushed += w->stats.flushed;
			sum.chunks += r ? 0 : w->stats.chunks; /* all ranks have the same */
		}
		times += (double)(end_ns - begin_ns) / 1e6;
	}
	printf("{\"ms\": %.1f, \"longest_ms\": %.1f, \"chunks\": %llu, \"resent\": %llu, "
	       "\"flushed\": %llu}\n",
	       times / jobs, (double)longest_ns / 1e6, (unsigned long long)sum.chunks,
	       (unsigned long long)sum.retransmitted, (unsigned long long)sum.flushed);
}

int main(int argc, char **argv)
{
	pthread_t thread[JOBS_MAX][WORKERS_MAX];
	char path[256];

	if (argc != 8)
		errx(2, "usage: scarce PREFIX DIRECTORY JOBS WORKERS CHUNK-MICROSECONDS SPREAD "
			"SEED");
	jobs = strtoul(argv[3], NULL, 10);
	workers = strtoul(argv[4], NULL, 10);
	chunk_us = strtoul(argv[5], NULL, 10);
	spread_us = strtoul(argv[6], NULL, 10);
	seed = strtoull(argv[7], NULL, 10);
	if (!jobs || jobs > JOBS_MAX || !workers || workers > WORKERS_MAX)
		errx(2, "1 to %u jobs of 1 to %u workers", JOBS_MAX, WORKERS_MAX);
	pthread_barrier_init(&all, NULL, jobs * workers + 1);
	for (unsigned int r = 0; r < workers; r++) {
		int fd;

		snprintf(path, sizeof(path), "/run/netns/%s-w%u", argv[1], r);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWNET))
			err(1, "%s", path);
		close(fd);
		for (unsigned int j = 0; j < jobs; j++) {
			struct worker *w = &worker[j][r];

			*w = (struct worker){ .job = j,
					      .rank = r,
					      .random = (seed * JOBS_MAX + j) * WORKERS_MAX + r };
			place_open(w, argv[2]);
			if (pthread_create(&thread[j][r], NULL, work, w))
				err(1, "thread");
		}
	}
	begin_ns = now_ns();
	pthread_barrier_wait(&all);
	for (unsigned int j = 0; j < jobs; j++)
		for (unsigned int r = 0; r < workers; r++)
			pthread_join(thread[j][r], NULL);
	print();
	return 0;
}
