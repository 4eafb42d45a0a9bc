/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A contribution into its slot, under the slot's lock. tally/node.h decides; here the words
 * move. Loops run over blocks of eight words, with a bound that the verifier knows; no helper
 * is called while the lock is held.
 */
#ifndef TALLY_GATHER_BPF_H
#define TALLY_GATHER_BPF_H

#include "maps.bpf.h"
#include "parse.bpf.h"
#include <tally/reply.h>

/* How a word moves: s in the slot, p in the packet. Names as in enum tally_words. */
#define WORDS_STORE(s, p) ((s) = (p))
#define WORDS_ADD(s, p) ((s) += (p))
#define WORDS_EXCHANGE(s, p) ((p) = ((s) += (p))) /* both hold the sum */
#define WORDS_LOAD(s, p) ((p) = (s))

#define EACH_WORD(move)                                                                \
	static __always_inline void words_##move(__u64 *s, __u64 *p, __u32 blocks,     \
						 const void *end)                      \
	{                                                                              \
		__u64 bound = blocks_bound(blocks);                                    \
                                                                                       \
		for (int i = 0; i < TALLY_BLOCKS_MAX; i++) {                           \
			if (i >= bound || (const void *)(p + TALLY_BLOCK_WORDS) > end) \
				break;                                                 \
			move(s[0], p[0]);                                              \
			move(s[1], p[1]);                                              \
			move(s[2], p[2]);                                              \
			move(s[3], p[3]);                                              \
			move(s[4], p[4]);                                              \
			move(s[5], p[5]);                                              \
			move(s[6], p[6]);                                              \
			move(s[7], p[7]);                                              \
			s += TALLY_BLOCK_WORDS;                                        \
			p += TALLY_BLOCK_WORDS;                                        \
		}                                                                      \
	}

EACH_WORD(WORDS_STORE)
EACH_WORD(WORDS_ADD)
EACH_WORD(WORDS_EXCHANGE)
EACH_WORD(WORDS_LOAD)

static __always_inline struct tally_slot *slot_find(const struct tally_job *job, __u32 seq)
{
	__u32 index = job->slot_base + (seq & job->slot_mask);

	return bpf_map_lookup_elem(&slots, &index);
}

/*
 * Offers the frame to the slot. `ret`: the slot's books after it; only where a reply is due, since
 * most messages are absorbed.
 */
static __always_inline struct tally_verdict gather(struct tally_slot *slot,
						   const struct tally_job *job, struct frame *f,
						   const struct tally_set *set,
						   struct tally_slot_state *ret)
{
	struct tally_offer offer = tally_offer_read(f->tally, set);
	struct tally_role role = tally_job_role(job);
	enum tally_kind kind = f->tally->kind;
	struct tally_verdict v;

	offer.flags |= frame_mark(f);
	if (offer.flush)
		offer.now_ms = bpf_ktime_get_ns() / 1000000;
	bpf_spin_lock(&slot->lock);
	v = tally_node_gather(&role, kind, &slot->state, &offer);
	if (v.words == TALLY_WORDS_STORE)
		words_WORDS_STORE(slot->word, f->word, offer.blocks, f->end);
	else if (v.words == TALLY_WORDS_ADD)
		words_WORDS_ADD(slot->word, f->word, offer.blocks, f->end);
	else if (v.words == TALLY_WORDS_EXCHANGE)
		words_WORDS_EXCHANGE(slot->word, f->word, offer.blocks, f->end);
	if (tally_reply_is_due(v.outcome))
		*ret = slot->state;
	bpf_spin_unlock(&slot->lock);
	return v;
}

#endif
