// SPDX-License-Identifier: GPL-2.0-only
/*
 * A whole node's life without kernel and sockets: a scripted one, cut off between any two actions
 * and with each step failing once; and random ones. TALLY_SEED=n runs that one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core_world.h"
#include "common/secret.h"

enum {
	SLOTS = 256,
	SEEDS = 150,
	STEPS = 300,
};

/* --- what is done to the world --------------------------------------------------------------- */

static struct config *config_new(uint32_t slots, unsigned int ports, unsigned int tenants)
{
	struct config *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->slots = slots;
	c->ports = ports;
	for (unsigned int i = 0; i < ports; i++)
		snprintf(c->port[i].name, sizeof(c->port[i].name), "eth%u", i);
	c->services = 1;
	c->service[0] = world_address(200);
	endpoint_port_set(&c->service[0], TALLY_UDP_PORT);
	c->rest = true;
	c->tenants = 1 + tenants;
	snprintf(c->tenant[0].name, sizeof(c->tenant[0].name), "default");
	for (unsigned int i = 1; i <= tenants; i++) {
		snprintf(c->tenant[i].name, sizeof(c->tenant[i].name), "c%u", i);
		c->tenant[i].slots = 16;
	}
	return c;
}

static void world_open(struct world *w, uint64_t seed)
{
	*w = (struct world){ .random = seed * 2 + 1 };
	world_random(w, 2);
	w->config = config_new(SLOTS, 2, 0);
	w->other = config_new(2 * SLOTS, WORLD_PORTS, 1);
	w->config->spill_mib = w->other->spill_mib = seed % 2;
	w->config->quotas = w->other->quotas = seed / 2 % 2;
	w->config->pool_slots = seed / 4 % 2 * SLOTS;
	w->other->pool_slots = seed / 8 % 2 * SLOTS;
	for (unsigned int i = 0; i < WORLD_JOBS; i++)
		w->job[i].told_epoch = -1;
	for (unsigned int i = 0; i < WORLD_PORTS; i++)
		w->link[i].ifindex = ++w->links_made;
}

static void world_close(struct world *w)
{
	core_free(w->core);
	free(w->config);
	free(w->other);
	free(w->disk);
	tables_close(&w->maps);
}

/* True: it was answered, with 0. Whoever gets no answer does not know whether it was done. */
static bool ask(struct world *w, const struct request *q)
{
	uint8_t random[CORE_RANDOM_BYTES] = { (uint8_t)world_random(w, 256) };
	const struct core_event e = { .kind = CORE_REQUEST, .asked = { q, random } };
	const unsigned int before = w->answers;

	/* often 0, or taken */
	w->number = world_random(w, 2) ? world_random(w, 4) : 2 * world_random(w, INT32_MAX);
	memcpy(random + sizeof(random) - sizeof(w->number), &w->number, sizeof(w->number));
	w->creates = q->verb == REQUEST_JOB_CREATE;
	w->answers_due++;
	w->answered = 1; /* no answer */
	world_give(w, &e);
	while (w->is_pending && !w->crashed)
		world_finish(w);
	return w->answers != before && w->answered == 0;
}

static void asked(struct world *w)
{
	if (w->crashed)
		world_restart(w);
	else
		world_check(w);
}

static void create(struct world *w, unsigned int number, unsigned int workers, const char *tenant,
		   uint16_t window)
{
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .job = { .workers = workers,
				      .window = window,
				      .tags = number % 3,
				      .sealed = number % 2 } };
	struct world_job *j = &w->job[number];

	if (j->state == THERE)
		return;
	snprintf(q.job.name, sizeof(q.job.name), "j%u", number);
	snprintf(q.job.tenant, sizeof(q.job.tenant), "%s", tenant);
	j->state = j->state == NOT_THERE ? NOT_THERE : PERHAPS;
	if (ask(w, &q)) {
		j->state = THERE;
		j->serial = ++w->jobs_made;
		j->told_epoch = -1;
	} else if (w->answered == 1) {
		j->state = PERHAPS;
	}
	asked(w);
}

static void del(struct world *w, unsigned int number)
{
	struct request q = { .verb = REQUEST_JOB_DEL };
	struct world_job *j = &w->job[number];

	snprintf(q.name, sizeof(q.name), "j%u", number);
	if (ask(w, &q))
		j->state = NOT_THERE;
	else if (w->answered == 1)
		j->state = PERHAPS;
	else if (w->answered == -ENOENT && j->state == PERHAPS)
		j->state = NOT_THERE;
	if (j->state == NOT_THERE)
		j->serial = 0;
	asked(w);
}

/* Of a run that may have ended nothing is expected any more. */
static void restart(struct world *w, unsigned int number)
{
	struct request q = { .verb = REQUEST_JOB_RESTART };

	snprintf(q.name, sizeof(q.name), "j%u", number);
	if (ask(w, &q) || w->answered == 1)
		w->job[number].serial = ++w->jobs_made;
	asked(w);
}

/* Who waits for a sealed job is sent away; and who hears no answer asks for the token again. */
static void rotate(struct world *w, unsigned int number)
{
	struct request q = { .verb = REQUEST_JOB_ROTATE };
	const struct job *j;

	snprintf(q.name, sizeof(q.name), "j%u", number);
	ask(w, &q);
	asked(w);
	j = books_job_find(core_books(w->core), q.name);
	if (j)
		memcpy(w->job[number].token, j->token, sizeof(j->token));
}

static void kick(struct world *w, unsigned int number, uint16_t rank)
{
	struct request q = { .verb = REQUEST_JOB_KICK, .kick.rank = rank };

	snprintf(q.kick.job, sizeof(q.kick.job), "j%u", number);
	if (ask(w, &q) || w->answered == 1)
		for (unsigned int i = 0; i < WORLD_WORKERS; i++)
			if (w->worker[i].state == RUNS && !w->worker[i].connected &&
			    number_of(w->worker[i].job) == number && w->worker[i].rank == rank)
				w->worker[i].state = AWAY; /* the others go on without it */
	asked(w);
}

enum {
	INNER = 7, /* number of a job whose root is elsewhere */
};

/* What the agent of that root says to this node: ranks 0 and 2 are right below it. */
static void apply_for(struct world *w, const char *tenant, uint16_t epoch, uint16_t window)
{
	static struct request q;
	struct document *d = &q.apply.document;
	struct world_job *j = &w->job[INNER];

	memset(&q, 0, sizeof(q));
	q.verb = REQUEST_APPLY;
	snprintf(q.apply.tenant, sizeof(q.apply.tenant), "%s", tenant);
	snprintf(d->job, sizeof(d->job), "j%u", INNER);
	snprintf(d->node, sizeof(d->node), "a0");
	d->address = w->config->service[0];
	d->root = world_address(201);
	endpoint_port_set(&d->root, TALLY_UDP_PORT);
	d->id = 0x7fffff07;
	d->epoch = epoch;
	d->window = window;
	d->payload_bytes = 64;
	d->workers = 3;
	d->ranks = 2;
	d->rank[0] = (struct document_rank){ 0, world_address(20) };
	d->rank[1] = (struct document_rank){ 2, world_address(22) };
	for (; epoch % 2 && d->keys < 3; d->keys++) /* of both, and of nodes */
		d->key[d->keys].word[0] = d->keys + 1;
	j->state = j->state == NOT_THERE ? PERHAPS : j->state;
	if (ask(w, &q))
		j->state = THERE;
	else if (w->answered != 1 && j->state == PERHAPS)
		j->state = books_job_find(core_books(w->core), d->job) ? THERE : NOT_THERE;
	asked(w);
}

static void apply(struct world *w, uint16_t epoch, uint16_t window)
{
	apply_for(w, "", epoch, window);
}

static void cordon(struct world *w, bool cordoned)
{
	struct request q = { .verb = cordoned ? REQUEST_CORDON : REQUEST_UNCORDON };

	ask(w, &q);
	asked(w);
}

static void tenant(struct world *w, enum request_verb verb, const char *name, uint32_t slots,
		   const char *port)
{
	struct request q = {
		.verb = verb, .given = REQUEST_SLOTS | REQUEST_INGRESS | REQUEST_PACKETS_PER_SECOND
	};

	if (verb == REQUEST_TENANT_DEL) {
		snprintf(q.name, sizeof(q.name), "%s", name);
	} else {
		snprintf(q.tenant.name, sizeof(q.tenant.name), "%s", name);
		q.tenant.slots = slots;
		q.tenant.packets_per_second = slots * 10;
		q.tenant.points = *port ? 1 : 0;
		snprintf(q.tenant.point[0].port, IF_NAMESIZE, "%s", port);
		q.tenant.point[0].vlan = TENANT_VLAN_ANY;
	}
	ask(w, &q);
	asked(w);
}

/* Its messages come in at eth0, from this VLAN. */
static void tenant_in_vlan(struct world *w, const char *name, int vlan)
{
	struct request q = { .verb = REQUEST_TENANT_SET, .given = REQUEST_INGRESS };

	snprintf(q.tenant.name, sizeof(q.tenant.name), "%s", name);
	q.tenant.points = 1;
	snprintf(q.tenant.point[0].port, IF_NAMESIZE, "eth0");
	q.tenant.point[0].vlan = vlan;
	ask(w, &q);
	asked(w);
}

static void say(struct world *w, struct world_worker *p, unsigned int job, enum joining_what what)
{
	const struct sockaddr_storage address = world_address(p - w->worker);
	struct joining_message m = { .what = what, .rank = JOINING_RANK_ANY, .address = address };
	uint8_t key[SECRET_KEY_BYTES];
	char name[NAME_BYTES];
	struct job_draw draw = { 1 + world_random(w, INT32_MAX),
				 { 1 + world_random(w, 255), world_random(w, 256),
				   world_random(w, 256), world_random(w, 256) } };
	const struct core_event e = { .kind = CORE_JOINING,
				      .connection = w->line ? w->line : p,
				      .joining = { .job = name,
						   .token_key = key,
						   .message = &m,
						   .by_place = w->by_place,
						   .again = p->connected && !w->by_place,
						   .peer = &address,
						   .port = p->port,
						   .draw = &draw } };

	snprintf(name, sizeof(name), "j%u", job);
	if (w->by_place)
		memcpy(key, p->place, sizeof(key));
	else
		secret_token_key(w->job[job].token, key);
	if (what == JOINING_JOIN) {
		m.from = w->from;
		m.mtu = p->mtu;
		m.payload_bytes = w->carried;
	}
	if (w->ranked)
		m.rank = p->rank;
	if (what != JOINING_JOIN) {
		m.rank = p->rank;
		m.epoch = p->epoch;
		m.nonce = p->nonce;
	}
	memcpy(p->job, name, sizeof(p->job));
	if (!w->by_place)
		memcpy(p->token, w->job[job].token, sizeof(p->token));
	if (what != JOINING_STAY) {
		p->state = ASKS;
		p->connected = true;
	}
	p->finals = 0;
	w->leaves = what == JOINING_LEAVE;
	w->stays = what == JOINING_STAY;
	world_do(w, &e);
	w->leaves = w->stays = false;
}

static void join(struct world *w, unsigned int worker, unsigned int job)
{
	if (w->worker[worker].state == AWAY)
		say(w, &w->worker[worker], job, JOINING_JOIN);
}

/* Closes: by a word, also over a connection of its own; or by the end of its connection alone. */
static void leave(struct world *w, unsigned int worker)
{
	struct world_worker *p = &w->worker[worker];
	const struct core_event e = { .kind = CORE_ENDED, .connection = p, .ended = p->job };

	if (p->state == AWAY)
		return;
	if (!p->connected) {
		say(w, p, number_of(p->job), JOINING_LEAVE);
		return;
	}
	if (p->state == RUNS && world_random(w, 2)) {
		say(w, p, number_of(p->job), JOINING_LEAVE);
		if (p->state != AWAY || is_known(w, p, false))
			WRONG(w, "worker %u has left, and is not told so, or not gone", worker);
	}
	p->state = AWAY;
	p->connected = false;
	world_do(w, &e);
}

/* Would the books have it at its run, if it said so? */
static bool may_stay(const struct world *w, const struct world_worker *p)
{
	const struct job *j = books_job_find(core_books(w->core), p->job);

	return j && !j->document && !strcmp(j->token, w->job[number_of(p->job)].token) &&
	       job_is_at(j, p->rank, p->epoch) && j->draw.nonce == p->nonce &&
	       j->rank[p->rank].presence == JOB_DETACHED && !j->rank[p->rank].waiting;
}

/* One that was in a run when the agent ended says so to the next one. */
static void stay(struct world *w, unsigned int worker)
{
	struct world_worker *p = &w->worker[worker];
	const bool may = may_stay(w, p);
	const unsigned int restarts = w->restarts;

	if (p->state != RUNS || p->connected)
		return;
	say(w, p, number_of(p->job), JOINING_STAY);
	if (w->restarts == restarts && may != p->connected)
		WRONG(w, "worker %u stays in its run, and %s", worker,
		      may ? "is refused" : "may not");
	if (w->restarts == restarts)
		p->state = RUNS; /* calls go on as before, whatever was said */
	p->finals = 0;
}

/* The same with proofs by its place, whatever token it knows, and also while it is connected. */
static void stay_by_place(struct world *w, unsigned int worker)
{
	struct world_worker *p = &w->worker[worker];
	const struct job *j = books_job_find(core_books(w->core), p->job);
	const bool may = j && p->has_place && job_is_at(j, p->rank, p->epoch) &&
			 j->draw.nonce == p->nonce && !j->rank[p->rank].waiting;
	const unsigned int restarts = w->restarts;

	if (p->state != RUNS)
		return;
	p->connected = false;
	w->by_place = true;
	say(w, p, number_of(p->job), JOINING_STAY);
	w->by_place = false;
	if (w->restarts != restarts)
		return;
	p->state = RUNS;
	p->finals = 0;
	if (may != p->connected)
		WRONG(w, "worker %u stays by its place, and %s", worker,
		      may ? "is refused" : "may not");
	if (may && job_is_rotated(j) && strcmp(p->token, j->token) != 0)
		WRONG(w, "worker %u is not told the token", worker);
}

static bool is_anybody_there(const struct world *w, const struct core_event *probe)
{
	const struct job *j = books_job_numbered(core_books(w->core), probe->gone.job);

	for (unsigned int i = 0; j && i < WORLD_WORKERS; i++)
		if (w->worker[i].state == RUNS && !strcmp(w->worker[i].job, j->name) &&
		    w->worker[i].rank == probe->gone.rank &&
		    w->worker[i].epoch == probe->gone.epoch)
			return true;
	return false;
}

/* Time passes, and what is due is done. Workers that have gone without a word are found out. */
static void time_pass(struct world *w, unsigned int ms)
{
	const struct core_event e = { .kind = CORE_DEADLINE };
	const uint64_t end_ns = w->now_ns + ms * 1000000ull;

	while (!*w->wrong && core_deadline_ns(w->core) <= end_ns) {
		if (core_deadline_ns(w->core) > w->now_ns)
			w->now_ns = core_deadline_ns(w->core);
		world_do(w, &e);
		for (unsigned int i = 0; i < w->probes; i++)
			if (!is_anybody_there(w, &w->gone[i]))
				world_do(w, &w->gone[i]);
	}
	if (w->now_ns < end_ns)
		w->now_ns = end_ns;
}

/* A worker that nobody is connected to ends without a word. */
static void gone(struct world *w, unsigned int worker)
{
	if (!w->worker[worker].connected)
		w->worker[worker].state = AWAY;
}

static void reload(struct world *w)
{
	const struct core_event e = { .kind = CORE_CONFIG, .config = w->other };

	w->configured = 1;
	world_give(w, &e);
	while (w->is_pending && !w->crashed)
		world_finish(w);
	if (!w->crashed && w->configured == 0) {
		struct config *old = w->config;

		w->config = w->other;
		w->other = old;
	}
	if (w->crashed)
		world_restart(w);
	else
		world_check(w);
}

static void neighbour(struct world *w, uint8_t mac)
{
	const struct sockaddr_storage address = world_address(1);
	const uint8_t macs[6] = { mac };
	const struct core_event e = { .kind = CORE_NEIGHBOUR, .neighbour = { 1, &address, macs } };

	world_do(w, &e);
}

enum harm {
	LINK_GOES,
	LINK_COMES, /* perhaps in the place of another of its name */
	PROGRAM_GOES,
	PINS_GO,
	HARMS,
};

/* What others do to the node, with or without a word of the kernel's. */
static void harm(struct world *w, enum harm what, unsigned int port, bool is_heard)
{
	const struct core_event e = { .kind = CORE_LINK };
	struct world_link *link = &w->link[port];

	if (what == PINS_GO)
		w->no_pins = true;
	else
		link->attached = 0;
	if (what == LINK_GOES)
		link->ifindex = 0;
	if (what == LINK_COMES)
		link->ifindex = ++w->links_made;
	w->is_changed = true;
	ports_write(w);
	if (is_heard)
		world_do(w, &e);
}

/* The agent stops and ends all connections: the runs stay in the maps. */
static void stop_and_start(struct world *w)
{
	const struct core_event e = { .kind = CORE_STOP };
	unsigned int runs;

	world_do(w, &e);
	runs = w->maps.jobs;
	for (unsigned int i = 0; !w->crashed && i < WORLD_WORKERS; i++) {
		const struct core_event ended = { .kind = CORE_ENDED,
						  .connection = &w->worker[i],
						  .ended = w->worker[i].job };

		if (w->worker[i].state != AWAY)
			world_do(w, &ended);
	}
	if (!w->crashed && w->maps.jobs != runs)
		WRONG(w, "the agent stopped, and of %u runs %u are in the maps", runs,
		      w->maps.jobs);
	world_restart(w);
}

/* --- one life -------------------------------------------------------------------------------- */

static void all_join(struct world *w, unsigned int first, unsigned int count, unsigned int job)
{
	for (unsigned int i = 0; i < count && !*w->wrong; i++)
		join(w, first + i, job);
}

static void all_leave(struct world *w)
{
	for (unsigned int i = 0; i < WORLD_WORKERS && !*w->wrong; i++)
		leave(w, i);
}

static void live(struct world *w)
{
	tenant(w, REQUEST_TENANT_ADD, "a", 64, "eth0");
	create(w, 1, 3, "a", 16);
	create(w, 2, 2, "", 32);
	create(w, 3, 1, "a", 64); /* more than its quota has */
	all_join(w, 0, 2, 1);
	rotate(w, 1); /* is sealed: those two come again */
	all_join(w, 0, 3, 1);
	all_join(w, 4, 1, 2);
	rotate(w, 2); /* is not */
	all_join(w, 5, 1, 2);
	tenant(w, REQUEST_TENANT_SET, "a", 16, "");
	apply(w, 3, 8);
	leave(w, 0);
	neighbour(w, 1);
	time_pass(w, 3000);
	harm(w, PINS_GO, 0, false);
	harm(w, LINK_COMES, 0, true);
	time_pass(w, 3000);
	leave(w, 1);
	leave(w, 2);
	all_join(w, 0, 3, 1); /* with a smaller window */
	reload(w);
	stop_and_start(w);
	gone(w, 4);
	stay(w, 2);
	rotate(w, 2);
	stay_by_place(w, 5);
	time_pass(w, 3000);
	apply(w, 4, 4); /* the next run, or the first that is heard of */
	apply(w, 4, 4);
	leave(w, 5);
	leave(w, 1);
	leave(w, 2);
	all_join(w, 8, 3, 1); /* in the place of those that are detached */
	all_join(w, 12, 1, 2);
	cordon(w, true);
	join(w, 6, 2); /* is refused */
	cordon(w, false);
	kick(w, 1, 2);
	restart(w, 1);
	all_join(w, 8, 3, 1);
	kick(w, 2, 1);
	del(w, 2);
	create(w, 2, 2, "c1", 8);
	all_join(w, 12, 2, 2);
	reload(w); /* back, though c1 has a job: refused */
	tenant(w, REQUEST_TENANT_DEL, "a", 0, "");
	del(w, 1);
	tenant(w, REQUEST_TENANT_DEL, "a", 0, "");
	time_pass(w, 30000);
}

/* Afterwards all is as it should be; and then nobody is left, and nothing in the maps. */
static void end(struct world *w)
{
	w->fail_one_in = 0;
	w->fail_at = 0;
	w->crash_at = 0;
	cordon(w, false);
	for (unsigned int i = 0; i < WORLD_PORTS; i++)
		if (!w->link[i].ifindex)
			harm(w, LINK_COMES, i, false);
	time_pass(w, 40000);
	truth_check(w);
	del(w, INNER); /* its run ends elsewhere */
	all_leave(w);
	time_pass(w, 30000);
	if (!*w->wrong && w->maps.jobs)
		WRONG(w, "all have left, and %u jobs are in the maps", w->maps.jobs);
	for (unsigned int i = 0; i < WORLD_JOBS && !*w->wrong; i++)
		del(w, i);
	time_pass(w, 30000);
	if (!*w->wrong && core_books(w->core)->jobs)
		WRONG(w, "jobs stay");
}

static void world_run(struct world *w, void (*life)(struct world *))
{
	if (world_start(w) != 0 || w->crashed)
		world_restart(w);
	life(w);
	end(w);
}

static void a_life_goes_as_it_should(void **state)
{
	struct world w;

	world_open(&w, 0);
	world_run(&w, live);
	assert_string_equal(w.wrong, "");
	assert_int_equal(w.runs_told, 6);
	assert_true(w.awaited > 100 && w.actions > 150);
	world_close(&w);
}

static void crash_between_all_actions(void (*life)(struct world *))
{
	uint64_t actions;
	struct world w;

	world_open(&w, 0);
	world_run(&w, life);
	actions = w.actions;
	world_close(&w);
	for (uint64_t at = 1; at <= actions; at++) {
		world_open(&w, 0);
		w.crash_at = at;
		world_run(&w, life);
		world_close(&w);
		if (*w.wrong)
			fail_msg("crash before action %llu: %s", (unsigned long long)at, w.wrong);
	}
}

static void a_crash_between_any_two_actions_loses_nothing(void **state)
{
	crash_between_all_actions(live);
}

static void fail_each_step(void (*life)(struct world *))
{
	uint64_t awaited;
	struct world w;

	world_open(&w, 0);
	world_run(&w, life);
	awaited = w.awaited;
	world_close(&w);
	for (uint64_t at = 1; at <= awaited; at++)
		for (unsigned int way = 0; way < 2; way++) {
			world_open(&w, way);
			w.fail_at = at;
			world_run(&w, life);
			world_close(&w);
			if (*w.wrong)
				fail_msg("step %llu fails, an action of kind %d: %s",
					 (unsigned long long)at, w.failed_kind, w.wrong);
		}
}

static void whatever_step_fails_is_undone(void **state) { fail_each_step(live); }

/* Two jobs of four end, and what they had are two holes. */
static void scatter(struct world *w)
{
	for (unsigned int i = 0; i < 4; i++) {
		create(w, i, 1, "", SLOTS / 8);
		join(w, i, i);
	}
	leave(w, 0);
	del(w, 0);
	leave(w, 2);
	del(w, 2);
	create(w, 5, 1, "", SLOTS / 4);
	join(w, 5, 5);
}

static const struct job *job_numbered(const struct world *w, unsigned int number)
{
	char name[8];

	snprintf(name, sizeof(name), "j%u", number);
	return books_job_find(core_books(w->core), name);
}

static void a_run_that_begins_finds_its_whole_window_where_slots_are_scattered(void **state)
{
	const struct job *j;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	scatter(&w);
	assert_string_equal(w.wrong, "");
	j = job_numbered(&w, 5);
	assert_non_null(j);
	assert_int_equal(j->run_window, SLOTS / 4);
	assert_int_equal(w.worker[5].state, RUNS);
	assert_int_equal(w.tried[CORE_MOVE], 1);
	assert_int_equal(core_counts(w.core)->runs_moved, 1);
	assert_int_equal(w.worker[1].state, RUNS); /* as if nothing had happened */
	assert_int_equal(w.worker[3].state, RUNS);
	assert_int_equal(w.worker[1].finals + w.worker[3].finals, 0);
	world_close(&w);
}

/* It had waited too long for the agent's answer; it comes again, or its machine says that it has
 * gone.
 */
static void who_ends_as_soon_as_it_stays_is_not_missed_at_once(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 8);
	all_join(&w, 0, 2, 1);
	world_restart(&w);
	for (unsigned int late = 0; late < 2; late++) {
		const struct core_event e = { .kind = CORE_ENDED,
					      .connection = &w.worker[0],
					      .ended = "j1" };

		stay(&w, 0);
		stay(&w, 1);
		assert_true(w.worker[0].connected && w.worker[1].connected);
		if (late)
			time_pass(&w, 10000);
		w.worker[0].connected = false;
		if (late)
			w.worker[0].state = AWAY;
		world_do(&w, &e);
		assert_int_equal(job_numbered(&w, 1)->rank[w.worker[0].rank].presence,
				 late ? JOB_LEFT : JOB_DETACHED);
		assert_int_equal(w.worker[1].ending, late);
	}
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* A run that begins, with this many slots; worker and job have the same number. */
static void run_of(struct world *w, unsigned int number, uint16_t slots)
{
	create(w, number, 1, "", slots / 2);
	join(w, number, number);
}

static void end_of_run(struct world *w, unsigned int number)
{
	leave(w, number);
	del(w, number);
}

/* In one half of a node, four become three: the one that is left over moves, and a large one fits.
 */
static void half_scatter(struct world *w, unsigned int first, unsigned int large)
{
	for (unsigned int i = first; i < first + 4; i++)
		run_of(w, i, SLOTS / 8);
	end_of_run(w, first);
	end_of_run(w, first + 2);
	run_of(w, large, SLOTS / 4);
}

/* So whoever begins runs again and again stops nobody. */
static void a_run_that_was_moved_stays_for_a_while(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	run_of(&w, 14, SLOTS / 2);
	half_scatter(&w, 0, 4);
	end_of_run(&w, 14);
	half_scatter(&w, 8, 12);
	assert_int_equal(core_counts(w.core)->runs_moved, 2);
	end_of_run(&w, 3); /* beside one that was moved */
	end_of_run(&w, 11); /* and beside the other one */
	run_of(&w, 5, SLOTS / 4);
	assert_int_equal(job_numbered(&w, 5)->run_window, SLOTS / 16);
	assert_int_equal(core_counts(w.core)->runs_moved, 2);
	leave(&w, 5);
	time_pass(&w, 10000);
	join(&w, 5, 5);
	assert_int_equal(job_numbered(&w, 5)->run_window, SLOTS / 8);
	assert_int_equal(core_counts(w.core)->runs_moved, 3);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void the_life_of_scattered_runs(struct world *w) { scatter(w); }

static void runs_that_move_survive_crashes_and_failures(void **state)
{
	crash_between_all_actions(the_life_of_scattered_runs);
	fail_each_step(the_life_of_scattered_runs);
}

static const struct job *inner_of(const struct world *w)
{
	char name[8];

	snprintf(name, sizeof(name), "j%u", INNER);
	return books_job_find(core_books(w->core), name);
}

static bool has_inner(const struct world *w) { return tables_find(&w->maps, inner_of(w)->id); }

/* A tenant with a quarter of the slots has half of them; the others come to want theirs. */
static void lend_and_recall(struct world *w)
{
	tenant(w, REQUEST_TENANT_ADD, "a", SLOTS / 4, "");
	create(w, 1, 1, "a", SLOTS / 4);
	join(w, 1, 1);
	create(w, 2, 1, "", SLOTS / 4);
	join(w, 2, 2); /* in the other half */
	create(w, 3, 1, "", SLOTS / 8);
	join(w, 3, 3);
}

static void open_to_lend(struct world *w, enum config_quotas quotas)
{
	world_open(w, 1); /* sums in software are allowed */
	w->config->quotas = quotas;
	assert_int_equal(world_start(w), 0);
}

static void slots_on_loan_are_given_back_when_a_quota_needs_them(void **state)
{
	const struct job *j;
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "a", SLOTS / 4, "");
	create(&w, 1, 1, "a", SLOTS / 4);
	join(&w, 1, 1);
	j = job_numbered(&w, 1);
	assert_true(job_is_lent(j));
	assert_int_equal(job_slots(j), SLOTS / 2);
	assert_int_equal(books_held(core_books(w.core), j->tenant), 0);
	assert_int_equal(books_lent(core_books(w.core), j->tenant), SLOTS / 2);
	assert_int_equal(core_counts(w.core)->loans, 1);
	world_restart(&w); /* whose they are, the disk knows */
	assert_true(job_is_lent(job_numbered(&w, 1)));
	lend_and_recall(&w);
	assert_false(job_is_lent(job_numbered(&w, 1)));
	assert_true(job_numbered(&w, 1)->spilled);
	assert_int_equal(job_numbered(&w, 2)->run_window, SLOTS / 4);
	assert_int_equal(job_numbered(&w, 3)->run_window, SLOTS / 8);
	assert_false(job_numbered(&w, 3)->spilled);
	assert_int_equal(core_counts(w.core)->loans_recalled, 1);
	assert_int_equal(w.worker[1].state, RUNS); /* its run goes on */
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* What its run before has is its own to use. */
static void who_begins_again_in_its_own_slots_recalls_nothing(void **state)
{
	struct world w;
	uint16_t epoch;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "a", SLOTS / 4, "");
	create(&w, 1, 1, "a", SLOTS / 4);
	join(&w, 1, 1);
	create(&w, 2, 1, "", SLOTS / 4);
	join(&w, 2, 2);
	assert_int_equal(job_slots(job_numbered(&w, 1)) + job_slots(job_numbered(&w, 2)), SLOTS);
	epoch = job_numbered(&w, 2)->epoch;
	world_restart(&w); /* so nobody is connected */
	gone(&w, 2);
	join(&w, 2, 2);
	assert_int_not_equal(job_numbered(&w, 2)->epoch, epoch);
	assert_int_equal(job_slots(job_numbered(&w, 2)), SLOTS / 2);
	assert_true(job_is_lent(job_numbered(&w, 1)));
	assert_int_equal(core_counts(w.core)->loans_recalled, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void without_loans_a_run_beyond_its_quota_is_in_software(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_FIXED);
	lend_and_recall(&w);
	leave(&w, 2);
	leave(&w, 3);
	time_pass(&w, 30000); /* all slots are free */
	assert_true(job_numbered(&w, 1)->spilled);
	assert_int_equal(core_counts(w.core)->loans, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Software cannot tell VLANs, and a loan ends there. */
static void no_tenant_gets_a_vlan_while_a_run_would_lose_its_sums_by_it(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "a", SLOTS / 4, "");
	create(&w, 1, 1, "a", SLOTS / 4);
	join(&w, 1, 1);
	tenant_in_vlan(&w, "a", 5);
	assert_int_equal(w.answered, -EBUSY);
	assert_string_equal(
		w.answer_why,
		"job j1: its run has slots on loan, and goes on in software when these are "
		"needed, and software cannot tell by which VLAN a message came, as an ingress "
		"point of tenant a asks: end the run first (tallyctl job restart j1), or name no "
		"VLAN");
	create(&w, 2, 1, "", SLOTS / 4);
	join(&w, 2, 2);
	create(&w, 3, 1, "", SLOTS / 8);
	join(&w, 3, 3);
	assert_true(job_numbered(&w, 1)->spilled);
	tenant_in_vlan(&w, "a", 5);
	assert_int_equal(w.answered, -EBUSY);
	assert_non_null(strstr(w.answer_why, "job j1: its run is summed in software"));
	assert_int_equal(w.worker[1].state, RUNS);
	tenant_in_vlan(&w, "a", 0); /* without a tag: that, software sees */
	assert_int_equal(w.answered, 0);
	leave(&w, 1);
	tenant_in_vlan(&w, "a", 5);
	assert_int_equal(w.answered, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void configure_tenant(struct config *c, const char *name, uint32_t slots, int vlan)
{
	struct tenant *t = &c->tenant[c->tenants++];

	*t = (struct tenant){ .slots = slots, .points = vlan ? 1 : 0 };
	snprintf(t->name, sizeof(t->name), "%s", name);
	snprintf(t->point[0].port, IF_NAMESIZE, "eth0");
	t->point[0].vlan = vlan;
}

/* A reload refuses that, too. After a start with such a file the run keeps its loan to its end. */
static void a_loan_that_cannot_end_in_software_is_not_recalled(void **state)
{
	struct config *first;
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	*w.other = *w.config;
	configure_tenant(w.config, "red", SLOTS / 4, 0);
	configure_tenant(w.other, "red", SLOTS / 4, 5);
	world_restart(&w);
	create(&w, 1, 1, "red", SLOTS / 4);
	join(&w, 1, 1);
	assert_true(job_is_lent(job_numbered(&w, 1)));
	reload(&w);
	assert_int_equal(w.configured, -EBUSY);
	first = w.config;
	w.config = w.other;
	w.other = first;
	world_restart(&w);
	create(&w, 2, 1, "", SLOTS / 4);
	join(&w, 2, 2);
	create(&w, 3, 1, "", SLOTS / 8);
	join(&w, 3, 3);
	assert_true(job_is_lent(job_numbered(&w, 1)));
	assert_false(job_numbered(&w, 1)->spilled);
	assert_int_equal(w.worker[1].state, RUNS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Two that want more than their quotas share what is free. */
static void who_has_most_on_loan_gives_to_who_has_nothing(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "a", 2, "");
	tenant(&w, REQUEST_TENANT_ADD, "b", 2, "");
	for (unsigned int i = 0; i < 4; i++)
		create(&w, i, 1, "a", SLOTS / 8);
	create(&w, 4, 1, "b", SLOTS / 8);
	create(&w, 5, 1, "b", SLOTS / 8);
	create(&w, 6, 1, "b", SLOTS / 8);
	for (unsigned int i = 0; i <= 6; i++)
		join(&w, i, i);
	assert_int_equal(books_lent(core_books(w.core), job_numbered(&w, 0)->tenant), SLOTS / 2);
	assert_int_equal(books_lent(core_books(w.core), job_numbered(&w, 4)->tenant), SLOTS / 2);
	assert_int_equal(core_counts(w.core)->loans_recalled, 2);
	assert_true(job_numbered(&w, 6)->spilled); /* half is what each of them has */
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* By traffic, tenant b, which sends eight times as much, comes to have three of four rings. */
static void who_sends_more_has_more_on_loan(void **state)
{
	const struct quota_use little = { .bytes_per_second = 1e9, .added_bytes_per_second = 1e9 };
	const struct quota_use much = {
		.bytes_per_second = 8e9, .added_bytes_per_second = 8e9, .held = 7, .in_software = 7
	};
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_TRAFFIC);
	tenant(&w, REQUEST_TENANT_ADD, "a", 2, "");
	tenant(&w, REQUEST_TENANT_ADD, "b", 2, "");
	for (unsigned int i = 0; i < 8; i++)
		create(&w, i, 1, i < 4 ? "a" : "b", SLOTS / 8);
	core_measured(w.core, job_numbered(&w, 0)->tenant, &little);
	core_measured(w.core, job_numbered(&w, 4)->tenant, &much);
	for (unsigned int i = 0; i < 8; i++)
		join(&w, i, i);
	assert_int_equal(books_lent(core_books(w.core), job_numbered(&w, 0)->tenant), SLOTS / 4);
	assert_int_equal(books_lent(core_books(w.core), job_numbered(&w, 4)->tenant),
			 3 * SLOTS / 4);
	assert_int_equal(core_counts(w.core)->loans_recalled, 3);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* A document is of a run within its tenant's quota. */
static void an_inner_run_gets_slots_that_were_lent(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "a", 2, "");
	create(&w, 8, 1, "a", SLOTS / 2); /* all there are; and it is looked after later */
	join(&w, 8, 8);
	assert_true(job_is_lent(job_numbered(&w, 8)));
	apply(&w, 3, 8);
	assert_int_equal(w.answered, 0);
	assert_true(has_inner(&w) && job_is_running(inner_of(&w)));
	assert_true(job_numbered(&w, 8)->spilled);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static bool has_slots(struct world *w, unsigned int number)
{
	const struct job *j = job_numbered(w, number);

	return job_slots(j) && !spill_has(w, j) && tables_find(&w->maps, j->id);
}

/* The window was told to its workers: it fits whole, or the run stays where it is. */
static void a_run_in_software_gets_slots_that_become_free(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_FIXED);
	create(&w, 2, 1, "", SLOTS / 4);
	create(&w, 3, 1, "", SLOTS / 4);
	create(&w, 1, 1, "", SLOTS / 2);
	for (unsigned int i = 1; i <= 3; i++)
		join(&w, i, i);
	assert_true(job_numbered(&w, 1)->spilled);
	leave(&w, 3);
	del(&w, 3);
	time_pass(&w, 30000);
	assert_false(has_slots(&w, 1)); /* half of them would fit */
	leave(&w, 2);
	del(&w, 2);
	time_pass(&w, 11000);
	assert_true(has_slots(&w, 1));
	assert_int_equal(job_slots(job_numbered(&w, 1)), SLOTS);
	assert_int_equal(core_counts(w.core)->runs_refilled, 1);
	assert_int_equal(w.worker[1].state, RUNS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Also where there are slots, which others were promised: its quota was lowered meanwhile. */
static void a_run_in_software_gets_no_more_slots_than_its_quota(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_FIXED);
	tenant(&w, REQUEST_TENANT_ADD, "a", SLOTS / 2, "");
	create(&w, 2, 1, "a", SLOTS / 4);
	create(&w, 1, 1, "a", SLOTS / 4);
	join(&w, 1, 1);
	assert_true(job_numbered(&w, 1)->spilled);
	w.nobody_answers = true; /* so it stays there when it comes to be within its quota */
	del(&w, 2);
	time_pass(&w, 11000);
	assert_true(job_numbered(&w, 1)->spilled);
	assert_false(job_numbered(&w, 1)->over);
	tenant(&w, REQUEST_TENANT_SET, "a", SLOTS / 4, "");
	w.nobody_answers = false;
	time_pass(&w, 100000);
	assert_false(has_slots(&w, 1));
	tenant(&w, REQUEST_TENANT_SET, "a", SLOTS / 2, "");
	time_pass(&w, 100000);
	assert_true(has_slots(&w, 1));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void who_gave_slots_back_waits_ever_longer(void **state)
{
	unsigned int s[3] = { 0 };
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	lend_and_recall(&w);
	for (unsigned int i = 0; i < 3; i++) {
		assert_false(has_slots(&w, 1));
		leave(&w, 2);
		for (; !has_slots(&w, 1) && s[i] < 100; s[i]++)
			time_pass(&w, 1000);
		assert_true(job_is_lent(job_numbered(&w, 1)));
		join(&w, 2, 2);
	}
	assert_in_range(s[0], 10, 11);
	assert_in_range(s[1], 20, 21);
	assert_in_range(s[2], 40, 41);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Its worker is behind no port: loans that are recalled for it are recalled in vain. */
static void who_cannot_use_slots_waits_ever_longer(void **state)
{
	unsigned int tries = 0, s = 0;
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_FIXED);
	create(&w, 2, 1, "", SLOTS / 2);
	create(&w, 1, 1, "", SLOTS / 2);
	join(&w, 1, 1);
	assert_true(job_numbered(&w, 1)->spilled);
	del(&w, 2);
	w.nobody_answers = true;
	for (uint64_t wait_ms = 0; s < 150; s++) {
		time_pass(&w, 1000);
		tries += job_numbered(&w, 1)->refill_apart_ms != wait_ms;
		wait_ms = job_numbered(&w, 1)->refill_apart_ms;
	}
	assert_in_range(tries, 3, 5); /* after 10 s, 20 s, 40 s and 80 s */
	w.nobody_answers = false;
	time_pass(&w, 100000);
	assert_true(has_slots(&w, 1));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Of jobs that borrow, too: afterwards they do not. */
static void refilled_life(struct world *w)
{
	w->config->spill_mib = w->other->spill_mib = 1;
	w->config->pool_slots = w->other->pool_slots = 64;
	world_restart(w);
	create(w, 1, 1, "", SLOTS / 2);
	create(w, 2, 1, "", SLOTS / 4);
	create(w, 3, 2, "", SLOTS / 4);
	join(w, 1, 1);
	join(w, 2, 2);
	join(w, 3, 3);
	join(w, 4, 3);
	leave(w, 1);
	del(w, 1);
	time_pass(w, 11000);
	leave(w, 2);
	del(w, 2);
	time_pass(w, 11000);
	neighbour(w, 1);
	time_pass(w, 11000);
}

/* The same of an inner job. */
static void inner_refilled_life(struct world *w)
{
	create(w, 1, 1, "", SLOTS / 2);
	join(w, 1, 1);
	apply(w, 3, 8);
	leave(w, 1);
	del(w, 1);
	time_pass(w, 11000);
	neighbour(w, 1);
	time_pass(w, 11000);
}

static void runs_that_get_slots_survive_crashes_and_failures(void **state)
{
	crash_between_all_actions(refilled_life);
	fail_each_step(refilled_life);
	crash_between_all_actions(inner_refilled_life);
	fail_each_step(inner_refilled_life);
}

static void lent_life(struct world *w)
{
	w->config->quotas = w->other->quotas = CONFIG_QUOTAS_LEND;
	w->config->spill_mib = w->other->spill_mib = 1;
	world_restart(w);
	lend_and_recall(w);
	apply(w, 3, 8);
}

static void runs_with_slots_on_loan_survive_crashes_and_failures(void **state)
{
	crash_between_all_actions(lent_life);
	fail_each_step(lent_life);
}

/* For a second; and others are served meanwhile. */
static void a_run_waits_for_its_neighbours(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	for (unsigned int i = 1; i <= 3; i++)
		create(&w, i, 1, "", 16);
	w.nobody_answers = true;
	join(&w, 1, 1);
	join(&w, 2, 2);
	assert_int_equal(w.worker[1].state, ASKS);
	w.nobody_answers = false;
	join(&w, 3, 3);
	assert_int_equal(w.worker[3].state, RUNS);
	neighbour(&w, 1);
	time_pass(&w, 10);
	assert_int_equal(w.worker[1].state, RUNS);
	assert_int_equal(w.worker[2].state, RUNS);
	leave(&w, 1);
	w.nobody_answers = true;
	join(&w, 1, 1);
	time_pass(&w, 900);
	assert_int_equal(w.worker[1].state, ASKS);
	time_pass(&w, 200);
	assert_int_equal(w.worker[1].state, AWAY);
	assert_int_equal(core_counts(w.core)->runs_refused[CORE_RUN_NO_WAY], 1);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Nobody is waited for; what it wants is looked for when somebody is heard of, or after 10 s. */
static void a_run_of_an_inner_node_comes_when_its_neighbours_do(void **state)
{
	const struct core_event deadline = { .kind = CORE_DEADLINE };
	uint64_t awaited;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.nobody_answers = true;
	apply(&w, 3, 8);
	assert_int_equal(w.answered, 0);
	assert_false(job_is_running(inner_of(&w)) || has_inner(&w));
	assert_int_equal(w.wait_ms_max, 0);
	assert_string_not_equal(inner_of(&w)->trouble.text, "");
	assert_int_equal(w.inner_logged, 1);
	time_pass(&w, 25000); /* again, and in silence */
	assert_int_equal(w.inner_logged, 1);
	assert_int_equal(w.wait_ms_max, 0);
	awaited = w.awaited;
	world_do(&w, &deadline);
	assert_true(w.awaited - awaited < 3);
	tenant(&w, REQUEST_TENANT_ADD, "a", 64, "eth0"); /* the maps are read, and it is tried */
	assert_int_equal(w.wait_ms_max, 0);
	world_restart(&w);
	assert_int_equal(w.wait_ms_max, 0);
	assert_false(has_inner(&w));
	w.nobody_answers = false;
	neighbour(&w, 1);
	time_pass(&w, 10);
	assert_true(has_inner(&w) && job_is_running(inner_of(&w)));
	assert_string_equal(inner_of(&w)->trouble.text, "");
	assert_false(tables_find(&w.maps, inner_of(&w)->id)->job.root);
	assert_false(tables_find(&w.maps, inner_of(&w)->id)->job.bound);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void without_a_word_it_comes_after_ten_seconds(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.nobody_answers = true;
	apply(&w, 3, 8);
	w.nobody_answers = false;
	time_pass(&w, 9000);
	assert_false(has_inner(&w));
	time_pass(&w, 1100);
	assert_true(has_inner(&w));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Who applies it has to know which job is in the way. */
static void a_document_whose_number_another_job_has_is_refused(void **state)
{
	static struct request q = { .verb = REQUEST_APPLY };
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 3, 8);
	q.apply.document = *inner_of(&w)->document;
	snprintf(q.apply.document.job, sizeof(q.apply.document.job), "squat");
	assert_false(ask(&w, &q));
	assert_int_equal(w.answered, -EEXIST);
	assert_string_equal(w.answer_why,
			    "job squat: job j7 of this node has its number, 2147483399: tallyctl "
			    "job del j7 first, if that one is over");
	assert_true(has_inner(&w));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Neither root knows the names that the other one gives. */
static void jobs_of_two_roots_may_have_one_name(void **state)
{
	static struct request q = { .verb = REQUEST_APPLY };
	const struct job *other;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 3, 8);
	q.apply.document = *inner_of(&w)->document;
	q.apply.document.root = world_address(202);
	endpoint_port_set(&q.apply.document.root, TALLY_UDP_PORT);
	q.apply.document.id = 5;
	assert_true(ask(&w, &q));
	other = books_job_find(core_books(w.core), "j7-5");
	assert_non_null(other);
	assert_string_equal(inner_of(&w)->name, "j7");
	assert_true(has_inner(&w) && tables_find(&w.maps, other->id));

	q.apply.document.id = 6; /* that root has deleted its job, and has another one */
	assert_true(ask(&w, &q));
	other = books_job_find(core_books(w.core), "j7-5");
	assert_true(other && other->id == 6);
	assert_ptr_equal(other, books_inner_find(core_books(w.core), "j7", &q.apply.document.root));
	assert_true(has_inner(&w) && tables_find(&w.maps, 6) && !tables_find(&w.maps, 5));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Its results would be dropped; without the run in the maps all is slow, too, but it is said. */
static void an_inner_run_waits_until_its_tenant_may_come_from_the_root(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	tenant(&w, REQUEST_TENANT_ADD, "a", 64, "eth0");
	apply_for(&w, "a", 3, 8);
	assert_int_equal(w.answered, 0);
	assert_false(has_inner(&w));
	assert_string_equal(inner_of(&w)->trouble.text,
			    "results of the root 10.77.1.202 come in by eth1, where tenant a may "
			    "not: give it an ingress point there, too");
	tenant(&w, REQUEST_TENANT_SET, "a", 64, "eth1");
	time_pass(&w, 10100);
	assert_true(has_inner(&w) && job_is_running(inner_of(&w)));
	assert_string_equal(inner_of(&w)->trouble.text, "");
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* The core believes that its maps have it; whoever applies again finds out that they do not. */
static void a_document_that_comes_again_brings_back_what_the_maps_lost(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 3, 8);
	assert_true(has_inner(&w));
	tables_forget(&w.maps, inner_of(&w)->id);
	memset(w.rank_key, 0, sizeof(w.rank_key));
	memset(w.node_key, 0, sizeof(w.node_key));
	assert_true(job_is_running(inner_of(&w)));
	w.nobody_answers = true;
	apply(&w, 3, 8);
	assert_int_equal(w.answered, 0);
	assert_false(job_is_running(inner_of(&w)));
	w.nobody_answers = false;
	apply(&w, 3, 8);
	assert_true(has_inner(&w) && job_is_running(inner_of(&w)));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void only_the_next_runs_document_takes_the_place_of_one(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 65535, 8);
	apply(&w, 65535, 16);
	assert_int_equal(w.answered, -EEXIST);
	apply(&w, 65534, 8);
	assert_int_equal(w.answered, -ESTALE);
	cordon(&w, true);
	apply(&w, 0, 8);
	assert_int_equal(w.answered, -EBUSY);
	apply(&w, 65535, 8); /* is there */
	assert_int_equal(w.answered, 0);
	cordon(&w, false);
	apply(&w, 0, 16);
	assert_int_equal(inner_of(&w)->epoch, 0);
	assert_int_equal(tables_find(&w.maps, inner_of(&w)->id)->job.slot_mask, 31);
	create(&w, 1, 1, "", 16);
	rotate(&w, INNER);
	assert_int_equal(w.answered, -EINVAL);
	restart(&w, INNER);
	assert_int_equal(w.answered, -EINVAL);
	w.job[INNER].token[0] = '\0'; /* it has none, and that is not one */
	join(&w, 0, INNER);
	assert_int_equal(w.worker[0].state, AWAY);
	del(&w, INNER);
	assert_int_equal(w.maps.jobs, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* As apply(), of a job with the same name and number. */
static void apply_born(struct world *w, uint64_t birth, uint16_t epoch, uint32_t generation)
{
	static struct request q;

	memset(&q, 0, sizeof(q));
	q.verb = REQUEST_APPLY;
	q.apply.document = *inner_of(w)->document;
	q.apply.document.birth = birth;
	q.apply.document.epoch = epoch;
	q.apply.document.generation = generation;
	ask(w, &q);
	asked(w);
}

/* Its root has deleted the one before, and its farewell was lost. */
static void a_later_job_of_that_number_takes_the_place_of_one(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 300, 8);
	apply_born(&w, 5, 299, 0); /* the one before is of an older agent */
	assert_int_equal(w.answered, 0);
	assert_int_equal(inner_of(&w)->epoch, 299);
	assert_int_equal(tables_find(&w.maps, inner_of(&w)->id)->job.epoch, 299);
	apply_born(&w, 5, 298, 0);
	assert_int_equal(w.answered, -ESTALE);
	apply_born(&w, 6, 299, 1); /* sums of the one before may be in these slots */
	assert_int_equal(w.answered, -EEXIST);
	apply_born(&w, 6, 298, 0);
	assert_int_equal(w.answered, 0);
	apply_born(&w, 6, 298, 0); /* is there */
	assert_int_equal(w.answered, 0);
	assert_int_equal(inner_of(&w)->document->birth, 6);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Ranks 0 and 2 were below the node; of those this leaves the first `ranks`. */
static void apply_again(struct world *w, uint32_t generation, unsigned int ranks)
{
	static struct request q;

	memset(&q, 0, sizeof(q));
	q.verb = REQUEST_APPLY;
	q.apply.document = *inner_of(w)->document;
	q.apply.document.generation = generation;
	q.apply.document.ranks = ranks;
	q.apply.document.keys = ranks + 1;
	ask(w, &q);
	asked(w);
}

static void a_later_tree_of_the_same_run_takes_the_place_of_one(void **state)
{
	const struct tables_job *m;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	apply(&w, 3, 8);
	apply_again(&w, 5, 1);
	assert_int_equal(w.answered, 0);
	time_pass(&w, 10);
	m = tables_find(&w.maps, inner_of(&w)->id);
	assert_int_equal(m->copies, 1);
	assert_int_equal(tally_set_count(&m->job.below), 1);
	assert_int_equal(m->job.epoch, 3);
	assert_true(m->job.keyed && m->job.node_key && !m->job.bound);
	apply_again(&w, 4, 1);
	assert_int_equal(w.answered, -EEXIST);
	w.maps.job[0].copies = w.maps.job[0].job.copies = 0; /* as if it had not come to that */
	apply_again(&w, 6, 1); /* the tree is another one elsewhere: nothing is written */
	assert_int_equal(w.answered, 0);
	time_pass(&w, 10);
	assert_int_equal(inner_of(&w)->document->generation, 6);
	assert_int_equal(tables_find(&w.maps, inner_of(&w)->id)->copies, 0);
	world_restart(&w);
	time_pass(&w, 10);
	assert_int_equal(tables_find(&w.maps, inner_of(&w)->id)->copies, 1);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void found(struct world *w, const struct job *j, unsigned int nodes, uint16_t epoch)
{
	static struct tree tree;
	const struct core_event e = { .kind = CORE_TREE,
				      .found = { j->id, epoch, &tree, "p1: is away" } };

	memset(&tree, 0, sizeof(tree));
	tree.nodes = nodes;
	snprintf(tree.node[0].name, sizeof(tree.node[0].name), "p0");
	tree.node[0].address = world_address(120);
	endpoint_port_set(&tree.node[0].address, TALLY_UDP_PORT);
	tree.node[0].ranks = tally_set_first(2);
	world_do(w, &e);
	time_pass(w, 10);
}

static void a_run_goes_on_with_the_tree_that_is_found(void **state)
{
	struct request q = {
		.verb = REQUEST_JOB_CREATE,
		.job = { .name = "j1", .workers = 3, .window = 8, .tree.found = true }
	};
	const struct job *j;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	assert_false(ask(&w, &q));
	assert_string_equal(w.answer_why,
			    "--tree auto: this node knows no agents that it could ask: add "
			    "peers.secret and peers.nodes to tallyd.yaml, then tallyctl reload");
	snprintf(w.config->peers.secret, sizeof(w.config->peers.secret), "/secret");
	w.config->peers.nodes = 1;
	w.job[1].state = PERHAPS;
	assert_true(ask(&w, &q));
	asked(&w);
	for (unsigned int i = 0; i < 3; i++)
		join(&w, i, 1);
	j = job_numbered(&w, 1);
	assert_int_equal(tables_find(&w.maps, j->id)->copies, 3);
	found(&w, j, 1, j->epoch);
	assert_int_equal(tables_find(&w.maps, j->id)->copies, 2);
	assert_int_equal(j->tree->generation, 1);
	assert_string_equal(j->left_out.text, "p1: is away");
	found(&w, j, 1, j->epoch); /* nothing new */
	found(&w, j, 0, j->epoch - 1); /* of a run that is over */
	assert_int_equal(j->tree->generation, 1);
	world_restart(&w);
	j = job_numbered(&w, 1);
	assert_true(j->tree->found && j->tree->nodes == 1 && j->tree->generation == 1);
	w.nobody_answers = true;
	found(&w, j, 0, j->epoch);
	assert_int_equal(tables_find(&w.maps, j->id)->copies, 2);
	assert_int_equal(w.wait_ms_max, 0);
	w.nobody_answers = false;
	found(&w, j, 0, j->epoch); /* asked again, as agents do */
	assert_int_equal(tables_find(&w.maps, j->id)->copies, 3);
	assert_int_equal(j->tree->generation, 2);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void joins_as(struct world *w, unsigned int worker, uint16_t rank)
{
	w->worker[worker].rank = rank;
	join(w, worker, 1);
}

/* Its address and ranks are still to be said. */
static struct request creates_with_a_node(void)
{
	return (struct request){ .verb = REQUEST_JOB_CREATE,
				 .job = { .name = "j1",
					  .workers = 3,
					  .window = 8,
					  .tree = { .nodes = 1, .node = { { .name = "p0" } } } } };
}

static void a_node_of_a_written_tree_is_not_named_by_loopback(void **state)
{
	struct request q = creates_with_a_node();
	struct tree_node *node = &q.job.tree.node[0];
	struct world w;

	assert_int_equal(address_parse("127.0.0.1", TALLY_UDP_PORT, &node->address), 0);
	node->ranks = tally_set_first(2);
	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	assert_false(ask(&w, &q));
	assert_non_null(strstr(w.answer_why, "tree: node p0: every machine has 127.0.0.1"));
	world_close(&w);
}

/* In this world there are two ports: one with even workers, one with odd workers and the node. */
static void ranks_are_astray_where_routes_contradict_a_written_tree(void **state)
{
	struct request q = creates_with_a_node();
	struct tree_node *node = &q.job.tree.node[0];
	struct world w;

	node->address = world_address(120);
	endpoint_port_set(&node->address, TALLY_UDP_PORT);
	node->ranks = tally_set_first(2);
	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.job[1].state = PERHAPS;
	assert_true(ask(&w, &q));
	asked(&w);
	w.ranked = true;
	joins_as(&w, 0, 1);
	joins_as(&w, 1, 0);
	joins_as(&w, 2, 2);
	assert_non_null(strstr(job_numbered(&w, 1)->astray.text, "rank 1 is not behind the node"));
	assert_int_equal(w.astray_logged, 1);
	for (unsigned int i = 0; i < 3; i++)
		leave(&w, i);
	joins_as(&w, 1, 0);
	joins_as(&w, 3, 1);
	joins_as(&w, 4, 2);
	assert_true(job_is_running(job_numbered(&w, 1)));
	assert_string_equal(job_numbered(&w, 1)->astray.text, "");
	assert_int_equal(w.astray_logged, 1);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static const struct tally_job *in_maps(const struct world *w, unsigned int number)
{
	return &tables_find(&w->maps, job_numbered(w, number)->id)->job;
}

/* A node without a pool serves it, too: contributions pass, and results are copied. */
static void an_inner_run_without_slots_borrows(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	assert_int_equal(w.maps.pool, 0);
	apply(&w, 3, SLOTS); /* more slots than there are */
	assert_int_equal(w.answered, 0);
	assert_true(has_inner(&w) && job_is_running(inner_of(&w)));
	assert_true(in_maps(&w, INNER)->borrows && !in_maps(&w, INNER)->root);
	assert_int_equal(in_maps(&w, INNER)->range, SLOTS);
	assert_true(in_maps(&w, INNER)->copies > 0);
	world_restart(&w);
	assert_true(in_maps(&w, INNER)->borrows && job_is_running(inner_of(&w)));
	apply(&w, 4, 8);
	assert_false(in_maps(&w, INNER)->borrows);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* By quota there are enough slots for it; but not in a row, and others were moved just now. */
static void an_inner_run_borrows_where_slots_are_scattered(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	run_of(&w, 14, SLOTS / 2);
	half_scatter(&w, 0, 4);
	end_of_run(&w, 14);
	half_scatter(&w, 8, 12);
	end_of_run(&w, 3);
	end_of_run(&w, 11);
	apply(&w, 3, SLOTS / 8);
	assert_int_equal(w.answered, 0);
	assert_true(in_maps(&w, INNER)->borrows && job_is_running(inner_of(&w)));
	time_pass(&w, 1000); /* that is on disk, too */
	world_restart(&w);
	assert_true(in_maps(&w, INNER)->borrows);
	apply(&w, 4, SLOTS / 8);
	assert_false(in_maps(&w, INNER)->borrows);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Beyond the quota there are free slots, which are lent: to no run that could not give them back.
 */
static void an_inner_run_gets_no_slots_on_loan(void **state)
{
	struct world w;

	open_to_lend(&w, CONFIG_QUOTAS_LEND);
	tenant(&w, REQUEST_TENANT_ADD, "few", 16, "");
	apply_for(&w, "few", 3, SLOTS / 4);
	assert_true(in_maps(&w, INNER)->borrows);
	time_pass(&w, 60000);
	assert_true(in_maps(&w, INNER)->borrows);
	assert_int_equal(core_counts(w.core)->runs_refilled, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* In the run that is on; who it is, and what it sends on, stays. */
static void an_inner_run_that_borrows_gets_slots_when_there_are_some(void **state)
{
	struct world w;
	struct tally_job before;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	run_of(&w, 14, SLOTS);
	apply(&w, 3, 8);
	assert_int_equal(w.answered, 0);
	before = *in_maps(&w, INNER);
	assert_true(before.borrows);
	time_pass(&w, 30000);
	assert_true(in_maps(&w, INNER)->borrows);
	end_of_run(&w, 14);
	time_pass(&w, 11000);
	assert_false(in_maps(&w, INNER)->borrows);
	assert_int_equal(in_maps(&w, INNER)->slot_mask, 2 * 8 - 1);
	assert_int_equal(in_maps(&w, INNER)->epoch, before.epoch);
	assert_int_equal(in_maps(&w, INNER)->copies, before.copies);
	assert_false(in_maps(&w, INNER)->root);
	assert_int_equal(core_counts(w.core)->runs_refilled, 1);
	world_restart(&w);
	assert_false(in_maps(&w, INNER)->borrows);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

enum {
	SEED_OF_POOL = 5, /* with a pool, and sums in software, without loans */
};

/* Then the software is its root. With tags, it has a key that both parts of the node know. */
static void a_run_without_slots_borrows_and_is_in_software(void **state)
{
	struct world w;

	world_open(&w, SEED_OF_POOL);
	assert_int_equal(world_start(&w), 0);
	create(&w, 3, 1, "", SLOTS); /* no tags */
	create(&w, 4, 1, "", SLOTS);
	join(&w, 0, 3);
	join(&w, 1, 4);
	assert_string_equal(w.wrong, "");
	assert_int_equal(w.maps.jobs, 2);
	assert_int_equal(w.spills, 2);
	assert_true(in_maps(&w, 4)->borrows && in_maps(&w, 4)->keyed && in_maps(&w, 4)->node_key);
	assert_false(in_maps(&w, 3)->keyed || in_maps(&w, 3)->node_key);
	assert_true(in_maps(&w, 3)->borrows && !in_maps(&w, 3)->root && !in_maps(&w, 3)->bound);
	assert_int_equal(in_maps(&w, 3)->copies, 0);
	assert_int_equal(in_maps(&w, 3)->range, SLOTS);
	world_restart(&w);
	assert_true(in_maps(&w, 3)->borrows);
	leave(&w, 0);
	assert_int_equal(w.maps.jobs, 1);
	assert_int_equal(w.spills, 1);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Of what a swap sends up nobody can say where it came in. */
static void who_gets_ingress_points_borrows_no_more(void **state)
{
	struct world w;

	world_open(&w, SEED_OF_POOL);
	assert_int_equal(world_start(&w), 0);
	tenant(&w, REQUEST_TENANT_ADD, "a", 0, "");
	create(&w, 3, 1, "a", SLOTS / 2);
	create(&w, 4, 1, "", SLOTS);
	join(&w, 0, 3);
	join(&w, 1, 4);
	assert_true(in_maps(&w, 3)->borrows);
	tenant(&w, REQUEST_TENANT_SET, "a", 0, "eth0");
	assert_int_equal(w.answered, 0);
	assert_false(job_numbered(&w, 3)->borrows);
	assert_true(job_numbered(&w, 3)->spilled);
	assert_int_equal(w.worker[0].state, RUNS);
	assert_int_equal(w.maps.jobs, 1);
	assert_int_equal(w.spills, 2);
	world_restart(&w);
	assert_int_equal(w.maps.jobs, 1);
	assert_int_equal(w.spills, 2);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Each step of a beginning that borrows fails once: then it is in software all the same. */
static void what_cannot_be_borrowed_costs_time_only(void **state)
{
	unsigned int ran = 0;
	struct world w;

	for (unsigned int step = 1; step <= 6; step++) {
		world_open(&w, SEED_OF_POOL);
		assert_int_equal(world_start(&w), 0);
		create(&w, 3, 1, "", SLOTS);
		w.fail_at = w.awaited + step;
		join(&w, 0, 3);
		ran += w.worker[0].state == RUNS;
		time_pass(&w, 30000);
		assert_string_equal(w.wrong, "");
		world_close(&w);
	}
	assert_int_equal(ran, 5); /* but for the software itself */
}

/* What the last run was in, and the next one is not in, is taken away. */
static void a_run_gets_slots_when_there_are_enough(void **state)
{
	struct world w;

	world_open(&w, SEED_OF_POOL);
	assert_int_equal(world_start(&w), 0);
	create(&w, 3, 1, "", SLOTS / 2);
	create(&w, 6, 1, "", SLOTS / 2);
	join(&w, 0, 3);
	join(&w, 1, 6);
	assert_false(in_maps(&w, 3)->borrows);
	assert_true(in_maps(&w, 6)->borrows);
	leave(&w, 0);
	del(&w, 3);
	leave(&w, 1);
	join(&w, 1, 6);
	assert_false(in_maps(&w, 6)->borrows);
	assert_int_equal(w.spills, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Each step of a beginning fails once, and the worker comes again. */
static void what_is_refused_is_counted_by_its_reason(void **state)
{
	const struct core_counts *n;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	n = core_counts(w.core);
	create(&w, 1, 1, "", 16);
	w.job[1].token[0] ^= 1;
	join(&w, 0, 1);
	w.job[1].token[0] ^= 1;
	assert_int_equal(n->joins_refused[CORE_JOIN_TOKEN], 1);
	w.restores_failed = 1; /* of what it awaits */
	for (unsigned int step = 1; step <= 5; step++) {
		w.fail_at = w.awaited + step;
		join(&w, 0, 1);
		leave(&w, 0);
		time_pass(&w, 30000);
	}
	assert_string_equal(w.wrong, "");
	assert_int_equal(n->runs_refused[CORE_RUN_NO_WAY], 0); /* its neighbour may answer yet */
	assert_int_equal(n->runs_refused[CORE_RUN_KERNEL], 2); /* maps: to read, to write */
	assert_int_equal(n->saves_failed, 1);
	assert_int_equal(n->runs_begun,
			 2); /* a worker may join before its way is known; the disk */
	world_close(&w);
}

/* For people it is no failure of the kernel: they make the MTU larger. */
static void a_port_whose_mtu_is_too_small_is_a_reason_of_its_own(void **state)
{
	const struct core_counts *n;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	n = core_counts(w.core);
	create(&w, 1, 1, "", 16);
	w.mtu = 1000;
	join(&w, 0, 1);
	assert_string_equal(w.wrong, "");
	assert_int_equal(w.worker[0].state, AWAY);
	assert_int_equal(n->runs_refused[CORE_RUN_MTU], 1);
	assert_int_equal(n->runs_refused[CORE_RUN_KERNEL], 0);
	world_close(&w);
}

/* A job of three workers, with these MTUs of their ways, and a run of it. */
static void run_of_three(struct world *w, uint16_t mtu0, uint16_t mtu1, uint16_t mtu2)
{
	create(w, 1, 3, "", 16);
	w->worker[0].mtu = mtu0;
	w->worker[1].mtu = mtu1;
	w->worker[2].mtu = mtu2;
	for (unsigned int i = 0; i < 3; i++)
		leave(w, i);
	for (unsigned int i = 0; i < 3; i++)
		join(w, i, 1);
}

/* Of the job, as workers and inner nodes hear of it, and as the maps have it. 0: they differ. */
static unsigned int payload_there(const struct world *w)
{
	const struct job *j = books_job_find(core_books(w->core), "j1");
	const struct tables_job *there = tables_find(&w->maps, j->id);

	return there && there->job.blocks_max * TALLY_BLOCK_BYTES == j->payload_bytes
		       ? j->payload_bytes
		       : 0;
}

static void a_run_has_the_largest_payload_that_all_of_its_ways_carry(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.mtu = 9000;
	run_of_three(&w, 9000, 3484, 9000);
	assert_int_equal(payload_there(&w), 3392);
	run_of_three(&w, 9000, 3483, 9000);
	assert_int_equal(payload_there(&w), 3328);
	run_of_three(&w, 9000, 2000, 3500);
	assert_int_equal(payload_there(&w), 1856);
	run_of_three(&w, 9000, 0, 9000); /* an older one, or one behind 1500 */
	assert_int_equal(payload_there(&w), 1408);
	run_of_three(&w, 9000, 600, 9000);
	assert_int_equal(payload_there(&w), 1408); /* never less: it says so when it sends */
	w.mtu = 2000; /* of the node's own ports */
	run_of_three(&w, 9000, 9000, 9000);
	assert_int_equal(payload_there(&w), 1856);
	world_restart(&w);
	assert_int_equal(payload_there(&w), 1856);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Ports are asked when the run begins, too: a neighbour may not be known when a worker comes. */
static void a_way_that_is_known_late_counts_as_it_is(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.mtu = 9000;
	create(&w, 1, 3, "", 16);
	for (unsigned int i = 0; i < 3; i++)
		w.worker[i].mtu = 9000;
	w.nobody_answers = true;
	join(&w, 0, 1);
	join(&w, 1, 1);
	w.nobody_answers = false;
	join(&w, 2, 1);
	assert_int_equal(w.worker[0].state, RUNS);
	assert_int_equal(payload_there(&w), 3392);
	world_close(&w);
}

static void a_payload_that_was_asked_for_stays(void **state)
{
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .job = { .name = "j1", .workers = 3, .payload_bytes = 1408 } };
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.mtu = 9000;
	assert_true(ask(&w, &q));
	w.job[1].state = THERE;
	w.job[1].told_epoch = -1;
	w.job[1].serial = ++w.jobs_made;
	run_of_three(&w, 9000, 9000, 9000);
	assert_int_equal(payload_there(&w), 1408);
	w.carried = 3392; /* of whom that is, the ranks find out in the run */
	run_of_three(&w, 9000, 9000, 9000);
	assert_int_equal(payload_there(&w), 1408);
	world_close(&w);
}

static const char *unfit(const struct world *w)
{
	return books_job_find(core_books(w->core), "j1")->unfit.text;
}

/* What a chunk carries cannot change on the way from one root to the next. */
static void a_run_that_goes_on_here_keeps_its_payload_or_is_refused(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.mtu = 9000;
	w.carried = 1408;
	run_of_three(&w, 9000, 9000, 9000);
	assert_int_equal(payload_there(&w), 1408);
	w.carried = 3392;
	run_of_three(&w, 9000, 9000, 3484);
	assert_int_equal(payload_there(&w), 3392);
	assert_string_equal(unfit(&w), "");
	run_of_three(&w, 9000, 1500, 9000);
	assert_int_equal(w.worker[1].state, AWAY);
	assert_string_equal(w.refused,
			    "EMSGSIZE: payload 3392: the run that rank 1 is in makes packets of "
			    "3484 bytes, and its way to this node carries 1500: the run cannot go "
			    "on here");
	assert_string_equal(unfit(&w), w.refused + strlen("EMSGSIZE: "));
	w.carried = 0; /* another run */
	run_of_three(&w, 9000, 1500, 9000);
	assert_int_equal(payload_there(&w), 1408);
	assert_string_equal(unfit(&w), "");
	w.carried = 3392;
	w.mtu = 1500; /* of this node's ports */
	run_of_three(&w, 9000, 9000, 9000);
	assert_int_equal(w.worker[1].state, AWAY);
	assert_int_equal(core_counts(w.core)->runs_refused[CORE_RUN_MTU], 1);
	assert_non_null(strstr(unfit(&w), "has an MTU of 1500: the run cannot go on here"));
	world_close(&w);
}

static void a_worker_whose_ingress_point_goes_while_it_waits_is_refused(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	tenant(&w, REQUEST_TENANT_ADD, "a", 64, "");
	create(&w, 1, 4, "a", 16);
	for (unsigned int i = 0; i < 4; i++)
		w.worker[i].port = w.link[i % 2].ifindex;
	all_join(&w, 0, 3, 1);
	tenant(&w, REQUEST_TENANT_SET, "a", 64, "eth0");
	w.worker[3].port = w.link[0].ifindex;
	assert_int_equal(w.worker[1].state, WAITS);
	join(&w, 3, 1);
	assert_int_equal(w.worker[1].state, AWAY);
	assert_string_equal(
		w.refused, "EPERM: 10.77.1.2 without a VLAN tag at eth1: tenant a may not come in "
			   "from there: join from where it may, or give it all ingress points that "
			   "it needs (tallyctl tenant set a --ingress ...). It has eth0");
	assert_int_equal(core_counts(w.core)->joins_refused[CORE_JOIN_INGRESS], 1);
	assert_int_equal(w.worker[0].state, WAITS);
	assert_int_equal(w.worker[3].state, WAITS);
	w.worker[1].port = w.link[0].ifindex;
	join(&w, 1, 1);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(w.worker[i].state, RUNS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Where it is not known by which port a worker comes in, nobody guesses. */
static void a_worker_outside_its_tenants_ingress_points_does_not_join(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	tenant(&w, REQUEST_TENANT_ADD, "a", 64, "eth0");
	create(&w, 1, 3, "a", 16);
	w.worker[0].port = w.link[1].ifindex;
	w.worker[1].port = w.link[0].ifindex;
	w.worker[3].port = w.link[2].ifindex; /* is none of the node's ports */
	join(&w, 0, 1);
	assert_int_equal(w.worker[0].state, AWAY);
	assert_string_equal(
		w.refused, "EPERM: 10.77.1.1 without a VLAN tag at eth1: tenant a may not come in "
			   "from there: join from where it may, or give it all ingress points that "
			   "it needs (tallyctl tenant set a --ingress ...). It has eth0");
	assert_int_equal(core_counts(w.core)->joins_refused[CORE_JOIN_INGRESS], 1);
	assert_int_equal(w.refusals_logged, 1);
	all_join(&w, 1, 3, 1);
	assert_int_equal(w.worker[1].state, RUNS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static int tenant_of_cluster(struct world *w, const char *port)
{
	struct request q = { .verb = REQUEST_TENANT_SET, .given = REQUEST_INGRESS };

	snprintf(q.tenant.name, sizeof(q.tenant.name), "red");
	q.tenant.clustered = q.tenant.gated = true;
	q.tenant.points = *port ? 1 : 0;
	snprintf(q.tenant.point[0].port, IF_NAMESIZE, "%s", port);
	q.tenant.point[0].vlan = TENANT_VLAN_ANY;
	ask(w, &q);
	asked(w);
	return w->answered;
}

/* As the cluster says: at ports of this node, or nowhere, also for what is here already. */
static void a_tenant_of_the_cluster_comes_in_where_that_says(void **state)
{
	struct request q = { .verb = REQUEST_TENANT_ADD, .given = REQUEST_SLOTS };
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	snprintf(q.tenant.name, sizeof(q.tenant.name), "red");
	q.tenant.slots = 64;
	q.tenant.clustered = true;
	ask(&w, &q);
	asked(&w);
	assert_int_equal(w.answered, 0);
	create(&w, 1, 2, "red", 16);
	all_join(&w, 0, 2, 1);
	assert_int_equal(w.worker[1].state, RUNS);
	assert_int_equal(tenant_of_cluster(&w, "eth0"), 0);
	/* Nobody at this node changes that. */
	q = (struct request){ .verb = REQUEST_TENANT_SET, .given = REQUEST_INGRESS };
	snprintf(q.tenant.name, sizeof(q.tenant.name), "red");
	ask(&w, &q);
	asked(&w);
	assert_int_equal(w.answered, -EPERM);
	assert_int_equal(tenant_of_cluster(&w, "eth9"), -EINVAL);
	assert_int_equal(tenant_of_cluster(&w, ""), 0);
	assert_string_equal(w.wrong, "");
	create(&w, 2, 2, "red", 16);
	assert_null(books_job_find(core_books(w.core), "j2"));
	q = (struct request){ .verb = REQUEST_JOB_RESTART };
	snprintf(q.name, sizeof(q.name), "j1");
	ask(&w, &q);
	asked(&w);
	assert_int_equal(w.answered, 0);
	join(&w, 0, 1);
	assert_int_equal(w.worker[0].state, AWAY);
	assert_string_equal(w.refused, "EPERM: tenant red may come in nowhere at this node, as the "
				       "cluster says: see tallyctl quota red --cluster");
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Who hears no more of a run's root asks elsewhere; where the run goes on, it is told so, and the
 * others hear nothing of it. */
static void a_worker_of_the_run_that_goes_on_is_not_taken_for_a_new_one(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 16);
	all_join(&w, 1, 2, 1);
	assert_int_equal(w.worker[1].state, RUNS);
	w.from = w.worker[1].nonce;
	join(&w, 3, 1);
	assert_int_equal(w.worker[3].state, AWAY);
	assert_string_equal(w.refused, "EADDRINUSE: the run that this worker is in goes on at this "
				       "node: its packets do not come in, or results do not reach "
				       "it");
	assert_int_equal(core_counts(w.core)->joins_refused[CORE_JOIN_RANK], 1);
	assert_false(w.worker[2].ending);
	w.from++; /* of another run */
	join(&w, 3, 1);
	assert_int_equal(strncmp(w.refused, "EUSERS: ", 8), 0);
	leave(&w, 1);
	leave(&w, 2);
	join(&w, 3, 1);
	assert_int_equal(w.worker[3].state, WAITS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* The first of each reason at once; and who comes again and again does not fill the log. */
static void refused_workers_are_logged_at_a_bounded_rate(void **state)
{
	const struct core_counts *n;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	n = core_counts(w.core);
	create(&w, 1, 1, "", 16);
	join(&w, 0, 1);
	for (unsigned int i = 0; i < 5; i++)
		join(&w, 1, 1); /* its only rank is taken */
	assert_int_equal(n->joins_refused[CORE_JOIN_RANK], 5);
	assert_int_equal(w.refusals_logged, 1);
	leave(&w, 0);
	cordon(&w, true);
	join(&w, 0, 1);
	assert_int_equal(w.refusals_logged, 2);
	cordon(&w, false);
	join(&w, 0, 1);
	time_pass(&w, 10000);
	join(&w, 1, 1);
	join(&w, 1, 1);
	assert_int_equal(w.refusals_logged, 3);
	w.job[1].token[0] ^= 1;
	join(&w, 2, 1); /* has a line of its own */
	assert_int_equal(n->joins_refused[CORE_JOIN_TOKEN], 1);
	assert_int_equal(w.refusals_logged, 3);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static void who_waits_for_a_sealed_job_needs_its_new_token(void **state)
{
	for (unsigned int sealed = 0; sealed < 2; sealed++) {
		struct world w;

		world_open(&w, 0);
		assert_int_equal(world_start(&w), 0);
		create(&w, 2 + sealed, 2, "", 16);
		join(&w, 0, 2 + sealed);
		rotate(&w, 2 + sealed);
		assert_int_equal(w.worker[0].state, sealed ? AWAY : WAITS);
		all_join(&w, 0, 2, 2 + sealed);
		assert_int_equal(w.worker[0].state, RUNS);
		rotate(&w, 2 + sealed);
		assert_int_equal(w.worker[0].state, RUNS);
		assert_string_equal(w.wrong, "");
		world_close(&w);
	}
}

/* Another agent has drawn it. */
static void a_job_that_agents_share_has_their_token(void **state)
{
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .job = { .name = "j2",
				      .workers = 2,
				      .window = 16,
				      .clustered = true,
				      .token = "one",
				      .birth = 7 } };
	const struct job *j;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	assert_true(ask(&w, &q));
	w.job[2].state = THERE;
	w.job[2].serial = ++w.jobs_made;
	w.job[2].told_epoch = -1;
	asked(&w);
	join(&w, 0, 2);
	assert_int_equal(w.worker[0].state, WAITS);
	q = (struct request){ .verb = REQUEST_JOB_ROTATE, .rotate = { "j2", "two" } };
	ask(&w, &q);
	asked(&w);
	j = books_job_find(core_books(w.core), "j2");
	assert_string_equal(j->token, "two");
	assert_false(job_is_rotated(j));
	assert_int_equal(w.worker[0].state, AWAY); /* as its next run may be elsewhere */
	snprintf(w.job[2].token, sizeof(w.job[2].token), "one");
	join(&w, 0, 2);
	assert_int_equal(w.worker[0].state, AWAY);
	snprintf(w.job[2].token, sizeof(w.job[2].token), "two");
	all_join(&w, 0, 2, 2);
	assert_int_equal(w.worker[0].state, RUNS);
	assert_false(job_is_rotated(j));
	snprintf(q.rotate.token, sizeof(q.rotate.token), "three");
	ask(&w, &q);
	asked(&w);
	assert_int_equal(w.worker[0].state, RUNS);
	assert_true(job_is_rotated(j));
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

static unsigned int outdated(struct world *w)
{
	const struct job *j = job_numbered(w, 1);

	return j->rank[0].outdated + j->rank[1].outdated;
}

/* Each asks when it hears of that, or when it comes back to an agent that was restarted. */
static void who_is_in_a_run_is_told_the_token_that_its_job_gets(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 8);
	all_join(&w, 0, 2, 1);
	assert_int_equal(outdated(&w), 0);
	rotate(&w, 1);
	assert_int_equal(w.worker[0].pokes + w.worker[1].pokes, 2);
	assert_int_equal(outdated(&w), 2);
	stay_by_place(&w, 0);
	assert_string_equal(w.worker[0].token, w.job[1].token);
	assert_int_equal(outdated(&w), 1);
	world_restart(&w); /* the other one has asked for nothing yet */
	rotate(&w, 1);
	assert_int_equal(w.worker[0].pokes + w.worker[1].pokes, 2); /* nobody is connected */
	assert_int_equal(outdated(&w), 2);
	stay_by_place(&w, 0);
	stay_by_place(&w, 1);
	assert_int_equal(outdated(&w), 0);
	assert_string_equal(w.worker[0].token, w.job[1].token);
	assert_string_equal(w.worker[1].token, w.job[1].token);
	world_restart(&w);
	stay(&w, 0); /* by that token */
	assert_true(w.worker[0].connected);
	leave(&w, 0);
	leave(&w, 1);
	world_restart(&w);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Of the token of that time, too: nobody else has both. */
static void a_place_is_of_one_rank_in_one_run(void **state)
{
	uint8_t kept[SECRET_KEY_BYTES];
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 8);
	all_join(&w, 0, 2, 1);
	rotate(&w, 1);
	memcpy(kept, w.worker[0].place, sizeof(kept));
	memcpy(w.worker[0].place, w.worker[1].place, sizeof(kept));
	w.worker[0].has_place = false;
	stay_by_place(&w, 0);
	secret_token_key(w.job[1].token, w.worker[0].place); /* who has the keys of ranks alone */
	secret_place_key(w.worker[0].place, (const uint8_t *)&w.worker[0].key, w.worker[0].place);
	stay_by_place(&w, 0);
	assert_int_equal(core_counts(w.core)->joins_refused[CORE_JOIN_TOKEN], 2);
	memcpy(w.worker[0].place, kept, sizeof(kept));
	w.worker[0].has_place = true;
	stay_by_place(&w, 0);
	assert_true(w.worker[0].connected);
	w.worker[2] = w.worker[1]; /* a place in the next run is not to be had by it */
	w.worker[2].state = AWAY;
	w.by_place = w.ranked = true;
	say(&w, &w.worker[2], 1, JOINING_JOIN);
	w.by_place = w.ranked = false;
	assert_int_equal(w.worker[2].state, AWAY);
	assert_int_equal(core_counts(w.core)->joins_refused[CORE_JOIN_TOKEN], 3);
	w.worker[1].state = AWAY;
	w.worker[1].connected = false;
	w.worker[2] = (struct world_worker){ .state = AWAY };
	leave(&w, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Else one rank takes all the connections that an agent has. */
static void a_rank_has_one_connection(void **state)
{
	struct world_worker line[2];
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 1, "", 8);
	join(&w, 0, 1);
	w.by_place = true;
	for (unsigned int i = 0; i < 2; i++) {
		line[i] = w.worker[0];
		line[i].connected = line[i].dropped = false;
		w.line = &line[i];
		say(&w, &w.worker[0], 1, JOINING_STAY);
		assert_true(line[i].connected);
	}
	assert_true(w.worker[0].dropped && line[0].dropped);
	say(&w, &w.worker[0], 1, JOINING_STAY); /* once more over the same */
	assert_false(line[1].dropped);
	w.by_place = false;
	w.line = NULL;
	w.worker[0].connected = true;
	world_close(&w);
}

static void who_guesses_keeps_nobody_from_its_run(void **state)
{
	const struct sockaddr_storage address = world_address(0);
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 1, "", 8);
	join(&w, 0, 1);
	w.worker[1] = w.worker[0];
	for (unsigned int i = 0; i < 20; i++) {
		w.by_place = true; /* of nothing */
		w.line = &w.worker[1];
		w.worker[0].place[0] ^= 1;
		w.worker[1].finals = 0;
		say(&w, &w.worker[0], 1, JOINING_STAY);
		w.worker[0].place[0] ^= 1;
	}
	w.by_place = false;
	assert_true(core_guesses_wait_ns(w.core, &address, 0, w.now_ns) > 0);
	w.line = NULL;
	stay_by_place(&w, 0);
	assert_true(w.worker[0].connected);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* All workers are there, but the way to one is not known yet. */
static void a_run_that_waits_for_a_way_does_not_begin_on_a_cordoned_node(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 1, "", 16);
	w.fail_at = w.awaited + 2;
	join(&w, 0, 1);
	assert_int_equal(w.worker[0].state, ASKS);
	cordon(&w, true);
	time_pass(&w, 3000);
	assert_string_equal(w.wrong, "");
	assert_int_equal(w.worker[0].state, AWAY);
	assert_int_equal(core_counts(w.core)->runs_begun, 0);
	assert_int_equal(core_counts(w.core)->runs_refused[CORE_RUN_CORDONED], 1);
	world_close(&w);
}

/* The change is undone: what is to be written is what stood there. */
static void what_the_disk_refused_is_tried_again(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	w.fail_at = w.awaited + 1;
	create(&w, 1, 1, "", 16);
	assert_int_equal(core_counts(w.core)->saves_failed, 1);
	assert_string_not_equal(core_not_saved(w.core), "");
	time_pass(&w, 10000);
	assert_string_equal(w.wrong, "");
	assert_string_equal(core_not_saved(w.core), "");
	world_close(&w);
}

static void what_others_take_away_is_back_within_seconds(void **state)
{
	for (enum harm what = 0; what < HARMS; what++)
		for (unsigned int heard = 0; heard < 2; heard++) {
			struct world w;

			world_open(&w, 0);
			assert_int_equal(world_start(&w), 0);
			create(&w, 1, 3, "", 16);
			all_join(&w, 0, 3, 1);
			time_pass(&w, 10000);
			harm(&w, what, 0, heard);
			time_pass(&w, heard ? 1000 : 4000);
			if (what == LINK_GOES)
				assert_int_equal(core_ports(w.core, &(unsigned int){ 0 })->ifindex,
						 0);
			if (what == LINK_GOES)
				harm(&w, LINK_COMES, 0, heard);
			w.no_way = 3; /* addresses and routes come later */
			time_pass(&w, 8000);
			truth_check(&w);
			assert_string_equal(w.wrong, "");
			assert_int_equal(w.worker[0].state, RUNS);
			assert_int_equal(w.mended_logged, what == PINS_GO);
			world_close(&w);
		}
}

/* Its maps are empty then, and its ports may come later. */
static void reboot(struct world *w)
{
	while (w->maps.jobs) {
		keys_put(w, &w->maps.job[0], NULL);
		tables_forget(&w->maps, w->maps.job[0].id);
	}
	world_restart(w);
}

static void assert_only_owners_hear_of_runs(const struct world *w)
{
	const uint64_t owner = 1ull << BOOKS_DEFAULT;
	struct why text;

	assert_true(core_trouble_seen(w->core, CORE_TROUBLE_RUNS, UINT64_MAX, &text));
	assert_non_null(strstr(text.text, "job j1: "));
	assert_true(core_trouble_seen(w->core, CORE_TROUBLE_RUNS, owner, &text));
	assert_non_null(strstr(text.text, "job j1: "));
	assert_false(core_trouble_seen(w->core, CORE_TROUBLE_RUNS, ~owner, &text));
}

static void a_run_waits_for_a_way_to_its_workers_after_a_reboot(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 16);
	all_join(&w, 0, 2, 1);
	for (unsigned int gone_too = 0; gone_too < 2; gone_too++) {
		harm(&w, LINK_GOES, 0, true);
		reboot(&w);
		time_pass(&w, 60000);
		assert_string_equal(w.wrong, "");
		assert_int_equal(w.maps.jobs, 0);
		assert_true(books_job_find(core_books(w.core), "j1")->run_window);
		assert_only_owners_hear_of_runs(&w);
		if (gone_too)
			break;
		harm(&w, LINK_COMES, 0, true);
		w.no_way = 2; /* addresses and routes come later */
		time_pass(&w, 15000);
		truth_check(&w);
		assert_string_equal(w.wrong, "");
		assert_int_equal(w.maps.jobs, 1);
		assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	}
	gone(&w, 0);
	gone(&w, 1);
	time_pass(&w, 10000);
	assert_string_equal(w.wrong, "");
	assert_false(books_job_find(core_books(w.core), "j1")->run_window);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	world_close(&w);
}

static const struct books_tenant *tenant_of(const struct world *w, const char *name)
{
	const struct books *b = core_books(w->core);
	struct why why;
	int index = books_tenant_find(b, name, &why);

	assert_in_range(index, 0, TALLY_TENANTS_MAX - 1);
	return &b->tenant[index];
}

/* The configuration has a tenant of that name since; a run of the tenant is on. */
static void what_tallyctl_made_counts_until_it_is_deleted(void **state)
{
	struct config *first;
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	tenant(&w, REQUEST_TENANT_ADD, "c1", 64, "eth0");
	create(&w, 1, 1, "c1", 16);
	join(&w, 0, 1);
	first = w.config;
	w.config = w.other;
	w.other = first;
	for (unsigned int starts = 0; starts < 2; starts++) {
		stop_and_start(&w);
		assert_int_equal(tenant_of(&w, "c1")->is.slots, 64);
		assert_int_equal(tenant_of(&w, "c1")->is.points, 1);
		time_pass(&w, 4000);
		assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_HIDDEN),
				       "tallyctl tenant del c1"));
	}
	tenant(&w, REQUEST_TENANT_DEL, "c1", 0, "");
	assert_int_equal(w.answered, 0);
	for (unsigned int starts = 0; starts < 2; starts++) {
		assert_int_equal(tenant_of(&w, "c1")->is.slots, 16);
		assert_int_equal(tenant_of(&w, "c1")->is.points, 0);
		assert_true(tenant_of(&w, "c1")->configured);
		assert_int_equal(w.worker[0].state, RUNS);
		time_pass(&w, 4000);
		assert_string_equal(core_trouble(w.core, CORE_TROUBLE_HIDDEN), "");
		stop_and_start(&w);
	}
	tenant(&w, REQUEST_TENANT_DEL, "c1", 0, ""); /* it is the file's */
	assert_int_equal(w.answered, -EPERM);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* The node is as it was to become; meanwhile the agent is up, and says so. */
static void a_reload_that_cannot_be_undone_is_undone_later(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 3, "", 16);
	all_join(&w, 0, 3, 1);
	w.backs_failed = 3;
	w.fail_at = w.awaited + 3; /* when the other configuration is adopted */
	reload(&w);
	assert_int_equal(w.configured, -EIO);
	assert_int_equal(w.backs_failed, 2);
	for (unsigned int tries = 0; w.backs_failed; tries++) {
		assert_in_range(tries, 0, 100);
		assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_RESTORE), "not restored"));
		assert_false(core_is_agreed(w.core));
		assert_int_equal(w.maps.slots, 2 * SLOTS);
		time_pass(&w, 100);
	}
	time_pass(&w, 12000);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RESTORE), "");
	assert_int_equal(w.maps.slots, SLOTS);
	assert_int_equal(w.worker[0].state, RUNS);
	w.backs_failed = 1;
	w.fail_at = w.awaited + 3;
	reload(&w);
	reload(&w); /* by somebody who knows what was wrong */
	assert_int_equal(w.configured, 0);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RESTORE), "");
	time_pass(&w, 4000);
	truth_check(&w);
	assert_int_equal(w.maps.slots, 2 * SLOTS);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* Ten minutes, in which nothing can succeed; then something changes, and all is tried soon. */
static void seldom_then_soon(struct world *w, enum core_action_kind kind, bool is_link)
{
	const struct core_event link = { .kind = CORE_LINK };
	unsigned int before;

	time_pass(w, 1000);
	before = w->tried[kind];
	time_pass(w, 600000);
	assert_in_range(w->tried[kind] - before, 10, 15); /* 3, 6, 12, 24, 48, 60, 60 s ... */
	before = w->tried[kind];
	if (is_link)
		world_do(w, &link);
	else
		neighbour(w, ++w->random & 0xff);
	time_pass(w, 3500);
	assert_in_range(w->tried[kind] - before, 1, 2);
	time_pass(w, 13000);
	assert_in_range(w->tried[kind] - before, 2, 4);
	assert_string_equal(w->wrong, "");
}

static void a_reload_that_cannot_be_undone_is_tried_more_and_more_seldom(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 3, "", 16);
	all_join(&w, 0, 3, 1);
	w.backs_failed = 1000;
	w.fail_at = w.awaited + 3;
	reload(&w);
	for (unsigned int is_link = 0; is_link < 2; is_link++)
		seldom_then_soon(&w, CORE_ADOPT, is_link);
	time_pass(&w, 600000);
	assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_RESTORE), "again 60 s after"));
	w.backs_failed = 0;
	time_pass(&w, 60000);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RESTORE), "");
	world_close(&w);
}

static void a_run_that_is_lost_is_tried_more_and_more_seldom(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 16);
	create(&w, 2, 2, "", 16);
	all_join(&w, 0, 2, 1);
	all_join(&w, 2, 2, 2);
	w.no_way = 1000;
	reboot(&w);
	for (unsigned int is_link = 0; is_link < 2; is_link++)
		seldom_then_soon(&w, CORE_READ, is_link);
	time_pass(&w, 600000);
	assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_RUNS), "for 60 s after"));
	w.no_way = 0;
	time_pass(&w, 60000);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	assert_int_equal(w.maps.jobs, 2);
	world_close(&w);
}

static void a_run_behind_no_port_is_tried_more_and_more_seldom(void **state)
{
	struct world w;

	world_open(&w, 0);
	w.other->ports = 1;
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 16);
	all_join(&w, 0, 2, 1);
	reload(&w);
	for (unsigned int is_link = 0; is_link < 2; is_link++)
		seldom_then_soon(&w, CORE_FOLLOW, is_link);
	reload(&w);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	world_close(&w);
}

static void a_port_that_others_have_is_said_while_they_have_it(void **state)
{
	struct world w;

	world_open(&w, 0);
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 3, "", 16);
	all_join(&w, 0, 3, 1);
	w.port_is_taken = true;
	stop_and_start(&w);
	for (unsigned int i = 0; i < 3; i++)
		gone(&w, i);
	time_pass(&w, 5000);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_LISTEN), "taken");
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_METRICS), "taken");
	assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_ROLLCALL), "UDP port 31249"));
	assert_int_equal(w.maps.jobs, 1);
	w.port_is_taken = false;
	time_pass(&w, 5000);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_LISTEN), "");
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_ROLLCALL), "");
	assert_int_equal(w.maps.jobs, 0);
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* --- random lives ---------------------------------------------------------------------------- */

static void random_tenant(struct world *w)
{
	static const char *const names[] = { "a", "b", "d", "default" };
	static const char *const ports[] = { "", "eth0", "eth1", "eth2", "eth9" };
	static const enum request_verb verbs[] = { REQUEST_TENANT_ADD, REQUEST_TENANT_SET,
						   REQUEST_TENANT_DEL };

	tenant(w, verbs[world_random(w, 3)], names[world_random(w, 4)], world_random(w, 128),
	       ports[world_random(w, 5)]);
}

static void random_job(struct world *w)
{
	static const char *const tenants[] = { "a", "b", "", "c1" };

	switch (world_random(w, 6)) {
	case 0:
		del(w, world_random(w, WORLD_JOBS));
		return;
	case 1:
		restart(w, world_random(w, WORLD_JOBS));
		return;
	case 2:
		kick(w, world_random(w, WORLD_JOBS), world_random(w, 4));
		return;
	default:
		create(w, world_random(w, WORLD_JOBS), 1 + world_random(w, 4),
		       tenants[world_random(w, 4)], 1 << world_random(w, 6));
		return;
	}
}

static const char *trouble_of(const struct world *w, const char *job)
{
	return books_job_find(core_books(w->core), job)->trouble.text;
}

/* At once, not when the core looks next; and its job knows when it is over. */
static void a_run_that_loses_a_port_is_said_while_it_is_on(void **state)
{
	struct world w;

	world_open(&w, 0);
	w.other->ports = 1;
	assert_int_equal(world_start(&w), 0);
	create(&w, 1, 2, "", 16);
	create(&w, 2, 2, "", 16);
	all_join(&w, 0, 2, 1);
	reload(&w);
	assert_non_null(strstr(core_trouble(w.core, CORE_TROUBLE_RUNS), "job j1: rank 1 of its"));
	assert_non_null(strstr(trouble_of(&w, "j1"), "add it to ports: in tallyd.yaml"));
	assert_only_owners_hear_of_runs(&w);
	reload(&w);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	assert_string_equal(trouble_of(&w, "j1"), "");
	reload(&w);
	all_leave(&w);
	assert_string_equal(core_trouble(w.core, CORE_TROUBLE_RUNS), "");
	assert_non_null(strstr(trouble_of(&w, "j1"), "rank 1 of its"));
	assert_string_equal(trouble_of(&w, "j2"), "");
	reload(&w);
	all_join(&w, 0, 2, 1);
	assert_string_equal(trouble_of(&w, "j1"), "");
	assert_string_equal(w.wrong, "");
	world_close(&w);
}

/* While a result is awaited no event is taken; and none is lost by trying. */
static void try_meanwhile(struct world *w)
{
	const struct core_event deadline = { .kind = CORE_DEADLINE };
	const struct core_event wrong = { .kind = CORE_RESULT, .result.number = 0 };

	if (core_handle(w->core, &wrong, w->now_ns) != -EINVAL)
		WRONG(w, "a result of nothing is taken");
	if (w->is_pending && core_handle(w->core, &deadline, w->now_ns) != -EAGAIN)
		WRONG(w, "an event is taken while a result is awaited");
}

static void random_harm(struct world *w, unsigned int port)
{
	harm(w, w->link[port].ifindex ? world_random(w, HARMS) : LINK_COMES, port,
	     world_random(w, 2));
}

static void random_step(struct world *w)
{
	if (!world_random(w, 30))
		w->crash_at = w->actions + 1 + world_random(w, 20);
	switch (world_random(w, 12)) {
	case 0:
		random_tenant(w);
		return;
	case 1:
		random_job(w);
		return;
	case 2:
		time_pass(w, world_random(w, 4000));
		return;
	case 3:
		(world_random(w, 3) ? stay : gone)(w, world_random(w, WORLD_WORKERS));
		return;
	case 4:
		if (!world_random(w, 4))
			reload(w);
		else if (!world_random(w, 4))
			stop_and_start(w);
		else if (!world_random(w, 4))
			cordon(w, !world_random(w, 8));
		else if (world_random(w, 5))
			neighbour(w, world_random(w, 4));
		else
			random_harm(w, world_random(w, WORLD_PORTS));
		return;
	case 5:
	case 6:
	case 7:
		leave(w, world_random(w, WORLD_WORKERS));
		return;
	default:
		join(w, world_random(w, WORLD_WORKERS), world_random(w, WORLD_JOBS));
		return;
	}
}

static void random_life(struct world *w)
{
	for (unsigned int i = 0; i < STEPS && !*w->wrong; i++) {
		random_step(w);
		try_meanwhile(w);
	}
}

static void random_lives(unsigned int fail_one_in)
{
	const char *only = getenv("TALLY_SEED");
	uint64_t first = only ? strtoull(only, NULL, 10) : 0, runs = 0;

	for (uint64_t seed = first; seed < (only ? first + 1 : SEEDS); seed++) {
		struct world w;

		world_open(&w, seed);
		w.fail_one_in = fail_one_in;
		w.mtu = 2000 + 1000 * world_random(&w, 8);
		for (unsigned int i = 0; i < WORLD_WORKERS; i++)
			w.worker[i].mtu = (uint16_t)(3000 * world_random(&w, 4));
		world_run(&w, random_life);
		world_close(&w);
		runs += w.runs_told;
		if (*w.wrong)
			fail_msg("%s; to see it again: TALLY_SEED=%llu", w.wrong,
				 (unsigned long long)seed);
	}
	assert_true(only || runs > SEEDS);
}

static void random_lives_keep_all_laws(void **state) { random_lives(0); }
static void random_lives_keep_them_while_steps_fail(void **state) { random_lives(8); }

#define FACT(name) cmocka_unit_test(name)
static const struct CMUnitTest facts[] = {
	FACT(a_life_goes_as_it_should),
	FACT(a_crash_between_any_two_actions_loses_nothing),
	FACT(whatever_step_fails_is_undone),
	FACT(what_is_refused_is_counted_by_its_reason),
	FACT(a_port_whose_mtu_is_too_small_is_a_reason_of_its_own),
	FACT(a_run_has_the_largest_payload_that_all_of_its_ways_carry),
	FACT(a_way_that_is_known_late_counts_as_it_is),
	FACT(a_payload_that_was_asked_for_stays),
	FACT(a_run_that_goes_on_here_keeps_its_payload_or_is_refused),
	FACT(a_worker_outside_its_tenants_ingress_points_does_not_join),
	FACT(a_tenant_of_the_cluster_comes_in_where_that_says),
	FACT(a_worker_whose_ingress_point_goes_while_it_waits_is_refused),
	FACT(a_worker_of_the_run_that_goes_on_is_not_taken_for_a_new_one),
	FACT(refused_workers_are_logged_at_a_bounded_rate),
	FACT(who_waits_for_a_sealed_job_needs_its_new_token),
	FACT(a_job_that_agents_share_has_their_token),
	FACT(who_is_in_a_run_is_told_the_token_that_its_job_gets),
	FACT(a_place_is_of_one_rank_in_one_run),
	FACT(a_rank_has_one_connection),
	FACT(who_guesses_keeps_nobody_from_its_run),
	FACT(a_run_that_waits_for_a_way_does_not_begin_on_a_cordoned_node),
	FACT(a_run_waits_for_its_neighbours),
	FACT(a_run_of_an_inner_node_comes_when_its_neighbours_do),
	FACT(without_a_word_it_comes_after_ten_seconds),
	FACT(a_document_whose_number_another_job_has_is_refused),
	FACT(jobs_of_two_roots_may_have_one_name),
	FACT(an_inner_run_waits_until_its_tenant_may_come_from_the_root),
	FACT(a_document_that_comes_again_brings_back_what_the_maps_lost),
	FACT(only_the_next_runs_document_takes_the_place_of_one),
	FACT(a_later_job_of_that_number_takes_the_place_of_one),
	FACT(a_run_that_loses_a_port_is_said_while_it_is_on),
	FACT(who_ends_as_soon_as_it_stays_is_not_missed_at_once),
	FACT(a_run_that_begins_finds_its_whole_window_where_slots_are_scattered),
	FACT(a_run_that_was_moved_stays_for_a_while),
	FACT(runs_that_move_survive_crashes_and_failures),
	FACT(a_later_tree_of_the_same_run_takes_the_place_of_one),
	FACT(a_run_goes_on_with_the_tree_that_is_found),
	FACT(a_node_of_a_written_tree_is_not_named_by_loopback),
	FACT(ranks_are_astray_where_routes_contradict_a_written_tree),
	FACT(an_inner_run_without_slots_borrows),
	FACT(an_inner_run_borrows_where_slots_are_scattered),
	FACT(an_inner_run_gets_no_slots_on_loan),
	FACT(an_inner_run_that_borrows_gets_slots_when_there_are_some),
	FACT(slots_on_loan_are_given_back_when_a_quota_needs_them),
	FACT(who_begins_again_in_its_own_slots_recalls_nothing),
	FACT(without_loans_a_run_beyond_its_quota_is_in_software),
	FACT(a_run_in_software_gets_no_more_slots_than_its_quota),
	FACT(no_tenant_gets_a_vlan_while_a_run_would_lose_its_sums_by_it),
	FACT(a_loan_that_cannot_end_in_software_is_not_recalled),
	FACT(who_has_most_on_loan_gives_to_who_has_nothing),
	FACT(who_sends_more_has_more_on_loan),
	FACT(an_inner_run_gets_slots_that_were_lent),
	FACT(runs_with_slots_on_loan_survive_crashes_and_failures),
	FACT(a_run_in_software_gets_slots_that_become_free),
	FACT(who_gave_slots_back_waits_ever_longer),
	FACT(who_cannot_use_slots_waits_ever_longer),
	FACT(runs_that_get_slots_survive_crashes_and_failures),
	FACT(a_run_without_slots_borrows_and_is_in_software),
	FACT(who_gets_ingress_points_borrows_no_more),
	FACT(what_cannot_be_borrowed_costs_time_only),
	FACT(a_run_gets_slots_when_there_are_enough),
	FACT(what_the_disk_refused_is_tried_again),
	FACT(what_others_take_away_is_back_within_seconds),
	FACT(a_run_waits_for_a_way_to_its_workers_after_a_reboot),
	FACT(what_tallyctl_made_counts_until_it_is_deleted),
	FACT(a_reload_that_cannot_be_undone_is_undone_later),
	FACT(a_reload_that_cannot_be_undone_is_tried_more_and_more_seldom),
	FACT(a_run_that_is_lost_is_tried_more_and_more_seldom),
	FACT(a_run_behind_no_port_is_tried_more_and_more_seldom),
	FACT(a_port_that_others_have_is_said_while_they_have_it),
	FACT(random_lives_keep_all_laws),
	FACT(random_lives_keep_them_while_steps_fail),
};

int main(void)
{

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(facts, NULL, NULL);
}
