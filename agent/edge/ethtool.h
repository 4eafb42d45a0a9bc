/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What only ethtool's ioctl says of drivers. For netlink*.c. */
#ifndef TALLY_AGENT_ETHTOOL_H
#define TALLY_AGENT_ETHTOOL_H

#include <stdbool.h>

/* Runs a command of <linux/ethtool.h> on an interface; `fd` is any socket. False: it failed. */
bool ethtool(int fd, const char *name, void *command);

/*
 * Calls `each` for all features of an interface by name ("rx-gro-hw"), in the kernel's order.
 * False: the driver does not say.
 */
bool ethtool_features(int fd, const char *name,
		      void (*each)(void *context, const char *feature, bool active), void *context);

#endif
