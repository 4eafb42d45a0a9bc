// SPDX-License-Identifier: GPL-2.0-only
/*
 * What policies of quotas (agent/policy/quota.h) are worth: a simulation of a node of 4,096 slots
 * and four tenants with a quota of 512 each, so that half of the slots are lent. Runs come and go,
 * want rings of 64 to 512 slots, and send what traces (agent/policy/traces.h) say, some tenants
 * four times as much as others, and who they are changes every 20 minutes. A step is a second. Runs
 * that find no slots begin in software; every ten seconds the one that has waited for longest is
 * looked after, and who gave slots back waits 10 s, 20 s, 40 s ... as agent/core/refill.c has it.
 * Rates are smoothed and forecast as in agent/core/traffic.c.
 *
 *	quotas [SEEDS]	medians over seeds, and the least and most
 */
#include <err.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/policy/predict.h"
#include "agent/policy/quota.h"
#include "agent/policy/random.h"
#include "agent/policy/traces.h"

enum {
	SLOTS = 4096,
	QUOTA = 512,
	TENANTS = 4,
	RUNS = 24, /* at most */
	STEPS = 6 * 3600,
	TURN = 1200, /* steps from one change of who is busy to the next */
	AGAIN = 10,
	APART_MOST = 640,
	AHEAD = 5, /* steps: as the agent forecasts */
	SEEDS_MAX = 100,
};

struct run {
	bool on; /* it is there */
	bool in_slots, lent;
	unsigned int tenant, left, due, apart;
	uint32_t slots;
	struct trace trace;
	double rate;
};

struct score {
	double in_slots; /* of 100 bytes */
	double worst; /* the same of the tenant that has least */
	double moves; /* back to software, for 100 runs */
};

struct node {
	const struct quota_policy *policy;
	uint64_t seed;
	struct run run[RUNS];
	struct quota_use use[TALLY_TENANTS_MAX];
	struct predict_ewma rate[TENANTS];
	struct predict_holt trend[TENANTS];
	double all[TENANTS], in_slots[TENANTS];
	unsigned int begun, moves;
};

static uint32_t held(const struct node *n, int tenant, bool own)
{
	uint32_t sum = 0;

	for (int i = 0; i < RUNS; i++) {
		const struct run *r = &n->run[i];

		if (r->on && r->in_slots && (tenant < 0 || r->tenant == (unsigned int)tenant) &&
		    !(own && r->lent))
			sum += r->slots;
	}
	return sum;
}

static void give_back(struct node *n, struct run *r, unsigned int now)
{
	r->in_slots = false;
	r->apart = r->apart ? 2 * r->apart : AGAIN;
	r->apart = r->apart > APART_MOST ? APART_MOST : r->apart;
	r->due = now + r->apart;
	n->moves++;
}

/* The run gets slots, of its quota or on loan, or none. */
static bool get_slots(struct node *n, struct run *r, unsigned int now)
{
	struct quota_loan loan[RUNS];
	struct run *of[RUNS];
	unsigned int count = 0;
	struct quota_want want = { r->tenant, r->slots, SLOTS - held(n, -1, false),
				   held(n, (int)r->tenant, true) + r->slots <= QUOTA };

	for (int i = 0; i < RUNS; i++)
		if (n->run[i].on && n->run[i].in_slots && n->run[i].lent) {
			of[count] = &n->run[i];
			loan[count++] = (struct quota_loan){ n->run[i].tenant, n->run[i].slots,
							     false };
		}
	if (quota_recall(n->policy, n->use, loan, count, &want) < 0) {
		if (want.own)
			errx(1, "a quota of %u slots goes without", QUOTA);
		return false;
	}
	for (unsigned int i = 0; i < count; i++)
		if (loan[i].recalled)
			give_back(n, of[i], now);
	r->in_slots = true;
	r->lent = !want.own;
	if (held(n, -1, false) > SLOTS)
		errx(1, "more slots than there are: %u", held(n, -1, false));
	return true;
}

static void begin_runs(struct node *n, unsigned int now)
{
	static const char *const kinds[] = { "steady", "bursty", "ramps", "periodic" };
	struct run *r = &n->run[random_index(&n->seed, RUNS)];

	if (r->on || random_part(&n->seed) > 1.0 / 20)
		return;
	*r = (struct run){ .on = true,
			   .tenant = random_index(&n->seed, TENANTS),
			   .left = 300 + random_index(&n->seed, 1800),
			   .slots = 64u << random_index(&n->seed, 4),
			   .due = now };
	trace_begin(&r->trace, trace_find(kinds[random_index(&n->seed, 4)]), n->seed);
	n->begun++;
	if (!get_slots(n, r, now))
		r->due = now + AGAIN;
}

static void refill(struct node *n, unsigned int now)
{
	struct run *first = NULL;

	for (int i = 0; i < RUNS; i++)
		if (n->run[i].on && !n->run[i].in_slots && (!first || n->run[i].due < first->due))
			first = &n->run[i];
	if (now % AGAIN == 0 && first && first->due <= now && !get_slots(n, first, now)) {
		first->apart = first->apart ? 2 * first->apart : AGAIN;
		first->apart = first->apart > APART_MOST ? APART_MOST : first->apart;
		first->due = now + first->apart;
	}
}

/* A run sends by its window, so by its slots; busy tenants four times as much. */
static void send(struct node *n, unsigned int now)
{
	double sent[TENANTS] = { 0 };

	for (int i = 0; i < RUNS; i++) {
		struct run *r = &n->run[i];

		if (!r->on)
			continue;
		r->rate = trace_next(&r->trace) * r->slots *
			  (r->tenant % 2 == now / TURN % 2 ? 4 : 1);
		sent[r->tenant] += r->rate;
		n->in_slots[r->tenant] += r->in_slots ? r->rate : 0;
		r->on = --r->left > 0;
	}
	for (int t = 0; t < TENANTS; t++) {
		n->all[t] += sent[t];
		PREDICT_EWMA.observe(&n->rate[t], 1, sent[t]);
		PREDICT_HOLT.observe(&n->trend[t], 1, sent[t]);
		n->use[t].bytes_per_second = PREDICT_EWMA.forecast(&n->rate[t], 0);
		n->use[t].added_bytes_per_second = n->use[t].bytes_per_second;
		n->use[t].forecast_bytes_per_second = PREDICT_HOLT.forecast(&n->trend[t], AHEAD);
	}
}

static struct score simulate(const struct quota_policy *policy, uint64_t seed)
{
	static struct node n;
	struct score score = { .worst = 100 };
	double all = 0, in_slots = 0;

	n = (struct node){ .policy = policy, .seed = seed };
	for (int t = 0; t < TENANTS; t++) {
		PREDICT_EWMA.begin(&n.rate[t], &PREDICT_EWMA.usual);
		PREDICT_HOLT.begin(&n.trend[t], &PREDICT_HOLT.usual);
	}
	for (unsigned int now = 0; now < STEPS; now++) {
		begin_runs(&n, now);
		refill(&n, now);
		send(&n, now);
	}
	for (int t = 0; t < TENANTS; t++) {
		double part = n.all[t] > 0 ? 100 * n.in_slots[t] / n.all[t] : 100;

		all += n.all[t];
		in_slots += n.in_slots[t];
		score.worst = part < score.worst ? part : score.worst;
	}
	score.in_slots = 100 * in_slots / all;
	score.moves = 100.0 * n.moves / n.begun;
	return score;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_column(const struct score *score, unsigned int seeds, size_t offset)
{
	double value[SEEDS_MAX];

	for (unsigned int i = 0; i < seeds; i++)
		value[i] = *(const double *)((const char *)&score[i] + offset);
	qsort(value, seeds, sizeof(*value), by_value);
	printf(" %.1f (%.1f to %.1f) |", value[seeds / 2], value[0], value[seeds - 1]);
}

int main(int argc, char **argv)
{
	unsigned int seeds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 0) : 20;
	struct score score[SEEDS_MAX];

	if (seeds == 0 || seeds > SEEDS_MAX)
		errx(1, "SEEDS is '%s'; give a number from 1 to %d", argv[1], SEEDS_MAX);
	printf("| policy | summed in slots, of 100 bytes | of the worst-off tenant | to "
	       "software, of 100 runs |\n| --- | --- | --- | --- |\n");
	for (unsigned int i = 0; i < QUOTA_POLICIES_COUNT; i++) {
		for (unsigned int k = 0; k < seeds; k++)
			score[k] = simulate(&QUOTA_POLICIES[i], k + 1);
		printf("| `%s` |", QUOTA_POLICIES[i].name);
		print_column(score, seeds, offsetof(struct score, in_slots));
		print_column(score, seeds, offsetof(struct score, worst));
		print_column(score, seeds, offsetof(struct score, moves));
		printf("\n");
	}
	return 0;
}
