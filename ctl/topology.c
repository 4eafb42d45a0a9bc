// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The picture of the network: two tables, a file that the simulator reads, or SVG. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "show.h"
#include "svg.h"
#include "units.h"

/* --- for the simulator ----------------------------------------------------------------------- */

enum {
	LINE_BYTES = 1000, /* with names of machines; the simulator takes longer ones, to a limit */
};

static void machines_export(const json_t *machines, const char *kind, FILE *out)
{
	const json_t *m;
	size_t i, used = 0;

	json_array_foreach(machines, i, m)
	{
		const char *name = field_text(m, "name");

		if (strcmp(field_text(m, "kind"), kind) != 0)
			continue;
		if (used && used + 1 + strlen(name) > LINE_BYTES) {
			fputc('\n', out);
			used = 0;
		}
		used += fprintf(out, "%s %s", used ? "" : kind, name);
	}
	if (used)
		fputc('\n', out);
}

/* What is not known the simulator fills with what its own options say. */
static void export(const json_t *result, FILE *out)
{
	const json_t *links = field(result, "links"), *ways = field(result, "ways"), *l;
	size_t i;

	fprintf(out, "# cluster %s, as node %s saw it: %zu links\n",
		field_text(result, "cluster.name"), field_text(result, "cluster.node"),
		json_array_size(links));
	machines_export(field(result, "machines"), "node", out);
	machines_export(field(result, "machines"), "switch", out);
	machines_export(field(result, "machines"), "host", out);
	json_array_foreach(links, i, l)
	{
		const double mbps = field_number(l, "rate_mbps");

		fprintf(out, "link %s %s", field_text(l, "from.name"), field_text(l, "to.name"));
		if (mbps > 0)
			fprintf(out, " rate %.0fmbit", mbps);
		fputc('\n', out);
	}
	json_array_foreach(ways, i, l) fprintf(
		out, "way %s %s %s\n", json_string_value(json_array_get(l, 0)),
		json_string_value(json_array_get(l, 1)), json_string_value(json_array_get(l, 2)));
}

/* --- for people ------------------------------------------------------------------------------ */

static void cell_place(const json_t *row, const char *key, struct cell *ret)
{
	const char *name = field_text(field(row, key), "name");
	const char *port = field_text(field(row, key), "port");

	snprintf(ret->text, sizeof(ret->text), "%s%s%s", name, *port ? " " : "", port);
}

/* Bits a second are what links are sold by. */
static void cell_line(const json_t *row, const char *key, struct cell *ret)
{
	const double mbps = field_number(row, key);
	json_t *bytes = json_pack("{sf}", "line", mbps * 125000);

	if (mbps > 0)
		cell_bits(bytes, "line", ret);
	else
		snprintf(ret->text, sizeof(ret->text), "?");
	json_decref(bytes);
}

static double use_of(const json_t *row, const char *key)
{
	const double line = field_number(row, "rate_mbps") * 125000;

	return line > 0 ? 100 * field_number(field(row, key), "bytes_per_second") / line : 0;
}

static void cell_load(const json_t *row, const char *key, struct cell *ret)
{
	cell_bits(field(row, key), "bytes_per_second", ret);
	if (use_of(row, key) >= 90)
		ret->colour = COLOUR_YELLOW;
}

static void cell_soon(const json_t *row, const char *key, struct cell *ret)
{
	cell_bits(field(row, key), "forecast_bytes_per_second", ret);
}

static void cell_node_state(const json_t *row, const char *key, struct cell *ret)
{
	const bool cordoned = json_is_true(field(row, "cordoned"));

	snprintf(ret->text, sizeof(ret->text), "%s", cordoned ? "cordoned" : "ready");
	ret->colour = cordoned ? COLOUR_YELLOW : COLOUR_GREEN;
}

static json_t *nodes_of(const json_t *result)
{
	json_t *nodes = json_array();
	json_t *m;
	size_t i;

	json_array_foreach(field(result, "machines"), i,
			   m) if (!strcmp(field_text(m, "kind"), "node"))
		json_array_append(nodes, m);
	return nodes;
}

void show_cluster(const json_t *cluster, FILE *out)
{
	const json_t *heard = field(cluster, "heard_s");

	fprintf(out, "%s, as node %s of %.0f; %s ", field_text(cluster, "name"),
		field_text(cluster, "node"), field_number(cluster, "nodes"),
		field_text(cluster, "store"));
	if (json_is_number(heard))
		fprintf(out, "heard %.1f s ago", json_number_value(heard));
	else
		fputs("not heard yet", out);
}

void show_cluster_troubles(const json_t *cluster, FILE *out)
{
	const json_t *trouble;
	size_t i;

	fputc('\n', out);
	json_array_foreach(field(cluster, "troubles"), i, trouble)
		fprintf(out, "%s\n", json_string_value(trouble));
	fputc('\n', out);
}

static int links_print(const struct style *style, const json_t *links, FILE *out)
{
	static const struct column columns[] = {
		{ "FROM", "from", cell_place, TABLE_LEFT },
		{ "TO", "to", cell_place, TABLE_LEFT },
		{ "LINE", "rate_mbps", cell_line, TABLE_RIGHT },
		{ "THERE", "from", cell_load, TABLE_RIGHT },
		{ "BACK", "to", cell_load, TABLE_RIGHT },
		{ "THERE IN 5 S", "from", cell_soon, TABLE_RIGHT },
		{ "BACK IN 5 S", "to", cell_soon, TABLE_RIGHT },
	};

	return table_print(out, style, COLUMNS(columns), links, 0);
}

int show_topology(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column nodes[] = {
		{ "NODE", "name", cell_text, TABLE_LEFT },
		{ "STATE", NULL, cell_node_state, TABLE_LEFT },
		{ "ADDRESS", "address", cell_text, TABLE_LEFT },
		{ "SLOTS", "slots", cell_count, TABLE_RIGHT },
		{ "FREE", "slots_free", cell_count, TABLE_RIGHT },
		{ "JOBS", "jobs", cell_count, TABLE_RIGHT },
		{ "RUNNING", "running", cell_count, TABLE_RIGHT },
		{ "VERSION", "version", cell_text, TABLE_LEFT },
	};
	json_t *rows;
	int r;

	if (ctl->value[OPTION_EXPORT]) {
		export(result, out);
		return 0;
	}
	if (ctl->value[OPTION_SVG])
		return svg_print(result, NULL, out, why);
	fputs("cluster ", out);
	show_cluster(field(result, "cluster"), out);
	show_cluster_troubles(field(result, "cluster"), out);
	rows = nodes_of(result);
	r = table_print(out, &ctl->style, COLUMNS(nodes), rows, 0);
	json_decref(rows);
	fputc('\n', out);
	return r < 0 ? r : links_print(&ctl->style, field(result, "links"), out);
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void cell_workers(const json_t *row, const char *key, struct cell *ret)
{
	snprintf(ret->text, sizeof(ret->text), "%.0f", field_number(row, "workers"));
	if (field_number(row, "waiting") > 0)
		snprintf(ret->text, sizeof(ret->text), "%.0f (%.0f wait)",
			 field_number(row, "workers"), field_number(row, "waiting"));
}

/* As far in as it is away from the root. */
static void cell_branch(const json_t *row, const char *key, struct cell *ret)
{
	snprintf(ret->text, sizeof(ret->text), "%*s%s", 2 * (int)field_number(row, "depth"), "",
		 field_text(row, "name"));
}

static void cell_part(const json_t *row, const char *key, struct cell *ret)
{
	const double workers = field_number(row, "workers");

	if (!field_number(row, "depth"))
		snprintf(ret->text, sizeof(ret->text), "root");
	else if (json_is_true(field(row, "sums")))
		snprintf(ret->text, sizeof(ret->text), "sums");
	else if (workers > 0)
		snprintf(ret->text, sizeof(ret->text), "%.0f worker%s", workers,
			 workers > 1 ? "s" : "");
	else
		snprintf(ret->text, sizeof(ret->text), "passes on");
}

/* The cable towards the root; the root has none. */
static void cell_way(const json_t *row, const char *key, struct cell *ret)
{
	const double line = field_number(row, "rate_mbps") * 125000;

	if (!field_number(row, "depth")) {
		snprintf(ret->text, sizeof(ret->text), "-");
		return;
	}
	cell_bits(row, key, ret);
	if (line > 0 && field_number(row, key) >= 0.9 * line)
		ret->colour = COLOUR_YELLOW;
}

static void cell_way_line(const json_t *row, const char *key, struct cell *ret)
{
	if (field_number(row, "depth"))
		cell_line(row, key, ret);
	else
		snprintf(ret->text, sizeof(ret->text), "-");
}

/* What its workers' packets pass on the way to the root, with all that is on these links. */
static int show_tree(const struct ctl *ctl, const json_t *job, FILE *out)
{
	static const struct column columns[] = {
		{ "TREE", "name", cell_branch, TABLE_LEFT },
		{ "PART", NULL, cell_part, TABLE_LEFT },
		{ "UP", "up_bytes_per_second", cell_way, TABLE_RIGHT },
		{ "DOWN", "down_bytes_per_second", cell_way, TABLE_RIGHT },
		{ "LINE", "rate_mbps", cell_way_line, TABLE_RIGHT },
	};
	const json_t *rows = field(job, "tree");

	if (!json_array_size(rows))
		return 0;
	fputc('\n', out);
	return table_print(out, &ctl->style, COLUMNS(columns), rows, 0);
}

static void show_refusals(const json_t *job, FILE *out)
{
	const json_t *refusal;
	size_t i;

	json_array_foreach(field(job, "refusals"), i, refusal)
		fprintf(out, "%s refuses it: %s\n", field_text(refusal, "node"),
			field_text(refusal, "why"));
}

/* Of the one job that was asked for. */
static int show_weighed(const struct ctl *ctl, const json_t *job, FILE *out)
{
	static const struct column columns[] = {
		{ "NODE", "node", cell_text, TABLE_LEFT },
		{ "COST", "total", cell_text, TABLE_RIGHT },
		{ "BYTES", "bytes", cell_text, TABLE_RIGHT },
		{ "FULLEST LINK", "use", cell_text, TABLE_RIGHT },
		{ "TIME", "time", cell_text, TABLE_RIGHT },
	};
	const json_t *rows = field(job, "weighed");

	fprintf(out, "\nnow: %s\n", field_text(job, "outlook"));
	if (*field_text(job, "why"))
		fprintf(out, "when it was placed: %s\n", field_text(job, "why"));
	show_refusals(job, out);
	show_late(job, out);
	if (!json_array_size(rows))
		return 0;
	fputc('\n', out);
	return table_print(out, &ctl->style, COLUMNS(columns), rows, 0);
}

/* The ways that its workers' packets shall take; nothing is said of those that routing has. */
static int show_ways(const struct ctl *ctl, const json_t *job, FILE *out)
{
	static const struct column columns[] = {
		{ "WORKER", "worker", cell_text, TABLE_LEFT },
		{ "WAY", "nodes", cell_list, TABLE_LEFT },
	};
	const json_t *rows = field(job, "ways.ways");
	const char *trouble = field_text(job, "ways.trouble");
	struct cell sums = { .text = "" };

	if (!rows)
		return 0;
	cell_list(job, "ways.sums", &sums);
	fprintf(out, "\nways: %s\nsummed on the way at: %s\n", field_text(job, "ways.why"),
		sums.text);
	if (*trouble)
		fprintf(out, "packets take the ways of routing: %s\n", trouble);
	fputc('\n', out);
	return table_print(out, &ctl->style, COLUMNS(columns), rows, 0);
}

/* Of a job with one root there is nothing to say. */
static void cell_share(const json_t *row, const char *key, struct cell *ret)
{
	if (field_number(row, "roots") > 1 && field_number(row, "share") > 0)
		units_percent(100 * field_number(row, "share"), ret->text, sizeof(ret->text));
	else
		snprintf(ret->text, sizeof(ret->text), "-");
}

static int shared_print(const struct style *style, const json_t *result, FILE *out)
{
	static const struct column columns[] = {
		{ "JOB", "name", cell_text, TABLE_LEFT },
		{ "TENANT", "tenant", cell_text, TABLE_LEFT },
		{ "STATE", "state", cell_text, TABLE_LEFT },
		{ "WORKERS", NULL, cell_workers, TABLE_LEFT },
		{ "ROOT", "root", cell_text, TABLE_LEFT },
		{ "SHARE", NULL, cell_share, TABLE_RIGHT },
		{ "ADDRESS", "address", cell_text, TABLE_LEFT },
		{ "SUMS", "chunks_per_second", cell_rate, TABLE_RIGHT },
		{ "REFUSED BY", "refused", cell_list, TABLE_ELASTIC },
	};
	const char *leader = field_text(result, "leader");

	fputs("cluster ", out);
	show_cluster(field(result, "cluster"), out);
	fprintf(out, "; leader %s", *leader ? leader : "not known");
	show_cluster_troubles(field(result, "cluster"), out);
	return table_print(out, style, COLUMNS(columns), field(result, "jobs"), 0);
}

static int show_shared(const struct ctl *ctl, const json_t *result, FILE *out)
{
	const json_t *job = json_array_get(field(result, "jobs"), 0);
	int r = shared_print(&ctl->style, result, out);

	if (r == 0)
		show_not_held(field(result, "tenants"), out);
	if (r == 0 && ctl->count)
		r = show_weighed(ctl, job, out);
	if (r == 0 && ctl->count)
		r = show_ways(ctl, job, out);
	return r == 0 && ctl->count ? show_tree(ctl, job, out) : r;
}

/* The job's tree on the network, which is another request. */
static int draw_shared(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	_cleanup_(json_decrefp) json_t *topology = NULL;
	int r = ctl_ask(ctl, json_pack("{ss}", "do", "topology"), &topology, why);

	return r < 0 ? r : svg_print(topology, json_array_get(field(result, "jobs"), 0), out, why);
}

int cluster(const struct ctl *ctl, struct why *why)
{
	_cleanup_(json_decrefp) json_t *result = NULL;
	int r = ctl_ask(ctl, request_make(ctl), &result, why);

	if (r < 0)
		return r;
	if (ctl->json) {
		ctl_dump(result);
		return 0;
	}
	return ctl->value[OPTION_SVG] ? draw_shared(ctl, result, stdout, why)
				      : show_shared(ctl, result, stdout);
}

/* --- top ------------------------------------------------------------------------------------- */

enum {
	FULLEST = 12, /* links of a frame */
};

static double busier_of(const json_t *link)
{
	const double there = use_of(link, "from"), back = use_of(link, "to");

	return there > back ? there : back;
}

static int by_use(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	const double of_x = busier_of(x), of_y = busier_of(y);

	return of_x > of_y ? -1 : of_x < of_y;
}

static json_t *fullest(const json_t *links)
{
	const size_t count = json_array_size(links);
	json_t **order = calloc(count + 1, sizeof(*order));
	json_t *rows = json_array();

	for (size_t i = 0; order && i < count; i++)
		order[i] = json_array_get(links, i);
	if (order && count)
		qsort(order, count, sizeof(*order), by_use);
	for (size_t i = 0; order && i < count && i < FULLEST; i++)
		json_array_append(rows, order[i]);
	free(order);
	return rows;
}

int show_cluster_frame(const struct ctl *ctl, const struct style *style, const json_t *frame,
		       FILE *out, struct why *why)
{
	json_t *rows = fullest(field(frame, "topology.links"));
	int r = shared_print(style, field(frame, "jobs"), out);

	if (r == 0) {
		fprintf(out, "\nthe fullest of %zu links:\n\n",
			json_array_size(field(frame, "topology.links")));
		r = links_print(style, rows, out);
	}
	json_decref(rows);
	return r;
}
