// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "carry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	WAIT_FIRST_MS = 1000,
	WAIT_MOST_MS = 60000,
};

static struct carry_way *find(const struct carry *c, uint32_t id, unsigned int node)
{
	struct carry_way *w = c->first;

	while (w && (w->id != id || w->node != node))
		w = w->next;
	return w;
}

static void want(struct carry_way *w, uint64_t now_ns)
{
	w->told = false;
	w->wait_ms = 0;
	w->due_ns = now_ns;
	*w->trouble.text = '\0';
}

static struct carry_way *way_new(struct carry *c, const struct job *j, unsigned int node)
{
	const struct tree_node *n = &j->tree->node[node];
	struct carry_way *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->id = j->id;
	w->node = node;
	memcpy(w->job, j->name, sizeof(w->job));
	memcpy(w->name, n->name, sizeof(w->name));
	w->address = n->address;
	w->root = j->service;
	w->next = c->first;
	return c->first = w;
}

static int look_at_node(struct carry *c, const struct job *j, unsigned int node, uint64_t now_ns)
{
	struct carry_way *w = find(c, j->id, node);
	const bool fresh = !w;

	if (!w)
		w = way_new(c, j, node);
	if (!w)
		return -ENOMEM;
	if (!fresh && w->epoch == j->epoch)
		return 0;
	w->epoch = j->epoch;
	want(w, now_ns);
	return 0;
}

int carry_look(struct carry *c, const struct books *books, uint64_t now_ns)
{
	int r = 0;

	for (unsigned int i = 0; i < books->jobs; i++) {
		const struct job *j = books->job[i];

		for (unsigned int k = 0; j->tree && j->run_window && k < j->tree->nodes; k++)
			if (look_at_node(c, j, k, now_ns) < 0)
				r = -ENOMEM;
	}
	for (struct carry_way *w = c->first; w; w = w->next) {
		const struct job *j = books_job_numbered(books, w->id);

		if (w->farewell)
			continue;
		if (j) {
			w->told |= !j->run_window; /* nobody needs the document of a run that is
						      over */
			continue;
		}
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
	w->said_epoch = w->epoch;
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
	free(w);
}

bool carry_done(struct carry *c, struct carry_way *w, int error, const char *why, uint64_t now_ns)
{
	bool changed;

	w->under_way = false;
	if (w->said_epoch != w->epoch || w->said_farewell != w->farewell)
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
