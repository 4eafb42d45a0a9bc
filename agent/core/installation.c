// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/ranks.h"
#include "installation.h"
#include "port_check.h"

/* Are these some of `all`? If not, says so of `what`. */
static int check_ranks(const struct tally_set *ranks, const struct tally_set *all, const char *what,
		       const char *of, struct why *why)
{
	char text[RANKS_BYTES], text_all[RANKS_BYTES];

	if (tally_set_is_within(ranks, all))
		return 0;
	ranks_print(ranks, text, sizeof(text));
	ranks_print(all, text_all, sizeof(text_all));
	return why_say(why, -EINVAL, "%s %.200s: %s %.200s", what, text, of, text_all);
}

static int check_vias(const struct installation_role *role, const struct tally_set *below,
		      sa_family_t family, struct why *why)
{
	struct tally_set taken = { { 0 } };
	int r;

	for (unsigned int i = 0; i < role->vias; i++) {
		const struct installation_via *v = &role->via[i];
		char text[RANKS_BYTES];

		ranks_print(&v->ranks, text, sizeof(text));
		r = check_ranks(&v->ranks, below, "--via", "this node's ranks are", why);
		if (r < 0)
			return r;
		if (tally_set_is_empty(&v->ranks) || !tally_set_is_disjoint(&v->ranks, &taken))
			return why_say(why, -EINVAL, "--via %.200s: a rank is behind one node only",
				       text);
		if (v->address.ss_family != family)
			return why_say(why, -EINVAL,
				       "--via %.200s: the job uses IPv%c, the address is IPv%c",
				       text, family == AF_INET ? '4' : '6',
				       family == AF_INET ? '6' : '4');
		tally_set_join(&taken, &v->ranks);
	}
	return 0;
}

/* Sums that go up or down are of several ranks, and so made with the node key. */
static int check_keys(const struct run *file, const struct installation_role *role, struct why *why)
{
	static const struct tally_key unknown;

	if (file->secrets && memcmp(file->secret, &unknown, sizeof(unknown)) != 0)
		return why_say(
			why, -EINVAL,
			"the job file has the secret by which workers find out what a node "
			"adds wrong: no node may know it, so write 'secret -' in this one's");
	if (file->keys && (!role->root || role->vias) &&
	    memcmp(&file->node_key, &unknown, sizeof(unknown)) == 0)
		return why_say(why, -EINVAL,
			       "the job has rank keys, and no file has the key that the nodes of "
			       "a tree share, so the job has one node only: leave --below and "
			       "--via out, or the lines 'key' of the job file");
	for (unsigned int i = 0; i < file->keys; i++)
		if ((role->root || tally_set_has(&role->below, i)) &&
		    memcmp(&file->key[i], &unknown, sizeof(unknown)) == 0)
			return why_say(why, -EINVAL,
				       "the key of rank %u is not known here; a node needs the "
				       "keys of all ranks that come through it",
				       i);
	return 0;
}

/* The child node that `rank` is behind, or NULL. */
static const struct installation_via *via_of(const struct installation_role *role,
					     unsigned int rank)
{
	for (unsigned int i = 0; i < role->vias; i++)
		if (tally_set_has(&role->via[i].ranks, rank))
			return &role->via[i];
	return NULL;
}

/* The next rank below this node that has no copy yet; `served` has it then, and all with it. */
static int rank_next(const struct installation_role *role, unsigned int workers,
		     struct tally_set *served, struct tally_set *ret)
{
	for (unsigned int rank = 0; rank < workers; rank++) {
		const struct installation_via *via;

		if ((!role->root && !tally_set_has(&role->below, rank)) ||
		    tally_set_has(served, rank))
			continue;
		via = via_of(role, rank);
		*ret = via ? via->ranks : (struct tally_set){ { 0 } };
		tally_set_add(ret, rank);
		tally_set_join(served, ret);
		return (int)rank;
	}
	return -ENOENT;
}

struct tally_set installation_ranks(const struct installation_role *role, unsigned int workers,
				    unsigned int index)
{
	struct tally_set served = { { 0 } }, ranks = { { 0 } };

	for (unsigned int i = 0; i <= index; i++)
		if (rank_next(role, workers, &served, &ranks) < 0)
			return (struct tally_set){ { 0 } };
	return ranks;
}

int installation_plan(const struct run *file, const struct installation_role *role,
		      struct installation *ret, struct why *why)
{
	const struct tally_set everyone = tally_set_first(file->workers);
	struct tally_set below = role->root ? everyone : role->below;
	struct tally_set served = { { 0 } }, ranks;
	static const struct tally_key unknown;
	const void *raw;
	size_t bytes;
	int r;

	if (tally_set_is_empty(&below))
		return why_say(why, -EINVAL, "--below: an inner node has at least one rank below");
	r = check_ranks(&below, &everyone, "--below", "the job's ranks are", why);
	if (r < 0)
		return r;
	r = check_vias(role, &below, file->service.ss_family, why);
	if (r == 0)
		r = check_keys(file, role, why);
	if (r < 0)
		return r;

	memset(ret, 0, sizeof(*ret));
	ret->id = file->job;
	ret->job = (struct tally_job){
		.everyone = everyone,
		.below = below,
		.slot_mask = 2 * file->window - 1,
		.epoch = file->epoch,
		.blocks_max = file->payload_bytes / TALLY_BLOCK_BYTES,
		.root = role->root,
		.ipv6 = file->service.ss_family == AF_INET6,
		.keyed = file->keys > 0,
	};
	ret->address = role->address;
	memcpy(ret->key, file->key, sizeof(file->key));
	ret->key[TALLY_NODE_KEY] = file->node_key;
	ret->node_key = file->keys && memcmp(&file->node_key, &unknown, sizeof(unknown)) != 0;
	raw = address_raw(&file->service, &bytes);
	memcpy(ret->job.service, raw, bytes);
	while ((r = rank_next(role, file->workers, &served, &ranks)) >= 0) {
		const struct installation_via *via = via_of(role, (unsigned int)r);

		ret->copy[ret->copies++] = (struct installation_copy){
			.below = ranks,
			.key = via ? TALLY_NODE_KEY : r,
			.address = via ? via->address : file->worker[r]
		};
	}
	ret->job.copies = ret->copies;
	return 0;
}

void installation_borrow(struct installation *g)
{
	g->job.borrows = 1;
	g->job.node_key = g->node_key;
	g->job.range = (g->job.slot_mask + 1) / 2;
	g->job.slot_base = INSTALLATION_BASE_ANY;
}

static struct tally_child child_of(const struct installation_copy *c)
{
	struct tally_child child;
	size_t bytes;
	const void *raw = address_raw(&c->address, &bytes);

	memset(&child, 0, sizeof(child));
	child.below = c->below;
	memcpy(child.mac, c->hop.mac, sizeof(child.mac));
	memcpy(child.port_mac, c->hop.port_mac, sizeof(child.port_mac));
	child.ipv6 = c->address.ss_family == AF_INET6;
	memcpy(child.ip6, raw, bytes); /* or ip4, which begins there too */
	child.udp_port = tally_be16(endpoint_port(&c->address));
	return child;
}

uint32_t installation_port(const struct tally_job *job, const struct hop *hop)
{
	return memcmp(hop->source, job->service, sizeof(hop->source)) == 0 ? hop->port : 0;
}

int installation_address(struct installation *g, struct why *why)
{
	for (unsigned int i = 0; i < g->copies; i++) {
		struct installation_copy *c = &g->copy[i];
		uint32_t payload = g->job.blocks_max * TALLY_BLOCK_BYTES;
		uint32_t bytes = port_mtu_needed(payload, c->address.ss_family == AF_INET6,
						 tally_set_count(&g->job.everyone));

		if (bytes > c->hop.mtu)
			return why_say(why, -EMSGSIZE,
				       "payload %u: makes packets of %u bytes, and %s has an MTU "
				       "of %u: ip link set %s mtu %u, or a job with a smaller "
				       "payload",
				       payload, bytes, c->hop.port_name, c->hop.mtu,
				       c->hop.port_name, bytes);
		c->child = child_of(c);
	}
	return 0;
}
