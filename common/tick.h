/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's clock of ticks, which BPF programs read without a call (bpf_jiffies64()). */
#ifndef TALLY_COMMON_TICK_H
#define TALLY_COMMON_TICK_H

#include <time.h>

/* Between two ticks, in whole milliseconds: 1 to 10. The coarse clocks go on with each of them. */
static inline unsigned int tick_ms(void)
{
	struct timespec tick;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) < 0 || tick.tv_nsec < 1000000)
		return 1;
	return tick.tv_nsec / 1000000;
}

#endif
