// SPDX-License-Identifier: GPL-2.0-only
/* The spill's sockets, with datagrams of the kernel at addresses of loopback. */
#include "sums_world.h"

#include <assert.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
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

static int socket_make(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert(fd >= 0); /* the analyser knows this one */
	return fd;
}

/* Some port, which nobody else has. */
static void service_open(struct service *s, const char *address, bool local)
{
	socklen_t length = sizeof(s->address);
	struct why why;

	assert_int_equal(address_parse(address, TALLY_UDP_PORT, &s->address), 0);
	endpoint_port_set(&s->address, 0);
	assert_int_equal(serve_listen(&serve, 1, &s->address, local, &s->socket, &why), 0);
	assert_int_equal(getsockname(serve_fd(s->socket), (struct sockaddr *)&s->address, &length),
			 0);
	s->worker = socket_make(s->address.ss_family);
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

/* Some port of that address that nobody has: who sends there hears of it, if it asks. */
static struct sockaddr_storage nobody_at(const char *address)
{
	struct sockaddr_storage at;
	socklen_t length = sizeof(at);
	int fd;

	assert_int_equal(address_parse(address, TALLY_UDP_PORT, &at), 0);
	endpoint_port_set(&at, 0);
	fd = socket_make(at.ss_family);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, endpoint_length(&at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
	close(fd);
	return at;
}

/* A job at service 0 whose workers have all gone, but for the last one, if that one is there. */
static void job_put_gone(uint32_t id, unsigned int workers, bool last_is_there)
{
	struct spill_child child[TALLY_WORKERS_MAX] = { 0 };
	socklen_t length = sizeof(child[0].address);

	for (unsigned int i = 0; i < workers; i++) {
		tally_set_add(&child[i].below, i);
		child[i].address = nobody_at("127.0.0.1");
	}
	if (last_is_there)
		getsockname(service[0].worker, (struct sockaddr *)&child[workers - 1].address,
			    &length);
	assert_int_equal(
		spill_job_put(serve_spill(serve),
			      &(struct spill_job_options){ .everyone = tally_set_first(workers),
							   .service = service[0].address,
							   .id = id,
							   .epoch = EPOCH,
							   .window = WINDOW,
							   .payload_bytes = SUM_BYTES,
							   .children = workers,
							   .child = child }),
		0);
}

static struct message sum_of(uint32_t id, unsigned int workers)
{
	struct message m = contribution(0, 0, BLOCKS);
	struct tally_set all = tally_set_first(workers);

	m.header.job = tally_le32(id);
	tally_header_set_put(&m.header, &all);
	tag(&m);
	return m;
}

/*
 * One system call sends to 64 addresses. Of these the last has gone, too, and the refusal is there
 * when the next call sends to the one that is there.
 */
static void who_has_gone_takes_no_result_from_others(void **state)
{
	struct message m[] = { sum_of(1, 63), sum_of(2, 2) };
	const int bytes = message_bytes(&m[0]);
	struct pollfd in = { .fd = serve_fd(service[0].socket), .events = POLLIN };
	struct pollfd out = { .fd = service[0].worker, .events = POLLIN };
	uint8_t both[2 * sizeof(struct message)];
	socklen_t length = sizeof(struct sockaddr_storage);
	struct sockaddr_storage at;

	getsockname(out.fd, (struct sockaddr *)&at, &length);
	job_put_gone(1, 63, false);
	job_put_gone(2, 2, true);
	assert_int_equal(serve_ask(service[0].socket, &at, "", 1), 0); /* hears refusals now */
	assert_int_equal(poll(&out, 1, 10000), 1);
	assert_int_equal(recv(out.fd, both, sizeof(both), 0), 1);
	for (int i = 0; i < 2; i++)
		memcpy(both + (size_t)i * bytes, &m[i].header, bytes);
	assert_int_equal(setsockopt(out.fd, SOL_UDP, UDP_SEGMENT, &bytes, sizeof(bytes)), 0);
	assert_int_equal(send(out.fd, both, 2 * bytes, 0), 2 * bytes);
	assert_int_equal(poll(&in, 1, 10000), 1);
	assert_int_equal(serve_some(serve, service[0].socket), 2);
	assert_int_equal(serve_unsent(serve), 0);
	assert_int_equal(poll(&out, 1, 10000), 1);
	assert_true(recv(out.fd, &m[0].header, bytes, 0) > 0);
	assert_int_equal(m[0].header.kind, TALLY_RESULT);
	assert_int_equal(tally_le32_get(m[0].header.job), 2);
}

static void errors_are_heard_until_they_are_forgotten(void **state)
{
	const struct sockaddr_storage gone[] = { nobody_at("127.0.0.1"), nobody_at("::1") };
	static const char *const address[] = { "127.0.0.1", "::1" };

	for (int i = 0; i < 2; i++) {
		struct service s;
		struct pollfd in;

		service_open(&s, address[i], true);
		in = (struct pollfd){ .fd = serve_fd(s.socket), .events = POLLIN };
		assert_int_equal(serve_ask(s.socket, &gone[i], "", 1), 0);
		assert_int_equal(poll(&in, 1, 10000), 1);
		assert_true(in.revents & POLLERR);
		serve_forget(s.socket);
		serve_some(serve, s.socket);
		assert_int_equal(sendto(in.fd, "", 1, 0, (const struct sockaddr *)&gone[i],
					endpoint_length(&gone[i])),
				 1);
		send(s.worker, "x", 1, 0); /* behind what the kernel has said by then */
		assert_int_equal(poll(&in, 1, 10000), 1);
		assert_false(in.revents & POLLERR);
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
		cmocka_unit_test_setup_teardown(who_has_gone_takes_no_result_from_others, begin,
						end),
		cmocka_unit_test_setup_teardown(errors_are_heard_until_they_are_forgotten, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
