/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which inner node is still to be told of which run (docs/trees.md). What is wanted stands in the
 * books: each inner node of a run that is on has that run's document, and none has a job that is
 * not there any more, whose run has been over for a while, or whose tree has another node by now.
 * This remembers what was told, and says what comes next. Pure.
 *
 * What is not told is told again: after a second, then after twice the time, up to a minute. Who is
 * due longest comes first. Nobody can keep all the others waiting: a tenant has no more messages
 * under way than are free besides, an address CARRY_ADDRESS_MAX; and all that is for an address
 * waits while that one is silent, but for one try after a second, then after twice the time, up to
 * a minute.
 */
#ifndef TALLY_AGENT_CARRY_H
#define TALLY_AGENT_CARRY_H

#include <sys/queue.h>

#include "books.h"

enum {
	CARRY_REST_S = 10, /* so long a node keeps the slots of a run that is over, for the next */
	CARRY_FAREWELL_S = 3600, /* so long a node is told that it needs them no more */
	CARRY_FAREWELLS_MAX = 4096, /* of a tenant; beyond them the oldest are forgotten */
	CARRY_UNDER_WAY_MAX = 64, /* messages */
	CARRY_ADDRESS_MAX = 4, /* of these to one address */
	CARRY_SILENT_MS = 1000, /* who takes so long for a message that then fails is silent */
};

/* What is for one address, of all jobs. */
struct carry_address {
	struct sockaddr_storage is;
	unsigned int ways; /* that are for it */
	unsigned int under_way;
	unsigned int wait_ms; /* it is silent; 0: it is not */
	uint64_t due_ns; /* then: of the next try */
	struct why trouble; /* then: what the last one said */
};

/* Whose jobs these are. */
struct carry_tenant {
	LIST_ENTRY(carry_tenant) list;
	char name[NAME_BYTES];
	unsigned int ways;
	unsigned int under_way;
	unsigned int farewells;
	TAILQ_HEAD(carry_farewells, carry_way) farewell; /* the oldest first */
	uint64_t forgotten; /* farewells, since there were none */
	uint64_t forgotten_said; /* the caller's: of how many the log knows */
};

/*
 * One inner node of the jobs that have one name, one after another: a node that has the document of
 * a later job needs no farewell to the one before.
 */
struct carry_way {
	struct carry_way *next, **link; /* `link` leads here */
	TAILQ_ENTRY(carry_way) farewells; /* of the tenant, if it is one */
	struct carry_tenant *tenant;
	struct carry_address *at;
	char job[NAME_BYTES];
	struct sockaddr_storage root; /* the job's service address */
	struct sockaddr_storage address; /* the node's, as `at` has it */
	char name[NAME_BYTES]; /* the node's */
	unsigned int node; /* its index in the job's tree */
	uint32_t id; /* the job's number */
	uint16_t epoch; /* of the run that it is to know */
	uint32_t generation; /* and of its tree */
	bool farewell; /* instead: that job is not there any more, or has no run, or the node is
			* none of its */
	uint64_t rest_ns; /* its run is over: a farewell from then on; 0: it is on */
	bool is_wanted; /* while carry_look() looks */
	bool told; /* it knows that */
	bool under_way;
	bool said; /* something was under way once, so the node may know of a job */
	uint64_t began_ns; /* since when it is under way */
	uint32_t said_id; /* what is */
	uint16_t said_epoch;
	uint32_t said_generation;
	bool said_farewell;
	unsigned int wait_ms; /* from the last try to the next */
	uint64_t due_ns;
	uint64_t give_up_ns; /* of a farewell */
	struct why trouble; /* why the last try failed; "": it did not */
};

struct carry {
	bool has_looked; /* before that, another agent may have told anybody anything */
	struct carry_way *first;
	void *index; /* of tsearch(3): by job's name, root and address */
	void *addresses; /* of struct carry_address, the same */
	LIST_HEAD(carry_tenants, carry_tenant) tenants;
	unsigned int under_way;
};

/* Something may be wanted that was not wanted before. -ENOMEM: not all of it is known. */
int carry_look(struct carry *c, const struct books *books, uint64_t now_ns);

/* What is to be told now, which is under way from then on; NULL: nothing. */
struct carry_way *carry_next(struct carry *c, uint64_t now_ns);

/*
 * What was under way has been told (0), or not, and why. It may be gone then. True: `w->trouble` is
 * another one than before.
 */
bool carry_done(struct carry *c, struct carry_way *w, int error, const char *why, uint64_t now_ns);

/* What is known of an inner node of this job; NULL: it was never to be told of its present run. */
const struct carry_way *carry_find(const struct carry *c, const struct job *j, unsigned int node);

/*
 * A tenant of whose farewells some were forgotten; in words which, and what to do. `t`: NULL, or
 * the one before; NULL: there is no other one.
 */
struct carry_tenant *carry_forgotten(const struct carry *c, const struct carry_tenant *t,
				     struct why *ret);

/* Why it was not told; "": it was, or nobody has tried. */
const char *carry_trouble(const struct carry_way *w);

/* It was not reached, and is tried again. */
bool carry_is_away(const struct carry_way *w);

/* That, in words. `j`: the job of this number as the books have it now, or NULL. */
void carry_explain(const struct carry_way *w, const struct job *j, struct why *ret);

/* When carry_next() has something; UINT64_MAX: not before something else happens. */
uint64_t carry_deadline_ns(const struct carry *c);

void carry_clear(struct carry *c);

#endif
