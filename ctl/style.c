// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <langinfo.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "style.h"

struct style style_of(int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
	struct style style = { .utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8") };
	struct winsize size;

	if (!isatty(fd))
		return style;
	style.colour = !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
	style.width = STYLE_WIDTH;
	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col) {
		style.width = size.ws_col;
		style.height = size.ws_row;
	}
	return style;
}

static const char *const sequences[COLOUR_COUNT] = {
	[COLOUR_NONE] = "",	     [COLOUR_BOLD] = "\033[1m",	  [COLOUR_DIM] = "\033[2m",
	[COLOUR_RED] = "\033[1;31m", [COLOUR_GREEN] = "\033[32m", [COLOUR_YELLOW] = "\033[33m",
};

const char *style_begin(const struct style *style, enum colour colour)
{
	return style->colour ? sequences[colour] : "";
}

const char *style_end(const struct style *style, enum colour colour)
{
	return style->colour && colour != COLOUR_NONE ? "\033[0m" : "";
}

static bool begins_a_sign(char c) { return ((unsigned char)c & 0xc0) != 0x80; }

unsigned int style_columns(const char *text)
{
	unsigned int n = 0;

	for (; *text; text++)
		n += begins_a_sign(*text);
	return n;
}

size_t style_bytes(const char *text, unsigned int columns)
{
	const char *at = text;

	for (; *at; at++)
		if (begins_a_sign(*at) && columns-- == 0)
			break;
	return at - text;
}

void style_bar(const struct style *style, double share, unsigned int columns, char *text,
	       size_t size)
{
	/* Eighths of a column, where the terminal has them. */
	static const char *const eighths[] = { "░", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█" };
	unsigned int full, n = 0;

	share = share > 0 ? share < 1 ? share : 1 : 0;
	full = (unsigned int)(share * columns * 8 + 0.5);
	if (size)
		*text = '\0';
	for (unsigned int i = 0; i < columns && n < size; i++) {
		unsigned int part = full > i * 8 ? full - i * 8 : 0;

		part = part > 8 ? 8 : part;
		n += snprintf(text + n, size - n, "%s",
			      style->utf8 ? eighths[part]
			      : part >= 4 ? "#"
					  : ".");
	}
}
