/* SPDX-License-Identifier: GPL-2.0-only */
/* Bytes -> a frame of checked pointers, without regard to jobs or slots. */
#ifndef TALLY_PARSE_BPF_H
#define TALLY_PARSE_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <tally/outcome.h>
#include <tally/wire.h>
#include "hook.bpf.h"

/* Behind an Ethernet header whose protocol is 802.1Q or 802.1ad. */
struct vlan_tag {
	__be16 tci;
	__be16 proto;
};

/* Offsets of the headers in a frame, and what is said of it before all else. */
struct offsets {
	__u8 ip;
	__u8 udp;
	__u8 ipv6;
	__u8 found : 1; /* 0: no UDP datagram to our port; all else is 0 too */
	__u8 marked : 1; /* a router has marked it (CE), as it met congestion */
};

_Static_assert(sizeof(struct offsets) == sizeof(int), "packed into a number");

/* Global functions take and return numbers only. */
static __always_inline int offsets_pack(struct offsets offsets)
{
	int number;

	__builtin_memcpy(&number, &offsets, sizeof(number));
	return number;
}

static __always_inline struct offsets offsets_unpack(int number)
{
	struct offsets offsets;

	__builtin_memcpy(&offsets, &number, sizeof(offsets));
	return offsets;
}

struct frame {
	struct ethhdr *eth;
	union { /* which one: offsets.ipv6 */
		struct iphdr *ip4;
		struct ipv6hdr *ip6;
	};
	struct udphdr *udp;
	struct tally_header *tally;
	__u64 *word; /* behind the whole header: tally->blocks blocks up to `end` at most */
	void *end;
	__u32 bytes;  /* of the whole frame */
	__u32 header_bytes; /* between `tally` and `word` */
	struct offsets offsets;
};

/*
 * The bound of a loop, as a value that the verifier does not relate to the header's `blocks`:
 * otherwise it learns a value of `blocks` from each exit of the loop, and walks the rest of the
 * program once for each.
 */
static __always_inline __u64 blocks_bound(__u64 blocks)
{
	_Static_assert(TALLY_BLOCKS_MAX < 64, "mask");
	asm volatile("%0 &= 63" : "+r"(blocks));
	return blocks;
}

/*
 * Bytes of struct tally_more, as a value that the verifier does not know: otherwise it walks the
 * rest of the program once for each of the two.
 */
static __always_inline __u64 more_bytes(const struct tally_header *h)
{
	__u64 large = h->flags;

	_Static_assert(TALLY_LARGE == 0x80 && sizeof(struct tally_more) == 32, "shift");
	asm volatile("%0 >>= 2\n%0 &= 32" : "+r"(large));
	return large;
}

/* Where UDP begins behind the IP header; 0: no UDP, or with options, extensions or fragments. */
static __always_inline __u32 find_udp(const void *at, const void *end, bool ipv6)
{
	const struct ipv6hdr *ip6 = at;
	const struct iphdr *ip4 = at;

	if (ipv6) {
		if ((const void *)(ip6 + 1) > end || ip6->version != 6 ||
		    ip6->nexthdr != IPPROTO_UDP)
			return 0;
		return sizeof(*ip6);
	}
	if ((const void *)(ip4 + 1) > end || ip4->version != 4 || ip4->ihl != 5 ||
	    ip4->protocol != IPPROTO_UDP || ip4->frag_off & bpf_htons(0x3fff))
		return 0;
	return sizeof(*ip4);
}

/*
 * ECN: two bits of the second byte of either IP header, behind four others in IPv6's. Without
 * branches: the verifier would walk the rest of the program once for each.
 */
static __always_inline __u32 ecn_is_ce(const void *ip, bool ipv6)
{
	__u32 ecn = ((const __u8 *)ip)[1] >> 4 * ipv6;

	return ecn & ecn >> 1 & 1;
}

/*
 * Ethernet, at most one VLAN tag, IPv4 or IPv6, UDP to our port: a packed struct offsets. A global
 * function: the verifier walks it once and by itself, and not all that follows once for each of
 * the four paths through it.
 */
__noinline int offsets_find(struct hook_context *ctx)
{
	struct offsets offsets = { 0 };
	const void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const struct vlan_tag *tag = (const void *)(eth + 1);
	const struct udphdr *udp;
	__u32 ip = sizeof(*eth), udp_behind;
	__be16 proto;

	if ((const void *)(eth + 1) > end)
		return 0;
	proto = eth->h_proto;
	if (proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD)) {
		if (hook_has_tag(ctx) || (const void *)(tag + 1) > end)
			return 0;
		proto = tag->proto;
		ip += sizeof(*tag);
	}
	if (proto != bpf_htons(ETH_P_IP) && proto != bpf_htons(ETH_P_IPV6))
		return 0;
	udp_behind = find_udp(data + ip, end, proto == bpf_htons(ETH_P_IPV6));
	udp = data + ip + udp_behind;
	if (!udp_behind || (const void *)(udp + 1) > end || udp->dest != bpf_htons(TALLY_UDP_PORT))
		return 0;
	offsets.ip = ip;
	offsets.udp = ip + udp_behind;
	offsets.ipv6 = proto == bpf_htons(ETH_P_IPV6);
	offsets.found = 1;
	offsets.marked = ecn_is_ce(data + ip, offsets.ipv6);
	return offsets_pack(offsets);
}

/* Pointers to all headers of a frame that has them; also after its end has moved. */
static __always_inline bool frame_locate(struct hook_context *ctx, struct frame *f)
{
	void *data = (void *)(long)ctx->data, *header;
	__u32 ip = f->offsets.ip, udp = f->offsets.udp;
	__u64 more;

	f->end = (void *)(long)ctx->data_end;
	f->bytes = hook_bytes(ctx, data, f->end);
	f->eth = data;
	f->ip4 = data + ip;
	f->udp = data + udp;
	f->tally = (void *)(f->udp + 1);
	/* An IPv4 header is shorter, but the headers behind it make up for that. */
	if ((void *)(f->eth + 1) > f->end || (void *)(f->ip6 + 1) > f->end ||
	    (void *)(f->tally + 1) > f->end)
		return false;
	more = more_bytes(f->tally);
	f->header_bytes = sizeof(*f->tally) + more;
	header = (void *)f->tally + more;
	asm volatile("" : "+r"(header)); /* so that 64 bytes before `word` are known to be there */
	f->word = header + sizeof(*f->tally);
	return (void *)f->word <= f->end;
}

/* All ones if the message has a struct tally_more, right before `word`. As more_bytes(). */
static __always_inline __u64 more_mask(const struct frame *f)
{
	return -(more_bytes(f->tally) / sizeof(struct tally_more));
}

/* The header's set; false: there are bytes behind it that this version does not know. */
static __always_inline bool frame_set(const struct frame *f, struct tally_set *ret)
{
	const __u64 *more = f->word - sizeof(struct tally_more) / sizeof(__u64);
	__u64 mask = more_mask(f);

	ret->word[0] = tally_le64_get(f->tally->set);
	ret->word[1] = more[0] & mask;
	ret->word[2] = more[1] & mask;
	ret->word[3] = more[2] & mask;
	return !(more[3] & mask);
}

static __always_inline void frame_set_put(struct frame *f, const struct tally_set *set)
{
	__u64 *more = f->word - sizeof(struct tally_more) / sizeof(__u64);
	__u64 mask = more_mask(f);

	f->tally->set = tally_le64(set->word[0]);
	more[0] = (more[0] & ~mask) | (set->word[1] & mask);
	more[1] = (more[1] & ~mask) | (set->word[2] & mask);
	more[2] = (more[2] & ~mask) | (set->word[3] & mask);
}

/* Makes ECT(0) of CE: what is sent anew has met nothing yet. */
static __always_inline void ecn_renew(struct frame *f)
{
	__u8 *byte = (__u8 *)f->ip4 + 1;

	*byte &= ~(ecn_is_ce(f->ip4, f->offsets.ipv6) << 4 * f->offsets.ipv6);
}

/* What an offer's flags have of the packet. The compiler is not to make two ways of it: 6.1 would
 * walk the rest of the program once for each. */
static __always_inline __u8 frame_mark(const struct frame *f)
{
	__u32 marked = f->offsets.marked;

	asm volatile("" : "+r"(marked));
	return marked * TALLY_MARKED;
}

/* A datagram to our port that starts like a message of our version, and has a whole header. */
static __always_inline enum tally_outcome parse_header(struct hook_context *ctx, struct frame *f)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u8 *magic;

	f->bytes = hook_bytes(ctx, data, end);
	f->offsets = offsets_unpack(offsets_find(ctx));
	if (!f->offsets.found)
		return TALLY_FOREIGN;
	magic = data + f->offsets.udp + sizeof(struct udphdr);
	if ((void *)(magic + 1) > end || magic[0] != TALLY_MAGIC)
		return TALLY_FOREIGN;
	if ((void *)(magic + 2) > end)
		return TALLY_TRUNCATED;
	if (magic[1] != TALLY_VERSION)
		return TALLY_OTHER_VERSION;
	return frame_locate(ctx, f) ? TALLY_GO_ON : TALLY_TRUNCATED;
}

/* Of the IP packet's payload, by its own header. */
static __always_inline __u32 ip_payload_bytes(const struct frame *f)
{
	if (f->offsets.ipv6)
		return bpf_ntohs(f->ip6->payload_len);
	return bpf_ntohs(f->ip4->tot_len) - sizeof(*f->ip4);
}

/* A whole message: the IP, UDP and its own header agree on its length, and it is all there. */
static __always_inline enum tally_outcome parse(struct hook_context *ctx, struct frame *f)
{
	enum tally_outcome out = parse_header(ctx, f);
	__u32 datagram, message, there;

	if (out != TALLY_GO_ON)
		return out;
	message = f->header_bytes + f->tally->blocks * TALLY_BLOCK_BYTES;
	datagram = bpf_ntohs(f->udp->len) - sizeof(*f->udp);
	there = hook_behind(ctx, f->tally, f->end, f->offsets.udp + sizeof(*f->udp));
	if (f->tally->blocks > TALLY_BLOCKS_MAX)
		return TALLY_OVERSIZED;
	if (datagram > message && there >= datagram)
		return TALLY_COALESCED;
	if (datagram != message || ip_payload_bytes(f) != datagram + sizeof(*f->udp))
		return TALLY_BAD_LENGTH;
	return there < message ? TALLY_TRUNCATED : TALLY_GO_ON;
}

#endif
