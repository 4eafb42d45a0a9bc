// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ports that heard each other become segments, and segments become cables and switches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"
#include "common/owned.h"
#include "picture.h"

enum {
	NAME_STEM = PICTURE_NAME_BYTES - 12, /* leaves room for a number */
};

/* A port of a node, or a host behind one, at a segment. */
struct end {
	unsigned int segment; /* the number of the first port there */
	int node; /* its report; -1: it is a host */
	const struct report_port *port; /* of the node; of a host NULL */
	const struct report_host *host;
};

struct work {
	const struct picture *picture;
	unsigned int *first; /* of each node: the number of its first port; one more at the end */
	unsigned int *leads; /* of each port: another one of its segment, or itself */
	struct end *end;
	unsigned int ends, room;
	struct sockaddr_storage *own; /* addresses of nodes, in order */
	char (*mac)[REPORT_MAC_BYTES]; /* of their ports, in order */
	unsigned int owns, macs;
	struct drawing *out;
};

/* --- segments -------------------------------------------------------------------------------- */

static unsigned int segment_of(const struct work *w, unsigned int port)
{
	while (w->leads[port] != port)
		port = w->leads[port];
	return port;
}

/* By the lower number, so that the picture does not depend on who is asked first. */
static void join(struct work *w, unsigned int a, unsigned int b)
{
	a = segment_of(w, a);
	b = segment_of(w, b);
	if (a < b)
		w->leads[b] = a;
	else
		w->leads[a] = b;
}

static int port_of(const struct report *r, const char *name)
{
	for (unsigned int i = 0; i < r->ports; i++)
		if (!strcmp(r->port[i].name, name))
			return (int)i;
	return -1;
}

static bool has_heard(const struct report *r, const char *port, const char *node, const char *at)
{
	for (unsigned int i = 0; i < r->nears; i++)
		if (!strcmp(r->near[i].port, port) && !strcmp(r->near[i].node, node) &&
		    !strcmp(r->near[i].at, at))
			return true;
	return false;
}

static void meet(struct work *w, unsigned int node)
{
	const struct report *r = w->picture->report[node];

	for (unsigned int i = 0; i < r->nears; i++) {
		const struct report_near *n = &r->near[i];
		const int other = picture_place(w->picture, n->node), port = port_of(r, n->port);
		const struct report *o = other < 0 ? NULL : w->picture->report[other];
		const int at = o ? port_of(o, n->at) : -1;

		if (port >= 0 && at >= 0 && has_heard(o, n->at, r->node, n->port))
			join(w, w->first[node] + port, w->first[other] + at);
	}
}

/* --- ends ------------------------------------------------------------------------------------ */

static int by_address(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct sockaddr_storage));
}

static int by_mac(const void *a, const void *b) { return strcmp(a, b); }

static int own_fill(struct work *w)
{
	unsigned int addresses = 0, ports = 0;

	for (unsigned int i = 0; i < w->picture->nodes; i++) {
		addresses += w->picture->report[i]->addresses;
		ports += w->picture->report[i]->ports;
	}
	w->own = calloc(addresses + 1, sizeof(*w->own));
	w->mac = calloc(ports + 1, sizeof(*w->mac));
	if (!w->own || !w->mac)
		return -ENOMEM;
	for (unsigned int i = 0; i < w->picture->nodes; i++) {
		const struct report *r = w->picture->report[i];

		for (unsigned int k = 0; k < r->addresses; k++)
			w->own[w->owns++] = r->address[k];
		for (unsigned int k = 0; k < r->ports; k++)
			if (*r->port[k].mac)
				memcpy(w->mac[w->macs++], r->port[k].mac, sizeof(*w->mac));
	}
	qsort(w->own, w->owns, sizeof(*w->own), by_address);
	qsort(w->mac, w->macs, sizeof(*w->mac), by_mac);
	return 0;
}

/* By its address, or by that of a port: those that are down have no addresses of the Internet. */
static bool is_node(const struct work *w, const struct report_host *h)
{
	return bsearch(&h->address, w->own, w->owns, sizeof(*w->own), by_address) ||
	       bsearch(h->mac, w->mac, w->macs, sizeof(*w->mac), by_mac);
}

static int end_add(struct work *w, struct end e)
{
	struct end *more;

	if (w->ends == w->room) {
		more = reallocarray(w->end, w->room * 2 + 64, sizeof(*more));
		if (!more)
			return -ENOMEM;
		w->end = more;
		w->room = w->room * 2 + 64;
	}
	w->end[w->ends++] = e;
	return 0;
}

/* Has another node, or this one by another address, reported it there? */
static bool is_known(const struct work *w, unsigned int segment, const struct report_host *h)
{
	for (unsigned int i = 0; i < w->ends; i++)
		if (w->end[i].segment == segment && w->end[i].host &&
		    (endpoint_is_equal(&w->end[i].host->address, &h->address) ||
		     (*h->mac && !strcmp(w->end[i].host->mac, h->mac))))
			return true;
	return false;
}

static int ends_of(struct work *w, unsigned int node)
{
	const struct report *r = w->picture->report[node];
	int error = 0;

	for (unsigned int i = 0; error == 0 && i < r->ports; i++)
		if (r->port[i].up)
			error = end_add(w, (struct end){ segment_of(w, w->first[node] + i),
							 (int)node, &r->port[i], NULL });
	for (unsigned int i = 0; error == 0 && i < r->hosts; i++) {
		const struct report_host *h = &r->host[i];
		const int port = port_of(r, h->port);
		unsigned int segment;

		if (port < 0 || !r->port[port].up || address_is_link_local(&h->address) ||
		    is_node(w, h))
			continue;
		segment = segment_of(w, w->first[node] + port);
		if (!is_known(w, segment, h))
			error = end_add(w, (struct end){ segment, -1, NULL, h });
	}
	return error;
}

/* Nodes first, so that a cable begins at one. */
static int by_segment(const void *a, const void *b)
{
	const struct end *x = a, *y = b;

	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
	if (!x->host != !y->host)
		return x->host ? 1 : -1;
	if (x->host)
		return by_address(&x->host->address, &y->host->address);
	return x->node != y->node ? x->node - y->node : strcmp(x->port->name, y->port->name);
}

/* --- machines and cables --------------------------------------------------------------------- */

/* Letters, digits, dots and _ are what networks of the simulator have in their names. */
static void name_make(const struct drawing *d, const char *text, char ret[PICTURE_NAME_BYTES])
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.";
	size_t length = strlen(text) < NAME_STEM ? strlen(text) : NAME_STEM;
	unsigned int number = 0;
	bool clashes = true;

	snprintf(ret, PICTURE_NAME_BYTES, "%s", text);
	for (char *c = ret; *c; c++)
		if (!strchr(allowed, *c))
			*c = '_';
	while (clashes) {
		clashes = false;
		for (unsigned int i = 0; i < d->machines; i++)
			clashes |= !strcmp(d->machine[i].name, ret);
		if (clashes)
			snprintf(ret + length, PICTURE_NAME_BYTES - length, "_%u", ++number);
	}
}

static unsigned int machine_add(struct drawing *d, enum picture_kind kind, const char *name)
{
	struct picture_machine *m = &d->machine[d->machines];

	*m = (struct picture_machine){ .kind = kind };
	name_make(d, name, m->name);
	return d->machines++;
}

static unsigned int host_add(struct drawing *d, const struct report_host *h)
{
	char text[ADDRESS_BYTES + 1] = "h";
	unsigned int m;

	for (m = 0; m < d->machines; m++)
		if (d->machine[m].kind == PICTURE_HOST &&
		    endpoint_is_equal(&d->machine[m].address, &h->address))
			return m;
	address_print(&h->address, text + 1, sizeof(text) - 1);
	m = machine_add(d, PICTURE_HOST, text);
	d->machine[m].address = h->address;
	return m;
}

static unsigned int machine_of(struct drawing *d, const struct end *e)
{
	return e->host ? host_add(d, e->host) : (unsigned int)e->node;
}

static uint32_t slower(uint32_t a, uint32_t b) { return !a || (b && b < a) ? b : a; }

/* What both ends say of the same direction is the same but for the moment: the larger counts. */
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void port_fill(struct picture_cable *c, int end, const struct report_port *p)
{
	if (!p)
		return;
	snprintf(c->port[end], sizeof(c->port[end]), "%s", p->name);
	c->rate_mbps = slower(c->rate_mbps, p->rate_mbps);
	c->load[end] = larger(c->load[end], p->transmit);
	c->load[!end] = larger(c->load[!end], p->receive);
	c->forecast[end] = larger(c->forecast[end], p->transmit_forecast);
	c->forecast[!end] = larger(c->forecast[!end], p->receive_forecast);
}

static void cable_add(struct drawing *d, unsigned int a, const struct report_port *at_a,
		      unsigned int b, const struct report_port *at_b)
{
	struct picture_cable *c = &d->cable[d->cables++];

	*c = (struct picture_cable){ .end = { a, b } };
	port_fill(c, 0, at_a);
	port_fill(c, 1, at_b);
}

/* A switch has the name of its first node, and of that one's port there. */
static void switch_draw(struct work *w, const struct end *e, unsigned int count)
{
	struct drawing *d = w->out;
	char text[NAME_BYTES + IF_NAMESIZE + 2];
	unsigned int m;

	snprintf(text, sizeof(text), "%s.%s", w->picture->report[e->node]->node, e->port->name);
	m = machine_add(d, PICTURE_SWITCH, text);
	for (unsigned int i = 0; i < count; i++)
		cable_add(d, machine_of(d, &e[i]), e[i].port, m, NULL);
}

static void segment_draw(struct work *w, const struct end *e, unsigned int count)
{
	struct drawing *d = w->out;

	if (count == 2)
		cable_add(d, machine_of(d, &e[0]), e[0].port, machine_of(d, &e[1]), e[1].port);
	else if (count > 2)
		switch_draw(w, e, count);
}

static int draw(struct work *w)
{
	struct drawing *d = w->out;

	d->machine = calloc(w->picture->nodes + 2 * w->ends + 1, sizeof(*d->machine));
	d->cable = calloc(w->ends + 1, sizeof(*d->cable));
	if (!d->machine || !d->cable)
		return -ENOMEM;
	for (unsigned int i = 0; i < w->picture->nodes; i++)
		d->machine[machine_add(d, PICTURE_NODE, w->picture->report[i]->node)].node = i;
	for (unsigned int i = 0, next; i < w->ends; i = next) {
		next = i + 1;
		while (next < w->ends && w->end[next].segment == w->end[i].segment)
			next++;
		segment_draw(w, &w->end[i], next - i);
	}
	return 0;
}

static int work_fill(struct work *w)
{
	const struct picture *p = w->picture;
	unsigned int ports = 0;
	int r;

	w->first = calloc(p->nodes + 1, sizeof(*w->first));
	if (!w->first)
		return -ENOMEM;
	for (unsigned int i = 0; i < p->nodes; i++) {
		w->first[i] = ports;
		ports += p->report[i]->ports;
	}
	w->leads = calloc(ports + 1, sizeof(*w->leads));
	if (!w->leads)
		return -ENOMEM;
	for (unsigned int i = 0; i < ports; i++)
		w->leads[i] = i;
	for (unsigned int i = 0; i < p->nodes; i++)
		meet(w, i);
	r = own_fill(w);
	for (unsigned int i = 0; r == 0 && i < p->nodes; i++)
		r = ends_of(w, i);
	if (r == 0 && w->ends)
		qsort(w->end, w->ends, sizeof(*w->end), by_segment);
	return r;
}

static void work_close(struct work *w)
{
	free(w->first);
	free(w->leads);
	free(w->end);
	free(w->own);
	free(w->mac);
}

int drawing_make(const struct picture *p, struct drawing *ret)
{
	struct drawing d = { 0 };
	struct work w = { .picture = p, .out = &d };
	int r = work_fill(&w);

	if (r == 0)
		r = draw(&w);
	work_close(&w);
	if (r < 0)
		drawing_close(&d);
	else
		*ret = d;
	return r;
}
