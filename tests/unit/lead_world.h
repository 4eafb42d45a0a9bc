/* SPDX-License-Identifier: GPL-2.0-only */
/* One who leads a cluster (shared_world.h), and the store that takes what is decided, or does not.
 */
#ifndef TALLY_TESTS_UNIT_LEAD_WORLD_H
#define TALLY_TESTS_UNIT_LEAD_WORLD_H

#include <errno.h>

#include "agent/cluster/lead.h"
#include "shared_world.h"

struct leading {
	struct cluster c;
	struct lead lead;
	uint64_t now_ns;
	bool finds_ways;
	uint64_t key; /* the revision of the leader's key, as the store has it */
	struct lead_decision *d; /* of the last look */
	struct lead_decision *taken; /* by the store */
};

static inline int leading_open(void **state)
{
	struct leading *w = *state = calloc(1, sizeof(*w));

	assert_non_null(w);
	cluster_open(&w->c);
	w->now_ns = 1000000000000;
	w->key = 77;
	return 0;
}

static inline int leading_close(void **state)
{
	struct leading *w = *state;

	lead_decision_free(w->d);
	lead_decision_free(w->taken);
	lead_close(&w->lead);
	cluster_close(&w->c);
	free(w);
	return 0;
}

static inline void pass(struct leading *w, unsigned int ms) { w->now_ns += ms * 1000000ull; }

static inline struct lead_view view(const struct leading *w)
{
	return (struct lead_view){ w->now_ns, &w->c.shared, &w->c.picture, w->finds_ways, NULL };
}

/* How many jobs get a place now. */
static inline unsigned int look_as(struct leading *w, const struct store_seen *leads)
{
	const struct lead_view v = view(w);

	lead_decision_free(w->d);
	assert_int_equal(lead_look(&w->lead, &v, leads, &w->d), 0);
	return w->d ? w->d->jobs : 0;
}

static inline unsigned int look(struct leading *w)
{
	return look_as(w, &(struct store_seen){ "leader", 77 });
}

/* Of any key that a decision may name. */
static inline uint64_t store_revision(const struct leading *w, const char *key)
{
	const char *name = strchr(key, '/');
	const struct shared_job *j = NULL;

	if (!strcmp(key, "leader"))
		return w->key;
	assert_non_null(name);
	for (unsigned int i = 0; i < w->c.shared.jobs; i++) /* also what is not wanted any more */
		if (!strcmp(w->c.shared.job[i]->name, name + 1))
			j = w->c.shared.job[i];
	if (!strncmp(key, WANTED_WAYS, strlen(WANTED_WAYS)))
		return j ? j->ways_revision : 0;
	if (!strncmp(key, WANTED_JOBS, strlen(WANTED_JOBS)))
		return j ? j->revision : 0;
	assert_int_equal(strncmp(key, WANTED_PLACES, strlen(WANTED_PLACES)), 0);
	return j ? j->place_revision : 0;
}

/* The store does what the last look has decided, if all is as that says. */
static inline int store_writes(struct leading *w)
{
	const struct store_write *write = &w->d->write;

	for (unsigned int i = 0; i < write->seens; i++)
		if (store_revision(w, write->seen[i].key) != write->seen[i].revision) {
			lead_decided(&w->lead, -ESTALE, 0);
			return -ESTALE;
		}
	lead_decided(&w->lead, 0, ++w->c.revision);
	lead_decision_free(w->taken);
	w->taken = TAKE_PTR(w->d);
	return 0;
}

/* And we hear of it. */
static inline void store_tells(struct leading *w)
{
	const struct store_write *write = &w->taken->write;

	for (unsigned int i = 0; i < write->changes; i++)
		cluster_put_at(&w->c, write->change[i].key, write->change[i].value, w->c.revision);
}

static inline void store_takes(struct leading *w)
{
	assert_int_equal(store_writes(w), 0);
	store_tells(w);
}

static inline const char *root_of(const struct leading *w, const char *name)
{
	const struct shared_job *j = cluster_job(&w->c, name);

	return shared_is_placed(j) ? j->place.root : "";
}

/* The decision is about this job alone. */
static inline void assert_about(const struct leading *w, const char *name)
{
	assert_non_null(w->d);
	assert_int_equal(w->d->jobs, 1);
	assert_string_equal(w->d->job[0]->name, name);
}

/* And gives it this root. */
static inline void assert_decided(const struct leading *w, const char *name, const char *root)
{
	assert_about(w, name);
	assert_string_equal(w->d->place[0].root, root);
}

/* One look a second: after how many seconds something is decided; `max`: it is not. */
static inline unsigned int seconds_until(struct leading *w, unsigned int max)
{
	unsigned int seconds = 0;

	while (!look(w) && seconds < max) {
		pass(w, 1000);
		seconds++;
	}
	return seconds;
}

/* A job whose workers are all at n0, wanted, and with a run that sums at this node. Others fill
 * what leads to n3, so that it is a bad place. */
static inline void run_add(struct leading *w, const char *name, unsigned int node)
{
	for (unsigned int other = 1; other < 3; other++) {
		struct report_port *p = port_to(cluster_node(&w->c, 3), other);

		p->transmit_forecast = p->receive_forecast = 11000000;
	}
	cluster_want(&w->c, name, 2, 0, 0);
	cluster_place(&w->c, name, "00", node);
	cluster_run(&w->c, name, node);
}

/* An operator places it there, and the run goes there. */
static inline void run_moves(struct leading *w, const char *name, unsigned int node)
{
	cluster_place(&w->c, name, "00", node);
	cluster_run(&w->c, name, node);
}

/* A place is given, so it is looked for better ones every second, for a while. */
static inline void look_every_second(struct leading *w)
{
	cluster_want(&w->c, "z", 2, 0, 0);
	cluster_wait(&w->c, "z", "22");
	assert_int_equal(look(w), 1);
	assert_about(w, "z");
	store_takes(w);
	cluster_wait_end(&w->c, "z", "22");
}

#define FACT(f) cmocka_unit_test_setup_teardown(f, leading_open, leading_close)

#endif
