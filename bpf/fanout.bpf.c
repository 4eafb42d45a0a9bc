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
#include "key.bpf.h"
#include "resize.bpf.h"
#include "leave.bpf.h"

char _license[] SEC("license") = "GPL";

/* The next child of this port for this message; after the last the first again. */
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

/* Workers' messages go up, and so are no copies of ours. */
static __always_inline bool is_of_worker(const struct tally_header *h)
{
	return h->kind == TALLY_CONTRIBUTION || h->kind == TALLY_REPAIR;
}

/* As long as there is a copy under way, its job has gate 0 or children. */
static __always_inline enum tally_outcome without_child(const struct tally_header *h)
{
	struct tally_gate_key key = { .job = tally_le32_get(h->job) };

	return bpf_map_lookup_elem(&gates, &key) ? TALLY_NO_CHILD : TALLY_UNKNOWN_JOB;
}

SEC("xdp/devmap")
int tally_fanout(struct xdp_md *ctx)
{
	struct tally_child *child;
	enum tally_outcome out;
	struct frame f;
	bool cut;

	out = parse_header(ctx, &f);
	if (out == TALLY_GO_ON && is_of_worker(f.tally))
		out = TALLY_PASSED_UP;
	if (out != TALLY_GO_ON)
		return leave(TALLY_ROW_NO_JOB, out, f.bytes);

	child = child_next(ctx->egress_ifindex, f.tally);
	if (!child)
		return leave(TALLY_ROW_NO_JOB, without_child(f.tally), f.bytes);
	if (f.offsets.ipv6 != child->ipv6)
		return leave(child->row, TALLY_NO_CHILD, f.bytes);

	cut = tally_copy_is_cut(f.tally, &child->below);
	if (cut) {
		if (!frame_resize(ctx, &f, 0))
			return leave(child->row, TALLY_NO_CHILD, f.bytes);
		tally_copy_cut(f.tally);
	} else {
		checksum_readdress(&f, child);
	}
	address(&f, child);
	if (child->keyed)
		key_apply(ctx, offsets_pack(f.offsets), child->key);
	if (cut)
		checksum_udp(&f, 0);
	return leave(child->row, TALLY_FANNED_OUT, f.bytes);
}
