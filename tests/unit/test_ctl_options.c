// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The options of tallyctl against the keys of requests: neither has one that the other lacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "agent/core/request.h"
#include "ctl/ctl.h"

static const struct key *key_of(const struct request_kind *kind, const char *name)
{
	for (size_t i = 0; i < kind->keys->count; i++)
		if (!strcmp(kind->keys->key[i].name, name))
			return &kind->keys->key[i];
	return NULL;
}

/* quota asks for the tenant, and sets with another request what its options say. */
static const struct request_kind *kind_of(const struct command *command)
{
	if (!strcmp(command->words, "quota"))
		return &request_kinds[REQUEST_TENANT_SET];
	for (int verb = 0; verb < REQUEST_VERB_COUNT; verb++)
		if (!strcmp(request_kinds[verb].name, command->verb))
			return &request_kinds[verb];
	fail_msg("%s: there is no request %s", command->words, command->verb);
	return NULL;
}

/* Numbers are sent as numbers, yes and no as booleans, lists as lists. */
static void option_fits(const struct command *command, const struct option_kind *option)
{
	const struct key *key = key_of(kind_of(command), option->key);

	if (!key) {
		fail_msg("%s --%s: %s has no key %s", command->words, option->name, command->verb,
			 option->key);
		return;
	}
	assert_int_equal(option->type == OPTION_NUMBER || option->type == OPTION_YES_NO ||
				 option->type == OPTION_FLAG,
			 key->type->literal);
	assert_int_equal(option->type == OPTION_LIST, key->list_max > 0);
}

/* `top --cluster` sends two other requests, without keys. */
static bool is_sent(const struct command *command, int option)
{
	return option_kinds[option].key && !(command->run == top && option == OPTION_CLUSTER);
}

static void each_option_is_a_key_of_its_request(void **state)
{
	unsigned int checked = 0;

	for (unsigned int i = 0; i < commands_count; i++)
		for (int o = 0; commands[i].verb && o < OPTION_COUNT; o++)
			if (commands[i].options & OPTION_BIT(o) && is_sent(&commands[i], o)) {
				option_fits(&commands[i], &option_kinds[o]);
				checked++;
			}
	assert_true(checked > 15);
}

static bool is_said_by(const struct command *command, const char *key)
{
	/* from files */
	if (!strcmp(key, "tree") || !strcmp(key, "find_tree"))
		return command->options & OPTION_BIT(OPTION_TREE);
	if (!strcmp(key, "document"))
		return command->run == apply;
	if (command->key && !strcmp(command->key, key))
		return true;
	for (int o = 0; o < OPTION_COUNT; o++)
		if (command->options & OPTION_BIT(o) && option_kinds[o].key &&
		    !strcmp(option_kinds[o].key, key))
			return true;
	return false;
}

static void each_key_of_a_request_can_be_said(void **state)
{
	for (int verb = 0; verb < REQUEST_VERB_COUNT; verb++)
		for (size_t i = 0; i < request_kinds[verb].keys->count; i++) {
			const char *key = request_kinds[verb].keys->key[i].name;
			bool said = false;

			for (unsigned int k = 0; k < commands_count; k++)
				if (commands[k].verb &&
				    !strcmp(commands[k].verb, request_kinds[verb].name))
					said = said || is_said_by(&commands[k], key);
			if (!said)
				fail_msg("no command says %s of %s", key, request_kinds[verb].name);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_option_is_a_key_of_its_request),
		cmocka_unit_test(each_key_of_a_request_can_be_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
