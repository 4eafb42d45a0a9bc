// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <string.h>

#include "common/clock.h"
#include "common/util.h"
#include "neighbours.h"

enum {
	ROUNDS = 3, /* a question or its answer may get lost */
	ROUND_MS = 330,
	QUESTIONS_NEAR = 64, /* after so many, answers are taken: sockets have little room */
	ANSWERS_NEAR = 256, /* taken at a time: others may send any number of them */
	HOPS = 255, /* what a router has passed on has fewer */
};

struct sockets {
	int arp, icmp;
};

static void sockets_close(struct sockets *s)
{
	closep(&s->arp);
	closep(&s->icmp);
}

static int icmp_open(int *ret)
{
	_cleanup_(closep) int fd = socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
					  IPPROTO_ICMPV6);
	const int hops = HOPS, on = 1;
	struct icmp6_filter filter;

	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
	if (fd < 0 || setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof(on)) < 0 ||
	    setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	*ret = TAKE_FD(fd);
	return 0;
}

/* Those that are needed: there may be no IPv6 here. */
static int sockets_open(struct sockets *s, const struct neighbour *all, unsigned int count)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < count; i++) {
		bool ip6 = all[i].address.ss_family == AF_INET6;

		if (ip6 && s->icmp < 0)
			r = icmp_open(&s->icmp);
		if (ip6 || s->arp >= 0)
			continue;
		s->arp = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
				htons(ETH_P_ARP));
		r = s->arp < 0 ? -errno : 0;
	}
	return r;
}

/* --- questions ------------------------------------------------------------------------------- */

static void arp_send(int fd, const struct neighbour *n)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ARP),
				  .sll_ifindex = (int)n->ifindex,
				  .sll_halen = ETH_ALEN };
	struct ether_arp question = { .ea_hdr = { .ar_hrd = htons(ARPHRD_ETHER),
						  .ar_pro = htons(ETH_P_IP),
						  .ar_hln = ETH_ALEN,
						  .ar_pln = 4,
						  .ar_op = htons(ARPOP_REQUEST) } };

	memset(to.sll_addr, 0xff, ETH_ALEN);
	memcpy(question.arp_sha, n->source_mac, ETH_ALEN);
	memcpy(question.arp_spa, n->source, 4);
	memcpy(question.arp_tpa, &((const struct sockaddr_in *)&n->address)->sin_addr, 4);
	sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&to, sizeof(to));
}

static void solicitation_send(int fd, const struct neighbour *n)
{
	struct {
		struct nd_neighbor_solicit head;
		struct nd_opt_hdr option;
		uint8_t mac[ETH_ALEN];
	} question = { .head.nd_ns_type = ND_NEIGHBOR_SOLICIT,
		       .head.nd_ns_target = ((const struct sockaddr_in6 *)&n->address)->sin6_addr,
		       .option = { ND_OPT_SOURCE_LINKADDR, 1 } };
	struct sockaddr_in6 to = {
		.sin6_family = AF_INET6,
		.sin6_addr.s6_addr = { 0xff, 2, [11] = 1, 0xff }, /* and the address's end */
		.sin6_scope_id = n->ifindex,
	};

	memcpy(question.mac, n->source_mac, ETH_ALEN);
	memcpy(&to.sin6_addr.s6_addr[13], &question.head.nd_ns_target.s6_addr[13], 3);
	sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&to, sizeof(to));
}

/* --- answers --------------------------------------------------------------------------------- */

static bool is_expected(const struct neighbour *n)
{
	return n->answered && !memcmp(n->mac, n->expected, sizeof(n->mac));
}

static bool all_are_expected(const struct neighbour *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (!is_expected(&all[i]))
			return false;
	return true;
}

static void answer_take(struct neighbour *all, unsigned int count, uint32_t ifindex, int family,
			const void *address, const uint8_t *mac)
{
	for (struct neighbour *n = all; n < all + count; n++) {
		const void *own =
			family == AF_INET
				? (const void *)&((const struct sockaddr_in *)&n->address)->sin_addr
				: (const void *)&((const struct sockaddr_in6 *)&n->address)
					  ->sin6_addr;

		if (n->ifindex != ifindex || n->address.ss_family != family || is_expected(n) ||
		    memcmp(own, address, family == AF_INET ? 4 : 16) != 0)
			continue;
		n->answered = true;
		memcpy(n->mac, mac, sizeof(n->mac));
	}
}

static bool arp_receive(int fd, struct neighbour *all, unsigned int count)
{
	struct ether_arp answer;
	struct sockaddr_ll from = { 0 };
	socklen_t length = sizeof(from);
	ssize_t n = recvfrom(fd, &answer, sizeof(answer), 0, (struct sockaddr *)&from, &length);

	if (n == sizeof(answer) && answer.ea_hdr.ar_op == htons(ARPOP_REPLY) &&
	    answer.ea_hdr.ar_pro == htons(ETH_P_IP) && answer.ea_hdr.ar_hln == ETH_ALEN)
		answer_take(all, count, (uint32_t)from.sll_ifindex, AF_INET, answer.arp_spa,
			    answer.arp_sha);
	return n >= 0;
}

/* The interface that a message came in by; 0: none, or it came from behind a router. */
static uint32_t link_of(struct msghdr *m)
{
	uint32_t ifindex = 0;
	int hops = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO)
			ifindex = ((const struct in6_pktinfo *)CMSG_DATA(c))->ipi6_ifindex;
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)
			memcpy(&hops, CMSG_DATA(c), sizeof(hops));
	}
	return hops == HOPS ? ifindex : 0;
}

/* Of an advertisement's options; NULL: they do not say. */
static const uint8_t *advertised_mac(const uint8_t *option, size_t bytes)
{
	for (size_t at = 0; at + 8 <= bytes && option[at + 1]; at += 8 * option[at + 1])
		if (option[at] == ND_OPT_TARGET_LINKADDR)
			return &option[at + 2];
	return NULL;
}

static bool advertisement_receive(int fd, struct neighbour *all, unsigned int count)
{
	_Alignas(struct nd_neighbor_advert) uint8_t answer[512];
	_Alignas(struct cmsghdr) uint8_t control[256];
	struct iovec part = { answer, sizeof(answer) };
	struct msghdr m = { .msg_iov = &part,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	const struct nd_neighbor_advert *head = (const struct nd_neighbor_advert *)answer;
	ssize_t n = recvmsg(fd, &m, 0);
	const uint8_t *mac;

	if (n < (ssize_t)sizeof(*head) || !link_of(&m))
		return n >= 0;
	mac = advertised_mac(answer + sizeof(*head), (size_t)n - sizeof(*head));
	if (mac)
		answer_take(all, count, link_of(&m), AF_INET6, &head->nd_na_target, mac);
	return true;
}

static void answers_receive(const struct sockets *s, struct neighbour *all, unsigned int count)
{
	for (int i = 0; i < ANSWERS_NEAR; i++)
		if (s->arp < 0 || !arp_receive(s->arp, all, count))
			break;
	for (int i = 0; i < ANSWERS_NEAR; i++)
		if (s->icmp < 0 || !advertisement_receive(s->icmp, all, count))
			break;
}

static void ask_again(const struct sockets *s, struct neighbour *all, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		const bool ip6 = all[i].address.ss_family == AF_INET6;

		if (!is_expected(&all[i]) && ip6 && s->icmp >= 0)
			solicitation_send(s->icmp, &all[i]);
		else if (!is_expected(&all[i]) && !ip6 && s->arp >= 0)
			arp_send(s->arp, &all[i]);
		if (i % QUESTIONS_NEAR == QUESTIONS_NEAR - 1)
			answers_receive(s, all, count);
	}
}

int neighbours_ask(struct neighbour *all, unsigned int count)
{
	_cleanup_(sockets_close) struct sockets s = { -1, -1 };
	int r = sockets_open(&s, all, count);

	if (r < 0)
		return r;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t end_ns = clock_now_ns() + ROUND_MS * 1000000ull, now_ns;

		ask_again(&s, all, count);
		while (!all_are_expected(all, count) && (now_ns = clock_now_ns()) < end_ns) {
			struct pollfd p[] = { { .fd = s.arp, .events = POLLIN },
					      { .fd = s.icmp, .events = POLLIN } };

			if (poll(p, 2, (int)((end_ns - now_ns) / 1000000) + 1) > 0)
				answers_receive(&s, all, count);
		}
	}
	return 0;
}
