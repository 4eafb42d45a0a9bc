// SPDX-License-Identifier: GPL-2.0-only
/* sources: sim/topology.c sim/topology_ways.c sim/builder.c sim/shapes.c sim/testbed_file.c */
/* sources: agent/policy/graph.c */
/*
 * Networks, by shape and by text: what is taken has a graph whose links come in pairs, and what is
 * refused says why.
 */
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/topology.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void look_at(const struct topology *t)
{
	const struct graph *g = t->graph;
	struct why why;

	must(t->hosts <= g->machines && g->links % 2 == 0);
	for (unsigned int i = 0; i < g->links; i += 2) {
		must(g->link[i].from == g->link[i + 1].to && g->link[i].to == g->link[i + 1].from);
		must(g->link[i].capacity > 0);
	}
	for (uint32_t m = 0; m < g->machines && m < 64; m++)
		must(topology_machine(t, t->name[m]) == m);
	must(topology_astray(t, &why) >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *words = strndup((const char *)data, size);
	_cleanup_(topology_freep) struct topology *shape = NULL, *text = NULL;
	struct why why = { "" };

	must(words != NULL);
	if (strlen(words) < 24 && topology_shape(words, &shape, &why) == 0)
		look_at(shape);
	else
		must(strlen(words) < 24 ? *why.text != '\0' : true);
	why.text[0] = '\0';
	if (topology_testbed((const char *)data, size, &TOPOLOGY_DEFAULTS, &text, &why) == 0)
		look_at(text);
	else
		must(*why.text != '\0');
	return 0;
}
