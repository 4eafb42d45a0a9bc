// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stdint.h>
#include <string.h>

#include "name.h"

static bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool name_is_valid(const char *name)
{
	size_t n = 0;

	if (!is_letter_or_digit(*name))
		return false;
	while (n < NAME_BYTES && name[n] && (is_letter_or_digit(name[n]) || strchr("._-", name[n])))
		n++;
	return n < NAME_BYTES && !name[n];
}

bool token_is_valid(const char *token)
{
	size_t n = 0;

	while (n < TOKEN_BYTES && token[n] &&
	       (is_letter_or_digit(token[n]) || (token[n] >= 'A' && token[n] <= 'Z') ||
		strchr("_-", token[n])))
		n++;
	return n > 0 && n < TOKEN_BYTES && !token[n];
}

bool token_is_equal(const char *token, const char *secret)
{
	size_t length = strlen(token), wanted = strlen(secret);
	volatile unsigned char differs = length != wanted || !wanted;

	for (size_t i = 0; i < length; i++)
		differs |= (unsigned char)token[i] ^ (unsigned char)secret[i % (wanted + 1)];
	return !differs;
}
