/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Several roots of one job (docs/decisions/0025): at which nodes they are. InArt splits a model
 * over roots that are given (split.h); which ones to take the paper does not say, so this is ours.
 * Pure.
 *
 * Each root is a job of the problem, with the same workers, which is summed at one node. The most
 * that a worker can send to all roots together is the sum of these jobs' fair rates (place_cost()),
 * if the shares are as the rates are.
 */
#ifndef TALLY_POLICY_ROOTS_H
#define TALLY_POLICY_ROOTS_H

#include "place.h"

/*
 * Nodes for those of job part[parts] whose tree has no nodes; all other jobs lie as `tree`[p->jobs]
 * says. The nodes where the rates of all parts together are highest, and of equals those where the
 * decision costs least: one after the other, then each once more, until none gets better. Parts are
 * at nodes of their own as long as there are enough with room for their slots. Weighed are the
 * eight nodes that promise most (of more than four parts fewer), as if each link gave each flow its
 * share.
 *
 * ret_rate[parts]: bytes a second of each part. -ENOSPC: nodes that all workers reach have no room
 * for all parts; -EINVAL, -ENOMEM; then `tree` is as it was.
 */
int roots_choose(const struct place_problem *p, const uint32_t *part, unsigned int parts,
		 struct place_tree *tree, double *ret_rate);

#endif
