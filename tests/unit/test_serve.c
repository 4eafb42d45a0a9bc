// SPDX-License-Identifier: GPL-2.0-only
/* The spill's sockets, with datagrams of the kernel at addresses of loopback. */
#include "sums_world.h"

#include <linux/sock_diag.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "spill/serve.h"

enum {
	SERVICES = 2
};

struct service {
	struct sockaddr_storage address;
	struct serve_socket *socket;
	int worker; /* a socket that sends there */
};

static struct serve *serve;
static struct service service[SERVICES];

/* Some port, which nobody else has. */
static void service_open(struct service *s, const char *address, bool local)
{
	socklen_t length = sizeof(s->address);
	struct why why;

	assert_int_equal(address_parse(address, TALLY_UDP_PORT, &s->address), 0);
	endpoint_port_set(&s->address, 0);
	assert_int_equal(serve_listen(serve, &s->address, local, &s->socket, &why), 0);
	assert_int_equal(getsockname(serve_fd(s->socket), (struct sockaddr *)&s->address, &length),
			 0);
	s->worker = socket(s->address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(
		connect(s->worker, (struct sockaddr *)&s->address, endpoint_length(&s->address)),
		0);
}

/* A job at that service; its one worker has the socket there. */
static void job_put(struct service *s, uint32_t id, unsigned int workers)
{
	struct spill_child child[WORKERS] = { 0 };
	socklen_t length = sizeof(child[0].address);

	for (unsigned int i = 0; i < workers; i++) {
		tally_set_add(&child[i].below, i);
		getsockname(s->worker, (struct sockaddr *)&child[i].address, &length);
	}
	assert_int_equal(
		spill_job_put(serve_spill(serve),
			      &(struct spill_job_options){ .everyone = tally_set_first(workers),
							   .service = s->address,
							   .id = id,
							   .epoch = EPOCH,
							   .window = WINDOW,
							   .payload_bytes = SUM_BYTES,
							   .children = workers,
							   .child = child }),
		0);
}

static void send_to(struct service *s, uint32_t id, uint32_t seq)
{
	struct pollfd wait = { .fd = serve_fd(s->socket), .events = POLLIN };
	struct message m = contribution(seq, 0, BLOCKS);

	m.header.job = tally_le32(id);
	tag(&m);
	assert_int_equal(send(s->worker, &m.header, message_bytes(&m), 0), message_bytes(&m));
	assert_int_equal(poll(&wait, 1, 10000), 1);
	assert_int_equal(serve_some(serve, s->socket), 1);
}

static int begin(void **state)
{
	assert_int_equal(serve_open(WINDOW * SUM_BYTES, &serve), 0);
	service_open(&service[0], "127.0.0.1", true);
	service_open(&service[1], "127.0.0.2", true);
	return 0;
}

static int end(void **state)
{
	for (int i = 0; i < SERVICES; i++)
		close(service[i].worker);
	serve_close(serve);
	return 0;
}

/* Finished sums at one address make room for those at the other. */
static void memory_is_one_limit_for_all_addresses(void **state)
{
	struct spill_memory m;

	job_put(&service[0], 1, 1);
	job_put(&service[1], 2, 1);
	for (uint32_t seq = 0; seq < WINDOW; seq++)
		send_to(&service[0], 1, seq);
	m = spill_memory(serve_spill(serve));
	assert_int_equal(m.bytes, m.bytes_max);
	assert_int_equal(m.evicted, 0);
	for (uint32_t seq = 0; seq < WINDOW; seq++)
		send_to(&service[1], 2, seq);
	m = spill_memory(serve_spill(serve));
	assert_int_equal(m.bytes, m.bytes_max);
	assert_int_equal(m.evicted, WINDOW);
	assert_int_equal(m.full, 0);
}

/* What a worker gets comes from the address where its job is. */
static void results_leave_by_the_socket_of_their_job(void **state)
{
	struct pollfd wait = { .events = POLLIN };
	struct message m;

	job_put(&service[0], 1, 1);
	job_put(&service[1], 2, 1);
	for (int i = 0; i < SERVICES; i++)
		send_to(&service[i], 1 + i, 0);
	for (int i = SERVICES - 1; i >= 0; i--) {
		wait.fd = service[i].worker;
		assert_int_equal(poll(&wait, 1, 10000), 1);
		assert_true(recv(service[i].worker, &m.header, sizeof(m) - 8, 0) > 0);
		assert_int_equal(m.header.kind, TALLY_RESULT);
		assert_int_equal(tally_le32_get(m.header.job), 1 + i);
	}
}

/* A job that is known at one address is none of the other's. */
static void a_job_is_served_at_its_address_alone(void **state)
{
	job_put(&service[0], 1, 1);
	send_to(&service[1], 1, 0);
	assert_int_equal(spill_counters(serve_spill(serve), NULL)[TALLY_OTHER_ADDRESS].packet, 1);
	send_to(&service[0], 1, 0);
	assert_int_equal(
		spill_counters(serve_spill(serve), (uint32_t[]){ 1 })[TALLY_COMPLETED].packet, 1);
}

static unsigned int dropped(int fd)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(memory);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &length), 0);
	return memory[SK_MEMINFO_DROPS];
}

/* Here the source is the service address, too. */
static void what_the_machine_sends_to_itself_does_not_come(void **state)
{
	static const char *const address[] = { "127.0.0.1", "::1" };

	for (unsigned int i = 0; i < sizeof(address) / sizeof(*address); i++) {
		struct service s;
		struct pollfd in;

		service_open(&s, address[i], false);
		in = (struct pollfd){ .fd = serve_fd(s.socket), .events = POLLIN };
		assert_int_equal(send(s.worker, "x", 1, 0), 1);
		while (!dropped(in.fd) && poll(&in, 1, 1) == 0)
			;
		assert_int_equal(dropped(in.fd), 1);
		assert_int_equal(serve_some(serve, s.socket), 0);
		close(s.worker);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_is_one_limit_for_all_addresses, begin, end),
		cmocka_unit_test_setup_teardown(results_leave_by_the_socket_of_their_job, begin,
						end),
		cmocka_unit_test_setup_teardown(a_job_is_served_at_its_address_alone, begin, end),
		cmocka_unit_test_setup_teardown(what_the_machine_sends_to_itself_does_not_come,
						begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
