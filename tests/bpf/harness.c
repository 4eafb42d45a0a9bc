// SPDX-License-Identifier: GPL-2.0-only
#include "harness.h"
#include "common/tick.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

const __u8 node_mac[ETH_ALEN] = { 0x02, 0x77, 0, 0, 0, 0x01 };

static const int outcome_actions[] = {
#define OUTCOME_ACTION(name, action, meaning) [TALLY_##name] = (action),
	TALLY_OUTCOMES(OUTCOME_ACTION)
#undef OUTCOME_ACTION
};

struct tally_set set_of(__u32 rank)
{
	struct tally_set s = { { 0 } };

	tally_set_add(&s, rank);
	return s;
}

/* --- addresses: 10.77.1.0 is rank 0, 10.77.1.255 rank 255; IPv6 and MAC likewise */

void worker_mac(__u32 rank, __u8 ret[ETH_ALEN])
{
	const __u8 mac[ETH_ALEN] = { 0x02, 0x77, 0, 0, 1, (__u8)rank };

	memcpy(ret, mac, ETH_ALEN);
}

__be32 worker_ip4(__u32 rank) { return htonl(ntohl(service_ip4()) - 1 + 256 + rank); }

void worker_ip6(__u32 rank, __u8 ret[16])
{
	service_ip6(ret);
	ret[14] = 1;
	ret[15] = (__u8)rank;
}

__be32 service_ip4(void) { return inet_addr(SERVICE_IP4); }

void service_ip6(__u8 ret[16]) { inet_pton(AF_INET6, SERVICE_IP6, ret); }

/* --- checksums, the slow and obvious way */

static __u32 sum16(__u32 sum, const void *data, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += 2) {
		__be16 word = 0;

		memcpy(&word, (const __u8 *)data + at, bytes - at < 2 ? 1 : 2);
		sum += ntohs(word);
	}
	return sum;
}

static __u16 fold(__u32 sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

__u16 sum_add(__u16 a, __u16 b) { return fold(a + b); }

/* Of a UDP datagram, and of the addresses before it: 0xffff when its checksum is right. */
static __u16 sum_udp(const __u8 *udp, size_t bytes, bool ipv6)
{
	const size_t addresses = ipv6 ? 2 * 16 : 2 * 4;

	return fold(sum16(0, udp - addresses, addresses + bytes) + bytes + IPPROTO_UDP);
}

__u16 frame_pseudo_sum(const struct frame *frame, __u32 udp_at, bool ipv6)
{
	const size_t addresses = ipv6 ? 2 * 16 : 2 * 4;

	return fold(sum16(0, frame->data + udp_at - addresses, addresses) + frame->bytes - udp_at +
		    IPPROTO_UDP);
}

/* --- a message into a frame */

struct writer {
	struct frame *frame;
};

static void *put(struct writer *w, const void *data, __u32 bytes)
{
	void *at = w->frame->data + w->frame->bytes;

	assert_true(w->frame->bytes + bytes <= FRAME_BYTES_MAX);
	memcpy(at, data, bytes);
	w->frame->bytes += bytes;
	return at;
}

static __u32 sender_of(struct message m)
{
	return m.worker == NOBODY ? TALLY_WORKERS_MAX - 1 : (__u32)m.worker;
}

__u64 check_of(__u64 value, __u8 blocks)
{
	__u64 check = 0;

	for (__u64 i = 0; i < blocks * TALLY_BLOCK_WORDS; i++)
		check += (2 * i + 1) * (i + 1) * value;
	return check;
}

struct tally_key key_of(__u32 rank)
{
	return (struct tally_key){ { tally_mix(rank, 1), tally_mix(rank, 2) } };
}

/* `key`: as in struct message. */
static __u64 tag_of(const struct tally_header *h, int key)
{
	const struct tally_key of_rank = key_of(key - 1);
	const struct tally_set set = tally_header_set(h);

	return key ? tally_keyed_tag(h, &set, &of_rank) : tally_tag(h, &set);
}

struct whole_header {
	struct tally_header header;
	struct tally_more more;
};

static struct whole_header header_of(struct message m)
{
	struct whole_header whole = { 0 };
	struct tally_header h = {
		.magic = m.magic,
		.version = m.version,
		.kind = m.kind,
		.flags = m.flags,
		.job = tally_le32(m.job),
		.epoch = tally_le16(m.epoch),
		.seq = tally_le32(m.seq),
		.recipient = tally_le16(m.recipient),
		.blocks = m.blocks,
		.lane = m.lane,
		.scale = m.scale,
		.scale_ahead = m.scale_ahead,
		.priority = m.priority,
		.shard = m.shard,
		.edition = m.edition,
		.reserved = { m.reserved },
		.about = tally_le16(m.about),
		.call = tally_le64(m.call),
		.sender = tally_le16(m.worker == NOBODY ? TALLY_FROM_NODE : m.worker),
	};

	if (m.worker != NOBODY)
		tally_set_add(&m.set, m.worker);
	h.check = tally_le64(check_of(m.value, m.blocks) + m.identity);
	whole.header = h;
	tally_header_set_put(&whole.header, &m.set);
	whole.header.tag = tally_le64(tag_of(&whole.header, m.key) ^ m.spoilt);
	return whole;
}

/* Results and asks come from the root's service address. */
static bool goes_up(struct message m)
{
	return m.kind == TALLY_CONTRIBUTION || m.kind == TALLY_REPAIR;
}

static __u8 ttl_of(struct message m) { return m.ttl ? m.ttl : TTL_OF_WORKERS; }

static void put_ip4(struct writer *w, struct message m, __u16 datagram_bytes)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tot_len = htons(sizeof(ip) + datagram_bytes),
		.tos = m.ecn,
		.ttl = ttl_of(m),
		.protocol = IPPROTO_UDP,
		.saddr = goes_up(m) ? worker_ip4(sender_of(m)) : service_ip4(),
		.daddr = goes_up(m) ? service_ip4() : worker_ip4(sender_of(m)),
	};

	ip.check = htons(~fold(sum16(0, &ip, sizeof(ip))));
	put(w, &ip, sizeof(ip));
}

static void put_ip6(struct writer *w, struct message m, __u16 datagram_bytes)
{
	struct ipv6hdr ip = {
		.version = 6,
		.payload_len = htons(datagram_bytes),
		.nexthdr = IPPROTO_UDP,
		.hop_limit = ttl_of(m),
		.flow_lbl = { m.ecn << 4 },
	};

	worker_ip6(sender_of(m), goes_up(m) ? ip.saddr.s6_addr : ip.daddr.s6_addr);
	service_ip6(goes_up(m) ? ip.daddr.s6_addr : ip.saddr.s6_addr);
	put(w, &ip, sizeof(ip));
}

static void put_ethernet(struct writer *w, struct message m)
{
	__be16 proto = htons(m.ipv6 ? ETH_P_IPV6 : ETH_P_IP);
	struct ethhdr eth = { .h_proto = m.vlan ? htons(m.vlan) : proto };
	struct vlan_tag tag = { .tci = htons(m.vlan_id ? m.vlan_id : 100), .proto = proto };

	memcpy(eth.h_dest, node_mac, ETH_ALEN);
	worker_mac(sender_of(m), eth.h_source);
	put(w, &eth, sizeof(eth));
	if (m.vlan)
		put(w, &tag, sizeof(tag));
}

__u32 frame_headers_bytes(struct message m)
{
	return sizeof(struct ethhdr) + (m.vlan ? sizeof(struct vlan_tag) : 0) +
	       (m.ipv6 ? sizeof(struct ipv6hdr) : sizeof(struct iphdr)) + sizeof(struct udphdr);
}

void frame_write(struct message m, struct frame *ret)
{
	__u16 bytes = sizeof(struct udphdr) + tally_header_bytes(m.flags) +
		      m.blocks * TALLY_BLOCK_BYTES;
	struct udphdr udp = { .source = htons(UDP_PORT_OF_RANK_0 + sender_of(m)),
			      .dest = htons(TALLY_UDP_PORT),
			      .len = htons(bytes) };
	struct whole_header header = header_of(m);
	struct writer w = { .frame = ret };
	__u8 *at;

	ret->bytes = 0;
	put_ethernet(&w, m);
	if (m.ipv6)
		put_ip6(&w, m, bytes);
	else
		put_ip4(&w, m, bytes);
	at = put(&w, &udp, sizeof(udp));
	put(&w, &header, tally_header_bytes(m.flags));
	for (__u64 i = 0; i < m.blocks * TALLY_BLOCK_WORDS; i++) {
		__u64 word = (i + 1) * m.value;

		put(&w, &word, sizeof(word));
	}
	udp.check = htons(~sum_udp(at, bytes, m.ipv6));
	memcpy(at, &udp, sizeof(udp));
}

void frame_retag(struct message m, struct frame *frame)
{
	const __u32 at = frame_headers_bytes(m);
	struct whole_header whole = { 0 };

	if (frame->bytes < at + sizeof(whole.header))
		return;
	memcpy(&whole, frame->data + at,
	       frame->bytes - at < sizeof(whole) ? frame->bytes - at : sizeof(whole));
	whole.header.tag = tally_le64(tag_of(&whole.header, m.key));
	memcpy(frame->data + at, &whole.header, sizeof(whole.header));
}

static __u64 random_next(__u64 *seed)
{
	*seed = tally_mix(*seed, TALLY_MIX);
	return *seed >> 16;
}

/* Any number of `bytes` bytes, most of them at the edge of something. */
static __u64 random_number(__u64 *seed, __u32 bytes)
{
	const __u64 edges[] = { 0, 1, 2, 63, 64, 255, 256, 0x7fff, 0x8000, 1ULL << 31, 1ULL << 63 };
	__u64 random = random_next(seed);
	__u64 edge = edges[random % (sizeof(edges) / sizeof(*edges))];

	if (random >> 8 & 1)
		edge = random_next(seed);
	return random >> 9 & 1 ? ~edge : edge;
}

/* A field, at a place where one may be, of 1, 2, 4 or 8 bytes. */
static void mutate_field(struct frame *frame, __u32 from, __u32 to, __u64 *seed)
{
	__u32 bytes = 1u << random_next(seed) % 4;
	__u32 at = from + random_next(seed) % (to - from) / bytes * bytes;
	__u64 number = random_number(seed, bytes);

	if (at + bytes <= frame->bytes)
		memcpy(frame->data + at, &number, bytes);
}

/* Another end; in half of the cases UDP says so, too. */
static void mutate_end(struct message m, struct frame *frame, __u64 *seed)
{
	const __u32 udp_at = frame_headers_bytes(m) - sizeof(struct udphdr);
	__u32 bytes = FRAME_BYTES_MIN + random_next(seed) % (frame->bytes + 200);
	__be16 length = htons(bytes - udp_at);

	if (bytes > FRAME_BYTES_MAX - 600) /* what a test run takes */
		return;
	for (__u32 at = frame->bytes; at < bytes; at++)
		frame->data[at] = (__u8)random_next(seed);
	frame->bytes = bytes;
	if (random_next(seed) % 2 && bytes >= udp_at + sizeof(struct udphdr))
		memcpy(frame->data + udp_at + offsetof(struct udphdr, len), &length,
		       sizeof(length));
}

void mutate(struct message m, struct frame *frame, __u64 seed)
{
	const __u32 tally = frame_headers_bytes(m), end = tally + sizeof(struct whole_header);
	__u64 random = tally_mix(seed, 1);

	for (int times = 1 + random_next(&random) % 4; times; times--) {
		__u32 bit = random_next(&random) % (8 * frame->bytes);

		switch (random_next(&random) % 5) {
		case 0:
			frame->data[bit / 8] ^= 1 << bit % 8;
			break;
		case 1:
			mutate_field(frame, 0, tally, &random);
			break;
		case 2:
			mutate_end(m, frame, &random);
			break;
		default:
			mutate_field(frame, tally, end, &random);
		}
	}
	if (random_next(&random) % 2)
		frame_retag(m, frame);
}

/* --- a frame into its parts */

struct reader {
	const struct frame *frame;
	__u32 at;
};

static void take(struct reader *r, void *ret, __u32 bytes)
{
	assert_true(r->at + bytes <= r->frame->bytes);
	memcpy(ret, r->frame->data + r->at, bytes);
	r->at += bytes;
}

static void take_ip4(struct reader *r, struct sent *ret)
{
	take(r, &ret->ip4, sizeof(ret->ip4));
	assert_int_equal(ret->ip4.version, 4);
	assert_int_equal(ret->ip4.ihl, 5);
	assert_int_equal(ret->ip4.protocol, IPPROTO_UDP);
	assert_int_equal(fold(sum16(0, &ret->ip4, sizeof(ret->ip4))), 0xffff);
	assert_int_equal(r->at - sizeof(ret->ip4) + ntohs(ret->ip4.tot_len), r->frame->bytes);
}

static void take_ip6(struct reader *r, struct sent *ret)
{
	take(r, &ret->ip6, sizeof(ret->ip6));
	assert_int_equal(ret->ip6.version, 6);
	assert_int_equal(ret->ip6.nexthdr, IPPROTO_UDP);
	assert_int_equal(r->at + ntohs(ret->ip6.payload_len), r->frame->bytes);
}

static void take_message(struct reader *r, struct sent *ret)
{
	take(r, &ret->tally, sizeof(ret->tally));
	if (ret->tally.flags & TALLY_LARGE)
		take(r, &ret->more, sizeof(ret->more));
	assert_int_equal(ret->tally.magic, TALLY_MAGIC);
	assert_int_equal(ret->tally.version, TALLY_VERSION);
	assert_in_range(ret->tally.blocks, 0, TALLY_BLOCKS_MAX);
	take(r, ret->word, ret->tally.blocks * TALLY_BLOCK_BYTES);
	assert_int_equal(r->at, r->frame->bytes);
	ret->set = tally_header_set(&ret->tally);
	while (ret->key < TALLY_KEYS_MAX &&
	       tally_le64_get(ret->tally.tag) != tag_of(&ret->tally, ret->key))
		ret->key++;
	if (ret->tally.version == TALLY_VERSION)
		assert_int_equal(tally_le64_get(ret->tally.tag), tag_of(&ret->tally, ret->key));
}

void frame_read(const struct frame *frame, struct sent *ret)
{
	struct reader r = { .frame = frame };
	const __u8 *udp;

	*ret = (struct sent){ .frame = *frame };
	take(&r, &ret->eth, sizeof(ret->eth));
	ret->tag.proto = ret->eth.h_proto;
	ret->tagged = ret->tag.proto == htons(ETH_P_8021Q) || ret->tag.proto == htons(ETH_P_8021AD);
	if (ret->tagged)
		take(&r, &ret->tag, sizeof(ret->tag));
	ret->ipv6 = ret->tag.proto == htons(ETH_P_IPV6);
	if (ret->ipv6)
		take_ip6(&r, ret);
	else
		take_ip4(&r, ret);
	udp = frame->data + r.at;
	take(&r, &ret->udp, sizeof(ret->udp));
	assert_int_equal(r.at - sizeof(ret->udp) + ntohs(ret->udp.len), frame->bytes);
	if (ret->ipv6)
		assert_int_not_equal(ret->udp.check, 0);
	take_message(&r, ret);
	/* On its way up, one checksum in 65,536 looks as if the kernel were still to make it. */
	if (ret->udp.check &&
	    (ret->tally.kind != TALLY_CONTRIBUTION ||
	     ntohs(ret->udp.check) != frame_pseudo_sum(frame, udp - frame->data, ret->ipv6)))
		assert_int_equal(sum_udp(udp, ntohs(ret->udp.len), ret->ipv6), 0xffff);
}

void assert_sum_at(const struct sent *sent, __u64 value, const char *file, int line)
{
	__u64 check = 0;

	for (__u64 i = 0; i < sent->tally.blocks * TALLY_BLOCK_WORDS; i++) {
		_assert_int_equal(sent->word[i], (i + 1) * value, file, line);
		check += (2 * i + 1) * sent->word[i];
	}
	if (sent->tally.blocks)
		_assert_int_equal(tally_le64_get(sent->tally.check), check, file, line);
}

/* --- the node's maps */

static int fd_of(const struct bpf_map *map) { return bpf_map__fd(map); }

static void map_put(int fd, const void *key, const void *value)
{
	assert_return_code(bpf_map_update_elem(fd, key, value, BPF_ANY), errno);
}

static void map_clear(int fd)
{
	__u8 key[64] = { 0 };

	while (!bpf_map_get_next_key(fd, NULL, key))
		assert_return_code(bpf_map_delete_elem(fd, key), errno);
}

__u32 row_of_job(__u32 id) { return TALLY_ROW_JOBS + id - JOB; }

__u32 row_of_loopback(__u32 id) { return TALLY_ROW_PORTS + id - JOB; }

enum {
	GATES_BYTES = TALLY_GATE_BUCKETS * sizeof(struct tally_gate_bucket),
};

struct tally_gate_bucket *gates_open(int fd)
{
	void *memory = mmap(NULL, GATES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void gates_close(struct tally_gate_bucket *bucket) { munmap(bucket, GATES_BYTES); }

void gate_put(struct node *node, __u32 id, __u32 ifindex, struct tally_gate gate)
{
	const struct tally_gate_key key = { id, ifindex };

	gate.job = id - JOB;
	assert_true(tally_gates_put(&node->gates, key, gate));
}

void gate_remove(struct node *node, __u32 id, __u32 ifindex)
{
	const struct tally_gate_key key = { id, ifindex };

	assert_true(tally_gates_remove(&node->gates, key, id - JOB));
}

static void job_address(struct tally_job *job, bool ipv6)
{
	const __be32 ip4 = service_ip4();

	memset(job->service, 0, sizeof(job->service));
	job->ipv6 = ipv6;
	if (ipv6)
		service_ip6(job->service);
	else
		memcpy(job->service, &ip4, sizeof(ip4));
}

void jobs_follow(struct node *node, const struct frame *frame)
{
	const int fd = fd_of(node->ingress->maps.jobs);
	bool ipv6 = frame->bytes > 18 && (frame->data[12] == 0x86 || frame->data[16] == 0x86);
	struct tally_job job;

	for (__u32 i = 0; i < GROUPS; i++) {
		assert_return_code(bpf_map_lookup_elem(fd, &i, &job), errno);
		if (job.ipv6 == ipv6)
			continue;
		job_address(&job, ipv6);
		map_put(fd, &i, &job);
	}
}

void job_put(struct node *node, __u32 id, struct tally_job job)
{
	const __u32 index = id - JOB;

	job.id = id;
	job_address(&job, job.ipv6);
	map_put(fd_of(node->ingress->maps.jobs), &index, &job);
	gate_put(node, id, LOOPBACK, (struct tally_gate){ .row = row_of_loopback(id) });
	gate_put(node, id, 0, (struct tally_gate){ .row = row_of_job(id), .anywhere = 1 });
}

void rank_put(struct node *node, __u32 id, __u32 rank, struct tally_rank value)
{
	const __u32 index = tally_rank_index(id - JOB, rank);

	map_put(fd_of(node->ingress->maps.ranks), &index, &value);
}

void rank_key_put(struct node *node, __u32 id, __u32 rank, struct tally_key key)
{
	rank_put(node, id, rank, (struct tally_rank){ .key = key });
}

void job_put_keyed(struct node *node, __u32 id, struct tally_job job)
{
	const struct tally_key nobody = { { 0 } };

	for (__u32 rank = 0; rank < TALLY_WORKERS_MAX; rank++)
		rank_key_put(node, id, rank,
			     tally_set_has(&job.everyone, rank) ? key_of(rank) : nobody);
	rank_key_put(node, id, TALLY_NODE_KEY, job.node_key ? key_of(TALLY_NODE_KEY) : nobody);
	job.keyed = 1;
	job.group = id - JOB;
	job_put(node, id, job);
}

void tenant_put(struct node *node, __u32 index, struct tally_tenant tenant)
{
	map_put(fd_of(node->ingress->maps.tenants), &index, &tenant);
}

struct tally_tenant tenant_read(struct node *node, __u32 index)
{
	struct tally_tenant tenant;

	assert_return_code(bpf_map_lookup_elem(fd_of(node->ingress->maps.tenants), &index, &tenant),
			   errno);
	return tenant;
}

void source_put(struct node *node, struct tally_source_key key)
{
	const __u8 yes = 1;

	map_put(fd_of(node->ingress->maps.sources), &key, &yes);
}

void group_put(struct node *node, __u32 group, __u32 key, __u32 ifindex)
{
	struct bpf_devmap_val value = {
		.ifindex = ifindex,
		.bpf_prog.fd = bpf_program__fd(node->fanout->progs.tally_fanout),
	};

	map_put(node->group[group], &key, &value);
}

void group_remove(struct node *node, __u32 group, __u32 key)
{
	assert_return_code(bpf_map_delete_elem(node->group[group], &key), errno);
}

void child_put(struct node *node, struct tally_child_key key, struct tally_child child)
{
	const int fd = fd_of(node->ingress->maps.children);
	struct tally_child_key of_job = { .job = key.job };
	struct tally_child other;

	child.port = key.ifindex;
	map_put(fd, &key, &child);
	while (!bpf_map_lookup_elem(fd, &of_job, &other) &&
	       (other.port != child.port || other.udp_port != child.udp_port))
		of_job.index++;
	map_put(fd, &of_job, &child);
}

void at_port_put(struct node *node, __u32 ifindex)
{
	const int cpus = libbpf_num_possible_cpus(), fd = fd_of(node->ingress->maps.at_ports);
	struct tally_at_port at[cpus];

	if (bpf_map_lookup_elem(fd, &ifindex, at) < 0)
		memset(at, 0, sizeof(at));
	for (int cpu = 0; cpu < cpus; cpu++) {
		at[cpu].cursor = (struct tally_cursor){ 0 };
		memcpy(at[cpu].mac, node_mac, sizeof(at[cpu].mac));
	}
	map_put(fd, &ifindex, at);
}

struct tally_slot slot_read(struct node *node, __u32 index)
{
	struct tally_slot slot;

	assert_return_code(bpf_map_lookup_elem(fd_of(node->ingress->maps.slots), &index, &slot),
			   errno);
	return slot;
}

void slot_put(struct node *node, __u32 index, const struct tally_slot *slot)
{
	map_put(fd_of(node->ingress->maps.slots), &index, slot);
}

struct tally_pool_slot pool_read(struct node *node, __u32 index)
{
	struct tally_pool_slot slot;

	assert_return_code(bpf_map_lookup_elem(fd_of(node->ingress->maps.pool), &index, &slot),
			   errno);
	return slot;
}

void pool_put(struct node *node, __u32 index, const struct tally_pool_slot *slot)
{
	map_put(fd_of(node->ingress->maps.pool), &index, slot);
}

static void pool_clear(struct node *node)
{
	const struct tally_pool_slot fresh = { .lock = { 0 } };

	for (__u32 i = 0; i < bpf_map__max_entries(node->ingress->maps.pool); i++)
		pool_put(node, i, &fresh);
}

void slots_read(struct node *node, struct tally_slot *ret)
{
	for (__u32 i = 0; i < SLOTS; i++)
		ret[i] = slot_read(node, i);
}

static void slots_clear(struct node *node)
{
	struct tally_slot fresh = { .lock = { 0 } };

	for (__u32 i = 0; i < SLOTS; i++)
		slot_put(node, i, &fresh);
}

static void counts_add(struct counts *to, const struct tally_counter *from)
{
	for (int out = 0; out < TALLY_OUTCOME_COUNT; out++) {
		to->of[out].packet += from[out].packet;
		to->of[out].byte += from[out].byte;
	}
}

struct counts row_read(struct node *node, __u32 row)
{
	int cpus = libbpf_num_possible_cpus();
	struct tally_counters of_cpu[cpus];
	struct counts counts = { { { 0 } } };

	assert_return_code(bpf_map_lookup_elem(fd_of(node->ingress->maps.counters), &row, of_cpu),
			   errno);
	for (int cpu = 0; cpu < cpus; cpu++)
		counts_add(&counts, of_cpu[cpu].outcome);
	return counts;
}

void port_read(struct node *node, __u32 ifindex, struct counts *apart, struct counts *jobs)
{
	int cpus = libbpf_num_possible_cpus();
	struct tally_at_port at[cpus];

	assert_return_code(bpf_map_lookup_elem(fd_of(node->ingress->maps.at_ports), &ifindex, at),
			   errno);
	for (int cpu = 0; cpu < cpus; cpu++) {
		counts_add(apart, at[cpu].apart.outcome);
		counts_add(jobs, at[cpu].jobs.outcome);
	}
}

struct counts counts_read(struct node *node)
{
	const __u32 rows[] = { TALLY_ROW_NO_JOB, row_of_job(JOB), row_of_job(OTHER_JOB),
			       row_of_loopback(JOB), row_of_loopback(OTHER_JOB) };
	struct counts counts = { { { 0 } } }, again = { { { 0 } } };
	__u32 port, *at = NULL;

	for (unsigned int i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct counts of_row = row_read(node, rows[i]);

		counts_add(&counts, of_row.of);
	}
	for (; !bpf_map_get_next_key(fd_of(node->ingress->maps.at_ports), at, &port); at = &port)
		port_read(node, port, &counts, &again);
	return counts;
}

/* --- the node's life */

static int groups_create(struct node *node)
{
	for (__u32 i = 0; i < GROUPS; i++) {
		node->group[i] = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "group", sizeof(__u32),
						sizeof(struct bpf_devmap_val), TALLY_WORKERS_MAX,
						NULL);
		if (node->group[i] < 0)
			return -errno;
		if (bpf_map_update_elem(fd_of(node->ingress->maps.groups), &i, &node->group[i], 0))
			return -errno;
	}
	return 0;
}

/* Both objects name the same maps: fanout takes those of ingress, but for its constants. */
static int maps_share(const struct bpf_object *from, const struct bpf_object *with)
{
	const struct bpf_map *map;

	bpf_object__for_each_map(map, from)
	{
		struct bpf_map *twin = bpf_object__find_map_by_name(with, bpf_map__name(map));
		int r = 0;

		if (twin && !bpf_map__is_internal(map))
			r = bpf_map__reuse_fd(twin, fd_of(map));
		if (r < 0)
			return r;
	}
	return 0;
}

static int node_load(struct node *node, struct tally_pool pool)
{
	int r;

	node->ingress = ingress_bpf__open();
	node->fanout = fanout_bpf__open();
	if (!node->ingress || !node->fanout)
		return -errno;
	bpf_map__set_max_entries(node->ingress->maps.slots, SLOTS);
	bpf_map__set_max_entries(node->ingress->maps.pool, pool.slots ? pool.slots : 1);
	node->gates.factor = TALLY_MIX;
	node->fanout->rodata_node->constants.gate_factor = node->gates.factor;
	node->ingress->rodata_node->constants.gate_factor = node->gates.factor;
	node->ingress->rodata_node->constants.pool = pool;
	node->ingress->rodata_node->constants.boot = NODE_BOOT;
	node->ingress->rodata_node->constants.tick_ms = tick_ms();
	node->ingress->rodata_node->constants.shared = 1; /* every feature on */
	r = ingress_bpf__load(node->ingress);
	if (r < 0)
		return r;
	node->gates.bucket = gates_open(fd_of(node->ingress->maps.gates));
	if (!node->gates.bucket)
		return -errno;
	r = maps_share(node->ingress->obj, node->fanout->obj);
	if (r < 0)
		return r;
	r = fanout_bpf__load(node->fanout);
	return r < 0 ? r : groups_create(node);
}

static int node_load_tc(struct node *node, struct tally_pool pool)
{
	int r;

	node->ingress_tc = ingress_tc_bpf__open();
	if (!node->ingress_tc)
		return -errno;
	node->ingress_tc->rodata_node->constants.gate_factor = node->gates.factor;
	node->ingress_tc->rodata_node->constants.boot = NODE_BOOT;
	node->ingress_tc->rodata_node->constants.tick_ms = tick_ms();
	node->ingress_tc->rodata_node->constants.pool = pool;
	r = maps_share(node->ingress->obj, node->ingress_tc->obj);
	return r < 0 ? r : ingress_tc_bpf__load(node->ingress_tc);
}

int node_setup_pool(void **state, struct tally_pool pool)
{
	struct node *node = calloc(1, sizeof(*node));
	int r;

	*state = node;
	r = node ? node_load(node, pool) : -ENOMEM;
	if (r == 0)
		r = node_load_tc(node, pool);
	if (r < 0)
		print_error("cannot load the node: %s\n", strerror(-r));
	return r;
}

int node_setup(void **state) { return node_setup_pool(state, (struct tally_pool){ 0 }); }

int node_setup_tc(void **state)
{
	int r = node_setup(state);

	if (r == 0)
		((struct node *)*state)->by_tc = true;
	return r;
}

int node_ingress(struct node *node)
{
	return bpf_program__fd(node->by_tc ? node->ingress_tc->progs.tally_ingress_tc
					   : node->ingress->progs.tally_ingress);
}

int node_teardown(void **state)
{
	struct node *node = *state;

	if (node->gates.bucket)
		gates_close(node->gates.bucket);
	fanout_bpf__destroy(node->fanout);
	ingress_tc_bpf__destroy(node->ingress_tc);
	ingress_bpf__destroy(node->ingress);
	free(node);
	return 0;
}

int node_reset(void **state)
{
	struct node *node = *state;

	node->segment_bytes = 0;
	slots_clear(node);
	pool_clear(node);
	memset(node->gates.bucket, 0, GATES_BYTES);
	map_clear(fd_of(node->ingress->maps.sources));
	for (__u32 i = 0; i <= TALLY_TENANT_ANSWERS; i++)
		tenant_put(node, i, (struct tally_tenant){ .priority = i ? 0 : 255 });
	map_clear(fd_of(node->ingress->maps.children));
	map_clear(fd_of(node->ingress->maps.at_ports));
	for (int i = 0; i < GROUPS; i++)
		map_clear(node->group[i]);
	rank_put(node, JOB, TALLY_NODE_KEY, (struct tally_rank){ .port = 0 });
	rank_put(node, OTHER_JOB, TALLY_NODE_KEY, (struct tally_rank){ .port = 0 });
	job_put(node, JOB, root_job());
	job_put(node, OTHER_JOB, root_job(.slot_base = SLOTS_OF_JOB, .group = 1));
	return 0;
}

void skip_unless_permitted(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_DEVMAP_HASH, "may_we", sizeof(__u32), sizeof(__u32), 1,
				NULL);

	if (fd < 0 && (errno == EPERM || errno == EACCES || errno == ENOSYS)) {
		printf("1..1\nok 1 - bpf # SKIP not permitted here: %s\n", strerror(errno));
		exit(0);
	}
}

/* --- one packet through ingress */

/* As XDP calls it. */
static int action_of_tc(int action)
{
	switch (action) {
	case TC_ACT_UNSPEC:
		return XDP_PASS;
	case TC_ACT_REDIRECT:
		return XDP_TX;
	case TC_ACT_STOLEN:
		return XDP_REDIRECT;
	case TC_ACT_SHOT:
		return XDP_DROP;
	default:
		return -EBADMSG;
	}
}

int node_run(struct node *node, const struct frame *in, struct frame *ret)
{
	struct __sk_buff segmented = { .gso_size = node->segment_bytes };
	LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = in->data, .data_size_in = in->bytes,
		    .data_out = ret->data, .data_size_out = sizeof(ret->data), .repeat = 1);
	int r;

	if (node->segment_bytes) {
		run.ctx_in = &segmented;
		run.ctx_size_in = sizeof(segmented);
	}
	r = bpf_prog_test_run_opts(node_ingress(node), &run);
	if (r < 0)
		return r;
	ret->bytes = run.data_size_out;
	return node->by_tc ? action_of_tc((int)run.retval) : (int)run.retval;
}

/* Exactly `outcome` was counted once, with the frame's bytes, and nothing else. */
static void assert_counted(const struct counts *before, const struct counts *after,
			   enum tally_outcome outcome, __u32 bytes, const char *file, int line)
{
	bool right = true;

	for (int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		__u64 packets = after->of[i].packet - before->of[i].packet;
		bool wanted = i == (int)outcome;

		right = right && packets == wanted;
		if (packets && !wanted)
			print_error("# %s was counted instead of %s\n", tally_outcome_name(i),
				    tally_outcome_name(outcome));
	}
	if (!right)
		_fail(file, line);
	_assert_int_equal(after->of[outcome].byte - before->of[outcome].byte, bytes, file, line);
}

static bool makes_a_message(enum tally_outcome outcome)
{
	switch (outcome) {
	case TALLY_COMPLETED:
	case TALLY_ANSWERED:
	case TALLY_ANSWERED_ALL:
	case TALLY_ASKED:
	case TALLY_SPOILED:
	case TALLY_CONFLICT:
	case TALLY_BEHIND:
	case TALLY_OLD_VERSION:
	case TALLY_NO_ROOM:
	case TALLY_REPAIRED:
	case TALLY_SENT_UP:
	case TALLY_FLUSHED_UP:
	case TALLY_SWAPPED:
	case TALLY_SENT_DOWN:
		return true;
	default:
		return false;
	}
}

void expect_frame_at(struct node *node, const struct frame *in, enum tally_outcome outcome,
		     struct sent *ret, const char *file, int line)
{
	struct counts before = counts_read(node), after;
	struct sent scratch, *sent = ret ? ret : &scratch;
	struct frame out;
	int action;

	jobs_follow(node, in);
	action = node_run(node, in, &out);
	_assert_return_code(action, 0, -action, "node_run", file, line);
	after = counts_read(node);
	assert_counted(&before, &after, outcome, in->bytes, file, line);
	_assert_int_equal(action, outcome_actions[outcome], file, line);
	node->shown[outcome] = true;

	if (makes_a_message(outcome)) {
		frame_read(&out, sent);
	} else if (action != XDP_DROP) {
		_assert_int_equal(out.bytes, in->bytes, file, line);
		_assert_memory_equal(out.data, in->data, in->bytes, file, line);
	}
}

void expect_at(struct node *node, struct message m, enum tally_outcome outcome, struct sent *ret,
	       const char *file, int line)
{
	struct frame frame;

	frame_write(m, &frame);
	expect_frame_at(node, &frame, outcome, ret, file, line);
}
