// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Roll-call: are workers still there whose connections ended with another agent? One that has
 * closed while there was no agent could not say so. Its machine can, if it is asked: CORE_GONE.
 */
#include <errno.h>
#include <string.h>

#include "core_private.h"

enum {
	ROUND_MS = 2000,
	ROUND_RANKS = 256, /* that are asked in one; the next round goes on behind them */
};

/* The first one at or behind c->round. */
static struct job *detached_find(struct core *c)
{
	for (; c->round.job < c->books.jobs; c->round.job++, c->round.rank = 0) {
		struct job *j = c->books.job[c->round.job];

		for (; j->run_window && c->round.rank < j->workers; c->round.rank++)
			if (j->rank[c->round.rank].presence == JOB_DETACHED)
				return j;
	}
	return NULL;
}

void rollcall_due(struct core *c)
{
	c->round.job = c->round.rank = 0;
	if (detached_find(c))
		core_due(c, CORE_DUE_ROLLCALL, ROUND_MS);
}

/* Workers hear their service address and its port alone: no other port can be asked from. */
static void taken_note(struct core *c)
{
	struct why text = { "" };

	if (c->round.error == -EADDRINUSE)
		why_say(&text, 0,
			"UDP port %d is in use by another program (ss -ulnp 'sport = :%d'): so "
			"tallyd cannot find out which detached workers have gone. Their ranks stay "
			"taken until they leave, or tallyctl job restart NAME",
			TALLY_UDP_PORT, TALLY_UDP_PORT);
	trouble_note(c, CORE_TROUBLE_ROLLCALL, text.text);
}

static void on_asked(struct core *c, int r);

static void ask_next(struct core *c)
{
	struct job *j = c->round.asked < ROUND_RANKS ? detached_find(c) : NULL;

	if (!j) {
		taken_note(c);
		if (c->round.error < 0)
			core_log(c, LOG_LEVEL_DEBUG, "cannot check detached workers",
				 "reason=\"%s\"", strerror(-c->round.error));
		/* once more, even if nobody is left: these are forgotten then */
		if (c->round.asked)
			core_due(c, CORE_DUE_ROLLCALL, ROUND_MS);
		return;
	}
	c->round.asked++;
	core_await(c, ACTION(CORE_PROBE, .job = j, .rank = c->round.rank++), NULL, on_asked);
}

static void on_asked(struct core *c, int r)
{
	c->round.error = r < 0 ? r : c->round.error;
	ask_next(c);
}

void rollcall_begin(struct core *c)
{
	if (!detached_find(c))
		c->round.job = c->round.rank = 0;
	c->round.error = 0;
	c->round.asked = 0;
	core_act(c, ACTION(CORE_FORGET_PROBES));
	ask_next(c);
}
