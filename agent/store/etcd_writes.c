// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Writes to etcd, one after another: each is a transaction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "etcd_private.h"

struct etcd_queued {
	TAILQ_ENTRY(etcd_queued) list;
	store_done *done;
	void *context;
	unsigned int tries; /* endpoints that were not reached, or other sessions' ends */
	struct store_write is; /* copies of all, behind it */
	struct store_seen seen[STORE_CHANGES_MAX];
	struct store_change change[STORE_CHANGES_MAX];
	size_t bytes;
	char text[]; /* so many; there may be tokens of jobs in it */
};

enum {
	TRIES_MAX = 8,
};

static size_t bytes_of(const struct store_write *w)
{
	size_t bytes = 0;

	for (unsigned int i = 0; i < w->seens; i++)
		bytes += strlen(w->seen[i].key) + 1;
	for (unsigned int i = 0; i < w->changes; i++)
		bytes += strlen(w->change[i].key) + 1 +
			 (w->change[i].value ? strlen(w->change[i].value) + 1 : 0);
	return bytes;
}

static const char *keep(char **at, const char *text)
{
	const char *kept = *at;

	if (!text)
		return NULL;
	*at = stpcpy(*at, text) + 1;
	return kept;
}

static struct etcd_queued *copy_of(const struct store_write *w)
{
	const size_t bytes = bytes_of(w);
	struct etcd_queued *q = calloc(1, sizeof(*q) + bytes);
	char *at;

	if (!q)
		return NULL;
	q->bytes = bytes;
	at = q->text;
	for (unsigned int i = 0; i < w->seens; i++)
		q->seen[i] = (struct store_seen){ keep(&at, w->seen[i].key), w->seen[i].revision };
	for (unsigned int i = 0; i < w->changes; i++) {
		const struct store_change *c = &w->change[i];

		q->change[i].key = keep(&at, c->key);
		q->change[i].value = keep(&at, c->value);
		q->change[i].leased = c->leased;
	}
	q->is = (struct store_write){ q->seen, w->seens, q->change, w->changes };
	return q;
}

static void queued_free(struct etcd_queued *q)
{
	explicit_bzero(q->text, q->bytes);
	free(q);
}

static void end(struct etcd *e, int error, uint64_t revision, const char *why)
{
	struct etcd_queued *q = TAILQ_FIRST(&e->writes);

	TAILQ_REMOVE(&e->writes, q, list);
	q->done(q->context, error, revision, why);
	queued_free(q);
}

static void answered(struct etcd *e, const char *text, size_t length)
{
	struct etcd_queued *q = TAILQ_FIRST(&e->writes);
	struct etcd_written written;
	struct why why = { "" };

	switch (etcd_heard(e, text, length, &why)) {
	case ETCD_NONE:
		if (etcd_read_written(text, length, &written) < 0)
			end(e, -ETIMEDOUT, 0, "what answers there is no etcd");
		else if (written.done)
			end(e, 0, written.revision, "");
		else
			end(e, -ESTALE, 0, "something has been changed meanwhile");
		return;
	case ETCD_LOGIN:
	case ETCD_LEASE: /* nothing was done: once more, when there is a new one */
		if (++q->tries > TRIES_MAX)
			end(e, -EACCES, 0, why.text);
		return;
	case ETCD_FORBIDDEN:
		end(e, -EACCES, 0, why.text);
		return;
	case ETCD_TOO_LARGE:
		end(e, -EMSGSIZE, 0, why.text);
		return;
	case ETCD_AWAY:
		end(e, -ETIMEDOUT, 0, why.text);
		return;
	default:
		end(e, -EIO, 0, why.text);
		return;
	}
}

static void write_done(void *context, enum http_end how, const char *text, size_t length,
		       const char *why)
{
	struct etcd *e = context;
	struct etcd_queued *q = TAILQ_FIRST(&e->writes);

	e->writing = NULL;
	if (how != HTTP_ANSWERED)
		etcd_missed(e);
	if (how == HTTP_ANSWERED)
		answered(e, text, length);
	else if (how == HTTP_BROKEN)
		end(e, -ETIMEDOUT, 0, why);
	else if (++q->tries >= e->endpoints)
		end(e, -ENOTCONN, 0, why);
	etcd_writes_go(e);
}

void etcd_writes_go(struct etcd *e)
{
	const struct http_request how = { .timeout_ms = ETCD_CALL_MS,
					  .done = write_done,
					  .context = e };
	const struct etcd_queued *q = TAILQ_FIRST(&e->writes);

	/* Where there is no memory for it now, it goes with the next keep-alive. */
	if (!e->writing && q && etcd_is_ready(e))
		etcd_call(e, "kv/txn", etcd_write(e->prefix, &q->is, e->lease), &how, &e->writing);
}

void etcd_writes_fail(struct etcd *e, const char *why)
{
	struct etcd_queued *last = TAILQ_LAST(&e->writes, etcd_writes), *q;

	/* Not the one that is under way, and none that is queued by those who are told. */
	while (!e->writing && last && (q = TAILQ_FIRST(&e->writes))) {
		bool is_last = q == last;

		end(e, -ENOTCONN, 0, why);
		if (is_last)
			break;
	}
}

int etcd_write_queue(struct store *s, const struct store_write *w, store_done *done, void *context)
{
	struct etcd *e = (struct etcd *)s;
	struct etcd_queued *q = copy_of(w);

	if (!q)
		return -ENOMEM;
	q->done = done;
	q->context = context;
	TAILQ_INSERT_TAIL(&e->writes, q, list);
	etcd_writes_go(e);
	return 0;
}

void etcd_writes_close(struct etcd *e)
{
	struct etcd_queued *q;

	http_cancel(e->writing);
	while ((q = TAILQ_FIRST(&e->writes))) {
		TAILQ_REMOVE(&e->writes, q, list);
		queued_free(q);
	}
}
