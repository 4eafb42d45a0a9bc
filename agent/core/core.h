/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then core_private.h, members.c, runs.c; books.h, job.h, plan.h.
 *
 * What the agent of one node decides, as a state machine. Pure: the caller says what has happened
 * and what time it is, and performs what the core wants done.
 *
 *	core_handle(c, &event, now_ns);
 *	while (core_next_action(c, &action))
 *		perform it;
 *
 * Actions come in the order in which they are to be performed; all of them are taken before the
 * next core_handle(), and what they point to lives until then. Of some actions the core awaits the
 * result (see enum core_action_kind), as an event with the action's number. One of these at a time
 * is under way, as the last of the actions that were taken; it may take as long as it likes.
 * Meanwhile the core takes no event but the result: others are -EAGAIN, and the caller gives them
 * again.
 *
 * A step that fails is undone: a run that cannot be installed or saved leaves all workers waiting,
 * a tenant or configuration that cannot be applied or saved leaves what was there. What cannot be
 * undone at once is tried again later.
 */
#ifndef TALLY_AGENT_CORE_H
#define TALLY_AGENT_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "agent/policy/quota.h"
#include "books.h"
#include "config.h"
#include "counts.h"
#include "dataplane_state.h"
#include "installation.h"
#include "log_level.h"
#include "request.h"
#include "tables.h"
#include "common/joining.h"

enum {
	/* What one event may cause before a result is awaited: a word to every worker of a job, or
	 * one for every job, and a few more. */
	CORE_ACTIONS_MAX = TALLY_WORKERS_MAX + TALLY_TENANTS_MAX,
	CORE_MEMBERS_MAX = 7168, /* workers that have joined, and are connected */
	CORE_RANDOM_BYTES = 38, /* for a job's token, the epoch before its first run, its birth
				 * and its number */
};

/* --- events ---------------------------------------------------------------------------------- */

enum core_event_kind {
	CORE_START, /* the first event */
	CORE_CONFIG, /* another configuration is wanted */
	CORE_REQUEST, /* one that changes something, from one who may do that */
	CORE_JOINING, /* a worker wants to join or leave, or has not proven that it may */
	CORE_ENDED, /* a connection that said CORE_JOINING for the job `ended` is no more */
	CORE_GONE, /* a worker that CORE_PROBE asked for is not there */
	CORE_NEIGHBOUR, /* the kernel speaks of a neighbour */
	CORE_LINK, /* a link has changed, or events were lost */
	CORE_ROUTE, /* routes have changed */
	CORE_TREE, /* agents have found which inner nodes a job has now */
	CORE_DEADLINE, /* it is core_deadline_ns() */
	CORE_STOP, /* the agent ends, the runs do not; CORE_ENDED means nothing afterwards */
	CORE_RESULT, /* of the action that the core awaits */
};

/* All pointers are the caller's and needed during the call only, where nothing else is said. */
struct core_event {
	enum core_event_kind kind;
	/* REQUEST, JOINING, ENDED: the caller's handle, compared only. NULL: one that has said a
	 * wrong proof and has gone, so nobody is told. */
	void *connection;
	union {
		struct {
			const struct config *config; /* as below; the node is as it says */
			const char *path; /* of its file, for messages; as long as the core */
			struct books *books; /* as read; the core's from now on, left empty */
			struct dataplane_port *ports; /* of malloc(); the core's from now on */
			unsigned int ports_count;
		} start;
		const struct config *config; /* stays while core_config() or an action names it */
		struct {
			const struct request *request;
			const uint8_t *random; /* CORE_RANDOM_BYTES that nobody can guess */
		} asked;
		struct {
			const char *job; /* its name, right or wrong */
			/* Of the token that the worker knows; NULL: not that of the job, if there
			 * is one. Then nothing is known of the message, either. */
			const uint8_t *token_key;
			const struct joining_message *message;
			bool by_place; /* proofs are by the key of its place, which that one is */
			bool again; /* the connection has said CORE_JOINING before, or its wrong
				     * proof was held: it counts however many came before */
			bool crowded; /* half of the connections that there may be are there */
			const struct sockaddr_storage *peer; /* AF_UNIX: on this machine */
			uint32_t port; /* where its packets come in; 0: that is not known */
			uid_t uid; /* of one on this machine */
			const struct job_draw *draw; /* random, not 0: if a run begins by this */
		} joining;
		const char *ended; /* the name */
		struct {
			uint32_t job;
			uint16_t rank;
			uint16_t epoch;
		} gone;
		struct {
			uint32_t ifindex;
			const struct sockaddr_storage *address;
			const uint8_t *mac;
		} neighbour;
		struct {
			uint32_t ifindex; /* 0: whichever */
			const char *state; /* that the port has now, for people */
		} link;
		struct {
			uint32_t job;
			uint16_t epoch; /* of the run whose workers were looked for */
			const struct tree *tree;
			const char *left_out; /* nodes that it might have had, and why not; or "" */
		} found; /* TREE */
		struct {
			uint64_t number; /* of the action */
			int error; /* 0, or a negative errno */
			const char *why; /* what is wrong, for people; may be NULL or "" */
			union {
				const struct hop *hop; /* RESOLVE */
				struct tables *tables; /* READ; the core's, left empty */
				struct {
					struct dataplane_port *ports; /* of malloc(); the core's */
					unsigned int count;
				} adopted; /* ADOPT, MEND: all that are wanted, in order */
				struct {
					struct dataplane_port *ports; /* the same, as they are */
					const char *missing; /* of the pins, for people; or "" */
					const char *state; /* why it cannot be written; or "" */
					const char *taken; /* ports where workers join; or "" */
					const char *metrics_taken; /* the port of metrics; or "" */
					uint32_t services_away; /* a bit for each of the config's */
				} looked; /* LOOK */
				struct {
					unsigned int changed, elsewhere;
				} followed; /* FOLLOW */
			};
		} result;
	};
};

/* --- actions --------------------------------------------------------------------------------- */

enum core_action_kind {
	/* Nothing is awaited: */
	CORE_TELL, /* a worker; ERROR and LEFT are the last words on its connection */
	CORE_DROP, /* a worker's connection, without words: it has another one */
	CORE_ANSWER, /* a request */
	CORE_LOG,
	CORE_CONFIGURED, /* START or CONFIG is done, or failed: then all is as before */
	CORE_FORGET_JOB, /* its traffic: another job may get its number `id` */
	CORE_FORGET_TENANT,
	CORE_FORGET_PROBES, /* all that were asked */
	/* The result is awaited: */
	CORE_RESOLVE, /* next hop to an address; -EHOSTUNREACH: nobody answered in time */
	CORE_READ, /* all that the maps have */
	CORE_INSTALL, /* `write.job`, in the place of an older run */
	CORE_REMOVE, /* `write.before` from the maps */
	CORE_SPILL, /* `write.installation`, in software; a run that is there keeps its sums */
	CORE_UNSPILL, /* job `id`: no more */
	CORE_GATES, /* those of `write.job`, a run that is on */
	CORE_MOVE, /* the rings of runs that are on, in the same epoch; -ENOMEM and the like: of
		      some of these runs nothing may be left in the maps */
	CORE_FOLLOW, /* new next hops of a run's copies, in order; port 0: not known */
	CORE_PUT_TENANT, /* limits and ingress points of tenant `id` */
	CORE_DROP_TENANT,
	CORE_SAVE, /* core_books() to disk */
	CORE_SAMPLE, /* counters are to be read before something goes */
	CORE_PROBE, /* is a worker there? CORE_GONE if not; the result says if it could be asked */
	CORE_FIND_PORTS, /* that the configuration names, for ADOPT */
	CORE_ADOPT, /* programs, slots and ports become what the configuration says */
	CORE_LOOK, /* what the kernel has of what the configuration wants */
	CORE_MEND, /* what of that has been taken away, or has come */
};

enum core_answer {
	CORE_ANSWER_ERROR,
	CORE_ANSWER_DONE,
	CORE_ANSWER_TENANT, /* `tenant` as it is now */
	CORE_ANSWER_CREATED, /* `job` */
	CORE_ANSWER_APPLIED, /* `job` */
};

struct core_action {
	enum core_action_kind kind;
	uint64_t number; /* for the result */
	void *connection; /* TELL, ANSWER */
	int error; /* TELL and ANSWER of an error, CONFIGURED: 0 or a negative errno */
	uint32_t id;
	const struct job *job; /* TELL of a run or a token, ANSWER_CREATED, PROBE */
	uint16_t rank; /* TELL of a run or its ending, PROBE */
	union {
		struct {
			enum joining_kind kind;
			struct tally_set missing; /* WAITING */
			const char *text; /* ERROR; ENDING: what `rank` has done, "left" */
		} tell;
		struct {
			enum core_answer kind;
			unsigned int tenant;
			const char *text; /* ERROR */
		} answer;
		struct {
			enum log_level level;
			const char *what, *facts;
		} log;
		const char *text; /* CONFIGURED with an error */
		struct {
			const struct sockaddr_storage *address;
			unsigned int wait_ms; /* for a neighbour that is not known */
			/* Whose packets go there: of results the root's, of sums this node's;
			 * family 0: not known. */
			const struct sockaddr_storage *from;
		} resolve;
		struct {
			const struct tables_job *before; /* what the maps have of it, or NULL */
			const struct tables_job *job; /* what they are to have */
			const struct installation *installation; /* INSTALL: addressed */
		} write; /* INSTALL, GATES, REMOVE */
		struct {
			const struct tables *tables; /* what the maps have */
			const struct tables_move *move;
			unsigned int count;
		} move;
		struct {
			const struct hop *hops;
			unsigned int count;
		} follow;
		struct {
			struct dataplane_limits limits;
			const struct dataplane_source *sources; /* of restricted ports */
			unsigned int count;
			bool anywhere; /* it has no ingress points, of which those are, at ports
					  that are there: */
			const struct dataplane_source *points;
			unsigned int points_count;
		} tenant;
		const struct config *config;
	};
};

enum core_trouble {
	CORE_TROUBLE_LOOK, /* it cannot even be seen */
	CORE_TROUBLE_PINS,
	CORE_TROUBLE_STATE, /* books cannot be saved */
	CORE_TROUBLE_SERVICE, /* addresses that are not there */
	CORE_TROUBLE_TENANTS, /* jobs are suspended */
	CORE_TROUBLE_RUNS, /* workers are behind an interface that is none of the node's ports */
	CORE_TROUBLE_HIDDEN, /* tenants of the configuration, by those that tallyctl made */
	CORE_TROUBLE_LISTEN, /* another program has the TCP port where workers join */
	CORE_TROUBLE_METRICS, /* or that of metrics */
	CORE_TROUBLE_ROLLCALL, /* the UDP port that workers are asked from is in use */
	CORE_TROUBLE_RESTORE, /* the node is not yet again as before a reload that failed */
	CORE_TROUBLES,
};

/* --- the core -------------------------------------------------------------------------------- */

struct core;

/* So long is nothing to come of a proof from there, be it right: too many were wrong. */
uint64_t core_guesses_wait_ns(const struct core *c, const struct sockaddr_storage *peer, uid_t uid,
			      uint64_t now_ns);

/* The caller's, for core_free(), which allows NULL. NULL: no memory. */
struct core *core_new(void);
void core_free(struct core *c);
static inline void core_freep(struct core **c) { core_free(*c); }

/*
 * 0; -EAGAIN: a result is awaited, and this is none; -EINVAL: this is the result of nothing that
 * is awaited. `now_ns` is of a clock that never goes back.
 */
int core_handle(struct core *c, const struct core_event *e, uint64_t now_ns);

/* False: there is none for now. */
bool core_next_action(struct core *c, struct core_action *ret);

/*
 * Books that are empty, or those of another configuration, for this one. As books_configure(): on
 * failure they are half-way.
 */
int core_books_configure(struct books *b, const struct config *config, struct why *why);

/*
 * Has tallyctl made a tenant of a name that the configuration has, too? Then that of tallyctl
 * counts; `why` says so, and what to do. `seen`: tenants that are looked at, a bit for each.
 */
bool core_tenant_is_hidden(const struct books *b, const struct config *config, const char *path,
			   uint64_t seen, struct why *why);

/* When CORE_DEADLINE is due; UINT64_MAX: never, or first a result must come. */
uint64_t core_deadline_ns(const struct core *c);

/*
 * Rates of a tenant, below TALLY_TENANTS_MAX, for the policy of quotas; of `rates` only these are
 * read. Nothing is decided at once.
 */
void core_measured(struct core *c, unsigned int tenant, const struct quota_use *rates);

/* --- what it knows, for those who show it ---------------------------------------------------- */

const struct books *core_books(const struct core *c);
const struct config *core_config(const struct core *c); /* NULL before START */
const char *core_path(const struct core *c); /* of its file */
/* All that are wanted; ifindex 0: not attached. */
const struct dataplane_port *core_ports(const struct core *c, unsigned int *ret_count);
const char *core_port_name(const struct core *c, uint32_t ifindex); /* "": none of the node's */

/* What the maps have; NULL: the core is in doubt, and reads them before it decides there. */
const struct tables *core_tables(const struct core *c);

const struct core_counts *core_counts(const struct core *c);

/* What is not as it should be, and others must mend; or "". */
const char *core_trouble(const struct core *c, enum core_trouble what);

/*
 * The same for one who sees these tenants, a bit for each: it names no other tenant and no job of
 * another. False: there is none to tell of.
 */
bool core_trouble_seen(const struct core *c, enum core_trouble what, uint64_t seen,
		       struct why *ret);

/* Is all of the books on disk? Are the maps as the books say? False: that is still to be done. */
bool core_is_saved(const struct core *c);
bool core_is_agreed(const struct core *c);

/* Why the last write of the books failed; "": it did not. */
const char *core_not_saved(const struct core *c);

#endif
