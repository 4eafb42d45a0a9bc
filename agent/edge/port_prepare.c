// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "agent/core/port_check.h"
#include "port_prepare.h"

int port_prepare(const struct netlink_port *p, enum dataplane_mode mode, struct dataplane_port *ret,
		 struct why *why)
{
	unsigned int cpus = dataplane_cpus();

	*ret = (struct dataplane_port){ .ifindex = p->ifindex, .mode = mode };
	memcpy(ret->name, p->name, sizeof(ret->name));
	if (mode == DATAPLANE_GENERIC || mode == DATAPLANE_TC ||
	    !port_panics_in_native(p, cpus, dataplane_is_native(p->ifindex)))
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
