// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tenants of the cluster, and which nodes hold what they are to have. */
#include <stdio.h>

#include "ctl.h"
#include "show.h"
#include "table.h"

/* "3 of 4 nodes" */
static void cell_held(const json_t *row, const char *key, struct cell *ret)
{
	const json_t *nodes = field(row, "nodes");
	size_t i, held = 0, wanted = json_array_size(nodes);
	json_t *node;

	json_array_foreach(nodes, i, node)
	{
		held += json_is_true(field(node, "held"));
		wanted -= json_is_true(field(node, "apart"));
	}
	if (nodes)
		snprintf(ret->text, sizeof(ret->text), "%zu of %zu nodes", held, wanted);
	else
		snprintf(ret->text, sizeof(ret->text), "-");
	if (held < wanted)
		ret->colour = COLOUR_YELLOW;
}

static void cell_places(const json_t *row, const char *key, struct cell *ret)
{
	if (json_array_size(field(row, key)))
		cell_list(row, key, ret);
	else
		snprintf(ret->text, sizeof(ret->text), "as nodes say");
}

static void node_say(const json_t *tenant, const json_t *node, bool all, FILE *out)
{
	const char *why = field_text(node, "why");

	if (!json_is_true(field(node, "held")) && !json_is_true(field(node, "apart")))
		fprintf(out, "%s is not held at %s, with %.0f slots of %.0f: %s\n",
			field_text(tenant, "name"), field_text(node, "node"),
			field_number(node, "slots"), field_number(tenant, "slots"), why);
	else if (all && json_is_true(field(node, "own")))
		fprintf(out,
			"%s at %s is the node's own, with %.0f slots: its own limits hold there\n",
			field_text(tenant, "name"), field_text(node, "node"),
			field_number(node, "slots"));
}

static void nodes_say(const json_t *tenants, bool all, FILE *out)
{
	json_t *tenant, *node;
	size_t i, k;

	json_array_foreach(tenants, i, tenant) json_array_foreach(field(tenant, "nodes"), k, node)
		node_say(tenant, node, all, out);
}

void show_not_held(const json_t *tenants, FILE *out) { nodes_say(tenants, false, out); }

int show_shared_tenants(const struct ctl *ctl, const json_t *result, FILE *out)
{
	static const struct column columns[] = {
		{ "TENANT", "name", cell_text, TABLE_LEFT },
		{ "SLOTS", "slots", cell_count, TABLE_RIGHT },
		{ "HELD AT", NULL, cell_held, TABLE_LEFT },
		{ "PACKETS", "packets_per_second", cell_rate_limit, TABLE_RIGHT },
		{ "BYTES", "bytes_per_second", cell_bits_limit, TABLE_RIGHT },
		{ "PRIORITY", "priority", cell_number, TABLE_RIGHT },
		{ "JOBS", "jobs", cell_number, TABLE_RIGHT },
		{ "GROUP", "group", cell_text, TABLE_LEFT },
		{ "COMES IN AT", "ingress", cell_places, TABLE_ELASTIC },
	};
	int r;

	if (!json_array_size(result)) {
		fputs("no tenants of the cluster\n", out);
		return 0;
	}
	r = table_print(out, &ctl->style, COLUMNS(columns), result, 0);
	if (r == 0)
		nodes_say(result, true, out);
	return r;
}
