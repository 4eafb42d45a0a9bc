// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Texts that others gave, as XML has them. */
#include <limits.h>
#include <stdbool.h>

#include "svg_private.h"
#include "units.h"

/* The bytes of the code point at `c`, which is valid UTF-8, as JSON has it. */
static size_t letter_bytes(const char *c)
{
	const unsigned char lead = (unsigned char)*c;

	return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

/* Controls, also those of Latin 1, and what is no character, of which XML allows none. */
static bool is_forbidden(const char *c)
{
	const unsigned char *u = (const unsigned char *)c;

	return *u < ' ' || *u == 0x7f || (u[0] == 0xc2 && u[1] < 0xa0) ||
	       (u[0] == 0xef && u[1] == 0xbf && u[2] >= 0xbe);
}

static void letter_say(FILE *out, const char *c)
{
	static const struct {
		char letter;
		const char *written;
	} special[] = { { '&', "&amp;" },
			{ '<', "&lt;" },
			{ '>', "&gt;" },
			{ '"', "&quot;" },
			{ '\'', "&#39;" } };

	for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
		if (*c == special[i].letter) {
			fputs(special[i].written, out);
			return;
		}
	if (is_forbidden(c))
		fputc('?', out);
	else
		fwrite(c, 1, letter_bytes(c), out);
}

/* At most so many letters. All texts that others gave are written by this. */
void svg_say_some(FILE *out, const char *text, unsigned int letters)
{
	for (; *text && letters; text += letter_bytes(text), letters--)
		letter_say(out, text);
	if (*text)
		fputs("\xe2\x80\xa6", out);
}

void svg_say(FILE *out, const char *text) { svg_say_some(out, text, UINT_MAX); }

unsigned int svg_letters(const char *text)
{
	unsigned int count = 0;

	for (; *text; text += letter_bytes(text))
		count++;
	return count;
}

/* "6.1 Mbit/s", for a title. */
void svg_bits(FILE *out, double bytes_per_second)
{
	char text[UNITS_BYTES];

	units_bits(bytes_per_second, text, sizeof(text));
	fputs(text, out);
}
