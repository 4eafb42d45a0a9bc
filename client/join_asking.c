// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Agents that cannot be reached, or that go while a worker waits: another one is asked, or the same
 * again, until the timeout of joining. Who is told no asks no more.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/clock.h"
#include "error.h"
#include "join_private.h"

enum {
	PAUSE_NS = 500000000, /* of who has been sent to an agent that has gone, or rescues a run */
	PAUSE_FIRST_NS = 100000000, /* of all others: doubles up to the next */
	PAUSE_LAST_NS = 2000000000,
	PAUSE_STEP_NS = 100000000, /* join_stop() takes no longer */
};

struct asking asking_begin(const struct join *j)
{
	struct asking a = { .first = j->agent,
			    .begun_ns = clock_now_ns(),
			    .pause_ns = PAUSE_FIRST_NS,
			    .tries = 1 };

	snprintf(a.first_text, sizeof(a.first_text), "%s", j->agent_text);
	return a;
}

static void pause_for(const struct join *j, uint64_t pause_ns)
{
	const uint64_t end_ns = clock_now_ns() + pause_ns;

	while (clock_now_ns() < end_ns && j->deadline_ns)
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = PAUSE_STEP_NS },
				NULL);
}

static bool is_away(int error)
{
	return error == -ECONNRESET || error == -ECONNREFUSED || error == -EPIPE ||
	       error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH;
}

/* An agent that has not noticed that the connection is no more has the worker's place taken. */
static bool is_own_place(int error) { return error == -EADDRINUSE || error == -EUSERS; }

/* The agent cannot be reached, or has gone: what it says itself is another thing. A socket's file
 * is not there while its agent is not. */
static bool may_ask_again(const struct join *j, const struct asking *a, int error)
{
	if (j->is_refused)
		return a->was_cut && is_own_place(error);
	return j->is_cut && (is_away(error) || (error == -ENOENT && j->agent.ss_family == AF_UNIX));
}

/* An agent that was named may have gone a moment ago, and so may any that is asked for a rescue. */
static bool may_turn_back(const struct join *j, const struct asking *a, int error, bool was_named,
			  bool has_connected)
{
	if (j->rescues)
		return is_away(error);
	return (was_named && !has_connected) || (j->insists && may_ask_again(j, a, error));
}

/* The agent whose turn it is: in a rescue, one that the run's agent has named. */
static void turn_next(struct join *j, const struct asking *a)
{
	const struct sockaddr_storage *next = NULL;
	char text[AGENT_BYTES];

	if (j->rescues)
		next = &j->other[a->turn % j->others];
	else if (a->turn % (j->listed + 1))
		next = &j->list[a->turn % (j->listed + 1) - 1];
	if (!next) {
		join_turn_to(j, &a->first, a->first_text);
		return;
	}
	endpoint_print(next, text, sizeof(text));
	join_turn_to(j, next, text);
}

/* Until the next is asked: nothing, as long as there are some that were not asked in this round. */
static uint64_t pause_next(const struct join *j, struct asking *a, bool was_named)
{
	uint64_t pause_ns = a->pause_ns;

	if (j->rescues || was_named)
		return PAUSE_NS;
	if (a->turn % (j->listed + 1))
		return 0;
	a->pause_ns = 2 * pause_ns < PAUSE_LAST_NS ? 2 * pause_ns : PAUSE_LAST_NS;
	return pause_ns;
}

bool asking_goes_on(struct join *j, struct asking *a, int error, bool was_named, bool has_connected)
{
	uint64_t pause_ns;

	if (!may_turn_back(j, a, error, was_named, has_connected))
		return false;
	if (j->has_asked) /* it was there */
		a->pause_ns = PAUSE_FIRST_NS;
	a->was_cut |= j->has_asked && !j->is_refused;
	a->turn += j->rescues || !was_named; /* who has named one that is gone hears of another */
	pause_ns = pause_next(j, a, was_named);
	if (clock_now_ns() + pause_ns >= j->deadline_ns)
		return false;
	if (!j->is_refused)
		snprintf(a->cause.text, sizeof(a->cause.text), "%s", tally_error());
	pause_for(j, pause_ns);
	turn_next(j, a);
	a->tries++;
	return true;
}

int asking_end(const struct join *j, const struct asking *a, int error)
{
	const double seconds = (double)(clock_now_ns() - a->begun_ns) / 1e9;
	struct why last;

	if (a->tries == 1 || !j->insists)
		return error;
	snprintf(last.text, sizeof(last.text), "%s", tally_error());
	if (!*a->cause.text || !strcmp(a->cause.text, last.text))
		return error_set(error, "%.300s (tried %u times within %.1f s)", last.text,
				 a->tries, seconds);
	return error_set(error, "%.200s (tried %u times within %.1f s; before: %.150s)", last.text,
			 a->tries, seconds, a->cause.text);
}
