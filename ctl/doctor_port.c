// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor's checks of a port. */
#include <errno.h>
#include <string.h>

#include "agent/core/port_check.h"
#include "agent/dataplane/dataplane.h"
#include "agent/edge/port_reach.h"
#include "common/jobfile.h"
#include "doctor.h"
#include "table.h"

enum {
	MTU_ORDINARY = 1500, /* the default payload of a job fits this MTU */
};

static void check_link(struct doctor *d, const struct doctor_port *p)
{
	if (!p->port.up) {
		found_fail(d, "is down");
		found_mend(d, "ip link set %s up", p->port.name);
	} else if (!p->port.carrier) {
		found_fail(d, "has no carrier: check the cable and the other end");
	} else {
		found_ok(d, "is up");
	}
}

static void check_kind(struct doctor *d, const struct doctor_port *p)
{
	const char *kind = p->facts.kind;

	if (p->facts.enslaved_to_bond)
		found_warn(d, "is a member of a bond: give tallyd the bond itself. Otherwise "
			      "results leave by this member only");
	if (!strcmp(kind, "vlan") || !strcmp(kind, "macvlan") || !strcmp(kind, "ipvlan"))
		found_warn(d,
			   "is a %s, where XDP runs in the stack, and slowly. Give tallyd the "
			   "interface below; the data plane reads one VLAN tag itself",
			   kind);
	else if (!strcmp(kind, "bridge"))
		found_warn(d, "is a bridge, where XDP runs in the stack, and slowly. Give tallyd "
			      "the ports of the bridge");
	else if (!strcmp(kind, "tun"))
		found_warn(d, "is a tap: the program at its other end must accept frames from XDP");
}

/* The port as tallyd reports it. */
static void check_xdp_attached(struct doctor *d, const struct doctor_port *p)
{
	const char *mode = field_text(p->status, "mode"), *reason = field_text(p->status, "why");
	double beside = field_number(p->status, "beside");

	if (!strcmp(mode, "gone"))
		found_fail(d,
			   "Tally's program is not on it: %s. tallyd takes the port when it "
			   "can",
			   *reason ? reason : "tallyd does not say why");
	else if (!strcmp(mode, "native"))
		found_ok(d, "driver %s, native XDP", p->port.driver);
	else if (p->tc)
		found_warn(d, "driver %s, TC instead of native XDP%s%s", p->port.driver,
			   *reason ? ": " : "", reason);
	else
		found_warn(d, "driver %s, generic XDP (in the stack) instead of native%s%s",
			   p->port.driver, *reason ? ": " : "", reason);
	if (beside > 0)
		found_ok(d, "shares the port with XDP program %.0f", beside);
}

static void check_xdp(struct doctor *d, const struct doctor_port *p)
{
	if (p->status)
		check_xdp_attached(d, p);
	else if (doctor_port_is_taken(d, p))
		return; /* and said */
	else if (port_panics_in_native(&p->port, d->cpus, dataplane_is_native(p->port.ifindex)))
		return; /* the next check reports it */
	else if (dataplane_is_native(p->port.ifindex))
		found_ok(d, "driver %s, where an XDP program is attached already", p->port.driver);
	else if (p->facts.native == NETLINK_YES)
		found_ok(d, "driver %s has native XDP", p->port.driver);
	else if (p->facts.native == NETLINK_NO)
		found_warn(d,
			   "driver %s has no native XDP with redirects: XDP will run in the "
			   "stack, much slower",
			   *p->port.driver ? p->port.driver : "(unnamed)");
	else
		found_unknown(d,
			      "driver %s: this kernel does not say whether the driver has "
			      "native XDP (Linux 6.3 and later do). tallyd will try native "
			      "XDP when it attaches",
			      p->port.driver);
}

static void check_queues(struct doctor *d, const struct doctor_port *p)
{
	const struct netlink_port *port = &p->port;
	bool native = dataplane_is_native(port->ifindex);

	if (port_panics_in_native(port, d->cpus, native)) {
		found_fail(d,
			   "%u queues on %u CPUs: with room for %u queues only, XDP_TX of "
			   "this driver would panic the kernel, so Tally does not try native "
			   "mode",
			   port->channels, d->cpus, port->channels_max);
		found_mend(d, "ethtool -L %s combined %u", port->name, d->cpus);
	} else if (port->channels == 1 && port->channels_max > 1 && d->cpus > 1) {
		found_warn(d,
			   "one queue of %u is in use: a single CPU does all the work of this "
			   "port",
			   port->channels_max);
		found_mend(d, "ethtool -L %s combined %u", port->name,
			   d->cpus < port->channels_max ? d->cpus : port->channels_max);
	}
	if (port->channels > 1 && p->facts.ports_hashed == NETLINK_NO) {
		found_warn(d, "the driver ignores UDP ports when it chooses a queue: all "
			      "messages of a worker go to one CPU");
		found_mend(d, "ethtool -N %s rx-flow-hash udp4 sdfn", port->name);
	}
}

/* --- sizes ----------------------------------------------------------------------------------- */

/* Where nobody has asked for one, that of each run fits the ports that its results leave by. */
static uint32_t payload_least(const json_t *job)
{
	const int family = strchr(field_text(job, "service"), ':') ? AF_INET6 : AF_INET;

	return json_is_true(field(job, "payload_fits"))
		       ? run_payload_default(family, (unsigned int)field_number(job, "workers"))
		       : (uint32_t)field_number(job, "payload");
}

static unsigned int jobs_too_big(struct doctor *d, const struct doctor_port *p)
{
	unsigned int count = 0;
	const json_t *job;
	size_t i;

	json_array_foreach(d->jobs, i, job)
	{
		uint32_t payload = payload_least(job);
		bool ip6 = strchr(field_text(job, "service"), ':');
		uint32_t needed = port_mtu_needed(payload, ip6, field_number(job, "workers"));

		if (needed <= p->port.mtu)
			continue;
		count++;
		found_warn(d,
			   "MTU %u: job %s with payload %u needs %u if its results leave by "
			   "this port",
			   p->port.mtu, field_text(job, "name"), payload, needed);
		found_mend(d, "ip link set %s mtu %u", p->port.name, needed);
	}
	return count;
}

static void check_mtu(struct doctor *d, const struct doctor_port *p)
{
	uint32_t most = port_mtu_max(p->port.driver);

	if (jobs_too_big(d, p))
		return;
	if (p->port.mtu > most && !p->tc) {
		finding_add(d->findings, p->status && p->native ? FINDING_WARN : FINDING_FAIL,
			    "MTU %u: native "
			    "XDP takes at "
			    "most about %u "
			    "with driver %s. "
			    "Give the "
			    "neighbours of "
			    "this port the "
			    "same MTU",
			    p->port.mtu, most, p->port.driver);
		found_mend(d, "ip link set %s mtu %u", p->port.name, most);
	} else if (p->port.mtu < MTU_ORDINARY) {
		found_warn(d,
			   "MTU %u: the default payload of %u does not fit; create jobs with "
			   "--payload %u",
			   p->port.mtu, port_payload_max(MTU_ORDINARY, false, 1),
			   port_payload_max(p->port.mtu, false, 1));
	} else {
		found_ok(d, "MTU %u: a payload has at most %u bytes (IPv4), %u bytes (IPv6)",
			 p->port.mtu, port_payload_max(p->port.mtu, false, 1),
			 port_payload_max(p->port.mtu, true, 1));
	}
}

/* --- what happens to frames before XDP sees them --------------------------------------------- */

static void check_offloads(struct doctor *d, const struct doctor_port *p)
{
	if (*p->port.coalescing) {
		finding_add(d->findings, p->status && p->native ? FINDING_WARN : FINDING_FAIL,
			    "an offload may "
			    "join several "
			    "messages into "
			    "one frame. "
			    "Native XDP "
			    "cannot attach "
			    "then, or such "
			    "frames pass "
			    "without being "
			    "summed (outcome "
			    "COALESCED)");
		found_mend(d, "ethtool -K %s%s", p->port.name, p->port.coalescing);
	} else {
		found_ok(d, "no offload joins messages");
	}
}

/* Does a tenant's ingress point ask for a tag on this port? */
static const char *tenant_with_vlan(const struct doctor *d, const char *port)
{
	const json_t *tenant, *point;
	size_t length = strlen(port), i, j;

	json_array_foreach(d->tenants, i, tenant)
	{
		json_array_foreach(field(tenant, "ingress"), j, point)
		{
			const char *text = json_string_value(point), *vlan;

			if (!text || strncmp(text, port, length) != 0 || text[length] != ' ')
				continue;
			vlan = strstr(text, " vlan ");
			if (vlan && strtoul(vlan + strlen(" vlan "), NULL, 10) != 0)
				return field_text(tenant, "name");
		}
	}
	return NULL;
}

/* Not for a veth: there the other end decides, and check_peer() looks at it. */
static void check_vlan(struct doctor *d, const struct doctor_port *p)
{
	const char *tenant = tenant_with_vlan(d, p->port.name);

	if (!tenant || p->facts.peer)
		return;
	if (p->tc) {
		found_ok(d, "TC sees all VLAN tags");
	} else if (p->facts.vlan_stripped == NETLINK_YES) {
		found_fail(d,
			   "the driver removes VLAN tags before XDP sees them, and messages "
			   "of tenant %s have one: the node refuses all of them",
			   tenant);
		found_mend(d, "ethtool -K %s rxvlan off", p->port.name);
	} else {
		found_ok(d, "VLAN tags stay in their frames");
	}
}

static void check_rp_filter(struct doctor *d, const struct doctor_port *p)
{
	const char *name = p->port.name;
	char path[96];
	long all = doctor_read_number("/proc/sys/net/ipv4/conf/all/rp_filter", 0), own;

	snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
	own = doctor_read_number(path, 0);
	if ((own > all ? own : all) != 1)
		return;
	found_warn(d, "the strict reverse path filter is on: where routes differ between the two "
		      "directions, the kernel silently drops messages of workers that join");
	found_mend(d, "sysctl -w net.ipv4.conf.%s.rp_filter=2", name);
}

/* --- veth ------------------------------------------------------------------------------------ */

static void peer_examine(struct doctor *d, const struct doctor_port *p,
			 const struct netlink_peer *peer, int lost, const struct why *why,
			 const struct why *mend)
{
	const char *at = *peer->where ? " in " : "", *tenant = tenant_with_vlan(d, p->port.name);

	if (lost) {
		found_fail(d, "%s", why->text);
		found_mend(d, "%s", mend->text);
	} else if (!p->native && peer->segments) {
		found_warn(d,
			   "the other end, %s%s%s, may send several messages as one frame "
			   "(UDP_SEGMENT). Without native XDP here such frames pass without "
			   "being summed",
			   peer->name, at, peer->where);
		found_mend(d, "%sethtool -K %s tx-udp-segmentation off", peer->enter, peer->name);
	} else {
		found_ok(d, "the other end, %s%s%s, %s", peer->name, at, peer->where,
			 p->native ? "has an XDP program" : "sends messages one by one");
	}
	if (tenant && peer->inserts_vlan && !p->tc) {
		found_fail(d,
			   "the other end leaves VLAN tags beside the frame, where XDP does "
			   "not see them, and messages of tenant %s have one",
			   tenant);
		found_mend(d, "%sethtool -K %s txvlan off", peer->enter, peer->name);
	}
}

static void check_peer(struct doctor *d, const struct doctor_port *p)
{
	struct netlink_peer peer = { 0 };
	struct why why = { "" }, mend = { "" };
	int r;

	if (!p->facts.peer)
		return;
	r = port_peer_check(&p->facts, p->port.name, p->native, dataplane_is_native, &peer, &why,
			    &mend);
	if (r < 0)
		found_unknown(d, "%s", why.text);
	else
		peer_examine(d, p, &peer, r, &why, &mend);
}

const struct doctor_check doctor_port_checks[] = {
	{ "link", check_link }, { "kind", check_kind },
	{ "xdp", check_xdp },	{ "queues", check_queues },
	{ "mtu", check_mtu },	{ "offloads", check_offloads },
	{ "vlan", check_vlan }, { "rp_filter", check_rp_filter },
	{ "peer", check_peer }, { "neighbours", doctor_neighbours_check },
	{ NULL, NULL },
};
