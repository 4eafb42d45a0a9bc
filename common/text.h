/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Text that people write and text for people: what the readers of configuration and requests
 * have in common. Pure. Names come as the first member of each element of a table, so that the
 * table that is parsed by is also the one that errors speak of.
 */
#ifndef TALLY_COMMON_TEXT_H
#define TALLY_COMMON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TEXT_QUOTED_BYTES = 48, /* of what text_quote() makes, with its end */
	TEXT_LIST_BYTES = 320, /* fits the names of any of our tables as a list, with its end */
};

/*
 * Decimal digits only: no sign, no blanks, no hex. With `suffixes`, also one k, M or G (thousand,
 * million, thousand million) behind them. False for anything else and for more than `max`.
 */
bool text_number(const char *text, bool suffixes, uint64_t max, uint64_t *ret);

/* The same without suffixes, for numbers of 32 bits. */
bool text_u32(const char *text, uint32_t max, uint32_t *ret);

/* 16 lower-case hex digits, no more and no less. */
bool text_hex64(const char *text, uint64_t *ret);

/* Bytes in lower-case hex: `ret` has room for two digits each, and the end. */
void text_hex_print(const void *bytes, size_t count, char *ret);

/* The same back: 2 * count digits, no more and no less. False: `ret` has a part of them. */
bool text_hex_parse(const char *text, void *ret, size_t count);

/*
 * What somebody wrote, in quotes, to be shown in an error: printable ASCII, strange bytes as '?',
 * and cut, with "..." at its end, if it is long. `ret` has TEXT_QUOTED_BYTES; it is also returned.
 */
const char *text_quote(const char *text, size_t length, char *ret);

/*
 * "a, b and c": the names of a table. Each of `count` elements of `size` bytes begins with its
 * name, a const char *. Cut if it does not fit into TEXT_LIST_BYTES. `ret` is also returned.
 */
const char *text_list(const void *table, size_t count, size_t size, char *ret);

/* The name in such a table that was probably meant: at most a third of it is wrong. Or NULL. */
const char *text_nearest(const void *table, size_t count, size_t size, const char *word);

#endif
