// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "tree.h"

#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/ranks.h"

#define NODE(member) KEY_MEMBER(struct tree_node, member)

static const struct key node_rows[] = {
	{ "name", &key_name, NODE(name), .needed = true, .meaning = "The node's name." },
	{ "address", &key_address, NODE(address), .needed = true,
	  .meaning = "An address of the node, one of those at `service:` in its configuration." },
	{ "ranks", &key_ranks, NODE(ranks), .needed = true,
	  .meaning = "All ranks that come through the node." },
};
const struct keys tree_node_keys = KEYS(node_rows);

static char family_digit(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? '4' : '6';
}

static int refuse_ranks(const struct tree_node *n, const struct tally_set *everyone,
			struct why *why)
{
	char ranks[RANKS_BYTES], all[RANKS_BYTES];

	ranks_print(&n->ranks, ranks, sizeof(ranks));
	ranks_print(everyone, all, sizeof(all));
	return why_say(why, -EINVAL, "tree: node %s: ranks %.150s: the job's ranks are %s", n->name,
		       ranks, all);
}

static int check_node(const struct tree_node *n, const struct tally_set *everyone,
		      const struct sockaddr_storage *service, struct why *why)
{
	char text[ADDRESS_BYTES];

	if (!tally_set_is_within(&n->ranks, everyone))
		return refuse_ranks(n, everyone, why);
	address_print(&n->address, text, sizeof(text));
	if (n->address.ss_family != service->ss_family)
		return why_say(why, -EINVAL,
			       "tree: node %s: %s: the job's service address is IPv%c, so name an "
			       "IPv%c address of the node, or another --service",
			       n->name, text, family_digit(service), family_digit(service));
	if (endpoint_is_equal(&n->address, service))
		return why_say(why, -EINVAL,
			       "tree: node %s: %s is the root's own address; the tree names the "
			       "nodes below the root only",
			       n->name, text);
	return 0;
}

static bool are_apart_or_nested(const struct tally_set *a, const struct tally_set *b)
{
	return tally_set_is_disjoint(a, b) || tally_set_is_within(a, b) ||
	       tally_set_is_within(b, a);
}

/* There are 2,016 pairs in the largest tree: words are for those that are refused. */
static int check_two(const struct tree_node *a, const struct tree_node *b, struct why *why)
{
	char ranks[RANKS_BYTES];

	if (!strcmp(a->name, b->name))
		return why_say(why, -EINVAL, "tree: node %s is named twice", a->name);
	if (endpoint_is_equal(&a->address, &b->address))
		return why_say(why, -EINVAL, "tree: nodes %s and %s have the same address", a->name,
			       b->name);
	if (are_apart_or_nested(&a->ranks, &b->ranks) && !tally_set_is_equal(&a->ranks, &b->ranks))
		return 0;
	ranks_print(&b->ranks, ranks, sizeof(ranks));
	if (tally_set_is_equal(&a->ranks, &b->ranks))
		return why_say(why, -EINVAL,
			       "tree: nodes %s and %s both have ranks %.150s: leave one out",
			       a->name, b->name, ranks);
	return why_say(why, -EINVAL,
		       "tree: nodes %s and %s share some ranks of %.150s: either all ranks of one "
		       "come through the other, or none",
		       a->name, b->name, ranks);
}

/* Are the ranks of node `i` some of those of `of`, and not all? */
static bool is_below(const struct tree *t, unsigned int i, int of)
{
	return of == TREE_ROOT || (i != (unsigned int)of &&
				   tally_set_is_within(&t->node[i].ranks, &t->node[of].ranks));
}

/* Inner nodes between it and the root, and itself. */
static unsigned int levels_of(const struct tree *t, unsigned int index)
{
	unsigned int levels = 1;

	for (unsigned int i = 0; i < t->nodes; i++)
		levels += is_below(t, index, (int)i);
	return levels;
}

static int check_level(const struct tree *t, unsigned int index, struct why *why)
{
	const unsigned int levels = levels_of(t, index);

	if (levels <= TALLY_LEVELS_MAX)
		return 0;
	return why_say(why, -EINVAL,
		       "tree: node %s is at level %u below the root, and results come down %d "
		       "levels: leave a node above it out",
		       t->node[index].name, levels, TALLY_LEVELS_MAX);
}

int tree_check(const struct tree *t, unsigned int workers, const struct sockaddr_storage *service,
	       struct why *why)
{
	const struct tally_set everyone = tally_set_first(workers);
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < t->nodes; i++) {
		r = check_node(&t->node[i], &everyone, service, why);
		for (unsigned int k = 0; r == 0 && k < i; k++)
			r = check_two(&t->node[k], &t->node[i], why);
	}
	for (unsigned int i = 0; r == 0 && i < t->nodes; i++)
		r = check_level(t, i, why);
	return r;
}

int tree_addresses_check(const struct tree *t, struct why *why)
{
	char text[ADDRESS_BYTES];

	for (unsigned int i = 0; i < t->nodes; i++) {
		if (!address_is_loopback(&t->node[i].address))
			continue;
		address_print(&t->node[i].address, text, sizeof(text));
		return why_say(why, -EINVAL,
			       "tree: node %s: every machine has %s: name the address by which "
			       "others reach this one",
			       t->node[i].name, text);
	}
	return 0;
}

static bool has_node(const struct tree *t, const struct tree_node *n)
{
	for (unsigned int i = 0; i < t->nodes; i++)
		if (endpoint_is_equal(&t->node[i].address, &n->address))
			return tally_set_is_equal(&t->node[i].ranks, &n->ranks) &&
			       !strcmp(t->node[i].name, n->name);
	return false;
}

bool tree_is_equal(const struct tree *a, const struct tree *b)
{
	bool same = a->nodes == b->nodes;

	for (unsigned int i = 0; same && i < a->nodes; i++)
		same = has_node(b, &a->node[i]);
	return same;
}

void tree_follow(struct tree *t, const struct tree *now)
{
	t->generation++;
	t->nodes = now->nodes;
	memcpy(t->node, now->node, now->nodes * sizeof(*now->node));
}

bool tree_is_right_below(const struct tree *t, unsigned int i, int of)
{
	bool right = is_below(t, i, of);

	for (unsigned int k = 0; right && k < t->nodes; k++)
		right = !(is_below(t, i, (int)k) && is_below(t, k, of));
	return right;
}

void tree_role(const struct tree *t, int index, struct installation_role *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->root = index == TREE_ROOT;
	if (!ret->root) {
		ret->address = t->node[index].address;
		ret->below = t->node[index].ranks;
	}
	for (unsigned int i = 0; i < t->nodes; i++)
		if (tree_is_right_below(t, i, index))
			ret->via[ret->vias++] = (struct installation_via){ t->node[i].ranks,
									   t->node[i].address };
}

int tree_at(const struct tree *t, const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < t->nodes; i++)
		if (endpoint_is_equal(&t->node[i].address, address))
			return (int)i;
	return -ENOENT;
}

bool tree_has_same(const struct tree *a, unsigned int node_a, const struct tree *b,
		   unsigned int node_b)
{
	bool same = tally_set_is_equal(&a->node[node_a].ranks, &b->node[node_b].ranks);

	for (unsigned int i = 0; same && i < a->nodes; i++)
		same = !tree_is_right_below(a, i, (int)node_a) || has_node(b, &a->node[i]);
	for (unsigned int i = 0; same && i < b->nodes; i++)
		same = !tree_is_right_below(b, i, (int)node_b) || has_node(a, &b->node[i]);
	return same;
}

int tree_find(const struct tree *t, const char *name, struct why *why)
{
	size_t used;

	for (unsigned int i = 0; i < t->nodes; i++)
		if (!strcmp(t->node[i].name, name))
			return (int)i;
	used = snprintf(why->text, sizeof(why->text), "the job has no inner node %s; it has", name);
	for (unsigned int i = 0; i < t->nodes && used < sizeof(why->text); i++)
		used += snprintf(why->text + used, sizeof(why->text) - used, " %s",
				 t->node[i].name);
	return -ENOENT;
}
