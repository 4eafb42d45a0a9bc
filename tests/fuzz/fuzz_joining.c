// SPDX-License-Identifier: GPL-2.0-only
/* Anything may come over the wire. What is taken is printed, and is the same when read again. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/joining.h"
#include "common/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static void greeting_again(const struct joining_greeting *g)
{
	char text[JOINING_MESSAGE_BYTES], why[256];
	struct joining_greeting again;
	size_t length, taken;

	must(joining_greeting_print(g, text, sizeof(text), &length) == 0);
	must(joining_greeting_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && !strcmp(again.job, g->job) &&
	     !strcmp(again.challenge, g->challenge) && again.wants == g->wants &&
	     again.run == g->run && again.rank == g->rank);
}

static void peer_again(const struct joining_peer *p)
{
	char text[JOINING_MESSAGE_BYTES], why[256];
	struct joining_peer again;
	size_t length, taken;

	must(joining_peer_print(p, text, sizeof(text), &length) == 0);
	must(joining_is_peer(text, length) == 1);
	must(joining_peer_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && !strcmp(again.challenge, p->challenge) &&
	     !memcmp(&again.root, &p->root, sizeof(again.root)) &&
	     !memcmp(&again.to, &p->to, sizeof(again.to)) &&
	     !memcmp(again.share, p->share, sizeof(again.share)));
}

static void request_again(const struct joining_message *q)
{
	char text[JOINING_MESSAGE_BYTES], why[256];
	struct joining_message again;
	size_t length, taken;

	must(joining_message_print(q, text, sizeof(text), &length) == 0);
	must(joining_message_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && again.what == q->what && again.rank == q->rank &&
	     again.epoch == q->epoch);
	must(!memcmp(&again.address, &q->address, sizeof(q->address)));
	must(!memcmp(again.share, q->share, sizeof(q->share)));
	must(again.mtu == q->mtu && again.payload_bytes == q->payload_bytes);
}

static bool job_is_equal(const struct run *a, const struct run *b)
{
	return a->nonce == b->nonce && a->job == b->job && a->epoch == b->epoch &&
	       a->window == b->window && a->payload_bytes == b->payload_bytes &&
	       a->workers == b->workers && !memcmp(&a->service, &b->service, sizeof(a->service)) &&
	       !memcmp(a->worker, b->worker, a->workers * sizeof(*a->worker));
}

static void answer_again(const struct joining_answer *a)
{
	char text[JOINING_ANSWER_BYTES], why[256];
	static struct joining_answer again;
	size_t length, taken;
	int r;

	if (a->kind == JOINING_GREETING)
		r = joining_greeting_print(&a->greeting, text, sizeof(text), &length);
	else if (a->kind == JOINING_WAITING)
		r = joining_waiting_print(&a->missing, text, sizeof(text), &length);
	else if (a->kind == JOINING_RUN)
		r = joining_run_print(a, text, sizeof(text), &length);
	else if (a->kind == JOINING_ENDING)
		r = joining_ending_print(a->text, text, sizeof(text), &length);
	else if (a->kind == JOINING_ERROR)
		r = joining_error_print(a->error, a->text, text, sizeof(text), &length);
	else if (a->kind == JOINING_SHARES)
		r = joining_shares_print(a->shares, a->roots, text, sizeof(text), &length);
	else if (a->kind == JOINING_ELSEWHERE)
		r = joining_elsewhere_print(&a->elsewhere, text, sizeof(text), &length);
	else if (a->kind == JOINING_TOKEN)
		r = joining_token_print(a->token_key, text, sizeof(text), &length);
	else if (a->kind == JOINING_STAYS)
		r = joining_stays_print(text, sizeof(text), &length);
	else
		r = joining_left_print(text, sizeof(text), &length);
	must(r == 0);
	must(joining_answer_parse(text, length, &again, &taken, why, sizeof(why)) == 0);
	must(taken == length && again.kind == a->kind && again.rank == a->rank);
	must(tally_set_is_equal(&again.missing, &a->missing) && job_is_equal(&again.job, &a->job));
	must(!memcmp(&again.key, &a->key, sizeof(a->key)) && again.sealed == a->sealed);
	must(!memcmp(again.token_key, a->token_key, sizeof(a->token_key)));
	must(!memcmp(again.shares, a->shares, sizeof(a->shares)));
	must(again.roots == a->roots && again.which == a->which && again.share == a->share);
	must(!memcmp(&again.elsewhere, &a->elsewhere, sizeof(a->elsewhere)));
	must(again.error == a->error && !strcmp(again.text, a->text));
	must(!strcmp(again.greeting.challenge, a->greeting.challenge));
	must(!memcmp(&again.greeting.service, &a->greeting.service, sizeof(a->greeting.service)));
}

/* A stranger has no proof; what is proven is taken out as it was put in, and once. */
static void session_check(const char *text, size_t size)
{
	static char proven[JOINING_ANSWER_BYTES + SESSION_LINE_BYTES];
	const uint8_t key[SECRET_KEY_BYTES] = { 1 };
	const char *message;
	size_t length, taken, bytes;
	struct session s;
	int r;

	session_begin(key, "opening", 7, &s);
	r = session_parse(&s, SESSION_WORKER, text, size, JOINING_MESSAGE_BYTES, &message, &bytes,
			  &taken);
	must(r < 0 && s.said[SESSION_WORKER] == 0);
	must(size < JOINING_MESSAGE_BYTES + SESSION_LINE_BYTES || r != -EAGAIN);
	if (!size || size > JOINING_ANSWER_BYTES)
		return;
	must(session_print(&s, SESSION_AGENT, text, size, proven, sizeof(proven), &length) == 0);
	s.said[SESSION_AGENT] = 0;
	must(session_parse(&s, SESSION_WORKER, proven, length, size, &message, &bytes, &taken) ==
	     -EBADMSG);
	must(session_parse(&s, SESSION_AGENT, proven, length, size, &message, &bytes, &taken) == 0);
	must(bytes == size && taken == length && !memcmp(message, text, size));
	must(session_parse(&s, SESSION_AGENT, proven, length, size, &message, &bytes, &taken) ==
	     -EBADMSG);
	s.hides = true; /* as between agents */
	must(session_print(&s, SESSION_WORKER, text, size, proven, sizeof(proven), &length) == 0);
	s.said[SESSION_WORKER] = 0;
	must(session_parse(&s, SESSION_WORKER, proven, length, size, &message, &bytes, &taken) ==
	     0);
	session_show(&s, SESSION_WORKER, message, bytes, (char *)message);
	must(bytes == size && !memcmp(message, text, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct joining_answer answer;
	struct joining_greeting greeting;
	struct joining_message request;
	struct joining_peer peer;
	const char *text = (const char *)data;
	size_t taken = 0;
	char why[128];
	int r;

	r = joining_greeting_parse(text, size, &greeting, &taken, why, sizeof(why));
	must(size < JOINING_MESSAGE_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		greeting_again(&greeting);
	session_check(text, size);

	r = joining_peer_parse(text, size, &peer, &taken, why, sizeof(why));
	must(size < JOINING_MESSAGE_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		peer_again(&peer);

	r = joining_message_parse(text, size, &request, &taken, why, sizeof(why));
	must(size < JOINING_MESSAGE_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		request_again(&request);

	r = joining_answer_parse(text, size, &answer, &taken, why, sizeof(why));
	must(size < JOINING_ANSWER_BYTES || r != -EAGAIN);
	must((r == 0 && taken <= size && !*why) || (r < 0 && memchr(why, '\0', sizeof(why))));
	if (r == 0)
		answer_again(&answer);
	return 0;
}
