/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The secret that the agents of a cluster share (docs/peering.md). */
#ifndef TALLY_AGENT_PEER_SECRET_H
#define TALLY_AGENT_PEER_SECRET_H

#include <stdint.h>

#include "common/secret.h"
#include "common/why.h"

enum {
	PEER_SECRETS = 2,
};

/*
 * The keys of the secrets in the file's lines: of the one that this node proves when it listens,
 * and of another one that it takes from those that listen; without a second line the same again.
 * -EPERM: others than its owner and its group may read or write it; -EINVAL: a line is too short or
 * no secret, or there are none or more than two; and what reading a file may say.
 */
int peer_secret_read(const char *path, uint8_t ret[PEER_SECRETS][SECRET_KEY_BYTES],
		     struct why *why);

#endif
