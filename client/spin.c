// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "spin.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "error.h"

enum {
	QUIET_PAUSES = 8, /* so many times the latest pause without others: the next is shorter */
};

struct spin spin_fixed(uint64_t limit_ns) { return (struct spin){ .limit_ns = limit_ns }; }

struct spin spin_auto(void) { return (struct spin){ .limit_ns = SPIN_AUTO_NS, .learns = true }; }

int spin_option(int32_t spin_us, const char *variable, struct spin *ret)
{
	uint32_t us = spin_us > 0 ? (uint32_t)spin_us : 0;

	if (spin_us < TALLY_SPIN_NEVER || spin_us > TALLY_SPIN_US_MAX)
		return error_set(-EINVAL,
				 "spin_us: %d, allowed are 1 to %d, TALLY_SPIN_AUTO and "
				 "TALLY_SPIN_NEVER",
				 spin_us, TALLY_SPIN_US_MAX);
	if (spin_us == TALLY_SPIN_AUTO) {
		if (!variable || !*variable || !strcmp(variable, "auto")) {
			*ret = spin_auto();
			return 0;
		}
		if (!text_u32(variable, TALLY_SPIN_US_MAX, &us))
			return error_set(-EINVAL,
					 "$TALLY_SPIN: '%.80s': microseconds, 0 to %d, or 'auto'",
					 variable, TALLY_SPIN_US_MAX);
	}
	*ret = spin_fixed(us * UINT64_C(1000));
	return 0;
}

static void pause_until(struct spin *s, uint64_t until_ns)
{
	if (s->until_ns < until_ns)
		s->until_ns = until_ns;
}

/* Somebody else had the processor since the latest look. */
static void give_others_room(struct spin *s, uint64_t now_ns)
{
	s->pause_ns = s->pause_ns ? 2 * s->pause_ns : SPIN_PAUSE_MIN_NS;
	if (s->pause_ns > SPIN_PAUSE_MAX_NS)
		s->pause_ns = SPIN_PAUSE_MAX_NS;
	pause_until(s, now_ns + s->pause_ns);
}

/* Slowly: who computes now and then is not gone for good, and only the next pause is shorter. */
static void forget_others(struct spin *s, uint64_t now_ns)
{
	s->pause_ns = s->pause_ns > SPIN_PAUSE_MIN_NS ? s->pause_ns / 2 : 0;
	s->until_ns = now_ns;
}

static bool was_away(const struct spin *s, uint64_t now_ns)
{
	return s->looked_ns && now_ns - s->looked_ns >= SPIN_AWAY_NS;
}

bool spin_goes_on(struct spin *s, uint32_t chunks, uint64_t now_ns)
{
	if (!chunks || !s->limit_ns) {
		s->since_ns = s->looked_ns = 0;
		return false;
	}
	if (!s->since_ns)
		s->since_ns = now_ns;
	if (was_away(s, now_ns))
		give_others_room(s, now_ns);
	else if (s->looked_ns && now_ns - s->since_ns >= s->limit_ns)
		pause_until(s, now_ns + SPIN_VAIN_NS);
	s->looked_ns = 0;
	if (now_ns - s->since_ns >= s->limit_ns)
		return false;
	if (s->learns && (chunks > SPIN_CHUNKS_MAX || now_ns < s->until_ns))
		return false;
	s->looked_ns = now_ns;
	return true;
}

void spin_end(struct spin *s, uint64_t now_ns)
{
	if (was_away(s, now_ns))
		give_others_room(s, now_ns);
	else if (s->looked_ns && now_ns - s->until_ns >= QUIET_PAUSES * s->pause_ns)
		forget_others(s, now_ns);
	s->since_ns = s->looked_ns = 0;
}
