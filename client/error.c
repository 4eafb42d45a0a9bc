// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "error.h"

#include <stdarg.h>
#include <stdio.h>

#include <tally/tally.h>

static _Thread_local char text[512];

int error_set(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error;
}

const char *tally_error(void) { return text; }
