// SPDX-License-Identifier: GPL-2.0-only
/* The ways that a job's packets shall take, as the store has them: agent/cluster/wanted_ways.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/wanted_ways.h"
#include "agent/store/store.h"
#include "common/address.h"
#include "common/owned.h"

#define HEAD "{\"birth\":\"00000000feedface\",\"root\":\"n3\",\"address\":\"10.77.0.3\","
#define WAY(worker, nodes) "{\"worker\":\"" worker "\",\"nodes\":[" nodes "]}"

static struct wanted_ways *parsed(const char *text)
{
	struct wanted_ways *w = calloc(1, sizeof(*w));
	struct why why = { "" };

	assert_non_null(w);
	if (wanted_parse(&wanted_ways_keys, text, w, &why) < 0)
		fail_msg("%s: %s", text, why.text);
	return w;
}

static void they_come_as_they_went(void **state)
{
	static const char *text = HEAD
		"\"why\":\"the upper one is free\",\"found\":true,\"sums\":[\"n1\"],\"ways\":[" WAY(
			"10.0.1.1", "\"n0\",\"n1\",\"n3\"") "," WAY("10.0.2.1",
								    "\"n1\",\"n3\"") "]}";
	_cleanup_(freep) struct wanted_ways *w = parsed(text);
	_cleanup_(freep) char *printed = wanted_print(&wanted_ways_keys, w);
	struct why why;

	assert_string_equal(printed, text);
	assert_true(w->found);
	assert_int_equal(w->birth, 0xfeedface);
	assert_int_equal(w->ways, 2);
	assert_int_equal(w->way[0].nodes, 3);
	assert_string_equal(w->way[0].node[1], "n1");
	assert_int_equal(w->way[1].nodes, 2);
	assert_int_equal(wanted_way_place(&w->way[1], "n3"), 1);
	assert_int_equal(wanted_way_place(&w->way[1], "n0"), -1);
	assert_true(wanted_ways_sum_at(w, "n1"));
	assert_false(wanted_ways_sum_at(w, "n0"));
	assert_int_equal(wanted_ways_check(w, &why), 0);
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} wrong[] = {
		{ HEAD "\"ways\":[" WAY("10.0.1.1", "\"n0\",\"n1\"") "]}",
		  "the way of 10.0.1.1 does not end at the root n3" },
		{ HEAD "\"ways\":[" WAY("10.0.1.1", "") "]}", "does not end at the root n3" },
		{ HEAD "\"ways\":[" WAY("10.0.1.1", "\"n0\",\"n1\",\"n0\",\"n3\"") "]}",
		  "the way of 10.0.1.1 is at n0 twice" },
		{ HEAD "\"ways\":[" WAY("fd00::1", "\"n3\"") "]}", "two families" },
		{ HEAD "\"ways\":[" WAY("10.0.1.1", "\"n3\"") "," WAY("10.0.1.1", "\"n3\"") "]}",
		  "there are two ways of 10.0.1.1" },
		{ HEAD "\"sums\":[\"n1\"],\"ways\":[" WAY("10.0.1.1", "\"n3\"") "]}",
		  "n1 sums, and is on no way" },
		{ HEAD "\"sums\":[\"n3\"],\"ways\":[" WAY("10.0.1.1", "\"n3\"") "]}",
		  "n3 sums on the way, and is the root" },
		{ HEAD
		  "\"sums\":[\"n1\"],\"ways\":[" WAY("10.0.1.1", "\"n1\",\"n0\",\"n3\"") "," WAY(
			  "10.0.2.1", "\"n1\",\"n3\"") "]}",
		  "n1 sums, and ways part behind it" },
		{ HEAD
		  "\"sums\":[\"n1\"],\"ways\":[" WAY("10.0.1.1", "\"n1\",\"n0\",\"n3\"") "," WAY(
			  "10.0.2.1", "\"n1\",\"n2\",\"n3\"") "]}",
		  "n1 sums, and ways part behind it" },
		{ HEAD "\"sums\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\"],\"ways\":[" WAY(
			  "10.0.1.1",
			  "\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"n3\"") "]}",
		  "the way of 10.0.1.1 is at 8 nodes that sum, and 7 may" },
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		_cleanup_(freep) struct wanted_ways *w = parsed(wrong[i].text);
		struct why why = { "" };

		assert_int_equal(wanted_ways_check(w, &why), -EINVAL);
		if (!strstr(why.text, wrong[i].says))
			fail_msg("%s: %s", wrong[i].text, why.text);
	}
}

/* Behind a node that adds nothing up, ways may part. */
static void ways_may_part_where_nobody_sums(void **state)
{
	_cleanup_(freep) struct wanted_ways *w = parsed(HEAD "\"ways\":[" WAY(
		"10.0.1.1", "\"n1\",\"n0\",\"n3\"") "," WAY("10.0.2.1", "\"n1\",\"n3\"") "]}");
	struct why why;

	assert_int_equal(wanted_ways_check(w, &why), 0);
}

/* As many as there may be, with names as long as they may be: it fits in the store (store.h). */
static void the_most_that_there_may_be_fits(void **state)
{
	_cleanup_(freep) struct wanted_ways *w = parsed(HEAD "\"ways\":[]}"), *back = NULL;
	_cleanup_(freep) char *printed = NULL, *again = NULL;
	char worker[ADDRESS_BYTES], name[NAME_BYTES];
	struct why why;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (w->sums = 0; w->sums < WANTED_WAY_SUMS_MAX; w->sums++)
		memcpy(w->sum[w->sums], name, sizeof(name));
	for (w->ways = 0; w->ways < WANTED_WAYS_MAX; w->ways++) {
		struct wanted_way *way = &w->way[w->ways];

		snprintf(worker, sizeof(worker), "2001:db8:1111:2222:3333:4444:5555:%x",
			 0x1000 + w->ways);
		assert_int_equal(address_parse(worker, 31249, &way->worker), 0);
		for (way->nodes = 0; way->nodes < WANTED_WAY_NODES_MAX; way->nodes++)
			memcpy(way->node[way->nodes], name, sizeof(name));
	}
	printed = wanted_print(&wanted_ways_keys, w);
	assert_non_null(printed);
	assert_true(strlen(printed) < STORE_VALUE_BYTES);
	back = calloc(1, sizeof(*back));
	assert_non_null(back);
	assert_int_equal(wanted_parse(&wanted_ways_keys, printed, back, &why), 0);
	again = wanted_print(&wanted_ways_keys, back);
	assert_string_equal(printed, again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_come_as_they_went),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(ways_may_part_where_nobody_sums),
		cmocka_unit_test(the_most_that_there_may_be_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
