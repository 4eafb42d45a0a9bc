// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Would an agent start? What tallyd --check looks at. */
#include <errno.h>

#include "agent/dataplane/dataplane.h"
#include "agent/edge/stream.h"
#include "driver.h"
#include "node.h"
#include "peers.h"
#include "rights.h"
#include "sharing.h"

/* Of the node that is there, as far as this process may see it. */
static int slots_check(const struct config *c, const struct books *b, struct why *why)
{
	struct dataplane *d = NULL;
	struct why ignored;
	int r = 0;

	if (dataplane_open(c->pin, &d, &ignored) == 0)
		r = node_slots_check(d, c, b, why);
	dataplane_close(d);
	return r == -ENOSPC ? r : 0;
}

/* Of the state file, as far as this process may see it. */
static int books_check(const struct config *c, const char *path, struct why *why)
{
	_cleanup_(books_clear) struct books books;
	int r;

	books_init(&books, 0);
	r = node_books_read(&books, c, why);
	if (r < 0 && r != -ENOENT && r != -EACCES)
		return r;
	*why->text = '\0';
	core_tenant_is_hidden(&books, c, path, UINT64_MAX, why);
	return slots_check(c, &books, why);
}

int driver_check(const struct config *c, const char *path, struct why *why)
{
	struct node node = { 0 };
	gid_t ignored;
	int r;

	r = netlink_open(&node.netlink);
	if (r == 0)
		r = node_find_ports(&node, c, why);
	if (r == 0)
		r = dataplane_pin_check(c->pin, why);
	if (r == 0)
		r = rights_check_groups(c, why);
	if (r == 0)
		r = rights_find_operators(c, &ignored, why);
	for (unsigned int i = 0; r == 0 && i < c->listens; i++)
		r = stream_check_tcp(&c->listen[i], why);
	if (r == 0)
		r = peers_check(c, why);
	if (r == 0)
		r = sharing_check(c, why);
	if (r == 0)
		r = books_check(c, path, why);
	netlink_close(node.netlink);
	free(node.wanted);
	return r;
}
