// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tally-node job add, del, list. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "agent/edge/netlink.h"
#include "agent/edge/port_reach.h"
#include "common/address.h"
#include "common/ranks.h"
#include "tally_node.h"

/* The way to the root must lead through this node too: results come back on it. */
static int uplink_check(struct netlink *n, struct dataplane *d, const struct run *run,
			struct why *why)
{
	char text[ADDRESS_BYTES];
	struct hop hop;
	int r;

	r = netlink_resolve(n, &run->service, HOP_WAIT_MS, &hop, why);
	if (r < 0)
		return r;
	address_print(&run->service, text, sizeof(text));
	if (dataplane_is_attached(d, hop.port) <= 0)
		return why_say(
			why, -EINVAL,
			"the way to the root %s leaves by %s, where this node is not attached: run "
			"tally-node attach --replace with all interfaces",
			text, hop.port_name);
	return 0;
}

/* In the pool, those that it may have. */
static uint32_t slots_count(const struct tally_job *job, uint32_t pool)
{
	if (!job->borrows)
		return job->slot_mask + 1;
	return job->range ? job->range : pool;
}

/* Where the job goes now is `ret`, which the caller owns. */
static int job_put(struct dataplane *d, const struct installation *g, struct tables_job *ret,
		   struct why *why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	int r;

	r = dataplane_tables_read(d, &now, why);
	if (r == 0)
		r = tables_install(&now, g, NULL, 0, ret, why);
	return r < 0 ? r : dataplane_job_put(d, tables_find(&now, g->id), ret, g, why);
}

int job_add(const struct command_line *q, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = NULL;
	_cleanup_(netlink_closep) struct netlink *n = NULL;
	_cleanup_(freep) struct dataplane_port *ports = NULL;
	_cleanup_(tables_job_close) struct tables_job j = { 0 };
	unsigned int ports_count = 0;
	static struct run run;
	static struct installation installation;
	int r;

	r = jobfile_read(q->arguments[0], &run, why->text, sizeof(why->text));
	if (r == 0)
		r = installation_plan(&run, &q->role, &installation, why);
	if (r == 0 && q->borrows) {
		installation_borrow(&installation);
		installation.job.slot_base = q->borrow_base;
		if (q->borrow_any)
			installation.job.range = 0;
	}
	if (r == 0)
		r = dataplane_open(q->pin, &d, why);
	if (r == 0)
		r = netlink_open(&n);
	if (r == 0 && !q->role.root)
		r = uplink_check(n, d, &run, why);
	for (unsigned int i = 0; r == 0 && i < installation.copies; i++)
		r = netlink_resolve(n, &installation.copy[i].address, HOP_WAIT_MS,
				    &installation.copy[i].hop, why);
	if (r == 0)
		r = installation_address(&installation, why);
	if (r == 0)
		r = dataplane_ports(d, &ports, &ports_count, why);
	if (r == 0)
		r = port_reach_check(ports, ports_count, &installation, why);
	if (r == 0)
		r = job_put(d, &installation, &j, why);
	if (r < 0)
		return r;
	printf("job %u epoch %u: %s of %u ranks, %u copies, %s %u to %u\n", installation.id,
	       installation.job.epoch, installation.job.root ? "root" : "inner node",
	       ranks_count(&installation.job.below), installation.copies,
	       j.job.borrows ? "borrows slots" : "slots", j.job.slot_base,
	       j.job.slot_base + slots_count(&j.job, dataplane_pool(d).slots) - 1);
	return 0;
}

int job_del(const struct command_line *q, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = NULL;
	_cleanup_(tables_close) struct tables now = { 0 };
	const struct tables_job *j = NULL;
	const char *text = q->arguments[0];
	unsigned long id;
	char *end;
	int r;

	errno = 0;
	id = strtoul(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || id > UINT32_MAX)
		return why_say(why, -EINVAL,
			       "job del %s: must be the number of a job (tally-node job list)",
			       text);
	r = dataplane_open(q->pin, &d, why);
	if (r == 0)
		r = dataplane_tables_read(d, &now, why);
	if (r == 0)
		r = tables_remove(&now, id, &j, why);
	return r < 0 ? r : dataplane_job_remove(d, j, why);
}

static void job_print(const struct tables_job *j, uint32_t pool)
{
	char below[RANKS_BYTES];

	ranks_print(&j->job.below, below, sizeof(below));
	printf("%10u %5u %-5s %7u %6u %7u %6u-%-6u %6u  %s%s\n", j->id, j->job.epoch,
	       j->job.root ? "root" : "inner", ranks_count(&j->job.everyone),
	       (j->job.slot_mask + 1) / 2, j->job.blocks_max * TALLY_BLOCK_BYTES, j->job.slot_base,
	       j->job.slot_base + slots_count(&j->job, pool) - 1, j->copies, below,
	       j->job.borrows ? "  (borrows)" : "");
}

static void job_print_json(const struct tables_job *j, uint32_t pool)
{
	char below[RANKS_BYTES];

	ranks_print(&j->job.below, below, sizeof(below));
	printf("{\"job\":%u,\"epoch\":%u,\"root\":%s,\"workers\":%u,\"window\":%u,\"payload\":%u,"
	       "\"slot_first\":%u,\"slot_count\":%u,\"borrows\":%s,\"copies\":%u,\"below\":\"%s\"}",
	       j->id, j->job.epoch, j->job.root ? "true" : "false", ranks_count(&j->job.everyone),
	       (j->job.slot_mask + 1) / 2, j->job.blocks_max * TALLY_BLOCK_BYTES, j->job.slot_base,
	       slots_count(&j->job, pool), j->job.borrows ? "true" : "false", j->copies, below);
}

int job_list(const struct command_line *q, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = NULL;
	_cleanup_(tables_close) struct tables now = { 0 };
	const char *between = "";
	int r;

	r = dataplane_open(q->pin, &d, why);
	if (r == 0)
		r = dataplane_tables_read(d, &now, why);
	if (r < 0)
		return r;
	if (q->json)
		printf("[");
	else
		printf("%10s %5s %-5s %7s %6s %7s %13s %6s  %s\n", "job", "epoch", "node",
		       "workers", "window", "payload", "slots", "copies", "ranks below");
	for (unsigned int i = 0; i < now.jobs; i++) {
		if (now.job[i].broken)
			continue;
		if (!q->json) {
			job_print(&now.job[i], now.pool);
			continue;
		}
		printf("%s", between);
		between = ",";
		job_print_json(&now.job[i], now.pool);
	}
	if (q->json)
		printf("]\n");
	return 0;
}
