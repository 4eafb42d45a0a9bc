/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The network and the five jobs of TAPINA-MG's authors: hosts 0 to 11, three behind each of the
 * top-of-rack switches S1 to S4; S5 and S6 join the first two of these, S7 and S8 the others; S9
 * and S10 join S5 to S8. The parameter server is a host at S8.
 */
#ifndef TALLY_TESTS_UNIT_TAPINA_H
#define TALLY_TESTS_UNIT_TAPINA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/policy/graph.h"

enum {
	HOSTS = 12,
	SWITCHES = 10,
	S1 = HOSTS,
	S5 = S1 + 4,
	S8 = S5 + 3,
	S9 = S8 + 1,
	SERVER = S1 + SWITCHES,
	MACHINES,
	JOBS = 5,
	WORKERS_MAX = 6,
	LINKS_MAX = 128,
};

/* How many workers of each job are behind S1 to S4: so many that the costs are the authors'. */
static const unsigned int workers_behind[JOBS][4] = {
	{ 1, 2, 1, 2 }, { 1, 1, 1, 1 }, { 2, 0, 1, 0 }, { 2, 2, 1, 1 }, { 1, 0, 2, 1 },
};

static inline void join(struct graph_link *link, unsigned int *links, uint32_t a, uint32_t b)
{
	link[(*links)++] = (struct graph_link){ .from = a, .to = b, .capacity = 1 };
	link[(*links)++] = (struct graph_link){ .from = b, .to = a, .capacity = 1 };
}

static inline struct graph *tapina(void)
{
	struct graph_machine machine[MACHINES] = { 0 };
	struct graph_link link[LINKS_MAX];
	unsigned int links = 0;
	struct graph *g;

	for (uint32_t s = 0; s < SWITCHES; s++)
		machine[S1 + s].kind = GRAPH_NODE;
	for (uint32_t h = 0; h < HOSTS; h++)
		join(link, &links, h, S1 + h / 3);
	for (uint32_t rack = 0; rack < 4; rack++)
		for (uint32_t s = 0; s < 2; s++)
			join(link, &links, S1 + rack, S5 + rack / 2 * 2 + s);
	for (uint32_t s = S5; s <= S8; s++)
		for (uint32_t core = 0; core < 2; core++)
			join(link, &links, s, S9 + core);
	join(link, &links, SERVER, S8);
	assert_int_equal(graph_make(machine, MACHINES, link, links, &g), 0);
	return g;
}

/* The hosts of a job's workers. Returns how many there are. */
static inline unsigned int tapina_workers(unsigned int job, uint32_t *ret)
{
	unsigned int workers = 0;

	for (uint32_t rack = 0; rack < 4; rack++)
		for (uint32_t i = 0; i < workers_behind[job][rack]; i++)
			ret[workers++] = 3 * rack + i;
	return workers;
}

#endif
