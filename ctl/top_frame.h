/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One frame of `tallyctl top`: the daemon's figures as a page of text. Pure but for writing. */
#ifndef TALLY_CTL_TOP_FRAME_H
#define TALLY_CTL_TOP_FRAME_H

#include <jansson.h>
#include <stdio.h>

#include "common/name.h"
#include "style.h"

enum {
	TOP_HISTORY = 10, /* rates a job's sparkline shows */
	TOP_HISTORY_JOBS = 256, /* that have one; more have none */
};

/* The rates of the last frames, job by job. All zero: none. */
struct top_history {
	struct top_series {
		char name[NAME_BYTES]; /* "": free */
		unsigned int count; /* of rates, the newest last */
		double rate[TOP_HISTORY];
	} job[TOP_HISTORY_JOBS];
};

/* Adds a frame's rates. A job that is not in it any more is forgotten. */
void top_history_add(struct top_history *history, const json_t *frame);

/*
 * Lines as wide and as many as `style` says; where there are more jobs than lines, those with
 * the least traffic are left out, and said to be. `history` NULL: no sparklines. `foot`: the
 * last line, or NULL. -ENOMEM.
 */
int top_frame_print(FILE *out, const struct style *style, const json_t *frame,
		    const struct top_history *history, const char *foot);

#endif
