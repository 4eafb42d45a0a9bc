// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* When a run may move: what has just moved rests, and so do loads. */
#include <stdlib.h>
#include <string.h>

#include "lead_private.h"

enum {
	FIRST_REST_MS = 3000, /* so long a job stays where it was first placed: others that were
			       * placed after it may have made another node better */
	SUMS_MS = 3000, /* so long its root tells of sums, before these are weighed beside loads */
	RESTS_MAX = 4 * SHARED_JOBS_MAX, /* what is forgotten rests once more */
	REST_MS = 30000, /* so long it stays elsewhere: loads settle meanwhile */
	REST_DOUBLES = 4, /* and each time twice as long, so often, where it goes on moving */
	LOADS_MS = 10000, /* until loads are those after a move: reports, and what is forecast */
	NEW_MS = 10000, /* behind its first rest: what makes another node better are the jobs that
			 * came with it, which are known, whatever loads are */
};

static void rest_set(struct lead_rest *r, const struct shared_job *j, uint64_t now_ns,
		     unsigned int ms)
{
	r->birth = j->job.birth;
	r->until_ns = now_ns + ms * 1000000ull;
	r->share = j->place.share;
	memcpy(r->root, j->place.root, sizeof(r->root));
}

/* It has moved, or its share has changed: jobs whose wishes cross would chase one another for ever.
 */
static void rest_again(struct lead *l, struct lead_rest *r, const struct shared_job *j,
		       uint64_t now_ns)
{
	l->moved_ns = now_ns;
	if (now_ns > r->until_ns + LEAD_CALM_MS * 1000000ull)
		r->moves = 0;
	rest_set(r, j, now_ns, REST_MS << r->moves);
	r->moves += r->moves < REST_DOUBLES;
}

struct lead_rest *lead_rest_find(struct lead *l, const struct shared_job *j, uint64_t now_ns)
{
	struct lead_rest *more;

	for (unsigned int i = 0; i < l->rests; i++) {
		struct lead_rest *r = &l->rest[i];

		if (r->birth != j->job.birth)
			continue;
		if (strcmp(r->root, j->place.root) != 0 || r->share != j->place.share)
			rest_again(l, r, j, now_ns);
		return r;
	}
	l->rests = l->rests < RESTS_MAX ? l->rests : 0;
	more = reallocarray(l->rest, l->rests + 1, sizeof(*more));
	if (!more)
		return NULL;
	l->rest = more;
	more[l->rests] = (struct lead_rest){ 0 };
	rest_set(&more[l->rests], j, now_ns, FIRST_REST_MS);
	return &more[l->rests++];
}

/* An agent that was restarted knows no rates at first, and its workers have lost their connections.
 */
static bool sums_for_a_while(struct lead_rest *r, const struct report_job *there, uint64_t now_ns)
{
	if (!there || !there->runs || !there->chunks_per_second) {
		r->sums_since_ns = 0;
		return false;
	}
	if (!r->sums_since_ns)
		r->sums_since_ns = now_ns;
	return now_ns - r->sums_since_ns >= SUMS_MS * 1000000ull &&
	       there->connected == there->workers;
}

bool lead_is_settled(struct lead *l, const struct lead_view *v, const struct shared_job *j)
{
	struct lead_rest *r = shared_is_placed(j) ? lead_rest_find(l, j, v->now_ns) : NULL;

	return r && sums_for_a_while(r, standing_there(j, v->picture), v->now_ns) &&
	       v->now_ns >= r->until_ns;
}

/* Not for ever: its workers may not come. */
static bool is_on_its_way(const struct lead_rest *r, const struct lead_view *v,
			  const struct shared_job *j)
{
	return r->moves && v->now_ns < r->until_ns && standing_elsewhere(j, v->picture);
}

bool lead_is_new(struct lead *l, const struct lead_view *v, const struct shared_job *j)
{
	const struct lead_rest *r = shared_is_placed(j) ? lead_rest_find(l, j, v->now_ns) : NULL;

	return r && !r->moves && v->now_ns < r->until_ns + NEW_MS * 1000000ull;
}

bool lead_loads_are_settled(struct lead *l, const struct lead_view *v)
{
	for (unsigned int i = 0; i < v->shared->jobs; i++) {
		const struct shared_job *j = v->shared->job[i];
		const struct lead_rest *r = shared_is_placed(j) ? lead_rest_find(l, j, v->now_ns)
								: NULL;

		if (r && is_on_its_way(r, v, j))
			l->moved_ns = v->now_ns;
	}
	return !l->moved_ns || v->now_ns - l->moved_ns >= LOADS_MS * 1000000ull;
}

bool lead_must_move(const struct lead_view *v, const struct shared_job *j)
{
	const struct report *root = standing_root(j, v->picture);
	const struct report_job *there = standing_there(j, v->picture);

	return root && root->cordoned && there && there->runs;
}

bool lead_may_move(struct lead *l, const struct lead_view *v, const struct shared_job *j)
{
	return lead_must_move(v, j) || (lead_is_settled(l, v, j) && !j->place.stays);
}

double lead_margin(const struct lead_view *v, const struct shared_job *j)
{
	const struct report *root = standing_root(j, v->picture);

	return root && root->cordoned ? LEAD_MARGIN_CORDONED : LEAD_MARGIN;
}
