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

#include "agent/core/config.h"
#include "agent/core/limits.h"
#include "agent/core/tenant.h"
#include "common/address.h"
#include "common/owned.h"
#include "refused.h"
#include "spill/listen.h"
#include "spill/serve.h"

_Static_assert((int)SPILL_POINTS_MAX == (int)TENANT_POINTS_MAX, "a tenant's points");
_Static_assert((int)CONFIG_SPILL_THREADS_MAX == (int)LISTEN_THREADS_MAX, "threads");

/* One thread. `lock` guards its sums and sockets. */
struct server {
	struct spiller *all;
	struct serve *serve;
	struct serve_socket *socket[SPILLER_SERVICES_MAX];
	pthread_mutex_t lock;
	pthread_mutex_t next; /* who has it gets `lock` as soon as that is free */
	pthread_t thread;
	bool runs; /* the thread */
	int wake; /* eventfd: there are other sockets, or an end */
};

/* Only the owner's thread changes it, with the locks of all; a server reads with its own. */
struct spiller {
	struct server server[LISTEN_THREADS_MAX];
	struct serve *serve[LISTEN_THREADS_MAX]; /* theirs */
	unsigned int servers;
	bool local;
	bool ends;
	int refused[2]; /* a pipe, for the thread of the owner */
	unsigned int services;
	struct sockaddr_storage service[SPILLER_SERVICES_MAX];
	struct spill_limits tenant[TALLY_TENANTS_MAX]; /* 0: the node's own */
	struct spill_points points[TALLY_TENANTS_MAX]; /* the same */
};

/* In turn: a thread that has much to do would take its lock again before anybody else wakes up. */
static void server_lock(struct server *t)
{
	pthread_mutex_lock(&t->next);
	pthread_mutex_lock(&t->lock);
	pthread_mutex_unlock(&t->next);
}

/* --- the threads ----------------------------------------------------------------------------- */

static unsigned int sockets_of(struct server *t, struct pollfd *ret)
{
	ret[0] = (struct pollfd){ .fd = t->wake, .events = POLLIN };
	for (unsigned int i = 0; i < t->all->services; i++)
		ret[1 + i] = (struct pollfd){ .fd = serve_fd(t->socket[i]), .events = POLLIN };
	return 1 + t->all->services;
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
	struct server *t = data;
	unsigned int sockets;
	uint64_t wakes;

	server_lock(t);
	while (!t->all->ends) {
		sockets = sockets_of(t, wait);
		pthread_mutex_unlock(&t->lock);
		poll(wait, sockets, -1);
		if (wait[0].revents && read(t->wake, &wakes, sizeof(wakes)) < 0)
			wakes = 0;
		server_lock(t);
		/* Services are only closed by the thread that ends this one. */
		for (unsigned int i = 1; i < sockets; i++) {
			if (wait[i].revents & POLLERR)
				refused_hand_on(t->all, t->socket[i - 1]);
			if (wait[i].revents)
				serve_some(t->serve, t->socket[i - 1]);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void wake(struct spiller *s)
{
	const uint64_t one = 1;

	for (unsigned int i = 0; i < s->servers; i++)
		if (write(s->server[i].wake, &one, sizeof(one)) < 0)
			continue; /* it is awake: the number is at its limit */
}

/* Until unlock_all(), all of them are between two turns. */
static void lock_all(struct spiller *s)
{
	for (unsigned int i = 0; i < s->servers; i++)
		server_lock(&s->server[i]);
}

static void unlock_all(struct spiller *s)
{
	for (unsigned int i = 0; i < s->servers; i++)
		pthread_mutex_unlock(&s->server[i].lock);
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
	struct serve_socket *socket[LISTEN_THREADS_MAX];
	unsigned int i = service_index(s, service);
	int r;

	if (i == SPILLER_SERVICES_MAX)
		return why_say(why, -ENOSPC,
			       "at most %d service addresses can have jobs in "
			       "software",
			       SPILLER_SERVICES_MAX);
	if (i < s->services)
		return 0;
	r = serve_listen(s->serve, s->servers, service, s->local, socket, why);
	if (r < 0)
		return r;
	for (unsigned int t = 0; t < s->servers; t++)
		s->server[t].socket[i] = socket[t];
	s->service[s->services++] = *service;
	wake(s);
	return 0;
}

static int threads_start(struct spiller *s, struct why *why)
{
	for (struct server *t = s->server; t < s->server + s->servers; t++) {
		int r = t->runs ? 0 : pthread_create(&t->thread, NULL, serve_all, t);

		if (r > 0)
			return why_say(why, -r, "cannot start a thread: %s", strerror(r));
		t->runs = true;
	}
	return 0;
}

static struct spill *sums_of(struct spiller *s, uint32_t id)
{
	return serve_spill(s->serve[listen_thread_of(id, s->servers)]);
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
		r = threads_start(s, why);
	if (r < 0)
		return r;
	r = spill_job_put(sums_of(s, g->id), &options);
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
	lock_all(s);
	r = put(s, g, child, why);
	unlock_all(s);
	return r;
}

void spiller_remove(struct spiller *s, uint32_t id)
{
	lock_all(s);
	spill_job_remove(sums_of(s, id), id);
	unlock_all(s);
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
	lock_all(s);
	limits_put(limits, &s->tenant[index].is);
	s->points[index] = points;
	unlock_all(s);
}

/* --- who has gone ---------------------------------------------------------------------------- */

int spiller_ask(struct spiller *s, const struct sockaddr_storage *service,
		const struct sockaddr_storage *worker, const void *datagram)
{
	unsigned int i;
	int r = -ENOENT;

	lock_all(s);
	i = service_index(s, service);
	if (i < s->services)
		r = serve_ask(s->server->socket[i], worker, datagram, SPILLER_ASK_BYTES);
	unlock_all(s);
	return r;
}

void spiller_forget(struct spiller *s)
{
	lock_all(s);
	for (unsigned int i = 0; i < s->services; i++)
		serve_forget(s->server->socket[i]);
	unlock_all(s);
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
	struct spill_memory all = { 0 };

	lock_all(s);
	for (unsigned int i = 0; i < s->servers; i++) {
		const struct spill_memory m = spill_memory(serve_spill(s->serve[i]));

		all.bytes += m.bytes;
		all.bytes_max += m.bytes_max;
		for (unsigned int t = 0; t < TALLY_TENANTS_MAX; t++)
			all.tenant_bytes[t] += m.tenant_bytes[t];
		all.evicted += m.evicted;
		all.full += m.full;
	}
	unlock_all(s);
	return all;
}

static void count_add(void *context, uint32_t id, uint16_t tenant,
		      const struct tally_counter *counter)
{
	traffic_count(context, counter);
}

void spiller_count(struct spiller *s, struct tally_counter ret[static TALLY_OUTCOME_COUNT],
		   uint64_t *ret_unsent)
{
	memset(ret, 0, TALLY_OUTCOME_COUNT * sizeof(*ret));
	*ret_unsent = 0;
	lock_all(s);
	for (unsigned int i = 0; i < s->servers; i++) {
		traffic_count(ret, spill_counters(serve_spill(s->serve[i]), NULL));
		spill_each(serve_spill(s->serve[i]), count_add, ret);
		*ret_unsent += serve_unsent(s->serve[i]);
	}
	unlock_all(s);
}

int spiller_rows(struct spiller *s, struct traffic_row **rows, unsigned int *count)
{
	struct rows all = { .count = *count, .others = *count };
	unsigned int jobs = 0;

	lock_all(s);
	for (unsigned int i = 0; i < s->servers; i++) {
		apart_add(serve_spill(s->serve[i]), (*rows)->outcome);
		jobs += spill_jobs(serve_spill(s->serve[i]));
	}
	all.row = jobs ? reallocarray(*rows, *count + jobs, sizeof(**rows)) : NULL;
	for (unsigned int i = 0; all.row && i < s->servers; i++)
		spill_each(serve_spill(s->serve[i]), row_add, &all);
	unlock_all(s);
	if (!all.row)
		return jobs ? -ENOMEM : 0;
	*rows = all.row;
	*count = all.count;
	return 0;
}

/* --- life ------------------------------------------------------------------------------------ */

static int server_open(struct spiller *s, struct server *t, size_t bytes_max, unsigned int threads)
{
	int r;

	t->all = s;
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->next, NULL);
	t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = t->wake < 0 ? -errno : serve_open(bytes_max / threads, &t->serve);
	if (r == 0)
		spill_answers_share(serve_spill(t->serve), threads);
	s->serve[t - s->server] = t->serve;
	return r;
}

static void server_close(struct server *t)
{
	if (t->runs)
		pthread_join(t->thread, NULL);
	serve_close(t->serve);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->next);
	if (t->wake >= 0)
		close(t->wake);
}

int spiller_open(size_t bytes_max, unsigned int threads, bool local, struct spiller **ret)
{
	_cleanup_(spiller_closep) struct spiller *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s)
		return -ENOMEM;
	s->local = local;
	s->tenant[0].is.priority = UINT8_MAX;
	s->points[0].anywhere = true;
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		pthread_mutex_init(&s->tenant[i].lock, NULL);
	s->refused[0] = s->refused[1] = -1;
	if (pipe2(s->refused, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	while (r == 0 && s->servers < threads)
		r = server_open(s, &s->server[s->servers++], bytes_max, threads);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(s);
	return 0;
}

void spiller_close(struct spiller *s)
{
	if (!s)
		return;
	lock_all(s);
	s->ends = true;
	unlock_all(s);
	wake(s);
	for (unsigned int i = 0; i < s->servers; i++)
		server_close(&s->server[i]);
	for (unsigned int i = 0; i < TALLY_TENANTS_MAX; i++)
		pthread_mutex_destroy(&s->tenant[i].lock);
	for (int i = 0; i < 2; i++)
		if (s->refused[i] >= 0)
			close(s->refused[i]);
	free(s);
}
