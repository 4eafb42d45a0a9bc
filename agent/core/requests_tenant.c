// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests that change tenants (requests.c). */
#include <errno.h>
#include <string.h>

#include "core_private.h"

/* Ingress points must be at ports of this node. */
static int points_check(const struct core *c, const struct tenant *t, struct why *why)
{
	for (unsigned int i = 0; i < t->points; i++) {
		unsigned int k = 0;

		while (k < c->ports_count && strcmp(c->ports[k].name, t->point[i].port) != 0)
			k++;
		if (k == c->ports_count)
			return why_say(
				why, -EINVAL,
				"ingress: %s is not one of the node's ports (tallyctl links)",
				t->point[i].port);
	}
	return 0;
}

/* Its index, if it is not the configuration's. The cluster's only the cluster changes. */
static int tenant_ours(struct core *c, const char *name, bool clustered)
{
	int index = books_tenant_find(&c->books, name, &c->why);

	if (index >= 0 && !clustered && c->books.tenant[index].is.clustered)
		return why_say(
			&c->why, -EPERM,
			"tenant %s is the cluster's: say --cluster to change it at all nodes; "
			"of this node alone are its ingress points%s",
			name,
			c->books.tenant[index].is.gated
				? ", where the cluster does not name any, as it does now"
				: "");

	if (index >= 0 && c->books.tenant[index].configured)
		return why_say(&c->why, -EPERM,
			       "tenant %s is in %s: change it there, and then: tallyctl reload",
			       name, c->path);
	return index;
}

static void tenant_undone(struct core *c, int r)
{
	if (r < 0)
		core_doubt_maps(c);
	request_refuse(c, c->change.error, &c->change.why);
}

static void tenant_agree_back(struct core *c, int r) { runs_agree(c, tenant_undone); }

/* The books go back, and what stands in the maps follows them. */
static void tenant_undo(struct core *c, int error)
{
	_cleanup_(freep) struct books_tenant *before = TAKE_PTR(c->change.tenant);
	const unsigned int index = c->change.index;

	c->change.error = error;
	c->change.why = c->why;
	c->books.tenant[index] = *before;
	books_settle(&c->books);
	if (*before->is.name)
		runs_agree(c, tenant_undone);
	else
		core_await(c, ACTION(CORE_DROP_TENANT, .id = index), NULL, tenant_agree_back);
}

static void tenant_saved(struct core *c, int r)
{
	_cleanup_(freep) struct books_tenant *before = NULL;
	const unsigned int index = c->change.index;
	const struct tenant *t = &c->books.tenant[index].is;

	if (r < 0) {
		tenant_undo(c, r);
		return;
	}
	before = TAKE_PTR(c->change.tenant);
	if (!*before->is.name) {
		core_log(c, LOG_LEVEL_INFO, "tenant added", "tenant=%s slots=%u", t->name,
			 t->slots);
	} else if (*t->name) {
		core_log(c, LOG_LEVEL_INFO, "tenant changed",
			 "tenant=%s slots=%u held=%u packets_per_second=%llu bytes_per_second=%llu",
			 t->name, books_quota(&c->books, index), books_held(&c->books, index),
			 (unsigned long long)t->packets_per_second,
			 (unsigned long long)t->bytes_per_second);
	} else {
		core_act(c, ACTION(CORE_FORGET_TENANT, .id = index));
		core_log(c, LOG_LEVEL_INFO, "tenant deleted", "tenant=%s", before->is.name);
	}
	request_answer(c, *t->name ? CORE_ANSWER_TENANT : CORE_ANSWER_DONE, index, NULL);
}

static void tenant_agreed(struct core *c, int r)
{
	if (r < 0)
		tenant_undo(c, r);
	else
		core_await(c, ACTION(CORE_SAVE), NULL, tenant_saved);
}

static int tenant_keep(struct core *c, unsigned int index)
{
	c->change.index = index;
	c->change.tenant = malloc(sizeof(*c->change.tenant));
	if (!c->change.tenant)
		return -ENOMEM;
	*c->change.tenant = c->books.tenant[index];
	return 0;
}

int request_tenant_add(struct core *c, const struct tenant *t)
{
	const struct books_tenant nobody = { 0 };
	int r, index;

	r = points_check(c, t, &c->why);
	if (r < 0)
		return r;
	index = books_tenant_add(&c->books, t, &c->why);
	if (index < 0)
		return index;
	r = tenant_keep(c, index);
	if (r < 0) {
		c->books.tenant[index] = nobody;
		books_settle(&c->books);
		return r;
	}
	*c->change.tenant = nobody;
	runs_agree(c, tenant_agreed);
	return 0;
}

static int tenant_change(struct core *c, unsigned int index, const struct tenant *t,
			 bool configured)
{
	int r = points_check(c, t, &c->why);

	if (r == 0 && books_promised(&c->books, index))
		r = core_ingress_check(c, c->config, t, &c->why);
	if (r == 0)
		r = tenant_keep(c, index);
	if (r == 0)
		r = books_tenant_set(&c->books, index, t, &c->why);
	if (r == 0) {
		r = books_runs_check(&c->books, index, &c->change.tenant->is, &c->why);
		if (r < 0)
			c->books.tenant[index] = *c->change.tenant;
	}
	if (r < 0) {
		free(TAKE_PTR(c->change.tenant));
		return r;
	}
	c->books.tenant[index].configured = configured;
	runs_agree(c, tenant_agreed);
	return 0;
}

/* What an operator of this node may change of a tenant that agents share. */
static bool is_points_only(const struct core *c, const struct request *q)
{
	struct why ignored;
	const int index = books_tenant_find(&c->books, q->tenant.name, &ignored);

	return !(q->given & ~(REQUEST_NAME | REQUEST_INGRESS)) &&
	       !(index >= 0 && c->books.tenant[index].is.gated);
}

int request_tenant_set(struct core *c, const struct request *q)
{
	int index = tenant_ours(c, q->tenant.name, q->tenant.clustered || is_points_only(c, q));
	struct tenant t;

	if (index < 0)
		return index;
	t = request_tenant(q, &c->books.tenant[index].is);
	return tenant_change(c, index, &t, false);
}

/* Its jobs are out of the maps. */
static void tenant_drop(struct core *c, int r)
{
	if (r < 0)
		tenant_undo(c, r);
	else
		core_await(c, ACTION(CORE_DROP_TENANT, .id = c->change.index), NULL, tenant_agreed);
}

int request_tenant_del(struct core *c, const struct tenant *which)
{
	const struct tenant *of_file = core_tenant_of_file(c->config, which->name);
	int r, index = tenant_ours(c, which->name, which->clustered);

	if (index < 0)
		return index;
	if (of_file) /* which it has hidden; the file's has its jobs from now on */
		return tenant_change(c, index, of_file, true);
	r = tenant_keep(c, index);
	if (r == 0)
		r = books_tenant_del(&c->books, index, &c->why);
	if (r < 0)
		free(TAKE_PTR(c->change.tenant));
	else
		runs_agree(c, tenant_drop);
	return r;
}
