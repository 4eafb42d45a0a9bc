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

static void a_wrong_text_is_refused_with_its_line(void **state)
{
	static const struct {
		const char *text, *because;
	} cases[] = {
		{ "", "line 1: no element found" },
		{ "hosts", "line 1: syntax error" },
		{ "<graphml>\n<graph>\n</graphml>", "line 3: mismatched tag" },
		{ HEAD TAIL, "line 9: the text ends, and no node was in it" },
		{ HEAD "<node/>" TAIL, "line 8: '': an id of a node has 1 to 31" },
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
		cmocka_unit_test(a_wrong_text_is_refused_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
