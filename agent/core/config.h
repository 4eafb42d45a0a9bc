/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration of tallyd (docs/config.md): YAML in, plain struct out. All defaults are here.
 * Parsing is pure; only config_read() touches a file.
 */
#ifndef TALLY_AGENT_CONFIG_H
#define TALLY_AGENT_CONFIG_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tally/maps.h>

#include "dataplane_state.h"
#include "log_level.h"
#include "tenant.h"
#include "common/keys.h"
#include "common/owned.h"
#include "common/why.h"

#define CONFIG_FILE "/etc/tally/tallyd.yaml"
#define CONFIG_STATE "/var/lib/tally/state.json"
#define CONFIG_CLUSTER_FILE "/var/lib/tally/cluster.json"
#define CONFIG_CONTROL_SOCKET "/run/tally/control.sock"
#define CONFIG_JOIN_SOCKET "/run/tally/join.sock"
#define CONFIG_METRICS_LISTEN "127.0.0.1:9464"
#define CONFIG_TENANT TENANT_DEFAULT /* whose jobs are that name no tenant */

enum {
	CONFIG_BYTES_MAX = 1 << 20, /* of a file */
	CONFIG_SERVICES_MAX = 16,
	CONFIG_LISTENS_MAX = CONFIG_SERVICES_MAX,
	CONFIG_PATH_BYTES = 256, /* of a name in a file system, with its end */
	CONFIG_SOCKET_BYTES = 108, /* the same of a socket: what the kernel takes */
	CONFIG_PEERS_MAX = 64,
	CONFIG_PEER_ALSO_MAX = 16,
	CONFIG_ETCDS_MAX = 8,
	CONFIG_URL_BYTES = 128, /* with its end */
	CONFIG_SLOTS_MIN = 2,
	CONFIG_SAMPLE_MS = 1000,
	CONFIG_SPILL_MIB = 256,
	CONFIG_SPILL_MIB_MAX = 1 << 20,
	CONFIG_SPILL_THREADS = 1,
	CONFIG_SPILL_THREADS_MAX = 16,
	CONFIG_SAMPLE_MS_MIN = 100,
	CONFIG_RATE_MBPS_MAX = 10000000,
	CONFIG_SAMPLE_MS_MAX = 60000,
};

/*
 * Words of enum log_level, config_ingress, config_quotas, dataplane_mode and config_policy; last
 * comes NULL.
 */
extern const char *const config_levels[];
extern const char *const config_ingress[];
extern const char *const config_quotas[];
extern const char *const config_modes[];
extern const char *const config_policies[];

enum config_ingress {
	CONFIG_INGRESS_OPTIONAL,
	CONFIG_INGRESS_REQUIRED, /* a tenant without ingress points can have no jobs */
};

/* What is not fixed is QUOTA_POLICIES (agent/policy/quota.h), in this order, by name. */
enum config_quotas {
	CONFIG_QUOTAS_FIXED,
	CONFIG_QUOTAS_LEND, /* what nobody uses is lent to runs beyond their tenants' quotas */
	CONFIG_QUOTAS_TRAFFIC, /* the same, and tenants that send more come to have more of it */
};

/* Who has a slot of the pool that others want: docs/decisions/0014-borrowed-slots.md. */
enum config_policy {
	CONFIG_POLICY_PREEMPT,
	CONFIG_POLICY_FCFS,
	CONFIG_POLICY_ESA,
};

struct config_port {
	char name[IF_NAMESIZE];
	enum dataplane_mode mode; /* wanted */
	bool share; /* with another XDP program that is on it */
	uint32_t rate_mbps; /* of the line; 0: what the interface says */
};

struct config_peer {
	char name[NAME_BYTES];
	struct sockaddr_storage address; /* one of its service addresses, with TALLY_UDP_PORT */
	unsigned int alsos; /* 0: its others are what it says itself */
	struct sockaddr_storage also[CONFIG_PEER_ALSO_MAX]; /* its others; the same port */
};

/* What the agents of a cluster share, and where. */
struct config_cluster {
	char node[NAME_BYTES]; /* this node's name there; "": it is in none */
	char name[NAME_BYTES]; /* the cluster's */
	char file[CONFIG_PATH_BYTES]; /* the store, if there is no etcd: of this node alone */
	unsigned int etcds; /* members of an etcd cluster */
	char etcd[CONFIG_ETCDS_MAX][CONFIG_URL_BYTES];
	char ca[CONFIG_PATH_BYTES], certificate[CONFIG_PATH_BYTES], key[CONFIG_PATH_BYTES];
	char user[NAME_BYTES];
	char password[CONFIG_PATH_BYTES]; /* the file that has it */
	bool steering; /* packets take the ways that the cluster wants */
	bool finds_ways; /* as the leader: it wants ways that bear more than those of routing */
};

struct config {
	unsigned int ports; /* 1 .. TALLY_PORTS_MAX, no two of one name */
	struct config_port port[TALLY_PORTS_MAX];
	uint32_t slots; /* of the node, for runs that have slots of their own */
	uint32_t pool_slots; /* that the others borrow */
	enum config_policy pool_policy;
	char pin[CONFIG_PATH_BYTES];
	char state[CONFIG_PATH_BYTES];
	enum config_ingress ingress;
	enum config_quotas quotas;
	unsigned int services; /* 1 .. */
	struct sockaddr_storage service[CONFIG_SERVICES_MAX]; /* with TALLY_UDP_PORT */
	char control_socket[CONFIG_SOCKET_BYTES];
	char control_group[TENANT_GROUP_BYTES]; /* "": root alone may change things */
	char join_socket[CONFIG_SOCKET_BYTES]; /* "": none */
	unsigned int listens; /* 0: workers join by the socket alone */
	struct sockaddr_storage listen[CONFIG_LISTENS_MAX]; /* TCP; with TALLY_UDP_PORT */
	struct sockaddr_storage metrics; /* TCP; ss_family 0: none */
	struct { /* agents of other nodes, for jobs of several nodes */
		char secret[CONFIG_PATH_BYTES]; /* its file; "": there are none */
		unsigned int roots; /* agents that may say what this node does as an inner one */
		struct sockaddr_storage root[CONFIG_SERVICES_MAX]; /* with TALLY_UDP_PORT */
		char tenant[NAME_BYTES]; /* whose slots their jobs take here */
		unsigned int nodes; /* that may be inner nodes of this one's jobs */
		struct config_peer node[CONFIG_PEERS_MAX];
	} peers;
	struct config_cluster cluster;
	enum log_level log_level;
	uint32_t sample_ms;
	uint32_t spill_mib; /* of memory for sums in software; 0: none are made */
	uint32_t spill_threads; /* that make them, 1 to CONFIG_SPILL_THREADS_MAX */
	/*
	 * tenant[0] is CONFIG_TENANT, in the file or not; behind it those of the file, in its
	 * order. All their slots together are at most `slots`. If the file says no slots for
	 * tenant[0], it has what the others leave, and `rest` is true: tenants of runtime take from
	 * that.
	 */
	bool rest;
	bool default_named; /* tenant[0] is in the file */
	unsigned int tenants; /* 1 .. TALLY_TENANTS_MAX */
	struct tenant tenant[TALLY_TENANTS_MAX]; /* ingress ports are among `port` */
};

extern const struct keys config_keys; /* of struct config */
extern const struct keys config_cluster_keys; /* the same, below `cluster` */
key_check config_cluster_check;

/* Is this an address that the configuration says the peer has? */
bool config_peer_has(const struct config_peer *p, const struct sockaddr_storage *address);

/* Has the node of peer[index] an address of the other family, too? */
bool config_peer_has_namesake(const struct config_peer *peer, unsigned int peers,
			      unsigned int index);

bool config_peers_are_equal(const struct config_peer *a, const struct config_peer *b,
			    unsigned int peers);

/* As the data plane has it. */
struct tally_pool config_pool(const struct config *c);

/*
 * Parses a buffer (no NUL at its end needed). *ret is the caller's, for config_free(). `name` of
 * the file leads in `why`, with line, key and what is allowed there: the first error found.
 * -EINVAL, -EFBIG, -ENOMEM.
 */
int config_parse(const char *text, size_t length, const char *name, struct config **ret,
		 struct why *why);

/* The same from a file; also what opening and reading it may say. */
int config_read(const char *path, struct config **ret, struct why *why);

void config_free(struct config *c); /* NULL allowed */
static inline void config_freep(struct config **c) { config_free(*c); }

/* All of it as YAML, defaults written out: what config_parse() makes the same configuration of. */
void config_print(const struct config *c, FILE *to);

#endif
