// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <tally/outcome.h>

#include "show.h"
#include "units.h"

enum {
	KEY_COLUMNS = 11, /* of "tenants    3" */
	BAR_COLUMNS_MAX = 24,
};

/* All rows, or in place of the table that there are none. */
static int rows_show(const struct ctl *ctl, FILE *out, const struct column *columns, size_t count,
		     const json_t *rows, const char *none)
{
	if (json_array_size(rows))
		return table_print(out, &ctl->style, columns, count, rows, 0);
	fprintf(out, "%s\n", none);
	return 0;
}

/* --- status ---------------------------------------------------------------------------------- */

static void key_write(const struct ctl *ctl, const char *key, FILE *out)
{
	fprintf(out, "%s%-*s%s", style_begin(&ctl->style, COLOUR_DIM), KEY_COLUMNS, key,
		style_end(&ctl->style, COLOUR_DIM));
}

void show_slots(FILE *out, const struct style *style, const json_t *result, unsigned int columns)
{
	double total = field_number(result, "slots.total"),
	       used = field_number(result, "slots.used");
	struct cell of = { 0 }, in_use = { 0 }, reserved = { 0 }, lent = { 0 };
	char bar[BAR_COLUMNS_MAX * 4];

	cell_count(result, "slots.total", &of);
	cell_count(result, "slots.used", &in_use);
	cell_count(result, "slots.reserved", &reserved);
	cell_count(result, "slots.lent", &lent);
	style_bar(style, total > 0 ? used / total : 0, columns, bar, sizeof(bar));
	fprintf(out, "%s%s%s %s of %s in use, %s reserved", style_begin(style, COLOUR_GREEN), bar,
		style_end(style, COLOUR_GREEN), in_use.text, of.text, reserved.text);
	if (field_number(result, "slots.lent") > 0)
		fprintf(out, ", %s on loan", lent.text);
}

static void cell_mode(const json_t *row, const char *key, struct cell *ret)
{
	const char *mode = field_text(row, key);

	cell_text(row, key, ret);
	ret->colour = !strcmp(mode, "native") ? COLOUR_GREEN
		      : !strcmp(mode, "gone") ? COLOUR_RED
					      : COLOUR_YELLOW;
}

/* What a user should know of a port. */
static void cell_port_remark(const json_t *row, const char *key, struct cell *ret)
{
	const char *reason = field_text(row, "why");
	double beside = field_number(row, "beside");

	if (json_is_true(field(row, "down"))) {
		*ret = (struct cell){ "the link is down, or has no carrier", COLOUR_RED };
		return;
	}
	if (beside > 0)
		snprintf(ret->text, sizeof(ret->text), "beside XDP program %.0f%s%s", beside,
			 *reason ? "; " : "", reason);
	else
		snprintf(ret->text, sizeof(ret->text), "%s", reason);
}

static void cell_runs(const json_t *row, const char *key, struct cell *ret)
{
	double software = field_number(row, "runs_in_software");
	double borrowing = field_number(row, "runs_borrowing");
	double inner = field_number(row, "runs_inner");
	char text[128] = "";
	size_t used = 0;

	if (software > 0)
		used += snprintf(text, sizeof(text), ", %.0f summed in software, for lack of slots",
				 software);
	if (borrowing > 0)
		used += snprintf(text + used, sizeof(text) - used, ", %.0f in borrowed slots",
				 borrowing);
	if (inner > 0)
		snprintf(text + used, sizeof(text) - used, ", %.0f as an inner node", inner);
	snprintf(ret->text, sizeof(ret->text), "%.0f%s%s", field_number(row, "runs"),
		 json_is_true(field(row, "cordoned")) ? ", cordoned: no other one begins" : "",
		 text);
}

static void trouble_write(const struct ctl *ctl, const char *what, const char *text, FILE *out)
{
	fprintf(out, "%s%s%s%s\n\n", style_begin(&ctl->style, COLOUR_RED), what, text ? text : "",
		style_end(&ctl->style, COLOUR_RED));
}

int show_status(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column lines[] = {
		{ "tenants", "tenants", cell_number, TABLE_LEFT },
		{ "jobs", "jobs", cell_number, TABLE_LEFT },
		{ "runs", NULL, cell_runs, TABLE_LEFT },
		{ "services", "services", cell_list, TABLE_LEFT },
		{ "join", "join", cell_list, TABLE_LEFT },
		{ "metrics", "metrics", cell_text, TABLE_LEFT },
		{ "sampling", "sampling_core_percent", cell_percent, TABLE_LEFT },
	};
	static const struct column ports[] = {
		{ "PORT", "name", cell_text, TABLE_LEFT },
		{ "XDP", "mode", cell_mode, TABLE_LEFT },
		{ "", NULL, cell_port_remark, TABLE_ELASTIC },
	};
	const char *not_saved = field_text(result, "not_saved");
	const json_t *trouble;
	char up[UNITS_BYTES];
	size_t i;

	units_duration((uint64_t)field_number(result, "uptime_s"), up, sizeof(up));
	key_write(ctl, "tallyd", out);
	fprintf(out, "%s, process %.0f, up %s\n", field_text(result, "version"),
		field_number(result, "pid"), up);
	key_write(ctl, "data plane", out);
	fprintf(out, "%s in %s\n", field_text(result, "build"), field_text(result, "pin"));
	key_write(ctl, "slots", out);
	show_slots(out, &ctl->style, result, BAR_COLUMNS_MAX);
	if (json_is_object(field(result, "cluster"))) {
		fputc('\n', out);
		key_write(ctl, "cluster", out);
		show_cluster(field(result, "cluster"), out);
	}
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct cell cell = { 0 };

		lines[i].print(result, lines[i].key, &cell);
		fputc('\n', out);
		key_write(ctl, lines[i].heading, out);
		fputs(cell.text, out);
	}
	fputs(" of a core\n\n", out);
	if (*not_saved)
		trouble_write(ctl, "not saved, tallyd tries again every 10 s: ", not_saved, out);
	json_array_foreach(field(result, "troubles"), i, trouble)
		trouble_write(ctl, "", json_string_value(trouble), out);
	return table_print(out, &ctl->style, COLUMNS(ports), field(result, "ports"), 0);
}

/* --- tenants --------------------------------------------------------------------------------- */

static void cell_slots_of_quota(const json_t *row, const char *key, struct cell *ret)
{
	struct cell used = { 0 }, quota = { 0 }, lent = { 0 };
	bool draining = json_is_true(field(row, "draining"));
	bool has_loans = field_number(row, "slots_lent") > 0;

	cell_count(row, "slots_used", &used);
	cell_count(row, "slots", &quota);
	cell_count(row, "slots_lent", &lent);
	snprintf(ret->text, sizeof(ret->text), "%.32s of %.32s%s%s%.32s%s", used.text, quota.text,
		 draining ? " (draining)" : "", has_loans ? ", " : "", has_loans ? lent.text : "",
		 has_loans ? " on loan" : "");
	ret->colour = draining ? COLOUR_YELLOW : COLOUR_NONE;
}

static void cell_ingress(const json_t *row, const char *key, struct cell *ret)
{
	if (json_array_size(field(row, key)))
		cell_list(row, key, ret);
	else
		snprintf(ret->text, sizeof(ret->text), "any port");
}

int show_tenants(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "TENANT", "name", cell_text, TABLE_LEFT },
		{ "FROM", "from", cell_text, TABLE_LEFT },
		{ "SLOTS USED", NULL, cell_slots_of_quota, TABLE_RIGHT },
		{ "PACKETS", "packets_per_second", cell_rate_limit, TABLE_RIGHT },
		{ "BYTES", "bytes_per_second", cell_bits_limit, TABLE_RIGHT },
		{ "PRIORITY", "priority", cell_number, TABLE_RIGHT },
		{ "JOBS", "jobs", cell_number, TABLE_RIGHT },
		{ "GROUP", "group", cell_text, TABLE_LEFT },
		{ "COMES IN AT", "ingress", cell_ingress, TABLE_ELASTIC },
	};

	_cleanup_(json_decrefp) json_t *one = json_is_array(result) ? NULL
								    : json_pack("[O]", result);

	if (ctl->value[OPTION_CLUSTER])
		return show_shared_tenants(ctl, one ? one : result, out);
	return rows_show(ctl, out, COLUMNS(columns), one ? one : result, "no tenants");
}

/* --- jobs ------------------------------------------------------------------------------------ */

void cell_state(const json_t *row, const char *key, struct cell *ret)
{
	const char *state = field_text(row, key);
	const bool borrows = json_is_true(field(row, "borrows"));
	const bool passes = json_is_true(field(row, "passes_on"));

	cell_text(row, key, ret);
	if (!strcmp(field_text(row, "role"), "inner"))
		*ret = strcmp(state, "running") != 0
			       ? (struct cell){ "inner, waits", COLOUR_YELLOW }
		       : passes	 ? (struct cell){ "inner, passes on", COLOUR_YELLOW }
		       : borrows ? (struct cell){ "inner, borrows", COLOUR_YELLOW }
				 : (struct cell){ "inner", COLOUR_GREEN };
	else if (borrows)
		*ret = (struct cell){ "borrows slots", COLOUR_YELLOW };
	else if (json_is_true(field(row, "in_software")))
		*ret = (struct cell){ "in software", COLOUR_YELLOW };
	else if (json_is_true(field(row, "on_loan")))
		*ret = (struct cell){ "on loan", COLOUR_GREEN };
	else if (!strcmp(state, "running"))
		ret->colour = COLOUR_GREEN;
	else if (strcmp(state, "joined") != 0 && strcmp(state, "waiting") != 0)
		ret->colour = COLOUR_YELLOW;
}

static void cell_missing(const json_t *row, const char *key, struct cell *ret)
{
	cell_text(row, key, ret);
	if (strcmp(ret->text, "-") != 0)
		ret->colour = COLOUR_YELLOW;
}

static void cell_yes(const json_t *row, const char *key, struct cell *ret)
{
	snprintf(ret->text, sizeof(ret->text), "%s", json_is_true(field(row, key)) ? "yes" : "-");
}

int show_jobs(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "JOB", "name", cell_text, TABLE_ELASTIC },
		{ "NUMBER", "id", cell_number, TABLE_RIGHT },
		{ "TENANT", "tenant", cell_text, TABLE_ELASTIC },
		{ "STATE", "state", cell_state, TABLE_LEFT },
		{ "WORKERS", "workers", cell_number, TABLE_RIGHT },
		{ "MISSING", "missing", cell_missing, TABLE_LEFT },
		{ "EPOCH", "epoch", cell_number, TABLE_RIGHT },
		{ "WINDOW", "window", cell_number, TABLE_RIGHT },
		{ "PAYLOAD", "payload", cell_number, TABLE_RIGHT },
		{ "SLOTS", "slots", cell_count, TABLE_RIGHT },
		{ "SEALED", "sealed", cell_yes, TABLE_LEFT },
		{ "SERVICE", "service", cell_text, TABLE_LEFT },
	};

	return rows_show(ctl, out, COLUMNS(columns), result, "no jobs");
}

static void cell_told(const json_t *row, const char *key, struct cell *ret)
{
	const char *state = field_text(row, key);

	snprintf(ret->text, sizeof(ret->text), "%s", *state ? state : "-");
	if (!strcmp(state, "away"))
		ret->colour = COLOUR_YELLOW;
}

static void nodes_trouble(const struct ctl *ctl, const json_t *nodes, FILE *out)
{
	char what[128];
	size_t i;
	json_t *node;

	json_array_foreach(nodes, i, node)
	{
		if (!*field_text(node, "trouble"))
			continue;
		snprintf(what, sizeof(what), "%s: ", field_text(node, "name"));
		trouble_write(ctl, what, field_text(node, "trouble"), out);
	}
}

void show_late(const json_t *job, FILE *out)
{
	size_t i;
	json_t *late;

	json_array_foreach(field(job, "late"), i, late)
	{
		const char *node = field_text(late, "node");

		fprintf(out, "late: rank %.0f in %.0f %% of samples%s%s%s\n",
			field_number(late, "rank"), field_number(late, "percent"),
			*node ? " (as " : "", node, *node ? " sees it)" : "");
	}
	fputs(json_array_size(field(job, "late")) ? "\n" : "", out);
}

int show_job(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "RANK", "rank", cell_number, TABLE_RIGHT },
		{ "STATE", "state", cell_state, TABLE_LEFT },
		{ "ADDRESS", "address", cell_text, TABLE_LEFT },
	};
	static const struct column nodes[] = {
		{ "NODE BELOW", "name", cell_text, TABLE_LEFT },
		{ "ADDRESS", "address", cell_text, TABLE_LEFT },
		{ "RANKS", "ranks", cell_text, TABLE_ELASTIC },
		{ "STATE", "state", cell_told, TABLE_LEFT },
	};
	const json_t *job = json_array_get(result, 0);
	int r;

	if (!job)
		return why_say(why, -ENOENT, "there is no job %s (tallyctl job list)",
			       ctl->arguments[0]);
	r = show_jobs(ctl, result, out, why);
	if (r < 0)
		return r;
	fputc('\n', out);
	if (json_is_true(field(job, "passes_on")))
		fputs("packets pass this inner node as they come, and are added up at the root: there "
		      "are no slots for the run, and no pool of slots to borrow (pool.slots)\n\n",
		      out);
	if (*field_text(job, "trouble"))
		trouble_write(ctl, "", field_text(job, "trouble"), out);
	if (*field_text(job, "astray"))
		trouble_write(ctl, "", field_text(job, "astray"), out);
	show_late(job, out);
	if (*field_text(job, "no_slots"))
		fprintf(out, "%s\n\n", field_text(job, "no_slots"));
	if (json_is_true(field(job, "finds_tree")) && !json_array_size(field(job, "nodes")))
		fputs("agents have found no inner nodes for it, or not yet\n\n", out);
	if (*field_text(job, "left_out"))
		fprintf(out, "left out of the tree: %s\n\n", field_text(job, "left_out"));
	if (json_array_size(field(job, "nodes"))) {
		r = table_print(out, &ctl->style, COLUMNS(nodes), field(job, "nodes"), 0);
		fputc('\n', out);
		nodes_trouble(ctl, field(job, "nodes"), out);
	}
	if (r < 0)
		return r;
	return table_print(out, &ctl->style, COLUMNS(columns), field(job, "members"), 0);
}

/* --- stats ----------------------------------------------------------------------------------- */

static void cell_meaning(const json_t *row, const char *key, struct cell *ret)
{
	const char *name = field_text(row, key);

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (!strcmp(name, tally_outcome_name(i)))
			snprintf(ret->text, sizeof(ret->text), "%s", tally_outcome_meaning(i));
}

static int show_history(const struct ctl *ctl, const json_t *result, FILE *out)
{
	static const struct column job[] = {
		{ "TIME", "time_s", cell_time, TABLE_LEFT },
		{ "RECEIVES", "bytes_per_second", cell_bits, TABLE_RIGHT },
		{ "", "packets_per_second", cell_rate, TABLE_RIGHT },
		{ "SUMS", "chunks_per_second", cell_rate, TABLE_RIGHT },
		{ "AGAIN", "duplicates_per_second", cell_rate, TABLE_RIGHT },
		{ "REFUSED", "refused_per_second", cell_bad_rate, TABLE_RIGHT },
	};
	static const struct column port[sizeof(job) / sizeof(*job)] = {
		{ "TIME", "time_s", cell_time, TABLE_LEFT },
		{ "RECEIVES", "receive_bytes_per_second", cell_bits, TABLE_RIGHT },
		{ "", "receive_packets_per_second", cell_rate, TABLE_RIGHT },
		{ "SENDS", "transmit_bytes_per_second", cell_bits, TABLE_RIGHT },
		{ "", "transmit_packets_per_second", cell_rate, TABLE_RIGHT },
		{ "BACKLOG", "backlog_bytes", cell_bytes, TABLE_RIGHT },
	};

	return rows_show(ctl, out, ctl->value[OPTION_JOB] ? job : port, sizeof(job) / sizeof(*job),
			 result, "no samples yet");
}

int show_stats(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "OUTCOME", "outcome", cell_text, TABLE_LEFT },
		{ "PACKETS", "packets", cell_count, TABLE_RIGHT },
		{ "BYTES", "bytes", cell_count, TABLE_RIGHT },
		{ "MEANING", "outcome", cell_meaning, TABLE_ELASTIC },
	};
	_cleanup_(json_decrefp) json_t *rows = json_array();
	const char *name;
	json_t *counter;

	if (ctl->value[OPTION_HISTORY])
		return show_history(ctl, result, out);
	json_object_foreach((json_t *)result, name, counter)
	{
		json_t *row;

		if (!ctl->value[OPTION_ALL] && field_number(counter, "packets") == 0)
			continue;
		row = json_copy(counter);
		json_object_set_new(row, "outcome", json_string(name));
		json_array_append_new(rows, row);
	}
	return rows_show(ctl, out, COLUMNS(columns), rows, "no packets yet");
}

/* --- links ----------------------------------------------------------------------------------- */

void cell_link_state(const json_t *row, const char *key, struct cell *ret)
{
	if (!json_is_true(field(row, "up")))
		*ret = (struct cell){ "down", COLOUR_RED };
	else if (!json_is_true(field(row, "carrier")))
		*ret = (struct cell){ "no carrier", COLOUR_RED };
	else if (field_number(row, "speed_mbps") > 0)
		units_bits(field_number(row, "speed_mbps") * 125000, ret->text, sizeof(ret->text));
	else
		*ret = (struct cell){ "up", COLOUR_NONE };
}

void cell_sum(const json_t *row, const char *key, struct cell *ret)
{
	char path[64];
	double sum;

	snprintf(path, sizeof(path), "receive.%s", key);
	sum = field_number(row, path);
	snprintf(path, sizeof(path), "transmit.%s", key);
	sum += field_number(row, path);
	units_count((uint64_t)sum, ret->text, sizeof(ret->text));
	ret->colour = sum > 0 ? COLOUR_RED : COLOUR_NONE;
}

int show_links(const struct ctl *ctl, const json_t *result, FILE *out, struct why *why)
{
	static const struct column columns[] = {
		{ "LINK", "name", cell_text, TABLE_LEFT },
		{ "STATE", NULL, cell_link_state, TABLE_LEFT },
		{ "MTU", "mtu", cell_number, TABLE_RIGHT },
		{ "RECEIVES", "receive.bytes_per_second", cell_bits, TABLE_RIGHT },
		{ "", "receive.packets_per_second", cell_rate, TABLE_RIGHT },
		{ "SENDS", "transmit.bytes_per_second", cell_bits, TABLE_RIGHT },
		{ "", "transmit.packets_per_second", cell_rate, TABLE_RIGHT },
		{ "BACKLOG", "backlog_bytes", cell_bytes, TABLE_RIGHT },
		{ "DROPPED", "dropped", cell_sum, TABLE_RIGHT },
		{ "ERRORS", "errors", cell_sum, TABLE_RIGHT },
		{ "CHANGES", "changes", cell_number, TABLE_RIGHT },
	};

	return table_print(out, &ctl->style, COLUMNS(columns), result, 0);
}
