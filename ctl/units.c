// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "units.h"

static uint64_t factor_of(char suffix)
{
	return suffix == '\0'			? 1
	       : suffix == 'k' || suffix == 'K' ? 1000
	       : suffix == 'M'			? 1000000
	       : suffix == 'G'			? 1000000000
						: 0;
}

/* Reads digits at *text and moves *text behind them; `decimals` counts them. */
static int digits_take(const char **text, uint64_t *value, unsigned int *decimals)
{
	const char *begin = *text;

	for (; isdigit((unsigned char)**text); (*text)++, (*decimals)++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, **text - '0', value))
			return -ERANGE;
	return *text == begin ? -EINVAL : 0;
}

int units_parse(const char *text, uint64_t *ret)
{
	unsigned int whole = 0, decimals = 0;
	uint64_t value = 0, factor;
	int r;

	r = digits_take(&text, &value, &whole);
	if (r == 0 && *text == '.') {
		text++;
		r = digits_take(&text, &value, &decimals);
	}
	if (r < 0)
		return r;
	factor = factor_of(*text);
	if (!factor || (*text && text[1]))
		return -EINVAL;
	for (; decimals; decimals--) {
		if (factor >= 10)
			factor /= 10;
		else if (value % 10 == 0)
			value /= 10;
		else
			return -EINVAL; /* 1.5 packets */
	}
	if (__builtin_mul_overflow(value, factor, &value))
		return -ERANGE;
	*ret = value;
	return 0;
}

void units_count(uint64_t n, char *text, size_t size)
{
	char digits[UNITS_BYTES], grouped[UNITS_BYTES];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, n), to = 0;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			grouped[to++] = ',';
		grouped[to++] = digits[i];
	}
	grouped[to] = '\0';
	snprintf(text, size, "%s", grouped);
}

/* Two or three significant digits and the prefix of the unit: "1.2 G", "340 k", "17 ". */
static void scaled(double n, const char *unit, char *text, size_t size)
{
	static const char prefixes[][2] = { "", "k", "M", "G", "T", "P", "E" };
	unsigned int i = 0;

	while (n >= 999.5 && i + 1 < sizeof(prefixes) / sizeof(*prefixes)) {
		n /= 1000;
		i++;
	}
	snprintf(text, size, "%.*f%s%s%s", n > 0 && n < 9.95 && (i || n < 0.95 || n > 1.05) ? 1 : 0,
		 n, i || (*unit && *unit != '/') ? " " : "", prefixes[i], unit);
}

void units_rate(double per_second, char *text, size_t size)
{
	scaled(per_second, "/s", text, size);
}

void units_bits(double bytes_per_second, char *text, size_t size)
{
	scaled(bytes_per_second * 8, "bit/s", text, size);
}

void units_bytes(double bytes, char *text, size_t size) { scaled(bytes, "B", text, size); }

void units_percent(double percent, char *text, size_t size)
{
	if (percent > 0 && percent < 0.05)
		snprintf(text, size, "<0.1 %%");
	else
		snprintf(text, size, "%.*f %%", percent > 0 && percent < 9.95 ? 1 : 0, percent);
}

void units_duration(uint64_t seconds, char *text, size_t size)
{
	static const struct {
		const char *unit;
		uint64_t seconds;
	} units[] = { { "d", 86400 }, { "h", 3600 }, { "min", 60 }, { "s", 1 } };
	size_t i = 0;

	while (i < 3 && seconds < units[i].seconds)
		i++;
	if (i == 3)
		snprintf(text, size, "%" PRIu64 " s", seconds);
	else
		snprintf(text, size, "%" PRIu64 " %s %" PRIu64 " %s", seconds / units[i].seconds,
			 units[i].unit, seconds % units[i].seconds / units[i + 1].seconds,
			 units[i + 1].unit);
}
