/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The programs on a node's ports. There are several ways to hold a program to a port: each is a
 * struct port_kind, in a file of its own, and one line of the table in ports.c. Knows programs.h
 * and pins.h, and nothing of jobs.
 */
#ifndef TALLY_AGENT_DATAPLANE_PORTS_H
#define TALLY_AGENT_DATAPLANE_PORTS_H

#include <errno.h>

#include "agent/core/dataplane_state.h"
#include "pins.h"
#include "programs.h"

/* What holds a running node to one port. */
struct port_link {
	const struct port_kind *kind;
	int fd; /* what is pinned: see the kinds */
	uint32_t ifindex; /* 0: the interface has gone */
	uint32_t beside; /* the other program's number; 0: not shared */
	char name[PIN_BYTES]; /* of the pin; it says: */
	uint32_t pinned; /* the interface's number, also if the interface has gone */
	bool elsewhere; /* in another network namespace, and cannot be changed from here */
	bool made; /* TC: the qdisc is ours */
	enum dataplane_mode
		was; /* replace.c: its mode, where the port is to get another; or AUTO */
};

/*
 * One way to hold a program to a port. What asks the kernel fails where the kernel did not say
 * (query_failed()): nobody is to take that for a port that has gone.
 */
struct port_kind {
	const char *prefix; /* of its pins' names; no kind's is the beginning of another's */
	unsigned int numbers; /* behind it: IFINDEX, IFINDEX-NETNS or IFINDEX-NETNS-MADE */
	enum dataplane_mode mode; /* of all its ports; AUTO: as the interface says */
	bool pins_program; /* the pin is our program; otherwise that is the node's XDP program */

	/*
	 * Is this kind to be tried? `error`: what the kind before it said; 0: none was tried.
	 * `program`: our XDP program.
	 */
	bool (*suits)(const struct dataplane_port *p, int program, int error);

	/* Our program for such ports; its fd is `p`'s. */
	int (*program)(struct programs *p, struct why *why);

	/* Attaches and pins. Sets the port's mode, reason and `beside`. */
	int (*attach)(const char *pin, int program, struct dataplane_port *p, struct why *why);

	/* Finds the port's interface, and what else is not in the pin's name. */
	int (*read)(const char *pin, struct port_link *link);

	/* Puts `program` in the place of ours, with no gap. */
	int (*update)(const char *pin, const struct port_link *link, int program);

	/* Takes ours away, with the pin. */
	void (*remove)(const char *pin, const struct port_link *link);

	/* Is our program there? 1 or 0. */
	int (*is_attached)(const char *pin, uint32_t ifindex);

	/* Says why a port in another network namespace cannot be changed; -EXDEV. NULL: all can. */
	int (*elsewhere_say)(const char *pin, const struct port_link *link, struct why *why);
};

extern const struct port_kind port_dispatcher_kind; /* libxdp's: the pin is our program */
extern const struct port_kind port_link_kind; /* a BPF link: its pin */
extern const struct port_kind port_shared_kind; /* calls another program: its pin */
extern const struct port_kind port_tc_kind; /* a TC filter: the pin is our program */

/* All that are pinned in a directory; *ret for links_close(). */
int links_open(const char *pin, struct port_link **ret, unsigned int *ret_count);
void links_close(struct port_link *links, unsigned int count);

/* Which interfaces of an open node are still there, and held? */
int ports_refresh(struct dataplane *d, struct why *why);

/* Attaches by the kind that suits, and pins. Sets the port's mode and reason. */
int port_attach(const char *pin, struct programs *programs, struct dataplane_port *p,
		struct why *why);

/* Puts `program` in the place of ours, with no gap. If it is pinned: staged before. */
int port_update(const char *pin, const struct port_link *link, int program);

/* The pin of a port in this network namespace; valid until the next call of pin_path(). */
const char *port_pin(const char *pin, const struct port_kind *kind, uint32_t ifindex, bool made);

/* For kinds that are XDP. */
int program_of_xdp(struct programs *p, struct why *why);

/*
 * Does this error of a query say nothing of what was asked for? Somebody had no memory, or no file,
 * for the answer.
 */
static inline bool query_failed(int error)
{
	return error == -ENOMEM || error == -ENOBUFS || error == -EMFILE || error == -ENFILE ||
	       error == -EAGAIN || error == -EINTR;
}

/* The node's XDP program on this port, of either generation; the caller's. -ENOENT: none is. */
int port_program(const char *pin, uint32_t ifindex);

/* The network namespace of this thread; 0: unknown. */
uint64_t netns_here(void);

/* The kernel's number of a program; 0: unknown. */
uint32_t program_number(int fd);

/* Is there a program on the port that ours is to share it with? */
bool share_is_wanted(const struct dataplane_port *p);

/* Is the program on this port held by a BPF link? `program`: any XDP program of ours. */
bool share_is_barred(uint32_t ifindex, int program);

#endif
