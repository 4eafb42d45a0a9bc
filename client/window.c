// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tally/check.h>

#include "lanes.h"

enum flight_state {
	FLIGHT_NONE = 0,
	FLIGHT_POSTED,   /* composed, not sent yet */
	FLIGHT_FLYING,   /* sent, no result yet */
	FLIGHT_HELD,   /* over; the frame is kept for repair */
};

struct flight {
	uint64_t sent_ns;  /* the last time */
	uint64_t identity;
	uint32_t seq;
	uint16_t length;	 /* of the frame */
	uint8_t state;   /* enum flight_state */
	uint8_t tries;   /* times sent, saturating */
	uint8_t timeouts;  /* of them, after a full timeout, saturating */
	uint8_t sum_blocks;  /* of zeros, when sent again without payload */
	uint8_t wrong; /* editions of the sum that came and were wrong */
	uint8_t edition; /* the last one of them */
	bool lost;   /* to be sent again at once */
	bool answer;   /* asked for: to be given to the root */
	bool in_run;   /* as it was sent first */
};

struct window {
	struct window_options options;
	struct tally_set everyone, me;
	uint64_t weight, weights; /* of this rank; of everyone */
	uint64_t run; /* its identity */
	struct tally_header blank; /* what all contributions begin with */
	struct tally_stats stats;
	struct window_runs runs;
	struct window_news news;
	uint64_t srtt_ns, rttvar_ns, rto_ns;
	uint64_t reorder_ns;  /* results so much out of order are not losses */
	uint64_t newest_ns;  /* sent_ns of the latest-sent chunk with a result */
	uint64_t probe_ns; /* no probes before */
	uint32_t probe_from; /* the flight to begin with */
	uint64_t wakeup_ns;
	uint32_t mask;   /* 2W - 1 */
	uint32_t posted, taken; /* ends of the queue of posted seqs */
	uint16_t boot;
	size_t stride;   /* of the frames, bytes */
	uint32_t *queue;	 /* [2W], indexed by posted and taken */
	struct flight *flight;  /* [2W] */
	uint8_t *frame; /* [2W] of `stride` bytes: header, payload */
};

int window_new(const struct window_options *options, struct window **ret)
{
	struct window *w = calloc(1, sizeof(*w));
	uint32_t frames = 2u * options->window;

	if (!w)
		return -ENOMEM;
	w->options = *options;
	w->everyone = tally_set_first(options->workers);
	tally_set_add(&w->me, options->rank);
	w->blank = (struct tally_header){
		.magic = TALLY_MAGIC,
		.version = TALLY_VERSION,
		.kind = TALLY_CONTRIBUTION,
		.job = tally_le32(options->job),
		.epoch = tally_le16(options->epoch),
		.recipient = tally_le16(TALLY_EVERYONE),
		.sender = tally_le16(options->rank),
		.flags = tally_is_large(&w->everyone) ? TALLY_LARGE : 0,
	};
	w->weight = tally_weight(options->rank);
	for (uint32_t rank = 0; rank < options->workers; rank++)
		w->weights += tally_weight(rank);
	window_begin_run(w, options->nonce);
	w->rto_ns = WINDOW_RTO_FIRST_NS;
	w->reorder_ns = WINDOW_REORDER_MIN_NS;
	w->wakeup_ns = UINT64_MAX;
	w->mask = frames - 1;
	w->stride = tally_header_bytes(w->blank.flags) + options->payload_bytes;
	w->queue = calloc(frames, sizeof(*w->queue));
	w->flight = calloc(frames, sizeof(*w->flight));
	w->frame = aligned_alloc(sizeof(struct tally_more), frames * w->stride);
	if (!w->queue || !w->flight || !w->frame) {
		window_free(w);
		return -ENOMEM;
	}
	*ret = w;
	return 0;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	free(w->queue);
	free(w->flight);
	free(w->frame);
	free(w);
}

void window_begin_run(struct window *w, uint64_t nonce)
{
	w->run = tally_run_identity(nonce, w->options.job, w->options.epoch);
}

static struct flight *flight_of(struct window *w, uint32_t seq)
{
	return &w->flight[seq & w->mask];
}

static struct tally_header *frame_of(struct window *w, uint32_t seq)
{
	return (struct tally_header *)(w->frame + (seq & w->mask) * w->stride);
}

struct tally_header *window_compose(struct window *w, uint32_t seq)
{
	struct tally_header *h = frame_of(w, seq);

	assert(flight_of(w, seq)->state == FLIGHT_NONE || flight_of(w, seq)->state == FLIGHT_HELD);
	*h = w->blank;
	h->seq = tally_le32(seq);
	if (h->flags & TALLY_LARGE)
		tally_more_of(h)->reserved = tally_le64(0);
	tally_header_set_put(h, &w->me);
	return h;
}

static void tag(struct tally_header *h)
{
	struct tally_set set = tally_header_set(h);

	h->tag = tally_le64(tally_tag(h, &set));
}

void window_post(struct window *w, uint32_t seq, uint64_t place, uint8_t sum_blocks)
{
	struct tally_header *h = frame_of(w, seq);
	struct flight *f = flight_of(w, seq);
	size_t words = h->blocks * TALLY_BLOCK_WORDS;

	*f = (struct flight){
		.seq = seq,
		.identity = tally_identity(w->run, seq, tally_le64_get(h->call), place),
		.state = FLIGHT_POSTED,
		.sum_blocks = sum_blocks,
		.length = tally_header_bytes(h->flags) + words * sizeof(uint64_t),
	};
	h->check = tally_le64(lanes_check(tally_payload(h), words) + f->identity * w->weight);
	w->queue[w->posted++ & w->mask] = seq;
}

static uint64_t within(uint64_t ns, uint64_t low, uint64_t high)
{
	return ns < low ? low : ns > high ? high : ns;
}

/* Results come back in the order of sending, or nearly: much later ones overtook this one. */
static bool was_overtaken(const struct window *w, const struct flight *f)
{
	return f->sent_ns + w->reorder_ns < w->newest_ns;
}

/*
 * How much is "much" is learnt, as RFC 8985 does (section 6.2): a result that comes sooner
 * after a retransmission than any network could answer was only late, not lost.
 */
static void learn_reordering(struct window *w, const struct flight *f, uint64_t now_ns)
{
	if (f->tries == 1)
		w->reorder_ns -= w->reorder_ns / 2048;
	else if (now_ns - f->sent_ns < w->srtt_ns / 2)
		w->reorder_ns += w->reorder_ns / 4;
	w->reorder_ns = within(w->reorder_ns, WINDOW_REORDER_MIN_NS, w->rto_ns);
}

static uint64_t timeout_of(const struct window *w, const struct flight *f)
{
	uint64_t ns = w->rto_ns << (f->timeouts < 6 ? f->timeouts : 6);

	return ns < WINDOW_RTO_MAX_NS ? ns : WINDOW_RTO_MAX_NS;
}

static void wake_at(struct window *w, const struct flight *f)
{
	uint64_t due = f->sent_ns + timeout_of(w, f);

	if (due < w->probe_ns)
		due = w->probe_ns;
	if (due < w->wakeup_ns)
		w->wakeup_ns = due;
}

/* Room for the answer. The sum stays what it is, and so does the check word. */
static void add_zeros(struct tally_header *h, struct flight *f)
{
	memset(tally_payload(h), 0, f->sum_blocks * (size_t)TALLY_BLOCK_BYTES);
	h->blocks = f->sum_blocks;
	f->length = tally_header_bytes(h->flags) + f->sum_blocks * TALLY_BLOCK_BYTES;
}

static struct datagram flight_send(struct window *w, struct flight *f, uint64_t now_ns)
{
	struct tally_header *h = frame_of(w, f->seq);
	struct datagram d = { .bytes = h, .fresh = !f->tries, .in_run = &f->in_run };

	if (f->tries) {
		w->stats.retransmitted++;
		if (!h->blocks)
			add_zeros(h, f);
		if (f->timeouts >= 2 || f->tries >= WINDOW_TRIES_MAX) {
			h->flags |= TALLY_FLUSH;
			w->stats.flushed++;
		}
	}
	tag(h);
	f->state = FLIGHT_FLYING;
	f->sent_ns = now_ns;
	f->lost = false;
	if (f->tries < UINT8_MAX)
		f->tries++;
	d.length = f->length;
	return d;
}

/* The root lost its memory: the result, or our part again where we have no result. */
static struct datagram flight_answer(struct window *w, struct flight *f, uint64_t now_ns)
{
	struct tally_header *h = frame_of(w, f->seq);

	if (h->kind == TALLY_CONTRIBUTION) {
		h->flags |= TALLY_FLUSH;
		if (!h->blocks)
			add_zeros(h, f);
	}
	tag(h);
	f->answer = false;
	f->sent_ns = now_ns;
	w->stats.repaired++;
	return (struct datagram){ .bytes = h, .length = f->length };
}

/*
 * Looks at all flights once: what is to be sent again, and when to look next. What was
 * overtaken is lost and goes at once. Silence is not loss yet, rather a late rank: so after a
 * timeout only some flights are probed, by turns; if one of them was lost, its result, sent for
 * later than all the others, tells of them.
 */
static size_t scan(struct window *w, uint64_t now_ns, struct datagram *ret, size_t max)
{
	bool may_probe = now_ns >= w->probe_ns;
	uint32_t first = w->probe_from;
	int probes = 0;
	size_t n = 0;

	w->wakeup_ns = UINT64_MAX;
	for (uint32_t i = 0; i <= w->mask; i++) {
		struct flight *f = &w->flight[(first + i) & w->mask];
		bool late;

		if (f->state == FLIGHT_HELD && f->answer && n < max)
			ret[n++] = flight_answer(w, f, now_ns);
		if (f->state != FLIGHT_FLYING)
			continue;
		late = now_ns >= f->sent_ns + timeout_of(w, f) && may_probe &&
		       probes < WINDOW_PROBES_MAX;
		if (n < max && (late || f->lost || was_overtaken(w, f))) {
			if (late) {
				probes++;
				w->probe_ns = now_ns + w->rto_ns;
				w->probe_from = (first + i + 1) & w->mask;
				f->timeouts += f->timeouts < UINT8_MAX;
			}
			ret[n++] = flight_send(w, f, now_ns);
		}
		wake_at(w, f);
	}
	if (n == max)
		w->wakeup_ns = now_ns; /* there may be more */
	return n;
}

size_t window_output(struct window *w, uint64_t now_ns, struct datagram *ret, size_t max)
{
	size_t n = 0;

	while (w->taken != w->posted && n < max) {
		struct flight *f = flight_of(w, w->queue[w->taken++ & w->mask]);

		ret[n++] = flight_send(w, f, now_ns);
		wake_at(w, f);
	}
	if (n < max && now_ns >= w->wakeup_ns)
		n += scan(w, now_ns, ret + n, max - n);
	return n;
}

void window_unsent(struct window *w, const struct datagram *d, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct tally_header *h = d[i].bytes;
		struct flight *f = flight_of(w, tally_le32_get(h->seq));

		if (d[i].fresh) {
			f->state = FLIGHT_POSTED;
			f->tries = 0;
			w->taken--;
			continue;
		}
		w->wakeup_ns = f->sent_ns;
		if (f->state == FLIGHT_HELD) {
			f->answer = true;
			w->stats.repaired--;
			continue;
		}
		f->lost = true;
		f->tries--;
		w->stats.retransmitted--;
		w->stats.flushed -= !!(h->flags & TALLY_FLUSH);
	}
}

void window_drop(struct window *w)
{
	w->taken = w->posted;
	for (uint32_t i = 0; i <= w->mask; i++)
		if (w->flight[i].state != FLIGHT_HELD)
			w->flight[i].state = FLIGHT_NONE;
	w->wakeup_ns = 0; /* repairs may have been asked for */
}

/* RFC 6298; only from chunks sent once (Karn). */
static void measure_rtt(struct window *w, uint64_t rtt_ns)
{
	uint64_t delta = rtt_ns > w->srtt_ns ? rtt_ns - w->srtt_ns : w->srtt_ns - rtt_ns;

	if (!w->srtt_ns) {
		w->srtt_ns = rtt_ns;
		w->rttvar_ns = rtt_ns / 2;
	} else {
		w->rttvar_ns += delta / 4 - w->rttvar_ns / 4;
		w->srtt_ns += rtt_ns / 8 - w->srtt_ns / 8;
	}
	w->rto_ns = within(w->srtt_ns + 4 * w->rttvar_ns, WINDOW_RTO_MIN_NS, WINDOW_RTO_MAX_NS);
}

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
	w->news.spoiled |= f->wrong >= WINDOW_WRONG_MAX;
	if (again || f->wrong > 1) {
		mine->flags |= TALLY_REJECT | TALLY_FLUSH;
		mine->edition = h->edition;
	}
	if (now_ns - f->sent_ns >= w->srtt_ns / 2) {
		f->lost = true;
		w->wakeup_ns = 0;
	}
	return false;
}

/* Is it a result of what we sent: agreed in all that all ranks must agree in, and intact? */
static bool result_is_right(struct window *w, const struct tally_header *h,
			    struct tally_header *mine, struct flight *f, uint64_t now_ns)
{
	size_t words = h->blocks * TALLY_BLOCK_WORDS;
	bool is_ours = tally_gets_payload(tally_le16_get(h->recipient), &w->me);

	if (h->lane != mine->lane || h->recipient != mine->recipient || h->call != mine->call ||
	    (is_ours && h->blocks != f->sum_blocks))
		return ignore(w);
	/* A scale is the largest of all, and flags are those of all: no rank's own is more. */
	if (h->scale < mine->scale || h->scale_ahead < mine->scale_ahead ||
	    mine->flags & ~h->flags & TALLY_FLAGS_STICKY)
		return reject(w, h, mine, f, now_ns);
	/* Who gets no payload cannot verify the sum; the recipient does, and rejects it for all. */
	if (is_ours && lanes_check(tally_payload_of(h), words) + f->identity * w->weights !=
			       tally_le64_get(h->check))
		return reject(w, h, mine, f, now_ns);
	return true;
}

static bool take_result(struct window *w, const struct tally_header *h, size_t length,
			uint64_t now_ns)
{
	uint32_t seq = tally_le32_get(h->seq);
	struct tally_header *mine = frame_of(w, seq);
	struct flight *f = flight_of(w, seq);

	if (f->state != FLIGHT_FLYING || f->seq != seq)
		return ignore(w);
	if (!result_is_right(w, h, mine, f, now_ns))
		return false;

	if (w->boot && w->boot != tally_le16_get(h->boot))
		w->stats.node_reloads++;
	w->boot = tally_le16_get(h->boot);
	w->runs.chunks += f->in_run;
	w->runs.first_tries += f->in_run && f->tries == 1;
	if (f->tries == 1)
		measure_rtt(w, now_ns - f->sent_ns);
	learn_reordering(w, f, now_ns);
	if (f->sent_ns > w->newest_ns) {
		w->newest_ns = f->sent_ns;
		if (w->wakeup_ns > now_ns + w->srtt_ns / 8)
			w->wakeup_ns = now_ns + w->srtt_ns / 8;
	}

	/* Kept for repair: the result; or our contribution where we got no payload. */
	if (tally_gets_payload(tally_le16_get(h->recipient), &w->me)) {
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

static void take_ask(struct window *w, const struct tally_header *h, uint64_t now_ns)
{
	uint32_t seq = tally_le32_get(h->seq);
	struct tally_set there = tally_header_set(h);
	struct flight *f = flight_of(w, seq);

	if (f->seq != seq || f->state == FLIGHT_NONE || f->state == FLIGHT_POSTED)
		return;
	if (f->state == FLIGHT_HELD) {
		/* Everyone who waits asks; one answer in a while is enough. */
		if (!f->answer && now_ns - f->sent_ns > w->rto_ns / 2) {
			f->answer = true;
			w->wakeup_ns = now_ns;
		}
		return;
	}
	if (tally_set_is_equal(&there, &w->everyone)) {
		f->lost = true; /* the result is there and wants a frame to come in */
		w->wakeup_ns = now_ns;
		return;
	}
	w->news.asked_ns = now_ns;
	for (int i = 0; i < TALLY_SET_WORDS; i++)
		w->news.missing.word[i] = w->everyone.word[i] & ~there.word[i];
	if (!tally_set_has(&there, w->options.rank) && now_ns - f->sent_ns > w->srtt_ns) {
		f->lost = true;
		w->wakeup_ns = now_ns;
	}
}

/* Ranks disagree about a chunk that this one waits for. */
static void take_mismatch(struct window *w, const struct tally_header *h)
{
	uint32_t seq = tally_le32_get(h->seq);
	const struct flight *f = flight_of(w, seq);

	if (f->seq != seq || f->state != FLIGHT_FLYING || w->news.mismatch)
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

	if (f->seq == seq && f->state == FLIGHT_FLYING && ahead > 0)
		w->news.overtaken = true;
}

/* A message of this run whose header is as it was sent. */
static bool is_intact(const struct window *w, const struct tally_header *h, size_t length)
{
	struct tally_set set;

	if (tally_le32_get(h->job) != w->options.job ||
	    tally_le16_get(h->epoch) != w->options.epoch || length > w->stride ||
	    (h->flags ^ w->blank.flags) & TALLY_LARGE ||
	    length != tally_header_bytes(h->flags) + h->blocks * (size_t)TALLY_BLOCK_BYTES)
		return false;
	set = tally_header_set(h);
	return tally_le64_get(h->tag) == tally_tag(h, &set) &&
	       !(h->flags & ~(TALLY_FLAGS_DOWN & ~TALLY_PARTIAL)) &&
	       !(h->flags & TALLY_LARGE && tally_more_of(h)->reserved);
}

/* Does a node speak another version, or has a bit flipped? What it says so with has a tag, too. */
static bool is_whole_answer(const struct tally_header *h)
{
	const struct tally_set set = { { tally_le64_get(h->set) } };

	return tally_le64_get(h->tag) == tally_tag(h, &set);
}

bool window_input(struct window *w, const void *bytes, size_t length, uint64_t now_ns,
		  uint32_t *ret_seq)
{
	const struct tally_header *h = bytes;

	if (length < sizeof(*h) || h->magic != TALLY_MAGIC)
		return ignore(w);
	if (h->version != TALLY_VERSION) {
		if (!is_whole_answer(h))
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

uint64_t window_wakeup(const struct window *w) { return w->wakeup_ns; }

uint64_t window_rtt(const struct window *w) { return w->srtt_ns; }

uint64_t window_rto(const struct window *w) { return w->rto_ns; }

const struct tally_stats *window_stats(const struct window *w) { return &w->stats; }

const struct window_runs *window_runs(const struct window *w) { return &w->runs; }

const struct window_news *window_news(const struct window *w) { return &w->news; }
