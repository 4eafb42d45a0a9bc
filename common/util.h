/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ownership that one can see in one function, and errors that say why. */
#ifndef TALLY_COMMON_UTIL_H
#define TALLY_COMMON_UTIL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
#define TAKE_FD(fd) TAKE(fd, -1)

static inline void freep(void *pointer) { free(*(void **)pointer); }

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Why something failed, for people: what is wrong, and what to do about it. */
struct why {
	char text[512];
};

/* Says it, and returns `error`, a negative errno. */
__attribute__((format(printf, 3, 4))) static inline int why_say(struct why *why, int error,
								const char *format, ...)
{
	va_list values;

	va_start(values, format);
	vsnprintf(why->text, sizeof(why->text), format, values);
	va_end(values);
	return error;
}

#endif
