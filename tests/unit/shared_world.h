/* SPDX-License-Identifier: GPL-2.0-only */
/* What the store says of jobs, and what nodes report of them: square_world.h's square with jobs.
 * What is said of jobs goes in as values of keys, as the store has them. */
#ifndef TALLY_TESTS_UNIT_SHARED_WORLD_H
#define TALLY_TESTS_UNIT_SHARED_WORLD_H

#include "agent/cluster/shared.h"
#include "common/owned.h"
#include "square_world.h"

struct cluster {
	struct picture picture;
	struct shared shared;
	uint64_t revision; /* of the last change */
};

static inline void cluster_open(struct cluster *ret)
{
	*ret = (struct cluster){ .revision = 100 };
	square_make(&ret->picture);
}

static inline void cluster_close(struct cluster *c)
{
	shared_close(&c->shared);
	picture_close(&c->picture);
}

static inline struct report *cluster_node(const struct cluster *c, unsigned int node)
{
	return c->picture.report[node];
}

static inline void cluster_put_at(struct cluster *c, const char *key, const char *value,
				  uint64_t revision)
{
	struct why why = { "" };

	if (shared_take(&c->shared, key, value, revision, &why) < 0)
		fail_msg("%s: %s", key, why.text);
}

static inline void cluster_put(struct cluster *c, const char *key, const char *value)
{
	cluster_put_at(c, key, value, ++c->revision);
}

static inline const struct shared_job *cluster_job(const struct cluster *c, const char *name)
{
	const struct shared_job *j = shared_find(&c->shared, name);

	assert_non_null(j);
	return j;
}

/* No two of one birth. */
static inline void cluster_want(struct cluster *c, const char *name, unsigned int workers,
				unsigned int roots, unsigned int which)
{
	const struct wanted_job j = { .tenant = "default",
				      .token = "secret",
				      .id = c->revision,
				      .birth = c->revision,
				      .workers = workers,
				      .window = 128,
				      .payload_bytes = 1408,
				      .tags = true,
				      .roots = roots,
				      .which = which };
	struct wanted_job named = j;
	_cleanup_(freep) char *text = NULL;
	char key[SHARED_KEY_BYTES];

	snprintf(named.name, sizeof(named.name), "%s", name);
	text = wanted_print(&wanted_job_keys, &named);
	snprintf(key, sizeof(key), WANTED_JOBS "%s", name);
	cluster_put(c, key, text);
}

/* Workers who wait: one at each of these nodes, as "013". */
static inline void cluster_wait(struct cluster *c, const char *name, const char *nodes)
{
	for (unsigned int i = 0; nodes[i]; i++) {
		struct wanted_worker w = { .node = { 'n', nodes[i] } };
		_cleanup_(freep) char *text = NULL;
		char key[SHARED_KEY_BYTES], at[32];

		snprintf(at, sizeof(at), "10.0.%c.1:%u", nodes[i], 40000 + i);
		assert_int_equal(address_parse(at, 0, &w.address), 0);
		text = wanted_print(&wanted_worker_keys, &w);
		snprintf(key, sizeof(key), WANTED_WORKERS "%s/n%c/%u", name, nodes[i], i);
		cluster_put(c, key, text);
	}
}

static inline void cluster_wait_end(struct cluster *c, const char *name, const char *nodes)
{
	char key[SHARED_KEY_BYTES];

	for (unsigned int i = 0; nodes[i]; i++) {
		snprintf(key, sizeof(key), WANTED_WORKERS "%s/n%c/%u", name, nodes[i], i);
		cluster_put(c, key, NULL);
	}
}

/* As if the leader had written it: with workers at these nodes. */
static inline void cluster_place_like(struct cluster *c, const char *name, const char *nodes,
				      struct wanted_place place)
{
	_cleanup_(freep) char *text = NULL;
	char key[SHARED_KEY_BYTES], at[32];

	place.birth = cluster_job(c, name)->job.birth;
	snprintf(at, sizeof(at), "10.77.0.%d", place.root[1] - '0' + 1);
	place.address = address(at);
	for (; *nodes; nodes++) {
		snprintf(at, sizeof(at), "10.0.%c.1:%u", *nodes, 40000 + place.workers);
		assert_int_equal(address_parse(at, 0, &place.worker[place.workers++]), 0);
	}
	text = wanted_print(&wanted_place_keys, &place);
	snprintf(key, sizeof(key), WANTED_PLACES "%s", name);
	cluster_put(c, key, text);
}

static inline void cluster_place(struct cluster *c, const char *name, const char *nodes,
				 unsigned int root)
{
	cluster_place_like(c, name, nodes,
			   (struct wanted_place){ .root = { 'n', (char)('0' + root) } });
}

static inline void cluster_refuse(struct cluster *c, const char *name, unsigned int node)
{
	char key[SHARED_KEY_BYTES];

	snprintf(key, sizeof(key), WANTED_REFUSALS "%s/n%u", name, node);
	cluster_put(c, key, "no room");
}

/* What a node reports of a job from now on, which it is the root of. */
static inline struct report_job *cluster_tell(struct cluster *c, const char *name,
					      unsigned int node, bool runs)
{
	struct report *r = cluster_node(c, node);
	const struct wanted_job *j = &cluster_job(c, name)->job;
	struct report_job *of = r->job;

	while (of < r->job + r->jobs && of->id != j->id)
		of++;
	if (of == r->job + r->jobs)
		of = ADD(r->job, r->jobs);
	*of = (struct report_job){ .id = j->id,
				   .runs = runs,
				   .workers = j->workers,
				   .connected = runs ? j->workers : 0,
				   .chunks_per_second = runs ? 100 : 0 };
	snprintf(of->name, sizeof(of->name), "%s", name);
	return of;
}

static inline void cluster_tell_no_more(struct cluster *c, unsigned int node)
{
	cluster_node(c, node)->jobs = 0;
}

/* Its run sums at this node, and at no other one. */
static inline struct report_job *cluster_run(struct cluster *c, const char *name, unsigned int node)
{
	const uint32_t id = cluster_job(c, name)->job.id;

	for (unsigned int i = 0; i < NODES; i++) {
		struct report *r = cluster_node(c, i);

		for (unsigned int k = 0; k < r->jobs; k++)
			if (r->job[k].id == id)
				r->job[k--] = r->job[--r->jobs];
	}
	return cluster_tell(c, name, node, true);
}

#endif
