/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lines of a key and a value, by a table of keys. Pure. Two forms: strict lines that come over a
 * connection, bit by bit, and loose ones that people write into a file.
 */
#ifndef TALLY_COMMON_LINES_H
#define TALLY_COMMON_LINES_H

#include "keys.h"

enum {
	LINES_BYTES_MAX = 1024, /* of a strict line, before its end */
};

/* Walks over the lines of a text, and keeps a copy of the last one, cut into key and value. */
struct lines {
	struct reading reading;
	const char *text;
	size_t length, at; /* `at`: behind the last line that was taken */
	size_t line_max; /* bytes of a strict line; 0: lines are loose */
	unsigned int line; /* from 1: the last one */
	bool more; /* loose: there is a second value */
	struct value key, value; /* of the last line; both texts are in `copy` */
	char copy[LINES_BYTES_MAX + 1];
};

/* Strict lines: printable ASCII, one blank between key and value. No value is ever in `why`. */
void lines_init(struct lines *l, const char *text, size_t length, size_t line_max, char *why,
		size_t why_size);

/* Loose lines: more blanks, remarks behind #, empty lines; the last one needs no end. */
void lines_init_loose(struct lines *l, const char *text, size_t length, char *why, size_t why_size);

/*
 * The next line. What is wrong with a strict one is found before its end has come. -EAGAIN: there
 * is no other, or not all of it; -EINVAL; -EMSGSIZE: longer than line_max, never -EAGAIN to that.
 */
int lines_next(struct lines *l);

bool lines_is_empty(const struct lines *l);

/* Takes the last line into a struct; *seen has a bit for each key that was there. -EINVAL. */
int lines_take(struct lines *l, const struct keys *keys, void *into, uint32_t *seen);

/* -EINVAL: a needed key has had no line. */
int lines_end(struct lines *l, const struct keys *keys, uint32_t seen);

/* Says what is wrong with the last line, and returns `error`. */
__attribute__((format(printf, 3, 4))) int lines_refuse(struct lines *l, int error,
						       const char *format, ...);

/*
 * `head`, a line for each key, and `tail`. 0: *ret_length bytes and a NUL are in `text`; -ENOSPC:
 * `size` is too small, and `text` has a part.
 */
int lines_print(const char *head, const struct keys *keys, const void *from, const char *tail,
		char *text, size_t size, size_t *ret_length);

#endif
