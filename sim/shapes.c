// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Networks of a regular shape. All that forwards has slots. A shape is a row of the table at the
 * end: its keys, and what draws it.
 *
 * fat-tree: k pods of k/2 edge and k/2 aggregation switches, k^2/4 cores, and k/2 hosts at each
 * edge (M. Al-Fares, A. Loukissas, A. Vahdat, SIGCOMM 2008). leaf-spine: each leaf has a cable to
 * each spine. dragonfly: a group is routers that all know one another; between any two groups there
 * is one cable (J. Kim, W. Dally, S. Scott, D. Abts, ISCA 2008). tapina: the network of the
 * authors' code (keemeew/TAPINA-MG).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "builder.h"
#include "common/owned.h"
#include "common/text.h"

enum {
	KEYS_MAX = 4,
	CORES_MAX = 64 * 64 / 4, /* of the largest fat tree; enough for other shapes, too */
};

static void draw_fat_tree(struct builder *b, const uint32_t *value)
{
	uint32_t k = value[0], half = k / 2, core[CORES_MAX] = { 0 }, above[CORES_MAX] = { 0 };

	for (uint32_t i = 0; i < half * half; i++)
		core[i] = builder_machine(b, GRAPH_NODE, "c%u", i);
	for (uint32_t pod = 0; pod < k; pod++) {
		for (uint32_t i = 0; i < half; i++) {
			above[i] = builder_machine(b, GRAPH_NODE, "a%u.%u", pod, i);
			for (uint32_t j = 0; j < half; j++)
				builder_cable(b, above[i], core[i * half + j], 0);
		}
		for (uint32_t i = 0; i < half; i++) {
			uint32_t edge = builder_machine(b, GRAPH_NODE, "e%u.%u", pod, i);

			for (uint32_t j = 0; j < half; j++)
				builder_cable(b, edge, above[j], 0);
			for (uint32_t j = 0; j < half; j++)
				builder_cable(
					b, builder_machine(b, GRAPH_HOST, "h%u.%u.%u", pod, i, j),
					edge, 0);
		}
	}
}

static void draw_leaf_spine(struct builder *b, const uint32_t *value)
{
	uint32_t leaves = value[0], spines = value[1], hosts = value[2], spine[CORES_MAX] = { 0 };

	for (uint32_t i = 0; i < spines; i++)
		spine[i] = builder_machine(b, GRAPH_NODE, "s%u", i);
	for (uint32_t i = 0; i < leaves; i++) {
		uint32_t leaf = builder_machine(b, GRAPH_NODE, "l%u", i);

		for (uint32_t j = 0; j < spines; j++)
			builder_cable(b, leaf, spine[j], 0);
		for (uint32_t j = 0; j < hosts; j++)
			builder_cable(b, builder_machine(b, GRAPH_HOST, "h%u.%u", i, j), leaf, 0);
	}
}

/*
 * Global cable q of group i leads to group i + q + 1, where it is the cable groups - 2 - q of that
 * group; both wrap.
 */
static void draw_dragonfly(struct builder *b, const uint32_t *value)
{
	uint32_t routers = value[0], hosts = value[1], global = value[2];
	uint32_t groups = routers * global + 1, first = 0;

	for (uint32_t i = 0; i < groups; i++) {
		for (uint32_t j = 0; j < routers; j++) {
			uint32_t router = builder_machine(b, GRAPH_NODE, "r%u.%u", i, j);

			first = i + j == 0 ? router : first;
			for (uint32_t other = router - j; other < router; other++)
				builder_cable(b, router, other, 0);
		}
	}
	for (uint32_t i = 0; i < groups; i++) {
		for (uint32_t q = 0; i + q + 1 < groups; q++)
			builder_cable(b, first + i * routers + q / global,
				      first + (i + q + 1) * routers + (groups - 2 - q) / global, 0);
		for (uint32_t j = 0; j < routers * hosts; j++)
			builder_cable(b,
				      builder_machine(b, GRAPH_HOST, "h%u.%u.%u", i, j / hosts,
						      j % hosts),
				      first + i * routers + j / hosts, 0);
	}
}

/* Four racks of three hosts; s5 and s6 are above the first two, s7 and s8 above the others. */
static void draw_tapina(struct builder *b, const uint32_t *value)
{
	uint32_t s[11];

	(void)value;
	for (uint32_t i = 1; i <= 10; i++)
		s[i] = builder_machine(b, GRAPH_NODE, "s%u", i);
	for (uint32_t rack = 1; rack <= 4; rack++) {
		for (uint32_t j = 0; j < 2; j++)
			builder_cable(b, s[rack], s[rack <= 2 ? 5 + j : 7 + j], 0);
		for (uint32_t j = 1; j <= 3; j++)
			builder_cable(b, builder_machine(b, GRAPH_HOST, "h%u", 3 * (rack - 1) + j),
				      s[rack], 0);
	}
	for (uint32_t above = 5; above <= 8; above++)
		for (uint32_t core = 9; core <= 10; core++)
			builder_cable(b, s[above], s[core], 0);
}

struct shape_key {
	const char *name;
	uint32_t min, max, initial;
	bool even;
};

static const struct shape {
	const char *name;
	struct shape_key key[KEYS_MAX];
	void (*draw)(struct builder *b, const uint32_t *value);
} shapes[] = {
	{ "fat-tree", { { "k", 2, 64, 4, true } }, draw_fat_tree },
	{ "leaf-spine",
	  { { "leaves", 1, 1024, 4, false },
	    { "spines", 1, CORES_MAX, 2, false },
	    { "hosts", 1, 1024, 8, false } },
	  draw_leaf_spine },
	{ "dragonfly",
	  { { "routers", 1, 64, 4, false },
	    { "hosts", 1, 64, 2, false },
	    { "global", 1, 64, 2, false } },
	  draw_dragonfly },
	{ "tapina", { { 0 } }, draw_tapina },
};

enum {
	SHAPES = sizeof(shapes) / sizeof(*shapes)
};

/* --- words to numbers ------------------------------------------------------------------------ */

static size_t keys_of(const struct shape *s)
{
	size_t n = 0;

	while (n < KEYS_MAX && s->key[n].name)
		n++;
	return n;
}

/* Keys that all shapes have come first in what errors say. */
static int refuse_key(const struct shape *s, const char *key, struct why *why)
{
	const char *names[KEYS_MAX + 2] = { "rate", "slots" };
	char quoted[TEXT_QUOTED_BYTES], list[TEXT_LIST_BYTES];
	size_t n = keys_of(s);

	for (size_t i = 0; i < n; i++)
		names[i + 2] = s->key[i].name;
	return why_say(why, -EINVAL, "%s: no key %s: there are %s", s->name,
		       text_quote(key, strlen(key), quoted),
		       text_list(names, n + 2, sizeof(*names), list));
}

static int take(const struct shape *s, const char *key, const char *text, struct builder *b,
		uint32_t *value, struct why *why)
{
	char quoted[TEXT_QUOTED_BYTES];

	text_quote(text, strlen(text), quoted);
	if (!strcmp(key, "rate"))
		return topology_rate(text, &b->defaults.rate)
			       ? 0
			       : why_say(why, -EINVAL,
					 "rate: %s is no rate such as 10gbit; whole "
					 "numbers, such as 2500mbit",
					 quoted);
	if (!strcmp(key, "slots"))
		return text_u32(text, UINT32_MAX, &b->defaults.slots)
			       ? 0
			       : why_say(why, -EINVAL, "slots: %s is no number of slots", quoted);
	for (size_t i = 0; i < keys_of(s); i++) {
		const struct shape_key *k = &s->key[i];

		if (strcmp(key, k->name) != 0)
			continue;
		if (text_u32(text, k->max, &value[i]) && value[i] >= k->min &&
		    !(k->even && value[i] % 2))
			return 0;
		return why_say(why, -EINVAL, "%s: %s is %s: allowed are %snumbers from %u to %u",
			       s->name, k->name, quoted, k->even ? "even " : "", k->min, k->max);
	}
	return refuse_key(s, key, why);
}

/* The number of a key of the shape: rate, slots, then its own; or -1. */
static int index_of(const struct shape *s, const char *key)
{
	if (!strcmp(key, "rate") || !strcmp(key, "slots"))
		return *key == 's';
	for (size_t i = 0; i < keys_of(s); i++)
		if (!strcmp(key, s->key[i].name))
			return (int)i + 2;
	return -1;
}

static int take_all(const struct shape *s, char *words, struct builder *b, uint32_t *value,
		    struct why *why)
{
	char *rest = words, *word, *text;
	unsigned int seen = 0;
	int r = 0;

	while (r == 0 && rest && (word = strsep(&rest, ","))) {
		int index;

		text = word;
		strsep(&text, "=");
		index = index_of(s, word);
		if (index >= 0 && seen & 1u << index)
			return why_say(why, -EINVAL, "%s: %s is given twice", s->name, word);
		seen |= index >= 0 ? 1u << index : 0;
		r = take(s, word, text ? text : "", b, value, why);
	}
	return r;
}

/* Of the shape's name, which ends at a colon or with the words; or NULL. */
static const struct shape *find_shape(const char *words)
{
	size_t length = strcspn(words, ":");

	for (const struct shape *s = shapes; s < shapes + SHAPES; s++)
		if (strlen(s->name) == length && !memcmp(s->name, words, length))
			return s;
	return NULL;
}

bool topology_is_shape(const char *words) { return find_shape(words) || !strpbrk(words, "./"); }

static int refuse_shape(const char *name, struct why *why)
{
	char path[TOPOLOGY_WORDS_BYTES + 2], quoted[TEXT_QUOTED_BYTES];
	char quoted_path[TEXT_QUOTED_BYTES], list[TEXT_LIST_BYTES];

	snprintf(path, sizeof(path), "./%s", name);
	return why_say(why, -EINVAL,
		       "no network %s: there are %s; a file is known by a dot or a slash in its "
		       "name, such as %s",
		       text_quote(name, strlen(name), quoted),
		       text_list(shapes, SHAPES, sizeof(*shapes), list),
		       text_quote(path, strlen(path), quoted_path));
}

int topology_shape(const char *words, struct topology **ret, struct why *why)
{
	_cleanup_(builder_free) struct builder b = { .defaults = TOPOLOGY_DEFAULTS };
	char copy[TOPOLOGY_WORDS_BYTES];
	uint32_t value[KEYS_MAX];
	const struct shape *s;
	char *rest = copy;
	int r;

	if (strlen(words) >= sizeof(copy))
		return why_say(why, -EINVAL, "a network's words are at most %zu bytes",
			       sizeof(copy) - 1);
	memcpy(copy, words, strlen(words) + 1);
	strsep(&rest, ":");
	s = find_shape(copy);
	if (!s)
		return refuse_shape(copy, why);
	for (size_t i = 0; i < KEYS_MAX; i++)
		value[i] = s->key[i].initial;
	r = take_all(s, rest, &b, value, why);
	if (r < 0)
		return r;
	s->draw(&b, value);
	r = builder_end(&b, ret);
	return r < 0 ? why_say(why, r, "%s: %s", s->name,
			       r == -E2BIG ? "too many machines or links" : "out of memory")
		     : 0;
}

const char *topology_help(char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (const struct shape *s = shapes; s < shapes + SHAPES && used < size; s++) {
		used += snprintf(text + used, size - used, "%-11s", s->name);
		for (size_t i = 0; i < keys_of(s) && used < size; i++)
			used += snprintf(text + used, size - used, " %s=%u (%s%u to %u)",
					 s->key[i].name, s->key[i].initial,
					 s->key[i].even ? "even, " : "", s->key[i].min,
					 s->key[i].max);
		if (used < size)
			used += snprintf(text + used, size - used, "\n");
	}
	return text;
}
