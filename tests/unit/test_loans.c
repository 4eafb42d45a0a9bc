// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who gives slots on loan back; TALLY_SEED=n runs one random node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/loans.h"
#include "tests/unit/random.h"

enum {
	LOANS_MAX = 8,
	TENANTS = 4,
	SEEDS = 3000,
};

static struct loan loan[LOANS_MAX];
static unsigned int count;

static void lend(unsigned int tenant, uint32_t slots)
{
	loan[count++] = (struct loan){ .tenant = tenant, .slots = slots };
}

static int prepare(void **state)
{
	count = 0;
	return 0;
}

/* The tenants and slots that are recalled, as a text of "tenant:slots ". */
static const char *recalled(void)
{
	static char text[256];
	int n = 0;

	*text = '\0';
	for (unsigned int i = 0; i < count; i++)
		if (loan[i].recalled)
			n += snprintf(text + n, sizeof(text) - n, "%u:%u ", loan[i].tenant,
				      loan[i].slots);
	return text;
}

static int recall(unsigned int tenant, uint32_t slots, uint32_t free, bool own)
{
	return loans_recall(loan, count, &(struct loans_want){ tenant, slots, free, own });
}

static void nobody_gives_back_what_is_not_needed(void **state)
{
	lend(1, 64);
	assert_int_equal(recall(2, 64, 64, true), 0);
	assert_string_equal(recalled(), "");
	assert_int_equal(recall(2, 64, 128, false), 0);
}

static void for_a_quota_everybody_gives_back(void **state)
{
	lend(1, 64);
	lend(2, 64);
	assert_int_equal(recall(2, 160, 32, true), 2); /* its own tenant, too */
	assert_int_equal(recall(2, 160, 31, true), -ENOSPC);
	assert_string_equal(recalled(), ""); /* if it does not help, nobody */
}

static void the_tenant_that_has_most_gives_the_run_that_is_just_enough(void **state)
{
	lend(1, 128);
	lend(2, 64);
	lend(2, 32);
	lend(2, 64);
	assert_int_equal(recall(3, 40, 10, true), 1);
	assert_string_equal(recalled(), "2:32 ");
	assert_int_equal(recall(3, 60, 10, true), 1);
	assert_string_equal(recalled(), "2:64 ");
	assert_int_equal(recall(3, 110, 10, true), 2); /* no run of tenant 2 is enough */
	assert_string_equal(recalled(), "1:128 2:64 ");
}

static void for_a_loan_only_who_has_more_gives(void **state)
{
	lend(1, 64);
	lend(1, 64);
	assert_int_equal(recall(1, 64, 0, false), -ENOSPC); /* nobody gives to himself */
	assert_int_equal(recall(2, 64, 0, false), 1);
	assert_int_equal(recall(2, 128, 0, false), -ENOSPC); /* nor more than half */
	lend(2, 64);
	assert_int_equal(recall(2, 64, 0, false), -ENOSPC);
	assert_int_equal(recall(3, 64, 0, false), 1);
	assert_string_equal(recalled(), "1:64 ");
}

static uint64_t lent_to(unsigned int tenant)
{
	uint64_t slots = 0;

	for (unsigned int i = 0; i < count; i++)
		slots += loan[i].tenant == tenant && !loan[i].recalled ? loan[i].slots : 0;
	return slots;
}

static const char *run_random(uint64_t seed)
{
	uint64_t random = seed, all = 0, left = 0;
	struct loans_want want = { .tenant = random_below(&random, TENANTS),
				   .slots = 1 + random_below(&random, 200),
				   .free = random_below(&random, 100),
				   .own = chance(&random, 500) };
	int r;

	for (count = 0; count < random_below(&random, LOANS_MAX + 1);)
		lend(random_below(&random, TENANTS), 2 << random_below(&random, 6));
	for (unsigned int i = 0; i < count; i++)
		all += loan[i].slots;
	r = loans_recall(loan, count, &want);
	for (unsigned int i = 0; i < count; i++)
		left += loan[i].recalled ? 0 : loan[i].slots;
	if (r < 0)
		return left != all ? "some give back, and it does not help"
		       : want.own && all + want.free >= want.slots ? "a quota goes without"
								   : NULL;
	if (all - left + want.free < want.slots)
		return "not enough is given back";
	for (unsigned int i = 0; i < count && !want.own; i++)
		if (loan[i].recalled && lent_to(loan[i].tenant) < lent_to(want.tenant) + want.slots)
			return "who gives has less than who takes";
	return NULL;
}

static void quotas_are_kept_and_loans_are_shared(void **state) { run_seeds(SEEDS, run_random); }

#define FACT(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(nobody_gives_back_what_is_not_needed),
		FACT(for_a_quota_everybody_gives_back),
		FACT(the_tenant_that_has_most_gives_the_run_that_is_just_enough),
		FACT(for_a_loan_only_who_has_more_gives),
		FACT(quotas_are_kept_and_loans_are_shared),
	};

	return cmocka_run_group_tests_name("loans", tests, NULL, NULL);
}
