/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a policy can choose, and what that uses: which node sums what a worker sends to a root, and
 * by which paths. The problems of InArt and, where all workers send at one rate, of GRID are of
 * this form. Pure.
 *
 * Of each choice one option is taken. An option uses amounts of resources: a link's room, what a
 * node can add, a root's port. An option may lead to another choice, which is made only then, and
 * once, however many options lead there: what a node sends on is one stream, whatever it has
 * summed.
 */
#ifndef TALLY_POLICY_CHOICES_H
#define TALLY_POLICY_CHOICES_H

#include <stdbool.h>
#include <stdint.h>

#define CHOICES_NONE UINT32_MAX

struct choices_use {
	uint32_t resource; /* may come several times */
	double amount; /* at a rate of 1; not below 0 */
};

struct choices_option {
	const struct choices_use *use;
	unsigned int uses;
	uint32_t then; /* the choice that this option leads to, a later one; or CHOICES_NONE */
};

struct choice {
	const struct choices_option *option;
	unsigned int options; /* at least 1 */
	bool always; /* made also if no option leads there */
};

struct choices {
	const struct choice *choice;
	uint32_t count;
	const double *room; /* of each resource, in amounts; not below 0 */
	uint32_t resources;
};

/* -EINVAL: something is not as it is said above. All else here takes what has been checked. */
int choices_check(const struct choices *c);

/* Options of all choices. They have numbers through all choices: those of choice 0 come first. */
uint32_t choices_options(const struct choices *c);

/*
 * The highest rate: the least of room / load over all resources; INFINITY if nothing is used.
 * taken[i] is the option of choice i, from 0 on; what it is does not matter where nothing leads.
 * ret_load[c->resources]: what is used at a rate of 1. ret_made[c->count]: which choices are made.
 */
double choices_rate(const struct choices *c, const uint32_t *taken, double *ret_load,
		    bool *ret_made);

/*
 * Shares in place of whole options: the highest rate that any mixture of options has, by a linear
 * program (InArt's: u = 1 / rate is minimised). No taking of options has a higher one.
 * ret_share[choices_options(c)]: how much of each option is in the mixture. With `whole` one option
 * of each choice that is made has the share 1: the best of all takings, after a search that may
 * take for ever. steps_max: as in lp.h. -EAGAIN: not enough steps; or what lp_minimise() returns.
 */
int choices_mix(const struct choices *c, bool whole, unsigned int steps_max, double *ret_share,
		double *ret_rate);

#endif
