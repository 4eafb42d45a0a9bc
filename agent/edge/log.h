/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the agent has to say while it runs: one line an event on stderr, words first and then
 * facts as key=value, with the journal's level in front where the journal listens. Nothing is
 * logged for each packet, and no token ever.
 */
#ifndef TALLY_AGENT_LOG_H
#define TALLY_AGENT_LOG_H

#include "agent/core/log_level.h"

/* What is less important than that is not said; info at first. */
void log_level_set(enum log_level most);

/* printf-like: log_say(LOG_LEVEL_INFO, "job created", "job=%s workers=%u", name, n). */
__attribute__((format(printf, 3, 4))) void log_say(enum log_level level, const char *what,
						   const char *facts, ...);

#endif
