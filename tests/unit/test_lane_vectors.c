// SPDX-License-Identifier: GPL-2.0-only
/* Vectors of all kinds that this processor has give the bits that slow and obvious loops give. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/lane_vectors.h"
#include "tests/unit/floats.h"
#include "tests/unit/random.h"

enum {
	COUNT_MAX = 200, /* more than three tiles */
	KINDS = 3, /* that there are for x86-64 */
};

static uint64_t random_state = 5;

/* Of any magnitude below 2^below; with some zeros, subnormals, infinities and NaNs. */
static float random_float(int below)
{
	static const uint32_t special[] = { 0,		0x80000000, 1,
					    0x007fffff, 0x7f800000, 0xff800000,
					    0x7f800001, 0xffc00000, 0x7fffffff };
	uint32_t bits = (uint32_t)random_next(&random_state);

	if (random_below(&random_state, 8) == 0)
		return float_of(
			special[random_below(&random_state, sizeof(special) / sizeof(*special))]);
	/* Mostly near the top, where something is left of them. */
	return ldexpf(float_of((bits & 0x807fffff) | 0x3f000000),
		      below - (int)random_below(&random_state, 36));
}

static int32_t slow_largest(const float *x, size_t count)
{
	uint32_t largest = 0;

	for (size_t i = 0; i < count; i++)
		if ((bits_of(x[i]) & 0x7fffffff) > largest)
			largest = bits_of(x[i]) & 0x7fffffff;
	return (int32_t)largest;
}

/* The words of whole numbers, one after another. */
static void slow_words(const int64_t *q, size_t count, uint64_t *word)
{
	for (size_t i = 0; i < count; i += 2)
		word[i / 2] = (uint64_t)q[i] + (i + 1 < count ? (uint64_t)q[i + 1] << 32 : 0);
}

static uint64_t slow_check(const uint64_t *word, size_t words)
{
	uint64_t check = 0;

	for (size_t i = 0; i < words; i++)
		check += (2 * i + 1) * word[i];
	return check;
}

static void check_packing(const struct lane_vectors *v, size_t count, int exponent)
{
	uint64_t word[COUNT_MAX / 2 + 1], slow[COUNT_MAX / 2];
	int64_t q[COUNT_MAX] = { 0 };
	float x[COUNT_MAX];

	memset(word, 0x5a, sizeof(word));
	for (size_t i = 0; i < count; i++) {
		x[i] = random_float(30 - exponent);
		q[i] = isfinite(x[i]) ? (int64_t)rint(ldexp((double)x[i], exponent)) : 0;
	}
	slow_words(q, count, slow);
	assert_int_equal(v->largest(x, count), slow_largest(x, count));
	v->pack(x, count, exponent, word);
	assert_memory_equal(word, slow, (count + 1) / 2 * sizeof(*word));
	assert_int_equal(word[(count + 1) / 2], 0x5a5a5a5a5a5a5a5a); /* and no more words */
	assert_int_equal(v->check(word, (count + 1) / 2), slow_check(slow, (count + 1) / 2));
}

static void check_unpacking(const struct lane_vectors *v, size_t count, double step)
{
	uint64_t word[COUNT_MAX / 2 + 1] = { 0 };
	int64_t q[COUNT_MAX] = { 0 };
	float x[COUNT_MAX + 1];

	for (size_t i = 0; i < count; i++)
		q[i] = (int32_t)random_next(&random_state) >> random_below(&random_state, 31);
	slow_words(q, count, word);
	x[count] = 7;
	v->unpack(word, count, step, x);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(bits_of(x[i]), bits_of((float)((double)q[i] * step)));
	assert_true(x[count] == 7);
}

static void all_kinds_pack_the_same_bits(void **state)
{
	const struct lane_vectors *v;

	for (unsigned int kind = 0; (v = lane_vectors_at(kind)); kind++)
		for (int exponent = -120; exponent <= 120; exponent++)
			for (size_t count = 0; count <= COUNT_MAX;
			     count += 1 + (unsigned int)(exponent + 120) % 3)
				check_packing(v, count, exponent);
}

/* With and without a divisor, up to results that are infinite. */
static void all_kinds_unpack_the_same_bits(void **state)
{
	const struct lane_vectors *v;

	for (unsigned int kind = 0; (v = lane_vectors_at(kind)); kind++)
		for (int exponent = -126; exponent < 127; exponent++)
			for (size_t count = 0; count <= COUNT_MAX; count += 7) {
				check_unpacking(v, count, ldexp(1, exponent));
				check_unpacking(v, count, ldexp(2.0 / 3, exponent));
				check_unpacking(v, count, ldexp(128.0 / 255, exponent + 1));
			}
}

static void the_best_of_the_processor_is_taken(void **state)
{
	unsigned int kinds = 0;

	for (; lane_vectors_at(kinds); kinds++)
		print_message("compared: %s\n", lane_vectors_at(kinds)->name);
	assert_in_range(kinds, 1, KINDS);
	assert_ptr_equal(lane_vectors(), lane_vectors_at(kinds - 1));
	assert_string_equal(lane_vectors_at(0)->name, "plain");
	assert_null(lane_vectors_at(KINDS));
	if (kinds < KINDS)
		print_message("SKIP: this processor lacks %u of %d kinds\n", KINDS - kinds, KINDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds_pack_the_same_bits),
		cmocka_unit_test(all_kinds_unpack_the_same_bits),
		cmocka_unit_test(the_best_of_the_processor_is_taken),
	};

	return cmocka_run_group_tests_name("lane_vectors", tests, NULL, NULL);
}
