// SPDX-License-Identifier: GPL-2.0-only
/* Jobs that compute and communicate by turns; TALLY_SEED=n runs one random case. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "random.h"
#include "sim/phases.h"
#include "slow_phases.h"

enum {
	JOBS_MAX = 4,
	LINKS_MAX = 3,
	CASES = 300,
};

static const struct fair_use first_link = { .link = 0, .times = 1 };

static struct phases_job job_of(double arrives_s, double compute_s, double bytes,
				uint32_t iterations)
{
	return (struct phases_job){
		.arrives_s = arrives_s,
		.compute_s = compute_s,
		.bytes = bytes,
		.iterations = iterations,
		.flow = { .use = &first_link, .uses = 1, .weight = 1, .limit = INFINITY },
	};
}

static void assert_about(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%.17g is not %.17g", value, expected);
}

/* On one link of 10 bytes a second. */
static void run(const struct phases_job *job, unsigned int jobs, struct phases_result *ret,
		double *ret_bytes)
{
	const double capacity = 10;

	assert_int_equal(phases_run(&capacity, 1, job, jobs, ret, ret_bytes), 0);
}

static void a_job_alone_takes_the_sum_of_its_phases(void **state)
{
	const struct phases_job job = job_of(3, 0.5, 20, 7);
	struct phases_result result;
	double bytes;

	run(&job, 1, &result, &bytes);
	assert_about(result.ended_s, 3 + 7 * (0.5 + 2));
	assert_about(result.communicated_s, 14);
	assert_about(bytes, 140);
}

static void who_communicates_at_the_same_time_shares(void **state)
{
	const struct phases_job job[] = { job_of(0, 1, 20, 1), job_of(0, 1, 40, 1) };
	struct phases_result result[2];

	run(job, 2, result, NULL);
	assert_about(result[0].ended_s, 1 + 4); /* at 5 a second */
	assert_about(result[1].ended_s, 1 + 4 + 2);
}

static void who_computes_meanwhile_does_not(void **state)
{
	const struct phases_job job[] = { job_of(0, 2, 20, 5), job_of(2, 2, 20, 5) };
	struct phases_result result[2];

	run(job, 2, result, NULL);
	assert_about(result[0].ended_s, 20);
	assert_about(result[1].ended_s, 22);
}

static void weights_and_limits_are_those_of_fair_rates(void **state)
{
	struct phases_job job[] = { job_of(0, 0, 30, 1), job_of(0, 0, 20, 1), job_of(0, 0, 1, 1) };
	struct phases_result result[3];

	job[0].flow.weight = 3;
	job[2].flow.limit = 0.5;
	run(job, 3, result, NULL);
	assert_about(result[2].ended_s, 2);
	/* 9.5 are shared by three to one for two seconds, and 10 afterwards. */
	assert_about(result[0].ended_s, 2 + (30 - 2 * 7.125) / 7.5);
	assert_about(result[1].ended_s, result[0].ended_s + (20 - 4.75 - 2.1 * 2.5) / 10);
}

static void a_job_may_have_one_phase_only(void **state)
{
	const struct phases_job job[] = { job_of(0, 1.5, 0, 4), job_of(0, 0, 5, 4) };
	struct phases_result result[2];

	run(job, 2, result, NULL);
	assert_about(result[0].ended_s, 6);
	assert_about(result[0].communicated_s, 0);
	assert_about(result[1].ended_s, 2);
}

static void what_can_never_end_is_said(void **state)
{
	const double none[] = { 0 };
	const struct phases_job job[] = { job_of(0, 1, 1, 1), job_of(5, 1, 0, 1) };
	struct phases_result result[2] = { { .ended_s = -1 } };

	assert_int_equal(phases_run(none, 1, job, 2, result, NULL), -EDEADLK);
	assert_true(result[0].ended_s == -1);
}

static void numbers_out_of_range_are_refused(void **state)
{
	const struct phases_job bad[] = {
		job_of(-1, 1, 1, 1),	   job_of(NAN, 1, 1, 1), job_of(0, -1, 1, 1),
		job_of(0, INFINITY, 1, 1), job_of(0, 1, -1, 1),	 job_of(0, 0, 0, 1),
		job_of(0, 1, 1, 0),
	};
	const double capacity = 10;
	struct phases_result result;
	struct phases_job job;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(phases_run(&capacity, 1, &bad[i], 1, &result, NULL), -EINVAL);
	job = job_of(0, 1, 1, 1);
	job.flow.weight = 0;
	assert_int_equal(phases_run(&capacity, 1, &job, 1, &result, NULL), -EINVAL);
	assert_int_equal(phases_run(NULL, 0, NULL, 0, NULL, NULL), 0);
}

/* --- beside a slow obvious version: small steps of time -------------------------------------- */

enum {
	STEPS_A_SECOND = 20000
};

static void step_by_step(const double *capacity, const struct phases_job *job, unsigned int jobs,
			 double *ret_ended_s)
{
	double left[JOBS_MAX] = { 0 }, until_s[JOBS_MAX], rate[JOBS_MAX];
	uint32_t iterations[JOBS_MAX];
	unsigned int over = 0;

	for (unsigned int i = 0; i < jobs; i++) {
		until_s[i] = job[i].arrives_s + job[i].compute_s;
		iterations[i] = job[i].iterations;
	}
	for (uint64_t step = 0; over < jobs; step++) {
		double now_s = (double)step / STEPS_A_SECOND;
		struct fair_flow flow[JOBS_MAX];
		uint32_t whose[JOBS_MAX];
		unsigned int n = 0;

		for (unsigned int i = 0; i < jobs; i++) {
			if (iterations[i] && left[i] <= 0 && until_s[i] <= now_s)
				left[i] = job[i].bytes;
			if (left[i] <= 0)
				continue;
			flow[n] = job[i].flow;
			whose[n++] = i;
		}
		assert_int_equal(fair_rates(capacity, LINKS_MAX, flow, n, rate), 0);
		for (unsigned int k = 0; k < n; k++) {
			unsigned int i = whose[k];

			left[i] -= rate[k] / STEPS_A_SECOND;
			if (left[i] > 0)
				continue;
			until_s[i] = now_s + job[i].compute_s;
			if (--iterations[i] == 0) {
				ret_ended_s[i] = now_s;
				over++;
			}
		}
	}
}

static void random_case(uint64_t seed)
{
	struct fair_use use[JOBS_MAX][LINKS_MAX];
	struct phases_job job[JOBS_MAX];
	struct phases_result result[JOBS_MAX];
	double capacity[LINKS_MAX], ended_s[JOBS_MAX], carried[LINKS_MAX], due[LINKS_MAX] = { 0 };
	unsigned int jobs = 1 + random_below(&seed, JOBS_MAX);

	for (unsigned int l = 0; l < LINKS_MAX; l++)
		capacity[l] = 5 + random_below(&seed, 20);
	for (unsigned int i = 0; i < jobs; i++) {
		unsigned int uses = 0;

		job[i] = job_of(random_below(&seed, 100) / 100., random_below(&seed, 50) / 100.,
				1 + random_below(&seed, 10), 1 + random_below(&seed, 4));
		for (uint32_t l = 0; l < LINKS_MAX; l++)
			if (l == i % LINKS_MAX || chance(&seed, 500))
				use[i][uses++] = (struct fair_use){
					.link = l, .times = 1 + random_below(&seed, 3)
				};
		job[i].flow.use = use[i];
		job[i].flow.uses = uses;
		job[i].flow.weight = 1 + random_below(&seed, 3);
		for (unsigned int u = 0; u < uses; u++)
			due[use[i][u].link] += job[i].iterations * job[i].bytes * use[i][u].times;
	}
	assert_int_equal(phases_run(capacity, LINKS_MAX, job, jobs, result, carried), 0);
	step_by_step(capacity, job, jobs, ended_s);
	for (unsigned int i = 0; i < jobs; i++)
		if (fabs(result[i].ended_s - ended_s[i]) > 0.01)
			fail_msg("job %u ends at %.4f, and step by step at %.4f", i,
				 result[i].ended_s, ended_s[i]);
	for (unsigned int l = 0; l < LINKS_MAX; l++)
		assert_about(carried[l], due[l]);
}

static void it_is_as_step_by_step(void **state)
{
	const char *one = getenv("TALLY_SEED");

	if (one) {
		random_case(strtoull(one, NULL, 10));
		return;
	}
	for (uint64_t seed = 1; seed <= CASES; seed++)
		random_case(seed);
}

/* --- beside the slow way that finds all rates at each event ----------------------------------- */

enum {
	MANY = 30, /* jobs, */
	ROADS = 40, /* and links, of which each job uses a few */
	USES = 6,
	CROWDS = 40,
};

struct crowd {
	double capacity[ROADS];
	struct fair_use use[MANY][USES];
	struct phases_job job[MANY];
};

static void use_some(uint64_t *seed, struct fair_use *use, struct fair_flow *flow)
{
	uint32_t first = random_below(seed, ROADS - USES * 2), uses = 1 + random_below(seed, USES);

	for (uint32_t u = 0; u < uses; u++)
		use[u] = (struct fair_use){ .link = first + 2 * u,
					    .times = 1 + random_below(seed, 3) };
	*flow = (struct fair_flow){ .use = use, .uses = uses };
	flow->weight = 1 + random_below(seed, 2);
	flow->limit = chance(seed, 200) ? 1 + random_below(seed, 5) : INFINITY;
}

static void crowd_make(uint64_t seed, struct crowd *ret)
{
	for (unsigned int l = 0; l < ROADS; l++)
		ret->capacity[l] = 5 + random_below(&seed, 20);
	for (unsigned int i = 0; i < MANY; i++) {
		ret->job[i] = job_of(random_below(&seed, 3000) / 100.,
				     random_below(&seed, 500) / 100., random_below(&seed, 50),
				     1 + random_below(&seed, 20));
		ret->job[i].compute_s += ret->job[i].bytes == 0;
		use_some(&seed, ret->use[i], &ret->job[i].flow);
	}
}

/* Sums that come about in another order may differ in their last digits, and then by those. */
static const char *crowd_is_the_same(uint64_t seed)
{
	struct phases_result result[MANY], slow[MANY];
	double carried[ROADS], slowly_carried[ROADS];
	struct crowd c;

	crowd_make(seed, &c);
	assert_int_equal(phases_run(c.capacity, ROADS, c.job, MANY, result, carried), 0);
	assert_int_equal(slow_phases_run(c.capacity, ROADS, c.job, MANY, slow, slowly_carried), 0);
	for (unsigned int i = 0; i < MANY; i++) {
		if (fabs(result[i].ended_s - slow[i].ended_s) > 1e-6)
			return "a job ends at another time";
		if (fabs(result[i].communicated_s - slow[i].communicated_s) > 1e-6)
			return "a job communicates for another time";
	}
	for (unsigned int l = 0; l < ROADS; l++)
		if (fabs(carried[l] - slowly_carried[l]) > 1e-6)
			return "a link carries something else";
	return NULL;
}

static void new_rates_for_those_who_compete_are_enough(void **state)
{
	run_seeds(CROWDS, crowd_is_the_same);
}

/* --- jobs that move ---------------------------------------------------- */

static void until(struct phases *p, double until_s, uint32_t expected)
{
	uint32_t ended;

	assert_int_equal(phases_go(p, until_s, &ended), 0);
	assert_int_equal(ended, expected);
}

static void a_job_that_moves_sends_what_is_left_on_other_links(void **state)
{
	static const struct fair_use second = { .link = 1, .times = 2 };
	const struct fair_flow moved = {
		.use = &second, .uses = 1, .weight = 1, .limit = INFINITY
	};
	const struct phases_job job = job_of(0, 1, 40, 2);
	const double capacity[] = { 10, 10 };
	_cleanup_(phases_freep) struct phases *p = NULL;
	double carried[2];

	assert_int_equal(phases_open(capacity, 2, 1, &p), 0);
	assert_int_equal(phases_begin(p, 0, &job), 0);
	until(p, 2, PHASES_NONE); /* 10 of 40 are sent */
	assert_int_equal(phases_move(p, 0, &moved, 3), 0);
	phases_carried(p, carried);
	assert_about(carried[0], 10);
	until(p, INFINITY, 0);
	assert_about(phases_now(p), 2 + 3 + 30 / 5. + 1 + 40 / 5.);
	assert_about(phases_result(p, 0).communicated_s, 1 + 6 + 8);
	phases_carried(p, carried);
	assert_about(carried[0], 10);
	assert_about(carried[1], 2 * 70);
}

/* A job without links and with a limit of 0 stands still until it gets links. */
static void a_job_may_stand_still(void **state)
{
	const struct fair_flow still = { .weight = 1, .limit = 0 };
	const struct phases_job job[] = { job_of(0, 0, 40, 1), job_of(0, 1, 20, 1) };
	const double capacity = 10;
	_cleanup_(phases_freep) struct phases *p = NULL;
	uint32_t ended;

	assert_int_equal(phases_open(&capacity, 1, 2, &p), 0);
	assert_int_equal(phases_begin(p, 0, &job[0]), 0);
	assert_int_equal(phases_begin(p, 1, &job[1]), 0);
	until(p, 2, PHASES_NONE); /* 10 and 5, and 5 */
	assert_int_equal(phases_move(p, 0, &still, 0), 0);
	until(p, INFINITY, 1);
	assert_about(phases_now(p), 2 + 15 / 10.);
	assert_int_equal(phases_go(p, INFINITY, &ended), -EDEADLK);
	until(p, 5, PHASES_NONE);
	assert_int_equal(phases_move(p, 0, &job[0].flow, 0), 0);
	until(p, INFINITY, 0);
	assert_about(phases_now(p), 5 + 25 / 10.);
	assert_int_equal(phases_move(p, 0, &job[0].flow, 0), -EINVAL); /* has ended */
}

/* Whatever moves to where it was changes nothing. */
static const char *moves_to_the_same_place_change_nothing(uint64_t seed)
{
	_cleanup_(phases_freep) struct phases *p = NULL;
	struct phases_result slow[MANY];
	uint32_t over = 0, ended;
	struct crowd c;

	crowd_make(seed, &c);
	for (unsigned int i = 0; i < MANY; i++)
		c.job[i].arrives_s = 0;
	assert_int_equal(slow_phases_run(c.capacity, ROADS, c.job, MANY, slow, NULL), 0);
	assert_int_equal(phases_open(c.capacity, ROADS, MANY, &p), 0);
	for (unsigned int i = 0; i < MANY; i++)
		assert_int_equal(phases_begin(p, i, &c.job[i]), 0);
	for (double now_s = 0.7; over < MANY; now_s += 0.7) {
		uint32_t i = random_below(&seed, MANY);

		for (;;) {
			assert_int_equal(phases_go(p, now_s, &ended), 0);
			if (ended == PHASES_NONE)
				break;
			over++;
			if (fabs(phases_now(p) - slow[ended].ended_s) > 1e-6)
				return "a job ends at another time";
		}
		phases_move(p, i, &c.job[i].flow, 0);
	}
	return NULL;
}

static void who_moves_to_the_same_place_loses_nothing(void **state)
{
	run_seeds(CROWDS, moves_to_the_same_place_change_nothing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_alone_takes_the_sum_of_its_phases),
		cmocka_unit_test(who_communicates_at_the_same_time_shares),
		cmocka_unit_test(who_computes_meanwhile_does_not),
		cmocka_unit_test(weights_and_limits_are_those_of_fair_rates),
		cmocka_unit_test(a_job_may_have_one_phase_only),
		cmocka_unit_test(what_can_never_end_is_said),
		cmocka_unit_test(numbers_out_of_range_are_refused),
		cmocka_unit_test(it_is_as_step_by_step),
		cmocka_unit_test(new_rates_for_those_who_compete_are_enough),
		cmocka_unit_test(a_job_that_moves_sends_what_is_left_on_other_links),
		cmocka_unit_test(a_job_may_stand_still),
		cmocka_unit_test(who_moves_to_the_same_place_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
