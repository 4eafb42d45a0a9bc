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

static int say_once(struct join *j, struct joining_answer *ret)
{
	int r;

	join_fd_set(j, -1);
	r = join_connect(j);
	if (r == 0)
		r = join_greet(j);
	if (r == 0)
		r = join_request_send(j);
	return r == 0 ? join_answer_read(j, ret) : r;
}

/* The job may have another token by now, so this is by the place; of that an older agent knows
 * nothing. But whoever stands between can say so in its name, without a proof, and would be the
 * agent if it had the token. */
static int say(struct join *j, uint32_t timeout_ms, struct joining_answer *ret)
{
	int r;

	join_deadline_set(j, timeout_ms);
	j->by_place = j->has_place;
	r = say_once(j, ret);
	if (r != -EINVAL || !j->by_place || j->knows_places)
		return r;
	j->by_place = false;
	return say_once(j, ret);
}

/* The job's token, as it is now. */
static void token_take(struct join *j, struct joining_answer *a)
{
	session_cover(&j->session, a->token_key);
	memcpy(j->token_key, a->token_key, sizeof(j->token_key));
	explicit_bzero(a->token_key, sizeof(a->token_key));
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
	j->has_place = from->has_place;
	j->knows_places = from->knows_places;
	memcpy(j->place_key, from->place_key, sizeof(j->place_key));
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
	if (r == 0 && j->by_place && answer->kind == JOINING_TOKEN) {
		token_take(j, answer);
		r = join_answer_read(j, answer);
	}
	if (r < 0)
		return r;
	if (answer->kind == JOINING_ERROR)
		return join_refused(j, answer);
	if (answer->kind != JOINING_STAYS)
		return error_set(-EPROTO, "the agent at %s sent an unexpected answer",
				 j->agent_text);
	j->knows_places |= j->by_place;
	return 0;
}
