// SPDX-License-Identifier: GPL-2.0-only
/* What a workload's text says, by hand and by chance; and what is wrong with a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/models.h"
#include "sim/workload.h"

static struct topology *network(const char *words)
{
	struct topology *t = NULL;
	struct why why;

	assert_int_equal(topology_shape(words, &t, &why), 0);
	return t;
}

static struct workload *parse(const struct topology *t, const char *text, uint64_t seed)
{
	struct workload *w = NULL;
	struct why why;

	if (workload_parse("day", text, strlen(text), t, seed, &w, &why) != 0)
		fail_msg("%s", why.text);
	return w;
}

static void a_job_is_what_its_line_says(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t,
		"# one\n\njob late workers=h1,h4 root=s8 bytes=1.5M arrives=2 # behind\n"
		"job j1 workers=h2,h3,h2 root=none model=vgg19 compute=0.5 iterations=7 tenant=3 "
		"weight=2 slots=9\n",
		1);
	const struct workload_job *j = &w->job[0], *late = &w->job[1];

	assert_int_equal(w->jobs, 2);
	assert_string_equal(j->name, "j1");
	assert_int_equal(j->workers, 3);
	assert_int_equal(j->worker[1], topology_machine(t, "h3"));
	assert_int_equal(j->root, GRAPH_NONE);
	assert_true(j->bytes == 548e6 && j->compute_s == 0.5 && j->weight == 2);
	assert_int_equal(j->iterations, 7);
	assert_int_equal(j->tenant, 3);
	assert_int_equal(j->slots, 9);
	assert_int_equal(late->root, topology_machine(t, "s8"));
	assert_true(late->bytes == 1.5e6 && late->arrives_s == 2);
	assert_true(late->compute_s == MODEL_COMPUTE_S);
	assert_int_equal(late->iterations, 100);
}

static const char many[] = "jobs m count=2000 every=10 begins=5 model=vgg19:2,resnet50:5,lstm "
			   "workers=3..6 iterations=10..20 tenants=4\n";

static void jobs_by_chance_are_spread_as_they_should(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(t, many, 7);
	unsigned int with[8] = { 0 }, large = 0, small = 0, on_first = 0, soon = 0;

	assert_int_equal(w->jobs, 2000);
	for (unsigned int i = 0; i < w->jobs; i++) {
		const struct workload_job *j = &w->job[i];

		assert_in_range(j->workers, 3, 6);
		assert_in_range(j->iterations, 10, 20);
		with[j->workers]++;
		large += j->bytes == 548e6;
		small += j->bytes == 1627e3;
		soon += i > 0 && j->arrives_s - w->job[i - 1].arrives_s < 1;
		assert_int_equal(j->tenant, i % 4);
		for (unsigned int a = 0; a < j->workers; a++) {
			on_first += j->worker[a] == t->host[0];
			assert_int_not_equal(j->worker[a], j->root);
			for (unsigned int b = 0; b < a; b++)
				assert_int_not_equal(j->worker[a], j->worker[b]);
		}
	}
	for (unsigned int n = 3; n <= 6; n++)
		assert_in_range(with[n], 420, 580); /* 500, and four deviations */
	assert_in_range(large, 420, 580);
	assert_in_range(small, 190, 310);
	assert_in_range(soon, 138, 243); /* 1 - exp(-1 / 10) of them */
	assert_in_range(on_first, 460, 665); /* 2000 * 4.5 / 16 */
	assert_true(fabs(w->job[1999].arrives_s - 20005) < 1800);
	assert_true(w->job[0].arrives_s > 5);
	assert_string_equal(w->job[1999].name, "m.1999");
}

static void units_multiply_all_numbers(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(
		t,
		"jobs x count=1.001k bytes=0.5k..2k iterations=1.001k tenants=1k workers=1\n"
		"job y workers=h0.0.0 bytes=1.5 tenant=65.535k weight=1k\n",
		1);
	unsigned int y = 0;

	assert_int_equal(w->jobs, 1002);
	for (unsigned int i = 0; i < w->jobs; i++)
		y = w->job[i].name[0] == 'y' ? i : y;
	assert_int_equal(w->job[y].tenant, 65535);
	assert_true(w->job[y].weight == 1000 && w->job[y].bytes == 1.5);
	for (unsigned int i = 0; i < w->jobs; i++)
		assert_true(i == y || (w->job[i].iterations == 1001 && w->job[i].tenant < 1000));
}

static void zipf_draws_small_numbers_most(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "jobs z count=6000 bytes=1 workers=zipf:2..4:1\n", 3);
	unsigned int with[5] = { 0 };

	for (unsigned int i = 0; i < w->jobs; i++)
		with[w->job[i].workers]++;
	/* 1 to 1/2 to 1/3 of 6000 */
	assert_in_range(with[2], 3120, 3430);
	assert_in_range(with[3], 1500, 1780);
	assert_in_range(with[4], 980, 1210);
}

static void hosts_may_be_near(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *w = parse(
		t, "jobs n count=50 bytes=1 workers=5 hosts=near root=none\n", 3);

	for (unsigned int i = 0; i < w->jobs; i++)
		for (unsigned int k = 1; k < 5; k++) {
			uint32_t last = 0;

			while (t->host[last] != w->job[i].worker[k - 1])
				last++;
			assert_int_equal(w->job[i].worker[k], t->host[(last + 1) % t->hosts]);
		}
}

static bool is_same(const struct workload_job *a, const struct workload_job *b)
{
	return a->arrives_s == b->arrives_s && a->bytes == b->bytes && a->workers == b->workers &&
	       !memcmp(a->worker, b->worker, a->workers * sizeof(*a->worker)) &&
	       a->root == b->root && a->iterations == b->iterations;
}

static void a_seed_makes_the_same_jobs_beside_others_too(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("fat-tree:k=4");
	_cleanup_(workload_freep) struct workload *one = parse(t, many, 7),
						  *other = parse(t, many, 8);
	_cleanup_(freep) char *both = NULL;
	_cleanup_(workload_freep) struct workload *more = NULL;
	unsigned int k = 0, same = 0;

	assert_true(asprintf(&both, "jobs x count=10 every=99 bytes=1\n%s", many) > 0);
	more = parse(t, both, 7);
	for (unsigned int i = 0; i < more->jobs; i++)
		if (more->job[i].name[0] == 'm')
			assert_true(is_same(&more->job[i], &one->job[k++]));
	assert_int_equal(k, 2000);
	for (unsigned int i = 0; i < 2000; i++)
		same += is_same(&one->job[i], &other->job[i]);
	assert_int_equal(same, 0);
	workload_free(TAKE_PTR(more));
	more = parse(t, "jobs x every=9 count=2 bytes=1\njobs y every=9 count=2 bytes=1\n", 7);
	assert_false(is_same(&more->job[0], &more->job[1])); /* names are seeds, too */
}

static void failures_are_of_machines_and_of_cables(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t,
		"job j workers=h1 bytes=1\n"
		"fail s1 s5 at=20 for=3\n"
		"fail s9 at=10 for=1..4\n"
		"failures links every=50 for=5 until=5000\n"
		"failures nodes every=100 for=5 until=5000\n",
		1);
	unsigned int links = 0, nodes = 0;
	bool seen = false;

	for (unsigned int i = 0; i < w->failures; i++) {
		const struct workload_failure *f = &w->failure[i];

		assert_true(i == 0 || f->at_s >= w->failure[i - 1].at_s);
		assert_true((f->link == GRAPH_NONE) != (f->machine == GRAPH_NONE));
		if (f->at_s == 20 && f->for_s == 3) {
			const struct graph_link *l = &t->graph->link[f->link];

			seen = true;
			assert_int_equal(l->from, topology_machine(t, "s1"));
			assert_int_equal(l->to, topology_machine(t, "s5"));
		}
		links += f->link != GRAPH_NONE;
		nodes += f->machine != GRAPH_NONE;
	}
	assert_true(seen);
	assert_in_range(links, 60, 141);
	assert_in_range(nodes, 22, 80);
}

static const struct workload_failure *failure_at(const struct workload *w, double at_s)
{
	for (unsigned int i = 0; i < w->failures; i++)
		if (w->failure[i].at_s == at_s)
			return &w->failure[i];
	fail_msg("nothing fails at %g s", at_s);
	return NULL;
}

/* How long a failure lasts depends on what fails and when; not on the lines around it. */
static void failures_do_not_share_their_chance(void **state)
{
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(
		t,
		"job j workers=h1 bytes=1\nfail s9 at=10 for=1..4\nfail s8 at=11 for=1..4\n"
		"fail s9 at=12 for=1..4\nfail s1 s5 at=13 for=1..4\nfail s1 s6 at=14 for=1..4\n",
		1);
	_cleanup_(workload_freep) struct workload *other = parse(
		t, "# a remark\njob j workers=h1 bytes=1\nfail s8 at=11 for=1..4\n", 1);

	for (double at_s = 10; at_s < 15; at_s++)
		for (double later_s = at_s + 1; later_s < 15; later_s++)
			assert_true(failure_at(w, at_s)->for_s != failure_at(w, later_s)->for_s);
	assert_true(failure_at(w, 11)->for_s == failure_at(other, 11)->for_s);
}

static void lines_of_failures_do_not_share_their_chance(void **state)
{
	static const char text[] = "job j workers=h1 bytes=1\n"
				   "failures links every=50 for=5 until=5000\n"
				   "failures links every=50 for=9 until=5000\n";
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	_cleanup_(workload_freep) struct workload *w = parse(t, text, 1);

	assert_in_range(w->failures, 120, 282);
	for (unsigned int i = 1; i < w->failures; i++)
		assert_true(w->failure[i].at_s > w->failure[i - 1].at_s);
}

static void a_wrong_line_is_named(void **state)
{
	static const struct {
		const char *text, *because;
	} cases[] = {
		{ "", "day: the file is empty: a line such as" },
		{ "# no\n", "day:1: the text ends, and no job was in it" },
		{ "job", "day:1: job: '': a job has a name of at most 31 letters" },
		{ "\njib j", "day:2: 'jib': a line begins with job, jobs, fail or failures" },
		{ "job a workers=h1", "day:1: job: either model=... or bytes=... is needed" },
		{ "job a workers=h1 bytes=1 model=vgg19", "model=... or bytes=..., not both" },
		{ "job a bytes=1", "day:1: job: no workers=..., which is needed" },
		{ "job a bytes=1 workers=h1,hh", "'hh': the network has no host of that name" },
		{ "job a bytes=1 workers=s1", "'s1': the network has no host of that name" },
		{ "job a bytes=1 workers=h1 root=x", "root: 'x': any, none, or a machine" },
		{ "job a bytes=0 workers=h1", "bytes: '0': a number from 1 to 1000000000000" },
		{ "job a bytes=1 workers=h1 compute=-1", "compute: '-1': a number from 0" },
		{ "job a bytes=1 workers=h1 iterations=5..4",
		  "iterations: '5..4': a whole number" },
		{ "job a bytes=1 workers=h1 iterations=1.5", "iterations: '1.5': a whole number" },
		{ "job a bytes=1 workers=h1 slots=1.5..3", "slots: '1.5..3': a whole number" },
		{ "jobs a bytes=1 count=1 workers=2.5",
		  "workers: '2.5': a whole number from 1 to 256" },
		{ "jobs a bytes=1 count=1 workers=1..2.5", "workers: '1..2.5': a whole number" },
		{ "jobs a bytes=1 count=1 workers=zipf:1.5..3.5:1", "'zipf:1.5..3.5:1': a whole" },
		{ "jobs a bytes=1 count=1.5", "count: '1.5': a whole number from 1 to 65536" },
		{ "jobs a bytes=1 count=66k", "count: '66k': a whole number from 1 to 65536" },
		{ "job a bytes=1MB workers=h1",
		  "bytes: '1MB': a number from 1 to 1000000000000, a "
		  "range such as 3..6, or zipf:3..6:1.5; k, M and G" },
		{ "job a bytes=1 workers=h1 weight=x", "a number from 1 to 1000, such as 1.5" },
		{ "job a model=vgg workers=h1", "model: 'vgg': lstm, efficientnet-b0" },
		{ "job a model=vgg19,lstm workers=h1", "model: 'vgg19,lstm'" },
		{ "job a bytes=1 workers=h1 foo=2", "'foo': no such key; there are model, bytes" },
		{ "job a bytes=1 bytes=2 workers=h1", "'bytes': given twice" },
		{ "job a bytes=1 workers=h1 fast", "'fast': KEY=VALUE is needed here" },
		{ "jobs a bytes=1", "jobs: no count=..., which is needed" },
		{ "jobs a bytes=1 count=1 workers=12", "the network has 12 hosts: too few" },
		{ "jobs a bytes=1 count=1 hosts=far", "hosts: 'far': one of any and near" },
		{ "jobs a bytes=1 count=1 workers=zipf:3..6", "workers: 'zipf:3..6'" },
		{ "fail", "day:1: fail: a machine is needed, or two" },
		{ "fail s1 for=1", "fail: no at=..., which is needed" },
		{ "fail s1 h9 at=1 for=1", "fail: no cable joins these two machines" },
		{ "fail sx at=1 for=1", "'sx': the network has no machine of that name" },
		{ "failures hosts every=1 for=1", "'hosts': links or nodes" },
		{ "job x bytes=1 workers=h1\n#\njob x bytes=1 workers=h1",
		  "day:3: job: there is a job x since line 1" },
		{ "jobs x count=2 bytes=1\njobs x count=1 bytes=1",
		  "day:2: jobs: there is a job x since line 1" },
		{ "jobs x count=2 bytes=1\njob x.1 bytes=1 workers=h1",
		  "day:2: job: there is a job x.1 since line 1" },
		{ "\njob x.1 bytes=1 workers=h1\njobs x count=2 bytes=1",
		  "day:3: jobs: there is a job x.1 since line 2" },
		{ "failures links every=0 for=1", "every: '0': a number from 1" },
	};
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	struct workload *w = NULL;
	struct why why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(
			workload_parse("day", cases[i].text, strlen(cases[i].text), t, 1, &w, &why),
			-EINVAL);
		assert_null(w);
		if (!strstr(why.text, cases[i].because))
			fail_msg("'%s' is not in '%s'", cases[i].because, why.text);
	}
	assert_int_equal(workload_parse("day", "job\0x", 5, t, 1, &w, &why), -EINVAL);
	assert_non_null(strstr(why.text, "day:1: a byte 0"));
}

static void too_many_are_refused(void **state)
{
	static const char text[] =
		"jobs a count=65536 bytes=1 workers=1\njob b bytes=1 workers=h1\n";
	static const char often[] = "job b bytes=1 workers=h1\n"
				    "failures links every=1 for=1 until=100000\n";
	_cleanup_(topology_freep) struct topology *t = network("tapina");
	struct workload *w = NULL;
	struct why why;

	assert_int_equal(workload_parse("day", text, strlen(text), t, 1, &w, &why), -EINVAL);
	assert_non_null(strstr(why.text, "day:2: job: more than 65536 jobs"));
	assert_int_equal(workload_parse("day", often, strlen(often), t, 1, &w, &why), -EINVAL);
	assert_non_null(strstr(why.text, "day:2: failures: more than 65536 failures"));
	assert_null(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_is_what_its_line_says),
		cmocka_unit_test(jobs_by_chance_are_spread_as_they_should),
		cmocka_unit_test(units_multiply_all_numbers),
		cmocka_unit_test(zipf_draws_small_numbers_most),
		cmocka_unit_test(hosts_may_be_near),
		cmocka_unit_test(a_seed_makes_the_same_jobs_beside_others_too),
		cmocka_unit_test(failures_are_of_machines_and_of_cables),
		cmocka_unit_test(failures_do_not_share_their_chance),
		cmocka_unit_test(lines_of_failures_do_not_share_their_chance),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(too_many_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
