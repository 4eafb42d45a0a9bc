/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The agent's log: one line an event on stderr, words first and then facts as key=value. If the
 * journal reads stderr, its level comes first. Packets are never logged, nor are tokens. Where
 * nobody reads stderr, lines are lost, and counted: nothing waits for them.
 */
#ifndef TALLY_AGENT_LOG_H
#define TALLY_AGENT_LOG_H

#include "agent/core/log_level.h"

/* Events less important than this are not logged; info at first. */
void log_level_set(enum log_level most);

/* printf-like: log_say(LOG_LEVEL_INFO, "job created", "job=%s workers=%u", name, n). */
__attribute__((format(printf, 3, 4))) void log_say(enum log_level level, const char *what,
						   const char *facts, ...);

#endif
