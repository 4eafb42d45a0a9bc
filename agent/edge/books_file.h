/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The state file: the books as JSON, so that a restarted agent goes on where the last one stopped.
 * The file has tokens, so its mode is 0600. It does not have the tenants of the configuration.
 */
#ifndef TALLY_AGENT_BOOKS_FILE_H
#define TALLY_AGENT_BOOKS_FILE_H

#include "agent/core/books.h"

#define BOOKS_KEPT ".old" /* behind the name of the file: as an agent found it at its start */

/*
 * Makes this process the only agent that has the file, until the process ends. -EBUSY: another one
 * has. There need not be a file yet.
 */
int books_lock(const char *path, struct why *why);

/*
 * Where the file is that a symbolic link of this name leads to, in the place of the name: there the
 * file is locked and replaced. An error: the link leads nowhere.
 */
int books_resolve(char *path, size_t size, struct why *why);

/*
 * Keeps the file as it is now beside those that will replace it. 1: others could read the file,
 * which has tokens, and cannot any more.
 */
int books_keep(const char *path, struct why *why);

/* Replaces the file as a whole: after a crash there is either the old file or the new one. */
int books_write(const struct books *b, const char *path, struct why *why);

/*
 * Reads the file into books that have the node's slots and the configured tenants; of a tenant in
 * both, the file's counts (books_tenant_restore()). Ranks that were running become detached, and
 * jobs of tenants that are not there suspended. -ENOENT: there is no such file, and for no other
 * reason; -ENOSPC: its tenants are more than the node has for them; -EINVAL, -EEXIST, -EFBIG:
 * books_write() did not write it. After an error the caller must clear the books.
 */
int books_read(struct books *b, const char *path, struct why *why);

/* The same from a text. `why` begins with `name`. Pure. */
int books_parse(struct books *b, const char *text, size_t length, const char *name,
		struct why *why);

/* The text of the file; the caller frees it. NULL: no memory. Pure. */
char *books_print(const struct books *b);

#endif
