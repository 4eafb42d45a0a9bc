// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "picture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"

/* Where a node is, or would be. */
static unsigned int place_of(const struct picture *p, const char *node)
{
	unsigned int low = 0, high = p->nodes;

	while (low < high) {
		const unsigned int middle = (low + high) / 2;

		if (strcmp(p->report[middle]->node, node) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct picture *p, unsigned int at, const char *node)
{
	return at < p->nodes && !strcmp(p->report[at]->node, node);
}

int picture_place(const struct picture *p, const char *node)
{
	const unsigned int at = place_of(p, node);

	return is_at(p, at, node) ? (int)at : -1;
}

int picture_put(struct picture *p, struct report *r)
{
	const unsigned int at = place_of(p, r->node);
	struct report **more;

	if (is_at(p, at, r->node)) {
		report_free(p->report[at]);
		p->report[at] = r;
		return 0;
	}
	more = p->nodes < PICTURE_NODES_MAX ? reallocarray(p->report, p->nodes + 1, sizeof(*more))
					    : NULL;
	if (!more) {
		report_free(r);
		return p->nodes < PICTURE_NODES_MAX ? -ENOMEM : -E2BIG;
	}
	p->report = more;
	memmove(more + at + 1, more + at, (p->nodes - at) * sizeof(*more));
	more[at] = r;
	p->nodes++;
	return 0;
}

void picture_drop(struct picture *p, const char *node)
{
	const unsigned int at = place_of(p, node);

	if (!is_at(p, at, node))
		return;
	report_free(p->report[at]);
	p->nodes--;
	memmove(p->report + at, p->report + at + 1, (p->nodes - at) * sizeof(*p->report));
}

void picture_close(struct picture *p)
{
	for (unsigned int i = 0; i < p->nodes; i++)
		report_free(p->report[i]);
	free(p->report);
	*p = (struct picture){ 0 };
}

void drawing_close(struct drawing *d)
{
	free(d->machine);
	free(d->cable);
	*d = (struct drawing){ 0 };
}

static bool has_address(const struct report *r, const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < r->addresses; i++)
		if (endpoint_is_equal(&r->address[i], address))
			return true;
	return false;
}

int drawing_find(const struct picture *p, const struct drawing *d,
		 const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < d->machines; i++) {
		const struct picture_machine *m = &d->machine[i];

		if (m->kind == PICTURE_HOST && endpoint_is_equal(&m->address, address))
			return (int)i;
		if (m->kind == PICTURE_NODE && has_address(p->report[m->node], address))
			return (int)i;
	}
	return -1;
}
