// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "carry.h"

#include <errno.h>
#include <inttypes.h>
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

/* --- whom ways are for, and whose they are --------------------------------------------------- */

static int at_compare(const void *left, const void *right)
{
	const struct carry_address *a = left, *b = right;

	return address_compare(&a->is, &b->is);
}

static struct carry_address *address_get(struct carry *c, const struct sockaddr_storage *is)
{
	const struct carry_address key = { .is = *is };
	struct carry_address **found = tfind(&key, &c->addresses, at_compare), *a;

	if (found)
		return *found;
	a = malloc(sizeof(*a));
	if (!a)
		return NULL;
	*a = key;
	if (tsearch(a, &c->addresses, at_compare))
		return a;
	free(a);
	return NULL;
}

static void address_put(struct carry *c, struct carry_address *a)
{
	if (a->ways)
		return;
	tdelete(a, &c->addresses, at_compare);
	free(a);
}

static struct carry_tenant *tenant_get(struct carry *c, const char *name)
{
	struct carry_tenant *t;

	LIST_FOREACH(t, &c->tenants, list)
	if (!strcmp(t->name, name))
		return t;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	snprintf(t->name, sizeof(t->name), "%s", name);
	TAILQ_INIT(&t->farewell);
	LIST_INSERT_HEAD(&c->tenants, t, list);
	return t;
}

static void tenant_put(struct carry_tenant *t)
{
	if (t->ways)
		return;
	LIST_REMOVE(t, list);
	free(t);
}

/* A later job of this name may be another tenant's. `was`, if not NULL, has it no more. */
static void tenant_set(struct carry_way *w, struct carry_tenant *t)
{
	struct carry_tenant *was = w->tenant;

	w->tenant = t;
	t->ways++;
	t->under_way += w->under_way;
	if (!was)
		return;
	was->ways--;
	was->under_way -= w->under_way;
	tenant_put(was);
}

/* --- ways ------------------------------------------------------------------------------------ */

static void want(struct carry_way *w, uint64_t now_ns)
{
	w->told = false;
	w->wait_ms = 0;
	w->due_ns = now_ns;
	*w->trouble.text = '\0';
}

static void farewell_begin(struct carry_way *w, uint64_t now_ns)
{
	w->farewell = true;
	w->rest_ns = 0;
	w->give_up_ns = now_ns + CARRY_FAREWELL_S * 1000000000ull;
	want(w, now_ns);
	TAILQ_INSERT_TAIL(&w->tenant->farewell, w, farewells);
	w->tenant->farewells++;
}

static void farewell_end(struct carry_way *w)
{
	struct carry_tenant *t = w->tenant;

	if (!w->farewell)
		return;
	w->farewell = false;
	TAILQ_REMOVE(&t->farewell, w, farewells);
	if (!--t->farewells)
		t->forgotten = t->forgotten_said = 0;
}

static struct carry_way *way_add(struct carry *c, const struct carry_way *key, const char *tenant)
{
	struct carry_tenant *t = tenant_get(c, tenant);
	struct carry_address *a = address_get(c, &key->address);
	struct carry_way *w = t && a ? malloc(sizeof(*w)) : NULL;

	if (w)
		*w = *key;
	if (!w || !tsearch(w, &c->index, way_compare)) {
		free(w);
		if (t)
			tenant_put(t);
		if (a)
			address_put(c, a);
		return NULL;
	}
	tenant_set(w, t);
	w->at = a;
	a->ways++;
	w->next = c->first;
	w->link = &c->first;
	if (w->next)
		w->next->link = &w->next;
	return c->first = w;
}

static void forget(struct carry *c, struct carry_way *w)
{
	farewell_end(w);
	*w->link = w->next;
	if (w->next)
		w->next->link = w->link;
	tdelete(w, &c->index, way_compare);
	w->tenant->ways--;
	tenant_put(w->tenant);
	w->at->ways--;
	address_put(c, w->at);
	free(w);
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

/* --- what is wanted -------------------------------------------------------------------------- */

/* -ENOMEM */
static int tenant_follow(struct carry *c, struct carry_way *w, const struct job *j)
{
	struct carry_tenant *t;

	if (!strcmp(w->tenant->name, j->tenant_name))
		return 0;
	t = tenant_get(c, j->tenant_name);
	if (!t)
		return -ENOMEM;
	tenant_set(w, t);
	return 0;
}

/* That is nobody's business for a while: the next run would take the slots again. */
static void run_is_over(struct carry_way *w, uint64_t now_ns)
{
	if (w->farewell)
		return;
	if (!w->rest_ns)
		w->rest_ns = now_ns + CARRY_REST_S * 1000000000ull;
	w->told = true;
	w->is_wanted = now_ns < w->rest_ns;
}

static void run_is_on(struct carry_way *w, const struct job *j, uint64_t now_ns)
{
	w->is_wanted = true;
	w->rest_ns = 0;
	if (w->id == j->id && w->epoch == j->epoch && w->generation == j->tree->generation &&
	    !w->farewell)
		return;
	farewell_end(w);
	w->id = j->id;
	w->epoch = j->epoch;
	w->generation = j->tree->generation;
	want(w, now_ns);
}

static int look_at_node(struct carry *c, const struct job *j, unsigned int node, uint64_t now_ns)
{
	const struct carry_way key = key_of(j, node);
	struct carry_way *w = way_find(c, &key);
	const bool is_on = j->run_window;

	if (!w && !is_on && c->has_looked)
		return 0;
	if (!w) {
		w = way_add(c, &key, j->tenant_name);
		if (!w)
			return -ENOMEM;
		w->said = !is_on; /* by the agent before us, for all we know, of this job */
		w->id = is_on ? 0 : j->id;
	}
	if (w->id != j->id && !is_on)
		return 0; /* what the node has is of a job that is not there any more */
	w->node = node;
	if (!is_on) {
		run_is_over(w, now_ns);
		return 0;
	}
	run_is_on(w, j, now_ns);
	return tenant_follow(c, w, j);
}

/* Who was never told anything has nothing to forget. */
static void farewells_look(struct carry *c, uint64_t now_ns)
{
	struct carry_way *next;

	for (struct carry_way *w = c->first; w; w = next) {
		next = w->next;
		if (w->is_wanted || w->farewell)
			continue;
		if (w->said)
			farewell_begin(w, now_ns);
		else
			forget(c, w);
	}
}

/* What is under way comes back, and is kept for that. */
static void farewells_trim(struct carry *c, struct carry_tenant *t)
{
	while (t->farewells > CARRY_FAREWELLS_MAX) {
		struct carry_way *oldest = TAILQ_FIRST(&t->farewell);

		while (oldest->under_way)
			oldest = TAILQ_NEXT(oldest, farewells);
		t->forgotten++;
		forget(c, oldest);
	}
}

int carry_look(struct carry *c, const struct books *books, uint64_t now_ns)
{
	struct carry_tenant *t;
	int r = 0;

	for (struct carry_way *w = c->first; w; w = w->next)
		w->is_wanted = false;
	for (unsigned int i = 0; i < books->jobs; i++) {
		const struct job *j = books->job[i];

		for (unsigned int k = 0; j->tree && k < j->tree->nodes; k++)
			if (look_at_node(c, j, k, now_ns) < 0)
				r = -ENOMEM;
	}
	c->has_looked = true;
	farewells_look(c, now_ns);
	LIST_FOREACH(t, &c->tenants, list)
	farewells_trim(c, t);
	return r;
}

/* --- what is told ---------------------------------------------------------------------------- */

/* Since or from when it can be told; UINT64_MAX: not before something else has been. */
static uint64_t ready_ns(const struct carry *c, const struct carry_way *w)
{
	const struct carry_address *a = w->at;

	if (w->told || w->under_way || w->tenant->under_way >= CARRY_UNDER_WAY_MAX - c->under_way ||
	    a->under_way >= (a->wait_ms ? 1 : CARRY_ADDRESS_MAX))
		return UINT64_MAX;
	return a->wait_ms && a->due_ns > w->due_ns ? a->due_ns : w->due_ns;
}

static struct carry_way *ready_first(const struct carry *c, uint64_t *ret_ns)
{
	struct carry_way *first = NULL;

	*ret_ns = UINT64_MAX;
	for (struct carry_way *w = c->first; w; w = w->next) {
		const uint64_t at_ns = ready_ns(c, w);

		if (at_ns >= *ret_ns)
			continue;
		*ret_ns = at_ns;
		first = w;
	}
	return first;
}

static void under_way_set(struct carry *c, struct carry_way *w, bool is)
{
	const int one = is ? 1 : -1;

	w->under_way = is;
	w->tenant->under_way += one;
	w->at->under_way += one;
	c->under_way += one;
}

struct carry_way *carry_next(struct carry *c, uint64_t now_ns)
{
	uint64_t at_ns;
	struct carry_way *w = ready_first(c, &at_ns);

	if (!w || at_ns > now_ns)
		return NULL;
	under_way_set(c, w, true);
	w->said = true;
	w->began_ns = now_ns;
	w->said_id = w->id;
	w->said_epoch = w->epoch;
	w->said_generation = w->generation;
	w->said_farewell = w->farewell;
	return w;
}

static void wait_longer(unsigned int *wait_ms, uint64_t now_ns, uint64_t *due_ns)
{
	*wait_ms = *wait_ms ? 2 * *wait_ms : WAIT_FIRST_MS;
	*wait_ms = *wait_ms < WAIT_MOST_MS ? *wait_ms : WAIT_MOST_MS;
	*due_ns = now_ns + *wait_ms * 1000000ull;
}

/* What fails at once costs nothing, and says nothing of other messages. */
static void address_note(struct carry_address *a, uint64_t began_ns, int error, const char *why,
			 uint64_t now_ns)
{
	if (error == 0 || now_ns - began_ns < CARRY_SILENT_MS * 1000000ull) {
		a->wait_ms = 0;
		return;
	}
	if (a->wait_ms && now_ns < a->due_ns)
		return; /* it was begun before it was known that the address is silent */
	wait_longer(&a->wait_ms, now_ns, &a->due_ns);
	snprintf(a->trouble.text, sizeof(a->trouble.text), "%s", why);
}

bool carry_done(struct carry *c, struct carry_way *w, int error, const char *why, uint64_t now_ns)
{
	bool changed;

	under_way_set(c, w, false);
	address_note(w->at, w->began_ns, error, why, now_ns);
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
		wait_longer(&w->wait_ms, now_ns, &w->due_ns);
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

/* What was not tried yet, since its address is silent, has no trouble of its own. */
const char *carry_trouble(const struct carry_way *w)
{
	return *w->trouble.text || !w->at->wait_ms ? w->trouble.text : w->at->trouble.text;
}

bool carry_is_away(const struct carry_way *w) { return !w->told && *carry_trouble(w); }

void carry_explain(const struct carry_way *w, const struct job *j, struct why *ret)
{
	char at[ADDRESS_BYTES];

	address_print(&w->address, at, sizeof(at));
	if (!w->farewell)
		why_say(ret, 0,
			"job %s: inner node %s (%s) does not know of the run, and adds nothing: %s",
			w->job, w->name, at, carry_trouble(w));
	else if (j && !j->run_window)
		why_say(ret, 0,
			"the run of job %s is over, and inner node %s (%s) does not know that yet, "
			"and keeps its slots: %s",
			w->job, w->name, at, carry_trouble(w));
	else if (j)
		why_say(ret, 0,
			"job %s goes on without inner node %s (%s), which does not know that yet: "
			"%s",
			w->job, w->name, at, carry_trouble(w));
	else
		why_say(ret, 0,
			"job %s is not there any more, and inner node %s (%s) does not know that "
			"yet: %s",
			w->job, w->name, at, carry_trouble(w));
}

struct carry_tenant *carry_forgotten(const struct carry *c, const struct carry_tenant *t,
				     struct why *ret)
{
	struct carry_tenant *next = t ? LIST_NEXT(t, list) : LIST_FIRST(&c->tenants);

	while (next && !next->forgotten)
		next = LIST_NEXT(next, list);
	if (next)
		why_say(ret, 0,
			"tenant %s: %u inner nodes do not know yet that jobs are not there any "
			"more; so the oldest farewells, %" PRIu64 " by now, are forgotten, and "
			"these jobs stay where they were: tallyctl job del at their nodes",
			next->name, next->farewells, next->forgotten);
	return next;
}

uint64_t carry_deadline_ns(const struct carry *c)
{
	uint64_t at_ns;

	ready_first(c, &at_ns);
	for (const struct carry_way *w = c->first; w; w = w->next)
		if (w->rest_ns && w->rest_ns < at_ns)
			at_ns = w->rest_ns;
	return at_ns;
}

void carry_clear(struct carry *c)
{
	while (c->first)
		forget(c, c->first);
	c->has_looked = false;
}
