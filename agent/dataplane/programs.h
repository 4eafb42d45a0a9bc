/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A node's programs and maps, loaded and pinned. Knows pins.h, and nothing of ports or jobs. */
#ifndef TALLY_AGENT_DATAPLANE_PROGRAMS_H
#define TALLY_AGENT_DATAPLANE_PROGRAMS_H

#include "pins.h"

/* Before libbpf is used: what it says is kept back, or shown when verbose. */
void libbpf_listen(void);

/* All of them, loaded. They share all maps: fanout makes them, the others borrow. */
struct programs {
	struct fanout_bpf *fanout;
	struct ingress_bpf *ingress;
	struct ingress_bpf *called; /* only when a port needs it, as is: */
	struct ingress_tc_bpf *ingress_tc;
	struct tally_constants constants; /* of the ingress programs */
	int fd[PIN_COUNT]; /* borrowed from those, or from an open node */
};

/* Those of an open node, as they run; *ret for programs_close(), before the node is closed. */
int programs_of(const struct dataplane *d, struct programs *ret);

/*
 * `shared`: the program will have to call others. With all maps from `old`, but for the slots and
 * the pool, each if its number is another one; or with new ones; *ret for programs_close().
 */
int programs_load(const struct dataplane *old, uint32_t slots, struct tally_pool pool, bool shared,
		  struct programs *ret, struct why *why);
void programs_close(struct programs *p);

/* The ingress program for TC, over the same maps, loaded when it is asked for first; its fd is
 * `p`'s. */
int programs_tc(struct programs *p, struct why *why);

/*
 * The same for ingress as a program of libxdp's dispatcher may call it: caller and called must be
 * loaded for the same attach type, which the former cannot name; a link's program must name it.
 */
int programs_called(struct programs *p, struct why *why);

/* Pins what `which` has a bit for. */
int pins_make(const struct programs *p, const char *pin, unsigned int which, const char *suffix,
	      struct why *why);

/* The kernel's own words for its last refusal; the caller empties it before. */
extern char dataplane_kernel_words[160];

#endif
