// SPDX-License-Identifier: GPL-2.0-only
/* Networks of a shape, and those that a text in the testbed's format describes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sim/topology.h"

static struct why why;

static struct topology *shape(const char *words)
{
	struct topology *t = NULL;

	why.text[0] = '\0';
	if (topology_shape(words, &t, &why) != 0)
		fail_msg("%s: %s", words, why.text);
	return t;
}

static struct topology *text_of(const char *text)
{
	const struct topology_defaults defaults = { .rate = 1000, .slots = 7 };
	struct topology *t = NULL;

	why.text[0] = '\0';
	if (topology_testbed(text, strlen(text), &defaults, &t, &why) != 0)
		fail_msg("%s", why.text);
	return t;
}

static void assert_network(const struct topology *t, unsigned int machines, unsigned int hosts,
			   unsigned int cables)
{
	assert_int_equal(t->graph->machines, machines);
	assert_int_equal(t->hosts, hosts);
	assert_int_equal(t->graph->links, 2 * cables);
	for (uint32_t i = 0; i < t->graph->links; i += 2) {
		assert_int_equal(t->graph->link[i].from, t->graph->link[i + 1].to);
		assert_int_equal(t->graph->link[i].to, t->graph->link[i + 1].from);
	}
}

static unsigned int cables_of(const struct topology *t, uint32_t machine)
{
	return t->graph->leaving_at[machine + 1] - t->graph->leaving_at[machine];
}

static uint32_t named(const struct topology *t, const char *name)
{
	uint32_t m = topology_machine(t, name);

	assert_int_not_equal(m, GRAPH_NONE);
	return m;
}

static uint32_t between(const struct topology *t, const char *from, const char *to)
{
	_cleanup_(freep) uint32_t *far = calloc(t->graph->machines + 1, sizeof(*far));

	assert_non_null(far);
	assert_int_equal(graph_distances(t->graph, named(t, to), far), 0);
	return far[named(t, from)];
}

/* --- shapes ---------------------------------------------------------------------------------- */

static void a_fat_tree_has_the_counts_and_distances_of_its_paper(void **state)
{
	for (uint32_t k = 2; k <= 16; k += 2) {
		char words[32];

		snprintf(words, sizeof(words), "fat-tree:k=%u", k);
		_cleanup_(topology_freep) struct topology *t = shape(words);
		assert_network(t, 5 * k * k / 4 + k * k * k / 4, k * k * k / 4, 3 * k * k * k / 4);
		for (uint32_t m = 0; m < t->graph->machines; m++)
			assert_int_equal(cables_of(t, m),
					 t->graph->machine[m].kind == GRAPH_HOST ? 1 : k);
	}
	_cleanup_(topology_freep) struct topology *t = shape("fat-tree:k=4");
	assert_int_equal(between(t, "h0.0.0", "h0.0.1"), 2);
	assert_int_equal(between(t, "h0.0.0", "h0.1.1"), 4);
	assert_int_equal(between(t, "h0.0.0", "h3.1.1"), 6);
	assert_int_equal(between(t, "a0.0", "c0"), 1);
	assert_int_equal(between(t, "a0.0", "c2"), 3);
}

static void a_leaf_has_a_cable_to_each_spine(void **state)
{
	_cleanup_(topology_freep) struct topology *t = shape(
		"leaf-spine:leaves=3,spines=5,hosts=7");

	assert_network(t, 5 + 3 + 21, 21, 15 + 21);
	for (uint32_t m = 0; m < t->graph->machines; m++)
		if (t->graph->machine[m].kind == GRAPH_HOST)
			assert_int_equal(cables_of(t, m), 1);
	assert_int_equal(cables_of(t, named(t, "s4")), 3);
	assert_int_equal(cables_of(t, named(t, "l2")), 12);
	assert_int_equal(between(t, "h0.0", "h2.6"), 4);
}

/* Of router "rGROUP.ROUTER". */
static size_t group_of(const char *router) { return strtoul(router + 1, NULL, 10); }

/* Any two groups have one cable, whose two ends are routers with as many global ones as said. */
static void groups_of_a_dragonfly_know_each_other_by_one_cable(void **state)
{
	static const uint32_t size[][3] = { { 1, 1, 1 }, { 4, 2, 2 }, { 3, 1, 5 }, { 8, 4, 4 } };

	for (size_t i = 0; i < sizeof(size) / sizeof(*size); i++) {
		uint32_t a = size[i][0], p = size[i][1], h = size[i][2], groups = a * h + 1;
		_cleanup_(freep) uint8_t *cables = calloc((size_t)groups * groups + 1, 1);
		char words[64];

		snprintf(words, sizeof(words), "dragonfly:routers=%u,hosts=%u,global=%u", a, p, h);
		_cleanup_(topology_freep) struct topology *t = shape(words);
		assert_network(t, groups * a * (1 + p), groups * a * p,
			       groups * (a * (a - 1) / 2 + a * p) + groups * (groups - 1) / 2);
		assert_non_null(cables);
		for (uint32_t l = 0; l < t->graph->links; l++) {
			const char *from = t->name[t->graph->link[l].from];
			const char *to = t->name[t->graph->link[l].to];

			if (*from == 'r' && *to == 'r')
				cables[group_of(from) * groups + group_of(to)]++;
		}
		for (uint32_t x = 0; x < groups; x++)
			for (uint32_t y = 0; y < groups; y++)
				assert_int_equal(cables[x * groups + y], x == y ? a * (a - 1) : 1);
		for (uint32_t m = 0; m < t->graph->machines; m++)
			if (t->graph->machine[m].kind == GRAPH_NODE)
				assert_int_equal(cables_of(t, m), a - 1 + p + h);
	}
}

static void the_network_of_tapina_is_that_of_the_authors(void **state)
{
	_cleanup_(topology_freep) struct topology *t = shape("tapina");

	assert_network(t, 22, 12, 8 + 8 + 12);
	assert_int_equal(between(t, "h1", "h3"), 2);
	assert_int_equal(between(t, "h1", "h4"), 4);
	assert_int_equal(between(t, "h1", "h7"), 6);
	assert_int_equal(between(t, "h12", "s8"), 2);
	assert_int_equal(between(t, "h12", "s5"), 4);
}

static void rates_and_slots_are_those_of_all_cables_and_nodes(void **state)
{
	_cleanup_(topology_freep) struct topology *t = shape("fat-tree:rate=100gbit,k=2,slots=5");
	_cleanup_(topology_freep) struct topology *usual = shape("fat-tree:k=2");

	for (uint32_t i = 0; i < t->graph->links; i++)
		assert_true(t->graph->link[i].capacity == 100e9 / 8);
	for (uint32_t m = 0; m < t->graph->machines; m++)
		assert_int_equal(t->graph->machine[m].slots,
				 t->graph->machine[m].kind == GRAPH_NODE ? 5 : 0);
	assert_true(usual->graph->link[0].capacity == TOPOLOGY_DEFAULTS.rate);
}

static void refused(const char *words, int error, const char *because)
{
	struct topology *t = (void *)&why;

	why.text[0] = '\0';
	assert_int_equal(topology_shape(words, &t, &why), error);
	assert_ptr_equal(t, &why); /* untouched */
	if (!strstr(why.text, because))
		fail_msg("%s: '%s' is not in '%s'", words, because, why.text);
}

static void wrong_words_are_named(void **state)
{
	char large[TOPOLOGY_WORDS_BYTES + 1];

	refused("fattree", -EINVAL,
		"no network 'fattree': there are fat-tree, leaf-spine, dragonfly and tapina");
	refused("", -EINVAL, "no network ''");
	refused("fat-tree:k=3", -EINVAL, "k is '3': allowed are even numbers from 2 to 64");
	refused("fat-tree:k=66", -EINVAL, "even numbers from 2 to 64");
	refused("fat-tree:k=0", -EINVAL, "even numbers from 2 to 64");
	refused("fat-tree:k", -EINVAL, "k is ''");
	refused("fat-tree:", -EINVAL, "no key ''");
	refused("fat-tree:k=4,hosts=2", -EINVAL, "no key 'hosts': there are rate, slots and k");
	refused("tapina:k=4", -EINVAL, "no key 'k': there are rate and slots");
	refused("tapina:rate=10", -EINVAL, "rate: '10' is no rate such as 10gbit");
	refused("fat-tree:rate=2.5gbit", -EINVAL, "whole numbers, such as 2500mbit");
	refused("fat-tree:k=4,k=6", -EINVAL, "fat-tree: k is given twice");
	refused("tapina:slots=4,rate=1gbit,slots=4", -EINVAL, "tapina: slots is given twice");
	refused("starnet", -EINVAL,
		"a file is known by a dot or a slash in its name, such as './starnet'");
	refused("tapina:slots=-1", -EINVAL, "slots: '-1' is no number");
	refused("dragonfly:routers=64,hosts=64,global=64", -E2BIG, "too many machines");
	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	refused(large, -EINVAL, "at most 255 bytes");
}

static void a_shape_before_a_colon_is_no_file(void **state)
{
	static const char *const shapes[] = { "tapina", "ring", "fat-tree:rate=2.5gbit",
					      "tapina:../a" };
	static const char *const files[] = {
		"./ring",      "a.topo",	   "/net/tapina",
		"tapina.topo", "dir/fat-tree:k=4", "ring:rate=2.5gbit"
	};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++)
		assert_true(topology_is_shape(shapes[i]));
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_false(topology_is_shape(files[i]));
}

static void help_names_all_shapes_and_their_keys(void **state)
{
	char text[1024], small[20];

	assert_non_null(
		strstr(topology_help(text, sizeof(text)), "fat-tree    k=4 (even, 2 to 64)\n"));
	assert_non_null(strstr(text, "tapina     \n"));
	assert_non_null(strstr(text, "leaves=4 (1 to 1024)"));
	assert_int_equal(strlen(topology_help(small, sizeof(small))), sizeof(small) - 1);
}

static void rates_are_as_tc_writes_them(void **state)
{
	static const struct {
		const char *text;
		double bits;
	} good[] = { { "8bit", 8 },	   { "1kbit", 1e3 },   { "500mbit", 5e8 },
		     { "10gbit", 1e10 },   { "2tbit", 2e12 },  { "1bps", 8 },
		     { "1kibit", 1024 },   { "3mbps", 2.4e7 }, { "1000tbit", 1e15 },
		     { "1mibps", 8388608 } };
	static const char *const bad[] = { "",
					   "0gbit",
					   "gbit",
					   "1",
					   "1g",
					   "-1gbit",
					   "1.5gbit",
					   "1GBIT",
					   "1gbits",
					   "1 gbit",
					   "1001tbit",
					   "1xbit",
					   "99999999999999999999999999bit" };
	double rate = -1;

	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(topology_rate(good[i].text, &rate));
		assert_true(rate == good[i].bits / 8);
	}
	rate = -1;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(topology_rate(bad[i], &rate));
	assert_true(rate == -1);
}

/* --- texts ----------------------------------------------------------------------------------- */

static void a_text_of_the_testbed_is_a_network(void **state)
{
	_cleanup_(topology_freep) struct topology *t = text_of(
		"# a rack\nhost w0 w1\n\n  node n0\nswitch s0 # bridge\n"
		"link w0 s0 rate 8kbit loss 1% flip-hidden mark-up 1\nlink w1 s0 plain mtu 1500\n"
		"link s0 n0");

	assert_network(t, 4, 2, 3);
	assert_int_equal(t->graph->machine[named(t, "w1")].kind, GRAPH_HOST);
	assert_int_equal(t->graph->machine[named(t, "n0")].kind, GRAPH_NODE);
	assert_int_equal(t->graph->machine[named(t, "n0")].slots, 7);
	assert_int_equal(t->graph->machine[named(t, "s0")].kind, GRAPH_ROUTER);
	assert_true(t->graph->link[0].capacity == 1000 && t->graph->link[2].capacity == 1000);
	assert_int_equal(t->graph->link[0].from, named(t, "w0"));
	assert_int_equal(between(t, "w0", "n0"), 2);
	assert_int_equal(topology_machine(t, "w2"), GRAPH_NONE);
}

static void a_wrong_line_is_named(void **state)
{
	static const struct {
		const char *text, *because;
	} cases[] = {
		{ "", "line 1: the file is empty" },
		{ "# nothing\n", "line 1: the text ends" },
		{ "hosts w0", "line 1: 'hosts': neither host, node, switch, link nor way" },
		{ "host", "line 1: names are missing" },
		{ "host a\n\nnode a", "line 3: 'a': there is one since line 1" },
		{ "host a\nnode none", "line 2: 'none': no name, as workloads say root=any" },
		{ "host any", "line 1: 'any': no name" },
		{ "host a b\nlink a b rate 1gbit loss 1% rate 1gbit",
		  "line 2: 'rate': the link has one already" },
		{ "host a-b", "line 1: 'a-b': a name has at most 31 letters" },
		{ "host abcdefghijabcdefghijabcdefghijab", "a name has at most 31 letters" },
		{ "host a\nlink a", "line 2: a link has two names" },
		{ "host a\nlink a b", "line 2: 'b': no host, node or switch of that name above" },
		{ "host a\nlink a a", "line 2: 'a': a link to itself" },
		{ "host a b\nway a b", "line 2: a way has three names: at, to and next" },
		{ "host a b\nway a b b b", "line 2: a way has three names" },
		{ "host a b\nway a b c",
		  "line 2: 'c': no host, node or switch of that name above" },
		{ "host a b\nway a b b", "line 2: 'b': no link leads there" },
		{ "host a b\nlink a b\nway a a b",
		  "line 3: 'a': packets for it are there already" },
		{ "host a b\nlink a b fast", "line 2: 'fast': no word of a link" },
		{ "host a b\nlink a b loss", "line 2: 'loss': its value is missing" },
		{ "host a b\nlink a b rate", "line 2: '': no rate such as" },
		{ "host a b\nlink a b rate 1", "line 2: '1': no rate such as" },
		{ "host a b\nlink a b rate 2.5gbit", "whole numbers, such as 2500mbit" },
	};
	struct topology *t = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(topology_testbed(cases[i].text, strlen(cases[i].text),
						  &TOPOLOGY_DEFAULTS, &t, &why),
				 -EINVAL);
		assert_null(t);
		if (!strstr(why.text, cases[i].because))
			fail_msg("'%s' is not in '%s'", cases[i].because, why.text);
	}
	assert_int_equal(topology_testbed("host a\0b", 8, &TOPOLOGY_DEFAULTS, &t, &why), -EINVAL);
	assert_non_null(strstr(why.text, "line 1: a byte 0"));
}

/* How many ways each of two parallel cables has, and the one cable beside them. */
static void a_way_takes_all_cables_to_the_next(void **state)
{
	static const char network[] = "host h\nswitch a b c\nlink a b\nlink b a\nlink a c\n"
				      "link b h\nlink c b\n";
	static const struct {
		const char *ways;
		unsigned int times[3];
	} cases[] = {
		{ "way a h b", { 1, 1, 0 } },
		{ "way a h b\nway a h c\nway a h b", { 1, 1, 1 } }, /* as --export says it */
		{ "way a h c\nway a h b\nway a h c", { 1, 1, 2 } }, /* two gateways behind c */
		{ "way a h b\nway a h b\nway a h b", { 2, 1, 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		static const unsigned int cable[] = { 0, 3, 4 }; /* links from a */
		char text[256];

		snprintf(text, sizeof(text), "%s%s", network, cases[i].ways);
		_cleanup_(topology_freep) struct topology *t = text_of(text);
		for (unsigned int c = 0; c < 3; c++) {
			unsigned int times = 0;

			for (unsigned int w = 0; w < t->ways; w++)
				times += t->way[w].link == cable[c];
			assert_int_equal(times, cases[i].times[c]);
		}
		for (unsigned int w = 0; w < t->ways; w++)
			assert_true(t->way[w].at == named(t, "a") &&
				    t->way[w].to == named(t, "h") && t->way_line[w] >= 8);
	}
}

/* a, b and c in a ring; h and k at a and b; i at two switches; d has no cable that leads back. */
static void ways_that_lead_astray_are_counted_and_the_first_is_named(void **state)
{
	static const char network[] = "host h i k\nswitch a b c\nlink a b\nlink b c\nlink c a\n"
				      "link h a\nlink k b\nlink i a\nlink i c\n";
	static const struct {
		const char *ways;
		int astray;
		const char *because; /* of line 10 and those behind it */
	} cases[] = {
		{ "", 0, "" },
		{ "way c k a\nway a k b", 0, "" },
		{ "way c k a", 0, "" }, /* a has none, and b is nearer */
		{ "way b h c\nway c h a\nway a k c\nway c k b", 0, "" },
		{ "way c k b\nway b h a\n\nway c h b\nway a i b\nway b i a", 1,
		  "line 14: packets for i come round again to a" },
		{ "way b h c\nway c h b", 1, "line 10: packets for h come round again to b" },
		{ "way c h b\nway b h c\nway c k a\nway a k c", 2,
		  "line 10: packets for h come round again to" },
		{ "way a k c\nway c k b\nway c k a", 1,
		  "line 10: packets for k come round again to a" }, /* one of two */
		{ "way b h c\nway c h i", 1, "line 11: packets for h end at another host, i" },
		/* No way at c: b is as near as it gets, and sends back. */
		{ "way b k c", 1, "line 10: packets for k come round again to b" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[512];

		snprintf(text, sizeof(text), "%s%s", network, cases[i].ways);
		_cleanup_(topology_freep) struct topology *t = text_of(text);
		assert_int_equal(topology_astray(t, &why), cases[i].astray);
		if (!strstr(why.text, cases[i].because))
			fail_msg("'%s' is not in '%s'", cases[i].because, why.text);
	}
	_cleanup_(topology_freep) struct topology *t = text_of(
		"host h k\nswitch a b\nlink h a\nlink a b\nway a k b\n");
	assert_int_equal(topology_astray(t, &why), 1);
	assert_string_equal(why.text, "line 5: packets for k have no path from b");
}

static void a_line_has_4096_bytes_and_no_more(void **state)
{
	char text[4099] = "host a #";
	struct topology *t = NULL;

	memset(text + 8, 'x', sizeof(text) - 8);
	assert_int_equal(topology_testbed(text, 4096, &TOPOLOGY_DEFAULTS, &t, &why), 0);
	topology_free(t);
	t = NULL;
	assert_int_equal(topology_testbed(text, 4097, &TOPOLOGY_DEFAULTS, &t, &why), -EINVAL);
	assert_non_null(strstr(why.text, "line 1: longer than 4096 bytes"));
	text[4096] = '\n';
	assert_int_equal(topology_testbed(text, 4098, &TOPOLOGY_DEFAULTS, &t, &why), -EINVAL);
	assert_non_null(strstr(why.text, "line 2: 'x': neither"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fat_tree_has_the_counts_and_distances_of_its_paper),
		cmocka_unit_test(a_leaf_has_a_cable_to_each_spine),
		cmocka_unit_test(groups_of_a_dragonfly_know_each_other_by_one_cable),
		cmocka_unit_test(the_network_of_tapina_is_that_of_the_authors),
		cmocka_unit_test(rates_and_slots_are_those_of_all_cables_and_nodes),
		cmocka_unit_test(wrong_words_are_named),
		cmocka_unit_test(a_shape_before_a_colon_is_no_file),
		cmocka_unit_test(help_names_all_shapes_and_their_keys),
		cmocka_unit_test(rates_are_as_tc_writes_them),
		cmocka_unit_test(a_text_of_the_testbed_is_a_network),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(a_way_takes_all_cables_to_the_next),
		cmocka_unit_test(ways_that_lead_astray_are_counted_and_the_first_is_named),
		cmocka_unit_test(a_line_has_4096_bytes_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
