// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "vectors_print.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/lanes.h"

enum {
	ROW_BYTES = 32,
};

__u64 vectors_nonce;

/* Rows of zeros at the payload's end are not shown. */
static size_t rows_of(const struct message *m)
{
	const uint8_t *byte = (const uint8_t *)&m->header;
	size_t bytes = message_bytes(m);

	while (bytes > message_header_bytes(m) && !byte[bytes - 1])
		bytes--;
	return (bytes + ROW_BYTES - 1) / ROW_BYTES;
}

void frame_print(const struct message *m, const char *caption)
{
	const uint8_t *byte = (const uint8_t *)&m->header;
	const size_t bytes = rows_of(m) * ROW_BYTES;

	printf("%s: check 0x%016llx, tag 0x%016llx\n", caption, tally_le64_get(m->header.check),
	       tally_le64_get(m->header.tag));
	for (size_t i = 0; i < bytes; i++)
		printf("%02x%s", byte[i], i % ROW_BYTES == ROW_BYTES - 1 ? "\n" : "");
}

static __u64 words_check(const struct message *m)
{
	struct message copy = *m;

	return lanes_check(message_words(&copy), (size_t)m->header.blocks * TALLY_BLOCK_WORDS);
}

static __u64 identity_of(const struct message *m, __u64 place)
{
	return tally_identity(tally_run_identity(vectors_nonce, JOB, EPOCH),
			      tally_le32_get(m->header.seq), tally_le64_get(m->header.call), place);
}

/* The one of all places of which this may be a contribution. */
__u64 place_of(const struct message *m, int rank)
{
	const __u64 own = tally_le64_get(m->header.check) - words_check(m);

	for (__u64 entry = 0; entry < CHUNKS_MAX; entry++)
		for (__u64 round = 0; round < CHUNKS_MAX; round++)
			for (__u64 scale = 0; scale <= UINT8_MAX; scale++)
				for (__u64 form = 0; form <= FORM_WIDE_LAST; form++) {
					__u64 place = entry << 32 | round << 16 | scale << 8 | form;

					if (identity_of(m, place) * tally_weight(rank) == own)
						return place;
				}
	errx(1, "a check is of no place");
}

/* Of each chunk the contributions of the ranks in `shown`, and the result if that is all. */
void chunk_print(uint32_t i, unsigned int shown)
{
	const struct chunk *c = &world.chunk[i];
	const __u64 place = place_of(&c->sent[0], 0);
	char caption[32];

	printf("chunk %" PRIu32 ": place 0x%llx, identity 0x%016llx\n", world.base + i, place,
	       identity_of(&c->sent[0], place));
	for (int rank = 0; rank < RANKS; rank++) {
		if (place_of(&c->sent[rank], rank) != place)
			errx(1, "ranks are at different places");
		snprintf(caption, sizeof(caption), "rank %d", rank);
		if (shown & 1u << rank)
			frame_print(&c->sent[rank], caption);
	}
	if (shown & RESULT)
		frame_print(&c->result, "result");
}

/* Integers as numbers, floats as their bits. */
union element {
	int8_t int8;
	int16_t int16;
	int32_t int32;
	int64_t int64;
	uint8_t uint8;
	uint16_t uint16;
	uint32_t uint32;
	uint64_t uint64;
};

static void element_print(enum tally_dtype dtype, const union element *x)
{
	switch (dtype & (TALLY_FIXED_FLAG - 1)) {
	case TALLY_INT8:
		printf("%d", x->int8);
		return;
	case TALLY_INT16:
		printf("%d", x->int16);
		return;
	case TALLY_INT32:
		printf("%" PRId32, x->int32);
		return;
	case TALLY_INT64:
		printf("%" PRId64, x->int64);
		return;
	case TALLY_UINT8:
	case TALLY_UINT16:
	case TALLY_UINT32:
	case TALLY_UINT64:
		printf("%" PRIu64, x->uint64);
		return;
	case TALLY_BFLOAT16:
	case TALLY_FLOAT16:
		printf("0x%04x", x->uint16);
		return;
	case TALLY_FLOAT64:
		printf("0x%016" PRIx64, x->uint64);
		return;
	default:
		printf("0x%08" PRIx32, x->uint32);
		return;
	}
}

void values_print(const char *who, const void *values, enum tally_dtype dtype, size_t count)
{
	const size_t bytes = call_element_bytes(&(struct call_options){ .dtype = dtype });

	printf("%s", who);
	for (size_t i = 0; i < count; i++) {
		union element x = { 0 };

		memcpy(&x, (const uint8_t *)values + i * bytes, bytes);
		printf(" ");
		element_print(dtype, &x);
	}
}
