// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "priority.h"

#include <math.h>

enum {
	SPAN = 8, /* calls that a mean is of, about */
	RATIO_LOG2 = 8, /* communication to computation: 1/256 .. 256 */
	REMAINING_LOG2 = 20, /* seconds: 1 .. 12 days */
	REMAINING_UNKNOWN_LOG2 = REMAINING_LOG2 / 2,
	STEPS = 8, /* of priority for each factor of two */
	P_MIN_LOG2 = -RATIO_LOG2 - REMAINING_LOG2 - 1,
};

void priority_measure(struct priority_meter *m, uint64_t now_ns, uint64_t busy_ns)
{
	uint64_t passed = now_ns - m->now_ns, busy = busy_ns - m->busy_ns;

	if (m->now_ns && passed) {
		busy = busy < passed ? busy : passed;
		m->communication += ((double)busy - m->communication) / SPAN;
		m->computation += ((double)(passed - busy) - m->computation) / SPAN;
	}
	m->now_ns = now_ns;
	m->busy_ns = busy_ns;
}

static double bounded(double x, double least, double most) { return fmin(fmax(x, least), most); }

static double ratio_log2(const struct priority_meter *m)
{
	if (!(m->communication + m->computation > 0))
		return 0;
	return bounded(log2(m->communication / m->computation), -RATIO_LOG2, RATIO_LOG2);
}

static double weight(const struct tally_hints *h)
{
	if (!h->layers)
		return 0.75;
	return h->layers > 1 ? 1 - 0.5 * h->layer / (h->layers - 1) : 1;
}

uint8_t priority_of(const struct priority_meter *m, const struct tally_hints *hints)
{
	double remaining = hints->remaining_s ? bounded(log2(hints->remaining_s), 0, REMAINING_LOG2)
					      : REMAINING_UNKNOWN_LOG2;
	double p_log2 = ratio_log2(m) - remaining + log2(weight(hints));

	return bounded(round(STEPS * (p_log2 - P_MIN_LOG2)), 1, UINT8_MAX);
}
