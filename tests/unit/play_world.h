/* SPDX-License-Identifier: GPL-2.0-only */
/* Networks and workloads for tests of what is played in them; `why` is of the last error. */
#ifndef TALLY_TESTS_UNIT_PLAY_WORLD_H
#define TALLY_TESTS_UNIT_PLAY_WORLD_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sim/play.h"

static struct why why;

static inline struct topology *network(const char *words)
{
	struct topology *t = NULL;

	assert_int_equal(topology_shape(words, &t, &why), 0);
	return t;
}

static inline struct workload *parse(const struct topology *t, const char *text)
{
	struct workload *w = NULL;

	if (workload_parse("day", text, strlen(text), t, 1, &w, &why) != 0)
		fail_msg("%s", why.text);
	return w;
}

static inline void assert_about(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-6 * fmax(1, fabs(expected))))
		fail_msg("%.17g is not %.17g", value, expected);
}

#endif
