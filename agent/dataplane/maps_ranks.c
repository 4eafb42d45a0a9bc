// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ranks: of a job that is bound, copy i is rank i's; nodes have the last key. */
#include <bpf/bpf.h>
#include <string.h>

#include "common/address.h"
#include "maps.h"

static struct tally_rank rank_of(const struct tally_job *job, const struct installation *g,
				 unsigned int i)
{
	const bool is_node = i == TALLY_NODE_KEY && g->address.ss_family;
	struct tally_rank rank = { .key = g->key[i] };
	size_t bytes;
	const void *raw;

	if (!job->bound && !is_node)
		return rank;
	if (job->bound)
		rank.port = installation_port(job, &g->copy[i].hop);
	raw = address_raw(is_node ? &g->address : &g->copy[i].address, &bytes);
	memcpy(rank.ip6, raw, bytes);
	return rank;
}

/* Is the rank known, or for TALLY_NODE_KEY the node? Inner nodes are, by their addresses. */
static bool rank_is_known(const struct tally_job *job, uint32_t i)
{
	if (i == TALLY_NODE_KEY)
		return job->node_key || !(job->root | job->bound);
	return (job->keyed || job->bound) && tally_set_has(&job->below, i);
}

int maps_ranks_put(struct dataplane *d, const struct tally_job *job, const struct installation *g)
{
	struct tally_rank rank = { .port = 0 };
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < TALLY_KEYS_MAX; i++) {
		const uint32_t index = tally_rank_index(job->group, i);

		if (g ? !rank_is_known(job, i) : !(job->keyed || i == TALLY_NODE_KEY))
			continue;
		if (g)
			rank = rank_of(job, g, i);
		r = bpf_map_update_elem(d->fd[PIN_RANKS], &index, &rank, BPF_ANY);
	}
	explicit_bzero(&rank, sizeof(rank));
	return r;
}

int maps_rank_bind(struct dataplane *d, uint32_t index, const struct hop *hop)
{
	const uint32_t group = index / TALLY_KEYS_MAX;
	struct tally_rank rank = { .port = 0 };
	struct tally_job job = { .id = 0 };
	uint32_t port;
	int r;

	r = bpf_map_lookup_elem(d->fd[PIN_JOBS], &group, &job);
	if (r == 0)
		r = bpf_map_lookup_elem(d->fd[PIN_RANKS], &index, &rank);
	if (r < 0)
		return r;
	port = installation_port(&job, hop);
	if (job.bound && rank.port != port) {
		rank.port = port;
		r = bpf_map_update_elem(d->fd[PIN_RANKS], &index, &rank, BPF_EXIST);
	}
	explicit_bzero(&rank, sizeof(rank));
	return r;
}
