// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "agent/edge/books_file.h"
#include "agent/edge/log.h"
#include "agent/edge/port_reach.h"
#include "agent/core/port_check.h"
#include "node.h"

/* --- ports ----------------------------------------------------------------------------------- */

/* A port that is not there (yet) has ifindex 0. */
static int port_find(struct node *n, const struct config_port *wanted, struct dataplane_port *ret,
		     struct why *why)
{
	struct netlink_port facts;
	int r = netlink_port_read(n->netlink, wanted->name, &facts, why);

	if (r == -ENODEV) {
		*ret = (struct dataplane_port){ .mode = wanted->mode, .refused = *why };
		memcpy(ret->name, wanted->name, sizeof(ret->name));
		r = 0;
	} else if (r == 0) {
		r = port_prepare(&facts, wanted->mode, dataplane_cpus(),
				 dataplane_is_native(facts.ifindex), ret, why);
	}
	ret->share = wanted->share;
	return r;
}

static bool is_twice(const struct dataplane_port *ports, unsigned int at)
{
	for (unsigned int k = 0; k < at; k++)
		if (ports[at].ifindex && ports[k].ifindex == ports[at].ifindex)
			return true;
	return false;
}

int node_find_ports(struct node *n, const struct config *c, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = calloc(c->ports, sizeof(*ports));
	int r;

	if (!ports)
		return -ENOMEM;
	for (unsigned int i = 0; i < c->ports; i++) {
		r = port_find(n, &c->port[i], &ports[i], why);
		if (r == 0 && is_twice(ports, i))
			r = why_say(why, -EINVAL, "ports: %s is named twice", ports[i].name);
		if (r < 0)
			return r;
	}
	free(n->wanted);
	n->wanted = TAKE_PTR(ports);
	n->wanted_count = c->ports;
	return 0;
}

static bool is_as_wanted(const struct dataplane_port *there, const struct dataplane_port *wanted)
{
	return there->ifindex == wanted->ifindex &&
	       (wanted->mode == DATAPLANE_AUTO || wanted->mode == there->mode);
}

/* Are the ports that are wanted, and there, those that the node is on? */
static bool ports_are_wanted(const struct node *n)
{
	_cleanup_(freep) struct dataplane_port *there = NULL;
	unsigned int there_count = 0, found = 0, same = 0;
	struct why ignored;

	if (dataplane_ports(n->dataplane, &there, &there_count, &ignored) < 0 || !there)
		return false;
	for (unsigned int i = 0; i < n->wanted_count; i++) {
		const struct dataplane_port *wanted = &n->wanted[i];

		found += wanted->ifindex != 0;
		for (unsigned int k = 0; wanted->ifindex && k < there_count; k++)
			same += is_as_wanted(&there[k], wanted) &&
				dataplane_is_attached(n->dataplane, wanted->ifindex) > 0;
	}
	return same == found && same == there_count;
}

/* As it is, if the node is on it. */
static int port_is(const struct node *n, const struct dataplane_port *there, unsigned int count,
		   struct dataplane_port *p)
{
	const struct dataplane_port wanted = *p;
	int r = wanted.ifindex ? dataplane_is_attached(n->dataplane, wanted.ifindex) : 0;

	p->attached = r > 0;
	for (unsigned int i = 0; p->attached && i < count; i++) {
		if (there[i].ifindex != wanted.ifindex)
			continue;
		*p = there[i];
		p->attached = true;
		if (p->mode == wanted.mode)
			p->refused = wanted.refused;
	}
	return r < 0 ? r : 0;
}

static int ports_look(const struct node *n, struct dataplane_port **ret, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *there = NULL;
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_ports(n->dataplane, &there, &count, why);
	if (r < 0)
		return r;
	ports = calloc(n->wanted_count + 1, sizeof(*ports));
	if (!ports)
		return -ENOMEM;
	memcpy(ports, n->wanted, n->wanted_count * sizeof(*ports));
	for (unsigned int i = 0; r == 0 && i < n->wanted_count; i++)
		r = port_is(n, there, count, &ports[i]);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(ports);
	return 0;
}

int node_ports(const struct node *n, struct dataplane_port **ret, unsigned int *ret_count,
	       struct why *why)
{
	int r = ports_look(n, ret, why);

	for (unsigned int i = 0; r == 0 && i < n->wanted_count; i++)
		if (!(*ret)[i].attached)
			(*ret)[i].ifindex = 0;
	if (r == 0)
		*ret_count = n->wanted_count;
	return r;
}

int node_look(struct node *n, const struct config *c, struct dataplane_port **ret,
	      struct why *ret_missing, struct why *why)
{
	int r;

	r = node_find_ports(n, c, why);
	if (r < 0)
		return r;
	*ret_missing->text = '\0';
	r = dataplane_check(n->dataplane, ret_missing);
	if (r < 0 && r != -ENOENT)
		return why_say(why, r, "%s", ret_missing->text);
	return ports_look(n, ret, why);
}

int node_mend(struct node *n, const struct config *c, struct why *why)
{
	int r = node_find_ports(n, c, why);

	return r < 0 ? r : dataplane_mend(n->dataplane, n->wanted, n->wanted_count, why);
}

void node_report(const struct core *c)
{
	unsigned int count;
	const struct dataplane_port *p = core_ports(c, &count);

	for (; count; p++, count--) {
		const char *because = !p->ifindex ? " not_attached=\"" : " not_native=\"";
		const bool is_best = p->ifindex && p->mode == DATAPLANE_NATIVE;

		log_say(is_best ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, "port",
			"name=%s mode=%s beside=%u%s%s%s", p->name,
			p->ifindex ? config_modes[p->mode] : "gone", p->beside,
			*p->refused.text ? because : "", p->refused.text,
			*p->refused.text ? "\"" : "");
	}
}

static void peer_report(const struct dataplane_port *p)
{
	struct netlink_facts facts;
	struct netlink_peer peer = { 0 };
	struct why why = { "" }, mend = { "" };
	int r;

	if (netlink_facts_read(p->name, p->ifindex, &facts, &why) < 0 || !facts.peer)
		return;
	r = port_peer_check(&facts, p->name, p->mode == DATAPLANE_NATIVE, dataplane_is_native,
			    &peer, &why, &mend);
	if (r > 0)
		log_say(LOG_LEVEL_WARNING, "results are lost behind a port",
			"name=%s reason=\"%s\" mend=\"%s\"", p->name, why.text, mend.text);
	if (r < 0)
		log_say(LOG_LEVEL_INFO, "port not checked: tallyctl doctor does it",
			"name=%s reason=\"%s\"", p->name, why.text);
}

void node_peers_report(const struct core *c)
{
	unsigned int count;
	const struct dataplane_port *p = core_ports(c, &count);

	for (; count; p++, count--)
		if (p->ifindex)
			peer_report(p);
}

/* --- taking the node over -------------------------------------------------------------------- */

/* As it is pinned now. Until that succeeds the node of before stays, which is better than none. */
static int node_reopen(struct node *n, struct why *why)
{
	struct dataplane *fresh = NULL;
	int r = dataplane_open(n->pin, &fresh, why);

	n->stale = r < 0;
	if (r < 0)
		return r;
	dataplane_close(n->dataplane);
	n->dataplane = fresh;
	return 0;
}

static bool pool_is_wanted(const struct node *n, const struct tally_pool *wanted)
{
	const struct tally_pool is = dataplane_pool(n->dataplane);

	return is.slots == wanted->slots && !memcmp(&is.policy, &wanted->policy, sizeof(is.policy));
}

/* The data plane refuses that, too; it knows numbers alone, and not what one can do. */
int node_slots_check(struct dataplane *d, const struct config *c, const struct books *b,
		     struct why *why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	const uint32_t slots = dataplane_slots(d);
	int r = c->slots < slots ? dataplane_tables_read(d, &now, why) : 0;

	for (unsigned int i = 0; r == 0 && i < now.jobs; i++) {
		const struct tally_job *is = &now.job[i].job;
		const struct job *j = books_job_numbered(b, now.job[i].id);

		if (now.job[i].broken || is->borrows || !j ||
		    (uint64_t)is->slot_base + is->slot_mask < c->slots)
			continue;
		r = why_say(
			why, -ENOSPC,
			"slots: %u: the run of job %s has slots %u to %u, and keeps them until it "
			"is over: put slots: back to %u, and end the run while tallyd runs "
			"(tallyctl job %s %s), or take %u or more",
			c->slots, j->name, is->slot_base, is->slot_base + is->slot_mask, slots,
			j->document ? "del" : "restart", j->name,
			is->slot_base + is->slot_mask + 1);
	}
	return r;
}

/*
 * The node that is there, with programs, slots and ports as they are to be. Where nothing
 * differs nothing is touched; where something does, it is replaced while frames flow.
 */
int node_adopt(struct node *n, const struct config *c, const struct books *b, struct why *why)
{
	const struct tally_pool pool = config_pool(c);
	bool current;
	int r = n->stale ? node_reopen(n, why) : 0;

	if (r < 0)
		return r;
	current = dataplane_is_current(n->dataplane);
	if (current && dataplane_slots(n->dataplane) == c->slots && pool_is_wanted(n, &pool) &&
	    ports_are_wanted(n)) {
		log_say(LOG_LEVEL_INFO, "node adopted", "pin=%s build=%016llx", c->pin,
			(unsigned long long)dataplane_build());
		return 0;
	}
	r = node_slots_check(n->dataplane, c, b, why);
	if (r < 0)
		return r;
	r = dataplane_replace(c->pin, c->slots, &pool, n->wanted, c->ports, why);
	if (r < 0)
		return r;
	log_say(LOG_LEVEL_INFO, "node adopted",
		"pin=%s build=%016llx programs=%s slots=%u pool=%u ports=%u", c->pin,
		(unsigned long long)dataplane_build(), current ? "loaded again" : "upgraded",
		c->slots, pool.slots, c->ports);
	return node_reopen(n, why);
}

static int node_create(struct node *n, const struct config *c, struct why *why)
{
	const struct tally_pool pool = config_pool(c);
	struct why ignored;
	int r;

	r = dataplane_attach(c->pin, c->slots, &pool, n->wanted, c->ports, why);
	if (r < 0)
		return r;
	r = dataplane_open(c->pin, &n->dataplane, why);
	if (r < 0) {
		dataplane_detach(c->pin, &ignored);
		return r;
	}
	n->fresh = true;
	log_say(LOG_LEVEL_INFO, "node created", "pin=%s build=%016llx slots=%u%s", c->pin,
		(unsigned long long)dataplane_build(), c->slots,
		n->outdated ? " instead_of=\"another layout\"" : "");
	return 0;
}

/* Jobs that run, and books that do not know them: whose they are nobody could say. */
static int books_check(const struct node *n, const struct config *c, struct why *why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	unsigned int count = 0;
	int r;

	r = n->dataplane ? dataplane_tables_read(n->dataplane, &now, why) : 0;
	for (unsigned int i = 0; i < now.jobs; i++)
		count += !now.job[i].broken;
	if (r < 0 || (!count && !n->outdated))
		return r;
	return why_say(why, -ENOENT,
		       "the node in %s %s jobs, but their state file %s does not exist: "
		       "restore the file, or end the jobs (tally-node --pin %s detach)",
		       c->pin, n->outdated ? "may run" : "runs", c->state, c->pin);
}

/* What to do about a state file that cannot be read. */
static int books_advise(const struct config *c, int error, struct why *why)
{
	const struct why said = *why;
	char kept[sizeof(c->state) + sizeof(BOOKS_KEPT)];
	bool is_kept;

	snprintf(kept, sizeof(kept), "%s" BOOKS_KEPT, c->state);
	is_kept = access(kept, F_OK) == 0;
	return why_say(
		why, error,
		"%.300s. tallyd leaves the state file alone, so that no job is lost: mend it, or "
		"put %s in its place; if all jobs may go, move it away, and create them anew",
		said.text, is_kept ? kept : "a copy");
}

int node_books_read(struct books *b, const struct config *c, struct why *why)
{
	int r = core_books_configure(b, c, why);

	if (r < 0)
		return r;
	r = books_read(b, c->state, why);
	/* nothing else is a fault of the file */
	return r == -EINVAL || r == -EEXIST || r == -EFBIG ? books_advise(c, r, why) : r;
}

static void suspended_say(const struct books *b)
{
	for (unsigned int i = 0; i < b->jobs; i++)
		if (job_is_suspended(b->job[i]))
			log_say(LOG_LEVEL_WARNING, "job suspended until its tenant is back",
				"job=%s tenant=%s", b->job[i]->name, b->job[i]->tenant_name);
}

static int books_open(const struct node *n, const struct config *c, struct books *b,
		      struct why *why)
{
	struct why not_kept = { "" };
	int r;

	r = books_lock(c->state, why);
	if (r == 0)
		r = node_books_read(b, c, why);
	if (r == -ENOENT) {
		r = books_check(n, c, why);
		return r < 0 ? r : books_write(b, c->state, why);
	}
	if (r < 0)
		return r;
	suspended_say(b);
	r = books_keep(c->state, &not_kept);
	if (r < 0)
		log_say(LOG_LEVEL_WARNING, "former state file not kept", "reason=\"%s\"",
			not_kept.text);
	if (r > 0)
		log_say(LOG_LEVEL_WARNING, "others could read the state file, which has tokens",
			"file=%s mode=0600 mend=\"tallyctl job rotate JOB\"", c->state);
	return 0;
}

int node_open(struct node *n, struct netlink *netlink, const struct config *c, struct books *books,
	      struct why *why)
{
	int r;

	n->netlink = netlink;
	r = node_find_ports(n, c, why);
	if (r == 0)
		r = dataplane_claim(c->pin, why);
	if (r < 0)
		return r;
	snprintf(n->pin, sizeof(n->pin), "%s", c->pin);
	r = dataplane_open(c->pin, &n->dataplane, why);
	if (r < 0 && r != -ENOENT && r != -ESTALE)
		return r;
	n->outdated = r == -ESTALE;
	r = books_open(n, c, books, why); /* first what may be wrong, then what cannot be undone */
	if (r == 0)
		r = n->dataplane ? node_adopt(n, c, books, why) : node_create(n, c, why);
	if (r == 0) /* an agent that was killed may have left a trace that nobody reads */
		r = dataplane_trace_set(n->dataplane, 0, false, 0, why);
	return r;
}

void node_abandon(struct node *n, const struct config *c)
{
	struct why ignored;

	if (!n->fresh || !n->dataplane)
		return;
	dataplane_close(n->dataplane);
	n->dataplane = NULL;
	dataplane_detach(c->pin, &ignored);
}

void node_close(struct node *n, bool detach)
{
	struct why why = { "" };

	dataplane_close(n->dataplane);
	if (*n->pin && detach && dataplane_detach(n->pin, &why) < 0)
		log_say(LOG_LEVEL_ERROR, "data plane not removed", "reason=\"%s\"", why.text);
	if (*n->pin)
		dataplane_unclaim(n->pin);
	free(n->wanted);
}
