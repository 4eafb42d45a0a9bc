// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What may come next on a command line. The shell's completion calls this, and so always fits this
 * tallyctl and knows the names that tallyd has now. Errors are silent.
 */
#include <net/if.h>
#include <string.h>

#include "agent/core/config.h"
#include "ctl.h"
#include "table.h"

#define FILES ":files" /* the shell completes names of files itself */

enum {
	TIMEOUT_MS = 1000, /* the user waits for the key to act */
};

/* What the words before the cursor say. */
struct line {
	const struct command *command; /* NULL: not complete yet */
	const char *socket;
	const char *word[2]; /* the words of the command */
	int words; /* how many of them */
	int arguments; /* how many follow the words of the command */
	uint32_t given; /* the options so far, a set */
	enum noun noun; /* of the option whose value is at the cursor */
	bool is_value; /* the cursor is at the value of an option */
};

/* --- words ----------------------------------------------------------------------------------- */

/* The first words, or the second ones behind the first. */
static void words_print(const struct line *l)
{
	for (const struct command *c = commands; c < commands + commands_count; c++) {
		size_t length = strcspn(c->words, " ");

		if (l->words && command_has_first(c, l->word[0]))
			puts(c->words + length + 1);
		else if (!l->words &&
			 (c == commands || strncmp(c[-1].words, c->words, length + 1) != 0))
			printf("%.*s\n", (int)length, c->words);
	}
}

/* --- names ----------------------------------------------------------------------------------- */

static void names_print(const json_t *rows)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row) if (*field_text(row, "name"))
		puts(field_text(row, "name"));
}

/* Without tallyd, any interface may be a port. */
static void interfaces_print(void)
{
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *i = all; i && i->if_index; i++)
		puts(i->if_name);
	if_freenameindex(all);
}

static json_t *answer_get(const char *socket, const char *verb)
{
	const struct ctl ctl = { .socket = socket, .timeout_ms = TIMEOUT_MS };
	json_t *result = NULL;
	struct why why;

	ctl_ask(&ctl, json_pack("{ss}", "do", verb), &result, &why);
	return result;
}

static void noun_print(const char *socket, enum noun noun)
{
	static const char *const verbs[] = {
		[NOUN_TENANT] = "tenant-list", [NOUN_JOB] = "job-list", [NOUN_PORT] = "status"
	};
	_cleanup_(json_decrefp) json_t *result = NULL;

	if (noun == NOUN_FILE)
		puts(FILES);
	if (noun == NOUN_COMMAND)
		words_print(&(struct line){ .words = 0 });
	if (noun != NOUN_TENANT && noun != NOUN_JOB && noun != NOUN_PORT)
		return;
	result = answer_get(socket, verbs[noun]);
	if (noun != NOUN_PORT)
		names_print(result);
	else if (result)
		names_print(field(result, "ports"));
	else
		interfaces_print();
}

/* --- the line -------------------------------------------------------------------------------- */

static int option_find(const char *word)
{
	size_t length = strcspn(word, "=");

	for (int i = 0; i < OPTION_COUNT; i++)
		if (!strncmp(option_kinds[i].name, word, length) && !option_kinds[i].name[length])
			return i;
	return -1;
}

/* An option at argv[i]; returns how many words it takes with its value. Shells cut at "=". */
static int option_read(struct line *l, int argc, char **argv, int i)
{
	const char *word = argv[i] + 2, *equals = strchr(word, '=');
	bool is_socket = !strncmp(word, "socket", strcspn(word, "="));
	int option = option_find(word), taken = 1;

	if (option >= 0)
		l->given |= OPTION_BIT(option);
	if (equals || (!is_socket && (option < 0 || !option_kinds[option].value))) {
		if (is_socket && equals)
			l->socket = equals + 1;
		return taken;
	}
	if (i + taken < argc && !strcmp(argv[i + taken], "=") && i + taken + 1 < argc)
		taken++;
	if (i + taken >= argc - 1) {
		l->is_value = true;
		l->noun = is_socket ? NOUN_FILE : option_kinds[option].noun;
	} else if (is_socket) {
		l->socket = argv[i + taken];
	}
	return taken + 1;
}

static void line_read(struct line *l, int argc, char **argv)
{
	for (int i = 0; i < argc - 1;) {
		if (!strncmp(argv[i], "--", 2)) {
			i += option_read(l, argc, argv, i);
			continue;
		}
		if (l->command) {
			l->arguments++;
		} else if (l->words < 2) {
			l->word[l->words++] = argv[i];
			l->command = command_find(l->words, (char **)l->word);
		}
		i++;
	}
}

static void options_print(const struct line *l)
{
	for (int i = 0; l->command && i < OPTION_COUNT; i++)
		if (l->command->options & OPTION_BIT(i) &&
		    (!(l->given & OPTION_BIT(i)) || option_kinds[i].type == OPTION_LIST))
			printf("--%s\n", option_kinds[i].name);
	puts("--socket\n--json\n--help");
	if (!l->words)
		puts("--version");
}

void complete(int argc, char **argv)
{
	const char *socket = getenv("TALLY_SOCKET");
	struct line l = { .socket = socket && *socket ? socket : CONFIG_CONTROL_SOCKET };

	if (argc < 1)
		return;
	line_read(&l, argc, argv);
	if (l.is_value)
		noun_print(l.socket, l.noun);
	else if (*argv[argc - 1] == '-')
		options_print(&l);
	else if (!l.command)
		words_print(&l);
	else if (l.arguments < command_arguments_max(l.command))
		noun_print(l.socket, l.command->noun);
}
