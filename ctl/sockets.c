// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sockets.h"

int sockets_find(const char *table, uint16_t port, unsigned int state, uint64_t *ret_inode)
{
	for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned int bound, is;
		uint64_t inode;

		/* sl local:port remote:port state queues timer retransmits uid timeout inode */
		// NOLINTNEXTLINE(cert-err34-c): the kernel's own hexadecimal, and fixed widths
		if (sscanf(line,
			   " %*[0-9]: %*[0-9A-Fa-f]:%4x %*[0-9A-Fa-f]:%*4x %2x %*s %*s %*s %*u %*u "
			   "%20" SCNu64,
			   &bound, &is, &inode) != 3)
			continue;
		if (bound != port || (state && is != state))
			continue;
		*ret_inode = inode;
		return 0;
	}
	return -ENOENT;
}
