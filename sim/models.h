/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How large the gradients of known networks are. Pure. */
#ifndef TALLY_SIM_MODELS_H
#define TALLY_SIM_MODELS_H

/* Seconds that a worker computes in an iteration, where nothing else is said: VGG19 in InArt's
 * testbed takes 0.69 s an iteration, of which 0.31 s are communication (WWW 2024). */
#define MODEL_COMPUTE_S 0.38

struct model {
	const char *name;
	double bytes; /* of a whole gradient, as 32-bit floats */
	const char *source;
};

extern const struct model MODELS[];
extern const unsigned int MODELS_COUNT;

const struct model *model_find(const char *name); /* or NULL */

#endif
