/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What doctor found: level, text, and the command that mends it. */
#ifndef TALLY_CTL_FINDING_H
#define TALLY_CTL_FINDING_H

#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>

#include "style.h"

enum finding_level {
	FINDING_OK,
	FINDING_UNKNOWN, /* could not be checked; the text says why */
	FINDING_WARN, /* works, but slower, or not in all cases */
	FINDING_FAIL, /* does not work */
	FINDING_LEVELS,
};

enum {
	FINDINGS_MAX = 1024, /* further ones are counted, but not kept */
};

struct finding {
	enum finding_level level;
	const char *check; /* its name: a constant */
	char subject[IF_NAMESIZE]; /* a port; "" for the node */
	char text[384];
	char mend[256]; /* a command; "" if there is none */
};

/* All zero: no findings. Too large for the stack. */
struct findings {
	struct finding finding[FINDINGS_MAX];
	unsigned int count;
	unsigned int of_level[FINDING_LEVELS];
	const char *check; /* check and subject of the findings that are added next */
	const char *subject;
};

__attribute__((format(printf, 3, 4))) void finding_add(struct findings *f, enum finding_level level,
						       const char *format, ...);

/* Sets the command that mends the last finding. */
__attribute__((format(printf, 2, 3))) void finding_mend(struct findings *f, const char *format,
							...);

void findings_print(FILE *out, const struct style *style, const struct findings *f);
void findings_dump(const struct findings *f); /* JSON on standard output, one line */

#endif
