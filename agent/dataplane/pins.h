/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lowest floor: a node is what is pinned in its directory. Names, the directory and its lock,
 * the layout of the maps; nothing of ports or jobs.
 */
#ifndef TALLY_AGENT_DATAPLANE_PINS_H
#define TALLY_AGENT_DATAPLANE_PINS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <tally/maps.h>

#include "common/util.h"

enum {
	PIN_BYTES = 64, /* of the longest name of a pin, with its end */
	PIN_NO_GROUP = TALLY_JOBS_MAX, /* the index of none */
};

enum pin {
	PIN_GATES,
	PIN_JOBS,
	PIN_TENANTS,
	PIN_SOURCES,
	PIN_SLOTS,
	PIN_POOL,
	PIN_RANKS,
	PIN_GROUPS,
	PIN_CHILDREN,
	PIN_AT_PORTS,
	PIN_COUNTERS,
	PIN_SETTINGS,
	PIN_TRACE,
	PIN_TRACERS,
	PIN_PORTS,
	PIN_NEXT,
	PIN_MAPS, /* all above are maps that both programs share */
	PIN_CONSTANTS = PIN_MAPS, /* of the ingress program: struct tally_constants */
	PIN_INGRESS,
	PIN_FANOUT,
	PIN_COUNT,
};

struct port_link;

/* An open node: all that is pinned of it is held, too, so that no pin is needed to go on. */
struct dataplane {
	char path[PATH_MAX];
	int directory; /* with the lock */
	int fd[PIN_COUNT];
	struct tally_gates gates; /* the map's memory; bucket NULL: not there yet */
	int group[TALLY_JOBS_MAX]; /* maps of copies; -1: no such group */
	struct port_link *links; /* see ports.h */
	unsigned int links_count;
	bool owed[TALLY_ROWS_MAX]; /* rows that programs may count in: see dataplane_settle() */
	uint32_t owing; /* a group that they may have read; PIN_NO_GROUP: none */
	bool unswept; /* jobs may have left something in other maps: see maps_sweep() */
};

/* Names of the pins. */
extern const char *const pin_name[PIN_COUNT];

/*
 * Behind the name of a pin of the next generation. A replacement stages its pins one by one, the
 * fan-out last: from then on ports may have programs of either generation. Renaming the slots
 * commits it, and whoever opens the node then renames what is left. So a process may end at any
 * moment.
 */
#define PIN_STAGED "-new"

/* PIN/NAMESUFFIX; valid until the next call. */
const char *pin_path(const char *pin, const char *name, const char *suffix);

/* Where a group's map is pinned; valid until the next call. */
const char *pin_path_of_group(const char *pin, uint32_t group);

/* Is anything of a node pinned there? All of it? */
bool pins_are_here(const char *pin);
bool pins_are_whole(const char *pin);

/* Is a whole generation staged? */
bool pins_are_staged(const char *pin);

/* Commits it; or goes on where a process that committed it ended; or takes it away. */
int pins_commit(const char *pin);
int pins_settle(const char *pin);
void pins_unstage(const char *pin);

/*
 * So that nothing is taken for gone, or done by halves, for want of files. -EMFILE: this process
 * may not open so many more.
 */
int pins_afford(unsigned int files, struct why *why);

/* So many a replacement has open at a time, beside what is open before it. */
unsigned int pins_files(const char *pin);

/* Takes away all pins but those of ports. */
void pins_remove(const char *pin);

/* Of a running node, whatever its version; -ESTALE: it says nothing that we understand. */
int constants_read(int fd, struct tally_constants *ret);

/* --- directory.c ----------------------------------------------------------------------------- */

bool directory_is_bpffs(const char *path);

/* The node's directory, if it is not there; mounts the BPF file system if that is missing. */
int directory_make(const char *pin, struct why *why);

/*
 * The directory, locked against other processes, or claimed by this one. Waits for whoever works
 * on it. -ENOENT: none, or it went while we waited; -EBUSY: another process has claimed it.
 */
int directory_lock(const char *pin, struct why *why);

/* Is this open directory the one of that name? */
bool directory_is(int fd, const char *path);

/* Has this process claimed it? No more, if somebody took the directory away. */
bool claim_is_ours(const char *pin);

/* An empty one; one that this process has claimed stays. */
int directory_remove(const char *pin, struct why *why);

/* Says that there is none, or what else is wrong with it. */
int no_node(struct why *why, int error, const char *pin);

#endif
