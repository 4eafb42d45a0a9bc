// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

const char *report_link(const struct topology *t, uint32_t link, char ret[REPORT_NAME_BYTES])
{
	if (link == GRAPH_NONE)
		snprintf(ret, REPORT_NAME_BYTES, "-");
	else
		snprintf(ret, REPORT_NAME_BYTES, "%s > %s", t->name[t->graph->link[link].from],
			 t->name[t->graph->link[link].to]);
	return ret;
}

/* --- figures --------------------------------------------------------------------------------- */

enum unit {
	SECONDS,
	BYTES,
	SHARE, /* 0 to 1; people read percent */
	FACTOR,
	COUNT,
};

/* A line is a figure: what people read, its key in JSON, and where it stands. */
static const struct figure {
	const char *words, *key;
	enum unit unit;
	size_t offset;
} figures[] = {
#define FIGURE(member) offsetof(struct play_figures, member)
	{ "completion time, mean", "completion_mean_s", SECONDS, FIGURE(mean_s) },
	{ "  median", "completion_median_s", SECONDS, FIGURE(median_s) },
	{ "  95 % are not above", "completion_p95_s", SECONDS, FIGURE(p95_s) },
	{ "slowdown, mean", "slowdown_mean", FACTOR, FIGURE(slowdown) },
	{ "fairness (Jain)", "fairness", FACTOR, FIGURE(fairness) },
	{ "the last job ends", "ended_s", SECONDS, FIGURE(ended_s) },
	{ "bytes on links", "link_bytes", BYTES, FIGURE(bytes) },
	{ "use of the busiest link", "busiest_use", SHARE, FIGURE(busiest) },
	{ "nodes that summed", "nodes", COUNT, FIGURE(nodes) },
	{ "jobs whose tree had no room", "jobs_without", COUNT, FIGURE(without) },
	{ "jobs that got another tree", "jobs_moved", COUNT, FIGURE(moved) },
}, of_agents[] = {
	{ "nodes of trees: all slots", "agents_whole", COUNT, FIGURE(whole) },
	{ "  a smaller window", "agents_smaller", COUNT, FIGURE(smaller) },
	{ "  borrowed slots", "agents_borrowed", COUNT, FIGURE(borrowed) },
	{ "  none", "agents_none", COUNT, FIGURE(none) },
	{ "jobs that agents refused", "agents_refused", COUNT, FIGURE(refused) },
	{ "rings moved to make room", "rings_moved", COUNT, FIGURE(rings_moved) },
	{ "runs with slots on loan", "loans", COUNT, FIGURE(loans) },
	{ "  that had to give them back", "loans_recalled", COUNT, FIGURE(recalled) },
	{ "runs that got slots later", "runs_refilled", COUNT, FIGURE(refilled) },
#undef FIGURE
};

enum {
	FIGURES = sizeof(figures) / sizeof(*figures),
	OF_AGENTS = sizeof(of_agents) / sizeof(*of_agents),
};

static double value_of(const struct figure *f, const struct play_figures *from)
{
	double value;

	memcpy(&value, (const char *)from + f->offset, sizeof(value));
	return value;
}

static void print_bytes(double bytes, char *text, size_t size)
{
	static const char units[] = " kMGTPE";
	int u = 0;

	for (; bytes >= 1000 && units[u + 1]; u++)
		bytes /= 1000;
	snprintf(text, size, "%.4g %.*sB", bytes, u > 0, units + u);
}

static const char *print_value(enum unit unit, double value, char text[24])
{
	if (unit == BYTES)
		print_bytes(value, text, 24);
	else if (unit == SHARE)
		snprintf(text, 24, "%.1f %%", 100 * value);
	else if (unit == COUNT)
		snprintf(text, 24, "%.0f", value);
	else
		snprintf(text, 24, unit == SECONDS ? "%.3f s" : "%.4f", value);
	return text;
}

/* --- for people ------------------------------------------------------------------------------ */

static void print_jobs(const struct report *r, FILE *to)
{
	char text[24];

	fprintf(to, "\n%-32s %7s %12s", "job", "workers", "arrives");
	for (unsigned int p = 0; p < r->results; p++)
		fprintf(to, " %18s", r->result[p]->policy->name);
	fputc('\n', to);
	for (unsigned int i = 0; i < r->jobs->jobs; i++) {
		const struct workload_job *j = &r->jobs->job[i];

		fprintf(to, "%-32s %7u %12s", j->name, j->workers,
			print_value(SECONDS, j->arrives_s, text));
		for (unsigned int p = 0; p < r->results; p++)
			fprintf(to, " %18s",
				print_value(SECONDS, r->result[p]->job[i].ended_s - j->arrives_s,
					    text));
		fputc('\n', to);
	}
}

static unsigned int count_of(const struct topology *t, enum graph_kind kind)
{
	unsigned int n = 0;

	for (uint32_t m = 0; m < t->graph->machines; m++)
		n += t->graph->machine[m].kind == kind;
	return n;
}

static void print_figures(const struct report *r, const struct figure *f, unsigned int count,
			  FILE *to)
{
	char text[24];

	for (const struct figure *end = f + count; f < end; f++) {
		fprintf(to, "%-30s", f->words);
		for (unsigned int p = 0; p < r->results; p++)
			fprintf(to, " %18s",
				print_value(f->unit, value_of(f, &r->figures[p]), text));
		fputc('\n', to);
	}
}

static const char *ending(unsigned int count) { return count == 1 ? "" : "s"; }

void report_text(const struct report *r, FILE *to)
{
	const unsigned int hosts = r->topology->hosts, cables = r->topology->graph->links / 2;
	const unsigned int nodes = count_of(r->topology, GRAPH_NODE), jobs = r->jobs->jobs;
	char link[REPORT_NAME_BYTES];

	fprintf(to, "network   %s: %u host%s, %u node%s, %u cable%s\n", r->network, hosts,
		ending(hosts), nodes, ending(nodes), cables, ending(cables));
	fprintf(to, "workload  %s: %u job%s, %u failure%s; seed %" PRIu64 "\n\n%-30s", r->workload,
		jobs, ending(jobs), r->jobs->failures, ending(r->jobs->failures), r->seed, "");
	for (unsigned int p = 0; p < r->results; p++)
		fprintf(to, " %18s", r->result[p]->policy->name);
	fputc('\n', to);
	print_figures(r, figures, FIGURES, to);
	fprintf(to, "%-30s", "the busiest link");
	for (unsigned int p = 0; p < r->results; p++)
		fprintf(to, " %18s", report_link(r->topology, r->figures[p].busiest_link, link));
	fputc('\n', to);
	if (r->agents)
		print_figures(r, of_agents, OF_AGENTS, to);
	for (unsigned int p = 0; p < r->results; p++)
		if (*r->result[p]->agents.refusal.text)
			fprintf(to, "%s, the first refusal: %s\n", r->result[p]->policy->name,
				r->result[p]->agents.refusal.text);
	if (r->jobs->jobs <= REPORT_JOBS_MAX)
		print_jobs(r, to);
	else
		fprintf(to, "\n--json and --csv have each of the %u jobs.\n", r->jobs->jobs);
}

/* --- for programs ---------------------------------------------------------------------------- */

/* Names are letters, digits, and what needs no escape; paths may have anything. */
static void json_text(const char *text, FILE *to)
{
	fputc('"', to);
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			fprintf(to, "\\%c", c);
		else if (c < 0x20)
			fprintf(to, "\\u%04x", c);
		else
			fputc(c, to);
	}
	fputc('"', to);
}

static void json_nodes(const struct topology *t, const struct place_tree *tree, FILE *to)
{
	fputs("[", to);
	for (unsigned int n = 0; n < tree->nodes; n++) {
		fputs(n ? "," : "", to);
		json_text(t->name[tree->node[n].machine], to);
	}
	fputs("]", to);
}

static void json_job(const struct report *r, const struct play_result *result, unsigned int i,
		     FILE *to)
{
	const struct workload_job *j = &r->jobs->job[i];
	const struct play_job *p = &result->job[i];

	fprintf(to,
		"{\"job\":\"%s\",\"workers\":%u,\"bytes\":%.17g,\"iterations\":%u,\"tenant\":%u,"
		"\"arrives_s\":%.17g,\"ended_s\":%.17g,\"completion_s\":%.17g,"
		"\"communicated_s\":%.17g,\"ideal_s\":%.17g,\"links\":%.17g,\"moved\":%u,"
		"\"without\":%s,\"nodes\":",
		j->name, j->workers, j->bytes, j->iterations, j->tenant, j->arrives_s, p->ended_s,
		p->ended_s - j->arrives_s, p->communicated_s, p->ideal_s, p->links, p->moved,
		p->without ? "true" : "false");
	json_nodes(r->topology, &p->tree, to);
	fputs("}", to);
}

static void json_links(const struct report *r, const struct play_result *result, FILE *to)
{
	const struct topology *t = r->topology;

	for (uint32_t l = 0; l < t->graph->links; l++) {
		fprintf(to, "%s\n{\"from\":", l ? "," : "");
		json_text(t->name[t->graph->link[l].from], to);
		fputs(",\"to\":", to);
		json_text(t->name[t->graph->link[l].to], to);
		fprintf(to, ",\"capacity\":%.17g,\"bytes\":%.17g}", t->graph->link[l].capacity,
			result->link_bytes[l]);
	}
}

static void json_policy(const struct report *r, unsigned int p, FILE *to)
{
	const struct play_result *result = r->result[p];

	fprintf(to, "{\"policy\":\"%s\",\"events\":%" PRIu64, result->policy->name, result->events);
	for (const struct figure *f = figures; f < figures + FIGURES; f++)
		fprintf(to, ",\"%s\":%.17g", f->key, value_of(f, &r->figures[p]));
	for (const struct figure *f = of_agents; r->agents && f < of_agents + OF_AGENTS; f++)
		fprintf(to, ",\"%s\":%.17g", f->key, value_of(f, &r->figures[p]));
	fputs(",\n\"jobs\":[", to);
	for (unsigned int i = 0; i < r->jobs->jobs; i++) {
		fputs(i ? ",\n" : "\n", to);
		json_job(r, result, i, to);
	}
	fputs("],\n\"links\":[", to);
	json_links(r, result, to);
	fputs("]}", to);
}

void report_json(const struct report *r, FILE *to)
{
	fputs("{\"network\":", to);
	json_text(r->network, to);
	fputs(",\"workload\":", to);
	json_text(r->workload, to);
	fprintf(to, ",\"seed\":%" PRIu64 ",\"hosts\":%u,\"failures\":%u,\"policies\":[\n", r->seed,
		r->topology->hosts, r->jobs->failures);
	for (unsigned int p = 0; p < r->results; p++) {
		fputs(p ? ",\n" : "", to);
		json_policy(r, p, to);
	}
	fputs("]}\n", to);
}

void report_csv(const struct report *r, FILE *to)
{
	fputs("policy,job,tenant,workers,bytes,iterations,arrives_s,ended_s,completion_s,"
	      "communicated_s,ideal_s,links,nodes,moved\n",
	      to);
	for (unsigned int p = 0; p < r->results; p++) {
		for (unsigned int i = 0; i < r->jobs->jobs; i++) {
			const struct workload_job *j = &r->jobs->job[i];
			const struct play_job *job = &r->result[p]->job[i];

			fprintf(to, "%s,%s,%u,%u,%.17g,%u,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%u,%u\n",
				r->result[p]->policy->name, j->name, j->tenant, j->workers,
				j->bytes, j->iterations, j->arrives_s, job->ended_s,
				job->ended_s - j->arrives_s, job->communicated_s, job->ideal_s,
				job->links, job->tree.nodes, job->moved);
		}
	}
}

/* --- why a job lies where it lies ------------------------------------------------------------- */

static void explain_tree(const struct topology *t, const struct place_tree *tree, FILE *to)
{
	if (!tree->nodes)
		fputs("none", to);
	for (unsigned int n = 0; n < tree->nodes; n++) {
		fprintf(to, "%s%s", n ? " " : "", t->name[tree->node[n].machine]);
		if (tree->node[n].parent != GRAPH_NONE)
			fprintf(to, "<%s", t->name[tree->node[tree->node[n].parent].machine]);
	}
	fputc('\n', to);
}

static void explain_candidate(const struct topology *t, const struct place_candidate *c, FILE *to)
{
	fprintf(to, "%c %10.4f ", c->chosen ? '*' : ' ', c->cost.total);
#define PLACE_TERM(name) fprintf(to, " %9.4f", c->cost.part.name);
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
	fprintf(to, " %10.4f %9.3f  ", c->job.iteration_s, c->job.slowdown);
	explain_tree(t, &c->tree, to);
}

void report_explain(const struct report *r, uint32_t job, FILE *to)
{
	for (unsigned int p = 0; p < r->results; p++) {
		const struct play_result *result = r->result[p];
		const struct play_explained *e = result->explained;

		if (!e)
			continue;
		fprintf(to,
			"\njob %s under %s, at %.3f s, beside %u other job%s: what each tree would cost\n"
			"%12s ",
			r->jobs->job[job].name, result->policy->name, e->at_s, e->beside,
			ending(e->beside), "cost =");
#define PLACE_TERM(name) fprintf(to, " %9s", "+ " #name);
		PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
		fprintf(to, " %10s %9s  tree\n", "iteration", "slowdown");
		for (unsigned int c = 0; c < e->candidates; c++)
			explain_candidate(r->topology, &e->candidate[c], to);
		fprintf(to,
			"* is the tree that it got: %s %s (it looks at: %s). Terms are of all jobs, "
			"by weight; the job's own iteration is in seconds.\n",
			result->policy->name, result->policy->what, result->policy->knows);
	}
}
