/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What is said to etcd's JSON gateway and what it answers (etcd 3.4, /v3/...): keys and values are
 * base64, 64-bit numbers are strings, and fields that are 0 or false are left out. Pure.
 *
 * Keys have the store's prefix in front of them there, and not here.
 */
#ifndef TALLY_AGENT_STORE_ETCD_TEXT_H
#define TALLY_AGENT_STORE_ETCD_TEXT_H

#include "store.h"

/* --- requests: the caller's to free; NULL: no memory ----------------------------------------- */

/* lease: 0: none, and nothing of the write is leased. */
char *etcd_write(const char *prefix, const struct store_write *w, uint64_t lease);

/*
 * Up to `limit` keys that begin with `of`, behind key `after` (NULL: from the first one on), as
 * they were at this revision; 0: now.
 */
char *etcd_range(const char *prefix, const char *of, const char *after, uint64_t revision,
		 unsigned int limit);

/* All changes of keys that begin with `of`, from this revision on. */
char *etcd_watch(const char *prefix, const char *of, uint64_t revision);

char *etcd_grant(unsigned int seconds);
char *etcd_keep(uint64_t lease);
char *etcd_revoke(uint64_t lease);
char *etcd_login(const char *user, const char *password);

/* --- answers --------------------------------------------------------------------------------- */

enum etcd_fault {
	ETCD_NONE,
	ETCD_COMPACTED, /* that revision is not there any more */
	ETCD_LEASE, /* no such lease */
	ETCD_LOGIN, /* the token does not count any more, or there is none */
	ETCD_FORBIDDEN,
	ETCD_TOO_LARGE,
	ETCD_AWAY, /* this member cannot do it now, and perhaps it was done */
	ETCD_OTHER,
};

/* What is wrong, by etcd's error codes and texts; `why` has the text. ETCD_NONE: this is no error.
 */
enum etcd_fault etcd_fault(const char *text, size_t length, struct why *why);

struct etcd_written {
	bool done; /* false: something was not as it had been seen */
	uint64_t revision;
};

/* -EINVAL: these are not the words of etcd. */
int etcd_read_written(const char *text, size_t length, struct etcd_written *ret);

/* 0: no such lease. */
int etcd_read_lease(const char *text, size_t length, uint64_t *ret);

/* The caller's to free. */
int etcd_read_token(const char *text, size_t length, char **ret);

struct etcd_told {
	uint64_t revision; /* of the store */
	uint64_t cluster; /* its number: another one is another store. 0: it was not said */
	bool more; /* of a range: there are further keys */
	uint64_t compacted; /* of a watch: it ended, since all before this revision is gone */
	bool ended; /* of a watch */
};

/*
 * What a range or a line of a watch says: `item` gets each key, without the prefix, in order;
 * value NULL: it has gone. `item` of a range may be NULL. A key with a NUL in it is left out, and a
 * value with one is "": whoever takes values says that it is not understood. -EINVAL: not the words
 * of etcd, or a key without the prefix; what `item` returns.
 */
int etcd_read_range(const char *text, size_t length, const char *prefix,
		    int (*item)(void *context, const struct store_item *item), void *context,
		    struct etcd_told *ret);
int etcd_read_watch(const char *text, size_t length, const char *prefix,
		    int (*item)(void *context, const struct store_item *item), void *context,
		    struct etcd_told *ret);

#endif
