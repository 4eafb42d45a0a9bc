/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Before who waits for results goes to sleep, it looks for them a little longer: to sleep and to be
 * woken takes longer than a small call. Pure; time is an argument in nanoseconds and never goes
 * back.
 *
 * A wait begins when nothing was there, and ends when something has come. Only its beginning is
 * spent in looking, and between two looks the processor is given to whoever wants it.
 *
 * Where nobody has said how long to look, waits for small calls learn from one another. Nobody
 * looks for a while after results took longer, as where a rank is late: so looking in vain takes a
 * small part of the time, whatever waits are like. And nobody looks for longer and longer after
 * others had the processor for long between two looks: then more want to run than there are
 * processors for, and who gives its processor away gets it back late. This is measured and not
 * counted, since a worker can see neither the other containers of its machine nor which processors
 * they use; and other workers that give way soon are no reason to sleep.
 */
#ifndef TALLY_CLIENT_SPIN_H
#define TALLY_CLIENT_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include <tally/tally.h>

enum {
	SPIN_AUTO_NS = 100 * 1000, /* looks so long at most, where nobody has said */
	SPIN_CHUNKS_MAX = 32, /* and only in calls of so few: they leave as one, and come as one */
	SPIN_VAIN_NS = 2 * 1000 *
		       1000, /* after a wait that took longer, nobody looks for so long */
	SPIN_AWAY_NS = 300 * 1000, /* so long between two looks: somebody else wants to run */
	SPIN_PAUSE_MIN_NS = 4 * 1000 * 1000, /* then nobody looks for so long, */
	SPIN_PAUSE_MAX_NS = 1000 * 1000 * 1000, /* and twice as long each time */
};

struct spin {
	uint64_t limit_ns; /* of one wait; 0: never looks */
	bool learns;
	uint64_t since_ns; /* the wait began; 0: there is none */
	uint64_t looked_ns; /* the latest look after which it did not sleep; 0: it did */
	uint64_t pause_ns; /* the latest for others' sake */
	uint64_t until_ns; /* nobody looks */
};

/* Looks so long in each wait, whatever happens. 0: never. */
struct spin spin_fixed(uint64_t limit_ns);

struct spin spin_auto(void);

/*
 * As option spin_us says it (tally.h), or, where that is TALLY_SPIN_AUTO, what $TALLY_SPIN is;
 * NULL: it is not there. -EINVAL: it is none. Sets the error text.
 */
int spin_option(int32_t spin_us, const char *variable, struct spin *ret);

/*
 * There was nothing, and a call of so many chunks runs; 0: none does. True: look again, when the
 * processor was given away; false: sleep.
 */
bool spin_goes_on(struct spin *s, uint32_t chunks, uint64_t now_ns);

/* Something was there. */
void spin_end(struct spin *s, uint64_t now_ns);

#endif
