/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The secret that the agents of a cluster share (docs/peering.md). */
#ifndef TALLY_AGENT_PEER_SECRET_H
#define TALLY_AGENT_PEER_SECRET_H

#include <stdint.h>

#include "common/secret.h"
#include "common/why.h"

/*
 * The key of the secret in the file's first line. -EPERM: others than its owner and its group may
 * read or write it; -EINVAL: it is too short or no secret; and what reading a file may say.
 */
int peer_secret_read(const char *path, uint8_t ret[SECRET_KEY_BYTES], struct why *why);

#endif
