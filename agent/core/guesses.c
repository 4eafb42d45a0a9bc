// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "guesses.h"

#include <netinet/in.h>
#include <string.h>

static const uint64_t second_ns = 1000000000;

static uint64_t number_of(const struct sockaddr_storage *peer, uid_t uid)
{
	uint64_t who = uid;

	if (peer->ss_family == AF_INET)
		who = ((const struct sockaddr_in *)peer)->sin_addr.s_addr;
	else if (peer->ss_family == AF_INET6)
		memcpy(&who, &((const struct sockaddr_in6 *)peer)->sin6_addr, sizeof(who));
	return who;
}

bool guesses_is_one(const struct sockaddr_storage *a, uid_t a_uid, const struct sockaddr_storage *b,
		    uid_t b_uid)
{
	return a->ss_family == b->ss_family && number_of(a, a_uid) == number_of(b, b_uid);
}

static bool is_at(const struct guesses *g, unsigned int i, sa_family_t family, uint64_t who)
{
	return g->source[i].family == family && g->source[i].who == who;
}

/* Its place, or that of the one which may be forgotten first. */
static unsigned int find(const struct guesses *g, sa_family_t family, uint64_t who)
{
	unsigned int oldest = 0;

	for (unsigned int i = 0; i < GUESSES_SOURCES; i++) {
		if (is_at(g, i, family, who))
			return i;
		if (g->source[i].until_ns < g->source[oldest].until_ns)
			oldest = i;
	}
	return oldest;
}

uint64_t guesses_wait_ns(const struct guesses *g, const struct sockaddr_storage *peer, uid_t uid,
			 uint64_t now_ns)
{
	const uint64_t who = number_of(peer, uid);
	const unsigned int i = find(g, peer->ss_family, who);
	const uint64_t free_ns = now_ns + (GUESSES_AT_ONCE - 1) * GUESSES_INTERVAL_S * second_ns;

	if (!is_at(g, i, peer->ss_family, who) || g->source[i].until_ns <= free_ns)
		return 0;
	return g->source[i].until_ns - free_ns;
}

uint64_t guesses_add(struct guesses *g, const struct sockaddr_storage *peer, uid_t uid,
		     uint64_t now_ns)
{
	const uint64_t who = number_of(peer, uid),
		       most_ns = now_ns + GUESSES_WAIT_MAX_S * second_ns;
	const unsigned int i = find(g, peer->ss_family, who);
	uint64_t until_ns = now_ns, unsaid;

	if (is_at(g, i, peer->ss_family, who) && g->source[i].until_ns > now_ns)
		until_ns = g->source[i].until_ns;
	until_ns += GUESSES_INTERVAL_S * second_ns;
	g->source[i].family = peer->ss_family;
	g->source[i].who = who;
	g->source[i].until_ns = until_ns < most_ns ? until_ns : most_ns;
	unsaid = ++g->count - g->logged;
	if (g->logged && now_ns - g->logged_ns < GUESSES_LOG_INTERVAL_S * second_ns)
		return 0;
	g->logged = g->count;
	g->logged_ns = now_ns;
	return unsaid;
}
