// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "perf_options.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jobfile.h"

enum {
	SECONDS_MAX = 24 * 60 * 60
};

const char *const perf_verb_names[PERF_VERBS] = {
	"allreduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "barrier",
};

/* enum tally_dtype, enum tally_op: both count from 1 */
static const char *const type_names[] = { "int32", "int64", "float32" };
static const char *const op_names[] = { "sum", "avg" };

static void usage(FILE *to)
{
	fputs("tally-perf --job FILE --rank R [options]   times collectives and checks their sums\n"
	      "tally-perf --join [JOB] [options]          the same in a job that an agent knows\n"
	      "\n"
	      "  -j, --job FILE        the job file (docs/job-file.md)\n"
	      "  -J, --join [JOB]      joins this job ($TALLY_JOB), see docs/joining.md\n"
	      "      --agent A         through this agent ($TALLY_AGENT, or that of this machine)\n"
	      "      --token-file F    with the token in this file ($TALLY_TOKEN_FILE)\n"
	      "  -r, --rank R          this worker's rank, from 0; with --join any ($TALLY_RANK)\n"
	      "  -v, --verb VERB       allreduce (default), reduce, broadcast, reduce_scatter,\n"
	      "                        all_gather, barrier\n"
	      "  -b, --begin BYTES     the first size (8); K, M and G are understood\n"
	      "  -e, --end BYTES       the last (16M)\n"
	      "  -f, --factor N        from one size to the next (4)\n"
	      "  -d, --type TYPE       int32, int64, float32 (default)\n"
	      "  -o, --op OP           sum (default), avg\n"
	      "  -n, --iterations N    timed, for each size (20)\n"
	      "  -s, --seconds S       rounds of N calls, timed, until S seconds are over\n"
	      "  -w, --warmups N       not timed, before them (5)\n"
	      "      --root R          of reduce and broadcast (0)\n"
	      "      --timeout MS      of one collective (30000)\n"
	      "      --float-wild      floats of all magnitudes, with subnormals and zeros\n"
	      "      --int-wild        integers of the full range: sums wrap\n"
	      "      --nonfinite       some NaNs and infinities\n"
	      "      --no-check        do not compare results with what they should be; then\n"
	      "                        nothing but the collectives runs between start and end\n"
	      "      --hash            a hash over the results of each size, on every rank\n"
	      "      --all-ranks       the table on every rank, not on rank 0 only\n"
	      "      --json            one object for each size, on every rank\n"
	      "  -h, --help            this\n"
	      "\n"
	      "Sizes and bandwidths are meant as in nccl-tests: bytes is the whole buffer; algbw is\n"
	      "bytes by time (median) in GB/s; busbw is what a ring would have to carry on each\n"
	      "link for that: for allreduce 2 (n - 1) / n times algbw.\n"
	      "Exit status: 0 all right, 1 failed or wrong sums, 2 wrong usage.\n",
	      to);
}

__attribute__((noreturn)) static void refuse(void)
{
	usage(stderr);
	exit(EXIT_USAGE);
}

/* With `binary`, K, M and G multiply. */
static uint64_t number(const char *option, const char *text, uint64_t low, uint64_t high,
		       bool binary)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	unit = binary && *end ? strchr(units, *end) : NULL;
	if (unit && value <= UINT64_MAX >> 40) {
		value <<= 10 * (unit - units + 1);
		end++;
	}
	if (errno || end == text || *end || *text == '-' || value < low || value > high)
		errx(EXIT_USAGE, "--%s %s: a number from %" PRIu64 " to %" PRIu64, option, text,
		     low, high);
	return value;
}

static unsigned int choice(const char *option, const char *text, const char *const *names,
			   unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (!strcmp(text, names[i]))
			return i;
	errx(EXIT_USAGE, "--%s %s: not known; see --help", option, text);
}

enum {
	ROOT = 256,
	TIMEOUT,
	FLOAT_WILD,
	INT_WILD,
	NONFINITE,
	NO_CHECK,
	HASH,
	ALL_RANKS,
	JSON,
	AGENT,
	TOKEN_FILE,
};

static const struct option long_options[] = {
	{ "job", required_argument, NULL, 'j' },
	{ "join", optional_argument, NULL, 'J' },
	{ "agent", required_argument, NULL, AGENT },
	{ "token-file", required_argument, NULL, TOKEN_FILE },
	{ "rank", required_argument, NULL, 'r' },
	{ "verb", required_argument, NULL, 'v' },
	{ "begin", required_argument, NULL, 'b' },
	{ "end", required_argument, NULL, 'e' },
	{ "factor", required_argument, NULL, 'f' },
	{ "type", required_argument, NULL, 'd' },
	{ "op", required_argument, NULL, 'o' },
	{ "iterations", required_argument, NULL, 'n' },
	{ "seconds", required_argument, NULL, 's' },
	{ "warmups", required_argument, NULL, 'w' },
	{ "root", required_argument, NULL, ROOT },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "float-wild", no_argument, NULL, FLOAT_WILD },
	{ "int-wild", no_argument, NULL, INT_WILD },
	{ "nonfinite", no_argument, NULL, NONFINITE },
	{ "no-check", no_argument, NULL, NO_CHECK },
	{ "hash", no_argument, NULL, HASH },
	{ "all-ranks", no_argument, NULL, ALL_RANKS },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char short_options[] = "j:J::r:v:b:e:f:d:o:n:s:w:h";

/* How to come into the job; false: it is another option. */
static bool option_place(struct perf_options *o, int c)
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
		o->rank = (uint16_t)number("rank", optarg, 0, TALLY_WORKERS_MAX - 1, false);
	else
		return false;
	o->joins |= c == 'J';
	o->ranked |= c == 'r';
	return true;
}

/* What to measure; the same. */
static bool option_value(struct perf_options *o, int c)
{
	if (c == 'v')
		o->verb = choice("verb", optarg, perf_verb_names, PERF_VERBS);
	else if (c == 'b')
		o->begin = number("begin", optarg, 1, UINT32_MAX, true);
	else if (c == 'e')
		o->end = number("end", optarg, 1, UINT32_MAX, true);
	else if (c == 'f')
		o->factor = number("factor", optarg, 2, UINT32_MAX, false);
	else if (c == 'd')
		o->data.dtype = (enum tally_dtype)(1 + choice("type", optarg, type_names, 3));
	else if (c == 'o')
		o->op = (enum tally_op)(1 + choice("op", optarg, op_names, 2));
	else if (c == 'n')
		o->iterations = (unsigned int)number("iterations", optarg, 1, PERF_CALLS_MAX,
						     false);
	else if (c == 's')
		o->seconds = (unsigned int)number("seconds", optarg, 1, SECONDS_MAX, false);
	else if (c == 'w')
		o->warmups = (unsigned int)number("warmups", optarg, 0, PERF_CALLS_MAX, false);
	else if (c == ROOT)
		o->root = (uint16_t)number("root", optarg, 0, TALLY_WORKERS_MAX - 1, false);
	else if (c == TIMEOUT)
		o->timeout_ms = (uint32_t)number("timeout", optarg, 1, UINT32_MAX, false);
	else
		return false;
	return true;
}

void perf_options_read(int argc, char **argv, struct perf_options *ret)
{
	struct perf_options o = {
		.data.dtype = TALLY_FLOAT32,
		.op = TALLY_SUM,
		.begin = 8,
		.end = 16 << 20,
		.factor = 4,
		.iterations = 20,
		.warmups = 5,
		.check = true,
	};
	bool float_wild = false, int_wild = false;
	int c;

	while ((c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1) {
		/* "--join JOB": getopt knows optional arguments only as "--join=JOB". */
		if (c == 'J' && !optarg && optind < argc && *argv[optind] != '-')
			optarg = argv[optind++];
		float_wild |= c == FLOAT_WILD;
		int_wild |= c == INT_WILD;
		o.data.nonfinite |= c == NONFINITE;
		o.check &= c != NO_CHECK;
		o.hash |= c == HASH;
		o.all_ranks |= c == ALL_RANKS;
		o.json |= c == JSON;
		if (c == 'h') {
			usage(stdout);
			exit(EXIT_SUCCESS);
		}
		if (c == '?' ||
		    ((c < FLOAT_WILD || c > JSON) && !option_place(&o, c) && !option_value(&o, c)))
			refuse();
	}
	if (optind < argc || o.joins == !!o.job || (o.job && (!o.ranked || o.agent)))
		refuse();
	if (o.begin > o.end)
		errx(EXIT_USAGE, "--begin %zu: beyond --end %zu", o.begin, o.end);
	if ((o.data.nonfinite || float_wild) && o.data.dtype != TALLY_FLOAT32)
		errx(EXIT_USAGE, "--float-wild and --nonfinite: only with --type float32");
	if (int_wild && o.data.dtype == TALLY_FLOAT32)
		errx(EXIT_USAGE, "--int-wild: only with --type int32 or int64");
	o.data.wild = float_wild || int_wild;
	*ret = o;
}

static struct tally *job_join(const struct perf_options *o)
{
	struct tally_join_options options = {
		.agent = o->agent,
		.job = o->join,
		.rank = o->ranked ? o->rank : -1,
		.timeout_ms = o->timeout_ms,
	};
	struct tally *t;

	if (tally_join(&options, &t) < 0)
		errx(EXIT_FAILURE, "%s", tally_error());
	return t;
}

/* Not tally_open_file(): the timeout is none of the job's, and no test waits 30 s. */
static struct tally *job_open(const struct perf_options *o)
{
	char service[ADDRESS_BYTES], address[ADDRESS_BYTES], why[256];
	struct tally_options options;
	struct run job;
	struct tally *t;

	if (jobfile_read(o->job, &job, why, sizeof(why)) < 0)
		errx(EXIT_FAILURE, "%s", why);
	if (o->rank >= job.workers)
		errx(EXIT_USAGE, "--rank %u: %s has ranks 0 to %u", o->rank, o->job,
		     job.workers - 1u);

	address_print(&job.service, service, sizeof(service));
	endpoint_print(&job.worker[o->rank], address, sizeof(address));
	options = (struct tally_options){
		.job = job.job,
		.epoch = job.epoch,
		.rank = o->rank,
		.workers = job.workers,
		.window = job.window,
		.payload_bytes = job.payload_bytes,
		.timeout_ms = o->timeout_ms,
		.service = service,
		.address = address,
	};
	if (tally_open(&options, &t) < 0)
		errx(EXIT_FAILURE, "%s", tally_error());
	return t;
}

struct tally *perf_job_open(struct perf_options *o)
{
	struct tally *t = o->joins ? job_join(o) : job_open(o);

	if (o->root >= tally_workers(t))
		errx(EXIT_USAGE, "--root %u: the job has ranks 0 to %u", o->root,
		     tally_workers(t) - 1u);
	o->rank = tally_rank(t);
	return t;
}
