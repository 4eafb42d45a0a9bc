// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base64.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_print(const void *bytes, size_t length)
{
	const uint8_t *from = bytes;
	char *text = malloc((length + 2) / 3 * 4 + 1), *to = text;

	if (!text)
		return NULL;
	for (size_t i = 0; i < length; i += 3) {
		const size_t left = length - i;
		const uint32_t three = from[i] << 16 | (left > 1 ? from[i + 1] << 8 : 0) |
				       (left > 2 ? from[i + 2] : 0);

		*to++ = digits[three >> 18];
		*to++ = digits[three >> 12 & 63];
		*to++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*to++ = left > 2 ? digits[three & 63] : '=';
	}
	*to = '\0';
	return text;
}

/* Its value, or -1. */
static int digit_value(char c)
{
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int base64_parse(const char *text, size_t length, char **ret, size_t *ret_length)
{
	size_t pads = 0, n = 0;
	uint32_t bits = 0;
	char *bytes;

	while (pads < 2 && pads < length && text[length - 1 - pads] == '=')
		pads++;
	if (length % 4)
		return -EINVAL;
	bytes = malloc(length / 4 * 3 + 1);
	if (!bytes)
		return -ENOMEM;
	for (size_t i = 0; i < length; i++) {
		const int value = i < length - pads ? digit_value(text[i]) : 0;

		if (value < 0) {
			free(bytes);
			return -EINVAL;
		}
		bits = bits << 6 | (uint32_t)value;
		if (i % 4 != 3)
			continue;
		bytes[n++] = (char)(bits >> 16);
		bytes[n++] = (char)(bits >> 8);
		bytes[n++] = (char)bits;
	}
	n -= pads;
	bytes[n] = '\0';
	*ret = bytes;
	*ret_length = n;
	return 0;
}
