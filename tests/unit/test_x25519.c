// SPDX-License-Identifier: GPL-2.0-only
/* X25519 by the vectors of RFC 7748, and what follows from the law of the group. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/text.h"
#include "common/x25519.h"
#include "tests/unit/random.h"

static void bytes_of(const char *hex, uint8_t ret[X25519_BYTES])
{
	assert_true(text_hex_parse(hex, ret, X25519_BYTES));
}

static void shared_is(const char *secret, const char *share, const char *wanted)
{
	uint8_t a[X25519_BYTES], b[X25519_BYTES], c[X25519_BYTES], got[X25519_BYTES];

	bytes_of(secret, a);
	bytes_of(share, b);
	bytes_of(wanted, c);
	x25519(a, b, got);
	assert_memory_equal(got, c, sizeof(c));
}

/* RFC 7748, 5.2. */
static void results_are_those_of_the_standard(void **state)
{
	shared_is("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
		  "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
		  "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
	shared_is("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
		  "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
		  "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");
}

/* The same place: k and u begin as 9; k becomes the result, and u the k before. */
static void a_thousand_results_in_a_row_are_those_of_the_standard(void **state)
{
	uint8_t k[X25519_BYTES] = { 9 }, u[X25519_BYTES] = { 9 }, next[X25519_BYTES];
	uint8_t wanted[X25519_BYTES];

	for (int i = 1; i <= 1000; i++) {
		x25519(k, u, next);
		memcpy(u, k, sizeof(u));
		memcpy(k, next, sizeof(k));
		if (i == 1)
			bytes_of("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079",
				 wanted);
		if (i == 1)
			assert_memory_equal(k, wanted, sizeof(k));
	}
	bytes_of("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51", wanted);
	assert_memory_equal(k, wanted, sizeof(k));
}

/* Numbers that are not below the modulus, and the bit that is nobody's; as OpenSSL 3.0 has them. */
static void unusual_shares_are_what_others_take_them_for(void **state)
{
	static const char *const known[][2] = {
		{ "0200000000000000000000000000000000000000000000000000000000000000",
		  "0989cc65eeda6d8051c96629f916d2b8d947e68219702d29a3efd3438698590a" },
		{ "0900000000000000000000000000000000000000000000000000000000000000",
		  "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c" },
		{ "ebffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "900044c44698ad4a9c9cfc045928ef320fb8fa7c5a8b5a6c51f7197d0b359248" },
		{ "efffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "0989cc65eeda6d8051c96629f916d2b8d947e68219702d29a3efd3438698590a" },
		{ "f6ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "07a37cbc142093c8b755dc1b10e86cb426374ad16aa853ed0bdfc0b2b86d1c7c" },
		{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "bc1a5eacfb62da8bffcf2bb301bd98686b9b43b694db9d62ef9440c2332ce759" },
		{ "feffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		  "c45d0d2d81d020fd9545d65a13ccbaebb1ca7fbfd5345b58b3f2f44548d3916a" },
		{ "0500000000000000000000000000000000000000000000000000000000000080",
		  "dbd0053725d068240e973897e0e743d5314afecaf5462fc8f9d6225f9d3fc105" },
		{ "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		  "bc1a5eacfb62da8bffcf2bb301bd98686b9b43b694db9d62ef9440c2332ce759" },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		shared_is("0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
			  known[i][0], known[i][1]);
}

static void two_come_to_know_the_same_and_a_third_one_does_not(void **state)
{
	uint8_t secret[3][X25519_BYTES], share[3][X25519_BYTES], known[3][X25519_BYTES];
	uint64_t random = 1;

	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 3; i++) {
			for (int k = 0; k < X25519_BYTES; k++)
				secret[i][k] = (uint8_t)random_next(&random);
			x25519_share(secret[i], share[i]);
		}
		x25519(secret[0], share[1], known[0]);
		x25519(secret[1], share[0], known[1]);
		x25519(secret[2], share[0], known[2]);
		assert_memory_equal(known[0], known[1], sizeof(known[0]));
		assert_memory_not_equal(known[0], known[2], sizeof(known[0]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_are_those_of_the_standard),
		cmocka_unit_test(a_thousand_results_in_a_row_are_those_of_the_standard),
		cmocka_unit_test(unusual_shares_are_what_others_take_them_for),
		cmocka_unit_test(two_come_to_know_the_same_and_a_third_one_does_not),
	};

	return cmocka_run_group_tests_name("x25519", tests, NULL, NULL);
}
