// SPDX-License-Identifier: GPL-2.0-only
/* What has happened in a cluster: agent/cluster/events.h. */
#include "agent/cluster/events.h"
#include "cluster_world.h"
#include "common/owned.h"
#include "random.h"

#define BIRTH "00000000feedface"
#define LATER "00000000feedfacf"
#define JOB(birth)                                                                                       \
	"{\"name\": \"train\", \"tenant\": \"red\", \"token\": \"5b1f\", \"id\": 7, \"birth\": \"" birth \
	"\", \"workers\": 2, \"window\": 128}"
#define PLACE(birth, root, why)                                                                  \
	"{\"birth\": \"" birth "\", \"root\": \"" root                                           \
	"\", \"address\": \"10.77.0.1\", \"why\": \"" why "\", \"weighed\": [{\"node\": \"" root \
	"\", \"total\": \"0.5\"}, "                                                              \
	"{\"node\": \"n9\", \"total\": \"2\"}]}"

static struct events *e;
static struct shared shared;
static uint64_t revision, now_ms;

static int up(void **state)
{
	e = calloc(1, sizeof(*e));
	revision = now_ms = 0;
	return e ? 0 : -1;
}

static int down(void **state)
{
	events_close(e);
	free(e);
	shared_close(&shared);
	return 0;
}

/* A node has this report, or none if it has no runs below 0. */
static void reports_as(const char *node, int runs, bool cordoned, bool is_news)
{
	_cleanup_(report_freep) struct report *r = report_of(node, "10.77.0.1");

	r->cordoned = cordoned;
	for (int i = 0; i < 3; i++)
		ADD(r->job, r->jobs)->runs = i < runs;
	events_report(e, node, runs < 0 ? NULL : r, is_news, ++now_ms);
}

static void reports(const char *node, int runs, bool cordoned)
{
	reports_as(node, runs, cordoned, true);
}

static void goes(const char *node) { reports(node, -1, false); }

static void told_as(const char *key, const char *value, bool is_news)
{
	struct why why;

	assert_int_equal(shared_take(&shared, key, value, ++revision, &why), 0);
	events_shared(e, &shared, key, value, is_news, ++now_ms);
}

static void told(const char *key, const char *value) { told_as(key, value, true); }

/* All that has happened, a line each: "moved job=train node=n1 from=n0: why". */
static char *printed(void)
{
	char *text = NULL;
	size_t length;
	FILE *f = open_memstream(&text, &length);

	for (unsigned int i = 0; i < events_known(e); i++) {
		const struct cluster_event *x = events_at(e, i);

		fputs(events_words[x->kind], f);
		if (*x->job)
			fprintf(f, " job=%s", x->job);
		if (*x->node)
			fprintf(f, " node=%s", x->node);
		if (*x->from)
			fprintf(f, " from=%s", x->from);
		fprintf(f, ": %s\n", x->why);
	}
	fclose(f);
	return text;
}

static void assert_happened(const char *expected)
{
	_cleanup_(freep) char *text = printed();

	assert_string_equal(text, expected);
}

/* --- nodes ----------------------------------------------------------------------------------- */

#define CAME(node) "came node=" node ": tallyd 1.2.3 reports it\n"
#define SILENT(node) "silent node=" node ": its agent ended, or was not heard for 10 s\n"

static void a_node_comes_and_goes(void **state)
{
	reports("n1", 0, false);
	reports("n0", 1, false);
	reports("n1", 2, false); /* runs are no event */
	goes("n1");
	goes("n1");
	reports("n1", 0, true);
	assert_happened(CAME("n1") CAME("n0")
				SILENT("n1") "came node=n1: tallyd 1.2.3 reports it, cordoned\n");
	assert_int_equal(events_at(e, 0)->at_ms, 1);
	assert_int_equal(events_at(e, 3)->at_ms, 6);
	assert_int_equal(e->count[EVENTS_CAME], 3);
}

static void what_was_before_is_no_event(void **state)
{
	reports_as("n0", 1, true, false);
	told_as("job/train", JOB(BIRTH), false);
	told_as("place/train", PLACE(BIRTH, "n0", "x"), false);
	told_as("refusal/train/n1", "full", false);
	told_as("job/other", NULL, false);
	reports_as("n1", 1, false, false);
	reports_as("n1", 1, true, false);
	reports_as("n1", 0, true, false);
	reports_as("n1", -1, false, false);
	told_as("place/train", PLACE(BIRTH, "n1", "x"), false);
	told_as("job/train", NULL, false);
	told_as("job/train", JOB(BIRTH), false);
	told_as("place/train", PLACE(BIRTH, "n0", "x"), false);
	assert_happened("");
	reports("n0", 1, true);
	told("job/train", JOB(BIRTH));
	told("place/train", PLACE(BIRTH, "n0", "x"));
	told("refusal/train/n1", "full");
	assert_happened("");
	reports("n0", 0, true);
	told("place/train", PLACE(BIRTH, "n1", "y"));
	told("refusal/train/n0", "full");
	assert_happened("drained node=n0: its last run is over\n"
			"moved job=train node=n1 from=n0: y\n"
			"refused job=train node=n0: full\n");
}

static void a_cordoned_node_is_drained_when_its_last_run_is_over(void **state)
{
	reports_as("n0", 2, false, false);
	reports("n0", 2, true);
	reports("n0", 1, true);
	reports("n0", 0, true);
	reports("n0", 0, true);
	reports("n0", 0, false);
	reports("n0", 1, false);
	reports("n0", 0, true); /* both at once */
	reports("n0", 0, false);
	reports("n0", 0, true); /* there was no run */
	assert_happened("cordoned node=n0: an operator said so\n"
			"drained node=n0: its last run is over\n"
			"uncordoned node=n0: an operator said so\n"
			"cordoned node=n0: an operator said so\n"
			"drained node=n0: its last run is over\n"
			"uncordoned node=n0: an operator said so\n"
			"cordoned node=n0: an operator said so\n");
}

static void another_leader_is_an_event(void **state)
{
	events_leader(e, NULL, 1);
	events_leader(e, "n0", 2);
	events_leader(e, "", 3);
	events_leader(e, "n0", 4);
	events_leader(e, NULL, 5);
	assert_happened("");
	events_leader(e, "n1", 6);
	assert_happened("leader node=n1 from=n0: n0 leads no more\n");
}

/* --- jobs ------------------------------------------------------------------------------------ */

#define CREATED "created job=train: tenant red asked for it, with 2 workers\n"

static void a_job_is_created_placed_moved_and_deleted(void **state)
{
	const struct cluster_event *moved;

	told("job/train", JOB(BIRTH));
	told("worker/train/n0/1", "{\"node\": \"n0\", \"address\": \"10.0.0.1:40000\"}");
	told("place/train", PLACE(BIRTH, "n0", "least cost"));
	told("place/train", PLACE(BIRTH, "n0", "workers are elsewhere"));
	told("place/train", PLACE(BIRTH, "n1", "it moves"));
	moved = events_at(e, 2);
	assert_int_equal(moved->weighs, 2);
	assert_string_equal(moved->weighed[1].node, "n9");
	assert_string_equal(moved->weighed[1].total, "2");
	assert_string_equal(moved->tenant, "red");
	told("job/train", NULL);
	told("place/train", NULL);
	assert_happened(CREATED "placed job=train node=n0: least cost\n"
				"moved job=train node=n1 from=n0: it moves\n"
				"deleted job=train from=n1: an operator said so\n");
}

/* Nobody said so, and nobody asked for it. */
static void what_another_store_has_or_lacks_no_operator_did(void **state)
{
	reports_as("n0", 0, false, false);
	told("job/train", JOB(BIRTH));
	e->resets = true;
	told("job/train", NULL);
	told("job/train", JOB(LATER));
	goes("n0");
	e->resets = false;
	told("job/train", NULL);
	assert_happened(CREATED "deleted job=train: the store came back without it\n"
				"created job=train: the store came back with it\n"
				"silent node=n0: the store came back without its report\n"
				"deleted job=train: an operator said so\n");
}

#define SHARE(root, share, why)                                                           \
	"{\"birth\": \"" BIRTH "\", \"root\": \"" root "\", \"address\": \"10.77.0.1\", " \
	"\"share\": " share ", \"why\": \"" why "\"}"

/* A root that moves has its share there: that is one event. */
static void the_shares_of_roots_change(void **state)
{
	told("job/train", JOB(BIRTH));
	told("place/train", SHARE("n0", "800", "20 of 25"));
	told("place/train", SHARE("n0", "800", "workers are elsewhere"));
	told("place/train", SHARE("n0", "515", "5 of 10"));
	told("place/train", SHARE("n1", "600", "it moves"));
	told("place/train", SHARE("n1", "600", "it moves"));
	assert_happened(CREATED "placed job=train node=n0: 20 of 25\n"
				"shares job=train node=n0: 51.5 %, before 80.0 %; 5 of 10\n"
				"moved job=train node=n1 from=n0: it moves\n");
}

#define WAYS(root, why)                                                                   \
	"{\"birth\": \"" BIRTH "\", \"root\": \"" root "\", \"address\": \"10.77.0.1\", " \
	"\"why\": \"" why "\", \"ways\": []}"

/* Ways to a root that the job has not are none. */
static void the_ways_of_packets_change(void **state)
{
	told("job/train", JOB(BIRTH));
	told("ways/train", WAYS("n0", "too early"));
	told("ways/train", NULL);
	told("place/train", PLACE(BIRTH, "n0", "least cost"));
	told("ways/train", WAYS("n0", "the upper one is free"));
	told("ways/train", WAYS("n0", "now the lower one"));
	told("ways/train", NULL);
	told("ways/train", WAYS("n0", "the upper one"));
	told("place/train", PLACE(BIRTH, "n1", "it moves"));
	told("ways/train", NULL);
	assert_happened(CREATED "placed job=train node=n0: least cost\n"
				"ways job=train node=n0: the upper one is free\n"
				"ways job=train node=n0: now the lower one\n"
				"ways job=train node=n0: those that routing has\n"
				"ways job=train node=n0: the upper one\n"
				"moved job=train node=n1 from=n0: it moves\n"
				"ways job=train node=n1: those that routing has\n");
}

static void the_order_of_keys_does_not_matter(void **state)
{
	told("refusal/train/n3", "old");
	told("place/train", PLACE(BIRTH, "n0", "least cost"));
	assert_happened("");
	told("job/train", JOB(BIRTH));
	told("place/train", NULL);
	told("job/train", NULL);
	assert_happened(CREATED "placed job=train node=n0: least cost\n"
				"deleted job=train from=n0: an operator said so\n");
}

static void a_later_job_of_the_name_is_another(void **state)
{
	told("job/train", JOB(BIRTH));
	told("place/train", PLACE(BIRTH, "n0", "least cost"));
	told("job/train", JOB(LATER));
	told("place/train", PLACE(LATER, "n0", "again"));
	assert_happened(CREATED "placed job=train node=n0: least cost\n"
				"deleted job=train from=n0: an operator said so\n" CREATED
				"placed job=train node=n0: again\n");
}

static void a_refusal_has_its_reason(void **state)
{
	told("refusal/gone/n0", "not a job");
	told("job/train", JOB(BIRTH));
	told("refusal/train/n0", "no such \"tenant\"\033[31m\177\xc3\xa9");
	told("refusal/train/n0", "the same");
	told("refusal/train/n0", NULL);
	told("refusal/train/n0", "anew");
	assert_happened(CREATED "refused job=train node=n0: no such \"tenant\"?[31m???\n"
				"refused job=train node=n0: anew\n");
	assert_string_equal(events_at(e, 1)->tenant, "red");
}

static void keys_of_no_job_are_left_alone(void **state)
{
	static const char *const keys[] = { "", "leader", "job/", "refusal/x", "refusal/x/", "/" };
	char key[300] = "job/";

	memset(key + 4, 'a', sizeof(key) - 5);
	events_shared(e, &shared, key, "x", true, 1);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		events_shared(e, &shared, keys[i], "x", true, 1);
	assert_happened("");
}

/* --- many ------------------------------------------------------------------------------------ */

static void the_oldest_are_forgotten(void **state)
{
	char node[16];

	for (unsigned int i = 0; i < EVENTS_MAX + 7; i++) {
		assert_int_equal(events_known(e), i < EVENTS_MAX ? i : EVENTS_MAX);
		snprintf(node, sizeof(node), "n%u", i);
		reports(node, 0, false);
	}
	assert_string_equal(events_at(e, 0)->node, "n7");
	snprintf(node, sizeof(node), "n%u", EVENTS_MAX + 6);
	assert_string_equal(events_at(e, EVENTS_MAX - 1)->node, node);
	assert_int_equal(e->count[EVENTS_CAME], EVENTS_MAX + 7);
	assert_int_equal(e->nodes.rows, EVENTS_MAX + 7);
}

static void something(uint64_t *random, unsigned int times)
{
	static const char *const nodes[] = { "n0", "n1", "n2" };
	static const char *const jobs[] = { NULL, JOB(BIRTH), JOB(LATER) };
	static const char *const places[] = { NULL, PLACE(BIRTH, "n0", "x"),
					      PLACE(BIRTH, "n1", "x"), PLACE(LATER, "n2", "x") };
	const unsigned int what = random_below(random, 4), which = random_below(random, 12);
	char key[32];

	for (; times; times--)
		switch (what) {
		case 0:
			reports(nodes[which % 3], (int)(which / 3) - 1, which % 2);
			break;
		case 1:
			told("job/train", jobs[which % 3]);
			break;
		case 2:
			told("place/train", places[which % 4]);
			break;
		case 3:
			snprintf(key, sizeof(key), "refusal/train/%s", nodes[which % 3]);
			told(key, which > 6 ? "full" : NULL);
			break;
		}
}

/* Whatever comes, who hears each thing twice has the same list as who hears it once. */
static void what_is_told_twice_happens_once(void **state)
{
	for (uint64_t seed = 0; seed < 200; seed++) {
		_cleanup_(freep) char *once = NULL, *twice = NULL;

		for (unsigned int times = 1; times <= 2; times++) {
			uint64_t random = seed;

			for (int i = 0; i < 60; i++)
				something(&random, times);
			*(times == 1 ? &once : &twice) = printed();
			down(NULL);
			up(NULL);
		}
		assert_string_equal(once, twice);
		assert_true(*once);
	}
}

#define fact(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(a_node_comes_and_goes),
		fact(what_was_before_is_no_event),
		fact(a_cordoned_node_is_drained_when_its_last_run_is_over),
		fact(another_leader_is_an_event),
		fact(a_job_is_created_placed_moved_and_deleted),
		fact(what_another_store_has_or_lacks_no_operator_did),
		fact(the_shares_of_roots_change),
		fact(the_ways_of_packets_change),
		fact(the_order_of_keys_does_not_matter),
		fact(a_later_job_of_the_name_is_another),
		fact(a_refusal_has_its_reason),
		fact(keys_of_no_job_are_left_alone),
		fact(the_oldest_are_forgotten),
		fact(what_is_told_twice_happens_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
