// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Data-parallel training with Tally, whole and in plain C: a small network learns to tell
 * clothes apart. Each worker computes the gradient of its share of a batch; one call
 * averages it over all workers; all of them take the same step.
 *
 *	for each batch:
 *		gradient(model, my share of it)
 *		tally_allreduce(gradient, TALLY_FLOAT32, TALLY_AVG)
 *		step(model)
 *
 * `train --alone` does the same in one process, without the library.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <tally/tally.h>

#include "dataset.h"

enum {
	HIDDEN = 128,
	EPOCHS_MAX = 10000,
	BATCH_MAX = 60000,
	EXIT_USAGE = 2,
};

struct options {
	const char *job; /* the file; NULL: alone, or through an agent */
	const char *join, *agent; /* the job's name and its agent; NULL: as libtally finds them */
	const char *data;
	bool alone, joins, json, progress;
	int rank; /* -1: not said */
	unsigned int epochs, batch; /* batch: of all workers together */
	uint64_t seed;
};

/* --- the model: 784 pixels, HIDDEN rectified units, 10 classes; all in one flat buffer */

struct model {
	float pixel_weight[DATASET_PIXELS][HIDDEN];
	float hidden_bias[HIDDEN];
	float hidden_weight[HIDDEN][DATASET_CLASSES];
	float class_bias[DATASET_CLASSES];
};

enum {
	PARAMETERS = sizeof(struct model) / sizeof(float)
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

struct worker {
	struct tally *tally; /* NULL: alone */
	unsigned int rank, workers;
	struct options options;
	struct dataset training, testing;
	struct model *model, *gradient, *velocity;
	struct pass pass; /* room for batch / workers */
	uint32_t *order;	 /* of the training samples in this epoch */
	double reduce_seconds;
};

static double seconds_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *allocate(size_t count, size_t size)
{
	void *p = calloc(count, size);

	if (!p)
		errx(EXIT_FAILURE, "no memory for %zu times %zu bytes", count, size);
	return p;
}

/* --- arithmetic */

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

static void forward(const struct model *m, struct pass *p)
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

/* Scores to the gradient of the mean cross-entropy, which is returned. */
static double softmax(struct pass *p)
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

static void backward(const struct model *m, struct pass *p, struct model *gradient)
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

/* Gradient descent with momentum. */
static void step(struct model *m, const struct model *gradient, struct model *velocity)
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

/* Uniform within +-sqrt(6 / inputs), as fits rectified units. */
static void model_randomise(struct model *m, uint64_t seed)
{
	uint64_t state = seed;

	for (size_t i = 0; i < DATASET_PIXELS; i++)
		for (size_t j = 0; j < HIDDEN; j++)
			m->pixel_weight[i][j] = ((float)(random_next(&state) >> 40) * 0x1p-23f -
						 1) *
						sqrtf(6.f / DATASET_PIXELS);
	for (size_t i = 0; i < HIDDEN; i++)
		for (size_t j = 0; j < DATASET_CLASSES; j++)
			m->hidden_weight[i][j] = ((float)(random_next(&state) >> 40) * 0x1p-23f -
						  1) *
						 sqrtf(6.f / HIDDEN);
}

static void order_shuffle(uint32_t *order, size_t count, uint64_t seed, unsigned int epoch)
{
	uint64_t state = seed ^ (uint64_t)(epoch + 1) << 32;

	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	for (size_t i = count - 1; i > 0; i--) {
		size_t other = random_next(&state) % (i + 1);
		uint32_t kept = order[i];

		order[i] = order[other];
		order[other] = kept;
	}
}

/* Sample `from` into place `i` of the pass, with mean 0 and variance 1 over the data set. */
static void pass_put(struct pass *p, size_t i, const struct dataset *d, size_t from)
{
	const uint8_t *restrict pixel = d->pixel + from * DATASET_PIXELS;
	float *restrict to = p->pixel[i];

	for (size_t k = 0; k < DATASET_PIXELS; k++)
		to[k] = ((float)pixel[k] - 72.94f) * (1 / 90.02f);
	p->label[i] = d->label[from];
}

static void pass_new(struct pass *p, size_t count)
{
	p->pixel = allocate(count, sizeof(*p->pixel));
	p->hidden = allocate(count, sizeof(*p->hidden));
	p->class = allocate(count, sizeof(*p->class));
	p->hidden_gradient = allocate(count, sizeof(*p->hidden_gradient));
	p->label = allocate(count, sizeof(*p->label));
}

static void pass_free(struct pass *p)
{
	free(p->pixel);
	free(p->hidden);
	free(p->class);
	free(p->hidden_gradient);
	free(p->label);
}

/* --- together: what the workers say to each other */

static void check(int r, const char *what)
{
	if (r < 0)
		errx(EXIT_FAILURE, "%s: %s", what, tally_error());
}

static void share_gradient(struct worker *w)
{
	double start = seconds_now();

	if (w->tally)
		check(tally_allreduce(w->tally, w->gradient, w->gradient, PARAMETERS, TALLY_FLOAT32,
				      TALLY_AVG),
		      "averaging the gradient");
	w->reduce_seconds += seconds_now() - start;
}

static void share_weights(struct worker *w)
{
	if (w->rank == 0)
		model_randomise(w->model, w->options.seed);
	if (w->tally)
		check(tally_broadcast(w->tally, w->model, PARAMETERS, TALLY_FLOAT32, 0),
		      "broadcasting the first weights");
}

static float share_mean(struct worker *w, float mine)
{
	if (w->tally)
		check(tally_allreduce(w->tally, &mine, &mine, 1, TALLY_FLOAT32, TALLY_AVG),
		      "averaging the loss");
	return mine;
}

static int32_t share_sum(struct worker *w, int32_t mine)
{
	if (w->tally)
		check(tally_allreduce(w->tally, &mine, &mine, 1, TALLY_INT32, TALLY_SUM),
		      "adding up the right answers");
	return mine;
}

/* --- training */

/* This worker's share of the test set is every workers-th sample. */
static double accuracy_measure(struct worker *w)
{
	size_t share = w->options.batch / w->workers;
	int32_t right = 0;

	for (size_t at = w->rank; at < w->testing.count; at += share * w->workers) {
		w->pass.count = 0;
		for (size_t i = at; i < w->testing.count && w->pass.count < share; i += w->workers)
			pass_put(&w->pass, w->pass.count++, &w->testing, i);
		forward(w->model, &w->pass);
		for (size_t i = 0; i < w->pass.count; i++) {
			const float *class = w->pass.class[i];
			int best = 0;

			for (int c = 1; c < DATASET_CLASSES; c++)
				best = class[c] > class[best] ? c : best;
			right += best == w->pass.label[i];
		}
	}
	return (double)share_sum(w, right) / (double)w->testing.count;
}

static void progress_show(const struct worker *w, unsigned int epoch, size_t at, size_t steps,
			  double loss, double seconds)
{
	if (!w->options.progress || w->rank || !isatty(STDERR_FILENO) || (at % 10 && at < steps))
		return;
	fprintf(stderr, "\repoch %u  step %zu/%zu  loss %.4f  %.2f ms a step%s", epoch + 1, at,
		steps, loss, seconds * 1e3 / (double)at, at == steps ? "\r\033[K" : "   ");
}

/* Takes samples rank, rank + workers ... of each batch. Returns the mean loss. */
static double epoch_train(struct worker *w, unsigned int epoch)
{
	size_t share = w->options.batch / w->workers;
	size_t steps = w->training.count / w->options.batch;
	double loss = 0, start = seconds_now();

	order_shuffle(w->order, w->training.count, w->options.seed, epoch);
	for (size_t at = 0; at < steps; at++) {
		const uint32_t *batch = w->order + at * w->options.batch;

		w->pass.count = share;
		for (size_t i = 0; i < share; i++)
			pass_put(&w->pass, i, &w->training, batch[i * w->workers + w->rank]);
		forward(w->model, &w->pass);
		loss += softmax(&w->pass);
		backward(w->model, &w->pass, w->gradient);
		share_gradient(w);
		step(w->model, w->gradient, w->velocity);
		progress_show(w, epoch, at + 1, steps, loss / (double)(at + 1),
			      seconds_now() - start);
	}
	return (double)share_mean(w, (float)(loss / (double)steps));
}

/* FNV-1a: equal on all workers, or their weights have come apart. */
static uint64_t model_hash(const struct model *m)
{
	const uint8_t *byte = (const uint8_t *)m;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*m); i++)
		hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void result_print(const struct worker *w, double loss, double accuracy, double seconds)
{
	struct tally_stats s = { 0 };

	if (w->tally)
		tally_stats_read(w->tally, &s);
	printf(w->options.json
		       ? "{\"rank\":%u,\"workers\":%u,\"epochs\":%u,\"batch\":%u,\"loss\":%.6f,"
			 "\"accuracy\":%.4f,\"hash\":\"%016" PRIx64 "\",\"seconds\":%.3f,"
			 "\"allreduce_seconds\":%.3f,\"sent\":%" PRIu64 ",\"received\":%" PRIu64
			 ",\"retransmitted\":%" PRIu64 ",\"flushed\":%" PRIu64
			 ",\"repaired\":%" PRIu64 ",\"redone\":%" PRIu64 ",\"corrupt\":%" PRIu64
			 ",\"chunks\":%" PRIu64 ",\"node_reloads\":%" PRIu64 ",\"rtt_ns\":%" PRIu64
			 "}\n"
		       : "done rank=%u workers=%u epochs=%u batch=%u loss=%.6f accuracy=%.4f "
			 "hash=%016" PRIx64 " seconds=%.3f allreduce_seconds=%.3f sent=%" PRIu64
			 " received=%" PRIu64 " retransmitted=%" PRIu64 " flushed=%" PRIu64
			 " repaired=%" PRIu64 " redone=%" PRIu64 " corrupt=%" PRIu64
			 " chunks=%" PRIu64 " node_reloads=%" PRIu64 " rtt_ns=%" PRIu64 "\n",
	       w->rank, w->workers, w->options.epochs, w->options.batch, loss, accuracy,
	       model_hash(w->model), seconds, w->reduce_seconds, s.sent, s.received,
	       s.retransmitted, s.flushed, s.repaired, s.redone, s.corrupt, s.chunks,
	       s.node_reloads, s.rtt_ns);
}

static void train(struct worker *w)
{
	double start = seconds_now(), loss = 0, accuracy = 0;

	share_weights(w);
	for (unsigned int epoch = 0; epoch < w->options.epochs; epoch++) {
		double epoch_start = seconds_now();

		loss = epoch_train(w, epoch);
		accuracy = accuracy_measure(w);
		if (w->rank == 0)
			fprintf(w->options.json ? stderr : stdout,
				"epoch %u  loss %.4f  test accuracy %.2f %%  %.2f s\n", epoch + 1,
				loss, 100 * accuracy, seconds_now() - epoch_start);
	}
	result_print(w, loss, accuracy, seconds_now() - start);
}

/* --- start and end */

static void data_read(struct worker *w)
{
	struct dataset_fault fault;

	if (dataset_read(w->options.data, "train", &w->training, &fault) < 0 ||
	    dataset_read(w->options.data, "t10k", &w->testing, &fault) < 0)
		errx(EXIT_FAILURE, "%s", fault.text);
	if (w->options.batch > w->training.count)
		errx(EXIT_USAGE, "--batch %u: there are only %zu samples", w->options.batch,
		     w->training.count);
}

static void join(struct worker *w)
{
	const struct options *o = &w->options;
	struct tally_join_options join = { .agent = o->agent, .job = o->join, .rank = o->rank };

	w->workers = 1;
	if (o->alone)
		return;
	if (o->joins)
		check(tally_join(&join, &w->tally), "joining");
	else
		check(tally_open_file(o->job, (uint16_t)o->rank, &w->tally), o->job);
	w->rank = tally_rank(w->tally);
	w->workers = tally_workers(w->tally);
	if (o->batch % w->workers)
		errx(EXIT_USAGE, "--batch %u: %u workers cannot share it evenly", o->batch,
		     w->workers);
}

static void usage(FILE *to)
{
	fputs("train --job FILE --rank R [options]   trains with all workers of a job\n"
	      "train --join [JOB] [options]          the same in a job that an agent knows\n"
	      "train --alone [options]               trains the same in one process\n"
	      "\n"
	      "  -j, --job FILE    the job file (docs/job-file.md)\n"
	      "  -J, --join [JOB]  joins this job ($TALLY_JOB), see docs/joining.md\n"
	      "      --agent A     through this agent ($TALLY_AGENT, or that of this machine)\n"
	      "      --token-file F  with the token in this file ($TALLY_TOKEN_FILE)\n"
	      "  -r, --rank R      this worker's rank, from 0; with --join any ($TALLY_RANK)\n"
	      "  -a, --alone       without the library\n"
	      "  -e, --epochs N    times through the training set (3)\n"
	      "  -b, --batch B     samples a step, of all workers together (256)\n"
	      "  -s, --seed S      of the first weights and the order of samples (1)\n"
	      "  -d, --data DIR    the data set (" DATASET_DIRECTORY ")\n"
	      "  -p, --progress    where rank 0 is within an epoch, if on a terminal\n"
	      "      --json        the last line as JSON; epochs to standard error\n"
	      "  -h, --help        this\n"
	      "\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      to);
}

static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high)
{
	char *end;
	uint64_t value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || value < low || value > high)
		errx(EXIT_USAGE, "--%s %s: a number from %" PRIu64 " to %" PRIu64, option, text,
		     low, high);
	return value;
}

enum {
	JSON = 256,
	AGENT,
	TOKEN_FILE,
};

static const struct option long_options[] = {
	{ "job", required_argument, NULL, 'j' },
	{ "join", optional_argument, NULL, 'J' },
	{ "agent", required_argument, NULL, AGENT },
	{ "token-file", required_argument, NULL, TOKEN_FILE },
	{ "rank", required_argument, NULL, 'r' },
	{ "alone", no_argument, NULL, 'a' },
	{ "epochs", required_argument, NULL, 'e' },
	{ "batch", required_argument, NULL, 'b' },
	{ "seed", required_argument, NULL, 's' },
	{ "data", required_argument, NULL, 'd' },
	{ "progress", no_argument, NULL, 'p' },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

/* False: it is no option. */
static bool option_take(struct options *o, int c)
{
	if (c == 'j')
		o->job = optarg;
	else if (c == 'J')
		o->join = optarg;
	else if (c == AGENT)
		o->agent = optarg;
	else if (c == TOKEN_FILE)
		setenv("TALLY_TOKEN_FILE", optarg, 1); /* where the library looks for it */
	else if (c == 'r')
		o->rank = (int)number("rank", optarg, 0, UINT8_MAX);
	else if (c == 'e')
		o->epochs = (unsigned int)number("epochs", optarg, 1, EPOCHS_MAX);
	else if (c == 'b')
		o->batch = (unsigned int)number("batch", optarg, 1, BATCH_MAX);
	else if (c == 's')
		o->seed = number("seed", optarg, 0, UINT64_MAX);
	else if (c == 'd')
		o->data = optarg;
	else if (c != 'a' && c != 'p' && c != JSON)
		return false;
	o->joins |= c == 'J';
	o->alone |= c == 'a';
	o->progress |= c == 'p';
	o->json |= c == JSON;
	return true;
}

static struct options options_read(int argc, char **argv)
{
	struct options o = {
		.data = DATASET_DIRECTORY, .rank = -1, .epochs = 3, .batch = 256, .seed = 1
	};
	int c;

	while ((c = getopt_long(argc, argv, "j:J::r:ae:b:s:d:ph", long_options, NULL)) != -1) {
		/* "--join JOB": getopt knows optional arguments only as "--join=JOB". */
		if (c == 'J' && !optarg && optind < argc && *argv[optind] != '-')
			optarg = argv[optind++];
		if (!option_take(&o, c)) {
			usage(c == 'h' ? stdout : stderr);
			exit(c == 'h' ? EXIT_SUCCESS : EXIT_USAGE);
		}
	}
	if (optind < argc || o.alone + o.joins + !!o.job != 1 || (o.job && o.rank < 0) ||
	    (o.agent && !o.joins)) {
		usage(stderr);
		exit(EXIT_USAGE);
	}
	return o;
}

int main(int argc, char **argv)
{
	struct worker w = { .options = options_read(argc, argv) };

	setvbuf(stdout, NULL, _IOLBF, 0);
	data_read(&w);
	join(&w);
	w.model = allocate(1, sizeof(*w.model));
	w.gradient = allocate(1, sizeof(*w.gradient));
	w.velocity = allocate(1, sizeof(*w.velocity));
	w.order = allocate(w.training.count, sizeof(*w.order));
	pass_new(&w.pass, w.options.batch / w.workers);

	train(&w);

	tally_close(w.tally);
	pass_free(&w.pass);
	free(w.order);
	free(w.velocity);
	free(w.gradient);
	free(w.model);
	dataset_free(&w.training);
	dataset_free(&w.testing);
	return EXIT_SUCCESS;
}
