// SPDX-License-Identifier: GPL-2.0-only
/*
 * As many jobs as a node may have, on 64 real ports: each is placed, written, and found by its
 * messages; one more is refused.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "agent/dataplane/dataplane.h"

enum {
	PORTS = 64,
	JOBS = TALLY_JOBS_MAX,
	TENANTS = 5,
	SLOTS_OF_NODE = 4 * JOBS,
};

static char pin[64];
static struct dataplane_port ports[PORTS];
static struct tables now; /* the mirror, as the agent has it */
static struct why why;

static int ports_make(void **state)
{
	FILE *ip;

	snprintf(pin, sizeof(pin), "/sys/fs/bpf/tally-limits-%d", getpid());
	if (unshare(CLONE_NEWNET) < 0)
		return -1;
	ip = popen("ip -batch -", "w");
	if (!ip)
		return -1;
	fprintf(ip, "link set lo up\n");
	for (int i = 0; i < PORTS; i++)
		fprintf(ip, "link add port%d up type veth peer name peer%d\n", i, i);
	if (pclose(ip))
		return -1;
	for (int i = 0; i < PORTS; i++) {
		snprintf(ports[i].name, sizeof(ports[i].name), "port%d", i);
		ports[i].ifindex = if_nametoindex(ports[i].name);
	}
	if (dataplane_attach(pin, SLOTS_OF_NODE, NULL, ports, PORTS, &why) < 0)
		fail_msg("%s", why.text);
	return 0;
}

static int ports_end(void **state)
{
	tables_close(&now);
	return dataplane_detach(pin, &why);
}

/* Two workers, behind two ports; a chunk at a time. */
static struct installation *job_plan(uint32_t id)
{
	static struct installation g;
	static struct run file;
	const struct installation_role role = { .root = true };
	struct sockaddr_in *service = (void *)&file.service;

	file = (struct run){ .job = id, .epoch = EPOCH, .window = 1, .payload_bytes = 1408 };
	file.workers = 2;
	*service = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = service_ip4() };
	for (int rank = 0; rank < 2; rank++) {
		struct sockaddr_in *worker = (void *)&file.worker[rank];

		*worker = (struct sockaddr_in){ .sin_family = AF_INET,
						.sin_port = htons(UDP_PORT_OF_RANK_0 + rank),
						.sin_addr.s_addr = worker_ip4(rank) };
	}
	assert_int_equal(installation_plan(&file, &role, &g, &why), 0);
	g.job.tenant = id % TENANTS;
	for (unsigned int i = 0; i < g.copies; i++) {
		const struct dataplane_port *p = &ports[(id + i) % PORTS];

		g.copy[i].hop = (struct hop){ .port = p->ifindex, .mtu = 1500 };
		snprintf(g.copy[i].hop.port_name, IF_NAMESIZE, "%s", p->name);
	}
	assert_int_equal(installation_address(&g, &why), 0);
	return &g;
}

static int job_add(struct dataplane *d, uint32_t id)
{
	_cleanup_(tables_job_close) struct tables_job j = { 0 };
	struct installation *g = job_plan(id);
	int r = tables_install(&now, g, NULL, 0, &j, &why);

	if (r == 0)
		r = dataplane_job_put(d, NULL, &j, g, &why);
	return r < 0 ? r : tables_put(&now, &j);
}

/* One contribution of rank 0, which came in at the loopback. */
static void contribute(uint32_t id)
{
	struct frame in, out;
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = in.data, .data_out = out.data,
		    .data_size_out = sizeof(out.data), .repeat = 1);
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/ingress", pin);
	fd = bpf_obj_get(path);
	frame_write(contribution(.worker = 0, .job = id), &in);
	run.data_size_in = in.bytes;
	assert_return_code(bpf_prog_test_run_opts(fd, &run), errno);
	assert_int_equal(run.retval, XDP_DROP);
	close(fd);
}

/* Each job counted one; how many rows of a job at a port there are. */
static unsigned int rows_check(struct dataplane *d)
{
	struct traffic_row *rows;
	unsigned int count, jobs = 0, of_ports = 0, at_ports = 0;

	assert_int_equal(dataplane_rows(d, &rows, &count, &why), 0);
	for (unsigned int i = 2; i < count; i++) {
		jobs += rows[i].job && !rows[i].ifindex &&
			rows[i].outcome[TALLY_ABSORBED].packet == 1;
		of_ports += rows[i].job && rows[i].ifindex;
		at_ports += !rows[i].job && !rows[i].again;
	}
	free(rows);
	assert_int_equal(jobs, JOBS);
	assert_int_equal(at_ports, PORTS);
	return of_ports;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void as_many_jobs_as_a_node_may_have_fit_on_64_ports(void **state)
{
	struct dataplane *d = NULL;
	const double began = seconds();
	const struct tables_job *j;
	double there;

	assert_int_equal(dataplane_open(pin, &d, &why), 0);
	assert_int_equal(dataplane_tables_read(d, &now, &why), 0);
	assert_int_equal(now.ports, PORTS);
	for (uint32_t id = 1; id <= JOBS; id++)
		if (job_add(d, id) < 0)
			fail_msg("%s", why.text);
	assert_int_equal(job_add(d, JOBS + 1), -ENOSPC);
	there = seconds();
	for (uint32_t id = 1; id <= JOBS; id++)
		contribute(id);
	assert_in_range(rows_check(d), TENANTS * TALLY_PORT_ROWS_OF_TENANT, TALLY_PORT_ROWS);
	while (now.jobs) {
		const uint32_t id = now.job[now.jobs - 1].id;

		assert_int_equal(tables_remove(&now, id, &j, &why), 0);
		assert_int_equal(dataplane_job_remove(d, j, &why), 0);
		tables_forget(&now, id);
	}
	dataplane_close(d);
	print_message("# %d jobs in %.1f s, out in %.1f s\n", JOBS, there - began,
		      seconds() - there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_jobs_as_a_node_may_have_fit_on_64_ports),
	};

	skip_unless_permitted();
	return cmocka_run_group_tests_name("limits", tests, ports_make, ports_end);
}
