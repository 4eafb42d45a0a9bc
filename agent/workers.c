// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of joining over stream sockets: docs/joining.md, common/joining.h. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "agent/edge/log.h"
#include "agent/edge/stream.h"
#include "agent/edge/teller.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/joining.h"
#include "common/session.h"
#include "hops.h"
#include "peers.h"
#include "placing.h"
#include "workers_private.h"

enum {
	CONNECTIONS_MAX = CORE_MEMBERS_MAX + 1024, /* strangers have a place, too */
	ADDRESS_MAX = 1024,
	REQUEST_TIMEOUT_S = 10,
};

_Static_assert((int)TELLER_ANSWER_BYTES > JOINING_ANSWER_BYTES, "any answer fits in workers_say()");

/* With its proof, once there may be one; then never without. */
void workers_say(struct stream *s, const char *text, size_t length)
{
	char proven[TELLER_ANSWER_BYTES + SESSION_LINE_BYTES];
	struct worker *w = stream_context(s);
	struct session *session = w && w->is_agent ? &w->peer.session : w ? &w->session : NULL;

	if (!w || !(w->is_agent ? w->peer.is_proven : w->is_proven))
		stream_send(s, text, length);
	else if (session_print(session, SESSION_AGENT, text, length, proven, sizeof(proven),
			       &length) == 0)
		stream_send(s, proven, length);
	else
		stream_finish(s);
}

static void tell_error(struct stream *s, int error, const char *words)
{
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) == 0)
		workers_say(s, text, length);
	stream_finish(s);
}

static char *refuse(int error)
{
	const char *words = error == -EMSGSIZE	  ? "the request is too long"
			    : error == -ETIMEDOUT ? "the request did not come in time"
						  : "the agent serves as many workers as it can";
	char text[JOINING_TEXT_BYTES + 64];
	size_t length = 0;

	if (joining_error_print(error, words, text, sizeof(text), &length) < 0)
		return NULL;
	return strdup(text);
}

static void say_missing(struct stream *s, const struct tally_set *missing)
{
	char text[JOINING_ANSWER_BYTES + 1];
	size_t length = 0;

	if (joining_waiting_print(missing, text, sizeof(text), &length) == 0)
		workers_say(s, text, length);
}

void workers_say_elsewhere(void *connection, const struct sockaddr_storage *root, bool ends)
{
	char text[ADDRESS_BYTES + 32];
	size_t length = 0;

	if (joining_elsewhere_print(root, text, sizeof(text), &length) == 0)
		workers_say(connection, text, length);
	if (ends)
		stream_finish(connection);
}

void workers_say_shares(void *connection, const uint16_t *share, unsigned int roots)
{
	char text[JOINING_TEXT_BYTES + 32];
	size_t length = 0;

	if (joining_shares_print(share, roots, text, sizeof(text), &length) == 0)
		workers_say(connection, text, length);
}

static void say_elsewhere(struct stream *s, const struct sockaddr_storage *root)
{
	workers_say_elsewhere(s, root, true);
}

static const struct rendezvous_voice voice = { say_missing, say_elsewhere, tell_error,
					       workers_read_again };

/* All ranks of a run hear the same: they are told in one turn of the loop. */
static void roots_fill(const struct workers *workers, const struct job *j,
		       struct joining_answer *ret)
{
	const struct shared *shared = placing_shared(driver_placing(workers->driver));
	const struct shared_job *s = j->clustered && shared ? shared_find(shared, j->name) : NULL;

	if (!s || s->job.birth != j->birth || !s->job.roots)
		return;
	ret->roots = s->job.roots;
	ret->which = s->job.which;
	ret->share = shared_is_placed(s) && s->place.share ? s->place.share : 1;
}

/* A worker that is not told for lack of memory runs into its timeout, and comes again. */
static int run_print(const struct core_action *a, char *text, size_t size, size_t *ret_length)
{
	_cleanup_(freep) struct joining_answer *answer = calloc(1, sizeof(*answer));
	const struct workers *workers = stream_owner(a->connection);
	const struct worker *w = stream_context(a->connection);

	if (!answer)
		return -ENOMEM;
	answer->rank = a->rank;
	answer->sealed = a->job->sealed;
	roots_fill(workers, a->job, answer);
	if (a->job->clustered)
		answer->others = placing_others(driver_placing(workers->driver), answer->other,
						JOINING_OTHERS_MAX);
	job_this_run(a->job, &answer->job);
	if (job_rank_key(a->job, a->rank, answer->key.sealed)) {
		memcpy(answer->key.share, workers->share, sizeof(workers->share));
		session_seal(&w->session, workers->secret, w->share, answer->key.sealed);
	}
	return joining_run_print(answer, text, size, ret_length);
}

/* Who has joined keeps the key of a token, and not the token. */
static int token_print(const struct core_action *a, char *text, size_t size, size_t *ret_length)
{
	const struct worker *w = stream_context(a->connection);
	uint8_t key[SECRET_KEY_BYTES];

	secret_token_key(a->job->token, key);
	session_cover(&w->session, key);
	return joining_token_print(key, text, size, ret_length);
}

void workers_tell(const struct core_action *a)
{
	char text[JOINING_ANSWER_BYTES + 1], words[64];
	struct stream *s = a->connection;
	size_t length = 0;
	int r = 0;

	switch (a->tell.kind) {
	case JOINING_ERROR:
		tell_error(s, a->error, a->tell.text);
		return;
	case JOINING_WAITING:
		stream_keep(s);
		r = joining_waiting_print(&a->tell.missing, text, sizeof(text), &length);
		break;
	case JOINING_RUN:
		stream_keep(s);
		r = run_print(a, text, sizeof(text), &length);
		break;
	case JOINING_ENDING:
		snprintf(words, sizeof(words), "rank %u %s", a->rank, a->tell.text);
		r = joining_ending_print(words, text, sizeof(text), &length);
		break;
	case JOINING_STAYS:
		stream_keep(s);
		r = joining_stays_print(text, sizeof(text), &length);
		break;
	case JOINING_TOKEN:
		r = token_print(a, text, sizeof(text), &length);
		break;
	case JOINING_LEFT:
		r = joining_left_print(text, sizeof(text), &length);
		break;
	case JOINING_GREETING: /* these are none of the core's business */
	case JOINING_ELSEWHERE:
	case JOINING_SHARES:
		return;
	}
	if (r == 0)
		workers_say(s, text, length);
	if (a->tell.kind == JOINING_LEFT)
		stream_finish(s);
}

void workers_drop(void *connection) { stream_finish(connection); }

static void on_end(struct stream *s)
{
	struct core_event e = { .kind = CORE_ENDED, .connection = s };
	struct workers *workers = stream_owner(s);
	struct worker *w = stream_context(s);

	if (w && (w->is_waiting || w->held))
		rendezvous_leave(placing_rendezvous(driver_placing(workers->driver)), s);
	if (w && w->held)
		workers_held_gone(s);
	if (w && w->is_known) {
		e.ended = w->job;
		driver_handle(workers->driver, &e);
	}
	if (w && w->is_agent)
		peers_gone(&w->peer, driver_core(workers->driver), stream_peer(s),
			   &workers->refused);
	if (w) {
		workers_forget(w);
		explicit_bzero(w, sizeof(*w));
	}
	free(w);
}

int workers_draw(void *ret, size_t size)
{
	return getrandom(ret, size, 0) == (ssize_t)size ? 0 : -EIO;
}

/* --- greetings */

static int greeting_answer(struct stream *s, struct worker *w, const struct joining_greeting *g,
			   const char *text, size_t length, struct why *why)
{
	char opening[JOINING_MESSAGE_BYTES + 128];
	const struct workers *workers = stream_owner(s);
	struct joining_greeting own = { .job = "" };
	uint8_t random[JOINING_CHALLENGE_BYTES / 2];
	size_t answer = 0;
	int r;

	if (g->wants == JOINING_WANTS_SERVICE)
		own.service = core_config(driver_core(workers->driver))->service[0];
	w->by_place = g->run;
	r = w->by_place ? workers_place_key(workers, g, w->token_key, why)
			: workers_token_key(workers, w->job, w->token_key);
	if (r == 0)
		r = workers_draw(random, sizeof(random));
	if (r < 0)
		return r;
	joining_challenge_set(random, own.challenge);
	memcpy(opening, text, length);
	r = joining_greeting_print(&own, opening + length, sizeof(opening) - length, &answer);
	if (r < 0)
		return r;
	session_begin(w->token_key, opening, length + answer, &w->session);
	r = workers_keep(w, opening, length + answer);
	if (r < 0)
		return r;
	stream_send(s, opening + length, answer);
	return 0;
}

static int greeting_take(struct stream *s, const char *text, size_t length, size_t *ret_used,
			 struct why *why)
{
	_cleanup_(freep) struct worker *w = calloc(1, sizeof(*w));
	struct joining_greeting g;
	int r;

	if (!w)
		return -ENOMEM;
	r = joining_greeting_parse(text, length, &g, ret_used, why->text, sizeof(why->text));
	if (r < 0)
		return r;
	memcpy(w->job, g.job, sizeof(w->job));
	r = greeting_answer(s, w, &g, text, *ret_used, why);
	if (r == 0)
		stream_context_set(s, TAKE_PTR(w));
	return r;
}

/* --- messages */

int workers_message_read(struct worker *w, const char *text, size_t length,
			 struct joining_message *ret, size_t *ret_used, struct why *why)
{
	const size_t most = JOINING_MESSAGE_BYTES - SESSION_LINE_BYTES;
	const char *message = NULL;
	size_t bytes = 0, used = 0;
	int r;

	r = session_parse(&w->session, SESSION_WORKER, text, length, most, &message, &bytes,
			  ret_used);
	if (r == -EINVAL)
		return why_say(why, r, "a line 'proof PROOF LENGTH' is needed before a message");
	if (r == -EBADMSG)
		return why_say(why, -EACCES,
			       "the proof is wrong: something on the way changed a byte");
	if (r < 0)
		return r;
	w->is_proven = true;
	r = joining_message_parse(message, bytes, ret, &used, why->text, sizeof(why->text));
	if (r == -EAGAIN || (r == 0 && used < bytes))
		return why_say(why, -EINVAL, "behind a proof comes one message, with its end");
	if (r == 0 && w->is_known && ret->what != JOINING_LEAVE)
		return why_say(why, -EINVAL, "who has joined says nothing more but leave");
	if (r == 0 && w->by_place && ret->what == JOINING_JOIN)
		return why_say(why, -EINVAL, "by a place one stays or leaves; join by the token");
	return r;
}

int workers_message_judge(struct stream *s, const struct joining_message *m, struct why *why)
{
	struct workers *workers = stream_owner(s);
	struct worker *w = stream_context(s);
	struct job_draw drawn;
	struct core_event e = { .kind = CORE_JOINING,
				.connection = s,
				.joining = { .job = w->job,
					     .again = w->is_known || (!m && w->held),
					     .crowded = stream_connections(workers->server) >
							CONNECTIONS_MAX / 2,
					     .message = m,
					     .token_key = m ? w->token_key : NULL,
					     .by_place = m && w->by_place,
					     .draw = &drawn,
					     .peer = stream_peer(s),
					     .port = stream_port(s),
					     .uid = stream_peer_who(s).uid } };
	int r;

	workers_forget(w);
	if (m && w->is_waiting) { /* it has nothing that it could leave */
		stream_finish(s);
		return 0;
	}
	if (m && !w->is_known && m->what == JOINING_JOIN && workers_shared_job(workers, w->job) &&
	    !core_guesses_wait_ns(driver_core(workers->driver), e.joining.peer, e.joining.uid,
				  clock_now_ns())) { /* else the core says so */
		w->is_waiting = true;
		r = rendezvous_take(placing_rendezvous(driver_placing(workers->driver)), s, &voice,
				    w->job, w->token_key, m, e.joining.crowded);
		return r == -ENOSPC ? why_say(why, r,
					      "the agent serves many workers, and as many of this "
					      "tenant wait here as a job can have")
				    : r;
	}
	if (m && !w->is_known)
		memcpy(w->share, m->share, sizeof(w->share));
	r = workers_draw(&drawn, sizeof(drawn));
	if (r < 0)
		return r;
	drawn.nonce += !drawn.nonce;
	w->is_known = true;
	driver_handle(workers->driver, &e);
	explicit_bzero(&drawn, sizeof(drawn));
	return 0;
}

/* A first message whose proof is wrong is a guess, with which the core deals; in a cluster not
 * before what other agents do has come here. */
static int message_take(struct stream *s, const char *text, size_t length, size_t *ret_used,
			struct why *why)
{
	struct worker *w = stream_context(s);
	struct joining_message m = { 0 };
	int r;

	if (w->held) { /* it has nothing that it could leave, either */
		*ret_used = length;
		stream_finish(s);
		return 0;
	}
	r = workers_message_read(w, text, length, &m, ret_used, why);
	if (r < 0 && (r != -EACCES || w->is_known))
		return r;
	if (r < 0)
		*ret_used = length;
	if (r < 0 && !w->is_proven && workers_hold(s, &voice, text, length) == 0)
		return 0;
	return workers_message_judge(s, r == 0 ? &m : NULL, why);
}

/* --- both ------------------------------------------------------------------------------------ */

static void refusal_log(struct stream *s, bool is_agent, const char *reason)
{
	struct workers *workers = stream_owner(s);

	if (is_agent)
		peers_refused_log(&workers->refused, stream_peer(s), reason);
	else
		log_say(LOG_LEVEL_DEBUG, "worker refused", "job= reason=\"%s\"", reason);
}

void workers_refuse(struct stream *s, bool is_agent, int error, struct why *why)
{
	refusal_log(s, is_agent, *why->text ? why->text : strerror(-error));
	if (is_agent && !stream_context(s) && error == -EACCES) /* it learns nothing of this node */
		why_say(why, error,
			"this node takes no documents from that root, or is another one than meant; its log says why");
	tell_error(s, error, *why->text ? why->text : strerror(-error));
}

static int text_take(struct stream *s, bool is_agent, const char *text, size_t length,
		     size_t *ret_used, struct why *why)
{
	if (is_agent)
		return (stream_context(s) ? workers_agent_asks
					  : workers_agent_greets)(s, text, length, ret_used, why);
	return (stream_context(s) ? message_take : greeting_take)(s, text, length, ret_used, why);
}

static ssize_t on_text(struct stream *s, const char *text, size_t length)
{
	const struct worker *w = stream_context(s);
	const int is_agent = w ? w->is_agent : joining_is_peer(text, length);
	struct why why = { "" };
	size_t used = 0;
	int r = is_agent < 0 ? is_agent : text_take(s, is_agent, text, length, &used, &why);

	if (r == -EAGAIN)
		return 0;
	if (r == 0)
		return (ssize_t)used;
	workers_refuse(s, is_agent, r, &why);
	return (ssize_t)length;
}

static const struct stream_service service = {
	.name = "joining",
	.request_bytes_max = REQUEST_BYTES_MAX + SESSION_LINE_BYTES, /* a worker's are shorter */
	.connections_max = CONNECTIONS_MAX,
	.address_max = ADDRESS_MAX,
	.request_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.idle_timeout_ns = REQUEST_TIMEOUT_S * 1000000000ull,
	.read = on_text,
	.end = on_end,
	.refuse = refuse,
};

int workers_listen(struct workers *w, struct why *why)
{
	const struct config *c = core_config(driver_core(w->driver));
	char text[ADDRESS_BYTES];
	int r, taken = 0;

	for (unsigned int i = 0; i < c->listens; i++) {
		if (w->listens[i])
			continue;
		r = stream_listen_tcp(w->server, &c->listen[i], why);
		w->listens[i] = r == 0;
		if (r < 0 && r != -EADDRINUSE)
			return r;
		if (r == 0)
			continue;
		endpoint_print(&c->listen[i], text, sizeof(text));
		taken = why_say(why, r,
				"another program listens at %s (ss -tlnp 'sport = :%u'), so no "
				"worker can join there; tallyd takes the port when it is free",
				text, endpoint_port(&c->listen[i]));
	}
	return taken;
}

int workers_open(sd_event *loop, struct driver *d, struct workers **ret, struct why *why)
{
	const struct config *c = core_config(driver_core(d));
	struct workers *w = calloc(1, sizeof(*w));
	int r;

	*ret = w;
	if (!w)
		return -ENOMEM;
	w->driver = d;
	r = workers_draw(w->secret, sizeof(w->secret));
	if (r < 0)
		return r;
	x25519_share(w->secret, w->share);
	r = stream_server_open(loop, &service, w, &w->server);
	if (r == 0 && *c->join_socket)
		r = stream_listen_unix(w->server, c->join_socket, 0666, -1, why);
	if (r == 0)
		r = workers_listen(w, why);
	return r == -EADDRINUSE ? 0 : r;
}

void workers_close(struct workers *w)
{
	if (!w)
		return;
	stream_server_close(w->server);
	explicit_bzero(w, sizeof(*w));
	free(w);
}
