// SPDX-License-Identifier: GPL-2.0-only
/* Which inner node is to be told of which run: agent/core/carry.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/carry.h"
#include "common/address.h"

#define MS 1000000ull

enum {
	NODES = 2,
	ID = 7
};

static struct books books;
static struct carry carry;
static struct job *job;

static void job_add(uint32_t id, const char *name)
{
	struct job facts = { .id = id, .workers = 4, .epoch = 3 };
	struct tree tree = { .nodes = NODES };
	struct why why;

	snprintf(facts.name, sizeof(facts.name), "%s", name);
	for (int i = 0; i < NODES; i++) {
		char text[] = "10.77.0.2";

		snprintf(tree.node[i].name, sizeof(tree.node[i].name), "a%d", i);
		text[sizeof(text) - 2] += i;
		assert_int_equal(address_parse(text, 31249, &tree.node[i].address), 0);
	}
	job = job_new(&facts);
	assert_non_null(job);
	assert_int_equal(job_tree_set(job, &tree), 0);
	assert_int_equal(books_job_restore(&books, job, &why), 0);
}

static void run_on(struct job *j, uint16_t epoch)
{
	j->epoch = epoch;
	j->run_window = 8;
}

/* The agent has started, and jobs come after that. */
static int begin(void **state)
{
	books_init(&books, 256);
	assert_int_equal(carry_look(&carry, &books, 0), 0);
	job_add(ID, "train");
	return 0;
}

static int end(void **state)
{
	carry_clear(&carry);
	books_clear(&books);
	return 0;
}

static struct carry_way *next_at(uint64_t now_ns)
{
	assert_int_equal(carry_look(&carry, &books, now_ns), 0);
	return carry_next(&carry, now_ns);
}

static void nobody_is_told_before_a_run_begins(void **state)
{
	assert_null(next_at(0));
	assert_true(carry_deadline_ns(&carry) == UINT64_MAX);
}

static void each_node_is_told_once_of_each_run(void **state)
{
	for (uint16_t epoch = 1; epoch < 4; epoch++) {
		unsigned int told = 0;

		run_on(job, epoch);
		for (int i = 0; i < NODES; i++) {
			struct carry_way *w = next_at(0);

			assert_non_null(w);
			assert_int_equal(w->said_epoch, epoch);
			assert_false(w->said_farewell);
			told |= 1u << w->node;
			carry_done(&carry, w, 0, "", 0);
		}
		assert_int_equal(told, 3);
		assert_null(next_at(1000000 * MS));
		assert_true(carry_deadline_ns(&carry) == UINT64_MAX);
		job->run_window = 0; /* the document stays for a while */
		assert_null(next_at(1000000 * MS));
	}
}

static void tell_all(uint64_t now_ns)
{
	struct carry_way *w;

	while ((w = next_at(now_ns)))
		carry_done(&carry, w, 0, "", now_ns);
}

static void a_run_that_is_over_is_said_farewell_after_a_while(void **state)
{
	const uint64_t over_ns = 1000 * MS, rest_ns = CARRY_REST_S * 1000 * MS;
	struct carry_way *w;
	struct why text;

	run_on(job, 1);
	tell_all(0);
	job->run_window = 0;
	assert_null(next_at(over_ns));
	assert_true(carry_deadline_ns(&carry) == over_ns + rest_ns);
	assert_null(next_at(over_ns + rest_ns - 1));
	for (int i = 0; i < NODES; i++) {
		w = next_at(over_ns + rest_ns);
		assert_non_null(w);
		assert_true(w->said_farewell);
		assert_int_equal(w->said_id, ID);
		assert_null(carry_find(&carry, job, w->node));
		if (i == 0) {
			carry_done(&carry, w, 0, "", over_ns + rest_ns);
			continue;
		}
		carry_done(&carry, w, -ECONNREFUSED, "refused", over_ns + rest_ns);
		carry_explain(w, job, &text);
		assert_non_null(strstr(text.text, "the run of job train is over, and inner node "));
	}
	tell_all(UINT64_MAX / 2);
	assert_null(carry.first);
	assert_null(next_at(UINT64_MAX / 2)); /* once */
	run_on(job, 2);
	for (int i = 0; i < NODES; i++) {
		w = next_at(UINT64_MAX / 2);
		assert_non_null(w);
		assert_false(w->said_farewell);
	}
}

static void a_run_that_follows_soon_needs_no_farewell(void **state)
{
	const uint64_t rest_ns = CARRY_REST_S * 1000 * MS;
	struct carry_way *w;

	for (uint16_t epoch = 1; epoch < 5; epoch++) {
		const uint64_t now_ns = epoch * rest_ns;

		run_on(job, epoch);
		for (int i = 0; i < NODES; i++) {
			w = next_at(now_ns);
			assert_non_null(w);
			assert_false(w->said_farewell);
			carry_done(&carry, w, 0, "", now_ns);
		}
		job->run_window = 0;
		assert_null(next_at(now_ns + 1));
	}
}

/* It is under way when the next run begins: who has answered it is told of that run. */
static void a_run_may_begin_during_the_farewell_to_the_one_before(void **state)
{
	const uint64_t rest_ns = CARRY_REST_S * 1000 * MS;
	struct carry_way *w;

	job->tree->nodes = 1;
	run_on(job, 1);
	tell_all(0);
	job->run_window = 0;
	assert_null(next_at(0));
	w = next_at(rest_ns);
	assert_true(w->said_farewell);
	run_on(job, 2);
	assert_null(next_at(rest_ns));
	assert_false(carry_done(&carry, w, 0, "", rest_ns));
	assert_ptr_equal(next_at(rest_ns), w);
	assert_false(w->said_farewell);
	assert_int_equal(w->said_epoch, 2);
}

/* The agent before may have ended between the run's end and the farewell. */
static void an_agent_that_starts_says_farewell_for_runs_that_are_over(void **state)
{
	const uint64_t rest_ns = CARRY_REST_S * 1000 * MS;
	unsigned int farewells = 0;
	struct carry_way *w;

	carry_clear(&carry);
	assert_null(next_at(0)); /* its run may be about to begin again */
	while ((w = next_at(rest_ns))) {
		farewells += w->said_farewell;
		carry_done(&carry, w, 0, "", rest_ns);
	}
	assert_int_equal(farewells, NODES);
	assert_null(carry.first);
	assert_true(carry_deadline_ns(&carry) == UINT64_MAX);
}

static void what_fails_comes_again_ever_later(void **state)
{
	uint64_t now_ns = 0, wait_ms = 1000;
	struct carry_way *w;

	run_on(job, 1);
	carry_done(&carry, next_at(0), 0, "", 0);
	w = next_at(0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(carry_done(&carry, w, -ECONNREFUSED, "nobody", now_ns), i == 0);
		assert_string_equal(w->trouble.text, "nobody");
		assert_true(carry_deadline_ns(&carry) == now_ns + wait_ms * MS);
		assert_null(next_at(now_ns + wait_ms * MS - 1));
		now_ns += wait_ms * MS;
		assert_ptr_equal(next_at(now_ns), w);
		wait_ms = wait_ms < 30000 ? 2 * wait_ms : 60000;
	}
	assert_true(carry_done(&carry, w, 0, "", now_ns));
	assert_string_equal(w->trouble.text, "");
	assert_null(next_at(UINT64_MAX));
}

static void a_run_that_is_over_is_told_to_nobody(void **state)
{
	run_on(job, 1);
	carry_done(&carry, next_at(0), -ETIMEDOUT, "away", 0);
	job->run_window = 0;
	assert_null(next_at(1000000 * MS));
	run_on(job, 2);
	assert_non_null(next_at(1000000 * MS));
	assert_non_null(next_at(1000000 * MS));
}

static void nothing_is_under_way_twice(void **state)
{
	struct carry_way *first, *second;

	run_on(job, 1);
	first = next_at(0);
	second = next_at(0);
	assert_ptr_not_equal(first, second);
	assert_null(next_at(0));
	run_on(job, 2);
	assert_null(next_at(0));
	/* What it says is told, but of the run before. */
	assert_false(carry_done(&carry, first, 0, "", 0));
	assert_ptr_equal(next_at(0), first);
	assert_int_equal(first->said_epoch, 2);
}

static void a_job_that_goes_is_said_farewell(void **state)
{
	struct carry_way *w;

	run_on(job, 1);
	carry_done(&carry, next_at(0), 0, "", 0);
	w = next_at(0); /* under way when the job goes */
	books_job_del(&books, job);
	job_add(ID + 1, "train"); /* another one of its name */
	for (int i = 0; i < 2; i++) {
		struct carry_way *farewell = i ? w : next_at(0);

		if (i) {
			carry_done(&carry, w, 0, "", 0);
			farewell = next_at(0);
		}
		assert_non_null(farewell);
		assert_true(farewell->said_farewell);
		assert_int_equal(farewell->id, ID);
		assert_string_equal(farewell->job, "train");
		carry_done(&carry, farewell, 0, "", 0);
	}
	assert_null(carry.first);
}

/* Its farewell would come too late, or take the later job away. */
static void a_later_job_of_that_name_takes_the_place_of_a_farewell(void **state)
{
	run_on(job, 1);
	carry_done(&carry, next_at(0), 0, "", 0);
	carry_done(&carry, next_at(0), 0, "", 0);
	books_job_del(&books, job);
	carry_done(&carry, next_at(0), -ECONNREFUSED, "away", 0); /* the other one is under way */
	next_at(0);
	job_add(ID + 1, "train");
	run_on(job, 1);
	for (int i = 0; i < NODES; i++) {
		struct carry_way *w = next_at(0);

		if (i) {
			assert_null(w);
			w = carry.first->under_way && carry.first->said_farewell
				    ? carry.first
				    : carry.first->next;
			assert_false(carry_done(&carry, w, 0, "", 0));
			w = next_at(0);
		}
		assert_non_null(w);
		assert_false(w->said_farewell);
		assert_int_equal(w->said_id, ID + 1);
		carry_done(&carry, w, 0, "", 0);
	}
	assert_null(next_at(UINT64_MAX));
}

static void another_name_with_that_number_is_another_job(void **state)
{
	unsigned int farewells = 0, documents = 0;
	struct carry_way *w;

	run_on(job, 1);
	carry_done(&carry, next_at(0), 0, "", 0);
	carry_done(&carry, next_at(0), 0, "", 0);
	books_job_del(&books, job);
	job_add(ID, "other");
	run_on(job, 1);
	while ((w = next_at(0))) {
		assert_string_equal(w->job, w->said_farewell ? "train" : "other");
		farewells += w->said_farewell;
		documents += !w->said_farewell;
		carry_done(&carry, w, 0, "", 0);
	}
	assert_int_equal(farewells, NODES);
	assert_int_equal(documents, NODES);
}

static void a_node_that_leaves_the_tree_is_said_farewell(void **state)
{
	struct carry_way *w;
	struct why text;

	run_on(job, 1);
	carry_done(&carry, next_at(0), 0, "", 0);
	carry_done(&carry, next_at(0), 0, "", 0);
	job->tree->nodes = 1;
	w = next_at(0);
	assert_non_null(w);
	assert_true(w->said_farewell);
	assert_string_equal(w->name, "a1");
	assert_null(next_at(0));
	carry_done(&carry, w, -ECONNREFUSED, "refused", 0);
	carry_explain(w, books_job_numbered(&books, w->id), &text);
	assert_string_equal(text.text, "job train goes on without inner node a1 (10.77.0.3), which "
				       "does not know that yet: refused");
	books_job_del(&books, job);
	carry_explain(w, books_job_numbered(&books, w->id), &text);
	assert_string_equal(text.text, "job train is not there any more, and inner node a1 "
				       "(10.77.0.3) does not know that yet: refused");
}

static void a_tree_that_is_found_anew_is_told(void **state)
{
	struct carry_way *w;

	run_on(job, 4);
	while ((w = next_at(0)))
		carry_done(&carry, w, 0, "", 0);
	job->tree->generation++;
	w = next_at(1);
	assert_non_null(w);
	assert_int_equal(w->said_generation, 1);
	job->tree->generation++; /* while that is under way */
	assert_int_equal(carry_look(&carry, &books, 2), 0);
	assert_false(carry_done(&carry, w, 0, "", 3));
	assert_false(w->told);
	for (int i = 0; i < NODES; i++) {
		w = next_at(4);
		assert_non_null(w);
		assert_int_equal(w->said_generation, 2);
		carry_done(&carry, w, 0, "", 4);
	}
	assert_null(next_at(5));
}

/* Of an earlier run, or tree, it says nothing: whoever looks may carry documents by hand. */
static void only_the_present_run_is_known(void **state)
{
	struct carry_way *w;

	run_on(job, 4);
	assert_null(carry_find(&carry, job, 0));
	while ((w = next_at(0)))
		carry_done(&carry, w, 0, "", 0);
	assert_non_null(carry_find(&carry, job, 0));
	assert_true(carry_find(&carry, job, 0)->told);
	run_on(job, 5);
	assert_null(carry_find(&carry, job, 0));
	run_on(job, 4);
	job->tree->generation++;
	assert_null(carry_find(&carry, job, 0));
	assert_int_equal(carry_look(&carry, &books, 0), 0);
	assert_non_null(carry_find(&carry, job, 0));
	assert_false(carry_find(&carry, job, 0)->told);
}

static void farewells_are_given_up(void **state)
{
	uint64_t now_ns = 0;
	int tries = 0;

	run_on(job, 1);
	for (int i = 0; i < NODES; i++)
		carry_done(&carry, next_at(0), 0, "", 0);
	books_job_del(&books, job);
	assert_int_equal(carry_look(&carry, &books, 0), 0);
	while (carry.first) {
		struct carry_way *w = carry_next(&carry, now_ns);

		if (w)
			carry_done(&carry, w, -ETIMEDOUT, "away", now_ns);
		else
			now_ns = carry_deadline_ns(&carry);
		tries += w != NULL;
		assert_true(tries < 1000);
	}
	assert_in_range(now_ns / MS / 1000, CARRY_FAREWELL_S, CARRY_FAREWELL_S + 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_is_told_before_a_run_begins, begin, end),
		cmocka_unit_test_setup_teardown(each_node_is_told_once_of_each_run, begin, end),
		cmocka_unit_test_setup_teardown(a_run_that_is_over_is_said_farewell_after_a_while,
						begin, end),
		cmocka_unit_test_setup_teardown(a_run_that_follows_soon_needs_no_farewell, begin,
						end),
		cmocka_unit_test_setup_teardown(
			a_run_may_begin_during_the_farewell_to_the_one_before, begin, end),
		cmocka_unit_test_setup_teardown(
			an_agent_that_starts_says_farewell_for_runs_that_are_over, begin, end),
		cmocka_unit_test_setup_teardown(what_fails_comes_again_ever_later, begin, end),
		cmocka_unit_test_setup_teardown(a_run_that_is_over_is_told_to_nobody, begin, end),
		cmocka_unit_test_setup_teardown(nothing_is_under_way_twice, begin, end),
		cmocka_unit_test_setup_teardown(a_job_that_goes_is_said_farewell, begin, end),
		cmocka_unit_test_setup_teardown(
			a_later_job_of_that_name_takes_the_place_of_a_farewell, begin, end),
		cmocka_unit_test_setup_teardown(another_name_with_that_number_is_another_job, begin,
						end),
		cmocka_unit_test_setup_teardown(a_node_that_leaves_the_tree_is_said_farewell, begin,
						end),
		cmocka_unit_test_setup_teardown(a_tree_that_is_found_anew_is_told, begin, end),
		cmocka_unit_test_setup_teardown(only_the_present_run_is_known, begin, end),
		cmocka_unit_test_setup_teardown(farewells_are_given_up, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
