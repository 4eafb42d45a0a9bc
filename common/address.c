// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
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
	struct sockaddr_in6 *ip6 = (void *)&a;
	struct sockaddr_in *ip4 = (void *)&a;
	char buffer[ADDRESS_BYTES];
	uint32_t number = port;
	char *host = buffer;

	if (strlen(text) >= sizeof(buffer))
		return -EINVAL;
	snprintf(buffer, sizeof(buffer), "%s", text);
	if (!port)
		host = port_cut(buffer, &number);
	if (!host)
		return -EINVAL;

	if (inet_pton(AF_INET, host, &ip4->sin_addr) == 1) {
		ip4->sin_family = AF_INET;
		ip4->sin_port = htons(number);
	} else if (inet_pton(AF_INET6, host, &ip6->sin6_addr) == 1) {
		ip6->sin6_family = AF_INET6;
		ip6->sin6_port = htons(number);
	} else {
		return -EINVAL;
	}
	if (!is_one_machine(&a))
		return -EINVAL;
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
	const struct sockaddr_in6 *ip6 = (const void *)address;
	const struct sockaddr_in *ip4 = (const void *)address;
	char host[ADDRESS_BYTES];

	address_print(address, host, sizeof(host));
	if (address->ss_family == AF_INET6)
		snprintf(text, size, "[%s]:%u", host, ntohs(ip6->sin6_port));
	else
		snprintf(text, size, "%s:%u", host, ntohs(ip4->sin_port));
}

bool endpoint_is_equal(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_addr.s_addr == b4->sin_addr.s_addr && a4->sin_port == b4->sin_port;
	return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) &&
	       a6->sin6_port == b6->sin6_port;
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

uint16_t endpoint_port(const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *ip6 = (const void *)address;
	const struct sockaddr_in *ip4 = (const void *)address;

	return ntohs(address->ss_family == AF_INET ? ip4->sin_port : ip6->sin6_port);
}

void endpoint_port_set(struct sockaddr_storage *address, uint16_t port)
{
	struct sockaddr_in6 *ip6 = (void *)address;
	struct sockaddr_in *ip4 = (void *)address;

	if (address->ss_family == AF_INET)
		ip4->sin_port = htons(port);
	else
		ip6->sin6_port = htons(port);
}
