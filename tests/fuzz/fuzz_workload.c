// SPDX-License-Identifier: GPL-2.0-only
/* sources: sim/[bdm]*.c sim/shapes.c sim/topology.c sim/workload*.c agent/policy/graph.c */
/* libraries: -lm */
/*
 * Workloads for a small network: what is taken is within its limits, and what is refused says why.
 */
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void look_at(const struct topology *t, const struct workload *w)
{
	const struct graph *g = t->graph;

	must(w->jobs > 0);
	for (unsigned int i = 0; i < w->jobs; i++) {
		const struct workload_job *j = &w->job[i];

		must(j->workers > 0 && j->workers <= WORKLOAD_WORKERS_MAX && j->iterations > 0);
		must(j->bytes >= 1 && j->compute_s >= 0 && j->arrives_s >= 0 && j->weight > 0);
		must(j->root == GRAPH_NONE || j->root < g->machines);
		must(i == 0 || j->arrives_s >= w->job[i - 1].arrives_s);
		for (unsigned int k = 0; k < j->workers; k++)
			must(g->machine[j->worker[k]].kind == GRAPH_HOST);
	}
	for (unsigned int i = 0; i < w->failures; i++)
		must((w->failure[i].link < g->links) != (w->failure[i].machine < g->machines));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct topology *t;
	_cleanup_(workload_freep) struct workload *w = NULL;
	struct why why = { "" };

	if (!t)
		must(topology_shape("tapina", &t, &why) == 0);
	if (workload_parse("w", (const char *)data, size, t, 1, &w, &why) == 0)
		look_at(t, w);
	else
		must(!strncmp(why.text, "w:", 2));
	return 0;
}
