// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "port_check.h"

/*
 * virtio_net with more queues than CPUs, and too few left for XDP's own, panics the kernel at
 * the first XDP_TX: there native mode is not tried at all. Where it is on already, XDP's queues
 * are counted among the others, and there were enough.
 */
static bool panics_in_native(const struct netlink_port *p, unsigned int cpus)
{
	return !strcmp(p->driver, "virtio_net") && p->channels > cpus &&
	       p->channels + cpus > p->channels_max && !dataplane_is_native(p->ifindex);
}

int port_check_prepare(const struct netlink_port *p, enum dataplane_mode mode,
		       struct dataplane_port *ret, struct why *why)
{
	unsigned int cpus = dataplane_cpus();

	*ret = (struct dataplane_port){ .ifindex = p->ifindex, .mode = mode };
	memcpy(ret->name, p->name, sizeof(ret->name));
	if (mode == DATAPLANE_GENERIC || !panics_in_native(p, cpus))
		return 0;
	why_say(&ret->refused, 0,
		"%u queues on %u CPUs, of %u: this driver's XDP_TX would panic the kernel; "
		"ethtool -L %s combined %u makes native mode safe",
		p->channels, cpus, p->channels_max, p->name, cpus);
	if (mode == DATAPLANE_NATIVE)
		return why_say(why, -EOPNOTSUPP, "%s: %.400s", p->name, ret->refused.text);
	ret->mode = DATAPLANE_GENERIC;
	return 0;
}
