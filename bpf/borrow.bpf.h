/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A contribution of a job that borrows, into a slot that jobs share. tally/borrowed.h decides; here
 * words and headers change places. Without a pool the verifier drops all of it.
 *
 * A sum that a swap throws out leaves in the frame of whoever has the slot now: its Ethernet header
 * stays, since the kernel takes the frame in by that and writes another one when it sends it on.
 * So the kernel must take in this frame as surely as the one that brought the sum: struct
 * tally_entrance says by what. Frames of another shape could not carry it: the lengths of all
 * headers stay, so that what the kernel knows of the frame (where a checksum is to go) stays true.
 */
#ifndef TALLY_BORROW_BPF_H
#define TALLY_BORROW_BPF_H

#include <tally/borrowed.h>
#include "constants.bpf.h"
#include "gather.bpf.h"
#include "reply.bpf.h"

#define WORDS_SWAP(s, p)          \
	do {                      \
		__u64 word = (s); \
                                  \
		(s) = (p);        \
		(p) = word;       \
	} while (0)

EACH_WORD(WORDS_SWAP)

/* Where the results of a job do not come down, nothing would free what is held for them. */
static __always_inline struct tally_borrowed_policy borrow_policy(const struct tally_job *job)
{
	struct tally_borrowed_policy policy = constants.pool.policy;

	policy.holds &= !!job->copies;
	return policy;
}

/* What the message says; of its priority, the share that its tenant has counts. */
static __always_inline struct tally_borrower borrower_read(const struct frame *f,
							   const struct tally_job *job)
{
	struct tally_borrower b = tally_borrower_read(f->tally);
	const struct tally_tenant *t;
	__u32 tenant = job->tenant;

	if (constants.pool.policy.by_priority) {
		t = bpf_map_lookup_elem(&tenants, &tenant);
		b.standing = t ? b.priority * (t->priority + 1) >> 8 : 0;
	}
	b.base = job->slot_base;
	b.range = job->range;
	b.shape = f->offsets.ip << 2 | f->offsets.ipv6 << 1 | b.large;
	return b;
}

/* Of the VLAN that the frame is of; 802.1ad has VLANs of its own. */
static __always_inline __u32 vlan_word(const struct frame *f)
{
	const struct vlan_tag *tag = (const void *)(f->eth + 1);

	asm volatile(""
		     : "+r"(tag)); /* compilers conclude that it is there, the verifier does not */
	if (f->offsets.ip == sizeof(*f->eth) || (const void *)(tag + 1) > f->end)
		return 0;
	return (bpf_ntohs(tag->tci) & TALLY_VLAN_NONE) << 16 |
	       (f->eth->h_proto == bpf_htons(ETH_P_8021AD)) << 28;
}

/* Bridges drop what is from all or from nobody. */
static __always_inline bool source_is_one(const struct frame *f)
{
	const __u8 *from = f->eth->h_source;

	return !(from[0] & 1) && from[0] | from[1] | from[2] | from[3] | from[4] | from[5];
}

/*
 * Each port takes in what has no VLAN tag and is for its own address. Whether the kernel takes in
 * anything else (of VLANs, bridges, bonds), and where, only what came in by the same knows.
 */
static __always_inline struct tally_entrance entrance_read(struct hook_context *ctx,
							   const struct frame *f)
{
	__u32 port = hook_port(ctx);
	struct tally_entrance e = { { source_is_one(f) ? port : ~port } };

	__builtin_memcpy(&e.word[1], f->eth->h_dest, ETH_ALEN);
	e.word[2] |= vlan_word(f);
	return e;
}

/* Of no frame, and of no other chunk. */
static __always_inline struct tally_entrance entrance_of_none(const struct tally_borrower *b,
							      __u32 seq)
{
	return (struct tally_entrance){ { ~0u, b->job, seq } };
}

static __always_inline bool entrance_is_own(const struct tally_entrance *e, const struct frame *f)
{
	const struct tally_at_port *at = bpf_map_lookup_elem(&at_ports, &e->word[0]);

	return at && f->offsets.ip == sizeof(*f->eth) &&
	       !__builtin_memcmp(at->mac, &e->word[1], sizeof(at->mac));
}

static __always_inline __u32 pool_index(const struct tally_borrower *b, __u32 seq)
{
	return tally_borrowed_place(b, seq, constants.pool.slots);
}

static __always_inline void route_read(struct tally_pool_route *route, const struct frame *f,
				       const struct tally_job *job)
{
	__builtin_memcpy(route->asks, f->ip4, sizeof(route->asks));
	route->ttl = f->ip4->ttl;
	route->group = job->group;
	route->keyed = job->keyed;
	route->udp_port = f->udp->source;
	if (f->offsets.ipv6) {
		__builtin_memcpy(&route->ip6, &f->ip6->saddr, sizeof(route->ip6));
	} else {
		route->ip4[0] = f->ip4->saddr;
		route->ip4[1] = f->ip4->daddr;
	}
}

static __always_inline void route_write(const struct tally_pool_route *route, struct frame *f)
{
	__be16 bytes = f->offsets.ipv6 ? f->ip6->payload_len : f->ip4->tot_len;

	f->udp->source = route->udp_port;
	__builtin_memcpy(f->ip4, route->asks, sizeof(route->asks));
	if (f->offsets.ipv6) {
		f->ip6->payload_len = bytes;
		__builtin_memcpy(&f->ip6->saddr, &route->ip6, sizeof(route->ip6));
	} else {
		f->ip4->tot_len = bytes;
		f->ip4->ttl = route->ttl;
		f->ip4->saddr = route->ip4[0];
		f->ip4->daddr = route->ip4[1];
	}
}

static __always_inline struct tally_borrowing *borrowing_get(void)
{
	__u32 index = 0;

	return bpf_map_lookup_elem(&borrowing, &index);
}

static __always_inline void borrow_words(struct tally_pool_slot *slot, struct frame *f,
					 const struct tally_borrowed_verdict *v, __u32 blocks)
{
	if (v->move == TALLY_BORROWED_SWAPPED)
		words_WORDS_SWAP(slot->word, f->word, blocks, f->end);
	else if (v->verdict.words == TALLY_WORDS_STORE)
		words_WORDS_STORE(slot->word, f->word, blocks, f->end);
	else if (v->verdict.words == TALLY_WORDS_ADD)
		words_WORDS_ADD(slot->word, f->word, blocks, f->end);
	else if (v->verdict.words == TALLY_WORDS_EXCHANGE)
		words_WORDS_EXCHANGE(slot->word, f->word, blocks, f->end);
}

enum {
	BORROW_NOTHING = 0, /* there is nothing to be had */
	BORROW_HELD, /* a slot has this chunk */
	BORROW_NOT_HELD,
};

/* Reads the message. A global function (see offsets_find). */
__noinline int borrow_read(struct hook_context *ctx, int packed_offsets,
			   const struct tally_job *job, const struct tally_set *set)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();
	const struct tally_pool_slot *slot;

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !job || !set ||
	    !frame_locate(ctx, &f))
		return BORROW_NOTHING;
	now->policy = borrow_policy(job);
	now->borrower = borrower_read(&f, job);
	now->offer = tally_offer_read(f.tally, set);
	/* Of the last tick, which costs no call: nobody has to know a stall to the millisecond. */
	if (constants.pool.policy.stalled_ms)
		now->offer.now_ms = bpf_jiffies64() * constants.tick_ms;
	now->slot = pool_index(&now->borrower, now->offer.seq);
	now->borrower.entrance = entrance_of_none(&now->borrower, now->offer.seq);
	slot = bpf_map_lookup_elem(&pool, &now->slot);
	if (!slot)
		return BORROW_NOTHING;
	/* Without the lock. Who has lost the slot meanwhile swaps nothing, by that entrance. */
	return tally_borrowed_holds(&slot->books, &now->borrower, now->offer.seq) ? BORROW_HELD
										  : BORROW_NOT_HELD;
}

/*
 * By what the kernel takes the message in. `left`: so is its checksum, and so the sum's will be,
 * where it leaves in this frame. A global function (see offsets_find).
 */
__noinline int borrow_enter(struct hook_context *ctx, int packed_offsets, bool left)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();
	struct tally_entrance e;

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !frame_locate(ctx, &f))
		return 0;
	e = entrance_read(ctx, &f);
	if (entrance_is_own(&e, &f))
		e = (struct tally_entrance){ { 0 } };
	e.word[2] |= (__u32)left << 31;
	now->borrower.entrance = e;
	return 0;
}

/*
 * Offers it to its slot: the outcome; if the node is to make what leaves, borrow_leave_old() or
 * borrow_leave_up() does. A global function (see offsets_find).
 */
__noinline int borrow_gather(struct hook_context *ctx, int packed_offsets,
			     const struct tally_job *job)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();
	struct tally_borrowed_verdict v;
	struct tally_pool_slot *slot;
	struct tally_role role;

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !job || !frame_locate(ctx, &f))
		return TALLY_PASSED_UP;
	role = tally_job_role(job);
	slot = bpf_map_lookup_elem(&pool, &now->slot);
	if (!slot)
		return TALLY_PASSED_UP;
	now->offer.flags |= frame_mark(&f);
	bpf_spin_lock(&slot->lock);
	v = tally_borrowed_gather(&now->policy, &role, &slot->books, &now->borrower, &now->offer,
				  &now->out);
	borrow_words(slot, &f, &v, now->offer.blocks);
	if (v.move == TALLY_BORROWED_SWAPPED)
		now->route = slot->route;
	if (v.move == TALLY_BORROWED_TAKEN || v.move == TALLY_BORROWED_SWAPPED)
		route_read(&slot->route, &f, job);
	bpf_spin_unlock(&slot->lock);
	now->verdict = v.verdict;
	if (v.move == TALLY_BORROWED_REFUSED)
		return TALLY_REFUSED;
	return v.move == TALLY_BORROWED_SWAPPED ? TALLY_SWAPPED : v.verdict.outcome;
}

/* The packet has the words of the old holder; now it becomes that one's message, but for checksums.
 * A global function (see offsets_find). */
__noinline int borrow_leave_old(struct hook_context *ctx, int packed_offsets)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();
	const struct tally_borrowed_slot *out;

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !frame_locate(ctx, &f))
		return TALLY_STALE;
	out = &now->out;
	if (out->state.blocks != f.tally->blocks && !frame_resize(ctx, &f, out->state.blocks))
		return TALLY_STALE; /* its workers will send again */
	tally_borrowed_leave(out, f.tally);
	frame_set_put(&f, &out->state.set);
	route_write(&now->route, &f);
	now->keyed = now->route.keyed;
	now->key = tally_rank_index(now->route.group, out->sender);
	return TALLY_SWAPPED;
}

/* Copies the slot's sum into the frame; false: the reply is stale. */
static __always_inline bool borrow_take(struct frame *f, struct tally_borrowing *now)
{
	const struct tally_reply *r = &now->reply;
	struct tally_pool_slot *slot = bpf_map_lookup_elem(&pool, &now->slot);
	bool taken;

	if (!slot)
		return false;
	bpf_spin_lock(&slot->lock);
	taken = tally_borrowed_take(&now->policy, r, &slot->books, &now->borrower, &now->out.state);
	if (taken)
		words_WORDS_LOAD(slot->word, f->word, r->blocks, f->end);
	bpf_spin_unlock(&slot->lock);
	return taken;
}

/* As reply() of an inner node, but for checksums. A global function (see offsets_find). */
__noinline int borrow_leave_up(struct hook_context *ctx, int packed_offsets,
			       const struct tally_job *job)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();
	struct tally_slot_state *books;
	struct tally_reply *r;

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !job || !frame_locate(ctx, &f))
		return TALLY_STALE;
	books = &now->out.state;
	r = &now->reply;
	*r = tally_reply_make(now->verdict, books, &books->set);
	if (r->blocks != f.tally->blocks && !frame_resize(ctx, &f, r->blocks)) {
		/* It does not go on alone: the root would drop the slot's sum, which has it, too.
		 */
		if (!frame_resize(ctx, &f, 0))
			return TALLY_STALE;
		*r = tally_reply_no_room(books, &job->everyone);
	}
	if (r->take && !borrow_take(&f, now))
		return TALLY_STALE;
	tally_reply_write(r, books, constants.boot, f.tally);
	frame_set_put(&f, &books->set);
	now->keyed = job->keyed & (r->outcome != TALLY_NO_ROOM);
	now->key = tally_rank_index(job->group, tally_le16_get(f.tally->sender));
	if (r->outcome == TALLY_NO_ROOM)
		turn_to_group(&f);
	return r->outcome;
}

/*
 * A contribution that was admitted: its outcome. The steps are called beside each other: the stacks
 * of calls within calls add up.
 */
static __always_inline int borrow(struct hook_context *ctx, int packed_offsets,
				  const struct tally_job *job, const struct tally_set *set)
{
	const struct tally_borrowing *now;
	int held = borrow_read(ctx, packed_offsets, job, set), out, left;

	if (held == BORROW_NOTHING)
		return TALLY_PASSED_UP;
	if (held == BORROW_NOT_HELD)
		borrow_enter(ctx, packed_offsets, checksum_is_left(ctx, packed_offsets));
	out = borrow_gather(ctx, packed_offsets, job);
	if (out != TALLY_SWAPPED && out != TALLY_SENT_UP && out != TALLY_FLUSHED_UP)
		return out;
	left = checksum_is_left(ctx, packed_offsets);
	out = out == TALLY_SWAPPED ? borrow_leave_old(ctx, packed_offsets)
				   : borrow_leave_up(ctx, packed_offsets, job);
	now = borrowing_get();
	if (!now || out == TALLY_STALE || out == TALLY_PASSED_UP)
		return out;
	key_finish(ctx, packed_offsets, now->keyed, now->key);
	reply_finish(ctx, packed_offsets, tally_outcome_to(out), left);
	return out;
}

/* A result comes down, and its slot is free. A global function (see offsets_find). */
__noinline int borrow_release(struct hook_context *ctx, int packed_offsets,
			      const struct tally_job *job)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_pool_slot *slot;
	struct tally_borrower b;
	__u32 seq, index;

	if (!constants.pool.slots || !job || !frame_locate(ctx, &f) ||
	    f.tally->kind != TALLY_RESULT)
		return 0;
	b = borrower_read(&f, job);
	seq = tally_le32_get(f.tally->seq);
	index = pool_index(&b, seq);
	slot = bpf_map_lookup_elem(&pool, &index);
	if (!slot)
		return 0;
	bpf_spin_lock(&slot->lock);
	tally_borrowed_release(&slot->books, &b, seq);
	bpf_spin_unlock(&slot->lock);
	return 0;
}

#endif
