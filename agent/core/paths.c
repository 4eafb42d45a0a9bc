// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "paths.h"

#include <stdio.h>
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

static bool has_own(const struct paths_view *v, const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < v->owns; i++)
		if (is_host(&v->own[i], address))
			return true;
	return false;
}

enum {
	PATHS_OF_A_WORKER = -3, /* whose an address is, besides a peer, TREE_ROOT and nobody */
};

/* Whose address it is, whatever peers say; PATHS_NOWHERE: nobody knows. */
static int owner_known(const struct paths *p, const struct sockaddr_storage *address)
{
	struct sockaddr_storage at = *address;

	if (has_own(p->root, address))
		return TREE_ROOT;
	for (unsigned int i = 0; i < p->workers; i++)
		if (is_host(&p->worker[i], address))
			return PATHS_OF_A_WORKER;
	endpoint_port_set(&at, TALLY_UDP_PORT);
	for (unsigned int i = 0; i < p->peers; i++)
		if (config_peer_has(&p->peer[i], &at))
			return (int)i;
	return PATHS_NOWHERE;
}

static bool claims(const struct paths *p, unsigned int peer, const struct sockaddr_storage *address)
{
	return p->view[peer] && has_own(p->view[peer], address);
}

/* May it be the peer's, as far as the configuration says? */
static bool may_own(const struct paths *p, unsigned int peer, int known)
{
	return known == (int)peer || (known == PATHS_NOWHERE && !p->peer[peer].alsos);
}

static void dispute_note(struct paths_walk *w, const struct sockaddr_storage *address)
{
	for (unsigned int i = 0; i < w->disputes; i++)
		if (is_host(&w->dispute[i], address))
			return;
	if (w->disputes < PATHS_DISPUTES_MAX)
		w->dispute[w->disputes++] = *address;
}

/* Whose address it is; PATHS_NOWHERE: nobody's, or that of several. */
static int owner(const struct paths *p, struct paths_walk *w,
		 const struct sockaddr_storage *address)
{
	const int known = owner_known(p, address);
	int found = PATHS_NOWHERE;
	unsigned int claimed = 0, right = 0;

	for (unsigned int i = 0; i < p->peers; i++) {
		if (!claims(p, i, address))
			continue;
		claimed++;
		if (!may_own(p, i, known))
			continue;
		right++;
		found = (int)i;
	}
	if (claimed > 1 || claimed > right)
		dispute_note(w, address);
	if (known == PATHS_NOWHERE && claimed > 1)
		return PATHS_NOWHERE; /* a list that lacks a link does not make somebody else right
				       */
	return right == 1 ? found : PATHS_NOWHERE;
}

/* The node that comes next on the way to a rank; PATHS_NOWHERE: none. */
static int next_of(const struct paths *p, struct paths_walk *w, const struct paths_view *v,
		   unsigned int rank)
{
	for (unsigned int i = 0; i < v->hops; i++)
		if (tally_set_has(&v->hop[i].ranks, rank))
			return owner(p, w, &v->hop[i].address);
	return PATHS_NOWHERE;
}

/*
 * Nodes keep the first way that a path came to them, so all are a tree: no path goes round. What is
 * further away than results come down passes by.
 */
static void walk_to(const struct paths *p, struct paths_walk *w, unsigned int rank)
{
	const struct paths_view *v = p->root;
	int from = TREE_ROOT, next;

	for (int level = 1; level <= TALLY_LEVELS_MAX; level++) {
		next = next_of(p, w, v, rank);
		if (next == PATHS_NOWHERE)
			return;
		if (w->above[next] == PATHS_NOWHERE)
			w->above[next] = from;
		if (w->above[next] != from)
			return;
		tally_set_add(&w->ranks[next], rank);
		from = next;
		v = p->view[next];
	}
}

/* Has it two things at least to add up: ranks, or inner nodes with what comes from them? */
static bool is_useful(const struct paths_walk *w, unsigned int peers, unsigned int node)
{
	if (tally_set_count(&w->ranks[node]) < 2)
		return false;
	for (unsigned int i = 0; i < peers; i++)
		if (w->above[i] == (int)node && tally_set_is_equal(&w->ranks[i], &w->ranks[node]))
			return false;
	return true;
}

void paths_tree(const struct paths *p, struct paths_walk *ret_walk, struct tree *ret)
{
	struct paths_walk *w = ret_walk;

	memset(w, 0, sizeof(*w));
	for (unsigned int i = 0; i < p->peers; i++)
		w->above[i] = PATHS_NOWHERE;
	for (unsigned int rank = 0; rank < p->workers; rank++)
		walk_to(p, w, rank);
	memset(ret, 0, sizeof(*ret));
	ret->found = true;
	for (unsigned int i = 0; i < p->peers; i++) {
		struct tree_node *n = &ret->node[ret->nodes];

		if (!is_useful(w, p->peers, i))
			continue;
		memcpy(n->name, p->peer[i].name, sizeof(n->name));
		n->address = p->peer[i].address;
		n->ranks = w->ranks[i];
		ret->nodes++;
	}
}

/* --- who says too much ----------------------------------------------------------------------- */

static const char *whose(const struct paths *p, int known)
{
	if (known == TREE_ROOT)
		return "the root's";
	if (known == PATHS_OF_A_WORKER)
		return "a worker's";
	return known == PATHS_NOWHERE ? "nobody's" : p->peer[known].name;
}

/* "10.1.0.3 is nobody's, and p1 p2 said to have it (...)" */
static size_t dispute_say(const struct paths *p, const struct sockaddr_storage *address, char *text,
			  size_t size)
{
	const int known = owner_known(p, address);
	char at[ADDRESS_BYTES];
	size_t used;

	address_print(address, at, sizeof(at));
	used = snprintf(text, size, "%s is %s, and", at, whose(p, known));
	for (unsigned int i = 0; i < p->peers && used < size; i++)
		if ((int)i != known && claims(p, i, address))
			used += snprintf(text + used, size - used, " %s", p->peer[i].name);
	if (used < size)
		used += snprintf(text + used, size - used, " said to have it%s",
				 known == PATHS_NOWHERE ? " (peers.nodes: also)" : "");
	return used;
}

void paths_disputes_say(const struct paths *p, const struct paths_walk *walk, char *text,
			size_t size)
{
	size_t used = strnlen(text, size);

	for (unsigned int i = 0; i < walk->disputes && used < size; i++) {
		used += snprintf(text + used, size - used, "%s", used ? "; " : "");
		if (used < size)
			used += dispute_say(p, &walk->dispute[i], text + used, size - used);
	}
}

/* --- who is silent --------------------------------------------------------------------------- */

void paths_silent(const struct paths_walk *was, const struct config_peer *peer, unsigned int peers,
		  unsigned int index, const struct sockaddr_storage *own, unsigned int owns,
		  struct paths_view *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->owns = owns;
	memcpy(ret->own, own, owns * sizeof(*own));
	for (unsigned int i = 0; i < peers; i++)
		if (was->above[i] == (int)index)
			ret->hop[ret->hops++] = (struct paths_hop){ peer[i].address,
								    was->ranks[i] };
}

/* Has the peer the same to do in both trees, or is in neither? */
static bool is_as_it_was(const struct tree *was, const struct tree *now,
			 const struct config_peer *peer)
{
	const int before = tree_at(was, &peer->address), after = tree_at(now, &peer->address);

	if (before < 0 || after < 0)
		return before == after;
	return tree_has_same(was, before, now, after);
}

/* When one goes, perhaps another one would have something else to do. */
void paths_tree_after(struct paths *p, const struct tree *was, struct paths_walk *ret_walk,
		      struct tree *ret)
{
	unsigned int i;

	do {
		paths_tree(p, ret_walk, ret);
		for (i = 0; i < p->peers; i++)
			if (p->silent[i] && !is_as_it_was(was, ret, &p->peer[i]))
				break;
		if (i < p->peers) {
			p->view[i] = NULL;
			p->silent[i] = false;
		}
	} while (i < p->peers);
}
