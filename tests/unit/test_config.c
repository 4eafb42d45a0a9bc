// SPDX-License-Identifier: GPL-2.0-only
/* The configuration: what is taken, what is refused, and that the refusal says where and why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/config.h"

#define BASE "ports: [eth1, eth2]\nservice: 10.77.0.1\n"

static struct config *config;
static struct why why;

/* From an exact copy on the heap, so that a step past its end is seen. */
static int parse_bytes(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	int r;

	memcpy(copy, text, length);
	config = NULL;
	r = config_parse(copy, length, "x.yaml", &config, &why);
	free(copy);
	return r;
}

/* The configuration that is then checked; freed by the next one, and in the end. */
static const struct config *taken(const char *text)
{
	static struct config last;
	int r = parse_bytes(text, strlen(text));

	if (r < 0)
		fail_msg("%s", why.text);
	last = *config;
	config_free(config);
	return &last;
}

static void refused(const char *text, const char *reason)
{
	assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
	assert_null(config);
	assert_string_equal(why.text, reason);
}

static uint16_t port_of(const struct sockaddr_storage *a)
{
	return ntohs(a->ss_family == AF_INET ? ((const struct sockaddr_in *)a)->sin_port
					     : ((const struct sockaddr_in6 *)a)->sin6_port);
}

static void what_is_not_said_has_a_default(void **state)
{
	const struct config *c = taken("ports: [eth1]\nservice: [10.77.0.1, fd77::1]\n");

	assert_int_equal(c->ports, 1);
	assert_string_equal(c->port[0].name, "eth1");
	assert_int_equal(c->port[0].mode, DATAPLANE_AUTO);
	assert_false(c->port[0].share);
	assert_int_equal(c->slots, 4096);
	assert_int_equal(c->pool_slots, 0);
	assert_true(config_pool(c).policy.preempts && !config_pool(c).policy.by_priority);
	assert_string_equal(c->pin, "/sys/fs/bpf/tally");
	assert_string_equal(c->state, "/var/lib/tally/state.json");
	assert_int_equal(c->services, 2);
	assert_int_equal(c->service[1].ss_family, AF_INET6);
	assert_int_equal(port_of(&c->service[1]), TALLY_UDP_PORT);
	assert_string_equal(c->control_socket, "/run/tally/control.sock");
	assert_string_equal(c->control_group, "");
	assert_int_equal(c->ingress, CONFIG_INGRESS_OPTIONAL);
	assert_int_equal(c->quotas, CONFIG_QUOTAS_FIXED);
	assert_string_equal(c->join_socket, "/run/tally/join.sock");
	assert_int_equal(c->listens, 2);
	assert_memory_equal(c->listen, c->service, sizeof(c->listen));
	assert_int_equal(c->metrics.ss_family, AF_INET);
	assert_int_equal(port_of(&c->metrics), 9464);
	assert_int_equal(c->log_level, LOG_LEVEL_INFO);
	assert_int_equal(c->sample_ms, 1000);
	assert_int_equal(c->spill_threads, 1);
	assert_int_equal(c->tenants, 1);
	assert_string_equal(c->tenant[0].name, "default");
	assert_int_equal(c->tenant[0].slots, 4096);
	assert_true(c->rest);
}

static void everything_can_be_said(void **state)
{
	const struct config *c = taken("ports:\n"
				       "  - name: eth1\n"
				       "    mode: native\n"
				       "    share: true\n"
				       "  - {name: eth2, mode: generic}\n"
				       "  - {name: eth3, mode: tc}\n"
				       "slots: 100\n"
				       "pool: {slots: 50, policy: esa}\n"
				       "pin: /sys/fs/bpf/other\n"
				       "state: /tmp/s\n"
				       "service: 10.77.0.1\n"
				       "ingress: required\n"
				       "quotas: lend\n"
				       "control: {socket: /tmp/c, group: Tally_1.x-}\n"
				       "join: {socket: none, listen: [10.77.0.2]}\n"
				       "metrics: {listen: '[::]:80'}\n"
				       "log: {level: debug}\n"
				       "sample: {interval_ms: 60000}\n"
				       "spill: {memory_mib: 0, threads: 16}\n"
				       "tenants: []\n");

	assert_int_equal(c->port[0].mode, DATAPLANE_NATIVE);
	assert_true(c->port[0].share);
	assert_int_equal(c->port[1].mode, DATAPLANE_GENERIC);
	assert_int_equal(c->port[2].mode, DATAPLANE_TC);
	assert_int_equal(c->slots, 100);
	assert_int_equal(config_pool(c).slots, 50);
	assert_true(config_pool(c).policy.by_priority);
	assert_string_equal(c->pin, "/sys/fs/bpf/other");
	assert_string_equal(c->state, "/tmp/s");
	assert_int_equal(c->ingress, CONFIG_INGRESS_REQUIRED);
	assert_int_equal(c->quotas, CONFIG_QUOTAS_LEND);
	assert_string_equal(c->control_socket, "/tmp/c");
	assert_string_equal(c->control_group, "Tally_1.x-");
	assert_string_equal(c->join_socket, "");
	assert_int_equal(c->listens, 1);
	assert_int_equal(c->metrics.ss_family, AF_INET6);
	assert_int_equal(port_of(&c->metrics), 80);
	assert_int_equal(c->log_level, LOG_LEVEL_DEBUG);
	assert_int_equal(c->sample_ms, 60000);
	assert_int_equal(c->spill_mib, 0);
	assert_int_equal(c->spill_threads, 16);
}

/* Only esa asks for priorities, and only fcfs has holders that stay until they stall. */
static void a_policy_is_five_constants(void **state)
{
	static const char *const words[] = { "preempt", "fcfs", "esa" };
	struct tally_borrowed_policy p;
	char text[200];

	for (int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), BASE "pool: {slots: 1, policy: %s}\n", words[i]);
		p = config_pool(taken(text)).policy;
		assert_int_equal(p.preempts, i != 1);
		assert_int_equal(p.by_priority, i == 2);
		assert_int_equal(p.downgrade, i == 2);
		assert_true(p.stalled_ms);
		assert_false(p.holds);
	}
}

static void none_switches_off(void **state)
{
	const struct config *c = taken(BASE "join: {socket: none, listen: none}\n"
					    "metrics: {listen: none}\n");

	assert_string_equal(c->join_socket, "");
	assert_int_equal(c->listens, 0);
	assert_int_equal(c->metrics.ss_family, AF_UNSPEC);
	assert_int_equal(taken(BASE "join: {listen: []}")->listens, 0);
	assert_int_equal(taken(BASE "metrics: {listen: '0.0.0.0:1'}")->metrics.ss_family, AF_INET);
}

static void a_key_with_nothing_behind_it_is_not_said(void **state)
{
	const struct config *c = taken(BASE "control:\njoin:\n  # socket: x\ntenants:\nlog:\n");

	assert_string_equal(c->control_socket, "/run/tally/control.sock");
	assert_int_equal(c->tenants, 1);
}

#define TENANT_A "  - name: a\n    slots: 10\n"

static void tenants_have_quotas_and_ingress_points(void **state)
{
	const struct config *c = taken(BASE "tenants:\n" TENANT_A "    packets_per_second: 5k\n"
					    "    bytes_per_second: 1000G\n"
					    "    priority: 255\n"
					    "    ingress:\n"
					    "      - eth2 vlan 5 source 10.0.0.0/8\n"
					    "      - {port: eth1, source: fd77::/64}\n"
					    "      - {vlan: 0, port: eth1}\n"
					    "      - eth2\n"
					    "  - {name: b, slots: 0, ingress: eth1}\n");
	const struct tenant *a = &c->tenant[1];

	assert_int_equal(c->tenants, 3);
	assert_string_equal(a->name, "a");
	assert_int_equal(a->slots, 10);
	assert_int_equal(a->packets_per_second, 5000);
	assert_true(a->bytes_per_second == TENANT_RATE_MAX);
	assert_int_equal(a->priority, 255);
	assert_int_equal(a->points, 4);
	assert_string_equal(a->point[0].port, "eth2");
	assert_int_equal(a->point[0].vlan, 5);
	assert_int_equal(a->point[0].source_bits, 8);
	assert_int_equal(a->point[1].vlan, TENANT_VLAN_ANY);
	assert_int_equal(a->point[1].source.ss_family, AF_INET6);
	assert_int_equal(a->point[2].vlan, 0);
	assert_int_equal(c->tenant[2].points, 1);
	assert_int_equal(c->tenant[0].slots, 4086);
}

static void the_default_tenant_has_the_rest_unless_it_says_otherwise(void **state)
{
	const struct config *c;

	c = taken(BASE "tenants:\n  - {name: default, priority: 3}\n" TENANT_A);
	assert_int_equal(c->tenants, 2);
	assert_int_equal(c->tenant[0].priority, 3);
	assert_int_equal(c->tenant[0].slots, 4086);
	assert_true(c->rest);
	c = taken(BASE "tenants:\n" TENANT_A "  - {name: default, slots: 0}\n");
	assert_int_equal(c->tenant[0].slots, 0);
	assert_false(c->rest);
	c = taken(BASE "tenants:\n" TENANT_A "  - {name: default, slots: 4086}\n");
	assert_int_equal(c->tenant[0].slots, 4086);
}

static void all_slots_may_be_reserved_but_not_more(void **state)
{
	const struct config *c = taken(BASE "slots: 12\ntenants:\n" TENANT_A
					    "  - {name: b, slots: 2}\n");

	assert_int_equal(c->tenant[0].slots, 0);
	refused(BASE "tenants:\n" TENANT_A "  - {name: b, slots: 3}\nslots: 12\n",
		"x.yaml:6: tenants[1]: the tenants up to this one reserve 13 slots, but the node "
		"has 12: give them less, or raise slots");
	refused(BASE "tenants:\n" TENANT_A "  - {name: default, slots: 3}\nslots: 12\n",
		"x.yaml:6: tenants[1]: the tenants up to this one reserve 13 slots, but the node "
		"has 12: give them less, or raise slots");
}

static void an_error_names_line_key_value_and_what_is_allowed(void **state)
{
	refused(BASE "tenants:\n" TENANT_A "  - name: b\n    slots: many\n",
		"x.yaml:7: tenants[1].slots: 'many': a number from 0 to 262144");
	refused(BASE "slots: 1\n", "x.yaml:3: slots: '1': a number from 2 to 262144");
	refused(BASE "slots: 4k\n", "x.yaml:3: slots: '4k': a number from 2 to 262144");
	refused(BASE "slots: [2]\n", "x.yaml:3: slots: (a list): a number from 2 to 262144");
	refused(BASE "sample: {interval_ms: 99}\n",
		"x.yaml:3: sample.interval_ms: '99': a number from 100 to 60000");
	refused(BASE "spill: {threads: 17}\n",
		"x.yaml:3: spill.threads: '17': a number from 1 to 16");
	refused(BASE "log:\n  level: loud\n",
		"x.yaml:4: log.level: 'loud': one of error, warning, info and debug");
	refused(BASE "log: loud\n",
		"x.yaml:3: log: 'loud': a mapping is needed here; its keys are level");
	refused(BASE "pin: tally\n",
		"x.yaml:3: pin: 'tally': a path from / on, of at most 255 printable characters");
	refused(BASE "pin: \"/a\\0b\"\n",
		"x.yaml:3: pin: '/a?b': a path from / on, of at most 255 printable characters");
	refused(BASE "control: {group: -x}\n",
		"x.yaml:3: control.group: '-x': the name of a group of users");
	refused(BASE "metrics: {listen: 9464}\n",
		"x.yaml:3: metrics.listen: '9464': an address and port, such as 127.0.0.1:9464 or "
		"[::]:9464, or none");
	refused(BASE "join: {listen: [10.0.0.1, 10.0.0.1]}\n",
		"x.yaml:3: join.listen[1]: '10.0.0.1': is named twice");
	refused(BASE
		"peers: {nodes: [{name: a, address: 10.9.9.1}, {name: a, address: 10.9.9.2}]}\n",
		"x.yaml:3: peers.nodes[1]: node a is named twice");
	refused(BASE
		"peers: {nodes: [{name: a, address: 10.9.9.1}, {name: b, address: 10.9.9.1}]}\n",
		"x.yaml:3: peers.nodes[1]: 10.9.9.1 is named twice");
	refused(BASE "peers: {nodes: [{name: a, address: 10.9.9.1}, {name: b, address: 10.9.9.2, "
		     "also: [10.9.9.3, 10.9.9.1]}]}\n",
		"x.yaml:3: peers.nodes[1]: 10.9.9.1 is named twice");
	refused(BASE "peers: {nodes: [{name: a, address: 10.9.9.1, also: 10.9.9.2}, "
		     "{name: b, address: 10.9.9.2}]}\n",
		"x.yaml:3: peers.nodes[1]: 10.9.9.2 is named twice");
	refused(BASE "peers: {nodes: [{name: a, address: 10.9.9.1, also: [10.77.0.1]}]}\n",
		"x.yaml:3: peers.nodes[0]: 10.77.0.1 is this node's own address");
	refused(BASE "peers: {nodes: [{name: a, address: 10.77.0.1}]}\n",
		"x.yaml:3: peers.nodes[0]: 10.77.0.1 is this node's own address");
	refused(BASE "join: {socket: /run/tally/control.sock}\n",
		"x.yaml:3: join: has the same socket as control; each needs its own");
	refused(BASE "control: {socket: /run/tally/join.sock}\n",
		"x.yaml: control: has the same socket as join; each needs its own");
}

static void a_wrong_key_hears_the_right_one(void **state)
{
	refused(BASE "slot: 4\n", "x.yaml:3: 'slot': no such key; is slots meant?");
	refused(BASE "control: {colour: red}\n",
		"x.yaml:3: control: 'colour': no such key; there are socket and group");
	refused("\n\n\nPORTS: a\n",
		"x.yaml:4: 'PORTS': no such key; there are ports, slots, pool, pin, "
		"state, service, ingress, quotas, control, join, peers, cluster, metrics, log, sample, spill and "
		"tenants");
	refused(BASE "<<: {slots: 4}\n",
		"x.yaml:3: '<<': no such key; there are ports, slots, pool, "
		"pin, state, service, ingress, quotas, control, join, peers, cluster, metrics, log, "
		"sample, spill and tenants");
	refused(BASE "[a]: 4\n", "x.yaml:3: a key must be a word");
}

static void nothing_is_said_twice(void **state)
{
	refused(BASE "slots: 4\nslots: 4\n", "x.yaml:4: 'slots': given twice");
	refused(BASE "tenants:\n" TENANT_A "    slots: 5\n",
		"x.yaml:6: tenants[0]: 'slots': given twice");
	refused("ports: [a, a]\nservice: 10.0.0.1\n", "x.yaml:1: ports[1]: port a is named twice");
	refused("ports: a\nservice: [10.0.0.1, 10.0.0.1]\n",
		"x.yaml:2: service[1]: '10.0.0.1': is named twice");
	refused(BASE "tenants:\n" TENANT_A TENANT_A,
		"x.yaml:6: tenants[1]: tenant a is named twice");
	refused(BASE "tenants: [{name: default}, {name: default, slots: 4}]\n",
		"x.yaml:3: tenants[1]: tenant default is named twice");
}

static void what_is_needed_must_be_there(void **state)
{
	refused("", "x.yaml: the key 'ports' is needed");
	refused("# nothing\n---\n", "x.yaml: the key 'ports' is needed");
	refused("ports: a\n", "x.yaml: the key 'service' is needed");
	refused("ports:\nservice: 10.0.0.1\n",
		"x.yaml:1: ports: at least one port is needed: an interface to workers");
	refused("ports: a\nservice: []\n", "x.yaml:2: service: at least one address of this node "
					   "is needed: where workers send to");
	refused(BASE "tenants: [{slots: 4}]\n", "x.yaml:3: tenants[0]: the key 'name' is needed");
	refused(BASE "tenants: [{name: a}]\n", "x.yaml:3: tenants[0]: the key 'slots' is needed");
	refused("ports: [{mode: auto}]\n", "x.yaml:1: ports[0]: the key 'name' is needed");
	refused(BASE "tenants: [{name: a, slots: 1, ingress: [{vlan: 5}]}]\n",
		"x.yaml:3: tenants[0].ingress[0]: the key 'port' is needed");
}

static void ingress_points_are_on_the_node_s_ports(void **state)
{
	refused(BASE "tenants: [{name: a, slots: 1, ingress: [eth1, eth3 vlan 5]}]\n",
		"x.yaml:3: tenants[0].ingress[1]: port eth3 is not one of the node's; add it to "
		"ports");
	refused(BASE "tenants: [{name: a, slots: 1, ingress: eth1 source 10.0.0.1/8}]\n",
		"x.yaml:3: tenants[0].ingress: source '10.0.0.1/8': has host bits set; "
		"did you mean 10.0.0.0/8?");
	refused(BASE "tenants: [{name: a, slots: 1, ingress: [{port: eth1 vlan 5}]}]\n",
		"x.yaml:3: tenants[0].ingress[0].port: 'eth1 vlan 5': one word");
	/* The tenants may stand above the ports. */
	taken("tenants: [{name: a, slots: 1, ingress: eth1}]\n" BASE);
}

static void only_plain_yaml_is_taken(void **state)
{
	refused("ports: &a [eth1]\n", "x.yaml:1: anchors and aliases (& and *) are not taken; "
				      "write it out, or quote a value that begins so");
	refused(BASE "\ntenants: *a\n", "x.yaml:4: anchors and aliases (& and *) are not taken; "
					"write it out, or quote a value that begins so");
	refused("&a [*a, *a]\n", "x.yaml:1: anchors and aliases (& and *) are not taken; "
				 "write it out, or quote a value that begins so");
	refused(BASE "slots: !!int 4\n",
		"x.yaml:3: tags (!) are not taken; quote a value that begins so");
	refused(BASE "---\n" BASE, "x.yaml:3: a second document begins; there can be only one");
	refused("[[[[[[[[[\n", "x.yaml:1: nested too deeply");
	refused("- a\n",
		"x.yaml:1: (a list): a mapping is needed here; its keys are ports, "
		"slots, pool, pin, state, service, ingress, quotas, control, join, peers, cluster, metrics, log, sample, spill and "
		"tenants");
}

/* The library's own words differ from version to version. */
static void no_yaml(const char *text, const char *beginning)
{
	assert_int_equal(parse_bytes(text, strlen(text)), -EINVAL);
	assert_null(config);
	assert_memory_equal(why.text, beginning, strlen(beginning));
}

static void what_is_no_yaml_names_its_line(void **state)
{
	no_yaml(BASE "slots: [4\n", "x.yaml:4: not YAML: ");
	no_yaml(BASE "\tslots: 4\n", "x.yaml:3: not YAML: ");
	no_yaml(BASE "slots: \xff\n", "x.yaml:3: not YAML: ");
	no_yaml(BASE "\x01\n", "x.yaml:3: not YAML: ");
}

/* `count` times a format with a number in it. */
static char *repeat(const char *before, const char *format, unsigned int count)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fputs(before, f);
	for (unsigned int i = 0; i < count; i++)
		fprintf(f, format, i);
	fclose(f);
	return text;
}

/* As many as `max` are taken, one more is refused, with its place and the limit. */
static void limited(const char *before, const char *format, unsigned int max, const char *place)
{
	char *most = repeat(before, format, max), *more = repeat(before, format, max + 1);
	char reason[160];

	taken(most);
	snprintf(reason, sizeof(reason), "%s[%u]: one too many; there can be at most %u", place,
		 max, max);
	assert_int_equal(parse_bytes(more, strlen(more)), -EINVAL);
	assert_non_null(strstr(why.text, reason));
	free(most);
	free(more);
}

static void lists_are_limited(void **state)
{
	limited("service: 10.0.0.1\nports:\n", "  - e%u\n", 1024, "ports");
	limited("ports: e\nservice:\n", "  - 10.0.0.1%u\n", 16, "service");
	limited(BASE "join:\n  listen:\n", "  - 10.0.0.1%u\n", 16, "join.listen");
	limited(BASE "tenants:\n", "  - {name: t%u, slots: 1}\n", 63, "tenants");
	limited(BASE "tenants:\n- name: a\n  slots: 1\n  ingress:\n", "  - eth1 vlan %u\n",
		TENANT_POINTS_MAX, "tenants[0].ingress");
}

static void a_file_is_limited(void **state)
{
	char *text = malloc(CONFIG_BYTES_MAX + 1);

	snprintf(text, CONFIG_BYTES_MAX, "%s", BASE);
	memset(text + strlen(BASE), '\n', CONFIG_BYTES_MAX + 1 - strlen(BASE));
	assert_int_equal(parse_bytes(text, CONFIG_BYTES_MAX), 0);
	config_free(config);
	assert_int_equal(parse_bytes(text, CONFIG_BYTES_MAX + 1), -EFBIG);
	assert_string_equal(why.text, "x.yaml: longer than 1048576 bytes");
	free(text);
}

static void names_have_their_lengths(void **state)
{
	char text[400], path[300];

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	for (unsigned int length = 106; length <= 108; length++) {
		snprintf(text, sizeof(text), BASE "control: {socket: %.*s}\n", length, path);
		assert_int_equal(parse_bytes(text, strlen(text)), length < 108 ? 0 : -EINVAL);
		config_free(config);
	}
	for (unsigned int length = 254; length <= 256; length++) {
		snprintf(text, sizeof(text), BASE "state: %.*s\n", length, path);
		assert_int_equal(parse_bytes(text, strlen(text)), length < 256 ? 0 : -EINVAL);
		config_free(config);
	}
}

static char *printed(const struct config *c)
{
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	config_print(c, f);
	fclose(f);
	return text;
}

static void what_is_printed_is_the_same_configuration(void **state)
{
	static const char *const texts[] = {
		BASE,
		"ports: [{name: 'no', mode: native, share: true}, 'a''#b']\nservice: fd77::1\n"
		"control: {group: g, socket: /a b''c}\njoin: {socket: none, listen: none}\n"
		"metrics: {listen: '[fd77::1]:1'}\nlog: {level: error}\n"
		"tenants: [{name: a, slots: 5, bytes_per_second: 7k, ingress: ['no vlan 5']}]\n",
		BASE "metrics: {listen: none}\ntenants: [{name: default, slots: 5, priority: 4}]\n",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct config first = *taken(texts[i]);
		char *text = printed(&first);

		assert_memory_equal(taken(text), &first, sizeof(first));
		free(text);
	}
}

static char *file_text(const char *path)
{
	char *text = calloc(1, 1 << 16);
	FILE *f = fopen(path, "re");

	if (!f || !fread(text, 1, (1 << 16) - 1, f))
		fail_msg("%s cannot be read", path);
	if (f)
		fclose(f);
	return text;
}

/* Looks for each key that an error lists; how many it found. A mapping has rows for its keys. */
static unsigned int keys_in(const char *docs, const char *place, const char *listed)
{
	char *names = strdup(strstr(listed, "there are ") + strlen("there are ")), *rest;
	unsigned int found = 0;
	char row[64];

	for (char *n = strtok_r(names, ", ", &rest); n; n = strtok_r(NULL, ", ", &rest)) {
		if (!strcmp(n, "and"))
			continue;
		snprintf(row, sizeof(row), "\n| `%s%s` |", place, n);
		if (strstr(docs, row)) {
			found++;
			continue;
		}
		snprintf(row, sizeof(row), "\n| `%s.", n);
		if (*place || !strstr(docs, row))
			fail_msg("docs/config.md: no row for %s%s", place, n);
	}
	free(names);
	return found;
}

static void the_documentation_has_a_row_for_each_key(void **state)
{
	static const struct {
		const char *place, *text;
	} mappings[] = {
		{ "", "zzzzzzzz: x\n" },
		{ "ports[].", "ports: [{zzzzzzzz: x}]\n" },
		{ "control.", BASE "control: {zzzzzzzz: x}\n" },
		{ "join.", BASE "join: {zzzzzzzz: x}\n" },
		{ "peers.", BASE "peers: {zzzzzzzz: x}\n" },
		{ "peers.nodes[].", BASE "peers: {nodes: [{zzzzzzzz: x}]}\n" },
		{ "cluster.", BASE "cluster: {zzzzzzzz: x}\n" },
		{ "metrics.", BASE "metrics: {zzzzzzzz: x}\n" },
		{ "log.", BASE "log: {zzzzzzzz: x}\n" },
		{ "sample.", BASE "sample: {zzzzzzzz: x}\n" },
		{ "spill.", BASE "spill: {zzzzzzzz: x}\n" },
		{ "pool.", BASE "pool: {zzzzzzzz: x}\n" },
		{ "tenants[].", BASE "tenants: [{zzzzzzzz: x}]\n" },
		{ "", BASE "tenants: [{name: a, slots: 1, ingress: [{zzzzzzzz: x}]}]\n" },
	};
	_cleanup_(freep) char *docs = file_text("docs/config.md");
	unsigned int rows = 0, found = 0;

	for (size_t i = 0; i < sizeof(mappings) / sizeof(*mappings); i++) {
		assert_int_equal(parse_bytes(mappings[i].text, strlen(mappings[i].text)), -EINVAL);
		found += keys_in(docs, mappings[i].place, why.text);
	}
	for (const char *row = docs; (row = strstr(row, "\n| `")) != NULL; row++)
		rows++;
	assert_int_equal(found, rows);
}

/* What would fail later, or never be noticed. */
static void half_a_cluster_is_refused(void **state)
{
	static const char url[] =
		"x.yaml:3: cluster.etcd[0]: '%s': http://HOST:PORT or https://HOST:PORT";
	static const char *const urls[] = {
		"https://10.0.0.5",   "https://10.0.0.5:", "https://:2379",
		"https://10.0.0.5:0", "https://[fd77::5]", "https://fd77::5:2379",
		"https://h:65536",    "https://h:2379x",
	};
	char text[256], reason[256];

	for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
		snprintf(text, sizeof(text), BASE "cluster: {node: n0, etcd: ['%s']}\n", urls[i]);
		snprintf(reason, sizeof(reason), url, urls[i]);
		refused(text, reason);
	}
	refused(BASE "cluster: {etcd: ['https://h:2379']}\n",
		"x.yaml:3: cluster: etcd is given, and no node: give this node a name, or leave "
		"out etcd");
	refused(BASE "cluster: {node: n0, user: u, password: /p, etcd: ['https://h:2379', "
		     "'http://h:2379']}\n",
		"x.yaml:3: cluster: etcd: http://h:2379: a password goes over https:// only, or to "
		"this machine");
	assert_int_equal(taken(BASE "cluster: {node: n0, user: u, password: /p, etcd: "
				    "['http://127.0.0.1:2379', 'https://[fd77::5]:65535']}\n")
				 ->cluster.etcds,
			 2);
}

/* The file that is shipped: valid as it is, and it changes no default but what is needed. */
static void the_example_is_valid(void **state)
{
	struct config *c = NULL;

	if (config_read("packaging/tallyd.yaml", &c, &why) < 0)
		fail_msg("%s", why.text);
	assert_memory_equal(c, taken("ports: eth1\nservice: 10.77.0.1\n"), sizeof(*c));
	config_free(c);
}

static void a_file_that_cannot_be_read_says_why(void **state)
{
	struct config *c = NULL;

	assert_int_equal(config_read("/nowhere/x.yaml", &c, &why), -ENOENT);
	assert_string_equal(why.text, "/nowhere/x.yaml: No such file or directory");
	assert_int_equal(config_read("/", &c, &why), -EISDIR);
	assert_null(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_said_has_a_default),
		cmocka_unit_test(everything_can_be_said),
		cmocka_unit_test(a_policy_is_five_constants),
		cmocka_unit_test(none_switches_off),
		cmocka_unit_test(a_key_with_nothing_behind_it_is_not_said),
		cmocka_unit_test(tenants_have_quotas_and_ingress_points),
		cmocka_unit_test(the_default_tenant_has_the_rest_unless_it_says_otherwise),
		cmocka_unit_test(all_slots_may_be_reserved_but_not_more),
		cmocka_unit_test(an_error_names_line_key_value_and_what_is_allowed),
		cmocka_unit_test(a_wrong_key_hears_the_right_one),
		cmocka_unit_test(nothing_is_said_twice),
		cmocka_unit_test(what_is_needed_must_be_there),
		cmocka_unit_test(ingress_points_are_on_the_node_s_ports),
		cmocka_unit_test(only_plain_yaml_is_taken),
		cmocka_unit_test(what_is_no_yaml_names_its_line),
		cmocka_unit_test(lists_are_limited),
		cmocka_unit_test(a_file_is_limited),
		cmocka_unit_test(names_have_their_lengths),
		cmocka_unit_test(what_is_printed_is_the_same_configuration),
		cmocka_unit_test(the_documentation_has_a_row_for_each_key),
		cmocka_unit_test(the_example_is_valid),
		cmocka_unit_test(half_a_cluster_is_refused),
		cmocka_unit_test(a_file_that_cannot_be_read_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
