// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Tenants in and out of the maps of a running node: their limits, and where they may come in. */
#include <bpf/bpf.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "agent/core/limits.h"
#include "common/address.h"
#include "dataplane.h"
#include "maps.h"

/* --- sources --------------------------------------------------------------------------------- */

/* For free(). */
struct sources {
	unsigned int count;
	struct tally_source_key key[TALLY_SOURCES_MAX];
};

static bool sources_have(const struct sources *s, const struct tally_source_key *key)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!memcmp(&s->key[i], key, sizeof(*key)))
			return true;
	return false;
}

static int sources_add(struct sources *s, struct tally_source_key key, struct why *why)
{
	if (s->count == TALLY_SOURCES_MAX)
		return why_say(why, -ENOSPC, "more than %u sources", TALLY_SOURCES_MAX);
	s->key[s->count++] = key;
	return 0;
}

/* "Any address" is one of either family. */
static int sources_add_any(struct sources *s, struct tally_source_key key, struct why *why)
{
	int r;

	key.bits = TALLY_SOURCE_BITS;
	r = sources_add(s, key, why);
	key.ipv6 = 1;
	return r < 0 ? r : sources_add(s, key, why);
}

static int source_put(struct sources *s, uint32_t tenant, const struct dataplane_source *source,
		      struct why *why)
{
	const sa_family_t family = source->address.ss_family;
	const unsigned int bits = source->bits;
	struct tally_source_key key;
	size_t bytes;
	const uint8_t *from = address_raw(&source->address, &bytes);

	memset(&key, 0, sizeof(key));
	key.tenant = tally_be32_raw(htonl(tenant));
	key.ifindex = tally_be32_raw(htonl(source->ifindex));
	key.vlan = tally_be16(source->vlan < 0 ? TALLY_VLAN_ANY : source->vlan);
	if (!family)
		return sources_add_any(s, key, why);
	if ((family != AF_INET && family != AF_INET6) || bits > 8 * bytes)
		return why_say(why, -EINVAL,
			       "tenant %u: a source has family %u and a prefix of %u bits", tenant,
			       family, bits);
	key.ipv6 = family == AF_INET6;
	key.bits = TALLY_SOURCE_BITS + bits;
	/* Only the prefix: the kernel compares no more, and we compare whole keys. */
	for (size_t i = 0; i < bytes && i * 8 < bits; i++)
		key.address[i] = i * 8 + 8 <= bits ? from[i] : from[i] & 0xff00 >> bits % 8;
	return sources_add(s, key, why);
}

/* What the tenant has now. */
static void sources_read(struct dataplane *d, uint32_t tenant, struct sources *ret)
{
	const __be32 mine = tally_be32_raw(htonl(tenant));
	struct tally_source_key key, *at = NULL;

	ret->count = 0;
	while (ret->count < TALLY_SOURCES_MAX &&
	       !bpf_map_get_next_key(d->fd[PIN_SOURCES], at, &key)) {
		if (key.tenant == mine)
			ret->key[ret->count++] = key;
		at = &key;
	}
}

/* Takes away what is in `s` and not in `kept`. */
static void sources_remove(struct dataplane *d, const struct sources *s, const struct sources *kept)
{
	for (unsigned int i = 0; i < s->count; i++)
		if (!sources_have(kept, &s->key[i]))
			bpf_map_delete_elem(d->fd[PIN_SOURCES], &s->key[i]);
}

/* New ones first, so that who is in both lists is never shut out. */
static int sources_change(struct dataplane *d, const struct sources *before,
			  const struct sources *wanted, struct why *why)
{
	const uint8_t yes = 1;

	for (unsigned int i = 0; i < wanted->count; i++) {
		int r = bpf_map_update_elem(d->fd[PIN_SOURCES], &wanted->key[i], &yes, BPF_ANY);

		if (r < 0) {
			sources_remove(d, wanted, before);
			return why_say(why, r, "its sources do not fit (at most %u): %s",
				       TALLY_SOURCES_MAX, strerror(-r));
		}
	}
	sources_remove(d, before, wanted);
	return 0;
}

/* --- limits ---------------------------------------------------------------------------------- */

/* A full bucket, or the old one where nothing changes. */
static int limits_write(struct dataplane *d, uint32_t index, const struct dataplane_limits *l,
			struct why *why)
{
	struct tally_tenant t;
	int r;

	r = bpf_map_lookup_elem_flags(d->fd[PIN_TENANTS], &index, &t, BPF_F_LOCK);
	if (r < 0)
		return map_error(why, r, "tenants");
	limits_put(l, &t);
	r = bpf_map_update_elem(d->fd[PIN_TENANTS], &index, &t, BPF_F_LOCK);
	return r < 0 ? map_error(why, r, "tenants") : 0;
}

static int limits_check(uint32_t index, const struct dataplane_limits *l, struct why *why)
{
	if (!index || index >= TALLY_TENANTS_MAX)
		return why_say(why, -EINVAL, "no tenant number %u (1 to %u)", index,
			       TALLY_TENANTS_MAX - 1);
	if (l->packets_per_second > TALLY_RATE_MAX || l->bytes_per_second > TALLY_RATE_MAX)
		return why_say(why, -EINVAL, "tenant %u: a rate is at most %llu a second", index,
			       TALLY_RATE_MAX);
	return 0;
}

int dataplane_tenant_put(struct dataplane *d, uint32_t index, const struct dataplane_limits *limits,
			 const struct dataplane_source *sources, unsigned int count,
			 struct why *why)
{
	_cleanup_(freep) struct sources *before = calloc(1, sizeof(*before));
	_cleanup_(freep) struct sources *wanted = calloc(1, sizeof(*wanted));
	int r;

	if (!before || !wanted)
		return -ENOMEM;
	r = limits_check(index, limits, why);
	for (unsigned int i = 0; r == 0 && i < count; i++)
		r = source_put(wanted, index, &sources[i], why);
	if (r < 0)
		return r;
	r = dataplane_settle(d, why); /* the number may have been another tenant's */
	if (r < 0)
		return r;
	sources_read(d, index, before);
	r = sources_change(d, before, wanted, why);
	return r < 0 ? r : limits_write(d, index, limits, why);
}

int dataplane_tenant_del(struct dataplane *d, uint32_t index, struct why *why)
{
	const struct dataplane_limits none = { 0 };

	return dataplane_tenant_put(d, index, &none, NULL, 0, why);
}
