/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Data and scripts for gnuplot: completion times, use of links, traffic, fairness. */
#ifndef TALLY_SIM_PLOT_H
#define TALLY_SIM_PLOT_H

#include "report.h"

/* Makes the folder if it is not there; 0: one may write there. Otherwise `why` tells. */
int plot_folder(const char *folder, struct why *why);

/*
 * Into the folder: completion.dat and links.dat (for each policy,
 * in ascending order, with the share of jobs or links that are not above), figures.dat (a line for
 * each policy), and plots.gp, which makes an SVG of each when it is run in the folder. 0, or what
 * went wrong with the file of which `why` tells.
 */
int plot_write(const struct report *r, const char *folder, struct why *why);

#endif
