// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"

/* The ways that hold so far. */
struct work {
	const struct picture *picture;
	const char *node;
	struct steer *ret;
	unsigned int count;
	struct {
		const struct wanted_way *way;
		const struct sockaddr_storage *to;
		const char *job;
	} held[STEER_WAYS_MAX];
};

void steer_close(struct steer *s)
{
	free(s->route);
	free(s->job);
	*s = (struct steer){ 0 };
}

const struct steer_job *steer_job_find(const struct steer *s, const char *job)
{
	for (unsigned int i = 0; i < s->jobs; i++)
		if (!strcmp(s->job[i].name, job))
			return &s->job[i];
	return NULL;
}

static bool route_is_equal(const struct steer_route *a, const struct steer_route *b)
{
	return endpoint_is_equal(&a->from, &b->from) && endpoint_is_equal(&a->to, &b->to) &&
	       endpoint_is_equal(&a->gateway, &b->gateway) && !strcmp(a->port, b->port);
}

bool steer_is_equal(const struct steer *a, const struct steer *b)
{
	if (a->routes != b->routes || a->jobs != b->jobs)
		return false;
	for (unsigned int i = 0; i < a->routes; i++)
		if (!route_is_equal(&a->route[i], &b->route[i]))
			return false;
	for (unsigned int i = 0; i < a->jobs; i++)
		if (strcmp(a->job[i].name, b->job[i].name) != 0 ||
		    strcmp(a->job[i].why.text, b->job[i].why.text) != 0)
			return false;
	return true;
}

/* --- links ----------------------------------------------------------------------------------- */

static const struct report *report_find(const struct work *w, const char *node)
{
	const int at = picture_place(w->picture, node);

	return at < 0 ? NULL : w->picture->report[at];
}

static const struct report_port *port_up(const struct report *r, const char *name)
{
	for (unsigned int i = 0; i < r->ports; i++)
		if (r->port[i].up && !strcmp(r->port[i].name, name))
			return &r->port[i];
	return NULL;
}

/* At which of a's ports is b heard, at one that is up? From `first` on; NULL: at none. */
static const struct report_near *near_find(const struct report *a, const char *b,
					   const struct report_near *first)
{
	for (const struct report_near *n = first; n < a->near + a->nears; n++)
		if (!strcmp(n->node, b) && port_up(a, n->port))
			return n;
	return NULL;
}

static bool hears_back(const struct report *b, const char *a, const struct report_near *n)
{
	for (const struct report_near *m = near_find(b, a, b->near); m; m = near_find(b, a, m + 1))
		if (!strcmp(m->port, n->at) && !strcmp(m->at, n->port))
			return true;
	return false;
}

/* The first link from a to b, as a has it. */
static const struct report_near *link_find(const struct report *a, const struct report *b,
					   struct why *why)
{
	const struct report_near *n = near_find(a, b->node, a->near);
	const bool heard = n;

	while (n && !hears_back(b, a->node, n))
		n = near_find(a, b->node, n + 1);
	if (!n)
		why_say(why, 0, "%s does not hear %s", heard ? b->node : a->node,
			heard ? a->node : b->node);
	return n;
}

/* The address of the next node's port. */
static bool gateway_find(const struct report *next, const char *port, int family,
			 struct sockaddr_storage *ret, struct why *why)
{
	const struct report_port *p = port_up(next, port);
	const char *text = family == AF_INET ? p->ip4 : p->ip6;

	if (address_parse(text, TALLY_UDP_PORT, ret) == 0 && ret->ss_family == family)
		return true;
	why_say(why, 0, "%s has no IPv%c address at %s", next->node, family == AF_INET ? '4' : '6',
		port);
	return false;
}

/* --- ways ------------------------------------------------------------------------------------ */

static bool same_nodes(const struct wanted_way *a, const struct wanted_way *b)
{
	if (a->nodes != b->nodes)
		return false;
	for (unsigned int i = 0; i < a->nodes; i++)
		if (strcmp(a->node[i], b->node[i]) != 0)
			return false;
	return true;
}

/* One job's way that holds is of the same packets: rules know no jobs. -1: there is none. */
static int held_find(const struct work *w, const struct wanted_way *way,
		     const struct sockaddr_storage *to)
{
	for (unsigned int i = 0; i < w->count; i++)
		if (endpoint_is_equal(&w->held[i].way->worker, &way->worker) &&
		    endpoint_is_equal(w->held[i].to, to))
			return (int)i;
	return -1;
}

/* From this node of the way to the next: `ret` is the route there. */
static bool step_make(const struct work *w, const struct wanted_ways *ways,
		      const struct wanted_way *way, unsigned int at, struct steer_route *ret,
		      struct why *why)
{
	const struct report *a = report_find(w, way->node[at]);
	const struct report *b = report_find(w, way->node[at + 1]);
	const struct report_near *link = link_find(a, b, why);

	if (!link || !gateway_find(b, link->at, ways->address.ss_family, &ret->gateway, why))
		return false;
	ret->from = way->worker;
	ret->to = ways->address;
	memcpy(ret->port, link->port, sizeof(ret->port));
	return true;
}

static bool way_holds(const struct work *w, const struct wanted_ways *ways,
		      const struct wanted_way *way, struct why *why)
{
	const int held = held_find(w, way, &ways->address);
	struct steer_route ignored;

	if (held >= 0 && !same_nodes(w->held[held].way, way)) {
		why_say(why, 0, "job %s has another way from one of its workers to the same root",
			w->held[held].job);
		return false;
	}
	for (unsigned int i = 0; i < way->nodes; i++) {
		const struct report *r = report_find(w, way->node[i]);

		if (!r || !r->steers) {
			why_say(why, 0, "%s %s", way->node[i],
				r ? "does not steer" : "reports nothing");
			return false;
		}
	}
	for (unsigned int i = 0; i + 1 < way->nodes; i++)
		if (!step_make(w, ways, way, i, &ignored, why))
			return false;
	return true;
}

static bool ways_hold(const struct work *w, const struct wanted_ways *ways, struct why *why)
{
	if (w->count + ways->ways > STEER_WAYS_MAX) {
		why_say(why, 0, "jobs before it have %u ways, and there can be %d", w->count,
			STEER_WAYS_MAX);
		return false;
	}
	for (unsigned int i = 0; i < ways->ways; i++)
		if (!way_holds(w, ways, &ways->way[i], why))
			return false;
	for (unsigned int i = 0; i < ways->sums; i++)
		if (!report_find(w, ways->sum[i])->inner) {
			why_say(why, 0, "%s takes no parts: it has no peers.secret", ways->sum[i]);
			return false;
		}
	return true;
}

/* This node's part of it. */
static int way_add(struct work *w, const char *job, const struct wanted_ways *ways,
		   const struct wanted_way *way)
{
	const int at = wanted_way_place(way, w->node);
	struct steer_route *more;
	struct why ignored;

	if (held_find(w, way, &ways->address) >= 0)
		return 0; /* with another job's */
	w->held[w->count].way = way;
	w->held[w->count].to = &ways->address;
	w->held[w->count++].job = job;
	if (at < 0 || (unsigned int)at + 1 == way->nodes)
		return 0;
	more = reallocarray(w->ret->route, w->ret->routes + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->ret->route = more;
	more[w->ret->routes] = (struct steer_route){ 0 };
	step_make(w, ways, way, (unsigned int)at, &more[w->ret->routes++], &ignored);
	return 0;
}

static int job_add(struct work *w, const char *name, const struct wanted_ways *ways)
{
	struct steer_job *more = reallocarray(w->ret->job, w->ret->jobs + 1, sizeof(*more)), *j;
	int r = 0;

	if (!more)
		return -ENOMEM;
	w->ret->job = more;
	j = &more[w->ret->jobs++];
	*j = (struct steer_job){ 0 };
	snprintf(j->name, sizeof(j->name), "%s", name);
	if (!ways_hold(w, ways, &j->why))
		return 0;
	for (unsigned int i = 0; r == 0 && i < ways->ways; i++)
		r = way_add(w, name, ways, &ways->way[i]);
	return r;
}

int steer_make(const struct shared *s, const struct picture *p, const char *node, struct steer *ret)
{
	struct steer made = { 0 };
	struct work w = { .picture = p, .node = node, .ret = &made };
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < s->jobs; i++)
		if (shared_ways(s->job[i]))
			r = job_add(&w, s->job[i]->name, shared_ways(s->job[i]));
	if (r < 0)
		steer_close(&made);
	else
		*ret = made;
	return r;
}
