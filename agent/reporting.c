// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reporting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tally/wire.h>

#include "agent/edge/look.h"
#include "agent/edge/netlink.h"
#include "common/address.h"
#include "common/owned.h"

enum {
	NEIGHBOURS_MAX = 8192, /* of all interfaces; ports have fewer */
	OWN_MAX = 1024, /* addresses of the machine, those of links among them */
};

/* Neither 0 nor a number may be anything else in JSON. */
static uint64_t whole(double rate) { return rate > 0 && rate < 1e18 ? (uint64_t)rate : 0; }

static const struct config_port *config_of(const struct config *c, const char *port)
{
	for (unsigned int i = 0; i < c->ports; i++)
		if (!strcmp(c->port[i].name, port))
			return &c->port[i];
	return NULL;
}

static void mac_print(const uint8_t mac[6], char ret[REPORT_MAC_BYTES])
{
	snprintf(ret, REPORT_MAC_BYTES, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
		 mac[3], mac[4], mac[5]);
}

static void port_fill(const struct core *c, const struct sampler *s, const struct dataplane_port *p,
		      struct report_port *ret)
{
	const struct traffic_link_flow *f = traffic_link_flow(s->traffic, p->ifindex);
	const struct config_port *wanted = config_of(core_config(c), p->name);
	uint8_t mac[6];

	*ret = (struct report_port){ .rate_mbps = wanted ? wanted->rate_mbps : 0 };
	snprintf(ret->name, sizeof(ret->name), "%s", p->name);
	if (!p->ifindex || !f)
		return;
	if (look_mac(p->name, mac) == 0)
		mac_print(mac, ret->mac);
	ret->up = f->link.up && f->link.carrier;
	if (!ret->rate_mbps)
		ret->rate_mbps = f->link.speed_mbps;
	ret->receive = whole(f->receive.bytes_per_second);
	ret->receive_forecast = whole(f->receive.forecast_bytes_per_second);
	ret->transmit = whole(f->transmit.bytes_per_second);
	ret->transmit_forecast = whole(f->transmit.forecast_bytes_per_second);
}

static int services_fill(const struct config *c, struct report *ret)
{
	for (unsigned int i = 0; i < c->services; i++) {
		struct sockaddr_storage *to = ROWS_ADD(ret->service, ret->services);

		if (!to)
			return -ENOMEM;
		*to = c->service[i];
	}
	return 0;
}

static int ports_fill(const struct core *c, const struct sampler *s, struct report *ret)
{
	unsigned int ports;
	const struct dataplane_port *p = core_ports(c, &ports);

	for (unsigned int i = 0; i < ports; i++) {
		struct report_port *to = ROWS_ADD(ret->port, ret->ports);

		if (!to)
			return -ENOMEM;
		port_fill(c, s, &p[i], to);
	}
	return 0;
}

static int nears_fill(const struct hello_nears *n, struct report *ret)
{
	_Static_assert(HELLO_NEARS_MAX == (int)REPORT_NEARS_MAX, "all of them fit");

	for (unsigned int i = 0; i < n->count; i++) {
		const struct hello_near *from = &n->near[i];
		struct report_near *to = ROWS_ADD(ret->near, ret->nears);

		if (!to)
			return -ENOMEM;
		memcpy(to->port, from->port, sizeof(to->port));
		memcpy(to->node, from->node, sizeof(to->node));
		memcpy(to->at, from->at, sizeof(to->at));
	}
	return 0;
}

static int host_add(const struct core *c, const struct netlink_neighbour *n, struct report *ret)
{
	const char *port = core_port_name(c, n->ifindex);
	struct report_host *h;
	size_t bytes;
	const uint8_t *raw = address_raw((struct sockaddr_storage *)&n->address, &bytes);

	if (!*port || ret->hosts == REPORT_HOSTS_MAX)
		return 0;
	if (n->mac[0] & 1 || (bytes == 16 ? raw[0] : raw[0] & 0xf0) == (bytes == 16 ? 0xff : 0xe0))
		return 0; /* of groups, which are nobody */
	h = ROWS_ADD(ret->host, ret->hosts);
	if (!h)
		return -ENOMEM;
	snprintf(h->port, sizeof(h->port), "%s", port);
	h->address = n->address;
	endpoint_port_set(&h->address, TALLY_UDP_PORT);
	mac_print(n->mac, h->mac);
	return 0;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct report_host));
}

/* In one order, whatever the kernel's is: else each look would be news. */
static int hosts_fill(const struct core *c, struct report *ret)
{
	_cleanup_(freep) struct netlink_neighbour *n = calloc(NEIGHBOURS_MAX, sizeof(*n));
	const int count = n ? netlink_neighbours(n, NEIGHBOURS_MAX) : 0;
	int r = n ? 0 : -ENOMEM;

	for (int i = 0; r == 0 && i < count; i++)
		r = host_add(c, &n[i], ret);
	if (ret->hosts)
		qsort(ret->host, ret->hosts, sizeof(*ret->host), by_bytes);
	return r;
}

/* Of this machine alone, or of a link alone: others have the same. */
static bool is_local(const struct sockaddr_storage *address)
{
	return address_is_loopback(address) || address_is_link_local(address);
}

/* The first of each family; of IPv6 that of the link, which routes may always name. */
static void port_address(const struct look_address *own, struct report *ret)
{
	const bool six = own->address.ss_family == AF_INET6;

	for (unsigned int i = 0; i < ret->ports; i++) {
		struct report_port *p = &ret->port[i];
		char *text = six ? p->ip6 : p->ip4;

		if (!strcmp(p->name, own->port) && (!*text || (six && is_local(&own->address))))
			address_print(&own->address, text, REPORT_IP_BYTES);
	}
}

static int addresses_fill(struct report *ret)
{
	_cleanup_(freep) struct look_address *own = calloc(OWN_MAX, sizeof(*own));
	const int count = own ? look_addresses(own, OWN_MAX) : 0;
	struct sockaddr_storage *to;

	for (int i = 0; i < count; i++) {
		port_address(&own[i], ret);
		if (is_local(&own[i].address) || ret->addresses == REPORT_ADDRESSES_MAX)
			continue;
		to = ROWS_ADD(ret->address, ret->addresses);
		if (!to)
			return -ENOMEM;
		*to = own[i].address;
		endpoint_port_set(to, TALLY_UDP_PORT);
	}
	return 0;
}

static int route_add(const struct core *c, const struct netlink_route *from, struct report *ret)
{
	struct report_route *to = ROWS_ADD(ret->route, ret->routes);
	char text[ADDRESS_BYTES];

	if (!to)
		return -ENOMEM;
	address_print(&from->to, text, sizeof(text));
	snprintf(to->to, sizeof(to->to), "%s/%u", text, from->bits);
	snprintf(to->port, sizeof(to->port), "%s", core_port_name(c, from->ifindex));
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct report_route));
}

/* In one order, too. IPv6 has routes of links alone, which nobody forwards by. */
static int routes_fill(const struct core *c, struct report *ret)
{
	_cleanup_(freep) struct netlink_route *route = calloc(REPORT_ROUTES_MAX, sizeof(*route));
	int count = 0, r = route ? 0 : -ENOMEM;

	if (route && ret->services)
		count = netlink_routes(ret->service[0].ss_family, route, REPORT_ROUTES_MAX);
	for (int i = 0; r == 0 && i < count; i++)
		if (!is_local(&route[i].to))
			r = route_add(c, &route[i], ret);
	if (ret->routes)
		qsort(ret->route, ret->routes, sizeof(*ret->route), by_text);
	return r;
}

static int lates_fill(const struct sampler *s, const struct job *j, struct report_job *ret)
{
	_Static_assert(LATE_RANKS_MAX <= (int)REPORT_LATES_MAX, "all of them fit");
	struct late_rank late[LATE_RANKS_MAX];
	const unsigned int count = lateness_of(s->lateness, j, late);

	for (unsigned int i = 0; i < count; i++) {
		struct report_late *to = ROWS_ADD(ret->late, ret->lates);

		if (!to)
			return -ENOMEM;
		*to = (struct report_late){ late[i].rank, late[i].percent };
	}
	return 0;
}

static void job_fill(const struct sampler *s, const struct job *j, struct report_job *ret)
{
	const struct traffic_flow *f = traffic_job(s->traffic, j->id);

	*ret = (struct report_job){ .id = j->id,
				    .inner = j->document,
				    .runs = j->run_window,
				    .in_software = j->run_window && j->spilled,
				    .borrows = j->run_window && j->borrows,
				    .workers = j->workers,
				    .payload_bytes = j->run_window ? j->payload_bytes : 0,
				    .joined = job_joined(j) };
	memcpy(ret->name, j->name, sizeof(ret->name));
	for (unsigned int rank = 0; rank < j->workers; rank++)
		ret->connected += j->rank[rank].connection &&
				  j->rank[rank].presence == JOB_RUNNING && !j->rank[rank].outdated;
	if (f) {
		ret->bytes_per_second = whole(f->rates.bytes_per_second);
		ret->chunks_per_second = whole(f->rates.chunks_per_second);
		/* As the forecasts of links, of which these chunks are a part. */
		if (f->rates.bytes_per_second > 0)
			ret->chunks_forecast = whole(f->rates.chunks_per_second *
						     f->rates.forecast_bytes_per_second /
						     f->rates.bytes_per_second);
	}
}

static int jobs_fill(const struct core *c, const struct sampler *s, struct report *ret)
{
	const struct books *b = core_books(c);
	struct report_job *to;
	uint32_t used = 0;

	for (unsigned int i = 0; i < b->jobs; i++) {
		used += job_slots(b->job[i]);
		if (ret->jobs == REPORT_JOBS_MAX)
			continue;
		to = ROWS_ADD(ret->job, ret->jobs);
		if (!to)
			return -ENOMEM;
		job_fill(s, b->job[i], to);
		if (lates_fill(s, b->job[i], to) < 0)
			return -ENOMEM;
	}
	ret->slots = b->slots;
	ret->slots_free = b->slots > used ? b->slots - used : 0;
	ret->slots_kept = books_kept(b, BOOKS_DEFAULT);
	ret->cordoned = b->cordoned;
	return 0;
}

struct report *reporting_make(const struct core *c, const struct sampler *s,
			      const struct hello_nears *nears)
{
	const struct config *config = core_config(c);
	_cleanup_(report_freep) struct report *r = report_new();

	if (!r)
		return NULL;
	memcpy(r->node, config->cluster.node, sizeof(r->node));
	snprintf(r->version, sizeof(r->version), "%s", TALLY_VERSION_TEXT);
	r->inner = *config->peers.secret;
	if (services_fill(config, r) < 0 || ports_fill(c, s, r) < 0 || addresses_fill(r) < 0 ||
	    nears_fill(nears, r) < 0 || hosts_fill(c, r) < 0 || routes_fill(c, r) < 0 ||
	    jobs_fill(c, s, r) < 0)
		return NULL;
	return TAKE_PTR(r);
}
