// SPDX-License-Identifier: GPL-2.0-only
/* The public calls, given what they must refuse; over real sockets, with nobody to answer. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <tally/tally.h>

/* Defaults come first, and a test overrides what it is about. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define VALID(...)                                              \
	(&(struct tally_options){ .job = 1,                     \
				  .epoch = 1,                   \
				  .rank = 0,                    \
				  .workers = 2,                 \
				  .window = 16,                 \
				  .payload_bytes = 1408,        \
				  .timeout_ms = 50,             \
				  .service = "127.0.0.1",       \
				  .address = "127.0.0.1:31300", \
				  __VA_ARGS__ })

/* Refused with this errno and a text that has this word in it. */
static void refused(int r, int error, const char *word)
{
	if (r != -error || !strstr(tally_error(), word))
		print_error("got %d: %s\n", r, tally_error());
	assert_int_equal(r, -error);
	assert_non_null(strstr(tally_error(), word));
}

static void options_out_of_range_are_named(void **state)
{
	struct tally *t = NULL;

	(void)state;
	refused(tally_open(NULL, &t), EINVAL, "NULL");
	refused(tally_open(VALID(), NULL), EINVAL, "NULL");
	refused(tally_open(VALID(.workers = 0), &t), EINVAL, "workers: 0");
	refused(tally_open(VALID(.workers = 257), &t), EINVAL, "1 to 256");
	refused(tally_open(VALID(.rank = 2), &t), EINVAL, "ranks 0 to 1");
	refused(tally_open(VALID(.window = 0), &t), EINVAL, "window: 0");
	refused(tally_open(VALID(.window = 48), &t), EINVAL, "powers of two");
	refused(tally_open(VALID(.window = 2048), &t), EINVAL, "window: 2048");
	refused(tally_open(VALID(.payload_bytes = 0), &t), EINVAL, "payload_bytes: 0");
	refused(tally_open(VALID(.payload_bytes = 100), &t), EINVAL, "multiples of 64");
	refused(tally_open(VALID(.payload_bytes = 3456), &t), EINVAL, "3392");
	assert_null(t);
}

static void addresses_that_are_none_are_quoted(void **state)
{
	struct tally *t = NULL;

	(void)state;
	refused(tally_open(VALID(.service = NULL), &t), EINVAL, "service");
	refused(tally_open(VALID(.address = NULL), &t), EINVAL, "address");
	refused(tally_open(VALID(.address = "10.77.1.1"), &t), EINVAL, "'10.77.1.1'");
	refused(tally_open(VALID(.service = "nowhere"), &t), EINVAL, "'nowhere'");
	refused(tally_open(VALID(.service = "fd77::1"), &t), EINVAL, "IPv6");
	refused(tally_open(VALID(.address = "192.0.2.1:40000"), &t), EADDRNOTAVAIL, "address");
	assert_null(t);
}

static void two_workers_cannot_share_an_address(void **state)
{
	struct tally *first = NULL, *second = NULL;

	(void)state;
	assert_int_equal(tally_open(VALID(), &first), 0);
	refused(tally_open(VALID(), &second), EADDRINUSE, "address");
	assert_int_equal(tally_close(first), 0);
	assert_int_equal(tally_open(VALID(), &second), 0);
	assert_int_equal(tally_close(second), 0);
}

#define ROOTS(...)                                                          \
	((struct tally_options[]){ *VALID(), *VALID(.service = "127.0.0.2", \
						    .address = "127.0.0.1:31302", __VA_ARGS__) })

static void roots_are_of_the_same_workers(void **state)
{
	struct tally *t = NULL;

	(void)state;
	refused(tally_open_roots(ROOTS(), 0, &t), EINVAL, "roots: 0");
	refused(tally_open_roots(ROOTS(), 17, &t), EINVAL, "roots: 17, allowed are 1 to 16");
	refused(tally_open_roots(NULL, 2, &t), EINVAL, "NULL");
	refused(tally_open_roots(ROOTS(.workers = 3), 2, &t), EINVAL,
		"root 2 has a job of 3 workers, root 1 one of 2");
	refused(tally_open_roots(ROOTS(.rank = 1), 2, &t), EINVAL, "rank: 1 at root 2, and 0");
	refused(tally_open_roots(ROOTS(.payload_bytes = 64), 2, &t), EINVAL, "the same payload");
	refused(tally_open_roots(ROOTS(.share = 1001), 2, &t), EINVAL, "root 2 of 2: share: 1001");
	refused(tally_open_roots(ROOTS(.address = "127.0.0.1:31300"), 2, &t), EADDRINUSE,
		"root 2 of 2: cannot bind");
	refused(tally_open_roots(ROOTS(.window = 3), 2, &t), EINVAL, "window: 3");
	assert_null(t);
}

/* The first root has all of so small a call; what fails is said of the one where it failed. */
static void the_root_that_does_not_answer_is_named(void **state)
{
	struct tally *t = NULL;
	struct tally_call *call[2];
	int32_t x[4] = { 0 };

	(void)state;
	assert_int_equal(tally_open_roots(ROOTS(.timeout_ms = 10000), 2, &t), 0);
	assert_int_equal(tally_allreduce_start(t, x, x, 4, TALLY_INT32, TALLY_SUM, &call[0]), 0);
	assert_int_equal(tally_barrier_start(t, &call[1]), 0);
	refused(tally_wait(call[1]), ECONNABORTED, "root 127.0.0.1: ");
	refused(tally_wait(call[0]), ETIMEDOUT,
		"root 127.0.0.1: no node answered at 127.0.0.1 for");
	refused(tally_wait(call[0]), EINVAL, "not a pending call");
	refused(tally_barrier(t), ECONNABORTED, "close");
	assert_int_equal(tally_close(t), 0);
}

static void job_files_that_are_not_there_are_named(void **state)
{
	struct tally *t = NULL;

	(void)state;
	refused(tally_open_file(NULL, 0, &t), EINVAL, "NULL");
	refused(tally_open_file("/nowhere/job", 0, &t), ENOENT, "/nowhere/job");
}

static void a_job_file_is_opened_for_a_rank_it_has(void **state)
{
	char path[] = "/tmp/tally-job-XXXXXX";
	const char text[] = "job 1\nservice 127.0.0.1\nworker 127.0.0.1:31301\n";
	struct tally *t = NULL;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	refused(tally_open_file(path, 1, &t), EINVAL, "rank: 1");
	assert_int_equal(tally_open_file(path, 0, &t), 0);
	assert_int_equal(tally_close(t), 0);
	remove(path);
}

static void calls_with_bad_arguments_are_refused(void **state)
{
	struct tally_call *call = NULL;
	struct tally *t = NULL;
	int32_t x[4] = { 0 };
	bool done = false;

	(void)state;
	assert_int_equal(tally_open(VALID(), &t), 0);
	refused(tally_allreduce(NULL, x, x, 4, TALLY_INT32, TALLY_SUM), EINVAL, "struct tally");
	refused(tally_allreduce(t, NULL, x, 4, TALLY_INT32, TALLY_SUM), EINVAL, "in must");
	refused(tally_allreduce(t, x, NULL, 4, TALLY_INT32, TALLY_SUM), EINVAL, "out must");
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the point */
	refused(tally_allreduce(t, x, x, 4, 0, TALLY_SUM), EINVAL, "dtype: 0");
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the point */
	refused(tally_allreduce(t, x, x, 4, 99, TALLY_SUM), EINVAL, "dtype: 99");
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the point */
	refused(tally_allreduce(t, x, x, 4, TALLY_INT32, 3), EINVAL, "op: 3");
	refused(tally_allreduce(t, x, x, SIZE_MAX, TALLY_INT32, TALLY_SUM), EINVAL, "count");
	refused(tally_reduce(t, x, x, 4, TALLY_INT32, TALLY_SUM, 2), EINVAL, "root: 2");
	refused(tally_reduce(t, x, NULL, 4, TALLY_INT32, TALLY_SUM, 0), EINVAL, "out must");
	refused(tally_broadcast(t, NULL, 4, TALLY_INT32, 0), EINVAL, "buffer must not be NULL");
	refused(tally_all_gather(t, x, NULL, 4, TALLY_INT32), EINVAL, "out must");
	refused(tally_barrier(NULL), EINVAL, "struct tally");
	refused(tally_barrier_start(t, NULL), EINVAL, "ret");
	refused(tally_hint(NULL, &(struct tally_hints){ 0 }), EINVAL, "struct tally");
	refused(tally_hint(t, NULL), EINVAL, "hints");
	refused(tally_hint(t, &(struct tally_hints){ .layer = 3 }), EINVAL, "say how many");
	refused(tally_hint(t, &(struct tally_hints){ .layer = 3, .layers = 3 }), EINVAL,
		"layer: 3; it must be below layers, 3");
	refused(tally_wait(NULL), EINVAL, "not a pending call");
	refused(tally_test(NULL, &done), EINVAL, "not a pending call");
	assert_int_equal(tally_allreduce(t, NULL, NULL, 0, TALLY_INT32, TALLY_SUM), 0);

	assert_int_equal(tally_barrier_start(t, &call), 0);
	refused(tally_test(call, NULL), EINVAL, "ret_done must not be NULL");
	assert_int_equal(tally_close(t), 0);
	assert_int_equal(tally_close(NULL), 0);
}

/* All but sums: a broadcast of nothing needs nobody. */
static void too_many_ranks_for_16_bits_are_refused(void **state)
{
	struct tally *t = NULL;
	float x[4] = { 0 };

	(void)state;
	assert_int_equal(tally_open(VALID(.workers = 129), &t), 0);
	refused(tally_allreduce(t, x, x, 4, TALLY_FLOAT32_HALVED, TALLY_SUM), EINVAL,
		"for 128 ranks at most, and the job has 129");
	refused(tally_reduce_scatter(t, x, x, 0, TALLY_FLOAT32_HALVED, TALLY_SUM), EINVAL,
		"use TALLY_FLOAT32");
	assert_int_equal(tally_broadcast(t, x, 0, TALLY_FLOAT32_HALVED, 0), 0);
	assert_int_equal(tally_close(t), 0);
	assert_int_equal(tally_open(VALID(.workers = 128), &t), 0);
	assert_int_equal(tally_allreduce(t, x, x, 0, TALLY_FLOAT32_HALVED, TALLY_SUM), 0);
	assert_int_equal(tally_close(t), 0);
}

#define REDUCTION(...)                                             \
	(&(struct tally_reduction){ .verb = TALLY_ALLREDUCE,       \
				    .dtype = TALLY_FLOAT32_HALVED, \
				    .op = TALLY_SUM,               \
				    .in = x,                       \
				    .out = x,                      \
				    .count = 4,                    \
				    .kept = kept,                  \
				    .lost = kept,                  \
				    __VA_ARGS__ })

static void reductions_with_bad_members_are_refused(void **state)
{
	struct {
		struct tally_reduction known;
		uint64_t more;
	} newer = { { 0 }, 1 };
	struct tally_call *call = NULL;
	struct tally *t = NULL;
	float x[4] = { 0 }, kept[4] = { 1 };

	(void)state;
	assert_int_equal(tally_open(VALID(), &t), 0);
	refused(tally_reduction_start(NULL, REDUCTION(), &call), EINVAL, "struct tally");
	refused(tally_reduction_start(t, NULL, &call), EINVAL, "reduction");
	refused(tally_reduction_start(t, REDUCTION(), NULL), EINVAL, "ret");
	refused(tally_reduction_start(t, REDUCTION(.verb = 0), &call), EINVAL, "verb: 0");
	/* NOLINTNEXTLINE(clang-analyzer-optin.core.EnumCastOutOfRange): that is the point */
	refused(tally_reduction_start(t, REDUCTION(.verb = 3), &call), EINVAL, "verb: 3");
	refused(tally_reduction_start(t, REDUCTION(.root = 1), &call), EINVAL, "root: 1");
	refused(tally_reduction_start(t, REDUCTION(.verb = TALLY_REDUCE, .root = 2), &call), EINVAL,
		"root: 2");
	refused(tally_reduction_start(t, REDUCTION(.in = NULL), &call), EINVAL, "in must");
	refused(tally_reduction_start(t, REDUCTION(.op = 0), &call), EINVAL, "op: 0");
	refused(tally_reduction_start(t, REDUCTION(.dtype = TALLY_FLOAT32), &call), EINVAL,
		"kept, lost: only with TALLY_FLOAT32_HALVED");
	refused(tally_reduction_start(t, REDUCTION(.dtype = TALLY_BFLOAT16, .kept = NULL), &call),
		EINVAL, "kept, lost");
	refused(tally_reduction_start_sized(t, &newer.known, sizeof(newer), &call), E2BIG, "older");
	refused(tally_reduction_start_sized(t, REDUCTION(), 0, &call), EINVAL, "size");

	assert_int_equal(tally_reduction_start(t, REDUCTION(.count = 0), &call), 0);
	assert_int_equal(tally_wait(call), 0);
	assert_int_equal(tally_reduction_start(t,
					       REDUCTION(.dtype = TALLY_INT32, .kept = NULL,
							 .lost = NULL, .count = 0),
					       &call),
			 0);
	assert_int_equal(tally_wait(call), 0);
	assert_true(kept[0] == 1);
	assert_int_equal(tally_close(t), 0);
}

static void nobody_there_is_a_timeout_and_then_the_job_is_over(void **state)
{
	struct tally_stats stats;
	struct tally *t = NULL;
	int32_t x[4] = { 0 };

	(void)state;
	assert_int_equal(tally_open(VALID(), &t), 0);
	refused(tally_allreduce(t, x, x, 4, TALLY_INT32, TALLY_SUM), ETIMEDOUT,
		"no node answered at 127.0.0.1 for 0.1 s: port unreachable");
	refused(tally_allreduce(t, x, x, 4, TALLY_INT32, TALLY_SUM), ECONNABORTED, "close it");
	tally_stats_read(t, &stats);
	assert_true(stats.sent >= 1);
	assert_int_equal(stats.chunks, 0);
	assert_int_equal(tally_close(t), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_out_of_range_are_named),
		cmocka_unit_test(addresses_that_are_none_are_quoted),
		cmocka_unit_test(two_workers_cannot_share_an_address),
		cmocka_unit_test(roots_are_of_the_same_workers),
		cmocka_unit_test(the_root_that_does_not_answer_is_named),
		cmocka_unit_test(job_files_that_are_not_there_are_named),
		cmocka_unit_test(a_job_file_is_opened_for_a_rank_it_has),
		cmocka_unit_test(calls_with_bad_arguments_are_refused),
		cmocka_unit_test(too_many_ranks_for_16_bits_are_refused),
		cmocka_unit_test(reductions_with_bad_members_are_refused),
		cmocka_unit_test(nobody_there_is_a_timeout_and_then_the_job_is_over),
	};

	return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
