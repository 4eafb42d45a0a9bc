/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What has become of a call, when all its parts are over. */
#ifndef TALLY_CLIENT_COLLECT_H
#define TALLY_CLIENT_COLLECT_H

#include "progress.h"

/*
 * With the job's lock held. The handle goes. Where parts have failed, that of the root where the
 * run failed says why, or one in which this rank's own values do not fit. Sets the error text.
 */
int collect_call(struct tally *t, struct tally_call *call, struct tally_call_info *ret);

#endif
