// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <inttypes.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/address.h"
#include "common/file.h"
#include "common/owned.h"
#include "common/util.h"
#include "look.h"

/* The kernel lets nobody take a UDP port of an address that is another machine's. */
bool look_is_own(const struct sockaddr_storage *address)
{
	_cleanup_(closep) int fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage any_port = *address;

	endpoint_port_set(&any_port, 0);
	return fd < 0 || bind(fd, (const void *)&any_port, sizeof(any_port)) == 0 ||
	       errno != EADDRNOTAVAIL;
}

int look_addresses(struct look_address *ret, unsigned int max)
{
	struct ifaddrs *all;
	unsigned int count = 0;

	if (getifaddrs(&all) < 0)
		return -errno;
	for (const struct ifaddrs *a = all; a && count < max; a = a->ifa_next) {
		const int family = a->ifa_addr ? a->ifa_addr->sa_family : AF_UNSPEC;

		if (family != AF_INET && family != AF_INET6)
			continue;
		ret[count] = (struct look_address){ 0 };
		snprintf(ret[count].port, sizeof(ret[count].port), "%s", a->ifa_name);
		memcpy(&ret[count++].address, a->ifa_addr,
		       family == AF_INET ? sizeof(struct sockaddr_in)
					 : sizeof(struct sockaddr_in6));
	}
	freeifaddrs(all);
	return (int)count;
}

int look_own(struct sockaddr_storage *ret, unsigned int max)
{
	_cleanup_(freep) struct look_address *all = calloc(max, sizeof(*all));
	const int count = all ? look_addresses(all, max) : -ENOMEM;

	for (int i = 0; i < count; i++)
		ret[i] = all[i].address;
	return count;
}

int look_mac(const char *name, uint8_t ret[6])
{
	_cleanup_(closep) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { 0 };

	snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &r) < 0)
		return -errno;
	memcpy(ret, r.ifr_hwaddr.sa_data, 6);
	return 0;
}

int look_machine(char ret[LOOK_MACHINE_BYTES], struct why *why)
{
	static const char boot_id[] = "/proc/sys/kernel/random/boot_id",
			  net[] = "/proc/self/ns/net";
	_cleanup_(freep) char *boot = NULL;
	struct stat s;
	size_t length;
	int r = file_read(boot_id, LOOK_MACHINE_BYTES, &boot, &length);

	if (r < 0)
		return why_say(why, r, "cannot read %s: %s", boot_id, strerror(-r));
	if (stat(net, &s) < 0)
		return why_say(why, -errno, "cannot read %s: %m", net);
	snprintf(ret, LOOK_MACHINE_BYTES, "%.36s/%ju", boot, (uintmax_t)s.st_ino);
	return 0;
}

int look_is_writable(const char *file, struct why *why)
{
	char path[PATH_MAX], *directory;
	struct statvfs s;

	snprintf(path, sizeof(path), "%s", file);
	directory = dirname(path);
	if (access(directory, W_OK | X_OK) < 0)
		return why_say(why, -errno, "cannot write %s: %s: %m", file, directory);
	if (statvfs(directory, &s) == 0 && !s.f_bavail)
		return why_say(why, -ENOSPC, "cannot write %s: the file system is full", file);
	return 0;
}
