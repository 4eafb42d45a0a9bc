/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known of drivers and XDP that no kernel says: which ports are safe, and how big. Pure. */
#ifndef TALLY_AGENT_PORT_CHECK_H
#define TALLY_AGENT_PORT_CHECK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane_state.h"

/* An interface as XDP sees it. */
struct netlink_port {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
	char driver[32]; /* "" if it does not say */
	uint32_t mtu;
	bool up, carrier;
	uint32_t channels; /* combined queues in use and at most; 0 if the driver has no such */
	uint32_t channels_max;
	char coalescing[128]; /* ethtool's features that are on and may put several of our
			       * datagrams into one frame: " rx-gro-hw off ..." for ethtool -K */
};

/*
 * virtio_net with more queues than CPUs, and too few left for XDP's own, panics the kernel at
 * the first XDP_TX: there native mode must not be tried at all. Where a program is in the
 * driver already (`native`), XDP's queues are counted among the others, and there were enough.
 */
bool port_panics_in_native(const struct netlink_port *port, unsigned int cpus, bool native);

/* The MTU up to which this driver takes native XDP in one buffer, as far as that is known. */
uint32_t port_mtu_max(const char *driver);

/* Bytes of data in the biggest packet of a job of so many workers that fits an MTU: a multiple of
 * 64, 0 if none does. */
uint32_t port_payload_max(uint32_t mtu, bool ip6, unsigned int workers);

/* The MTU that a payload needs in a job of so many workers. */
uint32_t port_mtu_needed(uint32_t payload_bytes, bool ip6, unsigned int workers);

/*
 * An interface as the data plane wants it. Where native mode would panic the kernel, AUTO
 * becomes generic and `refused` says why; NATIVE is -EOPNOTSUPP. `native`: XDP is in the driver.
 */
int port_prepare(const struct netlink_port *p, enum dataplane_mode mode, unsigned int cpus,
		 bool native, struct dataplane_port *ret, struct why *why);

#endif
