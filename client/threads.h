/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How many threads make progress with a job, where the library has threads of its own. Each drives
 * some of the job's roots, so there are no more of them than roots. Pure.
 */
#ifndef TALLY_CLIENT_THREADS_H
#define TALLY_CLIENT_THREADS_H

#include <stdint.h>

/*
 * As option progress_threads says it (tally.h), or, where that is 0, what $TALLY_PROGRESS_THREADS
 * is; NULL: it is not there. *ret: 0: nobody said it. -EINVAL: it is none. Sets the error text.
 */
int threads_option(uint16_t said, const char *variable, unsigned int *ret);

/* `said`: 0: nobody did, and one of `processors`, which this process may use, is left to the
 * program's own threads. At least 1. */
unsigned int threads_of(unsigned int said, unsigned int roots, unsigned int processors);

#endif
