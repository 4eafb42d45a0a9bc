/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which node makes a job's sums, as TAPINA and TAPINA-MG decide it: a job has one node or none, the
 * nodes in use and the jobs of a node are limited, and what is made small is the sum over jobs of
 * bytes times links, from workers to node. Pure.
 *
 * After the steps of the authors' code (keemeew/TAPINA-MG; TAPINA: ICCCN 2023). What nodes send on,
 * and results, do not count there.
 */
#ifndef TALLY_POLICY_PLACEMENT_H
#define TALLY_POLICY_PLACEMENT_H

#include "graph.h"

#define PLACEMENT_NONE UINT32_MAX /* no node sums: all goes to the parameter server */

struct placement_job {
	const uint32_t *worker; /* machines */
	unsigned int workers; /* at least 1 */
	double bytes; /* that each worker sends in a round; above 0 */
};

/* Jobs and nodes have numbers from 0 on; all arrays are the caller's. */
struct placement {
	unsigned int jobs, nodes;
	const double *size; /* of each job: bytes of all its workers */
	const double *cost; /* [job * nodes + node]; INFINITY: there is no way for some worker */
	const double *without; /* of each job: its cost where no node sums */
	unsigned int nodes_max; /* in use */
	unsigned int jobs_max; /* of a node */
};

/*
 * Bytes times links from the workers to each of these machines: ret_cost[job * machines + i].
 * -EINVAL: a worker or machine that is not there; -ENOMEM.
 */
int placement_costs(const struct graph *g, const struct placement_job *job, unsigned int jobs,
		    const uint32_t *machine, unsigned int machines, double *ret_cost);

/* What it costs that job j has the node node[j]. */
double placement_cost(const struct placement *p, const uint32_t *node);

/*
 * TAPINA: jobs choose one after another, the largest first. A job takes the best node in use if its
 * workers are no more than `distance_max` links away from there on average, or if no further node
 * may be used; otherwise its best node. ret_node[p->jobs]. -ENOMEM.
 */
int placement_reuse(const struct placement *p, double distance_max, uint32_t *ret_node);

/*
 * TAPINA-MG: a matching (deferred acceptance, as D. Gale and L. S. Shapley's of 1962): a job
 * proposes to nodes, the best for it first; a full node lets its smallest job go for a larger one.
 * First with all nodes; then nodes are dropped, those that save least first, and the jobs are
 * matched anew with those that are left. ret_node[p->jobs]. -ENOMEM.
 */
int placement_match(const struct placement *p, uint32_t *ret_node);

/*
 * The least cost there is, by a linear program with whole numbers: for small cases. A job whose
 * costs are all INFINITY has no node. steps_max as in lp.h. ret_node[p->jobs], untouched on
 * failure. -EAGAIN: not enough steps; -ENOSPC: jobs that cannot be without a node (`without` is
 * INFINITY) have no room within the limits; or what lp_minimise() returns.
 */
int placement_exact(const struct placement *p, unsigned int steps_max, uint32_t *ret_node);

#endif
