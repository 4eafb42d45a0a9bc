// SPDX-License-Identifier: GPL-2.0-only
/* sources: agent/store/etcd_text.c agent/core/keys_json.c */
/* libraries: -ljansson */
/* Whoever answers in etcd's place may say anything: keys that are taken are texts, and have the
 * prefix no more. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/store/etcd_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t bytes;

static int take(void *context, const struct store_item *item)
{
	bytes += strlen(item->key) + (item->value ? strlen(item->value) : 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct etcd_written written;
	struct etcd_told told;
	char *token = NULL;
	struct why why = { "" };
	uint64_t lease;

	bytes = 0;
	etcd_fault(text, size, &why);
	etcd_read_written(text, size, &written);
	etcd_read_lease(text, size, &lease);
	etcd_read_range(text, size, "/t/", take, NULL, &told);
	etcd_read_watch(text, size, "/t/", take, NULL, &told);
	if (etcd_read_token(text, size, &token) == 0)
		free(token);
	if (bytes > size)
		abort();
	return 0;
}
