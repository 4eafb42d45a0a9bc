/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Groups of users, apart because their struct has the name of ours (agent/core/group.h). */
#ifndef TALLY_CTL_USER_GROUP_H
#define TALLY_CTL_USER_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

bool user_group_exists(const char *name);

/* NULL: it has none. Valid until the next call. */
const char *user_group_name(gid_t group);

#endif
