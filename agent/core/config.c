// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/name.h"
#include "config.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "common/address.h"
#include "common/file.h"
#include "common/text.h"
#include "tree.h"

#define NOT_GIVEN UINT32_MAX /* slots of a tenant that says none */

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

static const char none[] = "none";

/* --- names and paths */

static int path_take(struct tree *t, const struct tree_place *at, size_t size, char *ret)
{
	char allowed[80];
	const char *text;
	int r;

	snprintf(allowed, sizeof(allowed), "a path from / on, of at most %zu printable characters",
		 size - 1);
	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (*text != '/' || strlen(text) >= size)
		return tree_refuse_value(t, at, "%s", allowed);
	for (const char *c = text; *c; c++)
		if (*c < ' ' || *c > '~')
			return tree_refuse_value(t, at, "%s", allowed);
	snprintf(ret, size, "%s", text);
	return 0;
}

static int take_path(struct tree *t, const struct tree_place *at, void *into)
{
	return path_take(t, at, CONFIG_PATH_BYTES, into);
}

static int take_socket(struct tree *t, const struct tree_place *at, void *into)
{
	return path_take(t, at, CONFIG_SOCKET_BYTES, into);
}

static int take_socket_or_none(struct tree *t, const struct tree_place *at, void *into)
{
	if (!tree_is_word(t, at, none))
		return take_socket(t, at, into);
	*(char *)into = '\0';
	return 0;
}

static bool is_group_sign(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("._-", c));
}

static int take_group(struct tree *t, const struct tree_place *at, void *into)
{
	static const char allowed[] = "the name of a group of users";
	const char *text;
	size_t length;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	length = strlen(text);
	if (!length || length >= CONFIG_GROUP_BYTES || *text == '-')
		return tree_refuse_value(t, at, "%s", allowed);
	for (const char *c = text; *c; c++)
		if (!is_group_sign(*c))
			return tree_refuse_value(t, at, "%s", allowed);
	memcpy(into, text, length + 1);
	return 0;
}

/* --- ports */

static int take_port_name(struct tree *t, const struct tree_place *at, void *into)
{
	static const char allowed[] = "the name of an interface, of at most 15 bytes";
	const char *text;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (!tenant_port_is_valid(text))
		return tree_refuse_value(t, at, "%s", allowed);
	snprintf(into, IF_NAMESIZE, "%s", text);
	return 0;
}

_Static_assert(IF_NAMESIZE - 1 == 15, "the text above and docs/config.md name it");
_Static_assert(sizeof(enum dataplane_mode) == sizeof(unsigned int) &&
		       sizeof(enum log_level) == sizeof(unsigned int),
	       "tree_take_choice() writes an unsigned int");

const char *const config_modes[] = { [DATAPLANE_AUTO] = "auto",
				     [DATAPLANE_NATIVE] = "native",
				     [DATAPLANE_GENERIC] = "generic",
				     [DATAPLANE_TC] = "tc",
				     NULL };

static const struct tree_key port_keys[] = {
	{ "name", take_port_name, offsetof(struct config_port, name), .needed = true },
	{ "mode", tree_take_choice, offsetof(struct config_port, mode), .words = config_modes },
	{ "share", tree_take_bool, .offset = offsetof(struct config_port, share) },
};

static bool port_is_there(const struct config *c, const char *name)
{
	for (unsigned int i = 0; i < c->ports; i++)
		if (!strcmp(c->port[i].name, name))
			return true;
	return false;
}

static int take_port(struct tree *t, const struct tree_place *at, void *into)
{
	struct config_port port = { .mode = DATAPLANE_AUTO };
	struct config *c = into;
	int r;

	if (tree_is_mapping(t, at))
		r = tree_mapping(t, at, port_keys, COUNT(port_keys), &port);
	else
		r = take_port_name(t, at, port.name);
	if (r < 0)
		return r;
	if (port_is_there(c, port.name))
		return tree_refuse(t, at, "port %s stands here already", port.name);
	c->port[c->ports++] = port;
	return 0;
}

static int take_ports(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;
	int r = tree_list(t, at, TALLY_PORTS_MAX, take_port, c);

	if (r == 0 && !c->ports)
		return tree_refuse(t, at, "at least one port is needed: an interface to workers");
	return r;
}

/* --- addresses */

static int address_add(struct tree *t, const struct tree_place *at, struct sockaddr_storage *list,
		       unsigned int *count)
{
	static const char allowed[] = "an address without port, such as 10.77.0.1 or fd77::1";
	struct sockaddr_storage address;
	const char *text;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (address_parse(text, TALLY_UDP_PORT, &address) < 0)
		return tree_refuse_value(t, at, "%s", allowed);
	for (unsigned int i = 0; i < *count; i++)
		if (!memcmp(&list[i], &address, sizeof(address)))
			return tree_refuse_value(t, at, "stands here already");
	list[(*count)++] = address;
	return 0;
}

static int take_service(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;

	return address_add(t, at, c->service, &c->services);
}

/* Workers join where they send to, unless the configuration says otherwise further on. */
static int take_services(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;
	int r = tree_list(t, at, CONFIG_SERVICES_MAX, take_service, c);

	if (r == 0 && !c->services)
		return tree_refuse(t, at,
				   "at least one address of this node is needed: where "
				   "workers send to");
	memcpy(c->listen, c->service, sizeof(c->listen));
	c->listens = c->services;
	return r;
}

static int take_listen(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;

	return address_add(t, at, c->listen, &c->listens);
}

static int take_listens(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;

	memset(c->listen, 0, sizeof(c->listen));
	c->listens = 0;
	if (tree_is_word(t, at, none))
		return 0;
	return tree_list(t, at, CONFIG_LISTENS_MAX, take_listen, c);
}

static int take_metrics_listen(struct tree *t, const struct tree_place *at, void *into)
{
	static const char allowed[] = "an address and port, such as 127.0.0.1:9464 or [::]:9464, "
				      "or none";
	struct sockaddr_storage address = { 0 };
	const char *text;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (strcmp(text, none) != 0 && address_listen_parse(text, &address) < 0)
		return tree_refuse_value(t, at, "%s", allowed);
	memcpy(into, &address, sizeof(address));
	return 0;
}

/* --- tenants */

/* An ingress point that is a mapping. */
struct point_words {
	char port[TENANT_POINT_BYTES];
	char vlan[TENANT_POINT_BYTES];
	char source[TENANT_POINT_BYTES];
};

static int take_word(struct tree *t, const struct tree_place *at, void *into)
{
	static const char allowed[] = "one word";
	const char *text;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (!*text || strpbrk(text, " \t") || strlen(text) >= TENANT_POINT_BYTES)
		return tree_refuse_value(t, at, "%s", allowed);
	snprintf(into, TENANT_POINT_BYTES, "%s", text);
	return 0;
}

static const struct tree_key point_keys[] = {
	{ "port", take_word, offsetof(struct point_words, port), .needed = true },
	{ "vlan", take_word, .offset = offsetof(struct point_words, vlan) },
	{ "source", take_word, .offset = offsetof(struct point_words, source) },
};

/* Both forms go through tenant_point_parse(), so that there is one set of rules. */
static int point_text(struct tree *t, const struct tree_place *at, size_t size, char *ret)
{
	struct point_words w = { 0 };
	const char *text;
	int r;

	if (tree_is_mapping(t, at)) {
		r = tree_mapping(t, at, point_keys, COUNT(point_keys), &w);
		if (r == 0)
			snprintf(ret, size, "%s%s%s%s%s", w.port, *w.vlan ? " vlan " : "", w.vlan,
				 *w.source ? " source " : "", w.source);
		return r;
	}
	r = tree_text(t, at, "an ingress point, such as eth1 vlan 5 source 10.77.1.0/24", &text);
	if (r == 0)
		snprintf(ret, size, "%s", text);
	return r;
}

static int take_point(struct tree *t, const struct tree_place *at, void *into)
{
	char text[sizeof(struct point_words) + 32];
	struct tenant *tenant = into;
	struct tenant_point point;
	struct why why;
	int r;

	r = point_text(t, at, sizeof(text), text);
	if (r < 0)
		return r;
	if (tenant_point_parse(text, &point, &why) < 0)
		return tree_refuse(t, at, "%s", why.text);
	if (!port_is_there(tree_root(t), point.port))
		return tree_refuse(t, at, "port %s is none of the node's: add it to ports",
				   point.port);
	tenant->point[tenant->points++] = point;
	return 0;
}

static int take_points(struct tree *t, const struct tree_place *at, void *into)
{
	return tree_list(t, at, TENANT_POINTS_MAX, take_point, into);
}

static int take_tenant_name(struct tree *t, const struct tree_place *at, void *into)
{
	static const char allowed[] =
		"1 to 63 of a-z, 0-9, '.', '_' and '-', the first one no sign";
	const char *text;
	int r;

	r = tree_text(t, at, allowed, &text);
	if (r < 0)
		return r;
	if (!name_is_valid(text))
		return tree_refuse_value(t, at, "%s", allowed);
	snprintf(into, NAME_BYTES, "%s", text);
	return 0;
}

#define TENANT(member) offsetof(struct tenant, member)

static const struct tree_key tenant_keys[] = {
	{ "name", take_tenant_name, TENANT(name), .needed = true },
	{ "slots", tree_take_u32, TENANT(slots), .max = DATAPLANE_SLOTS_MAX },
	{ "packets_per_second", tree_take_rate, TENANT(packets_per_second),
	  .max = TENANT_RATE_MAX },
	{ "bytes_per_second", tree_take_rate, TENANT(bytes_per_second), .max = TENANT_RATE_MAX },
	{ "priority", tree_take_u8, TENANT(priority), .max = TENANT_PRIORITY_MAX },
	{ "ingress", take_points, .offset = 0 },
};

/* tenant[0] has no name until it is found in the file or all is read. */
static int tenant_add(struct tree *t, const struct tree_place *at, struct config *c,
		      const struct tenant *tenant)
{
	bool is_default = !strcmp(tenant->name, CONFIG_TENANT);
	uint64_t reserved = tenant->slots;

	for (unsigned int i = 0; i < c->tenants; i++) {
		if (!strcmp(c->tenant[i].name, tenant->name))
			return tree_refuse(t, at, "tenant %s stands here already", tenant->name);
		reserved += c->tenant[i].slots;
	}
	if (reserved > c->slots)
		return tree_refuse(t, at,
				   "tenants up to here reserve %ju slots together, but the node "
				   "has %u: give them less, or raise slots",
				   (uintmax_t)reserved, c->slots);
	c->tenant[is_default ? 0 : c->tenants++] = *tenant;
	return 0;
}

static int take_tenant(struct tree *t, const struct tree_place *at, void *into)
{
	struct tenant tenant = { .slots = NOT_GIVEN };
	struct config *c = into;
	int r;

	r = tree_mapping(t, at, tenant_keys, COUNT(tenant_keys), &tenant);
	if (r < 0)
		return r;
	c->default_named = c->default_named || !strcmp(tenant.name, CONFIG_TENANT);
	if (tenant.slots != NOT_GIVEN) {
		c->rest = c->rest && strcmp(tenant.name, CONFIG_TENANT) != 0;
	} else if (strcmp(tenant.name, CONFIG_TENANT) != 0) {
		return tree_refuse(t, at, "the key 'slots' is needed");
	} else {
		tenant.slots = 0;
	}
	return tenant_add(t, at, c, &tenant);
}

static int take_tenants(struct tree *t, const struct tree_place *at, void *into)
{
	return tree_list(t, at, TALLY_TENANTS_MAX - 1, take_tenant, into);
}

/* --- the whole */

#define CONFIG(member) offsetof(struct config, member)

const char *const config_levels[] = { [LOG_LEVEL_ERROR] = "error",
				      [LOG_LEVEL_WARNING] = "warning",
				      [LOG_LEVEL_INFO] = "info",
				      [LOG_LEVEL_DEBUG] = "debug",
				      NULL };

static const struct tree_key control_keys[] = {
	{ "socket", take_socket, .offset = CONFIG(control_socket) },
	{ "group", take_group, .offset = CONFIG(control_group) },
};
static const struct tree_key join_keys[] = {
	{ "socket", take_socket_or_none, .offset = CONFIG(join_socket) },
	{ "listen", take_listens, .offset = 0 },
};
static const struct tree_key metrics_keys[] = {
	{ "listen", take_metrics_listen, .offset = CONFIG(metrics) },
};
static const struct tree_key log_keys[] = {
	{ "level", tree_take_choice, CONFIG(log_level), .words = config_levels },
};
static const struct tree_key sample_keys[] = {
	{ "interval_ms", tree_take_u32, CONFIG(sample_ms), .min = CONFIG_SAMPLE_MS_MIN,
	  .max = CONFIG_SAMPLE_MS_MAX },
};

static int take_join(struct tree *t, const struct tree_place *at, void *into)
{
	struct config *c = into;
	int r = tree_mapping(t, at, join_keys, COUNT(join_keys), c);

	if (r == 0 && !strcmp(c->join_socket, c->control_socket))
		return tree_refuse(t, at, "has the same socket as control; each needs its own");
	return r;
}

/* In the order in which they are read: tenants rely on ports and slots, join on services. */
static const struct tree_key config_keys[] = {
	{ "ports", take_ports, 0, .needed = true },
	{ "slots", tree_take_u32, CONFIG(slots), .min = CONFIG_SLOTS_MIN,
	  .max = DATAPLANE_SLOTS_MAX },
	{ "pin", take_path, .offset = CONFIG(pin) },
	{ "state", take_path, .offset = CONFIG(state) },
	{ "service", take_services, 0, .needed = true },
	{ "control", tree_take_mapping, .keys = control_keys, .count = COUNT(control_keys) },
	{ "join", take_join, .offset = 0 },
	{ "metrics", tree_take_mapping, .keys = metrics_keys, .count = COUNT(metrics_keys) },
	{ "log", tree_take_mapping, .keys = log_keys, .count = COUNT(log_keys) },
	{ "sample", tree_take_mapping, .keys = sample_keys, .count = COUNT(sample_keys) },
	{ "tenants", take_tenants, .offset = 0 },
};

void config_free(struct config *c) { free(c); }

static struct config *config_new(void)
{
	struct config *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->slots = DATAPLANE_SLOTS;
	snprintf(c->pin, sizeof(c->pin), "%s", DATAPLANE_PIN);
	snprintf(c->state, sizeof(c->state), "%s", CONFIG_STATE);
	snprintf(c->control_socket, sizeof(c->control_socket), "%s", CONFIG_CONTROL_SOCKET);
	snprintf(c->join_socket, sizeof(c->join_socket), "%s", CONFIG_JOIN_SOCKET);
	address_listen_parse(CONFIG_METRICS_LISTEN, &c->metrics);
	c->log_level = LOG_LEVEL_INFO;
	c->sample_ms = CONFIG_SAMPLE_MS;
	c->rest = true;
	c->tenants = 1;
	return c;
}

static void default_finish(struct config *c)
{
	struct tenant *d = &c->tenant[0];

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
	_cleanup_(config_freep) struct config *c = config_new();
	int r;

	if (!c)
		return why_say(why, -ENOMEM, "%s: %s", name, strerror(ENOMEM));
	if (length > CONFIG_BYTES_MAX)
		return why_say(why, -EFBIG, "%s: longer than %d bytes", name, CONFIG_BYTES_MAX);
	r = tree_read(text, length, name, config_keys, COUNT(config_keys), c, why);
	if (r < 0)
		return r;
	default_finish(c);
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
