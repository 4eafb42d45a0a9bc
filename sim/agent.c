// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "agent.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/tables.h"
#include "agent/policy/random.h"
#include "common/secret.h"

enum {
	IFINDEX = 1, /* of the only port */
	MTU = 9000,
};

struct sim_agent {
	struct core *core;
	const struct config *config;
	struct tables maps;
	uint64_t seed, now_ns;
	int said; /* the last answer to a request, or word to a worker: 0, or its error */
	struct why why; /* of that error */
};

/* --- what the core wants done ---------------------------------------------------------------- */

static struct dataplane_port *ports_make(const struct sim_agent *a)
{
	struct dataplane_port *port = calloc(1, sizeof(*port));

	if (!port)
		return NULL;
	memcpy(port->name, a->config->port[0].name, sizeof(port->name));
	port->ifindex = IFINDEX;
	port->mode = DATAPLANE_NATIVE;
	port->attached = true;
	return port;
}

static int maps_put(struct sim_agent *a, const struct tables_job *job)
{
	struct tables_job copy;
	int r = tables_job_copy(job, &copy);

	if (r == 0)
		r = tables_put(&a->maps, &copy);
	if (r < 0)
		tables_job_close(&copy);
	return r;
}

/* Whatever is not named here leaves nothing behind that the core would ask for. */
static void perform(struct sim_agent *a, const struct core_action *action, struct hop *hop,
		    struct tables *read, struct core_event *result)
{
	switch (action->kind) {
	case CORE_RESOLVE:
		*hop = (struct hop){ .port = IFINDEX, .mtu = MTU };
		result->result.hop = hop;
		return;
	case CORE_READ:
		result->result.error = tables_copy(&a->maps, read);
		result->result.tables = read;
		return;
	case CORE_INSTALL:
	case CORE_GATES:
		result->result.error = maps_put(a, action->write.job);
		return;
	case CORE_REMOVE:
		tables_forget(&a->maps, action->id);
		return;
	case CORE_MOVE:
		tables_move(&a->maps, action->move.move, action->move.count);
		return;
	case CORE_ADOPT:
	case CORE_MEND:
		result->result.adopted.ports = ports_make(a);
		result->result.adopted.count = 1;
		result->result.error = result->result.adopted.ports ? 0 : -ENOMEM;
		return;
	case CORE_LOOK:
		result->result.looked.ports = ports_make(a);
		result->result.looked.missing = result->result.looked.state = "";
		result->result.looked.taken = result->result.looked.metrics_taken = "";
		result->result.error = result->result.looked.ports ? 0 : -ENOMEM;
		return;
	default:
		return;
	}
}

static void note(struct sim_agent *a, int error, const char *text)
{
	a->said = error;
	snprintf(a->why.text, sizeof(a->why.text), "%s", error ? text : "");
}

static void take(struct sim_agent *a)
{
	struct core_action action;

	while (core_next_action(a->core, &action)) {
		struct core_event result = { .kind = CORE_RESULT, .result.number = action.number };
		struct tables read = { 0 };
		struct hop hop;

		if (action.kind == CORE_ANSWER)
			note(a, action.answer.kind == CORE_ANSWER_ERROR ? action.error : 0,
			     action.answer.text);
		if (action.kind == CORE_TELL && action.tell.kind == JOINING_ERROR)
			note(a, action.error, action.tell.text);
		if (action.kind == CORE_CONFIGURED)
			note(a, action.error, action.text);
		if (action.kind < CORE_RESOLVE)
			continue;
		perform(a, &action, &hop, &read, &result);
		core_handle(a->core, &result, a->now_ns);
		tables_close(&read);
	}
}

/* 0, or what the agent has said last. */
static int give(struct sim_agent *a, const struct core_event *e, double now_s, struct why *why)
{
	uint64_t now_ns = (uint64_t)(now_s * 1e9);

	a->now_ns = now_ns > a->now_ns ? now_ns : a->now_ns;
	note(a, 0, "");
	core_handle(a->core, e, a->now_ns);
	take(a);
	*why = a->why;
	return a->said;
}

/* --- what is done to it ---------------------------------------------------------------------- */

static void draw(struct sim_agent *a, uint8_t *ret, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ret[i] = (uint8_t)random_bits(&a->seed);
}

int sim_agent_ask(struct sim_agent *a, const struct request *q, double now_s, struct why *why)
{
	uint8_t random[CORE_RANDOM_BYTES];
	const struct core_event e = { .kind = CORE_REQUEST, .asked = { q, random } };

	draw(a, random, sizeof(random));
	return give(a, &e, now_s, why);
}

int sim_agent_join(struct sim_agent *a, const struct job *j, uint16_t rank,
		   const struct sockaddr_storage *address, void *connection, double now_s,
		   struct why *why)
{
	const struct joining_message m = { .rank = rank, .address = *address };
	uint8_t key[SECRET_KEY_BYTES];
	struct job_draw random = { .nonce = random_bits(&a->seed) | 1 };
	const struct core_event e = { .kind = CORE_JOINING,
				      .connection = connection,
				      .joining = { .job = j->name,
						   .token_key = key,
						   .message = &m,
						   .peer = address,
						   .draw = &random } };

	secret_token_key(j->token, key);
	draw(a, random.secret, sizeof(random.secret));
	return give(a, &e, now_s, why);
}

void sim_agent_wait(struct sim_agent *a, double now_s)
{
	const struct core_event e = { .kind = CORE_DEADLINE };
	struct why why;

	if (sim_agent_deadline_s(a) > now_s)
		return;
	a->now_ns = core_deadline_ns(a->core); /* seconds may be a nanosecond short of it */
	give(a, &e, now_s, &why);
}

double sim_agent_deadline_s(const struct sim_agent *a)
{
	uint64_t ns = core_deadline_ns(a->core);

	return ns == UINT64_MAX ? INFINITY : (double)ns / 1e9;
}

const struct core *sim_agent_core(const struct sim_agent *a) { return a->core; }

/* --- from the beginning to the end ----------------------------------------------------------- */

static int start(struct sim_agent *a, struct why *why)
{
	struct core_event e = { .kind = CORE_START,
				.start = { .config = a->config, .path = "its configuration" } };
	_cleanup_(freep) struct books *books = malloc(sizeof(*books));
	int r;

	a->core = core_new();
	a->maps = (struct tables){ .slots = a->config->slots, .pool = a->config->pool_slots };
	a->maps.port = calloc(1, sizeof(*a->maps.port));
	if (!books || !a->core || !a->maps.port)
		return -ENOMEM;
	a->maps.port[a->maps.ports++] = IFINDEX;
	books_init(books, 0);
	r = core_books_configure(books, a->config, why);
	e.start.ports = r < 0 ? NULL : ports_make(a);
	if (r == 0 && !e.start.ports)
		r = -ENOMEM;
	if (r < 0) {
		books_clear(books);
		return r;
	}
	e.start.books = books;
	e.start.ports_count = 1;
	return give(a, &e, 0, why);
}

int sim_agent_open(const struct config *config, uint64_t seed, struct sim_agent **ret,
		   struct why *why)
{
	_cleanup_(sim_agent_freep) struct sim_agent *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return -ENOMEM;
	a->config = config;
	a->seed = seed;
	r = start(a, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a);
	return 0;
}

void sim_agent_free(struct sim_agent *a)
{
	if (!a)
		return;
	core_free(a->core);
	tables_close(&a->maps);
	free(a);
}
