// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdlib.h>

#include "traffic_private.h"

/* Of rates: a step is followed to 95 % in 6 s. Of trends: Holt's weights for one second. */
static const double RATE_TAU_S = 2, NS_PER_S = 1e9;

/* --- what an outcome says of a packet --------------------------------------------------------- */

enum {
	LEFT = 1, /* a copy on its way out, no packet that came in */
	REFUSED = 2, /* over a rate or priority */
	AGAIN = 4, /* its vector was counted already */
	ANYBODY = 8, /* refused before it is known whose it is: whoever sent it */
	ADDED = 16, /* to a sum, and never again to the same one */
};

static const uint8_t meaning[TALLY_OUTCOME_COUNT] = {
	[TALLY_FANNED_OUT] = LEFT,	[TALLY_NO_CHILD] = LEFT,       [TALLY_DUPLICATE] = AGAIN,
	[TALLY_STALE] = AGAIN,		[TALLY_ANSWERED] = AGAIN,      [TALLY_ANSWERED_ALL] = AGAIN,
	[TALLY_OVERSIZED] = ANYBODY,	[TALLY_BAD_KIND] = ANYBODY,    [TALLY_CORRUPT] = ANYBODY,
	[TALLY_UNKNOWN_FLAG] = ANYBODY, [TALLY_WRONG_EPOCH] = ANYBODY, [TALLY_BAD_SET] = ANYBODY,
	[TALLY_BAD_RANK] = ANYBODY,	[TALLY_FORGED] = ANYBODY,      [TALLY_OTHER_RUN] = ANYBODY,
	[TALLY_OVER_RATE] = REFUSED,	[TALLY_ABSORBED] = ADDED,      [TALLY_COMPLETED] = ADDED,
};

/* --- what is kept ---------------------------------------------------------------------------- */

int traffic_new(struct traffic **ret)
{
	struct traffic *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	traffic_index_init(&t->jobs, t->job, sizeof(*t->job), TALLY_JOBS_MAX);
	traffic_index_init(&t->tenants, t->tenant, sizeof(*t->tenant), TALLY_TENANTS_MAX);
	traffic_index_init(&t->ports, t->port, sizeof(*t->port), TALLY_PORTS_MAX);
	traffic_index_init(&t->links, t->link, sizeof(*t->link), TALLY_PORTS_MAX);
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

static void rates_begin(struct forecast_rate *rate, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		forecast_rate_init(&rate[i], RATE_TAU_S);
}

static void trend_begin(struct predict_holt *trend)
{
	PREDICT_HOLT.begin(trend, &PREDICT_HOLT.usual);
}

void traffic_flow_begin(struct flow *f)
{
	*f = (struct flow){ 0 };
	rates_begin(f->rate, TRAFFIC_VALUES);
	rates_begin(&f->added, 1);
	trend_begin(&f->trend);
}

/* How long the interval was that has ended; 0: none has. */
static uint64_t rates_read(struct forecast_rate *rate, unsigned int count, uint64_t now_ns,
			   const uint64_t *counter)
{
	uint64_t elapsed_ns = now_ns - rate->at_ns;
	bool ended = false;

	for (unsigned int i = 0; i < count; i++)
		ended = forecast_rate_reading(&rate[i], now_ns, counter[i]);
	return ended ? elapsed_ns : 0;
}

static double bytes_forecast(struct predict_holt *trend, uint64_t elapsed_ns,
			     const struct forecast_rate *bytes)
{
	PREDICT_HOLT.observe(trend, (double)elapsed_ns / NS_PER_S, bytes->interval_per_second);
	return PREDICT_HOLT.forecast(trend, TRAFFIC_FORECAST_S);
}

static struct traffic_moment *rates_put(struct ring *r, uint64_t now_ns,
					const struct forecast_rate *rate, unsigned int count)
{
	struct traffic_moment *m = ring_put(r);

	m->at_ns = now_ns;
	for (unsigned int i = 0; i < count; i++)
		m->value[i] = (float)rate[i].interval_per_second;
	return m;
}

/* `all`: of the node, or of a port; otherwise of what its workers have sent. */
static bool flow_rates(struct flow *f, uint64_t now_ns, bool all)
{
	const struct tally_counter *total = f->shown.total;
	uint64_t counted[TRAFFIC_VALUES] = { [TRAFFIC_JOB_CHUNKS] = total[TALLY_COMPLETED].packet +
								    total[TALLY_SENT_UP].packet };
	struct traffic_rates *r = &f->shown.rates;
	const struct forecast_rate *rate = f->rate;
	uint64_t elapsed_ns, added = 0;

	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		if (meaning[i] & (all ? LEFT : LEFT | ANYBODY))
			continue;
		counted[TRAFFIC_JOB_PACKETS] += total[i].packet;
		counted[TRAFFIC_JOB_BYTES] += total[i].byte;
		if (meaning[i] & REFUSED)
			counted[TRAFFIC_JOB_REFUSED] += total[i].packet;
		if (meaning[i] & AGAIN)
			counted[TRAFFIC_JOB_DUPLICATES] += total[i].packet;
		if (meaning[i] & ADDED)
			added += total[i].byte;
	}
	rates_read(&f->added, 1, now_ns, &added);
	elapsed_ns = rates_read(f->rate, TRAFFIC_VALUES, now_ns, counted);
	if (!elapsed_ns)
		return false;
	r->packets_per_second = rate[TRAFFIC_JOB_PACKETS].per_second;
	r->bytes_per_second = rate[TRAFFIC_JOB_BYTES].per_second;
	r->forecast_bytes_per_second = bytes_forecast(&f->trend, elapsed_ns,
						      &rate[TRAFFIC_JOB_BYTES]);
	r->added_bytes_per_second = f->added.per_second;
	r->chunks_per_second = rate[TRAFFIC_JOB_CHUNKS].per_second;
	r->refused_per_second = rate[TRAFFIC_JOB_REFUSED].per_second;
	/* of the smoothed rates, so that one odd packet in a quiet second is not 100 % */
	r->duplicate_percent = r->packets_per_second > 0
				       ? 100 * rate[TRAFFIC_JOB_DUPLICATES].per_second /
						 r->packets_per_second
				       : 0;
	return true;
}

/* --- links ----------------------------------------------------------------------------------- */

static struct traffic_speed speed_of(const struct forecast_rate *packets,
				     const struct forecast_rate *bytes, struct predict_holt *trend,
				     uint64_t elapsed_ns)
{
	return (struct traffic_speed){
		.packets_per_second = packets->per_second,
		.bytes_per_second = bytes->per_second,
		.forecast_bytes_per_second = bytes_forecast(trend, elapsed_ns, bytes),
	};
}

static void link_rates(struct link_series *s, uint64_t now_ns)
{
	const struct traffic_link *link = &s->shown.link;
	const uint64_t counted[TRAFFIC_LINK_BACKLOG_BYTES] = {
		[TRAFFIC_LINK_RECEIVE_PACKETS] = link->receive.packets,
		[TRAFFIC_LINK_RECEIVE_BYTES] = link->receive.bytes,
		[TRAFFIC_LINK_TRANSMIT_PACKETS] = link->transmit.packets,
		[TRAFFIC_LINK_TRANSMIT_BYTES] = link->transmit.bytes,
	};
	struct forecast_rate *rate = s->rate;
	uint64_t elapsed_ns = rates_read(rate, TRAFFIC_LINK_BACKLOG_BYTES, now_ns, counted);

	if (!elapsed_ns)
		return;
	s->shown.receive = speed_of(&rate[TRAFFIC_LINK_RECEIVE_PACKETS],
				    &rate[TRAFFIC_LINK_RECEIVE_BYTES], &s->receive, elapsed_ns);
	s->shown.transmit = speed_of(&rate[TRAFFIC_LINK_TRANSMIT_PACKETS],
				     &rate[TRAFFIC_LINK_TRANSMIT_BYTES], &s->transmit, elapsed_ns);
	rates_put(&s->ring, now_ns, rate, TRAFFIC_LINK_BACKLOG_BYTES)
		->value[TRAFFIC_LINK_BACKLOG_BYTES] = (float)link->backlog_bytes;
}

/* NULL: no room, or it was in this sample already. */
static struct link_series *link_series_of(struct traffic *t, uint32_t ifindex)
{
	struct link_series *s = traffic_index_find(&t->links, ifindex);

	if (s)
		return s->sampled == t->stats.samples ? NULL : s;
	s = traffic_index_add(&t->links, ifindex);
	if (!s)
		return NULL;
	rates_begin(s->rate, TRAFFIC_LINK_BACKLOG_BYTES);
	trend_begin(&s->receive);
	trend_begin(&s->transmit);
	return s;
}

static void links_drop_gone(struct traffic *t, const struct traffic_link *links, size_t m)
{
	struct link_series *s;
	unsigned int i = 0;

	for (size_t k = 0; k < m; k++) {
		s = traffic_index_find(&t->links, links[k].ifindex);
		if (s)
			s->named = t->stats.samples;
	}
	while (i < t->links.count) {
		s = traffic_index_at(&t->links, i);
		if (s->named == t->stats.samples)
			i++;
		else
			traffic_index_remove(&t->links, i);
	}
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
	flow_rates(&t->node, now_ns, true);
	for (unsigned int i = 0; i < t->jobs.count; i++) {
		struct job_series *j = traffic_index_at(&t->jobs, i);

		if (flow_rates(&j->flow, now_ns, false))
			rates_put(&j->ring, now_ns, j->flow.rate, TRAFFIC_VALUES);
	}
	for (unsigned int i = 0; i < t->tenants.count; i++)
		flow_rates(traffic_index_at(&t->tenants, i), now_ns, false);
	for (unsigned int i = 0; i < t->ports.count; i++)
		flow_rates(traffic_index_at(&t->ports, i), now_ns, true);
	links_sample(t, now_ns, links, m);
}

const struct traffic_flow *traffic_node(const struct traffic *t) { return &t->node.shown; }

const struct traffic_flow *traffic_job(const struct traffic *t, uint32_t job)
{
	return traffic_index_find(&t->jobs, job);
}

const struct traffic_flow *traffic_tenant(const struct traffic *t, uint16_t tenant)
{
	return traffic_index_find(&t->tenants, tenant);
}

const struct traffic_flow *traffic_port(const struct traffic *t, uint32_t ifindex)
{
	return traffic_index_find(&t->ports, ifindex);
}

const struct traffic_link_flow *traffic_link_flow(const struct traffic *t, uint32_t ifindex)
{
	return traffic_index_find(&t->links, ifindex);
}

void traffic_job_forget(struct traffic *t, uint32_t job) { traffic_index_forget(&t->jobs, job); }

void traffic_tenant_forget(struct traffic *t, uint16_t tenant)
{
	traffic_index_forget(&t->tenants, tenant);
}

size_t traffic_job_history(const struct traffic *t, uint32_t job, struct traffic_moment *ret,
			   size_t max)
{
	const struct job_series *j = traffic_index_find(&t->jobs, job);

	return j ? ring_copy(&j->ring, ret, max) : 0;
}

size_t traffic_link_history(const struct traffic *t, uint32_t ifindex, struct traffic_moment *ret,
			    size_t max)
{
	const struct link_series *s = traffic_index_find(&t->links, ifindex);

	return s ? ring_copy(&s->ring, ret, max) : 0;
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
