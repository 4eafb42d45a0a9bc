// SPDX-License-Identifier: GPL-2.0-only
/*
 * The agent's edge (agent/dataplane/dataplane.h) on a real node: attached to a veth in a network
 * namespace of this process, pinned in a directory of its own. Frames go into its ingress program,
 * as it is pinned, by BPF_PROG_TEST_RUN; they come in at the loopback.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "agent/dataplane/dataplane.h"
#include "tests/bpf/beside.skel.h"

enum {
	SLOTS_OF_NODE = 64,
	TENANT = 3,
	DISCARD_PORT = 9,
	BURST = 64, /* frames on their way to the port at once: its ring holds 256 */
	REPLACEMENTS = 20,
	WAIT_SECONDS = 20,
};

static char pin[64];
static uint32_t port; /* of the node */
static struct why why;

/* --- the node */

static int ports_attach(void)
{
	struct dataplane_port ports[] = { { .ifindex = port, .name = "port0" } };

	return dataplane_attach(pin, SLOTS_OF_NODE, NULL, ports, 1, &why);
}

static int bench_setup(void **state)
{
	snprintf(pin, sizeof(pin), "/sys/fs/bpf/tally-test-%d", getpid());
	if (system("ip link add port0 numtxqueues 1 numrxqueues 1 type veth peer name peer0 "
		   "numtxqueues 1 numrxqueues 1 && ip link set port0 address 02:77:00:00:00:01 "
		   "addrgenmode none up && ip link set peer0 addrgenmode none up"))
		return -1;
	port = if_nametoindex("port0");
	return 0;
}

static int node_attach(void **state)
{
	int r = ports_attach();

	if (r < 0)
		print_error("# %s\n", why.text);
	return r;
}

/* What a test has open: one that fails closes nothing, and whoever comes next would wait for ever.
 */
static struct dataplane *opened[2];

static struct dataplane *node_open(void)
{
	struct dataplane **d = opened[0] ? &opened[1] : &opened[0];

	if (dataplane_open(pin, d, &why) < 0)
		fail_msg("%s", why.text);
	return *d;
}

static void node_close(struct dataplane *d)
{
	opened[d == opened[1]] = NULL;
	dataplane_close(d);
}

static int node_detach(void **state)
{
	node_close(opened[0]);
	node_close(opened[1]);
	return dataplane_detach(pin, &why);
}

static int pinned(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", pin, name);
	fd = bpf_obj_get(path);
	assert_return_code(fd, errno);
	return fd;
}

/* The constants of the pinned node. */
static struct tally_constants constants_now(void)
{
	struct tally_constants c;
	__u32 key = 0;
	int fd = pinned("constants");

	assert_return_code(bpf_map_lookup_elem(fd, &key, &c), errno);
	close(fd);
	return c;
}

/* Two workers, both behind the port; `window` chunks. */
static struct installation *job_plan(uint32_t id, uint16_t epoch, uint32_t window)
{
	static struct installation g;
	struct run *file = calloc(1, sizeof(*file));
	const struct installation_role role = { .root = true };
	struct sockaddr_in *worker, *service;

	assert_non_null(file);
	file->job = id;
	file->epoch = epoch;
	file->window = window;
	file->payload_bytes = 1408;
	file->workers = 2;
	service = (void *)&file->service;
	*service = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = service_ip4() };
	for (int rank = 0; rank < 2; rank++) {
		worker = (void *)&file->worker[rank];
		*worker = (struct sockaddr_in){ .sin_family = AF_INET,
						.sin_port = htons(UDP_PORT_OF_RANK_0 + rank),
						.sin_addr.s_addr = worker_ip4(rank) };
	}
	assert_int_equal(installation_plan(file, &role, &g, &why), 0);
	for (unsigned int i = 0; i < g.copies; i++)
		g.copy[i].hop = (struct hop){ .port = port, .port_name = "port0", .mtu = 1500 };
	assert_int_equal(installation_address(&g, &why), 0);
	free(file);
	return &g;
}

/* Reads the tables, decides, and writes, as whoever has a node does. */
static int job_add(struct dataplane *d, struct installation *g, const struct dataplane_gate *gates,
		   unsigned int count, struct why *ret_why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	_cleanup_(tables_job_close) struct tables_job j = { 0 };
	int r;

	assert_int_equal(dataplane_tables_read(d, &now, ret_why), 0);
	r = tables_install(&now, g, gates, count, &j, ret_why);
	if (r == 0)
		r = dataplane_job_put(d, tables_find(&now, g->id), &j, g, ret_why);
	if (r == 0)
		g->job = j.job;
	return r;
}

/* The same in tables that are known, and know it then. */
static int job_regate(struct dataplane *d, struct tables *now, uint32_t id,
		      const struct dataplane_gate *gates, unsigned int count, struct why *ret_why)
{
	_cleanup_(tables_job_close) struct tables_job j = { 0 };
	int r;

	r = tables_regate(now, id, gates, count, &j, ret_why);
	if (r == 0)
		r = dataplane_job_regate(d, tables_find(now, id), &j, ret_why);
	return r < 0 ? r : tables_put(now, &j);
}

static int job_gates(struct dataplane *d, uint32_t id, const struct dataplane_gate *gates,
		     unsigned int count, struct why *ret_why)
{
	_cleanup_(tables_close) struct tables now = { 0 };

	assert_int_equal(dataplane_tables_read(d, &now, ret_why), 0);
	return job_regate(d, &now, id, gates, count, ret_why);
}

static int job_del(struct dataplane *d, uint32_t id, struct why *ret_why)
{
	_cleanup_(tables_close) struct tables now = { 0 };
	const struct tables_job *j = NULL;
	int r;

	assert_int_equal(dataplane_tables_read(d, &now, ret_why), 0);
	r = tables_remove(&now, id, &j, ret_why);
	return r < 0 ? r : dataplane_job_remove(d, j, ret_why);
}

static void job_start(struct dataplane *d, uint32_t id, const struct dataplane_gate *gates,
		      unsigned int count)
{
	if (job_add(d, job_plan(id, EPOCH, 8), gates, count, &why) < 0)
		fail_msg("%s", why.text);
}

/* Runs the node's ingress program on it; its action. */
static int frame_run(struct message m, struct frame *ret)
{
	struct frame in;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = in.data, .data_out = ret->data,
		    .data_size_out = sizeof(ret->data), .repeat = 1);
	int fd = pinned("ingress");

	frame_write(m, &in);
	run.data_size_in = in.bytes;
	assert_return_code(bpf_prog_test_run_opts(fd, &run), errno);
	close(fd);
	ret->bytes = run.data_size_out;
	return run.retval;
}

static int message_run(struct message m)
{
	struct frame out;

	return frame_run(m, &out);
}

/* The row of a job at a port; 0 and 0: of no job. */
static struct traffic_row row_at(struct dataplane *d, uint32_t job, uint32_t ifindex)
{
	struct traffic_row *rows, row = { .job = ~0U };
	unsigned int count, found = 0;

	if (dataplane_rows(d, &rows, &count, &why) < 0)
		fail_msg("%s", why.text);
	assert_true(count >= 2);
	for (unsigned int i = 0; i < 2; i++)
		assert_true(!rows[i].job && !rows[i].ifindex);
	for (unsigned int i = job || ifindex ? 2 : 0; i < count && (job || ifindex || i < 1); i++)
		if (rows[i].job == job && rows[i].ifindex == ifindex && !rows[i].again) {
			row = rows[i];
			found++;
		}
	free(rows);
	assert_in_range(found, 0, 1);
	return row;
}

static __u64 total(struct dataplane *d, enum tally_outcome outcome)
{
	struct tally_counter counters[TALLY_OUTCOME_COUNT];

	assert_int_equal(dataplane_counters(d, counters, &why), 0);
	return counters[outcome].packet;
}

static bool is_absent(struct traffic_row row) { return row.job == ~0U; }

/* --- counters and gates */

static void each_port_of_a_job_has_a_row(void **state)
{
	const struct dataplane_gate gates[] = { { .ifindex = LOOPBACK }, { .ifindex = port } };
	struct dataplane *d = node_open();
	struct installation *g = job_plan(JOB, EPOCH, 8);

	g->job.tenant = TENANT;
	assert_int_equal(
		dataplane_tenant_put(d, TENANT, &(struct dataplane_limits){ 0 }, NULL, 0, &why), 0);
	assert_int_equal(job_add(d, g, gates, 2, &why), 0);
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	assert_int_equal(message_run(contribution(.worker = 0, .job = 99)), XDP_PASS);
	assert_int_equal(row_at(d, JOB, LOOPBACK).outcome[TALLY_ABSORBED].packet, 1);
	assert_int_equal(row_at(d, JOB, LOOPBACK).tenant, TENANT);
	assert_int_equal(row_at(d, JOB, port).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(row_at(d, 0, 0).outcome[TALLY_UNKNOWN_JOB].packet, 1);
	assert_int_equal(row_at(d, 0, 0).outcome[TALLY_ABSORBED].packet, 0);
	node_close(d);
}

static void without_gates_a_job_comes_in_anywhere(void **state)
{
	struct dataplane *d = node_open();

	job_start(d, JOB, NULL, 0);
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 1);
	assert_false(is_absent(row_at(d, JOB, port)));
	assert_true(is_absent(row_at(d, JOB, LOOPBACK)));
	node_close(d);
}

/* Where copies that leave for the i-th child behind the port are counted. */
static __u32 child_row(uint32_t job, uint32_t index)
{
	const struct tally_child_key key = { job, port, index };
	struct tally_child child;
	int fd = pinned("children");

	assert_return_code(bpf_map_lookup_elem(fd, &key, &child), errno);
	close(fd);
	return child.row;
}

static struct tally_child child_at(uint32_t ifindex, uint32_t index)
{
	const struct tally_child_key key = { JOB, ifindex, index };
	struct tally_child child;
	int fd = pinned("children");

	assert_return_code(bpf_map_lookup_elem(fd, &key, &child), errno);
	close(fd);
	return child;
}

/* Its bucket is for gates_close(). */
static struct tally_gates gates_pinned(void)
{
	const int fd = pinned("gates");
	const struct tally_gates gates = { .bucket = gates_open(fd),
					   .factor = constants_now().gate_factor };

	assert_non_null(gates.bucket);
	close(fd);
	return gates;
}

/* Index of a job that has gates. */
static __u32 index_of(struct dataplane *d, uint32_t id)
{
	struct tables now = { 0 };
	__u32 index;

	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	assert_non_null(tables_find(&now, id));
	index = tables_find(&now, id)->job.group;
	tables_close(&now);
	return index;
}

static __u32 gate_row(struct dataplane *d, uint32_t job, uint32_t ifindex)
{
	const struct tally_gate_key key = { job, ifindex };
	const struct tally_gates gates = gates_pinned();
	const __u64 *gate = tally_gates_find(&gates, key, index_of(d, job));
	__u32 row;

	assert_non_null(gate);
	row = tally_gate_row(*gate);
	gates_close(gates.bucket);
	return row;
}

static void copies_are_counted_at_the_gate_of_the_port_they_leave_by(void **state)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK }, there = { .ifindex = port };
	struct dataplane *d = node_open();

	job_start(d, OTHER_JOB, NULL, 0);
	job_start(d, JOB, &there, 1);
	for (uint32_t child = 0; child < 2; child++) {
		assert_int_equal(child_row(OTHER_JOB, child), gate_row(d, OTHER_JOB, port));
		assert_int_equal(child_row(JOB, child), gate_row(d, JOB, port));
	}
	assert_int_equal(job_gates(d, JOB, &here, 1, &why), 0);
	for (uint32_t child = 0; child < 2; child++) {
		assert_int_equal(child_row(OTHER_JOB, child), gate_row(d, OTHER_JOB, port));
		assert_int_equal(child_row(JOB, child), gate_row(d, JOB, 0));
	}
	node_close(d);
}

static void gates_change_while_a_job_runs_and_no_count_is_lost(void **state)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK }, there = { .ifindex = port };
	struct dataplane *d = node_open();

	job_start(d, JOB, &here, 1);
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	assert_int_equal(job_gates(d, JOB, &there, 1, &why), 0);
	assert_int_equal(message_run(contribution(.worker = 0, .seq = 1)), XDP_DROP);
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_OTHER_PORT].packet, 0);
	assert_int_equal(row_at(d, 0, 0).outcome[TALLY_OTHER_PORT].packet, 1);
	assert_true(is_absent(row_at(d, JOB, LOOPBACK)));
	assert_int_equal(total(d, TALLY_ABSORBED), 1);

	assert_int_equal(job_gates(d, JOB, &here, 1, &why), 0);
	assert_int_equal(row_at(d, JOB, LOOPBACK).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(message_run(contribution(.worker = 1)), XDP_REDIRECT);
	assert_int_equal(job_gates(d, JOB, NULL, 0, &why), 0);
	assert_int_equal(message_run(contribution(.worker = 1, .seq = 1)), XDP_DROP);
	assert_int_equal(total(d, TALLY_ABSORBED), 2);
	assert_int_equal(total(d, TALLY_COMPLETED), 1);
	assert_int_equal(job_gates(d, OTHER_JOB, &here, 1, &why), -ENOENT);
	node_close(d);
}

/* As after a process that died between two writes of a job. */
static void a_job_without_gate_0_takes_nothing_from_others(void **state)
{
	const struct tally_gate_key gate_0 = { .job = JOB };
	struct dataplane *d = node_open();
	struct tables now = { 0 };
	const struct tally_gates gates = gates_pinned();

	job_start(d, OTHER_JOB, NULL, 0);
	job_start(d, JOB, NULL, 0);
	assert_true(tally_gates_remove(&gates, gate_0, index_of(d, JOB)));
	gates_close(gates.bucket);
	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	assert_int_equal(now.jobs, 2);
	assert_true(tables_find(&now, JOB)->broken);
	assert_false(tables_find(&now, OTHER_JOB)->broken);
	tables_close(&now);
	job_start(d, JOB, NULL, 0);
	assert_int_equal(message_run(contribution(.worker = 0, .job = OTHER_JOB)), XDP_DROP);
	assert_int_equal(message_run(contribution(.worker = 1, .job = OTHER_JOB)), XDP_REDIRECT);
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	assert_int_equal(message_run(contribution(.worker = 1)), XDP_REDIRECT);
	node_close(d);
}

/* As after a process that died while it changed gates of a full node. */
static void more_gates_than_a_node_may_have_are_read_and_go(void **state)
{
	struct dataplane *d = node_open();
	struct tables now = { 0 };
	const struct tally_gates gates = gates_pinned();
	struct tally_gate_key key = { .job = JOB };
	struct tally_gate gate = { .row = TALLY_ROW_JOBS };

	job_start(d, JOB, NULL, 0);
	gate.job = index_of(d, JOB);
	gate.row += gate.job;
	for (key.ifindex = 1000; key.ifindex <= 1000 + TALLY_GATES_MAX; key.ifindex++)
		assert_true(tally_gates_put(&gates, key, gate));
	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	assert_in_range(tables_find(&now, JOB)->gates, TALLY_GATES_MAX + 1, TALLY_GATES_MAX + 4);
	tables_close(&now);
	assert_int_equal(job_del(d, JOB, &why), 0);
	for (key.ifindex = 1000; key.ifindex <= 1000 + TALLY_GATES_MAX; key.ifindex++)
		assert_null(tally_gates_find(&gates, key, gate.job));
	gates_close(gates.bucket);
	node_close(d);
}

/* The kernel takes copies out of a group when their interface goes. */
static void programs_are_replaced_where_a_copy_has_lost_its_interface(void **state)
{
	struct dataplane *d = node_open();
	const uint32_t second = 1;
	int fd;

	job_start(d, JOB, NULL, 0);
	fd = pinned("group-0");
	assert_return_code(bpf_map_delete_elem(fd, &second), errno);
	close(fd);
	node_close(d);
	if (dataplane_replace(pin, 0, NULL, NULL, 0, &why) < 0)
		fail_msg("%s", why.text);
	d = node_open();
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	assert_int_equal(message_run(contribution(.worker = 1)), XDP_REDIRECT);
	node_close(d);
}

/* Of XDP and of TC; whoever is not known, or behind another port, stays as it is. */
static void copies_follow_their_neighbours(void **state)
{
	struct hop hops[] = { { .port = 0, .mac = { 2, 1 } },
			      { .port = port, .mac = { 2, 2 }, .port_mac = { 2, 3 } } };
	struct dataplane *d = node_open();
	unsigned int changed = 9, elsewhere = 9;
	struct tally_child before, after;

	job_start(d, JOB, NULL, 0);
	before = child_at(port, 1);
	assert_int_equal(dataplane_job_follow(d, JOB, hops, 2, &changed, &elsewhere, &why), 0);
	assert_int_equal(changed, 1);
	assert_int_equal(elsewhere, 0);
	after = child_at(port, 1);
	assert_memory_equal(after.mac, hops[1].mac, 6);
	assert_memory_equal(after.port_mac, hops[1].port_mac, 6);
	assert_memory_equal(child_at(0, 1).mac, hops[1].mac, 6);
	memcpy(after.mac, before.mac, 6);
	memcpy(after.port_mac, before.port_mac, 6);
	assert_memory_equal(&after, &before, sizeof(after));
	assert_memory_equal(child_at(port, 0).mac, before.mac, 6);
	assert_memory_equal(child_at(0, 0).mac, before.mac, 6);

	hops[0].port = LOOPBACK;
	assert_int_equal(dataplane_job_follow(d, JOB, hops, 2, &changed, &elsewhere, &why), 0);
	assert_int_equal(changed, 0);
	assert_int_equal(elsewhere, 1);
	assert_memory_equal(child_at(port, 0).mac, before.mac, 6);
	assert_int_equal(dataplane_job_follow(d, OTHER_JOB, hops, 2, &changed, &elsewhere, &why),
			 -ENOENT);
	node_close(d);
}

static struct tally_rank rank_read(const struct tally_job *job, __u32 rank)
{
	const __u32 index = tally_rank_index(job->group, rank);
	struct tally_rank found;
	int fd = pinned("ranks");

	assert_return_code(bpf_map_lookup_elem(fd, &index, &found), errno);
	close(fd);
	return found;
}

static __u32 port_of_rank(const struct tally_job *job, __u32 rank)
{
	return rank_read(job, rank).port;
}

static void assert_key(const struct tally_job *job, __u32 number, bool is_there)
{
	const struct tally_key key = is_there ? key_of(number) : (struct tally_key){ { 0 } };
	struct tally_rank found = rank_read(job, number);

	assert_memory_equal(&found.key, &key, sizeof(key));
}

/* On the service address's own link, a rank comes in by that port alone; and it may move. */
static void a_bound_ranks_port_follows_a_worker_that_moves(void **state)
{
	struct hop hops[] = { { .port = port, .mac = { 2, 1 } },
			      { .port = port, .mac = { 2, 2 } } };
	struct installation *g = job_plan(JOB, EPOCH, 8);
	struct dataplane *d = node_open();
	unsigned int changed = 9, elsewhere = 9;

	g->job.bound = true;
	memcpy(g->copy[0].hop.source, g->job.service, 16);
	assert_int_equal(job_add(d, g, NULL, 0, &why), 0);
	assert_int_equal(port_of_rank(&g->job, 0), port);
	assert_int_equal(port_of_rank(&g->job, 1), 0);
	memcpy(hops[1].source, g->job.service, 16);
	assert_int_equal(dataplane_job_follow(d, JOB, hops, 2, &changed, &elsewhere, &why), 0);
	assert_int_equal(changed, 2);
	assert_int_equal(port_of_rank(&g->job, 0), 0);
	assert_int_equal(port_of_rank(&g->job, 1), port);
	node_close(d);
}

static void a_restricted_gate_asks_for_the_tenants_sources(void **state)
{
	const struct dataplane_gate gate = { .ifindex = LOOPBACK, .restricted = true };
	struct dataplane_source from = { .ifindex = LOOPBACK, .vlan = -1, .bits = 31 };
	struct sockaddr_in *address = (void *)&from.address;
	const struct dataplane_limits limits = { 0 };
	struct dataplane *d = node_open();
	struct installation *g = job_plan(JOB, EPOCH, 8);

	g->job.tenant = TENANT;
	assert_int_equal(job_add(d, g, &gate, 1, &why), 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(total(d, TALLY_OTHER_SOURCE), 1);
	/* what stands behind the prefix does not matter: ranks 0 and 1 are within it */
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = worker_ip4(1);
	assert_int_equal(dataplane_tenant_put(d, TENANT, &limits, &from, 1, &why), 0);
	message_run(contribution(.worker = 0));
	message_run(contribution(.set = set_of(0), .worker = 2)); /* by another's address */
	assert_int_equal(total(d, TALLY_ABSORBED), 1);
	assert_int_equal(total(d, TALLY_OTHER_SOURCE), 2);
	/* the same prefix, written otherwise */
	address->sin_addr.s_addr = worker_ip4(0);
	assert_int_equal(dataplane_tenant_put(d, TENANT, &limits, &from, 1, &why), 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(total(d, TALLY_DUPLICATE), 1);
	assert_int_equal(dataplane_tenant_del(d, TENANT, &why), 0);
	message_run(contribution(.worker = 1));
	assert_int_equal(total(d, TALLY_OTHER_SOURCE), 3);
	node_close(d);
}

static void a_job_that_ends_leaves_its_counts_behind(void **state)
{
	struct dataplane *d = node_open();

	for (int again = 1; again <= 3; again++) {
		job_start(d, JOB, NULL, 0);
		assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 0);
		message_run(contribution(.worker = 0));
		assert_int_equal(job_del(d, JOB, &why), 0);
		assert_true(is_absent(row_at(d, JOB, 0)));
		assert_int_equal(total(d, TALLY_ABSORBED), again);
	}
	assert_int_equal(job_del(d, JOB, &why), -ENOENT);
	node_close(d);
}

static void a_new_epoch_counts_on_in_the_same_rows(void **state)
{
	struct dataplane *d = node_open();

	job_start(d, JOB, NULL, 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(job_add(d, job_plan(JOB, EPOCH, 8), NULL, 0, &why), -EEXIST);
	assert_int_equal(job_add(d, job_plan(JOB, EPOCH + 1, 8), NULL, 0, &why), 0);
	message_run(contribution(.worker = 0));
	message_run(contribution(.worker = 0, .epoch = EPOCH + 1));
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 2);
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_WRONG_EPOCH].packet, 1);
	node_close(d);
}

static void an_epoch_stays_when_the_next_one_finds_no_room(void **state)
{
	const unsigned int too_many = TALLY_GATES_MAX;
	struct dataplane_gate *gates = calloc(too_many, sizeof(*gates));
	struct dataplane *d = node_open();

	assert_non_null(gates);
	for (unsigned int i = 0; i < too_many; i++)
		gates[i].ifindex = 1000 + i;
	job_start(d, JOB, NULL, 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(job_add(d, job_plan(JOB, EPOCH + 1, 64), NULL, 0, &why), -ENOSPC);
	assert_int_equal(job_add(d, job_plan(JOB, EPOCH + 1, 8), gates, too_many, &why), -ENOSPC);
	gates[1].ifindex = gates[0].ifindex;
	assert_int_equal(job_add(d, job_plan(JOB, EPOCH + 1, 8), gates, 2, &why), -EINVAL);
	assert_int_equal(message_run(contribution(.worker = 1)), XDP_REDIRECT);
	node_close(d);
	free(gates);
}

static void all_rows_can_be_used_and_what_has_none_is_in_that_of_its_job(void **state)
{
	const unsigned int all = TALLY_PORT_ROWS + 1;
	struct dataplane_gate *gates = calloc(all, sizeof(*gates));
	struct dataplane *d = node_open();

	assert_non_null(gates);
	for (unsigned int i = 0; i < all; i++)
		gates[i].ifindex = 1000 + i;
	gates[all - 1].ifindex = LOOPBACK; /* the last has none: its tenant has all it may have */
	job_start(d, JOB, gates, all);
	message_run(contribution(.worker = 0));
	assert_true(is_absent(row_at(d, JOB, LOOPBACK)));
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 1);
	assert_int_equal(total(d, TALLY_ABSORBED), 1);
	job_start(d, OTHER_JOB, NULL, 0);
	message_run(contribution(.worker = 0, .job = OTHER_JOB));
	assert_int_equal(row_at(d, OTHER_JOB, 0).outcome[TALLY_ABSORBED].packet, 1);
	/* with a row of its own again, nothing is counted twice or lost */
	assert_int_equal(job_gates(d, JOB, &gates[all - 1], 1, &why), 0);
	message_run(contribution(.worker = 0, .seq = 1));
	assert_int_equal(row_at(d, JOB, LOOPBACK).outcome[TALLY_ABSORBED].packet, 1);
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 1);
	assert_int_equal(total(d, TALLY_ABSORBED), 3);
	node_close(d);
	free(gates);
}

/* --- ports that come and go */

static void at_port_fill(uint32_t ifindex, enum tally_outcome outcome, uint64_t packets)
{
	struct tally_at_port *at = calloc(dataplane_cpus(), sizeof(*at));
	int fd = pinned("at_ports");

	assert_non_null(at);
	at[0].apart.outcome[outcome].packet = at[0].jobs.outcome[outcome].packet = packets;
	while (bpf_map_update_elem(fd, &ifindex, at, BPF_ANY) < 0)
		assert_int_equal(errno, ENOMEM); /* the kernel fetches more */
	close(fd);
	free(at);
}

/* On every CPU: whatever is for this address, the kernel takes in. */
static void assert_address_is_kept(void)
{
	struct tally_at_port *at = calloc(dataplane_cpus(), sizeof(*at));
	int fd = pinned("at_ports");

	assert_non_null(at);
	assert_return_code(bpf_map_lookup_elem(fd, &port, at), errno);
	for (unsigned int cpu = 0; cpu < dataplane_cpus(); cpu++)
		assert_memory_equal(at[cpu].mac, node_mac, sizeof(node_mac));
	close(fd);
	free(at);
}

/* As after more ports than a node can have at a time. */
static void ports_that_have_gone_make_room_and_their_counts_stay(void **state)
{
	struct dataplane *d = node_open();
	__u64 before = total(d, TALLY_OTHER_PORT);

	assert_address_is_kept();
	for (uint32_t i = 1; i < TALLY_PORTS_MAX; i++)
		at_port_fill(100000 + i, TALLY_OTHER_PORT, 3);
	assert_false(is_absent(row_at(d, 0, 100001)));
	assert_int_equal(total(d, TALLY_OTHER_PORT), before + 3 * (TALLY_PORTS_MAX - 1));
	node_close(d);
	if (dataplane_replace(pin, 0, NULL, NULL, 0, &why) < 0)
		fail_msg("%s", why.text);
	d = node_open();
	assert_true(is_absent(row_at(d, 0, 100001)));
	assert_false(is_absent(row_at(d, 0, port)));
	assert_address_is_kept();
	assert_int_equal(total(d, TALLY_OTHER_PORT), before + 3 * (TALLY_PORTS_MAX - 1));
	job_start(d, JOB, NULL, 0);
	node_close(d);
}

/* --- tenants */

static struct tally_tenant tenant_now(uint32_t index)
{
	struct tally_tenant t;
	int fd = pinned("tenants");

	assert_return_code(bpf_map_lookup_elem(fd, &index, &t), errno);
	close(fd);
	return t;
}

static unsigned int sources_now(uint32_t tenant)
{
	struct tally_source_key key, *at = NULL;
	unsigned int count = 0;
	int fd = pinned("sources");

	for (; !bpf_map_get_next_key(fd, at, &key); at = &key)
		count += key.tenant == htonl(tenant);
	close(fd);
	return count;
}

static void a_tenants_limits_are_those_that_were_given(void **state)
{
	struct dataplane_limits l = { .packets_per_second = 100000, .priority = 7 };
	struct dataplane *d = node_open();

	assert_int_equal(tenant_now(0).priority, 255);
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), 0);
	assert_int_equal(tenant_now(TENANT).limited, 1);
	assert_int_equal(tenant_now(TENANT).priority, 7);
	assert_int_equal(tenant_now(TENANT).packets.rate, 100000);
	assert_int_equal(tenant_now(TENANT).packets.burst, 10000);
	assert_int_equal(tenant_now(TENANT).packets.level, 10000);
	assert_int_equal(tenant_now(TENANT).bytes.rate, 0);
	l = (struct dataplane_limits){ .packets_per_second = 1, .bytes_per_second = 1 };
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), 0);
	assert_int_equal(tenant_now(TENANT).packets.burst, 64);
	assert_true(tenant_now(TENANT).bytes.burst >= 64 * (14 + 40 + 8 + 64 + TALLY_PAYLOAD_MAX));
	l = (struct dataplane_limits){ .packets_per_second = TALLY_RATE_MAX };
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), 0);
	l.packets_per_second++;
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), -EINVAL);
	assert_int_equal(dataplane_tenant_put(d, 0, &l, NULL, 0, &why), -EINVAL);
	assert_int_equal(dataplane_tenant_put(d, TALLY_TENANTS_MAX, &l, NULL, 0, &why), -EINVAL);
	assert_int_equal(dataplane_tenant_del(d, TENANT, &why), 0);
	assert_int_equal(tenant_now(TENANT).limited, 0);
	node_close(d);
}

static void a_limit_that_stays_keeps_its_level(void **state)
{
	struct dataplane_limits l = { .packets_per_second = 1, .bytes_per_second = 1000 };
	const uint32_t index = TENANT;
	struct dataplane *d = node_open();
	int fd = pinned("tenants");
	struct tally_tenant t;

	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), 0);
	t = tenant_now(TENANT);
	t.packets.level = t.bytes.level = 5;
	assert_return_code(bpf_map_update_elem(fd, &index, &t, 0), errno);
	l.bytes_per_second++;
	l.priority = 3;
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, NULL, 0, &why), 0);
	assert_int_equal(tenant_now(TENANT).packets.level, 5);
	assert_int_equal(tenant_now(TENANT).bytes.level, tenant_now(TENANT).bytes.burst);
	close(fd);
	node_close(d);
}

static void sources_are_exactly_those_that_were_given_last(void **state)
{
	struct dataplane_source sources[3] = { { .ifindex = port, .vlan = 0 },
					       { .ifindex = port, .vlan = 5, .bits = 24 },
					       { .ifindex = port, .vlan = -1, .bits = 64 } };
	const struct dataplane_limits l = { 0 };
	struct dataplane *d = node_open();

	sources[1].address.ss_family = AF_INET;
	sources[2].address.ss_family = AF_INET6;
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, sources, 3, &why), 0);
	assert_int_equal(sources_now(TENANT), 4); /* "any" is one of each family */
	assert_int_equal(dataplane_tenant_put(d, TENANT + 1, &l, sources, 3, &why), 0);
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, sources + 1, 1, &why), 0);
	assert_int_equal(sources_now(TENANT), 1);
	sources[1].bits = 33;
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, sources, 3, &why), -EINVAL);
	assert_int_equal(sources_now(TENANT), 1);
	assert_int_equal(dataplane_tenant_del(d, TENANT, &why), 0);
	assert_int_equal(sources_now(TENANT), 0);
	assert_int_equal(sources_now(TENANT + 1), 4);
	node_close(d);
}

static void sources_that_find_no_room_change_nothing(void **state)
{
	const struct dataplane_limits l = { 0 };
	struct dataplane_source *s = calloc(TALLY_SOURCES_MAX, sizeof(*s));
	struct dataplane *d = node_open();

	assert_non_null(s);
	for (uint32_t i = 0; i < TALLY_SOURCES_MAX; i++) {
		s[i].ifindex = i + 1;
		s[i].address.ss_family = AF_INET;
	}
	assert_int_equal(dataplane_tenant_put(d, TENANT, &l, s, 2, &why), 0);
	assert_int_equal(dataplane_tenant_put(d, TENANT + 1, &l, s, TALLY_SOURCES_MAX, &why),
			 -ENOSPC);
	assert_int_equal(sources_now(TENANT + 1), 0);
	assert_int_equal(dataplane_tenant_put(d, TENANT + 1, &l, s, TALLY_SOURCES_MAX - 2, &why),
			 0);
	assert_int_equal(sources_now(TENANT), 2);
	node_close(d);
	free(s);
}

/* --- trace */

struct told {
	unsigned int count;
	struct tally_event event[64];
};

static void keep(void *context, const struct tally_event *event)
{
	struct told *told = context;

	assert_true(told->count < 64);
	told->event[told->count++] = *event;
}

static struct told told_by(struct dataplane_trace *t)
{
	struct told told = { 0 };
	int count = dataplane_trace_read(t, keep, &told);

	assert_int_equal(count, told.count);
	return told;
}

static struct dataplane_trace *trace_open(struct dataplane *d)
{
	struct dataplane_trace *t = NULL;

	assert_int_equal(dataplane_trace_open(d, &t, &why), 0);
	return t;
}

static void a_trace_tells_what_came_in_and_what_became_of_it(void **state)
{
	struct dataplane *d = node_open();
	struct dataplane_trace *t;
	struct tally_event e;
	struct told told;
	struct frame frame;

	frame_write(contribution(.worker = 1), &frame);
	job_start(d, JOB, NULL, 0);
	t = trace_open(d);
	message_run(contribution(.worker = 0));
	assert_int_equal(told_by(t).count, 0);

	assert_int_equal(dataplane_trace_set(d, 1, false, 0, &why), 0);
	assert_int_equal(message_run(contribution(.worker = 1)), XDP_REDIRECT);
	message_run(contribution(.worker = 0, .job = 99, .seq = 5));
	message_run(contribution(.worker = 0, .job = 99, .version = 9));
	assert_int_equal(poll(&(struct pollfd){ dataplane_trace_fd(t), POLLIN, 0 }, 1, 0), 1);
	told = told_by(t);
	assert_int_equal(told.count, 3);
	e = told.event[0];
	assert_true(e.time_ns > 0 && e.time_ns <= told.event[1].time_ns);
	assert_int_equal(e.job, JOB);
	assert_int_equal(e.seq, 0);
	assert_int_equal(e.epoch, EPOCH);
	assert_int_equal(e.kind, TALLY_CONTRIBUTION); /* not the result that it became */
	assert_int_equal(e.outcome, TALLY_COMPLETED);
	assert_int_equal(e.ifindex, LOOPBACK);
	assert_int_equal(e.bytes, frame.bytes);
	assert_int_equal(e.set.word[0], 1 << 1);
	assert_int_equal(told.event[1].outcome, TALLY_UNKNOWN_JOB);
	assert_int_equal(told.event[1].job, 99);
	assert_int_equal(told.event[1].seq, 5);
	assert_int_equal(told.event[2].outcome, TALLY_OTHER_VERSION);

	assert_int_equal(dataplane_trace_set(d, 0, false, 0, &why), 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(told_by(t).count, 0);
	dataplane_trace_close(t);
	node_close(d);
}

static void what_is_not_tallys_is_not_told(void **state)
{
	struct dataplane *d = node_open();
	struct dataplane_trace *t = trace_open(d);

	assert_int_equal(dataplane_trace_set(d, 1, false, 0, &why), 0);
	message_run(contribution(.worker = 0));
	message_run(contribution(.worker = 0, .magic = 1));
	assert_int_equal(told_by(t).count, 1);
	assert_int_equal(dataplane_trace_set(d, 1, true, JOB, &why), 0);
	message_run(contribution(.worker = 0, .magic = 1));
	message_run(contribution(.worker = 0, .job = OTHER_JOB));
	assert_int_equal(told_by(t).count, 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(told_by(t).count, 1);
	dataplane_trace_close(t);
	node_close(d);
}

static void one_packet_in_so_many_is_told(void **state)
{
	struct dataplane *d = node_open();
	struct dataplane_trace *t = trace_open(d);
	cpu_set_t all, first;

	/* each CPU counts for itself */
	assert_return_code(sched_getaffinity(0, sizeof(all), &all), errno);
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	assert_return_code(sched_setaffinity(0, sizeof(first), &first), errno);
	assert_int_equal(dataplane_trace_set(d, 10, false, 0, &why), 0);
	for (int i = 0; i < 10 * 6; i++)
		message_run(contribution(.worker = 0));
	assert_int_equal(told_by(t).count, 6);
	assert_return_code(sched_setaffinity(0, sizeof(all), &all), errno);
	dataplane_trace_close(t);
	node_close(d);
}

static void events_without_room_are_lost_and_counted(void **state)
{
	enum {
		EVENTS = 5000, /* more than fit */
	};
	struct dataplane *d = node_open();
	struct dataplane_trace *t;
	struct told told = { 0 };
	uint64_t lost;

	assert_int_equal(dataplane_trace_set(d, 1, false, 0, &why), 0);
	for (int again = 0; again < 2; again++) {
		t = trace_open(d); /* forgets what was lost before, and what was not read */
		assert_int_equal(dataplane_trace_lost(t), 0);
		for (int i = 0; i < EVENTS; i++)
			message_run(contribution(.worker = 0));
		lost = dataplane_trace_lost(t);
		assert_in_range(lost, 1, EVENTS - 1);
		if (again)
			assert_int_equal(dataplane_trace_read(t, NULL, NULL), EVENTS - lost);
		dataplane_trace_close(t);
	}
	t = trace_open(d);
	node_close(d);
	assert_int_equal(dataplane_replace(pin, 0, NULL, NULL, 0, &why), 0);
	message_run(contribution(.worker = 0));
	assert_int_equal(dataplane_trace_read(t, keep, &told), 1);
	dataplane_trace_close(t);
}

/* --- another XDP program beside ours */

static struct beside_bpf *other;
static int wire = -1; /* a socket on the port's peer */

static uint32_t program_id(const struct bpf_program *program)
{
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);

	assert_return_code(bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &bytes), errno);
	return info.id;
}

/* What is attached to the port. */
static uint32_t program_at_port(void)
{
	__u32 id = 0;

	assert_return_code(bpf_xdp_query_id(port, 0, &id), errno);
	return id;
}

/* Nothing of ours, but the other program, alone. */
static int share_setup(void **state)
{
	const struct sockaddr_ll to = { .sll_family = AF_PACKET,
					.sll_ifindex = if_nametoindex("peer0") };

	wire = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (wire < 0 || bind(wire, (const struct sockaddr *)&to, sizeof(to)))
		return -1;
	other = beside_bpf__open_and_load();
	if (!other) { /* frames in several buffers are of 5.18 */
		other = beside_bpf__open();
		if (!other || bpf_program__set_autoload(other->progs.beside_frags, false) ||
		    beside_bpf__load(other))
			return -1;
	}
	return bpf_xdp_attach(port, bpf_program__fd(other->progs.beside), XDP_FLAGS_DRV_MODE, NULL);
}

static int share_teardown(void **state)
{
	node_close(opened[0]);
	node_close(opened[1]);
	dataplane_detach(pin, &why);
	bpf_xdp_detach(port, XDP_FLAGS_DRV_MODE, NULL);
	bpf_xdp_detach(port, XDP_FLAGS_SKB_MODE, NULL);
	beside_bpf__destroy(other);
	close(wire);
	return 0;
}

static struct dataplane_port shared_port(enum dataplane_mode mode)
{
	return (struct dataplane_port){
		.ifindex = port, .name = "port0", .mode = mode, .share = true
	};
}

static void attach_shared(void)
{
	struct dataplane_port p = shared_port(DATAPLANE_AUTO);

	if (dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(p.beside, program_id(other->progs.beside));
	assert_int_equal(p.mode, DATAPLANE_NATIVE);
}

static void put_on_the_wire(struct message m, uint16_t udp_port)
{
	struct frame frame;
	__be16 be = htons(udp_port);

	frame_write(m, &frame);
	memcpy(frame.data + frame_headers_bytes(m) - 6, &be, sizeof(be));
	assert_int_equal(send(wire, frame.data, frame.bytes, 0), frame.bytes);
}

static __u64 counter_now(const __u64 *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/* Spins until a counter of the other program has that value; false: it never comes. */
static bool comes(const __u64 *counter, __u64 value)
{
	struct timespec now, begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		if (counter_now(counter) >= value)
			return true;
		sched_yield();
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < begin.tv_sec + WAIT_SECONDS);
	return false;
}

#define await(counter, value) assert_true(comes(counter, value))

static void the_other_program_sees_what_tally_passes_and_nothing_else(void **state)
{
	const struct dataplane_gate gate = { .ifindex = port };
	struct dataplane *d;

	attach_shared();
	d = node_open();
	assert_true(dataplane_is_attached(d, port));
	job_start(d, JOB, &gate, 1);
	for (__u32 seq = 0; seq < BURST / 4; seq++) {
		put_on_the_wire(contribution(.worker = 0, .seq = seq), TALLY_UDP_PORT);
		put_on_the_wire(contribution(.worker = 0, .seq = seq, .job = 99), TALLY_UDP_PORT);
		put_on_the_wire(contribution(.worker = 0), 40000);
		put_on_the_wire(contribution(.worker = 0), DISCARD_PORT);
	}
	await(&other->bss->dropped, BURST / 4); /* the last one sent */
	assert_int_equal(other->bss->seen, 3 * BURST / 4);
	assert_int_equal(other->bss->seen_tally, BURST / 4); /* of the unknown job */
	assert_int_equal(total(d, TALLY_UNKNOWN_JOB), BURST / 4);
	assert_int_equal(total(d, TALLY_FOREIGN), BURST / 2);
	assert_int_equal(total(d, TALLY_STALE) + total(d, TALLY_ABSORBED), BURST / 4);
	node_close(d);

	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
	put_on_the_wire(contribution(.worker = 0), TALLY_UDP_PORT);
	await(&other->bss->seen_tally, BURST / 4 + 1);
}

/* --- the end of a job */

/* Writes into the map of groups, in which the kernel waits; and what was given away by then. */
static unsigned int waits, too_early;
static __u32 slot_of_job;

static unsigned int gates_of(uint32_t id)
{
	const struct tally_gates gates = gates_pinned();
	const __u64 *word = gates.bucket->word;
	unsigned int count = 0;
	int fd = pinned("jobs");

	for (int i = 0; i < TALLY_GATE_BUCKETS * TALLY_GATE_WORDS; i++) {
		const __u32 index = tally_gate_job(word[i]);
		struct tally_job job;

		if (!word[i])
			continue;
		assert_return_code(bpf_map_lookup_elem(fd, &index, &job), errno);
		count += job.id == id;
	}
	close(fd);
	gates_close(gates.bucket);
	return count;
}

static bool has_counted(uint32_t row)
{
	struct tally_counters *of_cpu = calloc(libbpf_num_possible_cpus(), sizeof(*of_cpu));
	int fd = pinned("counters");
	__u64 packets = 0;

	assert_non_null(of_cpu);
	assert_return_code(bpf_map_lookup_elem(fd, &row, of_cpu), errno);
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		packets += of_cpu[cpu].outcome[TALLY_ABSORBED].packet;
	close(fd);
	free(of_cpu);
	return packets;
}

static bool slot_is_empty(void)
{
	static const struct tally_slot_state empty;
	struct tally_slot slot;
	int fd = pinned("slots");

	assert_return_code(bpf_map_lookup_elem(fd, &slot_of_job, &slot), errno);
	close(fd);
	return !memcmp(&slot.state, &empty, sizeof(empty));
}

/* A program that begins later is not waited for. */
static void wait_note(int fd)
{
	struct bpf_map_info info = { 0 };
	__u32 bytes = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &bytes) || strcmp(info.name, "groups") != 0)
		return;
	waits++;
	too_early += gates_of(JOB) || has_counted(TALLY_ROW_GONE) || slot_is_empty();
}

int bpf_map_delete_elem(int fd, const void *key)
{
	int (*really)(int fd, const void *key) = dlsym(RTLD_NEXT, "bpf_map_delete_elem");

	wait_note(fd);
	return really(fd, key);
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	int (*really)(int fd, const void *key, const void *value,
		      __u64 flags) = dlsym(RTLD_NEXT, "bpf_map_update_elem");

	wait_note(fd);
	return really(fd, key, value, flags);
}

/* One that has counted a packet, and has a chunk in a slot. */
static struct dataplane *node_with_job(void)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK };
	struct dataplane *d = node_open();
	struct installation *g = job_plan(JOB, EPOCH, 8);

	assert_int_equal(job_add(d, g, &here, 1, &why), 0);
	slot_of_job = g->job.slot_base;
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	waits = too_early = 0;
	return d;
}

static void a_run_gets_what_was_anothers_when_programs_were_waited_for(void **state)
{
	const struct dataplane_gate there = { .ifindex = port };
	struct dataplane *d = node_with_job();

	assert_int_equal(job_add(d, job_plan(JOB, EPOCH + 1, 8), &there, 1, &why), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(too_early, 0);
	assert_true(has_counted(TALLY_ROW_GONE) && slot_is_empty());
	assert_int_equal(total(d, TALLY_ABSORBED), 1);
	assert_int_equal(waits, 1); /* nothing has gone since */
	node_close(d);
}

/* Where another job has left a chunk. */
static uint32_t slots_left_behind(struct dataplane *d)
{
	struct installation *g = job_plan(OTHER_JOB, EPOCH, 8);
	uint32_t base;

	assert_int_equal(job_add(d, g, NULL, 0, &why), 0);
	base = g->job.slot_base;
	assert_int_equal(message_run(contribution(.job = OTHER_JOB, .worker = 0)), XDP_DROP);
	assert_int_equal(job_del(d, OTHER_JOB, &why), 0);
	return base;
}

static void a_ring_moves_when_programs_were_waited_for(void **state)
{
	struct dataplane *d = node_with_job();
	const struct tables_move move = { JOB, slots_left_behind(d) };
	_cleanup_(tables_close) struct tables now = { 0 }, then = { 0 };
	const __u32 row = gate_row(d, JOB, LOOPBACK);
	struct frame out;
	struct sent sent;

	assert_int_not_equal(move.slot_base, slot_of_job);
	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	waits = too_early = 0;
	assert_int_equal(dataplane_jobs_move(d, &now, &move, 1, &why), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(too_early, 0);
	assert_int_equal(dataplane_tables_read(d, &then, &why), 0);
	tables_move(&now, &move, 1);
	assert_true(tables_job_is_equal(tables_find(&then, JOB), tables_find(&now, JOB)));
	assert_int_equal(gate_row(d, JOB, LOOPBACK), row);
	slot_of_job = move.slot_base;
	assert_true(slot_is_empty());
	assert_int_equal(message_run(contribution(.worker = 0, .value = 40)), XDP_DROP);
	assert_false(slot_is_empty());
	assert_int_equal(frame_run(contribution(.worker = 1, .value = 2), &out), XDP_REDIRECT);
	frame_read(&out, &sent);
	assert_sum(&sent, 42);
	assert_int_equal(tally_le16_get(sent.tally.boot), constants_now().boot);
	node_close(d);
}

static void what_a_job_counted_has_gone_when_programs_were_waited_for(void **state)
{
	struct dataplane *d = node_with_job();

	assert_int_equal(job_del(d, JOB, &why), 0);
	assert_int_equal(waits, 0);
	node_close(d);
	assert_int_equal(waits, 1);
	assert_int_equal(too_early, 0);
	assert_true(has_counted(TALLY_ROW_GONE));
}

static void a_row_changes_hands_when_programs_were_waited_for(void **state)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK }, there = { .ifindex = port };
	struct dataplane *d = node_open();
	__u32 row;

	job_start(d, JOB, &here, 1);
	job_start(d, OTHER_JOB, &there, 1);
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_DROP);
	row = gate_row(d, JOB, LOOPBACK);
	waits = 0;
	assert_int_equal(job_gates(d, JOB, &there, 1, &why), 0);
	assert_int_equal(waits, 0);
	assert_int_equal(job_gates(d, OTHER_JOB, &here, 1, &why), 0);
	assert_int_equal(waits, 1);
	assert_int_equal(gate_row(d, OTHER_JOB, LOOPBACK), row);
	assert_int_equal(row_at(d, OTHER_JOB, LOOPBACK).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(total(d, TALLY_ABSORBED), 1);
	node_close(d);
}

/* It died between the end of a job and the end of the wait. */
static void what_a_process_that_died_left_in_rows_is_no_jobs(void **state)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK };
	const uint32_t of_job = TALLY_ROW_JOBS, of_port = TALLY_ROW_PORTS + 1;
	struct tally_counters *left = calloc(libbpf_num_possible_cpus(), sizeof(*left));
	struct dataplane *d = node_open();
	int fd = pinned("counters");

	assert_non_null(left);
	left->outcome[TALLY_ABSORBED].packet = 5;
	assert_return_code(bpf_map_update_elem(fd, &of_job, left, BPF_ANY), errno);
	job_start(d, JOB, NULL, 0);
	assert_int_equal(row_at(d, JOB, 0).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(total(d, TALLY_ABSORBED), 5);
	assert_return_code(bpf_map_update_elem(fd, &of_port, left, BPF_ANY), errno);
	assert_int_equal(job_gates(d, JOB, &here, 1, &why), 0);
	assert_int_equal(gate_row(d, JOB, LOOPBACK), of_port);
	assert_int_equal(row_at(d, JOB, LOOPBACK).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(total(d, TALLY_ABSORBED), 10);
	close(fd);
	free(left);
	node_close(d);
}

enum {
	MANY = SLOTS / 2, /* of one chunk each */
};

/* How often the kernel waits; all is counted before and after. */
static unsigned int waits_until_settled(struct dataplane *d, __u64 packets)
{
	const unsigned int before = waits;

	assert_int_equal(total(d, TALLY_ABSORBED), packets);
	assert_int_equal(waits, before);
	assert_int_equal(dataplane_settle(d, &why), 0);
	assert_int_equal(total(d, TALLY_ABSORBED), packets);
	return waits;
}

static void jobs_that_go_or_lose_a_gate_wait_together(void **state)
{
	const struct dataplane_gate both[] = { { .ifindex = LOOPBACK }, { .ifindex = port } };
	struct dataplane *d = node_open();

	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_add(d, job_plan(id, EPOCH, 1), both, 2, &why), 0);
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(message_run(contribution(.worker = 0, .job = id)), XDP_DROP);
	waits = 0;
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_gates(d, id, &both[1], 1, &why), 0);
	assert_int_equal(waits_until_settled(d, MANY), 1);
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_gates(d, id, both, 2, &why), 0);
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(message_run(contribution(.worker = 0, .job = id, .seq = 1)),
				 XDP_DROP);
	waits = 0;
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_del(d, id, &why), 0);
	assert_int_equal(waits_until_settled(d, 2 * MANY), 1);
	assert_int_equal(row_at(d, 0, 0).outcome[TALLY_ABSORBED].packet, 0);
	node_close(d);
}

/* As where a reload takes one ingress point from all jobs of a tenant, and gives them another. */
static void jobs_that_swap_a_gate_for_another_wait_for_nobody(void **state)
{
	const struct dataplane_gate here = { .ifindex = LOOPBACK }, there = { .ifindex = port };
	_cleanup_(tables_close) struct tables now = { 0 };
	struct dataplane *d = node_open();

	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_add(d, job_plan(id, EPOCH, 1), &here, 1, &why), 0);
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(message_run(contribution(.worker = 0, .job = id)), XDP_DROP);
	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	waits = 0;
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(job_regate(d, &now, id, &there, 1, &why), 0);
	assert_int_equal(waits, 0);
	for (uint32_t id = 1; id <= MANY; id++)
		assert_int_equal(row_at(d, id, port).outcome[TALLY_ABSORBED].packet, 0);
	assert_int_equal(waits_until_settled(d, MANY), 1);
	node_close(d);
}

struct traffic {
	atomic_bool end;
	__u64 sent; /* of each kind */
};

static void *traffic_run(void *data)
{
	struct traffic *t = data;

	bool arrived = true;

	while (arrived && !atomic_load(&t->end)) {
		for (int i = 0; i < BURST / 2; i++) {
			put_on_the_wire(contribution(.worker = 0), TALLY_UDP_PORT);
			put_on_the_wire(contribution(.worker = 0), DISCARD_PORT);
		}
		t->sent += BURST / 2;
		arrived = comes(&other->bss->dropped, t->sent);
	}
	return NULL;
}

static void replacing_under_traffic_loses_no_frame_of_either(void **state)
{
	const struct dataplane_gate gate = { .ifindex = port };
	struct traffic traffic = { .sent = 0 };
	struct dataplane *d;
	pthread_t thread;
	bool flows = true;
	int r = 0;

	attach_shared();
	d = node_open();
	job_start(d, JOB, &gate, 1);
	node_close(d);
	assert_int_equal(pthread_create(&thread, NULL, traffic_run, &traffic), 0);
	for (int i = 0; i < REPLACEMENTS && flows && r == 0; i++) {
		__u64 before = counter_now(&other->bss->dropped);

		r = dataplane_replace(pin, 0, NULL, NULL, 0, &why);
		flows = comes(&other->bss->dropped,
			      before + BURST); /* there is traffic all along */
	}
	atomic_store(&traffic.end, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(r, 0);
	assert_true(flows);
	assert_int_equal(other->bss->dropped, traffic.sent);
	assert_int_equal(other->bss->seen, traffic.sent);
	d = node_open();
	assert_int_equal(total(d, TALLY_ABSORBED) + total(d, TALLY_DUPLICATE), traffic.sent);
	node_close(d);
}

static void without_share_a_port_is_refused_and_left_as_it_was(void **state)
{
	struct dataplane_port p = shared_port(DATAPLANE_AUTO);

	p.share = false;
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why), -EBUSY);
	assert_non_null(strstr(why.text, "--share"));
	p = shared_port(DATAPLANE_GENERIC);
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why), -EINVAL);
	assert_non_null(strstr(why.text, "other mode"));
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
}

static void a_port_shared_in_generic_mode_stays_generic(void **state)
{
	struct dataplane_port p = shared_port(DATAPLANE_AUTO);

	assert_int_equal(bpf_xdp_detach(port, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(bpf_xdp_attach(port, bpf_program__fd(other->progs.beside),
					XDP_FLAGS_SKB_MODE, NULL),
			 0);
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why), 0);
	assert_int_equal(p.mode, DATAPLANE_GENERIC);
	put_on_the_wire(contribution(.worker = 0), DISCARD_PORT);
	await(&other->bss->dropped, 1);
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
}

static void a_program_that_a_link_holds_is_named_and_left_alone(void **state)
{
	struct dataplane_port p = shared_port(DATAPLANE_NATIVE);
	struct bpf_link *link;
	char words[64];

	assert_int_equal(bpf_xdp_detach(port, XDP_FLAGS_DRV_MODE, NULL), 0);
	link = bpf_program__attach_xdp(other->progs.beside, port);
	assert_non_null(link);
	snprintf(words, sizeof(words), "XDP program %u is held there by BPF link",
		 program_id(other->progs.beside));
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why), -EBUSY);
	assert_non_null(strstr(why.text, words));
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
	bpf_link__destroy(link);
}

static void a_program_that_ours_cannot_call_is_left_alone(void **state)
{
	struct dataplane_port p = shared_port(DATAPLANE_NATIVE);
	int frags = bpf_program__fd(other->progs.beside_frags);

	if (frags < 0)
		skip();
	assert_int_equal(bpf_xdp_detach(port, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(bpf_xdp_attach(port, frags, XDP_FLAGS_DRV_MODE, NULL), 0);
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why), -EINVAL);
	assert_non_null(strstr(why.text, "xdp.frags"));
	assert_int_equal(program_at_port(), program_id(other->progs.beside_frags));
}

static void a_shared_port_comes_and_goes_with_a_replacement(void **state)
{
	struct dataplane_port p = shared_port(DATAPLANE_AUTO), none = { .ifindex = LOOPBACK };
	struct dataplane_port *ports;
	struct dataplane *d;
	unsigned int count;

	/* a node on the loopback alone, in generic mode */
	none.mode = DATAPLANE_GENERIC;
	assert_int_equal(dataplane_attach(pin, SLOTS_OF_NODE, NULL, &none, 1, &why), 0);
	assert_int_equal(dataplane_replace(pin, 0, NULL, &p, 1, &why), 0);
	assert_int_equal(p.beside, program_id(other->progs.beside));
	put_on_the_wire(contribution(.worker = 0), DISCARD_PORT);
	await(&other->bss->dropped, 1);
	d = node_open();
	assert_int_equal(dataplane_ports(d, &ports, &count, &why), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ports[0].ifindex, port);
	assert_int_equal(ports[0].beside, program_id(other->progs.beside));
	free(ports);
	node_close(d);
	assert_int_equal(dataplane_replace(pin, 0, NULL, &none, 1, &why), 0);
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
}

static void from_another_namespace_a_shared_port_is_left_as_it_is(void **state)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), r;
	uint32_t ours;

	attach_shared();
	ours = program_at_port();
	assert_return_code(here, errno);
	assert_return_code(unshare(CLONE_NEWNET), errno);
	r = dataplane_detach(pin, &why);
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	close(here);
	assert_int_equal(r, -EXDEV);
	assert_int_equal(program_at_port(), ours);
	assert_int_equal(dataplane_detach(pin, &why), 0);
}

/* --- ports that XDP cannot serve */

static struct bpf_link *holder; /* of the other program, to the port */

/* Nothing of ours, but the other program, held by a BPF link: its port is nobody else's. */
static int tc_setup(void **state)
{
	int r = share_setup(state);

	if (r == 0)
		r = bpf_xdp_detach(port, XDP_FLAGS_DRV_MODE, NULL);
	if (r < 0)
		return r;
	holder = bpf_program__attach_xdp(other->progs.beside, port);
	return holder ? 0 : -errno;
}

static int tc_teardown(void **state)
{
	node_close(opened[0]);
	node_close(opened[1]);
	dataplane_detach(pin, &why);
	bpf_link__destroy(holder);
	return share_teardown(state);
}

static bool has_clsact(void) { return !system("tc qdisc show dev port0 | grep -q clsact"); }

static struct dataplane_port attach_by_tc(enum dataplane_mode mode, bool share)
{
	struct dataplane_port p = shared_port(mode);

	p.share = share;
	if (dataplane_attach(pin, SLOTS_OF_NODE, NULL, &p, 1, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(p.mode, DATAPLANE_TC);
	assert_int_equal(p.beside, 0);
	return p;
}

static void tc_serves_where_xdp_is_held_and_says_why(void **state)
{
	const struct dataplane_gate gate = { .ifindex = port };
	struct dataplane_port p = attach_by_tc(DATAPLANE_AUTO, false), *ports;
	unsigned int count;
	struct dataplane *d;

	assert_non_null(strstr(p.refused.text, "native: "));
	assert_non_null(strstr(p.refused.text, "; generic: another XDP program"));
	assert_int_equal(program_at_port(), program_id(other->progs.beside));
	d = node_open();
	assert_true(dataplane_is_attached(d, port));
	assert_int_equal(dataplane_ports(d, &ports, &count, &why), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ports[0].ifindex, port);
	assert_int_equal(ports[0].mode, DATAPLANE_TC);
	free(ports);
	job_start(d, JOB, &gate, 1);
	put_on_the_wire(contribution(.worker = 0), TALLY_UDP_PORT);
	put_on_the_wire(contribution(.worker = 0), DISCARD_PORT);
	await(&other->bss->dropped, 1);
	assert_int_equal(other->bss->seen_tally, 1); /* it is the first that sees all */
	assert_int_equal(total(d, TALLY_ABSORBED), 1);
	assert_int_equal(total(d, TALLY_FOREIGN), 0); /* and what it drops we never see */
	node_close(d);
}

/* Nobody asked for it, but for sharing: that reason is told. */
static void tc_serves_where_a_port_cannot_be_shared(void **state)
{
	struct dataplane_port p = attach_by_tc(DATAPLANE_AUTO, true);
	int frags = bpf_program__fd(other->progs.beside_frags);

	assert_non_null(strstr(p.refused.text, "is held there by BPF link"));
	assert_int_equal(dataplane_detach(pin, &why), 0);
	if (frags < 0)
		return;
	bpf_link__destroy(holder);
	holder = NULL;
	assert_int_equal(bpf_xdp_attach(port, frags, XDP_FLAGS_DRV_MODE, NULL), 0);
	p = attach_by_tc(DATAPLANE_AUTO, true);
	assert_non_null(strstr(p.refused.text, "xdp.frags"));
}

static void detach_takes_the_qdisc_along_that_attach_made(void **state)
{
	attach_by_tc(DATAPLANE_TC, false);
	assert_true(has_clsact());
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_false(has_clsact());
}

/* Somebody else's filter, which lets everything through. */
static struct bpf_tc_hook others_hook(void)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)port, .attach_point = BPF_TC_EGRESS);

	return hook;
}

static void others_use_the_qdisc(void)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "pass", "GPL", pass, 2, NULL);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = 1, .priority = 9);
	struct bpf_tc_hook hook = others_hook();

	assert_return_code(program, errno);
	assert_int_equal(bpf_tc_attach(&hook, &options), 0);
	close(program);
}

static bool others_filter_is_there(void)
{
	LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 9);
	struct bpf_tc_hook hook = others_hook();

	return bpf_tc_query(&hook, &options) == 0;
}

static void a_qdisc_of_others_stays_and_so_does_one_that_others_use(void **state)
{
	assert_int_equal(system("tc qdisc add dev port0 clsact"), 0);
	attach_by_tc(DATAPLANE_TC, false);
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_true(has_clsact());
	assert_int_equal(system("tc qdisc del dev port0 clsact"), 0);

	attach_by_tc(DATAPLANE_TC, false);
	others_use_the_qdisc();
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_true(others_filter_is_there());
	assert_int_equal(system("tc qdisc del dev port0 clsact"), 0);
}

static void a_filter_that_was_taken_away_is_told_and_attached_anew(void **state)
{
	struct dataplane_port p = attach_by_tc(DATAPLANE_TC, false), *ports;
	unsigned int count;
	struct dataplane *d;

	assert_int_equal(system("tc qdisc del dev port0 clsact"), 0);
	d = node_open();
	assert_false(dataplane_is_attached(d, port));
	assert_int_equal(dataplane_ports(d, &ports, &count, &why), 0);
	assert_int_equal(ports[0].ifindex, 0);
	free(ports);
	node_close(d);
	assert_int_equal(dataplane_replace(pin, 0, NULL, &p, 1, &why), 0);
	d = node_open();
	assert_true(dataplane_is_attached(d, port));
	node_close(d);
}

static void another_node_on_the_same_port_is_refused(void **state)
{
	struct dataplane_port p = attach_by_tc(DATAPLANE_TC, false);
	char second[80];

	snprintf(second, sizeof(second), "%s-second", pin);
	assert_int_equal(dataplane_attach(second, SLOTS_OF_NODE, NULL, &p, 1, &why), -EBUSY);
	assert_non_null(strstr(why.text, "another Tally node"));
	assert_int_equal(access(second, F_OK), -1);
}

/* All goes through the other program first, and then through one of ours, before and after. */
static void replacing_by_tc_under_traffic_loses_no_frame(void **state)
{
	const struct dataplane_gate gate = { .ifindex = port };
	struct traffic traffic = { .sent = 0 };
	struct dataplane *d;
	pthread_t thread;
	bool flows = true;
	int r = 0;

	attach_by_tc(DATAPLANE_AUTO, false);
	d = node_open();
	job_start(d, JOB, &gate, 1);
	node_close(d);
	assert_int_equal(pthread_create(&thread, NULL, traffic_run, &traffic), 0);
	for (int i = 0; i < REPLACEMENTS && flows && r == 0; i++) {
		__u64 before = counter_now(&other->bss->dropped);

		r = dataplane_replace(pin, 0, NULL, NULL, 0, &why);
		flows = comes(&other->bss->dropped, before + BURST);
	}
	atomic_store(&traffic.end, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(r, 0);
	assert_true(flows);
	assert_int_equal(other->bss->seen_tally, traffic.sent);
	d = node_open();
	assert_int_equal(total(d, TALLY_ABSORBED) + total(d, TALLY_DUPLICATE), traffic.sent);
	node_close(d);
}

static void from_another_namespace_a_port_by_tc_is_left_as_it_is(void **state)
{
	int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), r, replaced;

	attach_by_tc(DATAPLANE_TC, false);
	assert_return_code(here, errno);
	assert_return_code(unshare(CLONE_NEWNET), errno);
	r = dataplane_detach(pin, &why);
	replaced = dataplane_replace(pin, 0, NULL, NULL, 0, &why);
	assert_return_code(setns(here, CLONE_NEWNET), errno);
	close(here);
	assert_int_equal(r, -EXDEV);
	assert_true(replaced < 0);
	assert_true(has_clsact());
	assert_int_equal(dataplane_detach(pin, &why), 0);
}

/* --- whose node it is, and of which version */

static void ports_are_told_as_they_are_attached(void **state)
{
	struct dataplane *d = node_open();
	struct dataplane_port *ports;
	unsigned int count;

	assert_int_equal(dataplane_ports(d, &ports, &count, &why), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ports[0].ifindex, port);
	assert_string_equal(ports[0].name, "port0");
	assert_int_equal(ports[0].mode, DATAPLANE_NATIVE);
	free(ports);
	assert_true(dataplane_is_current(d));
	node_close(d);
}

static void new_programs_keep_a_sum_that_is_under_way(void **state)
{
	struct dataplane *d = node_open();
	uint16_t boot = constants_now().boot;
	struct frame out;
	struct sent sent;

	job_start(d, JOB, NULL, 0);
	node_close(d);
	message_run(contribution(.worker = 0, .value = 40));
	assert_int_equal(dataplane_replace(pin, 0, NULL, NULL, 0, &why), 0);
	assert_int_equal(constants_now().boot, boot);
	assert_int_equal(frame_run(contribution(.worker = 1, .value = 2), &out), XDP_REDIRECT);
	frame_read(&out, &sent);
	assert_sum(&sent, 42);
	assert_int_equal(tally_le16_get(sent.tally.boot), boot);

	assert_int_equal(dataplane_replace(pin, 2 * SLOTS_OF_NODE, NULL, NULL, 0, &why), 0);
	assert_int_not_equal(constants_now().boot, boot);
	assert_int_equal(message_run(contribution(.worker = 1, .value = 2)), XDP_DROP);
}

static __u32 pool_entries(void)
{
	struct bpf_map_info info = { 0 };
	__u32 bytes = sizeof(info);
	int fd = pinned("pool");

	assert_return_code(bpf_obj_get_info_by_fd(fd, &info, &bytes), errno);
	close(fd);
	return info.max_entries;
}

static void assert_pool(__u32 slots, bool holds)
{
	struct dataplane *d = node_open();

	assert_int_equal(dataplane_pool(d).slots, slots);
	assert_int_equal(dataplane_pool(d).policy.holds, holds);
	assert_int_equal(pool_entries(), slots ? slots : 1);
	node_close(d);
}

static void a_pool_comes_with_new_programs_and_stays(void **state)
{
	struct tally_pool pool = { .slots = 8, .policy = TALLY_BORROWED_FCFS };

	assert_pool(0, false);
	assert_int_equal(dataplane_replace(pin, 0, &pool, NULL, 0, &why), 0);
	assert_pool(8, true);
	assert_int_equal(dataplane_replace(pin, 2 * SLOTS_OF_NODE, NULL, NULL, 0, &why), 0);
	assert_pool(8, true);
	pool = (struct tally_pool){ .slots = 0 };
	assert_int_equal(dataplane_replace(pin, 0, &pool, NULL, 0, &why), 0);
	assert_pool(0, false);
}

/* More copies are not needed, either: at the root's machine its software sends the results. */
static void a_job_with_rank_keys_borrows_with_a_node_key(void **state)
{
	struct installation *g = job_plan(JOB, EPOCH, 8);
	struct dataplane *d = node_open();

	g->copies = g->job.copies = 0;
	g->job.borrows = 1;
	assert_int_equal(job_add(d, g, NULL, 0, &why), -EINVAL);
	g->job.root = 0;
	g->job.keyed = 1;
	assert_int_equal(job_add(d, g, NULL, 0, &why), -EINVAL);
	assert_non_null(strstr(why.text, "with rank keys a node key"));
	g->job.keyed = 0;
	*(struct sockaddr_in *)&g->address =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = worker_ip4(9) };
	assert_int_equal(job_add(d, g, NULL, 0, &why), 0);
	assert_int_equal(rank_read(&g->job, TALLY_NODE_KEY).ip4, worker_ip4(9));
	assert_int_equal(message_run(contribution(.worker = 0)), XDP_PASS);
	g->job.keyed = g->job.node_key = 1;
	g->job.epoch++;
	for (unsigned int i = 0; i < TALLY_KEYS_MAX; i++)
		g->key[i] = key_of(i);
	assert_int_equal(job_add(d, g, NULL, 0, &why), 0);
	assert_key(&g->job, 0, true);
	assert_key(&g->job, 1, true);
	assert_key(&g->job, 2, false);
	assert_key(&g->job, TALLY_NODE_KEY, true);
	assert_int_equal(job_del(d, JOB, &why), 0);
	assert_key(&g->job, 0, false);
	assert_key(&g->job, TALLY_NODE_KEY, false);
	assert_int_equal(rank_read(&g->job, TALLY_NODE_KEY).ip4, 0);
	node_close(d);
}

/* The message takes a slot of the pool; which, and what is in it then. */
static void borrow_slot(struct dataplane *d, uint32_t id, uint32_t base, uint32_t seq)
{
	struct installation *g = job_plan(id, EPOCH, 2);

	g->job.root = 0;
	g->job.borrows = 1;
	g->job.slot_base = base;
	g->job.range = 2;
	if (job_add(d, g, NULL, 0, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(message_run(contribution(.job = id, .worker = 0, .seq = seq)), XDP_DROP);
}

static __u32 job_in_pool(__u32 index)
{
	struct tally_pool_slot slot;
	int fd = pinned("pool");

	assert_return_code(bpf_map_lookup_elem(fd, &index, &slot), errno);
	close(fd);
	return slot.books.job;
}

static void a_job_that_ends_leaves_the_pool(void **state)
{
	const struct tally_pool pool = { .slots = 5, .policy.preempts = true };
	struct dataplane *d;

	assert_int_equal(dataplane_replace(pin, 0, &pool, NULL, 0, &why), 0);
	d = node_open();
	borrow_slot(d, JOB, 4, 1); /* the range goes on at the front */
	borrow_slot(d, OTHER_JOB, 4, 0);
	assert_int_equal(job_in_pool(0), JOB);
	assert_int_equal(job_in_pool(4), OTHER_JOB);
	assert_int_equal(job_del(d, JOB, &why), 0);
	assert_int_equal(dataplane_settle(d, &why), 0);
	assert_int_equal(job_in_pool(0), 0);
	assert_int_equal(job_in_pool(4), OTHER_JOB);
	node_close(d);
}

/* As a process leaves them that is killed between two writes. */
static void what_no_job_has_is_swept(void **state)
{
	const struct tally_pool pool = { .slots = 5, .policy.preempts = true };
	const __u32 indexes[] = { 0, 7, TALLY_RANKS_MAX - 1 };
	const struct tally_rank stray = { .key.word = { 1, 2 } };
	struct tally_pool_slot slot = { .books.job = OTHER_JOB };
	struct tally_rank rank;
	struct dataplane *d;
	int ranks, slots;

	assert_int_equal(dataplane_replace(pin, 0, &pool, NULL, 0, &why), 0);
	d = node_open();
	borrow_slot(d, JOB, 4, 1);
	node_close(d);
	ranks = pinned("ranks");
	slots = pinned("pool");
	for (int i = 0; i < 3; i++)
		assert_int_equal(bpf_map_update_elem(ranks, &indexes[i], &stray, BPF_ANY), 0);
	assert_int_equal(bpf_map_update_elem(slots, &(__u32){ 3 }, &slot, BPF_ANY), 0);
	node_close(node_open());
	assert_int_equal(job_in_pool(3), 0);
	assert_int_equal(job_in_pool(0), JOB);
	for (int i = 1; i < 3; i++) {
		assert_int_equal(bpf_map_lookup_elem(ranks, &indexes[i], &rank), 0);
		assert_int_equal(rank.key.word[0], i == 1);
	}
	close(ranks);
	close(slots);
}

static void mode_is(enum dataplane_mode mode)
{
	struct dataplane *d = node_open();
	struct dataplane_port *ports;
	unsigned int count;

	assert_int_equal(dataplane_ports(d, &ports, &count, &why), 0);
	assert_int_equal(count, 1);
	assert_int_equal(ports[0].ifindex, port);
	assert_int_equal(ports[0].mode, mode);
	free(ports);
	assert_true(dataplane_is_attached(d, port));
	node_close(d);
	assert_true(!program_at_port() == (mode == DATAPLANE_TC));
	assert_true(has_clsact() == (mode == DATAPLANE_TC));
}

static int mode_set(enum dataplane_mode mode)
{
	struct dataplane_port p = { .ifindex = port, .name = "port0", .mode = mode };

	return dataplane_replace(pin, 0, NULL, &p, 1, &why);
}

/* From each to each other. */
static void a_port_gets_another_mode_and_a_sum_stays(void **state)
{
	static const enum dataplane_mode modes[] = {
		DATAPLANE_GENERIC, DATAPLANE_NATIVE, DATAPLANE_TC,	DATAPLANE_GENERIC,
		DATAPLANE_TC,	   DATAPLANE_NATIVE, DATAPLANE_GENERIC,
	};
	struct dataplane *d = node_open();
	struct frame out;
	struct sent sent;

	job_start(d, JOB, NULL, 0);
	node_close(d);
	message_run(contribution(.worker = 0, .value = 40));
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		assert_int_equal(mode_set(modes[i]), 0);
		mode_is(modes[i]);
		assert_int_equal(mode_set(DATAPLANE_AUTO), 0);
		mode_is(modes[i]);
	}
	assert_int_equal(frame_run(contribution(.worker = 1, .value = 2), &out), XDP_REDIRECT);
	frame_read(&out, &sent);
	assert_sum(&sent, 42);
}

/* As another node's filter would be. */
static void our_place_at_tc_is_taken(void)
{
	const struct bpf_insn pass[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int program = bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "pass", "GPL", pass, 2, NULL);
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)port, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = TALLY_UDP_PORT,
		    .priority = 1);

	assert_return_code(program, errno);
	assert_int_equal(bpf_tc_hook_create(&hook), 0);
	assert_int_equal(bpf_tc_attach(&hook, &options), 0);
	close(program);
}

static void a_mode_that_cannot_be_had_leaves_that_of_before(void **state)
{
	static const enum dataplane_mode modes[] = { DATAPLANE_NATIVE, DATAPLANE_GENERIC };

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		struct dataplane *d;

		assert_int_equal(mode_set(modes[i]), 0);
		our_place_at_tc_is_taken();
		assert_int_equal(mode_set(DATAPLANE_TC), -EBUSY);
		assert_int_equal(system("tc qdisc del dev port0 clsact"), 0);
		mode_is(modes[i]);
		d = node_open();
		assert_true(dataplane_is_current(d));
		node_close(d);
	}
	assert_int_equal(mode_set(DATAPLANE_TC), 0);
	mode_is(DATAPLANE_TC);
}

/* Nothing is begun that could not be ended: so nothing is taken for gone, or done by halves. */
static void without_files_a_node_stays_as_it_is(void **state)
{
	struct rlimit limit, few;
	struct dataplane *d;
	int next, r = -EMFILE;

	assert_int_equal(dataplane_claim(pin, &why), 0);
	assert_int_equal(mode_set(DATAPLANE_TC),
			 0); /* whose pins need most files to be looked at */
	d = node_open();
	next = dup(0);
	close(next);
	job_start(d, JOB, NULL, 0);
	assert_return_code(getrlimit(RLIMIT_NOFILE, &limit), errno);
	for (few = limit, few.rlim_cur = next + 1; few.rlim_cur < next + 300ul; few.rlim_cur += 7) {
		setrlimit(RLIMIT_NOFILE, &few);
		r = dataplane_replace(pin, 2 * SLOTS_OF_NODE, NULL, NULL, 0, &why);
		setrlimit(RLIMIT_NOFILE, &limit);
		if (r == 0)
			break;
		assert_int_equal(r, -EMFILE);
		assert_true(dataplane_is_attached(d, port));
		assert_true(dataplane_is_current(d));
		assert_int_equal(dataplane_check(d, &why), 0);
	}
	assert_int_equal(r, 0);
	few.rlim_cur = next + 1;
	setrlimit(RLIMIT_NOFILE, &few);
	r = dataplane_check(d, &why);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(r, -EMFILE);
	node_close(d);
	dataplane_unclaim(pin);
}

/* Pins a map like a node's constants in their place. */
static void constants_forge(const void *value, __u32 bytes)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "forged", 4, bytes, 1, NULL);
	char path[128];
	__u32 key = 0;

	snprintf(path, sizeof(path), "%s/constants", pin);
	assert_return_code(fd, errno);
	assert_return_code(bpf_map_update_elem(fd, &key, value, 0), errno);
	assert_return_code(unlink(path), errno);
	assert_return_code(bpf_obj_pin(fd, path), errno);
	close(fd);
}

static void assert_stale(const char *layout)
{
	assert_int_equal(dataplane_open(pin, &opened[0], &why), -ESTALE);
	assert_non_null(strstr(why.text, layout));
	assert_int_equal(dataplane_replace(pin, 0, NULL, NULL, 0, &why), -ESTALE);
}

static void a_node_of_another_layout_is_not_misread(void **state)
{
	struct {
		struct tally_constants c;
		char more[100];
	} later = { .c = constants_now() };
	struct dataplane *d;

	later.c.layout = 99;
	constants_forge(&later, sizeof(later));
	assert_stale("layout 99, and this");
	later.c.layout = TALLY_MAPS_LAYOUT;
	later.c.build++;
	constants_forge(&later, sizeof(later));
	d = node_open();
	assert_false(dataplane_is_current(d));
	node_close(d);
	/* the first version: actions of its outcomes, then a boot number */
	constants_forge("\2\2\2\2\1\1\1\1\1\1\1\1\1\1\1\1\4\3\4\4\4\2\2\2\4\1\1\4\2\1\7\7", 32);
	assert_stale("layout 1, and this");
	constants_forge("\2\2\2", 4);
	assert_stale("layout 1, and this");
	assert_int_equal(ports_attach(), -EEXIST);
	assert_int_equal(dataplane_claim(pin, &why), 0);
	assert_stale("layout 1, and this");
	assert_int_equal(ports_attach(), 0);
	node_close(node_open());
	dataplane_unclaim(pin);
}

/* As a process leaves a node that was killed while it made or removed the node. */
static void a_node_that_is_not_whole_goes_when_it_is_claimed(void **state)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/slots", pin);
	assert_return_code(unlink(path), errno);
	assert_int_equal(dataplane_open(pin, &opened[0], &why), -ENOENT);
	assert_non_null(strstr(why.text, "incomplete, slots"));
	assert_int_equal(ports_attach(), -EEXIST);
	assert_int_equal(dataplane_claim(pin, &why), 0);
	assert_int_equal(ports_attach(), 0);
	node_close(node_open());
	assert_int_equal(ports_attach(), -EEXIST); /* a whole one stays */
	dataplane_unclaim(pin);
}

/* A child that claims the node, says so and lives until it is told to end. */
struct claimer {
	pid_t pid;
	int until;
};

static struct claimer claimer_start(void)
{
	int said[2], until[2];
	struct claimer c;
	char byte = 0;

	assert_return_code(pipe(said), errno);
	assert_return_code(pipe(until), errno);
	c.pid = fork();
	assert_return_code(c.pid, errno);
	if (!c.pid) {
		close(until[1]);
		byte = dataplane_claim(pin, &why) == 0;
		if (write(said[1], &byte, 1) == 1 && read(until[0], &byte, 1) == 0)
			_exit(0);
		_exit(1);
	}
	close(until[0]);
	close(said[1]);
	c.until = until[1];
	assert_int_equal(read(said[0], &byte, 1), 1);
	assert_int_equal(byte, 1);
	close(said[0]);
	return c;
}

static void claimer_end(struct claimer c)
{
	close(c.until);
	assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
}

static void a_claimed_node_is_nobody_elses(void **state)
{
	struct claimer c = claimer_start();
	struct dataplane *d;
	char process[32];

	snprintf(process, sizeof(process), "process %d,", c.pid);
	assert_int_equal(dataplane_open(pin, &opened[0], &why), -EBUSY);
	assert_non_null(strstr(why.text, process));
	assert_int_equal(ports_attach(), -EBUSY);
	assert_int_equal(dataplane_replace(pin, 0, NULL, NULL, 0, &why), -EBUSY);
	assert_int_equal(dataplane_detach(pin, &why), -EBUSY);
	assert_int_equal(dataplane_claim(pin, &why), -EBUSY);
	assert_non_null(strstr(why.text, process));
	claimer_end(c);
	d = node_open();
	node_close(d);
	c = claimer_start();
	kill(c.pid, SIGKILL);
	claimer_end(c);
	d = node_open();
	node_close(d);
}

/* In a child: a claim lasts as long as its process. */
static void live_as_the_agent(void **state)
{
	struct dataplane *d, *second;

	assert_int_equal(dataplane_claim(pin, &why), 0);
	assert_int_equal(dataplane_claim(pin, &why), 0);
	d = node_open();
	job_start(d, JOB, NULL, 0);
	second = node_open();
	assert_int_equal(dataplane_replace(pin, 0, NULL, NULL, 0, &why), 0);
	node_close(second);
	node_close(d);
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_int_equal(dataplane_open(pin, &opened[0], &why), -ENOENT);
	assert_int_equal(ports_attach(), 0);
	assert_int_equal(ports_attach(), -EEXIST);
	d = node_open();
	assert_int_equal(dataplane_detach(pin, &why), 0);
	node_close(d);
}

static void the_agent_may_do_all_while_it_holds_its_node(void **state)
{
	struct stat s;
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_return_code(pid, errno);
	if (!pid) {
		const struct CMUnitTest life[] = { cmocka_unit_test(live_as_the_agent) };

		if (!freopen("/dev/null", "w", stdout))
			_exit(2);
		_exit(cmocka_run_group_tests_name("agent", life, NULL, NULL));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* a directory without pins, and a claim of nobody */
	assert_int_equal(dataplane_open(pin, &opened[0], &why), -ENOENT);
	assert_int_equal(dataplane_detach(pin, &why), 0);
	assert_int_equal(stat(pin, &s), -1);
	assert_int_equal(ports_attach(), 0);
}

#define fact(name) cmocka_unit_test_setup_teardown(name, node_attach, node_detach)
#define sharing(name) cmocka_unit_test_setup_teardown(name, share_setup, share_teardown)
#define by_tc(name) cmocka_unit_test_setup_teardown(name, tc_setup, tc_teardown)

/* All tests have one of their own. */
static bool namespace_enter(void)
{
	if (unshare(CLONE_NEWNET) == 0)
		return true;
	printf("1..1\nok 1 - node # SKIP no network namespace: %s\n", strerror(errno));
	return false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fact(each_port_of_a_job_has_a_row),
		fact(without_gates_a_job_comes_in_anywhere),
		fact(copies_are_counted_at_the_gate_of_the_port_they_leave_by),
		fact(gates_change_while_a_job_runs_and_no_count_is_lost),
		fact(a_job_without_gate_0_takes_nothing_from_others),
		fact(more_gates_than_a_node_may_have_are_read_and_go),
		fact(programs_are_replaced_where_a_copy_has_lost_its_interface),
		fact(copies_follow_their_neighbours),
		fact(a_bound_ranks_port_follows_a_worker_that_moves),
		fact(a_restricted_gate_asks_for_the_tenants_sources),
		fact(a_job_that_ends_leaves_its_counts_behind),
		fact(a_run_gets_what_was_anothers_when_programs_were_waited_for),
		fact(a_ring_moves_when_programs_were_waited_for),
		fact(what_a_job_counted_has_gone_when_programs_were_waited_for),
		fact(a_row_changes_hands_when_programs_were_waited_for),
		fact(what_a_process_that_died_left_in_rows_is_no_jobs),
		fact(jobs_that_go_or_lose_a_gate_wait_together),
		fact(jobs_that_swap_a_gate_for_another_wait_for_nobody),
		fact(a_new_epoch_counts_on_in_the_same_rows),
		fact(an_epoch_stays_when_the_next_one_finds_no_room),
		fact(all_rows_can_be_used_and_what_has_none_is_in_that_of_its_job),
		fact(ports_that_have_gone_make_room_and_their_counts_stay),
		fact(a_tenants_limits_are_those_that_were_given),
		fact(a_limit_that_stays_keeps_its_level),
		fact(sources_are_exactly_those_that_were_given_last),
		fact(sources_that_find_no_room_change_nothing),
		fact(a_trace_tells_what_came_in_and_what_became_of_it),
		fact(what_is_not_tallys_is_not_told),
		fact(one_packet_in_so_many_is_told),
		fact(events_without_room_are_lost_and_counted),
		fact(ports_are_told_as_they_are_attached),
		fact(new_programs_keep_a_sum_that_is_under_way),
		fact(a_pool_comes_with_new_programs_and_stays),
		fact(a_job_with_rank_keys_borrows_with_a_node_key),
		fact(a_job_that_ends_leaves_the_pool),
		fact(what_no_job_has_is_swept),
		fact(a_port_gets_another_mode_and_a_sum_stays),
		fact(a_mode_that_cannot_be_had_leaves_that_of_before),
		fact(without_files_a_node_stays_as_it_is),
		fact(a_node_of_another_layout_is_not_misread),
		fact(a_node_that_is_not_whole_goes_when_it_is_claimed),
		fact(a_claimed_node_is_nobody_elses),
		fact(the_agent_may_do_all_while_it_holds_its_node),
		sharing(the_other_program_sees_what_tally_passes_and_nothing_else),
		sharing(replacing_under_traffic_loses_no_frame_of_either),
		sharing(without_share_a_port_is_refused_and_left_as_it_was),
		sharing(a_port_shared_in_generic_mode_stays_generic),
		sharing(a_program_that_a_link_holds_is_named_and_left_alone),
		sharing(a_program_that_ours_cannot_call_is_left_alone),
		sharing(a_shared_port_comes_and_goes_with_a_replacement),
		sharing(from_another_namespace_a_shared_port_is_left_as_it_is),
		by_tc(tc_serves_where_xdp_is_held_and_says_why),
		by_tc(tc_serves_where_a_port_cannot_be_shared),
		by_tc(detach_takes_the_qdisc_along_that_attach_made),
		by_tc(a_qdisc_of_others_stays_and_so_does_one_that_others_use),
		by_tc(a_filter_that_was_taken_away_is_told_and_attached_anew),
		by_tc(another_node_on_the_same_port_is_refused),
		by_tc(replacing_by_tc_under_traffic_loses_no_frame),
		by_tc(from_another_namespace_a_port_by_tc_is_left_as_it_is),
	};

	skip_unless_permitted();
	if (!namespace_enter())
		return 0;
	return cmocka_run_group_tests_name("node", tests, bench_setup, NULL);
}
