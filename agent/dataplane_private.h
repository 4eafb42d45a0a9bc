/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What dataplane*.c share: a node is what is pinned in its directory. */
#ifndef TALLY_AGENT_DATAPLANE_PRIVATE_H
#define TALLY_AGENT_DATAPLANE_PRIVATE_H

#include <limits.h>

#include "dataplane.h"

enum pin {
	PIN_JOBS,
	PIN_SLOTS,
	PIN_GROUPS,
	PIN_CHILDREN,
	PIN_CURSORS,
	PIN_COUNTERS,
	PIN_CONSTANTS, /* of the ingress program: node_boot */
	PIN_INGRESS,
	PIN_FANOUT,
	PIN_COUNT,
};

struct dataplane {
	char path[PATH_MAX];
	int directory; /* with the lock */
	int fd[PIN_COUNT];
};

/* Names of the pins. */
extern const char *const pin_name[PIN_COUNT];

/* PIN/NAMESUFFIX; valid until the next call. */
const char *pin_path(const char *pin, const char *name, const char *suffix);

/* --- dataplane_load.c ------------------------------------------------------------------------ */

/* Before libbpf is used: what it says is kept back, or shown when verbose. */
void libbpf_listen(void);

/* Both programs, loaded. They share all maps: fanout makes them, ingress borrows. */
struct programs {
	struct fanout_bpf *fanout;
	struct ingress_bpf *ingress;
	int fd[PIN_COUNT]; /* borrowed from the two */
};

/* With all maps but the slots from `old`, or with new ones; *ret for programs_close(). */
int programs_load(const struct dataplane *old, uint32_t slots, struct programs *ret,
		  struct why *why);
void programs_close(struct programs *p);

/* Pins what `which` has a bit for, in the place of what is there. */
int pins_make(const struct programs *p, const char *pin, unsigned int which, const char *suffix,
	      struct why *why);

/* The kernel's own words for its last refusal; the caller empties it before. */
extern char dataplane_kernel_words[160];

/* --- dataplane.c ----------------------------------------------------------------------------- */

/* A running node's link to one port. */
struct port_link {
	int fd;
	uint32_t ifindex; /* 0: the interface has gone */
	char name[32]; /* of the pin */
};

/* All links that are pinned in a directory; *ret for links_close(). */
int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count);
void links_close(struct port_link *links, unsigned int count);

void link_remove(const char *pin, const struct port_link *link);

/* Attaches a program and pins its link. Sets the port's mode and reason. */
int port_attach(const char *pin, int program, struct dataplane_port *port, struct why *why);

/* --- dataplane_jobs.c ------------------------------------------------------------------------ */

/* Gives every group of the node this program for its copies. */
int dataplane_groups_use(struct dataplane *d, int fanout, struct why *why);

#endif
