/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The control socket: those who ask, and those who change things (docs/control.md). */
#ifndef TALLY_AGENT_CONTROL_H
#define TALLY_AGENT_CONTROL_H

#include "sampler.h"

struct control;

/* The caller's, for control_close(), which allows NULL. */
int control_open(sd_event *loop, struct driver *d, const struct node *node, struct sampler *sampler,
		 struct control **ret, struct why *why);
void control_close(struct control *c);

/* What CORE_ANSWER says, as a line; the caller frees it. NULL: no memory. */
char *control_line(const struct core *core, const struct core_action *a);

/* The answer to a request that went to the store, to whoever asked here; it is freed. The log has
 * it, too: `result` is 0, or a negative errno. */
void control_told(void *connection, int result, char *line);

/* Performs CORE_ANSWER, to one who asked here. */
void control_answer(struct control *c, const struct core_action *a);

#endif
