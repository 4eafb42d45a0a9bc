// SPDX-License-Identifier: GPL-2.0-only
/* How jobs of the cluster stand: agent/cluster/standing.h. */
#include "agent/cluster/standing.h"
#include "shared_world.h"

static int open_world(void **state)
{
	struct cluster *c = *state = malloc(sizeof(*c));

	assert_non_null(c);
	cluster_open(c);
	cluster_want(c, "j", 2, 0, 0);
	return 0;
}

static int close_world(void **state)
{
	cluster_close(*state);
	free(*state);
	return 0;
}

static enum standing standing(const struct cluster *c)
{
	return standing_of(cluster_job(c, "j"), &c->picture);
}

static bool is_due(const struct cluster *c)
{
	return standing_is_due(cluster_job(c, "j"), &c->picture);
}

static void a_job_forms_until_all_workers_have_come(void **state)
{
	struct cluster *c = *state;

	assert_int_equal(standing(c), STANDING_FORMING);
	cluster_wait(c, "j", "0");
	assert_int_equal(standing(c), STANDING_FORMING);
	assert_false(is_due(c));
	cluster_wait(c, "j", "01");
	assert_int_equal(standing(c), STANDING_DUE);
	assert_true(is_due(c));
}

static void a_job_stands_as_its_root_reports(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	assert_int_equal(standing(c), STANDING_PLACED); /* it reports, and has it in a moment */
	cluster_tell(c, "j", 1, false);
	assert_int_equal(standing(c), STANDING_PLACED);
	cluster_tell(c, "j", 1, true);
	assert_int_equal(standing(c), STANDING_RUNNING);
	assert_ptr_equal(standing_there(cluster_job(c, "j"), &c->picture),
			 &cluster_node(c, 1)->job[0]);
	picture_drop(&c->picture, "n1");
	assert_int_equal(standing(c), STANDING_SILENT);
	assert_null(standing_root(cluster_job(c, "j"), &c->picture));
}

/* Who sums on the way for another root, or has another job, says nothing of this one's root. */
static void only_a_root_counts(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	cluster_tell(c, "j", 1, true)->inner = true;
	assert_null(standing_there(cluster_job(c, "j"), &c->picture));
	assert_int_equal(standing(c), STANDING_PLACED);
	cluster_tell(c, "j", 1, true)->id++;
	assert_null(standing_there(cluster_job(c, "j"), &c->picture));
	cluster_tell_no_more(c, 1);
	cluster_tell(c, "j", 2, true)->inner = true;
	assert_null(standing_elsewhere(cluster_job(c, "j"), &c->picture));
}

static void a_run_may_be_elsewhere(void **state)
{
	struct cluster *c = *state;
	const struct shared_job *j = cluster_job(c, "j");

	cluster_place(c, "j", "01", 1);
	cluster_tell(c, "j", 2, true);
	assert_ptr_equal(standing_elsewhere(j, &c->picture), cluster_node(c, 2));
	assert_int_equal(standing(c), STANDING_RUNNING);
	cluster_tell(c, "j", 1, false);
	assert_ptr_equal(standing_elsewhere(j, &c->picture), cluster_node(c, 2));
	cluster_tell(c, "j", 1, true);
	assert_null(standing_elsewhere(j, &c->picture));
	cluster_tell_no_more(c, 1);
	cluster_tell(c, "j", 2, false);
	assert_null(standing_elsewhere(j, &c->picture));
}

/* Its root is not silent: it says why. One that takes that back is the root again. */
static void a_refused_job_is_to_be_placed(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	cluster_put(c, "refusal/j/n1", "no such \033 tenant");
	assert_string_equal(standing_refused_why(cluster_job(c, "j"), "n1"), "no such ? tenant");
	assert_null(standing_refused_why(cluster_job(c, "j"), "n2"));
	assert_int_equal(standing(c), STANDING_DUE);
	cluster_put(c, "refusal/j/n1", "another reason");
	assert_string_equal(standing_refused_why(cluster_job(c, "j"), "n1"), "another reason");
	cluster_put(c, "refusal/j/n1", NULL);
	assert_int_equal(standing(c), STANDING_PLACED);
	assert_false(standing_is_refused(cluster_job(c, "j"), "n1"));
}

/* The silent root may have its run on, until all its workers have come again. */
static void a_silent_root_keeps_its_job_until_all_workers_have_come(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	assert_false(is_due(c));
	picture_drop(&c->picture, "n1");
	cluster_wait(c, "j", "0");
	assert_false(is_due(c));
	cluster_wait(c, "j", "01");
	assert_true(is_due(c));
}

static void a_cordoned_root_keeps_its_run_alone(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	cluster_tell(c, "j", 1, true);
	cluster_wait(c, "j", "01");
	assert_false(is_due(c));
	cluster_node(c, 1)->cordoned = true;
	assert_false(is_due(c));
	cluster_tell(c, "j", 1, false);
	assert_true(is_due(c));
	cluster_wait_end(c, "j", "0");
	assert_false(is_due(c));
	cluster_tell(c, "j", 2, true); /* from where it would move there */
	assert_true(is_due(c));
	cluster_node(c, 1)->cordoned = false;
	assert_false(is_due(c));
}

/* Its workers are known by its place, or have come again. */
static void a_job_that_its_root_refused_is_due(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	cluster_refuse(c, "j", 2);
	assert_false(is_due(c));
	cluster_refuse(c, "j", 1);
	assert_true(standing_is_refused(cluster_job(c, "j"), "n1"));
	assert_false(standing_is_refused(cluster_job(c, "j"), "n3"));
	assert_true(is_due(c));
	cluster_place(c, "j", "0", 1);
	assert_false(is_due(c));
	cluster_tell(c, "j", 1, true);
	cluster_wait(c, "j", "01");
	assert_true(is_due(c));
}

/* A place of an earlier job of that name is none, nor is one of a job that is gone. */
static void another_jobs_place_is_none(void **state)
{
	struct cluster *c = *state;

	cluster_place(c, "j", "01", 1);
	cluster_tell(c, "j", 1, true);
	cluster_want(c, "j", 2, 0, 0);
	assert_int_equal(standing(c), STANDING_FORMING);
	assert_null(standing_root(cluster_job(c, "j"), &c->picture));
	cluster_wait(c, "j", "01");
	cluster_put(c, WANTED_JOBS "j", NULL);
	assert_false(standing_is_due(c->shared.job[0], &c->picture));
}

#define FACT(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(a_job_forms_until_all_workers_have_come),
		FACT(a_job_stands_as_its_root_reports),
		FACT(only_a_root_counts),
		FACT(a_run_may_be_elsewhere),
		FACT(a_refused_job_is_to_be_placed),
		FACT(a_silent_root_keeps_its_job_until_all_workers_have_come),
		FACT(a_cordoned_root_keeps_its_run_alone),
		FACT(a_job_that_its_root_refused_is_due),
		FACT(another_jobs_place_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
