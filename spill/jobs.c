// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Jobs of the spill, and the copies for their workers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/owned.h"
#include "sums_private.h"

static struct spill_job **bucket_of(struct spill *s, uint32_t id)
{
	return &s->bucket[id * 0x9e3779b1u >> 22 & (BUCKETS - 1)];
}

/* Where the job hangs, or would hang. */
struct spill_job **job_link(struct spill *s, uint32_t id)
{
	struct spill_job **link = bucket_of(s, id);

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static void keys_free(struct tally_key *key)
{
	if (key)
		explicit_bzero(key, TALLY_KEYS_MAX * sizeof(*key));
	free(key);
}

static void keys_freep(struct tally_key **key) { keys_free(*key); }

static void job_free(struct spill_job *j)
{
	keys_free(j->key);
	free(j->slot);
	free(j->child);
	free(j);
}

int spill_job_remove(struct spill *s, uint32_t id)
{
	struct spill_job **link = job_link(s, id), *j = *link;

	if (!j)
		return -ENOENT;
	s->settle(s->context);
	for (uint32_t i = 0; i < j->slots; i++)
		slot_drop_words(s, &j->slot[i]);
	*link = j->next;
	s->jobs--;
	job_free(j);
	return 0;
}

static bool is_sound(const struct spill_job_options *o)
{
	struct tally_set served = { { 0 } };

	for (unsigned int i = 0; i < o->children; i++) {
		if (!tally_set_is_disjoint(&o->child[i].below, &served) ||
		    (o->key && o->child[i].key >= TALLY_NODE_KEY + !!o->node_key))
			return false;
		tally_set_join(&served, &o->child[i].below);
	}
	return o->children && tally_set_is_equal(&served, &o->everyone) &&
	       o->tenant < TALLY_TENANTS_MAX && o->window && !(o->window & (o->window - 1)) &&
	       o->window <= TALLY_WINDOW_MAX && o->payload_bytes &&
	       o->payload_bytes % TALLY_BLOCK_BYTES == 0 && o->payload_bytes <= TALLY_PAYLOAD_MAX;
}

static struct spill_job *job_new(const struct spill_job_options *o)
{
	struct spill_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct spill_job){ .everyone = o->everyone,
				 .service = o->service,
				 .id = o->id,
				 .tenant = o->tenant,
				 .epoch = o->epoch,
				 .payload_bytes = o->payload_bytes,
				 .slots = 2 * o->window };
	links_alone(&j->begun);
	j->slot = calloc(j->slots, sizeof(*j->slot));
	for (uint32_t i = 0; j->slot && i < j->slots; i++) {
		j->slot[i].job = j;
		links_alone(&j->slot[i].links);
		links_alone(&j->slot[i].begun);
	}
	return j;
}

static void *copy_of(const void *from, size_t count, size_t size)
{
	void *copy = from ? calloc(count, size) : NULL;

	if (copy)
		memcpy(copy, from, count * size);
	return copy;
}

static struct tally_key *keys_of(const struct spill_job_options *o)
{
	struct tally_key *key = o->key ? calloc(TALLY_KEYS_MAX, sizeof(*key)) : NULL;

	if (!key)
		return NULL;
	memcpy(key, o->key, TALLY_WORKERS_MAX * sizeof(*key));
	if (o->node_key)
		key[TALLY_NODE_KEY] = *o->node_key;
	return key;
}

int spill_job_put(struct spill *s, const struct spill_job_options *o)
{
	struct spill_job *j = *job_link(s, o->id);
	_cleanup_(freep) struct spill_child *child = NULL;
	_cleanup_(keys_freep) struct tally_key *key = NULL;

	if (!is_sound(o))
		return -EINVAL;
	child = copy_of(o->child, o->children, sizeof(*child));
	key = keys_of(o);
	if (!child || !key != !o->key)
		return -ENOMEM;
	if (!j || j->epoch != o->epoch || j->tenant != o->tenant || j->slots != 2u * o->window ||
	    j->payload_bytes != o->payload_bytes) {
		j = job_new(o);
		if (!j || !j->slot) {
			if (j)
				job_free(j);
			return -ENOMEM;
		}
		spill_job_remove(s, o->id);
		*job_link(s, o->id) = j;
		s->jobs++;
	}
	s->settle(s->context);
	j->limits = o->limits;
	j->points = o->points;
	free(j->child);
	keys_free(j->key);
	j->child = TAKE_PTR(child);
	j->key = TAKE_PTR(key);
	j->node_key = o->key && o->node_key;
	j->children = o->children;
	return 0;
}

unsigned int spill_jobs(const struct spill *s) { return s->jobs; }

void spill_each(const struct spill *s, spill_job_function function, void *context)
{
	for (int i = 0; i < BUCKETS; i++)
		for (const struct spill_job *j = s->bucket[i]; j; j = j->next)
			function(context, j->id, j->tenant, j->counter);
}

const struct spill_child *spill_children(const struct spill_job *j, unsigned int *ret_count)
{
	*ret_count = j->children;
	return j->child;
}

/* --- copies */

void header_retag(struct tally_header *h, const struct tally_key *key)
{
	struct tally_set set = tally_header_set(h);

	h->tag = tally_le64(tally_keyed_tag(h, &set, key));
}

size_t spill_copy(const struct spill_reply *r, const struct spill_child *child,
		  uint64_t ret_header[static SPILL_HEADER_WORDS])
{
	struct tally_header *h = memcpy(ret_header, r->header, r->header_bytes);
	bool cut = tally_copy_is_cut(h, &child->below);

	if (cut)
		tally_copy_cut(h);
	if (r->job->key)
		header_retag(h, &r->job->key[child->key]);
	return cut ? 0 : r->payload_bytes;
}
