// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The node: its data plane is brought to what the books say, and its traffic is watched. */
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "agent.h"
#include "books_file.h"
#include "log.h"
#include "netlink_links.h"
#include "plan.h"
#include "port_prepare.h"
#include "port_reach.h"

enum {
	SAVE_US = 100000, /* from a change that may be lost to the disk */
};

uint64_t agent_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

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

int agent_resolve(struct agent *a, const struct sockaddr_storage *address, struct hop *ret,
		  struct why *why)
{
	return netlink_resolve(a->netlink, address, ret, why);
}

/* --- jobs in the data plane ------------------------------------------------------------------ */

/* A run as this node, its root, has it in its maps. */
static int run_install(struct agent *a, const struct job *j, const struct jobfile *file,
		       struct why *why)
{
	_cleanup_(freep) struct dataplane_gate *gates = calloc(a->ports_count + 1, sizeof(*gates));
	_cleanup_(freep) struct group *g = calloc(1, sizeof(*g));
	const struct group_role role = { .root = true };
	unsigned int count;
	int r;

	if (!g || !gates)
		return -ENOMEM;
	r = group_plan(file, &role, g, why);
	for (unsigned int i = 0; r == 0 && i < g->copies; i++)
		r = agent_resolve(a, &g->copy[i].address, &g->copy[i].hop, why);
	if (r == 0)
		r = group_address(g, why);
	if (r == 0)
		r = port_reach_check(a->dataplane, g, why);
	if (r < 0)
		return r;
	g->job.tenant = j->tenant;
	count = plan_gates(&a->books.tenant[j->tenant].is, a->ports, a->ports_count, gates);
	return dataplane_job_add(a->dataplane, g, gates, count, why);
}

int agent_run_begin(struct agent *a, struct job *j, struct why *why)
{
	_cleanup_(freep) struct job_rank *before = calloc(j->workers, sizeof(*before));
	_cleanup_(freep) struct jobfile *file = malloc(sizeof(*file));
	struct why ignored;
	uint16_t window = 0;
	int r;

	if (!before || !file)
		return -ENOMEM;
	memcpy(before, j->rank, j->workers * sizeof(*before));
	r = books_run_window(&a->books, j, &window, why);
	if (r < 0)
		return r;
	job_next_run(j, window, file);
	r = run_install(a, j, file, why);
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
	_cleanup_(freep) struct jobfile *file = malloc(sizeof(*file));
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

/* --- ports ----------------------------------------------------------------------------------- */

/* The configured ports as the data plane wants them. *ret to be freed. */
static int ports_want(struct agent *a, const struct config *c, struct dataplane_port **ret,
		      struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = calloc(c->ports, sizeof(*ports));
	struct netlink_port facts;
	int r;

	if (!ports)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->ports; i++) {
		r = netlink_port_read(a->netlink, c->port[i].name, &facts, why);
		if (r == 0)
			r = port_prepare(&facts, c->port[i].mode, &ports[i], why);
		if (r < 0)
			return r;
		ports[i].share = c->port[i].share;
		for (unsigned int k = 0; k < i; k++)
			if (ports[k].ifindex == ports[i].ifindex)
				return why_say(why, -EINVAL, "ports: %s is named twice",
					       ports[i].name);
	}
	*ret = TAKE_PTR(ports);
	return 0;
}

/* Are these the ports that there are? */
static bool ports_are(struct dataplane *d, const struct dataplane_port *wanted, unsigned int count)
{
	_cleanup_(freep) struct dataplane_port *there = NULL;
	unsigned int there_count = 0, same = 0;
	struct why ignored;

	if (dataplane_ports(d, &there, &there_count, &ignored) < 0 || !there ||
	    there_count != count)
		return false;
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < count; k++)
			same += wanted[i].ifindex == there[k].ifindex;
	return same == count;
}

static void ports_report(struct agent *a)
{
	for (unsigned int i = 0; i < a->ports_count; i++) {
		const struct dataplane_port *p = &a->ports[i];
		bool native = p->mode == DATAPLANE_NATIVE;

		log_say(native ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "port",
			"name=%s mode=%s beside=%u%s%s%s", p->name, config_modes[p->mode],
			p->beside, *p->refused.text ? " not_native=\"" : "", p->refused.text,
			*p->refused.text ? "\"" : "");
	}
}

/* --- taking the node over -------------------------------------------------------------------- */

/*
 * The node that is there, with programs, slots and ports as they are to be. Where nothing
 * differs nothing is touched; where something does, it is replaced while frames flow.
 */
static int node_adopt(struct agent *a, const struct config *c, struct dataplane_port *ports,
		      struct why *why)
{
	bool current = dataplane_is_current(a->dataplane);
	int r;

	assert(ports); /* a configuration names one at least */

	if (current && dataplane_slots(a->dataplane) == c->slots &&
	    ports_are(a->dataplane, ports, c->ports)) {
		log_say(LOG_LEVEL_INFO, "node adopted", "pin=%s build=%016llx", c->pin,
			(unsigned long long)dataplane_build());
		return 0;
	}
	r = dataplane_replace(c->pin, c->slots, ports, c->ports, why);
	if (r < 0)
		return r;
	log_say(LOG_LEVEL_INFO, "node adopted",
		"pin=%s build=%016llx programs=%s slots=%u ports=%u", c->pin,
		(unsigned long long)dataplane_build(), current ? "loaded again" : "upgraded",
		c->slots, c->ports);
	dataplane_close(a->dataplane);
	a->dataplane = NULL;
	return dataplane_open(c->pin, &a->dataplane, why);
}

static int node_create(struct agent *a, const struct config *c, struct dataplane_port *ports,
		       struct why *why)
{
	struct why ignored;
	int r;

	r = dataplane_attach(c->pin, c->slots, ports, c->ports, why);
	if (r < 0)
		return r;
	r = dataplane_open(c->pin, &a->dataplane, why);
	if (r < 0) {
		dataplane_detach(c->pin, &ignored);
		return r;
	}
	log_say(LOG_LEVEL_INFO, "node created", "pin=%s build=%016llx slots=%u", c->pin,
		(unsigned long long)dataplane_build(), c->slots);
	return 0;
}

int agent_watch_ports(struct agent *a, struct why *why)
{
	uint32_t ports[TALLY_PORTS_MAX];

	for (unsigned int i = 0; i < a->ports_count; i++)
		ports[i] = a->ports[i].ifindex;
	return netlink_links_watch(a->links, ports, a->ports_count, why);
}

/* Why a port is not native is known only right after it was attached: what is known is kept. */
static void reasons_keep(struct dataplane_port *ports, unsigned int count,
			 const struct dataplane_port *known, unsigned int known_count)
{
	for (unsigned int i = 0; i < count; i++)
		for (unsigned int k = 0; k < known_count; k++)
			if (ports[i].ifindex == known[k].ifindex &&
			    ports[i].mode == known[k].mode && *known[k].refused.text)
				ports[i].refused = known[k].refused;
}

static int ports_keep(struct agent *a, struct dataplane_port *attached, unsigned int attached_count,
		      struct why *why)
{
	struct dataplane_port *ports = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_ports(a->dataplane, &ports, &count, why);
	if (r < 0)
		return r;
	assert(ports);
	reasons_keep(ports, count, a->ports, a->ports_count);
	reasons_keep(ports, count, attached, attached_count);
	free(a->ports);
	a->ports = ports;
	a->ports_count = count;
	return a->links ? agent_watch_ports(a, why) : 0;
}

/* Jobs that run, and books that do not know them: whose they are nobody could say. */
static int books_check(struct agent *a, struct why *why)
{
	_cleanup_(freep) struct dataplane_job *jobs = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_jobs(a->dataplane, &jobs, &count, why);
	if (r < 0 || !count)
		return r;
	return why_say(why, -ENOENT,
		       "the node in %s runs %u jobs, and the state file %s, which would say whose "
		       "they are, is not there: restore it, or end the jobs (tally-node --pin %s "
		       "detach)",
		       a->config->pin, count, a->config->state, a->config->pin);
}

static int books_open(struct agent *a, struct why *why)
{
	const struct config *c = a->config;
	int r;

	books_init(&a->books, c->slots);
	r = books_configure(&a->books, c->tenant, c->tenants, c->rest, why);
	if (r < 0)
		return r;
	r = books_read(&a->books, c->state, why);
	if (r == -ENOENT) {
		r = books_check(a, why);
		if (r == 0)
			r = agent_save(a, why);
	}
	return r;
}

static int node_settle(struct agent *a, struct dataplane_port *ports, struct why *why)
{
	int r;

	r = ports_keep(a, ports, a->config->ports, why);
	if (r == 0)
		r = books_open(a, why);
	if (r == 0)
		r = agent_reconcile(a, why);
	if (r == 0)
		r = agent_save(a, why);
	return r;
}

int agent_node_open(struct agent *a, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	const struct config *c = a->config;
	struct why ignored;
	bool fresh = false;
	int r;

	r = ports_want(a, c, &ports, why);
	if (r == 0)
		r = dataplane_claim(c->pin, why);
	if (r < 0)
		return r;
	r = dataplane_open(c->pin, &a->dataplane, why);
	fresh = r == -ENOENT;
	if (fresh)
		r = node_create(a, c, ports, why);
	else if (r == 0)
		r = node_adopt(a, c, ports, why);
	if (r == 0)
		r = node_settle(a, ports, why);
	if (r < 0 && fresh && a->dataplane) {
		dataplane_close(a->dataplane);
		a->dataplane = NULL;
		dataplane_detach(c->pin, &ignored);
	}
	if (r == 0)
		ports_report(a);
	return r;
}

/* --- another configuration ------------------------------------------------------------------- */

/* What a running agent cannot change. */
static int config_check(const struct config *now, const struct config *then, struct why *why)
{
	const struct {
		const char *key;
		bool differs;
	} fixed[] = {
		{ "pin", strcmp(now->pin, then->pin) != 0 },
		{ "state", strcmp(now->state, then->state) != 0 },
		{ "control.socket", strcmp(now->control_socket, then->control_socket) != 0 },
		{ "control.group", strcmp(now->control_group, then->control_group) != 0 },
		{ "join.socket", strcmp(now->join_socket, then->join_socket) != 0 },
		{ "join.listen",
		  now->listens != then->listens ||
			  memcmp(now->listen, then->listen, sizeof(now->listen)) != 0 },
		{ "metrics", memcmp(&now->metrics, &then->metrics, sizeof(now->metrics)) != 0 },
	};

	for (size_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++)
		if (fixed[i].differs)
			return why_say(why, -EINVAL,
				       "%s: is changed by a restart only (nothing is lost by one)",
				       fixed[i].key);
	return 0;
}

/* All that it says, in the data plane. The books say it already. */
static int config_apply(struct agent *a, struct config *config, struct dataplane_port *ports,
			struct why *why)
{
	int r;

	r = node_adopt(a, config, ports, why);
	if (r < 0)
		return r;
	a->config = config;
	r = ports_keep(a, ports, config->ports, why);
	return r < 0 ? r : agent_reconcile(a, why);
}

/*
 * The configuration before, with books, ports and slots. Where that fails too, the agent ends: the
 * next one begins with what is there, and with this configuration.
 */
static void config_restore(struct agent *a, struct config *old, const struct books *books)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	struct why why = { "" };
	int r;

	a->books = *books;
	a->config = old;
	r = a->dataplane ? ports_want(a, old, &ports, &why) : -ENODEV;
	if (r == 0)
		r = config_apply(a, old, ports, &why);
	if (r < 0) {
		log_say(LOG_LEVEL_ERROR, "cannot go back either", "reason=\"%s\"", why.text);
		sd_event_exit(a->loop, r);
	}
	agent_save(a, &why); /* most likely it has failed just now, and the old books are there */
}

int agent_reconfigure(struct agent *a, struct config *config, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	_cleanup_(freep) struct books *before = malloc(sizeof(*before));
	struct config *old = a->config;
	int r;

	if (!before)
		return -ENOMEM;
	*before = a->books; /* jobs are not changed here: the copy has the same ones */
	r = config_check(old, config, why);
	if (r == 0)
		r = ports_want(a, config, &ports, why);
	if (r < 0)
		return r;
	a->books.slots = config->slots;
	r = books_configure(&a->books, config->tenant, config->tenants, config->rest, why);
	if (r < 0) {
		a->books = *before;
		return r;
	}
	r = config_apply(a, config, ports, why);
	if (r == 0)
		r = agent_save(a, why);
	if (r < 0) {
		config_restore(a, old, before);
		return r;
	}
	config_free(old);
	ports_report(a);
	return 0;
}

/* --- traffic --------------------------------------------------------------------------------- */

static uint64_t cpu_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
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
		traffic_sample(a->traffic, agent_now_ns(), rows, count, links, r);
		free(a->rows);
		a->rows = TAKE_PTR(rows);
		a->rows_count = count;
	}
	free(rows);
	a->sampling_ns += cpu_now_ns() - began_ns;
	return r < 0 ? r : 0;
}
