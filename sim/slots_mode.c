// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "slots_mode.h"

#include <err.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"

enum {
	PAYLOAD_BYTES = 1408, /* of a full packet at an MTU of 1,500 */
	HEADER_BYTES = 106, /* Ethernet, IPv4, UDP, Tally */
};

struct mode {
	const struct sim_options *o;
	const struct workload *w;
	FILE *to;
	double tick_s; /* of a packet on a worker's link */
	struct slots_job *job; /* [jobs] */
	struct slots_options run;
	unsigned int written; /* results, of JSON */
	bool failed; /* a policy */
};

/* --- from seconds and bytes to ticks and chunks ---------------------------------------------- */

static uint64_t ticks(const struct mode *m, double seconds)
{
	return (uint64_t)llround(seconds / m->tick_s);
}

/* The slowest link of a worker to the network: the links of all are taken to be like that. */
static double slowest(const struct topology *t, const struct workload *w)
{
	const struct graph *g = t->graph;
	double rate = INFINITY;

	for (unsigned int j = 0; j < w->jobs; j++)
		for (unsigned int i = 0; i < w->job[j].workers; i++) {
			uint32_t machine = w->job[j].worker[i];

			for (uint32_t l = g->leaving_at[machine]; l < g->leaving_at[machine + 1];
			     l++)
				rate = fmin(rate, g->link[g->leaving[l]].capacity);
		}
	return rate;
}

static int take_job(struct mode *m, unsigned int i, struct why *why)
{
	const struct workload_job *j = &m->w->job[i];
	double chunks = ceil(j->bytes / PAYLOAD_BYTES);

	if (j->workers > SLOTS_WORKERS_MAX)
		return why_say(why, -EINVAL, "job %s: %u workers; with slots a job has at most %d",
			       j->name, j->workers, SLOTS_WORKERS_MAX);
	if (chunks * j->iterations > UINT32_MAX || j->compute_s / m->tick_s > UINT32_MAX)
		return why_say(why, -EINVAL,
			       "job %s: all its iterations have %.3g packets, and compute %.3g "
			       "packets' times each; with slots both may be 4.29e9: take fewer "
			       "iterations or bytes",
			       j->name, chunks * j->iterations, j->compute_s / m->tick_s);
	m->job[i] = (struct slots_job){ .workers = j->workers,
					.iterations = j->iterations,
					.chunks = (uint32_t)chunks,
					.compute = (uint32_t)ticks(m, j->compute_s),
					.arrives = ticks(m, j->arrives_s) };
	return 0;
}

static int prepare(struct mode *m, const struct topology *t, struct why *why)
{
	const struct sim_options *o = m->o;
	uint64_t hop, spread;
	int r = 0;

	if (m->w->failures)
		return why_say(why, -EINVAL,
			       "the workload has failures, which slots knows nothing of");
	if (m->w->jobs > SLOTS_JOBS_MAX)
		return why_say(why, -EINVAL, "the workload has %u jobs; a node has at most %d",
			       m->w->jobs, SLOTS_JOBS_MAX);
	m->tick_s = (PAYLOAD_BYTES + HEADER_BYTES) / slowest(t, m->w);
	hop = ticks(m, o->round_trip_us / 4e6);
	spread = ticks(m, o->spread_us / 1e6);
	if (hop > UINT32_MAX / 8 || spread > UINT32_MAX / 8)
		return why_say(why, -EINVAL,
			       "--round-trip, --spread: a packet takes %.3g us; at "
			       "most 500 million packets' times",
			       m->tick_s * 1e6);
	m->job = calloc(m->w->jobs + 1, sizeof(*m->job));
	if (!m->job)
		return -ENOMEM;
	for (unsigned int i = 0; i < m->w->jobs && r == 0; i++)
		r = take_job(m, i, why);
	m->run = (struct slots_options){ .job = m->job,
					 .jobs = m->w->jobs,
					 .window = o->window,
					 .hop = hop ? (uint32_t)hop : 1,
					 .spread = (uint32_t)spread,
					 .seed = o->seed };
	return r;
}

/* --- what is printed ------------------------------------------------------------------------- */

static double completion_s(const struct mode *m, const struct slots_result *r, unsigned int i)
{
	return (double)(r->ended[i] - m->job[i].arrives) * m->tick_s;
}

static void print_csv(const struct mode *m, const struct slots_result *r)
{
	for (unsigned int i = 0; i < m->w->jobs; i++)
		fprintf(m->to, "%s,%u,%s,%u,%.9g,%.9g,%.9g\n", m->run.policy->name, m->run.slots,
			m->w->job[i].name, m->job[i].workers, m->w->job[i].arrives_s,
			(double)r->ended[i] * m->tick_s, completion_s(m, r, i));
}

static void print_json(struct mode *m, const struct slots_result *r)
{
	fprintf(m->to,
		"%s\n{\"policy\":\"%s\",\"slots\":%u,\"completion_mean_s\":%.17g,\"to_roots\":%.17g,"
		"\"swapped\":%" PRIu64 ",\"refused\":%" PRIu64 ",\"jobs\":[",
		m->written++ ? "," : "", m->run.policy->name, m->run.slots, r->mean * m->tick_s,
		r->to_roots, r->swapped, r->refused);
	for (unsigned int i = 0; i < m->w->jobs; i++)
		fprintf(m->to,
			"%s{\"job\":\"%s\",\"workers\":%u,\"arrives_s\":%.17g,\"ended_s\":%.17g,"
			"\"completion_s\":%.17g}",
			i ? "," : "", m->w->job[i].name, m->job[i].workers, m->w->job[i].arrives_s,
			(double)r->ended[i] * m->tick_s, completion_s(m, r, i));
	fputs("]}", m->to);
}

static void print_text(const struct mode *m, const struct slots_result *r)
{
	char text[32];

	snprintf(text, sizeof(text), "%.4g s (%.2f)", r->mean * m->tick_s, r->to_roots);
	fprintf(m->to, " %20s", text);
}

static void print_head(const struct mode *m)
{
	if (m->o->csv) {
		fputs("policy,slots,job,workers,arrives_s,ended_s,completion_s\n", m->to);
	} else if (m->o->json) {
		fprintf(m->to,
			"{\"seed\":%" PRIu64 ",\"packet_s\":%.17g,\"round_trip_packets\":%u,"
			"\"window\":%u,\"results\":[",
			m->o->seed, m->tick_s, 4 * m->run.hop, m->run.window);
	} else {
		fprintf(m->to,
			"%u job%s the slots of one node; a packet takes %.3g us, a round trip "
			"%u packets; seed %" PRIu64 "\nmean completion time, and packets to the "
			"root for each chunk\n\n%-10s",
			m->w->jobs, m->w->jobs == 1 ? " has" : "s share", m->tick_s * 1e6,
			4 * m->run.hop, m->o->seed, "slots");
		for (unsigned int i = 0; i < m->o->sizes; i++)
			fprintf(m->to, " %20u", m->o->size[i]);
		fputc('\n', m->to);
	}
}

/* --- running --------------------------------------------------------------------------------- */

static int run(struct mode *m)
{
	struct why why = { "" };
	struct slots_result result;
	int r = slots_run(&m->run, &result, &why);

	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		warnx("%s", *why.text ? why.text : strerror(-r));
		m->failed = true;
		if (!m->o->json && !m->o->csv)
			fprintf(m->to, " %20s", "-");
		return 0;
	}
	if (m->o->csv)
		print_csv(m, &result);
	else if (m->o->json)
		print_json(m, &result);
	else
		print_text(m, &result);
	fflush(m->to);
	free(result.ended);
	return 0;
}

static void mode_close(struct mode *m) { free(m->job); }

int slots_mode(const struct sim_options *o, const struct topology *t, const struct workload *w,
	       FILE *to, struct why *why)
{
	_cleanup_(mode_close) struct mode m = { .o = o, .w = w, .to = to };
	int r = prepare(&m, t, why);

	if (r < 0)
		return r;
	print_head(&m);
	for (unsigned int p = 0; p < o->slots_policies && r == 0; p++) {
		m.run.policy = o->slots_policy[p];
		if (!o->json && !o->csv)
			fprintf(to, "%-10s", m.run.policy->name);
		for (unsigned int i = 0; i < o->sizes && r == 0; i++) {
			m.run.slots = o->size[i];
			r = run(&m);
		}
		if (!o->json && !o->csv)
			fputc('\n', to);
	}
	if (o->json)
		fputs("]}\n", to);
	return r < 0 ? r : m.failed;
}
