/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Style of the output for people: colour, UTF-8, width. */
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
	STYLE_WIDTH = 100, /* columns, if the width is not known */
};

struct style {
	bool colour;
	bool utf8; /* bars, arrows and sparklines; ASCII otherwise */
	unsigned int width; /* columns; longer lines are cut. 0: never cut */
	unsigned int height; /* lines; 0: no limit */
};

/*
 * The style for this descriptor. A terminal has colour (unless NO_COLOR or TERM forbids that) and
 * its size; anything else has neither. Call setlocale() before.
 */
struct style style_of(int fd);

/* Escape sequences before and after coloured text; "" if there is no colour. */
const char *style_begin(const struct style *style, enum colour colour);
const char *style_end(const struct style *style, enum colour colour);

/* Columns of a UTF-8 text. Each character counts as one column. */
unsigned int style_columns(const char *text);

/* Bytes of the first `columns` columns of a text. */
size_t style_bytes(const char *text, unsigned int columns);

/* Writes a bar of `columns` columns into `text`; `share` (0 to 1) of the bar is full. */
void style_bar(const struct style *style, double share, unsigned int columns, char *text,
	       size_t size);

#endif
