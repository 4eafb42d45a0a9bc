// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "config.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/file.h"
#include "keys_yaml.h"
#include "tenant_keys.h"

enum {
	STALLED_MS = 20, /* some round trips, and less than the first timeouts of most workers */
};

#define NOT_GIVEN UINT32_MAX /* slots of a tenant, or the number of addresses to listen at */

const char *const config_modes[] = { [DATAPLANE_AUTO] = "auto",
				     [DATAPLANE_NATIVE] = "native",
				     [DATAPLANE_GENERIC] = "generic",
				     [DATAPLANE_TC] = "tc",
				     NULL };
const char *const config_levels[] = { [LOG_LEVEL_ERROR] = "error",
				      [LOG_LEVEL_WARNING] = "warning",
				      [LOG_LEVEL_INFO] = "info",
				      [LOG_LEVEL_DEBUG] = "debug",
				      NULL };
const char *const config_ingress[] = {
	[CONFIG_INGRESS_OPTIONAL] = "optional", [CONFIG_INGRESS_REQUIRED] = "required", NULL
};
const char *const config_quotas[] = { [CONFIG_QUOTAS_FIXED] = "fixed",
				      [CONFIG_QUOTAS_LEND] = "lend",
				      [CONFIG_QUOTAS_TRAFFIC] = "lend-by-traffic",
				      NULL };
const char *const config_policies[] = { [CONFIG_POLICY_PREEMPT] = "preempt",
					[CONFIG_POLICY_FCFS] = "fcfs",
					[CONFIG_POLICY_ESA] = "esa",
					NULL };

_Static_assert(sizeof(enum dataplane_mode) == sizeof(unsigned int) &&
		       sizeof(enum config_policy) == sizeof(unsigned int) &&
		       sizeof(enum config_ingress) == sizeof(unsigned int) &&
		       sizeof(enum config_quotas) == sizeof(unsigned int) &&
		       sizeof(enum log_level) == sizeof(unsigned int),
	       "key_choice fills an unsigned int");
_Static_assert(DATAPLANE_SLOTS == 4096 && CONFIG_SAMPLE_MS == 1000 && CONFIG_SPILL_MIB == 256 &&
		       CONFIG_SPILL_THREADS == 1,
	       "texts below name them");

/* --- what no type can say */

static bool port_is_there(const struct config *c, const char *name, unsigned int ports)
{
	for (unsigned int i = 0; i < ports; i++)
		if (!strcmp(c->port[i].name, name))
			return true;
	return false;
}

static int check_port(struct reading *r, const struct place *at, void *into)
{
	const struct config *c = into;
	const char *name = c->port[c->ports - 1].name;

	if (port_is_there(c, name, c->ports - 1))
		return keys_refuse(r, at, "port %s is named twice", name);
	return 0;
}

static int check_join(struct reading *r, const struct place *at, void *into)
{
	const struct config *c = into;

	if (!strcmp(c->join_socket, c->control_socket))
		return keys_refuse(r, at, "has the same socket as control; each needs its own");
	return 0;
}

static int check_point(struct reading *r, const struct place *at, void *into)
{
	const struct config *c = r->root;
	const struct tenant *t = into;
	const char *port = t->point[t->points - 1].port;

	if (!port_is_there(c, port, c->ports))
		return keys_refuse(r, at, "port %s is not one of the node's; add it to ports",
				   port);
	return 0;
}

/* --- tenants */

static const struct key tenant_rows[] = { TENANT_NAME_ROW, TENANT_QUOTA_ROWS(check_point) };
static const struct keys config_tenant_keys = KEYS(tenant_rows);

/* tenant[0] has no name until it is found in the file or all is read. */
static int tenant_add(struct reading *r, const struct place *at, struct config *c,
		      const struct tenant *tenant)
{
	bool is_default = !strcmp(tenant->name, CONFIG_TENANT);
	uint64_t reserved = tenant->slots;

	for (unsigned int i = 0; i < c->tenants; i++) {
		if (!strcmp(c->tenant[i].name, tenant->name))
			return keys_refuse(r, at, "tenant %s is named twice", tenant->name);
		reserved += c->tenant[i].slots;
	}
	if (reserved > c->slots)
		return keys_refuse(r, at,
				   "the tenants up to this one reserve %ju slots, but the node "
				   "has %u: give them less, or raise slots",
				   (uintmax_t)reserved, c->slots);
	c->tenant[is_default ? 0 : c->tenants++] = *tenant;
	return 0;
}

static int take_tenant(struct reading *r, const struct place *at, void *into)
{
	struct tenant tenant = { .slots = NOT_GIVEN };
	struct config *c = into;
	bool is_default;
	int error;

	error = keys_take(r, at, &config_tenant_keys, &tenant, NULL);
	if (error < 0)
		return error;
	is_default = !strcmp(tenant.name, CONFIG_TENANT);
	c->default_named = c->default_named || is_default;
	if (tenant.slots == NOT_GIVEN && !is_default)
		return keys_refuse(r, at, "the key 'slots' is needed");
	if (tenant.slots == NOT_GIVEN)
		tenant.slots = 0;
	else if (is_default)
		c->rest = false;
	return tenant_add(r, at, c, &tenant);
}

static int take_tenants(struct reading *r, const struct place *at, void *into)
{
	return keys_each(r, at, (TALLY_TENANTS_MAX - 1), take_tenant, into);
}

/* --- the whole */

#define CONFIG(member) KEY_MEMBER(struct config, member)
#define PORT(member) KEY_MEMBER(struct config_port, member)

static const struct key port_rows[] = {
	{ "name", &key_port, PORT(name), .needed = true, .meaning = "Name of the interface." },
	{ "mode", &key_choice, PORT(mode), .words = config_modes, .initial = "auto",
	  .meaning = "What runs there: XDP, `native` (in the driver) or `generic` (in the stack); "
		     "`tc` (no XDP); `auto`: native, generic where the driver refuses, `tc` where "
		     "XDP cannot be had." },
	{ "share", &key_bool, PORT(share), .initial = "false",
	  .meaning = "Whether other XDP programs may be on the port, and get what is not Tally's: "
		     "those of libxdp's dispatcher, or one that is there already; otherwise a port "
		     "with another program is an error." },
	{ "rate_mbps", &key_number, PORT(rate_mbps), .max = CONFIG_RATE_MBPS_MAX, .brief = true,
	  .otherwise = "what the interface says",
	  .meaning = "Mbit/s that the line behind the port carries each way: what jobs are placed "
		     "by in a [cluster](cluster.md)." },
};

static const struct key control_rows[] = {
	{ "socket", &key_path, CONFIG(control_socket), .initial = CONFIG_CONTROL_SOCKET,
	  .meaning = "Path of the control socket." },
	{ "group", &key_group, CONFIG(control_group), .brief = true, .otherwise = "none",
	  .meaning = "Group of users who may change things, as root may." },
};

static const struct key join_rows[] = {
	{ "socket", &key_path, CONFIG(join_socket), .word = "none", .initial = CONFIG_JOIN_SOCKET,
	  .meaning = "Path of the socket where workers on this machine join." },
	{ "listen", &key_address, KEY_LIST(struct config, listen, listens), .flow = true,
	  .word = "none", .check = keys_check_unique, .otherwise = "those of `service`",
	  .meaning = "List of up to 16 addresses where workers join at TCP port 31249." },
};

bool config_peer_has(const struct config_peer *p, const struct sockaddr_storage *address)
{
	bool has = endpoint_is_equal(&p->address, address);

	for (unsigned int i = 0; i < p->alsos && !has; i++)
		has = endpoint_is_equal(&p->also[i], address);
	return has;
}

bool config_peer_has_namesake(const struct config_peer *peer, unsigned int peers,
			      unsigned int index)
{
	for (unsigned int i = 0; i < peers; i++)
		if (i != index && !strcmp(peer[i].name, peer[index].name))
			return true;
	return false;
}

static bool peer_is_equal(const struct config_peer *a, const struct config_peer *b)
{
	bool same = !strcmp(a->name, b->name) && endpoint_is_equal(&a->address, &b->address) &&
		    a->alsos == b->alsos;

	for (unsigned int i = 0; same && i < a->alsos; i++)
		same = endpoint_is_equal(&a->also[i], &b->also[i]);
	return same;
}

bool config_peers_are_equal(const struct config_peer *a, const struct config_peer *b,
			    unsigned int peers)
{
	for (unsigned int i = 0; i < peers; i++)
		if (!peer_is_equal(&a[i], &b[i]))
			return false;
	return true;
}

/* An address is that of one node. */
static int check_peer_address(struct reading *r, const struct place *at, const struct config *c,
			      const struct config_peer *p, const struct sockaddr_storage *address)
{
	char text[ADDRESS_BYTES];

	address_print(address, text, sizeof(text));
	for (const struct config_peer *other = c->peers.node; other < p; other++)
		if (config_peer_has(other, address))
			return keys_refuse(r, at, "%s is named twice", text);
	for (unsigned int i = 0; i < c->services; i++)
		if (endpoint_is_equal(&c->service[i], address))
			return keys_refuse(r, at, "%s is this node's own address", text);
	return 0;
}

/* One name may have an address of each family. */
static int check_peer(struct reading *r, const struct place *at, void *into)
{
	const struct config *c = into;
	const struct config_peer *p = &c->peers.node[c->peers.nodes - 1];
	int refused = check_peer_address(r, at, c, p, &p->address);

	for (const struct config_peer *other = c->peers.node; !refused && other < p; other++)
		if (!strcmp(other->name, p->name) &&
		    other->address.ss_family == p->address.ss_family)
			return keys_refuse(r, at, "node %s is named twice", p->name);
	for (unsigned int i = 0; i < p->alsos && !refused; i++)
		refused = check_peer_address(r, at, c, p, &p->also[i]);
	return refused;
}

static const struct key peer_rows[] = {
	{ "name", &key_name, KEY_MEMBER(struct config_peer, name), .needed = true,
	  .meaning = "What trees call the node." },
	{ "address", &key_address, KEY_MEMBER(struct config_peer, address), .needed = true,
	  .meaning = "One of those at its `service:`." },
	{ "also", &key_address, KEY_LIST(struct config_peer, also, alsos), .flow = true,
	  .word = "none", .check = keys_check_unique, .otherwise = "what its agent says",
	  .meaning = "List of up to 16 further addresses of the node, those by which routes lead "
		     "to it. Where it is given, the node has these and `address`, whatever its "
		     "agent says." },
};

static const struct key peers_rows[] = {
	{ "secret", &key_path, CONFIG(peers.secret), .word = "none", .initial = "none",
	  .meaning = "File with the secret of the agents of a cluster, the same for all: a line of "
		     "32 to 128 of A-Z, a-z, 0-9, '_' and '-', such as `openssl rand -hex 32` "
		     "prints; while it is [changed](peering.md#changing-the-secret), two. With "
		     "it this agent tells the inner nodes of its jobs' [trees](trees.md) by "
		     "itself." },
	{ "roots", &key_address, KEY_LIST(struct config, peers.root, peers.roots), .flow = true,
	  .word = "none", .check = keys_check_unique, .otherwise = "none",
	  .meaning = "List of up to 16 service addresses of other nodes: the agents there may say "
		     "what this node does as an inner node of their jobs." },
	{ "tenant", &key_name, CONFIG(peers.tenant), .initial = CONFIG_TENANT,
	  .meaning = "The tenant whose slots such jobs take here." },
	{ "nodes", NULL, KEY_LIST(struct config, peers.node, peers.nodes),
	  .keys = KEYS_OF(peer_rows), .check = check_peer, .otherwise = "none",
	  .allowed = "a mapping of `name`, `address` and `also`",
	  .meaning = "Nodes that may be inner nodes of this one's jobs: their agents are asked "
		     "where [trees are to be found](trees.md#trees-that-agents-find)." },
};

static const struct key metrics_rows[] = {
	{ "listen", &key_listen, CONFIG(metrics), .word = "none", .initial = CONFIG_METRICS_LISTEN,
	  .meaning = "Address and port of the HTTP server for Prometheus; `[::]`: all of the "
		     "machine's addresses." },
};

static const struct key log_rows[] = {
	{ "level", &key_choice, CONFIG(log_level), .words = config_levels, .initial = "info",
	  .meaning = "How much is logged." },
};

static const struct key sample_rows[] = {
	{ "interval_ms", &key_number, CONFIG(sample_ms), .min = CONFIG_SAMPLE_MS_MIN,
	  .max = CONFIG_SAMPLE_MS_MAX, .initial = "1000",
	  .meaning = "How often traffic is looked at, in milliseconds." },
};

static const struct key pool_rows[] = {
	{ "slots", &key_number, CONFIG(pool_slots), .max = DATAPLANE_SLOTS_MAX, .initial = "0",
	  .meaning = "Slots besides, which runs borrow that find none of their own; 0: none." },
	{ "policy", &key_choice, CONFIG(pool_policy), .words = config_policies,
	  .initial = "preempt",
	  .meaning = "Who has a borrowed slot that others want: `preempt`: who came last; `fcfs`: "
		     "who came first, until its sum leaves or stalls; `esa`: who has the higher "
		     "priority, where a holder's is halved with each one whom it keeps out." },
};

static const struct key spill_rows[] = {
	{ "memory_mib", &key_number, CONFIG(spill_mib), .max = CONFIG_SPILL_MIB_MAX,
	  .initial = "256",
	  .meaning = "MiB of memory for sums that are made in software, where a job finds no "
		     "slots; 0: such jobs are refused." },
	{ "threads", &key_number, CONFIG(spill_threads), .min = 1, .max = CONFIG_SPILL_THREADS_MAX,
	  .initial = "1",
	  .meaning = "Threads that make these sums. Each has whole jobs, by the job's number, and "
		     "an equal part of the memory." },
};

/* In the order in which they are read: tenants rely on ports and slots. */
static const struct key rows[] = {
	{ "ports", NULL, KEY_LIST(struct config, port, ports), .keys = KEYS_OF(port_rows),
	  .shorthand = true, .needed = true, .check = check_port,
	  .empty = "at least one port is needed: an interface to workers",
	  .meaning = "List of the interfaces that workers are behind, 1 to 1024 of them: a name, "
		     "or a mapping with the keys below." },
	{ "slots", &key_number, CONFIG(slots), .min = CONFIG_SLOTS_MIN, .max = DATAPLANE_SLOTS_MAX,
	  .initial = "4096",
	  .meaning = "Chunks that the node has memory for, 3.4 KB each. A job needs two for each "
		     "chunk of its window." },
	{ "pool", .keys = KEYS_OF(pool_rows) },
	{ "pin", &key_path, CONFIG(pin), .initial = DATAPLANE_PIN,
	  .meaning = "Directory in a BPF file system where programs and maps are pinned; another "
		     "one for each node, if there are several on a machine." },
	{ "state", &key_path, CONFIG(state), .initial = CONFIG_STATE,
	  .meaning = "File for what must survive a restart: jobs and tenants made at "
		     "runtime; each tallyd has one of its own." },
	{ "service", &key_address, KEY_LIST(struct config, service, services), .flow = true,
	  .needed = true, .check = keys_check_unique,
	  .empty = "at least one address of this node is needed: where workers send to",
	  .meaning = "List of 1 to 16 addresses of this node: what workers send to, at UDP port "
		     "31249. The first is that of jobs that ask for none." },
	{ "ingress", &key_choice, CONFIG(ingress), .words = config_ingress, .initial = "optional",
	  .meaning =
		  "`required`: a tenant without ingress points can have no jobs, so that nobody's "
		  "messages may come in anywhere." },
	{ "quotas", &key_choice, CONFIG(quotas), .words = config_quotas, .initial = "fixed",
	  .meaning =
		  "`lend`: a run for which its tenant's quota has no slots gets some that nobody "
		  "uses, on loan, and goes on in software when a quota needs them; tenants come to "
		  "have as much on loan. `lend-by-traffic`: the same, and they come to have as "
		  "much as they send. `fixed`: it is in software at once." },
	{ "control", .keys = KEYS_OF(control_rows) },
	{ "join", .keys = KEYS_OF(join_rows), .check = check_join },
	{ "peers", .keys = KEYS_OF(peers_rows) },
	{ "cluster", .keys = &config_cluster_keys, .check = config_cluster_check },
	{ "metrics", .keys = KEYS_OF(metrics_rows) },
	{ "log", .keys = KEYS_OF(log_rows) },
	{ "sample", .keys = KEYS_OF(sample_rows) },
	{ "spill", .keys = KEYS_OF(spill_rows) },
	{ "tenants", .take = take_tenants, .allowed = "a list of up to 63 mappings",
	  .otherwise = "none", .meaning = "List of tenants, each a mapping with the keys below." },
};

const struct keys config_keys = KEYS(rows);

/*
 * Results leave a root's machine past the pool, so nobody holds on to a slot for these. Whoever
 * stalls gives way: what a late repetition began, nobody would come back for.
 */
struct tally_pool config_pool(const struct config *c)
{
	static const struct tally_borrowed_policy policies[] = {
		[CONFIG_POLICY_PREEMPT] = { .preempts = true },
		[CONFIG_POLICY_FCFS] = { .preempts = false },
		[CONFIG_POLICY_ESA] = TALLY_BORROWED_ESA,
	};
	struct tally_pool p = { .slots = c->pool_slots, .policy = policies[c->pool_policy] };

	p.policy.stalled_ms = STALLED_MS;
	return p;
}

void config_free(struct config *c) { free(c); }

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	keys_default(&config_keys, c);
	c->rest = true;
	c->listens = NOT_GIVEN;
	c->tenants = 1;
	return c;
}

/* What the file does not say, but other keys do. */
static void finish(struct config *c)
{
	struct tenant *d = &c->tenant[0];

	if (c->listens == NOT_GIVEN) {
		memcpy(c->listen, c->service, sizeof(c->listen));
		c->listens = c->services;
	}
	snprintf(d->name, sizeof(d->name), "%s", CONFIG_TENANT);
	if (!c->rest)
		return;
	d->slots = c->slots;
	for (unsigned int i = 1; i < c->tenants; i++)
		d->slots -= c->tenant[i].slots;
}

int config_parse(const char *text, size_t length, const char *name, struct config **ret,
		 struct why *why)
{
	struct reading reading = { &keys_yaml_style, name, NULL, why->text, sizeof(why->text) };
	_cleanup_(config_freep) struct config *c = config_new();
	_cleanup_(value_freep) struct value *root = NULL;
	int r;

	if (!c)
		return why_say(why, -ENOMEM, "%s: %s", name, strerror(ENOMEM));
	if (length > CONFIG_BYTES_MAX)
		return why_say(why, -EFBIG, "%s: longer than %d bytes", name, CONFIG_BYTES_MAX);
	r = keys_yaml_parse(text, length, name, &root, why);
	reading.root = c;
	if (r == 0)
		r = keys_take_root(&reading, root, &config_keys, c, NULL);
	if (r < 0)
		return r;
	if (!strcmp(c->join_socket, c->control_socket)) /* without a key `join`, by its default */
		return why_say(why, -EINVAL,
			       "%s: control: has the same socket as join; each needs its own",
			       name);
	finish(c);
	*ret = TAKE_PTR(c);
	return 0;
}

int config_read(const char *path, struct config **ret, struct why *why)
{
	_cleanup_(freep) char *text = NULL;
	size_t length;
	int r;

	r = file_read(path, CONFIG_BYTES_MAX, &text, &length);
	if (r == -EFBIG)
		return why_say(why, r, "%s: longer than %d bytes", path, CONFIG_BYTES_MAX);
	if (r < 0)
		return why_say(why, r, "%s: %s", path, strerror(-r));
	return config_parse(text, length, path, ret, why);
}

/* --- out */

static void tenant_print(FILE *to, const struct tenant *t, bool rest)
{
	const struct keys name = { tenant_rows, 1 };
	const struct keys others = { tenant_rows + 2, config_tenant_keys.count - 2 };

	keys_yaml_print(&name, t, "  - ", to);
	fprintf(to, rest ? "    # slots: %u, what nobody reserves\n" : "    slots: %u\n", t->slots);
	keys_yaml_print(&others, t, "    ", to);
}

void config_print(const struct config *c, FILE *to)
{
	keys_yaml_print(&config_keys, c, "", to);
	if (!c->default_named)
		fprintf(to, "# tenant default: %u slots, what nobody reserves\n", c->tenant->slots);
	if (c->default_named || c->tenants > 1)
		fputs("tenants:\n", to);
	for (unsigned int i = c->default_named ? 0 : 1; i < c->tenants; i++)
		tenant_print(to, &c->tenant[i], c->rest && i == 0);
}
