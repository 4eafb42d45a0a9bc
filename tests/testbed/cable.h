/* SPDX-License-Identifier: GPL-2.0-only */
/* What a cable's program and the one who sets its faults must agree on. */
#ifndef TALLY_TESTBED_CABLE_H
#define TALLY_TESTBED_CABLE_H

enum direction {
	UP,
	DOWN
};

/* Where in its frame a bit is flipped. Header and payload: frames that are not UDP stay whole. */
enum region {
	ANYWHERE, /* behind the Ethernet header */
	HEADER, /* the first MESSAGE_HEADER_BYTES of the UDP datagram: Tally's header */
	PAYLOAD, /* what comes behind these */
	REGIONS
};

enum {
	PPM_ONE = 1000000,
	MESSAGE_HEADER_BYTES = 64
};

#endif
