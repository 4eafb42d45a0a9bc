/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests on the control socket (docs/control.md): a line of JSON in, a plain struct out, and the
 * lines that answer. Pure: it knows no socket, and not who asks.
 */
#ifndef TALLY_AGENT_REQUEST_H
#define TALLY_AGENT_REQUEST_H

#include <jansson.h>
#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "common/keys.h"
#include "common/name.h"
#include "tenant.h"
#include "tree.h"
#include "common/owned.h"
#include "common/why.h"

enum {
	REQUEST_BYTES_MAX = 65536, /* of a line, without its end */
	REQUEST_ANSWER_BYTES_MAX = 1 << 21, /* fits 1,024 jobs of 2 KiB each, or 4,000 ports */
};

enum request_verb {
	REQUEST_STATUS,
	REQUEST_RELOAD,
	REQUEST_CORDON,
	REQUEST_UNCORDON,
	REQUEST_TENANT_LIST,
	REQUEST_TENANT_ADD,
	REQUEST_TENANT_SET,
	REQUEST_TENANT_DEL,
	REQUEST_JOB_LIST,
	REQUEST_JOB_CREATE,
	REQUEST_JOB_TOKEN,
	REQUEST_JOB_ROTATE,
	REQUEST_JOB_DEL,
	REQUEST_JOB_RESTART,
	REQUEST_JOB_KICK,
	REQUEST_JOB_DOCUMENTS,
	REQUEST_JOB_PLACE,
	REQUEST_APPLY,
	REQUEST_STATS,
	REQUEST_LINKS,
	REQUEST_TOP,
	REQUEST_TOPOLOGY,
	REQUEST_CLUSTER,
	REQUEST_EVENTS,
	REQUEST_TRACE,
	REQUEST_VERB_COUNT,
};

/* Which keys were given, in request.given. */
enum request_key {
	REQUEST_NAME = 1 << 0,
	REQUEST_TENANT = 1 << 1,
	REQUEST_JOB = 1 << 2,
	REQUEST_PORT = 1 << 3,
	REQUEST_SLOTS = 1 << 4,
	REQUEST_PACKETS_PER_SECOND = 1 << 5,
	REQUEST_BYTES_PER_SECOND = 1 << 6,
	REQUEST_PRIORITY = 1 << 7,
	REQUEST_INGRESS = 1 << 8,
	REQUEST_WORKERS = 1 << 9,
	REQUEST_WINDOW = 1 << 10,
	REQUEST_PAYLOAD = 1 << 11,
	REQUEST_SERVICE = 1 << 12,
	REQUEST_ID = 1 << 13,
	REQUEST_EVERY = 1 << 14,
	REQUEST_HISTORY = 1 << 15,
	REQUEST_RANK = 1 << 16,
	REQUEST_GROUP = 1 << 17,
	REQUEST_TAGS = 1 << 18,
	REQUEST_SEALED = 1 << 19,
	REQUEST_NODE = 1 << 20,
};

struct request_job {
	char name[NAME_BYTES];
	char tenant[NAME_BYTES]; /* "": not given, the default tenant's */
	uint16_t workers; /* 1 .. TALLY_WORKERS_MAX */
	uint16_t window; /* a power of two, 1 .. TALLY_WINDOW_MAX; 0: not given */
	uint16_t payload_bytes; /* a multiple of 64, 64 .. TALLY_PAYLOAD_MAX; 0: not given */
	struct sockaddr_storage service; /* with TALLY_UDP_PORT; ss_family 0: not given */
	uint32_t id; /* if given & REQUEST_ID */
	bool tags; /* its packets carry tags by keys; if not given, they do */
	bool sealed; /* its workers have a secret that the data plane has not */
	struct tree tree; /* without nodes: it has one node */
	uint16_t roots; /* 1 .. JOINING_ROOTS_MAX; above 1 with `clustered` only */
	bool clustered; /* agents share it. With it, but not said by requests: */
	char token[TOKEN_BYTES];
	uint64_t birth;
};

struct request_documents {
	char job[NAME_BYTES];
	char node[NAME_BYTES]; /* "": all */
	bool stay; /* JOB_PLACE */
};

struct request_apply {
	char tenant[NAME_BYTES]; /* of this node; "": not given, the default tenant */
	struct document document;
};

struct request_rotate {
	char name[NAME_BYTES];
	char token[TOKEN_BYTES]; /* not said by requests: the one that agents share; "": random */
};

struct request_rank {
	char job[NAME_BYTES];
	uint16_t rank;
};

/* What of it is meant; "": all. */
struct request_filter {
	char job[NAME_BYTES]; /* `name` of job-list */
	char tenant[NAME_BYTES]; /* `name` of tenant-list */
	bool clustered; /* tenant-list: those of the cluster */
	char port[IF_NAMESIZE];
	uint32_t history; /* stats: the newest samples, 1 .. TRAFFIC_HISTORY; 0: totals */
	uint32_t every; /* trace: one packet in so many, 1 .. 2^31; 1 if not given */
};

/* What is not given and says nothing else is 0. */
struct request {
	enum request_verb verb;
	uint32_t given; /* enum request_key */
	union {
		struct {
			struct tenant tenant; /* TENANT_ADD, TENANT_SET; TENANT_DEL: name,
					       * clustered. Not said by requests: gated */
			unsigned int places; /* with `clustered`, in place of its points */
			struct tenant_place place[TENANT_PLACES_MAX];
		};
		struct request_job job; /* JOB_CREATE */
		char name[NAME_BYTES]; /* JOB_TOKEN, JOB_DEL, JOB_RESTART */
		struct request_rotate rotate; /* JOB_ROTATE */
		struct request_rank kick; /* JOB_KICK */
		struct request_documents documents; /* JOB_DOCUMENTS, JOB_PLACE */
		struct request_apply apply; /* APPLY */
		struct request_filter filter; /* TENANT_LIST, JOB_LIST, STATS, TRACE */
	};
};

/*
 * Parses a line of `length` bytes, with or without its newline. -EINVAL, -EMSGSIZE (longer than
 * REQUEST_BYTES_MAX), -ENOMEM; `why` names the verb, the key and what is allowed, in ASCII.
 */
int request_parse(const char *line, size_t length, struct request *ret, struct why *why);

/* TENANT_SET: the tenant as it is now, but for what was given. */
struct tenant request_tenant(const struct request *q, const struct tenant *now);

/*
 * A line that was parsed, in its shortest form, with verb and name first: in whatever way it was
 * written, its beginning says what was asked for. The caller's, to be freed; NULL: no memory.
 */
char *request_print(const char *line, size_t length);

/* Who may ask for it. */
enum request_right {
	REQUEST_ANYONE, /* it only looks */
	REQUEST_OF_JOB, /* operators, and the group of the tenant that has the job */
	REQUEST_OPERATOR, /* root, and members of the group that the configuration names */
};

/* A verb and its keys. */
struct request_kind {
	const char *name; /* "tenant-add" */
	enum request_right right;
	const struct keys *keys; /* besides "do" */
	size_t offset; /* in struct request, of what they fill */
	const char *result; /* for the documents */
};

extern const struct request_kind request_kinds[REQUEST_VERB_COUNT];

/* "tenant-add". */
const char *request_verb_name(enum request_verb verb);

/*
 * The line that answers, newline and all; the caller's, to be freed; NULL: no memory. `result` is
 * taken over, and may be NULL if there was no memory for it. `error` is negative. A result that
 * does not fit into REQUEST_ANSWER_BYTES_MAX becomes an error that says so.
 */
char *request_answer_ok(json_t *result);
char *request_answer_error(int error, const char *text);

#endif
