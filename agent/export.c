// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "agent.h"

int export_open(struct agent *a, struct why *why) { return 0; }

void export_close(struct agent *a) {}
