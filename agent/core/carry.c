// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "carry.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"

enum {
	WAIT_FIRST_MS = 1000,
	WAIT_MOST_MS = 60000,
};

static int address_compare(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	size_t bytes[2];
	const void *raw[] = { address_raw((void *)a, &bytes[0]),
			      address_raw((void *)b, &bytes[1]) };

	if (bytes[0] != bytes[1])
		return bytes[0] < bytes[1] ? -1 : 1;
	return memcmp(raw[0], raw[1], bytes[0]);
}

/* At an inner node, a job of a root is known by its name. */
static int way_compare(const void *left, const void *right)
{
	const struct carry_way *a = left, *b = right;
	int r = strcmp(a->job, b->job);

	if (r == 0)
		r = address_compare(&a->root, &b->root);
	return r ? r : address_compare(&a->address, &b->address);
}

static void want(struct carry_way *w, uint64_t now_ns)
{
	w->told = false;
	w->wait_ms = 0;
	w->due_ns = now_ns;
	*w->trouble.text = '\0';
}

static struct carry_way *way_add(struct carry *c, const struct carry_way *key)
{
	struct carry_way *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	*w = *key;
	if (!tsearch(w, &c->index, way_compare)) {
		free(w);
		return NULL;
	}
	w->next = c->first;
	return c->first = w;
}

static struct carry_way *way_find(const struct carry *c, const struct carry_way *key)
{
	struct carry_way **found = tfind(key, &c->index, way_compare);

	return found ? *found : NULL;
}

static struct carry_way key_of(const struct job *j, unsigned int node)
{
	const struct tree_node *n = &j->tree->node[node];
	struct carry_way key = { .address = n->address, .root = j->service };

	memcpy(key.job, j->name, sizeof(key.job));
	memcpy(key.name, n->name, sizeof(key.name));
	return key;
}

/* A run that is over is nobody's business; its job stays at the node until the next run. */
static int look_at_node(struct carry *c, const struct job *j, unsigned int node, uint64_t now_ns)
{
	const struct carry_way key = key_of(j, node);
	struct carry_way *w = way_find(c, &key);
	const bool is_on = j->run_window;

	if (!w && !is_on)
		return 0;
	w = w ? w : way_add(c, &key);
	if (!w)
		return -ENOMEM;
	if (w->id != j->id && !is_on)
		return 0; /* what the node has is of a job that is not there any more */
	w->is_wanted = true;
	w->node = node;
	w->told |= !is_on;
	if (!is_on || (w->id == j->id && w->epoch == j->epoch &&
		       w->generation == j->tree->generation && !w->farewell))
		return 0;
	w->id = j->id;
	w->epoch = j->epoch;
	w->generation = j->tree->generation;
	w->farewell = false;
	want(w, now_ns);
	return 0;
}

int carry_look(struct carry *c, const struct books *books, uint64_t now_ns)
{
	int r = 0;

	for (struct carry_way *w = c->first; w; w = w->next)
		w->is_wanted = false;
	for (unsigned int i = 0; i < books->jobs; i++) {
		const struct job *j = books->job[i];

		for (unsigned int k = 0; j->tree && k < j->tree->nodes; k++)
			if (look_at_node(c, j, k, now_ns) < 0)
				r = -ENOMEM;
	}
	for (struct carry_way *w = c->first; w; w = w->next) {
		if (w->is_wanted || w->farewell)
			continue;
		w->farewell = true;
		w->give_up_ns = now_ns + CARRY_FAREWELL_S * 1000000000ull;
		want(w, now_ns);
	}
	return r;
}

struct carry_way *carry_next(struct carry *c, uint64_t now_ns)
{
	struct carry_way *w = c->first;

	while (w && (w->told || w->under_way || w->due_ns > now_ns))
		w = w->next;
	if (!w)
		return NULL;
	w->under_way = true;
	w->said_id = w->id;
	w->said_epoch = w->epoch;
	w->said_generation = w->generation;
	w->said_farewell = w->farewell;
	return w;
}

void carry_put_back(struct carry_way *w) { w->under_way = false; }

static void forget(struct carry *c, struct carry_way *w)
{
	struct carry_way **link = &c->first;

	while (*link != w)
		link = &(*link)->next;
	*link = w->next;
	tdelete(w, &c->index, way_compare);
	free(w);
}

bool carry_done(struct carry *c, struct carry_way *w, int error, const char *why, uint64_t now_ns)
{
	bool changed;

	w->under_way = false;
	if (w->said_id != w->id || w->said_epoch != w->epoch ||
	    w->said_generation != w->generation || w->said_farewell != w->farewell)
		return false; /* something else is wanted by now, and due */
	if (w->farewell && (error == 0 || now_ns >= w->give_up_ns)) {
		forget(c, w);
		return false;
	}
	if (error == 0) {
		w->told = true;
		why = "";
	} else {
		w->wait_ms = w->wait_ms ? 2 * w->wait_ms : WAIT_FIRST_MS;
		w->wait_ms = w->wait_ms < WAIT_MOST_MS ? w->wait_ms : WAIT_MOST_MS;
		w->due_ns = now_ns + w->wait_ms * 1000000ull;
	}
	changed = strncmp(w->trouble.text, why, sizeof(w->trouble.text) - 1) != 0;
	snprintf(w->trouble.text, sizeof(w->trouble.text), "%s", why);
	return changed;
}

const struct carry_way *carry_find(const struct carry *c, const struct job *j, unsigned int node)
{
	const struct carry_way key = key_of(j, node), *w = way_find(c, &key);

	return w && w->id == j->id && w->epoch == j->epoch &&
			       w->generation == j->tree->generation && !w->farewell
		       ? w
		       : NULL;
}

bool carry_is_away(const struct carry_way *w) { return !w->told && *w->trouble.text; }

void carry_explain(const struct carry_way *w, const struct job *j, struct why *ret)
{
	char at[ADDRESS_BYTES];

	address_print(&w->address, at, sizeof(at));
	if (!w->farewell)
		why_say(ret, 0,
			"job %s: inner node %s (%s) does not know of the run, and adds nothing: %s",
			w->job, w->name, at, w->trouble.text);
	else if (j)
		why_say(ret, 0,
			"job %s goes on without inner node %s (%s), which does not know that yet: "
			"%s",
			w->job, w->name, at, w->trouble.text);
	else
		why_say(ret, 0,
			"job %s is not there any more, and inner node %s (%s) does not know that "
			"yet: %s",
			w->job, w->name, at, w->trouble.text);
}

uint64_t carry_deadline_ns(const struct carry *c)
{
	uint64_t first_ns = UINT64_MAX;

	for (const struct carry_way *w = c->first; w; w = w->next)
		if (!w->told && !w->under_way && w->due_ns < first_ns)
			first_ns = w->due_ns;
	return first_ns;
}

void carry_clear(struct carry *c)
{
	while (c->first)
		forget(c, c->first);
}
