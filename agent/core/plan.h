/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What must be done in the data plane so that it is as the books say. Pure. Start, restart,
 * reload and every request go the same way: read what is, plan, apply.
 */
#ifndef TALLY_AGENT_PLAN_H
#define TALLY_AGENT_PLAN_H

#include "books.h"
#include "tables.h"

enum plan_act {
	PLAN_TENANT_PUT, /* limits and ingress points of tenant `index` */
	PLAN_JOB_DEL, /* job `id` is not wanted, or only in another epoch */
	PLAN_JOB_SPILL, /* the run of books->job[index], in software */
	PLAN_JOB_ADD, /* the same, in the maps; also besides, where it borrows */
	PLAN_JOB_GATES, /* where the messages of books->job[index] may come in */
};

struct plan_step {
	enum plan_act act;
	uint32_t id;
	unsigned int index;
};

enum {
	PLAN_STEPS_MAX = TALLY_TENANTS_MAX + 3 * TALLY_JOBS_MAX,
};

struct plan {
	unsigned int steps;
	struct plan_step step[PLAN_STEPS_MAX];
};

/* From `now`, which the maps have; broken jobs go like those that are not wanted. Deletions come
 * first, then tenants, then the rest. */
void plan_make(const struct books *wanted, const struct tables *now, struct plan *ret);

/*
 * Which of the node's ports messages of a tenant's jobs may come in by, if the tenant has ingress
 * points (otherwise by any); `ret` has room for `count`. A port is restricted if every ingress
 * point there names a VLAN or a source.
 */
unsigned int plan_gates(const struct tenant *t, const struct dataplane_port *ports,
			unsigned int count, struct dataplane_gate *ret);

/* The ingress points at ports that are there; `ret` has room for TENANT_POINTS_MAX. */
unsigned int plan_points(const struct tenant *t, const struct dataplane_port *ports,
			 unsigned int count, struct dataplane_source *ret);

/* The same of restricted ports alone. */
unsigned int plan_sources(const struct tenant *t, const struct dataplane_port *ports,
			  unsigned int count, struct dataplane_source *ret);

#endif
