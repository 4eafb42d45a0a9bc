// SPDX-License-Identifier: GPL-2.0-only
/* The command line of tally-sim. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "sim/sim_options.h"

enum {
	WORDS_MAX = 20,
};

/* The words of a line, without the program's name. */
static int parse(const char *line, struct sim_options *ret, struct why *why)
{
	static char copy[512];
	const char *word[WORDS_MAX] = { "tally-sim" };
	int words = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *at = strtok(copy, " "); at; at = strtok(NULL, " "))
		word[words++] = at;
	return sim_options_parse(words, word, ret, why);
}

static void options_are_taken_in_both_ways(void **state)
{
	struct sim_options o;
	struct why why;

	assert_int_equal(parse("run --network=tapina --workload w --placement tapina-mg,none "
			       "--seed=7 --nodes 3 --node-jobs=2 --distance 2.5 --moves --near all "
			       "--explain j --json",
			       &o, &why),
			 0);
	assert_int_equal(o.verb, SIM_OPTIONS_RUN);
	assert_string_equal(o.network, "tapina");
	assert_string_equal(o.workload, "w");
	assert_int_equal(o.policies, 2);
	assert_string_equal(o.policy[1]->name, "none");
	assert_int_equal(o.seed, 7);
	assert_int_equal(o.place.seed, 7);
	assert_int_equal(o.place.nodes_max, 3);
	assert_int_equal(o.place.jobs_max, 2);
	assert_int_equal(o.near, 0);
	assert_true(o.place.distance_max == 2.5 && o.moves && o.json && !o.csv);
	assert_string_equal(o.explain, "j");
}

static void slots_have_options_of_their_own(void **state)
{
	struct sim_options o;
	struct why why;

	assert_int_equal(parse("slots --network n --workload w --slots 16,1024 --policy esa,ranges "
			       "--window 64 --round-trip 12.5 --spread 3 --csv",
			       &o, &why),
			 0);
	assert_int_equal(o.verb, SIM_OPTIONS_SLOTS);
	assert_int_equal(o.sizes, 2);
	assert_int_equal(o.size[1], 1024);
	assert_int_equal(o.slots_policies, 2);
	assert_string_equal(o.slots_policy[1]->name, "ranges");
	assert_int_equal(o.window, 64);
	assert_true(o.round_trip_us == 12.5 && o.spread_us == 3 && o.csv);
	assert_int_equal(parse("slots --network n --workload w --slots 16", &o, &why), 0);
	assert_int_equal(o.slots_policies, SLOTS_POLICIES_COUNT);
}

static void what_is_not_said_has_its_default(void **state)
{
	const struct place_options usual = PLACE_OPTIONS;
	struct sim_options o;
	struct why why;

	assert_int_equal(parse("run --network n --workload w --placement none", &o, &why), 0);
	assert_int_equal(o.place.nodes_max, usual.nodes_max);
	assert_int_equal(o.near, 16);
	assert_int_equal(o.seed, 1);
	assert_null(o.explain);
	assert_int_equal(parse("policies", &o, &why), 0);
	assert_int_equal(o.verb, SIM_OPTIONS_POLICIES);
	assert_int_equal(parse("run --help", &o, &why), 0);
	assert_int_equal(o.verb, SIM_OPTIONS_HELP);
	assert_int_equal(parse("--version", &o, &why), 0);
	assert_int_equal(o.verb, SIM_OPTIONS_VERSION);
	assert_int_equal(parse("policies --version", &o, &why), 0);
	assert_int_equal(o.verb, SIM_OPTIONS_VERSION);
	assert_int_equal(parse("run --json --version --no-such", &o, &why), 0);
	assert_int_equal(o.verb, SIM_OPTIONS_VERSION);
}

static void wrong_words_are_named(void **state)
{
	static const struct {
		const char *line, *because;
	} cases[] = {
		{ "", "a command is needed" },
		{ "runs", "no command 'runs': is run meant?" },
		{ "xyz", "no command 'xyz': there are run, slots, policies, networks and models" },
		{ "policies --json", "policies takes no options" },
		{ "run", "--network is needed" },
		{ "run --network n", "--workload is needed" },
		{ "run --network n --workload w", "--placement is needed" },
		{ "run --netwrk n", "no option '--netwrk': is --network meant?" },
		{ "run --network", "--network: its value is missing" },
		{ "run --network=", "--network: a text is missing" },
		{ "run --moves=1", "--moves takes no value" },
		{ "run --seed x", "--seed 'x': a number from 0 to 2^64 - 1" },
		{ "run --nodes 0", "--nodes '0': a number from 1 to 4294967295" },
		{ "run --tree 33", "--tree '33': a number from 1 to 32" },
		{ "run --near some", "--near 'some': all, or a number from 1 to 65536" },
		{ "run --distance -1", "--distance '-1': a number such as 2 or 0.5" },
		{ "run --placement none,nobody", "no policy 'nobody': there are none, tapina" },
		{ "run --placement none,none", "--placement: none is named twice" },
		{ "run --network n --workload w --placement none --background 1",
		  "--background: a number from 0 to below 1" },
		{ "slots --network n --workload w", "--slots is needed" },
		{ "slots --placement none", "--placement is an option of 'tally-sim run'" },
		{ "run --slots 4", "--slots is an option of 'tally-sim slots'" },
		{ "slots --slots 4,x", "--slots 'x': a number from 1 to 1048576" },
		{ "slots --policy esa,atp", "no policy of slots 'atp': there are static, fcfs" },
		{ "slots --policy esa,esa", "--policy: esa is named twice" },
		{ "slots --window 2000", "--window '2000': a number from 1 to 1024" },
		{ "run --network n --workload w --placement none --json --csv",
		  "--json and --csv exclude each other" },
	};
	struct sim_options o = { .seed = 99 };
	struct why why;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(cases[i].line, &o, &why), -EINVAL);
		assert_int_equal(o.seed, 99);
		if (!strstr(why.text, cases[i].because))
			fail_msg("'%s' is not in '%s'", cases[i].because, why.text);
	}
}

/* Each option of the table stands in the help. */
static void the_help_has_all_options(void **state)
{
	struct sim_options o;
	struct why why;
	char list[512], *rest = list, *name;

	assert_int_equal(parse("run --zzzzzzzzzzzzzzz", &o, &why), -EINVAL);
	snprintf(list, sizeof(list), "%s", strstr(why.text, "there are ") + strlen("there are "));
	while ((name = strsep(&rest, ", "))) {
		if (*name == '-' && !strstr(SIM_OPTIONS_HELP_TEXT, name))
			fail_msg("%s is not in the help", name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_taken_in_both_ways),
		cmocka_unit_test(slots_have_options_of_their_own),
		cmocka_unit_test(what_is_not_said_has_its_default),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(the_help_has_all_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
