/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a job of the cluster stands: what is wanted of it, and what the nodes report. Pure. */
#ifndef TALLY_CLUSTER_STANDING_H
#define TALLY_CLUSTER_STANDING_H

#include "picture.h"
#include "shared.h"

enum standing {
	STANDING_FORMING, /* workers are missing */
	STANDING_DUE, /* it is to be placed */
	STANDING_PLACED, /* no run is on */
	STANDING_RUNNING,
	STANDING_SILENT, /* its root reports nothing at all */
	STANDING_COUNT,
};

enum standing standing_of(const struct shared_job *j, const struct picture *p);

/* The node that the job has as its root, if its agent reports; or NULL. */
const struct report *standing_root(const struct shared_job *j, const struct picture *p);

/* What its root reports of it, as long as the picture is as it is; NULL: nothing. */
const struct report_job *standing_there(const struct shared_job *j, const struct picture *p);

/* What this node reports of it as its root; NULL: nothing, or `r` is NULL. */
const struct report_job *standing_at(const struct shared_job *j, const struct report *r);

/* Another node than its root that has its run: workers who could not be told have stayed there. */
const struct report *standing_elsewhere(const struct shared_job *j, const struct picture *p);

/*
 * Is a place to be found? A root that is silent may have its run on still, so it keeps the job
 * until all workers have come anew; so does one that takes no more runs, but not where its run is
 * on elsewhere, and would move there.
 */
bool standing_is_due(const struct shared_job *j, const struct picture *p);

/* Has this node given the job up? Why, in words; NULL: it has not. */
const char *standing_refused_why(const struct shared_job *j, const char *node);
bool standing_is_refused(const struct shared_job *j, const char *node);

#endif
