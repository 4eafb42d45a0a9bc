// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sim_options.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"
#include "draw.h"

const char SIM_OPTIONS_HELP_TEXT[] =
	"usage: tally-sim run --network NETWORK --workload FILE --placement POLICY,... [options]\n"
	"       tally-sim slots --network NETWORK --workload FILE --slots N,... [options]\n"
	"       tally-sim policies | networks | models    what there is\n"
	"\n"
	"Runs the jobs of a workload in a network, once under each policy, and compares.\n"
	"With slots, packet by packet: all jobs share the slots of one node.\n"
	"\n"
	"      --network NETWORK   a shape such as fat-tree:k=8,rate=100gbit; or a file, known by a\n"
	"                          dot or a slash in its name: the testbed's format, or GraphML\n"
	"                          where the name ends in .graphml\n"
	"      --workload FILE     jobs and failures\n"
	"      --placement LIST    policies, with commas between them\n"
	"      --seed N            of all that is by chance (1)\n"
	"      --nodes N           at most so many nodes sum at a time (any)\n"
	"      --node-jobs N       at most so many jobs a node (any)\n"
	"      --tree N            at most so many nodes a job (16)\n"
	"      --distance X        of tapina: how far workers may be on average, in links (3)\n"
	"      --background X      others use 0 to X of each link between switches, by chance (0)\n"
	"      --near N            at each event, direct competitors and further jobs get new rates,\n"
	"                          further ones until N jobs in all have (16); all: all that need\n"
	"                          to, which is exact\n"
	"      --moves             jobs may be moved while they run\n"
	"      --move-seconds X    a job that gets another tree stands still so long (1)\n"
	"      --agents FILE       jobs come to the agents of their nodes, with this configuration of\n"
	"                          tallyd: quotas, loans and borrowed slots are as these have them\n"
	"      --explain JOB       why the job lies where it lies, with what was weighed\n"
	"      --slots N,...       slots: how many the node has; each number is a column\n"
	"      --policy LIST       slots: who gets them, with commas between policies (all)\n"
	"      --window N          slots: chunks that a worker has in flight (256)\n"
	"      --round-trip X      slots: from worker to root and back, in microseconds (20)\n"
	"      --spread X          slots: how late workers begin, by chance, in microseconds (0)\n"
	"      --json, --csv       for programs: all, or a line for each policy and job\n"
	"      --plot DIR          writes data and plots of gnuplot there\n"
	"      --picture FILE.svg  draws the network with its loads under the first policy\n"
	"      --progress          a bar on standard error, even if that is no terminal\n"
	"      --version           print the version\n"
	"  -h, --help              print this help\n"
	"\n"
	"Exit codes: 0 success, 1 failed, 2 wrong usage or a wrong network or workload.\n";

enum kind {
	FLAG,
	TEXT,
	WHOLE, /* uint32_t */
	NEAR, /* the same, or all */
	SEED,
	REAL,
	POLICIES,
	SLOTS_POLICIES_LIST,
	SIZES,
};

enum {
	RUN = 1, /* the command that has the option */
	SLOTS = 2,
	BOTH = RUN | SLOTS,
};

static const struct option_row {
	const char *name; /* the first member: errors list names from the table itself */
	enum kind kind;
	unsigned int of; /* RUN, SLOTS */
	size_t offset;
	uint32_t max; /* of WHOLE; at least 1 */
} rows[] = {
	{ "--network", TEXT, BOTH, offsetof(struct sim_options, network), 0 },
	{ "--workload", TEXT, BOTH, offsetof(struct sim_options, workload), 0 },
	{ "--placement", POLICIES, RUN, 0, 0 },
	{ "--seed", SEED, BOTH, offsetof(struct sim_options, seed), 0 },
	{ "--nodes", WHOLE, RUN, offsetof(struct sim_options, place.nodes_max), UINT32_MAX },
	{ "--node-jobs", WHOLE, RUN, offsetof(struct sim_options, place.jobs_max), UINT32_MAX },
	{ "--tree", WHOLE, RUN, offsetof(struct sim_options, place.tree_max), PLACE_NODES_MAX },
	{ "--distance", REAL, RUN, offsetof(struct sim_options, place.distance_max), 0 },
	{ "--near", NEAR, RUN, offsetof(struct sim_options, near), 65536 },
	{ "--background", REAL, RUN, offsetof(struct sim_options, background), 0 },
	{ "--moves", FLAG, RUN, offsetof(struct sim_options, moves), 0 },
	{ "--move-seconds", REAL, RUN, offsetof(struct sim_options, place.move_s), 0 },
	{ "--agents", TEXT, RUN, offsetof(struct sim_options, agents), 0 },
	{ "--explain", TEXT, RUN, offsetof(struct sim_options, explain), 0 },
	{ "--json", FLAG, BOTH, offsetof(struct sim_options, json), 0 },
	{ "--csv", FLAG, BOTH, offsetof(struct sim_options, csv), 0 },
	{ "--plot", TEXT, RUN, offsetof(struct sim_options, plot), 0 },
	{ "--picture", TEXT, RUN, offsetof(struct sim_options, picture), 0 },
	{ "--progress", FLAG, RUN, offsetof(struct sim_options, progress), 0 },
	{ "--slots", SIZES, SLOTS, 0, 0 },
	{ "--policy", SLOTS_POLICIES_LIST, SLOTS, 0, 0 },
	{ "--window", WHOLE, SLOTS, offsetof(struct sim_options, window), TALLY_WINDOW_MAX },
	{ "--round-trip", REAL, SLOTS, offsetof(struct sim_options, round_trip_us), 0 },
	{ "--spread", REAL, SLOTS, offsetof(struct sim_options, spread_us), 0 },
};

enum {
	ROWS = sizeof(rows) / sizeof(*rows),
};

/* A word that is none of a table, and what was probably meant, or all that there is. */
static int refuse_word(struct why *why, const char *what, const char *word, const void *table,
		       size_t count, size_t size)
{
	char quoted[TEXT_QUOTED_BYTES], list[TEXT_LIST_BYTES];
	const char *nearest = text_nearest(table, count, size, word);

	text_quote(word, strlen(word), quoted);
	if (nearest)
		return why_say(why, -EINVAL, "no %s %s: is %s meant?", what, quoted, nearest);
	return why_say(why, -EINVAL, "no %s %s: there are %s", what, quoted,
		       text_list(table, count, size, list));
}

static int take_policy(struct sim_options *o, const char *name, struct why *why)
{
	const struct place_policy *policy = place_policy_find(name);

	if (!policy)
		return refuse_word(why, "policy", name, PLACE_POLICIES, PLACE_POLICIES_COUNT,
				   sizeof(*PLACE_POLICIES));
	for (unsigned int i = 0; i < o->policies; i++)
		if (o->policy[i] == policy)
			return why_say(why, -EINVAL, "--placement: %s is named twice", name);
	if (o->policies == SIM_OPTIONS_POLICIES_MAX)
		return why_say(why, -EINVAL, "--placement: at most %d policies",
			       SIM_OPTIONS_POLICIES_MAX);
	o->policy[o->policies++] = policy;
	return 0;
}

static int take_slots_policy(struct sim_options *o, const char *name, struct why *why)
{
	const struct slots_policy *policy = slots_policy_find(name);

	if (!policy)
		return refuse_word(why, "policy of slots", name, SLOTS_POLICIES,
				   SLOTS_POLICIES_COUNT, sizeof(*SLOTS_POLICIES));
	for (unsigned int i = 0; i < o->slots_policies; i++)
		if (o->slots_policy[i] == policy)
			return why_say(why, -EINVAL, "--policy: %s is named twice", name);
	o->slots_policy[o->slots_policies++] = policy; /* there are fewer than there is room for */
	return 0;
}

static int take_size(struct sim_options *o, const char *text, struct why *why)
{
	char quoted[TEXT_QUOTED_BYTES];
	uint32_t size;

	text_quote(text, strlen(text), quoted);
	if (!text_u32(text, SLOTS_MAX, &size) || size == 0)
		return why_say(why, -EINVAL, "--slots %s: a number from 1 to %d", quoted,
			       SLOTS_MAX);
	if (o->sizes == SIM_OPTIONS_SIZES_MAX)
		return why_say(why, -EINVAL, "--slots: at most %d numbers", SIM_OPTIONS_SIZES_MAX);
	o->size[o->sizes++] = size;
	return 0;
}

/* Words with commas between them. */
static int take_list(struct sim_options *o, const char *words,
		     int (*take_word)(struct sim_options *o, const char *word, struct why *why),
		     struct why *why)
{
	char word[64];
	int r = 0;

	o->policies = take_word == take_policy ? 0 : o->policies;
	o->slots_policies = take_word == take_slots_policy ? 0 : o->slots_policies;
	o->sizes = take_word == take_size ? 0 : o->sizes;
	for (const char *at = words; r == 0 && at;
	     at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, ","), at);
		r = take_word(o, word, why);
	}
	return r;
}

static int take(struct sim_options *o, const struct option_row *row, const char *text,
		struct why *why)
{
	char *member = (char *)o + row->offset, quoted[TEXT_QUOTED_BYTES];
	uint32_t whole;

	text_quote(text, strlen(text), quoted);
	switch (row->kind) {
	case FLAG:
		*(bool *)member = true;
		return 0;
	case TEXT:
		*(const char **)member = text;
		return *text ? 0 : why_say(why, -EINVAL, "%s: a text is missing", row->name);
	case NEAR:
		if (!strcmp(text, "all")) {
			memset(member, 0, sizeof(whole));
			return 0;
		}
		/* fall through */
	case WHOLE:
		if (!text_u32(text, row->max, &whole) || whole == 0)
			return why_say(why, -EINVAL, "%s %s: %sa number from 1 to %u", row->name,
				       quoted, row->kind == NEAR ? "all, or " : "", row->max);
		memcpy(member, &whole, sizeof(whole));
		return 0;
	case SEED:
		if (text_number(text, false, UINT64_MAX, (uint64_t *)member))
			return 0;
		return why_say(why, -EINVAL, "%s %s: a number from 0 to 2^64 - 1", row->name,
			       quoted);
	case REAL:
		if (draw_number(text, (double *)member))
			return 0;
		return why_say(why, -EINVAL, "%s %s: a number such as 2 or 0.5", row->name, quoted);
	case POLICIES:
		return take_list(o, text, take_policy, why);
	case SLOTS_POLICIES_LIST:
		return take_list(o, text, take_slots_policy, why);
	case SIZES:
		return take_list(o, text, take_size, why);
	}
	return -EINVAL;
}

static const struct option_row *find_row(const char *word, size_t length)
{
	for (size_t i = 0; i < ROWS; i++)
		if (strlen(rows[i].name) == length && !memcmp(rows[i].name, word, length))
			return &rows[i];
	return NULL;
}

/* "--name VALUE" or "--name=VALUE"; *at is the word, and then the last one that was taken. */
static int take_option(struct sim_options *o, int words, const char *const *word, int *at,
		       struct why *why)
{
	const char *name = word[*at], *equals = strchr(name, '=');
	const struct option_row *row = find_row(name, strcspn(name, "="));
	char shown[64];

	snprintf(shown, sizeof(shown), "%.*s", (int)strcspn(name, "="), name);
	if (!row)
		return refuse_word(why, "option", shown, rows, ROWS, sizeof(*rows));
	if (!(row->of & (o->verb == SIM_OPTIONS_RUN ? RUN : SLOTS)))
		return why_say(why, -EINVAL, "%s is an option of 'tally-sim %s'", row->name,
			       row->of == RUN ? "run" : "slots");
	if (row->kind == FLAG && equals)
		return why_say(why, -EINVAL, "%s takes no value", row->name);
	if (row->kind != FLAG && !equals && ++*at == words)
		return why_say(why, -EINVAL, "%s: its value is missing", row->name);
	return take(o, row, row->kind == FLAG ? "" : equals ? equals + 1 : word[*at], why);
}

static int check_run(const struct sim_options *o, struct why *why)
{
	const char *missing = NULL;

	if (o->verb == SIM_OPTIONS_RUN && !o->policies)
		missing = "--placement";
	if (o->verb == SIM_OPTIONS_SLOTS && !o->sizes)
		missing = "--slots";
	missing = o->workload ? missing : "--workload";
	missing = o->network ? missing : "--network";
	if (missing)
		return why_say(why, -EINVAL, "%s is needed", missing);
	if (o->background >= 1)
		return why_say(why, -EINVAL,
			       "--background: a number from 0 to below 1: what is "
			       "left carries the jobs");
	if (o->json && o->csv)
		return why_say(why, -EINVAL, "--json and --csv exclude each other");
	return 0;
}

/* Who names no policies compares all. */
static void all_slots_policies(struct sim_options *o)
{
	for (unsigned int i = 0; i < SLOTS_POLICIES_COUNT && i < SIM_OPTIONS_POLICIES_MAX; i++)
		o->slots_policy[o->slots_policies++] = &SLOTS_POLICIES[i];
}

/* --help or --version, which stand in place of a command or behind one. */
static bool is_about_us(const char *word, enum sim_options_verb *ret)
{
	bool is_help = !strcmp(word, "--help") || !strcmp(word, "-h");

	if (!is_help && strcmp(word, "--version") != 0)
		return false;
	*ret = is_help ? SIM_OPTIONS_HELP : SIM_OPTIONS_VERSION;
	return true;
}

static int find_verb(const char *word, enum sim_options_verb *ret, struct why *why)
{
	static const char *const verbs[] = { "run", "slots", "policies", "networks", "models" };

	if (is_about_us(word, ret))
		return 0;
	for (size_t i = 0; i < SIM_OPTIONS_HELP; i++) {
		*ret = (enum sim_options_verb)i;
		if (!strcmp(word, verbs[i]))
			return 0;
	}
	return refuse_word(why, "command", word, verbs, SIM_OPTIONS_HELP, sizeof(*verbs));
}

int sim_options_parse(int words, const char *const *word, struct sim_options *ret, struct why *why)
{
	struct sim_options o = {
		.place = PLACE_OPTIONS, .seed = 1, .near = 16, .round_trip_us = 20, .window = 256
	};
	int r = words > 1 ? find_verb(word[1], &o.verb, why)
			  : why_say(why, -EINVAL, "a command is needed: tally-sim run ...");

	for (int at = 2; at < words && r == 0 && o.verb < SIM_OPTIONS_HELP; at++) {
		if (is_about_us(word[at], &o.verb))
			continue;
		if (o.verb > SIM_OPTIONS_SLOTS)
			r = why_say(why, -EINVAL, "%s takes no options", word[1]);
		else
			r = take_option(&o, words, word, &at, why);
	}
	if (r == 0 && o.verb <= SIM_OPTIONS_SLOTS)
		r = check_run(&o, why);
	if (r < 0)
		return r;
	if (!o.slots_policies)
		all_slots_policies(&o);
	o.place.seed = o.seed;
	*ret = o;
	return 0;
}
