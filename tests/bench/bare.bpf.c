// SPDX-License-Identifier: GPL-2.0-only
/*
 * What Tally is measured against. `bare_empty` and `bare_sum` are the limits of a program that
 * sums; `bare_advance` makes the next contribution of a frame, so that a repeated run of
 * tally_ingress adds each time; `bare_reflector` is the limit of an answer.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include <tally/check.h>

#include "bare.h"

char _license[] SEC("license") = "GPL";

struct sum {
	struct bpf_spin_lock lock;
	__u64 word[BARE_BLOCKS * TALLY_BLOCK_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sum);
} sums SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} next SEC(".maps");

SEC("xdp")
int bare_empty(struct xdp_md *ctx) { return XDP_DROP; }

SEC("xdp")
int bare_sum(struct xdp_md *ctx)
{
	__u64 *p = (void *)(long)ctx->data + BARE_PAYLOAD_AT;
	void *end = (void *)(long)ctx->data_end;
	__u32 key = 0;
	struct sum *sum = bpf_map_lookup_elem(&sums, &key);
	__u64 *s;

	if (!sum)
		return XDP_ABORTED;
	s = sum->word;
	bpf_spin_lock(&sum->lock);
#pragma clang loop unroll(disable)
	for (int i = 0; i < BARE_BLOCKS; i++) {
		if ((void *)(p + TALLY_BLOCK_WORDS) > end)
			break;
		s[0] += p[0];
		s[1] += p[1];
		s[2] += p[2];
		s[3] += p[3];
		s[4] += p[4];
		s[5] += p[5];
		s[6] += p[6];
		s[7] += p[7];
		s += TALLY_BLOCK_WORDS;
		p += TALLY_BLOCK_WORDS;
	}
	bpf_spin_unlock(&sum->lock);
	return XDP_DROP;
}

/* From the next rank; after the last of a chunk, for the next chunk. Then on to `next`. */
static __always_inline int advance(struct xdp_md *ctx, bool keyed)
{
	struct tally_header *h = (void *)(long)ctx->data + BARE_HEADER_AT;
	struct udphdr *udp = (struct udphdr *)h - 1;
	const struct tally_key key = BARE_KEY;
	struct tally_set set = { { 0 } };

	_Static_assert(BARE_SENDERS == 63, "with one more, the first word of a set");
	if ((void *)(h + 1) > (void *)(long)ctx->data_end)
		return XDP_ABORTED;
	set.word[0] = tally_le64_get(h->set) << 1;
	if (set.word[0] >> BARE_SENDERS) {
		set.word[0] = 1;
		h->seq = tally_le32(tally_le32_get(h->seq) + 1);
	}
	h->set = tally_le64(set.word[0]);
	h->sender = tally_le16((tally_le16_get(h->sender) + 1) % BARE_SENDERS);
	udp->check = bpf_htons(1); /* of what a swap leaves, 1 in 65,536 would look as one left */
	h->tag = tally_le64(keyed ? tally_keyed_tag(h, &set, &key) : tally_tag(h, &set));
	bpf_tail_call(ctx, &next, 0);
	return XDP_ABORTED;
}

SEC("xdp")
int bare_advance(struct xdp_md *ctx) { return advance(ctx, false); }

SEC("xdp")
int bare_advance_keyed(struct xdp_md *ctx) { return advance(ctx, true); }

/*
 * A datagram to our port goes back where it came from, as it is. Both checksums stay: they are sums
 * of words that only change places. Without one in UDP, the receiver would not merge datagrams.
 */
SEC("xdp")
int bare_reflector(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u8 mac[ETH_ALEN];
	__be32 address;

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->ihl != 5 ||
	    ip->protocol != IPPROTO_UDP || ip->frag_off & bpf_htons(0x3fff) ||
	    udp->dest != bpf_htons(TALLY_UDP_PORT))
		return XDP_PASS;
	__builtin_memcpy(mac, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, mac, ETH_ALEN);
	address = ip->saddr;
	ip->saddr = ip->daddr;
	ip->daddr = address;
	udp->dest = udp->source;
	udp->source = bpf_htons(TALLY_UDP_PORT);
	return XDP_TX;
}
