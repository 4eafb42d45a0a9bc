// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>

#include "agent.h"

int tracing_begin(struct agent *a, struct stream *s, const struct request_filter *q,
		  struct why *why)
{
	return why_say(why, -EOPNOTSUPP, "trace: this data plane has no trace yet");
}

void tracing_end(struct agent *a, struct stream *s) {}
