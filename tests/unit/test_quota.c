// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Who gets slots beyond quotas, and who gives them back; TALLY_SEED=n runs one random node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/config.h"
#include "agent/policy/quota.h"
#include "tests/unit/random.h"

enum {
	LOANS_MAX = 8, /* of a random node */
	LOANS_ROOM = 64,
	TENANTS = 4,
	SEEDS = 3000,
};

static struct quota_loan loan[LOANS_ROOM];
static unsigned int count;
static struct quota_use use[TALLY_TENANTS_MAX];
static const struct quota_policy *policy;

static void lend(unsigned int tenant, uint32_t slots)
{
	loan[count++] = (struct quota_loan){ .tenant = tenant, .slots = slots };
}

static int prepare(void **state)
{
	count = 0;
	memset(use, 0, sizeof(use));
	policy = quota_policy_find("lend");
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
	return quota_recall(policy, use, loan, count,
			    &(struct quota_want){ tenant, slots, free, own });
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
	struct quota_want want = { .tenant = random_below(&random, TENANTS),
				   .slots = 1 + random_below(&random, 200),
				   .free = random_below(&random, 100),
				   .own = chance(&random, 500) };
	int r;

	for (count = 0; count < random_below(&random, LOANS_MAX + 1);)
		lend(random_below(&random, TENANTS), 2 << random_below(&random, 6));
	for (unsigned int i = 0; i < count; i++)
		all += loan[i].slots;
	r = quota_recall(policy, use, loan, count, &want);
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

/* --- policies -------------------------------------------------------------------------------- */

static void policies_are_words_of_the_configuration(void **state)
{
	for (unsigned int i = 0; i < QUOTA_POLICIES_COUNT; i++) {
		assert_string_equal(config_quotas[CONFIG_QUOTAS_LEND + i], QUOTA_POLICIES[i].name);
		assert_ptr_equal(quota_policy_find(QUOTA_POLICIES[i].name), &QUOTA_POLICIES[i]);
	}
	assert_null(config_quotas[CONFIG_QUOTAS_LEND + QUOTA_POLICIES_COUNT]);
	assert_null(quota_policy_find("fixed"));
}

/* All that it sends is added to sums. */
static void sends(int tenant, double bytes_per_second)
{
	use[tenant].bytes_per_second = use[tenant].added_bytes_per_second = bytes_per_second;
}

/* Three times the traffic: three times as much on loan. */
static void who_sends_more_has_more(void **state)
{
	for (int i = 0; i < 4; i++)
		lend(1, 64);
	sends(1, 1e9);
	sends(2, 1e9);
	policy = quota_policy_find("lend-by-traffic");
	assert_int_equal(recall(2, 128, 0, false), 2);
	assert_int_equal(recall(2, 192, 0, false), -ENOSPC);
	use[2].forecast_bytes_per_second = 5e9; /* soon */
	assert_int_equal(recall(2, 192, 0, false), 3);
	sends(2, 0);
	use[2].forecast_bytes_per_second = 0;
	assert_int_equal(recall(2, 64, 0, false), -ENOSPC);
	policy = quota_policy_find("lend");
	assert_int_equal(recall(2, 128, 0, false), 2);
}

/* Packets over a rate, and packets that are sent again, are no claim. */
static void what_is_not_added_does_not_count(void **state)
{
	for (int i = 0; i < 4; i++)
		lend(1, 64);
	policy = quota_policy_find("lend-by-traffic");
	sends(1, 1e9);
	sends(2, 9e9);
	assert_int_equal(recall(2, 192, 0, false), 3);
	use[2].added_bytes_per_second = 1e9;
	assert_int_equal(recall(2, 192, 0, false), -ENOSPC);
	assert_int_equal(recall(2, 128, 0, false), 2);
	use[2].forecast_bytes_per_second = 18e9; /* of which a ninth will be added */
	assert_int_equal(recall(2, 192, 0, false), -ENOSPC);
	use[2].forecast_bytes_per_second = 45e9;
	assert_int_equal(recall(2, 192, 0, false), 3);
}

/* Of whom has the more, by weight, it is taken, if there are several. */
static void who_has_most_by_weight_gives(void **state)
{
	lend(1, 64);
	lend(2, 64);
	lend(2, 64);
	policy = quota_policy_find("lend-by-traffic");
	sends(1, 1e8);
	sends(2, 1e9);
	assert_int_equal(recall(3, 64, 0, true), 1);
	assert_string_equal(recalled(), "1:64 ");
}

/* --- a node, with whatever policy ------------------------------------------------------------ */

static uint64_t wild;

static void weigh_wildly(const struct quota_use *of, unsigned int tenants, double *ret_weight)
{
	static const double odd[] = { 0, -1, NAN, INFINITY, -INFINITY, 1e-300, 1e300, 1 };

	for (unsigned int i = 0; i < tenants; i++)
		ret_weight[i] = odd[random_below(&wild, 8)];
}

enum {
	NODE_SLOTS = 512,
	QUOTA = 96, /* of each of the four tenants; 128 are nobody's */
	RUNS_MAX = LOANS_ROOM,
	STEPS = 200,
};

struct run {
	unsigned int tenant;
	uint32_t slots; /* 0: it is not there, or in software */
	bool lent;
};

static struct run run[RUNS_MAX];

static uint32_t slots_of(int tenant, bool own_only)
{
	uint32_t sum = 0;

	for (int i = 0; i < RUNS_MAX; i++)
		if ((tenant < 0 || run[i].tenant == (unsigned int)tenant) &&
		    !(own_only && run[i].lent))
			sum += run[i].slots;
	return sum;
}

/* A run begins in place i: false if quotas are not kept. */
static bool begin_run(int i, unsigned int tenant, uint32_t slots)
{
	struct quota_want want = { tenant, slots, NODE_SLOTS - slots_of(-1, false),
				   slots_of(tenant, true) + slots <= QUOTA };
	int place[RUNS_MAX], r;

	count = 0;
	for (int k = 0; k < RUNS_MAX; k++)
		if (run[k].slots && run[k].lent) {
			place[count] = k;
			loan[count++] = (struct quota_loan){ run[k].tenant, run[k].slots, false };
		}
	r = quota_recall(policy, use, loan, count, &want);
	if (r < 0)
		return !want.own;
	for (unsigned int k = 0; k < count; k++)
		if (loan[k].recalled)
			run[place[k]].slots = 0;
	run[i] = (struct run){ tenant, slots, !want.own };
	return slots_of(-1, false) <= NODE_SLOTS;
}

static const char *a_node_lives(uint64_t seed)
{
	static const struct quota_policy wildly = { "wildly", "", weigh_wildly };
	uint64_t random = seed;

	wild = seed;
	policy = seed % 3 < QUOTA_POLICIES_COUNT ? &QUOTA_POLICIES[seed % 3] : &wildly;
	memset(run, 0, sizeof(run));
	for (int step = 0; step < STEPS; step++) {
		int i = (int)random_below(&random, RUNS_MAX);
		struct quota_use *u = &use[random_below(&random, TENANTS)];

		u->bytes_per_second = random_below(&random, 1000000);
		u->forecast_bytes_per_second = random_below(&random, 1000000);
		u->packets_per_second = random_below(&random, 1000);
		u->refused_per_second = random_below(&random, 1000);
		if (run[i].slots && chance(&random, 700))
			run[i].slots = 0;
		else if (!run[i].slots && !begin_run(i, random_below(&random, TENANTS),
						     1 + random_below(&random, 64)))
			return "a quota goes without, or there are more slots than there are";
		for (int t = 0; t < TENANTS; t++)
			if (slots_of(t, true) > QUOTA)
				return "a tenant has more of its own than its quota";
	}
	return NULL;
}

static void quotas_hold_whatever_the_policy_says(void **state) { run_seeds(SEEDS, a_node_lives); }

#define FACT(name) cmocka_unit_test_setup(name, prepare)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(nobody_gives_back_what_is_not_needed),
		FACT(for_a_quota_everybody_gives_back),
		FACT(the_tenant_that_has_most_gives_the_run_that_is_just_enough),
		FACT(for_a_loan_only_who_has_more_gives),
		FACT(quotas_are_kept_and_loans_are_shared),
		FACT(policies_are_words_of_the_configuration),
		FACT(who_sends_more_has_more),
		FACT(what_is_not_added_does_not_count),
		FACT(who_has_most_by_weight_gives),
		FACT(quotas_hold_whatever_the_policy_says),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
