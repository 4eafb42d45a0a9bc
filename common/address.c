// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "text.h"

static bool is_one_machine(const struct sockaddr_storage *a)
{
	const struct sockaddr_in6 *ip6 = (const void *)a;
	const struct sockaddr_in *ip4 = (const void *)a;

	if (a->ss_family == AF_INET)
		return ip4->sin_addr.s_addr != INADDR_ANY &&
		       ip4->sin_addr.s_addr != INADDR_BROADCAST &&
		       !IN_MULTICAST(ntohl(ip4->sin_addr.s_addr));
	return !IN6_IS_ADDR_UNSPECIFIED(&ip6->sin6_addr) && !IN6_IS_ADDR_MULTICAST(&ip6->sin6_addr);
}

void *address_raw(const struct sockaddr_storage *address, size_t *ret_bytes)
{
	bool is_ip4 = address->ss_family == AF_INET;

	*ret_bytes = is_ip4 ? sizeof(struct in_addr) : sizeof(struct in6_addr);
	return is_ip4 ? (void *)&((struct sockaddr_in *)address)->sin_addr
		      : (void *)&((struct sockaddr_in6 *)address)->sin6_addr;
}

bool address_is_loopback(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *ip6 = (const void *)address;
	const struct sockaddr_in *ip4 = (const void *)address;

	return address->ss_family == AF_INET ? ntohl(ip4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET
					     : IN6_IS_ADDR_LOOPBACK(&ip6->sin6_addr);
}

bool address_is_link_local(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *ip6 = (const void *)address;
	const struct sockaddr_in *ip4 = (const void *)address;

	return address->ss_family == AF_INET ? ntohl(ip4->sin_addr.s_addr) >> 16 == 0xa9fe
					     : IN6_IS_ADDR_LINKLOCAL(&ip6->sin6_addr);
}

/* Cuts ":port" off; "[v6]:port" also loses its brackets. `text` is then the address. */
static char *port_cut(char *text, uint32_t *ret_port)
{
	char *colon = strrchr(text, ':');

	if (!colon || !text_u32(colon + 1, UINT16_MAX, ret_port) || !*ret_port)
		return NULL;
	*colon = '\0';
	if (*text != '[')
		return strchr(text, ':') ? NULL : text;
	if (colon[-1] != ']')
		return NULL;
	colon[-1] = '\0';
	return strchr(text, ':') ? text + 1 : NULL;
}

int address_parse(const char *text, uint16_t port, struct sockaddr_storage *ret)
{
	struct sockaddr_storage a = { 0 };
	char buffer[ADDRESS_BYTES];
	uint32_t number = port;
	char *host = buffer;

	if (snprintf(buffer, sizeof(buffer), "%s", text) >= (int)sizeof(buffer))
		return -EINVAL;
	if (!port)
		host = port_cut(buffer, &number);
	if (!host)
		return -EINVAL;

	if (inet_pton(AF_INET, host, &((struct sockaddr_in *)&a)->sin_addr) == 1)
		a.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)&a)->sin6_addr) == 1)
		a.ss_family = AF_INET6;
	if (!a.ss_family || !is_one_machine(&a))
		return -EINVAL;
	endpoint_port_set(&a, number);
	*ret = a;
	return 0;
}

void address_print(const struct sockaddr_storage *address, char *text, size_t size)
{
	const struct sockaddr_in6 *ip6 = (const void *)address;
	const struct sockaddr_in *ip4 = (const void *)address;
	char buffer[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET)
		inet_ntop(AF_INET, &ip4->sin_addr, buffer, sizeof(buffer));
	else if (address->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &ip6->sin6_addr, buffer, sizeof(buffer));
	snprintf(text, size, "%s", buffer);
}

void endpoint_print(const struct sockaddr_storage *address, char *text, size_t size)
{
	char host[ADDRESS_BYTES];

	address_print(address, host, sizeof(host));
	snprintf(text, size, address->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
		 endpoint_port(address));
}

bool endpoint_is_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family || a4->sin_port != b4->sin_port)
		return false;
	return a->ss_family == AF_INET ? a4->sin_addr.s_addr == b4->sin_addr.s_addr
				       : IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
}

int address_listen_parse(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_storage a = { 0 };
	uint32_t port = 0;

	if (address_parse(text, 0, ret) == 0)
		return 0;
	if (!strncmp(text, "0.0.0.0:", 8) && text_u32(text + 8, UINT16_MAX, &port))
		a.ss_family = AF_INET;
	else if (!strncmp(text, "[::]:", 5) && text_u32(text + 5, UINT16_MAX, &port))
		a.ss_family = AF_INET6;
	if (!port)
		return -EINVAL;
	endpoint_port_set(&a, port);
	*ret = a;
	return 0;
}

/* Both families have it at the same place. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "");

uint16_t endpoint_port(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void endpoint_port_set(struct sockaddr_storage *address, uint16_t port)
{
	((struct sockaddr_in *)address)->sin_port = htons(port);
}

socklen_t endpoint_length(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6);
}
