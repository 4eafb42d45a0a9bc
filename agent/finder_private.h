/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What finder*.c share. Nobody else includes this. */
#ifndef TALLY_AGENT_FINDER_PRIVATE_H
#define TALLY_AGENT_FINDER_PRIVATE_H

#include "agent/core/paths.h"
#include "agent/edge/teller.h"
#include "finder.h"

enum {
	FINDER_EVERY_MS = 3000, /* routes of other nodes may have changed, and nobody says so */
};

/* What a peer has said last, of all jobs. */
struct known {
	uint64_t heard_ns; /* 0: never */
	bool is_silent; /* it had not answered when the last round ended, and has not since */
	unsigned int owns;
	struct sockaddr_storage own[PATHS_OWN_MAX];
};

/* One job whose tree is to be found, while it has a run. */
struct search {
	struct search *next;
	uint32_t job;
	uint16_t epoch;
	uint64_t run_ns; /* since when its run is on; 0: an agent before us began it */
	uint64_t began_ns, due_ns;
	bool is_wanted; /* while finder_look() looks */
	bool walked;
	struct paths_walk walk; /* if it did: of its last round */
};

/* All that is asked for one job, at one time. */
struct round {
	uint32_t number, job;
	uint16_t epoch;
	uint64_t began_ns;
	struct paths_question question;
	unsigned int peers, pending;
	unsigned int hopes; /* of those that are pending: who was not silent the last time */
	struct config_peer peer[CONFIG_PEERS_MAX];
	bool is_hope[CONFIG_PEERS_MAX];
	bool is_asked[CONFIG_PEERS_MAX]; /* not those of another address family than the job */
	struct paths_view *view[CONFIG_PEERS_MAX]; /* NULL: no answer, or not yet */
	struct why why[CONFIG_PEERS_MAX];
	struct paths_view root;
};

/* Goes with a question; its round may be over when the answer comes. */
struct asked {
	uint32_t round; /* 0: free */
	unsigned int peer;
};

struct finder {
	struct driver *driver;
	struct teller *teller;
	sd_event_source *answers, *timer;
	struct search *first;
	struct round *round; /* NULL: none is under way */
	uint32_t rounds;
	bool is_open;
	uint64_t since_ns; /* what is known was heard since then */
	unsigned int peers;
	struct config_peer peer[CONFIG_PEERS_MAX];
	struct known known[CONFIG_PEERS_MAX]; /* of these */
	struct asked asked[TELLER_UNDER_WAY_MAX];
};

const struct core *finder_core(const struct finder *f);

/* Asks all agents for the paths of the job's workers; f->round is then what is asked, or NULL: no
 * memory. */
void finder_round_begin(struct finder *f, struct search *s, const struct job *j);

/* One has answered, perhaps what is over. */
void finder_round_answered(struct finder *f, const struct told *told);

/* When the round ends, whoever has not answered: in ns. */
uint64_t finder_round_until(const struct round *r);

/* What the answers make is said to the core. */
void finder_round_end(struct finder *f);

void finder_round_free(struct round *r); /* NULL is allowed */

/* Of other peers than before nothing is known. */
void finder_peers_note(struct finder *f, const struct config *c);

#endif
