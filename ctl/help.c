// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What tallyctl says of itself: from the tables of commands and options. */
#include <err.h>
#include <string.h>

#include "agent/core/config.h"
#include "ctl.h"
#include "help.h"

/* "  --socket PATH            the socket of tallyd" */
static void line_help(FILE *out, const char *dashes, const char *name, const char *value,
		      const char *help)
{
	int n = fprintf(out, "  %s%s%s%s", dashes, name, value ? " " : "", value ? value : "");

	fprintf(out, "%*s%s\n", n < 26 ? 28 - n : 2, "", help);
}

static void globals_help(FILE *out)
{
	line_help(out, "--", "socket", "PATH", "the socket of tallyd ($TALLY_SOCKET, or");
	fprintf(out, "%28s" CONFIG_CONTROL_SOCKET ")\n", "");
	line_help(out, "--", "json", NULL, "print tallyd's result as JSON");
	line_help(out, "--", "help", NULL, "print this help; after a command: its options");
	line_help(out, "--", "version", NULL, "print the version");
}

void help_command(const struct command *c)
{
	printf("usage: tallyctl %s%s%s [options]   %s\n\n", c->words, c->arguments ? " " : "",
	       c->arguments ? c->arguments : "", c->help);
	for (const struct option_kind *o = option_kinds; o < option_kinds + OPTION_COUNT; o++)
		if (c->options & OPTION_BIT(o - option_kinds))
			line_help(stdout, "--", o->name, o->value, o->help);
	globals_help(stdout);
}

void help_print(FILE *out)
{
	fputs("usage: tallyctl [--socket PATH] [--json] COMMAND [options]\n\n", out);
	for (const struct command *c = commands; c < commands + commands_count; c++)
		line_help(out, "", c->words, c->arguments, c->help);
	fputc('\n', out);
	globals_help(out);
	fputs("\nNumbers may end in k, M or G. tallyctl COMMAND --help shows a command's options.\n"
	      "Exit codes: 0 (success), 1 (failure), 2 (wrong usage).\n",
	      out);
}

void help_wrong_usage(const char *text)
{
	warnx("%s", text);
	fputs("Run 'tallyctl --help' for the usage.\n", stderr);
	exit(EXIT_USAGE);
}

void help_wrong_command(int argc, char **argv)
{
	bool family = false;
	char text[512];
	size_t n;

	for (unsigned int i = 0; i < commands_count; i++)
		family |= command_has_first(&commands[i], argv[0]);
	n = snprintf(text, sizeof(text), "%.64s%s%.64s: %s; the commands are ", argv[0],
		     family && argc > 1 ? " " : "", family && argc > 1 ? argv[1] : "",
		     family && argc < 2 ? "the second word is missing" : "unknown command");
	for (unsigned int i = 0, named = 0; i < commands_count && n < sizeof(text); i++)
		if (!family || command_has_first(&commands[i], argv[0]))
			n += snprintf(text + n, sizeof(text) - n, "%s%s", named++ ? ", " : "",
				      commands[i].words);
	help_wrong_usage(text);
}

int help(const struct ctl *ctl, struct why *why)
{
	const struct command *command = command_find(ctl->count, ctl->arguments);

	if (!ctl->count)
		help_print(stdout);
	else if (command)
		help_command(command);
	else
		help_wrong_command(ctl->count, ctl->arguments);
	return 0;
}
