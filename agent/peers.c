// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "peers.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/core/keys_json.h"
#include "agent/edge/log.h"
#include "agent/edge/peer_secret.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/joining.h"
#include "sharing.h"

enum {
	REFUSALS_APART_S = 10, /* in the log */
};

/* --- the secret ------------------------------------------------------------------------------ */

int peers_check(const struct config *c, struct why *why)
{
	uint8_t key[PEER_SECRETS][SECRET_KEY_BYTES] = { { 0 } };
	int r = *c->peers.secret ? peer_secret_read(c->peers.secret, key, why) : 0;

	explicit_bzero(key, sizeof(key));
	return r;
}

void peers_report(const struct config *c)
{
	struct why why;

	if (peers_check(c, &why) < 0)
		log_say(LOG_LEVEL_WARNING, "no talk with other agents", "reason=\"%s\"", why.text);
}

/* --- greeting -------------------------------------------------------------------------------- */

static bool is_one_of(const struct sockaddr_storage *all, unsigned int count,
		      const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < count; i++)
		if (endpoint_is_equal(&all[i], address))
			return true;
	return false;
}

/* Is it for us to answer? */
static int greeting_check(const struct joining_peer *other, const struct core *core,
			  const struct sharing *cluster, struct why *why)
{
	const struct config *c = core_config(core);
	bool is_root = is_one_of(c->peers.root, c->peers.roots, &other->root) ||
		       (cluster && sharing_has_root(cluster, &other->root));
	char text[ADDRESS_BYTES];

	if (!*c->peers.secret || !is_root) {
		address_print(&other->root, text, sizeof(text));
		return why_say(why, -EACCES,
			       "%s is none of the roots that this node takes documents from: add "
			       "it to peers.roots in %s, with peers.secret, then tallyctl reload",
			       text, core_path(core));
	}
	if (!is_one_of(c->service, c->services, &other->to)) {
		address_print(&other->to, text, sizeof(text));
		return why_say(why, -EACCES,
			       "%s is none of the service addresses of this node: somebody passes "
			       "on here what is for another node, or `service` in tallyd.yaml here "
			       "lacks the address",
			       text);
	}
	return 0;
}

/* Ours, behind the other one's, and the first proof: we prove first. */
static int greeting_answer(struct stream *s, const struct joining_peer *own,
			   const uint8_t key[SECRET_KEY_BYTES], const char *text, size_t length,
			   struct session *ret)
{
	char opening[2 * JOINING_MESSAGE_BYTES + SESSION_LINE_BYTES + sizeof(JOINING_READY)];
	size_t end = 0, proof = 0;
	int r;

	memcpy(opening, text, length); /* at most JOINING_MESSAGE_BYTES, as the parser says */
	r = joining_peer_print(own, opening + length, JOINING_MESSAGE_BYTES, &end);
	if (r < 0)
		return r;
	end += length;
	session_begin(key, opening, end, ret);
	r = session_print(ret, SESSION_AGENT, JOINING_READY, strlen(JOINING_READY), opening + end,
			  sizeof(opening) - end, &proof);
	if (r == 0)
		stream_send(s, opening + length, end + proof - length);
	return r;
}

int peers_greet(struct stream *s, const struct core *core, const struct sharing *cluster,
		const uint8_t share[X25519_BYTES], const char *text, size_t length,
		struct peer *ret, size_t *ret_used, struct why *why)
{
	uint8_t random[JOINING_CHALLENGE_BYTES / 2], key[PEER_SECRETS][SECRET_KEY_BYTES];
	struct peer p = { .is_proven = false };
	struct joining_peer other, own;
	int r;

	r = joining_peer_parse(text, length, &other, ret_used, why->text, sizeof(why->text));
	if (r == 0)
		r = greeting_check(&other, core, cluster, why);
	if (r < 0)
		return r;
	if (peer_secret_read(core_config(core)->peers.secret, key, why) < 0)
		return -EACCES;
	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		r = -EIO;
	own = other;
	memcpy(own.share, share, sizeof(own.share));
	joining_challenge_set(random, own.challenge);
	if (r == 0)
		r = greeting_answer(s, &own, key[0], text, *ret_used, &p.session);
	explicit_bzero(key, sizeof(key));
	if (r < 0)
		return r;
	p.root = other.root;
	memcpy(p.share, other.share, sizeof(p.share));
	*ret = p;
	return 0;
}

/* --- requests -------------------------------------------------------------------------------- */

static int is_anothers(const struct sockaddr_storage *root, const struct peer *p, struct why *why)
{
	char is[ADDRESS_BYTES], peer[ADDRESS_BYTES];

	if (endpoint_is_equal(root, &p->root))
		return 0;
	address_print(root, is, sizeof(is));
	address_print(&p->root, peer, sizeof(peer));
	return why_say(why, -EPERM, "the root of that job is %s, and this is the agent of %s", is,
		       peer);
}

/* 1: this node does not have that job, or a later one of its name. */
static int farewell_take(const struct peer *p, const struct core *core, json_int_t id,
			 char name[NAME_BYTES])
{
	const struct job *j = books_inner_find(core_books(core), name, &p->root);

	if (!j || j->id != id)
		return PEERS_NOTHING;
	memcpy(name, j->name, NAME_BYTES);
	return 0;
}

static int request_check(const struct peer *p, const struct core *core, json_int_t id,
			 struct request *q, struct why *why)
{
	struct request_apply *a = &q->apply;

	switch (q->verb) {
	case REQUEST_APPLY:
		snprintf(a->tenant, sizeof(a->tenant), "%s", core_config(core)->peers.tenant);
		return is_anothers(&a->document.root, p, why);
	case REQUEST_JOB_DEL:
		return farewell_take(p, core, id, q->name);
	default:
		return why_say(why, -EPERM,
			       "agents say apply, job-del and next-hops to each other, no more");
	}
}

/* A farewell says the job's number, too: a later job may have the name. */
static int line_parse(const char *line, size_t length, struct request *ret, json_int_t *ret_id,
		      struct why *why)
{
	_cleanup_(json_decrefp) json_t *root = json_loadb(line, length, 0, NULL);
	_cleanup_(freep) char *text = NULL;
	int r;

	*ret_id = json_integer_value(json_object_get(root, "id"));
	json_object_del(root, "id");
	text = json_dumps(root, JSON_COMPACT);
	if (!text)
		return why_say(why, -EINVAL, "not JSON");
	r = request_parse(text, strlen(text), ret, why);
	explicit_bzero(text, strlen(text));
	return r;
}

static bool is_hops_question(const json_t *root)
{
	const char *verb = json_string_value(json_object_get(root, "do"));

	return verb && !strcmp(verb, "next-hops");
}

/* -ENOENT: it is another request. */
static int hops_parse(const char *line, size_t length, struct paths_question *ret, struct why *why)
{
	static const struct keys_style style = { .number = "a number",
						 .no_such_key = "there is no such key",
						 .missing = "the key '%s' is needed" };
	struct reading reading = { &style, "next-hops", NULL, why->text, sizeof(why->text) };
	_cleanup_(json_decrefp) json_t *root = NULL;
	_cleanup_(value_freep) struct value *tree = NULL;
	json_error_t ignored;
	int r = keys_json_parse(line, length, &root, &ignored);

	if (r < 0 || !is_hops_question(root))
		return r == -ENOMEM ? r : -ENOENT;
	json_object_del(root, "do");
	r = keys_json_tree(root, &tree);
	if (r < 0)
		return r;
	keys_default(&paths_question_keys, ret);
	return keys_take_root(&reading, tree, &paths_question_keys, ret, NULL);
}

char *peers_hops_question(const struct paths_question *q)
{
	_cleanup_(json_decrefp) json_t *line = keys_json_make(&paths_question_keys, q);

	return line && json_object_set_new(line, "do", json_string("next-hops")) == 0
		       ? json_dumps(line, JSON_COMPACT)
		       : NULL;
}

struct paths_view *peers_hops_answer(const json_t *result, struct why *why)
{
	static const struct keys_style style = { .number = "a number", .tolerant = true };
	struct reading reading = { &style, "its answer", NULL, why->text, sizeof(why->text) };
	_cleanup_(freep) struct paths_view *v = calloc(1, sizeof(*v));
	_cleanup_(value_freep) struct value *tree = NULL;
	int r = v ? keys_json_tree(result, &tree) : -ENOMEM;

	if (r == 0)
		r = keys_take_root(&reading, tree, &paths_view_keys, v, NULL);
	if (r < 0 && !*why->text)
		why_say(why, r, "its answer: %s", strerror(-r));
	return r < 0 ? NULL : TAKE_PTR(v);
}

char *peers_hops_line(const struct paths_view *v)
{
	_cleanup_(json_decrefp) json_t *line = json_pack("{sb so}", "ok", true, "result",
							 keys_json_make(&paths_view_keys, v));

	return line ? json_dumps(line, JSON_COMPACT) : NULL;
}

static int line_take(const struct peer *p, const struct core *core, const char *line, size_t bytes,
		     struct request *ret, struct paths_question *ret_hops, struct why *why)
{
	json_int_t id = 0;
	int r = hops_parse(line, bytes, ret_hops, why);

	if (r != -ENOENT)
		return r < 0 ? r : PEERS_HOPS;
	r = line_parse(line, bytes, ret, &id, why);
	return r < 0 ? r : request_check(p, core, id, ret, why);
}

/* The keys are made when the proof was right: guesses cost nothing. */
int peers_request_take(struct peer *p, const struct core *core, const uint8_t secret[X25519_BYTES],
		       const char *text, size_t length, struct request *ret,
		       struct paths_question *ret_hops, size_t *ret_used, struct why *why)
{
	const char *hidden = NULL;
	char *line;
	size_t bytes = 0;
	int r;

	p->has_asked = true;
	r = session_parse(&p->session, SESSION_WORKER, text, length, REQUEST_BYTES_MAX, &hidden,
			  &bytes, ret_used);
	if (r == -EINVAL)
		return why_say(why, r, "a line 'proof PROOF LENGTH' is needed before a message");
	if (r == -EBADMSG)
		return why_say(why, -EACCES,
			       "the proof is wrong: the secret of the agents is another one here, "
			       "or something on the way changed a byte");
	if (r < 0)
		return r;
	p->is_proven = true;
	session_hide(&p->session, secret, p->share);
	line = malloc(bytes);
	if (!line)
		return -ENOMEM;
	session_show(&p->session, SESSION_WORKER, hidden, bytes, line);
	r = line_take(p, core, line, bytes, ret, ret_hops, why);
	explicit_bzero(line, bytes);
	free(line);
	return r;
}

/* --- who is refused -------------------------------------------------------------------------- */

void peers_refused_log(struct peers_refused *p, const struct sockaddr_storage *from,
		       const char *reason)
{
	const uint64_t now_ns = clock_now_ns();
	char text[ADDRESS_BYTES];

	p->times++;
	if (p->logged_ns && now_ns - p->logged_ns < REFUSALS_APART_S * 1000000000ull)
		return;
	endpoint_print(from, text, sizeof(text));
	log_say(LOG_LEVEL_WARNING, "agent refused", "times=%u last=%s reason=\"%s\"", p->times,
		text, reason);
	p->logged_ns = now_ns;
	p->times = 0;
}

void peers_gone(const struct peer *p, const struct core *core, const struct sockaddr_storage *from,
		struct peers_refused *log)
{
	char root[ADDRESS_BYTES];
	struct why why;

	if (p->has_asked)
		return;
	address_print(&p->root, root, sizeof(root));
	why_say(&why, 0,
		"it greeted as the agent of %s, and went when it had our proof: that agent knows "
		"another secret than that of %s, or was ended or gave up waiting meanwhile, or a "
		"byte was changed on the way, or it was somebody else",
		root, core_config(core)->peers.secret);
	peers_refused_log(log, from, why.text);
}
