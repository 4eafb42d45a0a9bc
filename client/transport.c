// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "transport.h"

#include <errno.h>

/* The faster, the earlier. */
static const struct transport *const transports[] = {
	&transport_udp,
};

int transport_open(const struct sockaddr_storage *local, struct channel **ret)
{
	int r = -ENOTSUP;

	for (size_t i = 0; r < 0 && i < sizeof(transports) / sizeof(transports[0]); i++)
		r = transports[i]->open(local, ret);
	return r;
}

void transport_close(struct channel *c)
{
	if (c)
		c->transport->close(c);
}
