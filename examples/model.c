// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "model.h"

#include <err.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		errx(EXIT_FAILURE, "no memory for %zu times %zu bytes", count, size);
	return p;
}

enum {
	TILE_ROWS = 4,
	TILE_COLUMNS = 8
};

/* A matrix that is read: element (i, k) stands at data[i * row + k * column]. */
struct view {
	const float *data;
	size_t row, column;
};

/* One tile, whose sums stay in registers: plain loops of constant length. */
static void multiply_tile(struct view a, const float *restrict b, size_t inner, size_t columns,
			  float *restrict c)
{
	float sum[TILE_ROWS][TILE_COLUMNS];

	for (size_t i = 0; i < TILE_ROWS; i++)
		for (size_t j = 0; j < TILE_COLUMNS; j++)
			sum[i][j] = c[i * columns + j];
	for (size_t k = 0; k < inner; k++) {
		for (size_t i = 0; i < TILE_ROWS; i++) {
			float x = a.data[i * a.row + k * a.column];

			for (size_t j = 0; j < TILE_COLUMNS; j++)
				sum[i][j] += x * b[k * columns + j];
		}
	}
	for (size_t i = 0; i < TILE_ROWS; i++)
		for (size_t j = 0; j < TILE_COLUMNS; j++)
			c[i * columns + j] = sum[i][j];
}

/* c += a b; c is rows by columns, b inner by columns. Sums run over k in order: same bits. */
static void multiply_add(struct view a, const float *b, size_t rows, size_t inner, size_t columns,
			 float *c)
{
	size_t tiled_rows = rows / TILE_ROWS * TILE_ROWS;
	size_t tiled_columns = columns / TILE_COLUMNS * TILE_COLUMNS;

	for (size_t j = 0; j < tiled_columns; j += TILE_COLUMNS) {
		for (size_t i = 0; i < tiled_rows; i += TILE_ROWS) {
			struct view from_i = { a.data + i * a.row, a.row, a.column };

			multiply_tile(from_i, b + j, inner, columns, c + i * columns + j);
		}
	}
	for (size_t i = 0; i < rows; i++) {
		for (size_t j = i < tiled_rows ? tiled_columns : 0; j < columns; j++) {
			float sum = c[i * columns + j];

			for (size_t k = 0; k < inner; k++)
				sum += a.data[i * a.row + k * a.column] * b[k * columns + j];
			c[i * columns + j] = sum;
		}
	}
}

void pass_forward(const struct model *m, struct pass *p)
{
	for (size_t i = 0; i < p->count; i++) {
		memcpy(p->hidden[i], m->hidden_bias, sizeof(m->hidden_bias));
		memcpy(p->class[i], m->class_bias, sizeof(m->class_bias));
	}
	multiply_add((struct view){ p->pixel[0], DATASET_PIXELS, 1 }, m->pixel_weight[0], p->count,
		     DATASET_PIXELS, HIDDEN, p->hidden[0]);
	for (size_t i = 0; i < p->count; i++)
		for (size_t j = 0; j < HIDDEN; j++)
			p->hidden[i][j] = p->hidden[i][j] > 0 ? p->hidden[i][j] : 0;
	multiply_add((struct view){ p->hidden[0], HIDDEN, 1 }, m->hidden_weight[0], p->count,
		     HIDDEN, DATASET_CLASSES, p->class[0]);
}

double pass_softmax(struct pass *p)
{
	double loss = 0;

	for (size_t i = 0; i < p->count; i++) {
		float *class = p->class[i], highest = class[0], sum = 0;

		for (int c = 1; c < DATASET_CLASSES; c++)
			highest = class[c] > highest ? class[c] : highest;
		loss -= class[p->label[i]] - highest;
		for (int c = 0; c < DATASET_CLASSES; c++)
			sum += class[c] = expf(class[c] - highest);
		loss += logf(sum);
		for (int c = 0; c < DATASET_CLASSES; c++)
			class[c] = (class[c] / sum - (c == p->label[i])) / (float)p->count;
	}
	return loss / (double)p->count;
}

void pass_backward(const struct model *m, struct pass *p, struct model *gradient)
{
	float transposed[DATASET_CLASSES][HIDDEN];

	for (size_t j = 0; j < HIDDEN; j++)
		for (size_t c = 0; c < DATASET_CLASSES; c++)
			transposed[c][j] = m->hidden_weight[j][c];
	memset(gradient, 0, sizeof(*gradient));
	memset(p->hidden_gradient, 0, p->count * sizeof(*p->hidden_gradient));

	multiply_add((struct view){ p->class[0], DATASET_CLASSES, 1 }, transposed[0], p->count,
		     DATASET_CLASSES, HIDDEN, p->hidden_gradient[0]);
	for (size_t i = 0; i < p->count; i++) {
		for (size_t c = 0; c < DATASET_CLASSES; c++)
			gradient->class_bias[c] += p->class[i][c];
		for (size_t j = 0; j < HIDDEN; j++) {
			p->hidden_gradient[i][j] *= p->hidden[i][j] > 0;
			gradient->hidden_bias[j] += p->hidden_gradient[i][j];
		}
	}
	multiply_add((struct view){ p->hidden[0], 1, HIDDEN }, p->class[0], HIDDEN, p->count,
		     DATASET_CLASSES, gradient->hidden_weight[0]);
	multiply_add((struct view){ p->pixel[0], 1, DATASET_PIXELS }, p->hidden_gradient[0],
		     DATASET_PIXELS, p->count, HIDDEN, gradient->pixel_weight[0]);
}

void model_step(struct model *m, const struct model *gradient, struct model *velocity)
{
	const float rate = 0.05f, momentum = 0.9f;
	const float *restrict g = gradient->pixel_weight[0];
	float *restrict v = velocity->pixel_weight[0], *restrict w = m->pixel_weight[0];

	for (size_t i = 0; i < PARAMETERS; i++) {
		v[i] = momentum * v[i] + g[i];
		w[i] -= rate * v[i];
	}
}

/* --- randomness and samples: the same on all workers */

/* splitmix64 */
static uint64_t random_next(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static void randomise(float *weight, size_t count, float inputs, uint64_t *state)
{
	for (size_t i = 0; i < count; i++)
		weight[i] = ((float)(random_next(state) >> 40) * 0x1p-23f - 1) * sqrtf(6 / inputs);
}

void model_randomise(struct model *m, uint64_t seed)
{
	randomise(m->pixel_weight[0], DATASET_PIXELS * HIDDEN, DATASET_PIXELS, &seed);
	randomise(m->hidden_weight[0], HIDDEN * DATASET_CLASSES, HIDDEN, &seed);
}

void order_shuffle(uint32_t *order, size_t count, uint64_t seed, unsigned int epoch)
{
	uint64_t state = seed ^ (uint64_t)(epoch + 1) << 32;

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count; i-- > 1;) {
		size_t other = random_next(&state) % (i + 1);
		uint32_t kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

void pass_put(struct pass *p, size_t i, const struct dataset *d, size_t from)
{
	const uint8_t *restrict pixel = d->pixel + from * DATASET_PIXELS;
	float *restrict to = p->pixel[i];

	for (size_t k = 0; k < DATASET_PIXELS; k++)
		to[k] = ((float)pixel[k] - 72.94f) * (1 / 90.02f);
	p->label[i] = d->label[from];
}

void pass_new(struct pass *p, size_t count)
{
	p->pixel = allocate(count, sizeof(*p->pixel));
	p->hidden = allocate(count, sizeof(*p->hidden));
	p->class = allocate(count, sizeof(*p->class));
	p->hidden_gradient = allocate(count, sizeof(*p->hidden_gradient));
	p->label = allocate(count, sizeof(*p->label));
}

void pass_free(struct pass *p)
{
	free(p->pixel);
	free(p->hidden);
	free(p->class);
	free(p->hidden_gradient);
	free(p->label);
}
