// SPDX-License-Identifier: GPL-2.0-only
/*
 * Somebody else's XDP program, to share a port with: it counts what it sees, and drops UDP to port
 * 9 (discard). What is Tally's it counts apart.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <tally/wire.h>

char _license[] SEC("license") = "GPL";

__u64 seen, seen_tally, dropped; /* frames; from one queue, so that no update is lost */

static __always_inline int look(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct iphdr *ip = data + sizeof(struct ethhdr);
	struct udphdr *udp = (void *)(ip + 1);

	seen++;
	if ((void *)(udp + 1) > end || ip->protocol != IPPROTO_UDP)
		return XDP_PASS;
	if (udp->dest == bpf_htons(TALLY_UDP_PORT))
		seen_tally++;
	if (udp->dest != bpf_htons(9))
		return XDP_PASS;
	dropped++;
	return XDP_DROP;
}

SEC("xdp")
int beside(struct xdp_md *ctx) { return look(ctx); }

/* The same, but made for frames in several buffers: such a program ours cannot call. */
SEC("xdp.frags")
int beside_frags(struct xdp_md *ctx) { return look(ctx); }
