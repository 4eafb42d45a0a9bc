/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers as people write and read them. Pure. */
#ifndef TALLY_CTL_UNITS_H
#define TALLY_CTL_UNITS_H

#include <stddef.h>
#include <stdint.h>

enum {
	UNITS_BYTES = 32, /* of any printed number, with the final 0 */
};

/* "200000", "200k", "1.5M", "10G"; k is 1000. -EINVAL: not a whole number; -ERANGE. */
int units_parse(const char *text, uint64_t *ret);

/* All of these cut texts that do not fit `size`. */
void units_count(uint64_t n, char *text, size_t size); /* 1,234,567 */
void units_rate(double per_second, char *text, size_t size); /* 340 k/s */
void units_bits(double bytes_per_second, char *text, size_t size); /* 1.2 Gbit/s */
void units_bytes(double bytes, char *text, size_t size); /* 3.5 MB */
void units_percent(double percent, char *text, size_t size); /* 0.1 % */
void units_duration(uint64_t seconds, char *text, size_t size); /* 3 d 4 h */

#endif
