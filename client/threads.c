// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "threads.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "error.h"
#include "shards.h"

int threads_option(uint16_t said, const char *variable, unsigned int *ret)
{
	uint32_t threads = said;

	if (said > SHARDS_MAX)
		return error_set(-EINVAL, "progress_threads: %u, allowed are 0 to %d", said,
				 SHARDS_MAX);
	if (!said && variable && *variable && strcmp(variable, "auto") != 0 &&
	    (!text_u32(variable, SHARDS_MAX, &threads) || !threads))
		return error_set(-EINVAL,
				 "$TALLY_PROGRESS_THREADS: '%.80s': a number from 1 to %d, or "
				 "'auto'",
				 variable, SHARDS_MAX);
	*ret = threads;
	return 0;
}

static unsigned int lower(unsigned int a, unsigned int b) { return a < b ? a : b; }

unsigned int threads_of(unsigned int said, unsigned int roots, unsigned int processors)
{
	const unsigned int left = processors > 1 ? processors - 1 : 1; /* one is the program's */

	return lower(said ? said : left, roots);
}
