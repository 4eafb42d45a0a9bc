// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "segments.h"

void segments_init(struct segments *s, size_t limit, uint32_t random)
{
	*s = (struct segments){ .limit = limit, .random = random };
}

/* The pauses of ranks whose runs failed together end apart. */
static void wait_for_trial(struct segments *s)
{
	s->random = s->random * 1664525 + 1013904223;
	s->left = s->pause + (s->random >> 16) % s->pause;
}

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

size_t segments_allow(struct segments *s, size_t n)
{
	if (!s->paused)
		return at_most(n, SEGMENTS_MAX);
	if (s->left) {
		s->left--;
		return 1;
	}
	if (n > 1) {
		s->pause = at_most(2 * s->pause, SEGMENTS_PAUSE_MAX);
		wait_for_trial(s);
	}
	return at_most(n, SEGMENTS_TRIED);
}

void segments_refused(struct segments *s)
{
	if (!s->paused)
		s->pause = SEGMENTS_PAUSE_MIN;
	s->paused = true;
	wait_for_trial(s);
}

void segments_judge(struct segments *s, const struct window_runs *now)
{
	s->swallowed += now->chunks - s->judged.chunks;
	if (now->first_tries != s->judged.first_tries) {
		s->swallowed = 0;
		s->paused = false;
	}
	s->judged = *now;
	if (!s->paused && s->swallowed >= s->limit)
		segments_refused(s);
}
