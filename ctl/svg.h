/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The network of a cluster as a picture: SVG, for light and dark screens. Pure but for writing. */
#ifndef TALLY_CTL_SVG_H
#define TALLY_CTL_SVG_H

#include <jansson.h>
#include <stdio.h>

#include "common/why.h"

/*
 * `topology` is what that request answers, and `job` one of cluster-jobs that was named, whose tree
 * is drawn on it; or NULL. Texts may be any. -E2BIG: more than LAYERS_MACHINES_MAX or
 * LAYERS_LINKS_MAX, and why: nothing is written; -ENOMEM.
 */
int svg_print(const json_t *topology, const json_t *job, FILE *out, struct why *why);

#endif
