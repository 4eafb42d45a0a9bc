// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "placing.h"

#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "agent/store/leader.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "placing_private.h"
#include "rendezvous.h"

#define LEADER "leader" /* key of the store */

enum {
	LOOK_MS = 1000, /* also where nothing was heard: what failed is tried again */
	SOON_MS = 20, /* what comes together is looked at once */
	SLACK_US = 5000,
	REFUSED_MS = 10000,
	AGAIN_MS = 5000, /* so often a node looks whether it would still refuse */
	UNFIT_MS = 10000, /* so long a run that did not fit here is placed elsewhere */
	LEFT_MS = 30000, /* a run that goes on elsewhere keeps its slots here so long, with nobody
			  * at it: workers may be about to move, and need it until they have */
	EVERYTHING = (1 << PLACING_PREFIXES) - 1,
};

static const char *const followed[PLACING_PREFIXES] = {
	[PLACING_JOBS] = WANTED_JOBS,	    [PLACING_PLACES] = WANTED_PLACES,
	[PLACING_WORKERS] = WANTED_WORKERS, [PLACING_REFUSALS] = WANTED_REFUSALS,
	[PLACING_TENANTS] = WANTED_TENANTS, [PLACING_WAYS] = WANTED_WAYS,
};

const struct core *placing_core(const struct placing *p) { return driver_core(p->driver); }

bool placing_is_current(const struct placing *p) { return p->current == EVERYTHING; }

/* --- this node's part ------------------------------------------------------------------------ */

bool placing_asked(const struct placing *p, const void *connection) { return p && connection == p; }

void placing_answer(struct placing *p, const struct core_action *a)
{
	p->answered = a->answer.kind == CORE_ANSWER_ERROR ? a->error : 0;
	snprintf(p->why.text, sizeof(p->why.text), "%s",
		 p->answered < 0 && a->answer.text ? a->answer.text : "");
}

int placing_ask_core(struct placing *p, const struct request *q)
{
	uint8_t random[CORE_RANDOM_BYTES];
	const struct core_event e = { .kind = CORE_REQUEST,
				      .connection = p,
				      .asked = { q, random } };

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	p->answered = -EIO;
	driver_handle(p->driver, &e);
	return p->answered;
}

static void refuse(struct placing *p, const struct shared_job *j, const char *why)
{
	char key[STORE_KEY_BYTES];
	const struct store_change change = { key, why, true };

	if (p->refused == j->job.birth && clock_now_ns() - p->refused_ns < REFUSED_MS * 1000000ull)
		return; /* it is on its way to the store, or cannot be written now */
	p->refused = j->job.birth;
	p->refused_ns = clock_now_ns();
	snprintf(key, sizeof(key), WANTED_REFUSALS "%s/%s", j->name, p->node);
	log_say(LOG_LEVEL_WARNING, "job refused", "job=%s reason=\"%s\"", j->name, why);
	placing_write(p, NULL, 0, &change, 1);
}

static int ask_for(struct placing *p, const struct shared_job *j)
{
	const struct config *c = core_config(placing_core(p));
	_cleanup_(freep) struct request *q = calloc(1, sizeof(*q));
	struct request_job *job;
	int r;

	if (!q)
		return -ENOMEM;
	job = &q->job;
	q->verb = REQUEST_JOB_CREATE;
	q->given = REQUEST_ID;
	memcpy(job->name, j->name, sizeof(job->name));
	memcpy(job->tenant, j->job.tenant, sizeof(job->tenant));
	memcpy(job->token, j->job.token, sizeof(job->token));
	job->workers = j->job.workers;
	job->window = j->job.window;
	job->payload_bytes = j->job.payload_bytes;
	/* Ranks send parts of one call to all roots, and these must take chunks of one size. */
	if (j->job.roots > 1 && !job->payload_bytes)
		job->payload_bytes = run_payload_default(c->service[0].ss_family, j->job.workers);
	job->tags = j->job.tags;
	job->sealed = j->job.sealed;
	job->id = j->job.id;
	job->birth = j->job.birth;
	job->clustered = true;
	job->tree.found = *c->peers.secret;
	r = placing_ask_core(p, q);
	explicit_bzero(q, sizeof(*q));
	return r;
}

static void create(struct placing *p, const struct shared_job *j)
{
	const int r = ask_for(p, j);

	if (r < 0)
		refuse(p, j, r != -ENOMEM && *p->why.text ? p->why.text : strerror(-r));
}

bool placing_is_ours(const struct placing *p, const struct shared_job *j)
{
	return shared_is_placed(j) && !strcmp(j->place.root, p->node);
}

/*
 * A node has one part in a job. One that was an inner node of its run passes packets on as they
 * come until it is the root of the next one. True: it was.
 */
static bool leave_tree(struct placing *p, const struct shared_job *s)
{
	const struct job *j = books_job_numbered(core_books(placing_core(p)), s->job.id);
	struct request q = { .verb = REQUEST_JOB_DEL };

	if (!j || !j->document)
		return false;
	snprintf(q.name, sizeof(q.name), "%s", j->name);
	placing_ask_core(p, &q);
	return true;
}

/* A run of its workers cannot go on here: for a while its root had better be another node. */
static bool is_unfit(const struct job *j)
{
	return *j->unfit.text && clock_now_ns() - j->unfit_ns < UNFIT_MS * 1000000ull;
}

static void begin_ours(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));

	for (unsigned int i = 0; i < p->shared.jobs; i++) {
		const struct shared_job *s = p->shared.job[i];
		const struct job *j;

		if (!placing_is_ours(p, s) || standing_is_refused(s, p->node))
			continue;
		if (leave_tree(p, s))
			continue; /* until the next look */
		j = books_job_find(b, s->name);
		if (!j)
			create(p, s);
		else if (!j->clustered || j->birth != s->job.birth)
			refuse(p, s, "this node has another job of that name");
		else if (tenant_is_nowhere(&b->tenant[j->tenant].is))
			refuse(p, s, "its tenant may not come in at this node any more");
		else if (is_unfit(j))
			refuse(p, s, j->unfit.text);
	}
}

static bool has_members(const struct job *j)
{
	for (unsigned int rank = 0; rank < j->workers; rank++)
		if (j->rank[rank].connection)
			return true;
	return false;
}

static bool was_left_long_ago(const struct placing *p, const struct shared_job *s)
{
	const struct report_job *there = standing_there(s, sharing_picture(p->sharing));

	for (unsigned int i = 0; there && there->runs && i < p->tolds; i++)
		if (p->told[i].birth == s->job.birth)
			return clock_now_ns() - p->told[i].at_ns > LEFT_MS * 1000000ull;
	return false;
}

/* A run that is on goes on, also where the next one shall be elsewhere, or where the store lost its
 * job; but not where its workers have taken this root for gone. */
static bool is_over(const struct placing *p, const struct job *j)
{
	const struct shared_job *s = shared_find(&p->shared, j->name);

	if (!j->clustered)
		return false;
	if (!s || s->job.birth != j->birth)
		return !placing_is_left(p, j) || !(j->run_window || has_members(j));
	if (placing_is_ours(p, s) || has_members(j))
		return false;
	return !j->run_window || was_left_long_ago(p, s);
}

/* The books change with each one. */
static void end_others(struct placing *p)
{
	const struct books *b = core_books(placing_core(p));
	struct request q = { .verb = REQUEST_JOB_DEL };

	for (unsigned int i = b->jobs; i-- > 0;) {
		if (i >= b->jobs || !is_over(p, b->job[i]))
			continue;
		snprintf(q.name, sizeof(q.name), "%s", b->job[i]->name);
		placing_ask_core(p, &q);
	}
}

/* --- looking --------------------------------------------------------------------------------- */

static bool is_nowhere(const struct placing *p, const char *tenant)
{
	const struct books *b = core_books(placing_core(p));
	struct why ignored;
	const int at = books_tenant_find(b, tenant, &ignored);

	return at >= 0 && tenant_is_nowhere(&b->tenant[at].is);
}

/* Would the job be had here now? Only the core knows: it is asked for the job, which goes again
 * where it is not to be here. */
static bool would_have(struct placing *p, const struct shared_job *s)
{
	const struct job *j = books_job_find(core_books(placing_core(p)), s->name);
	struct request q = { .verb = REQUEST_JOB_DEL };

	if (is_nowhere(p, s->job.tenant))
		return false;
	if (j)
		return j->clustered && j->birth == s->job.birth && !is_unfit(j);
	if (ask_for(p, s) < 0)
		return false;
	snprintf(q.name, sizeof(q.name), "%s", s->name);
	if (!placing_is_ours(p, s))
		placing_ask_core(p, &q);
	return true;
}

/* A job that is gone needs no refusal any more, nor one that this node would have by now. What
 * fails still is said no more than once. */
static void forget_refusals(struct placing *p)
{
	const bool looks = clock_now_ns() - p->again_ns >= AGAIN_MS * 1000000ull;

	if (looks)
		p->again_ns = clock_now_ns();
	for (unsigned int i = 0; i < p->shared.jobs; i++) {
		const struct shared_job *j = p->shared.job[i];
		char key[STORE_KEY_BYTES];
		const struct store_change change = { key, NULL, false };

		if (!standing_is_refused(j, p->node))
			continue;
		if (j->revision && (!looks || !would_have(p, j)))
			continue;
		if (p->refused == j->job.birth)
			p->refused = 0;
		if (j->revision)
			log_say(LOG_LEVEL_INFO, "job refused no more", "job=%s", j->name);
		snprintf(key, sizeof(key), WANTED_REFUSALS "%s/%s", j->name, p->node);
		placing_write(p, NULL, 0, &change, 1);
	}
}

static void wake_in(struct placing *p, unsigned int ms)
{
	sd_event_source_set_time_relative(p->timer, ms * 1000ull);
	sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
}

void placing_wake(struct placing *p)
{
	if (!p || p->wakes)
		return;
	p->wakes = true;
	wake_in(p, SOON_MS);
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	struct placing *p = data;

	/* What the core is asked for wakes us, too: that is looked at a little later. */
	p->wakes = true;
	placing_asked_look(p);
	leader_stand(p->leader, sharing_has_name(p->sharing));
	if (placing_is_current(p) && sharing_has_name(p->sharing)) {
		placing_left_look(p);
		placing_follow_tenants(p);
		begin_ours(p);
		placing_follow_tokens(p);
		placing_renew(p);
		placing_send_away(p);
		placing_shares_say(p);
		end_others(p);
		forget_refusals(p);
		placing_lead(p);
	}
	rendezvous_look(p->rendezvous);
	p->wakes = false;
	wake_in(p, LOOK_MS);
	return 0;
}

/* --- what the store tells -------------------------------------------------------------------- */

static void on_changed(void *context, const struct store_item *item)
{
	const struct prefix *prefix = context;
	struct placing *p = prefix->placing;
	struct events *happens = sharing_happens(p->sharing);
	struct why why = { "" };
	int r;

	placing_goes(p, item);
	r = shared_take(&p->shared, item->key, item->value, item->revision, &why);

	if (r < 0)
		log_say(LOG_LEVEL_WARNING, "what is wanted is not understood",
			"key=%s reason=\"%s\"", item->key, *why.text ? why.text : strerror(-r));
	happens->resets = p->resets & 1u << prefix->index;
	events_shared(happens, &p->shared, item->key, item->value,
		      (p->current | p->resets) == EVERYTHING, clock_unix_ms());
	/* At once: whoever joins with the new one next may come here. */
	if (!strncmp(item->key, WANTED_JOBS, strlen(WANTED_JOBS)))
		placing_follow_token(p, item->key + strlen(WANTED_JOBS));
	placing_asked_look(p);
	placing_wake(p);
}

static void on_current(void *context, uint64_t revision)
{
	struct prefix *prefix = context;
	struct placing *p = prefix->placing;

	if (!(p->current & 1u << prefix->index))
		placing_wake(p);
	p->current |= 1u << prefix->index;
	placing_left_end(p, prefix->index);
}

static void on_reset(void *context)
{
	placing_left_begin(((struct prefix *)context)->placing, ((struct prefix *)context)->index);
}

static void on_leader(void *context, const char *name, bool is_us)
{
	struct placing *p = context;

	snprintf(p->leader_name, sizeof(p->leader_name), "%s", name ? name : "");
	events_leader(sharing_happens(p->sharing), name, clock_unix_ms());
	log_say(LOG_LEVEL_INFO, "leader of the cluster", "node=%s", name ? name : "none");
	placing_wake(p);
}

static int on_report(void *context, struct report *report)
{
	return placing_tenants_report(context, report);
}

static void on_lost(void *context)
{
	struct placing *p = context;

	rendezvous_lost(p->rendezvous);
	placing_wake(p);
}

/* --- what is known --------------------------------------------------------------------------- */

const struct shared *placing_shared(const struct placing *p) { return p ? &p->shared : NULL; }
struct placing_counts placing_counts(const struct placing *p) { return p->counts; }
const char *placing_leader(const struct placing *p) { return p ? p->leader_name : ""; }
struct rendezvous *placing_rendezvous(const struct placing *p) { return p ? p->rendezvous : NULL; }

unsigned int placing_others(const struct placing *p, struct sockaddr_storage *ret, unsigned int max)
{
	const struct picture *picture = p ? sharing_picture(p->sharing) : NULL;
	const int own = picture ? picture_place(picture, p->node) : -1;
	unsigned int others = 0;

	for (unsigned int i = 1; own >= 0 && i < picture->nodes && others < max; i++) {
		const struct report *r = picture->report[((unsigned int)own + i) % picture->nodes];

		if (r->services)
			ret[others++] = r->service[0];
	}
	return others;
}

/* --- open and close -------------------------------------------------------------------------- */

static int follow(struct placing *p)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < PLACING_PREFIXES; i++) {
		p->prefix[i] = (struct prefix){ p, i };
		r = store_follow(p->store, followed[i],
				 &(struct store_follower){ on_changed, on_current, &p->prefix[i],
							   on_reset });
	}
	return r;
}

int placing_open(sd_event *loop, struct driver *d, struct sharing *sharing, struct placing **ret)
{
	struct placing *p;
	int r;

	if (!sharing)
		return 0;
	p = *ret = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->driver = d;
	p->sharing = sharing;
	p->store = sharing_store(sharing);
	snprintf(p->node, sizeof(p->node), "%s", core_config(driver_core(d))->cluster.node);
	TAILQ_INIT(&p->asked);
	r = rendezvous_open(p->store, &p->shared, sharing_picture(sharing), p->node,
			    &p->rendezvous);
	if (r == 0)
		r = sd_event_add_time_relative(loop, &p->timer, CLOCK_MONOTONIC, LOOK_MS * 1000ull,
					       SLACK_US, on_time, p);
	if (r >= 0)
		r = follow(p);
	if (r == 0)
		r = leader_campaign(loop, p->store, LEADER, p->node, on_leader, p, &p->leader);
	if (r == 0)
		leader_stand(p->leader, sharing_has_name(sharing));
	if (r == 0)
		sharing_tell(sharing, on_lost, on_report, p);
	return r < 0 ? r : 0;
}

void placing_close(struct placing *p)
{
	if (!p)
		return;
	placing_asked_close(p);
	sd_event_source_disable_unref(p->timer);
	leader_close(p->leader);
	rendezvous_close(p->rendezvous);
	shared_close(&p->shared);
	lead_close(&p->lead);
	free(p->told);
	free(p);
}
