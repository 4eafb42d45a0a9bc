// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ways that a run's packets take, which are known by now: may it begin by these? */
#include <errno.h>

#include "astray.h"
#include "common/address.h"
#include "core_private.h"
#include "payload.h"

/* -EHOSTUNREACH: a worker is behind an interface that tallyd does not have. */
static int ports_check(const struct core *c, const struct installation *g, struct why *why)
{
	char text[ADDRESS_BYTES];

	for (unsigned int i = 0; i < g->copies; i++) {
		if (*core_port_name(c, g->copy[i].hop.port))
			continue;
		address_print(&g->copy[i].address, text, sizeof(text));
		return why_say(why, -EHOSTUNREACH,
			       "%s: is behind %s, which is none of tallyd's ports, or has gone: "
			       "add it to ports: in %s, then tallyctl reload",
			       text, g->copy[i].hop.port_name, c->path);
	}
	return 0;
}

/* Of an inner run: sums leave towards the root, and its results come by the same port. */
static int root_check(const struct core *c, const struct job *j, const struct hop *hop,
		      struct why *why)
{
	const struct tenant *t = &c->books.tenant[j->tenant].is;
	const char *port = core_port_name(c, hop->port);
	char text[ADDRESS_BYTES];

	if (*port && tenant_may_come(t, port, &j->service))
		return 0;
	address_print(&j->service, text, sizeof(text));
	if (*port)
		return why_say(why, -EPERM,
			       "results of the root %s come in by %s, where tenant %s may not: "
			       "give it an ingress point there, too",
			       text, port, t->name);
	return why_say(why, -EHOSTUNREACH,
		       "the way to the root %s leaves by %s, which is none of tallyd's ports, or "
		       "has gone: add it to ports: in %s, then tallyctl reload",
		       text, hop->port_name, c->path);
}

/* Where the tree was written: one that agents find is as routes are. */
static void astray_note(struct core *c, const struct installation *g)
{
	struct job *j = g->job.root ? c->begin.job : c->inner.job;
	struct tally_set astray;

	if (!j || j->id != g->id || (!j->tree && !j->document) || job_tree_moves(j))
		return;
	astray = g->job.root ? astray_at_root(j, g) : astray_at_inner(g, c->result->result.hop);
	astray_say(&astray, &j->astray);
	if (*j->astray.text)
		core_log(c, LOG_LEVEL_WARNING, "ranks are astray", "job=%s reason=\"%s\"", j->name,
			 j->astray.text);
}

int run_address(struct core *c, struct installation *g)
{
	int r = 0;

	if (!g->job.root)
		r = root_check(c, c->inner.job, c->result->result.hop, &c->why);
	if (r == 0)
		r = ports_check(c, g, &c->why);
	if (r < 0)
		return r;
	astray_note(c, g);
	if (c->begin.job && c->begin.job == c->install.job)
		payload_follow_hops(c->begin.job, g);
	return installation_address(g, &c->why);
}
