// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ways that are wanted of a job, as the JSON of docs/control.md. */
#include "common/address.h"
#include "results_private.h"
#include "steering.h"

static json_t *names(const char (*name)[NAME_BYTES], unsigned int count)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < count; i++)
		json_array_append_new(all, json_string(name[i]));
	return all;
}

/* Also of ways that lead to a root which the job had. */
json_t *results_ways(const struct shared_job *j, const struct steering *steering)
{
	const struct wanted_ways *w = j->ways;
	const struct steer_job *steered = steering_job(steering, j->name);
	json_t *ways;

	if (!w)
		return json_null();
	ways = json_array();
	for (unsigned int i = 0; i < w->ways; i++)
		json_array_append_new(ways,
				      json_pack("{so so}", "worker",
						results_printed(address_print, &w->way[i].worker),
						"nodes", names(w->way[i].node, w->way[i].nodes)));
	return json_pack("{ss ss so so}", "why", w->why, "trouble",
			 steered	  ? steered->why.text
			 : shared_ways(j) ? "this node does not know now whether they hold"
					  : "they are of another root, or of a job before",
			 "sums", names(w->sum, w->sums), "ways", ways);
}
