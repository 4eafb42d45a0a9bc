// SPDX-License-Identifier: GPL-2.0-only
/* The network as a picture: what it says, and that it is XML whatever others call themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <expat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/layers.h"
#include "ctl/svg.h"

static char *text; /* the last picture */
static size_t length;

static int down(void **state)
{
	free(text);
	text = NULL;
	return 0;
}

static int draw(const json_t *topology, const json_t *job, struct why *why)
{
	FILE *out;
	int r;

	free(text);
	out = open_memstream(&text, &length);
	r = svg_print(topology, job, out, why);
	fclose(out);
	return r;
}

/* --- what a browser would see ---------------------------------------------------------------- */

static char seen[1 << 16]; /* all texts, one after another, each on a line */
static size_t used;

static void on_text(void *context, const char *part, int bytes)
{
	if (used + bytes < sizeof(seen)) {
		memcpy(seen + used, part, bytes);
		used += bytes;
	}
	seen[used] = '\0';
}

static void on_end(void *context, const char *name) { on_text(context, "\n", 1); }

static void assert_is_xml(void)
{
	XML_Parser parser = XML_ParserCreate("UTF-8");

	used = 0;
	XML_SetCharacterDataHandler(parser, on_text);
	XML_SetElementHandler(parser, NULL, on_end);
	if (!XML_Parse(parser, text, (int)length, 1))
		fail_msg("line %lu: %s", XML_GetCurrentLineNumber(parser),
			 XML_ErrorString(XML_GetErrorCode(parser)));
	XML_ParserFree(parser);
}

static void drawn(const char *topology, const char *job)
{
	json_t *network = json_loads(topology, 0, NULL), *j = job ? json_loads(job, 0, NULL) : NULL;
	struct why why = { "" };

	assert_non_null(network);
	assert_true(!job || j);
	assert_int_equal(draw(network, j, &why), 0);
	json_decref(network);
	json_decref(j);
	assert_is_xml();
}

static void assert_seen(const char *part)
{
	if (!strstr(seen, part))
		fail_msg("'%s' is not in:\n%s", part, seen);
}

static void assert_written(const char *part)
{
	if (!strstr(text, part))
		fail_msg("'%s' is not in:\n%s", part, text);
}

/* --- names that others gave ------------------------------------------------------------------ */

#define CLUSTER "\"cluster\":{\"name\":\"tally\",\"node\":\"n0\"}"

static void names_are_escaped(void **state)
{
	drawn("{" CLUSTER ",\"machines\":["
	      "{\"kind\":\"node\",\"name\":\"</svg><script>&\\\"'\",\"address\":\"<a>\","
	      "\"version\":\"&v\"},{\"kind\":\"host\",\"name\":\"h&amp;\"}],"
	      "\"links\":[{\"from\":{\"name\":\"</svg><script>&\\\"'\",\"port\":\"<p>\"},"
	      "\"to\":{\"name\":\"h&amp;\",\"port\":\"\"},\"rate_mbps\":10}]}",
	      "{\"name\":\"<j>\",\"state\":\"&\",\"root\":\"<r>\",\"why\":\"a < b & \\\"c\\\"\"}");
	assert_seen("</svg><script>&\"'\n");
	assert_seen("node </svg><script>&\"', <a>, ready");
	assert_seen("tallyd &v\n");
	assert_seen("</svg><script>&\"' <p> to h&amp;: 10 Mbit/s each way");
	assert_seen("job <j> of 0 workers: &, its root is <r>\n");
	assert_seen("a < b & \"c\"\n");
	assert_null(strstr(text, "<script"));
}

static void what_xml_does_not_allow_is_a_question_mark(void **state)
{
	drawn("{" CLUSTER ",\"machines\":[{\"kind\":\"node\","
	      "\"name\":\"\\u0001\\u001b\\u007f\\u0085\\u009f\\ufffe\\uffff|"
	      "\\u00a0\\u00e9\\u20ac\\ud83d\\ude00\"}]}",
	      NULL);
	assert_seen("node ???????|\u00a0\u00e9\u20ac\U0001F600, ready");
}

static void long_names_are_cut_where_a_letter_ends(void **state)
{
	drawn("{" CLUSTER ",\"machines\":[{\"kind\":\"node\",\"name\":"
	      "\"\u00e91234567890123456789012345678901\u00e9\"}]}",
	      NULL);
	assert_seen("\n\u00e91234567890123456789012345678901\u2026\n");
	assert_seen("node \u00e91234567890123456789012345678901\u00e9, ready");
}

static void an_answer_of_another_shape_is_a_picture_too(void **state)
{
	static const char twins[] =
		"{\"machines\":[{\"name\":\"a\"},{\"name\":\"a\"}],\"links\":[{\"from\":"
		"{\"name\":\"a\",\"bytes_per_second\":1e300},\"to\":{\"name\":\"a\"},"
		"\"rate_mbps\":-5},{\"from\":{\"name\":\"a\"},\"to\":{\"name\":\"b\"}}]}";
	static const char depths[] =
		"{\"root\":\"a\",\"tree\":[{\"name\":\"a\",\"depth\":-1},{\"name\":\"a\",\"depth\":1e99},"
		"{\"name\":\"x\",\"depth\":0},{\"name\":\"a\",\"depth\":1},7]}";
	static const char *const others[] = {
		"{}",
		"[]",
		"{\"machines\":7,\"links\":\"x\"}",
		"{\"machines\":[{},[],null,7,{\"name\":3}],\"links\":[{},null,[]]}",
		twins,
	};
	static const char *const trees[] = {
		"{\"root\":\"a\",\"tree\":[{\"name\":\"a\",\"depth\":3}]}",
		depths,
		"{\"root\":7,\"tree\":{}}",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		drawn(others[i], NULL);
		for (size_t k = 0; k < sizeof(trees) / sizeof(*trees); k++)
			drawn(others[i], trees[k]);
	}
}

/* --- the picture ----------------------------------------------------------------------------- */

#define END(name, port, bytes)                                                      \
	"{\"name\":\"" name "\",\"port\":\"" port "\",\"bytes_per_second\":" #bytes \
	",\"forecast_bytes_per_second\":" #bytes "}"
#define LINK(from, to, mbps) "{\"from\":" from ",\"to\":" to ",\"rate_mbps\":" #mbps "}"
#define NODE(name)                                                                              \
	"{\"kind\":\"node\",\"name\":\"" name "\",\"address\":\"10.77.0.1\",\"version\":\"1\"," \
	"\"slots\":1024,\"slots_free\":1000,\"jobs\":2,\"running\":1,\"cordoned\":false}"
#define HOST(name) "{\"kind\":\"host\",\"name\":\"" name "\",\"address\":\"10.77.1.1\"}"
#define N0_N1 LINK(END("n0", "e1", 2000000), END("n1", "e0", 762500), 100)
#define N0_W0 LINK(END("n0", "e0", 0), END("w0", "", 12500), 0)
#define N1_W1 LINK(END("n1", "e9", 12000000), END("w1", "", 0), 100)
#define N1_W2 LINK(END("n1", "e8", 750000), END("w2", "", 6250), 1000)
#define NETWORK                                                                          \
	"{" CLUSTER ",\"machines\":[" NODE("n0") "," NODE("n1") "," HOST("w0") "," HOST( \
		"w1") "," HOST("w2") "],\"links\":[" N0_N1 "," N0_W0 "," N1_W1 "," N1_W2 "]}"

static void a_link_says_what_it_carries(void **state)
{
	drawn(NETWORK, NULL);
	assert_seen("cluster tally, as node n0 sees it\n");
	assert_seen("n0 e1 to n1 e0: 100 Mbit/s each way; n0 sends 16 Mbit/s, in 5 s 16 Mbit/s; "
		    "n1 sends 6.1 Mbit/s, in 5 s 6.1 Mbit/s\n");
	/* n1 is in the middle: what n0 sends to it goes to the left */
	assert_seen("\u2190 16 \u2192 6.1 of 100 Mbit/s\n");
	assert_seen("\u2190 0 \u2192 0.006 of 1 Gbit/s\n");
	assert_seen("n0 e0 to w0: what its line carries is not known; n0 sends 0 bit/s");
	assert_seen("\u2190 100 \u2192 0 kbit/s\n");
	assert_seen("node n0, 10.77.0.1, ready, 1000 of 1024 slots free, 2 jobs, 1 running, "
		    "tallyd 1\n");
	assert_written("@media (prefers-color-scheme:dark)");
}

static void links_are_coloured_by_their_fuller_direction(void **state)
{
	static const struct {
		unsigned int bytes;
		const char *class;
	} cases[] = {
		{ 0, "link idle" },	     { 124999, "link idle" },	{ 125000, "link quarter" },
		{ 3124999, "link quarter" }, { 3125000, "link half" },	{ 6249999, "link half" },
		{ 6250000, "link most" },    { 9374999, "link most" },	{ 9375000, "link nearly" },
		{ 11249999, "link nearly" }, { 11250000, "link full" }, { 4000000000, "link full" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (int way = 0; way < 2; way++) {
			char network[512], class[64];

			snprintf(
				network, sizeof(network),
				"{\"machines\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"links\":[{"
				"\"from\":{\"name\":\"a\",\"bytes_per_second\":%u},"
				"\"to\":{\"name\":\"b\",\"bytes_per_second\":%u},\"rate_mbps\":100}]}",
				way ? cases[i].bytes : 0, way ? 0 : cases[i].bytes);
			drawn(network, NULL);
			snprintf(class, sizeof(class), "<g class=\"%s\">", cases[i].class);
			assert_written(class);
		}
	drawn(NETWORK, NULL);
	assert_written("<g class=\"link idle unknown\">");
}

#define BRANCH(name, depth, sums, workers, up, down)                                           \
	"{\"name\":\"" name "\",\"depth\":" #depth ",\"sums\":" #sums ",\"workers\":" #workers \
	",\"rate_mbps\":100,\"up_bytes_per_second\":" #up ",\"down_bytes_per_second\":" #down "}"
#define JOB                                                                                       \
	"{\"name\":\"train\",\"workers\":2,\"state\":\"running\",\"root\":\"n0\",\"why\":"        \
	"\"least cost: 0.5\",\"tree\":[" BRANCH("n0", 0, true, 0, 0, 0) "," BRANCH(               \
		"n1", 1, true, 0, 762500,                                                         \
		2000000) "," BRANCH("w1", 2, false, 2, 0, 12000000) "," BRANCH("w0", 1, false, 1, \
									       12500, 0) "]}"

static void a_job_is_drawn_on_it(void **state)
{
	drawn(NETWORK, JOB);
	assert_seen("job train of 2 workers: running, its root is n0\n");
	assert_seen("least cost: 0.5\n");
	assert_written("<g class=\"node root sums\"><title>node n0,");
	assert_written("<g class=\"node sums\"><title>node n1,");
	assert_seen("\nroot\n");
	assert_seen("\nsums\n");
	assert_seen("\n2 workers\n");
	assert_seen("\n1 worker\n");
	assert_seen("; towards the root 6.1 Mbit/s, back 16 Mbit/s\n");
	assert_seen("up 6.1, down 16 of 100 Mbit/s\n");
	assert_seen("up 0, down 96 of 100 Mbit/s\n");
	assert_written("<g class=\"link quarter branch\">");
	assert_written("<g class=\"link idle other\">"); /* n1 to w2 */
	/* the root is in the first column, and n1 behind it */
	assert_written("<rect x=\"24.0\"");
	assert_true(strstr(text, "<title>node n0") && strstr(text, "<title>node n1"));
}

/* What an agent saw first does not matter. */
static void the_order_of_the_answer_does_not_matter(void **state)
{
	char *first;

	drawn(NETWORK, JOB);
	first = strdup(text);
	drawn("{" CLUSTER ",\"machines\":[" HOST("w2") "," NODE("n1") "," HOST("w1") "," NODE(
		      "n0") "," HOST("w0") "],\"links\":[" N1_W2 "," N0_W0 "," N1_W1 "," N0_N1 "]}",
	      JOB);
	assert_string_equal(text, first);
	free(first);
}

static void a_network_that_is_too_large_is_not_drawn(void **state)
{
	json_t *machines = json_array(), *links = json_array();
	json_t *topology = json_pack("{so so}", "machines", machines, "links", links);
	struct why why = { "" };

	for (int i = 0; i < LAYERS_MACHINES_MAX; i++)
		json_array_append_new(machines, json_pack("{ss so}", "kind", "host", "name",
							  json_sprintf("h%d", i)));
	assert_int_equal(draw(topology, NULL, &why), 0);
	assert_true(length < 1 << 20);
	json_array_append_new(machines, json_object());
	assert_int_equal(draw(topology, NULL, &why), -E2BIG);
	assert_int_equal(length, 0);
	assert_non_null(strstr(why.text, "the network has 2001 machines and 0 links"));
	json_decref(topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(what_xml_does_not_allow_is_a_question_mark),
		cmocka_unit_test(long_names_are_cut_where_a_letter_ends),
		cmocka_unit_test(an_answer_of_another_shape_is_a_picture_too),
		cmocka_unit_test(a_link_says_what_it_carries),
		cmocka_unit_test(links_are_coloured_by_their_fuller_direction),
		cmocka_unit_test(a_job_is_drawn_on_it),
		cmocka_unit_test(the_order_of_the_answer_does_not_matter),
		cmocka_unit_test(a_network_that_is_too_large_is_not_drawn),
	};

	return cmocka_run_group_tests(tests, NULL, down);
}
