/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Max-min fair rates of flows that share links (D. Bertsekas, R. Gallager, "Data Networks", 6.5).
 * Pure.
 *
 * A flow is a whole tree: what its workers send, what nodes pass on, and results. All of it goes at
 * the one rate of the slowest link, so a flow has one rate, and on each link it uses a multiple of
 * that: 1 where nodes have summed all that comes that way, and as much as there are workers behind
 * the link where nobody has.
 *
 * Rates are fair when no flow can get more without taking from one that has no more already, each
 * by its weight. So each flow has its limit, or there is a link that has nothing left and on which
 * no other flow has a larger rate / weight.
 */
#ifndef TALLY_POLICY_FAIR_H
#define TALLY_POLICY_FAIR_H

#include <stdint.h>

struct fair_use {
	uint32_t link;
	double times; /* above 0: so many times its rate is what the flow uses of the link */
};

struct fair_flow {
	const struct fair_use *use; /* each link at most once */
	unsigned int uses;
	double weight; /* above 0 */
	double limit; /* of its rate; not below 0, INFINITY: none */
};

/*
 * ret_rate[i] is the rate of flow i, in the unit of `capacity`; INFINITY if it has neither links
 * nor a limit. All numbers but limits are finite; products of weight and multiple should not be
 * more than 10^9 apart, or rounding shows. -EINVAL: a link that is not there, or a number out of
 * range; -ENOMEM.
 */
int fair_rates(const double *capacity, unsigned int links, const struct fair_flow *flow,
	       unsigned int flows, double *ret_rate);

#endif
