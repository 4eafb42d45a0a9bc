/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A world around one core: maps, a disk and workers, as plain memory. It performs what the core
 * wants, fails what the test wants to fail, and outlives the core when that is thrown away. After
 * each event it asks whether all that must hold does hold; if not, it says what as world.wrong.
 */
#ifndef TESTS_UNIT_CORE_WORLD_H
#define TESTS_UNIT_CORE_WORLD_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core.h"
#include "agent/core/plan.h"
#include "agent/core/tables.h"
#include "agent/edge/books_file.h"
#include "common/address.h"

enum {
	WORLD_WORKERS = 24,
	WORLD_RANKS = WORLD_WORKERS, /* of a job, at most */
	WORLD_JOBS = 16, /* j0, j1, ...: names that tests use */
	WORLD_PORTS = 3,
	WORLD_PROBES = 64, /* of one round */
};

enum worker_state {
	AWAY,
	ASKS,
	WAITS,
	RUNS
};

struct world_worker {
	enum worker_state state;
	bool connected;
	char job[NAME_BYTES], token[TOKEN_BYTES]; /* with which it joined */
	uint16_t rank, epoch;
	uint64_t nonce;
	struct tally_key key; /* zeros: its run has none */
	uint8_t place[SECRET_KEY_BYTES]; /* if it has one: */
	bool has_place;
	unsigned int pokes; /* how often it heard that the job has another token */
	uint32_t port; /* where its connection comes in; 0: nobody knows */
	uint16_t mtu; /* that it says its way has; 0: nothing */
	uint32_t serial; /* of the job: another one may get its name */
	unsigned int finals; /* last words since it asked */
	bool ending; /* it has been told that its run is ending */
	bool dropped; /* the agent has ended its connection without a word */
};

struct world_job { /* what its owner knows of it */
	enum {
		NOT_THERE,
		THERE,
		PERHAPS
	} state;
	char token[TOKEN_BYTES];
	uint32_t serial;
	int told_epoch; /* of the last run that anybody was told of; -1: none */
	uint64_t told_nonce;
	struct tally_key told_key[WORLD_RANKS];
	uint8_t told_secret[SECRET_KEY_BYTES]; /* of which these are made; zeros: none */
	uint64_t told_event;
	uint32_t told_id;
	bool unsaved; /* the disk does not know that run */
};

struct world_link { /* a port that may come and go, whatever the core thinks of it */
	uint32_t ifindex; /* 0: gone */
	uint32_t attached; /* where our program is; 0: nowhere */
};

struct world {
	struct core *core;
	uint64_t now_ns, events;
	struct config *config, *other; /* what it began with, and what CORE_CONFIG brings */

	struct {
		uint32_t id;
		uint16_t epoch, tenant;
		struct tally_key key[WORLD_RANKS];
	} spilled[TALLY_JOBS_MAX];
	unsigned int spills;
	struct tables maps;
	struct tally_key rank_key[WORLD_JOBS][WORLD_RANKS]; /* in the maps, by group */
	struct tally_key node_key[WORLD_JOBS]; /* the same */
	struct world_link link[WORLD_PORTS];
	uint32_t links_made;
	unsigned int ports; /* that were adopted */
	bool no_pins, is_changed; /* by others; since the core looked */
	unsigned int no_way; /* so many more look-ups of a neighbour find no route */
	struct dataplane_limits limits[TALLY_TENANTS_MAX];
	bool limited[TALLY_TENANTS_MAX];

	char *disk;
	struct world_worker worker[WORLD_WORKERS];
	struct world_job job[WORLD_JOBS];
	unsigned int jobs_made, answers, answers_due, runs_told, restores_failed;
	int configured; /* the last CORE_CONFIGURED */
	int answered; /* the last answer: 0, or its error */
	char answer_why[256]; /* the last error's text */
	char refused[512]; /* what the last worker was told that was */
	uint32_t number; /* random, for a job that is being created */
	bool creates; /* is one? */

	/* What is to go wrong: the action number `crash_at` finds no core any more; the awaited
	 * action number `fail_at` fails; one in `fail_one_in` does. 0: none. */
	uint64_t actions, awaited, crash_at, fail_at;
	unsigned int tried[CORE_MEND + 1]; /* of each kind of action whose result is awaited */
	unsigned int fail_one_in;
	enum core_action_kind failed_kind;
	bool crashed, starting;
	bool nobody_answers; /* neighbours */
	unsigned int wait_ms_max; /* that the core would have waited for one of them */
	bool port_is_taken; /* where workers join, and are asked from */
	unsigned int backs_failed; /* so many more adoptions of what was before a reload */
	uint32_t mtu; /* of the ports; 0: 1500 */
	uint16_t carried; /* payload of the run that a worker says is to go on here */
	unsigned int restarts; /* whenever somebody crashed */
	unsigned int refusals_logged; /* of workers, for operators to see */
	unsigned int mended_logged; /* pins */
	unsigned int astray_logged; /* runs with ranks elsewhere than their trees say */
	unsigned int inner_logged; /* runs that wait at an inner node */
	uint64_t from; /* the run that a worker says it is in when it joins */
	bool ranked; /* a worker says which rank it wants; otherwise any */
	bool leaves; /* a worker says so; otherwise its connection only ends */
	bool stays; /* a worker says so; otherwise its job has another token */
	bool by_place; /* what is said has proofs by the key of a place */
	struct world_worker *line; /* over its connection; NULL: over the speaker's own */
	uint64_t random;
	struct core_action pending;
	bool is_pending;
	struct core_event gone[WORLD_PROBES]; /* if nobody is there */
	unsigned int probes;

	char wrong[512];
};

static inline uint32_t world_random(struct world *w, uint32_t below)
{
	w->random = w->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(w->random >> 33) % below;
}

#define WRONG(w, ...) (*(w)->wrong ? 0 : snprintf((w)->wrong, sizeof((w)->wrong), __VA_ARGS__))

/* Of a job, by its name. */
static inline unsigned int number_of(const char *job) { return strtoul(job + 1, NULL, 10); }

static inline struct sockaddr_storage world_address(unsigned int worker)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (void *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a4d0101 + worker);
	in->sin_port = htons(40000 + worker);
	return a;
}

/* --- the spill ------------------------------------------------------------------------------- */

/* Its place; the first free one if the job is not there. */
static inline unsigned int spill_find(const struct world *w, uint32_t id)
{
	unsigned int i = 0;

	while (i < w->spills && w->spilled[i].id != id)
		i++;
	return i;
}

static inline bool spill_has(const struct world *w, const struct job *j)
{
	unsigned int i = spill_find(w, j->id);

	return i < w->spills && w->spilled[i].epoch == j->epoch &&
	       w->spilled[i].tenant == j->tenant;
}

static inline void spill_put(struct world *w, const struct installation *g)
{
	unsigned int i = spill_find(w, g->id);

	w->spilled[i].id = g->id;
	w->spilled[i].epoch = g->job.epoch;
	w->spilled[i].tenant = g->job.tenant;
	memcpy(w->spilled[i].key, g->key, sizeof(w->spilled[i].key));
	w->spills += i == w->spills;
}

static inline void spill_remove(struct world *w, uint32_t id)
{
	unsigned int i = spill_find(w, id);

	if (i < w->spills)
		w->spilled[i] = w->spilled[--w->spills];
}

/* --- the maps -------------------------------------------------------------------------------- */

static inline void maps_put(struct world *w, const struct tables_job *job)
{
	struct tables_job copy;

	assert_int_equal(tables_job_copy(job, &copy), 0);
	assert_int_equal(tables_put(&w->maps, &copy), 0);
}

/* NULL: they are forgotten. */
static inline void keys_put(struct world *w, const struct tables_job *j,
			    const struct tally_key *key)
{
	assert_true(j->job.group < WORLD_JOBS);
	for (unsigned int rank = 0; j->job.keyed && rank < WORLD_RANKS; rank++)
		w->rank_key[j->job.group][rank] = key ? key[rank] : (struct tally_key){ { 0 } };
	if (j->job.keyed)
		w->node_key[j->job.group] = key && j->job.node_key ? key[TALLY_NODE_KEY]
								   : (struct tally_key){ { 0 } };
}

/* As the data plane does: what the core says is written, and nothing is decided. */
static inline void maps_write(struct world *w, const struct core_action *a)
{
	const struct tables_job *there = tables_find(&w->maps, a->id);

	if (!!there != !!a->write.before ||
	    (there && there->job.epoch != a->write.before->job.epoch))
		WRONG(w, "job %u: the maps have another run than the core says", a->id);
	if (there && a->kind != CORE_GATES)
		keys_put(w, there, NULL);
	if (a->kind == CORE_INSTALL)
		keys_put(w, a->write.job, a->write.installation->key);
	if (a->kind == CORE_REMOVE)
		tables_forget(&w->maps, a->id);
	else
		maps_put(w, a->write.job);
}

/* Of each job that moves, nothing may be left if that fails half-way. */
static inline void rings_move(struct world *w, const struct core_action *a, bool fails)
{
	for (unsigned int i = 0; i < a->move.count; i++) {
		const struct tables_move *move = &a->move.move[i];
		const struct tables_job *there = tables_find(&w->maps, move->id);

		if (!there)
			WRONG(w, "job %u is to move, and is not there", move->id);
		else if (!fails)
			tables_move(&w->maps, move, 1);
		else if (world_random(w, 2)) {
			keys_put(w, there, NULL);
			tables_forget(&w->maps, move->id);
		}
	}
}

/* --- what must hold -------------------------------------------------------------------------- */

static inline bool is_row_shared(const struct tables_job *a, const struct tables_job *b)
{
	for (unsigned int i = 0; i < a->gates; i++)
		for (unsigned int k = 0; k < b->gates; k++)
			if (a->gate[i].row == b->gate[k].row)
				return true;
	return false;
}

static inline void maps_check(struct world *w)
{
	for (unsigned int i = 0; i < w->maps.jobs; i++) {
		const struct tables_job *m = &w->maps.job[i];
		const struct tally_job *a = &m->job;

		if (a->borrows ? w->maps.pool && a->slot_base >= w->maps.pool
			       : (uint64_t)a->slot_base + a->slot_mask >= w->maps.slots)
			WRONG(w, "job %u has slots that the node has not", m->id);
		for (unsigned int k = 0; k < i; k++) {
			const struct tally_job *b = &w->maps.job[k].job;

			if (!a->borrows && !b->borrows &&
			    a->slot_base <= b->slot_base + b->slot_mask &&
			    b->slot_base <= a->slot_base + a->slot_mask)
				WRONG(w, "jobs %u and %u share slots", m->id, b->id);
			if (a->group == b->group)
				WRONG(w, "jobs %u and %u share a group", m->id, b->id);
			if (is_row_shared(m, &w->maps.job[k]))
				WRONG(w, "jobs %u and %u share a row", m->id, b->id);
		}
	}
}

/* Where the core is in doubt, it says nothing of them. */
static inline void mirror_check(struct world *w)
{
	const struct tables *t = core_tables(w->core);
	bool same;

	if (!t)
		return;
	same = t->slots == w->maps.slots && t->jobs == w->maps.jobs;
	if (!w->is_changed)
		same &= t->ports == w->maps.ports &&
			!memcmp(t->port, w->maps.port, t->ports * sizeof(*t->port));
	for (unsigned int i = 0; same && i < t->jobs; i++)
		same = tables_job_is_equal(&t->job[i], &w->maps.job[i]);
	if (!same)
		WRONG(w, "maps: %u jobs, %u ports; the core knows %u jobs, %u ports", w->maps.jobs,
		      w->maps.ports, t->jobs, t->ports);
}

static inline bool is_key(const struct tally_key *key) { return key->word[0] | key->word[1]; }

/* Keys of runs that are over are nowhere; those of a run are as the worker was told. */
static inline void keys_check(struct world *w)
{
	const struct books *b = core_books(w->core);
	bool used[WORLD_JOBS] = { false }, shares[WORLD_JOBS] = { false };

	for (unsigned int i = 0; i < w->maps.jobs; i++) {
		const struct tally_job *m = &w->maps.job[i].job;

		used[m->group] = m->keyed;
		shares[m->group] = m->keyed && !m->bound; /* with other nodes, or the spill */
	}
	for (unsigned int i = 0; i < WORLD_JOBS; i++)
		if (is_key(&w->rank_key[i][0]) != used[i] || is_key(&w->node_key[i]) != shares[i])
			WRONG(w, "group %u has keys, or none", i);
	for (unsigned int i = 0; i < b->jobs; i++)
		if (!b->job[i]->run_window && b->job[i]->draw.secret[0])
			WRONG(w, "%s: a run that is over has a secret", b->job[i]->name);
	for (unsigned int i = 0; i < WORLD_WORKERS; i++) {
		const struct world_worker *p = &w->worker[i];
		const struct job *j = books_job_find(b, p->job);
		const struct tables_job *m = j ? tables_find(&w->maps, j->id) : NULL;
		const struct tally_key *keys = m ? w->rank_key[m->job.group] : NULL;

		if (p->state != RUNS || !j || j->epoch != p->epoch ||
		    w->job[number_of(p->job)].serial != p->serial)
			continue;
		if (j->run_window && j->spilled && spill_has(w, j))
			keys = w->spilled[spill_find(w, j->id)].key;
		if (keys && memcmp(&p->key, &keys[p->rank], sizeof(p->key)) != 0)
			WRONG(w, "worker %u has another key than the maps, or the spill", i);
	}
}

/* Only when nothing is under way: then the maps are what the books say. */
static inline void maps_agree_check(struct world *w)
{
	const struct books *b = core_books(w->core);
	unsigned int runs = 0, spilled = 0, count, wanted;
	const struct dataplane_port *ports = core_ports(w->core, &count);

	for (unsigned int i = 0; i < b->jobs; i++) {
		struct dataplane_gate gates[WORLD_PORTS];
		const struct job *j = b->job[i];
		const struct tables_job *m = tables_find(&w->maps, j->id);

		if (!j->run_window || (j->document && !job_is_running(j) && !m))
			continue;
		if (j->spilled) {
			spilled++;
			if (!!m != j->borrows || !spill_has(w, j))
				WRONG(w, "the run of %s is not in software%s", j->name,
				      j->borrows ? "" : " alone");
		}
		if (j->spilled && !j->borrows)
			continue;
		runs++;
		if (!m || m->job.epoch != j->epoch || m->job.tenant != j->tenant ||
		    m->job.borrows != j->borrows || m->job.root != !(j->borrows || j->document) ||
		    (!j->borrows && m->job.slot_mask != job_slots(j) - 1))
			WRONG(w, "the run of %s is not in the maps", j->name);
		if (m && m->copies != (j->spilled ? 0 : m->job.copies))
			WRONG(w, "the copies of %s are not those of its run", j->name);
		wanted = plan_gates(&b->tenant[j->tenant].is, ports, count, gates);
		for (unsigned int k = 0; m && k < wanted; k++)
			if (!tables_gate_find(m, gates[k].ifindex))
				WRONG(w, "a gate of %s is missing", j->name);
		if (m && m->gate[0].anywhere != tenant_is_anywhere(&b->tenant[j->tenant].is))
			WRONG(w, "%s may come in %sanywhere", j->name,
			      m->gate[0].anywhere ? "" : "not ");
		if (m && !m->gate[0].anywhere && m->gates != wanted + 1) /* and gate 0 */
			WRONG(w, "the gates of %s are not its tenant's", j->name);
	}
	if (runs != w->maps.jobs)
		WRONG(w, "%u runs, and %u in the maps", runs, w->maps.jobs);
	if (spilled != w->spills)
		WRONG(w, "%u runs in software, and %u in the spill", spilled, w->spills);
	for (unsigned int i = 1; i < TALLY_TENANTS_MAX; i++) {
		const struct tenant *t = &b->tenant[i].is;

		if (*t->name &&
		    (!w->limited[i] || w->limits[i].packets_per_second != t->packets_per_second))
			WRONG(w, "tenant %s has other limits in the maps", t->name);
	}
	if (w->maps.slots != b->slots)
		WRONG(w, "%u slots, and the books say %u", w->maps.slots, b->slots);
}

/* Only when nobody has changed anything for a while: all that is there is attached, and known. */
static inline void truth_check(struct world *w)
{
	unsigned int count;
	const struct dataplane_port *ports = core_ports(w->core, &count);

	if (w->no_pins || *core_trouble(w->core, CORE_TROUBLE_PINS))
		WRONG(w, "the pins are missing");
	for (unsigned int i = 0; i < count; i++)
		if (w->link[i].attached != w->link[i].ifindex ||
		    ports[i].ifindex != w->link[i].ifindex)
			WRONG(w, "eth%u has number %u, the program is on %u, the core says %u", i,
			      w->link[i].ifindex, w->link[i].attached, ports[i].ifindex);
	for (unsigned int i = 0; i < w->maps.jobs; i++)
		for (unsigned int k = 0; k < w->maps.job[i].copies; k++)
			if (!*core_port_name(w->core, w->maps.job[i].copy[k].port))
				WRONG(w, "results of job %u leave by a port that has gone",
				      w->maps.job[i].id);
}

/* As far as the core knows, a run has a rank behind no port; and that is said, at once. */
static inline void torn_check(struct world *w)
{
	const struct tables *t = core_tables(w->core);
	bool torn = false;
	unsigned int count;
	const struct dataplane_port *ports = core_ports(w->core, &count);

	for (unsigned int i = 0; i < count; i++)
		if (!ports[i].ifindex)
			return;
	for (unsigned int i = 0; t && i < t->jobs; i++)
		for (unsigned int k = 0; k < t->job[i].copies; k++)
			torn |= !*core_port_name(w->core, t->job[i].copy[k].port);
	if (t && torn != !!strstr(core_trouble(w->core, CORE_TROUBLE_RUNS), "of its run is behind"))
		WRONG(w, "a run is %storn, and the core says: %s", torn ? "" : "not ",
		      core_trouble(w->core, CORE_TROUBLE_RUNS));
}

static inline void disk_check(struct world *w)
{
	_cleanup_(freep) char *text = books_print(core_books(w->core));

	if (!w->disk || strcmp(text, w->disk) != 0)
		WRONG(w, "books and disk differ: %.180s ... %.180s", text, w->disk);
}

static inline const struct job_rank *rank_of(struct world *w, const struct world_worker *p)
{
	const struct job *j = books_job_find(core_books(w->core), p->job);

	return j && p->rank < j->workers ? &j->rank[p->rank] : NULL;
}

static inline bool is_known(struct world *w, const struct world_worker *p, bool waiting)
{
	const struct books *b = core_books(w->core);

	for (unsigned int i = 0; i < b->jobs; i++)
		for (unsigned int rank = 0; rank < b->job[i]->workers; rank++)
			if (b->job[i]->rank[rank].connection == p)
				return b->job[i]->rank[rank].waiting == waiting;
	return false;
}

static inline void workers_check(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_WORKERS; i++) {
		const struct world_worker *p = &w->worker[i];
		const struct job *j = books_job_find(core_books(w->core), p->job);
		const struct job_rank *r = rank_of(w, p);

		if (p->finals > 1)
			WRONG(w, "worker %u had %u last words", i, p->finals);
		if (p->state == ASKS && !(j && j->begin_by_ns)) /* its run waits for neighbours */
			WRONG(w, "worker %u has no answer", i);
		if (p->state == WAITS && !is_known(w, p, true))
			WRONG(w, "worker %u waits, and nobody knows", i);
		if (p->state == RUNS && p->connected &&
		    (!j || !is_known(w, p, false) || r->presence != JOB_RUNNING ||
		     j->epoch != p->epoch))
			WRONG(w, "worker %u is at a run that the books have not", i);
		/* one that is not connected is at its run, unless others have begun a new one */
		if (p->state == RUNS && !p->connected && !w->restores_failed && j &&
		    w->job[number_of(p->job)].serial == p->serial && j->epoch == p->epoch &&
		    (!j->run_window || r->presence != JOB_DETACHED))
			WRONG(w, "worker %u lost its run", i);
		if (p->state == RUNS && p->connected && j && p->ending == job_is_whole(j))
			WRONG(w, "worker %u is told that its run is ending, or is not told", i);
		/* also with another agent than the one that told it */
		if (p->state == RUNS && j && j->run_window && j->epoch == p->epoch &&
		    w->job[number_of(p->job)].serial == p->serial && j->draw.nonce != p->nonce)
			WRONG(w, "worker %u has another nonce than its run", i);
		for (unsigned int k = 0; k < i; k++)
			if (p->state == RUNS && w->worker[k].state == RUNS && p->connected &&
			    w->worker[k].connected && !strcmp(p->job, w->worker[k].job) &&
			    p->epoch == w->worker[k].epoch && p->rank == w->worker[k].rank)
				WRONG(w, "workers %u and %u are one rank", i, k);
	}
}

static inline void jobs_check(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_JOBS; i++) {
		char name[8];
		const struct job *j;

		snprintf(name, sizeof(name), "j%u", i);
		j = books_job_find(core_books(w->core), name);
		if (w->job[i].state != PERHAPS && !!j != (w->job[i].state == THERE))
			WRONG(w, "job %s is%s there", name, j ? "" : " not");
		if (j && w->job[i].state == THERE && j->epoch < w->job[i].told_epoch)
			WRONG(w, "job %s would use epoch %u again", name, j->epoch + 1);
	}
}

static inline void world_check(struct world *w)
{
	maps_check(w);
	if (!w->core || w->is_pending)
		return;
	mirror_check(w);
	workers_check(w);
	jobs_check(w);
	if (w->answers != w->answers_due)
		WRONG(w, "%u requests, %u answers", w->answers_due, w->answers);
	if (core_is_agreed(w->core)) {
		maps_agree_check(w);
		torn_check(w);
		keys_check(w);
	}
	if (core_is_saved(w->core))
		disk_check(w);
}

/* --- what is told ---------------------------------------------------------------------------- */

/* Its own, and a new one for each run. */
static inline void tell_key(struct world *w, struct world_worker *p, const struct core_action *a)
{
	struct world_job *j = &w->job[number_of(a->job->name)];
	struct tally_key key = { { 0 } };
	bool keyed = job_rank_key(a->job, a->rank, (uint8_t *)&key);

	if (keyed != a->job->tags || keyed != is_key(&key))
		WRONG(w, "%s: a key, or none", a->job->name);
	for (unsigned int rank = 0; keyed && rank < WORLD_RANKS; rank++)
		if (!memcmp(&key, &j->told_key[rank], sizeof(key)))
			WRONG(w, "%s: rank %u has a key of rank %u", a->job->name, a->rank, rank);
	j->told_key[a->rank] = p->key = key;
	/* Who waited while the token was rotated, and is of the node's own job, has none. */
	p->has_place = keyed && !strcmp(p->token, a->job->token);
	secret_token_key(p->token, p->place);
	secret_place_key(p->place, (const uint8_t *)&key, p->place);
	p->pokes = 0;
}

/* No two runs of any jobs have one secret. */
static inline void tell_secret(struct world *w, const struct core_action *a)
{
	struct world_job *j = &w->job[number_of(a->job->name)];
	const uint8_t *secret = a->job->draw.secret;

	for (unsigned int i = 0; a->job->tags && i < WORLD_JOBS; i++) {
		bool is_this = &w->job[i] == j && a->job->epoch == j->told_epoch;

		if (is_this != !memcmp(w->job[i].told_secret, secret, SECRET_KEY_BYTES))
			WRONG(w, "%s: a secret of two runs, or two of one", a->job->name);
	}
	memcpy(j->told_secret, secret, SECRET_KEY_BYTES);
}

static inline void tell_run(struct world *w, struct world_worker *p, const struct core_action *a)
{
	const struct books *b = core_books(w->core);
	struct world_job *j = &w->job[number_of(a->job->name)];
	const int epoch = a->job->epoch;

	if (epoch < j->told_epoch || (epoch == j->told_epoch && j->told_event != w->events))
		WRONG(w, "%s: epoch %d is told of twice", a->job->name, epoch);
	if (epoch != j->told_epoch && !tables_find(&w->maps, a->job->id) && !spill_has(w, a->job))
		WRONG(w, "%s: told of a run that is not in the maps", a->job->name);
	if (job_is_lent(a->job) && core_config(w->core)->quotas == CONFIG_QUOTAS_FIXED)
		WRONG(w, "%s: slots on loan, and nobody lends", a->job->name);
	if (job_slots(a->job) &&
	    !job_is_lent(a->job) && /* others may hold more, where a quota shrank */
	    books_held(b, a->job->tenant) > books_quota(b, a->job->tenant))
		WRONG(w, "%s: more slots than the quota", a->job->name);
	if (core_is_saved(w->core)) /* whoever is told of a run, the disk knows it, if it can */
		disk_check(w);
	j->unsaved = !core_is_saved(w->core);
	j->told_id = a->job->id;
	tell_key(w, p, a);
	tell_secret(w, a);
	if (a->job->sealed && strcmp(p->token, a->job->token) != 0)
		WRONG(w, "%s: rank %u joined with another token", a->job->name, a->rank);
	if (!a->job->draw.nonce ||
	    (a->job->draw.nonce == j->told_nonce) != (epoch == j->told_epoch))
		WRONG(w, "%s: no nonce, or that of another run", a->job->name);
	w->runs_told += epoch != j->told_epoch;
	j->told_epoch = epoch;
	j->told_nonce = p->nonce = a->job->draw.nonce;
	j->told_event = w->events;
	p->state = RUNS;
	p->ending = false;
	p->rank = a->rank;
	p->epoch = epoch;
	p->serial = j->serial;
}

static inline void tell(struct world *w, const struct core_action *a)
{
	struct world_worker *p = a->connection;

	if (a->tell.kind == JOINING_ERROR)
		snprintf(w->refused, sizeof(w->refused), "%s: %s", strerrorname_np(-a->error),
			 a->tell.text);
	switch (a->tell.kind) {
	case JOINING_WAITING:
		if (p->state != ASKS && p->state != WAITS)
			WRONG(w, "a worker that does not wait is told who is missing");
		p->state = WAITS;
		return;
	case JOINING_RUN:
		tell_run(w, p, a);
		return;
	case JOINING_TOKEN: /* what it is the edge says */
		snprintf(p->token, sizeof(p->token), "%s", a->job->token);
		return;
	case JOINING_GREETING:
	case JOINING_SHARES:
	case JOINING_ELSEWHERE:
		WRONG(w, "the core does not greet, nor send workers elsewhere");
		return;
	case JOINING_ENDING:
		if (p->state != RUNS || p->ending || a->rank == p->rank ||
		    !strcmp(a->tell.text, "left") != w->leaves)
			WRONG(w, "a worker is told that its run is ending, and may not be");
		p->ending = true;
		return;
	case JOINING_STAYS:
		p->pokes += !w->stays;
		p->connected = true;
		p->ending = false; /* or it is told once more */
		return;
	case JOINING_ERROR:
	case JOINING_LEFT:
		p->finals++;
		p->state = AWAY;
		p->connected = false;
		return;
	}
}

static inline void answer(struct world *w, const struct core_action *a)
{
	w->answers++;
	w->answered = a->answer.kind == CORE_ANSWER_ERROR ? a->error : 0;
	if (w->answered)
		snprintf(w->answer_why, sizeof(w->answer_why), "%s", a->answer.text);
	if (a->answer.kind == CORE_ANSWER_CREATED) {
		struct world_job *j = &w->job[number_of(a->job->name)];

		snprintf(j->token, sizeof(j->token), "%s", a->job->token);
		/* the random one, or the next free */
		if (w->creates && a->job->id - w->number > WORLD_JOBS)
			WRONG(w, "%s has the number %u", a->job->name, a->job->id);
	}
}

/* --- performing ------------------------------------------------------------------------------ */

/* What the node is on: the maps have it by its numbers. */
static inline void ports_write(struct world *w)
{
	w->maps.port = realloc(w->maps.port, WORLD_PORTS * sizeof(*w->maps.port));
	w->maps.ports = 0;
	for (unsigned int i = 0; i < w->ports; i++)
		if (w->link[i].attached)
			w->maps.port[w->maps.ports++] = w->link[i].attached;
}

static inline void dataplane_mend(struct world *w, const struct config *c, struct core_event *e)
{
	struct dataplane_port *ports = calloc(c->ports, sizeof(*ports));

	w->no_pins = w->is_changed = false;
	w->ports = c->ports;
	for (unsigned int i = 0; i < WORLD_PORTS; i++)
		w->link[i].attached = i < c->ports ? w->link[i].ifindex : 0;
	ports_write(w);
	for (unsigned int i = 0; i < c->ports; i++) {
		ports[i].ifindex = w->link[i].attached;
		memcpy(ports[i].name, c->port[i].name, IF_NAMESIZE);
	}
	e->result.adopted.ports = ports;
	e->result.adopted.count = c->ports;
}

static inline void dataplane_adopt(struct world *w, const struct config *c, struct core_event *e)
{
	uint32_t used = 0;

	for (unsigned int i = 0; i < w->maps.jobs; i++)
		if (!w->maps.job[i].job.borrows &&
		    used < w->maps.job[i].job.slot_base + w->maps.job[i].job.slot_mask + 1)
			used = w->maps.job[i].job.slot_base + w->maps.job[i].job.slot_mask + 1;
	if (used > c->slots || (c == w->config && w->backs_failed)) {
		w->backs_failed -= w->backs_failed > 0;
		e->result.error = -ENOSPC;
		return;
	}
	w->maps.slots = c->slots;
	w->maps.pool = c->pool_slots;
	dataplane_mend(w, c, e);
}

static inline void dataplane_look(struct world *w, const struct config *c, struct core_event *e)
{
	struct dataplane_port *ports = calloc(c->ports, sizeof(*ports));

	for (unsigned int i = 0; i < c->ports; i++) {
		ports[i].ifindex = w->link[i].ifindex;
		ports[i].attached = ports[i].ifindex && w->link[i].attached == ports[i].ifindex;
		memcpy(ports[i].name, c->port[i].name, IF_NAMESIZE);
	}
	w->is_changed = w->no_pins; /* then nobody looks at ports */
	e->result.looked.ports = ports;
	e->result.looked.missing = w->no_pins ? "pins" : "";
	e->result.looked.state = "";
	e->result.looked.taken = e->result.looked.metrics_taken = w->port_is_taken ? "taken" : "";
}

/* As the kernel does when a port goes between two looks. */
static inline bool is_there(const struct world *w, const struct tables_job *j)
{
	for (unsigned int i = 0; i < j->copies; i++) {
		bool found = false;

		for (unsigned int k = 0; k < w->maps.ports; k++)
			found |= w->maps.port[k] == j->copy[i].port;
		if (!found)
			return false;
	}
	return true;
}

static inline unsigned int elsewhere(const struct world *w, const struct core_action *a)
{
	const struct tables_job *j = tables_find(&w->maps, a->id);
	unsigned int n = 0;

	for (unsigned int i = 0; i < a->follow.count; i++)
		n += a->follow.hops[i].port && a->follow.hops[i].port != j->copy[i].port;
	return n;
}

static inline void perform(struct world *w, const struct core_action *a, struct core_event *e,
			   struct hop *hop, struct tables *read)
{
	static const uint8_t nobody[6];

	switch (a->kind) {
	case CORE_RESOLVE:
		e->result.error = w->nobody_answers ? -EHOSTUNREACH : 0;
		if (endpoint_is_equal(a->resolve.address, a->resolve.from))
			WRONG(w, "nobody sends packets to itself%s", "");
		if (a->resolve.wait_ms > w->wait_ms_max)
			w->wait_ms_max = a->resolve.wait_ms;
		*hop = (struct hop){ .port = w->link[endpoint_port(a->resolve.address) % 2].ifindex,
				     .mtu = w->mtu ? w->mtu : 1500 };
		if (!hop->port || w->no_way) {
			w->no_way -= w->no_way > 0;
			e->result.error = -ENETUNREACH;
		}
		memcpy(hop->mac, nobody, sizeof(nobody));
		e->result.hop = hop;
		return;
	case CORE_READ:
		assert_int_equal(tables_copy(&w->maps, read), 0);
		e->result.tables = read;
		return;
	case CORE_INSTALL:
		if (!is_there(w, a->write.job)) {
			w->restores_failed++;
			e->result.error = -EINVAL;
			return;
		}
		maps_write(w, a);
		return;
	case CORE_GATES:
	case CORE_REMOVE:
		maps_write(w, a);
		return;
	case CORE_MOVE:
		rings_move(w, a, false);
		return;
	case CORE_SPILL:
		spill_put(w, a->write.installation);
		return;
	case CORE_UNSPILL:
		spill_remove(w, a->id);
		return;
	case CORE_FOLLOW:
		e->result.error = tables_find(&w->maps, a->id) ? 0 : -ENOENT;
		if (e->result.error == 0)
			e->result.followed.elsewhere = elsewhere(w, a);
		return;
	case CORE_LOOK:
		dataplane_look(w, a->config, e);
		return;
	case CORE_MEND:
		dataplane_mend(w, a->config, e);
		return;
	case CORE_PUT_TENANT:
		w->limits[a->id] = a->tenant.limits;
		w->limited[a->id] = true;
		return;
	case CORE_DROP_TENANT:
		for (unsigned int i = 0; i < w->maps.jobs; i++)
			if (w->maps.job[i].job.tenant == a->id)
				WRONG(w, "tenant %u goes before job %u", a->id, w->maps.job[i].id);
		w->limited[a->id] = false;
		return;
	case CORE_SAVE:
		free(w->disk);
		w->disk = books_print(core_books(w->core));
		for (unsigned int i = 0; i < WORLD_JOBS; i++)
			w->job[i].unsaved = false;
		return;
	case CORE_ADOPT:
		dataplane_adopt(w, a->config, e);
		return;
	case CORE_PROBE:
		e->result.error = w->port_is_taken ? -EADDRINUSE : 0;
		if (!w->port_is_taken && w->probes < WORLD_PROBES)
			w->gone[w->probes++] = (struct core_event){
				.kind = CORE_GONE,
				.gone = { a->job->id, a->rank, a->job->epoch },
			};
		return;
	default:
		return;
	}
}

/*
 * A step that fails does nothing; but an install that fails in the kernel leaves neither run, of
 * runs that move some may go, and gates or a removal may have been written.
 */
static inline bool is_to_fail(struct world *w, const struct core_action *a)
{
	w->awaited++;
	w->tried[a->kind]++;
	if (a->kind == CORE_UNSPILL)
		return false;
	if (w->awaited != w->fail_at && (!w->fail_one_in || world_random(w, w->fail_one_in)))
		return false;
	w->failed_kind = a->kind;
	if (a->kind == CORE_INSTALL && world_random(w, 2)) {
		if (tables_find(&w->maps, a->id))
			keys_put(w, tables_find(&w->maps, a->id), NULL);
		tables_forget(&w->maps, a->id);
	}
	if (a->kind == CORE_MOVE)
		rings_move(w, a, true);
	if ((a->kind == CORE_REMOVE || a->kind == CORE_GATES) && world_random(w, 2))
		maps_write(w, a);
	w->restores_failed += a->kind == CORE_INSTALL || a->kind == CORE_RESOLVE;
	return true;
}

static inline void world_take(struct world *w);

/* The result of what is pending. */
static inline void world_finish(struct world *w)
{
	struct core_event e = { .kind = CORE_RESULT, .result.number = w->pending.number };
	struct hop hop = { 0 };
	struct tables read = { 0 };

	w->is_pending = false;
	if (is_to_fail(w, &w->pending)) {
		e.result.error = w->pending.kind == CORE_RESOLVE ? -EHOSTUNREACH : -EIO;
		e.result.why = "the test wants it";
	} else {
		perform(w, &w->pending, &e, &hop, &read);
	}
	if (core_handle(w->core, &e, ++w->now_ns) != 0)
		WRONG(w, "a result is refused");
	tables_close(&read);
	world_take(w);
}

static inline bool is_awaited(const struct core_action *a) { return a->kind >= CORE_RESOLVE; }

static inline void world_take(struct world *w)
{
	struct core_action a;

	while (core_next_action(w->core, &a)) {
		if (++w->actions == w->crash_at) {
			w->crashed = true;
			return;
		}
		if (w->is_pending)
			WRONG(w, "an action behind one that is awaited");
		if (is_awaited(&a)) {
			w->pending = a;
			w->is_pending = true;
		} else if (a.kind == CORE_TELL) {
			tell(w, &a);
		} else if (a.kind == CORE_DROP) {
			((struct world_worker *)a.connection)->dropped = true;
		} else if (a.kind == CORE_ANSWER) {
			answer(w, &a);
		} else if (a.kind == CORE_CONFIGURED) {
			w->configured = a.error;
		} else if (a.kind == CORE_LOG && a.log.level <= LOG_LEVEL_INFO) {
			w->refusals_logged += !strcmp(a.log.what, "worker refused");
			w->mended_logged += !strcmp(a.log.what, "pins put back");
			w->inner_logged += !strcmp(a.log.what, "run waits at this inner node");
			w->astray_logged += !strcmp(a.log.what, "ranks are astray");
		} else if (a.kind == CORE_FORGET_PROBES) {
			w->probes = 0;
		}
	}
}

/* --- the core comes and goes ----------------------------------------------------------------- */

static inline void world_give(struct world *w, const struct core_event *e)
{
	w->events++;
	if (core_handle(w->core, e, w->now_ns += 1000000) != 0) {
		WRONG(w, "event %d is refused", e->kind);
		return;
	}
	world_take(w);
}

static inline void world_settle(struct world *w)
{
	while (w->is_pending && !w->crashed)
		world_finish(w);
	if (!w->crashed)
		world_check(w);
}

/* The agent is no more: connections end, whoever waited goes, runs go on. */
static inline void world_crash(struct world *w)
{
	core_free(w->core);
	w->core = NULL;
	w->is_pending = w->crashed = false;
	w->spills = 0;
	w->crash_at = 0;
	w->probes = 0;
	w->answers = w->answers_due;
	for (unsigned int i = 0; i < WORLD_JOBS; i++) {
		struct world_job *j = &w->job[i];

		if (j->unsaved && !tables_find(&w->maps, j->told_id))
			j->told_epoch = -1; /* nobody can know it */
	}
	for (unsigned int i = 0; i < WORLD_WORKERS; i++) {
		struct world_worker *p = &w->worker[i];

		p->connected = false;
		p->finals = 0;
		/* nobody can know who is at a run that is not on disk: it times out */
		if (p->state != RUNS || w->job[number_of(p->job)].unsaved)
			p->state = AWAY;
	}
}

/* Another one begins with what is there. */
static inline int world_start(struct world *w)
{
	struct core_event e = { .kind = CORE_START,
				.start = { .config = w->config, .path = "tallyd.yaml" } };
	struct core_event adopted = { .kind = CORE_RESULT };
	struct books books;
	struct why why = { "" };
	int r = 0;

	books_init(&books, 0);
	if (core_books_configure(&books, w->config, &why) < 0)
		return WRONG(w, "%s", why.text);
	if (w->disk)
		r = books_parse(&books, w->disk, strlen(w->disk), "disk", &why);
	dataplane_adopt(w, w->config, &adopted);
	if (r < 0 || adopted.result.error < 0)
		return WRONG(w, "cannot start: %s", why.text);
	w->core = core_new();
	e.start.books = &books;
	e.start.ports = adopted.result.adopted.ports;
	e.start.ports_count = adopted.result.adopted.count;
	w->configured = 1;
	world_give(w, &e);
	while (w->is_pending && !w->crashed)
		world_finish(w);
	return w->configured;
}

static inline void world_restart(struct world *w)
{
	unsigned int tries = 0;

	w->restarts++;
	do
		world_crash(w);
	while (world_start(w) != 0 && !*w->wrong &&
	       ++tries < 100); /* whoever starts it tries again */
	if (tries == 100)
		WRONG(w, "it does not start any more");
	world_check(w);
}

/* Gives an event, and does all that follows; or there is a crash meanwhile, and a new core. */
static inline void world_do(struct world *w, const struct core_event *e)
{
	world_give(w, e);
	world_settle(w);
	if (w->crashed)
		world_restart(w);
}

#endif
