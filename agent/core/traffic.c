// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "traffic_private.h"

/* Of rates: a step is followed to 95 % in 6 s. Of trends: Holt's weights for one second. */
static const double RATE_TAU_S = 2, TREND_ALPHA = 0.5, TREND_BETA = 0.1;

/* --- what an outcome says of a packet --------------------------------------------------------- */

enum {
	LEFT = 1, /* a copy on its way out, no packet that came in */
	REFUSED = 2, /* over a rate, or in where it may not */
	AGAIN = 4, /* its vector was counted already */
};

static const uint8_t meaning[TALLY_OUTCOME_COUNT] = {
	[TALLY_FANNED_OUT] = LEFT,    [TALLY_NO_CHILD] = LEFT,
	[TALLY_DUPLICATE] = AGAIN,    [TALLY_STALE] = AGAIN,
	[TALLY_ANSWERED] = AGAIN,     [TALLY_ANSWERED_ALL] = AGAIN,
	[TALLY_OVER_RATE] = REFUSED,  [TALLY_OVER_PRIORITY] = REFUSED,
	[TALLY_OTHER_PORT] = REFUSED, [TALLY_OTHER_SOURCE] = REFUSED,
};

/* --- what is kept ---------------------------------------------------------------------------- */

int traffic_new(struct traffic **ret)
{
	struct traffic *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	traffic_index_init(&t->jobs, TALLY_JOBS_MAX);
	traffic_index_init(&t->tenants, TALLY_TENANTS_MAX);
	traffic_index_init(&t->ports, TALLY_PORTS_MAX);
	traffic_index_init(&t->links, TALLY_PORTS_MAX);
	t->last = t->rows[0];
	t->next = t->rows[1];
	*ret = t;
	return 0;
}

void traffic_free(struct traffic *t) { free(t); }

/* The next moment of the ring, which replaces the oldest when the ring is full. */
static struct traffic_moment *ring_put(struct ring *r)
{
	unsigned int at = r->next;

	r->next = (r->next + 1) % TRAFFIC_HISTORY;
	if (r->count < TRAFFIC_HISTORY)
		r->count++;
	return &r->moment[at];
}

static size_t ring_copy(const struct ring *r, struct traffic_moment *ret, size_t max)
{
	size_t n = max < r->count ? max : r->count;

	for (size_t i = 0; i < n; i++)
		ret[i] = r->moment[(r->next + TRAFFIC_HISTORY - n + i) % TRAFFIC_HISTORY];
	return n;
}

/* --- rates ----------------------------------------------------------------------------------- */

void traffic_flow_begin(struct flow *f)
{
	*f = (struct flow){ 0 };
	forecast_rate_init(&f->packets, RATE_TAU_S);
	forecast_rate_init(&f->bytes, RATE_TAU_S);
	forecast_rate_init(&f->chunks, RATE_TAU_S);
	forecast_rate_init(&f->refused, RATE_TAU_S);
	forecast_rate_init(&f->again, RATE_TAU_S);
	forecast_trend_init(&f->trend, TREND_ALPHA, TREND_BETA);
}

/* True: an interval has ended. */
static bool rate_and_trend(struct forecast_rate *rate, struct forecast_trend *trend,
			   uint64_t now_ns, uint64_t counter)
{
	uint64_t elapsed_ns = now_ns - rate->at_ns;

	if (!forecast_rate_reading(rate, now_ns, counter))
		return false;
	forecast_trend_value(trend, elapsed_ns, rate->interval_per_second);
	return true;
}

static bool flow_rates(struct flow *f, uint64_t now_ns)
{
	const struct tally_counter *total = f->shown.total;
	uint64_t packets = 0, bytes = 0, refused = 0, again = 0;
	struct traffic_rates *r = &f->shown.rates;

	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		if (meaning[i] & LEFT)
			continue;
		packets += total[i].packet;
		bytes += total[i].byte;
		if (meaning[i] & REFUSED)
			refused += total[i].packet;
		if (meaning[i] & AGAIN)
			again += total[i].packet;
	}
	forecast_rate_reading(&f->packets, now_ns, packets);
	forecast_rate_reading(&f->chunks, now_ns, total[TALLY_COMPLETED].packet);
	forecast_rate_reading(&f->refused, now_ns, refused);
	forecast_rate_reading(&f->again, now_ns, again);
	if (!rate_and_trend(&f->bytes, &f->trend, now_ns, bytes))
		return false;
	r->packets_per_second = f->packets.per_second;
	r->bytes_per_second = f->bytes.per_second;
	r->forecast_bytes_per_second = forecast_trend_ahead(&f->trend, TRAFFIC_FORECAST_S);
	r->chunks_per_second = f->chunks.per_second;
	r->refused_per_second = f->refused.per_second;
	/* of the smoothed rates, so that one odd packet in a quiet second is not 100 % */
	r->duplicate_percent = f->packets.per_second > 0
				       ? 100 * f->again.per_second / f->packets.per_second
				       : 0;
	return true;
}

static void job_rates(struct job_series *j, uint64_t now_ns)
{
	struct flow *f = &j->flow;

	if (!flow_rates(f, now_ns))
		return;
	*ring_put(&j->ring) = (struct traffic_moment){
		now_ns,
		{
			[TRAFFIC_JOB_PACKETS] = (float)f->packets.interval_per_second,
			[TRAFFIC_JOB_BYTES] = (float)f->bytes.interval_per_second,
			[TRAFFIC_JOB_CHUNKS] = (float)f->chunks.interval_per_second,
			[TRAFFIC_JOB_REFUSED] = (float)f->refused.interval_per_second,
			[TRAFFIC_JOB_DUPLICATES] = (float)f->again.interval_per_second,
		},
	};
}

/* --- links ----------------------------------------------------------------------------------- */

static void direction_begin(struct direction *d)
{
	forecast_rate_init(&d->packets, RATE_TAU_S);
	forecast_rate_init(&d->bytes, RATE_TAU_S);
	forecast_trend_init(&d->trend, TREND_ALPHA, TREND_BETA);
}

static bool direction_rates(struct direction *d, uint64_t now_ns,
			    const struct traffic_direction *counted, struct traffic_speed *ret)
{
	forecast_rate_reading(&d->packets, now_ns, counted->packets);
	if (!rate_and_trend(&d->bytes, &d->trend, now_ns, counted->bytes))
		return false;
	ret->packets_per_second = d->packets.per_second;
	ret->bytes_per_second = d->bytes.per_second;
	ret->forecast_bytes_per_second = forecast_trend_ahead(&d->trend, TRAFFIC_FORECAST_S);
	return true;
}

static void link_rates(struct link_series *s, uint64_t now_ns)
{
	const struct traffic_link *link = &s->shown.link;
	bool ended = direction_rates(&s->receive, now_ns, &link->receive, &s->shown.receive);

	direction_rates(&s->transmit, now_ns, &link->transmit, &s->shown.transmit);
	if (!ended)
		return;
	*ring_put(&s->ring) = (struct traffic_moment){
		now_ns,
		{
			[TRAFFIC_LINK_RECEIVE_PACKETS] =
				(float)s->receive.packets.interval_per_second,
			[TRAFFIC_LINK_RECEIVE_BYTES] = (float)s->receive.bytes.interval_per_second,
			[TRAFFIC_LINK_TRANSMIT_PACKETS] =
				(float)s->transmit.packets.interval_per_second,
			[TRAFFIC_LINK_TRANSMIT_BYTES] =
				(float)s->transmit.bytes.interval_per_second,
			[TRAFFIC_LINK_BACKLOG_BYTES] = (float)link->backlog_bytes,
		},
	};
}

/* NULL: no room, or it was in this sample already. */
static struct link_series *link_series_of(struct traffic *t, uint32_t ifindex)
{
	int place = traffic_index_find(&t->links, ifindex);
	struct link_series *s;

	if (place >= 0) {
		s = &t->link[place];
		return s->sampled == t->stats.samples ? NULL : s;
	}
	place = traffic_index_add(&t->links, ifindex);
	if (place < 0)
		return NULL;
	s = &t->link[place];
	s->shown = (struct traffic_link_flow){ 0 };
	s->ring.next = s->ring.count = 0;
	direction_begin(&s->receive);
	direction_begin(&s->transmit);
	return s;
}

static void links_drop_gone(struct traffic *t, const struct traffic_link *links, size_t m)
{
	unsigned int i = 0;

	for (size_t k = 0; k < m; k++) {
		int place = traffic_index_find(&t->links, links[k].ifindex);

		if (place >= 0)
			t->link[place].named = t->stats.samples;
	}
	while (i < t->links.count)
		if (t->link[t->links.entry[i].place].named == t->stats.samples)
			i++;
		else
			traffic_index_remove(&t->links, i);
}

static void links_sample(struct traffic *t, uint64_t now_ns, const struct traffic_link *links,
			 size_t m)
{
	links_drop_gone(t, links, m);
	for (size_t k = 0; k < m; k++) {
		struct link_series *s = link_series_of(t, links[k].ifindex);

		if (!s) {
			t->stats.links_ignored++;
			continue;
		}
		s->sampled = t->stats.samples;
		s->shown.link = links[k];
		link_rates(s, now_ns);
	}
}

/* --- what the module does -------------------------------------------------------------------- */

void traffic_sample(struct traffic *t, uint64_t now_ns, const struct traffic_row *rows, size_t n,
		    const struct traffic_link *links, size_t m)
{
	if (t->stats.samples++ == 0)
		traffic_flow_begin(&t->node);
	traffic_rows(t, rows, n);
	flow_rates(&t->node, now_ns);
	for (unsigned int i = 0; i < t->jobs.count; i++)
		job_rates(&t->job[t->jobs.entry[i].place], now_ns);
	for (unsigned int i = 0; i < t->tenants.count; i++)
		flow_rates(&t->tenant[t->tenants.entry[i].place], now_ns);
	for (unsigned int i = 0; i < t->ports.count; i++)
		flow_rates(&t->port[t->ports.entry[i].place], now_ns);
	links_sample(t, now_ns, links, m);
}

const struct traffic_flow *traffic_node(const struct traffic *t) { return &t->node.shown; }

const struct traffic_flow *traffic_job(const struct traffic *t, uint32_t job)
{
	int place = traffic_index_find(&t->jobs, job);

	return place < 0 ? NULL : &t->job[place].flow.shown;
}

const struct traffic_flow *traffic_tenant(const struct traffic *t, uint16_t tenant)
{
	int place = traffic_index_find(&t->tenants, tenant);

	return place < 0 ? NULL : &t->tenant[place].shown;
}

const struct traffic_flow *traffic_port(const struct traffic *t, uint32_t ifindex)
{
	int place = traffic_index_find(&t->ports, ifindex);

	return place < 0 ? NULL : &t->port[place].shown;
}

const struct traffic_link_flow *traffic_link_flow(const struct traffic *t, uint32_t ifindex)
{
	int place = traffic_index_find(&t->links, ifindex);

	return place < 0 ? NULL : &t->link[place].shown;
}

void traffic_job_forget(struct traffic *t, uint32_t job)
{
	if (traffic_index_find(&t->jobs, job) >= 0)
		traffic_index_remove(&t->jobs, traffic_index_position(&t->jobs, job));
}

void traffic_tenant_forget(struct traffic *t, uint16_t tenant)
{
	if (traffic_index_find(&t->tenants, tenant) >= 0)
		traffic_index_remove(&t->tenants, traffic_index_position(&t->tenants, tenant));
}

size_t traffic_job_history(const struct traffic *t, uint32_t job, struct traffic_moment *ret,
			   size_t max)
{
	int place = traffic_index_find(&t->jobs, job);

	return place < 0 ? 0 : ring_copy(&t->job[place].ring, ret, max);
}

size_t traffic_link_history(const struct traffic *t, uint32_t ifindex, struct traffic_moment *ret,
			    size_t max)
{
	int place = traffic_index_find(&t->links, ifindex);

	return place < 0 ? 0 : ring_copy(&t->link[place].ring, ret, max);
}

struct traffic_stats traffic_stats(const struct traffic *t)
{
	struct traffic_stats stats = t->stats;

	stats.jobs = t->jobs.count;
	stats.tenants = t->tenants.count;
	stats.ports = t->ports.count;
	stats.links = t->links.count;
	return stats;
}
