/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside a window: what goes out is in window.c, what comes in is in window_input.c. */
#ifndef TALLY_CLIENT_WINDOW_PRIVATE_H
#define TALLY_CLIENT_WINDOW_PRIVATE_H

#include <tally/check.h>

#include "congestion.h"
#include "recovery.h"
#include "seal.h"
#include "lanes.h"
#include "window.h"

enum {
	SUSPECTS = 16,
};

enum flight_state {
	FLIGHT_NONE = 0,
	FLIGHT_POSTED,   /* composed, not sent yet */
	FLIGHT_FLYING,   /* sent, no result yet */
	FLIGHT_HELD,   /* over; what repair needs is kept */
};

struct flight {
	struct fate fate;
	uint64_t place;
	uint64_t vote;
	uint64_t known; /* what the check of its sum has beside words and votes */
	uint16_t length; /* of the frame, and where it is over of what is kept for repair */
	uint8_t state;   /* enum flight_state */
	uint8_t sum_blocks;  /* of zeros, when sent again without payload */
	uint8_t wrong; /* editions of the sum that came and were wrong */
	uint8_t edition; /* the last one of them */
	bool in_run; /* as it was sent first */
	bool answer;   /* asked for: to be given to the root */
	bool probe; /* after silence; the group has not been asked since */
};

struct window {
	struct window_options options;
	struct tally_set everyone, me;
	uint64_t weight, weights; /* of this rank; of everyone */
	uint64_t run; /* its identity */
	struct seal *seal; /* NULL: the job is not sealed */
	struct tally_header blank; /* what all contributions begin with */
	struct tally_stats stats;
	struct window_runs runs;
	struct window_news news;
	struct recovery recovery;
	struct congestion congestion;
	uint32_t newest; /* of the chunks that were sent; `began`: there is one */
	bool began;
	uint32_t suspect[SUSPECTS]; /* chunks to ask about */
	uint32_t suspects;
	uint32_t flying;
	uint32_t next_probe; /* after silence */
	bool owes_mark; /* a result met congestion on its way, and nobody else knows */
	bool zeros; /* the node has no room for sums in short frames: zeros go along at once */
	uint64_t wakeup_ns; /* some chunk that was sent is to be looked at */
	uint64_t leave_ns; /* some chunk that was not may leave */
	uint32_t mask;   /* 2W - 1 */
	uint32_t posted, taken; /* ends of the queue of posted seqs */
	uint16_t boot;
	size_t stride;   /* of the frames, bytes */
	uint32_t *queue;	 /* [2W], indexed by posted and taken; the oldest chunk first */
	struct flight *flight;  /* [2W] */
	uint8_t *frame; /* [2W] of `stride` bytes: header, payload */
	uint8_t *result; /* the same, of what came; where contributions are not kept, `frame` */
};

/* What the tag of a message from or for this rank must be. */
static inline uint64_t tag_of(const struct window *w, const struct tally_header *h)
{
	struct tally_set set = tally_header_set(h);

	return w->options.keyed ? tally_keyed_tag(h, &set, &w->options.key) : tally_tag(h, &set);
}

/* The words' part of a check. */
static inline uint64_t weigh(const struct window *w, const struct tally_header *h)
{
	size_t words = h->blocks * (size_t)TALLY_BLOCK_WORDS;
	const uint64_t *word = tally_payload_of(h);

	return w->seal ? seal_words(w->seal, h->lane, word, words) : lanes_check(word, words);
}

static inline struct flight *flight_of(struct window *w, uint32_t seq)
{
	return &w->flight[seq & w->mask];
}

static inline struct tally_header *frame_of(struct window *w, uint32_t seq)
{
	return (struct tally_header *)(w->frame + (seq & w->mask) * w->stride);
}

/* What is kept for repair: the result; or our contribution where we got no payload. */
static inline struct tally_header *kept_of(struct window *w, uint32_t seq)
{
	struct tally_header *mine = frame_of(w, seq);

	if (!tally_gets_payload(tally_le16_get(mine->recipient), &w->me))
		return mine;
	return (struct tally_header *)(w->result + (seq & w->mask) * w->stride);
}

static inline void wake_at(struct window *w, uint64_t due_ns)
{
	if (due_ns < w->wakeup_ns)
		w->wakeup_ns = due_ns;
}

/* Chunks without a result, whether they have left or wait. */
static inline uint32_t pending(const struct window *w) { return w->flying + w->posted - w->taken; }

/* While others wait to leave, these will ask. */
static inline uint64_t due_of(struct window *w, struct flight *f, uint64_t now_ns)
{
	return recovery_due(&w->recovery, &f->fate, pending(w) < w->options.window, now_ns);
}

#endif
