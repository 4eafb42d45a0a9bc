/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the files of the core share. Nobody else includes this. The core does one thing at a time:
 * each step ends in core_await() with the step that comes next, or in nothing: then it is done.
 */
#ifndef TALLY_AGENT_CORE_PRIVATE_H
#define TALLY_AGENT_CORE_PRIVATE_H

#include "core.h"
#include "guesses.h"
#include "plan.h"

struct mac_cache;

/* The next step, with the result of the one before: 0, or a negative errno and c->why. */
typedef void core_step(struct core *c, int r);

enum core_due {
	CORE_DUE_SAVE, /* the books have what the disk has not */
	CORE_DUE_ROLLCALL, /* ranks are detached */
	CORE_DUE_FOLLOW, /* neighbours may have changed */
	CORE_DUE_AGREE, /* the maps may not be as the books say */
	CORE_DUE_BEGIN, /* runs wait for neighbours */
	CORE_DUE_REFILL, /* runs in software may get slots */
	CORE_DUE_LOOK, /* the kernel may not be as the configuration says */
	CORE_DUE_COUNT,
};

/* What is tried again: twice as long after the last time each time, until something changes. */
enum core_retry {
	CORE_RETRY_RESTORE, /* what a reload that failed could not put back */
	CORE_RETRY_WAY, /* to the workers of runs that the maps have lost */
	CORE_RETRY_TORN, /* runs with workers behind no port */
	CORE_RETRIES,
};

/* A change that somebody wants, and what it was that it replaces. */
struct core_change {
	void *connection;
	unsigned int index; /* of a tenant */
	struct books_tenant *tenant; /* before */
	struct job *created; /* in the books */
	struct job *deleted; /* ours: out of the books */
	struct job *rotated; /* in the books, with another token, which was: */
	char token[TOKEN_BYTES];
	struct job *restarted; /* in the books, without its run, which was: */
	struct job_rank *ranks;
	struct job_draw draw;
	uint8_t run_token_key[SECRET_KEY_BYTES];
	uint16_t window;
	const struct config *config; /* wanted */
	const struct config *old;
	struct books *books; /* before; with the same jobs */
	int error; /* the first that there was, while all goes back */
	struct why why;
};

struct core {
	struct books books;
	const struct config *config;
	const char *path;
	struct dataplane_port *ports;
	unsigned int ports_count;
	struct core_counts counts;
	struct quota_use measured[TALLY_TENANTS_MAX]; /* rates alone */
	struct guesses guesses;
	uint64_t refusal_due_ns[CORE_JOIN_REFUSAL_COUNT]; /* when the log may have one again */
	struct mac_cache *macs; /* NULL until a neighbour is heard of */
	bool stopped; /* connections that end now were ended by the agent, and no worker has left */
	uint64_t now_ns;
	uint64_t due_ns[CORE_DUE_COUNT]; /* UINT64_MAX: not due */
	unsigned int retry_ms[CORE_RETRIES]; /* from the last try to the next; 0: none has failed */

	core_step *next; /* NULL: no result is awaited */
	const struct core_event *result;
	struct why why; /* of the last failure */
	bool unrestored; /* the node may not be as the configuration says: it is adopted again */
	struct why not_saved; /* why the last CORE_SAVE failed; or empty */
	void *payload; /* of the action that is awaited */

	struct {
		struct tables is; /* the same as the maps, unless in doubt */
		bool doubted;
		struct tables_job job; /* is being written */
		struct installation *installation; /* to be installed */
		uint32_t id; /* of a job that is to change */
		uint16_t tenant; /* whose gates it gets */
		struct tables_move *move; /* rings that are being moved for it */
		unsigned int moves;
		bool has_moved; /* other rings, or tried to: once for each run */
		core_step *decide, *then;
	} mirror;
	struct core_change change;
	struct {
		struct job *job;
		uint16_t rank;
		uint16_t epoch;
		void *connection; /* of one who leaves and is to be told; of one who joins */
		struct job_draw draw; /* for the run that may begin by this */
	} member;
	struct {
		struct job *job;
		uint16_t due, window; /* chunks: by quota; that fit */
		bool spilled, borrows;
		bool unreached; /* some neighbour does not answer, or not yet */
		struct why why;
	} begin;
	struct {
		uint32_t id;
		unsigned int places;
		core_step *then;
	} remove; /* a run that is to go */
	struct {
		const struct job *job; /* whose, where hops are found for it */
		struct installation *g;
		unsigned int at; /* the copy whose hop comes next */
		uint64_t end_ns; /* of waiting for neighbours */
		core_step *then;
	} install;
	struct {
		struct job *job;
		core_step *then;
	} inner; /* job that is to be installed */
	struct {
		struct plan *plan;
		unsigned int at;
		bool waits; /* some run waits for a way to its workers */
		core_step *then;
	} agree;
	struct {
		struct job *job;
		core_step *then;
	} end;
	struct {
		unsigned int job, rank; /* the books' job, and its rank, that comes next */
		int error;
		unsigned int asked;
	} round; /* of a roll-call */
	struct {
		const struct job *begins;
		struct job **job; /* whose slots on loan are given back for it */
		unsigned int count, at;
		core_step *then;
	} recall;
	struct {
		struct job *job; /* a run in software that may get slots; NULL: none */
	} refill;
	struct job *follow; /* whose neighbours are followed */
	struct {
		uint32_t seen[TALLY_PORTS_MAX]; /* interface of each wanted port */
		uint64_t retry_ns; /* of ports that were refused */
		uint64_t torn_ns; /* when runs that have lost a port are looked after again */
		bool torn; /* of runs, CORE_TROUBLE_RUNS says that one has lost a port */
		struct why missing; /* pins, which are to be put back; or empty */
	} look;
	struct why trouble[CORE_TROUBLES];

	uint64_t number; /* of the last action */
	struct why *texts; /* that these actions point to, or NULL */
	unsigned int taken, actions;
	struct core_action action[CORE_ACTIONS_MAX];
};

/* --- core.c ---------------------------------------------------------------------------------- */

#define ACTION(what, ...) ((struct core_action){ .kind = (what), ##__VA_ARGS__ })

/* An action without a result. */
void core_act(struct core *c, struct core_action action);

/* An action, and what comes after it. `payload` of malloc() is freed then, or NULL. */
void core_await(struct core *c, struct core_action action, void *payload, core_step *next);

__attribute__((format(printf, 4, 5))) void core_log(struct core *c, enum log_level level,
						    const char *what, const char *facts, ...);

/* In so many milliseconds, unless it is due before. */
void core_due(struct core *c, enum core_due what, unsigned int ms);

/* It has failed (again): how long until it is to be tried again. */
unsigned int core_retry(struct core *c, enum core_retry what);

/* Something has changed, by which what failed may succeed: all is tried soon. */
void core_retry_soon(struct core *c);

/* Why, in c->why or by its number. */
const char *core_reason(const struct why *why, int error);

/* -EBUSY: no run begins. */
int core_cordon_check(const struct core *c, struct why *why);

/* -EINVAL: the node wants ingress points, and the tenant has none. */
int core_ingress_check(const struct core *c, const struct config *config, const struct tenant *t,
		       struct why *why);

/* The same for something new of the tenant's, by the configuration that holds; -EINVAL also where
 * the cluster says that the tenant may come in nowhere here. */
int core_entry_check(const struct core *c, const struct tenant *t, struct why *why);

/* After CORE_SAVE: says so if that failed; whatever has failed is tried again. */
void core_saved(struct core *c, int r);

/* What cannot wait for the disk longer than an agent that was killed would make it wait. */
void core_save_soon(struct core *c);

/* The maps may be another thing than we know. */
void core_doubt_maps(struct core *c);

/* Then of runs_agree() that nobody waits for. */
void core_agreed(struct core *c, int r);

/* --- mirror.c -------------------------------------------------------------------------------- */

/*
 * What the maps have, and where jobs lie in them. Nobody else changes the maps of a node that has
 * an agent: they are read at the start, when something failed, and when ports may have changed.
 * Each of these decides in the mirror, has the decision written, and goes on with `then`.
 */

/* The maps, anew. */
void mirror_read(struct core *c, core_step *then);

/*
 * A run that is planned and addressed; `g` lives until `then`. Where free slots are not in a row,
 * other runs' rings are moved; where that is not possible, a run that begins gets the largest
 * window (c->begin.window, and in `g`) for which there are slots in a row.
 */
void mirror_install(struct core *c, struct installation *g, core_step *then);

/* The gates of a tenant for a run that is on. */
void mirror_regate(struct core *c, uint32_t id, uint16_t tenant, core_step *then);

/* -ENOENT: the job is not in the maps. */
void mirror_remove(struct core *c, uint32_t id, core_step *then);

/* --- members.c ------------------------------------------------------------------------------- */

void members_joining(struct core *c, const struct core_event *e);
void members_ended(struct core *c, const struct core_event *e);

/* members_may.c: may who is at the connection speak for a worker of `j`, which may be NULL?
 * -EACCES, -EAGAIN, and why. */
int members_may_speak(struct core *c, const struct core_event *e, const struct job *j);

/*
 * A rank is not at this run any more, and the others are told `how`, unless one has gone before.
 * `connection`: is then told so; may be NULL.
 */
void members_leave(struct core *c, struct job *j, uint16_t rank, uint16_t epoch, const char *how,
		   void *connection);

enum members_whom {
	MEMBERS_ALL, /* who are connected */
	MEMBERS_WAITING,
	MEMBERS_RUNNING, /* or were, until just now */
};

/* They go away with this error. */
void members_send_away(struct core *c, struct job *j, enum members_whom whom, int error,
		       const char *text);

/* Whoever waits to be this rank, or is it, goes. */
void members_kick(struct core *c, struct job *j, uint16_t rank);

/* False: some may not come in any more from where they joined. They go, and the others wait. */
bool members_may_begin(struct core *c, struct job *j);

/* Who is at the run hears that the job has another token, and asks for it by its place. */
void members_tell_rotated(struct core *c, const struct job *j);

/* All are at the run that has begun. */
void members_tell_run(struct core *c, const struct job *j);

/* --- runs.c, agree.c ------------------------------------------------------------------------- */

/*
 * Everybody has come: an epoch, slots, map entries. On failure nobody has moved. Where neighbours
 * are not known yet, the run begins when they are.
 */
void run_begin(struct core *c, struct job *j);

/*
 * One run that waited for neighbours, or an inner one that could not be installed; and all of
 * them, when a neighbour has come to be known.
 */
void runs_begin_again(struct core *c);
void runs_neighbour_heard(struct core *c);

/*
 * Plans a run as this node has it in its maps: c->install.g, which the caller frees also on
 * failure, without hops. `window`: of the next run; 0: the run that is on.
 */
int run_plan(struct core *c, const struct job *j, uint16_t window);

/* All next hops of c->install.g are known: the children out of them, if the run may go so. */
int run_address(struct core *c, struct installation *g);

/* As books_run_window(); whether the job is over its quota is saved, also if no run begins. */
int run_window_find(struct core *c, struct job *j, uint16_t *ret);

/*
 * The run that is on, into the maps. Of a run whose root is here, neighbours that do not answer are
 * waited for: HOP_WAIT_MS altogether.
 */
void run_install(struct core *c, const struct job *j, core_step *then);

/* In software, where the job may: its next run, with this window; 0: the run that is on. */
void run_spill(struct core *c, const struct job *j, uint16_t window, core_step *then);

/*
 * The maps get a run whose root is the software of this machine: the one that is on, or the next
 * one, with this window.
 */
void run_borrow(struct core *c, const struct job *j, uint16_t window, core_step *then);

/* runs_begin_again() when it is j->begin_again_ns. */
void run_again_due(struct core *c, const struct job *j);

/* Takes a run out of the maps. */
void run_end(struct core *c, struct job *j, core_step *then);

/* Reads the maps, plans, applies: afterwards they are as the books say. */
void runs_agree(struct core *c, core_step *then);

/* --- lend.c ---------------------------------------------------------------------------------- */

/*
 * For a run that begins: so many slots become free, by runs that have theirs on loan and go on in
 * software. `own`: they are within its tenant's quota. `then` gets -ENOSPC where loans do not help.
 */
void lend_recall(struct core *c, const struct job *begins, uint32_t slots, bool own,
		 core_step *then);

/* --- refill.c -------------------------------------------------------------------------------- */

/* One run in software gets slots, if there are some. */
void refill_begin(struct core *c);

/* ... in a while, since some run is in software. */
void refill_due(struct core *c);

/* This one gave slots back, or could not use them: it gets none for twice as long as the last
 * time. */
void refill_later(struct core *c, struct job *j);

/* --- inner.c --------------------------------------------------------------------------------- */

/* An inner node's document for a run: the job becomes as it says. */
int inner_apply(struct core *c, const struct request_apply *q);

/*
 * The run of an inner job, into the maps; if that is not possible now, it comes again. `then` gets
 * 0; NULL: nothing comes next.
 */
void inner_install(struct core *c, struct job *j, core_step *then);

/* The run of an inner job is in the maps (0), or c->why says why not: then it comes again. */
void inner_note(struct core *c, struct job *j, int r);

/* --- requests.c, reconfigure.c, rollcall.c, follow.c, mend.c --------------------------------- */

void request_handle(struct core *c, const struct core_event *e);

/* The last step of a request: `tenant` and `job` are what the answer is about, if anything. */
void request_answer(struct core *c, enum core_answer kind, unsigned int tenant,
		    const struct job *job);
void request_refuse(struct core *c, int error, const struct why *why);

/* requests_tenant.c; a negative errno: nothing has happened */
int request_tenant_add(struct core *c, const struct tenant *t);
int request_tenant_set(struct core *c, const struct request *q);
int request_tenant_del(struct core *c, const struct tenant *which);

void reconfigure(struct core *c, const struct core_event *e);

/* Once more what a reload that failed could not put back. */
void restore(struct core *c);

/* Of the configuration that is in force; NULL: it has none of this name, or it is the default. */
const struct tenant *core_tenant_of_file(const struct config *config, const char *name);

/* The ports that ADOPT or MEND brought. */
void ports_keep(struct core *c);

void rollcall_begin(struct core *c);
void rollcall_due(struct core *c); /* if there is anybody to ask */

void follow_begin(struct core *c);
void follow_due(struct core *c);
void follow_heard(struct core *c, const struct core_event *e);
void follow_link(struct core *c, const struct core_event *e);
void follow_route(struct core *c, const struct core_event *e);
void follow_tree(struct core *c, const struct core_event *e);

/* What is below this node in a run that is on has changed, and is written as soon as it can be. */
void follow_rewrite(struct core *c, struct job *j);

void mend_begin(struct core *c);
void mend_due(struct core *c);

/* Logs what has changed; "": there is none. */
void trouble_note(struct core *c, enum core_trouble what, const char *text);

/* The maps or the ports have changed: are workers of runs behind ports still? */
void torn_note(struct core *c);

#endif
