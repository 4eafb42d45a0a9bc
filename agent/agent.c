// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The data plane is brought to what the books say, and the traffic is watched. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent.h"
#include "agent/core/plan.h"
#include "agent/edge/books_file.h"
#include "agent/edge/log.h"
#include "agent/edge/netlink_links.h"
#include "agent/edge/port_reach.h"
#include "common/clock.h"

enum {
	SAVE_US = 100000, /* from a change that may be lost to the disk */
	FRESH_NS = 100000000, /* a sample is so long as good as new, whoever asks how often */
};

int agent_save(struct agent *a, struct why *why)
{
	return books_write(&a->books, a->config->state, why);
}

void agent_save_now(struct agent *a)
{
	struct why why = { "" };

	if (!a->saver)
		return;
	a->saver = sd_event_source_disable_unref(a->saver);
	if (agent_save(a, &why) < 0)
		log_say(LOG_LEVEL_ERROR, "books not written", "reason=\"%s\"", why.text);
}

static int on_save(sd_event_source *source, uint64_t us, void *data)
{
	agent_save_now(data);
	return 0;
}

void agent_save_soon(struct agent *a)
{
	if (a->saver)
		return;
	if (sd_event_add_time_relative(a->loop, &a->saver, CLOCK_MONOTONIC, SAVE_US, SAVE_US,
				       on_save, a) < 0)
		log_say(LOG_LEVEL_ERROR, "books not written", "reason=\"no memory\"");
}

int agent_meet(struct agent *a, const struct sockaddr_storage *address, struct why *why)
{
	struct hop hop;
	int r;

	r = netlink_resolve(a->netlink, address, 0, &hop, why);
	return r == -EHOSTUNREACH ? 0 : r;
}

/* --- jobs in the data plane ------------------------------------------------------------------ */

/*
 * Next hops of all copies. They were asked for when the workers came; all together are waited for
 * as long as one neighbour is, since nobody else is served meanwhile.
 */
static int hops_find(struct agent *a, struct installation *g, struct why *why)
{
	uint64_t end_ns = clock_now_ns() + HOP_WAIT_MS * 1000000ull;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < g->copies; i++) {
		uint64_t now_ns = clock_now_ns();

		r = netlink_resolve(a->netlink, &g->copy[i].address,
				    now_ns < end_ns ? (end_ns - now_ns) / 1000000 : 0,
				    &g->copy[i].hop, why);
	}
	return r;
}

/* A run as this node, its root, has it in its maps. */
static int run_install(struct agent *a, const struct job *j, const struct run *file,
		       struct why *why)
{
	_cleanup_(freep) struct dataplane_gate *gates = calloc(a->ports_count + 1, sizeof(*gates));
	_cleanup_(freep) struct installation *g = calloc(1, sizeof(*g));
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	const struct installation_role role = { .root = true };
	unsigned int count = 0;
	int r;

	if (!g || !gates)
		return -ENOMEM;
	r = installation_plan(file, &role, g, why);
	if (r == 0)
		r = hops_find(a, g, why);
	if (r == 0)
		r = installation_address(g, why);
	if (r == 0)
		r = dataplane_ports(a->dataplane, &ports, &count, why);
	if (r == 0)
		r = port_reach_check(ports, count, g, why);
	if (r < 0)
		return r;
	g->job.tenant = j->tenant;
	count = plan_gates(&a->books.tenant[j->tenant].is, a->ports, a->ports_count, gates);
	return dataplane_job_add(a->dataplane, g, gates, count, why);
}

/*
 * With the largest window for which there are slots in a row: other tenants' jobs may stand between
 * those that are free, and that must not keep anybody from its quota for good.
 */
static int run_fit(struct agent *a, const struct job *j, struct run *file, uint16_t *window,
		   struct why *why)
{
	const uint16_t due = *window;
	int r;

	do {
		job_next_run(j, *window, file);
		r = run_install(a, j, file, why);
	} while (r == -ENOSPC && (*window /= 2));
	if (r == 0 && *window < due)
		log_say(LOG_LEVEL_WARNING, "window reduced: free slots are scattered",
			"job=%s window=%u instead_of=%u", j->name, *window, due);
	return r;
}

int agent_run_begin(struct agent *a, struct job *j, struct why *why)
{
	_cleanup_(freep) struct job_rank *before = calloc(j->workers, sizeof(*before));
	_cleanup_(freep) struct run *file = malloc(sizeof(*file));
	struct why ignored;
	uint16_t window = 0;
	int r;

	if (!before || !file)
		return -ENOMEM;
	memcpy(before, j->rank, j->workers * sizeof(*before));
	r = books_run_window(&a->books, j, &window, why);
	if (r < 0)
		return r;
	r = run_fit(a, j, file, &window, why);
	if (r < 0)
		return r;
	job_begin(j, window);
	r = agent_save(a, why);
	if (r < 0) { /* an agent after us would not know of it */
		dataplane_job_del(a->dataplane, j->id, &ignored);
		memcpy(j->rank, before, j->workers * sizeof(*before)); /* all wait again */
		job_end(j);
	}
	return r;
}

void agent_run_end(struct agent *a, struct job *j)
{
	struct why why = { "" };
	int r;

	agent_watch(a, &why); /* its last packets are counted as its own */
	job_end(j);
	r = dataplane_job_del(a->dataplane, j->id, &why);
	if (r == -ENOENT)
		log_say(LOG_LEVEL_DEBUG, "job was gone", "job=%s", j->name);
	else if (r < 0)
		log_say(LOG_LEVEL_ERROR, "slots not freed", "job=%s reason=\"%s\"", j->name,
			why.text);
}

/* --- plan and apply -------------------------------------------------------------------------- */

static int tenant_put(struct agent *a, unsigned int index, struct why *why)
{
	_cleanup_(freep) struct dataplane_source *sources = NULL;
	const struct tenant *t = &a->books.tenant[index].is;
	const struct dataplane_limits limits = {
		.packets_per_second = t->packets_per_second,
		.bytes_per_second = t->bytes_per_second,
		.priority = t->priority,
	};
	unsigned int count;

	sources = calloc(TENANT_POINTS_MAX, sizeof(*sources));
	if (!sources)
		return -ENOMEM;
	count = plan_sources(t, a->ports, a->ports_count, sources);
	return dataplane_tenant_put(a->dataplane, index, &limits, sources, count, why);
}

static int gates_put(struct agent *a, const struct job *j, struct why *why)
{
	_cleanup_(freep) struct dataplane_gate *gates = calloc(a->ports_count + 1, sizeof(*gates));
	unsigned int count;

	if (!gates)
		return -ENOMEM;
	count = plan_gates(&a->books.tenant[j->tenant].is, a->ports, a->ports_count, gates);
	return dataplane_job_gates(a->dataplane, j->id, gates, count, why);
}

/* A run that the data plane has lost, as after a reboot. If its workers have gone too, it ends. */
static void run_restore(struct agent *a, struct job *j)
{
	_cleanup_(freep) struct run *file = malloc(sizeof(*file));
	struct why why = { "" };

	if (!file)
		return;
	job_this_run(j, file);
	if (run_install(a, j, file, &why) == 0) {
		log_say(LOG_LEVEL_INFO, "run restored", "job=%s epoch=%u", j->name, j->epoch);
		return;
	}
	log_say(LOG_LEVEL_WARNING, "run is over", "job=%s epoch=%u reason=\"%s\"", j->name,
		j->epoch, why.text);
	job_end(j);
}

static int step_apply(struct agent *a, const struct plan_step *step, struct why *why)
{
	switch (step->act) {
	case PLAN_JOB_DEL:
		return dataplane_job_del(a->dataplane, step->id, why);
	case PLAN_TENANT_PUT:
		return tenant_put(a, step->index, why);
	case PLAN_JOB_GATES:
		return gates_put(a, a->books.job[step->index], why);
	case PLAN_JOB_ADD:
		run_restore(a, a->books.job[step->index]);
		return 0;
	}
	return -EINVAL;
}

int agent_reconcile(struct agent *a, struct why *why)
{
	_cleanup_(freep) struct plan *plan = malloc(sizeof(*plan));
	_cleanup_(freep) struct dataplane_job *jobs = NULL;
	unsigned int count = 0;
	int r;

	if (!plan)
		return -ENOMEM;
	r = dataplane_jobs(a->dataplane, &jobs, &count, why);
	if (r < 0)
		return r;
	plan_make(&a->books, jobs, count, plan);
	for (unsigned int i = 0; r == 0 && i < plan->steps; i++)
		r = step_apply(a, &plan->step[i], why);
	return r;
}

/* --- traffic --------------------------------------------------------------------------------- */

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

const char *agent_port_name(const struct agent *a, uint32_t ifindex)
{
	for (unsigned int i = 0; i < a->ports_count; i++)
		if (a->ports[i].ifindex == ifindex)
			return a->ports[i].name;
	return "";
}

int agent_watch_ports(struct agent *a, struct why *why)
{
	uint32_t ports[TALLY_PORTS_MAX];

	for (unsigned int i = 0; i < a->ports_count; i++)
		ports[i] = a->ports[i].ifindex;
	return netlink_links_watch(a->links, ports, a->ports_count, why);
}

int agent_watch_anew(struct agent *a, struct why *why)
{
	return clock_now_ns() - a->sampled_ns < FRESH_NS ? 0 : agent_watch(a, why);
}

int agent_watch(struct agent *a, struct why *why)
{
	_cleanup_(freep) struct traffic_link *links = calloc(a->ports_count + 1, sizeof(*links));
	struct traffic_row *rows = NULL;
	uint64_t began_ns = cpu_now_ns();
	unsigned int count = 0;
	int r;

	if (!links)
		return -ENOMEM;
	r = dataplane_rows(a->dataplane, &rows, &count, why);
	if (r == 0)
		r = netlink_links_read(a->links, links, a->ports_count, why);
	if (r >= 0) {
		traffic_sample(a->traffic, clock_now_ns(), rows, count, links, r);
		free(a->rows);
		a->sampled_ns = clock_now_ns();
		a->rows = TAKE_PTR(rows);
		a->rows_count = count;
	}
	free(rows);
	a->sampling_ns += cpu_now_ns() - began_ns;
	return r < 0 ? r : 0;
}
