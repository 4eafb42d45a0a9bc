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
	NETLINK_UNKNOWN, /* the kernel or the driver does not say */
	NETLINK_NO,
	NETLINK_YES,
};

struct netlink_facts {
	enum netlink_answer
		native; /* the driver can run XDP and redirect; Linux says so since 6.3 */
	enum netlink_answer
		vlan_stripped; /* the driver removes VLAN tags before XDP sees the frame */
	enum netlink_answer ports_hashed; /* UDP ports count when the driver chooses a queue */
	char kind[16]; /* "vlan", "bridge", "bond" ...; "" for a device and for a veth */
	bool enslaved_to_bond;
	uint32_t peer; /* ifindex of the other end of a veth; 0: not a veth */
	int peer_namespace; /* our namespace's number for the peer's namespace; -1: ours */
};

/* -ENODEV: no such interface. */
int netlink_facts_read(const char *name, uint32_t ifindex, struct netlink_facts *ret,
		       struct why *why);

/* Can native XDP of another port redirect frames to this one? Linux says so since 6.3. */
enum netlink_answer netlink_takes_xdp(uint32_t ifindex);

/* The other end of a veth, wherever it is. */
struct netlink_peer {
	char name[IF_NAMESIZE];
	char where[48]; /* "", "namespace NAME" or "namespace of process N" */
	char enter[64]; /* prefix of commands that are to run there; "": none */
	bool native; /* an XDP program runs in the driver */
	bool gro;
	bool segments; /* the peer sends a batch of datagrams as one frame (UDP_SEGMENT) */
	bool inserts_vlan; /* the peer leaves VLAN tags beside the frame, as an offload */
};

/*
 * Looks for the peer in all namespaces that have a name or a process, by entering them, and comes
 * back to ours. Asks `is_native` there of the other end. -ENOENT: not found; -EPERM: only root may
 * look.
 */
int netlink_peer_read(const struct netlink_facts *facts, bool (*is_native)(uint32_t ifindex),
		      struct netlink_peer *ret, struct why *why);

#endif
