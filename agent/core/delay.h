/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How long what is due waits until the loop comes to it: counted by how long it was. Pure. */
#ifndef TALLY_AGENT_DELAY_H
#define TALLY_AGENT_DELAY_H

#include <stdint.h>

enum {
	DELAY_BOUNDS = 5,
};

/* Upper bounds in seconds, as Prometheus writes them. */
static const char *const delay_bounds[DELAY_BOUNDS] = { "0.001", "0.01", "0.1", "1", "10" };

struct delays {
	uint64_t count[DELAY_BOUNDS + 1]; /* at most that long, and longer than the bound before */
	double seconds; /* all together */
};

static inline void delay_add(struct delays *d, uint64_t ns)
{
	uint64_t bound_ns = 1000000;
	unsigned int i = 0;

	for (; i < DELAY_BOUNDS && ns > bound_ns; i++)
		bound_ns *= 10;
	d->count[i]++;
	d->seconds += (double)ns / 1e9;
}

#endif
