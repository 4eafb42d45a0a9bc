/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this node says of itself to the others: the core, the traffic and the kernel, looked at. */
#ifndef TALLY_AGENT_REPORTING_H
#define TALLY_AGENT_REPORTING_H

#include "agent/cluster/hello.h"
#include "agent/cluster/report.h"
#include "sampler.h"

/* As it is now; the caller's, for report_free(). NULL: no memory. */
struct report *reporting_make(const struct core *c, const struct sampler *s,
			      const struct hello_nears *nears);

#endif
