// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a node below the root sends up, at a socket that knows nothing of Tally. Three network
 * namespaces; the node forwards, and its port to the root writes the checksums that are left to it,
 * as cards do:
 *
 *	sockets ── peer0 ══ port0 ── node ── port1 ══ peer1 ── socket
 *
 * The root's kernel drops a datagram with a wrong checksum, so what arrives has a right one.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum {
	RECEIVE_TIMEOUT_MS = 10000,
	RANKS = 2,
	FAMILIES = 2, /* IPv4, IPv6 */
};

#define PORT0_MAC "02:77:00:00:02:00"
#define PEER1_MAC "02:77:00:00:02:01"
#define VETH "numtxqueues 1 numrxqueues 1 type veth peer name"
#define QUEUES "numtxqueues 1 numrxqueues 1"

static int worker[FAMILIES][RANKS], root[FAMILIES]; /* sockets */
static bool left; /* do the workers leave checksums to whoever takes a frame out of the machine? */

/* --- three namespaces */

/* "%d" is this process, whose main thread is in the node's namespace. */
static const char worker_commands[] = "link add peer0 " VETH " port0 " QUEUES " netns %d\n"
				      "link set peer0 mtu 3500 up\n"
				      "addr add 10.77.1.0/32 dev peer0\n"
				      "addr add 10.77.1.1/32 dev peer0\n"
				      "addr add fd77::100/128 dev peer0 nodad\n"
				      "addr add fd77::101/128 dev peer0 nodad\n"
				      "route add " SERVICE_IP4 " dev peer0\n"
				      "route add " SERVICE_IP6 " dev peer0\n"
				      "neigh add " SERVICE_IP4 " lladdr " PORT0_MAC " dev peer0\n"
				      "neigh add " SERVICE_IP6 " lladdr " PORT0_MAC " dev peer0\n";

static const char root_commands[] = "link add peer1 " VETH " port1 " QUEUES " netns %d\n"
				    "link set peer1 mtu 3500 address " PEER1_MAC " up\n"
				    "addr add " SERVICE_IP4 "/32 dev peer1\n"
				    "addr add " SERVICE_IP6 "/128 dev peer1 nodad\n"
				    "route add 10.77.1.0/24 dev peer1\n";

static const char node_commands[] = "link set port0 mtu 3500 address " PORT0_MAC " up\n"
				    "link set port1 mtu 3500 up\n"
				    "route add 10.77.1.0/24 dev port0\n"
				    "route add " SERVICE_IP4 " dev port1\n"
				    "route add " SERVICE_IP6 " dev port1\n"
				    "neigh add " SERVICE_IP4 " lladdr " PEER1_MAC " dev port1\n"
				    "neigh add " SERVICE_IP6 " lladdr " PEER1_MAC " dev port1\n";

static int commands_run(const char *commands)
{
	FILE *ip = popen("ip -batch -", "w");

	if (!ip)
		return -errno;
	fprintf(ip, commands, getpid());
	return pclose(ip) ? -EIO : 0;
}

/* Connected to the service if `rank` is one of the job; otherwise the service. */
static int socket_open(bool ipv6, int rank)
{
	struct sockaddr_in to4 = { .sin_family = AF_INET,
				   .sin_port = htons(TALLY_UDP_PORT),
				   .sin_addr.s_addr = service_ip4() },
			   at4 = to4;
	struct sockaddr_in6 to6 = { .sin6_family = AF_INET6, .sin6_port = to4.sin_port }, at6;
	const struct sockaddr *to = ipv6 ? (void *)&to6 : (void *)&to4;
	const struct sockaddr *at = ipv6 ? (void *)&at6 : (void *)&at4;
	const socklen_t bytes = ipv6 ? sizeof(to6) : sizeof(to4);
	const int fd = socket(to->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	service_ip6(to6.sin6_addr.s6_addr);
	at6 = to6;
	if (rank != NOBODY) {
		at4.sin_addr.s_addr = worker_ip4(rank);
		worker_ip6(rank, at6.sin6_addr.s6_addr);
		at4.sin_port = at6.sin6_port = htons(UDP_PORT_OF_RANK_0 + rank);
	}
	if (fd < 0 || bind(fd, at, bytes) || (rank != NOBODY && connect(fd, to, bytes)))
		return -errno;
	return fd;
}

/* A thread of its own, since that is what is in a namespace. Its sockets keep the namespace. */
static void *worker_create(void *ret)
{
	int *r = ret;

	*r = unshare(CLONE_NEWNET) ? -errno : commands_run(worker_commands);
	if (*r == 0 && !left && system("ethtool -K peer0 tx off >/dev/null"))
		*r = -EIO;
	for (int ipv6 = 0; *r == 0 && ipv6 < FAMILIES; ipv6++)
		for (int rank = 0; *r == 0 && rank < RANKS; rank++) {
			worker[ipv6][rank] = socket_open(ipv6, rank);
			*r = worker[ipv6][rank] < 0 ? worker[ipv6][rank] : 0;
		}
	return NULL;
}

static void *root_create(void *ret)
{
	int *r = ret;

	*r = unshare(CLONE_NEWNET) ? -errno : commands_run(root_commands);
	for (int ipv6 = 0; *r == 0 && ipv6 < FAMILIES; ipv6++) {
		root[ipv6] = socket_open(ipv6, NOBODY);
		*r = root[ipv6] < 0 ? root[ipv6] : 0;
	}
	return NULL;
}

static int create(void *(*function)(void *ret))
{
	pthread_t thread;
	int r, ret;

	r = pthread_create(&thread, NULL, function, &ret);
	if (r)
		return -r;
	pthread_join(thread, NULL);
	return ret;
}

static int setting_put(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const int r = fd < 0 || write(fd, "1", 1) != 1 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return r;
}

static int node_create(void)
{
	int r = commands_run(node_commands);

	if (r == 0)
		r = setting_put("/proc/sys/net/ipv4/ip_forward");
	if (r == 0)
		r = setting_put("/proc/sys/net/ipv6/conf/all/forwarding");
	return r == 0 && system("ethtool -K port1 tx off >/dev/null") ? -EIO : r;
}

static int program_attach(struct node *node)
{
	const int ifindex = if_nametoindex("port0"), program = node_ingress(node);
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = 1, .priority = 1);
	int r;

	if (!node->by_tc)
		return bpf_xdp_attach(ifindex, program, XDP_FLAGS_DRV_MODE, NULL);
	r = bpf_tc_hook_create(&hook);
	return r < 0 ? r : bpf_tc_attach(&hook, &options);
}

static int bench_create(void **state)
{
	int r = unshare(CLONE_NEWNET) ? -errno : create(worker_create);

	if (r == 0)
		r = create(root_create);
	if (r == 0)
		r = node_create();
	if (r == 0)
		r = program_attach(*state);
	if (r < 0)
		print_error("# cannot set up the networks: %s\n", strerror(-r));
	return r;
}

static int bench_setup(void **state) { return node_setup(state) ?: bench_create(state); }

static int bench_setup_tc(void **state) { return node_setup_tc(state) ?: bench_create(state); }

static int bench_teardown(void **state)
{
	for (int ipv6 = 0; ipv6 < FAMILIES; ipv6++) {
		close(root[ipv6]);
		for (int rank = 0; rank < RANKS; rank++)
			close(worker[ipv6][rank]);
	}
	return node_teardown(state);
}

static struct node *bench;

static int bench_reset(void **state)
{
	bench = *state;
	node_reset(state);
	job_put(*state, JOB, inner_job());
	return 0;
}

/* --- messages */

static void send_message(struct message m)
{
	const __u32 at = frame_headers_bytes(m);
	struct frame frame;

	frame_write(m, &frame);
	jobs_follow(bench, &frame);
	assert_int_equal(send(worker[m.ipv6][m.worker], frame.data + at, frame.bytes - at, 0),
			 frame.bytes - at);
}

/* The sum of these workers of `m`'s chunk, `value` in each word's unit, is what arrives next. */
static void receive_sum(struct message m, struct tally_set set, __u8 blocks, __u64 value)
{
	struct pollfd ready = { .fd = root[m.ipv6], .events = POLLIN };
	struct sent got = { .ipv6 = m.ipv6 };
	struct iovec into[] = { { &got.tally, sizeof(got.tally) }, { got.word, sizeof(got.word) } };
	struct msghdr message = { .msg_iov = into, .msg_iovlen = 2 };

	if (poll(&ready, 1, RECEIVE_TIMEOUT_MS) != 1)
		fail_msg("nothing reached the root");
	assert_int_equal(recvmsg(ready.fd, &message, 0),
			 sizeof(got.tally) + blocks * TALLY_BLOCK_BYTES);
	got.set = tally_header_set(&got.tally);
	assert_int_equal(got.tally.kind, TALLY_CONTRIBUTION);
	assert_int_equal(tally_le32_get(got.tally.seq), m.seq);
	assert_true(tally_set_is_equal(&got.set, &set));
	assert_int_equal(got.tally.blocks, blocks);
	assert_sum(&got, value);
}

/* --- facts */

static const __u8 some_blocks[] = { 0, 1, 22, 50 };

#define each_chunk(m, i)                                                         \
	for (unsigned int i = 0; i < FAMILIES * sizeof(some_blocks); i++)        \
		if (m = contribution(.seq = i, .value = 5, .ipv6 = i % FAMILIES, \
				     .blocks = some_blocks[i / FAMILIES]),       \
		    true)

static void a_sum_arrives_at_the_root(void **state)
{
	struct message m;

	each_chunk(m, i)
	{
		for (m.worker = 0; m.worker < RANKS; m.worker++)
			send_message(m);
		receive_sum(m, tally_set_first(RANKS), m.blocks, 10);
	}
}

static void a_sum_that_is_wanted_again_arrives(void **state)
{
	struct message m;

	each_chunk(m, i)
	{
		for (m.worker = 0; m.worker < RANKS; m.worker++)
			send_message(m);
		receive_sum(m, tally_set_first(RANKS), m.blocks, 10);
		m.worker = 0;
		send_message(m);
		receive_sum(m, tally_set_first(RANKS), m.blocks, 10);
	}
}

/* In a frame that was longer, or as long. */
static void a_flushed_sum_arrives(void **state)
{
	struct message m;

	each_chunk(m, i)
	{
		m.worker = 1;
		send_message(m);
		m.flags = TALLY_FLUSH;
		m.blocks += i % 3;
		send_message(m);
		receive_sum(m, set_of(1), some_blocks[i / FAMILIES], 5);
	}
}

static void what_the_node_passes_on_arrives(void **state)
{
	struct message m;

	each_chunk(m, i)
	{
		m.worker = 1;
		m.flags = TALLY_FLUSH;
		send_message(m);
		receive_sum(m, set_of(1), m.blocks, 5);
	}
}

#define fact(name) cmocka_unit_test_setup(name, bench_reset)

int main(void)
{
	const struct CMUnitTest all[] = {
		fact(a_sum_arrives_at_the_root),
		fact(a_sum_that_is_wanted_again_arrives),
		fact(a_flushed_sum_arrives),
		fact(what_the_node_passes_on_arrives),
	};
	int failed = 0;

	skip_unless_permitted();
	if (unshare(CLONE_NEWNET)) {
		printf("1..1\nok 1 - onward # SKIP no network namespace: %s\n", strerror(errno));
		return 0;
	}
	for (int i = 0; i < 2; i++) {
		left = i;
		failed += cmocka_run_group_tests_name(left ? "onward, checksums left" : "onward",
						      all, bench_setup, bench_teardown);
		failed += cmocka_run_group_tests_name(left ? "onward by TC, checksums left"
							   : "onward by TC",
						      all, bench_setup_tc, bench_teardown);
	}
	return failed;
}
