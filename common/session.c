// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "session.h"
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LEAD "proof "

enum {
	LEAD_BYTES = sizeof(LEAD) - 1,
	PROOF_DIGITS = SECRET_PROOF_BYTES - 1,
	NUMBER_DIGITS = 6, /* of a message's length */
};

_Static_assert(LEAD_BYTES + PROOF_DIGITS + 1 + NUMBER_DIGITS + 2 <= SESSION_LINE_BYTES, "");

void session_begin(const uint8_t token_key[SECRET_KEY_BYTES], const char *opening, size_t length,
		   struct session *ret)
{
	*ret = (struct session){ .said = { 0 } };
	secret_hmac(token_key, SECRET_KEY_BYTES, "", opening, length, ret->key);
}

static const char *speaker_name(enum session_speaker who)
{
	return who == SESSION_WORKER ? "worker" : "agent";
}

/* In hex: of the message, who says it, and how many messages the speaker has said before. */
static void prove(const struct session *s, enum session_speaker who, const char *message,
		  size_t length, char ret[SECRET_PROOF_BYTES])
{
	uint8_t proof[SECRET_KEY_BYTES];
	char place[32];

	snprintf(place, sizeof(place), "%s %" PRIu64 "\n", speaker_name(who), s->said[who]);
	secret_hmac(s->key, sizeof(s->key), place, message, length, proof);
	text_hex_print(proof, sizeof(proof), ret);
}

void session_hide(struct session *s, const uint8_t secret[X25519_BYTES],
		  const uint8_t share[X25519_BYTES])
{
	uint8_t known[X25519_BYTES];

	x25519(secret, share, known);
	secret_hmac(s->key, sizeof(s->key), "hidden\n", known, sizeof(known), s->hidden);
	s->hides = true;
	explicit_bzero(known, sizeof(known));
}

/* Hides a message, or shows it again: bytes that depend on who says it, and as which message. */
static void mask(const struct session *s, enum session_speaker who, uint64_t number,
		 const char *message, size_t length, char *ret)
{
	uint8_t pad[SECRET_KEY_BYTES];
	char place[64];

	for (size_t i = 0; i < length; i++) {
		if (i % sizeof(pad) == 0) {
			snprintf(place, sizeof(place), "%s %" PRIu64 "\nblock %zu\n",
				 speaker_name(who), number, i / sizeof(pad));
			secret_hmac(s->hidden, sizeof(s->hidden), place, NULL, 0, pad);
		}
		ret[i] = (char)(message[i] ^ pad[i % sizeof(pad)]);
	}
	explicit_bzero(pad, sizeof(pad));
}

void session_show(const struct session *s, enum session_speaker who, const char *message,
		  size_t length, char *ret)
{
	if (s->hides)
		mask(s, who, s->said[who] - 1, message, length, ret);
	else
		memmove(ret, message, length);
}

int session_print(struct session *s, enum session_speaker who, const char *message, size_t length,
		  char *text, size_t size, size_t *ret_length)
{
	char proof[SECRET_PROOF_BYTES], end[32];
	size_t used = LEAD_BYTES + PROOF_DIGITS +
		      (size_t)snprintf(end, sizeof(end), " %zu\n", length);

	if (used + length >= size)
		return -ENOSPC;
	memcpy(text + used, message, length);
	if (s->hides)
		mask(s, who, s->said[who], message, length, text + used);
	prove(s, who, text + used, length, proof);
	memcpy(text, LEAD, LEAD_BYTES);
	memcpy(text + LEAD_BYTES, proof, PROOF_DIGITS);
	memcpy(text + LEAD_BYTES + PROOF_DIGITS, end, strlen(end));
	text[used + length] = '\0';
	s->said[who]++;
	*ret_length = used + length;
	return 0;
}

void session_seal(const struct session *s, const uint8_t secret[X25519_BYTES],
		  const uint8_t share[X25519_BYTES], uint8_t key[SECRET_RANK_KEY_BYTES])
{
	uint8_t known[X25519_BYTES], pad[SECRET_KEY_BYTES];

	x25519(secret, share, known);
	secret_hmac(s->key, sizeof(s->key), "rank key\n", known, sizeof(known), pad);
	for (int i = 0; i < SECRET_RANK_KEY_BYTES; i++)
		key[i] ^= pad[i];
	explicit_bzero(known, sizeof(known));
	explicit_bzero(pad, sizeof(pad));
}

void session_cover(const struct session *s, uint8_t key[SECRET_KEY_BYTES])
{
	uint8_t pad[SECRET_KEY_BYTES];

	secret_hmac(s->key, sizeof(s->key), "token key\n", NULL, 0, pad);
	for (int i = 0; i < SECRET_KEY_BYTES; i++)
		key[i] ^= pad[i];
	explicit_bzero(pad, sizeof(pad));
}

/* The line: its proof, the message's length, and where the line ends. */
static int line_parse(const char *text, size_t length, const char **ret_proof, uint32_t *ret_length,
		      size_t *ret_end)
{
	const size_t number = LEAD_BYTES + PROOF_DIGITS + 1, most = number + NUMBER_DIGITS + 1;
	const char *end = memchr(text, '\n', length < most ? length : most);
	char digits[NUMBER_DIGITS + 1] = "";

	if (memcmp(text, LEAD, length < LEAD_BYTES ? length : LEAD_BYTES) != 0)
		return -EINVAL;
	if (!end)
		return length < most ? -EAGAIN : -EINVAL;
	if (end < text + number || text[number - 1] != ' ')
		return -EINVAL;
	memcpy(digits, text + number, (size_t)(end - text) - number);
	if (*digits == '0' || !text_u32(digits, UINT32_MAX, ret_length))
		return -EINVAL;
	*ret_proof = text + LEAD_BYTES;
	*ret_end = (size_t)(end - text) + 1;
	return 0;
}

int session_parse(struct session *s, enum session_speaker who, const char *text, size_t length,
		  size_t most, const char **ret, size_t *ret_length, size_t *ret_end)
{
	char wanted[SECRET_PROOF_BYTES];
	const char *proof = NULL;
	uint32_t bytes = 0;
	size_t start = 0;
	int r;

	r = line_parse(text, length, &proof, &bytes, &start);
	if (r < 0)
		return r;
	if (bytes > most)
		return -EINVAL;
	if (length - start < bytes)
		return -EAGAIN;
	prove(s, who, text + start, bytes, wanted);
	if (!secret_is_equal(proof, wanted, PROOF_DIGITS))
		return -EBADMSG;
	s->said[who]++;
	*ret = text + start;
	*ret_length = bytes;
	*ret_end = start + bytes;
	return 0;
}
