// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thousand jobs on 64 ports: created, joined, run, left and deleted through the core, with maps
 * that are plain memory. The crashes and failures of a few jobs are in test_core.c. Prints how many
 * events a second of processor time the core takes with 10, 100 and 1,000 jobs.
 */
#include <arpa/inet.h>
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/core/core.h"
#include "agent/core/tables.h"
#include "common/address.h"
#include "common/secret.h"

enum {
	JOBS = 1000,
	WORKERS = 2, /* of each job, behind two ports */
	PORTS = 64,
	WINDOW = 8,
	RED_JOBS = 28, /* of 256 workers: as many as an agent serves */
	RED_SLOTS = RED_JOBS * 2 * WINDOW,
	SLOTS = JOBS * 2 * WINDOW + RED_SLOTS, /* all are needed */
	FIRST_ADDRESS = 0x0a4d0101,
	SLOWER_MAX = 25, /* an event with all jobs, beside one with 10: measured 5 */
	GUESSES = 500,
	GUESS_SLOWER_MAX = 10, /* one where jobs have 256 ranks, beside one where they have 1 */
};

struct worker {
	unsigned int number;
	bool runs;
	bool ended; /* it has had its last word */
	bool may_be_refused;
	uint16_t rank, epoch;
};

struct node {
	struct core *core;
	struct config *config;
	struct tables maps;
	struct worker worker[JOBS * WORKERS];
	char token[JOBS][TOKEN_BYTES];
	uint64_t now_ns;
	unsigned int jobs, events, answered, asked, saved;
	unsigned int probes, probes_most; /* of a round */
	bool probed[JOBS * WORKERS];
};

static struct sockaddr_storage address_of(unsigned int worker)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *in = (void *)&a;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(FIRST_ADDRESS + worker);
	in->sin_port = htons(40000);
	return a;
}

/* --- what the core wants --------------------------------------------------------------------- */

static struct dataplane_port *ports_make(void)
{
	struct dataplane_port *ports = calloc(PORTS, sizeof(*ports));

	assert_non_null(ports);
	for (unsigned int i = 0; i < PORTS; i++) {
		ports[i].ifindex = i + 1;
		ports[i].attached = true;
		snprintf(ports[i].name, sizeof(ports[i].name), "eth%u", i);
	}
	return ports;
}

static void job_copy(struct tables *to, const struct tables_job *j)
{
	struct tables_job copy;

	assert_int_equal(tables_job_copy(j, &copy), 0);
	assert_int_equal(tables_put(to, &copy), 0);
}

static void maps_write(struct node *n, const struct core_action *a)
{
	if (a->kind == CORE_REMOVE)
		tables_forget(&n->maps, a->id);
	else
		job_copy(&n->maps, a->write.job);
}

static void probe(struct node *n, const struct core_action *a)
{
	const struct sockaddr_in *in = (const void *)&a->job->rank[a->rank].address;
	unsigned int worker = ntohl(in->sin_addr.s_addr) - FIRST_ADDRESS;

	assert_in_range(worker, 0, JOBS * WORKERS - 1);
	n->probed[worker] = true;
	n->probes++;
	if (n->probes > n->probes_most)
		n->probes_most = n->probes;
}

static void result_give(struct node *n, const struct core_action *a)
{
	struct core_event e = { .kind = CORE_RESULT, .result.number = a->number };
	struct hop hop = { .mtu = 1500 };
	struct tables now = { .slots = SLOTS };

	switch (a->kind) {
	case CORE_RESOLVE:
		hop.port =
			1 +
			ntohl(((const struct sockaddr_in *)a->resolve.address)->sin_addr.s_addr) %
				PORTS;
		e.result.hop = &hop;
		break;
	case CORE_READ:
		for (unsigned int i = 0; i < n->maps.jobs; i++)
			job_copy(&now, &n->maps.job[i]);
		now.port = calloc(PORTS, sizeof(*now.port));
		assert_non_null(now.port);
		for (; now.ports < PORTS; now.ports++)
			now.port[now.ports] = now.ports + 1;
		e.result.tables = &now;
		break;
	case CORE_INSTALL:
	case CORE_GATES:
	case CORE_REMOVE:
		maps_write(n, a);
		break;
	case CORE_SAVE:
		n->saved++;
		break;
	case CORE_PROBE:
		probe(n, a);
		break;
	case CORE_ADOPT:
	case CORE_MEND:
		e.result.adopted.ports = ports_make();
		e.result.adopted.count = PORTS;
		break;
	case CORE_LOOK:
		e.result.looked.ports = ports_make();
		e.result.looked.missing = e.result.looked.state = "";
		e.result.looked.taken = e.result.looked.metrics_taken = "";
		break;
	default:
		break;
	}
	assert_int_equal(core_handle(n->core, &e, ++n->now_ns), 0);
	tables_close(&now);
}

static void tell(const struct core_action *a)
{
	struct worker *p = a->connection;

	switch (a->tell.kind) {
	case JOINING_RUN:
		assert_false(p->runs);
		p->runs = true;
		p->rank = a->rank;
		p->epoch = a->job->epoch;
		break;
	case JOINING_ERROR:
		if (!p->may_be_refused)
			fail_msg("worker %u: %s", p->number, a->tell.text);
		p->ended = true;
		break;
	case JOINING_LEFT:
		assert_false(p->ended);
		p->ended = true;
		break;
	default:
		break;
	}
}

static void answer(struct node *n, const struct core_action *a)
{
	if (a->answer.kind == CORE_ANSWER_ERROR)
		fail_msg("a request is refused: %s", a->answer.text);
	n->answered++;
	if (a->answer.kind == CORE_ANSWER_CREATED)
		snprintf(n->token[n->jobs], TOKEN_BYTES, "%s", a->job->token);
}

static void give(struct node *n, const struct core_event *e)
{
	struct core_action a;

	n->events++;
	assert_int_equal(core_handle(n->core, e, n->now_ns += 1000), 0);
	while (core_next_action(n->core, &a)) {
		if (a.kind >= CORE_RESOLVE)
			result_give(n, &a);
		else if (a.kind == CORE_TELL)
			tell(&a);
		else if (a.kind == CORE_ANSWER)
			answer(n, &a);
		else if (a.kind == CORE_FORGET_PROBES)
			n->probes = 0;
	}
}

/* --- what is done to it ---------------------------------------------------------------------- */

static void ask(struct node *n, const struct request *q)
{
	uint8_t random[CORE_RANDOM_BYTES];
	const struct core_event e = { .kind = CORE_REQUEST, .asked = { q, random } };

	for (size_t i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)(n->asked >> i % 4 * 8 ^ i);
	n->asked++;
	give(n, &e);
	assert_int_equal(n->answered, n->asked);
}

static void create(struct node *n, uint16_t workers, const char *tenant)
{
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .job = { .workers = workers, .window = WINDOW, .tags = true } };

	snprintf(q.job.tenant, sizeof(q.job.tenant), "%s", tenant);
	snprintf(q.job.name, sizeof(q.job.name), "j%u", n->jobs);
	ask(n, &q);
	n->jobs++;
}

static void say(struct node *n, struct worker *p, unsigned int job, bool leave)
{
	const struct sockaddr_storage address = address_of(p->number);
	struct joining_message m = { .what = leave ? JOINING_LEAVE : JOINING_JOIN,
				     .rank = JOINING_RANK_ANY,
				     .address = address };
	uint8_t key[SECRET_KEY_BYTES];
	char name[NAME_BYTES];
	const struct job_draw draw = { 1 + n->events, { 1 } };
	const struct core_event e = { .kind = CORE_JOINING,
				      .connection = p,
				      .joining = { .job = name,
						   .token_key = key,
						   .message = &m,
						   .again = leave,
						   .crowded = true,
						   .peer = &address,
						   .draw = &draw } };
	const struct core_event ended = { .kind = CORE_ENDED, .connection = p, .ended = name };

	snprintf(name, sizeof(name), "j%u", job);
	secret_token_key(n->token[job], key);
	if (leave) {
		m.rank = p->rank;
		m.epoch = p->epoch;
	}
	give(n, &e);
	if (p->ended) /* it was the last word */
		give(n, &ended);
}

static void all_say(struct node *n, bool leave)
{
	for (unsigned int i = 0; i < n->jobs * WORKERS; i++) {
		if (!leave)
			n->worker[i] = (struct worker){ .number = i };
		say(n, &n->worker[i], i / WORKERS, leave);
	}
	for (unsigned int i = 0; i < n->jobs * WORKERS; i++) {
		assert_true(n->worker[i].runs);
		assert_int_equal(n->worker[i].ended, leave);
	}
}

/* What of it is due. */
static void time_pass(struct node *n, unsigned int ms)
{
	const struct core_event e = { .kind = CORE_DEADLINE };
	const uint64_t end_ns = n->now_ns + ms * 1000000ull;

	while (core_deadline_ns(n->core) <= end_ns) {
		if (core_deadline_ns(n->core) > n->now_ns)
			n->now_ns = core_deadline_ns(n->core);
		give(n, &e);
	}
	n->now_ns = end_ns;
}

/* --- what must hold -------------------------------------------------------------------------- */

/* All runs are in the maps, where each has slots, a group and rows to itself. */
static void maps_check(const struct node *n)
{
	static bool slot[SLOTS], group[TALLY_JOBS_MAX], row[TALLY_ROWS_MAX];
	const struct books *b = core_books(n->core);

	memset(slot, 0, sizeof(slot));
	memset(group, 0, sizeof(group));
	memset(row, 0, sizeof(row));
	assert_int_equal(n->maps.jobs, n->jobs);
	assert_true(core_is_agreed(n->core) && core_is_saved(n->core));
	for (unsigned int i = 0; i < b->jobs; i++) {
		const struct tables_job *m = tables_find(&n->maps, b->job[i]->id);
		uint32_t own[PORTS], rows = 0;

		assert_non_null(m);
		assert_int_equal(m->job.epoch, b->job[i]->epoch);
		assert_int_equal(m->job.slot_mask, 2 * WINDOW - 1);
		assert_int_equal(m->copies, WORKERS);
		assert_false(group[m->job.group]);
		group[m->job.group] = true;
		for (unsigned int k = 0; k <= m->job.slot_mask; k++) {
			assert_false(slot[m->job.slot_base + k]);
			slot[m->job.slot_base + k] = true;
		}
		for (unsigned int k = 0; k < m->gates; k++) /* two gates may share their job's */
			if (!row[m->gate[k].row])
				row[own[rows++] = m->gate[k].row] = true;
			else
				assert_true(rows && own[0] == m->gate[k].row);
	}
}

/* --- a life ---------------------------------------------------------------------------------- */

/* With these books, that the core takes over. */
static void core_start(struct node *n, struct books *books)
{
	struct core_event e = { .kind = CORE_START };

	n->core = core_new();
	assert_non_null(n->core);
	e.start.config = n->config;
	e.start.path = "tallyd.yaml";
	e.start.books = books;
	e.start.ports = ports_make();
	e.start.ports_count = PORTS;
	give(n, &e);
}

static void node_start(struct node *n)
{
	struct why why = { "" };
	struct books books;

	n->config = calloc(1, sizeof(*n->config));
	assert_non_null(n->config);
	n->config->slots = SLOTS;
	n->config->ports = PORTS;
	for (unsigned int i = 0; i < PORTS; i++)
		snprintf(n->config->port[i].name, IF_NAMESIZE, "eth%u", i);
	n->config->services = 1;
	n->config->service[0] = address_of(65000);
	endpoint_port_set(&n->config->service[0], TALLY_UDP_PORT);
	n->config->rest = true;
	n->config->tenants = 2;
	snprintf(n->config->tenant[0].name, NAME_BYTES, "default");
	n->config->tenant[1] = (struct tenant){ .name = "red", .slots = RED_SLOTS };
	books_init(&books, 0);
	assert_int_equal(core_books_configure(&books, n->config, &why), 0);
	core_start(n, &books);
}

/* Another agent, whose state file has all runs; or none, as one of before they began. */
static void node_restart(struct node *n, bool knows_runs)
{
	const struct books *before = core_books(n->core);
	struct why why = { "" };
	struct books books;

	books_init(&books, 0);
	assert_int_equal(core_books_configure(&books, n->config, &why), 0);
	for (unsigned int i = 0; i < before->jobs; i++) {
		struct job *j = job_new(before->job[i]);

		assert_non_null(j);
		j->epoch -= !knows_runs;
		if (!knows_runs)
			j->run_window = 0;
		for (uint16_t rank = 0; knows_runs && rank < j->workers; rank++)
			j->rank[rank] =
				(struct job_rank){ .presence = JOB_DETACHED,
						   .address = before->job[i]->rank[rank].address };
		assert_int_equal(books_job_restore(&books, j, &why), 0);
	}
	core_free(n->core);
	core_start(n, &books);
}

static void node_end(struct node *n)
{
	core_free(n->core);
	tables_close(&n->maps);
	free(n->config);
}

/* Events a second of processor time, from the first to the last. */
static double life(unsigned int jobs)
{
	static struct node n;
	struct request q = { .verb = REQUEST_JOB_DEL };
	double seconds;
	clock_t began;

	n = (struct node){ .now_ns = 1 };
	node_start(&n);
	began = clock();
	while (n.jobs < jobs)
		create(&n, WORKERS, "default");
	for (int run = 0; run < 2; run++) { /* the second one's epochs are others */
		all_say(&n, false);
		maps_check(&n);
		time_pass(&n, 10000);
		maps_check(&n);
		all_say(&n, true);
		time_pass(&n, 1000);
		assert_int_equal(n.maps.jobs, 0);
	}
	for (unsigned int i = 0; i < jobs; i++) {
		snprintf(q.name, sizeof(q.name), "j%u", i);
		ask(&n, &q);
	}
	seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
	assert_int_equal(core_books(n.core)->jobs, 0);
	assert_true(n.saved >= 3 * jobs); /* created, two runs */
	print_message("# %u jobs: %u events, %.2f s, %.0f a second\n", jobs, n.events, seconds,
		      n.events / seconds);
	seconds = n.events / seconds;
	node_end(&n);
	return seconds;
}

static void a_thousand_jobs_on_64_ports_live_and_no_step_is_quadratic(void **state)
{
	const double few = life(10);

	life(100);
	assert_true(life(JOBS) * SLOWER_MAX > few);
}

static struct node *all_run(void)
{
	static struct node n;

	n = (struct node){ .now_ns = 1 };
	node_start(&n);
	while (n.jobs < JOBS)
		create(&n, WORKERS, "default");
	all_say(&n, false);
	return &n;
}

static void an_old_state_file_ends_all_runs_at_once(void **state)
{
	struct node *n = all_run();
	uint16_t epoch = core_books(n->core)->job[JOBS - 1]->epoch;

	node_restart(n, false);
	assert_int_equal(core_books(n->core)->jobs, JOBS);
	assert_int_equal(core_books(n->core)->job[JOBS - 1]->epoch, epoch);
	assert_int_equal(n->maps.jobs, 0);
	node_end(n);
}

/* A round is one turn of the agent's loop, for which all others wait. */
static void no_round_asks_all_workers(void **state)
{
	struct node *n = all_run();

	node_restart(n, true);
	assert_int_equal(n->maps.jobs, JOBS);
	time_pass(n, 60000);
	assert_in_range(n->probes_most, 1, 256);
	for (unsigned int i = 0; i < JOBS * WORKERS; i++)
		assert_true(n->probed[i]);
	node_end(n);
}

/* Each worker that can hold a place, and none lets go. */
static void no_tenant_takes_all_places_of_workers(void **state)
{
	static struct worker red[RED_JOBS * TALLY_WORKERS_MAX], others[WORKERS];
	static struct node n = { .now_ns = 1 };
	unsigned int refused = 0;

	static_assert(RED_JOBS * (int)TALLY_WORKERS_MAX >= (int)CORE_MEMBERS_MAX, "all places");
	node_start(&n);
	for (unsigned int i = 0; i < RED_JOBS * TALLY_WORKERS_MAX; i++) {
		if (i % TALLY_WORKERS_MAX == 0)
			create(&n, TALLY_WORKERS_MAX, "red");
		red[i] = (struct worker){ .number = i, .may_be_refused = true };
		say(&n, &red[i], n.jobs - 1, false);
		refused += red[i].ended;
	}
	assert_int_equal(refused, 64); /* of the other tenant */
	create(&n, WORKERS, "default");
	for (unsigned int i = 0; i < WORKERS; i++) {
		others[i] = (struct worker){ .number = 10000 + i };
		say(&n, &others[i], n.jobs - 1, false);
	}
	assert_true(others[0].runs && others[1].runs);
	node_end(&n);
}

/* Connections that say one wrong token and end, in a second of processor time. */
static double guesses(uint16_t workers)
{
	static struct node n;
	double seconds;
	clock_t began;

	n = (struct node){ .now_ns = 1 };
	node_start(&n);
	while (n.jobs < JOBS)
		create(&n, workers, "default");
	n.token[0][0] ^= 1;
	began = clock();
	for (unsigned int i = 0; i < GUESSES; i++) {
		n.worker[0] = (struct worker){ .number = i, .may_be_refused = true };
		say(&n, &n.worker[0], 0, false);
		assert_true(n.worker[0].ended);
	}
	seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
	assert_int_equal(core_counts(n.core)->joins_refused[CORE_JOIN_TOKEN], GUESSES);
	print_message("# %u workers a job: %.0f guesses a second\n", workers, GUESSES / seconds);
	node_end(&n);
	return GUESSES / seconds;
}

static void a_wrong_token_costs_no_more_where_jobs_are_large(void **state)
{
	const double small = guesses(1);

	assert_true(guesses(TALLY_WORKERS_MAX) * GUESS_SLOWER_MAX > small);
}

int main(void)
{
	const struct CMUnitTest facts[] = {
		cmocka_unit_test(a_thousand_jobs_on_64_ports_live_and_no_step_is_quadratic),
		cmocka_unit_test(an_old_state_file_ends_all_runs_at_once),
		cmocka_unit_test(no_round_asks_all_workers),
		cmocka_unit_test(no_tenant_takes_all_places_of_workers),
		cmocka_unit_test(a_wrong_token_costs_no_more_where_jobs_are_large),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(facts, NULL, NULL);
}
