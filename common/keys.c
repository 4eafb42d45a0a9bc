// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "keys.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "owned.h"
#include "rows.h"
#include "text.h"

enum {
	PATH_BYTES = 160, /* of a printed place; deeper ones are cut */
	SAID_BYTES = 440,
};

/* --- what is wrong, and where */

/* "tenants[1].slots", or nothing at the root. */
static size_t path_print(const struct place *at, char *ret)
{
	size_t used;

	if (!at->above)
		return 0;
	used = path_print(at->above, ret);
	if (used >= PATH_BYTES)
		return used;
	if (at->index >= 0)
		return used + snprintf(ret + used, PATH_BYTES - used, "[%d]", at->index);
	return used +
	       snprintf(ret + used, PATH_BYTES - used, "%s%s", used ? "." : "", at->key->name);
}

static bool is_secret(const struct place *at)
{
	return at->key && at->key->type && at->key->type->secret;
}

static int refuse_at(struct reading *r, const struct place *at, unsigned int line, const char *said)
{
	char path[PATH_BYTES] = "", where[32] = "";
	bool is_shown = r->style->shown == KEYS_BARE && at->value && !is_secret(at);
	const char *value = is_shown ? at->value->text : "";

	if (line)
		snprintf(where, sizeof(where), r->name ? ":%u" : "line %u", line);
	path_print(at, path);
	snprintf(r->why, r->why_size, "%s%s%s%s%s%s%s%s", r->name ? r->name : "", where,
		 r->name || line ? ": " : "", path, *value ? " " : "", value,
		 *path || *value ? ": " : "", said);
	return -EINVAL;
}

int keys_refuse(struct reading *r, const struct place *at, const char *format, ...)
{
	char said[SAID_BYTES];
	va_list values;

	va_start(values, format);
	vsnprintf(said, sizeof(said), format, values);
	va_end(values);
	return refuse_at(r, at, at->value->at.line, said);
}

int keys_refuse_value(struct reading *r, const struct place *at, const char *format, ...)
{
	char said[SAID_BYTES], quoted[TEXT_QUOTED_BYTES];
	const struct value *v = at->value;
	const char *shown = quoted;
	va_list values;

	va_start(values, format);
	vsnprintf(said, sizeof(said), format, values);
	va_end(values);
	if (r->style->shown != KEYS_QUOTED || is_secret(at))
		return keys_refuse(r, at, "%s", said);
	if (value_is_scalar(v))
		text_quote(v->text, v->length, quoted);
	else
		shown = v->kind == VALUE_LIST ? "(a list)" : "(a mapping)";
	return keys_refuse(r, at, "%s: %s", shown, said);
}

/* --- mappings */

/* With the key that was probably meant, or all that there are. */
static int refuse_key(struct reading *r, const struct place *above, const struct value *key,
		      const struct keys *keys)
{
	const char *nearest = text_nearest(keys->key, keys->count, sizeof(*keys->key), key->text);
	char said[SAID_BYTES], list[TEXT_LIST_BYTES], quoted[TEXT_QUOTED_BYTES];
	size_t length = strlen(text_quote(key->text, key->length, quoted));
	bool lead = r->style->keys_lead; /* then it stands without its quotes */
	const char *before = keys->count ? "there are " : "there is none";

	text_list(keys->key, keys->count, sizeof(*keys->key), list);
	if (r->style->nearest && nearest) {
		snprintf(list, sizeof(list), "is %s meant?", nearest);
		before = "";
	}
	snprintf(said, sizeof(said), "%.*s%s%s; %s%s", (int)(length - 2 * lead), quoted + lead,
		 lead && !key->length ? "" : ": ", r->style->no_such_key, before, list);
	return refuse_at(r, above, key->at.line, said);
}

int keys_find(struct reading *r, const struct place *above, const struct value *key,
	      const struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		if (value_is(key, keys->key[i].name))
			return i;
	return r->style->tolerant ? (int)keys->count : refuse_key(r, above, key, keys);
}

/* The values of a mapping by the keys of the table; NULL: not there. */
static int values_find(struct reading *r, const struct place *at, const struct keys *keys,
		       const struct value **ret)
{
	char list[TEXT_LIST_BYTES], said[SAID_BYTES];

	if (at->value->kind != VALUE_MAPPING && at->value->kind != VALUE_NOTHING)
		return keys_refuse_value(
			r, at, "a mapping is needed here; its keys are %s",
			text_list(keys->key, keys->count, sizeof(*keys->key), list));
	for (const struct value *v = at->value->first; v; v = v->next) {
		int i = keys_find(r, at, v->key, keys);

		if (i < 0)
			return i;
		if ((size_t)i < keys->count && ret[i]) {
			snprintf(said, sizeof(said), "'%s': given twice", keys->key[i].name);
			return refuse_at(r, at, v->key->at.line, said);
		}
		if ((size_t)i < keys->count)
			ret[i] = v;
	}
	return 0;
}

int keys_missing(struct reading *r, const struct place *above, const struct keys *keys,
		 uint32_t seen)
{
	char said[SAID_BYTES];

	for (size_t i = 0; i < keys->count; i++) {
		if (seen & 1u << i ||
		    !(keys->key[i].needed || (r->style->complete && !keys->key[i].later)))
			continue;
		/* Of the whole text, no line is the one where it is missing. */
		snprintf(said, sizeof(said), r->style->missing, keys->key[i].name);
		return refuse_at(r, above, above->above ? above->value->at.line : 0, said);
	}
	return 0;
}

int keys_take(struct reading *r, const struct place *at, const struct keys *keys, void *into,
	      uint32_t *ret_seen)
{
	const struct value *value[KEYS_MAX] = { NULL };
	uint32_t seen = 0;
	int error;

	assert(keys->count <= KEYS_MAX);
	error = values_find(r, at, keys, value);
	for (size_t i = 0; error == 0 && i < keys->count; i++) {
		struct keys upto = { keys->key, i + 1 };
		struct place here = { at, &keys->key[i], -1, value[i] };

		seen |= value[i] ? 1u << i : 0;
		error = value[i] ? keys_take_one(r, &here, into) : keys_missing(r, at, &upto, seen);
	}
	if (error == 0 && ret_seen)
		*ret_seen = seen;
	return error;
}

int keys_take_root(struct reading *r, const struct value *root, const struct keys *keys, void *into,
		   uint32_t *ret_seen)
{
	struct place at = { NULL, NULL, -1, root };

	return keys_take(r, &at, keys, into, ret_seen);
}

/* --- scalars and lists */

int keys_text(struct reading *r, const struct place *at, const char *allowed, const char **ret)
{
	const struct value *v = at->value;

	if (!value_is_scalar(v) || v->kind == VALUE_LITERAL || strlen(v->text) != v->length)
		return keys_refuse_value(r, at, "%s", allowed);
	*ret = v->text;
	return 0;
}

static int scalar_take(struct reading *r, const struct place *at, void *member)
{
	const struct key *key = at->key;
	const struct value *v = at->value;
	enum value_kind other = key->type->literal ? VALUE_STRING : VALUE_LITERAL;
	char allowed[KEYS_ALLOWED_BYTES];

	if (value_is_scalar(v) && v->kind != other && strlen(v->text) == v->length &&
	    key->type->parse(key, v->text, member))
		return 0;
	key_allowed(key, r->style->number, allowed, sizeof(allowed));
	return keys_refuse_value(r, at, "%s", allowed);
}

static int refuse_no_list(struct reading *r, const struct place *at)
{
	char allowed[KEYS_ALLOWED_BYTES];

	if (!at->key->type)
		return keys_refuse_value(r, at, "a list is needed here");
	key_allowed(at->key, r->style->number, allowed, sizeof(allowed));
	return keys_refuse_value(r, at, "a list is needed here; each element is %s", allowed);
}

int keys_each(struct reading *r, const struct place *at, unsigned int max, key_check *take,
	      void *into)
{
	struct place element = { at, at->key, -1, at->value->first };
	int error = 0;

	if (at->value->kind == VALUE_NOTHING)
		return 0;
	if (value_is_scalar(at->value) && !r->style->strict_lists)
		return take(r, at, into);
	if (at->value->kind != VALUE_LIST)
		return refuse_no_list(r, at);
	for (; error == 0 && element.value; element.value = element.value->next) {
		if (++element.index == (int)max)
			return keys_refuse(r, &element, "one too many; there can be at most %u",
					   max);
		error = take(r, &element, into);
	}
	return error;
}

unsigned int key_count(const struct key *key, const void *from)
{
	return key_number_load((const char *)from + key->count_offset, key->count_size);
}

/* The first element of a list; `from` may be written by whoever owns it. */
static void *first_of(const struct key *key, const void *from)
{
	char *member = (char *)from + key->offset;

	return key->grows ? *(void **)member : member;
}

const void *key_element(const struct key *key, const void *from, unsigned int i)
{
	return (const char *)first_of(key, from) + i * key->size;
}

static void count_set(const struct key *key, void *into, unsigned int n)
{
	key_number_store(n, (char *)into + key->count_offset, key->count_size);
}

static void list_free(const struct key *key, void *from)
{
	const unsigned int count = key_count(key, from);

	for (unsigned int i = 0; key->keys && i < count; i++)
		keys_free(key->keys, (void *)key_element(key, from, i));
	if (!key->grows)
		return;
	free(TAKE_PTR(*(void **)((char *)from + key->offset)));
	count_set(key, from, 0);
}

void keys_free(const struct keys *keys, void *from)
{
	for (const struct key *key = keys->key; key < keys->key + keys->count; key++)
		if (key->list_max && !key->take)
			list_free(key, from);
		else if (key->keys && !key->take)
			keys_free(key->keys, (char *)from + key->offset);
}

void keys_default(const struct keys *keys, void *into)
{
	for (const struct key *key = keys->key; key < keys->key + keys->count; key++) {
		char *member = (char *)into + key->offset;

		if (key->keys && !key->list_max)
			keys_default(key->keys, member);
		else if (key->initial && key->word && !strcmp(key->initial, key->word))
			memset(member, key->fill, key->size);
		else if (key->initial && !key->type->parse(key, key->initial, member))
			assert(!"the table has a default that may not be written");
	}
}

/* A value into a member: a mapping, what stands for its first key, or a scalar. */
static int member_take(struct reading *r, const struct place *at, void *member)
{
	const struct key *key = at->key;
	struct key first;
	struct place here;

	if (!key->keys)
		return scalar_take(r, at, member);
	if (!key->shorthand || !value_is_scalar(at->value))
		return keys_take(r, at, key->keys, member, NULL);
	first = key->keys->key[0];
	first.name = key->name;
	here = (struct place){ at->above, &first, at->index, at->value };
	return scalar_take(r, &here, (char *)member + first.offset);
}

/* Room for the element behind the last one, zeros; NULL: no memory. */
static void *element_add(const struct key *key, void *into, unsigned int n)
{
	char *list = first_of(key, into);

	if (!key->grows)
		return memset(list + n * key->size, 0, key->size);
	list = rows_grow(list, n, key->size);
	if (!list)
		return NULL;
	*(void **)((char *)into + key->offset) = list;
	return list + n * key->size;
}

static int element_take(struct reading *r, const struct place *at, void *into)
{
	const struct key *key = at->key;
	unsigned int n = key_count(key, into);
	void *member;
	int error;

	if (n == key->list_max)
		return keys_refuse(r, at, "one too many; %s", key->full);
	member = element_add(key, into, n);
	if (!member)
		return -ENOMEM;
	if (key->keys)
		keys_default(key->keys, member);
	error = member_take(r, at, member);
	if (error < 0 && key->keys)
		keys_free(key->keys, member);
	if (error < 0)
		return error;
	count_set(key, into, n + 1);
	return key->check ? key->check(r, at, into) : 0;
}

static int list_take(struct reading *r, const struct place *at, void *into)
{
	const struct key *key = at->key;
	int error;

	if (key->full) /* comes one by one */
		return element_take(r, at, into);
	list_free(key, into);
	if (!key->grows)
		memset((char *)into + key->offset, 0, key->size * key->list_max);
	count_set(key, into, 0);
	if (key->word && value_is(at->value, key->word))
		return 0;
	error = keys_each(r, at, key->list_max, element_take, into);
	if (error == 0 && key->empty && !key_count(key, into))
		return keys_refuse(r, at, "%s", key->empty);
	return error;
}

int keys_take_one(struct reading *r, const struct place *at, void *into)
{
	const struct key *key = at->key;
	char *member = (char *)into + key->offset;
	int error = 0;

	if (key->take)
		return key->take(r, at, into);
	if (key->list_max)
		return list_take(r, at, into);
	if (key->word && value_is(at->value, key->word))
		memset(member, key->fill, key->size);
	else
		error = member_take(r, at, member);
	return error == 0 && key->check ? key->check(r, at, into) : error;
}

int keys_check_unique(struct reading *r, const struct place *at, void *into)
{
	const struct key *key = at->key;
	const char *list = first_of(key, into);
	unsigned int last = key_count(key, into) - 1;

	for (unsigned int i = 0; i < last; i++)
		if (!memcmp(list + i * key->size, list + last * key->size, key->size))
			return keys_refuse_value(r, at, "is named twice");
	return 0;
}

/* --- out */

static bool is_filled(const void *member, unsigned char with, size_t size)
{
	const unsigned char *byte = member;

	while (size && *byte == with)
		byte++, size--;
	return !size;
}

bool key_is_brief(const struct key *key, const void *from)
{
	if (key->list_max)
		return key->brief && !key_count(key, from);
	return key->brief && is_filled((const char *)from + key->offset, 0, key->size);
}

void key_print(const struct key *key, const void *from, unsigned int i, char *text, size_t size)
{
	const void *member = key_element(key, from, i);

	if (key->word && is_filled(member, key->fill, key->size))
		snprintf(text, size, "%s", key->word);
	else
		key->type->print(key, member, text, size);
}

void key_allowed(const struct key *key, const char *number, char *text, size_t size)
{
	size_t used;

	if (key->allowed || key->type->allowed)
		snprintf(text, size, "%s", key->allowed ? key->allowed : key->type->allowed);
	else
		key->type->describe(key, number, text, size);
	used = strlen(text);
	if (key->word && !key->list_max)
		snprintf(text + used, size - used, ", or %s", key->word);
}
