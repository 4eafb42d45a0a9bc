// SPDX-License-Identifier: GPL-2.0-only
/*
 * A window without a network: the test says what time it is, looks at what is sent and plays
 * the node. The last test is a model: whatever a network loses, every chunk is taken once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <tally/check.h>

#include "client/congestion.h"
#include "client/window.h"

enum {
	JOB = 7,
	EPOCH = 3,
	BOOT = 5,
	RANK = 65,  /* not in the first word of a set */
	WORKERS = 130, /* so that the headers are large */
	PAYLOAD = 2 * TALLY_BLOCK_BYTES,
	WORDS = PAYLOAD / 8,
	SENT_MAX = 128,
	US = 1000,
	MS = 1000 * US,
	START = 400 * MS,
	FIRST = WINDOW_RTO_FIRST_NS,
	HEADER = sizeof(struct tally_header) + sizeof(struct tally_more),
};

static const uint64_t nonce = 0x1337c0de;
static const uint64_t call = 0xca11; /* the shape of all calls here */
static const struct tally_key own_key = { { 1, 2 } }, other_key = { { 1, 3 } };
static bool follows; /* the network: workers that begin from now on */
static const struct tally_key *key; /* with which workers begin, and tags are made; NULL: none */

struct message {
	struct tally_header h;
	struct tally_more more;
	uint64_t word[WORDS + TALLY_BLOCK_WORDS]; /* one block more than fits */
};

struct sent {
	struct message message;
	size_t length;
	bool fresh;
};

struct worker {
	bool in_run; /* what the sender says of all that is fresh */
	struct window *window;
	size_t count;
	struct sent sent[SENT_MAX]; /* by the last output() */
};

/* What the contributions of a kind of call look like at RANK. */
struct shape {
	uint16_t recipient;
	uint8_t lane, blocks, sum_blocks;
};

static const struct shape allreduce = { TALLY_EVERYONE, TALLY_LANE_INT64, 2, 2 };
static const struct shape floats = { TALLY_EVERYONE, TALLY_LANE_FLOAT32, 2, 2 };
static const struct shape one_block = { TALLY_EVERYONE, TALLY_LANE_INT64, 1, 1 };
static const struct shape reduce_to_me = { RANK, TALLY_LANE_INT64, 2, 2 };
static const struct shape reduce_to_other = { 0, TALLY_LANE_INT64, 2, 2 };
static const struct shape broadcast = { TALLY_EVERYONE, TALLY_LANE_BYTES, 0, 2 };
static const struct shape copy_to_other = { 0, TALLY_LANE_BYTES, 0, 2 };
static const struct shape barrier = { TALLY_EVERYONE, TALLY_LANE_NONE, 0, 0 };

static struct worker *worker_new(uint16_t window)
{
	struct window_options o = {
		.job = JOB,
		.epoch = EPOCH,
		.rank = RANK,
		.workers = WORKERS,
		.window = window,
		.payload_bytes = PAYLOAD,
		.nonce = nonce,
		.follows = follows,
		.keyed = key,
		.key = key ? *key : (struct tally_key){ { 0 } },
	};
	struct worker *k = calloc(1, sizeof(*k));

	assert_int_equal(window_new(&o, &k->window), 0);
	return k;
}

static void worker_free(struct worker *k)
{
	window_free(k->window);
	free(k);
}

static const struct tally_stats *stats(const struct worker *k) { return window_stats(k->window); }

static uint64_t check_of(const uint64_t *word, size_t words)
{
	uint64_t check = 0;

	for (size_t i = 0; i < words; i++)
		check += (2 * i + 1) * word[i];
	return check;
}

/* Which chunk of which call it is: here, each is one of its own. */
static uint64_t place_of(uint32_t seq) { return seq * 7ull; }

static uint64_t identity_of(uint32_t seq)
{
	return tally_identity(tally_run_identity(nonce, JOB, EPOCH), seq, call, place_of(seq));
}

static uint64_t weight_of_all(uint32_t workers)
{
	uint64_t weights = 0;

	for (uint32_t rank = 0; rank < workers; rank++)
		weights += tally_weight(rank);
	return weights;
}

static uint64_t tag_of(const struct message *m)
{
	struct tally_set set = tally_header_set(&m->h);

	return key ? tally_keyed_tag(&m->h, &set, key) : tally_tag(&m->h, &set);
}

static void post(struct worker *k, uint32_t seq, const struct shape *s)
{
	struct tally_header *h = window_compose(k->window, seq);
	uint64_t *word = tally_payload(h);

	h->call = tally_le64(call);
	h->recipient = tally_le16(s->recipient);
	h->lane = s->lane;
	h->blocks = s->blocks;
	for (size_t i = 0; i < (size_t)s->blocks * TALLY_BLOCK_WORDS; i++)
		word[i] = seq * 1000ull + i + 1;
	window_post(k->window, seq, place_of(seq), 0, s->sum_blocks);
}

static size_t output_of(struct worker *k, uint64_t now_ns, size_t max)
{
	struct datagram d[SENT_MAX];

	k->count = window_output(k->window, now_ns, d, max);
	assert_true(k->count <= max);
	for (size_t i = 0; i < k->count; i++) {
		struct sent *s = &k->sent[i];

		assert_true(d[i].length <= HEADER + PAYLOAD);
		memset(&s->message, 0, sizeof(s->message));
		memcpy(&s->message, d[i].bytes, d[i].length);
		s->length = d[i].length;
		s->fresh = d[i].fresh;
		if (d[i].fresh)
			*d[i].in_run = k->in_run;
	}
	return k->count;
}

static size_t output(struct worker *k, uint64_t now_ns) { return output_of(k, now_ns, SENT_MAX); }

static uint32_t seq_sent(const struct worker *k, size_t i)
{
	return tally_le32_get(k->sent[i].message.h.seq);
}

/* Exactly one datagram goes out, for this chunk, whole, with the right check and tag. */
static const struct sent *one_is_sent(struct worker *k, uint64_t now_ns, uint32_t seq)
{
	const struct sent *s = &k->sent[0];
	uint64_t weight;

	assert_int_equal(output(k, now_ns), 1);
	assert_int_equal(seq_sent(k, 0), seq);
	assert_int_equal(s->length, HEADER + s->message.h.blocks * 64);
	weight = s->message.h.kind == TALLY_REPAIR ? weight_of_all(WORKERS) : tally_weight(RANK);
	assert_true(tally_le64_get(s->message.h.check) ==
		    check_of(s->message.word, s->message.h.blocks * TALLY_BLOCK_WORDS) +
			    identity_of(seq) * weight);
	assert_true(tally_le64_get(s->message.h.tag) == tag_of(&s->message));
	return s;
}

static void nothing_is_sent(struct worker *k, uint64_t now_ns)
{
	assert_int_equal(output(k, now_ns), 0);
}

static struct message said(enum tally_kind kind, uint32_t seq, const struct tally_set *set)
{
	struct message m = { 0 };

	m.h = (struct tally_header){
		.magic = TALLY_MAGIC,
		.version = TALLY_VERSION,
		.kind = kind,
		.flags = TALLY_LARGE,
		.job = tally_le32(JOB),
		.epoch = tally_le16(EPOCH),
		.boot = tally_le16(BOOT),
		.seq = tally_le32(seq),
		.sender = tally_le16(TALLY_FROM_NODE),
	};
	tally_header_set_put(&m.h, set);
	return m;
}

static void fill_payload(struct message *m, uint8_t blocks)
{
	m->h.blocks = blocks;
	for (size_t i = 0; i < (size_t)blocks * TALLY_BLOCK_WORDS; i++)
		m->word[i] = 0x0123456789abcdef * (i + 1);
	m->h.check = tally_le64(check_of(m->word, (size_t)blocks * TALLY_BLOCK_WORDS) +
				identity_of(tally_le32_get(m->h.seq)) * weight_of_all(WORKERS));
}

/* As RANK gets it from a node. */
static struct message result_of(uint32_t seq, const struct shape *s)
{
	struct tally_set everyone = tally_set_first(WORKERS);
	struct message m = said(TALLY_RESULT, seq, &everyone);

	m.h.recipient = tally_le16(s->recipient);
	m.h.lane = s->lane;
	m.h.call = tally_le64(call);
	if (s->recipient == TALLY_EVERYONE || s->recipient == RANK)
		fill_payload(&m, s->sum_blocks);
	return m;
}

static size_t length_of(const struct message *m)
{
	return HEADER + m->h.blocks * (size_t)TALLY_BLOCK_BYTES;
}

/* As it is. True: taken as a result, and as this chunk's. */
static bool hear_untagged(struct worker *k, const struct message *m, uint64_t now_ns)
{
	uint32_t seq = ~tally_le32_get(m->h.seq);
	bool taken = window_input(k->window, m, length_of(m), now_ns, &seq);

	assert_int_equal(seq, taken ? tally_le32_get(m->h.seq) : ~tally_le32_get(m->h.seq));
	return taken;
}

/* As a node sends it: with the right tag. */
static bool hear(struct worker *k, const struct message *m, uint64_t now_ns)
{
	struct message tagged = *m;

	tagged.h.tag = tally_le64(tag_of(m));
	return hear_untagged(k, &tagged, now_ns);
}

static void result_is_taken(struct worker *k, uint32_t seq, const struct shape *s, uint64_t now_ns)
{
	struct message m = result_of(seq, s);

	assert_true(hear(k, &m, now_ns));
}

/* An ask from a root that has all ranks, or all but one. */
static void ask_without(struct worker *k, uint32_t seq, int missing, uint64_t now_ns)
{
	struct tally_set there = tally_set_first(WORKERS);
	struct message m;

	if (missing >= 0)
		there.word[missing / 64] &= ~(1ull << missing % 64);
	m = said(TALLY_ASK, seq, &there);
	assert_false(hear(k, &m, now_ns));
}

static void ask_with_everyone(struct worker *k, uint32_t seq, uint64_t now_ns)
{
	ask_without(k, seq, -1, now_ns);
}

static void post_and_send(struct worker *k, uint32_t seq, const struct shape *s, uint64_t now_ns)
{
	post(k, seq, s);
	assert_true(one_is_sent(k, now_ns, seq)->fresh);
}

/* A whole chunk, sent once, that took `rtt_ns`. */
static void finish(struct worker *k, uint32_t seq, const struct shape *s, uint64_t now_ns,
		   uint64_t rtt_ns)
{
	post_and_send(k, seq, s, now_ns);
	result_is_taken(k, seq, s, now_ns + rtt_ns);
}

/* What is sent as soon as anything is: this chunk, alone. Says when. */
static uint64_t goes_again(struct worker *k, uint32_t seq)
{
	uint64_t now = 0;

	for (int looks = 0; looks < 9; looks++) {
		now = window_wakeup(k->window);
		assert_true(now < UINT64_MAX);
		nothing_is_sent(k, now - 1);
		if (!output(k, now))
			continue;
		assert_int_equal(k->count, 1);
		assert_int_equal(seq_sent(k, 0), seq);
		return now;
	}
	fail_msg("%s", "nothing goes again");
	return now;
}

/* The result of `seq`, which completed by a contribution that asked about an older chunk. */
static void news_come(struct worker *k, uint32_t seq, uint16_t about, int missing, uint64_t now_ns)
{
	struct tally_set there = tally_set_first(WORKERS);
	struct message m = result_of(seq, &allreduce);

	if (missing >= 0)
		there.word[missing / 64] &= ~(1ull << missing % 64);
	tally_header_set_put(&m.h, &there);
	m.h.about = tally_le16(about);
	assert_true(hear(k, &m, now_ns));
}

/* --- what is sent, and when */

static void a_contribution_says_what_it_is_and_whose(void **state)
{
	struct worker *k = worker_new(4);
	struct tally_set me = { { 0, 1 << 1 } }, set;
	struct message m;

	post(k, 9, &reduce_to_other);
	m = one_is_sent(k, START, 9)->message;
	set = tally_header_set(&m.h);
	assert_int_equal(m.h.magic, TALLY_MAGIC);
	assert_int_equal(m.h.version, TALLY_VERSION);
	assert_int_equal(m.h.kind, TALLY_CONTRIBUTION);
	assert_int_equal(m.h.flags, TALLY_LARGE);
	assert_int_equal(tally_le16_get(m.h.sender), RANK);
	assert_int_equal(tally_le32_get(m.h.job), JOB);
	assert_int_equal(tally_le16_get(m.h.epoch), EPOCH);
	assert_int_equal(tally_le16_get(m.h.boot), 0);
	assert_int_equal(tally_le16_get(m.h.recipient), 0);
	assert_int_equal(m.h.blocks, 2);
	assert_true(tally_set_is_equal(&set, &me));
	assert_int_equal(m.word[WORDS - 1], 9000 + WORDS);
	worker_free(k);
}

static void a_contribution_sent_again_brings_zeros_as_long_as_the_sum(void **state)
{
	struct worker *k = worker_new(1);
	struct message zeros = { 0 };
	const struct sent *s;

	finish(k, 0, &allreduce, START, MS); /* leaves words behind in the frame */
	finish(k, 1, &barrier, START, MS);
	post(k, 2, &broadcast);
	assert_int_equal(one_is_sent(k, 2 * START, 2)->length, HEADER);
	s = one_is_sent(k, window_wakeup(k->window), 2);
	assert_int_equal(s->message.h.blocks, 2);
	assert_memory_equal(s->message.word, zeros.word, PAYLOAD);
	result_is_taken(k, 2, &broadcast, 3 * START - MS);

	post_and_send(k, 3, &barrier, 3 * START);
	assert_int_equal(one_is_sent(k, window_wakeup(k->window), 3)->length, HEADER);
	worker_free(k);
}

static void when_nothing_flies_there_is_nothing_to_wake_for(void **state)
{
	struct worker *k = worker_new(4);

	finish(k, 0, &allreduce, START, MS);
	nothing_is_sent(k, window_wakeup(k->window));
	assert_true(window_wakeup(k->window) == UINT64_MAX);
	nothing_is_sent(k, 1000ull * START);
	window_free(NULL);
	worker_free(k);
}

static void silence_is_probed_with_the_newest_chunk_and_then_with_the_oldest(void **state)
{
	struct worker *k = worker_new(8);
	uint64_t now;

	for (uint32_t seq = 0; seq < 8; seq++)
		post(k, seq, &allreduce);
	assert_int_equal(output(k, START), 8);
	assert_int_equal(k->sent[0].message.h.flags & TALLY_FLUSH, 0);
	now = goes_again(k, 7);
	assert_true(now >= START + FIRST);
	assert_int_equal(k->sent[0].message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	for (int i = 0; i < 600; i++) /* more than a byte can count */
		goes_again(k, 0);
	assert_int_equal(stats(k)->retransmitted, 601);
	assert_int_equal(stats(k)->flushed, 601);
	worker_free(k);
}

static void a_probe_of_another_rank_postpones_the_own(void **state)
{
	struct worker *k = worker_new(4), *alone = worker_new(4);
	uint64_t now;

	post_and_send(k, 0, &allreduce, START);
	post_and_send(alone, 0, &allreduce, START);
	now = goes_again(alone, 0);
	ask_without(k, 0, 128, now - 1);
	nothing_is_sent(k, now);
	assert_true(goes_again(k, 0) > now + FIRST);
	worker_free(k);
	worker_free(alone);
}

/* --- what was overtaken */

/* All of a burst but its first chunk has come back, and there is more to send. */
static uint64_t first_is_overtaken(struct worker *k)
{
	uint64_t now = START + MS + RECOVERY_REORDER_MIN_NS;

	for (uint32_t seq = 0; seq < 4; seq++)
		post(k, seq, &allreduce);
	assert_int_equal(output(k, START), 4);
	for (uint32_t seq = 1; seq < 4; seq++)
		result_is_taken(k, seq, &allreduce, START + MS);
	nothing_is_sent(k, now - 1);
	post(k, 5, &allreduce);
	assert_int_equal(tally_le16_get(one_is_sent(k, now - 1, 5)->message.h.about), 0);
	nothing_is_sent(k, now);
	post(k, 6, &allreduce);
	assert_int_equal(tally_le16_get(one_is_sent(k, now, 6)->message.h.about), 6);
	post(k, 7, &allreduce); /* one asks, the next does not */
	assert_int_equal(tally_le16_get(one_is_sent(k, now, 7)->message.h.about), 0);
	return now;
}

static void news_that_a_contribution_is_lost_make_it_go_again_at_once(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t now = first_is_overtaken(k) + MS;

	news_come(k, 6, 6, RANK, now);
	assert_int_equal(one_is_sent(k, now, 0)->message.h.flags, TALLY_LARGE);
	news_come(k, 7, 7, RANK, now); /* asked before it went again */
	nothing_is_sent(k, now);
	worker_free(k);
}

static void news_that_others_are_missing_make_it_wait(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t now = first_is_overtaken(k) + MS;

	news_come(k, 6, 6, 0, now);
	result_is_taken(k, 5, &allreduce, now);
	result_is_taken(k, 7, &allreduce, now);
	nothing_is_sent(k, now + RECOVERY_RTO_MIN_NS);
	assert_true(goes_again(k, 0) > now + RECOVERY_RTO_MIN_NS);
	assert_int_equal(k->sent[0].message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	worker_free(k);
}

static void news_that_a_copy_is_lost_make_it_go_again_to_be_answered(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t now = first_is_overtaken(k) + MS;

	news_come(k, 6, 6, -1, now);
	nothing_is_sent(k, now + RECOVERY_REORDER_MIN_NS - 1);
	assert_int_equal(one_is_sent(k, now + RECOVERY_REORDER_MIN_NS, 0)->message.h.flags,
			 TALLY_LARGE);
	worker_free(k);
}

static void where_nothing_leaves_that_could_ask_ranks_probe_by_turns(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t now = START + MS + RECOVERY_REORDER_MIN_NS;

	for (uint32_t seq = 0; seq < 4; seq++)
		post(k, seq, &allreduce);
	output(k, START);
	for (uint32_t seq = 1; seq < 4; seq++)
		result_is_taken(k, seq, &allreduce, START + MS);
	/* RANK comes after RANK others, by half a round trip each, but not too late. */
	assert_true(goes_again(k, 0) >= now + RECOVERY_TURNS_MAX_NS);
	assert_int_equal(k->sent[0].message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	worker_free(k);
}

/* An inner node's slot may have been emptied: what would wait there goes to the root. */
static void what_the_group_was_asked_for_goes_with_flush(void **state)
{
	struct worker *k = worker_new(4);

	post(k, 0, &allreduce);
	ask_without(k, 0, RANK, START);
	assert_int_equal(one_is_sent(k, START, 0)->message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	ask_without(k, 0, RANK, START + MS);
	assert_int_equal(one_is_sent(k, START + MS, 0)->message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	worker_free(k);
}

static void once_the_node_had_no_room_zeros_go_along_at_once(void **state)
{
	struct worker *k = worker_new(4);

	post_and_send(k, 0, &broadcast, START);
	post(k, 1, &broadcast);
	assert_int_equal(one_is_sent(k, START, 1)->message.h.blocks, 0);
	ask_with_everyone(k, 0, START + 1);
	one_is_sent(k, START + 1, 0);
	post(k, 2, &broadcast);
	assert_int_equal(one_is_sent(k, START + 1, 2)->message.h.blocks, 2);
	worker_free(k);
}

/*
 * Sends `seq`, and `by_ns` later the next one, whose result comes after a millisecond. Is `seq`
 * sent again when the window wants to look next? That is then *now_ns.
 */
/* --- round trips */

static void runs_are(const struct worker *k, uint64_t chunks, uint64_t first_tries)
{
	assert_int_equal(window_runs(k->window)->chunks, chunks);
	assert_int_equal(window_runs(k->window)->first_tries, first_tries);
}

static void what_was_sent_in_runs_is_told_from_the_rest(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t again;

	finish(k, 0, &allreduce, START, MS);
	runs_are(k, 0, 0);
	k->in_run = true;
	finish(k, 1, &allreduce, 2ull * START, MS);
	runs_are(k, 1, 1);
	/* This one is sent again; and this time alone, whatever it was before. */
	post_and_send(k, 2, &allreduce, 3ull * START);
	k->in_run = false;
	again = window_wakeup(k->window);
	one_is_sent(k, again, 2);
	result_is_taken(k, 2, &allreduce, again + MS);
	runs_are(k, 2, 1);
	finish(k, 3, &allreduce, 4ull * START, MS);
	runs_are(k, 2, 1);
	assert_int_equal(stats(k)->chunks, 4);
	worker_free(k);
}

/* --- what is taken */

static struct worker *worker_that_follows(uint16_t window)
{
	struct worker *k;

	follows = true;
	k = worker_new(window);
	follows = false;
	return k;
}

/* Ranks that fill small windows with different chunks would wait for each other. */
static void the_oldest_chunk_leaves_first_and_at_once_behind_younger_ones(void **state)
{
	struct worker *k = worker_that_follows(16);

	for (uint32_t seq = 15; seq; seq--)
		post(k, seq, &allreduce);
	assert_int_equal(output(k, START), CONGESTION_FIRST);
	for (uint32_t i = 0; i < CONGESTION_FIRST; i++)
		assert_int_equal(seq_sent(k, i), 1 + i);
	nothing_is_sent(k, START);
	post_and_send(k, 0, &allreduce, START);
	worker_free(k);
}

static uint8_t flags_of_next(struct worker *k, uint32_t seq, uint64_t now_ns)
{
	post_and_send(k, seq, &allreduce, now_ns);
	return k->sent[0].message.h.flags;
}

static void mark(struct worker *k, const struct message *m)
{
	struct message tagged = *m;

	tagged.h.tag = tally_le64(tag_of(m));
	window_marked(k->window, &tagged, length_of(&tagged));
}

/* Who can make no message of the run cannot make its ranks slow either. */
static void a_mark_of_what_is_no_message_of_the_run_is_none(void **state)
{
	struct worker *k = worker_that_follows(8);
	struct message m = result_of(0, &allreduce);

	assert_int_equal(flags_of_next(k, 0, START), TALLY_LARGE);
	m.h.tag = tally_le64(tag_of(&m));
	for (size_t bit = 0; bit < 8 * sizeof(m.h); bit++) {
		struct message spoilt = m;

		((uint8_t *)&spoilt)[bit / 8] ^= 1 << bit % 8;
		window_marked(k->window, &spoilt, length_of(&m));
	}
	for (size_t length = 0; length < length_of(&m); length++)
		window_marked(k->window, &m, length);
	assert_int_equal(flags_of_next(k, 1, START), TALLY_LARGE);
	window_marked(k->window, &m, length_of(&m));
	assert_int_equal(flags_of_next(k, 2, START), TALLY_LARGE | TALLY_MARKED);
	worker_free(k);
}

/* What goes again may have a result already, which all but this rank know without a mark. */
static void a_mark_goes_on_with_what_leaves_for_the_first_time(void **state)
{
	struct worker *k = worker_that_follows(8);
	const struct message m = result_of(0, &allreduce);

	assert_int_equal(flags_of_next(k, 0, START), TALLY_LARGE);
	mark(k, &m);
	goes_again(k, 0);
	assert_int_equal(k->sent[0].message.h.flags & TALLY_MARKED, 0);
	assert_int_equal(flags_of_next(k, 1, START + MS), TALLY_LARGE | TALLY_MARKED);
	assert_int_equal(flags_of_next(k, 2, START + MS), TALLY_LARGE);
	worker_free(k);
}

static void a_marked_result_cuts_what_may_fly(void **state)
{
	struct worker *k = worker_that_follows(16);
	struct message m = result_of(0, &allreduce);

	m.h.flags |= TALLY_MARKED;
	assert_int_equal(flags_of_next(k, 0, START), TALLY_LARGE);
	assert_int_equal(window_room(k->window), CONGESTION_FIRST);
	assert_true(hear(k, &m, START + MS));
	assert_int_equal(window_room(k->window), CONGESTION_FIRST / 2);
	assert_int_equal(stats(k)->marked, 1);
	assert_int_equal(stats(k)->cuts, 1);
	worker_free(k);
}

static void a_result_is_taken_once(void **state)
{
	struct worker *k = worker_new(4);
	struct message m = result_of(0, &allreduce);

	assert_false(hear(k, &m, START)); /* nothing composed */
	post(k, 0, &allreduce);
	assert_false(hear(k, &m, START)); /* nothing sent */
	one_is_sent(k, START, 0);
	assert_true(hear(k, &m, START + MS));
	assert_false(hear(k, &m, START + MS));
	assert_int_equal(stats(k)->chunks, 1);
	assert_int_equal(stats(k)->ignored, 3);
	worker_free(k);
}

enum effect {
	IGNORED,
	CORRUPT,
};

/* What one flipped bit does, by the byte it is in. The tag is of all the header, but of `blocks`.
 */
static enum effect effect_of(size_t byte) { return byte < HEADER ? IGNORED : CORRUPT; }

static void every_bit_of_a_result_must_be_right(void **state)
{
	for (size_t bit = 0; bit < 8 * (HEADER + PAYLOAD); bit++) {
		struct worker *k = worker_new(4);
		struct message m = result_of(6, &allreduce), spoilt;
		enum effect effect = effect_of(bit / 8);
		uint32_t seq;

		post_and_send(k, 6, &allreduce, START);
		m.h.tag = tally_le64(tag_of(&m));
		spoilt = m;
		((uint8_t *)&spoilt)[bit / 8] ^= 1 << bit % 8;
		assert_false(window_input(k->window, &spoilt, length_of(&m), START + MS, &seq));
		assert_int_equal(stats(k)->ignored, effect == IGNORED);
		assert_int_equal(stats(k)->corrupt, effect == CORRUPT);
		assert_int_equal(window_news(k->window)->other_version, 0);
		/* What was not taken did no harm. */
		assert_true(hear(k, &m, START + 2 * MS));
		assert_int_equal(stats(k)->chunks, 1);
		assert_int_equal(stats(k)->node_reloads, 0);
		worker_free(k);
	}
}

static void a_result_of_another_length_is_not_taken(void **state)
{
	struct worker *k = worker_new(4);
	struct message m = result_of(0, &one_block);
	size_t ignored = 0;
	uint32_t seq;

	post_and_send(k, 0, &one_block, START);
	for (size_t length = 0; length <= sizeof(m); length++) {
		/* As long as said, so that a look behind the end is a fault. */
		uint8_t *bytes = malloc(length + 1);

		memcpy(bytes, &m, length);
		if (length != length_of(&m)) {
			assert_false(window_input(k->window, bytes, length, START, &seq));
			assert_int_equal(stats(k)->ignored, ++ignored);
		}
		free(bytes);
	}
	assert_int_equal(stats(k)->corrupt, 0);
	assert_true(hear(k, &m, START));
	worker_free(k);
}

/* A result that this rank gets must be as long as the sum, or call_take() reads past its end. */
static void a_result_must_be_as_long_as_the_sum(void **state)
{
	static const struct shape *const shape[] = { &allreduce, &reduce_to_me, &broadcast };

	for (int i = 0; i < 3; i++) {
		for (uint8_t blocks = 0; blocks <= 3; blocks++) {
			struct worker *k = worker_new(4);
			struct message m = result_of(0, shape[i]);

			fill_payload(&m, blocks);
			post_and_send(k, 0, shape[i], START);
			assert_int_equal(hear(k, &m, START + MS), blocks == 2);
			assert_int_equal(stats(k)->ignored, blocks != 2);
			worker_free(k);
		}
	}
}

static void who_is_not_the_recipient_takes_word_without_payload(void **state)
{
	static const struct shape *const shape[] = { &reduce_to_other, &copy_to_other, &barrier,
						     &reduce_to_me, &broadcast };
	struct worker *k = worker_new(8);

	for (uint32_t i = 0; i < 5; i++)
		finish(k, i, shape[i], START, MS);
	assert_int_equal(stats(k)->chunks, 5);
	worker_free(k);
}

static void other_kinds_of_messages_are_no_results(void **state)
{
	struct worker *k = worker_new(4);
	struct message m = result_of(0, &allreduce);

	post_and_send(k, 0, &allreduce, START);
	m.h.kind = TALLY_REPAIR;
	assert_false(hear(k, &m, START));
	m.h.kind = TALLY_CONTRIBUTION;
	assert_false(hear(k, &m, START));
	nothing_is_sent(k, START);
	worker_free(k);
}

static void only_our_own_job_counts_as_heard(void **state)
{
	struct worker *k = worker_new(4);
	struct tally_set nobody = { { 0 } };
	struct message m = said(TALLY_ASK, 77, &nobody);

	assert_int_equal(window_news(k->window)->heard_ns, 0);
	m.h.job = tally_le32(JOB + 1);
	hear(k, &m, START);
	m.h.job = tally_le32(JOB);
	m.h.epoch = tally_le16(EPOCH + 1);
	hear(k, &m, START);
	m.h.version = TALLY_VERSION + 1;
	hear(k, &m, START);
	assert_int_equal(window_news(k->window)->heard_ns, 0);
	assert_int_equal(window_news(k->window)->other_version, TALLY_VERSION + 1);
	m = said(TALLY_ASK, 77, &nobody);
	hear(k, &m, START + 1);
	assert_int_equal(window_news(k->window)->heard_ns, START + 1);
	assert_int_equal(window_news(k->window)->asked_ns, 0); /* not for what we wait for */
	worker_free(k);
}

static void changes_of_the_boot_id_are_counted(void **state)
{
	static const uint16_t boot[] = { BOOT, BOOT, BOOT + 1, BOOT };
	static const uint64_t reloads[] = { 0, 0, 1, 2 };
	struct worker *k = worker_new(4);

	for (uint32_t seq = 0; seq < 4; seq++) {
		struct message m = result_of(seq, &allreduce);

		post_and_send(k, seq, &allreduce, START + seq);
		m.h.boot = tally_le16(99);
		m.word[0]++; /* and what is not taken does not count */
		assert_false(hear(k, &m, START + seq));
		m.word[0]--;
		m.h.boot = tally_le16(boot[seq]);
		assert_true(hear(k, &m, START + seq));
		assert_int_equal(stats(k)->node_reloads, reloads[seq]);
	}
	worker_free(k);
}

/* --- sums that are wrong */

static struct message wrong_result_of(uint32_t seq, uint8_t edition)
{
	struct message m = result_of(seq, &allreduce);

	m.word[3] ^= 1;
	m.h.edition = edition;
	return m;
}

/* The copy may have been spoilt on its way: only who gets two of them rejects the sum. */
static void a_wrong_sum_is_asked_for_once_more_and_then_rejected(void **state)
{
	struct worker *k = worker_new(4);
	struct message m = wrong_result_of(0, 4);
	const struct sent *s;

	post_and_send(k, 0, &allreduce, START);
	assert_false(hear(k, &m, START + 1));
	assert_true(window_wakeup(k->window) <= START + 1);
	s = one_is_sent(k, START + 1, 0);
	assert_int_equal(s->message.h.flags, TALLY_LARGE);
	assert_int_equal(s->message.h.edition, 0);
	nothing_is_sent(k, START + 1);
	for (uint8_t edition = 4; edition < 7; edition++) {
		uint64_t now = START + edition * MS;

		m = wrong_result_of(0, edition);
		assert_false(hear(k, &m, now));
		s = one_is_sent(k, now, 0);
		assert_int_equal(s->message.h.kind, TALLY_CONTRIBUTION);
		assert_int_equal(s->message.h.flags, TALLY_REJECT | TALLY_FLUSH | TALLY_LARGE);
		assert_int_equal(s->message.h.edition, edition);
	}
	assert_int_equal(stats(k)->corrupt, 4);
	assert_int_equal(stats(k)->retransmitted, 4);

	m = result_of(0, &allreduce);
	m.h.edition = 7;
	assert_true(hear(k, &m, START + 10 * MS));
	ask_with_everyone(k, 0, START + 200 * MS);
	s = one_is_sent(k, START + 200 * MS, 0);
	assert_int_equal(s->message.h.kind, TALLY_REPAIR);
	assert_int_equal(s->message.h.flags, TALLY_LARGE);
	worker_free(k);
}

/* No values have such a scale: what would be read with it are zeros. Integers have none. */
static void a_scale_that_cannot_be_is_a_wrong_sum(void **state)
{
	static const struct {
		const struct shape *shape;
		uint8_t bad[4], good[2];
	} lanes[] = { { &floats, { 1, 26, 97, 255 }, { 27, 96 } },
		      { &allreduce, { 1, 27, 96, 255 }, { 0, 0 } },
		      { &barrier, { 1, 27, 96, 255 }, { 0, 0 } } };

	for (size_t turn = 0; turn < 2 * sizeof(lanes) / sizeof(*lanes); turn++) {
		const struct shape *shape = lanes[turn / 2].shape;
		struct worker *k = worker_new(4);
		struct message m = result_of(0, shape);
		uint8_t *scale = turn % 2 ? &m.h.scale_ahead : &m.h.scale;

		post_and_send(k, 0, shape, START);
		for (size_t i = 0; i < sizeof(lanes->bad); i++) {
			*scale = lanes[turn / 2].bad[i];
			assert_false(hear(k, &m, START));
			assert_int_equal(stats(k)->corrupt, i + 1);
		}
		*scale = lanes[turn / 2].good[turn % 2];
		assert_true(hear(k, &m, START));
		worker_free(k);
	}
}

/* As on a tree, or where many ranks flush: a storm must not answer a storm. */
static void copies_of_one_wrong_sum_are_rejected_once_in_half_an_rtt(void **state)
{
	struct message m = wrong_result_of(1, 0);
	struct worker *k = worker_new(4);
	size_t sent = 0;

	finish(k, 0, &allreduce, START, 2 * MS);
	post_and_send(k, 1, &allreduce, START + 2 * MS);
	for (uint64_t now = START + 4 * MS; now < START + 8 * MS; now += MS / 100) {
		assert_false(hear(k, &m, now));
		sent += output(k, now);
	}
	assert_int_equal(stats(k)->corrupt, 400);
	assert_in_range(sent, 2, 5);
	worker_free(k);
}

static void wrong_sums_of_other_chunks_do_not_count(void **state)
{
	struct worker *k = worker_new(4);

	for (uint32_t seq = 0; seq < 4; seq++) {
		struct message m = wrong_result_of(seq, 0);

		post_and_send(k, seq, &allreduce, START);
		assert_false(hear(k, &m, START));
		assert_int_equal(one_is_sent(k, START, seq)->message.h.flags, TALLY_LARGE);
	}
	worker_free(k);
}

static void wrong_again_and_again_is_news(void **state)
{
	struct worker *k = worker_new(4);

	post_and_send(k, 0, &allreduce, START);
	for (int i = 1; i <= WINDOW_WRONG_MAX; i++) {
		struct message m = wrong_result_of(0, i);

		assert_false(window_news(k->window)->spoiled);
		assert_false(hear(k, &m, START + i));
	}
	assert_true(window_news(k->window)->spoiled);
	worker_free(k);
}

/* A result of all zeros whose check is of this identity and these weights. */
static void sum_is_wrong(const struct shape *shape, uint64_t identity, uint64_t weights)
{
	struct worker *k = worker_new(4);
	struct message m = result_of(6, shape);

	post_and_send(k, 6, shape, START);
	memset(m.word, 0, sizeof(m.word));
	m.h.check = tally_le64(identity * weights);
	assert_false(hear(k, &m, START + MS));
	assert_int_equal(stats(k)->corrupt, 1);
	m.h.check = tally_le64(identity_of(6) * weight_of_all(WORKERS));
	assert_true(hear(k, &m, START + MS));
	worker_free(k);
}

/* Right in all that the header says, and the words of the ranks that are missing are 0. */
static void a_sum_of_another_run_chunk_or_call_is_never_taken(void **state)
{
	const uint64_t run = tally_run_identity(nonce, JOB, EPOCH), place = place_of(6);
	const uint64_t other[] = {
		tally_identity(tally_run_identity(nonce + 1, JOB, EPOCH), 6, call, place),
		tally_identity(tally_run_identity(0, JOB, EPOCH), 6, call, place),
		tally_identity(tally_run_identity(nonce, JOB + 1, EPOCH), 6, call, place),
		tally_identity(tally_run_identity(nonce, JOB, EPOCH - 1), 6, call, place),
		tally_identity(run, 7, call, place),
		tally_identity(run, 6, call + 1, place),
		tally_identity(run, 6, call, place + 1),
		0,
	};

	for (int i = 0; i < 8; i++) {
		sum_is_wrong(&allreduce, other[i], weight_of_all(WORKERS));
		sum_is_wrong(&reduce_to_me, other[i], weight_of_all(WORKERS));
		sum_is_wrong(&barrier, other[i], weight_of_all(WORKERS));
	}
}

static void a_sum_that_lacks_or_repeats_a_rank_is_never_taken(void **state)
{
	uint64_t all = weight_of_all(WORKERS);

	for (uint32_t rank = 0; rank < WORKERS; rank++) {
		uint64_t weight = tally_weight(rank);

		sum_is_wrong(&barrier, identity_of(6), all - weight);
		sum_is_wrong(&barrier, identity_of(6), all + weight);
		sum_is_wrong(&barrier, identity_of(6), all + weight - tally_weight(WORKERS));
		for (uint32_t other = 0; other < WORKERS; other += 13)
			if (rank != other)
				sum_is_wrong(&allreduce, identity_of(6),
					     all + weight - tally_weight(other));
	}
	sum_is_wrong(&allreduce, identity_of(6), 0);
	sum_is_wrong(&allreduce, identity_of(6), tally_weight(RANK));
}

/* What all contributions of a chunk have alike, its result has, too. */
static void a_result_of_another_call_lane_or_recipient_is_ignored(void **state)
{
	for (int i = 0; i < 4; i++) {
		struct worker *k = worker_new(4);
		struct message m = result_of(0, &allreduce);

		post_and_send(k, 0, &allreduce, START);
		m.h.call = tally_le64(call ^ (i == 0));
		m.h.lane ^= i == 1;
		m.h.recipient = tally_le16(i == 2 ? RANK : TALLY_EVERYONE);
		assert_int_equal(hear(k, &m, START + MS), i == 3);
		assert_int_equal(stats(k)->ignored, i != 3);
		assert_int_equal(stats(k)->corrupt, 0);
		worker_free(k);
	}
}

/* The tag is right: a node did send it so. */
static void flags_that_no_result_has_are_refused(void **state)
{
	const uint8_t known = TALLY_WIDE | TALLY_WIDE_AHEAD | TALLY_MARKED | TALLY_SPILLED;

	for (int bit = 0; bit < 8; bit++) {
		struct worker *k = worker_new(4);
		struct message m = result_of(0, &allreduce);
		bool taken = known >> bit & 1;

		post_and_send(k, 0, &allreduce, START);
		m.h.flags ^= 1 << bit; /* LARGE: it is not there */
		assert_int_equal(hear(k, &m, START + MS), taken);
		assert_int_equal(window_news(k->window)->heard_ns, taken ? START + MS : 0);
		worker_free(k);
	}
}

/* Its set is that of another chunk; the chunk's own is everyone, as its check says. */
static void a_result_with_news_is_repaired_without_them(void **state)
{
	struct worker *k = worker_new(4);
	struct message m = result_of(0, &allreduce);
	struct tally_set few = { { 5, 0, 1 } }, everyone = tally_set_first(WORKERS), set;
	const struct sent *s;

	post_and_send(k, 0, &allreduce, START);
	m.h.about = tally_le16(3);
	m.h.flags |= TALLY_SPILLED;
	tally_header_set_put(&m.h, &few);
	assert_true(hear(k, &m, START + MS));
	ask_with_everyone(k, 0, START + 50 * MS);
	s = one_is_sent(k, START + 50 * MS, 0);
	set = tally_header_set(&s->message.h);
	assert_int_equal(s->message.h.kind, TALLY_REPAIR);
	assert_int_equal(tally_le16_get(s->message.h.about), 0);
	assert_int_equal(tally_le16_get(s->message.h.boot), 0);
	assert_int_equal(tally_le16_get(s->message.h.sender), RANK);
	assert_int_equal(s->message.h.flags, TALLY_LARGE);
	assert_true(tally_set_is_equal(&set, &everyone));
	worker_free(k);
}

/* --- news that end the run */

static struct message mismatch_of(uint32_t seq, uint64_t other_call, uint16_t other)
{
	struct tally_set callers = { { 1, 0, 1 } };
	struct message m = said(TALLY_MISMATCH, seq, &callers);

	m.h.call = tally_le64(call);
	m.h.check = tally_le64(other_call);
	m.h.sender = tally_le16(other);
	return m;
}

static void a_mismatch_is_news_of_what_this_rank_waits_for(void **state)
{
	const struct window_news *news;
	struct worker *k = worker_new(4);
	struct message m = mismatch_of(0, 0x07e5, 65), later = mismatch_of(1, 1, 2);

	news = window_news(k->window);
	finish(k, 0, &allreduce, START, MS);
	assert_false(hear(k, &m, START)); /* is over */
	m = mismatch_of(1, 0x07e5, 65);
	assert_false(hear(k, &m, START)); /* is not there */
	post(k, 1, &allreduce);
	assert_false(hear(k, &m, START)); /* is not sent */
	one_is_sent(k, START, 1);
	assert_false(hear_untagged(k, &m, START)); /* is not as it was sent */
	assert_false(news->mismatch);
	assert_false(hear(k, &m, START));
	assert_false(hear(k, &later, START)); /* the first one counts */
	assert_true(news->mismatch);
	assert_true(news->call == call);
	assert_true(news->other_call == 0x07e5);
	assert_int_equal(news->other, 65);
	assert_true(news->callers.word[0] == 1 && news->callers.word[2] == 1);
	worker_free(k);
}

static struct message overtaken_of(uint32_t seq, uint32_t by)
{
	struct tally_set nobody = { { 0 } };
	struct message m = said(TALLY_OVERTAKEN, seq, &nobody);

	m.h.check = tally_le64(by);
	return m;
}

static void a_slot_that_is_further_than_this_rank_is_news(void **state)
{
	static const struct {
		uint32_t seq, by;
		bool news;
	} c[] = {
		{ 1, 9, true },	       { 1, 2, true },
		{ 1, 1u << 31, true }, { 1, 1, false },
		{ 1, 0, false },       { 1, (1u << 31) + 1, false },
		{ 0, 8, false },       /* over */ { 2, 10, false }, /* not sent */
		{ 3, 11, false }, /* not there */
	};

	for (int i = 0; i < 9; i++) {
		struct worker *k = worker_new(4);
		struct message m = overtaken_of(c[i].seq, c[i].by);

		finish(k, 0, &allreduce, START, MS);
		post_and_send(k, 1, &allreduce, START);
		post(k, 2, &allreduce);
		assert_false(hear(k, &m, START));
		assert_int_equal(window_news(k->window)->overtaken, c[i].news);
		worker_free(k);
	}
}

/* --- jobs with rank keys */

static int without_key(void **state)
{
	key = NULL;
	return 0;
}

/* Results, asks, mismatches, overtaken, another version: all that a node says, as `key` says. */
static void hear_everything(struct worker *k, uint64_t now_ns)
{
	struct message m = mismatch_of(1, 0x07e5, 65);

	hear(k, &m, now_ns);
	m = overtaken_of(1, 9);
	hear(k, &m, now_ns);
	ask_without(k, 1, RANK, now_ns);
	ask_without(k, 0, 3, now_ns);
	m.h.version = TALLY_VERSION + 1;
	hear(k, &m, now_ns);
	m = result_of(1, &allreduce);
	assert_true(hear(k, &m, now_ns) == (key == &own_key));
}

static void who_has_not_the_rank_key_is_not_heard(void **state)
{
	static const struct tally_key *const forgers[] = { NULL, &other_key };
	struct worker *k;

	key = &own_key;
	k = worker_new(4);
	finish(k, 0, &allreduce, START, MS); /* what is sent has the right tag, too */
	post_and_send(k, 1, &allreduce, START);
	for (size_t i = 0; i < 2; i++) {
		key = forgers[i];
		hear_everything(k, START + 40 * MS);
		assert_int_equal(window_news(k->window)->heard_ns, START + MS);
		assert_int_equal(window_news(k->window)->other_version, 0);
		assert_false(window_news(k->window)->mismatch || window_news(k->window)->overtaken);
		assert_int_equal(stats(k)->ignored, 6 * (i + 1));
		assert_int_equal(stats(k)->chunks, 1);
	}
	key = &own_key;
	hear_everything(k, START + 40 * MS);
	assert_true(window_news(k->window)->mismatch && window_news(k->window)->overtaken);
	assert_int_equal(stats(k)->chunks, 2);
	assert_int_equal(stats(k)->ignored, 13); /* another version: that tag has no key */
	one_is_sent(k, window_wakeup(k->window), 0); /* the repair that was asked for */
	worker_free(k);
}

/* --- jobs of all sizes: their headers, and every bit of them */

struct raw {
	_Alignas(uint64_t) uint8_t byte[HEADER + TALLY_BLOCK_BYTES];
};

/* A worker's only chunk, of one block, of which the result is in ret_result. */
static struct window *window_of_size(uint16_t workers, uint16_t rank, struct raw *ret_sent,
				     struct raw *ret_result)
{
	const struct tally_set everyone = tally_set_first(workers);
	struct tally_header *h, *r = (struct tally_header *)ret_result->byte;
	struct window_options o = { .job = JOB,
				    .epoch = EPOCH,
				    .rank = rank,
				    .workers = workers,
				    .window = 1,
				    .payload_bytes = TALLY_BLOCK_BYTES,
				    .nonce = nonce };
	struct window *w;
	struct datagram d;

	assert_int_equal(window_new(&o, &w), 0);
	h = window_compose(w, 6);
	h->call = tally_le64(call);
	h->lane = TALLY_LANE_INT64;
	h->blocks = 1;
	memset(tally_payload(h), 1, TALLY_BLOCK_BYTES);
	window_post(w, 6, place_of(6), 0, 1);
	assert_int_equal(window_output(w, START, &d, 1), 1);
	assert_int_equal(d.length, (workers > 64 ? 96 : 64) + 64);
	memset(ret_sent, 0, sizeof(*ret_sent));
	memcpy(ret_sent->byte, d.bytes, d.length);

	*ret_result = *ret_sent;
	r->kind = TALLY_RESULT;
	r->check = tally_le64(check_of(tally_payload(r), TALLY_BLOCK_WORDS) +
			      identity_of(6) * weight_of_all(workers));
	tally_header_set_put(r, &everyone);
	r->tag = tally_le64(tally_tag(r, &everyone));
	return w;
}

static void the_ranks_of_jobs_of_all_sizes_lie_right(void **state)
{
	static const uint16_t size[] = { 1, 2, 63, 64, 65, 66, 128, 129, 255, 256 };

	for (int i = 0; i < 10; i++) {
		for (uint16_t rank = 0; rank < size[i]; rank++) {
			bool large = size[i] > 64;
			struct raw sent, result;
			struct window *w = window_of_size(size[i], rank, &sent, &result);
			uint32_t seq;

			assert_int_equal(sent.byte[3], large ? TALLY_LARGE : 0);
			for (int byte = 0; byte < (large ? 32 : 8); byte++)
				assert_int_equal(sent.byte[56 + byte],
						 byte == rank / 8 ? 1 << rank % 8 : 0);
			for (int byte = 0; byte < 64; byte++) /* reserved: 0; words: 1 */
				assert_int_equal(sent.byte[(large ? 96 : 64) + byte], 1);
			for (int byte = 88; large && byte < 96; byte++)
				assert_int_equal(sent.byte[byte], 0);
			assert_true(window_input(w, result.byte, large ? 160 : 128, START, &seq));
			window_free(w);
		}
	}
}

/* As long as it says, and with the right tag, but small where the job's headers are large. */
static void a_header_of_another_size_is_ignored(void **state)
{
	const struct tally_set first = tally_set_first(64);
	struct raw sent, result;
	struct window *w = window_of_size(65, 0, &sent, &result);
	struct raw small = result;
	struct tally_header *h = (struct tally_header *)small.byte;
	uint32_t seq;

	h->flags &= ~TALLY_LARGE;
	h->tag = tally_le64(tally_tag(h, &first));
	memmove(small.byte + 64, small.byte + 96, TALLY_BLOCK_BYTES);
	assert_false(window_input(w, small.byte, 128, START, &seq));
	assert_int_equal(window_stats(w)->ignored, 1);
	assert_true(window_input(w, result.byte, 160, START, &seq));
	window_free(w);
}

static void no_flipped_bit_is_taken_in_jobs_of_any_size(void **state)
{
	static const uint16_t size[] = { 1, 64, 65, 256 };

	for (int i = 0; i < 4; i++) {
		struct raw sent, result;
		struct window *w = window_of_size(size[i], 0, &sent, &result);
		size_t length = size[i] > 64 ? 160 : 128;
		uint32_t seq;

		for (size_t bit = 0; bit < 8 * length; bit++) {
			result.byte[bit / 8] ^= 1 << bit % 8;
			assert_false(window_input(w, result.byte, length, START, &seq));
			result.byte[bit / 8] ^= 1 << bit % 8;
		}
		assert_int_equal(window_stats(w)->corrupt, 8 * 64);
		assert_true(window_input(w, result.byte, length, START, &seq));
		window_free(w);
	}
}

/* --- asks for what we wait for */

static void an_ask_that_lacks_this_rank_makes_it_send_at_once(void **state)
{
	struct worker *k = worker_new(4);
	struct tally_set missing = { { 0, 1 << 1 } };

	post(k, 0, &allreduce);
	post(k, 1, &allreduce);
	ask_without(k, 0, RANK, START);
	assert_int_equal(window_news(k->window)->asked_ns, 0);
	assert_int_equal(output(k, START), 2); /* fresh ones: it came too early */
	nothing_is_sent(k, START);
	ask_without(k, 1, RANK, START + MS);
	assert_true(window_wakeup(k->window) <= START + MS);
	assert_int_equal(one_is_sent(k, START + MS, 1)->message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	nothing_is_sent(k, START + MS);
	assert_int_equal(window_news(k->window)->asked_ns, START + MS);
	assert_true(tally_set_is_equal(&window_news(k->window)->missing, &missing));
	worker_free(k);
}

static void an_ask_that_crossed_the_contribution_does_not(void **state)
{
	struct worker *k = worker_new(4);

	finish(k, 0, &allreduce, START, MS);
	post_and_send(k, 1, &allreduce, 2ull * START);
	ask_without(k, 1, RANK, 2ull * START + MS);
	nothing_is_sent(k, 2ull * START + MS);
	ask_without(k, 1, RANK, 2ull * START + MS + 1);
	one_is_sent(k, 2ull * START + MS + 1, 1);
	worker_free(k);
}

static void an_ask_that_lacks_another_rank_only_tells_who_is_missing(void **state)
{
	struct worker *k = worker_new(4);
	struct tally_set missing = { { 0, 0, 1 } };

	post_and_send(k, 0, &allreduce, START);
	ask_without(k, 0, 128, START + MS);
	nothing_is_sent(k, START + MS);
	assert_int_equal(window_news(k->window)->asked_ns, START + MS);
	assert_true(tally_set_is_equal(&window_news(k->window)->missing, &missing));
	worker_free(k);
}

static void an_ask_with_everyone_gets_a_frame_as_long_as_the_sum(void **state)
{
	struct worker *k = worker_new(4);
	struct message zeros = { 0 };
	const struct sent *s;

	post(k, 0, &broadcast);
	assert_int_equal(one_is_sent(k, START, 0)->length, HEADER);
	ask_with_everyone(k, 0, START + 1);
	assert_true(window_wakeup(k->window) <= START + 1);
	s = one_is_sent(k, START + 1, 0);
	assert_int_equal(s->message.h.kind, TALLY_CONTRIBUTION);
	assert_int_equal(s->message.h.blocks, 2);
	assert_memory_equal(s->message.word, zeros.word, PAYLOAD);
	assert_int_equal(window_news(k->window)->asked_ns, 0); /* nobody is missing */
	result_is_taken(k, 0, &broadcast, START + MS);
	worker_free(k);
}

/* --- repair */

static void an_ask_for_a_finished_chunk_gets_the_result_back(void **state)
{
	static const struct shape *const shape[] = { &floats, &reduce_to_me, &broadcast, &barrier };
	struct worker *k = worker_new(4);

	for (uint32_t seq = 0; seq < 4; seq++) {
		struct message m = result_of(seq, shape[seq]);
		uint64_t now = START + seq * 100 * MS;
		const struct sent *s;

		m.h.flags = TALLY_WIDE | TALLY_LARGE;
		m.h.scale = seq ? 0 : 70;
		m.h.scale_ahead = seq ? 0 : 71;
		post_and_send(k, seq, shape[seq], now);
		assert_true(hear(k, &m, now + MS));
		ask_with_everyone(k, seq, now + 50 * MS);
		s = one_is_sent(k, now + 50 * MS, seq);
		m.h.kind = TALLY_REPAIR;
		m.h.boot = tally_le16(0);
		m.h.sender = tally_le16(RANK);
		m.h.tag = tally_le64(tag_of(&m));
		assert_false(s->fresh);
		assert_int_equal(s->length, length_of(&m));
		assert_memory_equal(&s->message, &m, s->length);
		nothing_is_sent(k, now + 50 * MS);
		assert_int_equal(stats(k)->repaired, seq + 1);
	}
	assert_int_equal(stats(k)->retransmitted, 0);
	worker_free(k);
}

static void a_rank_that_got_no_payload_repeats_its_contribution(void **state)
{
	struct worker *k = worker_new(4);
	struct message own;
	const struct sent *s;

	post_and_send(k, 0, &reduce_to_other, START);
	own = k->sent[0].message;
	result_is_taken(k, 0, &reduce_to_other, START + MS);
	ask_without(k, 0, RANK, START + 50 * MS);
	s = one_is_sent(k, START + 50 * MS, 0);
	own.h.flags = TALLY_FLUSH | TALLY_LARGE;
	own.h.tag = tally_le64(tag_of(&own));
	assert_int_equal(s->length, length_of(&own));
	assert_memory_equal(&s->message, &own, s->length);
	worker_free(k);
}

static void a_rank_without_payload_answers_with_zeros(void **state)
{
	struct worker *k = worker_new(1);
	struct message zeros = { 0 };
	const struct sent *s;

	finish(k, 0, &allreduce, START, MS); /* leaves words behind in the frame */
	finish(k, 1, &allreduce, START, MS);
	finish(k, 2, &copy_to_other, START, MS);
	ask_without(k, 2, 0, START + 50 * MS);
	s = one_is_sent(k, START + 50 * MS, 2);
	assert_int_equal(s->message.h.kind, TALLY_CONTRIBUTION);
	assert_int_equal(s->message.h.flags, TALLY_FLUSH | TALLY_LARGE);
	assert_int_equal(s->message.h.blocks, 2);
	assert_memory_equal(s->message.word, zeros.word, PAYLOAD);
	worker_free(k);
}

static void one_answer_in_half_a_timeout_is_enough(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t half = 3 * MS / 2, now = START + half;

	finish(k, 0, &allreduce, START, MS);
	assert_int_equal(window_rto(k->window), 2 * half);
	ask_with_everyone(k, 0, now); /* its contribution may still be on its way */
	nothing_is_sent(k, now);
	now++;
	for (int turn = 1; turn <= 3; turn++) {
		ask_with_everyone(k, 0, now);
		ask_with_everyone(k, 0, now);
		one_is_sent(k, now, 0);
		ask_with_everyone(k, 0, now + half);
		nothing_is_sent(k, now + half);
		now += half + 1;
		assert_int_equal(stats(k)->repaired, turn);
	}
	worker_free(k);
}

static void a_chunk_is_kept_until_another_takes_its_frame(void **state)
{
	struct worker *k = worker_new(2);

	for (uint32_t seq = 0; seq < 4; seq++) /* 0 .. seq + 2W - 1 */
		finish(k, seq, &allreduce, START + seq * MS, MS);
	ask_with_everyone(k, 0, START + 50 * MS);
	one_is_sent(k, START + 50 * MS, 0);
	ask_with_everyone(k, 0, START + 100 * MS); /* wanted, and overtaken by events: */
	post(k, 4, &allreduce);
	ask_with_everyone(k, 0, START + 100 * MS);
	assert_true(one_is_sent(k, START + 100 * MS, 4)->fresh);
	ask_with_everyone(k, 0, START + 101 * MS);
	result_is_taken(k, 4, &allreduce, START + 101 * MS);
	ask_with_everyone(k, 0, START + 200 * MS);
	nothing_is_sent(k, START + 200 * MS);
	ask_with_everyone(k, 4, START + 300 * MS);
	ask_with_everyone(k, 1, START + 300 * MS);
	assert_int_equal(output(k, START + 300 * MS), 2);
	worker_free(k);
}

static void an_ask_for_what_was_never_sent_is_nothing(void **state)
{
	struct worker *k = worker_new(2);

	ask_with_everyone(k, 0, START);
	ask_without(k, 0, RANK, START);
	nothing_is_sent(k, START);
	assert_int_equal(stats(k)->repaired, 0);
	assert_int_equal(window_news(k->window)->asked_ns, 0);
	worker_free(k);
}

/* --- all of it */

/* Of the last output, all but the first `kept` found no room. */
static void no_room_but_for(struct worker *k, uint64_t now_ns, size_t kept)
{
	struct datagram d[SENT_MAX];
	size_t n = window_output(k->window, now_ns, d, SENT_MAX);

	window_unsent(k->window, d + kept, n - kept);
}

static void new_chunks_without_room_go_later_in_order_and_as_new(void **state)
{
	struct worker *k = worker_new(8);

	for (uint32_t seq = 0; seq < 4; seq++)
		post(k, seq, &allreduce);
	no_room_but_for(k, START, 1);
	post(k, 4, &allreduce);
	no_room_but_for(k, START + MS, 0);
	assert_int_equal(output(k, START + 2 * MS), 4);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(seq_sent(k, i), i + 1);
		assert_true(k->sent[i].fresh);
	}
	assert_int_equal(stats(k)->retransmitted, 0);
	goes_again(k, 4);
	worker_free(k);
}

static void a_retransmission_without_room_goes_later_and_counts_once(void **state)
{
	struct worker *k = worker_new(8);
	uint64_t due = START + FIRST + RECOVERY_TURNS_MAX_NS;

	post(k, 0, &allreduce);
	one_is_sent(k, START, 0);
	for (int i = 0; i < 6; i++)
		no_room_but_for(k, due + i * MS, 0);
	assert_int_equal(stats(k)->retransmitted, 0);
	assert_int_equal(stats(k)->flushed, 0);
	assert_int_equal(one_is_sent(k, due + 10 * MS, 0)->message.h.flags,
			 TALLY_FLUSH | TALLY_LARGE);
	assert_int_equal(stats(k)->retransmitted, 1);
	assert_int_equal(stats(k)->flushed, 1);
	worker_free(k);
}

static void an_answer_without_room_goes_later(void **state)
{
	struct worker *k = worker_new(8);
	struct message result = result_of(0, &allreduce), ask;
	struct tally_set none = { 0 };

	post(k, 0, &allreduce);
	one_is_sent(k, START, 0);
	assert_true(hear(k, &result, START + MS));
	ask = said(TALLY_ASK, 0, &none);
	hear(k, &ask, START + 300 * MS);
	no_room_but_for(k, START + 300 * MS, 0);
	assert_int_equal(stats(k)->repaired, 0);
	assert_int_equal(one_is_sent(k, START + 301 * MS, 0)->message.h.kind, TALLY_REPAIR);
	assert_int_equal(stats(k)->repaired, 1);
	worker_free(k);
}

static void sequence_numbers_wrap(void **state)
{
	struct worker *k = worker_new(4);
	uint64_t now = START;

	for (uint32_t i = 0, seq = UINT32_MAX - 9; i < 20; i++, seq++, now += 10 * MS) {
		post_and_send(k, seq, &allreduce, now);
		one_is_sent(k, window_wakeup(k->window), seq);
		result_is_taken(k, seq, &allreduce, now + 50 * MS);
		now += 100 * MS;
		ask_with_everyone(k, seq - 7, now); /* the oldest one kept, once there is one */
		assert_int_equal(output(k, now), i >= 7);
	}
	worker_free(k);
}

static void a_small_output_loses_nothing(void **state)
{
	struct worker *k = worker_new(8);
	uint64_t now = START;

	for (uint32_t seq = 0; seq < 8; seq++) {
		finish(k, seq, &allreduce, now, MS);
		now += 50 * MS;
	}
	for (uint32_t seq = 8; seq < 16; seq++)
		post(k, seq, &allreduce);
	for (uint32_t seq = 8; seq < 16; seq++) {
		assert_int_equal(output_of(k, now, 1), 1);
		assert_int_equal(seq_sent(k, 0), seq);
		assert_true(k->sent[0].fresh);
	}
	nothing_is_sent(k, now);
	/* 8 to 14 overtaken, 0 to 7 asked for: one by one, all of them, each once. */
	result_is_taken(k, 15, &allreduce, now + MS);
	now += 2 * MS;
	for (uint32_t seq = 0; seq < 15; seq++)
		ask_without(k, seq, RANK, now);
	for (uint32_t i = 0, seen = 0; i < 15; i++) {
		assert_true(window_wakeup(k->window) <= now);
		assert_int_equal(output_of(k, now, 1), 1);
		assert_false(seen >> seq_sent(k, 0) & 1);
		seen |= 1u << seq_sent(k, 0);
	}
	nothing_is_sent(k, now);
	worker_free(k);
}

struct model {
	uint32_t random;
	uint32_t base, chunks;
	uint32_t begun, finished;
	uint8_t taken[512];
	uint32_t pending[64]; /* results on their way */
	uint32_t pendings;
};

static uint32_t model_random(struct model *m, uint32_t below)
{
	m->random ^= m->random << 13;
	m->random ^= m->random >> 17;
	m->random ^= m->random << 5;
	return m->random % below;
}

/* A node that answers at once over a network that loses, repeats and reorders. */
static void model_step(struct model *m, struct worker *k, uint64_t now_ns)
{
	output_of(k, now_ns, 1 + model_random(m, 4));
	for (size_t i = 0; i < k->count; i++)
		for (uint32_t copies = model_random(m, 3); copies && m->pendings < 64; copies--)
			m->pending[m->pendings++] = seq_sent(k, i);
	if (m->pendings && model_random(m, 3)) {
		uint32_t pick = model_random(m, m->pendings), seq = m->pending[pick];
		struct message result = result_of(seq, &allreduce);

		m->pending[pick] = m->pending[--m->pendings];
		if (hear(k, &result, now_ns)) {
			m->taken[seq - m->base]++;
			m->finished++;
		}
	}
}

static void whatever_is_lost_every_chunk_is_taken_once(void **state)
{
	for (uint32_t seed = 1; seed <= 50; seed++) {
		struct model m = { .random = seed * 2654435761u | 1, .chunks = 300 };
		uint32_t window = 1 << seed % 5;
		struct worker *k = worker_new(window);
		uint64_t now = START;

		m.base = UINT32_MAX - model_random(&m, m.chunks);
		for (int steps = 0; m.finished < m.chunks; steps++) {
			assert_true(steps < 100000);
			while (m.begun < m.chunks &&
			       (m.begun < window || m.taken[m.begun - window]))
				post(k, m.base + m.begun++, &allreduce);
			model_step(&m, k, now);
			now += 50 * US;
			if (!m.pendings && !model_random(&m, 8) && window_wakeup(k->window) > now &&
			    m.finished < m.begun)
				now = window_wakeup(k->window);
		}
		for (uint32_t i = 0; i < m.chunks; i++)
			assert_int_equal(m.taken[i], 1);
		assert_int_equal(stats(k)->chunks, m.chunks);
		worker_free(k);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_probed_with_the_newest_chunk_and_then_with_the_oldest),
		cmocka_unit_test(a_probe_of_another_rank_postpones_the_own),
		cmocka_unit_test(news_that_a_contribution_is_lost_make_it_go_again_at_once),
		cmocka_unit_test(news_that_others_are_missing_make_it_wait),
		cmocka_unit_test(news_that_a_copy_is_lost_make_it_go_again_to_be_answered),
		cmocka_unit_test(where_nothing_leaves_that_could_ask_ranks_probe_by_turns),
		cmocka_unit_test(what_the_group_was_asked_for_goes_with_flush),
		cmocka_unit_test(once_the_node_had_no_room_zeros_go_along_at_once),
		cmocka_unit_test(a_contribution_says_what_it_is_and_whose),
		cmocka_unit_test(a_contribution_sent_again_brings_zeros_as_long_as_the_sum),
		cmocka_unit_test(when_nothing_flies_there_is_nothing_to_wake_for),
		cmocka_unit_test(what_was_sent_in_runs_is_told_from_the_rest),
		cmocka_unit_test(the_oldest_chunk_leaves_first_and_at_once_behind_younger_ones),
		cmocka_unit_test(a_mark_goes_on_with_what_leaves_for_the_first_time),
		cmocka_unit_test(a_mark_of_what_is_no_message_of_the_run_is_none),
		cmocka_unit_test(a_marked_result_cuts_what_may_fly),
		cmocka_unit_test(a_result_is_taken_once),
		cmocka_unit_test(every_bit_of_a_result_must_be_right),
		cmocka_unit_test(a_result_of_another_length_is_not_taken),
		cmocka_unit_test(a_result_must_be_as_long_as_the_sum),
		cmocka_unit_test(who_is_not_the_recipient_takes_word_without_payload),
		cmocka_unit_test(other_kinds_of_messages_are_no_results),
		cmocka_unit_test(only_our_own_job_counts_as_heard),
		cmocka_unit_test(changes_of_the_boot_id_are_counted),
		cmocka_unit_test(a_wrong_sum_is_asked_for_once_more_and_then_rejected),
		cmocka_unit_test(a_scale_that_cannot_be_is_a_wrong_sum),
		cmocka_unit_test(copies_of_one_wrong_sum_are_rejected_once_in_half_an_rtt),
		cmocka_unit_test(wrong_sums_of_other_chunks_do_not_count),
		cmocka_unit_test(wrong_again_and_again_is_news),
		cmocka_unit_test(a_sum_of_another_run_chunk_or_call_is_never_taken),
		cmocka_unit_test(a_sum_that_lacks_or_repeats_a_rank_is_never_taken),
		cmocka_unit_test(a_result_of_another_call_lane_or_recipient_is_ignored),
		cmocka_unit_test(flags_that_no_result_has_are_refused),
		cmocka_unit_test(a_result_with_news_is_repaired_without_them),
		cmocka_unit_test(a_mismatch_is_news_of_what_this_rank_waits_for),
		cmocka_unit_test(a_slot_that_is_further_than_this_rank_is_news),
		cmocka_unit_test_teardown(who_has_not_the_rank_key_is_not_heard, without_key),
		cmocka_unit_test(the_ranks_of_jobs_of_all_sizes_lie_right),
		cmocka_unit_test(a_header_of_another_size_is_ignored),
		cmocka_unit_test(no_flipped_bit_is_taken_in_jobs_of_any_size),
		cmocka_unit_test(an_ask_that_lacks_this_rank_makes_it_send_at_once),
		cmocka_unit_test(an_ask_that_crossed_the_contribution_does_not),
		cmocka_unit_test(an_ask_that_lacks_another_rank_only_tells_who_is_missing),
		cmocka_unit_test(an_ask_with_everyone_gets_a_frame_as_long_as_the_sum),
		cmocka_unit_test(an_ask_for_a_finished_chunk_gets_the_result_back),
		cmocka_unit_test(a_rank_that_got_no_payload_repeats_its_contribution),
		cmocka_unit_test(a_rank_without_payload_answers_with_zeros),
		cmocka_unit_test(one_answer_in_half_a_timeout_is_enough),
		cmocka_unit_test(a_chunk_is_kept_until_another_takes_its_frame),
		cmocka_unit_test(an_ask_for_what_was_never_sent_is_nothing),
		cmocka_unit_test(new_chunks_without_room_go_later_in_order_and_as_new),
		cmocka_unit_test(a_retransmission_without_room_goes_later_and_counts_once),
		cmocka_unit_test(an_answer_without_room_goes_later),
		cmocka_unit_test(sequence_numbers_wrap),
		cmocka_unit_test(a_small_output_loses_nothing),
		cmocka_unit_test(whatever_is_lost_every_chunk_is_taken_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
