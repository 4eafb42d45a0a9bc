// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "moving.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/owned.h"

enum {
	STOP_NS = 1000000, /* how often a thread is told to end that was not waiting when it was */
};

struct moving {
	struct join *join;
	struct channel *channel;
	struct joining_answer place;
	bool stays; /* in the run that is on */
	int kick, result;
	pthread_t thread;
	atomic_bool done;
};

static void *thread_main(void *argument)
{
	struct moving *m = argument;

	m->result = m->stays ? join_stay(m->join) : join_again(m->join, 0, &m->channel, &m->place);
	atomic_store(&m->done, true);
	(void)!write(m->kick, &(uint64_t){ 1 }, sizeof(uint64_t));
	return NULL;
}

/* `j` is ours; NULL: there was no memory. */
static struct moving *begin(struct join *j, bool stays, int kick)
{
	struct moving *m = calloc(1, sizeof(*m));
	sigset_t all, kept;
	int r = -1;

	if (!m) {
		join_forget(j);
		return NULL;
	}
	m->kick = kick;
	m->stays = stays;
	m->join = j;
	sigfillset(&all); /* signals are for the program's own threads */
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	if (m->join)
		r = pthread_create(&m->thread, NULL, thread_main, m);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	if (r == 0)
		return m;
	moving_forget(m);
	return NULL;
}

struct moving *moving_begin(const struct join *j, const struct sockaddr_storage *agent, int kick)
{
	return begin(join_copy(j, agent), false, kick);
}

struct moving *moving_rescue(const struct join *j, int kick)
{
	return begin(join_rescue(j), false, kick);
}

struct moving *moving_stay(const struct join *j, int kick)
{
	return begin(join_stays(j), true, kick);
}

bool moving_is_done(const struct moving *m) { return atomic_load(&m->done); }

int moving_take(struct moving *m, struct join **ret_join, struct channel **ret_channel,
		struct joining_answer *ret_place)
{
	if (m->result < 0)
		return m->result;
	*ret_join = TAKE_PTR(m->join);
	*ret_channel = TAKE_PTR(m->channel);
	*ret_place = m->place;
	return 0;
}

int moving_take_stay(struct moving *m, struct join **ret_join)
{
	if (m->result == 0)
		*ret_join = TAKE_PTR(m->join);
	return m->result;
}

void moving_end(struct moving *m)
{
	if (!m)
		return;
	while (!moving_is_done(m)) {
		join_stop(m->join);
		clock_nanosleep(CLOCK_MONOTONIC, 0, &(struct timespec){ .tv_nsec = STOP_NS }, NULL);
	}
	pthread_join(m->thread, NULL);
	if (m->result == 0 && m->join)
		join_close(TAKE_PTR(m->join));
	moving_forget(m);
}

void moving_forget(struct moving *m)
{
	if (!m)
		return;
	join_forget(m->join); /* a parent may have the same connection */
	transport_close(m->channel);
	explicit_bzero(m, sizeof(*m));
	free(m);
}
