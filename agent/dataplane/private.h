/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of this folder share: a node is what is pinned in its directory. */
#ifndef TALLY_AGENT_DATAPLANE_PRIVATE_H
#define TALLY_AGENT_DATAPLANE_PRIVATE_H

#include <limits.h>

#include "dataplane.h"

enum {
	PIN_BYTES = 64, /* of the longest name of a pin, with its end */
};

enum pin {
	PIN_GATES,
	PIN_JOBS,
	PIN_TENANTS,
	PIN_SOURCES,
	PIN_SLOTS,
	PIN_GROUPS,
	PIN_CHILDREN,
	PIN_CURSORS,
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

struct dataplane {
	char path[PATH_MAX];
	int directory; /* with the lock */
	int fd[PIN_COUNT];
};

/* Names of the pins. */
extern const char *const pin_name[PIN_COUNT];

/* PIN/NAMESUFFIX; valid until the next call. */
const char *pin_path(const char *pin, const char *name, const char *suffix);

/* --- load.c ---------------------------------------------------------------------------------- */

/* Before libbpf is used: what it says is kept back, or shown when verbose. */
void libbpf_listen(void);

/* Both programs, loaded. They share all maps: fanout makes them, ingress borrows. */
struct programs {
	struct fanout_bpf *fanout;
	struct ingress_bpf *ingress;
	struct ingress_tc_bpf *ingress_tc; /* only when a port needs it */
	int fd[PIN_COUNT]; /* borrowed from the two */
};

/*
 * `shared`: the program will have to call others. With all maps from `old`, but for the slots if
 * their number is another one; or with new ones; *ret for programs_close().
 */
int programs_load(const struct dataplane *old, uint32_t slots, bool shared, struct programs *ret,
		  struct why *why);
void programs_close(struct programs *p);

/* The ingress program for TC, over the same maps, loaded when it is asked for first; its fd is
 * `p`'s. */
int programs_tc(struct programs *p, struct why *why);

/* Pins what `which` has a bit for, in the place of what is there. */
int pins_make(const struct programs *p, const char *pin, unsigned int which, const char *suffix,
	      struct why *why);

/* -ESTALE: the node pinned there has maps of another layout. */
int layout_check(const char *pin, struct why *why);

/* The kernel's own words for its last refusal; the caller empties it before. */
extern char dataplane_kernel_words[160];

/* --- directory.c ----------------------------------------------------------------------------- */

bool directory_is_bpffs(const char *path);

/* The node's directory, if it is not there; mounts the BPF file system if that is missing. */
int directory_make(const char *pin, struct why *why);

/*
 * The directory, locked against other processes, or claimed by this one. Waits for whoever works
 * on it. -ENOENT: none, or it went while we waited; -EBUSY: another process has claimed it.
 */
int directory_lock(const char *pin, struct why *why);

/* An empty one; one that this process has claimed stays. */
int directory_remove(const char *pin, struct why *why);

/* Says that there is none, or what else is wrong with it. */
int no_node(struct why *why, int error, const char *pin);

/* --- dataplane.c ----------------------------------------------------------------------------- */

/* What holds a running node to one port. */
struct port_link {
	int fd; /* a BPF link; where the port is shared, the other program; by TC, our program */
	uint32_t ifindex; /* 0: the interface has gone */
	uint32_t beside; /* the other program's number; 0: not shared */
	bool tc; /* no XDP */
	bool elsewhere; /* shared or by TC, in another network namespace */
	char name[PIN_BYTES]; /* of the pin */
};

/* All links that are pinned in a directory; *ret for links_close(). */
int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count);
void links_close(struct port_link *links, unsigned int count);

/* `program` is what we have on the port. */
void link_remove(const char *pin, int program, const struct port_link *link);

/* Ingress programs, by the hooks that ports may have. */
struct ingress {
	int xdp;
	int tc;
};

/* Puts one of them on the port; `before`: the XDP program of ours that may be there. */
int link_update(const char *pin, const struct port_link *link, struct ingress to, int before);

/* Attaches a program and pins its link. Sets the port's mode and reason. */
int port_attach(const char *pin, struct programs *p, struct dataplane_port *port, struct why *why);

/* The network namespace of this thread; 0: unknown. */
uint64_t netns_here(void);

/* --- share.c --------------------------------------------------------------------------------- */

#define SHARE_PREFIX "beside-"

/* Is the program on this port held by a BPF link? `program`: any XDP program of ours. */
bool share_is_barred(uint32_t ifindex, int program);

/* Is there a program on the port that ours is to share it with? */
bool share_is_wanted(const struct dataplane_port *p);

/* Takes that program's place, and calls it from now on. Sets the port's mode and `beside`. */
int share_attach(const char *pin, int program, struct dataplane_port *p, struct why *why);

/* Fills in what the pin `link->name` says. */
int share_read(const char *pin, struct port_link *link);

/* The other program is alone again. */
void share_remove(const char *pin, int program, const struct port_link *link);

int share_update(const struct port_link *link, int program, int before);

/* --- tc.c ------------------------------------------------------------------------------------ */

#define TC_PREFIX "tc-"

/* Makes the port's clsact qdisc if need be. Sets the port's mode. -EBUSY: another node's is there.
 */
int tc_attach(const char *pin, int program, struct dataplane_port *p, struct why *why);

/* Fills in what the pin `link->name` says. */
int tc_read(const char *pin, struct port_link *link);

/* Also the qdisc, if we made it and nobody else uses it. */
void tc_remove(const char *pin, const struct port_link *link);

int tc_update(const char *pin, const struct port_link *link, int program);

bool tc_is_attached(const char *pin, uint32_t ifindex);

/* --- jobs.c ---------------------------------------------------------------------------------- */

int map_error(struct why *why, int error, const char *map);

/* Where a group's map is pinned; valid until the next call. */
const char *group_path(const char *pin, uint32_t group);

/* Gives every group of the node this program for its copies. */
int dataplane_groups_use(struct dataplane *d, int fanout, struct why *why);

/* Returns when no program runs any more that may have seen what was changed before. */
void programs_wait(struct dataplane *d, uint32_t group);

/* Says that there is none. */
int no_job(uint32_t id, struct why *why);

/* --- gates.c --------------------------------------------------------------------------------- */

struct gate {
	struct tally_gate_key key;
	struct tally_gate value;
};

/* Of one job, or of the whole node; for free(). */
struct gates {
	unsigned int count;
	struct gate gate[TALLY_GATES_MAX];
};

/* All gates of the node. */
int gates_read(struct dataplane *d, struct gates **ret, struct why *why);

/*
 * The gates that job `id` is to have, by index `job`: those that it has keep their rows, others get
 * free ones. `wanted` NULL: anywhere, and the node's ports have rows of their own if there are
 * enough. -ENOSPC: no rows; -EINVAL: a port twice.
 */
int gates_plan(struct dataplane *d, const struct gates *all, uint32_t id, uint32_t job,
	       const struct dataplane_gate *wanted, unsigned int count, struct gates **ret,
	       struct why *why);

/* What job `id` has of these; NULL: no memory. */
struct gates *gates_of(const struct gates *all, uint32_t id);

/* Where the job counts what leaves by this port. */
uint32_t gates_row(const struct gates *gates, uint32_t ifindex);

int gates_put(struct dataplane *d, const struct gates *gates, struct why *why);

/* Those of `gates` that are not in `kept`, which may be NULL. */
void gates_remove(struct dataplane *d, const struct gates *gates, const struct gates *kept);

/* Their rows, when no program counts in them any more, go into that of gates that are gone. */
int rows_retire(struct dataplane *d, const struct gates *gates, const struct gates *kept,
		struct why *why);

/* --- children.c ------------------------------------------------------------------------------ */

/* Those of an addressed job; each is told where its copies are counted. */
int children_add(struct dataplane *d, struct installation *g, const struct gates *gates);

void children_remove(struct dataplane *d, uint32_t job);

/* Copies are counted where the job's gates are now. */
int children_recount(struct dataplane *d, const struct gates *gates);

#endif
