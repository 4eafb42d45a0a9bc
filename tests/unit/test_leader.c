// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who leads, as a store tells it: agent/store/leader.h. The store of these tests tells what they
 * say, and counts what is written. Several that want to lead: tests/e2e/store.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "agent/store/leader.h"

static struct store_follower follower;
static unsigned int writes;
static store_done *done; /* of the last one */
static void *done_context;
static char value[128]; /* of the last one; "": the key is to go */
static uint64_t seen_revision; /* by it */
static char leads[LEADER_NAME_BYTES]; /* "nobody": nobody does */
static struct leader *leader;
static sd_event *loop;

static int write_counted(struct store *s, const struct store_write *w, store_done *d, void *context)
{
	writes++;
	done = d;
	done_context = context;
	snprintf(value, sizeof(value), "%s", w->change->value ? w->change->value : "");
	seen_revision = w->seen->revision;
	return 0;
}

static int follow(struct store *s, const char *prefix, const struct store_follower *f)
{
	follower = *f;
	return 0;
}

static const struct store_kind kind = { .name = "told", .write = write_counted, .follow = follow };
static struct store store = { .kind = &kind };

static void on_leader(void *context, const char *name, bool is_us)
{
	snprintf(leads, sizeof(leads), "%s", name ? name : "nobody");
}

static int up(void **state)
{
	writes = 0;
	*leads = '\0';
	if (sd_event_new(&loop) < 0)
		return -1;
	return leader_campaign(loop, &store, "leader", "n0", on_leader, NULL, &leader);
}

static int down(void **state)
{
	leader_close(leader);
	loop = sd_event_unref(loop);
	return 0;
}

static void told(const char *is)
{
	follower.changed(follower.context, &(struct store_item){ "leader", is, 7 });
}

static void who_leads_is_the_keys_first_word(void **state)
{
	struct store_seen seen;

	told("n1 00000000000000ff");
	assert_string_equal(leads, "n1");
	follower.current(follower.context, 7);
	assert_int_equal(writes, 0);
	assert_false(leader_seen(leader, &seen));
	told(NULL);
	assert_string_equal(leads, "nobody");
	assert_int_equal(writes, 1);
}

/* Whoever may write there may write anything; as long as the key is there, nobody else leads. */
static void what_is_no_name_of_a_node_is_nobody(void **state)
{
	static const char *const wrong[] = {
		"",
		" n1",
		"\xff\xfe zz",
		"N1 ab",
		"n1\x1b[2J ab",
		"n/1 ab",
		"-n1 ab",
		"n12345678901234567890123456789012345678901234567890123456789012345 ab",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(leads, sizeof(leads), "?");
		told(wrong[i]);
		assert_string_equal(leads, "nobody");
	}
	follower.current(follower.context, 7);
	assert_int_equal(writes, 0);
}

/* Another agent has this node's name. */
static void who_does_not_want_to_lead_leaves_it_to_others(void **state)
{
	char ours[sizeof(value)];
	struct store_seen seen;

	leader_stand(leader, false);
	follower.current(follower.context, 7);
	assert_int_equal(writes, 0);
	leader_stand(leader, true);
	assert_int_equal(writes, 1);
	snprintf(ours, sizeof(ours), "%s", value);
	told(ours);
	assert_true(leader_seen(leader, &seen));
	leader_stand(leader, false);
	assert_false(leader_seen(leader, &seen));
	assert_int_equal(writes, 2);
	assert_string_equal(value, "");
	assert_int_equal(seen_revision, 7);
	leader_stand(leader, false); /* that delete is on its way */
	assert_int_equal(writes, 2);
	done(done_context, -ENOTCONN, 0, "");
	leader_stand(leader, false);
	assert_int_equal(writes, 3);
	done(done_context, 0, 8, "");
	told(NULL);
	leader_stand(leader, false);
	assert_int_equal(writes, 3);
}

#define fact(f) cmocka_unit_test_setup_teardown(f, up, down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(who_leads_is_the_keys_first_word),
		fact(what_is_no_name_of_a_node_is_nobody),
		fact(who_does_not_want_to_lead_leaves_it_to_others),
	};

	return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
