/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What one knows of the keys below a prefix: a copy that is kept by changes, or read anew as a
 * whole; and the follower who is told of each difference. Pure.
 */
#ifndef TALLY_AGENT_STORE_MIRROR_H
#define TALLY_AGENT_STORE_MIRROR_H

#include "store.h"

struct mirror_item {
	char *key, *value;
	uint64_t revision;
	bool leased; /* the store's own business */
	bool is_new; /* seen since mirror_reread() */
};

/* Zeros are an empty one; for mirror_close(). */
struct mirror {
	struct mirror_item *item; /* by key */
	size_t items, room;
};

void mirror_close(struct mirror *m);

/* NULL: it is not there. Valid until the mirror changes. */
struct mirror_item *mirror_find(const struct mirror *m, const char *key);

/*
 * A key has this value since this revision. `f`, or NULL, is told unless that was known. An older
 * revision than the one that is known changes nothing. -ENOMEM: the same as before.
 */
int mirror_put(struct mirror *m, const struct store_item *item, const struct store_follower *f);

/* A key is not there. */
void mirror_drop(struct mirror *m, const char *key, const struct store_follower *f);

/* What is read next is another store's: each key that is there is told, whatever its revision. */
void mirror_reset(struct mirror *m);

/* All is read anew: what is not put until mirror_reread_end() is not there any more. */
void mirror_reread(struct mirror *m);
void mirror_reread_end(struct mirror *m, const struct store_follower *f);

#endif
