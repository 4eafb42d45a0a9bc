/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lists that grow as they are filled: a pointer to rows and a number that counts them, beside each
 * other in a struct, both zeros at first. There is room for twice as many at most, so no capacity
 * is kept. The rows are the struct's, to free().
 */
#ifndef TALLY_COMMON_ROWS_H
#define TALLY_COMMON_ROWS_H

#include <stddef.h>

/* Room for one row behind `count` rows of `size` bytes: all zeros; the caller counts it. It may
 * move the rows. NULL: no memory, and they are as they were. */
void *rows_grow(void *rows, unsigned int count, size_t size);

/* A row of zeros at the end of a list, counted already; NULL: no memory. */
#define ROWS_ADD(list, count)                                           \
	__extension__({                                                 \
		void *_grown = rows_grow(list, count, sizeof(*(list))); \
		__typeof__(list) _row = NULL;                           \
		if (_grown) {                                           \
			(list) = _grown;                                \
			_row = &(list)[(count)++];                      \
		}                                                       \
		_row;                                                   \
	})

#endif
