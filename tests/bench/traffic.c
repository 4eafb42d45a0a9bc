// SPDX-License-Identifier: GPL-2.0-only
/*
 * What watching the traffic costs: CPU time of a sample of 64 jobs on 4 ports, of which the
 * links are read from the kernel, and of a scrape's worth of it. Run it where the links named
 * on the command line are; without any, "lo".
 */
#include <errno.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/core/traffic.h"
#include "agent/edge/netlink_links.h"

enum {
	JOBS = 64,
	PORTS = 4,
	APART = 2, /* rows of no job */
	ROWS = APART + JOBS * PORTS,
	SAMPLES = 2000, /* so that all histories are full */
	LINKS_MAX = 16,
};

static struct traffic_row row[ROWS];
static struct traffic_link link_read[LINKS_MAX];

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int fail(const char *what, const struct why *why)
{
	fprintf(stderr, "traffic: %s: %s\n", what, why->text);
	return 1;
}

/* Every counter of every row rises, as it never would. */
static void rows_rise(void)
{
	for (unsigned int i = 0; i < ROWS; i++) {
		if (i >= APART) {
			row[i].job = 1 + (i - APART) / PORTS;
			row[i].ifindex = 2 + (i - APART) % PORTS;
			row[i].tenant = (uint16_t)(row[i].job % 8);
		}
		for (unsigned int k = 0; k < TALLY_OUTCOME_COUNT; k++) {
			row[i].outcome[k].packet += k + 1;
			row[i].outcome[k].byte += 1500ull * (k + 1);
		}
	}
}

int main(int argc, char **argv)
{
	_cleanup_(netlink_links_closep) struct netlink_links *l = NULL;
	_cleanup_(traffic_freep) struct traffic *t = NULL;
	const struct netlink_links_events no_events = { .link = NULL };
	uint64_t links_ns = 0, sums_ns = 0, begin, middle;
	uint32_t ifindex[LINKS_MAX] = { if_nametoindex("lo") };
	struct why why = { "" };
	size_t links = 1;
	int n = 0;

	for (int i = 1; i < argc && i <= LINKS_MAX; i++) {
		ifindex[i - 1] = if_nametoindex(argv[i]);
		links = i;
	}
	if (traffic_new(&t) < 0)
		return fail("memory", &why);
	if (netlink_links_open(&no_events, NULL, &l, &why) < 0 ||
	    netlink_links_watch(l, ifindex, links, &why) < 0)
		return fail("links", &why);
	for (uint64_t i = 1; i <= SAMPLES; i++) {
		rows_rise();
		begin = cpu_ns();
		n = netlink_links_read(l, link_read, LINKS_MAX, &why);
		middle = cpu_ns();
		if (n < 0)
			return fail("read", &why);
		traffic_sample(t, i * 1000000000ull, row, ROWS, link_read, n);
		sums_ns += cpu_ns() - middle;
		links_ns += middle - begin;
	}
	printf("%d jobs on %d ports, %d links: links %.1f us, sums and rates %.1f us a sample; "
	       "at one a second %.3f %% of a core\n",
	       JOBS, PORTS, n, links_ns / 1e3 / SAMPLES, sums_ns / 1e3 / SAMPLES,
	       (links_ns + sums_ns) / 1e7 / SAMPLES);
	return 0;
}
