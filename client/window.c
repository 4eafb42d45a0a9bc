// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "window_private.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	recovery_init(&w->recovery, options->rank, options->workers);
	congestion_init(&w->congestion, options->follows, options->window, options->workers);
	w->wakeup_ns = w->leave_ns = UINT64_MAX;
	w->mask = frames - 1;
	w->stride = tally_header_bytes(w->blank.flags) + options->payload_bytes;
	w->queue = calloc(frames, sizeof(*w->queue));
	w->flight = calloc(frames, sizeof(*w->flight));
	w->frame = aligned_alloc(sizeof(struct tally_more), frames * w->stride);
	w->result = options->keeps ? aligned_alloc(sizeof(struct tally_more), frames * w->stride)
				   : w->frame;
	w->seal = options->sealed ? malloc(sizeof(*w->seal)) : NULL;
	if (!w->queue || !w->flight || !w->frame || !w->result || (options->sealed && !w->seal)) {
		window_free(w);
		return -ENOMEM;
	}
	window_begin_run(w, options->nonce);
	*ret = w;
	return 0;
}

void window_free(struct window *w)
{
	if (!w)
		return;
	if (w->seal)
		explicit_bzero(w->seal, sizeof(*w->seal));
	free(w->seal);
	free(w->queue);
	free(w->flight);
	if (w->result != w->frame)
		free(w->result);
	free(w->frame);
	free(w);
}

void window_begin_run(struct window *w, uint64_t nonce)
{
	w->run = tally_run_identity(nonce, w->options.job, w->options.epoch);
	if (w->seal)
		seal_begin_run(w->seal, &w->options.secret, w->run);
}

void window_priority_set(struct window *w, uint8_t priority) { w->blank.priority = priority; }

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

/* What a contribution's check has beside its words; ret_all: what that of the sum has. */
static uint64_t check_beside(struct window *w, uint32_t seq, uint64_t call, uint64_t place,
			     uint64_t vote, uint64_t *ret_all)
{
	const struct window_options *o = &w->options;
	uint64_t identity;

	if (w->seal) {
		struct seal_masks m = seal_masks(w->seal, seq, call, place, o->rank, o->workers);

		*ret_all = m.all;
		return m.own + vote * w->seal->vote;
	}
	identity = tally_identity(w->run, seq, call, place);
	*ret_all = identity * w->weights;
	return identity * w->weight;
}

static bool is_before(uint32_t a, uint32_t b) { return (int32_t)(a - b) < 0; }

static void enqueue(struct window *w, uint32_t seq)
{
	uint32_t at = w->posted++;

	for (; at != w->taken && is_before(seq, w->queue[(at - 1) & w->mask]); at--)
		w->queue[at & w->mask] = w->queue[(at - 1) & w->mask];
	w->queue[at & w->mask] = seq;
}

void window_post(struct window *w, uint32_t seq, uint64_t place, uint64_t vote, uint8_t sum_blocks)
{
	struct tally_header *h = frame_of(w, seq);
	struct flight *f = flight_of(w, seq);
	uint64_t beside;

	*f = (struct flight){
		.fate.seq = seq,
		.place = place,
		.vote = vote,
		.state = FLIGHT_POSTED,
		.sum_blocks = sum_blocks,
		.length = tally_header_bytes(h->flags) + h->blocks * TALLY_BLOCK_BYTES,
	};
	beside = check_beside(w, seq, tally_le64_get(h->call), place, vote, &f->known);
	h->check = tally_le64(weigh(w, h) + beside);
	enqueue(w, seq);
}

static bool is_of(const struct flight *f, uint32_t seq) { return f->length && f->fate.seq == seq; }

bool window_has_result(const struct window *w, uint32_t seq)
{
	const struct flight *f = &w->flight[seq & w->mask];

	return is_of(f, seq) && f->state == FLIGHT_HELD;
}

bool window_lacks_result(const struct window *w, uint32_t seq)
{
	const struct flight *f = &w->flight[seq & w->mask];

	return is_of(f, seq) && f->state != FLIGHT_HELD;
}

void window_repost(struct window *w, uint32_t seq, struct window *from, uint32_t was)
{
	const struct tally_header *old = frame_of(from, was);
	const struct flight *f = flight_of(from, was);
	struct tally_header *h = window_compose(w, seq);

	assert(from->options.keeps && is_of(f, was));
	h->recipient = old->recipient;
	h->blocks = old->blocks;
	h->lane = old->lane;
	h->scale = old->scale;
	h->scale_ahead = old->scale_ahead;
	h->priority = old->priority;
	h->call = old->call;
	h->flags |= old->flags & TALLY_FLAGS_STICKY;
	memcpy(tally_payload(h), tally_payload_of(old), old->blocks * (size_t)TALLY_BLOCK_BYTES);
	window_post(w, seq, f->place, f->vote, f->sum_blocks);
}

/* Room for the answer. The sum stays what it is, and so does the check word. */
static void add_zeros(struct tally_header *h, struct flight *f)
{
	memset(tally_payload(h), 0, f->sum_blocks * (size_t)TALLY_BLOCK_BYTES);
	h->blocks = f->sum_blocks;
	f->length = tally_header_bytes(h->flags) + f->sum_blocks * TALLY_BLOCK_BYTES;
}

static bool is_older(const struct flight *a, const struct flight *b)
{
	return is_before(a->fate.seq, b->fate.seq);
}

/* How far back a chunk is that is to be asked about now; 0: there is none. */
static uint16_t ask(struct window *w, uint32_t seq, uint64_t now_ns)
{
	for (uint32_t i = 0; i < w->suspects; i++) {
		struct flight *f = flight_of(w, w->suspect[i]);

		if (f->state != FLIGHT_FLYING || f->fate.seq != w->suspect[i] ||
		    seq - f->fate.seq - 1 >= UINT16_MAX ||
		    !recovery_asks(&w->recovery, &f->fate, now_ns))
			continue;
		f->fate.asked_ns = now_ns;
		return seq - f->fate.seq;
	}
	return 0;
}

static void count_sending(struct window *w, struct flight *f, uint64_t now_ns)
{
	const uint32_t seq = f->fate.seq;

	if (f->fate.tries) {
		w->stats.retransmitted++;
		if (f->fate.news == RECOVERY_COPY_LOST)
			congestion_lost(&w->congestion, f->fate.sent_ns, now_ns);
		return;
	}
	congestion_sent(&w->congestion, w->flying++, now_ns);
	w->next_probe = seq;
	w->newest = w->began && is_before(seq, w->newest) ? w->newest : seq;
	w->began = true;
}

static struct datagram flight_send(struct window *w, struct flight *f, uint64_t now_ns)
{
	struct tally_header *h = frame_of(w, f->fate.seq);
	struct datagram d = { .bytes = h, .fresh = !f->fate.tries, .in_run = &f->in_run };

	count_sending(w, f, now_ns);
	if (!h->blocks && (w->zeros || !d.fresh))
		add_zeros(h, f);
	if (recovery_flushes(&f->fate))
		h->flags |= TALLY_FLUSH;
	if (d.fresh && w->owes_mark) { /* what goes again may have a result already, without */
		h->flags |= TALLY_MARKED;
		w->owes_mark = false;
	}
	w->stats.flushed += !!(h->flags & TALLY_FLUSH);
	h->about = tally_le16(ask(w, f->fate.seq, now_ns));
	h->tag = tally_le64(tag_of(w, h));
	f->state = FLIGHT_FLYING;
	recovery_sent(&w->recovery, &f->fate, now_ns);
	d.length = f->length;
	return d;
}

/* The root lost its memory: the result, or our part again where we have no result. */
static struct datagram flight_answer(struct window *w, struct flight *f, uint64_t now_ns)
{
	struct tally_header *h = kept_of(w, f->fate.seq);

	if (h->kind == TALLY_CONTRIBUTION) {
		h->flags |= TALLY_FLUSH;
		if (!h->blocks)
			add_zeros(h, f);
	}
	h->tag = tally_le64(tag_of(w, h));
	f->answer = false;
	f->fate.sent_ns = now_ns;
	w->stats.repaired++;
	return (struct datagram){ .bytes = h, .length = f->length };
}

/* Looks at all flights once: what is to be sent again, and when to look next. */
static size_t scan(struct window *w, uint64_t now_ns, struct datagram *ret, size_t max)
{
	struct flight *oldest = NULL, *newest = NULL, *probe;
	size_t n = 0;

	w->wakeup_ns = UINT64_MAX;
	w->suspects = 0;
	for (uint32_t i = 0; i <= w->mask; i++) {
		struct flight *f = &w->flight[i];
		uint64_t due;

		if (f->state == FLIGHT_HELD && f->answer && n < max)
			ret[n++] = flight_answer(w, f, now_ns);
		if (f->state != FLIGHT_FLYING)
			continue;
		if (!newest || is_older(newest, f))
			newest = f;
		if (!oldest || is_older(f, oldest))
			oldest = f;
		due = due_of(w, f, now_ns);
		if (w->suspects < SUSPECTS && recovery_asks(&w->recovery, &f->fate, now_ns))
			w->suspect[w->suspects++] = f->fate.seq;
		if (now_ns >= due && n < max)
			ret[n++] = flight_send(w, f, now_ns);
		else
			wake_at(w, due);
	}
	if (newest && n < max) {
		probe = w->recovery.silences ? oldest : newest;
		w->next_probe = probe->fate.seq;
		if (now_ns >= recovery_silence(&w->recovery, &probe->fate, pending(w))) {
			recovery_probed(&w->recovery, &probe->fate, w->flying, now_ns);
			probe->probe = true;
			ret[n++] = flight_send(w, probe, now_ns);
		}
		wake_at(w, recovery_silence(&w->recovery, &probe->fate, pending(w)));
	}
	if (n == max)
		w->wakeup_ns = now_ns; /* there may be more */
	return n;
}

/*
 * May this chunk, the oldest that waits, leave? Behind one that has left always: a rank that lacked
 * a result has it later than others, and ranks that had filled their windows with different chunks
 * would wait for each other for good.
 */
static bool may_leave(struct window *w, uint32_t seq, uint64_t now_ns)
{
	return (w->began && is_before(seq, w->newest)) ||
	       congestion_admits(&w->congestion, w->flying, now_ns);
}

size_t window_output(struct window *w, uint64_t now_ns, struct datagram *ret, size_t max)
{
	size_t n = 0;

	w->leave_ns = UINT64_MAX;
	while (w->taken != w->posted && n < max) {
		struct flight *f = flight_of(w, w->queue[w->taken & w->mask]);

		if (!may_leave(w, f->fate.seq, now_ns)) {
			w->leave_ns = congestion_wakeup(&w->congestion, w->flying);
			break;
		}
		w->taken++;
		ret[n++] = flight_send(w, f, now_ns);
		wake_at(w, recovery_silence(&w->recovery, &f->fate, 1));
	}
	if (w->taken == w->posted)
		congestion_rest(&w->congestion);
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
			f->fate.tries = 0;
			w->flying--;
			w->taken--;
			congestion_unsent(&w->congestion);
			continue;
		}
		w->wakeup_ns = 0;
		if (f->state == FLIGHT_HELD) {
			f->answer = true;
			w->stats.repaired--;
			continue;
		}
		f->fate.lost = true;
		f->fate.tries--;
		w->stats.retransmitted--;
		w->stats.flushed -= !!(h->flags & TALLY_FLUSH);
	}
}

void window_drop(struct window *w)
{
	w->taken = w->posted;
	w->flying = 0;
	for (uint32_t i = 0; i <= w->mask; i++)
		if (w->flight[i].state != FLIGHT_HELD)
			w->flight[i].state = FLIGHT_NONE;
	w->wakeup_ns = 0; /* repairs may have been asked for */
}

uint64_t window_wakeup(const struct window *w)
{
	return w->wakeup_ns < w->leave_ns ? w->wakeup_ns : w->leave_ns;
}

uint64_t window_rtt(const struct window *w) { return w->recovery.srtt_ns; }

uint64_t window_rto(const struct window *w) { return w->recovery.rto_ns; }

uint32_t window_room(const struct window *w) { return congestion_window(&w->congestion); }

const struct tally_stats *window_stats(const struct window *w) { return &w->stats; }

const struct window_runs *window_runs(const struct window *w) { return &w->runs; }

const struct window_news *window_news(const struct window *w) { return &w->news; }
