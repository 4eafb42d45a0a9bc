// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * May who is at a connection speak for a worker? It knows the job's token, or what only who is in
 * the run knows; who guesses waits (guesses.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core_private.h"
#include "common/address.h"
#include "common/secret.h"

/*
 * Does the worker know the job's token, or who is in its run what only that one knows? A stranger
 * does not learn which jobs there are. An inner job has no token.
 */
static bool is_proven(const struct core_event *e, const struct job *j)
{
	const struct joining_message *m = e->joining.message;
	uint8_t key[SECRET_KEY_BYTES];
	bool is_known = true;

	if (!j || j->document || !e->joining.token_key)
		return false;
	if (e->joining.by_place)
		is_known = m->what != JOINING_JOIN &&
			   job_place_key(j, (unsigned int)m->rank, j->draw.nonce, key);
	else
		secret_token_key(j->token, key);
	is_known = is_known && secret_is_equal(key, e->joining.token_key, sizeof(key));
	explicit_bzero(key, sizeof(key));
	return is_known;
}

static int guess(struct core *c, const struct core_event *e)
{
	uint64_t unsaid = guesses_add(&c->guesses, e->joining.peer, e->joining.uid, c->now_ns);
	char from[ADDRESS_BYTES] = "this machine";

	if (e->joining.peer->ss_family != AF_UNIX)
		address_print(e->joining.peer, from, sizeof(from));
	if (unsaid)
		core_log(c, LOG_LEVEL_WARNING, "wrong tokens",
			 "count=%" PRIu64 " last_from=\"%s\" last_job=%s", unsaid, from,
			 e->joining.job);
	return why_say(&c->why, -EACCES,
		       "no such job, or a wrong token, or something on the way changed a byte");
}

uint64_t core_guesses_wait_ns(const struct core *c, const struct sockaddr_storage *peer, uid_t uid,
			      uint64_t now_ns)
{
	return guesses_wait_ns(&c->guesses, peer, uid, now_ns);
}

int members_may_speak(struct core *c, const struct core_event *e, const struct job *j)
{
	uint64_t wait_ns = guesses_wait_ns(&c->guesses, e->joining.peer, e->joining.uid, c->now_ns);

	if (e->joining.by_place && is_proven(e, j))
		return 0; /* who guesses tokens at its address cannot keep it from its run */
	if (wait_ns && !e->joining.again)
		return why_say(&c->why, -EAGAIN,
			       "too many wrong tokens came from there: join again in %u s",
			       (unsigned int)(wait_ns / 1000000000 + 1));
	return is_proven(e, j) ? 0 : guess(c, e);
}
