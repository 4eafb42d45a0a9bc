/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Datagrams to whoever is at a link, and no further: IPv4's broadcast and IPv6's all nodes, at UDP
 * port HELLO_PORT. They need no address of the link, no route and no capability.
 */
#ifndef TALLY_AGENT_HELLOS_H
#define TALLY_AGENT_HELLOS_H

#include <stddef.h>
#include <stdint.h>

#include "common/why.h"

struct hellos;
typedef struct sd_event sd_event; /* systemd/sd-event.h */

/* `ifindex`: where it came in. What has passed a router is not told. */
typedef void hellos_heard(void *context, uint32_t ifindex, const uint8_t *bytes, size_t length);

/* *ret is the caller's, for hellos_close(), which allows NULL. A negative errno, and why. */
int hellos_open(sd_event *loop, hellos_heard *heard, void *context, struct hellos **ret,
		struct why *why);
void hellos_close(struct hellos *h);

/* By both families, as far as the link has them. What cannot be sent is lost. */
void hellos_send(struct hellos *h, uint32_t ifindex, const uint8_t *bytes, size_t length);

#endif
