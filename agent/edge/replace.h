/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file whose owner alone may read it, replaced as a whole. */
#ifndef TALLY_AGENT_REPLACE_H
#define TALLY_AGENT_REPLACE_H

/*
 * After a crash, also of the machine, there is either the old file or the new one. `text` is all of
 * it; PATH.new is used meanwhile. A negative errno: the old one is there still, or, of the
 * directory alone, perhaps the new one.
 */
int replace_file(const char *path, const char *text);

#endif
