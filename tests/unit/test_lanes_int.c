// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Lanes of integers but int32 (test_lanes.c), against 128-bit sums of their values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "client/lanes.h"
#include "tests/unit/random.h"

enum {
	WORKERS_MAX = 256,
	COUNT = 203, /* more than three tiles, and odd */
	GUARD = 0x5a,
};

typedef __int128 wide_int;

static const unsigned int some_workers[] = { 1, 2, 3, 4, 7, 8, 17, 64, 127, 128, 255, 256 };

static const struct type {
	enum tally_dtype dtype;
	unsigned int bits;
	bool is_signed;
} types[] = {
	{ TALLY_INT8, 8, true },     { TALLY_UINT8, 8, false },	  { TALLY_INT16, 16, true },
	{ TALLY_UINT16, 16, false }, { TALLY_INT32, 32, true },	  { TALLY_UINT32, 32, false },
	{ TALLY_INT64, 64, true },   { TALLY_UINT64, 64, false },
};

#define each(item, array)                                                                         \
	(typeof(&(array)[0]) item = (array); item < (array) + sizeof(array) / sizeof((array)[0]); \
	 item++)

static uint64_t random_state = 7;

/* What `bits` of x say, as the type reads them. */
static wide_int wrapped(const struct type *t, wide_int x)
{
	uint64_t low = (uint64_t)x & (UINT64_MAX >> (64 - t->bits));

	if (t->is_signed)
		return (int64_t)(low << (64 - t->bits)) >> (64 - t->bits);
	return low;
}

static wide_int value_at(const struct type *t, const uint8_t *array, size_t i)
{
	uint64_t x = 0;

	memcpy(&x, array + i * t->bits / 8, t->bits / 8);
	return wrapped(t, x);
}

static void value_put(const struct type *t, uint8_t *array, size_t i, wide_int x)
{
	uint64_t low = (uint64_t)x;

	memcpy(array + i * t->bits / 8, &low, t->bits / 8);
}

static wide_int most(const struct type *t)
{
	return t->is_signed ? ((wide_int)1 << (t->bits - 1)) - 1 : ((wide_int)1 << t->bits) - 1;
}

static wide_int least(const struct type *t) { return t->is_signed ? -most(t) - 1 : 0; }

static wide_int random_value(const struct type *t, unsigned int workers, bool fits)
{
	wide_int limit = most(t) / workers;
	uint64_t r = random_next(&random_state);

	if (!fits)
		return r % 5 == 0 ? most(t) : r % 5 == 1 ? least(t) : wrapped(t, (wide_int)r);
	if (r % 5 < 2)
		return r % 5 && t->is_signed ? -limit : limit;
	return (wide_int)(r >> 1) % (limit + 1) * (t->is_signed && r & 1 ? -1 : 1);
}

static wide_int wanted(const struct type *t, wide_int sum, unsigned int divisor)
{
	if (t->bits == 64)
		sum = wrapped(t, sum);
	return wrapped(t, sum / divisor);
}

/* Sums `workers` blocks in a lane, and looks at what comes of them as sums and as averages. */
static void check_sums(const struct type *t, enum tally_lane lane, unsigned int workers,
		       size_t count, bool fits)
{
	const struct lane *l = lane_at(lane);
	uint8_t in[COUNT * 8], out[COUNT * 8 + 1];
	uint64_t word[COUNT + 1], sum[COUNT + 1] = { 0 };
	size_t words = lane_words(l, count);
	wide_int exact[COUNT] = { 0 };

	for (unsigned int w = 0; w < workers; w++) {
		struct lane_terms terms = { .workers = workers, .divisor = 1 };

		for (size_t i = 0; i < count; i++) {
			wide_int x = random_value(t, workers, fits);

			value_put(t, in, i, x);
			exact[i] += x;
		}
		assert_true(!l->inspect || !fits || !l->inspect(in, count, workers).wide);
		memset(word, GUARD, sizeof(word));
		l->pack(in, count, &terms, word);
		assert_true(word[words] == UINT64_C(0x5a5a5a5a5a5a5a5a));
		for (size_t i = 0; i < words; i++)
			sum[i] += word[i];
	}
	for (int average = 0; average < 2; average++) {
		struct lane_terms terms = { .workers = workers, .divisor = average ? workers : 1 };

		memset(out, GUARD, sizeof(out));
		l->unpack(sum, count, &terms, out);
		for (size_t i = 0; i < count; i++)
			assert_true(value_at(t, out, i) == wanted(t, exact[i], terms.divisor));
		assert_int_equal(out[count * t->bits / 8], GUARD);
	}
}

static void sums_and_averages_are_exact_and_wrap_at_their_width(void **state)
{
	for each(t, types) {
		for each(workers, some_workers) {
			enum tally_lane first = lane_of_dtype(t->dtype, *workers);
			const struct lane *l = lane_at(first);

			check_sums(t, first, *workers, COUNT, l->inspect);
			if (l->wide)
				check_sums(t, l->wide, *workers, COUNT, false);
		}
	}
}

static void any_count_fills_its_words_and_no_more(void **state)
{
	for each(t, types) {
		for (size_t count = 0; count <= COUNT; count++) {
			const struct lane *l = lane_at(lane_of_dtype(t->dtype, 3));

			check_sums(t, lane_of_dtype(t->dtype, 3), 3, count, true);
			if (l->wide)
				check_sums(t, l->wide, 3, count, false);
		}
	}
}

static void what_might_wrap_is_wide(void **state)
{
	for each(t, types) {
		for (unsigned int workers = 1; workers <= WORKERS_MAX; workers++) {
			const struct lane *l = lane_at(lane_of_dtype(t->dtype, workers));
			uint8_t in[COUNT * 8] = { 0 };
			wide_int limit = most(t) / workers;
			size_t at = workers % COUNT;

			if (!l->inspect)
				continue;
			value_put(t, in, at, limit);
			assert_false(l->inspect(in, COUNT, workers).wide);
			value_put(t, in, at, t->is_signed ? -limit : 0);
			assert_false(l->inspect(in, COUNT, workers).wide);
			value_put(t, in, at, workers == 1 ? least(t) : limit + 1);
			assert_true(l->inspect(in, COUNT, workers).wide ==
				    (workers > 1 || t->is_signed));
			value_put(t, in, at, t->is_signed ? -limit - 1 : most(t));
			assert_true(l->inspect(in, COUNT, workers).wide ==
				    (workers > 1 || t->is_signed));
		}
	}
}

/* No block of other than zeros would go narrow. */
static void sums_of_many_bytes_begin_wide(void **state)
{
	assert_int_equal(lane_of_dtype(TALLY_INT8, 127), TALLY_LANE_INT8);
	assert_int_equal(lane_of_dtype(TALLY_INT8, 128), TALLY_LANE_INT8_WIDE);
	assert_int_equal(lane_of_dtype(TALLY_UINT8, 255), TALLY_LANE_UINT8);
	assert_int_equal(lane_of_dtype(TALLY_UINT8, 256), TALLY_LANE_UINT8_WIDE);
	assert_int_equal(lane_of_dtype(TALLY_INT16, 256), TALLY_LANE_INT16);
	assert_int_equal(lane_of_dtype(0, 1), TALLY_LANE_NONE);
}

/* All pairs of two ranks' bytes, in all places of a word, beside others of every sign. */
static void all_pairs_of_bytes_add_up(void **state)
{
	for each(t, types) {
		const struct lane_terms terms = { .workers = 2, .divisor = 1 };

		if (t->bits != 8)
			continue;
		for (int pair = 0; pair < 1 << 16; pair++) {
			enum tally_lane first = lane_of_dtype(t->dtype, 2);
			uint8_t a[8], b[8], out[8];
			uint64_t word[4], other[4];
			const struct lane *l;

			for (int i = 0; i < 8; i++) {
				a[i] = (uint8_t)random_next(&random_state);
				b[i] = (uint8_t)random_next(&random_state);
			}
			a[pair % 8] = (uint8_t)pair;
			b[pair % 8] = (uint8_t)(pair >> 8);
			l = lane_at(lane_at(first)->wide);
			if (pair % 2)
				for (int i = 0; i < 8; i++) {
					value_put(t, a, i, value_at(t, a, i) / 2);
					value_put(t, b, i, value_at(t, b, i) / 2);
				}
			if (!lane_at(first)->inspect(a, 8, 2).wide &&
			    !lane_at(first)->inspect(b, 8, 2).wide)
				l = lane_at(first);
			l->pack(a, 8, &terms, word);
			l->pack(b, 8, &terms, other);
			for (size_t i = 0; i < lane_words(l, 8); i++)
				word[i] += other[i];
			l->unpack(word, 8, &terms, out);
			for (int i = 0; i < 8; i++)
				assert_int_equal(out[i], (uint8_t)(a[i] + b[i]));
		}
	}
}

static void check_average(int64_t sum, unsigned int divisor)
{
	const struct lane_terms terms = { .workers = WORKERS_MAX, .divisor = divisor };
	uint64_t word = ((uint64_t)sum << 32) - (uint64_t)sum;
	uint16_t without[2];
	int16_t out[2];

	lane_at(TALLY_LANE_INT16_WIDE)->unpack(&word, 2, &terms, out);
	assert_int_equal(out[0], (int16_t)(-sum / divisor));
	assert_int_equal(out[1], (int16_t)(sum / divisor));
	word = (uint64_t)sum << 32 | (uint64_t)sum;
	lane_at(TALLY_LANE_UINT16_WIDE)->unpack(&word, 2, &terms, without);
	assert_int_equal(without[0], (uint16_t)(sum / divisor));
	assert_int_equal(without[1], (uint16_t)(sum / divisor));
}

/* By every divisor, sums around multiples of it, as large as 256 ranks of 16 bits can make them. */
static void every_average_is_towards_zero(void **state)
{
	for (unsigned int divisor = 2; divisor <= WORKERS_MAX; divisor++) {
		for (int64_t sum = 0; sum < 1 << 24; sum += sum < 2000 ? 1 : 7919) {
			int64_t multiple = sum / divisor * divisor;

			check_average(sum, divisor);
			check_average(multiple, divisor);
			if (multiple)
				check_average(multiple - 1, divisor);
		}
	}
}

static void words_are_as_documented(void **state)
{
	const struct lane_terms terms = { .workers = 1, .divisor = 1 };
	const int8_t bytes[] = { -1, 2, 0, -128, 5, 0, 0, -7 };
	const int16_t shorts[] = { -3, 4, -32768 };
	const uint8_t without[] = { 255, 1 };
	uint64_t word[2], sum = 0;

	lane_at(TALLY_LANE_INT8)->pack(bytes, 8, &terms, word);
	for (int i = 0; i < 8; i++)
		sum += (uint64_t)(int64_t)bytes[i] << 8 * i;
	assert_true(word[0] == sum);
	lane_at(TALLY_LANE_INT8_WIDE)->pack(bytes, 8, &terms, word);
	assert_true(word[0] == ((uint64_t)-128 << 48) + (2 << 16) - 1);
	lane_at(TALLY_LANE_INT16)->pack(shorts, 3, &terms, word);
	assert_true(word[0] == ((uint64_t)-32768 << 32) + (4 << 16) - 3);
	lane_at(TALLY_LANE_INT16_WIDE)->pack(shorts, 3, &terms, word);
	assert_true(word[0] == (UINT64_C(4) << 32) - 3 && word[1] == (uint64_t)-32768);
	lane_at(TALLY_LANE_UINT8)->pack(without, 2, &terms, word);
	assert_true(word[0] == 0x1ff);
}

static void no_word_is_harmful(void **state)
{
	for (unsigned int turn = 0; turn < 2000; turn++) {
		for (int lane = TALLY_LANE_INT8; lane <= TALLY_LANE_UINT64; lane++) {
			struct lane_terms terms = { .workers = 1 + turn % 256 };
			uint64_t word[COUNT];
			uint8_t out[COUNT * 8];

			terms.divisor = turn & 1 ? terms.workers : 1;
			for (int i = 0; i < COUNT; i++)
				word[i] = turn % 3 ? random_next(&random_state)
						   : UINT64_C(1) << turn % 64;
			lane_at((uint8_t)lane)->unpack(word, COUNT, &terms, out);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_and_averages_are_exact_and_wrap_at_their_width),
		cmocka_unit_test(any_count_fills_its_words_and_no_more),
		cmocka_unit_test(what_might_wrap_is_wide),
		cmocka_unit_test(sums_of_many_bytes_begin_wide),
		cmocka_unit_test(all_pairs_of_bytes_add_up),
		cmocka_unit_test(every_average_is_towards_zero),
		cmocka_unit_test(words_are_as_documented),
		cmocka_unit_test(no_word_is_harmful),
	};

	return cmocka_run_group_tests_name("lanes of integers", tests, NULL, NULL);
}
