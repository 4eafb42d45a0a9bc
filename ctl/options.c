// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options, and how the command line becomes a struct ctl. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "agent/core/traffic.h"
#include "common/joining.h"
#include "ctl.h"
#include "units.h"

const struct option_kind option_kinds[OPTION_COUNT] = {
	[OPTION_SLOTS] = { "slots", "N", .key = "slots", .help = "slots reserved for the tenant" },
	[OPTION_PACKETS] = { "packets-per-second", "N", .key = "packets_per_second",
			     .help = "packets from and to its workers, together; 0: no limit" },
	[OPTION_BYTES] = { "bytes-per-second", "N", .key = "bytes_per_second",
			   .help = "the same in bytes of whole frames; 0: no limit" },
	[OPTION_PRIORITY] = { "priority", "P", .key = "priority",
			      .help = "how much its messages' priority counts for borrowed slots, 0 to 255" },
	[OPTION_INGRESS] = { "ingress", "POINT", .key = "ingress",
			     .help = "where its messages may enter the node, with --cluster NODE/POINT; may be repeated; any",
			     .type = OPTION_LIST, .noun = NOUN_PORT },
	[OPTION_WORKERS] = { "workers", "N", .key = "workers",
			     .help = "number of workers, 1 to 256", .least = 1,
			     .most = TALLY_WORKERS_MAX },
	[OPTION_TENANT] = { "tenant", "NAME", .key = "tenant", .help = "name of the tenant",
			    .type = OPTION_TEXT, .noun = NOUN_TENANT },
	[OPTION_WINDOW] = { "window", "W", .key = "window",
			    .help = "chunks that a worker may have in flight, a power of two" },
	[OPTION_PAYLOAD] = { "payload", "B", .key = "payload",
			     .help = "bytes of data in a full packet" },
	[OPTION_SERVICE] = { "service", "ADDRESS", .key = "service",
			     .help = "the node's address that workers send to",
			     .type = OPTION_TEXT },
	[OPTION_ID] = { "id", "N", .key = "id", .help = "the job's number in packets" },
	[OPTION_TOKEN_FILE] = { "token-file", "FILE",
				.help = "write the token to a new file that only you can read",
				.type = OPTION_TEXT, .noun = NOUN_FILE },
	[OPTION_JOB] = { "job", "NAME", .key = "job", .help = "only packets of this job",
			 .type = OPTION_TEXT, .noun = NOUN_JOB },
	[OPTION_PORT] = { "port", "DEV", .key = "port",
			  .help = "only packets that entered at this port", .type = OPTION_TEXT,
			  .noun = NOUN_PORT },
	[OPTION_ALL] = { "all", .help = "show counters that are 0, too", .type = OPTION_FLAG },
	[OPTION_HISTORY] = { "history", "N", .key = "history",
			     .help = "the rates of the last N samples of a job or a port",
			     .least = 1, .most = TRAFFIC_HISTORY },
	[OPTION_EVERY] = { "every", "N", .key = "every", .help = "sample one packet in N (1)",
			   .least = 1, .most = UINT32_MAX },
	[OPTION_ONCE] = { "once", .help = "print one frame and end", .type = OPTION_FLAG },
	[OPTION_INTERVAL] = { "interval", "SECONDS", .help = "time between two frames (1)",
			      .least = 1, .most = CTL_INTERVAL_MAX },
	[OPTION_RANK] = { "rank", "N", .key = "rank", .help = "the rank that is to go, from 0 on",
			  .most = TALLY_WORKERS_MAX - 1 },
	[OPTION_GROUP] = { "group", "GROUP", .key = "group",
			   .help = "users who may see and change its jobs; none",
			   .type = OPTION_TEXT },
	[OPTION_TAGS] = { "tags", "YES|NO", .key = "tags",
			  .help = "may only who has a key speak for a worker or the node? (yes)",
			  .type = OPTION_YES_NO },
	[OPTION_SEALED] = { "sealed", .key = "sealed",
			    .help = "its workers find out what a node adds wrong",
			    .type = OPTION_FLAG },
	[OPTION_TREE] = { "tree", "FILE|auto",
			  .help = "its inner nodes, in JSON (-: standard input); auto: agents find them",
			  .type = OPTION_TEXT, .noun = NOUN_FILE },
	[OPTION_NODE] = { "node", "NODE", .key = "node",
			  .help = "of this inner node only; the node to move to",
			  .type = OPTION_TEXT },
	[OPTION_CLUSTER] = { "cluster", .key = "cluster",
			     .help = "of the cluster, and so of all its nodes",
			     .type = OPTION_FLAG },
	[OPTION_ROOTS] = { "roots", "N", .key = "roots",
			   .help = "roots that the cluster finds for it, and splits each call over (1)",
			   .type = OPTION_NUMBER, .least = 1, .most = JOINING_ROOTS_MAX },
	[OPTION_SVG] = { "svg", .help = "as a picture", .type = OPTION_FLAG },
	[OPTION_EXPORT] = { "export", .help = "as a file for tally-sim --network",
			    .type = OPTION_FLAG },
	[OPTION_STAY] = { "stay", .key = "stay",
			  .help = "the leader moves it only if the node goes or is cordoned",
			  .type = OPTION_FLAG },
	[OPTION_TIMEOUT] = { "timeout", "SECONDS",
			     .help = "fail if runs are still on then (wait as long as it takes)",
			     .least = 1, .most = CTL_DRAIN_MAX },
};

enum {
	VALUE_SOCKET = 's', /* options of all commands */
	VALUE_JSON = 'j',
	VALUE_HELP = 'h',
	VALUE_VERSION = 'V',
	VALUE_COMMAND = 256, /* plus an enum option_id */
	GLOBALS = 4,
};

static const struct option globals[GLOBALS] = {
	{ "socket", required_argument, NULL, VALUE_SOCKET },
	{ "json", no_argument, NULL, VALUE_JSON },
	{ "help", no_argument, NULL, VALUE_HELP },
	{ "version", no_argument, NULL, VALUE_VERSION },
};

/* For getopt_long(): the options of `set` and those of all commands. */
static void options_fill(uint32_t set, struct option *ret)
{
	for (int i = 0; i < OPTION_COUNT; i++)
		if (set & OPTION_BIT(i))
			*ret++ = (struct option){ option_kinds[i].name,
						  option_kinds[i].value ? required_argument
									: no_argument,
						  NULL, VALUE_COMMAND + i };
	memcpy(ret, globals, sizeof(globals));
	ret[GLOBALS] = (struct option){ 0 };
}

/* "--slots, --tenant and --json" for an error's text. */
static void options_name(uint32_t set, char *text, size_t size)
{
	size_t n = 0;

	for (int i = 0; i < OPTION_COUNT && n < size; i++)
		if (set & OPTION_BIT(i))
			n += snprintf(text + n, size - n, "--%s, ", option_kinds[i].name);
	if (n < size)
		snprintf(text + n, size - n, "--socket, --json and --help");
}

static int unknown_option(const char *words, uint32_t set, const char *given, int kind,
			  struct why *why)
{
	char names[256];

	if (kind == ':')
		return why_say(why, -EINVAL, "%s%s%s: the option needs a value", words,
			       *words ? ": " : "", given);
	options_name(set, names, sizeof(names));
	return why_say(why, -EINVAL, "%s%s%s: unknown option; the options are %s", words,
		       *words ? ": " : "", given, names);
}

static int number_take(const struct option_kind *kind, const char *text, uint64_t *ret,
		       struct why *why)
{
	uint64_t number = 0;
	int r = units_parse(text, &number);

	if (r == -EINVAL)
		return why_say(why, -EINVAL,
			       "--%s %s: must be a whole number, such as 4096, 200k, 1.5M or 10G",
			       kind->name, text);
	if (r == -ERANGE || number > INT64_MAX)
		return why_say(why, -EINVAL, "--%s %s: the number is too big", kind->name, text);
	if (kind->most && (number < kind->least || number > kind->most))
		return why_say(why, -EINVAL,
			       "--%s %s: must be a number from %" PRIu64 " to %" PRIu64, kind->name,
			       text, kind->least, kind->most);
	*ret = number;
	return 0;
}

static int value_take(struct ctl *ctl, enum option_id option, const char *text, struct why *why)
{
	const struct option_kind *kind = &option_kinds[option];
	int r;

	if (kind->type == OPTION_LIST && ctl->lists == CTL_LIST_MAX)
		return why_say(why, -EINVAL, "--%s %s: the option may be given %d times at most",
			       kind->name, text, CTL_LIST_MAX);
	if (kind->type == OPTION_LIST)
		ctl->list[ctl->lists++] = text;
	if (kind->type == OPTION_YES_NO && strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return why_say(why, -EINVAL, "--%s %s: must be yes or no", kind->name, text);
	if (kind->type == OPTION_NUMBER) {
		r = number_take(kind, text, &ctl->number[option], why);
		if (r < 0)
			return r;
	}
	ctl->value[option] = text ? text : "";
	return 0;
}

/* One pass over argv; ends at the first argument if `order` is "+:". 1: --help. */
static int options_pass(int argc, char **argv, const char *order, const struct option *known,
			struct ctl *ctl, struct why *why)
{
	const char *words = ctl->command ? ctl->command->words : "";
	uint32_t set = ctl->command ? ctl->command->options : 0;
	int o, r, at;

	opterr = 0;
	optind = 0; /* glibc: start again */
	while (at = optind ? optind : 1, (o = getopt_long(argc, argv, order, known, NULL)) != -1) {
		switch (o) {
		case VALUE_HELP:
			return 1;
		case VALUE_VERSION:
			puts("tallyctl " TALLY_VERSION_TEXT);
			exit(0);
		case VALUE_JSON:
			ctl->json = true;
			continue;
		case VALUE_SOCKET:
			ctl->socket = optarg;
			continue;
		case '?':
		case ':':
			return unknown_option(words, set, argv[optind > 1 ? optind - 1 : at], o,
					      why);
		default:
			r = value_take(ctl, o - VALUE_COMMAND, optarg, why);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

static int arguments_check(const struct ctl *ctl, struct why *why)
{
	const struct command *command = ctl->command;

	if (ctl->count < command_arguments_min(command))
		return why_say(why, -EINVAL, "%s: %s is missing", command->words,
			       command->arguments);
	if (ctl->count > command_arguments_max(command))
		return why_say(why, -EINVAL, "%s: %s: one argument too many; the command takes %s",
			       command->words, ctl->arguments[command_arguments_max(command)],
			       command->arguments ? command->arguments : "none");
	for (int i = 0; i < OPTION_COUNT; i++)
		if (command->needed & OPTION_BIT(i) && !ctl->value[i])
			return why_say(why, -EINVAL, "%s: --%s %s is missing", command->words,
				       option_kinds[i].name, option_kinds[i].value);
	for (int i = 0; command->named && !ctl->count && i < OPTION_COUNT; i++)
		if (ctl->value[i] && i != OPTION_CLUSTER) /* all of its tenants are shown */
			return why_say(why, -EINVAL, "%s: --%s: the name of the %s is missing",
				       command->words, option_kinds[i].name,
				       command->noun == NOUN_JOB ? "job" : "tenant");
	return 0;
}

int options_parse(int argc, char **argv, struct ctl *ctl, struct why *why)
{
	struct option known[OPTION_COUNT + GLOBALS + 1];
	int r;

	options_fill(ctl->command ? ctl->command->options : 0, known);
	r = options_pass(argc, argv, ctl->command ? ":h" : "+:h", known, ctl, why);
	if (r)
		return r;
	ctl->arguments = argv + optind;
	ctl->count = argc - optind;
	return ctl->command ? arguments_check(ctl, why) : 0;
}
