// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <string.h>

#include "plan.h"

static void step_add(struct plan *p, enum plan_act act, uint32_t id, unsigned int index)
{
	p->step[p->steps++] = (struct plan_step){ act, id, index };
}

/* Is this run what the maps have of the job, and is its tenant right too? */
static bool is_run(const struct job *j, const struct tables_job *there)
{
	return there && !there->broken && there->job.epoch == j->epoch &&
	       there->job.tenant == j->tenant && there->job.borrows == j->borrows;
}

static bool is_wanted(const struct books *b, const struct tables_job *there)
{
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->id == there->id)
			return job_is_in_maps(b->job[i]) && is_run(b->job[i], there);
	return false;
}

void plan_make(const struct books *wanted, const struct tables *now, struct plan *ret)
{
	ret->steps = 0;
	for (unsigned int i = 0; i < now->jobs; i++)
		if (!is_wanted(wanted, &now->job[i]))
			step_add(ret, PLAN_JOB_DEL, now->job[i].id, 0);
	for (unsigned int i = 1; i < TALLY_TENANTS_MAX; i++)
		if (*wanted->tenant[i].is.name)
			step_add(ret, PLAN_TENANT_PUT, 0, i);
	for (unsigned int i = 0; i < wanted->jobs; i++) {
		const struct job *j = wanted->job[i];

		if (j->run_window && j->spilled)
			step_add(ret, PLAN_JOB_SPILL, j->id, i);
		if (job_is_in_maps(j))
			step_add(ret,
				 is_run(j, tables_find(now, j->id)) ? PLAN_JOB_GATES : PLAN_JOB_ADD,
				 j->id, i);
	}
}

static bool is_restricted(const struct tenant_point *p)
{
	return p->vlan != TENANT_VLAN_ANY || p->source.ss_family;
}

/* How many points the tenant has at a port, and how many of them leave it open. */
static unsigned int points_at(const struct tenant *t, const char *port, unsigned int *ret_open)
{
	unsigned int points = 0;

	*ret_open = 0;
	for (unsigned int i = 0; i < t->points; i++) {
		if (strcmp(t->point[i].port, port) != 0)
			continue;
		points++;
		*ret_open += !is_restricted(&t->point[i]);
	}
	return points;
}

unsigned int plan_gates(const struct tenant *t, const struct dataplane_port *ports,
			unsigned int count, struct dataplane_gate *ret)
{
	unsigned int gates = 0;

	for (unsigned int i = 0; i < count; i++) {
		unsigned int open, points = points_at(t, ports[i].name, &open);

		if (ports[i].ifindex && points)
			ret[gates++] = (struct dataplane_gate){ .ifindex = ports[i].ifindex,
								.restricted = !open };
	}
	return gates;
}

/* The tenant's points at one port. */
static unsigned int points_put(const struct tenant *t, const struct dataplane_port *port,
			       struct dataplane_source *ret)
{
	unsigned int count = 0;

	for (unsigned int k = 0; port->ifindex && k < t->points; k++)
		if (!strcmp(t->point[k].port, port->name))
			ret[count++] = (struct dataplane_source){
				.ifindex = port->ifindex,
				.vlan = t->point[k].vlan,
				.address = t->point[k].source,
				.bits = t->point[k].source_bits,
			};
	return count;
}

unsigned int plan_points(const struct tenant *t, const struct dataplane_port *ports,
			 unsigned int count, struct dataplane_source *ret)
{
	unsigned int points = 0;

	for (unsigned int i = 0; i < count; i++)
		points += points_put(t, &ports[i], ret + points);
	return points;
}

unsigned int plan_sources(const struct tenant *t, const struct dataplane_port *ports,
			  unsigned int count, struct dataplane_source *ret)
{
	unsigned int sources = 0, open;

	for (unsigned int i = 0; i < count; i++)
		if (points_at(t, ports[i].name, &open) && !open)
			sources += points_put(t, &ports[i], ret + sources);
	return sources;
}
