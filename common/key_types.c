// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdio.h>
#include <string.h>
#include <tally/siphash.h>
#include <tally/wire.h>

#include "address.h"
#include "keys.h"
#include "name.h"
#include "ranks.h"
#include "text.h"

/* --- numbers */

/* The low bytes of a number come first (tally/endian.h). */
uint64_t key_number_load(const void *member, size_t size)
{
	uint64_t n = 0;

	memcpy(&n, member, size);
	return n;
}

void key_number_store(uint64_t n, void *member, size_t size) { memcpy(member, &n, size); }

static bool number_parse(const struct key *key, const char *text, void *member)
{
	uint64_t n;

	if (!text_number(text, key->type == &key_rate, key->max, &n) || n < key->min ||
	    (key->type == &key_power && n & (n - 1)) ||
	    (key->type == &key_blocks && n % TALLY_BLOCK_BYTES))
		return false;
	key_number_store(n, member, key->size);
	return true;
}

static void number_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%ju", (uintmax_t)key_number_load(member, key->size));
}

/* Where a number is "a whole number", it is one of JSON, which has no suffixes. */
static void number_describe(const struct key *key, const char *number, char *text, size_t size)
{
	bool suffixes = key->type == &key_rate && !strcmp(number, "a number");
	char what[32];

	snprintf(what, sizeof(what), "a multiple of %d", TALLY_BLOCK_BYTES);
	snprintf(text, size, "%s from %ju to %ju%s%s",
		 key->type == &key_power    ? "a power of two"
		 : key->type == &key_blocks ? what
					    : number,
		 (uintmax_t)key->min, (uintmax_t)key->max,
		 suffixes ? ", or with k, M or G behind it" : "",
		 key->type == &key_blocks ? " (bytes)" : "");
}

#define NUMBER { number_parse, number_print, NULL, number_describe, .literal = true }

const struct key_type key_number = NUMBER, key_rate = NUMBER, key_power = NUMBER,
		      key_blocks = NUMBER;

static bool hex_parse(const struct key *key, const char *text, void *member)
{
	uint64_t n;

	if (!text_hex64(text, &n) || n < key->min)
		return false;
	key_number_store(n, member, key->size);
	return true;
}

static void hex_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%016jx", (uintmax_t)key_number_load(member, key->size));
}

const struct key_type key_hex = { hex_parse, hex_print, .allowed = "16 digits of 0-9 and a-f",
				  .secret = true };

static bool bytes_parse(const struct key *key, const char *text, void *member)
{
	return text_hex_parse(text, member, key->size);
}

static void bytes_print(const struct key *key, const void *member, char *text, size_t size)
{
	if (size > 2 * key->size)
		text_hex_print(member, key->size, text);
}

static void bytes_describe(const struct key *key, const char *number, char *text, size_t size)
{
	snprintf(text, size, "%zu digits of 0-9 and a-f", 2 * key->size);
}

const struct key_type key_bytes = { bytes_parse, bytes_print, NULL, bytes_describe,
				    .secret = true };

/* The bytes of the key in their order. */
static bool rank_key_parse(const struct key *key, const char *text, void *member)
{
	char half[2][17];
	uint64_t n[2] = { 0 };

	for (int i = 0; i < 2; i++)
		snprintf(half[i], sizeof(half[i]), "%.16s",
			 strlen(text) == 32 ? text + 16 * i : "");
	if (strcmp(text, "-") != 0 &&
	    (!text_hex64(half[0], &n[0]) || !text_hex64(half[1], &n[1]) || !(n[0] | n[1])))
		return false;
	for (int i = 0; i < 2; i++)
		((struct tally_key *)member)->word[i] = __builtin_bswap64(n[i]);
	return true;
}

static void rank_key_print(const struct key *key, const void *member, char *text, size_t size)
{
	const struct tally_key *k = member;

	snprintf(text, size, "-");
	if (k->word[0] | k->word[1])
		snprintf(text, size, "%016jx%016jx", (uintmax_t)__builtin_bswap64(k->word[0]),
			 (uintmax_t)__builtin_bswap64(k->word[1]));
}

const struct key_type key_rank_key = {
	rank_key_parse, rank_key_print,
	.allowed = "32 digits of 0-9 and a-f, not all of them 0, or - for one that need "
		   "not be known here",
	.secret = true
};

/* --- ranks */

static bool ranks_take(const struct key *key, const char *text, void *member)
{
	return ranks_parse(text, member) == 0;
}

static void ranks_put(const struct key *key, const void *member, char *text, size_t size)
{
	ranks_print(member, text, size);
}

const struct key_type key_ranks = { ranks_take, ranks_put, .allowed = "ranks, such as 0-3,7" };

/* --- choices */

static bool choice_parse(const struct key *key, const char *text, void *member)
{
	for (unsigned int i = key->min; key->words[i]; i++)
		if (!strcmp(text, key->words[i])) {
			*(unsigned int *)member = i;
			return true;
		}
	return false;
}

static void choice_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", key->words[*(const unsigned int *)member]);
}

static void choice_describe(const struct key *key, const char *number, char *text, size_t size)
{
	char list[TEXT_LIST_BYTES];
	unsigned int count = key->min;

	while (key->words[count])
		count++;
	snprintf(text, size, "one of %s",
		 text_list(key->words + key->min, count - key->min, sizeof(*key->words), list));
}

static bool bool_parse(const struct key *key, const char *text, void *member)
{
	if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
		return false;
	*(bool *)member = *text == 't';
	return true;
}

static void bool_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", *(const bool *)member ? "true" : "false");
}

const struct key_type key_choice = {
	.parse = choice_parse, .print = choice_print, NULL, choice_describe, .bare = true
};
const struct key_type key_bool = { bool_parse, bool_print, .allowed = "one of false and true",
				   .literal = true };

/* --- texts */

static bool text_store(const struct key *key, const char *text, void *member)
{
	return snprintf(member, key->size, "%s", text) < (int)key->size;
}

static void text_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
}

static bool name_parse(const struct key *key, const char *text, void *member)
{
	return (key->type == &key_name ? name_is_valid(text) : token_is_valid(text)) &&
	       text_store(key, text, member);
}

static bool path_parse(const struct key *key, const char *text, void *member)
{
	if (*text != '/' || strlen(text) >= key->size)
		return false;
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return false;
	return text_store(key, text, member);
}

static void path_describe(const struct key *key, const char *number, char *text, size_t size)
{
	snprintf(text, size, "a path from / on, of at most %zu printable characters",
		 key->size - 1);
}

const struct key_type key_name = { name_parse, text_print,
				   .allowed = "1 to 63 of a-z, 0-9, '.', '_' and '-', beginning "
					      "with a letter or a digit",
				   .bare = true };
const struct key_type key_token = { name_parse, text_print,
				    .allowed = "1 to 128 of A-Z, a-z, 0-9, '_' and '-'",
				    .secret = true };
const struct key_type key_path = { path_parse, text_print, .describe = path_describe };

_Static_assert(NAME_BYTES == 64 && TOKEN_BYTES == 129, "the texts above name them");

/* --- addresses */

static bool address_take(const struct key *key, const char *text, void *member)
{
	if (key->type == &key_listen)
		return address_listen_parse(text, member) == 0;
	return address_parse(text, key->type == &key_address ? TALLY_UDP_PORT : 0, member) == 0;
}

static void address_put(const struct key *key, const void *member, char *text, size_t size)
{
	(key->type == &key_address ? address_print : endpoint_print)(member, text, size);
}

const struct key_type key_address = { address_take, address_put,
				      .allowed = "an address without port, such as 10.77.0.1 or "
						 "fd77::1" };
const struct key_type key_endpoint = { address_take, address_put,
				       .allowed = "an address and port, such as 10.77.1.1:40000 "
						  "or [fd77:1::1]:40000" };
const struct key_type key_listen = { address_take, address_put,
				     .allowed = "an address and port, such as 127.0.0.1:9464 or "
						"[::]:9464" };
