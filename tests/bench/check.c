// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a worker's checks cost: those of a chunk of 1,408 bytes that everybody can make, and those
 * of a sealed job, both in one run, in turns.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tally/check.h>

#include "client/lanes.h"
#include "client/seal.h"

enum {
	WORDS = 176,
	CHUNKS = 100000, /* a round */
	ROUNDS = 51,
	RANK = 1,
	WORKERS = 4,
};

static uint64_t word[2][WORDS]; /* what is sent, what comes */
static uint64_t seen;	      /* so that nothing is left out */
static struct seal seal;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void public_checks(uint32_t seq)
{
	uint64_t identity = tally_identity(7, seq, 99, seq);

	seen += lanes_check(word[0], WORDS) + identity * tally_weight(RANK);
	seen += lanes_check(word[1], WORDS) + identity;
}

static void sealed_checks(uint32_t seq)
{
	const struct tally_header h = { .lane = TALLY_LANE_INT32 };
	struct seal_masks m = seal_masks(&seal, seq, 99, seq, RANK, WORKERS);

	seen += seal_words(&seal, h.lane, word[0], WORDS) + m.own;
	seen += seal_votes_agree(&seal, seal_words(&seal, h.lane, word[1], WORDS) + m.all, &h, 0,
				 WORKERS);
}

static double round_ns(void (*checks)(uint32_t seq))
{
	uint64_t begun = now_ns();

	for (uint32_t seq = 0; seq < CHUNKS; seq++) {
		word[0][seq % WORDS] += seq;
		checks(seq);
	}
	return (double)(now_ns() - begun) / CHUNKS;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void report(const char *name, double *ns)
{
	qsort(ns, ROUNDS, sizeof(*ns), compare);
	printf("%-30s %6.1f ns (%.1f to %.1f)\n", name, ns[ROUNDS / 2], ns[ROUNDS / 10],
	       ns[ROUNDS * 9 / 10]);
}

int main(void)
{
	double open[ROUNDS], sealed[ROUNDS], more[ROUNDS];
	const struct tally_key secret = { { 1, 2 } };

	seal_begin_run(&seal, &secret, 7);
	for (int i = 0; i < WORDS; i++)
		word[0][i] = word[1][i] = (uint64_t)i * 0x123456789abcdef;
	for (int i = 0; i < ROUNDS; i++) {
		open[i] = round_ns(public_checks);
		sealed[i] = round_ns(sealed_checks);
		more[i] = sealed[i] - open[i];
	}
	report("checks of a chunk", open);
	report("checks of a sealed chunk", sealed);
	report("more", more);
	return seen == 0;
}
