/* SPDX-License-Identifier: GPL-2.0-only */
/* Gates in their table. */
#ifndef TALLY_FIND_BPF_H
#define TALLY_FIND_BPF_H

#include "constants.bpf.h"
#include "maps.bpf.h"

/* The job that a gate leads to, if that is this one. */
static __always_inline struct tally_job *gate_job(__u64 gate, __u32 id)
{
	__u32 index = tally_gate_job(gate);
	struct tally_job *job = bpf_map_lookup_elem(&jobs, &index);

	return job && job->id == id ? job : NULL;
}

/* The first gate of this name, that of a port, in a bucket; 0: none. Another job may have the same
 * name. */
static __always_inline __u64 gate_in(__u32 index, __u64 name)
{
	const struct tally_gate_bucket *bucket = bpf_map_lookup_elem(&gates, &index);
	__u64 gate = 0;

	for (int i = 0; bucket && i < TALLY_GATE_WORDS; i++) {
		gate = ((volatile const __u64 *)bucket->word)[i];
		if (tally_gate_has_name(gate, name))
			return gate;
	}
	return 0;
}

/*
 * The gate of a job at a port in the first or second of its buckets; 0: none. A global function:
 * the verifier walks it once and by itself, and not what follows once for each place. It calls none
 * that would take stack: 6.1 rounds the stack of each call up to 32 bytes. A free word has the name
 * that a gate 0 may have, and the first index.
 */
__noinline __u64 gate_of_job(__u32 job, __u32 port, __u32 second)
{
	struct tally_gate_key key = { .job = job, .ifindex = port };
	__u64 hash = tally_gate_hash(key, constants.gate_factor), name = tally_gate_name(key, hash),
	      gate;
	__u32 index = second ? tally_gate_second(hash) : tally_gate_first(hash);
	const struct tally_gate_bucket *bucket = bpf_map_lookup_elem(&gates, &index);

	for (int i = 0; bucket && i < TALLY_GATE_WORDS; i++) {
		gate = ((volatile const __u64 *)bucket->word)[i];
		if (gate && tally_gate_has_name(gate, name) && gate_job(gate, job))
			return gate;
	}
	return 0;
}

static __always_inline __u64 gate_at(__u32 job, __u32 port)
{
	__u64 gate = gate_of_job(job, port, 0);

	return gate ? gate : gate_of_job(job, port, 1);
}

/* The gate of a job at a port, or the job's gate 0, wherever it is; 0: none. */
static __always_inline __u64 gate_find(__u32 job, __u32 port)
{
	__u64 gate = gate_at(job, port);

	return gate ? gate : gate_at(job, 0);
}

#endif
