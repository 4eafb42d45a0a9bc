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
	 BIT(OPTION_INGRESS))
#define JOB_OPTIONS                                                                            \
	(BIT(OPTION_WORKERS) | BIT(OPTION_TENANT) | BIT(OPTION_WINDOW) | BIT(OPTION_PAYLOAD) | \
	 BIT(OPTION_SERVICE) | BIT(OPTION_ID) | BIT(OPTION_TOKEN_FILE))

const struct command commands[] = {
	{ .words = "status",
	  .help = "show tallyd, its ports and its slots",
	  .verb = "status",
	  .show = show_status },
	{ .words = "tenant add",
	  .help = "add a tenant with a quota",
	  .arguments = "NAME",
	  .options = TENANT_OPTIONS,
	  .verb = "tenant-add",
	  .key = "name",
	  .show = show_tenant },
	{ .words = "tenant set",
	  .help = "change the given options of a tenant",
	  .arguments = "NAME",
	  .noun = NOUN_TENANT,
	  .options = TENANT_OPTIONS,
	  .verb = "tenant-set",
	  .key = "name",
	  .show = show_tenant },
	{ .words = "tenant del",
	  .help = "delete a tenant that has no jobs",
	  .arguments = "NAME",
	  .noun = NOUN_TENANT,
	  .verb = "tenant-del",
	  .key = "name",
	  .show = show_nothing },
	{ .words = "tenant list",
	  .help = "list all tenants, or one",
	  .arguments = "[NAME]",
	  .noun = NOUN_TENANT,
	  .verb = "tenant-list",
	  .key = "name",
	  .show = show_tenants },
	{ .words = "quota",
	  .help = "show quotas and their use; with options, change one",
	  .arguments = "[TENANT]",
	  .noun = NOUN_TENANT,
	  .options = TENANT_OPTIONS,
	  .named = true,
	  .verb = "tenant-list",
	  .key = "name",
	  .run = quota },
	{ .words = "job create",
	  .help = "create a job and print its token",
	  .arguments = "NAME",
	  .options = JOB_OPTIONS,
	  .needed = BIT(OPTION_WORKERS),
	  .verb = "job-create",
	  .key = "name",
	  .run = job_create },
	{ .words = "job show",
	  .help = "show a job and its members",
	  .arguments = "NAME",
	  .noun = NOUN_JOB,
	  .verb = "job-list",
	  .key = "name",
	  .show = show_job },
	{ .words = "job del",
	  .help = "delete a job; its workers get an error",
	  .arguments = "NAME",
	  .noun = NOUN_JOB,
	  .verb = "job-del",
	  .key = "name",
	  .show = show_nothing },
	{ .words = "job list",
	  .help = "list all jobs, or a tenant's",
	  .arguments = "[NAME]",
	  .noun = NOUN_JOB,
	  .options = BIT(OPTION_TENANT),
	  .verb = "job-list",
	  .key = "name",
	  .show = show_jobs },
	{ .words = "job token",
	  .help = "print a job's token",
	  .arguments = "NAME",
	  .noun = NOUN_JOB,
	  .options = BIT(OPTION_TOKEN_FILE),
	  .verb = "job-token",
	  .key = "name",
	  .run = job_token },
	{ .words = "stats",
	  .help = "show how many packets had which outcome",
	  .options = BIT(OPTION_JOB) | BIT(OPTION_TENANT) | BIT(OPTION_PORT) | BIT(OPTION_ALL) |
		     BIT(OPTION_HISTORY),
	  .verb = "stats",
	  .show = show_stats },
	{ .words = "links",
	  .help = "show the ports' traffic, rates and backlogs",
	  .verb = "links",
	  .show = show_links },
	{ .words = "top",
	  .help = "show jobs, tenants and links, live",
	  .verb = "top",
	  .run = top,
	  .options = BIT(OPTION_ONCE) | BIT(OPTION_INTERVAL) },
	{ .words = "trace",
	  .help = "show sampled packets and their outcomes",
	  .verb = "trace",
	  .options = BIT(OPTION_EVERY) | BIT(OPTION_JOB),
	  .run = trace },
	{ .words = "doctor",
	  .help = "find what is wrong with this node and how to mend it",
	  .arguments = "[PORT]...",
	  .noun = NOUN_PORT,
	  .run = doctor },
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

/* Does the command begin with these words? */
static bool begins_with(const struct command *command, const char *first, const char *second)
{
	const char *blank = strchr(command->words, ' ');
	size_t length = strcspn(command->words, " ");

	if (strlen(first) != length || strncmp(command->words, first, length) != 0)
		return false;
	return !blank || (second && !strcmp(blank + 1, second));
}

const struct command *command_find(int argc, char **argv, int *ret_words)
{
	for (unsigned int i = 0; argc && i < commands_count; i++) {
		if (!begins_with(&commands[i], argv[0], argc > 1 ? argv[1] : NULL))
			continue;
		*ret_words = strchr(commands[i].words, ' ') ? 2 : 1;
		return &commands[i];
	}
	return NULL;
}
