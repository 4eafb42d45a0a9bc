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

static void give_up(struct lead *l, const struct lead_view *v, struct lead_decision *ret)
{
	_cleanup_(steer_close) struct steer steer = { 0 };

	if (some_are_found(v->shared) && steer_make(v->shared, v->picture, "", &steer) < 0)
		return;
	for (unsigned int i = 0; i < v->shared->jobs && !ret->led; i++) {
		const struct shared_job *j = v->shared->job[i];

		if (j->ways && are_over(l, v, j, &steer, &ret->why))
			ret->led = j;
	}
}

/* --- better ones ----------------------------------------------------------------------------- */

static bool steers(const struct report *root) { return root && root->steers; }

/* Would agents follow them? Else they would be given up at once. */
static bool would_hold(const struct lead_view *v, const struct shared_job *j,
		       struct wanted_ways *ways, struct why *why)
{
	_cleanup_(freep) struct shared *with = calloc(1, sizeof(*with));
	_cleanup_(freep) struct shared_job *led = calloc(1, sizeof(*led));
	_cleanup_(freep) struct shared_job **job = calloc(v->shared->jobs + 1,
							  sizeof(struct shared_job *));
	_cleanup_(steer_close) struct steer steer = { 0 };
	const struct steer_job *found;

	if (!with || !led || !job)
		return false;
	memcpy(led->name, j->name, sizeof(led->name));
	led->revision = j->revision;
	led->job.birth = j->job.birth; /* its token stays where it is */
	led->place_revision = j->place_revision;
	led->place = j->place;
	led->ways = ways;
	with->job = job;
	with->jobs = v->shared->jobs;
	for (unsigned int i = 0; i < with->jobs; i++)
		job[i] = v->shared->job[i] == j ? led : v->shared->job[i];
	if (steer_make(with, v->picture, "", &steer) < 0)
		return false;
	found = steer_job_find(&steer, j->name);
	if (found)
		*why = found->why;
	return found && !*found->why.text;
}

/* Ways stay unless routing's bear as much, or they are not those of its workers any more. */
static bool routing_is_as_good(const struct lead_view *v, const struct lead_lists *lists,
			       unsigned int which, const struct wanted_ways *ways, struct why *why)
{
	double routed, own;
	int r;

	if (placer_ways_rate(v->picture, lists->job, lists->jobs, which, NULL, &routed, why) < 0)
		return false;
	r = placer_ways_rate(v->picture, lists->job, lists->jobs, which, ways, &own, why);
	if (r < 0 || routed < own)
		return r == -EHOSTUNREACH;
	why_say(why, 0, "by those of routing workers can send %.4g Mbit/s, and %.4g by these",
		routed / 125000, own / 125000);
	return true;
}

/* -EALREADY: there are none. Other errors as of placer_ways(). */
static int find(const struct lead_view *v, const struct shared_job *j,
		const struct lead_lists *lists, unsigned int which, struct wanted_ways *ret,
		struct why *why)
{
	int r = placer_ways(v->picture, lists->job, lists->jobs, which, LEAD_MARGIN, ret, why);

	if (r < 0)
		return r;
	ret->found = true;
	return would_hold(v, j, ret, why) ? 0 : -EHOSTUNREACH;
}

static void weigh(struct lead *l, const struct lead_view *v, const struct shared_job *j,
		  struct lead_decision *ret)
{
	_cleanup_(freep) struct lead_lists *lists = calloc(1, sizeof(*lists));
	_cleanup_(freep) struct wanted_ways *ways = calloc(1, sizeof(*ways));
	unsigned int which;

	if (!lists || !ways)
		return;
	which = lead_list(l, v, j, false, lists);
	if (shared_ways(j) && routing_is_as_good(v, lists, which, j->ways, &ret->why)) {
		ret->led = j;
	} else if (find(v, j, lists, which, ways, &ret->why) == 0) {
		ret->led = j;
		ret->ways = TAKE_PTR(ways);
		why_say(&ret->why, 0, "%s", ret->ways->why);
	}
}

/* NULL: it is not to be weighed now. */
static struct lead_rest *rest_of_due(struct lead *l, const struct lead_view *v,
				     const struct shared_job *j)
{
	struct lead_rest *r;

	if (!steers(standing_root(j, v->picture)) || standing_is_due(j, v->picture) ||
	    !lead_is_settled(l, v, j) || (j->ways && !j->ways->found))
		return NULL;
	r = lead_rest_find(l, j, v->now_ns);
	if (!r || v->now_ns < r->ways.until_ns ||
	    (r->ways.weighed_ns && v->now_ns - r->ways.weighed_ns < WAYS_WEIGH_MS * 1000000ull))
		return NULL;
	return r;
}

/* Of those that are due, the one that was weighed longest ago. */
static void weigh_one(struct lead *l, const struct lead_view *v, struct lead_decision *ret)
{
	const struct shared_job *first = NULL;
	uint64_t first_ns = UINT64_MAX;
	struct lead_rest *r;

	if (v->now_ns - l->ways_looked_ns < WAYS_LOOK_MS * 1000000ull)
		return;
	l->ways_looked_ns = v->now_ns;
	for (unsigned int i = 0; i < v->shared->jobs; i++) {
		r = rest_of_due(l, v, v->shared->job[i]);
		if (r && r->ways.weighed_ns < first_ns) {
			first = v->shared->job[i];
			first_ns = r->ways.weighed_ns;
		}
	}
	r = first ? lead_rest_find(l, first, v->now_ns) : NULL;
	if (!r)
		return;
	r->ways.weighed_ns = v->now_ns;
	weigh(l, v, first, ret);
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
	if (!ret->led)
		weigh_one(l, v, ret);
}

/* --- in words -------------------------------------------------------------------------------- */

void lead_ways_outlook(const struct lead *l, const struct lead_view *v, const struct shared_job *j,
		       struct lead_lists *lists, struct why *ret)
{
	_cleanup_(freep) struct wanted_ways *ways = calloc(1, sizeof(*ways));
	struct why why = { "" };
	int r;

	if (!v->finds_ways || !ways || !steers(standing_root(j, v->picture)))
		return;
	if (j->ways && !j->ways->found) {
		why_say(ret, 0, "its ways were found by somebody else, and stay");
		return;
	}
	for (unsigned int i = 0; i < l->rests; i++)
		if (l->rest[i].birth == j->job.birth && v->now_ns < l->rest[i].ways.until_ns) {
			why_say(ret, 0, "its ways stay as they are for another %llu s",
				(unsigned long long)((l->rest[i].ways.until_ns - v->now_ns) /
						     1000000000) +
					1);
			return;
		}
	r = find(v, j, lists, lead_list(l, v, j, false, lists), ways, &why);
	if (r == 0)
		why_say(ret, 0, "%.200s", ways->why);
	else if (r == -EALREADY)
		why_say(ret, 0, "with ways of its own: nothing better");
	else
		why_say(ret, 0, "no ways of its own: %.200s", *why.text ? why.text : strerror(-r));
}
