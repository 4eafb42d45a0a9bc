// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The command line as a request (docs/control.md). */
#include "ctl.h"

static json_t *value_of(const struct ctl *ctl, enum option_id option)
{
	json_t *list;

	switch (option_kinds[option].type) {
	case OPTION_FLAG:
		return json_true();
	case OPTION_NUMBER:
		return json_integer((json_int_t)ctl->number[option]);
	case OPTION_TEXT:
		return json_string(ctl->value[option]);
	case OPTION_LIST:
		list = json_array();
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
