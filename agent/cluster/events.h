/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What has happened in the cluster, as one agent has seen it in the store: the last EVENTS_MAX
 * things, each with its reason. What follows from comparing what is told now with what was known
 * before; so whatever is told twice happens once, and what happened while the store was away has
 * happened when it is heard again. Pure.
 */
#ifndef TALLY_CLUSTER_EVENTS_H
#define TALLY_CLUSTER_EVENTS_H

#include "report.h"
#include "shared.h"

enum {
	EVENTS_MAX = 256, /* older ones are forgotten */
};

/* One line is one kind: the word that people read, and its meaning in docs/cluster.md. */
#define EVENTS_KINDS(X)                                                                        \
	X(CAME, "came", "A node reports, and did not before.")                                 \
	X(SILENT, "silent", "A node reports no more.")                                         \
	X(CORDONED, "cordoned", "An operator lets no run begin at a node.")                    \
	X(UNCORDONED, "uncordoned", "An operator lets runs begin there again.")                \
	X(DRAINED, "drained", "The last run at a cordoned node is over.")                      \
	X(LEADER, "leader", "Another node leads.")                                             \
	X(CREATED, "created", "A job of the cluster is there.")                                \
	X(PLACED, "placed", "A job got its first root; `--json` has what was weighed.")        \
	X(MOVED, "moved", "A job got another root; the same.")                                 \
	X(SHARES, "shares", "Of a job with several roots, one has another part of each call.") \
	X(WAYS, "ways", "Of a job, the ways that workers' packets take have changed.")         \
	X(REFUSED, "refused", "A node gave up a job that it was to be the root of.")           \
	X(DELETED, "deleted", "A job of the cluster is no more.")

enum events_kind {
#define X(name, word, meaning) EVENTS_##name,
	EVENTS_KINDS(X)
#undef X
	EVENTS_KIND_COUNT,
};

extern const char *const events_words[EVENTS_KIND_COUNT];

struct cluster_event {
	uint64_t at_ms; /* of Unix time, when this agent saw it */
	enum events_kind kind;
	char job[NAME_BYTES], tenant[NAME_BYTES]; /* "": it is about a node alone */
	char node[NAME_BYTES]; /* of a job: its root, or who refused; "": none */
	char from[NAME_BYTES]; /* who was the root, or led, before; "": nobody */
	char why[WANTED_WHY_BYTES]; /* printable ASCII */
	unsigned int weighs;
	struct wanted_weighed weighed[WANTED_WEIGHED_MAX]; /* PLACED and MOVED */
};

struct events_table {
	struct events_known *row; /* by name */
	unsigned int rows;
};

/* Zeros: nothing is known. For events_close(). */
struct events {
	uint64_t count[EVENTS_KIND_COUNT]; /* so far */
	uint64_t happened; /* all of them */
	struct cluster_event last[EVENTS_MAX]; /* by number, modulo EVENTS_MAX */
	struct events_table nodes, jobs; /* as they were told last */
	char leader[NAME_BYTES];
	bool resets; /* the caller's: what comes and goes now does so as the store is another one,
			or older */
};

void events_close(struct events *e);

/*
 * What the store tells, in its order. Not `is_news`: it was so before this agent came, and is only
 * to be known. Without memory, what is told then is not compared.
 *
 * events_report(): this is a node's report now; NULL: it has none. events_shared(): `s` has taken
 * this key. events_leader(): this node leads; "" or NULL: nobody does, or nobody knows.
 */
void events_report(struct events *e, const char *node, const struct report *r, bool is_news,
		   uint64_t now_ms);
void events_shared(struct events *e, const struct shared *s, const char *key, const char *value,
		   bool is_news, uint64_t now_ms);
void events_leader(struct events *e, const char *node, uint64_t now_ms);

/* How many are there, and one of them; 0 is the oldest. */
unsigned int events_known(const struct events *e);
const struct cluster_event *events_at(const struct events *e, unsigned int i);

#endif
