/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who asks on the control socket, and what they may. Operators (root, and members of
 * control.group) may all; members of a tenant's group may what is of its jobs.
 */
#ifndef TALLY_AGENT_RIGHTS_H
#define TALLY_AGENT_RIGHTS_H

#include "agent/cluster/shared.h"
#include "agent/core/core.h"
#include "agent/edge/stream.h"

struct rights {
	gid_t operators; /* -1: none but root */
	struct {
		char name[TENANT_GROUP_BYTES];
		gid_t gid;
	} group[TALLY_TENANTS_MAX]; /* as looked up; "": not yet */
};

struct asker {
	bool is_operator;
	uint64_t own; /* tenants whose group they are in, a bit for each index */
	uint64_t seen; /* tenants that they may see */
};

/* -ENOENT: the configuration names a group that is not there. */
int rights_check_groups(const struct config *config, struct why *why);

int rights_find_operators(const struct config *config, gid_t *ret, struct why *why);

struct asker rights_of(struct rights *r, const struct stream *s, const struct core *core);

/* -EPERM, with who may; also if there is no such job, so that strangers learn nothing. `shared`:
 * the job that it is about, if that is one that agents share. */
int rights_check(const struct asker *a, const struct core *core, const struct shared_job *shared,
		 const struct request *q, struct why *why);

#endif
