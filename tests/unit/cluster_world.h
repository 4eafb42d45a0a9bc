/* SPDX-License-Identifier: GPL-2.0-only */
/* Reports as agents write them, and the pictures that they make. */
#ifndef TALLY_TESTS_UNIT_CLUSTER_WORLD_H
#define TALLY_TESTS_UNIT_CLUSTER_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/cluster/picture.h"
#include "common/address.h"

static inline struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage a;

	assert_int_equal(address_parse(text, 31249, &a), 0);
	return a;
}

/* A row at the end of a report's list. */
#define ADD(list, count)                                       \
	__extension__({                                        \
		__typeof__(list) _new = ROWS_ADD(list, count); \
		assert_non_null(_new);                         \
		_new;                                          \
	})

static inline struct report *report_of(const char *node, const char *own)
{
	struct report *r = report_new();

	assert_non_null(r);
	snprintf(r->node, sizeof(r->node), "%s", node);
	snprintf(r->version, sizeof(r->version), "1.2.3");
	r->slots = 1024;
	r->slots_free = 1000;
	*ADD(r->service, r->services) = address(own);
	*ADD(r->address, r->addresses) = address(own);
	return r;
}

static inline struct report_port *port(struct report *r, const char *name, uint32_t mbps)
{
	struct report_port *p = ADD(r->port, r->ports);

	snprintf(p->name, sizeof(p->name), "%s", name);
	p->up = true;
	p->rate_mbps = mbps;
	return p;
}

static inline void near(struct report *r, const char *port, const char *node, const char *at)
{
	struct report_near *n = ADD(r->near, r->nears);

	snprintf(n->port, sizeof(n->port), "%s", port);
	snprintf(n->node, sizeof(n->node), "%s", node);
	snprintf(n->at, sizeof(n->at), "%s", at);
}

static inline void host(struct report *r, const char *port, const char *at, const char *mac)
{
	struct report_host *h = ADD(r->host, r->hosts);

	snprintf(h->port, sizeof(h->port), "%s", port);
	h->address = address(at);
	snprintf(h->mac, sizeof(h->mac), "%s", mac);
}

static inline void put(struct picture *p, struct report *r)
{
	assert_int_equal(picture_put(p, r), 0);
}

static inline int machine_named(const struct drawing *d, const char *name)
{
	for (unsigned int i = 0; i < d->machines; i++)
		if (!strcmp(d->machine[i].name, name))
			return (int)i;
	return -1;
}

#endif
