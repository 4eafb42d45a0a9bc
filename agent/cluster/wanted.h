/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a cluster wants, as values of the store (docs/cluster.md): tenants, jobs, where their roots
 * are, and workers that wait until one is chosen. JSON to plain structs and back. Pure.
 */
#ifndef TALLY_CLUSTER_WANTED_H
#define TALLY_CLUSTER_WANTED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <tally/set.h>

#include "agent/core/tenant_keys.h"
#include "common/keys.h"
#include "common/name.h"
#include "common/why.h"

/* Keys of the store; each is followed by names. */
#define WANTED_JOBS "job/" /* JOB */
#define WANTED_PLACES "place/" /* JOB */
#define WANTED_WORKERS "worker/" /* JOB/NODE/NUMBER */
#define WANTED_TENANTS "tenant/" /* TENANT */
#define WANTED_REFUSALS "refusal/" /* JOB/NODE: why, in words */

enum {
	WANTED_WEIGHED_MAX = 8,
	WANTED_WHY_BYTES = 256,
};

struct wanted_job {
	char name[NAME_BYTES], tenant[NAME_BYTES];
	char token[TOKEN_BYTES]; /* a secret */
	uint32_t id;
	uint64_t birth; /* random: a later job of that name has another */
	uint16_t workers, window;
	uint16_t payload_bytes; /* 0: what the ways of each run carry */
	bool tags, sealed;
	uint16_t roots; /* 2 .. JOINING_ROOTS_MAX: this is its job at one of them, which all have
			 * one token (joining_root_name()); 0: it has one root */
	uint16_t which; /* of several roots: 1 .. roots */
};

/* A node that was weighed: the terms of place.h for all jobs, with this job there. */
struct wanted_weighed {
	char node[NAME_BYTES];
	char total[24], bytes[24], use[24], time[24]; /* numbers, as they are printed */
};

struct wanted_place {
	uint64_t birth; /* of the job */
	char root[NAME_BYTES]; /* the node */
	struct sockaddr_storage address; /* its service address */
	char why[WANTED_WHY_BYTES]; /* in words */
	uint16_t share; /* of several roots, this one's: 1 .. JOINING_SHARE_MAX; else 0 */
	bool stays; /* the leader moves it only if the node goes or is cordoned */
	unsigned int workers, weighs;
	struct sockaddr_storage worker[TALLY_WORKERS_MAX]; /* that were there; with UDP ports */
	struct wanted_weighed weighed[WANTED_WEIGHED_MAX]; /* the chosen one first */
};

/* Zeros at first; its places are its own, to free(). */
struct wanted_tenant {
	struct tenant is; /* clustered; without ingress points, which are: */
	struct tenant_place *place; /* at its nodes */
	unsigned int places; /* 0: each node says where it may come in; TENANT_PLACES_MAX */
};

struct wanted_worker {
	char node[NAME_BYTES]; /* whose agent it waits at */
	struct sockaddr_storage address; /* where it receives */
};

extern const struct keys wanted_job_keys, wanted_place_keys, wanted_worker_keys;
extern const struct keys wanted_tenant_keys;

/* Printable ASCII, as long as there is room for it. */
extern const struct key_type wanted_words;

/*
 * As it is to be at this node: with the ingress points that name the node, and nowhere to come in
 * if all name others (tenant_is_nowhere()). Of one node there are TENANT_POINTS_MAX at most.
 */
struct tenant wanted_tenant_at(const struct wanted_tenant *t, const char *node);

/* -EINVAL: a node has more than TENANT_POINTS_MAX. */
int wanted_places_check(const struct tenant_place *place, unsigned int places, struct why *why);

/* By one of these tables. The caller's, to free(); NULL: no memory. */
char *wanted_print(const struct keys *keys, const void *from);

/* `ret` is a struct of the table, all zeros; what it has then is the caller's, also after an error.
 * -EINVAL, and why; -ENOMEM. */
int wanted_parse(const struct keys *keys, const char *text, void *ret, struct why *why);

#endif
