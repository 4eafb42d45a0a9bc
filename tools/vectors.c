// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * tally-vectors: docs/vectors.md on standard output. Workers and a root (vectors_world.h) make a
 * few calls; what they send is written down, and nothing else is: each chunk's place is found by
 * what its check says.
 */
#include <err.h>
#include <stdio.h>
#include <string.h>

#include "common/file.h"
#include "vectors_calls.h"
#include "vectors_print.h"
#include "vectors_world.h"

enum {
	LARGE_RANKS = 66,
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
						      .nonce = vectors_nonce,
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
	struct tally_key key = { { 0 } };

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
		vectors_nonce = tally_mix(vectors_nonce, world_random(rank));
	printf("nonce 0x%016llx\nrun with this nonce 0x%016llx\n```\n", vectors_nonce,
	       tally_run_identity(vectors_nonce, JOB, EPOCH));
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
	calls_print();
	reject_print();
	repair_print();
	disagreement_print(&oldest);
	large_print();
	world_close();
	return 0;
}
