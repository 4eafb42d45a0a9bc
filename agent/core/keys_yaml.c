// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "keys_yaml.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

const struct keys_style keys_yaml_style = {
	.number = "a number",
	.no_such_key = "no such key",
	.missing = "the key '%s' is needed",
	.nearest = true,
};

/* --- in */

struct builder {
	yaml_parser_t parser;
	const char *text, *name;
	struct why *why;
	unsigned int documents, depth;
	struct value *root;
	struct value *open[VALUE_DEPTH_MAX]; /* lists and mappings that have not ended */
	struct value *key; /* that waits for its value */
};

static void builder_clear(struct builder *b)
{
	yaml_parser_delete(&b->parser);
	value_free(b->root);
	value_free(b->key);
}

static int no_memory(struct builder *b)
{
	return why_say(b->why, -ENOMEM, "%s: %s", b->name, strerror(ENOMEM));
}

static int refuse(struct builder *b, const yaml_event_t *event, const char *said)
{
	return why_say(b->why, -EINVAL, "%s:%zu: %s", b->name, event->start_mark.line + 1, said);
}

/* The library counts lines and columns, but for bytes that are no text only bytes. */
static int refuse_syntax(struct builder *b)
{
	const yaml_parser_t *p = &b->parser;
	size_t line = p->problem_mark.line + 1, column = p->problem_mark.column + 1;

	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	if (p->error == YAML_READER_ERROR) {
		line = column = 1;
		for (size_t i = 0; i < p->problem_offset; i++, column++)
			if (b->text[i] == '\n')
				line++, column = 0;
	}
	return why_say(b->why, -EINVAL, "%s:%zu: not YAML: column %zu: %s", b->name, line, column,
		       p->problem ? p->problem : "cannot be read");
}

/* A value where the events have got to: a key, a key's value, an element, or the root. */
static int value_put(struct builder *b, const yaml_event_t *e, enum value_kind kind,
		     const char *text, size_t length)
{
	struct position at = { e->start_mark.line + 1, e->start_mark.column + 1 };
	struct value *parent = b->depth ? b->open[b->depth - 1] : NULL;
	bool is_key = parent && parent->kind == VALUE_MAPPING && !b->key;
	struct value *v;

	if (is_key && kind >= VALUE_LIST)
		return refuse(b, e, "a key must be a word");
	if (kind >= VALUE_LIST && b->depth == VALUE_DEPTH_MAX)
		return refuse(b, e, "nested too deeply");
	v = value_new(kind, text, length, at);
	if (!v)
		return no_memory(b);
	if (is_key) {
		b->key = v;
		return 0;
	}
	v->key = TAKE_PTR(b->key);
	if (parent)
		value_add(parent, v);
	else
		b->root = v;
	if (kind >= VALUE_LIST)
		b->open[b->depth++] = v;
	return 0;
}

static int scalar_put(struct builder *b, const yaml_event_t *e)
{
	size_t length = e->data.scalar.length;
	bool is_nothing = !length && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	return value_put(b, e, is_nothing ? VALUE_NOTHING : VALUE_TEXT,
			 (const char *)e->data.scalar.value, length);
}

/* Anchors and tags of what may have them. */
static int marks_check(struct builder *b, const yaml_event_t *e)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	if (e->type == YAML_SCALAR_EVENT)
		anchor = e->data.scalar.anchor, tag = e->data.scalar.tag;
	else if (e->type == YAML_SEQUENCE_START_EVENT)
		anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag;
	else if (e->type == YAML_MAPPING_START_EVENT)
		anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag;
	if (anchor || e->type == YAML_ALIAS_EVENT)
		return refuse(b, e,
			      "anchors and aliases (& and *) are not taken; write it "
			      "out, or quote a value that begins so");
	if (tag)
		return refuse(b, e, "tags (!) are not taken; quote a value that begins so");
	return 0;
}

static int event_take(struct builder *b, const yaml_event_t *e)
{
	int r = marks_check(b, e);

	if (r < 0)
		return r;
	switch (e->type) {
	case YAML_DOCUMENT_START_EVENT:
		return b->documents++ ? refuse(b, e,
					       "a second document begins; there can be only "
					       "one")
				      : 0;
	case YAML_SCALAR_EVENT:
		return scalar_put(b, e);
	case YAML_SEQUENCE_START_EVENT:
		return value_put(b, e, VALUE_LIST, "", 0);
	case YAML_MAPPING_START_EVENT:
		return value_put(b, e, VALUE_MAPPING, "", 0);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		b->depth--;
		return 0;
	default:
		return 0;
	}
}

int keys_yaml_parse(const char *text, size_t length, const char *name, struct value **ret,
		    struct why *why)
{
	_cleanup_(builder_clear) struct builder b = { .text = text, .name = name, .why = why };
	bool end = false;
	int r = 0;

	if (!yaml_parser_initialize(&b.parser))
		return no_memory(&b);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
	while (r == 0 && !end) {
		yaml_event_t event;

		if (!yaml_parser_parse(&b.parser, &event))
			return refuse_syntax(&b);
		r = event_take(&b, &event);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	if (r < 0)
		return r;
	if (!b.root)
		b.root = value_new(VALUE_NOTHING, "", 0, (struct position){ 1, 1 });
	if (!b.root)
		return no_memory(&b);
	*ret = TAKE_PTR(b.root);
	return 0;
}

/* --- out */

/* In quotes, so that no text means anything to YAML, unless nothing in it can. */
static void scalar_print(const struct key *key, const void *from, unsigned int i, FILE *to)
{
	char text[512];
	bool bare;

	key_print(key, from, i, text, sizeof(text));
	bare = key->type->bare || key->type->literal ||
	       (key->word && key->type != &key_path && !strcmp(text, key->word));
	fputs(bare ? "" : "'", to);
	for (const char *c = text; *c; c++)
		fprintf(to, "%s%c", *c == '\'' ? "'" : "", *c);
	fputs(bare ? "" : "'", to);
}

/* {name: 'eth1', mode: auto} */
static void mapping_print(const struct keys *keys, const void *from, FILE *to)
{
	for (size_t i = 0; i < keys->count; i++) {
		fprintf(to, "%s%s: ", i ? ", " : "{", keys->key[i].name);
		scalar_print(&keys->key[i], from, 0, to);
	}
	fputs("}", to);
}

static void list_print(const struct key *key, const void *from, const char *indent, FILE *to)
{
	unsigned int count = key_count(key, from);

	fputs(key->flow ? " [" : "\n", to);
	for (unsigned int i = 0; i < count; i++) {
		if (key->flow)
			fputs(i ? ", " : "", to);
		else
			fprintf(to, "%s  - ", indent);
		if (key->keys)
			mapping_print(key->keys, key_element(key, from, i), to);
		else
			scalar_print(key, from, i, to);
		fputs(key->flow ? "" : "\n", to);
	}
	fputs(key->flow ? "]\n" : "", to);
}

void keys_yaml_print(const struct keys *keys, const void *from, const char *indent, FILE *to)
{
	char deeper[16];

	snprintf(deeper, sizeof(deeper), "%s  ", indent);
	for (const struct key *key = keys->key; key < keys->key + keys->count; key++) {
		if (key_is_brief(key, from) || !(key->type || key->keys))
			continue;
		fprintf(to, "%s%s:", indent, key->name);
		if (key->list_max) {
			list_print(key, from, indent, to);
		} else if (key->keys) {
			fputs("\n", to);
			keys_yaml_print(key->keys, (const char *)from + key->offset, deeper, to);
		} else {
			fputs(" ", to);
			scalar_print(key, from, 0, to);
			fputs("\n", to);
		}
	}
}
