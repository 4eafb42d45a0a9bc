// SPDX-License-Identifier: GPL-2.0-only
/* The spill's sums in jobs with rank keys: as the data plane, tests/bpf/test_key.c. */
#include <errno.h>

#include "tests/unit/sums_world.h"

static struct tally_key key_of(unsigned int rank)
{
	return (struct tally_key){ { tally_mix(rank, 1), tally_mix(rank, 2) } };
}

static void keys_put(struct world *w)
{
	struct tally_key key[TALLY_WORKERS_MAX] = { 0 };

	for (unsigned int rank = 0; rank < WORKERS; rank++)
		key[rank] = key_of(rank);
	assert_int_equal(put_keyed(w, JOB, EPOCH, WORKERS, key), 0);
}

static void world_make_keyed(struct world *w)
{
	world_make(w, 2 * WINDOW);
	keys_put(w);
}

static uint64_t tag_with(const void *header, const struct tally_key *key)
{
	struct tally_header h;
	struct tally_set set;

	memcpy(&h, header, sizeof(h));
	set = tally_header_set(&h);
	return tally_keyed_tag(&h, &set, key);
}

static struct message tagged(struct message m, const struct tally_key *key)
{
	m.header.tag = tally_le64(tag_with(&m.header, key));
	return m;
}

static void assert_tagged_for(const void *header, unsigned int rank)
{
	struct tally_key key = key_of(rank);
	struct tally_header h;

	memcpy(&h, header, sizeof(h));
	assert_int_equal(tally_le64_get(h.tag), tag_with(&h, &key));
}

static void who_has_not_the_key_forges_nothing(void **state)
{
	const struct tally_key key[] = { key_of(0), key_of(1), { { 0 } } };
	struct message m = contribution(0, 0, BLOCKS), repair = m;
	uint32_t id = JOB;
	struct spill_reply reply;
	struct world w;

	world_make_keyed(&w);
	assert_int_equal(give(&w, &m, &reply), TALLY_FORGED);
	m = tagged(m, &key[1]);
	assert_int_equal(give(&w, &m, &reply), TALLY_FORGED);
	repair.header.kind = TALLY_REPAIR;
	repair.header.set = tally_le64((1 << WORKERS) - 1);
	for (unsigned int rank = WORKERS; rank <= TALLY_WORKERS_MAX; rank++) {
		repair.header.sender = tally_le16(rank);
		repair = tagged(repair, &key[2]); /* what is kept for ranks that are not there */
		assert_int_equal(give(&w, &repair, &reply), TALLY_FORGED);
	}
	assert_int_equal(reply.to, TALLY_TO_NOBODY);
	assert_int_equal(spill_counters(w.spill, &id)[TALLY_FORGED].packet, 0);
	assert_int_equal(spill_counters(w.spill, NULL)[TALLY_FORGED].packet,
			 2 + TALLY_WORKERS_MAX + 1 - WORKERS);
	m = tagged(m, &key[0]);
	assert_int_equal(give(&w, &m, &reply), TALLY_ABSORBED);
	spill_free(w.spill);
}

/* Of what ranks 0 and 1 have sent, as a node adds it; `number`: of the key. */
static enum tally_outcome give_several(struct world *w, uint16_t sender, unsigned int number)
{
	const struct tally_key key = key_of(number);
	struct message m = contribution(0, sender, BLOCKS);
	struct spill_reply reply;

	m.header.set = tally_le64(3);
	m = tagged(m, &key);
	return give(w, &m, &reply);
}

/* No rank speaks for another one, also not for both of them. */
static void a_sum_of_several_has_the_node_key(void **state)
{
	const struct tally_key node_key = key_of(TALLY_NODE_KEY), zeros = { { 0 } },
			       one = key_of(0);
	struct message m = contribution(0, 0, BLOCKS);
	struct spill_reply reply;
	struct world w;

	world_make_keyed(&w);
	for (unsigned int number = 0; number < 2; number++)
		assert_int_equal(give_several(&w, number, number), TALLY_FORGED);
	assert_int_equal(give_several(&w, 0, TALLY_NODE_KEY), TALLY_FORGED);
	m.header.set = tally_le64(3);
	m = tagged(m, &zeros); /* what is kept for a key that is not there */
	assert_int_equal(give(&w, &m, &reply), TALLY_FORGED);
	w.node_key = &node_key;
	keys_put(&w);
	for (unsigned int number = 0; number < 2; number++)
		assert_int_equal(give_several(&w, number, number), TALLY_FORGED);
	assert_int_equal(give_several(&w, 2, TALLY_NODE_KEY), TALLY_FORGED); /* not in the sum */
	m = contribution(0, 0, BLOCKS);
	m = tagged(m, &node_key);
	assert_int_equal(give(&w, &m, &reply), TALLY_FORGED);
	m = tagged(m, &one);
	assert_int_equal(give_several(&w, 1, TALLY_NODE_KEY), TALLY_ABSORBED);
	assert_int_equal(give(&w, &m, &reply), TALLY_DUPLICATE);
	spill_free(w.spill);
}

/* Copies, also those without payload, and answers. */
static void what_leaves_has_a_tag_for_each_worker(void **state)
{
	uint64_t header[SPILL_HEADER_WORDS];
	const struct spill_child *child;
	struct spill_reply reply;
	unsigned int children;
	struct world w;

	world_make_keyed(&w);
	for (unsigned int rank = 0; rank < WORKERS; rank++) {
		struct message m = contribution(0, rank, BLOCKS);
		struct tally_key key = key_of(rank);

		m.header.recipient = tally_le16(1);
		m = tagged(m, &key);
		give(&w, &m, &reply);
	}
	assert_int_equal(reply.to, TALLY_TO_GROUP);
	child = spill_children(reply.job, &children);
	assert_int_equal(children, WORKERS);
	for (unsigned int rank = 0; rank < WORKERS; rank++) {
		struct message m = contribution(0, rank, BLOCKS);
		struct tally_key key = key_of(rank);
		struct spill_reply answer;

		assert_int_equal(spill_copy(&reply, &child[rank], header),
				 rank == 1 ? SUM_BYTES : 0);
		assert_tagged_for(header, rank);
		m.header.recipient = tally_le16(1);
		m = tagged(m, &key);
		assert_int_equal(give(&w, &m, &answer), TALLY_ANSWERED);
		assert_tagged_for(answer.header, rank);
	}
	spill_free(w.spill);
}

/* Also one with a single rank below, to which the key of that rank says nothing. */
static void what_goes_to_a_node_has_the_node_key(void **state)
{
	struct tally_key key[TALLY_WORKERS_MAX] = { 0 };
	const struct tally_key node_key = key_of(TALLY_NODE_KEY);
	struct spill_child child[2] = { { .key = TALLY_NODE_KEY }, { .key = TALLY_NODE_KEY } };
	uint64_t header[SPILL_HEADER_WORDS];
	struct spill_reply reply;
	struct spill_job_options o;
	struct world w;

	world_make(&w, 2 * WINDOW);
	child[0].below = tally_set_first(WORKERS - 1);
	tally_set_add(&child[1].below, WORKERS - 1);
	for (unsigned int rank = 0; rank < WORKERS; rank++)
		key[rank] = key_of(rank);
	o = (struct spill_job_options){ .everyone = w.everyone,
					.service = w.service,
					.id = JOB,
					.epoch = EPOCH,
					.window = WINDOW,
					.payload_bytes = SUM_BYTES,
					.children = 2,
					.child = child,
					.key = key };
	assert_int_equal(spill_job_put(w.spill, &o), -EINVAL);
	o.node_key = &node_key;
	assert_int_equal(spill_job_put(w.spill, &o), 0);
	for (unsigned int rank = 0; rank < WORKERS; rank++) {
		struct message m = contribution(0, rank, BLOCKS);

		m = tagged(m, &key[rank]);
		give(&w, &m, &reply);
	}
	assert_int_equal(reply.to, TALLY_TO_GROUP);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(spill_copy(&reply, &child[i], header), SUM_BYTES);
		assert_tagged_for(header, TALLY_NODE_KEY);
	}
	spill_free(w.spill);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_not_the_key_forges_nothing),
		cmocka_unit_test(a_sum_of_several_has_the_node_key),
		cmocka_unit_test(what_leaves_has_a_tag_for_each_worker),
		cmocka_unit_test(what_goes_to_a_node_has_the_node_key),
	};

	return cmocka_run_group_tests_name("sums with keys", tests, NULL, NULL);
}
