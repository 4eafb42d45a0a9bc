/* SPDX-License-Identifier: GPL-2.0-only */
/* What differs between the hooks, for XDP. hook_tc.bpf.h has the same functions for TC. */
#ifndef TALLY_HOOK_XDP_BPF_H
#define TALLY_HOOK_XDP_BPF_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <stdbool.h>

/* `struct hook_context` of the stages. */
#define hook_context xdp_md

static __always_inline __u32 hook_port(const struct xdp_md *ctx) { return ctx->ingress_ifindex; }

/* Of the whole frame: all of it lies between `data` and `end`. */
static __always_inline __u32 hook_bytes(const struct xdp_md *ctx, const void *data, const void *end)
{
	return end - data;
}

/* From `at`, which is `offset` bytes into the frame, to its end. */
static __always_inline __u32 hook_behind(const struct xdp_md *ctx, const void *at, const void *end,
					 __u32 offset)
{
	return end - at;
}

/* XDP sees VLAN tags in the frame. */
static __always_inline bool hook_has_tag(const struct xdp_md *ctx) { return false; }

static __always_inline __be16 hook_tag_proto(const struct xdp_md *ctx) { return 0; }

static __always_inline __be16 hook_tag(const struct xdp_md *ctx) { return 0; }

enum {
	HOOK_TELLS_CHECKSUM = 0, /* the kernel cannot be asked whether a frame has its checksum */
	HOOK_BORROWS = 1, /* contributions find slots of the pool */
};

/* From `before` to `after` bytes. Afterwards all pointers are to be read again. */
static __always_inline bool hook_resize(struct xdp_md *ctx, __u32 before, __u32 after)
{
	return !bpf_xdp_adjust_tail(ctx, (int)after - (int)before);
}

#endif
