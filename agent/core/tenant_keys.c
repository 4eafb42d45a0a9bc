// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tenant_keys.h"

#include <stdio.h>
#include <string.h>

#include "common/owned.h"

static bool port_parse(const struct key *key, const char *text, void *member)
{
	return tenant_port_is_valid(text) && snprintf(member, key->size, "%s", text) > 0;
}

static void text_print(const struct key *key, const void *member, char *text, size_t size)
{
	snprintf(text, size, "%s", (const char *)member);
}

static bool group_parse(const struct key *key, const char *text, void *member)
{
	static const char signs[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";
	size_t length = strlen(text);

	return length && *text != '-' && strspn(text, signs) == length &&
	       snprintf(member, key->size, "%s", text) < (int)key->size;
}

const struct key_type key_group = { group_parse, text_print,
				    .allowed = "the name of a group of users" };

static bool point_parse(const struct key *key, const char *text, void *member)
{
	struct why why;

	return tenant_point_parse(text, member, &why) == 0;
}

static void point_print(const struct key *key, const void *member, char *text, size_t size)
{
	tenant_point_print(member, text, size);
}

static bool place_parse(const struct key *key, const char *text, void *member)
{
	struct why why;

	return tenant_place_parse(text, member, &why) == 0;
}

static void place_print(const struct key *key, const void *member, char *text, size_t size)
{
	tenant_place_print(member, text, size);
}

_Static_assert(IF_NAMESIZE - 1 == 15 && TENANT_POINTS_MAX == 16, "texts name them");

const struct key_type key_port = { port_parse, text_print,
				   .allowed = "the name of an interface, of at most 15 bytes" };
const struct key_type key_point = {
	point_parse, point_print,
	.allowed = "an ingress point, such as eth1 vlan 5 source 10.77.1.0/24"
};

const struct key_type key_tenant_place = {
	place_parse, place_print,
	.allowed = "an ingress point at a node, such as n0/eth1 vlan 5 source 10.77.1.0/24"
};

/* An ingress point that is a mapping. */
struct point_words {
	char port[TENANT_POINT_BYTES];
	char vlan[TENANT_POINT_BYTES];
	char source[TENANT_POINT_BYTES];
};

static bool word_parse(const struct key *key, const char *text, void *member)
{
	return *text && !strpbrk(text, " \t") &&
	       snprintf(member, key->size, "%s", text) < (int)key->size;
}

static const struct key_type key_word = { word_parse, text_print, .allowed = "one word" };

static const struct key point_rows[] = {
	{ "port", &key_word, KEY_MEMBER(struct point_words, port), .needed = true,
	  .meaning = "One of `ports`." },
	{ "vlan", &key_word, KEY_MEMBER(struct point_words, vlan), .otherwise = "any",
	  .meaning = "A number from 0 to 4094; 0: frames without a tag." },
	{ "source", &key_word, KEY_MEMBER(struct point_words, source), .otherwise = "any",
	  .meaning = "Address, `/` and the number of bits that count, those behind them 0; "
		     "without `/`: one address." },
};

const struct keys tenant_point_keys = KEYS(point_rows);

/* Both forms go through tenant_point_parse(), so that there is one set of rules. */
static int point_text(struct reading *r, const struct place *at, char *ret, size_t size)
{
	struct point_words w = { 0 };
	const char *text;
	int error;

	if (at->value->kind == VALUE_MAPPING && !r->style->strict_lists) {
		error = keys_take(r, at, &tenant_point_keys, &w, NULL);
		if (error == 0)
			snprintf(ret, size, "%s%s%s%s%s", w.port, *w.vlan ? " vlan " : "", w.vlan,
				 *w.source ? " source " : "", w.source);
		return error;
	}
	error = keys_text(r, at, key_point.allowed, &text);
	if (error == 0)
		snprintf(ret, size, "%s", text);
	return error;
}

static int point_take(struct reading *r, const struct place *at, void *into)
{
	char text[sizeof(struct point_words) + 32];
	struct tenant *tenant = into;
	struct why why;
	int error = point_text(r, at, text, sizeof(text));

	if (error < 0)
		return error;
	if (tenant_point_parse(text, &tenant->point[tenant->points], &why) < 0)
		return keys_refuse(r, at, "%s", why.text);
	tenant->points++;
	return at->key->check ? at->key->check(r, at, into) : 0;
}

int tenant_take_points(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, TENANT_POINTS_MAX, point_take, into);
}

static const struct key rows[] = { TENANT_NAME_ROW, TENANT_QUOTA_ROWS(NULL) };

const struct keys tenant_keys = KEYS(rows);
