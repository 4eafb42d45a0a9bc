// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "finder.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "agent/core/paths.h"
#include "agent/edge/log.h"
#include "agent/edge/peer_secret.h"
#include "agent/edge/teller.h"
#include "common/address.h"
#include "common/clock.h"
#include "hops.h"
#include "peers.h"
#include "sharing.h"

enum {
	EVERY_MS = 3000, /* routes of other nodes may have changed, and nobody says so */
	APART_MS = 200, /* however often routes change here */
	ANSWER_MS = 2000, /* who has not answered then is silent */
	BRIEF_MS = 200, /* for those who were silent the last time: others' jobs wait, too */
	SILENT_ROUNDS = 3, /* so often a node stays in trees; an agent that is restarted is back */
	SILENT_MS = SILENT_ROUNDS * EVERY_MS + EVERY_MS / 2, /* and however often routes change */
	SLACK_US = 10000,
};

/* What a peer has said last, of all jobs. */
struct known {
	uint64_t heard_ns; /* 0: never */
	bool is_silent; /* it had not answered when the last round ended, and has not since */
	unsigned int owns;
	struct sockaddr_storage own[PATHS_OWN_MAX];
};

/* One job whose tree is to be found, while it has a run. */
struct search {
	struct search *next;
	uint32_t job;
	uint16_t epoch;
	uint64_t run_ns; /* since when its run is on; 0: an agent before us began it */
	uint64_t began_ns, due_ns;
	bool is_wanted; /* while finder_look() looks */
	bool walked;
	struct paths_walk walk; /* if it did: of its last round */
};

/* All that is asked for one job, at one time. */
struct round {
	uint32_t number, job;
	uint16_t epoch;
	uint64_t began_ns;
	struct paths_question question;
	unsigned int peers, pending;
	unsigned int hopes; /* of those that are pending: who was not silent the last time */
	struct config_peer peer[CONFIG_PEERS_MAX];
	bool is_hope[CONFIG_PEERS_MAX];
	bool is_asked[CONFIG_PEERS_MAX]; /* not those of another address family than the job */
	struct paths_view *view[CONFIG_PEERS_MAX]; /* NULL: no answer, or not yet */
	struct why why[CONFIG_PEERS_MAX];
	struct paths_view root;
};

/* Goes with a question; its round may be over when the answer comes. */
struct asked {
	uint32_t round; /* 0: free */
	unsigned int peer;
};

struct finder {
	struct driver *driver;
	struct teller *teller;
	sd_event_source *answers, *timer;
	struct search *first;
	struct round *round; /* NULL: none is under way */
	uint32_t rounds;
	bool is_open;
	uint64_t since_ns; /* what is known was heard since then */
	unsigned int peers;
	struct config_peer peer[CONFIG_PEERS_MAX];
	struct known known[CONFIG_PEERS_MAX]; /* of these */
	struct asked asked[TELLER_UNDER_WAY_MAX];
};

static const struct core *core_of(const struct finder *f) { return driver_core(f->driver); }

/* --- a round --------------------------------------------------------------------------------- */

static void round_free(struct round *r)
{
	for (unsigned int i = 0; r && i < r->peers; i++)
		free(r->view[i]);
	free(r);
}

static struct asked *asked_find(struct finder *f)
{
	for (unsigned int i = 0; i < TELLER_UNDER_WAY_MAX; i++)
		if (!f->asked[i].round)
			return &f->asked[i];
	return NULL;
}

/* Is a question of an earlier round still without an answer? */
static bool is_still_asked(const struct finder *f, unsigned int peer)
{
	for (unsigned int i = 0; i < TELLER_UNDER_WAY_MAX; i++)
		if (f->asked[i].round && f->asked[i].peer == peer)
			return true;
	return false;
}

static void ask(struct finder *f, struct round *r, unsigned int peer,
		const struct sockaddr_storage *root, const uint8_t key[][SECRET_KEY_BYTES])
{
	struct telling what = { .to = r->peer[peer].address, .root = *root };
	struct asked *asked = asked_find(f);
	int error = -EAGAIN;

	what.context = asked;
	memcpy(what.key, key, sizeof(what.key));
	if (asked) {
		what.line = peers_hops_question(&r->question);
		error = what.line ? teller_tell(f->teller, &what) : -ENOMEM;
	}
	explicit_bzero(what.key, sizeof(what.key));
	if (error == 0) {
		*asked = (struct asked){ r->number, peer };
		r->pending++;
		r->is_hope[peer] = !f->known[peer].is_silent;
		r->hopes += r->is_hope[peer];
		return;
	}
	why_say(&r->why[peer], error, "%s",
		error == -EAGAIN ? "so many agents are asked that this one has to wait"
				 : strerror(-error));
}

/* Of other peers than before nothing is known. */
static void peers_note(struct finder *f, const struct config *c)
{
	struct config_peer peer[CONFIG_PEERS_MAX];
	const unsigned int peers = sharing_peers(driver_sharing(f->driver), c, peer);

	if (f->peers == peers && config_peers_are_equal(f->peer, peer, peers))
		return;
	f->peers = peers;
	memcpy(f->peer, peer, peers * sizeof(*peer));
	memset(f->known, 0, sizeof(f->known));
	f->since_ns = clock_now_ns();
	for (struct search *s = f->first; s; s = s->next)
		s->walked = false;
}

static void round_begin(struct finder *f, struct search *s, const struct job *j)
{
	const struct config *c = core_config(core_of(f));
	struct round *r = calloc(1, sizeof(*r));
	uint8_t key[PEER_SECRETS][SECRET_KEY_BYTES];
	struct why why = { "" };
	int error;

	s->began_ns = clock_now_ns();
	s->due_ns = s->began_ns + EVERY_MS * 1000000ull;
	f->round = r;
	if (!r)
		return;
	f->rounds += f->rounds == UINT32_MAX ? 2 : 1;
	r->number = f->rounds;
	r->job = j->id;
	r->epoch = j->epoch;
	r->began_ns = s->began_ns;
	r->question.workers = j->workers;
	for (unsigned int i = 0; i < j->workers; i++)
		r->question.worker[i] = j->rank[i].address;
	hops_look(driver_netlink(f->driver), &r->question, &r->root);
	error = peer_secret_read(c->peers.secret, key, &why);
	peers_note(f, c);
	r->peers = f->peers;
	memcpy(r->peer, f->peer, sizeof(r->peer));
	for (unsigned int i = 0; i < r->peers; i++) {
		r->is_asked[i] = r->peer[i].address.ss_family == j->service.ss_family;
		if (r->is_asked[i] && f->known[i].is_silent && is_still_asked(f, i))
			continue;
		if (r->is_asked[i] && error == 0)
			ask(f, r, i, &j->service, key);
		else if (r->is_asked[i])
			r->why[i] = why;
		else if (!config_peer_has_namesake(f->peer, f->peers, i))
			why_say(&r->why[i], 0, "the job's service address is IPv%c, and its is not",
				j->service.ss_family == AF_INET ? '4' : '6');
	}
	explicit_bzero(key, sizeof(key));
}

static void answered(struct finder *f, const struct told *told)
{
	const struct asked asked = TAKE(*(struct asked *)told->context, (struct asked){ 0 });
	struct round *r = f->round;

	if (told->error == 0) /* if it came late, the next round waits for it */
		f->known[asked.peer].is_silent = false;
	if (!r || r->number != asked.round)
		return;
	r->pending--;
	r->hopes -= r->is_hope[asked.peer];
	if (told->error < 0)
		r->why[asked.peer] = told->why;
	else
		r->view[asked.peer] = peers_hops_answer(told->result, &r->why[asked.peer]);
}

static void heard(struct finder *f, const struct round *r)
{
	for (unsigned int i = 0; i < r->peers; i++) {
		const struct paths_view *v = r->view[i];
		struct known *k = &f->known[i];

		k->is_silent = r->is_asked[i] && !v;
		if (!v)
			continue;
		k->heard_ns = clock_now_ns();
		k->owns = v->owns;
		memcpy(k->own, v->own, v->owns * sizeof(*v->own));
	}
}

static void left_out_say(const struct round *r, const struct paths *p, struct why *ret)
{
	size_t used = 0;

	for (unsigned int i = 0; i < r->peers && used < sizeof(ret->text); i++)
		if (!p->view[i] && (r->is_asked[i] || *r->why[i].text))
			used += snprintf(ret->text + used, sizeof(ret->text) - used, "%s%s: %.150s",
					 used ? "; " : "", r->peer[i].name,
					 *r->why[i].text ? r->why[i].text : "no answer in 2 s");
}

/* Did it answer a moment ago, and since the run has begun? Then it knows what to do in the run. */
static bool is_fresh(const struct known *k, const struct search *s)
{
	return s->walked && k->heard_ns && k->heard_ns >= s->run_ns &&
	       clock_now_ns() - k->heard_ns < SILENT_MS * 1000000ull;
}

/* The silent ones, as they were. False: no memory. */
static bool silent_fill(const struct finder *f, const struct search *s, struct round *r,
			struct paths *p)
{
	for (unsigned int i = 0; i < r->peers; i++) {
		const struct known *k = &f->known[i];

		if (!r->is_asked[i] || r->view[i] || !is_fresh(k, s))
			continue;
		r->view[i] = calloc(1, sizeof(*r->view[i]));
		if (!r->view[i])
			return false;
		paths_silent(&s->walk, r->peer, r->peers, i, k->own, k->owns, r->view[i]);
		p->silent[i] = true;
	}
	return true;
}

/*
 * Has an agent before us, with another memory, found this tree a moment ago, and one of its nodes
 * was never heard by this one? Agents may be restarted all at a time.
 */
static bool is_to_wait(const struct finder *f, const struct search *s, const struct round *r,
		       const struct tree *was)
{
	if (s->run_ns > f->since_ns || clock_now_ns() - f->since_ns >= SILENT_MS * 1000000ull)
		return false;
	for (unsigned int i = 0; i < r->peers; i++)
		if (!f->known[i].heard_ns && tree_at(was, &r->peer[i].address) >= 0)
			return true;
	return false;
}

static struct search *search_find(const struct finder *f, uint32_t job)
{
	struct search *s = f->first;

	while (s && s->job != job)
		s = s->next;
	return s;
}

static void found(struct finder *f, struct search *s, struct round *r, const struct tree *was,
		  struct tree *tree)
{
	struct core_event e = { .kind = CORE_TREE };
	struct paths p = { .root = &r->root,
			   .workers = r->question.workers,
			   .worker = r->question.worker,
			   .peers = r->peers,
			   .peer = r->peer };
	struct why left_out = { "" };

	if (!silent_fill(f, s, r, &p))
		return;
	for (unsigned int i = 0; i < r->peers; i++)
		p.view[i] = r->view[i];
	paths_tree_after(&p, was, &s->walk, tree);
	s->walked = true;
	left_out_say(r, &p, &left_out);
	paths_disputes_say(&p, &s->walk, left_out.text, sizeof(left_out.text));
	e.found.job = r->job;
	e.found.epoch = r->epoch;
	e.found.tree = tree;
	e.found.left_out = left_out.text;
	driver_handle(f->driver, &e);
}

static void round_end(struct finder *f)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct round *r = TAKE_PTR(f->round);
	struct search *s = search_find(f, r->job);
	const struct job *j = books_job_numbered(core_books(core_of(f)), r->job);

	heard(f, r);
	if (tree && s && s->epoch == r->epoch && j && j->tree && !is_to_wait(f, s, r, j->tree))
		found(f, s, r, j->tree, tree);
	free(tree);
	round_free(r);
}

/* --- what is due ----------------------------------------------------------------------------- */

static struct search *due_first(const struct finder *f)
{
	struct search *first = f->first;

	for (struct search *s = f->first; s; s = s->next)
		if (s->due_ns < first->due_ns)
			first = s;
	return first;
}

/* When the round ends, whoever has not answered. */
static uint64_t round_until(const struct round *r)
{
	if (!r->pending)
		return 0;
	return r->began_ns + (r->hopes ? ANSWER_MS : BRIEF_MS) * 1000000ull;
}

static void timer_set(struct finder *f)
{
	const struct round *r = f->round;
	const struct search *s = due_first(f);
	uint64_t at_ns = UINT64_MAX;

	if (r)
		at_ns = round_until(r);
	else if (s)
		at_ns = s->due_ns;
	if (at_ns != UINT64_MAX)
		sd_event_source_set_time(f->timer, at_ns / 1000 + 1);
	sd_event_source_set_enabled(f->timer,
				    at_ns == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	struct finder *f = data;
	struct search *s;
	const struct job *j;

	if (f->round && clock_now_ns() >= round_until(f->round))
		round_end(f);
	s = due_first(f);
	j = s ? books_job_numbered(core_books(core_of(f)), s->job) : NULL;
	if (!f->round && j && s->due_ns <= clock_now_ns())
		round_begin(f, s, j);
	timer_set(f);
	return 0;
}

static int on_answer(sd_event_source *io, int fd, uint32_t events, void *data)
{
	struct finder *f = data;
	struct told told;

	for (; teller_next(f->teller, &told); json_decref(told.result))
		answered(f, &told);
	timer_set(f);
	return 0;
}

/* --- which jobs ------------------------------------------------------------------------------ */

/* `before`: of the job before this one in the books, so mostly the next is the one. */
static struct search *search_want(struct finder *f, struct search *before, const struct job *j)
{
	struct search **next = before ? &before->next : &f->first, *s = *next;

	if (!s || s->job != j->id)
		for (s = f->first; s && s->job != j->id;)
			s = s->next;
	if (!s) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return before; /* comes again with the next event */
		s->job = j->id;
		s->epoch = j->epoch;
		s->run_ns = f->is_open ? clock_now_ns() : 0;
		s->next = *next;
		*next = s;
	}
	if (s->epoch != j->epoch) {
		s->due_ns = 0;
		s->run_ns = clock_now_ns();
	}
	s->epoch = j->epoch;
	s->is_wanted = true;
	return s;
}

void finder_look(struct finder *f)
{
	struct search *last = NULL;
	const struct books *b;

	if (!f)
		return;
	b = core_books(core_of(f));
	for (struct search *s = f->first; s; s = s->next)
		s->is_wanted = false;
	for (unsigned int i = 0; i < b->jobs; i++)
		if (b->job[i]->tree && b->job[i]->tree->found && b->job[i]->run_window)
			last = search_want(f, last, b->job[i]);
	for (struct search **link = &f->first; *link;) {
		struct search *s = *link;

		if (s->is_wanted) {
			link = &s->next;
		} else {
			*link = s->next;
			free(s);
		}
	}
	timer_set(f);
}

void finder_hurry(struct finder *f)
{
	const uint64_t now_ns = clock_now_ns();

	for (struct search *s = f ? f->first : NULL; s; s = s->next) {
		const uint64_t at_ns = s->began_ns + APART_MS * 1000000ull;

		s->due_ns = at_ns > now_ns ? at_ns : now_ns;
	}
	if (f)
		timer_set(f);
}

/* --- open and close -------------------------------------------------------------------------- */

int finder_open(sd_event *loop, struct driver *d, struct finder **ret)
{
	struct finder *f = calloc(1, sizeof(*f));
	int r;

	*ret = f;
	if (!f)
		return -ENOMEM;
	f->driver = d;
	r = teller_open(&f->teller);
	if (r >= 0)
		r = sd_event_add_io(loop, &f->answers, teller_fd(f->teller), EPOLLIN, on_answer, f);
	if (r >= 0)
		r = sd_event_add_time(loop, &f->timer, CLOCK_MONOTONIC, 0, SLACK_US, on_time, f);
	if (r >= 0) {
		peers_note(f, core_config(core_of(f)));
		finder_look(f);
	}
	f->is_open = true;
	return r < 0 ? r : 0;
}

void finder_close(struct finder *f)
{
	if (!f)
		return;
	sd_event_source_disable_unref(f->timer);
	sd_event_source_disable_unref(f->answers);
	teller_close(f->teller);
	round_free(f->round);
	while (f->first) {
		struct search *s = f->first;

		f->first = s->next;
		free(s);
	}
	free(f);
}
