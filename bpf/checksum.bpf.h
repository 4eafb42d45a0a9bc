/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internet checksums of frames that this node wrote. UDP over IPv4 needs none, but receivers put
 * datagrams together (GRO) only when they have one, and that saves them more than it costs here.
 */
#ifndef TALLY_CHECKSUM_BPF_H
#define TALLY_CHECKSUM_BPF_H

#include "parse.bpf.h"

static __always_inline __u16 checksum_fold(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16)~sum;
}

/* Adds `count` 32-bit numbers, as they lie in memory; loops of a constant count are unrolled. */
static __always_inline __u64 checksum_words(__u64 sum, const __u32 *word, int count)
{
	for (int i = 0; i < count; i++)
		sum += word[i];
	return sum;
}

static __always_inline void checksum_ip4(struct iphdr *ip)
{
	ip->check = 0;
	ip->check = checksum_fold(checksum_words(0, (const __u32 *)ip, sizeof(*ip) / 4));
}

/* RFC 768 and RFC 8200, section 8.1: addresses, length, protocol. */
static __always_inline __u64 checksum_pseudo(const struct frame *f)
{
	__u64 sum = f->offsets.ipv6 ? checksum_words(0, (const __u32 *)&f->ip6->saddr, 8)
				    : checksum_words(0, (const __u32 *)&f->ip4->saddr, 2);

	return sum + (__u64)f->udp->len + bpf_htons(IPPROTO_UDP);
}

/* Writes the checksum over pseudo-header, UDP header and message. */
static __always_inline void checksum_udp(struct frame *f, __u32 blocks)
{
	const struct tally_more *more = (void *)(f->tally + 1);
	const __u32 *at = (const __u32 *)f->word;
	__u64 bound = blocks_bound(blocks);
	__u64 sum;

	f->udp->check = 0;
	sum = checksum_words(checksum_pseudo(f), (const __u32 *)f->udp, 2);
	sum = checksum_words(sum, (const __u32 *)f->tally, sizeof(*f->tally) / 4);
	if (f->tally->flags & TALLY_LARGE && (void *)(more + 1) <= f->end)
		sum = checksum_words(sum, (const __u32 *)more, sizeof(*more) / 4);
	for (int i = 0; i < TALLY_BLOCKS_MAX; i++) {
		if (i >= bound || (void *)(at + TALLY_BLOCK_BYTES / 4) > f->end)
			break;
		sum = checksum_words(sum, at, TALLY_BLOCK_BYTES / 4);
		at += TALLY_BLOCK_BYTES / 4;
	}
	f->udp->check = checksum_fold(sum);
	if (!f->udp->check)
		f->udp->check = 0xffff;
}

/* Leaves the sum of the pseudo-header there, for a checksum that the kernel makes later. */
static __always_inline void checksum_leave(struct frame *f)
{
	f->udp->check = ~checksum_fold(checksum_pseudo(f));
}

/*
 * 1: the sender is on this machine, and has left the checksum to the port that sends the frame: the
 * sum over the pseudo-header stands in its place (CHECKSUM_PARTIAL). XDP cannot ask the kernel
 * whether this is so. One whole checksum in 65,536 looks the same: if such a frame changes and goes
 * on, it is lost, and what is sent again has other bits. A global function (see offsets_find).
 */
__noinline int checksum_is_left(struct hook_context *ctx, int packed_offsets)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };

	return frame_locate(ctx, &f) && f.udp->check == (__u16)~checksum_fold(checksum_pseudo(&f));
}

/* After any header of the frame but Ethernet's has changed. `left`: the kernel makes UDP's. */
static __always_inline void checksum_frame(struct frame *f, __u32 blocks, bool left)
{
	if (left)
		checksum_leave(f);
	else
		checksum_udp(f, blocks);
	if (!f->offsets.ipv6)
		checksum_ip4(f->ip4);
}

#endif
