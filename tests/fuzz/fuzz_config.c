// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/core/config.c agent/core/config_cluster.c agent/core/keys_yaml.c */
/* sources: agent/core/tenant.c agent/core/tenant_keys.c */
/* libraries: -lyaml */
/* Any bytes may be a configuration. What is taken keeps its promises, and is the same when printed.
 */
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/config.h"
#include "common/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

static bool is_port(const struct config *c, const char *name)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < c->ports; i++)
		found += !strcmp(c->port[i].name, name);
	return found == 1;
}

static void check_tenants(const struct config *c)
{
	uint64_t slots = 0;

	must(c->tenants >= 1 && c->tenants <= TALLY_TENANTS_MAX);
	must(!strcmp(c->tenant[0].name, CONFIG_TENANT));
	for (unsigned int i = 0; i < c->tenants; i++) {
		const struct tenant *t = &c->tenant[i];

		must(name_is_valid(t->name));
		must(t->packets_per_second <= TENANT_RATE_MAX);
		must(t->bytes_per_second <= TENANT_RATE_MAX);
		must(t->points <= TENANT_POINTS_MAX);
		for (unsigned int p = 0; p < t->points; p++)
			must(is_port(c, t->point[p].port));
		for (unsigned int other = 0; other < i; other++)
			must(strcmp(c->tenant[other].name, t->name) != 0);
		slots += t->slots;
	}
	must(c->rest ? slots == c->slots : slots <= c->slots);
}

static void check_addresses(const struct sockaddr_storage *list, unsigned int count)
{
	must(count <= CONFIG_SERVICES_MAX);
	for (unsigned int i = 0; i < count; i++)
		must(list[i].ss_family == AF_INET || list[i].ss_family == AF_INET6);
}

static void check(const struct config *c)
{
	must(c->ports >= 1 && c->ports <= TALLY_PORTS_MAX);
	for (unsigned int i = 0; i < c->ports; i++) {
		must(tenant_port_is_valid(c->port[i].name) && is_port(c, c->port[i].name));
		must(c->port[i].mode <= DATAPLANE_GENERIC);
	}
	must(c->slots >= CONFIG_SLOTS_MIN && c->slots <= DATAPLANE_SLOTS_MAX);
	must(*c->pin == '/' && *c->state == '/' && *c->control_socket == '/');
	must(c->services >= 1);
	check_addresses(c->service, c->services);
	check_addresses(c->listen, c->listens);
	must(c->log_level <= LOG_LEVEL_DEBUG);
	must(c->sample_ms >= CONFIG_SAMPLE_MS_MIN && c->sample_ms <= CONFIG_SAMPLE_MS_MAX);
	check_tenants(c);
}

static char *printed(const struct config *c, size_t *ret_size)
{
	char *text = NULL;
	FILE *to = open_memstream(&text, ret_size);

	must(to != NULL);
	config_print(c, to);
	must(fclose(to) == 0);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(config_freep) struct config *c = NULL, *again = NULL;
	_cleanup_(freep) char *text = NULL, *text_again = NULL;
	size_t length, length_again;
	struct why why = { "" };

	if (config_parse((const char *)data, size, "x.yaml", &c, &why) < 0) {
		must(c == NULL && !strncmp(why.text, "x.yaml:", 7));
		return 0;
	}
	check(c);
	text = printed(c, &length);
	must(config_parse(text, length, "x.yaml", &again, &why) == 0);
	text_again = printed(again, &length_again);
	must(length == length_again && !memcmp(text, text_again, length));
	return 0;
}
