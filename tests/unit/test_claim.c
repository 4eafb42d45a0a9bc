// SPDX-License-Identifier: GPL-2.0-only
/* Whose a node's name is: agent/cluster/claim.h. Two real agents: tests/e2e/cluster_names.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/cluster/claim.h"
#include "common/address.h"

static struct claim claim_of(const char *agent)
{
	struct claim c = { .is_ours = false };

	snprintf(c.agent, sizeof(c.agent), "%s", agent);
	return c;
}

static struct report report_of(const char *agent)
{
	struct report r = { .node = "n1" };

	snprintf(r.agent, sizeof(r.agent), "%s", agent);
	return r;
}

static void a_name_is_ours_when_we_have_written(void **state)
{
	struct claim c = claim_of("here");

	assert_false(c.is_ours);
	claim_written(&c, 5);
	assert_true(c.is_ours);
	assert_int_equal(c.revision, 5);
}

/* The lease of the one before lasts for a while. */
static void an_agent_that_was_restarted_goes_on_at_once(void **state)
{
	const struct report before = report_of("here");
	struct claim c = claim_of("here");

	assert_false(claim_told(&c, &before, 9, false));
	assert_true(c.is_ours);
	assert_int_equal(c.revision, 9);
}

static void another_agent_has_the_name_as_long_as_it_reports(void **state)
{
	const struct report other = report_of("there");
	struct claim c = claim_of("here");

	assert_true(claim_told(&c, &other, 9, false));
	assert_false(claim_told(&c, &other, 10, false));
	assert_true(c.is_others);
	assert_false(c.is_ours);
	assert_true(claim_told(&c, NULL, 0, false));
	assert_false(c.is_others);
	assert_false(c.is_ours); /* until it has written */
	assert_int_equal(c.revision, 0);
	claim_written(&c, 12);
	assert_true(c.is_ours);
}

/* After a cut, the lease is over. */
static void what_was_ours_stays_so_until_another_agent_comes(void **state)
{
	const struct report other = report_of("there");
	struct claim c = claim_of("here");

	claim_written(&c, 5);
	claim_told(&c, NULL, 0, false);
	assert_true(c.is_ours);
	claim_told(&c, &other, 8, false);
	assert_false(c.is_ours);
}

static void what_is_told_late_changes_nothing(void **state)
{
	const struct report before = report_of("here"), other = report_of("there");
	struct claim c = claim_of("here");

	claim_written(&c, 5);
	assert_false(claim_told(&c, &before, 3, false));
	assert_int_equal(c.revision, 5);
	/* A store that has lost its data counts anew. */
	assert_true(claim_told(&c, &other, 3, true));
	assert_int_equal(c.revision, 3);
}

/* An etcd that stalls answers after others have written, or the lease has ended. */
static void an_answer_that_comes_late_changes_nothing(void **state)
{
	const struct report other = report_of("there");
	struct claim c = claim_of("here");

	claim_told(&c, &other, 15, false);
	claim_written(&c, 12);
	assert_true(c.is_others && !c.is_ours);
	assert_int_equal(c.revision, 15);
	claim_told(&c, NULL, 0, false);
	claim_written(&c, 12);
	claim_refused(&c); /* that one has gone, too */
	assert_int_equal(c.revision, 0);
}

static void what_says_no_agent_gives_way(void **state)
{
	const struct report old = report_of("");
	struct claim c = claim_of("here");

	assert_false(claim_told(&c, &old, 4, false));
	assert_false(c.is_others);
	assert_false(c.is_ours);
	assert_int_equal(c.revision, 4);
	assert_false(claim_told(&c, NULL, 6, false)); /* not understood */
	assert_int_equal(c.revision, 6);
}

static void it_says_where_the_other_one_is(void **state)
{
	struct sockaddr_storage address;
	struct report other = report_of("there");
	struct why why;

	claim_say(&other, &why);
	assert_string_equal(why.text, "another agent reports as node n1 (at an unknown address): "
				      "give this one another cluster.node");
	assert_int_equal(address_parse("10.77.0.2", 31250, &address), 0);
	other.services = 1;
	other.service = &address;
	claim_say(&other, &why);
	assert_string_equal(why.text, "another agent reports as node n1 (at 10.77.0.2): give this "
				      "one another cluster.node");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_ours_when_we_have_written),
		cmocka_unit_test(an_agent_that_was_restarted_goes_on_at_once),
		cmocka_unit_test(another_agent_has_the_name_as_long_as_it_reports),
		cmocka_unit_test(what_was_ours_stays_so_until_another_agent_comes),
		cmocka_unit_test(what_is_told_late_changes_nothing),
		cmocka_unit_test(an_answer_that_comes_late_changes_nothing),
		cmocka_unit_test(what_says_no_agent_gives_way),
		cmocka_unit_test(it_says_where_the_other_one_is),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
