// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <stddef.h>
#include <string.h>

#include "common/address.h"
#include "mac_cache.h"

static struct mac_cache_entry entry_of(uint32_t ifindex, const struct sockaddr_storage *address)
{
	struct mac_cache_entry e;
	size_t bytes;
	const void *raw = address_raw(address, &bytes);

	memset(&e, 0, sizeof(e)); /* what IPv4 does not use, too: it is compared as bytes */
	e.ifindex = ifindex;
	e.family = (uint8_t)address->ss_family;
	memcpy(e.address, raw, bytes);
	return e;
}

/* FNV-1a of who it is. */
static uint32_t place_of(const struct mac_cache_entry *e)
{
	const uint8_t *bytes = (const void *)e;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < offsetof(struct mac_cache_entry, mac); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return (hash ^ hash >> 16) % MAC_CACHE_PLACES;
}

/* Its own, a free one, or somebody else's. */
static struct mac_cache_entry *place_find(struct mac_cache *c, const struct mac_cache_entry *who)
{
	const uint32_t first = place_of(who);

	for (uint32_t i = 0; i < MAC_CACHE_NEAR; i++) {
		struct mac_cache_entry *e = &c->entry[(first + i) % MAC_CACHE_PLACES];

		if (!e->ifindex || !memcmp(e, who, offsetof(struct mac_cache_entry, mac)))
			return e;
	}
	return &c->entry[first];
}

bool mac_cache_learn(struct mac_cache *c, uint32_t ifindex, const struct sockaddr_storage *address,
		     const uint8_t mac[6])
{
	struct mac_cache_entry now = entry_of(ifindex, address);
	struct mac_cache_entry *place = place_find(c, &now);

	memcpy(now.mac, mac, sizeof(now.mac));
	if (!memcmp(place, &now, sizeof(now)))
		return false;
	*place = now;
	return true;
}
