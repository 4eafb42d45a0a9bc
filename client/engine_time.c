// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How long a call may be without a result, and when its root is taken for gone. */
#include "engine_private.h"

/*
 * It is so late now. While a call runs, something is due all the time; so a gap says that nobody
 * looked, when nothing could come: that time is not the network's. Once: where nothing has come
 * after somebody looked, the next gap counts.
 */
void engine_look(struct engine *e, uint64_t now_ns)
{
	uint64_t gap = now_ns - e->now_ns;

	if (e->progress_ns && gap > 2 * WINDOW_RTO_MAX_NS && !e->forgiven) {
		e->progress_ns += gap;
		e->forgiven = true;
	}
	e->now_ns = now_ns;
}

void engine_watch(struct engine *e, bool watched) { e->watched = watched; }

void engine_wait_for(struct engine *e, uint64_t patience_ns) { e->patience_ns = patience_ns; }

bool engine_is_silent(const struct engine *e)
{
	const uint64_t heard_ns = window_news(e->window)->heard_ns;
	const uint64_t since_ns = heard_ns > e->progress_ns ? heard_ns : e->progress_ns;
	const uint64_t half_ns = e->options.timeout_ns / 2;

	return e->first && e->progress_ns &&
	       e->now_ns > since_ns + (half_ns < ENGINE_SILENT_NS ? half_ns : ENGINE_SILENT_NS);
}

/* A late rank is not silence of the network. */
uint64_t engine_timeout(const struct engine *e)
{
	const struct window_news *news = window_news(e->window);
	bool late = news->asked_ns && news->asked_ns >= e->progress_ns &&
		    e->now_ns - news->asked_ns < e->options.timeout_ns &&
		    !tally_set_has(&news->missing, e->member.rank);

	uint64_t timeout_ns = e->options.timeout_ns;

	if (late && e->options.late_timeout_ns)
		timeout_ns = e->options.late_timeout_ns;
	else if (late && e->watched)
		timeout_ns = ENGINE_LATE_NS;
	return e->patience_ns > timeout_ns ? e->patience_ns : timeout_ns;
}
