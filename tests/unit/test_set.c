// SPDX-License-Identifier: GPL-2.0-only
/* Sets of workers: all ranks, all pairs, and random sets against arrays of bool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tally/set.h>
#include <tally/wire.h>

enum {
	ROUNDS = 20000,
};

static struct tally_set set_of(uint32_t rank)
{
	struct tally_set s = { { 0 } };

	tally_set_add(&s, rank);
	return s;
}

static void nobody_is_in_an_empty_set(void **state)
{
	const struct tally_set empty = { { 0 } };

	assert_true(tally_set_is_empty(&empty));
	assert_false(tally_set_is_single(&empty));
	assert_true(tally_set_is_equal(&empty, &empty));
	assert_true(tally_set_is_within(&empty, &empty));
	assert_true(tally_set_is_disjoint(&empty, &empty));
	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		assert_false(tally_set_has(&empty, rank) || tally_set_is_only(&empty, rank));
}

static void every_pair_of_ranks_is_told_apart(void **state)
{
	for (uint32_t a = 0; a < TALLY_WORKERS_MAX; a++)
		for (uint32_t b = 0; b < TALLY_WORKERS_MAX; b++) {
			const struct tally_set one = set_of(a), other = set_of(b);
			struct tally_set both = one;

			tally_set_join(&both, &other);
			assert_int_equal(tally_set_has(&one, b), a == b);
			assert_int_equal(tally_set_is_equal(&one, &other), a == b);
			assert_int_equal(tally_set_is_disjoint(&one, &other), a != b);
			assert_int_equal(tally_set_is_within(&one, &other), a == b);
			assert_int_equal(tally_set_is_single(&both), a == b);
			assert_int_equal(tally_set_is_only(&one, b), a == b);
			assert_int_equal(tally_set_is_only(&both, a), a == b);
			assert_true(tally_set_is_within(&one, &both));
			assert_int_equal(tally_set_is_within(&both, &one), a == b);
			assert_false(tally_set_is_empty(&both));
		}
}

static void the_first_ranks_are_those_below_their_number(void **state)
{
	for (uint32_t workers = 0; workers <= TALLY_WORKERS_MAX + 1; workers++) {
		const struct tally_set first = tally_set_first(workers);

		for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++)
			assert_int_equal(tally_set_has(&first, rank), rank < workers);
		assert_int_equal(tally_set_is_empty(&first), workers == 0);
		assert_int_equal(tally_set_is_single(&first), workers == 1);
	}
}

/* The ranks 0 to 63 in the header's last word, the others behind the header. */
static void on_the_wire_rank_r_is_bit_r_of_the_bytes(void **state)
{
	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		const struct tally_set s = set_of(rank);
		struct {
			struct tally_header h;
			struct tally_more more;
		} large = { .h = { .magic = TALLY_MAGIC, .flags = TALLY_LARGE } };
		struct tally_set back;
		uint8_t bytes[sizeof(large)];

		tally_header_set_put(&large.h, &s);
		back = tally_header_set(&large.h);
		assert_true(tally_set_is_equal(&back, &s));
		memcpy(bytes, &large, sizeof(large));
		for (uint32_t i = 0; i < TALLY_WORKERS_MAX / 8; i++)
			assert_int_equal(bytes[56 + i], i == rank / 8 ? 1 << rank % 8 : 0);
	}
}

static void a_small_header_has_the_ranks_below_64_and_ends_there(void **state)
{
	for (uint32_t rank = 0; rank < 64; rank++) {
		const struct tally_set s = set_of(rank);
		struct tally_header h[2] = { { .magic = TALLY_MAGIC }, { .magic = 0x55 } };
		const struct tally_header behind = h[1];
		struct tally_set back;

		tally_header_set_put(h, &s);
		back = tally_header_set(h);
		assert_true(tally_set_is_equal(&back, &s));
		assert_memory_equal(&h[1], &behind, sizeof(behind));
	}
	assert_int_equal(tally_header_bytes(TALLY_FLAGS_UP & ~TALLY_LARGE), 64);
	assert_int_equal(tally_header_bytes(TALLY_LARGE), 96);
}

static void jobs_of_more_than_64_workers_have_large_headers(void **state)
{
	for (uint32_t workers = 0; workers <= TALLY_WORKERS_MAX; workers++) {
		const struct tally_set everyone = tally_set_first(workers);

		assert_int_equal(tally_is_large(&everyone), workers > 64);
	}
	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		const struct tally_set s = set_of(rank);

		assert_int_equal(tally_is_large(&s), rank >= 64);
	}
}

static void the_payload_is_for_the_recipient_or_for_everyone(void **state)
{
	const struct tally_set below = { { 1ULL << 5, 0, 1, 1ULL << 63 } };

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		assert_int_equal(tally_gets_payload(rank, &below),
				 rank == 5 || rank == 128 || rank == 255);
	assert_true(tally_gets_payload(TALLY_EVERYONE, &below));
}

/* --- the obvious way */

struct model {
	bool in[TALLY_WORKERS_MAX];
};

static uint64_t random_next(uint64_t *random)
{
	*random ^= *random << 13;
	*random ^= *random >> 7;
	*random ^= *random << 17;
	return *random;
}

/* From nearly empty to nearly full. */
static struct tally_set random_set(uint64_t *random, struct model *ret)
{
	uint64_t shift = random_next(random) % 9;
	struct tally_set s = { { 0 } };

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		ret->in[rank] = random_next(random) % 256 < (1U << shift) - 1;
		if (ret->in[rank])
			tally_set_add(&s, rank);
	}
	return s;
}

static void assert_like_model(const struct tally_set *s, const struct model *m)
{
	int members = 0;

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		assert_int_equal(tally_set_has(s, rank), m->in[rank]);
		members += m->in[rank];
	}
	assert_int_equal(tally_set_is_empty(s), members == 0);
	assert_int_equal(tally_set_is_single(s), members == 1);
}

static void assert_pair_like_models(const struct tally_set *a, const struct model *of_a,
				    const struct tally_set *b, const struct model *of_b)
{
	int common = 0, only_a = 0, only_b = 0;

	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX; rank++) {
		common += of_a->in[rank] && of_b->in[rank];
		only_a += of_a->in[rank] && !of_b->in[rank];
		only_b += !of_a->in[rank] && of_b->in[rank];
	}
	assert_int_equal(tally_set_is_disjoint(a, b), common == 0);
	assert_int_equal(tally_set_is_within(a, b), only_a == 0);
	assert_int_equal(tally_set_is_within(b, a), only_b == 0);
	assert_int_equal(tally_set_is_equal(a, b), only_a + only_b == 0);
}

static void sets_do_what_arrays_of_bool_do(void **state)
{
	uint64_t random = 1;

	for (int i = 0; i < ROUNDS; i++) {
		struct model of_a, of_b;
		struct tally_set a = random_set(&random, &of_a), b = random_set(&random, &of_b);

		assert_like_model(&a, &of_a);
		assert_pair_like_models(&a, &of_a, &b, &of_b);
		tally_set_join(&a, &b);
		for (int rank = 0; rank < TALLY_WORKERS_MAX; rank++)
			of_a.in[rank] |= of_b.in[rank];
		assert_like_model(&a, &of_a);
		assert_pair_like_models(&a, &of_a, &b, &of_b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_in_an_empty_set),
		cmocka_unit_test(every_pair_of_ranks_is_told_apart),
		cmocka_unit_test(the_first_ranks_are_those_below_their_number),
		cmocka_unit_test(on_the_wire_rank_r_is_bit_r_of_the_bytes),
		cmocka_unit_test(a_small_header_has_the_ranks_below_64_and_ends_there),
		cmocka_unit_test(jobs_of_more_than_64_workers_have_large_headers),
		cmocka_unit_test(the_payload_is_for_the_recipient_or_for_everyone),
		cmocka_unit_test(sets_do_what_arrays_of_bool_do),
	};

	return cmocka_run_group_tests_name("set", tests, NULL, NULL);
}
