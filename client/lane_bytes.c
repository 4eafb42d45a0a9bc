// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bytes as they are, of any type: only one rank has a payload, and nothing is added to it. */
#include <string.h>

#include "lane_parts.h"
#include "lanes.h"

static void pack(const void *in, size_t count, const struct lane_terms *terms, uint64_t *word)
{
	memcpy(word, in, count);
}

static void unpack(const uint64_t *word, size_t count, const struct lane_terms *terms, void *out)
{
	memcpy(out, word, count);
}

const struct lane lane_bytes = {
	.element_bytes = 1,
	.bits = 8,
	.number_bits = 32, /* halves that nothing is added to */
	.signs = LANE_SIGNS_32,
	.pack = pack,
	.unpack = unpack,
};
