/* SPDX-License-Identifier: GPL-2.0-only */
/* What is said of figures of many seeds. */
#ifndef TALLY_TESTS_BENCH_SPREAD_H
#define TALLY_TESTS_BENCH_SPREAD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct spread {
	double median, mean, low, high;
};

static inline int spread_order(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Of n figures, at least one, which are sorted thereby. */
static inline struct spread spread_of(double *figure, unsigned int n)
{
	struct spread s = { 0 };

	qsort(figure, n, sizeof(*figure), spread_order);
	for (unsigned int i = 0; i < n; i++)
		s.mean += figure[i] / n;
	s.median = (figure[(n - 1) / 2] + figure[n / 2]) / 2;
	s.low = figure[0];
	s.high = figure[n - 1];
	return s;
}

/* By how much `a` is less than `b`, in percent of `b`; below 0: it is more. */
static inline double percent_less(double a, double b) { return 100 * (1 - a / b); }

enum spread_unit {
	VALUE, /* four digits */
	PERCENT, /* tenths */
};

/* As fields of CSV, each with a comma before it. Sorts the figures. */
static inline void spread_print(double *figure, unsigned int n, enum spread_unit unit)
{
	struct spread s = spread_of(figure, n);
	const double field[] = { s.median, s.mean, s.low, s.high };

	for (unsigned int i = 0; i < 4; i++)
		if (unit == VALUE)
			printf(",%.4g", field[i]);
		else
			printf(",%.1f", rint(10 * field[i]) / 10 + 0.0); /* 0.0: and never -0.0 */
}

#endif
