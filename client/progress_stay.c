// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * An agent that was restarted knows the run, but its connections have ended. Who tells it that a
 * rank is here still hears again of ranks that go and of roots elsewhere, and is missed when it
 * goes itself. The same is done when the agent has a new token of the job to tell. Calls do not
 * wait for that.
 */
#include <errno.h>

#include "common/clock.h"
#include "common/owned.h"
#include "pump.h"

#define PAUSE_NS UINT64_C(500000000) /* at first: an agent is back within a second */
#define PAUSE_MAX_NS UINT64_C(8000000000)

void progress_stay_look(struct shard *s, uint64_t now_ns)
{
	if (!join_is_to_stay(s->join)) {
		s->stay.pause_ns = s->stay.due_ns = 0;
		return;
	}
	if (!s->stay.pause_ns) {
		s->stay.pause_ns = PAUSE_NS;
		s->stay.due_ns = now_ns + PAUSE_NS;
	}
	if (s->moving || s->next.channel || engine_is_silent(s->engine) || now_ns < s->stay.due_ns)
		return;
	s->stay.due_ns = now_ns + s->stay.pause_ns; /* also where no thread can be made */
	s->moving = moving_stay(s->join, s->pump->kick);
	s->stay.asks = s->moving;
}

/* Another time it may do: the agent is on its way, or the old connection is not over there yet. */
static bool is_final(int error)
{
	return error == -ECANCELED || error == -EACCES || error == -EINVAL;
}

void progress_stay_take(struct shard *s)
{
	struct join *join = NULL;
	int r = moving_take_stay(s->moving, &join);

	moving_end(TAKE_PTR(s->moving));
	s->stay.asks = false;
	if (r == 0) {
		join_forget(s->join);
		s->join = join;
		return;
	}
	s->stay.pause_ns *= s->stay.pause_ns < PAUSE_MAX_NS ? 2 : 1;
	s->stay.due_ns = is_final(r) ? UINT64_MAX : clock_now_ns() + s->stay.pause_ns;
}
