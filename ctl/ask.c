// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "connection.h"
#include "ctl.h"

int ctl_ask(const struct ctl *ctl, json_t *request, json_t **ret, struct why *why)
{
	_cleanup_(connection_closep) struct connection *connection = NULL;
	_cleanup_(json_decrefp) json_t *owned = request;
	int r = connection_open(ctl->socket, CTL_TIMEOUT_MS, &connection, why);

	return r < 0 ? r : connection_ask(connection, owned, ret, why);
}

void ctl_dump(const json_t *result)
{
	json_dumpf(result, stdout, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
	putchar('\n');
}
