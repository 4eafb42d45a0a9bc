// SPDX-License-Identifier: GPL-2.0-only
/*
 * Borrowed slots in the data plane: the rule is include/tally/borrowed.h, its facts are in
 * tests/unit/test_borrowed.c; here is what frames become.
 */
#include "harness.h"

#define fact(name) cmocka_unit_test_setup(name, node_reset)

/* Of four workers, the first two come through here. */
#define borrowing_job(...) inner_job(.borrows = 1, __VA_ARGS__)

/* --- a node without a pool */

static void without_a_pool_all_goes_on_to_the_root(void **state)
{
	job_put(*state, JOB, borrowing_job(.group = JOB));
	expect(*state, contribution(.worker = 0, .value = 40), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2), TALLY_PASSED_UP, NULL);
	expect(*state, contribution(.worker = 1, .value = 2, .flags = TALLY_FLUSH), TALLY_PASSED_UP,
	       NULL);
	assert_int_equal(slot_read(*state, 0).state.phase, TALLY_SLOT_FRESH);
}

static void without_a_pool_results_come_down(void **state)
{
	job_put(*state, JOB, borrowing_job());
	expect(*state, result(.set = tally_set_first(4), .value = 3), TALLY_SENT_DOWN, NULL);
}

static const struct CMUnitTest without_a_pool[] = {
	fact(without_a_pool_all_goes_on_to_the_root),
	fact(without_a_pool_results_come_down),
};

int main(void)
{
	skip_unless_permitted();
	return cmocka_run_group_tests_name("borrowed, without a pool", without_a_pool, node_setup,
					   node_teardown) +
	       cmocka_run_group_tests_name("borrowed, without a pool, by TC", without_a_pool,
					   node_setup_tc, node_teardown);
}
