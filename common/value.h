/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a text says, as a tree of values with their positions: what each reader (lines, YAML, JSON)
 * makes of its text, and what a table of keys (keys.h) checks. Pure.
 */
#ifndef TALLY_COMMON_VALUE_H
#define TALLY_COMMON_VALUE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	VALUE_DEPTH_MAX = 8, /* of lists and mappings in one another */
};

/* In a text; both from 1. 0: not known. */
struct position {
	unsigned int line, column;
};

enum value_kind {
	VALUE_NOTHING, /* a key without a value */
	VALUE_TEXT, /* of a format without types: may be read as anything */
	VALUE_STRING, /* never read as a number */
	VALUE_LITERAL, /* a number, true, false or null: never read as a string */
	VALUE_LIST,
	VALUE_MAPPING,
};

struct value {
	enum value_kind kind;
	struct position at;
	const char *text; /* with a NUL behind it; not NULL, "" for lists and mappings */
	size_t length; /* of `text`, which may have NULs in it */
	struct value *key; /* its name in a mapping; NULL elsewhere */
	struct value *first, *last; /* of a list or mapping */
	struct value *next; /* in the same list or mapping */
};

/* With a copy of the text. NULL: no memory. */
struct value *value_new(enum value_kind kind, const char *text, size_t length, struct position at);

/* With all that is in it; NULL allowed. */
void value_free(struct value *v);
static inline void value_freep(struct value **v) { value_free(*v); }

/* Makes `v` the last one in `parent`, which owns it from now on. */
void value_add(struct value *parent, struct value *v);

static inline bool value_is_scalar(const struct value *v) { return v->kind < VALUE_LIST; }

/* Is the value this very word? */
bool value_is(const struct value *v, const char *word);

#endif
