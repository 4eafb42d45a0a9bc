// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/util.h"
#include "error.h"

/* What found no room is tried again after so long, should nothing say that there is room. */
#define NO_ROOM_NS UINT64_C(10000000)

enum {
	TURNS_MAX = 32, /* of receiving, before something is sent: a flood must not stop that */
};

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* Of eventfds and timers, whose counters only say that there is something. */
static void event_set(int fd) { (void)!write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)); }

static bool event_clear(int fd)
{
	/* NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): it does not block */
	return read(fd, &(uint64_t){ 0 }, sizeof(uint64_t)) > 0;
}

static void close_fd(int *fd)
{
	closep(fd);
	*fd = -1;
}

/* --- the lock */

/* A driver that has much to do takes its lock again at once: without the turnstile it always would.
 */
void progress_enter(struct tally *t)
{
	pthread_mutex_lock(&t->turnstile);
	pthread_mutex_lock(&t->lock);
	pthread_mutex_unlock(&t->turnstile);
}

static uint64_t shard_wakeup(const struct shard *s)
{
	uint64_t end = *s->ending.why.text && !engine_is_idle(s->engine)
			       ? s->ending.since_ns + PROGRESS_ENDING_NS
			       : UINT64_MAX;
	bool no_room = s->no_room || s->next.no_room;
	uint64_t wakeup = no_room ? clock_now_ns() + NO_ROOM_NS : engine_wakeup(s->engine);

	return wakeup < end ? wakeup : end;
}

static uint64_t wakeup_of(const struct tally *t)
{
	uint64_t first = UINT64_MAX;

	for (unsigned int i = 0; i < t->shards.count; i++) {
		uint64_t wakeup = shard_wakeup(&t->shard[i]);

		first = wakeup < first ? wakeup : first;
	}
	return first;
}

bool progress_is_idle(const struct tally *t)
{
	for (unsigned int i = 0; i < t->shards.count; i++)
		if (!engine_is_idle(t->shard[i].engine))
			return false;
	return true;
}

static int fd_of(const struct shard *s) { return s->channel->transport->fd(s->channel); }

static short events_of(const struct shard *s)
{
	return (short)(POLLIN | (s->no_room ? POLLOUT : 0));
}

static void watch(struct tally *t, int operation, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };

	epoll_ctl(t->poll, operation, fd, &e);
}

/* The timer is only ever made to fire sooner; too soon does no harm. */
static void poll_update(struct tally *t)
{
	uint64_t wakeup = wakeup_of(t);

	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++) {
		if (s->polls_room != s->no_room)
			watch(t, EPOLL_CTL_MOD, fd_of(s), events_of(s));
		s->polls_room = s->no_room;
	}
	if (wakeup < t->timer_ns) {
		struct itimerspec when = { .it_value = timespec_of(wakeup ? wakeup : 1) };

		timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &when, NULL);
		t->timer_ns = wakeup;
	}
}

/* Where the run is over at one root, it is over. */
static void fail_together(struct tally *t)
{
	const char *why = NULL;
	struct why text;

	if (t->failed || t->shards.count == 1)
		return;
	for (struct shard *s = t->shard; s < t->shard + t->shards.count && !t->failed; s++)
		if (engine_failure(s->engine, &why) < 0)
			t->failed = s;
	if (!t->failed)
		return;
	snprintf(text.text, sizeof(text.text), "root %s: %.400s", t->failed->service, why);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++)
		if (s != t->failed)
			engine_fail(s->engine, -ECONNABORTED, text.text);
}

static bool is_over(const struct tally *t, const struct tally_call *call)
{
	for (unsigned int i = 0; i < t->shards.count; i++)
		if (call->part[i] && !engine_is_over(call->part[i]))
			return false;
	return true;
}

/* What has become of calls, now that engines have gone on. */
static void settle(struct tally *t)
{
	uint64_t parts_ended = 0;

	fail_together(t);
	for (unsigned int i = 0; i < t->shards.count; i++)
		parts_ended += engine_ended(t->shard[i].engine);
	if (parts_ended == t->parts_ended)
		return;
	t->parts_ended = parts_ended;
	while (progress_shares_go_on(t))
		fail_together(t);
	for (struct tally_call *c = t->call; c < t->call + TALLY_CALLS_MAX; c++) {
		if (!c->pending || c->held || c->over || !is_over(t, c))
			continue;
		c->over = true;
		t->ended++;
	}
}

/* Tells all who wait of what has changed. */
static void announce(struct tally *t)
{
	bool news;

	settle(t);
	news = t->ended != t->told;
	t->told = t->ended;
	if (news && t->waiters)
		pthread_cond_broadcast(&t->changed);
	if (t->asleep_until_ns && (news || wakeup_of(t) < t->asleep_until_ns))
		event_set(t->kick);
	if (t->poll < 0)
		return;
	if (t->ended != t->reported && !t->has_news) {
		event_set(t->news);
		t->has_news = true;
	}
	if (!t->threaded)
		poll_update(t);
}

void progress_leave(struct tally *t)
{
	announce(t);
	pthread_mutex_unlock(&t->lock);
}

/* --- turns */

static void output(struct shard *s)
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

void progress_output(struct tally *t)
{
	for (unsigned int i = 0; i < t->shards.count; i++)
		output(&t->shard[i]);
	settle(t);
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
				engine_marked(s->engine);
			engine_input(s->engine, batch[i].bytes, batch[i].length, now);
		}
		s->received += n;
		if (n < TRANSPORT_RECEIVES)
			break;
	}
	transport->feedback(s->channel, window_runs(engine_window(s->engine)));
	return s->received != received;
}

/*
 * What is there comes in first, then what is due goes out: a worker that was not running for a
 * while must not take results that wait in its socket for lost.
 */
bool progress_turn(struct tally *t)
{
	uint64_t ended = t->ended;
	bool busy = false;

	for (unsigned int i = 0; i < t->shards.count; i++) {
		busy |= input(&t->shard[i]);
		busy |= progress_move_turn(t, &t->shard[i]);
		progress_hear(t, &t->shard[i]);
	}
	settle(t); /* calls that were held go out at once */
	progress_output(t);
	busy |= t->ended != ended;
	if (busy)
		spin_end(&t->spin, clock_now_ns());
	return busy;
}

/* Of the calls that run. */
static uint32_t chunks_of(const struct tally *t)
{
	uint32_t chunks = 0;

	for (unsigned int i = 0; i < t->shards.count; i++)
		chunks += engine_chunks(t->shard[i].engine);
	return chunks;
}

static void sleep_until(struct tally *t, uint64_t now_ns, uint64_t until_ns)
{
	struct timespec left = timespec_of(until_ns - now_ns);
	struct pollfd fd[1 + 2 * SHARDS_MAX] = { { .fd = t->kick, .events = POLLIN } };
	nfds_t count = 1;

	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++) {
		const struct channel *next = s->next.channel;

		fd[count++] = (struct pollfd){ .fd = fd_of(s), .events = events_of(s) };
		if (next)
			fd[count++] = (struct pollfd){ .fd = next->transport->fd(next),
						       .events = POLLIN };
	}
	t->asleep_until_ns = until_ns;
	pthread_mutex_unlock(&t->lock);
	ppoll(fd, count, until_ns == UINT64_MAX ? NULL : &left, NULL);
	progress_enter(t);
	t->asleep_until_ns = 0;
	if (fd[0].revents)
		event_clear(t->kick);
}

/* To whoever wants the lock or the processor. */
static void give_way(struct tally *t)
{
	pthread_mutex_unlock(&t->lock);
	sched_yield();
	progress_enter(t);
}

void progress_wait(struct tally *t, uint64_t until_ns)
{
	bool busy = progress_turn(t);
	uint64_t now = clock_now_ns(), wakeup = wakeup_of(t);

	announce(t);
	if (until_ns < wakeup)
		wakeup = until_ns;
	if (!busy && wakeup > now) {
		if (spin_goes_on(&t->spin, chunks_of(t), now))
			give_way(t);
		else
			sleep_until(t, now, wakeup);
	} else if (pthread_mutex_trylock(&t->turnstile) == 0) {
		pthread_mutex_unlock(&t->turnstile);
	} else { /* somebody else is at the turnstile: now it is their turn */
		pthread_mutex_unlock(&t->lock);
		progress_enter(t);
	}
}

static void wait_changed(struct tally *t)
{
	t->waiters++;
	pthread_cond_wait(&t->changed, &t->lock);
	t->waiters--;
}

static bool is_finished(const struct tally *t, const struct tally_call *call)
{
	return call ? call->over : t->closing;
}

void progress_finish(struct tally *t, const struct tally_call *call)
{
	while (!is_finished(t, call) && t->driven)
		wait_changed(t);
	if (is_finished(t, call))
		return;
	t->driven = true;
	while (!is_finished(t, call))
		progress_wait(t, UINT64_MAX);
	t->driven = false;
	if (t->waiters)
		pthread_cond_broadcast(&t->changed);
}

static void *thread_main(void *argument)
{
	struct tally *t = argument;

	progress_enter(t);
	progress_finish(t, NULL);
	progress_leave(t);
	return NULL;
}

/* --- for event loops */

int progress_fd(struct tally *t)
{
	if (t->poll >= 0)
		return t->poll;
	t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	t->news = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	t->poll = t->timer < 0 || t->news < 0 ? -1 : epoll_create1(EPOLL_CLOEXEC);
	if (t->poll < 0) {
		int error = errno;

		close_fd(&t->timer);
		close_fd(&t->news);
		return error_set(-error, "cannot create a descriptor to poll: %s", strerror(error));
	}
	watch(t, EPOLL_CTL_ADD, t->news, EPOLLIN);
	watch(t, EPOLL_CTL_ADD, t->timer, EPOLLIN);
	for (unsigned int i = 0; i < t->shards.count && !t->threaded; i++)
		watch(t, EPOLL_CTL_ADD, fd_of(&t->shard[i]), EPOLLIN);
	return t->poll;
}

unsigned int progress_report(struct tally *t)
{
	uint64_t ended = t->ended - t->reported;

	t->reported += ended;
	if (t->has_news)
		event_clear(t->news);
	t->has_news = false;
	if (t->timer_ns <= clock_now_ns() && event_clear(t->timer))
		t->timer_ns = UINT64_MAX;
	return (unsigned int)ended;
}

/* --- opening and closing */

/* Signals are for the program's own threads. */
int progress_thread(struct tally *t)
{
	sigset_t all, kept;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	r = pthread_create(&t->thread, NULL, thread_main, t);
	t->threaded = r == 0;
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	return r ? error_set(-r, "cannot create a thread for progress: %s", strerror(r)) : 0;
}

bool progress_is_forked(const struct tally *t) { return t->process != getpid(); }

int progress_open(struct tally *t)
{
	pthread_mutex_init(&t->turnstile, NULL);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->process = getpid();
	for (int i = 0; i < TALLY_CALLS_MAX; i++)
		t->call[i].tally = t;
	t->poll = t->timer = t->news = -1;
	t->timer_ns = UINT64_MAX;
	t->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (t->kick < 0)
		return error_set(-errno, "cannot create an eventfd: %s", strerror(errno));
	return 0;
}

void progress_stop(struct tally *t)
{
	if (!t->threaded)
		return;
	progress_enter(t);
	t->closing = true;
	event_set(t->kick);
	pthread_cond_broadcast(&t->changed);
	progress_leave(t);
	pthread_join(t->thread, NULL);
	t->threaded = false;
}

void progress_close(struct tally *t)
{
	close_fd(&t->kick);
	close_fd(&t->poll);
	close_fd(&t->timer);
	close_fd(&t->news);
	if (progress_is_forked(t))
		return; /* destroying would wait for threads that are not here */
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->turnstile);
}
