// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "shards.h"

#include <assert.h>

#include <tally/check.h>

/* Of `chunks`, so many are at the roots before this one. The first has what is too little to split.
 */
static size_t chunks_before(const struct shards *s, unsigned int which, size_t chunks)
{
	size_t before = 0, all = 0;

	for (unsigned int i = 0; i < s->count; i++) {
		before += i < which ? s->root[i].share : 0;
		all += s->root[i].share;
	}
	assert(all);
	return (chunks * before + all - 1) / all;
}

static size_t at_most(size_t n, size_t max) { return n < max ? n : max; }

struct call_options shards_part(const struct shards *s, unsigned int which, uint16_t payload_bytes,
				uint16_t workers, const struct call_options *whole)
{
	const size_t unit = call_chunk_elements(payload_bytes, workers, whole);
	const size_t bytes = call_element_bytes(whole);
	struct call_options part = *whole;
	size_t chunks, first, end;

	if (s->count == 1)
		return part;
	part.whole = whole->count;
	chunks = whole->count / unit + (whole->count % unit > 0);
	if (whole->count >> CALL_COUNT_BITS) {
		first = which ? whole->count : 0;
		end = whole->count;
	} else {
		first = at_most(chunks_before(s, which, chunks) * unit, whole->count);
		end = at_most(chunks_before(s, which + 1, chunks) * unit, whole->count);
	}
	part.count = end - first;
	part.first = first;
	if (part.count && part.in)
		part.in = (const uint8_t *)part.in + first * bytes;
	if (part.count && part.out)
		part.out = (uint8_t *)part.out + first * bytes;
	if (part.count && part.kept)
		part.kept += first;
	if (part.count && part.lost)
		part.lost += first;
	return part;
}

uint64_t shards_agreement(const struct shards *s, unsigned int which)
{
	uint64_t hash = 0;

	if (s->count == 1)
		return 0;
	for (unsigned int i = 0; i < s->count; i++) {
		hash = tally_mix(hash, (uint64_t)s->root[i].job << 32 | s->root[i].epoch << 16 |
					       s->root[i].share);
		hash = tally_mix(hash, s->root[i].nonce);
	}
	return hash << 8 | (s->count - 1) << 4 | which;
}
