// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs and failures by chance. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "models.h"
#include "workload_private.h"

/* The array, with room for one more element of `bytes`; or NULL. */
static void *with_room(void *array, size_t count, size_t *room, size_t bytes)
{
	size_t larger = *room ? 2 * *room : 64;

	if (count < *room)
		return array;
	array = reallocarray(array, larger, bytes);
	if (array)
		*room = larger;
	return array;
}

static double bytes_of(const struct workload_line *line, uint64_t *random)
{
	const struct workload_mix *mix = &line->mix;
	double all = 0, at;
	unsigned int i = 0;

	if (!mix->models)
		return draw_real(&line->bytes, random);
	for (unsigned int m = 0; m < mix->models; m++)
		all += mix->weight[m];
	for (at = draw_unit(random) * all - mix->weight[0]; at > 0 && i + 1 < mix->models;)
		at -= mix->weight[++i];
	return MODELS[mix->model[i]].bytes;
}

static bool is_among(const uint32_t *worker, unsigned int workers, uint32_t machine)
{
	for (unsigned int w = 0; w < workers; w++)
		if (worker[w] == machine)
			return true;
	return false;
}

static uint32_t other_host(const struct topology *t, const uint32_t *worker, unsigned int workers,
			   uint64_t *random)
{
	uint32_t host;

	do
		host = t->host[draw_below(random, t->hosts)];
	while (is_among(worker, workers, host));
	return host;
}

/* Workers and root. A host comes at most once. */
static int draw_machines(const struct topology *t, const struct workload_line *line,
			 uint64_t *random, struct workload_job *job)
{
	unsigned int workers = line->named ? line->named : draw_whole(&line->workers, random);
	uint64_t first;

	if (t->hosts == 0 || workers + line->any_root > t->hosts)
		return -ENOENT;
	first = draw_below(random, t->hosts);
	job->worker = calloc(workers + 1, sizeof(*job->worker));
	if (!job->worker)
		return -ENOMEM;
	for (; job->workers < workers; job->workers++) {
		unsigned int w = job->workers;

		if (line->named)
			job->worker[w] = line->worker[w];
		else if (line->hosts == HOSTS_NEAR)
			job->worker[w] = t->host[(first + w) % t->hosts];
		else
			job->worker[w] = other_host(t, job->worker, w, random);
	}
	job->root = line->any_root ? other_host(t, job->worker, workers, random) : line->root;
	return 0;
}

static int draw_job(struct workload_reader *r, const struct workload_line *line, uint64_t *random,
		    struct workload_job *job)
{
	int error = draw_machines(r->topology, line, random, job);

	if (error < 0)
		return error;
	job->bytes = bytes_of(line, random);
	job->compute_s = draw_real(&line->compute, random);
	job->iterations = (uint32_t)draw_whole(&line->iterations, random);
	job->slots = (uint32_t)draw_whole(&line->slots, random);
	job->weight = line->weight;
	return 0;
}

void workload_job_name(const struct workload_line *line, bool is_one, uint32_t i,
		       char ret[WORKLOAD_NAME_BYTES])
{
	snprintf(ret, WORKLOAD_NAME_BYTES, is_one ? "%.31s" : "%.25s.%u", line->name, i);
}

int workload_make_jobs(struct workload_reader *r, const struct workload_line *line, bool is_one,
		       uint64_t *random)
{
	struct workload *w = r->workload;
	double now_s = line->arrives_s;
	int error;

	for (uint32_t i = 0; i < line->count; i++) {
		struct workload_job job = { .tenant = is_one ? line->tenant : i % line->tenants };
		void *array = with_room(w->job, w->jobs, &r->job_room, sizeof(*w->job));

		if (!array)
			return -ENOMEM;
		w->job = array;
		if (w->jobs == WORKLOAD_JOBS_MAX)
			return -E2BIG;
		if (line->every_s > 0)
			now_s += draw_gap(line->every_s, random);
		job.arrives_s = now_s;
		workload_job_name(line, is_one, i, job.name);
		error = draw_job(r, line, random, &job);
		if (error < 0) {
			free(job.worker);
			return error;
		}
		job.number = w->jobs;
		w->job[w->jobs++] = job;
	}
	return 0;
}

int workload_add_failure(struct workload_reader *r, const struct workload_failure *f)
{
	struct workload *w = r->workload;
	void *array = with_room(w->failure, w->failures, &r->failure_room, sizeof(*w->failure));

	if (!array)
		return -ENOMEM;
	w->failure = array;
	if (w->failures == WORKLOAD_FAILURES_MAX)
		return -E2BIG;
	w->failure[w->failures] = *f;
	w->failure[w->failures].number = w->failures;
	w->failures++;
	return 0;
}

static uint32_t any_node(const struct graph *g, uint64_t *random)
{
	uint32_t node = GRAPH_NONE;
	uint64_t n = 0;

	for (uint32_t m = 0; m < g->machines; m++)
		if (g->machine[m].kind == GRAPH_NODE && draw_below(random, ++n) == 0)
			node = m;
	return node;
}

int workload_make_failures(struct workload_reader *r, const struct workload_failure_line *line,
			   bool of_links, uint64_t *random)
{
	const struct graph *g = r->topology->graph;
	double at_s = draw_gap(line->every_s, random);
	int error = 0;

	for (; at_s < line->until_s && error == 0; at_s += draw_gap(line->every_s, random)) {
		struct workload_failure f = { .machine = GRAPH_NONE, .link = GRAPH_NONE };

		f.at_s = at_s;
		f.for_s = draw_real(&line->for_s, random);
		if (of_links && g->links)
			f.link = (uint32_t)draw_below(random, g->links / 2) * 2;
		else if (!of_links)
			f.machine = any_node(g, random);
		if (f.link != GRAPH_NONE || f.machine != GRAPH_NONE)
			error = workload_add_failure(r, &f);
	}
	return error;
}
