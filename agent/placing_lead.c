// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the leader decides: where the roots of jobs are. */
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/clock.h"
#include "common/owned.h"
#include "placing_private.h"

/* --- when runs move -------------------------------------------------------------------------- */

enum {
	LOOK_MS = 5000, /* so often it is looked for better places */
	LOOK_SOON_MS = 1000, /* the same, where a place was given a moment ago */
	SOON_MS = 10000, /* which is so long */
	FIRST_REST_MS = 3000, /* so long a job stays where it was first placed: others that were
			       * placed after it may have made another node better */
	SUMS_MS = 3000, /* so long its root tells of sums, before these are weighed beside loads */
	RESTS_MAX = 4 * SHARED_JOBS_MAX, /* what is forgotten rests once more */
	REST_MS = 30000, /* so long it stays elsewhere: loads settle meanwhile */
	REST_DOUBLES = 4, /* and each time twice as long, so often, where it goes on moving, */
	CALM_MS = 300000, /* until it has stayed for so long */
};

/* In parts of what all costs: what changes by less moves nobody; but off a cordoned node, whatever
 * it costs. */
#define MARGIN 0.1
#define MARGIN_CORDONED (-1e9)

static void rest_set(struct rest *r, const struct shared_job *j, unsigned int ms)
{
	r->birth = j->job.birth;
	r->until_ns = clock_now_ns() + ms * 1000000ull;
	r->share = j->place.share;
	memcpy(r->root, j->place.root, sizeof(r->root));
}

/* It has moved, or its share has changed: jobs whose wishes cross would chase one another for ever.
 */
static void rest_again(struct rest *r, const struct shared_job *j)
{
	if (clock_now_ns() > r->until_ns + CALM_MS * 1000000ull)
		r->moves = 0;
	rest_set(r, j, REST_MS << r->moves);
	r->moves += r->moves < REST_DOUBLES;
}

/* As far as this leader has seen. NULL: no memory. */
static struct rest *rest_find(struct placing *p, const struct shared_job *j)
{
	struct rest *more;

	for (unsigned int i = 0; i < p->rests; i++) {
		struct rest *r = &p->rest[i];

		if (r->birth != j->job.birth)
			continue;
		if (strcmp(r->root, j->place.root) != 0 || r->share != j->place.share)
			rest_again(r, j);
		return r;
	}
	p->rests = p->rests < RESTS_MAX ? p->rests : 0;
	more = reallocarray(p->rest, p->rests + 1, sizeof(*more));
	if (!more)
		return NULL;
	p->rest = more;
	more[p->rests] = (struct rest){ 0 };
	rest_set(&more[p->rests], j, FIRST_REST_MS);
	return &more[p->rests++];
}

/* By so much less all must cost with the job elsewhere. */
static double margin_of(const struct placing *p, const struct shared_job *j)
{
	const struct report *root = standing_root(j, sharing_picture(p->sharing));

	return root && root->cordoned ? MARGIN_CORDONED : MARGIN;
}

/* An agent that was restarted knows no rates at first, and its workers have lost their connections.
 */
static bool sums_for_a_while(struct rest *r, const struct report_job *there)
{
	const uint64_t now_ns = clock_now_ns();

	if (!there || !there->runs || !there->chunks_per_second) {
		r->sums_since_ns = 0;
		return false;
	}
	if (!r->sums_since_ns)
		r->sums_since_ns = now_ns;
	return now_ns - r->sums_since_ns >= SUMS_MS * 1000000ull &&
	       there->connected == there->workers;
}

/* Has it a run that sums and can be told to move, and has it been there for a while? */
static bool is_settled(struct placing *p, const struct shared_job *j)
{
	struct rest *r = shared_is_placed(j) ? rest_find(p, j) : NULL;

	return r && sums_for_a_while(r, standing_there(j, sharing_picture(p->sharing))) &&
	       clock_now_ns() >= r->until_ns;
}

/* Its run is on where no more runs are to be. */
static bool must_move(const struct placing *p, const struct shared_job *j)
{
	const struct report *root = standing_root(j, sharing_picture(p->sharing));
	const struct report_job *there = standing_there(j, sharing_picture(p->sharing));

	return root && root->cordoned && there && there->runs;
}

static bool may_move(struct placing *p, const struct shared_job *j)
{
	return must_move(p, j) || (is_settled(p, j) && !j->place.stays);
}

/* --- the decision ---------------------------------------------------------------------------- */

enum {
	UNHEARD_MS = 2000, /* so long we wait until we hear of what we have decided */
};

static void on_decided(void *context, int error, uint64_t revision, const char *why)
{
	struct placing *p = context;

	p->decides = false;
	p->decided_revision = error < 0 ? 0 : revision;
	if (error < 0 && error != -ESTALE)
		log_say(LOG_LEVEL_WARNING, "decision not stored", "reason=\"%s\"", why);
	placing_wake(p);
}

/* Only as long as we lead, the jobs are those jobs, and their places are the ones that we know. */
static void places_write(struct placing *p, const struct shared_job *const *j,
			 const struct wanted_place *place, unsigned int count,
			 const struct store_seen *leads)
{
	char job[JOINING_ROOTS_MAX][STORE_KEY_BYTES], at[JOINING_ROOTS_MAX][STORE_KEY_BYTES];
	struct store_seen seen[1 + 2 * JOINING_ROOTS_MAX] = { *leads };
	struct store_change change[JOINING_ROOTS_MAX] = { 0 };
	char *text[JOINING_ROOTS_MAX] = { 0 };
	bool has_memory = true;

	for (unsigned int i = 0; i < count; i++) {
		text[i] = wanted_print(&wanted_place_keys, &place[i]);
		has_memory &= text[i] != NULL;
		snprintf(job[i], sizeof(job[i]), WANTED_JOBS "%s", j[i]->name);
		snprintf(at[i], sizeof(at[i]), WANTED_PLACES "%s", j[i]->name);
		seen[1 + 2 * i] = (struct store_seen){ job[i], j[i]->revision };
		seen[2 + 2 * i] = (struct store_seen){ at[i], j[i]->place_revision };
		change[i] = (struct store_change){ at[i], text[i], false };
	}
	if (has_memory)
		p->decides = store_write(
				     p->store,
				     &(struct store_write){ seen, 1 + 2 * count, change, count },
				     on_decided, p) == 0;
	for (unsigned int i = 0; i < count; i++)
		free(text[i]);
}

static void decide(struct placing *p, const struct shared_job *const *j,
		   const struct wanted_place *place, unsigned int count,
		   const struct store_seen *leads)
{
	places_write(p, j, place, count, leads);
	p->decided_ns = clock_now_ns();
	memcpy(p->decided, j[0]->name, sizeof(p->decided));
	*p->unplaced = '\0';
	for (unsigned int i = 0; i < count; i++) {
		const bool is_new = !shared_is_placed(j[i]);
		const bool moves = !is_new && strcmp(j[i]->place.root, place[i].root) != 0;

		p->counts.placed += is_new;
		p->counts.moved += moves;
		log_say(LOG_LEVEL_INFO, is_new || moves ? "job placed" : "shares changed",
			"job=%s node=%s share=%u why=\"%s\"", j[i]->name, place[i].root,
			place[i].share, place[i].why);
	}
}

/* Once for each reason. */
static void unplaced_say(struct placing *p, const struct shared_job *j, const char *why)
{
	char text[sizeof(p->unplaced)];

	snprintf(text, sizeof(text), "%s %.250s", j->name, why);
	if (!strcmp(text, p->unplaced))
		return;
	snprintf(p->unplaced, sizeof(p->unplaced), "%s", text);
	log_say(LOG_LEVEL_WARNING, "job not placed", "job=%s reason=\"%s\"", j->name, why);
}

/* All roots of a job at once, by its first; one of them moves at most, first of all one that must.
 */
static void look_for_better_roots(struct placing *p, const struct shared_job *first,
				  struct lists *l, struct wanted_place *place,
				  const struct store_seen *leads)
{
	const struct shared_job *j[JOINING_ROOTS_MAX];
	bool musts[JOINING_ROOTS_MAX] = { false }, mays[JOINING_ROOTS_MAX] = { false };
	bool must = false, settled = true;
	struct why ignored;

	for (unsigned int i = 0; i < first->job.roots; i++) {
		const struct shared_job *root = shared_root(&p->shared, first, i + 1);

		musts[i] = root && must_move(p, root);
		mays[i] = root && may_move(p, root);
		must |= musts[i];
		settled &= root && is_settled(p, root); /* all are asked: each has its clock */
	}
	if (first->job.which != 1 || (!must && !settled))
		return;
	if (placing_better_roots(p, first, must ? MARGIN_CORDONED : MARGIN, must ? musts : mays, l,
				 j, place, &ignored) == 0)
		decide(p, j, place, first->job.roots, leads);
}

/* One job at a time: what it does to loads is seen before the next one is looked at. */
static void look_for_better(struct placing *p, struct lists *l, struct wanted_place *place,
			    const struct store_seen *leads)
{
	const uint64_t now_ns = clock_now_ns();
	const bool is_soon = p->decided_ns && now_ns - p->decided_ns < SOON_MS * 1000000ull;
	struct why ignored;

	if (now_ns - p->looked_ns < (is_soon ? LOOK_SOON_MS : LOOK_MS) * 1000000ull)
		return;
	p->looked_ns = now_ns;
	for (unsigned int i = 0; i < p->shared.jobs && !p->decides; i++) {
		const struct shared_job *j = p->shared.job[i];
		unsigned int which;

		if (j->job.roots)
			look_for_better_roots(p, j, l, place, leads);
		if (j->job.roots || !may_move(p, j))
			continue;
		which = placing_list(p, j, false, l);
		if (placer_better(sharing_picture(p->sharing), l->job, l->jobs, which,
				  margin_of(p, j), place, &ignored) == 0)
			decide(p, &j, place, 1, leads);
	}
}

/* A job of several roots gets all of them at once: each has its share then. */
static int place_find(const struct placing *p, const struct shared_job *j, struct lists *l,
		      const struct shared_job **ret_job, struct wanted_place *ret,
		      unsigned int *ret_count, struct why *why)
{
	*ret_count = 1;
	ret_job[0] = j;
	if (j->job.which != 1 || shared_is_placed(j))
		return placing_place_one(p, j, l, ret, why);
	*ret_count = j->job.roots;
	return placing_place_roots(p, j, l, ret_job, ret, why);
}

/* One that finds no place holds up nobody else. */
static void place_due(struct placing *p, struct lists *l, struct wanted_place *place,
		      const struct store_seen *leads)
{
	for (unsigned int i = 0; i < p->shared.jobs && !p->decides; i++) {
		const struct shared_job *j = p->shared.job[i];
		const struct shared_job *which[JOINING_ROOTS_MAX];
		struct why why = { "" };
		unsigned int count;
		int r;

		if (!standing_is_due(j, sharing_picture(p->sharing)))
			continue;
		r = place_find(p, j, l, which, place, &count, &why);
		if (r == 0)
			decide(p, which, place, count, leads);
		else
			unplaced_say(p, j, *why.text ? why.text : strerror(-r));
	}
}

/* The store has taken our last decision, and has not told us yet. */
static bool is_unheard(struct placing *p)
{
	const struct shared_job *j = shared_find(&p->shared, p->decided);

	if (!j || j->place_revision >= p->decided_revision ||
	    clock_now_ns() - p->decided_ns > UNHEARD_MS * 1000000ull)
		p->decided_revision = 0;
	return p->decided_revision;
}

void placing_lead(struct placing *p)
{
	_cleanup_(freep) struct lists *l = NULL;
	_cleanup_(freep) struct wanted_place *place = NULL;
	struct store_seen leads;

	if (p->decides || is_unheard(p) || !p->shared.jobs || !leader_seen(p->leader, &leads))
		return;
	l = calloc(1, sizeof(*l));
	place = calloc(JOINING_ROOTS_MAX, sizeof(*place));
	if (!l || !place)
		return;
	place_due(p, l, place, &leads);
	if (!p->decides)
		look_for_better(p, l, place, &leads);
}

/* --- what would be decided ------------------------------------------------------------------- */

static void outlook_of_roots_say(const struct placing *p, const struct shared_job *j,
				 struct lists *l, struct wanted_place *place, struct why *ret)
{
	const struct shared_job *first = shared_root(&p->shared, j, 1), *root[JOINING_ROOTS_MAX];
	bool mays[JOINING_ROOTS_MAX] = { false };
	const struct wanted_place *its = &place[j->job.which - 1];
	struct why why = { "" };
	int r = -EAGAIN;

	for (unsigned int i = 0; i < j->job.roots; i++) {
		const struct shared_job *one = shared_root(&p->shared, j, i + 1);

		mays[i] = one && !one->place.stays;
	}
	if (first)
		r = placing_better_roots(p, first, MARGIN, mays, l, root, place, &why);
	if (r == -EALREADY)
		why_say(ret, 0,
			"with no other roots and shares workers could send more by a tenth");
	else if (r < 0)
		why_say(ret, 0, "nothing was weighed: %.300s", *why.text ? why.text : strerror(-r));
	else
		why_say(ret, 0, "its root would be %s, with a share of %.1f %%: %.300s", its->root,
			its->share * 100.0 / JOINING_SHARE_MAX, its->why);
}

static void outlook_say(const struct placing *p, const struct shared_job *j, bool due,
			struct lists *l, struct wanted_place *place, struct why *ret)
{
	const struct picture *picture = sharing_picture(p->sharing);
	const struct shared_job *which[JOINING_ROOTS_MAX];
	struct why why = { "" };
	unsigned int count;
	int r;

	if (due) {
		r = place_find(p, j, l, which, place, &count, &why);
	} else if (j->job.roots) {
		outlook_of_roots_say(p, j, l, place, ret);
		return;
	} else {
		const unsigned int number = placing_list(p, j, false, l);

		r = placer_better(picture, l->job, l->jobs, number, margin_of(p, j), place, &why);
	}
	if (r == -EALREADY)
		why_say(ret, 0, "no other node would cost less by a tenth");
	else if (r < 0)
		why_say(ret, 0, "%s: %.300s",
			due ? "no node can be its root" : "nothing was weighed",
			*why.text ? why.text : strerror(-r));
	else
		why_say(ret, 0, "%s %s: %.300s%s", due ? "its root is to be" : "it would move to",
			place->root, place->why,
			!due && j->place.stays ? "; but it is to stay where it is" : "");
}

int placing_outlook(const struct placing *p, const struct shared_job *j, struct why *ret)
{
	_cleanup_(freep) struct lists *l = calloc(1, sizeof(*l));
	_cleanup_(freep) struct wanted_place *place = calloc(JOINING_ROOTS_MAX, sizeof(*place));
	const enum standing state = standing_of(j, sharing_picture(p->sharing));
	const struct report *elsewhere = standing_elsewhere(j, sharing_picture(p->sharing));
	const bool due = standing_is_due(j, sharing_picture(p->sharing));

	if (!l || !place)
		return -ENOMEM;
	if (elsewhere)
		why_say(ret, 0,
			"its run goes on at %s, where its workers are until it is over; they could "
			"not be told to move. The next run begins at %s",
			elsewhere->node, j->place.root);
	else if (due || state == STANDING_RUNNING)
		outlook_say(p, j, due, l, place, ret);
	else if (state == STANDING_PLACED)
		why_say(ret, 0, "no run is on; workers that come are sent to its root");
	else if (state == STANDING_SILENT)
		why_say(ret, 0,
			"its root does not report it: it gets another one when all its workers "
			"have come again");
	else
		why_say(ret, 0, "%u of %u workers have come", j->workers, j->job.workers);
	return 0;
}
