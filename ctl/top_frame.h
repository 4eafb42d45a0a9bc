/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One frame of `tallyctl top`: the daemon's figures as a page of text. Pure but for writing. */
#ifndef TALLY_CTL_TOP_FRAME_H
#define TALLY_CTL_TOP_FRAME_H

#include <jansson.h>
#include <stdio.h>

#include "common/name.h"
#include "style.h"

enum {
	TOP_HISTORY = 10, /* rates in the sparkline of a job */
	TOP_HISTORY_JOBS = 256, /* that have a sparkline; further jobs have none */
};

/* The rates of the last frames, for each job. All zero: none. */
struct top_history {
	struct top_series {
		char name[NAME_BYTES]; /* "": not in use */
		unsigned int count; /* of rates; the newest is the last */
		double rate[TOP_HISTORY];
	} job[TOP_HISTORY_JOBS];
};

/* Adds the rates of a frame, and drops jobs that are not in the frame. */
void top_history_add(struct top_history *history, const json_t *frame);

/*
 * Prints a frame in the width and height of `style`. If there are more jobs than lines, the jobs
 * with the least traffic are left out, and a line says how many. `history` NULL: no sparklines.
 * `foot`: the last line, or NULL. -ENOMEM.
 */
int top_frame_print(FILE *out, const struct style *style, const json_t *frame,
		    const struct top_history *history, const char *foot);

#endif
