// SPDX-License-Identifier: GPL-2.0-only
/* Where jobs that borrow lie in the pool: as far from each other as can be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "agent/core/pool.h"
#include "tests/unit/random.h"

enum {
	JOBS = 64,
};

static uint32_t base[JOBS], slots;
static unsigned int jobs;

static void begin(uint32_t pool)
{
	jobs = 0;
	slots = pool;
}

static uint32_t put(void)
{
	const uint32_t at = pool_base(base, jobs, slots);

	base[jobs++] = at;
	return at;
}

static void go(unsigned int at) { base[at] = base[--jobs]; }

static void each_comes_into_the_middle_of_the_widest_gap(void **state)
{
	begin(256);
	assert_int_equal(put(), 0);
	assert_int_equal(put(), 128);
	assert_int_equal(put(), 64);
	assert_int_equal(put(), 192);
	assert_int_equal(put(), 32);
	go(0);
	go(0); /* 0 and 32 are free; 192 to 64 is the widest */
	assert_int_equal(put(), 0);
}

static void a_pool_may_have_no_slot_or_one(void **state)
{
	begin(0);
	assert_int_equal(put(), 0);
	assert_int_equal(put(), 0);
	begin(1);
	assert_int_equal(put(), 0);
	assert_int_equal(put(), 0);
}

/* As after a reload with a smaller one: then two may lie at one place. */
static void a_base_behind_the_pool_counts_from_its_beginning(void **state)
{
	begin(256);
	put();
	put();
	slots = 128;
	assert_int_equal(put(), 64);
	slots = 64;
	assert_int_equal(put(), 32);
}

static int by_base(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The narrowest and the widest gap, around the pool. */
static void gaps(uint32_t *ret_least, uint32_t *ret_most)
{
	*ret_least = UINT32_MAX;
	*ret_most = 0;
	qsort(base, jobs, sizeof(*base), by_base);
	for (unsigned int i = 0; i < jobs; i++) {
		uint32_t next = base[(i + 1) % jobs];
		uint32_t gap = i + 1 < jobs ? next - base[i] : next + slots - base[i];

		*ret_least = gap < *ret_least ? gap : *ret_least;
		*ret_most = gap > *ret_most ? gap : *ret_most;
	}
}

/* The next one halves the widest gap, so no gap is wider than twice the narrowest, but for 1. */
static void while_jobs_come_distances_are_about_equal(void **state)
{
	for (uint32_t pool = 100; pool < 3000; pool += 97) {
		begin(pool);
		for (uint32_t id = 1; id <= JOBS; id++) {
			uint32_t least, most;

			put();
			gaps(&least, &most);
			assert_in_range(most, least, 2 * least + 2);
		}
	}
}

/* While jobs come and go nobody has the place of another, as long as there is room. */
static const char *come_and_go(uint64_t seed)
{
	uint64_t random = seed;
	uint32_t least, most;

	begin(1024);
	for (uint32_t id = 1; id < 500; id++) {
		if (jobs == JOBS || (jobs && chance(&random, 450)))
			go(random_below(&random, jobs));
		else
			put();
		if (!jobs)
			continue;
		gaps(&least, &most);
		if (least < 1024 / (2 * JOBS))
			return "two jobs lie side by side, though there is room";
	}
	return NULL;
}

static void nobody_comes_close_to_another(void **state) { run_seeds(200, come_and_go); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_comes_into_the_middle_of_the_widest_gap),
		cmocka_unit_test(a_pool_may_have_no_slot_or_one),
		cmocka_unit_test(a_base_behind_the_pool_counts_from_its_beginning),
		cmocka_unit_test(while_jobs_come_distances_are_about_equal),
		cmocka_unit_test(nobody_comes_close_to_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
