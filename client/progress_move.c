// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A job that moves to another root: a place there first, then both runs side by side, until nobody
 * needs the first one (docs/decisions/0030). If anything fails on the way, all stays where it is.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "common/address.h"
#include "common/clock.h"
#include "common/owned.h"
#include "progress.h"

enum {
	TURNS_MAX = 32, /* of receiving, as of the first run */
};

/* Joins have ended by then; some rank has no way to the new root. Its agent names it again later.
 */
#define ARRIVE_NS UINT64_C(30000000000)

#define RESCUE_AGAIN_NS UINT64_C(1000000000)
#define RESCUE_PATIENCE_NS \
	UINT64_C(60000000000) /* of a call; all ranks must miss the root by then */

static void named_begin(struct shard *s)
{
	char named[ADDRESS_BYTES];

	if (!s->named.ss_family || s->moving || s->next.channel)
		return;
	address_print(&s->named, named, sizeof(named));
	if (strcmp(named, s->service) != 0) /* it may be there by now */
		s->moving = moving_begin(s->join, &s->named, s->pump->kick);
	s->named.ss_family = 0;
}

void progress_move_begin(struct shard *s, const struct sockaddr_storage *agent)
{
	s->named = *agent; /* if there is one on the way already, it is next */
	named_begin(s);
}

void progress_rescue_look(struct shard *s, uint64_t now_ns)
{
	const bool is_gone = s->keeps && join_others(s->join) && engine_is_silent(s->engine);

	if (!s->moving)
		s->rescues = false;
	engine_wait_for(s->engine, is_gone ? RESCUE_PATIENCE_NS : 0);
	if (!is_gone || s->moving || s->next.channel || now_ns < s->rescue_ns)
		return;
	s->rescue_ns = now_ns + RESCUE_AGAIN_NS;
	s->moving = moving_rescue(s->join, s->pump->kick);
	s->rescues = s->moving;
}

static struct window_options window_of(const struct shard *s, const struct joining_answer *place)
{
	const struct run *run = &place->job;
	struct window_options o = { .job = run->job,
				    .epoch = run->epoch,
				    .rank = place->rank,
				    .workers = run->workers,
				    .window = run->window,
				    .payload_bytes = run->payload_bytes,
				    .nonce = run->nonce,
				    .follows = s->follows,
				    .keeps = s->keeps,
				    .keyed = run_rank_key(run, place->rank),
				    .sealed = run_secret(run) };

	if (o.keyed)
		memcpy(&o.key, run_rank_key(run, place->rank), sizeof(o.key));
	if (o.sealed)
		memcpy(&o.secret, run_secret(run), sizeof(o.secret));
	return o;
}

/* Without threads, who turns shards has the job's lock, too. */
static void poll_next(struct shard *s)
{
	const struct tally *t = s->pump->tally;
	struct epoll_event e = { .events = EPOLLIN };

	if (!t->threaded && t->poll >= 0)
		epoll_ctl(t->poll, EPOLL_CTL_ADD, s->next.channel->transport->fd(s->next.channel),
			  &e);
}

/* The place is there: from now on chunks may go there. */
static int both_begin(struct shard *s, const struct joining_answer *place)
{
	struct window_options o = window_of(s, place);
	const size_t bytes = tally_header_bytes(o.workers > TALLY_SMALL_WORKERS_MAX ? TALLY_LARGE
										    : 0) +
			     o.payload_bytes;
	int r = s->next.channel->transport->connect(s->next.channel, &place->job.service, bytes,
						    2u * o.window);

	if (r == 0 && s->follows)
		s->next.channel->transport->take_marks(s->next.channel);
	if (r == 0)
		r = (s->rescues || engine_is_silent(s->engine) ? engine_rescue
							       : engine_move)(s->engine, &o);
	explicit_bzero(&o, sizeof(o));
	if (r < 0)
		return r;
	s->next.since_ns = clock_now_ns();
	address_print(&place->job.service, s->next.service, sizeof(s->next.service));
	poll_next(s);
	return 0;
}

static void place_take(struct shard *s)
{
	struct joining_answer *place = calloc(1, sizeof(*place));
	int r = -1;

	if (place)
		r = moving_take(s->moving, &s->next.join, &s->next.channel, place);
	moving_end(TAKE_PTR(s->moving));
	if (r == 0 && both_begin(s, place) < 0) {
		join_close(TAKE_PTR(s->next.join));
		transport_close(TAKE_PTR(s->next.channel));
	}
	if (place)
		explicit_bzero(place, sizeof(*place));
	free(place);
}

static void both_end(struct shard *s)
{
	const bool is_gone = engine_is_silent(s->engine);

	engine_move_end(s->engine);
	(is_gone ? join_drop : join_close)(s->join);
	transport_close(s->channel);
	s->join = TAKE_PTR(s->next.join);
	s->stay.pause_ns = s->stay.due_ns = 0; /* whatever the agent of the first one said */
	s->channel = TAKE_PTR(s->next.channel);
	s->no_room = s->next.no_room;
	s->polls_room = false;
	memcpy(s->service, s->next.service, sizeof(s->service));
}

/* Else no other move could begin, and who left the first run would be missed in none. */
static void both_cancel(struct shard *s)
{
	join_drop(TAKE_PTR(s->next.join));
	transport_close(TAKE_PTR(s->next.channel));
	s->next.no_room = false;
}

static bool input(struct shard *s)
{
	const struct transport *transport = s->next.channel->transport;
	struct datagram batch[TRANSPORT_RECEIVED_MAX];
	uint64_t received = s->received;
	size_t n;

	for (int turns = 0; turns < TURNS_MAX; turns++) {
		uint64_t now;

		n = transport->receive(s->next.channel, batch);
		now = clock_now_ns();
		for (size_t i = 0; i < n; i++)
			engine_next_input(s->engine, batch[i].bytes, batch[i].length, now);
		s->received += n;
		if (n < TRANSPORT_RECEIVES)
			break;
	}
	return s->received != received;
}

bool progress_move_turn(struct shard *s)
{
	bool busy = false;

	if (s->moving && moving_is_done(s->moving)) {
		if (s->stay.asks)
			progress_stay_take(s);
		else
			place_take(s);
		busy = true;
	}
	named_begin(s);
	if (!s->next.channel)
		return busy;
	busy |= input(s);
	if (engine_has_moved(s->engine))
		both_end(s);
	else if (clock_now_ns() - s->next.since_ns > ARRIVE_NS && engine_move_cancel(s->engine))
		both_cancel(s);
	return busy;
}

void progress_move_output(struct shard *s)
{
	struct datagram batch[TRANSPORT_BATCH];
	uint64_t now = clock_now_ns();
	size_t n, sent;

	if (!s->next.channel)
		return;
	do {
		n = engine_next_output(s->engine, now, batch, TRANSPORT_BATCH);
		sent = n ? s->next.channel->transport->send(s->next.channel, batch, n) : 0;
		s->sent += sent;
		s->next.no_room = sent < n;
		if (s->next.no_room)
			engine_next_unsent(s->engine, batch + sent, n - sent);
	} while (n == TRANSPORT_BATCH && !s->next.no_room);
}

void progress_move_close(struct shard *s, bool forked)
{
	if (forked) {
		moving_forget(TAKE_PTR(s->moving));
		join_forget(TAKE_PTR(s->next.join));
	}
	moving_end(TAKE_PTR(s->moving));
	join_close(TAKE_PTR(s->next.join));
	transport_close(TAKE_PTR(s->next.channel));
}
