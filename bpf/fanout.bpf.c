// SPDX-License-Identifier: GPL-2.0-only
/*
 * XDP on devmap egress: one copy of a result or an ask, readdressed to its child. A port
 * gets as many copies of a message as it has children; a cursor per port and CPU says
 * which child is next. All copies of a message pass a port on one CPU, in one batch.
 *
 * The kernel runs this program for the whole batch, and the batch may also hold what the other
 * program of a shared port has sent on: that leaves as it came.
 */
#define TALLY_HOOK "hook_xdp.bpf.h"
#include <tally/reply.h>
#include "maps.bpf.h"
#include "parse.bpf.h"
#include "address.bpf.h"
#include "checksum.bpf.h"
#include "find.bpf.h"
#include "key.bpf.h"
#include "resize.bpf.h"
#include "leave.bpf.h"

char _license[] SEC("license") = "GPL";

/* The next child of this port for this message; after the last the first again. */
static __always_inline struct tally_child *child_next(__u32 port, const struct tally_header *h)
{
	struct tally_child_key key = { .job = tally_le32_get(h->job), .ifindex = port };
	struct tally_at_port *at = bpf_map_lookup_elem(&at_ports, &port);
	struct tally_child *child;
	struct tally_cursor *c;

	if (!at)
		return NULL;
	c = &at->cursor;
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

/* Workers' messages go up, and so are no copies of ours. */
static __always_inline bool is_of_worker(const struct tally_header *h)
{
	return h->kind == TALLY_CONTRIBUTION || h->kind == TALLY_REPAIR;
}

/* As long as there is a copy under way, its job has gate 0 or children. */
static __always_inline enum tally_outcome without_child(const struct tally_header *h)
{
	return gate_at(tally_le32_get(h->job), 0) ? TALLY_NO_CHILD : TALLY_UNKNOWN_JOB;
}

/* `ret_row`: which counts the copy. */
static __always_inline enum tally_outcome copy_address(struct xdp_md *ctx, struct frame *f,
						       __u32 *ret_row)
{
	enum tally_outcome out = parse_header(ctx, f);
	struct tally_child *child;
	bool cut;

	if (out == TALLY_GO_ON && is_of_worker(f->tally))
		out = TALLY_PASSED_UP;
	if (out != TALLY_GO_ON)
		return out;
	child = child_next(ctx->egress_ifindex, f->tally);
	if (!child)
		return without_child(f->tally);
	*ret_row = child->row;
	if (f->offsets.ipv6 != child->ipv6)
		return TALLY_NO_CHILD;

	cut = tally_copy_is_cut(f->tally, &child->below);
	if (cut) {
		if (!frame_resize(ctx, f, 0))
			return TALLY_NO_CHILD;
		tally_copy_cut(f->tally);
	} else {
		checksum_readdress(f, child);
	}
	address(f, child);
	if (child->keyed)
		key_apply(ctx, offsets_pack(f->offsets), child->key);
	if (cut)
		checksum_udp(f, 0);
	return TALLY_FANNED_OUT;
}

/* A global function (see offsets_find). What is no copy of ours did not come in here either. */
__noinline int copy_leave(__u32 port, __u32 row, __u32 outcome, __u32 bytes)
{
	return leave(row == TALLY_ROW_NO_JOB ? 0 : port, row, outcome, bytes);
}

SEC("xdp/devmap")
int tally_fanout(struct xdp_md *ctx)
{
	__u32 row = TALLY_ROW_NO_JOB;
	struct frame f = { .bytes = 0 }; /* Linux 5.15 refuses to spill what was never written */
	enum tally_outcome out = copy_address(ctx, &f, &row);

	return copy_leave(ctx->egress_ifindex, row, out, f.bytes);
}
