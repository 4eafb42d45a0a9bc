/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a sealed job has instead of the public check (docs/protocol.md, "Sealed jobs"): check words
 * that only who knows the job's secret can make and verify, and that nodes add like all others.
 * Pure.
 *
 * The check of a contribution is <factors, numbers> + vote * its factor + mask(rank) - mask(rank +
 * 1). Each mask serves for one chunk of one run, so a node learns nothing of the factors. In the
 * sum over everyone all masks but mask(0) cancel.
 *
 * A vote says how the rank's values fit the scale and the form that the chunk was sent in: nodes
 * say the largest scale, and might say too much or too little.
 */
#ifndef TALLY_CLIENT_SEAL_H
#define TALLY_CLIENT_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tally/siphash.h>
#include <tally/wire.h>

#include "call.h"
#include "lanes.h"

struct seal {
	struct tally_siphash run; /* what all hashes of the run begin with */
	uint64_t chunk; /* number of the latest one in the run: does not wrap */
	uint64_t vote, unvote; /* the vote's factor, which is odd, and its inverse */
	uint64_t factor[LANE_FACTORS]; /* of each number that a word holds; odd */
};

struct seal_masks {
	uint64_t own; /* what this rank adds to the check of its contribution */
	uint64_t all; /* what the sum over everyone has */
};

/* `run`: tally_run_identity(). */
void seal_begin_run(struct seal *s, const struct tally_key *secret, uint64_t run);

/* Of a chunk that is sent for the first time. Chunks come nearly in the order of their seq. */
struct seal_masks seal_masks(struct seal *s, uint32_t seq, uint64_t call, uint64_t place,
			     uint32_t rank, uint32_t workers);

/* The words' part of a check: of a contribution, and of a sum, which is the same sum of parts. */
uint64_t seal_words(const struct seal *s, uint8_t lane, const uint64_t *word, size_t words);

/*
 * `rest`: what a result's check has beside words and masks. Is it made of votes, and do these say
 * that what the result is used for is right?
 */
bool seal_votes_agree(const struct seal *s, uint64_t rest, const struct tally_header *h,
		      uint64_t place, uint32_t workers);

/*
 * The nonce of a run from random numbers of all ranks. With a secret: who changes these on their
 * way cannot choose the nonce. NULL: the job is not sealed.
 */
uint64_t seal_nonce(const struct tally_key *secret, const uint64_t *random, uint32_t workers);

#endif
