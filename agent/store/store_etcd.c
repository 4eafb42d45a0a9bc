// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A store in an etcd cluster, by its JSON gateway. The session logs in, where there is a user, and
 * holds one lease: what was written as leased is there as long as it is. Its keep-alives also tell
 * whether etcd is there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/owned.h"
#include "common/url.h"
#include "etcd_private.h"

static void step_in(struct etcd *e, unsigned int ms)
{
	sd_event_source_set_time_relative(e->step, (uint64_t)ms * 1000);
	sd_event_source_set_enabled(e->step, SD_EVENT_ONESHOT);
}

/* --- calls ----------------------------------------------------------------------------------- */

int etcd_call(struct etcd *e, const char *path, char *body, const struct http_request *how,
	      struct http_call **ret)
{
	_cleanup_(freep) char *owned = body;
	struct http_request q = *how;
	char url[ETCD_URL_BYTES];
	int r;

	if (!body)
		return -ENOMEM;
	snprintf(url, sizeof(url), "%s/v3/%s", e->endpoint[e->at], path);
	q.url = url;
	q.body = body;
	q.token = e->token;
	r = http_start(e->http, &q, ret);
	explicit_bzero(body, strlen(body));
	return r;
}

void etcd_missed(struct etcd *e) { e->at = (e->at + 1) % e->endpoints; }

static void token_forget(struct etcd *e)
{
	if (e->token)
		explicit_bzero(e->token, strlen(e->token));
	free(TAKE_PTR(e->token));
}

static void lease_forget(struct etcd *e)
{
	if (!e->lease)
		return;
	e->lease = 0;
	if (e->base.lost)
		e->base.lost(e->base.lost_context);
}

enum etcd_fault etcd_heard(struct etcd *e, const char *text, size_t length, struct why *why)
{
	enum etcd_fault fault = etcd_fault(text, length, why);

	if (fault == ETCD_AWAY) {
		etcd_missed(e);
		return fault;
	}
	e->heard_ns = clock_now_ns();
	if (fault == ETCD_LOGIN)
		token_forget(e);
	if (fault == ETCD_LEASE)
		lease_forget(e);
	if ((fault == ETCD_LOGIN || fault == ETCD_LEASE) && !e->session)
		step_in(e, 0);
	return fault;
}

bool etcd_is_ready(const struct etcd *e) { return e->lease && (e->token || !e->user); }

/* --- the session ----------------------------------------------------------------------------- */

static void session_failed(struct etcd *e, const char *why)
{
	e->wait_ms = e->wait_ms ? 2 * e->wait_ms : ETCD_RETRY_FIRST_MS;
	if (e->wait_ms > ETCD_RETRY_MOST_MS)
		e->wait_ms = ETCD_RETRY_MOST_MS;
	etcd_writes_fail(e, why);
	step_in(e, e->wait_ms);
}

/* One step of it went well: the next one comes at once, or is the next keep-alive. */
static void session_went(struct etcd *e)
{
	e->wait_ms = 0;
	if (!etcd_is_ready(e)) {
		step_in(e, 0);
		return;
	}
	step_in(e, STORE_LEASE_S * 1000 / 3);
	etcd_follow_go(e);
	etcd_writes_go(e);
}

static int session_take(struct etcd *e, const char *text, size_t length)
{
	uint64_t lease;
	int r;

	if (e->user && !e->token)
		return etcd_read_token(text, length, &e->token);
	r = etcd_read_lease(text, length, &lease);
	if (r == 0 && e->lease && !lease) /* it was kept for too short */
		lease_forget(e);
	else if (r == 0)
		e->lease = lease;
	return r;
}

static void session_done(void *context, enum http_end end, const char *text, size_t length,
			 const char *reason)
{
	struct etcd *e = context;
	struct why why = { "" };
	int r;

	e->session = NULL;
	if (end != HTTP_ANSWERED) {
		etcd_missed(e);
		session_failed(e, reason);
		return;
	}
	if (etcd_heard(e, text, length, &why) != ETCD_NONE) {
		session_failed(e, why.text);
		return;
	}
	r = session_take(e, text, length);
	if (r < 0) {
		etcd_missed(e);
		session_failed(e, "what answers there is no etcd");
		return;
	}
	session_went(e);
}

static int on_step(sd_event_source *source, uint64_t usec, void *context)
{
	struct etcd *e = context;
	const struct http_request how = { .timeout_ms = ETCD_CALL_MS,
					  .done = session_done,
					  .context = e };
	int r;

	if (e->session)
		return 0;
	if (e->user && !e->token)
		r = etcd_call(e, "auth/authenticate", etcd_login(e->user, e->password), &how,
			      &e->session);
	else if (e->lease)
		r = etcd_call(e, "lease/keepalive", etcd_keep(e->lease), &how, &e->session);
	else
		r = etcd_call(e, "lease/grant", etcd_grant(STORE_LEASE_S), &how, &e->session);
	if (r < 0)
		session_failed(e, strerror(-r));
	return 0;
}

static uint64_t etcd_heard_ns(const struct store *s) { return ((const struct etcd *)s)->heard_ns; }

/* --- from the beginning to the end ----------------------------------------------------------- */

static void wipe(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

static void etcd_close(struct store *s)
{
	struct etcd *e = (struct etcd *)s;

	etcd_writes_close(e);
	etcd_follow_close(e);
	http_close(e->http);
	sd_event_source_disable_unref(e->step);
	sd_event_unref(e->loop);
	token_forget(e);
	wipe(e->password);
	free(e->text);
	free(e->prefix);
	free(e->ca);
	free(e->certificate);
	free(e->key);
	free(e->user);
	free(e);
}

static const struct store_kind kind = {
	.name = "etcd",
	.write = etcd_write_queue,
	.follow = etcd_follow_add,
	.heard_ns = etcd_heard_ns,
	.close = etcd_close,
};

static int endpoint_add(struct etcd *e, const char *url, struct why *why)
{
	bool is_plain = !strncmp(url, "http://", 7);

	if (!is_plain && strncmp(url, "https://", 8) != 0)
		return why_say(why, -EINVAL,
			       "etcd: endpoint %.200s: a URL that begins with https:// or http:// "
			       "is needed",
			       url);
	if (strlen(url) > ETCD_URL_BYTES / 2 || url[strlen(url) - 1] == '/')
		return why_say(why, -EINVAL,
			       "etcd: endpoint %.200s: leave out what is behind the port", url);
	if (is_plain && e->user && !url_is_of_this_machine(url))
		return why_say(why, -EINVAL,
			       "etcd: endpoint %.200s: a password is said over https:// only", url);
	if (e->endpoints == ETCD_ENDPOINTS_MAX)
		return why_say(why, -EINVAL, "etcd: at most %d endpoints", ETCD_ENDPOINTS_MAX);
	e->endpoint[e->endpoints++] = url;
	return 0;
}

static int endpoints_take(struct etcd *e, struct why *why)
{
	char *rest = NULL;
	int r = 0;

	for (char *url = strtok_r(e->text, " ", &rest); url && r == 0;
	     url = strtok_r(NULL, " ", &rest))
		r = endpoint_add(e, url, why);
	if (r == 0 && !e->endpoints)
		return why_say(why, -EINVAL, "etcd: an endpoint is needed");
	return r;
}

/* NULL stays NULL. False: no memory. */
static bool copy(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return *ret || !text;
}

static int etcd_prepare(struct etcd *e, const struct store_etcd_options *o, struct why *why)
{
	int r;

	if (!copy(o->endpoints, &e->text) || !copy(o->prefix, &e->prefix) || !copy(o->ca, &e->ca) ||
	    !copy(o->certificate, &e->certificate) || !copy(o->key, &e->key) ||
	    !copy(o->user, &e->user) || !copy(o->password, &e->password))
		return -ENOMEM;
	if (!o->prefix || !*o->prefix || strlen(o->prefix) >= STORE_KEY_BYTES)
		return why_say(why, -EINVAL, "etcd: a prefix of 1 to %d bytes is needed",
			       STORE_KEY_BYTES - 1);
	if (!o->user != !o->password || !o->certificate != !o->key)
		return why_say(why, -EINVAL,
			       "etcd: a user needs a password, and a certificate its key");
	r = endpoints_take(e, why);
	if (r == 0)
		r = http_open(e->loop, e->ca, e->certificate, e->key, &e->http);
	if (r == 0)
		r = sd_event_add_time_relative(e->loop, &e->step, CLOCK_MONOTONIC, 0, 1000, on_step,
					       e);
	return r;
}

/* Of the module that this file is in: store_module.c. */
const char tally_etcd_version[] = TALLY_VERSION_TEXT;

int store_open_etcd(sd_event *loop, const struct store_etcd_options *o, struct store **ret,
		    struct why *why)
{
	_cleanup_(store_closep) struct store *s = NULL;
	struct etcd *e = calloc(1, sizeof(*e));
	int r;

	if (!e)
		return -ENOMEM;
	s = &e->base;
	e->base.kind = &kind;
	e->loop = sd_event_ref(loop);
	TAILQ_INIT(&e->writes);
	LIST_INIT(&e->followers);
	r = etcd_prepare(e, o, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}
