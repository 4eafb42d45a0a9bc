/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One of many leads: whoever has written a key that was not there, leased, as long as the key is
 * there. Who leads is what the store says, and nobody's opinion: a process that was cut off may
 * believe for a while that it still leads, so each write of a leader names the key as it was
 * written (leader_seen()), and no write of a leader of before is done.
 */
#ifndef TALLY_AGENT_STORE_LEADER_H
#define TALLY_AGENT_STORE_LEADER_H

#include "store.h"

struct leader;

enum {
	LEADER_NAME_BYTES = 64, /* with its end */
	LEADER_RETRY_MS = 1000, /* from one try to the next */
};

/*
 * From now on we want to lead. `changed`: who leads now; NULL: nobody, for the moment, or who has
 * no name that a node can have. Key and name, without a space, are copied. *ret is the caller's for
 * leader_close(), when the store is closed. -EINVAL, -ENOMEM.
 */
int leader_campaign(sd_event *loop, struct store *s, const char *key, const char *name,
		    void (*changed)(void *context, const char *name, bool is_us), void *context,
		    struct leader **ret);
void leader_close(struct leader *l); /* or NULL */

/* Do we want to lead, after all? Whoever leads and does not want to leaves it to others: called now
 * and then, as what was written may be on its way. */
void leader_stand(struct leader *l, bool stands);

/*
 * We lead, as far as we know: *ret is what each of our writes must have seen; it lives as long as
 * we lead. False: we do not.
 */
bool leader_seen(const struct leader *l, struct store_seen *ret);

#endif
