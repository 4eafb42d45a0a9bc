// SPDX-License-Identifier: GPL-2.0-only
/*
 * The limit that goodput is held against: what the client's socket edge reaches when every
 * datagram comes back as it went. Keeps a window of full messages in flight towards a bare
 * XDP reflector for a while, and prints how many came back per second.
 *
 *	bounce LOCAL-ADDRESS:PORT SERVICE-ADDRESS WINDOW PAYLOAD-BYTES SECONDS
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tally/tally.h>

#include "common/address.h"
#include "common/jobfile.h"
#include "client/transport.h"

#define QUIET_SECONDS 0.005

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Tops the window up with copies of the message; returns how many are in flight then. */
static int fill_window(struct channel *c, const struct datagram *message, int flying, int window)
{
	struct datagram batch[TRANSPORT_BATCH];

	while (flying < window) {
		int n = window - flying < TRANSPORT_BATCH ? window - flying : TRANSPORT_BATCH;

		for (int i = 0; i < n; i++)
			batch[i] = *message;
		n = (int)c->transport->send(c, batch, (size_t)n);
		if (!n)
			break; /* no room: first, something must come back */
		flying += n;
	}
	return flying;
}

static double bounce(struct channel *c, const struct datagram *message, int window, double seconds)
{
	struct datagram batch[TRANSPORT_RECEIVED_MAX];
	double start = now_seconds(), now = start, heard = start;
	int flying = 0;
	long back = 0;

	while (now - start < seconds) {
		int n = (int)c->transport->receive(c, batch);

		now = now_seconds();
		if (n > 0) {
			back += n;
			flying -= n < flying ? n : flying;
			heard = now;
		} else if (flying && now - heard < QUIET_SECONDS) {
			poll(&(struct pollfd){ .fd = c->transport->fd(c), .events = POLLIN }, 1, 1);
			continue;
		} else {
			flying = 0; /* what was lost is not waited for */
			heard = now;
		}
		flying = fill_window(c, message, flying, window);
	}
	return (double)back / (now - start);
}

int main(int argc, char **argv)
{
	struct sockaddr_storage local, service;
	struct tally_header *h;
	struct datagram message;
	size_t payload;
	struct channel *c;
	bool in_run;
	int window;

	if (argc != 6 || address_parse(argv[1], 0, &local) < 0 ||
	    address_parse(argv[2], TALLY_UDP_PORT, &service) < 0) {
		fprintf(stderr, "usage: bounce LOCAL:PORT SERVICE WINDOW PAYLOAD SECONDS\n");
		return 2;
	}
	window = (int)strtol(argv[3], NULL, 10);
	payload = strtoul(argv[4], NULL, 10);
	h = calloc(1, sizeof(*h) + payload);
	if (!h || transport_open(&local, &c) < 0 ||
	    c->transport->connect(c, &service, sizeof(*h) + payload, 2 * window) < 0) {
		fprintf(stderr, "bounce: %s\n", tally_error());
		return 1;
	}
	*h = (struct tally_header){ .magic = TALLY_MAGIC, .version = TALLY_VERSION };
	message = (struct datagram){
		.bytes = h,
		.length = sizeof(*h) + payload,
		.fresh = true,
		.in_run = &in_run,
	};
	printf("%.0f\n", bounce(c, &message, window, strtod(argv[5], NULL)));
	transport_close(c);
	free(h);
	return 0;
}
