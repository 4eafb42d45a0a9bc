// SPDX-License-Identifier: GPL-2.0-only
/* What people are told that the leader would do: agent/cluster/lead_outlook.c. */
#include "lead_world.h"

static void assert_says(struct leading *w, const char *name, const char *words)
{
	const struct lead_view v = view(w);
	struct why why = { "" };

	assert_int_equal(lead_outlook(&w->lead, &v, cluster_job(&w->c, name), &why), 0);
	if (!strstr(why.text, words))
		fail_msg("it says \"%s\", and not \"%s\"", why.text, words);
}

static void it_says_who_is_awaited(void **state)
{
	struct leading *w = *state;

	cluster_want(&w->c, "j", 2, 0, 0);
	assert_says(w, "j", "0 of 2 workers have come");
	cluster_wait(&w->c, "j", "1");
	assert_says(w, "j", "1 of 2 workers have come");
	cluster_wait(&w->c, "j", "11");
	assert_says(w, "j", "its root is to be n1: least cost: ");
	for (unsigned int i = 0; i < NODES; i++)
		cluster_node(&w->c, i)->cordoned = true;
	assert_says(w, "j", "it gets no root: no node may have it");
}

static void it_says_where_a_run_is(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 0);
	assert_says(w, "j", "no other node would cost less by a tenth");
	cluster_run(&w->c, "j", 0)->runs = false;
	assert_says(w, "j", "no run is on; ");
	cluster_tell_no_more(&w->c, 0);
	assert_says(w, "j", "no run is on; ");
	cluster_run(&w->c, "j", 2);
	assert_says(w, "j", "its run is on at n2, and moves to n0");
	cluster_run(&w->c, "j", 2)->connected--;
	assert_says(w, "j", "its run goes on at n2, ");
	assert_says(w, "j", "1 of 2 are not connected there");
	assert_says(w, "j", "The next run begins at n0");
	cluster_node(&w->c, 0)->cordoned = true;
	assert_says(w, "j", "its root is to be n"); /* another one: that one takes no runs */
	cluster_node(&w->c, 0)->cordoned = false;
	cluster_tell_no_more(&w->c, 2);
	picture_drop(&w->c.picture, "n0");
	assert_says(w, "j", "its root does not report: ");
}

static void it_says_where_a_run_would_move(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	assert_says(w, "j", "it would move to n0: cost ");
	cluster_place_like(&w->c, "j", "00", (struct wanted_place){ .root = "n3", .stays = true });
	assert_says(w, "j", "; but it is to stay where it is");
	run_moves(w, "j", 0);
	cluster_node(&w->c, 0)->cordoned = true;
	assert_says(w, "j", "off a cordoned node");
}

static void it_says_what_several_roots_would_have(void **state)
{
	struct leading *w = *state;

	cluster_want(&w->c, "j", 2, 2, 1);
	cluster_want(&w->c, "j.2", 2, 2, 2);
	cluster_place_like(&w->c, "j", "03", (struct wanted_place){ .root = "n1", .share = 500 });
	cluster_place_like(&w->c, "j.2", "03", (struct wanted_place){ .root = "n2", .share = 500 });
	cluster_run(&w->c, "j", 1);
	assert_says(w, "j", "nothing was weighed: at root 2 no run is on");
	cluster_run(&w->c, "j.2", 2);
	assert_says(w, "j.2", "with no other roots and shares");
	for (unsigned int end = 0; end < NODES; end += 3) /* the runs send 150 kB/s of it */
		for (unsigned int node = 1; node < 3; node++) {
			struct report_port *p = port_to(cluster_node(&w->c, node), end);

			p->transmit_forecast = p->receive_forecast = node == 1 ? 11400000 : 7650000;
		}
	assert_says(w, "j", "its root would be n1, with a share of 20.0 %");
	assert_says(w, "j.2", "its root would be n2, with a share of 80.0 %");
}

/* Who asks changes nothing of what is decided, and when. */
static void asking_changes_nothing(void **state)
{
	struct leading *w = *state;

	run_add(w, "j", 3);
	look_every_second(w);
	for (unsigned int i = 0; i < 3; i++) {
		pass(w, 1000);
		assert_says(w, "j", "it would move to n");
	}
	pass(w, 1000);
	assert_int_equal(look(w), 0); /* its first rest begins here */
	pass(w, 3000);
	assert_int_equal(look(w), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(it_says_who_is_awaited),	      FACT(it_says_where_a_run_is),
		FACT(it_says_where_a_run_would_move), FACT(it_says_what_several_roots_would_have),
		FACT(asking_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
