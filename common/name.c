// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "name.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

bool name_is_valid(const char *name)
{
	size_t n = strspn(name, LETTERS DIGITS "._-");

	return n && n < NAME_BYTES && !name[n] && !strchr("._-", *name);
}

bool token_is_valid(const char *token)
{
	size_t n = strspn(token, LETTERS CAPITALS DIGITS "_-");

	return n && n < TOKEN_BYTES && !token[n];
}
