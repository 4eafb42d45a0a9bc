// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "store.h"

#include <errno.h>
#include <string.h>

static bool is_key(const char *key)
{
	size_t length = strnlen(key, STORE_KEY_BYTES);

	for (size_t i = 0; i < length; i++)
		if (key[i] < '!' || key[i] > '~')
			return false;
	return length > 0 && length < STORE_KEY_BYTES;
}

static bool is_write(const struct store_write *w)
{
	if (w->changes == 0 || w->changes > STORE_CHANGES_MAX || w->seens > STORE_CHANGES_MAX)
		return false;
	for (unsigned int i = 0; i < w->seens; i++)
		if (!is_key(w->seen[i].key))
			return false;
	for (unsigned int i = 0; i < w->changes; i++) {
		const char *value = w->change[i].value;

		if (!is_key(w->change[i].key) ||
		    (value && strnlen(value, STORE_VALUE_BYTES) == STORE_VALUE_BYTES))
			return false;
		for (unsigned int k = 0; k < i; k++)
			if (!strcmp(w->change[i].key, w->change[k].key))
				return false;
	}
	return true;
}

int store_write(struct store *s, const struct store_write *w, store_done *done, void *context)
{
	return is_write(w) ? s->kind->write(s, w, done, context) : -EINVAL;
}

int store_follow(struct store *s, const char *prefix, const struct store_follower *f)
{
	return is_key(prefix) ? s->kind->follow(s, prefix, f) : -EINVAL;
}

uint64_t store_heard_ns(const struct store *s) { return s->kind->heard_ns(s); }

void store_close(struct store *s)
{
	if (s)
		s->kind->close(s);
}
