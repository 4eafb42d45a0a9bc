// SPDX-License-Identifier: GPL-2.0-only
/*
 * LD_PRELOAD: one allocation of a program fails. $TALLY_STARVE is a file of eight bytes, which the
 * test writes: which allocation from now on (0: none), and how many there were since.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct meter {
	uint32_t at, count;
};

static struct meter nobody, *meter = &nobody;

__attribute__((constructor)) static void meter_open(void)
{
	const char *path = getenv("TALLY_STARVE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *there = fd < 0 ? MAP_FAILED
			     : mmap(NULL, sizeof(*meter), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    0);

	if (fd >= 0)
		close(fd);
	if (there != MAP_FAILED)
		meter = there;
}

static int is_to_fail(void)
{
	meter->count++;
	if (meter->count != meter->at)
		return 0;
	errno = ENOMEM;
	return 1;
}

/* What is interposed, and what glibc calls its own. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t n, size_t bytes);
void *realloc(void *old, size_t bytes);

void *malloc(size_t bytes) { return is_to_fail() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return is_to_fail() ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *old, size_t bytes) { return is_to_fail() ? NULL : __libc_realloc(old, bytes); }
