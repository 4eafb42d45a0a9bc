// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collect.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "common/why.h"
#include "error.h"

static enum tally_way way_of(const struct tally_call_info *i)
{
	if (!i->chunks)
		return TALLY_WAY_NONE;
	if (!i->spilled)
		return TALLY_WAY_OFFLOADED;
	return i->spilled < i->chunks ? TALLY_WAY_PARTLY_SPILLED : TALLY_WAY_SPILLED;
}

static void add_info(struct tally_call_info *sum, const struct tally_call_info *part)
{
	sum->chunks += part->chunks;
	sum->redone += part->redone;
	sum->retransmitted += part->retransmitted;
	sum->sent_bytes += part->sent_bytes;
	sum->spilled += part->spilled;
	if (part->queued_ns < sum->queued_ns)
		sum->queued_ns = part->queued_ns;
	if (part->duration_ns > sum->duration_ns)
		sum->duration_ns = part->duration_ns;
	sum->way = way_of(sum);
}

/* Of a part that never was one: its call was held when the run ended, or another root was not yet
 * known to have failed when it was started. */
static int refusal(const struct tally *t)
{
	const struct shard *failed = t->failed ? t->failed : t->shard;
	const char *why;
	int r;

	pump_enter(failed->pump);
	if (engine_failure(failed->engine, &why) < 0)
		r = error_set(-ECONNABORTED, "an earlier call failed: %.400s", why);
	else
		r = error_set(-ECANCELED, "the job was aborted");
	pump_leave(failed->pump);
	return r;
}

/* *ret_own: it has failed by a value of this rank's own. */
static int part_collect(const struct tally *t, const struct shard *s, struct engine_call *part,
			struct tally_call_info *ret, bool *ret_own)
{
	int r;

	*ret_own = false;
	if (!part)
		return refusal(t);
	pump_enter(s->pump);
	*ret_own = engine_has_misfit(part);
	r = engine_collect(part, ret);
	pump_leave(s->pump);
	return r;
}

static void say_why(const struct tally *t, const struct shard *s, struct why *ret)
{
	const bool names = s == t->failed;

	pump_enter(s->pump);
	snprintf(ret->text, sizeof(ret->text), "%s%s%s%.400s", names ? "root " : "",
		 names ? s->service : "", names ? ": " : "", tally_error());
	pump_leave(s->pump);
}

int collect_call(struct tally *t, struct tally_call *call, struct tally_call_info *ret)
{
	struct why why = { "" };
	bool named = false;
	int result = 0;

	assert(call);
	*ret = (struct tally_call_info){ .queued_ns = UINT64_MAX };
	call->pending = false;
	for (unsigned int i = 0; i < t->shards.count; i++) {
		const struct shard *s = &t->shard[i];
		struct tally_call_info info = { .queued_ns = UINT64_MAX };
		bool own;
		int r = part_collect(t, s, call->part[i], &info, &own);
		const bool names = own && !named && result == -ERANGE;

		add_info(ret, &info);
		if (r == 0 || (result < 0 && s != t->failed && !names))
			continue;
		result = r;
		named = own;
		say_why(t, s, &why);
	}
	ret->queued_ns = call->part[0] ? ret->queued_ns + call->held_ns : 0;
	ret->duration_ns += call->held_ns;
	return result < 0 ? error_set(result, "%s", why.text) : 0;
}
