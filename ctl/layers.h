/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where the machines of a network stand in a picture: in columns, by their distance from one of
 * them, with those that were reached by way of the same one beside one another. The same machines
 * and links in the same order give the same picture. Pure.
 */
#ifndef TALLY_CTL_LAYERS_H
#define TALLY_CTL_LAYERS_H

#include <stdbool.h>

enum {
	LAYERS_MACHINES_MAX = 2000,
	LAYERS_LINKS_MAX = 8000,
	LAYERS_NONE = -1,
};

struct layers_machine {
	int column; /* links from the first machine of its part of the network */
	double row; /* the first of its own rows */
	int rows; /* one for each link that comes in, and at least one */
};

struct layers_link {
	int end[2]; /* machines, by number; both as they were given */
	int near; /* which end was reached earlier: 0 or 1. The link comes in at the other one, */
	int arrives; /* there at this row of its own */
};

/*
 * Fills machine[machines], and `near` and `arrives` of link[links]. `first` stands in the first
 * column; LAYERS_NONE: the machine that is nearest to all others does. A part of the network that
 * it does not reach stands below. The numbers of all columns and rows. -ENOMEM; -E2BIG: more than
 * the limits above.
 */
int layers_make(struct layers_machine *machine, int machines, struct layers_link *link, int links,
		int first, int *ret_columns, int *ret_rows);

#endif
