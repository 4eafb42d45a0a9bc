/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a node has to do so that packets take the ways that are wanted (wanted_ways.h): at each node
 * on a way but the last one, those of this worker to this root go to the next node; and results,
 * which come from the root's address, take the same way back, to workers and to nodes that sum. All
 * nodes come to the same answer from what the store says. Pure.
 */
#ifndef TALLY_CLUSTER_STEER_H
#define TALLY_CLUSTER_STEER_H

#include "picture.h"
#include "shared.h"

enum {
	/* Of all jobs, those back too: the kernel looks at one rule after the other. */
	STEER_WAYS_MAX = 1024,
};

struct steer_route {
	struct sockaddr_storage from, to; /* of these machines alone; UDP ports mean nothing */
	struct sockaddr_storage gateway; /* the next node's address on the link */
	char port[IF_NAMESIZE]; /* of this node */
	/* What this node sums goes there with the addresses of workers, which have routes of their
	 * own: no rule is made of this one. By it the agent knows where its sums leave. */
	bool sums;
};

/* A job that has ways. */
struct steer_job {
	char name[NAME_BYTES];
	struct why why; /* "": its packets take them; else why they take those that routing has */
};

/* Zeros: nothing is to be done. For steer_close(). */
struct steer {
	struct steer_route *route; /* of one node */
	struct steer_job *job; /* by name */
	unsigned int routes, jobs;
};

void steer_close(struct steer *s);

/*
 * What `node` has to do. The ways of a job hold all together or not at all: each node on them
 * reports that it steers, and hears the next one at a link that is up at both ends, the only one of
 * the two, where no other machine is seen; no node but the first one knows the worker as its
 * neighbour; those that sum take parts; no job of a lesser name has another way for packets between
 * the same machines; and there are STEER_WAYS_MAX at most. -ENOMEM.
 */
int steer_make(const struct shared *s, const struct picture *p, const char *node,
	       struct steer *ret);

/* NULL: the job has no ways. */
const struct steer_job *steer_job_find(const struct steer *s, const char *job);

/* Where this node sends packets from `from` to `to`, whatever their UDP ports; NULL: as routing has
 * it. */
const struct steer_route *steer_route_find(const struct steer *s,
					   const struct sockaddr_storage *from,
					   const struct sockaddr_storage *to);

bool steer_is_equal(const struct steer *a, const struct steer *b);

#endif
