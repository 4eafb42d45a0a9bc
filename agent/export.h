/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Metrics, for Prometheus. */
#ifndef TALLY_AGENT_EXPORT_H
#define TALLY_AGENT_EXPORT_H

#include "carrier.h"
#include "sampler.h"
#include "sharing.h"

struct exporter;
struct placing; /* placing.h */

/*
 * The caller's, for exporter_close(), which allows NULL; NULL if none is configured. Without a
 * cluster `sharing` and `placing` are NULL. If another
 * program has the port, it is opened all the same.
 */
int exporter_open(sd_event *loop, const struct core *core, const struct carrier *carrier,
		  const struct sampler *sampler, const struct sharing *sharing,
		  const struct placing *placing, struct exporter **ret, struct why *why);
void exporter_close(struct exporter *x);

/* Listens if it does not yet. NULL: 0. -EADDRINUSE: another program has the port; `why` says it. */
int exporter_listen(struct exporter *x, struct why *why);

#endif
