// SPDX-License-Identifier: GPL-2.0-only
/*
 * LD_PRELOAD: one allocation of a program fails. $TALLY_STARVE is a file that the test writes and
 * reads (struct meter): the N-th allocation from now on fails, or the first one of a place.
 * A place is a hash of the calls that lead to an allocation (the nearest CALLS_MAX of them), and is
 * the same in each run of one build: each call counts as its offset in its file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	CALLS_MAX = 10,
	CALLS_OWN = 2, /* is_to_fail() and the function that is interposed */
	PLACES_MAX = 8189, /* 64 KiB in all */
};

struct meter {
	uint32_t at; /* which allocation is to fail; 0: none */
	uint32_t count; /* allocations since the test wrote 0 here */
	uint64_t place; /* the place whose first allocation is to fail; 0: none */
	uint32_t failed;
	uint32_t n_places; /* of those seen since the test wrote 0 here */
	uint64_t places[PLACES_MAX];
};

static struct meter nobody, *meter = &nobody;
static __thread int looking; /* backtrace() and dladdr() may allocate themselves */

__attribute__((constructor)) static void meter_open(void)
{
	const char *path = getenv("TALLY_STARVE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *there = fd < 0 ? MAP_FAILED
			     : mmap(NULL, sizeof(*meter), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
				    0);
	void *call;

	backtrace(&call, 1); /* loads what it needs now */
	if (fd >= 0)
		close(fd);
	if (there != MAP_FAILED)
		meter = there;
}

/* The calls that lead here, the nearest first, go to calls[CALLS_OWN + CALLS_MAX]. */
static uint64_t place_now(void **calls, int *n_calls)
{
	uint64_t hash = 14695981039346656037U;
	Dl_info file;
	int i, n;

	looking = 1;
	n = backtrace(calls, CALLS_OWN + CALLS_MAX);
	for (i = CALLS_OWN; i < n; i++) {
		uintptr_t base = dladdr(calls[i], &file) ? (uintptr_t)file.dli_fbase : 0;

		hash = (hash ^ ((uintptr_t)calls[i] - base)) * 1099511628211U;
	}
	looking = 0;
	*n_calls = n;
	return hash;
}

static int is_new(uint64_t place)
{
	uint32_t i;

	for (i = 0; i < meter->n_places; i++)
		if (meter->places[i] == place)
			return 0;
	if (meter->n_places < PLACES_MAX)
		meter->places[meter->n_places++] = place;
	return 1;
}

static __attribute__((noinline)) int is_to_fail(void)
{
	void *calls[CALLS_OWN + CALLS_MAX];
	uint64_t place;
	int n_calls;

	if (looking || meter == &nobody)
		return 0;
	meter->count++;
	place = place_now(calls, &n_calls);
	if (meter->count != meter->at && (!is_new(place) || place != meter->place))
		return 0;
	meter->failed = 1;
	backtrace_symbols_fd(calls + CALLS_OWN, n_calls - CALLS_OWN,
			     STDERR_FILENO); /* addr2line -e */
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
