/* SPDX-License-Identifier: GPL-2.0-only */
/* One copy of a result or an ask, addressed to its child. */
#ifndef TALLY_ADDRESS_BPF_H
#define TALLY_ADDRESS_BPF_H

#include "checksum.bpf.h"
#include "maps.bpf.h"
#include "parse.bpf.h"

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

/* Keeps the UDP checksum right for a new destination. A checksum of 0 means that there is none. */
static __always_inline void checksum_readdress(struct frame *f, const struct tally_child *child)
{
	const __u16 *old = f->offsets.ipv6 ? (const __u16 *)&f->ip6->daddr
					   : (const __u16 *)&f->ip4->daddr;
	const __u16 *new = (const __u16 *)child->ip6;
	__u16 check = f->udp->check;

	if (!check)
		return;
	check = checksum_replace(check, &f->udp->dest, &child->udp_port, 1);
	check = checksum_replace(check, old, new, 2);
	if (f->offsets.ipv6)
		check = checksum_replace(check, old + 2, new + 2, 6);
	f->udp->check = check;
}

static __always_inline void address(struct frame *f, const struct tally_child *child)
{
	__builtin_memcpy(f->eth->h_dest, child->mac, ETH_ALEN);
	__builtin_memcpy(f->eth->h_source, child->port_mac, ETH_ALEN);
	f->udp->dest = child->udp_port;
	if (f->offsets.ipv6) {
		__builtin_memcpy(&f->ip6->daddr, child->ip6, sizeof(child->ip6));
	} else {
		f->ip4->daddr = child->ip4;
		checksum_ip4(f->ip4);
	}
}

#endif
