/* SPDX-License-Identifier: GPL-2.0-only */
/* What cost.c sends and bare.bpf.c expects: a contribution over IPv4 with a full payload. */
#ifndef TALLY_TESTS_BENCH_BARE_H
#define TALLY_TESTS_BENCH_BARE_H

#include <tally/wire.h>

enum {
	BARE_BLOCKS = 22, /* 1,408 bytes, for an MTU of 1,500 */
	BARE_HEADER_AT = 14 + 20 + 8, /* behind Ethernet, IPv4 and UDP */
	BARE_PAYLOAD_AT = BARE_HEADER_AT + sizeof(struct tally_header),
	BARE_SENDERS = 63, /* ranks that contribute to a chunk; one more never does */
};

#define BARE_KEY ((struct tally_key){ { 1, 2 } }) /* of all ranks, where they have keys */

#endif
