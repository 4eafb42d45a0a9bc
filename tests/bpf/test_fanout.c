// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fanout runs on devmap egress only, where BPF_PROG_TEST_RUN does not reach. So here is a node
 * with two real ports, in a network namespace of this process:
 *
 *	socket ── peer0 ══ port0 ─┐
 *	                          node     each ══ a veth pair, ingress on the ports
 *	socket ── peer1 ══ port1 ─┘
 *
 * One queue everywhere, so that what was sent first arrives first.
 */
#include "harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

enum {
	PORTS = 2,
	RECEIVE_TIMEOUT_MS = 10000,
	CHUNKS = 2000,
	RING_BYTES = 1 << 16, /* a frame and its head, for any size of pages */
};

static struct port {
	__u32 ifindex;
	int socket; /* on its peer */
} ports[PORTS];

static bool by_tc[PORTS]; /* which of them XDP does not serve */

/* --- the bench */

static int ports_create(void)
{
	FILE *ip = popen("ip -batch -", "w");

	if (!ip)
		return -errno;
	for (int i = 0; i < PORTS; i++)
		fprintf(ip,
			"link add port%d numtxqueues 1 numrxqueues 1 type veth peer name peer%d "
			"numtxqueues 1 numrxqueues 1\n"
			"link set port%d mtu 3500 addrgenmode none up\n"
			"link set peer%d mtu 3500 addrgenmode none up\n",
			i, i, i, i);
	if (pclose(ip))
		return -EIO;
	/* what leaves has its checksum, so that it can be looked at */
	return system("ethtool -K port0 tx off >/dev/null && ethtool -K port1 tx off >/dev/null")
		       ? -EIO
		       : 0;
}

/* A program that does the same with every frame. */
static int program_load(enum xdp_action action)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = action },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "same", "GPL", code, 2, NULL);
}

/* A program beside ours that sends every frame on, through what of ours leads out of a port. */
static int forwarder_load(int group, __u32 key)
{
	const struct bpf_insn code[] = {
		{ .code = BPF_LD | BPF_IMM | BPF_DW,
		  .dst_reg = BPF_REG_1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = group },
		{ .code = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_2, .imm = (__s32)key },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_3, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_redirect_map },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_XDP, "forward", "GPL", code, 6, NULL);
}

static int socket_open(__u32 ifindex)
{
	const struct sockaddr_ll to = { .sll_family = AF_PACKET,
					.sll_protocol = htons(ETH_P_ALL),
					.sll_ifindex = ifindex };
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), yes = 1;

	if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof(yes)) ||
	    setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &yes, sizeof(yes)) ||
	    bind(fd, (const struct sockaddr *)&to, sizeof(to)))
		return -errno;
	return fd;
}

static int tc_attach(__u32 ifindex, int program)
{
	LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
	LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = 1, .priority = 1);
	int r = bpf_tc_hook_create(&hook);

	return r < 0 ? r : bpf_tc_attach(&hook, &options);
}

static int port_open(struct port *port, int number, const struct node *node, int pass)
{
	int xdp = bpf_program__fd(node->ingress->progs.tally_ingress);
	int tc = bpf_program__fd(node->ingress_tc->progs.tally_ingress_tc);
	char name[IFNAMSIZ];
	__u32 peer;
	int r;

	snprintf(name, sizeof(name), "port%d", number);
	port->ifindex = if_nametoindex(name);
	snprintf(name, sizeof(name), "peer%d", number);
	peer = if_nametoindex(name);
	r = by_tc[number] ? tc_attach(port->ifindex, tc)
			  : bpf_xdp_attach(port->ifindex, xdp, XDP_FLAGS_DRV_MODE, NULL);
	if (r < 0)
		return r;
	r = bpf_xdp_attach(peer, pass, XDP_FLAGS_DRV_MODE, NULL);
	if (r < 0)
		return r;
	port->socket = socket_open(peer);
	return port->socket < 0 ? port->socket : 0;
}

/* In a network of its own. */
static int bench_setup(void **state)
{
	struct node *node;
	int pass, r;

	r = unshare(CLONE_NEWNET) ? -errno : node_setup(state);
	if (r < 0)
		return r;
	node = *state;
	pass = program_load(XDP_PASS); /* a veth that is to receive what XDP sent needs one */
	r = pass < 0 ? -errno : ports_create();
	for (int i = 0; i < PORTS && r == 0; i++)
		r = port_open(&ports[i], i, node, pass);
	if (r < 0)
		print_error("# cannot set up the ports: %s\n", strerror(-r));
	return r;
}

static int bench_setup_tc(void **state)
{
	by_tc[0] = by_tc[1] = true;
	return bench_setup(state);
}

static int bench_setup_mixed(void **state)
{
	by_tc[0] = true;
	by_tc[1] = false;
	return bench_setup(state);
}

static int bench_teardown(void **state)
{
	for (int i = 0; i < PORTS; i++)
		close(ports[i].socket);
	return node_teardown(state);
}

/* Also forgets what a failed test left unread. */
static int bench_reset(void **state)
{
	struct frame unread;

	node_reset(state);
	for (int i = 0; i < PORTS; i++) {
		at_port_put(*state, ports[i].ifindex);
		while (recv(ports[i].socket, unread.data, sizeof(unread.data), MSG_DONTWAIT) > 0)
			;
	}
	return 0;
}

/* --- frames over the wire */

static void send_frame(int port, const struct frame *frame)
{
	assert_int_equal(send(ports[port].socket, frame->data, frame->bytes, 0), frame->bytes);
}

static void send_message(int port, struct message m)
{
	struct frame frame;

	frame_write(m, &frame);
	send_frame(port, &frame);
}

/* The kernel hands a frame's tag over beside it: put it back where it was. */
static void untake_tag(struct frame *frame, struct msghdr *message)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(message);
	struct tpacket_auxdata aux;
	__be16 tag[2];

	if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
		return;
	memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	if (!(aux.tp_status & TP_STATUS_VLAN_VALID))
		return;
	tag[0] = htons(aux.tp_vlan_tpid);
	tag[1] = htons(aux.tp_vlan_tci);
	memmove(frame->data + 12 + sizeof(tag), frame->data + 12, frame->bytes - 12);
	memcpy(frame->data + 12, tag, sizeof(tag));
	frame->bytes += sizeof(tag);
}

/* As a program on this machine sends it: the checksum is left to whoever takes the frame out of it.
 */
static void send_unsummed(int port, struct message m)
{
	const int yes = 1, no = 0, udp_at = frame_headers_bytes(m) - sizeof(struct udphdr);
	struct {
		struct virtio_net_hdr head;
		__u8 data[FRAME_BYTES_MAX];
	}
	__attribute__((packed)) out = { .head = { .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
						  .csum_start = udp_at,
						  .csum_offset = offsetof(struct udphdr, check) } };
	struct frame frame;
	__u16 check;

	frame_write(m, &frame);
	check = htons(frame_pseudo_sum(&frame, udp_at, m.ipv6));
	memcpy(out.data, frame.data, frame.bytes);
	memcpy(out.data + udp_at + offsetof(struct udphdr, check), &check, sizeof(check));
	assert_return_code(
		setsockopt(ports[port].socket, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)),
		errno);
	assert_return_code(send(ports[port].socket, &out, sizeof(out.head) + frame.bytes, 0),
			   errno);
	assert_return_code(
		setsockopt(ports[port].socket, SOL_PACKET, PACKET_VNET_HDR, &no, sizeof(no)),
		errno);
}

/* As a card may hand it over: Ethernet in one buffer, all else in pages (those of a ring of ours).
 */
static void send_in_pages(int port, struct message m)
{
	const struct tpacket_req ring = { RING_BYTES, 1, RING_BYTES, 1 };
	const int version = TPACKET_V2, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	struct sockaddr_ll to;
	socklen_t length = sizeof(to);
	struct tpacket2_hdr *head;
	struct frame frame;

	frame_write(m, &frame);
	if (fd < 0) {
		fail_msg("no socket: %s", strerror(errno));
		return;
	}
	assert_int_equal(getsockname(ports[port].socket, (struct sockaddr *)&to, &length), 0);
	to.sll_protocol = 0; /* it only sends */
	assert_int_equal(bind(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)), 0);
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_TX_RING, &ring, sizeof(ring)), 0);
	head = mmap(NULL, RING_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(head != MAP_FAILED);
	memcpy((__u8 *)head + TPACKET2_HDRLEN - sizeof(to), frame.data, frame.bytes);
	head->tp_len = frame.bytes;
	head->tp_status = TP_STATUS_SEND_REQUEST;
	assert_int_equal(send(fd, NULL, 0, 0), frame.bytes);
	munmap(head, RING_BYTES);
	close(fd);
}

/* The next frame that arrives behind that port; fails when none does. */
static void receive_frame(int port, struct frame *ret)
{
	struct pollfd ready = { .fd = ports[port].socket, .events = POLLIN };
	char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec into = { ret->data, sizeof(ret->data) - sizeof(struct vlan_tag) };
	struct msghdr message = { .msg_iov = &into,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	ssize_t bytes;

	if (poll(&ready, 1, RECEIVE_TIMEOUT_MS) != 1)
		fail_msg("nothing arrived behind port%d", port);
	bytes = recvmsg(ready.fd, &message, 0);
	assert_return_code(bytes, errno);
	ret->bytes = bytes;
	untake_tag(ret, &message);
}

static void receive(int port, struct sent *ret)
{
	struct frame frame;

	receive_frame(port, &frame);
	frame_read(&frame, ret);
}

/* --- who is where */

static struct tally_child child_of(int rank, int port, bool ipv6)
{
	struct tally_child child = { .below = set_of(rank),
				     .udp_port = htons(UDP_PORT_OF_RANK_0 + rank),
				     .port_mac = { 0x02, 0x77, 0, 0, 2, port },
				     .ipv6 = ipv6,
				     .row = row_of_job(JOB) };

	worker_mac(rank, child.mac);
	if (ipv6)
		worker_ip6(rank, child.ip6);
	else
		child.ip4 = worker_ip4(rank);
	return child;
}

/* Rank `rank` of the job is the `index`-th behind that port. */
static void place(struct node *node, __u32 job, int rank, int port, __u32 index, bool ipv6)
{
	const struct tally_child_key key = { job, ports[port].ifindex, index };

	child_put(node, key, child_of(rank, port, ipv6));
	group_put(node, job - JOB, rank, ports[port].ifindex);
}

/* Four workers: rank 0 behind port 0, the others behind port 1. */
static void place_four(struct node *node, __u32 job, bool ipv6)
{
	job_put(node, job,
		root_job(.everyone = { { 0xf } }, .slot_base = (job - JOB) * SLOTS_OF_JOB,
			 .group = job - JOB, .ipv6 = ipv6));
	for (int rank = 0; rank < 4; rank++)
		place(node, job, rank, rank > 0, rank ? rank - 1 : 0, ipv6);
}

/* The same four, in a job with rank keys. */
static void place_four_keyed(struct node *node, bool ipv6)
{
	job_put_keyed(node, JOB, root_job(.everyone = { { 0xf } }, .ipv6 = ipv6));
	for (int rank = 0; rank < 4; rank++) {
		const struct tally_child_key key = { JOB, ports[rank > 0].ifindex,
						     rank ? rank - 1 : 0 };
		struct tally_child child = child_of(rank, rank > 0, ipv6);

		child.keyed = 1;
		child.key = tally_rank_index(0, rank);
		child_put(node, key, child);
		group_put(node, 0, rank, ports[rank > 0].ifindex);
	}
}

/* From port 0 with one port, all four contribute. */
static void four_contribute(struct message m)
{
	bool keyed = m.key;

	for (m.worker = 0; m.worker < 4; m.worker++) {
		m.key = keyed ? m.worker + 1 : 0;
		send_message(m.worker > 0, m);
	}
}

static void assert_addressed(const struct sent *copy, int rank, int port)
{
	const struct tally_child child = child_of(rank, port, copy->ipv6);
	__u8 service[16];

	service_ip6(service);
	assert_memory_equal(copy->eth.h_dest, child.mac, ETH_ALEN);
	assert_memory_equal(copy->eth.h_source, child.port_mac, ETH_ALEN);
	assert_int_equal(copy->udp.dest, child.udp_port);
	assert_int_equal(ntohs(copy->udp.source), TALLY_UDP_PORT);
	if (copy->ipv6) {
		assert_memory_equal(&copy->ip6.daddr, child.ip6, 16);
		assert_memory_equal(&copy->ip6.saddr, service, 16);
	} else {
		assert_int_equal(copy->ip4.daddr, child.ip4);
		assert_int_equal(copy->ip4.saddr, service_ip4());
	}
}

/* Each of the four gets one copy of this message; `payload_for` gets its payload. */
static void four_receive(struct message m, enum tally_kind kind, int payload_for, __u64 sum)
{
	struct tally_set seen = { { 0 } };

	for (int i = 0; i < 4; i++) {
		struct sent copy;
		bool payload;
		int rank;

		receive(i > 0, &copy);
		rank = ntohs(copy.udp.dest) - UDP_PORT_OF_RANK_0;
		assert_in_range(rank, 0, 3);
		assert_false(tally_set_has(&seen, rank));
		tally_set_add(&seen, rank);
		payload = payload_for == TALLY_EVERYONE || payload_for == rank;
		assert_int_equal(rank > 0, i > 0);
		assert_int_equal(tally_le32_get(copy.tally.job), m.job);
		assert_int_equal(tally_le32_get(copy.tally.seq), m.seq);
		assert_int_equal(copy.tally.kind, kind);
		assert_int_equal(copy.ipv6, m.ipv6);
		assert_int_equal(copy.tagged, !!m.vlan);
		assert_int_equal(copy.key, m.key ? rank + 1 : 0);
		assert_addressed(&copy, rank, rank > 0);
		assert_int_equal(copy.tally.blocks, payload ? m.blocks : 0);
		if (kind == TALLY_RESULT) {
			assert_int_equal(copy.set.word[0], 0xf);
			assert_int_equal(copy.set.word[1], m.flags & TALLY_LARGE ? 1 << 6 : 0);
			assert_int_equal(tally_le64_get(copy.tally.check), check_of(sum, m.blocks));
		}
		assert_sum(&copy, sum);
	}
}

/* --- facts */

static void each_child_gets_one_copy_with_its_address(void **state)
{
	struct message m = contribution(.value = 5, .blocks = 22);

	place_four(*state, JOB, false);
	four_contribute(m);
	four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
}

static void each_child_gets_one_copy_over_ipv6(void **state)
{
	place_four(*state, JOB, true);
	for (__u32 seq = 0; seq < 200; seq++) {
		struct message m = contribution(.seq = seq, .value = 0x123456789abcdefULL * seq,
						.blocks = seq % TALLY_BLOCKS_MAX, .ipv6 = true);

		four_contribute(m);
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 4 * m.value);
	}
}

static __u64 bytes_since(const struct counts *before, const struct counts *after,
			 enum tally_outcome outcome)
{
	return after->of[outcome].byte - before->of[outcome].byte;
}

/* Wherever the kernel keeps it meanwhile, it counts. */
static void the_last_ones_tag_stays_on_all_copies(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct message m = contribution(.seq = ipv6, .value = 5, .blocks = 22, .ipv6 = ipv6,
						.vlan = ETH_P_8021Q);
		struct counts before = counts_read(*state), after;
		struct frame frame;

		place_four(*state, JOB, ipv6);
		four_contribute(m);
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
		after = counts_read(*state);
		frame_write(m, &frame);
		assert_int_equal(bytes_since(&before, &after, TALLY_COMPLETED), frame.bytes);
		assert_int_equal(bytes_since(&before, &after, TALLY_FANNED_OUT), 4 * frame.bytes);
	}
}

/* One tag is ours to see, two are somebody's who must not come in by the inner one. */
static void a_frame_with_two_tags_is_not_tallys(void **state)
{
	const struct message m = contribution(.worker = 0, .vlan = ETH_P_8021Q);
	struct counts before = counts_read(*state), after;
	const __u32 macs = 2 * ETH_ALEN;
	struct frame frame;
	struct sent copy;

	place_four(*state, JOB, false);
	frame_write(m, &frame);
	memmove(frame.data + macs + sizeof(struct vlan_tag), frame.data + macs, frame.bytes - macs);
	frame.bytes += sizeof(struct vlan_tag);
	send_frame(0, &frame);
	send_message(0,
		     contribution(.set = { { 0xf } })); /* tells that the frame before is through */
	receive(0, &copy);
	after = counts_read(*state);
	/* The kernel may have said something of its own meanwhile. */
	assert_true(bytes_since(&before, &after, TALLY_FOREIGN) >= frame.bytes);
	assert_int_equal(bytes_since(&before, &after, TALLY_ABSORBED), 0);
}

/* Wherever the kernel keeps it meanwhile. */
static void a_tag_of_802_1ad_is_no_sources_vlan(void **state)
{
	const struct tally_source_key from_vlan_5 = { .bits = TALLY_SOURCE_BITS,
						      .ifindex = htonl(ports[0].ifindex),
						      .vlan = htons(5) };
	struct message m = contribution(.set = { { 0xf } }, .vlan = ETH_P_8021AD, .vlan_id = 5);
	struct counts before = counts_read(*state), after;
	struct sent copy;

	place_four(*state, JOB, false);
	gate_put(*state, JOB, ports[0].ifindex,
		 (struct tally_gate){ .row = row_of_job(JOB), .restricted = 1 });
	source_put(*state, from_vlan_5);
	send_message(0, m);
	m.vlan = ETH_P_8021Q;
	m.seq = 1;
	send_message(0, m);
	receive(0, &copy);
	assert_int_equal(tally_le32_get(copy.tally.seq), 1);
	after = counts_read(*state);
	assert_int_equal(after.of[TALLY_OTHER_SOURCE].packet - before.of[TALLY_OTHER_SOURCE].packet,
			 1);
}

static void who_is_not_the_recipient_gets_no_payload(void **state)
{
	__u32 seq = 0;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		place_four(*state, JOB, ipv6);
		for (int to = 0; to < 4; to++, seq++) {
			struct message m = contribution(.seq = seq, .recipient = to, .value = 5,
							.blocks = 22, .ipv6 = ipv6);

			four_contribute(m);
			four_receive(m, TALLY_RESULT, to, 20);
		}
	}
}

static void a_node_gets_the_payload_for_those_below_it(void **state)
{
	struct tally_child node = child_of(1, 1, false);

	job_put(*state, JOB, root_job(.everyone = { { 0x7 } }));
	place(*state, JOB, 0, 0, 0, false);
	group_put(*state, 0, 1, ports[1].ifindex);
	node.below = (struct tally_set){ { 0x6 } };
	child_put(*state, (struct tally_child_key){ JOB, ports[1].ifindex, 0 }, node);

	for (int to = 0; to < 3; to++) {
		struct sent copy[PORTS];

		send_message(0, contribution(.set = { { 0x7 } }, .seq = to, .recipient = to));
		for (int port = 0; port < PORTS; port++) {
			receive(port, &copy[port]);
			assert_int_equal(tally_le32_get(copy[port].tally.seq), to);
		}
		assert_int_equal(copy[0].tally.blocks, to == 0);
		assert_int_equal(copy[1].tally.blocks, to != 0);
	}
}

/* The copy for rank 1, at that UDP port, of a result for this recipient. */
static struct udphdr copy_at(void **state, bool ipv6, __u16 recipient, __be16 udp_port)
{
	struct tally_child child = child_of(1, 1, ipv6);
	struct sent copy;

	bench_reset(state);
	job_put(*state, JOB, root_job(.ipv6 = ipv6));
	child.udp_port = udp_port;
	child_put(*state, (struct tally_child_key){ JOB, ports[1].ifindex, 0 }, child);
	group_put(*state, 0, 1, ports[1].ifindex);
	send_message(0, contribution(.set = { { 0x3 } }, .value = 5, .blocks = 22,
				     .recipient = recipient, .ipv6 = ipv6));
	receive(1, &copy);
	assert_int_equal(copy.udp.dest, udp_port);
	assert_int_equal(copy.tally.blocks, recipient ? 22 : 0);
	return copy.udp;
}

/* In UDP, a checksum of 0 says that there is none. */
static void a_copys_checksum_of_0_is_sent_as_the_other_zero(void **state)
{
	const __u16 recipients[] = { TALLY_EVERYONE, 0 };

	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		for (int i = 0; i < 2; i++) {
			struct udphdr udp = copy_at(state, ipv6, recipients[i], htons(1));

			udp = copy_at(state, ipv6, recipients[i], sum_add(udp.dest, udp.check));
			assert_int_equal(udp.check, 0xffff);
		}
}

/* Who receives adds up the whole datagram: frame_read() does. */
static void a_checksum_that_the_sender_left_to_others_is_right_in_all_copies(void **state)
{
	__u32 seq = 0;

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		place_four(*state, JOB, ipv6);
		for (int to = 0; to <= 4; to++, seq++) {
			struct message m = contribution(.seq = seq, .value = 5, .blocks = 22,
							.recipient = to < 4 ? to : TALLY_EVERYONE,
							.ipv6 = ipv6);
			struct sent answer;

			for (m.worker = 0; m.worker < 4; m.worker++)
				send_unsummed(m.worker > 0, m);
			four_receive(m, TALLY_RESULT, m.recipient, 20);
			m.worker = 0;
			send_unsummed(0, m);
			receive(0, &answer);
			assert_int_equal(answer.tally.kind, TALLY_RESULT);
		}
	}
}

static void a_frame_in_pages_is_summed_to_the_last_word(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct message m = contribution(.seq = ipv6, .value = 5, .blocks = 50,
						.ipv6 = ipv6);

		place_four(*state, JOB, ipv6);
		for (m.worker = 0; m.worker < 4; m.worker++)
			send_in_pages(m.worker > 0, m);
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
	}
}

/* Rank 70, whom no copy is for, comes along with rank 3. */
static void four_and_70_contribute(struct node *node, struct message m,
				   void (*send)(int port, struct message m))
{
	place_four(node, JOB, m.ipv6);
	job_put(node, JOB, root_job(.everyone = { { 0xf, 1 << 6 } }, .ipv6 = m.ipv6));
	for (m.worker = 0; m.worker < 4; m.worker++) {
		m.set = m.worker == 3 ? set_of(70) : (struct tally_set){ { 0 } };
		send(m.worker > 0, m);
	}
}

static void copies_of_a_large_job_have_its_header(void **state)
{
	void (*const send[])(int port, struct message m) = { send_message, send_unsummed,
							     send_in_pages };
	__u32 seq = 0;

	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		for (int way = 0; way < 3; way++)
			for (int to = 0; to <= 4; to++, seq++) {
				__u16 recipient = to < 4 ? to : TALLY_EVERYONE;
				struct message m = contribution(.flags = TALLY_LARGE, .seq = seq,
								.value = 5,
								.blocks = to % 2 ? 50 : 3,
								.recipient = recipient,
								.ipv6 = ipv6);

				four_and_70_contribute(*state, m, send[way]);
				four_receive(m, TALLY_RESULT, recipient, 20);
			}
}

/* With payload and without, results and asks, over both families; checksums are right. */
static void each_copy_is_made_with_the_key_of_its_child(void **state)
{
	struct message m = contribution(.value = 5, .blocks = 22, .key = 1);

	for (m.ipv6 = false;; m.ipv6 = true) {
		place_four_keyed(*state, m.ipv6);
		four_contribute(m);
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
		m.seq++;
		m.recipient = 2;
		four_contribute(m);
		four_receive(m, TALLY_RESULT, 2, 20);
		m.seq++;
		m.worker = 0;
		m.flags = TALLY_FLUSH;
		send_message(0, m);
		four_receive(m, TALLY_ASK, NOBODY, 5);
		if (m.ipv6)
			break;
		m = contribution(.value = 5, .blocks = 22, .key = 1, .seq = 3);
	}
}

static void an_ask_reaches_every_child(void **state)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct message m = contribution(.worker = 2, .seq = ipv6, .blocks = 7, .ipv6 = ipv6,
						.flags = TALLY_FLUSH);

		place_four(*state, JOB, ipv6);
		send_message(1, m);
		four_receive(m, TALLY_ASK, NOBODY, 0);
	}
}

static void children_behind_one_port_take_turns_for_2000_chunks(void **state)
{
	struct counts before = counts_read(*state), after;
	struct counts row_before = row_read(*state, row_of_job(JOB)), row;

	place_four(*state, JOB, false);
	for (__u32 seq = 0; seq < CHUNKS; seq++) {
		struct message m = contribution(.seq = seq, .value = seq);

		four_contribute(m);
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 4ULL * seq);
	}
	after = counts_read(*state);
	assert_int_equal(after.of[TALLY_COMPLETED].packet - before.of[TALLY_COMPLETED].packet,
			 CHUNKS);
	assert_int_equal(after.of[TALLY_FANNED_OUT].packet - before.of[TALLY_FANNED_OUT].packet,
			 4 * CHUNKS);
	assert_int_equal(after.of[TALLY_NO_CHILD].packet, before.of[TALLY_NO_CHILD].packet);
	row = row_read(*state, row_of_job(JOB));
	assert_int_equal(row.of[TALLY_FANNED_OUT].packet - row_before.of[TALLY_FANNED_OUT].packet,
			 4 * CHUNKS);
}

static void the_same_result_goes_round_again_when_it_is_wanted(void **state)
{
	struct message m = contribution(.value = 5);

	place_four(*state, JOB, false);
	four_contribute(m);
	four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
	for (int again = 0; again < 3; again++) {
		send_message(1, contribution(.set = { { 0x6 } }));
		four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
	}
}

static void two_jobs_behind_one_port_do_not_mix(void **state)
{
	place_four(*state, JOB, false);
	place_four(*state, OTHER_JOB, false);
	for (__u32 seq = 0; seq < 100; seq++) {
		struct message mine = contribution(.seq = seq, .value = seq);
		struct message other = contribution(.job = OTHER_JOB, .seq = seq, .value = 9);

		four_contribute(mine);
		four_contribute(other);
		four_receive(mine, TALLY_RESULT, TALLY_EVERYONE, 4ULL * seq);
		four_receive(other, TALLY_RESULT, TALLY_EVERYONE, 36);
	}
}

/* `first` leaves without its last copy, as when one was lost; the turns of `then` are whole. */
static void show_new_turns(void **state, struct message first, struct message then)
{
	struct sent copy;

	bench_reset(state);
	place_four(*state, JOB, false);
	place_four(*state, OTHER_JOB, false);
	group_remove(*state, 0, 3);
	send_message(0, first);
	for (int rank = 0; rank < 3; rank++) {
		receive(rank > 0, &copy);
		assert_addressed(&copy, rank, rank > 0);
	}
	place(*state, JOB, 3, 1, 2, false);
	job_put(*state, JOB, root_job(.everyone = { { 0xf } }, .epoch = then.epoch));
	send_message(0, then);
	four_receive(then, TALLY_RESULT, TALLY_EVERYONE, 0);
}

static void a_lost_copy_does_not_shift_the_next_message(void **state)
{
	const struct message whole = contribution(.set = { { 0xf } });

	show_new_turns(state, whole, contribution(.set = { { 0xf } }, .seq = 1));
	show_new_turns(state, whole, contribution(.set = { { 0xf } }, .job = OTHER_JOB));
	show_new_turns(state, whole, contribution(.set = { { 0xf } }, .epoch = EPOCH + 1));
	show_new_turns(state, contribution(.worker = 2, .flags = TALLY_FLUSH),
		       contribution(.set = { { 0xb } }));
}

/* An inner node, whose root's results may come with a UDP checksum. */
static void results_from_above_go_down_to_every_child(void **state)
{
	for (int i = 0; i < 4; i++) {
		const bool ipv6 = i & 1, unsummed = i & 2 && by_tc[0]; /* XDP cannot tell */
		struct message m = result(.set = { { 0xf } }, .seq = ipv6, .value = 20, .blocks = 9,
					  .ipv6 = ipv6);

		place_four(*state, JOB, ipv6);
		job_put(*state, JOB, inner_job(.ipv6 = ipv6));
		m.worker = NOBODY;
		if (unsummed)
			send_unsummed(0, m);
		else
			send_message(0, m);
		for (int rank = 0; rank < 4; rank++) {
			struct sent copy;

			receive(rank > 0, &copy);
			assert_int_equal(copy.tally.kind, TALLY_RESULT);
			assert_sum(&copy, 20);
		}
	}
}

static __u64 packets_since(const struct counts *before, struct node *node,
			   enum tally_outcome outcome)
{
	return counts_read(node).of[outcome].packet - before->of[outcome].packet;
}

/* The child behind port 1 sends every copy back: a node that names this one as its child. */
static void nodes_that_name_each_other_send_nothing_round_for_ever(void **state)
{
	const int back = program_load(XDP_TX), pass = program_load(XDP_PASS);
	const __u32 peer = if_nametoindex("peer1");

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		struct message m = result(.set = { { 0xf } }, .ipv6 = ipv6, .ttl = 64);
		struct tally_child child = child_of(1, 1, ipv6);
		struct counts before = counts_read(*state);
		struct frame frame;

		bench_reset(state);
		job_put(*state, JOB, inner_job());
		child.udp_port = htons(TALLY_UDP_PORT);
		child_put(*state, (struct tally_child_key){ JOB, ports[1].ifindex, 0 }, child);
		group_put(*state, 0, 0, ports[1].ifindex);
		assert_return_code(bpf_xdp_attach(peer, back, XDP_FLAGS_DRV_MODE, NULL), errno);
		frame_write(m, &frame);
		jobs_follow(*state, &frame);
		send_frame(0, &frame);
		for (time_t until = time(NULL) + RECEIVE_TIMEOUT_MS / 1000;
		     !packets_since(&before, *state, TALLY_EXPIRED) && time(NULL) < until;)
			sched_yield();
		assert_return_code(bpf_xdp_attach(peer, pass, XDP_FLAGS_DRV_MODE, NULL), errno);
		assert_int_equal(packets_since(&before, *state, TALLY_SENT_DOWN), TALLY_LEVELS_MAX);
		assert_int_equal(packets_since(&before, *state, TALLY_EXPIRED), 1);
	}
	close(back);
	close(pass);
}

/* A result for a job whose children are as `spoil` left them; then one that arrives. */
static void show_no_child(void **state, void (*spoil)(struct node *node))
{
	struct message m = contribution(.job = OTHER_JOB, .value = 5);
	struct counts before = counts_read(*state), after;

	bench_reset(state);
	place_four(*state, OTHER_JOB, false);
	spoil(*state);
	send_message(0, contribution(.set = { { 0x3 } }));
	for (int i = 0; i < PORTS; i++)
		at_port_put(*state, ports[i].ifindex);
	four_contribute(m);
	four_receive(m, TALLY_RESULT, TALLY_EVERYONE, 20);
	after = counts_read(*state);
	assert_int_equal(after.of[TALLY_NO_CHILD].packet - before.of[TALLY_NO_CHILD].packet, 1);
	assert_int_equal(after.of[TALLY_FANNED_OUT].packet - before.of[TALLY_FANNED_OUT].packet, 4);
}

static void forget_children(struct node *node) { group_put(node, 0, 0, ports[1].ifindex); }

static void mix_families(struct node *node) { place(node, JOB, 0, 1, 0, true); }

static void count_from_one(struct node *node) { place(node, JOB, 0, 1, 1, false); }

static void forget_cursor(struct node *node)
{
	place(node, JOB, 0, 1, 0, false);
	bpf_map_delete_elem(bpf_map__fd(node->ingress->maps.at_ports), &ports[1].ifindex);
}

static void a_copy_for_no_child_is_dropped_and_counted(void **state)
{
	show_no_child(state, forget_children);
	show_no_child(state, count_from_one);
}

static void a_copy_of_the_other_family_is_dropped_and_counted(void **state)
{
	show_no_child(state, mix_families);
}

/*
 * The kernel sends in one batch what leaves a port, and the program of the first frame gets all of
 * them: also what another program has sent on.
 */
static void what_is_no_copy_of_ours_leaves_as_it_came(void **state)
{
	const struct message m[] = {
		contribution(.worker = 0, .blocks = 9, .value = 5),
		repair(.set = { { 0xf } }, .ipv6 = true),
		result(.job = OTHER_JOB, .set = { { 0xf } }),
		contribution(.version = TALLY_VERSION + 1),
		contribution(.magic = 0),
	};
	const enum tally_outcome outcome[] = { TALLY_PASSED_UP, TALLY_PASSED_UP, TALLY_UNKNOWN_JOB,
					       TALLY_OTHER_VERSION, TALLY_FOREIGN };
	struct node *node = *state;
	const int ours = node_ingress(node), other = forwarder_load(node->group[0], 1);

	place_four(node, JOB, false);
	gate_remove(node, OTHER_JOB, 0);
	assert_return_code(bpf_xdp_attach(ports[0].ifindex, other, XDP_FLAGS_DRV_MODE, NULL),
			   errno);
	for (size_t i = 0; i < sizeof(m) / sizeof(*m); i++) {
		struct counts before = counts_read(node);
		struct frame sent, got;

		frame_write(m[i], &sent);
		send_frame(0, &sent);
		receive_frame(1, &got);
		assert_int_equal(got.bytes, sent.bytes);
		assert_memory_equal(got.data, sent.data, sent.bytes);
		assert_int_equal(packets_since(&before, node, outcome[i]), 1);
	}
	assert_return_code(bpf_xdp_attach(ports[0].ifindex, ours, XDP_FLAGS_DRV_MODE, NULL), errno);
	close(other);
}

static void a_port_without_cursor_is_a_counted_fault(void **state)
{
	struct counts before = counts_read(*state), after;
	struct message m = contribution(.job = OTHER_JOB, .blocks = 1, .worker = 0);
	struct sent copy;

	/* Port 0 has both, and tells that the frame before has left. */
	forget_cursor(*state);
	place(*state, OTHER_JOB, 0, 0, 0, false);
	send_message(0, contribution(.set = { { 0x3 } }));
	m.set = (struct tally_set){ { 0x3 } };
	send_message(0, m);
	receive(0, &copy);
	assert_int_equal(tally_le32_get(copy.tally.job), OTHER_JOB);
	after = counts_read(*state);
	assert_int_equal(after.of[TALLY_NO_CHILD].packet - before.of[TALLY_NO_CHILD].packet, 1);
	assert_int_equal(after.of[TALLY_FANNED_OUT].packet - before.of[TALLY_FANNED_OUT].packet, 1);
}

static void an_answer_leaves_by_the_port_it_was_asked_at(void **state)
{
	struct sent copy;

	place_four(*state, JOB, false);
	send_message(0, contribution(.set = { { 0xf } }, .value = 20));
	four_receive(contribution(), TALLY_RESULT, TALLY_EVERYONE, 20);
	send_message(1, contribution(.worker = 3));
	receive(1, &copy);
	assert_int_equal(copy.ip4.daddr, worker_ip4(3));
	assert_int_equal(ntohs(copy.udp.dest), UDP_PORT_OF_RANK_0 + 3);
	assert_memory_equal(copy.eth.h_source, node_mac, ETH_ALEN);
	assert_int_equal(copy.tally.blocks, 1);
	assert_sum(&copy, 20);
}

/*
 * A veth since 6.6 gives a short frame no room to grow: the result of an all_gather finds none in
 * the last contribution. The slot has it all the same, for whoever sends zeros in full length.
 */
static void zeros_in_full_length_get_what_a_short_frame_could_not_carry(void **state)
{
	struct counts before = counts_read(*state), after;
	struct sent copy;

	place_four(*state, JOB, false);
	send_message(0, contribution(.set = { { 0x7 } }, .blocks = 22, .value = 20));
	send_message(1, contribution(.worker = 3, .blocks = 0));
	send_message(1, contribution(.worker = 3, .blocks = 22, .value = 0));
	do
		receive(1, &copy);
	while (copy.ip4.daddr != worker_ip4(3) ||
	       memcmp(copy.eth.h_source, node_mac, ETH_ALEN) != 0);
	assert_int_equal(copy.tally.blocks, 22);
	assert_sum(&copy, 20);
	after = counts_read(*state);
	assert_int_equal(after.of[TALLY_NO_ROOM].packet - before.of[TALLY_NO_ROOM].packet +
				 after.of[TALLY_COMPLETED].packet -
				 before.of[TALLY_COMPLETED].packet,
			 1);
}

#define fact(name) cmocka_unit_test_setup(name, bench_reset)

int main(void)
{
	const struct CMUnitTest xdp[] = {
		fact(a_lost_copy_does_not_shift_the_next_message),
		fact(a_copy_for_no_child_is_dropped_and_counted),
		fact(a_port_without_cursor_is_a_counted_fault),
		fact(what_is_no_copy_of_ours_leaves_as_it_came),
		fact(nodes_that_name_each_other_send_nothing_round_for_ever),
	};
	const struct CMUnitTest all[] = {
		fact(each_child_gets_one_copy_with_its_address),
		fact(each_child_gets_one_copy_over_ipv6),
		fact(the_last_ones_tag_stays_on_all_copies),
		fact(a_frame_with_two_tags_is_not_tallys),
		fact(a_tag_of_802_1ad_is_no_sources_vlan),
		fact(who_is_not_the_recipient_gets_no_payload),
		fact(a_node_gets_the_payload_for_those_below_it),
		fact(a_checksum_that_the_sender_left_to_others_is_right_in_all_copies),
		fact(a_copys_checksum_of_0_is_sent_as_the_other_zero),
		fact(a_frame_in_pages_is_summed_to_the_last_word),
		fact(copies_of_a_large_job_have_its_header),
		fact(each_copy_is_made_with_the_key_of_its_child),
		fact(an_ask_reaches_every_child),
		fact(children_behind_one_port_take_turns_for_2000_chunks),
		fact(the_same_result_goes_round_again_when_it_is_wanted),
		fact(two_jobs_behind_one_port_do_not_mix),
		fact(results_from_above_go_down_to_every_child),
		fact(a_copy_of_the_other_family_is_dropped_and_counted),
		fact(an_answer_leaves_by_the_port_it_was_asked_at),
		fact(zeros_in_full_length_get_what_a_short_frame_could_not_carry),
	};

	skip_unless_permitted();
	if (unshare(CLONE_NEWNET)) {
		printf("1..1\nok 1 - fanout # SKIP no network namespace: %s\n", strerror(errno));
		return 0;
	}
	return cmocka_run_group_tests_name("fanout of XDP", xdp, bench_setup, bench_teardown) +
	       cmocka_run_group_tests_name("fanout", all, bench_setup, bench_teardown) +
	       cmocka_run_group_tests_name("fanout by TC", all, bench_setup_tc, bench_teardown) +
	       cmocka_run_group_tests_name("fanout by both", all, bench_setup_mixed,
					   bench_teardown);
}
