/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A place in a run of a job, got from an agent and given back to it (docs/joining.md): the
 * client's edge to the agent. The collectives know nothing of it.
 */
#ifndef TALLY_CLIENT_JOIN_H
#define TALLY_CLIENT_JOIN_H

#include <tally/tally.h>

#include "common/joining.h"
#include "transport.h"

struct join;

/*
 * Asks for a place and waits until all ranks have come. What stands in tally.h of the options,
 * their defaults and errors holds. On success *ret_channel is bound to the
 * address that the agent knows, not yet connected; `ret_place` is JOINING_RUN; and *ret holds
 * the place until join_close(). Sets the error text.
 */
int join_open(const struct tally_join_options *options, struct join **ret,
	      struct channel **ret_channel, struct joining_answer *ret_place);

/*
 * Leaves and frees. Takes no time while the connection is there; if the agent has ended it, a
 * second at most goes into telling it anew. Keeps the error text. NULL is allowed.
 */
void join_close(struct join *j);

#endif
