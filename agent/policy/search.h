/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A search through takings of options (choices.h) that also goes through worse ones: threshold
 * accepting (G. Dueck, T. Scheuer, J. of Computational Physics 90, 1990). Pure.
 *
 * What it makes small is the sum of (load / room)^8 over all resources. The rate alone is no guide:
 * where several resources are full, a change that frees one of them leaves the rate as it was. The
 * power makes the fullest resource count most. A change is taken if the sum becomes larger by no
 * more than a threshold, which falls from 0.3 of what the fullest resource adds to it to 0 in the
 * course of the search.
 */
#ifndef TALLY_POLICY_SEARCH_H
#define TALLY_POLICY_SEARCH_H

#include "choices.h"

/*
 * Tries so many changes, of a choice or of all choices that lead where one leads, and leaves the
 * taking with the highest rate that came up, which may be the first one. *seed goes on. -ENOMEM.
 */
int search_takings(const struct choices *c, unsigned int tries, uint64_t *seed, uint32_t *taken,
		   double *ret_rate);

#endif
