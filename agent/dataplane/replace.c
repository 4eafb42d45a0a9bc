// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * New programs for a running node. Maps that hold jobs are kept, not copied: at no moment are
 * there two lists of jobs, and a job that is there is served by the old program, then by the
 * new one. Only constants and programs are new; slots and pool too, each if there is to be another
 * number.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/if_link.h>
#include <string.h>

#include "dataplane.h"
#include "maps.h"
#include "ports.h"

enum {
	PINS_NEW = 1u << PIN_SLOTS | 1u << PIN_POOL | 1u << PIN_CONSTANTS | 1u << PIN_INGRESS |
		   1u << PIN_FANOUT,
};

/* What is to be changed. */
struct swap {
	struct dataplane *node;
	struct programs programs;
	struct port_link *links; /* as they are before */
	unsigned int links_count;
	struct dataplane_port *ports; /* as they are to be; none: as they are */
	unsigned int ports_count;
};

static void swap_close(struct swap *s)
{
	programs_close(&s->programs);
	links_close(s->links, s->links_count);
	dataplane_close(s->node);
}

static struct port_link *link_find(const struct swap *s, uint32_t ifindex)
{
	for (unsigned int i = 0; i < s->links_count; i++)
		if (s->links[i].ifindex == ifindex)
			return &s->links[i];
	return NULL;
}

static bool is_wanted(const struct swap *s, const struct port_link *link)
{
	if (!s->ports_count)
		return link->ifindex;
	for (unsigned int i = 0; i < s->ports_count; i++)
		if (link->ifindex && s->ports[i].ifindex == link->ifindex)
			return true;
	return false;
}

/* A link keeps its mode with its new program. Another mode takes another link, and a gap. */
static int mode_check(struct dataplane_port *p, struct port_link *link, struct why *why)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	enum dataplane_mode now;
	int r = bpf_xdp_query(p->ifindex, 0, &query);

	if (r < 0)
		return why_say(why, r, "%s: %s", p->name, strerror(-r));
	now = link->kind->mode;
	if (now == DATAPLANE_AUTO)
		now = query.attach_mode == XDP_ATTACHED_SKB ? DATAPLANE_GENERIC : DATAPLANE_NATIVE;
	if (p->mode != DATAPLANE_AUTO && p->mode != now)
		link->was = now;
	else
		p->mode = now;
	return 0;
}

static int ports_check(struct swap *s, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; s->ports_count && i < s->links_count; i++) {
		r = s->links[i].ifindex ? dataplane_is_attached(s->node, s->links[i].ifindex) : 1;
		if (r < 0)
			return why_say(why, r, "the kernel does not say what is on the ports: %s",
				       strerror(-r));
		if (r == 0)
			return why_say(why, -EXDEV,
				       "the node's ports are in another network namespace: run "
				       "this there");
	}
	r = 0;
	for (unsigned int i = 0; r == 0 && i < s->ports_count; i++) {
		struct port_link *link = link_find(s, s->ports[i].ifindex);

		if (!link || !s->ports[i].ifindex)
			continue;
		s->ports[i].beside = link->beside;
		r = mode_check(&s->ports[i], link, why);
	}
	return r;
}

static bool is_to_attach(const struct swap *s, const struct dataplane_port *p)
{
	const struct port_link *link = link_find(s, p->ifindex);

	return p->ifindex && (!link || link->was);
}

/* Will our program have to call others? */
static bool is_shared(const struct swap *s)
{
	bool shared = false;

	for (unsigned int i = 0; i < s->links_count; i++)
		shared |= s->links[i].kind == &port_shared_kind && is_wanted(s, &s->links[i]);
	for (unsigned int i = 0; i < s->ports_count; i++)
		shared |= is_to_attach(s, &s->ports[i]) && share_is_wanted(&s->ports[i]);
	return shared;
}

/* Interfaces that have gone leave their pins behind, and new ones may want the names. */
static void links_tidy(struct swap *s)
{
	for (unsigned int i = 0; i < s->links_count; i++)
		if (!s->links[i].ifindex)
			s->links[i].kind->remove(s->node->path, &s->links[i]);
}

/* Slots that the jobs have must be there afterwards too. */
static int slots_check(struct dataplane *d, uint32_t slots, struct why *why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	int r;

	r = maps_read_gates(d, &now, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < now.jobs; i++)
		if (!now.job[i].broken && !now.job[i].job.borrows &&
		    (uint64_t)now.job[i].job.slot_base + now.job[i].job.slot_mask >= slots)
			return why_say(why, -ENOSPC,
				       "%u slots: job %u has slots %u to %u; end it first, or "
				       "take more",
				       slots, now.job[i].id, now.job[i].job.slot_base,
				       now.job[i].job.slot_base + now.job[i].job.slot_mask);
	return 0;
}

/* From now on the port has none. */
static void link_leave(const struct swap *s, struct port_link *link)
{
	if (!link)
		return;
	link->kind->remove(s->node->path, link);
	link->ifindex = 0;
}

static int ports_swap(struct swap *s, struct why *why)
{
	int r = 0;

	for (unsigned int i = 0; i < s->links_count; i++) {
		const struct port_link *link = &s->links[i];

		if (!is_wanted(s, link))
			continue;
		r = link->kind->program(&s->programs, why);
		if (r < 0)
			return r;
		r = port_update(s->node->path, link, r);
		if (r < 0)
			return why_say(why, r,
				       "interface number %u does not take the new program: "
				       "%s",
				       link->ifindex, strerror(-r));
	}
	for (unsigned int i = 0; r == 0 && i < s->ports_count; i++)
		if (is_to_attach(s, &s->ports[i])) {
			link_leave(s, link_find(s, s->ports[i].ifindex));
			r = port_attach(s->node->path, &s->programs, &s->ports[i], why);
		}
	return r;
}

/* The programs of before are on the ports again: also where a process left others that ended. */
static void ports_back(const struct swap *s)
{
	for (unsigned int i = 0; i < s->links_count; i++) {
		const struct port_link *link = &s->links[i];
		int before = link->kind->pins_program ? link->fd : s->node->fd[PIN_INGRESS];

		if (link->ifindex)
			port_update(s->node->path, link, before);
	}
}

/* Ports that have left their links, in the modes that they had, with the programs of before. */
static void links_back(const struct swap *s)
{
	_cleanup_(programs_close) struct programs programs = { 0 };
	struct why ignored;

	if (programs_of(s->node, &programs) < 0)
		return;
	for (unsigned int i = 0; i < s->links_count; i++) {
		const struct port_link *link = &s->links[i];
		struct dataplane_port p = { .ifindex = link->pinned,
					    .mode = link->was,
					    .share = link->beside };

		if (link->was && !link->ifindex && if_indextoname(p.ifindex, p.name))
			port_attach(s->node->path, &programs, &p, &ignored);
	}
}

/* Everything as it was. */
static void swap_undo(struct swap *s)
{
	const char *pin = s->node->path;
	struct port_link *links = NULL;
	unsigned int count = 0;
	struct why ignored;

	ports_back(s);
	if (links_open(pin, &links, &count) == 0)
		for (unsigned int i = 0; i < count; i++)
			if (links[i].ifindex && !link_find(s, links[i].ifindex))
				links[i].kind->remove(pin, &links[i]);
	links_close(links, count);
	links_back(s);
	maps_groups_use(s->node, s->node->fd[PIN_FANOUT], &ignored);
	pins_unstage(pin);
}

static int swap_commit(struct swap *s, struct why *why)
{
	const char *pin = s->node->path;
	int r;

	for (unsigned int i = 0; i < s->links_count; i++)
		if (s->links[i].ifindex && !is_wanted(s, &s->links[i]))
			s->links[i].kind->remove(pin, &s->links[i]);
	r = pins_commit(pin);
	return r < 0 ? why_say(why, r, "%s: cannot rename pins: %s; attach --replace again", pin,
			       strerror(-r))
		     : 0;
}

int dataplane_replace(const char *pin, uint32_t slots, const struct tally_pool *pool,
		      struct dataplane_port *ports, unsigned int count, struct why *why)
{
	_cleanup_(swap_close) struct swap s = { .ports = ports, .ports_count = count };
	struct why ignored;
	int r;

	r = pins_afford(pins_files(pin), why);
	if (r == 0)
		r = dataplane_open(pin, &s.node, why);
	if (r < 0)
		return r;
	slots = slots ? slots : dataplane_slots(s.node);
	r = links_open(pin, &s.links, &s.links_count);
	if (r == 0)
		r = ports_check(&s, why);
	if (r == 0)
		r = slots_check(s.node, slots, why);
	if (r == 0)
		r = programs_load(s.node, slots, pool ? *pool : dataplane_pool(s.node),
				  is_shared(&s), &s.programs, why);
	if (r < 0)
		return r;

	links_tidy(&s);
	if (pins_are_staged(pin))
		ports_back(&s);
	pins_unstage(pin);
	r = ports_retire(s.node, why);
	if (r == 0)
		r = pins_make(&s.programs, pin, PINS_NEW, PIN_STAGED, why);
	if (r == 0)
		r = maps_groups_use(s.node, s.programs.fd[PIN_FANOUT], why);
	if (r == 0)
		r = ports_swap(&s, why);
	if (r < 0)
		swap_undo(&s);
	else
		r = swap_commit(&s, why);
	if (r == 0)
		ports_retire(s.node, &ignored); /* or the next time */
	return r;
}
