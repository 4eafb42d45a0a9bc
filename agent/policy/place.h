/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the sums of jobs are made: for each job a tree of nodes, or none. A policy is one file and
 * one line of PLACE_POLICIES (place_policies.c). Pure.
 *
 * What a tree means: each worker sends to whichever is the fewest links away, a node of its job's
 * tree or the job's root; of equals the first node, and the root last. Each node sends one sum to
 * its parent, or to the root. Results come back the same way: one for each sum that went up, and
 * one for each worker. Where a job has no root, the first node of its tree makes the results (the
 * **top**), and all others are below it. Every message takes one of the shortest paths
 * (reach_path()).
 */
#ifndef TALLY_POLICY_PLACE_H
#define TALLY_POLICY_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "fair.h"
#include "graph.h"
#include "reach.h"

enum {
	PLACE_JOBS_MAX = 1 << 16,
	PLACE_WORKERS_MAX = 256, /* of a job */
	PLACE_NODES_MAX = 32, /* of a tree */
	PLACE_TENANTS_MAX = 1 << 16,
};

struct place_node {
	uint32_t machine; /* of GRAPH_NODE; each once in a tree */
	uint32_t parent; /* an earlier node of the tree, or GRAPH_NONE: the root */
};

struct place_tree {
	unsigned int nodes; /* 0: nobody sums on the way */
	struct place_node node[PLACE_NODES_MAX];
};

struct place_job {
	const uint32_t *worker; /* [workers]: machines; at least one, each may come several times */
	unsigned int workers;
	uint32_t root; /* makes the results; GRAPH_NONE: the top of its tree does */
	double bytes; /* that each worker sends in an iteration; above 0 */
	double compute_s; /* of an iteration, in which no link is used; not below 0 */
	double weight; /* how much of a link it gets beside others (fair.h); above 0 */
	uint32_t tenant; /* below PLACE_TENANTS_MAX */
	uint32_t slots; /* that it takes of each of its nodes */
	double iterations; /* still to come: what a move may pay off in; not below 0 */
	const struct place_tree *now; /* where the job lies; NULL: it is new */
	bool stays; /* there: the decision is about others. Not without `now` */
};

/*
 * What a decision costs is the sum of these terms, each times its weight. All are about 0 to 1 or
 * a small multiple of it, so that weights say what they seem to say.
 *
 * bytes: bytes times links in one iteration of each job, by what that would be if nobody summed.
 * use: the largest use of a link that a job uses: the load of others, and bytes a second of jobs
 *   that nothing slows down, by capacity.
 * time: what the fair rates (fair.h) make of an iteration, by what it takes alone in an empty
 *   network (**slowdown**), less 1; the mean of all jobs by weight.
 * fair: the mean slowdown of the tenant that has the highest one, less 1.
 * nodes: how many nodes have at least one job, by how many there are.
 * moves: seconds lost by jobs that have `now` and get another tree, by the seconds that they go on
 *   for; the mean of all jobs by weight.
 */
#define PLACE_TERMS(X) X(bytes) X(use) X(time) X(fair) X(nodes) X(moves)

struct place_terms {
#define PLACE_TERM(name) double name;
	PLACE_TERMS(PLACE_TERM)
#undef PLACE_TERM
};

struct place_options {
	unsigned int nodes_max; /* in use, by all jobs */
	unsigned int tree_max; /* nodes of a tree: at most PLACE_NODES_MAX */
	unsigned int jobs_max; /* of a node; its slots are another limit */
	double distance_max; /* `tapina`: how far workers may be, in links on average */
	double move_s; /* that a job loses when it moves */
	double margin; /* place_again(): a job moves for a gain above that, in parts of the cost */
	unsigned int steps_max; /* of searches: see each policy */
	uint64_t seed; /* of paths, and of chance */
	struct place_terms weight;
};

#define PLACE_OPTIONS                                       \
	((struct place_options){ .nodes_max = UINT32_MAX,   \
				 .tree_max = 16,            \
				 .jobs_max = UINT32_MAX,    \
				 .distance_max = 3,         \
				 .move_s = 1,               \
				 .margin = 0.02,            \
				 .steps_max = 20000000,     \
				 .seed = 1,                 \
				 .weight = { .bytes = 0.25, \
					     .use = 0.25,   \
					     .time = 1,     \
					     .fair = 0.25,  \
					     .nodes = 0.05, \
					     .moves = 1 } })

/* Loads of links: what others send, measured or forecast; what these jobs send must not be in it.
 */
struct place_problem {
	const struct reach *reach; /* of the network with these loads */
	const struct place_job *job;
	unsigned int jobs;
	struct place_options options;
};

/* -EINVAL: something is not as it is said above; -E2BIG. */
int place_check(const struct place_problem *p);

/*
 * Are these trees (of all jobs) trees, and within the limits? -EINVAL: they are not trees of this
 * problem; -ENOSPC: a limit is passed; -ENOMEM.
 */
int place_allowed(const struct place_problem *p, const struct place_tree *tree);

/* --- what a decision costs ------------------------------------------------------------------- */

/* Of a job. Fields of a job that has failed are 0 but for `failed`. */
struct place_job_cost {
	bool failed; /* nobody makes its results, or a message has no way */
	double bytes; /* times links, in an iteration */
	double rate; /* bytes a second, while all jobs communicate */
	double alone_s, iteration_s; /* of an iteration: in an empty network; at that rate */
	double slowdown;
	uint32_t narrowest; /* the link that holds the job up; GRAPH_NONE: it uses none */
	bool moved;
};

struct place_cost {
	unsigned int failed; /* jobs; they count in no other term */
	double total; /* INFINITY if a job has failed */
	struct place_terms value, part; /* each term; and times its weight */
	uint32_t fullest; /* the link of the term `use`; GRAPH_NONE: jobs use none */
	unsigned int nodes, moved; /* in use; jobs */
};

/* ret_job, if not NULL, has room for p->jobs. -EINVAL, -E2BIG, -ENOMEM. */
int place_cost(const struct place_problem *p, const struct place_tree *tree, struct place_cost *ret,
	       struct place_job_cost *ret_job);

/*
 * What a job with this tree uses of each link, by number: for one byte that each worker sends. The
 * caller's to free(). -EINVAL; -EHOSTUNREACH: nobody makes its results, or no way; -ENOMEM.
 */
int place_uses(const struct place_problem *p, uint32_t job, const struct place_tree *tree,
	       struct fair_use **ret, unsigned int *ret_uses);

/*
 * The node of a tree, by its index, that a worker at this machine sends to; GRAPH_NONE: the root,
 * also where that is GRAPH_NONE.
 */
uint32_t place_nearest(const struct reach *reach, uint32_t worker, uint32_t root,
		       const struct place_tree *tree);

/* One tree that a job could have, within the limits, and what the decision would cost then. */
struct place_candidate {
	struct place_tree tree;
	struct place_cost cost;
	struct place_job_cost job;
	bool chosen; /* the tree that the job has */
};

/* For qsort(): the chosen one first, then the cheapest; those whose job fails come last. */
int place_candidate_compare(const void *a, const void *b);

/*
 * For people who ask why a job lies where it lies: first the tree that it has, then the cheapest of
 * the others that are worth weighing (none, near nodes), with all other jobs as they are; together
 * at most `max`. Returns how many there are; or what place_allowed() and place_cost() return.
 */
int place_explain(const struct place_problem *p, const struct place_tree *tree, uint32_t job,
		  unsigned int max, struct place_candidate *ret);

/*
 * The tree of a job that is summed where its packets pass anyhow, as agents find it
 * (docs/trees.md): its top is given, and those of `may`[machines] sum that are on the workers'
 * paths to the top, where two streams meet at least: two workers, or sums. Where paths part after
 * they have met, the first one counts. Left out is who would have a worker in this tree send to
 * another node than the first one on its path; and of more than PLACE_NODES_MAX, who is farthest
 * from the top. Workers without a way to the top count for nothing. -EINVAL: the top does not sum;
 * -ENOMEM.
 */
int place_on_the_way(const struct place_problem *p, uint32_t job, uint32_t top, const bool *may,
		     struct place_tree *ret);

/* --- policies -------------------------------------------------------------------------------- */

struct place_policy {
	const char *name;
	const char *knows; /* what it looks at */
	const char *what; /* it does */
	/*
	 * ret[p->jobs]. The problem has been checked. Of jobs that stay the tree does not matter,
	 * but that they are where they are does. -EAGAIN: steps_max was not enough; -ENOSPC:
	 * jobs that need a node have no room.
	 */
	int (*decide)(const struct place_problem *p, struct place_tree *ret);
};

extern const struct place_policy PLACE_POLICIES[];
extern const unsigned int PLACE_POLICIES_COUNT;

const struct place_policy *place_policy_find(const char *name); /* or NULL */

/*
 * What the policy says. A policy may know less than all limits: of jobs whose tree does not fit
 * beside those before it, the tree is taken away. Jobs that stay come before all. ret[p->jobs],
 * untouched on failure; *ret_without is how many trees were taken. -EINVAL, -E2BIG, -ENOMEM, or
 * what the policy returns.
 */
int place_decide(const struct place_policy *policy, const struct place_problem *p,
		 struct place_tree *ret, unsigned int *ret_without);

/* What of a policy's decision is none, for who writes policies. */
struct place_fault {
	uint32_t job, node, machine; /* which node of the job's tree; GRAPH_NONE: it is none */
	const char *rule; /* that is broken; NULL: none is */
};

/*
 * The same, and which jobs' trees were taken: ret_without[p->jobs]; *ret_fault, also on failure:
 * which rule the policy has broken, if -EINVAL comes of that.
 */
int place_decide_each(const struct place_policy *policy, const struct place_problem *p,
		      struct place_tree *ret, bool *ret_without, struct place_fault *ret_fault);

/*
 * Anew, where jobs have come or gone, or loads have changed: from where jobs lie (`now`) to where
 * they shall lie from their next iteration on. New jobs, and those that can lie where they are no
 * longer, are placed first, beside all others as they lie. Then jobs move, each only if all costs
 * less by `margin` (in parts of what it costs now), what the move itself costs included; and if by
 * place_cost() the moves together are not worth that, all stay. So the decision never costs more
 * than staying, and what changes costs by less than the margin moves nobody to and fro.
 * ret[p->jobs]; *ret_moved: how many jobs with `now` have another tree. Errors as of
 * place_decide().
 */
int place_again(const struct place_problem *p, struct place_tree *ret, unsigned int *ret_moved);

#endif
