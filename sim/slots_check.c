// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Policies of scarce slots, and what a simulation of them may be asked. */
#include <errno.h>
#include <string.h>

#include "slots.h"

const struct slots_policy SLOTS_POLICIES[] = {
	{ "static", "rings of reserved slots, as SwitchML", .is_static = true },
	{ "fcfs", "first come, first served, as ATP", .rule = { .holds = true } },
	{ "early", "free as soon as the sum has left", .rule = { .holds = false } },
	{ "evict", "early, and the later one takes the slot", .rule = { .preempts = true } },
	{ "priority", "early, and the higher one takes it",
	  .rule = { .preempts = true, .by_priority = true } },
	{ "esa", "priority, and downgrade",
	  .rule = { .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "esa-late", "esa, and free with the result only",
	  .rule = { .holds = true, .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "second", "esa, with one priority for all", .same_priority = true,
	  .rule = { .preempts = true, .by_priority = true, .downgrade = 1 } },
	{ "ranges", "evict, each job in a range of the pool, as tallyd", .in_ranges = true,
	  .rule = { .preempts = true } },
};

const unsigned int SLOTS_POLICIES_COUNT = sizeof(SLOTS_POLICIES) / sizeof(*SLOTS_POLICIES);

const struct slots_policy *slots_policy_find(const char *name)
{
	for (unsigned int i = 0; i < SLOTS_POLICIES_COUNT; i++)
		if (strcmp(SLOTS_POLICIES[i].name, name) == 0)
			return &SLOTS_POLICIES[i];
	return NULL;
}

static int refuse_job(unsigned int i, const char *what, struct why *why)
{
	return why_say(why, -EINVAL, "job %u: %s", i, what);
}

static int check_jobs(const struct slots_options *o, struct why *why)
{
	for (unsigned int i = 0; i < o->jobs; i++) {
		const struct slots_job *j = &o->job[i];

		if (j->workers < 1 || j->workers > SLOTS_WORKERS_MAX)
			return refuse_job(i, "it may have 1 to 64 workers", why);
		if (j->iterations < 1 || j->chunks < 1)
			return refuse_job(i, "it needs an iteration and a chunk", why);
		if ((uint64_t)j->iterations * j->chunks > UINT32_MAX)
			return refuse_job(i, "it has more than 2^32 chunks", why);
	}
	return 0;
}

int slots_check(const struct slots_options *o, struct why *why)
{
	if (o->jobs < 1 || o->jobs > SLOTS_JOBS_MAX)
		return why_say(why, -EINVAL, "%u jobs: 1 to %d may share a node", o->jobs,
			       SLOTS_JOBS_MAX);
	if (o->slots < 1 || o->slots > SLOTS_MAX)
		return why_say(why, -EINVAL, "%u slots: a node has 1 to %d", o->slots, SLOTS_MAX);
	if (o->policy->is_static && o->slots / o->jobs < 2)
		return why_say(why, -EINVAL, "%u slots: %s needs two for each of %u jobs at least",
			       o->slots, o->policy->name, o->jobs);
	if (o->window < 1 || o->window > TALLY_WINDOW_MAX)
		return why_say(why, -EINVAL, "window %u: 1 to %d", o->window, TALLY_WINDOW_MAX);
	return check_jobs(o, why);
}
