/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Errors that say why. */
#ifndef TALLY_COMMON_WHY_H
#define TALLY_COMMON_WHY_H

#include <stdarg.h>
#include <stdio.h>

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
