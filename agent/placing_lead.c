// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the leader decides: where the roots of jobs are. */
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/clock.h"
#include "common/owned.h"
#include "placing_private.h"

/* The node that a job has as its root, if its agent tells anything. */
static const struct report *root_of(const struct placing *p, const struct shared_job *j)
{
	const struct picture *picture = sharing_picture(p->sharing);
	const int at = shared_is_placed(j) ? picture_place(picture, j->place.root) : -1;

	return at < 0 ? NULL : picture->report[at];
}

static const struct report_job *job_there(const struct report *root, const struct shared_job *j)
{
	for (unsigned int i = 0; root && i < root->jobs; i++)
		if (root->job[i].id == j->job.id && !root->job[i].inner)
			return &root->job[i];
	return NULL;
}

const struct report_job *placing_there(const struct placing *p, const struct shared_job *j)
{
	return job_there(root_of(p, j), j);
}

enum placing_state placing_state(const struct placing *p, const struct shared_job *j)
{
	const struct report_job *there = placing_there(p, j);

	if (!shared_is_placed(j))
		return j->workers < j->job.workers ? PLACING_FORMING : PLACING_DUE;
	if (!there)
		return PLACING_SILENT;
	return there->runs ? PLACING_RUNNING : PLACING_PLACED;
}

static bool is_refused(const struct shared_job *j, const char *node)
{
	for (unsigned int i = 0; i < j->refusals; i++)
		if (!strcmp(j->refused[i], node))
			return true;
	return false;
}

/*
 * Is a place to be found? A root that is silent may have its run on still, so it keeps the job
 * until all workers have come anew; so does one that takes no more runs.
 */
static bool is_due(const struct placing *p, const struct shared_job *j)
{
	const struct report *root = root_of(p, j);
	const struct report_job *there = job_there(root, j);

	if (j->revision && shared_is_placed(j) && is_refused(j, j->place.root) &&
	    j->place.workers == j->job.workers)
		return true; /* also if a run of it is on elsewhere: its workers are known */
	if (!j->revision || j->workers < j->job.workers)
		return false;
	if (!shared_is_placed(j) || !root || is_refused(j, j->place.root))
		return true;
	return root->cordoned && !(there && there->runs);
}

/* --- what is weighed ------------------------------------------------------------------------- */

enum {
	REFUSALS_MAX = 64, /* nodes that are told apart */
};

struct lists {
	struct placer_job job[PLACER_JOBS_MAX];
	struct wanted_worker worker[PLACER_JOBS_MAX][TALLY_WORKERS_MAX];
	const char *refused[PLACER_JOBS_MAX][REFUSALS_MAX];
	unsigned int jobs;
};

/* Where its workers were; one that the picture lacks is taken to be at the root. */
static void place_workers_fill(const struct shared_job *j, struct placer_job *to,
			       struct wanted_worker *worker)
{
	for (; to->workers < j->place.workers; to->workers++) {
		struct wanted_worker *w = &worker[to->workers];

		*w = (struct wanted_worker){ .address = j->place.worker[to->workers] };
		memcpy(w->node, j->place.root, sizeof(w->node));
	}
}

static void list_fill(const struct placing *p, const struct shared_job *j, bool due,
		      struct lists *l)
{
	struct wanted_worker *worker = l->worker[l->jobs];
	struct placer_job *to = &l->job[l->jobs++];
	const struct report_job *there = job_there(root_of(p, j), j);

	*to = (struct placer_job){ .job = &j->job, .worker = worker };
	if (!due) {
		to->root = j->place.root;
		to->chunks_per_second = there ? there->chunks_per_second : 0;
	}
	if (due && j->workers >= j->job.workers)
		for (; to->workers < j->job.workers; to->workers++)
			worker[to->workers] = j->worker[to->workers].is;
	else
		place_workers_fill(j, to, worker);
	to->refused = (const char *const *)l->refused[l->jobs - 1];
	for (; to->refusals < j->refusals && to->refusals < REFUSALS_MAX; to->refusals++)
		l->refused[l->jobs - 1][to->refusals] = j->refused[to->refusals];
}

/* --- when runs move -------------------------------------------------------------------------- */

enum {
	LOOK_MS = 5000, /* so often it is looked for better places */
	LOOK_SOON_MS = 1000, /* the same, where a place was given a moment ago */
	SOON_MS = 10000, /* which is so long */
	FIRST_REST_MS = 3000, /* so long a job stays where it was first placed: others that were
			       * placed after it may have made another node better */
	RESTS_MAX = 4 * SHARED_JOBS_MAX, /* what is forgotten rests once more */
	REST_MS = 30000, /* so long it stays elsewhere: loads settle meanwhile */
};

/* In parts of what all costs: what changes by less moves nobody; but off a cordoned node, whatever
 * it costs. */
#define MARGIN 0.1
#define MARGIN_CORDONED (-1e9)

/* Until when it stays at the place that it has, as far as this leader has seen. */
static uint64_t rests_until_ns(struct placing *p, const struct shared_job *j)
{
	const uint64_t now_ns = clock_now_ns();
	struct rest *more;

	for (unsigned int i = 0; i < p->rests; i++) {
		struct rest *r = &p->rest[i];

		if (r->birth != j->job.birth)
			continue;
		if (r->revision != j->place_revision)
			*r = (struct rest){ j->job.birth, j->place_revision,
					    now_ns + REST_MS * 1000000ull };
		return r->until_ns;
	}
	p->rests = p->rests < RESTS_MAX ? p->rests : 0;
	more = reallocarray(p->rest, p->rests + 1, sizeof(*more));
	if (!more)
		return UINT64_MAX;
	p->rest = more;
	more[p->rests] = (struct rest){ j->job.birth, j->place_revision,
					now_ns + FIRST_REST_MS * 1000000ull };
	return more[p->rests++].until_ns;
}

/* By so much less all must cost with the job elsewhere. */
static double margin_of(const struct placing *p, const struct shared_job *j)
{
	const struct report *root = root_of(p, j);

	return root && root->cordoned ? MARGIN_CORDONED : MARGIN;
}

/* Has it a run at its root, and has it been there for a while? */
static bool may_move(struct placing *p, const struct shared_job *j)
{
	const struct report *root = root_of(p, j);
	const struct report_job *there = job_there(root, j);
	const uint64_t until_ns = shared_is_placed(j) ? rests_until_ns(p, j) : 0;

	if (!shared_is_placed(j) || !there || !there->runs)
		return false;
	return root->cordoned ||
	       (!j->place.stays && there->chunks_per_second && clock_now_ns() >= until_ns);
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

/* Only as long as we lead, the job is that job, and its place is the one that we know. */
static void place_write(struct placing *p, const struct shared_job *j,
			const struct wanted_place *place, const struct store_seen *leads)
{
	_cleanup_(freep) char *text = wanted_print(&wanted_place_keys, place);
	char job[STORE_KEY_BYTES], at[STORE_KEY_BYTES];
	const struct store_seen seen[] = { *leads,
					   { job, j->revision },
					   { at, j->place_revision } };
	const struct store_change change = { at, text, false };

	if (!text)
		return;
	snprintf(job, sizeof(job), WANTED_JOBS "%s", j->name);
	snprintf(at, sizeof(at), WANTED_PLACES "%s", j->name);
	p->decides = store_write(p->store, &(struct store_write){ seen, 3, &change, 1 }, on_decided,
				 p) == 0;
	p->decided_ns = clock_now_ns();
	p->counts.placed += !shared_is_placed(j);
	p->counts.moved += shared_is_placed(j);
	memcpy(p->decided, j->name, sizeof(p->decided));
	*p->unplaced = '\0';
	log_say(LOG_LEVEL_INFO, "job placed", "job=%s node=%s why=\"%s\"", j->name, place->root,
		place->why);
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

/* All that have a place, and this one; its number among them. */
static unsigned int lists_fill(const struct placing *p, const struct shared_job *which, bool due,
			       struct lists *l)
{
	unsigned int number = 0;

	for (unsigned int i = 0; i < p->shared.jobs && l->jobs < PLACER_JOBS_MAX; i++) {
		const struct shared_job *j = p->shared.job[i];

		if (j == which)
			number = l->jobs;
		if (j == which || (shared_is_placed(j) && !is_due(p, j)))
			list_fill(p, j, j == which && due, l);
	}
	return number;
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

		if (!may_move(p, j))
			continue;
		l->jobs = 0;
		which = lists_fill(p, j, false, l);
		if (placer_better(sharing_picture(p->sharing), l->job, l->jobs, which,
				  margin_of(p, j), place, &ignored) == 0)
			place_write(p, j, place, leads);
	}
}

/* One that finds no place holds up nobody else. */
static void place_due(struct placing *p, struct lists *l, struct wanted_place *place,
		      const struct store_seen *leads)
{
	for (unsigned int i = 0; i < p->shared.jobs && !p->decides; i++) {
		const struct shared_job *j = p->shared.job[i];
		struct why why = { "" };
		unsigned int which;
		int r;

		if (!is_due(p, j))
			continue;
		l->jobs = 0;
		which = lists_fill(p, j, true, l);
		r = placer_place(sharing_picture(p->sharing), l->job, l->jobs, which, place, &why);
		if (r == 0)
			place_write(p, j, place, leads);
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
	place = calloc(1, sizeof(*place));
	if (!l || !place)
		return;
	place_due(p, l, place, &leads);
	if (!p->decides)
		look_for_better(p, l, place, &leads);
}

/* --- what would be decided ------------------------------------------------------------------- */

static void outlook_say(const struct placing *p, const struct shared_job *j, bool due,
			struct lists *l, struct wanted_place *place, struct why *ret)
{
	const unsigned int which = lists_fill(p, j, due, l);
	const struct picture *picture = sharing_picture(p->sharing);
	struct why why = { "" };
	int r = due ? placer_place(picture, l->job, l->jobs, which, place, &why)
		    : placer_better(picture, l->job, l->jobs, which, margin_of(p, j), place, &why);

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
	_cleanup_(freep) struct wanted_place *place = calloc(1, sizeof(*place));
	const enum placing_state state = placing_state(p, j);
	const bool due = is_due(p, j);

	if (!l || !place)
		return -ENOMEM;
	if (due || state == PLACING_RUNNING)
		outlook_say(p, j, due, l, place, ret);
	else if (state == PLACING_PLACED)
		why_say(ret, 0, "no run is on; workers that come are sent to its root");
	else if (state == PLACING_SILENT)
		why_say(ret, 0,
			"its root does not report it: it gets another one when all its workers "
			"have come again");
	else
		why_say(ret, 0, "%u of %u workers have come", j->workers, j->job.workers);
	return 0;
}
