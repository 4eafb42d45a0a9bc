/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the hooks, for TC. hook_xdp.bpf.h has the same functions for XDP. */
#ifndef TALLY_HOOK_TC_BPF_H
#define TALLY_HOOK_TC_BPF_H

#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* `struct hook_context` of the stages. */
#define hook_context __sk_buff

enum {
	HOOK_TELLS_CHECKSUM = 1, /* offload_settle() does so, for all that leaves */
	HOOK_BORROWS = 0, /* what comes in here passes on to the root: slow anyway, and too long */
	TAG_BYTES = 4,
};

static __always_inline __u32 hook_port(const struct __sk_buff *ctx) { return ctx->ifindex; }

/* Has the kernel put the frame's VLAN tag beside it? It does so with the outermost one. */
static __always_inline bool hook_has_tag(const struct __sk_buff *ctx) { return ctx->vlan_present; }

static __always_inline __be16 hook_tag_proto(const struct __sk_buff *ctx)
{
	return ctx->vlan_proto;
}

static __always_inline __be16 hook_tag(const struct __sk_buff *ctx)
{
	return bpf_htons(ctx->vlan_tci);
}

/* Of the whole frame as on the wire; between `data` and `end` there may be less of it. */
static __always_inline __u32 hook_bytes(const struct __sk_buff *ctx, const void *data,
					const void *end)
{
	return ctx->len + (hook_has_tag(ctx) ? TAG_BYTES : 0);
}

/* From `at`, which is `offset` bytes into the frame, to its end. */
static __always_inline __u32 hook_behind(const struct __sk_buff *ctx, const void *at,
					 const void *end, __u32 offset)
{
	return ctx->len - offset;
}

/* From `before` to `after` bytes. Afterwards all pointers are to be read again. */
static __always_inline bool hook_resize(struct __sk_buff *ctx, __u32 before, __u32 after)
{
	return !bpf_skb_change_tail(ctx, after, 0);
}

#endif
