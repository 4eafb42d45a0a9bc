// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "agent/edge/log.h"
#include "common/clock.h"
#include "sampler.h"

enum {
	FRESH_NS = 100000000, /* a sample is so long as good as new, whoever asks how often */
	SLACK_US = 1000,
};

int sampler_watch(struct sampler *s, const struct dataplane_port *ports, unsigned int count,
		  struct why *why)
{
	uint32_t ifindexes[TALLY_PORTS_MAX];
	unsigned int there = 0;

	for (unsigned int i = 0; i < count; i++)
		if (ports[i].ifindex)
			ifindexes[there++] = ports[i].ifindex;
	return netlink_links_watch(s->links, ifindexes, there, why);
}

/* For the policy of quotas. */
static void tell_core(const struct sampler *s)
{
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++) {
		const struct traffic_flow *f = traffic_tenant(s->traffic, i);
		struct quota_use use = { 0 };

		if (f)
			use = (struct quota_use){
				.packets_per_second = f->rates.packets_per_second,
				.bytes_per_second = f->rates.bytes_per_second,
				.forecast_bytes_per_second = f->rates.forecast_bytes_per_second,
				.added_bytes_per_second = f->rates.added_bytes_per_second,
				.refused_per_second = f->rates.refused_per_second,
				.chunks_per_second = f->rates.chunks_per_second,
			};
		driver_measured(s->driver, i, &use);
	}
}

int sampler_sample(struct sampler *s, struct why *why)
{
	const uint64_t began_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	_cleanup_(freep) struct traffic_link *links = NULL;
	struct traffic_row *rows = NULL;
	unsigned int count = 0, ports;
	int r;

	core_ports(driver_core(s->driver), &ports);
	links = calloc(ports + 1, sizeof(*links));
	if (!links)
		return -ENOMEM;
	r = dataplane_rows(s->node->dataplane, &rows, &count, why);
	if (r == 0)
		r = spiller_rows(driver_spiller(s->driver), &rows, &count);
	s->software = spiller_memory(driver_spiller(s->driver));
	if (r == 0)
		r = netlink_links_read(s->links, links, ports, why);
	if (r >= 0) {
		s->sampled_ns = clock_now_ns();
		traffic_sample(s->traffic, s->sampled_ns, rows, count, links, r);
		tell_core(s);
		free(s->rows);
		s->rows = TAKE_PTR(rows);
		s->rows_count = count;
	}
	free(rows);
	s->sampling_ns += clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	return r < 0 ? r : 0;
}

int sampler_refresh(struct sampler *s, struct why *why)
{
	return clock_now_ns() - s->sampled_ns < FRESH_NS ? 0 : sampler_sample(s, why);
}

/* --- what the loop brings -------------------------------------------------------------------- */

static int on_timer(sd_event_source *timer, uint64_t us, void *data)
{
	struct sampler *s = data;
	struct why why = { "" };

	delay_add(&s->delays, clock_now_ns() - us * 1000);
	if (dataplane_settle(s->node->dataplane, &why) < 0 || sampler_sample(s, &why) < 0)
		log_say(LOG_LEVEL_WARNING, "cannot read counters", "reason=\"%s\"", why.text);
	sd_event_source_set_time_relative(timer,
					  core_config(driver_core(s->driver))->sample_ms * 1000ull);
	sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return 0;
}

static int on_links(sd_event_source *source, int fd, uint32_t events, void *data)
{
	struct sampler *s = data;
	struct why why = { "" };

	if (netlink_links_dispatch(s->links, &why) < 0)
		log_say(LOG_LEVEL_WARNING, "cannot read link events", "reason=\"%s\"", why.text);
	return 0;
}

static void on_link(void *context, uint32_t ifindex, const char *state)
{
	const struct core_event e = { .kind = CORE_LINK, .link = { ifindex, state } };
	struct sampler *s = context;

	driver_handle(s->driver, &e);
}

/* A wanted port may have come. */
static void on_other(void *context, const char *name)
{
	struct sampler *s = context;
	unsigned int count;
	const struct dataplane_port *p = core_ports(driver_core(s->driver), &count);

	for (; count; p++, count--)
		if (!p->ifindex && !strcmp(p->name, name)) {
			on_link(context, 0, "");
			return;
		}
}

static void on_lost(void *context) { on_link(context, 0, ""); }
static void on_address(void *context) { on_link(context, 0, ""); }
static void on_route(void *context) { driver_routes_changed(((struct sampler *)context)->driver); }

static void on_neighbour(void *context, const struct netlink_neighbour *n)
{
	const struct core_event e = { .kind = CORE_NEIGHBOUR,
				      .neighbour = { n->ifindex, &n->address, n->mac } };
	struct sampler *s = context;

	if (n->known)
		driver_handle(s->driver, &e);
}

static const struct netlink_links_events links_events = {
	.link = on_link,
	.other = on_other,
	.neighbour = on_neighbour,
	.address = on_address,
	.route = on_route,
	.lost = on_lost,
};

/* --- open and close -------------------------------------------------------------------------- */

int sampler_open(sd_event *loop, struct driver *d, const struct node *n, struct sampler **ret,
		 struct why *why)
{
	struct sampler *s = calloc(1, sizeof(*s));
	const struct dataplane_port *ports;
	unsigned int count;
	int r;

	*ret = s;
	if (!s)
		return -ENOMEM;
	s->driver = d;
	s->node = n;
	s->opened_ns = clock_now_ns();
	ports = core_ports(driver_core(d), &count);
	r = traffic_new(&s->traffic);
	if (r == 0)
		r = lateness_open(loop, d, n, &s->lateness);
	if (r == 0)
		r = netlink_links_open(&links_events, s, &s->links, why);
	if (r == 0)
		r = sampler_watch(s, ports, count, why);
	if (r == 0)
		r = sd_event_add_io(loop, &s->links_io, netlink_links_fd(s->links), EPOLLIN,
				    on_links, s);
	if (r >= 0)
		r = sd_event_add_time_relative(loop, &s->timer, CLOCK_MONOTONIC, 0, SLACK_US,
					       on_timer, s);
	return r < 0 ? r : 0;
}

void sampler_close(struct sampler *s)
{
	if (!s)
		return;
	sd_event_source_disable_unref(s->timer);
	sd_event_source_disable_unref(s->links_io);
	netlink_links_close(s->links);
	lateness_close(s->lateness);
	traffic_free(s->traffic);
	free(s->rows);
	free(s);
}
