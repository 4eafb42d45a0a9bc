// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Whose node is it? A node's directory in a BPF file system, and who may work on it: for a moment
 * whoever has locked it, for as long as it lives the process that has claimed it.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#include "common/file.h"
#include "dataplane.h"
#include "pins.h"

#define BPFFS "/sys/fs/bpf"

bool directory_is_bpffs(const char *path)
{
	struct statfs s;

	return !statfs(path, &s) && s.f_type == BPF_FS_MAGIC;
}

/* 0 at the end of the line. */
static int parent_of(int pid)
{
	_cleanup_(freep) char *line = NULL;
	char name[32], *end;
	size_t length;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	if (file_read(name, 4096, &line, &length) < 0)
		return 0;
	/* PID (COMMAND) STATE PARENT: the command may have blanks and brackets itself */
	end = strrchr(line, ')');
	return end && strlen(end) > 4 ? (int)strtol(end + strlen(") S "), NULL, 10) : 0;
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

/* The file system is not there yet. */
static bool is_to_mount(const char *pin)
{
	return !strncmp(pin, BPFFS "/", strlen(BPFFS "/")) && !directory_is_bpffs(BPFFS);
}

int dataplane_pin_check(const char *pin, struct why *why)
{
	char parent[PATH_MAX];

	if (snprintf(parent, sizeof(parent), "%s", pin) >= PATH_MAX - 32)
		return why_say(why, -ENAMETOOLONG, "--pin: the name is too long");
	if (!is_to_mount(pin) && !directory_is_bpffs(dirname(parent)))
		return why_say(
			why, -EINVAL,
			"--pin %s: must be a name in a BPF file system, such as " DATAPLANE_PIN,
			pin);
	return 0;
}

static int bpffs_ensure(const char *pin, struct why *why)
{
	if (is_to_mount(pin)) {
		if (mounts_are_private())
			return why_say(why, -ENODEV,
				       BPFFS
				       " is not there, and what is mounted here would "
				       "vanish with this process. Instead of `ip netns exec NAME` "
				       "take `nsenter --net=/run/netns/NAME`");
		if (mount("bpf", BPFFS, "bpf", 0, "mode=0700") < 0)
			return why_say(why, -errno,
				       "cannot mount a BPF file system at " BPFFS
				       ": %m (as root: mount -t bpf bpf " BPFFS ")");
	}
	return dataplane_pin_check(pin, why);
}

int no_node(struct why *why, int error, const char *pin)
{
	if (error != -ENOENT)
		return why_say(why, error, "%s: %s", pin, strerror(-error));
	return why_say(why, error, "no node runs here: nothing is pinned in %s%s", pin,
		       directory_is_bpffs(BPFFS)
			       ? " (tally-node attach DEV...)"
			       : ", as there is no BPF file system at " BPFFS
				 " (in `ip netns exec`? nsenter --net=... keeps it)");
}

int directory_make(const char *pin, struct why *why)
{
	int r = bpffs_ensure(pin, why);

	if (r == 0 && mkdir(pin, 0700) < 0 && errno != EEXIST)
		r = why_say(why, -errno, "cannot make %s: %m", pin);
	return r;
}

/* --- the claim ------------------------------------------------------------------------------- */

/*
 * A claim is a lock on PIN/claim, a directory, as a BPF file system takes no plain files. The
 * kernel gives it back with the process, however that ends.
 */
static int claim = -1;

bool directory_is(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

bool claim_is_ours(const char *pin)
{
	return claim >= 0 && directory_is(claim, pin_path(pin, "claim", ""));
}

/*
 * The holder of this lock, if this line of /proc/locks is of it, or 0:
 *	1: FLOCK  ADVISORY  WRITE 1234 00:1c:5678 0 EOF
 */
static int holder_parse(const char *line, const struct stat *s)
{
	const char *at = strstr(line, " FLOCK ");
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	char *end;
	long pid;

	at = at ? strstr(at, " WRITE ") : NULL;
	if (!at)
		return 0;
	pid = strtol(at + strlen(" WRITE "), &end, 10);
	dev_major = strtoul(end, &end, 16);
	dev_minor = *end == ':' ? strtoul(end + 1, &end, 16) : 0;
	inode = *end == ':' ? strtoull(end + 1, &end, 10) : 0;
	return inode == s->st_ino && makedev(dev_major, dev_minor) == s->st_dev ? pid : 0;
}

/* Which process has this lock? 0 if that cannot be seen. */
static int lock_holder(const struct stat *s)
{
	_cleanup_(freep) char *line = NULL;
	FILE *f = fopen("/proc/locks", "re");
	size_t size = 0;
	int holder = 0;

	if (!f)
		return 0;
	while (!holder && getline(&line, &size, f) > 0)
		holder = holder_parse(line, s);
	fclose(f);
	return holder;
}

/* Takes PIN/claim; -ENOENT: nobody ever made it; -EBUSY: another process has it. */
static int claim_take(const char *pin, struct why *why)
{
	_cleanup_(closep) int fd = open(pin_path(pin, "claim", ""),
					O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat s;

	if (fd < 0 || fstat(fd, &s) < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return why_say(why, -EBUSY,
			       "tallyd, process %d, runs this node (%s); tallyctl asks it",
			       lock_holder(&s), pin);
	return TAKE_FD(fd);
}

int dataplane_claim(const char *pin, struct why *why)
{
	_cleanup_(closep) int directory = -1;
	int r;

	if (claim_is_ours(pin))
		return 0;
	r = directory_make(pin, why);
	if (r < 0)
		return r;
	directory = directory_lock(pin, why);
	if (directory < 0)
		return directory;
	if (mkdir(pin_path(pin, "claim", ""), 0700) < 0 && errno != EEXIST)
		return why_say(why, -errno, "cannot make %s: %m", pin_path(pin, "claim", ""));
	r = claim_take(pin, why);
	if (r < 0)
		return r;
	closep(&claim); /* of another node */
	claim = r;
	return 0;
}

void dataplane_unclaim(const char *pin)
{
	if (!claim_is_ours(pin))
		return;
	rmdir(pin_path(pin, "claim", ""));
	rmdir(pin_path(pin, "", "")); /* if there is no node in it */
	closep(&claim);
	claim = -1;
}

int directory_lock(const char *pin, struct why *why)
{
	_cleanup_(closep) int fd = open(pin, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(closep) int other = -1;

	if (fd < 0)
		return no_node(why, -errno, pin);
	if (claim_is_ours(pin))
		return TAKE_FD(fd);
	if (flock(fd, LOCK_EX) < 0)
		return no_node(why, -errno, pin);
	if (!directory_is(fd, pin))
		return no_node(why, -ENOENT, pin);
	other = claim_take(pin, why);
	return other == -EBUSY ? -EBUSY : TAKE_FD(fd);
}

int directory_remove(const char *pin, struct why *why)
{
	if (claim_is_ours(pin))
		return 0;
	rmdir(pin_path(pin, "claim", "")); /* of a process that has ended */
	if (rmdir(pin) < 0)
		return why_say(why, -errno, "%s: has files that are not Tally's: %m", pin);
	return 0;
}
