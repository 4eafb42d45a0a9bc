/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef TALLY_TOOLS_VECTORS_CALLS_H
#define TALLY_TOOLS_VECTORS_CALLS_H

/* Makes one call after another, and shows what is sent. */
void calls_print(void);

#endif
