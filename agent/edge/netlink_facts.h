/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * More of what the kernel knows of a port, for diagnosis: what its driver says of XDP, what it
 * does to frames before XDP sees them, and who is at the other end of a veth pair.
 */
#ifndef TALLY_AGENT_NETLINK_FACTS_H
#define TALLY_AGENT_NETLINK_FACTS_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"

enum netlink_answer {
	NETLINK_UNKNOWN, /* kernel or driver does not say */
	NETLINK_NO,
	NETLINK_YES,
};

struct netlink_facts {
	enum netlink_answer native; /* can the driver run XDP and redirect? Linux says since 6.3 */
	enum netlink_answer vlan_stripped; /* is a frame's tag taken out before XDP sees it? */
	enum netlink_answer ports_hashed; /* do UDP ports count in choosing a receive queue? */
	char kind[16]; /* "vlan", "bridge", "bond" ...; "" for a device and for a veth */
	bool enslaved_to_bond;
	uint32_t peer; /* of a veth: ifindex of the other end; 0: no veth */
	int peer_namespace; /* number that our namespace has for the peer's; -1: it is ours */
};

/* -ENODEV: no such interface. */
int netlink_facts_read(const char *name, uint32_t ifindex, struct netlink_facts *ret,
		       struct why *why);

/* Can XDP in another port's driver send frames through this one? Linux says since 6.3. */
enum netlink_answer netlink_takes_xdp(uint32_t ifindex);

/* The other end of a veth, wherever it is. */
struct netlink_peer {
	char name[IF_NAMESIZE];
	char where[48]; /* "", "namespace NAME" or "namespace of process N" */
	char enter[64]; /* what a command that works on it begins with; "" if none is needed */
	bool native; /* an XDP program runs in its driver */
	bool gro;
	bool segments; /* leaves a batch of datagrams as one frame, as an offload (UDP_SEGMENT) */
	bool inserts_vlan; /* leaves a tag beside the frame, as an offload */
};

/*
 * Looks through the namespaces that have a name or a process, by entering them; ours is entered
 * again before it returns. `is_native` is asked there of the other end. -ENOENT: not found;
 * -EPERM: we may not look.
 */
int netlink_peer_read(const struct netlink_facts *facts, bool (*is_native)(uint32_t ifindex),
		      struct netlink_peer *ret, struct why *why);

#endif
