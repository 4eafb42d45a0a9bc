/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ownership that a reader can see in one function. */
#ifndef TALLY_COMMON_OWNED_H
#define TALLY_COMMON_OWNED_H

#include <stdlib.h>

#define _cleanup_(f) __attribute__((cleanup(f)))

/* What a variable owned is now the caller's of TAKE_*; the variable owns nothing any more. */
#define TAKE(variable, nothing)                         \
	__extension__({                                 \
		__typeof__(variable) *_v = &(variable); \
		__typeof__(variable) _taken = *_v;      \
		*_v = (nothing);                        \
		_taken;                                 \
	})
#define TAKE_PTR(pointer) TAKE(pointer, NULL)

static inline void freep(void *pointer) { free(*(void **)pointer); }

#endif
