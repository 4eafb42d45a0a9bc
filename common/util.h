/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What edges need besides owned.h and why.h: file descriptors that close themselves. */
#ifndef TALLY_COMMON_UTIL_H
#define TALLY_COMMON_UTIL_H

#include <unistd.h>
#include "owned.h"
#include "why.h"

#define TAKE_FD(fd) TAKE(fd, -1)

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#endif
