// SPDX-License-Identifier: GPL-2.0-only
/* Keys and proofs are what the standards, and docs/joining.md, say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/secret.h"
#include "common/sha256.h"

#define TOKEN "000102030405060708090a0b0c0d0e0f1011121314151617"

static void is_hex(const uint8_t *bytes, size_t length, const char *hex)
{
	char text[2 * SECRET_KEY_BYTES + 1] = "";

	for (size_t i = 0; i < length; i++)
		snprintf(text + 2 * i, 3, "%02x", bytes[i]);
	assert_string_equal(text, hex);
}

/* In pieces of every length, which end at all places of a block. */
static void hash_is(const char *text, size_t times, const char *hex)
{
	uint8_t hash[SHA256_BYTES];

	for (size_t piece = 1; piece < 130; piece += times > 1 ? 129 : 1) {
		const size_t length = strlen(text);
		struct sha256 s;

		sha256_begin(&s);
		for (size_t n = 0; n < times; n++)
			for (size_t at = 0; at < length; at += piece)
				sha256_add(&s, text + at,
					   length - at < piece ? length - at : piece);
		sha256_end(&s, hash);
		is_hex(hash, sizeof(hash), hex);
	}
}

/* FIPS 180-4's examples, and lengths around the end of a block. */
static void sha256_is_that_of_the_standard(void **state)
{
	hash_is("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_is("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_is("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	hash_is("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqkl"
		"mnopqrlmnopqrsmnopqrstnopqrstu",
		1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
	hash_is("a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
	hash_is("a", 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
	hash_is("a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
	hash_is("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231, cases 1 to 4, 6 and 7: short keys, and longer ones than a block. */
static void hmac_is_that_of_the_standard(void **state)
{
	static const struct {
		uint8_t byte;
		size_t length; /* of the key; 0: it is "Jefe" */
		const char *text, *hmac;
	} cases[] = {
		{ 0x0b, 20, "Hi There",
		  "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
		{ 0, 0, "what do ya want for nothing?",
		  "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
		{ 0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First",
		  "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
		{ 0xaa, 131,
		  "This is a test using a larger than block-size key and a larger than block-size "
		  "data. The key needs to be hashed before being used by the HMAC algorithm.",
		  "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
	};
	uint8_t key[131], hmac[SECRET_KEY_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const void *k = cases[i].length ? (const void *)key : "Jefe";
		const size_t length = cases[i].length ? cases[i].length : 4;
		const char *text = cases[i].text;

		memset(key, cases[i].byte, sizeof(key));
		secret_hmac(k, length, text, NULL, 0, hmac);
		is_hex(hmac, sizeof(hmac), cases[i].hmac);
		secret_hmac(k, length, "", text, strlen(text), hmac);
		is_hex(hmac, sizeof(hmac), cases[i].hmac);
	}
}

static void rank_key_is(uint32_t job, uint16_t epoch, uint64_t nonce, uint32_t rank,
			const char *hex)
{
	uint8_t token_key[SECRET_KEY_BYTES], key[SECRET_RANK_KEY_BYTES];

	secret_token_key(TOKEN, token_key);
	assert_int_equal(secret_rank_key(token_key, job, epoch, nonce, rank, key), 0);
	is_hex(key, sizeof(key), hex);
}

static void keys_are_those_of_the_page(void **state)
{
	static const uint8_t rank_key[SECRET_RANK_KEY_BYTES] = { 0x9c, 0xe5, 0xf2, 0xbb, 0x5c, 0x0e,
								 0xac, 0x9d, 0x6c, 0xa2, 0x5f, 0x1e,
								 0x0a, 0xc1, 0xb4, 0xd7 };
	uint8_t token_key[SECRET_KEY_BYTES], key[SECRET_KEY_BYTES];

	secret_token_key(TOKEN, token_key);
	secret_place_key(token_key, rank_key, key);
	is_hex(key, sizeof(key),
	       "6f4fc056ee8b025191fdb1c6d406bbda5ed8662230f796bd646a7d4384d39f96");
	is_hex(token_key, sizeof(token_key),
	       "6a5b64544b8b273ee7183e0400d53efd8c0d2b2441fd7ba05581847ee65d920b");
	rank_key_is(7, 12, 0x9c41d00f3ae7b552, 0, "a92275b5aad43eca5af8235007776735");
	rank_key_is(7, 12, 0x9c41d00f3ae7b552, 1, "52d66364f37f1e41093fe6ccf5b0697b");
	rank_key_is(7, 12, 0x9c41d00f3ae7b552, 255, "5475c41c9ef428f619f8c46ec7ca86e6");
	rank_key_is(7, 12, 0x9c41d00f3ae7b552, SECRET_ALL_RANKS,
		    "fdf64ec11258c9b838520d068ca68b12");
	rank_key_is(UINT32_MAX, UINT16_MAX, 1, 0, "ae7316debcad9d4e2d0bd8097339b8d3");
}

static void every_bit_counts_in_a_comparison(void **state)
{
	uint8_t a[SECRET_KEY_BYTES] = { 0 }, b[SECRET_KEY_BYTES] = { 0 };

	assert_true(secret_is_equal(a, b, sizeof(a)));
	for (size_t i = 0; i < 8 * sizeof(a); i++) {
		b[i / 8] ^= 1u << i % 8;
		assert_false(secret_is_equal(a, b, sizeof(a)));
		b[i / 8] ^= 1u << i % 8;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_is_that_of_the_standard),
		cmocka_unit_test(hmac_is_that_of_the_standard),
		cmocka_unit_test(keys_are_those_of_the_page),
		cmocka_unit_test(every_bit_counts_in_a_comparison),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
