// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What agents say during a run. */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "pump.h"

/*
 * The agent's connection is looked at so often at most. Nobody sleeps on it: a call that runs has
 * its turn every WINDOW_RTO_MAX_NS in any case, and nobody else needs to know.
 */
#define HEAR_NS UINT64_C(10000000)

/* Time in which nobody looked, or no call ran, is not that of a call that waits in vain. */
static void ending_check(struct shard *s, uint64_t now)
{
	uint64_t done = engine_stats(s->engine).chunks + engine_ended(s->engine);
	bool waits = !engine_is_idle(s->engine) && done == s->ending.done;
	bool forgives = waits && !s->ending.forgiven &&
			now - s->ending.looked_ns >= PROGRESS_ENDING_NS;

	s->ending.done = done;
	s->ending.looked_ns = now;
	s->ending.forgiven = waits && (s->ending.forgiven || forgives);
	if (!waits || forgives)
		s->ending.since_ns = now;
	else if (now - s->ending.since_ns >= PROGRESS_ENDING_NS)
		engine_fail(s->engine, -ECONNABORTED, s->ending.why.text);
}

/* What has become of a run, as its agent says. */
static void hear_one(struct shard *s, struct join *j)
{
	struct sockaddr_storage elsewhere;
	struct why why;
	int r = join_hear(j, &why, &elsewhere);

	if (r < 0)
		engine_fail(s->engine, r, why.text);
	else if (r == JOIN_MOVES)
		progress_move_begin(s, &elsewhere);
	else if (r > 0 && !*s->ending.why.text)
		s->ending.why = why;
}

/* On the way to another root: of the first run until all have agreed, for then they leave it; of
 * the next one in any case. */
void progress_hear(struct shard *s)
{
	uint64_t now;

	if (!s->join)
		return;
	now = clock_now_ns();
	if (now >= s->hear_ns) {
		s->hear_ns = now + HEAR_NS;
		if (!engine_has_agreed(s->engine))
			hear_one(s, s->join);
		if (s->next.join)
			hear_one(s, s->next.join);
		engine_watch(s->engine, join_watches(s->join));
	}
	if (*s->ending.why.text)
		ending_check(s, now);
	progress_rescue_look(s, now);
	progress_stay_look(s, now);
}
