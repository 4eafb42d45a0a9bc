// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tally-vectors: docs/vectors.md on standard output. Workers and a root (vectors_world.h) make a
 * few calls; what they send is written down, and nothing else is: each chunk's place is found by
 * what its check says.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/lanes.h"
#include "client/shape.h"
#include "common/file.h"
#include "vectors_world.h"

enum {
	LARGE_RANKS = 66,
	ROW_BYTES = 32,
	ELEMENTS_MAX = 9, /* of a buffer */
	/* What is shown of a chunk. */
	NOTHING = 0,
	RANK_0 = 1,
	RANK_1 = 2,
	RESULT = 8,
	ALL = 15,
};

static __u64 nonce; /* of the run; 0 in the opening */

/* --- frames as text */

/* Rows of zeros at the payload's end are not shown. */
static size_t rows_of(const struct message *m)
{
	const uint8_t *byte = (const uint8_t *)&m->header;
	size_t bytes = message_bytes(m);

	while (bytes > message_header_bytes(m) && !byte[bytes - 1])
		bytes--;
	return (bytes + ROW_BYTES - 1) / ROW_BYTES;
}

static void frame_print(const struct message *m, const char *caption)
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
	return tally_identity(tally_run_identity(nonce, JOB, EPOCH), tally_le32_get(m->header.seq),
			      tally_le64_get(m->header.call), place);
}

/* The one of all places of which this may be a contribution. */
static __u64 place_of(const struct message *m, int rank)
{
	const __u64 own = tally_le64_get(m->header.check) - words_check(m);

	for (__u64 entry = 0; entry < CHUNKS_MAX; entry++)
		for (__u64 round = 0; round < CHUNKS_MAX; round++)
			for (__u64 scale = 0; scale <= 96; scale++)
				for (__u64 form = 0; form <= FORM_WIDE_LAST; form++) {
					__u64 place = entry << 32 | round << 16 | scale << 8 | form;

					if (identity_of(m, place) * tally_weight(rank) == own)
						return place;
				}
	errx(1, "a check is of no place");
}

/* Of each chunk the contributions of the ranks in `shown`, and the result if that is all. */
static void chunk_print(uint32_t i, unsigned int shown)
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

static void values_print(const char *who, const void *values, enum tally_dtype dtype, size_t count)
{
	printf("%s", who);
	for (size_t i = 0; i < count; i++) {
		if (dtype == TALLY_INT32)
			printf(" %" PRId32, ((const int32_t *)values)[i]);
		else if (dtype == TALLY_INT64)
			printf(" %" PRId64, ((const int64_t *)values)[i]);
		else
			printf(" 0x%08" PRIx32, ((const uint32_t *)values)[i]);
	}
}

/* --- calls */

struct example {
	const char *text;
	struct call_options options;
	const void *in; /* a row of `width` elements for each rank */
	size_t width;
	unsigned int shown[CHUNKS_MAX]; /* of each chunk: whose contributions */
};

static __u64 shape(const struct call_options *o)
{
	const struct call_member member = { .window = WINDOW, .payload_bytes = PAYLOAD };

	return shape_of(&member, o);
}

static void elements_print(const struct example *e, const void *in, const uint8_t *out, size_t row)
{
	const enum call_verb verb = e->options.verb;
	char who[32];

	for (int rank = 0; rank < RANKS && e->width; rank++) {
		snprintf(who, sizeof(who), "%srank %d has",
			 !rank || verb == CALL_BROADCAST   ? ""
			 : e->options.dtype == TALLY_INT32 ? "; "
							   : "\n",
			 rank);
		if (verb != CALL_BROADCAST || rank == e->options.root)
			values_print(who, (const uint8_t *)in + rank * row, e->options.dtype,
				     verb == CALL_ALL_GATHER ? e->options.count : e->width);
	}
	if (e->width)
		puts("");
	for (int rank = 0; rank < RANKS && e->width; rank++) {
		snprintf(who, sizeof(who), "%srank %d gets",
			 rank && verb != CALL_REDUCE ? "; " : "", rank);
		if (verb == CALL_REDUCE_SCATTER || (verb == CALL_REDUCE && rank == e->options.root))
			values_print(who, out + rank * row, e->options.dtype, e->options.count);
	}
	if (e->width && verb != CALL_REDUCE && verb != CALL_REDUCE_SCATTER)
		values_print("all get", out, e->options.dtype,
			     verb == CALL_ALL_GATHER ? e->width : e->options.count);
	if (e->width)
		puts("");
}

static void example_print(const struct example *e)
{
	const size_t element = e->options.dtype == TALLY_INT64 ? 8 : 4;
	__u64 out[RANKS][ELEMENTS_MAX] = { 0 }, in[RANKS][ELEMENTS_MAX] = { 0 };
	struct engine_call *call[RANKS];
	char name[SHAPE_TEXT_BYTES];

	shape_print(shape(&e->options), shape(&e->options), name, sizeof(name));
	for (int rank = 0; rank < RANKS && e->width; rank++) {
		memcpy(in[rank], (const uint8_t *)e->in + rank * e->width * element,
		       e->width * element);
		if (e->options.verb == CALL_BROADCAST && rank == e->options.root)
			memcpy(out[rank], in[rank], sizeof(in[rank]));
	}
	start(&e->options, in, out, sizeof(in[0]), call);
	finish(call);
	printf("\n## %s\n\n%s\n\n```\nshape 0x%016llx\n", name, e->text, shape(&e->options));
	elements_print(e, in, (const uint8_t *)out, sizeof(in[0]));
	for (uint32_t i = 0; i < world.chunks; i++)
		if (e->shown[i])
			chunk_print(i, e->shown[i]);
	puts("```");
}

#define ROWS(type, ...) (const type[]) __VA_ARGS__

static const struct example examples[] = {
	{ .text = "Two elements a word; the last word has one.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_SUM, .count = 3 },
	  .in = ROWS(int32_t, { 1, -2, 1000000, 10, 20, -3, -100, 7, 5 }),
	  .width = 3,
	  .shown = { ALL } },
	{ .text = "Round 0 says WIDE, so the second chunk counts, which is in the wide lane. The "
		  "average is of the\nexact sum, rounded towards zero.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_AVG, .count = 3 },
	  .in = ROWS(int32_t, { 2000000000, -5, 1, 2000000000, 3, 1, 2000000000, 0, 2 }),
	  .width = 3,
	  .shown = { RANK_0, RANK_0 | RESULT } },
	{ .text = "Sums wrap.",
	  .options = { .verb = CALL_ALLREDUCE, .dtype = TALLY_INT64, .op = TALLY_SUM, .count = 2 },
	  .in = ROWS(int64_t, { INT64_C(1) << 62, -1, INT64_C(1) << 62, -2, INT64_C(1) << 62, 5 }),
	  .width = 2,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "0.5, -0.25, 1e-9; 0.75, 0.125, 0; -0.0625, 0.1, -2e-10. The guessed scale, 64, "
		  "is right.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_SUM,
		       .count = 3 },
	  .in = ROWS(float, { 0.5, -0.25, 1e-9, 0.75, 0.125, 0, -0.0625, 0.1, -2e-10 }),
	  .width = 3,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "Denormals: the guess of round 0 is wrong, the scale is 28, and round 1 uses it.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_SUM,
		       .count = 2 },
	  .in = ROWS(uint32_t, { 1, 0x80000002, 3, 4, 0x80000001, 8 }),
	  .width = 2,
	  .shown = { RANK_0, RANK_0 | RESULT } },
	{ .text = "NaNs, infinities and numbers; and denormals, which are too small to count here. "
		  "Round 1 is wide.",
	  .options = { .verb = CALL_ALLREDUCE,
		       .dtype = TALLY_FLOAT32,
		       .op = TALLY_AVG,
		       .count = 5 },
	  .in = ROWS(uint32_t, { 0x7fc00000, 0x7f800000, 0x3f800000, 0xbfc00000, 1, 0x3f800000,
				 0x40000000, 0x7f800000, 0xc0200000, 2, 0x3f800000, 0x7f800000,
				 0xff800000, 0x3f000000, 3 }),
	  .width = 5,
	  .shown = { RANK_0, ALL } },
	{ .text = "The result as rank 2 gets it; all others get its header alone, with blocks 0.",
	  .options = { .verb = CALL_REDUCE,
		       .dtype = TALLY_INT32,
		       .op = TALLY_SUM,
		       .root = 2,
		       .count = 2 },
	  .in = ROWS(int32_t, { 1, 2, 3, 4, 5, 6 }),
	  .width = 2,
	  .shown = { RANK_0 | RESULT } },
	{ .text = "Bytes, from one rank; the others' contributions have no payload.",
	  .options = { .verb = CALL_BROADCAST, .dtype = TALLY_INT32, .root = 1, .count = 3 },
	  .in = ROWS(int32_t, { 0, 0, 0, 1, -2, 0x12345678, 0, 0, 0 }),
	  .width = 3,
	  .shown = { RANK_0 | RANK_1 | RESULT } },
	{ .text = "A chunk for each part. That of part 1 goes to rank 1.",
	  .options = { .verb = CALL_REDUCE_SCATTER,
		       .dtype = TALLY_INT32,
		       .op = TALLY_SUM,
		       .count = 1 },
	  .in = ROWS(int32_t, { 1, 2, 3, 10, 20, 30, 100, 200, 300 }),
	  .width = 3,
	  .shown = { NOTHING, RANK_0 | RANK_1 | RESULT } },
	{ .text = "A chunk for each part. That of part 1 comes from rank 1.",
	  .options = { .verb = CALL_ALL_GATHER, .dtype = TALLY_INT32, .count = 1 },
	  .in = ROWS(int32_t, { 5, 0, 0, 6, 0, 0, 7, 0, 0 }),
	  .width = 3,
	  .shown = { NOTHING, RANK_0 | RANK_1 | RESULT } },
	{ .text = "No payload at all.", .options = { .verb = CALL_BARRIER }, .shown = { ALL } },
	{ .text = "The barrier that a worker ends with. Here others follow all the same.",
	  .options = { .verb = CALL_CLOSING },
	  .shown = { ALL } },
};

/* --- the other kinds */

static const struct call_options one_int32 = {
	.verb = CALL_ALLREDUCE, .dtype = TALLY_INT32, .op = TALLY_SUM, .count = 1
};
static const int32_t one_to_three[RANKS] = { 1, 2, 3 };
static int32_t sum_of_one[RANKS];

/* Two wrong results one after the other: the second one is rejected. */
static void reject_print(void)
{
	struct engine_call *call[RANKS];
	struct message m, bad;
	struct visit v;

	start(&one_int32, one_to_three, sum_of_one, 4, call);
	for (int rank = 0; rank < RANKS; rank++) {
		m = output(rank);
		v = visit(&m, rank < RANKS - 1 ? TALLY_ABSORBED : TALLY_COMPLETED);
		world.chunk[0].sent[rank] = m;
	}
	world.chunks = 1;
	bad = v.message;
	bad.word[0]++;
	deliver(&bad, 0);
	output(0);
	deliver(&bad, 0);
	m = output(0);
	printf("\n## Reject, ask\n\nAn allreduce of one int32, of 1, 2 and 3. Rank 0 has got a "
	       "wrong sum twice; it rejects\nedition 0, and all are asked.\n\n```\n");
	frame_print(&m, "rank 0");
	v = visit(&m, TALLY_SPOILED);
	frame_print(&v.message, "ask");
	puts("```");
	for (int rank = 1; rank < RANKS; rank++)
		v = visit(&world.chunk[0].sent[rank], TALLY_GO_ON);
	for (int rank = 0; rank < RANKS; rank++)
		deliver(&v.message, rank);
	finish(call);
}

/* The root forgets; rank 0 has no result of the chunk yet, rank 1 gives it back. */
static void repair_print(void)
{
	struct message m = world.chunk[0].sent[0];
	const struct tally_set set = tally_header_set(&m.header);
	struct visit v;

	world_forget();
	world.node.boot++;
	world.now_ns += 1000 * (__u64)MS;
	m.header.flags |= TALLY_FLUSH;
	m.header.tag = tally_le64(tally_tag(&m.header, &set));
	v = visit(&m, TALLY_ASKED);
	printf("\n## Ask, repair\n\nThe root has lost its slots, and rank 0 the result of the "
	       "chunk before. It sends with FLUSH,\nall are asked, and rank 1 repairs.\n\n```\n");
	frame_print(&m, "rank 0");
	frame_print(&v.message, "ask");
	deliver(&v.message, 1);
	m = output(1);
	frame_print(&m, "rank 1");
	v = visit(&m, TALLY_REPAIRED);
	frame_print(&v.message, "result");
	puts("```");
}

/* Rank 0 is in a barrier, rank 1 in an allreduce; and one is far behind. */
static void disagreement_print(const struct message *oldest)
{
	static const struct call_options barrier = { .verb = CALL_BARRIER };
	struct engine_call *call[RANKS];
	struct call_options other = one_int32;
	struct message m;
	struct visit v;

	other.in = one_to_three;
	other.out = sum_of_one;
	if (engine_start(world.worker[0], &barrier, world.now_ns, &call[0]) < 0 ||
	    engine_start(world.worker[1], &other, world.now_ns, &call[1]) < 0)
		errx(1, "%s", tally_error());
	m = output(0);
	visit(&m, TALLY_ABSORBED);
	m = output(1);
	v = visit(&m, TALLY_CONFLICT);
	printf("\n## Mismatch, overtaken\n\nRank 0 calls barrier, and then rank 1 allreduce of 1 "
	       "int32, sum. Then rank 0 sends a contribution\nthat is %d chunks older.\n\n```\n",
	       SLOTS);
	frame_print(&v.message, "mismatch");
	m = *oldest;
	m.header.seq = tally_le32(tally_le32_get(v.message.header.seq) - SLOTS);
	m.header.tag = tally_le64(tally_tag(&m.header, &(struct tally_set){ { 1 } }));
	v = visit(&m, TALLY_BEHIND);
	frame_print(&v.message, "overtaken");
	puts("```");
}

/* --- a job of many workers: each is there for one contribution */

/* `key`: of the rank; NULL: the job has none. */
static struct message contribution_of(int rank, int workers, const struct tally_key *key)
{
	const struct engine_options o = { .window = { .job = JOB,
						      .epoch = EPOCH,
						      .rank = rank,
						      .workers = workers,
						      .window = WINDOW,
						      .payload_bytes = PAYLOAD,
						      .nonce = nonce,
						      .keyed = key,
						      .key = key ? *key
								 : (struct tally_key){ { 0 } } },
					  .timeout_ns = 1000 * (__u64)MS };
	const int32_t value = rank;
	struct call_options call = one_int32;
	struct engine_call *started;
	struct engine *e = NULL;
	struct datagram d;
	struct message m;
	int32_t sum;

	call.in = &value;
	call.out = &sum;
	if (engine_new(&o, &e) < 0 || engine_start(e, &call, world.now_ns, &started) < 0 ||
	    engine_output(e, world.now_ns, &d, 1) != 1)
		errx(1, "%s", tally_error());
	m = message_of(&d);
	engine_free(e);
	return m;
}

/* Bytes that count up from `first`. */
static struct tally_key key_print(uint8_t first)
{
	struct tally_key key;

	printf("rank key ");
	for (size_t i = 0; i < sizeof(key); i++) {
		((uint8_t *)&key)[i] = first + i;
		printf("%02zx", first + i);
	}
	puts("");
	return key;
}

/* `result`: of the large job, as it leaves the root for all. */
static void keyed_print(const struct message *result)
{
	const struct tally_set set = tally_header_set(&result->header);
	struct message m = *result;
	struct tally_key key;

	printf("\n## A job of %d workers with rank keys\n\nThe same call: a contribution to a job of "
	       "%d workers, one to that of %d, and its result as rank\n65 gets it.\n\n```\n",
	       LARGE_RANKS, RANKS, LARGE_RANKS);
	key = key_print(0);
	m = contribution_of(1, RANKS, &key);
	frame_print(&m, "rank 1");
	key = key_print(sizeof(key));
	m = contribution_of(LARGE_RANKS - 1, LARGE_RANKS, &key);
	frame_print(&m, "rank 65");
	m = *result;
	m.header.tag = tally_le64(tally_keyed_tag(&m.header, &set, &key));
	frame_print(&m, "result");
	puts("```");
}

static void large_print(void)
{
	struct message m;
	struct visit v;

	world.everyone = tally_set_first(LARGE_RANKS);
	world_forget();
	printf("\n## A job of %d workers\n\nThe same job, nonce and call as before, but of so many "
	       "ranks; rank r has r. The call is the first\none: seq 0, place 0.\n\n```\n",
	       LARGE_RANKS);
	for (int rank = 0; rank < LARGE_RANKS; rank++) {
		m = contribution_of(rank, LARGE_RANKS, NULL);
		v = visit(&m, rank < LARGE_RANKS - 1 ? TALLY_ABSORBED : TALLY_COMPLETED);
	}
	frame_print(&m, "rank 65");
	frame_print(&v.message, "result");
	puts("```");
	keyed_print(&v.message);
}

/* --- the page */

/* The opening, and a barrier without which there would be none. */
static void opening_print(void)
{
	const struct call_options barrier = { .verb = CALL_BARRIER };
	struct engine_call *call[RANKS];

	start(&barrier, NULL, NULL, 0, call);
	finish(call);
	printf("\n## The opening\n\nAn int64 of each rank, which is its random number, in its "
	       "place. A barrier follows, as chunk 1.\n\n```\n");
	for (int rank = 0; rank < RANKS; rank++)
		printf("rank %d has drawn 0x%016llx\n", rank, world_random(rank));
	printf("shape 0x%016llx\n", tally_le64_get(world.chunk[0].sent[0].header.call));
	chunk_print(0, RANK_0 | RANK_1 | RESULT);
	for (int rank = 0; rank < RANKS; rank++)
		nonce = tally_mix(nonce, world_random(rank));
	printf("nonce 0x%016llx\nrun with this nonce 0x%016llx\n```\n", nonce,
	       tally_run_identity(nonce, JOB, EPOCH));
	place_of(&world.chunk[1].sent[0], 0);
}

int main(void)
{
	struct message oldest;

	file_watch_output();
	world_open();
	hashes_print();
	opening_print();
	oldest = world.chunk[1].sent[0];
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		example_print(&examples[i]);
	reject_print();
	repair_print();
	disagreement_print(&oldest);
	large_print();
	world_close();
	return 0;
}
