/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a counter grows, and how fast it will grow soon. Pure: time is an argument, in
 * nanoseconds, and readings may come at irregular times, so weights follow the time that has
 * passed and not the number of readings: one reading after 3 s and three readings 1 s apart
 * say the same of a steady rate.
 *
 * The rate of an interval of dt seconds is x = (counter now - counter before) / dt. A counter
 * that reads less than before has begun anew: the difference is what it reads now.
 *
 * Rate, exponentially weighted (A. Eckner, "Algorithms for Unevenly Spaced Time Series: Moving
 * Averages and Other Rolling Operators", 2012; the same weight as in the kernel's load average):
 *
 *	rate += (1 - e^(-dt / tau)) * (x - rate)
 *
 * Trend, by Holt's method (C. C. Holt, "Forecasting seasonals and trends by exponentially
 * weighted moving averages", 1957, reprinted in Int. J. of Forecasting 20, 2004), with its
 * weights for one second raised to dt seconds (compare D. J. Wright, "Forecasting data
 * published at irregular time intervals using an extension of Holt's method", 1986):
 *
 *	a = 1 - (1 - alpha)^dt		b = 1 - (1 - beta)^dt
 *	level' = a * x + (1 - a) * (level + trend * dt)
 *	trend' = b * (level' - level) / dt + (1 - b) * trend
 *	forecast(h) = max(0, level + trend * h)
 *
 * At one reading a second that is Holt's own form. The first interval gives the first rate and
 * the first level; the trend starts at 0, so that a job's start is not taken for a ramp.
 */
#ifndef TALLY_AGENT_FORECAST_H
#define TALLY_AGENT_FORECAST_H

#include <stdbool.h>
#include <stdint.h>

struct forecast_rate {
	double tau_s;
	uint64_t counter, at_ns; /* of the last reading */
	uint64_t waiting; /* counted since the last interval ended */
	bool begun; /* there was a reading */
	bool known; /* there was an interval */
	double per_second; /* smoothed; 0 until known */
	double interval_per_second; /* of the last interval alone; 0 until known */
};

/* tau_s: a step is followed to 63 % after that many seconds, to 95 % after three times that. */
void forecast_rate_init(struct forecast_rate *r, double tau_s);

/*
 * True: an interval has ended here, and both rates are of now. False: it was the first
 * reading, or no time has passed since the last one; what was counted waits for the next.
 */
bool forecast_rate_reading(struct forecast_rate *r, uint64_t now_ns, uint64_t counter);

struct forecast_trend {
	double alpha, beta; /* of one second; 0 < both <= 1 */
	bool known; /* there was a value */
	double level; /* may fall below 0 for a while; a forecast does not */
	double per_second; /* the level's change */
};

void forecast_trend_init(struct forecast_trend *t, double alpha, double beta);

/* A value that held for the last elapsed_ns; 0 of them: ignored, unless it is the first. */
void forecast_trend_value(struct forecast_trend *t, uint64_t elapsed_ns, double value);

/* What the value will be; never below 0, and 0 while nothing is known. */
double forecast_trend_ahead(const struct forecast_trend *t, double seconds);

#endif
