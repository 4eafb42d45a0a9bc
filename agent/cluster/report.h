/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Read this file first: then picture.h, hello.h.
 *
 * What an agent says of its node to the others, as a value of the store (docs/cluster.md): who is
 * behind its ports, what their lines carry and have on them, and how its jobs are. JSON to a plain
 * struct and back. Pure.
 */
#ifndef TALLY_CLUSTER_REPORT_H
#define TALLY_CLUSTER_REPORT_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/maps.h>

#include "common/keys.h"
#include "common/name.h"
#include "common/rows.h"
#include "common/why.h"

enum {
	REPORT_SERVICES_MAX = 16,
	REPORT_ADDRESSES_MAX = 64,
	REPORT_NEARS_MAX = 1024, /* of all ports */
	REPORT_HOSTS_MAX = 1024, /* the same */
	REPORT_JOBS_MAX = 1024,
	REPORT_LATES_MAX = 8, /* of a job */
	REPORT_TENANTS_MAX = TALLY_TENANTS_MAX,
	REPORT_ROUTES_MAX = 256, /* of more, none are told: paths are taken to be the shortest */
	REPORT_PREFIX_BYTES = 72, /* any printed prefix such as fd77:3::/64, with its end */
	REPORT_WHY_BYTES = 256,
	REPORT_VERSION_BYTES = 32,
	REPORT_AGENT_BYTES = 64,
	REPORT_IP_BYTES = 46, /* any printed address, with its end */
	REPORT_MAC_BYTES = 18, /* 02:00:00:00:00:01, with its end */
	REPORT_EVERY_MS = 1000, /* no more often */
	REPORT_LOADS_MS = 5000, /* the same, where loads alone have changed */
};

/* Rates in bytes a second; forecasts are TRAFFIC_FORECAST_S ahead. */
struct report_port {
	char name[IF_NAMESIZE];
	char mac[REPORT_MAC_BYTES]; /* "": not known */
	char ip4[REPORT_IP_BYTES], ip6[REPORT_IP_BYTES]; /* by which the next node reaches it
							  * there; "": none */
	bool up; /* and there is somebody at the other end */
	uint32_t rate_mbps; /* of the line, each way; 0: not known */
	uint64_t receive, receive_forecast, transmit, transmit_forecast;
};

struct report_near { /* a node that was heard */
	char port[IF_NAMESIZE]; /* of this node */
	char node[NAME_BYTES];
	char at[IF_NAMESIZE]; /* that node's port */
};

struct report_host { /* somebody else, of the kernel's neighbours; perhaps a node by its address */
	char port[IF_NAMESIZE];
	struct sockaddr_storage address; /* with TALLY_UDP_PORT */
	char mac[REPORT_MAC_BYTES]; /* one machine may have several addresses */
};

struct report_route { /* of the family of service[0]; several of one prefix share its packets */
	char to[REPORT_PREFIX_BYTES]; /* 10.77.3.0/24; 0.0.0.0/0: all that have no other route */
	char port[IF_NAMESIZE]; /* "": an interface that is none of the node's ports */
};

struct report_late { /* a rank that others wait for */
	uint16_t rank;
	uint8_t percent; /* of the looks at the run */
};

struct report_job {
	char name[NAME_BYTES];
	uint32_t id;
	bool inner; /* its root is elsewhere */
	bool runs, in_software, borrows;
	uint16_t workers, joined;
	uint16_t payload_bytes; /* of the run; 0: there is none, or an older agent tells */
	unsigned int connected; /* ranks of the run that can be told to move */
	uint64_t bytes_per_second, chunks_per_second, chunks_forecast;
	unsigned int lates;
	struct report_late *late; /* grows as the report's lists */
};

struct report_tenant { /* of the cluster */
	char name[NAME_BYTES];
	uint32_t slots; /* that are reserved for it here */
	uint32_t slots_kept; /* as of a report, of this tenant */
	bool held; /* that is as many as the cluster wants, and it comes in where that wants */
	bool gated; /* the cluster says where it comes in, and the node keeps to it */
	bool apart; /* it comes in at other nodes alone, so it has no slots here */
	bool own; /* the node has one of that name of its own, and its limits are that one's */
	char why[REPORT_WHY_BYTES]; /* it is not held, in words */
};

/*
 * Its lists grow (ROWS_ADD of rows.h), each up to its _MAX above, or TALLY_PORTS_MAX, and are its
 * own. One that has no elements is NULL.
 */
struct report {
	char node[NAME_BYTES];
	char agent[REPORT_AGENT_BYTES]; /* the same after a restart, and no other machine's
					 * (claim.h);
					 * "": an earlier tallyd's */
	char version[REPORT_VERSION_BYTES]; /* of tallyd */
	bool cordoned;
	bool steers; /* it makes packets take the ways that are wanted (wanted_ways.h) */
	bool inner; /* it takes parts in trees of other nodes: it has a secret in common with them
		     */
	uint32_t slots, slots_free;
	uint32_t slots_kept; /* no next job of the tenant that all nodes have can get these, as they
			      * are others', or promised; 0 where an older agent does not say it */
	unsigned int services, addresses, ports, nears, hosts, routes, jobs, tenants;
	struct sockaddr_storage *service;
	struct sockaddr_storage *address; /* all of the machine */
	struct report_port *port;
	struct report_near *near;
	struct report_host *host;
	struct report_route *route;
	struct report_job *job;
	struct report_tenant *tenant;
};

extern const struct keys report_keys;

/* Zeros; the caller's, for report_free(), which allows NULL. NULL: no memory. */
struct report *report_new(void);
void report_free(struct report *r);

static inline void report_freep(struct report **r) { report_free(*r); }

/* The caller's, to free(); NULL: no memory. */
char *report_print(const struct report *r);

/* *ret is the caller's, for report_free(). What it has beyond these keys is a later agent's, and
 * left alone. -EINVAL, -ENOMEM. */
int report_parse(const char *text, struct report **ret, struct why *why);

/* The first service address of this family; NULL: it has none. */
const struct sockaddr_storage *report_service_find(const struct report *r, int family);

/* Of the node's slots, what no next job of that tenant gets, and how many it would get; where an
 * agent tells nothing of it, all that no run has. */
uint32_t report_slots_kept(const struct report *r, const char *tenant);
uint32_t report_slots_left(const struct report *r, const char *tenant);

/* NULL: it tells nothing of that tenant. */
const struct report_tenant *report_tenant_find(const struct report *r, const char *name);

enum report_news {
	REPORT_SAME, /* or nearly: no load has changed by more than a twentieth of its line */
	REPORT_LOADS,
	REPORT_MORE,
};

enum report_news report_compare(const struct report *before, const struct report *now);

#endif
