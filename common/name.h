/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of jobs and tenants, and tokens of jobs. Pure. */
#ifndef TALLY_COMMON_NAME_H
#define TALLY_COMMON_NAME_H

#include <stdbool.h>

enum {
	NAME_BYTES = 64, /* of a job's or tenant's name, with its end */
	TOKEN_BYTES = 129, /* of a token, with its end */
};

/* 1 to 63 of a-z, 0-9, '.', '_' and '-', of which the first is a letter or a digit. */
bool name_is_valid(const char *name);

/* 1 to 128 of A-Z, a-z, 0-9, '_' and '-'. */
bool token_is_valid(const char *token);

#endif
