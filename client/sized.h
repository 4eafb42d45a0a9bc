/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Structs of programs that are older or newer than this library (docs/decisions/0006). */
#ifndef TALLY_CLIENT_SIZED_H
#define TALLY_CLIENT_SIZED_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <tally/tally.h>

#include "error.h"

/* The caller's struct as this library knows it; what the caller lacks is 0. Sets the error text. */
static inline int sized_take(void *ret, size_t known, const void *from, size_t size)
{
	const uint8_t *byte = from;

	if (!size)
		return error_set(-EINVAL, "size: 0; it is sizeof of the caller's struct");
	for (size_t i = known; i < size; i++)
		if (byte[i])
			return error_set(-E2BIG,
					 "an option is set that this library, version %s, "
					 "does not know: it is older than the program",
					 tally_version());
	memset(ret, 0, known);
	memcpy(ret, from, size < known ? size : known);
	return 0;
}

/* Fills the caller's struct; what this library does not know is 0. */
static inline void sized_give(void *ret, size_t size, const void *from, size_t known)
{
	memset(ret, 0, size);
	memcpy(ret, from, size < known ? size : known);
}

#endif
