/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The questions to drivers that netlink does not answer. For netlink*.c. */
#ifndef TALLY_AGENT_ETHTOOL_H
#define TALLY_AGENT_ETHTOOL_H

#include <stdbool.h>

/* One command of <linux/ethtool.h> on an interface; `fd` is any socket. */
bool ethtool(int fd, const char *name, void *command);

/*
 * All features of an interface by their names ("rx-gro-hw"), in the kernel's order. False: it
 * does not say.
 */
bool ethtool_features(int fd, const char *name,
		      void (*each)(void *context, const char *feature, bool active), void *context);

#endif
