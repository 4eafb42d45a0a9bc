/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What svg*.c share. Nobody else includes this. */
#ifndef TALLY_CTL_SVG_PRIVATE_H
#define TALLY_CTL_SVG_PRIVATE_H

#include <jansson.h>
#include <stdio.h>

#include "common/why.h"
#include "layers.h"

struct svg_drawn {
	const json_t *topology, *job;
	FILE *out;
	const json_t **machine; /* [machines] */
	const json_t **link; /* [links] */
	const json_t **branch; /* [links]: of the job's tree; NULL: the link is not in it */
	const json_t **part; /* [machines]: the same */
	struct layers_machine *place;
	struct layers_link *line;
	json_t *number; /* of each machine, by its name */
	int machines, links, columns, rows;
	double box; /* as wide as a machine */
};

/* From `topology` and `job`, which are given. svg_drawn_close() also if it fails, with -E2BIG or
 * -ENOMEM. */
int svg_drawn_make(struct svg_drawn *d, struct why *why);
void svg_drawn_close(struct svg_drawn *d);

/* The machine of this name; LAYERS_NONE: there is none. */
int svg_number_of(const struct svg_drawn *d, const char *name);

/* Writes a text that others gave: the first so many letters of it, or all. */
void svg_say_some(FILE *out, const char *text, unsigned int letters);
void svg_say(FILE *out, const char *text);
unsigned int svg_letters(const char *text);

void svg_bits(FILE *out, double bytes_per_second); /* "6.1 Mbit/s" */

#endif
