// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * From one run to another one, at a chunk that all ranks agree in: docs/decisions/0030.
 *
 * In the next run chunks begin anew. The first window has an allreduce by which all know that all
 * are there; until then nobody waits for anything. The second one has the agreement, and behind it
 * comes the first chunk that belongs there. So no slot of these is needed again before every rank
 * knows what they said.
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

/* --- held chunks ----------------------------------------------------------------------------- */

static uint8_t *held_byte(struct engine *e, uint32_t seq)
{
	return &e->move.held[(seq & (2u * e->member.window - 1)) / 8];
}

static void hold(struct engine *e, uint32_t seq) { *held_byte(e, seq) |= 1u << seq % 8; }

static bool unhold(struct engine *e, uint32_t seq)
{
	const bool was = *held_byte(e, seq) >> seq % 8 & 1;

	*held_byte(e, seq) &= (uint8_t)~(1u << seq % 8);
	return was;
}

/* All that waited; one of them may be the last of its round, so nobody looks at them afterwards. */
static void go_on(struct engine *e)
{
	for (uint32_t i = 0; e->first && i < 2u * e->member.window; i++)
		if (unhold(e, e->move.own + i))
			engine_send_entry(e, e->move.own + i - e->base);
}

/* --- which window ---------------------------------------------------------------------------- */

/* What the first chunk of the next run is called there. */
static uint32_t first_name(const struct engine *e) { return 2u * e->member.window; }

struct window *engine_window_of(struct engine *e, uint32_t seq, uint32_t *ret_seq)
{
	struct move *m = &e->move;

	if (m->next && m->is_ready && !m->agreed && is_behind(seq, m->own)) {
		hold(e, seq);
		return NULL;
	}
	if (!m->next || !m->agreed || !is_behind(seq, m->from)) {
		*ret_seq = seq - e->shift;
		return e->window;
	}
	*ret_seq = seq - m->from + first_name(e);
	m->passed += *ret_seq - first_name(e) >= e->member.window &&
		     *ret_seq - first_name(e) < 2u * e->member.window;
	return m->next;
}

/* --- the agreement --------------------------------------------------------------------------- */

static void call_end(struct move *m)
{
	if (m->has_call)
		call_done(&m->agreement);
	m->has_call = false;
}

/* The furthest that a rank may have gone: nobody has sent a chunk from there on. */
static void conclude(struct engine *e)
{
	struct move *m = &e->move;

	m->from = m->own;
	for (unsigned int rank = 0; rank < e->member.workers; rank++)
		if (is_behind((uint32_t)m->limit[rank], m->from))
			m->from = (uint32_t)m->limit[rank];
	m->agreed = true;
	call_end(m);
	go_on(e);
}

/* The first window has the word that a rank is there, and the second one the agreement. */
static uint32_t call_name(const struct engine *e)
{
	return e->move.is_ready ? e->member.window : 0;
}

static int call_begin(struct engine *e)
{
	struct move *m = &e->move;
	const struct call_options options = { .verb = CALL_OPENING,
					      .dtype = TALLY_INT64,
					      .op = TALLY_SUM,
					      .count = e->member.workers,
					      .in = m->limit,
					      .out = m->limit };
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

/* All are there: now each says how far it goes. No memory: nobody does, and calls time out. */
static void pledge(struct engine *e)
{
	struct move *m = &e->move;
	const uint32_t at = e->first ? e->composed : e->base;

	call_end(m);
	memset(m->limit, 0, e->member.workers * sizeof(*m->limit));
	m->is_ready = true;
	m->own = at + PLEDGE_WINDOWS * e->member.window;
	m->limit[e->member.rank] = m->own;
	if (call_begin(e) == 0)
		call_send(e);
}

static void move_take(struct engine *e, uint32_t seq, const void *bytes, uint64_t now_ns)
{
	struct move *m = &e->move;

	if (is_behind(seq, first_name(e))) {
		engine_take(e, seq - first_name(e) + m->from, bytes, now_ns);
		return;
	}
	if (!m->has_call || seq - call_name(e) >= m->agreement.entries)
		return;
	call_take(&m->agreement, seq - call_name(e), bytes);
	if (m->agreement.taken < m->agreement.entries)
		return;
	if (m->is_ready)
		conclude(e);
	else
		pledge(e);
}

static bool is_alike(const struct engine *e, const struct window_options *o)
{
	const struct window_options *now = &e->options.window;

	return o->rank == now->rank && o->workers == now->workers && o->window == now->window &&
	       o->payload_bytes == now->payload_bytes && o->sealed == now->sealed && o->nonce;
}

int engine_move(struct engine *e, const struct window_options *o)
{
	struct move *m = &e->move;
	int r;

	if (m->next)
		return error_set(-EBUSY, "the run is on its way to another root already");
	if (e->failed)
		return error_set(-ECONNABORTED, "the run has failed");
	if (!is_alike(e, o))
		return error_set(-EINVAL, "the run there has another window, payload or rank");
	*m = (struct move){ .limit = calloc(e->member.workers, sizeof(*m->limit)) };
	if (!m->limit)
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
 * Each chunk of the second window there was sent when that of the first one had its result, to
 * which all ranks had contributed; so they have all results of the first run.
 */
bool engine_has_moved(const struct engine *e)
{
	return e->move.next && e->move.agreed && e->move.passed == e->member.window;
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
	free(m->limit);
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
}
