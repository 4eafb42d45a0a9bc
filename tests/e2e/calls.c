// SPDX-License-Identifier: GPL-2.0-only
/*
 * A rank that makes the calls it is told, after a barrier of all, and tally_close():
 *
 *	calls JOB-FILE RANK CALL...        CALL is VERB[:COUNT[:TYPE[:OP[:ROOT]]]]
 *
 * All calls are started at once. The first that fails ends the process with code 1. Standard output
 * then has a line: when the calls began and ended, in milliseconds of the machine's clock, the
 * error and its words. Code 2: the usage is wrong.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/tally.h>

enum {
	CALLS_MAX = 16,
	ELEMENT_BYTES_MAX = 8,
};

struct wish {
	char verb[32], type[16], op[16];
	unsigned long count, root;
};

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The next field of the text, if there is one more. */
static void word_take(char **text, char *ret, size_t size)
{
	const char *word = strsep(text, ":");

	if (word)
		snprintf(ret, size, "%s", word);
}

static void number_take(char **text, unsigned long *ret)
{
	const char *word = strsep(text, ":");

	if (word)
		*ret = strtoul(word, NULL, 10);
}

static struct wish wish_of(const char *text)
{
	struct wish w = { .type = "int32", .op = "sum", .count = 1 };
	char copy[80], *rest = copy;

	snprintf(copy, sizeof(copy), "%s", text);
	word_take(&rest, w.verb, sizeof(w.verb));
	number_take(&rest, &w.count);
	word_take(&rest, w.type, sizeof(w.type));
	word_take(&rest, w.op, sizeof(w.op));
	number_take(&rest, &w.root);
	return w;
}

/* NULL: an earlier call has failed already. */
static struct tally_call *start(struct tally *t, const char *text)
{
	const struct wish w = wish_of(text);
	const enum tally_dtype type = !strcmp(w.type, "int64")	   ? TALLY_INT64
				      : !strcmp(w.type, "float32") ? TALLY_FLOAT32
								   : TALLY_INT32;
	const enum tally_op op = !strcmp(w.op, "avg") ? TALLY_AVG : TALLY_SUM;
	void *in = calloc(w.count * tally_workers(t), ELEMENT_BYTES_MAX);
	void *out = calloc(w.count * tally_workers(t), ELEMENT_BYTES_MAX);
	struct tally_call *call = NULL;
	int r = -1;

	if (!strcmp(w.verb, "allreduce"))
		r = tally_allreduce_start(t, in, out, w.count, type, op, &call);
	else if (!strcmp(w.verb, "reduce"))
		r = tally_reduce_start(t, in, out, w.count, type, op, w.root, &call);
	else if (!strcmp(w.verb, "broadcast"))
		r = tally_broadcast_start(t, out, w.count, type, w.root, &call);
	else if (!strcmp(w.verb, "reduce_scatter"))
		r = tally_reduce_scatter_start(t, in, out, w.count, type, op, &call);
	else if (!strcmp(w.verb, "all_gather"))
		r = tally_all_gather_start(t, in, out, w.count, type, &call);
	else if (!strcmp(w.verb, "barrier"))
		r = tally_barrier_start(t, &call);
	if (r < 0 && r != -ECONNABORTED)
		errx(2, "%s: %s", text, tally_error());
	return call;
}

static void end_if(int r, long since_ms)
{
	if (r < 0) {
		printf("%ld %ld %d %s\n", since_ms, now_ms(), r, tally_error());
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct tally_call *call[CALLS_MAX];
	const int calls = argc - 3;
	struct tally *t;
	long since_ms;

	if (calls < 0 || calls > CALLS_MAX)
		errx(2, "usage: calls JOB-FILE RANK CALL...");
	if (tally_open_file(argv[1], strtoul(argv[2], NULL, 10), &t) < 0)
		errx(2, "%s", tally_error());
	since_ms = now_ms();
	end_if(tally_barrier(t), since_ms);
	since_ms = now_ms();
	for (int i = 0; i < calls; i++)
		call[i] = start(t, argv[3 + i]);
	for (int i = 0; i < calls; i++)
		end_if(tally_wait(call[i]), since_ms);
	end_if(tally_close(t), since_ms);
	return 0;
}
