// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: the library in a whole program. dataset.c and model.c are its parts.
 *
 * Data-parallel training with Tally, whole and in plain C: a small network learns to tell
 * clothes apart. Each worker computes the gradient of its share of a batch; a call for each layer
 * averages it over all workers; all of them take the same step.
 *
 *	for each batch:
 *		gradient(model, my share of it)
 *		for each layer:
 *			tally_hint(layer)
 *			tally_allreduce_start(gradient[layer], TALLY_FLOAT32, TALLY_AVG)
 *		tally_wait() for all of them
 *		step(model)
 *
 * `train --alone` does the same in one process, without the library.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tally/tally.h>

#include "common/clock.h"
#include "common/file.h"
#include "model.h"

enum {
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

struct worker {
	struct tally *tally; /* NULL: alone */
	unsigned int rank, workers;
	struct options options;
	struct dataset training, testing;
	struct model model, gradient, velocity;
	struct pass pass; /* room for batch / workers */
	uint32_t *order;	 /* of the training samples in this epoch */
	double reduce_seconds;
};

static double seconds_now(void) { return (double)clock_now_ns() / 1e9; }

/* --- together: what the workers say to each other */

static void check(int r, const char *what)
{
	if (r < 0)
		errx(EXIT_FAILURE, "%s: %s", what, tally_error());
}

/* Where slots are scarce, nodes serve the layer first that the next step begins with. */
static struct tally_call *layer_start(struct worker *w, uint16_t layer)
{
	const struct tally_hints hints = { .layer = layer, .layers = MODEL_LAYERS };
	float *gradient = (float *)&w->gradient + model_layers[layer].first;
	struct tally_call *call;

	check(tally_hint(w->tally, &hints), "the hint of a layer");
	check(tally_allreduce_start(w->tally, gradient, gradient, model_layers[layer].count,
				    TALLY_FLOAT32, TALLY_AVG, &call),
	      "starting to average a layer's gradient");
	return call;
}

static void share_gradient(struct worker *w)
{
	struct tally_call *call[MODEL_LAYERS];
	double start = seconds_now();

	for (uint16_t layer = 0; w->tally && layer < MODEL_LAYERS; layer++)
		call[layer] = layer_start(w, layer);
	for (uint16_t layer = 0; w->tally && layer < MODEL_LAYERS; layer++)
		check(tally_wait(call[layer]), "averaging a layer's gradient");
	w->reduce_seconds += seconds_now() - start;
}

static void share_weights(struct worker *w)
{
	if (w->rank == 0)
		model_randomise(&w->model, w->options.seed);
	if (w->tally)
		check(tally_broadcast(w->tally, &w->model, PARAMETERS, TALLY_FLOAT32, 0),
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
		pass_forward(&w->model, &w->pass);
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
		pass_forward(&w->model, &w->pass);
		loss += pass_softmax(&w->pass);
		pass_backward(&w->model, &w->pass, &w->gradient);
		share_gradient(w);
		model_step(&w->model, &w->gradient, &w->velocity);
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
	       model_hash(&w->model), seconds, w->reduce_seconds, s.sent, s.received,
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
	struct why why;

	if (dataset_read(w->options.data, "train", &w->training, &why) < 0 ||
	    dataset_read(w->options.data, "t10k", &w->testing, &why) < 0)
		errx(EXIT_FAILURE, "%s", why.text);
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
	static struct worker w; /* too large for a stack */

	file_watch_output();
	w.options = options_read(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	data_read(&w);
	join(&w);
	w.order = allocate(w.training.count, sizeof(*w.order));
	pass_new(&w.pass, w.options.batch / w.workers);

	train(&w);

	tally_close(w.tally);
	pass_free(&w.pass);
	free(w.order);
	dataset_free(&w.training);
	dataset_free(&w.testing);
	return EXIT_SUCCESS;
}
