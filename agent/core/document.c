// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What one inner node is to do in one run: made of a tree, told, checked, and read again. */
#include <errno.h>
#include <string.h>

#include "common/address.h"
#include "common/ranks.h"
#include "tree.h"

/* --- keys ------------------------------------------------------------------------------------ */

#define RANK(member) KEY_MEMBER(struct document_rank, member)
#define DOCUMENT(member) KEY_MEMBER(struct document, member)

static const struct key rank_rows[] = {
	{ "rank", &key_number, RANK(rank), .max = TALLY_WORKERS_MAX - 1, .needed = true,
	  .meaning = "A rank whose packets come from no other node of the tree." },
	{ "address", &key_endpoint, RANK(address), .needed = true,
	  .meaning = "Where its worker receives." },
};

static const struct key document_rows[] = {
	{ "job", &key_name, DOCUMENT(job), .needed = true, .meaning = "The job's name." },
	{ "node", &key_name, DOCUMENT(node), .needed = true,
	  .meaning = "The name of the node that this document is for." },
	{ "address", &key_address, DOCUMENT(address), .needed = true,
	  .meaning = "The address of that node." },
	{ "root", &key_address, DOCUMENT(root), .needed = true,
	  .meaning = "The job's service address, which is the root's." },
	{ "id", &key_number, DOCUMENT(id), .min = 1, .max = UINT32_MAX, .needed = true,
	  .meaning = "The job's number in packets." },
	{ "birth", &key_hex, DOCUMENT(birth), .later = true,
	  .otherwise = "an older agent created the job",
	  .meaning = "Random, of the job: a later one of its name and number has another." },
	{ "epoch", &key_number, DOCUMENT(epoch), .max = UINT16_MAX, .needed = true,
	  .meaning = "Of the run." },
	{ "generation", &key_number, DOCUMENT(generation), .max = UINT32_MAX, .initial = "0",
	  .later = true,
	  .meaning = "Of the job's tree, where agents find it: the document of a later one takes "
		     "the place of the one before, in the same run." },
	{ "window", &key_power, DOCUMENT(window), .min = 1, .max = TALLY_WINDOW_MAX, .needed = true,
	  .meaning = "Of the run: the node needs twice as many slots." },
	{ "payload", &key_blocks, DOCUMENT(payload_bytes), .min = TALLY_BLOCK_BYTES,
	  .max = TALLY_PAYLOAD_MAX, .needed = true, .meaning = "Bytes of data in a full packet." },
	{ "workers", &key_number, DOCUMENT(workers), .min = 1, .max = TALLY_WORKERS_MAX,
	  .needed = true, .meaning = "How many workers the job has." },
	{ "ranks", NULL, KEY_LIST(struct document, rank, ranks), .keys = KEYS_OF(rank_rows),
	  .allowed = "a mapping of `rank` and `address`",
	  .meaning = "Who is right below the node." },
	{ "nodes", NULL, KEY_LIST(struct document, below, nodes), .keys = &tree_node_keys,
	  .allowed = "a mapping of `name`, `address` and `ranks`",
	  .meaning = "Inner nodes right below the node." },
	{ "keys", &key_rank_key, KEY_LIST(struct document, key, keys), .later = true,
	  .otherwise = "the job has no rank keys",
	  .meaning = "Secrets: the keys of all ranks that come through the node, in the order of "
		     "the ranks, and behind them the key of the job's nodes." },
};
const struct keys document_keys = KEYS(document_rows);

/* --- made of a tree -------------------------------------------------------------------------- */

static void keys_make(const struct tally_set *ranks, const struct run *run, struct document *ret)
{
	for (unsigned int rank = 0; rank < run->keys; rank++)
		if (tally_set_has(ranks, rank))
			ret->key[ret->keys++] = run->key[rank];
	if (run->keys)
		ret->key[ret->keys++] = run->node_key;
}

void document_make(const struct tree *t, unsigned int index, const char *job, const struct run *run,
		   struct document *ret)
{
	const struct tree_node *n = &t->node[index];
	struct tally_set served = { { 0 } };

	memset(ret, 0, sizeof(*ret));
	snprintf(ret->job, sizeof(ret->job), "%s", job);
	snprintf(ret->node, sizeof(ret->node), "%s", n->name);
	ret->address = n->address;
	ret->root = run->service;
	ret->id = run->job;
	ret->epoch = run->epoch;
	ret->generation = t->generation;
	ret->window = run->window;
	ret->payload_bytes = run->payload_bytes;
	ret->workers = run->workers;
	for (unsigned int i = 0; i < t->nodes; i++) {
		if (!tree_is_right_below(t, i, (int)index))
			continue;
		ret->below[ret->nodes++] = t->node[i];
		tally_set_join(&served, &t->node[i].ranks);
	}
	for (uint16_t rank = 0; rank < run->workers; rank++)
		if (tally_set_has(&n->ranks, rank) && !tally_set_has(&served, rank))
			ret->rank[ret->ranks++] = (struct document_rank){ rank, run->worker[rank] };
	keys_make(&n->ranks, run, ret);
}

/* --- does it make sense? --------------------------------------------------------------------- */

/* One child of the node: a rank, or all that come through another node. */
static int check_child(const struct document *d, const struct tally_set *ranks,
		       const struct sockaddr_storage *address, const struct tally_set *everyone,
		       struct tally_set *taken, struct why *why)
{
	char text[RANKS_BYTES];

	ranks_print(ranks, text, sizeof(text));
	if (!tally_set_is_within(ranks, everyone))
		return why_say(why, -EINVAL, "document: ranks %.150s: the job has ranks 0 to %u",
			       text, d->workers - 1);
	if (!tally_set_is_disjoint(ranks, taken))
		return why_say(why, -EINVAL, "document: ranks %.150s: a rank is named twice", text);
	if (address->ss_family != d->root.ss_family)
		return why_say(why, -EINVAL,
			       "document: ranks %.150s: the root's address is IPv%c, and theirs is "
			       "not",
			       text, d->root.ss_family == AF_INET ? '4' : '6');
	tally_set_join(taken, ranks);
	return 0;
}

/* Each node has an address of its own: what goes to one must not come back, nor reach another. */
static int check_below(const struct document *d, unsigned int index, struct why *why)
{
	const struct tree_node *n = &d->below[index];
	const char *other = NULL;

	if (endpoint_is_equal(&n->address, &d->root))
		other = "the root";
	if (endpoint_is_equal(&n->address, &d->address))
		other = d->node;
	for (unsigned int i = 0; i < index; i++)
		if (endpoint_is_equal(&n->address, &d->below[i].address))
			other = d->below[i].name;
	if (!other)
		return 0;
	return why_say(why, -EINVAL, "document: node %s has the address of %s", n->name, other);
}

static bool is_host(struct sockaddr_storage worker, const struct sockaddr_storage *node)
{
	endpoint_port_set(&worker, endpoint_port(node));
	return endpoint_is_equal(&worker, node);
}

/* A worker is at no node: what a node hands on to it would come back, or go round. */
static int check_rank(const struct document *d, unsigned int index, struct why *why)
{
	const struct document_rank *n = &d->rank[index];
	const char *other = NULL;

	if (is_host(n->address, &d->root))
		other = "the root";
	if (is_host(n->address, &d->address))
		other = d->node;
	for (unsigned int i = 0; i < d->nodes; i++)
		if (is_host(n->address, &d->below[i].address))
			other = d->below[i].name;
	if (other)
		return why_say(why, -EINVAL, "document: rank %u has the address of %s", n->rank,
			       other);
	if (endpoint_port(&n->address) == TALLY_UDP_PORT)
		return why_say(why, -EINVAL,
			       "document: rank %u is at port %u, which is that of nodes", n->rank,
			       TALLY_UDP_PORT);
	for (unsigned int i = 0; i < index; i++)
		if (endpoint_is_equal(&n->address, &d->rank[i].address))
			return why_say(why, -EINVAL,
				       "document: ranks %u and %u have the same address and port",
				       d->rank[i].rank, n->rank);
	return 0;
}

/* Zeros would be a key that everybody knows. */
static int check_keys(const struct document *d, const struct tally_set *ranks, struct why *why)
{
	static const struct tally_key unknown;
	const unsigned int count = tally_set_count(ranks) + 1;

	if (d->keys && d->keys != count)
		return why_say(why, -EINVAL,
			       "document: %u keys: those of %u ranks and that of the nodes are "
			       "%u, or there are none",
			       d->keys, count - 1, count);
	for (unsigned int i = 0; i < d->keys; i++)
		if (memcmp(&d->key[i], &unknown, sizeof(unknown)) == 0)
			return why_say(why, -EINVAL, "document: a key is missing, the one at %u",
				       i);
	return 0;
}

int document_check(const struct document *d, struct why *why)
{
	const struct tally_set everyone = tally_set_first(d->workers);
	struct tally_set taken = { { 0 } };
	int r = 0;

	if (!d->ranks && !d->nodes)
		return why_say(why, -EINVAL,
			       "document: it names neither ranks nor nodes below node %s", d->node);
	if (d->address.ss_family != d->root.ss_family || endpoint_is_equal(&d->address, &d->root))
		return why_say(why, -EINVAL,
			       "document: address and root must be of one family, and of two "
			       "nodes");
	for (unsigned int i = 0; r == 0 && i < d->ranks; i++) {
		struct tally_set one = { { 0 } };

		tally_set_add(&one, d->rank[i].rank);
		r = check_child(d, &one, &d->rank[i].address, &everyone, &taken, why);
	}
	for (unsigned int i = 0; r == 0 && i < d->nodes; i++) {
		r = check_child(d, &d->below[i].ranks, &d->below[i].address, &everyone, &taken,
				why);
		if (r == 0)
			r = check_below(d, i, why);
	}
	return r < 0 ? r : check_keys(d, &taken, why);
}

int document_check_ranks(const struct document *d, struct why *why)
{
	for (unsigned int i = 0; i < d->ranks; i++)
		if (check_rank(d, i, why) < 0)
			return -EINVAL;
	return 0;
}

int document_check_own(const struct document *d, const struct sockaddr_storage *own,
		       struct why *why)
{
	const char *child = NULL;
	char text[ADDRESS_BYTES];

	for (unsigned int i = 0; i < d->nodes; i++)
		if (is_host(d->below[i].address, own))
			child = d->below[i].name;
	for (unsigned int i = 0; i < d->ranks; i++)
		if (is_host(d->rank[i].address, own))
			child = "a rank";
	if (!child)
		return 0;
	address_print(own, text, sizeof(text));
	return why_say(why, -EINVAL, "document: %s below node %s is at %s, the node's own address",
		       child, d->node, text);
}

/* --- read ------------------------------------------------------------------------------------ */

bool document_is_equal(const struct document *a, const struct document *b)
{
	return a->generation == b->generation && document_says_same(a, b);
}

bool document_says_same(const struct document *a, const struct document *b)
{
	bool same = !strcmp(a->job, b->job) && !strcmp(a->node, b->node) &&
		    endpoint_is_equal(&a->address, &b->address) &&
		    endpoint_is_equal(&a->root, &b->root) && a->id == b->id &&
		    a->birth == b->birth && a->epoch == b->epoch && a->window == b->window &&
		    a->payload_bytes == b->payload_bytes && a->workers == b->workers &&
		    a->ranks == b->ranks && a->nodes == b->nodes && a->keys == b->keys &&
		    memcmp(a->key, b->key, a->keys * sizeof(*a->key)) == 0;

	for (unsigned int i = 0; same && i < a->ranks; i++)
		same = a->rank[i].rank == b->rank[i].rank &&
		       endpoint_is_equal(&a->rank[i].address, &b->rank[i].address);
	for (unsigned int i = 0; same && i < a->nodes; i++)
		same = !strcmp(a->below[i].name, b->below[i].name) &&
		       endpoint_is_equal(&a->below[i].address, &b->below[i].address) &&
		       tally_set_is_equal(&a->below[i].ranks, &b->below[i].ranks);
	return same;
}

void document_run(const struct document *d, struct run *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->job = d->id;
	ret->epoch = d->epoch;
	ret->window = d->window;
	ret->payload_bytes = d->payload_bytes;
	ret->workers = d->workers;
	ret->service = d->root;
	for (unsigned int i = 0; i < d->ranks; i++)
		ret->worker[d->rank[i].rank] = d->rank[i].address;
}

/* All that come through the node. */
static struct tally_set ranks_of(const struct document *d)
{
	struct tally_set ranks = { { 0 } };

	for (unsigned int i = 0; i < d->ranks; i++)
		tally_set_add(&ranks, d->rank[i].rank);
	for (unsigned int i = 0; i < d->nodes; i++)
		tally_set_join(&ranks, &d->below[i].ranks);
	return ranks;
}

void document_run_keys(const struct document *d, struct run *run)
{
	const struct tally_set ranks = ranks_of(d);
	unsigned int at = 0;

	run->keys = d->keys ? d->workers : 0;
	for (unsigned int rank = 0; rank < run->keys; rank++)
		if (tally_set_has(&ranks, rank))
			run->key[rank] = d->key[at++];
	if (run->keys)
		run->node_key = d->key[at];
}

void document_role(const struct document *d, struct installation_role *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->address = d->address;
	ret->below = ranks_of(d);
	for (; ret->vias < d->nodes; ret->vias++) {
		const struct tree_node *n = &d->below[ret->vias];

		ret->via[ret->vias] = (struct installation_via){ n->ranks, n->address };
	}
}
