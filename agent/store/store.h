/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first. What agents of a cluster share: keys with values, each with the revision of
 * its last change. One small interface, two implementations: store_local.c, a file of this machine,
 * and store_etcd.c, an etcd cluster.
 *
 * A write is all or nothing, and only if what it says it has seen is so still: that is
 * compare-and-swap, and no update is lost. Whoever follows a prefix is told all that is there, and
 * then each change in its order; after a connection was lost, what has changed meanwhile. What was
 * written as `leased` goes when this process ends, or is cut off for longer than STORE_LEASE_S.
 *
 * All callbacks come from the event loop, never from within a call of this interface. They may call
 * any of these functions but store_close().
 */
#ifndef TALLY_AGENT_STORE_H
#define TALLY_AGENT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/why.h"

enum {
	STORE_KEY_BYTES = 256, /* with its end; bytes from '!' to '~' */
	STORE_VALUE_BYTES = 1 << 19, /* with its end; UTF-8 */
	STORE_CHANGES_MAX = 64, /* of a write; the same for what it has seen */
	STORE_LEASE_S = 10,
};

struct store;
typedef struct sd_event sd_event; /* systemd/sd-event.h */

struct store_item {
	const char *key, *value; /* value NULL: the key is not there any more */
	uint64_t revision; /* of its last change, from 1 on; of one that is not there: 0 */
};

/* Nobody has changed the key since; revision 0: it is not there. */
struct store_seen {
	const char *key;
	uint64_t revision;
};

struct store_change {
	const char *key, *value; /* value NULL: the key goes; it need not be there */
	bool leased;
};

struct store_write {
	const struct store_seen *seen;
	unsigned int seens;
	const struct store_change *change; /* no key twice */
	unsigned int changes;
};

/*
 * What came of a write. 0: all of it was done, at this revision. -ESTALE: something is not as it
 * was seen, and nothing was done. -ENOTCONN: nothing was done, since the store is not reached.
 * -ETIMEDOUT: it may have been done or not, and followers are told if it was. -EACCES: the store
 * does not allow it; -EMSGSIZE: it is too large for the store; -EIO: anything else, and nothing was
 * done. `why` says more of errors, in words.
 */
typedef void store_done(void *context, int error, uint64_t revision, const char *why);

/* What a follower is told. */
struct store_follower {
	/* A key has come, has another value, or has gone. The item lives during the call. */
	void (*changed)(void *context, const struct store_item *item);
	/* All that was told until now is all that there was at this revision. Not for each one:
	 * where nothing changes, seldom. */
	void (*current)(void *context, uint64_t revision);
	void *context;
	/* Or NULL: what is there is another store's, or an older state of this one, as when its
	 * data was lost or put back. What goes from here until `current` nobody has deleted, and
	 * each key that is there is told again, with a revision that may be lower than before.
	 * Perhaps more than once before `current`. */
	void (*reset)(void *context);
};

struct store_kind {
	const char *name;
	int (*write)(struct store *s, const struct store_write *w, store_done *done, void *context);
	int (*follow)(struct store *s, const char *prefix, const struct store_follower *f);
	uint64_t (*heard_ns)(const struct store *s);
	void (*close)(struct store *s);
};

/* What each implementation's own struct begins with. */
struct store {
	const struct store_kind *kind;
	/* What was leased has gone, and is to be written again: the caller's, set before the first
	 * write; or NULL. */
	void (*lost)(void *context);
	void *lost_context;
};

/*
 * *ret is the caller's, for store_close(), which allows NULL: what is under way then is told to
 * nobody. `path`: a file, which need not be there. -EBUSY: another process has it; -EINVAL: the
 * file is none of ours; what reading says.
 */
int store_open_local(sd_event *loop, const char *path, struct store **ret, struct why *why);

struct store_etcd_options {
	const char *endpoints; /* URLs with spaces between them: http://... or https://... */
	const char *ca, *certificate, *key; /* files; NULL: none */
	const char *user, *password; /* NULL: none. The password is copied, and wiped at the end */
	const char *prefix; /* before all keys there, such as /tally/lab/ */
};

/* -EINVAL, -ENOMEM. Whether etcd is there does not matter. */
int store_open_etcd(sd_event *loop, const struct store_etcd_options *o, struct store **ret,
		    struct why *why);

/* The same by the module that is loaded then. -ENOENT, -EINVAL: it is not there, or another one. */
int store_open_etcd_module(sd_event *loop, const struct store_etcd_options *o, struct store **ret,
			   struct why *why);

void store_close(struct store *s);
static inline void store_closep(struct store **s) { store_close(*s); }

/*
 * `done` comes once, later. Writes are done in the order of these calls. -EINVAL: keys or values
 * that no store takes; -ENOMEM: then `done` does not come.
 */
int store_write(struct store *s, const struct store_write *w, store_done *done, void *context);

/* All keys that begin with `prefix`, as long as the store is open. -EINVAL, -ENOMEM. */
int store_follow(struct store *s, const char *prefix, const struct store_follower *f);

/* When the store was last heard of, of clock_now_ns(); 0: never. What followers know is so old. */
uint64_t store_heard_ns(const struct store *s);

#endif
