// SPDX-License-Identifier: GPL-2.0-only
/*
 * Our place in libxdp's dispatcher (docs/decisions/0012): calls the node's XDP program, which is
 * thus replaced with no gap and without libxdp. Where there is none, all is passed.
 */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} node SEC(".maps");

SEC("xdp")
int tally_port(struct xdp_md *ctx)
{
	bpf_tail_call(ctx, &node, 0);
	return XDP_PASS;
}
