// SPDX-License-Identifier: GPL-2.0-only
/* Two CPUs on one slot: no update is lost, none counts twice, and a chunk is completed once. */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
	CPUS = 2,
	WORKERS = TALLY_WORKERS_MAX,
	BLOCKS = 22,
	CHUNKS = 200,
	ATTEMPTS = 3, /* each worker sends everything as often */
	RACES = 20000,
	MORE_RACES = 5 * RACES,
};

#define ALL_WORKERS { { ~0ULL, ~0ULL, ~0ULL, ~0ULL } }

/* One CPU's share of the workers: rank % CPUS == cpu. */
struct share {
	struct node *node;
	int cpu;
	int (*contribute)(struct share *share, struct message m);
	struct message message;
	atomic_int *started;
	int frames; /* that left */
	struct frame frame[WORKERS];
};

static int share_run(struct share *share, struct message m, int action_kept)
{
	struct frame *out = &share->frame[share->frames % WORKERS], in;
	int action;

	frame_write(m, &in);
	action = node_run(share->node, &in, out);
	if (action < 0)
		return action;
	if (action == action_kept &&
	    (out->bytes != in.bytes || memcmp(out->data, in.data, in.bytes) != 0))
		share->frames++;
	return 0;
}

/* CPUs start together, as nearly as spinning can make them. */
static void wait_for_the_others(atomic_int *started)
{
	atomic_fetch_add(started, 1);
	while (atomic_load(started) < CPUS)
		sched_yield();
}

static bool cpu_take(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	return !pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus);
}

/* A thread: NULL when all went well. */
static void *share_contribute(void *data)
{
	struct share *share = data;
	struct message m = share->message;

	if (!cpu_take(share->cpu))
		return share;
	wait_for_the_others(share->started);
	for (m.worker = share->cpu; m.worker < WORKERS; m.worker += CPUS) {
		m.value = m.worker + 1;
		if (share->contribute(share, m) < 0)
			return share;
	}
	return NULL;
}

/* All ranks contribute to one chunk, from all CPUs at once. `share` tells what left. */
static void all_contribute(struct node *node, struct message m,
			   int (*contribute)(struct share *share, struct message m),
			   struct share *share)
{
	atomic_int started = 0;
	pthread_t thread[CPUS];
	void *failed;

	for (int i = 0; i < CPUS; i++) {
		share[i].node = node;
		share[i].cpu = i;
		share[i].contribute = contribute;
		share[i].message = m;
		share[i].started = &started;
		share[i].frames = 0;
		assert_int_equal(pthread_create(&thread[i], NULL, share_contribute, &share[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
}

static __u64 counted(const struct counts *before, const struct counts *after,
		     enum tally_outcome outcome)
{
	return after->of[outcome].packet - before->of[outcome].packet;
}

/* The chunk's one result, from whichever CPU it left. */
static void assert_one_result(const struct share *share, __u64 sum)
{
	const struct share *last = share[0].frames ? &share[0] : &share[1];
	struct sent out;

	assert_int_equal(share[0].frames + share[1].frames, 1);
	frame_read(&last->frame[0], &out);
	assert_int_equal(out.tally.blocks, BLOCKS);
	assert_sum(&out, sum);
}

static int contribute_once(struct share *share, struct message m)
{
	return share_run(share, m, XDP_REDIRECT);
}

static int contribute_again_and_again(struct share *share, struct message m)
{
	int r = 0;

	for (int i = 0; i < ATTEMPTS && r == 0; i++)
		r = share_run(share, m, XDP_REDIRECT);
	return r;
}

static void show_exact_sums(struct node *node,
			    int (*contribute)(struct share *share, struct message m), int attempts)
{
	static struct share share[CPUS];
	struct counts before = counts_read(node), after;

	job_put(node, JOB, root_job(.everyone = ALL_WORKERS));
	for (__u32 seq = 0; seq < CHUNKS; seq++) {
		all_contribute(node,
			       contribution(.seq = seq, .blocks = BLOCKS, .flags = TALLY_LARGE),
			       contribute, share);
		assert_one_result(share, WORKERS * (WORKERS + 1) / 2);
	}
	after = counts_read(node);
	assert_int_equal(counted(&before, &after, TALLY_COMPLETED), CHUNKS);
	assert_int_equal(counted(&before, &after, TALLY_ABSORBED), CHUNKS * (WORKERS - 1));
	assert_int_equal(counted(&before, &after, TALLY_DUPLICATE) +
				 counted(&before, &after, TALLY_ANSWERED),
			 CHUNKS * WORKERS * (attempts - 1));
}

static void two_cpus_lose_no_update(void **state) { show_exact_sums(*state, contribute_once, 1); }

static void two_cpus_count_no_worker_twice(void **state)
{
	show_exact_sums(*state, contribute_again_and_again, ATTEMPTS);
}

/* An inner node: each worker sends, and then flushes; with zeros, to tell what is passed up. */
static int contribute_and_flush(struct share *share, struct message m)
{
	int r;

	if (m.worker == WORKERS - 1) /* stays away, so that the chunk is never whole */
		return 0;
	r = share_run(share, m, XDP_PASS);
	m.flags |= TALLY_FLUSH;
	m.value = 0;
	return r < 0 ? r : share_run(share, m, XDP_PASS);
}

/* The partial sums that left are right, and no worker is in two of them. */
static void join_partial_sums(const struct share *share, struct tally_set *gone)
{
	for (int i = 0; i < share->frames; i++) {
		__u64 sum = 0;
		struct sent out;

		frame_read(&share->frame[i], &out);
		assert_true(tally_set_is_disjoint(&out.set, gone));
		tally_set_join(gone, &out.set);
		for (__u32 rank = 0; rank < WORKERS; rank++)
			sum += tally_set_has(&out.set, rank) ? rank + 1 : 0;
		assert_sum(&out, sum);
	}
}

static void two_cpus_flush_every_worker_once(void **state)
{
	struct tally_set all_but_one = tally_set_first(WORKERS - 1);
	static struct share share[CPUS];

	job_put(*state, JOB, inner_job(.everyone = ALL_WORKERS, .below = ALL_WORKERS));
	for (__u32 seq = 0; seq < CHUNKS; seq++) {
		struct tally_set gone = { { 0 } };

		all_contribute(*state,
			       contribution(.seq = seq, .blocks = BLOCKS, .flags = TALLY_LARGE),
			       contribute_and_flush, share);
		for (int i = 0; i < CPUS; i++)
			join_partial_sums(&share[i], &gone);
		assert_memory_equal(&gone, &all_but_one, sizeof(gone));
	}
}

/* One CPU finishes a slot's chunks, one after another; the other wants each result again. */
struct race {
	struct node *node;
	atomic_uint finished; /* the last chunk, in steps of the ring */
	int answers, wrong;
};

static void *finish_chunks(void *data)
{
	struct race *race = data;
	struct frame in, out;
	int action = cpu_take(0) ? XDP_REDIRECT : -1;

	for (__u32 i = 1; i <= RACES && action == XDP_REDIRECT; i++) {
		frame_write(contribution(.set = { { 0x3 } }, .seq = i * SLOTS_OF_JOB, .value = i),
			    &in);
		action = node_run(race->node, &in, &out);
		atomic_store(&race->finished, i);
	}
	atomic_store(&race->finished, RACES); /* in any case, so that the other ends */
	return action == XDP_REDIRECT ? NULL : race;
}

static void *want_results(void *data)
{
	const __u32 kind_at = frame_headers_bytes(contribution()) +
			      offsetof(struct tally_header, kind);
	struct race *race = data;
	struct frame in, out;
	bool pinned = cpu_take(1);
	__u32 i;

	do {
		struct message m = contribution(.worker = 0, .blocks = 0);
		__u64 word;

		i = atomic_load(&race->finished);
		m.seq = i * SLOTS_OF_JOB;
		frame_write(m, &in);
		if (node_run(race->node, &in, &out) != XDP_TX ||
		    out.data[kind_at] == TALLY_OVERTAKEN) /* the other is further meanwhile */
			continue;
		memcpy(&word, out.data + in.bytes, sizeof(word));
		race->answers++;
		race->wrong += word != i;
	} while (i < RACES);
	return pinned ? NULL : race;
}

static void an_answer_is_never_that_of_another_chunk(void **state)
{
	struct race race = { .node = *state };
	pthread_t thread[CPUS];
	void *failed;

	expect(*state, contribution(.set = { { 0x3 } }, .value = 0), TALLY_COMPLETED, NULL);
	assert_int_equal(pthread_create(&thread[0], NULL, finish_chunks, &race), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, want_results, &race), 0);
	for (int i = 0; i < CPUS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	assert_true(race.answers > 0);
	assert_int_equal(race.wrong, 0);
}

/* Both CPUs finish chunks of one slot: the later one takes the slot right behind the earlier one.
 */
static void *finish_by_turns(void *data)
{
	struct race *race = data;
	struct frame in, out;
	struct tally_header h;
	int wrong = 0;
	__u32 i;

	while ((i = atomic_fetch_add(&race->finished, 1)) < MORE_RACES) {
		struct message m = contribution(.set = { { 0x3 } }, .seq = i * SLOTS_OF_JOB,
						.value = i);

		frame_write(m, &in);
		if (node_run(race->node, &in, &out) != XDP_REDIRECT)
			continue; /* the other was faster: this one is overtaken */
		memcpy(&h, out.data + frame_headers_bytes(m), sizeof(h));
		wrong += tally_le64_get(h.check) != check_of(i, m.blocks);
	}
	return (void *)(long)wrong;
}

static void *finish_on_cpu_0(void *data) { return cpu_take(0) ? finish_by_turns(data) : data; }
static void *finish_on_cpu_1(void *data) { return cpu_take(1) ? finish_by_turns(data) : data; }

static void a_result_has_the_books_of_its_own_chunk(void **state)
{
	struct race race = { .node = *state };
	pthread_t thread[CPUS];
	void *wrong;

	assert_int_equal(pthread_create(&thread[0], NULL, finish_on_cpu_0, &race), 0);
	assert_int_equal(pthread_create(&thread[1], NULL, finish_on_cpu_1, &race), 0);
	for (int i = 0; i < CPUS; i++) {
		assert_int_equal(pthread_join(thread[i], &wrong), 0);
		assert_null(wrong);
	}
}

/* Two CPUs at one bucket: what both get together is what was in it. */
static void two_cpus_spend_no_token_twice(void **state)
{
	enum {
		TENANT = 1,
		TOKENS = WORKERS * 3 / 4,
	};
	static struct share share[CPUS];

	for (int again = 0; again < CHUNKS; again++) {
		struct counts before = counts_read(*state), after;

		tenant_put(*state, TENANT,
			   (struct tally_tenant){ .limited = 1,
						  .packets = { .rate = 1,
							       .burst = WORKERS,
							       .level = TOKENS,
							       .at_ns = ~0ULL } });
		job_put(*state, JOB, root_job(.everyone = ALL_WORKERS, .tenant = TENANT));
		all_contribute(*state, contribution(.seq = again, .flags = TALLY_LARGE),
			       contribute_once, share);
		after = counts_read(*state);
		assert_int_equal(counted(&before, &after, TALLY_ABSORBED), TOKENS);
		assert_int_equal(counted(&before, &after, TALLY_OVER_RATE), WORKERS - TOKENS);
	}
}

/* --- a slot that two jobs want, from both CPUs: the rank is the CPU's number */

enum {
	BORROWED_CHUNKS = 5000,
};

/* What left of each contribution. */
struct borrowing {
	struct node *node;
	int cpu;
	atomic_int *started;
	__u8 left[2][BORROWED_CHUNKS]; /* ranks of either job's sums */
	int wrong;
};

static __u64 value_of(__u32 job, __u32 seq, __u32 rank) { return job * 100000 + seq * 10 + rank; }

static void keep_sum(struct borrowing *b, const struct frame *out)
{
	static _Thread_local struct sent sent;
	__u64 sum = 0, check = 0;
	__u32 job, seq;
	__u8 *left;

	frame_read(out, &sent);
	job = tally_le32_get(sent.tally.job);
	seq = tally_le32_get(sent.tally.seq);
	left = &b->left[job == OTHER_JOB][seq];
	b->wrong += *left & sent.set.word[0] || sent.set.word[0] > 3;
	*left |= sent.set.word[0];
	for (__u32 rank = 0; rank < CPUS; rank++)
		sum += tally_set_has(&sent.set, rank) ? value_of(job, seq, rank) : 0;
	for (__u64 i = 0; i < sent.tally.blocks * TALLY_BLOCK_WORDS; i++) {
		b->wrong += sent.word[i] != (i + 1) * sum;
		check += (2 * i + 1) * sent.word[i];
	}
	b->wrong += tally_le64_get(sent.tally.check) != check;
}

static void *borrow_by_turns(void *data)
{
	struct borrowing *b = data;
	bool pinned = cpu_take(b->cpu);
	struct frame in, out;

	wait_for_the_others(b->started);
	for (__u32 seq = 0; seq < BORROWED_CHUNKS; seq++)
		for (int other = 0; other < 2; other++) {
			const __u32 job = other ? OTHER_JOB : JOB;
			const struct message m = contribution(.job = job, .seq = seq,
							      .worker = b->cpu,
							      .value = value_of(job, seq, b->cpu));

			frame_write(m, &in);
			if (node_run(b->node, &in, &out) == XDP_PASS)
				keep_sum(b, &out);
		}
	return pinned ? NULL : b;
}

/* Each contribution leaves once, in a sum of its own chunk; but for one chunk, which has the slot.
 */
static void two_cpus_swap_each_sum_out_once(void **state)
{
	struct counts before = counts_read(*state), after;
	static struct borrowing b[CPUS];
	atomic_int started = 0;
	pthread_t thread[CPUS];
	int missing = 0;
	void *failed;

	memset(b, 0, sizeof(b));
	job_put(*state, JOB, inner_job(.borrows = 1, .copies = 2));
	job_put(*state, OTHER_JOB, inner_job(.borrows = 1, .group = 1, .copies = 2));
	for (int i = 0; i < CPUS; i++) {
		b[i].node = *state;
		b[i].cpu = i;
		b[i].started = &started;
		assert_int_equal(pthread_create(&thread[i], NULL, borrow_by_turns, &b[i]), 0);
	}
	for (int i = 0; i < CPUS; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
		assert_int_equal(b[i].wrong, 0);
	}
	for (int other = 0; other < 2; other++)
		for (__u32 seq = 0; seq < BORROWED_CHUNKS; seq++) {
			const __u8 one = b[0].left[other][seq], two = b[1].left[other][seq];

			assert_int_equal(one & two, 0);
			missing += (one | two) != 3;
		}
	assert_in_range(missing, 0, 1);
	after = counts_read(*state);
	assert_true(counted(&before, &after, TALLY_SWAPPED) > BORROWED_CHUNKS / 2);
}

static int setup_pool(void **state)
{
	return node_setup_pool(state, (struct tally_pool){ 1, { .preempts = true } });
}

#define fact(name) cmocka_unit_test_setup(name, node_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(two_cpus_lose_no_update),
		fact(two_cpus_count_no_worker_twice),
		fact(two_cpus_flush_every_worker_once),
		fact(an_answer_is_never_that_of_another_chunk),
		fact(a_result_has_the_books_of_its_own_chunk),
		fact(two_cpus_spend_no_token_twice),
	};
	const struct CMUnitTest borrowed[] = {
		fact(two_cpus_swap_each_sum_out_once),
	};
	cpu_set_t cpus;
	int failed;

	skip_unless_permitted();
	if (sched_getaffinity(0, sizeof(cpus), &cpus) || !CPU_ISSET(0, &cpus) ||
	    !CPU_ISSET(1, &cpus)) {
		printf("1..1\nok 1 - cpus # SKIP CPUs 0 and 1 are not both ours\n");
		return 0;
	}
	failed = cmocka_run_group_tests_name("cpus", tests, node_setup, node_teardown);
	return failed +
	       cmocka_run_group_tests_name("cpus, borrowed", borrowed, setup_pool, node_teardown);
}
