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

#include "agent/core/config.h"
#include "agent/core/keys_json.h"
#include "agent/core/keys_yaml.h"
#include "agent/core/request.h"
#include "common/jobfile.h"
#include "common/keys.h"
#include "common/lines.h"
#include "common/name.h"
#include "scarce.h"

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
		assert_int_equal(strstr(why.text, "nested too deeply") != NULL,
				 depth > VALUE_DEPTH_MAX);
	}
}

static void depth_of_json_is_limited(void **state)
{
	char text[2 * VALUE_DEPTH_MAX + 16];

	for (int depth = 1; depth <= VALUE_DEPTH_MAX + 1; depth++) {
		_cleanup_(json_freep) json_t *json = NULL;
		_cleanup_(value_freep) struct value *root = NULL;

		snprintf(text, sizeof(text), "%.*s%.*s", depth, "[[[[[[[[[[", depth, "]]]]]]]]]]");
		json = json_loads(text, 0, NULL);
		assert_non_null(json);
		assert_int_equal(keys_json_tree(json, &root),
				 depth > VALUE_DEPTH_MAX ? -EINVAL : 0);
	}
}

/* --- positions ------------------------------------------------------------------------------- */

static const struct value *member(const struct value *v, const char *name)
{
	for (v = v->first; v; v = v->next)
		if (value_is(v->key, name))
			return v;
	fail_msg("there is no %s", name);
	return NULL;
}

static void at(const struct value *v, unsigned int line, unsigned int column)
{
	assert_int_equal(v->at.line, line);
	assert_int_equal(v->at.column, column);
}

static void values_of_yaml_have_line_and_column(void **state)
{
	static const char text[] = "# first\nports:\n  - a\n  - {name: b, mode:   tc}\nslots: 5\n";
	_cleanup_(value_freep) struct value *root = NULL;
	const struct value *ports, *b;

	assert_int_equal(keys_yaml_parse(text, strlen(text), "f", &root, &why), 0);
	at(root, 2, 1);
	ports = member(root, "ports");
	at(ports->key, 2, 1);
	at(ports->first, 3, 5);
	b = ports->first->next;
	at(b, 4, 5);
	at(member(b, "name"), 4, 12);
	at(member(b, "mode")->key, 4, 15);
	at(member(b, "mode"), 4, 23);
	at(member(root, "slots"), 5, 8);
}

static void what_is_no_yaml_has_a_column(void **state)
{
	assert_int_equal(read_text("flag: true\n  small: [1\n"), -EINVAL);
	assert_non_null(strstr(why.text, "f:2: not YAML: column 8: "));
	assert_int_equal(read_text("flag: true\nsmall: \xff\n"), -EINVAL);
	assert_non_null(strstr(why.text, "f:2: not YAML: column 8: "));
}

static void lines_have_line_and_column(void **state)
{
	static const char loose[] = "# first\n\n  small \t 7 # seven\nnumber 9";
	static const char strict[] = "small 7\n";
	char said[160];
	struct lines l;

	lines_init_loose(&l, loose, strlen(loose), said, sizeof(said));
	assert_int_equal(lines_next(&l), 0);
	at(&l.key, 3, 3);
	at(&l.value, 3, 11);
	assert_int_equal(lines_next(&l), 0);
	at(&l.key, 4, 1);
	at(&l.value, 4, 8);
	assert_string_equal(l.value.text, "9");
	assert_int_equal(lines_next(&l), -EAGAIN);
	lines_init(&l, strict, strlen(strict), 16, said, sizeof(said));
	assert_int_equal(lines_next(&l), 0);
	at(&l.key, 1, 1);
	at(&l.value, 1, 7);
}

/* --- a table of each type -------------------------------------------------------------------- */

struct kinds {
	uint16_t word, power, blocks;
	int rank;
	char name[NAME_BYTES], token[TOKEN_BYTES], path[16];
	struct sockaddr_storage address, endpoint;
	unsigned int colour;
	unsigned int points;
	uint8_t point[3];
};

#define KIND(member) KEY_MEMBER(struct kinds, member)

static const struct key kind_rows[] = {
	{ "word", &key_number, KIND(word), .min = 5, .max = 500, .initial = "77" },
	{ "power", &key_power, KIND(power), .min = 1, .max = 64 },
	{ "blocks", &key_blocks, KIND(blocks), .min = 64, .max = 256, .initial = "128" },
	{ "rank", &key_number, KIND(rank), .max = 255, .word = "any", .fill = 0xff,
	  .initial = "any" },
	{ "name", &key_name, KIND(name), .needed = true },
	{ "token", &key_token, KIND(token), .brief = true },
	{ "path", &key_path, KIND(path), .initial = "/tmp" },
	{ "address", &key_address, KIND(address), .brief = true },
	{ "endpoint", &key_endpoint, KIND(endpoint), .brief = true },
	{ "colour", &key_choice, KIND(colour), .words = colours, .min = 1, .initial = "green" },
	{ "point", &key_number, KEY_LIST(struct kinds, point, points), .max = 9, .flow = true },
};
static const struct keys kinds = KEYS(kind_rows);

static struct kinds kind;

static int kinds_read(const char *text)
{
	struct reading reading = { &keys_yaml_style, "f", NULL, why.text, sizeof(why.text) };
	_cleanup_(value_freep) struct value *root = NULL;

	memset(&kind, 0, sizeof(kind));
	keys_default(&kinds, &kind);
	assert_int_equal(keys_yaml_parse(text, strlen(text), "f", &root, &why), 0);
	return keys_take_root(&reading, root, &kinds, &kind, NULL);
}

static void kinds_refused(const char *text, const char *reason)
{
	assert_int_equal(kinds_read(text), -EINVAL);
	assert_string_equal(why.text, reason);
}

static void what_is_not_there_has_its_default(void **state)
{
	assert_int_equal(kinds_read("name: a"), 0);
	assert_int_equal(kind.word, 77);
	assert_int_equal(kind.blocks, 128);
	assert_int_equal(kind.rank, -1);
	assert_string_equal(kind.path, "/tmp");
	assert_int_equal(kind.colour, 1);
	assert_int_equal(kind.power, 0);
}

static void each_type_takes_what_it_allows_and_no_more(void **state)
{
	assert_int_equal(kinds_read("{name: a, word: 5, power: 64, blocks: 256, rank: 255, "
				    "path: /23456789012345, point: [9, 0, 1]}"),
			 0);
	assert_int_equal(kind.word, 5);
	assert_int_equal(kind.points, 3);
	assert_int_equal(kinds_read("{name: a, word: 500, power: 1, blocks: 64, rank: any}"), 0);
	kinds_refused("name: a\nword: 4", "f:2: word: '4': a number from 5 to 500");
	kinds_refused("name: a\nword: 501", "f:2: word: '501': a number from 5 to 500");
	kinds_refused("name: a\npower: 0", "f:2: power: '0': a power of two from 1 to 64");
	kinds_refused("name: a\npower: 128", "f:2: power: '128': a power of two from 1 to 64");
	kinds_refused("name: a\npower: 48", "f:2: power: '48': a power of two from 1 to 64");
	kinds_refused("name: a\nblocks: 0",
		      "f:2: blocks: '0': a multiple of 64 from 64 to 256 (bytes)");
	kinds_refused("name: a\nblocks: 320",
		      "f:2: blocks: '320': a multiple of 64 from 64 to 256 (bytes)");
	kinds_refused("name: a\nrank: 256", "f:2: rank: '256': a number from 0 to 255, or any");
	kinds_refused("name: A", "f:1: name: 'A': 1 to 63 of a-z, 0-9, '.', '_' and '-', "
				 "beginning with a letter or a digit");
	kinds_refused("name: a\npath: /234567890123456",
		      "f:2: path: '/234567890123456': a path from / on, of at most 15 printable "
		      "characters");
	kinds_refused("name: a\ncolour: red", "f:2: colour: 'red': one of green");
	kinds_refused("name: a\npoint: [1, 10]", "f:2: point[1]: '10': a number from 0 to 9");
	kinds_refused("name: a\npoint: [1, 2, 3, 4]",
		      "f:2: point[3]: one too many; there can be at most 3");
	kinds_refused("word: 5", "f: the key 'name' is needed");
	kinds_refused("name: a\nname: a", "f:2: 'name': given twice");
}

static void a_secret_is_never_shown(void **state)
{
	kinds_refused("name: a\ntoken: 'se cret'",
		      "f:2: token: 1 to 128 of A-Z, a-z, 0-9, '_' and '-'");
}

#define FULL                                                                               \
	"word: 5\npower: 64\nblocks: 256\nrank: any\nname: a\ntoken: 't'\npath: '/x''y'\n" \
	"address: '10.0.0.1'\nendpoint: '[fd77::1]:9'\ncolour: green\npoint: [1, 9]\n"

static void what_is_printed_as_yaml_is_read(void **state)
{
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *f;

	assert_int_equal(kinds_read(FULL), 0);
	f = open_memstream(&text, &size);
	keys_yaml_print(&kinds, &kind, "", f);
	fclose(f);
	assert_string_equal(text, FULL);
}

static void what_is_printed_as_json_is_read(void **state)
{
	static const struct keys_style style = { .number = "n", .strict_lists = true };
	struct reading reading = { &style, "f", NULL, why.text, sizeof(why.text) };
	_cleanup_(value_freep) struct value *root = NULL;
	_cleanup_(json_freep) json_t *json = NULL;
	_cleanup_(freep) char *text = NULL;
	struct kinds again = { 0 };

	assert_int_equal(kinds_read(FULL), 0);
	json = keys_json_make(&kinds, &(struct kinds){ .rank = 7, .colour = 1 });
	json_decref(json);
	kind.rank = 255; /* a word is none of JSON's numbers */
	json = keys_json_make(&kinds, &kind);
	text = json_dumps(json, JSON_COMPACT);
	assert_string_equal(text, "{\"word\":5,\"power\":64,\"blocks\":256,\"rank\":255,\"name\":"
				  "\"a\",\"token\":\"t\",\"path\":\"/x'y\",\"address\":"
				  "\"10.0.0.1\",\"endpoint\":\"[fd77::1]:9\",\"colour\":\"green\","
				  "\"point\":[1,9]}");
	assert_int_equal(keys_json_tree(json, &root), 0);
	assert_int_equal(keys_take_root(&reading, root, &kinds, &again, NULL), 0);
	assert_memory_equal(&again, &kind, sizeof(kind));
}

static void a_string_is_no_number_in_json(void **state)
{
	static const struct keys_style style = { .number = "a number", .strict_lists = true };
	struct reading reading = { &style, "f", NULL, why.text, sizeof(why.text) };
	static const char *const wrong[] = { "{\"name\":\"a\",\"word\":\"5\"}",
					     "{\"name\":1}",
					     "{\"name\":null}",
					     "{\"name\":\"a\",\"word\":5.0}",
					     "{\"name\":\"a\",\"word\":true}",
					     "{\"name\":\"a\",\"point\":1}" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		_cleanup_(json_freep) json_t *json = json_loads(wrong[i], 0, NULL);
		_cleanup_(value_freep) struct value *root = NULL;

		assert_int_equal(keys_json_tree(json, &root), 0);
		assert_int_equal(keys_take_root(&reading, root, &kinds, &kind, NULL), -EINVAL);
	}
}

static void what_is_printed_as_lines_is_read(void **state)
{
	static const char wanted[] = "head\nword 5\npower 64\nblocks 256\nrank any\nname a\n"
				     "token t\npath /x'y\naddress 10.0.0.1\n"
				     "endpoint [fd77::1]:9\ncolour green\npoint 1\npoint 9\nend";
	char text[256], said[160];
	size_t length = 0;
	struct lines l;
	uint32_t seen = 0;
	struct kinds first;

	assert_int_equal(kinds_read(FULL), 0);
	first = kind;
	assert_int_equal(lines_print("head\n", &kinds, &kind, "end", text, sizeof(text), &length),
			 0);
	assert_string_equal(text, wanted);
	assert_int_equal(length, strlen(wanted));
	for (size_t size = 1; size <= length; size++)
		assert_int_equal(
			lines_print("head\n", &kinds, &kind, "end", text, size, &(size_t){ 0 }),
			-ENOSPC);
	memset(&kind, 0, sizeof(kind));
	lines_init(&l, wanted + 5, strlen(wanted) - 5, 100, said, sizeof(said));
	for (int i = 0; i < 10; i++) { /* the lists of lines are the job file's */
		assert_int_equal(lines_next(&l), 0);
		assert_int_equal(lines_take(&l, &kinds, &kind, &seen), 0);
	}
	assert_int_equal(lines_end(&l, &kinds, seen), 0);
	first.points = 0;
	memset(first.point, 0, sizeof(first.point));
	assert_memory_equal(&kind, &first, sizeof(kind));
}

/* --- lists that grow ------------------------------------------------------------------------- */

struct leaf {
	unsigned int number, marks;
	uint8_t *mark;
};

struct grown {
	uint8_t leaves;
	struct leaf *leaf;
	unsigned int words;
	uint16_t *word;
};

enum {
	LEAVES_MAX = 5,
	WORDS_MAX = 100,
};

static const struct key leaf_rows[] = {
	{ "number", &key_number, KEY_MEMBER(struct leaf, number), .max = 99, .initial = "7" },
	{ "marks", &key_number, KEY_ROWS(struct leaf, mark, marks, 3), .max = 9 },
};
static const struct keys leaf_keys = KEYS(leaf_rows);

static const struct key grown_rows[] = {
	{ "leaves", NULL, KEY_ROWS(struct grown, leaf, leaves, LEAVES_MAX), .keys = &leaf_keys },
	{ "words", &key_number, KEY_ROWS(struct grown, word, words, WORDS_MAX), .max = 500,
	  .check = keys_check_unique, .brief = true },
};
static const struct keys grown_keys = KEYS(grown_rows);

static int grown_read(const char *text, struct grown *ret)
{
	struct reading reading = { &keys_yaml_style, "f", NULL, why.text, sizeof(why.text) };
	_cleanup_(value_freep) struct value *root = NULL;
	int error = keys_yaml_parse(text, strlen(text), "f", &root, &why);

	keys_default(&grown_keys, ret);
	return error < 0 ? error : keys_take_root(&reading, root, &grown_keys, ret, NULL);
}

static void grown_close(struct grown *g)
{
	keys_free(&grown_keys, g);
	assert_null(g->leaf);
	assert_null(g->word);
	assert_int_equal(g->leaves + g->words, 0);
}

static void grown_refused(const char *text, const char *reason)
{
	_cleanup_(grown_close) struct grown g = { 0 };

	assert_int_equal(grown_read(text, &g), -EINVAL);
	assert_string_equal(why.text, reason);
}

/* A list of each length up to the longest, and what is printed of it is read again. */
static void a_list_that_grows_has_what_was_read(void **state)
{
	for (unsigned int n = 0; n <= WORDS_MAX; n++) {
		_cleanup_(grown_close) struct grown g = { 0 }, again = { 0 };
		_cleanup_(freep) char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		fputs("words: [", f);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, "%s%u", i ? ", " : "", i + n);
		fputs("]\nleaves: [{marks: [1, 2, 3]}, {number: 8}]\n", f);
		fclose(f);
		assert_int_equal(grown_read(text, &g), 0);
		assert_int_equal(g.words, n);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(g.word[i], i + n);
		assert_int_equal(g.leaves, 2);
		assert_int_equal(g.leaf[0].number, 7);
		assert_int_equal(g.leaf[0].mark[2], 3);
		assert_int_equal(g.leaf[1].number, 8);
		assert_null(g.leaf[1].mark);
		assert_int_equal(key_is_brief(&grown_rows[1], &g), n == 0);
		free(TAKE_PTR(text));
		f = open_memstream(&text, &size);
		fputs("words:", f);
		for (unsigned int i = 0; i < n; i++)
			fprintf(f, "\n- %u",
				((const uint16_t *)key_element(&grown_rows[1], &g, i))[0]);
		fclose(f);
		assert_int_equal(grown_read(text, &again), 0);
		assert_int_equal(again.words, n);
	}
}

static void a_list_that_grows_has_its_bounds(void **state)
{
	char text[1024] = "words:\n";

	grown_refused("leaves: [{}, {}, {}, {}, {}, {}]",
		      "f:1: leaves[5]: one too many; there can be at most 5");
	grown_refused("leaves: [{}, {number: 100}]",
		      "f:1: leaves[1].number: '100': a number from 0 to 99");
	grown_refused("leaves: [{}, {marks: [1, 2, 10]}]",
		      "f:1: leaves[1].marks[2]: '10': a number from 0 to 9");
	grown_refused("leaves: [{}, {marks: [1, 2, 3, 4]}]",
		      "f:1: leaves[1].marks[3]: one too many; there can be at most 3");
	grown_refused("words: [1, 2, 1]", "f:1: words[2]: '1': is named twice");
	for (unsigned int i = 0; i <= WORDS_MAX; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "- %u\n", i);
	grown_refused(text, "f:102: words[100]: one too many; there can be at most 100");
}

/* What was there goes; what is printed as JSON is what is there. */
static void a_list_that_grows_may_be_read_again(void **state)
{
	_cleanup_(grown_close) struct grown g = { 0 };
	_cleanup_(json_freep) json_t *json = NULL;
	_cleanup_(freep) char *text = NULL;

	assert_int_equal(grown_read("leaves: [{marks: [1]}, {marks: [2, 3]}]\nwords: 4", &g), 0);
	assert_int_equal(grown_read("leaves: [{marks: [5, 6]}]", &g), 0);
	json = keys_json_make(&grown_keys, &g);
	text = json_dumps(json, JSON_COMPACT);
	assert_string_equal(text, "{\"leaves\":[{\"number\":7,\"marks\":[5,6]}],\"words\":[4]}");
}

static int grown_run(void *text)
{
	_cleanup_(grown_close) struct grown g = { 0 };
	struct reading reading = { &keys_yaml_style, "f", NULL, why.text, sizeof(why.text) };

	return keys_take_root(&reading, text, &grown_keys, &g, NULL);
}

static void without_memory_a_list_does_not_grow(void **state)
{
	static const char text[] = "leaves: [{marks: [1, 2]}, {marks: [3]}]\nwords: [1, 2, 3]";
	_cleanup_(value_freep) struct value *root = NULL;

	assert_int_equal(keys_yaml_parse(text, strlen(text), "f", &root, &why), 0);
	run_out_of_memory(grown_run, root);
}

/* Whoever adds a key: its default must be one of the values that it allows. */
static void defaults_of_the_tables_may_be_written(void **state)
{
	static struct config config;
	static struct run run;

	keys_default(&config_keys, &config);
	keys_default(&jobfile_keys, &run);
	assert_int_equal(config.slots, DATAPLANE_SLOTS);
	assert_int_equal(run.window, RUN_WINDOW);
	assert_int_equal(run.epoch, 1);
	for (int verb = 0; verb < REQUEST_VERB_COUNT; verb++) {
		struct request q = { 0 };

		keys_default(request_kinds[verb].keys, (char *)&q + request_kinds[verb].offset);
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
		cmocka_unit_test(depth_of_json_is_limited),
		cmocka_unit_test(values_of_yaml_have_line_and_column),
		cmocka_unit_test(what_is_no_yaml_has_a_column),
		cmocka_unit_test(lines_have_line_and_column),
		cmocka_unit_test(what_is_not_there_has_its_default),
		cmocka_unit_test(each_type_takes_what_it_allows_and_no_more),
		cmocka_unit_test(a_secret_is_never_shown),
		cmocka_unit_test(what_is_printed_as_yaml_is_read),
		cmocka_unit_test(what_is_printed_as_json_is_read),
		cmocka_unit_test(a_string_is_no_number_in_json),
		cmocka_unit_test(what_is_printed_as_lines_is_read),
		cmocka_unit_test(a_list_that_grows_has_what_was_read),
		cmocka_unit_test(a_list_that_grows_has_its_bounds),
		cmocka_unit_test(a_list_that_grows_may_be_read_again),
		cmocka_unit_test(without_memory_a_list_does_not_grow),
		cmocka_unit_test(defaults_of_the_tables_may_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
