// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A worker that is in a run, and an agent that was restarted: it knows the run, but not who is at
 * the other end of which connection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "error.h"
#include "join_private.h"

enum {
	STAY_TIMEOUT_MS = 3000,
};

static int say(struct join *j, uint32_t timeout_ms, struct joining_answer *ret)
{
	int r;

	join_fd_set(j, -1);
	join_deadline_set(j, timeout_ms);
	r = join_connect(j);
	if (r == 0)
		r = join_greet(j);
	if (r == 0)
		r = join_request_send(j);
	return r == 0 ? join_answer_read(j, ret) : r;
}

/* It will not hurt the agent to not hear. */
void join_leave_anew(struct join *j)
{
	_cleanup_(freep) struct joining_answer *answer = calloc(1, sizeof(*answer));

	j->request.what = JOINING_LEAVE;
	if (answer)
		say(j, JOIN_LEAVE_TIMEOUT_MS, answer);
}

struct join *join_stays(const struct join *from)
{
	struct join *j = join_beside(from, from->job);

	if (!j)
		return NULL;
	j->local = from->local; /* the agent wants to see it there */
	j->request.what = JOINING_STAY;
	j->request.epoch = from->request.epoch;
	j->request.nonce = j->nonce = from->nonce;
	j->others = from->others;
	memcpy(j->other, from->other, sizeof(j->other));
	j->shares = from->shares;
	memcpy(j->share, from->share, sizeof(j->share));
	return j;
}

int join_stay(struct join *j)
{
	_cleanup_(freep) struct joining_answer *answer = calloc(1, sizeof(*answer));
	int r;

	if (!answer)
		return error_set(-ENOMEM, "out of memory");
	r = say(j, STAY_TIMEOUT_MS, answer);
	if (r < 0)
		return r;
	if (answer->kind == JOINING_ERROR)
		return join_refused(j, answer);
	if (answer->kind != JOINING_STAYS)
		return error_set(-EPROTO, "the agent at %s sent an unexpected answer",
				 j->agent_text);
	return 0;
}
