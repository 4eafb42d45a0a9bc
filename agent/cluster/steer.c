// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/address.h"

/*
 * Packets between two machines: they take the way from its place `first` on up to the root, and
 * back down there.
 */
struct pair {
	const struct sockaddr_storage *machine, *root;
	const struct wanted_way *way;
	unsigned int first; /* the node next to the worker; or the one that sums, itself */
	bool sums; /* the machine is a node that sums: up go packets with workers' addresses */
	const char *job;
};

enum {
	PAIRS_MAX = STEER_WAYS_MAX / 2, /* each has a way up and one down */
};

enum link_trouble {
	LINK_HOLDS,
	LINK_UNHEARD, /* a does not hear b, */
	LINK_UNANSWERED, /* or b does not hear a there */
	LINK_SEVERAL,
	LINK_SHARED,
};

struct link {
	const struct report *a, *b;
	const struct report_near *near; /* of a */
	enum link_trouble trouble;
};

enum {
	LINKS_MAX = 256,
};

/* That are remembered, as steps of many ways have them; of more, some are looked for once more. */
struct links {
	unsigned int count;
	struct link link[LINKS_MAX];
};

/* The ways that hold so far, and those of the job that is looked at. */
struct work {
	const struct picture *picture;
	const char *node;
	struct steer *ret;
	unsigned int count;
	struct pair pair[PAIRS_MAX];
	struct links *links;
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

static bool is_machine(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage x = *a, y = *b;

	endpoint_port_set(&x, TALLY_UDP_PORT);
	endpoint_port_set(&y, TALLY_UDP_PORT);
	return endpoint_is_equal(&x, &y);
}

const struct steer_route *steer_route_find(const struct steer *s,
					   const struct sockaddr_storage *from,
					   const struct sockaddr_storage *to)
{
	for (unsigned int i = 0; i < s->routes; i++)
		if (is_machine(&s->route[i].from, from) && is_machine(&s->route[i].to, to))
			return &s->route[i];
	return NULL;
}

static bool route_is_equal(const struct steer_route *a, const struct steer_route *b)
{
	return endpoint_is_equal(&a->from, &b->from) && endpoint_is_equal(&a->to, &b->to) &&
	       endpoint_is_equal(&a->gateway, &b->gateway) && !strcmp(a->port, b->port) &&
	       a->sums == b->sums;
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

/*
 * A machine that is not b, at a's port: another node, or one that the kernel knows. Addresses of
 * the link are left out: reports do not say whose they are, and b has one, which the kernel knows
 * as soon as it is a next hop.
 */
static bool is_shared(const struct report *a, const char *port, const struct report *b)
{
	for (unsigned int i = 0; i < a->nears; i++)
		if (!strcmp(a->near[i].port, port) && strcmp(a->near[i].node, b->node) != 0)
			return true;
	for (unsigned int i = 0; i < a->hosts; i++) {
		bool is_b = strcmp(a->host[i].port, port) != 0 ||
			    address_is_link_local(&a->host[i].address);

		for (unsigned int k = 0; k < b->addresses && !is_b; k++)
			is_b = is_machine(&a->host[i].address, &b->address[k]);
		if (!is_b)
			return true;
	}
	return false;
}

/*
 * Hellos have no proof: who is at a port of each of two nodes may say that these hear each other
 * there. So the link counts that is the only one, and where nobody else is seen.
 */
static struct link link_look(const struct report *a, const struct report *b)
{
	struct link l = { .a = a, .b = b, .trouble = LINK_UNHEARD };

	for (const struct report_near *n = near_find(a, b->node, a->near); n;
	     n = near_find(a, b->node, n + 1)) {
		if (l.trouble == LINK_UNHEARD)
			l.trouble = LINK_UNANSWERED;
		if (!hears_back(b, a->node, n))
			continue;
		l.trouble = l.near ? LINK_SEVERAL : LINK_HOLDS;
		if (l.near)
			return l;
		l.near = n;
	}
	if (l.near && (is_shared(a, l.near->port, b) || is_shared(b, l.near->at, a)))
		l.trouble = LINK_SHARED;
	return l;
}

/* The link from a to b, as a has it: looked for once. NULL: there is none, and why. */
static const struct report_near *link_find(struct links *known, const struct report *a,
					   const struct report *b, struct why *why)
{
	static const char *const words[] = {
		[LINK_UNHEARD] = "%s does not hear %s",
		[LINK_UNANSWERED] = "%2$s does not hear %1$s",
		[LINK_SEVERAL] = "%s and %s hear each other at several links",
		[LINK_SHARED] = "there are other machines at the link from %s to %s",
	};
	struct link *l = known->link;

	while (l < known->link + known->count && (l->a != a || l->b != b))
		l++;
	if (l == known->link + LINKS_MAX)
		l = &known->link[known->count = 0];
	if (l == known->link + known->count) {
		*l = link_look(a, b);
		known->count++;
	}
	if (l->trouble == LINK_HOLDS)
		return l->near;
	why_say(why, 0, words[l->trouble], a->node, b->node);
	return NULL;
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

/* From one node of a way to its neighbour there: `ret` is the route, without its machines. */
static bool step_make(const struct work *w, const char *from, const char *to, int family,
		      struct steer_route *ret, struct why *why)
{
	const struct report *a = report_find(w, from), *b = report_find(w, to);
	const struct report_near *link = link_find(w->links, a, b, why);

	*ret = (struct steer_route){ 0 };
	if (!link || !gateway_find(b, link->at, family, &ret->gateway, why))
		return false;
	memcpy(ret->port, link->port, sizeof(ret->port));
	return true;
}

/* --- pairs of machines ----------------------------------------------------------------------- */

static bool is_same_way(const struct pair *a, const struct pair *b)
{
	const unsigned int nodes = a->way->nodes - a->first;

	if (b->way->nodes - b->first != nodes)
		return false;
	for (unsigned int i = 0; i < nodes; i++)
		if (strcmp(a->way->node[a->first + i], b->way->node[b->first + i]) != 0)
			return false;
	return true;
}

/*
 * Rules know no jobs: packets from one machine to another have one way. Where each of two machines
 * is the root of what the other one sums, results go one way each, and do not meet.
 */
static bool is_contrary(const struct pair *a, const struct pair *b)
{
	if (endpoint_is_equal(a->machine, b->root) && endpoint_is_equal(a->root, b->machine))
		return !a->sums || !b->sums;
	return endpoint_is_equal(a->machine, b->machine) && endpoint_is_equal(a->root, b->root) &&
	       (a->sums != b->sums || !is_same_way(a, b));
}

static bool is_there(const struct work *w, const struct pair *p)
{
	for (unsigned int i = 0; i < w->count; i++)
		if (endpoint_is_equal(w->pair[i].machine, p->machine) &&
		    endpoint_is_equal(w->pair[i].root, p->root))
			return true;
	return false;
}

/* False: packets between these machines have another way already. */
static bool pair_add(struct work *w, const struct pair *p, struct why *why)
{
	for (unsigned int i = 0; i < w->count; i++)
		if (is_contrary(&w->pair[i], p)) {
			why_say(why, 0,
				p->sums ? "job %s has another way from the same root to one of its "
					  "nodes that sum"
					: "job %s has another way from one of its workers to the "
					  "same root",
				w->pair[i].job);
			return false;
		}
	if (!is_there(w, p))
		w->pair[w->count++] = *p;
	return true;
}

/* --- ways ------------------------------------------------------------------------------------ */

static bool is_neighbour(const struct report *r, const struct sockaddr_storage *worker)
{
	for (unsigned int i = 0; i < r->hosts; i++)
		if (endpoint_is_equal(&r->host[i].address, worker))
			return true;
	return false;
}

/*
 * The first node hands results to the worker as routing has it. If another one is next to the
 * worker, that may lead back onto the way, and the results in a circle.
 */
static bool is_next_to(const struct work *w, const struct wanted_way *way, struct why *why)
{
	char worker[ADDRESS_BYTES];

	if (is_neighbour(report_find(w, way->node[0]), &way->worker))
		return true;
	for (unsigned int i = 0; i < w->picture->nodes; i++) {
		if (!is_neighbour(w->picture->report[i], &way->worker))
			continue;
		address_print(&way->worker, worker, sizeof(worker));
		why_say(why, 0, "%s is next to %s, and not to %s", worker,
			w->picture->report[i]->node, way->node[0]);
		return false;
	}
	return true;
}

static bool way_holds(const struct work *w, const struct wanted_way *way, struct why *why)
{
	const int family = way->worker.ss_family;
	struct steer_route ignored;

	for (unsigned int i = 0; i < way->nodes; i++) {
		const struct report *r = report_find(w, way->node[i]);

		if (!r || !r->steers) {
			why_say(why, 0, "%s %s", way->node[i],
				r ? "does not steer" : "reports nothing");
			return false;
		}
	}
	for (unsigned int i = 0; i + 1 < way->nodes; i++)
		if (!step_make(w, way->node[i], way->node[i + 1], family, &ignored, why) ||
		    !step_make(w, way->node[i + 1], way->node[i], family, &ignored, why))
			return false;
	return is_next_to(w, way, why);
}

/* All ways that pass the node are the same from there on (wanted_ways_check()). */
static bool sum_add(struct work *w, const char *job, const struct wanted_ways *ways,
		    const char *node, struct why *why)
{
	const struct report *r = report_find(w, node);
	struct pair p = { .root = &ways->address, .sums = true, .job = job };
	int at = -1;

	for (unsigned int i = 0; at < 0 && i < ways->ways; i++) {
		p.way = &ways->way[i];
		at = wanted_way_place(p.way, node);
	}
	if (!r->inner) {
		why_say(why, 0, "%s takes no parts: it has no peers.secret", node);
		return false;
	}
	p.first = (unsigned int)at;
	p.machine = report_service_find(r, ways->address.ss_family);
	return !p.machine || pair_add(w, &p, why); /* without an address it sums nothing */
}

static bool ways_hold(struct work *w, const char *job, const struct wanted_ways *ways,
		      struct why *why)
{
	if (w->count + ways->ways + ways->sums > PAIRS_MAX) {
		why_say(why, 0, "jobs before it have %u ways up and down, and there can be %d",
			2 * w->count, STEER_WAYS_MAX);
		return false;
	}
	for (unsigned int i = 0; i < ways->ways; i++) {
		const struct pair p = { .machine = &ways->way[i].worker,
					.root = &ways->address,
					.way = &ways->way[i],
					.job = job };

		if (!way_holds(w, p.way, why) || !pair_add(w, &p, why))
			return false;
	}
	for (unsigned int i = 0; i < ways->sums; i++)
		if (!sum_add(w, job, ways, ways->sum[i], why))
			return false;
	return true;
}

/* --- this node's part ------------------------------------------------------------------------ */

static int route_add(struct work *w, const struct pair *p, unsigned int at, bool is_up)
{
	struct steer_route *more = reallocarray(w->ret->route, w->ret->routes + 1, sizeof(*more));
	struct steer_route *r;
	struct why ignored;

	if (!more)
		return -ENOMEM;
	w->ret->route = more;
	r = &more[w->ret->routes++];
	step_make(w, w->node, p->way->node[is_up ? at + 1 : at - 1], p->root->ss_family, r,
		  &ignored);
	r->from = is_up ? *p->machine : *p->root;
	r->to = is_up ? *p->root : *p->machine;
	r->sums = is_up && p->sums;
	return 0;
}

static int pair_apply(struct work *w, const struct pair *p)
{
	const int place = wanted_way_place(p->way, w->node);
	const unsigned int at = (unsigned int)place;
	int r = 0;

	if (place < 0 || at < p->first)
		return 0;
	if (at + 1 < p->way->nodes && (!p->sums || at == p->first))
		r = route_add(w, p, at, true);
	if (r == 0 && at > p->first)
		r = route_add(w, p, at, false);
	return r;
}

static int job_add(struct work *w, const char *name, const struct wanted_ways *ways)
{
	struct steer_job *more = reallocarray(w->ret->job, w->ret->jobs + 1, sizeof(*more)), *j;
	const unsigned int before = w->count;
	int r = 0;

	if (!more)
		return -ENOMEM;
	w->ret->job = more;
	j = &more[w->ret->jobs++];
	*j = (struct steer_job){ 0 };
	snprintf(j->name, sizeof(j->name), "%s", name);
	if (!ways_hold(w, name, ways, &j->why))
		w->count = before;
	for (unsigned int i = before; r == 0 && i < w->count; i++)
		r = pair_apply(w, &w->pair[i]);
	return r;
}

int steer_make(const struct shared *s, const struct picture *p, const char *node, struct steer *ret)
{
	struct steer made = { 0 };
	struct links links = { 0 };
	struct work w = { .picture = p, .node = node, .ret = &made, .links = &links };
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
