// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "value.h"

#include <stdlib.h>
#include <string.h>

struct value *value_new(enum value_kind kind, const char *text, size_t length, struct position at)
{
	struct value *v = calloc(1, sizeof(*v) + length + 1);

	if (!v)
		return NULL;
	v->kind = kind;
	v->at = at;
	v->text = memcpy(v + 1, text, length);
	v->length = length;
	return v;
}

void value_free(struct value *v)
{
	while (v) {
		struct value *next = v->next;

		value_free(v->first);
		value_free(v->key);
		free(v);
		v = next;
	}
}

void value_add(struct value *parent, struct value *v)
{
	if (parent->last)
		parent->last->next = v;
	else
		parent->first = v;
	parent->last = v;
}

bool value_is(const struct value *v, const char *word)
{
	return value_is_scalar(v) && strlen(word) == v->length && !memcmp(word, v->text, v->length);
}
