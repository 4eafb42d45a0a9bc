// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "forecast.h"
#include "traffic.h"
#include "util.h"

/* Of rates: a step is followed to 95 % in 6 s. Of trends: Holt's weights for one second. */
static const double RATE_TAU_S = 2, TREND_ALPHA = 0.5, TREND_BETA = 0.1;

enum {
	INDEX_MAX = 1024,
	APART = 2, /* rows of no job, and of jobs that have gone */
	ROW_GONE = 1,
};

static_assert((int)TALLY_JOBS_MAX <= (int)INDEX_MAX, "jobs fit an index");
static_assert((int)TRAFFIC_TENANTS_MAX <= (int)INDEX_MAX, "tenants fit an index");
static_assert((int)TALLY_PORTS_MAX <= (int)INDEX_MAX, "ports fit an index");
static_assert((int)TRAFFIC_LINKS_MAX <= (int)INDEX_MAX, "links fit an index");

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

bool traffic_outcome_came_in(enum tally_outcome outcome) { return !(meaning[outcome] & LEFT); }

bool traffic_outcome_is_refused(enum tally_outcome outcome) { return meaning[outcome] & REFUSED; }

/* --- numbers to places, bounded -------------------------------------------------------------- */

/* The first `count` entries are in use, in the order of their ids; behind are free places. */
struct index {
	unsigned int count, max;
	struct {
		uint32_t id, place;
	} entry[INDEX_MAX];
};

static void index_init(struct index *x, unsigned int max)
{
	x->max = max;
	for (unsigned int i = 0; i < max; i++)
		x->entry[i].place = i;
}

/* Where the id stands among the entries, or would. */
static unsigned int index_position(const struct index *x, uint32_t id)
{
	unsigned int from = 0, to = x->count;

	while (from < to) {
		unsigned int middle = (from + to) / 2;

		if (x->entry[middle].id < id)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Its place, or -ENOENT. */
static int index_find(const struct index *x, uint32_t id)
{
	unsigned int at = index_position(x, id);

	return at < x->count && x->entry[at].id == id ? (int)x->entry[at].place : -ENOENT;
}

/* A place for an id that has none, or -ENOSPC. */
static int index_add(struct index *x, uint32_t id)
{
	unsigned int at = index_position(x, id), place;

	if (x->count == x->max)
		return -ENOSPC;
	place = x->entry[x->count].place;
	memmove(&x->entry[at + 1], &x->entry[at], (x->count - at) * sizeof(*x->entry));
	x->entry[at].id = id;
	x->entry[at].place = place;
	x->count++;
	return (int)place;
}

static void index_remove(struct index *x, unsigned int at)
{
	unsigned int place = x->entry[at].place;

	x->count--;
	memmove(&x->entry[at], &x->entry[at + 1], (x->count - at) * sizeof(*x->entry));
	x->entry[x->count].place = place;
}

/* --- what is kept ---------------------------------------------------------------------------- */

struct flow {
	struct traffic_flow shown;
	uint64_t seen; /* number of the sample that named it last */
	struct forecast_rate packets, bytes, chunks, refused, again;
	struct forecast_trend trend;
};

struct ring {
	unsigned int next, count;
};

struct job_series {
	struct flow flow;
	struct ring ring;
	struct traffic_moment moment[TRAFFIC_HISTORY];
};

struct direction {
	struct forecast_rate packets, bytes;
	struct forecast_trend trend;
};

struct link_series {
	struct traffic_link_flow shown;
	uint64_t named, sampled; /* numbers of samples, the last ones that did so */
	struct direction receive, transmit;
	struct ring ring;
	struct traffic_link_moment moment[TRAFFIC_HISTORY];
};

struct traffic {
	struct traffic_stats stats;
	struct flow node;
	struct index jobs, tenants, ports, links;
	struct job_series job[TALLY_JOBS_MAX];
	struct flow tenant[TRAFFIC_TENANTS_MAX];
	struct flow port[TALLY_PORTS_MAX];
	struct link_series link[TRAFFIC_LINKS_MAX];

	/* Of the last sample, to take differences: rows of jobs by (job, ifindex). */
	struct traffic_row apart[APART];
	struct traffic_row *last, *next;
	size_t last_count, next_count;
	const struct traffic_row *sorted[TRAFFIC_ROWS_MAX];
	/* Counted for jobs that have gone since, and not yet seen to move to row 1. */
	struct tally_counter moving[TALLY_OUTCOME_COUNT];
	struct traffic_row rows[2][TRAFFIC_ROWS_MAX];
};

int traffic_new(struct traffic **ret)
{
	struct traffic *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	index_init(&t->jobs, TALLY_JOBS_MAX);
	index_init(&t->tenants, TRAFFIC_TENANTS_MAX);
	index_init(&t->ports, TALLY_PORTS_MAX);
	index_init(&t->links, TRAFFIC_LINKS_MAX);
	t->last = t->rows[0];
	t->next = t->rows[1];
	*ret = t;
	return 0;
}

void traffic_free(struct traffic *t) { free(t); }

static unsigned int ring_put(struct ring *r)
{
	unsigned int at = r->next;

	r->next = (r->next + 1) % TRAFFIC_HISTORY;
	if (r->count < TRAFFIC_HISTORY)
		r->count++;
	return at;
}

/* Where the i-th of the newest `n` is. */
static unsigned int ring_at(const struct ring *r, size_t n, size_t i)
{
	return (r->next + 2 * TRAFFIC_HISTORY - n + i) % TRAFFIC_HISTORY;
}

/* --- rates ----------------------------------------------------------------------------------- */

static void flow_begin(struct flow *f)
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
	j->moment[ring_put(&j->ring)] = (struct traffic_moment){
		.at_ns = now_ns,
		.packets_per_second = (float)f->packets.interval_per_second,
		.bytes_per_second = (float)f->bytes.interval_per_second,
		.chunks_per_second = (float)f->chunks.interval_per_second,
		.refused_per_second = (float)f->refused.interval_per_second,
		.duplicates_per_second = (float)f->again.interval_per_second,
	};
}

/* --- rows ------------------------------------------------------------------------------------ */

static int row_order(const struct traffic_row *a, const struct traffic_row *b)
{
	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	return (a->ifindex > b->ifindex) - (a->ifindex < b->ifindex);
}

static int row_order_of_pointers(const void *a, const void *b)
{
	return row_order(*(const struct traffic_row *const *)a,
			 *(const struct traffic_row *const *)b);
}

/* Rows of jobs into t->sorted, each once. How many. */
static size_t rows_sort(struct traffic *t, const struct traffic_row *rows, size_t n)
{
	size_t count = 0, kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (rows[i].job == 0 && i < APART)
			continue;
		if (rows[i].job == 0 || count == TRAFFIC_ROWS_MAX)
			t->stats.rows_ignored++;
		else
			t->sorted[count++] = &rows[i];
	}
	qsort(t->sorted, count, sizeof(*t->sorted), row_order_of_pointers);
	for (size_t i = 0; i < count; i++) {
		if (kept && row_order(t->sorted[kept - 1], t->sorted[i]) == 0)
			t->stats.rows_ignored++;
		else
			t->sorted[kept++] = t->sorted[i];
	}
	return kept;
}

static void counter_add(struct tally_counter *to, const struct tally_counter *from)
{
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		to[i].packet += from[i].packet;
		to[i].byte += from[i].byte;
	}
}

/* What a row has counted since it was `before` (NULL: since ever). False: it began anew. */
static bool row_difference(const struct traffic_row *now, const struct traffic_row *before,
			   struct tally_counter *ret)
{
	memcpy(ret, now->outcome, sizeof(now->outcome));
	if (!before)
		return true;
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (now->outcome[i].packet < before->outcome[i].packet ||
		    now->outcome[i].byte < before->outcome[i].byte)
			return false;
	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++) {
		ret[i].packet -= before->outcome[i].packet;
		ret[i].byte -= before->outcome[i].byte;
	}
	return true;
}

/* The flow of a tenant or port; a new one may take the place of the one silent for longest. */
static struct flow *flow_of(struct traffic *t, struct index *x, struct flow *flows, uint32_t id)
{
	unsigned int oldest = 0;
	int place = index_find(x, id);

	if (place >= 0)
		return &flows[place];
	if (x->count == x->max) {
		for (unsigned int i = 1; i < x->count; i++)
			if (flows[x->entry[i].place].seen < flows[x->entry[oldest].place].seen)
				oldest = i;
		if (flows[x->entry[oldest].place].seen == t->stats.samples)
			return NULL;
		index_remove(x, oldest);
		t->stats.evicted++;
	}
	place = index_add(x, id);
	flow_begin(&flows[place]);
	return &flows[place];
}

static void flow_count(struct traffic *t, struct flow *f, const struct tally_counter *counted)
{
	counter_add(f->shown.total, counted);
	f->seen = t->stats.samples;
}

/* A job's series; a new one may take the place of one that has gone. NULL: none has. */
static struct job_series *job_of(struct traffic *t, uint32_t id)
{
	int place = index_find(&t->jobs, id);
	unsigned int oldest = 0;

	if (place >= 0)
		return &t->job[place];
	if (t->jobs.count == t->jobs.max) {
		for (unsigned int i = 1; i < t->jobs.count; i++)
			if (t->job[t->jobs.entry[i].place].flow.seen <
			    t->job[t->jobs.entry[oldest].place].flow.seen)
				oldest = i;
		if (t->job[t->jobs.entry[oldest].place].flow.seen == t->stats.samples)
			return NULL;
		index_remove(&t->jobs, oldest);
		t->stats.evicted++;
	}
	place = index_add(&t->jobs, id);
	flow_begin(&t->job[place].flow);
	t->job[place].ring = (struct ring){ 0 };
	return &t->job[place];
}

/* One job's row, with the one of the last sample. False: there is no room for the job. */
static bool row_count(struct traffic *t, const struct traffic_row *row,
		      const struct traffic_row *before)
{
	struct tally_counter counted[TALLY_OUTCOME_COUNT];
	struct job_series *job = job_of(t, row->job);
	struct flow *tenant, *port;

	if (!job)
		return false;
	if (!row_difference(row, before, counted))
		counter_add(t->moving, before->outcome);
	flow_count(t, &job->flow, counted);
	flow_count(t, &t->node, counted);
	tenant = flow_of(t, &t->tenants, t->tenant, row->tenant);
	port = flow_of(t, &t->ports, t->port, row->ifindex);
	if (tenant)
		flow_count(t, tenant, counted);
	if (port)
		flow_count(t, port, counted);
	if (!tenant || !port)
		t->stats.rows_ignored++;
	return true;
}

/* Both lists are in order: each row meets the one it was. */
static void rows_count(struct traffic *t, size_t count)
{
	struct traffic_row *swap = t->last;
	size_t l = 0;

	t->next_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct traffic_row *row = t->sorted[i], *before = NULL;

		while (l < t->last_count && row_order(&t->last[l], row) < 0)
			counter_add(t->moving, t->last[l++].outcome);
		if (l < t->last_count && row_order(&t->last[l], row) == 0)
			before = &t->last[l++];
		if (row_count(t, row, before))
			t->next[t->next_count++] = *row;
		else
			t->stats.rows_ignored++;
	}
	while (l < t->last_count)
		counter_add(t->moving, t->last[l++].outcome);
	t->last = t->next;
	t->last_count = t->next_count;
	t->next = swap;
}

static __u64 take_up_to(__u64 *from, __u64 most)
{
	__u64 taken = *from < most ? *from : most;

	*from -= taken;
	return taken;
}

/*
 * Packets of no job, and what row 1 has beyond what was counted when the jobs that have gone
 * were still there: their last moments.
 */
static void apart_count(struct traffic *t, const struct traffic_row *rows, size_t n)
{
	struct tally_counter counted[TALLY_OUTCOME_COUNT];

	for (size_t i = 0; i < n && i < APART; i++) {
		if (rows[i].job != 0)
			continue;
		if (!row_difference(&rows[i], &t->apart[i], counted) && i == ROW_GONE)
			memset(t->moving, 0, sizeof(t->moving));
		for (unsigned int k = 0; i == ROW_GONE && k < TALLY_OUTCOME_COUNT; k++) {
			counted[k].packet -= take_up_to(&t->moving[k].packet, counted[k].packet);
			counted[k].byte -= take_up_to(&t->moving[k].byte, counted[k].byte);
		}
		flow_count(t, &t->node, counted);
		t->apart[i] = rows[i];
	}
}

/* Before new ones come, so that they take nobody's place who is there. */
static void jobs_mark(struct traffic *t, size_t count)
{
	for (size_t k = 0; k < count; k++) {
		int place = index_find(&t->jobs, t->sorted[k]->job);

		if (place >= 0)
			t->job[place].flow.seen = t->stats.samples;
	}
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
	s->moment[ring_put(&s->ring)] = (struct traffic_link_moment){
		.at_ns = now_ns,
		.receive_packets_per_second = (float)s->receive.packets.interval_per_second,
		.receive_bytes_per_second = (float)s->receive.bytes.interval_per_second,
		.transmit_packets_per_second = (float)s->transmit.packets.interval_per_second,
		.transmit_bytes_per_second = (float)s->transmit.bytes.interval_per_second,
		.backlog_bytes = (float)link->backlog_bytes,
	};
}

/* NULL: no room, or it was in this sample already. */
static struct link_series *link_series_of(struct traffic *t, uint32_t ifindex)
{
	int place = index_find(&t->links, ifindex);
	struct link_series *s;

	if (place >= 0) {
		s = &t->link[place];
		return s->sampled == t->stats.samples ? NULL : s;
	}
	place = index_add(&t->links, ifindex);
	if (place < 0)
		return NULL;
	s = &t->link[place];
	s->shown = (struct traffic_link_flow){ 0 };
	s->ring = (struct ring){ 0 };
	direction_begin(&s->receive);
	direction_begin(&s->transmit);
	return s;
}

static void links_drop_gone(struct traffic *t, const struct traffic_link *links, size_t m)
{
	unsigned int i = 0;

	for (size_t k = 0; k < m; k++) {
		int place = index_find(&t->links, links[k].ifindex);

		if (place >= 0)
			t->link[place].named = t->stats.samples;
	}
	while (i < t->links.count)
		if (t->link[t->links.entry[i].place].named == t->stats.samples)
			i++;
		else
			index_remove(&t->links, i);
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
	size_t count;

	if (t->stats.samples++ == 0)
		flow_begin(&t->node);
	count = rows_sort(t, rows, n);
	jobs_mark(t, count);
	rows_count(t, count);
	apart_count(t, rows, n);
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
	int place = index_find(&t->jobs, job);

	return place < 0 ? NULL : &t->job[place].flow.shown;
}

const struct traffic_flow *traffic_tenant(const struct traffic *t, uint16_t tenant)
{
	int place = index_find(&t->tenants, tenant);

	return place < 0 ? NULL : &t->tenant[place].shown;
}

const struct traffic_flow *traffic_port(const struct traffic *t, uint32_t ifindex)
{
	int place = index_find(&t->ports, ifindex);

	return place < 0 ? NULL : &t->port[place].shown;
}

const struct traffic_link_flow *traffic_link_flow(const struct traffic *t, uint32_t ifindex)
{
	int place = index_find(&t->links, ifindex);

	return place < 0 ? NULL : &t->link[place].shown;
}

void traffic_job_forget(struct traffic *t, uint32_t job)
{
	if (index_find(&t->jobs, job) >= 0)
		index_remove(&t->jobs, index_position(&t->jobs, job));
}

void traffic_tenant_forget(struct traffic *t, uint16_t tenant)
{
	if (index_find(&t->tenants, tenant) >= 0)
		index_remove(&t->tenants, index_position(&t->tenants, tenant));
}

size_t traffic_job_history(const struct traffic *t, uint32_t job, struct traffic_moment *ret,
			   size_t max)
{
	int place = index_find(&t->jobs, job);
	const struct job_series *j;
	size_t n;

	if (place < 0)
		return 0;
	j = &t->job[place];
	n = max < j->ring.count ? max : j->ring.count;
	for (size_t i = 0; i < n; i++)
		ret[i] = j->moment[ring_at(&j->ring, n, i)];
	return n;
}

size_t traffic_link_history(const struct traffic *t, uint32_t ifindex,
			    struct traffic_link_moment *ret, size_t max)
{
	int place = index_find(&t->links, ifindex);
	const struct link_series *s;
	size_t n;

	if (place < 0)
		return 0;
	s = &t->link[place];
	n = max < s->ring.count ? max : s->ring.count;
	for (size_t i = 0; i < n; i++)
		ret[i] = s->moment[ring_at(&s->ring, n, i)];
	return n;
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
