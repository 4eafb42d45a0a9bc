// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>
#include <tally/wire.h>

#include "port_check.h"

enum {
	IP4_HEADERS = 20 + 8 + sizeof(struct tally_header), /* of a message of up to 64 workers */
	IP6_HEADERS = 40 + 8 + sizeof(struct tally_header),
};

bool port_panics_in_native(const struct netlink_port *port, unsigned int cpus, bool native)
{
	return !strcmp(port->driver, "virtio_net") && port->channels > cpus &&
	       port->channels + cpus > port->channels_max && !native;
}

uint32_t port_mtu_max(const char *driver)
{
	static const struct {
		const char *driver;
		uint32_t mtu;
	} smaller[] = { { "igc", 1500 }, { "gve", 2032 }, { "i40e", 3046 }, { "ice", 3046 } };

	for (size_t i = 0; i < sizeof(smaller) / sizeof(*smaller); i++)
		if (!strcmp(driver, smaller[i].driver))
			return smaller[i].mtu;
	return DATAPLANE_XDP_MTU;
}

/* Before the payload, with IP's and UDP's. */
static uint32_t headers_of(bool ip6, unsigned int workers)
{
	return (ip6 ? IP6_HEADERS : IP4_HEADERS) +
	       (workers > TALLY_SMALL_WORKERS_MAX ? sizeof(struct tally_more) : 0);
}

uint32_t port_payload_max(uint32_t mtu, bool ip6, unsigned int workers)
{
	uint32_t headers = headers_of(ip6, workers);
	uint32_t bytes = mtu > headers ? (mtu - headers) / TALLY_BLOCK_BYTES * TALLY_BLOCK_BYTES
				       : 0;

	return bytes < TALLY_PAYLOAD_MAX ? bytes : TALLY_PAYLOAD_MAX;
}

uint32_t port_mtu_needed(uint32_t payload_bytes, bool ip6, unsigned int workers)
{
	return payload_bytes + headers_of(ip6, workers);
}

int port_prepare(const struct netlink_port *p, enum dataplane_mode mode, unsigned int cpus,
		 bool native, struct dataplane_port *ret, struct why *why)
{
	*ret = (struct dataplane_port){ .ifindex = p->ifindex, .mode = mode };
	memcpy(ret->name, p->name, sizeof(ret->name));
	if (mode == DATAPLANE_GENERIC || mode == DATAPLANE_TC ||
	    !port_panics_in_native(p, cpus, native))
		return 0;
	why_say(&ret->refused, 0,
		"%u queues on %u CPUs, at most %u: this driver's XDP_TX would panic the kernel; "
		"ethtool -L %s combined %u makes native mode safe",
		p->channels, cpus, p->channels_max, p->name, cpus);
	if (mode == DATAPLANE_NATIVE)
		return why_say(why, -EOPNOTSUPP, "%s: %.400s", p->name, ret->refused.text);
	ret->mode = DATAPLANE_GENERIC;
	return 0;
}
