// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "progress.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/util.h"
#include "error.h"

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

static void close_fd(int *fd)
{
	closep(fd);
	*fd = -1;
}

/* --- the lock */

/* As pump_enter(). */
void progress_enter(struct tally *t)
{
	pthread_mutex_lock(&t->turnstile);
	pthread_mutex_lock(&t->lock);
	pthread_mutex_unlock(&t->turnstile);
}

static void watch(struct tally *t, int operation, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events };

	epoll_ctl(t->poll, operation, fd, &e);
}

/* The timer is only ever made to fire sooner; too soon does no harm. */
static void poll_update(struct tally *t)
{
	uint64_t wakeup;

	pump_enter(t->pump);
	wakeup = pump_wakeup(t->pump);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++) {
		if (s->polls_room != s->no_room)
			watch(t, EPOLL_CTL_MOD, shard_fd(s), shard_events(s));
		s->polls_room = s->no_room;
	}
	pump_leave(t->pump);
	if (wakeup < t->timer_ns) {
		struct itimerspec when = { .it_value = timespec_of(wakeup ? wakeup : 1) };

		timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &when, NULL);
		t->timer_ns = wakeup;
	}
}

static void fail_with(struct shard *s, const char *why)
{
	pump_enter(s->pump);
	engine_fail(s->engine, -ECONNABORTED, why);
	pump_leave(s->pump);
}

/* Where the run is over at one root, it is over. */
static void fail_together(struct tally *t)
{
	const char *why = NULL;
	struct why text;

	if (t->failed || t->shards.count == 1)
		return;
	for (struct shard *s = t->shard; s < t->shard + t->shards.count && !t->failed; s++)
		if (s->has_failed)
			t->failed = s;
	if (!t->failed)
		return;
	pump_enter(t->failed->pump);
	engine_failure(t->failed->engine, &why);
	snprintf(text.text, sizeof(text.text), "root %s: %.400s", t->failed->service, why);
	pump_leave(t->failed->pump);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++)
		if (s != t->failed)
			fail_with(s, text.text);
}

bool progress_part_is_over(const struct shard *s, uint64_t number) { return s->ended >= number; }

static bool is_over(const struct tally *t, const struct tally_call *call)
{
	for (unsigned int i = 0; i < t->shards.count; i++)
		if (call->part[i] && !progress_part_is_over(&t->shard[i], call->number[i]))
			return false;
	return true;
}

/* What has become of calls, now that engines have gone on. */
static void settle(struct tally *t)
{
	uint64_t parts_ended = 0;

	fail_together(t);
	for (unsigned int i = 0; i < t->shards.count; i++)
		parts_ended += t->shard[i].ended;
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

/* A thread of the program sleeps until its call ends, which another may have ended. */
static void wake_pump(struct tally *t)
{
	pump_enter(t->pump);
	pump_wake(t->pump);
	pump_leave(t->pump);
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
	if (news && t->driven)
		wake_pump(t);
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

void progress_turn(struct tally *t)
{
	for (struct pump *p = t->pump; p < t->pump + t->pumps; p++) {
		pump_enter(p);
		pump_turn(p);
		pump_leave(p);
	}
	settle(t);
}

void progress_turn_busy(struct tally *t)
{
	for (struct pump *p = t->pump; p < t->pump + t->pumps; p++) {
		pump_enter(p);
		if (!pump_is_idle(p))
			pump_turn(p);
		pump_leave(p);
	}
	settle(t);
}

/* From when the job's lock is released until it sleeps it has the pump's, so that who has news
 * for it finds it asleep. */
void progress_wait(struct tally *t, uint64_t until_ns)
{
	struct pump *p = t->pump;
	bool busy;

	pump_enter(p);
	busy = pump_turn(p);
	pump_leave(p);
	announce(t);
	pump_enter(p);
	pthread_mutex_unlock(&t->lock);
	pump_rest(p, busy, until_ns);
	pump_leave(p);
	progress_enter(t);
}

static void wait_changed(struct tally *t)
{
	t->waiters++;
	pthread_cond_wait(&t->changed, &t->lock);
	t->waiters--;
}

void progress_finish(struct tally *t, const struct tally_call *call)
{
	while (!call->over && (t->threaded || t->driven))
		wait_changed(t);
	if (call->over)
		return;
	t->driven = true;
	while (!call->over)
		progress_wait(t, UINT64_MAX);
	t->driven = false;
	if (t->waiters)
		pthread_cond_broadcast(&t->changed);
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
	for (struct shard *s = t->shard; s < t->shard + t->shards.count && !t->threaded; s++) {
		watch(t, EPOLL_CTL_ADD, shard_fd(s), EPOLLIN);
		if (s->next.channel)
			watch(t, EPOLL_CTL_ADD, s->next.channel->transport->fd(s->next.channel),
			      EPOLLIN);
	}
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

bool progress_is_forked(const struct tally *t) { return t->process != getpid(); }

/* A pump's thread has news for all who wait. */
static void tell(struct tally *t)
{
	progress_enter(t);
	progress_leave(t);
}

static int pumps_open(struct tally *t, unsigned int roots, unsigned int pumps,
		      const struct spin *spin)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < pumps; i++) {
		const unsigned int first = i * roots / pumps;

		r = pump_open(&t->pump[i], t, tell, &t->shard[first],
			      (i + 1) * roots / pumps - first, spin);
		t->pumps += r == 0;
	}
	return r;
}

int progress_open(struct tally *t, unsigned int roots, unsigned int pumps, const struct spin *spin)
{
	pthread_mutex_init(&t->turnstile, NULL);
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	t->process = getpid();
	for (int i = 0; i < TALLY_CALLS_MAX; i++)
		t->call[i].tally = t;
	t->poll = t->timer = t->news = -1;
	t->timer_ns = UINT64_MAX;
	return pumps_open(t, roots, pumps, spin);
}

int progress_threads(struct tally *t)
{
	int r = 0;

	t->threaded = true;
	for (unsigned int i = 0; r == 0 && i < t->pumps; i++)
		r = pump_thread(&t->pump[i]);
	if (r < 0)
		progress_stop(t);
	return r;
}

/* All shards are the first pump's then, as where there are no threads. */
void progress_stop(struct tally *t)
{
	if (!t->threaded)
		return;
	for (unsigned int i = 0; i < t->pumps; i++)
		pump_stop(&t->pump[i]);
	for (struct shard *s = t->shard; s < t->shard + t->shards.count; s++)
		s->pump = t->pump;
	for (unsigned int i = 1; i < t->pumps; i++)
		t->pump[i].first = t->pump[i].end;
	t->pump[0].end = t->shard + t->shards.count;
	t->threaded = false;
}

void progress_close(struct tally *t)
{
	for (unsigned int i = 0; i < t->pumps; i++)
		pump_close(&t->pump[i], progress_is_forked(t));
	close_fd(&t->poll);
	close_fd(&t->timer);
	close_fd(&t->news);
	if (progress_is_forked(t))
		return; /* destroying would wait for threads that are not here */
	pthread_cond_destroy(&t->changed);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->turnstile);
}
