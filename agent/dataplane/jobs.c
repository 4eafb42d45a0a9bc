// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs of a running node: all that its tables are, and new next hops for their copies. */
#include <errno.h>

#include "dataplane.h"
#include "maps.h"

/* All jobs, and the ports where this network namespace sees the node attached. */
static int tables_read(struct dataplane *d, struct tables *t, struct why *why)
{
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	unsigned int count = 0;
	int r;

	r = maps_read_jobs(d, t, why);
	if (r == 0)
		r = dataplane_ports(d, &ports, &count, why);
	if (r < 0)
		return r;
	t->port = calloc(count + 1, sizeof(*t->port));
	if (!t->port)
		return -ENOMEM;
	for (unsigned int i = 0; i < count && r >= 0; i++) {
		r = ports[i].ifindex ? dataplane_is_attached(d, ports[i].ifindex) : 0;
		if (r > 0)
			t->port[t->ports++] = ports[i].ifindex;
	}
	return r < 0 ? r : 0;
}

int dataplane_tables_read(struct dataplane *d, struct tables *ret, struct why *why)
{
	_cleanup_(tables_close) struct tables t = { 0 };
	int r = tables_read(d, &t, why);

	if (r == 0)
		*ret = TAKE(t, (struct tables){ 0 });
	return r;
}

int dataplane_job_follow(struct dataplane *d, uint32_t id, const struct hop *hops,
			 unsigned int count, unsigned int *ret_changed, unsigned int *ret_elsewhere,
			 struct why *why)
{
	struct tables_copy copy[TALLY_WORKERS_MAX];
	unsigned int changed = 0, elsewhere = 0;
	int r, copies = maps_read_copies(d, id, copy);

	if (copies < 0)
		return map_error(why, copies, "children");
	for (unsigned int i = 0; i < count && i < TALLY_WORKERS_MAX; i++) {
		bool is_new = false;

		if (i >= (unsigned int)copies)
			return tables_no_job(id, why);
		if (hops[i].port && hops[i].port != copy[i].port) {
			elsewhere++;
		} else if (hops[i].port) {
			r = maps_hop_put(d, id, i, &copy[i], &hops[i], &is_new);
			if (r < 0)
				return map_error(why, r, "children");
			changed += is_new;
		}
	}
	*ret_changed = changed;
	*ret_elsewhere = elsewhere;
	return 0;
}
