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

#include "client/lane_float.h"
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

/* --- 16 bits */

static const struct lane_quarters *quarters_of(const struct lane_vectors *v,
					       const struct float_format *f)
{
	return f == &float_bfloat16 ? &v->bfloat16 : &v->float16;
}

/* Below 2^below; with some zeros, subnormals, infinities and NaNs. */
static uint16_t random_16(const struct float_format *f, int below)
{
	const int32_t mantissa = (int32_t)random_below(&random_state, 4079) - 2039;

	if (random_below(&random_state, 8) == 0)
		return (uint16_t)(random_next(&random_state) % 4 * float_sign(f) / 2 +
				  (random_below(&random_state, 2) ? float_infinity(f) : 0));
	return (uint16_t)float_result(f, mantissa, 1,
				      below - 11 - (int)random_below(&random_state, 22));
}

static bool is_finite_16(const struct float_format *f, uint16_t x)
{
	return (x & INT16_MAX) < (int)float_infinity(f);
}

static void slow_quarters(const int64_t *q, size_t count, uint64_t *word)
{
	memset(word, 0, (count + 3) / 4 * sizeof(*word));
	for (size_t i = 0; i < count; i++)
		word[i / 4] += (uint64_t)q[i] << (16 * (i % 4));
}

static void check_packing_16(const struct lane_vectors *v, const struct float_format *f,
			     size_t count, int exponent)
{
	uint64_t word[COUNT_MAX / 4 + 1], slow[COUNT_MAX / 4];
	int64_t q[COUNT_MAX] = { 0 };
	float as_floats[COUNT_MAX];
	uint16_t x[COUNT_MAX];
	int32_t largest = 0;

	memset(word, 0x5a, sizeof(word));
	for (size_t i = 0; i < count; i++) {
		x[i] = random_16(f, 15 - exponent);
		if (is_finite_16(f, x[i]) && (x[i] & INT16_MAX) &&
		    float_below(f, x[i] & INT16_MAX) + exponent > 15)
			x[i] = 0;
		q[i] = is_finite_16(f, x[i]) ? float_quantise(f, x[i], exponent) : 0;
		largest = largest > (x[i] & INT16_MAX) ? largest : x[i] & INT16_MAX;
	}
	slow_quarters(q, count, slow);
	assert_int_equal(v->largest_of_16(x, count), largest);
	quarters_of(v, f)->to_floats(x, count, as_floats);
	for (size_t i = 0; i < count; i++)
		if (is_finite_16(f, x[i]))
			assert_int_equal(float_quantise(f, x[i], 140),
					 float_quantise(&(struct float_format){ 4, 23, 255 },
							bits_of(as_floats[i]), 140));
	quarters_of(v, f)->pack(x, count, exponent, word);
	assert_memory_equal(word, slow, (count + 3) / 4 * sizeof(*word));
	assert_int_equal(word[(count + 3) / 4], 0x5a5a5a5a5a5a5a5a);
}

static void check_unpacking_16(const struct lane_vectors *v, const struct float_format *f,
			       size_t count, uint16_t divisor, int exponent)
{
	uint64_t word[COUNT_MAX / 4 + 1] = { 0 };
	int64_t q[COUNT_MAX] = { 0 };
	uint16_t x[COUNT_MAX + 1];
	bool subnormal = false;

	for (size_t i = 0; i < count; i++) {
		q[i] = (int16_t)random_next(&random_state) >> random_below(&random_state, 15);
		subnormal |= q[i] && f == &float_bfloat16 &&
			     fabs((double)q[i] / divisor * ldexp(1, exponent)) < 0x1p-126;
	}
	slow_quarters(q, count, word);
	x[count] = 7;
	assert_int_equal(quarters_of(v, f)->unpack(word, count, divisor, exponent, x), !subnormal);
	for (size_t i = 0; i < count && !subnormal; i++)
		assert_int_equal(x[i], float_result(f, q[i], divisor, exponent));
	assert_int_equal(x[count], 7);
}

static const struct float_format *const types_of_16[] = { &float_bfloat16, &float_float16 };

static void all_kinds_pack_the_same_bits_of_16(void **state)
{
	const struct lane_vectors *v;

	for (unsigned int kind = 0; (v = lane_vectors_at(kind)); kind++)
		for (int type = 0; type < 2; type++)
			for (int exponent = -126; exponent <= 125; exponent++)
				for (size_t count = 0; count <= COUNT_MAX;
				     count += 1 + (unsigned int)(exponent + 126) % 5)
					check_packing_16(v, types_of_16[type], count, exponent);
}

/* From subnormals on, up to results that are infinite. */
static void all_kinds_unpack_the_same_bits_of_16(void **state)
{
	static const uint16_t divisors[] = { 1, 2, 3, 7, 16, 127, 128, 255, 256 };
	const size_t divisors_count = sizeof(divisors) / sizeof(*divisors);
	const struct lane_vectors *v;

	for (unsigned int kind = 0; (v = lane_vectors_at(kind)); kind++)
		for (int type = 0; type < 2; type++)
			for (int exponent = -126; exponent <= 127; exponent++)
				for (size_t count = 0; count <= COUNT_MAX; count++)
					check_unpacking_16(v, types_of_16[type], count,
							   divisors[count % divisors_count],
							   exponent);
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
		cmocka_unit_test(all_kinds_pack_the_same_bits_of_16),
		cmocka_unit_test(all_kinds_unpack_the_same_bits_of_16),
		cmocka_unit_test(the_best_of_the_processor_is_taken),
	};

	return cmocka_run_group_tests_name("lane_vectors", tests, NULL, NULL);
}
