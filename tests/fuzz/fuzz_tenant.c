// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/core/tenant.c */
/*
 * Read this file first: the smallest fuzzer.
 *
 * Ingress points: what is taken is printed, and is the same when read again.
 */
#include <stdlib.h>
#include <string.h>

#include "agent/core/tenant.h"
#include "common/owned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_right)
{
	if (!is_right)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(freep) char *text = strndup((const char *)data, size);
	struct tenant_point point, again;
	char printed[TENANT_POINT_BYTES];
	struct why why = { "" };

	must(text != NULL);
	if (tenant_point_parse(text, &point, &why) < 0) {
		must(*why.text != '\0');
		return 0;
	}
	must(tenant_port_is_valid(point.port));
	must(point.vlan >= TENANT_VLAN_ANY && point.vlan <= TENANT_VLAN_MAX);
	must(point.source_bits <= 128);
	tenant_point_print(&point, printed, sizeof(printed));
	must(tenant_point_parse(printed, &again, &why) == 0);
	must(!strcmp(point.port, again.port) && point.vlan == again.vlan);
	must(!memcmp(&point.source, &again.source, sizeof(point.source)));
	must(point.source_bits == again.source_bits);
	return 0;
}
