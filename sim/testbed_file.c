// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Networks in the format of scripts/testbed: hosts, nodes, switches, and links between them; and
 * `way AT TO NEXT`, which the testbed has not: packets for TO go from AT to NEXT. Of a link only
 * its rate counts here; loss, flips and MTU are taken and not looked at.
 */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "common/owned.h"
#include "common/text.h"

enum {
	LINE_BYTES_MAX = 4096,
};

static const char BLANKS[] = " \t\r\v\f";

struct named {
	char name[TOPOLOGY_NAME_BYTES];
	uint32_t machine;
	unsigned int line;
};

struct reader {
	struct builder b;
	void *names; /* tree of struct named */
	unsigned int line; /* from 1 */
	struct why *why;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static void reader_free(struct reader *r)
{
	builder_free(&r->b);
	tdestroy(r->names, free);
}

/* A copy of what was wrong is in the words, so that nobody has to count lines. */
static int refuse(const struct reader *r, const char *word, const char *what)
{
	char quoted[TEXT_QUOTED_BYTES];

	return why_say(r->why, -EINVAL, "line %u: %s%s%s", r->line,
		       word ? text_quote(word, strlen(word), quoted) : "", word ? ": " : "", what);
}

static struct named *find(const struct reader *r, const char *name)
{
	struct named key = { .machine = 0 };
	struct named **at;

	if (strlen(name) >= sizeof(key.name))
		return NULL;
	memcpy(key.name, name, strlen(name) + 1);
	at = tfind(&key, &r->names, by_name);
	return at ? *at : NULL;
}

static int add_machine(struct reader *r, enum graph_kind kind, const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
	_cleanup_(freep) struct named *n = NULL;
	char words[64];
	struct named *other;

	if (strlen(name) >= sizeof(n->name) || name[strspn(name, allowed)])
		return refuse(r, name, "a name has at most 31 letters, digits, dots or _");
	if (topology_is_word(name))
		return refuse(r, name, "no name, as workloads say root=any and root=none");
	other = find(r, name);
	if (other) {
		snprintf(words, sizeof(words), "there is one since line %u", other->line);
		return refuse(r, name, words);
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	memcpy(n->name, name, strlen(name) + 1);
	n->line = r->line;
	n->machine = builder_machine(&r->b, kind, "%s", name);
	if (!tsearch(n, &r->names, by_name))
		return -ENOMEM;
	TAKE_PTR(n);
	return 0;
}

static int read_machines(struct reader *r, enum graph_kind kind, char **rest)
{
	char *name = strtok_r(NULL, BLANKS, rest);
	int error = name ? 0 : refuse(r, NULL, "names are missing");

	for (; name && error == 0; name = strtok_r(NULL, BLANKS, rest))
		error = add_machine(r, kind, name);
	return error;
}

/* One word of a link, and its value if it has one. */
static int read_option(struct reader *r, const char *word, char **rest, double *ret_rate)
{
	static const char *const flags[] = { "plain", "flip-hidden" };
	static const char *const valued[] = { "mtu",	   "loss",    "loss-up", "loss-down",
					      "dup",	   "reorder", "flip",	 "flip-up",
					      "flip-down", "flip-in", "mark-up", "mark-down" };
	const char *value;

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (!strcmp(word, flags[i]))
			return 0;
	value = strtok_r(NULL, BLANKS, rest);
	if (!strcmp(word, "rate")) {
		if (*ret_rate > 0)
			return refuse(r, word, "the link has one already");
		if (value && topology_rate(value, ret_rate))
			return 0;
		return refuse(r, value ? value : "",
			      "no rate such as 100mbit or 1gbit; whole numbers, such as 2500mbit");
	}
	for (size_t i = 0; i < sizeof(valued) / sizeof(*valued); i++)
		if (!strcmp(word, valued[i]))
			return value ? 0 : refuse(r, word, "its value is missing");
	return refuse(r, word, "no word of a link");
}

static int read_link(struct reader *r, char **rest)
{
	const struct named *end[2];
	double rate = 0;
	int error = 0;
	char *word;

	for (int i = 0; i < 2; i++) {
		word = strtok_r(NULL, BLANKS, rest);
		if (!word)
			return refuse(r, NULL, "a link has two names");
		end[i] = find(r, word);
		if (!end[i])
			return refuse(r, word, "no host, node or switch of that name above");
	}
	if (end[0] == end[1])
		return refuse(r, end[0]->name, "a link to itself");
	while (error == 0 && (word = strtok_r(NULL, BLANKS, rest)))
		error = read_option(r, word, rest, &rate);
	if (error == 0)
		builder_cable(&r->b, end[0]->machine, end[1]->machine, rate);
	return error;
}

static int read_way(struct reader *r, char **rest)
{
	const struct named *name[3];
	struct builder_way way;

	for (int i = 0; i < 3; i++) {
		const char *word = strtok_r(NULL, BLANKS, rest);

		if (!word)
			return refuse(r, NULL, "a way has three names: at, to and next");
		name[i] = find(r, word);
		if (!name[i])
			return refuse(r, word, "no host, node or switch of that name above");
	}
	if (strtok_r(NULL, BLANKS, rest))
		return refuse(r, NULL, "a way has three names: at, to and next");
	if (name[0] == name[1])
		return refuse(r, name[0]->name, "packets for it are there already");
	way = (struct builder_way){ name[0]->machine, name[1]->machine, name[2]->machine, r->line };
	if (!builder_way(&r->b, &way))
		return refuse(r, name[2]->name, "no link leads there");
	return 0;
}

static int read_line(struct reader *r, char *line)
{
	char *rest = line, *word;

	line[strcspn(line, "#")] = '\0';
	word = strtok_r(line, BLANKS, &rest);
	if (!word)
		return 0;
	if (!strcmp(word, "host"))
		return read_machines(r, GRAPH_HOST, &rest);
	if (!strcmp(word, "node"))
		return read_machines(r, GRAPH_NODE, &rest);
	if (!strcmp(word, "switch"))
		return read_machines(r, GRAPH_ROUTER, &rest);
	if (!strcmp(word, "link"))
		return read_link(r, &rest);
	if (!strcmp(word, "way"))
		return read_way(r, &rest);
	return refuse(r, word, "neither host, node, switch, link nor way");
}

static int read_all(struct reader *r, const char *text, size_t length)
{
	char line[LINE_BYTES_MAX + 1];
	int error = 0;

	for (size_t at = 0, bytes; error == 0 && at < length; at += bytes + 1) {
		const char *end = memchr(text + at, '\n', length - at);

		bytes = end ? (size_t)(end - text) - at : length - at;
		r->line++;
		if (bytes > LINE_BYTES_MAX)
			return refuse(r, NULL, "longer than 4096 bytes");
		if (memchr(text + at, '\0', bytes))
			return refuse(r, NULL, "a byte 0: this is no text");
		memcpy(line, text + at, bytes);
		line[bytes] = '\0';
		error = read_line(r, line);
	}
	return error;
}

int topology_testbed(const char *text, size_t length, const struct topology_defaults *defaults,
		     struct topology **ret, struct why *why)
{
	_cleanup_(reader_free) struct reader r = { .b.defaults = *defaults, .why = why };
	int error = read_all(&r, text, length);

	if (error == -ENOMEM)
		return why_say(why, error, "out of memory");
	if (error < 0)
		return error;
	if (length == 0)
		return why_say(why, -EINVAL, "line 1: the file is empty");
	if (!r.b.machines && !r.b.error)
		return why_say(why, -EINVAL, "line %u: the text ends, and no machine was in it",
			       r.line);
	error = builder_end(&r.b, ret);
	if (error == -E2BIG)
		return why_say(why, error, "more than %d machines, %d links or %d ways",
			       GRAPH_MACHINES_MAX, GRAPH_LINKS_MAX, BUILDER_WAYS_MAX);
	return error < 0 ? why_say(why, error, "out of memory") : 0;
}
