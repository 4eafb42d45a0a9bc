/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The picture of a square, with a host at each corner, 10.0.N.1 at node nN:
 *
 *	n0 ── n1
 *	│      │      each cable 100 Mbit/s
 *	n2 ── n3
 */
#ifndef TALLY_TESTS_UNIT_SQUARE_WORLD_H
#define TALLY_TESTS_UNIT_SQUARE_WORLD_H

#include "cluster_world.h"

enum {
	NODES = 4,
};

/* A node's port to another one. */
static inline struct report_port *port_to(struct report *r, unsigned int to)
{
	for (unsigned int i = 0; i < r->ports; i++)
		if (r->port[i].name[1] == (char)('0' + to))
			return &r->port[i];
	fail_msg("no port to n%u", to);
	return NULL;
}

static inline void square_make(struct picture *ret)
{
	static const unsigned int cables[][2] = { { 0, 1 }, { 0, 2 }, { 1, 3 }, { 2, 3 } };

	for (unsigned int i = 0; i < NODES; i++) {
		const char node[] = { 'n', (char)('0' + i), '\0' };
		char at[] = { 'p', node[1], '\0' }, text[32];
		struct report *r;

		snprintf(text, sizeof(text), "10.77.0.%u", i + 1);
		r = report_of(node, text);
		port(r, "host", 100);
		snprintf(text, sizeof(text), "10.0.%u.1", i);
		host(r, "host", text, "");
		for (size_t c = 0; c < sizeof(cables) / sizeof(*cables); c++)
			for (unsigned int end = 0; end < 2; end++) {
				const char other = (char)('0' + cables[c][!end]);

				if (cables[c][end] != i)
					continue;
				port(r, (char[]){ 'p', other, '\0' }, 100);
				near(r, (char[]){ 'p', other, '\0' }, (char[]){ 'n', other, '\0' },
				     at);
			}
		put(ret, r);
	}
}

#endif
