/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The text behind tally_error(): one per thread, set where an error is first known. */
#ifndef TALLY_CLIENT_ERROR_H
#define TALLY_CLIENT_ERROR_H

/* Sets the text and returns `error`, a negative errno. */
int error_set(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
