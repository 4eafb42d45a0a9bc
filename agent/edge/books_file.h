/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The books on disk: a JSON text, so that an agent that was restarted goes on where the last
 * one stopped. It has tokens in it: mode 0600. Tenants of the configuration are not in it.
 */
#ifndef TALLY_AGENT_BOOKS_FILE_H
#define TALLY_AGENT_BOOKS_FILE_H

#include "agent/core/books.h"

/* In the place of what was there, whole or not at all, whenever the machine stops. */
int books_write(const struct books *b, const char *path, struct why *why);

/*
 * Into books that have the node's slots and the configured tenants; a tenant that is in both
 * is the configuration's. Ranks that were running are detached. -ENOENT: there is no such file;
 * -EINVAL: it is not what books_write() wrote; the books are then to be cleared.
 */
int books_read(struct books *b, const char *path, struct why *why);

/* The same from a text. Pure. `name` leads in `why`. */
int books_parse(struct books *b, const char *text, size_t length, const char *name,
		struct why *why);

/* To be freed; NULL: no memory. Pure. */
char *books_print(const struct books *b);

#endif
