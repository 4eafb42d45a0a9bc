// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/tenant_keys.h"
#include "common/owned.h"
#include "wanted.h"

enum {
	SMALL_PART = 20, /* one in so many */
	LATE_PERCENT = 10, /* of looks; less is no news */
	UNKNOWN_MBPS = 1000, /* of lines that say nothing */
};

#define PORT(member) KEY_MEMBER(struct report_port, member)
#define NEAR(member) KEY_MEMBER(struct report_near, member)
#define HOST(member) KEY_MEMBER(struct report_host, member)
#define ROUTE(member) KEY_MEMBER(struct report_route, member)
#define LATE(member) KEY_MEMBER(struct report_late, member)
#define JOB(member) KEY_MEMBER(struct report_job, member)
#define TENANT(member) KEY_MEMBER(struct report_tenant, member)
#define ROWS(rows, counter, max) KEY_ROWS(struct report, rows, counter, max)
#define NODE(member) KEY_MEMBER(struct report, member)

static const struct key port_rows[] = {
	{ "name", &key_port, PORT(name), .needed = true, .meaning = "Of the interface." },
	{ "mac", &wanted_words, PORT(mac), .meaning = "Its address on the link." },
	{ "ip4", &wanted_words, PORT(ip4), .initial = "",
	  .meaning = "An IPv4 address of it, by which neighbours reach the node there." },
	{ "ip6", &wanted_words, PORT(ip6), .initial = "",
	  .meaning = "The same of IPv6; that of the link, if it has one." },
	{ "up", &key_bool, PORT(up), .initial = "false",
	  .meaning = "Is it up, with somebody at the other end?" },
	{ "rate_mbps", &key_number, PORT(rate_mbps), .max = UINT32_MAX,
	  .meaning = "Of the line, in Mbit/s each way; 0: not known." },
	{ "receive", &key_number, PORT(receive), .max = INT64_MAX,
	  .meaning = "Bytes a second that come in." },
	{ "receive_forecast", &key_number, PORT(receive_forecast), .max = INT64_MAX,
	  .meaning = "The same, five seconds from now." },
	{ "transmit", &key_number, PORT(transmit), .max = INT64_MAX,
	  .meaning = "Bytes a second that leave." },
	{ "transmit_forecast", &key_number, PORT(transmit_forecast), .max = INT64_MAX,
	  .meaning = "The same, five seconds from now." },
};

static const struct key near_rows[] = {
	{ "port", &key_port, NEAR(port), .needed = true, .meaning = "A port of this node." },
	{ "node", &key_name, NEAR(node), .needed = true,
	  .meaning = "A node that was heard there." },
	{ "at", &key_port, NEAR(at), .needed = true, .meaning = "That node's port." },
};

static const struct key host_rows[] = {
	{ "port", &key_port, HOST(port), .needed = true, .meaning = "A port of this node." },
	{ "address", &key_address, HOST(address), .needed = true,
	  .meaning = "A neighbour there, as the kernel knows it." },
	{ "mac", &wanted_words, HOST(mac), .meaning = "Where its frames go." },
};

static const struct key route_rows[] = {
	{ "to", &wanted_words, ROUTE(to), .needed = true,
	  .meaning = "A prefix of the kernel's main table." },
	{ "port", &wanted_words, ROUTE(port), .initial = "",
	  .meaning = "By which its packets leave; none: by none of the node's ports." },
};

static const struct key late_rows[] = {
	{ "rank", &key_number, LATE(rank), .max = TALLY_WORKERS_MAX - 1, .needed = true,
	  .meaning = "That others wait for." },
	{ "percent", &key_number, LATE(percent), .max = 100,
	  .meaning = "Of the looks at the run: in so many the rank is missing." },
};

static const struct key job_rows[] = {
	{ "name", &key_name, JOB(name), .needed = true, .meaning = "Of the job." },
	{ "id", &key_number, JOB(id), .max = UINT32_MAX, .needed = true,
	  .meaning = "Its number in packets." },
	{ "inner", &key_bool, JOB(inner), .initial = "false",
	  .meaning = "Is its root another node?" },
	{ "runs", &key_bool, JOB(runs), .initial = "false", .meaning = "Is a run on?" },
	{ "in_software", &key_bool, JOB(in_software), .initial = "false",
	  .meaning = "Has it no slots here, and is summed in software?" },
	{ "borrows", &key_bool, JOB(borrows), .initial = "false",
	  .meaning = "Has it no slots of its own here?" },
	{ "workers", &key_number, JOB(workers), .max = TALLY_WORKERS_MAX,
	  .meaning = "How many workers it has." },
	{ "joined", &key_number, JOB(joined), .max = TALLY_WORKERS_MAX,
	  .meaning = "How many have joined at this node." },
	{ "payload", &key_number, JOB(payload_bytes), .brief = true, .max = TALLY_PAYLOAD_MAX,
	  .meaning = "Bytes of data in a full packet of its run." },
	{ "connected", &key_number, JOB(connected), .max = TALLY_WORKERS_MAX,
	  .meaning = "How many workers of the run can be told of another root: whose connection "
		     "stands, and whose token is the job's." },
	{ "bytes_per_second", &key_number, JOB(bytes_per_second), .max = INT64_MAX,
	  .meaning = "Of its frames that come in." },
	{ "chunks_per_second", &key_number, JOB(chunks_per_second), .max = INT64_MAX,
	  .meaning = "Sums that became whole." },
	{ "chunks_forecast", &key_number, JOB(chunks_forecast), .max = INT64_MAX,
	  .meaning = "The same, five seconds from now." },
	{ "late", NULL, KEY_ROWS(struct report_job, late, lates, REPORT_LATES_MAX),
	  .keys = KEYS_OF(late_rows), .allowed = "a mapping",
	  .meaning = "Ranks that the others wait for." },
};

static const struct key tenant_rows[] = {
	{ "name", &key_name, TENANT(name), .needed = true, .meaning = "Of the tenant." },
	{ "slots", &key_number, TENANT(slots), .max = UINT32_MAX,
	  .meaning = "That are reserved for it here." },
	{ "slots_kept", &key_number, TENANT(slots_kept), .max = UINT32_MAX,
	  .meaning = "Of the node's slots, what no next job of it gets: others', or promised." },
	{ "held", &key_bool, TENANT(held), .initial = "false",
	  .meaning = "Are these as many as the cluster wants, and may it come in where the "
		     "cluster wants?" },
	{ "gated", &key_bool, TENANT(gated), .initial = "false",
	  .meaning = "Does the node keep to ingress points that the cluster gives?" },
	{ "apart", &key_bool, TENANT(apart), .initial = "false",
	  .meaning = "Are these at other nodes alone, so that it has no slots here?" },
	{ "own", &key_bool, TENANT(own), .initial = "false",
	  .meaning = "Has the node one of that name of its own, whose limits hold here?" },
	{ "why", &wanted_words, TENANT(why), .meaning = "Why it is not held, in words." },
};

static const struct key rows[] = {
	{ "node", &key_name, NODE(node), .needed = true, .meaning = "What the cluster calls it." },
	{ "agent", &wanted_words, NODE(agent), .initial = "",
	  .meaning = "Whose machine it is: two with the same `node` are told apart by that." },
	{ "version", &wanted_words, NODE(version), .meaning = "Of its tallyd." },
	{ "cordoned", &key_bool, NODE(cordoned), .initial = "false",
	  .meaning = "Does no new run begin there?" },
	{ "steers", &key_bool, NODE(steers), .initial = "false",
	  .meaning = "Does it make packets take the ways that are wanted?" },
	{ "inner", &key_bool, NODE(inner), .initial = "false",
	  .meaning = "Has it `peers.secret`, and so takes parts in trees of other nodes?" },
	{ "slots", &key_number, NODE(slots), .max = UINT32_MAX,
	  .meaning = "That the node has for runs." },
	{ "slots_free", &key_number, NODE(slots_free), .max = UINT32_MAX,
	  .meaning = "Of these, what no run has." },
	{ "slots_kept", &key_number, NODE(slots_kept), .max = UINT32_MAX,
	  .meaning = "Of all, what no next job of tenant `default` gets: others', or promised." },
	{ "services", &key_address, ROWS(service, services, REPORT_SERVICES_MAX),
	  .meaning = "Addresses that workers send to." },
	{ "addresses", &key_address, ROWS(address, addresses, REPORT_ADDRESSES_MAX),
	  .meaning = "All addresses of the machine." },
	{ "ports", NULL, ROWS(port, ports, TALLY_PORTS_MAX), .keys = KEYS_OF(port_rows),
	  .allowed = "a mapping", .meaning = "Its interfaces." },
	{ "nears", NULL, ROWS(near, nears, REPORT_NEARS_MAX), .keys = KEYS_OF(near_rows),
	  .allowed = "a mapping", .meaning = "Other nodes at the same links." },
	{ "hosts", NULL, ROWS(host, hosts, REPORT_HOSTS_MAX), .keys = KEYS_OF(host_rows),
	  .allowed = "a mapping", .meaning = "Other machines there." },
	{ "routes", NULL, ROWS(route, routes, REPORT_ROUTES_MAX), .keys = KEYS_OF(route_rows),
	  .allowed = "a mapping", .meaning = "Where the node sends what it forwards." },
	{ "jobs", NULL, ROWS(job, jobs, REPORT_JOBS_MAX), .keys = KEYS_OF(job_rows),
	  .allowed = "a mapping", .meaning = "What the node does for jobs." },
	{ "tenants", NULL, ROWS(tenant, tenants, REPORT_TENANTS_MAX), .keys = KEYS_OF(tenant_rows),
	  .allowed = "a mapping",
	  .meaning = "What it reserves for [tenants of the cluster](#tenants-of-the-cluster)." },
};

const struct keys report_keys = KEYS(rows);

char *report_print(const struct report *r) { return wanted_print(&report_keys, r); }

struct report *report_new(void) { return calloc(1, sizeof(struct report)); }

void report_free(struct report *r)
{
	if (r)
		keys_free(&report_keys, r);
	free(r);
}

int report_parse(const char *text, struct report **ret, struct why *why)
{
	_cleanup_(report_freep) struct report *report = report_new();
	int r = report ? wanted_parse(&report_keys, text, report, why) : -ENOMEM;

	if (r == 0)
		*ret = TAKE_PTR(report);
	return r;
}

const struct sockaddr_storage *report_service_find(const struct report *r, int family)
{
	for (unsigned int i = 0; i < r->services; i++)
		if (r->service[i].ss_family == family)
			return &r->service[i];
	return NULL;
}

const struct report_tenant *report_tenant_find(const struct report *r, const char *name)
{
	for (unsigned int i = 0; i < r->tenants; i++)
		if (!strcmp(r->tenant[i].name, name))
			return &r->tenant[i];
	return NULL;
}

uint32_t report_slots_kept(const struct report *r, const char *tenant)
{
	const struct report_tenant *t = report_tenant_find(r, tenant);

	return t ? t->slots_kept : !strcmp(tenant, TENANT_DEFAULT) ? r->slots_kept : 0;
}

uint32_t report_slots_left(const struct report *r, const char *tenant)
{
	const uint32_t kept = report_slots_kept(r, tenant);
	const uint32_t left = r->slots > kept ? r->slots - kept : 0;

	return left < r->slots_free ? left : r->slots_free;
}

/* --- what is worth telling ------------------------------------------------------------------- */

static bool differs(uint64_t a, uint64_t b, uint32_t mbps)
{
	const uint64_t line = (mbps ? mbps : UNKNOWN_MBPS) * 125000ull;

	return (a > b ? a - b : b - a) > line / SMALL_PART;
}

static bool port_differs(const struct report_port *a, const struct report_port *b)
{
	return differs(a->receive, b->receive, b->rate_mbps) ||
	       differs(a->transmit, b->transmit, b->rate_mbps) ||
	       differs(a->receive_forecast, b->receive_forecast, b->rate_mbps) ||
	       differs(a->transmit_forecast, b->transmit_forecast, b->rate_mbps);
}

/* Others are late. */
static bool lates_differ(const struct report_job *a, const struct report_job *b)
{
	bool differ = a->lates != b->lates;

	for (unsigned int i = 0; !differ && i < a->lates; i++)
		differ = a->late[i].rank != b->late[i].rank;
	return differ;
}

/* Of the same ranks. */
static bool parts_differ(const struct report_job *a, const struct report_job *b)
{
	bool differ = false;

	for (unsigned int i = 0; i < a->lates; i++)
		differ |= abs(a->late[i].percent - b->late[i].percent) > LATE_PERCENT;
	return differ;
}

/* What fills a part of the slowest line is told; and what a job that is slower than that does, as
 * it may be so since its root is crowded. */
static bool job_differs(const struct report_job *a, const struct report_job *b, uint32_t mbps)
{
	const uint64_t was = a->bytes_per_second, is = b->bytes_per_second;

	return differs(was, is, mbps) || was > 2 * is || is > 2 * was;
}

static uint32_t slowest_mbps(const struct report *r)
{
	uint32_t mbps = 0;

	for (unsigned int i = 0; i < r->ports; i++)
		if (r->port[i].up && r->port[i].rate_mbps && (!mbps || r->port[i].rate_mbps < mbps))
			mbps = r->port[i].rate_mbps;
	return mbps;
}

/* All that loads are not, as it is told. */
static char *print_without_loads(const struct report *from)
{
	_cleanup_(freep) struct report_port *port = calloc(from->ports + 1, sizeof(*port));
	_cleanup_(freep) struct report_job *job = calloc(from->jobs + 1, sizeof(*job));
	struct report r = *from; /* the other lists are from's */

	if (!port || !job)
		return NULL;
	for (unsigned int i = 0; i < from->ports; i++) {
		port[i] = from->port[i];
		port[i].receive = port[i].receive_forecast = 0;
		port[i].transmit = port[i].transmit_forecast = 0;
	}
	for (unsigned int i = 0; i < from->jobs; i++) {
		job[i] = from->job[i];
		job[i].bytes_per_second = job[i].chunks_per_second = job[i].chunks_forecast = 0;
		job[i].lates = 0;
	}
	r.port = port;
	r.job = job;
	return report_print(&r);
}

enum report_news report_compare(const struct report *before, const struct report *now)
{
	_cleanup_(freep) char *a = print_without_loads(before), *b = print_without_loads(now);
	bool loads = false;

	if (!a || !b || strcmp(a, b) != 0)
		return REPORT_MORE;
	for (unsigned int i = 0; i < now->jobs; i++)
		if (lates_differ(&before->job[i], &now->job[i]))
			return REPORT_MORE;
	for (unsigned int i = 0; i < now->ports; i++)
		loads |= port_differs(&before->port[i], &now->port[i]);
	for (unsigned int i = 0; i < now->jobs; i++)
		loads |= job_differs(&before->job[i], &now->job[i], slowest_mbps(now)) ||
			 parts_differ(&before->job[i], &now->job[i]);
	return loads ? REPORT_LOADS : REPORT_SAME;
}
