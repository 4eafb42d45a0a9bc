// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Level, trend and season, added: Holt-Winters (P. R. Winters, "Forecasting sales by exponentially
 * weighted moving averages", Management Science 6, 1960). The length of the season is given, or
 * found: it is the lag at which the values resemble themselves most (autocorrelation). Without one
 * this is Holt's method.
 */
#include "predict_private.h"

#include <string.h>

enum {
	LOOK_EVERY = 64, /* steps from one look for the season to the next */
	SHORTEST = 4, /* steps */
};

static const double ALIKE = 0.5; /* the least autocorrelation of a season */
static const double AS_GOOD = 0.9; /* a shorter season is taken if it is so much as good */

struct seasonal {
	struct predict_options o;
	struct predict_past past;
	unsigned int season, at; /* steps; 0: none */
	double level, slope;
	double more[PREDICT_SEASON_MAX]; /* than the level, at each step of the season */
	unsigned int seen;
};

static void begin(void *state, const struct predict_options *o)
{
	struct seasonal *s = state;

	memset(s, 0, sizeof(*s));
	s->o = *o;
}

/* --- the season ------------------------------------------------------------------------------ */

static double mean_of(const struct predict_past *p)
{
	double sum = 0;

	for (unsigned int i = 0; i < p->count; i++)
		sum += predict_past_at(p, i);
	return sum / p->count;
}

/* From -1 to 1: how far values are as they were `lag` steps before. */
static double likeness(const struct predict_past *p, double mean, unsigned int lag)
{
	double both = 0, now = 0, then = 0;

	for (unsigned int i = 0; i + lag < p->count; i++) {
		double x = predict_past_at(p, i) - mean, y = predict_past_at(p, i + lag) - mean;

		both += x * y;
		now += x * x;
		then += y * y;
	}
	return now > 0 && then > 0 ? both / sqrt(now * then) : 0;
}

/* The best peak; of peaks nearly as good, the first: a multiple of a season is none. */
static unsigned int find_season(const struct predict_past *p)
{
	double like[PREDICT_SEASON_MAX + 2], mean = mean_of(p), best = ALIKE;
	unsigned int longest = p->count / 2;

	if (longest > PREDICT_SEASON_MAX)
		longest = PREDICT_SEASON_MAX;
	for (unsigned int lag = 1; lag <= longest; lag++)
		like[lag] = likeness(p, mean, lag);
#define IS_PEAK(lag) (like[lag] >= like[(lag) - 1] && like[lag] > like[(lag) + 1])
	for (unsigned int lag = SHORTEST; lag < longest; lag++)
		if (IS_PEAK(lag))
			best = fmax(best, like[lag]);
	for (unsigned int lag = SHORTEST; lag < longest; lag++)
		if (IS_PEAK(lag) && like[lag] > ALIKE && like[lag] >= AS_GOOD * best)
			return lag;
#undef IS_PEAK
	return 0;
}

/* The means of what was seen at each step of the season. */
static void begin_season(struct seasonal *s, unsigned int season)
{
	double mean = mean_of(&s->past);
	unsigned int n[PREDICT_SEASON_MAX] = { 0 };

	memset(s->more, 0, sizeof(s->more));
	s->season = season;
	s->at = 0; /* of the next value */
	for (unsigned int i = 0; season && i < s->past.count; i++) {
		unsigned int at = season - 1 - i % season;

		s->more[at] += predict_past_at(&s->past, i) - mean;
		n[at]++;
	}
	for (unsigned int i = 0; i < season; i++)
		s->more[i] /= n[i] ? n[i] : 1;
	s->level = season ? mean : predict_past_at(&s->past, 0);
	s->slope = 0;
}

static void look(struct seasonal *s)
{
	unsigned int season = s->o.season;

	if (s->seen % LOOK_EVERY == 0 && !season)
		season = find_season(&s->past);
	else if (season ? s->seen < 2 * season : true)
		return;
	if (season != s->season)
		begin_season(s, season);
}

/* --- level, trend, season -------------------------------------------------------------------- */

static void step(struct seasonal *s, double value)
{
	double *more = s->season ? &s->more[s->at] : NULL;
	double before = more ? *more : 0, level;

	if (s->seen == 0) {
		s->level = value;
	} else {
		level = s->o.level * (value - before) + (1 - s->o.level) * (s->level + s->slope);
		s->slope = s->o.trend * (level - s->level) + (1 - s->o.trend) * s->slope;
		s->level = level;
	}
	if (more) {
		*more += s->o.seasonal * (value - s->level - before);
		s->at = (s->at + 1) % s->season;
	}
	predict_past_put(&s->past, value);
	s->seen++;
	look(s);
}

static void observe(void *state, double steps, double value)
{
	struct seasonal *s = state;

	if (steps <= 0 && s->seen)
		return;
	for (unsigned int i = 0; i < predict_steps(steps); i++)
		step(s, value);
}

static double forecast(const void *state, double steps)
{
	const struct seasonal *s = state;
	unsigned int ahead = predict_steps(steps);
	double more = s->season ? s->more[(s->at + ahead - 1) % s->season] : 0;

	return fmax(0, s->level + s->slope * steps + more);
}

const struct predictor PREDICT_SEASONAL = {
	.name = "seasonal",
	.what = "level, trend and a season",
	.usual = { .level = 0.2, .trend = 0.02, .seasonal = 0.5 },
	.bytes = sizeof(struct seasonal),
	.begin = begin,
	.observe = observe,
	.forecast = forecast,
};
