/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One collective as a series of chunks, pure: which elements each chunk carries, for whom,
 * and at what scale. Every collective is a sum (docs/protocol.md, "Collectives").
 *
 * A call runs in rounds. The entries of a round are chunks sent under consecutive sequence
 * numbers. Round 0 has every chunk once. A later round repeats the chunks whose scale
 * was guessed wrongly, or whose values turned out to need the wide form; all ranks conclude
 * that from the same results, so their rounds are the same.
 */
#ifndef TALLY_CLIENT_CALL_H
#define TALLY_CLIENT_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/tally.h>
#include <tally/wire.h>

#include "lanes.h"

enum call_verb {
	CALL_CLOSING, /* a barrier, the last call of a rank */
	CALL_ALLREDUCE,
	CALL_REDUCE,
	CALL_BROADCAST,
	CALL_REDUCE_SCATTER,
	CALL_ALL_GATHER,
	CALL_BARRIER,
	CALL_OPENING, /* an allreduce of int64 from which ranks come to know their run's nonce */
};

static inline bool call_reduces(enum call_verb verb)
{
	return verb == CALL_ALLREDUCE || verb == CALL_REDUCE || verb == CALL_REDUCE_SCATTER;
}

enum {
	CALL_COUNT_BITS = 37, /* a call has fewer than 2^37 elements */
	GUESS_TYPES = 5, /* of floats with scales */
	GUESS_KINDS = 16, /* shapes of calls of a type remembered at a time */
	/* In sealed jobs, how a rank's values fit the scale and form that a chunk is sent in. */
	CALL_VOTE_EXACT = 1, /* they need just this scale, which is not 0 */
	CALL_VOTE_MORE = 1 << 16, /* they need more, and the rank sends zeros */
};

/*
 * Scales of the first window of chunks of floats: nobody can have announced them, so they are
 * guessed to be what they were in the last call of the same type and shape. A guess is only ever
 * accepted when it was exactly right, so results do not depend on it.
 */
struct guesses {
	uint8_t scale[GUESS_TYPES][GUESS_KINDS][TALLY_WINDOW_MAX];
};

void guesses_init(struct guesses *g);

/* How the rank takes part: the same for all its calls. */
struct call_member {
	uint16_t rank;
	uint16_t workers;
	uint16_t window;
	uint16_t payload_bytes;
	bool sealed; /* client/seal.h */
	uint64_t agreement; /* client/shards.h */
};

struct call_options {
	enum call_verb verb;
	enum tally_dtype dtype;
	enum tally_op op;
	uint16_t root;
	size_t count;  /* elements; of each part in reduce_scatter and all_gather */
	const void *in;
	void *out;
	uint8_t priority; /* of its messages */
	size_t whole; /* of a part (shards.h): the whole call's count; else 0 */
	size_t first; /* of a part: its first element in each rank's part of the whole call */
	/* As many as `in` has, of a lane with feedback (lanes.h); NULL: nothing, or forgotten. */
	const float *kept;
	float *lost; /* may be kept */
};

/* A chunk whose values decide how it travels: what is known of it, and what is still to be done. */
struct call_chunk {
	uint8_t scale;
	bool wide;
	uint8_t todo; /* for the next round: bits 1 << enum call_form */
	bool inspected; /* by round 0: later results may lie where the numbers were */
	struct lane_need own; /* then: what this rank's values need */
};

enum call_form {
	FORM_NARROW, /* the first lane, the whole chunk */
	FORM_WIDE, /* its wide lane: the chunk's first piece; what comes behind are the others */
	FORM_WIDE_LAST = FORM_WIDE + 3,
};

struct call_entry {
	uint32_t chunk;
	uint8_t form; /* enum call_form */
};

struct call {
	struct call_member member;
	struct call_options options;
	struct guesses *guesses;
	uint64_t shape; /* client/shape.h: filled in after call_init() */
	uint8_t *guess; /* of calls like this: [window]; NULL: its lane has no scales */
	enum tally_lane lane; /* that chunks are sent in first */
	size_t element_bytes;
	uint32_t chunk_elements; /* of a full chunk */
	uint32_t piece_elements; /* of it in the wide form, in which an element takes more bits */
	uint32_t part_chunks;
	uint32_t chunks; /* of all parts */
	uint32_t round;
	uint32_t entries; /* of this round */
	uint32_t taken; /* results of this round */
	uint64_t redone; /* entries of later rounds */
	bool misfit; /* on some rank; the output is undefined */
	size_t misfit_at; /* the first such element of this rank; SIZE_MAX: none */
	struct call_chunk *chunk; /* [chunks], if the lane asks for values */
	struct call_entry *entry; /* [entries], later rounds only */
};

/* Elements of a full chunk, at least 1; bytes of one. */
uint32_t call_chunk_elements(uint16_t payload_bytes, uint16_t workers,
			     const struct call_options *options);
size_t call_element_bytes(const struct call_options *options);

/* Of its dtype; 0, if that has no fixed one. */
int8_t call_point(const struct call_options *options);

/*
 * `options` are valid (tally.c checks them). `guesses` is the job's and outlives the call.
 * 0, -ENOMEM, or -EFBIG: 2^31 chunks, or 2^37 elements, or more.
 */
int call_init(struct call *c, const struct call_member *member, const struct call_options *options,
	      struct guesses *guesses);
void call_done(struct call *c);

/*
 * Composes entry `e` of this round: `h` comes from window_compose(), payload right behind.
 * Returns how many blocks its sum has, which may be more than this rank's own contribution.
 * *ret_vote is CALL_VOTE_..., or 0, also where a job is not sealed.
 */
uint8_t call_fill(struct call *c, uint32_t e, struct tally_header *h, uint64_t *ret_vote);

/* Which entry of which round this is, in which form and scale: the same on all ranks. */
uint64_t call_place(const struct call *c, uint32_t e);

/* Takes its result. */
void call_take(struct call *c, uint32_t e, const struct tally_header *h);

/* Why a call with a misfit has failed. */
void call_print_misfit(const struct call *c, char *text, size_t size);

/* All results of the round are taken. True: another round begins; -ENOMEM is possible. */
int call_next_round(struct call *c);

#endif
