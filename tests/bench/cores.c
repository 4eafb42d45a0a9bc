// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a simulator of a thousand nodes would hold: the memory of a core, empty and with 64 jobs of
 * 8 workers, and events a second over all of 1,000 cores in one process, whose actions all succeed
 * at once.
 */
#include <arpa/inet.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/core/core.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/secret.h"

enum {
	CORES = 1000,
	FULL = 50, /* cores whose memory with all jobs is measured */
	JOBS = 64,
	WORKERS = 8,
	ROUNDS = 64,
};

static struct core *core[CORES];
static char token[CORES][JOBS][TOKEN_BYTES];
static struct config config;
static uint64_t events, actions, now_ns;

static uint64_t resident_bytes(void)
{
	char line[128], *resident;
	FILE *f = fopen("/proc/self/statm", "re");

	if (!f || !fgets(line, sizeof(line), f))
		err(1, "/proc/self/statm");
	fclose(f);
	resident = strchr(line, ' '); /* behind the whole size, in pages */
	return resident ? strtoull(resident, NULL, 10) * sysconf(_SC_PAGESIZE) : 0;
}

static void give(unsigned int number, const struct core_event *event, char *ret_token)
{
	struct hop hop = { .port = 1, .mtu = 1500 };
	struct tables read = { 0 };
	struct core_action a;

	events++;
	if (core_handle(core[number], event, ++now_ns) < 0)
		errx(1, "an event is refused");
	while (core_next_action(core[number], &a)) {
		struct core_event done = { .kind = CORE_RESULT, .result.number = a.number };

		actions++;
		if (a.kind == CORE_ANSWER && a.answer.kind == CORE_ANSWER_CREATED && ret_token)
			memcpy(ret_token, a.job->token, TOKEN_BYTES);
		if (a.kind < CORE_RESOLVE)
			continue;
		if (a.kind == CORE_RESOLVE)
			done.result.hop = &hop;
		if (a.kind == CORE_READ) {
			read = (struct tables){ .slots = config.slots, .ports = 1 };
			read.port = calloc(1, sizeof(*read.port));
			if (!read.port)
				err(1, "no memory");
			*read.port = hop.port;
			done.result.tables = &read;
		}
		core_handle(core[number], &done, ++now_ns);
	}
}

static void begin(unsigned int number)
{
	struct dataplane_port *port = calloc(1, sizeof(*port));
	struct books books;
	struct why why;
	const struct core_event e = {
		.kind = CORE_START,
		.start = { &config, "bench", &books, port, 1 },
	};

	core[number] = core_new();
	if (!core[number] || !port)
		err(1, "no memory");
	port->ifindex = 1;
	books_init(&books, 0);
	if (core_books_configure(&books, &config, &why) < 0)
		errx(1, "%s", why.text);
	give(number, &e, NULL);
}

static void create(unsigned int number, unsigned int job)
{
	static const uint8_t random[CORE_RANDOM_BYTES];
	struct request q = { .verb = REQUEST_JOB_CREATE,
			     .job = { .workers = WORKERS, .window = 16 } };
	const struct core_event e = { .kind = CORE_REQUEST, .asked = { &q, random } };

	snprintf(q.job.name, sizeof(q.job.name), "j%u", job);
	give(number, &e, token[number][job]);
}

/* All of a job's workers come, there is a run, and they leave. */
static void run(unsigned int number, unsigned int job)
{
	struct joining_message m = { .rank = JOINING_RANK_ANY, .address = config.service[0] };
	const struct sockaddr_storage peer = config.service[0];
	const struct job_draw draw = { .nonce = 1 };
	uint8_t key[SECRET_KEY_BYTES];
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "j%u", job);
	secret_token_key(token[number][job], key);
	for (uintptr_t i = 1; i <= WORKERS; i++) {
		const struct core_event e = { .kind = CORE_JOINING,
					      .connection = (void *)(job * WORKERS + i),
					      .joining = { .job = name,
							   .token_key = key,
							   .message = &m,
							   .peer = &peer,
							   .draw = &draw } };

		endpoint_port_set(&m.address, 40000 + i);
		give(number, &e, NULL);
	}
	if (!books_job_find(core_books(core[number]), name)->run_window)
		errx(1, "no run");
	for (uintptr_t i = 1; i <= WORKERS; i++) {
		const struct core_event e = { .kind = CORE_ENDED,
					      .connection = (void *)(job * WORKERS + i) };

		give(number, &e, NULL);
	}
}

int main(void)
{
	uint64_t before = resident_bytes(), from_ns;
	double empty, full, seconds;

	config.slots = 1 << 16;
	config.services = 1;
	if (address_parse("10.0.0.1", TALLY_UDP_PORT, &config.service[0]) < 0)
		errx(1, "address");
	config.tenants = 1;
	config.rest = true;
	snprintf(config.tenant[0].name, sizeof(config.tenant[0].name), "default");
	for (unsigned int i = 0; i < CORES; i++)
		begin(i);
	empty = (double)(resident_bytes() - before) / CORES;
	before = resident_bytes();
	for (unsigned int i = 0; i < FULL; i++)
		for (unsigned int job = 0; job < JOBS; job++)
			create(i, job);
	full = empty + (double)(resident_bytes() - before) / FULL;
	for (unsigned int i = FULL; i < CORES; i++)
		create(i, 0);
	events = actions = 0;
	from_ns = clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (unsigned int round = 0; round < ROUNDS; round++)
		for (unsigned int i = 0; i < CORES; i++)
			run(i, i < FULL ? round * 16 % JOBS : 0);
	seconds = (double)(clock_read_ns(CLOCK_PROCESS_CPUTIME_ID) - from_ns) / 1e9;
	printf("core: %.0f KB resident, %.0f KB with %d jobs of %d workers\n", empty / 1024,
	       full / 1024, JOBS, WORKERS);
	printf("%d cores: %.0f events and %.0f actions a second of CPU time\n", CORES,
	       (double)events / seconds, (double)actions / seconds);
	for (unsigned int i = 0; i < CORES; i++)
		core_free(core[i]);
	return 0;
}
