// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the client's own work costs, without sockets: composing chunks with their checks and tags,
 * and checking and unpacking their results, beside a memcpy() of the same vector. Thread CPU time,
 * all types in turns; GB are 10^9 bytes of the vector.
 */
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/check.h>

#include "client/engine.h"
#include "tests/bench/spread.h"
#include "tests/unit/random.h"

enum {
	BYTES = 16 << 20, /* a vector: far more than fits the caches of a core */
	PAYLOAD = 1408,
	WINDOW = 128,
	BATCH = 64, /* datagrams at a time, as client/progress.c takes them */
	FRAME_BYTES = 2048,
	ROUNDS = 21,
};

static const struct type {
	const char *name;
	enum tally_dtype dtype; /* 0: memcpy() */
	size_t bytes;
} types[] = {
	{ "memcpy", 0, 4 },
	{ "int32", TALLY_INT32, 4 },
	{ "float32", TALLY_FLOAT32, 4 },
	{ "bfloat16", TALLY_BFLOAT16, 2 },
	{ "float16", TALLY_FLOAT16, 2 },
};

enum {
	TYPES = sizeof(types) / sizeof(*types)
};

static uint8_t *in[TYPES], *out;
static struct engine *engine[TYPES]; /* each remembers the scales of its own calls */
static uint8_t frame[BATCH][FRAME_BYTES]; /* results, as a socket gives them */
static uint64_t clock_ns = 1; /* of the engines: nothing is ever late */

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What a node makes of the contribution of a job's only rank. */
static void answer(const struct datagram *d, uint8_t *ret)
{
	struct tally_header *h = (struct tally_header *)ret;
	struct tally_set set;

	memcpy(ret, d->bytes, d->length);
	h->kind = TALLY_RESULT;
	set = tally_header_set(h);
	h->tag = tally_le64(tally_tag(h, &set));
}

/* One call. Returns the thread's time in the engine. */
static uint64_t call_ns(const struct type *t, struct engine *e, const void *from)
{
	const struct call_options options = { .verb = CALL_ALLREDUCE,
					      .dtype = t->dtype,
					      .op = TALLY_SUM,
					      .count = BYTES / t->bytes,
					      .in = from,
					      .out = out };
	struct datagram batch[BATCH];
	struct engine_call *call;
	uint64_t begun = cpu_ns(), ns;

	if (engine_start(e, &options, clock_ns, &call) < 0)
		errx(1, "%s", tally_error());
	ns = cpu_ns() - begun;
	while (!engine_is_over(call)) {
		size_t n;

		begun = cpu_ns();
		n = engine_output(e, clock_ns, batch, BATCH);
		ns += cpu_ns() - begun;
		for (size_t i = 0; i < n; i++)
			answer(&batch[i], frame[i]);
		begun = cpu_ns();
		for (size_t i = 0; i < n; i++)
			engine_input(e, frame[i], batch[i].length, clock_ns);
		ns += cpu_ns() - begun;
		if (!n)
			errx(1, "%s: an answer was refused", t->name);
		clock_ns += n * 1000;
	}
	if (engine_collect(call, NULL) < 0)
		errx(1, "%s", tally_error());
	return ns;
}

static uint64_t copy_ns(void)
{
	uint64_t begun = cpu_ns();

	memcpy(out, in[0], BYTES);
	return cpu_ns() - begun;
}

static struct engine *engine_make(void)
{
	const struct engine_options options = {
		.window = { .job = 1,
			    .epoch = 1,
			    .workers = 1,
			    .window = WINDOW,
			    .payload_bytes = PAYLOAD,
			    .nonce = 1 },
		.timeout_ns = UINT64_MAX / 4,
		.service = "none",
	};
	struct engine *e;

	if (engine_new(&options, &e) < 0)
		errx(1, "no memory");
	return e;
}

/* Of a gradient's kind, near enough: both signs, below 1, and some chunks much smaller. */
static void *vector_make(const struct type *t)
{
	uint8_t *vector = malloc(BYTES);
	uint64_t state = 1;

	if (!vector)
		errx(1, "no memory");
	for (size_t i = 0; i < BYTES / t->bytes; i++) {
		int32_t number = (int32_t)random_next(&state) >> (i / (100 * PAYLOAD) % 2 ? 1 : 9);
		float x = (float)number * 0x1p-31f;
		uint32_t bits;

		memcpy(&bits, t->dtype == TALLY_INT32 ? (void *)&number : &x, sizeof(bits));
		bits >>= t->bytes == 2 ? 16 : 0; /* a bfloat16; as float16, numbers too */
		memcpy(vector + i * t->bytes, &bits, t->bytes);
	}
	return vector;
}

int main(void)
{
	static double rate[TYPES][ROUNDS], of_copy[TYPES][ROUNDS];

	out = malloc(BYTES);
	if (!out)
		errx(1, "no memory");
	for (size_t i = 0; i < TYPES; i++) {
		in[i] = vector_make(&types[i]);
		engine[i] = engine_make();
	}
	for (int round = -1; round < ROUNDS; round++) /* the first is not counted */
		for (size_t i = 0; i < TYPES; i++) {
			uint64_t ns = types[i].dtype ? call_ns(&types[i], engine[i], in[i])
						     : copy_ns();

			if (round < 0)
				continue;
			rate[i][round] = (double)BYTES / (double)ns;
			of_copy[i][round] = rate[i][round] / rate[0][round];
		}
	printf("%-10s %24s %24s\n", "", "GB/s, median (range)", "of memcpy");
	for (size_t i = 0; i < TYPES; i++) {
		struct spread s = spread_of(rate[i], ROUNDS), of = spread_of(of_copy[i], ROUNDS);

		printf("%-10s %6.2f (%5.2f to %5.2f) %8.2f (%4.2f to %4.2f)\n", types[i].name,
		       s.median, s.low, s.high, of.median, of.low, of.high);
		engine_free(engine[i]);
		free(in[i]);
	}
	free(out);
	return 0;
}
