/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks that are astray: a tree that was written has them behind a node, and packets come by
 * another way, as far as the routes of this node say. Sums are right all the same, and slow. Pure.
 */
#ifndef TALLY_AGENT_ASTRAY_H
#define TALLY_AGENT_ASTRAY_H

#include "installation.h"
#include "job.h"

/*
 * At a job's root, with the hops of its copies: ranks that wait, to whom the way is not that to the
 * node right below which they are in the tree. Who waits without a known way is not among them.
 */
struct tally_set astray_at_root(const struct job *j, const struct installation *g);

/*
 * At an inner node: ranks below to whom the way is that to the root. None, if that is so of all:
 * then a router that the node has on one side only sends everything through it.
 */
struct tally_set astray_at_inner(const struct installation *g, const struct hop *root);

/* For people; "" for nobody. */
void astray_say(const struct tally_set *ranks, struct why *ret);

#endif
