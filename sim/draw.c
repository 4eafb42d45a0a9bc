// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "agent/policy/random.h"

static const double NUMBER_MAX = 1e15;

uint64_t draw_below(uint64_t *random, uint64_t limit) { return random_bits(random) % limit; }

double draw_unit(uint64_t *random) { return ((double)(random_bits(random) >> 11) + 0.5) * 0x1p-53; }

double draw_gap(double mean, uint64_t *random) { return -mean * log(draw_unit(random)); }

/* Digits, perhaps with a point among them, and k, M or G; behind it is *end. */
static bool read_number(const char *text, const char **end, double *ret)
{
	static const char units[] = "kMG";
	size_t digits = strspn(text, "0123456789"), more = 0;
	const char *unit;
	double n;

	if (!digits || digits > 15)
		return false;
	if (text[digits] == '.' && text[digits + 1] != '.')
		more = 1 + strspn(text + digits + 1, "0123456789");
	if (more == 1 || more > 16)
		return false;
	n = strtod(text, NULL);
	text += digits + more;
	unit = *text ? strchr(units, *text) : NULL;
	for (int i = 0; unit && i <= unit - units; i++)
		n *= 1000;
	*end = text + !!unit;
	*ret = n;
	return n <= NUMBER_MAX;
}

bool draw_number(const char *text, double *ret)
{
	const char *end;
	double n;

	if (!read_number(text, &end, &n) || *end)
		return false;
	*ret = n;
	return true;
}

bool draw_parse(const char *text, struct draw *ret)
{
	static const char word[] = "zipf:";
	bool is_zipf = !strncmp(text, word, sizeof(word) - 1);
	struct draw d = { 0 };

	if (!read_number(text + (is_zipf ? sizeof(word) - 1 : 0), &text, &d.low))
		return false;
	d.high = d.low;
	if (!strncmp(text, "..", 2) && !read_number(text + 2, &text, &d.high))
		return false;
	if (is_zipf && (*text != ':' || !read_number(text + 1, &text, &d.zipf) || d.zipf == 0 ||
			d.high - d.low >= DRAW_ZIPF_MAX))
		return false;
	if (*text || d.high < d.low)
		return false;
	*ret = d;
	return true;
}

/* How many steps above `low`: the sum of weights is walked along. */
static uint64_t draw_zipf(const struct draw *d, uint64_t *random)
{
	uint64_t n = 1 + (uint64_t)(d->high - d->low), i = 1;
	double all = 0, at;

	for (uint64_t k = 1; k <= n; k++)
		all += pow((double)k, -d->zipf);
	for (at = draw_unit(random) * all; i < n; i++) {
		at -= pow((double)i, -d->zipf);
		if (at <= 0)
			break;
	}
	return i - 1;
}

double draw_real(const struct draw *d, uint64_t *random)
{
	if (d->zipf > 0)
		return d->low + (double)draw_zipf(d, random);
	return d->low == d->high ? d->low : d->low + (d->high - d->low) * draw_unit(random);
}

uint64_t draw_whole(const struct draw *d, uint64_t *random)
{
	uint64_t low = (uint64_t)round(d->low), high = (uint64_t)round(d->high);

	if (d->zipf > 0)
		return low + draw_zipf(d, random);
	return low + (low == high ? 0 : draw_below(random, high - low + 1));
}
