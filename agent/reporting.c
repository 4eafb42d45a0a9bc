// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "reporting.h"

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

static void nears_fill(const struct hello_nears *n, struct report *ret)
{
	_Static_assert(HELLO_NEARS_MAX == (int)REPORT_NEARS_MAX, "all of them fit");

	for (ret->nears = 0; ret->nears < n->count; ret->nears++) {
		const struct hello_near *from = &n->near[ret->nears];
		struct report_near *to = &ret->near[ret->nears];

		memcpy(to->port, from->port, sizeof(to->port));
		memcpy(to->node, from->node, sizeof(to->node));
		memcpy(to->at, from->at, sizeof(to->at));
	}
}

static void host_add(const struct core *c, const struct netlink_neighbour *n, struct report *ret)
{
	const char *port = core_port_name(c, n->ifindex);
	struct report_host *h = &ret->host[ret->hosts];
	size_t bytes;
	const uint8_t *raw = address_raw((struct sockaddr_storage *)&n->address, &bytes);

	if (!*port || ret->hosts == REPORT_HOSTS_MAX)
		return;
	if (n->mac[0] & 1 || (bytes == 16 ? raw[0] : raw[0] & 0xf0) == (bytes == 16 ? 0xff : 0xe0))
		return; /* of groups, which are nobody */
	snprintf(h->port, sizeof(h->port), "%s", port);
	h->address = n->address;
	endpoint_port_set(&h->address, TALLY_UDP_PORT);
	mac_print(n->mac, h->mac);
	ret->hosts++;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct report_host));
}

/* In one order, whatever the kernel's is: else each look would be news. */
static void hosts_fill(const struct core *c, struct report *ret)
{
	_cleanup_(freep) struct netlink_neighbour *n = calloc(NEIGHBOURS_MAX, sizeof(*n));
	const int count = n ? netlink_neighbours(n, NEIGHBOURS_MAX) : 0;

	for (int i = 0; i < count; i++)
		host_add(c, &n[i], ret);
	qsort(ret->host, ret->hosts, sizeof(*ret->host), by_bytes);
}

/* Of this machine alone, or of a link alone: others have the same. */
static bool is_local(const struct sockaddr_storage *address)
{
	size_t bytes;
	const uint8_t *raw = address_raw((struct sockaddr_storage *)address, &bytes);

	if (address_is_loopback(address))
		return true;
	return bytes == 4 ? raw[0] == 169 && raw[1] == 254
			  : raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
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

static void addresses_fill(struct report *ret)
{
	_cleanup_(freep) struct look_address *own = calloc(OWN_MAX, sizeof(*own));
	const int count = own ? look_addresses(own, OWN_MAX) : 0;

	for (int i = 0; i < count; i++) {
		port_address(&own[i], ret);
		if (is_local(&own[i].address) || ret->addresses == REPORT_ADDRESSES_MAX)
			continue;
		endpoint_port_set(&own[i].address, TALLY_UDP_PORT);
		ret->address[ret->addresses++] = own[i].address;
	}
}

static void route_add(const struct core *c, const struct netlink_route *from, struct report *ret)
{
	struct report_route *to = &ret->route[ret->routes++];
	char text[ADDRESS_BYTES];

	address_print(&from->to, text, sizeof(text));
	snprintf(to->to, sizeof(to->to), "%s/%u", text, from->bits);
	snprintf(to->port, sizeof(to->port), "%s", core_port_name(c, from->ifindex));
}

static int by_text(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct report_route));
}

/* In one order, too. IPv6 has routes of links alone, which nobody forwards by. */
static void routes_fill(const struct core *c, struct report *ret)
{
	_cleanup_(freep) struct netlink_route *route = calloc(REPORT_ROUTES_MAX, sizeof(*route));
	int count = 0;

	if (route && ret->services)
		count = netlink_routes(ret->service[0].ss_family, route, REPORT_ROUTES_MAX);
	for (int i = 0; i < count; i++)
		if (!is_local(&route[i].to))
			route_add(c, &route[i], ret);
	qsort(ret->route, ret->routes, sizeof(*ret->route), by_text);
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
				    .joined = job_joined(j) };
	memcpy(ret->name, j->name, sizeof(ret->name));
	for (unsigned int rank = 0; rank < j->workers && !j->outdated; rank++)
		ret->connected += j->rank[rank].connection && j->rank[rank].presence == JOB_RUNNING;
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

static void jobs_fill(const struct core *c, const struct sampler *s, struct report *ret)
{
	const struct books *b = core_books(c);
	uint32_t used = 0;

	for (unsigned int i = 0; i < b->jobs; i++) {
		used += job_slots(b->job[i]);
		if (ret->jobs < REPORT_JOBS_MAX)
			job_fill(s, b->job[i], &ret->job[ret->jobs++]);
	}
	ret->slots = b->slots;
	ret->slots_free = b->slots > used ? b->slots - used : 0;
	ret->cordoned = b->cordoned;
}

struct report *reporting_make(const struct core *c, const struct sampler *s,
			      const struct hello_nears *nears)
{
	const struct config *config = core_config(c);
	struct report *r = calloc(1, sizeof(*r));
	const struct dataplane_port *p;
	unsigned int ports;

	if (!r)
		return NULL;
	memcpy(r->node, config->cluster.node, sizeof(r->node));
	snprintf(r->version, sizeof(r->version), "%s", TALLY_VERSION_TEXT);
	r->services = config->services;
	memcpy(r->service, config->service, sizeof(r->service));
	r->inner = *config->peers.secret;
	for (p = core_ports(c, &ports); r->ports < ports; p++)
		port_fill(c, s, p, &r->port[r->ports++]);
	addresses_fill(r);
	nears_fill(nears, r);
	hosts_fill(c, r);
	routes_fill(c, r);
	jobs_fill(c, s, r);
	return r;
}
