// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "topology.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"

static const uint64_t RATE_BITS_MAX = 1000000000000000;

void topology_free(struct topology *t)
{
	if (!t)
		return;
	graph_free(t->graph);
	free(t->name);
	free(t->host);
	free(t->way);
	free(t->way_line);
	free(t);
}

uint32_t topology_machine(const struct topology *t, const char *name)
{
	for (uint32_t m = 0; m < t->graph->machines; m++)
		if (!strcmp(t->name[m], name))
			return m;
	return GRAPH_NONE;
}

bool topology_is_word(const char *name) { return !strcmp(name, "any") || !strcmp(name, "none"); }

/* [kmgt][i]: 10^3 to 10^12, or 2^10 to 2^40. Where there is none, it is 1. */
static const char *read_prefix(const char *text, double *ret)
{
	const char *at = strchr("kmgt", *text);
	double base;

	*ret = 1;
	if (*text == '\0' || !at)
		return text;
	base = text[1] == 'i' ? 1024 : 1000;
	for (const char *c = "kmgt"; c <= at; c++)
		*ret *= base;
	return text + (text[1] == 'i' ? 2 : 1);
}

bool topology_rate(const char *text, double *ret)
{
	size_t digits = strspn(text, "0123456789");
	double factor, bits;
	char number[24];
	uint64_t value;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!text_number(number, false, RATE_BITS_MAX, &value) || value == 0)
		return false;
	text = read_prefix(text + digits, &factor);
	bits = value * factor * (strcmp(text, "bps") ? 1 : 8);
	if ((strcmp(text, "bit") != 0 && strcmp(text, "bps") != 0) || bits > RATE_BITS_MAX)
		return false;
	*ret = bits / 8;
	return true;
}
