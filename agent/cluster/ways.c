// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/owned.h"

/* A node's route, as packets are compared with. */
struct route {
	uint8_t to[16];
	unsigned int bytes, bits;
	bool leads; /* by a port that has a cable */
	unsigned int cable, end;
};

struct work {
	const struct picture *picture;
	const struct drawing *drawing;
	struct way *way;
	unsigned int ways, room;
};

static bool prefix_parse(const char *text, struct route *ret)
{
	char address[REPORT_PREFIX_BYTES];
	const char *slash = strchr(text, '/');
	char *end;

	if (!slash)
		return false;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	ret->bits = (unsigned int)strtoul(slash + 1, &end, 10);
	ret->bytes = strchr(address, ':') ? 16 : 4;
	return !*end && ret->bits <= 8 * ret->bytes &&
	       inet_pton(ret->bytes == 16 ? AF_INET6 : AF_INET, address, ret->to) == 1;
}

static bool matches(const struct route *r, const uint8_t *raw, size_t bytes)
{
	const unsigned int whole = r->bits / 8, rest = r->bits % 8;

	return r->bytes == bytes && !memcmp(r->to, raw, whole) &&
	       (!rest || (r->to[whole] ^ raw[whole]) >> (8 - rest) == 0);
}

/* The longest prefixes first: those that count. */
static int by_bits(const void *a, const void *b)
{
	const struct route *x = a, *y = b;

	return x->bits > y->bits ? -1 : x->bits < y->bits;
}

static void cable_find(const struct drawing *d, unsigned int at, const char *port,
		       struct route *ret)
{
	for (unsigned int i = 0; *port && i < d->cables && !ret->leads; i++)
		for (unsigned int end = 0; end < 2; end++)
			if (d->cable[i].end[end] == at && !strcmp(d->cable[i].port[end], port)) {
				ret->cable = i;
				ret->end = end;
				ret->leads = true;
			}
}

static unsigned int routes_read(const struct work *w, unsigned int at, struct route *ret)
{
	const struct report *r = w->picture->report[w->drawing->machine[at].node];
	unsigned int count = 0;

	for (unsigned int i = 0; i < r->routes; i++) {
		struct route *route = &ret[count];

		*route = (struct route){ 0 };
		if (!prefix_parse(r->route[i].to, route))
			continue;
		cable_find(w->drawing, at, r->route[i].port, route);
		count++;
	}
	qsort(ret, count, sizeof(*ret), by_bits);
	return count;
}

/* What others send to: NULL, nothing. */
static const struct sockaddr_storage *address_of(const struct work *w, unsigned int machine)
{
	const struct picture_machine *m = &w->drawing->machine[machine];

	if (m->kind == PICTURE_HOST)
		return &m->address;
	if (m->kind == PICTURE_NODE && w->picture->report[m->node]->services)
		return &w->picture->report[m->node]->service[0];
	return NULL;
}

static int way_add(struct work *w, struct way way)
{
	struct way *more;

	if (w->ways == w->room) {
		more = reallocarray(w->way, w->room * 2 + 64, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->way = more;
		w->room = w->room * 2 + 64;
	}
	w->way[w->ways++] = way;
	return 0;
}

static int ways_from(struct work *w, unsigned int at, const struct route *route,
		     unsigned int routes)
{
	int r = 0;

	for (unsigned int to = 0; r == 0 && to < w->drawing->machines; to++) {
		const struct sockaddr_storage *address = address_of(w, to);
		unsigned int first = 0;
		const uint8_t *raw;
		size_t bytes;

		if (!address || to == at)
			continue;
		raw = address_raw((struct sockaddr_storage *)address, &bytes);
		while (first < routes && !matches(&route[first], raw, bytes))
			first++;
		for (unsigned int i = first;
		     r == 0 && i < routes && route[i].bits == route[first].bits; i++)
			if (route[i].leads && matches(&route[i], raw, bytes))
				r = way_add(w,
					    (struct way){ at, to, route[i].cable, route[i].end });
	}
	return r;
}

int ways_make(const struct picture *p, const struct drawing *d, struct way **ret,
	      unsigned int *ret_ways)
{
	_cleanup_(freep) struct route *route = calloc(REPORT_ROUTES_MAX, sizeof(*route));
	struct work w = { .picture = p, .drawing = d };
	uint64_t steps = 0;
	int r = route ? 0 : -ENOMEM;

	for (unsigned int i = 0; i < p->nodes; i++)
		steps += (uint64_t)p->report[i]->routes * d->machines;
	for (unsigned int at = 0; r == 0 && steps <= WAYS_STEPS_MAX && at < d->machines; at++)
		if (d->machine[at].kind == PICTURE_NODE)
			r = ways_from(&w, at, route, routes_read(&w, at, route));
	if (r < 0) {
		free(w.way);
		return r;
	}
	*ret = w.way;
	*ret_ways = w.ways;
	return 0;
}
