// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recovery.h"

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t within(uint64_t ns, uint64_t low, uint64_t high)
{
	return most(low, least(ns, high));
}

void recovery_init(struct recovery *r, uint16_t rank, uint16_t workers)
{
	*r = (struct recovery){
		.rank = rank,
		.workers = workers,
		.rto_ns = RECOVERY_RTO_FIRST_NS,
		.reorder_ns = RECOVERY_REORDER_MIN_NS,
		.patience_ns = RECOVERY_PATIENCE_FIRST_NS,
	};
}

/* It goes again without being known to be lost. */
static bool is_probe(const struct fate *f)
{
	return f->tries && !f->lost && f->news != RECOVERY_COPY_LOST;
}

bool recovery_flushes(const struct fate *f)
{
	return f->group_asked || f->tries >= 2 || is_probe(f);
}

void recovery_sent(struct recovery *r, struct fate *f, uint64_t now_ns)
{
	*f = (struct fate){
		.sent_ns = now_ns,
		.probe = is_probe(f),
		.seq = f->seq,
		.tries = f->tries < UINT8_MAX ? f->tries + 1 : f->tries,
		.group_asked = f->group_asked,
	};
	r->quiet_ns = now_ns;
}

/* RFC 6298; only from chunks sent once (Karn). */
static void measure_rtt(struct recovery *r, uint64_t rtt_ns)
{
	uint64_t delta = most(rtt_ns, r->srtt_ns) - least(rtt_ns, r->srtt_ns);

	if (!r->srtt_ns) {
		r->srtt_ns = r->quick_ns = r->min_rtt_ns = rtt_ns;
		r->rttvar_ns = rtt_ns / 2;
	} else {
		r->rttvar_ns += delta / 4 - r->rttvar_ns / 4;
		r->srtt_ns += rtt_ns / 8 - r->srtt_ns / 8;
		r->quick_ns += least(rtt_ns, r->quick_ns) / 128;
	}
	r->quick_ns = least(r->quick_ns, rtt_ns);
	r->min_rtt_ns = least(r->min_rtt_ns, rtt_ns);
	r->rto_ns = within(r->srtt_ns + 4 * r->rttvar_ns, RECOVERY_RTO_MIN_NS, RECOVERY_RTO_MAX_NS);
}

/* After a probe: a late rank sends its oldest chunks first, and a chunk that was lost is answered.
 */
static void learn_patience(struct recovery *r, const struct fate *f)
{
	if (!r->learning)
		return;
	r->learning = false;
	if (f->seq == r->probed)
		r->patience_ns -= r->patience_ns / 4;
	else
		r->patience_ns *= 2;
	r->patience_ns = within(r->patience_ns, RECOVERY_PATIENCE_MIN_NS, RECOVERY_PATIENCE_MAX_NS);
}

/* Sequence numbers decide between those that were sent in one burst. */
static bool was_sent_before_newest(const struct recovery *r, const struct fate *f)
{
	return f->sent_ns < r->newest_ns ||
	       (f->sent_ns == r->newest_ns && (int32_t)(f->seq - r->newest_seq) < 0);
}

/*
 * How much out of order is too much is learnt, as RFC 8985 does (section 6.2): a result that comes
 * sooner after a retransmission than any network could answer was only late, not lost. It is the
 * original's, and says nothing of what was sent since.
 */
bool recovery_result(struct recovery *r, const struct fate *f, uint64_t now_ns)
{
	bool original = f->tries > 1 && now_ns - f->sent_ns < r->min_rtt_ns;

	r->silences = 0;
	r->quiet_ns = now_ns;
	learn_patience(r, f);
	if (f->tries == 1) {
		measure_rtt(r, now_ns - f->sent_ns);
		r->reorder_ns -= r->reorder_ns / 2048;
	} else if (original && !f->probe) {
		r->reorder_ns += r->reorder_ns / 4;
	}
	r->reorder_ns = within(r->reorder_ns, RECOVERY_REORDER_MIN_NS, r->rto_ns);
	if (original || was_sent_before_newest(r, f))
		return false;
	r->newest_ns = f->sent_ns;
	r->newest_seq = f->seq;
	r->newest_rtt_ns = now_ns - f->sent_ns;
	return true;
}

uint64_t recovery_settled(const struct recovery *r, uint64_t now_ns)
{
	return now_ns - least(r->srtt_ns, r->patience_ns);
}

void recovery_hear(struct recovery *r, struct fate *f, bool mine, bool all, uint64_t since_ns,
		   uint64_t now_ns)
{
	if (all) {
		if (f->news != RECOVERY_COPY_LOST)
			f->heard_ns = now_ns;
		f->news = RECOVERY_COPY_LOST;
	} else if (mine) {
		f->heard_ns = now_ns;
		f->news = RECOVERY_OTHERS_MISS;
	} else if (f->sent_ns < since_ns) {
		f->lost = true;
	}
}

void recovery_probed(struct recovery *r, const struct fate *f, uint32_t flying, uint64_t now_ns)
{
	r->quiet_ns = now_ns;
	r->silences += r->silences < UINT8_MAX;
	r->learning = flying > 1;
	r->probed = f->seq;
}

/* How long others need to hear of a probe. On a busy machine they need longer. */
static uint64_t step_of(const struct recovery *r)
{
	return most(r->quick_ns / 2,
		    within(r->srtt_ns / 2, RECOVERY_STEP_MIN_NS, RECOVERY_STEP_MAX_NS));
}

/* How long this rank leaves the probing of a chunk to others. */
static uint64_t turn_of(const struct recovery *r, uint32_t seq)
{
	return least((r->rank + seq) % r->workers * step_of(r), RECOVERY_TURNS_MAX_NS);
}

uint64_t recovery_due(struct recovery *r, struct fate *f, bool is_tail, uint64_t now_ns)
{
	uint64_t told_ns = most(f->asked_ns, f->heard_ns);
	uint64_t wait_ns = most(r->rto_ns, r->patience_ns);
	uint64_t overtaken_ns = f->sent_ns + r->newest_rtt_ns + r->reorder_ns;

	if (f->lost)
		return 0;
	if (f->news == RECOVERY_COPY_LOST)
		return f->heard_ns + r->reorder_ns;
	if (!was_sent_before_newest(r, f))
		return UINT64_MAX;
	if (now_ns < overtaken_ns && !f->overtaken_ns)
		return overtaken_ns;
	if (!f->overtaken_ns)
		f->overtaken_ns = now_ns;
	if (is_tail)
		wait_ns = told_ns ? most(3 * r->quick_ns, RECOVERY_RTO_MIN_NS) : step_of(r);
	return most(told_ns, f->overtaken_ns) + wait_ns + turn_of(r, f->seq);
}

bool recovery_asks(const struct recovery *r, const struct fate *f, uint64_t now_ns)
{
	return f->overtaken_ns && !f->lost && f->news != RECOVERY_COPY_LOST &&
	       now_ns >= most(f->asked_ns, f->heard_ns) + r->srtt_ns;
}

uint64_t recovery_silence(const struct recovery *r, const struct fate *newest, uint32_t flying)
{
	bool is_tail = flying <= RECOVERY_TAIL_FLIGHTS &&
		       (newest->tries > 1 || newest->sent_ns < r->newest_ns + r->min_rtt_ns);
	uint64_t ns = is_tail ? most(3 * r->quick_ns, r->patience_ns / 8) : r->patience_ns;

	if (!r->srtt_ns)
		ns = r->rto_ns;
	ns = least(ns << least(r->silences, 6), RECOVERY_RTO_MAX_NS);
	return r->quiet_ns + ns + turn_of(r, newest->seq);
}
