// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/util.h"
#include "table.h"
#include "units.h"

enum {
	GAP = 2, /* columns between two */
	ELASTIC_MIN = 8, /* an elastic column is not cut below this */
	KEY_BYTES = 64,
};

const json_t *field(const json_t *row, const char *path)
{
	char key[KEY_BYTES];

	while (row) {
		size_t length = strcspn(path, ".");

		if (length >= sizeof(key))
			return NULL;
		memcpy(key, path, length);
		key[length] = '\0';
		row = json_object_get(row, key);
		if (!path[length])
			break;
		path += length + 1;
	}
	return json_is_null(row) ? NULL : row;
}

double field_number(const json_t *row, const char *path)
{
	return json_number_value(field(row, path));
}

const char *field_text(const json_t *row, const char *path)
{
	const char *text = json_string_value(field(row, path));

	return text ? text : "";
}

const json_t *row_named(const json_t *rows, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!strcmp(field_text(row, "name"), name))
			return row;
	}
	return NULL;
}

void cell_text(const json_t *row, const char *key, struct cell *ret)
{
	const char *text = field_text(row, key);

	snprintf(ret->text, sizeof(ret->text), "%s", *text ? text : "-");
}

void cell_list(const json_t *row, const char *key, struct cell *ret)
{
	const json_t *list = field(row, key);
	size_t n = 0;

	snprintf(ret->text, sizeof(ret->text), "-");
	for (size_t i = 0; i < json_array_size(list) && n < sizeof(ret->text); i++) {
		const char *text = json_string_value(json_array_get(list, i));

		n += snprintf(ret->text + n, sizeof(ret->text) - n, "%s%s", i ? ", " : "",
			      text ? text : "?");
	}
}

void cell_time(const json_t *row, const char *key, struct cell *ret)
{
	time_t time_s = (time_t)field_number(row, key);
	struct tm broken;

	if (localtime_r(&time_s, &broken))
		strftime(ret->text, sizeof(ret->text), "%H:%M:%S", &broken);
}

/* A number at `key`, or "-". */
static bool cell_is_number(const json_t *row, const char *key, struct cell *ret)
{
	if (json_is_number(field(row, key)))
		return true;
	snprintf(ret->text, sizeof(ret->text), "-");
	return false;
}

void cell_count(const json_t *row, const char *key, struct cell *ret)
{
	const json_t *n = field(row, key);

	if (json_is_integer(n) && json_integer_value(n) >= 0)
		units_count(json_integer_value(n), ret->text, sizeof(ret->text));
	else if (cell_is_number(row, key, ret))
		snprintf(ret->text, sizeof(ret->text), "%.0f", json_number_value(n));
}

void cell_number(const json_t *row, const char *key, struct cell *ret)
{
	if (cell_is_number(row, key, ret))
		snprintf(ret->text, sizeof(ret->text), "%.0f", field_number(row, key));
}

static void cell_unit(const json_t *row, const char *key,
		      void (*print)(double number, char *text, size_t size), struct cell *ret)
{
	if (cell_is_number(row, key, ret))
		print(field_number(row, key), ret->text, sizeof(ret->text));
}

void cell_rate(const json_t *row, const char *key, struct cell *ret)
{
	cell_unit(row, key, units_rate, ret);
}

void cell_bits(const json_t *row, const char *key, struct cell *ret)
{
	cell_unit(row, key, units_bits, ret);
}

void cell_bytes(const json_t *row, const char *key, struct cell *ret)
{
	cell_unit(row, key, units_bytes, ret);
}

void cell_percent(const json_t *row, const char *key, struct cell *ret)
{
	cell_unit(row, key, units_percent, ret);
}

void cell_bad_rate(const json_t *row, const char *key, struct cell *ret)
{
	cell_rate(row, key, ret);
	if (field_number(row, key) > 0)
		ret->colour = COLOUR_RED;
}

static void unlimited(const json_t *row, const char *key, struct cell *ret)
{
	if (json_is_number(field(row, key)) && field_number(row, key) == 0)
		snprintf(ret->text, sizeof(ret->text), "no limit");
}

void cell_rate_limit(const json_t *row, const char *key, struct cell *ret)
{
	cell_rate(row, key, ret);
	unlimited(row, key, ret);
}

void cell_bits_limit(const json_t *row, const char *key, struct cell *ret)
{
	cell_bits(row, key, ret);
	unlimited(row, key, ret);
}

/* Makes elastic columns narrower until the table fits. */
static void widths_fit(const struct style *style, const struct column *columns, size_t count,
		       unsigned int *width)
{
	unsigned int total = 0;

	for (size_t i = 0; i < count; i++)
		total += width[i] + (i ? GAP : 0);
	for (size_t i = 0; i < count && style->width && total > style->width; i++) {
		unsigned int give = total - style->width;

		if (columns[i].align != TABLE_ELASTIC || width[i] <= ELASTIC_MIN)
			continue;
		if (give > width[i] - ELASTIC_MIN)
			give = width[i] - ELASTIC_MIN;
		width[i] -= give;
		total -= give;
	}
}

/* Writes a text with this alignment, cut to `width`. */
static void cell_write(FILE *out, const struct style *style, const char *text, enum colour colour,
		       enum table_align align, unsigned int width, bool last)
{
	unsigned int columns = style_columns(text), cut = columns > width ? width : columns;
	unsigned int pad = width - cut;
	const char *more = "";

	if (columns > width && width > 1) {
		cut--;
		more = style->utf8 ? "…" : "~";
	}
	fprintf(out, "%*s%s%.*s%s%s%*s", align == TABLE_RIGHT ? (int)pad : 0, "",
		style_begin(style, colour), (int)style_bytes(text, cut), text, more,
		style_end(style, colour), align == TABLE_RIGHT || last ? 0 : (int)pad, "");
}

struct line {
	FILE *out;
	const struct style *style;
	const struct column *columns;
	const unsigned int *width;
	size_t count;
};

/* Writes no blanks at the end. */
static void line_write(const struct line *l, const struct cell *cells)
{
	unsigned int left = l->style->width ? l->style->width : UINT32_MAX;
	size_t count = l->count;

	while (count && !*cells[count - 1].text)
		count--;
	for (size_t i = 0; i < count && left; i++) {
		unsigned int width = l->width[i] > left ? left : l->width[i];

		cell_write(l->out, l->style, cells[i].text, cells[i].colour, l->columns[i].align,
			   width, i + 1 == count);
		left -= width;
		if (i + 1 < count && left > GAP) {
			fprintf(l->out, "%*s", GAP, "");
			left -= GAP;
		} else {
			left = 0;
		}
	}
	fputc('\n', l->out);
}

int table_print(FILE *out, const struct style *style, const struct column *columns, size_t count,
		const json_t *rows, size_t most)
{
	size_t all = json_array_size(rows), shown = most && most < all ? most : all;
	size_t lines = shown + 1; /* and the headings */
	_cleanup_(freep) struct cell *cells = calloc(lines * count, sizeof(*cells));
	_cleanup_(freep) unsigned int *width = calloc(count, sizeof(*width));
	const struct line line = { out, style, columns, width, count };

	if (!cells || !width)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		cells[i].colour = COLOUR_DIM;
		snprintf(cells[i].text, sizeof(cells[i].text), "%s", columns[i].heading);
	}
	for (size_t i = 0; i < lines * count; i++) {
		const struct column *c = &columns[i % count];
		unsigned int taken;

		if (i >= count)
			c->print(json_array_get(rows, i / count - 1), c->key, &cells[i]);
		taken = style_columns(cells[i].text);
		if (taken > width[i % count])
			width[i % count] = taken;
	}
	widths_fit(style, columns, count, width);
	for (size_t i = 0; i < lines; i++)
		line_write(&line, cells + i * count);
	if (shown < all)
		fprintf(out, "%s+ %zu more%s\n", style_begin(style, COLOUR_DIM), all - shown,
			style_end(style, COLOUR_DIM));
	return 0;
}
