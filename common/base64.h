/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Base64 with padding (RFC 4648, section 4). Pure. */
#ifndef TALLY_COMMON_BASE64_H
#define TALLY_COMMON_BASE64_H

#include <stddef.h>

/* With its end; the caller's to free. NULL: no memory. */
char *base64_print(const void *bytes, size_t length);

/* The bytes, with a NUL behind them; the caller's to free. -EINVAL: this is no base64; -ENOMEM. */
int base64_parse(const char *text, size_t length, char **ret, size_t *ret_length);

#endif
