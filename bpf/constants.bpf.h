/* SPDX-License-Identifier: GPL-2.0-only */
/* What user space sets before it loads the program. */
#ifndef TALLY_CONSTANTS_BPF_H
#define TALLY_CONSTANTS_BPF_H

#include "maps.bpf.h"

/* In a map of its own, so that every version of the agent can read it. */
const volatile struct tally_constants constants SEC(".rodata.node");

#endif
