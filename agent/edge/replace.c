// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/owned.h"
#include "common/util.h"

/* The directory too: otherwise the new name may not survive a crash of the machine. */
static int directory_sync(const char *path)
{
	char parent[PATH_MAX];
	_cleanup_(closep) int fd = -1;

	snprintf(parent, sizeof(parent), "%s", path);
	fd = open(dirname(parent), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int write_all(int fd, const char *text)
{
	size_t length = strlen(text);

	while (length) {
		ssize_t n = write(fd, text, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			length -= n;
		}
	}
	return fsync(fd) < 0 ? -errno : 0;
}

int replace_file(const char *path, const char *text)
{
	_cleanup_(closep) int fd = -1;
	char fresh[PATH_MAX];
	int r;

	if (snprintf(fresh, sizeof(fresh), "%s.new", path) >= (int)sizeof(fresh))
		return -ENAMETOOLONG;
	unlink(fresh); /* of one who crashed, whoever may read it */
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	r = fd < 0 ? -errno : write_all(fd, text);
	if (r == 0 && rename(fresh, path) < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlink(fresh);
	return r < 0 ? r : directory_sync(path);
}
