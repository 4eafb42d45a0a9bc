// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the store says of jobs that this node has already. */
#include <string.h>

#include "agent/edge/log.h"
#include "placing_private.h"

void placing_follow_token(struct placing *p, const char *name)
{
	const struct job *j = books_job_find(core_books(placing_core(p)), name);
	const struct shared_job *s = shared_find(&p->shared, name);
	struct request q = { .verb = REQUEST_JOB_ROTATE };

	if (!j || !s || !j->clustered || j->birth != s->job.birth ||
	    !strcmp(j->token, s->job.token))
		return;
	memcpy(q.rotate.name, j->name, sizeof(q.rotate.name));
	memcpy(q.rotate.token, s->job.token, sizeof(q.rotate.token));
	if (placing_ask_core(p, &q) < 0)
		log_say(LOG_LEVEL_WARNING, "token not changed", "job=%s reason=\"%s\"", name,
			p->why.text);
	else
		log_say(LOG_LEVEL_INFO, "token changed", "job=%s", name);
	explicit_bzero(&q, sizeof(q));
}

void placing_follow_tokens(struct placing *p)
{
	for (unsigned int i = 0; i < p->shared.jobs; i++)
		placing_follow_token(p, p->shared.job[i]->name);
}
