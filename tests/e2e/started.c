// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank that joins as its environment says, and starts calls of all kinds at once, round by round:
 *
 *	started calls|thread ROUNDS [abort]      who makes progress: enum tally_progress_by
 *
 * Every element of every result is compared. With `abort` one more round is started, and aborted at
 * once: each call of it ends, and no other can follow. Standard output says `round N` after each
 * round, and `aborted`. Code 1: what is wrong, or the words of the call that failed. Code 2: wrong
 * usage.
 */
#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tally/tally.h>

enum {
	ELEMENTS = 20000, /* of a rank's part: several chunks at each of two roots */
	CALLS = 5,
};

/* Of one round. What has a part for each rank has room for all parts. */
struct buffers {
	int32_t *in, *sum, *copied, *scattered, *gathered;
};

static int32_t *buffer(unsigned int workers)
{
	int32_t *p = calloc((size_t)ELEMENTS * workers, sizeof(*p));

	if (!p)
		errx(1, "no memory");
	return p;
}

/* Small enough for sums of 256. */
static int32_t value(unsigned int rank, unsigned int round, size_t i)
{
	return (int32_t)((i * 7919 + round * 104729 + rank * 1299709) % 2000003) - 1000000;
}

static void fill(const struct tally *t, unsigned int round, struct buffers *b)
{
	const unsigned int rank = tally_rank(t), workers = tally_workers(t);

	for (size_t i = 0; i < (size_t)ELEMENTS * workers; i++) {
		b->in[i] = value(rank, round, i);
		b->sum[i] = b->copied[i] = b->scattered[i] = b->gathered[i] = -1;
	}
	if (rank == round % workers)
		memcpy(b->copied, b->in, ELEMENTS * sizeof(*b->in));
}

static void must(int r, const char *what)
{
	if (r < 0)
		errx(1, "%s: %s", what, tally_error());
}

static void start(struct tally *t, unsigned int round, struct buffers *b,
		  struct tally_call *call[CALLS])
{
	const unsigned int workers = tally_workers(t);

	must(tally_allreduce_start(t, b->in, b->sum, (size_t)ELEMENTS * workers, TALLY_INT32,
				   TALLY_SUM, &call[0]),
	     "allreduce");
	must(tally_broadcast_start(t, b->copied, ELEMENTS, TALLY_INT32, round % workers, &call[1]),
	     "broadcast");
	must(tally_reduce_scatter_start(t, b->in, b->scattered, ELEMENTS, TALLY_INT32, TALLY_SUM,
					&call[2]),
	     "reduce_scatter");
	must(tally_all_gather_start(t, b->in, b->gathered, ELEMENTS, TALLY_INT32, &call[3]),
	     "all_gather");
	must(tally_barrier_start(t, &call[4]), "barrier");
}

static int32_t sum_of(const struct tally *t, unsigned int round, size_t i)
{
	int32_t sum = 0;

	for (unsigned int rank = 0; rank < tally_workers(t); rank++)
		sum += value(rank, round, i);
	return sum;
}

static void expect(const char *what, unsigned int round, size_t i, int32_t is, int32_t wanted)
{
	if (is != wanted)
		errx(1, "round %u: element %zu of %s is %" PRId32 ", not %" PRId32, round, i, what,
		     is, wanted);
}

static void compare(const struct tally *t, unsigned int round, const struct buffers *b)
{
	const unsigned int rank = tally_rank(t), workers = tally_workers(t);

	for (size_t i = 0; i < (size_t)ELEMENTS * workers; i++) {
		expect("allreduce", round, i, b->sum[i], sum_of(t, round, i));
		expect("all_gather", round, i, b->gathered[i],
		       value(i / ELEMENTS, round, i % ELEMENTS));
	}
	for (size_t i = 0; i < ELEMENTS; i++) {
		expect("broadcast", round, i, b->copied[i], value(round % workers, round, i));
		expect("reduce_scatter", round, i, b->scattered[i],
		       sum_of(t, round, i + (size_t)rank * ELEMENTS));
	}
}

/* The last call first: all are under way. */
static void round_make(struct tally *t, unsigned int round, struct buffers *b)
{
	struct tally_call *call[CALLS];

	fill(t, round, b);
	start(t, round, b, call);
	for (int i = CALLS; i-- > 0;)
		must(tally_wait(call[i]), "wait");
	compare(t, round, b);
	printf("round %u\n", round);
}

static void round_abort(struct tally *t, unsigned int round, struct buffers *b)
{
	struct tally_call *call[CALLS];
	unsigned int canceled = 0;

	fill(t, round, b);
	start(t, round, b, call);
	must(tally_abort(t), "abort");
	for (int i = 0; i < CALLS; i++) {
		int r = tally_wait(call[i]);

		if (r < 0 && r != -ECANCELED)
			errx(1, "a call that was aborted: %s", tally_error());
		canceled += r < 0;
	}
	if (!canceled)
		errx(1, "no call was under way");
	if (tally_barrier(t) != -ECONNABORTED)
		errx(1, "a call after the abort: %s", tally_error());
	puts("aborted");
}

int main(int argc, char **argv)
{
	struct tally_join_options options = { .rank = -1, .timeout_ms = 10000 };
	struct buffers b;
	struct tally *t;
	unsigned int rounds;

	if (argc < 3 || argc > 4 ||
	    (strcmp(argv[1], "calls") != 0 && strcmp(argv[1], "thread") != 0) ||
	    (argc == 4 && strcmp(argv[3], "abort") != 0)) {
		fputs("usage: started calls|thread ROUNDS [abort]\n", stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	rounds = strtoul(argv[2], NULL, 10);
	options.progress = argv[1][0] == 't' ? TALLY_PROGRESS_THREAD : TALLY_PROGRESS_CALLS;
	must(tally_join(&options, &t), "join");
	b = (struct buffers){ buffer(tally_workers(t)), buffer(tally_workers(t)),
			      buffer(tally_workers(t)), buffer(tally_workers(t)),
			      buffer(tally_workers(t)) };
	for (unsigned int round = 0; round < rounds; round++)
		round_make(t, round, &b);
	if (argc == 4)
		round_abort(t, rounds, &b);
	must(tally_close(t), "close");
	return 0;
}
