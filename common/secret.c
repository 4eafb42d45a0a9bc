// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "secret.h"
#include "sha256.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert((int)SECRET_KEY_BYTES == (int)SHA256_BYTES, "");

/* One of the two passes: the key, changed by `pad`, and what is behind it. */
static void pass(const uint8_t key[SHA256_BLOCK_BYTES], uint8_t pad, const char *head,
		 const void *text, size_t length, uint8_t ret[SHA256_BYTES])
{
	uint8_t block[SHA256_BLOCK_BYTES];
	struct sha256 s;

	for (int i = 0; i < SHA256_BLOCK_BYTES; i++)
		block[i] = key[i] ^ pad;
	sha256_begin(&s);
	sha256_add(&s, block, sizeof(block));
	sha256_add(&s, head, strlen(head));
	sha256_add(&s, text, length);
	sha256_end(&s, ret);
	explicit_bzero(block, sizeof(block));
}

void secret_hmac(const void *key, size_t key_length, const char *head, const void *text,
		 size_t length, uint8_t ret[SECRET_KEY_BYTES])
{
	uint8_t block[SHA256_BLOCK_BYTES] = { 0 }, inner[SHA256_BYTES];
	struct sha256 s;

	if (key_length <= sizeof(block)) {
		memcpy(block, key, key_length);
	} else {
		sha256_begin(&s);
		sha256_add(&s, key, key_length);
		sha256_end(&s, block);
	}
	pass(block, 0x36, head, text, length, inner);
	pass(block, 0x5c, "", inner, sizeof(inner), ret);
	explicit_bzero(block, sizeof(block));
}

void secret_token_key(const char *token, uint8_t ret[SECRET_KEY_BYTES])
{
	secret_hmac(token, strlen(token), "tally token", NULL, 0, ret);
}

int secret_rank_key(const uint8_t secret[SECRET_KEY_BYTES], uint32_t job, uint16_t epoch,
		    uint64_t nonce, uint32_t rank, uint8_t ret[SECRET_RANK_KEY_BYTES])
{
	uint8_t key[SECRET_KEY_BYTES];
	char text[128], who[16] = "all";

	if (rank != SECRET_ALL_RANKS)
		snprintf(who, sizeof(who), "%" PRIu32, rank);
	snprintf(text, sizeof(text),
		 "tally key\njob %" PRIu32 "\nepoch %u\nnonce %016" PRIx64 "\nrank %s\n", job,
		 epoch, nonce, who);
	secret_hmac(secret, SECRET_KEY_BYTES, text, NULL, 0, key);
	memcpy(ret, key, SECRET_RANK_KEY_BYTES);
	explicit_bzero(key, sizeof(key));
	return 0;
}

void secret_place_key(const uint8_t token_key[SECRET_KEY_BYTES],
		      const uint8_t rank_key[SECRET_RANK_KEY_BYTES], uint8_t ret[SECRET_KEY_BYTES])
{
	secret_hmac(token_key, SECRET_KEY_BYTES, "tally place\n", rank_key, SECRET_RANK_KEY_BYTES,
		    ret);
}

bool secret_is_equal(const void *a, const void *b, size_t length)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t differs = 0;

	for (size_t i = 0; i < length; i++)
		differs |= x[i] ^ y[i];
	return !differs;
}
