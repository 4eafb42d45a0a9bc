// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tallyctl: sends requests to tallyd and shows the results. */
#include <err.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <string.h>

#include "agent/core/config.h"
#include "common/file.h"
#include "ctl.h"
#include "help.h"

enum {
	EXIT_FAILED = 1,
};

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
	file_watch_output();
	setlocale(LC_CTYPE, "");
	signal(SIGPIPE, SIG_IGN);
	ctl.style = style_of(STDOUT_FILENO);
	r = options_parse(argc, argv, &ctl, &why);
	if (r < 0)
		help_wrong_usage(why.text);
	if (r > 0 || !ctl.count) {
		help_print(r > 0 ? stdout : stderr);
		return r > 0 ? 0 : EXIT_USAGE;
	}
	ctl.command = command_find(ctl.count, ctl.arguments);
	if (!ctl.command)
		help_wrong_command(ctl.count, ctl.arguments);
	words = strchr(ctl.command->words, ' ') ? 2 : 1;
	r = options_parse(ctl.count - words + 1, ctl.arguments + words - 1, &ctl, &why);
	if (r < 0)
		help_wrong_usage(why.text);
	if (r > 0) {
		help_command(ctl.command);
		return 0;
	}
	r = command_run(&ctl, &why);
	ctl_disarm_text(why.text);
	if (r < 0)
		errx(EXIT_FAILED, "%s", *why.text ? why.text : strerror(-r));
	return r;
}
