// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Calls of all kinds and types. */
#include "vectors_calls.h"

#include <stdio.h>
#include <string.h>

#include "client/shape.h"
#include "vectors_print.h"

enum {
	ELEMENTS_MAX = 9, /* of a buffer */
};

struct example {
	const char *text;
	struct call_options options;
	const void *in; /* a row of `width` elements for each rank */
	size_t width;
	unsigned int shown[CHUNKS_MAX]; /* of each chunk: whose contributions */
};

static __u64 shape(const struct call_options *o)
{
	const struct call_member member = { .window = WINDOW, .payload_bytes = PAYLOAD };

	return shape_of(&member, o);
}

static void elements_print(const struct example *e, const void *in, const uint8_t *out, size_t row)
{
	const size_t element = call_element_bytes(&e->options);
	const enum call_verb verb = e->options.verb;
	char who[32];

	for (int rank = 0; rank < RANKS && e->width; rank++) {
		snprintf(who, sizeof(who), "%srank %d has",
			 !rank || verb == CALL_BROADCAST		   ? ""
			 : e->options.dtype == TALLY_INT32 || element == 1 ? "; "
									   : "\n",
			 rank);
		if (verb != CALL_BROADCAST || rank == e->options.root)
			values_print(who, (const uint8_t *)in + rank * row, e->options.dtype,
				     verb == CALL_ALL_GATHER ? e->options.count : e->width);
	}
	if (e->width)
		puts("");
	for (int rank = 0; rank < RANKS && e->width; rank++) {
		snprintf(who, sizeof(who), "%srank %d gets",
			 rank && verb != CALL_REDUCE ? "; " : "", rank);
		if (verb == CALL_REDUCE_SCATTER || (verb == CALL_REDUCE && rank == e->options.root))
			values_print(who, out + rank * row, e->options.dtype, e->options.count);
	}
	if (e->width && verb != CALL_REDUCE && verb != CALL_REDUCE_SCATTER)
		values_print("all get", out, e->options.dtype,
			     verb == CALL_ALL_GATHER ? e->width : e->options.count);
	if (e->width)
		puts("");
}

static void example_print(const struct example *e)
{
	const size_t element = call_element_bytes(&e->options);
	__u64 out[RANKS][ELEMENTS_MAX] = { 0 }, in[RANKS][ELEMENTS_MAX] = { 0 };
	struct engine_call *call[RANKS];
	char name[SHAPE_TEXT_BYTES];

	shape_print(shape(&e->options), shape(&e->options), name, sizeof(name));
	for (int rank = 0; rank < RANKS && e->width; rank++) {
		memcpy(in[rank], (const uint8_t *)e->in + rank * e->width * element,
		       e->width * element);
		if (e->options.verb == CALL_BROADCAST && rank == e->options.root)
			memcpy(out[rank], in[rank], sizeof(in[rank]));
	}
	start(&e->options, in, out, sizeof(in[0]), call);
	finish(call);
	printf("\n## %s\n\n%s\n\n```\nshape 0x%016llx\n", name, e->text, shape(&e->options));
	elements_print(e, in, (const uint8_t *)out, sizeof(in[0]));
	for (uint32_t i = 0; i < world.chunks; i++)
		if (e->shown[i])
			chunk_print(i, e->shown[i]);
	puts("```");
}

#define ROWS(type, ...) (const type[]) __VA_ARGS__

/* An allreduce, of which the first round's chunk counts, or what comes behind it. */
#define SUMS(dtype_, op_, count_)                                                           \
	.options = { .verb = CALL_ALLREDUCE, .dtype = dtype_, .op = op_, .count = count_ }, \
	.width = count_
#define AT_ONCE .shown = { RANK_0 | RESULT }
#define AGAIN .shown = { RANK_0, RANK_0 | RESULT }
#define AGAIN_ALONE .shown = { NOTHING, RANK_0 | RESULT, RANK_0 | RESULT }

static const struct example examples[] = {
	{ .text = "Two elements a word; the last word has one.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_SUM, .count = 3 },
	  .in = ROWS(int32_t, { 1, -2, 1000000, 10, 20, -3, -100, 7, 5 }),
	  .width = 3,
	  .shown = { ALL } },
	{ .text = "Round 0 says WIDE, so the second chunk counts, which is in the wide lane. The "
		  "average is of the\nexact sum, rounded towards zero.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_AVG, .count = 3 },
	  .in = ROWS(int32_t, { 2000000000, -5, 1, 2000000000, 3, 1, 2000000000, 0, 2 }),
	  .width = 3,
	  .shown = { RANK_0, RANK_0 | RESULT } },
	{ .text = "Sums wrap.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT64, .op = TALLY_SUM, .count = 2 },
	  .in = ROWS(int64_t, { INT64_C(1) << 62, -1, INT64_C(1) << 62, -2, INT64_C(1) << 62, 5 }),
	  .width = 2,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "0.5, -0.25, 1e-9; 0.75, 0.125, 0; -0.0625, 0.1, -2e-10. The guessed scale, 64, "
		  "is right.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_SUM,
		       .count = 3 },
	  .in = ROWS(float, { 0.5, -0.25, 1e-9, 0.75, 0.125, 0, -0.0625, 0.1, -2e-10 }),
	  .width = 3,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "Denormals: the guess of round 0 is wrong, the scale is 28, and round 1 uses it.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_SUM,
		       .count = 2 },
	  .in = ROWS(uint32_t, { 1, 0x80000002, 3, 4, 0x80000001, 8 }),
	  .width = 2,
	  .shown = { RANK_0, RANK_0 | RESULT } },
	{ .text = "NaNs, infinities and numbers; and denormals, which are too small to count here. "
		  "Round 1 is wide.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_AVG,
		       .count = 5 },
	  .in = ROWS(uint32_t, { 0x7fc00000, 0x7f800000, 0x3f800000, 0xbfc00000, 1, 0x3f800000,
				 0x40000000, 0x7f800000, 0xc0200000, 2, 0x3f800000, 0x7f800000,
				 0xff800000, 0x3f000000, 3 }),
	  .width = 5,
	  .shown = { RANK_0, ALL } },
	{ .text = "The result as rank 2 gets it; all others get its header alone, with blocks 0.",
	  .options = { .verb = CALL_REDUCE,
		       .dtype = TALLY_INT32,
		       .op = TALLY_SUM,
		       .root = 2,
		       .count = 2 },
	  .in = ROWS(int32_t, { 1, 2, 3, 4, 5, 6 }),
	  .width = 2,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "Bytes, from one rank; the others' contributions have no payload.",
	  .options = { .verb = CALL_BROADCAST, .dtype = TALLY_INT32, .root = 1, .count = 3 },
	  .in = ROWS(int32_t, { 0, 0, 0, 1, -2, 0x12345678, 0, 0, 0 }),
	  .width = 3,
	  .shown = { RANK_0 | RANK_1 | RESULT } },
	{ .text = "A chunk for each part. That of part 1 goes to rank 1.",
	  .options = { .verb = CALL_REDUCE_SCATTER,
		       .dtype = TALLY_INT32,
		       .op = TALLY_SUM,
		       .count = 1 },
	  .in = ROWS(int32_t, { 1, 2, 3, 10, 20, 30, 100, 200, 300 }),
	  .width = 3,
	  .shown = { NOTHING, RANK_0 | RANK_1 | RESULT } },
	{ .text = "A chunk for each part. That of part 1 comes from rank 1.",
	  .options = { .verb = CALL_ALL_GATHER, .dtype = TALLY_INT32, .count = 1 },
	  .in = ROWS(int32_t, { 5, 0, 0, 6, 0, 0, 7, 0, 0 }),
	  .width = 3,
	  .shown = { NOTHING, RANK_0 | RANK_1 | RESULT } },
	{ .text = "Eight a word; the negative ones have borrowed from those above them.",
	  SUMS(TALLY_INT8, TALLY_SUM, 5),
	  .in = ROWS(int8_t, { 1, -2, 3, -4, 40, 10, -20, 30, -40, 2, -3, 5, 7, -11, -42 }),
	  AT_ONCE },
	{ .text = "Some are beyond 127 / 3, so round 1 is in the wide lane, four a word.",
	  SUMS(TALLY_INT8, TALLY_AVG, 3),
	  .in = ROWS(int8_t, { 100, -100, 1, 100, -100, 1, 27, -28, 0 }),
	  AGAIN },
	{ .text = "Averages are rounded towards zero.",
	  SUMS(TALLY_UINT8, TALLY_AVG, 3),
	  .in = ROWS(uint8_t, { 1, 85, 0, 1, 85, 0, 3, 84, 2 }),
	  AT_ONCE },
	{ .text = "Wide; the result has the low 8 bits of the sum.",
	  SUMS(TALLY_UINT8, TALLY_SUM, 2),
	  .in = ROWS(uint8_t, { 200, 3, 100, 4, 5, 6 }),
	  AGAIN },
	{ .text = "Four a word.",
	  SUMS(TALLY_INT16, TALLY_SUM, 5),
	  .in = ROWS(int16_t,
		     { 1, -2, 10000, -10000, 7, -3, 4, 10000, -10000, 7, -5, 6, -9, 11, 7 }),
	  AT_ONCE },
	{ .text = "Wide, two a word.",
	  SUMS(TALLY_INT16, TALLY_AVG, 3),
	  .in = ROWS(int16_t, { 30000, -30000, 1, 30000, -30000, 2, 30000, -30001, 5 }),
	  AGAIN },
	{ .text = "Four a word, without signs.",
	  SUMS(TALLY_UINT16, TALLY_AVG, 2),
	  .in = ROWS(uint16_t, { 20000, 1, 20001, 1, 20002, 3 }),
	  AT_ONCE },
	{ .text = "Wide; sums wrap at 16 bits.",
	  SUMS(TALLY_UINT16, TALLY_SUM, 2),
	  .in = ROWS(uint16_t, { 60000, 1, 60000, 2, 1, 3 }),
	  AGAIN },
	{ .text = "Two a word, without signs.",
	  SUMS(TALLY_UINT32, TALLY_SUM, 3),
	  .in = ROWS(uint32_t, { 1, 1000000000, 3, 4, 1400000000, 6, 7, 8, 9 }),
	  AT_ONCE },
	{ .text = "Wide; the average is of the exact sum.",
	  SUMS(TALLY_UINT32, TALLY_AVG, 2),
	  .in = ROWS(uint32_t, { 4000000000, 1, 4000000000, 2, 4000000000, 5 }),
	  AGAIN },
	{ .text = "Sums wrap, also before an average.",
	  SUMS(TALLY_UINT64, TALLY_AVG, 2),
	  .in = ROWS(uint64_t, { UINT64_C(1) << 63, 1, UINT64_C(1) << 63, 2, 7, 5 }),
	  AT_ONCE },
	{ .text = "0.5, -0.25, 1; 0.75, 0.125, 0.0078125; -0.0625, 0.1, -0. The scale is 128, and "
		  "the first guess 127.",
	  SUMS(TALLY_BFLOAT16, TALLY_SUM, 3),
	  .in = ROWS(uint16_t,
		     { 0x3f00, 0xbe80, 0x3f80, 0x3f40, 0x3e00, 0x3c00, 0xbd80, 0x3dcd, 0x8000 }),
	  AGAIN },
	{ .text = "A NaN, an infinity, and numbers, in the wide lane.",
	  SUMS(TALLY_BFLOAT16, TALLY_AVG, 3),
	  .in = ROWS(uint16_t, { 0x7fc1, 0x3f80, 0x3f81, 0x3f80, 0xff80, 0xbf01, 0, 0x3f80, 0 }),
	  AGAIN },
	{ .text = "0.5, -0.25, a denormal; 0.75, 0.1, a denormal; -0.375, 0.1, 0.",
	  SUMS(TALLY_FLOAT16, TALLY_AVG, 3),
	  .in = ROWS(uint16_t,
		     { 0x3800, 0xb400, 0x03ff, 0x3a00, 0x2e66, 0x8001, 0xb600, 0x2e66, 0 }),
	  AT_ONCE },
	{ .text = "Both infinities, a sum that is too large, and numbers: the wide form has two pieces, "
		  "of eight and\nof one.",
	  SUMS(TALLY_FLOAT16, TALLY_SUM, 9),
	  .in = ROWS(uint16_t,
		     { 0x7c00, 0x7bff, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700,
		       0xfc00, 0x7bff, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00, 0x3c00,
		       0x3c00, 0x3c00, 0x3c00, 0xbc00, 0xbc00, 0xc000, 0xc000, 0xc400, 0xc500 }),
	  AGAIN_ALONE },
	{ .text = "0.5, 0.1; 0.75, 0.1; -1e-9, 0.1. One a word.",
	  SUMS(TALLY_FLOAT64, TALLY_SUM, 2),
	  .in = ROWS(double, { 0.5, 0.1, 0.75, 0.1, -1e-9, 0.1 }),
	  AT_ONCE },
	{ .text = "One NaN; the smallest denormal. Wide, two words each.",
	  SUMS(TALLY_FLOAT64, TALLY_AVG, 2),
	  .in = ROWS(uint64_t, { 0x7ff8000000000000, 1, 0x3ff0000000000000, 1, 0, 1 }),
	  AGAIN },
	{ .text = "0.5, -0.25, 1e-5; 0.75, 0.125, 0.1; -0.0625, 0.1, 0. Steps are 2^-13.",
	  SUMS(TALLY_FLOAT32_HALVED, TALLY_SUM, 3),
	  .in = ROWS(float, { 0.5, -0.25, 1e-5, 0.75, 0.125, 0.1, -0.0625, 0.1, 0 }),
	  AT_ONCE },
	{ .text = "0.99995 leaves no step free below 1, so the scale is 127; 1e-4 is below half a step.",
	  SUMS(TALLY_FLOAT32_HALVED, TALLY_AVG, 2),
	  .in = ROWS(float, { 0.99995, 1e-4, 0.5, 1e-4, 0.25, 1e-4 }),
	  AGAIN },
	{ .text = "An infinity; one a word, in steps of 2^-9.",
	  SUMS(TALLY_FLOAT32_HALVED, TALLY_AVG, 3),
	  .in = ROWS(float, { 1, 2, -3, 9, 8, 7.0005, 0, __builtin_inff(), -1 }),
	  AGAIN_ALONE },
	{ .text = "Whole multiples of 2^-20, one a word.",
	  SUMS(TALLY_FIXED(TALLY_FLOAT32, 20), TALLY_AVG, 2),
	  .in = ROWS(float, { 1.5, 1e-6, -0.75, 1e-6, 100000, 0.1 }),
	  AT_ONCE },
	{ .text = "0.1, 3; 0.2, -1; 0.3, 0.",
	  SUMS(TALLY_FIXED(TALLY_BFLOAT16, 8), TALLY_SUM, 2),
	  .in = ROWS(uint16_t, { 0x3dcd, 0x4040, 0x3e4d, 0xbf80, 0x3e9a, 0 }),
	  AT_ONCE },
	{ .text = "1, 0.1; 2, 0.1; 3, a denormal.",
	  SUMS(TALLY_FIXED(TALLY_FLOAT16, 24), TALLY_SUM, 2),
	  .in = ROWS(uint16_t, { 0x3c00, 0x2e66, 0x4000, 0x2e66, 0x4200, 1 }),
	  AT_ONCE },
	{ .text = "Multiples of 4: 5.5 and 6.5 go as 4 and 8.",
	  SUMS(TALLY_FIXED(TALLY_FLOAT64, -2), TALLY_SUM, 2),
	  .in = ROWS(double, { 5.5, 1e15, 6.5, 1, 0, -3 }),
	  AT_ONCE },
	{ .text = "No payload at all.", .options = { .verb = CALL_BARRIER }, .shown = { ALL } },
	{ .text = "The barrier that a worker ends with. Here others follow all the same.",
	  .options = { .verb = CALL_CLOSING },
	  .shown = { ALL } },
};

void calls_print(void)
{
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		example_print(&examples[i]);
}
