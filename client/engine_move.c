// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From one run to another one, at a chunk that all ranks agree in: docs/decisions/0030; and where
 * the first one is broken, from what some rank lacks: 0032.
 *
 * In the next run chunks begin anew. The first window has an allreduce by which all know that all
 * are there; until then nobody waits for anything. The second one has the agreement, and behind it
 * comes the first chunk that belongs there; or, if the first run is broken, what each rank lacks,
 * and the chunks behind that. So no slot of these is needed again before every rank knows what they
 * said.
 */
#include "engine_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "shape.h"

enum {
	PLEDGE_WINDOWS = 4, /* so far a rank may go on meanwhile: some round trips */
};

static bool is_behind(uint32_t seq, uint32_t mark) { return (int32_t)(seq - mark) >= 0; }

/* --- which window ---------------------------------------------------------------------------- */

/* What the first chunk of the next run is called there, and this one. */
static uint32_t first_name(const struct engine *e)
{
	return (e->move.stage == MOVE_RESUMING ? 3u : 2u) * e->member.window;
}

static uint32_t name_of(const struct engine *e, uint32_t seq)
{
	return seq - e->move.from + first_name(e);
}

/* A slot is not used again before all ranks know its result, whatever was known in the first run.
 */
static bool is_early(struct engine *e, uint32_t seq)
{
	return seq != engine_stream(e, seq)->from &&
	       !window_has_result(e->move.next, name_of(e, seq) - e->member.window);
}

struct window *engine_window_of(struct engine *e, uint32_t seq, uint32_t *ret_seq)
{
	struct move *m = &e->move;
	const bool waits = m->next && m->stage != MOVE_ARRIVING && !m->agreed;

	if ((waits && is_behind(seq, m->own)) || (m->resumes && is_early(e, seq))) {
		engine_stream(e, seq)->is_held = true;
		return NULL;
	}
	if (!m->next || !m->agreed || !is_behind(seq, m->from)) {
		*ret_seq = seq - e->shift;
		return e->window;
	}
	*ret_seq = name_of(e, seq);
	m->passed += *ret_seq - first_name(e) >= e->member.window &&
		     *ret_seq - first_name(e) < 2u * e->member.window;
	return m->next;
}

/* --- chunks that wait ------------------------------------------------------------------------ */

/* One of them may be the last of its round: then nobody waits any more. */
static void send_held(struct engine *e, struct stream *s)
{
	if (!s->is_held || !e->first)
		return;
	s->is_held = false;
	engine_send_entry(e, s->next - e->base);
}

static void go_on(struct engine *e)
{
	for (uint32_t i = 0; i < e->member.window; i++)
		send_held(e, &e->stream[i]);
}

/* The first run's chunks are the same in the next one; what comes behind them may be held. */
static void send_again(struct engine *e, uint32_t seq)
{
	struct stream *s = engine_stream(e, seq);

	if (seq != s->again)
		window_repost(e->move.next, name_of(e, seq), e->window, seq - e->shift);
	else
		send_held(e, s);
}

/* --- what ranks say -------------------------------------------------------------------------- */

enum {
	CLASSES = 4,
	CLASS_BITS = 16, /* as many ranks fit in there */
};

/* Agreeing: the chunk from which on this rank waits, and whether the first run is broken. */
static uint64_t word_make(uint32_t waits, bool is_broken)
{
	return waits | (uint64_t)is_broken << 32;
}

static bool word_is_broken(uint64_t word) { return word >> 32; }

/*
 * Resuming, of each stream: how many ranks lack which chunk, by its place in the stream mod 4. They
 * are one apart at most: a rank that lacks a chunk has not sent the next one, so no rank has the
 * result of that.
 */
static unsigned int class_of(const struct engine *e, uint32_t seq)
{
	return seq / e->member.window % CLASSES;
}

static uint64_t class_word(unsigned int class) { return 1ull << class * CLASS_BITS; }

static unsigned int class_count(uint64_t word, unsigned int class)
{
	return word >> class % CLASSES * CLASS_BITS & ((1u << CLASS_BITS) - 1);
}

static uint32_t first_lacked(struct engine *e, const struct stream *s)
{
	const uint32_t last = s->next - e->member.window;

	return window_lacks_result(e->window, last - e->shift) ? last : s->next;
}

static void call_end(struct move *m)
{
	if (m->has_call)
		call_done(&m->agreement);
	m->has_call = false;
}

/* Behind the last chunk that was composed. */
static uint32_t composed_of(const struct engine *e) { return e->first ? e->composed : e->base; }

/* Each stage has a window of chunks. */
static uint32_t call_name(const struct engine *e) { return e->move.stage * e->member.window; }

static uint32_t words_of(const struct engine *e)
{
	return e->move.stage == MOVE_RESUMING ? e->member.window : e->member.workers;
}

static int call_begin(struct engine *e)
{
	struct move *m = &e->move;
	const struct call_options options = { .verb = CALL_OPENING,
					      .dtype = TALLY_INT64,
					      .op = TALLY_SUM,
					      .count = words_of(e),
					      .in = m->word,
					      .out = m->word };
	int r = call_init(&m->agreement, &e->member, &options, &e->guesses);

	if (r < 0)
		return r;
	m->agreement.shape = shape_of(&e->member, &options);
	m->has_call = true;
	return m->agreement.entries > e->member.window ? -EINVAL : 0;
}

static void call_send(struct engine *e)
{
	struct move *m = &e->move;

	for (uint32_t i = 0; i < m->agreement.entries; i++) {
		const uint32_t name = call_name(e) + i;
		struct tally_header *h = window_compose(m->next, name);
		uint64_t vote = 0;
		const uint8_t blocks = call_fill(&m->agreement, i, h, &vote);

		window_post(m->next, name, call_place(&m->agreement, i), vote, blocks);
	}
}

/* The words are there. No memory: nobody goes on, and calls time out. */
static void say(struct engine *e)
{
	call_end(&e->move);
	if (call_begin(e) == 0)
		call_send(e);
}

/* What nobody listens to is sent no more, and what comes from there changes nothing any more. */
static void freeze(struct engine *e)
{
	e->move.own = composed_of(e);
	window_drop(e->window);
}

/* All are there: now each says how far it goes. */
static void pledge(struct engine *e)
{
	struct move *m = &e->move;

	m->own = composed_of(e) + PLEDGE_WINDOWS * e->member.window;
	m->stage = MOVE_AGREEING;
	if (m->is_broken)
		freeze(e);
	memset(m->word, 0, e->member.workers * sizeof(*m->word));
	m->word[e->member.rank] = word_make(m->own, m->is_broken);
	say(e);
}

/* The first run is broken: now each says what it lacks. */
static void take_stock(struct engine *e)
{
	struct move *m = &e->move;

	m->stage = MOVE_RESUMING;
	freeze(e);
	for (uint32_t i = 0; i < e->member.window; i++)
		m->word[i] = class_word(class_of(e, first_lacked(e, &e->stream[i])));
	say(e);
}

/* The furthest that a rank may have gone: nobody has sent a chunk from there on. */
static void switch_over(struct engine *e)
{
	struct move *m = &e->move;

	m->from = m->own;
	for (unsigned int rank = 0; rank < e->member.workers; rank++)
		if (is_behind((uint32_t)m->word[rank], m->from))
			m->from = (uint32_t)m->word[rank];
	m->agreed = true;
	go_on(e);
}

/* False: ranks have said what cannot be. */
static bool stream_resume(struct engine *e, struct stream *s, uint64_t word)
{
	const uint32_t own = first_lacked(e, s), class = class_of(e, own);
	const unsigned int same = class_count(word, class);
	const unsigned int behind = class_count(word, class + CLASSES - 1);
	const unsigned int ahead = class_count(word, class + 1);

	s->again = s->next;
	s->from = behind ? own - e->member.window : own;
	return same + behind + ahead == e->member.workers && !(behind && ahead);
}

/* What some rank lacks was composed two chunks ago at most in its stream, and is kept. */
static void resume(struct engine *e)
{
	struct move *m = &e->move;
	bool is_right = e->options.window.keeps;

	for (uint32_t i = 0; is_right && i < e->member.window; i++) {
		struct stream *s = &e->stream[i];

		is_right = stream_resume(e, s, m->word[i]);
		m->lacks += (s->again - s->from) / e->member.window;
		if (i == 0 || !is_behind(s->from, m->from))
			m->from = s->from;
	}
	if (!is_right) {
		engine_fail(e, -EPROTO,
			    "the ranks of this job cannot go on at another root: they "
			    "are not of one kind, or not of one job");
		return;
	}
	m->agreed = m->resumes = e->has_resumed = true;
	for (uint32_t i = 0; i < e->member.window; i++)
		send_again(e, e->stream[i].from);
}

static bool is_broken_for_one(const struct engine *e)
{
	for (unsigned int rank = 0; rank < e->member.workers; rank++)
		if (word_is_broken(e->move.word[rank]))
			return true;
	return false;
}

/* All ranks have said their word of this stage, and come to the same. */
static void conclude(struct engine *e)
{
	struct move *m = &e->move;

	if (m->stage == MOVE_ARRIVING) {
		pledge(e);
	} else if (m->stage == MOVE_AGREEING && is_broken_for_one(e)) {
		take_stock(e);
	} else {
		call_end(m);
		if (m->stage == MOVE_AGREEING)
			switch_over(e);
		else
			resume(e);
	}
}

/* Of a chunk that was composed for the first run, too, the result may be known from there. */
static void again_take(struct engine *e, uint32_t seq, const void *bytes, uint64_t now_ns)
{
	const bool is_again = !is_behind(seq, engine_stream(e, seq)->again);
	const bool is_known = is_again && window_has_result(e->window, seq - e->shift);

	e->move.lacks -= is_again;
	e->progress_ns = now_ns;
	if (is_again)
		send_again(e, seq + e->member.window);
	if (!is_known)
		engine_take(e, seq, bytes, now_ns);
}

static void move_take(struct engine *e, uint32_t name, const void *bytes, uint64_t now_ns)
{
	struct move *m = &e->move;

	if (is_behind(name, first_name(e))) {
		const uint32_t seq = name - first_name(e) + m->from;

		if (m->resumes)
			again_take(e, seq, bytes, now_ns);
		else
			engine_take(e, seq, bytes, now_ns);
		return;
	}
	if (!m->has_call || name - call_name(e) >= m->agreement.entries)
		return;
	call_take(&m->agreement, name - call_name(e), bytes);
	if (m->agreement.taken < m->agreement.entries)
		return;
	conclude(e);
}

static bool is_alike(const struct engine *e, const struct window_options *o)
{
	const struct window_options *now = &e->options.window;

	return o->rank == now->rank && o->workers == now->workers && o->window == now->window &&
	       o->payload_bytes == now->payload_bytes && o->sealed == now->sealed &&
	       o->keeps == now->keeps && o->nonce;
}

static int begin(struct engine *e, const struct window_options *o, bool is_broken)
{
	struct move *m = &e->move;
	int r;

	if (m->next)
		return error_set(-EBUSY, "the run is on its way to another root already");
	if (e->failed)
		return error_set(-ECONNABORTED, "the run has failed");
	if (!is_alike(e, o))
		return error_set(-EINVAL, "the run there has another window, payload or rank");
	*m = (struct move){ .word = calloc(e->member.workers + e->member.window, sizeof(*m->word)),
			    .is_broken = is_broken };
	if (!m->word)
		return error_set(-ENOMEM, "out of memory");
	r = window_new(o, &m->next);
	if (r == 0)
		r = call_begin(e);
	if (r < 0) {
		engine_move_free(e);
		return error_set(r, "the ranks cannot agree in so small a window, or memory");
	}
	call_send(e);
	return 0;
}

int engine_move(struct engine *e, const struct window_options *o) { return begin(e, o, false); }
int engine_rescue(struct engine *e, const struct window_options *o)
{
	if (!e->options.window.keeps)
		return error_set(-EINVAL, "this run keeps nothing to go on with elsewhere");
	return begin(e, o, true);
}

/* --- datagrams of the next run ------------------------------------------------------------- */

size_t engine_next_output(struct engine *e, uint64_t now_ns, struct datagram *ret, size_t max)
{
	size_t n;

	engine_look(e, now_ns);
	n = e->move.next ? window_output(e->move.next, now_ns, ret, max) : 0;
	for (size_t i = 0; i < n; i++)
		e->sent_bytes += ret[i].length;
	return n;
}

void engine_next_unsent(struct engine *e, const struct datagram *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		e->sent_bytes -= d[i].length;
	window_unsent(e->move.next, d, n);
}

void engine_next_input(struct engine *e, const void *bytes, size_t length, uint64_t now_ns)
{
	uint32_t seq;

	engine_look(e, now_ns);
	if (!e->move.next)
		return;
	if (window_input(e->move.next, bytes, length, now_ns, &seq))
		move_take(e, seq, bytes, now_ns);
	else
		engine_check_news(e, e->move.next);
}

/* --- the end --------------------------------------------------------------------------------- */

/*
 * A broken run is needed for nothing as soon as all that it had is done again. Otherwise:
 * each chunk of the second window there was sent when that of the first one had its result, to
 * which all ranks had contributed; so they have all results of the first run.
 */
bool engine_has_moved(const struct engine *e)
{
	const struct move *m = &e->move;

	if (!m->next || !m->agreed)
		return false;
	return m->resumes ? !m->lacks : m->passed == e->member.window;
}

bool engine_has_agreed(const struct engine *e) { return e->move.next && e->move.agreed; }

bool engine_move_cancel(struct engine *e)
{
	if (!e->move.next || e->move.stage != MOVE_ARRIVING)
		return false;
	engine_stats_add(&e->past, window_stats(e->move.next));
	engine_move_free(e);
	return true;
}

void engine_move_end(struct engine *e)
{
	struct move *m = &e->move;

	engine_stats_add(&e->past, window_stats(e->window));
	window_free(e->window);
	e->window = m->next;
	e->shift = m->from - first_name(e);
	m->next = NULL;
	engine_move_free(e);
}

void engine_move_free(struct engine *e)
{
	struct move *m = &e->move;

	call_end(m);
	window_free(m->next);
	free(m->word);
	*m = (struct move){ 0 };
}

/* --- both windows ---------------------------------------------------------------------------- */

uint64_t engine_window_wakeup(const struct engine *e)
{
	const uint64_t now = window_wakeup(e->window);
	const uint64_t next = e->move.next ? window_wakeup(e->move.next) : UINT64_MAX;

	return now < next ? now : next;
}

void engine_stats_add(struct tally_stats *to, const struct tally_stats *from)
{
	to->retransmitted += from->retransmitted;
	to->flushed += from->flushed;
	to->repaired += from->repaired;
	to->corrupt += from->corrupt;
	to->ignored += from->ignored;
	to->chunks += from->chunks;
	to->node_reloads += from->node_reloads;
	to->spilled += from->spilled;
	to->marked += from->marked;
	to->cuts += from->cuts;
}
