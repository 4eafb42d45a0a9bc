// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "rights.h"

static gid_t group_of(struct rights *r, unsigned int tenant, const char *name)
{
	struct why ignored;
	gid_t gid;

	if (!strcmp(r->group[tenant].name, name))
		return r->group[tenant].gid;
	if (stream_group_find("group", name, &gid, &ignored) < 0)
		return -1;
	snprintf(r->group[tenant].name, sizeof(r->group[tenant].name), "%s", name);
	r->group[tenant].gid = gid;
	return gid;
}

int rights_find_operators(const struct config *config, gid_t *ret, struct why *why)
{
	*ret = -1;
	return *config->control_group
		       ? stream_group_find("control.group", config->control_group, ret, why)
		       : 0;
}

int rights_check_groups(const struct config *config, struct why *why)
{
	gid_t ignored;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < config->tenants; i++)
		if (*config->tenant[i].group)
			r = stream_group_find("tenants: group", config->tenant[i].group, &ignored,
					      why);
	return r;
}

/* As long as no tenant has a group, everybody sees all. */
struct asker rights_of(struct rights *r, const struct stream *s, const struct core *core)
{
	struct asker a = { .is_operator = stream_peer_may(s, r->operators), .seen = UINT64_MAX };
	const struct books *b = core_books(core);
	bool grouped = false;

	for (unsigned int i = 0; !a.is_operator && i < TALLY_TENANTS_MAX; i++) {
		const char *group = b->tenant[i].is.group;

		if (!*b->tenant[i].is.name || !*group)
			continue;
		grouped = true;
		if (stream_peer_may(s, group_of(r, i, group)))
			a.own |= 1ull << i;
	}
	if (grouped)
		a.seen = a.own;
	return a;
}

/* Whose job it is about; negative: nobody's. */
static int tenant_of(const struct books *b, const struct shared_job *shared,
		     const struct request *q)
{
	const struct job *j;
	struct why ignored;

	if (q->verb == REQUEST_JOB_CREATE)
		return books_tenant_find(b, *q->job.tenant ? q->job.tenant : CONFIG_TENANT,
					 &ignored);
	if (shared)
		return books_tenant_find(b, shared->job.tenant, &ignored);
	j = books_job_find(b, q->name); /* at the beginning of whatever else there is */
	return j ? j->tenant : -ENOENT;
}

_Static_assert(offsetof(struct request, kick) + offsetof(struct request_rank, job) ==
			       offsetof(struct request, name) &&
		       offsetof(struct request, documents) +
				       offsetof(struct request_documents, job) ==
			       offsetof(struct request, name),
	       "each request of a job begins with its name");

int rights_check(const struct asker *a, const struct core *core, const struct shared_job *shared,
		 const struct request *q, struct why *why)
{
	const enum request_right right = request_kinds[q->verb].right;
	const char *group = core_config(core)->control_group;
	int tenant;

	if (right == REQUEST_ANYONE || a->is_operator)
		return 0;
	tenant = right == REQUEST_OF_JOB ? tenant_of(core_books(core), shared, q) : -EPERM;
	if (tenant >= 0 && a->own >> tenant & 1)
		return 0;
	return why_say(why, -EPERM, "%s: only root%s%s may do that%s", request_verb_name(q->verb),
		       *group ? " and members of the group " : "", group,
		       right == REQUEST_OF_JOB ? ", and the group of the job's tenant" : "");
}
