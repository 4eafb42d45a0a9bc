// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Followers of an etcd cluster: all that is there is read, page by page as of one revision, and
 * then each change is told from the next revision on. A watch that breaks goes on where it was;
 * where etcd has compacted what lies between, all is read anew, and only differences are told.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/owned.h"
#include "etcd_private.h"

enum {
	PAGE = 100, /* keys */
};

struct etcd_follower {
	LIST_ENTRY(etcd_follower) list;
	struct etcd *etcd;
	struct store_follower is;
	struct mirror known;
	uint64_t revision; /* up to which all is known; 0: nothing is */
	uint64_t cluster; /* whose that is */
	uint64_t reading; /* the revision of the pages that are being read; 0: none are */
	bool must_read; /* anew */
	struct http_call *call;
	sd_event_source *again;
	unsigned int wait_ms; /* since it fails; 0: it does not */
	bool waits; /* `again` is to come */
	char after[STORE_KEY_BYTES]; /* the last key of the pages until now */
	char prefix[];
};

static void go(struct etcd_follower *f);

static void failed(struct etcd_follower *f)
{
	f->wait_ms = f->wait_ms ? 2 * f->wait_ms : ETCD_RETRY_FIRST_MS;
	if (f->wait_ms > ETCD_RETRY_MOST_MS)
		f->wait_ms = ETCD_RETRY_MOST_MS;
	f->reading = 0;
	f->waits = true;
	sd_event_source_set_time_relative(f->again, (uint64_t)f->wait_ms * 1000);
	sd_event_source_set_enabled(f->again, SD_EVENT_ONESHOT);
}

static int on_again(sd_event_source *source, uint64_t usec, void *context)
{
	struct etcd_follower *f = context;

	f->waits = false;
	go(f);
	return 0;
}

/* --- reading all ----------------------------------------------------------------------------- */

static int take_page_item(void *context, const struct store_item *item)
{
	struct etcd_follower *f = context;

	if (strlen(item->key) >= sizeof(f->after))
		return 0; /* nobody who keeps to the interface wrote it */
	snprintf(f->after, sizeof(f->after), "%s", item->key);
	return mirror_put(&f->known, item, &f->is);
}

/*
 * What is there is older than what was known, or another cluster's: it lost its data, or got back
 * what it once had. (A data directory that was emptied has the number of before, as that follows
 * from the members, so the revision is the sign there.)
 */
static bool is_another_store(const struct etcd_follower *f, const struct etcd_told *told)
{
	return told->revision < f->revision ||
	       (f->cluster && told->cluster && told->cluster != f->cluster);
}

static void forget_revisions(struct etcd_follower *f)
{
	mirror_reset(&f->known);
	if (f->is.reset)
		f->is.reset(f->is.context);
}

static void page_take(struct etcd_follower *f, const char *text, size_t length)
{
	struct etcd *e = f->etcd;
	struct etcd_told told;
	int r = etcd_read_range(text, length, e->prefix, NULL, NULL, &told);

	/* The first page's revision says how the items are to be taken. */
	if (r == 0 && !f->reading) {
		if (is_another_store(f, &told))
			forget_revisions(f);
		f->reading = told.revision;
		mirror_reread(&f->known);
	}
	if (r == 0)
		r = etcd_read_range(text, length, e->prefix, take_page_item, f, &told);
	if (r < 0) {
		failed(f);
		return;
	}
	f->wait_ms = 0;
	if (!told.more) {
		mirror_reread_end(&f->known, &f->is);
		f->revision = f->reading;
		f->cluster = told.cluster;
		f->reading = 0;
		f->must_read = false;
		f->is.current(f->is.context, f->revision);
	}
	go(f);
}

static void page_done(void *context, enum http_end end, const char *text, size_t length,
		      const char *reason)
{
	struct etcd_follower *f = context;
	struct why why = { "" };

	f->call = NULL;
	if (end != HTTP_ANSWERED)
		etcd_missed(f->etcd);
	if (end == HTTP_ANSWERED && etcd_heard(f->etcd, text, length, &why) == ETCD_NONE)
		page_take(f, text, length);
	else
		failed(f);
}

static int read_page(struct etcd_follower *f)
{
	const struct http_request how = { .timeout_ms = ETCD_CALL_MS,
					  .done = page_done,
					  .context = f };
	const char *after = f->reading ? f->after : NULL;

	return etcd_call(f->etcd, "kv/range",
			 etcd_range(f->etcd->prefix, f->prefix, after, f->reading, PAGE), &how,
			 &f->call);
}

/* --- watching -------------------------------------------------------------------------------- */

static int take_change(void *context, const struct store_item *item)
{
	struct etcd_follower *f = context;

	if (strlen(item->key) >= STORE_KEY_BYTES)
		return 0;
	if (item->value)
		return mirror_put(&f->known, item, &f->is);
	mirror_drop(&f->known, item->key, &f->is);
	return 0;
}

/* The watch is of no use any more: it ends, and what comes next begins. */
static void rewatch(struct etcd_follower *f, bool must_read)
{
	http_cancel(TAKE_PTR(f->call));
	f->must_read |= must_read;
	failed(f);
}

static void watch_line(void *context, const char *text, size_t length)
{
	struct etcd_follower *f = context;
	struct etcd *e = f->etcd;
	struct etcd_told told;
	struct why why = { "" };
	enum etcd_fault fault;
	int r;

	if (length == 0)
		return;
	fault = etcd_heard(e, text, length, &why);
	if (fault != ETCD_NONE) {
		rewatch(f, fault == ETCD_COMPACTED);
		return;
	}
	r = etcd_read_watch(text, length, e->prefix, take_change, f, &told);
	if (r < 0 || told.ended || (told.revision && is_another_store(f, &told))) {
		rewatch(f, true);
		return;
	}
	f->wait_ms = 0;
	if (told.revision <= f->revision)
		return;
	f->revision = told.revision;
	f->is.current(f->is.context, f->revision);
}

static void watch_done(void *context, enum http_end end, const char *text, size_t length,
		       const char *reason)
{
	struct etcd_follower *f = context;
	struct why why = { "" };

	f->call = NULL;
	if (end != HTTP_ANSWERED)
		etcd_missed(f->etcd);
	else if (etcd_heard(f->etcd, text, length, &why) == ETCD_COMPACTED)
		f->must_read = true;
	failed(f);
}

static int watch(struct etcd_follower *f)
{
	const struct http_request how = { .line = watch_line, .done = watch_done, .context = f };

	return etcd_call(f->etcd, "watch", etcd_watch(f->etcd->prefix, f->prefix, f->revision + 1),
			 &how, &f->call);
}

/* --- from the beginning to the end ----------------------------------------------------------- */

static void go(struct etcd_follower *f)
{
	int r;

	if (f->call || !etcd_is_ready(f->etcd))
		return;
	r = f->must_read ? read_page(f) : watch(f);
	if (r < 0)
		failed(f);
}

void etcd_follow_go(struct etcd *e)
{
	struct etcd_follower *f;

	LIST_FOREACH(f, &e->followers, list)
	if (!f->waits)
		go(f);
}

int etcd_follow_add(struct store *s, const char *prefix, const struct store_follower *is)
{
	struct etcd *e = (struct etcd *)s;
	const size_t bytes = strlen(prefix) + 1;
	struct etcd_follower *f = calloc(1, sizeof(*f) + bytes);
	int r;

	if (!f)
		return -ENOMEM;
	f->etcd = e;
	f->is = *is;
	f->must_read = true;
	memcpy(f->prefix, prefix, bytes);
	r = sd_event_add_time_relative(e->loop, &f->again, CLOCK_MONOTONIC, 0, 1000, on_again, f);
	if (r < 0) {
		free(f);
		return r;
	}
	LIST_INSERT_HEAD(&e->followers, f, list);
	return 0;
}

void etcd_follow_close(struct etcd *e)
{
	struct etcd_follower *f;

	while ((f = LIST_FIRST(&e->followers))) {
		LIST_REMOVE(f, list);
		http_cancel(f->call);
		sd_event_source_disable_unref(f->again);
		mirror_close(&f->known);
		free(f);
	}
}
