// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "rows.h"

#include <stdlib.h>
#include <string.h>

/* At each power of two there may be no room for more: it is doubled there. Where rows were taken
 * away, this is too early at times, and never too late. */
void *rows_grow(void *rows, unsigned int count, size_t size)
{
	const size_t room = count ? 2 * (size_t)count : 1;

	if ((count & (count - 1)) == 0)
		rows = reallocarray(rows, room, size);
	if (rows)
		memset((char *)rows + count * size, 0, size);
	return rows;
}
