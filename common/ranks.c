// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ranks.h"

unsigned int ranks_count(const struct tally_set *ranks)
{
	unsigned int n = 0;

	for (int i = 0; i < TALLY_SET_WORDS; i++)
		n += __builtin_popcountll(ranks->word[i]);
	return n;
}

/* One to three digits at *at; steps past them. */
static bool rank_take(const char **at, unsigned int *ret)
{
	unsigned int rank = 0, digits = 0;

	for (; **at >= '0' && **at <= '9' && digits < 3; (*at)++, digits++)
		rank = rank * 10 + (**at - '0');
	if (!digits || rank >= TALLY_WORKERS_MAX)
		return false;
	*ret = rank;
	return true;
}

int ranks_parse(const char *text, struct tally_set *ret)
{
	struct tally_set ranks = { { 0 } };
	unsigned int first, last;

	for (;; text++) {
		if (!rank_take(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (!rank_take(&text, &last) || last < first)
				return -EINVAL;
		}
		for (; first <= last; first++)
			tally_set_add(&ranks, first);
		if (*text != ',')
			break;
	}
	if (*text)
		return -EINVAL;
	*ret = ranks;
	return 0;
}

void ranks_print(const struct tally_set *ranks, char *text, size_t size)
{
	size_t used = 0;

	if (size)
		*text = '\0';
	for (uint32_t rank = 0; rank < TALLY_WORKERS_MAX && used < size; rank++) {
		uint32_t last = rank;

		if (!tally_set_has(ranks, rank))
			continue;
		while (last + 1 < TALLY_WORKERS_MAX && tally_set_has(ranks, last + 1))
			last++;
		used += snprintf(text + used, size - used, "%s%u", used ? "," : "", rank);
		if (last > rank && used < size)
			used += snprintf(text + used, size - used, "-%u", last);
		rank = last;
	}
}
