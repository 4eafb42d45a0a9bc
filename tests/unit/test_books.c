// SPDX-License-Identifier: GPL-2.0-only
/* Quotas, promises, drains; at the end random operations against what must hold at any time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/books.h"
#include "common/name.h"

static struct books books;
static struct why why;

static int empty_books(void **state)
{
	books_init(&books, 1000);
	return 0;
}

static int forget_books(void **state)
{
	books_clear(&books);
	return 0;
}

static struct tenant tenant(const char *name, uint32_t slots)
{
	struct tenant t = { .slots = slots };

	snprintf(t.name, sizeof(t.name), "%s", name);
	return t;
}

static int tenant_added(const char *name, uint32_t slots)
{
	const struct tenant t = tenant(name, slots);

	return books_tenant_add(&books, &t, &why);
}

static int tenant_set(const char *name, uint32_t slots)
{
	const struct tenant t = tenant(name, slots);
	int index = books_tenant_find(&books, name, &why);

	assert_in_range(index, 0, TALLY_TENANTS_MAX - 1);
	return books_tenant_set(&books, index, &t, &why);
}

static uint32_t quota(const char *name)
{
	int index = books_tenant_find(&books, name, &why);

	assert_in_range(index, 0, TALLY_TENANTS_MAX - 1);
	return books_quota(&books, index);
}

static struct job *job_made(const char *name, uint32_t id, uint16_t owner, uint16_t window)
{
	struct job facts = { .id = id, .tenant = owner, .workers = 1, .window = window };
	struct job *j;

	snprintf(facts.name, sizeof(facts.name), "%s", name);
	j = job_new(&facts);
	assert_non_null(j);
	return j;
}

/* 0, or why it was not added. */
static int job_added(const char *name, uint16_t owner, uint16_t window)
{
	struct job *j = job_made(name, books_job_id(&books, 1), owner, window);
	int r = books_job_add(&books, j, &why);

	if (r < 0)
		job_free(j);
	return r;
}

static struct job *job_named(const char *name)
{
	struct job *j = books_job_find(&books, name);

	assert_non_null(j);
	return j;
}

/* Its run begins with the window it gets. */
static uint16_t runs(const char *name)
{
	struct job *j = job_named(name);
	uint16_t window = 0;

	assert_int_equal(books_run_window(&books, j, &window, &why), 0);
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	job_begin(j, window, false);
	return window;
}

static void cannot_run(const char *name, const char *reason)
{
	uint16_t window = 0xabcd;

	assert_int_equal(books_run_window(&books, job_named(name), &window, &why), -ENOSPC);
	assert_string_equal(why.text, reason);
	assert_int_equal(window, 0xabcd);
}

/* --- tenants --------------------------------------------------------------------------------- */

static void the_default_tenant_has_what_nobody_reserves(void **state)
{
	assert_int_equal(books_tenant_find(&books, "default", &why), BOOKS_DEFAULT);
	assert_int_equal(quota("default"), 1000);
	assert_int_equal(books_reserved(&books), 0);
	assert_int_equal(tenant_added("red", 600), BOOKS_DEFAULT + 1);
	assert_int_equal(quota("default"), 400);
	assert_int_equal(books_reserved(&books), 600);
	assert_int_equal(tenant_added("blue", 400), BOOKS_DEFAULT + 2);
	assert_int_equal(quota("default"), 0);
	assert_int_equal(books_tenant_del(&books, BOOKS_DEFAULT + 1, &why), 0);
	assert_int_equal(quota("default"), 600);
}

static void a_default_with_a_quota_of_its_own_reserves_it(void **state)
{
	assert_int_equal(tenant_set("default", 300), 0);
	assert_int_equal(books_reserved(&books), 300);
	assert_int_equal(tenant_added("red", 701), -ENOSPC);
	assert_int_equal(tenant_added("red", 700), BOOKS_DEFAULT + 1);
	assert_int_equal(quota("default"), 300);
}

static void other_limits_of_the_default_leave_it_the_rest(void **state)
{
	struct tenant t = books.tenant[BOOKS_DEFAULT].is;

	t.packets_per_second = 5;
	assert_int_equal(books_tenant_set(&books, BOOKS_DEFAULT, &t, &why), 0);
	assert_true(books.tenant[BOOKS_DEFAULT].remainder);
	assert_int_equal(books.tenant[BOOKS_DEFAULT].is.packets_per_second, 5);
}

static void quotas_never_exceed_the_node(void **state)
{
	assert_int_equal(tenant_added("red", 1001), -ENOSPC);
	assert_string_equal(why.text, "1001 slots: the node has 1000, and other tenants keep 0 of "
				      "them, by quota or in running jobs; 1000 are left");
	assert_int_equal(tenant_added("red", 1000), BOOKS_DEFAULT + 1);
	assert_int_equal(tenant_added("blue", 1), -ENOSPC);
	assert_int_equal(tenant_added("green", 0), BOOKS_DEFAULT + 2);
	assert_int_equal(tenant_set("green", 1), -ENOSPC);
	assert_int_equal(quota("green"), 0);
	assert_int_equal(tenant_set("red", 999), 0);
	assert_int_equal(tenant_set("green", 1), 0);
	assert_int_equal(tenant_set("green", UINT32_MAX), -ENOSPC);
}

static void a_name_is_taken_once(void **state)
{
	assert_int_equal(tenant_added("red", 1), BOOKS_DEFAULT + 1);
	assert_int_equal(tenant_added("red", 1), -EEXIST);
	assert_string_equal(why.text, "there is a tenant red already");
	assert_int_equal(tenant_added("default", 1), -EEXIST);
}

static void a_tenant_that_is_not_there_is_told_who_is(void **state)
{
	assert_int_equal(tenant_added("red", 1), BOOKS_DEFAULT + 1);
	assert_int_equal(books_tenant_find(&books, "rad", &why), -ENOENT);
	assert_string_equal(why.text, "there is no tenant rad; there are default red");
	assert_int_equal(books_tenant_find(&books, "", &why), -ENOENT);
}

static void the_node_has_room_for_so_many_tenants(void **state)
{
	char name[NAME_BYTES];

	for (int i = BOOKS_DEFAULT + 1; i < TALLY_TENANTS_MAX; i++) {
		snprintf(name, sizeof(name), "a-tenant-with-a-rather-long-name-%d", i);
		assert_int_equal(tenant_added(name, 1), i);
	}
	assert_int_equal(tenant_added("late", 1), -ENOSPC);
	assert_string_equal(why.text, "the node has 63 tenants already, the most it can");
	/* more names than fit into words */
	assert_int_equal(books_tenant_find(&books, "late", &why), -ENOENT);
	assert_in_range(strlen(why.text), sizeof(why.text) - 2, sizeof(why.text) - 1);
	/* an index that was given back is given again */
	assert_int_equal(books_tenant_del(&books, 9, &why), 0);
	assert_int_equal(tenant_added("late", 1), 9);
}

static void a_tenant_with_jobs_and_the_default_one_stay(void **state)
{
	assert_int_equal(books_tenant_del(&books, BOOKS_DEFAULT, &why), -EPERM);
	assert_int_equal(tenant_added("red", 100), 2);
	assert_int_equal(job_added("resnet", 2, 4), 0);
	assert_int_equal(books_tenant_del(&books, 2, &why), -EBUSY);
	assert_string_equal(why.text,
			    "tenant red has jobs, such as resnet: leave the tenant as it is, or "
			    "end and delete its jobs first (tallyctl job list --tenant red)");
	books_job_del(&books, job_named("resnet"));
	assert_int_equal(books_tenant_del(&books, 2, &why), 0);
	assert_int_equal(books_tenant_find(&books, "red", &why), -ENOENT);
}

/* --- the configuration's tenants ------------------------------------------------------------- */

static int configured(bool rest, uint32_t of_default, const char *name, uint32_t slots)
{
	const struct tenant tenants[] = { tenant("default", of_default),
					  tenant(name ? name : "", slots) };

	return books_configure(&books, tenants, name ? 2 : 1, rest, &why);
}

static void a_configuration_takes_the_place_of_the_last_one(void **state)
{
	assert_int_equal(configured(true, 400, "red", 600), 0);
	assert_true(books.tenant[2].configured);
	assert_true(books.tenant[BOOKS_DEFAULT].configured &&
		    books.tenant[BOOKS_DEFAULT].remainder);
	assert_int_equal(quota("red"), 600);
	/* what red gives back blue can have, whatever the order */
	assert_int_equal(configured(true, 100, "blue", 900), 0);
	assert_int_equal(books_tenant_find(&books, "red", &why), -ENOENT);
	assert_int_equal(quota("blue"), 900);
	assert_int_equal(quota("default"), 100);
	assert_int_equal(configured(false, 1000, NULL, 0), 0);
	assert_true(books.tenant[BOOKS_DEFAULT].configured);
	assert_false(books.tenant[BOOKS_DEFAULT].remainder);
	assert_int_equal(quota("default"), 1000);
	/* one that no line names any more is as it was at first */
	assert_int_equal(books_configure(&books, NULL, 0, true, &why), 0);
	assert_true(books.tenant[BOOKS_DEFAULT].remainder);
	assert_false(books.tenant[BOOKS_DEFAULT].configured);
	assert_int_equal(quota("default"), 1000);
}

static void what_one_configured_tenant_gives_back_another_can_have(void **state)
{
	const struct tenant before[] = { tenant("default", 0), tenant("red", 300),
					 tenant("blue", 700) };
	const struct tenant after[] = { tenant("default", 0), tenant("red", 900),
					tenant("blue", 100) };

	assert_int_equal(books_configure(&books, before, 3, true, &why), 0);
	assert_int_equal(books_configure(&books, after, 3, true, &why), 0);
	assert_int_equal(quota("red"), 900);
	assert_int_equal(quota("blue"), 100);
	assert_int_equal(books_configure(&books, before, 3, true, &why), 0);
}

static void a_configuration_does_not_take_what_runtime_made(void **state)
{
	assert_int_equal(tenant_added("red", 600), 2);
	assert_int_equal(configured(true, 0, "red", 1), -EEXIST);
	assert_string_equal(why.text, "tenant red exists already, created by tallyctl: tallyctl "
				      "tenant del red first, or take another name");
	assert_int_equal(configured(true, 0, "blue", 401), -ENOSPC);
	assert_int_equal(configured(true, 0, "blue", 400), 0);
	assert_int_equal(quota("red"), 600);
}

static void what_agents_share_gives_way_to_the_configuration(void **state)
{
	const struct tenant before[] = { tenant("default", 0), tenant("blue", 400) };
	const struct tenant after[] = { tenant("default", 0), tenant("blue", 500),
					tenant("red", 500) };
	struct tenant red = tenant("red", 600);

	red.clustered = true;
	assert_int_equal(books_configure(&books, before, 2, true, &why), 0);
	assert_int_equal(books_tenant_add(&books, &red, &why), 3);
	/* what blue gets more red gives back, though it comes behind it */
	assert_int_equal(books_configure(&books, after, 3, true, &why), 0);
	assert_true(books.tenant[3].configured && !books.tenant[3].is.clustered);
	assert_int_equal(quota("red"), 500);
	/* an earlier agent's books do not bring it back */
	assert_int_equal(books_tenant_restore(&books, &red, false, &why), 0);
	assert_true(books.tenant[3].configured);
	assert_int_equal(quota("red"), 500);
	/* one that the configuration has not comes back; if it has no room, without slots */
	snprintf(red.name, sizeof(red.name), "green");
	assert_int_equal(books_tenant_restore(&books, &red, false, &why), 0);
	assert_int_equal(books_fit(&books, &why), -ENOSPC);
	books_yield(&books);
	assert_int_equal(books_fit(&books, &why), 0);
	assert_int_equal(quota("green"), 0);
	assert_int_equal(quota("red"), 500);
}

static int restored(const char *name, uint32_t slots)
{
	const struct tenant t = tenant(name, slots);

	return books_tenant_restore(&books, &t, false, &why);
}

/* But for the default tenant, who is always there. */
static void what_an_earlier_agent_had_counts_before_the_configuration(void **state)
{
	assert_int_equal(configured(true, 0, "red", 1), 0);
	assert_int_equal(restored("red", 600), 0);
	assert_int_equal(quota("red"), 600);
	assert_false(books.tenant[2].configured);
	assert_int_equal(restored("red", 600), -EEXIST);
	assert_int_equal(restored("default", 300), 0);
	assert_true(books.tenant[BOOKS_DEFAULT].remainder);
	assert_int_equal(quota("default"), 400);
	assert_int_equal(books_fit(&books, &why), 0);
	assert_int_equal(restored("blue", 401), 0);
	assert_int_equal(books_fit(&books, &why), -ENOSPC);
	assert_string_equal(why.text,
			    "tenants keep 1001 slots, by quota or in running jobs (red 600, blue "
			    "401), and the node has 1000: raise slots: in tallyd.yaml to 1001, or "
			    "give tenants fewer: there, or by tallyctl quota while tallyd runs");
}

static void a_configured_tenant_with_jobs_cannot_be_left_out(void **state)
{
	assert_int_equal(configured(true, 400, "red", 600), 0);
	assert_int_equal(job_added("resnet", 2, 4), 0);
	assert_int_equal(configured(true, 1000, NULL, 0), -EBUSY);
}

static void a_default_quota_of_the_configuration_leaves_runtime_its_own(void **state)
{
	assert_int_equal(configured(true, 1000, NULL, 0), 0);
	assert_int_equal(tenant_added("red", 600), 2);
	assert_int_equal(configured(false, 1000, NULL, 0), -ENOSPC);
}

/* Of what no next job of theirs gets, others' quotas are a part, and what was promised; but not
 * where nobody uses it, and it may be lent. */
static void what_is_kept_from_a_tenant_is_told(void **state)
{
	const uint16_t red = (uint16_t)tenant_added("red", 600);

	assert_int_equal(books_kept(&books, BOOKS_DEFAULT), 600);
	assert_int_equal(books_kept(&books, red), 400);
	assert_int_equal(job_added("a", BOOKS_DEFAULT, 64), 0);
	assert_int_equal(books_kept(&books, BOOKS_DEFAULT), 600 + 128);
	assert_int_equal(books_kept(&books, red), 400);
	books.lends = true;
	assert_int_equal(books_kept(&books, BOOKS_DEFAULT), 600 + 128);
	books.spills = true;
	assert_int_equal(books_kept(&books, BOOKS_DEFAULT), 0);
	books.job[0]->run_window = 64;
	assert_int_equal(books_kept(&books, BOOKS_DEFAULT), 128);
	assert_int_equal(books_kept(&books, red), 128);
	books.tenant[red].is.points = 1;
	books.tenant[red].is.point[0].vlan = 5;
	assert_int_equal(books_kept(&books, red), 400);
}

static void a_default_quota_is_reserved_even_if_it_is_as_much_as_the_rest(void **state)
{
	assert_int_equal(configured(true, 1000, NULL, 0), 0);
	assert_int_equal(tenant_set("default", 1000), 0);
	assert_false(books.tenant[BOOKS_DEFAULT].remainder);
	assert_int_equal(tenant_added("red", 1), -ENOSPC);
}

static void fewer_slots_than_runtime_has_are_refused(void **state)
{
	assert_int_equal(tenant_added("red", 600), 2);
	books.slots = 599;
	assert_int_equal(configured(true, 599, NULL, 0), -ENOSPC);
	books.slots = 600;
	assert_int_equal(configured(true, 600, NULL, 0), 0);
	assert_int_equal(quota("default"), 0);
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void a_job_is_promised_slots_of_its_tenants_quota(void **state)
{
	assert_int_equal(tenant_added("red", 64), 2);
	assert_int_equal(job_added("one", 2, 16), 0);
	assert_int_equal(job_added("two", 2, 32), -ENOSPC);
	assert_string_equal(why.text, "window 32 takes 64 slots (two a chunk): tenant red has a "
				      "quota of 64, and its jobs want 32, also those that wait for "
				      "workers; take a smaller window, delete a job (tallyctl job "
				      "list --tenant red), or give the tenant more");
	assert_int_equal(job_added("two", 2, 16), 0);
	assert_int_equal(job_added("three", 2, 1), -ENOSPC);
	assert_int_equal(books_promised(&books, 2), 64);
	assert_int_equal(books_held(&books, 2), 0);
	assert_int_equal(books_promised(&books, BOOKS_DEFAULT), 0);
	assert_int_equal(job_added("three", BOOKS_DEFAULT, 1), 0);
}

static void after_a_shrink_nothing_more_is_promised(void **state)
{
	assert_int_equal(tenant_added("red", 100), 2);
	assert_int_equal(job_added("one", 2, 32), 0);
	assert_int_equal(tenant_set("red", 40), 0);
	assert_int_equal(job_added("two", 2, 1), -ENOSPC);
	assert_int_equal(books_promised(&books, 2), 64);
}

static void names_and_numbers_are_taken_once(void **state)
{
	_cleanup_(job_freep) struct job *same_name = job_made("one", 9, BOOKS_DEFAULT, 1);
	_cleanup_(job_freep) struct job *same_id = job_made("two", 1, BOOKS_DEFAULT, 1);
	_cleanup_(job_freep) struct job *of_red = job_made("one", 9, 2, 1);

	assert_int_equal(tenant_added("red", 100), 2);
	assert_int_equal(job_added("one", BOOKS_DEFAULT, 1), 0);
	assert_int_equal(job_named("one")->id, 1);
	assert_int_equal(books_job_add(&books, same_name, &why), -EEXIST);
	assert_string_equal(why.text,
			    "there is a job one already; its token: tallyctl job token one");
	assert_int_equal(books_job_add(&books, same_id, &why), -EEXIST);
	assert_string_equal(why.text, "number 1 is taken: take another one, or name none");
	/* whose job it is, is nobody else's business */
	assert_int_equal(books_job_add(&books, of_red, &why), -EEXIST);
	assert_string_equal(why.text, "the name one is taken: take another one");
	assert_int_equal(books.jobs, 1);
	assert_null(books_job_find(&books, "two"));
}

static int tree_added(const char *name, uint16_t owner)
{
	struct job *j = job_made(name, books_job_id(&books, 1), owner, 1);
	static struct tree tree;
	int r;

	tree.nodes = TREE_NODES_MAX;
	assert_int_equal(job_tree_set(j, &tree), 0);
	r = books_job_add(&books, j, &why);
	if (r < 0)
		job_free(j);
	return r;
}

/* Each change writes all of them to disk: what the default and blue may have red cannot take. */
static void no_tenant_takes_the_inner_nodes_of_all(void **state)
{
	char name[NAME_BYTES];
	int r = 0;

	books_init(&books, 8 * TALLY_JOBS_MAX);
	assert_int_equal(tenant_added("red", 2 * TALLY_JOBS_MAX), 2);
	assert_int_equal(tenant_added("blue", 16), 3);
	for (unsigned int i = 0; r == 0; i++) {
		snprintf(name, sizeof(name), "red%u", i);
		r = tree_added(name, 2);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(books.jobs, TALLY_TENANTS_MAX - 2);
	assert_string_equal(why.text,
			    "the trees of tenant red would have 4032 inner nodes; all jobs of this "
			    "node together can have 4096, of which each tenant has 64 of its own: "
			    "delete a job (tallyctl job list --tenant red)");
	assert_int_equal(job_added("flat", 2, 1), 0);
	assert_int_equal(tree_added("blues", 3), 0);
	assert_int_equal(tree_added("more", 3), -ENOSPC);
	assert_int_equal(tree_added("defaults", BOOKS_DEFAULT), 0);
}

/* The default's eight, and blue's, are not for red, whatever its quota is. */
static void no_tenant_takes_the_jobs_of_all(void **state)
{
	char name[NAME_BYTES];
	int r = 0;

	books_init(&books, 8 * TALLY_JOBS_MAX);
	assert_int_equal(tenant_added("red", 2 * TALLY_JOBS_MAX), 2);
	assert_int_equal(tenant_added("blue", 16), 3);
	for (unsigned int i = 0; r == 0; i++) {
		snprintf(name, sizeof(name), "red%u", i);
		r = job_added(name, 2, 1);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(books.jobs, TALLY_JOBS_MAX - 16);
	assert_string_equal(why.text,
			    "tenant red has 1008 jobs, and the rest of the 1024 that the "
			    "node can have is for other tenants: delete one (tallyctl job "
			    "list --tenant red)");
	for (unsigned int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "other%u", i);
		assert_int_equal(job_added(name, i % 2 ? 3 : BOOKS_DEFAULT, 1), 0);
	}
	assert_int_equal(job_added("more", BOOKS_DEFAULT, 1), -ENOSPC);
	assert_string_equal(why.text, "the node has 1024 jobs already, the most it can");
}

/* With points a packet of a swap comes in elsewhere. */
static void who_has_no_slots_may_borrow(void **state)
{
	struct job *j;
	int red = tenant_added("red", 64);

	books.spills = books.pool = true;
	assert_in_range(red, 1, TALLY_TENANTS_MAX - 1);
	assert_int_equal(job_added("train", red, 128), 0);
	j = job_named("train");
	assert_true(books_may_borrow(&books, j));
	j->tags = true;
	assert_true(books_may_borrow(&books, j));
	books.tenant[red].is.points = 1;
	assert_false(books_may_borrow(&books, j));
	books.tenant[red].is.points = 0;
	books.pool = false;
	assert_false(books_may_borrow(&books, j));
	books.pool = true;
	books.spills = false; /* who would make the results? */
	assert_false(books_may_borrow(&books, j));
}

static void what_a_run_borrows_is_not_its_tenants(void **state)
{
	struct job *j;
	int red = tenant_added("red", 64);

	assert_int_equal(job_added("train", red, 32), 0);
	j = job_named("train");
	assert_int_equal(runs("train"), 32);
	assert_int_equal(books_held(&books, red), 64);
	j->borrows = true;
	assert_int_equal(books_held(&books, red), 0);
}

static int document_added(const char *name, uint16_t owner, uint16_t window)
{
	struct document d = { .id = books_job_id(&books, 1), .window = window, .workers = 1 };
	struct job *j;
	int r;

	snprintf(d.job, sizeof(d.job), "%s", name);
	j = job_new_inner(&d, owner);
	assert_non_null(j);
	r = books_job_add(&books, j, &why);
	if (r < 0)
		job_free(j);
	return r;
}

/* Software is the root of jobs only; but contributions pass an inner node as well. */
static void an_inner_job_without_slots_borrows(void **state)
{
	int red = tenant_added("red", 64);

	assert_int_equal(document_added("fits", red, 32), 0);
	assert_false(job_named("fits")->borrows);
	assert_int_equal(document_added("beyond", red, 2), 0);
	assert_true(job_named("beyond")->borrows);
	assert_int_equal(books_held(&books, red), 64);
	assert_int_equal(books_promised(&books, red), 64);
}

static void number_0_is_no_jobs(void **state)
{
	_cleanup_(job_freep) struct job *j = job_made("zero", 0, BOOKS_DEFAULT, 1);

	/* the data plane counts what is of no job as job 0's */
	assert_int_equal(books_job_add(&books, j, &why), -EINVAL);
	assert_string_equal(why.text, "job zero: id 0 is not allowed");
}

static void a_random_number_is_taken_or_the_next_that_is_free(void **state)
{
	assert_int_equal(books_job_id(&books, 0x5eed5eed), 0x5eed5eed);
	assert_int_equal(books_job_id(&books, 0), 1);
	assert_int_equal(job_added("c", BOOKS_DEFAULT, 1), 0);
	assert_int_equal(job_added("b", BOOKS_DEFAULT, 1), 0);
	assert_int_equal(job_named("b")->id, 2);
	assert_int_equal(books_job_id(&books, 1), 3);
	assert_int_equal(books_job_id(&books, UINT32_MAX), UINT32_MAX);
	assert_int_equal(books_job_restore(&books, job_made("d", UINT32_MAX, 1, 1), &why), 0);
	assert_int_equal(books_job_id(&books, UINT32_MAX), 3);
	books_job_del(&books, job_named("c"));
	assert_int_equal(books_job_id(&books, UINT32_MAX), 1);
}

static void jobs_are_in_the_order_of_their_names(void **state)
{
	const char *const names[] = { "m", "z", "a", "m2", "b" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(job_added(names[i], BOOKS_DEFAULT, 1), 0);
	books_job_del(&books, job_named("m"));
	for (unsigned int i = 1; i < books.jobs; i++)
		assert_true(strcmp(books.job[i - 1]->name, books.job[i]->name) < 0);
	assert_int_equal(books.jobs, 4);
}

static void the_node_has_room_for_so_many_jobs(void **state)
{
	char name[NAME_BYTES];

	books.slots = 2 * TALLY_JOBS_MAX + 2;
	for (unsigned int i = 0; i < TALLY_JOBS_MAX; i++) {
		snprintf(name, sizeof(name), "job%u", i);
		assert_int_equal(job_added(name, BOOKS_DEFAULT, 1), 0);
	}
	assert_int_equal(job_added("late", BOOKS_DEFAULT, 1), -ENOSPC);
	assert_string_equal(why.text, "the node has 1024 jobs already, the most it can");
}

static void a_job_of_earlier_books_keeps_more_than_the_quota(void **state)
{
	struct job *j = job_made("big", 5, BOOKS_DEFAULT, 1024);

	assert_int_equal(books_job_restore(&books, j, &why), 0);
	assert_int_equal(books_promised(&books, BOOKS_DEFAULT), 2048);
	assert_int_equal(books_quota(&books, BOOKS_DEFAULT), 1000);
}

/* --- drains ---------------------------------------------------------------------------------- */

static void within_the_quota_a_run_gets_what_was_asked_for(void **state)
{
	assert_int_equal(tenant_added("red", 64), 2);
	assert_int_equal(job_added("one", 2, 16), 0);
	assert_int_equal(job_added("two", 2, 16), 0);
	assert_int_equal(runs("one"), 16);
	assert_int_equal(runs("two"), 16);
	assert_int_equal(books_held(&books, 2), 64);
}

static void what_is_held_after_a_shrink_is_nobody_elses(void **state)
{
	assert_int_equal(tenant_added("red", 1000), 2);
	assert_int_equal(job_added("one", 2, 256), 0);
	assert_int_equal(runs("one"), 256);
	assert_int_equal(tenant_set("red", 100), 0);
	assert_int_equal(books_held(&books, 2), 512);
	assert_int_equal(books_reserved(&books), 512);
	assert_int_equal(quota("default"), 488);
	assert_int_equal(tenant_added("blue", 489), -ENOSPC);
	job_end(job_named("one"));
	assert_int_equal(quota("default"), 900);
	assert_int_equal(tenant_added("blue", 900), 3);
	assert_int_equal(runs("one"), 32); /* 64 of 100 slots */
}

static void smaller_quotas_shrink_all_windows_alike(void **state)
{
	assert_int_equal(tenant_added("red", 512), 2);
	assert_int_equal(job_added("large", 2, 128), 0);
	assert_int_equal(job_added("small", 2, 32), 0);
	assert_int_equal(tenant_set("red", 160), 0); /* half of what was promised */
	assert_int_equal(runs("large"), 64);
	assert_int_equal(runs("small"), 16);
	assert_in_range(books_held(&books, 2), 1, 160);
}

static void while_others_drain_a_run_gets_what_is_left(void **state)
{
	assert_int_equal(tenant_added("red", 256), 2);
	assert_int_equal(job_added("old", 2, 16), 0);
	assert_int_equal(job_added("new", 2, 64), 0);
	assert_int_equal(runs("old"), 16);
	assert_int_equal(tenant_set("red", 40), 0);
	/* its share would be 32, and old keeps 32 of 40 */
	assert_int_equal(runs("new"), 4);
	assert_int_equal(books_held(&books, 2), 40);
}

static void a_small_share_is_one_chunk_while_there_is_one(void **state)
{
	assert_int_equal(tenant_added("red", 1000), 2);
	assert_int_equal(job_added("large", 2, 256), 0);
	assert_int_equal(job_added("small", 2, 1), 0);
	assert_int_equal(tenant_set("red", 300), 0);
	assert_int_equal(runs("large"), 128);
	assert_int_equal(runs("small"), 1);
}

static void nothing_left_is_said_with_the_numbers(void **state)
{
	assert_int_equal(tenant_added("red", 512), 2);
	assert_int_equal(job_added("one", 2, 128), 0);
	assert_int_equal(job_added("two", 2, 64), 0);
	assert_int_equal(runs("one"), 128);
	assert_int_equal(tenant_set("red", 256), 0);
	cannot_run("two",
		   "job two wants 128 slots (two a chunk) and gets none: tenant red has a quota "
		   "of 256 slots, and its other runs hold 256 until they end; for all jobs of the "
		   "tenant: tallyctl quota red --slots 384");
	assert_int_equal(tenant_set("red", 0), 0);
	cannot_run("two",
		   "job two wants 128 slots (two a chunk) and gets none: tenant red has a quota "
		   "of 0 slots, and its other runs hold 256 until they end; for all jobs of the "
		   "tenant: tallyctl quota red --slots 384");
	/* its own run that is to be replaced does not stand in its way */
	assert_int_equal(tenant_set("red", 384), 0);
	assert_int_equal(runs("one"), 128);
}

/* --- random operations ----------------------------------------------------------------------- */

enum {
	SEEDS = 400,
	STEPS = 250,
	SLOTS = 128,
	NAMES = 6,
};

/* Reached at all? */
static struct {
	unsigned int began, refused, drained, added;
} seen;

static int any_tenant(void)
{
	int index = rand() % (NAMES + 1) + 1;

	return *books.tenant[index].is.name ? index : BOOKS_DEFAULT;
}

static void tenant_happens(void)
{
	char name[] = "t?";
	int index = any_tenant();
	struct tenant t = books.tenant[index].is;

	name[1] = (char)('a' + rand() % NAMES);
	switch (rand() % 4) {
	case 0:
		seen.added += tenant_added(name, rand() % SLOTS) > 0;
		break;
	case 1:
		books_tenant_del(&books, index, &why);
		break;
	default:
		if (index != BOOKS_DEFAULT || rand() % 4 == 0)
			t.slots = rand() % SLOTS;
		books_tenant_set(&books, index, &t, &why);
	}
}

static void configuration_happens(void)
{
	struct tenant tenants[3] = { tenant("default", rand() % SLOTS), tenant("ca", rand() % 64),
				     tenant("cb", rand() % 64) };
	struct books before = books;
	unsigned int count = 1 + rand() % 3;

	books.slots = rand() % 4 ? SLOTS : SLOTS / 2;
	if (books_configure(&books, tenants, count, rand() % 2, &why) < 0)
		books = before; /* as its contract wants it */
}

/* May this run begin, and how large? Slowly and obviously. */
static void run_happens(struct job *j)
{
	uint32_t quota = books_quota(&books, j->tenant), others = 0, wanted = 0, best = 0;
	uint16_t window = 0;
	int r = books_run_window(&books, j, &window, &why);

	for (unsigned int i = 0; i < books.jobs; i++) {
		const struct job *other = books.job[i];

		if (other->tenant == j->tenant) {
			others += other == j ? 0 : 2u * other->run_window;
			wanted += 2u * other->window;
		}
	}
	for (uint32_t w = 1; w <= j->window; w *= 2) {
		bool fits = others + 2 * w <= quota;
		bool fair = wanted <= quota || w == 1 ||
			    (uint64_t)2 * w * wanted <= (uint64_t)2 * j->window * quota;

		best = fits && fair ? w : best;
	}
	assert_int_equal(r, best ? 0 : -ENOSPC);
	assert_int_equal(window, best);
	j->begin_draw.nonce = 0x9c41d00f3ae7b552;
	if (best)
		job_begin(j, window, false);
	seen.began += best > 0;
	seen.refused += !best;
}

static void job_happens(void)
{
	struct job *j = books.jobs ? books.job[rand() % books.jobs] : NULL;
	char name[] = "j?";

	name[1] = (char)('a' + rand() % 12);
	switch (rand() % 8) {
	case 0:
	case 1:
		job_added(name, any_tenant(), 1 << rand() % 6);
		break;
	case 2:
		if (j)
			books_job_del(&books, j);
		break;
	case 3:
	case 4:
		if (j)
			job_end(j);
		break;
	default:
		if (j)
			run_happens(j);
	}
}

/* What must hold between any two operations. `before`: held by each tenant. */
static void books_are_sound(const uint32_t *before)
{
	uint32_t kept = 0, reserved = 0;

	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		uint32_t held = books_held(&books, i), quota = books_quota(&books, i);

		if (!*books.tenant[i].is.name) {
			assert_int_equal(held, 0);
			continue;
		}
		kept += held > quota ? held : quota;
		reserved += books.tenant[i].remainder ? 0 : held > quota ? held : quota;
		seen.drained += held > quota;
		if (held > quota)
			assert_true(held <= before[i]); /* nothing came on top */
		assert_int_equal(books.tenant[i].remainder && i != BOOKS_DEFAULT, 0);
	}
	assert_in_range(kept, 0, books.slots);
	assert_int_equal(reserved, books_reserved(&books));
	for (unsigned int i = 0; i < books.jobs; i++) {
		const struct job *j = books.job[i];

		assert_int_equal(j->run_window & (j->run_window - 1), 0);
		assert_true(j->run_window <= j->window);
		assert_true(i == 0 || strcmp(books.job[i - 1]->name, j->name) < 0);
		assert_true(*books.tenant[j->tenant].is.name);
		for (unsigned int k = 0; k < i; k++)
			assert_int_not_equal(books.job[k]->id, j->id);
	}
}

static void random_operations_leave_the_books_sound(void **state)
{
	uint32_t before[TALLY_TENANTS_MAX];

	for (unsigned int seed = 0; seed < SEEDS; seed++) {
		srand(seed);
		books_clear(&books);
		books_init(&books, SLOTS);
		for (unsigned int step = 0; step < STEPS; step++) {
			int what = rand() % 16;

			for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
				before[i] = books_held(&books, i);
			if (what == 0)
				configuration_happens();
			else if (what < 6)
				tenant_happens();
			else
				job_happens();
			books_are_sound(before);
		}
	}
	assert_in_range(seen.began, SEEDS, SEEDS * STEPS);
	assert_in_range(seen.refused, SEEDS, SEEDS * STEPS);
	assert_in_range(seen.drained, SEEDS, SEEDS * STEPS);
	assert_in_range(seen.added, SEEDS, SEEDS * STEPS);
}

#define FACT(name) cmocka_unit_test_setup_teardown(name, empty_books, forget_books)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACT(the_default_tenant_has_what_nobody_reserves),
		FACT(a_default_with_a_quota_of_its_own_reserves_it),
		FACT(other_limits_of_the_default_leave_it_the_rest),
		FACT(quotas_never_exceed_the_node),
		FACT(a_name_is_taken_once),
		FACT(a_tenant_that_is_not_there_is_told_who_is),
		FACT(the_node_has_room_for_so_many_tenants),
		FACT(a_tenant_with_jobs_and_the_default_one_stay),
		FACT(a_configuration_takes_the_place_of_the_last_one),
		FACT(what_one_configured_tenant_gives_back_another_can_have),
		FACT(a_configuration_does_not_take_what_runtime_made),
		FACT(what_agents_share_gives_way_to_the_configuration),
		FACT(what_an_earlier_agent_had_counts_before_the_configuration),
		FACT(a_configured_tenant_with_jobs_cannot_be_left_out),
		FACT(a_default_quota_of_the_configuration_leaves_runtime_its_own),
		FACT(what_is_kept_from_a_tenant_is_told),
		FACT(a_default_quota_is_reserved_even_if_it_is_as_much_as_the_rest),
		FACT(fewer_slots_than_runtime_has_are_refused),
		FACT(a_job_is_promised_slots_of_its_tenants_quota),
		FACT(after_a_shrink_nothing_more_is_promised),
		FACT(names_and_numbers_are_taken_once),
		FACT(no_tenant_takes_the_jobs_of_all),
		FACT(no_tenant_takes_the_inner_nodes_of_all),
		FACT(who_has_no_slots_may_borrow),
		FACT(what_a_run_borrows_is_not_its_tenants),
		FACT(an_inner_job_without_slots_borrows),
		FACT(number_0_is_no_jobs),
		FACT(a_random_number_is_taken_or_the_next_that_is_free),
		FACT(jobs_are_in_the_order_of_their_names),
		FACT(the_node_has_room_for_so_many_jobs),
		FACT(a_job_of_earlier_books_keeps_more_than_the_quota),
		FACT(within_the_quota_a_run_gets_what_was_asked_for),
		FACT(what_is_held_after_a_shrink_is_nobody_elses),
		FACT(smaller_quotas_shrink_all_windows_alike),
		FACT(while_others_drain_a_run_gets_what_is_left),
		FACT(a_small_share_is_one_chunk_while_there_is_one),
		FACT(nothing_left_is_said_with_the_numbers),
		FACT(random_operations_leave_the_books_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
