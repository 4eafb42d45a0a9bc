// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line as a request (docs/control.md), and the answer. */
#include <errno.h>
#include <string.h>

#include "agent/core/request.h"
#include "connection.h"
#include "ctl.h"

/*
 * The length in bytes of the control character at `text`: 0 if there is none, 1, or 2 for those
 * from U+0080 to U+009F in UTF-8, which some terminals obey, too.
 */
static unsigned int control_bytes(const char *text)
{
	const unsigned char *byte = (const unsigned char *)text;

	if ((*byte && *byte < ' ') || *byte == 0x7f)
		return 1;
	return *byte == 0xc2 && byte[1] >= 0x80 && byte[1] <= 0x9f ? 2 : 0;
}

void ctl_disarm_text(char *text)
{
	for (; *text; text++)
		for (unsigned int n = control_bytes(text); n; n--)
			text[n - 1] = '?';
}

static bool has_control(const char *text)
{
	while (*text && !control_bytes(text))
		text++;
	return *text;
}

/* The texts keep their lengths, so they are changed where they lie. */
void ctl_disarm(json_t *value)
{
	const char *key;
	json_t *child;
	void *next;
	size_t i;

	if (json_is_string(value))
		ctl_disarm_text((char *)json_string_value(value));
	json_array_foreach(value, i, child) ctl_disarm(child);
	json_object_foreach_safe(value, next, key, child)
	{
		if (has_control(key))
			json_object_del(value, key);
		else
			ctl_disarm(child);
	}
}

/* Whoever gave up does not know whether it was done, nor, of a new job, its token. */
static int late(const json_t *request, struct why *why)
{
	const char *verb = json_string_value(json_object_get(request, "do"));
	const char *name = json_string_value(json_object_get(request, "name"));
	const bool has_token = !strcmp(verb, "job-create") || !strcmp(verb, "job-rotate");
	const struct why said = *why;
	unsigned int i = 0;

	while (i < REQUEST_VERB_COUNT && strcmp(request_verb_name(i), verb) != 0)
		i++;
	if (i == REQUEST_VERB_COUNT || request_kinds[i].right == REQUEST_ANYONE)
		return -ETIMEDOUT;
	return why_say(why, -ETIMEDOUT, "%.256s, and may still do it: look with tallyctl %s%s%s",
		       said.text,
		       strncmp(verb, "job-", 4) == 0 || !strcmp(verb, "apply") ? "job list"
		       : strncmp(verb, "tenant-", 7) == 0		       ? "tenant list"
									       : "status",
		       has_token ? "; the token: tallyctl job token " : "", has_token ? name : "");
}

int ctl_ask(const struct ctl *ctl, json_t *request, json_t **ret, struct why *why)
{
	_cleanup_(connection_closep) struct connection *connection = NULL;
	_cleanup_(json_decrefp) json_t *owned = request;
	int r = connection_open(ctl->socket, ctl->timeout_ms, &connection, why);

	if (r == 0)
		r = connection_ask(connection, owned, ret, why);
	if (r == -ETIMEDOUT)
		r = late(owned, why);
	if (r == 0 && !ctl->json)
		ctl_disarm(*ret);
	return r;
}

static json_t *value_of(const struct ctl *ctl, enum option_id option)
{
	json_t *list;

	switch (option_kinds[option].type) {
	case OPTION_FLAG:
		return json_true();
	case OPTION_YES_NO:
		return json_boolean(!strcmp(ctl->value[option], "yes"));
	case OPTION_NUMBER:
		return json_integer((json_int_t)ctl->number[option]);
	case OPTION_TEXT:
		return json_string(ctl->value[option]);
	case OPTION_LIST:
		list = json_array();
		if (ctl->lists == 1 && !strcmp(ctl->list[0], CTL_LIST_NONE))
			return list;
		for (unsigned int i = 0; i < ctl->lists; i++)
			json_array_append_new(list, json_string(ctl->list[i]));
		return list;
	}
	return NULL;
}

json_t *request_make(const struct ctl *ctl)
{
	const struct command *command = ctl->command;
	json_t *request = json_object();

	json_object_set_new(request, "do", json_string(command->verb));
	if (command->key && ctl->count)
		json_object_set_new(request, command->key, json_string(ctl->arguments[0]));
	for (int i = 0; i < OPTION_COUNT; i++)
		if (ctl->value[i] && option_kinds[i].key)
			json_object_set_new(request, option_kinds[i].key, value_of(ctl, i));
	return request;
}

void ctl_dump(const json_t *result)
{
	json_dumpf(result, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	putchar('\n');
}
