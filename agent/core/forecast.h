/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a counter grows. Pure: time is an argument, in
 * nanoseconds, and readings may come at irregular times, so weights follow the time that has
 * passed and not the number of readings: one reading after 3 s and three readings 1 s apart
 * say the same of a steady rate.
 *
 * The rate of an interval of dt seconds is x = (counter now - counter before) / dt. A counter
 * that reads less than before has begun anew: the difference is what it reads now.
 *
 * The rate is the weighted mean of these (PREDICT_EWMA), with a weight of 1 - e^(-1 / tau) for one
 * second. What it will be, agent/policy/predict.h says.
 */
#ifndef TALLY_AGENT_FORECAST_H
#define TALLY_AGENT_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/policy/predict.h"

struct forecast_rate {
	struct predict_ewma mean;
	uint64_t counter, at_ns; /* of the last reading */
	uint64_t waiting; /* counted since the last interval ended */
	bool begun; /* there was a reading */
	double per_second; /* smoothed; 0 until there was an interval */
	double interval_per_second; /* of the last interval alone */
};

/* tau_s: a step is followed to 63 % after that many seconds, to 95 % after three times that. */
void forecast_rate_init(struct forecast_rate *r, double tau_s);

/*
 * True: an interval has ended here, and both rates are of now. False: it was the first
 * reading, or no time has passed since the last one; what was counted waits for the next.
 */
bool forecast_rate_reading(struct forecast_rate *r, uint64_t now_ns, uint64_t counter);

#endif
