/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A contribution of a job that borrows, into a slot that jobs share. tally/borrowed.h decides; here
 * words and headers change places. Without a pool the verifier drops all of it.
 *
 * A sum that a swap throws out leaves in the frame of whoever has the slot now: its Ethernet header
 * stays, since the kernel takes the frame in by that and writes another one when it sends it on.
 * Frames of another shape could not carry it: the lengths of all headers stay, so that what the
 * kernel knows of the frame (where a checksum is to go) stays true.
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

static __always_inline struct tally_pool_slot *pool_find(const struct tally_borrower *b, __u32 seq)
{
	__u32 index = tally_borrowed_place(b, seq, constants.pool.slots);

	return bpf_map_lookup_elem(&pool, &index);
}

static __always_inline void route_read(struct tally_pool_route *route, const struct frame *f,
				       const struct tally_job *job)
{
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
	f->udp->source = route->udp_port;
	if (f->offsets.ipv6) {
		__builtin_memcpy(&f->ip6->saddr, &route->ip6, sizeof(route->ip6));
	} else {
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

/* Reads the message. 0: there is nothing to be had. A global function (see offsets_find). */
__noinline int borrow_read(struct hook_context *ctx, int packed_offsets,
			   const struct tally_job *job, const struct tally_set *set)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_borrowing *now = borrowing_get();

	if (!HOOK_BORROWS || !constants.pool.slots || !now || !job || !set ||
	    !frame_locate(ctx, &f))
		return 0;
	now->policy = borrow_policy(job);
	now->borrower = borrower_read(&f, job);
	now->offer = tally_offer_read(f.tally, set);
	/* As of the last tick, which is cheaper: nobody has to know a stall to the millisecond. */
	if (constants.pool.policy.stalled_ms)
		now->offer.now_ms = bpf_ktime_get_coarse_ns() / 1000000;
	return 1;
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
	slot = pool_find(&now->borrower, now->offer.seq);
	if (!slot)
		return TALLY_PASSED_UP;
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
	struct tally_pool_slot *slot = pool_find(&now->borrower, now->out.state.seq);
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
		if (!job->copies)
			return TALLY_PASSED_UP; /* nobody would hear that longer ones are needed */
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
	int out, left;

	if (!borrow_read(ctx, packed_offsets, job, set))
		return TALLY_PASSED_UP;
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
	reply_finish(ctx, packed_offsets, left && out != TALLY_NO_ROOM);
	return out;
}

/* A result comes down, and its slot is free. A global function (see offsets_find). */
__noinline int borrow_release(struct hook_context *ctx, int packed_offsets,
			      const struct tally_job *job)
{
	struct frame f = { .offsets = offsets_unpack(packed_offsets) };
	struct tally_pool_slot *slot;
	struct tally_borrower b;
	__u32 seq;

	if (!constants.pool.slots || !job || !frame_locate(ctx, &f) ||
	    f.tally->kind != TALLY_RESULT)
		return 0;
	b = borrower_read(&f, job);
	seq = tally_le32_get(f.tally->seq);
	slot = pool_find(&b, seq);
	if (!slot)
		return 0;
	bpf_spin_lock(&slot->lock);
	tally_borrowed_release(&slot->books, &b, seq);
	bpf_spin_unlock(&slot->lock);
	return 0;
}

#endif
