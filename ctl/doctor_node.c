// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* doctor's checks of the node: kernel, memory, addresses, tallyd. */
#include <arpa/inet.h>
#include <errno.h>
#include <glob.h>
#include <grp.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <tally/maps.h>
#include <tally/wire.h>

#include "agent/dataplane/dataplane.h"
#include "agent/dataplane/probe.h"
#include "common/address.h"
#include "common/file.h"
#include "common/jobfile.h"
#include "doctor.h"
#include "sockets.h"
#include "table.h"

#define MAP_FULL 0.9 /* of a map's entries: worth a word */
#define KERNEL_OLDEST "5.15" /* that Tally runs on */
#define TALLY_GROUP "tally" /* as in the packaged configuration */

enum {
	SLOW_ANSWER_MS = 1000,
	RANKS_MINUTES = 2, /* for which ranks may be missing */
	TABLE_BYTES = 1 << 26, /* of /proc/net/tcp: some 400,000 sockets */
	TCP_LISTEN = 0x0a,
};

static void check_kernel(struct doctor *d, const struct doctor_port *p)
{
	struct utsname name;

	if (uname(&name) < 0)
		return;
	if (strverscmp(name.release, KERNEL_OLDEST) < 0)
		found_fail(d, "Linux %s: Tally needs " KERNEL_OLDEST " or later", name.release);
	else
		found_ok(d, "Linux %s", name.release);
}

static void check_bpf(struct doctor *d, const struct doctor_port *p)
{
	int r;

	if (!d->root) {
		found_unknown(d, "run doctor as root: only root may load a BPF program to test "
				 "the kernel");
		return;
	}
	r = dataplane_probe_broadcast();
	if (r == 0)
		found_ok(d, "XDP programs load, and can send one packet to several ports "
			    "(BPF_F_BROADCAST)");
	else if (r == -EOPNOTSUPP)
		found_fail(d, "XDP of this kernel cannot send one packet to several ports "
			      "(BPF_F_BROADCAST), so no result would arrive. Use Linux 5.15 or "
			      "later");
	else if (r == -EPERM)
		found_fail(d, "root may not load BPF programs here: the container lacks CAP_BPF, "
			      "CAP_NET_ADMIN or CAP_PERFMON, or the kernel is in lockdown");
	else
		found_fail(d, "a BPF program cannot be loaded: %s%s", strerror(-r),
			   r == -ENOSYS ? " (CONFIG_BPF_SYSCALL is off)" : "");
}

static void check_btf(struct doctor *d, const struct doctor_port *p)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		found_ok(d, "the kernel has type information (BTF)");
	else
		found_warn(d, "the kernel has no type information (CONFIG_DEBUG_INFO_BTF): Tally "
			      "works, but bpftool and bpftrace show less of it");
}

static void check_jit(struct doctor *d, const struct doctor_port *p)
{
	long on = doctor_read_number("/proc/sys/net/core/bpf_jit_enable", -1);
	long hard = doctor_read_number("/proc/sys/net/core/bpf_jit_harden", 0);

	if (on < 0) {
		found_unknown(d, "cannot read net.core.bpf_jit_enable: this network namespace or "
				 "this user does not see it");
	} else if (on == 0) {
		found_fail(d, "the kernel interprets BPF programs: every packet takes several "
			      "times longer");
		found_mend(d, "sysctl -w net.core.bpf_jit_enable=1");
	} else if (hard == 2) {
		found_warn(d, "the kernel hardens BPF programs of root, too: every packet takes "
			      "longer");
		found_mend(d, "sysctl -w net.core.bpf_jit_harden=1");
	} else {
		found_ok(d, "the kernel compiles BPF programs");
	}
}

static void check_bpffs(struct doctor *d, const struct doctor_port *p)
{
	struct statfs fs;

	if (statfs("/sys/fs/bpf", &fs) == 0 && fs.f_type == BPF_FS_MAGIC) {
		found_ok(d, "/sys/fs/bpf is mounted");
		return;
	}
	finding_add(d->findings, d->status ? FINDING_FAIL : FINDING_WARN,
		    "/sys/fs/bpf is not mounted. tallyd mounts it if it may. If tallyd has a "
		    "mount namespace of its own, other programs do not see that mount");
	found_mend(d, "mount -t bpf bpf /sys/fs/bpf");
}

/* --- memory ---------------------------------------------------------------------------------- */

/* The least memory.max of the process's control group and its parents, in bytes; 0: no limit. */
static uint64_t memory_limit(pid_t pid)
{
	char path[64], group[512], file[640], text[32], *slash;
	uint64_t least = 0;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (doctor_read_line(path, group, sizeof(group)) < 0 || strncmp(group, "0::", 3) != 0)
		return 0;
	for (; (slash = strrchr(group, '/')) && slash > group; *slash = '\0') {
		uint64_t limit;

		snprintf(file, sizeof(file), "/sys/fs/cgroup%s/memory.max", group + 3);
		if (doctor_read_line(file, text, sizeof(text)) < 0)
			continue;
		limit = strtoull(text, NULL, 10); /* "max" is 0 */
		if (limit && (!least || limit < least))
			least = limit;
	}
	return least;
}

static uint64_t memory_available(void)
{
	_cleanup_(freep) char *text = NULL;
	const char *line;
	size_t length;

	if (file_read("/proc/meminfo", TABLE_BYTES, &text, &length) < 0)
		return 0;
	line = strstr(text, "MemAvailable:");
	return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : 0;
}

static void check_memory(struct doctor *d, const struct doctor_port *p)
{
	double slots = field_number(d->status, "slots.total");
	pid_t pid = (pid_t)field_number(d->status, "pid");
	uint64_t limit = memory_limit(pid > 0 ? pid : getpid()), needed, available;

	needed = (uint64_t)(slots > 0 ? slots : DATAPLANE_SLOTS) * sizeof(struct tally_slot);
	available = memory_available();
	if (limit && limit < needed + needed / 4)
		found_fail(
			d,
			"slots take %" PRIu64 " MB, but the control group is limited to %" PRIu64
			" MB: the next restart or upgrade would fail. Raise MemoryMax= of the unit",
			needed >> 20, limit >> 20);
	else if (!d->status && available && available < needed)
		found_fail(d,
			   "slots need %" PRIu64 " MB of the kernel's memory, but only %" PRIu64
			   " MB are available",
			   needed >> 20, available >> 20);
	else
		found_ok(d, "slots take %" PRIu64 " MB; %" PRIu64 " MB are available", needed >> 20,
			 available >> 20);
}

/* --- addresses and sockets ------------------------------------------------------------------- */

static void check_forwarding(struct doctor *d, const struct doctor_port *p)
{
	if (d->ports < 2)
		return;
	if (doctor_read_number("/proc/sys/net/ipv4/ip_forward", -1) != 0) {
		found_ok(d, "this node routes IPv4");
		return;
	}
	found_warn(d,
		   "this node does not route IPv4 between its %u ports: its own jobs work, "
		   "but it drops sums for other nodes and all other traffic",
		   d->ports);
	found_mend(d, "sysctl -w net.ipv4.ip_forward=1");
}

/* "dnsmasq (process 812)", from the inode of its socket. */
static void owner_name(uint64_t inode, char *text, size_t size)
{
	char wanted[32], path[64], target[64] = "", name[32];
	glob_t files = { 0 };

	snprintf(text, size, "another program");
	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	glob("/proc/[0-9]*/fd/*", GLOB_NOSORT, NULL, &files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *process = files.gl_pathv[i] + strlen("/proc/");
		int digits = (int)strcspn(process, "/");
		ssize_t n = readlink(files.gl_pathv[i], target, sizeof(target) - 1);

		target[n > 0 ? n : 0] = '\0';
		snprintf(path, sizeof(path), "/proc/%.*s/comm", digits, process);
		if (!strcmp(target, wanted) && doctor_read_line(path, name, sizeof(name)) == 0)
			snprintf(text, size, "%s (process %.*s)", name, digits, process);
	}
	globfree(&files);
}

/* The inode of a socket on Tally's UDP or TCP port in one of these tables. */
static int socket_find(const char *const *tables, unsigned int state, uint64_t *ret)
{
	for (; *tables; tables++) {
		_cleanup_(freep) char *text = NULL;
		size_t length;

		if (file_read(*tables, TABLE_BYTES, &text, &length) == 0 &&
		    sockets_find(text, TALLY_UDP_PORT, state, ret) == 0)
			return 0;
	}
	return -ENOENT;
}

/* Whose it is only root sees; to others, what is there is that of a tallyd that runs. */
static bool others_socket(const struct doctor *d, const char *const *tables, unsigned int state,
			  char *ret_owner, size_t size)
{
	uint64_t inode;

	if (socket_find(tables, state, &inode) < 0)
		return false;
	owner_name(inode, ret_owner, size);
	return strncmp(ret_owner, "tallyd ", 7) != 0 && (d->root || !d->daemon);
}

static void check_sockets(struct doctor *d, const struct doctor_port *p)
{
	static const char *const udp[] = { "/proc/self/net/udp", "/proc/self/net/udp6", NULL };
	static const char *const tcp[] = { "/proc/self/net/tcp", "/proc/self/net/tcp6", NULL };
	char udp_owner[64], tcp_owner[64];
	const bool has_udp = others_socket(d, udp, 0, udp_owner, sizeof(udp_owner));
	const bool has_tcp = others_socket(d, tcp, TCP_LISTEN, tcp_owner, sizeof(tcp_owner));

	if (has_udp)
		found_warn(d,
			   "UDP port %d is in use by %s: that program receives what "
			   "the data plane passes",
			   TALLY_UDP_PORT, udp_owner);
	if (has_tcp)
		found_fail(d,
			   "TCP port %d is in use by %s: tallyd cannot listen there for "
			   "workers that join",
			   TALLY_UDP_PORT, tcp_owner);
	if (!has_udp && !has_tcp)
		found_ok(d, "no other program uses UDP or TCP port %d", TALLY_UDP_PORT);
}

bool doctor_is_own_address(const char *text)
{
	struct ifaddrs *all = NULL;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return true;
	for (struct ifaddrs *a = all; a && !found; a = a->ifa_next) {
		struct sockaddr_storage address = { 0 };
		char own[ADDRESS_BYTES];

		if (!a->ifa_addr ||
		    (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
			continue;
		memcpy(&address, a->ifa_addr,
		       a->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
							 : sizeof(struct sockaddr_in6));
		address_print(&address, own, sizeof(own));
		found = !strcmp(own, text);
	}
	freeifaddrs(all);
	return found;
}

static void check_service(struct doctor *d, const struct doctor_port *p)
{
	const json_t *services = field(d->status, "services"), *service;
	size_t i, missing = 0;

	json_array_foreach(services, i, service)
	{
		const char *text = json_string_value(service);

		if (!text || doctor_is_own_address(text))
			continue;
		missing++;
		found_fail(d,
			   "service address %s is not an address of this machine: messages of "
			   "workers do not arrive here",
			   text);
		found_mend(d, "ip address add %s/%d dev lo", text, strchr(text, ':') ? 128 : 32);
	}
	if (d->status && !json_array_size(services))
		found_fail(d, "the node has no service address, so workers cannot send to it: "
			      "set service: in tallyd.yaml");
	else if (d->status && !missing)
		found_ok(d, "all service addresses are addresses of this machine");
}

/* --- the daemon ------------------------------------------------------------------------------ */

static void check_daemon(struct doctor *d, const struct doctor_port *p)
{
	const char *version = field_text(d->status, "version");

	if (!d->status && d->daemon_error == -ETIMEDOUT)
		found_fail(
			d,
			"tallyd, process %d, hangs: it has the socket, and did not answer for "
			"%.0f s. Is it stopped, or the CPU busy (ps -o stat,time %d)? Runs go on "
			"meanwhile",
			d->daemon, d->answer_ms / 1e3, d->daemon);
	else if (!d->status && (d->daemon_error == -EACCES || d->daemon_error == -EPERM))
		found_unknown(d, "%s", d->no_daemon);
	else if (!d->status)
		found_fail(d, "%s", d->no_daemon);
	else if (d->answer_ms > SLOW_ANSWER_MS)
		found_warn(d, "tallyd took %.0f ms to answer: check the CPU load of this machine",
			   d->answer_ms);
	else if (strcmp(version, TALLY_VERSION_TEXT) != 0)
		found_warn(
			d,
			"tallyd has version %s, but this tallyctl has version " TALLY_VERSION_TEXT
			". After an upgrade, restart tallyd (systemctl restart tallyd); jobs go "
			"on",
			version);
	else
		found_ok(d, "tallyd %s answered in %.0f ms", version, d->answer_ms);
}

static void check_state(struct doctor *d, const struct doctor_port *p)
{
	const char *reason = field_text(d->status, "not_saved");

	if (!d->status)
		found_unknown(d, "tallyd does not answer");
	else if (*reason)
		found_fail(
			d,
			"%s. Jobs and tenants cannot be changed, and a restart would end runs that "
			"began since; make room or mend the disk: tallyd tries again every 10 s",
			reason);
	else
		found_ok(d, "the state file is written");
}

/* Of tallyd as it is installed, that is: tallyctl comes with it. */
static void check_layout(struct doctor *d, const struct doctor_port *p)
{
	const char *pin = field_text(d->status, "pin");
	struct why why = { "" };

	if (!d->root)
		found_unknown(d, "run doctor as root to see the pinned maps");
	else if (dataplane_layout_check(*pin ? pin : DATAPLANE_PIN, &why) < 0)
		found_warn(d, "%s", why.text);
	else
		found_ok(d, "an upgrade to this version keeps the maps");
}

/* --- what tallyd knows ----------------------------------------------------------------------- */

static void check_data_plane(struct doctor *d, const struct doctor_port *p)
{
	const json_t *troubles = field(d->status, "troubles"), *trouble;
	size_t i, found = 0;

	json_array_foreach(troubles, i, trouble)
	{
		if (doctor_is_of_cluster(d, json_string_value(trouble)))
			continue;
		found_fail(d, "%s", json_string_value(trouble));
		found++;
	}
	if (json_is_array(troubles) && !found)
		found_ok(d, "pins, state file and service addresses are there");
}

static void check_maps(struct doctor *d, const struct doctor_port *p)
{
	json_t *maps = (json_t *)field(d->status, "maps"), *map;
	const char *name;
	bool full = false;

	json_object_foreach(maps, name, map)
	{
		double used = field_number(map, "used"), most = field_number(map, "max");

		if (used < MAP_FULL * most)
			continue;
		full = true;
		finding_add(
			d->findings, used < most ? FINDING_WARN : FINDING_FAIL,
			"map %s has %.0f of %.0f entries: new runs %s refused. Fewer workers, or "
			"fewer ingress ports of tenants, need fewer",
			name, used, most, used < most ? "will soon be" : "are");
	}
	if (d->status && !full)
		found_ok(d, "the maps have room");
}

static void check_ranks(struct doctor *d, const struct doctor_port *p)
{
	const json_t *job;
	size_t i;

	json_array_foreach(d->jobs, i, job)
	{
		double minutes = field_number(job, "incomplete_s") / 60;
		const char *missing = field_text(job, "missing"), *name = field_text(job, "name");

		if (minutes < RANKS_MINUTES)
			continue;
		found_warn(d,
			   "job %s: %s%s, for %.0f minutes: tallyctl job list %s says who is there",
			   name,
			   *missing ? "the others wait for ranks " : "ranks of the run have gone",
			   missing, minutes, name);
	}
}

static void check_group(struct doctor *d, const struct doctor_port *p)
{
	const struct group *group;
	struct stat info;

	if (stat(d->socket, &info) < 0) {
		if (d->root && !getgrnam(TALLY_GROUP)) {
			found_warn(d, "there is no group '" TALLY_GROUP
				      "': only root can change jobs and tenants");
			found_mend(d, "groupadd --system " TALLY_GROUP);
		}
		return;
	}
	group = getgrgid(info.st_gid);
	if (info.st_gid == 0)
		found_ok(d, "only root may change jobs and tenants; control: group: in "
			    "tallyd.yaml allows others to");
	else if (!group)
		found_warn(d,
			   "the control socket belongs to group %u, which has no name: "
			   "restart tallyd",
			   info.st_gid);
	else
		found_ok(d, "members of group %s may change jobs and tenants", group->gr_name);
}

const struct doctor_check doctor_node_checks[] = {
	{ "kernel", check_kernel },
	{ "bpf", check_bpf },
	{ "btf", check_btf },
	{ "jit", check_jit },
	{ "bpffs", check_bpffs },
	{ "memory", check_memory },
	{ "daemon", check_daemon },
	{ "state", check_state },
	{ "layout", check_layout },
	{ "data plane", check_data_plane },
	{ "cluster", doctor_cluster_check },
	{ "maps", check_maps },
	{ "ranks", check_ranks },
	{ "refused", doctor_refused_check },
	{ "group", check_group },
	{ "service", check_service },
	{ "sockets", check_sockets },
	{ "forwarding", check_forwarding },
	{ "neighbours", doctor_neighbours_ask },
	{ NULL, NULL },
};
