// SPDX-License-Identifier: GPL-2.0-only
/* Who comes to a job, who is at it, who has left; at the end random days against a slow model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/job.h"
#include "common/address.h"

static struct why why;

/* With the port of services if it names none. */
static struct sockaddr_storage at(const char *text)
{
	struct sockaddr_storage address = { 0 };

	if (address_parse(text, 0, &address) < 0)
		assert_int_equal(address_parse(text, TALLY_UDP_PORT, &address), 0);
	return address;
}

/* Worker n: an address and port of its own. */
static struct sockaddr_storage worker(unsigned int n)
{
	char text[ADDRESS_BYTES];

	snprintf(text, sizeof(text), "10.77.%u.%u:40000", n / 200, 1 + n % 200);
	return at(text);
}

static struct job *job_of(uint16_t workers)
{
	const struct job facts = {
		.name = "resnet",
		.token = "secret",
		.id = 7,
		.tenant = 3,
		.workers = workers,
		.window = 128,
		.payload_bytes = 1408,
		.service = at("10.77.0.1"),
		.epoch = 41,
	};
	struct job *j = job_new(&facts);

	assert_non_null(j);
	return j;
}

/* Worker n comes for a rank, and gets `expected`. */
static void comes(struct job *j, int rank, unsigned int n, uint16_t expected)
{
	const struct sockaddr_storage address = worker(n);
	uint16_t got = 0xffff;

	assert_int_equal(job_join(j, rank, &address, &got, &why), 0);
	assert_int_equal(got, expected);
}

static void refused_at(struct job *j, int rank, struct sockaddr_storage address, int error,
		       const char *reason)
{
	struct tally_set missing = job_missing(j), after;
	uint16_t got = 0xabcd;

	why.text[0] = '\0';
	assert_int_equal(job_join(j, rank, &address, &got, &why), error);
	assert_string_equal(why.text, reason);
	assert_int_equal(got, 0xabcd);
	after = job_missing(j);
	assert_true(tally_set_is_equal(&missing, &after));
}

static void refused(struct job *j, int rank, unsigned int n, int error, const char *reason)
{
	refused_at(j, rank, worker(n), error, reason);
}

static struct job *job_running(uint16_t workers)
{
	struct job *j = job_of(workers);

	for (unsigned int i = 0; i < workers; i++)
		comes(j, -1, i, i);
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, 64, false);
	return j;
}

/* --- coming ---------------------------------------------------------------------------------- */

static void a_new_job_has_its_facts_and_nobody(void **state)
{
	struct job_rank somebody = { .waiting = true, .presence = JOB_RUNNING };
	struct job facts = { .name = "a", .workers = 1, .window = 8, .rank = &somebody };
	_cleanup_(job_freep) struct job *j = job_new(&facts);

	assert_non_null(j);
	assert_ptr_not_equal(j->rank, &somebody);
	assert_string_equal(j->name, "a");
	assert_false(j->rank[0].waiting);
	assert_int_equal(j->rank[0].presence, JOB_ABSENT);
	assert_false(job_is_ready(j));
	assert_int_equal(job_slots(j), 0);
	assert_int_equal(job_slots_wanted(j), 16);
}

static void freeing_nothing_is_allowed(void **state) { job_free(NULL); }

static void any_rank_is_the_lowest_that_is_free(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(4);

	comes(j, 1, 10, 1);
	comes(j, -1, 11, 0);
	comes(j, -1, 12, 2);
	job_unjoin(j, 0);
	comes(j, -1, 13, 0);
	comes(j, -1, 14, 3);
	assert_true(job_is_ready(j));
	refused(j, -1, 15, -EUSERS, "all 4 ranks of job resnet are taken");
}

static void ranks_begin_at_0_and_end_before_workers(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(TALLY_WORKERS_MAX);

	comes(j, 0, 0, 0);
	comes(j, TALLY_WORKERS_MAX - 1, 1, TALLY_WORKERS_MAX - 1);
	refused(j, TALLY_WORKERS_MAX, 2, -ERANGE, "rank 256: job resnet has ranks 0 to 255");
}

/* A tree that was written says where each rank is; of one that agents find, any rank is right. */
static void in_a_written_tree_each_worker_says_its_rank(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(4), *found = job_of(4);
	struct tree tree = { .nodes = 2,
			     .node = { { .name = "a0", .ranks = tally_set_first(2) },
				       { .name = "a1" } } };

	tally_set_add(&tree.node[1].ranks, 2);
	tally_set_add(&tree.node[1].ranks, 3);
	assert_int_equal(job_tree_set(j, &tree), 0);
	refused(j, -1, 0, -ERANGE,
		"any rank: job resnet has a tree, which says where each rank is (a0: 0-1; a1: "
		"2-3): say which rank this worker is (--rank, $TALLY_RANK)");
	comes(j, 2, 0, 2);
	refused(j, 4, 1, -ERANGE, "rank 4: job resnet has ranks 0 to 3");
	refused_at(j, 1, at("10.77.1.9:31249"), -EADDRINUSE,
		   "UDP port 31249 is that of nodes, and job resnet has a tree of nodes: join with "
		   "another port (--address, $TALLY_ADDRESS)");
	tree.found = true;
	assert_int_equal(job_tree_set(found, &tree), 0);
	comes(found, -1, 0, 0);
}

static void a_long_tree_is_cut(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(TALLY_WORKERS_MAX);
	struct sockaddr_storage address = worker(0);
	struct tree tree = { .nodes = TREE_NODES_MAX };
	uint16_t got;

	for (unsigned int i = 0; i < tree.nodes; i++) {
		memset(tree.node[i].name, 'n', sizeof(tree.node[i].name) - 1);
		for (unsigned int rank = i; rank < TALLY_WORKERS_MAX; rank += TREE_NODES_MAX)
			tally_set_add(&tree.node[i].ranks, rank);
	}
	assert_int_equal(job_tree_set(j, &tree), 0);
	assert_int_equal(job_join(j, -1, &address, &got, &why), -ERANGE);
	assert_non_null(strstr(why.text, ": 0,64,128,192; nnn"));
	assert_non_null(strstr(why.text, "; ...): say which rank this worker is (--rank, "
					 "$TALLY_RANK)"));
}

static void a_taken_rank_says_by_whom(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(2);

	refused(j, 1, 5, -EADDRINUSE, "rank 1 of job resnet is taken, by 10.77.0.2:40000");
}

static void an_address_is_taken_once(void **state)
{
	const struct sockaddr_storage neighbour = at("10.77.0.10:40001");
	_cleanup_(job_freep) struct job *j = job_of(3);
	uint16_t got = 0xffff;

	comes(j, 2, 9, 2);
	refused(j, 0, 9, -EADDRINUSE, "rank 2 of job resnet has that address and port");
	/* another port of the same machine is another worker */
	assert_int_equal(job_join(j, -1, &neighbour, &got, &why), 0);
	assert_int_equal(got, 0);
}

static void another_family_is_refused(void **state)
{
	const char *other = "job resnet uses IPv6, and this worker IPv4: join from an IPv6 "
			    "address, or create the job with --service and the node's IPv4 "
			    "address (tallyctl status: services)";
	_cleanup_(job_freep) struct job *j = job_of(1);

	refused_at(j, 0, at("[fd77::1]:40000"), -EAFNOSUPPORT,
		   "job resnet uses IPv4, and this worker IPv6: join from an IPv4 address, or "
		   "create the job with --service and the node's IPv6 address (tallyctl status: "
		   "services)");
	j->service = at("fd77::9");
	refused(j, 0, 1, -EAFNOSUPPORT, other);
	refused_at(j, 0, (struct sockaddr_storage){ 0 }, -EAFNOSUPPORT, other);
}

static void who_goes_before_the_run_frees_rank_and_address(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(2);

	comes(j, 1, 3, 1);
	job_unjoin(j, 1);
	comes(j, 0, 3, 0);
	comes(j, 1, 4, 1);
}

static void missing_are_those_nobody_waits_for(void **state)
{
	for (unsigned int ranks = 0; ranks < 1 << 5; ranks++) {
		_cleanup_(job_freep) struct job *j = job_of(5);
		struct tally_set missing;

		for (unsigned int i = 0; i < 5; i++)
			if (ranks & 1 << i)
				comes(j, i, i, i);
		missing = job_missing(j);
		assert_int_equal(missing.word[0], ~ranks & 31);
		assert_int_equal(missing.word[1] | missing.word[2] | missing.word[3], 0);
		assert_int_equal(job_is_ready(j), ranks == 31);
	}
}

/* --- runs ------------------------------------------------------------------------------------ */

static void the_next_run_is_told_as_a_job_file_before_it_begins(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(2);
	static struct run next, now;
	uint8_t key[SECRET_RANK_KEY_BYTES];

	comes(j, 1, 8, 1);
	comes(j, 0, 9, 0);
	j->begin_draw = (struct job_draw){ 0x9c41d00f3ae7b552, { 1 } };
	job_next_run(j, 32, &next);
	job_run_keys(j, &j->begin_draw, &next);
	assert_int_equal(j->epoch, 41);
	assert_int_equal(next.epoch, 42);
	assert_int_equal(next.job, 7);
	assert_int_equal(next.window, 32);
	assert_int_equal(next.payload_bytes, 1408);
	assert_int_equal(next.workers, 2);
	assert_true(next.nonce == 0x9c41d00f3ae7b552);
	job_begin(j, 32, false);
	job_this_run(j, &now);
	job_run_keys(j, &j->draw, &now);
	assert_memory_equal(&next, &now, sizeof(now));
	assert_int_equal(now.keys, 2);
	assert_memory_not_equal(&now.key[0], &now.key[1], sizeof(now.key[0]));
	for (uint16_t rank = 0; rank < 2; rank++) {
		assert_true(job_rank_key(j, rank, key));
		assert_memory_equal(key, &now.key[rank], sizeof(key));
	}
	for (unsigned int i = 0; i < 2; i++) {
		const struct sockaddr_storage expected = worker(9 - i);

		assert_true(endpoint_is_equal(&now.worker[i], &expected));
	}
	for (unsigned int i = 2; i < TALLY_WORKERS_MAX; i++)
		assert_int_equal(now.worker[i].ss_family, 0);
}

static void a_run_holds_two_slots_a_chunk_until_all_have_left(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(3);

	assert_int_equal(job_slots(j), 128);
	assert_int_equal(job_slots_wanted(j), 256);
	assert_true(job_is_whole(j));
	assert_false(job_leave(j, 2, 42));
	assert_false(job_is_whole(j));
	assert_false(job_leave(j, 0, 42));
	assert_int_equal(job_slots(j), 128);
	assert_false(job_leave(j, 0, 42)); /* again */
	assert_true(job_leave(j, 1, 42));
	assert_int_equal(job_slots(j), 0);
	assert_true(j->draw.nonce == 0);
	assert_false(job_leave(j, 1, 42));
	assert_int_equal(j->epoch, 42);
}

static void another_epoch_or_rank_cannot_leave(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(1);

	assert_false(job_leave(j, 0, 41));
	assert_false(job_leave(j, 0, 43));
	assert_false(job_leave(j, 1, 42));
	assert_false(job_leave(j, 0xffff, 42));
	assert_int_equal(j->rank[0].presence, JOB_RUNNING);
	assert_false(job_is_at(j, 0, 41));
	assert_false(job_is_at(j, 1, 42));
	assert_true(job_is_at(j, 0, 42));
	assert_true(job_leave(j, 0, 42));
	assert_false(job_is_at(j, 0, 42));
}

static void the_epoch_wraps(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(1);
	static struct run next;

	j->epoch = UINT16_MAX;
	comes(j, 0, 0, 0);
	job_next_run(j, 1, &next);
	assert_int_equal(next.epoch, 0);
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, 1, false);
	assert_int_equal(j->epoch, 0);
	assert_true(job_leave(j, 0, 0));
}

static void a_rank_that_left_may_be_taken_for_the_next_run(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(2);

	refused(j, -1, 7, -EUSERS, "all 2 ranks of job resnet are taken");
	assert_false(job_leave(j, 1, 42));
	comes(j, -1, 7, 1);
	assert_false(job_is_ready(j)); /* rank 0 is still at the run that goes on */
	assert_int_equal(j->rank[1].presence, JOB_LEFT);
	assert_true(job_leave(j, 0, 42)); /* who waits does not keep it */
	assert_true(j->rank[1].waiting);
	comes(j, -1, 8, 0);
	assert_true(job_is_ready(j));
}

static void who_waits_does_not_touch_the_run_that_goes_on(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(2);
	static struct run before, after;

	job_this_run(j, &before);
	assert_false(job_leave(j, 0, 42));
	comes(j, 0, 9, 0);
	job_this_run(j, &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(j->run_window, 64);
}

static void another_agent_finds_ranks_detached(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(3);

	assert_false(job_leave(j, 1, 42));
	comes(j, 1, 9, 1);
	job_detach(j);
	assert_int_equal(j->rank[0].presence, JOB_DETACHED);
	assert_int_equal(j->rank[1].presence, JOB_LEFT);
	assert_int_equal(j->rank[2].presence, JOB_DETACHED);
	assert_false(j->rank[1].waiting);
	assert_int_equal(job_slots(j), 128);
	comes(j, 0, 0, 0); /* the same worker, with the same address */
	assert_false(job_leave(j, 0, 42));
	assert_true(job_leave(j, 2, 42));
}

static void a_run_of_detached_ranks_is_replaced_when_all_have_come(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(2);

	job_detach(j);
	comes(j, -1, 5, 0);
	comes(j, -1, 6, 1);
	assert_true(job_is_ready(j));
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, 16, false);
	assert_int_equal(j->epoch, 43);
	assert_int_equal(job_slots(j), 32);
	assert_false(job_leave(j, 0, 42)); /* who was in the run before */
	assert_int_equal(j->rank[0].presence, JOB_RUNNING);
}

static void an_ended_run_leaves_who_waits_waiting(void **state)
{
	_cleanup_(job_freep) struct job *j = job_running(2);

	assert_false(job_leave(j, 0, 42));
	comes(j, 0, 5, 0);
	job_end(j);
	assert_int_equal(job_slots(j), 0);
	assert_int_equal(j->rank[0].presence, JOB_ABSENT);
	assert_int_equal(j->rank[1].presence, JOB_ABSENT);
	assert_true(j->rank[0].waiting);
	comes(j, -1, 6, 1);
	assert_true(job_is_ready(j));
}

static void a_connection_stays_through_begin(void **state)
{
	_cleanup_(job_freep) struct job *j = job_of(2);
	int here;

	comes(j, -1, 0, 0);
	comes(j, -1, 1, 1);
	j->rank[1].connection = &here;
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, 1, false);
	assert_null(j->rank[0].connection);
	assert_ptr_equal(j->rank[1].connection, &here);
}

/* --- random days ----------------------------------------------------------------------------- */

enum {
	RANKS = 4,
	PEOPLE = 7, /* more than ranks, so that they quarrel */
	DAYS = 300,
	STEPS = 300,
};

/* Each worker says for itself what it is; nobody keeps a table of ranks. */
static struct {
	int waits, runs; /* which rank, or -1 */
	int left; /* a rank of the run that it has left or was detached from, or -1 */
	bool detached;
} person[PEOPLE];
static bool run_on;
static uint16_t epoch;

static void everyone_forgets_the_run(void)
{
	for (int n = 0; n < PEOPLE; n++) {
		person[n].runs = person[n].left = -1;
		person[n].detached = false;
	}
	run_on = false;
}

static int holder_of(int rank)
{
	for (int n = 0; n < PEOPLE; n++)
		if (person[n].waits == rank || person[n].runs == rank)
			return n;
	return -1;
}

static void one_comes(struct job *j, int n, int wanted)
{
	const struct sockaddr_storage address = worker(n);
	int rank = wanted, expected = 0;
	uint16_t got = 0xffff;

	for (rank = wanted < 0 ? 0 : wanted; wanted < 0 && rank < RANKS; rank++)
		if (holder_of(rank) < 0)
			break;
	if (wanted >= RANKS)
		expected = -ERANGE;
	else if (rank == RANKS)
		expected = -EUSERS;
	else if (holder_of(rank) >= 0 || person[n].waits >= 0 || person[n].runs >= 0)
		expected = -EADDRINUSE;
	assert_int_equal(job_join(j, wanted, &address, &got, &why), expected);
	if (expected == 0) {
		assert_int_equal(got, rank);
		person[n].waits = rank;
	}
}

static void all_begin(struct job *j)
{
	int waiting = 0;

	for (int n = 0; n < PEOPLE; n++)
		waiting += person[n].waits >= 0;
	assert_int_equal(job_is_ready(j), waiting == RANKS);
	if (waiting < RANKS)
		return;
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, 8, false);
	everyone_forgets_the_run();
	for (int n = 0; n < PEOPLE; n++) {
		person[n].runs = person[n].waits;
		person[n].waits = -1;
	}
	run_on = true;
	epoch++;
}

static void one_leaves(struct job *j, int n, uint16_t of)
{
	bool over = run_on && of == epoch;
	int rank = person[n].runs >= 0 ? person[n].runs : person[n].left;

	if (rank < 0)
		return;
	for (int other = 0; other < PEOPLE; other++)
		over &= other == n || (person[other].runs < 0 && !person[other].detached);
	assert_int_equal(job_leave(j, rank, of), over);
	if (of != epoch || !run_on)
		return;
	person[n].left = rank;
	person[n].runs = -1;
	person[n].detached = false;
	if (over)
		everyone_forgets_the_run();
}

static void all_are_detached(struct job *j)
{
	job_detach(j);
	for (int n = 0; n < PEOPLE; n++) {
		person[n].waits = -1;
		if (person[n].runs < 0)
			continue;
		person[n].left = person[n].runs;
		person[n].runs = -1;
		person[n].detached = true;
	}
}

static void job_is_as_people_say(const struct job *j)
{
	assert_int_equal(j->epoch, epoch);
	assert_int_equal(j->run_window, run_on ? 8 : 0);
	for (int rank = 0; rank < RANKS; rank++) {
		enum job_presence presence = run_on ? JOB_LEFT : JOB_ABSENT;
		int holders = 0, waits = 0;

		for (int n = 0; n < PEOPLE; n++) {
			holders += (person[n].waits == rank) + (person[n].runs == rank);
			waits += person[n].waits == rank;
			if (person[n].runs == rank)
				presence = JOB_RUNNING;
			if (person[n].left == rank && person[n].detached)
				presence = JOB_DETACHED;
		}
		assert_in_range(holders, 0, 1);
		assert_int_equal(j->rank[rank].waiting, waits);
		assert_int_equal(j->rank[rank].presence, presence);
	}
}

static void something_happens(struct job *j)
{
	int n = rand() % PEOPLE;

	switch (rand() % 16) {
	case 0:
		all_are_detached(j);
		break;
	case 1:
		if (rand() % 4 == 0) {
			job_end(j);
			everyone_forgets_the_run();
		}
		break;
	case 2:
	case 3:
		if (person[n].waits >= 0)
			job_unjoin(j, person[n].waits);
		person[n].waits = -1;
		break;
	case 4:
		one_leaves(j, n, epoch - rand() % 2);
		break;
	case 5:
	case 6:
		one_leaves(j, n, epoch);
		break;
	case 7:
	case 8:
	case 9:
		all_begin(j);
		break;
	default:
		one_comes(j, n, rand() % 2 ? -1 : rand() % (RANKS + 1));
	}
	job_is_as_people_say(j);
	for (n = 0; n < RANKS; n++)
		assert_int_equal(job_is_at(j, n, epoch),
				 j->rank[n].presence == JOB_RUNNING ||
					 j->rank[n].presence == JOB_DETACHED);
}

static void random_days_go_as_a_slow_model_says(void **state)
{
	unsigned int runs = 0;

	for (unsigned int day = 0; day < DAYS; day++) {
		_cleanup_(job_freep) struct job *j = job_of(RANKS);

		srand(day);
		everyone_forgets_the_run();
		for (int n = 0; n < PEOPLE; n++)
			person[n].waits = -1;
		epoch = j->epoch = day % 2 ? 41 : UINT16_MAX - 1;
		for (unsigned int step = 0; step < STEPS; step++)
			something_happens(j);
		runs += (uint16_t)(epoch - (day % 2 ? 41 : UINT16_MAX - 1));
	}
	assert_in_range(runs, DAYS, DAYS * STEPS); /* the model is not asleep */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_job_has_its_facts_and_nobody),
		cmocka_unit_test(freeing_nothing_is_allowed),
		cmocka_unit_test(any_rank_is_the_lowest_that_is_free),
		cmocka_unit_test(ranks_begin_at_0_and_end_before_workers),
		cmocka_unit_test(in_a_written_tree_each_worker_says_its_rank),
		cmocka_unit_test(a_long_tree_is_cut),
		cmocka_unit_test(a_taken_rank_says_by_whom),
		cmocka_unit_test(an_address_is_taken_once),
		cmocka_unit_test(another_family_is_refused),
		cmocka_unit_test(who_goes_before_the_run_frees_rank_and_address),
		cmocka_unit_test(missing_are_those_nobody_waits_for),
		cmocka_unit_test(the_next_run_is_told_as_a_job_file_before_it_begins),
		cmocka_unit_test(a_run_holds_two_slots_a_chunk_until_all_have_left),
		cmocka_unit_test(another_epoch_or_rank_cannot_leave),
		cmocka_unit_test(the_epoch_wraps),
		cmocka_unit_test(a_rank_that_left_may_be_taken_for_the_next_run),
		cmocka_unit_test(who_waits_does_not_touch_the_run_that_goes_on),
		cmocka_unit_test(another_agent_finds_ranks_detached),
		cmocka_unit_test(a_run_of_detached_ranks_is_replaced_when_all_have_come),
		cmocka_unit_test(an_ended_run_leaves_who_waits_waiting),
		cmocka_unit_test(a_connection_stays_through_begin),
		cmocka_unit_test(random_days_go_as_a_slow_model_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
