// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A store for one machine: all keys in memory, and in a file that is replaced at each write. What
 * is leased is in memory alone, so it goes when the process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/queue.h>
#include <systemd/sd-event.h>

#include "agent/core/keys_json.h"
#include "agent/edge/replace.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/util.h"
#include "mirror.h"

enum {
	FORMAT = 1, /* of the file */
	FILE_BYTES_MAX = 256 << 20,
};

/* A write that has been done or not, and whose caller is to be told so. */
struct outcome {
	TAILQ_ENTRY(outcome) list;
	store_done *done;
	void *context;
	int error;
	uint64_t revision;
	struct why why;
};

struct follower {
	LIST_ENTRY(follower) list;
	struct store_follower is;
	uint64_t told; /* the revision up to which it has been told */
	bool begun; /* it has been told what was there when it came */
	struct mirror known; /* by it */
	char prefix[];
};

struct local {
	struct store base;
	char *path;
	int lock;
	sd_event_source *later; /* tells what is to be told */
	struct mirror all;
	uint64_t revision; /* of the last write */
	TAILQ_HEAD(outcomes, outcome) outcomes;
	LIST_HEAD(followers, follower) followers;
};

/* --- the file -------------------------------------------------------------------------------- */

static char *print(const struct local *s)
{
	_cleanup_(json_freep) json_t *keys = json_array();
	_cleanup_(json_freep) json_t *all = NULL;

	for (size_t i = 0; keys && i < s->all.items; i++) {
		const struct mirror_item *item = &s->all.item[i];
		json_t *row;

		if (item->leased)
			continue;
		row = json_pack("{ss ss sI}", "key", item->key, "value", item->value, "revision",
				(json_int_t)item->revision);
		if (!row || json_array_append_new(keys, row) < 0)
			return NULL;
	}
	all = json_pack("{si sI sO?}", "format", FORMAT, "revision", (json_int_t)s->revision,
			"keys", keys);
	return all && keys ? json_dumps(all, JSON_INDENT(1)) : NULL;
}

static int save(struct local *s)
{
	_cleanup_(freep) char *text = print(s);

	return text ? replace_file(s->path, text) : -ENOMEM;
}

static int take_keys(struct local *s, const json_t *keys)
{
	const json_t *row;
	size_t i;

	json_array_foreach(keys, i, row)
	{
		struct store_item item;
		json_int_t revision;
		int r;

		if (json_unpack((json_t *)row, "{ss ss sI}", "key", &item.key, "value", &item.value,
				"revision", &revision) < 0 ||
		    revision < 1 || (uint64_t)revision > s->revision)
			return -EINVAL;
		item.revision = revision;
		r = mirror_put(&s->all, &item, NULL);
		if (r < 0)
			return r;
	}
	return 0;
}

static int parse(struct local *s, const char *text, size_t length, struct why *why)
{
	_cleanup_(json_freep) json_t *all = NULL;
	json_int_t revision = 0;
	json_error_t error;
	int format, r;
	json_t *keys;

	r = keys_json_parse(text, length, &all, &error);
	if (r == -EINVAL)
		return why_say(why, r, "%s:%d: %s: this is no store of tallyd, or a damaged one",
			       s->path, error.line, error.text);
	if (r < 0)
		return r;
	if (json_unpack(all, "{si sI so}", "format", &format, "revision", &revision, "keys",
			&keys) < 0 ||
	    format != FORMAT || revision < 0)
		return why_say(why, -EINVAL,
			       "%s: this is no store of tallyd, or one of a later tallyd", s->path);
	s->revision = revision;
	r = take_keys(s, keys);
	if (r == -EINVAL)
		return why_say(why, r, "%s: a key of this store is damaged", s->path);
	return r;
}

static int load(struct local *s, struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r = file_read(s->path, FILE_BYTES_MAX, &text, &length);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return why_say(why, r, "cannot read the store %s: %s", s->path, strerror(-r));
	return parse(s, text, length, why);
}

static int lock(struct local *s, struct why *why)
{
	_cleanup_(freep) char *name = NULL;

	if (asprintf(&name, "%s.lock", s->path) < 0)
		return -ENOMEM;
	s->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock < 0)
		return why_say(why, -errno, "cannot lock the store by %s: %s", name,
			       strerror(errno));
	if (flock(s->lock, LOCK_EX | LOCK_NB) < 0)
		return why_say(why, errno == EWOULDBLOCK ? -EBUSY : -errno,
			       "the store %s is another process's", s->path);
	return 0;
}

/* --- telling --------------------------------------------------------------------------------- */

static void wake(struct local *s) { sd_event_source_set_enabled(s->later, SD_EVENT_ONESHOT); }

/* What a follower does not know yet. It may call back, and change what there is: then, once more.
 */
static void tell(struct local *s, struct follower *f)
{
	const uint64_t revision = s->revision;
	const size_t length = strlen(f->prefix);

	if (f->begun && f->told == revision)
		return;
	mirror_reread(&f->known);
	for (size_t i = 0; i < s->all.items; i++) {
		const struct mirror_item *item = &s->all.item[i];

		if (strncmp(item->key, f->prefix, length) != 0)
			continue;
		if (mirror_put(&f->known,
			       &(struct store_item){ item->key, item->value, item->revision },
			       &f->is) < 0) {
			wake(s); /* no memory now */
			return;
		}
	}
	mirror_reread_end(&f->known, &f->is);
	f->begun = true;
	f->told = revision;
	f->is.current(f->is.context, revision);
}

static int on_later(sd_event_source *source, void *context)
{
	struct local *s = context;
	struct outcomes outcomes = TAILQ_HEAD_INITIALIZER(outcomes); /* those until now */
	struct outcome *o;
	struct follower *f;

	TAILQ_CONCAT(&outcomes, &s->outcomes, list);
	LIST_FOREACH(f, &s->followers, list)
	tell(s, f);
	while ((o = TAILQ_FIRST(&outcomes))) {
		TAILQ_REMOVE(&outcomes, o, list);
		o->done(o->context, o->error, o->revision, o->why.text);
		free(o);
	}
	return 0;
}

/* --- writing --------------------------------------------------------------------------------- */

static const char *stale_key(const struct local *s, const struct store_write *w)
{
	for (unsigned int i = 0; i < w->seens; i++) {
		const struct mirror_item *item = mirror_find(&s->all, w->seen[i].key);

		if ((item ? item->revision : 0) != w->seen[i].revision)
			return w->seen[i].key;
	}
	return NULL;
}

/* Does the file change? What is leased is not in there. */
static bool is_kept(const struct local *s, const struct store_change *c)
{
	const struct mirror_item *before = mirror_find(&s->all, c->key);

	return (c->value && !c->leased) || (before && !before->leased);
}

static int put_all(struct local *s, const struct store_write *w)
{
	bool kept = false;
	int r = 0;

	s->revision++;
	for (unsigned int i = 0; r == 0 && i < w->changes; i++) {
		const struct store_change *c = &w->change[i];

		kept |= is_kept(s, c);
		if (!c->value) {
			mirror_drop(&s->all, c->key, NULL);
			continue;
		}
		r = mirror_put(&s->all, &(struct store_item){ c->key, c->value, s->revision },
			       NULL);
		if (r == 0)
			mirror_find(&s->all, c->key)->leased = c->leased;
	}
	return r == 0 && kept ? save(s) : r;
}

static int copy_of(const struct mirror *from, struct mirror *ret)
{
	*ret = (struct mirror){ 0 };
	for (size_t i = 0; i < from->items; i++) {
		const struct mirror_item *item = &from->item[i];
		int r = mirror_put(
			ret, &(struct store_item){ item->key, item->value, item->revision }, NULL);

		if (r < 0) {
			mirror_close(ret);
			return r;
		}
		mirror_find(ret, item->key)->leased = item->leased;
	}
	return 0;
}

/* All or nothing: what was there before is kept until the file is written. */
static void change(struct local *s, const struct store_write *w, struct outcome *o)
{
	const char *stale = stale_key(s, w);
	struct mirror before;

	if (stale) {
		o->error = why_say(&o->why, -ESTALE, "%s has been changed meanwhile", stale);
		return;
	}
	o->error = copy_of(&s->all, &before);
	if (o->error == 0) {
		o->error = put_all(s, w);
		o->revision = s->revision;
		mirror_close(o->error == 0 ? &before : &s->all);
		if (o->error == 0)
			return;
		s->all = before;
		s->revision--;
		o->revision = 0;
	}
	why_say(&o->why, 0, "cannot write the store %s: %s", s->path, strerror(-o->error));
	o->error = -EIO;
}

static int local_write(struct store *store, const struct store_write *w, store_done *done,
		       void *context)
{
	struct local *s = (struct local *)store;
	struct outcome *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->done = done;
	o->context = context;
	change(s, w, o);
	TAILQ_INSERT_TAIL(&s->outcomes, o, list);
	wake(s);
	return 0;
}

/* --- following ------------------------------------------------------------------------------- */

static int local_follow(struct store *store, const char *prefix, const struct store_follower *is)
{
	struct local *s = (struct local *)store;
	const size_t bytes = strlen(prefix) + 1;
	struct follower *f = calloc(1, sizeof(*f) + bytes);

	if (!f)
		return -ENOMEM;
	f->is = *is;
	memcpy(f->prefix, prefix, bytes);
	LIST_INSERT_HEAD(&s->followers, f, list);
	wake(s);
	return 0;
}

static uint64_t local_heard_ns(const struct store *store) { return clock_now_ns(); }

/* --- from the beginning to the end ----------------------------------------------------------- */

static void local_close(struct store *store)
{
	struct local *s = (struct local *)store;
	struct outcome *o;
	struct follower *f;

	while ((o = TAILQ_FIRST(&s->outcomes))) {
		TAILQ_REMOVE(&s->outcomes, o, list);
		free(o);
	}
	while ((f = LIST_FIRST(&s->followers))) {
		LIST_REMOVE(f, list);
		mirror_close(&f->known);
		free(f);
	}
	sd_event_source_disable_unref(s->later);
	mirror_close(&s->all);
	closep(&s->lock);
	free(s->path);
	free(s);
}

static const struct store_kind kind = {
	.name = "local",
	.write = local_write,
	.follow = local_follow,
	.heard_ns = local_heard_ns,
	.close = local_close,
};

int store_open_local(sd_event *loop, const char *path, struct store **ret, struct why *why)
{
	_cleanup_(store_closep) struct store *store = NULL;
	struct local *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	store = &s->base;
	s->base.kind = &kind;
	s->lock = -1;
	TAILQ_INIT(&s->outcomes);
	LIST_INIT(&s->followers);
	s->path = strdup(path);
	if (!s->path)
		return -ENOMEM;
	r = sd_event_add_defer(loop, &s->later, on_later, s);
	if (r == 0)
		r = sd_event_source_set_enabled(s->later, SD_EVENT_OFF);
	if (r == 0)
		r = lock(s, why);
	if (r == 0)
		r = load(s, why);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(store);
	return 0;
}
