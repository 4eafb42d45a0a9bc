// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "show.h"
#include "top_frame.h"
#include "units.h"

enum {
	BAR_COLUMNS = 20,
	SMALL_BAR_COLUMNS = 8,
	BAR_BYTES = 4 * BAR_COLUMNS + 1,
	LINES_BESIDE = 6, /* head and foot with blank lines, headings of jobs, a blank line */
	ROWS_MIN = 3, /* of each table, however small the terminal is */
};

/* --- history --------------------------------------------------------------------------------- */

static struct top_series *series_find(const struct top_history *history, const char *name)
{
	for (unsigned int i = 0; i < TOP_HISTORY_JOBS; i++)
		if (!strcmp(history->job[i].name, name))
			return (struct top_series *)&history->job[i];
	return NULL;
}

static void series_add(struct top_series *s, double rate)
{
	if (s->count == TOP_HISTORY)
		memmove(s->rate, s->rate + 1, sizeof(s->rate) - sizeof(*s->rate));
	else
		s->count++;
	s->rate[s->count - 1] = rate;
}

void top_history_add(struct top_history *history, const json_t *frame)
{
	const json_t *jobs = field(frame, "jobs"), *job;
	size_t i;

	for (i = 0; i < TOP_HISTORY_JOBS; i++)
		if (*history->job[i].name && !row_named(jobs, history->job[i].name))
			history->job[i] = (struct top_series){ 0 };
	json_array_foreach(jobs, i, job)
	{
		const char *name = field_text(job, "name");
		struct top_series *s = *name ? series_find(history, name) : NULL;

		if (!s && *name && strlen(name) < NAME_BYTES)
			s = series_find(history, "");
		if (!s)
			continue;
		snprintf(s->name, sizeof(s->name), "%s", name);
		series_add(s, field_number(job, "bytes_per_second"));
	}
}

/* --- cells ----------------------------------------------------------------------------------- */

/* For printers of cells, which get a row and a key only; set while a frame is printed. */
static const struct style *cell_style;
static const struct top_history *cell_history;

/* The direction of the rate in the next seconds; blank if it stays. */
static const char *arrow(double rate, double forecast)
{
	if (forecast > rate * 1.1)
		return cell_style->utf8 ? " ↗" : " +";
	if (forecast < rate * 0.9)
		return cell_style->utf8 ? " ↘" : " -";
	return "  ";
}

static void cell_forecast_rate(const json_t *row, const char *key, struct cell *ret)
{
	char path[CELL_BYTES];
	double rate;
	size_t n;

	snprintf(path, sizeof(path), "%sbytes_per_second", key);
	cell_bits(row, path, ret);
	rate = field_number(row, path);
	snprintf(path, sizeof(path), "%sforecast_bytes_per_second", key);
	n = strlen(ret->text);
	if (field(row, path))
		snprintf(ret->text + n, sizeof(ret->text) - n, "%s",
			 arrow(rate, field_number(row, path)));
}

/* Rates as bars; the highest rate has the full bar. */
static void cell_sparkline(const json_t *row, const char *key, struct cell *ret)
{
	static const char *const bars[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const struct top_series *s = cell_history ? series_find(cell_history, field_text(row, key))
						  : NULL;
	unsigned int count = s && cell_style->utf8 ? s->count : 0;
	double most = 0;
	size_t n = 0;

	for (unsigned int i = 0; i < count; i++)
		most = s->rate[i] > most ? s->rate[i] : most;
	for (unsigned int i = 0; i < count; i++)
		n += snprintf(ret->text + n, sizeof(ret->text) - n, "%s",
			      bars[s->rate[i] > 0 ? (int)(s->rate[i] / most * 7) : 0]);
}

static void cell_joined(const json_t *row, const char *key, struct cell *ret)
{
	const bool inner = !strcmp(field_text(row, "role"), "inner");
	double joined = field_number(row, inner ? "below" : "joined");
	double workers = field_number(row, "workers");

	if (inner) { /* nobody joins here; no ranks but these come through */
		snprintf(ret->text, sizeof(ret->text), "%.0f of %.0f", joined, workers);
		return;
	}
	snprintf(ret->text, sizeof(ret->text), "%.0f/%.0f", joined, workers);
	ret->colour = joined < workers ? COLOUR_YELLOW : COLOUR_NONE;
}

/* Yellow from 1 % on. */
static void cell_duplicates(const json_t *row, const char *key, struct cell *ret)
{
	cell_percent(row, key, ret);
	if (field_number(row, key) >= 1)
		ret->colour = COLOUR_YELLOW;
}

static void cell_quota(const json_t *row, const char *key, struct cell *ret)
{
	double used = field_number(row, "slots_used"), quota = field_number(row, "slots");
	char bar[BAR_BYTES], in_use[UNITS_BYTES], of[UNITS_BYTES];

	style_bar(cell_style, quota > 0 ? used / quota : 0, SMALL_BAR_COLUMNS, bar, sizeof(bar));
	units_count((uint64_t)used, in_use, sizeof(in_use));
	units_count((uint64_t)quota, of, sizeof(of));
	snprintf(ret->text, sizeof(ret->text), "%s %s of %s", bar, in_use, of);
	ret->colour = used > quota ? COLOUR_YELLOW : COLOUR_NONE;
}

/* "340 k/s of 500 k/s", where there is a limit. */
static void cell_of(const json_t *row, const char *key, const char *limit_key,
		    void (*print)(double number, char *text, size_t size), struct cell *ret)
{
	char is[UNITS_BYTES], limit[UNITS_BYTES];

	print(field_number(row, key), is, sizeof(is));
	print(field_number(row, limit_key), limit, sizeof(limit));
	if (field_number(row, limit_key) > 0)
		snprintf(ret->text, sizeof(ret->text), "%s of %s", is, limit);
	else
		snprintf(ret->text, sizeof(ret->text), "%s", is);
}

static void cell_packets_of(const json_t *row, const char *key, struct cell *ret)
{
	cell_of(row, key, "packets_limit", units_rate, ret);
}

static void cell_bytes_of(const json_t *row, const char *key, struct cell *ret)
{
	cell_of(row, key, "bytes_limit", units_bits, ret);
}

/* --- the page -------------------------------------------------------------------------------- */

static void head_print(FILE *out, const struct style *style, const json_t *frame)
{
	struct cell clock = { 0 };

	cell_time(frame, "time_s", &clock);
	fprintf(out, "%stally%s %s  slots ", style_begin(style, COLOUR_BOLD),
		style_end(style, COLOUR_BOLD), clock.text);
	show_slots(out, style, frame, BAR_COLUMNS);
	fprintf(out, "  jobs %zu  tenants %zu\n\n", json_array_size(field(frame, "jobs")),
		json_array_size(field(frame, "tenants")));
}

static int busier(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	double difference = field_number(y, "bytes_per_second") -
			    field_number(x, "bytes_per_second");

	if (difference != 0)
		return difference > 0 ? 1 : -1;
	return strcmp(field_text(x, "name"), field_text(y, "name"));
}

/* The rows, those with the most traffic first. The caller owns the result. */
static json_t *sorted(const json_t *rows)
{
	size_t count = json_array_size(rows);
	_cleanup_(freep) json_t **row = calloc(count + 1, sizeof(json_t *));
	json_t *result = json_array();

	if (!row || !result) {
		json_decref(result);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		row[i] = json_array_get(rows, i);
	qsort(row, count, sizeof(json_t *), busier);
	for (size_t i = 0; i < count; i++)
		json_array_append(result, row[i]);
	return result;
}

static const struct column job_columns[] = {
	{ "JOB", "name", cell_text, TABLE_ELASTIC },
	{ "TENANT", "tenant", cell_text, TABLE_ELASTIC },
	{ "STATE", "state", cell_state, TABLE_LEFT },
	{ "WORKERS", NULL, cell_joined, TABLE_RIGHT },
	{ "SLOTS", "slots", cell_count, TABLE_RIGHT },
	{ "RECEIVES", "", cell_forecast_rate, TABLE_RIGHT },
	{ "SUMS", "chunks_per_second", cell_rate, TABLE_RIGHT },
	{ "AGAIN", "duplicate_percent", cell_duplicates, TABLE_RIGHT },
	{ "REFUSED", "refused_per_second", cell_bad_rate, TABLE_RIGHT },
	{ "", "name", cell_sparkline, TABLE_LEFT },
};

static const struct column tenant_columns[] = {
	{ "TENANT", "name", cell_text, TABLE_ELASTIC },
	{ "SLOTS", NULL, cell_quota, TABLE_LEFT },
	{ "PACKETS", "packets_per_second", cell_packets_of, TABLE_RIGHT },
	{ "RECEIVES", "bytes_per_second", cell_bytes_of, TABLE_RIGHT },
	{ "REFUSED", "refused_per_second", cell_bad_rate, TABLE_RIGHT },
};

static const struct column link_columns[] = {
	{ "LINK", "name", cell_text, TABLE_LEFT },
	{ "STATE", NULL, cell_link_state, TABLE_LEFT },
	{ "RECEIVES", "receive.", cell_forecast_rate, TABLE_RIGHT },
	{ "", "receive.packets_per_second", cell_rate, TABLE_RIGHT },
	{ "SENDS", "transmit.", cell_forecast_rate, TABLE_RIGHT },
	{ "", "transmit.packets_per_second", cell_rate, TABLE_RIGHT },
	{ "BACKLOG", "backlog_bytes", cell_bytes, TABLE_RIGHT },
	{ "DROPPED", "dropped", cell_sum, TABLE_RIGHT },
};

/*
 * How many rows each table gets: jobs, tenants, links. A short table gets all its rows. Longer
 * ones share the rest, links first and jobs last.
 */
static void rows_share(const struct style *style, const size_t *wanted, size_t *ret)
{
	size_t beside = LINES_BESIDE + (wanted[1] ? 2 : 0) + (wanted[2] ? 1 : 0);
	size_t left = style->height > beside ? style->height - beside : 0;

	for (int i = 2; i >= 0; i--) {
		size_t most = left / (i + 1), taken;

		most = most < ROWS_MIN ? ROWS_MIN : most;
		ret[i] = !style->height || wanted[i] <= most ? wanted[i] : most - 1;
		taken = ret[i] < wanted[i] ? most : wanted[i];
		left -= taken < left ? taken : left;
	}
}

int top_frame_print(FILE *out, const struct style *style, const json_t *frame,
		    const struct top_history *history, const char *foot)
{
	_cleanup_(json_decrefp) json_t *jobs = sorted(field(frame, "jobs"));
	_cleanup_(json_decrefp) json_t *tenants = sorted(field(frame, "tenants"));
	const json_t *links = field(frame, "links");
	const size_t wanted[3] = { json_array_size(jobs), json_array_size(tenants),
				   json_array_size(links) };
	size_t rows[3];
	int r = 0;

	if (!jobs || !tenants)
		return -ENOMEM;
	cell_style = style;
	cell_history = history;
	rows_share(style, wanted, rows);
	head_print(out, style, frame);
	if (wanted[0])
		r = table_print(out, style, COLUMNS(job_columns), jobs, rows[0]);
	else
		fputs("no jobs\n", out);
	fputc('\n', out);
	if (r == 0 && wanted[1]) {
		r = table_print(out, style, COLUMNS(tenant_columns), tenants, rows[1]);
		fputc('\n', out);
	}
	if (r == 0 && wanted[2])
		r = table_print(out, style, COLUMNS(link_columns), links, rows[2]);
	if (foot)
		fprintf(out, "\n%s%.*s%s", style_begin(style, COLOUR_DIM),
			(int)style_bytes(foot, style->width ? style->width : UINT32_MAX), foot,
			style_end(style, COLOUR_DIM));
	return r;
}
