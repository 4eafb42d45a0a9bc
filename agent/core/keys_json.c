// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "keys_json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

enum {
	TEXT_BYTES = 1024, /* of a scalar: fits any set of ranks */
};

/* --- in */

static json_malloc_t allocate;
static bool no_memory;

static void *allocate_and_note(size_t bytes)
{
	void *at = allocate(bytes);

	no_memory = no_memory || !at;
	return at;
}

/* Where jansson 2.14 finds no memory for one more byte of a word, it goes on without the byte. */
int keys_json_parse(const char *text, size_t length, json_t **ret, json_error_t *error)
{
	_cleanup_(json_freep) json_t *json = NULL;
	json_free_t release;

	json_get_alloc_funcs(&allocate, &release);
	json_set_alloc_funcs(allocate_and_note, release);
	no_memory = false;
	json = json_loadb(text, length, JSON_REJECT_DUPLICATES, error);
	json_set_alloc_funcs(allocate, release);
	if (no_memory)
		return -ENOMEM;
	if (!json)
		return -EINVAL;
	*ret = TAKE_PTR(json);
	return 0;
}

static struct value *scalar_make(const json_t *json)
{
	_cleanup_(freep) char *text = NULL;

	if (json_is_string(json))
		return value_new(VALUE_STRING, json_string_value(json), json_string_length(json),
				 (struct position){ 0 });
	text = json_dumps(json, JSON_ENCODE_ANY);
	return text ? value_new(VALUE_LITERAL, text, strlen(text), (struct position){ 0 }) : NULL;
}

static int tree_make(const json_t *json, unsigned int depth, struct value **ret);

static int member_add(struct value *parent, const char *name, const json_t *json,
		      unsigned int depth)
{
	struct value *v;
	int r = tree_make(json, depth, &v);

	if (r < 0)
		return r;
	value_add(parent, v);
	if (name)
		v->key = value_new(VALUE_STRING, name, strlen(name), (struct position){ 0 });
	return name && !v->key ? -ENOMEM : 0;
}

static int tree_make(const json_t *json, unsigned int depth, struct value **ret)
{
	bool is_list = json_is_array(json);
	_cleanup_(value_freep) struct value *v = NULL;
	const char *name;
	json_t *member;
	size_t i;
	int r = 0;

	if (!is_list && !json_is_object(json)) {
		*ret = scalar_make(json);
		return *ret ? 0 : -ENOMEM;
	}
	if (depth == VALUE_DEPTH_MAX)
		return -EINVAL;
	v = value_new(is_list ? VALUE_LIST : VALUE_MAPPING, "", 0, (struct position){ 0 });
	if (!v)
		return -ENOMEM;
	json_array_foreach(json, i, member) if (r == 0) r = member_add(v, NULL, member, depth + 1);
	json_object_foreach((json_t *)json, name, member) if (r == 0)
		r = member_add(v, name, member, depth + 1);
	if (r == 0)
		*ret = TAKE_PTR(v);
	return r;
}

int keys_json_tree(const json_t *json, struct value **ret) { return tree_make(json, 0, ret); }

/* --- out */

static json_t *scalar_json(const struct key *key, const void *from, unsigned int i)
{
	char text[TEXT_BYTES];

	key_print(key, from, i, text, sizeof(text));
	if (key->type == &key_bool)
		return json_boolean(*text == 't');
	return key->type->literal ? json_integer(strtoll(text, NULL, 10)) : json_string(text);
}

static json_t *list_json(const struct key *key, const void *from)
{
	_cleanup_(json_freep) json_t *list = json_array();
	unsigned int count = key_count(key, from);

	for (unsigned int i = 0; i < count; i++)
		if (json_array_append_new(
			    list, key->keys ? keys_json_make(key->keys, key_element(key, from, i))
					    : scalar_json(key, from, i)) < 0)
			return NULL;
	return TAKE_PTR(list);
}

static json_t *member_json(const struct key *key, const void *from)
{
	if (key->list_max)
		return list_json(key, from);
	if (key->keys)
		return keys_json_make(key->keys, (const char *)from + key->offset);
	return scalar_json(key, from, 0);
}

json_t *keys_json_make(const struct keys *keys, const void *from)
{
	_cleanup_(json_freep) json_t *json = json_object();

	for (const struct key *key = keys->key; key < keys->key + keys->count; key++)
		if (json_object_set_new(json, key->name, member_json(key, from)) < 0)
			return NULL;
	return TAKE_PTR(json);
}
