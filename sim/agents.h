/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agents of a network: one at each machine that sums or makes results (agent.h). Policies say
 * where jobs are to be summed; the agents there say by whose slots: quotas, loans, rings, borrowed
 * slots and sums in software are as the cores have them. Pure.
 *
 * A job is created and joined at its root's agent, and the agents of its other nodes get documents,
 * as docs/trees.md says. A root that is a host has no slots: it sums in software.
 */
#ifndef TALLY_SIM_AGENTS_H
#define TALLY_SIM_AGENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/policy/place.h"
#include "common/owned.h"
#include "common/why.h"
#include "topology.h"
#include "workload.h"

struct agents;

/* What the agents of nodes said when jobs came to them; those of hosts have no slots to give. */
struct agents_counts {
	unsigned int refused; /* jobs, which nobody sums on the way */
	struct why refusal; /* the first one, of a job or a document, in the agent's words; or "" */
	/* Nodes of jobs' trees: slots for the whole window, for a smaller one, some of the pool as
	 * far as these go, none. */
	unsigned int whole, smaller, borrowed, none;
	uint64_t rings_moved; /* so that others found room */
	uint64_t loans, recalled, refilled; /* runs, as in struct core_counts */
};

/*
 * `text` is a configuration of tallyd, and `name` its file's, for `why`. Of that, ports, addresses
 * and peers are of one machine, and are made up; the number of slots is the network's. Tenant n of
 * the workload is the n-th in the file, from 0 on, which is the default tenant. *ret is the
 * caller's to agents_free(); topology and workload stay as long. -EINVAL: also where the tenants
 * reserve more slots than a node has, or the workload has more tenants; -ENOMEM.
 */
int agents_open(const struct topology *t, const struct workload *w, const char *name,
		const char *text, size_t length, uint64_t seed, struct agents **ret,
		struct why *why);
void agents_free(struct agents *a); /* or NULL */
static inline void agents_freep(struct agents **a) { agents_free(*a); }

/*
 * Job i of the workload, which is not there, comes to this tree. to[workers]: the node of the tree,
 * by its index, that each worker sends to; GRAPH_NONE: the root. Agents that refuse are counted,
 * and no error. -ENOMEM.
 */
int agents_begin(struct agents *a, uint32_t i, const struct place_tree *tree, const uint32_t *to,
		 double now_s);

/* It goes, if it is there: the job, and then its documents. */
void agents_end(struct agents *a, uint32_t i, double now_s);

/*
 * What agents want to do by themselves until now is done. True: runs that had no slots have some,
 * so that trees are other ones.
 */
bool agents_wait(struct agents *a, double now_s);

/* When some of that may be due: as long as a node of some tree has no slots of its own. INFINITY:
 * never. */
double agents_deadline_s(const struct agents *a);

/*
 * The tree of job i as its agents have it: nodes that have no slots for it, of their own or of the
 * pool, pass on what comes, and are left out.
 */
void agents_tree(const struct agents *a, uint32_t i, const struct place_tree *tree,
		 struct place_tree *ret);

struct agents_counts agents_counts(const struct agents *a);

#endif
