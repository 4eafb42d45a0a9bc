// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Read this file first: vectors.c is a program of its own.
 *
 * tally-keys FILE: the document on standard output, its lists of keys made anew from the tables
 * that the programs read by. Such a list stands between two lines, in Markdown
 *
 *	<!-- keys of config: `make keys-docs` writes them -->
 *	<!-- end of keys -->
 *
 * and in a manual page the same behind .\" .
 */
#include <ctype.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cluster/events.h"
#include "agent/cluster/report.h"
#include "agent/cluster/wanted_ways.h"
#include "agent/core/config.h"
#include "agent/core/paths.h"
#include "agent/core/request.h"
#include "agent/core/tenant_keys.h"
#include "agent/core/tree.h"
#include "common/file.h"
#include "common/jobfile.h"
#include "common/joining.h"
#include "common/keys.h"
#include "sim/workload.h"

enum {
	TEXT_BYTES = 1024,
};

/* --- what is said of a key */

static void allowed_make(const struct key *key, const char *number, char *ret)
{
	const char *word = key->list_max && key->word ? key->word : NULL;
	char each[KEYS_ALLOWED_BYTES] = "";

	if (key->type || key->allowed) {
		key_allowed(key, number, each, sizeof(each));
	} else {
		key_allowed(key->keys->key, number, each, sizeof(each));
		snprintf(each + strlen(each), sizeof(each) - strlen(each), ", or a mapping");
	}
	if (key->list_max && !key->full)
		snprintf(ret, TEXT_BYTES, "list of at most %u, each %s%s%s", key->list_max, each,
			 word ? "; or " : "", word ? word : "");
	else
		snprintf(ret, TEXT_BYTES, "%s", each);
}

static const char *otherwise(const struct key *key)
{
	if (key->needed)
		return "needed";
	if (key->otherwise)
		return key->otherwise;
	return key->initial ? key->initial : "";
}

/* Always, or in some cases. */
static bool is_needed(const struct key *key) { return !strncmp(otherwise(key), "needed", 6); }

/* --- Markdown */

static void markdown_row(const char *path, const struct key *key)
{
	char allowed[TEXT_BYTES];

	allowed_make(key, "a number", allowed);
	printf("| `%s%s` | %s | %s | %s |\n", path, key->name, allowed, otherwise(key),
	       key->meaning);
}

/* --- manual pages */

/* The words of a link such as [trees](trees.md), if there is one: a manual page leads nowhere. */
static size_t link_words(const char *text, size_t *ret_bytes)
{
	size_t words = *text == '[' ? strcspn(text + 1, "]") : 0;

	if (!words || strncmp(text + 1 + words, "](", 2) != 0)
		return 0;
	*ret_bytes = 1 + words + strcspn(text + 1 + words, ")") + 1;
	return words;
}

/* Without the targets of links. */
static void plain_make(const char *text, char *ret)
{
	size_t bytes, words;

	while (*text) {
		words = link_words(text, &bytes);
		if (!words) {
			*ret++ = *text++;
			continue;
		}
		memcpy(ret, text + 1, words);
		ret += words;
		text += bytes;
	}
	*ret = '\0';
}

/* A sentence a line; `words` in backquotes become commands. */
static void manual_text(const char *marked)
{
	char text[2 * TEXT_BYTES];
	bool start = true;

	if (strlen(marked) >= sizeof(text))
		errx(1, "this is too long for a key: %s", marked);
	plain_make(marked, text);
	for (const char *c = text; *c; c++) {
		if (*c == '`') {
			size_t n = strcspn(c + 1, "`"), end = strspn(c + n + 2, ".,;:)");

			printf("%s.Cm %.*s%s%.*s\n", start ? "" : "\n", (int)n, c + 1,
			       end ? " " : "", (int)end, c + n + 2);
			c += n + 1 + end;
			start = true;
		} else if (c[0] == '.' && c[1] == ' ') {
			puts(".");
			start = true;
		} else if (c[0] != ' ' || (!start && c[1] != '`')) {
			printf("%s%c", start && strchr(".'", *c) ? "\\&" : "", *c);
			start = false;
		}
	}
	if (!start)
		puts("");
}

static void manual_row(const char *path, const struct key *key)
{
	char allowed[TEXT_BYTES], said[2 * TEXT_BYTES];

	printf(".It Cm %s%s\n", path, key->name);
	manual_text(key->meaning);
	allowed_make(key, "a number", allowed);
	*allowed = toupper(*allowed);
	snprintf(said, sizeof(said), "%s.", allowed);
	manual_text(said);
	if (*otherwise(key)) {
		snprintf(said, sizeof(said), "%s%s.", is_needed(key) ? "" : "By default ",
			 otherwise(key));
		*said = toupper(*said);
		manual_text(said);
	}
}

/* --- lists */

typedef void print_row(const char *path, const struct key *key);

static void rows_print(const struct keys *keys, const char *path, print_row *row)
{
	for (const struct key *key = keys->key; key < keys->key + keys->count; key++) {
		char deeper[64];

		snprintf(deeper, sizeof(deeper), "%s%s%s.", path, key->name,
			 key->list_max || key->take ? "[]" : "");
		if (key->meaning)
			row(path, key);
		if (key->keys)
			rows_print(key->keys, deeper, row);
		if (keys == &config_keys && !strcmp(key->name, "tenants"))
			rows_print(&tenant_keys, deeper, row);
	}
}

static void requests_print(void)
{
	puts("| `do` | keys | result |\n| --- | --- | --- |");
	for (int verb = 0; verb < REQUEST_VERB_COUNT; verb++) {
		const struct request_kind *kind = &request_kinds[verb];
		const char *bold = kind->right == REQUEST_OPERATOR ? "**"
				   : kind->right == REQUEST_OF_JOB ? "*"
								   : "";

		printf("| %s`%s`%s | ", bold, kind->name, bold);
		for (size_t i = 0; i < kind->keys->count; i++)
			printf("%s`%s`%s", i ? ", " : "", kind->keys->key[i].name,
			       kind->keys->key[i].needed ? "" : "?");
		printf(" | %s |\n", kind->result);
	}
}

/* "tenant-add, tenant-set": all that have these keys, if this is the first of them. */
static bool requests_name(int verb, char *ret, size_t size)
{
	const struct keys *keys = request_kinds[verb].keys;
	size_t used = 0;

	for (int i = 0; i < verb; i++)
		if (request_kinds[i].keys->key == keys->key)
			return false;
	for (int i = verb; i < REQUEST_VERB_COUNT; i++)
		if (request_kinds[i].keys->key == keys->key)
			used += snprintf(ret + used, size - used, "%s`%s`", used ? ", " : "",
					 request_kinds[i].name);
	return true;
}

static void request_keys_print(void)
{
	char allowed[TEXT_BYTES], names[TEXT_BYTES];

	puts("| of | key | value | meaning |\n| --- | --- | --- | --- |");
	for (int verb = 0; verb < REQUEST_VERB_COUNT; verb++) {
		const struct keys *keys = request_kinds[verb].keys;

		if (!requests_name(verb, names, sizeof(names)))
			continue;
		for (const struct key *key = keys->key; key < keys->key + keys->count; key++) {
			bool by_default = *otherwise(key) && !is_needed(key);

			allowed_make(key, "a whole number", allowed);
			printf("| %s | `%s` | %s | %s%s%s%s |\n", key == keys->key ? names : "",
			       key->name, allowed, key->meaning, by_default ? " By default " : "",
			       by_default ? otherwise(key) : "", by_default ? "." : "");
		}
	}
}

static void events_print(void)
{
	puts("| event | what has happened |\n| --- | --- |");
#define X(name, word, meaning) puts("| `" word "` | " meaning " |");
	EVENTS_KINDS(X)
#undef X
}

static bool list_print(const char *name, bool manual)
{
	static const struct {
		const char *name;
		const struct keys *keys;
	} lists[] = {
		{ "config", &config_keys },
		{ "ingress", &tenant_point_keys },
		{ "jobfile", &jobfile_keys },
		{ "greeting", &joining_greeting_keys },
		{ "peer", &joining_peer_keys },
		{ "joining", &joining_join_keys },
		{ "leaving", &joining_leave_keys },
		{ "staying", &joining_stay_keys },
		{ "run", &joining_run_keys },
		{ "question", &paths_question_keys },
		{ "view", &paths_view_keys },
		{ "tree", &tree_node_keys },
		{ "document", &document_keys },
		{ "report", &report_keys },
		{ "wanted", &wanted_job_keys },
		{ "tenant", &wanted_tenant_keys },
		{ "place", &wanted_place_keys },
		{ "waiting", &wanted_worker_keys },
		{ "ways", &wanted_ways_keys },
		{ "job", &workload_job_keys },
		{ "jobs", &workload_jobs_keys },
		{ "fail", &workload_fail_keys },
		{ "failures", &workload_failures_keys },
	};

	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		if (strcmp(name, lists[i].name) != 0)
			continue;
		if (!manual)
			puts("| key | value | when it is not there | meaning |\n"
			     "| --- | --- | --- | --- |");
		rows_print(lists[i].keys, "", manual ? manual_row : markdown_row);
		return true;
	}
	if (!strcmp(name, "requests"))
		requests_print();
	else if (!strcmp(name, "request-keys"))
		request_keys_print();
	else if (!strcmp(name, "events"))
		events_print();
	else
		return false;
	return true;
}

int main(int argc, char **argv)
{
	char *line = NULL, name[32];
	bool inside = false;
	size_t size = 0;
	FILE *from;

	file_watch_output();
	if (argc != 2)
		errx(2, "usage: tally-keys FILE");
	from = fopen(argv[1], "re");
	if (!from)
		err(1, "%s", argv[1]);
	while (getline(&line, &size, from) > 0) {
		bool manual = line[0] == '.';

		inside = inside && !strstr(line, "end of keys -->") &&
			 strcmp(line, ".\\\" end of keys\n") != 0;
		if (inside)
			continue;
		fputs(line, stdout);
		inside = sscanf(line,
				manual ? ".\\\" keys of %31[a-z-]:" : "<!-- keys of %31[a-z-]:",
				name) == 1;
		if (inside && !list_print(name, manual))
			errx(1, "%s: there are no keys of %s", argv[1], name);
	}
	if (inside)
		errx(1, "%s: the line 'end of keys' is missing", argv[1]);
	free(line);
	fclose(from);
	return 0;
}
