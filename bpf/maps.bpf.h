/* SPDX-License-Identifier: GPL-2.0-only */
/* All maps of the data plane, nothing else. Their keys and values: include/tally/maps.h */
#ifndef TALLY_MAPS_BPF_H
#define TALLY_MAPS_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <tally/maps.h>

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE); /* its words are written whole */
	__uint(max_entries, TALLY_GATE_BUCKETS);
	__type(key, __u32);
	__type(value, struct tally_gate_bucket);
} gates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TALLY_JOBS_MAX);
	__type(key, __u32);
	__type(value, struct tally_job);
} jobs SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TALLY_TENANTS_MAX + 1); /* and TALLY_TENANT_ANSWERS */
	__type(key, __u32);
	__type(value, struct tally_tenant);
} tenants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, TALLY_SOURCES_MAX);
	__type(key, struct tally_source_key);
	__type(value, __u8);
} sources SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* user space sets the number before loading */
	__type(key, __u32);
	__type(value, struct tally_slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* of a pool: user space sets the number before loading */
	__type(key, __u32);
	__type(value, struct tally_pool_slot);
} pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally_borrowing);
} borrowing SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__uint(max_entries, TALLY_RANKS_MAX);
	__type(key, __u32);
	__type(value, struct tally_rank);
} ranks SEC(".maps");

/* A job's group: one entry for each copy that has to leave, with its port. */
struct installation {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, TALLY_WORKERS_MAX);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_devmap_val));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, TALLY_JOBS_MAX);
	__type(key, __u32);
	__array(values, struct installation);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2 * TALLY_CHILDREN_MAX); /* by port, and by job */
	__type(key, struct tally_child_key);
	__type(value, struct tally_child);
} children SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* few nodes have so many ports */
	__uint(max_entries, TALLY_PORTS_MAX);
	__type(key, __u32);
	__type(value, struct tally_at_port);
} at_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, TALLY_ROWS_MAX);
	__type(key, __u32);
	__type(value, struct tally_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally_settings);
} settings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, TALLY_TRACE_BYTES);
} trace SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tally_tracer);
} tracers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TALLY_SHARED_MAX);
	__type(key, __u32);
	__type(value, __u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TALLY_SHARED_MAX);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

#endif
