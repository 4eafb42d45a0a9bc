// SPDX-License-Identifier: GPL-2.0-only
/* What is planned, applied, leaves nothing to plan; and where a tenant's messages may come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/plan.h"

static struct why why;
static struct plan plan;
static struct books books;

/* The data plane, as a list. */
static struct tables_job there[TALLY_JOBS_MAX];
static unsigned int there_count;

static int begin(void **state)
{
	books_init(&books, 1 << 18);
	there_count = 0;
	return 0;
}

static int end(void **state)
{
	books_clear(&books);
	return 0;
}

static struct job *job_enter(uint32_t id, uint16_t tenant, uint16_t epoch, uint16_t run_window)
{
	struct job facts = {
		.id = id,
		.tenant = tenant,
		.workers = 1,
		.window = 8,
		.epoch = epoch,
		.run_window = run_window,
	};
	struct job *j;

	snprintf(facts.name, sizeof(facts.name), "job%u", id);
	j = job_new(&facts);
	assert_non_null(j);
	assert_int_equal(books_job_restore(&books, j, &why), 0);
	return j;
}

static void job_there(uint32_t id, uint16_t tenant, uint16_t epoch)
{
	there[there_count++] = (struct tables_job){
		.id = id,
		.job = { .id = id, .tenant = tenant, .epoch = epoch },
	};
}

static void make(void)
{
	const struct tables now = { .jobs = there_count, .job = there };

	memset(&plan, 0xee, sizeof(plan));
	plan_make(&books, &now, &plan);
	assert_in_range(plan.steps, 0, PLAN_STEPS_MAX);
}

/* The plan in words, but for tenants: "-7 +8 =9". */
static const char *jobs_planned(void)
{
	static char text[64];
	int n = 0;

	make();
	text[0] = '\0';
	for (unsigned int i = 0; i < plan.steps; i++) {
		char sign = plan.step[i].act == PLAN_JOB_DEL   ? '-'
			    : plan.step[i].act == PLAN_JOB_ADD ? '+'
							       : '=';

		if (plan.step[i].act != PLAN_TENANT_PUT)
			n += snprintf(text + n, sizeof(text) - n, "%s%c%u", n ? " " : "", sign,
				      plan.step[i].id);
	}
	return text;
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void nothing_is_planned_for_empty_books_but_the_default_tenant(void **state)
{
	make();
	assert_int_equal(plan.steps, 1);
	assert_int_equal(plan.step[0].act, PLAN_TENANT_PUT);
	assert_int_equal(plan.step[0].index, BOOKS_DEFAULT);
}

static void a_run_that_is_there_gets_its_gates_only(void **state)
{
	job_enter(7, 1, 42, 8);
	job_there(7, 1, 42);
	assert_string_equal(jobs_planned(), "=7");
}

static void a_run_that_is_not_there_is_added(void **state)
{
	job_enter(7, 1, 42, 8);
	assert_string_equal(jobs_planned(), "+7");
}

static void a_job_without_a_run_has_nothing_there(void **state)
{
	job_enter(7, 1, 42, 0);
	assert_string_equal(jobs_planned(), "");
	job_there(7, 1, 42);
	assert_string_equal(jobs_planned(), "-7");
}

static void a_job_that_nobody_knows_goes(void **state)
{
	job_there(9, 1, 1);
	assert_string_equal(jobs_planned(), "-9");
}

/* Of which a process that died has left some gates: by these, messages still come in. */
static void a_broken_job_goes(void **state)
{
	job_enter(7, 1, 42, 8);
	job_there(7, 1, 42);
	job_there(8, 1, 42);
	there[0].broken = there[1].broken = true;
	assert_string_equal(jobs_planned(), "-7 -8 +7");
}

static void another_epoch_goes_before_the_right_one_comes(void **state)
{
	job_enter(7, 1, 42, 8);
	job_there(7, 1, 41);
	assert_string_equal(jobs_planned(), "-7 +7");
}

static void another_tenants_run_goes_before_the_right_one_comes(void **state)
{
	job_enter(7, 2, 42, 8);
	job_there(7, 1, 42);
	assert_string_equal(jobs_planned(), "-7 +7");
}

static void steps_name_the_job_by_its_place_in_the_books(void **state)
{
	job_enter(20, 1, 1, 8);
	job_enter(10, 1, 1, 0);
	job_enter(30, 1, 1, 8);
	job_there(30, 1, 1);
	make();
	for (unsigned int i = 0; i < plan.steps; i++)
		if (plan.step[i].act != PLAN_TENANT_PUT)
			assert_int_equal(books.job[plan.step[i].index]->id, plan.step[i].id);
	assert_string_equal(jobs_planned(), "+20 =30");
}

static void the_largest_books_and_the_fullest_node_fit_a_plan(void **state)
{
	struct tenant t = { 0 };

	for (int i = 2; i < TALLY_TENANTS_MAX; i++) {
		snprintf(t.name, sizeof(t.name), "t%d", i);
		assert_int_equal(books_tenant_add(&books, &t, &why), i);
	}
	for (uint32_t id = 1; id <= TALLY_JOBS_MAX; id++) {
		job_enter(id, 1, 1, 8);
		job_there(id + TALLY_JOBS_MAX, 1, 1);
	}
	for (unsigned int i = 0; i < books.jobs; i++)
		books.job[i]->spilled = books.job[i]->borrows = true;
	make();
	assert_int_equal(plan.steps, PLAN_STEPS_MAX - 1); /* nobody is tenant 0 */
}

/* --- a fixed point --------------------------------------------------------------------------- */

enum {
	SEEDS = 3000,
	IDS = 12,
};

static void books_happen(void)
{
	struct tenant t = { 0 };
	uint32_t id;

	for (int i = 2; i < 6; i++) {
		snprintf(t.name, sizeof(t.name), "t%d", rand() % 4);
		books_tenant_add(&books, &t, &why);
	}
	for (id = 1; id <= IDS; id++) {
		uint16_t tenant = 1 + rand() % 5;

		if (rand() % 2 && *books.tenant[tenant].is.name)
			job_enter(id, tenant, rand() % 3, rand() % 3 ? 8 : 0);
	}
	for (unsigned int i = 0; i < books.jobs; i++) {
		books.job[i]->spilled = rand() % 4 == 0;
		books.job[i]->borrows = rand() % 2 && books.job[i]->spilled;
	}
	for (id = 1; id <= IDS; id++)
		if (rand() % 2)
			job_there(id, rand() % 6, rand() % 3);
	for (unsigned int i = 0; i < there_count; i++)
		there[i].job.borrows = rand() % 8 == 0;
}

/* As the data plane does it: a job that is there cannot be added, one that is not cannot go. */
static void step_apply(const struct plan_step *step)
{
	unsigned int at = 0;

	while (at < there_count && there[at].id != step->id)
		at++;
	switch (step->act) {
	case PLAN_JOB_DEL:
		assert_true(at < there_count);
		there[at] = there[--there_count];
		break;
	case PLAN_JOB_ADD:
		assert_true(at == there_count);
		job_there(step->id, books.job[step->index]->tenant, books.job[step->index]->epoch);
		there[there_count - 1].job.borrows = books.job[step->index]->borrows;
		break;
	case PLAN_JOB_GATES:
		assert_true(at < there_count);
		break;
	case PLAN_JOB_SPILL:
		assert_true(books.job[step->index]->spilled);
		break;
	case PLAN_TENANT_PUT:
		assert_in_range(step->index, 1, TALLY_TENANTS_MAX - 1);
		assert_true(*books.tenant[step->index].is.name);
		break;
	}
}

/* Deletions make room, tenants are there before their jobs. */
static void steps_are_in_order(void)
{
	static const int turn[] = {
		[PLAN_JOB_DEL] = 0,   [PLAN_TENANT_PUT] = 1, [PLAN_JOB_ADD] = 2,
		[PLAN_JOB_GATES] = 2, [PLAN_JOB_SPILL] = 2,
	};

	for (unsigned int i = 1; i < plan.steps; i++)
		assert_true(turn[plan.step[i - 1].act] <= turn[plan.step[i].act]);
}

static void what_is_there_is_what_is_wanted(void)
{
	unsigned int wanted = 0;

	for (unsigned int i = 0; i < books.jobs; i++) {
		const struct job *j = books.job[i];
		unsigned int found = 0;

		for (unsigned int k = 0; k < there_count; k++)
			found += there[k].id == j->id && there[k].job.epoch == j->epoch &&
				 there[k].job.tenant == j->tenant &&
				 there[k].job.borrows == j->borrows;
		assert_int_equal(found, j->run_window && (!j->spilled || j->borrows) ? 1 : 0);
		wanted += found;
	}
	assert_int_equal(wanted, there_count);
}

static void a_plan_applied_leaves_nothing_to_do(void **state)
{
	unsigned int acts[5] = { 0 };

	for (unsigned int seed = 0; seed < SEEDS; seed++) {
		srand(seed);
		end(NULL);
		begin(NULL);
		books_happen();
		make();
		steps_are_in_order();
		for (unsigned int i = 0; i < plan.steps; i++) {
			step_apply(&plan.step[i]);
			acts[plan.step[i].act]++;
		}
		what_is_there_is_what_is_wanted();
		make();
		for (unsigned int i = 0; i < plan.steps; i++) {
			assert_int_not_equal(plan.step[i].act, PLAN_JOB_DEL);
			assert_int_not_equal(plan.step[i].act, PLAN_JOB_ADD);
		}
	}
	for (int i = 0; i < 5; i++)
		assert_in_range(acts[i], SEEDS / 20, SEEDS * IDS);
}

/* --- where messages may come in -------------------------------------------------------------- */

/* A point on each of these is what a tenant may have; NULL: no point. */
static const char *const points[] = {
	NULL,
	"eth1",
	"eth2",
	"eth1 vlan 5",
	"eth2 vlan 0",
	"eth1 source 10.0.0.0/24",
	"eth2 source fd77::/64",
	"eth1 vlan 7 source 10.0.1.0/24",
	"eth3",
	"eth3 vlan 1",
};

enum {
	POINTS = sizeof(points) / sizeof(*points),
	PORTS = 3,
};

/* eth3 has gone; somebody's port in another namespace has no name here. */
static const struct dataplane_port ports[PORTS + 1] = {
	{ .ifindex = 11, .name = "eth1" },
	{ .ifindex = 12, .name = "eth2" },
	{ .ifindex = 0, .name = "eth3" },
	{ .ifindex = 14, .name = "" },
};

/* From the words of the points alone. */
static bool is_at(const char *point, const char *port) { return !strncmp(point, port, 4); }

static void gates_are_right(const struct tenant *t, const char *const *chosen, unsigned int count)
{
	struct dataplane_gate gate[PORTS + 1];
	unsigned int gates = plan_gates(t, ports, count, gate), expected = 0;

	for (unsigned int i = 0; i < count; i++) {
		bool named = false, open = false;

		for (int k = 0; k < 3; k++) {
			if (!chosen[k] || !*ports[i].name || !is_at(chosen[k], ports[i].name))
				continue;
			named = true;
			open = open || strlen(chosen[k]) == 4;
		}
		if (!ports[i].ifindex || !named)
			continue;
		assert_in_range(expected, 0, gates - 1);
		assert_int_equal(gate[expected].ifindex, ports[i].ifindex);
		assert_int_equal(gate[expected].restricted, !open);
		expected++;
	}
	assert_int_equal(gates, expected);
}

static void sources_are_right(const struct tenant *t, const char *const *chosen, unsigned int count)
{
	struct dataplane_source source[TENANT_POINTS_MAX];
	struct dataplane_gate gate[PORTS + 1];
	unsigned int gates = plan_gates(t, ports, count, gate);
	unsigned int sources = plan_sources(t, ports, count, source), expected = 0;

	for (unsigned int i = 0; i < gates; i++)
		for (int k = 0; gate[i].restricted && k < 3; k++) {
			struct tenant_point p;

			if (!chosen[k] ||
			    !is_at(chosen[k], gate[i].ifindex == 11 ? "eth1" : "eth2"))
				continue;
			assert_int_equal(tenant_point_parse(chosen[k], &p, &why), 0);
			assert_in_range(expected, 0, sources - 1);
			assert_int_equal(source[expected].ifindex, gate[i].ifindex);
			assert_int_equal(source[expected].vlan, p.vlan);
			assert_int_equal(source[expected].bits, p.source_bits);
			assert_memory_equal(&source[expected].address, &p.source, sizeof(p.source));
			expected++;
		}
	assert_int_equal(sources, expected);
}

/* Those of all points whose port is there, restricted or not. */
static void points_are_right(const struct tenant *t, const char *const *chosen, unsigned int count)
{
	struct dataplane_source point[TENANT_POINTS_MAX];
	unsigned int there = plan_points(t, ports, count, point), expected = 0;

	for (unsigned int i = 0; i < count; i++)
		for (int k = 0; ports[i].ifindex && *ports[i].name && k < 3; k++) {
			struct tenant_point p;

			if (!chosen[k] || !is_at(chosen[k], ports[i].name))
				continue;
			assert_int_equal(tenant_point_parse(chosen[k], &p, &why), 0);
			assert_in_range(expected, 0, there - 1);
			assert_int_equal(point[expected].ifindex, ports[i].ifindex);
			assert_int_equal(point[expected].vlan, p.vlan);
			assert_int_equal(point[expected].bits, p.source_bits);
			assert_memory_equal(&point[expected].address, &p.source, sizeof(p.source));
			expected++;
		}
	assert_int_equal(there, expected);
}

static void gates_and_sources_of_all_sets_of_three_points(void **state)
{
	for (int i = 0; i < POINTS * POINTS * POINTS; i++) {
		const char *const chosen[] = { points[i % POINTS], points[i / POINTS % POINTS],
					       points[i / POINTS / POINTS] };
		struct tenant t = { .name = "red" };

		for (int k = 0; k < 3; k++)
			if (chosen[k])
				assert_int_equal(
					tenant_point_parse(chosen[k], &t.point[t.points++], &why),
					0);
		for (unsigned int count = 0; count <= PORTS + 1; count++) {
			gates_are_right(&t, chosen, count);
			sources_are_right(&t, chosen, count);
			points_are_right(&t, chosen, count);
		}
	}
}

static void a_tenant_whose_ports_have_gone_may_come_in_nowhere(void **state)
{
	struct tenant t = { .name = "red", .points = 1 };
	struct dataplane_gate gate[PORTS + 1];
	struct dataplane_source source[TENANT_POINTS_MAX];

	assert_int_equal(tenant_point_parse("eth3 vlan 1", &t.point[0], &why), 0);
	assert_int_equal(plan_gates(&t, ports, PORTS + 1, gate), 0);
	assert_int_equal(plan_sources(&t, ports, PORTS + 1, source), 0);
}

static void as_many_points_as_a_tenant_has_are_as_many_sources(void **state)
{
	struct dataplane_source source[TENANT_POINTS_MAX];
	struct tenant t = { .name = "red", .points = TENANT_POINTS_MAX };
	char text[TENANT_POINT_BYTES];

	for (int i = 0; i < TENANT_POINTS_MAX; i++) {
		snprintf(text, sizeof(text), "eth%d vlan %d", 1 + i % 2, i);
		assert_int_equal(tenant_point_parse(text, &t.point[i], &why), 0);
	}
	assert_int_equal(plan_sources(&t, ports, PORTS, source), TENANT_POINTS_MAX);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(nothing_is_planned_for_empty_books_but_the_default_tenant),
		FACT(a_run_that_is_there_gets_its_gates_only),
		FACT(a_run_that_is_not_there_is_added),
		FACT(a_job_without_a_run_has_nothing_there),
		FACT(a_job_that_nobody_knows_goes),
		FACT(a_broken_job_goes),
		FACT(another_epoch_goes_before_the_right_one_comes),
		FACT(another_tenants_run_goes_before_the_right_one_comes),
		FACT(steps_name_the_job_by_its_place_in_the_books),
		FACT(the_largest_books_and_the_fullest_node_fit_a_plan),
		FACT(a_plan_applied_leaves_nothing_to_do),
		FACT(gates_and_sources_of_all_sets_of_three_points),
		FACT(a_tenant_whose_ports_have_gone_may_come_in_nowhere),
		FACT(as_many_points_as_a_tenant_has_are_as_many_sources),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
