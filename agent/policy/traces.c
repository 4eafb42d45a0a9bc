// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "traces.h"

#include <math.h>
#include <string.h>

#include "random.h"

static const double TURN = 2 * 3.14159265358979323846;

/* --- chance ---------------------------------------------------------------------------------- */

/* About normal, mean 0 and deviation 1: twelve parts (Irwin, Hall 1927). */
static double noise(struct trace *t)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_part(&t->seed);
	return sum;
}

/* Whole steps, at least `least`; Pareto: longer than x with (least / x)^shape. */
static unsigned int pareto(struct trace *t, double least, double shape)
{
	double x = least * pow(1 - random_part(&t->seed), -1 / shape);

	return (unsigned int)fmin(x, 1e6);
}

static unsigned int between(struct trace *t, unsigned int least, unsigned int most)
{
	return least + random_index(&t->seed, most - least + 1);
}

/* --- kinds ----------------------------------------------------------------------------------- */

static double steady(struct trace *t) { return fmax(0, 1 + 0.1 * noise(t)); }

static double diurnal(struct trace *t)
{
	double day = TURN * t->step / TRACE_DAY;

	return fmax(0, 1 + 0.6 * sin(day) + 0.2 * sin(2 * day + 1) + 0.08 * noise(t));
}

/* Means: 10 steps on (3.33 * 1.5 / 0.5), 20 off. */
static double bursty(struct trace *t)
{
	double sum = 0;

	for (int i = 0; i < TRACE_SOURCES; i++) {
		if (t->source[i].left == 0) {
			t->source[i].on = !t->source[i].on;
			t->source[i].left = 1 + pareto(t, t->source[i].on ? 3.33 : 6.67, 1.5);
		}
		t->source[i].left--;
		sum += t->source[i].on;
	}
	return sum * 3 / TRACE_SOURCES;
}

static double periodic(struct trace *t)
{
	if (t->left == 0) {
		t->on = !t->on;
		t->left = t->on ? between(t, 7, 9) : between(t, 11, 13);
	}
	t->left--;
	return t->on ? fmax(0, 2.5 + 0.1 * noise(t)) : 0;
}

static double ramps(struct trace *t)
{
	if (t->left == 0) {
		double to = 0.2 + 1.8 * random_part(&t->seed);

		t->on = !t->on; /* it moves */
		t->left = t->on ? between(t, 20, 60) : between(t, 10, 60);
		t->slope = t->on ? (to - t->level) / t->left : 0;
	}
	t->left--;
	t->level += t->slope;
	return fmax(0, t->level + 0.02 * noise(t));
}

static double jobs(struct trace *t)
{
	double sum = 0;
	bool comes = random_part(&t->seed) < 1.0 / 25; /* each step */

	for (int i = 0; i < TRACE_SOURCES; i++) {
		if (t->source[i].left == 0 && comes) {
			t->source[i].left = pareto(t, 50, 2);
			t->source[i].rate = 0.1 + 0.4 * random_part(&t->seed);
			comes = false;
		}
		sum += t->source[i].left ? t->source[i].rate * (1 + 0.05 * noise(t)) : 0;
		t->source[i].left -= t->source[i].left > 0;
	}
	return fmax(0, sum);
}

const struct trace_kind TRACE_KINDS[] = {
	{ "steady", "a job that sends all the time: one level, with noise", steady },
	{ "diurnal", "users by day: two waves a day of 144 steps, with noise", diurnal },
	{ "bursty", "16 sources, on and off for Pareto times (shape 1.5): self-similar", bursty },
	{ "periodic", "training: 12 steps of computing, 8 of sending, give or take one", periodic },
	{ "ramps", "load that rises or falls for 20 to 60 steps, then stays for a while", ramps },
	{ "jobs", "jobs that come one by one and last for Pareto times (shape 2)", jobs },
};

const unsigned int TRACE_KINDS_COUNT = sizeof(TRACE_KINDS) / sizeof(*TRACE_KINDS);

const struct trace_kind *trace_find(const char *name)
{
	for (unsigned int i = 0; i < TRACE_KINDS_COUNT; i++)
		if (strcmp(TRACE_KINDS[i].name, name) == 0)
			return &TRACE_KINDS[i];
	return NULL;
}

void trace_begin(struct trace *t, const struct trace_kind *kind, uint64_t seed)
{
	*t = (struct trace){ .kind = kind, .seed = seed, .level = 1 };
}

double trace_next(struct trace *t)
{
	double value = t->kind->next(t);

	t->step++;
	return value;
}
