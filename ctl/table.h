/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Prints a JSON array of objects as a table. A column is a heading, the path of the value, a
 * printer, and an alignment. Pure but for writing.
 */
#ifndef TALLY_CTL_TABLE_H
#define TALLY_CTL_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "style.h"

enum {
	CELL_BYTES = 256, /* of a cell, with the final 0; longer texts are cut */
};

struct cell {
	char text[CELL_BYTES];
	enum colour colour;
};

enum table_align {
	TABLE_LEFT,
	TABLE_RIGHT,
	TABLE_ELASTIC, /* left, and cut first if a line is too wide for the terminal */
};

struct column {
	const char *heading;
	const char *key; /* a path: "receive.bytes_per_second" */
	void (*print)(const json_t *row, const char *key, struct cell *ret);
	enum table_align align;
};

/* The value at a path; NULL if it is not there. Borrowed. */
const json_t *field(const json_t *row, const char *path);

/* 0 and "" if there is no value. */
double field_number(const json_t *row, const char *path);
const char *field_text(const json_t *row, const char *path);

/* The first row whose "name" is this; NULL: none. Borrowed. */
const json_t *row_named(const json_t *rows, const char *name);

/* Printers. All print "-" if there is no value. */
void cell_text(const json_t *row, const char *key, struct cell *ret); /* "" is "-", too */
void cell_list(const json_t *row, const char *key, struct cell *ret); /* of texts: "a, b" */
void cell_count(const json_t *row, const char *key, struct cell *ret); /* 1,234 */
void cell_number(const json_t *row, const char *key, struct cell *ret); /* 1234 */
void cell_rate(const json_t *row, const char *key, struct cell *ret); /* 340 k/s */
void cell_bits(const json_t *row, const char *key, struct cell *ret); /* of bytes: 1.2 Gbit/s */
void cell_bytes(const json_t *row, const char *key, struct cell *ret); /* 3.5 MB */
void cell_time(const json_t *row, const char *key, struct cell *ret); /* of Unix time */
void cell_percent(const json_t *row, const char *key, struct cell *ret);

/* A rate that should be 0: red if it is not. */
void cell_bad_rate(const json_t *row, const char *key, struct cell *ret);

/* Limits of a rate and of bits: 0 is "no limit". */
void cell_rate_limit(const json_t *row, const char *key, struct cell *ret);
void cell_bits_limit(const json_t *row, const char *key, struct cell *ret);

/* Prints at most `most` of `rows` (0: all), and how many were left out. -ENOMEM. */
int table_print(FILE *out, const struct style *style, const struct column *columns, size_t count,
		const json_t *rows, size_t most);

#define COLUMNS(columns) (columns), sizeof(columns) / sizeof(*(columns))

#endif
