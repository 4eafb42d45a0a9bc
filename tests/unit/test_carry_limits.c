// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nobody keeps the others waiting for what inner nodes are to be told (agent/core/carry.h): tenants
 * with many inner nodes, some of which say nothing, in time of their own. TALLY_SEED=n runs one
 * random world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/carry.h"
#include "common/address.h"
#include "tests/unit/random.h"

#define MS 1000000ull
#define S 1000000000ull

enum {
	TENANTS = 4,
	ADDRESSES = 256,
	ANSWER_MS = 5,
	SILENT_S = 13, /* three to connect, and ten for the rest */
	SEEDS = 60,
	STEPS = 100,
};

enum manner {
	ANSWERS,
	REFUSES,
	SAYS_NOTHING,
};

struct talk {
	struct carry_way *way;
	uint64_t end_ns;
	enum manner manner;
};

static struct {
	struct books books;
	struct carry carry;
	uint64_t now_ns;
	enum manner manner[ADDRESSES];
	unsigned int talks;
	struct talk talk[2 * CARRY_UNDER_WAY_MAX];
	uint32_t jobs; /* that there ever were */
	unsigned int told[TENANTS];
	struct { /* what the slow version knows of an address */
		uint64_t wait_ns, due_ns;
	} silent[ADDRESSES];
} w;

static void address_of(unsigned int index, struct sockaddr_storage *ret)
{
	char text[ADDRESS_BYTES];

	snprintf(text, sizeof(text), "10.78.%u.%u", index / 250, index % 250 + 1);
	assert_int_equal(address_parse(text, 31249, ret), 0);
}

static unsigned int index_of(const struct carry_way *way)
{
	const uint8_t *byte = (const void *)&((const struct sockaddr_in *)&way->address)->sin_addr;

	return byte[2] * 250 + byte[3] - 1;
}

static unsigned int tenant_of(const struct carry_way *way) { return way->tenant->name[0] - 'a'; }

/* A job with a run, whose inner nodes are at these addresses. */
static struct job *job_add(unsigned int tenant, unsigned int first, unsigned int nodes)
{
	static struct tree tree;
	struct job facts = { .workers = 4, .epoch = 1, .id = ++w.jobs };
	struct job *j;
	struct why why;

	tree = (struct tree){ .nodes = nodes };
	for (unsigned int i = 0; i < nodes; i++) {
		snprintf(tree.node[i].name, sizeof(tree.node[i].name), "a%u", i);
		address_of(first + i, &tree.node[i].address);
	}
	snprintf(facts.name, sizeof(facts.name), "job%u", facts.id);
	snprintf(facts.tenant_name, sizeof(facts.tenant_name), "%c", 'a' + tenant);
	j = job_new(&facts);
	assert_non_null(j);
	assert_int_equal(job_tree_set(j, &tree), 0);
	j->run_window = 8;
	assert_int_equal(books_job_restore(&w.books, j, &why), 0);
	return j;
}

static void first_are(unsigned int addresses, enum manner manner)
{
	for (unsigned int i = 0; i < addresses; i++)
		w.manner[i] = manner;
}

static int begin(void **state)
{
	memset(&w, 0, sizeof(w));
	books_init(&w.books, 256);
	return 0;
}

static int end(void **state)
{
	carry_clear(&w.carry);
	assert_null(w.carry.addresses);
	assert_true(LIST_EMPTY(&w.carry.tenants));
	books_clear(&w.books);
	return 0;
}

/* --- the slow version ------------------------------------------------------------------------ */

/* When may it be told, if nothing else ends before? */
static uint64_t slow_ready_ns(const struct carry_way *way)
{
	const unsigned int address = index_of(way);
	unsigned int of_tenant = 0, at_address = 0;
	const bool silent = w.silent[address].wait_ns;

	for (unsigned int i = 0; i < w.talks; i++) {
		if (w.talk[i].way == way)
			return UINT64_MAX;
		of_tenant += tenant_of(w.talk[i].way) == tenant_of(way);
		at_address += index_of(w.talk[i].way) == address;
	}
	if (way->told || w.talks == 64 || of_tenant + 1 > 64 - w.talks ||
	    at_address >= (silent ? 1 : 4))
		return UINT64_MAX;
	return silent && w.silent[address].due_ns > way->due_ns ? w.silent[address].due_ns
								: way->due_ns;
}

static uint64_t slow_first_ns(void)
{
	uint64_t first_ns = UINT64_MAX;

	for (const struct carry_way *way = w.carry.first; way; way = way->next)
		if (slow_ready_ns(way) < first_ns)
			first_ns = slow_ready_ns(way);
	return first_ns;
}

static void slow_done(unsigned int address, enum manner manner)
{
	if (manner != SAYS_NOTHING) {
		w.silent[address].wait_ns = 0;
	} else if (!w.silent[address].wait_ns || w.now_ns >= w.silent[address].due_ns) {
		uint64_t wait_ns = 2 * w.silent[address].wait_ns;

		wait_ns = wait_ns ? wait_ns : 1 * S;
		w.silent[address].wait_ns = wait_ns < 60 * S ? wait_ns : 60 * S;
		w.silent[address].due_ns = w.now_ns + w.silent[address].wait_ns;
	}
}

/* --- the world ------------------------------------------------------------------------------- */

static void talk_begin(struct carry_way *way)
{
	const enum manner manner = w.manner[index_of(way)];

	w.talk[w.talks++] = (struct talk){
		way, w.now_ns + (manner == SAYS_NOTHING ? SILENT_S * S : ANSWER_MS * MS), manner
	};
}

static void talk_end(unsigned int index)
{
	const struct talk t = w.talk[index];
	const unsigned int address = index_of(t.way);

	w.talk[index] = w.talk[--w.talks];
	w.told[tenant_of(t.way)] += t.manner == ANSWERS;
	carry_done(&w.carry, t.way, t.manner == ANSWERS ? 0 : -ETIMEDOUT, "why", w.now_ns);
	slow_done(address, t.manner);
}

/* All that may be told now. The words: what is wrong. */
static const char *tell_all(void)
{
	struct carry_way *way;

	assert_int_equal(carry_look(&w.carry, &w.books, w.now_ns), 0);
	do {
		const uint64_t first_ns = slow_first_ns();

		if (carry_deadline_ns(&w.carry) != first_ns)
			return "another time than the slow version has";
		way = carry_next(&w.carry, w.now_ns);
		if (!way != (first_ns > w.now_ns))
			return "told, or not told, at another time than the slow version has";
		if (!way)
			break;
		if (slow_ready_ns(way) != first_ns)
			return "one was due longer";
		talk_begin(way);
	} while (true);
	return w.talks <= CARRY_UNDER_WAY_MAX ? NULL : "too many are under way";
}

/* To what comes next, an end or a beginning, if it comes until then. */
static bool time_goes(uint64_t until_ns)
{
	uint64_t next_ns = carry_deadline_ns(&w.carry);
	unsigned int i;

	for (i = 0; i < w.talks; i++)
		next_ns = w.talk[i].end_ns < next_ns ? w.talk[i].end_ns : next_ns;
	if (next_ns > until_ns)
		return false;
	w.now_ns = next_ns > w.now_ns ? next_ns : w.now_ns;
	for (i = 0; i < w.talks;)
		if (w.talk[i].end_ns <= w.now_ns)
			talk_end(i);
		else
			i++;
	return true;
}

static void run_to(uint64_t at_ns)
{
	const char *wrong = tell_all();

	while (!wrong && time_goes(at_ns))
		wrong = tell_all();
	w.now_ns = at_ns;
	if (wrong)
		fail_msg("%s", wrong);
}

/* --- facts ----------------------------------------------------------------------------------- */

static void hosts_that_say_nothing_hold_up_nobody_else(void **state)
{
	first_are(200, SAYS_NOTHING);
	for (unsigned int i = 0; i < 3; i++)
		job_add(0, i * 64, 64);
	run_to(100 * S);
	for (unsigned int i = 0; i < 30; i++) {
		const uint64_t began_ns = w.now_ns;

		job_add(1, 200, 2);
		run_to(began_ns + 2ull * ANSWER_MS * MS);
		assert_int_equal(w.told[1], 2 * i + 2);
	}
}

static void the_rest_of_a_tree_is_told_meanwhile(void **state)
{
	first_are(20, SAYS_NOTHING);
	job_add(0, 0, 64);
	run_to(1 * S);
	assert_int_equal(w.told[0], 44);
}

static void an_address_that_is_silent_makes_all_ways_to_it_wait(void **state)
{
	unsigned int most = 0;

	w.manner[0] = SAYS_NOTHING;
	for (unsigned int i = 0; i < 100; i++)
		job_add(i % TENANTS, 0, 1);
	run_to(0);
	assert_int_equal(w.talks, CARRY_ADDRESS_MAX);
	run_to((SILENT_S + 1) * S);
	while (w.now_ns < 1000 * S) {
		run_to(w.now_ns + 100 * MS);
		most = w.talks > most ? w.talks : most;
	}
	assert_int_equal(most, 1);
	for (struct carry_way *way = w.carry.first; way; way = way->next)
		assert_true(carry_is_away(way)); /* also who was never tried */
	w.manner[0] = ANSWERS;
	run_to(w.now_ns + 200 * S);
	assert_int_equal(w.told[0] + w.told[1] + w.told[2] + w.told[3], 100);
}

static void who_refuses_at_once_keeps_no_other_message_waiting(void **state)
{
	w.manner[0] = REFUSES;
	job_add(0, 0, 1);
	run_to(30 * S);
	w.manner[0] = ANSWERS;
	job_add(1, 0, 1);
	run_to(w.now_ns + 1ull * ANSWER_MS * MS);
	assert_int_equal(w.told[1], 1);
}

static void whoever_was_never_told_needs_no_farewell(void **state)
{
	struct job *j;

	first_are(64, SAYS_NOTHING);
	j = job_add(0, 0, 64);
	run_to(1 * S);
	assert_int_equal(w.talks, CARRY_UNDER_WAY_MAX / 2);
	books_job_del(&w.books, j);
	run_to(2 * S);
	assert_int_equal(w.carry.first->tenant->farewells, CARRY_UNDER_WAY_MAX / 2);
}

static void the_oldest_farewells_of_a_tenant_are_forgotten(void **state)
{
	const unsigned int jobs = CARRY_FAREWELLS_MAX / 64 + 2;
	struct carry_way *way;
	struct why why;
	unsigned int n = 0, red = 0;

	for (unsigned int i = 0; i < jobs; i++) {
		struct job *j = job_add(0, 0, 64), *other = i ? NULL : job_add(1, 0, 64);

		assert_int_equal(carry_look(&w.carry, &w.books, i), 0);
		while ((way = carry_next(&w.carry, i)))
			carry_done(&w.carry, way, way->farewell ? -ECONNREFUSED : 0, "why", i);
		books_job_del(&w.books, j);
		if (other)
			books_job_del(&w.books, other);
	}
	assert_int_equal(carry_look(&w.carry, &w.books, jobs), 0);
	for (way = w.carry.first; way; way = way->next) {
		n += tenant_of(way) == 0;
		red += tenant_of(way) == 1;
		assert_true(tenant_of(way) || way->id > 3); /* 1 and 3 are forgotten */
	}
	assert_int_equal(n, CARRY_FAREWELLS_MAX);
	assert_int_equal(red, 64);
	assert_non_null(carry_forgotten(&w.carry, NULL, &why));
	assert_string_equal(why.text,
			    "tenant a: 4096 inner nodes do not know yet that jobs are not there "
			    "any more; so the oldest farewells, 128 by now, are forgotten, and "
			    "these jobs stay where they were: tallyctl job del at their nodes");
	assert_null(carry_forgotten(&w.carry, carry_forgotten(&w.carry, NULL, &why), &why));
}

/* --- random worlds --------------------------------------------------------------------------- */

static const char *random_world(uint64_t seed)
{
	struct job *job[64] = { NULL };
	uint64_t random = seed;
	const char *wrong = NULL;

	begin(NULL);
	for (unsigned int i = 0; i < ADDRESSES; i++)
		w.manner[i] = random_below(&random, 3);
	for (unsigned int i = 0; i < STEPS && !wrong; i++) {
		const unsigned int k = random_below(&random, 64), first = random_below(&random, 40);

		if (!job[k])
			job[k] = job_add(k % TENANTS, first, 1 + random_below(&random, 12));
		else if (chance(&random, 500))
			books_job_del(&w.books, TAKE_PTR(job[k]));
		else
			job[k]->epoch++;
		w.manner[random_below(&random, 40)] = random_below(&random, 3);
		wrong = tell_all();
		for (unsigned int n = random_below(&random, 4);
		     n && !wrong && time_goes(UINT64_MAX - 1); n--)
			wrong = tell_all();
	}
	end(NULL);
	return wrong;
}

static void random_worlds_are_as_a_slow_version_has_them(void **state)
{
	run_seeds(SEEDS, random_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define FACT(name) cmocka_unit_test_setup_teardown(name, begin, end)
		FACT(hosts_that_say_nothing_hold_up_nobody_else),
		FACT(the_rest_of_a_tree_is_told_meanwhile),
		FACT(an_address_that_is_silent_makes_all_ways_to_it_wait),
		FACT(who_refuses_at_once_keeps_no_other_message_waiting),
		FACT(whoever_was_never_told_needs_no_farewell),
		FACT(the_oldest_farewells_of_a_tenant_are_forgotten),
		cmocka_unit_test(random_worlds_are_as_a_slow_version_has_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
