/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How important what the agent says is, in the order of importance. */
#ifndef TALLY_AGENT_LOG_LEVEL_H
#define TALLY_AGENT_LOG_LEVEL_H

enum log_level {
	LOG_LEVEL_ERROR,
	LOG_LEVEL_WARNING,
	LOG_LEVEL_INFO,
	LOG_LEVEL_DEBUG,
};

#endif
