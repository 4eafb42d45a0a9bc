// SPDX-License-Identifier: GPL-2.0-only
/* Networks in GraphML. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "common/owned.h"
#include "sim/graphml.h"

#define HEAD                                                                      \
	"<?xml version=\"1.0\"?>\n<graphml>\n"                                    \
	"<key id=\"d0\" for=\"node\" attr.name=\"kind\" attr.type=\"string\"/>\n" \
	"<key id=\"d1\" for=\"edge\" attr.name=\"rate\" attr.type=\"string\"/>\n" \
	"<key id=\"d2\" for=\"node\" attr.name=\"slots\" attr.type=\"int\"/>\n"   \
	"<key id=\"d3\" for=\"node\" attr.name=\"Latitude\"/>\n"                  \
	"<graph edgedefault=\"undirected\">\n"
#define TAIL "</graph></graphml>\n"

static struct why why;

static int parse(const char *text, struct topology **ret)
{
	return topology_graphml(text, strlen(text), &TOPOLOGY_DEFAULTS, ret, &why);
}

static void a_text_is_a_network(void **state)
{
	_cleanup_(topology_freep) struct topology *t = NULL;
	const struct graph *g;

	if (parse(HEAD
		  "<node id=\"w0\"><data key=\"d0\"> host\n</data></node>\n"
		  "<node id=\"n0\"><data key=\"d2\">7</data><data key=\"d3\">48.1</data></node>\n"
		  "<node id=\"r0\"><data key=\"d0\">switch</data></node>\n"
		  "<edge source=\"w0\" target=\"r0\"><data key=\"d1\">8kbit</data></edge>\n"
		  "<edge source=\"r0\" target=\"n0\"/>\n" TAIL,
		  &t) != 0)
		fail_msg("%s", why.text);
	g = t->graph;
	assert_int_equal(g->machines, 3);
	assert_int_equal(g->links, 4);
	assert_int_equal(t->hosts, 1);
	assert_int_equal(g->machine[topology_machine(t, "w0")].kind, GRAPH_HOST);
	assert_int_equal(g->machine[topology_machine(t, "r0")].kind, GRAPH_ROUTER);
	assert_int_equal(g->machine[topology_machine(t, "n0")].slots, 7);
	assert_int_equal(g->machine[topology_machine(t, "w0")].slots, 0);
	assert_true(g->link[0].capacity == 1000 && g->link[2].capacity == 1.25e9);
	assert_int_equal(g->link[1].to, topology_machine(t, "w0"));
}

#define KEY(id, of, name, usual)                                                                \
	"<key id=\"" id "\" for=\"" of "\" attr.name=\"" name "\"><default>" usual "</default>" \
	"</key>\n"

static void a_default_of_a_key_holds_where_there_is_no_data(void **state)
{
	_cleanup_(topology_freep) struct topology *t = NULL;
	const struct graph *g;

	if (parse("<graphml>\n" KEY("k", "node", "kind", "host") KEY("s", "node", "slots", "9") KEY(
			  "r", "all", "rate", " 8kbit ") KEY("x", "edge", "kind", "fibre")
			  KEY("y", "node", "Country",
			      "") "<graph>\n"
				  "<node id=\"a\"/>\n<node id=\"b\"/>\n"
				  "<node id=\"n\"><data key=\"k\">node</data></node>\n"
				  "<node id=\"m\"><data key=\"s\">3</data><data key=\"k\">node</data></node>\n"
				  "<edge source=\"a\" target=\"n\"/>\n"
				  "<edge source=\"b\" target=\"n\"><data key=\"r\">16kbit</data></edge>\n"
				  "<edge source=\"n\" target=\"m\"/>\n" TAIL,
		  &t) != 0)
		fail_msg("%s", why.text);
	g = t->graph;
	assert_int_equal(t->hosts, 2);
	assert_int_equal(g->machine[topology_machine(t, "a")].slots, 0);
	assert_int_equal(g->machine[topology_machine(t, "n")].slots, 9);
	assert_int_equal(g->machine[topology_machine(t, "m")].slots, 3);
	assert_true(g->link[0].capacity == 1000 && g->link[2].capacity == 2000);
	assert_true(g->link[4].capacity == 1000);
}

static void a_wrong_text_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *because;
	} cases[] = {
		{ "", "line 1: the file is empty" },
		{ " ", "line 1: no element found" },
		{ "hosts", "line 1: syntax error" },
		{ "<graphml>\n<graph>\n</graphml>", "line 3: mismatched tag" },
		{ HEAD TAIL, "line 9: the text ends, and no node was in it" },
		{ HEAD "<node/>" TAIL, "line 8: '': an id of a node has 1 to 31" },
		{ HEAD "<node id=\"any\"/>" TAIL, "line 8: 'any': no id, as workloads say" },
		{ HEAD "<node id=\"a b\"/>" TAIL, "line 8: 'a b': an id of a node" },
		{ HEAD "<node id=\"a\"/>\n<node id=\"a\"/>" TAIL, "line 9: 'a': another node" },
		{ HEAD "<node id=\"a\"/>\n<edge source=\"a\" target=\"b\"/>" TAIL,
		  "line 9: 'b': no node above" },
		{ HEAD "<node id=\"a\"/><edge source=\"a\" target=\"a\"/>" TAIL,
		  "an edge to itself" },
		{ HEAD "<node id=\"a\">\n<data key=\"d0\">x</data></node>" TAIL,
		  "line 9: 'x': kind: host, node or switch" },
		{ HEAD "<node id=\"a\"><data key=\"d2\">-1</data></node>" TAIL,
		  "no number of slots" },
		{ HEAD "<node id=\"a\"/><node id=\"b\"/><edge source=\"a\" target=\"b\">"
		       "<data key=\"d1\">1</data></edge>" TAIL,
		  "'1': no rate such as" },
		{ HEAD "<node id=\"a\"/><node id=\"b\"><data key=\"d0\">switch</data></node>" TAIL,
		  "line 9: no node has data `kind` = host" },
		{ "<graphml>\n<key id=\"a\" for=\"node\" attr.name=\"kind\">\n<default>hub</default>",
		  "line 3: 'hub': kind: host, node or switch" },
		{ "<graphml>\n<key id=\"a\" attr.name=\"rate\"><default>9</default>",
		  "line 2: '9': no rate such as" },
		{ HEAD "<node id=\"a\"/>\n<key id=\"z\" for=\"node\" attr.name=\"kind\"/>",
		  "line 9: 'kind': a key stands before all nodes and edges" },
		{ HEAD "<hyperedge/>" TAIL, "cables have two ends" },
		{ "<!DOCTYPE a [<!ENTITY b \"bbbb\">]><graphml/>", "'b': entities are not read" },
	};
	struct topology *t = NULL;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		assert_int_equal(parse(cases[i].text, &t), -EINVAL);
		assert_null(t);
		if (!strstr(why.text, cases[i].because))
			fail_msg("'%s' is not in '%s'", cases[i].because, why.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_is_a_network),
		cmocka_unit_test(a_default_of_a_key_holds_where_there_is_no_data),
		cmocka_unit_test(a_wrong_text_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
