// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <grp.h>
#include <stddef.h>

#include "user_group.h"

bool user_group_exists(const char *name) { return getgrnam(name) != NULL; }

const char *user_group_name(gid_t group)
{
	const struct group *found = getgrgid(group);

	return found ? found->gr_name : NULL;
}
