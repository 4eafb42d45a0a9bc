// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "congestion.h"

enum {
	ONE = CONGESTION_ONE,
	SAMPLES = 8, /* so many round trips tell a queue from noise by their shortest */
	RATE_ROUNDS = 8, /* of half of the time for which the best rate counts */
	STANDING_ROUNDS = 4, /* so long a queue is there that was not a moment's */
	BLIND_ROUNDS = 8, /* without a sample, for which the last one counts */
	GROWTH = 543, /* of ONE in a round: TCP's cubic grows so beside TCP's Reno */
	KEPT_PERCENT = 70, /* of the window by a cut, as cubic's */
	SHARE_GAIN = 16, /* of marks, as DCTCP's */
	LOSSY_ONE = ONE * ONE, /* all is lost */
	LOSSY_MAX = LOSSY_ONE / 8, /* that is no chance, queue or not: a policer has no queue */
	LOSSY_GAIN = 64,
	SPARE = 4, /* chunks beyond what the base round trip needs: hosts do not answer at once */
	NS_PER_MS = 1000000,
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

void congestion_init(struct congestion *c, bool on, uint32_t window_max, uint16_t workers)
{
	const uint64_t burst = most(CONGESTION_QUEUE / most(workers, 1), CONGESTION_FIRST);

	*c = (struct congestion){
		.on = on,
		.window_max = window_max,
		.burst = least(burst, CONGESTION_BURST_MAX),
		.window = least(window_max, CONGESTION_FIRST) * ONE,
		.calm = UINT64_MAX,
		.marks = ONE,
	};
	c->credit = c->burst * ONE;
}

uint32_t congestion_window(const struct congestion *c)
{
	return c->on ? c->window / ONE : c->window_max;
}

static void window_set(struct congestion *c, uint64_t window)
{
	window = most(window, (uint64_t)CONGESTION_LEAST * ONE);
	c->window = least(window, (uint64_t)c->window_max * ONE);
}

/* Is this round trip more than noise? */
static bool is_long(const struct congestion *c, uint64_t rtt_ns)
{
	return rtt_ns > c->base_ns + most(c->base_ns / 8, CONGESTION_RISE_NS);
}

/* Had all round trips of late a queue before them? */
static bool stands_queue(const struct congestion *c)
{
	const struct congestion_round *r = c->round.samples >= SAMPLES ? &c->round : &c->last;

	return r->samples && is_long(c, r->rtt_ns);
}

/* --- the window */

static void cut(struct congestion *c, uint64_t window, uint64_t now_ns)
{
	window_set(c, least(window, c->window));
	c->calm = c->window;
	c->cut_ns = now_ns;
	c->cuts++;
}

/* What is lost by chance leaves the window so large; what a full queue loses drains it to that. */
static uint64_t needed(const struct congestion *c)
{
	return most(c->rate[0], c->rate[1]) * c->base_ns / NS_PER_MS + SPARE * ONE;
}

static uint64_t kept(const struct congestion *c) { return c->window * KEPT_PERCENT / 100; }

/*
 * A window at its end grows no more, and so a full queue takes nothing from it, but all from who
 * grows beside it. When a long queue becomes shorter and stays, somebody has given way: so it does,
 * too.
 */
static void yield(struct congestion *c, uint64_t rtt_ns, uint64_t now_ns)
{
	bool stands = rtt_ns > c->base_ns + CONGESTION_STANDING_NS;

	if (!stands || c->window / ONE < c->window_max) {
		c->stood = 0;
		c->peak_ns = 0;
		return;
	}
	c->peak_ns = most(c->peak_ns, rtt_ns);
	if (++c->stood > STANDING_ROUNDS && c->peak_ns - rtt_ns > c->peak_ns / 16)
		cut(c, most(kept(c), needed(c)), now_ns);
}

/* --- rounds */

/* Who has little to send takes less than there is: that says nothing of the rate. */
static void rate_take(struct congestion *c, uint64_t took_ns)
{
	uint64_t rate = c->round.results * (uint64_t)ONE * NS_PER_MS / most(took_ns, 1);

	c->rate[0] = most(c->rate[0], rate);
	if (++c->rounds < RATE_ROUNDS)
		return;
	c->rate[1] = c->rate[0];
	c->rate[0] = 0;
	c->rounds = 0;
}

/* A queue of which nothing was seen for long is not there any more. */
static void forget(struct congestion *c)
{
	c->last.samples = 0;
	c->rtt_ns = 0;
}

static void round_end(struct congestion *c, uint64_t now_ns)
{
	const struct congestion_round *r = &c->round;

	c->marks += (int32_t)(r->marked * ONE / r->results - c->marks) / SHARE_GAIN;
	if (r->limited)
		rate_take(c, now_ns - r->began_ns);
	if (r->samples) {
		c->last = *r;
		c->blind = 0;
		yield(c, r->rtt_ns, now_ns);
	} else if (++c->blind == BLIND_ROUNDS) {
		forget(c);
	}
	c->last.limited = r->limited;
	c->gap_before_ns = r->gap_ns;
	c->round = (struct congestion_round){ .began_ns = now_ns };
}

/*
 * A queue gives results one after the other. Where none came for most of a round trip, it says how
 * late a rank was. What left before that may come in the round that follows.
 */
static void measure(struct congestion *c, uint64_t rtt_ns)
{
	struct congestion_round *r = &c->round;

	c->base_ns = c->base_ns ? least(c->base_ns, rtt_ns) : rtt_ns;
	if (most(r->gap_ns, c->gap_before_ns) > rtt_ns / 4 * 3)
		return;
	r->rtt_ns = r->samples++ ? least(r->rtt_ns, rtt_ns) : rtt_ns;
	c->rtt_ns = c->rtt_ns ? c->rtt_ns - c->rtt_ns / 8 + rtt_ns / 8 : rtt_ns;
}

/* By one result. Who did not need the window has learnt nothing of what is beyond it. */
static void grow(struct congestion *c)
{
	uint64_t growth = GROWTH * (uint64_t)ONE / c->window;

	if (!c->round.limited && !c->last.limited)
		return;
	if (!stands_queue(c))
		growth = c->window < c->calm ? ONE : most(growth, ONE / 16);
	c->credit += growth;
	window_set(c, c->window + growth);
}

/* Where all is marked, as where switches mark beyond a small queue, half goes, as by DCTCP. */
static void take_mark(struct congestion *c, uint64_t now_ns)
{
	cut(c, least(kept(c), c->window - c->window * c->marks / (2 * ONE)), now_ns);
}

void congestion_result(struct congestion *c, const struct congestion_result *r, uint64_t now_ns)
{
	if (!c->on)
		return;
	if (!c->round.began_ns)
		c->round.began_ns = r->sent_ns;
	else if (r->sent_ns >= c->round.began_ns && c->round.results)
		round_end(c, now_ns);
	c->round.gap_ns = most(c->round.gap_ns, now_ns - c->heard_ns);
	c->heard_ns = now_ns;
	c->round.results++;
	c->round.marked += r->marked;
	c->lossy -= c->lossy / LOSSY_GAIN;
	c->credit += ONE;
	if (r->once)
		measure(c, now_ns - r->sent_ns);
	if (!r->marked)
		grow(c);
	else if (r->sent_ns >= c->cut_ns)
		take_mark(c, now_ns);
}

void congestion_lost(struct congestion *c, uint64_t sent_ns, uint64_t now_ns)
{
	if (!c->on)
		return;
	c->lossy += (LOSSY_ONE - c->lossy) / LOSSY_GAIN;
	if (sent_ns >= c->cut_ns && (is_long(c, c->rtt_ns) || c->lossy > LOSSY_MAX))
		cut(c, most(kept(c), needed(c)), now_ns);
}

/* --- pacing */

/* A quarter more than the window in a round trip, so that waiting costs little. */
static uint64_t pace_ns(const struct congestion *c, uint64_t credit)
{
	const uint64_t rtt_ns = c->last.samples ? c->last.rtt_ns : c->base_ns;

	return credit * rtt_ns / (c->window + c->window / 4);
}

static void refill(struct congestion *c, uint64_t now_ns)
{
	uint64_t full = (uint64_t)c->burst * ONE, missing_ns;

	if (c->credit < full && c->base_ns) {
		missing_ns = pace_ns(c, full - c->credit);
		if (now_ns - c->credit_ns >= missing_ns)
			c->credit = full;
		else
			c->credit += (full - c->credit) * (now_ns - c->credit_ns) / missing_ns;
	}
	c->credit_ns = now_ns;
}

bool congestion_admits(struct congestion *c, uint32_t flying, uint64_t now_ns)
{
	if (!c->on)
		return true;
	if (flying >= c->window / ONE) {
		c->round.limited = true;
		congestion_rest(c);
		return false;
	}
	if (now_ns != c->credit_ns)
		refill(c, now_ns);
	return c->credit >= ONE || !c->base_ns;
}

void congestion_sent(struct congestion *c, uint32_t flying, uint64_t now_ns)
{
	c->credit -= least(c->credit, ONE);
	if (!flying)
		c->heard_ns = now_ns;
}

void congestion_unsent(struct congestion *c) { c->credit += ONE; }

void congestion_rest(struct congestion *c)
{
	c->credit = least(c->credit, (uint64_t)c->burst * ONE);
}

uint64_t congestion_wakeup(const struct congestion *c, uint32_t flying)
{
	const uint64_t wanted = (uint64_t)c->burst * ONE / 2;

	if (!c->on || !c->base_ns || flying >= c->window / ONE)
		return UINT64_MAX;
	return c->credit_ns + pace_ns(c, wanted - least(wanted, c->credit));
}
