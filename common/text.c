// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "text.h"

#include <stdio.h>
#include <string.h>

enum {
	WORD_MAX = 32, /* bytes of the longest name of any table; what is longer is near to none */
};

bool text_number(const char *text, bool suffixes, uint64_t max, uint64_t *ret)
{
	static const char units[] = "kMG";
	const char *unit;
	uint64_t n = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *text - '0', &n))
			return false;
	}
	unit = suffixes && *text ? strchr(units, *text) : NULL;
	for (size_t i = unit ? unit - units + 1 : 0; i > 0; i--)
		if (__builtin_mul_overflow(n, 1000, &n))
			return false;
	text += !!unit;
	if (*text || n > max)
		return false;
	*ret = n;
	return true;
}

bool text_u32(const char *text, uint32_t max, uint32_t *ret)
{
	uint64_t number;

	if (!text_number(text, false, max, &number))
		return false;
	*ret = number;
	return true;
}

bool text_hex64(const char *text, uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t n = 0;

	if (strspn(text, digits) != 16 || text[16])
		return false;
	for (; *text; text++)
		n = n << 4 | (uint64_t)(strchr(digits, *text) - digits);
	*ret = n;
	return true;
}

void text_hex_print(const void *bytes, size_t count, char *ret)
{
	for (size_t i = 0; i < count; i++)
		snprintf(ret + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
}

bool text_hex_parse(const char *text, void *ret, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	if (strspn(text, digits) != 2 * count || text[2 * count])
		return false;
	for (size_t i = 0; i < count; i++)
		((uint8_t *)ret)[i] = (uint8_t)((strchr(digits, text[2 * i]) - digits) << 4 |
						(strchr(digits, text[2 * i + 1]) - digits));
	return true;
}

const char *text_quote(const char *text, size_t length, char *ret)
{
	const size_t room = TEXT_QUOTED_BYTES - sizeof("''...");
	size_t shown = length < room ? length : room;
	char *to = ret;

	*to++ = '\'';
	for (size_t i = 0; i < shown; i++)
		*to++ = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	snprintf(to, TEXT_QUOTED_BYTES - (to - ret), "%s'", shown < length ? "..." : "");
	return ret;
}

static const char *name_at(const void *table, size_t size, size_t i)
{
	return *(const char *const *)((const char *)table + i * size);
}

const char *text_list(const void *table, size_t count, size_t size, char *ret)
{
	size_t used = 0;

	*ret = '\0';
	for (size_t i = 0; i < count && used < TEXT_LIST_BYTES; i++)
		used += snprintf(ret + used, TEXT_LIST_BYTES - used, "%s%s",
				 !i ? "" : (i + 1 < count ? ", " : " and "),
				 name_at(table, size, i));
	return ret;
}

/* How many letters must be put in, taken out or changed to make one word of the other. */
static size_t distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], a_length = strlen(a), b_length = strlen(b);

	for (size_t j = 0; j <= b_length; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			size_t changed = diagonal + (a[i - 1] != b[j - 1]);
			size_t one_more = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

			diagonal = row[j];
			row[j] = changed < one_more ? changed : one_more;
		}
	}
	return row[b_length];
}

const char *text_nearest(const void *table, size_t count, size_t size, const char *word)
{
	const char *nearest = NULL;
	size_t best = WORD_MAX;

	if (strlen(word) > WORD_MAX)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		const char *name = name_at(table, size, i);
		size_t d = distance(word, name);

		if (d < best && 3 * d <= strlen(name)) {
			nearest = name;
			best = d;
		}
	}
	return nearest;
}
