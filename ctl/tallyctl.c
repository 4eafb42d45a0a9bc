// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tallyctl: sends requests to tallyd and shows the results. */
#include <err.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "agent/core/config.h"
#include "ctl.h"

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

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

static void command_help(const struct command *c)
{
	printf("usage: tallyctl %s%s%s [options]   %s\n\n", c->words, c->arguments ? " " : "",
	       c->arguments ? c->arguments : "", c->help);
	for (const struct option_kind *o = option_kinds; o < option_kinds + OPTION_COUNT; o++)
		if (c->options & OPTION_BIT(o - option_kinds))
			line_help(stdout, "--", o->name, o->value, o->help);
	globals_help(stdout);
}

static void help(FILE *out)
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

__attribute__((noreturn)) static void usage(const char *text)
{
	warnx("%s", text);
	fputs("Run 'tallyctl --help' for the usage.\n", stderr);
	exit(EXIT_USAGE);
}

/* Lists the commands that begin with the same word, or all commands. */
__attribute__((noreturn)) static void usage_command(int argc, char **argv)
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
	usage(text);
}

static int command_run(const struct ctl *ctl, struct why *why)
{
	_cleanup_(json_decrefp) json_t *result = NULL;
	int r;

	if (ctl->command->run)
		return ctl->command->run(ctl, why);
	r = ctl_ask(ctl, request_make(ctl), &result, why);
	if (r < 0)
		return r;
	if (ctl->json)
		ctl_dump(result);
	else if (ctl->command->show)
		r = ctl->command->show(ctl, result, stdout, why);
	return r;
}

/* A write error is a failure; a reader that closed the pipe is none. */
static int output_close(struct why *why)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
		return 0;
	return why_say(why, -EIO, "cannot write to standard output: %s",
		       strerror(errno ? errno : EIO));
}

int main(int argc, char **argv)
{
	const char *socket = getenv("TALLY_SOCKET");
	struct ctl ctl = { .socket = socket && *socket ? socket : CONFIG_CONTROL_SOCKET,
			   .timeout_ms = CTL_TIMEOUT_MS };
	struct why why = { "" };
	int words, r;

	if (argc > 1 && !strcmp(argv[1], "__complete")) {
		complete(argc - 2, argv + 2);
		return 0;
	}
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	ctl.style = style_of(STDOUT_FILENO);
	r = options_parse(argc, argv, &ctl, &why);
	if (r < 0)
		usage(why.text);
	if (r > 0 || !ctl.count) {
		help(r > 0 ? stdout : stderr);
		return r > 0 ? 0 : EXIT_USAGE;
	}
	ctl.command = command_find(ctl.count, ctl.arguments);
	if (!ctl.command)
		usage_command(ctl.count, ctl.arguments);
	words = strchr(ctl.command->words, ' ') ? 2 : 1;
	r = options_parse(ctl.count - words + 1, ctl.arguments + words - 1, &ctl, &why);
	if (r < 0)
		usage(why.text);
	if (r > 0) {
		command_help(ctl.command);
		return 0;
	}
	r = command_run(&ctl, &why);
	if (r == 0)
		r = output_close(&why);
	ctl_disarm_text(why.text);
	if (r < 0)
		errx(EXIT_FAILED, "%s", *why.text ? why.text : strerror(-r));
	return r;
}
