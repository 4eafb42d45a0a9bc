// SPDX-License-Identifier: GPL-2.0-only
/* The data plane reads the table of gates: wherever a gate is, whoever is beside it or comes. */
#include "harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <bpf/bpf.h>

enum {
	PORT = 99, /* no packet comes in there */
	STREAM = 200, /* test runs of the stream at least, of: */
	REPEATS = 1000,
};

static const struct tally_gate_key at_loopback = { JOB, LOOPBACK };

static __u64 hash_of(struct tally_gate_key key) { return tally_gate_hash(key, TALLY_MIX); }

static struct tally_gate_bucket *first_of(struct node *node, struct tally_gate_key key)
{
	return &node->gates.bucket[tally_gate_first(hash_of(key))];
}

static struct tally_gate_bucket *second_of(struct node *node, struct tally_gate_key key)
{
	return &node->gates.bucket[tally_gate_second(hash_of(key))];
}

static __u64 word_of(struct tally_gate_key key, struct tally_gate gate)
{
	return tally_gate_word(key, hash_of(key), gate);
}

/* A gate of no packet, in each word that is free. */
static void bucket_fill(struct tally_gate_bucket *bucket)
{
	const struct tally_gate_key other = { JOB, PORT };

	for (int i = 0; i < TALLY_GATE_WORDS; i++)
		if (!bucket->word[i])
			bucket->word[i] = word_of(other, (struct tally_gate){ .row = 1 });
}

/* JOB's gate at LOOPBACK alone, as the last one of `bucket`. */
static void gate_move(struct node *node, struct tally_gate_bucket *bucket)
{
	gate_remove(node, JOB, LOOPBACK);
	gate_remove(node, JOB, 0);
	bucket_fill(first_of(node, at_loopback));
	bucket_fill(second_of(node, at_loopback));
	bucket->word[TALLY_GATE_WORDS - 1] = word_of(
		at_loopback, (struct tally_gate){ .row = row_of_loopback(JOB) });
}

static __u64 counted(struct node *node, __u32 row, enum tally_outcome outcome)
{
	return row_read(node, row).of[outcome].packet;
}

static void a_gate_is_found_at_the_end_of_either_bucket(void **state)
{
	struct node *node = *state;

	gate_move(node, first_of(node, at_loopback));
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	node_reset(state);
	gate_move(node, second_of(node, at_loopback));
	expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	expect(node, contribution(.worker = 0, .job = OTHER_JOB), TALLY_ABSORBED, NULL);
}

static void a_job_without_a_gate_is_in_no_full_bucket(void **state)
{
	struct node *node = *state;

	gate_remove(node, JOB, LOOPBACK);
	gate_remove(node, JOB, 0);
	bucket_fill(first_of(node, at_loopback));
	bucket_fill(second_of(node, at_loopback));
	expect(node, contribution(.worker = 0), TALLY_UNKNOWN_JOB, NULL);
}

/* Gate 0 has buckets of its own, and is found in both. */
static void gate_0_is_found_at_the_end_of_either_bucket(void **state)
{
	const struct tally_gate_key key = { JOB, 0 };
	const __u64 word = word_of(key,
				   (struct tally_gate){ .row = row_of_job(JOB), .anywhere = 1 });
	struct node *node = *state;

	for (int second = 0; second < 2; second++) {
		__u64 before = counted(node, row_of_job(JOB), TALLY_ABSORBED);

		node_reset(state);
		gate_remove(node, JOB, LOOPBACK);
		gate_remove(node, JOB, 0);
		bucket_fill(first_of(node, key));
		bucket_fill(second_of(node, key));
		(second ? second_of(node, key) : first_of(node, key))->word[TALLY_GATE_WORDS - 1] =
			word;
		expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
		assert_int_equal(counted(node, row_of_job(JOB), TALLY_ABSORBED), before + 1);
	}
}

/* Port and eight bits are those of JOB's gate, and the index is another job's. */
static void a_gate_of_another_job_with_the_same_name_is_passed_over(void **state)
{
	const __u64 twin = word_of(
		at_loopback,
		(struct tally_gate){ .row = row_of_loopback(OTHER_JOB), .job = OTHER_JOB - JOB });
	struct node *node = *state;
	__u64 before = counted(node, row_of_loopback(OTHER_JOB), TALLY_ABSORBED);

	for (int second = 0; second < 2; second++) {
		node_reset(state);
		gate_move(node,
			  second ? second_of(node, at_loopback) : first_of(node, at_loopback));
		first_of(node, at_loopback)->word[0] = twin;
		second_of(node, at_loopback)->word[0] = twin;
		expect(node, contribution(.worker = 0), TALLY_ABSORBED, NULL);
	}
	assert_int_equal(counted(node, row_of_loopback(OTHER_JOB), TALLY_ABSORBED), before);
	assert_true(tally_gates_remove(&node->gates, at_loopback, 0));
	expect(node, contribution(.worker = 0, .seq = 1), TALLY_UNKNOWN_JOB, NULL);
}

/* The job has index 0, and its gate 0 a name of zeros: all that a free word says of itself. */
static void a_free_word_is_no_gate(void **state)
{
	const __u32 index = 0;
	struct tally_gate_key key = { JOB, 0 };
	struct node *node = *state;
	const int jobs = bpf_map__fd(node->ingress->maps.jobs);
	struct tally_job job;

	while (tally_gate_name(key, hash_of(key)))
		key.job++;
	assert_int_equal(bpf_map_lookup_elem(jobs, &index, &job), 0);
	job.id = key.job;
	assert_int_equal(bpf_map_update_elem(jobs, &index, &job, BPF_ANY), 0);
	for (int second = 0; second < 2; second++) {
		__u64 *word = (second ? second_of(node, key) : first_of(node, key))->word;

		word[TALLY_GATE_WORDS - 1] = word_of(
			key, (struct tally_gate){ .row = row_of_job(JOB), .anywhere = 1 });
		expect(node, contribution(.worker = 0, .job = key.job, .seq = second),
		       TALLY_ABSORBED, NULL);
		word[TALLY_GATE_WORDS - 1] = 0;
		expect(node, contribution(.worker = 0, .job = key.job, .seq = second),
		       TALLY_UNKNOWN_JOB, NULL);
	}
}

/* --- writes beside a stream --- */

struct stream {
	struct node *node;
	struct frame frame;
	atomic_bool ends;
	atomic_int runs; /* that are over */
	int error;
};

static void *stream_run(void *argument)
{
	struct stream *s = argument;
	int fd = node_ingress(s->node);

	while (!atomic_load(&s->ends)) {
		LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = s->frame.data,
			    .data_size_in = s->frame.bytes, .repeat = REPEATS);

		s->error |= bpf_prog_test_run_opts(fd, &run);
		atomic_fetch_add(&s->runs, 1);
	}
	return NULL;
}

static __u64 total_of(struct node *node, __u32 row)
{
	const struct counts counts = row_read(node, row);
	__u64 packets = 0;

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		packets += counts.of[i].packet;
	return packets;
}

/* Gates come and go in both buckets, also one of another job with the same name. */
static void neighbours_write(struct node *node)
{
	struct tally_gate_bucket *first = first_of(node, at_loopback);
	struct tally_gate_bucket *second = second_of(node, at_loopback);
	const struct tally_gate gate = { .row = row_of_loopback(OTHER_JOB),
					 .job = OTHER_JOB - JOB };
	const struct tally_gate_key other = { JOB, PORT };

	for (int i = 0; i < TALLY_GATE_WORDS - 1; i++) {
		__atomic_store_n(&first->word[i], word_of(other, gate), __ATOMIC_RELEASE);
		__atomic_store_n(&second->word[i], word_of(at_loopback, gate), __ATOMIC_RELEASE);
	}
	assert_true(tally_gates_remove(&node->gates, at_loopback, gate.job));
	assert_true(tally_gates_put(&node->gates, at_loopback, gate));
	for (int i = 0; i < TALLY_GATE_WORDS - 1; i++) {
		__atomic_store_n(&first->word[i], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&second->word[i], 0, __ATOMIC_RELEASE);
	}
}

static void no_packet_misses_its_gate_while_others_come_and_go(void **state)
{
	struct stream s = { .node = *state };
	__u64 here, elsewhere;
	pthread_t thread;

	frame_write(contribution(.worker = 0), &s.frame);
	jobs_follow(s.node, &s.frame);
	gate_move(s.node, second_of(s.node, at_loopback));
	here = total_of(s.node, row_of_loopback(JOB));
	elsewhere = total_of(s.node, row_of_loopback(OTHER_JOB)) +
		    total_of(s.node, TALLY_ROW_NO_JOB);
	assert_int_equal(pthread_create(&thread, NULL, stream_run, &s), 0);
	while (atomic_load(&s.runs) < STREAM)
		neighbours_write(s.node);
	atomic_store(&s.ends, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(s.error, 0);
	assert_int_equal(total_of(s.node, row_of_loopback(OTHER_JOB)) +
				 total_of(s.node, TALLY_ROW_NO_JOB),
			 elsewhere);
	assert_int_equal(total_of(s.node, row_of_loopback(JOB)) - here,
			 (__u64)atomic_load(&s.runs) * REPEATS);
}

#define fact(f) cmocka_unit_test_setup(f, node_reset)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(a_gate_is_found_at_the_end_of_either_bucket),
		fact(a_job_without_a_gate_is_in_no_full_bucket),
		fact(gate_0_is_found_at_the_end_of_either_bucket),
		fact(a_gate_of_another_job_with_the_same_name_is_passed_over),
		fact(a_free_word_is_no_gate),
		fact(no_packet_misses_its_gate_while_others_come_and_go),
	};

	skip_unless_permitted();
	return cmocka_run_group_tests_name("gates by XDP", tests, node_setup, node_teardown) +
	       cmocka_run_group_tests_name("gates by TC", tests, node_setup_tc, node_teardown);
}
