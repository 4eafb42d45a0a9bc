// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Ways for the packets of jobs that stay where they are: when they are found, and given up. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "lead_private.h"
#include "steer.h"

enum {
	WAYS_LOOK_MS = 5000, /* one job is weighed each time: that takes a while */
	WAYS_WEIGH_MS = 30000, /* so often a job is */
	WAYS_REST_MS = 60000, /* ways stay so long before better ones replace them, and a job
			       * without, that had some, */
	WAYS_REST_DOUBLES = 4, /* so long, doubled so often, where it goes on losing them */
	WAYS_LOADS_MS = 10000, /* until loads are those of the new ways: its root stays, too */
	WAYS_SILENT_MS = 10000, /* a run that sums nothing for so long, */
	WAYS_TRIAL_MS = 60000, /* beginning so soon after it got ways, is not to blame for it */
};

/* --- whose they are -------------------------------------------------------------------------- */

/* One job, or all roots of one: their ways are found, and given up, together. */
struct group {
	unsigned int roots;
	const struct shared_job *job[JOINING_ROOTS_MAX];
};

/* False: a root is not known. */
static bool group_find(const struct lead_view *v, const struct shared_job *j, struct group *ret)
{
	*ret = (struct group){ 1, { j } };
	if (!j->revision || !j->job.roots)
		return true;
	for (unsigned int i = 0; i < j->job.roots; i++) {
		ret->job[i] = shared_root(v->shared, j, i + 1);
		if (!ret->job[i])
			return false;
	}
	ret->roots = j->job.roots;
	return true;
}

static void shares_of(const struct group *g, uint16_t *ret)
{
	for (unsigned int i = 0; i < g->roots; i++)
		ret[i] = g->job[i]->place.share ? g->job[i]->place.share : 1;
}

static bool all_have_ways(const struct group *g)
{
	for (unsigned int i = 0; i < g->roots; i++)
		if (!shared_ways(g->job[i]))
			return false;
	return true;
}

/* --- what becomes of them -------------------------------------------------------------------- */

/* Whoever has written or deleted them. */
static void follow(struct lead *l, struct lead_rest *rest, const struct shared_job *j,
		   uint64_t now_ns)
{
	const uint64_t revision = shared_ways(j) ? j->ways_revision : 0;
	const uint64_t settled_ns = now_ns + WAYS_LOADS_MS * 1000000ull;
	struct lead_rest_ways *r = &rest->ways;

	if (revision == r->revision)
		return;
	r->revision = revision;
	r->silent_ns = 0;
	l->looked_ns = now_ns;
	rest->until_ns = rest->until_ns > settled_ns ? rest->until_ns : settled_ns;
	if (revision) {
		r->since_ns = now_ns;
		r->until_ns = now_ns + WAYS_REST_MS * 1000000ull;
		return;
	}
	if (now_ns > r->until_ns + LEAD_CALM_MS * 1000000ull)
		r->losses = 0;
	r->until_ns = now_ns + (WAYS_REST_MS * 1000000ull << r->losses);
	r->losses += r->losses < WAYS_REST_DOUBLES;
}

/* Runs pause, as when models are saved; but not as soon as they have got ways, each time. */
static bool bear_nothing(struct lead_rest_ways *r, const struct report_job *there, uint64_t now_ns)
{
	if (!there || !there->runs || there->chunks_per_second) {
		r->silent_ns = 0;
		return false;
	}
	if (!r->silent_ns)
		r->silent_ns = now_ns;
	return now_ns - r->silent_ns >= WAYS_SILENT_MS * 1000000ull &&
	       r->silent_ns - r->since_ns < WAYS_TRIAL_MS * 1000000ull;
}

static bool is_cordoned(const struct picture *p, const char *node)
{
	const int at = picture_place(p, node);

	return at >= 0 && p->report[at]->cordoned;
}

static bool is_first(const struct wanted_ways *w, const char *node)
{
	for (unsigned int i = 0; i < w->ways; i++)
		if (!strcmp(w->way[i].node[0], node))
			return true;
	return false;
}

/* One that is cordoned and could do without; as placer_ways() has it. NULL: none. */
static const char *leaving(const struct picture *p, const struct wanted_ways *w)
{
	for (unsigned int i = 0; i < w->sums; i++)
		if (is_cordoned(p, w->sum[i]))
			return w->sum[i];
	for (unsigned int i = 0; i < w->ways; i++)
		for (unsigned int k = 1; k + 1 < w->way[i].nodes; k++)
			if (is_cordoned(p, w->way[i].node[k]) && !is_first(w, w->way[i].node[k]))
				return w->way[i].node[k];
	return NULL;
}

static bool do_not_hold(const struct lead_view *v, const struct shared_job *j,
			const struct steer *steer, struct why *why)
{
	const struct steer_job *s = steer_job_find(steer, j->name);
	const char *node = leaving(v->picture, j->ways);

	if (s && *s->why.text)
		*why = s->why;
	else if (node)
		why_say(why, 0, "%s is cordoned", node);
	else
		return false;
	return true;
}

/* By what is seen at one glance. */
static bool are_over(struct lead *l, const struct lead_view *v, const struct shared_job *j,
		     const struct steer *steer, struct why *why)
{
	struct lead_rest *r;
	struct group g;

	if (!j->revision || !shared_ways(j)) {
		why_say(why, 0,
			j->revision ? "they lead to another root, or are of a job before"
				    : "the job is not wanted any more");
		return true;
	}
	if (!j->ways->found)
		return false;
	if (do_not_hold(v, j, steer, why))
		return true;
	if (!group_find(v, j, &g) || !all_have_ways(&g)) {
		why_say(why, 0, "another root of the job has lost its own");
		return true;
	}
	r = lead_rest_find(l, j, v->now_ns);
	if (!r || !bear_nothing(&r->ways, standing_there(j, v->picture), v->now_ns))
		return false;
	why_say(why, 0, "its run has summed nothing for %d s since it got them",
		WAYS_SILENT_MS / 1000);
	return true;
}

static bool some_are_found(const struct shared *s)
{
	for (unsigned int i = 0; i < s->jobs; i++)
		if (s->job[i]->ways && s->job[i]->ways->found)
			return true;
	return false;
}

/* With all that were found with those of this job. */
static void led_fill(const struct lead_view *v, const struct shared_job *j,
		     struct lead_decision *ret)
{
	ret->led[ret->leds++] = j;
	for (unsigned int i = 1; j->revision && j->ways->found && i <= j->job.roots; i++) {
		const struct shared_job *root = shared_root(v->shared, j, i);

		if (root && root != j && root->ways && root->ways->found)
			ret->led[ret->leds++] = root;
	}
}

static void give_up(struct lead *l, const struct lead_view *v, struct lead_decision *ret)
{
	_cleanup_(steer_close) struct steer steer = { 0 };

	if (some_are_found(v->shared) && steer_make(v->shared, v->picture, "", &steer) < 0)
		return;
	for (unsigned int i = 0; i < v->shared->jobs && !ret->leds; i++) {
		const struct shared_job *j = v->shared->job[i];

		if (j->ways && are_over(l, v, j, &steer, &ret->why))
			led_fill(v, j, ret);
	}
}

/* --- better ones ----------------------------------------------------------------------------- */

static bool steers(const struct report *root) { return root && root->steers; }

static struct shared_job *led_make(const struct shared_job *j, struct wanted_ways *ways)
{
	struct shared_job *led = calloc(1, sizeof(*led));

	if (!led)
		return NULL;
	memcpy(led->name, j->name, sizeof(led->name));
	led->revision = j->revision;
	led->job.birth = j->job.birth; /* its token stays where it is */
	led->place_revision = j->place_revision;
	led->place = j->place;
	led->ways = ways;
	return led;
}

/* What is wanted, with these ways for the group. */
struct trial {
	struct shared shared;
	struct shared_job *led[JOINING_ROOTS_MAX];
	struct steer steer;
};

static void trial_close(struct trial *t)
{
	steer_close(&t->steer);
	for (unsigned int i = 0; i < JOINING_ROOTS_MAX; i++)
		free(t->led[i]);
	free(t->shared.job);
}

static bool trial_make(struct trial *t, const struct lead_view *v, const struct group *g,
		       struct wanted_ways *ways)
{
	t->shared.job = calloc(v->shared->jobs + 1, sizeof(struct shared_job *));
	if (!t->shared.job)
		return false;
	t->shared.jobs = v->shared->jobs;
	for (unsigned int i = 0; i < v->shared->jobs; i++)
		t->shared.job[i] = v->shared->job[i];
	for (unsigned int s = 0; s < g->roots; s++) {
		t->led[s] = led_make(g->job[s], &ways[s]);
		if (!t->led[s])
			return false;
		for (unsigned int i = 0; i < v->shared->jobs; i++)
			if (v->shared->job[i] == g->job[s])
				t->shared.job[i] = t->led[s];
	}
	return steer_make(&t->shared, v->picture, "", &t->steer) == 0;
}

/* Would agents follow them? Else they would be given up at once. */
static bool would_hold(const struct lead_view *v, const struct group *g, struct wanted_ways *ways,
		       struct why *why)
{
	_cleanup_(freep) struct trial *t = calloc(1, sizeof(*t));
	bool holds = t && trial_make(t, v, g, ways);

	for (unsigned int s = 0; holds && s < g->roots; s++) {
		const struct steer_job *found = steer_job_find(&t->steer, g->job[s]->name);

		if (found)
			*why = found->why;
		holds = found && !*found->why.text;
	}
	if (t)
		trial_close(t);
	return holds;
}

/* Ways stay unless routing's bear as much, or they are not those of its workers any more. */
static bool routing_is_as_good(const struct lead_view *v, const struct lead_lists *lists,
			       const unsigned int *which, const struct group *g, struct why *why)
{
	const struct wanted_ways *ways[JOINING_ROOTS_MAX];
	uint16_t share[JOINING_ROOTS_MAX];
	double routed, own;
	int r;

	shares_of(g, share);
	for (unsigned int i = 0; i < g->roots; i++)
		ways[i] = g->job[i]->ways;
	if (placer_ways_rate(v->picture, lists->job, lists->jobs, which, g->roots, share, NULL,
			     &routed, why) < 0)
		return false;
	r = placer_ways_rate(v->picture, lists->job, lists->jobs, which, g->roots, share, ways,
			     &own, why);
	if (r < 0 || routed < own)
		return r == -EHOSTUNREACH;
	why_say(why, 0, "by those of routing workers can send %.4g Mbit/s, and %.4g by these",
		routed / 125000, own / 125000);
	return true;
}

/* ret[roots]. -EALREADY: there are none. Other errors as of placer_ways(). */
static int find(const struct lead_view *v, const struct group *g, const struct lead_lists *lists,
		const unsigned int *which, struct wanted_ways *ret, uint16_t *ret_share,
		struct why *why)
{
	uint16_t share[JOINING_ROOTS_MAX];
	int r;

	shares_of(g, share);
	r = placer_ways(v->picture, lists->job, lists->jobs, which, g->roots, share, LEAD_MARGIN,
			ret, ret_share, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < g->roots; i++)
		ret[i].found = true;
	return would_hold(v, g, ret, why) ? 0 : -EHOSTUNREACH;
}

static void list_group(const struct lead *l, const struct lead_view *v, const struct group *g,
		       struct lead_lists *ret, unsigned int *ret_which)
{
	if (g->job[0]->job.roots)
		lead_list_roots(l, v, g->job[0], ret, ret_which);
	else
		*ret_which = lead_list(l, v, g->job[0], false, ret);
}

static void weigh(struct lead *l, const struct lead_view *v, const struct group *g,
		  struct lead_decision *ret)
{
	_cleanup_(freep) struct lead_lists *lists = calloc(1, sizeof(*lists));
	_cleanup_(freep) struct wanted_ways *ways = calloc(g->roots, sizeof(*ways));
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };

	if (!lists || !ways)
		return;
	list_group(l, v, g, lists, which);
	if (all_have_ways(g) && routing_is_as_good(v, lists, which, g, &ret->why)) {
		led_fill(v, g->job[0], ret);
	} else if (find(v, g, lists, which, ways, ret->share, &ret->why) == 0) {
		ret->leds = g->roots;
		memcpy(ret->led, g->job, sizeof(g->job));
		ret->ways = TAKE_PTR(ways);
		why_say(&ret->why, 0, "%s", ret->ways->why);
	}
}

static bool is_due(struct lead *l, const struct lead_view *v, const struct shared_job *j)
{
	const bool is_settled = steers(standing_root(j, v->picture)) &&
				!standing_is_due(j, v->picture) && lead_is_settled(l, v, j);
	const struct lead_rest *r = is_settled ? lead_rest_find(l, j, v->now_ns) : NULL;

	return r && (!j->ways || j->ways->found) && v->now_ns >= r->ways.until_ns;
}

/* NULL: they are not to be weighed now. */
static struct lead_rest *rest_of_due(struct lead *l, const struct lead_view *v,
				     const struct group *g)
{
	bool all_are = true;
	struct lead_rest *r;

	for (unsigned int i = 0; i < g->roots; i++) /* all are asked: each has its clock */
		all_are &= is_due(l, v, g->job[i]);
	r = all_are ? lead_rest_find(l, g->job[0], v->now_ns) : NULL;
	if (!r ||
	    (r->ways.weighed_ns && v->now_ns - r->ways.weighed_ns < WAYS_WEIGH_MS * 1000000ull))
		return NULL;
	return r;
}

/* Of those that are due, the one that was weighed longest ago. */
static void weigh_one(struct lead *l, const struct lead_view *v, struct lead_decision *ret)
{
	uint64_t first_ns = UINT64_MAX;
	struct group g, first = { 0 };
	struct lead_rest *r;

	if (v->now_ns - l->ways_looked_ns < WAYS_LOOK_MS * 1000000ull)
		return;
	l->ways_looked_ns = v->now_ns;
	for (unsigned int i = 0; i < v->shared->jobs; i++) {
		const struct shared_job *j = v->shared->job[i];

		if (j->job.which > 1 || !group_find(v, j, &g))
			continue;
		r = rest_of_due(l, v, &g);
		if (r && r->ways.weighed_ns < first_ns) {
			first = g;
			first_ns = r->ways.weighed_ns;
		}
	}
	r = first.roots ? lead_rest_find(l, first.job[0], v->now_ns) : NULL;
	if (!r)
		return;
	r->ways.weighed_ns = v->now_ns;
	weigh(l, v, &first, ret);
}

void lead_ways(struct lead *l, const struct lead_view *v, struct lead_decision *ret)
{
	for (unsigned int i = 0; i < v->shared->jobs; i++) {
		const struct shared_job *j = v->shared->job[i];
		struct lead_rest *r = steers(standing_root(j, v->picture))
					      ? lead_rest_find(l, j, v->now_ns)
					      : NULL;

		if (r)
			follow(l, r, j, v->now_ns);
	}
	give_up(l, v, ret);
	if (!ret->leds)
		weigh_one(l, v, ret);
}

/* --- in words -------------------------------------------------------------------------------- */

void lead_ways_outlook(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		       struct lead_lists *lists, struct why *ret)
{
	_cleanup_(freep) struct wanted_ways *ways = calloc(JOINING_ROOTS_MAX, sizeof(*ways));
	unsigned int which[JOINING_ROOTS_MAX] = { 0 };
	uint16_t share[JOINING_ROOTS_MAX];
	struct why why = { "" };
	struct group g;
	int r;

	if (!v->finds_ways || !ways || !steers(standing_root(j, v->picture)) ||
	    !group_find(v, j, &g))
		return;
	if (j->ways && !j->ways->found) {
		why_say(ret, 0, "its ways were found by somebody else, and stay");
		return;
	}
	if (v->leader) {
		why_say(ret, 0, "what ways it would get %s can tell, which leads", v->leader);
		return;
	}
	for (unsigned int i = 0; i < l->rests; i++)
		if (l->rest[i].birth == j->job.birth && v->now_ns < l->rest[i].ways.until_ns) {
			why_say(ret, 0, "%s for another %llu s",
				shared_ways(j) ? "its ways stay as they are"
					       : "it gets no ways of its own",
				(unsigned long long)((l->rest[i].ways.until_ns - v->now_ns) /
						     1000000000) +
					1);
			return;
		}
	list_group(l, v, &g, lists, which);
	r = find(v, &g, lists, which, ways, share, &why);
	if (r == 0)
		why_say(ret, 0, "%.200s", ways->why);
	else if (r == -EALREADY)
		why_say(ret, 0, "with ways of its own: nothing better");
	else
		why_say(ret, 0, "no ways of its own: %.200s", *why.text ? why.text : strerror(-r));
}
