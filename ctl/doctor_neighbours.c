// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Do results go to the MACs that workers have? tallyd follows the kernel's table of neighbours,
 * also where that is wrong, so the network is asked.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "agent/dataplane/dataplane.h"
#include "agent/dataplane/probe.h"
#include "common/address.h"
#include "common/ranks.h"
#include "doctor.h"
#include "neighbours.h"
#include "table.h"

enum {
	NEIGHBOURS_MAX = 4096,
	MAC_TEXT_BYTES = 18,
	WHOM_BYTES = 192, /* of the text that says whose a copy is; cut */
};

struct doctor_neighbours {
	unsigned int count;
	struct neighbour neighbour[NEIGHBOURS_MAX];
	struct {
		uint32_t port; /* ifindex */
		unsigned int copies;
		struct dataplane_copy first;
	} of[NEIGHBOURS_MAX];
	unsigned int elsewhere, left_out; /* copies about which nobody was asked */
};

/* --- words ----------------------------------------------------------------------------------- */

static struct sockaddr_storage address_of(const struct tally_child *c)
{
	struct sockaddr_storage address = { .ss_family = c->ipv6 ? AF_INET6 : AF_INET };
	size_t bytes;

	memcpy(address_raw(&address, &bytes), c->ip6, c->ipv6 ? 16 : 4);
	return address;
}

/* "rank 0 of job train (10.77.1.1)" */
static void whom_print(const struct doctor *d, const struct dataplane_copy *c,
		       char text[WHOM_BYTES])
{
	struct sockaddr_storage address = address_of(&c->child);
	char at[ADDRESS_BYTES], ranks[RANKS_BYTES], job[NAME_BYTES];
	const json_t *j;
	size_t i;

	address_print(&address, at, sizeof(at));
	ranks_print(&c->child.below, ranks, sizeof(ranks));
	snprintf(job, sizeof(job), "%u", c->job);
	json_array_foreach(d->jobs, i, j) if (field_number(j, "id") == c->job)
		snprintf(job, sizeof(job), "%s", field_text(j, "name"));
	snprintf(text, WHOM_BYTES, "rank %.24s of job %s (%s)", ranks, job, at);
}

static void mac_print(const uint8_t *mac, char text[MAC_TEXT_BYTES])
{
	snprintf(text, MAC_TEXT_BYTES, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
}

/* --- the network is asked -------------------------------------------------------------------- */

static void next_add(struct doctor_neighbours *all, const struct netlink_next *next,
		     const struct dataplane_copy *c)
{
	struct neighbour n = { .ifindex = next->ifindex, .address = next->address };
	unsigned int i;

	memcpy(n.expected, c->child.mac, sizeof(n.expected));
	memcpy(n.source, next->source, sizeof(n.source));
	memcpy(n.source_mac, next->hop.port_mac, sizeof(n.source_mac));
	for (i = 0; i < all->count; i++)
		if (all->neighbour[i].ifindex == n.ifindex &&
		    !memcmp(all->neighbour[i].expected, n.expected, sizeof(n.expected)) &&
		    endpoint_is_equal(&all->neighbour[i].address, &n.address))
			break;
	if (i == NEIGHBOURS_MAX) {
		all->left_out++;
		return;
	}
	all->count += i == all->count;
	all->neighbour[i] = n;
	all->of[i].port = c->child.port;
	if (!all->of[i].copies++)
		all->of[i].first = *c;
}

static void copy_add(struct doctor *d, struct doctor_neighbours *all, struct netlink *n,
		     const struct dataplane_copy *c)
{
	struct sockaddr_storage address = address_of(&c->child);
	char whom[WHOM_BYTES];
	struct netlink_next next;
	struct why why = { "" };

	if (netlink_next(n, &address, &next, &why) < 0) {
		whom_print(d, c, whom);
		found_warn(d, "%s: %s", whom, why.text);
	} else if (next.hop.port != c->child.port ||
		   memcmp(next.hop.port_mac, c->child.port_mac, sizeof(c->child.port_mac)) != 0) {
		all->elsewhere++;
	} else {
		next_add(all, &next, c);
	}
}

static int all_ask(struct doctor *d, struct doctor_neighbours *all, struct why *why)
{
	const char *pin = field_text(d->status, "pin");
	_cleanup_(freep) struct dataplane_copy *copies = NULL;
	_cleanup_(netlink_closep) struct netlink *n = NULL;
	unsigned int count = 0;
	int r;

	r = dataplane_copies_read(*pin ? pin : DATAPLANE_PIN, &copies, &count, why);
	if (r == 0)
		r = netlink_open(&n);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		copy_add(d, all, n, &copies[i]);
	return r < 0 ? r : neighbours_ask(all->neighbour, all->count);
}

void doctor_neighbours_ask(struct doctor *d, const struct doctor_port *p)
{
	_cleanup_(freep) struct doctor_neighbours *all = calloc(1, sizeof(*all));
	struct why why = { "" };
	int r = d->root ? 0 : why_say(&why, -EPERM, "only root may do that");

	if (!all)
		r = -ENOMEM;
	if (r == 0)
		r = all_ask(d, all, &why);
	if (r == -ENOENT && !d->status)
		return; /* there is no node */
	if (r < 0) {
		found_unknown(d, "cannot ask the network which MACs workers have: %s",
			      *why.text ? why.text : strerror(-r));
		return;
	}
	if (all->elsewhere)
		found_unknown(d,
			      "%u copies of results leave by other ports than routes say here. Run "
			      "doctor in the network namespace of tallyd, which follows routes",
			      all->elsewhere);
	if (all->left_out)
		found_unknown(d, "%u copies of results go to more neighbours than the %d asked",
			      all->left_out, NEIGHBOURS_MAX);
	d->neighbours = TAKE_PTR(all);
}

/* --- and what it said ------------------------------------------------------------------------ */

static void wrong_report(struct doctor *d, const struct neighbour *n, const char *whom)
{
	char used[MAC_TEXT_BYTES], answers[MAC_TEXT_BYTES], at[ADDRESS_BYTES], name[IF_NAMESIZE];

	address_print(&n->address, at, sizeof(at));
	mac_print(n->expected, used);
	mac_print(n->mac, answers);
	if (!n->answered) {
		found_warn(d,
			   "results for %s go to MAC %s, and nobody answers for %s when asked by "
			   "%s. Is that machine up, and its cable in?",
			   whom, used, at,
			   n->address.ss_family == AF_INET ? "ARP" : "neighbour solicitation");
		return;
	}
	found_fail(d, "results for %s go to MAC %s, but MAC %s answers for %s: they do not arrive",
		   whom, used, answers, at);
	if (if_indextoname(n->ifindex, name))
		found_mend(d, "ip neigh replace %s lladdr %s dev %s nud reachable", at, answers,
			   name);
}

void doctor_neighbours_check(struct doctor *d, const struct doctor_port *p)
{
	const struct doctor_neighbours *all = d->neighbours;
	unsigned int asked = 0, wrong = 0;
	char whom[WHOM_BYTES], more[WHOM_BYTES + 32];

	for (unsigned int i = 0; all && i < all->count; i++) {
		const struct neighbour *n = &all->neighbour[i];

		if (all->of[i].port != p->port.ifindex)
			continue;
		asked++;
		if (n->answered && !memcmp(n->mac, n->expected, sizeof(n->mac)))
			continue;
		wrong++;
		whom_print(d, &all->of[i].first, whom);
		snprintf(more, sizeof(more), "%s, and %u more,", whom, all->of[i].copies - 1);
		wrong_report(d, n, all->of[i].copies > 1 ? more : whom);
	}
	if (asked && !wrong)
		found_ok(d, "results go to the MACs that answer here (%u asked)", asked);
}
