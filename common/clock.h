/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The one clock: edges read it, and hand the time on as an argument. */
#ifndef TALLY_COMMON_CLOCK_H
#define TALLY_COMMON_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_read_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Nanoseconds of the monotonic clock: never goes back. */
static inline uint64_t clock_now_ns(void) { return clock_read_ns(CLOCK_MONOTONIC); }

/* Of Unix time, for people: it may be set. */
static inline uint64_t clock_unix_ms(void) { return clock_read_ns(CLOCK_REALTIME) / 1000000; }

#endif
