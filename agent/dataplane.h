/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The data plane of one node, as it stands in the kernel: programs on the node's ports and
 * their maps, all pinned in one directory of a BPF file system. Nothing is kept in memory,
 * so that any process can go on where another one stopped. Only dataplane*.c know libbpf.
 *
 * Whatever changes or reads a node holds a lock on its directory meanwhile. All functions
 * return 0 or a negative errno, and then `why` says what is wrong and what to do.
 */
#ifndef TALLY_AGENT_DATAPLANE_H
#define TALLY_AGENT_DATAPLANE_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

#include "group.h"
#include "util.h"

#define DATAPLANE_PIN "/sys/fs/bpf/tally"

enum {
	DATAPLANE_SLOTS = 4096,
	DATAPLANE_SLOTS_MAX = 1 << 18, /* 900 MB */
	DATAPLANE_XDP_MTU = 3500, /* about what native XDP takes in one buffer */
};

enum dataplane_mode {
	DATAPLANE_AUTO, /* native, or generic where the driver refuses */
	DATAPLANE_NATIVE, /* in the driver, before the stack makes anything of the frame */
	DATAPLANE_GENERIC, /* in the stack */
};

struct dataplane_port {
	uint32_t ifindex;
	char name[IF_NAMESIZE];
	enum dataplane_mode mode; /* wanted; after attaching: NATIVE or GENERIC */
	struct why refused; /* after attaching: why not native, or "" */
};

/* Also what the library has to say goes to stderr. */
void dataplane_be_verbose(void);

/* As many as the kernel may ever have. */
unsigned int dataplane_cpus(void);

/*
 * Loads programs, makes maps with `slots` slots, pins all below `pin` and attaches to each
 * port, in this order. All or nothing. Mounts the BPF file system if it is missing.
 * -EEXIST: a node is there already; -EBUSY: a port has another XDP program.
 */
int dataplane_attach(const char *pin, uint32_t slots, struct dataplane_port *ports,
		     unsigned int count, struct why *why);

/*
 * Puts freshly loaded programs in place of the running ones, port by port without a gap.
 * Jobs, counters and cursors stay; slots start empty, which clients heal. `slots` 0: as many
 * as before. Afterwards the node is on exactly these ports; count 0: on those it was on. All
 * or nothing. -ENOENT: no node; -ENOSPC: the jobs have more slots than that; -ESTALE: the
 * maps are those of another version.
 */
int dataplane_replace(const char *pin, uint32_t slots, struct dataplane_port *ports,
		      unsigned int count, struct why *why);

/* Detaches from all ports, in whatever namespace they are, and removes all pins. */
int dataplane_detach(const char *pin, struct why *why);

struct dataplane;

/* The maps of a running node, locked; the caller's, for dataplane_close() (NULL allowed). */
int dataplane_open(const char *pin, struct dataplane **ret, struct why *why);
void dataplane_close(struct dataplane *d);
static inline void dataplane_closep(struct dataplane **d) { dataplane_close(*d); }

/* Is there an XDP program in this port's driver, whosever? */
bool dataplane_is_native(uint32_t ifindex);

/* Is the node's program on this port? */
bool dataplane_is_attached(struct dataplane *d, uint32_t ifindex);

/*
 * Installs a planned and addressed job: finds slots and a group for it (in `g`), and makes it
 * known last. An older epoch of it goes first. On failure nothing of it is left, the older
 * epoch neither. -EEXIST: it is there with this epoch; -ENOSPC: no slots; -EINVAL: a port is
 * not attached.
 */
int dataplane_job_add(struct dataplane *d, struct group *g, struct why *why);

/* -ENOENT: no such job. */
int dataplane_job_del(struct dataplane *d, uint32_t id, struct why *why);

struct dataplane_job {
	uint32_t id;
	struct tally_job job;
	unsigned int copies;
};

/* All jobs by their numbers; *ret is the caller's, to be freed. */
int dataplane_jobs(struct dataplane *d, struct dataplane_job **ret, unsigned int *ret_count,
		   struct why *why);

/* Summed over all CPUs; `ret` has TALLY_OUTCOME_COUNT of them. */
int dataplane_counters(struct dataplane *d, struct tally_counter *ret, struct why *why);

uint32_t dataplane_slots(const struct dataplane *d);

#endif
