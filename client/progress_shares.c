// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Shares of several roots that change while calls run. All ranks must split a call alike, and hear
 * of new shares at different times. So rank 0 alone listens, and before every 32nd call says the
 * shares that it knows, by a sum in which all others have zeros; the call 32 later, and those
 * behind it, are split by them. So nobody waits, unless 32 calls are on at once.
 */
#include <string.h>

#include "common/clock.h"
#include "progress.h"

enum {
	EVERY = 32, /* calls */
};

static void shares_take(struct tally *t)
{
	struct tally_call_info ignored;

	progress_finish(t, &t->agreeing.call);
	t->agreeing.asked = 0;
	if (engine_collect(t->agreeing.call.part[0], &ignored) < 0)
		return; /* so will all calls from now on */
	for (unsigned int i = 0; i < t->shards.count; i++)
		t->shards.root[i].share = (uint16_t)t->agreeing.share[i];
}

static void shares_fill(struct tally *t)
{
	uint16_t heard[JOINING_ROOTS_MAX];
	const bool is_heard = join_shares_heard(t->shard[0].join, heard) == t->shards.count;

	for (unsigned int i = 0; i < t->shards.count; i++)
		t->agreeing.share[i] = t->rank ? 0 : is_heard ? heard[i] : t->shards.root[i].share;
}

/* At the first root alone: it has all calls of one chunk. */
static int shares_ask(struct tally *t)
{
	const struct call_options options = { .verb = CALL_ALLREDUCE,
					      .dtype = TALLY_INT64,
					      .op = TALLY_SUM,
					      .count = t->shards.count,
					      .in = t->agreeing.share,
					      .out = t->agreeing.share };
	int r;

	shares_fill(t);
	t->agreeing.call = (struct tally_call){ .tally = t };
	r = engine_start(t->shard[0].engine, &options, clock_now_ns(), &t->agreeing.call.part[0]);
	if (r == 0)
		t->agreeing.asked = t->agreeing.calls + 1;
	return r;
}

/* Where the program's call fails, as there are too many, it asks again, and comes here again. */
int progress_shares_look(struct tally *t)
{
	if (!t->agreeing.follows || t->agreeing.calls % EVERY ||
	    t->agreeing.asked == t->agreeing.calls + 1)
		return 0;
	if (t->agreeing.asked)
		shares_take(t);
	return shares_ask(t);
}
