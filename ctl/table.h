/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON for people: an array of objects as a table. A column is a line of a table of its own:
 * heading, where the value is, how it is printed, and how it stands. Pure but for writing.
 */
#ifndef TALLY_CTL_TABLE_H
#define TALLY_CTL_TABLE_H

#include <jansson.h>
#include <stdio.h>

#include "style.h"

enum {
	CELL_BYTES = 256, /* of a cell, with its end; what is longer is cut */
};

struct cell {
	char text[CELL_BYTES];
	enum colour colour;
};

enum table_place {
	TABLE_LEFT,
	TABLE_RIGHT,
	TABLE_ELASTIC, /* left, and cut first where a line is too wide for the terminal */
};

struct column {
	const char *heading;
	const char *key; /* a path: "receive.bytes_per_second" */
	void (*print)(const json_t *row, const char *key, struct cell *ret);
	enum table_place place;
};

/* The value at a path; NULL if it is not there. Borrowed. */
const json_t *field(const json_t *row, const char *path);

/* What is not there is 0 and "". */
double field_number(const json_t *row, const char *path);
const char *field_text(const json_t *row, const char *path);

/* Printers; what is not there is "-", in all. */
void cell_text(const json_t *row, const char *key, struct cell *ret); /* "" is "-", too */
void cell_list(const json_t *row, const char *key, struct cell *ret); /* of texts: "a, b" */
void cell_count(const json_t *row, const char *key, struct cell *ret); /* 1,234 */
void cell_number(const json_t *row, const char *key, struct cell *ret); /* 1234 */
void cell_rate(const json_t *row, const char *key, struct cell *ret); /* 340 k/s */
void cell_bits(const json_t *row, const char *key, struct cell *ret); /* of bytes: 1.2 Gbit/s */
void cell_bytes(const json_t *row, const char *key, struct cell *ret); /* 3.5 MB */
void cell_time(const json_t *row, const char *key, struct cell *ret); /* of Unix time */
void cell_percent(const json_t *row, const char *key, struct cell *ret);

/* A rate that is bad news: red unless 0. */
void cell_bad_rate(const json_t *row, const char *key, struct cell *ret);

/* A rate's or a number of bits' limit: 0 is "no limit". */
void cell_rate_limit(const json_t *row, const char *key, struct cell *ret);
void cell_bits_limit(const json_t *row, const char *key, struct cell *ret);

/* `rows` is an array; `most` of them at most, 0: all. Says how many were left out. -ENOMEM. */
int table_print(FILE *out, const struct style *style, const struct column *columns, size_t count,
		const json_t *rows, size_t most);

#define COLUMNS(columns) (columns), sizeof(columns) / sizeof(*(columns))

#endif
