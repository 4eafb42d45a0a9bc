// SPDX-License-Identifier: GPL-2.0-only
/* Tables of keys against YAML, JSON and lines: order, positions, types. The configuration's own are
 * in test_config.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/core/keys_yaml.h"
#include "common/keys.h"

struct things {
	uint8_t small;
	uint32_t number;
	uint64_t rate;
	unsigned int colour;
	bool flag;
	struct {
		uint32_t number;
	} inner;
	char order[16]; /* keys as they were read, a letter each */
	char list[64]; /* elements, each with a comma behind it */
};

static struct things things;
static struct why why;

static int take_letter(struct reading *r, const struct place *at, void *into)
{
	struct things *all = r->root;

	assert_ptr_equal(all, &things);
	all->order[strlen(all->order)] = *at->key->name;
	return 0;
}

static int take_element(struct reading *r, const struct place *at, void *into)
{
	struct things *all = r->root;
	const char *text = NULL;
	size_t used;
	int error = keys_text(r, at, "a word", &text);

	if (error < 0)
		return error;
	if (value_is(at->value, "no"))
		return keys_refuse_value(r, at, "anything else");
	used = strlen(all->list);
	snprintf(all->list + used, sizeof(all->list) - used, "%s,", text);
	return 0;
}

static int take_list(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, 3, take_element, into);
}

static const char *const colours[] = { "red", "green", NULL };

#define THINGS(member) KEY_MEMBER(struct things, member)

static const struct key inner_rows[] = {
	{ "number", &key_number, THINGS(inner.number), .min = 2, .max = UINT32_MAX },
	{ "list", .take = take_list },
};
static const struct keys inner_keys = KEYS(inner_rows);

static const struct key rows[] = {
	{ "xray", .take = take_letter },
	{ "yankee", .take = take_letter },
	{ "zulu", .take = take_letter },
	{ "small", &key_number, THINGS(small), .max = UINT8_MAX },
	{ "number", &key_number, THINGS(number), .min = 2, .max = UINT32_MAX },
	{ "rate", &key_rate, THINGS(rate), .max = UINT64_MAX },
	{ "colour", &key_choice, THINGS(colour), .words = colours },
	{ "flag", &key_bool, THINGS(flag) },
	{ "inner", .keys = &inner_keys },
	{ "list", .take = take_list },
};
static const struct keys keys = KEYS(rows);

static int read_text(const char *text)
{
	struct reading reading = { &keys_yaml_style, "f", &things, why.text, sizeof(why.text) };
	_cleanup_(value_freep) struct value *root = NULL;

	memset(&things, 0, sizeof(things));
	if (keys_yaml_parse(text, strlen(text), "f", &root, &why) < 0)
		return -EINVAL;
	return keys_take_root(&reading, root, &keys, &things, NULL);
}

static void taken(const char *text)
{
	if (read_text(text) < 0)
		fail_msg("%s", why.text);
}

static void refused(const char *text, const char *reason)
{
	assert_int_equal(read_text(text), -EINVAL);
	assert_string_equal(why.text, reason);
}

static void keys_are_read_in_the_order_of_the_table(void **state)
{
	taken("zulu: 1\nxray: 2\nyankee: 3\n");
	assert_string_equal(things.order, "xyz");
	taken("yankee: 3\n");
	assert_string_equal(things.order, "y");
}

static void nothing_is_read_of_what_has_a_wrong_key(void **state)
{
	refused("xray: 1\nwhiskey: 2\n",
		"f:2: 'whiskey': no such key; there are xray, yankee, zulu, small, number, rate, "
		"colour, flag, inner and list");
	assert_string_equal(things.order, "");
}

static void numbers_fit_what_they_are_read_into(void **state)
{
	taken("{small: 255, number: 4294967295, rate: 18446744073709551615}");
	assert_int_equal(things.small, 255);
	assert_true(things.number == UINT32_MAX);
	assert_true(things.rate == UINT64_MAX);
	taken("{small: 0, number: 2, rate: 5M}");
	assert_int_equal(things.number, 2);
	assert_int_equal(things.rate, 5000000);
	refused("small: 256", "f:1: small: '256': a number from 0 to 255");
	refused("small: 1k", "f:1: small: '1k': a number from 0 to 255");
	refused("number: 1", "f:1: number: '1': a number from 2 to 4294967295");
	refused("number: 4294967296", "f:1: number: '4294967296': a number from 2 to 4294967295");
	refused("rate: 18446744073709551616", "f:1: rate: '18446744073709551616': a number from 0 "
					      "to 18446744073709551615, or with k, M or G behind "
					      "it");
	refused("rate:", "f:1: rate: '': a number from 0 to 18446744073709551615, or with k, M or "
			 "G behind it");
}

static void choices_are_numbered_as_they_stand(void **state)
{
	taken("colour: red\nflag: false");
	assert_int_equal(things.colour, 0);
	assert_false(things.flag);
	taken("colour: 'green'\nflag: true");
	assert_int_equal(things.colour, 1);
	assert_true(things.flag);
	refused("colour: Red", "f:1: colour: 'Red': one of red and green");
	refused("colour: {}", "f:1: colour: (a mapping): one of red and green");
	refused("flag: yes", "f:1: flag: 'yes': one of false and true");
}

static void a_list_of_one_needs_no_list(void **state)
{
	taken("list: [a, b, '']");
	assert_string_equal(things.list, "a,b,,");
	taken("list: a b");
	assert_string_equal(things.list, "a b,");
	taken("list: ''");
	assert_string_equal(things.list, ",");
	taken("list:");
	assert_string_equal(things.list, "");
	taken("list: []");
	assert_string_equal(things.list, "");
	refused("list: {a: b}", "f:1: list: (a mapping): a list is needed here");
	refused("list:\n- a\n- b\n- c\n- d\n",
		"f:5: list[3]: one too many; there can be at most 3");
}

static void members_are_named_from_the_top(void **state)
{
	taken("inner: {number: 7, list: a}");
	assert_int_equal(things.inner.number, 7);
	refused("inner:\n  number: 1\n", "f:2: inner.number: '1': a number from 2 to 4294967295");
	refused("inner:\n  list:\n    - yes\n    - no\n",
		"f:4: inner.list[1]: 'no': anything else");
	refused("inner:\n  list: no\n", "f:2: inner.list: 'no': anything else");
	refused("list: [[a]]", "f:1: list[0]: (a list): a word");
	refused("inner: [a]", "f:1: inner: (a list): a mapping is needed here; its keys are "
			      "number and list");
}

/* As deep as may be is only wrong for what it is; one deeper is too deep. */
static void depth_is_limited(void **state)
{
	char text[2 * VALUE_DEPTH_MAX + 16];

	for (int depth = 1; depth <= VALUE_DEPTH_MAX + 1; depth++) {
		snprintf(text, sizeof(text), "%.*s%.*s", depth, "[[[[[[[[[[", depth, "]]]]]]]]]]");
		assert_int_equal(read_text(text), -EINVAL);
		assert_int_equal(strstr(why.text, "too deep") != NULL, depth > VALUE_DEPTH_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read_in_the_order_of_the_table),
		cmocka_unit_test(nothing_is_read_of_what_has_a_wrong_key),
		cmocka_unit_test(numbers_fit_what_they_are_read_into),
		cmocka_unit_test(choices_are_numbered_as_they_stand),
		cmocka_unit_test(a_list_of_one_needs_no_list),
		cmocka_unit_test(members_are_named_from_the_top),
		cmocka_unit_test(depth_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
