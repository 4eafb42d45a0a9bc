/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whose slots are in use: for people who ask why a run has none. Pure. */
#ifndef TALLY_AGENT_HOLDERS_H
#define TALLY_AGENT_HOLDERS_H

#include "books.h"

/*
 * Such as "in use: 64 by alpha, 32 by beta, 128 by other tenants, of 256". It names jobs of this
 * tenant alone, and the first few of them.
 */
void holders_print(const struct books *b, unsigned int tenant, char *text, size_t size);

/* Why a run that is on has no slots of its own, as far as that can be seen now; "": it has. */
void holders_explain(const struct books *b, const struct job *j, struct why *ret);

#endif
