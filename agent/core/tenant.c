// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tenant.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/name.h"
#include "common/text.h"

#define POINT_FORM "PORT [vlan N] [source ADDRESS/BITS], such as eth1 vlan 5 source 10.77.1.0/24"

enum {
	WORDS_MAX = 5, /* of an ingress point */
};

bool tenant_port_is_valid(const char *name)
{
	size_t n = 0;

	if (!strcmp(name, ".") || !strcmp(name, ".."))
		return false;
	for (; n < IF_NAMESIZE && name[n]; n++)
		if (name[n] <= ' ' || name[n] > '~' || name[n] == '/' || name[n] == ':')
			return false;
	return n > 0 && n < IF_NAMESIZE;
}

/* Sets all bits behind the prefix to 0. Were they so already? */
static bool prefix_cut(uint8_t *address, unsigned int bytes, unsigned int bits)
{
	bool clean = true;

	for (unsigned int i = 0; i < bytes; i++) {
		unsigned int here = bits > 8 * i ? bits - 8 * i : 0;
		uint8_t mask = here >= 8 ? 0xff : 0xff00 >> here;

		clean = clean && !(address[i] & ~mask);
		address[i] &= mask;
	}
	return clean;
}

static void source_print(const struct tenant_point *point, char *text, size_t size)
{
	char address[ADDRESS_BYTES];

	address_print(&point->source, address, sizeof(address));
	snprintf(text, size, "%s/%u", address, point->source_bits);
}

/* "10.77.1.0/24", "fd77::/64"; without "/BITS" it is one address. Writes all of it or nothing. */
static int source_parse(const char *word, struct tenant_point *point, struct why *why)
{
	const char *slash = strchr(word, '/');
	size_t length = slash ? (size_t)(slash - word) : strlen(word);
	char host[INET6_ADDRSTRLEN], quoted[TEXT_QUOTED_BYTES];
	struct tenant_point p = *point;
	uint8_t *address;
	uint64_t bits;
	size_t bytes;

	snprintf(host, sizeof(host), "%.*s", (int)length, word);
	p.source.ss_family = memchr(word, ':', length) ? AF_INET6 : AF_INET;
	address = address_raw(&p.source, &bytes);
	if (length >= sizeof(host) || inet_pton(p.source.ss_family, host, address) != 1)
		return why_say(why, -EINVAL,
			       "source %s: an address and prefix, such as "
			       "10.77.1.0/24 or fd77:1::/64",
			       text_quote(word, strlen(word), quoted));
	bits = 8 * bytes;
	if (slash && !text_number(slash + 1, false, 8 * bytes, &bits))
		return why_say(why, -EINVAL, "source %s: after / a prefix length from 0 to %zu",
			       text_quote(word, strlen(word), quoted), 8 * bytes);
	p.source_bits = bits;
	if (!prefix_cut(address, bytes, bits)) {
		char right[TENANT_POINT_BYTES];

		source_print(&p, right, sizeof(right));
		return why_say(why, -EINVAL, "source %s: has host bits set; did you mean %s?",
			       text_quote(word, strlen(word), quoted), right);
	}
	*point = p;
	return 0;
}

static int vlan_parse(const char *word, struct tenant_point *point, struct why *why)
{
	char quoted[TEXT_QUOTED_BYTES];
	uint64_t vlan;

	if (!text_number(word, false, TENANT_VLAN_MAX, &vlan))
		return why_say(why, -EINVAL, "vlan %s: a number from 0 (untagged) to %d",
			       text_quote(word, strlen(word), quoted), TENANT_VLAN_MAX);
	point->vlan = vlan;
	return 0;
}

/* Cuts `text` at its blanks. One more than WORDS_MAX: there are more. */
static unsigned int words_cut(char *text, char *word[WORDS_MAX])
{
	unsigned int words = 0;
	char *rest;

	for (char *w = strtok_r(text, " \t", &rest); w; w = strtok_r(NULL, " \t", &rest)) {
		if (words == WORDS_MAX)
			return WORDS_MAX + 1;
		word[words++] = w;
	}
	return words;
}

int tenant_point_parse(const char *text, struct tenant_point *ret, struct why *why)
{
	struct tenant_point p = { .vlan = TENANT_VLAN_ANY };
	char copy[TENANT_POINT_BYTES], quoted[TEXT_QUOTED_BYTES], *word[WORDS_MAX];
	bool vlan = false, source = false;
	unsigned int words;
	int r = 0;

	text_quote(text, strlen(text), quoted);
	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy))
		return why_say(why, -EINVAL, "%s: longer than %d bytes", quoted,
			       TENANT_POINT_BYTES - 1);
	words = words_cut(copy, word);
	if (words > WORDS_MAX || words % 2 == 0)
		return why_say(why, -EINVAL, "%s: " POINT_FORM, quoted);
	if (!tenant_port_is_valid(word[0]))
		return why_say(why, -EINVAL,
			       "port %s: the name of an interface, of at most %d bytes",
			       text_quote(word[0], strlen(word[0]), quoted), IF_NAMESIZE - 1);
	snprintf(p.port, sizeof(p.port), "%s", word[0]);
	for (unsigned int i = 1; i < words && r == 0; i += 2) {
		bool *given = !strcmp(word[i], "vlan") ? &vlan : &source;

		if (*given || (given == &source && strcmp(word[i], "source") != 0))
			return why_say(why, -EINVAL, "%s: " POINT_FORM, quoted);
		*given = true;
		r = given == &vlan ? vlan_parse(word[i + 1], &p, why)
				   : source_parse(word[i + 1], &p, why);
	}
	if (r == 0)
		*ret = p;
	return r;
}

void tenant_point_print(const struct tenant_point *point, char *text, size_t size)
{
	char source[TENANT_POINT_BYTES] = "", vlan[16] = "";

	if (point->vlan != TENANT_VLAN_ANY)
		snprintf(vlan, sizeof(vlan), " vlan %d", point->vlan);
	if (point->source.ss_family)
		source_print(point, source, sizeof(source));
	snprintf(text, size, "%s%s%s%s", point->port, vlan, *source ? " source " : "", source);
}

bool tenant_is_place(const char *text)
{
	const char *word = text + strspn(text, " \t");

	return memchr(word, '/', strcspn(word, " \t")) != NULL;
}

int tenant_place_parse(const char *text, struct tenant_place *ret, struct why *why)
{
	const char *word = text + strspn(text, " \t");
	const char *slash = memchr(word, '/', strcspn(word, " \t"));
	struct tenant_place p = { .node = "" };
	char quoted[TEXT_QUOTED_BYTES];
	int r;

	if (slash && (size_t)(slash - word) < sizeof(p.node))
		memcpy(p.node, word, slash - word);
	if (!slash || !name_is_valid(p.node))
		return why_say(why, -EINVAL, "%s: NODE/" POINT_FORM " at node NODE of the cluster",
			       text_quote(text, strlen(text), quoted));
	r = tenant_point_parse(slash + 1, &p.point, why);
	if (r == 0)
		*ret = p;
	return r;
}

void tenant_place_print(const struct tenant_place *place, char *text, size_t size)
{
	char point[TENANT_POINT_BYTES];

	tenant_point_print(&place->point, point, sizeof(point));
	snprintf(text, size, "%s/%s", place->node, point);
}

bool tenant_is_anywhere(const struct tenant *t) { return !t->points && !t->gated; }

bool tenant_is_nowhere(const struct tenant *t) { return !t->points && t->gated; }

void tenant_points_print(const struct tenant *t, char *text, size_t size)
{
	char point[TENANT_POINT_BYTES];
	size_t used = 0;

	*text = '\0';
	for (unsigned int i = 0; i < t->points && used < size; i++) {
		tenant_point_print(&t->point[i], point, sizeof(point));
		used += snprintf(text + used, size - used, "%s%s", i ? "; " : "", point);
	}
}

static bool is_source(const struct tenant_point *p, const struct sockaddr_storage *from)
{
	struct sockaddr_storage source = p->source, network = *from;
	uint8_t *raw;
	size_t bytes;

	if (!source.ss_family || source.ss_family != network.ss_family)
		return !source.ss_family;
	raw = address_raw(&network, &bytes);
	prefix_cut(raw, bytes, p->source_bits);
	return memcmp(raw, address_raw(&source, &bytes), bytes) == 0;
}

bool tenant_may_come(const struct tenant *t, const char *port, const struct sockaddr_storage *from)
{
	for (unsigned int i = 0; i < t->points; i++) {
		const struct tenant_point *p = &t->point[i];

		if ((!*port || (!strcmp(p->port, port) && p->vlan <= 0)) && is_source(p, from))
			return true;
	}
	return tenant_is_anywhere(t);
}
