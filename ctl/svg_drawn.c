// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is to be drawn: machines and links in an order, and which of them the job has. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "svg_private.h"
#include "table.h"

void svg_drawn_close(struct svg_drawn *d)
{
	free(d->machine);
	free(d->link);
	free(d->branch);
	free(d->part);
	free(d->place);
	free(d->line);
	json_decref(d->number);
}

/* Nodes first, as one of them is to be in the middle; then by names, n2 before n10. */
static int by_name(const void *a, const void *b)
{
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	const bool of_x = !strcmp(field_text(x, "kind"), "node");
	const bool of_y = !strcmp(field_text(y, "kind"), "node");

	if (of_x != of_y)
		return of_x ? -1 : 1;
	return strverscmp(field_text(x, "name"), field_text(y, "name"));
}

static int by_ends(const void *a, const void *b)
{
	static const char *const keys[] = { "from.name", "to.name", "from.port", "to.port" };
	const json_t *x = *(const json_t *const *)a, *y = *(const json_t *const *)b;
	int order = 0;

	for (size_t i = 0; !order && i < sizeof(keys) / sizeof(*keys); i++)
		order = strverscmp(field_text(x, keys[i]), field_text(y, keys[i]));
	return order;
}

int svg_number_of(const struct svg_drawn *d, const char *name)
{
	const json_t *number = json_object_get(d->number, name);

	return number ? (int)json_integer_value(number) : LAYERS_NONE;
}

static void machines_fill(struct svg_drawn *d, const json_t *machines)
{
	for (size_t i = 0; i < json_array_size(machines); i++)
		d->machine[d->machines++] = json_array_get(machines, i);
	qsort(d->machine, d->machines, sizeof(*d->machine), by_name);
	for (int i = 0; i < d->machines; i++)
		json_object_set_new(d->number, field_text(d->machine[i], "name"), json_integer(i));
}

/* Those whose ends there are. */
static void links_fill(struct svg_drawn *d, const json_t *links)
{
	int count = 0;

	for (size_t i = 0; i < json_array_size(links); i++) {
		const json_t *l = json_array_get(links, i);

		if (svg_number_of(d, field_text(l, "from.name")) != LAYERS_NONE &&
		    svg_number_of(d, field_text(l, "to.name")) != LAYERS_NONE)
			d->link[count++] = l;
	}
	qsort(d->link, count, sizeof(*d->link), by_ends);
	for (int i = 0; i < count; i++) {
		d->line[i].end[0] = svg_number_of(d, field_text(d->link[i], "from.name"));
		d->line[i].end[1] = svg_number_of(d, field_text(d->link[i], "to.name"));
	}
	d->links = count;
}

/* The link of the tree between two machines. */
static void branch_put(struct svg_drawn *d, int a, int b, const json_t *row)
{
	for (int i = 0; i < d->links; i++) {
		const int *end = d->line[i].end;

		if (d->branch[i] || !((end[0] == a && end[1] == b) || (end[0] == b && end[1] == a)))
			continue;
		d->branch[i] = row;
		return;
	}
}

/* Each machine stands behind the one that it sends to, which is one nearer to the root. */
static int tree_fill(struct svg_drawn *d)
{
	const json_t *tree = field(d->job, "tree");
	const size_t count = json_array_size(tree);
	_cleanup_(freep) int *at = calloc(count + 1, sizeof(*at)); /* the last one, by depth */

	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		at[i] = LAYERS_NONE;
	for (size_t i = 0; i < count; i++) {
		const json_t *row = json_array_get(tree, i);
		const double depth = field_number(row, "depth");
		const int number = svg_number_of(d, field_text(row, "name"));

		if (depth < 0 || depth > (double)i)
			continue;
		at[(size_t)depth] = number;
		if (number == LAYERS_NONE)
			continue;
		d->part[number] = row;
		if (depth >= 1)
			branch_put(d, number, at[(size_t)depth - 1], row);
	}
	return 0;
}

static void *some(size_t count, size_t size) { return calloc(count + 1, size); }

int svg_drawn_make(struct svg_drawn *d, struct why *why)
{
	const json_t *machines = field(d->topology, "machines");
	const json_t *links = field(d->topology, "links");
	const size_t m = json_array_size(machines), l = json_array_size(links);

	if (m > LAYERS_MACHINES_MAX || l > LAYERS_LINKS_MAX)
		return why_say(why, -E2BIG,
			       "the network has %zu machines and %zu links, and a picture at most "
			       "%d and %d: see tallyctl topology",
			       m, l, LAYERS_MACHINES_MAX, LAYERS_LINKS_MAX);
	d->machine = some(m, sizeof(*d->machine));
	d->part = some(m, sizeof(*d->part));
	d->place = some(m, sizeof(*d->place));
	d->link = some(l, sizeof(*d->link));
	d->branch = some(l, sizeof(*d->branch));
	d->line = some(l, sizeof(*d->line));
	d->number = json_object();
	if (!d->machine || !d->part || !d->place || !d->link || !d->branch || !d->line ||
	    !d->number)
		return -ENOMEM;
	machines_fill(d, machines);
	links_fill(d, links);
	return tree_fill(d);
}
