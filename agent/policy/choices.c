// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "choices.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static bool is_amount(double value) { return isfinite(value) && value >= 0; }

static bool is_sound(const struct choices *c, uint32_t at, const struct choices_option *o)
{
	if (o->then != CHOICES_NONE && (o->then <= at || o->then >= c->count))
		return false;
	for (unsigned int i = 0; i < o->uses; i++)
		if (o->use[i].resource >= c->resources || !is_amount(o->use[i].amount))
			return false;
	return true;
}

int choices_check(const struct choices *c)
{
	for (uint32_t i = 0; i < c->resources; i++)
		if (!is_amount(c->room[i]))
			return -EINVAL;
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->choice[i].options == 0)
			return -EINVAL;
		for (unsigned int k = 0; k < c->choice[i].options; k++)
			if (!is_sound(c, i, &c->choice[i].option[k]))
				return -EINVAL;
	}
	return 0;
}

uint32_t choices_options(const struct choices *c)
{
	uint32_t options = 0;

	for (uint32_t i = 0; i < c->count; i++)
		options += c->choice[i].options;
	return options;
}

double choices_rate(const struct choices *c, const uint32_t *taken, double *ret_load,
		    bool *ret_made)
{
	double rate = INFINITY;

	memset(ret_load, 0, c->resources * sizeof(*ret_load));
	for (uint32_t i = 0; i < c->count; i++)
		ret_made[i] = c->choice[i].always;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct choices_option *o = &c->choice[i].option[taken[i]];

		if (!ret_made[i])
			continue;
		if (o->then != CHOICES_NONE)
			ret_made[o->then] = true;
		for (unsigned int k = 0; k < o->uses; k++)
			ret_load[o->use[k].resource] += o->use[k].amount;
	}
	for (uint32_t i = 0; i < c->resources; i++)
		if (ret_load[i] > 0)
			rate = fmin(rate, c->room[i] / ret_load[i]);
	return rate;
}
