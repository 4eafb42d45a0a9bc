// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "way.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <tally/wire.h>
#include <unistd.h>

#include "common/address.h"
#include "common/util.h"

enum {
	ORDINARY = 1500, /* nothing is tried: each job fits that */
	TRIES = 4, /* packets, each as large as the one before may be */
	COPIES = 2, /* of each: one may be lost */
	MESSAGE_MAX = sizeof(struct tally_header) + sizeof(struct tally_more) + TALLY_PAYLOAD_MAX,
	IP4_UDP = 28,
	IP6_UDP = 48,
};

uint32_t way_interface_mtu(int fd, char ret_name[IFNAMSIZ])
{
	struct sockaddr_storage own = { 0 };
	struct ifaddrs *all = NULL;
	struct ifreq ask = { 0 };

	if (getsockname(fd, (void *)&own, &(socklen_t){ sizeof(own) }) < 0 || getifaddrs(&all) < 0)
		return 0;
	endpoint_port_set(&own, 0);
	for (const struct ifaddrs *i = all; i && !*ask.ifr_name; i = i->ifa_next) {
		struct sockaddr_storage there = { 0 };

		if (!i->ifa_addr || i->ifa_addr->sa_family != own.ss_family)
			continue;
		memcpy(&there, i->ifa_addr, endpoint_length(&own));
		if (endpoint_is_equal(&there, &own))
			snprintf(ask.ifr_name, sizeof(ask.ifr_name), "%s", i->ifa_name);
	}
	freeifaddrs(all);
	memcpy(ret_name, ask.ifr_name, sizeof(ask.ifr_name));
	return *ret_name && ioctl(fd, SIOCGIFMTU, &ask) == 0 ? (uint32_t)ask.ifr_mtu : 0;
}

static int family_of(int fd)
{
	int family = 0;

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &(socklen_t){ sizeof(family) });
	return family;
}

uint32_t way_known_mtu(int fd)
{
	const bool ip4 = family_of(fd) == AF_INET;
	int mtu = 0;

	if (getsockopt(fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6, ip4 ? IP_MTU : IPV6_MTU, &mtu,
		       &(socklen_t){ sizeof(mtu) }) < 0)
		return 0;
	return mtu > 0 ? (uint32_t)mtu : 0;
}

/* Here what is heard of the way is believed: it can only make the payload that of an ordinary way.
 */
static int way_open(const struct sockaddr_storage *own, const struct sockaddr_storage *node)
{
	const bool ip4 = own->ss_family == AF_INET;
	const int discover = ip4 ? IP_PMTUDISC_DO : IPV6_PMTUDISC_DO;
	struct sockaddr_storage from = *own, to = *node;
	_cleanup_(closep) int fd = socket(from.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	endpoint_port_set(&from, 0);
	endpoint_port_set(&to, TALLY_UDP_PORT);
	if (fd < 0 ||
	    setsockopt(fd, ip4 ? IPPROTO_IP : IPPROTO_IPV6,
		       ip4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &discover,
		       sizeof(discover)) < 0 ||
	    bind(fd, (const struct sockaddr *)&from, endpoint_length(&from)) < 0 ||
	    connect(fd, (const struct sockaddr *)&to, endpoint_length(&to)) < 0)
		return -1;
	return TAKE_FD(fd);
}

/* True: somebody on the way has said that it is too large. */
static bool is_too_large(int fd, size_t bytes, uint32_t wait_ms)
{
	static const char zeros[MESSAGE_MAX];
	struct pollfd answer = { .fd = fd, .events = POLLIN };
	int error = 0;

	for (int i = 0; i < COPIES; i++)
		if (send(fd, zeros, bytes, MSG_DONTWAIT) < 0)
			return errno == EMSGSIZE;
	if (poll(&answer, 1, (int)wait_ms) <= 0)
		return false;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){ sizeof(error) });
	return error == EMSGSIZE;
}

uint32_t way_try_mtu(const struct sockaddr_storage *own, const struct sockaddr_storage *node,
		     uint32_t wait_ms)
{
	_cleanup_(closep) int fd = way_open(own, node);
	const size_t headers = own->ss_family == AF_INET ? IP4_UDP : IP6_UDP;
	uint32_t interface, mtu = fd < 0 ? 0 : way_known_mtu(fd);
	char name[IFNAMSIZ];

	for (int i = 0; i < TRIES && mtu > ORDINARY; i++) {
		const size_t room = mtu - headers;

		if (!is_too_large(fd, room < MESSAGE_MAX ? room : MESSAGE_MAX, wait_ms))
			break;
		mtu = way_known_mtu(fd);
	}
	interface = mtu ? way_interface_mtu(fd, name) : 0;
	return interface && interface < mtu ? interface : mtu;
}
