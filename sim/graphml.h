/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Networks in GraphML, by libexpat. Pure. */
#ifndef TALLY_SIM_GRAPHML_H
#define TALLY_SIM_GRAPHML_H

#include "topology.h"

/*
 * As topology_testbed(). A node of the text is a node of the network, unless its data `kind` says
 * host or switch, and one at least is a host; `slots` of a node and `rate` of an edge are data,
 * too. A <default> of these keys holds where there is no data. A node's id is its name.
 */
int topology_graphml(const char *bytes, size_t length, const struct topology_defaults *defaults,
		     struct topology **ret, struct why *why);

#endif
