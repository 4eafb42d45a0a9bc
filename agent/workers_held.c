// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Workers of a cluster whose first proof is wrong as far as this agent knows: another agent may
 * have made the job, or changed its token, a moment ago. All of them are answered late, so nobody
 * learns by the time of an answer which jobs there are.
 */
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "placing.h"
#include "workers_private.h"

int workers_keep(struct worker *w, const char *opening, size_t bytes)
{
	if (w->by_place)
		return 0;
	w->opening = malloc(bytes);
	if (!w->opening)
		return -ENOMEM;
	memcpy(w->opening, opening, bytes);
	w->opening_bytes = bytes;
	return 0;
}

void workers_forget(struct worker *w)
{
	free(w->opening);
	free(w->held);
	w->opening = w->held = NULL;
}

int workers_hold(struct stream *s, const struct rendezvous_voice *voice, const char *text,
		 size_t length)
{
	const struct workers *workers = stream_owner(s);
	struct rendezvous *rendezvous = placing_rendezvous(driver_placing(workers->driver));
	struct worker *w = stream_context(s);
	int r;

	if (!rendezvous || !w->opening)
		return -ENOENT;
	if (core_guesses_wait_ns(driver_core(workers->driver), stream_peer(s),
				 stream_peer_who(s).uid, clock_now_ns()))
		return -EAGAIN;
	w->held = malloc(length);
	if (!w->held)
		return -ENOMEM;
	memcpy(w->held, text, length);
	w->held_bytes = length;
	r = rendezvous_hold(rendezvous, s, voice, w->job);
	if (r < 0) {
		free(w->held);
		w->held = NULL;
	}
	return r;
}

/* Else a guesser would hang up before each answer: a right token is answered at once. */
void workers_held_gone(struct stream *s)
{
	struct workers *workers = stream_owner(s);
	struct worker *w = stream_context(s);

	driver_handle(workers->driver,
		      &(struct core_event){ .kind = CORE_JOINING,
					    .joining = { .job = w->job,
							 .again = true,
							 .peer = stream_peer(s),
							 .uid = stream_peer_who(s).uid } });
}

void workers_read_again(struct stream *s)
{
	struct worker *w = stream_context(s);
	struct joining_message m = { 0 };
	struct why why = { "" };
	size_t used = 0;
	int r = workers_token_key(stream_owner(s), w->job, w->token_key);

	if (r == 0) {
		session_begin(w->token_key, w->opening, w->opening_bytes, &w->session);
		r = workers_message_read(w, w->held, w->held_bytes, &m, &used, &why);
	}
	if (r == 0 || r == -EACCES)
		r = workers_message_judge(s, r == 0 ? &m : NULL, &why);
	if (r < 0)
		workers_refuse(s, false, r, &why);
}
