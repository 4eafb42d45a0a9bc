/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What tally-perf prints: a table as nccl-tests has it, or an object for each size and place. */
#ifndef TALLY_PERF_PRINT_H
#define TALLY_PERF_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>

#include "perf_data.h"
#include "perf_options.h"

/* What came of one size in one place. Times are of the timed calls, in microseconds. */
struct perf_row {
	size_t count; /* elements as the call takes it; of one rank where buffers have parts */
	size_t bytes; /* of the whole buffer */
	bool in_place; /* one buffer, of which the other is all or a part */
	uint32_t calls;
	uint32_t slow_calls; /* that took more than twice the median */
	double min_us, p50_us, p99_us, max_us;
	double cpu_s; /* of this process, in these calls */
	double began_s, ended_s; /* the first and the last call, in seconds since 1970 */
	double bus_factor; /* busbw by algbw */
	struct perf_verdict verdict;
	uint32_t wrong_iteration; /* of the verdict's first */
	uint64_t hash;
	struct tally_stats before, after;
};

/* Who prints: the options, and how many ranks there are. */
struct perf_printer {
	const struct perf_options *options;
	unsigned int workers;
	size_t wrong; /* elements, of all sizes so far */
	double busbw; /* the sum of `rows` */
	unsigned int rows;
};

void perf_print_head(const struct perf_printer *p);

/* `in_place` NULL: the size was not done in place. */
void perf_print_size(struct perf_printer *p, const struct perf_row *out_of_place,
		     const struct perf_row *in_place);

/* What stands below the table. */
void perf_print_tail(const struct perf_printer *p);

#endif
