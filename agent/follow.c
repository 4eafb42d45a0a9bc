// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Neighbours get other MACs while jobs run: the copies of results are readdressed. */
#include <errno.h>
#include <stdlib.h>

#include "agent.h"
#include "agent/core/mac_cache.h"
#include "agent/edge/log.h"
#include "agent/edge/netlink_links.h"

enum {
	FOLLOW_US = 500000, /* from the first word of a change: many may come at once */
};

/* Next hops of a run's copies, as far as they are known now: the others keep what they have. */
static int hops_read(struct agent *a, const struct job *j, struct hop *hops, unsigned int *ret)
{
	_cleanup_(freep) struct run *file = malloc(sizeof(*file));
	_cleanup_(freep) struct installation *g = malloc(sizeof(*g));
	const struct installation_role role = { .root = true };
	struct why ignored;
	int r;

	if (!file || !g)
		return -ENOMEM;
	job_this_run(j, file);
	r = installation_plan(file, &role, g, &ignored);
	for (unsigned int i = 0; r == 0 && i < g->copies; i++)
		if (netlink_resolve(a->netlink, &g->copy[i].address, 0, &hops[i], &ignored) < 0)
			hops[i].port = 0;
	*ret = g->copies;
	return r;
}

static void run_follow(struct agent *a, const struct job *j)
{
	_cleanup_(freep) struct hop *hops = calloc(TALLY_WORKERS_MAX, sizeof(*hops));
	unsigned int count = 0, changed = 0, elsewhere = 0;
	struct why why = { "" };
	int r;

	r = hops ? hops_read(a, j, hops, &count) : -ENOMEM;
	if (r == 0)
		r = dataplane_job_follow(a->dataplane, j->id, hops, count, &changed, &elsewhere,
					 &why);
	if (r < 0)
		log_say(LOG_LEVEL_ERROR, "neighbours not followed", "job=%s reason=\"%s\"", j->name,
			why.text);
	if (changed)
		log_say(LOG_LEVEL_INFO, "neighbours followed", "job=%s workers=%u", j->name,
			changed);
	if (elsewhere)
		log_say(LOG_LEVEL_WARNING, "routes not followed",
			"job=%s workers=%u reason=\"these workers moved to another port; the "
			"results of this run still leave by the old one\"",
			j->name, elsewhere);
}

static int on_follow(sd_event_source *source, uint64_t us, void *data)
{
	struct agent *a = data;

	a->follower = sd_event_source_disable_unref(a->follower);
	for (unsigned int i = 0; i < a->books.jobs; i++)
		if (a->books.job[i]->run_window)
			run_follow(a, a->books.job[i]);
	return 0;
}

void follow_all(struct agent *a)
{
	if (a->follower)
		return;
	if (sd_event_add_time_relative(a->loop, &a->follower, CLOCK_MONOTONIC, FOLLOW_US, FOLLOW_US,
				       on_follow, a) < 0)
		log_say(LOG_LEVEL_ERROR, "neighbours not followed", "reason=\"no memory\"");
}

void follow_neighbour(struct agent *a, const struct netlink_neighbour *n)
{
	if (n->known && mac_cache_learn(a->macs, n->ifindex, &n->address, n->mac))
		follow_all(a);
}

int follow_open(struct agent *a)
{
	a->macs = calloc(1, sizeof(*a->macs));
	if (!a->macs)
		return -ENOMEM;
	follow_all(a); /* what changed while there was no agent */
	return 0;
}

void follow_close(struct agent *a)
{
	a->follower = sd_event_source_disable_unref(a->follower);
	free(a->macs);
	a->macs = NULL;
}
