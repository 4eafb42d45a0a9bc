// SPDX-License-Identifier: GPL-2.0-only
/* sources: sim/topology.c sim/builder.c sim/graphml.c agent/policy/graph.c */
/* libraries: -lexpat */
/*
 * Networks in GraphML: what is taken has links in pairs, and what is refused says in which line.
 */
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/graphml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(topology_freep) struct topology *t = NULL;
	struct why why = { "" };

	if (topology_graphml((const char *)data, size, &TOPOLOGY_DEFAULTS, &t, &why) != 0) {
		must(!strncmp(why.text, "line ", 5));
		return 0;
	}
	must(t->graph->machines > 0 && t->graph->links % 2 == 0);
	for (unsigned int i = 0; i < t->graph->links; i += 2)
		must(t->graph->link[i].from == t->graph->link[i + 1].to &&
		     t->graph->link[i].capacity > 0);
	for (uint32_t m = 0; m < t->graph->machines && m < 64; m++)
		must(topology_machine(t, t->name[m]) == m);
	return 0;
}
