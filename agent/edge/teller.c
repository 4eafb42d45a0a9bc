// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "teller.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/joining.h"
#include "common/owned.h"
#include "common/session.h"

enum {
	CONNECT_S = 3,
	TALK_S = 10, /* all that follows */
};

/* One thread, and what it says. */
struct talk {
	struct teller *teller;
	pthread_t thread;
	bool begun;
	int fd; /* -1: none; guarded by the teller's lock */
	struct telling what;
	struct session session, other; /* by either key, until a proof shows by which one */
	uint64_t end_ns; /* of the conversation */
	char in[TELLER_ANSWER_BYTES + SESSION_LINE_BYTES];
	size_t length;
	struct told told;
};

struct teller {
	pthread_mutex_t lock;
	bool ends;
	int answers[2]; /* a pipe of indexes of `talk` */
	struct talk talk[TELLER_UNDER_WAY_MAX];
};

/* --- a conversation -------------------------------------------------------------------------- */

static int broken(struct talk *t, const char *what)
{
	char text[ADDRESS_BYTES];
	int error = errno == EAGAIN || errno == EINPROGRESS ? ETIMEDOUT : errno;

	endpoint_print(&t->what.to, text, sizeof(text));
	return why_say(&t->told.why, -error, "the agent at %s: %s: %s", text, what,
		       strerror(error));
}

static int strange(struct talk *t, const char *what)
{
	char text[ADDRESS_BYTES];

	endpoint_print(&t->what.to, text, sizeof(text));
	return why_say(&t->told.why, -EPROTO, "the agent at %s %s", text, what);
}

static bool is_ending(struct teller *t)
{
	bool ends;

	pthread_mutex_lock(&t->lock);
	ends = t->ends;
	pthread_mutex_unlock(&t->lock);
	return ends;
}

/* What is left of the time, for what blocks next. False: nothing, and errno says so. */
static bool wait_limit(const struct talk *t, int option)
{
	const uint64_t now_ns = clock_now_ns(), left_us = (t->end_ns - now_ns) / 1000 + 1;
	const struct timeval wait = { left_us / 1000000, left_us % 1000000 };

	errno = ETIMEDOUT;
	return now_ns < t->end_ns && !is_ending(t->teller) &&
	       setsockopt(t->fd, SOL_SOCKET, option, &wait, sizeof(wait)) == 0;
}

static int talk_connect(struct talk *t)
{
	const struct timeval wait = { .tv_sec = CONNECT_S };
	int fd = socket(t->what.to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ends;

	if (fd < 0)
		return broken(t, "no socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)); /* of connect(), too */
	pthread_mutex_lock(&t->teller->lock);
	t->fd = fd;
	ends = t->teller->ends;
	pthread_mutex_unlock(&t->teller->lock);
	if (ends)
		return -ECANCELED;
	if (connect(fd, (const struct sockaddr *)&t->what.to, endpoint_length(&t->what.to)) < 0)
		return broken(t, "cannot connect");
	t->end_ns = clock_now_ns() + TALK_S * 1000000000ull;
	return 0;
}

static int talk_send(struct talk *t, const char *text, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n = -1;

		if (wait_limit(t, SO_SNDTIMEO))
			n = send(t->fd, text + sent, length - sent, MSG_NOSIGNAL);
		if (n < 0 && errno != EINTR)
			return broken(t, "cannot send");
		sent += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int talk_receive(struct talk *t)
{
	ssize_t n;

	if (t->length == sizeof(t->in))
		return strange(t, "says more than an answer has");
	do {
		n = -1;
		if (wait_limit(t, SO_RCVTIMEO))
			n = recv(t->fd, t->in + t->length, sizeof(t->in) - t->length, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return broken(t, "no answer");
	if (n == 0)
		return strange(t, "ended the connection without an answer");
	t->length += (size_t)n;
	return 0;
}

/* What it says instead of an answer. -EAGAIN: there is more to come. */
static int refused(struct talk *t, const char *text, size_t length)
{
	_cleanup_(freep) struct joining_answer *a = calloc(1, sizeof(*a));
	char words[ADDRESS_BYTES];
	size_t used;
	struct why why;
	int r;

	if (!a)
		return -ENOMEM;
	r = joining_answer_parse(text, length, a, &used, why.text, sizeof(why.text));
	if (r == -EAGAIN)
		return r;
	if (r < 0 || a->kind != JOINING_ERROR)
		return strange(t, "does not answer as agents do");
	endpoint_print(&t->what.to, words, sizeof(words));
	return why_say(&t->told.why, -EPROTO, "the agent at %s: %s", words, a->text);
}

/* It may have come in part. */
static bool is_refusal(const struct talk *t)
{
	static const char word[] = "error ";
	const size_t whole = sizeof(word) - 1;

	return t->length && !memcmp(t->in, word, t->length < whole ? t->length : whole);
}

/* What it has said: one of these. */
struct heard {
	struct joining_peer greeting;
	const char *message; /* as it came */
	size_t length;
	size_t end; /* of what has come it is so much */
};

static int greeting_take(struct talk *t, struct heard *ret)
{
	struct why why;
	int r;

	if (is_refusal(t))
		return refused(t, t->in, t->length);
	r = joining_peer_parse(t->in, t->length, &ret->greeting, &ret->end, why.text,
			       sizeof(why.text));
	return r < 0 && r != -EAGAIN ? strange(t, "does not greet as agents do") : r;
}

static int message_take(struct talk *t, struct heard *ret)
{
	int r;

	if (is_refusal(t))
		return refused(t, t->in, t->length);
	r = session_parse(&t->session, SESSION_AGENT, t->in, t->length, sizeof(t->in),
			  &ret->message, &ret->length, &ret->end);
	if (r == -EBADMSG && !t->session.said[SESSION_AGENT]) {
		t->session = t->other;
		r = session_parse(&t->session, SESSION_AGENT, t->in, t->length, sizeof(t->in),
				  &ret->message, &ret->length, &ret->end);
	}
	if (r == -EBADMSG)
		return strange(t, "knows another secret, or a byte was changed on the way");
	return r == -EINVAL ? strange(t, "does not answer as agents do") : r;
}

static int talk_hear(struct talk *t, int (*take)(struct talk *, struct heard *), struct heard *ret)
{
	int r = take(t, ret);

	while (r == -EAGAIN) {
		r = talk_receive(t);
		if (r == 0)
			r = take(t, ret);
	}
	return r;
}

/* It is read: what has come behind it is next. */
static void talk_forget(struct talk *t, const struct heard *h)
{
	t->length -= h->end;
	memmove(t->in, t->in + h->end, t->length);
}

static int greeting_draw(struct joining_peer *own, uint8_t secret[X25519_BYTES])
{
	uint8_t random[JOINING_CHALLENGE_BYTES / 2];

	if (getrandom(random, sizeof(random), 0) != sizeof(random) ||
	    getrandom(secret, X25519_BYTES, 0) != X25519_BYTES)
		return -EIO;
	joining_challenge_set(random, own->challenge);
	x25519_share(secret, own->share);
	return 0;
}

/* Nothing is said to whoever has not proven to know the secret. */
static int talk_await_proof(struct talk *t)
{
	struct heard h = { .length = 0 };
	int r = talk_hear(t, message_take, &h);

	if (r < 0)
		return r;
	if (h.length != strlen(JOINING_READY) || memcmp(h.message, JOINING_READY, h.length) != 0)
		return strange(t, "does not answer as agents do");
	talk_forget(t, &h);
	return 0;
}

static int talk_greet(struct talk *t)
{
	struct joining_peer own = { .root = t->what.root, .to = t->what.to };
	char opening[2 * JOINING_MESSAGE_BYTES];
	uint8_t secret[X25519_BYTES];
	size_t length = 0;
	struct heard h = { .length = 0 };
	int r = greeting_draw(&own, secret);

	if (r == 0)
		r = joining_peer_print(&own, opening, JOINING_MESSAGE_BYTES, &length);
	if (r == 0)
		r = talk_send(t, opening, length);
	if (r == 0)
		r = talk_hear(t, greeting_take, &h);
	if (r < 0)
		return r;
	memcpy(opening + length, t->in, h.end); /* JOINING_MESSAGE_BYTES at most */
	session_begin(t->what.key[0], opening, length + h.end, &t->session);
	session_begin(t->what.key[1], opening, length + h.end, &t->other);
	talk_forget(t, &h);
	r = talk_await_proof(t);
	if (r == 0)
		session_hide(&t->session, secret, h.greeting.share);
	explicit_bzero(secret, sizeof(secret));
	return r;
}

static int talk_say(struct talk *t)
{
	const size_t length = strlen(t->what.line), size = length + SESSION_LINE_BYTES + 1;
	_cleanup_(freep) char *text = malloc(size);
	size_t used = 0;
	int r;

	if (!text)
		return -ENOMEM;
	r = session_print(&t->session, SESSION_WORKER, t->what.line, length, text, size, &used);
	return r < 0 ? r : talk_send(t, text, used);
}

/* {"ok": true, ...}, or what is wrong. */
static int answer_take(struct talk *t, const char *text, size_t length)
{
	_cleanup_(json_decrefp) json_t *answer = json_loadb(text, length, 0, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));
	char words[ADDRESS_BYTES];

	if (json_is_true(json_object_get(answer, "ok"))) {
		t->told.result = json_incref(json_object_get(answer, "result"));
		return 0;
	}
	if (!error)
		return strange(t, "does not answer as agents do");
	endpoint_print(&t->what.to, words, sizeof(words));
	return why_say(&t->told.why, -EINVAL, "the agent at %s: %s", words, error);
}

static int talk_take_answer(struct talk *t)
{
	struct heard h = { .length = 0 };
	char *text;
	int r = talk_hear(t, message_take, &h);

	if (r < 0)
		return r;
	text = t->in + (h.message - t->in);
	session_show(&t->session, SESSION_AGENT, text, h.length, text);
	if (h.length >= 6 && !memcmp(text, "error ", 6))
		return refused(t, text, h.length);
	return answer_take(t, text, h.length);
}

static void *talk_main(void *data)
{
	struct talk *t = data;
	const uint8_t index = t - t->teller->talk;
	int r = talk_connect(t);

	if (r == 0)
		r = talk_greet(t);
	if (r == 0)
		r = talk_say(t);
	if (r == 0)
		r = talk_take_answer(t);
	if (r < 0 && !*t->told.why.text)
		why_say(&t->told.why, r, "%s", strerror(-r));
	t->told.error = r;
	pthread_mutex_lock(&t->teller->lock);
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
	pthread_mutex_unlock(&t->teller->lock);
	/* as many fit into the pipe as there are */
	if (write(t->teller->answers[1], &index, sizeof(index)) < 0)
		assert(t->teller->ends);
	return NULL;
}

/* --- the teller ------------------------------------------------------------------------------ */

static void talk_clear(struct talk *t)
{
	if (t->what.line)
		explicit_bzero(t->what.line, strlen(t->what.line));
	free(t->what.line);
	explicit_bzero(&t->what, sizeof(t->what));
	explicit_bzero(&t->session, sizeof(t->session));
	explicit_bzero(&t->other, sizeof(t->other));
	json_decref(t->told.result);
	t->told.result = NULL;
	t->begun = false;
}

int teller_tell(struct teller *t, struct telling *what)
{
	struct talk *talk = NULL;
	int r;

	for (unsigned int i = 0; i < TELLER_UNDER_WAY_MAX && !talk; i++)
		talk = t->talk[i].begun ? NULL : &t->talk[i];
	if (!talk) {
		free(what->line);
		return -EAGAIN;
	}
	*talk = (struct talk){ .teller = t, .fd = -1, .what = *what, .begun = true };
	talk->told.context = what->context;
	r = pthread_create(&talk->thread, NULL, talk_main, talk);
	if (r == 0)
		return 0;
	talk_clear(talk);
	return -r;
}

int teller_fd(const struct teller *t) { return t->answers[0]; }

bool teller_next(struct teller *t, struct told *ret)
{
	struct talk *talk;
	uint8_t index;

	if (read(t->answers[0], &index, sizeof(index)) != sizeof(index))
		return false;
	talk = &t->talk[index];
	pthread_join(talk->thread, NULL);
	*ret = talk->told;
	talk->told.result = NULL;
	talk_clear(talk);
	return true;
}

int teller_open(struct teller **ret)
{
	struct teller *t = calloc(1, sizeof(*t));
	int error;

	_Static_assert(TELLER_UNDER_WAY_MAX <= UINT8_MAX && TELLER_UNDER_WAY_MAX <= PIPE_BUF, "");
	if (!t)
		return -ENOMEM;
	if (pipe2(t->answers, O_CLOEXEC | O_NONBLOCK) < 0) {
		error = -errno;
		free(t);
		return error;
	}
	pthread_mutex_init(&t->lock, NULL);
	*ret = t;
	return 0;
}

void teller_close(struct teller *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->ends = true;
	for (unsigned int i = 0; i < TELLER_UNDER_WAY_MAX; i++)
		if (t->talk[i].begun && t->talk[i].fd >= 0)
			shutdown(t->talk[i].fd, SHUT_RDWR);
	pthread_mutex_unlock(&t->lock);
	for (unsigned int i = 0; i < TELLER_UNDER_WAY_MAX; i++)
		if (t->talk[i].begun) {
			pthread_join(t->talk[i].thread, NULL);
			talk_clear(&t->talk[i]);
		}
	pthread_mutex_destroy(&t->lock);
	close(t->answers[0]);
	close(t->answers[1]);
	free(t);
}
