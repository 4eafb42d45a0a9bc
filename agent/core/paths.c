// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "paths.h"

#include <string.h>

#include "common/address.h"

/* --- keys ------------------------------------------------------------------------------------ */

static const struct key hop_rows[] = {
	{ "address", &key_address, KEY_MEMBER(struct paths_hop, address), .needed = true,
	  .meaning = "Where the node sends what is for these workers." },
	{ "ranks", &key_ranks, KEY_MEMBER(struct paths_hop, ranks), .needed = true,
	  .meaning = "Their places in `workers`, from 0 on." },
};

static const struct key view_rows[] = {
	{ "own", &key_address, KEY_LIST(struct paths_view, own, owns),
	  .meaning = "The node's own addresses." },
	{ "hops", NULL, KEY_LIST(struct paths_view, hop, hops), .keys = KEYS_OF(hop_rows),
	  .allowed = "a mapping of `address` and `ranks`",
	  .meaning = "Next hops to workers; not to those to whom there is no way." },
};
const struct keys paths_view_keys = KEYS(view_rows);

static const struct key question_rows[] = {
	{ "workers", &key_address, KEY_LIST(struct paths_question, worker, workers), .needed = true,
	  .empty = "at least one worker is needed", .meaning = "Where the workers are." },
};
const struct keys paths_question_keys = KEYS(question_rows);

/* --- paths ----------------------------------------------------------------------------------- */

/* Whatever their ports. */
static bool is_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage left = *a, right = *b;

	endpoint_port_set(&left, 0);
	endpoint_port_set(&right, 0);
	return endpoint_is_equal(&left, &right);
}

void paths_hop_add(struct paths_view *v, unsigned int rank, const struct sockaddr_storage *next)
{
	unsigned int i = 0;

	while (i < v->hops && !is_host(&v->hop[i].address, next))
		i++;
	if (i == v->hops)
		v->hop[v->hops++] = (struct paths_hop){ .address = *next };
	tally_set_add(&v->hop[i].ranks, rank);
}

struct walk {
	const struct config_peer *peer;
	struct paths_view *const *view;
	unsigned int peers;
	int above[CONFIG_PEERS_MAX]; /* that paths come from: a peer, TREE_ROOT, or NOWHERE */
	struct tally_set ranks[CONFIG_PEERS_MAX];
};

enum {
	NOWHERE = -2,
};

static bool has_own(const struct paths_view *v, const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < v->owns; i++)
		if (is_host(&v->own[i], address))
			return true;
	return false;
}

/* Whose address it is; NOWHERE: nobody's, or that of several. */
static int owner(const struct walk *w, const struct sockaddr_storage *address)
{
	int found = NOWHERE;

	for (unsigned int i = 0; i < w->peers; i++) {
		if (!w->view[i] || !has_own(w->view[i], address))
			continue;
		if (found != NOWHERE)
			return NOWHERE;
		found = (int)i;
	}
	return found;
}

/* The node that comes next on the way to a rank; NOWHERE: none. */
static int next_of(const struct walk *w, const struct paths_view *v, unsigned int rank)
{
	for (unsigned int i = 0; i < v->hops; i++)
		if (tally_set_has(&v->hop[i].ranks, rank))
			return owner(w, &v->hop[i].address);
	return NOWHERE;
}

/* Nodes keep the first way that a path came to them, so all are a tree: no path goes round. */
static void walk_to(struct walk *w, const struct paths_view *root, unsigned int rank)
{
	const struct paths_view *v = root;
	int from = TREE_ROOT, next;

	while ((next = next_of(w, v, rank)) != NOWHERE) {
		if (w->above[next] == NOWHERE)
			w->above[next] = from;
		if (w->above[next] != from)
			return;
		tally_set_add(&w->ranks[next], rank);
		from = next;
		v = w->view[next];
	}
}

/* Has it two things at least to add up: ranks, or inner nodes with what comes from them? */
static bool is_useful(const struct walk *w, unsigned int node)
{
	if (tally_set_count(&w->ranks[node]) < 2)
		return false;
	for (unsigned int i = 0; i < w->peers; i++)
		if (w->above[i] == (int)node && tally_set_is_equal(&w->ranks[i], &w->ranks[node]))
			return false;
	return true;
}

void paths_tree(const struct paths_view *root, const struct config_peer *peer,
		struct paths_view *const *view, unsigned int peers, unsigned int workers,
		struct tree *ret)
{
	struct walk w = { .peer = peer, .view = view, .peers = peers };

	for (unsigned int i = 0; i < peers; i++)
		w.above[i] = NOWHERE;
	for (unsigned int rank = 0; rank < workers; rank++)
		walk_to(&w, root, rank);
	memset(ret, 0, sizeof(*ret));
	ret->found = true;
	for (unsigned int i = 0; i < peers; i++) {
		struct tree_node *n = &ret->node[ret->nodes];

		if (!is_useful(&w, i))
			continue;
		memcpy(n->name, peer[i].name, sizeof(n->name));
		n->address = peer[i].address;
		n->ranks = w.ranks[i];
		ret->nodes++;
	}
}
