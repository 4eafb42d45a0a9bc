/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reading a small file as a whole, and writing to standard output. */
#ifndef TALLY_COMMON_FILE_H
#define TALLY_COMMON_FILE_H

#include <stddef.h>

/*
 * The bytes of a file, with a NUL behind them; *ret is the caller's, to be freed. -EFBIG: it has
 * more than `bytes_max`; -ENOMEM; and what opening and reading may say.
 */
int file_read(const char *path, size_t bytes_max, char **ret, size_t *ret_length);

/* 1: any user of the machine may read or write it; 0: not so; or -errno. */
int file_is_open_to_all(const char *path);

/*
 * From now on the program fails when it ends, in words, if something that it printed could not be
 * written. A reader that closed the pipe is no failure.
 */
void file_watch_output(void);

#endif
