// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Whose state file it is, and what it was (books_file.h). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "books_file.h"
#include "common/util.h"

int books_lock(const char *path, struct why *why)
{
	static int held = -1;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char name[PATH_MAX];
	int r;

	snprintf(name, sizeof(name), "%s.lock", path);
	closep(&held); /* of another file */
	held = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (held >= 0 && fcntl(held, F_SETLK, &lock) == 0)
		return 0;
	r = -errno;
	if (held < 0 || (r != -EAGAIN && r != -EACCES))
		return why_say(why, r, "cannot lock the state file by %s: %s", name, strerror(-r));
	if (fcntl(held, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		lock.l_pid = 0;
	return why_say(
		why, -EBUSY,
		"the state file %s is another tallyd's, process %d: give each tallyd a file of "
		"its own (key 'state')",
		path, lock.l_pid);
}

int books_resolve(char *path, size_t size, struct why *why)
{
	_cleanup_(freep) char *real = NULL;
	struct stat s;

	if (lstat(path, &s) < 0 || !S_ISLNK(s.st_mode))
		return 0;
	real = realpath(path, NULL);
	if (!real)
		return why_say(why, -errno,
			       "state: %s is a link, and the file that it leads to is not there "
			       "(%m): is its disk mounted? Put the file back, or remove the link",
			       path);
	if (strlen(real) >= size)
		return why_say(why, -ENAMETOOLONG,
			       "state: %s leads to a file whose name has more than %zu bytes", path,
			       size - 1);
	memcpy(path, real, strlen(real) + 1);
	return 0;
}

/* 1: others could read it. */
static int close_to_others(const char *path)
{
	struct stat s;

	if (stat(path, &s) < 0)
		return -errno;
	if (!(s.st_mode & (S_IRWXG | S_IRWXO)))
		return 0;
	return chmod(path, S_IRUSR | S_IWUSR) < 0 ? -errno : 1;
}

int books_keep(const char *path, struct why *why)
{
	char kept[PATH_MAX], fresh[PATH_MAX];
	int r = close_to_others(path);

	if (r < 0)
		return why_say(why, r,
			       "others may read %s, which has tokens, and its mode stays: %s: "
			       "chmod 600 it, and tallyctl job rotate JOB",
			       path, strerror(-r));
	snprintf(kept, sizeof(kept), "%s" BOOKS_KEPT, path);
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	unlink(fresh);
	if (link(path, fresh) < 0 || rename(fresh, kept) < 0)
		r = -errno;
	unlink(fresh); /* there still if the two were one file */
	return r < 0 ? why_say(why, r, "cannot keep %s as %s: %s", path, kept, strerror(-r)) : r;
}
