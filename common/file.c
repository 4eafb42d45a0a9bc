// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>

#include "file.h"
#include "util.h"

enum {
	FIRST_BYTES = 4096,
};

/* Room for twice as much, but never for more than bytes_max + 1 and the NUL. */
static int grow(char **text, size_t *size, size_t bytes_max)
{
	size_t more = *size ? 2 * *size : FIRST_BYTES;
	char *bigger;

	if (more > bytes_max + 2)
		more = bytes_max + 2;
	bigger = realloc(*text, more);
	if (!bigger)
		return -ENOMEM;
	*text = bigger;
	*size = more;
	return 0;
}

int file_read(const char *path, size_t bytes_max, char **ret, size_t *ret_length)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	_cleanup_(freep) char *text = NULL;
	size_t length = 0, size = 0;
	ssize_t n = 1;

	if (fd < 0)
		return -errno;
	while (n != 0) {
		if (length + 1 >= size && grow(&text, &size, bytes_max) < 0)
			return -ENOMEM;
		n = read(fd, text + length, size - 1 - length);
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
