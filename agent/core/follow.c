// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Neighbours get other MACs while jobs run, routes lead elsewhere, agents find another tree: the
 * copies of results are readdressed.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core_private.h"
#include "mac_cache.h"

enum {
	FOLLOW_MS = 500, /* from the first word of a change: many may come at once */
};

void follow_due(struct core *c)
{
	for (unsigned int i = 0; i < c->books.jobs; i++)
		c->books.job[i]->follow = true;
	core_due(c, CORE_DUE_FOLLOW, FOLLOW_MS);
}

void follow_heard(struct core *c, const struct core_event *e)
{
	if (!c->macs)
		c->macs = calloc(1, sizeof(*c->macs));
	if (!c->macs || mac_cache_learn(c->macs, e->neighbour.ifindex, e->neighbour.address,
					e->neighbour.mac)) {
		follow_due(c);
		core_retry_soon(c);
	}
}

void follow_link(struct core *c, const struct core_event *e)
{
	const char *port = e->link.ifindex ? core_port_name(c, e->link.ifindex) : "";

	if (*port)
		core_log(c, LOG_LEVEL_WARNING, "link changed", "port=%s state=\"%s\"", port,
			 e->link.state);
	follow_due(c); /* who is behind it may be another machine now */
}

void follow_route(struct core *c, const struct core_event *e)
{
	follow_due(c);
	core_retry_soon(c);
}

/* --- trees ----------------------------------------------------------------------------------- */

void follow_rewrite(struct core *c, struct job *j)
{
	j->follow = j->rewrite = true;
	core_due(c, CORE_DUE_FOLLOW, 0);
}

/* Without the disk, too: an agent after us finds it as we did. */
static void tree_saved(struct core *c, int r) { core_saved(c, r); }

/* The tree of this node's job has changed: the root's part of it; inner nodes are told. */
void follow_tree(struct core *c, const struct core_event *e)
{
	struct job *j = (struct job *)books_job_numbered(&c->books, e->found.job);
	const struct tree *t = e->found.tree;
	struct why why = { "" };

	if (!j || !j->tree || !j->tree->found || !j->run_window || j->epoch != e->found.epoch)
		return;
	if (strcmp(j->left_out.text, e->found.left_out) != 0) {
		snprintf(j->left_out.text, sizeof(j->left_out.text), "%s", e->found.left_out);
		if (*j->left_out.text)
			core_log(c, LOG_LEVEL_WARNING, "nodes are left out of the tree",
				 "job=%s reason=\"%s\"", j->name, j->left_out.text);
	}
	if (tree_is_equal(j->tree, t)) {
		if (j->rewrite) /* some neighbour did not answer */
			follow_rewrite(c, j);
		return;
	}
	if (tree_check(t, j->workers, &j->service, &why) < 0) {
		core_log(c, LOG_LEVEL_ERROR, "no such tree", "job=%s reason=\"%s\"", j->name,
			 why.text);
		return;
	}
	tree_follow(j->tree, t);
	core_log(c, LOG_LEVEL_INFO, "tree found", "job=%s epoch=%u generation=%u nodes=%u", j->name,
		 j->epoch, j->tree->generation, t->nodes);
	follow_rewrite(c, j);
	core_await(c, ACTION(CORE_SAVE), NULL, tree_saved);
}

/* --- a run at a time, so that others have their turn ----------------------------------------- */

static struct job *marked_find(const struct core *c)
{
	for (unsigned int i = 0; i < c->books.jobs; i++)
		if (c->books.job[i]->follow)
			return c->books.job[i];
	return NULL;
}

static void follow_over(struct core *c, int r)
{
	free(TAKE_PTR(c->install.g));
	if (r < 0 && r != -ENOENT) /* a run that the maps have lost has no copies */
		core_log(c, LOG_LEVEL_ERROR, "cannot readdress results", "job=%s reason=\"%s\"",
			 c->follow->name, c->why.text);
	if (marked_find(c))
		core_due(c, CORE_DUE_FOLLOW, 0);
}

static void spilled(struct core *c, int r)
{
	struct job *j = c->follow;

	j->rewrite = j->rewrite && r < 0;
	follow_over(c, r);
}

static void moved(struct core *c, int r)
{
	struct job *j = c->follow;

	if (r == 0 && j->rewrite)
		core_log(c, LOG_LEVEL_INFO, "results follow the tree", "job=%s epoch=%u", j->name,
			 j->epoch);
	else if (r == 0)
		core_log(c, LOG_LEVEL_INFO, "results leave by other ports now", "job=%s", j->name);
	else
		core_doubt_maps(c); /* is the run there still? */
	j->rewrite = j->rewrite && r < 0;
	follow_over(c, r);
}

/*
 * Workers are behind another port, or behind the same one made anew, or the tree is another: the
 * run is written anew.
 */
static void move(struct core *c, const struct job *j)
{
	struct installation *g = c->install.g;
	int r;

	for (unsigned int i = 0; i < g->copies; i++)
		if (!g->copy[i].hop.port) { /* not yet */
			follow_over(c, 0);
			return;
		}
	r = installation_address(g, &c->why);
	g->job.tenant = j->tenant;
	g->anew = j->rewrite;
	if (r < 0)
		follow_over(c, r);
	else
		mirror_install(c, g, moved);
}

static void on_followed(struct core *c, int r)
{
	const struct job *j = c->follow;

	if (r == 0 && c->result->result.followed.changed)
		core_log(c, LOG_LEVEL_INFO, "results readdressed: workers have new MACs",
			 "job=%s workers=%u", j->name, c->result->result.followed.changed);
	if (r == 0 && c->result->result.followed.elsewhere)
		move(c, j);
	else
		follow_over(c, r);
}

/* Next hops of a run's copies, as far as they are known now: the others keep what they have. */
static void hop_read(struct core *c, int r)
{
	struct installation *g = c->install.g;
	struct hop *hops;

	if (c->install.at) {
		struct hop *hop = &g->copy[c->install.at - 1].hop;

		*hop = r == 0 ? *c->result->result.hop : (struct hop){ .port = 0 };
	}
	if (c->install.at < g->copies) {
		core_await(c,
			   ACTION(CORE_RESOLVE,
				  .resolve = { .address = &g->copy[c->install.at++].address,
					       .from = &c->follow->service }),
			   NULL, hop_read);
		return;
	}
	assert(g->copies); /* a job has one worker at least */
	c->why = (struct why){ "" };
	if (c->follow->rewrite) {
		move(c, c->follow);
		return;
	}
	hops = calloc(g->copies, sizeof(*hops));
	for (unsigned int i = 0; hops && i < g->copies; i++)
		hops[i] = g->copy[i].hop;
	if (hops)
		core_await(c, ACTION(CORE_FOLLOW, .id = g->id, .follow = { hops, g->copies }), hops,
			   on_followed);
	else
		follow_over(c, -ENOMEM);
}

void follow_begin(struct core *c)
{
	struct job *j;
	int r;

	while ((j = marked_find(c))) {
		j->follow = false;
		j->rewrite = j->rewrite && job_is_running(j); /* what waits comes as it is now */
		if (j->run_window && !job_is_suspended(j) && (!j->spilled || j->rewrite))
			break;
	}
	if (!j)
		return;
	c->follow = j;
	if (j->spilled) { /* its sums stay */
		run_spill(c, j, 0, spilled);
		return;
	}
	r = run_plan(c, j, 0);
	if (r < 0)
		follow_over(c, r);
	else
		hop_read(c, 0);
}
