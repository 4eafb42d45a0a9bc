/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a call failed, in words, out of what the network let a window know. Pure. */
#ifndef TALLY_CLIENT_EXPLAIN_H
#define TALLY_CLIENT_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "window.h"

/* What a worker was about when its call failed. */
struct situation {
	const struct window_options *job;
	const char *service; /* address */
	uint64_t shape; /* of its call (client/shape.h) */
	uint64_t progress_ns; /* when the call last got a result, or began */
	uint64_t waited_ns; /* since then */
	bool unreachable; /* the service address's port */
	uint32_t mtu; /* of the way there, if packets were said to be too large for it; else 0 */
};

/* The news that end a run. 0: there are none; else a negative errno, and `text` is filled. */
int explain_news(const struct window_news *news, const struct situation *s, char *text,
		 size_t size);

/* What silence until the timeout means. */
void explain_timeout(const struct window_news *news, const struct situation *s, char *text,
		     size_t size);

/* Something is there already that only `rank` can have sent, and did not. -ESTALE. */
int explain_used_epoch(const struct situation *s, uint16_t rank, char *text, size_t size);

#endif
