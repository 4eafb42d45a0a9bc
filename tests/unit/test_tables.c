// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where a job goes in the maps of a node: slots, group, gates with rows, children. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/tables.h"

enum {
	COMMON_ROWS = TALLY_PORT_ROWS - TALLY_TENANTS_MAX * TALLY_PORT_ROWS_OF_TENANT,
};

static struct tables node;
static struct installation wanted;
static struct why why;
static uint32_t attached[] = { 3, 5, 9 };

static int prepare(void **state)
{
	node = (struct tables){ .slots = 4096, .ports = 3 };
	node.port = malloc(sizeof(attached));
	assert_non_null(node.port);
	memcpy(node.port, attached, sizeof(attached));
	why = (struct why){ "" };
	return 0;
}

static int tidy(void **state)
{
	tables_close(&node);
	return 0;
}

static void assert_why_has(const char *words)
{
	if (!strstr(why.text, words))
		fail_msg("'%s' is not in '%s'", words, why.text);
}

/* A job with two copies, both through port 3. */
static struct installation *job_of(uint32_t id, uint16_t epoch, uint32_t slots)
{
	struct sockaddr_in *to = (void *)&wanted.copy[0].address;

	wanted = (struct installation){ .id = id,
					.job = { .epoch = epoch, .slot_mask = slots - 1 },
					.copies = 2 };
	wanted.copy[0].hop.port = wanted.copy[1].hop.port = 3;
	*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a4d0101) };
	return &wanted;
}

/* Decides and does; NULL: refused, with *error. */
static const struct tables_job *installed(const struct installation *i,
					  const struct dataplane_gate *gates, unsigned int count,
					  int *error)
{
	struct tables_job j = { .id = 0xdead };

	*error = tables_install(&node, i, gates, count, &j, &why);
	if (*error < 0) {
		assert_int_equal(j.id, 0xdead); /* untouched */
		assert_null(j.copy);
		return NULL;
	}
	assert_int_equal(j.id, i->id);
	assert_int_equal(tables_put(&node, &j), 0);
	return tables_find(&node, i->id);
}

static const struct tables_job *install(uint32_t id, uint16_t epoch, uint32_t slots)
{
	const struct dataplane_gate none[1] = { { 0 } };
	int r;
	const struct tables_job *j = installed(job_of(id, epoch, slots), none, 0, &r);

	if (!j)
		fail_msg("%s", why.text);
	return j;
}

static int refusal(const struct installation *i, const struct dataplane_gate *gates,
		   unsigned int count)
{
	int r;

	assert_null(installed(i, gates, count, &r));
	return r;
}

/* --- slots and groups ------------------------------------------------------------------------ */

static void put_at(uint32_t id, uint32_t base, uint32_t slots, uint32_t group)
{
	struct tables_job j = {
		.id = id,
		.job = { .slot_base = base, .slot_mask = slots - 1, .group = group, .id = id }
	};

	assert_int_equal(tables_put(&node, &j), 0);
}

/* It has no slots, and leaves those where its range begins to others. */
static void who_borrows_has_a_place_in_the_pool(void **state)
{
	const struct tables_job *j;
	int r;

	node.pool = 100;
	put_at(1, 0, 4096, 0);
	for (uint32_t id = 7; id <= 8; id++) {
		installation_borrow(job_of(id, 3, 64));
		j = installed(&wanted, NULL, 0, &r);
		assert_non_null(j);
		assert_int_equal(j->job.slot_base, id == 7 ? 0 : 50);
	}
	assert_int_equal(j->job.range, 32);
	installation_borrow(job_of(9, 3, 64));
	wanted.job.slot_base = 13; /* as somebody says */
	assert_int_equal(installed(&wanted, NULL, 0, &r)->job.slot_base, 13);
	tables_forget(&node, 1);
	assert_int_equal(install(2, 3, 4096)->job.slot_base, 0);
}

static void slots_begin_at_a_multiple_of_their_number(void **state)
{
	put_at(1, 256, 128, 1);
	put_at(2, 0, 64, 0);
	put_at(3, 192, 64, 3);
	assert_int_equal(install(7, 3, 128)->job.slot_base, 384); /* not 64 .. 191 */
	assert_int_equal(tables_find(&node, 7)->job.group, 2);
	assert_int_equal(tables_find(&node, 7)->job.id, 7);

	tables_forget(&node, 7);
	put_at(3, 191, 1, 3);
	node.slots = 511;
	assert_int_equal(refusal(job_of(7, 3, 128), NULL, 0), -ENOSPC);
	assert_why_has("no 128 slots in a row are free (two a chunk of the window): this node has "
		       "511");
	node.slots = 512;
	assert_int_equal(install(7, 3, 128)->job.slot_base, 384); /* up to the last one */

	tables_close(&node);
	prepare(state);
	put_at(1, 0, 1, 0);
	assert_int_equal(install(7, 3, 128)->job.slot_base, 128);
}

static bool may_move_but(const void *context, const struct tables_job *j)
{
	return j->id != *(const uint32_t *)context;
}

/* Moves what tables_make_room() says; how many these are. */
static int moved_for(uint32_t id, uint32_t slots, uint32_t stays)
{
	struct tables_move *move = NULL;
	int r = tables_make_room(&node, id, slots, may_move_but, &stays, &move);

	if (r > 0)
		tables_move(&node, move, r);
	free(move);
	return r;
}

static void rings_move_so_that_another_one_fits(void **state)
{
	node.slots = 256;
	put_at(1, 0, 64, 0);
	put_at(2, 128, 64, 1);
	put_at(6, 0, 256, 2);
	node.job[2].job.borrows = 1; /* it has none */
	assert_int_equal(refusal(job_of(7, 1, 128), NULL, 0), -ENOSPC);
	assert_int_equal(moved_for(7, 128, 1), 1); /* job 1 stays */
	assert_int_equal(tables_find(&node, 1)->job.slot_base, 0);
	assert_int_equal(tables_find(&node, 2)->job.slot_base, 64);
	assert_int_equal(install(7, 1, 128)->job.slot_base, 128);
	assert_int_equal(moved_for(8, 2, 0), -ENOSPC);
	assert_int_equal(moved_for(7, 128, 0), 0); /* its own may be overwritten */
}

static void rings_of_broken_jobs_stay(void **state)
{
	node.slots = 256;
	put_at(1, 0, 64, 0);
	put_at(2, 128, 64, 1);
	node.job[0].broken = node.job[1].broken = true;
	assert_int_equal(moved_for(7, 128, 0), -ENOSPC);
	node.job[1].broken = false;
	assert_int_equal(moved_for(7, 128, 0), 1);
	assert_int_equal(tables_find(&node, 1)->job.slot_base, 0);
}

static void an_empty_node_may_be_filled_to_the_last_slot(void **state)
{
	node.slots = 128;
	assert_int_equal(install(7, 1, 128)->job.slot_base, 0);
	assert_int_equal(tables_find(&node, 7)->job.group, 0);
	assert_int_equal(refusal(job_of(8, 1, 2), NULL, 0), -ENOSPC);
}

static void a_node_has_a_limited_number_of_jobs(void **state)
{
	for (uint32_t i = 0; i < TALLY_JOBS_MAX - 1; i++)
		put_at(100 + i, i, 1, i);
	assert_int_equal(install(7, 1, 2)->job.group, TALLY_JOBS_MAX - 1);
	assert_int_equal(refusal(job_of(8, 1, 2), NULL, 0), -ENOSPC);
	assert_why_has("1024 jobs already");
}

static void an_older_epoch_makes_room_for_its_job(void **state)
{
	node.slots = 128;
	install(7, 1, 128);
	assert_int_equal(refusal(job_of(7, 1, 128), NULL, 0), -EEXIST);
	assert_why_has("job 7 is there already with epoch 1");
	assert_int_equal(install(7, 2, 128)->job.slot_base, 0);
	assert_int_equal(tables_find(&node, 7)->job.group, 0);
	assert_int_equal(tables_find(&node, 7)->job.epoch, 2);
	assert_int_equal(node.jobs, 1);
}

static void a_broken_job_keeps_its_slots_until_it_goes(void **state)
{
	const struct tables_job *gone;
	struct dataplane_gate gate = { .ifindex = 3 };
	struct tables_job now;

	node.slots = 128;
	install(7, 1, 128);
	node.job[0].broken = true;
	assert_int_equal(refusal(job_of(8, 1, 2), NULL, 0), -ENOSPC);
	assert_int_equal(tables_regate(&node, 7, &gate, 1, &now, &why), -ENOENT);
	assert_int_equal(install(7, 1, 64)->job.slot_base, 0); /* the same epoch */
	assert_int_equal(tables_remove(&node, 7, &gone, &why), 0);
	assert_int_equal(gone->id, 7);
}

/* --- copies ---------------------------------------------------------------------------------- */

static void children_of_a_port_are_counted_without_holes(void **state)
{
	static const uint32_t port[] = { 5, 3, 5, 5, 3, 9, 5, 3 };
	static const uint32_t index[] = { 0, 0, 1, 2, 1, 0, 3, 2 };
	const struct dataplane_gate gates[] = { { .ifindex = 3 }, { .ifindex = 9 } };
	const struct tables_job *j;
	int r;

	job_of(7, 1, 8)->copies = 8;
	for (int i = 0; i < 8; i++)
		wanted.copy[i].hop.port = port[i];
	j = installed(&wanted, gates, 2, &r);
	assert_non_null(j);
	assert_int_equal(j->copies, 8);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(j->copy[i].port, port[i]);
		assert_int_equal(j->copy[i].index, index[i]);
		assert_int_equal(j->copy[i].row,
				 tables_gate_find(j, port[i] == 5 ? 0 : port[i])->row);
	}
}

static void every_copy_leaves_by_a_port_of_the_node(void **state)
{
	job_of(7, 1, 8)->copy[0].hop = (struct hop){ .port = 4, .port_name = "eth4" };
	assert_int_equal(refusal(&wanted, NULL, 0), -EINVAL);
	assert_why_has("10.77.1.1: is behind eth4, where this node is not attached");
}

static void a_node_has_a_limited_number_of_children(void **state)
{
	for (uint32_t i = 0; i < TALLY_CHILDREN_MAX / TALLY_WORKERS_MAX; i++) {
		put_at(100 + i, i, 1, i);
		node.job[i].copies = TALLY_WORKERS_MAX;
	}
	node.job[0].copies -= 2;
	install(7, 1, 2);
	assert_int_equal(refusal(job_of(8, 1, 2), NULL, 0), -ENOSPC);
	assert_why_has("16386 copies needed, the node has room for 16384");
	install(7, 2, 2); /* in place of its own */
}

/* --- gates ----------------------------------------------------------------------------------- */

static void a_job_without_gates_has_one_for_each_port_with_workers(void **state)
{
	const struct tables_job *j;
	int r;

	j = installed(job_of(7, 1, 8), NULL, 0, &r);
	assert_non_null(j);
	assert_int_equal(j->gates, 2);
	assert_int_equal(j->gate[0].ifindex, 0);
	assert_true(j->gate[0].anywhere);
	assert_int_equal(j->gate[0].row, TALLY_ROW_JOBS);
	assert_int_equal(j->gate[1].ifindex, 3);
	assert_false(j->gate[1].anywhere);
	assert_int_equal(j->gate[1].row, TALLY_ROW_PORTS);
}

static void named_gates_are_the_only_ones(void **state)
{
	const struct dataplane_gate gates[] = { { .ifindex = 9, .restricted = true },
						{ .ifindex = 77 } };
	const struct tables_job *j;
	int r;

	j = installed(job_of(7, 1, 8), gates, 2, &r);
	assert_non_null(j);
	assert_int_equal(j->gates, 3);
	assert_false(j->gate[0].anywhere);
	assert_true(tables_gate_find(j, 9)->restricted);
	assert_false(tables_gate_find(j, 77)->restricted);
	assert_null(tables_gate_find(j, 3));
	assert_int_equal(tables_row(j, 3), j->gate[0].row);
}

static void a_gate_is_given_once(void **state)
{
	const struct dataplane_gate gates[] = { { .ifindex = 9 }, { .ifindex = 9 } };

	assert_int_equal(refusal(job_of(7, 1, 8), gates, 2), -EINVAL);
	assert_why_has("job 7: port number 9 is given twice");
}

static void gates_that_stay_keep_their_rows(void **state)
{
	const struct dataplane_gate first[] = { { .ifindex = 3 }, { .ifindex = 5 } };
	const struct dataplane_gate second[] = { { .ifindex = 9 }, { .ifindex = 5 } };
	struct tables_job now = { 0 };
	const struct tables_job *j;
	uint32_t row_0, row_5, row_3;
	int r;

	assert_non_null(installed(job_of(7, 1, 8), first, 2, &r));
	install(6, 1, 8);
	j = tables_find(&node, 7);
	row_0 = tables_row(j, 0), row_3 = tables_row(j, 3), row_5 = tables_row(j, 5);

	assert_int_equal(tables_regate(&node, 7, second, 2, &now, &why), 0);
	assert_int_equal(now.gates, 3);
	assert_int_equal(tables_row(&now, 0), row_0);
	assert_int_equal(tables_row(&now, 5), row_5);
	assert_int_not_equal(tables_row(&now, 9), row_3); /* whose counts are not moved yet */
	assert_int_equal(now.copy[1].row, row_0); /* port 3 has no gate any more */
	assert_int_equal(now.copy[1].index, 1);
	assert_memory_equal(&now.job, &j->job, sizeof(now.job));
	tables_job_close(&now);

	assert_non_null(installed(job_of(7, 2, 8), second, 2, &r)); /* a new epoch keeps them too */
	assert_int_equal(tables_row(tables_find(&node, 7), 5), row_5);
	assert_int_equal(tables_regate(&node, 99, second, 2, &now, &why), -ENOENT);
	assert_why_has("job 99: this node has no such job");
}

static bool given_up[TALLY_ROWS_MAX];

/*
 * How often each step-th of so many jobs waits while it gets these gates, from the last one on:
 * whoever takes a row that another one gave up waits, and so for all that were given up by then.
 */
static unsigned int waits_for_gates(uint32_t jobs, uint32_t step,
				    const struct dataplane_gate *gates)
{
	unsigned int waits = 0;

	for (uint32_t id = jobs; id; id -= step) {
		const struct tables_job *before = tables_find(&node, id);
		struct tables_job now = { 0 };

		assert_int_equal(tables_regate(&node, id, gates, 2, &now, &why), 0);
		for (unsigned int i = 0; i < now.gates; i++)
			if (given_up[now.gate[i].row]) {
				memset(given_up, 0, sizeof(given_up));
				waits++;
			}
		given_up[tables_row(before, before->gate[1].ifindex)] = true;
		assert_int_equal(tables_put(&node, &now), 0);
	}
	return waits;
}

static void jobs_that_swap_gates_wait_only_where_rows_run_out(void **state)
{
	enum {
		JOBS = 1000,
		FREE = TALLY_PORT_ROWS - 2 * JOBS,
	};
	const struct dataplane_gate first[] = { { .ifindex = 3 }, { .ifindex = 5 } };
	const struct dataplane_gate second[] = { { .ifindex = 9 }, { .ifindex = 5 } };
	int r;

	for (uint32_t id = 1; id <= JOBS; id++) {
		job_of(id, 1, 2)->job.tenant = id % TALLY_TENANTS_MAX;
		assert_non_null(installed(&wanted, first, 2, &r));
	}
	assert_int_equal(waits_for_gates(JOBS, 1, second), (JOBS - 1) / FREE);
	for (uint32_t id = 1; id <= JOBS; id += 2)
		tables_forget(&node, id);
	memset(node.freed, 0, sizeof(node.freed)); /* a while later */
	memset(given_up, 0, sizeof(given_up));
	assert_int_equal(waits_for_gates(JOBS, 2, first), 0);
	assert_int_equal(waits_for_gates(JOBS, 2, second), 0);
}

/* A job of one tenant with a copy through each of so many ports; how many have rows of their own.
 */
static unsigned int rows_of_job(uint32_t id, uint16_t tenant, unsigned int ports)
{
	const struct tables_job *j;
	unsigned int rows = 0;
	int r;

	job_of(id, 1, 2)->job.tenant = tenant;
	wanted.copies = ports;
	for (unsigned int i = 0; i < ports; i++)
		wanted.copy[i].hop.port = node.port[i];
	j = installed(&wanted, NULL, 0, &r);
	if (!j)
		fail_msg("%s", why.text);
	for (unsigned int i = 0; i < j->gates; i++)
		rows += j->gate[i].row >= TALLY_ROW_PORTS;
	for (unsigned int i = 0; i < j->copies; i++)
		assert_true(j->copy[i].row == tables_row(j, j->copy[i].port));
	return rows;
}

static void many_ports(unsigned int ports)
{
	node.slots = 1 << 16;
	node.ports = ports;
	node.port = reallocarray(node.port, ports, sizeof(*node.port));
	assert_non_null(node.port);
	for (uint32_t i = 0; i < ports; i++)
		node.port[i] = 100 + i;
}

static void no_tenant_takes_the_rows_of_another(void **state)
{
	unsigned int greedy = 0, other = 0;

	many_ports(64);
	for (uint32_t id = 1; id <= 60; id++)
		greedy += rows_of_job(id, 1, 64);
	assert_int_equal(greedy, COMMON_ROWS + TALLY_PORT_ROWS_OF_TENANT);
	for (int tenant = 2; tenant < TALLY_TENANTS_MAX; tenant++)
		for (uint32_t k = 0; k < 3; k++) {
			unsigned int rows = rows_of_job(100 * tenant + k, tenant, 8);

			assert_int_equal(rows, k < 2 ? 8 : 0);
			other += rows;
		}
	assert_int_equal(other, (TALLY_TENANTS_MAX - 2) * TALLY_PORT_ROWS_OF_TENANT);
	assert_int_equal(rows_of_job(9999, 0, 64), TALLY_PORT_ROWS_OF_TENANT);
	tables_forget(&node, 1); /* what comes back is for whoever is first */
	assert_int_equal(rows_of_job(9000, 2, 8), 8);
	assert_int_equal(rows_of_job(9001, 2, 8), 8);
}

/* Each has at least its own row, and is there. */
static void a_thousand_jobs_fit_on_64_ports(void **state)
{
	static bool used[TALLY_ROWS_MAX];
	unsigned int of_ports = 0;

	many_ports(64);
	for (uint32_t id = 1; id <= TALLY_JOBS_MAX; id++)
		of_ports += rows_of_job(id, id % 5, 16);
	assert_int_equal(node.jobs, TALLY_JOBS_MAX);
	assert_int_equal(of_ports, COMMON_ROWS + 5 * TALLY_PORT_ROWS_OF_TENANT);
	memset(used, 0, sizeof(used));
	for (unsigned int i = 0; i < node.jobs; i++)
		for (unsigned int k = 0; k < node.job[i].gates; k++) {
			assert_false(used[node.job[i].gate[k].row]);
			used[node.job[i].gate[k].row] = true;
		}
	assert_int_equal(refusal(job_of(5000, 1, 2), NULL, 0), -EINVAL); /* port 3 has gone */
	wanted.copies = 0;
	assert_int_equal(refusal(&wanted, NULL, 0), -ENOSPC);
}

/* Where workers are behind comes first; the others count in the row of the job. */
static void gates_without_rows_count_in_the_row_of_their_job(void **state)
{
	static struct dataplane_gate gates[TALLY_PORT_ROWS];
	const struct tables_job *j;
	int r;

	for (uint32_t i = 0; i < TALLY_PORT_ROWS; i++)
		gates[i] = (struct dataplane_gate){ .ifindex = 5000 - i, .restricted = true };
	gates[TALLY_PORT_ROWS - 1].ifindex = 3;
	j = installed(job_of(7, 1, 8), gates, TALLY_PORT_ROWS, &r);
	assert_non_null(j);
	assert_int_equal(j->gates, TALLY_PORT_ROWS + 1);
	assert_int_equal(tables_row(j, 3), TALLY_ROW_PORTS);
	assert_int_equal(tables_row(j, 5000), TALLY_ROW_PORTS + 1);
	assert_int_equal(tables_row(j, 3000), TALLY_ROW_JOBS);
	assert_true(tables_gate_find(j, 3000)->restricted);
	assert_int_equal(j->copy[0].row, TALLY_ROW_PORTS);
}

static void gates_end(void **state)
{
	struct dataplane_gate *gates = calloc(TALLY_GATES_MAX, sizeof(*gates));
	struct tables_job j;
	int r;

	assert_non_null(gates);
	for (uint32_t i = 0; i < TALLY_GATES_MAX; i++)
		gates[i].ifindex = 1000 + i;
	assert_int_equal(refusal(job_of(7, 1, 8), gates, TALLY_GATES_MAX),
			 -ENOSPC); /* and gate 0 */
	assert_why_has("job 7: all 20480 gates of the node are in use");
	assert_non_null(installed(job_of(7, 1, 8), gates, TALLY_GATES_MAX - 2, &r));
	assert_non_null(installed(job_of(8, 1, 8), gates, 0, &r)); /* the last one is its gate 0 */
	assert_int_equal(refusal(job_of(9, 1, 8), gates, 0), -ENOSPC);
	assert_int_equal(tables_regate(&node, 8, gates, 1, &j, &why), -ENOSPC);
	free(gates);
}

/* --- a model: whose each slot, group and row is ----------------------------------------------- */

enum {
	SLOTS = 512,
	IDS = 24,
	PORTS = 900,
	STEPS = 4000,
	TENANTS = 3,
};

static unsigned int starved; /* how often a gate went without a row */

static uint32_t slot_of[SLOTS], group_of[TALLY_JOBS_MAX];
static uint64_t row_of[TALLY_ROWS_MAX]; /* of ports: job << 32 | port */

static uint64_t gate_key(uint32_t id, uint32_t ifindex) { return (uint64_t)id << 32 | ifindex; }

static void model_forget(uint32_t id)
{
	for (int i = 0; i < SLOTS; i++)
		slot_of[i] = slot_of[i] == id ? 0 : slot_of[i];
	for (int i = 0; i < TALLY_JOBS_MAX; i++)
		group_of[i] = group_of[i] == id ? 0 : group_of[i];
	for (int i = 0; i < TALLY_ROWS_MAX; i++)
		row_of[i] = row_of[i] >> 32 == id ? 0 : row_of[i];
}

/* Are so many slots nobody's, or the job's own, in a row that begins at a multiple of them? */
static bool model_has_slots(uint32_t id, uint32_t slots)
{
	for (uint32_t base = 0, i = 0; base + slots <= SLOTS; base += slots) {
		for (i = 0; i < slots && (!slot_of[base + i] || slot_of[base + i] == id); i++)
			;
		if (i == slots)
			return true;
	}
	return false;
}

/* A gate went without: the tenant has all that is its own, and no other is left. */
static void model_has_no_row(uint16_t tenant, const uint64_t *before)
{
	unsigned int held[TENANTS] = { 0 }, common = 0, free = 0;

	for (int row = TALLY_ROW_PORTS; row < TALLY_ROWS_MAX; row++) {
		if (row_of[row])
			held[(row_of[row] >> 32) % TENANTS]++;
		free += !row_of[row] && !before[row];
	}
	for (int i = 0; i < TENANTS; i++)
		if (held[i] > TALLY_PORT_ROWS_OF_TENANT)
			common += held[i] - TALLY_PORT_ROWS_OF_TENANT;
	assert_true(common <= COMMON_ROWS);
	assert_true(!free || (held[tenant] >= TALLY_PORT_ROWS_OF_TENANT && common == COMMON_ROWS));
	starved++;
}

/* Rows that gates had stay, others were nobody's; then all of it is the job's. */
static void model_take_gates(const struct tables_job *j, unsigned int count)
{
	static uint64_t before[TALLY_ROWS_MAX];
	bool without = false;

	memcpy(before, row_of, sizeof(before));
	for (int row = 0; row < TALLY_ROWS_MAX; row++)
		row_of[row] = row_of[row] >> 32 == j->id ? 0 : row_of[row];
	assert_int_equal(j->gates, count + 1);
	assert_int_equal(j->gate[0].row, TALLY_ROW_JOBS + j->job.group);
	for (unsigned int i = 1; i < j->gates; i++) {
		uint64_t key = gate_key(j->id, j->gate[i].ifindex);

		if (j->gate[i].row == j->gate[0].row) {
			without = true;
			continue;
		}
		assert_in_range(j->gate[i].row, TALLY_ROW_PORTS, TALLY_ROWS_MAX - 1);
		assert_true(!before[j->gate[i].row] || before[j->gate[i].row] == key);
		assert_true(!row_of[j->gate[i].row]);
		row_of[j->gate[i].row] = key;
	}
	for (uint32_t row = 0; row < TALLY_ROWS_MAX; row++)
		if (before[row] >> 32 == j->id && tables_gate_find(j, (uint32_t)before[row]))
			assert_true(tables_row(j, (uint32_t)before[row]) == row || without);
	if (without)
		model_has_no_row(j->job.tenant, before);
	for (unsigned int i = 0; i < j->copies; i++)
		assert_int_equal(j->copy[i].row, tables_row(j, j->copy[i].port));
}

static unsigned int gates_roll(struct dataplane_gate *gates)
{
	unsigned int count = rand() % 4 ? rand() % 20 : rand() % PORTS;
	uint32_t first = 1 + rand() % PORTS;

	for (unsigned int i = 0; i < count; i++)
		gates[i] = (struct dataplane_gate){ .ifindex = 1 + (first + i) % PORTS };
	return count;
}

static void model_install(uint32_t id, const struct dataplane_gate *gates, unsigned int count)
{
	const struct tables_job *j = tables_find(&node, id);
	uint32_t slots = 2u << rand() % 8;
	uint16_t epoch = 1 + rand() % 3;
	bool same = j && j->job.epoch == epoch;
	const uint32_t group = j ? j->job.group : TALLY_JOBS_MAX;
	const bool fits = model_has_slots(id, slots);
	uint32_t base;
	int r;

	job_of(id, epoch, slots)->job.tenant = id % TENANTS;
	j = installed(&wanted, gates, count, &r);
	assert_int_equal(r, same ? -EEXIST : fits ? 0 : -ENOSPC);
	if (!j)
		return;
	base = j->job.slot_base;
	assert_int_equal(base % slots, 0);
	model_take_gates(j, count);
	for (int i = 0; i < SLOTS; i++)
		slot_of[i] = slot_of[i] == id ? 0 : slot_of[i];
	for (int i = 0; i < TALLY_JOBS_MAX; i++)
		group_of[i] = group_of[i] == id ? 0 : group_of[i];
	for (uint32_t i = 0; i < slots; i++) {
		assert_int_equal(slot_of[base + i], 0);
		slot_of[base + i] = id;
	}
	assert_int_equal(group_of[j->job.group], 0);
	for (uint32_t i = 0; group == TALLY_JOBS_MAX && i < j->job.group; i++)
		assert_int_not_equal(group_of[i], 0); /* the lowest */
	assert_true(group == TALLY_JOBS_MAX || group == j->job.group);
	group_of[j->job.group] = id;
}

static void model_regate(uint32_t id, const struct dataplane_gate *gates, unsigned int count)
{
	bool there = tables_find(&node, id);
	struct tables_job j;
	int r = tables_regate(&node, id, gates, count, &j, &why);

	assert_int_equal(r, there ? 0 : -ENOENT);
	if (r < 0)
		return;
	model_take_gates(&j, count);
	assert_memory_equal(&j.job, &tables_find(&node, id)->job, sizeof(j.job));
	assert_int_equal(tables_put(&node, &j), 0);
}

static void model_remove(uint32_t id)
{
	const struct tables_job *there = tables_find(&node, id), *j = NULL;

	assert_int_equal(tables_remove(&node, id, &j, &why), there ? 0 : -ENOENT);
	assert_ptr_equal(j, there);
	tables_forget(&node, id);
	assert_null(tables_find(&node, id));
	model_forget(id);
}

static void no_two_jobs_share_anything_and_all_comes_back(void **state)
{
	static struct dataplane_gate gates[PORTS];
	unsigned int there = 0;
	int r;

	srand(1);
	node.slots = SLOTS;
	for (int step = 0; step < STEPS; step++) {
		uint32_t id = 1 + rand() % IDS;
		unsigned int count = gates_roll(gates);

		switch (rand() % 4) {
		case 0:
			model_remove(id);
			break;
		case 1:
			model_regate(id, gates, count);
			break;
		default:
			model_install(id, gates, count);
		}
		for (unsigned int i = 1; i < node.jobs; i++)
			assert_true(node.job[i - 1].id < node.job[i].id);
		there += node.jobs;
	}
	assert_true(there > 4 * STEPS); /* the node was busy */
	assert_true(starved > STEPS / 20);
	for (uint32_t id = 1; id <= IDS; id++)
		model_remove(id);
	assert_non_null(installed(job_of(99, 1, SLOTS), NULL, 0, &r));
	assert_int_equal(tables_find(&node, 99)->job.slot_base, 0);
	assert_int_equal(tables_find(&node, 99)->job.group, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, prepare, tidy)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_borrows_has_a_place_in_the_pool),
		TEST(slots_begin_at_a_multiple_of_their_number),
		TEST(rings_move_so_that_another_one_fits),
		TEST(rings_of_broken_jobs_stay),
		TEST(an_empty_node_may_be_filled_to_the_last_slot),
		TEST(a_node_has_a_limited_number_of_jobs),
		TEST(an_older_epoch_makes_room_for_its_job),
		TEST(a_broken_job_keeps_its_slots_until_it_goes),
		TEST(children_of_a_port_are_counted_without_holes),
		TEST(every_copy_leaves_by_a_port_of_the_node),
		TEST(a_node_has_a_limited_number_of_children),
		TEST(a_job_without_gates_has_one_for_each_port_with_workers),
		TEST(named_gates_are_the_only_ones),
		TEST(a_gate_is_given_once),
		TEST(gates_that_stay_keep_their_rows),
		TEST(jobs_that_swap_gates_wait_only_where_rows_run_out),
		TEST(no_tenant_takes_the_rows_of_another),
		TEST(a_thousand_jobs_fit_on_64_ports),
		TEST(gates_without_rows_count_in_the_row_of_their_job),
		TEST(gates_end),
		TEST(no_two_jobs_share_anything_and_all_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
