// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: a command is one line of this table. Then ctl.h, options.c, show.c.
 *
 * The commands of tallyctl: a table.
 */
#include <string.h>

#include "ctl.h"
#include "show.h"

#define BIT OPTION_BIT
#define TENANT_OPTIONS                                                                        \
	(BIT(OPTION_SLOTS) | BIT(OPTION_PACKETS) | BIT(OPTION_BYTES) | BIT(OPTION_PRIORITY) | \
	 BIT(OPTION_INGRESS) | BIT(OPTION_GROUP) | BIT(OPTION_CLUSTER))
#define JOB_OPTIONS                                                                            \
	(BIT(OPTION_WORKERS) | BIT(OPTION_TENANT) | BIT(OPTION_WINDOW) | BIT(OPTION_PAYLOAD) | \
	 BIT(OPTION_SERVICE) | BIT(OPTION_ID) | BIT(OPTION_TAGS) | BIT(OPTION_SEALED) |        \
	 BIT(OPTION_TREE) | BIT(OPTION_CLUSTER) | BIT(OPTION_ROOTS) | BIT(OPTION_TOKEN_FILE))
#define STATS_OPTIONS                                                                \
	(BIT(OPTION_JOB) | BIT(OPTION_TENANT) | BIT(OPTION_PORT) | BIT(OPTION_ALL) | \
	 BIT(OPTION_HISTORY))

const struct command commands[] = {
	{ "status", "show tallyd, its ports and its slots", "status", .show = show_status },
	{ "reload", "make tallyd read its configuration again", .verb = "reload" },
	{ "cordon", "let no run begin; runs that are on go on", .verb = "cordon" },
	{ "drain", "let no run begin, and wait until all runs are over", "cordon", .run = drain,
	  .options = BIT(OPTION_TIMEOUT) },
	{ "uncordon", "let runs begin again", .verb = "uncordon" },
	{ "tenant add", "add a tenant with a quota", "tenant-add", "NAME", "name", NOUN_NONE,
	  .show = show_tenants, .options = TENANT_OPTIONS },
	{ "tenant set", "change the given options of a tenant", "tenant-set", "NAME", "name",
	  NOUN_TENANT, .show = show_tenants, .options = TENANT_OPTIONS },
	{ "tenant del", "delete a tenant that has no jobs", "tenant-del", "NAME", "name",
	  .noun = NOUN_TENANT, .options = BIT(OPTION_CLUSTER) },
	{ "tenant list", "list all tenants, or one", "tenant-list", "[NAME]", "name", NOUN_TENANT,
	  .show = show_tenants, .options = BIT(OPTION_CLUSTER) },
	{ "quota", "show quotas and their use; with options, change one", "tenant-list", "[TENANT]",
	  "name", NOUN_TENANT, .run = quota, .options = TENANT_OPTIONS, .named = true },
	{ "job create", "create a job and print its token", "job-create", "NAME", "name",
	  .run = job_token, .options = JOB_OPTIONS, .needed = BIT(OPTION_WORKERS) },
	{ "job show", "show a job and its members", "job-list", "NAME", "name", NOUN_JOB,
	  .show = show_job },
	{ "job del", "delete a job; its workers get an error", "job-del", "NAME", "name",
	  .noun = NOUN_JOB },
	{ "job list", "list all jobs, or a tenant's", "job-list", "[NAME]", "name", NOUN_JOB,
	  .show = show_jobs, .options = BIT(OPTION_TENANT) },
	{ "job token", "print a job's token", "job-token", "NAME", "name", NOUN_JOB,
	  .run = job_token, .options = BIT(OPTION_TOKEN_FILE) },
	{ "job rotate", "give a job a new token, and print it", "job-rotate", "NAME", "name",
	  NOUN_JOB, .run = job_token, .options = BIT(OPTION_TOKEN_FILE) },
	{ "job restart", "end a job's run; its workers get an error, and may join again",
	  "job-restart", "NAME", "name", .noun = NOUN_JOB },
	{ "job kick", "send a worker away; the run of its job ends", "job-kick", "NAME", "name",
	  NOUN_JOB, .options = BIT(OPTION_RANK), .needed = BIT(OPTION_RANK) },
	{ "job place", "move a job of the cluster to another node, with its run", "job-place",
	  "NAME", "name", NOUN_JOB, .options = BIT(OPTION_NODE) | BIT(OPTION_STAY),
	  .needed = BIT(OPTION_NODE) },
	{ "job documents", "print the documents of a job's inner nodes, for apply", "job-documents",
	  "NAME", "name", NOUN_JOB, .run = documents, .options = BIT(OPTION_NODE) },
	{ "apply", "give this inner node the document of a run; - is standard input", "apply",
	  "FILE", .noun = NOUN_FILE, .run = apply, .options = BIT(OPTION_TENANT) },
	{ "stats", "show how many packets had which outcome", "stats", .show = show_stats,
	  .options = STATS_OPTIONS },
	{ "links", "show the ports' traffic, rates and backlogs", "links", .show = show_links },
	{ "top", "show jobs, tenants and links, live", "top", .run = top,
	  .options = BIT(OPTION_ONCE) | BIT(OPTION_INTERVAL) | BIT(OPTION_CLUSTER) },
	{ "cluster", "show the jobs of the cluster; one by name, with what was weighed",
	  "cluster-jobs", "[NAME]", "name", NOUN_JOB, .run = cluster, .options = BIT(OPTION_SVG),
	  .named = true },
	{ "events", "show what has happened in the cluster, and why", "events",
	  .show = show_events },
	{ "topology", "show the nodes of the cluster, and who is at which link", "topology",
	  .show = show_topology, .options = BIT(OPTION_EXPORT) | BIT(OPTION_SVG) },
	{ "trace", "show sampled packets and their outcomes", "trace", .run = trace,
	  .options = BIT(OPTION_EVERY) | BIT(OPTION_JOB) },
	{ "doctor", "find what is wrong with this node and how to mend it", NULL, "[PORT]...", NULL,
	  NOUN_PORT, .run = doctor },
	{ "help", "show all commands, or the options of one", NULL, "[COMMAND]...", NULL,
	  NOUN_COMMAND, .run = help },
};

const unsigned int commands_count = sizeof(commands) / sizeof(*commands);

int command_arguments_min(const struct command *command)
{
	return command->arguments && *command->arguments != '[';
}

int command_arguments_max(const struct command *command)
{
	if (!command->arguments)
		return 0;
	return strstr(command->arguments, "...") ? CTL_ARGUMENTS_MAX : 1;
}

bool command_has_first(const struct command *command, const char *word)
{
	size_t length = strlen(word);

	return !strncmp(command->words, word, length) && command->words[length] == ' ';
}

const struct command *command_find(int argc, char **argv)
{
	for (const struct command *c = commands; argc && c < commands + commands_count; c++)
		if (strchr(c->words, ' ') ? argc > 1 && command_has_first(c, argv[0]) &&
						    !strcmp(strchr(c->words, ' ') + 1, argv[1])
					  : !strcmp(c->words, argv[0]))
			return c;
	return NULL;
}
