// SPDX-License-Identifier: GPL-2.0-only
/* What is wanted of a cluster, key by key: agent/cluster/shared.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/cluster/shared.h"
#include "common/owned.h"

#define JOB(name, birth)                                                                     \
	"{\"name\": \"" name "\", \"tenant\": \"default\", \"token\": \"5b1f\", \"id\": 7, " \
	"\"birth\": \"" birth "\", \"workers\": 2, \"window\": 128}"
#define PLACE(birth, root) \
	"{\"birth\": \"" birth "\", \"root\": \"" root "\", \"address\": \"10.77.0.1\"}"
#define WORKER "{\"node\": \"n0\", \"address\": \"10.0.0.1:40000\"}"
#define BIRTH "00000000feedface"
#define LATER "00000000feedfacf"

static struct why why;

static void take(struct shared *s, const char *key, const char *value, uint64_t revision)
{
	int r = shared_take(s, key, value, revision, &why);

	if (r < 0)
		fail_msg("%s: %s", key, why.text);
}

static void refused(struct shared *s, const char *key, const char *value, const char *says)
{
	assert_int_equal(shared_take(s, key, value, 9, &why), -EINVAL);
	if (!strstr(why.text, says))
		fail_msg("%s: %s", key, why.text);
}

static void a_tenant_comes_changes_and_goes(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	const struct shared_tenant *t;

	take(&s, "tenant/red", "{\"name\": \"red\", \"slots\": 256, \"ingress\": [\"n0/eth0\"]}",
	     3);
	take(&s, "tenant/blue", "{\"name\": \"blue\", \"slots\": 1, \"group\": \"blues\"}", 4);
	assert_int_equal(s.tenants, 2);
	assert_string_equal(s.tenant[0].wanted.is.name, "blue");
	assert_string_equal(s.tenant[0].wanted.is.group, "blues");
	t = shared_tenant_find(&s, "red");
	assert_non_null(t);
	assert_int_equal(t->wanted.is.slots, 256);
	assert_int_equal(t->wanted.places, 1);
	assert_true(t->wanted.is.clustered);
	take(&s, "tenant/red", "{\"name\": \"red\", \"slots\": 8}", 5);
	assert_int_equal(s.tenants, 2);
	assert_int_equal(shared_tenant_find(&s, "red")->wanted.is.slots, 8);
	assert_int_equal(shared_tenant_find(&s, "red")->revision, 5);
	take(&s, "tenant/blue", NULL, 0);
	assert_null(shared_tenant_find(&s, "blue"));
	take(&s, "tenant/blue", NULL, 0);
	/* What is not understood is as if it was not there. */
	refused(&s, "tenant/red", "{\"name\": \"red\", \"slots\": -1}", "slots");
	assert_int_equal(s.tenants, 0);
	refused(&s, "tenant/red", "{\"name\": \"blue\", \"slots\": 1}",
		"it says that it is tenant blue");
	refused(&s, "tenant/default", "{\"name\": \"default\"}", "not of the name of a tenant");
	refused(&s, "tenant/a/b", "{\"name\": \"a\"}", "not of the name of a tenant");
}

#define WAYS(birth, root)                                                                 \
	"{\"birth\": \"" birth "\", \"root\": \"" root "\", \"address\": \"10.77.0.1\", " \
	"\"ways\": [{\"worker\": \"10.0.0.1\", \"nodes\": [\"n1\", \"" root "\"]}]}"

static void ways_are_of_one_job_and_its_root(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	const struct shared_job *j;

	take(&s, "ways/train", WAYS(BIRTH, "n0"), 3); /* whichever comes first */
	assert_null(shared_find(&s, "train"));
	take(&s, "job/train", JOB("train", BIRTH), 4);
	j = shared_find(&s, "train");
	assert_null(shared_ways(j)); /* it has no root yet */
	take(&s, "place/train", PLACE(BIRTH, "n0"), 5);
	assert_non_null(shared_ways(j));
	assert_int_equal(j->ways_revision, 3);
	assert_string_equal(shared_ways(j)->way[0].node[0], "n1");
	take(&s, "place/train", PLACE(BIRTH, "n2"), 6); /* it has moved */
	assert_null(shared_ways(j));
	take(&s, "ways/train", WAYS(BIRTH, "n2"), 7);
	assert_non_null(shared_ways(j));
	take(&s, "ways/train", WAYS(LATER, "n2"), 8);
	assert_null(shared_ways(j));
	take(&s, "ways/train", WAYS(BIRTH, "n2"), 9);
	refused(&s, "ways/train", WAYS(BIRTH, "n1"), "is at n1 twice");
	assert_null(shared_ways(j));
	assert_int_equal(j->ways_revision, 0);
	take(&s, "ways/train", WAYS(BIRTH, "n2"), 10);
	take(&s, "job/train", NULL, 0);
	take(&s, "place/train", NULL, 0);
	assert_int_equal(s.jobs, 1); /* its ways are left */
	take(&s, "ways/train", NULL, 0);
	assert_int_equal(s.jobs, 0);
}

/* Where none of its points is, it comes in nowhere; where it has none at all, that is the node's.
 */
static void a_tenants_points_are_those_of_each_node(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	_cleanup_(freep) char *text = NULL;
	struct tenant_place places[TENANT_POINTS_MAX + 2];
	struct tenant here;

	take(&s, "tenant/red",
	     "{\"name\": \"red\", \"slots\": 8, \"ingress\": [\"n0/eth0\", \"n1/eth0 vlan 7\", "
	     "\"n0/eth1 source 10.0.0.0/8\"]}",
	     3);
	here = wanted_tenant_at(&s.tenant[0].wanted, "n0");
	assert_true(here.gated && here.clustered);
	assert_int_equal(here.slots, 8);
	assert_int_equal(here.points, 2);
	assert_string_equal(here.point[0].port, "eth0");
	assert_string_equal(here.point[1].port, "eth1");
	here = wanted_tenant_at(&s.tenant[0].wanted, "n1");
	assert_int_equal(here.points, 1);
	assert_int_equal(here.point[0].vlan, 7);
	here = wanted_tenant_at(&s.tenant[0].wanted, "n2");
	assert_true(tenant_is_nowhere(&here));
	text = wanted_print(&wanted_tenant_keys, &s.tenant[0].wanted);
	assert_non_null(text);
	assert_non_null(strstr(text, "\"ingress\":[\"n0/eth0\",\"n1/eth0 vlan 7\","
				     "\"n0/eth1 source 10.0.0.0/8\"]"));
	refused(&s, "tenant/red", "{\"name\": \"red\", \"slots\": 8, \"ingress\": [\"eth0\"]}",
		"ingress");
	assert_int_equal(s.tenants, 0);
	take(&s, "tenant/red", "{\"name\": \"red\", \"slots\": 8}", 9);
	here = wanted_tenant_at(&s.tenant[0].wanted, "n2");
	assert_true(tenant_is_anywhere(&here));
	for (unsigned int i = 0; i < TENANT_POINTS_MAX + 2; i++)
		assert_int_equal(
			tenant_place_parse(i == 3 ? "n1/eth0" : "n0/eth0", &places[i], &why), 0);
	assert_int_equal(wanted_places_check(places, TENANT_POINTS_MAX + 1, &why), 0);
	assert_int_equal(wanted_places_check(places, TENANT_POINTS_MAX + 2, &why), -EINVAL);
	assert_string_equal(why.text, "ingress: 17 points at n0; one node can have 16 at most");
}

static void there_is_room_for_so_many_tenants(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	char key[32], value[64];

	for (unsigned int i = 0; i <= SHARED_TENANTS_MAX; i++) {
		snprintf(key, sizeof(key), "tenant/t%u", i);
		snprintf(value, sizeof(value), "{\"name\": \"t%u\", \"slots\": 1}", i);
		assert_int_equal(shared_take(&s, key, value, i + 1, &why),
				 i < SHARED_TENANTS_MAX ? 0 : -E2BIG);
	}
	assert_int_equal(s.tenants, SHARED_TENANTS_MAX);
}

static void a_tenant_is_needed_as_long_as_a_job_is_wanted(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };

	assert_null(shared_tenant_job(&s, "default"));
	take(&s, "job/train", JOB("train", BIRTH), 3);
	assert_string_equal(shared_tenant_job(&s, "default")->name, "train");
	assert_null(shared_tenant_job(&s, "red"));
	take(&s, "place/train", PLACE(BIRTH, "n1"), 4);
	take(&s, "job/train", NULL, 0);
	assert_null(shared_tenant_job(&s, "default"));
}

static void a_job_gets_its_place_and_loses_it(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	const struct shared_job *j;

	take(&s, "job/train", JOB("train", BIRTH), 3);
	j = shared_find(&s, "train");
	assert_non_null(j);
	assert_int_equal(j->revision, 3);
	assert_int_equal(j->job.workers, 2);
	assert_false(shared_is_placed(j));
	take(&s, "place/train", PLACE(BIRTH, "n1"), 4);
	assert_true(shared_is_placed(shared_find(&s, "train")));
	take(&s, "place/train", NULL, 0);
	assert_false(shared_is_placed(shared_find(&s, "train")));
	take(&s, "job/train", NULL, 0);
	assert_null(shared_find(&s, "train"));
	assert_int_equal(s.jobs, 0);
}

/* Keys come in any order, and a place may be older than its job. */
static void the_place_of_an_earlier_job_is_none(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };

	take(&s, "place/train", PLACE(BIRTH, "n1"), 4);
	assert_null(shared_find(&s, "train"));
	take(&s, "job/train", JOB("train", LATER), 5);
	assert_false(shared_is_placed(shared_find(&s, "train")));
	take(&s, "place/train", PLACE(LATER, "n2"), 6);
	assert_true(shared_is_placed(shared_find(&s, "train")));
	assert_string_equal(shared_find(&s, "train")->place.root, "n2");
}

static void workers_and_refusals_come_and_go(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	const struct shared_job *j;

	take(&s, "job/train", JOB("train", BIRTH), 3);
	take(&s, "worker/train/n0/1", WORKER, 4);
	take(&s, "worker/train/n0/2", WORKER, 5);
	take(&s, "worker/train/n0/1", WORKER, 6); /* once more is the same one */
	take(&s, "refusal/train/n3", "no slots", 7);
	take(&s, "refusal/train/n3", "still none", 8);
	j = shared_find(&s, "train");
	assert_int_equal(j->workers, 2);
	assert_int_equal(j->refusals, 1);
	assert_string_equal(j->refusal[0].node, "n3");
	take(&s, "worker/train/n0/1", NULL, 0);
	take(&s, "worker/train/n0/7", NULL, 0);
	take(&s, "refusal/train/n3", NULL, 0);
	assert_int_equal(j->workers, 1);
	assert_string_equal(j->worker[0].id, "n0/2");
	assert_int_equal(j->refusals, 0);
}

static void jobs_do_not_get_mixed_up(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	char key[64], value[256];

	for (unsigned int i = 0; i < 100; i++) { /* not in the order of their names */
		snprintf(key, sizeof(key), "job/j%02u", i * 37 % 100);
		snprintf(value, sizeof(value), JOB("j%02u", BIRTH), i * 37 % 100);
		take(&s, key, value, 1 + i * 37 % 100);
	}
	assert_int_equal(s.jobs, 100);
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "j%02u", i);
		assert_int_equal(shared_find(&s, key)->revision, 1 + i);
	}
}

/* Who writes nonsense loses that key, and nothing else. */
static void what_is_not_understood_is_not_there(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };

	take(&s, "job/train", JOB("train", BIRTH), 3);
	refused(&s, "job/train", "{}", "name");
	assert_null(shared_find(&s, "train"));
	refused(&s, "job/train", JOB("other", BIRTH), "it says that it is job other");
	refused(&s, "job/../x", JOB("train", BIRTH), "not of the name of a job");
	refused(&s, "job/", JOB("train", BIRTH), "not of the name of a job");
	refused(&s, "worker/train", WORKER, "not of the name of a job");
	refused(&s, "place/train/n0", PLACE(BIRTH, "n0"), "not of the name of a job");
	refused(&s, "worker/train/n0/1", "{\"node\": \"n0\"}", "address");
	refused(&s, "place/train", PLACE(BIRTH, "n/0"), "root");
	assert_int_equal(shared_take(&s, "report/n0", "anything", 9, &why), 0);
	assert_int_equal(s.jobs, 0);
}

static void there_is_a_limit_of_jobs(void **state)
{
	_cleanup_(shared_close) struct shared s = { 0 };
	char key[64];

	for (unsigned int i = 0; i < SHARED_JOBS_MAX; i++) {
		snprintf(key, sizeof(key), "worker/j%u/n0/1", i);
		take(&s, key, WORKER, 1);
	}
	assert_int_equal(shared_take(&s, "job/train", JOB("train", BIRTH), 3, &why), -E2BIG);
	take(&s, "worker/j7/n0/1", NULL, 0);
	take(&s, "job/train", JOB("train", BIRTH), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_gets_its_place_and_loses_it),
		cmocka_unit_test(a_tenant_comes_changes_and_goes),
		cmocka_unit_test(a_tenants_points_are_those_of_each_node),
		cmocka_unit_test(ways_are_of_one_job_and_its_root),
		cmocka_unit_test(there_is_room_for_so_many_tenants),
		cmocka_unit_test(a_tenant_is_needed_as_long_as_a_job_is_wanted),
		cmocka_unit_test(the_place_of_an_earlier_job_is_none),
		cmocka_unit_test(workers_and_refusals_come_and_go),
		cmocka_unit_test(jobs_do_not_get_mixed_up),
		cmocka_unit_test(what_is_not_understood_is_not_there),
		cmocka_unit_test(there_is_a_limit_of_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
