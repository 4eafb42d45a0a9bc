// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "lines.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
	STRICT_KEY_SHOWN = 24, /* more than the longest key; of a wrong one only so much */
	LOOSE_KEY_BYTES = 16, /* longest key, its end, and room to see a wrong one */
	LOOSE_VALUE_BYTES = 64, /* the same of a value */
};

static const struct value nothing = { .text = "" };
static const struct place root = { .index = -1, .value = &nothing };

#define STYLE(how)                                        \
	{ .number = "a number",                           \
	  .no_such_key = "no such key",                   \
	  .missing = "no line '%s ...', which is needed", \
	  .shown = (how),                                 \
	  .keys_lead = true }

static const struct keys_style strict_style = STYLE(KEYS_HIDDEN), loose_style = STYLE(KEYS_BARE);

void lines_init(struct lines *l, const char *text, size_t length, size_t line_max, char *why,
		size_t why_size)
{
	*l = (struct lines){ .text = text, .length = length, .line_max = line_max };
	l->reading = (struct reading){ .style = line_max ? &strict_style : &loose_style,
				       .why = why,
				       .why_size = why_size };
	l->key.kind = l->value.kind = VALUE_TEXT;
	l->key.text = l->value.text = l->copy;
	if (why_size)
		*why = '\0';
}

void lines_init_loose(struct lines *l, const char *text, size_t length, char *why, size_t why_size)
{
	lines_init(l, text, length, 0, why, why_size);
}

int lines_refuse(struct lines *l, int error, const char *format, ...)
{
	struct key key = { .name = l->key.text };
	struct place at = { *key.name ? &root : NULL, &key, -1, &l->value };
	char said[192];
	va_list values;

	va_start(values, format);
	vsnprintf(said, sizeof(said), format, values);
	va_end(values);
	keys_refuse(&l->reading, &at, "%s", said);
	return error;
}

/* Key and value are at these columns of `copy`, or of the text. */
static void line_set(struct lines *l, const char *key, unsigned int key_column, const char *value,
		     unsigned int value_column)
{
	l->key.text = key;
	l->key.length = strlen(key);
	l->key.at = (struct position){ l->line, key_column };
	l->value.text = value;
	l->value.length = strlen(value);
	l->value.at = (struct position){ l->line, value_column };
}

/* --- strict lines */

static bool is_printable(char c) { return c >= ' ' && c <= '~'; }

/* The first `n` bytes of the line as two strings, for people where it is not printable. */
static void line_copy(struct lines *l, const char *line, size_t n)
{
	char *blank;

	for (size_t i = 0; i < n; i++)
		l->copy[i] = is_printable(line[i]) ? line[i] : '?';
	l->copy[n] = '\0';
	blank = strchr(l->copy, ' ');
	if (blank)
		*blank = '\0';
	if (strlen(l->copy) > STRICT_KEY_SHOWN)
		l->copy[STRICT_KEY_SHOWN] = '\0';
	line_set(l, l->copy, 1, blank ? blank + 1 : l->copy + n,
		 (blank ? blank + 1 : l->copy + n) - l->copy + 1);
}

static int strict_next(struct lines *l)
{
	const char *line = l->text + l->at;
	size_t left = l->length - l->at, most = left < l->line_max + 1 ? left : l->line_max + 1;
	const char *end = memchr(line, '\n', most);
	size_t n = end ? (size_t)(end - line) : most;

	l->line++;
	line_copy(l, line, n < l->line_max ? n : l->line_max);
	for (size_t i = 0; i < n; i++)
		if (!is_printable(line[i]))
			return lines_refuse(
				l, -EINVAL,
				"byte 0x%02x at column %zu: printable ASCII and newlines only",
				(unsigned char)line[i], i + 1);
	if (end) {
		l->at += n + 1;
		return 0;
	}
	if (n > l->line_max)
		return lines_refuse(l, -EMSGSIZE, "the line is longer than %zu bytes", l->line_max);
	return -EAGAIN;
}

bool lines_is_empty(const struct lines *l) { return !*l->key.text && l->value.text == l->key.text; }

/* --- loose lines */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static const char *blanks_skip(const char *at, const char *end)
{
	while (at < end && is_blank(*at))
		at++;
	return at;
}

/*
 * The next word of a line into `ret`. Strange bytes become '?', and a word that does not fit
 * ends in '~': neither stands in anything that is allowed.
 */
static const char *word_take(const char *at, const char *end, char *ret, size_t size)
{
	size_t n = 0;

	for (; at < end && !is_blank(*at) && *at != '#'; at++) {
		if (n + 1 < size)
			ret[n++] = *at > ' ' && *at < '~' ? *at : '?';
		else
			ret[n - 1] = '~';
	}
	ret[n] = '\0';
	return blanks_skip(at, end);
}

/* Lines without a key are passed over. */
static int loose_next(struct lines *l)
{
	char *key = l->copy, *value = l->copy + LOOSE_KEY_BYTES;

	do {
		const char *start = l->text + l->at, *newline, *end, *word, *next, *rest;

		if (l->at == l->length)
			return -EAGAIN;
		newline = memchr(start, '\n', l->length - l->at);
		end = newline ? newline : l->text + l->length;
		l->at = end - l->text + !!newline;
		l->line++;
		word = blanks_skip(start, end);
		next = word_take(word, end, key, LOOSE_KEY_BYTES);
		rest = word_take(next, end, value, LOOSE_VALUE_BYTES);
		l->more = rest < end && *rest != '#';
		line_set(l, key, word - start + 1, value, next - start + 1);
	} while (!*key);
	return 0;
}

/* --- both */

int lines_next(struct lines *l) { return l->line_max ? strict_next(l) : loose_next(l); }

int lines_take(struct lines *l, const struct keys *keys, void *into, uint32_t *seen)
{
	int i = keys_find(&l->reading, &root, &l->key, keys);
	struct place at = { &root, NULL, -1, &l->value };

	if (i < 0)
		return i;
	at.key = &keys->key[i];
	if (l->more)
		return keys_refuse(&l->reading, &at, "one value only; remarks begin with #");
	if (!l->line_max && !*l->value.text)
		return keys_refuse(&l->reading, &at, "a value is missing");
	if (*seen & 1u << i && !at.key->list_max)
		return keys_refuse(&l->reading, &at, "given twice");
	*seen |= 1u << i;
	return keys_take_one(&l->reading, &at, into);
}

int lines_end(struct lines *l, const struct keys *keys, uint32_t seen)
{
	return keys_missing(&l->reading, &root, keys, seen);
}

/* Of one key: a line, or one for each element. */
static size_t key_lines(const struct key *key, const void *from, char *text, size_t size)
{
	unsigned int count = key->list_max ? key_count(key, from) : !key_is_brief(key, from);
	char value[LINES_BYTES_MAX];
	size_t used = 0;

	for (unsigned int i = 0; i < count && used < size; i++) {
		key_print(key, from, i, value, sizeof(value));
		used += snprintf(text + used, size - used, "%s %s\n", key->name, value);
	}
	return used;
}

int lines_print(const char *head, const struct keys *keys, const void *from, const char *tail,
		char *text, size_t size, size_t *ret_length)
{
	size_t used = snprintf(text, size, "%s", head);

	for (size_t i = 0; keys && i < keys->count && used < size; i++)
		used += key_lines(&keys->key[i], from, text + used, size - used);
	if (used < size)
		used += snprintf(text + used, size - used, "%s", tail);
	if (used >= size)
		return -ENOSPC;
	*ret_length = used;
	return 0;
}
