// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workers, an inner node and a root over a network that loses, repeats and reorders, with nodes
 * that forget. TALLY_SEED=n runs that one seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/slot.h>

#include "tests/unit/random.h"

enum {
	NETWORK_SEEDS = 5000,
};

static void words_move(uint64_t *slot, const uint64_t *offered, int count, enum tally_words words)
{
	for (int i = 0; i < count; i++) {
		if (words == TALLY_WORDS_STORE)
			slot[i] = offered[i];
		else if (words == TALLY_WORDS_ADD)
			slot[i] += offered[i];
	}
}

/*
 * --- the whole protocol
 *
 *	w0 ─┐
 *	w1 ─┴─ inner ─┐
 *	w2 ───────────┴─ root
 *
 * A worker sends chunk c when it has c - W. What it has finished it keeps until it sends
 * c + 2W. Its third attempt is a flush, and so are those after it.
 */

enum {
	WORKERS_MAX = 5,
	WINDOW_MAX = 4,
	CHUNKS = 10,
	BELOW = 2, /* the ranks 0 and 1 come through the inner node */
	ROOT = WORKERS_MAX,
	INNER,
	NODES = INNER + 1 - ROOT,
	PACKETS_MAX = 1 << 14,
	STEPS_MAX = 100000,
	RESTARTS_MAX = 6,
	ATTEMPTS_BEFORE_FLUSH = 2,
};

/* One number, and eight bits of every worker to count how often its own is in. */
struct words {
	uint64_t number;
	uint64_t counts;
};

struct packet {
	int to; /* rank, ROOT or INNER */
	enum tally_kind kind;
	struct tally_offer offer;
	struct words words;
};

/* What is to be summed: all, one or none of the workers have a payload. */
struct chunk {
	uint16_t recipient;
	struct words of[WORKERS_MAX];
	bool has_payload[WORKERS_MAX];
	bool any_payload;
	struct words sum;
};

/* What a worker knows of a chunk. */
struct holding {
	bool finished;
	bool forgotten;
	int attempts;
};

struct node {
	struct tally_slot_state state[2 * WINDOW_MAX];
	struct words words[2 * WINDOW_MAX];
};

struct network {
	uint64_t random;
	int workers, window;
	uint32_t first_seq;
	uint32_t detour_permille;
	bool frames_grow; /* else an answer must fit the frame that it is made of */
	struct chunk chunk[CHUNKS];
	struct holding holding[WORKERS_MAX][CHUNKS];
	struct node node[NODES];
	int restarts, in_flight;
	struct packet packet[PACKETS_MAX];
	const char *wrong;
};

static void net_send(struct network *n, struct packet p)
{
	int copies = chance(&n->random, 150) ? 0 : chance(&n->random, 100) ? 2 : 1;

	while (copies-- && n->in_flight < PACKETS_MAX)
		n->packet[n->in_flight++] = p;
}

/* Reordering is picking any. */
static struct packet net_take(struct network *n)
{
	uint32_t i = random_below(&n->random, n->in_flight);
	struct packet p = n->packet[i];

	n->packet[i] = n->packet[--n->in_flight];
	return p;
}

/* Where routes change, a worker below the inner node reaches the root directly at times. */
static int way_up(struct network *n, int rank)
{
	return rank < BELOW && !chance(&n->random, n->detour_permille) ? INNER : ROOT;
}

static struct tally_set only(int rank)
{
	struct tally_set s = { { 0 } };

	tally_set_add(&s, rank);
	return s;
}

/* --- a node: what bpf/ does with the verdicts */

static void node_tell_group(struct network *n, int node, struct packet p)
{
	for (int rank = 0; rank < n->workers; rank++) {
		if ((node == INNER) != (rank < BELOW))
			continue;
		p.to = rank;
		net_send(n, p);
	}
	p.to = INNER;
	if (node == ROOT)
		net_send(n, p);
}

/* The packet that carries what the slot holds. */
static struct packet packet_of(const struct tally_slot_state *s, struct words words)
{
	return (struct packet){
		.to = ROOT,
		.kind = TALLY_RESULT,
		.words = words,
		.offer = {
			.seq = s->seq,
			.recipient = s->recipient,
			.lane = s->lane,
			.blocks = s->blocks,
			.set = s->set,
		},
	};
}

static struct tally_verdict node_admit(struct network *n, int node, struct tally_slot_state *s,
				       const struct packet *p)
{
	const struct tally_set everyone = tally_set_first(n->workers);
	const struct tally_set below = tally_set_first(BELOW);

	if (p->kind == TALLY_REPAIR)
		return tally_slot_repair(s, &p->offer);
	if (node == ROOT)
		return tally_slot_admit_root(s, &p->offer, &everyone);
	return tally_slot_admit_inner(s, &p->offer, &below);
}

/* Everyone is asked for longer frames. */
static void node_ask_for_room(struct network *n, int node, struct packet out)
{
	out.kind = TALLY_ASK;
	out.offer.blocks = 0;
	out.offer.set = tally_set_first(n->workers);
	node_tell_group(n, node, out);
}

/* What leaves after `p` has come; `out` carries what the slot holds. */
static void node_leave(struct network *n, int node, enum tally_outcome outcome, struct packet p,
		       struct packet out, struct tally_slot_state *s)
{
	switch (outcome) {
	case TALLY_ASKED:
		out.kind = TALLY_ASK;
		out.offer.blocks = 0;
		/* fall through */
	case TALLY_COMPLETED:
	case TALLY_REPAIRED:
	case TALLY_ANSWERED_ALL:
		node_tell_group(n, node, out);
		break;
	case TALLY_ANSWERED:
		out.to = __builtin_ctzll(p.offer.set.word[0]);
		net_send(n, out);
		break;
	case TALLY_FLUSHED_UP:
		tally_slot_empty(s, s->seq);
		/* fall through */
	case TALLY_SENT_UP:
		out.kind = TALLY_CONTRIBUTION;
		out.offer.flush = p.offer.flush;
		net_send(n, out);
		break;
	case TALLY_PASSED_UP:
		p.to = ROOT;
		net_send(n, p);
		break;
	case TALLY_CONFLICT:
		n->wrong = "a conflict among workers who agree";
		break;
	default:
		break;
	}
}

static bool carries_the_sum(enum tally_outcome outcome)
{
	return outcome == TALLY_COMPLETED || outcome == TALLY_ANSWERED_ALL ||
	       outcome == TALLY_ANSWERED || outcome == TALLY_SENT_UP || outcome == TALLY_FLUSHED_UP;
}

static void node_gather(struct network *n, int node, struct packet p)
{
	int slot = p.offer.seq % (2 * n->window);
	struct tally_slot_state *s = &n->node[node - ROOT].state[slot];
	struct words *held = &n->node[node - ROOT].words[slot];
	struct tally_verdict v = node_admit(n, node, s, &p);
	struct packet out;

	words_move(&held->number, &p.words.number, sizeof(*held) / sizeof(uint64_t), v.words);
	out = packet_of(s, *held);
	if (v.outcome == TALLY_ANSWERED && !tally_gets_payload(s->recipient, &p.offer.set))
		out.offer.blocks = 0;
	if (carries_the_sum(v.outcome) && out.offer.blocks > p.offer.blocks && !n->frames_grow)
		node_ask_for_room(n, node, out);
	else
		node_leave(n, node, v.outcome, p, out, s);
}

static void node_take(struct network *n, int node, struct packet p)
{
	if (p.kind == TALLY_RESULT || p.kind == TALLY_ASK) {
		node_tell_group(n, node, p);
	} else if (p.kind == TALLY_REPAIR && node == INNER) {
		p.to = ROOT;
		net_send(n, p);
	} else {
		node_gather(n, node, p);
	}
}

/* --- a worker */

/* Sent again, a contribution without payload has room for what the others have: zeros. */
static void worker_contribute(struct network *n, int rank, int c, int attempt)
{
	const struct chunk *chunk = &n->chunk[c];
	bool room = attempt && chunk->any_payload;

	net_send(n, (struct packet){
			    .to = way_up(n, rank),
			    .kind = TALLY_CONTRIBUTION,
			    .words = chunk->of[rank],
			    .offer = {
				    .seq = n->first_seq + c,
				    .recipient = chunk->recipient,
				    .lane = TALLY_LANE_INT64,
				    .blocks = chunk->has_payload[rank] || room,
				    .flush = attempt >= ATTEMPTS_BEFORE_FLUSH,
				    .set = only(rank),
			    },
		    });
}

/* With the payload it gives the result back, without it sends its own part again. */
static void worker_answer(struct network *n, int rank, int c)
{
	const struct tally_set me = only(rank);
	const struct chunk *chunk = &n->chunk[c];

	if (!n->holding[rank][c].finished || n->holding[rank][c].forgotten)
		return;
	if (!tally_gets_payload(chunk->recipient, &me)) {
		worker_contribute(n, rank, c, ATTEMPTS_BEFORE_FLUSH);
		return;
	}
	net_send(n, (struct packet){
			    .to = way_up(n, rank),
			    .kind = TALLY_REPAIR,
			    .words = chunk->sum,
			    .offer = {
				    .seq = n->first_seq + c,
				    .recipient = chunk->recipient,
				    .lane = TALLY_LANE_INT64,
				    .blocks = chunk->any_payload,
				    .set = tally_set_first(n->workers),
			    },
		    });
}

static void worker_take(struct network *n, int rank, const struct packet *p)
{
	const struct tally_set everyone = tally_set_first(n->workers);
	const struct tally_set me = only(rank);
	int c = (int)(p->offer.seq - n->first_seq);
	const struct chunk *chunk = &n->chunk[c];

	if (p->kind == TALLY_ASK) {
		worker_answer(n, rank, c);
		return;
	}
	if (!tally_set_is_equal(&p->offer.set, &everyone))
		n->wrong = "a result of some";
	if (p->offer.recipient != chunk->recipient)
		n->wrong = "a result for another recipient";
	if (tally_gets_payload(chunk->recipient, &me) && p->offer.blocks != chunk->any_payload)
		n->wrong = "a result without its payload";
	if (p->offer.blocks && memcmp(&p->words, &chunk->sum, sizeof(p->words)) != 0)
		n->wrong = "a wrong sum";
	n->holding[rank][c].finished = true;
}

/* Sends one of the chunks that it may. What lies two windows back is then out of reach. */
static void worker_send(struct network *n, int rank)
{
	int may[CHUNKS], count = 0, c;

	for (c = 0; c < CHUNKS; c++)
		if (!n->holding[rank][c].finished &&
		    (c < n->window || n->holding[rank][c - n->window].finished))
			may[count++] = c;
	if (!count)
		return;
	c = may[random_below(&n->random, count)];
	if (c >= 2 * n->window)
		n->holding[rank][c - 2 * n->window].forgotten = true;
	worker_contribute(n, rank, c, n->holding[rank][c].attempts++);
}

/* --- a run */

static void chunk_make(struct network *n, struct chunk *chunk)
{
	int kind = random_below(&n->random, 4), owner = random_below(&n->random, n->workers);

	chunk->recipient = chance(&n->random, 500) ? TALLY_EVERYONE
						   : random_below(&n->random, n->workers);
	for (int rank = 0; rank < n->workers; rank++) {
		chunk->has_payload[rank] = kind == 0 ? false : kind == 1 ? rank == owner : true;
		if (!chunk->has_payload[rank])
			continue;
		chunk->any_payload = true;
		chunk->of[rank].number = random_next(&n->random);
		chunk->of[rank].counts = 1ULL << 8 * rank;
		words_move(&chunk->sum.number, &chunk->of[rank].number, 2, TALLY_WORDS_ADD);
	}
}

static void network_make(struct network *n, uint64_t seed)
{
	static const uint32_t first_seqs[] = { 0, 0x7ffffffc, 0xfffffffc };

	*n = (struct network){ .random = seed };
	n->workers = 3 + random_below(&n->random, WORKERS_MAX - 2);
	n->window = 1 << random_below(&n->random, 3);
	n->first_seq = first_seqs[random_below(&n->random, 3)];
	n->detour_permille = chance(&n->random, 500) ? 0 : 50;
	n->frames_grow = chance(&n->random, 500);
	for (int c = 0; c < CHUNKS; c++)
		chunk_make(n, &n->chunk[c]);
}

static bool all_have_finished(const struct network *n)
{
	for (int rank = 0; rank < n->workers; rank++)
		for (int c = 0; c < CHUNKS; c++)
			if (!n->holding[rank][c].finished)
				return false;
	return true;
}

static void network_step(struct network *n)
{
	if (n->restarts < RESTARTS_MAX && chance(&n->random, 4)) {
		n->restarts++;
		n->node[random_below(&n->random, NODES)] = (struct node){ 0 };
	}
	if (n->in_flight && chance(&n->random, 800)) {
		struct packet p = net_take(n);

		if (p.to >= ROOT)
			node_take(n, p.to, p);
		else
			worker_take(n, p.to, &p);
	} else {
		worker_send(n, random_below(&n->random, n->workers));
	}
}

static const char *run_network(uint64_t seed)
{
	static struct network n;

	network_make(&n, seed);
	for (int step = 0; step < STEPS_MAX && !n.wrong; step++) {
		network_step(&n);
		if (all_have_finished(&n))
			return n.wrong;
	}
	return n.wrong ? n.wrong : "stuck";
}

static void every_chunk_is_finished_by_all_and_never_wrong(void **state)
{
	run_seeds(NETWORK_SEEDS, run_network);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_chunk_is_finished_by_all_and_never_wrong),
	};

	return cmocka_run_group_tests_name("node", tests, NULL, NULL);
}
