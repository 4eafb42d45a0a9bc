// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a worker says of its way to the node: docs/joining.md#payloads. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "join_private.h"
#include "way.h"

enum {
	MTU_ORDINARY = 1500, /* what an agent takes it for, if nothing is said */
	WAIT_MS = 20,
	WAIT_MS_MAX = 500,
};

/* As long as an answer takes from the agent, twice over, and some time for those on the way. */
static uint32_t wait_ms(const struct join *j)
{
	struct tcp_info info = { 0 };
	uint32_t ms = WAIT_MS;

	if (j->agent.ss_family != AF_UNIX &&
	    getsockopt(j->fd, IPPROTO_TCP, TCP_INFO, &info, &(socklen_t){ sizeof(info) }) == 0)
		ms += 2 * (info.tcpi_rtt / 1000);
	return ms < WAIT_MS_MAX ? ms : WAIT_MS_MAX;
}

/* 0: nobody says where the node is. */
static uint16_t mtu_find(const struct join *j)
{
	const struct sockaddr_storage *node = j->agent.ss_family != AF_UNIX ? &j->agent
					      : j->service.ss_family	    ? &j->service
									    : NULL;
	uint32_t mtu = node ? way_try_mtu(&j->local, node, wait_ms(j)) : 0;

	return (uint16_t)(mtu < UINT16_MAX ? mtu : UINT16_MAX);
}

/* Several agents that the program names know nothing of each other, and all their runs must have
 * one payload: the smallest that there is. */
void join_way_say(struct join *j)
{
	const bool is_one_of_several = j->roots > 1 && !j->payload_bytes;
	const uint16_t mtu = j->is_older || is_one_of_several ? 0 : mtu_find(j);

	j->request.payload_bytes = j->is_older ? 0 : j->payload_bytes;
	j->request.mtu = mtu > MTU_ORDINARY || j->request.payload_bytes ? mtu : 0;
}

bool join_is_older(struct join *j, int error)
{
	if (error != -EINVAL || !j->is_refused || !tally_set_is_empty(&j->missing) ||
	    !(j->request.mtu || j->request.payload_bytes))
		return false;
	j->is_refused = false;
	j->local = j->said;
	j->service.ss_family = 0;
	j->is_older = true;
	return true;
}
