/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What store_etcd.c (the session: who we are, and our lease), etcd_writes.c and etcd_follow.c
 * share.
 */
#ifndef TALLY_AGENT_STORE_ETCD_PRIVATE_H
#define TALLY_AGENT_STORE_ETCD_PRIVATE_H

#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "etcd_text.h"
#include "http.h"
#include "mirror.h"
#include "store.h"

enum {
	ETCD_ENDPOINTS_MAX = 16,
	ETCD_CALL_MS = 5000, /* for an answer */
	ETCD_RETRY_FIRST_MS = 100, /* then twice as long each time */
	ETCD_RETRY_MOST_MS = 2000,
	ETCD_URL_BYTES = 512,
};

struct etcd_queued; /* a write */
struct etcd_follower;

struct etcd {
	struct store base;
	sd_event *loop;
	struct http *http;
	char *text; /* that endpoints are parts of */
	const char *endpoint[ETCD_ENDPOINTS_MAX];
	unsigned int endpoints, at; /* at: the one that is spoken to */
	char *prefix, *ca, *certificate, *key, *user, *password;
	char *token; /* of a login; NULL: none */
	uint64_t lease; /* 0: none */
	uint64_t heard_ns;
	struct http_call *session; /* a login, or a word about the lease */
	sd_event_source *step; /* the session's next */
	unsigned int wait_ms; /* since it fails; 0: it does not */
	TAILQ_HEAD(etcd_writes, etcd_queued)
	writes; /* the first one is under way, if `writing` is */
	struct http_call *writing;
	LIST_HEAD(etcd_followers, etcd_follower) followers;
};

/* A request to the endpoint that is spoken to; `body` is taken over, and may be NULL: no memory. */
int etcd_call(struct etcd *e, const char *path, char *body, const struct http_request *how,
	      struct http_call **ret);

/*
 * What came of an answered call: something was heard, so the store is there. A fault that is the
 * session's business is taken care of.
 */
enum etcd_fault etcd_heard(struct etcd *e, const char *text, size_t length, struct why *why);

/* Nobody was reached, or not to the end: another endpoint is next. */
void etcd_missed(struct etcd *e);

/* Is there a lease, and a login where one is needed? */
bool etcd_is_ready(const struct etcd *e);

/* --- etcd_writes.c --------------------------------------------------------------------------- */

int etcd_write_queue(struct store *s, const struct store_write *w, store_done *done, void *context);

/* What waits goes on, as far as it can. */
void etcd_writes_go(struct etcd *e);

/* The store is not reached: all that wait are told so. */
void etcd_writes_fail(struct etcd *e, const char *why);
void etcd_writes_close(struct etcd *e);

/* --- etcd_follow.c --------------------------------------------------------------------------- */

int etcd_follow_add(struct store *s, const char *prefix, const struct store_follower *f);
void etcd_follow_go(struct etcd *e);
void etcd_follow_close(struct etcd *e);

#endif
