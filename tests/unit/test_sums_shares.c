// SPDX-License-Identifier: GPL-2.0-only
/* The spill's memory between tenants: who has most gives way, and nobody else. */
#include <errno.h>

#include "tests/unit/random.h"
#include "tests/unit/sums_world.h"

enum {
	CALM = TENANT,
	FLOOD = TENANT + 1,
	TENANTS = 3,
	JOBS = 4, /* of a tenant */
	SUMS = 24, /* that memory has room for */
};

/* Jobs of tenant t have the numbers 100 * t and up. The one of the world is tenant CALM's. */
static void job_of(struct world *w, uint32_t id, uint16_t tenant)
{
	struct spill_child child[WORKERS] = { 0 };

	for (unsigned int i = 0; i < WORKERS; i++)
		tally_set_add(&child[i].below, i);
	assert_int_equal(
		spill_job_put(w->spill, &(struct spill_job_options){ .everyone = w->everyone,
								     .service = w->service,
								     .id = id,
								     .tenant = tenant,
								     .epoch = EPOCH,
								     .window = WINDOW,
								     .payload_bytes = SUM_BYTES,
								     .children = WORKERS,
								     .child = child }),
		0);
}

static enum tally_outcome give_at(struct world *w, uint32_t job, struct message m, uint64_t now_ns)
{
	struct spill_reply reply;

	m.header.job = tally_le32(job);
	tag(&m);
	return spill_message(w->spill, &m.header, message_bytes(&m), &w->service, NULL, now_ns,
			     &reply);
}

static enum tally_outcome contribute_at(struct world *w, uint32_t job, uint32_t seq,
					unsigned int rank, unsigned int ms)
{
	return give_at(w, job, contribution(seq, rank, BLOCKS), NOW_NS + ms * 1000000ull);
}

static enum tally_outcome contribute_to(struct world *w, uint32_t job, uint32_t seq,
					unsigned int rank)
{
	return give_at(w, job, contribution(seq, rank, BLOCKS), NOW_NS);
}

static size_t sums_of(const struct world *w, uint16_t tenant)
{
	return spill_memory(w->spill).tenant_bytes[tenant] / SUM_BYTES;
}

static void finish_of(struct world *w, uint32_t job, uint32_t seq)
{
	for (unsigned int rank = 0; rank < WORKERS; rank++)
		assert_int_equal(contribute_to(w, job, seq, rank),
				 rank + 1 < WORKERS ? TALLY_ABSORBED : TALLY_COMPLETED);
}

/* --- one that floods */

/*
 * Sums that are never finished, of as many jobs as it takes, and none of them stalls: each grows
 * again within half a second, by a message that needs no memory.
 */
static void flood(struct world *w, uint32_t n, uint64_t now_ns)
{
	const uint32_t jobs = SUMS / WINDOW, slots = jobs * 2 * WINDOW;
	const uint32_t round = n / slots, slot = n % slots;

	give_at(w, 100 + slot % jobs,
		contribution(slot / jobs + round / (WORKERS - 1) * 2 * WINDOW,
			     round % (WORKERS - 1), round % (WORKERS - 1) ? 0 : BLOCKS),
		now_ns);
}

/* How many messages a tenant sends for 500 chunks, each again and again until it is taken. */
static unsigned int messages_of_500_chunks(struct world *w, unsigned int flood_of_each)
{
	unsigned int sent = 0;
	uint64_t now_ns = NOW_NS;
	uint32_t n = 0;

	for (uint32_t seq = 0; seq < 500; seq++) {
		for (unsigned int rank = 0; rank < WORKERS && sent < 10000; sent++) {
			for (unsigned int i = 0; i < flood_of_each; i++)
				flood(w, n++, now_ns);
			now_ns += 5 * 1000000; /* a slot of the flood grows every 240 ms */
			rank += give_at(w, JOB, contribution(seq, rank, BLOCKS), now_ns) !=
				TALLY_NO_MEMORY;
		}
	}
	return sent;
}

static void who_floods_costs_the_other_nothing(void **state)
{
	struct world w;

	world_make(&w, SUMS);
	for (uint32_t id = 0; id < SUMS / WINDOW; id++)
		job_of(&w, 100 + id, FLOOD);
	for (uint32_t n = 0; n < 2 * SUMS; n++)
		flood(&w, n, NOW_NS);
	assert_int_equal(sums_of(&w, FLOOD), SUMS);
	assert_int_equal(messages_of_500_chunks(&w, 1), 500 * WORKERS);
	assert_int_equal(spill_counters(w.spill, (uint32_t[]){ JOB })[TALLY_COMPLETED].packet, 500);
	assert_int_equal(sums_of(&w, CALM), 2 * WINDOW); /* all of its slots */
	assert_int_equal(sums_of(&w, FLOOD), SUMS - 2 * WINDOW);
	spill_free(w.spill);
}

/* --- who gives way */

static void it_gives_way_with_what_it_needs_least(void **state)
{
	struct world w;

	world_make(&w, 4);
	job_of(&w, 100, FLOOD);
	job_of(&w, 101, FLOOD);
	finish_of(&w, 101, 0);
	assert_int_equal(contribute_to(&w, 100, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 0, 1), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 2, 0), TALLY_ABSORBED);
	/* Its finished sum first, then that of its latest chunk. */
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, FLOOD), 3);
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, FLOOD), 2);
	assert_int_equal(contribute_to(&w, 100, 0, 2), TALLY_COMPLETED);
	assert_int_equal(contribute_to(&w, 100, 1, 1), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 2), TALLY_COMPLETED);
	spill_free(w.spill);
}

/* Also where the slot was in use before. */
static void a_chunk_is_the_latest_from_when_it_begins(void **state)
{
	struct world w;

	world_make(&w, 2);
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 2, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 1 + 2 * WINDOW, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 3, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 2, 0), TALLY_DUPLICATE);
	spill_free(w.spill);
}

/* Nobody takes sums that are alive to and fro. */
static void equals_take_nothing_from_each_other(void **state)
{
	struct world w;

	world_make(&w, 3);
	job_of(&w, 100, FLOOD);
	assert_int_equal(contribute_to(&w, 100, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(contribute(&w, 1, 0), TALLY_NO_MEMORY);
		assert_int_equal(contribute_to(&w, 100, 2, 0), TALLY_NO_MEMORY);
	}
	assert_int_equal(spill_memory(w.spill).evicted, 0);
	/* What is finished goes, and leaves no less than the other one has. */
	assert_int_equal(contribute_to(&w, 100, 0, 1), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 0, 2), TALLY_COMPLETED);
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 2, 0), TALLY_NO_MEMORY);
	assert_int_equal(sums_of(&w, FLOOD), 1);
	spill_free(w.spill);
}

static void among_equals_each_gives_way_to_itself(void **state)
{
	struct world w;

	world_make(&w, 3);
	job_of(&w, 100, FLOOD);
	assert_int_equal(contribute_to(&w, 100, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_ABSORBED);
	finish_of(&w, JOB, 0);
	assert_int_equal(contribute(&w, 3, 0), TALLY_ABSORBED); /* for a finished sum */
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED); /* for a later chunk */
	assert_int_equal(contribute(&w, 2, 0), TALLY_NO_MEMORY);
	assert_int_equal(sums_of(&w, FLOOD), 2);
	spill_free(w.spill);
}

/* Numbers wrap: chunk 1 comes after this one. */
static void a_later_chunk_gives_way_where_numbers_wrap(void **state)
{
	struct world w;

	world_make(&w, 1);
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0xfffffffe, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 1, 0), TALLY_NO_MEMORY);
	spill_free(w.spill);
}

/* The job that has waited longer keeps all it has. */
static void the_job_whose_sum_grew_last_gives_way(void **state)
{
	struct world w;

	world_make(&w, 4);
	job_of(&w, 100, FLOOD);
	job_of(&w, 101, FLOOD);
	for (uint32_t id = 100; id < 102; id++)
		for (uint32_t seq = 0; seq < 2; seq++)
			assert_int_equal(contribute_to(&w, id, seq, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_DUPLICATE);
	assert_int_equal(contribute_to(&w, 101, 0, 0), TALLY_DUPLICATE);
	assert_int_equal(contribute_to(&w, 101, 1, 0), TALLY_NO_MEMORY);
	spill_free(w.spill);
}

/* Whoever repeats what is there would keep a sum for ever that nobody finishes. */
static void a_repetition_keeps_no_sum_alive(void **state)
{
	struct world w;

	world_make(&w, 1);
	assert_int_equal(contribute_at(&w, JOB, 0, 0, 0), TALLY_ABSORBED);
	for (unsigned int ms = 250; ms < 1000; ms += 250)
		assert_int_equal(contribute_at(&w, JOB, 0, 0, ms), TALLY_DUPLICATE);
	assert_int_equal(contribute_at(&w, JOB, 1, 0, 999), TALLY_NO_MEMORY);
	assert_int_equal(contribute_at(&w, JOB, 1, 0, 1000), TALLY_ABSORBED);
	spill_free(w.spill);
}

static void who_has_most_gives_way_with_what_has_stalled_first(void **state)
{
	struct world w;

	world_make(&w, 3);
	job_of(&w, 100, FLOOD);
	job_of(&w, 200, FLOOD + 1);
	finish_of(&w, JOB, 0); /* idle as well, and of a tenant that has less */
	assert_int_equal(contribute_to(&w, 100, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute_at(&w, 200, 0, 0, 1000), TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, CALM), 1);
	assert_int_equal(sums_of(&w, FLOOD), 1);
	spill_free(w.spill);
}

/* Somebody who lacks the result asks for it again. */
static void what_is_finished_is_idle_a_second_after_it_was_wanted(void **state)
{
	struct world w;

	world_make(&w, 3);
	job_of(&w, 100, FLOOD);
	finish_of(&w, JOB, 0);
	assert_int_equal(contribute_at(&w, JOB, 0, 0, 500), TALLY_ANSWERED);
	assert_int_equal(contribute_at(&w, 100, 0, 0, 600), TALLY_ABSORBED);
	assert_int_equal(contribute_at(&w, 100, 1, 0, 600), TALLY_ABSORBED);
	assert_int_equal(contribute_at(&w, 100, 2, 0, 1499), TALLY_NO_MEMORY);
	assert_int_equal(contribute_at(&w, 100, 2, 0, 1500), TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, CALM), 0);
	spill_free(w.spill);
}

/* Otherwise what a pausing tenant leaves behind would be out of use for ever. */
static void what_is_idle_serves_whoever_wants_it(void **state)
{
	struct world w;

	world_make(&w, 4);
	job_of(&w, 100, FLOOD);
	finish_of(&w, 100, 0);
	assert_int_equal(contribute_to(&w, 100, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 1, 0), TALLY_ABSORBED);
	assert_int_equal(contribute(&w, 2, 0), TALLY_NO_MEMORY);
	for (uint64_t rank = 1; rank < WORKERS; rank++) /* these are in use */
		for (uint32_t seq = 0; seq < 2; seq++)
			give_at(&w, JOB, contribution(seq, rank - 1, BLOCKS), NOW_NS + 999000000);
	assert_int_equal(give_at(&w, JOB, contribution(2, 0, BLOCKS), NOW_NS + 999000000),
			 TALLY_NO_MEMORY);
	assert_int_equal(give_at(&w, JOB, contribution(2, 0, BLOCKS), NOW_NS + 1000000000),
			 TALLY_ABSORBED);
	assert_int_equal(give_at(&w, JOB, contribution(3, 0, BLOCKS), NOW_NS + 1000000000),
			 TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, FLOOD), 0);
	spill_free(w.spill);
}

static void a_job_of_another_tenant_is_another_job(void **state)
{
	struct world w;

	world_make(&w, 4);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	job_of(&w, JOB, FLOOD);
	assert_int_equal(sums_of(&w, CALM) + sums_of(&w, FLOOD), 0);
	assert_int_equal(contribute(&w, 0, 0), TALLY_ABSORBED);
	assert_int_equal(sums_of(&w, FLOOD), 1);
	assert_int_equal(
		spill_job_put(w.spill, &(struct spill_job_options){ .everyone = w.everyone,
								    .tenant = TALLY_TENANTS_MAX,
								    .window = WINDOW,
								    .payload_bytes = SUM_BYTES }),
		-EINVAL);
	spill_free(w.spill);
}

/* --- whatever comes */

static size_t most_of_others(const struct world *w, uint16_t tenant)
{
	size_t most = 0;

	for (unsigned int t = 1; t <= TENANTS; t++)
		if (t != tenant && sums_of(w, t) > most)
			most = sums_of(w, t);
	return most;
}

/* Who is refused has as much as anybody else, or would have more; and who has less loses none. */
static const char *one_message(struct world *w, uint64_t *random, uint64_t *now_ns)
{
	const uint16_t tenant = 1 + random_below(random, TENANTS);
	struct message m = contribution(random_below(random, 4 * WINDOW),
					random_below(random, WORKERS),
					chance(random, 300) ? 0 : BLOCKS);
	size_t before[TENANTS + 1], all = 0;
	enum tally_outcome out;

	for (unsigned int t = 1; t <= TENANTS; t++)
		before[t] = sums_of(w, t);
	*now_ns += random_below(random, 50) * 1000000;
	out = give_at(w, 100 * tenant + random_below(random, JOBS), m, *now_ns);
	if (out == TALLY_NO_MEMORY && most_of_others(w, tenant) > sums_of(w, tenant) + 1)
		return "refused, while another one has more";
	for (unsigned int t = 1; t <= TENANTS; t++) {
		all += sums_of(w, t);
		if (t != tenant && sums_of(w, t) > before[t])
			return "somebody else got memory";
	}
	if (all * SUM_BYTES != spill_memory(w->spill).bytes || all > SUMS / 2)
		return "the tenants' bytes are not all bytes";
	settle(w);
	return NULL;
}

static const char *world_runs(uint64_t seed)
{
	const char *wrong = NULL;
	uint64_t random = seed, now_ns = NOW_NS;
	struct world w;

	world_make(&w, SUMS / 2);
	for (unsigned int tenant = 1; tenant <= TENANTS; tenant++)
		for (uint32_t id = 0; id < JOBS; id++)
			job_of(&w, 100 * tenant + id, tenant);
	for (int i = 0; i < MESSAGES && !wrong; i++)
		wrong = one_message(&w, &random, &now_ns);
	spill_free(w.spill);
	return wrong;
}

static void nobody_is_refused_while_others_have_more(void **state) { run_seeds(1000, world_runs); }

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_floods_costs_the_other_nothing),
		cmocka_unit_test(it_gives_way_with_what_it_needs_least),
		cmocka_unit_test(a_chunk_is_the_latest_from_when_it_begins),
		cmocka_unit_test(equals_take_nothing_from_each_other),
		cmocka_unit_test(among_equals_each_gives_way_to_itself),
		cmocka_unit_test(a_later_chunk_gives_way_where_numbers_wrap),
		cmocka_unit_test(the_job_whose_sum_grew_last_gives_way),
		cmocka_unit_test(a_repetition_keeps_no_sum_alive),
		cmocka_unit_test(who_has_most_gives_way_with_what_has_stalled_first),
		cmocka_unit_test(what_is_finished_is_idle_a_second_after_it_was_wanted),
		cmocka_unit_test(what_is_idle_serves_whoever_wants_it),
		cmocka_unit_test(a_job_of_another_tenant_is_another_job),
		cmocka_unit_test(nobody_is_refused_while_others_have_more),
	};

	return cmocka_run_group_tests_name("sums_shares", tests, NULL, NULL);
}
