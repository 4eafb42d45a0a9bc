// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/address.h"
#include "common/ranks.h"
#include "job.h"

struct job *job_new(const struct job *facts)
{
	_cleanup_(freep) struct job *j = malloc(sizeof(*j));

	if (!j)
		return NULL;
	*j = *facts;
	j->tree = NULL;
	j->document = NULL;
	j->rank = calloc(j->workers, sizeof(*j->rank));
	return j->rank ? TAKE_PTR(j) : NULL;
}

int job_tree_set(struct job *j, const struct tree *tree)
{
	if (!tree->nodes && !tree->found)
		return 0;
	j->tree = malloc(sizeof(*j->tree));
	if (!j->tree)
		return -ENOMEM;
	*j->tree = *tree;
	return 0;
}

bool job_tree_moves(const struct job *j)
{
	return j->document ? j->document->generation : j->tree && j->tree->found;
}

struct job *job_new_inner(const struct document *document, unsigned int tenant)
{
	const struct job facts = {
		.id = document->id,
		.tenant = tenant,
		.workers = document->workers,
		.window = document->window,
		.run_window = document->window,
		.payload_bytes = document->payload_bytes,
		.service = document->root,
		.epoch = document->epoch,
	};
	_cleanup_(job_freep) struct job *j = job_new(&facts);

	if (!j)
		return NULL;
	memcpy(j->name, document->job, sizeof(j->name));
	j->document = malloc(sizeof(*j->document));
	if (!j->document)
		return NULL;
	*j->document = *document;
	return TAKE_PTR(j);
}

void job_free(struct job *j)
{
	if (!j)
		return;
	free(j->rank);
	free(j->tree);
	if (j->document)
		explicit_bzero(j->document, sizeof(*j->document));
	free(j->document);
	explicit_bzero(j, sizeof(*j));
	free(j);
}

/* Who is connected as this rank, or waits to be? NULL: it may be taken. */
static const struct sockaddr_storage *holder(const struct job_rank *r)
{
	if (r->waiting)
		return &r->next;
	return r->presence == JOB_RUNNING ? &r->address : NULL;
}

enum {
	TREE_TEXT_BYTES = 256, /* of an error: there is more to say */
};

/* "a0: 0-1; a1: 2-3", or as much of it as there is room for. */
static void tree_print(const struct tree *t, char ret[TREE_TEXT_BYTES])
{
	char ranks[RANKS_BYTES], node[NAME_BYTES + RANKS_BYTES + 8];
	size_t used = 0;

	for (unsigned int i = 0; i < t->nodes; i++) {
		ranks_print(&t->node[i].ranks, ranks, sizeof(ranks));
		snprintf(node, sizeof(node), "%s%s: %s", i ? "; " : "", t->node[i].name, ranks);
		if (used + strlen(node) + sizeof("; ...") > TREE_TEXT_BYTES)
			snprintf(node, sizeof(node), "%s...", i ? "; " : "");
		used += (size_t)sprintf(ret + used, "%s", node);
		if (node[strlen(node) - 1] == '.')
			return;
	}
}

/* Who comes first where would be any rank, and its sums would be made elsewhere, slowly. */
static int rank_unsaid(const struct job *j, struct why *why)
{
	char tree[TREE_TEXT_BYTES] = "";

	tree_print(j->tree, tree);
	return why_say(why, -ERANGE,
		       "any rank: job %s has a tree, which says where each rank is (%s): say which "
		       "rank this worker is (--rank, $TALLY_RANK)",
		       j->name, tree);
}

/* The rank wanted, or the first that may be taken. */
static int rank_choose(const struct job *j, int rank, uint16_t *ret, struct why *why)
{
	const struct sockaddr_storage *other;
	char text[ADDRESS_BYTES];

	if (rank >= j->workers)
		return why_say(why, -ERANGE, "rank %d: job %s has ranks 0 to %u", rank, j->name,
			       j->workers - 1);
	if (rank < 0 && j->tree && !j->tree->found)
		return rank_unsaid(j, why);
	if (rank < 0)
		for (rank = 0; rank < j->workers && holder(&j->rank[rank]); rank++)
			;
	if (rank == j->workers)
		return why_say(why, -EUSERS, "all %u ranks of job %s are taken", j->workers,
			       j->name);
	other = holder(&j->rank[rank]);
	if (other) {
		endpoint_print(other, text, sizeof(text));
		return why_say(why, -EADDRINUSE, "rank %d of job %s is taken, by %s", rank, j->name,
			       text);
	}
	*ret = rank;
	return 0;
}

void job_token_make(struct job *j, const uint8_t *random)
{
	for (size_t i = 0; i < TOKEN_RANDOM_BYTES; i++)
		sprintf(j->token + 2 * i, "%02x", random[i]);
}

int job_join(struct job *j, int rank, const struct sockaddr_storage *address, uint16_t *ret,
	     struct why *why)
{
	const bool is_ip4 = j->service.ss_family == AF_INET;
	uint16_t chosen = 0;
	int r;

	if (address->ss_family != j->service.ss_family)
		return why_say(why, -EAFNOSUPPORT,
			       "job %s uses IPv%c, and this worker IPv%c: join from an IPv%c "
			       "address, or create the job with --service and the node's IPv%c "
			       "address (tallyctl status: services)",
			       j->name, is_ip4 ? '4' : '6', is_ip4 ? '6' : '4', is_ip4 ? '4' : '6',
			       is_ip4 ? '6' : '4');
	if (j->tree && endpoint_port(address) == TALLY_UDP_PORT)
		return why_say(why, -EADDRINUSE,
			       "UDP port %u is that of nodes, and job %s has a tree of nodes: join "
			       "with another port (--address, $TALLY_ADDRESS)",
			       TALLY_UDP_PORT, j->name);
	r = rank_choose(j, rank, &chosen, why);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < j->workers; i++) {
		const struct sockaddr_storage *other = holder(&j->rank[i]);

		if (other && endpoint_is_equal(other, address))
			return why_say(why, -EADDRINUSE,
				       "rank %u of job %s has that address and port", i, j->name);
	}
	j->rank[chosen].waiting = true;
	j->rank[chosen].next = *address;
	*ret = chosen;
	return 0;
}

void job_unjoin(struct job *j, uint16_t rank)
{
	j->rank[rank].waiting = false;
	j->begin_by_ns = 0;
}

struct tally_set job_missing(const struct job *j)
{
	struct tally_set missing = { { 0 } };

	for (unsigned int i = 0; i < j->workers; i++)
		if (!j->rank[i].waiting)
			tally_set_add(&missing, i);
	return missing;
}

unsigned int job_joined(const struct job *j)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < j->workers; i++)
		n += j->rank[i].waiting || j->rank[i].presence == JOB_RUNNING ||
		     j->rank[i].presence == JOB_DETACHED;
	return n;
}

bool job_is_ready(const struct job *j)
{
	struct tally_set missing = job_missing(j);

	return tally_set_is_empty(&missing);
}

void job_next_run(const struct job *j, uint16_t window, struct run *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->job = j->id;
	ret->payload_bytes = j->begin_payload ? j->begin_payload : j->payload_bytes;
	ret->workers = j->workers;
	ret->service = j->service;
	ret->epoch = j->epoch + 1;
	ret->window = window;
	ret->nonce = j->begin_draw.nonce;
	for (unsigned int i = 0; i < j->workers; i++)
		ret->worker[i] = j->rank[i].next;
}

void job_this_run(const struct job *j, struct run *ret)
{
	if (j->document) {
		document_run(j->document, ret);
		return;
	}
	job_next_run(j, j->run_window, ret);
	ret->payload_bytes = j->payload_bytes;
	ret->epoch = j->epoch;
	ret->nonce = j->draw.nonce;
	for (unsigned int i = 0; i < j->workers; i++)
		ret->worker[i] = j->rank[i].address;
}

static bool has_keys(const struct job_draw *draw)
{
	static const uint8_t none[SECRET_KEY_BYTES];

	return memcmp(draw->secret, none, sizeof(none)) != 0;
}

/* A hash is never all zeros. */
bool job_is_rotated(const struct job *j)
{
	static const uint8_t none[SECRET_KEY_BYTES];

	return memcmp(j->run_token_key, none, sizeof(none)) != 0;
}

void job_token_goes(struct job *j)
{
	if (j->run_window && !job_is_rotated(j))
		secret_token_key(j->token, j->run_token_key);
}

void job_outdate(struct job *j)
{
	for (unsigned int i = 0; i < j->workers; i++)
		j->rank[i].outdated = j->run_window;
}

bool job_rank_key(const struct job *j, uint16_t rank, uint8_t ret[SECRET_RANK_KEY_BYTES])
{
	if (!has_keys(&j->draw))
		return false;
	secret_rank_key(j->draw.secret, j->id, j->epoch, j->draw.nonce, rank, ret);
	return true;
}

bool job_place_key(const struct job *j, unsigned int rank, uint64_t nonce,
		   uint8_t ret[SECRET_KEY_BYTES])
{
	uint8_t token_key[SECRET_KEY_BYTES], rank_key[SECRET_RANK_KEY_BYTES];

	if (j->document || !j->run_window || rank >= j->workers || nonce != j->draw.nonce ||
	    !job_rank_key(j, rank, rank_key))
		return false;
	if (job_is_rotated(j))
		memcpy(token_key, j->run_token_key, sizeof(token_key));
	else
		secret_token_key(j->token, token_key);
	secret_place_key(token_key, rank_key, ret);
	explicit_bzero(token_key, sizeof(token_key));
	explicit_bzero(rank_key, sizeof(rank_key));
	return true;
}

void job_run_keys(const struct job *j, const struct job_draw *draw, struct run *run)
{
	if (j->document) {
		document_run_keys(j->document, run);
		return;
	}
	run->keys = has_keys(draw) ? run->workers : 0;
	for (unsigned int i = 0; i < run->keys; i++)
		secret_rank_key(draw->secret, run->job, run->epoch, run->nonce, i,
				(uint8_t *)&run->key[i]);
	if (run->keys)
		secret_rank_key(draw->secret, run->job, run->epoch, run->nonce, TALLY_NODE_KEY,
				(uint8_t *)&run->node_key);
}

void job_begin(struct job *j, uint16_t window, bool spilled)
{
	j->epoch++;
	j->run_window = window;
	j->payload_bytes = j->begin_payload ? j->begin_payload : j->payload_bytes;
	j->begin_payload = 0;
	j->unfit = (struct why){ "" };
	explicit_bzero(j->run_token_key, sizeof(j->run_token_key));
	j->spilled = spilled;
	j->draw = j->begin_draw;
	explicit_bzero(&j->begin_draw, sizeof(j->begin_draw));
	j->begin_by_ns = 0;
	j->refill_ns = 0;
	j->refill_apart_ms = 0;
	j->trouble = (struct why){ "" };
	for (unsigned int i = 0; i < j->workers; i++)
		j->rank[i] = (struct job_rank){ .presence = JOB_RUNNING,
						.address = j->rank[i].next,
						.connection = j->rank[i].connection };
}

void job_end(struct job *j)
{
	j->run_window = 0;
	explicit_bzero(&j->draw, sizeof(j->draw));
	explicit_bzero(j->run_token_key, sizeof(j->run_token_key));
	for (unsigned int i = 0; i < j->workers; i++)
		j->rank[i].presence = JOB_ABSENT;
}

bool job_is_at(const struct job *j, uint16_t rank, uint16_t epoch)
{
	return j->run_window && epoch == j->epoch && rank < j->workers &&
	       j->rank[rank].presence != JOB_LEFT;
}

bool job_is_whole(const struct job *j)
{
	bool whole = j->run_window;

	for (unsigned int i = 0; i < j->workers; i++)
		whole &= j->rank[i].presence != JOB_LEFT;
	return whole;
}

bool job_leave(struct job *j, uint16_t rank, uint16_t epoch)
{
	if (!j->run_window || epoch != j->epoch || rank >= j->workers)
		return false;
	j->rank[rank].presence = JOB_LEFT;
	for (unsigned int i = 0; i < j->workers; i++)
		if (j->rank[i].presence != JOB_LEFT)
			return false;
	job_end(j);
	return true;
}

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	struct sockaddr_storage there = *a;

	endpoint_port_set(&there, endpoint_port(b));
	return endpoint_is_equal(&there, b);
}

int job_attach(struct job *j, uint16_t rank, uint16_t epoch, uint64_t nonce, bool by_place,
	       const struct sockaddr_storage *from, struct why *why)
{
	char text[ADDRESS_BYTES];
	struct job_rank *r;

	if (!job_is_at(j, rank, epoch) || nonce != j->draw.nonce)
		return why_say(why, -ECANCELED, "rank %u is in no run of job %s with epoch %u here",
			       rank, j->name, epoch);
	r = &j->rank[rank];
	endpoint_print(&r->address, text, sizeof(text));
	if (r->waiting || (r->presence != JOB_DETACHED && !by_place))
		return why_say(why, -EADDRINUSE,
			       "rank %u of job %s, at %s, has a connection that stands", rank,
			       j->name, text);
	if (from->ss_family != AF_UNIX && !is_same_host(from, &r->address))
		return why_say(why, -EINVAL, "rank %u of job %s is at %s, and stays there", rank,
			       j->name, text);
	r->presence = JOB_RUNNING;
	return 0;
}

void job_detach(struct job *j)
{
	for (unsigned int i = 0; i < j->workers; i++) {
		j->rank[i].waiting = false;
		if (j->rank[i].presence == JOB_RUNNING)
			j->rank[i].presence = JOB_DETACHED;
	}
}

void job_role(const struct job *j, struct installation_role *ret)
{
	if (j->document) {
		document_role(j->document, ret);
	} else if (j->tree) {
		tree_role(j->tree, TREE_ROOT, ret);
	} else {
		memset(ret, 0, sizeof(*ret));
		ret->root = true;
	}
}

int job_is_inner(const struct job *j, struct why *why)
{
	char root[ADDRESS_BYTES];

	address_print(&j->service, root, sizeof(root));
	return why_say(why, -EINVAL,
		       "this node is an inner node of job %s: its workers join at the root, %s, so "
		       "do that there",
		       j->name, root);
}

bool job_is_running(const struct job *j)
{
	return j->run_window && !(j->document && j->begin_by_ns);
}

bool job_is_in_maps(const struct job *j)
{
	return j->run_window && !job_is_suspended(j) && (!j->spilled || j->borrows);
}

bool job_is_suspended(const struct job *j) { return !j->tenant && *j->tenant_name; }

bool job_is_lent(const struct job *j) { return j->over && job_slots(j); }

uint32_t job_slots(const struct job *j)
{
	return job_is_suspended(j) || j->spilled || j->borrows ? 0 : 2u * j->run_window;
}

uint32_t job_slots_wanted(const struct job *j) { return j->over ? 0 : 2u * j->window; }
