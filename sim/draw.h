/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers by chance, as people write what they want: 4, 3..6, zipf:3..6:1.5. Pure. */
#ifndef TALLY_SIM_DRAW_H
#define TALLY_SIM_DRAW_H

#include <stdbool.h>
#include <stdint.h>

struct draw {
	double low, high; /* both can come; equal: always this one */
	double zipf; /* 0: all alike. Else the n-th whole number from `low` on has weight 1 / n^zipf
		      */
};

enum {
	DRAW_ZIPF_MAX = 100000, /* numbers that a Zipf draw chooses among */
};

/* False: not written like this, or a number above 10^15. k, M and G multiply, as in 1.5M. */
bool draw_parse(const char *text, struct draw *ret);

/* A single number; the same way of writing. */
bool draw_number(const char *text, double *ret);

/* By agent/policy/random.h. */
uint64_t draw_below(uint64_t *random, uint64_t limit); /* 0 to limit - 1 */
double draw_unit(uint64_t *random); /* above 0, below 1 */

double draw_real(const struct draw *d, uint64_t *random);
uint64_t draw_whole(const struct draw *d, uint64_t *random); /* both ends rounded */
double draw_gap(double mean, uint64_t *random); /* between events that come at random (Poisson) */

#endif
