// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/util.h"
#include "error.h"

/* What found no room is tried again after so long, should nothing say that there is room. */
#define NO_ROOM_NS UINT64_C(10000000)

enum {
	TURNS_MAX = 32, /* of receiving, before something is sent: a flood must not stop that */
};

void event_set(int fd) { (void)!write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)); }

bool event_clear(int fd)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): it does not block */
	return read(fd, &(uint64_t){ 0 }, sizeof(uint64_t)) > 0;
}

/* --- when there is something to do */

static uint64_t shard_wakeup(const struct shard *s)
{
	uint64_t end = *s->ending.why.text && !engine_is_idle(s->engine)
			       ? s->ending.since_ns + PROGRESS_ENDING_NS
			       : UINT64_MAX;
	bool no_room = s->no_room || s->next.no_room;
	uint64_t wakeup = no_room ? clock_now_ns() + NO_ROOM_NS : engine_wakeup(s->engine);

	return wakeup < end ? wakeup : end;
}

uint64_t pump_wakeup(const struct pump *p)
{
	uint64_t first = UINT64_MAX;

	for (const struct shard *s = p->first; s < p->end; s++) {
		uint64_t wakeup = shard_wakeup(s);

		first = wakeup < first ? wakeup : first;
	}
	return first;
}

bool pump_is_idle(const struct pump *p)
{
	for (const struct shard *s = p->first; s < p->end; s++)
		if (!engine_is_idle(s->engine))
			return false;
	return true;
}

int shard_fd(const struct shard *s) { return s->channel->transport->fd(s->channel); }

short shard_events(const struct shard *s) { return (short)(POLLIN | (s->no_room ? POLLOUT : 0)); }

/* --- the lock */

/* Who drives and has much to do takes its lock again at once: without the turnstile it always
 * would. */
void pump_enter(struct pump *p)
{
	pthread_mutex_lock(&p->turnstile);
	pthread_mutex_lock(&p->lock);
	pthread_mutex_unlock(&p->turnstile);
}

/* For all to read. True: something is new. */
static bool publish(struct pump *p)
{
	bool news = false;

	for (struct shard *s = p->first; s < p->end; s++) {
		const char *why;
		const uint64_t ended = engine_ended(s->engine);
		const bool has_failed = engine_failure(s->engine, &why) < 0;

		if (ended == s->ended && has_failed == s->has_failed)
			continue;
		s->ended = ended;
		s->has_failed = has_failed;
		news = true;
	}
	return news;
}

void pump_leave(struct pump *p)
{
	publish(p);
	if (p->asleep_until_ns && pump_wakeup(p) < p->asleep_until_ns)
		event_set(p->kick);
	pthread_mutex_unlock(&p->lock);
}

void pump_wake(struct pump *p)
{
	if (p->asleep_until_ns)
		event_set(p->kick);
}

/* --- turns */

void shard_output(struct shard *s)
{
	const struct transport *transport = s->channel->transport;
	struct datagram batch[TRANSPORT_BATCH];
	uint64_t now = clock_now_ns();
	size_t n, sent;

	do {
		n = engine_output(s->engine, now, batch, TRANSPORT_BATCH);
		sent = n ? transport->send(s->channel, batch, n) : 0;
		s->sent += sent;
		s->no_room = sent < n;
		if (s->no_room)
			engine_unsent(s->engine, batch + sent, n - sent);
	} while (n == TRANSPORT_BATCH && !s->no_room);
	if (s->channel->refused)
		engine_unreachable(s->engine);
	engine_way_mtu(s->engine, s->channel->mtu);
	progress_move_output(s);
}

static bool input(struct shard *s)
{
	const struct transport *transport = s->channel->transport;
	struct datagram batch[TRANSPORT_RECEIVED_MAX];
	uint64_t received = s->received;
	size_t n;

	for (int turns = 0; turns < TURNS_MAX; turns++) {
		uint64_t now;

		n = transport->receive(s->channel, batch);
		now = clock_now_ns();
		for (size_t i = 0; i < n; i++) {
			if (batch[i].marked)
				engine_marked(s->engine, batch[i].bytes, batch[i].length);
			engine_input(s->engine, batch[i].bytes, batch[i].length, now);
		}
		s->received += n;
		if (n < TRANSPORT_RECEIVES || engine_is_idle(s->engine))
			break; /* that was all, or all that anybody waits for */
	}
	transport->feedback(s->channel, window_runs(engine_window(s->engine)));
	return s->received != received;
}

/*
 * What is there comes in first, then what is due goes out: a worker that was not running for a
 * while must not take results that wait in its socket for lost.
 */
bool pump_turn(struct pump *p)
{
	bool busy = false;

	for (struct shard *s = p->first; s < p->end; s++) {
		busy |= input(s);
		busy |= progress_move_turn(s);
		progress_hear(s);
	}
	for (struct shard *s = p->first; s < p->end; s++)
		shard_output(s);
	if (publish(p))
		p->has_news = busy = true;
	if (busy)
		spin_end(&p->spin, clock_now_ns());
	return busy;
}

/* --- rests */

/* Of the calls that run. */
static uint32_t chunks_of(const struct pump *p)
{
	uint32_t chunks = 0;

	for (const struct shard *s = p->first; s < p->end; s++)
		chunks += engine_chunks(s->engine);
	return chunks;
}

static void sleep_until(struct pump *p, uint64_t now_ns, uint64_t until_ns)
{
	const uint64_t left_ns = until_ns - now_ns;
	const struct timespec left = { .tv_sec = (time_t)(left_ns / 1000000000),
				       .tv_nsec = (long)(left_ns % 1000000000) };
	struct pollfd fd[1 + 2 * SHARDS_MAX] = { { .fd = p->kick, .events = POLLIN } };
	nfds_t count = 1;

	for (const struct shard *s = p->first; s < p->end; s++) {
		const struct channel *next = s->next.channel;

		fd[count++] = (struct pollfd){ .fd = shard_fd(s), .events = shard_events(s) };
		if (next)
			fd[count++] = (struct pollfd){ .fd = next->transport->fd(next),
						       .events = POLLIN };
	}
	p->asleep_until_ns = until_ns;
	pthread_mutex_unlock(&p->lock);
	ppoll(fd, count, until_ns == UINT64_MAX ? NULL : &left, NULL);
	pump_enter(p);
	p->asleep_until_ns = 0;
	if (fd[0].revents)
		event_clear(p->kick);
}

/* To whoever wants the lock or the processor. */
static void give_way(struct pump *p)
{
	pthread_mutex_unlock(&p->lock);
	sched_yield();
	pump_enter(p);
}

void pump_rest(struct pump *p, bool busy, uint64_t until_ns)
{
	uint64_t now = clock_now_ns(), wakeup = pump_wakeup(p);

	if (until_ns < wakeup)
		wakeup = until_ns;
	if (!busy && wakeup > now) {
		if (spin_goes_on(&p->spin, chunks_of(p), now))
			give_way(p);
		else
			sleep_until(p, now, wakeup);
	} else if (pthread_mutex_trylock(&p->turnstile) == 0) {
		pthread_mutex_unlock(&p->turnstile);
	} else { /* somebody else is at the turnstile: now it is their turn */
		pthread_mutex_unlock(&p->lock);
		pump_enter(p);
	}
}

/* --- a thread of its own */

static void *thread_main(void *argument)
{
	struct pump *p = argument;

	pump_enter(p);
	while (!p->is_stopped) {
		const bool busy = pump_turn(p);

		if (p->has_news) {
			p->has_news = false;
			pump_leave(p);
			p->tell(p->tally);
			pump_enter(p);
		}
		pump_rest(p, busy, UINT64_MAX);
	}
	pump_leave(p);
	return NULL;
}

/* Signals are for the program's own threads. */
int pump_thread(struct pump *p)
{
	sigset_t all, kept;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	r = pthread_create(&p->thread, NULL, thread_main, p);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	p->has_thread = r == 0;
	return r ? error_set(-r, "cannot create a thread for progress: %s", strerror(r)) : 0;
}

void pump_stop(struct pump *p)
{
	if (!p->has_thread)
		return;
	pump_enter(p);
	p->is_stopped = true;
	event_set(p->kick);
	pump_leave(p);
	pthread_join(p->thread, NULL);
	p->has_thread = false;
}

/* --- opening and closing */

int pump_open(struct pump *p, struct tally *t, void (*tell)(struct tally *t), struct shard *shards,
	      unsigned int count, const struct spin *spin)
{
	*p = (struct pump){ .tally = t,
			    .tell = tell,
			    .first = shards,
			    .end = shards + count,
			    .spin = *spin,
			    .kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	if (p->kick < 0)
		return error_set(-errno, "cannot create an eventfd: %s", strerror(errno));
	pthread_mutex_init(&p->turnstile, NULL);
	pthread_mutex_init(&p->lock, NULL);
	for (struct shard *s = p->first; s < p->end; s++)
		s->pump = p;
	return 0;
}

void pump_close(struct pump *p, bool was_forked)
{
	closep(&p->kick);
	p->kick = -1;
	if (was_forked)
		return; /* destroying would wait for threads that are not here */
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->turnstile);
}
