// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "window_private.h"

#include <string.h>

static bool ignore(struct window *w)
{
	w->stats.ignored++;
	return false;
}

/*
 * A wrong sum. The copy may have been spoilt on its way: the first time the worker asks for another
 * one. The second time it rejects the sum itself, with its own contribution to the next one. On a
 * tree many copies of one wrong sum come at once: only editions are counted, and what went out half
 * an RTT ago or later does not go out again for each of them.
 */
static bool reject(struct window *w, const struct tally_header *h, struct tally_header *mine,
		   struct flight *f, uint64_t now_ns)
{
	bool again = f->wrong && (__s8)(h->edition - f->edition) <= 0;

	w->stats.corrupt++;
	f->wrong += !again && f->wrong < UINT8_MAX;
	f->edition = again ? f->edition : h->edition;
	w->news.spoiled |= f->wrong >= WINDOW_WRONG_MAX ||
			   (w->seal && w->stats.corrupt >= WINDOW_SEALED_WRONG_MAX);
	if (again || f->wrong > 1) {
		mine->flags |= TALLY_REJECT | TALLY_FLUSH;
		mine->edition = h->edition;
	}
	if (now_ns - f->fate.sent_ns >= w->recovery.srtt_ns / 2) {
		f->fate.lost = true;
		w->wakeup_ns = 0;
	}
	return false;
}

static bool sum_is_right(const struct window *w, const struct tally_header *h,
			 const struct flight *f)
{
	uint64_t rest = tally_le64_get(h->check) - f->known - weigh(w, h);

	if (w->seal)
		return seal_votes_agree(w->seal, rest, h, f->place, w->options.workers);
	return !rest;
}

/* docs/protocol.md, "Scales". Nodes only take the largest: one rank may have said anything. */
static bool scale_can_be(const struct lane *l, __u8 scale)
{
	return !scale || (l && scale >= l->scale_min && scale <= l->scale_max);
}

/* Is it a result of what we sent: agreed in all that all ranks must agree in, and intact? */
static bool result_is_right(struct window *w, const struct tally_header *h,
			    struct tally_header *mine, struct flight *f, uint64_t now_ns)
{
	bool is_ours = tally_gets_payload(tally_le16_get(h->recipient), &w->me);
	const struct lane *lane = lane_at(mine->lane);

	if (h->lane != mine->lane || h->recipient != mine->recipient || h->call != mine->call ||
	    (is_ours && h->blocks != f->sum_blocks))
		return ignore(w);
	/* A scale is the largest of all, and flags are those of all: no rank's own is more. */
	if (h->scale < mine->scale || h->scale_ahead < mine->scale_ahead ||
	    mine->flags & ~h->flags & TALLY_FLAGS_STICKY || !scale_can_be(lane, h->scale) ||
	    !scale_can_be(lane, h->scale_ahead))
		return reject(w, h, mine, f, now_ns);
	/* Who gets no payload cannot verify the sum; the recipient does, and rejects it for all. */
	if (is_ours && !sum_is_right(w, h, f))
		return reject(w, h, mine, f, now_ns);
	return true;
}

/* News of a chunk that flies: recovery_hear(). */
static void hear(struct window *w, struct flight *f, const struct tally_set *there,
		 uint64_t since_ns, uint64_t now_ns)
{
	const bool was_lost = f->fate.lost;

	recovery_hear(&w->recovery, &f->fate, tally_set_has(there, w->options.rank),
		      tally_set_is_equal(there, &w->everyone), since_ns, now_ns);
	if (f->fate.lost && !was_lost)
		congestion_lost(&w->congestion, f->fate.sent_ns, now_ns);
}

/* Of an older chunk, read by the node when it made this result. */
static void take_news(struct window *w, const struct tally_header *h, const struct flight *f,
		      uint64_t now_ns)
{
	uint32_t seq = f->fate.seq - tally_le16_get(h->about);
	struct tally_set there = tally_header_set(h);
	struct flight *older = flight_of(w, seq);
	const struct recovery *r = &w->recovery;

	if (older->state != FLIGHT_FLYING || older->fate.seq != seq)
		return;
	hear(w, older, &there,
	     f->fate.tries == 1 ? f->fate.sent_ns - r->reorder_ns : recovery_settled(r, now_ns),
	     now_ns);
	wake_at(w, due_of(w, older, now_ns));
}

static bool take_result(struct window *w, const struct tally_header *h, size_t length,
			uint64_t now_ns)
{
	uint32_t seq = tally_le32_get(h->seq);
	struct tally_header *mine = frame_of(w, seq);
	struct flight *f = flight_of(w, seq);

	if (f->state != FLIGHT_FLYING || f->fate.seq != seq)
		return ignore(w);
	if (!result_is_right(w, h, mine, f, now_ns))
		return false;

	if (w->boot && w->boot != tally_le16_get(h->boot))
		w->stats.node_reloads++;
	w->boot = tally_le16_get(h->boot);
	w->stats.spilled += !!(h->flags & TALLY_SPILLED);
	w->runs.chunks += f->in_run;
	w->runs.first_tries += f->in_run && f->fate.tries == 1;
	w->flying--;
	congestion_result(&w->congestion,
			  &(struct congestion_result){ .sent_ns = f->fate.sent_ns,
						       .once = f->fate.tries == 1,
						       .marked = h->flags & TALLY_MARKED },
			  now_ns);
	w->stats.marked += !!(h->flags & TALLY_MARKED);
	w->stats.cuts = w->congestion.cuts;
	if (h->about)
		take_news(w, h, f, now_ns);
	if (recovery_result(&w->recovery, &f->fate, now_ns))
		wake_at(w, now_ns + w->recovery.srtt_ns / 8);

	if (tally_gets_payload(tally_le16_get(h->recipient), &w->me)) {
		mine = kept_of(w, seq);
		memcpy(mine, h, length);
		mine->kind = TALLY_REPAIR;
		mine->flags &= TALLY_FLAGS_UP;
		mine->boot = tally_le16(0);
		mine->about = tally_le16(0);
		mine->sender = tally_le16(w->options.rank);
		tally_header_set_put(mine, &w->everyone);
		f->length = length;
	} else {
		mine->flags &= ~TALLY_REJECT;
	}
	f->state = FLIGHT_HELD;
	w->stats.chunks++;
	return true;
}

/* Some rank has probed this chunk, which lacks ranks. */
static void take_missing(struct window *w, struct flight *f, const struct tally_set *there,
			 uint64_t now_ns)
{
	bool mine = tally_set_has(there, w->options.rank);

	w->news.asked_ns = now_ns;
	for (int i = 0; i < TALLY_SET_WORDS; i++)
		w->news.missing.word[i] = w->everyone.word[i] & ~there->word[i];
	hear(w, f, there, recovery_settled(&w->recovery, now_ns), now_ns);
	if (mine && f->fate.seq == w->next_probe && !f->probe)
		recovery_probed(&w->recovery, &f->fate, w->flying, now_ns);
	f->probe = false;
	if (f->fate.lost)
		w->wakeup_ns = now_ns;
}

static void take_ask(struct window *w, const struct tally_header *h, uint64_t now_ns)
{
	uint32_t seq = tally_le32_get(h->seq);
	struct tally_set there = tally_header_set(h);
	struct flight *f = flight_of(w, seq);

	if (f->fate.seq != seq || f->state == FLIGHT_NONE)
		return;
	if (f->state == FLIGHT_HELD) {
		/* Everyone who waits asks; one answer in a while is enough. */
		if (!f->answer && now_ns - f->fate.sent_ns > w->recovery.rto_ns / 2) {
			f->answer = true;
			w->wakeup_ns = now_ns;
		}
		return;
	}
	if (tally_set_is_equal(&there, &w->everyone)) {
		/* The result is there and wants a frame to come in. */
		w->zeros = w->zeros || !frame_of(w, seq)->blocks;
		f->fate.lost = f->state == FLIGHT_FLYING;
		w->wakeup_ns = now_ns;
		return;
	}
	f->fate.group_asked = true;
	if (f->state == FLIGHT_FLYING)
		take_missing(w, f, &there, now_ns);
}

/* Ranks disagree about a chunk that this one waits for. */
static void take_mismatch(struct window *w, const struct tally_header *h)
{
	uint32_t seq = tally_le32_get(h->seq);
	const struct flight *f = flight_of(w, seq);

	if (f->fate.seq != seq || f->state != FLIGHT_FLYING || w->news.mismatch)
		return;
	w->news.mismatch = true;
	w->news.call = tally_le64_get(h->call);
	w->news.other_call = tally_le64_get(h->check);
	w->news.other = tally_le16_get(h->sender);
	w->news.callers = tally_header_set(h);
}

/*
 * A slot serves a later chunk only when all ranks have had the result of this one. Where this
 * worker has not, there is another of its rank.
 */
static void take_overtaken(struct window *w, const struct tally_header *h)
{
	uint32_t seq = tally_le32_get(h->seq);
	const struct flight *f = flight_of(w, seq);
	int32_t ahead = (int32_t)(uint32_t)(tally_le64_get(h->check) - seq);

	if (f->fate.seq == seq && f->state == FLIGHT_FLYING && ahead > 0)
		w->news.overtaken = true;
}

/* A message of this run whose header is as it was sent. */
static bool is_intact(const struct window *w, const struct tally_header *h, size_t length)
{
	if (tally_le32_get(h->job) != w->options.job ||
	    tally_le16_get(h->epoch) != w->options.epoch || length > w->stride ||
	    (h->flags ^ w->blank.flags) & TALLY_LARGE ||
	    length != tally_header_bytes(h->flags) + h->blocks * (size_t)TALLY_BLOCK_BYTES)
		return false;
	return tally_le64_get(h->tag) == tag_of(w, h) &&
	       !(h->flags & ~(TALLY_FLAGS_DOWN & ~TALLY_PARTIAL)) &&
	       !(h->flags & TALLY_LARGE && tally_more_of(h)->reserved);
}

/*
 * Does a node speak another version, or has a bit flipped? What it says so with has a tag, too, but
 * one that anybody can make.
 */
static bool is_whole_answer(const struct window *w, const struct tally_header *h)
{
	const struct tally_set set = { { tally_le64_get(h->set) } };

	return !w->options.keyed && tally_le64_get(h->tag) == tally_tag(h, &set);
}

static bool is_of_our_version(const struct tally_header *h, size_t length)
{
	return length >= sizeof(*h) && h->magic == TALLY_MAGIC && h->version == TALLY_VERSION;
}

void window_marked(struct window *w, const void *bytes, size_t length)
{
	if (is_of_our_version(bytes, length) && is_intact(w, bytes, length))
		w->owes_mark = w->options.follows;
}

bool window_input(struct window *w, const void *bytes, size_t length, uint64_t now_ns,
		  uint32_t *ret_seq)
{
	const struct tally_header *h = bytes;

	if (length < sizeof(*h) || h->magic != TALLY_MAGIC)
		return ignore(w);
	if (h->version != TALLY_VERSION) {
		if (!is_whole_answer(w, h))
			return ignore(w);
		w->news.other_version = h->version;
		return false;
	}
	if (!is_intact(w, h, length))
		return ignore(w);
	w->news.heard_ns = now_ns;
	if (h->kind == TALLY_ASK)
		take_ask(w, h, now_ns);
	else if (h->kind == TALLY_MISMATCH)
		take_mismatch(w, h);
	else if (h->kind == TALLY_OVERTAKEN)
		take_overtaken(w, h);
	if (h->kind != TALLY_RESULT || !take_result(w, h, length, now_ns))
		return false;
	*ret_seq = tally_le32_get(h->seq);
	return true;
}
