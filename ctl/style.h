/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How to write for people: colour, signs beyond ASCII, and how wide. */
#ifndef TALLY_CTL_STYLE_H
#define TALLY_CTL_STYLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum colour {
	COLOUR_NONE,
	COLOUR_BOLD,
	COLOUR_DIM,
	COLOUR_RED,
	COLOUR_GREEN,
	COLOUR_YELLOW,
	COLOUR_COUNT,
};

enum {
	STYLE_WIDTH = 100, /* columns, where nobody says how many there are */
};

struct style {
	bool colour;
	bool utf8; /* bars, arrows and sparklines; ASCII otherwise */
	unsigned int width; /* columns; lines are cut to it. 0: never cut */
	unsigned int height; /* lines; 0: as many as there are */
};

/*
 * What suits this descriptor: colour and its size if it is a terminal and NO_COLOR and TERM do
 * not forbid it; neither colour nor a limit otherwise. Needs setlocale() before.
 */
struct style style_of(int fd);

/* "" unless there is colour. `style_end` closes what `style_begin` opened. */
const char *style_begin(const struct style *style, enum colour colour);
const char *style_end(const struct style *style, enum colour colour);

/* Columns that a text takes: UTF-8, each sign one column wide, as all of ours are. */
unsigned int style_columns(const char *text);

/* Bytes of the first `columns` columns of it. */
size_t style_bytes(const char *text, unsigned int columns);

/* A bar of `columns` columns, `share` of it (0 to 1) full, in `text`. Cut if too long. */
void style_bar(const struct style *style, double share, unsigned int columns, char *text,
	       size_t size);

#endif
