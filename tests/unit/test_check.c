// SPDX-License-Identifier: GPL-2.0-only
/* The two words that say what a sum is of: which changes of a message they tell, one and all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/check.h>

#include "client/shape.h"
#include "tests/unit/random.h"

enum {
	HEADER_BITS = 8 * (sizeof(struct tally_header) + sizeof(struct tally_set) - 8),
	FREE_BITS = 64 + 8, /* of the tag itself, and of `blocks` */
	TOLD_BITS = HEADER_BITS - FREE_BITS,
};

/* A header and the ranks from 64 on, as bits in a row. */
struct headed {
	union {
		struct tally_header h;
		uint8_t byte[HEADER_BITS / 8];
	};
};

static void flip(struct headed *m, size_t bit) { m->byte[bit / 8] ^= 1 << bit % 8; }

static uint64_t tag_of(const struct headed *m)
{
	struct tally_set set = { { tally_le64_get(m->h.set) } };

	memcpy(&set.word[1], m->byte + sizeof(m->h), sizeof(set) - 8);
	return tally_tag(&m->h, &set);
}

static bool is_told(size_t bit)
{
	return bit / 8 != offsetof(struct tally_header, blocks) &&
	       bit / 64 != offsetof(struct tally_header, tag) / 8;
}

/* A large one: all words of the set count. */
static struct headed some_header(uint64_t seed)
{
	struct headed m;

	memset(&m, 0, sizeof(m));
	for (size_t i = 0; seed && i < sizeof(m.byte); i++)
		m.byte[i] = random_next(&seed);
	m.byte[offsetof(struct tally_header, flags)] |= TALLY_LARGE;
	return m;
}

static void every_flipped_bit_makes_another_tag(void **state)
{
	for (uint64_t seed = 0; seed < 20; seed++) {
		struct headed m = some_header(seed);
		uint64_t tag = tag_of(&m);

		for (size_t bit = 0; bit < HEADER_BITS; bit++) {
			flip(&m, bit);
			assert_int_equal(tag_of(&m) != tag, is_told(bit));
			flip(&m, bit);
		}
	}
}

static void every_two_flipped_bits_make_another_tag(void **state)
{
	for (uint64_t seed = 0; seed < 4; seed++) {
		struct headed m = some_header(seed);
		uint64_t tag = tag_of(&m);
		size_t told = 0, pairs = 0;

		for (size_t a = 0; a < HEADER_BITS; a++) {
			flip(&m, a);
			for (size_t b = a + 1; b < HEADER_BITS; b++) {
				flip(&m, b);
				pairs += is_told(a) && is_told(b);
				told += is_told(a) && is_told(b) && tag_of(&m) != tag;
				flip(&m, b);
			}
			flip(&m, a);
		}
		assert_int_equal(pairs, TOLD_BITS * (TOLD_BITS - 1) / 2);
		assert_int_equal(told, pairs);
	}
}

/* --- identities */

static int order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static bool all_differ(uint64_t *word, size_t count)
{
	qsort(word, count, sizeof(*word), order);
	for (size_t i = 1; i < count; i++)
		if (word[i] == word[i - 1])
			return false;
	return true;
}

struct fields {
	uint64_t nonce, call, place;
	uint32_t job, seq;
	uint16_t epoch;
};

static uint64_t identity_of(const struct fields *f)
{
	return tally_identity(tally_run_identity(f->nonce, f->job, f->epoch), f->seq, f->call,
			      f->place);
}

/* But for bit 0, which is 1 in all of them. */
static void every_bit_of_every_field_makes_another_identity(void **state)
{
	static const struct {
		size_t at, bytes;
	} field[] = {
		{ offsetof(struct fields, nonce), 8 }, { offsetof(struct fields, call), 8 },
		{ offsetof(struct fields, place), 8 }, { offsetof(struct fields, job), 4 },
		{ offsetof(struct fields, seq), 4 },   { offsetof(struct fields, epoch), 2 },
	};

	for (uint64_t seed = 0; seed < 100; seed++) {
		uint64_t random = seed, identity[1 + 34 * 8];
		struct fields f = { 0 };
		size_t count = 0;

		if (seed)
			f = (struct fields){ random_next(&random), random_next(&random),
					     random_next(&random), random_next(&random),
					     random_next(&random), random_next(&random) };
		identity[count++] = identity_of(&f);
		for (int i = 0; i < 6; i++) {
			for (size_t bit = 0; bit < 8 * field[i].bytes; bit++) {
				uint8_t *byte = (uint8_t *)&f + field[i].at + bit / 8;

				*byte ^= 1 << bit % 8;
				identity[count++] = identity_of(&f);
				assert_int_equal(identity[count - 1] & 1, 1);
				*byte ^= 1 << bit % 8;
			}
		}
		assert_int_equal(count, 1 + 34 * 8);
		assert_true(all_differ(identity, count));
	}
}

/* What ranks really have: the chunks of one run after the other, call after call. */
static void neighbours_have_different_identities(void **state)
{
	static uint64_t identity[4 * 8 * 8 * 256];
	size_t count = 0;

	for (uint16_t epoch = 1; epoch <= 4; epoch++)
		for (uint64_t call = 1; call <= 8; call++)
			for (uint64_t place = 0; place < 8; place++)
				for (uint32_t seq = 0; seq < 256; seq++)
					identity[count++] = identity_of(
						&(struct fields){ .nonce = 1,
								  .job = 1,
								  .epoch = epoch,
								  .call = call,
								  .place = place << 32,
								  .seq = seq });
	assert_true(all_differ(identity, count));
}

/* --- weights */

static void weights_are_odd_and_distinct(void **state)
{
	uint64_t weight[TALLY_WORKERS_MAX];

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		weight[rank] = tally_weight(rank);
		assert_int_equal(weight[rank] & 1, 1);
	}
	assert_true(all_differ(weight, TALLY_WORKERS_MAX));
}

/*
 * What a sum may be off by: a rank too few, one too many, or one in place of another. The identity
 * is odd, so identity * weight is never 0 where the weight is not.
 */
static void no_sum_of_other_ranks_has_the_weight_of_all(void **state)
{
	for (uint32_t a = 0; a < TALLY_WORKERS_MAX; a++) {
		assert_true(tally_weight(a) != 0);
		for (uint32_t b = 0; b < TALLY_WORKERS_MAX; b++) {
			assert_true(tally_weight(a) + tally_weight(b) != 0); /* two missing */
			if (a != b)
				assert_true(tally_weight(a) - tally_weight(b) != 0);
		}
	}
}

/* As a sum would really be: of jobs of all sizes, with words that are all 0. */
static void a_check_tells_missing_and_repeated_ranks(void **state)
{
	static const uint32_t sizes[] = { 1, 2, 3, 8, 64, 65, 256 };
	const uint64_t identity = identity_of(&(struct fields){ .nonce = 3, .job = 7, .epoch = 1 });

	for (int i = 0; i < 7; i++) {
		uint64_t all = 0;

		for (uint32_t rank = 0; rank < sizes[i]; rank++)
			all += identity * tally_weight(rank);
		for (uint32_t missing = 0; missing <= sizes[i]; missing++) {
			for (uint32_t twice = 0; twice <= sizes[i]; twice++) {
				uint64_t check = all;

				if (missing < sizes[i])
					check -= identity * tally_weight(missing);
				if (twice < sizes[i])
					check += identity * tally_weight(twice);
				assert_int_equal(check == all, missing == twice);
			}
		}
	}
}

/* --- numbers that another program, written from docs/protocol.md, has worked out */

static void hashes_are_those_of_the_protocol(void **state)
{
	const uint64_t run = tally_run_identity(0x0123456789abcdef, 7, 3);
	struct headed m;

	for (size_t i = 0; i < sizeof(m.byte); i++)
		m.byte[i] = i < sizeof(m.h) ? 0x10 + i : 0x80 + i - sizeof(m.h);
	assert_true(tag_of(&m) == 0xa96b4a8c2cb033e3);
	m.h.flags |= TALLY_LARGE;
	assert_true(tag_of(&m) == 0x583c44982d337cf8);
	assert_true(tally_weight(0) == 0xdf442d22110c749b);
	assert_true(tally_weight(255) == 0x836c7479342de34b);
	assert_true(run == 0x56d36c6ff90c6eb4);
	assert_true(tally_identity(run, 0x89abcdef, 0x18240089, 0x100014102) == 0xf97edd02afe4ac35);
}

static void shapes_are_those_of_the_protocol(void **state)
{
	const struct call_member member = { .window = 128, .payload_bytes = 1408 };
	const struct call_options average = { .verb = CALL_REDUCE,
					      .dtype = TALLY_FLOAT32,
					      .op = TALLY_AVG,
					      .root = 5,
					      .count = 1000 };

	assert_true(shape_of(&member, &average) == 0x1f42ce0b1a);
}

/*
 * Of a header of the bytes 0, 1, 2, ..., with the key 0, 1, ... 15. The numbers are those of an
 * implementation of SipHash-1-3 that was written apart from this one, and tested by its vector.
 */
static void a_keyed_tag_is_siphash_of_all_but_the_tag(void **state)
{
	static const uint64_t expected[] = { 0x85917a0fa9eccde2, 0x21c0c54d6fc6ecf2 };
	const struct tally_key key = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	struct {
		struct tally_header h;
		struct tally_more more;
	} m = { 0 };

	for (unsigned int i = 0; i < sizeof(m) - sizeof(m.more.reserved); i++)
		((uint8_t *)&m)[i] = i;
	for (int large = 0; large < 2; large++) {
		struct tally_set set;

		m.h.flags = large ? TALLY_LARGE : 0;
		set = tally_header_set(&m.h);
		assert_true(tally_keyed_tag(&m.h, &set, &key) == expected[large]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_keyed_tag_is_siphash_of_all_but_the_tag),
		cmocka_unit_test(every_flipped_bit_makes_another_tag),
		cmocka_unit_test(every_two_flipped_bits_make_another_tag),
		cmocka_unit_test(every_bit_of_every_field_makes_another_identity),
		cmocka_unit_test(neighbours_have_different_identities),
		cmocka_unit_test(weights_are_odd_and_distinct),
		cmocka_unit_test(no_sum_of_other_ranks_has_the_weight_of_all),
		cmocka_unit_test(a_check_tells_missing_and_repeated_ranks),
		cmocka_unit_test(hashes_are_those_of_the_protocol),
		cmocka_unit_test(shapes_are_those_of_the_protocol),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
