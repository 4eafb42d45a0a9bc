// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/random.h>

#include "agent/core/guesses.h"
#include "agent/core/job.h"
#include "common/clock.h"
#include "common/owned.h"
#include "common/secret.h"

enum {
	AGAIN_MS = 1000, /* until what the store does not know is said once more */
	CROWD_MAX = TALLY_WORKERS_MAX, /* of one tenant, where it is crowded */
	HOLD_MS = 1000, /* until a wrong proof is taken for one, whatever is still on its way */
	HELD_MAX = 1024,
	HELD_OF_SOURCE = 64, /* as many workers as a large machine starts at once */
};

/* Its proof was wrong for the job as it was when it came. */
struct held {
	TAILQ_ENTRY(held) list;
	struct stream *stream;
	const struct rendezvous_voice *voice;
	char job[NAME_BYTES];
	uint64_t revision; /* of the job then; 0: there was none */
	uint64_t since_ns;
};

struct waiting {
	LIST_ENTRY(waiting) list;
	struct stream *stream;
	const struct rendezvous_voice *voice;
	char job[NAME_BYTES];
	struct wanted_worker is;
	uint8_t token_key[SECRET_KEY_BYTES]; /* that it has proven to know, */
	uint64_t revision; /* and of the job which had that token */
	char key[STORE_KEY_BYTES];
	uint64_t said_ns; /* to the store; 0: not yet */
	struct tally_set missing; /* as the worker was told last */
};

struct rendezvous {
	struct store *store;
	const struct shared *shared;
	const struct picture *picture;
	const char *node;
	LIST_HEAD(all, waiting) all;
	TAILQ_HEAD(all_held, held) held; /* the oldest first */
};

static void waiting_free(struct waiting *w)
{
	explicit_bzero(w->token_key, sizeof(w->token_key));
	free(w);
}

/* What became of it is seen in what the store says. */
static void on_done(void *context, int error, uint64_t revision, const char *why) {}

static void store_say(struct rendezvous *r, struct waiting *w, bool is_here)
{
	_cleanup_(freep) char *text = is_here ? wanted_print(&wanted_worker_keys, &w->is) : NULL;
	const struct store_change change = { w->key, text, true };

	if (is_here && !text)
		return;
	w->said_ns = clock_now_ns();
	store_write(r->store, &(struct store_write){ NULL, 0, &change, 1 }, on_done, NULL);
}

static bool is_stored(const struct shared_job *j, const struct waiting *w)
{
	const char *id = w->key + strlen(WANTED_WORKERS) + strlen(w->job) + 1;

	for (unsigned int i = 0; i < j->workers; i++)
		if (!strcmp(j->worker[i].id, id))
			return true;
	return false;
}

/* As many as could be at a run, and as many who come again before the others are seen to go. */
static bool is_full(const struct rendezvous *r, const char *job)
{
	const struct shared_job *j = shared_find(r->shared, job);
	const struct waiting *w;
	unsigned int count = 0;

	LIST_FOREACH(w, &r->all, list)
	count += !strcmp(w->job, job);
	return j && count >= 2u * j->job.workers;
}

/* Of a tenant's jobs together: where it is crowded, others have places, too. */
static unsigned int waiting_of(const struct rendezvous *r, const char *tenant)
{
	const struct waiting *w;
	unsigned int count = 0;

	LIST_FOREACH(w, &r->all, list)
	{
		const struct shared_job *j = shared_find(r->shared, w->job);

		count += j && !strcmp(j->job.tenant, tenant);
	}
	return count;
}

static int share_check(const struct rendezvous *r, const char *job, bool crowded)
{
	const struct shared_job *j = shared_find(r->shared, job);

	if (is_full(r, job))
		return -EUSERS;
	return j && crowded && waiting_of(r, j->job.tenant) >= CROWD_MAX ? -ENOSPC : 0;
}

int rendezvous_take(struct rendezvous *r, struct stream *s, const struct rendezvous_voice *voice,
		    const char *job, const uint8_t token_key[SECRET_KEY_BYTES],
		    const struct joining_message *m, bool crowded)
{
	const int full = share_check(r, job, crowded);
	struct waiting *w;
	uint64_t number;

	if (full < 0)
		return full;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number)) {
		free(w);
		return -EIO;
	}
	w->stream = s;
	w->voice = voice;
	snprintf(w->job, sizeof(w->job), "%s", job);
	snprintf(w->is.node, sizeof(w->is.node), "%s", r->node);
	w->is.address = m->address;
	memcpy(w->token_key, token_key, sizeof(w->token_key));
	snprintf(w->key, sizeof(w->key), WANTED_WORKERS "%s/%s/%016" PRIx64, job, r->node, number);
	LIST_INSERT_HEAD(&r->all, w, list);
	stream_keep(s);
	store_say(r, w, true);
	return 0;
}

static void forget(struct rendezvous *r, struct waiting *w)
{
	store_say(r, w, false);
	LIST_REMOVE(w, list);
	waiting_free(w);
}

/* --- whose proof is wrong so far -------------------------------------------------------------- */

static uint64_t revision_of(const struct rendezvous *r, const char *job)
{
	const struct shared_job *j = shared_find(r->shared, job);

	return j ? j->revision : 0;
}

static bool is_of_source(const struct held *h, const struct stream *s)
{
	return guesses_is_one(stream_peer(h->stream), stream_peer_who(h->stream).uid,
			      stream_peer(s), stream_peer_who(s).uid);
}

int rendezvous_hold(struct rendezvous *r, struct stream *s, const struct rendezvous_voice *voice,
		    const char *job)
{
	unsigned int all = 0, of_source = 0;
	struct held *h;

	TAILQ_FOREACH(h, &r->held, list)
	{
		all++;
		of_source += is_of_source(h, s);
	}
	if (all >= HELD_MAX || of_source >= HELD_OF_SOURCE)
		return -EUSERS;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->stream = s;
	h->voice = voice;
	snprintf(h->job, sizeof(h->job), "%s", job);
	h->revision = revision_of(r, job);
	h->since_ns = clock_now_ns();
	TAILQ_INSERT_TAIL(&r->held, h, list);
	return 0;
}

static void release(struct rendezvous *r, struct held *h)
{
	TAILQ_REMOVE(&r->held, h, list);
	free(h);
}

static void held_look(struct rendezvous *r)
{
	const uint64_t now_ns = clock_now_ns();
	struct held *h, *next;

	for (h = TAILQ_FIRST(&r->held); h; h = next) {
		const struct rendezvous_voice *voice = h->voice;
		struct stream *s = h->stream;

		next = TAILQ_NEXT(h, list);
		if (revision_of(r, h->job) == h->revision &&
		    now_ns - h->since_ns < HOLD_MS * 1000000ull)
			continue;
		release(r, h);
		voice->again(s);
	}
}

/* --- who leaves ------------------------------------------------------------------------------ */

static void held_leave(struct rendezvous *r, const struct stream *s)
{
	struct held *h;

	TAILQ_FOREACH(h, &r->held, list)
	if (h->stream == s) {
		release(r, h);
		return;
	}
}

void rendezvous_leave(struct rendezvous *r, const struct stream *s)
{
	struct waiting *w;

	held_leave(r, s);

	LIST_FOREACH(w, &r->all, list)
	if (w->stream == s) {
		forget(r, w);
		return;
	}
}

void rendezvous_lost(struct rendezvous *r)
{
	struct waiting *w;

	LIST_FOREACH(w, &r->all, list)
	w->said_ns = 0;
}

/* --- what they are told ---------------------------------------------------------------------- */

/* Before, it would not know the worker's token. */
bool rendezvous_is_there(const struct rendezvous *r, const struct shared_job *j)
{
	const int at = picture_place(r->picture, j->place.root);
	const struct report *root = at < 0 ? NULL : r->picture->report[at];

	for (unsigned int i = 0; root && i < root->jobs; i++)
		if (root->job[i].id == j->job.id && !root->job[i].inner)
			return !root->cordoned || root->job[i].runs;
	return false;
}

/* Which ranks will be missing nobody knows: as many as workers, the last ones. */
static void tell_missing(struct waiting *w, const struct shared_job *j)
{
	struct tally_set missing = { 0 };

	for (unsigned int rank = j->workers; rank < j->job.workers; rank++)
		tally_set_add(&missing, rank);
	if (tally_set_is_empty(&missing) || tally_set_is_equal(&missing, &w->missing))
		return;
	w->missing = missing;
	w->voice->missing(w->stream, &missing);
}

/* A key is made of the token, which takes a while, only where the job has changed. */
static bool knows_token(struct waiting *w, const struct shared_job *j)
{
	uint8_t key[SECRET_KEY_BYTES];

	if (w->revision != j->revision) {
		secret_token_key(j->job.token, key);
		if (!secret_is_equal(key, w->token_key, sizeof(key)))
			return false;
	}
	w->revision = j->revision;
	return true;
}

/* True: it waits no more. */
static bool look(struct rendezvous *r, struct waiting *w)
{
	const struct shared_job *j = shared_find(r->shared, w->job);

	if (!j) {
		w->voice->error(w->stream, -ECANCELED, "the job was deleted");
		return true;
	}
	if (!knows_token(w, j)) {
		w->voice->error(w->stream, -ECANCELED, JOB_ROTATED);
		return true;
	}
	if (shared_is_placed(j) && rendezvous_is_there(r, j)) {
		w->voice->elsewhere(w->stream, &j->place.address);
		return true;
	}
	if (!is_stored(j, w) &&
	    (!w->said_ns || clock_now_ns() - w->said_ns >= AGAIN_MS * 1000000ull))
		store_say(r, w, true);
	tell_missing(w, j);
	return false;
}

void rendezvous_look(struct rendezvous *r)
{
	struct waiting *w, *next;

	held_look(r);
	for (w = LIST_FIRST(&r->all); w; w = next) {
		next = LIST_NEXT(w, list);
		if (look(r, w))
			forget(r, w);
	}
}

/* --- open and close -------------------------------------------------------------------------- */

int rendezvous_open(struct store *store, const struct shared *shared, const struct picture *picture,
		    const char *node, struct rendezvous **ret)
{
	struct rendezvous *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->store = store;
	r->shared = shared;
	r->picture = picture;
	r->node = node;
	LIST_INIT(&r->all);
	TAILQ_INIT(&r->held);
	*ret = r;
	return 0;
}

void rendezvous_close(struct rendezvous *r)
{
	struct waiting *w;

	if (!r)
		return;
	while (!TAILQ_EMPTY(&r->held))
		release(r, TAILQ_FIRST(&r->held));
	while ((w = LIST_FIRST(&r->all))) {
		LIST_REMOVE(w, list);
		waiting_free(w);
	}
	free(r);
}
