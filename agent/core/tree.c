// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tree.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "common/text.h"

enum {
	PATH_BYTES = 160, /* of a printed place; deeper ones are cut */
	SAID_BYTES = 400,
};

struct tree {
	yaml_document_t document;
	const char *name;
	void *root;
	struct why *why;
};

void *tree_root(struct tree *t) { return t->root; }

/* --- what is wrong, and where */

/* "tenants[1].slots: ", or nothing at the root. */
static size_t path_print(const struct tree_place *at, char *ret)
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

static yaml_node_t *node_at(struct tree *t, const struct tree_place *at)
{
	return yaml_document_get_node(&t->document, at->node);
}

static int refuse_at(struct tree *t, const struct tree_place *at, size_t line, const char *said)
{
	char path[PATH_BYTES] = "";

	return why_say(t->why, -EINVAL, "%s:%zu: %s%s%s", t->name, line, path,
		       path_print(at, path) ? ": " : "", said);
}

static size_t line_at(struct tree *t, const struct tree_place *at)
{
	yaml_node_t *node = node_at(t, at);

	return node ? node->start_mark.line + 1 : 1;
}

int tree_refuse(struct tree *t, const struct tree_place *at, const char *format, ...)
{
	char said[SAID_BYTES];
	va_list values;

	va_start(values, format);
	vsnprintf(said, sizeof(said), format, values);
	va_end(values);
	return refuse_at(t, at, line_at(t, at), said);
}

int tree_refuse_value(struct tree *t, const struct tree_place *at, const char *format, ...)
{
	char said[SAID_BYTES], quoted[TEXT_QUOTED_BYTES];
	yaml_node_t *node = node_at(t, at);
	const char *value = "(a mapping)";
	va_list values;

	va_start(values, format);
	vsnprintf(said, sizeof(said), format, values);
	va_end(values);
	if (!node)
		value = "(nothing)";
	else if (node->type == YAML_SEQUENCE_NODE)
		value = "(a list)";
	else if (node->type == YAML_SCALAR_NODE)
		value = text_quote((const char *)node->data.scalar.value, node->data.scalar.length,
				   quoted);
	return tree_refuse(t, at, "%s: %s", value, said);
}

/* --- is this the plain YAML that we take? */

static int refuse_event(struct tree *t, const yaml_event_t *event, const char *said)
{
	return why_say(t->why, -EINVAL, "%s:%zu: %s", t->name, event->start_mark.line + 1, said);
}

/* The library counts lines, but for bytes that are no text only bytes. */
static int refuse_syntax(struct tree *t, const yaml_parser_t *parser, const char *text)
{
	size_t line = parser->problem_mark.line + 1;

	if (parser->error == YAML_MEMORY_ERROR)
		return why_say(t->why, -ENOMEM, "%s: %s", t->name, strerror(ENOMEM));
	if (parser->error == YAML_READER_ERROR) {
		line = 1;
		for (size_t i = 0; i < parser->problem_offset; i++)
			line += text[i] == '\n';
	}
	return why_say(t->why, -EINVAL, "%s:%zu: not YAML: %s", t->name, line,
		       parser->problem ? parser->problem : "cannot be read");
}

static const yaml_char_t *event_anchor(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_ALIAS_EVENT:
		return e->data.alias.anchor;
	case YAML_SCALAR_EVENT:
		return e->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.anchor;
	default:
		return NULL;
	}
}

static const yaml_char_t *event_tag(const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return e->data.scalar.tag;
	case YAML_SEQUENCE_START_EVENT:
		return e->data.sequence_start.tag;
	case YAML_MAPPING_START_EVENT:
		return e->data.mapping_start.tag;
	default:
		return NULL;
	}
}

/* How far the events up to here have got. */
struct progress {
	unsigned int depth;
	unsigned int documents;
};

static int event_check(struct tree *t, const yaml_event_t *e, struct progress *p)
{
	if (event_anchor(e))
		return refuse_event(t, e,
				    "anchors and aliases (& and *) are not taken; write it "
				    "out, or quote a value that begins so");
	if (event_tag(e))
		return refuse_event(t, e, "tags (!) are not taken; quote a value that begins so");
	if (e->type == YAML_DOCUMENT_START_EVENT && p->documents++)
		return refuse_event(t, e, "a second document begins; there can be only one");
	if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
		p->depth--;
	if (e->type != YAML_SEQUENCE_START_EVENT && e->type != YAML_MAPPING_START_EVENT)
		return 0;
	if (p->depth++ == TREE_DEPTH_MAX)
		return refuse_event(t, e, "too deep: lists and mappings in one another");
	return 0;
}

static void parser_open(yaml_parser_t *parser, const char *text, size_t length)
{
	yaml_parser_set_input_string(parser, (const unsigned char *)text, length);
}

/*
 * Before nodes are made of it, as they show neither anchors nor how deep it went: the library makes
 * of an alias one node in two places, or a cycle.
 */
static int events_check(struct tree *t, const char *text, size_t length)
{
	_cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };
	struct progress progress = { 0 };
	bool end = false;
	int r = 0;

	if (!yaml_parser_initialize(&parser))
		return why_say(t->why, -ENOMEM, "%s: %s", t->name, strerror(ENOMEM));
	parser_open(&parser, text, length);
	while (r == 0 && !end) {
		yaml_event_t event;

		if (!yaml_parser_parse(&parser, &event))
			return refuse_syntax(t, &parser, text);
		r = event_check(t, &event, &progress);
		end = event.type == YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
	}
	return r;
}

static int document_load(struct tree *t, const char *text, size_t length)
{
	_cleanup_(yaml_parser_delete) yaml_parser_t parser = { 0 };

	if (!yaml_parser_initialize(&parser))
		return why_say(t->why, -ENOMEM, "%s: %s", t->name, strerror(ENOMEM));
	parser_open(&parser, text, length);
	if (!yaml_parser_load(&parser, &t->document))
		return refuse_syntax(t, &parser, text);
	return 0;
}

int tree_read(const char *text, size_t length, const char *name, const struct tree_key *keys,
	      size_t count, void *into, struct why *why)
{
	struct tree t = { .name = name, .root = into, .why = why };
	struct tree_place root = { .index = -1 };
	int r;

	r = events_check(&t, text, length);
	if (r < 0)
		return r;
	r = document_load(&t, text, length);
	if (r < 0)
		return r;
	root.node = yaml_document_get_root_node(&t.document) ? 1 : 0;
	r = tree_mapping(&t, &root, keys, count, into);
	yaml_document_delete(&t.document);
	return r;
}

/* --- mappings and lists */

/* `key:` and nothing behind it. */
static bool is_nothing(const yaml_node_t *node)
{
	return !node || (node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0 &&
			 node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
}

bool tree_is_mapping(struct tree *t, const struct tree_place *at)
{
	yaml_node_t *node = node_at(t, at);

	return node && node->type == YAML_MAPPING_NODE;
}

static bool is_scalar(const yaml_node_t *node, const char *word)
{
	return node && node->type == YAML_SCALAR_NODE && strlen(word) == node->data.scalar.length &&
	       !memcmp(word, node->data.scalar.value, node->data.scalar.length);
}

bool tree_is_word(struct tree *t, const struct tree_place *at, const char *word)
{
	return is_scalar(node_at(t, at), word);
}

static int refuse_key(struct tree *t, const struct tree_place *at, const yaml_node_t *node,
		      const struct tree_key *keys, size_t count)
{
	const char *word = (const char *)node->data.scalar.value;
	char said[SAID_BYTES], list[TEXT_LIST_BYTES], quoted[TEXT_QUOTED_BYTES];
	const char *nearest = text_nearest(keys, count, sizeof(*keys), word);

	text_quote(word, node->data.scalar.length, quoted);
	if (nearest)
		snprintf(said, sizeof(said), "%s: no such key; is %s meant?", quoted, nearest);
	else
		snprintf(said, sizeof(said), "%s: no such key; there are %s", quoted,
			 text_list(keys, count, sizeof(*keys), list));
	return refuse_at(t, at, node->start_mark.line + 1, said);
}

/* Which of the keys is this? Its index, or -EINVAL. */
static int key_find(struct tree *t, const struct tree_place *at, const yaml_node_t *node,
		    const struct tree_key *keys, size_t count)
{
	if (node->type != YAML_SCALAR_NODE)
		return refuse_at(t, at, node->start_mark.line + 1, "a key must be a word");
	for (size_t i = 0; i < count; i++)
		if (is_scalar(node, keys[i].name))
			return i;
	return refuse_key(t, at, node, keys, count);
}

/* The values of a mapping by the keys of the table; 0: not there. */
static int values_find(struct tree *t, const struct tree_place *at, const struct tree_key *keys,
		       size_t count, int *ret)
{
	yaml_node_t *node = node_at(t, at);

	if (is_nothing(node))
		return 0;
	if (node->type != YAML_MAPPING_NODE) {
		char list[TEXT_LIST_BYTES];

		return tree_refuse_value(t, at, "a mapping is needed here; its keys are %s",
					 text_list(keys, count, sizeof(*keys), list));
	}
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
	     pair < node->data.mapping.pairs.top; pair++) {
		const yaml_node_t *key = yaml_document_get_node(&t->document, pair->key);
		int i = key_find(t, at, key, keys, count);

		if (i < 0)
			return i;
		if (ret[i]) {
			char said[SAID_BYTES];

			snprintf(said, sizeof(said), "'%s': given twice", keys[i].name);
			return refuse_at(t, at, key->start_mark.line + 1, said);
		}
		ret[i] = pair->value;
	}
	return 0;
}

/* Of the whole file, no line is the one where it is missing. */
static int refuse_missing(struct tree *t, const struct tree_place *at, const char *name)
{
	if (!at->above)
		return why_say(t->why, -EINVAL, "%s: the key '%s' is needed", t->name, name);
	return tree_refuse(t, at, "the key '%s' is needed", name);
}

int tree_mapping(struct tree *t, const struct tree_place *at, const struct tree_key *keys,
		 size_t count, void *into)
{
	int value[TREE_KEYS_MAX] = { 0 };
	int r;

	assert(count <= TREE_KEYS_MAX);
	r = values_find(t, at, keys, count, value);
	for (size_t i = 0; r == 0 && i < count; i++) {
		struct tree_place place = {
			.above = at, .key = &keys[i], .index = -1, .node = value[i]
		};

		if (value[i])
			r = keys[i].take(t, &place, (char *)into + keys[i].offset);
		else if (keys[i].needed)
			r = refuse_missing(t, at, keys[i].name);
	}
	return r;
}

int tree_take_mapping(struct tree *t, const struct tree_place *at, void *into)
{
	return tree_mapping(t, at, at->key->keys, at->key->count, into);
}

int tree_list(struct tree *t, const struct tree_place *at, unsigned int max, tree_take *take,
	      void *into)
{
	struct tree_place element = { .above = at, .key = at->key };
	yaml_node_t *node = node_at(t, at);
	int r = 0;

	if (is_nothing(node))
		return 0;
	if (node->type == YAML_SCALAR_NODE)
		return take(t, at, into);
	if (node->type == YAML_MAPPING_NODE)
		return tree_refuse_value(t, at, "a list is needed here");
	for (const yaml_node_item_t *item = node->data.sequence.items.start;
	     r == 0 && item < node->data.sequence.items.top; item++) {
		element.index = item - node->data.sequence.items.start;
		element.node = *item;
		if ((unsigned int)element.index == max)
			return tree_refuse(t, &element, "one too many; there can be at most %u",
					   max);
		r = take(t, &element, into);
	}
	return r;
}

/* --- scalars */

int tree_text(struct tree *t, const struct tree_place *at, const char *allowed, const char **ret)
{
	yaml_node_t *node = node_at(t, at);

	if (!node || node->type != YAML_SCALAR_NODE ||
	    memchr(node->data.scalar.value, '\0', node->data.scalar.length)) {
		tree_refuse_value(t, at, "%s", allowed);
		return -EINVAL;
	}
	*ret = (const char *)node->data.scalar.value;
	return 0;
}

static int number_take(struct tree *t, const struct tree_place *at, bool suffixes, uint64_t *ret)
{
	const char *text, *more = suffixes ? ", or with k, M or G behind it" : "";
	char allowed[128];
	uint64_t n;
	int r;

	snprintf(allowed, sizeof(allowed), "a number from %ju to %ju%s", (uintmax_t)at->key->min,
		 (uintmax_t)at->key->max, more);
	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (!text_number(text, suffixes, at->key->max, &n) || n < at->key->min)
		return tree_refuse_value(t, at, "%s", allowed);
	*ret = n;
	return 0;
}

int tree_take_u8(struct tree *t, const struct tree_place *at, void *into)
{
	uint64_t n = 0;
	int r = number_take(t, at, false, &n);

	if (r == 0)
		*(uint8_t *)into = n;
	return r;
}

int tree_take_u32(struct tree *t, const struct tree_place *at, void *into)
{
	uint64_t n = 0;
	int r = number_take(t, at, false, &n);

	if (r == 0)
		*(uint32_t *)into = n;
	return r;
}

int tree_take_rate(struct tree *t, const struct tree_place *at, void *into)
{
	return number_take(t, at, true, into);
}

static int choice_take(struct tree *t, const struct tree_place *at, const char *const *words,
		       unsigned int *ret)
{
	char list[TEXT_LIST_BYTES], allowed[SAID_BYTES];
	unsigned int count = 0;
	const char *text;
	int r;

	while (words[count])
		count++;
	snprintf(allowed, sizeof(allowed), "one of %s",
		 text_list(words, count, sizeof(*words), list));
	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(text, words[i])) {
			*ret = i;
			return 0;
		}
	return tree_refuse_value(t, at, "%s", allowed);
}

int tree_take_choice(struct tree *t, const struct tree_place *at, void *into)
{
	return choice_take(t, at, at->key->words, into);
}

int tree_take_bool(struct tree *t, const struct tree_place *at, void *into)
{
	static const char *const words[] = { "false", "true", NULL };
	unsigned int n = 0;
	int r = choice_take(t, at, words, &n);

	if (r == 0)
		*(bool *)into = n;
	return r;
}
