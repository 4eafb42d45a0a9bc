/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which inner node is still to be told of which run (docs/trees.md). What is wanted stands in the
 * books: each inner node of a run that is on has that run's document, and none has a job that is
 * not there any more, or whose tree has another node by now. This remembers what was told, and says
 * what comes next. Pure.
 *
 * What is not told is told again: after a second, then after twice the time, up to a minute.
 */
#ifndef TALLY_AGENT_CARRY_H
#define TALLY_AGENT_CARRY_H

#include "books.h"

enum {
	CARRY_FAREWELL_S = 3600, /* so long a node is told that a job is not there any more */
};

/*
 * One inner node of the jobs that have one name, one after another: a node that has the document of
 * a later job needs no farewell to the one before.
 */
struct carry_way {
	struct carry_way *next;
	char job[NAME_BYTES];
	struct sockaddr_storage root; /* the job's service address */
	struct sockaddr_storage address; /* the node's */
	char name[NAME_BYTES]; /* the node's */
	unsigned int node; /* its index in the job's tree */
	uint32_t id; /* the job's number */
	uint16_t epoch; /* of the run that it is to know */
	uint32_t generation; /* and of its tree */
	bool farewell; /* instead: that job is not there any more, or the node is none of its */
	bool is_wanted; /* while carry_look() looks */
	bool told; /* it knows that */
	bool under_way;
	uint32_t said_id; /* what is under way */
	uint16_t said_epoch;
	uint32_t said_generation;
	bool said_farewell;
	unsigned int wait_ms; /* from the last try to the next */
	uint64_t due_ns;
	uint64_t give_up_ns; /* of a farewell */
	struct why trouble; /* why the last try failed; "": it did not */
};

struct carry {
	struct carry_way *first;
	void *index; /* of tsearch(3): by job's name, root and address */
};

/* Something may be wanted that was not wanted before. -ENOMEM: not all of it is known. */
int carry_look(struct carry *c, const struct books *books, uint64_t now_ns);

/* What is to be told now, which is under way from then on; NULL: nothing. */
struct carry_way *carry_next(struct carry *c, uint64_t now_ns);

/* What carry_next() gave could not even be tried: it comes again, and nothing was wrong with it. */
void carry_put_back(struct carry_way *w);

/*
 * What was under way has been told (0), or not, and why. It may be gone then. True: `w->trouble` is
 * another one than before.
 */
bool carry_done(struct carry *c, struct carry_way *w, int error, const char *why, uint64_t now_ns);

/* What is known of an inner node of this job; NULL: it was never to be told of its present run. */
const struct carry_way *carry_find(const struct carry *c, const struct job *j, unsigned int node);

/* It was not reached, and is tried again. */
bool carry_is_away(const struct carry_way *w);

/* That, in words. `j`: the job of this number as the books have it now, or NULL. */
void carry_explain(const struct carry_way *w, const struct job *j, struct why *ret);

/* When carry_next() has something; UINT64_MAX: not before something else happens. */
uint64_t carry_deadline_ns(const struct carry *c);

void carry_clear(struct carry *c);

#endif
