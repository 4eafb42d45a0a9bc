/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A job of this node as its agent knows it: who may take part, who has come, who is at it. Pure.
 *
 * A job has one run at a time. Workers come one by one and wait; when all ranks are there the
 * run begins, with an epoch of its own. It is over when all have left. A rank whose worker has
 * left, or is not connected any more because the agent was restarted, may be taken
 * again: whoever takes it waits for the next run, and the one that goes on is not touched.
 *
 * An inner job is another thing: workers join it at its root, which is another agent's node, and
 * the one run that it has here is that of its document.
 */
#ifndef TALLY_AGENT_JOB_H
#define TALLY_AGENT_JOB_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/jobfile.h"
#include "common/name.h"
#include "tenant.h"
#include "tree.h"
#include "common/owned.h"
#include "common/secret.h"
#include "common/why.h"

/* What a rank is in the run. */
enum job_presence {
	JOB_ABSENT, /* there is no run */
	JOB_RUNNING, /* at it, and connected */
	JOB_DETACHED, /* at it, as far as we know: its connection ended with another agent */
	JOB_LEFT,
};

struct job_rank {
	enum job_presence presence;
	struct sockaddr_storage address; /* in the run */
	bool waiting; /* somebody waits to be this rank in the next run */
	struct sockaddr_storage next;
	struct hop way; /* to `next`, as it was when somebody joined; port 0: not known */
	uint16_t mtu; /* of the way from `next`, as the worker says; 0: it does not */
	uint16_t payload_bytes; /* of the run that the worker is in, and that is to go on here;
				 * 0: it is in none, or does not say */
	char port[IF_NAMESIZE]; /* where what it sends comes in, without a tag; "": nobody knows */
	void *connection; /* the caller's: of the worker that waits or is at it; or NULL */
	uint64_t stays_ns; /* when that one said that it stays; 0: it has not */
	bool outdated; /* at the run with an earlier token: it was not told the job's yet */
};

/* What is drawn for one run. */
struct job_draw {
	uint64_t nonce; /* 0: there is no run, or an older agent began it */
	uint8_t secret[SECRET_KEY_BYTES]; /* of it the ranks' keys are made; zeros: no keys */
};

struct job {
	char name[NAME_BYTES];
	char token[TOKEN_BYTES]; /* a secret */
	uint32_t id;
	uint64_t birth; /* random; 0: an older agent created the job, or its root is elsewhere */
	char tenant_name[NAME_BYTES]; /* whose it is, also while that one is not in the books */
	uint16_t tenant; /* its index; 0 with a name: none now, and the job is suspended */
	uint16_t workers; /* 1 .. TALLY_WORKERS_MAX */
	uint16_t window; /* that was asked for; a run may get a smaller one */
	uint16_t payload_bytes; /* that was asked for; or of the run, or the last one */
	bool fits; /* nobody has asked: each run gets what its ways carry (payload.h) */
	uint16_t begin_payload; /* of the run that begins next; 0: payload_bytes */
	struct why unfit; /* why a run that its workers are in cannot go on here; or empty */
	uint64_t unfit_ns; /* and when that was so last */
	struct sockaddr_storage service; /* with TALLY_UDP_PORT */
	uint16_t epoch; /* of the last run */
	uint16_t run_window; /* 0: no run */
	bool over; /* more slots than its tenant had left: none are promised to it */
	bool spilled; /* the run, or the last one: summed in software, without slots of its own */
	bool borrows; /* the same: its sums are made in slots of the pool, as far as these go; here
		       * the root is the software, or else another node. A run that does neither,
		       * of a job that is over its quota, has slots on loan */
	bool tags; /* packets of its next run carry tags by the keys of its ranks */
	bool sealed; /* its workers have a secret, which follows from the token */
	bool clustered; /* agents share it (agent/placing.h), and decide where its root is */
	struct job_draw draw; /* for the run that is on */
	uint8_t run_token_key[SECRET_KEY_BYTES]; /* the key of the token that workers of the run
						  * joined with, if the job has had another one
						  * since; else zeros */
	uint64_t incomplete_ns; /* since when some are there and others not; 0: that is not so */
	struct job_rank *rank; /* `workers` of them */
	struct tree *tree; /* its inner nodes, and ours to free; NULL: it has one node */
	struct document *document; /* of an inner job, and ours to free; NULL: the root is here */
	uint64_t begin_by_ns; /* all have come, and neighbours are waited for; 0: they are not; of
			       * an inner job: UINT64_MAX: it is to be installed still */
	uint64_t begin_again_ns; /* when these are looked for again */
	struct job_draw begin_draw; /* for the run that begins then */
	bool follow; /* neighbours of the run may have changed */
	bool rewrite; /* its tree has: the run is written anew as soon as all neighbours are known
		       */
	struct why left_out; /* inner nodes that its tree might have had, and why not; or empty */
	struct why astray; /* ranks that its tree has elsewhere, when the run began; or empty */
	uint64_t refill_ns; /* when its run in software may get slots */
	unsigned int refill_apart_ms; /* how long it waits since it gave some back, or could not
				       * use them; 0: neither */
	uint64_t settled_ns; /* until then its ring is not moved: it was, a moment ago */
	struct why trouble; /* what is wrong with the run, or was when that ended; or empty */
};

/*
 * A copy of `facts` with no one there; its ranks, tree and document are not looked at. The
 * caller's. NULL: no memory.
 */
struct job *job_new(const struct job *facts);
void job_free(struct job *j);
static inline void job_freep(struct job **j) { job_free(*j); }

/* Gives it a copy of the tree, if that has nodes, or is to be found. -ENOMEM. */
int job_tree_set(struct job *j, const struct tree *tree);

/* Is its tree one that agents find, and may change in mid-run? */
bool job_tree_moves(const struct job *j);

/* An inner job, with a copy of the document. The caller's. NULL: no memory. */
struct job *job_new_inner(const struct document *document, unsigned int tenant);

/* What this node has to do in its runs. */
void job_role(const struct job *j, struct installation_role *ret);

/* -EINVAL, and why it cannot be done on an inner node of the job. */
int job_is_inner(const struct job *j, struct why *why);

/* Does its run stand in the maps, as far as it is on? */
bool job_is_in_maps(const struct job *j);

/* Is its run on, as far as this node does not wait to take part in it? */
bool job_is_running(const struct job *j);

enum {
	TOKEN_RANDOM_BYTES = 24, /* of a token that the agent makes */
};

/* What is said to those who waited with an earlier one. */
#define JOB_ROTATED "the job has a new token: join again with the new one"

/* A new one, of random bytes. Who has joined with the old one stays. */
void job_token_make(struct job *j, const uint8_t *random);

/* Before the job gets another token: what workers of its run joined with is kept. */
void job_token_goes(struct job *j);

/* Since its run began, has the job got another token? */
bool job_is_rotated(const struct job *j);

/* All ranks of the run are to be told the job's token. */
void job_outdate(struct job *j);

/*
 * Somebody wants to be `rank` (-1: any) in the next run. -ERANGE: no such rank, or any in a tree
 * that was written; -EADDRINUSE: it is taken, or the address is; -EUSERS: all are taken;
 * -EAFNOSUPPORT: not of the service's family.
 */
int job_join(struct job *j, int rank, const struct sockaddr_storage *address, uint16_t *ret,
	     struct why *why);

/* Somebody who waits does not any more, nor does the run wait for neighbours. */
void job_unjoin(struct job *j, uint16_t rank);

/* Is someone waiting for each rank? */
bool job_is_ready(const struct job *j);

/* The run that all wait for, with this window and begin_draw: what nodes are to be told. */
void job_next_run(const struct job *j, uint16_t window, struct run *ret);

/* The run that is on, in the same form. */
void job_this_run(const struct job *j, struct run *ret);

/* The key of a rank in the run that is on. False: the run has no keys. */
bool job_rank_key(const struct job *j, uint16_t rank, uint8_t ret[SECRET_RANK_KEY_BYTES]);

/*
 * The key of the place that a rank has in the run with this nonce: of the token that its worker
 * joined with, whatever the job has now. False: there is no such place, or the run has no keys.
 */
bool job_place_key(const struct job *j, unsigned int rank, uint64_t nonce,
		   uint8_t ret[SECRET_KEY_BYTES]);

/*
 * All keys that this node has of job_next_run() or job_this_run(): of an inner job's run those of
 * the document.
 */
void job_run_keys(const struct job *j, const struct job_draw *draw, struct run *run);

/* All who wait are at it now, with begin_draw. */
void job_begin(struct job *j, uint16_t window, bool spilled);

/*
 * Has its tenant gone, as from the configuration before a start? Then its run is not in the maps,
 * nobody joins, and all is kept until the tenant comes back.
 */
bool job_is_suspended(const struct job *j);

/* Is a rank at this epoch's run, as far as we know? */
bool job_is_at(const struct job *j, uint16_t rank, uint16_t epoch);

/* Are all ranks at the run still, as far as we know? */
bool job_is_whole(const struct job *j);

/*
 * A worker that is in the run as this rank has a connection again: one that was told of no end of
 * the first, as that agent is gone. `from`: where the connection comes from, whatever its port; the
 * family AF_UNIX: this machine. `by_place`: it has proven its place, so a connection that stands is
 * its own, and means nothing any more. -ECANCELED: it is in no such run; -EADDRINUSE: the rank has
 * a connection that stands; -EINVAL: the rank is at another address; and why.
 */
int job_attach(struct job *j, uint16_t rank, uint16_t epoch, uint64_t nonce, bool by_place,
	       const struct sockaddr_storage *from, struct why *why);

/* A rank has left this epoch's run; an older epoch is none of its business. True: it is over. */
bool job_leave(struct job *j, uint16_t rank, uint16_t epoch);

/* The run is over, whoever is still there. */
void job_end(struct job *j);

/* All connections have ended, but not because the workers have. */
void job_detach(struct job *j);

/* Ranks that nobody waits for. */
struct tally_set job_missing(const struct job *j);

/* How many ranks wait for the next run, or are at it in this one. */
unsigned int job_joined(const struct job *j);

/* Does its run hold slots on loan, beyond its tenant's quota? */
bool job_is_lent(const struct job *j);

/* Slots that its run holds, and that one would hold with the window that was asked for. None: where
 * sums are made in software; where it is over its quota. */
uint32_t job_slots(const struct job *j);
uint32_t job_slots_wanted(const struct job *j);

#endif
