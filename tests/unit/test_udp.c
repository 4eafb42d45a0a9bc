// SPDX-License-Identifier: GPL-2.0-only
/* The UDP transport over real sockets, the other end of which the test holds. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/segments.h"
#include "client/transport.h"
#include "common/address.h"

#define OWN "127.79.0.2"
#define PEER "127.79.0.1"

enum {
	MESSAGE = 1472,
	MESSAGES = 128, /* two windows */
	PORT = 40000, /* of both ends */
};

/* Beside every datagram its number; and `in_run`, as the transport says. */
struct end {
	struct channel *channel;
	int peer;
	uint8_t bytes[MESSAGES][MESSAGE];
	bool in_run[MESSAGES];
	struct datagram d[MESSAGES];
};

static struct sockaddr_storage address_of(const char *text)
{
	struct sockaddr_storage a;

	assert_int_equal(address_parse(text, 0, &a), 0);
	return a;
}

static struct end *end_new(void)
{
	struct sockaddr_storage local = address_of(OWN ":40000");
	struct sockaddr_storage service = address_of(PEER ":40000");
	struct end *e = calloc(1, sizeof(*e));

	e->peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (e->peer < 0 || bind(e->peer, (void *)&service, sizeof(struct sockaddr_in)) < 0)
		fail();
	assert_int_equal(transport_open(&local, &e->channel), 0);
	assert_int_equal(e->channel->transport->connect(e->channel, &service, MESSAGE, MESSAGES),
			 0);
	for (size_t i = 0; i < MESSAGES; i++) {
		memset(e->bytes[i], (int)i, MESSAGE);
		e->d[i] = (struct datagram){
			.bytes = e->bytes[i],
			.length = MESSAGE,
			.fresh = true,
			.in_run = &e->in_run[i],
		};
	}
	return e;
}

static void end_free(struct end *e)
{
	transport_close(e->channel);
	close(e->peer);
	free(e);
}

static size_t send_from(struct end *e, size_t first, size_t n)
{
	return e->channel->transport->send(e->channel, e->d + first, n);
}

/* So many come, in order and whole. */
static void come(struct end *e, size_t first, size_t n)
{
	uint8_t got[MESSAGE + 1];

	for (size_t i = first; i < first + n; i++) {
		assert_int_equal(recv(e->peer, got, sizeof(got), MSG_DONTWAIT), e->d[i].length);
		assert_memory_equal(got, e->bytes[i], e->d[i].length);
	}
	assert_int_equal(recv(e->peer, got, sizeof(got), MSG_DONTWAIT), -1);
}

static void went_in_runs(const struct end *e, size_t first, size_t n, bool in_run)
{
	for (size_t i = first; i < first + n; i++)
		assert_int_equal(e->in_run[i], in_run);
}

static void fresh_datagrams_go_in_runs_and_others_alone(void **state)
{
	struct end *e = end_new();

	e->in_run[0] = true;
	assert_int_equal(send_from(e, 0, 1), 1);
	went_in_runs(e, 0, 1, false);
	come(e, 0, 1);

	/* The run ends with one that is shorter; then there is one that is not fresh. */
	e->d[7].length = 100;
	e->d[12].fresh = false;
	assert_int_equal(send_from(e, 1, 13), 13);
	went_in_runs(e, 1, 11, true);
	went_in_runs(e, 13, 1, false);
	come(e, 1, 13);
	end_free(e);
}

static size_t send_eight(struct end *e)
{
	size_t in_runs = 0;

	assert_int_equal(send_from(e, 0, 8), 8);
	come(e, 0, 8);
	for (size_t i = 0; i < 8; i++)
		in_runs += e->in_run[i];
	return in_runs;
}

/* Nothing gets through in runs, says the window, until something does. */
static void runs_pause_where_they_are_swallowed_and_are_tried_again(void **state)
{
	struct window_runs runs = { .chunks = MESSAGES };
	struct end *e = end_new();
	size_t sent = 0, tried;

	e->channel->transport->feedback(e->channel, &runs);
	while (tried = send_eight(e), !tried)
		sent += 8;
	assert_in_range(sent, SEGMENTS_PAUSE_MIN - 8, 2 * SEGMENTS_PAUSE_MIN);
	assert_in_range(tried, 2, SEGMENTS_TRIED);
	assert_int_equal(send_eight(e), 0);

	runs.chunks++;
	runs.first_tries++;
	e->channel->transport->feedback(e->channel, &runs);
	assert_int_equal(send_eight(e), 8);
	end_free(e);
}

/* The kernel sends no runs without checksums. */
static void what_the_system_takes_in_no_run_goes_alone(void **state)
{
	struct end *e = end_new();

	assert_int_equal(setsockopt(e->channel->transport->fd(e->channel), SOL_SOCKET, SO_NO_CHECK,
				    &(int){ 1 }, sizeof(int)),
			 0);
	e->d[0].fresh = false; /* this one is sent before */
	assert_int_equal(send_from(e, 0, 20), 20);
	went_in_runs(e, 0, 20, false);
	come(e, 0, 20);
	end_free(e);
}

/* What anybody may say of a datagram from OWN to PEER. */
struct words {
	struct icmphdr icmp;
	struct iphdr ip;
	struct udphdr udp;
};

static uint16_t checksum(const void *bytes, size_t count)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < count; i += 2) {
		uint16_t half;

		memcpy(&half, (const char *)bytes + i, sizeof(half));
		sum += half;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

/* Until the transport would hear of it. */
static void forge(struct end *e, int raw, uint8_t code)
{
	struct sockaddr_storage own = address_of(OWN ":40000");
	struct pollfd heard = { .fd = e->channel->transport->fd(e->channel) };
	struct words w = {
		.icmp = { .type = ICMP_DEST_UNREACH,
			  .code = code,
			  .un.gateway = code == ICMP_FRAG_NEEDED ? htonl(600) : 0 },
		.ip = { .version = 4,
			.ihl = sizeof(w.ip) / 4,
			.tot_len = htons(sizeof(w.ip) + sizeof(w.udp) + MESSAGE),
			.frag_off = htons(IP_DF),
			.ttl = 64,
			.protocol = IPPROTO_UDP,
			.saddr = inet_addr(OWN),
			.daddr = inet_addr(PEER) },
		.udp = { .source = htons(PORT),
			 .dest = htons(PORT),
			 .len = htons(sizeof(w.udp) + MESSAGE) },
	};

	w.icmp.checksum = checksum(&w, sizeof(w));
	assert_int_equal(sendto(raw, &w, sizeof(w), 0, (void *)&own, sizeof(struct sockaddr_in)),
			 sizeof(w));
	assert_int_equal(poll(&heard, 1, 10000), 1);
	assert_true(heard.revents & POLLERR);
}

/* The system says it in place of sending something, and all that costs is a call. */
static void words_of_the_network_cost_no_datagram(void **state)
{
	static const uint8_t codes[] = { ICMP_FRAG_NEEDED, ICMP_PORT_UNREACH, ICMP_PKT_FILTERED };
	const int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
	struct end *e;

	if (raw < 0) { /* who is not root forges nothing */
		skip();
		return;
	}
	e = end_new();
	for (size_t i = 0; i < sizeof(codes); i++) {
		forge(e, raw, codes[i]);
		assert_int_equal(send_from(e, 20 * i, 20), 20);
		come(e, 20 * i, 20);
	}
	assert_true(e->channel->refused);
	assert_int_equal(e->channel->mtu, 600);
	close(raw);
	end_free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fresh_datagrams_go_in_runs_and_others_alone),
		cmocka_unit_test(runs_pause_where_they_are_swallowed_and_are_tried_again),
		cmocka_unit_test(what_the_system_takes_in_no_run_goes_alone),
		cmocka_unit_test(words_of_the_network_cost_no_datagram),
	};

	alarm(60); /* of what must never block */
	return cmocka_run_group_tests_name("udp", tests, NULL, NULL);
}
