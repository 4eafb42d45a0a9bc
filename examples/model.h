/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A small network that learns to tell clothes apart: plain loops, the same bits on all workers. */
#ifndef TALLY_EXAMPLES_MODEL_H
#define TALLY_EXAMPLES_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "dataset.h"

enum {
	HIDDEN = 128,
};

/* 784 pixels, HIDDEN rectified units, 10 classes; all in one flat buffer. */
struct model {
	float pixel_weight[DATASET_PIXELS][HIDDEN];
	float hidden_bias[HIDDEN];
	float hidden_weight[HIDDEN][DATASET_CLASSES];
	float class_bias[DATASET_CLASSES];
};

enum {
	PARAMETERS = sizeof(struct model) / sizeof(float),
	MODEL_LAYERS = 2,
};

/* Its parameters by layer, in the order of a forward pass: elements of the buffer. */
static const struct {
	size_t first, count;
} model_layers[MODEL_LAYERS] = {
	{ 0, offsetof(struct model, hidden_weight) / sizeof(float) },
	{ offsetof(struct model, hidden_weight) / sizeof(float),
	  PARAMETERS - offsetof(struct model, hidden_weight) / sizeof(float) },
};

_Static_assert(sizeof(struct model) == PARAMETERS * sizeof(float), "only floats, no holes");
_Static_assert(PARAMETERS == (DATASET_PIXELS + 1) * HIDDEN + (HIDDEN + 1) * DATASET_CLASSES, "");

/* A share of a batch on its way through the model. */
struct pass {
	size_t count;
	float (*pixel)[DATASET_PIXELS];
	float (*hidden)[HIDDEN];
	float (*class)[DATASET_CLASSES]; /* scores, then probabilities, then their gradient */
	float (*hidden_gradient)[HIDDEN];
	uint8_t *label;
};

/* Zeroed; ends the program where there is no memory. */
void *allocate(size_t count, size_t size);

/* Weights uniform within +-sqrt(6 / inputs), as fits rectified units; biases stay as they are. */
void model_randomise(struct model *m, uint64_t seed);

/* Gradient descent with momentum. */
void model_step(struct model *m, const struct model *gradient, struct model *velocity);

/* Room for `count` samples, to be given to pass_free(). */
void pass_new(struct pass *p, size_t count);
void pass_free(struct pass *p);

/* Sample `from` becomes sample `i` of the pass, with mean 0 and variance 1 over the data set. */
void pass_put(struct pass *p, size_t i, const struct dataset *d, size_t from);

/* Pixels to scores; scores to the gradient of the mean cross-entropy, which is returned; and back.
 */
void pass_forward(const struct model *m, struct pass *p);
double pass_softmax(struct pass *p);
void pass_backward(const struct model *m, struct pass *p, struct model *gradient);

/* The samples 0 .. count - 1 in the order of this epoch. */
void order_shuffle(uint32_t *order, size_t count, uint64_t seed, unsigned int epoch);

#endif
