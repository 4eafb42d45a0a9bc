// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file.h"
#include "util.h"

int file_read(const char *path, size_t bytes_max, char **ret, size_t *ret_length)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = NULL;
	size_t length = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	text = malloc(bytes_max + 1); /* one byte more shows a file that is too long */
	if (!text)
		return -ENOMEM;
	while (n != 0) {
		n = read(fd, text + length, bytes_max + 1 - length);
		if (n < 0 && errno != EINTR)
			return -errno;
		length += n > 0 ? n : 0;
		if (length > bytes_max)
			return -EFBIG;
	}
	text[length] = '\0';
	*ret = TAKE_PTR(text);
	*ret_length = length;
	return 0;
}

int file_is_open_to_all(const char *path)
{
	struct stat s;

	return stat(path, &s) < 0 ? -errno : !!(s.st_mode & (S_IROTH | S_IWOTH));
}

static void output_close(void)
{
	errno = 0;
	if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
		return;
	/* which error it was is known only if this was the first attempt */
	warnx("cannot write to standard output%s%s", errno ? ": " : "",
	      errno ? strerror(errno) : "");
	_exit(EXIT_FAILURE);
}

void file_watch_output(void) { atexit(output_close); }
