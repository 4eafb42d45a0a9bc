// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "events.h"

#include <stdlib.h>
#include <string.h>

#include "common/joining.h"

const char *const events_words[EVENTS_KIND_COUNT] = {
#define X(name, word, meaning) [EVENTS_##name] = word,
	EVENTS_KINDS(X)
#undef X
};

/* A node or a job, as it was told last. */
struct events_known {
	char name[NAME_BYTES];
	bool cordoned; /* a node */
	unsigned int running; /* its runs */
	uint64_t birth; /* a job */
	unsigned int refusals;
	char tenant[NAME_BYTES];
	char root[NAME_BYTES]; /* "": it had none yet */
	uint16_t share; /* of each call, that this root has */
	uint64_t ways_revision; /* 0: routing's own */
};

/* --- what was known -------------------------------------------------------------------------- */

static unsigned int place_of(const struct events_table *t, const char *name)
{
	unsigned int low = 0, high = t->rows;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;

		if (strcmp(t->row[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct events_known *find(const struct events_table *t, const char *name)
{
	const unsigned int at = place_of(t, name);

	return at < t->rows && !strcmp(t->row[at].name, name) ? &t->row[at] : NULL;
}

/* One that is not there. NULL: no memory. As many as the picture and what is shared may have. */
static struct events_known *add(struct events_table *t, const char *name)
{
	const unsigned int at = place_of(t, name);
	struct events_known *more = reallocarray(t->row, t->rows + 1, sizeof(*more));

	if (!more)
		return NULL;
	t->row = more;
	memmove(more + at + 1, more + at, (t->rows - at) * sizeof(*more));
	t->rows++;
	more[at] = (struct events_known){ 0 };
	snprintf(more[at].name, sizeof(more[at].name), "%s", name);
	return &more[at];
}

static void drop(struct events_table *t, struct events_known *k)
{
	t->rows--;
	memmove(k, k + 1, (size_t)(t->row + t->rows - k) * sizeof(*k));
}

void events_close(struct events *e)
{
	free(e->nodes.row);
	free(e->jobs.row);
	e->nodes = e->jobs = (struct events_table){ 0 };
}

/* --- what happens ---------------------------------------------------------------------------- */

static void happen(struct events *e, const struct cluster_event *event)
{
	e->last[e->happened++ % EVENTS_MAX] = *event;
	e->count[event->kind]++;
}

unsigned int events_known(const struct events *e)
{
	return e->happened < EVENTS_MAX ? e->happened : EVENTS_MAX;
}

const struct cluster_event *events_at(const struct events *e, unsigned int i)
{
	return &e->last[(e->happened - events_known(e) + i) % EVENTS_MAX];
}

static void name_copy(char to[NAME_BYTES], const char *from)
{
	snprintf(to, NAME_BYTES, "%s", from);
}

/* Others wrote it: whoever prints it needs to know nothing of that. */
static void why_copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from);
	for (; *to; to++)
		if (*to < ' ' || *to > '~')
			*to = '?';
}

/* --- nodes ----------------------------------------------------------------------------------- */

static void node_happens(struct events *e, enum events_kind kind, const char *node, const char *why,
			 uint64_t now_ms)
{
	struct cluster_event event = { .at_ms = now_ms, .kind = kind };

	name_copy(event.node, node);
	why_copy(event.why, sizeof(event.why), why);
	happen(e, &event);
}

static unsigned int runs_of(const struct report *r)
{
	unsigned int runs = 0;

	for (unsigned int i = 0; i < r->jobs; i++)
		runs += r->job[i].runs;
	return runs;
}

static void node_came(struct events *e, const char *node, const struct report *r, bool is_news,
		      uint64_t now_ms)
{
	struct events_known *k = add(&e->nodes, node);
	char why[WANTED_WHY_BYTES];

	if (!k)
		return;
	k->cordoned = r->cordoned;
	k->running = runs_of(r);
	snprintf(why, sizeof(why), "tallyd %s reports it%s", r->version,
		 r->cordoned ? ", cordoned" : "");
	if (is_news)
		node_happens(e, EVENTS_CAME, node, why, now_ms);
}

static void node_changed(struct events *e, struct events_known *k, const struct report *r,
			 bool is_news, uint64_t now_ms)
{
	const bool cordons = r->cordoned != k->cordoned;
	const bool drains = r->cordoned && k->running && !runs_of(r);

	k->cordoned = r->cordoned;
	k->running = runs_of(r);
	if (is_news && cordons)
		node_happens(e, r->cordoned ? EVENTS_CORDONED : EVENTS_UNCORDONED, k->name,
			     "an operator said so", now_ms);
	if (is_news && drains)
		node_happens(e, EVENTS_DRAINED, k->name, "its last run is over", now_ms);
}

void events_report(struct events *e, const char *node, const struct report *r, bool is_news,
		   uint64_t now_ms)
{
	struct events_known *k = find(&e->nodes, node);

	if (k && r) {
		node_changed(e, k, r, is_news, now_ms);
	} else if (r) {
		node_came(e, node, r, is_news, now_ms);
	} else if (k) {
		drop(&e->nodes, k);
		if (is_news)
			node_happens(e, EVENTS_SILENT, node,
				     e->resets ? "the store came back without its report"
					       : "its agent ended, or was not heard for 10 s",
				     now_ms);
	}
}

void events_leader(struct events *e, const char *node, uint64_t now_ms)
{
	struct cluster_event event = { .at_ms = now_ms, .kind = EVENTS_LEADER };
	const bool is_first = !*e->leader;

	if (!node || !*node || !strcmp(node, e->leader))
		return;
	name_copy(event.node, node);
	name_copy(event.from, e->leader);
	snprintf(event.why, sizeof(event.why), "%.63s leads no more", e->leader);
	name_copy(e->leader, node);
	if (!is_first)
		happen(e, &event);
}

/* --- jobs ------------------------------------------------------------------------------------ */

static struct cluster_event of_job(const struct events_known *k, enum events_kind kind,
				   uint64_t now_ms)
{
	struct cluster_event event = { .at_ms = now_ms, .kind = kind };

	name_copy(event.job, k->name);
	name_copy(event.tenant, k->tenant);
	return event;
}

static void job_went(struct events *e, struct events_known *k, bool is_news, uint64_t now_ms)
{
	struct cluster_event event = of_job(k, EVENTS_DELETED, now_ms);

	name_copy(event.from, k->root);
	snprintf(event.why, sizeof(event.why), "%s",
		 e->resets ? "the store came back without it" : "an operator said so");
	drop(&e->jobs, k);
	if (is_news)
		happen(e, &event);
}

static struct events_known *job_came(struct events *e, const struct shared_job *j, bool is_news,
				     uint64_t now_ms)
{
	struct events_known *k = add(&e->jobs, j->name);
	struct cluster_event event;

	if (!k)
		return NULL;
	k->birth = j->job.birth;
	k->refusals = j->refusals;
	name_copy(k->tenant, j->job.tenant);
	event = of_job(k, EVENTS_CREATED, now_ms);
	snprintf(event.why, sizeof(event.why), "tenant %.63s asked for it, with %u worker%s",
		 j->job.tenant, j->job.workers, j->job.workers > 1 ? "s" : "");
	if (e->resets)
		snprintf(event.why, sizeof(event.why), "the store came back with it");
	if (is_news)
		happen(e, &event);
	return k;
}

static void job_placed(struct events *e, struct events_known *k, const struct shared_job *j,
		       bool is_news, uint64_t now_ms)
{
	struct cluster_event event = of_job(k, *k->root ? EVENTS_MOVED : EVENTS_PLACED, now_ms);

	name_copy(event.node, j->place.root);
	name_copy(event.from, k->root);
	why_copy(event.why, sizeof(event.why), j->place.why);
	event.weighs = j->place.weighs;
	memcpy(event.weighed, j->place.weighed, sizeof(event.weighed));
	name_copy(k->root, j->place.root);
	k->share = j->place.share;
	if (is_news)
		happen(e, &event);
}

static void job_shared(struct events *e, struct events_known *k, const struct shared_job *j,
		       bool is_news, uint64_t now_ms)
{
	struct cluster_event event = of_job(k, EVENTS_SHARES, now_ms);

	name_copy(event.node, k->root);
	snprintf(event.why, sizeof(event.why), "%.1f %%, before %.1f %%; ",
		 j->place.share * 100.0 / JOINING_SHARE_MAX, k->share * 100.0 / JOINING_SHARE_MAX);
	why_copy(event.why + strlen(event.why), sizeof(event.why) - strlen(event.why),
		 j->place.why);
	k->share = j->place.share;
	if (is_news)
		happen(e, &event);
}

/* Of an earlier root they mean nothing any more. */
static void job_led(struct events *e, struct events_known *k, const struct shared_job *j,
		    bool is_news, uint64_t now_ms)
{
	const struct wanted_ways *w = shared_ways(j);
	struct cluster_event event = of_job(k, EVENTS_WAYS, now_ms);

	k->ways_revision = w ? j->ways_revision : 0;
	name_copy(event.node, k->root);
	why_copy(event.why, sizeof(event.why), w ? w->why : "those that routing has");
	if (is_news)
		happen(e, &event);
}

/* What else a place may have changed is where workers are. */
static struct events_known *job_look(struct events *e, const struct shared *s, const char *name,
				     bool is_news, uint64_t now_ms)
{
	const struct shared_job *j = shared_find(s, name);
	struct events_known *k = find(&e->jobs, name);

	if (k && (!j || j->job.birth != k->birth)) {
		job_went(e, k, is_news, now_ms);
		k = NULL;
	}
	if (j && !k)
		k = job_came(e, j, is_news, now_ms);
	if (k && shared_is_placed(j) && strcmp(j->place.root, k->root) != 0)
		job_placed(e, k, j, is_news, now_ms);
	else if (k && shared_is_placed(j) && j->place.share != k->share)
		job_shared(e, k, j, is_news, now_ms);
	if (k && k->ways_revision != (shared_ways(j) ? j->ways_revision : 0))
		job_led(e, k, j, is_news, now_ms);
	return k;
}

static void job_refused(struct events *e, const struct events_known *k, const char *node,
			const char *why, uint64_t now_ms)
{
	struct cluster_event event = of_job(k, EVENTS_REFUSED, now_ms);

	name_copy(event.node, node);
	why_copy(event.why, sizeof(event.why), why);
	happen(e, &event);
}

/* Of a job that is known: others are of one that is gone. */
static void refusals_look(struct events *e, const struct shared *s, struct events_known *k,
			  const char *node, const char *why, bool is_news, uint64_t now_ms)
{
	const struct shared_job *j = shared_find(s, k->name);
	const unsigned int before = k->refusals;

	k->refusals = j->refusals;
	if (is_news && why && j->refusals > before)
		job_refused(e, k, node, why, now_ms);
}

void events_shared(struct events *e, const struct shared *s, const char *key, const char *value,
		   bool is_news, uint64_t now_ms)
{
	const char *name = strchr(key, '/'), *rest;
	const bool refuses = !strncmp(key, WANTED_REFUSALS, strlen(WANTED_REFUSALS));
	struct events_known *k;
	char job[NAME_BYTES];
	size_t length;

	if (!name || !strncmp(key, WANTED_WORKERS, strlen(WANTED_WORKERS)))
		return;
	length = strcspn(++name, "/");
	if (length >= sizeof(job))
		return;
	memcpy(job, name, length);
	job[length] = '\0';
	rest = name + length;
	k = job_look(e, s, job, is_news, now_ms);
	if (k && refuses && *rest)
		refusals_look(e, s, k, rest + 1, value, is_news, now_ms);
}
