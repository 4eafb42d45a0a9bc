// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "common/text.h"
#include "perf_options.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/jobfile.h"
#include "common/keys.h"

enum {
	SECONDS_MAX = 24 * 60 * 60,
	ROOTS_MAX = 16,
};

const char *const perf_verb_names[PERF_VERBS] = {
	"allreduce", "reduce", "broadcast", "reduce_scatter", "all_gather", "barrier",
};

const char *const perf_type_names[] = {
	"int32",  "int64",  "float32",	"int8",	   "int16",   "uint8",	"uint16",
	"uint32", "uint64", "bfloat16", "float16", "float64", "halved",
};
const char *const perf_op_names[] = { "sum", "avg" };

static void usage(FILE *to)
{
	fputs("usage: tally-perf --job FILE --rank R [options]   time collectives, check their sums\n"
	      "       tally-perf --join [JOB] [options]          the same in an agent's job\n"
	      "\n"
	      "  -j, --job FILE        the job file (docs/job-file.md); of a job with several roots\n"
	      "                        that of each: FILE,FILE\n"
	      "  -J, --join [JOB]      joins this job ($TALLY_JOB), see docs/joining.md\n"
	      "      --agent A         through this agent ($TALLY_AGENT, or that of this machine); of\n"
	      "                        a job with several roots through that of each: A,A\n"
	      "      --other-agents A,A\n"
	      "                        or, while it is away, through these of the same cluster, in\n"
	      "                        turn ($TALLY_OTHER_AGENTS)\n"
	      "      --token-file F    with the token in this file ($TALLY_TOKEN_FILE)\n"
	      "      --shares N,N      of several roots in each call: 2,1 ($TALLY_SHARES, or equal)\n"
	      "      --spin US         who waits for results looks for them so long before it sleeps;\n"
	      "                        0: never, auto: while that is worth it ($TALLY_SPIN, or auto)\n"
	      "      --progress-threads N\n"
	      "                        calls are moved on by threads of the library's own: one, or of\n"
	      "                        several roots up to N\n"
	      "  -r, --rank R          this worker's rank, from 0; with --join any ($TALLY_RANK)\n"
	      "  -v, --verb VERB       allreduce (default), reduce, broadcast, reduce_scatter,\n"
	      "                        all_gather, barrier\n"
	      "  -b, --begin BYTES     the first size (8); K, M and G are understood\n"
	      "  -e, --end BYTES       the last size (16M); below 4G\n"
	      "  -f, --factor N        multiplies each size to get the next (4)\n"
	      "  -d, --type TYPE       int8, int16, int32, int64, uint8, uint16, uint32, uint64,\n"
	      "                        bfloat16, float16, float32 (default), float64; halved:\n"
	      "                        float32 in 16 bits\n"
	      "      --feedback        of halved: sends with each call what the one before has lost\n"
	      "      --point P         floats travel as multiples of 2^-P, 1 to 127, each by itself\n"
	      "  -o, --op OP           sum (default), avg\n"
	      "  -n, --iterations N    timed, for each size (20)\n"
	      "  -s, --seconds S       rounds of N calls, timed, until S seconds are over\n"
	      "  -w, --warmups N       not timed, before them (5)\n"
	      "      --root R          of reduce and broadcast (0)\n"
	      "      --timeout MS      of one collective (30000)\n"
	      "      --late-rank-timeout MS\n"
	      "                        the same, while only other ranks are missing (1800000 with\n"
	      "                        --join, else that of --timeout)\n"
	      "      --join-timeout MS with --join: until all ranks have come (60000)\n"
	      "      --congestion C    on: as many chunks are in flight as the network has room for\n"
	      "                        (default); off: as many as the window\n"
	      "      --layer L         says that all calls are of layer L (0) ...\n"
	      "      --layers N        ... of N: nodes with few slots serve the first layers first\n"
	      "      --remaining S     says that the job will be over in S seconds\n"
	      "      --float-wild      floats of all magnitudes, with subnormals and zeros\n"
	      "      --int-wild        integers of the full range: sums wrap\n"
	      "      --nonfinite       some NaNs and infinities\n"
	      "      --in-place        each size twice: with two buffers, then in place, with one\n"
	      "      --no-check        do not compare results with what they should be; then\n"
	      "                        nothing but the collectives runs between start and end\n"
	      "      --hash            a hash over the results of each size, on every rank\n"
	      "      --all-ranks       the table on every rank; else on rank 0, and the others say so\n"
	      "      --json            one object for each size, on every rank\n"
	      "  -h, --help            print this help\n"
	      "\n"
	      "Sizes and bandwidths are meant as in nccl-tests: bytes is the whole buffer; algbw is\n"
	      "bytes by time (median) in GB/s; busbw is what a ring would have to carry on each\n"
	      "link for that: for allreduce 2 (n - 1) / n times algbw.\n"
	      "Exit codes: 0 success, 1 failed or wrong sums, 2 wrong usage.\n",
	      to);
}

/* getopt has said already what is wrong where `what` is NULL. */
__attribute__((noreturn)) static void refuse(const char *what)
{
	if (what)
		warnx("%s", what);
	fputs("Run 'tally-perf --help' for the usage.\n", stderr);
	exit(EXIT_USAGE);
}

enum kind {
	FLAG,
	TEXT,
	NUMBER,
	SIZE, /* a number, which K, M and G may multiply */
	CHOICE,
};

static const char *const congestion_names[] = { "on", "off" };

static const struct option_row {
	const char *name;
	int letter; /* 0: none */
	enum kind kind;
	size_t offset, size; /* of the member */
	uint64_t low, high; /* of a number; of a choice: that of the first and of the last name */
	const char *const *names;
} rows[] = {
#define MEMBER(m) KEY_MEMBER(struct perf_options, m)
	{ "job", 'j', TEXT, MEMBER(job) },
	{ "join", 'J', TEXT, MEMBER(join) },
	{ "agent", 0, TEXT, MEMBER(agent) },
	{ "other-agents", 0, TEXT, MEMBER(other_agents) },
	{ "token-file", 0, TEXT, MEMBER(token_file) },
	{ "shares", 0, TEXT, MEMBER(shares) },
	{ "spin", 0, TEXT, MEMBER(spin) },
	{ "progress-threads", 0, NUMBER, MEMBER(progress_threads), 1, ROOTS_MAX },
	{ "rank", 'r', NUMBER, MEMBER(rank), 0, TALLY_WORKERS_MAX - 1 },
	{ "verb", 'v', CHOICE, MEMBER(verb), 0, PERF_VERBS - 1, perf_verb_names },
	{ "begin", 'b', SIZE, MEMBER(begin), 1, UINT32_MAX },
	{ "end", 'e', SIZE, MEMBER(end), 1, UINT32_MAX },
	{ "factor", 'f', NUMBER, MEMBER(factor), 2, UINT32_MAX },
	{ "type", 'd', CHOICE, MEMBER(data.dtype), TALLY_INT32, TALLY_FLOAT32_HALVED,
	  perf_type_names },
	{ "point", 0, NUMBER, MEMBER(data.point), 1, INT8_MAX },
	{ "op", 'o', CHOICE, MEMBER(op), TALLY_SUM, TALLY_AVG, perf_op_names },
	{ "iterations", 'n', NUMBER, MEMBER(iterations), 1, PERF_CALLS_MAX },
	{ "seconds", 's', NUMBER, MEMBER(seconds), 1, SECONDS_MAX },
	{ "warmups", 'w', NUMBER, MEMBER(warmups), 0, PERF_CALLS_MAX },
	{ "root", 0, NUMBER, MEMBER(root), 0, TALLY_WORKERS_MAX - 1 },
	{ "congestion", 0, CHOICE, MEMBER(congestion), TALLY_CONGESTION_ON, TALLY_CONGESTION_OFF,
	  congestion_names },
	{ "layer", 0, NUMBER, MEMBER(hints.layer), 0, UINT16_MAX - 1 },
	{ "layers", 0, NUMBER, MEMBER(hints.layers), 1, UINT16_MAX },
	{ "remaining", 0, NUMBER, MEMBER(hints.remaining_s), 1, UINT32_MAX },
	{ "timeout", 0, NUMBER, MEMBER(timeout_ms), 1, UINT32_MAX },
	{ "late-rank-timeout", 0, NUMBER, MEMBER(late_rank_timeout_ms), 1, UINT32_MAX },
	{ "join-timeout", 0, NUMBER, MEMBER(join_timeout_ms), 1, UINT32_MAX },
	{ "feedback", 0, FLAG, MEMBER(data.feedback) },
	{ "float-wild", 0, FLAG, MEMBER(float_wild) },
	{ "int-wild", 0, FLAG, MEMBER(int_wild) },
	{ "nonfinite", 0, FLAG, MEMBER(data.nonfinite) },
	{ "in-place", 0, FLAG, MEMBER(in_place) },
	{ "no-check", 0, FLAG, MEMBER(unchecked) },
	{ "hash", 0, FLAG, MEMBER(hash) },
	{ "all-ranks", 0, FLAG, MEMBER(all_ranks) },
	{ "json", 0, FLAG, MEMBER(json) },
#undef MEMBER
};

enum {
	ROWS = sizeof(rows) / sizeof(*rows)
};

static uint64_t number(const struct option_row *row)
{
	static const char units[] = "KMG";
	const char *unit;
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(optarg, &end, 10);
	unit = row->kind == SIZE && *end ? strchr(units, *end) : NULL;
	if (unit && value <= UINT64_MAX >> 40) {
		value <<= 10 * (unit - units + 1);
		end++;
	}
	if (errno || end == optarg || *end || *optarg == '-' || value < row->low ||
	    value > row->high)
		errx(EXIT_USAGE, "--%s %s: a number from %" PRIu64 " to %" PRIu64, row->name,
		     optarg, row->low, row->high);
	return value;
}

static uint64_t choice(const struct option_row *row)
{
	char names[TEXT_LIST_BYTES];

	for (uint64_t i = row->low; i <= row->high; i++)
		if (!strcmp(optarg, row->names[i - row->low]))
			return i;
	errx(EXIT_USAGE, "--%s %s: there are %s", row->name, optarg,
	     text_list(row->names, row->high - row->low + 1, sizeof(*row->names), names));
}

static void option_take(const struct option_row *row, struct perf_options *o)
{
	void *member = (char *)o + row->offset;

	if (row->kind == FLAG)
		*(bool *)member = true;
	else if (row->kind == TEXT)
		*(const char **)member = optarg;
	else
		key_number_store(row->kind == CHOICE ? choice(row) : number(row), member,
				 row->size);
	o->joins |= row->letter == 'J';
	o->ranked |= row->letter == 'r';
}

/* Long options are said by the number of their row. */
static void options_take(int argc, char **argv, struct perf_options *o)
{
	struct option names[ROWS + 2] = { [ROWS] = { "help", no_argument, NULL, 'h' } };
	int c;

	for (int i = 0; i < ROWS; i++)
		names[i] = (struct option){ rows[i].name,
					    rows[i].kind == FLAG    ? no_argument
					    : rows[i].letter == 'J' ? optional_argument
								    : required_argument,
					    NULL, UCHAR_MAX + 1 + i };
	while ((c = getopt_long(argc, argv, "j:J::r:v:b:e:f:d:o:n:s:w:h", names, NULL)) != -1) {
		const struct option_row *row = rows + (c > UCHAR_MAX ? c - UCHAR_MAX - 1 : 0);

		if (c == 'h') {
			usage(stdout);
			exit(EXIT_SUCCESS);
		}
		if (c == '?')
			refuse(NULL);
		while (c <= UCHAR_MAX && row->letter != c)
			row++;
		/* "--join JOB": getopt knows optional arguments only as "--join=JOB". */
		if (row->letter == 'J' && !optarg && optind < argc && *argv[optind] != '-')
			optarg = argv[optind++];
		option_take(row, o);
	}
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
	};

	options_take(argc, argv, &o);
	if (optind < argc)
		errx(EXIT_USAGE, "%s: not an option; see --help", argv[optind]);
	if (o.joins == !!o.job)
		refuse(o.joins ? "--job and --join exclude each other"
			       : "--job FILE or --join is needed");
	if (o.job && !o.ranked)
		refuse("--job: --rank is needed too");
	if (o.job && (o.agent || o.other_agents || o.join_timeout_ms))
		refuse(o.agent		? "--agent: only with --join"
		       : o.other_agents ? "--other-agents: only with --join"
					: "--join-timeout: only with --join");
	if (o.begin > o.end)
		errx(EXIT_USAGE, "--begin %zu: beyond --end %zu", o.begin, o.end);
	if ((o.data.nonfinite || o.float_wild) && !perf_is_float(o.data.dtype))
		errx(EXIT_USAGE, "--float-wild and --nonfinite: only with a --type of floats");
	if (o.data.point && !perf_is_float(o.data.dtype))
		errx(EXIT_USAGE, "--point: only with a --type of floats");
	if (o.data.point && o.data.dtype == TALLY_FLOAT32_HALVED)
		errx(EXIT_USAGE, "--point: not with --type halved");
	if (o.data.feedback && (o.data.dtype != TALLY_FLOAT32_HALVED || o.float_wild))
		errx(EXIT_USAGE, "--feedback: only with --type halved, and without --float-wild");
	if (o.data.feedback && o.verb != PERF_ALLREDUCE && o.verb != PERF_REDUCE &&
	    o.verb != PERF_REDUCE_SCATTER)
		errx(EXIT_USAGE, "--feedback: only with a --verb that reduces");
	if (o.int_wild && perf_is_float(o.data.dtype))
		errx(EXIT_USAGE, "--int-wild: only with a --type of integers");
	if (o.hints.layer && o.hints.layer >= o.hints.layers)
		errx(EXIT_USAGE,
		     "--layer %u: --layers N says of how many, and they are counted "
		     "from 0",
		     o.hints.layer);
	if (o.in_place && o.verb == PERF_BARRIER)
		refuse("--in-place: a barrier has no buffers");
	if (o.token_file)
		setenv("TALLY_TOKEN_FILE", o.token_file, 1); /* where the library looks for it */
	if (o.spin)
		setenv("TALLY_SPIN", o.spin, 1);
	o.data.wild = o.float_wild || o.int_wild;
	*ret = o;
}

static enum tally_progress_by progress_of(const struct perf_options *o)
{
	return o->progress_threads ? TALLY_PROGRESS_THREAD : TALLY_PROGRESS_CALLS;
}

static struct tally *job_join(const struct perf_options *o)
{
	struct tally_join_options options = {
		.agent = o->agent,
		.job = o->join,
		.rank = o->ranked ? o->rank : -1,
		.timeout_ms = o->timeout_ms,
		.join_timeout_ms = o->join_timeout_ms,
		.late_rank_timeout_ms = o->late_rank_timeout_ms,
		.shares = o->shares,
		.congestion = o->congestion,
		.other_agents = o->other_agents,
		.progress = progress_of(o),
		.progress_threads = o->progress_threads,
	};
	struct tally *t;

	if (tally_join(&options, &t) < 0)
		errx(EXIT_FAILURE, "%s", tally_error());
	return t;
}

/* The text before the next comma, which is cut off; NULL: there is none. */
static char *next_item(char **rest)
{
	char *item = *rest;

	if (item)
		*rest = strchr(item, ',');
	if (item && *rest)
		*(*rest)++ = '\0';
	return item;
}

/* One root's. What it says of addresses and keys stays until the process ends. */
static struct tally_options root_of(const struct perf_options *o, const char *path)
{
	struct run *job = calloc(1, sizeof(*job));
	char *text = malloc(2 * ADDRESS_BYTES), why[256];

	if (!job || !text)
		errx(EXIT_FAILURE, "out of memory");
	if (jobfile_read(path, job, why, sizeof(why)) < 0)
		errx(EXIT_FAILURE, "%s", why);
	if (o->rank >= job->workers)
		errx(EXIT_USAGE, "--rank %u: %s has ranks 0 to %u", o->rank, path,
		     job->workers - 1u);
	address_print(&job->service, text, ADDRESS_BYTES);
	endpoint_print(&job->worker[o->rank], text + ADDRESS_BYTES, ADDRESS_BYTES);
	return (struct tally_options){
		.job = job->job,
		.epoch = job->epoch,
		.rank = o->rank,
		.workers = job->workers,
		.window = job->window,
		.payload_bytes = job->payload_bytes,
		.timeout_ms = o->timeout_ms,
		.late_rank_timeout_ms = o->late_rank_timeout_ms,
		.congestion = o->congestion,
		.progress = progress_of(o),
		.progress_threads = o->progress_threads,
		.service = text,
		.address = text + ADDRESS_BYTES,
		.rank_key = run_rank_key(job, o->rank),
		.secret = run_secret(job),
	};
}

/* Not tally_open_file(): neither timeouts nor shares are the job's, and no test waits 30 s. */
static struct tally *job_open(const struct perf_options *o)
{
	struct tally_options root[ROOTS_MAX];
	char *paths = strdup(o->job), *shares = o->shares ? strdup(o->shares) : NULL;
	unsigned int roots = 0;
	struct tally *t;

	for (char *path; (path = next_item(&paths)); roots++) {
		char *share = next_item(&shares);
		uint32_t number = 1;

		if (roots == ROOTS_MAX)
			errx(EXIT_USAGE, "--job %s: more than %d files", o->job, ROOTS_MAX);
		if (o->shares && (!share || !text_u32(share, UINT16_MAX, &number)))
			errx(EXIT_USAGE, "--shares %s: a number for each root", o->shares);
		root[roots] = root_of(o, path);
		root[roots].share = (uint16_t)number;
	}
	if (shares)
		errx(EXIT_USAGE, "--shares %s: more than the %u roots", o->shares, roots);
	if (tally_open_roots(root, roots, &t) < 0)
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
	if (tally_hint(t, &o->hints) < 0)
		errx(EXIT_FAILURE, "%s", tally_error());
	return t;
}
