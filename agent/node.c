// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The node as a whole: an agent takes it over when it starts, and changes it when it is told to. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "agent.h"
#include "agent/edge/books_file.h"
#include "agent/edge/log.h"
#include "agent/core/port_check.h"

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
			r = port_prepare(&facts, c->port[i].mode, dataplane_cpus(),
					 dataplane_is_native(facts.ifindex), &ports[i], why);
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

static bool is_as_wanted(const struct dataplane_port *there, const struct dataplane_port *wanted)
{
	return there->ifindex == wanted->ifindex &&
	       (wanted->mode == DATAPLANE_AUTO || wanted->mode == there->mode);
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
			same += is_as_wanted(&there[k], &wanted[i]);
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

	r = a->dataplane ? dataplane_jobs(a->dataplane, &jobs, &count, why) : 0;
	if (r < 0 || !count)
		return r;
	return why_say(why, -ENOENT,
		       "the node in %s runs %u jobs, but their state file %s does not exist: "
		       "restore the file, or end the jobs (tally-node --pin %s detach)",
		       a->config->pin, count, a->config->state, a->config->pin);
}

/* A default tenant that the file does not name is tallyctl's. */
static int tenants_configure(struct agent *a, const struct config *c, struct why *why)
{
	unsigned int unnamed = c->default_named ? 0 : 1;

	return books_configure(&a->books, c->tenant + unnamed, c->tenants - unnamed, c->rest, why);
}

static int books_open(struct agent *a, struct why *why)
{
	const struct config *c = a->config;
	int r;

	books_init(&a->books, c->slots);
	r = tenants_configure(a, c, why);
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
	if (r == 0) /* an agent that was killed may have left a trace that nobody reads */
		r = dataplane_trace_set(a->dataplane, 0, false, 0, why);
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
	if (r == 0 || fresh) /* first what may be wrong, then what cannot be taken back */
		r = books_open(a, why);
	if (r == 0)
		r = fresh ? node_create(a, c, ports, why) : node_adopt(a, c, ports, why);
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
			return why_say(
				why, -EINVAL,
				"%s: only a restart changes this key; a restart loses no job",
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
		log_say(LOG_LEVEL_ERROR, "old configuration not restored", "reason=\"%s\"",
			why.text);
		sd_event_exit(a->loop, r);
	}
	agent_save(a, &why); /* most likely it has failed just now, and the old books are there */
}

/* Tenants that the configuration names no more; their numbers may be others' already. */
static void tenants_forget(struct agent *a, const struct books *before)
{
	struct why why = { "" };

	for (unsigned int i = BOOKS_DEFAULT; i < TALLY_TENANTS_MAX; i++) {
		const char *was = before->tenant[i].is.name, *is = a->books.tenant[i].is.name;

		if (!*was || !strcmp(was, is))
			continue;
		traffic_tenant_forget(a->traffic, i);
		if (!*is && dataplane_tenant_del(a->dataplane, i, &why) < 0)
			log_say(LOG_LEVEL_ERROR, "tenant not removed", "tenant=%s reason=\"%s\"",
				was, why.text);
	}
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
	r = tenants_configure(a, config, why);
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
	tenants_forget(a, before);
	config_free(old);
	ports_report(a);
	return 0;
}
