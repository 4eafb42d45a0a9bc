// SPDX-License-Identifier: GPL-2.0-only
/* The token bucket, by facts and against a slow obvious one that counts billionths of tokens. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <tally/bucket.h>

enum {
	MODEL_RUNS = 2000,
	MODEL_STEPS = 300,
};

static const uint64_t start_ns = 1000 * TALLY_SECOND_NS;

static struct tally_bucket bucket(uint64_t rate, uint64_t burst, int64_t level)
{
	return (struct tally_bucket){ rate, burst, level, 0, start_ns };
}

static int64_t level_at(struct tally_bucket b, uint64_t now_ns)
{
	tally_bucket_fill(&b, now_ns);
	return b.level;
}

static void a_token_comes_with_its_nanosecond_and_not_before(void **state)
{
	static const uint64_t rates[] = { 1, 3, 7, 1000, 999999937, TALLY_SECOND_NS };

	for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++) {
		struct tally_bucket b = bucket(rates[i], 100, 0);
		uint64_t first_ns = (TALLY_SECOND_NS + rates[i] - 1) / rates[i];

		assert_int_equal(level_at(b, start_ns + first_ns - 1), 0);
		assert_int_equal(level_at(b, start_ns + first_ns), 1);
	}
}

static void the_highest_rate_earns_a_thousand_a_nanosecond(void **state)
{
	struct tally_bucket b = bucket(TALLY_RATE_MAX, TALLY_BURST_MAX, 0);

	assert_int_equal(level_at(b, start_ns + 1), 1000);
	assert_int_equal(level_at(b, start_ns + TALLY_SECOND_NS), TALLY_RATE_MAX);
	assert_int_equal(level_at(b, start_ns + 4000000 * TALLY_SECOND_NS),
			 4000000 * TALLY_RATE_MAX);
}

static void no_idle_time_earns_more_than_the_burst(void **state)
{
	static const uint64_t rates[] = { 1, 999, TALLY_SECOND_NS, TALLY_RATE_MAX };
	static const uint64_t bursts[] = { 1, 64, 1ULL << 40, TALLY_BURST_MAX };

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 4; j++) {
			struct tally_bucket b = bucket(rates[i], bursts[j], 0);
			unsigned __int128 earned = UINT64_MAX / TALLY_SECOND_NS;
			int64_t level;

			b.at_ns = 0;
			level = level_at(b, UINT64_MAX);
			assert_true(level >= 0 && (uint64_t)level <= bursts[j]);
			earned *= rates[i];
			if (earned >= bursts[j])
				assert_int_equal(level, bursts[j]);
		}
}

/* 2^39 a second for 2^25 seconds: a product of 2^64 would look like nothing. */
static void a_year_at_a_high_rate_fills_it(void **state)
{
	struct tally_bucket b = bucket(1ULL << 39, 1000, 0);

	assert_int_equal(level_at(b, start_ns + (1ULL << 25) * TALLY_SECOND_NS), 1000);
}

static void fractions_add_up(void **state)
{
	struct tally_bucket b = bucket(3, 1000, 0);

	for (int i = 1; i <= 1000; i++)
		tally_bucket_fill(&b, start_ns + i * (TALLY_SECOND_NS / 10));
	assert_int_equal(b.level, 300);
}

static void a_clock_that_goes_back_earns_nothing_and_loses_nothing(void **state)
{
	struct tally_bucket b = bucket(1000, 1000, 5), before = b;

	tally_bucket_fill(&b, start_ns);
	tally_bucket_fill(&b, start_ns - 1);
	tally_bucket_fill(&b, 0);
	assert_memory_equal(&b, &before, sizeof(b));
	assert_int_equal(level_at(b, start_ns + 1000000), 6);
}

static void a_level_above_the_burst_comes_down_to_it(void **state)
{
	struct tally_bucket b = bucket(10, 50, 80);

	assert_int_equal(level_at(b, start_ns + 1), 50);
}

static void what_it_has_may_be_spent_and_one_more_may_not(void **state)
{
	struct tally_bucket packets = bucket(1, 3, 3), bytes = bucket(0, 0, 0);

	for (int i = 0; i < 3; i++)
		assert_true(tally_buckets_take(&packets, &bytes, 1500, start_ns));
	assert_false(tally_buckets_take(&packets, &bytes, 1500, start_ns));
	assert_false(tally_buckets_take(&packets, &bytes, 1500, start_ns + TALLY_SECOND_NS - 1));
	assert_true(tally_buckets_take(&packets, &bytes, 1500, start_ns + TALLY_SECOND_NS));
}

static void bytes_are_counted_to_the_last(void **state)
{
	struct tally_bucket packets = bucket(0, 0, 0), bytes = bucket(1, 10000, 3000);

	assert_false(tally_buckets_take(&packets, &bytes, 3001, start_ns));
	assert_true(tally_buckets_take(&packets, &bytes, 3000, start_ns));
	assert_int_equal(bytes.level, 0);
	assert_false(tally_buckets_take(&packets, &bytes, 1, start_ns));
}

static void who_lacks_one_kind_spends_nothing_of_the_other(void **state)
{
	struct tally_bucket packets = bucket(1, 10, 10), bytes = bucket(1, 10000, 99);

	assert_false(tally_buckets_take(&packets, &bytes, 100, start_ns));
	assert_int_equal(packets.level, 10);
	packets.level = 0;
	assert_false(tally_buckets_take(&packets, &bytes, 99, start_ns));
	assert_int_equal(bytes.level, 99);
}

static void without_a_rate_there_is_no_limit(void **state)
{
	struct tally_bucket packets = { .rate = 0 }, bytes = { .rate = 0 }, none = { .rate = 0 };

	for (int i = 0; i < 1000; i++)
		assert_true(tally_buckets_take(&packets, &bytes, UINT32_MAX, start_ns + i));
	assert_memory_equal(&packets, &none, sizeof(none));
	assert_memory_equal(&bytes, &none, sizeof(none));
}

static void what_is_charged_is_earned_back_before_anything_is_spent(void **state)
{
	struct tally_bucket packets = bucket(10, 5, 1), bytes = bucket(1000, 5000, 400);

	assert_true(tally_buckets_take(&packets, &bytes, 100, start_ns));
	tally_buckets_charge(&packets, &bytes, 4, 800, start_ns);
	assert_int_equal(packets.level, -4);
	assert_int_equal(bytes.level, -500);
	assert_false(tally_buckets_take(&packets, &bytes, 1, start_ns + TALLY_SECOND_NS / 2 - 1));
	assert_int_equal(packets.level, 0);
	assert_true(tally_buckets_take(&packets, &bytes, 100, start_ns + TALLY_SECOND_NS * 6 / 10));
	assert_int_equal(packets.level, 1);
	assert_int_equal(bytes.level, 0);
}

static void what_a_full_bucket_could_not_hold_pays_for_nothing(void **state)
{
	struct tally_bucket packets = bucket(10, 5, 5), bytes = bucket(1000, 900, 900);

	tally_buckets_charge(&packets, &bytes, 4, 800, start_ns + TALLY_SECOND_NS);
	assert_int_equal(level_at(packets, start_ns + TALLY_SECOND_NS), 1);
	assert_int_equal(level_at(bytes, start_ns + TALLY_SECOND_NS), 100);
}

/* Ten CPUs may let one in each before the first has paid for what leaves. */
static void all_that_leaves_is_owed(void **state)
{
	struct tally_bucket packets = bucket(1, 5, 0), bytes = bucket(1, 5000, 4000);
	struct tally_bucket unlimited = { .rate = 0 };

	assert_false(tally_buckets_owe(&packets, &bytes, start_ns));
	for (int i = 0; i < 10; i++)
		tally_buckets_charge(&packets, &bytes, 2, 20000, start_ns);
	assert_int_equal(packets.level, -20);
	assert_int_equal(bytes.level, -196000);
	assert_true(tally_buckets_owe(&packets, &unlimited, start_ns));
	assert_true(tally_buckets_owe(&unlimited, &bytes, start_ns));
	assert_false(tally_buckets_owe(&unlimited, &unlimited, start_ns));
	assert_true(tally_buckets_owe(&packets, &unlimited, start_ns + 15 * TALLY_SECOND_NS));
	assert_false(tally_buckets_owe(&packets, &unlimited, start_ns + 16 * TALLY_SECOND_NS));
	bytes = bucket(1, 5000, -4999); /* one less than a burst */
	assert_false(tally_buckets_owe(&unlimited, &bytes, start_ns));
	tally_bucket_spend(&bytes, 1);
	assert_true(tally_buckets_owe(&unlimited, &bytes, start_ns));
	packets = bucket(TALLY_RATE_MAX, TALLY_BURST_MAX, 1 - (int64_t)TALLY_BURST_MAX);
	tally_buckets_charge(&packets, &bytes, UINT32_MAX, UINT64_MAX >> 32, start_ns);
	assert_int_equal(level_at(packets, UINT64_MAX), TALLY_BURST_MAX);
}

/* --- the model */

struct model {
	uint64_t rate, burst, at_ns;
	__int128 billionths;
};

static void model_fill(struct model *m, uint64_t now_ns)
{
	__int128 full = (__int128)m->burst * TALLY_SECOND_NS;

	if (now_ns <= m->at_ns)
		return;
	m->billionths += (__int128)(now_ns - m->at_ns) * m->rate;
	if (m->billionths > full)
		m->billionths = full;
	m->at_ns = now_ns;
}

static bool model_take(struct model *m, uint64_t tokens, uint64_t now_ns)
{
	model_fill(m, now_ns);
	if (m->billionths < (__int128)tokens * TALLY_SECOND_NS)
		return false;
	m->billionths -= (__int128)tokens * TALLY_SECOND_NS;
	return true;
}

static void model_charge(struct model *m, uint64_t tokens, uint64_t now_ns)
{
	model_fill(m, now_ns);
	m->billionths -= (__int128)tokens * TALLY_SECOND_NS;
}

/* xorshift64*; every magnitude is as likely. */
static uint64_t random_below(uint64_t *seed, int bits)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (*seed * 0x2545f4914f6cdd1dULL) >> (63 - *seed % bits);
}

static void it_agrees_with_the_slow_one_in_every_step(void **state)
{
	uint64_t seed = 7, taken = 0, refused = 0, owed = 0;

	for (int run = 0; run < MODEL_RUNS; run++) {
		uint64_t rate = 1 + random_below(&seed, 40) % TALLY_RATE_MAX;
		uint64_t burst = 1 + random_below(&seed, 62), now_ns = start_ns;
		struct tally_bucket b = bucket(rate, burst, burst);
		struct tally_bucket unlimited = { .rate = 0 };
		struct model m = { rate, burst, start_ns, (__int128)burst * TALLY_SECOND_NS };

		for (int step = 0; step < MODEL_STEPS; step++) {
			uint32_t tokens = random_below(&seed, 32);
			bool may;

			now_ns += random_below(&seed, run % 2 ? 32 : 48);
			now_ns -= step % 5 ? 0 : random_below(&seed, 10);
			may = model_take(&m, tokens, now_ns);
			assert_int_equal(tally_buckets_take(&unlimited, &b, tokens, now_ns), may);
			taken += may;
			refused += !may;
			if (may && step % 2) {
				tokens = random_below(&seed, 32);
				model_charge(&m, tokens, now_ns);
				tally_buckets_charge(&unlimited, &b, 1, tokens, now_ns);
				owed += b.level < 0;
			}
			assert_true(b.fraction < TALLY_SECOND_NS);
			assert_true((__int128)b.level * TALLY_SECOND_NS + b.fraction ==
				    m.billionths);
		}
	}
	assert_true(taken > 1000 && refused > 1000 && owed > 1000); /* all ways were gone */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_comes_with_its_nanosecond_and_not_before),
		cmocka_unit_test(the_highest_rate_earns_a_thousand_a_nanosecond),
		cmocka_unit_test(no_idle_time_earns_more_than_the_burst),
		cmocka_unit_test(a_year_at_a_high_rate_fills_it),
		cmocka_unit_test(fractions_add_up),
		cmocka_unit_test(a_clock_that_goes_back_earns_nothing_and_loses_nothing),
		cmocka_unit_test(a_level_above_the_burst_comes_down_to_it),
		cmocka_unit_test(what_it_has_may_be_spent_and_one_more_may_not),
		cmocka_unit_test(bytes_are_counted_to_the_last),
		cmocka_unit_test(who_lacks_one_kind_spends_nothing_of_the_other),
		cmocka_unit_test(without_a_rate_there_is_no_limit),
		cmocka_unit_test(what_is_charged_is_earned_back_before_anything_is_spent),
		cmocka_unit_test(what_a_full_bucket_could_not_hold_pays_for_nothing),
		cmocka_unit_test(all_that_leaves_is_owed),
		cmocka_unit_test(it_agrees_with_the_slow_one_in_every_step),
	};

	return cmocka_run_group_tests_name("bucket", tests, NULL, NULL);
}
