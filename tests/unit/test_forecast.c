// SPDX-License-Identifier: GPL-2.0-only
/* Rates of counters that are read at irregular times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "agent/core/forecast.h"

enum {
	S = 1000 * 1000 * 1000
};

static const double TAU = 2;

static struct forecast_rate rate;

static int prepare(void **state)
{
	forecast_rate_init(&rate, TAU);
	return 0;
}

static void assert_near(double is, double wanted)
{
	if (!(fabs(is - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
		fail_msg("%.17g is not %.17g", is, wanted);
}

static void one_reading_is_no_rate(void **state)
{
	assert_false(forecast_rate_reading(&rate, 7ull * S, 1000000));
	assert_near(rate.per_second, 0);
}

static void a_constant_rate_is_known_after_one_interval_and_stays(void **state)
{
	for (unsigned int i = 0; i < 100; i++) {
		uint64_t at = (i * i + i) * 123456000ull; /* ever longer intervals */

		assert_int_equal(forecast_rate_reading(&rate, at, at / 1000), i > 0);
		if (i > 0)
			assert_near(rate.per_second, 1e6);
	}
}

static void a_step_is_followed_to_63_percent_after_tau(void **state)
{
	forecast_rate_reading(&rate, 0, 0);
	forecast_rate_reading(&rate, S, 0);
	forecast_rate_reading(&rate, 2ull * S, 100);
	forecast_rate_reading(&rate, 3ull * S, 200);
	assert_near(rate.per_second, 100 * (1 - exp(-1)));
	assert_near(rate.interval_per_second, 100);
}

/* The same counter, read once or a thousand times on the way. */
static void weights_follow_time_and_not_the_number_of_readings(void **state)
{
	struct forecast_rate often;

	forecast_rate_init(&often, TAU);
	forecast_rate_reading(&rate, 0, 0);
	forecast_rate_reading(&often, 0, 0);
	forecast_rate_reading(&rate, S, 5000);
	forecast_rate_reading(&often, S, 5000);
	for (unsigned int i = 1; i <= 1000; i++)
		forecast_rate_reading(&often, S + i * (S / 1000), 5000 + i);
	forecast_rate_reading(&rate, 2ull * S, 6000);
	assert_near(rate.per_second, 1000 + 4000 * exp(-0.5));
	assert_near(often.per_second, rate.per_second);
}

static void a_spike_is_forgotten(void **state)
{
	forecast_rate_reading(&rate, 0, 0);
	forecast_rate_reading(&rate, S, 0);
	forecast_rate_reading(&rate, 2ull * S, 1000000);
	assert_true(rate.per_second > 300000);
	forecast_rate_reading(&rate, 3ull * S, 1000000);
	assert_true(rate.interval_per_second == 0 && rate.per_second > 100000);
	forecast_rate_reading(&rate, 43ull * S, 1000000);
	assert_true(rate.per_second < 1);
}

static void a_counter_that_begins_anew_has_counted_what_it_reads(void **state)
{
	forecast_rate_reading(&rate, 0, UINT64_MAX - 5);
	forecast_rate_reading(&rate, S, 10);
	assert_near(rate.per_second, 10);
	forecast_rate_reading(&rate, 2ull * S, 0);
	assert_near(rate.interval_per_second, 0);
}

static void after_a_long_gap_the_gap_s_own_rate_counts(void **state)
{
	forecast_rate_reading(&rate, 0, 0);
	forecast_rate_reading(&rate, S, 1000000);
	forecast_rate_reading(&rate, 3601ull * S, 1000000 + 3600 * 7);
	assert_near(rate.per_second, 7);
}

static void no_elapsed_time_loses_no_count(void **state)
{
	forecast_rate_reading(&rate, S, 0);
	assert_false(forecast_rate_reading(&rate, S, 30));
	assert_false(forecast_rate_reading(&rate, S, 20)); /* begun anew within it */
	assert_false(forecast_rate_reading(&rate, S - 1, 21)); /* nor does time go back */
	assert_true(forecast_rate_reading(&rate, 2ull * S, 25));
	assert_near(rate.per_second, 30 + 20 + 1 + 4);
}

static void a_nanosecond_is_an_interval_like_others(void **state)
{
	forecast_rate_reading(&rate, 0, 0);
	forecast_rate_reading(&rate, S, 1000);
	forecast_rate_reading(&rate, S + 1, 1001); /* a rate of 1e9 for that long */
	assert_near(rate.per_second, 1000 + (1e9 - 1000) * -expm1(-1e-9 / TAU));
	assert_true(rate.per_second > 1000.49 && rate.per_second < 1000.51);
}

/*
 * The slow version: every interval is cut into milliseconds, and the rate is written out as
 * the weighted mean over all the past, each time from the beginning.
 */
static void rates_are_those_of_the_slow_version(void **state)
{
	enum {
		INTERVALS = 60
	};
	double x[INTERVALS];
	unsigned int ms[INTERVALS];
	uint64_t at = 0, counter = 0;

	srand(1);
	forecast_rate_reading(&rate, 0, 0);
	for (unsigned int n = 0; n < INTERVALS; n++) {
		unsigned int counted = rand() % 100000;
		double slow, before, weight = 1;

		ms[n] = 1 + rand() % 3000;
		x[n] = counted * 1000.0 / ms[n];
		at += ms[n] * 1000000ull;
		counter += counted;
		assert_true(forecast_rate_reading(&rate, at, counter));
		slow = 0;
		for (unsigned int i = n; i > 0; i--)
			for (unsigned int k = 0; k < ms[i]; k++) {
				before = weight;
				weight *= exp(-0.001 / TAU);
				slow += (before - weight) * x[i];
			}
		slow += weight * x[0];
		if (fabs(slow - rate.per_second) > 1e-6 * slow)
			fail_msg("interval %u: %.17g, slowly %.17g", n, rate.per_second, slow);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(one_reading_is_no_rate, prepare),
		cmocka_unit_test_setup(a_constant_rate_is_known_after_one_interval_and_stays,
				       prepare),
		cmocka_unit_test_setup(a_step_is_followed_to_63_percent_after_tau, prepare),
		cmocka_unit_test_setup(weights_follow_time_and_not_the_number_of_readings, prepare),
		cmocka_unit_test_setup(a_spike_is_forgotten, prepare),
		cmocka_unit_test_setup(a_counter_that_begins_anew_has_counted_what_it_reads,
				       prepare),
		cmocka_unit_test_setup(after_a_long_gap_the_gap_s_own_rate_counts, prepare),
		cmocka_unit_test_setup(no_elapsed_time_loses_no_count, prepare),
		cmocka_unit_test_setup(a_nanosecond_is_an_interval_like_others, prepare),
		cmocka_unit_test_setup(rates_are_those_of_the_slow_version, prepare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
