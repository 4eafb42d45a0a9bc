// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char magic[8] = "tallyhi1"; /* with the version, and without an end */

void hello_print(const struct hello *h, uint8_t ret[HELLO_BYTES])
{
	memset(ret, 0, HELLO_BYTES);
	memcpy(ret, magic, sizeof(magic));
	snprintf((char *)ret + 8, NAME_BYTES, "%s", h->cluster);
	snprintf((char *)ret + 8 + NAME_BYTES, NAME_BYTES, "%s", h->node);
	snprintf((char *)ret + 8 + 2 * NAME_BYTES, IF_NAMESIZE, "%s", h->port);
}

static bool is_ended(const char *text, size_t size) { return memchr(text, '\0', size); }

/* Names of interfaces, as the kernel allows them, but for what a terminal would not show. */
static bool is_port(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '/')
			return false;
	return *text;
}

int hello_parse(const uint8_t *bytes, size_t length, struct hello *ret)
{
	struct hello h;

	if (length != HELLO_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return -EBADMSG;
	memcpy(h.cluster, bytes + 8, NAME_BYTES);
	memcpy(h.node, bytes + 8 + NAME_BYTES, NAME_BYTES);
	memcpy(h.port, bytes + 8 + 2 * NAME_BYTES, IF_NAMESIZE);
	if (!is_ended(h.cluster, NAME_BYTES) || !is_ended(h.node, NAME_BYTES) ||
	    !is_ended(h.port, IF_NAMESIZE))
		return -EBADMSG;
	if (!name_is_valid(h.cluster) || !name_is_valid(h.node) || !is_port(h.port))
		return -EBADMSG;
	*ret = h;
	return 0;
}

/* --- who was heard --------------------------------------------------------------------------- */

/* Of those of a port, or of all for NULL; how many they are. */
static struct hello_near *oldest(struct hello_nears *n, const char *port, unsigned int *ret_count)
{
	struct hello_near *old = NULL;

	*ret_count = 0;
	for (unsigned int i = 0; i < n->count; i++) {
		if (port && strcmp(n->near[i].port, port) != 0)
			continue;
		++*ret_count;
		if (!old || n->near[i].heard_ns < old->heard_ns)
			old = &n->near[i];
	}
	return old;
}

/* Where one more goes: in the place of another one, if it must be. */
static struct hello_near *place_for(struct hello_nears *n, const char *port)
{
	unsigned int count;
	struct hello_near *old = oldest(n, port, &count);

	if (count >= HELLO_PORT_MAX)
		return old;
	if (n->count < HELLO_NEARS_MAX)
		return &n->near[n->count++];
	return oldest(n, NULL, &count);
}

static struct hello_near *find(struct hello_nears *n, const char *port, const struct hello *h)
{
	for (unsigned int i = 0; i < n->count; i++)
		if (!strcmp(n->near[i].port, port) && !strcmp(n->near[i].node, h->node) &&
		    !strcmp(n->near[i].at, h->port))
			return &n->near[i];
	return NULL;
}

bool hello_heard(struct hello_nears *n, const char *port, const struct hello *h, uint64_t now_ns)
{
	struct hello_near *known = find(n, port, h);

	if (known) {
		known->heard_ns = now_ns;
		return false;
	}
	known = place_for(n, port);
	*known = (struct hello_near){ .heard_ns = now_ns };
	snprintf(known->port, sizeof(known->port), "%s", port);
	snprintf(known->node, sizeof(known->node), "%s", h->node);
	snprintf(known->at, sizeof(known->at), "%s", h->port);
	return true;
}

bool hello_forget(struct hello_nears *n, uint64_t now_ns)
{
	const unsigned int before = n->count;
	unsigned int kept = 0;

	for (unsigned int i = 0; i < n->count; i++)
		if (now_ns - n->near[i].heard_ns < HELLO_LOST_MS * 1000000ull)
			n->near[kept++] = n->near[i];
	n->count = kept;
	return kept < before;
}

/* --- other clusters -------------------------------------------------------------------------- */

bool hello_other_is_there(const struct hello_other *o, uint64_t now_ns)
{
	return o->heard_ns && now_ns - o->heard_ns < HELLO_LOST_MS * 1000000ull;
}

bool hello_other_heard(struct hello_other *o, const char *port, const struct hello *h,
		       uint64_t now_ns)
{
	const bool is_it = !strcmp(o->port, port) && !strcmp(o->is.cluster, h->cluster) &&
			   !strcmp(o->is.node, h->node);
	const bool is_there = hello_other_is_there(o, now_ns);

	if (is_there && !is_it)
		return false;
	*o = (struct hello_other){ .is = *h, .heard_ns = now_ns };
	snprintf(o->port, sizeof(o->port), "%s", port);
	return !is_there;
}
