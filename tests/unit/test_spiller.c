// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sums by several threads, with their sockets at one address of loopback: each job is one thread's,
 * and what tenants may do holds for all threads together. test_spiller_races is the same under
 * ThreadSanitizer.
 */
#include <assert.h>
#include <errno.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/edge/spiller.h"
#include "spill/serve.h"
#include "tests/unit/sums_world.h"

enum {
	THREADS = 3,
	JOBS = 16, /* numbers 1 and up: all threads have some */
	CHUNKS = 40, /* of each job */
	LONG_MS = 10000, /* so that a broken test ends */
};

static struct spiller *spiller;
static struct sockaddr_storage service;
static int worker[JOBS][WORKERS];

static int socket_at(const char *address, struct sockaddr_storage *ret_address)
{
	socklen_t length = sizeof(*ret_address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert(fd >= 0); /* the analyser knows this one */
	assert_int_equal(address_parse(address, TALLY_UDP_PORT, ret_address), 0);
	endpoint_port_set(ret_address, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)ret_address, endpoint_length(ret_address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)ret_address, &length), 0);
	return fd;
}

static void job_put(uint32_t id, uint16_t tenant, int fd[static WORKERS])
{
	const struct installation_role role = { .root = true };
	static struct installation g;
	struct run run = { .job = id,
			   .epoch = EPOCH,
			   .window = CHUNKS > 32 ? 64 : 32,
			   .payload_bytes = SUM_BYTES,
			   .workers = WORKERS,
			   .service = service };
	struct why why = { "" };

	for (unsigned int i = 0; i < WORKERS; i++)
		fd[i] = socket_at("127.0.0.1", &run.worker[i]);
	assert_int_equal(installation_plan(&run, &role, &g, &why), 0);
	g.job.tenant = tenant;
	assert_int_equal(spiller_put(spiller, &g, &why), 0);
}

static void contribute_from(uint32_t id, unsigned int rank, uint32_t seq)
{
	struct message m = contribution(seq, rank, BLOCKS);

	m.header.job = tally_le32(id);
	tag(&m);
	assert_int_equal(sendto(worker[id - 1][rank], &m.header, message_bytes(&m), 0,
				(struct sockaddr *)&service, endpoint_length(&service)),
			 message_bytes(&m));
}

/* An address of this process alone. */
static int begin(void **state)
{
	char text[32];

	snprintf(text, sizeof(text), "127.%d.%d.77", 1 + getpid() / 250 % 250, 1 + getpid() % 250);
	assert_int_equal(address_parse(text, TALLY_UDP_PORT, &service), 0);
	assert_int_equal(spiller_open(64 << 20, THREADS, true, &spiller), 0);
	spiller_tenant_put(spiller, TENANT, &(struct dataplane_limits){ 0 }, true, NULL, 0);
	for (uint32_t id = 1; id <= JOBS; id++)
		job_put(id, TENANT, worker[id - 1]);
	return 0;
}

static int end(void **state)
{
	spiller_close(spiller);
	for (unsigned int i = 0; i < JOBS * WORKERS; i++)
		close(worker[i / WORKERS][i % WORKERS]);
	return 0;
}

static uint64_t count_of(enum tally_outcome out)
{
	struct tally_counter counter[TALLY_OUTCOME_COUNT];
	uint64_t unsent;

	spiller_count(spiller, counter, &unsent);
	return counter[out].packet;
}

static uint64_t all_of(void)
{
	uint64_t all = 0;

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		all += count_of(i);
	return all;
}

static void result_comes(uint32_t id, unsigned int rank, uint32_t seq)
{
	struct pollfd wait = { .fd = worker[id - 1][rank], .events = POLLIN };
	struct message m;

	assert_int_equal(poll(&wait, 1, LONG_MS), 1);
	assert_int_equal(recv(wait.fd, &m.header, sizeof(m) - offsetof(struct message, header), 0),
			 sizeof(m.header) + SUM_BYTES);
	assert_int_equal(m.header.kind, TALLY_RESULT);
	assert_int_equal(tally_le32_get(m.header.job), id);
	assert_int_equal(tally_le32_get(m.header.seq), seq);
	for (unsigned int i = 0; i < BLOCKS * TALLY_BLOCK_WORDS; i++)
		assert_int_equal(m.word[i],
				 WORKERS * (1000 * seq + i) + WORKERS * (WORKERS - 1) / 2);
}

/* Whatever ports its workers have: by these the kernel would choose otherwise. */
static void each_job_is_one_threads(void **state)
{
	for (uint32_t seq = 0; seq < CHUNKS; seq++) {
		for (uint32_t id = 1; id <= JOBS; id++)
			for (unsigned int rank = 0; rank < WORKERS; rank++)
				contribute_from(id, rank, seq);
		for (uint32_t id = 1; id <= JOBS; id++)
			for (unsigned int rank = 0; rank < WORKERS; rank++)
				result_comes(id, rank, seq);
	}
	assert_int_equal(count_of(TALLY_UNKNOWN_JOB), 0);
	assert_int_equal(count_of(TALLY_COMPLETED), JOBS * CHUNKS);
	assert_int_equal(spiller_memory(spiller).bytes, JOBS * CHUNKS * SUM_BYTES);
	assert_int_equal(spiller_memory(spiller).tenant_bytes[TENANT], JOBS * CHUNKS * SUM_BYTES);
	assert_true(spiller_memory(spiller).bytes_max > (64 << 20) - THREADS);
}

/* Messages of one sender that the kernel puts together are handed on as one. */
static void runs_of_messages_come_to_the_jobs_thread(void **state)
{
	enum {
		RUN = 8
	};
	struct message m = contribution(0, 0, BLOCKS);
	const int bytes = message_bytes(&m);
	uint8_t all[RUN * sizeof(struct message)];

	for (uint32_t id = 1; id <= JOBS; id++) {
		for (uint32_t seq = 0; seq < RUN; seq++) {
			m = contribution(seq, 0, BLOCKS);
			m.header.job = tally_le32(id);
			tag(&m);
			memcpy(all + (size_t)seq * bytes, &m.header, bytes);
		}
		assert_int_equal(
			setsockopt(worker[id - 1][0], SOL_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)),
			0);
		assert_int_equal(sendto(worker[id - 1][0], all, RUN * bytes, 0,
					(struct sockaddr *)&service, endpoint_length(&service)),
				 RUN * bytes);
	}
	while (all_of() < JOBS * RUN)
		poll(NULL, 0, 1);
	assert_int_equal(count_of(TALLY_ABSORBED), JOBS * RUN);
}

static void a_rate_holds_for_all_threads_together(void **state)
{
	/* So that nothing worth mentioning is earned meanwhile: a packet each 16 s. */
	const struct dataplane_limits limits = { .bytes_per_second = 1000 };
	uint64_t frame = 14 + 20 + 8 + sizeof(struct tally_header) + SUM_BYTES, passed;
	uint64_t burst = 0;

	spiller_tenant_put(spiller, TENANT, &limits, true, NULL, 0);
	for (uint32_t seq = 0; seq < 2 * CHUNKS; seq++)
		for (uint32_t id = 1; id <= JOBS; id++)
			contribute_from(id, 0, seq);
	while (all_of() < 2ul * CHUNKS * JOBS)
		poll(NULL, 0, 1);
	passed = count_of(TALLY_ABSORBED);
	burst = 64 * 3518; /* limits_put() */
	assert_int_equal(passed + count_of(TALLY_OVER_RATE), 2 * CHUNKS * JOBS);
	assert_in_range(passed, burst / frame, burst / frame + 1000 * LONG_MS / 1000 / frame);
}

/* The owner puts, removes and looks while all threads are busy. */
static void jobs_come_and_go_while_others_go_on(void **state)
{
	struct traffic_row *rows;
	unsigned int count;
	uint32_t done = 0;
	int fd[WORKERS];

	for (uint32_t seq = 0; seq < CHUNKS; seq++) {
		for (uint32_t id = 1; id <= JOBS; id++)
			for (unsigned int rank = 0; rank < WORKERS; rank++)
				contribute_from(id, rank, seq);
		job_put(JOBS + 1 + seq, TENANT, fd);
		for (unsigned int i = 0; i < WORKERS; i++)
			close(fd[i]);
		rows = calloc(1, sizeof(*rows));
		count = 1;
		assert_int_equal(spiller_rows(spiller, &rows, &count), 0);
		assert_int_equal(count, 1 + JOBS + 1);
		free(rows);
		spiller_remove(spiller, JOBS + 1 + seq);
		for (uint32_t id = 1; id <= JOBS; id++, done++)
			for (unsigned int rank = 0; rank < WORKERS; rank++)
				result_comes(id, rank, seq);
	}
	assert_int_equal(done, JOBS * CHUNKS);
}

/* The kernel hands what it hears to the socket of any thread. */
static void whoever_has_gone_is_heard_of(void **state)
{
	struct pollfd wait = { .fd = spiller_refused_fd(spiller), .events = POLLIN };
	uint8_t datagram[SPILLER_ASK_BYTES] = { 0 }, heard[SPILLER_ASK_BYTES];
	struct sockaddr_storage gone;

	for (uint8_t i = 1; i <= 32; i++) {
		close(socket_at("127.0.0.1", &gone));
		datagram[1] = i;
		assert_int_equal(spiller_ask(spiller, &service, &gone, datagram), 0);
		assert_int_equal(poll(&wait, 1, LONG_MS), 1);
		assert_int_equal(read(wait.fd, heard, sizeof(heard)), sizeof(heard));
		assert_int_equal(heard[1], i);
	}
	spiller_forget(spiller);
}

static void nobody_else_listens_there(void **state)
{
	struct serve_socket *socket[2];
	struct serve *serve[2];
	struct why why;

	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(serve_open(1 << 20, &serve[i]), 0);
	assert_int_equal(serve_listen(serve, 2, &service, true, socket, &why), -EADDRINUSE);
	assert_non_null(strstr(why.text, "another tallyd"));
	for (unsigned int i = 0; i < 2; i++)
		serve_close(serve[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_job_is_one_threads, begin, end),
		cmocka_unit_test_setup_teardown(runs_of_messages_come_to_the_jobs_thread, begin,
						end),
		cmocka_unit_test_setup_teardown(a_rate_holds_for_all_threads_together, begin, end),
		cmocka_unit_test_setup_teardown(jobs_come_and_go_while_others_go_on, begin, end),
		cmocka_unit_test_setup_teardown(whoever_has_gone_is_heard_of, begin, end),
		cmocka_unit_test_setup_teardown(nobody_else_listens_there, begin, end),
	};

	return cmocka_run_group_tests_name("spiller", tests, NULL, NULL);
}
