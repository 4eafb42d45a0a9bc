// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "steering.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/edge/log.h"
#include "agent/edge/netlink_steer.h"
#include "common/clock.h"
#include "common/owned.h"
#include "placing.h"
#include "sharing.h"

enum {
	LOOK_MS = 500,
	AGAIN_MS = 10000, /* somebody may have taken ours away, and nobody says so */
	REFUSED_MS = 300000, /* what the kernel does not do now, it will not do soon */
	DEAF_MS = 10000, /* as long as a lease: others take this node for gone by then */
	SLACK_US = 50000,
};

struct steering {
	struct driver *driver;
	const struct core *core;
	struct sharing *sharing;
	const struct placing *placing;
	sd_event_source *timer;
	uint64_t began_ns;
	struct steer steer; /* as the store has it */
	bool hurries; /* the kernel is to be looked at, whatever the store says */
	bool holds; /* what the kernel has is that, since done_ns */
	uint64_t done_ns;
	uint64_t refused_ns; /* since when this node does not steer; 0: it does */
	struct why why; /* of that */
};

/* --- into the kernel ------------------------------------------------------------------------- */

static int put(const struct steer_route *route, unsigned int count, unsigned int *ret_changes,
	       struct why *why)
{
	_cleanup_(freep) struct netlink_steered *s = calloc(count + 1, sizeof(*s));
	unsigned int rules = 0;

	if (!s)
		return -ENOMEM;
	for (unsigned int i = 0; i < count; i++) {
		if (route[i].sums)
			continue;
		s[rules].from = route[i].from;
		s[rules].to = route[i].to;
		s[rules].gateway = route[i].gateway;
		memcpy(s[rules++].port, route[i].port, sizeof(s->port));
	}
	return netlink_steer(s, rules, ret_changes, why);
}

/* Also where there was nothing to take away. */
static void clear(void)
{
	unsigned int changes = 0;
	struct why why = { "" };

	if (put(NULL, 0, &changes, &why) < 0)
		log_say(LOG_LEVEL_WARNING, "rules and routes left", "reason=\"%s\"", why.text);
	else if (changes)
		log_say(LOG_LEVEL_INFO, "rules and routes taken away", "changes=%u", changes);
}

static void refused(struct steering *s, int error, const struct why *why)
{
	s->why = *why;
	if (!*s->why.text)
		why_say(&s->why, 0, "%s", strerror(-error));
	s->refused_ns = clock_now_ns();
	log_say(LOG_LEVEL_WARNING, "packets are not steered", "reason=\"%s\"", s->why.text);
	clear();
}

/* A port that is not there, or not up, is reported, and then nobody wants ways over it. */
static void apply(struct steering *s)
{
	unsigned int changes = 0;
	struct why why = { "" };
	const int r = put(s->steer.route, s->steer.routes, &changes, &why);

	s->hurries = false;
	s->done_ns = clock_now_ns();
	s->holds = r == 0;
	if (r < 0 && r != -ENODEV)
		refused(s, r, &why);
	else if (changes)
		log_say(LOG_LEVEL_INFO, "packets steered", "routes=%u changes=%u", s->steer.routes,
			changes);
}

/* --- what is wanted -------------------------------------------------------------------------- */

/* What others know of this node, and it of them, is so old that they may do something else. */
static bool is_deaf(const struct steering *s)
{
	const uint64_t heard_ns = sharing_state(s->sharing).heard_ns;
	const uint64_t since_ns = heard_ns > s->began_ns ? heard_ns : s->began_ns;

	return clock_now_ns() - since_ns >= DEAF_MS * 1000000ull;
}

static void jobs_say(const struct steer *was, const struct steer *is)
{
	for (unsigned int i = 0; i < is->jobs; i++) {
		const struct steer_job *j = &is->job[i], *before = steer_job_find(was, j->name);

		if (*j->why.text && (!before || strcmp(before->why.text, j->why.text) != 0))
			log_say(LOG_LEVEL_WARNING, "ways do not hold", "job=%s reason=\"%s\"",
				j->name, j->why.text);
	}
}

/* Does the node know all that the store has? And what is wanted of this node
 * of it, and not of another agent's? If not, what an agent before it made may be wanted. */
static bool is_known(const struct steering *s)
{
	return placing_is_current(s->placing) && sharing_is_current(s->sharing) &&
	       sharing_has_name(s->sharing);
}

static void look(struct steering *s)
{
	static const struct shared nothing;
	const struct config_cluster *c = &core_config(s->core)->cluster;
	const bool is_deaf_now = is_deaf(s);
	struct steer now = { 0 };
	const bool held = s->holds;
	bool is_same;

	if (s->refused_ns && clock_now_ns() - s->refused_ns >= REFUSED_MS * 1000000ull)
		s->refused_ns = 0;
	sharing_steers(s->sharing, c->steering && !s->refused_ns);
	if (!is_deaf_now && !is_known(s))
		return;
	if (steer_make(is_deaf_now ? &nothing : placing_shared(s->placing),
		       sharing_picture(s->sharing), c->node, &now) < 0)
		return; /* no memory now */
	is_same = steer_is_equal(&s->steer, &now);
	if (!is_same)
		jobs_say(&s->steer, &now);
	steer_close(&s->steer);
	s->steer = now;
	if (c->steering && !s->refused_ns &&
	    (!is_same || !s->holds || s->hurries ||
	     (now.routes && clock_now_ns() - s->done_ns >= AGAIN_MS * 1000000ull)))
		apply(s);
	if (!is_same || held != s->holds)
		driver_ways_changed(s->driver);
}

static int on_time(sd_event_source *timer, uint64_t us, void *data)
{
	look(data);
	sd_event_source_set_time_relative(timer, LOOK_MS * 1000ull);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return 0;
}

void steering_hurry(struct steering *s)
{
	if (s)
		s->hurries = s->steer.routes;
}

const struct steer_job *steering_job(const struct steering *s, const char *job)
{
	return s ? steer_job_find(&s->steer, job) : NULL;
}

const struct steer_route *steering_route(const struct steering *s,
					 const struct sockaddr_storage *from,
					 const struct sockaddr_storage *to)
{
	return s && s->holds ? steer_route_find(&s->steer, from, to) : NULL;
}

const char *steering_trouble(const struct steering *s)
{
	return s && s->refused_ns ? s->why.text : "";
}

/* --- open and close -------------------------------------------------------------------------- */

int steering_open(sd_event *loop, struct driver *d, struct sharing *sharing,
		  const struct placing *placing, struct steering **ret)
{
	const struct core *c = driver_core(d);
	struct steering *s;
	int r;

	if (!sharing || !core_config(c)->cluster.steering)
		clear();
	if (!sharing)
		return 0;
	s = *ret = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->driver = d;
	s->core = c;
	s->sharing = sharing;
	s->placing = placing;
	s->began_ns = clock_now_ns();
	sharing_steers(sharing, core_config(c)->cluster.steering);
	r = sd_event_add_time_relative(loop, &s->timer, CLOCK_MONOTONIC, 0, SLACK_US, on_time, s);
	return r < 0 ? r : 0;
}

void steering_close(struct steering *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->timer);
	if (core_config(s->core)->cluster.steering)
		clear();
	steer_close(&s->steer);
	free(s);
}
