// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Parts of calls go to their roots, by shares that change while calls run. All ranks must split a
 * call alike, and hear of new shares at different times. So rank 0 alone listens, and in front of a
 * call says the shares that it knows, by a sum in which all others have zeros: the question. That
 * call still goes by the old shares, and all that follow by the result; those that are started
 * before it is there are held until then. When to ask follows from the calls before, which all
 * ranks know alike. Nothing here waits.
 */
#include <assert.h>
#include <string.h>

#include "common/clock.h"
#include "progress.h"

/* A question costs a round trip at one root: after so much, that is little beside the calls. */
#define EVERY_BYTES (UINT64_C(8) << 20)

enum {
	EVERY_CALLS = 32,
};

/* --- when */

/* A call of nothing needs no other rank, and must not wait for one. */
static bool is_counted(const struct call_options *o) { return o->count || o->verb == CALL_BARRIER; }

static uint64_t bytes_of(const struct call_options *o, uint16_t workers)
{
	const bool parted = o->verb == CALL_REDUCE_SCATTER || o->verb == CALL_ALL_GATHER;

	return o->verb == CALL_BARRIER
		       ? 0
		       : (uint64_t)o->count * call_element_bytes(o) * (parted ? workers : 1);
}

static bool is_due(const struct tally *t)
{
	return t->agreeing.calls >= EVERY_CALLS || t->agreeing.bytes >= EVERY_BYTES;
}

/* --- the question */

static void shares_fill(struct tally *t)
{
	uint16_t heard[JOINING_ROOTS_MAX];
	const bool is_heard = join_shares_heard(t->shard[0].join, heard) == t->shards.count;

	for (unsigned int i = 0; i < t->shards.count; i++)
		t->agreeing.share[i] = t->rank ? 0 : is_heard ? heard[i] : t->shards.root[i].share;
}

/* At the first root alone: it has a part of each call that counts, so the question is over when the
 * call behind it is. */
static int shares_ask(struct tally *t)
{
	const struct call_options options = { .verb = CALL_ALLREDUCE,
					      .dtype = TALLY_INT64,
					      .op = TALLY_SUM,
					      .count = t->shards.count,
					      .in = t->agreeing.share,
					      .out = t->agreeing.share };
	struct engine_call *question;
	struct shard *s = &t->shard[0];
	int r;

	pump_enter(s->pump);
	shares_fill(t);
	r = engine_start(s->engine, &options, clock_now_ns(), &question);
	s->started += r == 0;
	pump_leave(s->pump);
	if (r < 0)
		return r;
	t->agreeing.question = question;
	t->agreeing.number = s->started;
	t->agreeing.calls = t->agreeing.bytes = 0;
	return 0;
}

/* Where it has failed, so will all calls. */
static void shares_take(struct tally *t)
{
	int r;

	pump_enter(t->shard[0].pump);
	r = engine_collect(t->agreeing.question, NULL);
	pump_leave(t->shard[0].pump);
	t->agreeing.question = NULL;
	for (unsigned int i = 0; r == 0 && i < t->shards.count; i++)
		t->shards.root[i].share = (uint16_t)t->agreeing.share[i];
}

/* --- calls */

static int start_part(struct tally *t, unsigned int i, struct tally_call *call, uint64_t now_ns)
{
	struct call_options part = shards_part(&t->shards, i, t->payload_bytes, t->workers,
					       &call->options);
	struct shard *s = &t->shard[i];
	int r;

	pump_enter(s->pump);
	priority_measure(&s->meter, now_ns, engine_busy_ns(s->engine));
	part.priority = priority_of(&s->meter, &call->hints);
	r = engine_start(s->engine, &part, now_ns, &call->part[i]);
	if (r == 0) {
		call->number[i] = ++s->started;
		shard_output(s);
	}
	pump_leave(s->pump);
	return r;
}

/* Engines have places for as many calls as there are here. Where threads drive, one may have failed
 * and the others not yet: they will, and the call with them. */
static int start_parts(struct tally *t, struct tally_call *call)
{
	const uint64_t now_ns = clock_now_ns();

	call->held_ns = now_ns - call->started_ns;
	for (unsigned int i = 0; i < t->shards.count; i++) {
		int r = start_part(t, i, call, now_ns);

		assert(r == 0 || i == 0 || t->shard[i].has_failed);
		if (r < 0 && i == 0)
			return r;
	}
	return 0;
}

static int ask_and_start(struct tally *t, struct tally_call *call)
{
	int r = 0;

	if (t->agreeing.follows && is_counted(&call->options)) {
		if (is_due(t))
			r = shares_ask(t);
		t->agreeing.calls++;
		t->agreeing.bytes += bytes_of(&call->options, t->workers);
	}
	return r < 0 ? r : start_parts(t, call);
}

static void hold(struct tally *t, struct tally_call *call)
{
	call->held = true;
	if (t->agreeing.last_held)
		t->agreeing.last_held->next_held = call;
	else
		t->agreeing.first_held = call;
	t->agreeing.last_held = call;
}

int progress_shares_start(struct tally *t, struct tally_call *call)
{
	if (!t->agreeing.question || !is_counted(&call->options))
		return ask_and_start(t, call);
	hold(t, call);
	return 0;
}

bool progress_shares_go_on(struct tally *t)
{
	struct tally_call *call = t->agreeing.first_held;

	if (t->agreeing.question && progress_part_is_over(&t->shard[0], t->agreeing.number))
		shares_take(t);
	if (t->agreeing.question || !call)
		return false;
	t->agreeing.first_held = call->next_held;
	if (!call->next_held)
		t->agreeing.last_held = NULL;
	call->held = false;
	ask_and_start(t, call); /* what fails has no parts, and is over */
	return true;
}
