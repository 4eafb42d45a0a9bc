// SPDX-License-Identifier: GPL-2.0-only
/* Traces are what they say they are: means, seasons, bursts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "agent/policy/traces.h"

enum {
	LONG = 40000,
};

static double value[LONG];

static double mean_of_trace(const char *name, uint64_t seed)
{
	double sum = 0;
	struct trace t;

	trace_begin(&t, trace_find(name), seed);
	for (int i = 0; i < LONG; i++) {
		value[i] = trace_next(&t);
		assert_true(value[i] >= 0 && value[i] < 20);
		sum += value[i];
	}
	return sum / LONG;
}

static double autocorrelation(double mean, int lag)
{
	double both = 0, own = 0;

	for (int i = 0; i + lag < LONG; i++) {
		both += (value[i] - mean) * (value[i + lag] - mean);
		own += (value[i] - mean) * (value[i] - mean);
	}
	return both / own;
}

/* The deviation of means over so many steps. */
static double deviation_over(double mean, int steps)
{
	double sum = 0;
	int n = LONG / steps;

	for (int i = 0; i < n; i++) {
		double block = 0;

		for (int k = 0; k < steps; k++)
			block += value[i * steps + k];
		sum += pow(block / steps - mean, 2);
	}
	return sqrt(sum / n);
}

static void a_seed_gives_the_same_trace_again(void **state)
{
	assert_null(trace_find("none"));
	for (unsigned int k = 0; k < TRACE_KINDS_COUNT; k++) {
		struct trace a, b, c;
		bool differs = false;

		assert_ptr_equal(trace_find(TRACE_KINDS[k].name), &TRACE_KINDS[k]);
		trace_begin(&a, &TRACE_KINDS[k], 7);
		trace_begin(&b, &TRACE_KINDS[k], 7);
		trace_begin(&c, &TRACE_KINDS[k], 8);
		for (int i = 0; i < 1000; i++) {
			double x = trace_next(&a);

			assert_true(x == trace_next(&b));
			differs = differs || x != trace_next(&c);
		}
		assert_true(differs);
	}
}

static void steady_traces_are_noise_around_one(void **state)
{
	double mean = mean_of_trace("steady", 1);

	assert_true(fabs(mean - 1) < 0.01);
	assert_true(fabs(deviation_over(mean, 1) - 0.1) < 0.005);
	assert_true(fabs(autocorrelation(mean, 1)) < 0.03);
}

static void diurnal_traces_repeat_every_day(void **state)
{
	double mean = mean_of_trace("diurnal", 1);

	assert_true(fabs(mean - 1) < 0.01);
	assert_true(autocorrelation(mean, TRACE_DAY) > 0.9);
	assert_true(autocorrelation(mean, TRACE_DAY / 2) < -0.5);
}

/*
 * Means over m steps of independent values deviate by m^-0.5; of self-similar ones by m^(H - 1),
 * where H = (3 - shape) / 2 = 0.75 (W. Willinger and others, IEEE/ACM Trans. Networking 5, 1997).
 */
static void bursty_traces_are_bursty_over_long_times(void **state)
{
	double hurst = 0, mean = 0;

	for (int seed = 1; seed <= 5; seed++) {
		double of = mean_of_trace("bursty", seed);

		mean += of / 5;
		hurst += (1 + log10(deviation_over(of, 1000) / deviation_over(of, 100))) / 5;
	}
	print_message("bursty: mean %.2f, H %.2f\n", mean, hurst);
	assert_true(mean > 0.85 && mean < 1.15); /* 3 * 10 / (10 + 20) */
	assert_true(hurst > 0.65 && hurst < 0.95);
	mean = mean_of_trace("steady", 1);
	hurst = 1 + log10(deviation_over(mean, 1000) / deviation_over(mean, 100));
	assert_true(hurst > 0.3 && hurst < 0.62);
}

static void training_computes_and_sends_by_turns(void **state)
{
	double mean = mean_of_trace("periodic", 1);
	int began = -1, iterations = 0;

	assert_true(fabs(mean - 1) < 0.02); /* 2.5 * 8 / 20 */
	for (int i = 1; i < LONG; i++) {
		if (value[i] == 0 || value[i - 1] > 0)
			continue;
		if (began > 0)
			assert_in_range(i - began, 18, 22);
		iterations += began > 0;
		began = i;
	}
	assert_in_range(iterations, LONG / TRACE_ITERATION - 20, LONG / TRACE_ITERATION + 20);
}

/* Over five steps a ramp moves further than noise, a plateau does not. */
static void ramps_rise_fall_and_stay(void **state)
{
	int rises = 0, falls = 0, stays = 0;

	mean_of_trace("ramps", 1);
	for (int i = 0; i + 20 < LONG; i += 20) {
		double by = value[i + 15] - value[i];

		rises += by > 0.15;
		falls += by < -0.15;
		stays += fabs(by) < 0.06;
	}
	assert_in_range(rises, LONG / 20 / 8, LONG / 20 / 2);
	assert_in_range(falls, LONG / 20 / 8, LONG / 20 / 2);
	assert_in_range(stays, LONG / 20 / 4, LONG / 20 * 3 / 4);
}

/* A job comes every 25 steps and stays for 100 on average (50 * 2 / 1), at 0.3: Little's law. */
static void jobs_come_and_go(void **state)
{
	double mean = 0;

	for (int seed = 1; seed <= 5; seed++)
		mean += mean_of_trace("jobs", seed) / 5;
	print_message("jobs: mean %.2f\n", mean);
	assert_true(mean > 1.0 && mean < 1.4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_seed_gives_the_same_trace_again),
		cmocka_unit_test(steady_traces_are_noise_around_one),
		cmocka_unit_test(diurnal_traces_repeat_every_day),
		cmocka_unit_test(bursty_traces_are_bursty_over_long_times),
		cmocka_unit_test(training_computes_and_sends_by_turns),
		cmocka_unit_test(ramps_rise_fall_and_stay),
		cmocka_unit_test(jobs_come_and_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
