// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A node's ports: programs attached and detached, and found again. Each port has a BPF link,
 * pinned as port-IFINDEX: it can be taken away from any namespace, goes with its interface,
 * and is given a new program with not one frame in between. libxdp's dispatcher can do none
 * of these, and needs extension programs, which some kernels refuse; the price is that no
 * other XDP program can share a port.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "dataplane_private.h"

#define BPFFS "/sys/fs/bpf"

/* --- the directory --------------------------------------------------------------------------- */

static bool is_bpffs(const char *path)
{
	struct statfs s;

	return !statfs(path, &s) && s.f_type == BPF_FS_MAGIC;
}

/* 0 at the end of the line. */
static int parent_of(int pid)
{
	_cleanup_(freep) char *line = NULL;
	char name[32], *end;
	size_t size = 0;
	int parent = 0;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	f = fopen(name, "re");
	if (!f)
		return 0;
	/* PID (COMMAND) STATE PARENT: the command may have blanks and brackets itself */
	if (getline(&line, &size, f) > 0 && (end = strrchr(line, ')')) && strlen(end) > 4)
		parent = strtol(end + strlen(") S "), NULL, 10);
	fclose(f);
	return parent;
}

/*
 * Would what this process mounts and pins vanish with it? So it does in `ip netns exec`, which
 * makes a mount namespace that no ancestor has.
 */
static bool mounts_are_private(void)
{
	struct stat here, there;
	char name[32];

	if (stat("/proc/self/ns/mnt", &here) < 0)
		return false;
	for (int pid = getppid(); pid > 0; pid = parent_of(pid)) {
		snprintf(name, sizeof(name), "/proc/%d/ns/mnt", pid);
		if (stat(name, &there) == 0 && there.st_ino != here.st_ino)
			return true;
	}
	return false;
}

static int bpffs_ensure(const char *pin, struct why *why)
{
	char parent[PATH_MAX];

	if (snprintf(parent, sizeof(parent), "%s", pin) >= PATH_MAX - 32)
		return why_say(why, -ENAMETOOLONG, "--pin: the name is too long");
	if (!strncmp(pin, BPFFS "/", strlen(BPFFS "/")) && !is_bpffs(BPFFS)) {
		if (mounts_are_private())
			return why_say(why, -ENODEV,
				       BPFFS
				       " is not there, and what is mounted here would "
				       "vanish with this process. Instead of `ip netns exec NAME` "
				       "take `nsenter --net=/run/netns/NAME`");
		if (mount("bpf", BPFFS, "bpf", 0, "mode=0700") < 0)
			return why_say(why, -errno,
				       "cannot mount a BPF file system at " BPFFS ": %m");
	}
	if (!is_bpffs(dirname(parent)))
		return why_say(
			why, -EINVAL,
			"--pin %s: must be a name in a BPF file system, such as " DATAPLANE_PIN,
			pin);
	return 0;
}

/* The directory, locked against other tally-nodes. -ENOENT: none, or it went while we waited. */
static int directory_lock(const char *pin)
{
	_cleanup_(closep) int fd = open(pin, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat s, now;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX) < 0 || fstat(fd, &s) < 0)
		return -errno;
	if (stat(pin, &now) < 0 || now.st_ino != s.st_ino)
		return -ENOENT;
	return TAKE_FD(fd);
}

static int no_node(struct why *why, int error, const char *pin)
{
	if (error != -ENOENT)
		return why_say(why, error, "%s: %s", pin, strerror(-error));
	return why_say(why, error, "no node runs here: nothing is pinned in %s%s", pin,
		       is_bpffs(BPFFS) ? " (tally-node attach DEV...)"
				       : ", as there is no BPF file system at " BPFFS
					 " (in `ip netns exec`? nsenter --net=... keeps it)");
}

/* --- ports ----------------------------------------------------------------------------------- */

void links_close(struct port_link *links, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		close(links[i].fd);
	free(links);
}

int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count)
{
	struct port_link *links = calloc(TALLY_PORTS_MAX, sizeof(*links));
	DIR *directory = opendir(pin);
	unsigned int n = 0;
	struct dirent *e;

	while (links && directory && n < TALLY_PORTS_MAX && (e = readdir(directory))) {
		struct bpf_link_info info = { 0 };
		uint32_t length = sizeof(info);

		if (strncmp(e->d_name, "port-", 5) != 0 || strlen(e->d_name) >= sizeof(links->name))
			continue;
		links[n].fd = bpf_obj_get(pin_path(pin, e->d_name, ""));
		if (links[n].fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(links[n].fd, &info, &length))
			links[n].ifindex = info.xdp.ifindex;
		snprintf(links[n].name, sizeof(links->name), "%.31s", e->d_name);
		n++;
	}
	if (directory)
		closedir(directory);
	if (!links || !directory) {
		free(links);
		return -errno;
	}
	*ret = links;
	*ret_count = n;
	return 0;
}

void link_remove(const char *pin, const struct port_link *link)
{
	bpf_link_detach(link->fd); /* fails if the interface has gone, and that is as good */
	unlink(pin_path(pin, link->name, ""));
}

static int link_create(int program, const struct dataplane_port *p, uint32_t flags)
{
	LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags);

	return bpf_link_create(program, p->ifindex, BPF_XDP, &options);
}

/* Why the driver refused: a link does not bring its words, so it is asked again by netlink. */
static void refusal_say(int program, struct dataplane_port *p, int error)
{
	uint32_t flags = XDP_FLAGS_DRV_MODE | XDP_FLAGS_UPDATE_IF_NOEXIST;

	*dataplane_kernel_words = '\0';
	if (error != -EBUSY && error != -EEXIST &&
	    bpf_xdp_attach(p->ifindex, program, flags, NULL) == 0)
		bpf_xdp_detach(p->ifindex, XDP_FLAGS_DRV_MODE, NULL);
	why_say(&p->refused, 0, "%s%s%s%s", strerror(-error), *dataplane_kernel_words ? " (" : "",
		dataplane_kernel_words, *dataplane_kernel_words ? ")" : "");
}

/* What stands in the way, or what can be done. */
static int port_error(struct why *why, int error, const struct dataplane_port *p)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	if (bpf_xdp_query(p->ifindex, 0, &query) == 0 && query.attach_mode != XDP_ATTACHED_NONE)
		return why_say(why, -EBUSY,
			       "%s: another XDP program (number %u: bpftool prog show id %u) is "
			       "attached there; take it away first",
			       p->name, query.prog_id, query.prog_id);
	if (p->mode == DATAPLANE_NATIVE)
		return why_say(why, error,
			       "%s: the driver refuses native XDP: %s. --mode generic works "
			       "without the driver",
			       p->name, p->refused.text);
	return why_say(why, error, "%s: cannot attach in generic mode: %s", p->name,
		       strerror(-error));
}

int port_attach(const char *pin, int program, struct dataplane_port *p, struct why *why)
{
	_cleanup_(closep) int fd = -EINVAL;
	char name[32];
	int r;

	if (p->mode != DATAPLANE_GENERIC) {
		fd = link_create(program, p, XDP_FLAGS_DRV_MODE);
		if (fd < 0)
			refusal_say(program, p, fd);
	}
	if (fd < 0 && p->mode != DATAPLANE_NATIVE)
		fd = link_create(program, p, XDP_FLAGS_SKB_MODE);
	else
		p->mode = DATAPLANE_NATIVE;
	if (fd < 0)
		return port_error(why, fd, p);
	if (p->mode == DATAPLANE_AUTO)
		p->mode = DATAPLANE_GENERIC;

	snprintf(name, sizeof(name), "port-%u", p->ifindex);
	unlink(pin_path(pin, name, "")); /* of an interface that has gone */
	r = bpf_obj_pin(fd, pin_path(pin, name, ""));
	if (r < 0)
		return why_say(why, r, "cannot pin %s: %s", pin_path(pin, name, ""), strerror(-r));
	return 0;
}

/* --- attach and detach ----------------------------------------------------------------------- */

/* Ports first, then all pins of ours, then the directory. Leaves alone what is not ours. */
static int node_remove(const char *pin, struct why *why)
{
	struct port_link *links = NULL;
	unsigned int count = 0;
	int r;

	r = links_open(pin, &links, &count);
	if (r < 0)
		return no_node(why, r, pin);
	for (unsigned int i = 0; i < count; i++)
		link_remove(pin, &links[i]);
	links_close(links, count);
	for (int i = 0; i < PIN_COUNT; i++) {
		unlink(pin_path(pin, pin_name[i], ""));
		unlink(pin_path(pin, pin_name[i], "-new"));
	}
	if (rmdir(pin) < 0)
		return why_say(why, -errno, "%s: there is something else in it: %m", pin);
	return 0;
}

int dataplane_attach(const char *pin, uint32_t slots, struct dataplane_port *ports,
		     unsigned int count, struct why *why)
{
	_cleanup_(programs_close) struct programs p = { 0 };
	_cleanup_(closep) int directory = -1;
	struct why ignored;
	int r;

	r = bpffs_ensure(pin, why);
	if (r < 0)
		return r;
	if (mkdir(pin, 0700) < 0)
		return errno != EEXIST ? why_say(why, -errno, "cannot make %s: %m", pin)
				       : why_say(why, -EEXIST,
						 "a node is here already (%s): attach --replace "
						 "puts new programs in, detach ends it",
						 pin);
	directory = directory_lock(pin);
	r = directory < 0 ? directory : programs_load(NULL, slots, &p, why);
	if (r == 0)
		r = pins_make(&p, pin, (1u << PIN_COUNT) - 1, "", why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = port_attach(pin, p.fd[PIN_INGRESS], &ports[i], why);
	if (r < 0)
		node_remove(pin, &ignored);
	return r;
}

int dataplane_detach(const char *pin, struct why *why)
{
	_cleanup_(closep) int directory = directory_lock(pin);

	if (directory < 0)
		return no_node(why, directory, pin);
	if (!is_bpffs(pin))
		return why_say(why, -EINVAL, "%s: is not in a BPF file system", pin);
	return node_remove(pin, why);
}

void dataplane_close(struct dataplane *d)
{
	if (!d)
		return;
	for (int i = 0; i < PIN_COUNT; i++)
		closep(&d->fd[i]);
	closep(&d->directory);
	free(d);
}

int dataplane_open(const char *pin, struct dataplane **ret, struct why *why)
{
	_cleanup_(dataplane_closep) struct dataplane *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->directory = -1;
	memset(d->fd, -1, sizeof(d->fd));
	libbpf_listen();
	snprintf(d->path, sizeof(d->path), "%s", pin);
	d->directory = directory_lock(pin);
	if (d->directory < 0)
		return no_node(why, d->directory, pin);
	for (int i = 0; i < PIN_COUNT; i++) {
		d->fd[i] = bpf_obj_get(pin_path(pin, pin_name[i], ""));
		if (d->fd[i] < 0)
			return why_say(
				why, d->fd[i],
				"%s: is no whole node, %s is missing: tally-node detach, and "
				"attach anew",
				pin, pin_name[i]);
	}
	*ret = TAKE_PTR(d);
	return 0;
}

bool dataplane_is_native(uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);

	return bpf_xdp_query(ifindex, 0, &query) == 0 && query.attach_mode == XDP_ATTACHED_DRV;
}

bool dataplane_is_attached(struct dataplane *d, uint32_t ifindex)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = { 0 };
	uint32_t length = sizeof(info);

	return bpf_obj_get_info_by_fd(d->fd[PIN_INGRESS], &info, &length) == 0 &&
	       bpf_xdp_query(ifindex, 0, &query) == 0 && query.prog_id == info.id;
}
