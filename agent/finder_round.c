// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A round: all agents are asked for the paths of one job's workers, and the tree that they make. */
#include <errno.h>
#include <string.h>

#include "agent/core/keys_json.h"
#include "agent/edge/peer_secret.h"
#include "common/clock.h"
#include "finder_private.h"
#include "hops.h"
#include "peers.h"
#include "sharing.h"

enum {
	ANSWER_MS = 2000, /* who has not answered then is silent */
	BRIEF_MS = 200, /* for those who were silent the last time: others' jobs wait, too */
	SILENT_ROUNDS = 3, /* so often a node stays in trees; an agent that is restarted is back */
	/* And however often routes change. */
	SILENT_MS = SILENT_ROUNDS * FINDER_EVERY_MS + FINDER_EVERY_MS / 2,
};

void finder_round_free(struct round *r)
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

void finder_peers_note(struct finder *f, const struct config *c)
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

void finder_round_begin(struct finder *f, struct search *s, const struct job *j)
{
	const struct config *c = core_config(finder_core(f));
	struct round *r = calloc(1, sizeof(*r));
	uint8_t key[PEER_SECRETS][SECRET_KEY_BYTES];
	struct why why = { "" };
	int error;

	s->began_ns = clock_now_ns();
	s->due_ns = s->began_ns + FINDER_EVERY_MS * 1000000ull;
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
	finder_peers_note(f, c);
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

void finder_round_answered(struct finder *f, const struct told *told)
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

void finder_round_end(struct finder *f)
{
	struct tree *tree = calloc(1, sizeof(*tree));
	struct round *r = TAKE_PTR(f->round);
	struct search *s = search_find(f, r->job);
	const struct job *j = books_job_numbered(core_books(finder_core(f)), r->job);

	heard(f, r);
	if (tree && s && s->epoch == r->epoch && j && j->tree && !is_to_wait(f, s, r, j->tree))
		found(f, s, r, j->tree, tree);
	free(tree);
	finder_round_free(r);
}

uint64_t finder_round_until(const struct round *r)
{
	if (!r->pending)
		return 0;
	return r->began_ns + (r->hopes ? ANSWER_MS : BRIEF_MS) * 1000000ull;
}
