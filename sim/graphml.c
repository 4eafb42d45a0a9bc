// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Networks in GraphML (graphml.graphdrawing.org), as topologyzoo and many tools write them: nodes
 * and edges, and data of keys that we know by their names. An edge is a cable, whatever its
 * direction. Entities, and with them bombs of entities, are refused.
 */
#include "graphml.h"

#include <errno.h>
#include <expat.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder.h"
#include "common/owned.h"
#include "common/text.h"

enum {
	ID_BYTES = 64,
	VALUE_BYTES = 64,
	KEYS = 64, /* that are declared */
};

/* What data of a machine or a cable may say. */
enum meaning {
	NOTHING,
	KIND,
	RATE,
	SLOTS,
};

static const struct {
	const char *name, *element; /* that has this data */
	enum meaning meaning;
} names[] = { { "kind", "node", KIND }, { "rate", "edge", RATE }, { "slots", "node", SLOTS } };

/* What has been said of a node or an edge. */
struct said {
	enum graph_kind kind;
	uint32_t slots;
	double rate; /* 0: nothing */
};

struct named {
	char id[ID_BYTES];
	uint32_t machine;
	unsigned int line;
};

struct reader {
	XML_Parser xml;
	struct builder b;
	void *machines; /* tree of struct named */
	struct {
		char id[ID_BYTES];
		enum meaning meaning;
	} key[KEYS];
	unsigned int keys;
	bool in_key, in_node, in_edge;
	enum meaning meaning; /* of the <data> or <default> that we are in */
	char value[VALUE_BYTES];
	size_t value_length;
	uint32_t machine, end[2]; /* of the node or edge that we are in */
	struct said said; /* of that one */
	struct said usual; /* by <default> of keys */
	struct why *why;
	int error;
};

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->id, ((const struct named *)b)->id);
}

static void reader_free(struct reader *r)
{
	builder_free(&r->b);
	tdestroy(r->machines, free);
	if (r->xml)
		XML_ParserFree(r->xml);
}

/* The first error stays; the rest of the text is not looked at. */
static void refuse(struct reader *r, const char *word, const char *what)
{
	char quoted[TEXT_QUOTED_BYTES];

	if (r->error)
		return;
	r->error = why_say(r->why, -EINVAL, "line %lu: %s: %s", XML_GetCurrentLineNumber(r->xml),
			   text_quote(word, strlen(word), quoted), what);
	XML_StopParser(r->xml, XML_FALSE);
}

static void lack_memory(struct reader *r)
{
	r->error = r->error ? r->error : why_say(r->why, -ENOMEM, "out of memory");
	XML_StopParser(r->xml, XML_FALSE);
}

/* Of an element; "" where it has none. */
static const char *attribute(const char **attributes, const char *name)
{
	for (; attributes[0]; attributes += 2)
		if (!strcmp(attributes[0], name))
			return attributes[1];
	return "";
}

/* --- elements -------------------------------------------------------------------------------- */

static void begin_key(struct reader *r, const char **attributes)
{
	const char *id = attribute(attributes, "id"), *name = attribute(attributes, "attr.name");

	const char *of = attribute(attributes, "for");

	if (r->keys == KEYS || strlen(id) >= ID_BYTES)
		return refuse(r, id, "more than 64 keys, or an id of more than 63 bytes");
	snprintf(r->key[r->keys].id, ID_BYTES, "%s", id);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i].name, name) &&
		    (!*of || !strcmp(of, "all") || !strcmp(of, names[i].element)))
			r->key[r->keys].meaning = names[i].meaning;
	if (r->key[r->keys].meaning != NOTHING && r->b.machines)
		return refuse(r, name, "a key stands before all nodes and edges");
	r->keys++;
	r->in_key = true;
}

/* <default> of the key that we are in. */
static void begin_default(struct reader *r)
{
	r->meaning = r->in_key ? r->key[r->keys - 1].meaning : NOTHING;
	r->value_length = 0;
}

/* The network's machine is what has been said of the node up to now. */
static void put_node(struct reader *r)
{
	struct graph_machine *m = &r->b.machine[r->machine];

	if (r->b.error)
		return;
	m->kind = r->said.kind;
	m->slots = m->kind == GRAPH_NODE ? r->said.slots : 0;
}

/* Its id is its name. */
static void begin_node(struct reader *r, const char **attributes)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
	_cleanup_(freep) struct named *n = calloc(1, sizeof(*n));
	const char *id = attribute(attributes, "id");
	struct named **found;

	if (!n)
		return lack_memory(r);
	if (!*id || strlen(id) >= TOPOLOGY_NAME_BYTES || id[strspn(id, allowed)])
		return refuse(r, id, "an id of a node has 1 to 31 letters, digits, dots or _");
	if (topology_is_word(id))
		return refuse(r, id, "no id, as workloads say root=any and root=none");
	snprintf(n->id, sizeof(n->id), "%s", id);
	n->line = (unsigned int)XML_GetCurrentLineNumber(r->xml);
	found = tsearch(n, &r->machines, by_id);
	if (!found)
		return lack_memory(r);
	if (*found != n)
		return refuse(r, id, "another node has this id");
	n->machine = r->machine = builder_machine(&r->b, GRAPH_NODE, "%s", id);
	r->in_node = true;
	r->said = r->usual;
	put_node(r);
	TAKE_PTR(n);
}

static void begin_edge(struct reader *r, const char **attributes)
{
	static const char *const ends[] = { "source", "target" };

	for (int i = 0; i < 2; i++) {
		const char *id = attribute(attributes, ends[i]);
		struct named key = { 0 }, **found;

		snprintf(key.id, sizeof(key.id), "%s", id);
		found = strlen(id) < ID_BYTES ? tfind(&key, &r->machines, by_id) : NULL;
		if (!found)
			return refuse(r, id, "no node above has this id");
		r->end[i] = (*found)->machine;
	}
	if (r->end[0] == r->end[1])
		return refuse(r, attribute(attributes, "source"), "an edge to itself");
	r->in_edge = true;
	r->said = r->usual;
}

static void begin_data(struct reader *r, const char **attributes)
{
	const char *id = attribute(attributes, "key");

	r->meaning = NOTHING;
	r->value_length = 0;
	for (unsigned int i = 0; i < r->keys && (r->in_node || r->in_edge); i++)
		if (!strcmp(r->key[i].id, id))
			r->meaning = r->key[i].meaning;
}

static void begin(void *context, const char *name, const char **attributes)
{
	struct reader *r = context;

	if (!strcmp(name, "key"))
		begin_key(r, attributes);
	else if (!strcmp(name, "node"))
		begin_node(r, attributes);
	else if (!strcmp(name, "edge"))
		begin_edge(r, attributes);
	else if (!strcmp(name, "data"))
		begin_data(r, attributes);
	else if (!strcmp(name, "default"))
		begin_default(r);
	else if (!strcmp(name, "hyperedge"))
		refuse(r, name, "cables have two ends");
}

static void text(void *context, const char *bytes, int length)
{
	struct reader *r = context;

	if (r->meaning == NOTHING)
		return;
	if (r->value_length + (size_t)length >= VALUE_BYTES)
		return refuse(r, "data", "longer than 63 bytes");
	memcpy(r->value + r->value_length, bytes, (size_t)length);
	r->value_length += (size_t)length;
}

static bool read_kind(const char *word, enum graph_kind *ret)
{
	static const char *const words[] = { "host", "node", "switch" };

	for (int i = 0; i < 3; i++) {
		if (strcmp(word, words[i]) != 0)
			continue;
		*ret = (enum graph_kind)i;
		return true;
	}
	return false;
}

/* The text of the <data> or <default> that ends, into what it is said of. */
static void take_text(struct reader *r, struct said *into)
{
	const char *word = r->value;

	r->value[r->value_length] = '\0';
	word += strspn(word, " \t\r\n");
	r->value[word - r->value + strcspn(word, " \t\r\n")] = '\0';
	if (r->meaning == KIND && !read_kind(word, &into->kind))
		refuse(r, word, "kind: host, node or switch");
	else if (r->meaning == RATE && !topology_rate(word, &into->rate))
		refuse(r, word,
		       "no rate such as 100mbit or 1gbit; whole numbers, such as 2500mbit");
	else if (r->meaning == SLOTS && !text_u32(word, UINT32_MAX, &into->slots))
		refuse(r, word, "no number of slots");
	r->meaning = NOTHING;
}

static void end_data(struct reader *r)
{
	if (r->in_node != (r->meaning == KIND || r->meaning == SLOTS))
		r->meaning = NOTHING;
	take_text(r, &r->said);
	if (r->in_node)
		put_node(r);
}

static void end(void *context, const char *name)
{
	struct reader *r = context;

	if (!strcmp(name, "data")) {
		end_data(r);
	} else if (!strcmp(name, "default")) {
		take_text(r, &r->usual);
	} else if (!strcmp(name, "key")) {
		r->in_key = false;
	} else if (!strcmp(name, "node")) {
		r->in_node = false;
	} else if (!strcmp(name, "edge") && r->in_edge) {
		builder_cable(&r->b, r->end[0], r->end[1], r->said.rate);
		r->in_edge = false;
	}
	if (r->b.error && !r->error)
		r->error = why_say(r->why, r->b.error,
				   r->b.error == -E2BIG ? "too many machines or links"
							: "out of memory");
	if (r->error)
		XML_StopParser(r->xml, XML_FALSE);
}

static void refuse_entity(void *context, const char *name, int is_parameter, const char *value,
			  int length, const char *base, const char *system, const char *public,
			  const char *notation)
{
	refuse(context, name, "entities are not read");
}

static bool has_host(const struct builder *b)
{
	for (uint32_t m = 0; m < b->machines; m++)
		if (b->machine[m].kind == GRAPH_HOST)
			return true;
	return false;
}

int topology_graphml(const char *bytes, size_t length, const struct topology_defaults *defaults,
		     struct topology **ret, struct why *why)
{
	_cleanup_(reader_free) struct reader r = {
		.b.defaults = *defaults,
		.usual = { .kind = GRAPH_NODE, .slots = defaults->slots },
		.why = why,
	};
	int error;

	r.xml = XML_ParserCreate(NULL);
	if (!r.xml)
		return why_say(why, -ENOMEM, "out of memory");
	if (length == 0)
		return why_say(why, -EINVAL, "line 1: the file is empty");
	if (length > INT32_MAX)
		return why_say(why, -E2BIG, "line 1: larger than 2 GiB");
	XML_SetUserData(r.xml, &r);
	XML_SetElementHandler(r.xml, begin, end);
	XML_SetCharacterDataHandler(r.xml, text);
	XML_SetEntityDeclHandler(r.xml, refuse_entity);
	if (XML_Parse(r.xml, bytes, (int)length, XML_TRUE) == XML_STATUS_ERROR && !r.error)
		return why_say(why, -EINVAL, "line %lu: %s", XML_GetCurrentLineNumber(r.xml),
			       XML_ErrorString(XML_GetErrorCode(r.xml)));
	if (r.error)
		return r.error;
	if (!r.b.machines)
		return why_say(why, -EINVAL, "line %lu: the text ends, and no node was in it",
			       XML_GetCurrentLineNumber(r.xml));
	if (!has_host(&r.b))
		return why_say(why, -EINVAL, "line %lu: no node has data `kind` = host",
			       XML_GetCurrentLineNumber(r.xml));
	error = builder_end(&r.b, ret);
	return error < 0 ? why_say(why, error, "out of memory") : 0;
}
