/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tree of a job whose packets take ways that the cluster wants: who sums on these ways, with
 * the ranks that come through. Pure.
 */
#ifndef TALLY_AGENT_FINDER_WAYS_H
#define TALLY_AGENT_FINDER_WAYS_H

#include "agent/cluster/picture.h"
#include "agent/cluster/wanted_ways.h"
#include "agent/core/job.h"

/*
 * A node that would have nothing to add up, one rank or what another node sends alone, is left out,
 * and so is one that reports no service address of the job's family. Ranks elsewhere than where
 * ways begin come to the root as routing has it.
 */
void finder_ways_tree(const struct wanted_ways *w, const struct picture *p, const struct job *j,
		      struct tree *ret);

#endif
