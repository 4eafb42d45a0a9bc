// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "common/address.h"
#include "config.h"

/* In quotes, so that no name means anything to YAML. */
static void text_print(FILE *to, const char *before, const char *text, const char *after)
{
	fprintf(to, "%s'", before);
	for (; *text; text++)
		fprintf(to, "%s%c", *text == '\'' ? "'" : "", *text);
	fprintf(to, "'%s", after);
}

static void addresses_print(FILE *to, const char *before, const struct sockaddr_storage *list,
			    unsigned int count)
{
	char text[ADDRESS_BYTES];

	fprintf(to, "%s[", before);
	for (unsigned int i = 0; i < count; i++) {
		address_print(&list[i], text, sizeof(text));
		text_print(to, i ? ", " : "", text, "");
	}
	fputs("]\n", to);
}

static void metrics_print(FILE *to, const struct sockaddr_storage *endpoint)
{
	char text[ADDRESS_BYTES];

	fputs("metrics:\n", to);
	endpoint_print(endpoint, text, sizeof(text));
	if (endpoint->ss_family)
		fprintf(to, "  listen: '%s'\n", text);
	else
		fputs("  listen: none\n", to);
}

static void ports_print(FILE *to, const struct config *c)
{
	fputs("ports:\n", to);
	for (unsigned int i = 0; i < c->ports; i++) {
		text_print(to, "  - {name: ", c->port[i].name, "");
		fprintf(to, ", mode: %s, share: %s}\n", config_modes[c->port[i].mode],
			c->port[i].share ? "true" : "false");
	}
}

static void tenant_print(FILE *to, const struct tenant *t, bool rest)
{
	char text[TENANT_POINT_BYTES];

	fprintf(to, "  - name: %s\n", t->name);
	fprintf(to, rest ? "    # slots: %u, what nobody reserves\n" : "    slots: %u\n", t->slots);
	fprintf(to, "    packets_per_second: %ju\n", (uintmax_t)t->packets_per_second);
	fprintf(to, "    bytes_per_second: %ju\n", (uintmax_t)t->bytes_per_second);
	fprintf(to, "    priority: %u\n", t->priority);
	if (t->points)
		fputs("    ingress:\n", to);
	for (unsigned int i = 0; i < t->points; i++) {
		tenant_point_print(&t->point[i], text, sizeof(text));
		text_print(to, "      - ", text, "\n");
	}
}

void config_print(const struct config *c, FILE *to)
{
	ports_print(to, c);
	fprintf(to, "slots: %u\n", c->slots);
	text_print(to, "pin: ", c->pin, "\n");
	text_print(to, "state: ", c->state, "\n");
	addresses_print(to, "service: ", c->service, c->services);
	text_print(to, "control:\n  socket: ", c->control_socket, "\n");
	if (*c->control_group)
		text_print(to, "  group: ", c->control_group, "\n");
	text_print(to, "join:\n  socket: ", *c->join_socket ? c->join_socket : "none", "\n");
	addresses_print(to, "  listen: ", c->listen, c->listens);
	metrics_print(to, &c->metrics);
	fprintf(to, "log:\n  level: %s\nsample:\n  interval_ms: %u\n", config_levels[c->log_level],
		c->sample_ms);
	if (!c->default_named)
		fprintf(to, "# tenant default: %u slots, what nobody reserves\n", c->tenant->slots);
	if (c->default_named || c->tenants > 1)
		fputs("tenants:\n", to);
	for (unsigned int i = c->default_named ? 0 : 1; i < c->tenants; i++)
		tenant_print(to, &c->tenant[i], c->rest && i == 0);
}
