// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "spiller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "agent/core/limits.h"
#include "agent/core/tenant.h"
#include "common/address.h"
#include "common/owned.h"
#include "refused.h"
#include "spill/serve.h"

_Static_assert((int)SPILL_POINTS_MAX == (int)TENANT_POINTS_MAX, "a tenant's points");
/* `lock` guards all but `wake`. */
struct spiller {
	pthread_mutex_t lock;
	pthread_t thread;
	bool runs; /* the thread */
	bool ends;
	int wake; /* eventfd: there are other sockets, or an end */
	int refused[2]; /* a pipe, for the thread of the owner */
	unsigned int services;
	struct sockaddr_storage service[SPILLER_SERVICES_MAX];
	struct serve_socket *socket[SPILLER_SERVICES_MAX];
	struct serve *serve;
	struct spill_limits tenant[TALLY_TENANTS_MAX]; /* 0: the node's own */
	struct spill_points points[TALLY_TENANTS_MAX]; /* the same */
};

/* --- the thread ------------------------------------------------------------------------------ */

static unsigned int sockets_of(struct spiller *s, struct pollfd *ret)
{
	ret[0] = (struct pollfd){ .fd = s->wake, .events = POLLIN };
	for (unsigned int i = 0; i < s->services; i++)
		ret[1 + i] = (struct pollfd){ .fd = serve_fd(s->socket[i]), .events = POLLIN };
	return 1 + s->services;
}

/* What was asked, of all that nobody took. If the pipe is full it is asked again. */
static void refused_hand_on(struct spiller *s, const struct serve_socket *socket)
{
	uint8_t datagram[SPILLER_ASK_BYTES];
	unsigned int left = REFUSED_MAX;
	ssize_t n;

	while ((n = refused_read(serve_fd(socket), &left, datagram, sizeof(datagram))) >= 0)
		if (n == sizeof(datagram) && !*datagram &&
		    write(s->refused[1], datagram, sizeof(datagram)) < 0)
			continue;
}

static void *serve_all(void *data)
{
	struct pollfd wait[1 + SPILLER_SERVICES_MAX];
	struct spiller *s = data;
	unsigned int sockets;
	uint64_t wakes;

	pthread_mutex_lock(&s->lock);
	while (!s->ends) {
		sockets = sockets_of(s, wait);
		pthread_mutex_unlock(&s->lock);
		poll(wait, sockets, -1);
		if (wait[0].revents && read(s->wake, &wakes, sizeof(wakes)) < 0)
			wakes = 0;
		pthread_mutex_lock(&s->lock);
		/* Services are only closed by the thread that ends this one. */
		for (unsigned int i = 1; i < sockets; i++) {
			if (wait[i].revents & POLLERR)
				refused_hand_on(s, s->socket[i - 1]);
			if (wait[i].revents)
				serve_some(s->serve, s->socket[i - 1]);
		}
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void wake(struct spiller *s)
{
	const uint64_t one = 1;

	if (write(s->wake, &one, sizeof(one)) < 0)
		return; /* it is awake: the number is at its limit */
}

/* --- jobs ------------------------------------------------------------------------------------ */

static void service_of(const struct tally_job *j, struct sockaddr_storage *ret)
{
	size_t bytes;
	void *raw;

	*ret = (struct sockaddr_storage){ .ss_family = j->ipv6 ? AF_INET6 : AF_INET };
	raw = address_raw(ret, &bytes);
	memcpy(raw, j->service, bytes);
	endpoint_port_set(ret, TALLY_UDP_PORT);
}

static unsigned int service_index(const struct spiller *s, const struct sockaddr_storage *service)
{
	unsigned int i = 0;

	while (i < s->services && !endpoint_is_equal(&s->service[i], service))
		i++;
	return i;
}

/* A socket at this address, if there is none. */
static int service_open(struct spiller *s, const struct sockaddr_storage *service, struct why *why)
{
	unsigned int i = service_index(s, service);
	int r;

	if (i == SPILLER_SERVICES_MAX)
		return why_say(why, -ENOSPC,
			       "at most %d service addresses can have jobs in "
			       "software",
			       SPILLER_SERVICES_MAX);
	if (i < s->services)
		return 0;
	r = serve_listen(&s->serve, 1, service, false, &s->socket[i], why);
	if (r < 0)
		return r;
	s->service[s->services++] = *service;
	wake(s);
	return 0;
}

static int thread_start(struct spiller *s, struct why *why)
{
	int r = s->runs ? 0 : pthread_create(&s->thread, NULL, serve_all, s);

	if (r > 0)
		return why_say(why, -r, "cannot start a thread: %s", strerror(r));
	s->runs = true;
	return 0;
}

static int put(struct spiller *s, const struct installation *g, const struct spill_child *child,
	       struct why *why)
{
	struct spill_job_options options = { .everyone = g->job.everyone,
					     .id = g->id,
					     .tenant = g->job.tenant,
					     .limits = &s->tenant[g->job.tenant],
					     .points = &s->points[g->job.tenant],
					     .epoch = g->job.epoch,
					     .window = (g->job.slot_mask + 1) / 2,
					     .payload_bytes = g->job.blocks_max * TALLY_BLOCK_BYTES,
					     .children = g->copies,
					     .child = child,
					     .key = g->job.keyed ? g->key : NULL,
					     .node_key = g->node_key ? &g->key[TALLY_NODE_KEY]
								     : NULL };
	int r;

	service_of(&g->job, &options.service);
	r = service_open(s, &options.service, why);
	if (r == 0)
		r = thread_start(s, why);
	if (r < 0)
		return r;
	r = spill_job_put(serve_spill(s->serve), &options);
	return r < 0 ? why_say(why, r, "job %u cannot be summed in software: %s", g->id,
			       strerror(-r))
		     : 0;
}

int spiller_put(struct spiller *s, const struct installation *g, struct why *why)
{
	_cleanup_(freep) struct spill_child *child = calloc(g->copies, sizeof(*child));
	int r;

	if (!child)
		return why_say(why, -ENOMEM, "out of memory");
	for (unsigned int i = 0; i < g->copies; i++)
		child[i] = (struct spill_child){ .below = g->copy[i].below,
						 .key = g->copy[i].key,
						 .address = g->copy[i].address };
	pthread_mutex_lock(&s->lock);
	r = put(s, g, child, why);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void spiller_remove(struct spiller *s, uint32_t id)
{
	pthread_mutex_lock(&s->lock);
	spill_job_remove(serve_spill(s->serve), id);
	pthread_mutex_unlock(&s->lock);
}

void spiller_tenant_put(struct spiller *s, uint32_t index, const struct dataplane_limits *limits,
			bool anywhere, const struct dataplane_source *point, unsigned int count)
{
	struct spill_points points = { .anywhere = anywhere, .count = count };

	for (unsigned int i = 0; i < count; i++)
		points.point[i] = (struct spill_point){ .port = point[i].ifindex,
							.tagged = point[i].vlan > 0,
							.source = point[i].address,
							.bits = point[i].bits };
	pthread_mutex_lock(&s->lock);
	limits_put(limits, &s->tenant[index].is);
	s->points[index] = points;
	pthread_mutex_unlock(&s->lock);
}

/* --- who has gone ---------------------------------------------------------------------------- */

int spiller_ask(struct spiller *s, const struct sockaddr_storage *service,
		const struct sockaddr_storage *worker, const void *datagram)
{
	unsigned int i;
	int r = -ENOENT;

	pthread_mutex_lock(&s->lock);
	i = service_index(s, service);
	if (i < s->services)
		r = serve_ask(s->socket[i], worker, datagram, SPILLER_ASK_BYTES);
	pthread_mutex_unlock(&s->lock);
	return r;
}

void spiller_forget(struct spiller *s)
{
	pthread_mutex_lock(&s->lock);
	for (unsigned int i = 0; i < s->services; i++)
		serve_forget(s->socket[i]);
	pthread_mutex_unlock(&s->lock);
}

int spiller_refused_fd(const struct spiller *s) { return s->refused[0]; }

/* --- counters -------------------------------------------------------------------------------- */

struct rows {
	struct traffic_row *row;
	unsigned int count;
	unsigned int others; /* before it, of the data plane */
};

static void row_add(void *context, uint32_t id, uint16_t tenant,
		    const struct tally_counter *counter)
{
	struct rows *rows = context;
	struct traffic_row *row;

	for (row = rows->row; row < rows->row + rows->others; row++) {
		if (row->job != id || row->ifindex)
			continue;
		traffic_count(row->outcome, counter); /* it borrows slots there */
		return;
	}
	row = &rows->row[rows->count++];
	*row = (struct traffic_row){ .job = id, .tenant = tenant };
	memcpy(row->outcome, counter, sizeof(row->outcome));
}

/* What no job has let in. The data plane has passed, and counted, what others may want. */
static void apart_add(const struct spill *spill, struct tally_counter *to)
{
#define ACTION(name, action, meaning) [TALLY_##name] = action,
	static const int action[] = { TALLY_OUTCOMES(ACTION) };
#undef ACTION
	const struct tally_counter *from = spill_counters(spill, NULL);

	for (unsigned int i = 0; i < TALLY_OUTCOME_COUNT; i++)
		if (action[i] != XDP_PASS) {
			to[i].packet += from[i].packet;
			to[i].byte += from[i].byte;
		}
}

struct spill_memory spiller_memory(struct spiller *s)
{
	struct spill_memory m;

	pthread_mutex_lock(&s->lock);
	m = spill_memory(serve_spill(s->serve));
	pthread_mutex_unlock(&s->lock);
	return m;
}

int spiller_rows(struct spiller *s, struct traffic_row **rows, unsigned int *count)
{
	const struct spill *spill = serve_spill(s->serve);
	struct rows all = { .count = *count, .others = *count };
	unsigned int jobs;

	pthread_mutex_lock(&s->lock);
	apart_add(spill, (*rows)->outcome);
	jobs = spill_jobs(spill);
	all.row = jobs ? reallocarray(*rows, *count + jobs, sizeof(**rows)) : NULL;
	if (all.row)
		spill_each(spill, row_add, &all);
	pthread_mutex_unlock(&s->lock);
	if (!all.row)
		return jobs ? -ENOMEM : 0;
	*rows = all.row;
	*count = all.count;
	return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

int spiller_open(size_t bytes_max, struct spiller **ret)
{
	struct spiller *s = calloc(1, sizeof(*s));
	int error;

	if (!s)
		return -ENOMEM;
	s->tenant[0].is.priority = UINT8_MAX;
	s->points[0].anywhere = true;
	pthread_mutex_init(&s->lock, NULL);
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		pthread_mutex_init(&s->tenant[i].lock, NULL);
	error = serve_open(bytes_max, &s->serve);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (error == 0 && (s->wake < 0 || pipe2(s->refused, O_CLOEXEC | O_NONBLOCK) < 0))
		error = -errno;
	if (error < 0) {
		serve_close(s->serve);
		if (s->wake >= 0)
			close(s->wake);
		free(s);
		return error;
	}
	*ret = s;
	return 0;
}

void spiller_close(struct spiller *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->ends = true;
	pthread_mutex_unlock(&s->lock);
	wake(s);
	if (s->runs)
		pthread_join(s->thread, NULL);
	serve_close(s->serve);
	pthread_mutex_destroy(&s->lock);
	close(s->wake);
	close(s->refused[0]);
	close(s->refused[1]);
	free(s);
}
