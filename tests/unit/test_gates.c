// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of gates: what is put there is found, and nothing else; no gate ever moves. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include <tally/maps.h>

#include "tests/unit/random.h"

static struct tally_gate_bucket table[TALLY_GATE_BUCKETS];
static struct tally_gates gates = { .bucket = table };

static int setup(void **state)
{
	memset(table, 0, sizeof(table));
	gates.factor = TALLY_MIX;
	return 0;
}

static __u64 hash_of(struct tally_gate_key key) { return tally_gate_hash(key, gates.factor); }

static struct tally_gate gate_of(uint32_t job)
{
	return (struct tally_gate){ .row = TALLY_ROW_JOBS + job, .job = job };
}

static void assert_gate(struct tally_gate_key key, struct tally_gate gate)
{
	const __u64 *word = tally_gates_find(&gates, key, gate.job);
	struct tally_gate is;

	assert_non_null(word);
	is = tally_gate_read(*word);
	assert_int_equal(tally_gate_port(*word), key.ifindex);
	assert_int_equal(is.row, gate.row);
	assert_int_equal(is.job, gate.job);
	assert_int_equal(is.restricted, gate.restricted);
	assert_int_equal(is.anywhere, gate.anywhere);
}

static unsigned int words_in_use(void)
{
	unsigned int count = 0;

	for (int i = 0; i < TALLY_GATE_BUCKETS * TALLY_GATE_WORDS; i++)
		count += !!table[i / TALLY_GATE_WORDS].word[i % TALLY_GATE_WORDS];
	return count;
}

static void a_word_has_all_of_a_gate(void **state)
{
	const struct tally_gate_key key = { UINT32_MAX, INT32_MAX };
	const struct tally_gate all[] = {
		{ .row = 1 },
		{ .row = TALLY_ROWS_MAX - 1, .job = TALLY_JOBS_MAX - 1 },
		{ .row = 1, .job = 1, .restricted = 1 },
		{ .row = 1, .job = 1, .anywhere = 1 },
		{ .row = TALLY_ROWS_MAX - 1,
		  .job = TALLY_JOBS_MAX - 1,
		  .restricted = 1,
		  .anywhere = 1 },
	};

	for (unsigned int i = 0; i < sizeof(all) / sizeof(*all); i++) {
		assert_true(tally_gates_put(&gates, key, all[i]));
		assert_gate(key, all[i]);
	}
}

static void a_gate_that_is_put_again_is_written_where_it_is(void **state)
{
	const struct tally_gate_key key = { 7, 3 };
	struct tally_gate gate = gate_of(5);
	const __u64 *word;

	assert_true(tally_gates_put(&gates, key, gate));
	word = tally_gates_find(&gates, key, 5);
	gate.row = 77;
	gate.restricted = 1;
	assert_true(tally_gates_put(&gates, key, gate));
	assert_ptr_equal(tally_gates_find(&gates, key, 5), word);
	assert_gate(key, gate);
	assert_int_equal(words_in_use(), 1);
}

/* Port, number and index: each by itself makes it another gate. */
static void keys_that_differ_in_one_field_are_two(void **state)
{
	const struct tally_gate_key key = { 7, 3 }, port = { 7, 4 }, number = { 8, 3 };

	assert_true(tally_gates_put(&gates, key, gate_of(5)));
	assert_null(tally_gates_find(&gates, port, 5));
	assert_null(tally_gates_find(&gates, number, 5));
	assert_null(tally_gates_find(&gates, key, 6));
	assert_false(tally_gates_remove(&gates, port, 5));
	assert_false(tally_gates_remove(&gates, number, 5));
	assert_false(tally_gates_remove(&gates, key, 6));
	assert_gate(key, gate_of(5));
	assert_true(tally_gates_remove(&gates, key, 5));
	assert_false(tally_gates_remove(&gates, key, 5));
	assert_int_equal(words_in_use(), 0);
}

/* Another job with the same first bucket and the same name at this port: one in 4,194,304 is. */
static struct tally_gate_key twin_of(struct tally_gate_key key)
{
	const __u64 hash = hash_of(key);
	struct tally_gate_key twin = key;
	__u64 other;

	do {
		twin.job++;
		other = hash_of(twin);
	} while (tally_gate_first(other) != tally_gate_first(hash) ||
		 tally_gate_name(twin, other) != tally_gate_name(key, hash));
	return twin;
}

static void two_jobs_of_one_name_are_told_apart_by_their_indexes(void **state)
{
	const struct tally_gate_key key = { 7, 3 }, twin = twin_of(key);

	assert_true(tally_gates_put(&gates, key, gate_of(5)));
	assert_true(tally_gates_put(&gates, twin, gate_of(6)));
	assert_gate(key, gate_of(5));
	assert_gate(twin, gate_of(6));
	assert_true(tally_gates_remove(&gates, key, 5));
	assert_gate(twin, gate_of(6));
	assert_int_equal(words_in_use(), 1);
}

/* Fills both buckets of a key with gates of others. */
static void buckets_fill(struct tally_gate_key key)
{
	const __u64 hash = hash_of(key);

	for (int i = 0; i < TALLY_GATE_WORDS; i++) {
		const struct tally_gate_key other = { 100 + i, 1000 };

		table[tally_gate_first(hash)].word[i] = tally_gate_word(other, hash_of(other),
									gate_of(100 + i));
		table[tally_gate_second(hash)].word[i] = tally_gate_word(other, hash_of(other),
									 gate_of(200 + i));
	}
}

/* Jobs whose gates fill both buckets of `key`, by the factor as it is now. */
static void numbers_find(struct tally_gate_key key, uint32_t number[2 * TALLY_GATE_WORDS])
{
	const __u64 hash = hash_of(key);
	int first = 0, second = 0;

	for (struct tally_gate_key other = { .job = 1000 }; first + second < 2 * TALLY_GATE_WORDS;
	     other.job++) {
		const __u32 bucket = tally_gate_first(hash_of(other));

		if (bucket == tally_gate_first(hash) && first < TALLY_GATE_WORDS)
			number[first++] = other.job;
		else if (bucket == tally_gate_second(hash) && second < TALLY_GATE_WORDS)
			number[TALLY_GATE_WORDS + second++] = other.job;
	}
}

static bool has_room_beside(struct tally_gate_key key, const uint32_t *number)
{
	memset(table, 0, sizeof(table));
	for (uint32_t i = 0; i < 2 * TALLY_GATE_WORDS; i++)
		assert_true(tally_gates_put(&gates, (struct tally_gate_key){ .job = number[i] },
					    gate_of(i)));
	return tally_gates_put(&gates, key, gate_of(100));
}

/* Who chooses numbers must know the node's factor to keep another job out. */
static void no_numbers_fill_the_buckets_of_a_job_at_each_node(void **state)
{
	const struct tally_gate_key key = { .job = 7 };
	uint32_t number[2 * TALLY_GATE_WORDS];
	uint64_t random_state = 1;

	numbers_find(key, number);
	assert_false(has_room_beside(key, number));
	for (int node = 0; node < 100; node++) {
		gates.factor = random_next(&random_state) | 1;
		assert_true(has_room_beside(key, number));
	}
}

static void a_full_bucket_leaves_the_second_one(void **state)
{
	const struct tally_gate_key key = { 7, 3 };
	struct tally_gate_bucket *first = &table[tally_gate_first(hash_of(key))];
	struct tally_gate_bucket *second = &table[tally_gate_second(hash_of(key))];

	assert_ptr_not_equal(first, second);
	buckets_fill(key);
	assert_false(tally_gates_put(&gates, key, gate_of(5)));
	assert_int_equal(words_in_use(), 2 * TALLY_GATE_WORDS);

	second->word[TALLY_GATE_WORDS - 1] = 0;
	assert_true(tally_gates_put(&gates, key, gate_of(5)));
	assert_gate(key, gate_of(5));
	assert_ptr_equal(tally_gates_find(&gates, key, 5), &second->word[TALLY_GATE_WORDS - 1]);

	first->word[2] = 0; /* it stays where it is */
	assert_true(tally_gates_put(&gates, key, gate_of(5)));
	assert_ptr_equal(tally_gates_find(&gates, key, 5), &second->word[TALLY_GATE_WORDS - 1]);
	assert_true(tally_gates_remove(&gates, key, 5));
	assert_null(tally_gates_find(&gates, key, 5));
}

/* However many jobs at however few ports; numbers one after the other, and at random. */
static void all_gates_of_a_node_find_a_place(void **state)
{
	for (uint32_t ports = TALLY_GATES_MAX / TALLY_JOBS_MAX; ports <= 1280; ports *= 8)
		for (uint32_t factor = 1; factor; factor = factor == 1 ? 2654435761u : 0) {
			setup(NULL);
			for (uint32_t i = 0; i < TALLY_GATES_MAX; i++) {
				struct tally_gate_key key = { (i / ports + 1) * factor, i % ports };

				assert_true(tally_gates_put(&gates, key, gate_of(i / ports)));
			}
			assert_int_equal(words_in_use(), TALLY_GATES_MAX);
		}
}

/* Random writes beside a plain list; whatever is written, all other gates stay where they are. */
static void random_writes_touch_one_word(void **state)
{
	enum {
		JOBS = 32,
		PORTS = 8,
		STEPS = 20000
	};
	static bool is_there[JOBS][PORTS];
	static struct tally_gate_bucket before[TALLY_GATE_BUCKETS];
	uint64_t random = 1;

	for (int step = 0; step < STEPS; step++) {
		const uint32_t job = random_below(&random, JOBS);
		const uint32_t port = random_below(&random, PORTS);
		const struct tally_gate_key key = { 1000 + 7 * job, port };
		struct tally_gate gate = gate_of(job);
		bool *there = &is_there[job][port];
		int changed = 0;

		if (step % 100 == 0)
			memcpy(before, table, sizeof(table));
		gate.row += random_below(&random, 2);
		if (random_below(&random, 2)) {
			assert_true(tally_gates_put(&gates, key, gate));
			assert_gate(key, gate);
			*there = true;
		} else {
			assert_int_equal(tally_gates_remove(&gates, key, job), *there);
			assert_null(tally_gates_find(&gates, key, job));
			*there = false;
		}
		for (int i = 0; step % 100 == 0 && i < TALLY_GATE_BUCKETS; i++)
			for (int k = 0; k < TALLY_GATE_WORDS; k++)
				changed += before[i].word[k] != table[i].word[k];
		assert_in_range(changed, 0, 1);
	}
	for (uint32_t job = 0; job < JOBS; job++)
		for (uint32_t port = 0; port < PORTS; port++)
			assert_int_equal(
				!!tally_gates_find(&gates,
						   (struct tally_gate_key){ 1000 + 7 * job, port },
						   job),
				is_there[job][port]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_word_has_all_of_a_gate, setup),
		cmocka_unit_test_setup(a_gate_that_is_put_again_is_written_where_it_is, setup),
		cmocka_unit_test_setup(keys_that_differ_in_one_field_are_two, setup),
		cmocka_unit_test_setup(two_jobs_of_one_name_are_told_apart_by_their_indexes, setup),
		cmocka_unit_test_setup(no_numbers_fill_the_buckets_of_a_job_at_each_node, setup),
		cmocka_unit_test_setup(a_full_bucket_leaves_the_second_one, setup),
		cmocka_unit_test_setup(all_gates_of_a_node_find_a_place, setup),
		cmocka_unit_test_setup(random_writes_touch_one_word, setup),
	};

	return cmocka_run_group_tests_name("gates", tests, NULL, NULL);
}
