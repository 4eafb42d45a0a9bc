// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "vectors_world.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

struct world world = {
	.node = { .role = { .everyone = &world.everyone,
			    .below = &world.everyone,
			    .epoch = EPOCH,
			    .blocks_max = 1,
			    .root = true },
		  .boot = BOOT,
		  .frames_grow = true,
		  .slots = SLOTS,
		  .slot = world.slot },
	.now_ns = 1000 * (__u64)MS,
};

__u64 world_random(int rank) { return 0x1111111111111111u * (rank + 1); }

void world_open(void)
{
	world.everyone = tally_set_first(RANKS);
	for (int rank = 0; rank < RANKS; rank++) {
		const struct engine_options o = { .window = { .job = JOB,
							      .epoch = EPOCH,
							      .rank = rank,
							      .workers = RANKS,
							      .window = WINDOW,
							      .payload_bytes = PAYLOAD },
						  .timeout_ns = 10000 * (__u64)MS,
						  .service = "10.77.0.1",
						  .random = world_random(rank) };

		if (engine_new(&o, &world.worker[rank]) < 0)
			errx(1, "no memory");
	}
}

void world_close(void)
{
	for (int rank = 0; rank < RANKS; rank++)
		engine_free(world.worker[rank]);
}

void world_forget(void) { memset(world.slot, 0, sizeof(world.slot)); }

struct message message_of(const struct datagram *d)
{
	struct message m = { 0 };

	memcpy(&m.header, d->bytes, d->length < sizeof(m.header) ? d->length : sizeof(m.header));
	if (d->length > sizeof(m.header))
		memcpy(m.word, (const uint8_t *)d->bytes + sizeof(m.header),
		       d->length - sizeof(m.header));
	return m;
}

void deliver(const struct message *m, int rank)
{
	const struct tally_set me = { { 1ull << rank } };
	struct message copy = message_copy(m, &me);

	engine_input(world.worker[rank], &copy.header, message_bytes(&copy), world.now_ns);
}

struct visit visit(const struct message *m, enum tally_outcome want)
{
	struct visit v;
	enum tally_outcome outcome;

	world.node.now_ms = world.now_ns / MS;
	visit_begin(&world.node, m, &v);
	outcome = visit_end(&world.node, &v);
	if (want != TALLY_GO_ON && outcome != want)
		errx(1, "%s, not %s", tally_outcome_name(outcome), tally_outcome_name(want));
	v.reply.outcome = outcome;
	return v;
}

/* What a rank sends next; the clock goes on until there is something. */
struct message output(int rank)
{
	struct datagram d;

	while (!engine_output(world.worker[rank], world.now_ns, &d, 1))
		world.now_ns = engine_wakeup(world.worker[rank]) > world.now_ns
				       ? engine_wakeup(world.worker[rank])
				       : world.now_ns + MS;
	return message_of(&d);
}

/* All ranks' contributions of one chunk after another, each time in the order of ranks. */
static void turn(int rank)
{
	struct message m = output(rank);
	const uint32_t i = tally_le32_get(m.header.seq) - world.base;
	struct visit v = visit(&m, rank == RANKS - 1 ? TALLY_COMPLETED : TALLY_ABSORBED);

	if (i >= CHUNKS_MAX)
		errx(1, "a call of too many world.chunks");
	world.chunks = i + 1;
	world.chunk[i].sent[rank] = m;
	if (rank < RANKS - 1)
		return;
	world.chunk[i].result = v.message;
	for (rank = 0; rank < RANKS; rank++)
		deliver(&v.message, rank);
}

void finish(struct engine_call **call)
{
	while (!engine_is_over(call[0]))
		for (int rank = 0; rank < RANKS; rank++)
			turn(rank);
	for (int rank = 0; rank < RANKS; rank++)
		if (engine_collect(call[rank], NULL) < 0)
			errx(1, "%s", tally_error());
}

void start(const struct call_options *o, const void *in, void *out, size_t bytes,
	   struct engine_call **call)
{
	world.base += world.chunks;
	world.chunks = 0;
	for (int rank = 0; rank < RANKS; rank++) {
		struct call_options own = *o;

		own.in = (const uint8_t *)in + rank * bytes;
		own.out = (uint8_t *)out + rank * bytes;
		if (engine_start(world.worker[rank], &own, world.now_ns, &call[rank]) < 0)
			errx(1, "%s", tally_error());
	}
}

void hashes_print(void)
{
	__u64 weights = 0;

	printf("# Test vectors\n\n"
	       "`make vectors-docs` writes this page: it is what libtally's workers and a root "
	       "send. With it a\nworker in another language, written from [the protocol]"
	       "(protocol.md), can check itself.\n\n"
	       "Lines of 64 hex digits are UDP payloads, row after row; rows of zeros at the end of "
	       "a payload are\nleft out. Numbers with 0x are values, not bytes in their order.\n\n"
	       "The job has number %d, epoch %d, %d ranks, window %d and a payload of %d bytes. "
	       "The root's boot number\nis 0x%x. Calls are one after another. Of most of them "
	       "rank 0's contribution\nand the result are shown.\n\n```\n",
	       JOB, EPOCH, RANKS, WINDOW, PAYLOAD, BOOT);
	printf("mix(0, 1)         0x%016llx\nmix(1, 2)         0x%016llx\n", tally_mix(0, 1),
	       tally_mix(1, 2));
	for (int rank = 0; rank < RANKS; rank++) {
		weights += tally_weight(rank);
		printf("weight(%d)         0x%016llx\n", rank, tally_weight(rank));
	}
	printf("all weights       0x%016llx\nrun with nonce 0  0x%016llx\n```\n", weights,
	       tally_run_identity(0, JOB, EPOCH));
}
