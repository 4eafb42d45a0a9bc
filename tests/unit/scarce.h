/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that runs out. The linker sends calls of calloc() and reallocarray() here (see SCARCE in
 * the Makefile); what libraries allocate is not touched.
 */
#ifndef TALLY_TESTS_UNIT_SCARCE_H
#define TALLY_TESTS_UNIT_SCARCE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

static unsigned int scarce_left = UINT32_MAX; /* so many allocations succeed */

void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

static inline bool scarce_take(void)
{
	if (scarce_left == 0)
		return false;
	scarce_left--;
	return true;
}

void *__wrap_calloc(size_t count, size_t size)
{
	return scarce_take() ? __real_calloc(count, size) : NULL;
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
	return scarce_take() ? __real_reallocarray(old, count, size) : NULL;
}

/* With each number of allocations `run` returns -ENOMEM, until it has enough and returns 0. */
static inline void run_out_of_memory(int (*run)(void *), void *context)
{
	unsigned int left = 0;
	int r;

	do {
		scarce_left = left;
		r = run(context);
		scarce_left = UINT32_MAX;
		assert_true(r == -ENOMEM || r == 0);
		left++;
	} while (r < 0);
	assert_true(left > 1);
}

#endif
