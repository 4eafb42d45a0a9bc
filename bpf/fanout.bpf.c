// SPDX-License-Identifier: GPL-2.0-only
/*
 * XDP on devmap egress: one copy of a result or an ask, readdressed to its child. A port
 * gets as many copies of a message as it has children; a cursor per port and CPU says
 * whose turn it is. All copies of a message pass a port on one CPU, in one batch.
 */
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "checksum.bpf.h"
#include "resize.bpf.h"
#include "leave.bpf.h"

char _license[] SEC("license") = "GPL";

/* The next child of this port for this message; round again after the last. */
static __always_inline struct tally_child *child_next(__u32 port, const struct tally_header *h)
{
	struct tally_child_key key = { .job = tally_le32_get(h->job), .ifindex = port };
	struct tally_cursor *c = bpf_map_lookup_elem(&cursors, &port);
	struct tally_child *child;

	if (!c)
		return NULL;
	if (c->job != key.job || c->seq != tally_le32_get(h->seq) ||
	    c->epoch != tally_le16_get(h->epoch) || c->kind != h->kind) {
		c->job = key.job;
		c->seq = tally_le32_get(h->seq);
		c->epoch = tally_le16_get(h->epoch);
		c->kind = h->kind;
		c->index = 0;
	}
	key.index = c->index++;
	child = bpf_map_lookup_elem(&children, &key);
	if (child || !key.index)
		return child;
	key.index = 0;
	c->index = 1;
	return bpf_map_lookup_elem(&children, &key);
}

/* RFC 1624: the checksum after `count` 16-bit words changed from old to new. */
static __always_inline __u16 checksum_replace(__u16 check, const __u16 *old, const __u16 *new,
					      int count)
{
	__u64 sum = (__u16)~check;

	for (int i = 0; i < count; i++)
		sum += (__u64)(__u16)~old[i] + new[i];
	check = checksum_fold(sum);
	return check ? check : 0xffff;
}

/* Keeps the UDP checksum right for a new destination; 0 says that there is none. */
static __always_inline void checksum_readdress(struct frame *f, const struct tally_child *child)
{
	const __u16 *old = f->layout.ipv6 ? (const __u16 *)&f->ip6->daddr
					  : (const __u16 *)&f->ip4->daddr;
	const __u16 *new = (const __u16 *)child->ip6;
	__u16 check = f->udp->check;

	if (!check)
		return;
	check = checksum_replace(check, &f->udp->dest, &child->udp_port, 1);
	check = checksum_replace(check, old, new, 2);
	if (f->layout.ipv6)
		check = checksum_replace(check, old + 2, new + 2, 6);
	f->udp->check = check;
}

static __always_inline void address(struct frame *f, const struct tally_child *child)
{
	__builtin_memcpy(f->eth->h_dest, child->mac, ETH_ALEN);
	__builtin_memcpy(f->eth->h_source, child->port_mac, ETH_ALEN);
	f->udp->dest = child->udp_port;
	if (f->layout.ipv6) {
		__builtin_memcpy(&f->ip6->daddr, child->ip6, sizeof(child->ip6));
	} else {
		f->ip4->daddr = child->ip4;
		checksum_ip4(f->ip4);
	}
}

SEC("xdp/devmap")
int tally_fanout(struct xdp_md *ctx)
{
	struct tally_child *child;
	struct frame f;
	bool cut;

	if (parse_header(ctx, &f) != TALLY_GO_ON)
		return leave(TALLY_ROW_NO_JOB, TALLY_NO_CHILD, f.bytes);

	child = child_next(ctx->egress_ifindex, f.tally);
	if (!child)
		return leave(TALLY_ROW_NO_JOB, TALLY_NO_CHILD, f.bytes);
	if (child->ipv6 != f.layout.ipv6)
		return leave(child->row, TALLY_NO_CHILD, f.bytes);

	cut = f.tally->blocks &&
	      !tally_gets_payload(tally_le16_get(f.tally->recipient), &child->below);
	if (cut) {
		if (!frame_resize(ctx, &f, 0))
			return leave(child->row, TALLY_NO_CHILD, f.bytes);
		f.tally->check = 0;
	} else {
		checksum_readdress(&f, child);
	}
	address(&f, child);
	if (cut)
		checksum_udp(&f, 0);
	return leave(child->row, TALLY_FANNED_OUT, f.bytes);
}
