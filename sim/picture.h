/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A picture of a network with the loads of its cables, as SVG. Pure. */
#ifndef TALLY_SIM_PICTURE_H
#define TALLY_SIM_PICTURE_H

#include <stdio.h>

#include "play.h"

enum {
	PICTURE_MACHINES_MAX = 5000, /* more would be a grey block */
};

/*
 * Machines stand in rows: hosts below, and each other machine as high as it is far from the nearest
 * host. A cable is as wide and as red as its busier direction is used until the last job ends; a
 * node is as green as it was in many trees. A legend says so below. -E2BIG, -ENOMEM.
 */
int picture_draw(const struct topology *t, const struct play_result *r, FILE *to);

#endif
