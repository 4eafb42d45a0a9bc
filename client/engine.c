// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "error.h"
#include "engine_private.h"
#include "explain.h"
#include "seal.h"
#include "shape.h"

#define EARLIER "an earlier call failed: "
#define TOO_LONG "the call has 2^31 chunks, or 2^37 elements, or more: split it"
#define NO_MEMORY "out of memory"

/*
 * Ranks that have no nonce from an agent make one out of a random number of each, in a call before
 * all others; so do ranks of a job with several roots, which must agree in these. A rank that gets
 * somebody else's number in place of its own has got the sum of an earlier run.
 */
static int opening_prepare(struct engine *e)
{
	e->opening = calloc(1, sizeof(*e->opening));
	e->random = calloc(e->member.workers + 2, sizeof(*e->random));
	if (!e->opening || !e->random)
		return -ENOMEM;
	e->random[e->member.rank] = e->options.random;
	e->random[e->member.workers] = e->options.window.nonce;
	e->random[e->member.workers + 1] = e->member.agreement;
	*e->opening = (struct engine_call){
		.engine = e,
		.options = { .verb = CALL_OPENING,
			     .dtype = TALLY_INT64,
			     .op = TALLY_SUM,
			     .count = e->member.workers,
			     .in = e->random,
			     .out = e->random },
		.state = STATE_QUEUED,
	};
	return 0;
}

static int streams_new(struct engine *e)
{
	e->stream = calloc(e->member.window, sizeof(*e->stream));
	if (!e->stream)
		return -ENOMEM;
	for (uint32_t i = 0; i < e->member.window; i++)
		e->stream[i].next = i;
	return 0;
}

int engine_new(const struct engine_options *options, struct engine **ret)
{
	struct engine *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	e->options = *options;
	e->member = (struct call_member){
		.rank = options->window.rank,
		.workers = options->window.workers,
		.window = options->window.window,
		.payload_bytes = options->window.payload_bytes,
		.sealed = options->window.sealed,
		.agreement = options->agreement,
	};
	guesses_init(&e->guesses);
	for (int i = 0; i < ENGINE_CALLS_MAX; i++)
		e->call[i].engine = e;
	r = streams_new(e);
	if (r == 0)
		r = window_new(&options->window, &e->window);
	if (r == 0 && (!options->window.nonce || options->agreement))
		r = opening_prepare(e);
	if (r < 0) {
		engine_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void engine_free(struct engine *e)
{
	if (!e)
		return;
	if (e->first)
		call_done(&e->first->call);
	engine_move_free(e);
	window_free(e->window);
	free(e->stream);
	free(e->opening);
	free(e->random);
	free(e);
}

void engine_send_entry(struct engine *e, uint32_t entry)
{
	uint32_t seq = e->base + entry, name;
	struct window *w = engine_window_of(e, seq, &name);
	struct tally_header *h;
	uint64_t vote = 0;
	uint8_t blocks;

	if (!w)
		return;
	h = window_compose(w, name);
	blocks = call_fill(&e->first->call, entry, h, &vote);
	window_post(w, name, call_place(&e->first->call, entry), vote, blocks);
	engine_stream(e, seq)->next = seq + e->member.window;
	if ((int32_t)(seq + 1 - e->composed) > 0)
		e->composed = seq + 1;
}

static void begin_round(struct engine *e)
{
	uint32_t entries = e->first->call.entries;

	for (uint32_t i = 0; i < entries && i < e->member.window; i++)
		engine_send_entry(e, i);
}

/* The totals that a call's share is the difference of. */
static struct tally_call_info totals(const struct engine *e)
{
	const struct tally_stats s = engine_stats(e);

	return (struct tally_call_info){
		.chunks = s.chunks,
		.retransmitted = s.retransmitted,
		.sent_bytes = e->sent_bytes,
		.spilled = s.spilled,
	};
}

static void account(struct engine *e, struct engine_call *c)
{
	struct tally_call_info now = totals(e);

	c->info.duration_ns = e->now_ns - c->started_ns;
	if (c->state != STATE_RUNNING) {
		c->info.queued_ns = c->info.duration_ns;
		return;
	}
	c->info.chunks = now.chunks - c->info.chunks;
	c->info.retransmitted = now.retransmitted - c->info.retransmitted;
	c->info.sent_bytes = now.sent_bytes - c->info.sent_bytes;
	c->info.redone = c->call.redone;
	c->info.spilled = now.spilled - c->info.spilled;
	e->busy_ns += c->info.duration_ns - c->info.queued_ns;
}

/* The first call of the queue is over; the next one is now the first. */
static void end_call(struct engine *e, int result)
{
	struct engine_call *over = e->first;

	account(e, over);
	e->ended += over != e->opening;
	e->redone += over->call.redone;
	call_done(&over->call);
	over->state = STATE_OVER;
	over->result = result;
	e->first = over->next;
	if (!e->first)
		e->last = NULL;
}

static void drop(struct engine *e)
{
	window_drop(e->window);
	if (e->move.next)
		window_drop(e->move.next);
}

/* Sequence numbers and slots are out of step with the other ranks: nothing can follow. */
static void fail_all(struct engine *e, int result)
{
	e->failed = true;
	e->result = result;
	snprintf(e->why, sizeof(e->why), "%s", e->first ? e->first->why : e->told);
	drop(e);
	while (e->first) {
		struct engine_call *next = e->first->next;
		bool is_opening = e->first == e->opening;

		if (next)
			snprintf(next->why, sizeof(next->why), "%s%.*s",
				 result == -ECONNABORTED || is_opening ? "" : EARLIER,
				 (int)(sizeof(next->why) - sizeof(EARLIER)), e->first->why);
		end_call(e, result);
		result = is_opening ? result : -ECONNABORTED;
	}
}

static void begin_call(struct engine *e)
{
	while (e->first) {
		struct engine_call *c = e->first;
		int r = call_init(&c->call, &e->member, &c->options, &e->guesses);

		if (r < 0) {
			snprintf(c->why, sizeof(c->why), "%s", r == -EFBIG ? TOO_LONG : NO_MEMORY);
			fail_all(e, r);
			return;
		}
		c->call.shape = shape_of(&e->member, &c->options);
		window_priority_set(e->window, c->options.priority);
		if (e->move.next)
			window_priority_set(e->move.next, c->options.priority);
		c->state = STATE_RUNNING;
		c->info = totals(e);
		c->info.queued_ns = e->now_ns - c->started_ns;
		e->progress_ns = 0;
		if (c->call.entries) {
			begin_round(e);
			return;
		}
		end_call(e, 0);
	}
}

static struct situation situation_of(const struct engine *e)
{
	return (struct situation){
		.job = &e->options.window,
		.service = e->options.service,
		.shape = e->first->call.shape,
		.progress_ns = e->progress_ns,
		.waited_ns = e->now_ns - e->progress_ns,
		.unreachable = e->unreachable,
		.mtu = e->mtu,
	};
}

/* All ranks know the numbers of all now. False: this one's is another one, and the run has failed.
 */
static bool opening_conclude(struct engine *e)
{
	struct situation s = situation_of(e);
	const struct tally_key *secret = e->member.sealed ? &e->options.window.secret : NULL;
	uint32_t numbers = e->member.workers + (e->member.agreement ? 2 : 0);

	if (e->random[e->member.rank] != e->options.random) {
		fail_all(e, explain_used_epoch(&s, e->member.rank, e->first->why,
					       sizeof(e->first->why)));
		return false;
	}
	if (!e->has_resumed) /* the run there has a nonce of its own */
		window_begin_run(e->window, seal_nonce(secret, e->random, numbers));
	return true;
}

static void end_round(struct engine *e)
{
	int r;

	e->base += e->first->call.entries;
	r = call_next_round(&e->first->call);
	if (r == 0 && e->first == e->opening && !opening_conclude(e))
		return;
	if (r > 0) {
		begin_round(e);
	} else if (r < 0) {
		snprintf(e->first->why, sizeof(e->first->why), NO_MEMORY);
		fail_all(e, r);
	} else {
		if (e->first->call.misfit)
			call_print_misfit(&e->first->call, e->first->why, sizeof(e->first->why));
		end_call(e, e->first->call.misfit ? -ERANGE : 0);
		begin_call(e);
	}
}

/* A call of nothing needs no other rank; a part of a call may be nothing. */
static bool opening_is_due(const struct engine *e, const struct call_options *options)
{
	return e->opening && e->opening->state == STATE_QUEUED && !e->first &&
	       (options->count || options->whole || options->verb == CALL_BARRIER);
}

static void enqueue(struct engine *e, struct engine_call *c)
{
	if (e->last)
		e->last->next = c;
	else
		e->first = c;
	e->last = c;
}

int engine_start(struct engine *e, const struct call_options *options, uint64_t now_ns,
		 struct engine_call **ret)
{
	struct engine_call *c = NULL;
	bool idle;

	if (*e->told)
		return error_set(-ECONNABORTED, "%s: close the job", e->told);
	if (e->failed)
		return error_set(-ECONNABORTED,
				 e->aborted ? "the job was aborted: close it"
					    : "an earlier call of this job failed: close it");
	for (int i = 0; i < ENGINE_CALLS_MAX && !c; i++)
		c = e->call[i].state == STATE_FREE ? &e->call[i] : NULL;
	if (!c)
		return error_set(-EBUSY, "%d calls are started and not waited for: wait for some",
				 ENGINE_CALLS_MAX);

	engine_look(e, now_ns);
	*c = (struct engine_call){
		.engine = e,
		.options = *options,
		.state = STATE_QUEUED,
		.started_ns = now_ns,
	};
	idle = !e->first;
	if (opening_is_due(e, options))
		enqueue(e, e->opening);
	enqueue(e, c);
	if (idle)
		begin_call(e);
	*ret = c;
	return 0;
}

bool engine_is_over(const struct engine_call *call) { return call->state == STATE_OVER; }

bool engine_is_idle(const struct engine *e) { return !e->first; }

uint64_t engine_ended(const struct engine *e) { return e->ended; }

uint64_t engine_busy_ns(const struct engine *e) { return e->busy_ns; }

bool engine_has_misfit(const struct engine_call *call)
{
	return call->result == -ERANGE && call->call.misfit_at != SIZE_MAX;
}

int engine_collect(struct engine_call *call, struct tally_call_info *ret)
{
	assert(call->state == STATE_OVER);
	call->state = STATE_FREE;
	if (ret)
		*ret = call->info;
	return call->result < 0 ? error_set(call->result, "%s", call->why) : 0;
}

void engine_abort(struct engine *e)
{
	e->failed = e->aborted = true;
	drop(e);
	while (e->first) {
		snprintf(e->first->why, sizeof(e->first->why), "the job was aborted");
		end_call(e, -ECANCELED);
	}
}

void engine_fail(struct engine *e, int result, const char *why)
{
	if (e->failed)
		return;
	snprintf(e->told, sizeof(e->told), "%s", why);
	if (e->first)
		snprintf(e->first->why, sizeof(e->first->why), "%s", why);
	fail_all(e, result);
}

int engine_failure(const struct engine *e, const char **ret)
{
	*ret = e->why;
	return e->result;
}

/* Has the network said something that ends the run? */
void engine_check_news(struct engine *e, const struct window *w)
{
	struct situation s;
	int r;

	if (!e->first)
		return;
	s = situation_of(e);
	r = explain_news(window_news(w), &s, e->first->why, sizeof(e->first->why));
	if (r < 0)
		fail_all(e, r);
}

static void check_time(struct engine *e, uint64_t now_ns)
{
	struct situation s;

	if (!e->first)
		return;
	if (!e->progress_ns)
		e->progress_ns = now_ns;
	if (now_ns - e->progress_ns < engine_timeout(e))
		return;
	s = situation_of(e);
	explain_timeout(window_news(e->window), &s, e->first->why, sizeof(e->first->why));
	fail_all(e, -ETIMEDOUT);
}

size_t engine_output(struct engine *e, uint64_t now_ns, struct datagram *ret, size_t max)
{
	size_t n;

	engine_look(e, now_ns);
	check_time(e, now_ns);
	n = window_output(e->window, now_ns, ret, max);
	for (size_t i = 0; i < n; i++)
		e->sent_bytes += ret[i].length;
	return n;
}

void engine_unsent(struct engine *e, const struct datagram *d, size_t n)
{
	for (size_t i = 0; i < n; i++)
		e->sent_bytes -= d[i].length;
	window_unsent(e->window, d, n);
}

void engine_take(struct engine *e, uint32_t seq, const void *bytes, uint64_t now_ns)
{
	const uint32_t entry = seq - e->base;
	struct call *c;

	if (!e->first)
		return;
	c = &e->first->call;
	e->progress_ns = now_ns;
	e->forgiven = false;
	call_take(c, entry, bytes);
	if (c->entries - entry > e->member.window)
		engine_send_entry(e, entry + e->member.window);
	if (c->taken == c->entries)
		end_round(e);
}

void engine_input(struct engine *e, const void *bytes, size_t length, uint64_t now_ns)
{
	uint32_t seq;

	engine_look(e, now_ns);
	if (window_input(e->window, bytes, length, now_ns, &seq))
		engine_take(e, seq + e->shift, bytes, now_ns);
	else
		engine_check_news(e, e->window);
}

void engine_marked(struct engine *e, const void *bytes, size_t length)
{
	window_marked(e->window, bytes, length);
}

void engine_unreachable(struct engine *e) { e->unreachable = true; }
void engine_way_mtu(struct engine *e, uint32_t mtu) { e->mtu = mtu; }

uint64_t engine_wakeup(const struct engine *e)
{
	uint64_t wakeup = engine_window_wakeup(e);
	uint64_t deadline = e->progress_ns + engine_timeout(e);

	return e->first && e->progress_ns && deadline < wakeup ? deadline : wakeup;
}

uint32_t engine_chunks(const struct engine *e) { return e->first ? e->first->call.chunks : 0; }

const struct window *engine_window(const struct engine *e) { return e->window; }

struct tally_stats engine_stats(const struct engine *e)
{
	struct tally_stats stats = e->past;

	engine_stats_add(&stats, window_stats(e->window));
	if (e->move.next)
		engine_stats_add(&stats, window_stats(e->move.next));
	stats.redone = e->redone;
	stats.rtt_ns = window_rtt(e->window);
	stats.window = window_room(e->window);
	return stats;
}
