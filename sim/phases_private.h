/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What phases.c (turns and time) and phases_rates.c (who shares what) both see. Pure. */
#ifndef TALLY_SIM_PHASES_PRIVATE_H
#define TALLY_SIM_PHASES_PRIVATE_H

#include <stddef.h>

#include "phases.h"

enum phase {
	OVER, /* or has not begun */
	COMPUTES, /* or stands still */
	COMMUNICATES,
};

struct turn {
	struct phases_job job;
	struct phases_result result;
	enum phase phase;
	double ends_s; /* the phase, as things stand */
	double left; /* bytes of this iteration, at since_s; 0: all are to come */
	double rate, since_s;
	double began_s; /* to communicate */
	double sent; /* by the links of this flow */
	double alone; /* its rate if nobody else were there: never more */
	uint32_t iterations; /* still to be ended */
	uint32_t heap_at;
	uint32_t *tight; /* [tights]: those of its uses that are of tight links */
	unsigned int tights;
	uint64_t seen; /* by which search */
};

struct member {
	uint32_t job;
	double times; /* its rate is what it uses of the link */
	double most; /* of the link, when it is alone */
};

/*
 * A link, and the jobs that will use it, whatever they do now. Tight: it is too small for all of
 * them at once, or else no rate depends on it.
 */
struct shared {
	struct member *member;
	uint32_t members, room;
	bool tight;
	uint64_t seen; /* by which search; */
	uint32_t local; /* and its number there, or PHASES_NONE */
};

/* Jobs that get new rates, as a small problem of their own. */
struct search {
	uint64_t number;
	uint32_t *job; /* [jobs] */
	unsigned int jobs, links, uses;
	uint32_t *link; /* [links] */
	double *capacity; /* [links]: for the jobs of the search */
	struct fair_flow *flow;
	double *rate;
	struct fair_use *use;
	size_t link_room, capacity_room, use_room;
};

struct phases {
	unsigned int links, jobs;
	double *capacity; /* [links] */
	struct shared *shared; /* [links] */
	struct turn *turn; /* [jobs] */
	double *carried; /* [links], without what `sent` has */
	uint32_t *heap; /* jobs, by ends_s */
	unsigned int running;
	struct search search;
	unsigned int near; /* 0: no limit */
	double now_s;
	uint64_t events;
};

/* A job has, or has no more, the links of its flow. -EINVAL, -ENOMEM. */
int phases_put_in(struct phases *p, uint32_t i);
void phases_take_out(struct phases *p, uint32_t i);

/* Job i begins or ends to communicate: rates of those that compete with it. -ENOMEM. */
int phases_find_rates(struct phases *p, uint32_t i);

/* Puts the job where its ends_s belongs. */
void phases_heap_fix(struct phases *p, uint32_t i);

/* What job i has sent up to now is no longer left. */
void phases_settle(struct phases *p, struct turn *t);

#endif
