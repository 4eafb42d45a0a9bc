/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whole options out of a mixture: randomised rounding (P. Raghavan, C. D. Thompson, "Randomized
 * rounding", Combinatorica 7, 1987), as InArt (appendix B.3) and GRID do it: one option of each
 * choice is drawn with its share of the mixture. Pure; the same seed gives the same options.
 */
#ifndef TALLY_POLICY_ROUNDING_H
#define TALLY_POLICY_ROUNDING_H

#include "choices.h"

/*
 * One draw. `share` is by option, as choices_mix() gives it; what is below 0 counts as 0. Where
 * all options of a choice have 0, each is as likely as the others. *seed goes on.
 */
void rounding_draw(const struct choices *c, const double *share, uint64_t *seed,
		   uint32_t *ret_taken);

/*
 * Repair: takes another option of one choice, always the first such step that makes the rate
 * higher, or leaves it as it is and fewer resources full, until there is none. Returns the rate in
 * *ret_rate. Each step looks at up to all options and resources. -ENOMEM.
 */
int rounding_repair(const struct choices *c, uint32_t *taken, double *ret_rate);

/*
 * The best of so many draws (at least 1); of equals the first. From each draw a search goes on with
 * so many `tries` (search.h; 0: none), and if `repair` what that has found is repaired. -ENOMEM.
 */
int rounding_best(const struct choices *c, const double *share, uint64_t seed, unsigned int draws,
		  unsigned int tries, bool repair, uint32_t *ret_taken, double *ret_rate);

#endif
