/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `tally-sim slots`: the jobs of a workload share the slots of one node, packet by packet. */
#ifndef TALLY_SIM_SLOTS_MODE_H
#define TALLY_SIM_SLOTS_MODE_H

#include <stdio.h>

#include "sim_options.h"
#include "topology.h"
#include "workload.h"

/*
 * Each policy with each number of slots, to `to`: a table, or JSON or CSV. What cannot be run is
 * said on standard error, and has no figures. 0; 1: that happened. -EINVAL: the workload cannot be
 * run like this; -ENOMEM.
 */
int slots_mode(const struct sim_options *o, const struct topology *t, const struct workload *w,
	       FILE *to, struct why *why);

#endif
