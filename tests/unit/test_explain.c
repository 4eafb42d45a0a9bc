// SPDX-License-Identifier: GPL-2.0-only
/* Words for calls that fail, where no whole protocol brings such news about (test_agreement.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "client/explain.h"
#include "client/shape.h"

static const struct window_options job = { .job = 7, .epoch = 3, .rank = 2, .workers = 4 };

static uint64_t allreduce_of(uint64_t count)
{
	const struct call_member member = { .window = 8, .payload_bytes = 64 };
	const struct call_options options = {
		.verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_SUM, .count = count
	};

	return shape_of(&member, &options);
}

/* Ranks 0 and 1 call one thing, rank `other` another, and this is rank 2. */
static void says(uint16_t other, uint64_t call, uint64_t other_call, const char *words)
{
	const struct situation s = { .job = &job, .service = "10.77.0.1", .shape = call };
	struct window_news news = {
		.mismatch = true, .call = call, .other_call = other_call, .other = other
	};
	char text[512] = "";

	news.callers = tally_set_first(2);
	assert_int_equal(explain_news(&news, &s, text, sizeof(text)), -EPROTO);
	assert_string_equal(text, words);
}

static void the_same_call_in_another_form_is_no_other_call(void **state)
{
	says(3, allreduce_of(5), allreduce_of(6),
	     "ranks make different calls: rank 3 calls allreduce of 6 int32, sum, ranks 0, 1 call "
	     "allreduce of 5 int32, sum, this rank allreduce of 5 int32, sum");
	says(2, allreduce_of(5), allreduce_of(5),
	     "ranks make different calls: rank 2 (this one) calls allreduce of 5 int32, sum, ranks "
	     "0, 1 call allreduce of 5 int32, sum: the same call, but the lane, recipient or "
	     "length of a chunk differs: do all ranks run the same version of the library?");
}

/* Of a way that takes less than the packets have, only where this one's are those that are lost. */
static void packets_that_are_too_large_are_what_is_wrong(void **state)
{
	struct window_options large = job;
	struct situation s = {
		.job = &large, .service = "10.77.0.1", .waited_ns = 5000000000, .mtu = 1500
	};
	struct window_news news = { .heard_ns = 0 };
	char text[512];

	large.payload_bytes = 3392;
	explain_timeout(&news, &s, text, sizeof(text));
	assert_string_equal(text, "packets of up to 3484 bytes are too large for the way to "
				  "10.77.0.1, which takes 1500, as a machine on it says: no result "
				  "for 5.0 s. Raise the MTU there, or give the job a payload of "
				  "1408 (tallyctl job create --payload)");
	news.heard_ns = news.asked_ns = 1;
	tally_set_add(&news.missing, 1);
	explain_timeout(&news, &s, text, sizeof(text));
	assert_string_equal(text, "rank 1 missing: no contribution for 5.0 s");
	tally_set_add(&news.missing, 2);
	explain_timeout(&news, &s, text, sizeof(text));
	assert_memory_equal(text, "packets of up to 3484 bytes", 27);
	s.mtu = 0;
	explain_timeout(&news, &s, text, sizeof(text));
	assert_null(strstr(text, "3484"));
}

/* Whoever asked too little room for it gets its beginning. */
static void words_are_cut(void **state)
{
	const struct situation s = { .job = &job, .service = "", .shape = allreduce_of(5) };
	struct window_news news = { .mismatch = true, .other = 3 };
	char text[512], whole[512];

	news.call = news.other_call = allreduce_of(5);
	news.callers = tally_set_first(2);
	assert_int_equal(explain_news(&news, &s, whole, sizeof(whole)), -EPROTO);
	for (size_t size = 1; size <= strlen(whole) + 1; size++) {
		memset(text, 'x', sizeof(text));
		assert_int_equal(explain_news(&news, &s, text, size), -EPROTO);
		assert_memory_equal(text, whole, size - 1);
		assert_int_equal(text[size - 1], '\0');
		assert_int_equal(text[size], 'x');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_call_in_another_form_is_no_other_call),
		cmocka_unit_test(packets_that_are_too_large_are_what_is_wrong),
		cmocka_unit_test(words_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
