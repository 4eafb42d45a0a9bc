// SPDX-License-Identifier: GPL-2.0-only
/* The shape of a call: one word for ranks to compare, and what people read where ranks differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/shape.h"
#include "tests/unit/random.h"

static const struct call_member member = {
	.rank = 1, .workers = 4, .window = 64, .payload_bytes = 1408
};

static const struct call_options allreduce = {
	.verb = CALL_ALLREDUCE, .dtype = TALLY_FLOAT32, .op = TALLY_SUM, .count = 100
};

static uint64_t shape(const struct call_options *options) { return shape_of(&member, options); }

/* In memory that ends where the text must. */
static char *printed(uint64_t shape, uint64_t other)
{
	char *text = malloc(SHAPE_TEXT_BYTES);

	memset(text, 'x', SHAPE_TEXT_BYTES);
	shape_print(shape, other, text, SHAPE_TEXT_BYTES);
	assert_non_null(memchr(text, 0, SHAPE_TEXT_BYTES));
	return text;
}

static void assert_text(uint64_t shape, uint64_t other, const char *expected)
{
	char *text = printed(shape, other);

	assert_string_equal(text, expected);
	free(text);
}

static void every_call_reads_as_it_is_written(void **state)
{
	static const struct {
		struct call_options options;
		const char *text;
	} c[] = {
		{ { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_SUM, .count = 1 },
		  "allreduce of 1 int32, sum" },
		{ { .verb = CALL_ALLREDUCE, .dtype = TALLY_FLOAT32, .op = TALLY_AVG, .count = 100 },
		  "allreduce of 100 float32, average" },
		{ { .verb = CALL_REDUCE,
		    .dtype = TALLY_INT64,
		    .op = TALLY_SUM,
		    .root = 255,
		    .count = 7 },
		  "reduce of 7 int64 to rank 255, sum" },
		{ { .verb = CALL_BROADCAST, .dtype = TALLY_INT64, .root = 3 },
		  "broadcast of 0 int64 from rank 3" },
		{ { .verb = CALL_REDUCE_SCATTER,
		    .dtype = TALLY_FLOAT32,
		    .op = TALLY_AVG,
		    .count = 8 },
		  "reduce_scatter of 8 float32, average" },
		{ { .verb = CALL_ALL_GATHER, .dtype = TALLY_INT32, .count = 8 },
		  "all_gather of 8 int32" },
		{ { .verb = CALL_ALLREDUCE,
		    .dtype = TALLY_FIXED(TALLY_FLOAT32, 20),
		    .op = TALLY_AVG,
		    .count = 8 },
		  "allreduce of 8 float32 with point 20, average" },
		{ { .verb = CALL_REDUCE,
		    .dtype = TALLY_FIXED(TALLY_BFLOAT16, -128),
		    .op = TALLY_SUM,
		    .root = 3,
		    .count = 8 },
		  "reduce of 8 bfloat16 with point -128, sum" },
		{ { .verb = CALL_BROADCAST,
		    .dtype = TALLY_FIXED(TALLY_FLOAT64, 5),
		    .root = 3,
		    .count = 8 },
		  "broadcast of 8 float64 from rank 3" },
		{ { .verb = CALL_ALL_GATHER, .dtype = TALLY_UINT8, .count = 8 },
		  "all_gather of 8 uint8" },
		{ { .verb = CALL_ALLREDUCE,
		    .dtype = TALLY_FLOAT32_HALVED,
		    .op = TALLY_SUM,
		    .count = 8 },
		  "allreduce of 8 halved float32, sum" },
		{ { .verb = CALL_BARRIER }, "barrier" },
		{ { .verb = CALL_CLOSING }, "tally_close" },
		{ { .verb = CALL_OPENING, .dtype = TALLY_INT64, .op = TALLY_SUM, .count = 256 },
		  "the first call" },
	};

	for (size_t i = 0; i < sizeof(c) / sizeof(*c); i++)
		assert_text(shape(&c[i].options), shape(&c[i].options), c[i].text);
}

/* And only of who differs, for a window or a payload is no part of the call. */
static void a_window_and_a_payload_are_said_where_they_differ(void **state)
{
	struct call_member other = member;
	uint64_t ours = shape(&allreduce);

	other.window = 1024;
	assert_text(ours, shape_of(&other, &allreduce),
		    "allreduce of 100 float32, sum, with window 64");
	assert_text(shape_of(&other, &allreduce), ours,
		    "allreduce of 100 float32, sum, with window 1024");
	other = member;
	other.payload_bytes = 64;
	assert_text(ours, shape_of(&other, &allreduce),
		    "allreduce of 100 float32, sum, with payload 1408");
	assert_text(shape_of(&other, &allreduce), ours,
		    "allreduce of 100 float32, sum, with payload 64");
	other.window = 1;
	assert_text(shape_of(&other, &allreduce), ours,
		    "allreduce of 100 float32, sum, with window 1, with payload 64");
}

/* Job files may differ in that. */
static void the_workers_of_a_job_are_said_where_they_differ(void **state)
{
	struct call_options three = { .verb = CALL_OPENING, .dtype = TALLY_INT64, .count = 3 };
	uint64_t ours = shape(&three);

	three.count = 2;
	assert_text(ours, shape(&three), "the first call of a job of 3 workers");
}

/* Every point is another word, for sums and averages, in each type of floats. */
static void ranks_must_agree_in_the_point(void **state)
{
	static const enum tally_dtype types[] = { TALLY_FLOAT32, TALLY_FLOAT16, TALLY_BFLOAT16,
						  TALLY_FLOAT64 };
	uint64_t word[4 * 2 * 257];
	size_t count = 0;

	for (int i = 0; i < 4 * 2; i++) {
		struct call_options o = { .verb = CALL_REDUCE, .op = 1 + i % 2, .count = 100 };

		o.dtype = types[i / 2];
		word[count++] = shape(&o);
		for (int point = INT8_MIN; point <= INT8_MAX; point++) {
			o.dtype = TALLY_FIXED(types[i / 2], point);
			assert_int_equal(call_point(&o), point);
			word[count++] = shape(&o);
		}
	}
	for (size_t a = 0; a < count; a++)
		for (size_t b = 0; b < a; b++)
			assert_true(word[a] != word[b]);
}

static void all_that_ranks_must_agree_in_is_in_the_word(void **state)
{
	struct call_options o[6];
	struct call_member m[2] = { member, member };
	uint64_t word[1 + 6 + 2];
	size_t count = 0;

	for (int i = 0; i < 6; i++)
		o[i] = allreduce;
	o[0].verb = CALL_REDUCE_SCATTER;
	o[1].dtype = TALLY_INT32;
	o[2].op = TALLY_AVG;
	o[3].verb = CALL_BROADCAST;
	o[3].root = 255;
	o[4].count++;
	o[5].count |= 1ull << (CALL_COUNT_BITS - 1);
	m[0].window *= 2;
	m[1].payload_bytes += 64;
	word[count++] = shape(&allreduce);
	for (int i = 0; i < 6; i++)
		word[count++] = shape(&o[i]);
	for (int i = 0; i < 2; i++)
		word[count++] = shape_of(&m[i], &allreduce);
	for (size_t a = 0; a < count; a++)
		for (size_t b = 0; b < a; b++)
			assert_true(word[a] != word[b]);
}

static void what_ranks_differ_in_by_nature_is_not(void **state)
{
	struct call_member other = member;
	struct call_options options = allreduce;
	int buffer;

	other.rank = 3;
	options.in = options.out = &buffer;
	assert_true(shape_of(&other, &options) == shape(&allreduce));
}

static void the_longest_text_fits(void **state)
{
	const struct call_member most = { .window = 1024, .payload_bytes = TALLY_PAYLOAD_MAX };
	const struct call_options longest = { .verb = CALL_REDUCE_SCATTER,
					      .dtype = TALLY_FLOAT32,
					      .op = TALLY_AVG,
					      .root = 255,
					      .count = (1ull << CALL_COUNT_BITS) - 1 };
	struct call_options reduce = longest;

	reduce.verb = CALL_REDUCE;
	assert_text(shape_of(&most, &longest), shape(&allreduce),
		    "reduce_scatter of 137438953471 float32, average, with window 1024, "
		    "with payload 3392");
	assert_text(shape_of(&most, &reduce), shape(&allreduce),
		    "reduce of 137438953471 float32 to rank 255, average, with window 1024, "
		    "with payload 3392");
}

/* They come off the wire; the sanitizer looks after the rest. */
static void any_numbers_are_harmless(void **state)
{
	uint64_t random = 1;

	for (int i = 0; i < 200000; i++) {
		uint64_t number = random_next(&random), other = random_next(&random);

		free(printed(number >> random_below(&random, 64), other));
	}
	free(printed(0, UINT64_MAX));
	free(printed(UINT64_MAX, 0));
	assert_text(0, 0, "tally_close");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_reads_as_it_is_written),
		cmocka_unit_test(a_window_and_a_payload_are_said_where_they_differ),
		cmocka_unit_test(the_workers_of_a_job_are_said_where_they_differ),
		cmocka_unit_test(ranks_must_agree_in_the_point),
		cmocka_unit_test(all_that_ranks_must_agree_in_is_in_the_word),
		cmocka_unit_test(what_ranks_differ_in_by_nature_is_not),
		cmocka_unit_test(the_longest_text_fits),
		cmocka_unit_test(any_numbers_are_harmless),
	};

	return cmocka_run_group_tests_name("shape", tests, NULL, NULL);
}
